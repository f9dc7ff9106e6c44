// Solves the problems that it reads, one JSON object per line, with the page's core, and writes what it found.
import { readFileSync } from "node:fs";
import { createInterface } from "node:readline";
import { pathToFileURL } from "node:url";

const web = process.argv[2];
const { Core } = await import(pathToFileURL(`${web}/core.js`).href);
const core = await Core.load(readFileSync(process.argv[3] ?? `${web}/core.wasm`));

// JSON has no infinity.
const told = (value) =>
  JSON.stringify(value, (_, v) =>
    v instanceof Float64Array ? Array.from(v) : typeof v === "number" && !Number.isFinite(v) ? String(v) : v);

for await (const line of createInterface({ input: process.stdin })) {
  const { rows, targets, kernel, machine, path, trace, grid, along, at } = JSON.parse(line);
  const out = { finite: core.prepare(rows, targets, kernel) };
  if (out.finite) {
    out.parts = core.fit(machine);
    if (machine.name === "hard") out.hull = out.parts.map((_, k) => core.hull(k));
    if (grid) out.grid = Float64Array.from(core.grid(out.parts.length, ...grid));
    if (trace) out.trace = core.trace(0, machine.C, trace.rule, trace.tol, trace.most);
    if (at) {
      out.at = at.map((step) => core.atStep(0, step));
      out.atGrid = at.map((step) => core.atStep(0, step) && Float64Array.from(core.gridAtStep(...grid)));
      out.after = core.part(0);
    }
    if (path) out.path = core.path(0, ...path);
    if (along) out.along = along.map((C) => core.moveAlong(0, C));
  }
  process.stdout.write(`${told(out)}\n`);
}
