"use strict";
// Draws each section's two plots from the numbers in the page, with one legend for both.

const held = JSON.parse(document.getElementById("curves").textContent);
const dark = matchMedia("(prefers-color-scheme: dark)");
const touch = matchMedia("(pointer: coarse)").matches; // a finger on a plot scrolls the page, and does not zoom
const buttons = [["toImage"], ["zoom2d", "pan2d"], ["zoomIn2d", "zoomOut2d", "resetScale2d"]];
const options = { responsive: true, displaylogo: false, modeBarButtons: buttons };
const redraws = [];
const TICK_PX = 90; // that a tick of a horizontal axis needs, so that two do not touch

function colours() { // they depend on whether the page is dark
  const style = getComputedStyle(document.documentElement);
  const read = (name) => style.getPropertyValue(name).trim();
  return { read, ink: read("--ink"), quiet: read("--quiet"), paper: read("--paper"), rule: read("--rule") };
}

function faint(colour) {
  const part = (k) => parseInt(colour.slice(k, k + 2), 16);
  return `rgba(${part(1)},${part(3)},${part(5)},0.13)`;
}

function plain(text) { // Plotly reads text as HTML
  return text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");
}

function traces(data, column, cost, hidden, theme) {
  const found = [];
  data.lines.forEach((line, k) => {
    if (hidden.has(k)) return;
    const colour = theme.read(line.colour);
    const { x } = line.curves[cost.key];
    const parts = line.curves[cost.key][column.key];
    const middle = parts.length > 1 ? parts[1] : parts[0];
    if (parts.length > 1) {
      const drawn = x.map((_, i) => i).filter((i) => parts[0][i] > 0 && parts[2][i] !== null);
      const back = [...drawn].reverse();
      found.push({
        x: [...drawn, ...back].map((i) => x[i]),
        y: [...drawn.map((i) => parts[2][i]), ...back.map((i) => parts[0][i])],
        mode: "lines", line: { width: 0 }, fill: "toself", fillcolor: faint(colour), hoverinfo: "skip",
      });
    }
    const spread = parts.length > 1 ? "<br>from %{customdata[0]:.4g} to %{customdata[1]:.4g}" : "";
    found.push({
      x, y: middle, mode: "lines", name: plain(line.label),
      line: { color: colour, dash: line.dash, width: 2, shape: "hv" },
      customdata: parts.length > 1 ? x.map((_, i) => [parts[0][i], parts[2][i]]) : undefined,
      hovertemplate: `<b>${plain(line.label)}</b><br>%{x}<br>%{y:.4g}${spread}<extra></extra>`,
    });
  });
  return found;
}

function layout(column, cost, theme, width) {
  const axis = { color: theme.quiet, gridcolor: theme.rule, linecolor: theme.rule, zeroline: false, automargin: true };
  const best = { type: "line", xref: "paper", x0: 0, x1: 1, y0: column.best, y1: column.best,
    line: { color: theme.quiet, width: 1.2, dash: "dash" } };
  return {
    margin: { l: 8, r: 12, t: 24, b: 8 },
    paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)",
    font: { family: "system-ui, sans-serif", size: 12, color: theme.ink },
    showlegend: false, hovermode: "closest", dragmode: touch ? false : "zoom",
    hoverlabel: { bgcolor: theme.paper, bordercolor: theme.quiet, font: { color: theme.ink }, align: "left" },
    modebar: { bgcolor: "rgba(0,0,0,0)", color: theme.quiet, activecolor: theme.ink },
    xaxis: { ...axis, type: "log", title: { text: cost.title }, exponentformat: "SI",
      autorangeoptions: cost.first ? { minallowed: Math.log10(cost.first / 1.25) } : {}, minexponent: 1, ticksuffix: cost.suffix, nticks: Math.max(3, Math.round(width / TICK_PX)) },
    yaxis: { ...axis, type: column.log ? "log" : "linear", title: { text: column.title }, exponentformat: "power",
      range: column.range || undefined, autorange: !column.range },
    shapes: column.best === null ? [] : [best],
  };
}

function legend(box, data, hidden, redraw) {
  const made = data.lines.map((line, k) => {
    const button = document.createElement("button");
    button.type = "button";
    button.setAttribute("aria-pressed", "true");
    const dashes = { solid: "", dot: "2 3", dash: "6 3", dashdot: "6 3 2 3", longdash: "10 3", longdashdot: "10 3 2 3" };
    button.innerHTML = `<svg viewBox="0 0 26 10" aria-hidden="true"><path d="M0 5H26" stroke-width="2.5"
      stroke="var(${line.colour})" stroke-dasharray="${dashes[line.dash]}"/></svg>`;
    button.append(line.label);
    button.addEventListener("click", () => {
      if (!hidden.delete(k)) hidden.add(k);
      show();
    });
    box.append(button);
    return button;
  });
  const show = () => {
    made.forEach((button, k) => button.setAttribute("aria-pressed", String(!hidden.has(k))));
    redraw();
  };
  if (data.columns.some((column) => column.best !== null)) {
    const key = document.createElement("span");
    key.innerHTML = `<svg viewBox="0 0 26 10" aria-hidden="true"><path d="M0 5H26" stroke-width="1.5" stroke="var(--quiet)"
      stroke-dasharray="6 3"/></svg>`;
    key.append("centralised optimum");
    box.append(key);
  }
  if (made.length < 5) return;
  for (const [label, hide] of [["show all", false], ["hide all", true]]) {
    const button = document.createElement("button");
    button.type = "button";
    button.className = "every";
    button.textContent = label;
    button.addEventListener("click", () => {
      made.forEach((_, k) => (hide ? hidden.add(k) : hidden.delete(k)));
      show();
    });
    box.append(button);
  }
}

for (const box of document.querySelectorAll("[data-curves]")) {
  const data = held[box.dataset.curves];
  const plots = box.querySelectorAll(".plot");
  const hidden = new Set();
  const chosen = (end) => box.querySelector(`input[name="${box.dataset.curves}-${end}"]:checked`)?.value;
  const redraw = () => {
    const theme = colours();
    const column = data.columns.find((each) => each.key === chosen("y")) || data.columns[0];
    const right = data.costs.find((each) => each.key === chosen("x"));
    [data.costs[0], right].forEach((cost, k) => {
      Plotly.react(plots[k], traces(data, column, cost, hidden, theme), layout(column, cost, theme, plots[k].clientWidth), options);
    });
  };
  legend(box.querySelector(".legend"), data, hidden, redraw);
  for (const input of box.querySelectorAll("input")) input.addEventListener("change", redraw);
  redraws.push(redraw);
  redraw();
}

for (const [from, name] of [[dark, "change"], [window, "resize"]]) from.addEventListener(name, () => redraws.forEach((redraw) => redraw()));
addEventListener("beforeprint", () => document.querySelectorAll("details").forEach((each) => { each.open = true; }));
