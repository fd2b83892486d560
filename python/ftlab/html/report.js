// The page: what the reader has chosen, and how it is drawn.

const $ = (id) => document.getElementById(id);
const MOST_CASES = 30; // The maximum number of cases in the overview.
const MOST_CURVES = 12; // The maximum number of curves in a chart.
const root = document.documentElement;

// The reader's choices. For a dimension that colours distinguish, `shown` has the values whose runs are drawn;
// for any other dimension, `at` has the only value.
let STUDY;
let RUNS = [];
let DIMENSIONS = new Map();
const DEFAULTS = {
  metric: "mean", op: "all", part: "latency", curve: "ccdf", cause: "all", merge: "count", unit: "entries",
  cell: "max", operations: "busy_ns", rate: "requests",
};
const state = { ...DEFAULTS, colour: "", hidden: new Map(), at: new Map(), section: "", theme: "" };

// A study is a set of runs shown together; the value chosen for a label is kept in another study with that label.
function setStudy(number) {
  STUDY = DATA.studies[number];
  DIMENSIONS = new Map(STUDY.dimensions.map((dimension) => [dimension.name, dimension]));
  RUNS = STUDY.runs.map(({ labels, result }) => ({ ...DATA.results[result], labels }));
  state.colour = STUDY.colour;
}

const dark = () => root.dataset.theme === "dark";
const differing = () => STUDY.dimensions.filter((dimension) => dimension.values.length > 1).map((dimension) => dimension.name);
const others = () => differing().filter((name) => name !== state.colour);
const policies = () => DIMENSIONS.get(state.colour).values.filter((value) => !state.hidden.get(state.colour)?.has(value));

const style = (value) => styleAt(DIMENSIONS.get(state.colour).places[value]);
function styleAt(place) {
  const { colours, dashes, shapes } = DATA.palette;
  const of = colours[dark() ? "dark" : "light"];
  return {
    colour: of[place % of.length], dash: dashes[place % dashes.length], shape: shapes[place % shapes.length],
    opacity: [1, 0.6, 0.4, 0.25][Math.floor(place / of.length) % 4],
  };
}
const swatch = (value) => lineMark(style(value));

// The runs that match the chosen case in all dimensions except one.
function matching(except) {
  const names = others().filter((name) => name !== except);
  return RUNS.filter((run) => names.every((name) => run.labels[name] === state.at.get(name)));
}

function scale(of, domain) {
  return { field: "policy", type: "nominal", scale: { domain, range: domain.map(of) }, legend: null, sort: domain };
}

// The runs of the overview: all runs or, if there are very many, those that match the first choices.
function withinReach() {
  let runs = RUNS;
  for (const name of others()) {
    if (new Set(runs.map((run) => others().map((one) => run.labels[one]).join("\n"))).size <= MOST_CASES) break;
    runs = runs.filter((run) => run.labels[name] === state.at.get(name));
  }
  return runs;
}

// As many runs as a chart of curves can show, spread evenly from the first to the last.
function spread(runs) {
  if (runs.length <= MOST_CURVES) return runs;
  return Array.from({ length: MOST_CURVES }, (_, at) => runs[Math.round((at * (runs.length - 1)) / (MOST_CURVES - 1))]);
}

// The parts of the page's state that the charts' functions use.
function viewOf(section) {
  const shown = policies();
  const visible = (run) => shown.includes(run.labels[state.colour]);
  const chosen = matching().filter(visible);
  const runs = withinReach().filter(visible);
  const here = shown.filter((value) => chosen.some((run) => run.labels[state.colour] === value));
  // A value that all runs share need not be named.
  const cases = others().filter((name) => new Set(runs.map((run) => run.labels[name])).size > 1);
  return {
    ...state,
    runs,
    chosen,
    curved: spread(chosen),
    anyCache: matching("ftl.mapping_cache").filter(visible),
    policies: here,
    shown: shown.filter((value) => runs.some((run) => run.labels[state.colour] === value)),
    policyOf: (run) => run.labels[state.colour],
    colourOf: (value) => style(value).colour,
    caseOf: (run) => cases.map((name) => run.labels[name]).join(", "),
    caseName: cases.join(", "),
    setting: (run, key) => run.settings[key] ?? DATA.settings.common[key] ?? null,
    colours: (of = here) => scale((value) => style(value).colour, of),
    dashes: (of = here) => scale((value) => style(value).dash, of),
    shapes: (of = here) => scale((value) => style(value).shape, of),
    opacities: (of = here) => scale((value) => style(value).opacity, of),
    // One unit for all latencies of the page: the largest in which the largest mean is at least 1.
    time: timeUnit(RUNS.map((run) => run.latency.all.mean_ns * 10)),
    width: Math.max(240, section.querySelector(".chart").clientWidth),
  };
}

// Tenants come first; then a single run begins with where its time went, a comparison with the chosen metric of every run.
const FIRST = [
  ...(Object.keys(DATA.tenants).length ? ["tenants", "tenant-shares"] : []), ...(DATA.results.length === 1 ? ["parts", "flash"] : []),
];
const ALL = {
  overview, distribution, percentiles, parts, tenants, "tenant-shares": tenantShares, time: overTime, throughput, waf, "waf-time": wafOverTime, merges, misses, wear, flash,
  figures, settings,
};
const SECTIONS = Object.fromEntries([...FIRST, ...Object.keys(ALL)].map((id) => [id, ALL[id]]));
for (const id of FIRST) $("overview").before($(id));

const drawn = new Map(); // The views of each section, which must be ended before its next views are drawn.
window.ftlabCharts = drawn; // The console of the browser can read their specifications and data here.

async function embed(target, spec, renderer, views) {
  const result = await window.vegaEmbed(target, { config: theme(dark()), ...spec }, {
    // Expressions are interpreted: compiling them to functions would need eval, which the policy forbids.
    mode: "vega-lite", ast: true, renderer: renderer || "svg", actions: false, tooltip: { theme: dark() ? "dark" : "light" },
  });
  views.push(result);
}

function tableOf({ table, corner }, view, label) {
  const head = h("tr", {}, h("th", { scope: "col" }, corner),
    ...view.chosen.map((run) => h("th", { scope: "col" }, view.policyOf(run))));
  const body = table.map(({ name, better, values }) => {
    const known = values.filter((value) => value !== null);
    const best = better && known.length > 1 ? number(better < 0 ? Math.min(...known) : Math.max(...known)) : "";
    // Values that look the same count as equal: all of them are the best, or none if all runs have it.
    const marked = known.some((value) => number(value) !== best) ? best : "";
    return h("tr", {}, h("th", { scope: "row" }, name),
      ...values.map((value) => h("td", value !== null && number(value) === marked ? { class: "best" } : {}, number(value))));
  });
  return h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": label },
    h("table", {}, h("thead", {}, head), h("tbody", {}, ...body)));
}

function settings(view) {
  const wanted = $("find").value.trim().toLowerCase();
  const text = (value) => (value === null ? "-" : String(value));
  const unread = new Set(DATA.settings.unread);
  $("unread-label").hidden = !unread.size;
  const rows = DATA.settings.keys.filter((key) => key.toLowerCase().includes(wanted)).map((key) => {
    const values = view.chosen.map((run) => text(view.setting(run, key)));
    return { key, values, differs: new Set(values).size > 1 };
  }).filter((row) => row.differs || !$("differing").checked)
    .filter((row) => row.differs || wanted || !unread.has(row.key) || $("unread").checked);
  const head = h("tr", {}, h("th", { scope: "col" }, "key"), ...view.chosen.map((run) => h("th", { scope: "col" }, view.policyOf(run))));
  const body = rows.map(({ key, values, differs }) => h("tr", differs ? { class: "differs" } : {},
    h("th", { scope: "row" }, key), ...values.map((value) => h("td", {}, value))));
  if (!rows.length) return { node: h("p", { class: "missing" }, "No such key.") };
  return { node: h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "All settings" },
    h("table", {}, h("thead", {}, head), h("tbody", {}, ...body))) };
}

const titleOf = (id) => $(`${id}-title`).textContent;

// The present content of a section: its pieces, its charts, and what a picture of them needs.
async function drawSection(id) {
  const section = $(id);
  const target = section.querySelector(".chart");
  (drawn.get(id) || []).forEach((one) => one.finalize());
  const views = [];
  drawn.set(id, views);
  // A hidden section has no width.
  section.hidden = false;
  const view = viewOf(section);
  const none = !view.chosen.length && !(id === "overview" && view.runs.length);
  const chart = none ? { missing: "" } : SECTIONS[id](view);
  absent.delete(id);
  if (chart.missing !== undefined) absent.set(id, chart.missing);
  section.hidden = chart.missing !== undefined && (id !== "overview" || DATA.results.length === 1);
  contents();
  const items = [
    ...(chart.key || []).map((value) => [swatch(value), chart.said?.get(value) || value]),
    ...(chart.marks || []).map(([look, name]) => [lineMark(look), name]),
    ...(chart.legend || []).map(([name, colour]) => [square(colour), name]),
    ...(chart.gradient ? [[gradientMark(), chart.gradient]] : []),
  ];
  const pieces = items.length ? [legendOf(items)] : [];
  if (items.length && items.length === chart.key?.length && !chart.said) pieces[0].classList.add("policies");
  if ((chart.key || chart.panels) && view.curved.length < view.chosen.length) {
    pieces.unshift(h("p", { class: "note" }, `${view.curved.length} of ${view.chosen.length} are drawn, from the first to the last. Tick fewer above to see others.`));
  }
  if (chart.missing !== undefined) pieces.push(h("p", { class: "missing" }, chart.missing || "No run is chosen."));
  if (chart.node) pieces.push(chart.node);
  const place = h("div", {});
  if (chart.spec) pieces.push(place);
  const panels = (chart.panels || []).map((panel) => [panel, h("div", {})]);
  if (panels.length) {
    pieces.push(h("div", { class: "panels" }, ...panels.map(([panel, inner]) => h("div", {},
      h("h3", {}, panel.name), inner))));
  }
  if (chart.table) pieces.push(tableOf(chart, view, titleOf(id)));
  target.replaceChildren(...pieces);
  section.querySelector(".save").hidden = !chart.spec && !panels.length;
  pictures.set(id, { items, names: (chart.panels || []).map((panel) => panel.name) });
  if (chart.spec) await embed(place, chart.spec, chart.renderer, views);
  for (const [panel, inner] of panels) {
    if (pending.has(id)) return;
    await embed(inner, panel.spec(Math.max(220, inner.clientWidth)), panel.renderer, views);
  }
}

const absent = new Map(); // For each section with nothing to show, the reason.
const pictures = new Map(); // For each section, what its picture needs besides the charts.

// Lists the sections that have content and, at the end of the page, those that have none.
function contents() {
  const there = Object.keys(SECTIONS).filter((id) => !$(id).hidden);
  $("contents").replaceChildren(h("ul", {}, ...there.map((id) => {
    const link = h("a", { href: `#${id}` }, titleOf(id));
    link.onclick = (event) => {
      event.preventDefault();
      show(id);
    };
    return h("li", {}, link);
  })));
  const reasons = [...absent].filter(([, why]) => why).map(([id, why]) => `${titleOf(id)} (${why})`);
  $("absent").textContent = reasons.length ? `Nothing to show of: ${reasons.join("; ")}.` : "";
}

function show(id) {
  state.section = id;
  remember();
  $(id).scrollIntoView();
  $(id).focus({ preventScroll: true });
}

async function save(id, type) {
  const dims = others().map((name) => `${name} ${state.at.get(name)}`);
  const svgs = await Promise.all(drawn.get(id).map((one) => one.view.toSVG()));
  const { items, names } = pictures.get(id);
  const styles = getComputedStyle(root);
  const look = { font: theme(dark()).font };
  for (const name of ["text", "soft", "panel"]) look[name] = styles.getPropertyValue(`--${name}`);
  const about = id === "overview" ? "" : dims.join(", ");
  const picture = composed({ heading: titleOf(id), about, items, charts: svgs.map((svg, at) => [names[at], svg]), look });
  const blob = type === "svg" ? new Blob([picture.text], { type: "image/svg+xml" }) : await asPng(picture);
  download(`${id}.${type}`, blob);
}

// The sections still to be drawn, one at a time and in the order of the page. If a choice changes meanwhile, the
// sections that it affects are drawn again.
const pending = new Set();
let busy = false;
let turn = 0;

async function draw(ids = Object.keys(SECTIONS)) {
  ids.forEach((id) => pending.add(id));
  root.dataset.drawn = "";
  if (busy) return;
  busy = true;
  while (pending.size) {
    const id = Object.keys(SECTIONS).find((one) => pending.has(one));
    pending.delete(id);
    await drawSection(id);
  }
  busy = false;
  remember();
  turn += 1;
  root.dataset.drawn = String(turn);
}

function select(element, options, value, changed) {
  element.replaceChildren(...options.map(([name, text]) => h("option", { value: name }, text)));
  element.value = value;
  element.onchange = () => changed(element.value);
}

// For each other dimension, the values that occur together with those chosen before it.
function cases() {
  let runs = RUNS;
  const labels = others().map((name) => {
    const values = DIMENSIONS.get(name).values.filter((value) => runs.some((run) => run.labels[name] === value));
    if (!values.includes(state.at.get(name))) state.at.set(name, values[0]);
    runs = runs.filter((run) => run.labels[name] === state.at.get(name));
    const box = h("select", { "data-dimension": name });
    select(box, values.map((value) => [value, value]), state.at.get(name), (value) => {
      state.at.set(name, value);
      controls();
      [...$("cases").querySelectorAll("select")].find((one) => one.dataset.dimension === name).focus();
      draw();
    });
    return h("label", {}, `${name} `, box);
  });
  $("cases").replaceChildren(...labels);
}

function controls() {
  cases();
  const names = differing();
  $("colour-label").style.display = names.length < 2 ? "none" : "";
  select($("colour"), names.map((name) => [name, name]), state.colour, (value) => {
    state.colour = value;
    controls();
    draw();
  });
  const hidden = state.hidden.get(state.colour) || new Set();
  state.hidden.set(state.colour, hidden);
  const boxes = DIMENSIONS.get(state.colour).values.map((value) => {
    const box = h("input", { type: "checkbox", value });
    box.checked = !hidden.has(value);
    box.onchange = () => {
      if (box.checked) hidden.delete(value);
      else hidden.add(value);
      draw();
    };
    return h("label", {}, box, swatch(value), value);
  });
  $("policies").replaceChildren(h("legend", {}, state.colour), ...boxes);
}

// The metrics that at least one of the runs has.
function metrics() {
  const available = Object.keys(METRICS).filter((name) => RUNS.some((run) => METRICS[name][3](run, "all") !== null));
  if (!available.includes(state.metric)) [state.metric] = available;
  select($("metric"), available.map((name) => [name, METRICS[name][0]]), state.metric, (value) => {
    state.metric = value;
    draw(["overview"]);
  });
}

function setTheme(name) {
  root.dataset.theme = name;
  $("theme").textContent = name === "dark" ? "Light" : "Dark";
  controls();
  return draw();
}

const REDRAWN = { op: undefined, part: ["distribution", "percentiles", "tenants"], curve: ["distribution", "tenants"],
  rate: ["throughput"], merge: ["merges"], unit: ["misses"], cell: ["wear"], operations: ["flash"] };
for (const [name, ids] of Object.entries(REDRAWN)) {
  $(name).onchange = () => {
    state[name] = $(name).value;
    draw(ids);
  };
}
function causes() {
  const there = seriesCauses(RUNS);
  if (!there.includes(state.cause)) state.cause = "all";
  select($("cause"), [["all", "all causes"], ...there.map((cause) => [cause, cause])], state.cause, (value) => {
    state.cause = value;
    draw(["waf-time"]);
  });
}
$("study-label").style.display = DATA.studies.length < 2 ? "none" : "";
select($("study"), DATA.studies.map((study, at) => [at, study.name]), 0, (value) => {
  setStudy(value);
  metrics();
  causes();
  controls();
  draw();
});
for (const section of document.querySelectorAll("main > section")) {
  for (const button of section.querySelectorAll(".save button")) button.onclick = () => save(section.id, button.dataset.type);
}
$("find").oninput = () => draw(["settings"]);
$("differing").onchange = () => draw(["settings"]);
$("unread").onchange = () => draw(["settings"]);
$("metric-label").hidden = DATA.results.length === 1;
if ($("notes")) {
  $("to-notes").onclick = (event) => {
    event.preventDefault();
    $("notes").scrollIntoView();
    $("notes").focus({ preventScroll: true });
  };
}
$("controls").onsubmit = (event) => event.preventDefault();
const prefers = window.matchMedia("(prefers-color-scheme: dark)");
const preferred = () => state.theme || (prefers.matches ? "dark" : "light");
$("theme").onclick = () => {
  state.theme = dark() ? "light" : "dark";
  setTheme(state.theme);
};
prefers.onchange = () => setTheme(preferred());
let width = window.innerWidth;
let timer;
window.onresize = () => {
  clearTimeout(timer);
  if (window.innerWidth !== width) timer = setTimeout(() => { width = window.innerWidth; draw(); }, 150);
};
function begin() {
  recall();
  setTheme(preferred()).then(() => state.section && !$(state.section).hidden && show(state.section));
}
// The reader has changed the address in the same tab; `remember` itself causes no such event.
window.onhashchange = begin;
begin();
