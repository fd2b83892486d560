"""Rows of a job of which fio wrote a log: one for each state that the drive was in."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path

from ftlab.calibration.logs import Level, Log, read_log
from ftlab.calibration.row import FULL, STEADY, Before, Row, Tell

OPTION = "write_bw_log"
"""The option of fio that names the log."""

MOST_BUFFER = 256 << 20
"""The most that a write buffer holds, in bytes: what is written fast beyond it goes into an SLC cache."""

AGREES = 2.0
"""The greatest ratio of the mean rates of a log and of its job: a log of another job, or of latencies,
differs more.
"""


def logged(row: Row, options: Mapping[str, str], tell: Tell) -> list[Row]:
    """Returns the rows that a job's log tells in the place of its own; the row itself if there is no log.

    A log of sequential writes falls from one level to the next as the write buffer and the SLC cache fill up;
    one of random writes ends when garbage collection is steady.

    Raises:
        UserError: the log is not fio's.
    """
    name = options.get(OPTION, "")
    if not name or row.op not in ("write", "randwrite"):
        return [row]
    folder, stem = Path(row.file).parent, Path(name).name
    files = sorted(each for each in folder.glob("*.log") if _is_of(each.name, stem))
    if len(files) != 1:
        found = f"{len(files)} files are" if files else "no file is"
        tell(f"{row.place}: {found} {folder / stem}_bw.1.log: the mean of the whole job is taken")
        return [row]
    log = read_log(files[0])
    mean, whole = log.written / log.times_s[-1], row.iops * row.bs
    if not 1 / AGREES <= mean / whole <= AGREES:
        tell(
            f"{log.file}: {mean / 1e6:,.0f} MB/s in the mean, and {whole / 1e6:,.0f} in {row.place}: not the"
            " log of this job's bandwidth; the mean of the whole job is taken"
        )
        return [row]
    return list(_filled(row, log, tell) if row.op == "write" else _steady(row, log, tell))


def _is_of(name: str, stem: str) -> bool:
    number = name.removeprefix(f"{stem}_bw.").removesuffix("log").removesuffix(".")
    return name.startswith(f"{stem}_bw.") and (not number or number.isdecimal())


def _filled(row: Row, log: Log, tell: Tell) -> Iterator[Row]:
    levels = log.levels()
    buffered = None
    if len(levels) > 1 and levels[0].written <= MOST_BUFFER:
        buffered, *levels = levels
    first = _at(row, levels[0].rate, log)
    yield replace(first, before=_before(buffered, log)) if buffered else first
    if len(levels) > 1:
        yield replace(_at(row, levels[1].rate, log), state=FULL, before=_before(levels[0], log))
    if len(levels) > 2:
        tell(f"{log.file}: the level after that of the full SLC cache tells no key; it is left out")


def _steady(row: Row, log: Log, tell: Tell) -> Iterator[Row]:
    # In which state it began depends on the jobs before it.
    last = log.last()
    if last is None:
        tell(f"{log.file}: not steady at its end, so it does not tell the over-provisioning; write longer")
        return
    yield replace(_at(row, last, log), state=STEADY)


def _before(level: Level, log: Log) -> Before:
    return Before(level.written, level.rate, level.rate * log.window_s, log.written)


def _at(row: Row, rate: float, log: Log) -> Row:
    """Returns the row at a rate in bytes a second; its latency by Little's law, as the loop is closed."""
    iops = rate / row.bs
    mean_us = row.depth * row.jobs / iops * 1e6
    return replace(
        row, iops=iops, mean_us=mean_us, p50_us=None, p99_us=None, p999_us=None, source=log.file, line=None
    )
