"""Means and confidence intervals over replications, and paired differences from a base variant."""

from __future__ import annotations

import csv
import io
import math
import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ftlab.results.labels import cut_left
from ftlab.studies import readable
from ftlab.studies.declaration import Figure
from ftlab.studies.series import Number

CONFIDENCE = 0.95
"""The probability that a confidence interval holds the true mean."""

VALUES = (
    *("latency.read.mean_ns", "latency.write.mean_ns", "latency.all.mean_ns"),
    *("latency.all.percentile_ns.99.000000", "mapping.hit_ratio", "waf.total", "throughput_bytes_per_s"),
)
"""The values that are summarised if a study declares none."""

GAP = 2
"""The number of spaces between columns."""
LEAST = 12
"""A label is not cut to fewer characters than this."""


@dataclass(frozen=True)
class Estimate:
    """A mean over replications, with its confidence interval."""

    count: int
    mean: float
    half: float | None
    """Half the width of the confidence interval; None if there is only one replication."""

    @property
    def low(self) -> float | None:
        """Returns the lower end of the confidence interval."""
        return None if self.half is None else self.mean - self.half

    @property
    def high(self) -> float | None:
        """Returns the upper end of the confidence interval."""
        return None if self.half is None else self.mean + self.half


@dataclass(frozen=True)
class Line:
    """One value of one variant, summarised over the replications."""

    labels: Mapping[str, str]
    """The variant's labels on all axes except those that replicate."""
    value: str
    unit: str
    estimate: Estimate
    difference: Estimate | None
    """The mean of the paired differences from the base variant; None if there is no base variant, or if this
    variant is the base.
    """


def seeds(figure: Figure) -> list[str]:
    """Returns the axes that replicate: those that vary only the seed."""
    return [axis.name for axis in figure.axes if axis.key == "seed"]


def shown(figure: Figure, rows: Sequence[Mapping[str, Any]]) -> dict[str, str]:
    """Returns the values that are summarised, with their units."""
    there = {name for row in rows[:1] for name in row}
    declared = {value.name: value.unit for value in figure.values}
    return declared or {name: readable.unit_of(name) for name in VALUES if name in there}


def estimate(values: Sequence[float]) -> Estimate:
    """Returns the mean of some values and its confidence interval, by Student's t."""
    mean = math.fsum(values) / len(values)
    if len(values) < 2:
        return Estimate(len(values), mean, None)
    error = statistics.stdev(values) / math.sqrt(len(values))
    return Estimate(len(values), mean, student(len(values) - 1) * error)


def lines(figure: Figure, rows: Sequence[Mapping[str, Any]]) -> list[Line]:
    """Returns all values of all variants, in the order of ``rows``; a row has its labels in ``labels``."""
    over = seeds(figure)
    axes = [axis.name for axis in figure.axes if axis.name not in over]
    units = shown(figure, rows)
    found = []
    groups: dict[tuple[str, ...], dict[tuple[str, ...], Mapping[str, Any]]] = {}
    for row in rows:
        at = row["labels"]
        groups.setdefault(tuple(at[axis] for axis in axes), {})[tuple(at[axis] for axis in over)] = row
    for group, members in groups.items():
        at = dict(zip(axes, group, strict=True))
        base = tuple(figure.base.get(axis, at[axis]) for axis in axes)
        beside = groups.get(base, {}) if figure.base and base != group else {}
        for name, unit in units.items():
            values = _known(members, name)
            if values:
                differences = [
                    value - other
                    for seed, value in values.items()
                    if (other := _known(beside, name).get(seed)) is not None
                ]
                difference = estimate(differences) if differences else None
                found.append(Line(at, name, unit, estimate(list(values.values())), difference))
    return found


def _known(members: Mapping[tuple[str, ...], Mapping[str, Any]], name: str) -> dict[tuple[str, ...], float]:
    return {seed: float(row[name]) for seed, row in members.items() if row.get(name) is not None}


def student(freedom: int, confidence: float = CONFIDENCE) -> float:
    """Returns the bound that |t| exceeds with probability ``1 - confidence``, where t has Student's
    distribution.
    """
    low, high = 0.0, 2.0
    while _tails(high, freedom) > 1 - confidence:
        high *= 2
    for _ in range(100):
        middle = (low + high) / 2
        if _tails(middle, freedom) > 1 - confidence:
            low = middle
        else:
            high = middle
    return (low + high) / 2


def _tails(t: float, freedom: int) -> float:
    """Returns the probability that Student's t is more than ``t`` away from 0 (Abramowitz and Stegun, 26.7.3
    and 26.7.4).
    """
    angle = math.atan(t / math.sqrt(freedom))
    cosine = math.cos(angle)
    if freedom % 2:
        term = total = cosine if freedom > 1 else 0.0
        for step in range(3, freedom - 1, 2):
            term *= cosine * cosine * (step - 1) / step
            total += term
        return 1 - 2 / math.pi * (angle + math.sin(angle) * total)
    term = total = 1.0
    for step in range(2, freedom - 1, 2):
        term *= cosine * cosine * (step - 1) / step
        total += term
    return 1 - math.sin(angle) * total


def to_csv(figure: Figure, found: Sequence[Line]) -> str:
    """Returns all lines as CSV, one per row."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    axes = [axis.name for axis in figure.axes if axis.name not in seeds(figure)]
    header = [*axes, "value", "unit", "replications", "mean", "low", "high"]
    more = ["pairs", "difference", "difference_low", "difference_high"] if figure.base else []
    writer.writerow([*header, *more])
    for line in found:
        cells = [*line.labels.values(), line.value, line.unit, *_cells(line.estimate)]
        if figure.base:
            cells += _cells(line.difference) if line.difference else ["", "", "", ""]
        writer.writerow(cells)
    return out.getvalue()


def _cells(found: Estimate) -> list[str]:
    return [str(found.count), *(_text(each) for each in (found.mean, found.low, found.high))]


def _text(number: Number) -> str:
    return "" if number is None else f"{number:.10g}"


def render(figure: Figure, found: Sequence[Line], most: int, width: int | None = None) -> str:
    """Formats the lines as a table as wide as the terminal: a row per variant, a column per value.

    Columns that do not fit are named below; labels that are too long lose their beginning.
    """
    width = readable.room() if width is None else width
    axes = [axis.name for axis in figure.axes if axis.name not in seeds(figure)]
    variants: dict[tuple[str, ...], dict[str, Line]] = {}
    for line in found:
        variants.setdefault(tuple(line.labels.values()), {})[line.value] = line
    rows = list(variants.items())[:most]
    columns = {
        value: _column(value, [cells.get(value) for _, cells in rows])
        for value in dict.fromkeys(line.value for line in found)
    }
    labels = {axis: [axis, *(own[at] for own, _ in rows)] for at, axis in enumerate(axes)}
    kept, left_out = _fitting(list(labels.values()), columns, width)
    named = _cut(list(labels.values()), kept, width)
    every = [*((column, False) for column in named), *((column, True) for column in kept)]
    table = readable.table([(column[0], numeric) for column, numeric in every])
    for at in range(1, len(rows) + 1):
        table.add_row(*(column[at] for column, _ in every))
    text = readable.text_of(table, width)
    if left_out:
        text += f"no room for {', '.join(left_out)} (summary.csv has them)\n"
    if len(variants) > most:
        text += f"{len(variants) - most:,} more variants\n"
    return text


def _column(name: str, cells: Sequence[Line | None]) -> list[str]:
    """Returns a column of the table: its heading and its cells, all in one unit."""
    there = [cell for cell in cells if cell is not None]
    unit = there[0].unit if there else ""
    scale = readable.scale((cell.estimate.mean for cell in there), unit)
    return [readable.heading(name, scale.name), *(_cell(cell, scale.ns) for cell in cells)]


def _wide(columns: Iterable[Sequence[str]]) -> int:
    return sum(readable.widest(column) + GAP for column in columns)


def _fitting(
    labels: Sequence[Sequence[str]], columns: Mapping[str, list[str]], width: int
) -> tuple[list[list[str]], list[str]]:
    """Returns the columns for which there is room behind the labels, at least one, and the others' names."""
    names = list(columns)
    kept = len(names)
    while kept > 1 and _wide(labels) + _wide(columns[name] for name in names[:kept]) > width + GAP:
        kept -= 1
    return [columns[name] for name in names[:kept]], names[kept:]


def _cut(
    labels: Sequence[Sequence[str]], columns: Sequence[Sequence[str]], width: int
) -> Sequence[Sequence[str]]:
    """Cuts the longest labels on the left, where names of files differ least, until the rows fit."""
    labels = list(labels)
    while (beyond := _wide(labels) + _wide(columns) - width - GAP) > 0:
        at = max(range(len(labels)), key=lambda each: readable.widest(labels[each]), default=0)
        longest = readable.widest(labels[at]) if labels else 0
        if longest <= LEAST:
            break
        labels[at] = [cut_left(label, max(longest - beyond, LEAST)) for label in labels[at]]
    return labels


def _cell(line: Line | None, unit: int) -> str:
    if line is None:
        return "-"
    text = _plus_minus(line.estimate, unit)
    if line.difference:
        sign = "+" if line.difference.mean >= 0 else ""
        text += f"\n({sign}{_plus_minus(line.difference, unit)})"
    return text


def _plus_minus(found: Estimate, unit: int) -> str:
    half = "" if found.half is None else f" ±{found.half / unit:.2g}"
    return f"{found.mean / unit:.4g}{half}"
