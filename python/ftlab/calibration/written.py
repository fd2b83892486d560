"""A calibrated model as a configuration, as JSON and as text."""

from __future__ import annotations

import io
import json
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ftlab import _core
from ftlab._core import Config, UserError
from ftlab.calibration.fit import Fit, Pair
from ftlab.calibration.intervals import Interval
from ftlab.calibration.model import NAMES, figures_of
from ftlab.calibration.row import Row
from ftlab.configs import load_text
from ftlab.units import significant

SCHEMA = "ftlab-calibration-1"
"""Name and version of the layout of the JSON."""

SHORT = {"iops": "rate", "mean_us": "mean", "p50_us": "p50", "p99_us": "p99", "p999_us": "p99.9"}
"""What figures are called in tables."""


def percent(share: float | None) -> str:
    """Formats a logarithmic error, without sign, in per cent."""
    return "-" if share is None else f"{math.expm1(abs(share)):.1%}".replace("%", " %")


def signed(error: float | None) -> str:
    """Formats ln(model / measured) as the per cent by which the model is above what was measured."""
    return "-" if error is None else f"{math.expm1(error):+.1%}".replace("%", " %")


def of_key(fit: Fit, key: str) -> list[Interval]:
    """Returns the intervals of a key: one, or one for each page type."""
    return [each for each in fit.intervals if each.name.partition("[")[0] == key]


def remark(fit: Fit, key: str) -> str:
    """Returns what stands behind a fitted number."""
    rows = sum(not each.held for each in fit.pairs)
    words = ", ".join(each.said for each in of_key(fit, key))
    if key in fit.read_off:
        return f"# read off a log; {words}"
    return f"# fitted, {percent(fit.error(False))} on {rows} rows; {words}"


def toml(fit: Fit, config: Config, text: str, command: str) -> str:
    """Returns the base's own ``text`` with the fitted keys, every fitted number marked.

    ``config`` is the resolved model. If the text with these keys is another configuration, as some spellings
    of TOML lead to, the file states every key instead.
    """
    stated = _stated(config.toml())
    remarks = {key: f"{stated[key]}  {remark(fit, key)}" for key in fit.values}
    head = [
        f"# {fit.base}, calibrated",
        "# Remarks name the values between which the error is within 10 % of the best.",
    ]
    head += [f"# {command}"] if command else []
    lines = _replaced(text.splitlines(), remarks)
    try:
        same = load_text("model", "\n".join(lines), []).json() == config.json()
    except UserError:
        same = False
    if not same:
        lines = _replaced(config.toml().splitlines(), remarks)
    return "\n".join([*head, *lines]) + "\n"


def text_of(base: str) -> str:
    """Returns the text of a preset or a file that could be read before."""
    presets = {name: text for name, _, text in _core.presets()}
    return presets[base] if base in presets else Path(base).read_text(encoding="utf-8")


def _keys(lines: Sequence[str]) -> list[str]:
    """Returns the dotted key of each line that sets one, empty for other lines."""
    found, section = [], ""
    for line in lines:
        if line.startswith("["):
            section = line.partition("]")[0].strip("[ ") + "."
        name, equals, _ = line.partition("=")
        found.append(section + name.strip() if equals and not line.startswith(("#", "[")) else "")
    return found


def _stated(text: str) -> dict[str, str]:
    """Returns the line of each key of a configuration in ftlab's own layout."""
    lines = text.splitlines()
    return {key: line for key, line in zip(_keys(lines), lines, strict=True) if key}


def _replaced(lines: Sequence[str], values: Mapping[str, str]) -> list[str]:
    """Returns lines in which keys have new lines; a key that is missing joins its section."""
    names = _keys(lines)
    found = [values.get(name, line) for name, line in zip(names, lines, strict=True)]
    for key in (key for key in values if key not in names):
        section = f"[{key.rpartition('.')[0]}]"
        if section in found:
            found.insert(found.index(section) + 1, values[key])
        else:
            found += ["", section, values[key]]
    return found


def job(row: Row) -> dict[str, Any]:
    """Returns what identifies a row's job."""
    return {name: getattr(row, name) for name in ("drive", "op", "bs", "depth", "jobs", "engine", "state")}


def data(fit: Fit) -> dict[str, Any]:
    """Returns everything that was found, for JSON and for the page."""
    return {
        "schema": SCHEMA,
        "base": fit.base,
        "seed": fit.seed,
        "trials": fit.trials,
        "weights": dict(fit.weights),
        "error": fit.error(False),
        "error_held_out": fit.error(True),
        "error_before": fit.before,
        "values": dict(fit.values),
        "keys": [
            {
                "name": each.name,
                "best": each.best,
                "low": each.low,
                "high": each.high,
                "determined": each.determined,
            }
            for each in fit.intervals
        ],
        "rows": [_row(each) for each in fit.pairs],
        "passed_over": [{**job(row), "why": why} for row, why in fit.passed_over],
    }


def _row(pair: Pair) -> dict[str, Any]:
    measured = figures_of(pair.row)
    return {
        **job(pair.row),
        "found": pair.row.found,
        "source": pair.row.source,
        "held_out": pair.held,
        "measured": {name: getattr(measured, name) for name in NAMES},
        "model": {name: getattr(pair.model, name) for name in NAMES},
        "errors": pair.errors,
    }


def to_json(fit: Fit) -> str:
    """Returns the JSON of what was found."""
    return json.dumps(data(fit), indent=1) + "\n"


def render(fit: Fit, width: int = 100) -> str:
    """Returns the errors of all rows, and the fitted keys with their intervals, as text."""
    from rich import box
    from rich.console import Console
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0), show_edge=False)
    for name in ("op", "state", "bs", "depth", "jobs"):
        table.add_column(name, justify="left" if name in ("op", "state") else "right")
    for name in ("measured, us", "model, us", *(SHORT[name] for name in NAMES if name != "iops"), ""):
        table.add_column(name, justify="right")
    for each in fit.pairs:
        table.add_row(*_cells(each))
    console = Console(file=io.StringIO(), width=width, highlight=False)
    with console.capture() as captured:
        console.print(table)
    return captured.get() + "".join(f"{line}\n" for line in _said(fit))


def _cells(pair: Pair) -> list[str]:
    row, found = pair.row, pair.errors
    known = [significant(each) for each in (row.mean_us, pair.model.mean_us)]
    shown = [signed(found.get(name)) for name in NAMES if name != "iops"]
    return [
        row.op,
        row.found,
        str(row.bs),
        str(row.depth),
        str(row.jobs),
        *known,
        *shown,
        "held out" if pair.held else "",
    ]


def _rows(count: int) -> str:
    return f"{count} row" if count == 1 else f"{count} rows"


def _said(fit: Fit) -> list[str]:
    lines = [f"error: {percent(fit.error(False))} on {_rows(sum(not each.held for each in fit.pairs))}"]
    if fit.before is not None:
        lines[0] += f" (before: {percent(fit.before)})"
    held = fit.error(True)
    if held is not None:
        lines.append(f"held out: {percent(held)} on {_rows(sum(each.held for each in fit.pairs))}")
    lines += [f"{each.name} = {each.best}: {each.said}" for each in fit.intervals]
    return lines + _left_out(fit.passed_over)


def _left_out(passed_over: Sequence[tuple[Row, str]]) -> list[str]:
    counts: Mapping[str, int] = {why: sum(each == why for _, each in passed_over) for _, why in passed_over}
    return [f"left out, {count} rows: {why}" for why, count in counts.items()]


def over(fit: Fit, most: float) -> list[str]:
    """Returns a line for each row whose rate or mean latency is further off than ``most``, a share."""
    found = []
    for each in fit.pairs:
        for name in ("iops", "mean_us"):
            error = each.errors.get(name)
            if error is not None and abs(math.expm1(error)) > most:
                row = each.row
                found.append(
                    f"{row.op} {row.bs} B, depth {row.depth}, jobs {row.jobs}: {SHORT[name]} {signed(error)}"
                )
    return found
