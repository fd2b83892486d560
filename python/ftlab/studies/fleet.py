"""Combines the results of many volumes into one: histograms are merged bin by bin, counters summed."""

from __future__ import annotations

import csv
import io
import json
import math
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from ftlab.outputs import inside
from ftlab.results.histogram import Histogram
from ftlab.studies.cache import Cache
from ftlab.studies.declaration import Figure
from ftlab.studies.expression import Expression
from ftlab.studies.plan import Run
from ftlab.studies.rows import flat, names_of

PARTS = ("latency", "wait", "access")
OPS = ("read", "write", "all")

SUMMED = ("trace", "flash", "merges")
"""Sections whose whole numbers are summed over the volumes; means and shares in them are not."""

_CAUSES: dict[str, tuple[str, ...]] = {
    "total": (),
    "gc": ("gc", "wear", "refresh"),
    "map": ("map", "gc-map", "dir"),
    "merge": ("merge",),
    "pad": ("pad",),
}
"""The causes whose programs each kind of write amplification counts; an empty tuple means all causes."""


class Fleet:
    """Combines results, which are added one at a time and not kept."""

    def __init__(self) -> None:
        """Starts with no volumes."""
        self.volumes = 0
        self._histograms = {(part, op): Histogram() for part in PARTS for op in OPS}
        self._sums: dict[str, Any] = {}
        self._mapping = {"hits": 0, "misses": 0, "prefetches": 0}
        self._written = 0.0
        self._elapsed = 0

    def add(self, result: Mapping[str, Any]) -> None:
        """Adds the result of a volume."""
        self.volumes += 1
        for (part, op), histogram in self._histograms.items():
            self._histograms[part, op] = histogram.merge(Histogram.of_summary(result[part][op]))
        for section in SUMMED:
            _sum(self._sums.setdefault(section, {}), result[section])
        for name in self._mapping:
            self._mapping[name] += result["mapping"][name]
        # The number of pages that hosts wrote is the number programmed divided by the write amplification.
        if result["waf"]["total"]:
            self._written += sum(result["flash"]["programs"].values()) / result["waf"]["total"]
        self._elapsed = max(self._elapsed, result["elapsed_ns"])

    def result(self) -> dict[str, Any]:
        """Returns the fleet's result, with the fields of a single run's result."""
        programs = self._sums.get("flash", {}).get("programs", {})
        found = {"schema": "ftlab.fleet.v1", "volumes": self.volumes, **self._sums}
        for part in PARTS:
            found[part] = {op: self._histograms[part, op].to_dict() for op in OPS}
        looked = self._mapping["hits"] + self._mapping["misses"]
        found["mapping"] = {
            **self._mapping,
            "hit_ratio": (self._mapping["hits"] - self._mapping["prefetches"]) / looked if looked else None,
        }
        found["waf"] = {
            name: sum(programs.get(cause, 0) for cause in causes or programs) / self._written
            if self._written
            else None
            for name, causes in _CAUSES.items()
        }
        found["elapsed_ns"] = self._elapsed
        return found


def of(results: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """Returns the result of a fleet, from the results of its volumes."""
    fleet = Fleet()
    for result in results:
        fleet.add(result)
    return fleet.result()


def _sum(into: dict[str, Any], table: Mapping[str, Any]) -> None:
    for name, value in table.items():
        if isinstance(value, Mapping):
            # A summary of times cannot be summed field by field; `Fleet.add` merges its histogram instead.
            if "percentile_ns" not in value:
                _sum(into.setdefault(name, {}), value)
        elif isinstance(value, int) and not isinstance(value, bool):
            into[name] = into.get(name, 0) + value


TABLES = ("fleets.json", "fleets.csv", "worst.csv")


def write(figure: Figure, runs: Sequence[Run], cache: Cache, out: Path) -> None:
    """Writes fleets.json, fleets.csv and worst.csv, with a fleet for each variant; removes them if the study
    declares no fleet.

    Raises:
        UserError: a file cannot be written, or the expression that orders volumes does not fit the results.
    """
    aggregate = figure.aggregate
    if aggregate is None:
        for name in TABLES:
            (out / name).unlink(missing_ok=True)
        return
    names = [axis.name for axis in figure.axes]
    by = Expression(aggregate.by, f"{figure.path}: aggregate.by")
    fleets: dict[tuple[str, ...], Fleet] = {}
    worst: dict[tuple[str, ...], list[tuple[float, tuple[str, ...]]]] = {}
    for run in runs:
        result = cache.get(run.key)
        if result is None:
            # This run failed, so it has no result.
            continue
        variant = tuple(
            label for name, label in zip(names, run.labels, strict=True) if name not in aggregate.over
        )
        fleets.setdefault(variant, Fleet()).add(result)
        value = by.number(names_of(result))
        volumes = worst.setdefault(variant, [])
        volumes.append((-math.inf if value is None else value, run.labels))
        volumes.sort(key=lambda each: -each[0])
        del volumes[aggregate.worst :]
    rest = [name for name in names if name not in aggregate.over]
    found = [
        {"labels": dict(zip(rest, variant, strict=True)), **fleet.result()}
        for variant, fleet in fleets.items()
    ]
    inside(out, "fleets.json").write((json.dumps(found) + "\n").encode())
    lines = [flat({**each.pop("labels"), **each}) for each in found]
    columns = list(dict.fromkeys(name for line in lines for name in line))
    table = [[line.get(name, "") for name in columns] for line in lines]
    inside(out, "fleets.csv").write(_csv(columns, table))
    listed = [[*labels, f"{value:.10g}"] for volumes in worst.values() for value, labels in volumes]
    inside(out, "worst.csv").write(_csv([*names, aggregate.by], listed))


def _csv(header: Sequence[str], rows: Iterable[Sequence[Any]]) -> bytes:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(header)
    writer.writerows(rows)
    return text.getvalue().encode()
