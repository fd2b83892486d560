// What each section shows, from the runs of a case: a Vega-Lite specification, panels of them, or a table.

// Okabe and Ito's colours but for yellow: told apart by all kinds of colour vision. A place beyond them
// takes them again, with another dash.
const COLOURS = {
  light: ["#6b6b6b", "#e69f00", "#cc79a7", "#56b4e9", "#009e73", "#d55e00", "#0072b2", "#8a6d1f"],
  dark: ["#b4b4b4", "#f0b429", "#dd8fbb", "#7cc7f2", "#2dc096", "#f0793a", "#4b9fe0", "#c8a95a"],
};
const DASHES = [[], [7, 3], [2, 2], [9, 3, 2, 3]];
const CAUSES = {
  host: "#8a8f98", gc: "#d55e00", wear: "#8a6d1f", map: "#0072b2", "gc-map": "#56b4e9", dir: "#b7dcf5",
  merge: "#cc79a7", pad: "#009e73",
};
const PARTS = { wait: "#e69f00", access: "#0072b2" };
const MERGES = {
  full: "#d55e00", partial: "#e69f00", switch: "#0072b2", padded_switch: "#009e73", cooperative: "#cc79a7",
};
const PERCENTILES = ["1.000000", "5.000000", "10.000000", "20.000000", "30.000000", "40.000000", "50.000000",
  "60.000000", "70.000000", "80.000000", "90.000000", "95.000000", "99.000000", "99.500000", "99.900000",
  "99.950000", "99.990000"];
const FLASH = { busy_ns: "busy time", reads: "page reads", programs: "page programs", erases: "block erases" };
const MERGE_FIELDS = { count: "merges", pages_copied: "pages copied", busy_ns: "time" };

const sum = (values) => values.reduce((a, b) => a + b, 0);
const total = (causes) => sum(Object.values(causes));

// The unit of time in which the largest value has at least two digits.
function timeUnit(values) {
  const most = Math.max(0, ...values.filter((v) => v !== null && v !== undefined));
  if (most >= 1e10) return { name: "s", ns: 1e9 };
  if (most >= 1e7) return { name: "ms", ns: 1e6 };
  if (most >= 1e4) return { name: "µs", ns: 1e3 };
  return { name: "ns", ns: 1 };
}

function number(value) {
  if (value === null || value === undefined) return "-";
  const size = Math.abs(value);
  if (size === 0 || Number.isInteger(value)) return value.toLocaleString("en-US");
  if (size < 1) return value.toLocaleString("en-US", { maximumSignificantDigits: 4 });
  const digits = Math.max(0, 4 - String(Math.trunc(size)).length);
  return value.toLocaleString("en-US", { minimumFractionDigits: digits, maximumFractionDigits: digits });
}

const latency = (part, field) => (run, op) => {
  const of = run[part][op];
  if (!of.count) return null;
  return /^[0-9]/.test(field) ? of.percentile_ns[field] : of[field];
};
// name, kind, which way is better (-1 less, 1 more, 0 neither), value, whether it differs by operation.
const METRICS = {
  mean: ["mean latency", "time", -1, latency("latency", "mean_ns"), true],
  wait: ["mean wait", "time", -1, latency("wait", "mean_ns"), true],
  access: ["mean access", "time", -1, latency("access", "mean_ns"), true],
  stddev: ["standard deviation of latency", "time", -1, latency("latency", "stddev_ns"), true],
  p50: ["median latency (50.00th)", "time", -1, latency("latency", "50.000000"), true],
  p95: ["95.00th percentile of latency", "time", -1, latency("latency", "95.000000"), true],
  p99: ["99.00th percentile of latency", "time", -1, latency("latency", "99.000000"), true],
  p999: ["99.90th percentile of latency", "time", -1, latency("latency", "99.900000"), true],
  p9999: ["99.99th percentile of latency", "time", -1, latency("latency", "99.990000"), true],
  max: ["greatest latency", "time", -1, latency("latency", "max_ns"), true],
  throughput: ["throughput", "MB/s", 1, (run) => run.throughput_bytes_per_s / 1e6],
  waf: ["write amplification", "", -1, (run) => run.waf.total],
  waf_gc: ["write amplification: garbage collection", "", -1, (run) => run.waf.gc],
  waf_map: ["write amplification: mappings", "", -1, (run) => run.waf.map],
  waf_merge: ["write amplification: merges", "", -1, (run) => run.waf.merge],
  hit: ["mapping-cache hit ratio", "%", 1, (run) => percent(run.mapping.hit_ratio)],
  treads: ["translation-page reads", "", -1, (run) => run.mapping.translation_reads],
  tprograms: ["translation-page programs", "", -1, (run) => run.mapping.translation_programs],
  erases: ["block erases", "", -1, (run) => total(run.flash.erases)],
  merges: ["merges", "", -1, (run) => sum(Object.values(run.merges).map((kind) => kind.count))],
  conflicts: ["requests in conflict", "%", -1, (run) => percent(run.conflicts.ratio)],
  prioritized: ["prioritized requests", "", 0, (run) => run.scheduler.prioritized],
  expired: ["dispatched by deadline", "", 0, (run) => run.scheduler.expired],
  wear: ["standard deviation of erase counts", "", -1, (run) => run.wear.stddev],
  busiest: ["utilization of the busiest chip or bus", "%", 0, (run) => percent(run.bottleneck && run.bottleneck.utilization)],
  elapsed: ["simulated time", "time", 0, (run) => run.elapsed_ns],
};
const percent = (share) => (share === null || share === undefined ? null : share * 100);

function metricOf(name, runs, op) {
  const [label, kind, better, get, byOp] = METRICS[name];
  const values = runs.map((run) => get(run, op));
  const unit = kind === "time" ? timeUnit(values) : { name: kind, ns: 1 };
  const suffix = byOp ? `, ${{ all: "reads and writes", read: "reads", write: "writes" }[op]}` : "";
  return { label: label + suffix, better, unit, values: values.map((v) => (v === null ? null : v / unit.ns)) };
}
const titled = (label, unit) => (unit ? `${label} (${unit})` : label);

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

// A bar for each run in each case.
function overview(view) {
  const { runs, width } = view;
  const metric = metricOf(view.metric, runs, view.op);
  const values = runs.map((run, at) => ({
    case: view.caseOf(run), policy: view.policyOf(run), value: metric.values[at], text: number(metric.values[at]),
  }));
  if (values.every((row) => row.value === null)) return { missing: "No run here has this metric." };
  const cases = [...new Set(values.map((row) => row.case))];
  const single = cases.length === 1;
  const policies = view.shown;
  const height = single ? Math.max(policies.length * 22, 110) : cases.length * (policies.length * 14 + 10);
  const y = single
    ? { y: { field: "policy", type: "nominal", sort: policies, title: view.colour, axis: { labelLimit: width / 3 } } }
    : {
      y: { field: "case", type: "nominal", sort: cases, title: view.caseName, axis: { labelLimit: width / 3 }, scale: { paddingInner: 0.2 } },
      yOffset: { field: "policy", sort: policies },
    };
  const most = Math.max(...metric.values.filter((v) => v !== null));
  const x = {
    field: "value", type: "quantitative", title: titled(metric.label, metric.unit.name),
    scale: { domain: [0, most * 1.14 || 1], nice: false }, axis: { tickCount: Math.max(3, width / 110) },
  };
  const tooltip = [
    ...(single ? [] : [{ field: "case", title: view.caseName }]), { field: "policy", title: view.colour },
    { field: "text", title: titled(metric.label, metric.unit.name) },
  ];
  return {
    spec: fit(width, height + 46, {
      description: `${metric.label} of every run`, data: { values },
      layer: [
        { mark: single ? { type: "bar", size: 18 } : { type: "bar" }, encoding: { ...y, x, color: view.colours(policies), fillOpacity: view.opacities(policies), tooltip } },
        { mark: { type: "text", align: "left", dx: 4 }, encoding: { ...y, x: { field: "value", type: "quantitative" }, text: { field: "text" } } },
      ],
    }),
  };
}

// Cumulative counts of the bins; of a result without them its percentiles. P(T < t) at each t.
function cumulative(run, part, op) {
  const of = run[part][op];
  if (!of.count) return [];
  const sources = op === "all" ? [run[part].read, run[part].write] : [of];
  if (!sources.every((source) => source.bins)) {
    const points = Object.entries(of.percentile_ns).map(([p, ns]) => [ns, Number(p) / 100]);
    return [[of.min_ns, 0], ...points, [of.max_ns, 1]];
  }
  const counts = new Map();
  for (const source of sources) {
    for (const [lower, count] of source.bins) counts.set(lower, (counts.get(lower) || 0) + count);
  }
  const points = [];
  let below = 0;
  for (const lower of [...counts.keys()].sort((a, b) => a - b)) {
    points.push([Math.max(lower, of.min_ns), below / of.count]);
    below += counts.get(lower);
  }
  points.push([of.max_ns, 1]);
  return points;
}

function distribution(view) {
  const { chosen, op, part, curve, width } = view;
  const curves = chosen.map((run) => cumulative(run, part, op));
  const unit = timeUnit(chosen.map((run) => run[part][op].max_ns));
  const least = 1e3; // A logarithmic axis has no zero: what did not wait stands at 1 us.
  const values = [];
  chosen.forEach((run, at) => {
    const name = view.policyOf(run);
    const points = curves[at];
    points.forEach(([ns, below], index) => {
      const slower = index === points.length - 1 ? 1 / run[part][op].count : 1 - below;
      const share = curve === "cdf" ? below * 100 : slower;
      values.push({ time: Math.max(ns, least) / unit.ns, share, policy: name, ns: number(ns / unit.ns) });
    });
  });
  if (!values.length) return { missing: "No request of this operation." };
  const few = Math.min(...values.map((row) => row.share), 0.01);
  const names = '{"0.5":"50.00th","0.1":"90.00th","0.01":"99.00th","0.001":"99.90th","0.0001":"99.99th","0.00001":"99.999th","0.000001":"99.9999th","1":"0.00th"}';
  const y = curve === "cdf"
    ? { field: "share", type: "quantitative", title: "requests as fast (%)", scale: { domain: [0, 100] } }
    : {
      field: "share", type: "quantitative", title: "slower requests, by percentile (log)",
      scale: { type: "log", domain: [few, 1] },
      axis: { values: [1, 0.5, 0.1, 0.01, 0.001, 0.0001, 0.00001, 0.000001].filter((v) => v >= few), labelExpr: `${names}[toString(datum.value)]` },
    };
  return {
    key: view.policies,
    spec: fit(width, 380, {
      description: `${curve.toUpperCase()} of the ${part} by ${view.colour}`, data: { values },
      mark: { type: "line", interpolate: "linear", strokeWidth: 2, clip: true },
      encoding: {
        x: {
          field: "time", type: "quantitative", title: `${part} (${unit.name}, log)`,
          scale: { type: "log", nice: false }, axis: { format: ",~g", tickCount: Math.max(3, width / 120) },
        },
        y, color: view.colours(), strokeDash: view.dashes(),
        tooltip: [{ field: "policy", title: view.colour }, { field: "ns", title: `${part} (${unit.name})` }, { field: "share", title: y.title, format: ".5~g" }],
      },
    }),
  };
}

function percentiles(view) {
  const { chosen, op, part } = view;
  const unit = timeUnit(chosen.map((run) => run[part][op].max_ns));
  const rows = PERCENTILES.map((p) => [`${Number(p).toFixed(2)}th`, -1, chosen.map((run) => run[part][op].percentile_ns[p] ?? null)]);
  rows.push(["max", -1, chosen.map(latencyMax(part, op))]);
  const table = rows.map(([name, better, values]) => ({ name, better, values: values.map((v) => (v === null ? null : v / unit.ns)) }));
  return { table, corner: `${part} (${unit.name})` };
}
const latencyMax = (part, op) => (run) => (run[part][op].count ? run[part][op].max_ns : null);

// Stacked bars, one for each run.
function stack(view, rows, colours, what, unit) {
  const { width } = view;
  if (!rows.some((row) => row.value > 0)) return null;
  const present = Object.keys(colours).filter((name) => rows.some((row) => row.kind === name && row.value > 0));
  const values = rows.filter((row) => present.includes(row.kind)).map((row) => ({ ...row, order: present.indexOf(row.kind), text: number(row.value) }));
  return {
    legend: present.map((name) => [name.replace("_", " "), colours[name]]),
    spec: fit(width, Math.max(view.policies.length * 24, 110) + 46, {
      description: `${what} by ${view.colour}`, data: { values }, mark: { type: "bar", size: 18 },
      encoding: {
        y: { field: "policy", type: "nominal", sort: view.policies, title: view.colour, axis: { labelLimit: width / 3 } },
        x: { field: "value", type: "quantitative", stack: "zero", title: titled(what, unit), axis: { tickCount: Math.max(3, width / 110) } },
        color: { field: "kind", type: "nominal", scale: { domain: present, range: present.map((name) => colours[name]) }, legend: null },
        order: { field: "order", type: "quantitative" },
        tooltip: [{ field: "policy", title: view.colour }, { field: "kind", title: "part" }, { field: "text", title: titled(what, unit) }],
      },
    }),
  };
}

function parts(view) {
  const { chosen, op } = view;
  const unit = timeUnit(chosen.map((run) => run.latency[op].mean_ns));
  const rows = chosen.flatMap((run) => Object.keys(PARTS).map((part) => ({
    policy: view.policyOf(run), kind: part, value: run[part][op].mean_ns / unit.ns,
  })));
  return stack(view, rows, PARTS, "mean latency", unit.name) || { missing: "No request of this operation." };
}

// Every so many intervals as one, so that a curve keeps to `most` points: the first index of each.
function intervals(series, most) {
  const count = series.host_pages.length;
  const step = Math.ceil(count / most);
  return Array.from({ length: Math.ceil(count / step) }, (_, at) => [at * step, Math.min((at + 1) * step, count)]);
}
const NO_SERIES = "No run here has it: run with --html, or set results.series.";

function overTime(view) {
  const { chosen, op, width } = view;
  const having = chosen.filter((run) => run.series);
  if (!having.length) return { missing: NO_SERIES };
  const ops = op === "all" ? ["read", "write"] : [op];
  const rows = having.flatMap((run) => {
    const { series } = run;
    return intervals(series, 256).map(([from, to]) => {
      let [count, ns] = [0, 0];
      for (let at = from; at < to; at += 1) {
        for (const one of ops) {
          count += series.requests[one][at];
          ns += series.requests[one][at] * (series.latency_mean_ns[one][at] || 0);
        }
      }
      return { policy: view.policyOf(run), time: (((from + to) / 2) * series.width_ns) / 1e9, ns: count ? ns / count : null, count };
    });
  }).filter((row) => row.count);
  if (!rows.length) return { missing: "No request of this operation." };
  const unit = timeUnit(rows.map((row) => row.ns));
  const values = rows.map((row) => ({ ...row, value: row.ns / unit.ns, text: number(row.ns / unit.ns) }));
  return {
    key: having.map(view.policyOf),
    spec: fit(width, 260, {
      description: `Mean latency over time by ${view.colour}`, data: { values },
      mark: { type: "line", strokeWidth: 1.5 },
      encoding: {
        x: { field: "time", type: "quantitative", title: "simulated time since the first arrival (s)", axis: { tickCount: Math.max(3, width / 110) } },
        y: { field: "value", type: "quantitative", title: `mean latency (${unit.name})` },
        color: view.colours(), strokeDash: view.dashes(),
        tooltip: [{ field: "policy", title: view.colour }, { field: "time", title: "time (s)", format: ".4~g" }, { field: "text", title: `mean latency (${unit.name})` }, { field: "count", title: "requests" }],
      },
    }),
  };
}

function waf(view) {
  const rows = view.chosen.filter((run) => run.waf.total !== null).flatMap((run) => {
    const programs = total(run.flash.programs);
    return Object.entries(run.flash.programs).map(([kind, n]) => ({ policy: view.policyOf(run), kind, value: (n / programs) * run.waf.total }));
  });
  return stack(view, rows, CAUSES, "pages programmed per page written", "") || { missing: "Nothing was written." };
}

function wafOverTime(view) {
  const having = view.chosen.filter((run) => run.series);
  if (!having.length) return { missing: NO_SERIES };
  const of = (run) => {
    const { series } = run;
    return intervals(series, 64).flatMap(([from, to]) => {
      const host = sum(series.host_pages.slice(from, to));
      if (!host) return [];
      let below = 0;
      return Object.keys(CAUSES).filter((kind) => series.programs[kind]).map((kind) => {
        const value = (sum(series.programs[kind].slice(from, to)) * series.logical_pages_per_page) / host;
        below += value;
        return { kind, from: (from * series.width_ns) / 1e9, to: (to * series.width_ns) / 1e9, value, low: below - value, high: below };
      });
    }).filter((row) => row.value);
  };
  const rows = having.map(of);
  const present = Object.keys(CAUSES).filter((name) => rows.some((own) => own.some((row) => row.kind === name)));
  if (!present.length) return { missing: "Nothing was written." };
  const highest = Math.max(...rows.flat().map((row) => row.high));
  return {
    legend: present.map((name) => [name, CAUSES[name]]),
    panels: having.map((run, at) => ({
      run,
      spec: (width) => fit(width, 190, {
        description: `Write amplification over time, ${view.policyOf(run)}`,
        data: { values: rows[at].map((row) => ({ ...row, text: number(row.value) })) }, mark: { type: "rect" },
        encoding: {
          x: { field: "from", type: "quantitative", title: "simulated time (s)", scale: { domain: [0, run.elapsed_ns / 1e9], nice: false, clamp: true }, axis: { tickCount: 4 } },
          x2: { field: "to" },
          y2: { field: "high" },
          y: { field: "low", type: "quantitative", title: "pages per page written", scale: { domain: [0, highest] }, axis: { tickCount: 4 } },
          color: { field: "kind", type: "nominal", scale: { domain: present, range: present.map((name) => CAUSES[name]) }, legend: null },
          tooltip: [{ field: "from", title: "from (s)", format: ".4~g" }, { field: "to", title: "to (s)", format: ".4~g" }, { field: "kind", title: "cause" }, { field: "text", title: "pages per page written" }],
        },
      }),
    })),
  };
}

function merges(view) {
  const field = view.merge;
  const all = view.chosen.flatMap((run) => Object.entries(run.merges).map(([kind, merge]) => ({ policy: view.policyOf(run), kind, value: merge[field] })));
  const unit = field === "busy_ns" ? timeUnit(all.map((row) => row.value)) : { name: "", ns: 1 };
  return stack(view, all.map((row) => ({ ...row, value: row.value / unit.ns })), MERGES, MERGE_FIELDS[field], unit.name)
    || { missing: "No merges: only the hybrid FTLs (bast, fast) merge blocks." };
}

function flash(view) {
  const field = view.operations;
  const unit = field === "busy_ns" ? timeUnit(view.chosen.map((run) => total(run.flash.busy_ns))) : { name: "", ns: 1 };
  const rows = view.chosen.flatMap((run) => Object.entries(run.flash[field]).map(([kind, n]) => ({ policy: view.policyOf(run), kind, value: n / unit.ns })));
  return stack(view, rows, CAUSES, FLASH[field], unit.name) || { missing: `No ${FLASH[field]}.` };
}

const SIZES = { B: 1, KIB: 2 ** 10, MIB: 2 ** 20, GIB: 2 ** 30, TIB: 2 ** 40, KB: 1e3, MB: 1e6, GB: 1e9, TB: 1e12 };
function bytesOf(text) {
  const found = /^([0-9.]+) *([A-Za-z]+)$/.exec(String(text));
  return found && SIZES[found[2].toUpperCase()] ? Number(found[1]) * SIZES[found[2].toUpperCase()] : null;
}
const SIZE_LABEL = "datum.value >= 1073741824 ? format(datum.value / 1073741824, '~g') + ' GiB' : datum.value >= 1048576 ? format(datum.value / 1048576, '~g') + ' MiB' : datum.value >= 1024 ? format(datum.value / 1024, '~g') + ' KiB' : format(datum.value, '~g') + ' B'";

function misses(view) {
  const having = view.chosen.filter((run) => run.miss_curve && run.miss_curve.lookups);
  if (!having.length) {
    return { missing: "No run here has it: an FTL with a mapping cache, run with --html or results.miss_curve, does." };
  }
  const values = having.flatMap((run) => {
    const curve = run.miss_curve[view.unit];
    const least = Math.max(...curve.capacity_bytes) / 4096;
    return curve.capacity_bytes.map((bytes, at) => ({ policy: view.policyOf(run), bytes, ratio: curve.miss_ratio[at] }))
      .filter(({ bytes }) => bytes >= least);
  });
  const points = view.anyCache.map((run) => ({
    policy: view.policyOf(run), bytes: bytesOf(view.setting(run, "ftl.mapping_cache")),
    ratio: run.mapping.hit_ratio === null ? null : 1 - run.mapping.hit_ratio,
  })).filter((row) => row.bytes && row.ratio !== null);
  const [x, y] = [{
    field: "bytes", type: "quantitative", title: "capacity of the cache (bytes, log)", scale: { type: "log", base: 2, nice: false },
    axis: { labelExpr: SIZE_LABEL, tickCount: Math.max(3, view.width / 110) },
  }, { field: "ratio", type: "quantitative", title: "miss ratio", scale: { domain: [0, Math.max(1, ...points.map((row) => row.ratio))] } }];
  const tooltip = [{ field: "policy", title: view.colour }, { field: "bytes", title: "capacity (bytes)", format: "," }, { field: "ratio", title: "miss ratio", format: ".4f" }];
  return {
    key: having.map(view.policyOf),
    spec: fit(view.width, 320, {
      description: `Miss ratio by capacity of the mapping cache and by ${view.colour}`,
      layer: [
        { data: { values }, mark: { type: "line", strokeWidth: 2 }, encoding: { x, y, color: view.colours(), strokeDash: view.dashes(), tooltip } },
        { data: { values: points }, mark: { type: "point", filled: true, size: 70, opacity: 1 }, encoding: { x, y, color: view.colours(), tooltip } },
      ].filter((layer) => layer.data.values.length),
    }),
  };
}

// Where a map's cells stand: a row for each chip, or of few chips rows of 64.
function cells(map, which) {
  const field = map[which] ? which : "max"; // Of single blocks the mean is the count itself.
  const wide = map[field].length >= 8 || map[field][0].length <= 64;
  const columns = wide ? map[field][0].length : 64;
  const rows = [];
  map[field].forEach((values, chip) => values.forEach((value, at) => {
    const first = at * map.blocks_per_cell;
    const last = Math.min(first + map.blocks_per_cell, map.blocks_per_unit) - 1;
    const row = wide ? chip : chip * Math.ceil(values.length / columns) + Math.floor(at / columns);
    rows.push({ column: at % columns, row, value, place: `${map.unit} ${chip}, block${first === last ? ` ${first}` : `s ${first} to ${last}`}` });
  }));
  return { rows, columns, wide, lines: 1 + Math.max(...rows.map((row) => row.row)) };
}

function wear(view) {
  const having = view.chosen.filter((run) => run.erase_map);
  if (!having.length) return { missing: "No run here has it: run with --html, or set results.erase_map." };
  const maps = having.map((run) => cells(run.erase_map, view.cell));
  let [least, most] = [Infinity, 0];
  maps.forEach(({ rows }) => rows.forEach(({ value }) => { least = Math.min(least, value); most = Math.max(most, value); }));
  if (most === 0) return { missing: "No block was erased." };
  if (least === most) return { missing: `Every block was erased ${number(most)} times.` };
  return {
    gradient: [number(least), number(most), "erasures of a block"],
    panels: having.map((run, at) => {
      const { rows, columns, lines, wide } = maps[at];
      const per = run.erase_map.blocks_per_cell;
      const shade = { field: "value", type: "quantitative", scale: { scheme: "viridis", domain: [least, most] }, legend: null };
      const each = per === 1 ? "a block" : `${per} blocks`;
      return {
        run, renderer: "canvas",
        spec: (width) => fit(width, Math.min(320, Math.max(90, lines * 12)) + 44, {
          description: `Erase counts, ${view.policyOf(run)}`, data: { values: rows },
          transform: [{ calculate: "datum.column + 1", as: "right" }, { calculate: "datum.row + 1", as: "below" }],
          mark: { type: "rect", strokeWidth: 1 },
          encoding: {
            x: { field: "column", type: "quantitative", title: `cells of a row (each ${each})`, scale: { domain: [0, columns], nice: false }, axis: { grid: false, tickCount: 4 } },
            x2: { field: "right" },
            y: { field: "row", type: "quantitative", title: wide ? run.erase_map.unit : `rows of ${columns} cells`, scale: { domain: [0, lines], reverse: true, nice: false }, axis: { grid: false, tickCount: 4, format: "d" } },
            y2: { field: "below" },
            color: shade, stroke: shade,
            tooltip: [{ field: "place", title: "cell" }, { field: "value", title: "erasures" }],
          },
        }),
      };
    }),
  };
}

function figures(view) {
  const rows = Object.keys(METRICS).map((name) => {
    const { label, better, unit, values } = metricOf(name, view.chosen, view.op);
    return { name: titled(label, unit.name), better, values };
  });
  return { table: rows.filter((row) => row.values.some((v) => v !== null)), corner: "metric" };
}
