// What is asked of the server besides the film: one agent's details, to leave, and to stop.

import { byId, clock, element, NONE, size } from "./draw.js";

const AGAIN_MS = 2000;

export async function ask(path, method = "GET") {
  const answer = await fetch(path, { method });
  const content = await answer.json();
  if (!answer.ok) throw new Error(content.said || `the server answered ${answer.status}`);
  return content;
}

// whether the user says yes
export function confirmed(title, text, yes) {
  const dialog = byId("confirm");
  byId("confirm-title").textContent = title;
  byId("confirm-text").textContent = text;
  byId("confirm-yes").textContent = yes;
  dialog.returnValue = "no";
  dialog.showModal();
  return new Promise((resolve) => {
    dialog.addEventListener("close", () => resolve(dialog.returnValue === "yes"), { once: true });
  });
}

export class Detail {
  constructor(say) {
    this.dialog = byId("agent");
    this.say = say;
    this.dialog.addEventListener("close", () => clearInterval(this.again));
    byId("leave").addEventListener("click", () => this.leave());
  }

  open(film, k, shown) {
    this.name = film.about.agents[k];
    byId("agent-name").textContent = this.name;
    this.fill([["state", shown.state], ["visits", String(shown.visits ?? NONE)]]);
    byId("log").textContent = "";
    byId("leave").hidden = true;
    this.dialog.showModal();
    if (!film.about.here[k]) {
      byId("log-note").textContent = "Its folder is not on this machine, so only its links are known here.";
      return;
    }
    byId("log-note").textContent = "";
    this.about = film.about;
    this.refresh();
    clearInterval(this.again);
    this.again = setInterval(() => this.refresh(), AGAIN_MS);
  }

  fill(facts) {
    byId("facts").replaceChildren(...facts.map(([key, value]) => element("div", {}, element("dt", {}, key), element("dd", {}, value))));
  }

  async refresh() {
    const name = this.name;
    let detail;
    try {
      detail = await ask(`agent/${encodeURIComponent(name)}`);
    } catch (error) {
      byId("log-note").textContent = error.message;
      return;
    }
    if (name !== this.name) return;
    const day = (seconds) => new Date(seconds * 1000).toISOString().slice(0, 10);
    const [ended, token, , hop, giver, to] = detail.visit || [];
    const visited = detail.visit
      ? `token ${token} at hop ${hop}, from ${giver}${to ? `, for ${to}` : ""}; at ${clock(ended - this.about.began_s, true)}` : NONE;
    this.fill([
      ["state", detail.state + (detail.why ? `: ${detail.why}` : "")],
      ["neighbours", [...detail.up.map((each) => `${each} (up)`), ...detail.down.map((each) => `${each} (down)`)].join(", ") || NONE],
      ["last visit", visited],
      ["journal", size(detail.journal_bytes)],
      ["certificate", detail.certificate_until_s ? `valid until ${day(detail.certificate_until_s)}` : NONE],
      ["process", detail.process ? String(detail.process) : NONE],
      ["folder", detail.folder],
    ]);
    const left = detail.log_left_out ? `${detail.log_left_out} lines that may quote rows, or that libraries wrote, are not shown.` : "";
    byId("log-note").textContent = detail.log_there ? left : "Its log is not in its folder: amble agent writes it to the terminal.";
    const log = byId("log");
    const below = log.scrollTop + log.clientHeight >= log.scrollHeight - 4;
    log.textContent = detail.log.join("\n");
    if (below) log.scrollTop = log.scrollHeight;
    byId("leave").hidden = !(this.about.live && this.about.can_leave && ["up", "waiting"].includes(detail.state));
  }

  async leave() {
    const name = this.name;
    this.dialog.close();
    const sure = await confirmed(`Let ${name} leave?`, "It takes its part out of the model and ends. The run goes on with the others.", `Let ${name} leave`);
    if (!sure) return;
    try {
      this.say((await ask(`leave/${encodeURIComponent(name)}`, "POST")).said);
    } catch (error) {
      this.say(error.message);
    }
  }
}
