"""What is measured for a configuration: its run, its tenants, its workload alone, or two caches together."""

from __future__ import annotations

import json
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from ftlab import _core
from ftlab._core import Config
from ftlab.results.lifetime import with_lifetime
from ftlab.results.result import OPS
from ftlab.running import RunOptions, run_config, run_core
from ftlab.tenants import with_slowdowns

if TYPE_CHECKING:
    from ftlab._core import Columns, Device, Progress

LOOK_EVERY = 1000
"""The number of requests between two comparisons of the caches, as between two polls in the paper."""


def measure(
    how: str,
    config: Config,
    *,
    sequence: Sequence[Config] = (),
    collect: bool = False,
    device: Device | None = None,
    progress: Progress = lambda requests: None,
) -> dict[str, Any]:
    """Measures a configuration; returns a plain dictionary, which is deterministic except for its ``engine``
    block, if it has one.
    """
    if how == "workload":
        return _workload(config)
    if how == "shared-entries":
        return _shared_entries(config, progress)
    if how == "tenants":
        return _tenants(config, progress)
    return _run(config, sequence, collect, device, progress)


def _run(
    config: Config, sequence: Sequence[Config], collect: bool, device: Device | None, progress: Progress
) -> dict[str, Any]:
    options = RunOptions(
        chunks=(lambda: _in_sequence(sequence)) if sequence else None,
        device=device,
        collect=collect,
        progress=progress,
        preconditioning=lambda *_: progress(0),
    )
    done = run_core(config, options)
    result = with_lifetime(json.loads(done.json))
    columns = done.take_columns() if collect else None
    if columns is not None:
        import numpy as np

        result["requests"] = {name: np.asarray(column).tolist() for name, column in columns.items()}
        result["requests"]["op"] = [OPS[code] for code in result["requests"]["op"]]
    # The path of the trace is not part of what was measured.
    result["config"]["workload"]["trace"] = _base_name(config)
    return result


def _tenants(config: Config, progress: Progress) -> dict[str, Any]:
    """Returns the result of a run with the slowdowns of its tenants, each of which also runs alone."""
    options = RunOptions(progress=progress, preconditioning=lambda *_: progress(0))
    return with_slowdowns(run_config(config, options), config, options).to_dict()


def _in_sequence(parts: Sequence[Config]) -> Iterator[Columns]:
    """Yields the requests of several traces, each starting where the previous one ends."""
    import numpy as np

    from ftlab.traces import CHUNK_ROWS

    end = 0
    for part in parts:
        last = end
        chunks = _core.trace_chunks(part, CHUNK_ROWS)
        for columns in chunks:
            times, ops, offsets, sizes, flags, streams = (np.asarray(column) for column in columns)
            times = times.astype(np.int64) + end
            yield (
                times,
                ops.astype(np.uint8),
                offsets.astype(np.int64),
                sizes.astype(np.int64),
                flags.astype(np.uint8),
                *([streams.astype(np.int64)] if chunks.has_streams else []),
            )
            last = int(times[-1]) if times.size else last
        end = last


def _base_name(config: Config) -> str | None:
    return config.trace.replace("\\", "/").rsplit("/", 1)[-1] if config.trace else None


def _workload(config: Config) -> dict[str, Any]:
    from ftlab.fitting import measure as fitting

    found = fitting.measure(config)
    reads, writes, trims = found.counts
    total = found.read_sizes.total() + found.write_sizes.total()
    size = sum(
        size * count for counts in (found.read_sizes, found.write_sizes) for size, count in counts.items()
    )
    return {
        "requests": found.requests,
        "reads": reads,
        "writes": writes,
        "trims": trims,
        "sequential_ratio": found.sequential_ratio,
        "mean_size_bytes": size / total if total else None,
        "mean_gap_ns": found.mean_gap_ns,
        "gap_cv": found.gap_cv,
        "burst_length": found.burst_length,
    }


def _shared_entries(config: Config, progress: Progress) -> dict[str, Any]:
    """Measures how much a plain LRU cache on the host and DFTL's segmented LRU cache have in common.

    Both caches see the pages in the order of arrival, as under noop. After every `LOOK_EVERY` requests, the
    share of the LRU cache's entries that are also in DFTL's cache is measured. (MAP+, section V-D.)
    """
    import numpy as np

    from ftlab.traces import CHUNK_ROWS

    settings = json.loads(config.json())
    page = _bytes(settings["flash"]["page"])
    capacity = _bytes(settings["ftl"]["mapping_cache"]) // _bytes(settings["ftl"]["entry"])
    lru, slru = _Lru(capacity), _Slru(capacity)
    looks: list[float] = []
    requests = 0
    for columns in _core.trace_chunks(config, CHUNK_ROWS):
        _, ops, offsets, sizes, *_ = (np.asarray(column) for column in columns)
        for op, offset, size in zip(ops.tolist(), offsets.tolist(), sizes.tolist(), strict=True):
            if op <= 1 and size:
                for lpn in range(offset // page, (offset + size - 1) // page + 1):
                    lru.touch(lpn)
                    slru.touch(lpn)
            requests += 1
            if requests % LOOK_EVERY == 0 and lru.entries:
                if progress(requests) is False:
                    raise KeyboardInterrupt
                looks.append(sum(lpn in slru for lpn in lru.entries) / len(lru.entries))
    lookups = lru.hits + lru.misses
    return {
        "looks": len(looks),
        "shared_ratio": sum(looks) / len(looks) if looks else None,
        "lru_hit_ratio": lru.hits / lookups if lookups else None,
        "slru_hit_ratio": slru.hits / lookups if lookups else None,
    }


def _bytes(text: str) -> int:
    units = {"KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30, "B": 1}
    for unit, factor in units.items():
        if text.endswith(unit):
            return int(float(text.removesuffix(unit)) * factor)
    return int(text)


class _Lru:
    """An LRU cache of entries."""

    def __init__(self, capacity: int) -> None:
        self.entries: OrderedDict[int, None] = OrderedDict()
        self._capacity = capacity
        self.hits = self.misses = 0

    def touch(self, lpn: int) -> None:
        if lpn in self.entries:
            self.entries.move_to_end(lpn)
            self.hits += 1
            return
        self.misses += 1
        self.entries[lpn] = None
        if len(self.entries) > self._capacity:
            self.entries.popitem(last=False)


class _Slru:
    """DFTL's segmented LRU cache: a protected segment of an eighth of the entries, the rest on probation."""

    def __init__(self, capacity: int) -> None:
        self._capacity = capacity
        self._most_protected = capacity // 8
        self._protected: OrderedDict[int, None] = OrderedDict()
        self._probation: OrderedDict[int, None] = OrderedDict()
        self.hits = self.misses = 0

    def __contains__(self, lpn: int) -> bool:
        return lpn in self._protected or lpn in self._probation

    def touch(self, lpn: int) -> None:
        if lpn in self:
            self.hits += 1
            self._promote(lpn)
            return
        self.misses += 1
        if len(self._protected) + len(self._probation) >= self._capacity:
            (self._probation or self._protected).popitem(last=False)
        self._probation[lpn] = None

    def _promote(self, lpn: int) -> None:
        self._probation.pop(lpn, None)
        self._protected[lpn] = None
        self._protected.move_to_end(lpn)
        if len(self._protected) > self._most_protected:
            older, _ = self._protected.popitem(last=False)
            self._probation[older] = None
