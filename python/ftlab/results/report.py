"""The report of a result as text, in the manner of fio."""

from __future__ import annotations

from typing import Any

from ftlab.results import lifetime
from ftlab.results.labels import parts, title
from ftlab.results.result import Result
from ftlab.units import (
    Unit,
    amount,
    bandwidth,
    count,
    duration,
    iops,
    percent,
    quantity,
    significant,
    size,
    time_unit,
)

PERCENTILES = ("50.000000", "90.000000", "99.000000", "99.900000")
"""The percentiles of a result that the report shows."""


def render(result: Result) -> str:
    """Returns the report of one run; its last lines say where the time went."""
    data = result.to_dict()
    lines = [_title(data, result.named), *_benchmark(data), *_workload(data["trace"])]
    for name in ("read", "write", "all"):
        lines += _latency(data, name)
    lines += _tenants(data)
    lines += _mapping(data["mapping"])
    lines += _scheduler(data["scheduler"])
    lines += _precondition(data["precondition"])
    lines += _flash(data["flash"])
    lines += _merges(data["merges"])
    lines += _page_cache(data)
    lines += _totals(data)
    lines += _energy(data)
    lines += _own(data)
    lines += _health(data["health"])
    lines += lifetime.lines(data)
    lines += _engine(data, result.prepare_s)
    lines += where_time_went(data)
    return "\n".join(lines) + "\n"


def _title(data: dict[str, Any], named: str) -> str:
    return f"{title(data['config'], named)}: {', '.join(parts([data]))}"


def _workload(trace: dict[str, Any]) -> list[str]:
    requests = trace["requests"]
    others = requests - trace["reads"] - trace["writes"]
    read_share = trace["reads"] / requests if requests else 0.0
    kinds = f"{count(trace['reads'])} reads ({read_share * 100:.1f} %), {count(trace['writes'])} writes"
    if others:
        kinds += f", {count(others)} trims and flushes"
    lines = [
        f"workload: {count(requests)} requests: {kinds}",
        f"    {size(trace['bytes_read'])} read, {size(trace['bytes_written'])} written,"
        f" footprint {size(trace['footprint_bytes'])}",
    ]
    dropped = {reason: n for reason, n in trace["dropped"].items() if n}
    if dropped:
        lines.append("    dropped: " + ", ".join(f"{count(n)} {reason}" for reason, n in dropped.items()))
    # Results of earlier versions have none.
    return lines + [f"    note: {note}" for note in trace.get("notes") or ()]


def _benchmark(data: dict[str, Any]) -> list[str]:
    """Returns lines with what the clients of a benchmark or a fio job saw."""
    bench = data.get("benchmark")
    if bench is None:
        return []
    values = ", ".join(f"{name} {value}" for name, value in bench["parameters"])
    runs = len(bench["runs"])
    deviation = bandwidth(bench["throughput_stddev"])
    over = f" (mean of {count(runs)} runs, standard deviation {deviation})" if runs > 1 else ""
    moved = bandwidth(bench["throughput_bytes_per_s"])
    lines = [
        f"benchmark: {bench['name']}: {values}",
        f"    {moved}, {bench['operations_per_s']:,.1f} operations/s{over}",
        f"    {count(bench['operations'])} operations, {size(bench['bytes_read'])} read,"
        f" {size(bench['bytes_written'])} written in {duration(bench['elapsed_ns'])}",
    ]
    for name, latency in bench["latency"].items():
        unit = time_unit([latency["mean_ns"]])
        lines.append(f"    {name} ({unit.name}): n={count(latency['count'])}, {_spread(latency, unit)}")
    mean = bench["write_latency_mean_ns"]
    if mean is not None:
        lines.append(f"    device time of a page written: mean {duration(mean)}")
    return lines


def _page_cache(data: dict[str, Any]) -> list[str]:
    cache, files = data.get("page_cache"), data.get("file_system")
    if cache is None or files is None:
        return []
    written = ", ".join(f"{why}={count(pages)}" for why, pages in cache["pages_written"].items() if pages)
    return [
        f"page cache: {size(cache['size_bytes'])}, hit ratio {percent(cache['hit_ratio'])},"
        f" at most {size(cache['peak_dirty_bytes'])} dirty",
        f"    pages written: {written or 'none'}",
        f"    trees: {size(cache['tree_bytes_mean'] or 0)} on average,"
        f" over logical pages {size(cache['global_tree_bytes_mean'] or 0)}",
        f"file system: {count(files['commits'])} commits, {count(files['journal_blocks'])} journal blocks,"
        f" {count(files['checkpoint_blocks'])} metadata blocks in place,"
        f" {count(files['merged_requests'])} requests merged",
    ]


def _latency(data: dict[str, Any], name: str) -> list[str]:
    latency = data["latency"][name]
    if not latency["count"]:
        return []
    unit = time_unit([latency["mean_ns"]])
    points = latency["percentile_ns"]
    shown = [point for point in PERCENTILES if point in points]
    values = ", ".join(f"{float(point):g}th={_in(points[point], unit)}" for point in shown)
    kind = "reads and writes" if name == "all" else name
    return [
        f"{kind}: {count(latency['count'])} requests{_rates(data, name)}",
        f"    latency {_in_its_unit(latency)}",
        f"       wait {_in_its_unit(data['wait'][name])}",
        f"     access {_in_its_unit(data['access'][name])}",
        f"    percentiles ({unit.name}): {values}",
    ]


def _rates(data: dict[str, Any], name: str) -> str:
    """Returns requests and bytes per second over the whole run, as text; empty if they are not known."""
    elapsed, all_bytes = data["elapsed_ns"], data["throughput_bytes_per_s"]
    if not elapsed or all_bytes is None:
        return ""
    read = data["trace"]["bytes_read"] * 1e9 / elapsed
    # The total does not include writes that a read-only device refused.
    moved = {"read": read, "write": max(all_bytes - read, 0.0), "all": all_bytes}[name]
    return f", {iops(data['latency'][name]['count'] * 1e9 / elapsed)}, {bandwidth(moved)}"


def _in_its_unit(part: dict[str, Any]) -> str:
    """Returns the spread of a time in the unit that suits its mean, which it names: (us): min=..."""
    unit = time_unit([part["mean_ns"]])
    return f"({unit.name}): {_spread(part, unit)}"


def _spread(part: dict[str, Any], unit: Unit) -> str:
    fields = (("min", "min_ns"), ("max", "max_ns"), ("mean", "mean_ns"), ("stddev", "stddev_ns"))
    return ", ".join(f"{label}={_in(part[field], unit)}" for label, field in fields)


def _in(ns: float | None, unit: Unit) -> str:
    return "-" if ns is None else significant(ns / unit.ns)


def _mapping(mapping: dict[str, Any]) -> list[str]:
    if not mapping["hits"] and not mapping["misses"]:
        return []
    return [
        f"mapping: hit ratio {percent(mapping['hit_ratio'])}"
        f" ({count(mapping['hits'])} hits, {count(mapping['misses'])} misses,"
        f" {count(mapping['prefetches'])} prefetches)",
        f"    translation pages: {count(mapping['translation_reads'])} reads,"
        f" {count(mapping['translation_programs'])} programs",
    ]


def _scheduler(scheduler: dict[str, Any]) -> list[str]:
    return [
        f"scheduler: {scheduler['name']}: {count(scheduler['prioritized'])} prioritized,"
        f" {count(scheduler['batches'])} batches, {count(scheduler['expired'])} dispatched by deadline"
    ]


def _precondition(done: dict[str, Any]) -> list[str]:
    """Returns lines about preconditioning, which the report's other figures except wear do not include."""
    if done["kind"] == "none":
        return []
    lines = [
        f"precondition: {done['kind']}: {count(done['pages_written'])} logical pages written,"
        f" {count(done['programs'])} programs, {count(done['erases'])} erases"
    ]
    if done["outcome"]:
        state = "steady" if done["outcome"] == "reached" else "NOT steady"
        last = ", ".join(f"{waf:.3f}" for waf in done["waf"])
        lines.append(
            f"    {state} after {count(done['rounds'])} rounds, write amplification of the last: {last}"
        )
    return lines


def _causes(counts: dict[str, int]) -> str:
    named = [f"{cause}={count(n)}" for cause, n in counts.items() if n]
    return ", ".join(named) if named else "none"


def _flash(flash: dict[str, Any]) -> list[str]:
    return [
        "flash:",
        f"       reads: {_causes(flash['reads'])}",
        f"    programs: {_causes(flash['programs'])}",
        f"      erases: {_causes(flash['erases'])}",
    ]


def _merges(merges: dict[str, Any]) -> list[str]:
    done = [
        f"{count(merge['count'])} {kind.replace('_', ' ')} ({count(merge['pages_copied'])} pages copied)"
        for kind, merge in merges.items()
        if merge["count"]
    ]
    return [f"merges: {', '.join(done)}"] if done else []


def _totals(data: dict[str, Any]) -> list[str]:
    waf, wear = data["waf"], data["wear"]
    lines = []
    if waf["total"] is not None:
        parts = ", ".join(f"{part} {waf[part]:.3f}" for part in waf if part != "total" and waf[part])
        lines.append(f"write amplification: {waf['total']:.3f}" + (f" ({parts})" if parts else ""))
    if waf["gc"]:
        lines.append(_spare(data["config"]["flash"], data["config"]["ftl"]))
    if wear["max"]:
        lines.append(
            f"wear (erases of a block): min={count(wear['min'])}, mean={significant(wear['mean'])},"
            f" max={count(wear['max'])}, stddev={significant(wear['stddev'])}"
        )
    return [*lines, *_placement(data), f"simulated: {duration(data['elapsed_ns'])}"]


def _placement(data: dict[str, Any]) -> list[str]:
    """Returns lines with what went to each front, for fronts to which anything went."""
    lines = []
    for front in data.get("placement", {}).get("fronts", ()):
        waf = "" if front["waf"] is None else f", write amplification {front['waf']:.3f}"
        if front["written"] or front["moved"]:
            pages = f"{count(front['written'])} pages written, {count(front['moved'])} moved"
            lines.append(f"    {front['name']}: {pages}{waf}")
    return ["fronts:", *lines] if lines else []


def _tenants(data: dict[str, Any]) -> list[str]:
    """Returns lines for each tenant, and one that compares their slowdowns if each also ran alone."""
    tenants = data.get("tenants")
    if tenants is None:
        return []
    lines = []
    for tenant in tenants:
        latency, flash = tenant["latency"]["all"], tenant["flash"]
        lines.append(
            f"tenant {tenant['name']}: {count(tenant['requests'])} requests ({count(tenant['reads'])} reads),"
            f" {iops(tenant['requests_per_s'])}, {bandwidth(tenant['throughput_bytes_per_s'])},"
            f" {percent(flash['share'])} of the flash's time"
        )
        line = f"    latency: mean={duration(latency['mean_ns'])}, stddev={duration(latency['stddev_ns'])}"
        tail = latency["percentile_ns"].get("99.000000")
        line += f", 99th={duration(tail)}, max={duration(latency['max_ns'])}" if tail is not None else ""
        if tenant.get("slowdown") is not None:
            line += f"; alone mean={duration(tenant['alone_mean_ns'])}, slowdown {tenant['slowdown']:.3f}"
        lines += [line, *(f"    {seen}" for seen in _benchmark(tenant))]
    compared = data.get("fairness")
    if compared is not None and compared["fairness"] is not None:
        lines.append(
            f"tenants: unfairness {compared['unfairness']:.3f}, fairness {compared['fairness']:.3f},"
            f" weighted speedup {compared['weighted_speedup']:.3f}, harmonic speedup"
            f" {compared['harmonic_speedup']:.3f}"
        )
    return lines


def _energy(data: dict[str, Any]) -> list[str]:
    """Returns lines with the energy of the run, its parts and, of the flash, its causes, largest first."""
    energy = data.get("energy")
    if energy is None:
        return []
    each = energy["per_request_uj"]
    per_request = "" if each is None else f", {amount(each)} uJ for each request"
    names = ("read", "program", "erase", "transfer", "link", "command", "active", "idle")
    parts = _shares({name: energy[f"{name}_mj"] for name in names}, energy["total_mj"])
    causes = _shares(energy["by_cause"], sum(energy["by_cause"].values()))
    lines = [f"energy: {amount(energy['total_mj'])} mJ{per_request}", f"    of it {parts or 'nothing'}"]
    return [*lines, f"    of the flash: {causes}"] if causes else lines


def _shares(values: dict[str, float], total: float) -> str:
    """Returns the shares of those values that are above 0, largest first."""
    ordered = sorted(((name, value) for name, value in values.items() if value), key=lambda item: -item[1])
    return ", ".join(f"{name} {value / total * 100:.1f} %" for name, value in ordered)


def _spare(flash: dict[str, Any], ftl: dict[str, Any]) -> str:
    """Returns a line with the withheld space, and how much of it the open and erased blocks leave for
    garbage.
    """
    planes = flash["dies_per_chip"] * flash["planes_per_die"]
    name, luns = ("plane", planes) if flash["multi_plane"] != "off" else ("chip", 1)
    if flash["multi_plane"] == "off" and flash["interleave"]:
        name, luns = "die", flash["dies_per_chip"]
    withheld, blocks = float(ftl["over_provisioning"].rstrip("%")), flash["blocks_per_plane"] * planes / luns
    left = f"{withheld - 100 * (1 + ftl['gc_free_blocks'] + ftl['spare_blocks']) / blocks:.1f} %"
    return f"    spare: {withheld:g} % withheld, {left} without the open and the erased blocks of each {name}"


def _own(data: dict[str, Any]) -> list[str]:
    """Returns lines with the figures that parts report about themselves."""
    figures = [
        f"    {line['part']} {line['name']}: {amount(data['own'][line['part']][line['name']])}"
        f"{line['unit'] and ' ' + line['unit']} ({line['doc']})"
        for line in data.get("own_legend", ())
    ]
    return ["figures of the parts' own:", *figures] if figures else []


def _health(health: dict[str, Any]) -> list[str]:
    """Returns lines about wear and about the life that the device has left; empty if blocks last for ever."""
    smart, blocks, failed = health["nvme_smart"], health["blocks"], health["failed"]
    if smart["percentage_used"] is None and not blocks["spare"]:
        return []
    parts = []
    if smart["percentage_used"] is not None:
        parts.append(f"{smart['percentage_used']} % of its life used")
    if blocks["spare"]:
        parts.append(f"{count(blocks['spare_left'])} of {count(blocks['spare'])} spare blocks left")
    parts.append(f"{count(blocks['retired'])} blocks retired")
    state = {"good": "good", "spare-low": "SPARE BLOCKS LOW", "read-only": "READ-ONLY"}[health["state"]]
    lines = [f"health: {state}: {', '.join(parts)}"]
    if health["read_only_ns"] is not None:
        refused = ", ".join(f"{count(n)} {kind}" for kind, n in failed.items() if n) or "nothing"
        lines.append(f"    read-only since {duration(health['read_only_ns'])}; refused: {refused}")
    return lines


def _engine(data: dict[str, Any], prepare_s: float) -> list[str]:
    engine = data.get("engine")
    if not engine:
        return []
    ran_s, peak = engine["wall_s"] - prepare_s, engine["peak_rss_bytes"]
    # Making an empty device takes hardly any time, so this time is not reported.
    prepared = data["precondition"]["kind"] != "none" and prepare_s >= 0.005
    parts = [f"{prepare_s:.2f} s of preconditioning"] if prepared else []
    parts.append(f"{ran_s:.2f} s")
    if ran_s > 0:
        parts.append(f"{data['trace']['requests'] / ran_s:,.0f} requests/s")
    if peak is not None:
        parts.append(f"peak memory {size(peak)}")
    return [f"engine: {', '.join(parts)}"]


def where_time_went(data: dict[str, Any]) -> list[str]:
    """Returns lines that say which share of the latency is waiting, and what the flash was busy with."""
    latency, elapsed = data["latency"]["all"]["mean_ns"], data["elapsed_ns"]
    busy = {cause: ns for cause, ns in data["flash"]["busy_ns"].items() if ns}
    total = sum(busy.values())
    if not latency or not total or not elapsed:
        return []
    wait = data["wait"]["all"]["mean_ns"] / latency * 100
    causes = sorted(busy.items(), key=lambda item: (-item[1], item[0]))
    shares = ", ".join(f"{cause} {ns / total * 100:.0f} %" for cause, ns in causes)
    chips, channels = data["utilization"]["chip_busy_ns"], data["utilization"]["channel_busy_ns"]
    resources = f"chips busy {sum(chips) / len(chips) / elapsed * 100:.0f} % of the time"
    if len(chips) > 1:
        resources += f" (busiest {max(chips) / elapsed * 100:.0f} %)"
    if any(channels):
        resources += f", busiest channel {max(channels) / elapsed * 100:.0f} %"
    return [
        f"where the time went: wait {wait:.1f} %, access {100 - wait:.1f} % of the latency",
        *_at_the_host(data),
        *_at_the_controller(data),
        f"    {resources}; flash time: {shares}",
    ]


def _at_the_host(data: dict[str, Any]) -> list[str]:
    """Returns a line with the share of the clients' time that ``host.operation_time`` takes, if it is set."""
    benchmark, given = data.get("benchmark"), data["config"]["host"].get("operation_time", "auto")
    each = None if given == "auto" else quantity(given)
    if not benchmark or not each or not benchmark["elapsed_ns"]:
        return []
    share = benchmark["operations"] * each / (benchmark["elapsed_ns"] * benchmark["clients"])
    return [
        f"    host: {min(share, 1) * 100:.0f} % of the clients' time, {given} an operation "
        f"(host.operation_time), which bounds a client at {1e9 / each:,.0f} operations/s"
    ]


def _at_the_controller(data: dict[str, Any]) -> list[str]:
    """Returns a line with the shares of the latency that were spent at the link, the cores and the write
    buffer, and with the shares of the time that these were busy.
    """
    device, latency = data.get("device", {}), data["latency"]["all"]
    spent = device.get("commands", {}) | device.get("buffer", {})
    if not spent:
        return []
    total = latency["mean_ns"] * latency["count"]
    names = (
        ("link", "link_ns"),
        ("cores", "core_ns"),
        ("fixed latency", "latency_ns"),
        ("buffer", "wait_ns"),
    )
    parts = [f"{name} {spent[key] / total * 100:.1f} %" for name, key in names if spent.get(key)]
    busy = [
        f"{name} {data['device'][key] * 100:.0f} %"
        for name, key in (("link", "link_busy"), ("cores", "core_busy"))
        if key in data["device"]
    ]
    shares = f"    of the latency: {', '.join(parts)}"
    return [f"{shares}; busy: {', '.join(busy)} of the time" if busy else shares] if parts else []
