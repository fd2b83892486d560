// What the pages of studies share: elements, numbers, axes, tooltips, and a light and a dark theme.

const $ = (id) => document.getElementById(id);
const DATA = JSON.parse($("data").textContent);
const root = document.documentElement;

function made(element, attributes, children) {
  Object.entries(attributes).forEach(([name, value]) => element.setAttribute(name, value));
  element.append(...children);
  return element;
}
const h = (tag, attributes = {}, ...children) => made(document.createElement(tag), attributes, children);
const svg = (tag, attributes = {}, ...children) =>
  made(document.createElementNS("http://www.w3.org/2000/svg", tag), attributes, children);

function number(value) {
  if (value === null || value === undefined) return "-";
  const size = Math.abs(value);
  if (size === 0 || (Number.isInteger(value) && size < 1e15)) return value.toLocaleString("en-US");
  if (size >= 1e15) return String(Number(value.toPrecision(4)));
  // 0.8200 beside 0.8234: in a column all numbers have as many digits.
  if (size < 1) return value.toLocaleString("en-US", { minimumSignificantDigits: 4, maximumSignificantDigits: 4 });
  const digits = Math.max(0, 4 - String(Math.trunc(size)).length);
  return value.toLocaleString("en-US", { minimumFractionDigits: digits, maximumFractionDigits: digits });
}

// Larger units of a unit, each with its name, the least value for which it is used, and its size. `unitOf` chooses the
// one that suits the greatest of some values.
const UNITS = {
  ns: [["s", 1e10, 1e9], ["ms", 1e7, 1e6], ["µs", 1e4, 1e3]],
  B: [["GiB", 2 ** 30, 2 ** 30], ["MiB", 2 ** 20, 2 ** 20], ["KiB", 2 ** 10, 2 ** 10]],
};
function unitOf(values, unit) {
  const most = Math.max(0, ...values.filter((value) => value !== null).map(Math.abs));
  const [name, , of] = (UNITS[unit] || []).find(([, least]) => most >= least) || [unit, 0, 1];
  return { name, of };
}
const titled = (name, unit) => (unit ? `${name} (${unit})` : name);

// About `count` round numbers from `low` to `high`.
function ticks(low, high, count) {
  const rough = (high - low) / Math.max(count, 1) || 1;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = power * ([1, 2, 5].find((each) => each * power >= rough) || 10);
  const found = [];
  for (let at = Math.ceil(low / step); at * step <= high + step * 1e-9; at += 1) found.push(Number((at * step).toPrecision(12)));
  return found;
}

// Round numbers for a logarithmic axis: powers of two for sizes, otherwise 1, 2 and 5 times powers of ten.
function powers(low, high, unit) {
  const found = [];
  if (/B$/.test(unit)) for (let at = 2 ** Math.ceil(Math.log2(low)); at <= high; at *= 2) found.push(at);
  else for (let power = 10 ** Math.floor(Math.log10(low)); power <= high; power *= 10) found.push(...[1, 2, 5].map((each) => each * power));
  return found.filter((each) => each >= low * 0.999 && each <= high * 1.001);
}

// The scale of an axis, either of labels or of numbers with a little room around them.
function scaleOf({ labels, values, log, unit }, from, to, apart) {
  if (labels) {
    const step = (to - from) / labels.length;
    const at = (label) => from + step * (labels.indexOf(label) + 0.5);
    // Only as many labels are shown as fit without overlapping.
    const each = Math.ceil(15 / Math.abs(step));
    return { at, step: Math.abs(step) * each, apart: Math.abs(step), marks: labels.filter((_, place) => place % each === 0).map((label) => [at(label), label]) };
  }
  let low = Math.min(...values), high = Math.max(...values);
  if (log) {
    const room = (high / low) ** 0.05 || 1.1;
    [low, high] = [low / room, high * room];
    const at = (value) => from + ((to - from) * Math.log(value / low)) / Math.log(high / low);
    return { at, step: 0, marks: powers(low, high, unit).map((value) => [at(value), number(value)]) };
  }
  const room = (high - low) * 0.06 || Math.abs(high) * 0.1 || 1;
  [low, high] = [low - room, high + room];
  const at = (value) => from + ((to - from) * (value - low)) / (high - low);
  const found = ticks(low, high, Math.abs(to - from) / apart);
  // All ticks have as many decimals as the one that needs most: 3.0, 3.5, 4.0.
  const digits = Math.max(...found.map((value) => (String(value).split(".")[1] || "").length));
  const text = (value) => (digits > 6 ? number(value) : value.toLocaleString("en-US", { minimumFractionDigits: digits, maximumFractionDigits: digits }));
  return { at, step: 0, marks: found.map((value) => [at(value), text(value)]) };
}

const WIDE = 6.6; // The width of a character on an axis, in pixels.

// Axes with titles; `marks` is called with both scales and draws into the axes.
function plot(width, height, x, y, marks) {
  const rough = scaleOf(y, height, 0, 45);
  const left = Math.min(Math.max(...rough.marks.map(([, text]) => text.length), 1) * WIDE + 30, width * 0.45);
  const names = scaleOf(x, left, width - 10, 80);
  const longest = Math.max(...names.marks.map(([, text]) => text.length), 1) * WIDE;
  const turned = x.labels && longest > names.step - 6;
  const bottom = (turned ? Math.min(longest * 0.72, 110) + 8 : 16) + 26;
  const across = names, up = scaleOf(y, height - bottom, 14, 45);
  const group = svg("g", { class: "marks" });
  const picture = svg("svg", { class: "plot", viewBox: `0 0 ${width} ${height}`, width, height, role: "img" },
    svg("title", {}, `${y.title} by ${x.title}`));
  for (const [at, text] of up.marks) {
    picture.append(svg("line", { class: "grid", x1: left, x2: width - 10, y1: at, y2: at }),
      svg("text", { class: "tick", x: left - 6, y: at + 4, "text-anchor": "end" }, cut(text, left - 30)));
  }
  for (const [at, text] of across.marks) {
    const place = turned ? { transform: `translate(${at + 4} ${height - bottom + 12}) rotate(-45)`, "text-anchor": "end" }
      : { x: at, y: height - bottom + 16, "text-anchor": "middle" };
    picture.append(svg("text", { class: "tick", ...place }, turned ? cut(text, 150) : text));
  }
  picture.append(
    svg("line", { class: "axis", x1: left, x2: width - 10, y1: height - bottom, y2: height - bottom }),
    svg("text", { class: "title x", x: (left + width) / 2, y: height - 4, "text-anchor": "middle" }, cut(x.title, width - left)),
    svg("text", { class: "title y", transform: `translate(11 ${(height - bottom) / 2}) rotate(-90)`, "text-anchor": "middle" },
      cut(y.title, height - bottom)), group);
  marks(group, across, up);
  return picture;
}
const cut = (text, room) => (text.length * WIDE <= room ? text : `${text.slice(0, Math.max(Math.floor(room / WIDE) - 1, 1))}…`);

const GLYPHS = {
  dot: "M-3.5,0a3.5,3.5 0 1,0 7,0a3.5,3.5 0 1,0 -7,0Z",
  diamond: "M0,-7L7,0L0,7L-7,0Z",
  cross: "M-3.5,-3.5L3.5,3.5M-3.5,3.5L3.5,-3.5",
};
// A point with its tooltip.
const point = (x, y, kind, said, glyph = "dot") =>
  svg("path", { class: `point ${kind}`, d: GLYPHS[glyph], transform: `translate(${x} ${y})`, "data-said": said });
const line = (places, kind) => svg("path", { class: `line ${kind}`, d: `M${places.map((each) => each.join(",")).join("L")}` });
const colour = (place) => `c${place % DATA.colours} d${Math.floor(place / DATA.colours) % 3}`;

function legend(entries) {
  return h("div", { class: "legend" }, ...entries.map(([name, kind, glyph]) => h("span", {},
    svg("svg", { viewBox: "-13 -8 26 16", width: 26, height: 16, "aria-hidden": "true" },
      glyph ? svg("path", { class: `point ${kind}`, d: GLYPHS[glyph] }) : svg("path", { class: `line ${kind}`, d: "M-13,0H13" })), name)));
}

function tell(event) {
  const said = event.target.closest?.("[data-said]");
  const tip = $("tip");
  document.querySelectorAll(".told").forEach((one) => one.classList.remove("told"));
  tip.hidden = !said;
  if (!said) return;
  said.classList.add("told");
  tip.textContent = said.dataset.said;
  const { innerWidth, innerHeight } = window;
  tip.style.left = `${Math.max(4, Math.min(event.clientX + 14, innerWidth - tip.offsetWidth - 8))}px`;
  tip.style.top = `${event.clientY + 18 + tip.offsetHeight > innerHeight ? event.clientY - tip.offsetHeight - 10 : event.clientY + 18}px`;
}
document.addEventListener("pointerover", tell);

const widthOf = (id) => Math.max($(id).querySelector(".chart").clientWidth, 200);
const fill = (id, ...pieces) => $(id).querySelector(".chart").replaceChildren(...pieces);
const missing = (text) => h("p", { class: "missing" }, text);

function select(id, options, value, changed) {
  $(id).replaceChildren(...options.map(([name, text]) => h("option", { value: name }, text)));
  $(id).value = value;
  $(id).onchange = () => changed($(id).value);
  $(id).closest("label").hidden = options.length < 2;
}

// Calls `draw` now, and again whenever the width changes.
function start(draw) {
  const prefers = window.matchMedia("(prefers-color-scheme: dark)");
  const set = (dark) => {
    root.dataset.theme = dark ? "dark" : "light";
    $("theme").textContent = dark ? "Light" : "Dark";
  };
  prefers.onchange = () => set(prefers.matches);
  $("theme").onclick = () => set(root.dataset.theme !== "dark");
  set(prefers.matches);
  let width = window.innerWidth, timer;
  window.onresize = () => {
    clearTimeout(timer);
    if (window.innerWidth !== width) timer = setTimeout(() => { width = window.innerWidth; draw(); }, 150);
  };
  draw();
  root.dataset.drawn = "1";
}
