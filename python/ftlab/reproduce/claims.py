"""Verdicts: what a paper claims, what was measured, whether it holds."""

from __future__ import annotations

import csv
import io
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ftlab._core import UserError
from ftlab.reproduce.papers import RECORDED, Claim, Paper
from ftlab.reproduce.study import Study, text

HOLDS = "holds"
DIRECTION = "holds in direction"
FAILS = "does not hold"
VERDICTS = (HOLDS, DIRECTION, FAILS)

POINTS = 5.0
"""Percentage points by which a percentage may differ."""
SHARE = 0.25
"""Part of the published value by which any may differ."""


@dataclass(frozen=True)
class Judged:
    """A claim with what was measured."""

    claim: Claim
    measured: float | None
    """None: a direction, or nothing to measure."""
    counted: tuple[int, int] | None
    """Of a direction over several: in how many it is so, of how many."""
    verdict: str
    recorded: str
    """The same measured on the recorded traces, as text; empty where it cannot be."""


def verdict(claim: Claim, measured: Any) -> str:
    """Holds: the same sign, and within 5 percentage points or 25 % of the published value, whichever is
    larger. In direction: the same sign alone. An amount (level) has no direction.
    """
    if claim.published is None:
        return HOLDS if measured else FAILS
    if measured is None:
        return FAILS
    allowed = abs(claim.published) * SHARE
    if claim.unit == "%":
        allowed = max(allowed, POINTS)
    near = abs(measured - claim.published) <= allowed
    if claim.kind == "level":
        return HOLDS if near else FAILS
    if measured * claim.published <= 0 and not (measured == claim.published == 0):
        return FAILS
    return HOLDS if near else DIRECTION


def judge(paper: Paper, studies: Mapping[str, Study]) -> list[Judged]:
    """The claims of a paper whose figures were measured, in order.

    Raises:
        UserError: an expression does not fit its figure.
    """
    judged = []
    for claim in paper.claims:
        needed = {claim.figure, *_figures(claim, paper)}
        if not needed <= studies.keys() or not all(studies[each].rows for each in needed):
            continue
        names = _names(claim.figure, studies)
        found = claim.measure(names) if claim.published is None else claim.measure.number(names)
        measured = None if claim.published is None else found
        counted = claim.measure.counted(names) if claim.published is None else None
        judged.append(
            Judged(claim, measured, counted, verdict(claim, found), _recorded(claim, paper, studies))
        )
    return judged


def _figures(claim: Claim, paper: Paper) -> set[str]:
    """Other figures that an expression names."""
    used = claim.measure.used()
    return {figure.id for figure in paper.figures if _name(figure.id) in used}


def _name(figure: str) -> str:
    """A figure's name in expressions, which know no hyphen."""
    return figure.replace("-", "_")


def _names(figure: str, studies: Mapping[str, Study]) -> dict[str, Any]:
    others = {_name(each): study.names() for each, study in studies.items()}
    return {**others, **studies[figure].names()}


def _recorded(claim: Claim, paper: Paper, studies: Mapping[str, Study]) -> str:
    """The claim on the figure of the recorded traces, where it names no workload of the paper's."""
    for figure in paper.figures:
        study = studies.get(figure.id)
        if figure.kind != RECORDED or figure.of != claim.figure or study is None or not study.rows:
            continue
        if _figures(claim, paper):
            return ""
        names = _names(figure.id, studies)
        try:
            if claim.published is None:
                found = claim.measure(names)
                counted = claim.measure.counted(names)
                return f"{counted[0]} of {counted[1]}" if counted else ("yes" if found else "no")
            measured = claim.measure.number(names)
            return "" if measured is None else number(claim, measured)
        except UserError:
            return ""
    return ""


def number(claim: Claim, value: float) -> str:
    """A number with the claim's unit; a change with its sign."""
    digits = 2 if abs(value) < 100 else 1
    if claim.unit not in ("%", "x", "ms", "us", "MiB") and value == int(value):
        digits = 0
    sign = "+" if claim.kind == "change" and claim.unit == "%" else ""
    return f"{value:{sign},.{digits}f}{' ' if claim.unit else ''}{claim.unit}"


def published_text(claim: Claim) -> str:
    """What the paper states."""
    return "so" if claim.published is None else number(claim, claim.published)


def measured_text(judged: Judged) -> str:
    """What was measured."""
    if judged.claim.published is not None:
        return "nothing" if judged.measured is None else number(judged.claim, judged.measured)
    if judged.counted:
        return f"{judged.counted[0]} of {judged.counted[1]}"
    return "so" if judged.verdict == HOLDS else "not so"


def counts(judged: Sequence[Judged]) -> dict[str, int]:
    """How many of each verdict."""
    found = Counter(each.verdict for each in judged)
    return {each: found[each] for each in VERDICTS}


def to_csv(judged: Sequence[Judged]) -> str:
    """All claims, one a row."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    head = [
        "id",
        "figure",
        "place",
        "claim",
        "kind",
        "unit",
        "published",
        "measured",
        "true",
        "of",
        "verdict",
    ]
    writer.writerow([*head, "recorded_traces", "reason"])
    for each in judged:
        claim = each.claim
        row = [claim.id, claim.figure, claim.place, claim.text, claim.kind, claim.unit]
        row += [text(claim.published), text(each.measured), *(each.counted or ("", "")), each.verdict]
        writer.writerow([*row, each.recorded, claim.reason if each.verdict != HOLDS else ""])
    return out.getvalue()
