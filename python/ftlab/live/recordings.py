"""Traces that a live device records."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

from ftlab._core import UserError
from ftlab.live.told import TOLD_LINE, told_metadata
from ftlab.outputs import Output, system_errors
from ftlab.traces import CHUNK_ROWS, LATENCY, OPERATION_LETTERS, SUFFIXES, interruptibly


def check_recording(output: Output | None, rotate: int | None = None) -> None:
    """Checks that a live device's trace can be written to ``output``, with ``rotate`` to numbered files.

    Raises:
        UserError: the file cannot be written, or cannot be of this kind.
    """
    if output is None:
        if rotate is not None:
            raise UserError("--rotate: nothing is recorded; add --record FILE, or leave it out")
        return
    output.check(SUFFIXES)
    if output.suffix == ".parquet" and output.special:
        raise output.fail("is not a regular file, and Parquet is made at the end; name a .csv")
    if output.suffix == ".parquet" and rotate is not None:
        raise output.fail("numbered files are csv (--rotate); name a .csv, or leave --rotate out")


@contextmanager
def reader_of(
    output: Output | None, tell: Callable[[str], object] = lambda _: None
) -> Iterator[Callable[[], None]]:
    """Waits before the block until somebody reads ``output``, if that is a named pipe; ``tell`` is told so.

    The device opens the pipe itself, and nothing can interrupt it there. So that a reader that has left again
    does not keep it waiting, the pipe is also held open for reading, until the block calls what it is given.

    Raises:
        UserError: the pipe cannot be opened.
    """
    with ExitStack() as held:
        own = held.enter_context(ExitStack())
        if output is not None and Path(output.name).is_fifo():
            try:
                held.callback(os.close, _opened_pipe(output.name, tell))
                # Some may write to it and not read it.
                with suppress(PermissionError):
                    own.callback(os.close, os.open(output.name, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC))
            except OSError as error:
                raise output.fail(f"cannot write: {error.strerror}") from None
        yield own.close


def _opened_pipe(name: str, tell: Callable[[str], object]) -> int:
    """Opens a named pipe for writing, once somebody reads it; returns the descriptor."""
    flags = os.O_WRONLY | os.O_CLOEXEC
    try:
        return os.open(name, flags | os.O_NONBLOCK)
    except OSError as error:
        if error.errno != errno.ENXIO:
            raise
    tell(f"waiting until somebody reads {name}")
    return os.open(name, flags)


def finish_recording(output: Output | None, device: str) -> None:
    """Turns a live device's trace into Parquet, if it is to be that.

    While the device runs its rows are csv, also under a name in .parquet: so a killed device leaves a trace.

    Raises:
        UserError: the Parquet file cannot be written; the rows stay.
    """
    if output is None or output.suffix != ".parquet" or not output.path.exists():
        return
    try:
        with output.staged() as path:
            _recording_parquet(output.path, path, {"source_format": "live", "source": device})
    except UserError as error:
        raise UserError(f"{error}\n  the recording stays as csv under that name; --trace reads it") from None


def _recording_parquet(rows: Path, target: Path, metadata: dict[str, str]) -> None:
    """Writes a recording's csv as Parquet, as `trace convert` does, with the columns `outstanding` and
    `latency_ns` (-1: not known), and with `stream` if clients could choose a stream.
    """
    import polars as pl

    numbers = dict.fromkeys(("offset", "size"), pl.UInt64)
    with rows.open(encoding="ascii") as lines:
        further = lines.readline().strip().split(",")[4:]
        metadata = {**metadata, **told_metadata(lines)}
    counts = {name: pl.Int64 if name == LATENCY else pl.UInt32 for name in further}
    types: dict[str, Any] = {"time_ns": pl.UInt64, "op": pl.String, **numbers, **counts}
    codes = {
        **{letter: code for code, letter in enumerate(OPERATION_LETTERS)},
        "WF": OPERATION_LETTERS.index("W"),
    }
    op = pl.col("op")
    frame = pl.scan_csv(rows, schema=types, glob=False, comment_prefix=TOLD_LINE).select(
        pl.col("time_ns").alias("ts_ns"),
        op.replace_strict(codes, return_dtype=pl.UInt8),
        *numbers,
        (op == "WF").cast(pl.UInt32).alias("flags"),
        *(pl.col(name).fill_null(-1) if name == LATENCY else name for name in further),
    )
    with system_errors(target):
        interruptibly(lambda: frame.sink_parquet(target, metadata=metadata, row_group_size=CHUNK_ROWS))
