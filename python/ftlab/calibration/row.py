"""One measured run of fio, and whether its figures can be true."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import TypeAlias

Tell: TypeAlias = Callable[[str], object]
"""Takes a note for the user."""

OPERATIONS = ("read", "randread", "write", "randwrite", "append", "trim", "randtrim")
"""What a row's ``op`` can be: fio's ``rw`` with one direction, and the append of zoned drives."""

PERCENTILES = {"p50_us": 50.0, "p99_us": 99.0, "p999_us": 99.9}
"""The percentile, in percent, of each column that holds one."""

LEAST_BLOCK, MOST_BLOCK = 512, 1 << 30
"""Limits of a row's ``bs``, in bytes: a sector, and far above what a drive takes at once."""

MOST_DEPTH = 1 << 16
"""The largest number of outstanding requests, and of jobs."""

LEAST_BUSY, MOST_BUSY = 0.75, 1.1
"""Limits of iops x mean latency over depth x jobs.

In a closed loop the ratio is 1, less what the host takes between a completion and the next request: 0.96
at least in all rows of `examples/drives`.
"""

_CUT = 60
_NEAR = 0.1
# Of a mean the share that its largest percentile cannot be below, unless units are mixed up.
_LEAST_TAIL = 0.01
# fio's histograms round up by 1/64 at most; the mean has another part, the time to submit.
_ROUNDING = 1.05


FULL = "cache full"
"""The state of a drive whose SLC cache is full."""
STEADY = "steady"
"""The state of a drive that was written at random until garbage collection was steady."""


@dataclass(frozen=True)
class Before:
    """What a log shows of the level before a row's."""

    written: float
    """Bytes that were written at it."""
    rate: float
    """Its rate in bytes a second."""
    window: float
    """Bytes that were written at it in a window of the log: so exactly is ``written`` known."""
    whole: float
    """Bytes that the whole job wrote."""


@dataclass(frozen=True)
class Row:
    """What fio measured in one run of a job: a closed loop of ``depth`` x ``jobs`` outstanding requests."""

    drive: str
    """Name of the drive."""
    op: str
    """One of `OPERATIONS`."""
    bs: int
    """Bytes of each request."""
    depth: int
    """Requests that each job keeps outstanding (fio's iodepth; 1 for engines that wait for each request)."""
    jobs: int
    """Jobs that ran at the same time (numjobs)."""
    engine: str
    """fio's ioengine; empty if it is not known."""
    iops: float
    """Completed requests per second, of all jobs together."""
    mean_us: float
    """Mean latency in us, from submission to completion (fio's ``lat``)."""
    p50_us: float | None
    """Median completion latency in us (fio's ``clat``); None if fio kept none."""
    p99_us: float | None
    """The 99th percentile in us, likewise."""
    p999_us: float | None
    """The 99.9th percentile in us, likewise."""
    source: str
    """Where the figures come from: what the table says, or the file of fio."""
    line: int | None
    """Line of the file that was read, from 1."""
    file: str = ""
    """The file that was read."""
    state: str = ""
    """`FULL` or `STEADY`; empty: full of data for reads, and empty for writes."""
    before: Before | None = None
    """The level of a log before this one; None if there was none, or no log."""
    written: float = 0.0
    """Bytes that the job wrote; 0 if that is not known."""

    @property
    def found(self) -> str:
        """Returns the state in which the job found the drive, for people."""
        return self.state or ("full" if self.op in ("read", "randread") else "empty")

    @property
    def place(self) -> str:
        """Returns the file and the line, for messages."""
        return ":".join(str(part) for part in (self.file or self.source, self.line) if part)


def printable(value: object) -> str:
    """Returns a value as text without control characters: no name in a file is to steer a terminal."""
    return "".join(each if each.isprintable() else ascii(each)[1:-1] for each in str(value))


def shown(value: object) -> str:
    """Returns a value as a message quotes it, cut short."""
    text = printable(value)
    return f'"{text[:_CUT]}..."' if len(text) > _CUT else f'"{text}"'


def fault(row: Row) -> str | None:
    """Returns what cannot be true of a row's figures, with the names of the columns; None if all can be."""
    return loop_fault(row) or tail_fault(row)


def tail_fault(row: Row) -> str | None:
    """Returns which of a row's percentiles cannot be true; None if all can be."""
    known = [(name, value) for name in PERCENTILES if (value := getattr(row, name)) is not None]
    for (low, less), (high, more) in pairwise(known):
        if less > more:
            return f"{low} ({less:g}) is above {high} ({more:g}): are the columns swapped?"
    for name, value in known:
        # Markov: no more than one request in N can take N times the mean.
        most = 100 / (100 - PERCENTILES[name])
        if value > most * row.mean_us * _ROUNDING:
            return (
                f"{name} ({value:g}) cannot be above {most:g} times mean_us ({row.mean_us:g}): all times are"
                " in microseconds; are the columns swapped?"
            )
    if known and known[-1][1] < row.mean_us * _LEAST_TAIL:
        name, value = known[-1]
        return (
            f"{name} ({value:g}) is far below mean_us ({row.mean_us:g}): all times are in microseconds; are"
            " the columns swapped?"
        )
    return None


def loop_fault(row: Row) -> str | None:
    """Returns what is wrong by Little's law: iops x mean latency is the mean number of outstanding requests,
    which a closed loop keeps.
    """
    found, expected = row.iops * row.mean_us / 1e6, row.depth * row.jobs
    if LEAST_BUSY <= found / expected <= MOST_BUSY:
        return None
    guesses = {
        1e3: "is mean_us in nanoseconds?",
        1e-3: "is mean_us in milliseconds, or iops in thousands?",
        1e-6: "is mean_us in seconds?",
        1 / row.jobs: "is iops that of one job? It is the sum of all jobs",
        1 / row.depth: "did the engine keep one request outstanding? Then depth is 1",
    }
    guess = next((text for factor, text in guesses.items() if _near(found / expected, factor)), None)
    return (
        f"iops ({row.iops:g}) x mean_us ({row.mean_us:g}) makes {found:.4g} outstanding requests, but depth x"
        f" jobs is {expected}: {guess or 'check all four; nothing else limits the rate of a closed loop'}"
    )


def _near(ratio: float, factor: float) -> bool:
    return ratio > 0 and factor != 1 and abs(math.log(ratio / factor)) < _NEAR
