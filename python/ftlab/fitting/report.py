"""Writes a fit as text, as the model's file and as JSON."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from ftlab._core import __version__
from ftlab.fitting.fit import Characteristic, Fit
from ftlab.units import change, count, percent, significant

_BARE = ("true", "false")


def lines(fit: Fit) -> list[str]:
    """Formats a line for each characteristic: target, reached, difference."""
    rows = [("", "target", "reached", "difference")]
    rows += [
        (each.name, _value(each, each.target), _value(each, each.reached), _difference(each))
        for each in fit.characteristics
    ]
    widths = [max(len(row[column]) for row in rows) for column in range(4)]
    shown = []
    for row, each in zip(rows, [None, *fit.characteristics], strict=True):
        text = f"{row[0]:{widths[0]}}  " + "  ".join(
            f"{cell:>{width}}" for cell, width in zip(row[1:], widths[1:], strict=True)
        )
        mark = "" if each is None or each.met else "  NOT reached" if each.fitted else "  not fitted"
        shown.append(text + mark)
    return shown


def text(fit: Fit, path: str) -> str:
    """Returns the report of a fit as text for people."""
    head = f"{fit.targets.name}: {path} ({count(fit.runs)} runs)"
    return "\n".join([head, *(f"    {line}" for line in lines(fit)), *_notes(fit, "    note: ")]) + "\n"


def as_json(fit: Fit, path: str) -> dict[str, Any]:
    """Returns a fit's figures as a dictionary for JSON."""
    return {
        "name": fit.targets.name,
        "source": fit.targets.source,
        "file": path,
        "runs": fit.runs,
        "characteristics": {
            each.name: {
                "target": each.target,
                "reached": each.reached,
                "difference": each.difference,
                "met": each.met,
                "fitted": each.fitted,
            }
            for each in fit.characteristics
        },
        "notes": fit.targets.notes,
        "synthetic": fit.keys,
        **({"end_to_end": [asdict(each) for each in fit.end_to_end]} if fit.end_to_end else {}),
    }


def toml(fit: Fit, preset: str | None, device: str | None) -> str:
    """Returns the model: a configuration file with a table ``[workload.synthetic]``."""
    source = " ".join(fit.targets.source.split())
    comments = [f"{fit.targets.name}: a generator fitted by `ftlab trace fit` (ftlab {__version__})", source]
    if device:
        comments.append(f"conflicts: {device}")
    comments += ["", *lines(fit), *_notes(fit, "note: ")]
    body = [f"# {line}".rstrip() for line in comments]
    if preset is not None:
        body += ["", f'preset = "{preset}"']
    body += ["", "[workload.synthetic]"]
    body += [f"{key} = {_literal(value)}" for key, value in fit.keys.items()]
    return "\n".join(body) + "\n"


def _notes(fit: Fit, prefix: str) -> list[str]:
    return [prefix + note for note in fit.targets.notes]


def _literal(value: str) -> str:
    number = value.replace(".", "", 1).isdigit()
    return value if value in _BARE or number else f'"{value}"'


def _value(each: Characteristic, value: float) -> str:
    if each.ratio:
        return percent(value)
    return count(int(value)) if value == int(value) else significant(value)


def _difference(each: Characteristic) -> str:
    return "0" if each.difference == 0 else change(each.difference)
