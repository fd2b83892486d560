// The page: what is chosen, and drawing it.

const $ = (id) => document.getElementById(id);
const DATA = JSON.parse($("data").textContent);
const MOST_CASES = 30; // Of the overview.
const root = document.documentElement;

function h(tag, attributes = {}, ...children) {
  const svg = tag === "svg" || tag === "line";
  const element = svg ? document.createElementNS("http://www.w3.org/2000/svg", tag) : document.createElement(tag);
  Object.entries(attributes).forEach(([name, value]) => element.setAttribute(name, value));
  element.append(...children);
  return element;
}

// What is chosen. `shown`: of each dimension the values whose runs are drawn, where it is told apart by
// colour; `at`: the one value, where it is not.
let STUDY;
let RUNS = [];
let DIMENSIONS = new Map();
const state = {
  metric: "mean", op: "all", part: "latency", curve: "ccdf", merge: "count", unit: "entries", cell: "max",
  operations: "busy_ns", colour: "", hidden: new Map(), at: new Map(),
};

// Runs are looked at together in studies; what was chosen of a label holds in the next that has it.
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

function style(value) {
  const place = DIMENSIONS.get(state.colour).places[value];
  const colours = COLOURS[dark() ? "dark" : "light"];
  const again = Math.floor(place / colours.length) % DASHES.length;
  return { colour: colours[place % colours.length], dash: DASHES[again], opacity: [1, 0.6, 0.4, 0.25][again] };
}

// The runs that match the choice of a case, but for one dimension.
function matching(except) {
  const names = others().filter((name) => name !== except);
  return RUNS.filter((run) => names.every((name) => run.labels[name] === state.at.get(name)));
}

function scale(of, domain) {
  return { field: "policy", type: "nominal", scale: { domain, range: domain.map(of) }, legend: null, sort: domain };
}

// The runs of the overview: all; of very many those that match the first choices.
function withinReach() {
  let runs = RUNS;
  for (const name of others()) {
    if (new Set(runs.map((run) => others().map((one) => run.labels[one]).join("\n"))).size <= MOST_CASES) break;
    runs = runs.filter((run) => run.labels[name] === state.at.get(name));
  }
  return runs;
}

// What the charts' functions see of the page.
function viewOf(section) {
  const shown = policies();
  const visible = (run) => shown.includes(run.labels[state.colour]);
  const chosen = matching().filter(visible);
  const runs = withinReach().filter(visible);
  const here = shown.filter((value) => chosen.some((run) => run.labels[state.colour] === value));
  // What is the same in all of them needs no name.
  const cases = others().filter((name) => new Set(runs.map((run) => run.labels[name])).size > 1);
  return {
    ...state,
    runs,
    chosen,
    anyCache: matching("ftl.mapping_cache").filter(visible),
    policies: here,
    shown: shown.filter((value) => runs.some((run) => run.labels[state.colour] === value)),
    policyOf: (run) => run.labels[state.colour],
    caseOf: (run) => cases.map((name) => run.labels[name]).join(", "),
    caseName: cases.join(", "),
    setting: (run, key) => run.settings[key] ?? DATA.settings.common[key] ?? null,
    colours: (of = here) => scale((value) => style(value).colour, of),
    dashes: (of = here) => scale((value) => style(value).dash, of),
    opacities: (of = here) => scale((value) => style(value).opacity, of),
    width: Math.max(240, section.querySelector(".chart").clientWidth),
  };
}

const SECTIONS = {
  overview, distribution, percentiles, parts, time: overTime, waf, "waf-time": wafOverTime, merges, misses, wear, flash,
  figures, settings,
};

function swatch(value) {
  const { colour, dash } = style(value);
  return h("svg", { viewBox: "0 0 26 12", "aria-hidden": "true" },
    h("line", { x1: 0, x2: 26, y1: 6, y2: 6, stroke: colour, "stroke-width": 4, "stroke-dasharray": dash.join(" ") }));
}

const drawn = new Map(); // Views by section, to be ended before the next are drawn.
window.ftlabCharts = drawn; // With their specifications and data, for the console.

async function embed(target, spec, renderer, views) {
  const result = await window.vegaEmbed(target, { config: theme(dark()), ...spec }, {
    // Its expressions are interpreted: made into functions they would need eval, which the policy forbids.
    mode: "vega-lite", ast: true, renderer: renderer || "svg", actions: { export: true, source: false, compiled: false, editor: false },
    downloadFileName: target.closest("section").id, tooltip: { theme: dark() ? "dark" : "light" },
  });
  views.push(result);
}

function tableOf({ table, corner }, view) {
  const head = h("tr", {}, h("th", { scope: "col" }, corner),
    ...view.chosen.map((run) => h("th", { scope: "col" }, view.policyOf(run))));
  const body = table.map(({ name, better, values }) => {
    const known = values.filter((value) => value !== null);
    const best = better && known.length > 1 && Math.min(...known) < Math.max(...known)
      ? (better < 0 ? Math.min(...known) : Math.max(...known)) : undefined;
    return h("tr", {}, h("th", { scope: "row" }, name),
      ...values.map((value) => h("td", value === best ? { class: "best" } : {}, number(value))));
  });
  return h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "table" },
    h("table", {}, h("thead", {}, head), h("tbody", {}, ...body)));
}

function settings(view) {
  const wanted = $("find").value.trim().toLowerCase();
  const text = (value) => (value === null ? "-" : String(value));
  const rows = DATA.settings.keys.filter((key) => key.toLowerCase().includes(wanted)).map((key) => {
    const values = view.chosen.map((run) => text(view.setting(run, key)));
    return { key, values, differs: new Set(values).size > 1 };
  }).filter((row) => row.differs || !$("differing").checked);
  const head = h("tr", {}, h("th", { scope: "col" }, "key"), ...view.chosen.map((run) => h("th", { scope: "col" }, view.policyOf(run))));
  const body = rows.map(({ key, values, differs }) => h("tr", differs ? { class: "differs" } : {},
    h("th", { scope: "row" }, key), ...values.map((value) => h("td", {}, value))));
  if (!rows.length) return { missing: "No such key." };
  return { node: h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "settings" },
    h("table", {}, h("thead", {}, head), h("tbody", {}, ...body))) };
}

const VIRIDIS = "#440154, #482878, #3e4989, #31688e, #26828e, #1f9e89, #35b779, #6ece58, #b5de2b, #fde725";

async function drawSection(id) {
  const section = $(id);
  const target = section.querySelector(".chart");
  (drawn.get(id) || []).forEach((one) => one.finalize());
  const views = [];
  drawn.set(id, views);
  const view = viewOf(section);
  const chart = view.chosen.length || id === "overview" && view.runs.length
    ? SECTIONS[id](view) : { missing: "No run is chosen." };
  const pieces = [];
  section.toggleAttribute("data-missing", Boolean(chart.missing));
  if (chart.key) pieces.push(h("div", { class: "legend" }, ...chart.key.map((value) => h("span", {}, swatch(value), value))));
  if (chart.missing) pieces.push(h("p", { class: "missing" }, chart.missing));
  if (chart.legend) {
    pieces.push(h("div", { class: "legend" }, ...chart.legend.map(([name, colour]) => h("span", {}, h("i", { style: `background:${colour}` }), name))));
  }
  if (chart.gradient) {
    const [least, most, what] = chart.gradient;
    pieces.push(h("div", { class: "legend" }, h("span", {}, least, h("i", { style: `width:140px;background:linear-gradient(90deg, ${VIRIDIS})` }), `${most} ${what}`)));
  }
  if (chart.table) pieces.push(tableOf(chart, view));
  if (chart.node) pieces.push(chart.node);
  const place = h("div", {});
  if (chart.spec) pieces.push(place);
  const panels = (chart.panels || []).map((panel) => [panel, h("div", {})]);
  if (panels.length) {
    pieces.push(h("div", { class: "panels" }, ...panels.map(([panel, inner]) => h("div", {},
      h("h3", {}, swatch(view.policyOf(panel.run)), view.policyOf(panel.run)), inner))));
  }
  target.replaceChildren(...pieces);
  if (chart.spec) await embed(place, chart.spec, chart.renderer, views);
  for (const [panel, inner] of panels) {
    if (pending.has(id)) return;
    await embed(inner, panel.spec(Math.max(220, inner.clientWidth)), panel.renderer, views);
  }
}

// What is to be drawn, in the order of the page; one section at a time. What is chosen anew meanwhile is
// drawn anew.
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
  turn += 1;
  root.dataset.drawn = String(turn);
}

function select(element, options, value, changed) {
  element.replaceChildren(...options.map(([name, text]) => h("option", { value: name }, text)));
  element.value = value;
  element.onchange = () => changed(element.value);
}

// Of each other dimension the values that go with those chosen before it.
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

// The metrics that a run here has.
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

const REDRAWN = { op: undefined, part: ["distribution", "percentiles"], curve: ["distribution"],
  merge: ["merges"], unit: ["misses"], cell: ["wear"], operations: ["flash"] };
for (const [name, ids] of Object.entries(REDRAWN)) {
  const box = $(name);
  box.value = state[name];
  box.onchange = () => {
    state[name] = box.value;
    draw(ids);
  };
}
setStudy(0);
metrics();
$("study-label").style.display = DATA.studies.length < 2 ? "none" : "";
select($("study"), DATA.studies.map((study, at) => [at, study.name]), 0, (value) => {
  setStudy(value);
  metrics();
  controls();
  draw();
});
$("find").oninput = () => draw(["settings"]);
$("differing").onchange = () => draw(["settings"]);
$("controls").onsubmit = (event) => event.preventDefault();
$("theme").onclick = () => setTheme(dark() ? "light" : "dark");
const prefers = window.matchMedia("(prefers-color-scheme: dark)");
prefers.onchange = () => setTheme(prefers.matches ? "dark" : "light");
let width = window.innerWidth;
let timer;
window.onresize = () => {
  clearTimeout(timer);
  if (window.innerWidth !== width) timer = setTimeout(() => { width = window.innerWidth; draw(); }, 150);
};
setTheme(prefers.matches ? "dark" : "light");
