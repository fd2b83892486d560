"""What differs between two results: settings first, then what was measured."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ftlab._core import UserError
from ftlab.results.report import PERCENTILES
from ftlab.units import Unit, significant, time_unit

RESULT, COMPARISON = "ftlab.result.v1", "ftlab.compare.v1"

# These fields are not compared: the first differs between any two runs, the second does not differ.
_APART = ("engine", "schema")


@dataclass(frozen=True)
class Difference:
    """A field that differs between two results."""

    name: str
    """The field's dotted name."""
    values: tuple[Any, Any]
    """The values in the first and in the second result; None if a result lacks the field."""


@dataclass
class Differences:
    """All differences between two results."""

    label: str
    """The label of the compared variant; empty for single results."""
    settings: list[Difference] = field(default_factory=list)
    """Configuration keys that differ."""
    results: list[Difference] = field(default_factory=list)
    """Measured fields that differ."""
    equal: int = 0
    """The number of measured fields that are the same."""


def read(path: str | os.PathLike[str]) -> dict[str, dict[str, Any]]:
    """Returns the results in a file that ``run --json`` or ``compare --json`` wrote, by variant label.

    Raises:
        UserError: the file cannot be read, or neither command wrote it.
    """
    try:
        data = json.loads(Path(path).read_bytes())
    except OSError as error:
        raise UserError(f"{path}: {error.strerror}") from None
    except (ValueError, RecursionError):
        raise UserError(f"{path}: not JSON; a result is written by `ftlab run --json`") from None
    schema = data.get("schema") if isinstance(data, dict) else None
    try:
        if schema == RESULT:
            return {"": dict(data)}
        if schema == COMPARISON:
            return {variant["label"]: dict(variant["result"]) for variant in data["variants"]}
    except (KeyError, TypeError, ValueError):
        raise UserError(f"{path}: a comparison whose variants are incomplete") from None
    raise UserError(
        f"{path}: neither a result (`ftlab run --json`) nor a comparison (`ftlab compare --json`)"
    )


def between(
    first: Mapping[str, Mapping[str, Any]], second: Mapping[str, Mapping[str, Any]]
) -> list[Differences]:
    """Returns the differences between results of the same label; two single results are always compared.

    An empty list means that no label is in both.
    """
    if len(first) == 1 and len(second) == 1:
        return [compare(next(iter(first.values())), next(iter(second.values())))]
    return [compare(first[label], second[label], label) for label in first if label in second]


def compare(first: Mapping[str, Any], second: Mapping[str, Any], label: str = "") -> Differences:
    """Returns the differences between two results."""
    found = Differences(label)
    pairs = {name: (value, None) for name, value in _flat(first)}
    for name, value in _flat(second):
        pairs[name] = (pairs.get(name, (None, None))[0], value)
    for name, values in pairs.items():
        setting = name.startswith("config.")
        if values[0] != values[1]:
            into = found.settings if setting else found.results
            into.append(Difference(name.removeprefix("config."), values))
        else:
            found.equal += not setting
    return found


def _flat(table: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    for name, value in table.items():
        if not prefix and name in _APART:
            continue
        if isinstance(value, Mapping):
            yield from _flat(value, f"{prefix}{name}.")
        elif isinstance(value, list) and len(value) == 1:
            # A list with one element, for example on a device with one chip, is compared as that element.
            yield prefix + name, value[0]
        else:
            yield prefix + name, value


def render(names: tuple[str, str], all_found: list[Differences], *, everything: bool = False) -> str:
    """Formats the differences; without ``everything``, percentiles other than the usual ones are left out."""
    lines = []
    for found in all_found:
        if found.label:
            lines.append(f"variant {found.label}")
        if not found.settings and not found.results:
            lines.append("no difference except in engine")
            continue
        lines += _section("settings", names, found.settings)
        shown = [each for each in found.results if everything or _usual(each.name)]
        lines += _section("results", names, shown)
        left_out = len(found.results) - len(shown)
        also = f"; {left_out:,} other percentiles differ (--all)" if left_out else ""
        lines.append(f"{found.equal:,} measured values are equal{also}")
    return "".join(f"{line}\n" for line in lines)


def _usual(name: str) -> bool:
    _, percentile, point = name.partition("percentile_ns.")
    return not percentile or point in PERCENTILES


def _section(title: str, names: tuple[str, str], differences: list[Difference]) -> list[str]:
    if not differences:
        return [f"{title}: the same"]
    rows = [(title, *names, "")]
    rows += [(f"  {each.name}", *_texts(each), _ratio(each)) for each in differences]
    widths = [max(len(row[column]) for row in rows) for column in range(3)]
    return [
        f"{name:{widths[0]}}  {first:>{widths[1]}}  {second:>{widths[2]}}  {share:>8}".rstrip()
        for name, first, second, share in rows
    ]


def _texts(each: Difference) -> tuple[str, str]:
    """Formats both values of a field; if they are times, in the same unit."""
    numbers = [value for value in each.values if isinstance(value, int | float)]
    unit = time_unit(numbers) if "_ns" in each.name else None
    first, second = (_text(value, unit) for value in each.values)
    return first, second


def _text(value: Any, unit: Unit | None) -> str:
    if value is None:
        return "-"
    if isinstance(value, list):
        return f"{len(value)} values"
    if isinstance(value, bool | str):
        return str(value)
    if unit is not None:
        return f"{significant(value / unit.ns)} {unit.name}"
    return f"{value:,}" if isinstance(value, int) else significant(value)


def _ratio(each: Difference) -> str:
    """Returns the ratio of the second value to the first as text; empty if they are not numbers."""
    first, second = each.values
    numbers = all(isinstance(value, int | float) and not isinstance(value, bool) for value in each.values)
    return f"x {second / first:.3f}" if numbers and first else ""
