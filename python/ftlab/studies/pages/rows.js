// Tables whose rows can be filtered and sorted, and parallel coordinates with a line for each row.

const MOST_ROWS = 500; // The maximum number of rows that a table shows at once.

// Makes a filter from words such as "scheduler=map+ p99<5 8KiB", all of which a row must match. `of(row, name)`
// returns a cell: a text or a number.
function filterOf(text, names, of) {
  const tests = text.trim().split(/\s+/).filter(Boolean).map((word) => {
    const [, name, sign, wanted] = word.match(/^(.+?)(<=|>=|!=|=|<|>)(.+)$/) || [];
    if (name === undefined || !names.includes(name)) {
      const part = word.toLowerCase();
      return (row) => names.some((one) => String(of(row, one) ?? "").toLowerCase().includes(part));
    }
    return (row) => {
      const cell = of(row, name);
      if (cell === null || cell === undefined) return sign === "!=";
      const numbers = typeof cell === "number" && !Number.isNaN(Number(wanted));
      const [a, b] = numbers ? [cell, Number(wanted)] : [String(cell).toLowerCase(), wanted.toLowerCase()];
      return { "=": a === b, "!=": a !== b, "<": a < b, ">": a > b, "<=": a <= b, ">=": a >= b }[sign];
    };
  });
  return (row) => tests.every((test) => test(row));
}

// Compares quantities by value (4KiB comes before 16KiB, and 1ms before 10ms) and names alphabetically.
const SIZES = { KiB: 2 ** 10, MiB: 2 ** 20, GiB: 2 ** 30, us: 1e3, ms: 1e6, s: 1e9 };
function rank(value) {
  if (typeof value === "number" || value === null || value === undefined) return value ?? null;
  const [, digits, unit] = value.match(/^([-+]?[0-9.]+)([A-Za-z%]*)$/) || [];
  return digits === undefined ? value : Number(digits) * (SIZES[unit] || 1);
}
function compare(a, b) {
  const [x, y] = [rank(a), rank(b)];
  if (x === null || y === null) return (x === null) - (y === null);
  if (typeof x === typeof y) return x < y ? -1 : Number(x > y);
  return typeof x === "number" ? -1 : 1;
}

const sorted = new Map(); // For each table, the column by which it is sorted, and 1 (ascending) or -1 (descending).

// A table that can be sorted by each column. A column is [title, cell of a row, text of a row, whether it holds numbers].
function table(id, columns, rows, kinds = () => "") {
  const [by, way] = sorted.get(id) || [-1, 1];
  const order = by < 0 ? rows : [...rows].sort((a, b) => {
    const [x, y] = [columns[by][1](a), columns[by][1](b)];
    return (x ?? null) === null || (y ?? null) === null ? compare(x, y) : way * compare(x, y);
  });
  const head = columns.map(([title, , , numeric], at) => {
    const button = h("button", { type: "button" }, title, h("span", { "aria-hidden": "true" }, at === by ? (way > 0 ? " ▲" : " ▼") : ""));
    button.onclick = () => {
      sorted.set(id, [at, at === by ? -way : 1]);
      table(id, columns, rows, kinds);
      $(id).querySelectorAll("thead button")[at].focus();
    };
    return h("th", { scope: "col", class: numeric ? "n" : "", "aria-sort": at !== by ? "none" : way > 0 ? "ascending" : "descending" }, button);
  });
  const body = order.slice(0, MOST_ROWS).map((row) => h("tr", { class: kinds(row) },
    ...columns.map(([, , text, numeric]) => h("td", numeric ? { class: "n" } : {}, text(row)))));
  const more = order.length > MOST_ROWS ? [missing(`The first ${MOST_ROWS} of ${number(order.length)}; filter to see others.`)] : [];
  fill(id, h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "table" },
    h("table", {}, h("thead", {}, h("tr", {}, ...head)), h("tbody", {}, ...body))), ...more);
}

const MOST_LINES = 1000; // The maximum number of lines in the parallel coordinates.

// Draws a line for each row through an axis for each dimension: { title, cell, labels or none, text, log }.
function parallel(id, dimensions, rows, kindOf, said) {
  const width = widthOf(id), upright = width < 620;
  const shown = rows.slice(0, MOST_LINES);
  const height = upright ? 58 * dimensions.length + 20 : 380;
  const [from, to] = upright ? [18, width - 18] : [height - 40, 26];
  const step = upright ? 58 : (width - 60) / Math.max(dimensions.length - 1, 1);
  const scales = dimensions.map(({ labels, cell, log }) => {
    const known = rows.map(cell).filter((value) => value !== null && value !== undefined);
    if (labels) {
      const at = (value) => from + ((to - from) * (labels.indexOf(value) + 0.5)) / labels.length;
      const each = Math.ceil(labels.length / (upright ? Math.max(Math.floor(width / 70), 2) : 14));
      return { at, marks: labels.filter((_, place) => place % each === 0).map((label) => [at(label), label]) };
    }
    const low = Math.min(...known), high = Math.max(...known);
    const part = log ? (value) => Math.log(value / low) / Math.log(high / low) : (value) => (value - low) / (high - low);
    const at = (value) => from + (to - from) * (high > low ? part(value) : 0.5);
    const middle = log ? Math.sqrt(low * high) : (low + high) / 2;
    const marks = (!known.length ? [] : high > low ? [low, middle, high] : [low]).map((value) => [at(value), value]);
    return { at, marks, plain: true };
  });
  const along = (place) => (upright ? 34 + place * step : 30 + place * step);
  const spot = (place, value) => (upright ? [scales[place].at(value), along(place)] : [along(place), scales[place].at(value)]);
  const picture = svg("svg", { class: "parallel", viewBox: `0 0 ${width} ${height}`, width, height, role: "img" }, svg("title", {}, "parallel coordinates"));
  for (const row of shown) {
    const places = dimensions.map(({ cell }, at) => [at, cell(row)]).filter(([, value]) => value !== null && value !== undefined)
      .map(([at, value]) => spot(at, value).map((each) => Math.round(each * 10) / 10));
    if (places.length < 2) continue;
    const d = `M${places.map((each) => each.join(",")).join("L")}`;
    picture.append(svg("g", { class: "run", "data-said": said(row) }, svg("path", { class: `line ${kindOf(row)}`, d }), svg("path", { class: "wide", d })));
  }
  dimensions.forEach(({ title, text }, at) => {
    const ends = upright ? { x1: from, x2: to, y1: along(at), y2: along(at) } : { x1: along(at), x2: along(at), y1: from, y2: to };
    picture.append(svg("line", { class: "axis", ...ends }));
    const edge = at === dimensions.length - 1 ? "end" : at === 0 ? "start" : "middle";
    const place = upright ? { x: from - 14, y: along(at) - 20, "text-anchor": "start" }
      : { x: edge === "end" ? width - 2 : edge === "start" ? 2 : along(at), y: 12, "text-anchor": edge };
    picture.append(svg("text", { class: "title", ...place }, cut(title, upright ? width - 10 : step * (edge === "middle" ? 0.9 : 0.7))));
    scales[at].marks.forEach(([spotted, value], mark, all) => {
      const words = scales[at].plain ? text(value) : value;
      const end = mark === 0 ? "start" : mark === all.length - 1 ? "end" : "middle";
      const where = upright ? { x: spotted, y: along(at) - 6, "text-anchor": scales[at].plain && all.length > 1 ? end : "middle" }
        : at === dimensions.length - 1 ? { x: along(at) - 5, y: spotted + 4, "text-anchor": "end" } : { x: along(at) + 5, y: spotted + 4 };
      picture.append(svg("text", { class: "tick on", ...where }, cut(words, upright ? 90 : step - 8)));
    });
  });
  const more = rows.length > shown.length ? [missing(`The first ${MOST_LINES} of ${number(rows.length)} runs; filter to see others.`)] : [];
  fill(id, picture, ...more);
}
