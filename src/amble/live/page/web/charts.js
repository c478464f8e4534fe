// Small charts of the run's time: a line, a few ticks, and the moment that is shown.

import { clock, element, put, shape, tick, write } from "./draw.js";

const HEIGHT = 130;
const EDGE = { left: 52, right: 8, top: 8, bottom: 20 };

export class Chart {
  // `value(frame)` is the line; `text(value)` writes one number; with `log` the axis is logarithmic; a value that is `held`
  // until the next is drawn in steps
  constructor(box, title, value, text, { log = false, held = false } = {}) {
    Object.assign(this, { value, text, log, held });
    this.now = element("output");
    this.svg = shape("svg", { height: HEIGHT, role: "img", "aria-label": title });
    this.grid = this.svg.appendChild(shape("g", { class: "grid" }));
    this.line = this.svg.appendChild(shape("path", { class: "line" }));
    this.head = this.svg.appendChild(shape("path", { class: "head" }));
    box.append(element("figure", {}, element("figcaption", {}, title, " ", this.now), this.svg));
  }

  get width() { return this.svg.clientWidth || 300; }

  draw(width, frames, begin, end) {
    put(this.svg, "viewBox", `0 0 ${width} ${HEIGHT}`);
    const step = Math.max(1, Math.ceil(frames.length / width));
    const points = [];
    frames.forEach((frame, k) => {
      const v = this.value(frame);
      if (Number.isFinite(v) && (!this.log || v > 0) && (k % step === 0 || k === frames.length - 1)) points.push([frame.t, v]);
    });
    const scaled = (v) => (this.log ? Math.log10(v) : v);
    let low = Infinity;
    let high = -Infinity;
    for (const [, v] of points) { low = Math.min(low, scaled(v)); high = Math.max(high, scaled(v)); }
    if (low > high) [low, high] = [0, 1];
    if (!this.log && low > 0 && low < high / 2) low = 0; // a rate begins at zero
    if (high - low < 1e-9 * Math.abs(high) + 1e-300) [low, high] = this.log ? [low - 0.5, high + 0.5] : [Math.min(0, low), high || 1];
    const ticks = !points.length ? [] : this.log ? powers(low, high) : steps(low, high);
    this.x = (t) => EDGE.left + ((Math.min(t, end) - begin) / (end - begin || 1)) * (width - EDGE.left - EDGE.right);
    const y = (v) => HEIGHT - EDGE.bottom - ((v - low) / (high - low)) * (HEIGHT - EDGE.top - EDGE.bottom);
    this.grid.replaceChildren(...ticks.flatMap((at) => {
      const label = shape("text", { x: EDGE.left - 6, y: y(at), dy: ".32em", "text-anchor": "end" });
      label.textContent = tick(this.log ? 10 ** at : at, this.text);
      return [shape("path", { d: `M${EDGE.left} ${y(at)}H${width - EDGE.right}` }), label];
    }), ...[[begin, "start"], [end, "end"]].map(([t, anchor]) => {
      const label = shape("text", { x: this.x(t), y: HEIGHT - 5, "text-anchor": anchor });
      label.textContent = clock(t, end - begin < 10);
      return label;
    }));
    const onward = ([t, v]) => (this.held ? `H${this.x(t).toFixed(1)}V${y(scaled(v)).toFixed(1)}` : `L${this.x(t).toFixed(1)} ${y(scaled(v)).toFixed(1)}`);
    put(this.line, "d", points.length ? `M${this.x(points[0][0]).toFixed(1)} ${y(scaled(points[0][1])).toFixed(1)}${points.slice(1).map(onward).join("")}` : "");
  }

  // the moment that is shown
  mark(frame, t) {
    const v = this.value(frame);
    write(this.now, Number.isFinite(v) ? this.text(v) : "");
    if (this.x) put(this.head, "d", `M${this.x(t).toFixed(1)} ${EDGE.top}V${HEIGHT - EDGE.bottom}`);
  }
}

// the farthest apart of which two are seen
function steps(low, high) {
  const unit = 10 ** Math.floor(Math.log10((high - low) / 3));
  const ticks = (step) => {
    const first = Math.ceil(low / step - 1e-9);
    const last = Math.floor(high / step + 1e-9);
    return Array.from({ length: last - first + 1 }, (_, k) => (first + k) * step);
  };
  return [10, 5, 2, 1].map((k) => ticks(k * unit)).find((each) => each.length > 1) || [low, high];
}

function powers(low, high) {
  const first = Math.ceil(low - 1e-9);
  const last = Math.floor(high + 1e-9);
  const step = Math.max(1, Math.ceil((last - first) / 3));
  const ticks = [];
  for (let power = first; power <= last; power += step) ticks.push(power);
  if (ticks.length > 1) return ticks;
  const between = []; // less than two powers of ten: twice and five times as much
  for (let power = Math.floor(low); power <= high; power += 1) between.push(...[1, 2, 5].map((k) => power + Math.log10(k)));
  const seen = between.filter((at) => at >= low - 1e-9 && at <= high + 1e-9);
  return seen.length > 1 ? seen.slice(0, 4) : [low, high];
}
