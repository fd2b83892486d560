"""What a study declares: axes, values and panels; a figure of a paper is one, and so is one of your own."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ftlab.configs import to_text
from ftlab.studies.expression import Expression
from ftlab.studies.toml import Table

CALIBRATED = "calibrated"
RECORDED = "recorded"

EXTRA_AXES = {"runs": (), "requests": ("request",), "points": ("point",)}
"""What a figure may evaluate, with the axes that come with the results."""

MEASURES = ("run", "workload", "shared-entries")
"""How a cell may be measured (`ftlab.studies.measure`)."""

MOST_RUNS = 10_000
"""Of a figure; more are a slip in its axes."""

MARKS = ("bars", "stack", "lines", "points", "steps", "table")
"""How a panel is drawn; a table is written, not drawn."""


@dataclass(frozen=True)
class Choice:
    """One label of an axis and what it stands for."""

    label: str
    config: str | None = None
    """Configuration file, or None: the figure's."""
    set: Mapping[str, str] = field(default_factory=dict)
    traces: tuple[str, ...] = ()
    """Names of recorded traces (`papers/traces.toml`), replayed one after another."""


@dataclass(frozen=True)
class Axis:
    """What varies, in the order it is drawn."""

    name: str
    choices: tuple[Choice, ...]
    title: str

    @property
    def labels(self) -> list[str]:
        """Its labels in order."""
        return [choice.label for choice in self.choices]

    @property
    def key(self) -> str | None:
        """The only key that it varies, if there is just one."""
        keys = {tuple(choice.set) for choice in self.choices if not choice.config}
        only = next(iter(keys)) if len(keys) == 1 else ()
        return only[0] if len(only) == 1 else None


@dataclass(frozen=True)
class Value:
    """A number of a run (or of each request of it)."""

    name: str
    get: Expression
    unit: str
    title: str


@dataclass(frozen=True)
class Panel:
    """A part of a figure that is drawn by itself."""

    title: str
    mark: str
    values: tuple[str, ...]
    x: str
    series: str | None
    facet: str | None
    once: tuple[str, ...]
    """Values that are the same for every series and are drawn once, beside them."""
    where: Mapping[str, Any]
    normalise: Mapping[str, str]
    """Labels of the baseline; empty: as measured."""
    relative: str
    """Of normalised values: "ratio", "change" (per cent) or "reduction" (per cent less)."""
    mean: bool
    """Also the arithmetic mean over x."""
    y_title: str
    x_title: str
    quantitative: bool
    """Whether x is a number."""
    log: tuple[bool, bool]
    y_range: tuple[float, float] | None
    legend: bool = True
    """Off where another panel has the same."""


@dataclass(frozen=True)
class Figure:
    """A figure or a table of a paper."""

    paper: str
    id: str
    path: Path
    title: str
    place: str
    about: str
    kind: str
    """CALIBRATED or RECORDED."""
    of: str
    """The figure it repeats on other workloads; itself else."""
    what: str
    """What is evaluated (EXTRA_AXES): "runs", "requests" (each of a run), "points" (a list in a result)."""
    points: Expression | None
    """Of points: where the list stands in a result."""
    config: str
    set: Mapping[str, str]
    quick: Mapping[str, str]
    axes: tuple[Axis, ...]
    values: tuple[Value, ...]
    panels: tuple[Panel, ...]
    measure: str
    """How a cell is measured (MEASURES): "run", "workload" (the generator alone), "shared-entries"."""
    skip: int
    """Of requests: the first ones, which only warm up."""
    report: bool
    """Whether its runs are in the interactive report."""
    long: bool
    """Whether a quick run leaves it out, unless it is named."""
    seconds: float
    """Roughly what a run takes, for the estimate of the time left."""

    def axis(self, name: str) -> Axis | None:
        """The axis of that name; None for one that comes with the results (requests, points)."""
        return next((axis for axis in self.axes if axis.name == name), None)

    def value(self, name: str) -> Value:
        """The value of that name."""
        return next(value for value in self.values if value.name == name)


def load_figure(folder: Path, paper: str, name: str) -> Figure:
    """Reads ``folder/NAME.toml``.

    Raises:
        UserError: the file is missing or wrong; says what.
    """
    path = folder / f"{name}.toml"
    table = Table(path)
    like = table.text("like", name)
    if like != name:
        table = table.over(Table(folder / f"{like}.toml"))
    axes = tuple(_axis(axis, inner) for axis, inner in table.table("axis").items())
    figure = Figure(
        paper=paper,
        id=name,
        path=path,
        title=table.text("title"),
        place=table.text("place"),
        about=table.text("about", ""),
        kind=table.text("kind", CALIBRATED),
        of=like,
        what=table.text("what", "runs"),
        points=Expression(table.text("points"), f"{path}: points") if table.has("points") else None,
        config=table.text("config", ""),
        set=table.keys_of("set"),
        quick=table.keys_of("quick"),
        axes=axes,
        values=tuple(_value(name, inner) for name, inner in table.table("value").items()),
        panels=tuple(_panel(inner) for inner in table.tables("panel")),
        measure=table.text("measure", "run"),
        skip=table.get("skip", int, 0),
        report=table.flag("report"),
        long=table.flag("long"),
        seconds=table.number("seconds", 1),
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
    if runs > MOST_RUNS:
        raise table.wrong("axis", f"{runs:,} runs are more than {MOST_RUNS:,}")
    for panel in figure.panels:
        _check_panel(table, figure, panel)
    return figure


def _check_panel(table: Table, figure: Figure, panel: Panel) -> None:
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
                raise table.wrong("panel", f"no {kind} {each!r}; there are: {', '.join(known)}")


def _axis(name: str, table: Table) -> Axis:
    title = table.text("title", name)
    if table.has("traces"):
        choices = tuple(Choice(trace, traces=(trace,)) for trace in table.texts("traces"))
    elif table.has("sequences"):
        sequences = table.get("sequences", dict)
        inner = table.inner("sequences")
        choices = tuple(Choice(label, traces=tuple(inner.texts(label))) for label in sequences)
    elif table.has("sets"):
        inner, pattern = table.inner("sets"), table.text("config", "")
        choices = tuple(
            Choice(label, config=pattern.replace("{}", label) or None, set=inner.keys_of(label))
            for label in table.get("sets", dict)
        )
    else:
        labels = table.texts("labels")
        given = table.list_of("values", (str, int, float)) if table.has("values") else labels
        values = [to_text(value) for value in given]
        if len(values) != len(labels):
            raise table.wrong("values", "must be as many as the labels")
        key, config = table.text("key", ""), table.text("config", "")
        choices = tuple(
            Choice(
                label,
                config=config.replace("{}", value) if config else None,
                set={each: value for each in key.split(",") if each},
            )
            for label, value in zip(labels, values, strict=True)
        )
    table.done()
    return Axis(name, choices, title)


def _value(name: str, table: Table) -> Value:
    value = Value(
        name,
        Expression(table.text("is"), f"{table.path}: value.{name}"),
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
    """A recorded trace, where it is and how it is replayed."""

    name: str
    file: str
    set: Mapping[str, str]


def load_traces(base: Path) -> dict[str, Trace]:
    """The recorded traces that figures may name (``papers/traces.toml``)."""
    path = base / "papers" / "traces.toml"
    table = Table(path)
    traces = {}
    for name, inner in table.table("trace").items():
        traces[name] = Trace(name, inner.text("file"), inner.keys_of("set"))
        inner.done()
    table.done()
    return traces
