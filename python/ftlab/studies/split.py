"""Splits a trace of many volumes into one file per volume, in one pass and with bounded memory."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ftlab import _core
from ftlab._core import Config, UserError
from ftlab.outputs import folder_in, inside, no_links
from ftlab.progress import Callback
from ftlab.traces import CHUNK_ROWS, parquet_schema

if TYPE_CHECKING:
    import polars as pl

STRIDE_BITS = 46
"""log2 of the address range that readers give each volume, in the order of the volumes' first requests."""

MOST_ROWS = 8 << 20
"""The number of rows held in memory, for all volumes together, before those of the fullest are written."""

_ROW = np.dtype(
    [("ts_ns", "<u8"), ("offset", "<u8"), ("size", "<u8"), ("op", "u1"), ("flags", "u1"), ("stream", "<u2")]
)


def split(config: Config, out: Path, progress: Callback | None = None) -> dict[str, Any]:
    """Writes ``volume-NNNNN.parquet`` for each volume, and ``index.csv``; returns the totals.

    Rows are collected in memory by volume. When all volumes together have `MOST_ROWS`, the fullest go to
    their spill files, of which one at a time is open. At the end each spill file becomes Parquet.

    Raises:
        UserError: the trace is at fault, or a file cannot be written.
    """
    spill = folder_in(out, "spill")
    try:
        for old in spill.iterdir():
            old.unlink()
        chunks = _core.trace_chunks(config, CHUNK_ROWS)
        volumes = _gather(chunks, spill, progress)
        schema = parquet_schema(chunks.has_streams)
        index = [_written(out, spill, volume, schema) for volume in sorted(volumes)]
        spill.rmdir()
    except OSError as error:
        raise UserError(f"--out {out}: cannot write: {error.strerror}") from None
    lines = ["volume,file,requests,reads,writes,first_ns,last_ns,max_end"]
    lines += [",".join(map(str, row)) for row in index]
    inside(out, "index.csv").write(("\n".join(lines) + "\n").encode())
    return {"volumes": len(index), "requests": sum(row[2] for row in index)}


def _gather(chunks: _core.TraceChunks, spill: Path, progress: Callback | None) -> set[int]:
    """Writes all rows to spill files, one for each volume; returns the numbers of the volumes."""
    held: dict[int, list[np.ndarray[Any, Any]]] = {}
    volumes: set[int] = set()
    rows = done = 0
    for chunk in chunks:
        table, of = _rows(chunk)
        order = np.argsort(of, kind="stable")
        numbers, starts = np.unique(of[order], return_index=True)
        for number, part in zip(numbers.tolist(), np.split(table[order], starts[1:]), strict=True):
            held.setdefault(number, []).append(part)
        volumes.update(held)
        rows += len(table)
        done += len(table)
        if progress is not None and progress(done) is False:
            raise KeyboardInterrupt
        if rows >= MOST_ROWS:
            # Spills half of the rows, from the fullest volumes first, so that every file that is opened gets
            # many rows.
            for number in sorted(held, key=lambda number: -sum(map(len, held[number]))):
                if rows <= MOST_ROWS // 2:
                    break
                rows -= _append(spill, number, held.pop(number))
    for number, parts in held.items():
        _append(spill, number, parts)
    return volumes


def _rows(chunk: Any) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """Returns the requests of a chunk, with addresses relative to their volumes, and the volume of each."""
    times, ops, offsets, sizes, flags, streams = (np.asarray(column) for column in chunk)
    table = np.empty(len(times), dtype=_ROW)
    table["ts_ns"], table["op"], table["size"], table["flags"] = times, ops, sizes, flags
    table["stream"] = streams
    table["offset"] = offsets & np.uint64((1 << STRIDE_BITS) - 1)
    return table, (offsets >> np.uint64(STRIDE_BITS)).astype(np.int64)


def _append(spill: Path, number: int, parts: list[np.ndarray[Any, Any]]) -> int:
    with open(spill / str(number), "ab", opener=no_links) as file:
        for part in parts:
            file.write(part.tobytes())
    return sum(map(len, parts))


def _written(out: Path, spill: Path, number: int, schema: dict[str, Any]) -> list[Any]:
    """Converts a volume's spill file to Parquet, piece by piece; returns its line of the index."""
    import polars as pl

    from ftlab.traces import write_parquet

    name = f"volume-{number:05}.parquet"
    path = spill / str(number)
    found = {"requests": 0, "reads": 0, "writes": 0, "first": 0, "last": 0, "end": 0}

    def frames() -> Iterator[pl.DataFrame]:
        with path.open("rb") as file:
            while data := file.read(CHUNK_ROWS * _ROW.itemsize):
                rows = np.frombuffer(data, dtype=_ROW)
                found["first"] = found["first"] if found["requests"] else int(rows["ts_ns"][0])
                found["requests"] += len(rows)
                found["reads"] += int((rows["op"] == 0).sum())
                found["writes"] += int((rows["op"] == 1).sum())
                found["last"] = int(rows["ts_ns"][-1])
                found["end"] = max(found["end"], int((rows["offset"] + rows["size"]).max()))
                yield pl.DataFrame({field: rows[field].copy() for field in schema}, schema_overrides=schema)

    with inside(out, name).staged() as unfinished:
        metadata = {"source_format": "split", "volume": str(number)}
        write_parquet(frames(), schema, unfinished, metadata)
    with suppress(OSError):
        path.unlink()
    return [number, name, *found.values()]
