// Interface to mercer's core, compiled to WebAssembly: it takes arrays and returns solutions with their certificates.
//
// The page and the tests in node load this same file. A kernel is a list of terms {kind, scale, gamma, degree, coef0},
// which are added; a point is {x, y} with a class `c`, or {x, y} with y the target of regression.

const KINDS = { linear: 0, poly: 1, rbf: 2, laplacian: 3 };
const RULES = { "most violating": 0, "maximum gain": 1, "second order": 2 };
const AT_STEP = -1; // number of the part that go_to_step makes
const REPORT = [
  "primal", "dual", "gap", "violation", "box", "equality", "feasibility", "slackness", "b", "nFree", "nBounded",
  "steps", "exact", "verdict", "energy", "variables",
];

// Returns the bytes of the module in the page: base64 of what zlib has compressed.
export async function unpacked(text) {
  const packed = Uint8Array.from(atob(text), (c) => c.charCodeAt(0));
  return new Response(new Blob([packed]).stream().pipeThrough(new DecompressionStream("deflate"))).arrayBuffer();
}

export class Core {
  static async load(bytes) {
    const { instance } = await WebAssembly.instantiate(bytes, {});
    instance.exports._initialize();
    return new Core(instance.exports);
  }

  constructor(exports) {
    this.wasm = exports;
    this.n = 0;
    this.columns = this.rows = 0;
  }

  // Memory may have moved since the last call, so each call makes a new view.
  view(address, length) {
    return new Float64Array(this.wasm.memory.buffer, address, length);
  }

  // Sets points, as rows of coordinates, and their labels or targets. Returns false if a kernel value is not finite.
  prepare(rows, targets, kernel) {
    const d = rows.length ? rows[0].length : 2;
    this.n = rows.length;
    const x = this.wasm.points(this.n, d);
    const flat = this.view(x, this.n * d);
    rows.forEach((row, i) => flat.set(row, i * d));
    this.view(this.wasm.targets(), this.n).set(targets);
    this.wasm.clear_kernel();
    for (const term of kernel) {
      this.wasm.add_term(KINDS[term.kind], term.scale, term.gamma, term.degree, term.coef0);
    }
    return this.wasm.prepare() === 1;
  }

  gram() {
    return Float64Array.from(this.view(this.wasm.gram(), this.n * this.n));
  }

  // machine: {name: "svc", C} | {name: "hard"} | {name: "svr", C, epsilon} | {name: "oneclass", nu}
  fit(machine) {
    const count = {
      svc: () => this.wasm.fit_svc(machine.C),
      hard: () => this.wasm.fit_hard_margin(),
      svr: () => this.wasm.fit_svr(machine.C, machine.epsilon),
      oneclass: () => this.wasm.fit_one_class(machine.nu),
    }[machine.name]();
    return Array.from({ length: count }, (_, k) => this.part(k));
  }

  part(k) {
    const numbers = this.view(this.wasm.report(k), REPORT.length);
    const out = Object.fromEntries(REPORT.map((name, i) => [name, numbers[i]]));
    out.beta = Float64Array.from(this.view(this.wasm.coefficients(k), this.n));
    out.f = Float64Array.from(this.view(this.wasm.values(k), this.n));
    return out;
  }

  hull(k) {
    return Float64Array.from(this.view(this.wasm.hull_coefficients(k), this.n));
  }

  // Evaluates f of every part on a grid of columns × rows points.
  grid(parts, left, top, width, height, columns, rows) {
    return this.view(this.wasm.grid(left, top, width, height, columns, rows), parts * columns * rows).slice();
  }

  // Computes the solutions of part k for every C in a range: segments on which the coefficients are linear in C.
  path(k, from, to) {
    const end = this.wasm.follow(k, from, to);
    const segments = [];
    for (let i = 0; i < this.wasm.path_segments(); ++i) {
      const all = this.view(this.wasm.path_segment(k, i), 7 + 2 * this.n);
      segments.push({
        from: all[0], to: all[1], bFrom: all[2], bTo: all[3], nFree: all[4], nBounded: all[5], energy: all[6],
        betaFrom: Float64Array.from(all.subarray(7, 7 + this.n)),
        betaTo: Float64Array.from(all.subarray(7 + this.n)),
      });
    }
    return { end: ["not begun", "converged", "rounding", "too many events"][end], segments };
  }

  // Returns part k at another C of the last path; null if the path does not reach it.
  moveAlong(k, C) {
    return this.wasm.move_along(k, C) === 1 ? this.part(k) : null;
  }

  // Runs SMO (Igel, algorithm 4.2) on part k; alpha(i) is α after step i.
  trace(k, C, rule = "second order", tol = 1e-3, most = 2000) {
    const count = this.wasm.trace(k, C, RULES[rule], tol, most);
    const steps = [];
    for (let i = 0; i < Math.abs(count); ++i) {
      const all = this.view(this.wasm.trace_step(k, i), 12 + this.n);
      const [a, b, roomI, roomJ, newton, size, gain, dual, violation, bias, alphaI, alphaJ] = all;
      steps.push({
        i: a, j: b, roomI, roomJ, newton, size, gain, dual, violation, b: bias, alphaI, alphaJ,
        alpha: Float64Array.from(all.subarray(12)),
      });
    }
    return { converged: count >= 0, steps };
  }

  // Returns part k with the α and b that it has after some steps of the trace, and their certificate.
  atStep(k, steps) {
    return this.wasm.go_to_step(k, steps) === 1 ? this.part(AT_STEP) : null;
  }

  // Evaluates f of the last `atStep` on a grid.
  gridAtStep(left, top, width, height, columns, rows) {
    return this.view(this.wasm.grid_at_step(left, top, width, height, columns, rows), columns * rows).slice();
  }
}
