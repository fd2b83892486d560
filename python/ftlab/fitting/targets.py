"""The targets that a generator has to match, read from a file or derived from a trace."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ftlab import _core
from ftlab._core import Config, UserError
from ftlab.configs import read_toml, to_text
from ftlab.fitting import arrivals, sizes
from ftlab.fitting.measure import measure, miss_ratio
from ftlab.fitting.persistence import Persistence
from ftlab.fitting.quantity import parse

COUNTS = ("requests", "reads", "writes", "trims", "read_conflicts", "write_conflicts")
"""Targets that are whole numbers of requests."""

RATIOS = ("write_ratio", "sequential_ratio", "stream_ratio", "near_ratio", "miss_ratio", "updated_ratio")
"""Targets that are ratios, between 0 and 1."""

SIZES = ("mean_size", "mean_read_size", "mean_write_size")
"""Targets that are sizes."""

TIMES = ("mean_interarrival", "median_interarrival")
"""Targets that are times."""

NUMBERS = {"interarrival_cv": (0.0, 1e3), "burst_length": (1.0, 1e6)}
"""Targets that are other numbers, with their limits."""

MOST_MEDIAN = 0.6
"""The largest ratio of the median to the mean gap; a single exponential has 0.69."""

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
_DEFAULT_SIZES = [4096 << shift for shift in range(5)]


@dataclass
class Targets:
    """The characteristics that a generator has to match; those that are not requested are None."""

    name: str
    source: str
    """Where the numbers come from, for the model's file."""
    reads: int
    writes: int
    trims: int = 0
    write_ratio: float | None = None
    """Share of writes among reads and writes, if it was stated instead of their counts."""
    read_sizes: sizes.Mix | None = None
    write_sizes: sizes.Mix | None = None
    mean_size: float | None = None
    mean_read_size: float | None = None
    mean_write_size: float | None = None
    sequential_ratio: float | None = None
    stream_ratio: float | None = None
    """The share of requests that begin where one of the 8 requests before them ended."""
    near_ratio: float | None = None
    """The share of requests that begin in the same range of 2 MiB as one of the 8 requests before them."""
    mean_interarrival_ns: float | None = None
    median_interarrival_ns: float | None = None
    """The median gap, which is given only together with ``burst_length``."""
    interarrival_cv: float | None = None
    burst_length: float | None = None
    """The number of requests per gap above the mean gap."""
    persistence: Persistence | None = None
    """How long the sizes of the trace persist."""
    footprint_bytes: int | None = None
    miss_ratio: float | None = None
    updated_ratio: float | None = None
    """The share of updated entries among those that the device's mapping flushes program."""
    read_conflicts: int | None = None
    write_conflicts: int | None = None
    synthetic: dict[str, str] = field(default_factory=dict)
    """Keys of the generator that are given, not fitted."""
    notes: list[str] = field(default_factory=list)

    @property
    def requests(self) -> int:
        """Returns the number of all requests."""
        return self.reads + self.writes + self.trims


def read_targets(path: str, only: tuple[str, ...] = ()) -> tuple[dict[str, Any], list[Targets]]:
    """Returns the configuration and the targets of a file; ``only`` names the targets wanted (default: all).

    Raises:
        UserError: the file is wrong; the text says where.
    """
    data = read_toml(path, "targets file")
    unknown = sorted(set(data) - {"source", "config", "synthetic", "targets"})
    if unknown:
        raise UserError(f"{path}: {unknown[0]}: unknown; there are source, config, synthetic, targets")
    for table in ("config", "synthetic", "targets"):
        if not isinstance(data.get(table, {}), dict):
            raise UserError(f"{path}: {table}: a table is expected")
    found = data.get("targets", {})
    if not found:
        raise UserError(f"{path}: no [targets.NAME]; nothing to fit")
    missing = [name for name in only if name not in found]
    if missing:
        raise UserError(f"{path}: no [targets.{missing[0]}]; there are {', '.join(found)}")
    reader = _Reader(path, str(data.get("source", "")), data.get("synthetic", {}))
    return data.get("config", {}), [
        reader.read(name, table) for name, table in found.items() if not only or name in only
    ]


@dataclass
class _Reader:
    path: str
    source: str
    synthetic: Mapping[str, Any]

    def read(self, name: str, table: Any) -> Targets:
        place = f"{self.path}: targets.{name}"
        if not _NAME.fullmatch(name):
            raise UserError(f"{place}: the name becomes a file's: letters, digits, . _ and -")
        if not isinstance(table, dict):
            raise UserError(f"{place}: a table is expected")
        values = self._values(place, table)
        _operations(place, values)
        targets = Targets(
            name=name,
            source=", ".join(part for part in (self.source, str(table.get("source", name))) if part),
            reads=values.pop("reads", 0),
            writes=values.pop("writes", 0),
            synthetic={
                key: to_text(value) for key, value in {**self.synthetic, **table.get("synthetic", {})}.items()
            },
            **values,
        )
        _check(place, targets)
        self._mixes(place, table, targets)
        return targets

    def _values(self, place: str, table: Mapping[str, Any]) -> dict[str, Any]:
        """Returns those targets of a table that are numbers."""
        known = {"source", "sizes", "synthetic", *TIMES, *NUMBERS, *COUNTS, *RATIOS, *SIZES}
        values: dict[str, Any] = {}
        for key, value in table.items():
            if key not in known:
                raise UserError(f"{place}.{key}: unknown; there are {', '.join(sorted(known))}")
            if key in COUNTS:
                values[key] = self._count(place, key, value)
            elif key in RATIOS:
                values[key] = self._number(place, key, value, 0.0, 1.0)
            elif key in NUMBERS:
                values[key] = self._number(place, key, value, *NUMBERS[key])
            elif key in TIMES:
                values[f"{key}_ns"] = _quantity(place, "interarrival", value)
            elif key in SIZES:
                values[key] = _quantity(place, "size", value)
        return values

    def _mixes(self, place: str, table: Mapping[str, Any], targets: Targets) -> None:
        """Sets mixes of sizes that have the requested means."""
        given = table.get("sizes")
        allowed = (
            [round(_quantity(place, "size", size)) for size in given] if given is not None else _DEFAULT_SIZES
        )
        for op in ("read", "write"):
            key = "mean_size" if targets.mean_size is not None else f"mean_{op}_size"
            mean: float | None = getattr(targets, key)
            if mean is None:
                continue
            mix = sizes.of_mean(allowed, mean)
            if mix is None:
                raise UserError(
                    f"{place}.{key}: {mean:,.0f} B is not a mean of sizes from {min(allowed):,} to"
                    f" {max(allowed):,} B; give others (sizes = [...])"
                )
            setattr(targets, f"{op}_sizes", mix)

    @staticmethod
    def _count(place: str, key: str, value: Any) -> int:
        if isinstance(value, bool) or not isinstance(value, int) or value < 0:
            raise UserError(f"{place}.{key}: {value}: expected a whole number of requests")
        return value

    @staticmethod
    def _number(place: str, key: str, value: Any, least: float, most: float) -> float:
        if isinstance(value, bool) or not isinstance(value, (int, float)) or not least <= value <= most:
            raise UserError(f"{place}.{key}: {value}: expected a number from {least:g} to {most:g}")
        return float(value)


def _operations(place: str, values: dict[str, Any]) -> None:
    """Sets the counts of reads and writes from ``requests`` and ``write_ratio``, if these are stated."""
    requests, ratio = values.pop("requests", None), values.get("write_ratio")
    if requests is None and ratio is None:
        return
    if requests is None or ratio is None:
        raise UserError(f"{place}: requests and write_ratio come together")
    if "reads" in values or "writes" in values:
        raise UserError(f"{place}: reads and writes, or requests and write_ratio; not both")
    moved = requests - values.get("trims", 0)
    if moved < 0:
        raise UserError(f"{place}: more trims than requests")
    values["writes"] = round(moved * ratio)
    values["reads"] = moved - values["writes"]


def _check(place: str, targets: Targets) -> None:
    if targets.requests == 0:
        raise UserError(f"{place}: no reads and no writes; give their counts")
    if (targets.read_conflicts is None) != (targets.write_conflicts is None):
        raise UserError(f"{place}: read_conflicts and write_conflicts come together")
    if targets.mean_size is not None and (targets.mean_read_size or targets.mean_write_size):
        raise UserError(f"{place}: mean_size, or mean_read_size and mean_write_size; not both")
    _check_arrivals(place, targets)
    if targets.stream_ratio is not None and targets.near_ratio is None:
        raise UserError(f"{place}: stream_ratio needs near_ratio")
    if not (targets.sequential_ratio or 0.0) <= (targets.stream_ratio or 1.0):
        raise UserError(f"{place}: stream_ratio: less than sequential_ratio, which it contains")
    for ops, conflicts in (("reads", targets.read_conflicts), ("writes", targets.write_conflicts)):
        if (conflicts or 0) > getattr(targets, ops):
            raise UserError(f"{place}: more conflicts than {ops}")


def _check_arrivals(place: str, targets: Targets) -> None:
    """Checks that the figures given for the gaps are compatible."""
    mean, median = targets.mean_interarrival_ns, targets.median_interarrival_ns
    cv, length = targets.interarrival_cv, targets.burst_length
    for key, value in (("interarrival_cv", cv), ("burst_length", length), ("median_interarrival", median)):
        if value is not None and mean is None:
            raise UserError(f"{place}: {key} needs mean_interarrival")
    if length is not None and cv is None and median is None:
        raise UserError(f"{place}: burst_length needs interarrival_cv or median_interarrival")
    if median is not None and length is None:
        raise UserError(f"{place}: median_interarrival needs burst_length")
    if median is not None and mean is not None and median >= mean * MOST_MEDIAN:
        raise UserError(
            f"{place}: median_interarrival: expected less than {MOST_MEDIAN} of mean_interarrival"
        )


def _quantity(place: str, key: str, value: Any) -> float:
    """Parses a size, in bytes, or a time, in nanoseconds, as the generator's own key does."""
    leaf = "size" if key == "size" else "interarrival"
    try:
        text = f'[workload.synthetic]\nrequests = 1\n{leaf} = "{value}"\n'
        config = _core.resolve_text(place, text, [])
    except UserError as error:
        first = str(error).splitlines()[0].rpartition(f"workload.synthetic.{leaf}: ")[2]
        raise UserError(f"{place}: {first}") from None
    return parse(json.loads(config.json())["workload"]["synthetic"][leaf])


def targets_of_trace(config: Config, name: str, conflicts: tuple[int, int] | None = None) -> Targets:
    """Describes a trace in the generator's terms.

    ``conflicts`` are those of its reads and writes on the device of interest.
    """
    from ftlab import traces

    found = traces.info(config)
    workload = measure(config)
    if workload.requests == 0:
        raise UserError(f"{config.trace}: no reads, writes or trims; nothing to fit")
    targets = Targets(
        name=name,
        source=f"made from {os.path.basename(config.trace or name)}",  # noqa: PTH119 - a text, not a file
        reads=workload.counts[0],
        writes=workload.counts[1],
        trims=workload.counts[2],
        read_sizes=sizes.of_counts(workload.read_sizes) if workload.read_sizes else None,
        write_sizes=sizes.of_counts(workload.write_sizes) if workload.write_sizes else None,
        mean_read_size=workload.mean_read_size,
        mean_write_size=workload.mean_write_size,
        sequential_ratio=workload.sequential_ratio,
        stream_ratio=workload.stream_ratio,
        near_ratio=workload.near_ratio,
        footprint_bytes=found["footprint_bytes"],
        miss_ratio=miss_ratio(config, found["footprint_bytes"]),
    )
    if workload.mean_gap_ns:
        targets.mean_interarrival_ns = workload.mean_gap_ns
        targets.interarrival_cv = workload.gap_cv
        if workload.gap_cv > arrivals.POISSON_CV:
            targets.burst_length = workload.burst_length
            targets.persistence = workload.persistence
            if workload.median_gap_ns < MOST_MEDIAN * workload.mean_gap_ns:
                targets.median_interarrival_ns = workload.median_gap_ns
    if conflicts is not None:
        targets.read_conflicts, targets.write_conflicts = conflicts
    align = min(max(found["alignment_bytes"] or sizes.SECTOR, sizes.SECTOR), 4096)
    targets.synthetic = {"align": f"{align}B", "region": f"{_region(targets, found['footprint_bytes'])}B"}
    if found["flushes"]:
        targets.notes.append(f"{found['flushes']:,} flushes are left out: the generator makes none")
    if not workload.mean_gap_ns:
        targets.notes.append("the trace has no times: every request of the model arrives at 0")
    return targets


def _region(targets: Targets, footprint: int) -> int:
    """Returns the footprint in bytes, or the largest size of a request if that is more."""
    mixes = [*(targets.read_sizes or []), *(targets.write_sizes or [])]
    return max(footprint, *(size for size, _ in mixes))
