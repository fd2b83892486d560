"""The search of one stage: Optuna's, over the stage's own keys, then a descent over all keys so far."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from ftlab._core import Config, UserError
from ftlab.calibration.descent import Valley, Vector, descend
from ftlab.calibration.distance import residuals
from ftlab.calibration.keys import Stage, values_of
from ftlab.calibration.model import Rig, overrides
from ftlab.configs import load
from ftlab.progress import Reporter
from ftlab.studies.executor import Executor
from ftlab.studies.expression import Expression
from ftlab.studies.front import Trial
from ftlab.studies.tune import Tuner
from ftlab.studies.tuning import Objective, Parameter, Tuning

AT_ONCE = 2
"""Trials proposed at a time, however many run: so the same seed gives the same search on any machine."""
STEP = 0.06
"""The length of the differences of a descent, as a share of each key's range."""
FINE_STEP = 0.015
"""The same at the end of a fit, where the valley is narrow."""
ROUGH = 0.25
"""The share of the usual requests that a search takes; what it has found is then fitted with all of them."""
OTHER_SEEDS = (11, 12, 13, 14, 15, 16, 17, 18)
"""Seeds of runs that tell how much of an error is chance."""
MOST_STEPS = 6
"""Steps of a descent at most."""
FEW_STEPS = 2
"""Steps of a descent that only tells whether a number of dies is worth more."""
STARTS = 3
"""From how many of the search's trials, each with other counts, a descent begins; and of its starts."""


def is_count(each: Parameter) -> bool:
    """Whether a key is a count or a choice, which a descent cannot move by a little."""
    return bool(each.choices) or not each.unit


@dataclass(frozen=True)
class Point:
    """Values of all keys that are free so far, and how far the model with them is from the rows."""

    chosen: Mapping[str, str]
    error: float


class Ground:
    """The distance from a set of rows as a function of free keys."""

    def __init__(
        self,
        rig: Rig,
        stage: Stage,
        free: Sequence[Parameter],
        weights: Mapping[str, float],
        length: float = 1.0,
        luck: Vector | None = None,
    ) -> None:
        """Makes the function of the values of ``free``, over the rows of a stage, whose runs have this share
        of the usual length; ``luck`` is what the errors' random numbers took from them (`averaged`).
        """
        self.rig = rig
        self.rows = stage.rows
        self.free = tuple(free)
        self.weights = weights
        self._length = length
        self._luck: Vector | float = 0.0 if luck is None else luck

    def residuals(self, every: Sequence[Mapping[str, str]]) -> list[Vector | None]:
        """Returns the weighted errors with each of these choices; None for one that is not valid."""
        wanted = [values_of(self.free, chosen) for chosen in every]
        found = self.rig.figures(self.rows, wanted, self._length)
        return [
            None if each is None else residuals(self.rows, each, self.weights) + self._luck for each in found
        ]

    def errors(self, every: Sequence[Mapping[str, str]]) -> list[float]:
        """Returns the distance with each of these choices; infinite for one that is not valid."""
        return [math.inf if each is None else math.sqrt(float(each @ each)) for each in self.residuals(every)]

    def reseeded(self, chosen: Mapping[str, str]) -> list[Vector]:
        """Returns the weighted errors with these choices: with the configuration's random numbers and, where
        these choices are valid, with others.
        """
        values = values_of(self.free, chosen)
        wanted = [values, *({**values, "seed": str(seed)} for seed in OTHER_SEEDS)]
        found = self.rig.figures(self.rows, wanted, self._length)
        return [residuals(self.rows, each, self.weights) for each in found if each is not None]

    def averaged(self, chosen: Mapping[str, str]) -> Ground:
        """Returns the same function without the luck of the configuration's random numbers.

        The same numbers draw the same addresses, and so nearly the same luck, with any values of the keys: it
        is known from one place, the errors there with other numbers.
        """
        runs = self.reseeded(chosen)
        stage = Stage("", self.rows, self.free)
        luck = np.mean(runs, axis=0) - runs[0]
        return Ground(self.rig, stage, self.free, self.weights, self._length, luck)

    def moved(self) -> list[Parameter]:
        """Returns the keys that a descent moves."""
        return [each for each in self.free if not is_count(each)]

    def place(self, chosen: Mapping[str, str]) -> Vector:
        """Returns where the moved keys are, each between 0 and 1."""
        return np.array([_part(each, chosen[each.name]) for each in self.moved()])

    def chosen(self, at: Vector, like: Mapping[str, str]) -> dict[str, str]:
        """Returns the values of all keys at a place; counts and choices are those of ``like``."""
        moved = {each.name: _text(each, float(part)) for each, part in zip(self.moved(), at, strict=True)}
        return {**like, **moved}

    def descend(self, start: Mapping[str, str], most: int, step: float = STEP) -> tuple[Point, Valley]:
        """Descends from a start; returns the lowest point, and what the descent knows about it."""
        valley = descend(
            lambda places: self.residuals([self.chosen(place, start) for place in places]),
            self.place(start),
            step,
            most,
        )
        return Point(self.chosen(valley.at, start), math.sqrt(valley.cost)), valley

    def settle(self, start: Mapping[str, str]) -> tuple[Point, Valley]:
        """Descends from a start by long steps, then by short ones; the slopes are those of the long ones, in
        which noise counts for less.
        """
        best, valley = self.descend(start, MOST_STEPS)
        nearer, end = self.descend(best.chosen, FEW_STEPS, FINE_STEP)
        return nearer, replace(valley, at=end.at, residuals=end.residuals)


def _part(free: Parameter, text: str) -> float:
    value = float(text.removesuffix(free.unit))
    if free.log:
        return math.log(value / free.low) / math.log(free.high / free.low)
    return (value - free.low) / (free.high - free.low)


def _text(free: Parameter, part: float) -> str:
    value = (
        free.low * (free.high / free.low) ** part if free.log else free.low + part * (free.high - free.low)
    )
    return free.text(round(value))


class Searcher(Tuner):
    """Optuna's search of a stage: `ftlab tune`, whose trials are runs of all rows."""

    def __init__(
        self, ground: Ground, own: Sequence[Parameter], kept: Mapping[str, str], plan: Plan, name: str
    ) -> None:
        """Makes the search of ``own`` keys; ``kept`` are the values of the others."""
        where = str(plan.path)
        tuning = Tuning(
            path=plan.path,
            config=plan.base,
            set=kept,
            parameters=tuple(own),
            objectives=(Objective("error", Expression("error", where), False),),
            constraints=(),
            runs=plan.trials,
            minutes=None,
            seed=plan.seed,
        )
        self._ground = ground
        self._kept = kept
        self._name = name
        self._best = math.inf
        folder = plan.folder / name
        folder.mkdir(parents=True, exist_ok=True)
        super().__init__(tuning, folder, plan.executor, plan.reporter)

    def said(self) -> str:
        """Returns what is searched: the rows and their weights, too."""
        return super().said() + repr([self._ground.rows, sorted(self._ground.weights.items())])

    def expect(self, before: int) -> None:
        """Leaves the number of runs open: descents follow, as many as they need."""
        self._reporter.expect({})

    def check(self) -> None:
        """Leaves it to the trials to refuse what no configuration accepts."""

    def _config(self, parameters: Mapping[str, str]) -> Config:
        values = values_of(self._ground.free, {**self._kept, **parameters})
        return load(self._ground.rig.base, overrides(values))

    def tried(self, asked: Sequence[Trial]) -> list[Trial]:
        """Runs all rows with the values of each trial; returns the trials with their distances."""
        found = self._ground.errors([{**self._kept, **trial.parameters} for trial in asked])
        best = min(found, default=math.inf)
        if best < 0.9 * self._best:
            self._reporter.note(f"{self._name}: trial {asked[-1].number}: {best:.2%} off")
            self._best = best
        return [
            replace(trial, values=(error,)) if math.isfinite(error) else replace(trial, error="not valid")
            for trial, error in zip(asked, found, strict=True)
        ]


@dataclass(frozen=True)
class Plan:
    """How a search is done."""

    base: str
    """The preset or the file that the model begins with."""
    path: Path
    """The file that the model is written to, which names the search."""
    folder: Path
    """Where the search keeps what it has tried."""
    trials: int
    """Optuna's trials of each stage."""
    seed: int
    executor: Executor
    reporter: Reporter


def search(ground: Ground, stage: Stage, start: Mapping[str, str], plan: Plan) -> tuple[Point, int]:
    """Searches the keys of a stage, and then moves all keys so far; returns the best point, and how many
    trials there were.
    """
    own = {each.name for each in stage.free}
    kept = {name: text for name, text in start.items() if name not in own}
    tuner = Searcher(ground, stage.free, kept, plan, stage.name)
    first = {name: text for name, text in start.items() if name in own}
    for begun in (*stage.starts, {}):
        tuner.begin_with({**first, **begun})
    trials = [trial for trial in tuner.search(AT_ONCE).trials if trial.values]
    if not trials:
        raise UserError(
            f"{plan.base}: cannot run these rows with any values that were tried: {ground.rig.refusal}"
        )
    apart = _apart(sorted(trials, key=lambda trial: trial.values[0]), stage)
    met = [ground.descend({**start, **each.parameters}, FEW_STEPS)[0] for each in apart]
    lowest = min(met, key=lambda point: point.error)
    best = _climb(ground, stage, ground.descend(lowest.chosen, MOST_STEPS)[0])
    plan.reporter.note(f"{stage.name}: {len(stage.rows)} rows, {best.error:.2%} off")
    return best, len(trials)


def _apart(trials: Sequence[Trial], stage: Stage) -> list[Trial]:
    """Returns the best trials, the best first: few of them, one for each combination of counts, and as many
    of the starts in closed form.
    """
    counts = [each.name for each in stage.free if is_count(each)]
    found: dict[str, Trial] = {}
    for trial in trials:
        found.setdefault(json.dumps([trial.parameters[name] for name in counts]), trial)
    begun = [
        trial for trial in trials if any(start.items() <= trial.parameters.items() for start in stage.starts)
    ]
    best = [*list(found.values())[:STARTS], *begun[:STARTS]]
    return list({trial.number: trial for trial in best}.values())


def _climb(ground: Ground, stage: Stage, best: Point) -> Point:
    """Moves counts of a stage by one as long as that brings the model nearer to the rows."""
    moved = True
    while moved:
        moved = False
        for each in (each for each in stage.free if is_count(each) and not each.choices):
            for step in (-1, 1):
                count = int(best.chosen[each.name]) + step
                if not each.low <= count <= each.high:
                    continue
                found = ground.descend({**best.chosen, each.name: str(count)}, FEW_STEPS)[0]
                if found.error < best.error:
                    best, moved = ground.descend(found.chosen, MOST_STEPS)[0], True
    return best
