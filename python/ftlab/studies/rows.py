"""The table of a study, a row per run; it is written in parts during the study, as a whole at the end."""

from __future__ import annotations

import json
import re
import shutil
import time
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ftlab._core import InternalError, UserError
from ftlab.outputs import folder_in, inside, system_errors
from ftlab.studies.declaration import Figure
from ftlab.studies.plan import Run
from ftlab.studies.series import Number
from ftlab.units import quantity

if TYPE_CHECKING:
    import polars as pl

RESERVED = ("run", "hash", "seconds", "worker")
"""The columns that belong to no axis, so no axis may have these names."""

EVERY_S = 2.0
"""The minimum time between writing two parts, in seconds."""

SHARE_OF_PARTS = 0.05
"""The maximum share of the time that may be spent on writing parts."""

_LARGEST = 2**63


class Rows:
    """Collects results as rows; parts of them appear in ``DIR/parts``."""

    def __init__(self, figure: Figure, runs: Sequence[Run], folder: Path) -> None:
        """Makes an empty table; ``folder`` is where runs.parquet, failures.parquet and, temporarily, parts/
        go.
        """
        self._figure = figure
        self._folder = folder
        self._parts = folder / "parts"
        self._places: dict[str, list[int]] = {}
        for place, each in enumerate(runs):
            self._places.setdefault(each.key, []).append(place)
        self._runs = runs
        self._keys = _types(runs)
        self._rows: list[dict[str, Any]] = []
        self._failed: list[dict[str, Any]] = []
        self._frames: list[pl.DataFrame] = []
        self._next = time.monotonic() + EVERY_S
        folder_in(folder, "parts")
        # These parts are from an interrupted study; their rows are made again from the results.
        shutil.rmtree(self._parts)
        folder_in(folder, "parts")

    @property
    def failures(self) -> int:
        """Returns how many runs failed."""
        return len(self._failed)

    def first_failure(self) -> str:
        """Returns the name and the error of the first run, in the order of the plan, that failed."""
        first = min(self._failed, key=lambda row: row["run"])
        return f"{self._runs[first['run'] - 1].name}: {first['error']}"

    def add(self, key: str, result: Mapping[str, Any]) -> None:
        """Adds the result of all runs with that key."""
        measured = flat(result, skip="engine")
        engine = dict(result["engine"])
        after = {"seconds": engine.pop("seconds", None), "worker": engine.pop("worker", None)}
        after |= flat({"engine": engine})
        derived = values_of(self._figure, result)
        for place in self._places[key]:
            trace = self._runs[place].config.trace
            own = {"config.workload.trace": Path(trace).name} if trace else {}
            self._rows.append({**self._head(place), **derived, **measured, **own, **after})
        if time.monotonic() >= self._next:
            self.flush()

    def fail(self, run: Run, error: UserError | InternalError) -> None:
        """Adds a run that failed."""
        kind = "user" if isinstance(error, UserError) else "internal"
        for place in self._places[run.key]:
            self._failed.append({**self._head(place), "kind": kind, "error": str(error)})

    def flush(self) -> None:
        """Writes the rows added since the last part as a new part."""
        start = time.monotonic()
        if self._rows:
            frame = _frame(self._rows)
            self._rows = []
            self._frames.append(frame)
            _write(frame, self._parts / f"part-{len(self._frames):05}.parquet")
        end = time.monotonic()
        self._next = end + max(EVERY_S, (end - start) / SHARE_OF_PARTS)

    def join(self) -> pl.DataFrame:
        """Writes the whole tables of runs and failures, in the order of the plan, and removes the parts."""
        import polars as pl

        self.flush()
        whole = pl.concat(self._frames, how="diagonal_relaxed") if self._frames else self._empty()
        whole = whole.sort("run").rechunk()
        if "seconds" in whole.columns:
            last = [name for name in whole.columns if name in RESERVED[2:] or name.startswith("engine.")]
            whole = whole.select(*(name for name in whole.columns if name not in last), *last)
        whole = with_numbers(whole, self._keys)
        failed = _frame(sorted(self._failed, key=lambda row: row["run"])) if self._failed else None
        _write(whole, self._folder / "runs.parquet")
        if failed is None:
            failed = self._empty().with_columns(kind=pl.lit("x"), error=pl.lit("x")).clear()
        _write(failed, self._folder / "failures.parquet")
        shutil.rmtree(self._parts)
        return whole

    def _head(self, place: int) -> dict[str, Any]:
        """Returns the columns that identify a row: run, labels, varied keys and hash."""
        run = self._runs[place]
        keys = {key: kind(_value_of(run, key)) for key, kind in self._keys.items()}
        names = [axis.name for axis in self._figure.axes]
        return {"run": place + 1, **dict(zip(names, run.labels, strict=True)), **keys, "hash": run.key}

    def _empty(self) -> pl.DataFrame:
        return _frame([self._head(0)]).clear()


_SUFFIXES = (
    ("_bytes_per_s", re.compile(r"B/s$")),
    ("_bytes", re.compile(r"B$")),
    ("_share", re.compile(r"%$")),
    ("_ns", re.compile(r"(s|min|h)$")),
)
"""What follows a key's name in the column of its numbers, by the unit of its values."""


def with_numbers(frame: pl.DataFrame, keys: Iterable[str]) -> pl.DataFrame:
    """Returns the frame with a column of numbers behind each varied key whose values are quantities as text.

    Times are in nanoseconds (``host.deadline_ns``), sizes in bytes, percentages as shares. A value that is
    not a quantity (``none``) is null there, ``unlimited`` is infinite.
    """
    import polars as pl

    for key in keys:
        if key not in frame.columns or frame[key].dtype != pl.String:
            continue
        texts = frame[key].to_list()
        suffix = _suffix({text for text in texts if text is not None})
        if suffix and key + suffix not in frame.columns:
            numbers = [None if text is None else quantity(text) for text in texts]
            column = pl.Series(key + suffix, [None if n is None else float(n) for n in numbers], pl.Float64)
            frame = frame.insert_column(frame.get_column_index(key) + 1, column)
    return frame


def _suffix(texts: set[str]) -> str:
    """Returns the suffix for the unit that all quantities among these texts have; empty if there is none."""
    with_units = [text for text in texts if quantity(text) is not None and text != "unlimited"]
    if not with_units:
        return ""
    return next((name for name, unit in _SUFFIXES if all(unit.search(text) for text in with_units)), "")


def values_of(figure: Figure, result: Mapping[str, Any]) -> dict[str, Number]:
    """Returns the values that a study derives from a result; later values may use earlier ones."""
    names = names_of(result) if figure.values else {}
    derived: dict[str, Number] = {}
    for value in figure.values:
        derived[value.name] = value.get.number({**names, **derived})
    return derived


def names_of(result: Mapping[str, Any]) -> dict[str, Any]:
    """Returns what expressions can name: the fields of a result, and its configuration's keys as numbers
    where possible.
    """
    names = _over(_numbers(result.get("config", {})), result)
    return {**names, "own": Sparse((part, Sparse(of)) for part, of in result.get("own", {}).items())}


class Sparse(dict[str, Any]):
    """Fields that some runs have and others do not, by policy: a field that is absent is a missing number."""

    def __contains__(self, name: object) -> bool:
        """Returns true for every name, so that none counts as misspelt."""
        return True

    def __missing__(self, name: str) -> None:
        """Returns the value of a field that is absent."""
        return None


def _over(below: Mapping[str, Any], above: Mapping[str, Any]) -> dict[str, Any]:
    """Merges two tables; where both have a value of the same name, that of the second table is used."""
    merged = {**below, **above}
    for name in below.keys() & above.keys():
        if isinstance(below[name], Mapping) and isinstance(above[name], Mapping):
            merged[name] = _over(below[name], above[name])
    return merged


def _numbers(table: Mapping[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, value in table.items():
        if isinstance(value, Mapping):
            found[name] = _numbers(value)
        elif isinstance(value, str) and (number := quantity(value)) is not None:
            found[name] = number
        else:
            found[name] = value
    return found


def flat(table: Mapping[str, Any], skip: str = "") -> dict[str, Any]:
    """Returns the scalar values of a result by dotted name; lists and the table ``skip`` are left out."""
    found: dict[str, Any] = {}
    _flatten(table, "", skip, found)
    return found


def _flatten(table: Mapping[str, Any], prefix: str, skip: str, into: dict[str, Any]) -> None:
    for name, value in table.items():
        kind = type(value)
        if kind is dict:
            if name != skip:
                _flatten(value, f"{prefix}{name}.", "", into)
        elif kind is not list:
            # A number this large does not fit into an integer column.
            large = kind is int and not -_LARGEST <= value < _LARGEST
            into[prefix + name] = float(value) if large else value


def _value_of(run: Run, key: str) -> str | None:
    """Returns a varied key's value in a run: as an axis sets it, or else as the configuration has it."""
    if key in run.varied:
        return run.varied[key]
    found: Any = json.loads(run.config.json())
    for name in key.split("."):
        found = found.get(name) if isinstance(found, dict) else None
    return None if found is None or isinstance(found, dict) else str(found)


def _types(runs: Sequence[Run]) -> dict[str, Any]:
    """Returns the type of each varied key's values: integers, other numbers or text."""
    keys = dict.fromkeys(key for run in runs for key in run.varied)
    return {key: _type(_value_of(run, key) for run in runs) for key in keys}


def _type(texts: Iterable[str | None]) -> Any:
    known = {text for text in texts if text is not None}
    for kind in (int, float):
        try:
            numbers = [kind(text) for text in known]
        except ValueError:
            continue
        if all(-_LARGEST <= number < _LARGEST for number in numbers):
            return lambda text, kind=kind: None if text is None else kind(text)
    return lambda text: text


def _frame(rows: Sequence[Mapping[str, Any]]) -> pl.DataFrame:
    import polars as pl

    names = list(rows[0])
    if all(list(row) == names for row in rows):
        # If all rows have the same columns, as in most studies, this way is ten times as fast.
        values: Iterable[Sequence[Any]] = zip(*(row.values() for row in rows), strict=True)
    else:
        names = list(dict.fromkeys(name for row in rows for name in row))
        values = ([row.get(name) for row in rows] for name in names)
    return pl.DataFrame([pl.Series(name, of, strict=False) for name, of in zip(names, values, strict=True)])


def _write(frame: pl.DataFrame, path: Path) -> None:
    with inside(path.parent, path.name).staged() as unfinished, system_errors(unfinished):
        frame.write_parquet(unfinished)
