// The page: it gets the film so far, then each new frame, and shows the moment that the slider is at.

import { Chart } from "./charts.js";
import { ask, confirmed, Detail } from "./dialogs.js";
import { byId, clock, element, hide, number, put, rate, shape, size, whole, write } from "./draw.js";
import { after, Film } from "./film.js";
import { LOOKS, Network, outline } from "./network.js";
import { Agents, Events, Tokens } from "./tables.js";

const LATE_S = 1.6; // tokens are shown this long after they moved: by then all hops up to there are known
const LIVE_MS = 70; // between two pictures of moving tokens: of a live run, whose machine may be busy,
const PLAY_MS = 33; // and of a replay
const CALM_MS = 500; // and with prefers-reduced-motion
const SPEEDS = [0.01, 0.03, 0.1, 0.3, 1, 3, 10, 30, 100];
const PLAYED_S = 30; // a replay takes about so long by default
const STAGES = { opening: "opening survey", training: "training", closing: "closing survey" };
const still = matchMedia("(prefers-reduced-motion: reduce)");

let film = null;
let time = 0; // the moment that is shown
let follow = true; // whether that is the newest one
let came = 0; // when the newest frame came
let playing = 0; // when a replay was last moved on; 0: it stands
let over = null; // what the run has come to
let charts = [];
let connection = "";
let drawn = 0; // up to when the charts are: they are drawn once a second, or when a line has grown by a pixel

const say = (text) => { write(byId("news"), text); write(byId("headline"), text); };
const detail = new Detail(say);
const choose = (k) => {
  const agent = film.frames[film.at(time)].agents[k];
  detail.open(film, k, { state: film.about.states[agent[0]], visits: agent[1] });
};
const network = new Network(byId("network"), choose);
const agents = new Agents(choose);
const tokens = new Tokens();
const events = new Events((t) => go(t));

// --- what is shown ---------------------------------------------------------------------------------------------------

function show() {
  if (!film || !film.frames.length) return;
  if (follow) time = film.end;
  const k = film.at(time);
  const frame = film.frames[k];
  header(frame);
  network.draw(frame);
  agents.draw(film.about, frame);
  tokens.draw(film.about, frame);
  events.draw(film.events, follow ? Infinity : time);
  notes(frame);
  charts.forEach((chart) => chart.mark(frame, time));
  const slider = byId("time");
  put(slider, "max", film.frames.length - 1);
  slider.value = String(k);
  put(slider, "aria-valuetext", clock(time, true) + (follow && film.about.live ? ", live" : ""));
  write(byId("clock"), clock(time, !follow && film.end - film.begin < 60));
  put(byId("live"), "aria-pressed", String(follow));
  write(byId("live"), film.last.state === "ended" ? "End" : "Live");
  place(frame);
}

function header(frame) {
  const sum = (column) => frame.agents.reduce((total, agent) => total + (agent[column] || 0), 0);
  const known = frame.agents.map(([state]) => film.about.states[state]).filter((state) => state !== "unknown");
  const runs = known.filter((state) => ["up", "waiting", "joining", "leaving", "ending"].includes(state));
  const stage = frame.stages.map((each) => STAGES[each]).join(" and ");
  const states = { unstarted: "not started", running: stage || "running", down: "no agent runs", ended: "ended" };
  const chip = connection && follow ? connection : states[frame.state];
  write(byId("state"), chip);
  put(byId("state"), "class", `chip ${connection && follow ? "lost" : frame.state}`);
  write(byId("elapsed"), clock(time, !film.about.live && film.end - film.begin < 60));
  write(byId("up"), `${runs.length} of ${known.length}`);
  write(byId("visits"), whole(sum(1)));
  write(byId("rate"), rate(sum(2)));
  write(byId("heard"), size(frame.bytes));
  hide(byId("stop"), !(film.about.live && film.last.state === "running" && connection !== "closed"));
  put(byId("network"), "aria-label", `The network: ${runs.length} of ${known.length} agents run, ${frame.tokens.length} tokens`);
  const title = `${chip} · ${film.about.title}`;
  if (document.title !== title) document.title = title;
}

function notes(frame) {
  const list = byId("notes");
  const texts = frame.notes.length ? frame.notes : [""];
  if ([...list.children].map((each) => each.textContent).join("\n") === texts.join("\n")) return;
  list.replaceChildren(...texts.map((text) => element("li", {}, text)));
}

function place(frame) {
  const live = follow && film.about.live && film.last.state === "running";
  const shown = live ? film.end - LATE_S + (performance.now() - came) / 1000 : time;
  const slow = frame.tokens.map(([, , , , , , , all]) => all && !(still.matches && live));
  network.place(frame.tokens.map(([agent], m) => {
    const there = agent < 0 ? null : { from: agent, to: agent, part: 0 };
    return (slow[m] && film.place(m, shown)) || there;
  }));
  return live && slow.some(Boolean);
}

// pictures between frames, only while something moves
let next = 0;
function animate() {
  clearTimeout(next);
  if (!film || document.hidden) return;
  const now = performance.now();
  if (playing) {
    time = Math.min(film.end, time + ((now - playing) / 1000) * Number(byId("speed").value));
    playing = now;
    if (time >= film.end) play(false);
    show();
    next = setTimeout(() => requestAnimationFrame(animate), still.matches ? CALM_MS : PLAY_MS);
  } else if (follow && film.frames.length && place(film.last)) {
    next = setTimeout(() => requestAnimationFrame(animate), LIVE_MS);
  }
}

// --- the time --------------------------------------------------------------------------------------------------------

function go(t) {
  follow = film.about.live && t >= film.end;
  time = Math.max(film.begin, Math.min(film.end, t));
  show();
  animate();
}

function play(on) {
  playing = on ? performance.now() : 0;
  if (on && (follow || time >= film.end)) { follow = false; time = film.begin; }
  put(byId("play"), "aria-pressed", String(on));
  write(byId("play"), on ? "Pause" : "Play");
}

function marks() {
  const svg = byId("marks");
  const width = svg.clientWidth || 300;
  put(svg, "viewBox", `0 0 ${width} 16`);
  const last = Math.max(1, film.frames.length - 1);
  const x = (t) => {
    const k = after(film.frames, t, (frame) => frame.t) - 1;
    const [a, b] = [film.frames[Math.max(0, k)], film.frames[Math.min(last, k + 1)] || film.last];
    const part = b.t > a.t ? Math.min(1, Math.max(0, (t - a.t) / (b.t - a.t))) : 0;
    return 8 + ((Math.max(0, k) + part) / last) * (width - 16); // as far as the slider's knob goes
  };
  const shapes = { down: "M-4 2H4L0 10Z", reissue: "M-4 6L0 2L4 6L0 10Z", recount: "M-4 6L0 2L4 6L0 10Z", end: "M-3 2H3V14H-3Z" };
  svg.replaceChildren(...film.events.filter((event) => event.t >= film.begin).slice(-300).map((event) => shape("path", {
    class: `mark ${event.kind}`, d: shapes[event.kind] || "M-1 2H1V12H-1Z", transform: `translate(${x(event.t).toFixed(1)} 0)`,
  })));
}

// --- what comes ------------------------------------------------------------------------------------------------------

function begin() {
  const { about } = film;
  write(byId("title"), about.title);
  const from = about.seen_from
    ? `This page shows what ${about.seen_from} knows: itself, its links, and the tokens that came by. ` : "";
  const more = about.unseen.length > 8 ? ` and ${about.unseen.length - 8} more` : "";
  const unseen = about.unseen.length ? `Not seen from here: ${about.unseen.slice(0, 8).join(", ")}${more}. ` : "";
  const kept = about.live ? "" : "A finished run, from its record. ";
  write(byId("scope"), `${kept}${from}${unseen}${about.method ? `Method: ${about.method}.` : ""}`);
  byId("scope").hidden = false;
  byId("live").hidden = !about.live;
  byId("play").hidden = byId("speed").hidden = true;
  legend(["up", "waiting", "joining", "leaving", "down", "ended", "unstarted", ...(about.seen_from && !about.live ? ["unknown"] : [])]);
  network.prepare(about);
}

function legend(states) {
  byId("legend").replaceChildren(...states.map((state) => {
    const picture = shape("svg", { viewBox: "-10 -10 20 20", "aria-hidden": "true", class: `node ${state}` });
    const sign = shape("text", { class: "sign", dy: ".35em", "font-size": 10 });
    sign.textContent = LOOKS[state][1];
    picture.append(outline(state, 8), sign);
    return element("li", {}, picture, state);
  }));
}

// a run that has ended can be played again, by default in about half a minute
function playable() {
  if (!byId("play").hidden) return;
  byId("play").hidden = byId("speed").hidden = false;
  const fit = (film.end - film.begin) / PLAYED_S || 1;
  const far = (speed) => Math.abs(Math.log(speed / fit));
  byId("speed").replaceChildren(...SPEEDS.map((each) => element("option", { value: each }, `${each}×`)));
  byId("speed").value = String(SPEEDS.reduce((best, each) => (far(each) < far(best) ? each : best)));
}

function redraw() {
  if (!film || !film.frames.length) return;
  const named = new Set(film.frames.flatMap((frame) => Object.keys(frame.figures)));
  const wanted = [...named, ...(film.frames.some((frame) => farthest(frame) !== null) ? ["moved"] : [])].join("|");
  if (byId("charts").dataset.wanted !== wanted) {
    byId("charts").dataset.wanted = wanted;
    byId("charts").replaceChildren();
    const figure = (name) => [name, (frame) => frame.figures[name], number, { log: name.startsWith("distance"), held: true }];
    const made = [
      ...[...named].map(figure),
      ...(wanted.endsWith("moved") ? [["moved per lap", (frame) => farthest(frame), number, { log: true, held: true }]] : []),
      ["hops/s", (frame) => frame.agents.reduce((total, agent) => total + (agent[2] || 0), 0), rate],
      ...(film.frames.some((frame) => frame.bytes !== null) ? [["heard", (frame) => frame.bytes ?? NaN, size]] : []),
    ];
    charts = made.map((each) => new Chart(byId("charts"), ...each));
  }
  const widths = charts.map((chart) => chart.width); // read before anything is drawn, which would lay out the page again
  charts.forEach((chart, k) => chart.draw(widths[k], film.frames, film.begin, film.end));
  drawn = film.end;
  marks();
}

// of all tokens the one whose model moved farthest: the run ends when all of them are near
function farthest(frame) {
  const moved = frame.tokens.map((token) => token[5]).filter((each) => each !== null);
  return moved.length ? Math.max(...moved) : null;
}

function results() {
  const ended = [...film.events].reverse().find((event) => event.kind === "end");
  const finished = film.last.state === "ended" || (over && over.model && film.last.state === "down");
  byId("results").hidden = !finished || !over;
  if (!finished) return;
  playable();
  const text = ended ? ended.text : "the run was ended early";
  const headline = byId("headline");
  const more = over ? [" ", element("a", { href: "#results" }, "Results")] : [];
  headline.replaceChildren(`${text}.`, ...more);
  if (!over) return;
  byId("lines").replaceChildren(...over.lines.map((line) => element("p", {}, line)));
  const links = [];
  if (over.model) links.push(element("a", { href: "model.npz", download: "" }, "Download the model (model.npz)"));
  if (over.report) links.push(element("a", { href: "report", target: "_blank", rel: "noopener" }, "Open the report"));
  byId("links").replaceChildren(...links.flatMap((link) => [link, " "]));
  write(byId("summary"), over.summary || "");
}

function listen() {
  const source = new EventSource(`frames?after=${film.last ? film.last.n : -1}`);
  source.onopen = () => { connection = ""; show(); };
  source.onerror = () => { connection = "not connected"; show(); };
  source.onmessage = ({ data }) => {
    const step = JSON.parse(data);
    film.add(step);
    came = performance.now();
    if (step.about) network.prepare(film.about);
    if (step.events && step.events.length) write(byId("news"), step.events[step.events.length - 1].text);
    if (document.hidden) return;
    const due = film.end - drawn >= Math.max(1, (film.end - film.begin) / 200);
    if (due || step.about || step.events || film.last.state !== "running") redraw();
    if (film.last.state === "ended") results();
    show();
    animate();
  };
  source.addEventListener("end", ({ data }) => { over = JSON.parse(data); results(); });
  source.addEventListener("again", () => { source.close(); load(); });
  source.addEventListener("closed", () => { source.close(); connection = "closed"; show(); });
}

async function load() {
  film = new Film(await ask("film"));
  came = performance.now();
  begin();
  redraw();
  go(film.about.live ? Infinity : film.end);
  if (film.about.live) { listen(); return; }
  playable();
  over = await ask("end");
  results();
}

// --- what a user does ------------------------------------------------------------------------------------------------

byId("time").addEventListener("input", () => {
  play(false);
  const k = Number(byId("time").value);
  go(k === film.frames.length - 1 ? film.end : film.frames[k].t);
});
byId("play").addEventListener("click", () => { play(!playing); show(); animate(); });
byId("live").addEventListener("click", () => { play(false); go(Infinity); });
byId("stop").addEventListener("click", async () => {
  const sure = await confirmed("Stop the run?", "Every agent, on every machine, writes its model and ends. The run cannot go on after that.", "Stop the run");
  if (!sure) return;
  say("the run is asked to end …");
  try {
    await ask("stop", "POST");
  } catch (error) {
    say(error.message);
  }
});
addEventListener("resize", () => { if (film) { network.prepare(film.about); redraw(); show(); } });
document.addEventListener("visibilitychange", () => { if (!document.hidden && film) { redraw(); results(); show(); animate(); } });
load().catch((error) => { write(byId("state"), "failed"); say(error.message); });
