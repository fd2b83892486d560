// The page of a calibration: measured and modelled, job by job, the errors, the fitted keys, and every row.

const ROWS = DATA.rows, KEYS = DATA.keys, SHORT = DATA.short;
const LATENCIES = Object.keys(SHORT).filter((name) => name !== "iops");
const outstanding = (row) => row.depth * row.jobs;
const off = (error) => (error === undefined || error === null ? null : Math.expm1(error) * 100);
const percent = (error) => (error === null || error === undefined ? "-" : `${off(error) >= 0 ? "+" : ""}${off(error).toFixed(1)} %`);
const sizeOf = (bytes) => (bytes % 1024 ? `${number(bytes)} B` : `${number(bytes / 1024)} KiB`);
const jobOf = (row) => `${row.op}, ${sizeOf(row.bs)}, ${row.jobs === 1 ? "one job" : `${row.jobs} jobs`}${row.engine ? `, ${row.engine}` : ""}${row.state ? `, ${row.state}` : ""}`;
const saidOf = (row, name) => [`${jobOf(row)}, depth ${row.depth}${row.held_out ? ", held out" : ""}`,
  `${SHORT[name]} measured: ${number(row.measured[name])} µs`, `model: ${number(row.model[name])} µs (${percent(row.errors[name])})`].join("\n");
const hue = (name) => colour(LATENCIES.indexOf(name));
const mark = (row, name, x, y) => point(x, y, row.held_out ? "best" : hue(name), saidOf(row, name), row.held_out ? "diamond" : "dot");
const NAMES = ["drive", "op", "bs", "depth", "jobs", "engine", "mean", "p50", "p99", "p99.9", "rate"];
const cellOf = (row, name) => (name in row ? row[name] : off(row.errors[Object.keys(SHORT).find((each) => SHORT[each] === name)]));
let shown = ROWS;

// Rows of one job, which differ in their depth alone.
function groups(rows) {
  const found = new Map();
  for (const row of rows) found.set(`${row.drive} ${jobOf(row)}`, [...(found.get(`${row.drive} ${jobOf(row)}`) || []), row]);
  return [...found.values()].map((group) => group.sort((a, b) => a.depth - b.depth));
}

function drawJobs() {
  const width = widthOf("jobs"), wide = width > 900 ? Math.floor((width - 12) / 2) : width;
  const made = groups(shown).map((rows) => {
    const names = LATENCIES.filter((name) => rows.some((row) => row.measured[name]));
    const values = rows.flatMap((row) => names.flatMap((name) => [row.measured[name], row.model[name]])).filter(Boolean);
    if (!values.length) return missing(`${jobOf(rows[0])}: a rate alone; see the rows below.`);
    const x = { title: "requests outstanding", values: rows.map(outstanding), log: true };
    const picture = plot(wide, 330, x, { title: "latency (µs)", values, log: true }, (group, across, up) => {
      for (const name of names) {
        const course = rows.map((row) => [across.at(outstanding(row)), up.at(row.model[name])]);
        if (course.length > 1) group.append(line(course, hue(name)));
        for (const row of rows.filter((each) => each.measured[name])) {
          group.append(mark(row, name, across.at(outstanding(row)), up.at(row.measured[name])));
        }
      }
    });
    return h("figure", {}, h("figcaption", {}, `${rows[0].drive}: ${jobOf(rows[0])}`), picture);
  });
  const entries = LATENCIES.flatMap((name) => [[`${SHORT[name]}: model`, hue(name)], ["measured", hue(name), "dot"]]);
  const held = ROWS.some((row) => row.held_out) ? [["measured, held out of the fit", "best", "diamond"]] : [];
  fill("jobs", legend([...entries, ...held]), h("div", { class: "panels" }, ...made));
}

function drawResiduals() {
  const width = widthOf("residuals"), wide = width > 900 ? Math.floor((width - 12) / 2) : width;
  const made = LATENCIES.map((name) => {
    const there = shown.filter((row) => row.errors[name] !== undefined);
    if (!there.length) return missing(`${SHORT[name]}: not measured.`);
    const x = { title: "requests outstanding", values: there.map(outstanding), log: true };
    const y = { title: `${SHORT[name]} off (%)`, values: [0, ...there.map((row) => off(row.errors[name]))] };
    return h("figure", {}, plot(wide, 240, x, y, (group, across, up) => {
      const ends = x.values.map(across.at);
      group.append(line([[Math.min(...ends), up.at(0)], [Math.max(...ends), up.at(0)]], "tried"));
      there.forEach((row) => group.append(mark(row, name, across.at(outstanding(row)), up.at(off(row.errors[name])))));
    }));
  });
  fill("residuals", h("div", { class: "panels" }, ...made));
}

function drawKeys() {
  if (!KEYS.length) return fill("keys", missing("Nothing was fitted: these are the errors of a configuration as it is."));
  const columns = [
    ["key", (each) => each.name, (each) => each.name, false],
    ["best", (each) => each.best, (each) => each.best, true],
    ["from", (each) => each.low, (each) => each.low, true],
    ["to", (each) => each.high, (each) => each.high, true],
    ["known", (each) => Number(each.determined), (each) => (each.determined ? "yes" : "not determined by these rows"), false],
  ];
  return table("keys", columns, KEYS, (each) => (each.determined ? "" : "default"));
}

function drawRows() {
  const figure = (name) => [[`${SHORT[name]} measured (µs)`, (row) => row.measured[name], (row) => number(row.measured[name]), true],
    [`${SHORT[name]} off`, (row) => off(row.errors[name]), (row) => percent(row.errors[name]), true]];
  const columns = [
    ...["drive", "op"].map((name) => [name, (row) => row[name], (row) => row[name], false]),
    ["state", (row) => row.found, (row) => row.found, false],
    ...["bs", "depth", "jobs"].map((name) => [name, (row) => row[name], (row) => number(row[name]), true]),
    ["engine", (row) => row.engine, (row) => row.engine, false],
    ["rate off", (row) => off(row.errors.iops), (row) => percent(row.errors.iops), true],
    ...LATENCIES.flatMap(figure),
    ["role", (row) => Number(row.held_out), (row) => (row.held_out ? "held out" : "fitted"), false],
  ];
  table("rows", columns, shown, (row) => (row.held_out ? "best" : ""));
}

function draw() {
  shown = ROWS.filter(filterOf($("filter").value, NAMES, cellOf));
  $("count").textContent = `${number(shown.length)} of ${number(ROWS.length)} rows`;
  drawJobs();
  drawResiduals();
  drawKeys();
  drawRows();
}

$("filter").placeholder = "op=randread depth<64";
$("filter").oninput = draw;
$("controls").onsubmit = (event) => event.preventDefault();
start(draw);
