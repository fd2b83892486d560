"""The page of a search: its Pareto front, its course, what the parameters account for, and every trial."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ftlab.outputs import inside
from ftlab.progress import Reporter
from ftlab.studies import pages
from ftlab.studies.alone import alone
from ftlab.studies.executor import Executor
from ftlab.studies.front import Trial, Tuned, default_parameters, place_of_default, to_csv
from ftlab.studies.tune import Tuner
from ftlab.studies.tuning import Objective, Parameter, Tuning
from ftlab.units import quantity

SECTIONS = (
    (
        "front",
        "Pareto front",
        "Trials that no other beats in one objective without losing in another. Point at one to see its"
        " parameters.",
    ),
    ("table", "The front and the default configuration", "A click on a heading sorts."),
    ("history", "History", "Every trial in its turn, and the best so far within the constraints."),
    (
        "importance",
        "Importance of the parameters",
        "The share of an objective's variance that lies between a parameter's values; a range's count by"
        " quarters.",
    ),
    (
        "lines",
        "Trials",
        "A line for each trial that the filter leaves, the best and the front above the rest.",
    ),
    ("trials", "All trials", "A click on a heading sorts."),
)
CHOICES = (("x", "Across"), ("y", "Upward"))


def search(tuning: Tuning, out: Path, executor: Executor, reporter: Reporter, command: str) -> Tuned:
    """Searches, or goes on with a search, and writes what was found to the directory ``out``.

    Raises:
        UserError: Optuna is missing, the search is wrong, or a file cannot be written.
    """
    with alone(out, tuning.path):
        tuned = Tuner(tuning, out, executor, reporter).search(executor.jobs)
    inside(out, "trials.csv").write(to_csv(tuned, tuned.trials).encode())
    inside(out, "front.csv").write(to_csv(tuned, tuned.front).encode())
    write(tuned, out, command)
    if tuned.best is not None and tuned.best.config is not None:
        inside(out, "best.toml").write(tuned.best.config.toml().encode())
    return tuned


def write(tuned: Tuned, out: Path, command: str) -> None:
    """Writes ``index.html``.

    Raises:
        UserError: the page cannot be written.
    """
    tuning = tuned.tuning
    failed = sum(not trial.values for trial in tuned.trials)
    said = f"{len(tuned.trials):,} trials, {len(tuned.front):,} of them on the front"
    bounds = ", ".join(each.text for each in tuning.constraints)
    page = pages.Page(
        title=f"Search: {tuning.path.stem}",
        script="tuning.js",
        said=said + (f", {failed:,} failed" if failed else ""),
        sections=SECTIONS,
        choices=CHOICES,
        command=command,
        lines=[f"Seed {tuning.seed}; {place_of_default(tuned)}"] + ([f"Within {bounds}"] if bounds else []),
    )
    inside(out, "index.html").write(pages.render(page, _data(tuned)).encode())


def _data(tuned: Tuned) -> dict[str, Any]:
    parameters = tuned.tuning.parameters
    own = {each.key: each for each in parameters}
    return {
        "parameters": [
            {"name": each.name, "values": list(each.choices) or None, "log": each.log, "unit": _unit(each)}
            for each in parameters
        ],
        "objectives": [_objective(each, own.get(each.text)) for each in tuned.tuning.objectives],
        "importance": {name: list(shares) for name, shares in tuned.importance.items()},
        "trials": [
            {
                "number": trial.number,
                "parameters": _parameters(tuned, trial),
                "values": list(trial.values) or None,
                "feasible": trial.feasible,
                "front": any(trial is each for each in tuned.front),
                "best": trial is tuned.best,
                "error": trial.error,
            }
            for trial in (tuned.default, *tuned.trials)
        ],
    }


def _parameters(tuned: Tuned, trial: Trial) -> dict[str, str | float]:
    """Returns a trial's parameters: choices as they are written, values of ranges as numbers."""
    found: dict[str, str | float] = {}
    chosen = default_parameters(tuned) if trial is tuned.default else trial.parameters
    for each in tuned.tuning.parameters:
        text = chosen.get(each.name)
        number = None if text is None or each.choices else quantity(text)
        if text is not None and (each.choices or number is not None):
            found[each.name] = text if number is None else number
    return found


def _objective(objective: Objective, parameter: Parameter | None) -> dict[str, Any]:
    """Returns an objective with its unit. A field has its unit in its name; a key has the unit of its
    parameter.
    """
    text = objective.text
    unit = "ns" if text.endswith("_ns") or "percentile_ns." in text else ""
    log = parameter is not None and parameter.log
    unit = _unit(parameter) if parameter else unit
    return {"text": text, "maximize": objective.maximize, "unit": unit, "log": log}


def _unit(parameter: Parameter) -> str:
    if parameter.choices:
        return "B" if all(choice.endswith("B") for choice in parameter.choices) else ""
    return parameter.unit
