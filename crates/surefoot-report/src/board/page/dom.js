// Elements, numbers and requests.

/** Creates an element. Texts are inserted as texts, never as markup. */
export function h(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (value === true) element.setAttribute(name, "");
    else if (value !== false && value !== null && value !== undefined) element.setAttribute(name, value);
  }
  element.append(...children.flat().filter((child) => child !== null && child !== undefined));
  return element;
}

/** Replaces the content of an element by markup that the server has escaped, if it differs. */
export function setMarkup(element, markup) {
  if (element.markup === markup) return;
  element.markup = markup;
  element.innerHTML = markup;
}

/** Replaces a text if it differs, so that a selection is kept. */
export function setText(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

/** The server does not answer. */
export class Disconnected extends Error {}

/** Reads JSON; throws an Error with the message of the server. */
export async function get(path, parameters = {}) {
  const query = new URLSearchParams();
  for (const [key, value] of Object.entries(parameters)) {
    if (value !== null && value !== undefined) query.set(key, value);
  }
  const answer = fetch(`${path}?${query}`).then(async (response) => [response, await response.text()]);
  const [response, text] = await answer.catch((error) => {
    throw new Disconnected(error.message);
  });
  let data;
  try {
    data = JSON.parse(text);
  } catch {
    data = { error: text.trim() };
  }
  if (!response.ok) throw new Error(data.error ?? `the server answered ${response.status}`);
  return data;
}

const SUPERSCRIPTS = "⁰¹²³⁴⁵⁶⁷⁸⁹";

function power(exponent) {
  const digits = [...String(Math.abs(exponent))].map((digit) => SUPERSCRIPTS[digit]);
  return `10${exponent < 0 ? "⁻" : ""}${digits.join("")}`;
}

/** A number with about four significant digits. */
export function number(value) {
  if (value === null || value === undefined) return "–";
  if (typeof value !== "number") return String(value);
  if (Number.isNaN(value)) return "NaN";
  const size = Math.abs(value);
  const sign = value < 0 ? "−" : "";
  if (size === Infinity) return `${sign}∞`;
  if (size === 0) return "0";
  if (size < 1e-3 || size >= 1e6) {
    const [digits, exponent] = size.toExponential(2).split("e");
    const short = digits.replace(/\.?0+$/, "");
    return `${sign}${short === "1" ? "" : `${short} × `}${power(Number(exponent))}`;
  }
  const decimals = size >= 1000 ? 1 : size >= 100 ? 2 : size >= 1 ? 3 : 4;
  return sign + size.toFixed(decimals).replace(/\.?0+$/, "");
}

/** A count with thousands separators. */
export function count(value) {
  return value.toLocaleString("en-US");
}

/** A value of a metric: accuracy in percent. */
export function metric(name, value) {
  if (value === null || value === undefined) return "–";
  return name === "accuracy" && Number.isFinite(value) ? `${(value * 100).toFixed(1)}%` : number(value);
}

export function metricName(id) {
  return id === "r2" ? "R²" : (id || "metric").replaceAll("_", " ");
}

export function capital(text) {
  return text.charAt(0).toUpperCase() + text.slice(1);
}

/** A duration. */
export function time(seconds) {
  if (seconds === null || seconds === undefined || !Number.isFinite(seconds)) return "–";
  if (seconds < 10) return `${seconds.toFixed(1)} s`;
  const whole = Math.round(seconds);
  const two = (value) => String(value).padStart(2, "0");
  if (whole < 60) return `${whole} s`;
  if (whole < 3600) return `${Math.floor(whole / 60)} min ${two(whole % 60)} s`;
  return `${count(Math.floor(whole / 3600))} h ${two(Math.floor((whole % 3600) / 60))} min`;
}

/** A date without seconds, in the zone of the reader. */
export function date(millis) {
  if (!millis) return "–";
  const at = new Date(millis);
  const two = (value) => String(value).padStart(2, "0");
  return `${at.getFullYear()}-${two(at.getMonth() + 1)}-${two(at.getDate())} ${two(at.getHours())}:${two(at.getMinutes())}`;
}

/** The value of a CSS variable. */
export function colour(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
}

/** CSS variable of the n-th line of a chart. */
export function lineColour(index) {
  return `--line-${index % 8}`;
}

/** A line chart of a few pixels, without axes. */
export function spark(values, label) {
  const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
  svg.setAttribute("class", "spark");
  svg.setAttribute("viewBox", "0 0 100 24");
  svg.setAttribute("preserveAspectRatio", "none");
  svg.setAttribute("role", "img");
  svg.setAttribute("aria-label", label);
  const known = values.filter((value) => value !== null);
  if (known.length > 1) {
    const isLog = Math.min(...known) > 0 && Math.max(...known) > 100 * Math.min(...known);
    const scaled = values.map((value) => (value === null ? null : isLog ? Math.log(value) : value));
    const [low, high] = [Math.min(...scaled.filter((v) => v !== null)), Math.max(...scaled.filter((v) => v !== null))];
    let path = "";
    let pen = "M";
    scaled.forEach((value, i) => {
      if (value === null) return (pen = "M");
      const x = (100 * i) / Math.max(1, scaled.length - 1);
      const y = 22 - (20 * (value - low)) / (high - low || 1);
      path += `${pen}${x.toFixed(1)} ${y.toFixed(1)}`;
      pen = "L";
    });
    const line = document.createElementNS("http://www.w3.org/2000/svg", "path");
    line.setAttribute("d", path);
    svg.append(line);
  }
  return svg;
}
