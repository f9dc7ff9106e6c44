// Solving: the solution of the state, and the machine at one step of the algorithm.
import { GRID } from "./draw.js";
import { Refused } from "./formats.js";
import { PATH_POINTS, found, nothing, state, ui } from "./state.js";

const kernelTerms = () =>
  state.kernels.map((kind) => ({ kind, scale: 1, gamma: state.gamma, degree: state.degree, coef0: state.coef0 }));

const machine = () => ({
  classify: state.hard ? { name: "hard" } : { name: "svc", C: state.C },
  regress: { name: "svr", C: state.C, epsilon: state.epsilon },
  novelty: { name: "oneclass", nu: state.nu },
}[state.task]);

function pairsOf(classes) {
  const out = [];
  classes.forEach((a, i) => classes.slice(i + 1).forEach((b) => out.push([a, b])));
  return out;
}

// Solves the state. If only C has changed, the solution is taken from the exact path, where there is one.
export function solve(onlyC) {
  const regress = state.task === "regress";
  const classes = [...new Set(state.points.map(({ c }) => c))].sort();
  const next = { ...nothing(), classes };
  const enough = state.task === "classify" ? classes.length > 1 : state.points.length > 1;
  ui.pair = null;
  if (!enough) {
    found.path = null;
    return next;
  }
  if (state.task === "classify") next.pairs = pairsOf(classes);
  let parts = null;
  if (onlyC && found.path && next.pairs.length === 1) {
    const part = found.core.moveAlong(0, state.C);
    parts = part && [part];
  }
  next.alongPath = parts !== null;
  if (parts === null) {
    found.path = null;
    const rows = state.points.map(({ x, y }) => (regress ? [x] : [x, y]));
    const targets = state.points.map((point) => (regress ? point.y : point.c));
    if (!found.core.prepare(rows, targets, kernelTerms())) {
      throw new Refused("The kernel values are too large for float64: lower γ or the degree.");
    }
    parts = found.core.fit(machine());
  }
  next.parts = parts;
  const { left, top, width, height } = state.view;
  const solved = parts.every(({ verdict }) => verdict === 1);
  if (solved) {
    next.columns = regress ? 2 * GRID : GRID;
    next.grid = regress
      ? found.core.grid(1, left, 0, width, 0, next.columns, 1)
      : found.core.grid(parts.length, left, top, width, -height, GRID, GRID);
  }
  if (state.hard && state.task === "classify" && parts.length === 1) next.hull = found.core.hull(0);
  describePoints(next);
  return next;
}

// Finds the kind (0 none, 1 free, 2 bounded support vector) and the slack of every point.
function describePoints(next) {
  const limit = { classify: state.hard ? Infinity : state.C, regress: state.C, novelty: 1 }[state.task];
  next.kind = state.points.map((_, i) => {
    let kind = 0;
    for (const { beta } of next.parts) {
      const size = Math.abs(beta[i]);
      if (size > 0) kind = Math.max(kind, size >= limit * (1 - 1e-12) ? 2 : 1);
    }
    return kind;
  });
  next.slack = state.points.map((point, i) => {
    if (state.task === "regress") return Math.max(0, Math.abs(point.y - next.parts[0].f[i]) - state.epsilon);
    if (state.task === "novelty") return Math.max(0, -next.parts[0].f[i]);
    if (next.pairs.length !== 1 || !next.grid) return 0;
    const sign = point.c === next.pairs[0][0] ? 1 : -1;
    return Math.max(0, 1 - sign * next.parts[0].f[i]);
  });
}

// Whether there is one pair of classes with a finite C: the path and the steps are those of one soft margin.
export const isBinary = () =>
  state.task === "classify" && found.solution.pairs.length === 1 && !state.hard && found.solution.grid !== null;

export const hasSteps = () => isBinary() && state.points.length <= PATH_POINTS;

// Returns what the plane shows after some steps of the algorithm: f of the α and b that it has then.
export function solveStep(steps) {
  const part = found.core.atStep(0, steps);
  if (part === null) return null;
  const { left, top, width, height } = state.view;
  const next = { ...found.solution, parts: [part], hull: null, alongPath: false, steps };
  next.grid = found.core.gridAtStep(left, top, width, -height, GRID, GRID);
  describePoints(next);
  if (steps === 0) next.grid = null; // f = 0 everywhere, so that there is nothing to draw
  return next;
}
