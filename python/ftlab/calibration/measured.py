"""What was measured on a drive: the rows of a table, one for each job."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from ftlab._core import UserError


@dataclass(frozen=True)
class Row:
    """The figures of one job on a drive; times are in microseconds, None where nothing was kept."""

    drive: str
    op: str
    bs: int
    depth: int
    jobs: int
    engine: str
    iops: float | None
    mean_us: float | None
    p50_us: float | None
    p99_us: float | None
    p999_us: float | None
    source: str
    line: int


def read(paths: Sequence[Path]) -> list[Row]:
    """Reads the rows of tables.

    Raises:
        UserError: a file cannot be read, or a line of it is wrong.
    """
    rows: list[Row] = []
    for path in paths:
        try:
            with path.open(encoding="utf-8", newline="") as file:
                for line, cells in enumerate(csv.DictReader(file), 2):
                    rows.append(_row(cells, line))
        except (OSError, UnicodeDecodeError, KeyError, ValueError) as error:
            raise UserError(f"--measured {path}: {error}") from None
    return rows


def _row(cells: dict[str, str], line: int) -> Row:
    def figure(name: str) -> float | None:
        return float(cells[name]) if cells.get(name) else None

    return Row(
        drive=cells["drive"],
        op=cells["op"],
        bs=int(cells["bs"]),
        depth=int(cells["depth"]),
        jobs=int(cells["jobs"]),
        engine=cells["engine"],
        iops=figure("iops"),
        mean_us=figure("mean_us"),
        p50_us=figure("p50_us"),
        p99_us=figure("p99_us"),
        p999_us=figure("p999_us"),
        source=cells.get("source", ""),
        line=line,
    )
