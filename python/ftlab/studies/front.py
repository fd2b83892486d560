"""The outcome of a search as text and CSV: the Pareto front, the best trial, and what each parameter accounts
for.
"""

from __future__ import annotations

import csv
import io
import itertools
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ftlab._core import Config
from ftlab.configs import to_text
from ftlab.studies import readable
from ftlab.studies.tuning import Tuning
from ftlab.units import amount


@dataclass(frozen=True)
class Trial:
    """A configuration that the search has tried."""

    number: int
    """The trial's number, counted from 1; 0 is the default configuration."""
    parameters: Mapping[str, str]
    """The values of the trial's parameters by name; parameters that do not apply are absent."""
    values: tuple[float, ...] = ()
    """Values of the objectives; empty if the run failed."""
    violation: float = 0.0
    error: str = ""
    config: Config | None = field(default=None, compare=False)

    @property
    def feasible(self) -> bool:
        """Whether the run succeeded and all constraints hold."""
        return bool(self.values) and self.violation == 0


@dataclass(frozen=True)
class Tuned:
    """The outcome of a search."""

    tuning: Tuning
    default: Trial
    trials: Sequence[Trial]
    front: Sequence[Trial]
    best: Trial | None
    importance: Mapping[str, Sequence[float]]
    """The importance of each parameter for each objective."""


def _costs(trial: Trial, tuning: Tuning) -> list[float]:
    """Returns the values of the objectives with signs such that less is always better."""
    pairs = zip(trial.values, tuning.objectives, strict=True)
    return [-value if each.maximize else value for value, each in pairs]


def pareto(trials: Sequence[Trial], tuning: Tuning) -> list[Trial]:
    """Returns the feasible trials that no other trial beats. A trial beats another if it is better in one
    objective and not worse in any.
    """
    known = [(trial, _costs(trial, tuning)) for trial in trials if trial.feasible]
    front = [
        (trial, costs)
        for trial, costs in known
        if not any(
            other != costs and all(a <= b for a, b in zip(other, costs, strict=True)) for _, other in known
        )
    ]
    # Of trials with equal costs only the first is kept.
    once: dict[tuple[float, ...], Trial] = {}
    for trial, costs in front:
        once.setdefault(tuple(costs), trial)
    return [once[costs] for costs in sorted(once)]


def knee(front: Sequence[Trial], tuning: Tuning) -> Trial | None:
    """Returns the trial of a front that is nearest to the point where every objective has its best value;
    distances are relative to each objective's range on the front.
    """
    if not front:
        return None
    table = [_costs(trial, tuning) for trial in front]
    spans = [(min(column), max(column) - min(column)) for column in zip(*table, strict=True)]

    def distance(costs: Sequence[float]) -> float:
        pairs = zip(costs, spans, strict=True)
        return math.hypot(*((cost - least) / span if span else 0.0 for cost, (least, span) in pairs))

    return front[min(range(len(front)), key=lambda at: distance(table[at]))]


def importance(tuning: Tuning, trials: Sequence[Trial]) -> dict[str, list[float]]:
    """Returns, for each parameter, the share of each objective's variance that its values explain.

    For a range, the trials are sorted by value and split into quarters; "does not apply" counts as a value.
    """
    known = [trial for trial in trials if trial.values]
    found: dict[str, list[float]] = {}
    for each in tuning.parameters:
        groups: dict[str, list[Trial]] = {}
        if each.choices:
            for trial in known:
                groups.setdefault(trial.parameters.get(each.name, ""), []).append(trial)
        else:
            groups[""] = [trial for trial in known if each.name not in trial.parameters]
            there = [trial for trial in known if each.name in trial.parameters]
            there.sort(key=lambda trial: float(trial.parameters[each.name].removesuffix(each.unit)))
            for at, trial in enumerate(there):
                groups.setdefault(str(at * 4 // len(there)), []).append(trial)
        found[each.name] = [_between(groups, at) for at in range(len(tuning.objectives))]
    return found


def _between(groups: Mapping[str, Sequence[Trial]], at: int) -> float:
    numbers = [[trial.values[at] for trial in group] for group in groups.values() if group]
    every = list(itertools.chain.from_iterable(numbers))
    if len(every) < 2:
        return 0.0
    mean = math.fsum(every) / len(every)
    total = math.fsum((value - mean) ** 2 for value in every)
    between = math.fsum(len(group) * (math.fsum(group) / len(group) - mean) ** 2 for group in numbers)
    return between / total if total else 0.0


def to_csv(tuned: Tuned, trials: Sequence[Trial]) -> str:
    """Returns trials as CSV, one per row."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    names = [each.name for each in tuned.tuning.parameters]
    objectives = [each.text for each in tuned.tuning.objectives]
    writer.writerow(["trial", *names, *objectives, "feasible", "front", "error"])
    front = {trial.number for trial in tuned.front}
    for trial in trials:
        values = [f"{value:.10g}" for value in trial.values] or [""] * len(objectives)
        flags = [str(flag).lower() for flag in (trial.feasible, trial.number in front)]
        parameters = [trial.parameters.get(name, "") for name in names]
        writer.writerow([trial.number, *parameters, *values, *flags, trial.error])
    return out.getvalue()


def default_parameters(tuned: Tuned) -> dict[str, str]:
    """Returns the values that the default configuration gives the parameters, by the parameters' names."""
    if tuned.default.config is None:
        return {}
    found = {}
    for each in tuned.tuning.parameters:
        value: Any = json.loads(tuned.default.config.json())
        for name in each.key.split("."):
            value = value.get(name) if isinstance(value, dict) else None
        if value is not None and not isinstance(value, dict):
            found[each.name] = to_text(value)
    return found


def render(tuned: Tuned, width: int | None = None) -> str:
    """Formats the front, the default configuration for comparison, and what the parameters account for."""
    parameters, objectives = tuned.tuning.parameters, [each.text for each in tuned.tuning.objectives]
    units = [readable.unit_of(text) for text in objectives]
    heads = [("trial", True), *((each.name, False) for each in parameters)]
    trials = [*tuned.front, tuned.default]
    scales = [
        readable.scale((trial.values[at] for trial in trials if trial.values), unit) if unit == "ns" else None
        for at, unit in enumerate(units)
    ]
    heads += [
        (readable.heading(text, scale.name if scale else ""), True)
        for text, scale in zip(objectives, scales, strict=True)
    ]
    table = readable.table(heads)
    for trial in trials:
        values = [
            amount(value / scale.ns) if scale else readable.shown(value, unit)
            for value, unit, scale in zip(trial.values, units, scales, strict=False)
        ]
        mark = "" if trial.feasible else "not allowed" if trial.values else "failed"
        mark = "best" if trial is tuned.best else mark
        number = "default" if trial is tuned.default else str(trial.number)
        chosen = default_parameters(tuned) if trial is tuned.default else trial.parameters
        settings = (readable.setting(chosen.get(each.name, "-")) for each in parameters)
        table.add_row(f"{mark} {number}".lstrip(), *settings, *(values or ["-"] * len(objectives)))
    lines = [readable.text_of(table, readable.room() if width is None else width)]
    for name, shares in tuned.importance.items():
        of = (f"{share:.0%} of {text}" for share, text in zip(shares, objectives, strict=True))
        lines.append(f"{name} accounts for {', '.join(of)}\n")
    return "".join(lines)


def place_of_default(tuned: Tuned) -> str:
    """Returns a sentence that says how many trials are better than the default configuration."""
    if not tuned.default.values:
        return "the default configuration failed"
    mine = _costs(tuned.default, tuned.tuning)
    better = sum(
        trial.feasible
        and _costs(trial, tuned.tuning) != mine
        and all(a <= b for a, b in zip(_costs(trial, tuned.tuning), mine, strict=True))
        for trial in tuned.trials
    )
    allowed = "" if tuned.default.feasible else "; it is not within the constraints"
    return f"{better} of {len(tuned.trials)} trials are better than the default in every respect{allowed}"
