"""The fields of a result, with their types: a checker finds a misspelt one, an editor completes it.

`make docs` writes this file from the structs of `crates/core/src/metrics` and `crates/embed/src/result.rs`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from ftlab.results.section import Section, Settings


class Engine(Section):
    """What the run took."""

    wall_s: float
    """Time that the simulation took, including reading the trace and preconditioning."""
    requests_per_s: float | None
    """trace.requests / wall_s."""
    peak_rss_bytes: int | None
    """Largest resident memory of the process so far; null where it is not known."""
    version: str
    """Version of ftlab."""


class MissCurve(Section):
    """Misses of an LRU cache of each size; it starts empty."""

    item_bytes: int
    """Size of an item, which is a mapping entry or a translation unit."""
    sampling_rate: float
    """Items that were sampled / items; at 1 the curve is exact."""
    capacity_bytes: list[int]
    """Sizes of the cache."""
    miss_ratio: list[float]
    """(first lookups + repeated lookups with at least capacity / item size different items looked up since
    the item's last lookup) / lookups."""


class MissCurves(Section):
    """The misses that an LRU mapping cache of every size would have over the run's own lookups."""

    lookups: int
    """Translations."""
    entries: MissCurve
    """For a cache of mapping entries."""
    units: MissCurve
    """For a cache of whole translation units."""


class EraseMap(Section):
    """How often blocks were erased, `flash.pe_cycles` and preconditioning included."""

    unit: str
    """What each row stands for: a chip, or a die or plane where those work on their own."""
    blocks_per_unit: int
    """Number of erase blocks in each row."""
    blocks_per_cell: int
    """Number of neighbouring blocks in a cell; the last cell of a row may have fewer."""
    mean: list[list[float]]
    """Mean erase count of each cell, by row."""
    max: list[list[int]]
    """Greatest erase count of each cell, by row."""


class ByHalfMeans(Section):
    """A value for each interval, for reads and for writes."""

    read: list[float | None]
    """Reads."""
    write: list[float | None]
    """Writes."""


class ByHalfCounts(Section):
    """A value for each interval, for reads and for writes."""

    read: list[int]
    """Reads."""
    write: list[int]
    """Writes."""


class IntervalsReport(Section):
    """What happened in each interval k, which is from b(k) to b(k + 1)."""

    from_ns: int
    """b(0) = first arrival."""
    width_ns: int
    """b(k + 1) - b(k); the last may end earlier."""
    logical_pages_per_page: int
    """L."""
    host_pages: list[int]
    """Logical pages that the host wrote."""
    reads: Mapping[str, list[int]]
    """R of each cause."""
    programs: Mapping[str, list[int]]
    """P of each cause."""
    erases: Mapping[str, list[int]]
    """E of each cause."""
    requests: ByHalfCounts
    """Requests with b(k) <= c(i) < b(k + 1)."""
    latency_mean_ns: ByHalfMeans
    """Mean of c(i) - a(i) over these requests; null where there were none."""
    hits: list[int]
    """Translations that found their entry in the mapping cache."""
    misses: list[int]
    """Translations that did not find their entry in the mapping cache."""


class FileSystem(Section):
    """The host's file system."""

    commits: int
    """Transactions of the journal."""
    journal_blocks: int
    """Blocks written to the journal, descriptors and commit blocks included."""
    checkpoint_blocks: int
    """Metadata blocks written in place."""
    discarded_blocks: int
    """Blocks discarded."""
    merged_requests: int
    """Requests that were merged with a pending one."""


class PageCache(Section):
    """The host's page cache."""

    size_bytes: int
    """`host.page_cache`."""
    policy: str
    """`host.flush_policy`."""
    hits: int
    """Pages of the clients' reads and writes that were cached."""
    misses: int
    """Pages of the clients' reads and writes that were not cached."""
    hit_ratio: float | None
    """hits / (hits + misses)."""
    pages_written: Mapping[str, int]
    """Dirty pages written, by reason."""
    peak_dirty_bytes: int
    """Greatest number of bytes that were dirty or being written at once."""
    cached_bytes: SeriesReport
    """Bytes cached, over time."""
    dirty_bytes: SeriesReport
    """Bytes dirty or being written, over time."""
    tree_bytes: SeriesReport
    """Memory of the files' radix trees, over time; each node takes 288 B."""
    tree_bytes_mean: float | None
    """Mean of `tree_bytes` over all samples."""
    global_tree_bytes: SeriesReport
    """Memory of the tree over logical pages, over time."""
    global_tree_bytes_mean: float | None
    """Mean of `global_tree_bytes` over all samples."""


class SeriesReport(Section):
    """Points over time."""

    from_ns: int
    """Start of the first point."""
    width_ns: int
    """Width of each point."""
    count: list[int]
    """Number of values in each point."""
    mean: list[float | None]
    """Mean of these values; null where there are none."""
    max: list[int]
    """Greatest of these values; 0 where there are none."""


class Benchmark(Section):
    """What clients of a benchmark or a fio job saw, over the measured runs."""

    name: str
    """What ran."""
    parameters: list[list[str]]
    """Names and values that it ran with, in the order of its keys."""
    clients: int
    """Clients."""
    runs: list[dict[str, int]]
    """Each measured run."""
    operations: int
    """The clients' operations that ended in a measured run."""
    operations_per_s: float
    """Mean over the runs of operations x 10^9 / elapsed_ns."""
    bytes_read: int
    """Bytes that the clients read."""
    bytes_written: int
    """Bytes that the clients wrote."""
    throughput_bytes_per_s: float
    """Mean over the runs of (bytes read + written) x 10^9 / elapsed_ns."""
    throughput_stddev: float
    """Standard deviation of the throughput over the runs, B/s."""
    elapsed_ns: int
    """Simulated time of the measured runs."""
    failed_ns: int | None
    """When a read-only device refused a write, which ended the clients; null if none did."""
    latency: Mapping[str, Mapping[str, Any]]
    """End - start of the operations of each kind."""
    write_latency: SeriesReport
    """(c(i) - d(i)) / pages of i, ns, over the pages of the write requests that complete in each point."""
    write_latency_mean_ns: float | None
    """Mean of `write_latency` over all pages."""
    flash: Flash
    """Operations from the first measured run on."""
    merges: Merges
    """Merges from the first measured run on; their costs are relative to the operations of cause `host`
    since then."""


class Fairness(Section):
    """The tenants' slowdowns compared, where each also ran alone (Tavakkol et al., ISCA 2018, section 6)."""

    unfairness: float | None
    """Greatest slowdown / least slowdown."""
    fairness: float | None
    """Least slowdown / greatest slowdown."""
    weighted_speedup: float | None
    """Sum of 1 / slowdown."""
    harmonic_speedup: float | None
    """Number of tenants / sum of the slowdowns."""


class TenantFlash(Section):
    """Work of the flash."""

    reads: int
    """Pages read."""
    programs: int
    """Pages programmed."""
    erases: int
    """Blocks erased."""
    busy_ns: int
    """Time for which cells and buses worked."""
    share: float | None
    """The part of the device's work, by time."""


class ByOperation(Section):
    """Reads, programs and erasures."""

    read: int
    """Reads."""
    program: int
    """Programs."""
    erase: int
    """Erasures."""


class ParallelOperations(Section):
    """Operations that used what the flash can do at once; zeros where that is off."""

    multi_plane: ByOperation
    """Operations on more than one plane, each counted once."""
    cached: ByOperation
    """Cache operations: those that began while the previous operation was under way."""
    suspensions: ByOperation
    """Suspensions, by what was suspended."""
    passed: int
    """Reads served ahead of an older program or erasure (`flash.out_of_order`)."""


class Energy(Section):
    """The energy of a run, with `[energy]`: of flash operations and transfers by what they do and by
    cause, and of what has no cause. All but `by_cause` are parts of the total."""

    total_mj: float
    """The sum of all parts, millijoules."""
    per_request_uj: float | None
    """The sum of all parts / trace.requests, microjoules."""
    read_mj: float
    """Page reads."""
    program_mj: float
    """Page programs; with whole word lines programmed at once, each word line once."""
    erase_mj: float
    """Block erases."""
    transfer_mj: float
    """Data on the channel buses."""
    link_mj: float
    """Data on the link between host and device."""
    command_mj: float
    """Commands."""
    active_mj: float
    """The controller, while anything was under way in the device."""
    idle_mj: float
    """The controller, while nothing was under way in the device."""
    by_cause: Mapping[str, float]
    """Flash operations and their transfers, by cause, millijoules."""


class Bottleneck(Section):
    """The busiest chip, or die where dies work on their own, or channel bus, or direction of the link, or
    core."""

    name: str
    """`chip 3`, `chip 3 die 1`, `channel 0`, `link`, `link to the device`, `link to the host` or `core 0`.
    Among equally busy resources, it is the one whose kind comes first in this list, then the one with the
    lower number."""
    utilization: float
    """Its share: if near 1, this resource limits the run; if far below 1, the run is limited by how fast
    requests arrive."""
    mean: float
    """Mean share of all resources of its kind; close to its own share where the load is even."""


class Utilization(Section):
    """How busy chips, dies and channels were; of what is under way at the end, only the time that has
    passed counts."""

    chip_busy_ns: list[int]
    """Time each chip was busy: cells and bus."""
    die_busy_ns: list[int]
    """Time each die was busy, chip by chip, where dies work on their own (`flash.interleave`); else none.
    A chip is busy while any of its dies is."""
    channel_busy_ns: list[int]
    """Time each channel's bus was busy."""
    chip: list[float]
    """chip_busy_ns / elapsed_ns."""
    die: list[float]
    """die_busy_ns / elapsed_ns."""
    channel: list[float]
    """channel_busy_ns / elapsed_ns."""
    bottleneck: Bottleneck | None
    """The resource with the largest share; null where nothing was busy."""


class Preconditioning(Section):
    """What was done before time 0. None of it is in the run's own counters, but its erases are in `wear`."""

    kind: str
    """`device.precondition`."""
    pages_written: int
    """Logical pages written."""
    programs: int
    """NAND pages programmed, of all causes."""
    erases: int
    """Blocks erased."""
    rounds: int
    """With kind `steady`: number of rounds, each of one user capacity, after the device had been filled
    twice."""
    waf: list[float]
    """With kind `steady`: programs x L / logical pages written, for each of the last rounds (at most
    five)."""
    outcome: Literal["reached", "capped"] | None
    """With kind `steady`: whether write amplification became steady, or the limit of rounds was reached
    first."""


class UfsHealthDescriptor(Section):
    """The device's health as a UFS device reports it: its health descriptor."""

    bPreEOLInfo: int
    """As `PRE_EOL_INFO`; 3 is called critical."""
    bDeviceLifeTimeEstA: int
    """As `DEVICE_LIFE_TIME_EST_TYP_A`."""
    bDeviceLifeTimeEstB: int
    """0."""


class EmmcExtCsd(Section):
    """The device's health as an eMMC device reports it: bytes of EXT_CSD."""

    PRE_EOL_INFO: int
    """0 without spare blocks; else 1 (normal), 2 once 80 % of them are used, or 3 once 90 % are."""
    DEVICE_LIFE_TIME_EST_TYP_A: int
    """Life used in tenths: 1 below 10 %, ..., 10 below 100 %, then 11; 0 without an endurance."""
    DEVICE_LIFE_TIME_EST_TYP_B: int
    """0: there is one type of memory."""


class NvmeSmart(Section):
    """The device's health as an NVMe drive reports it: SMART / Health Information."""

    critical_warning: int
    """1 if available spare is below the threshold, + 8 if read-only."""
    available_spare: int | None
    """100 x spare blocks left / spare blocks, of the chip with the fewest left, rounded down; null without
    spare blocks."""
    available_spare_threshold: int
    """`ftl.spare_threshold`, in whole percent."""
    percentage_used: int | None
    """100 x mean erase count / `flash.endurance`, rounded down, at most 255; null without an endurance."""
    data_units_read: int
    """ceil(bytes of completed reads / 512,000)."""
    data_units_written: int
    """ceil(bytes of completed writes / 512,000)."""
    host_read_commands: int
    """Completed reads."""
    host_write_commands: int
    """Completed writes."""


class Blocks(Section):
    """Blocks of the flash: all = in service + spare + retired."""

    all: int
    """Blocks of the flash."""
    retired: int
    """Blocks past their limit, which hold nothing."""
    spare: int
    """Spare blocks the device began with."""
    spare_left: int
    """Spare blocks left."""


class Failed(Section):
    """Requests that failed; `trace` includes them, but no time does."""

    reads: int | None
    """Reads of data that could not be corrected; only where reads can meet errors."""
    writes: int
    """Writes that a read-only device refused, in whole or in part."""
    trims: int
    """Trims that it refused."""
    flushes: int
    """Flushes that it refused."""


class Health(Section):
    """Wear-out."""

    state: Literal["good", "spare-low", "read-only"]
    """read-only; else spare-low if available spare < `ftl.spare_threshold`; else good."""
    read_only_ns: int | None
    """When the device turned read-only, on the clock of the arrivals; null if it did not."""
    media_errors: int | None
    """Page reads that could not be corrected, by the host or the device itself; only where reads can meet
    errors. NVMe: Media and Data Integrity Errors."""
    failed: Failed
    """Requests that failed: a read-only device refused them, in whole or in part, or they could not be
    read."""
    blocks: Blocks
    """The erase blocks."""
    nvme_smart: NvmeSmart
    """NVMe: SMART / Health Information."""
    emmc_ext_csd: EmmcExtCsd
    """eMMC: bytes of EXT_CSD."""
    ufs_health_descriptor: UfsHealthDescriptor
    """UFS: device health descriptor."""


class Wear(Section):
    """Erase counts of all blocks, `flash.pe_cycles` and those of preconditioning included."""

    min: int
    """Least."""
    mean: float
    """Mean."""
    max: int
    """Greatest."""
    stddev: float
    """Standard deviation of the population."""


class Placement(Section):
    """The classes of data that `ftl.placement` keeps in open blocks of their own."""

    fronts: list[dict[str, str | int | float | None]]
    """What went to each front."""


class Waf(Section):
    """Write amplification: pages programmed for each page that the host wrote."""

    total: float | None
    """P x L / H."""
    gc: float | None
    """(P(gc) + P(wear)) x L / H."""
    map: float | None
    """(P(map) + P(gc-map) + P(dir)) x L / H."""
    merge: float | None
    """P(merge) x L / H."""
    pad: float | None
    """P(pad) x L / H."""
    fold: float | None
    """P(fold) x L / H, where an SLC cache was folded."""
    refresh: float | None
    """P(refresh) x L / H, where data was refreshed."""


class Merge(Section):
    """Merges of one kind."""

    count: int
    """Number of these merges."""
    pages_copied: int
    """Number of pages that they copied; for padded switch merges, of padding pages that they programmed."""
    busy_ns: int
    """Time of their copies and erases, and of the padding."""
    cost_ratio: float | None
    """busy_ns / busy_ns of the operations of cause `host`."""


class Merges(Section):
    """Merges of a hybrid FTL by kind."""

    full: Merge
    """Full merges."""
    partial: Merge
    """Partial merges."""
    switch: Merge
    """Switch merges."""
    padded_switch: Merge
    """Switch merges after padding."""
    cooperative: Merge
    """Cooperative switch merges."""


class Errors(Section):
    """Errors of reads, of all causes (`[flash.errors]`)."""

    retries: int
    """Repetitions of page reads, each at a step of a read retry."""
    retried_reads: int
    """Page reads that were repeated; a read that begins at the step it needs is not (`flash.retry`)."""
    failed_reads: int
    """Page reads that no step corrected."""
    steps: list[int]
    """Page reads by the step that they needed: none, 1, 2, ...; without failed_reads."""
    refreshed_blocks: int
    """Blocks whose data were rewritten before they could no longer be read (`ftl.refresh`)."""


class Flash(Section):
    """Operations by cause."""

    reads: Mapping[str, int]
    """R(cause): page reads."""
    programs: Mapping[str, int]
    """P(cause): page programs."""
    erases: Mapping[str, int]
    """E(cause): block erases."""
    busy_ns: Mapping[str, int]
    """Time of cells and bus over all operations of the cause."""
    program_time: Summary | None
    """Time that the cells took for each page programmed, of every cause; only for a whole run."""


class Conflicts(Section):
    """Requests in conflict when the device took them."""

    read: int
    """Reads."""
    write: int
    """Writes and trims."""
    ratio: float | None
    """(read + write) / trace.requests."""


class WriteBuffer(Section):
    """What the write buffer did; pages are logical pages."""

    hits: int
    """Pages of reads that were answered from the buffer, those of the host's padding included."""
    coalesced: int
    """Pages written that replaced a page in the buffer."""
    destaged: int
    """Pages handed to the FTL."""
    stalls: int
    """Writes that had to wait for room."""
    wait_ns: int
    """Time that they waited for room."""
    high_water: int
    """Most pages in use at one time."""


class Commands(Section):
    """Time that reads and writes together spent outside the device's queue and flash, including waiting."""

    link_ns: int
    """At the link."""
    core_ns: int
    """At the cores."""
    latency_ns: int
    """In the further delay that keeps nothing busy (`device.latency_read` and the like)."""


class DeviceQueue(Section):
    """The device's scheduler, and the link and the cores, which commands go through in addition to its
    queue."""

    scheduler: str
    """`device.scheduler`."""
    batches: int
    """Chip batches that piq or vios created."""
    link_busy: float | None
    """Share of the time that the link (or its busier direction) was busy, with `device.link`."""
    core_busy: float | None
    """Mean share of the time that the cores were busy, where commands take core time."""
    commands: Commands | None
    """Where commands spent time outside queue and flash, in runs with a controller or link."""
    buffer: WriteBuffer | None
    """What the write buffer did, with `device.write_buffer`."""


class Scheduler(Section):
    """The host's I/O scheduler."""

    name: str
    """`host.scheduler`."""
    prioritized: int
    """Requests that were chosen from a hit queue while another request was pending, and all but the first
    request of each chosen batch; not those dispatched by deadline."""
    batches: int
    """Batches (block issues) that the scheduler created."""
    expired: int
    """Requests dispatched because d(i) - a(i) had reached `host.deadline`."""


class MappingCache(Section):
    """The mapping cache."""

    hits: int
    """Translations (one for each logical page of each request) whose entry was cached."""
    misses: int
    """Translations whose entry was not cached."""
    prefetches: int
    """Translation pages read for a scheduler's batch before its requests; lookups of what they bring in
    count as hits."""
    hit_ratio: float | None
    """(hits - prefetches) / (hits + misses)."""
    translation_reads: int
    """R(map)."""
    translation_programs: int
    """P(map)."""
    map_bytes_programmed: int
    """(P(map) + P(gc-map) + P(dir)) x NAND page size."""
    updated_ratio: float | None
    """Entries that differed from their copy on flash / entries programmed, over the units programmed with
    cause map."""
    flushes: int
    """Flushes of all updated mappings: those by amount (`ftl.flush`), and those that the host requested."""
    unit_bytes: int
    """Size of a translation unit, which the mapping reads and writes on flash as a whole; 0 if the whole
    map is in RAM."""
    directory_bytes: int
    """Size of the directory (GTD, MSD) in RAM: translation units x `ftl.entry`."""


class Bins(Section):
    """A histogram; the histograms of two runs can be added bin by bin."""

    bins: list[list[int]]
    """For each bin that is not empty, in ascending order: its least value, ns, and the number of values it
    holds. A bin that begins at `v` is 1 ns wide for `v` up to 127, and 2^(floor(log2 v) - 6) ns wide
    above."""


class Summary(Section):
    """A distribution of times t(i), over a set of n requests (or of whatever else the field names)."""

    count: int
    """n."""
    mean_ns: float
    """Sum of t(i) / n; 0 if n = 0."""
    stddev_ns: float
    """Square root of (sum of (t(i) - mean)^2 / n)."""
    min_ns: int
    """Least t(i)."""
    max_ns: int
    """Greatest t(i)."""
    percentile_ns: Mapping[str, int]
    """At p (fio's notation, `99.000000`): the ceil(n p / 100)-th smallest t(i), as the midpoint of its
    bin, but within min and max: at most 1/128 off; none if n = 0."""
    histogram: Bins | None
    """The bins, with `results.histograms`."""


class Parts(Section):
    """A time t(i) of reads, of writes, and of both."""

    read: Summary
    """Reads."""
    write: Summary
    """Writes."""
    all: Summary
    """Reads and writes."""


class Trace(Section):
    """What was requested, failed requests included."""

    requests: int
    """reads + writes + trims + flushes, not counting dropped records but counting every repetition of the
    trace."""
    reads: int
    """Reads."""
    writes: int
    """Writes."""
    trims: int
    """Trims."""
    flushes: int
    """Flushes."""
    bytes_read: int
    """Sum of the sizes of reads."""
    bytes_written: int
    """Sum of the sizes of writes."""
    footprint_bytes: int
    """Number of different logical pages touched x logical page size."""
    out_of_order: int
    """Number of time stamps that, after sorting among the 16,384 rows held, were smaller than the largest
    before them, and were raised to it."""
    dropped: Mapping[str, int]
    """Records dropped, by reason."""
    notes: list[str] | None
    """What a reader of the figures should know about how the trace was read."""


class Fields(Section):
    """A result."""

    schema: str
    """Name and version of this layout."""
    config: Settings
    """Every key with its value; running this configuration again gives the same result."""
    trace: Trace
    """What was requested."""
    latency: Parts
    """c(i) - a(i): completion - arrival."""
    wait: Parts
    """d(i) - a(i): dispatch - arrival."""
    access: Parts
    """c(i) - d(i): completion - dispatch."""
    mapping: MappingCache
    """The mapping cache."""
    scheduler: Scheduler
    """The host's scheduler."""
    device: DeviceQueue
    """The device's scheduler."""
    conflicts: Conflicts
    """Requests that, when the device took them, needed a chip that was busy or wanted by an earlier
    request."""
    flash: Flash
    """Flash operations by cause."""
    errors: Errors | None
    """Errors of reads, where reads can meet any."""
    merges: Merges
    """Merges of hybrid FTLs; zeros for a page-mapped FTL."""
    waf: Waf
    """Write amplification."""
    placement: Placement | None
    """What went to each front, where `ftl.placement` has several."""
    wear: Wear
    """Erase counts of the blocks."""
    health: Health
    """The device's health, as a drive reports it."""
    precondition: Preconditioning
    """How the device came to its state at time 0."""
    utilization: Utilization
    """Busy time of each resource."""
    energy: Energy | None
    """Where the energy went, with `[energy]`."""
    parallel: ParallelOperations
    """Operations that overlapped or passed each other at a die."""
    elapsed_ns: int
    """Greatest c(i) - least a(i), over all requests; while requests are under way, up to now."""
    throughput_bytes_per_s: float
    """(bytes of completed reads + bytes of completed writes) x 10^9 / elapsed_ns."""
    tenants: list[dict[str, Any]] | None
    """What each tenant asked for and got, where there are tenants."""
    beside_tenants: TenantFlash | None
    """The flash's work for the device's own tasks, which no tenant's request asked for."""
    fairness: Fairness | None
    """What sharing costs the tenants, with `--alone`."""
    benchmark: Benchmark | None
    """What the clients of a benchmark or a fio job saw, in runs with such clients."""
    page_cache: PageCache | None
    """The host's page cache, in runs with one."""
    file_system: FileSystem | None
    """The host's file system, in runs with one."""
    series: IntervalsReport | None
    """What happened in each interval of simulated time, with `results.series`."""
    erase_map: EraseMap | None
    """How often blocks were erased, with `results.erase_map`."""
    miss_curve: MissCurves | None
    """The misses that a mapping cache of every size would have, with `results.miss_curve`."""
    own: Mapping[str, Mapping[str, float | None]] | None
    """The parts' own figures, by part and name, where parts report any; null for a figure that is not a
    number."""
    own_legend: list[dict[str, str]] | None
    """What each figure of `own` means."""
    engine: Engine
    """About the simulator itself; different in every run."""
