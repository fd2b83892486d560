"""The values of a study by label, and the values that a panel draws."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from ftlab._core import UserError
from ftlab.studies.declaration import EXTRA_AXES, Figure, Panel
from ftlab.studies.plan import AxisLabels, Run
from ftlab.studies.series import Number, Series

MEAN = "mean"
"""The label of the mean over an axis."""


@dataclass(frozen=True)
class Row:
    """The values of one cell of a figure."""

    labels: AxisLabels
    values: Mapping[str, Number]


@dataclass(frozen=True)
class Study:
    """A figure with its measured values."""

    figure: Figure
    axes: tuple[str, ...]
    rows: tuple[Row, ...]
    runs: tuple[Run, ...]
    absent: tuple[str, ...]
    """Names of recorded traces that are absent."""

    def series(self, value: str, where: Mapping[str, Any] | None = None) -> Any:
        """Returns a value as a series over those axes for which ``where`` names no label."""
        cells = {row.labels: row.values[value] for row in self.rows}
        return Series(self.axes, cells).select(where or {})

    def names(self) -> dict[str, Callable[..., Any]]:
        """Returns the functions that an expression can call: one for each value, by the value's name."""

        def bound(value: str) -> Callable[..., Any]:
            return lambda **where: self.series(value, where)

        return {value.name: bound(value.name) for value in self.figure.values}

    def labels(self, axis: str) -> list[str]:
        """Returns the labels of an axis that were measured, in drawing order."""
        place = self.axes.index(axis)
        return list(dict.fromkeys(row.labels[place] for row in self.rows))


def measured(
    figure: Figure, runs: Sequence[Run], results: Mapping[str, dict[str, Any]], absent: Iterable[str]
) -> Study:
    """Returns the table of a figure from its runs' results.

    Raises:
        UserError: an expression of the figure does not fit the results.
    """
    own = tuple(axis.name for axis in figure.axes)
    extra = EXTRA_AXES[figure.what]
    rows = []
    for each in runs:
        for label, names in _cells(figure, results[each.key]):
            values = {value.name: value.get.number(names) for value in figure.values}
            rows.append(Row((*each.labels, *label), values))
    return Study(figure, (*own, *extra), tuple(rows), tuple(runs), tuple(absent))


def _cells(figure: Figure, result: dict[str, Any]) -> Iterator[tuple[AxisLabels, Mapping[str, Any]]]:
    if figure.what == "requests":
        yield from _requests(figure, result)
    elif figure.what == "points":
        assert figure.points is not None
        for number, point in enumerate(_points(figure.points(result)), start=1):
            yield (str(number),), {**result, **point}
    else:
        yield (), result


def _points(found: Any) -> list[dict[str, Any]]:
    """Returns what an expression found in a result as points. A list of points is returned unchanged; one or
    two series over time are converted. A point made from series has time_ns, the count, mean and max of the
    first series, and the mean of the second, if there is one, as mean_2.
    """
    if isinstance(found, list) and not any("width_ns" in each for each in found):
        return found
    courses = [found] if isinstance(found, Mapping) else found
    first = courses[0]
    points = []
    for at in range(len(first["mean"])):
        middle = first["from_ns"] + (at + 0.5) * first["width_ns"]
        point = {"time_ns": middle, **{name: first[name][at] for name in ("count", "mean", "max")}}
        for number, other in enumerate(courses[1:], start=2):
            if other["mean"] and other["width_ns"] != first["width_ns"]:
                raise UserError("courses over time of different widths")
            point[f"mean_{number}"] = other["mean"][at] if at < len(other["mean"]) else 0.0
        points.append(point)
    return points


def _requests(figure: Figure, result: dict[str, Any]) -> Iterator[tuple[AxisLabels, Mapping[str, Any]]]:
    columns = {name: values[figure.skip :] for name, values in result["requests"].items()}
    order = sorted(range(len(columns["id"])), key=lambda at: (columns["dispatch_ns"][at], columns["id"][at]))
    place = {at: number for number, at in enumerate(order, start=1)}
    for at in range(len(columns["id"])):
        names = {name: values[at] for name, values in columns.items()}
        names["wait_ns"] = names["dispatch_ns"] - names["arrival_ns"]
        names["access_ns"] = names["complete_ns"] - names["dispatch_ns"]
        names["latency_ns"] = names["complete_ns"] - names["arrival_ns"]
        names["turn"] = place[at]
        yield (str(at + 1),), {**result, **names}


def relative(panel: Panel, value: Number, baseline: Number) -> Number:
    """Relates a value to its baseline, as the panel specifies."""
    if value is None or not baseline:
        return None
    share = value / baseline
    return {"ratio": share, "change": (share - 1) * 100, "reduction": (1 - share) * 100}[panel.relative]


@dataclass(frozen=True)
class Bar:
    """What is drawn for one cell."""

    labels: Mapping[str, str]
    value: str
    number: Number


def bars(study: Study, panel: Panel) -> list[Bar]:
    """Returns the panel's cells, normalised as the panel specifies; the mean over x comes last."""
    found = []
    for name in panel.values:
        table = {row.labels: row.values[name] for row in study.rows}
        for labels, number in table.items():
            at = dict(zip(study.axes, labels, strict=True))
            if any(_off(at[axis], wanted) for axis, wanted in panel.where.items()):
                continue
            shown = number
            if panel.normalise:
                # The parts of a stack are normalised to the baseline's total.
                base = tuple({**at, **panel.normalise}[axis] for axis in study.axes)
                parts = panel.values if panel.mark == "stack" else (name,)
                wholes = [_cell(study, base, part) for part in parts]
                shown = relative(panel, number, sum(each or 0.0 for each in wholes))
            found.append(Bar(at, name, shown))
    return [*found, *_means(study, panel, found)] if panel.mean else found


def _cell(study: Study, labels: AxisLabels, value: str) -> Number:
    return next((row.values[value] for row in study.rows if row.labels == labels), None)


def _off(label: str, wanted: Any) -> bool:
    return label != wanted if isinstance(wanted, str) else label not in wanted


def _means(study: Study, panel: Panel, found: Sequence[Bar]) -> list[Bar]:
    groups: dict[tuple[Any, ...], list[float]] = {}
    over = panel.facet or panel.x if panel.mark == "stack" else panel.x
    for bar in found:
        rest = {axis: label for axis, label in bar.labels.items() if axis != over}
        if bar.number is not None:
            groups.setdefault((bar.value, tuple(rest.items())), []).append(bar.number)
    means = []
    for (value, rest), numbers in groups.items():
        labels = {**dict(rest), over: MEAN}
        ordered = {axis: labels[axis] for axis in study.axes}
        means.append(Bar(ordered, value, math.fsum(numbers) / len(numbers)))
    return means


def text(number: Number) -> str:
    """Writes a number for the CSV, with ten digits, so that it is the same on every machine."""
    return "" if number is None else f"{number:.10g}"


def of_rows(figure: Figure, rows: Sequence[Mapping[str, Any]]) -> Study:
    """Returns the table of a sweep, made from its rows with their ``labels``: the means over the
    replications (`over_seeds`).
    """
    axes = tuple(axis.name for axis in figure.axes)
    names = [value.name for value in figure.values]
    cells = (
        Row(tuple(row["labels"][axis] for axis in axes), {name: row.get(name) for name in names})
        for row in rows
    )
    return over_seeds(Study(figure, axes, tuple(cells), (), ()))


def over_seeds(study: Study) -> Study:
    """Returns the means of a study over its replications, which is what panels show.

    Seeds that a panel names are not replications.
    """
    figure = study.figure
    named = {each for panel in figure.panels for each in (panel.x, panel.series, panel.facet, *panel.where)}
    seeds = {axis.name for axis in figure.axes if axis.key == "seed" and axis.name not in named}
    kept = [at for at, axis in enumerate(study.axes) if axis not in seeds]
    if len(kept) == len(study.axes):
        return study
    groups: dict[AxisLabels, list[Row]] = {}
    for row in study.rows:
        groups.setdefault(tuple(row.labels[at] for at in kept), []).append(row)
    means = []
    for labels, members in groups.items():
        known = {
            value.name: [number for row in members if (number := row.values[value.name]) is not None]
            for value in figure.values
        }
        values = {name: math.fsum(each) / len(each) if each else None for name, each in known.items()}
        means.append(Row(labels, values))
    return replace(study, axes=tuple(study.axes[at] for at in kept), rows=tuple(means))
