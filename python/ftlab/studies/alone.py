"""One command at a time in a directory of results."""

from __future__ import annotations

import fcntl
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from ftlab._core import UserError
from ftlab.outputs import Output


@contextmanager
def alone(out: Path) -> Iterator[None]:
    """Makes the directory and holds it for the block: no other study writes there.

    Raises:
        UserError: it cannot be made, or another does.
    """
    try:
        (out / "json").mkdir(parents=True, exist_ok=True)
        Output("--out", out / "runs.parquet").check()
        lock = (out / ".lock").open("w")
    except OSError as error:
        raise UserError(f"--out {out}: cannot make the directory: {error.strerror}") from None
    with lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise UserError(f"--out {out}: another study is writing there") from None
        for path in (out / "json").glob(".*.tmp"):
            # Of one that was killed.
            path.unlink(missing_ok=True)
        yield
