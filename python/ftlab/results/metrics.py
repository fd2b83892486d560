"""The metrics that a comparison shows of each result: one entry here for each row of the table."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

Number = float | int | None
"""A metric's value; None if a result has none."""


@dataclass(frozen=True)
class Metric:
    """One measured quantity."""

    group: str
    """The heading over the metric's row; rows under the same heading share a unit of time."""
    name: str
    """The name shown in the metric's row."""
    short: str
    """The heading of the metric's column in tables whose rows are variants: one word per line."""
    kind: Literal["time", "share", "count", "factor", "iops", "bandwidth", "amount"]
    """How the metric's values are printed."""
    better: Literal["low", "high"] | None
    """Whether low or high values are better; None if neither is, so that no value is marked as the best."""
    column: str
    """The metric's column name in CSV and data frames: the field's name, if the metric is a field of the
    result.
    """
    get: Callable[[dict[str, Any]], Number]
    """Reads the metric's value from a result."""


def _statistic(part: str, op: str, field: str) -> Callable[[dict[str, Any]], Number]:
    def get(result: dict[str, Any]) -> Number:
        summary = result[part][op]
        if not summary["count"]:
            return None
        value: Number = summary["percentile_ns"].get(field) if field[0].isdigit() else summary[field]
        return value

    return get


def _mean(op: str) -> Metric:
    get = _statistic("latency", op, "mean_ns")
    return Metric("mean latency", op, f"mean {op}", "time", "low", f"latency.{op}.mean_ns", get)


def _p99(op: str) -> Metric:
    field = "99.000000"
    column, get = f"latency.{op}.percentile_ns.{field}", _statistic("latency", op, field)
    return Metric("99th percentile", op, f"p99 {op}", "time", "low", column, get)


def _part(part: str) -> Metric:
    get = _statistic(part, "all", "mean_ns")
    return Metric("of which", part, f"mean {part}", "time", "low", f"{part}.all.mean_ns", get)


def _field(
    section: str, field: str, name: str, short: str, kind: Any, better: Literal["low", "high"] | None
) -> Metric:
    def get(result: dict[str, Any]) -> Number:
        # Not every result has energy or lifetime.
        value: Number = result[section][field] if section in result else None
        return value

    return Metric(section, name, short, kind, better, f"{section}.{field}", get)


def _translation(what: str) -> Metric:
    return _field("mapping", f"translation_{what}", f"translation {what}", f"map {what}", "count", "low")


def _scheduler(field: str) -> Metric:
    return _field("scheduler", field, field, field, "count", None)


def _erases(result: dict[str, Any]) -> Number:
    erases: dict[str, int] = result["flash"]["erases"]
    return sum(erases.values())


def _iops(result: dict[str, Any]) -> Number:
    elapsed: int = result["elapsed_ns"]
    return result["latency"]["all"]["count"] * 1e9 / elapsed if elapsed else None


ENERGY = (
    _field("energy", "total_mj", "energy, mJ", "energy mJ", "amount", "low"),
    _field("energy", "per_request_uj", "per request, uJ", "uJ per request", "amount", "low"),
)
"""Rows of the table in a comparison of results with energies."""


LIFETIME = (
    _field("lifetime", "tbw", "TBW, TB", "TBW TB", "amount", "high"),
    _field("lifetime", "dwpd", "drive writes a day", "DWPD", "amount", "high"),
    _field("lifetime", "years", "years at this load", "years", "amount", "high"),
)
"""Rows of the table in a comparison of devices whose blocks have an endurance."""

METRICS = (
    _mean("read"),
    _mean("write"),
    _mean("all"),
    _part("wait"),
    _part("access"),
    _p99("read"),
    _p99("write"),
    _p99("all"),
    _field("mapping", "hit_ratio", "hit ratio", "hit ratio", "share", "high"),
    _translation("reads"),
    _translation("programs"),
    _scheduler("prioritized"),
    _scheduler("batches"),
    _scheduler("expired"),
    Metric("flash", "erases", "erases", "count", "low", "flash.erases", _erases),
    Metric("flash", "WAF", "WAF", "factor", "low", "waf.total", lambda r: r["waf"]["total"]),
    Metric("throughput", "IOPS", "IOPS", "iops", "high", "iops", _iops),
    Metric(
        "throughput",
        "bandwidth",
        "BW",
        "bandwidth",
        "high",
        "throughput_bytes_per_s",
        lambda r: r["throughput_bytes_per_s"],
    ),
)
"""Rows of the table, in order."""


def _tenant(name: str) -> list[Metric]:
    """Returns the metrics of one tenant."""

    def of(get: Callable[[dict[str, Any]], Number]) -> Callable[[dict[str, Any]], Number]:
        def found(result: dict[str, Any]) -> Number:
            tenant = next((each for each in result.get("tenants") or () if each["name"] == name), None)
            return None if tenant is None else get(tenant)

        return found

    group, tail = f"tenant {name}", "latency.all.percentile_ns.99.000000"
    rows: list[tuple[str, str, Any, Any, str, Callable[[dict[str, Any]], Number]]] = [
        (
            "mean latency",
            "mean",
            "time",
            "low",
            "latency.all.mean_ns",
            _statistic("latency", "all", "mean_ns"),
        ),
        ("99th percentile", "p99", "time", "low", tail, _statistic("latency", "all", "99.000000")),
        ("IOPS", "IOPS", "iops", "high", "requests_per_s", lambda tenant: tenant["requests_per_s"]),
        ("slowdown", "slowdown", "factor", "low", "slowdown", lambda tenant: tenant.get("slowdown")),
    ]
    return [
        Metric(group, title, f"{short} {name}", kind, better, f"tenants.{name}.{column}", of(get))
        for title, short, kind, better, column, get in rows
    ]


def _fairness(field: str, better: Literal["low", "high"]) -> Metric:
    def get(result: dict[str, Any]) -> Number:
        value: Number = result.get("fairness", {}).get(field)
        return value

    name = field.replace("_", " ")
    return Metric("tenants", name, name, "factor", better, f"fairness.{field}", get)


FAIRNESS = (
    _fairness("unfairness", "low"),
    _fairness("fairness", "high"),
    _fairness("weighted_speedup", "high"),
    _fairness("harmonic_speedup", "high"),
)
"""Rows for results of which each tenant also ran alone, after a row with the slowdown of each tenant."""


def _of_tenants(results: Sequence[dict[str, Any]], most: int | None) -> list[Metric]:
    """Returns the metrics of the tenants in the order of the results, or of the ``most`` for which the flash
    worked longest; with those that compare them, if they also ran alone.
    """
    busy: dict[str, int] = {}
    for tenant in (tenant for result in results for tenant in result.get("tenants") or ()):
        busy[tenant["name"]] = busy.get(tenant["name"], 0) + tenant["flash"]["busy_ns"]
    kept = set(sorted(busy, key=lambda name: -busy[name])[:most])
    own = [metric for name in busy if name in kept for metric in _tenant(name)]
    return [*own, *FAIRNESS] if any("fairness" in result for result in results) else own


def metrics_of(results: Sequence[dict[str, Any]], most_tenants: int | None = None) -> list[Metric]:
    """Returns the metrics of results: those that every result has, energy and lifetime if any result has
    them, those of tenants (at most ``most_tenants``), and a metric for each figure that the results' parts
    report about themselves, in the order of the results.
    """
    found = {
        (line["part"], line["name"]): line for result in results for line in result.get("own_legend", ())
    }
    own = [_own(part, name, line["unit"]) for (part, name), line in found.items()]
    energy = ENERGY if any("energy" in result for result in results) else []
    lifetime = LIFETIME if any("lifetime" in result for result in results) else []
    return [*METRICS, *energy, *lifetime, *_of_tenants(results, most_tenants), *own]


def _own(part: str, name: str, unit: str) -> Metric:
    def get(result: dict[str, Any]) -> Number:
        value: Number = result.get("own", {}).get(part, {}).get(name)
        return value

    title = f"{part} {name}"
    return Metric(
        "own", f"{title}, {unit}" if unit else title, title, "amount", None, f"own.{part}.{name}", get
    )


def best(metric: Metric, values: list[Number]) -> set[int]:
    """Returns the positions of the best values; empty if nothing stands out."""
    known = [value for value in values if value is not None]
    if metric.better is None or len(known) < 2 or min(known) == max(known):
        return set()
    target = min(known) if metric.better == "low" else max(known)
    return {position for position, value in enumerate(values) if value == target}


def ratio(value: Number, reference: Number) -> float | None:
    """Returns the ratio of ``value`` to ``reference``; None if it has no meaning."""
    if value is None or not reference:
        return None
    return value / reference
