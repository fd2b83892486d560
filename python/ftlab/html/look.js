// What all charts share: the theme, the axes, and lines with their markers.

const DATA = JSON.parse(document.getElementById("data").textContent);
const { causes: CAUSES, parts: PARTS, merges: MERGES, rest: REST } = DATA.palette;

function theme(dark) {
  const [text, soft, grid] = dark ? ["#e7eaee", "#a8b0ba", "#2c333b"] : ["#1b1f23", "#575f68", "#e6e8eb"];
  return {
    font: 'system-ui, "DejaVu Sans", Arial, sans-serif', background: null, view: { stroke: null },
    text: { color: text, fontSize: 11 },
    axis: {
      labelColor: soft, titleColor: soft, gridColor: grid, domainColor: soft, tickColor: soft, labelFontSize: 12,
      titleFontSize: 12, titleFontWeight: "normal", labelOverlap: true, titlePadding: 6,
    },
  };
}

const fit = (width, height, rest) => ({
  width, height, autosize: { type: "fit", contains: "padding" }, padding: { left: 0, right: 8, top: 6, bottom: 2 },
  ...rest,
});

// Lines distinguished by colour, dash and marker. Each of `rows` names its policy; rows are in the order of the curves.
function lines(view, rows, encoding, mark = {}) {
  const own = new Map();
  rows.forEach((row) => own.set(row.policy, [...(own.get(row.policy) || []), row]));
  [...own.values()].forEach((curve, at) => {
    const step = Math.max(1, Math.ceil(curve.length / 9));
    // The markers are shifted so that they do not cover each other where curves coincide.
    const first = Math.floor((step * (at % 4)) / 4);
    curve.forEach((row, index) => { row.marked = index % step === first; });
  });
  const line = { mark: { type: "line", strokeWidth: 2, clip: true, ...mark }, encoding: { ...encoding, color: view.colours(), strokeDash: view.dashes() } };
  const points = {
    transform: [{ filter: "datum.marked" }], mark: { type: "point", filled: true, size: 45, opacity: 1, clip: true },
    encoding: { ...encoding, color: view.colours(), shape: view.shapes() },
  };
  return { data: { values: rows }, layer: [line, points] };
}

// An axis of names: the middle of a long name is left out, since names often differ at their ends.
function names(width) {
  const most = Math.floor(width / 3 / 7);
  const label = `length(datum.label) > ${most} ? slice(datum.label, 0, ${Math.floor(most / 2) - 1}) + '…' + slice(datum.label, -${Math.ceil(most / 2)}) : datum.label`;
  return { labelExpr: label, labelLimit: width / 2, maxExtent: width };
}

// A title, broken into as many lines as its axis requires.
function broken(title, width) {
  const most = Math.max(20, Math.floor((width * 0.6) / 6.5));
  const rows = [""];
  for (const word of title.split(" ")) {
    const last = rows.at(-1);
    if (last && last.length + word.length >= most) rows.push(word);
    else rows[rows.length - 1] = last ? `${last} ${word}` : word;
  }
  return rows;
}
