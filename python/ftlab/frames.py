"""A data frame as a trace: polars, pandas, pyarrow, DuckDB, anything with Arrow's PyCapsule interface."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

from ftlab._core import UserError
from ftlab.traces import LATENCY

if TYPE_CHECKING:
    import polars as pl

    from ftlab._core import Columns, MakeChunks

NAME = "data frame"
"""The name that configurations use for the trace of a frame."""

_COLUMNS = ("ts_ns", "op", "offset", "size")
_TYPES = {"ts_ns": "Int64", "op": "UInt8", "offset": "Int64", "size": "Int64", "flags": "UInt8"}
_FURTHER = ("stream", LATENCY)
_LETTERS = {"R": 0, "W": 1, "T": 2, "F": 3}
_CHUNK_ROWS = 1 << 18


class ArrowStream(Protocol):
    """Anything that exports its columns through Arrow's PyCapsule interface."""

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """Returns the stream."""


Frame: TypeAlias = ArrowStream
"""A trace in memory: columns ts_ns, op (R, W, T, F, or 0 to 3), offset and size, as `read_trace` returns
them.

``time_ns`` may be used for ``ts_ns``. A column ``flags`` is optional (bit 0: FUA, bit 1: the device flushes
before the request), and so are ``stream`` (up to 65535) and ``latency_ns`` (from arrival to completion, -1:
not known), which dependent replay needs.
"""


def chunks(frame: Any) -> MakeChunks:
    """Returns a function that yields the rows in chunks; each call starts again with the first row.

    Raises:
        UserError: columns are missing, or do not hold numbers.
    """
    whole = _checked(_polars(frame))

    def rows() -> Iterator[Columns]:
        for start in range(0, len(whole), _CHUNK_ROWS):
            piece = whole.slice(start, _CHUNK_ROWS)
            columns = {name: piece[name].to_numpy() for name in piece.columns}
            if LATENCY in columns:
                # Without streams their column is empty.
                columns.setdefault("stream", piece[LATENCY][:0].to_numpy())
            yield tuple(columns[name] for name in (*_TYPES, *_FURTHER) if name in columns)

    return rows


def _polars(frame: Any) -> pl.DataFrame:
    import polars as pl

    if isinstance(frame, pl.DataFrame):
        return frame
    # pandas exports through pyarrow, which may not be installed; the columns of a pandas frame are arrays
    # anyway.
    if type(frame).__module__.partition(".")[0] == "pandas":
        return pl.DataFrame({str(name): frame[name].to_numpy() for name in frame.columns})
    if not hasattr(frame, "__arrow_c_stream__"):
        kind = type(frame).__name__
        raise UserError(f"trace: a file's name or a data frame is needed, not {kind} {str(frame)[:40]!r}")
    return pl.DataFrame(pl.Series(values=frame).struct.unnest())


def _checked(frame: pl.DataFrame) -> pl.DataFrame:
    import polars as pl

    if "time_ns" in frame.columns and "ts_ns" not in frame.columns:
        frame = frame.rename({"time_ns": "ts_ns"})
    missing = [name for name in _COLUMNS if name not in frame.columns]
    if missing:
        there = ", ".join(frame.columns) or "none"
        raise UserError(
            f"{NAME}: no column {', '.join(missing)}; a trace has {', '.join(_COLUMNS)}\n  it has: {there}"
        )
    if not frame["op"].dtype.is_numeric():
        letters = frame["op"].cast(pl.String)
        codes = letters.replace_strict(_LETTERS, default=None, return_dtype=pl.UInt8)
        if codes.null_count():
            row = codes.is_null().arg_max() or 0
            raise UserError(f"{NAME}: row {row + 1}: op is {letters[row]!r}; it is one of R, W, T and F")
        frame = frame.with_columns(codes.alias("op"))
    if "flags" not in frame.columns:
        frame = frame.with_columns(flags=pl.lit(0))
    types = {name: getattr(pl, kind) for name, kind in _TYPES.items()}
    types |= {name: pl.Int64 for name in _FURTHER if name in frame.columns}
    return pl.DataFrame([_whole(frame[name], kind) for name, kind in types.items()])


def _whole(values: pl.Series, kind: Any) -> pl.Series:
    """Converts the values to the type that the core expects; refuses values that this type cannot hold."""
    if not values.dtype.is_integer():
        raise UserError(f"{NAME}: {values.name} ({values.dtype}) must hold whole numbers")
    cast = values.cast(kind, strict=False)
    if cast.null_count():
        row = cast.is_null().arg_max() or 0
        shown = "empty" if values[row] is None else values[row]
        raise UserError(f"{NAME}: row {row + 1}: {values.name} is {shown}, which it cannot be")
    return cast
