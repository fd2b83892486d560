"""Reads, converts and generates traces, and reports their figures; Parquet is written here, in pieces."""

from __future__ import annotations

import hashlib
import json
import os
import signal
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ftlab import _core
from ftlab._core import Config, OutputError, UserError
from ftlab.configs import GENERATOR_DEFAULTS, Override, Scalar, keyword_overrides, load_text, to_text
from ftlab.live.told import told_doubts
from ftlab.outputs import Output, beside, check_distinct, system_errors

if TYPE_CHECKING:
    import polars as pl

    from ftlab._core import Progress
    from ftlab.results.result import Result
    from ftlab.running import RunOptions

SUFFIXES = (".csv", ".parquet")
"""The extensions of files that `convert_trace` and `generate_trace` can write."""

LATENCY = "latency_ns"
"""The column of the time from a request's arrival to its completion."""

CHUNK_ROWS = 1 << 18
"""The number of rows that are read at a time, and that a row group of Parquet has."""

OPERATION_LETTERS = ("R", "W", "T", "F")
# The generator's region must fit on its device, so this is the largest possible device (about 8 TiB).
_LARGEST_DEVICE = (
    '[flash]\nblocks_per_plane = 16777216\npages_per_block = 127\n[ftl]\nover_provisioning = "1%"\n'
)


# A trace that is not replayed need not have times, and a closed replay needs none.
_ANY_TRACE = '[workload]\nreplay = "closed"\n'


def trace_config(path: str | os.PathLike[str], overrides: list[Override] | None = None) -> Config:
    """Returns the configuration for a command that only reads a trace, without a simulation."""
    name = os.fspath(path)
    return load_text("trace", _ANY_TRACE, [Override(name, "workload.trace", name), *(overrides or [])])


def is_recording(config: Config) -> bool:
    """Returns whether the trace of a configuration is the recording of a live device, which is replayed
    dependent unless the user says otherwise.
    """
    if config.trace is None:
        return False
    given = [
        Override(config.trace, "workload.trace", config.trace),
        Override(config.trace, "workload.format", config.format),
    ]
    workload = json.loads(load_text("trace", "", given).json())["workload"]
    return bool(workload["replay"] == "dependent")


def trace_info(path: str | os.PathLike[str], **options: Scalar) -> dict[str, Any]:
    """Returns what a trace holds: layout, requests, span, mix of operations, addresses, rates, dropped lines.

    ``options`` are keywords as for `ftlab.run`: ``format``, ``dedup``, ``max_gap``, ``skip_bad``.

    Raises:
        UserError: the trace is at fault; the text says where.
    """
    return info(trace_config(path, keyword_overrides(options)))


def trace_files(trace: str) -> list[str]:
    """Returns the files of a trace: several if a ``*`` in its name stands for their numbers, or if it is a
    folder of Parquet files.

    Raises:
        UserError: no file has such a name, or one is missing between others.
    """
    return [str(path) for path in _core.trace_files(trace)]


def can_be_read_again(trace: str) -> bool:
    """Returns whether all files of a trace are regular ones."""
    return all(Path(file).is_file() for file in trace_files(trace))


def digest_of(trace: str) -> str:
    """Returns the SHA-256 of a trace's bytes, those of all its files.

    Raises:
        UserError: a file cannot be read.
    """
    digest = hashlib.sha256()
    for path in trace_files(trace):
        try:
            with Path(path).open("rb") as file:
                hashlib.file_digest(file, lambda: digest)
        except OSError as error:
            raise UserError(f"{path}: {error.strerror}") from None
    return digest.hexdigest()


def info(config: Config) -> dict[str, Any]:
    """Returns what the trace of a configuration holds, like `trace_info`."""
    loaded: dict[str, Any] = json.loads(_core.trace_info(config))
    return loaded


def doubts(
    configs: Iterable[tuple[str, Config]], progress: Progress | None = None, *, go_on: bool = False
) -> dict[str, list[str]]:
    """Returns, by trace, reasons to doubt the configurations' traces, with remedies; reads each trace once.

    Errors name the labels of the configurations. A trace that is not a regular file cannot be read in advance
    and is left out. With ``go_on`` a faulty trace only counts as doubtful, since some of many runs may fail.

    Raises:
        UserError: a trace is at fault; whatever would stop its run also stops this check.
    """
    found: dict[str, list[str]] = {}
    seen = set()
    for label, config in configs:
        if config.trace is None or not can_be_read_again(config.trace):
            continue
        # Which addresses exist depends on the device.
        read = json.dumps([json.loads(config.json())["workload"], config.addresses])
        if read not in seen:
            seen.add(read)
            try:
                checked = _core.trace_check(config, progress=progress)
            except UserError as error:
                named = f"{error}\n  in the variant {label}" if label else str(error)
                if not go_on:
                    raise UserError(named) from None
                checked = [f"a run of it will fail: {named}"]
            checked += told_doubts(config.trace)
            found[config.trace] = list(dict.fromkeys([*found.get(config.trace, ()), *checked]))
    return found


def head(config: Config, rows: int) -> list[tuple[Any, ...]]:
    """Returns the first requests, each as its time in ns, op (R, W, WF, T, F), offset and size in bytes, and
    its stream if the trace has streams.
    """
    requests, streams = _core.trace_head(config, rows)
    return [row if streams else row[:4] for row in requests]


def read_trace(path: str | os.PathLike[str], **options: Scalar) -> pl.DataFrame:
    """Reads a whole trace into a frame with the columns ts_ns, op (R, W, T, F), offset and size, and stream
    if the trace has streams.

    ``options`` are keywords as for `ftlab.run`: ``format``, ``dedup``, ``max_gap``, ``skip_bad``.

    Raises:
        UserError: the trace is at fault; the text says where.
    """
    import polars as pl

    config = trace_config(path, keyword_overrides(options))
    stream = _core.trace_chunks(config, CHUNK_ROWS)
    frames = list(_stream_frames(stream))
    frame = pl.concat(frames) if frames else pl.DataFrame(schema=parquet_schema(stream.has_streams))
    letters = pl.col("op").replace_strict(
        dict(enumerate(OPERATION_LETTERS)), return_dtype=pl.Enum(OPERATION_LETTERS)
    )
    return frame.drop("flags").with_columns(letters)


def convert_trace(
    source: str | os.PathLike[str], target: str | os.PathLike[str], **options: Scalar
) -> dict[str, Any]:
    """Converts a trace to ftlab's own .csv or .parquet; returns what was read and dropped.

    ``options`` are keywords as for `ftlab.run`: ``format``, ``dedup``, ``max_gap``, ``skip_bad``.

    Raises:
        UserError: the trace is at fault, or the target cannot be written.
    """
    return convert(trace_config(source, keyword_overrides(options)), Output("", target))


def generate_trace(target: str | os.PathLike[str], **options: Scalar) -> dict[str, Any]:
    """Writes a synthetic trace to .csv or .parquet; returns what was written.

    ``options`` are the keys of ``[workload.synthetic]`` and ``seed``:
    ``generate_trace("a.csv", requests=1000, pattern="zipf", region="1GiB")``.

    Raises:
        UserError: an option is wrong, or the target cannot be written.
    """
    return convert(generator_config(options), Output("", target))


def generator_config(options: Mapping[str, Scalar], *, flags: bool = False) -> Config:
    """Makes the configuration of a generator from the short names of its keys.

    ``flags`` says whether messages name the keys as flags of the command line or as arguments of a function.
    """
    overrides = []
    for name, value in {**GENERATOR_DEFAULTS, **options}.items():
        key = name if name == "seed" else f"workload.synthetic.{name}"
        shown = f"--{name.replace('_', '-')} " if flags else f"argument {name}="
        overrides.append(Override(f"{shown}{to_text(value)}", key, to_text(value)))
    return load_text("generator", _LARGEST_DEVICE, overrides)


def convert(config: Config, output: Output, progress: Progress | None = None) -> dict[str, Any]:
    """Writes a configuration's workload to ``output``; returns what was read and dropped."""
    output.check(SUFFIXES)
    check_distinct([output], [config.trace] if config.trace else [])
    if output.suffix != ".parquet":
        text = _core.trace_convert_csv(config, output.name, progress=progress)
        summary: dict[str, Any] = json.loads(text)
        return summary
    return _convert_parquet(config, output, progress)


def _convert_parquet(config: Config, output: Output, progress: Progress | None) -> dict[str, Any]:
    metadata = _provenance(config)
    stream = _core.trace_chunks(config, CHUNK_ROWS, completions=True, progress=progress)
    schema = parquet_schema(stream.has_streams, stream.has_completions)
    with output.staged() as path, system_errors(path):
        write_parquet(_stream_frames(stream), schema, path, metadata)
    summary: dict[str, Any] = json.loads(stream.summary())
    return summary


def _provenance(config: Config) -> dict[str, str]:
    """Returns the metadata that say where the rows of a file come from."""
    if config.trace is None:
        synthetic = json.loads(config.json())["workload"]["synthetic"]
        return {"source_format": "synthetic", "source": json.dumps(synthetic)}
    path = Path(config.trace)
    if path.exists() and not can_be_read_again(config.trace):
        raise UserError(
            f"{path}: not a regular file; Parquet keeps the hash of its source, so it is read twice"
        )
    digest = digest_of(config.trace)
    layout: str = info(config)["format"] if config.format == "auto" else config.format
    return {"source_format": layout, "source_sha256": digest, "source": path.name}


def parquet_schema(streams: bool, completions: bool = False) -> dict[str, Any]:
    """Returns the columns of a trace in Parquet and their types; ``streams`` adds that of streams, and
    ``completions`` that of latencies (-1: not known).
    """
    import polars as pl

    schema = {"ts_ns": pl.UInt64, "op": pl.UInt8, "offset": pl.UInt64, "size": pl.UInt64, "flags": pl.UInt32}
    schema |= {"stream": pl.UInt32} if streams else {}
    return schema | ({LATENCY: pl.Int64} if completions else {})


def _stream_frames(stream: _core.TraceChunks) -> Iterator[pl.DataFrame]:
    import numpy as np
    import polars as pl

    schema = parquet_schema(stream.has_streams, stream.has_completions)
    names = [*parquet_schema(streams=True), LATENCY]
    for columns in stream:
        found = {name: np.asarray(column) for name, column in zip(names, columns, strict=False)}
        if LATENCY in found:
            # What is not known has all bits set, which is -1 once it is signed.
            found[LATENCY] = found[LATENCY].view(np.int64)
        yield pl.DataFrame({name: found[name] for name in schema})


def write_parquet(
    frames: Iterator[pl.DataFrame], schema: dict[str, Any], path: Path, metadata: dict[str, str]
) -> None:
    """Writes the frames one by one as they come; exceptions raised by the iterator are passed on."""
    from polars.io.plugins import register_io_source

    raised: list[BaseException] = []
    stopped = threading.Event()

    def source(
        columns: list[str] | None, predicate: pl.Expr | None, rows: int | None, batch: int | None
    ) -> Iterator[pl.DataFrame]:
        try:
            for frame in frames:
                if stopped.is_set():
                    return
                yield frame if columns is None else frame.select(columns)
        except BaseException as error:
            raised.append(error)
            raise

    def write() -> None:
        lazy = register_io_source(source, schema=schema)
        lazy.sink_parquet(path, metadata=metadata, row_group_size=CHUNK_ROWS, maintain_order=True)

    try:
        interruptibly(write)
    except BaseException:
        if raised:
            raise raised[0] from None
        raise
    finally:
        stopped.set()


def interruptibly(work: Callable[[], None]) -> None:
    """Does ``work`` in another thread: signals are handled in the main thread, which must not be inside
    polars.
    """
    _take_back_interrupts()
    pool = ThreadPoolExecutor(max_workers=1, thread_name_prefix="ftlab")
    try:
        pool.submit(work).result()
    finally:
        pool.shutdown(wait=False)


def _take_back_interrupts() -> None:
    """Restores the process's own signal handler, which polars replaces.

    Polars' handler makes its threads panic, and report that, before the process's own handler has ended the
    process.
    """
    own = signal.getsignal(signal.SIGINT)
    if own is not signal.default_int_handler and threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGINT, own)


def run_with_outputs(config: Config, requests: Output | None, options: RunOptions) -> Result:
    """Runs a configuration and writes its per-request file, .csv or .parquet, and its timeline.

    Raises:
        UserError: the configuration or the trace is at fault, or a file cannot be written.
    """
    from ftlab.running import run_config

    def run(requests_csv: str | Path | None) -> Result:
        return run_config(config, replace(options, requests_csv=requests_csv))

    try:
        if requests is None or requests.suffix != ".parquet":
            return run(requests.name if requests else None)
        with requests.staged() as path, beside(requests.path, ".csv") as rows:
            result = run(rows)
            _requests_parquet(rows, path)
        return result
    except OutputError as error:
        number, text, which = error.args
        output = Output("--timeline", options.timeline or "") if which == "timeline" else requests
        assert output is not None, "only files that were asked for are written"
        raise output.fail(f"cannot write: {os.strerror(number)}" if number else text) from None


def _requests_parquet(rows: Path, target: Path) -> None:
    """Writes the per-request csv as Parquet."""
    import polars as pl

    from ftlab.results.result import FLAGS, OPS, REQUEST_COLUMNS

    with rows.open(encoding="ascii") as lines:
        columns = lines.readline().strip().split(",")
    types: dict[str, Any] = dict.fromkeys(REQUEST_COLUMNS, pl.UInt64)
    types |= {"op": pl.String, "mapping_misses": pl.UInt32, **dict.fromkeys(FLAGS, pl.UInt8)}
    types |= dict.fromkeys(columns[len(types) :], pl.UInt32)
    frame = pl.scan_csv(rows, schema=types, glob=False)
    frame = frame.with_columns(pl.col(*FLAGS).cast(pl.Boolean), pl.col("op").cast(pl.Enum(OPS)))
    with system_errors(target):
        interruptibly(lambda: frame.sink_parquet(target, row_group_size=CHUNK_ROWS))
