"""Types of the Rust extension; `crates/py` documents what each item does."""

from collections.abc import Callable, Iterator, Sequence
from os import PathLike
from pathlib import Path
from typing import Any, TypeAlias, final

import numpy as np

__version__: str

Given: TypeAlias = tuple[str, str, str]
"""An override: its name in messages, its key and its value."""

Columns: TypeAlias = tuple[np.ndarray[Any, Any], ...]
"""Rows of a trace, as columns: ts_ns (int64), op (uint8), offset (int64), size (int64), flags (uint8) and, if
there are streams, stream (int64).
"""

MakeChunks: TypeAlias = Callable[[], Iterator[Columns]]
"""A function that yields the rows of a trace in chunks; each call starts again with the first row."""

Progress: TypeAlias = Callable[[int], bool | None]
"""A function called about every 50 ms with the number of requests done so far; if it returns False, the work
stops.
"""

Preconditioning: TypeAlias = Callable[[int, int, float | None], bool | None]
"""Like `Progress`, but called before time 0, with the pages written, the rounds done and the write
amplification of the last round.
"""

class UserError(Exception):
    """An input or an option is at fault; the text is for the user (exit status 2)."""

class OutputError(UserError):
    """A file could not be written; the arguments are the system's error number, the message and the file's
    name.
    """

class InternalError(Exception):
    """A bug in ftlab: a broken invariant or a panic (exit status 1)."""

@final
class Column:
    """A read-only column of numbers; NumPy shares its memory."""

    def __len__(self) -> int: ...
    def __buffer__(self, flags: int, /) -> memoryview: ...

@final
class Config:
    """A resolved configuration."""

    def json(self) -> str: ...
    def toml(self) -> str: ...
    def hash(self) -> str: ...
    def notes(self) -> list[str]: ...
    def job_notes(self) -> list[str]: ...
    @property
    def addresses(self) -> tuple[int, int]: ...
    @property
    def trace(self) -> str | None: ...
    @property
    def format(self) -> str: ...

@final
class Device:
    """A device at time 0, kept in memory for several runs that differ in their workload."""

@final
class RunResult:
    """What a run measured."""

    @property
    def json(self) -> str: ...
    @property
    def prepare_s(self) -> float: ...
    @property
    def behind(self) -> tuple[int, int]: ...
    @property
    def unwritten(self) -> int: ...
    @property
    def timeline(self) -> tuple[int, int | None] | None: ...
    def take_columns(self) -> dict[str, Column] | None: ...

@final
class Completion:
    """A request that completed: the fields of the per-request file, and whether it failed."""

    id: int
    arrival_ns: int
    dispatch_ns: int
    complete_ns: int | None
    op: str
    offset: int
    size: int
    mapping_misses: int
    prioritized: bool
    expired: bool
    batch: int | None
    channel_batch: int | None
    failed: bool
    buffered: int
    stream: int

@final
class Request:
    """A request as a `ftlab.HostScheduler` sees it."""

    id: int
    """The request's number, counted from 1 in order of arrival."""
    op: str
    """The operation: R, W, T or F."""
    offset: int
    """Address of the request's first byte."""
    size: int
    """Size in bytes."""
    arrival_ns: int
    """When the request arrived at the host."""
    lpn: int | None
    """The first logical page that the request covers; None for a request without pages."""
    pages: int
    """Number of logical pages that the request covers."""
    hit: bool
    """Whether all mappings of the request are cached, as far as the host knows."""
    translation_page: int | None
    """Translation page of the first logical page; None for a request without pages."""

def add_host_scheduler(name: str, policy: type, completions: bool) -> None: ...
def add_victim_policy(name: str, policy: type) -> None: ...
def add_replacement(name: str, policy: type) -> None: ...
def add_placement(name: str, policy: type) -> None: ...

class Simulation:
    """A device whose caller submits the requests and advances the simulated time."""

    def __new__(
        cls,
        config: Config,
        *,
        load_state: str | PathLike[str] | None = None,
        check: bool = False,
        collect: bool = False,
    ) -> Simulation: ...
    def submit(
        self, op: str, offset: int, size: int, *, at_ns: int | None = None, fua: bool = False, stream: int = 0
    ) -> int: ...
    def submit_columns(self, columns: dict[str, np.ndarray[Any, Any]]) -> tuple[int, int]: ...
    def next_event_ns(self) -> int | None: ...
    @property
    def now_ns(self) -> int: ...
    def advance(self, until_ns: int) -> list[Completion]: ...
    def run_until_idle(self) -> list[Completion]: ...
    def cut(self, seed: int) -> dict[str, int]: ...
    def recover(self) -> dict[str, int]: ...
    def valid_pages(self) -> tuple[Column, int]: ...
    def result(self) -> RunResult: ...

@final
class LiveServer:
    def __new__(
        cls,
        config: Config,
        nbd: Sequence[str],
        *,
        fuse: str | PathLike[str] | None = None,
        media: str | PathLike[str] | None = None,
        control: str | PathLike[str] | None = None,
        metrics: str | None = None,
        speed: float | None = 1.0,
        read_only: bool = False,
        record: str | PathLike[str] | None = None,
        load_state: str | PathLike[str] | None = None,
        check: bool = False,
        patience_s: float = 30.0,
        preconditioning: Preconditioning | None = None,
        streams: int = 0,
        trace_pids: bool = False,
        rotate: int | None = None,
        wait: str = "auto",
    ) -> LiveServer: ...
    def addresses(self) -> list[str]: ...
    def metrics(self) -> str | None: ...
    def opened(self) -> str: ...
    def recording_error(self) -> str | None: ...
    def cut(self, after: int, seed: int) -> None: ...
    def cut_at_request(self, after: int, seed: int) -> None: ...
    def look(self) -> bool: ...
    def stop(self) -> RunResult | None: ...

@final
class TraceChunks:
    """Iterates over the requests of a workload in chunks, each a tuple of columns: ts_ns (uint64), op
    (uint8), offset (uint64), size (uint64), flags (uint32), stream (uint32) and, if `has_completions`,
    latency_ns (uint64; 2**64 - 1: not known).
    """

    has_streams: bool
    has_completions: bool

    def __iter__(self) -> TraceChunks: ...
    def __next__(self) -> tuple[Column, ...]: ...
    def summary(self) -> str: ...

def resolve(config: str, overrides: Sequence[Given] = ...) -> Config: ...
def resolve_text(name: str, text: str, overrides: Sequence[Given] = ...) -> Config: ...
def discard_unfinished() -> None: ...
def read_toml(path: str, what: str) -> str: ...
def presets() -> list[tuple[str, str, str]]: ...
def schema() -> str: ...
def components() -> str: ...
def reference() -> str: ...
def peak_rss_bytes() -> int | None: ...
def run(
    config: Config,
    *,
    chunks: MakeChunks | None = None,
    requests_csv: str | PathLike[str] | None = None,
    timeline: str | PathLike[str] | None = None,
    timeline_window: str | None = None,
    collect: bool = False,
    check: bool = False,
    progress: Progress | None = None,
    preconditioning: Preconditioning | None = None,
    save_state: str | PathLike[str] | None = None,
    load_state: str | PathLike[str] | None = None,
    device: Device | None = None,
    only: str | None = None,
) -> RunResult: ...
def crash(
    config: Config,
    *,
    cuts: int,
    operations: int,
    at: Sequence[int] | None = None,
    progress: Progress | None = None,
) -> str: ...
def prepare(
    config: Config,
    *,
    preconditioning: Preconditioning | None = None,
    load_state: str | PathLike[str] | None = None,
) -> Device: ...
def trace_info(config: Config) -> str: ...
def trace_check(config: Config, *, progress: Progress | None = None) -> list[str]: ...
def trace_files(path: str) -> list[Path]: ...
def trace_head(config: Config, rows: int) -> tuple[list[tuple[int, str, int, int, int]], bool]: ...
def trace_convert_csv(
    config: Config, path: str | PathLike[str], *, progress: Progress | None = None
) -> str: ...
def trace_chunks(
    config: Config, rows: int, *, completions: bool = False, progress: Progress | None = None
) -> TraceChunks: ...
