"""Signals that ask a command to stop, for commands that must clean up before they end."""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from ftlab.outputs import discard_unfinished


class Asked(threading.Event):
    """An event that is set by the first signal, or at the end of the work."""

    number = 0
    """Number of the first signal; 0 if there was none."""


@contextmanager
def asked_to_stop(numbers: Iterable[int], survived: Iterable[int] = ()) -> Iterator[Asked]:
    """Yields the event that the first of the signals ``numbers`` sets; a second signal ends the process.
    Signals in ``survived`` do nothing.
    """
    asked = Asked()

    def stop(number: int, _frame: Any) -> None:
        if asked.number:
            discard_unfinished()
            os._exit(128 + number)
        asked.number = number
        asked.set()

    before = {number: signal.signal(number, stop) for number in numbers}
    before |= {number: signal.signal(number, signal.SIG_IGN) for number in survived}
    try:
        yield asked
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        sys.stderr.flush()
