"""What ``ftlab calibrate`` does: it fits free keys to rows, stage by stage, and checks the rows held out."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

from ftlab._core import UserError
from ftlab.calibration.descent import Valley
from ftlab.calibration.distance import distance, errors
from ftlab.calibration.intervals import Interval, intervals
from ftlab.calibration.keys import Stage, chosen_of, declared, stages, values_of
from ftlab.calibration.measured import read
from ftlab.calibration.model import Figures, Rig, cannot, figures_of, mean_of
from ftlab.calibration.readings import readings
from ftlab.calibration.row import Row
from ftlab.calibration.search import OTHER_SEEDS, ROUGH, Ground, Plan, Point, search
from ftlab.progress import Reporter
from ftlab.results.notes import lacks_of_today
from ftlab.studies.cache import Cache
from ftlab.studies.executor import Executor

MOST_VALLEYS = 4
"""How often a fit goes on where a lower valley is met."""
BETTER = 0.9
"""The ratio of its error to the best from which a valley counts as another, and not as luck."""


@dataclass(frozen=True)
class Pair:
    """A row, what the model gives for it, and whether it was held out of the fit."""

    row: Row
    model: Figures
    held: bool

    @property
    def errors(self) -> dict[str, float]:
        """Returns ln(model / measured) of each figure that was measured."""
        return errors(figures_of(self.row), self.model)


@dataclass(frozen=True)
class Fit:
    """A calibrated model, or one that was only checked."""

    base: str
    values: Mapping[str, str]
    """The fitted keys with their values; empty after a check."""
    intervals: tuple[Interval, ...]
    pairs: tuple[Pair, ...]
    """Every row, in the order in which they were read."""
    weights: Mapping[str, float]
    seed: int
    trials: int
    """How many configurations the search tried, descents not counted."""
    before: float | None
    """The error of the base on the rows of the fit; None if the base cannot run them."""
    passed_over: tuple[tuple[Row, str], ...]
    """Rows that were not modelled, with the reason."""
    types: Mapping[str, int]
    """How many values each fitted key has, one for each page type."""
    read_off: tuple[str, ...] = ()
    """Those of the keys that were read off a log, and not searched."""

    def error(self, held: bool) -> float | None:
        """Returns the distance over the rows that were, or were not, held out; None if there are none."""
        pairs = [each for each in self.pairs if each.held == held]
        if not pairs:
            return None
        return distance([each.row for each in pairs], [each.model for each in pairs], self.weights)


def rows_of(paths: Sequence[Path]) -> tuple[list[Row], list[tuple[Row, str]]]:
    """Reads the rows that can be modelled, and those that cannot, with the reason.

    Raises:
        UserError: a file is wrong, or holds no row that can be modelled.
    """
    every = read(paths)
    known = [row for row in every if not cannot(row)]
    others = [(row, why) for row in every if (why := cannot(row))]
    if not known:
        why = f": {others[0][1]}" if others else ""
        raise UserError(f"--measured {paths[0]}: no row that can be modelled{why}")
    return known, others


def picked(rows: Sequence[Row], only: Sequence[str]) -> list[Row]:
    """Returns the rows that meet every ``--only FIELD=A,B``.

    Raises:
        UserError: a row has no such field, or none meets them all.
    """
    wanted = [_wanted(text, f"--only {text}") for text in only]
    found = [row for row in rows if all(_meets(row, each) for each in wanted)]
    if not found:
        raise UserError(f"--only {' --only '.join(only)}: meets no row; fields: {', '.join(_FIELDS)}")
    return found


_FIELDS = ("drive", "op", "bs", "depth", "jobs", "engine")


def _wanted(text: str, where: str) -> dict[str, set[str]]:
    """Reads "op=read bs=4096,8192": every field with the values that it may have."""
    found = {}
    for word in text.split():
        name, equals, values = word.partition("=")
        if not equals or name not in _FIELDS:
            raise UserError(f"{where}: write FIELD=VALUE,VALUE with one of {', '.join(_FIELDS)}")
        found[name] = {each.strip() for each in values.split(",")}
    return found


def _meets(row: Row, wanted: Mapping[str, set[str]]) -> bool:
    return all(str(getattr(row, name)) in values for name, values in wanted.items())


def held_out(rows: Sequence[Row], texts: Sequence[str], seed: int) -> list[Row]:
    """Returns the rows that any ``--hold-out 30%`` or ``--hold-out "op=read bs=512"`` keeps out of the fit.

    Raises:
        UserError: a text is neither, or no row is left on one of the sides.
    """
    held: set[int] = set()
    for text in texts:
        share = re.fullmatch(r"([0-9.]+) ?%", text.strip())
        if share:
            count = min(round(len(rows) * float(share[1]) / 100), len(rows))
            more = Random(seed).sample(range(len(rows)), count)
        else:
            wanted = _wanted(text, f"--hold-out {text}")
            more = [at for at, row in enumerate(rows) if _meets(row, wanted)]
        if not more:
            raise UserError(f"--hold-out {text}: meets no row")
        held |= set(more)
    if len(held) == len(rows):
        raise UserError(
            f"--hold-out {' --hold-out '.join(texts)}: all {len(rows)} rows; some must be left to fit"
        )
    return [row for at, row in enumerate(rows) if at in held]


@dataclass(frozen=True)
class Asked:
    """What a calibration is asked to do."""

    base: str
    free: tuple[str, ...]
    rows: tuple[Row, ...]
    held: tuple[Row, ...]
    passed_over: tuple[tuple[Row, str], ...]
    weights: Mapping[str, float]
    trials: int
    seed: int
    out: Path
    folder: Path


def fit(asked: Asked, executor: Executor, reporter: Reporter) -> Fit:
    """Fits the free keys of a base to rows.

    Raises:
        UserError: the base or a free key is wrong, or no trial is valid.
    """
    cache = Cache(asked.folder / "results", say=reporter.note)
    settings = Rig(asked.base, cache, executor, reporter).settings({})
    fitted = [row for row in asked.rows if row not in asked.held]
    told = readings(fitted, settings)
    given = {each.name: each.best for each in told}
    rig = Rig(asked.base, cache, executor, reporter, given)
    settings = rig.settings({})
    _tell_what_reads_wait_for(settings, asked.rows, reporter)
    parts = stages(fitted, settings, declared(asked.free, settings))
    plan = Plan(asked.base, asked.out, asked.folder, asked.trials, asked.seed, executor, reporter)
    ground, best, found, trials = _searched(rig, parts, settings, asked, plan)
    before = rig.figures(ground.rows, [{}])[0]
    values = values_of(ground.free, best.chosen)
    model = _mean_figures(rig, asked.rows, values)
    if model is None:
        raise UserError(f"the model that was found cannot run the rows held out: {rig.refusal}")
    return Fit(
        base=asked.base,
        values={**given, **values},
        intervals=(*told, *found),
        pairs=_pairs(asked.rows, model, asked.held),
        weights=asked.weights,
        seed=asked.seed,
        trials=trials,
        before=None if before is None else distance(ground.rows, before, asked.weights),
        passed_over=asked.passed_over,
        types={key: text.count("/") + 1 for key, text in values.items()},
        read_off=tuple(given),
    )


def _searched(
    rig: Rig, parts: Sequence[Stage], settings: Mapping[str, Any], asked: Asked, plan: Plan
) -> tuple[Ground, Point, list[Interval], int]:
    """Goes through the stages by short runs, then fits all keys by long ones; returns the last stage's ground
    with the best point and its intervals.
    """
    chosen: dict[str, str] = {}
    free: dict[str, Any] = {}
    trials = 0
    for stage in parts:
        free |= {each.name: each for each in stage.free}
        rough = Ground(rig, stage, list(free.values()), asked.weights, ROUGH)
        start = {**chosen_of(rough.free, settings), **chosen}
        best, tried = search(rough, stage, start, plan)
        chosen, trials = dict(best.chosen), trials + tried
    ground = Ground(rig, parts[-1], list(free.values()), asked.weights)
    ground, best, valley = _settled(ground, chosen)
    found, lowest = intervals(ground, best, valley)
    for _ in range(MOST_VALLEYS):
        if lowest.error >= BETTER * best.error:
            break
        # The way to an end of an interval led into a lower valley: the fit goes on from there.
        ground, best, valley = _settled(ground, lowest.chosen)
        plan.reporter.note(f"{parts[-1].name}: another valley: {best.error:.2%} off")
        found, lowest = intervals(ground, best, valley)
    return ground, best, found, trials


def _settled(ground: Ground, chosen: Mapping[str, str]) -> tuple[Ground, Point, Valley]:
    """Fits all keys; returns the ground without the luck of its random numbers, and its lowest point with
    what the descent knows about it.
    """
    near, _ = ground.settle(chosen)
    averaged = ground.averaged(near.chosen)
    return (averaged, *averaged.settle(near.chosen))


def _mean_figures(rig: Rig, rows: Sequence[Row], values: Mapping[str, str]) -> list[Figures] | None:
    """Returns the means of each row's figures over runs with the configuration's random numbers and others;
    None if no configuration accepts the values.
    """
    wanted = [values, *({**values, "seed": str(seed)} for seed in OTHER_SEEDS)]
    runs = [each for each in rig.figures(rows, wanted) if each is not None]
    return [mean_of(each) for each in zip(*runs, strict=True)] if runs else None


def _pairs(rows: Sequence[Row], model: Sequence[Figures], held: Sequence[Row]) -> tuple[Pair, ...]:
    return tuple(Pair(row, figures, row in held) for row, figures in zip(rows, model, strict=True))


def _tell_what_reads_wait_for(settings: dict[str, Any], rows: Sequence[Row], reporter: Reporter) -> None:
    """Notes that reads of the model wait for programs and erasures, if reads and writes were measured."""
    remedy = lacks_of_today(settings)
    if remedy and len({"read" in row.op for row in rows}) == 2:
        reporter.note(
            f"reads of this model wait for programs and collection; SSDs of today suspend them: {remedy}"
        )


def check(
    config: str,
    rows: Sequence[Row],
    weights: Mapping[str, float],
    executor: Executor,
    reporter: Reporter,
    folder: Path,
) -> Fit:
    """Returns the errors of a configuration on rows, none of which it is fitted to here.

    Raises:
        UserError: the configuration is wrong, or cannot run the rows.
    """
    rig = Rig(config, Cache(folder, say=reporter.note), executor, reporter)
    _tell_what_reads_wait_for(rig.settings({}), rows, reporter)
    model = rig.figures(rows, [{}])[0]
    if model is None:
        raise UserError(f"{config}: cannot run these rows: {rig.refusal}")
    pairs = _pairs(rows, model, ())
    return Fit(config, {}, (), pairs, weights, 0, 0, None, (), {})
