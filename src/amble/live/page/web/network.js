// The network: agents as nodes whose shape and colour say how they are, and tokens as numbered discs.

import { put, shape, write } from "./draw.js";

const CIRCLE_FROM = 150; // as many agents stand in a circle
const NAMES_MAX = 30; // more names would cover each other; a pointer on a node shows its name
const ROUNDS = 300;
// a shape and a sign for each state, so that colour is never needed to tell them apart
export const LOOKS = {
  unstarted: ["circle", ""], joining: ["circle", "+"], up: ["circle", ""], waiting: ["circle", "…"],
  leaving: ["diamond", "–"], left: ["diamond", ""], ending: ["circle", "✓"], ended: ["circle", "✓"],
  refused: ["square", "!"], down: ["square", "✕"], unknown: ["circle", "?"],
};
const OUTLINES = {
  circle: "M-1 0A1 1 0 1 1 1 0A1 1 0 1 1 -1 0Z", square: "M-.9-.9H.9V.9H-.9Z", diamond: "M0-1.2L1.2 0L0 1.2L-1.2 0Z",
};

export function outline(state, radius) {
  return shape("path", { d: OUTLINES[LOOKS[state][0]], transform: `scale(${radius})`, "vector-effect": "non-scaling-stroke" });
}

// Places between 0 and 1: nodes push each other away and links pull (Fruchterman and Reingold), from a circle and without
// chance, so that a network always looks the same. Those in `fixed` stay where they are.
export function layout(count, links, fixed = []) {
  const angle = (k) => (2 * Math.PI * k) / count - Math.PI / 2;
  const at = Array.from({ length: count }, (_, k) => fixed[k]?.slice() || [Math.cos(angle(k)), Math.sin(angle(k))]);
  if (count > CIRCLE_FROM || count < 4) return at;
  const ideal = 1.6 / Math.sqrt(count);
  const pull = Math.min(1, (1.5 * count) / links.length); // many links would pull all nodes into one place
  for (let round = 0; round < ROUNDS; round += 1) {
    const push = at.map(() => [0, 0]);
    const move = (i, j, force) => {
      const x = at[i][0] - at[j][0];
      const y = at[i][1] - at[j][1] || 1e-6;
      const far = Math.hypot(x, y) || 1e-6;
      const by = force(far) / far;
      push[i][0] += x * by; push[i][1] += y * by; push[j][0] -= x * by; push[j][1] -= y * by;
    };
    for (let i = 0; i < count; i += 1) for (let j = 0; j < i; j += 1) move(i, j, (far) => (ideal * ideal) / far);
    for (const [i, j] of links) move(i, j, (far) => (-pull * far * far) / ideal);
    const most = 0.15 * (1 - round / ROUNDS);
    at.forEach((each, k) => {
      if (fixed[k]) return;
      const far = Math.hypot(...push[k]) || 1;
      each[0] += (push[k][0] / far) * Math.min(far, most);
      each[1] += (push[k][1] / far) * Math.min(far, most);
    });
  }
  return at;
}

// Nodes that stand so near that one would cover another's name move apart, up and down, within the picture.
export function spread(points, wide, high, edge, height) {
  const near = (a, b) => Math.abs(a[0] - b[0]) < wide && Math.abs(a[1] - b[1]) < high - 0.5;
  for (let round = 0; round < 50; round += 1) {
    let moved = false;
    points.forEach((a, i) => points.slice(0, i).filter((b) => near(a, b)).forEach((b) => {
      const [above, below] = a[1] < b[1] ? [a, b] : [b, a];
      const by = (high - (below[1] - above[1])) / 2;
      above[1] = Math.max(edge, above[1] - by);
      below[1] = Math.min(height - edge, below[1] + by);
      moved = true;
    }));
    if (!moved) return;
  }
}

export class Network {
  constructor(svg, choose) {
    this.svg = svg;
    this.choose = choose;
    this.links = svg.appendChild(shape("path", { class: "link" }));
    this.cut = svg.appendChild(shape("path", { class: "link cut" }));
    this.nodes = [];
    this.tokens = [];
    this.at = [];
    this.drawn = "";
  }

  // agents and links as they are by now; called again when one comes, and when the page has another width
  prepare(about) {
    if (this.at.length !== about.agents.length) this.at = layout(about.agents.length, about.links, this.at);
    this.about = about;
    const width = this.svg.clientWidth || 600;
    const height = Math.min(460, Math.max(300, width * 0.72));
    put(this.svg, "viewBox", `0 0 ${width} ${height}`);
    put(this.svg, "height", height);
    this.radius = Math.max(4, Math.min(15, 55 / Math.sqrt(about.agents.length)));
    const named = about.agents.length <= NAMES_MAX;
    const edge = [named ? 46 : this.radius + 8, this.radius + 26];
    const ends = [0, 1].map((axis) => [Math.min(...this.at.map((p) => p[axis])), Math.max(...this.at.map((p) => p[axis]))]);
    const scale = (value, axis, length) => {
      const [low, high] = ends[axis];
      return high === low ? length / 2 : edge[axis] + ((value - low) / (high - low)) * (length - 2 * edge[axis]);
    };
    this.points = this.at.map(([x, y]) => [scale(x, 0, width), scale(y, 1, height)]);
    if (named) spread(this.points, 48, 2 * this.radius + 20, edge[1], height);
    about.agents.forEach((name, k) => this.node(name, k, named));
    while (this.tokens.length < about.tokens) this.token(this.tokens.length);
    this.tokens.forEach((token) => this.svg.append(token)); // above all nodes
    this.drawn = "";
  }

  node(name, k, named) {
    if (!this.nodes[k]) {
      const group = shape("g", { class: "node" });
      const title = shape("title");
      title.textContent = name;
      group.append(title, shape("path", { "vector-effect": "non-scaling-stroke" }), shape("text", { class: "sign", dy: ".35em" }),
        shape("text", { class: "name" }));
      group.addEventListener("click", () => this.choose(k));
      this.svg.append(group);
      this.nodes[k] = group;
    }
    const [, path, sign, label] = this.nodes[k].children;
    put(this.nodes[k], "transform", `translate(${this.points[k].map((v) => v.toFixed(1)).join(" ")})`);
    put(path, "transform", `scale(${this.radius})`);
    put(sign, "font-size", this.radius * 1.3);
    put(label, "y", this.radius + 14);
    write(label, named ? name : "");
  }

  token(m) {
    const group = shape("g", { class: "token" });
    const label = shape("text", { dy: ".35em" });
    label.textContent = m;
    group.append(shape("circle", { r: 9 }), label);
    this.tokens[m] = group;
  }

  draw(frame) {
    frame.agents.forEach(([number], k) => {
      const state = this.about.states[number];
      const [, path, sign] = this.nodes[k].children;
      const [outlined, signed] = LOOKS[state];
      put(this.nodes[k], "class", `node ${state}`);
      put(path, "d", OUTLINES[outlined]);
      write(sign, signed);
    });
    const gone = frame.agents.map(([number]) => ["down", "left", "refused"].includes(this.about.states[number]));
    const down = new Set(frame.cut);
    this.about.links.forEach(([i, j], k) => { if (gone[i] || gone[j]) down.add(k); });
    const drawn = `${[...down]}:${this.about.links.length}`;
    if (this.drawn !== drawn) {
      this.drawn = drawn;
      const line = ([i, j]) => `M${this.points[i].map(Math.round).join(" ")}L${this.points[j].map(Math.round).join(" ")}`;
      put(this.links, "d", this.about.links.filter((_, k) => !down.has(k)).map(line).join(""));
      put(this.cut, "d", this.about.links.filter((_, k) => down.has(k)).map(line).join(""));
    }
  }

  // tokens, each at {from, to, part} or nowhere; those at an agent stand around it
  place(places) {
    places.forEach((place, m) => {
      put(this.tokens[m], "visibility", place ? "visible" : "hidden");
      if (!place) return;
      const turn = (2 * Math.PI * m) / Math.max(3, this.tokens.length) - Math.PI / 2;
      const around = this.radius + (this.tokens.length > 5 ? 11 : 5);
      const off = (k) => [this.points[k][0] + around * Math.cos(turn), this.points[k][1] + around * Math.sin(turn)];
      const [a, b] = [off(place.from), off(place.to)];
      put(this.tokens[m], "transform", `translate(${[0, 1].map((i) => (a[i] + (b[i] - a[i]) * place.part).toFixed(1)).join(" ")})`);
    });
  }
}
