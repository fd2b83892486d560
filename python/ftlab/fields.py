"""The fields of a result, with their types: a checker finds a misspelt one, an editor completes it.

They are those of the JSON; docs/glossary.md says what each is, with its formula. Times are nanoseconds, sizes
bytes. A test compares these classes with real results, field by field.
"""

from __future__ import annotations

import types
import typing
from collections.abc import Iterator, Mapping
from functools import cache
from typing import TYPE_CHECKING, Any, Final, Self

from ftlab.units import count, duration, size

_LINE = 100
"""Characters that a section prints at most."""


class Section(Mapping[str, Any]):
    """A JSON object whose fields are attributes too: ``result.latency.read.mean_ns``."""

    def __init__(self, data: dict[str, Any]) -> None:
        """Makes it; ``data`` is shared, not copied."""
        self._data: Final = data

    def __getitem__(self, name: str) -> Any:
        """Returns the field ``name``; an object is a section again."""
        value = self._data[name]
        return _sections(type(self)).get(name, Section)(value) if isinstance(value, dict) else value

    if not TYPE_CHECKING:
        # A checker knows the fields by their declarations, and no others.

        def __getattr__(self, name: str) -> Any:
            """Returns the field ``name``."""
            if name.startswith("_"):
                raise AttributeError(name)
            try:
                return self[name]
            except KeyError:
                if name in _optional(type(self)):
                    return None
                raise AttributeError(f"no field {name!r}; there are: {', '.join(self._data)}") from None

    def __iter__(self) -> Iterator[str]:
        """Iterates over the names of the fields, in order."""
        return iter(self._data)

    def __len__(self) -> int:
        """Returns the number of fields."""
        return len(self._data)

    def __dir__(self) -> list[str]:
        """Returns the attributes, including fields, for completion."""
        return [*super().__dir__(), *self._data]

    def __reduce__(self) -> tuple[type[Self], tuple[dict[str, Any]]]:
        """Supports pickle."""
        return type(self), (self._data,)

    def __repr__(self) -> str:
        """Returns the fields in a line, with units; objects by their names alone."""
        shown = ", ".join(f"{_plain(name)}={_shown(name, value)}" for name, value in self._data.items())
        if len(shown) > _LINE:
            shown = shown[: _LINE - 3].rsplit(", ", 1)[0] + ", ..."
        return f"{type(self).__name__}({shown})"

    def to_dict(self) -> dict[str, Any]:
        """Returns the plain dictionary; do not change it."""
        return self._data


def _plain(name: str) -> str:
    """Returns a name without its unit, which is shown with the value."""
    return name.removesuffix("_ns").removesuffix("_bytes")


def _shown(name: str, value: Any) -> str:
    if isinstance(value, dict):
        return "{...}"
    if isinstance(value, list):
        return f"[{len(value)}]"
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return repr(value)
    if name.endswith("_ns"):
        return duration(value)
    if name.endswith("_bytes") or name.startswith("bytes_"):
        return size(value)
    return count(value) if isinstance(value, int) else f"{value:.6g}"


@cache
def _hints(kind: type[Section]) -> dict[str, tuple[Any, ...]]:
    """Returns the declared types of each field."""
    hints = typing.get_type_hints(kind)
    return {
        name: typing.get_args(hint) if isinstance(hint, types.UnionType) else (hint,)
        for name, hint in hints.items()
    }


@cache
def _optional(kind: type[Section]) -> frozenset[str]:
    """Returns the fields that some results lack; there they are None."""
    return frozenset(name for name, options in _hints(kind).items() if types.NoneType in options)


@cache
def _sections(kind: type[Section]) -> dict[str, type[Section]]:
    """Returns the declared classes of a section's own sections."""
    return {
        name: each
        for name, options in _hints(kind).items()
        for each in options
        if isinstance(each, type) and issubclass(each, Section)
    }


Causes: typing.TypeAlias = Mapping[str, int]
"""A number for each cause: host, map, gc, gc-map, dir, merge, pad, wear."""


class Settings(Section):
    """The configuration of a result: every key (docs/configuration.md)."""

    if TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            """Returns a key, or a table of keys."""


class Trace(Section):
    """What was requested."""

    requests: int
    reads: int
    writes: int
    trims: int
    flushes: int
    bytes_read: int
    bytes_written: int
    footprint_bytes: int
    out_of_order: int
    dropped: Mapping[str, int]
    notes: list[str] | None


class Bins(Section):
    """A histogram's bins that hold a value: the least value of each, and the count."""

    bins: list[list[int]]


class Times(Section):
    """A distribution of times."""

    count: int
    mean_ns: float
    stddev_ns: float
    min_ns: int
    max_ns: int
    percentile_ns: Mapping[str, int]
    histogram: Bins | None
    """With ``results.histograms``."""


class ByOperation(Section):
    """Times of reads, of writes, and of both."""

    read: Times
    write: Times
    all: Times


class MappingCache(Section):
    """The mapping cache."""

    hits: int
    misses: int
    prefetches: int
    hit_ratio: float | None
    translation_reads: int
    translation_programs: int
    map_bytes_programmed: int
    updated_ratio: float | None
    flushes: int
    unit_bytes: int
    directory_bytes: int


class HostScheduler(Section):
    """The host's I/O scheduler."""

    name: str
    prioritized: int
    batches: int
    expired: int


class DeviceScheduler(Section):
    """The device's scheduler."""

    scheduler: str
    batches: int


class Conflicts(Section):
    """Requests that found a chip that they need busy or awaited."""

    read: int
    write: int
    ratio: float | None


class FlashCounts(Section):
    """Operations by cause."""

    reads: Causes
    programs: Causes
    erases: Causes
    busy_ns: Causes


class Flash(FlashCounts):
    """Operations by cause, and the time of programs."""

    program_time: Times


class Merge(Section):
    """Merges of one kind."""

    count: int
    pages_copied: int
    busy_ns: int
    cost_ratio: float | None


class Merges(Section):
    """Merges of a hybrid FTL by kind."""

    full: Merge
    partial: Merge
    switch: Merge
    padded_switch: Merge
    cooperative: Merge


class WriteAmplification(Section):
    """Pages programmed for each page that the host wrote; None where it wrote none."""

    total: float | None
    gc: float | None
    map: float | None
    merge: float | None
    pad: float | None


class Wear(Section):
    """Erase counts of all blocks."""

    min: int
    mean: float
    max: int
    stddev: float


class Failed(Section):
    """Requests that a read-only device refused."""

    writes: int
    trims: int
    flushes: int


class Blocks(Section):
    """Blocks of the flash."""

    all: int
    retired: int
    spare: int
    spare_left: int


class NvmeSmart(Section):
    """Health as an NVMe drive would report it."""

    critical_warning: int
    available_spare: int | None
    available_spare_threshold: int
    percentage_used: int | None
    data_units_read: int
    data_units_written: int
    host_read_commands: int
    host_write_commands: int


class EmmcHealth(Section):
    """Health as an eMMC device would report it."""

    PRE_EOL_INFO: int
    DEVICE_LIFE_TIME_EST_TYP_A: int
    DEVICE_LIFE_TIME_EST_TYP_B: int


class UfsHealth(Section):
    """Health as a UFS device would report it."""

    bPreEOLInfo: int  # noqa: N815 - the standard's name
    bDeviceLifeTimeEstA: int  # noqa: N815
    bDeviceLifeTimeEstB: int  # noqa: N815


class Health(Section):
    """Wear-out."""

    state: str
    read_only_ns: int | None
    failed: Failed
    blocks: Blocks
    nvme_smart: NvmeSmart
    emmc_ext_csd: EmmcHealth
    ufs_health_descriptor: UfsHealth


class Precondition(Section):
    """What was done before time 0."""

    kind: str
    pages_written: int
    programs: int
    erases: int
    rounds: int
    waf: list[float]
    outcome: str | None


class Bottleneck(Section):
    """What was busiest."""

    name: str
    utilization: float
    mean: float


class Utilization(Section):
    """How busy chips, dies and channels were."""

    chip_busy_ns: list[int]
    die_busy_ns: list[int]
    channel_busy_ns: list[int]
    chip: list[float]
    die: list[float]
    channel: list[float]
    bottleneck: Bottleneck | None


class Operations(Section):
    """A number for each kind of operation."""

    read: int
    program: int
    erase: int


class Parallel(Section):
    """Operations that used the flash's parallelism."""

    multi_plane: Operations
    cached: Operations
    suspensions: Operations
    passed: int


class Engine(Section):
    """What the run took; not deterministic."""

    wall_s: float
    requests_per_s: float | None
    peak_rss_bytes: int | None
    version: str


class RequestsOverTime(Section):
    """Requests that completed in each interval."""

    read: list[int]
    write: list[int]


class LatencyOverTime(Section):
    """Mean latency in each interval; None without requests."""

    read: list[float | None]
    write: list[float | None]


class Series(Section):
    """What happened in each interval (``results.series``)."""

    from_ns: int
    width_ns: int
    logical_pages_per_page: int
    host_pages: list[int]
    reads: Mapping[str, list[int]]
    programs: Mapping[str, list[int]]
    erases: Mapping[str, list[int]]
    requests: RequestsOverTime
    latency_mean_ns: LatencyOverTime
    hits: list[int]
    misses: list[int]


class EraseMap(Section):
    """How often blocks were erased (``results.erase_map``)."""

    unit: str
    blocks_per_unit: int
    blocks_per_cell: int
    mean: list[list[float]]
    max: list[list[int]]


class MissRatios(Section):
    """Miss ratios of an LRU cache of each size; the number of items is ``["items"]``."""

    item_bytes: int
    sampling_rate: float
    capacity_bytes: list[int]
    miss_ratio: list[float]


class MissCurve(Section):
    """The mapping cache's misses at every size (``results.miss_curve``)."""

    lookups: int
    entries: MissRatios
    units: MissRatios


class Points(Section):
    """Points over time: the samples of each, their mean and the greatest."""

    from_ns: int
    width_ns: int
    count: list[int]
    mean: list[float]
    max: list[float]


class Benchmark(Section):
    """What clients of a benchmark or a fio job saw."""

    name: str
    parameters: list[list[str]]
    clients: int
    runs: list[dict[str, int]]
    operations: int
    operations_per_s: float
    bytes_read: int
    bytes_written: int
    throughput_bytes_per_s: float
    throughput_stddev: float
    elapsed_ns: int
    failed_ns: int | None
    latency: Mapping[str, Mapping[str, Any]]
    write_latency: Points
    write_latency_mean_ns: float | None
    flash: FlashCounts
    merges: Merges


class PageCache(Section):
    """The host's page cache."""

    size_bytes: int
    policy: str
    hits: int
    misses: int
    hit_ratio: float | None
    pages_written: Mapping[str, int]
    peak_dirty_bytes: int
    cached_bytes: Points
    dirty_bytes: Points
    tree_bytes: Points
    tree_bytes_mean: float
    global_tree_bytes: Points
    global_tree_bytes_mean: float


class FileSystem(Section):
    """The host's file system."""

    commits: int
    journal_blocks: int
    checkpoint_blocks: int
    discarded_blocks: int
    merged_requests: int


class Fields(Section):
    """The fields of a whole result."""

    schema: str
    config: Settings
    trace: Trace
    latency: ByOperation
    wait: ByOperation
    access: ByOperation
    mapping: MappingCache
    scheduler: HostScheduler
    device: DeviceScheduler
    conflicts: Conflicts
    flash: Flash
    merges: Merges
    waf: WriteAmplification
    wear: Wear
    health: Health
    precondition: Precondition
    utilization: Utilization
    parallel: Parallel
    elapsed_ns: int
    throughput_bytes_per_s: float
    engine: Engine
    series: Series | None
    """With ``results.series``."""
    erase_map: EraseMap | None
    """With ``results.erase_map``."""
    miss_curve: MissCurve | None
    """With ``results.miss_curve``."""
    benchmark: Benchmark | None
    """For a benchmark or a fio job."""
    page_cache: PageCache | None
    """Where there is one."""
    file_system: FileSystem | None
    """Where there is one."""
    own: Mapping[str, Mapping[str, float | None]] | None
    """Figures that parts report themselves, by part and name."""
    own_legend: list[dict[str, str]] | None
    """What each of these is: its part, name, unit and description."""
