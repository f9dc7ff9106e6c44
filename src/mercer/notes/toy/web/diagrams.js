// Drawing what stands beside the plane: data sets, α against C, and the box of an SMO step.
import { Frame, fill, ink, line, lineColour, pen, shape, sized } from "./draw.js";

// Draws the points of a data set small.
export function drawThumbnail(canvas, points, task) {
  const { context, width, height } = sized(canvas);
  const colours = ink();
  const frame = new Frame({ left: -4.2, top: 3.15, width: 8.4, height: 6.3 }, width, height);
  for (const point of points) {
    shape(context, "circle", ...frame.place(point), points.length < 20 ? 2.4 : 1.6);
    fill(context, lineColour(task === "classify" ? point.c : 0, colours));
  }
}

// Draws α/C of every point against C, on a log scale, and a line at the current C.
export function drawPath(canvas, path, state, range) {
  const { context, width, height } = sized(canvas);
  const colours = ink();
  const [low, high] = range.map(Math.log10);
  const pad = { left: 28, right: 18, top: 8, bottom: 20 };
  const x = (C) => pad.left + ((Math.log10(C) - low) / (high - low)) * (width - pad.left - pad.right);
  const y = (share) => pad.top + (1 - share) * (height - pad.top - pad.bottom);
  context.font = "11px system-ui, sans-serif";
  context.fillStyle = colours.soft;
  pen(context, colours.line, 1);
  for (let e = Math.ceil(low); e <= high; ++e) {
    line(context, [x(10 ** e), y(0)], [x(10 ** e), y(1)]);
    context.fillText(e === 0 ? "1" : e === 1 ? "10" : `1e${e}`, x(10 ** e) - 8, height - 6);
  }
  context.fillText("C", 8, y(1) + 8);
  context.fillText("0", 8, y(0));
  state.points.forEach((point, i) => {
    pen(context, lineColour(point.c, colours, 0.75), 1.1);
    context.beginPath();
    for (const { from, to, betaFrom, betaTo } of path.segments) {
      // α is linear in C, so that α/C is curved on this scale.
      const pieces = 2 + Math.ceil(20 * Math.log10(to / from));
      for (let k = 0; k <= pieces; ++k) {
        const C = from * (to / from) ** (k / pieces);
        const beta = betaFrom[i] + ((C - from) / (to - from)) * (betaTo[i] - betaFrom[i]);
        context.lineTo(x(C), y(Math.abs(beta) / C));
      }
    }
    context.stroke();
  });
  pen(context, colours.accent, 2);
  line(context, [x(state.C), y(0)], [x(state.C), y(1)]);
  return { toC: (px) => 10 ** (low + ((px - pad.left) / (width - pad.left - pad.right)) * (high - low)) };
}

// Draws the box of the two α of a step: the line of the equality constraint, the start, the Newton point and the end.
export function drawBox(canvas, step, C, same) {
  const { context, width, height } = sized(canvas);
  const colours = ink();
  const pad = 24;
  const x = (a) => pad + (a / C) * (width - 2 * pad);
  const y = (a) => height - pad - (a / C) * (height - 2 * pad);
  context.font = "11px system-ui, sans-serif";
  pen(context, colours.soft, 1.5);
  context.strokeRect(x(0), y(C), x(C) - x(0), y(0) - y(C));
  context.fillStyle = colours.soft;
  context.fillText("α", width / 2 - 10, height - 8);
  context.fillText("i", width / 2 - 2, height - 5);
  context.fillText("α", 6, height / 2);
  context.fillText("j", 14, height / 2 + 3);
  context.fillText("0", x(0) - 10, y(0) + 12);
  context.fillText("C", x(C) - 4, y(0) + 14);
  context.fillText("C", x(0) - 14, y(C) + 4);
  if (!step) return;
  const [si, sj] = same.signs;
  const move = (t) => [x(step.alphaI + si * t), y(step.alphaJ - sj * t)];
  const room = Math.min(step.roomI, step.roomJ);
  const behind = Math.min(si > 0 ? step.alphaI : C - step.alphaI, sj > 0 ? C - step.alphaJ : step.alphaJ);
  pen(context, colours.line, 3);
  line(context, move(-behind), move(room));
  if (Number.isFinite(step.newton)) {
    const wish = move(Math.min(step.newton, room + 0.25 * C));
    pen(context, colours.soft, 1.5, [4, 4]);
    line(context, move(0), wish);
    pen(context, colours.soft, 1.5);
    shape(context, "diamond", ...wish, 4);
    context.stroke();
  }
  pen(context, colours.accent, 3);
  line(context, move(0), move(step.size));
  for (const [t, r] of [[0, 3], [step.size, 5]]) {
    shape(context, "circle", ...move(t), r);
    fill(context, colours.accent);
  }
}
