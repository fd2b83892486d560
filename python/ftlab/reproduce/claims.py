"""Verdicts: what a paper claims, what was measured, and whether the claim holds."""

from __future__ import annotations

import csv
import io
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ftlab._core import UserError
from ftlab.reproduce.papers import SMALL, Claim, Paper
from ftlab.studies.cells import Study, text
from ftlab.studies.declaration import RECORDED
from ftlab.studies.expression import Expression

HOLDS = "holds"
SIGN = "sign only"
DIRECTION = "holds in direction"
FAILS = "does not hold"
VERDICTS = (HOLDS, SIGN, DIRECTION, FAILS)
CONSTRUCTED = "by construction"
"""The verdict on claims that hold by construction; they are not counted."""

POINTS = 2.0
"""Percentage points by which a change in per cent may always differ from the published one."""
LEVEL_POINTS = 5.0
"""Percentage points by which an amount in per cent may always differ from the published one."""
SHARE = 0.25
"""Fraction of the published value by which a measured value may always differ from it."""
_ABSENT = "\0"
"""Stands in a reason for the figures of a study that was not run."""
LEFT_OUT = "Sentences with figures that were not measured here are left out."


@dataclass(frozen=True)
class Judged:
    """A claim with what was measured."""

    claim: Claim
    measured: float | None
    """The measured value; None for a direction, or if there is nothing to measure."""
    counted: tuple[int, int] | None
    """For a direction judged in several cases: the number of cases in which it holds, and of all cases."""
    spread: tuple[float, float] | None
    """For a mean of changes: the least and the greatest change."""
    verdict: str
    recorded: str
    """The value on the recorded traces, as text; empty if it was not measured."""
    reason: str
    """The claim's reasons with the figures of this run; empty if the claim needs no reason."""
    reason_written: str


def verdict(claim: Claim, measured: Any) -> str:
    """Judges a claim.

    A change holds if it has the published sign and is within 2 percentage points or 25 % of the published
    change, whichever is larger; with only the sign right, it holds in direction. If less than 5 % was
    published, the published sign and a measured change of less than 10 % are required ("sign only"). An
    amount has no direction: it holds within 25 %, and an amount in per cent also within 5 points.
    """
    if claim.published is None:
        found = HOLDS if measured else FAILS
    elif measured is None:
        found = FAILS
    else:
        found = _of_number(claim, claim.published, measured)
    return CONSTRUCTED if claim.construction and found == HOLDS else found


def _of_number(claim: Claim, published: float, measured: float) -> str:
    allowed = abs(published) * SHARE
    if claim.unit == "%":
        allowed = min(allowed, LEVEL_POINTS) if claim.kind == "level" else max(allowed, POINTS)
    near = abs(measured - published) <= allowed
    if claim.kind == "level":
        return HOLDS if near else FAILS
    if measured * published <= 0 and not (measured == published == 0):
        return FAILS
    if claim.small:
        return SIGN if abs(measured) < 2 * SMALL else DIRECTION
    return HOLDS if near else DIRECTION


def judge(paper: Paper, studies: Mapping[str, Study]) -> list[Judged]:
    """Judges, in order, those claims of a paper whose figures were measured.

    Raises:
        UserError: an expression does not fit its figure.
    """
    judged = []
    for claim in paper.claims:
        needed = {claim.figure, *_figures(claim.measure, paper)}
        if not needed <= studies.keys() or not all(studies[each].rows for each in needed):
            continue
        names = _names(claim.figure, studies)
        found = claim.measure(names) if claim.published is None else claim.measure.number(names)
        measured = None if claim.published is None else found
        counted = claim.measure.counted(names) if claim.published is None else None
        came = verdict(claim, found)
        why, written = _reason(claim, paper, studies) if came in (DIRECTION, FAILS) else ("", "")
        recorded = _recorded(claim, paper, studies)
        spread = claim.measure.spread(names)
        judged.append(Judged(claim, measured, counted, spread, came, recorded, why, written))
    return judged


def _reason(claim: Claim, paper: Paper, studies: Mapping[str, Study]) -> tuple[str, str]:
    """Returns the text of a claim's reasons, with the figures of this run, and the latest reason's date."""
    names = _names(claim.figure, studies)
    said = []
    for reason in claim.reasons:
        text = ""
        for part in reason.parts:
            text += part if isinstance(part, str) else _figure(part[0], part[1], paper, studies, names)
        said.append(text)
    sentences = re.split(r"(?<=[.:]) (?=[A-Z])", " ".join(said))
    there = [sentence for sentence in sentences if _ABSENT not in sentence]
    if len(there) < len(sentences):
        there.append(LEFT_OUT)
    return " ".join(there), max((reason.written for reason in claim.reasons), default="")


def _figure(
    of: Expression, form: str, paper: Paper, studies: Mapping[str, Study], names: Mapping[str, Any]
) -> str:
    if any(each not in studies or not studies[each].rows for each in _figures(of, paper)):
        return _ABSENT
    found = of(names)
    return str(found) if found is None or isinstance(found, str) else format(found, form)


def _figures(of: Expression, paper: Paper) -> set[str]:
    """Returns those figures of the paper that an expression names."""
    used = of.used()
    return {figure.id for figure in paper.figures if _name(figure.id) in used}


def _name(figure: str) -> str:
    """Returns a figure's name in expressions, which have no hyphens."""
    return figure.replace("-", "_")


def _names(figure: str, studies: Mapping[str, Study]) -> dict[str, Any]:
    others = {_name(each): study.names() for each, study in studies.items()}
    return {**others, **studies[figure].names()}


def _recorded(claim: Claim, paper: Paper, studies: Mapping[str, Study]) -> str:
    """Returns, as text, what the claim's measure gives on the figure of the recorded traces; empty if there
    is no such figure or the measure cannot be applied to it.
    """
    for figure in paper.figures:
        study = studies.get(figure.id)
        if figure.kind != RECORDED or figure.of != claim.figure or study is None or not study.rows:
            continue
        if _figures(claim.measure, paper):
            return ""
        names = _names(figure.id, studies)
        try:
            if claim.published is None:
                found = claim.measure(names)
                counted = claim.measure.counted(names)
                return f"{counted[0]} of {counted[1]}" if counted else (HOLDS if found else FAILS)
            measured = claim.measure.number(names)
            return "" if measured is None else number(claim, measured)
        except UserError:
            return ""
    return ""


def number(claim: Claim, value: float) -> str:
    """Formats a number with the claim's unit; a change has its sign."""
    digits = 2 if abs(value) < 100 else 1
    if claim.unit not in ("%", "x", "ms", "us", "MiB") and value == int(value):
        digits = 0
    sign = "+" if claim.kind == "change" and claim.unit == "%" else ""
    return f"{value:{sign},.{digits}f}{' ' if claim.unit else ''}{claim.unit}"


def published_text(claim: Claim) -> str:
    """Formats what the paper states."""
    return HOLDS if claim.published is None else number(claim, claim.published)


def measured_text(judged: Judged) -> str:
    """Formats what was measured and, for a mean of changes, the range of the changes."""
    if judged.claim.published is not None:
        found = "nothing" if judged.measured is None else number(judged.claim, judged.measured)
    elif judged.counted:
        found = f"{judged.counted[0]} of {judged.counted[1]}"
    else:
        found = FAILS if judged.verdict == FAILS else HOLDS
    return found + (f" ({judged.spread[0]:+.1f} to {judged.spread[1]:+.1f})" if judged.spread else "")


def counts(judged: Sequence[Judged]) -> dict[str, int]:
    """Returns how often each verdict was given; claims that hold by construction are counted apart."""
    found = Counter(each.verdict for each in judged)
    return {each: found[each] for each in (*VERDICTS, CONSTRUCTED)}


def shares(judged: Sequence[Judged]) -> tuple[tuple[int, int], tuple[int, int]]:
    """Returns how many of the counted claims have the published sign, and how many of the published numbers
    are within the band; numbers too small to be judged are left out.
    """
    counted = [each for each in judged if each.verdict != CONSTRUCTED]
    numbers = [each for each in counted if each.claim.published is not None and not each.claim.small]
    signs = sum(each.verdict != FAILS for each in counted)
    return (signs, len(counted)), (sum(each.verdict == HOLDS for each in numbers), len(numbers))


TOTALS = ("with the sign", "in the band", CONSTRUCTED)
"""What `totals` gives."""


def totals(judged: Sequence[Judged]) -> list[str]:
    """Returns a paper's verdicts in three texts; claims.csv has them one by one."""
    return [*(f"{so} of {of}" for so, of in shares(judged)), str(counts(judged)[CONSTRUCTED])]


def to_csv(judged: Sequence[Judged]) -> str:
    """Returns all claims as CSV, one per row."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    head = "id figure place claim kind unit published measured true of least greatest verdict"
    writer.writerow([*head.split(), "recorded_traces", "reason", "reason_written"])
    for each in judged:
        claim = each.claim
        row = [claim.id, claim.figure, claim.place, claim.text, claim.kind, claim.unit]
        row += [text(claim.published), text(each.measured), *(each.counted or ("", ""))]
        row += [text(end) for end in each.spread or (None, None)]
        writer.writerow([*row, each.verdict, each.recorded, each.reason, each.reason_written])
    return out.getvalue()
