// The sections of runs with tenants: a colour, a dash and a marker for each tenant, the same in every run.

// No tenant looks like a policy of the same page.
function tenantStyle(name) {
  const others = DATA.palette.others[dark() ? "dark" : "light"];
  return { ...styleAt(DATA.tenants[name]), colour: others[DATA.tenants[name] % others.length] };
}
const tenantsOf = (runs) => Object.keys(DATA.tenants).filter((name) => runs.some((run) => run.tenants?.some((one) => one.name === name)));

// A panel for each run, with a curve for each tenant.
function tenants(view) {
  const having = view.curved.filter((run) => run.tenants);
  if (!having.length) return { missing: "" };
  const panels = having.map((run) => {
    const own = run.tenants.map((tenant) => tenant.name);
    const of = (field) => () => scale((name) => tenantStyle(name)[field], own);
    const among = {
      ...view, curved: run.tenants, colour: "tenant", policyOf: (tenant) => tenant.name,
      colours: of("colour"), dashes: of("dash"), shapes: of("shape"),
    };
    return { name: view.policyOf(run), spec: (width) => distribution({ ...among, width }).spec, missing: distribution(among).missing };
  }).filter((panel) => panel.missing === undefined);
  if (!panels.length) return { missing: "no request of this operation" };
  // The figures of each tenant; those that no run has (slowdowns without --alone) are left out.
  const table = tenantsOf(having).flatMap((name) => ["mean", "p99", "iops", "slowdown"].map((field) => {
    const metric = metricOf(`tenant.${name}.${field}`, view.chosen, view.op, view.time);
    return { name: titled(metric.label, metric.unit.name), better: metric.better, values: metric.values };
  })).filter((row) => row.values.some((value) => value !== null));
  return { marks: tenantsOf(having).map((name) => [tenantStyle(name), name]), panels, table, corner: "tenant" };
}

// The flash's time: a bar for each run.
function tenantShares(view) {
  const having = view.chosen.filter((run) => run.tenants);
  if (!having.length) return { missing: "" };
  const rows = having.flatMap((run) => {
    const shares = run.tenants.map((tenant) => ({ kind: tenant.name, value: percent(tenant.share) || 0 }));
    const own = percent(run.beside_tenants.share) || 0;
    const others = Math.max(0, 100 - own - sum(shares.map((row) => row.value)));
    // The rest is that of tenants which the page leaves out, if it is more than what rounding leaves.
    const rest = others > 0.01 ? [{ kind: "other tenants", value: others }] : [];
    return [...shares, ...rest, { kind: "the device's own", value: own }].map((row) => ({ policy: view.policyOf(run), ...row }));
  });
  const colours = Object.fromEntries(tenantsOf(having).map((name) => [name, tenantStyle(name).colour]));
  const all = { ...colours, ...REST };
  return stack(view, rows, all, "share of the flash's time", "%") || { missing: "the flash did nothing" };
}

for (const name of Object.keys(DATA.tenants)) {
  const of = (get) => (run, op) => {
    const tenant = run.tenants?.find((one) => one.name === name);
    return tenant ? get(tenant, op) : null;
  };
  METRICS[`tenant.${name}.mean`] = [`mean latency of ${name}`, "time", -1, of(latency("latency", "mean_ns")), true];
  METRICS[`tenant.${name}.p99`] = [`99th percentile of latency of ${name}`, "time", -1, of(latency("latency", "99.000000")), true];
  METRICS[`tenant.${name}.iops`] = [`IOPS of ${name}`, "", 1, of((tenant) => tenant.requests_per_s)];
  METRICS[`tenant.${name}.slowdown`] = [`slowdown of ${name}`, "", -1, of((tenant) => tenant.slowdown ?? null)];
}
for (const [field, better] of Object.entries({ unfairness: -1, fairness: 1, weighted_speedup: 1, harmonic_speedup: 1 })) {
  METRICS[field] = [field.replace("_", " "), "", better, (run) => run.fairness?.[field] ?? null];
}
