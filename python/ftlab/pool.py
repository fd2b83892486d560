"""Parallel work on all cores, ended by the first failure or an interrupt."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import FIRST_EXCEPTION, Future, ThreadPoolExecutor, wait
from typing import TypeVar

Given = TypeVar("Given")
Made = TypeVar("Made")


def cores() -> int:
    """Returns the number of cores that this process may use."""
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:  # not on macOS
        return os.cpu_count() or 1


def run_all(
    work: Callable[[Given], Made], given: Iterable[Given], *, jobs: int | None, stop: Callable[[], None]
) -> list[Made]:
    """Returns the result of ``work`` for each item of ``given``, in order; ``jobs`` of them run at a time
    (default: one per core).

    ``stop`` is called at the end; after a failure or an interrupt it has to stop what is still running.

    Raises:
        Exception: the error of the first item (in order) that failed by itself.
    """
    pool = ThreadPoolExecutor(max_workers=jobs or cores(), thread_name_prefix="ftlab")
    try:
        futures = [pool.submit(work, each) for each in given]
        _wait(futures)
    finally:
        stop()
        pool.shutdown(wait=True, cancel_futures=True)
    _raise_first(futures)
    return [future.result() for future in futures]


def _wait(futures: Sequence[Future[Made]]) -> None:
    # The wait is divided into short turns, so that the main thread notices an interrupt.
    pending = set(futures)
    while pending:
        done, pending = wait(pending, timeout=0.1, return_when=FIRST_EXCEPTION)
        if any(future.exception() is not None for future in done):
            return


def _raise_first(futures: Sequence[Future[Made]]) -> None:
    """Raises the first genuine error, not that of a run which was stopped because of another run's error."""
    errors = [future.exception() for future in futures if not future.cancelled()]
    own = [error for error in errors if error is not None and not isinstance(error, KeyboardInterrupt)]
    for error in own or [error for error in errors if error is not None]:
        raise error
