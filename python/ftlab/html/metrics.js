// The measured quantities: their names and units, and how their numbers are written.

const PERCENTILES = ["1.000000", "5.000000", "10.000000", "20.000000", "30.000000", "40.000000", "50.000000",
  "60.000000", "70.000000", "80.000000", "90.000000", "95.000000", "99.000000", "99.500000", "99.900000",
  "99.950000", "99.990000"];
const FLASH = { busy_ns: "busy time", reads: "page reads", programs: "page programs", erases: "block erases" };
const MERGE_FIELDS = { count: "merges", pages_copied: "pages copied", busy_ns: "time" };

const sum = (values) => values.reduce((a, b) => a + b, 0);
const total = (causes) => sum(Object.values(causes));

// 1st, 5th, 99.9th
const ordinal = (p) => `${Number(p)}${Number(p) === 1 ? "st" : "th"}`;

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
  if (size < 1) return value.toLocaleString("en-US", { minimumSignificantDigits: 4, maximumSignificantDigits: 4 });
  const digits = Math.max(0, 4 - String(Math.trunc(size)).length);
  return value.toLocaleString("en-US", { minimumFractionDigits: digits, maximumFractionDigits: digits });
}

const latency = (part, field) => (run, op) => {
  const of = run[part][op];
  if (!of.count) return null;
  return /^[0-9]/.test(field) ? of.percentile_ns[field] : of[field];
};
// For each metric: name, kind, better way (-1 less, 1 more, 0 neither), value, whether it differs by operation.
const METRICS = {
  mean: ["mean latency", "time", -1, latency("latency", "mean_ns"), true],
  wait: ["mean wait", "time", -1, latency("wait", "mean_ns"), true],
  access: ["mean access", "time", -1, latency("access", "mean_ns"), true],
  stddev: ["standard deviation of latency", "time", -1, latency("latency", "stddev_ns"), true],
  p50: ["median latency (50th)", "time", -1, latency("latency", "50.000000"), true],
  p95: ["95th percentile of latency", "time", -1, latency("latency", "95.000000"), true],
  p99: ["99th percentile of latency", "time", -1, latency("latency", "99.000000"), true],
  p999: ["99.9th percentile of latency", "time", -1, latency("latency", "99.900000"), true],
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
  tbw: ["terabytes written (TBW)", "TB", 1, (run) => run.lifetime?.tbw ?? null],
  dwpd: ["drive writes a day, over five years", "", 1, (run) => run.lifetime?.dwpd ?? null],
  years: ["years at the load's daily volume", "", 1, (run) => run.lifetime?.years ?? null],
  energy: ["energy", "mJ", -1, (run) => run.energy?.total_mj ?? null],
  energy_each: ["energy for each request", "µJ", -1, (run) => run.energy?.per_request_uj ?? null],
  ...Object.fromEntries(["read", "program", "erase", "transfer", "link", "command", "active", "idle"].map((part) =>
    [`energy.${part}`, [`energy: ${part}`, "mJ", -1, (run) => run.energy?.[`${part}_mj`] ?? null]])),
};
// The figures that parts report about themselves are described in the results.
for (const { part, name, unit } of DATA.results.flatMap((run) => run.own_legend || [])) {
  METRICS[`own.${part}.${name}`] = [`${part} ${name}`, unit, 0, (run) => run.own?.[part]?.[name] ?? null];
}
// So are the fronts of placements.
for (const { name, waf } of DATA.results.flatMap((run) => (run.placement ? run.placement.fronts : []))) {
  if (waf !== null) {
    const of = (run) => run.placement?.fronts.find((front) => front.name === name)?.waf ?? null;
    METRICS[`placement.${name}`] = [`write amplification: ${name}`, "", -1, of];
  }
}
const percent = (share) => (share === null || share === undefined ? null : share * 100);

// Returns a metric's label, unit and values for some runs; times are in the unit that suits them, unless one is given.
function metricOf(name, runs, op, given) {
  const [label, kind, better, get, byOp] = METRICS[name];
  const values = runs.map((run) => get(run, op));
  const unit = kind === "time" ? given || timeUnit(values) : { name: kind, ns: 1 };
  const suffix = byOp ? `, ${{ all: "reads and writes", read: "reads", write: "writes" }[op]}` : "";
  return { label: label + suffix, better, unit, values: values.map((v) => (v === null ? null : v / unit.ns)) };
}
const titled = (label, unit) => (unit ? `${label} (${unit})` : label);
