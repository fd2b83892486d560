"""The declarations in ``papers/``: what each paper's figures run, show and claim."""

from __future__ import annotations

import difflib
import os
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from ftlab._core import UserError
from ftlab.data import folder
from ftlab.studies.declaration import Figure, load_figure
from ftlab.studies.expression import FUNCTIONS, Expression
from ftlab.studies.toml import Table

SMALL = 5.0
"""If a published change is smaller than this, in per cent, only two things are judged: whether the measured
change has the same sign, and whether it is small too.
"""

CONSTRUCTIONS = ("worked example", "arithmetic", "target of a fit")
"""Reasons why a claim holds by construction, so that it proves nothing."""


@dataclass(frozen=True)
class Published:
    """A number that the paper prints, and the cell of a figure with which it is compared."""

    figure: str
    value: str
    at: Mapping[str, str]
    number: float
    place: str


@dataclass(frozen=True)
class Reason:
    """Why a claim does not hold, as far as is known; written by hand, except for the figures in it."""

    parts: tuple[str | tuple[Expression, str], ...]
    """The text in parts: words, and measured figures, each as an expression and the format of its number."""
    written: str
    """The date on which the reason was written."""

    def used(self) -> set[str]:
        """Returns the names in the reason's expressions."""
        return {name for part in self.parts if not isinstance(part, str) for name in part[0].used()}


@dataclass(frozen=True)
class Claim:
    """A statement of the paper."""

    id: str
    text: str
    place: str
    figure: str
    published: float | None
    """The published number; None if the claim states only a direction."""
    unit: str
    kind: str
    """"change" (its sign matters), "level" (an amount) or "direction" (true or false)."""
    measure: Expression
    construction: str = ""
    """One of CONSTRUCTIONS if the claim holds by construction, otherwise empty."""
    reasons: tuple[Reason, ...] = ()

    @property
    def small(self) -> bool:
        """Whether the claim is a change too small for its number to be judged, so only its sign is judged."""
        return self.kind == "change" and self.unit == "%" and abs(self.published or 0) < SMALL


@dataclass(frozen=True)
class Paper:
    """The declarations of one paper."""

    name: str
    title: str
    short: str
    citation: str
    about: str
    words: dict[str, str]
    """The meanings of the abbreviations in the paper's figures."""
    required: tuple[str, ...]
    """Figures and tables that the specification requires."""
    shared_device: bool
    """Whether runs that differ only in their workload share one prepared device."""
    figures: tuple[Figure, ...]
    numbers: tuple[Published, ...]
    claims: tuple[Claim, ...]
    not_claims: tuple[str, ...]
    """What the paper states that cannot be measured here, and why."""


def root(given: str | os.PathLike[str] | None = None) -> Path:
    """Returns the directory that holds ``papers/`` and ``workloads/``; ftlab's own if none is given.

    Raises:
        UserError: the directory does not hold ``papers/``.
    """
    place = folder() if given is None else Path(given)
    if not (place / "papers" / "traces.toml").is_file():
        raise UserError(
            f"no papers/ in {place}; name a directory that holds papers/ and workloads/: --root DIR"
        )
    return place


def names(base: Path) -> list[str]:
    """Returns the names of the papers in ``papers/``."""
    return sorted(path.parent.name for path in (base / "papers").glob("*/paper.toml"))


def figure_names(base: Path, name: str) -> list[str]:
    """Returns the names of a paper's figures, without reading them.

    Raises:
        UserError: the paper's file is missing or wrong.
    """
    return Table(base / "papers" / name / "paper.toml").texts("figures")


def load_paper(base: Path, name: str) -> Paper:
    """Reads a paper's declarations.

    Raises:
        UserError: a file is missing or wrong; the text says which file, and what is wrong with it.
    """
    folder = base / "papers" / name
    main = Table(folder / "paper.toml")
    order = main.texts("figures")
    found = {path.stem for path in folder.glob("*.toml")} - {"paper", "published"}
    if extra := sorted(found.symmetric_difference(order)):
        raise main.wrong("figures", f"listed or there, but not both: {', '.join(extra)}")
    common = main.keys_of("set")
    read = (load_figure(folder, name, each) for each in order)
    figures = tuple(replace(figure, set={**common, **figure.set}) for figure in read)
    published = Table(folder / "published.toml")
    paper = Paper(
        name=name,
        title=main.text("title"),
        short=main.text("short"),
        citation=main.text("citation"),
        about=main.text("about", ""),
        words=main.keys_of("words"),
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
            raise UserError(f"{folder / 'published.toml'}: the claim {claim.id!r} is given twice")
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
    """Returns the requested figures, by paper, with those that derive from them; by default all figures.

    A quick run includes long figures only if they are named.

    Raises:
        UserError: no paper has a figure of a requested name.
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
    """Returns the name of a figure's file: fig9 for "Fig. 9" and "9", table3 for "Table III"."""
    key = re.sub(r"[^a-z0-9-]", "", text.lower().replace("figure", "fig"))
    roman = {"table" + numeral: f"table{value}" for value, numeral in enumerate(("i", "ii", "iii"), 1)}
    key = roman.get(key, key)
    return f"fig{key}" if key[:1].isdigit() else key


def _numbers(table: Table) -> Iterable[Published]:
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


def _reason(table: Table, text: str) -> Reason:
    pieces = re.split(r"\{([^{}]*)\}", " ".join(text.split()))
    parts: list[str | tuple[Expression, str]] = []
    for at, piece in enumerate(pieces):
        expression, _, form = piece.partition(" as ")
        where = f"{table.path}: {table.where}reason"
        parts.append((Expression(expression, where), form.strip() or ".3g") if at % 2 else piece)
    return Reason(tuple(parts), table.text("written"))


def _claims(table: Table) -> Iterable[Claim]:
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


def _reasons(claim: Table, shared: Mapping[str, Reason]) -> Iterable[Reason]:
    """Returns a claim's own reason, then those that it shares with others."""
    if claim.has("reason") or claim.has("written"):
        yield _reason(claim, claim.text("reason"))
    for name in claim.texts("reasons"):
        if name not in shared:
            raise claim.wrong("reasons", f"no reason {name!r}; there are: {', '.join(shared)}")
        yield shared[name]
