"""Reads measured rows from CSV."""

from __future__ import annotations

import csv
import io
import math
import re
from collections.abc import Mapping

from ftlab._core import UserError
from ftlab.calibration.row import (
    LEAST_BLOCK,
    MOST_BLOCK,
    MOST_DEPTH,
    OPERATIONS,
    PERCENTILES,
    Row,
    Tell,
    fault,
    shown,
)

REQUIRED = ("drive", "op", "bs", "depth", "jobs", "iops", "mean_us")
"""Columns that a table must have, in any order. Fields of mean_us may be empty, as in a data sheet."""

COLUMNS = (*REQUIRED[:5], "engine", *REQUIRED[5:], *PERCENTILES, "source")
"""All columns of a table: bs in bytes, iops per second, times in us. Those that are not `REQUIRED` can be
missing.
"""

_NUMBER = re.compile(r"[0-9]+\.?[0-9]*([eE][-+]?[0-9]+)?")
_MISSING = {"", "-", "na", "nan", "none", "null"}
_MOST_LISTED = 20
# Little's law does not tell rate and latency apart; a request of flash keeps a drive less busy than this.
_SLOW_US = 2_000
# A nanosecond: the finest time that a model tells.
_LEAST_US = 0.001


def read_table(file: str, text: str, tell: Tell) -> list[Row]:
    """Returns the rows of a table; ``file`` names it in messages.

    Raises:
        UserError: a column is missing, or a figure is not a number or cannot be true.
    """
    reader = csv.reader(io.StringIO(text, newline=""), strict=True)
    names: list[str] = []
    rows: list[Row] = []
    by_rate = 0
    line = 1
    try:
        for fields in reader:
            # A quoted field can hold line ends; the row is said to be where it ends.
            line = reader.line_num
            if not any(field.strip() for field in fields):
                continue
            if not names:
                names = _header(f"{file}:{line}", fields, tell)
                continue
            if len(fields) != len(names):
                raise UserError(
                    f"{file}:{line}: {len(fields)} fields, but the first line names {len(names)}; put text"
                    " with a comma in it into double quotes"
                )
            values = dict(zip(names, (field.strip() for field in fields), strict=True))
            row = _row(file, line, values, tell)
            if row:
                rows.append(row)
                by_rate += _missing(values["mean_us"])
    except csv.Error as error:
        raise UserError(f"{file}:{max(reader.line_num, line)}: not CSV: {error}") from None
    if not names:
        raise UserError(f"{file}:1: empty; the first line names the columns: {','.join(COLUMNS)}")
    if by_rate:
        tell(f"{file}: rows without mean_us: {by_rate}; it is taken as depth x jobs / iops (Little's law)")
    return rows


def _header(place: str, fields: list[str], tell: Tell) -> list[str]:
    names = [field.strip() for field in fields]
    if len(names) == 1 and re.search("[;\t]", names[0]):
        raise UserError(f"{place}: columns are separated by commas; save the table as comma-separated CSV")
    missing = [name for name in REQUIRED if name not in names]
    unknown = [name for name in names if name not in COLUMNS]
    if missing:
        found = ", ".join(shown(name) for name in unknown[:_MOST_LISTED])
        instead = f"; in their place there are {found}" if found else ""
        raise UserError(
            f"{place}: no column {', '.join(missing)}{instead}; a table has the columns {','.join(COLUMNS)}"
            " (bs in bytes, times in microseconds)"
        )
    twice = [name for name in COLUMNS if names.count(name) > 1]
    if twice:
        raise UserError(f"{place}: two columns are named {twice[0]}; remove one")
    if unknown:
        listed = ", ".join(shown(name) for name in unknown[:_MOST_LISTED])
        tell(f"{place}: skipped columns that nothing here reads: {listed}; there are {','.join(COLUMNS)}")
    return names


def _row(file: str, line: int, values: Mapping[str, str], tell: Tell) -> Row | None:
    place = f"{file}:{line}"
    op = values["op"]
    if op not in OPERATIONS:
        raise UserError(f"{place}: op: {shown(op)} is not one of {', '.join(OPERATIONS)}")
    bs = _whole(place, "bs", values["bs"], 1, MOST_BLOCK)
    if bs < LEAST_BLOCK:
        raise UserError(f"{place}: bs: {bs} is less than a sector; write bytes, such as 4096")
    depth, jobs = (_whole(place, name, values[name], 1, MOST_DEPTH) for name in ("depth", "jobs"))
    iops = _number(place, "iops", values["iops"])
    if not iops:
        tell(f"{place}: iops is 0, nothing completed: left out")
        return None
    told = values["mean_us"]
    mean = depth * jobs / iops * 1e6 if _missing(told) else _number(place, "mean_us", told)
    p50, p99, p999 = (_percentile(place, name, values.get(name, "")) for name in PERCENTILES)
    source = values.get("source") or file
    engine = values.get("engine", "")
    row = Row(
        *(values["drive"], op, bs, depth, jobs, engine, iops, mean),
        *(p50, p99, p999, source, line, file),
    )
    wrong = fault(row) if mean else "mean_us is 0, but requests completed"
    if not wrong and mean < _LEAST_US:
        wrong = f"iops: too large: the mean latency of {mean:g} us is less than a nanosecond"
    if wrong:
        raise UserError(f"{place}: {wrong}")
    if iops < mean and mean > _SLOW_US * depth * jobs:
        tell(
            f"{place}: {iops:g} requests a second of {mean:g} us each are slow for flash: are iops and"
            " mean_us swapped?"
        )
    return row


def _missing(text: str) -> bool:
    return text.lower() in _MISSING


def _number(place: str, name: str, text: str) -> float:
    number = float(text) if _NUMBER.fullmatch(text) else math.nan
    if not math.isfinite(number):
        raise UserError(f"{place}: {name}: {shown(text)} is not a number; write for example 68.29")
    return number


def _whole(place: str, name: str, text: str, least: int, most: int) -> int:
    # Frames of data write whole numbers as 4096.0 where a column has gaps.
    number = _number(place, name, text)
    if not number.is_integer() or not least <= number <= most:
        raise UserError(f"{place}: {name}: {shown(text)} is not a whole number from {least} to {most}")
    return int(number)


def _percentile(place: str, name: str, text: str) -> float | None:
    if _missing(text):
        return None
    number = _number(place, name, text)
    if not number:
        raise UserError(f"{place}: {name}: 0 is not a latency; leave the field empty if there is none")
    return number
