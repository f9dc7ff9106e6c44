// The page: the events that change its state, and the frames that follow. Every change is solved and certified before
// it is drawn.
import { Core, unpacked } from "./core.js";
import { Frame, drawPlane } from "./draw.js";
import { MOST_CHARACTERS, MOST_POINTS, RANGES, Refused, fromLink, fromPoints, parseData, rounded, toCsv, toLibsvm, toLink, toPython } from "./formats.js";
import {
  drawSets, followSteps, goToStep, knownSet, makeButtons, pathC, say, showControls, showNotes, showNumbers, showPath, showStep, togglePlay,
} from "./panels.js";
import { SETS } from "./sets.js";
import { hasSteps, solve } from "./solve.js";
import { $, LOGARITHMIC, PATH_RANGE, WINDOW, found, nothing, setPoints, shownNow, state, ui } from "./state.js";
import { fitFrame, followTheme } from "./surroundings.js";

const NEAR = 14; // distance in pixels within which a click hits a point

// --- frames -----------------------------------------------------------------------------------------------------------

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
  if (!found.core) return;
  try {
    say("");
    found.solution = solve(cOnly);
    followSteps();
  } catch (error) {
    Object.assign(found, { solution: nothing(), path: null, trace: null, step: null });
    if (error instanceof Refused) say(error.message);
    else {
      say("The solver failed on these points. Undo the last change, or choose another kernel.");
      start(); // its memory may be corrupt
    }
  }
  drawPlane($("plane"), state, shownNow(), ui);
  showStep();
  showNumbers();
  document.documentElement.dataset.frame = (performance.now() - begun).toFixed(2);
  later();
}

// Updates that need not follow the pointer immediately.
let timer = 0;
function later() {
  clearTimeout(timer);
  timer = setTimeout(() => {
    showNotes();
    if (hasSteps() && !found.path) found.path = found.core.path(0, ...PATH_RANGE);
    showPath();
    $("python").value = toPython(state);
    document.documentElement.dataset.settled = String(Date.now());
  }, 160);
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
  showHistory();
  writeLink();
}

function showHistory() {
  [ui.canUndo, ui.canRedo] = [history.length > 1, undone.length > 0];
  showControls();
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
  showHistory();
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
    const known = knownSet();
    const first = Object.values(SETS).find(({ task }) => task === value);
    // The points of a data set are of little use to another task; those of the reader stay.
    if (known && SETS[known].task !== value) loadSet(first);
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
  showControls();
}

// --- pointer --------------------------------------------------------------------------------------------------------------

const plane = $("plane");
const frameOf = () => {
  const { width, height } = plane.getBoundingClientRect();
  return new Frame(state.view, width, height);
};
const placeOf = (event) => { // a point that is dragged beyond the edge stays at it, where it can be caught again
  const { left, top, width, height } = plane.getBoundingClientRect();
  const within = (value, most) => Math.min(most, Math.max(0, value));
  return frameOf().back(within(event.clientX - left, width), within(event.clientY - top, height));
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
  plane.focus({ preventScroll: true, focusVisible: false });
  ui.cursor = null;
  ui.acted = true;
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
  ui.acted = true;
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
  setTheme(now === "dark" ? "light" : "dark");
});

$("path").addEventListener("click", (event) => {
  const C = pathC(event.clientX - $("path").getBoundingClientRect().left);
  if (C === null) return;
  setNumber("C", C);
  commit();
});
$("path-panel").addEventListener("toggle", () => later());
$("trace-panel").addEventListener("toggle", () => update("C")); // the algorithm runs, or the solution is shown again
$("rule").addEventListener("change", () => update("C"));
$("step").addEventListener("input", () => goToStep(Number($("step").value)));
$("back").addEventListener("click", () => goToStep(Number($("step").value) - 1));
$("forward").addEventListener("click", () => goToStep(Number($("step").value) + 1));
$("play").addEventListener("click", togglePlay);

const readText = (text) => attempt(() => {
  const { points, names } = parseData(text, state.task);
  setPoints(points, names);
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

$("sets").addEventListener("click", (event) => {
  const button = event.target.closest("button");
  if (button) loadSet(SETS[button.dataset.set]);
});

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
    const { points: given, names, open, theme, set, ...rest } = fromLink(address());
    if (set !== undefined && !Object.hasOwn(SETS, set)) throw new Refused(`The link has the unknown data set "${set.slice(0, 30)}"; the data sets are ${Object.keys(SETS).join(", ")}.`);
    const { points: known, ...settings } = set === undefined ? {} : SETS[set];
    Object.assign(state, settings, rest);
    if (given || known) setPoints(given ?? fromPoints(known), names);
    points = Boolean(given || known);
    const panel = open && $(`${open}-panel`);
    for (const other of document.querySelectorAll("details")) other.classList.toggle("asked", other === panel);
    if (panel) panel.open = true;
    if (theme === "dark" || theme === "light") setTheme(theme);
  });
  update();
  return points;
}

function redraw() {
  drawPlane($("plane"), state, shownNow(), ui);
  drawSets();
  showStep();
  later();
}
new ResizeObserver(redraw).observe(plane);
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redraw);

// "dark", "light", or undefined: as the system has it.
function setTheme(name) {
  if (name) document.documentElement.dataset.theme = name;
  else delete document.documentElement.dataset.theme;
  redraw();
}
window.addEventListener("hashchange", () => {
  if (location.hash !== toLink(state)) {
    followLink();
    commit();
  }
});

async function start() {
  found.core = await Core.load(await unpacked($("wasm").textContent.trim()));
}

async function begin() {
  makeButtons();
  if (window.self !== window.top) document.body.classList.add("embedded");
  $("theme").hidden = followTheme(setTheme);
  fitFrame();
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
  showControls();
  writeLink();
  update();
  requestAnimationFrame(() => {
    if (refused) say(refused);
    document.documentElement.dataset.ready = "1";
  });
}
begin();
