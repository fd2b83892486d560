// What each section shows of a case's runs: a Vega-Lite specification, a panel for each of several, or a table.

// A bar for each run in each case.
function overview(view) {
  const { runs, width } = view;
  if (DATA.results.length === 1) return { missing: "" }; // A single bar says no more than a row of the table.
  const metric = metricOf(view.metric, runs, view.op, view.time);
  const values = runs.map((run, at) => ({
    case: view.caseOf(run), policy: view.policyOf(run), value: metric.values[at], text: number(metric.values[at]),
  }));
  if (values.every((row) => row.value === null)) return { missing: "no run here has this metric" };
  const cases = [...new Set(values.map((row) => row.case))];
  const single = cases.length === 1;
  const policies = view.shown;
  const height = single ? Math.max(policies.length * 22, 110) : cases.length * (policies.length * 14 + 10);
  const y = single
    ? { y: { field: "policy", type: "nominal", sort: policies, title: view.colour, axis: names(width) } }
    : {
      y: { field: "case", type: "nominal", sort: cases, title: view.caseName, axis: names(width), scale: { paddingInner: 0.2 } },
      yOffset: { field: "policy", sort: policies },
    };
  const most = Math.max(...metric.values.filter((v) => v !== null));
  const x = {
    field: "value", type: "quantitative", title: broken(titled(metric.label, metric.unit.name), width),
    scale: { domain: [0, most * 1.14 || 1], nice: false }, axis: { tickCount: Math.max(3, width / 110) },
  };
  const tooltip = [
    ...(single ? [] : [{ field: "case", title: view.caseName }]), { field: "policy", title: view.colour },
    { field: "text", title: titled(metric.label, metric.unit.name) },
  ];
  return {
    legend: single ? [] : policies.map((policy) => [policy, view.colourOf(policy)]),
    spec: fit(width, height + 46, {
      description: `${metric.label} of every run`, data: { values },
      layer: [
        { mark: single ? { type: "bar", size: 18 } : { type: "bar" }, encoding: { ...y, x, color: view.colours(policies), fillOpacity: view.opacities(policies), tooltip } },
        { mark: { type: "text", align: "left", dx: 4 }, encoding: { ...y, x: { field: "value", type: "quantitative" }, text: { field: "text" } } },
      ],
    }),
  };
}

// P(T < t) at each t, computed from the bins or, for a result without bins, from its percentiles.
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
  const { curved: chosen, op, part, curve, width } = view;
  const curves = chosen.map((run) => cumulative(run, part, op));
  const unit = view.time;
  const least = 1e3; // A logarithmic axis has no zero: requests that did not wait are drawn at 1 us.
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
  if (!values.length) return { missing: "no request of this operation" };
  const few = Math.min(...values.map((row) => row.share), 0.01);
  const names = '{"0.5":"50th","0.1":"90th","0.01":"99th","0.001":"99.9th","0.0001":"99.99th","0.00001":"99.999th","0.000001":"99.9999th","1":"0th"}';
  const y = curve === "cdf"
    ? { field: "share", type: "quantitative", title: "requests as fast (%)", scale: { domain: [0, 100] } }
    : {
      field: "share", type: "quantitative", title: "slower requests, by percentile (log)",
      scale: { type: "log", domain: [few, 1] },
      axis: { values: [1, 0.5, 0.1, 0.01, 0.001, 0.0001, 0.00001, 0.000001].filter((v) => v >= few), labelExpr: `${names}[toString(datum.value)]` },
    };
  return {
    key: chosen.map(view.policyOf),
    spec: fit(width, 380, {
      description: `${curve.toUpperCase()} of the ${part} by ${view.colour}`,
      ...lines(view, values, {
        x: {
          field: "time", type: "quantitative", title: `${part} (${unit.name}, log)`,
          scale: { type: "log", nice: false }, axis: { format: ",~g", tickCount: Math.max(3, width / 120) },
        },
        y,
        tooltip: [{ field: "policy", title: view.colour }, { field: "ns", title: `${part} (${unit.name})` }, { field: "share", title: y.title, format: ".5~g" }],
      }),
    }),
  };
}

function percentiles(view) {
  const { chosen, op, part } = view;
  const unit = view.time;
  const rows = PERCENTILES.map((p) => [ordinal(p), -1, chosen.map((run) => run[part][op].percentile_ns[p] ?? null)]);
  rows.push(["max", -1, chosen.map(latencyMax(part, op))]);
  const table = rows.map(([name, better, values]) => ({ name, better, values: values.map((v) => (v === null ? null : v / unit.ns)) }));
  return { table, corner: `${part} (${unit.name})` };
}
const latencyMax = (part, op) => (run) => (run[part][op].count ? run[part][op].max_ns : null);

// The parts of a single run: a bar for each, or a sentence if there is only one.
function apart(view, rows, colours, what, unit) {
  const own = rows.map((row) => ({ ...row, kind: row.kind.replace("_", " "), colour: colours[row.kind], text: number(row.value) }));
  if (own.length === 1) return { node: h("p", {}, `${titled(what, unit)}: ${own[0].text}, all of it ${own[0].kind}.`) };
  const kinds = own.map((row) => row.kind);
  const y = { field: "kind", type: "nominal", sort: kinds, title: "part", axis: names(view.width) };
  const most = Math.max(...own.map((row) => row.value));
  const x = {
    field: "value", type: "quantitative", title: broken(titled(what, unit), view.width),
    scale: { domain: [0, most * 1.14], nice: false }, axis: { tickCount: Math.max(3, view.width / 110) },
  };
  return {
    spec: fit(view.width, Math.max(own.length * 24, 80) + 46, {
      description: what, data: { values: own },
      layer: [
        { mark: { type: "bar", size: 18 }, encoding: { y, x, color: { field: "colour", type: "nominal", scale: null }, tooltip: [{ field: "kind", title: "part" }, { field: "text", title: titled(what, unit) }] } },
        { mark: { type: "text", align: "left", dx: 4 }, encoding: { y, x: { field: "value", type: "quantitative" }, text: { field: "text" } } },
      ],
    }),
  };
}

// Stacked bars, one for each run.
function stack(view, rows, colours, what, unit, totals = []) {
  const { width } = view;
  if (!rows.some((row) => row.value > 0)) return null;
  const present = Object.keys(colours).filter((name) => rows.some((row) => row.kind === name && row.value > 0));
  if (view.policies.length === 1) return apart(view, present.map((name) => rows.find((row) => row.kind === name)), colours, what, unit);
  const values = rows.filter((row) => present.includes(row.kind)).map((row) => ({ ...row, order: present.indexOf(row.kind), text: number(row.value) }));
  const y = { field: "policy", type: "nominal", sort: view.policies, title: view.colour, axis: names(width) };
  return {
    legend: present.map((name) => [name.replace("_", " "), colours[name]]),
    spec: fit(width, Math.max(view.policies.length * 24, 110) + 46, {
      description: `${what} by ${view.colour}`,
      layer: [{
        data: { values }, mark: { type: "bar", size: 18 },
        encoding: {
          y, x: { field: "value", type: "quantitative", stack: "zero", title: broken(titled(what, unit), width), axis: { tickCount: Math.max(3, width / 110) } },
          color: { field: "kind", type: "nominal", scale: { domain: present, range: present.map((name) => colours[name]) }, legend: null },
          order: { field: "order", type: "quantitative" },
          tooltip: [{ field: "policy", title: view.colour }, { field: "kind", title: "part" }, { field: "text", title: titled(what, unit) }],
        },
      }, {
        data: { values: totals }, mark: { type: "text", align: "left", dx: 4 },
        encoding: { y, x: { field: "value", type: "quantitative" }, text: { field: "text" } },
      }].filter((layer) => layer.data.values.length),
    }),
  };
}

function parts(view) {
  const { chosen, op } = view;
  if (view.policies.length === 1) return partsByOperation(view);
  const unit = view.time;
  const rows = chosen.flatMap((run) => Object.keys(PARTS).map((part) => ({
    policy: view.policyOf(run), kind: part, value: run[part][op].mean_ns / unit.ns,
  })));
  return stack(view, rows, PARTS, "mean latency", unit.name) || { missing: "no request of this operation" };
}

// A bar for each operation of the only run.
const OPERATIONS = { read: "reads", write: "writes", all: "reads and writes" };
function partsByOperation(view) {
  const ops = Object.keys(OPERATIONS).filter((op) => view.chosen[0].latency[op].count);
  const rows = ops.flatMap((op) => Object.keys(PARTS).map((part) => ({
    policy: OPERATIONS[op], kind: part, value: view.chosen[0][part][op].mean_ns / view.time.ns,
  })));
  const among = { ...view, colour: "operation", policies: ops.map((op) => OPERATIONS[op]) };
  if (ops.length === 2) [among.policies, ops.length] = [among.policies.slice(0, 1), 1]; // "all" repeats the only one.
  return stack(among, rows.filter((row) => among.policies.includes(row.policy)), PARTS, "mean latency", view.time.name) || { missing: "no request of this operation" };
}

// Groups runs whose curves differ nowhere by more than `most`; each group is drawn as its first curve.
const ALIKE = 0.01;
function alike(runs, curveOf, most) {
  const groups = [];
  for (const run of runs) {
    const curve = curveOf(run);
    const off = (group) => (group.curve.length === curve.length ? Math.max(0, ...curve.map((value, at) => Math.abs(value - group.curve[at]))) : Infinity);
    const group = groups.find((one) => off(one) <= most);
    if (group) {
      group.off = Math.max(group.off, off(group));
      group.runs.push(run);
    } else groups.push({ run, curve, runs: [run], off: 0 });
  }
  return groups;
}
const named = (view, { runs, off }) => runs.map(view.policyOf).join(", ") + (off ? ` (drawn as the first; the others within ${number(off)})` : "");
const keyOf = (view, groups) => ({
  key: groups.map(({ run }) => view.policyOf(run)),
  said: new Map(groups.map((group) => [view.policyOf(group.run), named(view, group)])),
});

// Joins neighbouring intervals so that a curve has at most `most` points; returns the bounds of each group.
function intervals(series, most) {
  const count = series.host_pages.length;
  const step = Math.ceil(count / most);
  return Array.from({ length: Math.ceil(count / step) }, (_, at) => [at * step, Math.min((at + 1) * step, count)]);
}
const timeAxis = (width) => ({
  field: "time", type: "quantitative", title: "simulated time since the first arrival (s)", scale: { nice: false }, axis: { tickCount: Math.max(3, width / 110) },
});
const NO_SERIES = "not measured: run with --html, or set results.series";

// Curves over time: in one chart or, where more than two would hide each other, a panel for each run.
function curvesOverTime(view, having, values, title, what, more) {
  const most = Math.max(...values.map((row) => row.value));
  const encoding = (width) => ({
    x: timeAxis(width), y: { field: "value", type: "quantitative", title, scale: { domain: [0, most || 1] } },
    tooltip: [{ field: "policy", title: view.colour }, { field: "time", title: "time (s)", format: ".4~g" }, { field: "text", title }, ...more],
  });
  const description = `${what} over time by ${view.colour}`;
  if (having.length <= 2) {
    const spec = fit(view.width, 260, { description, ...lines(view, values, encoding(view.width), { strokeWidth: 1.5 }) });
    return { key: having.map(view.policyOf), spec };
  }
  const panels = having.map((run) => {
    const name = view.policyOf(run);
    const own = values.filter((row) => row.policy === name);
    return { name, spec: (width) => fit(width, 170, {
      description: `${description}: ${name}`, data: { values: own }, mark: { type: "line", strokeWidth: 1.5, clip: true },
      encoding: { ...encoding(width), color: view.colours() },
    }) };
  });
  return { panels };
}
const middle = (series, from, to) => (((from + to) / 2) * series.width_ns) / 1e9;

function overTime(view) {
  const { curved, op } = view;
  const having = curved.filter((run) => run.series);
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
      return { policy: view.policyOf(run), time: middle(series, from, to), ns: count ? ns / count : null, count };
    });
  }).filter((row) => row.count);
  if (!rows.length) return { missing: "no request of this operation" };
  const unit = view.time;
  const values = rows.map((row) => ({ ...row, value: row.ns / unit.ns, text: number(row.ns / unit.ns) }));
  return curvesOverTime(view, having, values, `mean latency (${unit.name})`, "Mean latency", [{ field: "count", title: "requests" }]);
}

// Intervals in which nothing completed are drawn: they are what a stall looks like.
function throughput(view) {
  const having = view.curved.filter((run) => run.series);
  if (!having.length) return { missing: NO_SERIES };
  const ops = view.op === "all" ? ["read", "write"] : [view.op];
  const bytes = view.rate === "written";
  const values = having.flatMap((run) => {
    const { series } = run;
    const page = bytesOf(view.setting(run, "ftl.logical_page")) || bytesOf(view.setting(run, "flash.page"));
    return intervals(series, 256).map(([from, to]) => {
      const seconds = ((to - from) * series.width_ns) / 1e9;
      const of = (counts) => sum(counts.slice(from, to));
      const done = bytes ? (of(series.host_pages) * page) / 1e6 : sum(ops.map((one) => of(series.requests[one])));
      return { policy: view.policyOf(run), time: middle(series, from, to), seconds, value: done / seconds, text: number(done / seconds) };
    });
  });
  if (!values.some((row) => row.value)) return { missing: bytes ? "nothing was written" : "no request of this operation" };
  const title = bytes ? "written by the host (MB/s)" : "requests a second (IOPS)";
  return curvesOverTime(view, having, values, title, "Throughput", []);
}

// The page written for the host itself is left out: it would make up most of every bar and hide the differences.
function waf(view) {
  const having = view.chosen.filter((run) => run.waf.total !== null);
  const rows = having.flatMap((run) => {
    const programs = total(run.flash.programs);
    return Object.entries(run.flash.programs).filter(([kind]) => kind !== "host").map(([kind, n]) => ({ policy: view.policyOf(run), kind, value: (n / programs) * run.waf.total }));
  });
  const totals = having.map((run) => {
    const own = rows.filter((row) => row.policy === view.policyOf(run));
    return { policy: view.policyOf(run), value: sum(own.map((row) => row.value)), text: `WAF ${number(run.waf.total)}` };
  });
  const most = Math.max(...totals.map((row) => row.value));
  const single = view.policies.length === 1;
  const what = "pages programmed for other causes, per page written";
  const chart = stack(view, rows, CAUSES, single ? `${what}, WAF ${number(having[0]?.waf.total)}` : what, "", totals);
  if (!chart) return { missing: "nothing was programmed but what the host wrote" };
  if (single) return chart;
  // The axis leaves room for the text next to the bars.
  chart.spec.layer[0].encoding.x.scale = { domain: [0, most * (1 + 90 / (view.width * 0.7))], nice: false };
  return chart;
}

// The causes that a chart of amplification over time can show one by one, besides the sum of all.
const seriesCauses = (runs) => Object.keys(CAUSES).filter((kind) => kind !== "host" && runs.some((run) => run.series && run.series.programs[kind]));

function wafOverTime(view) {
  const having = view.curved.filter((run) => run.series);
  if (!having.length) return { missing: NO_SERIES };
  const cause = seriesCauses(having).includes(view.cause) ? view.cause : "all";
  const curves = new Map(having.map((run) => {
    const { series } = run;
    const programs = cause === "all" ? Object.values(series.programs) : [series.programs[cause] || []];
    return [run, intervals(series, 96).flatMap(([from, to]) => {
      const host = sum(series.host_pages.slice(from, to));
      const pages = sum(programs.map((values) => sum(values.slice(from, to)))) * series.logical_pages_per_page;
      const time = (((from + to) / 2) * series.width_ns) / 1e9;
      return host ? [{ policy: view.policyOf(run), time, value: pages / host, text: number(pages / host), host }] : [];
    })];
  }));
  const groups = alike(having, (run) => curves.get(run).map((row) => row.value), ALIKE);
  const rows = groups.flatMap(({ run }) => curves.get(run));
  if (!rows.length) return { missing: "nothing was written" };
  const title = cause === "all" ? "write amplification" : `pages programmed (${cause}) per page written`;
  return {
    ...keyOf(view, groups),
    spec: fit(view.width, 260, {
      description: `Write amplification over time by ${view.colour}`,
      ...lines(view, rows, {
        x: timeAxis(view.width),
        y: { field: "value", type: "quantitative", title, scale: { zero: false }, axis: { tickCount: 5 } },
        tooltip: [{ field: "policy", title: view.colour }, { field: "time", title: "time (s)", format: ".4~g" }, { field: "text", title }, { field: "host", title: "pages written" }],
      }, { strokeWidth: 1.5 }),
    }),
  };
}

function merges(view) {
  const field = view.merge;
  const all = view.chosen.flatMap((run) => Object.entries(run.merges).map(([kind, merge]) => ({ policy: view.policyOf(run), kind, value: merge[field] })));
  const unit = field === "busy_ns" ? timeUnit(all.map((row) => row.value)) : { name: "", ns: 1 };
  return stack(view, all.map((row) => ({ ...row, value: row.value / unit.ns })), MERGES, MERGE_FIELDS[field], unit.name)
    || { missing: "only the hybrid FTLs (bast, fast) merge blocks" };
}

function flash(view) {
  const field = view.operations;
  const unit = field === "busy_ns" ? timeUnit(view.chosen.map((run) => total(run.flash.busy_ns))) : { name: "", ns: 1 };
  const rows = view.chosen.flatMap((run) => Object.entries(run.flash[field]).map(([kind, n]) => ({ policy: view.policyOf(run), kind, value: n / unit.ns })));
  return stack(view, rows, CAUSES, FLASH[field], unit.name) || { missing: `no ${FLASH[field]}` };
}

const SIZES = { B: 1, KIB: 2 ** 10, MIB: 2 ** 20, GIB: 2 ** 30, TIB: 2 ** 40, KB: 1e3, MB: 1e6, GB: 1e9, TB: 1e12 };
function bytesOf(text) {
  const found = /^([0-9.]+) *([A-Za-z]+)$/.exec(String(text));
  return found && SIZES[found[2].toUpperCase()] ? Number(found[1]) * SIZES[found[2].toUpperCase()] : null;
}
const SIZE_LABEL = "datum.value >= 1073741824 ? format(datum.value / 1073741824, '~g') + ' GiB' : datum.value >= 1048576 ? format(datum.value / 1048576, '~g') + ' MiB' : datum.value >= 1024 ? format(datum.value / 1024, '~g') + ' KiB' : format(datum.value, '~g') + ' B'";

function misses(view) {
  const having = view.curved.filter((run) => run.miss_curve && run.miss_curve.lookups);
  if (!having.length) {
    return { missing: "not measured: it takes an FTL with a mapping cache, and --html or results.miss_curve" };
  }
  const groups = alike(having, (run) => run.miss_curve[view.unit].miss_ratio, ALIKE);
  const values = groups.flatMap(({ run }) => {
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
    ...keyOf(view, groups),
    spec: fit(view.width, 320, {
      description: `Miss ratio by capacity of the mapping cache and by ${view.colour}`,
      layer: [
        { data: { values }, mark: { type: "line", strokeWidth: 2 }, encoding: { x, y, color: view.colours(), strokeDash: view.dashes(), tooltip } },
        { data: { values: points }, mark: { type: "point", filled: true, size: 70, opacity: 1 }, encoding: { x, y, color: view.colours(), shape: view.shapes(), tooltip } },
      ].filter((layer) => layer.data.values.length),
    }),
  };
}

// The places of a map's cells: a row for each chip or, if there are few chips, rows of 64 cells.
function cells(map, which) {
  const field = map[which] ? which : "max"; // Cells of single blocks have only a maximum, which is also their mean.
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
  const measured = view.curved.filter((run) => run.erase_map);
  if (!measured.length) return { missing: "not measured: run with --html, or set results.erase_map" };
  const groups = alike(measured, (run) => run.erase_map.max.flat(), 0);
  const having = groups.map(({ run }) => run);
  const maps = having.map((run) => cells(run.erase_map, view.cell));
  let [least, most] = [Infinity, 0];
  maps.forEach(({ rows }) => rows.forEach(({ value }) => { least = Math.min(least, value); most = Math.max(most, value); }));
  if (most === 0) return { missing: "no block was erased" };
  if (least === most) return { missing: `every block was erased ${number(most)} times` };
  return {
    gradient: `${number(least)} to ${number(most)} erasures of a block`,
    panels: having.map((run, at) => {
      const { rows, columns, lines, wide } = maps[at];
      const per = run.erase_map.blocks_per_cell;
      const shade = { field: "value", type: "quantitative", scale: { scheme: "viridis", domain: [least, most] }, legend: null };
      const each = per === 1 ? "a block" : `${per} blocks`;
      return {
        name: named(view, groups[at]), renderer: "canvas",
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

// The table of figures: all rows have the same unit of time; rows without values are left out.
function figures(view) {
  const unit = view.time;
  const rows = Object.keys(METRICS).map((name) => {
    const metric = metricOf(name, view.chosen, view.op, unit);
    return { name: titled(metric.label, metric.unit.name), better: metric.better, values: metric.values };
  });
  return { table: rows.filter((row) => row.values.some((v) => v)), corner: "metric" };
}
