// Elements, numbers and times. All text is set as text, never as HTML.

export const byId = (id) => document.getElementById(id);

export function element(name, attributes = {}, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  made.append(...children);
  return made;
}

export function shape(name, attributes = {}, ...children) {
  const made = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  made.append(...children);
  return made;
}

// only what changes is written, so that nothing is laid out again in vain
export function write(node, text) {
  if (node.textContent !== text) node.textContent = text;
}

export function put(node, attribute, value) {
  if (node.getAttribute(attribute) !== String(value)) node.setAttribute(attribute, value);
}

export function hide(node, hidden) {
  if (node.hidden !== hidden) node.hidden = hidden;
}

export const NONE = "–";

export function whole(value) {
  return value === null || value === undefined ? NONE : Math.round(value).toLocaleString("en");
}

export function number(value) {
  if (value === null || value === undefined) return NONE;
  const size = Math.abs(value);
  if (size !== 0 && (size < 1e-3 || size >= 1e7)) return value.toExponential(1).replace("e-0", "e-");
  return value.toLocaleString("en", { maximumSignificantDigits: size >= 100 ? 4 : 3 });
}

// a tick of an axis
export function tick(value, text) {
  if (text === size) return size(value).replace(".0 ", " ");
  const far = Math.abs(value);
  if (value === 0) return "0";
  return far < 1e-3 || far >= 1e5 ? value.toExponential(0) : String(Number(value.toPrecision(3)));
}

export function rate(value) {
  if (value === null || value === undefined) return NONE;
  return value.toLocaleString("en", { maximumFractionDigits: value < 10 ? 1 : 0, minimumFractionDigits: value < 10 ? 1 : 0 });
}

export function size(bytes) {
  if (bytes === null || bytes === undefined) return NONE;
  let value = bytes;
  for (const unit of ["B", "kB", "MB"]) {
    if (value < 1000) return `${unit === "B" ? value : value.toFixed(1)} ${unit}`;
    value /= 1000;
  }
  return `${value.toFixed(1)} GB`;
}

export function span(seconds) {
  if (seconds === null || seconds === undefined) return NONE;
  if (seconds < 1e-3) return `${(seconds * 1e6).toFixed(0)} µs`;
  return seconds < 1 ? `${(seconds * 1e3).toPrecision(3)} ms` : `${seconds.toPrecision(3)} s`;
}

// a time in the run
export function clock(seconds, fine = false) {
  const total = Math.max(0, fine ? seconds : Math.floor(seconds));
  const h = Math.floor(total / 3600);
  const m = Math.floor((total % 3600) / 60);
  const s = total % 60;
  const end = fine ? s.toFixed(s % 1 ? 2 : 0).padStart(s % 1 ? 5 : 2, "0") : String(s).padStart(2, "0");
  return h ? `${h}:${String(m).padStart(2, "0")}:${end}` : `${m}:${end}`;
}
