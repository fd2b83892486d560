"""What a study declares: axes, values and panels. A study is a figure of a paper, or your own."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ftlab._core import UserError
from ftlab.studies.axes import Axis, load_axis
from ftlab.studies.expression import Expression, listed
from ftlab.studies.toml import Table, place

CALIBRATED = "calibrated"
RECORDED = "recorded"

EXTRA_AXES = {"runs": (), "requests": ("request",), "points": ("point",)}
"""What a figure may evaluate: for each choice, the axes that its results add."""

MEASURES = ("run", "tenants", "workload", "shared-entries")
"""The ways in which a cell may be measured (`ftlab.studies.measure`)."""

MOST_RUNS = 10_000
"""The maximum number of cells of a figure; more are a mistake in its axes."""

MOST_OF_A_SWEEP = 1_000_000
"""The maximum number of runs of a user's own study."""

WORST = 100
"""How many volumes of a fleet are listed by default."""

MARKS = ("bars", "stack", "lines", "points", "steps", "table")
"""The ways in which a panel may be drawn; a table is written instead."""


@dataclass(frozen=True)
class Value:
    """A number evaluated for each run (or for each request of a run)."""

    name: str
    get: Expression
    unit: str
    title: str


@dataclass(frozen=True)
class Panel:
    """A separately drawn part of a figure."""

    title: str
    mark: str
    values: tuple[str, ...]
    x: str
    series: str | None
    facet: str | None
    once: tuple[str, ...]
    """Values that are the same for every series, so they are drawn only once, as a series of their own."""
    where: Mapping[str, Any]
    normalise: Mapping[str, str]
    """Labels of the baseline; if empty, values are shown as measured."""
    relative: str
    """How values are normalised: "ratio", "change" (per cent) or "reduction" (per cent less)."""
    mean: bool
    """Whether the arithmetic mean over x is added."""
    y_title: str
    x_title: str
    quantitative: bool
    """Whether x is a number."""
    log: tuple[bool, bool]
    y_range: tuple[float, float] | None
    legend: bool = True
    """Whether the panel has a legend; false if another panel has the same legend."""


@dataclass(frozen=True)
class Aggregate:
    """How a fleet is made: along which axes runs are combined, and which volumes are listed."""

    over: tuple[str, ...]
    by: str
    """The value by which volumes are sorted, the worst first."""
    worst: int
    """How many of the worst volumes are listed."""


@dataclass(frozen=True)
class Figure:
    """A study: a figure or a table of a paper, or one of your own."""

    paper: str
    """The paper's name; empty for a study of your own."""
    id: str
    path: Path
    title: str
    place: str
    about: str
    kind: str
    """The kind of workloads: CALIBRATED or RECORDED."""
    of: str
    """The id of the figure that this one repeats on other workloads, or else its own id."""
    what: str
    """What is evaluated (EXTRA_AXES): "runs", "requests" (each request) or "points" (a list in a result)."""
    points: Expression | None
    """For points: the expression that finds the list of points in a result."""
    config: str
    set: Mapping[str, str]
    quick: Mapping[str, str]
    axes: tuple[Axis, ...]
    values: tuple[Value, ...]
    panels: tuple[Panel, ...]
    measure: str
    """How a cell is measured (MEASURES): "run", "tenants" (a run, and each tenant alone), "workload" (the
    generator alone), "shared-entries"."""
    skip: int
    """For requests: the number of requests at the beginning that only warm up."""
    report: bool
    """Whether the figure's runs are in the interactive report."""
    long: bool
    """Whether a quick run leaves the figure out unless it is named."""
    seconds: float
    """The rough cost of a run, for the estimate of the time left."""
    base: Mapping[str, str]
    """Labels of the variant with which the others are compared; empty if there is none."""
    aggregate: Aggregate | None

    def axis(self, name: str) -> Axis | None:
        """Returns the axis of that name; None for one that comes with the results (requests, points)."""
        return next((axis for axis in self.axes if axis.name == name), None)

    def value(self, name: str) -> Value:
        """Returns the value of that name."""
        return next(value for value in self.values if value.name == name)


def load_figure(folder: Path, paper: str, name: str) -> Figure:
    """Reads ``folder/NAME.toml``.

    Raises:
        UserError: the file is missing or wrong; the text says what is wrong with it.
    """
    path = folder / f"{name}.toml"
    table = Table(path)
    like = table.text("like", name)
    if like != name:
        table = table.over(Table(folder / f"{like}.toml"))
    return _figure(table, paper, name, like)


def load_study(path: Path) -> Figure:
    """Reads a user's own study: like a figure, but title, place, values and panels are optional.

    Raises:
        UserError: the file is missing or wrong; the text says what is wrong with it.
    """
    table = Table(path)
    if like := table.text("like", ""):
        table = table.over(Table(path.parent / f"{like}.toml"))
    if not table.has("axis") and table.has("parameter"):
        raise UserError(f"{path}: a search (it has [parameter.NAME] and no axes): use `ftlab tune`")
    figure = _figure(table, "", path.stem, like or path.stem)
    if figure.what != "runs":
        raise table.wrong("what", f"{figure.what!r}; a sweep has a row for each run")
    return figure


def study_of(path: Path) -> Figure:
    """Makes a study without axes, for runs chosen elsewhere; ``path`` names the place where the runs are
    stated.
    """
    return _figure(Table(path, {}), "", path.stem, path.stem)


def _figure(table: Table, paper: str, name: str, like: str) -> Figure:
    path, own = table.path, not paper
    axes = tuple(load_axis(axis, inner) for axis, inner in table.table("axis").items())
    figure = Figure(
        paper=paper,
        id=name,
        path=path,
        title=table.text("title", name if own else None),
        place=table.text("place", "" if own else None),
        about=table.text("about", ""),
        kind=table.text("kind", CALIBRATED),
        of=like,
        what=table.text("what", "runs"),
        points=Expression(table.text("points"), table.place("points")) if table.has("points") else None,
        config=table.text("config", ""),
        set=table.keys_of("set"),
        quick=table.keys_of("quick"),
        axes=axes,
        values=(*(_value(name, inner) for name, inner in table.table("value").items()), *_derived(table)),
        panels=tuple(_panel(inner) for inner in table.tables("panel")),
        measure=table.text("measure", "run"),
        skip=table.get("skip", int, 0),
        report=table.flag("report"),
        long=table.flag("long"),
        seconds=table.number("seconds", 1),
        base=_base(table),
        aggregate=_aggregate(table, axes),
    )
    table.done()
    for key, value, known in (
        ("kind", figure.kind, (CALIBRATED, RECORDED)),
        ("what", figure.what, tuple(EXTRA_AXES)),
        ("measure", figure.measure, MEASURES),
    ):
        if value not in known:
            raise table.wrong(key, f"{value!r}; it is {' or '.join(known)}")
    if (figure.points is None) == (figure.what == "points"):
        raise table.wrong("points", 'comes with what = "points", and the other way round')
    runs = math.prod(len(axis.choices) for axis in figure.axes)
    if runs > (MOST_OF_A_SWEEP if own else MOST_RUNS):
        raise table.wrong("axis", f"{runs:,} runs are more than {MOST_OF_A_SWEEP if own else MOST_RUNS:,}")
    for axis, label in figure.base.items():
        found = figure.axis(axis)
        if found is None or label not in found.labels:
            raise table.wrong("compare.base", f"{axis} = {label!r}: no such axis or label")
    for number, panel in enumerate(figure.panels):
        _check_panel(table, figure, panel, f"panel[{number}]")
    return figure


def _check_panel(table: Table, figure: Figure, panel: Panel, name: str) -> None:
    values = [value.name for value in figure.values]
    axes = [axis.name for axis in figure.axes] + list(EXTRA_AXES[figure.what])
    named: list[tuple[str, Sequence[str], list[str]]] = [
        ("value", panel.values, values),
        ("value", panel.once, values),
        ("axis or value", [panel.x], axes + values),
    ]
    shown = [each for each in (panel.series, panel.facet) if each is not None]
    named += [("axis", given, axes) for given in (shown, list(panel.where), list(panel.normalise))]
    for kind, given, known in named:
        for each in given:
            if each not in known:
                raise table.wrong(name, f"no {kind} {each!r}{listed(each, known)}")
    if figure.paper or panel.mark == "table" or panel.x not in axes:
        return
    said = {
        panel.x,
        panel.series,
        panel.facet,
        *(axis for axis, of in panel.where.items() if isinstance(of, str)),
    }
    for axis in figure.axes:
        if len(axis.choices) > 1 and axis.name not in said and axis.key != "seed":
            raise table.wrong(name, f"of which {axis.name}? Name it as series or facet, or choose with where")


def _base(table: Table) -> dict[str, str]:
    inner = table.inner("compare")
    labels = inner.labels("base")
    inner.done()
    if table.has("compare") and not labels:
        raise inner.wrong("base", "is missing: { AXIS = LABEL }")
    return labels


def _aggregate(table: Table, axes: Sequence[Axis]) -> Aggregate | None:
    if not table.has("aggregate"):
        return None
    inner = table.inner("aggregate")
    files = [axis.name for axis in axes if axis.key == "workload.trace"]
    over = inner.texts("over") if inner.has("over") else files
    aggregate = Aggregate(
        tuple(over),
        inner.text("by", "latency.all.percentile_ns.99"),
        inner.get("worst", int, WORST),
    )
    inner.done()
    for name in aggregate.over:
        if name not in {axis.name for axis in axes}:
            raise inner.wrong("over", f"no axis {name!r}; there are: {', '.join(axis.name for axis in axes)}")
    if not aggregate.over:
        raise inner.wrong("over", "is missing: the axes whose runs are one fleet")
    return aggregate


def _derived(table: Table) -> list[Value]:
    """Reads ``[derive]``: NAME = expression."""
    inner = table.inner("derive")
    values = [
        Value(name, Expression(inner.text(name), inner.place(name)), "", name)
        for name in table.get("derive", dict, {})
    ]
    return values


def _value(name: str, table: Table) -> Value:
    value = Value(
        name,
        Expression(table.text("is"), place(table.path, table.where.rstrip("."))),
        table.text("unit", ""),
        table.text("title", name),
    )
    table.done()
    return value


def _panel(table: Table) -> Panel:
    values = [table.text("value")] if table.has("value") else table.texts("values")
    span = table.list_of("y_range", (int, float))
    if len(span) not in (0, 2):
        raise table.wrong("y_range", "two numbers, least and greatest")
    panel = Panel(
        title=table.text("title", ""),
        mark=table.text("mark"),
        values=tuple(values),
        x=table.text("x"),
        series=table.text("series", "") or None,
        facet=table.text("facet", "") or None,
        once=tuple(table.texts("once")),
        where=_where(table),
        normalise=table.labels("normalise"),
        relative=table.text("relative", "ratio"),
        mean=table.flag("mean"),
        y_title=table.text("y", ""),
        x_title=table.text("x_title", ""),
        quantitative=table.flag("quantitative"),
        log=(table.flag("x_log"), table.flag("y_log")),
        y_range=(float(span[0]), float(span[1])) if span else None,
    )
    table.done()
    if panel.mark not in MARKS:
        raise table.wrong("mark", f"{panel.mark!r}; there are: {', '.join(MARKS)}")
    if panel.relative not in ("ratio", "change", "reduction"):
        raise table.wrong("relative", "ratio, change or reduction")
    return panel


def _where(table: Table) -> dict[str, str | list[str]]:
    inner = table.inner("where")
    return {
        axis: inner.texts(axis) if isinstance(labels, list) else inner.text(axis)
        for axis, labels in table.get("where", dict, {}).items()
    }


@dataclass(frozen=True)
class Trace:
    """A recorded trace: where it is and how it is replayed."""

    name: str
    file: str
    set: Mapping[str, str]


def load_traces(base: Path) -> dict[str, Trace]:
    """Reads the recorded traces that figures may name (``papers/traces.toml``)."""
    path = base / "papers" / "traces.toml"
    table = Table(path)
    traces = {}
    for name, inner in table.table("trace").items():
        traces[name] = Trace(name, inner.text("file"), inner.keys_of("set"))
        inner.done()
    table.done()
    return traces
