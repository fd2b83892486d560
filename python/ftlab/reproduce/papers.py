"""The declarations in ``papers/``: what each paper's figures run, show and claim."""

from __future__ import annotations

import difflib
import math
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ftlab._core import UserError
from ftlab.configs import read_toml, to_text
from ftlab.reproduce.expression import FUNCTIONS, Expression

CALIBRATED = "calibrated"
RECORDED = "recorded"

EXTRA_AXES = {"runs": (), "requests": ("request",), "points": ("point",)}
"""What a figure may evaluate, with the axes that come with the results."""

MEASURES = ("run", "workload", "shared-entries")
"""How a cell may be measured (`ftlab.reproduce.measure`)."""

SMALL = 5.0
"""Per cent: of a published change below it the sign alone is judged."""

MOST_RUNS = 10_000
"""Of a figure; more are a slip in its axes."""

CONSTRUCTIONS = ("worked example", "arithmetic", "target of a fit")
"""Why a claim holds by construction, so that it says nothing for or against."""

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


@dataclass(frozen=True)
class Published:
    """A number that the paper prints, and which cell of which figure it stands beside."""

    figure: str
    value: str
    at: Mapping[str, str]
    number: float
    place: str


@dataclass(frozen=True)
class Reason:
    """Why a claim does not come out, as far as known; written by hand, but for its figures."""

    parts: tuple[str | tuple[Expression, str], ...]
    """Words, and in their places what was measured: an expression with how its number is written."""
    written: str
    """When."""

    def used(self) -> set[str]:
        """The names in its expressions."""
        return {name for part in self.parts if not isinstance(part, str) for name in part[0].used()}


@dataclass(frozen=True)
class Claim:
    """Something the paper says."""

    id: str
    text: str
    place: str
    figure: str
    published: float | None
    """None: a direction alone."""
    unit: str
    kind: str
    """"change" (a sign matters), "level" (an amount), "direction" (true or not)."""
    measure: Expression
    construction: str = ""
    """One of CONSTRUCTIONS, if it holds by construction."""
    reasons: tuple[Reason, ...] = ()

    @property
    def small(self) -> bool:
        """Whether it is a change too small for its number to be judged: the sign alone is."""
        return self.kind == "change" and self.unit == "%" and abs(self.published or 0) < SMALL


@dataclass(frozen=True)
class Paper:
    """One paper."""

    name: str
    title: str
    short: str
    citation: str
    about: str
    required: tuple[str, ...]
    """Figures and tables that the specification asks for."""
    shared_device: bool
    """Prepare one device for the runs that differ in their workload alone."""
    figures: tuple[Figure, ...]
    numbers: tuple[Published, ...]
    claims: tuple[Claim, ...]
    not_claims: tuple[str, ...]
    """What the paper says that nothing here can measure, and why."""


def root(given: str | os.PathLike[str] | None = None) -> Path:
    """The directory that holds ``papers/`` and ``workloads/``.

    Raises:
        UserError: there is none.
    """
    own = [Path(__file__).resolve().parents[3], Path.cwd()]
    places = [Path(given)] if given is not None else own
    for place in places:
        if (place / "papers" / "traces.toml").is_file():
            return place
    looked = " or ".join(map(str, places))
    raise UserError(f"no papers/ in {looked}; run in a checkout of ftlab, or name one with --root DIR")


def names(base: Path) -> list[str]:
    """The papers there are."""
    return sorted(path.parent.name for path in (base / "papers").glob("*/paper.toml"))


def load_paper(base: Path, name: str) -> Paper:
    """Reads a paper's declarations.

    Raises:
        UserError: a file is missing or wrong; says which and what.
    """
    folder = base / "papers" / name
    main = _Table(folder / "paper.toml")
    order = main.texts("figures")
    found = {path.stem for path in folder.glob("*.toml")} - {"paper", "published"}
    if extra := sorted(found.symmetric_difference(order)):
        raise main.wrong("figures", f"listed or there, but not both: {', '.join(extra)}")
    figures = tuple(_figure(folder, name, each) for each in order)
    published = _Table(folder / "published.toml")
    paper = Paper(
        name=name,
        title=main.text("title"),
        short=main.text("short"),
        citation=main.text("citation"),
        about=main.text("about", ""),
        required=tuple(main.texts("required")),
        shared_device=main.flag("shared_device"),
        figures=figures,
        numbers=tuple(_numbers(published)),
        claims=tuple(_claims(published)),
        not_claims=tuple(published.texts("not_measured")),
    )
    main.done()
    published.done()
    _check(paper, folder)
    return paper


def _check(paper: Paper, folder: Path) -> None:
    known = {figure.id: figure for figure in paper.figures}
    places = [(claim.id, claim.figure) for claim in paper.claims]
    for what, name in [*places, *((number.place, number.figure) for number in paper.numbers)]:
        if name not in known:
            raise UserError(f"{folder / 'published.toml'}: {what}: no figure {name!r}")
    seen = set()
    for claim in paper.claims:
        if claim.id in seen:
            raise UserError(f"{folder / 'published.toml'}: the claim {claim.id!r} stands there twice")
        seen.add(claim.id)
        values = {value.name for value in known[claim.figure].values}
        names = {name.replace("-", "_") for name in known} | values | FUNCTIONS.keys()
        for unknown in {name for reason in claim.reasons for name in reason.used()} - names:
            raise UserError(f"{folder / 'published.toml'}: {claim.id}: its reason knows no {unknown!r}")
    for number in paper.numbers:
        figure = known[number.figure]
        if number.value not in {value.name for value in figure.values}:
            raise UserError(f"{folder / 'published.toml'}: {number.figure} has no value {number.value!r}")


def choose(papers: Iterable[Paper], wanted: Iterable[str], *, quick: bool = False) -> dict[str, list[Figure]]:
    """The figures asked for, by paper; all of them if none is named. Those like another come with it.

    A quick run has the long ones only where they are named.

    Raises:
        UserError: a name that no paper has.
    """
    papers = list(papers)
    keys = {text: normal(text) for text in wanted}
    every = {figure.id for paper in papers for figure in paper.figures}
    for text, key in keys.items():
        if key not in every:
            near = difflib.get_close_matches(key, every, n=1)
            hint = f"; did you mean {near[0]}?" if near else ""
            there = "; ".join(
                f"{paper.name}: {', '.join(figure.id for figure in paper.figures)}" for paper in papers
            )
            raise UserError(f"no figure or table {text!r}{hint}\n  there are: {there}")
    chosen = set(keys.values())

    def asked(figure: Figure) -> bool:
        alike = not chosen or figure.of in chosen
        return figure.id in chosen or (alike and not (quick and figure.long))

    return {paper.name: [figure for figure in paper.figures if asked(figure)] for paper in papers}


def normal(text: str) -> str:
    """A figure's name as its file has it: "Fig. 9" and "9" are fig9, "Table III" is table3."""
    key = re.sub(r"[^a-z0-9-]", "", text.lower().replace("figure", "fig"))
    roman = {"table" + numeral: f"table{value}" for value, numeral in enumerate(("i", "ii", "iii"), 1)}
    key = roman.get(key, key)
    return f"fig{key}" if key[:1].isdigit() else key


class _Table:
    """A TOML table whose keys are all asked for, once."""

    def __init__(self, path: Path, values: dict[str, Any] | None = None, where: str = "") -> None:
        self.path = path
        self.where = where
        if values is None:
            values = read_toml(path, "declaration")
        self._values = dict(values)
        self._asked: set[str] = set()

    def wrong(self, key: str, why: str) -> UserError:
        return UserError(f"{self.path}: {self.where}{key}: {why}")

    def get(self, key: str, kind: Any, default: Any = None) -> Any:
        self._asked.add(key)
        if key not in self._values:
            if default is None:
                raise self.wrong(key, "is missing")
            return default
        value = self._values[key]
        if not isinstance(value, kind):
            raise self.wrong(key, f"{value!r} is not what belongs there")
        return value

    def text(self, key: str, default: str | None = None) -> str:
        value: str = self.get(key, str, default)
        return value

    def flag(self, key: str, default: bool = False) -> bool:
        value: bool = self.get(key, bool, default)
        return value

    def number(self, key: str, default: float | None = None) -> float:
        return float(self.get(key, (int, float), default))

    def list_of(self, key: str, kind: Any) -> list[Any]:
        values = self.get(key, list, [])
        if not all(isinstance(value, kind) for value in values):
            raise self.wrong(key, f"{values!r}: not all of it is what belongs there")
        return list(values)

    def texts(self, key: str) -> list[str]:
        return self.list_of(key, str)

    def labels(self, key: str) -> dict[str, str]:
        """A label for each of some axes."""
        return {axis: self.inner(key).text(axis) for axis in self.get(key, dict, {})}

    def keys_of(self, key: str) -> dict[str, str]:
        """A table of configuration keys, dotted or nested."""
        return dict(self.inner(key)._flat(self.get(key, dict, {}), ""))

    def _flat(self, values: Mapping[str, Any], prefix: str) -> Iterable[tuple[str, str]]:
        for name, value in values.items():
            if isinstance(value, Mapping):
                yield from self._flat(value, f"{prefix}{name}.")
            elif isinstance(value, list):
                raise self.wrong(f"{prefix}{name}", "a list, where a value of the configuration is expected")
            else:
                yield f"{prefix}{name}", to_text(value)

    def inner(self, key: str) -> _Table:
        return _Table(self.path, self.get(key, dict, {}), f"{self.where}{key}.")

    def table(self, key: str) -> dict[str, _Table]:
        around = self.inner(key)
        return {name: around.inner(name) for name in around._values}

    def tables(self, key: str) -> list[_Table]:
        parts = self.list_of(key, dict)
        return [_Table(self.path, values, f"{self.where}{key}[{at}].") for at, values in enumerate(parts)]

    def has(self, key: str) -> bool:
        return key in self._values

    def over(self, other: _Table) -> _Table:
        """Another figure's declarations with parts of them replaced: single axes, and all else whole."""
        own = {key: value for key, value in self._values.items() if key != "like"}
        axes = {**other.get("axis", dict, {}), **self.get("axis", dict, {})}
        return _Table(self.path, {**other._values, **own, "axis": axes})

    def done(self) -> None:
        """Refuses keys that nobody asked for."""
        for key in self._values:
            if key not in self._asked:
                near = difflib.get_close_matches(key, self._asked, n=1)
                raise self.wrong(key, "unknown key" + (f"; did you mean {near[0]}?" if near else ""))


def _figure(folder: Path, paper: str, name: str) -> Figure:
    path = folder / f"{name}.toml"
    table = _Table(path)
    like = table.text("like", name)
    if like != name:
        table = table.over(_Table(folder / f"{like}.toml"))
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


def _check_panel(table: _Table, figure: Figure, panel: Panel) -> None:
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


def _axis(name: str, table: _Table) -> Axis:
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


def _value(name: str, table: _Table) -> Value:
    value = Value(
        name,
        Expression(table.text("is"), f"{table.path}: value.{name}"),
        table.text("unit", ""),
        table.text("title", name),
    )
    table.done()
    return value


def _panel(table: _Table) -> Panel:
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


def _where(table: _Table) -> dict[str, str | list[str]]:
    inner = table.inner("where")
    return {
        axis: inner.texts(axis) if isinstance(labels, list) else inner.text(axis)
        for axis, labels in table.get("where", dict, {}).items()
    }


def _numbers(table: _Table) -> Iterable[Published]:
    for each in table.tables("number"):
        at = each.labels("at")
        place, figure = each.text("place"), each.text("figure")
        if each.has("rows"):
            axis, values, rows = each.text("axis"), each.texts("values"), each.inner("rows")
            for label in each.get("rows", dict):
                numbers = rows.list_of(label, (int, float))
                if len(numbers) != len(values):
                    raise rows.wrong(label, "must be as many as the values")
                for value, number in zip(values, numbers, strict=True):
                    yield Published(figure, value, {**at, axis: label}, float(number), place)
        else:
            yield Published(figure, each.text("value"), at, each.number("published"), place)
        each.done()


def _reason(table: _Table, text: str) -> Reason:
    pieces = re.split(r"\{([^{}]*)\}", " ".join(text.split()))
    parts: list[str | tuple[Expression, str]] = []
    for at, piece in enumerate(pieces):
        expression, _, form = piece.partition(" as ")
        where = f"{table.path}: {table.where}reason"
        parts.append((Expression(expression, where), form.strip() or ".3g") if at % 2 else piece)
    return Reason(tuple(parts), table.text("written"))


def _claims(table: _Table) -> Iterable[Claim]:
    shared = {name: _reason(inner, inner.text("text")) for name, inner in table.table("reason").items()}
    for each in table.tables("claim"):
        name = each.text("id")
        number = each.number("published") if each.has("published") else None
        kind = each.text("kind", "direction" if number is None else "change")
        claim = Claim(
            id=name,
            text=each.text("text"),
            place=each.text("place"),
            figure=each.text("figure"),
            published=number,
            unit=each.text("unit", "" if number is None else "%"),
            kind=kind,
            measure=Expression(each.text("measure"), f"{table.path}: claim {name}"),
            construction=each.text("construction", ""),
            reasons=tuple(_reasons(each, shared)),
        )
        each.done()
        if kind not in ("change", "level", "direction") or (kind == "direction") != (number is None):
            raise each.wrong("kind", f"{kind!r}: change or level with a published number, else direction")
        if claim.construction not in ("", *CONSTRUCTIONS):
            raise each.wrong("construction", f"{claim.construction!r}; it is {' or '.join(CONSTRUCTIONS)}")
        yield claim


def _reasons(claim: _Table, shared: Mapping[str, Reason]) -> Iterable[Reason]:
    """A claim's own reason, then those that it shares with others."""
    if claim.has("reason") or claim.has("written"):
        yield _reason(claim, claim.text("reason"))
    for name in claim.texts("reasons"):
        if name not in shared:
            raise claim.wrong("reasons", f"no reason {name!r}; there are: {', '.join(shared)}")
        yield shared[name]


@dataclass(frozen=True)
class Trace:
    """A recorded trace, where it is and how it is replayed."""

    name: str
    file: str
    set: Mapping[str, str]


def load_traces(base: Path) -> dict[str, Trace]:
    """The recorded traces that figures may name (``papers/traces.toml``)."""
    path = base / "papers" / "traces.toml"
    table = _Table(path)
    traces = {}
    for name, inner in table.table("trace").items():
        traces[name] = Trace(name, inner.text("file"), inner.keys_of("set"))
        inner.done()
    table.done()
    return traces
