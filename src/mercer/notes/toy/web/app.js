// The page: its state, the events that change it, and its display. Every change is solved and certified before it is drawn.
import { Core } from "./core.js";
import { COLOURS, Frame, GRID, SHAPES, convexHull, css, drawBox, drawPath, drawPlane } from "./draw.js";
import {
  MOST_CHARACTERS, MOST_CLASSES, MOST_POINTS, RANGES, Refused, fromLink, fromPoints, parseData, rounded, toCsv, toLibsvm, toLink, toPython,
} from "./formats.js";
import { SETS } from "./sets.js";

const $ = (id) => document.getElementById(id);
const NAMES = ["blue", "orange", "green", "pink"];
const LOGARITHMIC = new Set(["C", "gamma"]);
const PATH_RANGE = [1e-3, 1e5];
const PATH_POINTS = 300;
const WINDOW = { left: -4, top: 3, width: 8, height: 6 };
const NEAR = 14; // distance in pixels within which a click hits a point

const state = { task: "classify", kernels: ["rbf"], hard: false, points: [], view: WINDOW };
for (const [name, [, , start]] of Object.entries(RANGES)) state[name] = start;
const ui = { tool: "add", pen: 0, selected: new Set(), band: null, cursor: null, pair: null, drag: null };
let shown = { parts: [], pairs: [], classes: [] };
let path = null; // exact path in C for the current points and kernel, if computed
let trace = null;
let core = null;

// --- solving ---------------------------------------------------------------------------------------------------------

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

function solve(onlyC) {
  const regress = state.task === "regress";
  const classes = [...new Set(state.points.map(({ c }) => c))].sort();
  const next = { parts: [], pairs: [], classes, grid: null, slack: [], kind: null, hull: null };
  const enough = state.task === "classify" ? classes.length > 1 : state.points.length > 1;
  ui.pair = null;
  if (!enough) {
    path = null;
    return next;
  }
  if (state.task === "classify") next.pairs = pairsOf(classes);
  let parts = null;
  if (onlyC && path && next.pairs.length === 1) {
    const part = core.moveAlong(0, state.C);
    parts = part && [part];
  }
  next.alongPath = parts !== null;
  if (parts === null) {
    path = null;
    const rows = state.points.map(({ x, y }) => (regress ? [x] : [x, y]));
    const targets = state.points.map((point) => (regress ? point.y : point.c));
    if (!core.prepare(rows, targets, kernelTerms())) {
      throw new Refused("The kernel values are too large for float64: lower γ or the degree.");
    }
    parts = core.fit(machine());
  }
  next.parts = parts;
  const { left, top, width, height } = state.view;
  const solved = parts.every(({ verdict }) => verdict === 1);
  if (solved) {
    next.columns = regress ? 2 * GRID : GRID;
    next.grid = regress
      ? core.grid(1, left, 0, width, 0, next.columns, 1)
      : core.grid(parts.length, left, top, width, -height, GRID, GRID);
  }
  if (state.hard && state.task === "classify" && parts.length === 1) next.hull = core.hull(0);
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

let wanted = false; // whether a frame is requested
let onlyC = true; // whether only C has changed since the last frame
let since = 0;

function update(changed = "points") {
  if (changed !== "C") onlyC = false;
  if (!since) since = performance.now();
  if (wanted) return;
  wanted = true;
  requestAnimationFrame(frame);
}

function frame() {
  wanted = false;
  const [begun, cOnly] = [since, onlyC];
  [since, onlyC] = [0, true];
  if (!core) return;
  try {
    say("");
    shown = solve(cOnly);
  } catch (error) {
    shown = { parts: [], pairs: [], classes: [] };
    if (error instanceof Refused) say(error.message);
    else {
      say("The solver failed on these points. Undo the last change, or choose another kernel.");
      start(); // its memory may be corrupt
    }
  }
  drawPlane($("plane"), state, shown, ui);
  showNumbers();
  document.documentElement.dataset.frame = (performance.now() - begun).toFixed(2);
  later();
}

// Updates that need not follow the pointer immediately.
let timer = 0;
function later() {
  clearTimeout(timer);
  timer = setTimeout(() => {
    summarise();
    showLegend();
    const binary = state.task === "classify" && shown.pairs.length === 1 && !state.hard && shown.grid;
    if (binary && !path && state.points.length <= PATH_POINTS) path = core.path(0, ...PATH_RANGE);
    showPath(binary);
    showTrace(binary);
    $("python").value = toPython(state);
    document.documentElement.dataset.settled = String(Date.now());
  }, 160);
}

// --- showing ----------------------------------------------------------------------------------------------------------

const say = (text) => {
  if ($("message").textContent !== text) $("message").textContent = text;
};

const told = (value) => {
  if (!Number.isFinite(value)) return value > 0 ? "∞" : value < 0 ? "−∞" : "–";
  const size = Math.abs(value);
  const text = size === 0 ? "0" : size >= 1e-3 && size < 1e7 ? String(Number(value.toPrecision(7))) : value.toExponential(2);
  return text.replace("-", "−").replace("e−", "e-").replace("e+", "e");
};

const total = (name) => shown.parts.reduce((sum, part) => sum + part[name], 0);
const worst = (name) => shown.parts.reduce((most, part) => Math.max(most, part[name]), 0);

export function certificate() {
  if (!shown.parts.length) return [];
  const [primal, dual, gap] = ["primal", "dual", "gap"].map(total);
  const rows = [
    ["primal", "primal value", primal],
    ["dual", "dual value", dual],
    ["gap", "duality gap, at most", gap],
    ["violation", "largest violation", worst("violation")],
    ["box", "KKT: box", worst("box")],
    ["equality", "KKT: Σyα = 0", worst("equality")],
    ["feasibility", "KKT: primal feasibility", worst("feasibility")],
    ["slackness", "KKT: complementary slackness", worst("slackness")],
  ];
  if (state.task === "novelty") rows[5][1] = "KKT: Σα = νn";
  if (shown.parts.length === 1 && shown.grid) {
    const { b, energy } = shown.parts[0];
    rows.push(["b", "b", b], ["norm", "‖w‖", Math.sqrt(energy)]);
    if (state.task === "classify") rows.push(["margin", "margin 1/‖w‖", 1 / Math.sqrt(energy)]);
  }
  rows.push(["free", "free support vectors", count(1)], ["bounded", "bounded support vectors", count(2)]);
  return rows;
}

const count = (kind) => (shown.kind ?? []).filter((own) => own === kind).length;

function showNumbers() {
  const body = $("certificate").tBodies[0];
  const rows = certificate();
  while (body.rows.length > rows.length) body.deleteRow(-1);
  rows.forEach(([name, text, value], i) => {
    const row = body.rows[i] ?? body.insertRow();
    if (row.cells.length < 2) {
      row.insertCell();
      row.insertCell();
    }
    row.dataset.name = name;
    row.dataset.value = String(value);
    row.className = name === "gap" ? "total" : "";
    row.cells[0].textContent = text;
    row.cells[1].textContent = told(value);
  });
  $("proves").textContent = rows.length === 0
    ? "Add points of two classes, or two points for regression and novelty detection."
    : `Computed from α alone in float64, with bounds on all rounding errors${shown.alongPath ? "; α is from the exact path in C" : ""}.`;
  const open = shown.parts.find(({ verdict }) => verdict !== 1);
  $("verdict").textContent = state.task !== "classify" || !state.hard || !shown.parts.length ? ""
    : !open ? "Separable (proven): the convex hulls of the classes are disjoint."
      : open.verdict === 0 ? "Not separable: the convex hulls of two classes meet, to float64 precision."
        : "Undecided: in float64 it is not clear whether the convex hulls are disjoint.";
  showSliders();
}

function showSliders() {
  const uses = {
    C: state.task !== "novelty" && !(state.hard && state.task === "classify"),
    gamma: state.kernels.some((name) => name !== "linear"),
    degree: state.kernels.includes("poly"),
    coef0: state.kernels.includes("poly"),
    epsilon: state.task === "regress",
    nu: state.task === "novelty",
    hard: state.task === "classify",
  };
  for (const [name, used] of Object.entries(uses)) document.querySelector(`[data-for="${name}"]`).hidden = !used;
  for (const name of Object.keys(RANGES)) {
    const input = $(name);
    const value = LOGARITHMIC.has(name) ? Math.log10(state[name]) : state[name];
    if (Math.abs(Number(input.value) - value) > 1e-9) input.value = String(value);
    const text = told(Number(state[name].toPrecision(4)));
    $(`${name}-value`).textContent = text;
    if (LOGARITHMIC.has(name)) input.setAttribute("aria-valuetext", text);
  }
  $("hard").checked = state.hard;
  if (state.kernels.length > 1) $("sum").checked = true;
  for (const button of document.querySelectorAll("[data-kernel]")) {
    button.setAttribute("aria-pressed", String(state.kernels.includes(button.dataset.kernel)));
  }
  for (const [name, value] of [["task", state.task], ["tool", ui.tool], ["pen", String(ui.pen)]]) {
    for (const button of document.querySelectorAll(`[data-${name}]`)) {
      button.setAttribute("aria-pressed", String(button.dataset[name] === value));
    }
  }
  $("classes").hidden = state.task !== "classify";
  $("undo").disabled = history.length < 2;
  $("redo").disabled = undone.length === 0;
}

function summarise() {
  const n = state.points.length;
  const parts = [`${n} point${n === 1 ? "" : "s"}`];
  if (state.task === "classify") parts.push(`${shown.classes.length} classes`);
  if (shown.parts.length && !shown.grid) parts.push($("verdict").textContent.split(":")[0].toLowerCase());
  else if (shown.parts.length) {
    parts.push(`${count(1)} free and ${count(2)} bounded support vectors`);
    parts.push(`duality gap at most ${told(total("gap"))}`);
  }
  $("summary").textContent = `${parts.join(", ")}.`;
}

let pathScale = null;
function showPath(binary) {
  if (!$("path-panel").open) return;
  $("path").hidden = !(binary && path);
  if (!binary || !path) {
    $("path-text").textContent = state.points.length > PATH_POINTS
      ? `The path is drawn for up to ${PATH_POINTS} points.` : "The path is drawn for two classes and a finite C.";
    return;
  }
  pathScale = drawPath($("path"), path, state, PATH_RANGE);
  const breakpoints = Math.max(0, path.segments.length - 1);
  $("path-text").textContent = `${breakpoints} breakpoints; between them every α is linear in C. The height is α/C, so that bounded `
    + `support vectors are at the top. ${path.end === "converged" ? "" : "Rounding errors end the path early. "}Click to choose C.`;
}

let playing = 0;
function showTrace(binary) {
  if (!$("trace-panel").open) return;
  const usable = binary && state.points.length <= PATH_POINTS;
  trace = usable ? core.trace(0, state.C, $("rule").value, 1e-3, 1000) : null;
  const last = trace ? trace.steps.length : 0;
  $("step").max = String(last);
  if (Number($("step").value) > last) $("step").value = String(last);
  $("box").hidden = !usable;
  showStep();
}

function showStep() {
  const at = Number($("step").value);
  const step = trace && at > 0 ? trace.steps[at - 1] : null;
  $("step-value").textContent = trace ? `${at} of ${trace.steps.length}` : "";
  ui.pair = step ? [step.i, step.j] : null;
  if (!trace) $("step-text").textContent = "The steps are shown for two classes and a finite C.";
  else if (!step) {
    $("step-text").textContent = trace.converged
      ? `Starts at α = 0 and converges in ${trace.steps.length} steps to a violation of at most 0.001.`
      : `Starts at α = 0; shown are the first ${trace.steps.length} steps.`;
  } else {
    const cut = step.size < step.newton;
    $("step-text").textContent = `Points ${step.i + 1} and ${step.j + 1}: λ = ${told(step.size)}${cut
      ? `, clipped at the box from ${told(step.newton)}` : ""}; the dual value grows by ${told(step.gain)} to ${told(step.dual)}; violation ${told(step.violation)}.`;
  }
  if (trace) {
    const sign = (i) => (state.points[i].c === shown.pairs[0][0] ? 1 : -1);
    drawBox($("box"), step, state.C, { signs: step ? [sign(step.i), sign(step.j)] : [1, 1] });
  }
  drawPlane($("plane"), state, shown, ui);
}

function showLegend() {
  const mark = (inner) => `<svg width="22" height="22" viewBox="-11 -11 22 22" aria-hidden="true">${inner}</svg>`;
  const dot = '<circle r="4" fill="currentColor"/>';
  const limit = { classify: "C", regress: "C", novelty: "1" }[state.task];
  const several = shown.pairs.length > 1;
  const items = [
    [`${dot}<circle r="9" fill="none" stroke="currentColor" stroke-width="2.2"/>`,
      state.hard ? "support vector, 0 &lt; α" : `free support vector, 0 &lt; ${state.task === "regress" ? "|β|" : "α"} &lt; ${limit}`],
    !state.hard && [`<circle r="9" fill="currentColor" fill-opacity=".3" stroke="currentColor"/>${dot}`,
      `bounded, ${state.task === "regress" ? "|β|" : "α"} = ${limit}`],
    ['<path d="M-10 0H10" stroke="currentColor" stroke-width="2.6"/>', several ? "boundary between predicted classes" : state.task === "regress" ? "f" : "f = 0"],
    !several && state.task !== "novelty" && ['<path d="M-10 0H10" stroke="currentColor" stroke-dasharray="5 3"/>',
      state.task === "regress" ? "f ± ε" : "margins, f = ±1"],
    !several && !state.hard && ['<path d="M-8 6L8 -6" stroke="currentColor" stroke-width="1.3"/>', "slack"],
  ];
  const html = items.filter(Boolean).map(([inner, text]) => `<li>${mark(inner)}${text}</li>`).join("");
  if ($("legend").innerHTML !== html) $("legend").innerHTML = html;
}

// --- changes ------------------------------------------------------------------------------------------------------------

const history = [];
const undone = [];
const snapshot = () => JSON.stringify(state);

function commit() {
  const now = snapshot();
  if (history.at(-1) === now) return;
  history.push(now);
  if (history.length > 200) history.shift();
  undone.length = 0;
  showSliders();
  writeLink();
}

function writeLink() {
  if (document.body.classList.contains("embedded")) return;
  try {
    window.history.replaceState(null, "", toLink(state));
  } catch { /* browsers may forbid this for local files */ }
}

function restore(text) {
  Object.assign(state, JSON.parse(text));
  ui.selected.clear();
  writeLink();
  update();
}

function undo() {
  if (history.length < 2) return;
  undone.push(history.pop());
  restore(history.at(-1));
}

function redo() {
  if (!undone.length) return;
  history.push(undone.pop());
  restore(history.at(-1));
}

// Runs a change that may reject its input, and shows the reason.
function attempt(change) {
  try {
    change();
    return true;
  } catch (error) {
    if (!(error instanceof Refused)) throw error;
    say(error.message);
    return false;
  }
}

function setPoints(points) {
  state.points = points.map(({ x, y, c }) => ({ x: rounded(x), y: rounded(y), c }));
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

function addPoint({ x, y }) {
  if (state.points.length >= MOST_POINTS) {
    say(`The page takes up to ${MOST_POINTS} points. mercer train takes any number.`);
    return -1;
  }
  state.points.push({ x: rounded(x), y: rounded(y), c: state.task === "classify" ? ui.pen : 0 });
  return state.points.length - 1;
}

function removePoints(which) {
  state.points = state.points.filter((_, i) => !which.has(i));
  ui.selected.clear();
}

function choose(name, value) {
  if (name === "task") {
    state.task = value;
    state.hard = state.hard && value === "classify";
  } else if (name === "tool") {
    ui.tool = value;
    ui.selected.clear();
  } else if (name === "pen") {
    ui.pen = Number(value);
    if (ui.selected.size) {
      for (const i of ui.selected) state.points[i].c = ui.pen;
      commit();
    }
  }
  update();
  showSliders();
}

// --- pointer --------------------------------------------------------------------------------------------------------------

const plane = $("plane");
const frameOf = () => {
  const { width, height } = plane.getBoundingClientRect();
  return new Frame(state.view, width, height);
};
const placeOf = (event) => {
  const box = plane.getBoundingClientRect();
  return frameOf().back(event.clientX - box.left, event.clientY - box.top);
};

function nearest({ x, y }, within = NEAR) {
  const frame = frameOf();
  let [best, least] = [-1, within];
  state.points.forEach((point, i) => {
    const away = Math.hypot(frame.x(point.x) - frame.x(x), frame.y(point.y) - frame.y(y));
    if (away < least) [best, least] = [i, away];
  });
  return best;
}

plane.addEventListener("pointerdown", (event) => {
  if (event.button !== 0) return;
  plane.setPointerCapture(event.pointerId);
  plane.focus({ preventScroll: true });
  ui.cursor = null;
  const at = placeOf(event);
  const hit = nearest(at, event.pointerType === "touch" ? 1.8 * NEAR : NEAR);
  if (ui.tool === "erase") {
    ui.drag = { kind: "erase" };
    if (hit >= 0) removePoints(new Set([hit]));
  } else if (ui.tool === "select") {
    if (hit < 0) {
      ui.selected.clear();
      ui.band = { from: at, to: at };
      ui.drag = { kind: "band" };
    } else {
      if (!ui.selected.has(hit)) ui.selected = new Set([hit]);
      ui.drag = { kind: "move", last: at };
    }
  } else {
    const which = hit >= 0 ? hit : addPoint(at);
    ui.drag = which >= 0 ? { kind: "move", last: at, which } : null;
  }
  update();
});

plane.addEventListener("pointermove", (event) => {
  if (!ui.drag) return;
  const at = placeOf(event);
  if (ui.drag.kind === "erase") {
    const hit = nearest(at);
    if (hit >= 0) removePoints(new Set([hit]));
  } else if (ui.drag.kind === "band") {
    ui.band.to = at;
    const [x0, x1] = [ui.band.from.x, at.x].sort((a, b) => a - b);
    const [y0, y1] = [ui.band.from.y, at.y].sort((a, b) => a - b);
    ui.selected = new Set(state.points.flatMap(({ x, y }, i) => (x >= x0 && x <= x1 && y >= y0 && y <= y1 ? [i] : [])));
  } else {
    const moved = ui.drag.which === undefined ? ui.selected : [ui.drag.which];
    for (const i of moved) {
      state.points[i].x = rounded(state.points[i].x + at.x - ui.drag.last.x);
      state.points[i].y = rounded(state.points[i].y + at.y - ui.drag.last.y);
    }
    ui.drag.last = { x: ui.drag.last.x + rounded(at.x - ui.drag.last.x), y: ui.drag.last.y + rounded(at.y - ui.drag.last.y) };
  }
  update();
});

const release = () => {
  if (!ui.drag) return;
  ui.drag = ui.band = null;
  commit();
  update();
};
plane.addEventListener("pointerup", release);
plane.addEventListener("pointercancel", release);

// --- keyboard ---------------------------------------------------------------------------------------------------------------

plane.addEventListener("keydown", (event) => {
  const step = event.shiftKey ? 0.5 : 0.1;
  const arrows = { ArrowLeft: [-step, 0], ArrowRight: [step, 0], ArrowUp: [0, step], ArrowDown: [0, -step] };
  const key = event.key;
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  if (key in arrows) {
    const scale = state.view.width / WINDOW.width;
    const { left, top, width, height } = state.view;
    const from = ui.cursor ?? { x: left + width / 2, y: top - height / 2 };
    ui.cursor = { x: from.x + scale * arrows[key][0], y: from.y + scale * arrows[key][1] };
    for (const i of ui.selected) {
      state.points[i].x = rounded(state.points[i].x + scale * arrows[key][0]);
      state.points[i].y = rounded(state.points[i].y + scale * arrows[key][1]);
    }
    if (ui.selected.size) commit();
  } else if (key === "Enter" || key === " ") {
    ui.cursor ??= { x: state.view.left + state.view.width / 2, y: state.view.top - state.view.height / 2 };
    if (ui.tool === "add") addPoint(ui.cursor);
    else {
      const hit = nearest(ui.cursor, 40);
      if (hit >= 0 && ui.tool === "erase") removePoints(new Set([hit]));
      else if (hit >= 0) ui.selected = new Set([...ui.selected, hit]);
    }
    commit();
  } else if (key === "Delete" || key === "Backspace") {
    const hit = ui.cursor ? nearest(ui.cursor, 40) : -1;
    removePoints(ui.selected.size ? ui.selected : new Set(hit >= 0 ? [hit] : []));
    commit();
  } else if (key === "Escape") {
    ui.selected.clear();
    ui.cursor = null;
  } else if (/^[1-4]$/.test(key)) choose("pen", String(Number(key) - 1));
  else if (/^[ase]$/i.test(key)) choose("tool", { a: "add", s: "select", e: "erase" }[key.toLowerCase()]);
  else if (key === "[" || key === "]") {
    setNumber("C", state.C * 10 ** (key === "]" ? 0.1 : -0.1));
    commit();
  } else return;
  event.preventDefault();
  update();
});

document.addEventListener("keydown", (event) => {
  if (!(event.ctrlKey || event.metaKey) || /^(TEXTAREA|SELECT)$/.test(event.target.tagName)) return;
  const key = event.key.toLowerCase();
  if (key === "z" && !event.shiftKey) undo();
  else if (key === "y" || (key === "z" && event.shiftKey)) redo();
  else return;
  event.preventDefault();
});

// --- controls -----------------------------------------------------------------------------------------------------------------

function setNumber(name, value) {
  const [low, high] = RANGES[name];
  state[name] = Number(Math.min(high, Math.max(low, value)).toPrecision(6));
  update(name === "C" ? "C" : name);
}

for (const name of Object.keys(RANGES)) {
  $(name).addEventListener("input", () => {
    const value = Number($(name).value);
    setNumber(name, LOGARITHMIC.has(name) ? 10 ** value : value);
  });
  $(name).addEventListener("change", commit);
}
$("hard").addEventListener("change", () => {
  state.hard = $("hard").checked;
  update();
  commit();
});
$("kernels").addEventListener("click", (event) => {
  const name = event.target.dataset.kernel;
  if (!name) return;
  const others = state.kernels.filter((kernel) => kernel !== name);
  if (!$("sum").checked) state.kernels = [name];
  else if (others.length === state.kernels.length) state.kernels = [...others, name];
  else if (others.length) state.kernels = others;
  update();
  commit();
});
for (const group of ["tasks", "tools", "classes"]) {
  const name = { tasks: "task", tools: "tool", classes: "pen" }[group];
  $(group).addEventListener("click", (event) => {
    const button = event.target.closest("button");
    if (!button) return;
    choose(name, button.dataset[name]);
    if (name === "task") commit();
  });
}
$("sum").addEventListener("change", () => {
  if ($("sum").checked || state.kernels.length < 2) return;
  state.kernels = state.kernels.slice(-1);
  update();
  commit();
});
$("undo").addEventListener("click", undo);
$("redo").addEventListener("click", redo);
$("clear").addEventListener("click", () => {
  setPoints([]);
  update();
  commit();
});
$("theme").addEventListener("click", () => {
  const dark = matchMedia("(prefers-color-scheme: dark)").matches;
  const now = document.documentElement.dataset.theme ?? (dark ? "dark" : "light");
  document.documentElement.dataset.theme = now === "dark" ? "light" : "dark";
  redraw();
});

$("path").addEventListener("click", (event) => {
  if (!pathScale) return;
  setNumber("C", pathScale.toC(event.clientX - $("path").getBoundingClientRect().left));
  commit();
});
for (const panel of ["path-panel", "trace-panel"]) $(panel).addEventListener("toggle", () => later());
$("rule").addEventListener("change", () => later());
$("step").addEventListener("input", showStep);
const stepBy = (by) => {
  $("step").value = String(Number($("step").value) + by);
  showStep();
};
$("back").addEventListener("click", () => stepBy(-1));
$("forward").addEventListener("click", () => stepBy(1));
$("play").addEventListener("click", () => {
  clearInterval(playing);
  const resume = $("play").textContent === "Play";
  $("play").textContent = resume ? "Pause" : "Play";
  if (!resume) return;
  if ($("step").value === $("step").max) $("step").value = "0";
  playing = setInterval(() => {
    stepBy(1);
    if ($("step").value === $("step").max) $("play").click();
  }, 350);
});

const readText = (text) => attempt(() => {
  setPoints(parseData(text, state.task));
  update();
  commit();
});
$("read").addEventListener("click", () => readText($("text").value));
$("write-libsvm").addEventListener("click", () => { $("text").value = toLibsvm(state); });
$("write-csv").addEventListener("click", () => { $("text").value = toCsv(state); });
async function readFile(file) {
  if (!file) return;
  if (file.size > MOST_CHARACTERS) say(`${file.name} has ${(file.size / 1e6).toFixed(1)} MB; the page reads up to ${MOST_CHARACTERS / 1e6} MB.`);
  else readText(await file.text());
}
$("file").addEventListener("change", () => readFile($("file").files[0]));
document.addEventListener("dragover", (event) => event.preventDefault());
document.addEventListener("drop", (event) => {
  event.preventDefault();
  readFile(event.dataTransfer?.files[0]);
});
// A large paste would freeze the text field before it could be rejected.
$("text").addEventListener("paste", (event) => {
  const pasted = event.clipboardData?.getData("text") ?? "";
  if (pasted.length <= MOST_CHARACTERS) return;
  event.preventDefault();
  say(`This text has ${(pasted.length / 1e6).toFixed(1)} million characters; the page reads up to ${MOST_CHARACTERS / 1e6} million.`);
});

async function copy(text, button) {
  const before = button.textContent;
  try {
    await navigator.clipboard.writeText(text);
    button.textContent = "Copied";
  } catch {
    $("python").value = text;
    $("python").select();
    button.textContent = "Copy it from the field below";
  }
  setTimeout(() => { button.textContent = before; }, 1500);
}
$("copy-link").addEventListener("click", () => copy(location.href.split("#")[0] + toLink(state), $("copy-link")));
$("copy-python").addEventListener("click", () => copy(toPython(state), $("copy-python")));

function makeButtons() {
  $("classes").innerHTML = COLOURS.slice(0, MOST_CLASSES).map((colour, c) =>
    `<button type="button" data-pen="${c}" aria-pressed="${c === 0}" title="Class ${c + 1}, ${NAMES[c]} ${SHAPES[c]} (${c + 1})"
      aria-label="Class ${c + 1}, ${NAMES[c]} ${SHAPES[c]}"><span class="swatch" style="background:${css(colour)}"></span>${c + 1}</button>`).join("");
  for (const [name, set] of Object.entries(SETS)) {
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = name;
    button.dataset.set = name;
    button.addEventListener("click", () => loadSet(set));
    $("sets").append(button);
  }
  showLegend();
}

function loadSet(set) {
  const { points, ...settings } = set;
  Object.assign(state, { hard: false }, settings);
  setPoints(fromPoints(points));
  update();
  commit();
}

// The fragment of the address, or the state with which the page was built.
const address = () => (location.hash.length > 1 ? location.hash : document.body.dataset.start);

// Applies a link; returns whether it has points.
function followLink() {
  let points = false;
  attempt(() => {
    const { points: given, open, theme, set, ...rest } = fromLink(address());
    if (set !== undefined && !Object.hasOwn(SETS, set)) throw new Refused(`The link has the unknown data set "${set.slice(0, 30)}"; the data sets are ${Object.keys(SETS).join(", ")}.`);
    const { points: known, ...settings } = set === undefined ? {} : SETS[set];
    Object.assign(state, settings, rest);
    if (given || known) setPoints(given ?? fromPoints(known));
    points = Boolean(given || known);
    if (open && $(`${open}-panel`)) $(`${open}-panel`).open = true;
    if (theme === "dark" || theme === "light") document.documentElement.dataset.theme = theme;
  });
  update();
  return points;
}

function redraw() {
  drawPlane($("plane"), state, shown, ui);
  later();
}
new ResizeObserver(redraw).observe(plane);
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redraw);
window.addEventListener("hashchange", () => {
  if (location.hash !== toLink(state)) {
    followLink();
    commit();
  }
});

async function start() {
  const bytes = Uint8Array.from(atob($("wasm").textContent.trim()), (c) => c.charCodeAt(0));
  core = await Core.load(bytes);
}

async function begin() {
  makeButtons();
  if (window.self !== window.top) document.body.classList.add("embedded");
  try {
    await start();
  } catch {
    say("This browser does not support WebAssembly SIMD; all major browsers have since 2023.");
    return;
  }
  const linked = address().length > 1 && followLink();
  const refused = $("message").textContent;
  if (!linked) {
    const { points, ...settings } = SETS.rings;
    if (address().length <= 1) Object.assign(state, settings);
    setPoints(fromPoints(points));
  }
  history.push(snapshot());
  showSliders();
  writeLink();
  update();
  requestAnimationFrame(() => {
    if (refused) say(refused);
    document.documentElement.dataset.ready = "1";
  });
}
begin();
