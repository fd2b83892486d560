// Makes elements, the marks of legends, and a picture of a single chart with its heading and legend.

const SVG = "http://www.w3.org/2000/svg";
const DRAWN_TAGS = new Set(["svg", "line", "path", "rect", "text", "g", "defs", "linearGradient", "stop"]);

function h(tag, attributes = {}, ...children) {
  const element = DRAWN_TAGS.has(tag) ? document.createElementNS(SVG, tag) : document.createElement(tag);
  Object.entries(attributes).forEach(([name, value]) => element.setAttribute(name, value));
  element.append(...children);
  return element;
}

const VIRIDIS = ["#440154", "#482878", "#3e4989", "#31688e", "#26828e", "#1f9e89", "#35b779", "#6ece58", "#b5de2b", "#fde725"];

const mark = (width, ...children) => h("svg", { viewBox: `0 0 ${width} 12`, width, height: 12, "aria-hidden": "true" }, ...children);
const square = (colour) => mark(11, h("rect", { y: 1, width: 11, height: 11, rx: 2, fill: colour }));
function lineMark({ colour, dash, shape }) {
  return mark(30,
    h("line", { x1: 0, x2: 30, y1: 6, y2: 6, stroke: colour, "stroke-width": 2, "stroke-dasharray": dash.join(" ") }),
    h("path", { d: shape, fill: colour, transform: "translate(15 6) scale(4)" }));
}
// One element of the page defines a gradient for all that refer to it; a picture needs a copy of that definition.
function gradientMark() {
  const stops = VIRIDIS.map((colour, at) => h("stop", { offset: at / (VIRIDIS.length - 1), "stop-color": colour }));
  return mark(140, h("defs", {}, h("linearGradient", { id: "viridis" }, ...stops)), h("rect", { width: 140, height: 12, fill: "url(#viridis)" }));
}

const legendOf = (items) => h("div", { class: "legend" }, ...items.map(([swatch, text]) => h("span", {}, swatch, text)));

// Lays out a heading, a legend and charts, which are side by side if there are several; `charts` holds names and SVGs.
function composed({ heading, about, items, charts, look }) {
  const measure = document.createElement("canvas").getContext("2d");
  const font = (size, weight) => ({ "font-family": look.font, "font-size": size, "font-weight": weight || "normal" });
  const parsed = charts.map(([name, text]) => {
    const svg = new DOMParser().parseFromString(text, "image/svg+xml").documentElement;
    return { name, svg, width: Number(svg.getAttribute("width")), height: Number(svg.getAttribute("height")) };
  });
  const columns = parsed.length > 1 ? 3 : 1;
  const width = Math.max(420, ...parsed.map((one) => one.width * Math.min(columns, parsed.length))) + 24;
  const group = h("g", { fill: look.text });
  let y = 26;
  group.append(h("text", { x: 12, y, ...font(16, "bold") }, heading));
  if (about) group.append(h("text", { x: 12, y: (y += 20), fill: look.soft, ...font(12) }, about));
  let x = 12;
  y += 12;
  measure.font = `12px ${look.font}`;
  items.forEach(([swatch, text], at) => {
    const marked = Number(swatch.getAttribute("width"));
    const wide = marked + 6 + measure.measureText(text).width + 16;
    if (at && x + wide > width) [x, y] = [12, y + 18];
    const own = swatch.cloneNode(true);
    own.setAttribute("x", x);
    own.setAttribute("y", y);
    group.append(own, h("text", { x: x + marked + 6, y: y + 10, ...font(12) }, text));
    x += wide;
  });
  y += items.length ? 24 : 4;
  for (let at = 0; at < parsed.length; at += columns) {
    const row = parsed.slice(at, at + columns);
    row.forEach(({ name, svg, width: wide }, column) => {
      const left = 12 + column * wide;
      if (name) group.append(h("text", { x: left, y: y + 12, ...font(13, "bold") }, name));
      svg.setAttribute("x", left);
      svg.setAttribute("y", y + (name ? 18 : 0));
      group.append(svg);
    });
    y += Math.max(...row.map((one) => one.height + (one.name ? 18 : 0))) + 8;
  }
  const all = h("svg", { xmlns: SVG, width, height: y, viewBox: `0 0 ${width} ${y}` }, h("rect", { width, height: y, fill: look.panel }), group);
  return { text: new XMLSerializer().serializeToString(all), width, height: y };
}

async function asPng({ text, width, height }) {
  const image = new Image();
  image.src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(text)}`;
  await image.decode();
  const canvas = h("canvas", { width: width * 2, height: height * 2 });
  canvas.getContext("2d").drawImage(image, 0, 0, width * 2, height * 2);
  return new Promise((done) => { canvas.toBlob(done, "image/png"); });
}

function download(name, blob) {
  const link = h("a", { href: URL.createObjectURL(blob), download: name });
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}
