"""Rows of a job of which fio wrote a log: one for each state that the drive was in."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from ftlab.calibration.logs import FALL, Level, Log, UnusableError, read_logs
from ftlab.calibration.row import FULL, STEADY, Before, Row, Tell

OPTION = "write_bw_log"
"""The option of fio that names the log."""

WINDOWS = ("log_avg_msec", "bwavgtime")
"""The options that say how long a window is, in ms; the shorter one counts."""

MOST_BUFFER = 256 << 20
"""The most that a write buffer holds, in bytes: what is written fast beyond it goes into an SLC cache."""

AGREES = 2.0
"""The greatest ratio of the mean rates of a log and of its job: a log of another job, or of latencies,
differs more.
"""


def logged(row: Row, options: Mapping[str, str], tell: Tell) -> list[Row]:
    """Returns the rows that a job's log tells in the place of its own; the row itself if there is no log, or
    none that tells.

    A log of sequential writes falls from one level to the next as the write buffer and the SLC cache fill up;
    one of random writes that is level at its end may be steady, which `settled` judges. The logs of several
    workers are added up.

    Raises:
        UserError: the log is not fio's.
    """
    name = options.get(OPTION, "")
    if not name or row.op not in ("write", "randwrite"):
        return [row]
    folder, stem = Path(row.file).parent, Path(name).name
    files = sorted(each for each in folder.glob("*.log") if _is_of(each.name, stem))
    if len(files) not in {1, row.jobs}:
        found = f"{len(files)} files are" if files else "no file is"
        tell(f"{row.place}: {found} {folder / stem}_bw.1.log: the mean of the whole job is taken")
        return [row]
    try:
        log = read_logs(files, _window_s(options))
    except UnusableError as reason:
        tell(f"{files[0]}: {reason}; the mean of the whole job is taken")
        return [row]
    mean, whole = log.written / log.elapsed_s, row.iops * row.bs
    if not 1 / AGREES <= mean / whole <= AGREES:
        tell(
            f"{log.file}: {mean / 1e6:,.0f} MB/s in the mean, and {whole / 1e6:,.0f} in {row.place}: not the"
            " log of this job's bandwidth; the mean of the whole job is taken"
        )
        return [row]
    return list(_filled(row, log, tell) if row.op == "write" else _steady(row, log, tell))


def _window_s(options: Mapping[str, str]) -> float | None:
    stated = [int(text) for name in WINDOWS if (text := options.get(name, "")).isdecimal() and len(text) < 10]
    return min(stated) / 1e3 if any(stated) else None


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
    last = log.last()
    if last is None:
        tell(f"{log.file}: not steady at its end, so it does not tell the over-provisioning; write longer")
        return
    first = log.levels()[0]
    before = _before(first, log) if first.rate >= FALL * last else None
    yield replace(_at(row, last, log), state=STEADY, before=before, written=log.written)


def settled(rows: Sequence[Row], tell: Tell) -> list[Row]:
    """Returns rows of which those that a level log calls steady are so.

    Until a drive collects garbage its rate is level too, and again when its SLC cache is full. It is steady
    once as much was written at random as a job in order wrote, which is the whole drive if that was a fill;
    without one the rate has to have fallen.
    """
    sizes: dict[str, float] = {}
    for row in rows:
        if row.op == "write":
            sizes[row.drive] = max(row.written, sizes.get(row.drive, 0.0))
    return [_settled(row, sizes.get(row.drive, 0.0), tell) if row.state == STEADY else row for row in rows]


def _settled(row: Row, size: float, tell: Tell) -> Row:
    said = f"{row.source}: level at its end, {row.written / 1e9:,.1f} GB written"
    said += f" of the {size / 1e9:,.1f} GB of {row.drive}" if size else "; no fill tells what the drive holds"
    if row.written >= size if size else row.before is not None:
        if not size:
            tell(f"{said}: taken for steady, as its rate fell before")
        return row
    tell(f"{said}: not taken for steady but for an empty drive; write more than it holds, or add its fill")
    return replace(row, state="", before=None)


def _before(level: Level, log: Log) -> Before:
    return Before(level.written, level.rate, level.rate * log.window_s, log.written)


def _at(row: Row, rate: float, log: Log) -> Row:
    """Returns the row at a rate in bytes a second; its latency by Little's law, as the loop is closed."""
    iops = rate / row.bs
    mean_us = row.depth * row.jobs / iops * 1e6
    return replace(
        row, iops=iops, mean_us=mean_us, p50_us=None, p99_us=None, p999_us=None, source=log.file, line=None
    )
