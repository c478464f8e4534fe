// The tables of agents and tokens, and the list of events.

import { byId, clock, element, NONE, number, put, rate, size, span, whole, write } from "./draw.js";

const EVENTS_SHOWN = 100;
const COLUMNS = [ // title, the cell's text, and what it is sorted by
  ["agent", (row) => row.name, (row) => row.name],
  ["state", (row) => row.state, (row) => row.state],
  ["visits", (row) => whole(row.agent[1]), (row) => row.agent[1]],
  ["hops/s", (row) => rate(row.agent[2]), (row) => row.agent[2]],
  ["heard", (row) => size(row.agent[3]), (row) => row.agent[3]],
  ["visit", (row) => span(row.agent[4]), (row) => row.agent[4]],
  ["wait", (row) => span(row.agent[5]), (row) => row.agent[5]],
  ["tokens", (row) => row.tokens, (row) => row.tokens],
];

export class Agents {
  constructor(choose) {
    [this.head, this.body] = byId("agents").children;
    this.rows = [];
    this.choose = choose;
    this.order = [0, 1];
    COLUMNS.forEach(([title], k) => {
      const button = element("button", { type: "button" }, title);
      button.addEventListener("click", () => {
        this.order = [k, this.order[0] === k ? -this.order[1] : 1];
        this.sort();
      });
      this.head.rows[0].append(element("th", { scope: "col", "aria-sort": k ? "none" : "ascending" }, button));
    });
  }

  draw(about, frame) {
    const held = about.agents.map(() => []);
    frame.tokens.forEach(([agent, , here], m) => { if (agent >= 0 && here) held[agent].push(m); });
    this.values = frame.agents.map((agent, k) => ({
      agent, k, name: about.agents[k], state: about.states[agent[0]], tokens: held[k].join(" "),
    }));
    this.values.forEach((row, k) => {
      const added = !this.rows[k];
      if (added) this.add(row, k);
      COLUMNS.forEach(([, text], c) => write(c ? this.rows[k].cells[c] : this.rows[k].querySelector("button"), text(row)));
      put(this.rows[k], "class", row.state);
      if (added) this.body.append(this.rows[k]);
    });
  }

  add(row, k) {
    const button = element("button", { type: "button" });
    button.addEventListener("click", () => this.choose(k));
    this.rows[k] = element("tr", {}, element("th", { scope: "row" }, button), ...COLUMNS.slice(1).map(() => element("td")));
  }

  // when a title is clicked, and not at every frame: rows that move by themselves cannot be read
  sort() {
    const [column, sign] = this.order;
    const key = COLUMNS[column][2];
    const worth = (row) => { const v = key(row); return v === null || v === undefined ? -Infinity : v; };
    const sorted = [...this.values].sort((a, b) => (worth(a) < worth(b) ? -sign : worth(a) > worth(b) ? sign : a.k - b.k));
    this.body.append(...sorted.map((row) => this.rows[row.k]));
    [...this.head.rows[0].cells].forEach((cell, k) => {
      cell.setAttribute("aria-sort", k !== column ? "none" : sign > 0 ? "ascending" : "descending");
    });
  }
}

export class Tokens {
  constructor() {
    const [head, body] = byId("tokens").children;
    this.body = body;
    for (const title of ["token", "where", "for", "hop", "epoch", "moved per lap"]) {
      head.rows[0].append(element("th", { scope: "col" }, title));
    }
  }

  draw(about, frame) {
    frame.tokens.forEach(([agent, to, here, epoch, hop, moved], m) => {
      if (!this.body.rows[m]) {
        const cells = Array.from({ length: 5 }, () => element("td"));
        this.body.append(element("tr", {}, element("th", { scope: "row" }, String(m)), ...cells));
      }
      const name = (k) => (k < 0 ? NONE : about.agents[k]);
      const where = agent < 0 ? NONE : here ? `at ${name(agent)}` : `left ${name(agent)}`;
      const texts = [where, name(to), whole(hop), whole(epoch), number(moved)];
      texts.forEach((text, c) => write(this.body.rows[m].cells[c + 1], text));
    });
  }
}

export class Events {
  constructor(jump) {
    this.list = byId("events");
    this.jump = jump;
    this.shown = "";
  }

  // those up to the time that is shown, the newest first
  draw(events, t) {
    const past = events.filter((event) => event.t <= t + 1e-6);
    const key = `${past.length} ${past.length ? past[past.length - 1].t : ""}`;
    if (this.shown === key) return;
    this.shown = key;
    this.list.replaceChildren(...past.slice(-EVENTS_SHOWN).reverse().map((event) => {
      const button = element("button", { type: "button" }, clock(event.t, true));
      button.addEventListener("click", () => this.jump(event.t));
      return element("li", { class: event.kind }, button, element("span", {}, event.text));
    }));
  }
}
