// Text formats: LIBSVM, CSV, links and Python. All input is checked; invalid input is rejected with a message.

export const MOST_POINTS = 500;
export const MOST_CHARACTERS = 500000;
export const MOST_CLASSES = 4;
export const TASKS = ["classify", "regress", "novelty"];
export const KERNELS = ["linear", "poly", "rbf", "laplacian"];
// Smallest, largest and initial value of each parameter.
export const RANGES = {
  C: [1e-3, 1e5, 1], gamma: [1e-2, 1e2, 0.5], degree: [1, 8, 3], coef0: [0, 3, 1], epsilon: [0, 1.5, 0.2], nu: [0.01, 0.99, 0.2],
};
const FARTHEST = 1000;
const MOST_NAME = 60; // letters
const AXES = ["x", "y"]; // as a link calls their names

export class Refused extends Error {}

export const rounded = (value) => Math.round(value * 1000) / 1000;

function numberIn(text, where, farthest = FARTHEST) {
  const value = Number(text);
  if (String(text).trim() === "" || !Number.isFinite(value)) {
    throw new Refused(`${where}: "${String(text).slice(0, 30)}" is not a finite number.`);
  }
  if (Math.abs(value) > farthest) {
    throw new Refused(`${where}: ${value} is outside of ±${farthest}; scale the data first, for example with mercer scale.`);
  }
  return value;
}

function classesOf(labels) {
  const known = [...new Set(labels)].sort((a, b) => {
    const numbers = [Number(a), Number(b)];
    return numbers.some(Number.isNaN) ? (a < b ? -1 : 1) : numbers[1] - numbers[0];
  });
  if (known.length > MOST_CLASSES) {
    throw new Refused(`There are ${known.length} different labels; the page takes up to ${MOST_CLASSES} classes. `
      + "To predict numbers, choose Regression first.");
  }
  return labels.map((label) => known.indexOf(label));
}

// Reads LIBSVM text, or CSV with the label in the last column and an optional header: points, and the names of the axes.
export function parseData(text, task) {
  if (text.length > MOST_CHARACTERS) {
    throw new Refused(`This text has ${(text.length / 1e6).toFixed(1)} million characters; the page reads up to `
      + `${MOST_CHARACTERS / 1e6} million. mercer train reads files of any size.`);
  }
  const lines = text.split(/\r?\n/).map((line, i) => [line.trim(), i + 1]).filter(([line]) => line && !line.startsWith("#"));
  if (lines.length === 0) throw new Refused("There is no line of data.");
  const sparse = lines.some(([line]) => /(^|\s)\d+:/.test(line));
  const first = lines[0][0].split(/[,;\t]/);
  let names = null;
  if (!sparse && first.length > 1 && first.every((cell) => Number.isNaN(Number(cell)))) {
    names = first.length > 1 ? namesOf(first[0], first[1]) : null;
    lines.shift();
  }
  if (lines.length > MOST_POINTS) {
    throw new Refused(`There are ${lines.length} rows; the page takes up to ${MOST_POINTS}. mercer train takes any number.`);
  }
  const rows = lines.map(([line, number]) => (sparse ? sparseRow(line, number) : tableRow(line, number, task)));
  if (task === "regress") {
    const points = rows.map(({ x, label }, i) => {
      if (x.length > 1 && x[1] !== 0) throw new Refused(`Row ${i + 1} has two features; regression on this page takes one.`);
      return { x: x[0], y: numberIn(label, `Row ${i + 1}, target`), c: 0 };
    });
    return { points, names };
  }
  const classes = task === "novelty" ? rows.map(() => 0) : classesOf(rows.map(({ label }) => String(label ?? 0)));
  return { points: rows.map(({ x }, i) => ({ x: x[0], y: x[1] ?? 0, c: classes[i] })), names };
}

// Names of the axes; null for those that this page gives them itself.
function namesOf(x, y) {
  const names = [x, y].map((name) => name.trim().replace(/^"(.*)"$/, "$1").slice(0, MOST_NAME));
  return ["x1,x2", "x,target"].includes(names.join()) ? null : names;
}

function sparseRow(line, number) {
  const [label, ...pairs] = line.split(/\s+/);
  const x = [0, 0];
  for (const pair of pairs) {
    const found = /^(\d+):(.+)$/.exec(pair);
    if (!found) throw new Refused(`Line ${number}: "${pair.slice(0, 30)}" is not of the form index:value.`);
    const index = Number(found[1]);
    const value = numberIn(found[2], `Line ${number}`);
    if (index > 2 && value !== 0) throw new Refused(`Line ${number} has feature ${index}; the page has two features.`);
    if (index < 1) throw new Refused(`Line ${number}: feature numbers start at 1.`);
    if (index <= 2) x[index - 1] = value;
  }
  return { x, label: label.replace(/^\+/, "") };
}

function tableRow(line, number, task) {
  const cells = line.split(/[,;\t]/).map((cell) => cell.trim());
  const wanted = { classify: [2, 3], regress: [2, 2], novelty: [1, 3] }[task];
  if (cells.length < wanted[0] || cells.length > wanted[1]) {
    throw new Refused(`Line ${number} has ${cells.length} columns; a row needs ${task === "regress" ? "x and a target" : "x1, x2 and a label"}.`);
  }
  if (task === "novelty" && cells.length < 3) return { x: cells.map((cell) => numberIn(cell, `Line ${number}`)), label: "0" };
  const label = cells.pop();
  return { x: cells.map((cell) => numberIn(cell, `Line ${number}`)), label };
}

export const toLibsvm = (state) =>
  state.points.map(({ x, y, c }) => (state.task === "regress" ? `${y} 1:${x}` : `${labelOf(c)} 1:${x} 2:${y}`)).join("\n") + "\n";

function header({ task, names }) {
  const plain = names?.every((name) => /^[^",;\t]+$/.test(name) && Number.isNaN(Number(name)));
  const [x, y] = plain ? names : task === "regress" ? ["x", "target"] : ["x1", "x2"];
  return task === "regress" ? `${x},${y}\n` : `${x},${y},label\n`;
}

export const toCsv = (state) =>
  header(state)
  + state.points.map(({ x, y, c }) => (state.task === "regress" ? `${x},${y}` : `${x},${y},${labelOf(c)}`)).join("\n") + "\n";

// Larger labels come first, so that the text is read back with the same classes.
const labelOf = (c) => MOST_CLASSES - c;

export const toPoints = (points) => points.map(({ x, y, c }) => `${rounded(x)},${rounded(y)},${c}`).join(";");

export function fromPoints(text) {
  if (!text) return [];
  const parts = text.split(";");
  if (parts.length > MOST_POINTS) throw new Refused(`The link has ${parts.length} points; the page takes up to ${MOST_POINTS}.`);
  return parts.map((part, i) => {
    const [x, y, c = "0"] = part.split(",");
    const kind = Number(c);
    if (!Number.isInteger(kind) || kind < 0 || kind >= MOST_CLASSES) throw new Refused(`Point ${i + 1} of the link has the unknown class "${c.slice(0, 20)}".`);
    return { x: numberIn(x ?? "", `Point ${i + 1} of the link`), y: numberIn(y ?? "", `Point ${i + 1} of the link`), c: kind };
  });
}

export function toLink(state) {
  const out = new URLSearchParams({ task: state.task, kernel: state.kernels.join("+") });
  for (const name of Object.keys(RANGES)) out.set(name, String(state[name]));
  if (state.hard) out.set("hard", "1");
  if (state.names) state.names.forEach((name, i) => out.set(AXES[i], name));
  out.set("points", toPoints(state.points));
  return `#${out.toString().replaceAll("+", "%20").replaceAll("%2C", ",").replaceAll("%3B", ";").replaceAll("%2B", "+")}`;
}

// Returns the settings in a link; settings that it does not mention stay unchanged.
export function fromLink(hash) {
  if (hash.length > MOST_CHARACTERS) throw new Refused("This link is too long.");
  const given = new URLSearchParams(hash.replace(/^#/, "").replaceAll("+", "%2B"));
  const out = {};
  if (given.has("task")) {
    if (!TASKS.includes(given.get("task"))) throw new Refused(`The link has the unknown task "${given.get("task").slice(0, 30)}"; the tasks are ${TASKS.join(", ")}.`);
    out.task = given.get("task");
  }
  if (given.has("kernel")) {
    const kernels = given.get("kernel").split("+");
    const unknown = kernels.find((kernel) => !KERNELS.includes(kernel));
    if (unknown !== undefined) throw new Refused(`The link has the unknown kernel "${unknown.slice(0, 30)}"; the kernels are ${KERNELS.join(", ")}.`);
    out.kernels = [...new Set(kernels)];
  }
  for (const [name, [low, high]] of Object.entries(RANGES)) {
    if (!given.has(name)) continue;
    const value = numberIn(given.get(name), `${name} in the link`, Infinity); // limited by the range of the slider
    if (value < low || value > high) throw new Refused(`${name}=${value} in the link is outside of ${low} to ${high}.`);
    out[name] = name === "degree" ? Math.round(value) : value;
  }
  if (given.has("hard")) out.hard = given.get("hard") === "1";
  if (AXES.every((axis) => given.has(axis))) out.names = AXES.map((axis) => given.get(axis).slice(0, MOST_NAME));
  if (given.has("points")) out.points = fromPoints(given.get("points"));
  for (const flag of ["open", "theme", "set"]) if (given.has(flag)) out[flag] = given.get(flag);
  return out;
}

const PYTHON = {
  linear: () => "kernels.Linear()",
  poly: (s) => `kernels.Polynomial(degree=${s.degree}, gamma=${s.gamma}, coef0=${s.coef0})`,
  rbf: (s) => `kernels.Gaussian(gamma=${s.gamma})`,
  laplacian: (s) => `kernels.Laplacian(gamma=${s.gamma})`,
};

export function toPython(state) {
  const kernel = state.kernels.map((name) => PYTHON[name](state)).join(" + ");
  const regress = state.task === "regress";
  const name = { classify: "SVC", regress: "SVR", novelty: "OneClassSVM" }[state.task];
  const rest = {
    classify: state.hard ? 'C=float("inf")' : `C=${state.C}`,
    regress: `C=${state.C}, epsilon=${state.epsilon}`,
    novelty: `nu=${state.nu}`,
  }[state.task];
  const X = state.points.map(({ x, y }) => (regress ? `[${x}]` : `[${x}, ${y}]`)).join(", ");
  const classes = [...new Set(state.points.map(({ c }) => c))].sort();
  // Of two classes the first is +1, as on the page, so that f and b have the same sign.
  const labelled = classes.length === 2 ? ({ c }) => (c === classes[0] ? 1 : -1) : ({ c }) => c;
  const y = state.points.map(regress ? (point) => point.y : labelled).join(", ");
  return [
    `from mercer import ${name}, kernels`, "",
    `X = [${X}]`,
    ...(state.task === "novelty" ? [] : [`y = [${y}]`]),
    `model = ${name}(kernel=${kernel}, ${rest}, tol=1e-9)`,
    `model.fit(X${state.task === "novelty" ? "" : ", y"})`,
    "print(model.certificate_)", "",
  ].join("\n");
}
