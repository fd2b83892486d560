"""Reports progress on standard error: a live display on a terminal, otherwise a line every 30 s."""

from __future__ import annotations

import math
import sys
import threading
import time
from collections.abc import Callable, Mapping
from types import TracebackType
from typing import TYPE_CHECKING, TextIO

from ftlab.outputs import wrapped

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

LINE_EVERY_S = 30.0
"""Time between two lines of progress if there is no terminal."""

LIVE_AFTER_S = 0.3
"""Time before the display appears: work that ends sooner needs no display."""

_LEAST_NAMES = 12

Callback = Callable[[int], "bool | None"]
"""A function called with the number of requests done so far; if it returns False, the run stops."""

Preconditioning = Callable[[int, int, "float | None"], "bool | None"]
"""A function called before time 0 with the pages written, the rounds done and the write amplification of the
last round.
"""


class Reporter:
    """Shows, as a context manager, the progress of one or more tasks that run in threads."""

    def __init__(
        self,
        tasks: int = 1,
        *,
        quiet: bool = False,
        stream: TextIO | None = None,
        every_s: float = LINE_EVERY_S,
        unit: str = "requests",
        runs: bool = False,
        whole: int = 0,
    ) -> None:
        """Makes the reporter for this number of ``tasks``. If ``quiet``, it shows nothing; ``stream`` is
        standard error by default.

        With ``runs`` the tasks are many and short, so the display shows how many are done per second. A
        single task may say how many of ``unit`` it has (``whole``), so that it gets a bar too.
        """
        self._whole = whole
        self._unit = unit
        self._runs = runs
        self._failures = 0
        self._stream = sys.stderr if stream is None else stream
        self._tasks = tasks
        self._every_s = every_s
        self._lock = threading.Lock()
        self._running: dict[str, int] = {}
        self._before: dict[str, str] = {}
        self._done = 0
        self._requests = 0
        self._start = self._last_line = time.monotonic()
        self._expected: dict[str, float] = {}
        self._behind = 0.0
        self._quiet = quiet
        self._live = _Live(whole or tasks, self._stream) if not quiet and self._stream.isatty() else None
        self.stopped = False

    def __enter__(self) -> Reporter:
        """Starts the display."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Removes the display."""
        if self._live:
            self._live.close()

    def expect(self, costs: Mapping[str, float]) -> None:
        """Sets the tasks and their expected costs, in any unit, from which the time left is estimated."""
        with self._lock:
            self._expected = dict(costs)
            self._tasks = len(costs)
            self._done = 0
            self._behind = 0.0
            self._start = time.monotonic()
            if self._live:
                self._live.expect(self._tasks)

    def callback(self, label: str) -> Callback:
        """Returns the callback that task ``label`` calls as it progresses."""

        def advance(requests: int) -> bool:
            with self._lock:
                self._before.pop(label, None)
                self._requests += requests - self._running.get(label, 0)
                self._running[label] = requests
                self._show()
            return not self.stopped

        return advance

    def preconditioning(self, label: str) -> Preconditioning:
        """Returns the callback that task ``label`` calls while its device is preconditioned."""

        def advance(pages: int, rounds: int, waf: float | None) -> bool:
            amplification = "" if waf is None else f", round {rounds}, write amplification {waf:.3f}"
            with self._lock:
                self._before[label] = f"{pages:,} pages written{amplification}"
                self._show()
            return not self.stopped

        return advance

    def finish(self, label: str) -> None:
        """Notes that task ``label`` is done."""
        with self._lock:
            self._running.pop(label, None)
            self._before.pop(label, None)
            self._done += 1
            self._behind += self._expected.get(label, 0.0)
            self._show()

    def failed(self, label: str) -> None:
        """Notes that task ``label`` has failed."""
        with self._lock:
            self._failures += 1
        self.finish(label)

    def note(self, text: str) -> None:
        """Prints a note, which is not an error, on a line of its own."""
        if not self._quiet:
            with self._lock:
                self._stream.write(wrapped(f"note: {text}\n", self._stream))
                self._stream.flush()

    def stop(self) -> None:
        """Stops all tasks when they next call their callbacks."""
        self.stopped = True

    def _show(self) -> None:
        now = time.monotonic()
        rate = self._requests / max(now - self._start, 1e-9)
        of = f" of {self._whole:,}" if self._whole and not self._live else ""
        counts = self._preconditioned() or f"{self._requests:,}{of} {self._unit}, {rate:,.0f} a second"
        if self._runs:
            counts = f"{self._done / max(now - self._start, 1e-9):,.1f} runs a second"
            counts += f", {self._failures:,} failed" if self._failures else ""
        left = self._left(now)
        if self._live:
            done = self._requests if self._whole else self._done
            names = [] if self._whole else [*self._before, *self._running]
            self._live.show(done, left, counts, names)
        elif not self._quiet and now - self._last_line >= self._every_s:
            self._last_line = now
            tasks = f"{self._done} of {self._tasks} done, " if self._tasks > 1 else ""
            self._stream.write(f"ftlab: {tasks}{counts}{', ' * bool(left)}{left}\n")
            self._stream.flush()

    def _left(self, now: float) -> str:
        """Estimates the time left; empty if there is no basis for it."""
        behind, whole = self._behind, math.fsum(self._expected.values())
        if not self._expected:
            # If the costs are unknown, every task counts as much as any other.
            behind, whole = (self._requests, self._whole) if self._whole else (self._done, self._tasks)
        if not behind or not whole:
            return ""
        ahead = max(whole - behind, 0.0)
        return f"about {_rough((now - self._start) * ahead / behind)} left"

    def _preconditioned(self) -> str:
        """Returns how far preconditioning is, as long as no request has been served; empty afterwards."""
        if not self._before or self._requests:
            return ""
        if self._tasks > 1:
            return f"{len(self._before)} preconditioning"
        return f"preconditioning: {next(iter(self._before.values()))}"


def _rough(seconds: float) -> str:
    """Formats a time as an estimate: 40 s, 3 min, 1 h 20 min."""
    if seconds < 90:
        return f"{round(seconds, -1 if seconds >= 10 else 0):.0f} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 90 else f"{minutes // 60} h {minutes % 60} min"


# Columns taken by the spinner and the time and, with several tasks, also by the bar and by the slash between
# the numbers of tasks; each of these includes the space after it.
_SINGLE = 10
_SEVERAL = _SINGLE + 21 + 2


def fitting(room: int, left: str, counts: str, names: str) -> str:
    """Returns what fits into ``room`` columns: all of the time left, then as many phrases of the counts as
    fit, then the names, shortened.
    """
    text = left
    for phrase in counts.split(", "):
        longer = f"{text}, {phrase}" if text else phrase
        if len(longer) > room:
            return text
        text = longer
    rest = room - len(text) - 2
    if not names or rest < min(len(names), _LEAST_NAMES):
        return text
    shown = names if len(names) <= rest else names[: rest - 1] + "\u2026"
    return f"{text}  {shown}"


class _Live:
    """The display on a terminal."""

    def __init__(self, tasks: int, stream: TextIO) -> None:
        self.tasks = tasks
        self._stream = stream
        self._progress: Progress | None = None
        self._task: TaskID | None = None
        self._start = time.monotonic()

    def expect(self, tasks: int) -> None:
        """Sets the number of tasks; a display without a bar that needs one now is made anew."""
        if (tasks > 1) != (self.tasks > 1):
            self.close()
        elif self._progress is not None and self._task is not None:
            self._progress.update(self._task, total=tasks)
        self.tasks = tasks

    def show(self, done: int, left: str, counts: str, running: list[str]) -> None:
        if self._progress is None and time.monotonic() - self._start < LIVE_AFTER_S:
            return
        if self._progress is None:
            self._progress, self._task = self._open()
        assert self._task is not None
        names = ", ".join(running) if self.tasks > 1 else ""
        room = self._progress.console.width - (
            _SINGLE if self.tasks == 1 else _SEVERAL + 2 * len(str(self.tasks))
        )
        text = fitting(room, left, counts, names)
        self._progress.update(self._task, completed=done, text=text)

    def _open(self) -> tuple[Progress, TaskID]:
        from rich.console import Console
        from rich.progress import (
            BarColumn,
            MofNCompleteColumn,
            Progress,
            SpinnerColumn,
            TextColumn,
            TimeElapsedColumn,
        )
        from rich.table import Column

        columns = [SpinnerColumn(), TimeElapsedColumn()]
        if self.tasks > 1:
            columns += [BarColumn(bar_width=20), MofNCompleteColumn()]
        text = TextColumn("{task.fields[text]}", markup=False, table_column=Column(no_wrap=True))
        progress = Progress(*columns, text, console=Console(file=self._stream), transient=True)
        progress.start()
        return progress, progress.add_task("", total=self.tasks, text="")

    def close(self) -> None:
        if self._progress is not None:
            self._progress.stop()
            self._progress = None
