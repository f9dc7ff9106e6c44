// Drawing the plane: regions, margins, points and support vectors.

// Okabe and Ito's colours, distinguishable with every kind of colour vision; each class also has its own shape.
export const COLOURS = [[0, 114, 178], [213, 94, 0], [0, 158, 115], [204, 121, 167]];
export const SHAPES = ["circle", "square", "triangle", "diamond"];
export const css = (colour, alpha = 1) => `rgba(${colour.join(",")},${alpha})`;
// The colour of lines of a class, lighter on a dark page.
export const lineColour = (c, colours, alpha = 1) =>
  css(COLOURS[c].map((value) => Math.round(value + (255 - value) * colours.lighter)), alpha);

export const GRID = 200;

// Sizes a canvas in CSS pixels at the resolution of the screen.
export function sized(canvas) {
  const ratio = Math.min(window.devicePixelRatio || 1, 2);
  const { width, height } = canvas.getBoundingClientRect();
  const [w, h] = [Math.max(1, Math.round(width * ratio)), Math.max(1, Math.round(height * ratio))];
  if (canvas.width !== w || canvas.height !== h) [canvas.width, canvas.height] = [w, h];
  const context = canvas.getContext("2d");
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  context.clearRect(0, 0, width, height);
  return { context, width, height };
}

export function ink() {
  const style = getComputedStyle(document.documentElement);
  const value = (name) => style.getPropertyValue(name).trim();
  return { text: value("--ink"), soft: value("--soft"), line: value("--line"), card: value("--card"), accent: value("--accent"), edge: value("--edge"), lighter: Number(value("--lighter")) };
}

export class Frame {
  constructor(view, width, height) {
    Object.assign(this, { view, width, height });
  }

  x(value) { return ((value - this.view.left) / this.view.width) * this.width; }
  y(value) { return ((this.view.top - value) / this.view.height) * this.height; }
  place({ x, y }) { return [this.x(x), this.y(y)]; }
  back(px, py) {
    return { x: this.view.left + (px / this.width) * this.view.width, y: this.view.top - (py / this.height) * this.view.height };
  }
}

// Sets the style of the following lines.
export function pen(context, colour, width, dash = []) {
  context.strokeStyle = colour;
  context.lineWidth = width;
  context.setLineDash(dash);
}

export function fill(context, colour) {
  context.fillStyle = colour;
  context.fill();
}

// Draws a path through positions in pixels.
function through(context, places, closed = false) {
  context.beginPath();
  for (const place of places) context.lineTo(...place);
  if (closed) context.closePath();
}

export function line(context, ...places) {
  through(context, places);
  context.stroke();
}

const CORNERS = {
  square: [[-0.9, -0.9], [0.9, -0.9], [0.9, 0.9], [-0.9, 0.9]],
  triangle: [[0, -1.25], [1.1, 0.8], [-1.1, 0.8]],
  diamond: [[0, -1.3], [1.1, 0], [0, 1.3], [-1.1, 0]],
};

export function shape(context, kind, x, y, r) {
  if (kind !== "circle") {
    through(context, CORNERS[kind].map(([a, b]) => [x + a * r, y + b * r]), true);
    return;
  }
  context.beginPath();
  context.arc(x, y, r, 0, 2 * Math.PI);
}

// Returns the same shape as SVG.
export function shapeMark(kind, r, colour) {
  if (kind === "circle") return `<circle r="${r}" fill="${colour}"/>`;
  return `<polygon points="${CORNERS[kind].map(([a, b]) => `${a * r},${b * r}`).join(" ")}" fill="${colour}"/>`;
}

// Finds the predicted class at each grid point, by votes of the pairs, the first class in a tie, as `predict` does; and
// its lead.
function winners(grid, pairs, classes) {
  const size = GRID * GRID;
  const best = new Uint8Array(size);
  const lead = new Float32Array(size);
  const votes = new Uint8Array(4);
  for (let i = 0; i < size; ++i) {
    votes.fill(0);
    pairs.forEach(([a, b], k) => { votes[grid[k * size + i] >= 0 ? a : b] += 1; });
    let winner = classes[0];
    for (const c of classes) if (votes[c] > votes[winner]) winner = c;
    let least = Infinity;
    pairs.forEach(([a, b], k) => {
      if (a === winner || b === winner) least = Math.min(least, Math.abs(grid[k * size + i]));
    });
    best[i] = winner;
    lead[i] = least;
  }
  return { best, lead };
}

const buffer = document.createElement("canvas");
buffer.width = buffer.height = GRID;

function paint(context, frame, colourAt) {
  const own = buffer.getContext("2d");
  const image = own.createImageData(GRID, GRID);
  for (let i = 0; i < GRID * GRID; ++i) colourAt(i, image.data, 4 * i);
  own.putImageData(image, 0, 0);
  // The outermost grid points lie on the edges of the view.
  const [w, h] = [frame.width / (GRID - 1), frame.height / (GRID - 1)];
  context.imageSmoothingEnabled = true;
  context.drawImage(buffer, -w / 2, -h / 2, frame.width + w, frame.height + h);
}

// Finds the lines on which a grid of values equals `level`, by marching squares. Segments are chained, for dashed lines.
function contour(context, frame, grid, level) {
  const [w, h] = [frame.width / (GRID - 1), frame.height / (GRID - 1)];
  const next = new Map(); // from each crossed edge of the grid to the one or two edges that it is joined with
  const place = new Map();
  const join = (a, b) => {
    if (next.has(a)) next.get(a).push(b);
    else next.set(a, [b]);
  };
  for (let r = 0; r + 1 < GRID; ++r) {
    for (let c = 0; c + 1 < GRID; ++c) {
      const i = r * GRID + c;
      const [a, b, d, e] = [grid[i] - level, grid[i + 1] - level, grid[i + GRID + 1] - level, grid[i + GRID] - level];
      const above = (a > 0) + (b > 0) + (d > 0) + (e > 0);
      if (above === 0 || above === 4) continue;
      const cell = 2 * i; // number of an edge: twice that of its first corner, plus 1 if it goes down
      const cuts = [];
      const cut = (edge, x, y) => {
        place.set(edge, [x * w, y * h]);
        cuts.push(edge);
      };
      if (a > 0 !== b > 0) cut(cell, c + a / (a - b), r);
      if (b > 0 !== d > 0) cut(cell + 3, c + 1, r + b / (b - d));
      if (e > 0 !== d > 0) cut(cell + 2 * GRID, c + e / (e - d), r + 1);
      if (a > 0 !== e > 0) cut(cell + 1, c, r + a / (a - e));
      for (let k = 0; k + 1 < cuts.length; k += 2) {
        join(cuts[k], cuts[k + 1]);
        join(cuts[k + 1], cuts[k]);
      }
    }
  }
  context.beginPath();
  const follow = (from) => {
    let at = from;
    context.moveTo(...place.get(at));
    for (;;) {
      const to = next.get(at)?.pop();
      if (to === undefined) return;
      const back = next.get(to);
      back.splice(back.indexOf(at), 1);
      context.lineTo(...place.get(to));
      at = to;
    }
  };
  for (const [edge, joined] of next) if (joined.length === 1) follow(edge); // lines that end at the border
  for (const [edge, joined] of next) while (joined.length) follow(edge); // closed lines
  context.stroke();
}

// Finds the lines between grid points with different labels; `share` is the position of the line between two of them.
function borders(context, frame, labels, share) {
  const [w, h] = [frame.width / (GRID - 1), frame.height / (GRID - 1)];
  context.beginPath();
  for (let r = 0; r + 1 < GRID; ++r) {
    for (let c = 0; c + 1 < GRID; ++c) {
      const i = r * GRID + c;
      const cuts = [];
      if (labels[i] !== labels[i + 1]) cuts.push([c + share(i, i + 1), r]);
      if (labels[i + 1] !== labels[i + GRID + 1]) cuts.push([c + 1, r + share(i + 1, i + GRID + 1)]);
      if (labels[i + GRID] !== labels[i + GRID + 1]) cuts.push([c + share(i + GRID, i + GRID + 1), r + 1]);
      if (labels[i] !== labels[i + GRID]) cuts.push([c, r + share(i, i + GRID)]);
      if (cuts.length === 2) {
        context.moveTo(cuts[0][0] * w, cuts[0][1] * h);
        context.lineTo(cuts[1][0] * w, cuts[1][1] * h);
      } else if (cuts.length > 2) { // three or four regions meet
        const middle = [0, 1].map((k) => cuts.reduce((sum, cut) => sum + cut[k], 0) / cuts.length);
        for (const cut of cuts) {
          context.moveTo(cut[0] * w, cut[1] * h);
          context.lineTo(middle[0] * w, middle[1] * h);
        }
      }
    }
  }
  context.stroke();
}

const shade = (f) => 0.1 + 0.34 * Math.min(1, Math.abs(f) / 2);

function paintClasses(context, frame, shown, colours) {
  const { grid, pairs, classes } = shown;
  if (pairs.length === 0) return;
  if (pairs.length === 1) {
    const [a, b] = pairs[0];
    paint(context, frame, (i, data, at) => {
      [data[at], data[at + 1], data[at + 2]] = COLOURS[grid[i] >= 0 ? a : b];
      data[at + 3] = 255 * shade(grid[i]);
    });
    for (const [level, c] of [[1, a], [-1, b]]) {
      pen(context, lineColour(c, colours), 1.6, [7, 5]);
      contour(context, frame, grid, level);
    }
    pen(context, colours.text, 2.4);
    contour(context, frame, grid, 0);
    return;
  }
  const { best, lead } = winners(grid, pairs, classes);
  paint(context, frame, (i, data, at) => {
    [data[at], data[at + 1], data[at + 2]] = COLOURS[best[i]];
    data[at + 3] = 255 * shade(lead[i]);
  });
  // Where the predicted class changes, the f of a pair changes its sign: that of the two classes, or of another pair whose
  // vote breaks a tie.
  pen(context, colours.text, 2);
  const size = GRID * GRID;
  const share = (i, j) => {
    const own = pairs.findIndex(([a, b]) => (a === best[i] && b === best[j]) || (a === best[j] && b === best[i]));
    const changes = (k) => grid[k * size + i] >= 0 !== grid[k * size + j] >= 0;
    const k = changes(own) ? own : pairs.findIndex((_, other) => changes(other));
    return grid[k * size + i] / (grid[k * size + i] - grid[k * size + j]);
  };
  borders(context, frame, best, share);
}

function paintNovelty(context, frame, { grid }, colours) {
  let most = 0;
  for (const f of grid) most = Math.max(most, Math.abs(f));
  paint(context, frame, (i, data, at) => {
    [data[at], data[at + 1], data[at + 2]] = grid[i] >= 0 ? COLOURS[0] : [128, 128, 128];
    data[at + 3] = 255 * (0.06 + 0.4 * Math.min(1, Math.abs(grid[i]) / (most || 1)));
  });
  pen(context, colours.text, 2.4);
  contour(context, frame, grid, 0);
}

function paintTube(context, frame, { grid, columns }, epsilon, colours) {
  const shifted = (shift) => Array.from(grid.subarray(0, columns), (f, i) =>
    [(i / (columns - 1)) * frame.width, Math.max(-1e4, Math.min(1e4, frame.y(f + shift)))]);
  const [above, below] = [shifted(epsilon), shifted(-epsilon)];
  through(context, [...above, ...[...below].reverse()]);
  fill(context, css(COLOURS[0], 0.16));
  pen(context, lineColour(0, colours), 1.2, [6, 5]);
  line(context, ...above);
  line(context, ...below);
  pen(context, colours.text, 2.6);
  line(context, ...shifted(0));
}

// Follows the gradient of f from a point until f equals `goal`: the line that shows its slack.
function wayTo(goal, shown, frame, point) {
  const { grid } = shown;
  const at = (x, y) => {
    const c = Math.min(GRID - 1.001, Math.max(0, (frame.x(x) / frame.width) * (GRID - 1)));
    const r = Math.min(GRID - 1.001, Math.max(0, (frame.y(y) / frame.height) * (GRID - 1)));
    const [i, u, v] = [Math.floor(r) * GRID + Math.floor(c), c % 1, r % 1];
    return (1 - v) * ((1 - u) * grid[i] + u * grid[i + 1]) + v * ((1 - u) * grid[i + GRID] + u * grid[i + GRID + 1]);
  };
  let { x, y } = point;
  const step = frame.view.width / 80;
  for (let k = 0; k < 12; ++k) {
    const f = at(x, y);
    const [dx, dy] = [(at(x + step, y) - at(x - step, y)) / (2 * step), (at(x, y + step) - at(x, y - step)) / (2 * step)];
    const square = dx * dx + dy * dy;
    if (Math.abs(goal - f) < 0.01 || square < 1e-9) break;
    const size = Math.min(1, step * 3 / (Math.abs(goal - f) / Math.sqrt(square)));
    x += size * ((goal - f) / square) * dx;
    y += size * ((goal - f) / square) * dy;
  }
  return { x, y };
}

function whiskers(context, frame, state, shown, colours) {
  pen(context, colours.soft, marks(frame, state.points.length).slack);
  context.beginPath();
  state.points.forEach((point, i) => {
    if (!(shown.slack[i] > 1e-6)) return;
    let end = null;
    if (state.task === "regress") {
      const f = shown.parts[0].f[i];
      end = { x: point.x, y: f + Math.sign(point.y - f) * state.epsilon };
    } else if (shown.pairs.length === 1 || state.task === "novelty") {
      const goal = state.task === "novelty" ? 0 : point.c === shown.pairs[0][0] ? 1 : -1;
      end = wayTo(goal, shown, frame, point);
    }
    if (!end) return;
    context.moveTo(...frame.place(point));
    context.lineTo(...frame.place(end));
  });
  context.stroke();
}

// Returns the corners of the convex hull of points (Andrew's monotone chain).
export function convexHull(points) {
  const sorted = [...points].sort((a, b) => a.x - b.x || a.y - b.y);
  const turn = (o, a, b) => (a.x - o.x) * (b.y - o.y) - (a.y - o.y) * (b.x - o.x);
  const half = (list) => {
    const out = [];
    for (const p of list) {
      while (out.length > 1 && turn(out.at(-2), out.at(-1), p) <= 0) out.pop();
      out.push(p);
    }
    return out.slice(0, -1);
  };
  return sorted.length < 3 ? sorted : [...half(sorted), ...half(sorted.reverse())];
}

// Draws the convex hulls, which lie in the plane for a linear kernel only.
function hulls(context, frame, state, shown) {
  if (!shown.hull || state.kernels.join() !== "linear" || shown.pairs.length !== 1) return;
  const nearest = [];
  for (const [c, sign] of [[shown.pairs[0][0], 1], [shown.pairs[0][1], -1]]) {
    const own = convexHull(state.points.filter((point) => point.c === c));
    through(context, own.map((p) => frame.place(p)), true);
    fill(context, css(COLOURS[c], 0.16));
    pen(context, css(COLOURS[c]), 1.2);
    context.stroke();
    const at = { x: 0, y: 0 };
    shown.hull.forEach((weight, i) => {
      if (weight * sign <= 0) return;
      at.x += Math.abs(weight) * state.points[i].x;
      at.y += Math.abs(weight) * state.points[i].y;
    });
    nearest.push(frame.place(at));
  }
  pen(context, css([120, 120, 120]), 2);
  line(context, ...nearest);
  for (const place of nearest) {
    shape(context, "diamond", ...place, 5);
    fill(context, css([120, 120, 120]));
  }
}

// Writes words in the plot that can be read on every shade.
function words(context, text, x, y, colours) {
  pen(context, colours.card, 4);
  context.lineJoin = "round";
  context.strokeText(text, x, y);
  context.fillText(text, x, y);
}

const MOST_LETTERS = 30;
const cut = (name) => (name.length > MOST_LETTERS ? `${name.slice(0, MOST_LETTERS - 1)}…` : name);

function axes(context, frame, state, colours) {
  context.font = "11px system-ui, sans-serif";
  context.fillStyle = colours.soft;
  const step = 10 ** Math.floor(Math.log10(frame.view.width / 4));
  const unit = frame.view.width / step > 10 ? 2 * step : step;
  const round = (value) => String(Number(value.toPrecision(6))).replace("-", "−");
  for (let v = Math.ceil((frame.view.left + 0.1 * unit) / unit) * unit; v <= frame.view.left + frame.view.width; v += unit) {
    context.fillText(round(v), frame.x(v) + 3, frame.height - 4);
  }
  for (let v = Math.ceil((frame.view.top - frame.view.height + 0.1 * unit) / unit) * unit; v < frame.view.top - 0.06 * frame.view.height; v += unit) {
    context.fillText(round(v), 4, frame.y(v) - 3);
  }
}

function axisNames(context, frame, state, colours) {
  const [across, up] = state.names ?? (state.task === "regress" ? ["x", "y"] : ["x₁", "x₂"]);
  context.font = "13px system-ui, sans-serif";
  context.fillStyle = colours.text;
  context.textAlign = "right";
  words(context, `${cut(across)} →`, frame.width - 6, frame.height - 18, colours);
  context.textAlign = "left";
  words(context, `↑ ${cut(up)}`, 6, 16, colours);
}

// Returns the sizes of points and rings: smaller where there are many in a small plot.
function marks(frame, n) {
  const point = Math.max(2.6, Math.min(5, 0.1 * Math.sqrt((frame.width * frame.height) / Math.max(1, n))));
  const many = point < 4.5;
  return { point, ring: point + (many ? 2.4 : 5), line: many ? 1.3 : 2.2, thin: many ? 0.6 : 1, edge: many ? 0.7 : 1.2, slack: many ? 0.6 : 1.3 };
}

function drawPoints(context, frame, state, shown, ui, colours) {
  const size = marks(frame, state.points.length);
  const colourOf = ({ c }) => COLOURS[state.task === "classify" ? c : 0];
  const places = state.points.map((point) => frame.place(point));
  // Discs of bounded support vectors, rings of free ones, and then all points, so that no point is hidden by a ring.
  for (const kind of shown.kind ? [2, 1] : []) {
    state.points.forEach((point, i) => {
      if (shown.kind[i] !== kind) return;
      shape(context, "circle", ...places[i], size.ring);
      if (kind === 2) fill(context, css(colourOf(point), 0.35));
      pen(context, colours.text, kind === 1 ? size.line : size.thin);
      context.stroke();
    });
  }
  state.points.forEach((point, i) => {
    shape(context, state.task === "classify" ? SHAPES[point.c] : "circle", ...places[i], size.point);
    fill(context, css(colourOf(point)));
    pen(context, colours.edge, size.edge);
    context.stroke();
    if (!ui.selected.has(i)) return;
    pen(context, colours.accent, 2, [3, 3]);
    context.strokeRect(places[i][0] - 12, places[i][1] - 12, 24, 24);
  });
}

export function drawPlane(canvas, state, shown, ui) {
  const { context, width, height } = sized(canvas);
  const frame = new Frame(state.view, width, height);
  const colours = ink();
  if (shown.grid) {
    if (state.task === "classify") paintClasses(context, frame, shown, colours);
    else if (state.task === "novelty") paintNovelty(context, frame, shown, colours);
    else paintTube(context, frame, shown, state.epsilon, colours);
  }
  hulls(context, frame, state, shown);
  axes(context, frame, state, colours);
  if (shown.grid) whiskers(context, frame, state, shown, colours);
  drawPoints(context, frame, state, shown, ui, colours);
  axisNames(context, frame, state, colours);
  if (ui.pair) {
    const both = ui.pair.map((i) => frame.place(state.points[i]));
    pen(context, colours.accent, 3);
    line(context, ...both);
    for (const place of both) {
      shape(context, "circle", ...place, 13);
      context.stroke();
    }
  }
  if (ui.band) {
    const [[x0, y0], [x1, y1]] = [frame.place(ui.band.from), frame.place(ui.band.to)];
    pen(context, colours.accent, 1.5, [5, 4]);
    context.strokeRect(x0, y0, x1 - x0, y1 - y0);
  }
  if (ui.cursor) {
    const [x, y] = frame.place(ui.cursor);
    pen(context, colours.accent, 2);
    line(context, [x - 9, y], [x + 9, y]);
    line(context, [x, y - 9], [x, y + 9]);
  }
}
