// What stands beside the plot: sliders, certificate, path, steps, legend and data sets.
import { drawBox, drawPath, drawThumbnail } from "./diagrams.js";
import { COLOURS, SHAPES, css, drawPlane, shapeMark } from "./draw.js";
import { MOST_CLASSES, RANGES, fromPoints, toPoints } from "./formats.js";
import { SETS } from "./sets.js";
import { hasSteps, isBinary, solveStep } from "./solve.js";
import { $, LOGARITHMIC, PATH_POINTS, PATH_RANGE, found, shownNow, state, ui } from "./state.js";

const NAMES = ["blue", "orange", "green", "pink"];
// Data sets are called as in the lecture notes; these say to a stranger what is to be seen.
const LABELS = { location: "two normals", "location and scale": "two spreads", cloud: "outliers", "three classes": "3 classes", "four classes": "4 classes" };

export const say = (text) => {
  if ($("message").textContent !== text) $("message").textContent = text;
};

export const told = (value) => {
  if (!Number.isFinite(value)) return value > 0 ? "∞" : value < 0 ? "−∞" : "–";
  const size = Math.abs(value);
  const text = size === 0 ? "0" : size >= 1e-3 && size < 1e7 ? String(Number(value.toPrecision(7))) : value.toExponential(2);
  return text.replace("-", "−").replace("e−", "e-").replace("e+", "e");
};

// Two digits, rounded up: what is said to be at most this is.
function atMost(value) {
  if (!(value > 0) || !Number.isFinite(value)) return told(value);
  const unit = 10 ** (Math.floor(Math.log10(value)) - 1);
  const up = Number((Math.ceil(value / unit) * unit).toPrecision(2));
  return up >= 1e-3 && up < 1e5 ? String(up) : up.toExponential(1).replace("e+", "e");
}

// --- certificate ------------------------------------------------------------------------------------------------------

const total = (name) => shownNow().parts.reduce((sum, part) => sum + part[name], 0);
const worst = (name) => shownNow().parts.reduce((most, part) => Math.max(most, part[name]), 0);
const count = (kind) => (shownNow().kind ?? []).filter((own) => own === kind).length;
// Whether there is an f; where no hard margin exists, there is none.
const hasMachine = () => found.step !== null || found.solution.grid !== null;

function certificate() {
  const { parts } = shownNow();
  if (!parts.length) return [];
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
  if (parts.length === 1 && hasMachine()) {
    const { b, energy } = parts[0];
    rows.push(["b", "b", b], ["norm", "‖w‖", Math.sqrt(energy)]);
    if (state.task === "classify") rows.push(["margin", "margin 1/‖w‖", 1 / Math.sqrt(energy)]);
  }
  rows.push(["free", "free support vectors", count(1)], ["bounded", "bounded support vectors", count(2)]);
  return rows;
}

// Returns a mark and the certificate in one sentence.
function proofInWords() {
  if (!found.solution.parts.length) return ["", state.task === "classify" ? "Add points of two classes" : "Add two points"];
  const gap = total("gap");
  if (found.step) return ["≈", `Step ${found.step.steps}: gap at most ${atMost(gap)}`];
  const open = found.solution.parts.find(({ verdict }) => verdict !== 1);
  if (open) return ["≈", open.verdict === 0 ? "No hard margin" : "A hard margin is neither found nor refuted"];
  return gap <= 1e-6 * Math.max(1, Math.abs(total("dual")))
    ? ["✓", `Optimal to within ${atMost(gap)}, proven`] : ["≈", `Optimum within ${atMost(gap)}, proven`];
}

function showCertificate() {
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
  const [mark, words] = proofInWords();
  $("proof").innerHTML = `<span class="mark${mark === "✓" ? "" : " open"}" aria-hidden="true">${mark}</span> ${words}`;
  $("proves").textContent = rows.length === 0
    ? "Add points of two classes, or two points for regression and novelty detection."
    : `The duality gap is the difference between the primal and the dual value, and no solution is better by more than it. `
      + `Computed from α alone in float64, with bounds on all rounding errors${shownNow().alongPath ? "; α is from the exact path in C" : ""}.`;
}

export function showNumbers() {
  showCertificate();
  const open = found.solution.parts.find(({ verdict }) => verdict !== 1);
  $("verdict").textContent = state.task !== "classify" || !state.hard || !found.solution.parts.length ? ""
    : !open ? "Separable (proven): the convex hulls of the classes are disjoint."
      : open.verdict === 0 ? "Not separable: the convex hulls of two classes meet, to float64 precision."
        : "Undecided: in float64 it is not clear whether the convex hulls are disjoint.";
  showControls();
}

// --- controls ---------------------------------------------------------------------------------------------------------

export function showControls() {
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
  $("C-means").textContent = state.task === "regress" ? "penalty of errors beyond ε" : "penalty of points inside the margin";
  const local = state.kernels.filter((name) => name === "rbf" || name === "laplacian").length;
  $("gamma-means").textContent = local === 0 ? "factor of the inner product"
    : state.kernels.includes("poly") ? "scale of the kernels" : "how local the kernel is";
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
  $("undo").disabled = !ui.canUndo;
  $("redo").disabled = !ui.canRedo;
  $("hint").hidden = ui.acted && state.points.length > 0;
}

export function makeButtons() {
  $("classes").innerHTML = COLOURS.slice(0, MOST_CLASSES).map((colour, c) =>
    `<button type="button" data-pen="${c}" aria-pressed="${c === 0}" title="Class ${c + 1}, ${NAMES[c]} ${SHAPES[c]} (${c + 1})"
      aria-label="Class ${c + 1}, ${NAMES[c]} ${SHAPES[c]}"><svg class="swatch" viewBox="-8 -8 16 16" aria-hidden="true">${shapeMark(SHAPES[c], 6, css(colour))}</svg><span>${c + 1}</span></button>`).join("");
  for (const name of Object.keys(SETS)) {
    const button = document.createElement("button");
    button.type = "button";
    button.dataset.set = name;
    button.title = `Data set "${name}"`;
    button.setAttribute("aria-pressed", "false");
    button.append(document.createElement("canvas"), LABELS[name] ?? name);
    button.firstChild.setAttribute("aria-hidden", "true");
    $("sets").append(button);
  }
  drawSets();
  showLegend();
}

export function drawSets() {
  for (const button of $("sets").children) {
    const { task, points } = SETS[button.dataset.set];
    drawThumbnail(button.firstChild, fromPoints(points), task);
  }
}

// Returns the name of the data set whose points are shown, unchanged; undefined if there is none.
export function knownSet() {
  const points = toPoints(state.points);
  return Object.keys(SETS).find((name) => SETS[name].points === points);
}

// --- below the plot ---------------------------------------------------------------------------------------------------

function summarise() {
  const n = state.points.length;
  const parts = [`${n} point${n === 1 ? "" : "s"}`];
  const classes = found.solution.classes.length;
  if (state.task === "classify") parts.push(`${classes} class${classes === 1 ? "" : "es"}`);
  if (found.solution.parts.length && !found.solution.grid) parts.push($("verdict").textContent.split(":")[0].toLowerCase());
  else if (found.solution.parts.length) {
    parts.push(`${count(1)} free and ${count(2)} bounded support vectors`);
    parts.push(`duality gap at most ${atMost(total("gap")).replace("-", "-\u2060")}`); // no line ends behind the minus
  }
  $("summary").textContent = `${parts.join(", ")}.`;
}

function showLegend() {
  const mark = (inner) => `<svg width="22" height="22" viewBox="-11 -11 22 22" aria-hidden="true">${inner}</svg>`;
  const dot = '<circle r="4" fill="currentColor"/>';
  const limit = { classify: "C", regress: "C", novelty: "1" }[state.task];
  const several = found.solution.pairs.length > 1;
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

export function showNotes() {
  summarise();
  showLegend();
  const known = knownSet();
  for (const button of $("sets").children) button.setAttribute("aria-pressed", String(button.dataset.set === known));
}

// --- the path ---------------------------------------------------------------------------------------------------------

let pathScale = null;

// Returns the C at a position of the picture in pixels; null if there is no picture.
export const pathC = (px) => (pathScale ? pathScale.toC(px) : null);

export function showPath() {
  const { path } = found;
  if (!$("path-panel").open) return;
  const usable = isBinary() && path;
  $("path").hidden = !usable;
  if (!usable) {
    $("path-text").textContent = state.points.length > PATH_POINTS
      ? `The path is drawn for up to ${PATH_POINTS} points.` : "The path is drawn for two classes and a finite C.";
    return;
  }
  pathScale = drawPath($("path"), path, state, PATH_RANGE);
  const breakpoints = Math.max(0, path.segments.length - 1);
  $("path-text").textContent = `${breakpoints} breakpoints; between them every α is linear in C. The height is α/C, so that bounded `
    + `support vectors are at the top. ${path.end === "converged" ? "" : "Rounding errors end the path early. "}Click to choose C.`;
}

// --- the steps --------------------------------------------------------------------------------------------------------

// The slider goes from 0, where α = 0, over the steps to the exact solution, one place behind the last step.
const atSolution = () => $("step").value === $("step").max;

// Runs the algorithm on the new solution, and shows the step that was shown before, or the solution.
export function followSteps() {
  const wasAtSolution = atSolution();
  found.trace = found.step = null;
  if (!$("trace-panel").open) return;
  if (hasSteps()) found.trace = found.core.trace(0, state.C, $("rule").value, 1e-3, 1000);
  const places = found.trace ? found.trace.steps.length + 1 : 0;
  $("step").max = String(places);
  if (wasAtSolution || Number($("step").value) > places) $("step").value = String(places);
  for (const id of ["step", "back", "play", "forward"]) $(id).disabled = !found.trace;
  $("box").hidden = !found.trace;
  takeStep();
}

function takeStep() {
  found.step = found.trace && !atSolution() ? solveStep(Number($("step").value)) : null;
  ui.pair = null;
  const at = Number($("step").value);
  if (found.step && at > 0) {
    const { i, j } = found.trace.steps[at - 1];
    ui.pair = [i, j];
  }
}

function stepInWords() {
  const { trace } = found;
  if (!trace) return "The steps are shown for two classes and a finite C.";
  const [at, last] = [Number($("step").value), trace.steps.length];
  if (atSolution()) {
    return `${trace.converged ? `From α = 0, ${last} steps come to a violation of at most 0.001.` : `Kept are the first ${last} steps from α = 0.`} `
      + "This is the exact solution. Press Play to see the border of every step.";
  }
  if (at === 0) return "The start: α = 0, so that f = 0 everywhere, and there is no border yet.";
  const step = trace.steps[at - 1];
  return `Points ${step.i + 1} and ${step.j + 1}: λ = ${told(step.size)}${step.size < step.newton
    ? `, clipped at the box from ${told(step.newton)}` : ""}. The dual value grows by ${told(step.gain)} to ${told(step.dual)}; violation ${told(step.violation)}.`;
}

// Draws the border of the step's α, and says what the step does.
export function showStep() {
  if (!$("trace-panel").open) return;
  const { trace } = found;
  const at = Number($("step").value);
  const step = trace && !atSolution() && at > 0 ? trace.steps[at - 1] : null;
  $("step-value").textContent = !trace ? "" : atSolution() ? "solution" : `${at} of ${trace.steps.length}`;
  $("step").setAttribute("aria-valuetext", $("step-value").textContent);
  $("step-text").textContent = stepInWords();
  if (!trace) return;
  const sign = (i) => (state.points[i].c === found.solution.pairs[0][0] ? 1 : -1);
  drawBox($("box"), step, state.C, { signs: step ? [sign(step.i), sign(step.j)] : [1, 1] });
}

export function goToStep(at) {
  ui.acted = true;
  $("step").value = String(at);
  takeStep();
  drawPlane($("plane"), state, shownNow(), ui);
  showStep();
  showNumbers();
  summarise();
}

let playing = 0;

function pause() {
  clearInterval(playing);
  playing = 0;
  $("play").textContent = "Play";
  $("summary").setAttribute("aria-live", "polite");
}

export function togglePlay() {
  if (playing) {
    pause();
    return;
  }
  if (atSolution()) goToStep(0);
  $("play").textContent = "Pause";
  $("summary").setAttribute("aria-live", "off"); // a screen reader reads where the reader stops
  const wait = Math.max(40, Math.min(400, 15000 / Number($("step").max))); // milliseconds; a long run takes 15 seconds
  playing = setInterval(() => {
    if (found.trace && !atSolution()) goToStep(Number($("step").value) + 1);
    if (!found.trace || atSolution()) pause();
  }, wait);
}
