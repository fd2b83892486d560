"""Traces: Parquet in and out, conversion, generation, frames.

All other layouts are read in Rust. A Parquet trace is read here in pieces that are handed over, so
that its length never sets the memory used.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ftlab import _core
from ftlab._core import Chunk, Config, UserError
from ftlab.configs import Override, Scalar, keyword_overrides, load_text, to_text
from ftlab.outputs import Output, check_distinct

if TYPE_CHECKING:
    import polars as pl

    from ftlab.result import Result

SUFFIXES = (".csv", ".parquet")
"""What `convert_trace` and `generate_trace` can write."""

CHUNK_ROWS = 1 << 18
"""Rows handed over at a time, and in a row group."""

_COLUMNS = ("ts_ns", "op", "offset", "size")
_OPS = ("R", "W", "T", "F")
# The generator's region must lie within a device; the largest there can be (about 8 TiB).
_LARGEST_DEVICE = (
    '[flash]\nblocks_per_plane = 16777216\npages_per_block = 127\n[ftl]\nover_provisioning = "0%"\n'
)


def is_parquet(path: str, layout: str = "auto") -> bool:
    """Whether the trace is to be read as Parquet: named so, or recognised by its first bytes."""
    if layout != "auto":
        return layout == "parquet"
    # A pipe must not lose its beginning to a look at it.
    if not Path(path).is_file():
        return False
    try:
        with Path(path).open("rb") as file:
            return file.read(4) == b"PAR1"
    except OSError:
        return False


def parquet_chunks(path: str, layout: str = "auto") -> Callable[[], Iterator[Chunk]] | None:
    """What reads the trace in pieces, anew at each call; None if it is not Parquet.

    Raises:
        UserError: the file is no Parquet trace.
    """
    if not is_parquet(path, layout):
        return None
    frame = _scan(path)
    return lambda: _read(path, frame)


def _scan(path: str) -> pl.LazyFrame:
    import polars as pl

    if not Path(path).exists():
        raise UserError(f"{path}: no such file")
    if not Path(path).is_file():
        raise UserError(f"{path}: not a regular file, so it cannot be read as Parquet")
    try:
        frame = pl.scan_parquet(path, glob=False, hive_partitioning=False)
        types = frame.collect_schema()
    except (pl.exceptions.PolarsError, OSError) as error:
        raise UserError(f"{path}: not a Parquet file: {_first_line(error)}") from None
    missing = [name for name in _COLUMNS if name not in types]
    if missing:
        raise UserError(
            f"{path}: no column {', '.join(missing)}; a Parquet trace has {', '.join(_COLUMNS)}\n"
            f"  it has: {', '.join(list(types)[:20]) or 'none'}\n"
            f"  write one with `ftlab trace convert IN OUT.parquet`"
        )
    wrong = [f"{name} ({types[name]})" for name in _COLUMNS if not types[name].is_integer()]
    if wrong:
        raise UserError(
            f"{path}: {', '.join(wrong)} must hold whole numbers:"
            " ts_ns in nanoseconds, op 0 R 1 W 2 T 3 F, offset and size in bytes"
        )
    return frame.select(_COLUMNS)


def _read(path: str, frame: pl.LazyFrame) -> Iterator[Chunk]:
    import polars as pl

    types = {"ts_ns": pl.UInt64, "op": pl.UInt8, "offset": pl.UInt64, "size": pl.UInt64}
    try:
        rows: int = frame.select(pl.len()).collect().item()
        for start in range(0, rows, CHUNK_ROWS):
            piece = frame.slice(start, CHUNK_ROWS).collect()
            _check_range(path, piece, start)
            piece = piece.cast(types).rechunk()  # type: ignore[arg-type]
            ts_ns, op, offset, size = (piece[name].to_numpy() for name in _COLUMNS)
            yield ts_ns, op, offset, size
    except (pl.exceptions.PolarsError, OSError) as error:
        raise UserError(f"{path}: cannot be read: {_first_line(error)}") from None


def _check_range(path: str, piece: pl.DataFrame, start: int) -> None:
    """Refuses what the columns' types cannot hold: nulls, negative numbers, ops beyond 3."""
    import polars as pl

    for name in _COLUMNS:
        least, most = 0, 3 if name == "op" else (1 << 63) - 1
        bad = piece[name].is_null() | ~piece[name].is_between(least, most)
        if bad.fill_null(True).any():
            row = int(bad.fill_null(True).arg_max() or 0)
            value = piece[name][row]
            shown = "empty" if value is None else value
            raise UserError(f"{path}: row {start + row + 1}: {name} is {shown}; it must be {least} to {most}")
    assert isinstance(piece, pl.DataFrame)


def _first_line(error: BaseException) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0]


def trace_config(path: str | os.PathLike[str], overrides: list[Override] | None = None) -> Config:
    """The configuration of a command that reads a trace and runs nothing."""
    name = os.fspath(path)
    return load_text("trace", "", [Override(name, "workload.trace", name), *(overrides or [])])


def _chunks_of(config: Config) -> Callable[[], Iterator[Chunk]] | None:
    return parquet_chunks(config.trace, config.format) if config.trace is not None else None


def trace_info(path: str | os.PathLike[str], **options: Scalar) -> dict[str, Any]:
    """What a trace holds: layout, requests, span, mix of operations, addresses, rates, drops.

    ``options`` are keywords as for `ftlab.run`: ``format``, ``dedup``, ``max_gap``, ``skip_bad``.

    Raises:
        UserError: the trace is at fault; the text says where.
    """
    return info(trace_config(path, keyword_overrides(options)))


def info(config: Config) -> dict[str, Any]:
    """As `trace_info`, of a configuration's trace."""
    loaded: dict[str, Any] = json.loads(_core.trace_info(config, chunks=_chunks_of(config)))
    return loaded


def head(config: Config, rows: int) -> list[tuple[int, str, int, int]]:
    """The first requests: time in ns, op (R, W, T, F), offset and size in bytes."""
    return _core.trace_head(config, rows, chunks=_chunks_of(config))


def read_trace(path: str | os.PathLike[str], **options: Scalar) -> pl.DataFrame:
    """A trace as a frame, all of it in memory: ts_ns, op (R, W, T, F), offset, size.

    ``options`` are keywords as for `ftlab.run`: ``format``, ``dedup``, ``max_gap``, ``skip_bad``.

    Raises:
        UserError: the trace is at fault; the text says where.
    """
    import polars as pl

    config = trace_config(path, keyword_overrides(options))
    frames = list(_frames(config, None))
    frame = pl.concat(frames) if frames else pl.DataFrame(schema=_schema())
    letters = pl.col("op").replace_strict(dict(enumerate(_OPS)), return_dtype=pl.Enum(_OPS))
    return frame.drop("flags").with_columns(letters)


def convert_trace(
    source: str | os.PathLike[str], target: str | os.PathLike[str], **options: Scalar
) -> dict[str, Any]:
    """Converts a trace to ftlab's own .csv or .parquet; what was read and dropped.

    ``options`` are keywords as for `ftlab.run`: ``format``, ``dedup``, ``max_gap``, ``skip_bad``.

    Raises:
        UserError: the trace is at fault, or the target cannot be written.
    """
    return convert(trace_config(source, keyword_overrides(options)), Output("target", target))


def generate_trace(target: str | os.PathLike[str], **options: Scalar) -> dict[str, Any]:
    """Writes a synthetic trace to .csv or .parquet; what was written.

    ``options`` are the keys of ``[workload.synthetic]`` and ``seed``:
    ``generate_trace("a.csv", requests=1000, pattern="zipf", region="1GiB")``.

    Raises:
        UserError: an option is wrong, or the target cannot be written.
    """
    return convert(generator_config(options), Output("target", target))


def generator_config(options: dict[str, Scalar], *, flags: bool = False) -> Config:
    """The configuration of a generator from the short names of its keys; ``flags``: given as such."""
    defaults: dict[str, Scalar] = {"requests": 10_000, "region": "1GiB"}
    overrides = []
    for name, value in {**defaults, **options}.items():
        key = name if name == "seed" else f"workload.synthetic.{name}"
        shown = f"--{name.replace('_', '-')} " if flags else f"argument {name}="
        overrides.append(Override(f"{shown}{to_text(value)}", key, to_text(value)))
    return load_text("generator", _LARGEST_DEVICE, overrides)


def convert(
    config: Config, output: Output, progress: Callable[[int], bool | None] | None = None
) -> dict[str, Any]:
    """Writes a configuration's workload to ``output``; what was read and dropped."""
    output.check(SUFFIXES)
    check_distinct([output], [config.trace] if config.trace else [])
    if output.suffix == ".csv":
        with output.staged() as path:
            text = _core.trace_convert_csv(config, path, chunks=_chunks_of(config), progress=progress)
        summary: dict[str, Any] = json.loads(text)
        return summary
    return _convert_parquet(config, output, progress)


def _convert_parquet(
    config: Config, output: Output, progress: Callable[[int], bool | None] | None
) -> dict[str, Any]:
    metadata = _provenance(config)
    stream = _core.trace_chunks(config, CHUNK_ROWS, chunks=_chunks_of(config), progress=progress)
    with output.staged() as path:
        write_parquet(_stream_frames(stream), _schema(), path, metadata)
    summary: dict[str, Any] = json.loads(stream.summary())
    return summary


def _provenance(config: Config) -> dict[str, str]:
    """Where the rows come from, for the file's metadata."""
    if config.trace is None:
        synthetic = json.loads(config.json())["workload"]["synthetic"]
        return {"source_format": "synthetic", "source": json.dumps(synthetic)}
    path = Path(config.trace)
    layout = _core.trace_format(config) if not is_parquet(config.trace, config.format) else "parquet"
    if not path.is_file():
        raise UserError(
            f"{path}: not a regular file; Parquet keeps the hash of its source, so it is read twice"
        )
    try:
        with path.open("rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise UserError(f"{path}: cannot read: {error.strerror}") from None
    return {"source_format": layout, "source_sha256": digest, "source": path.name}


def _schema() -> dict[str, Any]:
    import polars as pl

    return {"ts_ns": pl.UInt64, "op": pl.UInt8, "offset": pl.UInt64, "size": pl.UInt64, "flags": pl.UInt32}


def _frames(config: Config, progress: Callable[[int], bool | None] | None) -> Iterator[pl.DataFrame]:
    return _stream_frames(
        _core.trace_chunks(config, CHUNK_ROWS, chunks=_chunks_of(config), progress=progress)
    )


def _stream_frames(stream: _core.TraceChunks) -> Iterator[pl.DataFrame]:
    import numpy as np
    import polars as pl

    for columns in stream:
        arrays = dict(zip(_COLUMNS, (np.asarray(column) for column in columns), strict=True))
        # Room for what a layout may say beyond the other columns; nothing does yet.
        yield pl.DataFrame(arrays).with_columns(pl.lit(0, pl.UInt32).alias("flags"))


def write_parquet(
    frames: Iterator[pl.DataFrame], schema: dict[str, Any], path: Path, metadata: dict[str, str]
) -> None:
    """Writes frames as they come; an exception of theirs is raised as it is."""
    import polars as pl
    from polars.io.plugins import register_io_source

    raised: list[BaseException] = []

    def source(
        columns: list[str] | None, predicate: pl.Expr | None, rows: int | None, batch: int | None
    ) -> Iterator[pl.DataFrame]:
        try:
            for frame in frames:
                yield frame if columns is None else frame.select(columns)
        except BaseException as error:
            raised.append(error)
            raise

    try:
        lazy = register_io_source(source, schema=schema)
        lazy.sink_parquet(path, metadata=metadata, row_group_size=CHUNK_ROWS, maintain_order=True)
    except BaseException:
        if raised:
            raise raised[0] from None
        raise


def run_with_requests(
    config: Config,
    requests: Output | None,
    *,
    check: bool = False,
    progress: Callable[[int], bool | None] | None = None,
) -> Result:
    """Runs a configuration and writes its per-request file, .csv or .parquet.

    Raises:
        UserError: the configuration or the trace is at fault, or the file cannot be written.
    """
    from ftlab.api import run_config

    if requests is None:
        return run_config(config, check=check, progress=progress)
    with requests.staged() as path:
        if requests.suffix == ".csv":
            return run_config(config, requests_csv=path, check=check, progress=progress)
        rows = path.with_name(path.name + ".csv")
        try:
            result = run_config(config, requests_csv=rows, check=check, progress=progress)
            _requests_parquet(rows, path, config)
        finally:
            rows.unlink(missing_ok=True)
        return result
