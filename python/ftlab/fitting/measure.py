"""Figures of a workload, taken from a trace and from a generator in the same way."""

from __future__ import annotations

import json
import math
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from ftlab import _core
from ftlab._core import Config, UserError
from ftlab.configs import Override, load_text
from ftlab.fitting.persistence import Persistence, measured

if TYPE_CHECKING:
    from ftlab._core import Progress

MAPPING_CACHE = "16KiB"
"""The mapping cache with which the miss ratio is measured."""

NEAR_RANGE = 2 << 20
"""Size of a range in bytes: what a translation page of 512 entries maps (``near_range`` of the generator)."""

NEAR_REQUESTS = 8
"""The number of earlier requests considered, as in the generator."""

_BLOCK = 256 << 10
_LEAST_BLOCKS = 64
_TRIM = 2


@dataclass
class Workload:
    """Figures of a workload; flushes are not counted."""

    counts: list[int] = field(default_factory=lambda: [0, 0, 0])
    """The numbers of reads, writes and trims."""
    read_sizes: Counter[int] = field(default_factory=Counter)
    write_sizes: Counter[int] = field(default_factory=Counter)
    """The number of writes and trims of each size."""
    sequential: int = 0
    streams: int = 0
    near: int = 0
    mean_gap_ns: float = 0.0
    gap_cv: float = 0.0
    """The ratio of the standard deviation of the gaps between arrivals to their mean."""
    median_gap_ns: float = 0.0
    burst_length: float = 1.0
    """The number of requests per gap above the mean gap."""
    persistence: Persistence | None = None
    """How long sizes persist; None if all requests arrive at one time."""

    @property
    def requests(self) -> int:
        """Returns the number of reads, writes and trims."""
        return sum(self.counts)

    @property
    def sequential_ratio(self) -> float:
        """Returns the share of requests that begin where the previous request ended."""
        return self.sequential / self.requests if self.requests else 0.0

    @property
    def stream_ratio(self) -> float:
        """Returns the share of requests that begin where one of the 8 requests before them ended, which are
        sequential requests and those of interleaved streams.
        """
        return self.streams / self.requests if self.requests else 0.0

    @property
    def near_ratio(self) -> float:
        """Returns the share of requests that begin in the same range of 2 MiB as one of the 8 requests before
        them.
        """
        return self.near / self.requests if self.requests else 0.0

    @property
    def write_ratio(self) -> float:
        """Returns the share of writes among reads and writes."""
        both = self.counts[0] + self.counts[1]
        return self.counts[1] / both if both else 0.0

    @property
    def mean_size(self) -> float | None:
        """Returns the mean size of all requests in bytes."""
        return _mean(self.read_sizes + self.write_sizes)

    @property
    def mean_read_size(self) -> float | None:
        """Returns the mean size of reads in bytes; None if there are no reads."""
        return _mean(self.read_sizes)

    @property
    def mean_write_size(self) -> float | None:
        """Returns the mean size of writes and trims in bytes; None if there are none."""
        return _mean(self.write_sizes)


def _mean(counts: Counter[int]) -> float | None:
    total = counts.total()
    return sum(size * number for size, number in counts.items()) / total if total else None


def measure(config: Config) -> Workload:
    """Returns the figures of a configuration's workload, which is read to its end."""
    import numpy as np

    from ftlab.traces import CHUNK_ROWS

    found = Workload()
    end = -1
    all_times, all_reads, all_sizes = [np.empty(0, np.uint64)], [np.empty(0, bool)], [np.empty(0)]
    before = (np.full(NEAR_REQUESTS, -1), np.full(NEAR_REQUESTS, -1))
    for columns in _core.trace_chunks(config, CHUNK_ROWS):
        times, ops, offsets, sizes = (np.asarray(column) for column in columns[:4])
        kept = ops <= _TRIM
        times, ops, offsets, sizes = (values[kept] for values in (times, ops, offsets, sizes))
        if not times.size:
            continue
        for op in range(3):
            found.counts[op] += int((ops == op).sum())
        for counter, chosen in ((found.read_sizes, ops == 0), (found.write_sizes, ops != 0)):
            values, numbers = np.unique(sizes[chosen], return_counts=True)
            counter.update(dict(zip(values.tolist(), numbers.tolist(), strict=True)))
        ends = offsets + sizes
        found.sequential += int((offsets[1:] == ends[:-1]).sum()) + int(int(offsets[0]) == end)
        end = int(ends[-1])
        ranges = np.concatenate([before[0], offsets.astype(np.int64) // NEAR_RANGE])
        run_ends = np.concatenate([before[1], ends.astype(np.int64)])
        near, goes_on = np.zeros(times.size, dtype=bool), np.zeros(times.size, dtype=bool)
        for back in range(1, NEAR_REQUESTS + 1):
            near |= ranges[NEAR_REQUESTS:] == ranges[NEAR_REQUESTS - back : -back]
            goes_on |= offsets == run_ends[NEAR_REQUESTS - back : -back]
        found.near += int(near.sum())
        found.streams += int(goes_on.sum())
        before = (ranges[-NEAR_REQUESTS:], run_ends[-NEAR_REQUESTS:])
        all_times.append(times.astype(np.uint64))
        all_reads.append(ops == 0)
        all_sizes.append(sizes.astype(float))
    arrivals_ns = np.concatenate(all_times)
    all_gaps = np.diff(arrivals_ns).astype(float)
    if all_gaps.size and (mean := float(all_gaps.mean())) > 0:
        found.mean_gap_ns = mean
        found.median_gap_ns = float(np.median(all_gaps))
        found.gap_cv = float(all_gaps.std()) / mean
        found.burst_length = all_gaps.size / max(int((all_gaps > mean).sum()), 1)
        found.persistence = measured(arrivals_ns, np.concatenate(all_reads), np.concatenate(all_sizes))
    return found


def miss_ratio(config: Config, space: int) -> float:
    """Returns the share of a workload's mapping lookups that miss, under DFTL with a cache of 16 KiB.

    The device is a little larger than ``space`` bytes and full at time 0; requests come one at a time,
    so that their order is the workload's. A trace's touched pages are packed densely.
    """
    from ftlab.running import run_config

    text = config.toml()
    # 7 % of fewer blocks would leave no room for translation pages and an erased block.
    blocks = max(math.ceil(space / 0.93 / _BLOCK) + 16, _LEAST_BLOCKS)
    values = {
        "workload.replay": "closed",
        "workload.speed": "1.0",
        "host.scheduler": "noop",
        "host.queue_depth": "1",
        "host.deadline": "none",
        "device.scheduler": "noop",
        "device.queue_depth": "1",
        "device.precondition": "fill",
        "ftl.kind": "dftl",
        "ftl.mapping_cache": MAPPING_CACHE,
        "ftl.logical_page": "page",
        "ftl.over_provisioning": "7%",
        "ftl.gc_free_blocks": "1",
        "flash.channels": "1",
        "flash.chips_per_channel": "1",
        "flash.dies_per_chip": "1",
        "flash.planes_per_die": "1",
        "flash.blocks_per_plane": str(blocks),
        "flash.pages_per_block": "64",
        "flash.page": "4KiB",
        "flash.variation.model": "none",
    }
    if config.trace is not None:
        values["workload.out_of_range"] = "compact"
    overrides = [Override("trace fit", key, value) for key, value in values.items()]
    mapping = run_config(load_text("workload", text, overrides)).to_dict()["mapping"]
    lookups = mapping["hits"] + mapping["misses"]
    return float(mapping["misses"] / lookups) if lookups else 0.0


def updated_ratio(config: Config, device: _core.Device | None) -> float:
    """Returns the share of updated entries among the mapping entries that a run programs."""
    from ftlab.running import RunOptions, run_core

    done = run_core(config, RunOptions(device=device))
    found = json.loads(done.json)["mapping"]["updated_ratio"]
    if found is None:
        raise UserError(
            "updated_ratio: nothing was flushed; it needs a device that flushes mappings, such as msftl"
        )
    return float(found)


def conflicts(
    config: Config, device: _core.Device | None, progress: Progress | None = None
) -> tuple[int, int]:
    """Returns the numbers of conflicts of reads and of writes in a run."""
    from ftlab.running import RunOptions, run_core

    done = run_core(config, RunOptions(device=device, progress=progress))
    found = json.loads(done.json)["conflicts"]
    return found["read"], found["write"]
