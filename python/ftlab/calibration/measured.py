"""Reads what was measured on drives: tidy tables, and fio's JSON.

A table is CSV with the columns of `COLUMNS`. fio's JSON is that of ``--output-format=json`` or ``json+``, of
fio 2.3 and later (earlier ones do not write the options of a job). Either may be compressed by gzip.
"""

from __future__ import annotations

import gzip
import os
import zlib
from collections.abc import Sequence
from pathlib import Path

from ftlab import outputs
from ftlab._core import UserError
from ftlab.calibration.logged import settled
from ftlab.calibration.measured_fio import read_fio
from ftlab.calibration.measured_table import COLUMNS, read_table
from ftlab.calibration.row import OPERATIONS, PERCENTILES, Row, Tell

__all__ = ["COLUMNS", "OPERATIONS", "PERCENTILES", "Row", "read"]

MOST_BYTES = 256 << 20
"""The largest file that is read; a run of fio in json+ takes less than a megabyte."""

_TABLE = ".csv"
_SUFFIXES = (_TABLE, ".json")
_GZIP = ".gz"
_GZIP_BEGINS = b"\x1f\x8b"


def read(paths: Sequence[Path], tell: Tell | None = None) -> list[Row]:
    """Returns the measured rows of these files, in their order.

    A directory stands for the ``.csv`` and ``.json`` files in it and below it, compressed ones
    (``.json.gz``) too, in order of their names. What cannot be a row but is not a fault (a job that failed,
    one that mixes reads and writes) is left out, as is a compressed file whose plain one is in the directory;
    ``tell`` gets a note of it (default: it is printed on standard error).

    Raises:
        UserError: a file cannot be read, or figures cannot be true; the text names file, line and column.
    """
    tell = tell or (lambda note: outputs.tell(f"note: {note}"))
    rows: list[Row] = []
    for path in paths:
        for file in _files(path, tell):
            text = _text(file)
            reader = read_table if _suffix(file) == _TABLE else read_fio
            rows += reader(str(file), text, tell)
    if not rows:
        names = ", ".join(str(path) for path in paths) or "no file"
        raise UserError(f"{names}: no measured row is left; measure with the jobs of `ftlab probe`")
    return settled(rows, tell)


def _files(path: Path, tell: Tell) -> list[Path]:
    if not path.is_dir():
        return [path]

    def refuse(error: OSError) -> None:
        raise UserError(f"{error.filename}: cannot read the directory: {error.strerror}")

    found = [
        Path(folder, name)
        for folder, _, names in os.walk(path, onerror=refuse)
        for name in names
        if _suffix(Path(name)) in _SUFFIXES
    ]
    if not found:
        raise UserError(f"{path}: no .csv or .json file in it; name the directory of fio's output, or files")
    plain = set(found)
    twice = {file for file in found if file.suffix.lower() == _GZIP and file.with_suffix("") in plain}
    for file in sorted(twice):
        tell(f"{file}: left out, as {file.stem} is there too")
    return sorted(plain - twice)


def _suffix(file: Path) -> str:
    """Returns the suffix of a file's name, in small letters; of a compressed one that of what is in it."""
    return Path(file.name.lower().removesuffix(_GZIP)).suffix


def _text(file: Path) -> str:
    try:
        with file.open("rb") as opened:
            packed = opened.peek(len(_GZIP_BEGINS)).startswith(_GZIP_BEGINS)
            data = (gzip.GzipFile(fileobj=opened) if packed else opened).read(MOST_BYTES + 1)
    except (EOFError, gzip.BadGzipFile, zlib.error):
        raise UserError(f"{file}: the gzip file is damaged or cut short; copy it again") from None
    except OSError as error:
        raise UserError(f"{file}: cannot read: {error.strerror}") from None
    except ValueError:
        raise UserError(f"{str(file)!r}: not the name of a file") from None
    if len(data) > MOST_BYTES:
        raise UserError(f"{file}: larger than {MOST_BYTES >> 20} MiB; name fio's output, not its logs")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise UserError(f"{file}:{line}: not UTF-8; save the file as UTF-8 text") from None
