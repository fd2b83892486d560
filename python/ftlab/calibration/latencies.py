"""Latencies as fio's JSON holds them, of one job and of several jobs together."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ftlab.calibration.row import PERCENTILES

_PLAT_BITS = "FIO_IO_U_PLAT_BITS"


@dataclass(frozen=True)
class Latencies:
    """Rate and latencies of the requests of one operation."""

    iops: float
    """Completed requests per second."""
    mean_us: float
    """Mean of ``lat``."""
    count: float
    """Completed requests."""
    tail: Mapping[str, float | None]
    """Percentiles of ``clat`` by the name of their column (`PERCENTILES`); None where fio kept none."""
    bins: Mapping[float, float] | None
    """The histogram of json+: requests by completion latency in us; None without it."""


def number(value: Any) -> float | None:
    """Returns a number of a JSON document that is finite and not negative; None for everything else."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        found = float(value)
    except OverflowError:
        return None
    return found if math.isfinite(found) and found >= 0 else None


def latencies(fields: Mapping[str, Any]) -> Latencies | None:
    """Returns the latencies of one of a job's operations; None if fio kept none."""
    iops, count = number(fields.get("iops")), number(fields.get("total_ios"))
    total, total_unit = _part(fields, "lat")
    mean = number(total.get("mean"))
    if not iops or not mean:
        return None
    completion, unit = _part(fields, "clat")
    if not completion.get("percentile") and total.get("percentile"):
        # lat_percentiles=1 has fio keep those of the whole latency in their place.
        completion, unit = total, total_unit
    bins = _bins(completion.get("bins"), unit)
    kept = _kept(completion.get("percentile"), unit)
    tail = {name: kept.get(percent) or late for (name, percent), late in _tail(bins)}
    return Latencies(iops, mean / total_unit, count or 1.0, tail, bins)


def pooled(parts: Sequence[Latencies]) -> Latencies:
    """Returns the latencies of jobs that ran at the same time; percentiles need the histogram of each."""
    if len(parts) == 1:
        return parts[0]
    count = sum(part.count for part in parts)
    mean = sum(part.mean_us * (part.count / count) for part in parts)
    bins: dict[float, float] | None = {}
    for part in parts:
        if part.bins is None or bins is None:
            bins = None
            continue
        for latency, held in part.bins.items():
            bins[latency] = bins.get(latency, 0) + held
    tail = {name: late for (name, _), late in _tail(bins)}
    return Latencies(sum(part.iops for part in parts), mean, count, tail, bins)


def _part(fields: Mapping[str, Any], name: str) -> tuple[Mapping[str, Any], float]:
    """Returns ``lat`` or ``clat`` of an operation, and how many of its units are 1 us."""
    for key, unit in ((f"{name}_ns", 1e3), (name, 1.0)):
        if isinstance(found := fields.get(key), dict):
            return found, unit
    return {}, 1.0


def _kept(percentiles: Any, unit: float) -> dict[float, float]:
    """Returns the latency in us by the percentile that fio wrote, in percent."""
    if not isinstance(percentiles, dict):
        return {}
    found = {}
    for name, value in percentiles.items():
        latency = number(value)
        try:
            percent = round(float(name), 6)
        except ValueError:
            continue
        if latency:
            found[percent] = latency / unit
    return found


def _bins(bins: Any, unit: float) -> dict[float, float] | None:
    if not isinstance(bins, dict):
        return None
    # fio 2 writes the numbers of its buckets, and how many bits a bucket's number has.
    bits = number(bins.get(_PLAT_BITS))
    found = {}
    for name, value in bins.items():
        held = number(value)
        if not name.isascii() or not name.isdecimal() or len(name) > 18 or not held:
            continue
        latency = float(name) if bits is None else _bucket(int(name), int(bits))
        found[latency / unit] = held
    return found or None


def _bucket(index: int, bits: int) -> float:
    """Returns the middle of a bucket of fio's histogram. Source: axboe/fio stat.c, plat_idx_to_val."""
    bits = min(max(bits, 1), 16)
    values = 1 << bits
    if index < 2 * values:
        return float(index)
    lost = min((index >> bits) - 1, 62)
    return float((1 << (lost + bits)) + ((index % values) + 0.5) * (1 << lost))


def _tail(bins: Mapping[float, float] | None) -> list[tuple[tuple[str, float], float | None]]:
    """Returns the names and numbers of all percentiles, each with its latency; None without a histogram."""
    return [(column, _percentile(bins, column[1]) if bins else None) for column in PERCENTILES.items()]


def _percentile(bins: Mapping[float, float], percent: float) -> float | None:
    """Returns the first latency up to which ``percent`` of the requests completed, as fio does."""
    whole = sum(bins.values())
    least, seen = whole * percent / 100, 0.0
    for latency in sorted(bins):
        seen += bins[latency]
        if seen >= least:
            return latency or None
    return None
