"""Locks a directory of results: one command at a time may use it, and always for the same study."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TextIO

from ftlab._core import UserError
from ftlab.outputs import folder_in, inside, no_links, refuse_link

OF_A_STUDY = (
    *("runs.parquet", "failures.parquet", "summary.csv", "index.html", "report.html"),
    *("figure.svg", "figure.png", "fleets.json", "fleets.csv", "worst.csv"),
    *("trials.journal", "trials.csv", "front.csv", "best.toml"),
)
"""The files that studies and searches leave besides the results of their runs."""


@contextmanager
def alone(out: Path, study: Path, *, fresh: bool = False) -> Iterator[None]:
    """Makes the directory and locks it during the block, so that no other command writes there.

    With ``fresh``, what another study left there is removed.

    Raises:
        UserError: the directory cannot be made, another command writes there, or it holds another study.
    """
    results = folder_in(out, "json")
    inside(out, "runs.parquet").check()
    refuse_link(out, ".lock")
    try:
        lock = open(out / ".lock", "a+", opener=no_links)  # noqa: SIM115
    except OSError as error:
        raise UserError(f"--out {out}: cannot write: {error.strerror}") from None
    with lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise UserError(f"--out {out}: another study is writing there") from None
        _take(out, study, lock, fresh=fresh)
        for path in results.glob(".*.tmp"):
            # This file was left by a command that was killed.
            path.unlink(missing_ok=True)
        yield


def _take(out: Path, study: Path, lock: TextIO, *, fresh: bool) -> None:
    """Claims the directory for a study, whose path, relative to the directory, is in the lock file."""
    name = os.path.relpath(study.resolve(), out.resolve()) + "\n"
    lock.seek(0)
    held = lock.read()
    # A lock file that a full disk has cut short names no study.
    if held.endswith("\n") and held != name:
        if not fresh:
            other = os.path.normpath(out / held.rstrip("\n"))
            raise UserError(
                f"--out {out}: holds the study {other}: name another directory, or empty this one"
                " (`sweep --fresh` does)"
            )
        for left in OF_A_STUDY:
            (out / left).unlink(missing_ok=True)
    if held != name:
        try:
            lock.truncate(0)
            lock.write(name)
            lock.flush()
        except OSError as error:
            raise UserError(f"--out {out}: cannot write: {error.strerror}") from None
