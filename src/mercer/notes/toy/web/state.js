// State of the page: the problem that it shows, how it is shown, and what the core has found.
import { RANGES, rounded } from "./formats.js";

export const $ = (id) => document.getElementById(id);
export const LOGARITHMIC = new Set(["C", "gamma"]);
export const PATH_RANGE = [1e-3, 1e5];
export const PATH_POINTS = 300;
export const WINDOW = { left: -4, top: 3, width: 8, height: 6 };

// The problem: what undo goes back to, and what a link contains. `names` are those of the two axes, if they have any.
export const state = { task: "classify", kernels: ["rbf"], hard: false, points: [], view: WINDOW, names: null };
for (const [name, [, , start]] of Object.entries(RANGES)) state[name] = start;

export const ui = {
  tool: "add", pen: 0, selected: new Set(), band: null, cursor: null, pair: null, drag: null,
  acted: false, // whether the reader has used the plot
  canUndo: false, canRedo: false,
};

// What is computed from the state: the solution, its path in C and the steps to it if they are shown, and the state of
// a step if the reader has gone to one.
export const found = { core: null, solution: nothing(), path: null, trace: null, step: null };

export function nothing() {
  return { parts: [], pairs: [], classes: [], grid: null, slack: [], kind: null, hull: null };
}

// Returns what the plane shows: a step of the algorithm, or the solution.
export const shownNow = () => found.step ?? found.solution;

export function setPoints(points, names = null) {
  state.points = points.map(({ x, y, c }) => ({ x: rounded(x), y: rounded(y), c }));
  state.names = names;
  state.view = viewOf(state.points);
  ui.selected.clear();
}

// Returns the default view, or one that contains all points.
function viewOf(points) {
  const inside = ({ x, y }) => Math.abs(x) <= 4 && Math.abs(y) <= 3;
  if (points.every(inside)) return WINDOW;
  const [xs, ys] = [points.map(({ x }) => x), points.map(({ y }) => y)];
  const [x0, x1, y0, y1] = [Math.min(...xs), Math.max(...xs), Math.min(...ys), Math.max(...ys)];
  const width = Math.max((x1 - x0) * 1.15, (y1 - y0) * 1.15 * (4 / 3), 0.1);
  return { left: (x0 + x1 - width) / 2, width, height: width * 0.75, top: (y0 + y1 + width * 0.75) / 2 };
}
