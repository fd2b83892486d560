// The page of a sweep: means with intervals in small multiples, a line for each run, and tables of both.

const MOST_PANELS = 24;
const MOST_COLOURS = 24; // The maximum number of labels of the axis that colours distinguish by default.
const AXES = DATA.axes, VALUES = DATA.values;
const GROUPED = AXES.filter((axis) => !axis.seed);
const NAMES = [...AXES.map((axis) => axis.name), ...VALUES.map((value) => value.name)];
const MEANS = DATA.means.map(([labels, value, count, mean, half, difference, around]) => ({
  labels: Object.fromEntries(GROUPED.map((axis, at) => [axis.name, axis.labels[labels[at]]])),
  value, count, mean, half, difference, around,
}));
const RUNS = DATA.runs.map(([run, labels, numbers, seconds]) => ({
  run, numbers, seconds, labels: Object.fromEntries(AXES.map((axis, at) => [axis.name, axis.labels[labels[at]]])),
}));
// All numbers of a value are shown in the same unit, which suits them.
const SHOWN = VALUES.map(({ unit }, at) =>
  unitOf([...MEANS.filter((each) => each.value === at).map((each) => each.mean), ...RUNS.map((run) => run.numbers[at])], unit));
// The scale is logarithmic if the greatest number is more than a hundred times the least.
const LOG = VALUES.map((_, at) => {
  const known = RUNS.map((run) => run.numbers[at]).filter((value) => value !== null);
  return known.length > 1 && Math.min(...known) > 0 && Math.max(...known) > 100 * Math.min(...known);
});
const axisOf = (name) => AXES.find((axis) => axis.name === name);
const several = GROUPED.filter((axis) => axis.labels.length > 1);
const within = (value, of) => (value === null || value === undefined ? null : value / SHOWN[of].of);
const indexOf = (name) => VALUES.findIndex((value) => value.name === name);
const cellOf = (run, name) => run.labels[name] ?? within(run.numbers[indexOf(name)], indexOf(name));
// By default, x is the longest axis of numbers, and colours distinguish the labels of the first other axis.
const along = [...several].sort((a, b) => b.ordered - a.ordered || (b.ordered ? b.labels.length - a.labels.length : 0))[0];
const few = several.find((axis) => axis !== along && axis.labels.length <= MOST_COLOURS);
const state = { value: 0, kind: "mean", x: (along || GROUPED[0])?.name || "", colour: few?.name || "" };

const title = (at) => titled(VALUES[at].title, SHOWN[at].name);
const around = (mean, half) => `${number(mean)}${half === null ? "" : ` ± ${Number(half.toPrecision(2))}`}`;
const signed = (value, half) => `${value > 0 ? "+" : ""}${around(value, half)}`;
const wordsOf = (labels) => Object.entries(labels).map(([name, label]) => `${name} = ${label}`).join("\n");

// The means that are drawn: those of the chosen value whose labels the filter accepts.
function chosen() {
  const names = GROUPED.map((axis) => axis.name);
  const fits = filterOf($("filter").value.split(/\s+/).filter(aboutLabels).join(" "), names, (mean, name) => mean.labels[name]);
  return MEANS.filter(fits);
}
const aboutLabels = (word) => {
  const name = word.match(/^(.+?)(?:<=|>=|!=|=|<|>)/)?.[1];
  return name === undefined || GROUPED.some((axis) => axis.name === name) || !NAMES.includes(name);
};

function drawMeans() {
  const differs = state.kind === "difference";
  const of = state.value;
  const rows = chosen().filter((each) => each.value === of && !(differs && each.difference === null)).map((each) => {
    const mean = within(differs ? each.difference : each.mean, of);
    const half = differs ? each.around : each.half;
    return { ...each, shown: mean, half: within(half, of) };
  });
  if (!rows.length) return fill("means", missing("Nothing fits the filter."));
  const rest = several.filter((axis) => axis.name !== state.x && axis.name !== state.colour).map((axis) => axis.name);
  const panels = new Map();
  for (const row of rows) {
    const name = rest.map((one) => `${one} = ${row.labels[one]}`).join(", ");
    panels.set(name, [...(panels.get(name) || []), row]);
  }
  const kinds = axisOf(state.colour)?.labels.filter((label) => rows.some((row) => row.labels[state.colour] === label)) || [];
  const key = kinds.length > 1 ? [legend(kinds.map((label) => [label, colour(axisOf(state.colour).places[label])]))] : [];
  const many = panels.size > 1;
  const whole = widthOf("means");
  const width = many && whole > 640 ? Math.floor((whole - 24) / Math.min(panels.size, 3)) : whole;
  const values = rows.flatMap((row) => [row.shown - (row.half || 0), row.shown + (row.half || 0)]);
  const y = { title: differs ? `${title(of)}, difference` : title(of), values: differs ? [...values, 0] : values };
  const pictures = [...panels].slice(0, MOST_PANELS).map(([name, members]) => h("figure", {},
    ...(many ? [h("figcaption", {}, name)] : []), panel(members, kinds, width, many ? 240 : 320, y)));
  const more = panels.size > MOST_PANELS ? [missing(`The first ${MOST_PANELS} of ${panels.size} panels; filter to see others.`)] : [];
  return fill("means", ...key, h("div", { class: "panels" }, ...pictures), ...more);
}

// Draws one of the small multiples: a point with its interval for each variant, and lines along an axis of numbers.
function panel(members, kinds, width, height, y) {
  const axis = axisOf(state.x);
  const labels = axis ? axis.labels.filter((label) => members.some((row) => row.labels[axis.name] === label)) : [""];
  const unit = SHOWN[state.value].name;
  return plot(width, height, { labels, title: axis?.title || "" }, y, (group, across, up) => {
    const series = kinds.length ? kinds : [undefined];
    series.forEach((label, place) => {
      const own = members.filter((row) => label === undefined || row.labels[state.colour] === label);
      const kind = label === undefined ? "c6" : colour(axisOf(state.colour).places[label]);
      // Intervals are drawn side by side, so that they can be told apart.
      const shift = (place - (series.length - 1) / 2) * Math.min(9, (across.apart * 0.8) / series.length);
      const at = (row) => across.at(axis ? row.labels[axis.name] : "") + shift;
      if (axis?.ordered) {
        const order = labels.map((one) => own.find((row) => row.labels[axis.name] === one)).filter(Boolean);
        if (order.length > 1) group.append(line(order.map((row) => [at(row), up.at(row.shown)]), kind));
      }
      for (const row of own) {
        const x = at(row);
        if (row.half !== null) {
          const [low, high] = [up.at(row.shown - row.half), up.at(row.shown + row.half)];
          group.append(svg("path", { class: `interval ${kind}`, d: `M${x},${low}V${high}M${x - 3},${low}h6M${x - 3},${high}h6` }));
        }
        const said = state.kind === "mean" ? around(row.shown, row.half) : signed(row.shown, row.half);
        group.append(point(x, up.at(row.shown), kind, `${wordsOf(row.labels)}\n${said} ${unit}\n${row.count} replication${row.count > 1 ? "s" : ""}`));
      }
    });
  });
}

function drawRuns() {
  const fits = filterOf($("filter").value, NAMES, cellOf);
  const rows = RUNS.filter(fits);
  $("count").textContent = RUNS.length ? `${number(rows.length)} of ${number(RUNS.length)} runs` : "";
  if (!RUNS.length) return ["lines", "runs"].forEach((id) => fill(id, missing(`${number(DATA.count)} runs are more than a page holds; each is a row of runs.parquet.`)));
  const axes = AXES.filter((axis) => axis.labels.length > 1);
  const dimensions = [
    ...axes.filter((axis) => !axis.seed).map((axis) => ({ title: axis.title, labels: axis.labels, cell: (run) => run.labels[axis.name] })),
    ...VALUES.map((value, at) => ({ title: title(at), log: LOG[at], cell: (run) => run.numbers[at], text: (one) => number(within(one, at)) })),
  ];
  const saidOf = (run) => [`run ${run.run}`, wordsOf(run.labels),
    ...VALUES.map((value, at) => `${value.title}: ${number(within(run.numbers[at], at))} ${SHOWN[at].name}`)].join("\n");
  const kindOf = (run) => (state.colour ? colour(axisOf(state.colour).places[run.labels[state.colour]]) : "c6");
  if (dimensions.length > 1) parallel("lines", dimensions, rows, kindOf, saidOf);
  else fill("lines", missing("One value of one variant: there is nothing to be joined by lines."));
  return table("runs", [
    ["run", (run) => run.run, (run) => number(run.run), true],
    ...AXES.map((axis) => [axis.name, (run) => axis.labels.indexOf(run.labels[axis.name]), (run) => run.labels[axis.name], false]),
    ...VALUES.map((value, at) => [title(at), (run) => run.numbers[at], (run) => number(within(run.numbers[at], at)), true]),
    ["seconds", (run) => run.seconds, (run) => number(run.seconds), true],
  ], rows);
}

function drawVariants() {
  const rows = new Map();
  for (const mean of chosen()) {
    const name = Object.values(mean.labels).join("\n");
    if (!rows.has(name)) rows.set(name, { labels: mean.labels, means: [] });
    rows.get(name).means[mean.value] = mean;
  }
  const text = (mean, at) => {
    if (!mean) return "-";
    const own = around(within(mean.mean, at), within(mean.half, at));
    return mean.difference === null ? own : `${own} (${signed(within(mean.difference, at), within(mean.around, at))})`;
  };
  table("variants", [
    ...GROUPED.map((axis) => [axis.name, (row) => axis.labels.indexOf(row.labels[axis.name]), (row) => row.labels[axis.name], false]),
    ...VALUES.map((value, at) => [title(at), (row) => row.means[at]?.mean ?? null, (row) => text(row.means[at], at), true]),
  ], [...rows.values()]);
}

function draw() {
  const again = (field) => (value) => {
    state[field] = value;
    draw();
  };
  const choice = several.map((axis) => [axis.name, axis.title]);
  select("value", VALUES.map((value, at) => [at, value.title]), state.value, (at) => again("value")(Number(at)));
  select("kind", MEANS.some((each) => each.difference !== null) ? [["mean", "mean"], ["difference", `difference from ${Object.values(DATA.base).join(", ")}`]] : [["mean", "mean"]], state.kind, again("kind"));
  select("x", choice, state.x, (name) => {
    if (name === state.colour) state.colour = state.x;
    again("x")(name);
  });
  select("colour", several.length > 1 ? [["", "none"], ...choice.filter(([name]) => name !== state.x)] : [], state.colour, again("colour"));
  drawMeans();
  drawVariants();
  drawRuns();
}

const last = several[0];
$("filter").placeholder = [...(last ? [`${last.name}=${last.labels.at(-1)}`] : []),
  ...MEANS.slice(0, 1).map((mean) => `${VALUES[mean.value].name}<${Number(within(mean.mean, mean.value).toPrecision(3))}`)].join(" ");
$("filter").oninput = draw;
$("controls").onsubmit = (event) => event.preventDefault();
start(draw);
