"""Reads the logs that fio writes of a job, a value per window: at which rates a drive wrote, one after
another, and how much at each.

Source: axboe/fio HOWTO, "Log File Formats": time in ms, value (KiB/s in a `_bw` log), direction (0 is a read,
1 a write), block size, offset and priority, a line at the end of each window of `log_avg_msec`; and stat.c
(__add_samples, add_log_sample) of 3.33: a window without requests has no line, and is not in the rate of the
line after it. Without `log_avg_msec`, fio's default, a line is a request and its value the rate of that
request alone.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import numpy as np

from ftlab._core import UserError

MOST_LEVELS = 3
"""Levels of a log at most: the write buffer, the SLC cache, what is behind both."""
FALL = 1.25
"""The least ratio of the rates before and after a step; drives vary by less from one second to the next."""
EXPLAINED = 0.5
"""The least share of the variance that a step explains; less is the unrest of a level."""
LEAST_WINDOWS = 2
"""Windows of a level at least."""
LAST = 0.25
"""The share of a log, its end, that counts as steady."""
STEADY = 0.05
"""By how much the two halves of that end differ at most."""
MOST_BYTES = 256 << 20
"""The largest log that is read; a day of windows of a second takes 3 MB."""

_FIELDS = 4
_UNIT = 1024
_WRITE = 1


@dataclass(frozen=True)
class Level:
    """Windows that follow one another, in which the rate was about the same."""

    rate: float
    """Bytes a second, the mean."""
    written: float
    """Bytes that were written in them."""


class UnusableError(Exception):
    """Why a log that is fio's does not tell at which rates a job wrote."""


@dataclass(frozen=True)
class Log:
    """The writes of a job, window by window."""

    file: str
    window_s: float
    """How long a window is, in seconds."""
    times_s: tuple[float, ...]
    """The end of each window with writes, in seconds since the job began, or since 1970."""
    rates: tuple[float, ...]
    """Bytes a second in each of them."""

    @property
    def written(self) -> float:
        """Returns how many bytes were written in all."""
        return sum(self.rates) * self.window_s

    @property
    def elapsed_s(self) -> float:
        """Returns how long it took, windows without writes among others included."""
        return self.times_s[-1] - self.times_s[0] + self.window_s

    def levels(self) -> list[Level]:
        """Returns the levels, each lower than the one before it."""
        cuts = [0, *_cuts(np.array(self.rates), MOST_LEVELS), len(self.rates)]
        parts = [self.rates[begin:end] for begin, end in pairwise(cuts)]
        return [Level(sum(part) / len(part), sum(part) * self.window_s) for part in parts]

    def last(self) -> float | None:
        """Returns the rate at the end, in bytes a second; None if it was not steady yet."""
        end = self.rates[-max(math.ceil(len(self.rates) * LAST), 1) :]
        halves = [end[: len(end) // 2], end[len(end) // 2 :]]
        if not halves[0]:
            return None
        first, second = (sum(half) / len(half) for half in halves)
        mean = sum(end) / len(end)
        return mean if mean > 0 and abs(first - second) <= STEADY * mean else None


def _cuts(rates: np.ndarray[tuple[int], np.dtype[np.float64]], most: int) -> list[int]:
    """Returns where the rate falls: the cuts that leave the least squares, the deepest first, in order."""
    found: list[int] = []
    while len(found) < most - 1:
        ends = [0, *found, len(rates)]
        made = [_cut(rates, begin, end) for begin, end in pairwise(ends)]
        best = max((each for each in made if each is not None), default=None)
        if best is None:
            break
        found = sorted([*found, best[1]])
    return found


def _cut(
    rates: np.ndarray[tuple[int], np.dtype[np.float64]], begin: int, end: int
) -> tuple[float, int] | None:
    """Returns by how much a cut lowers the sum of squares, and the cut; None if the rate does not fall."""
    part = rates[begin:end]
    count = np.arange(LEAST_WINDOWS, len(part) - LEAST_WINDOWS + 1)
    if not len(count):
        return None
    sums = np.cumsum(part)
    before, after = sums[count - 1] / count, (sums[-1] - sums[count - 1]) / (len(part) - count)
    gains = count * (len(part) - count) / len(part) * (before - after) ** 2
    gains[(before < FALL * after) | (gains < EXPLAINED * len(part) * part.var())] = -1.0
    best = int(np.argmax(gains))
    return (float(gains[best]), begin + int(count[best])) if gains[best] > 0 else None


def read_log(path: Path, window_s: float | None = None) -> Log:
    """Reads the writes of a `_bw` log; ``window_s`` is the length of a window, if it is known (default: the
    median time between lines).

    Raises:
        UserError: it cannot be read, or a line is not fio's; the text names file and line.
        UnusableError: its lines are not windows of one job.
    """
    try:
        with path.open("rb") as opened:
            data = opened.read(MOST_BYTES + 1)
    except OSError as error:
        raise UserError(f"{path}: cannot read: {error.strerror}") from None
    if len(data) > MOST_BYTES:
        raise UnusableError(f"larger than {MOST_BYTES >> 20} MiB; log averages, with log_avg_msec=1000")
    times: list[float] = []
    rates: list[float] = []
    for number, line in enumerate(data.decode("utf-8", "replace").splitlines(), 1):
        if not line.strip():
            continue
        time_ms, value, direction = _fields(line, f"{path}:{number}")
        if direction != _WRITE:
            continue
        if time_ms / 1e3 <= (times[-1] if times else 0.0):
            raise UnusableError(
                f"the time does not go on in line {number}: a line is a request, or several jobs share the"
                " log; measure with log_avg_msec=1000 and per_job_logs=1"
            )
        times.append(time_ms / 1e3)
        rates.append(value * _UNIT)
    if not any(rates):
        raise UnusableError("holds no write")
    gaps = np.diff(np.array(times if len(times) > 1 else [0.0, *times]))
    return Log(str(path), window_s or float(np.median(gaps)), tuple(times), tuple(rates))


def read_logs(paths: Sequence[Path], window_s: float | None = None) -> Log:
    """Reads the logs of a job's workers, of which fio writes one each, and adds them up.

    Raises:
        UserError: a log cannot be read, or a line is not fio's; the text names file and line.
        UnusableError: the lines of a log are not windows of one worker, or the logs' windows differ.
    """
    first, *others = (read_log(path, window_s) for path in paths)
    if not others:
        return first
    window, origin = first.window_s, min(first.times_s[0], *(log.times_s[0] for log in others))
    rates: Counter[int] = Counter()
    for log in (first, *others):
        if abs(log.window_s - window) > window / 4:
            raise UnusableError(f"has windows of {window:g} s, and {log.file} of {log.window_s:g}")
        for time_s, rate in zip(log.times_s, log.rates, strict=True):
            # Lines of one window are some milliseconds apart.
            rates[round((time_s - origin) / window)] += round(rate)
    ends = sorted(rates)
    times = tuple(origin + end * window for end in ends)
    return Log(first.file, window, times, tuple(float(rates[end]) for end in ends))


def _fields(line: str, where: str) -> tuple[float, float, int]:
    parts: Sequence[str] = [part.strip() for part in line.split(",")]
    numbers = [
        int(part) for part in parts[:_FIELDS] if part.isascii() and part.isdecimal() and len(part) < 16
    ]
    if len(parts) < _FIELDS or len(numbers) < _FIELDS:
        raise UserError(f"{where}: not a line of fio's log: time in ms, KiB/s, direction, block size")
    return numbers[0], numbers[1], numbers[2]
