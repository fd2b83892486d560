"""What a ``tune.toml`` declares: the objectives of a search, the space of parameters and the constraints."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ftlab._core import UserError
from ftlab.configs import to_text
from ftlab.studies.expression import Expression
from ftlab.studies.toml import Table
from ftlab.units import quantity

MOST_RUNS = 1_000_000
"""The maximum number of trials if the budget is in minutes."""


@dataclass(frozen=True)
class Parameter:
    """One dimension of the space that is searched."""

    name: str
    key: str
    choices: tuple[str, ...]
    """The values to choose from; empty for a range."""
    low: float
    high: float
    log: bool
    unit: str
    """The unit of the range's values: "B", "ns", "%" or empty."""
    when: Expression | None
    """A condition on earlier parameters; if it is false, the key is left as it is."""

    @property
    def whole(self) -> bool:
        """Whether the parameter's values are whole numbers."""
        return float(self.low).is_integer() and float(self.high).is_integer()

    @property
    def ends(self) -> tuple[str, ...]:
        """Returns the choices, or the two ends of the range, as they are written in a configuration."""
        cast = int if self.whole else float
        return self.choices or tuple(self.text(cast(value)) for value in (self.low, self.high))

    def text(self, value: Any) -> str:
        """Writes a value as in a configuration; a share has no more digits than necessary."""
        if self.unit == "%":
            value = round(value, 4)
        return f"{to_text(value)}{self.unit}"


@dataclass(frozen=True)
class Objective:
    """A value that is to be minimised or maximised."""

    text: str
    get: Expression
    maximize: bool


@dataclass(frozen=True)
class Tuning:
    """The declaration of a search."""

    path: Path
    config: str
    set: Mapping[str, str]
    parameters: tuple[Parameter, ...]
    objectives: tuple[Objective, ...]
    constraints: tuple[Expression, ...]
    runs: int
    minutes: float | None
    seed: int


def load_tuning(path: Path) -> Tuning:
    """Reads a ``tune.toml``.

    Raises:
        UserError: the file is missing or wrong; the text says what is wrong with it.
    """
    table = Table(path)
    if table.has("axis") and not table.has("parameter"):
        raise UserError(f"{path}: a study (it has [axis.NAME] and no parameters): use `ftlab sweep`")
    objectives = [
        Objective(text, Expression(text, table.place(sense)), sense == "maximize")
        for sense in ("minimize", "maximize")
        for text in table.texts(sense)
    ]
    minutes = table.number("minutes") if table.has("minutes") else None
    tuning = Tuning(
        path=path,
        config=table.text("config"),
        set=table.keys_of("set"),
        parameters=tuple(_parameter(name, inner) for name, inner in table.table("parameter").items()),
        objectives=tuple(objectives),
        constraints=tuple(
            Expression(text, table.place("constraints")) for text in table.texts("constraints")
        ),
        runs=table.get("runs", int, MOST_RUNS if minutes is not None else None),
        minutes=minutes,
        seed=table.get("seed", int, 1),
    )
    table.done()
    if not tuning.objectives:
        raise table.wrong("minimize", "is missing, and maximize too: nothing is sought")
    if not tuning.parameters:
        raise table.wrong("parameter", "is missing: nothing may be changed")
    if tuning.runs < 1 or (minutes is not None and minutes <= 0):
        raise table.wrong("runs", "at least one")
    before: set[str] = set()
    for each in tuning.parameters:
        for used in (each.when.used() if each.when else set()) - before:
            raise table.wrong(f"parameter.{each.name}.when", f"no parameter {used!r} comes before it")
        before.add(each.name)
    return tuning


def _parameter(name: str, table: Table) -> Parameter:
    key = table.text("key")
    choices = tuple(to_text(value) for value in table.list_of("choices", (str, int, float)))
    when = Expression(table.text("when"), table.place("when")) if table.has("when") else None
    low, high, unit, log = 0.0, 0.0, "", table.flag("log")
    if table.has("range"):
        low, high, unit = _bounds(table)
    table.done()
    if bool(choices) == (high > low):
        raise table.wrong("choices", "either choices, or a range [least, greatest]")
    if log and not low > 0:
        raise table.wrong("log", "a range on a logarithmic scale begins above 0")
    return Parameter(name, key, choices, low, high, log, unit, when)


_SIZES = ("B", "KiB", "MiB", "GiB", "TiB", "kB", "MB", "GB", "TB")
_UNITS = {**dict.fromkeys(_SIZES, "B"), **dict.fromkeys(("ns", "us", "ms", "s", "h"), "ns"), "%": "%", "": ""}


def _bounds(table: Table) -> tuple[float, float, str]:
    texts = [to_text(value) for value in table.list_of("range", (str, int, float))]
    units = {_UNITS.get(text.strip().lstrip("-+0123456789.eE").strip()) for text in texts}
    values = [quantity(text.strip()) for text in texts]
    if len(texts) != 2 or None in values or len(units) != 1 or None in units:
        raise table.wrong("range", f"{texts!r}: two numbers, or quantities of one kind")
    unit = units.pop() or ""
    scale = 100 if unit == "%" else 1
    low, high = (round(value * scale, 6) if scale > 1 else value for value in values if value is not None)
    if not low < high:
        raise table.wrong("range", f"{texts!r}: the first is the least")
    return low, high, unit


def violation(constraint: Expression, names: Mapping[str, Any]) -> float:
    """Returns by how much a constraint is violated, as a number without unit; 0 if the constraint holds."""
    held = constraint(names)
    if held is None:
        return 1.0
    if not isinstance(held, bool):
        raise UserError(f"{constraint.where}: {constraint.text!r}: is not a comparison")
    if held:
        return 0.0
    sides = [side for side in constraint.sides(names) if isinstance(side, (int, float))]
    if len(sides) == 2 and sides[1]:
        return max(abs(sides[0] - sides[1]) / abs(sides[1]), 1e-9)
    return 1.0
