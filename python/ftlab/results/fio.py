"""Results in the layout of fio's JSON, for the scripts and plots that read it.

Source: axboe/fio stat.c (show_thread_status_json, add_ddir_status_json, add_ddir_lat_json,
json_array_add_disk_util), io_u.c (io_u_mark_latency), and the output of fio 3.33, whose keys these are.
Simulated time takes the place of wall time. Fields for which ftlab has no value are left out: the time of
day, and batches of submissions. docs/fio-output.md describes the fields.
"""

from __future__ import annotations

import errno
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from ftlab._core import __version__
from ftlab.configs import to_text
from ftlab.results.histogram import PERCENTILES, Histogram, midpoint

if TYPE_CHECKING:
    import numpy as np

    from ftlab.results.result import Result

    Times = np.ndarray[Any, Any]

VERSION = f"fio-3.33-ftlab-{__version__}"
"""The fio version whose layout is written, named as fio names its own builds."""

DIRECTIONS = {"read": "R", "write": "W", "trim": "T", "sync": "F"}
"""ftlab's letter of each operation, by fio's name for it."""

SAMPLE_NS = 500_000_000
"""The interval that one of fio's bandwidth samples covers (bwavgtime)."""

STREAMS = 16
"""How many requests back the one may be that a request in order continues, as workers take turns."""

_LIMITS = (2, 4, 10, 20, 50, 100, 250, 500, 750, 1000)
_DEPTHS = (1, 2, 4, 8, 16, 32)


@dataclass(frozen=True)
class Direction:
    """Figures of the requests of one operation: reads, writes or trims."""

    total_ios: int
    """Number of completed requests."""
    io_bytes: int
    """The requests' total size in bytes."""
    slat: Histogram
    """Wait times of the requests."""
    clat: Histogram
    """Access times of the requests."""
    lat: Histogram
    """Latencies of the requests."""
    samples: list[tuple[int, int]]
    """KiB/s and requests/s, for every interval in which requests completed."""
    random: bool
    """Whether most requests do not continue one shortly before them."""


@dataclass(frozen=True)
class Digest:
    """The figures in fio's layout that are computed from individual requests."""

    directions: dict[str, Direction]
    """Figures of each operation, by fio's name for it."""
    depths: dict[str, float]
    """Percentages of the requests, by how many were outstanding at their arrival, including the request
    itself.
    """
    levels: dict[str, dict[str, float]]
    """``latency_ns``, ``latency_us`` and ``latency_ms``: percentages of the requests by access time."""
    busy_ns: int
    """Time during which the device had at least one request."""
    elapsed_ns: int
    """How long the requests took in all."""
    section: Section | None = None
    """The section of a fio job whose requests these are; None: all requests of the run."""
    parts: tuple[Digest, ...] = ()
    """The same for each section of a fio job; none without a job, or where sections ran at the same time."""


@dataclass(frozen=True)
class Section:
    """A section of a fio job."""

    name: str
    iodepth: int
    """Requests that each of its ``numjobs`` workers keeps outstanding."""
    numjobs: int


def sections(benchmark: Mapping[str, Any] | None) -> list[Section]:
    """Returns the sections of the fio job that a run did; none if it did another load."""
    if benchmark is None or benchmark["name"] != "fio":
        return []
    given: dict[str, list[str]] = {}
    for name, value in benchmark["parameters"]:
        given.setdefault(name, []).append(value)
    rows = zip(given["job"], given["iodepth"], given["numjobs"], strict=True)
    return [Section(name, int(iodepth), int(numjobs)) for name, iodepth, numjobs in rows]


def digest(result: Result) -> Digest:
    """Reduces the requests of a run to what fio's layout needs.

    Raises:
        UserError: the requests were not collected.
    """
    import numpy as np

    names = ("arrival_ns", "dispatch_ns", "complete_ns", "op", "offset", "size")
    columns = {name: result.column(name) for name in names}
    arrival, benchmark = columns["arrival_ns"], result.to_dict().get("benchmark")
    found = _digest(columns, int(arrival.min()) if len(arrival) else 0, result["elapsed_ns"])
    # One run for each section, if each waited for the one before it (stonewall).
    runs, listed = (benchmark or {}).get("runs", []), sections(benchmark)
    if len(listed) < 2 or len(runs) != len(listed):
        return found
    of = np.searchsorted(np.array([run["from_ns"] for run in runs]), arrival, side="right") - 1
    parts = []
    for number, (section, run) in enumerate(zip(listed, runs, strict=True)):
        own = {name: values[of == number] for name, values in columns.items()}
        parts.append(replace(_digest(own, run["from_ns"], run["elapsed_ns"]), section=section))
    return replace(found, parts=tuple(parts))


def _digest(columns: Mapping[str, Times], start: int, elapsed: int) -> Digest:
    import numpy as np

    from ftlab.results.result import REFUSED

    arrival, dispatch, complete, op, offset, size = columns.values()
    done = complete != np.uint64(REFUSED)
    whole = elapsed // SAMPLE_NS
    directions = {}
    for name, letter in DIRECTIONS.items():
        mine = done & (op == letter)
        begin, sent, end, sizes = arrival[mine], dispatch[mine], complete[mine], size[mine]
        directions[name] = Direction(
            total_ios=int(mine.sum()),
            io_bytes=int(sizes.sum()),
            slat=Histogram(sent - begin),
            clat=Histogram(end - sent),
            lat=Histogram(end - begin),
            samples=_samples(end - np.uint64(start), sizes, whole),
            random=_is_random(begin, offset[mine], sizes),
        )
    data = done & ((op == "R") | (op == "W") | (op == "T"))
    return Digest(
        directions,
        _depths(arrival[data], complete[data]),
        _levels(complete[data] - dispatch[data]),
        _busy_ns(dispatch[done], complete[done]),
        elapsed,
    )


def _is_random(arrival: Times, offset: Times, size: Times) -> bool:
    import numpy as np

    order = np.argsort(arrival, kind="stable")
    begin, end = offset[order], (offset + size)[order]
    continued = np.zeros(len(begin), dtype=bool)
    for back in range(1, min(STREAMS, len(begin) - 1) + 1):
        continued[back:] |= begin[back:] == end[:-back]
    return 2 * int(continued.sum()) < len(begin) - 1


def _samples(ends: Times, sizes: Times, whole: int) -> list[tuple[int, int]]:
    """Returns samples as fio takes them: one for each whole interval in which a request completed."""
    import numpy as np

    index = (ends // np.uint64(SAMPLE_NS)).astype(np.int64)
    intervals, position, counts = np.unique(index, return_inverse=True, return_counts=True)
    moved = np.bincount(position, weights=sizes.astype(np.float64), minlength=len(intervals))
    per_s = 1_000_000_000 // SAMPLE_NS
    return [
        (int(moved[each]) * per_s // 1024, int(counts[each]) * per_s)
        for each in range(len(intervals))
        if intervals[each] < whole
    ]


def _depths(arrival: Times, complete: Times) -> dict[str, float]:
    import numpy as np

    # A request that completes at the instant of an arrival is still outstanding, and so is the arriving
    # request.
    gone = np.searchsorted(np.sort(complete), np.sort(arrival), side="left")
    depth = np.arange(1, len(arrival) + 1) - gone
    edges = np.array([*_DEPTHS, 64])
    counts = np.bincount(np.searchsorted(edges, depth, side="right") - 1, minlength=len(edges))
    names = [*map(str, _DEPTHS), ">=64"]
    return dict(zip(names, _percent(counts.tolist()), strict=True))


def _levels(access: Times) -> dict[str, dict[str, float]]:
    import numpy as np

    # The first bucket of a unit begins where the previous unit ends.
    edges = [0, *_LIMITS]
    edges += [limit * 1000 for limit in _LIMITS] + [limit * 1_000_000 for limit in (*_LIMITS, 2000)]
    found = np.searchsorted(np.array(edges, dtype=np.uint64), access, side="right") - 1
    shares = _percent(np.bincount(found, minlength=len(edges)).tolist())
    names = [*map(str, _LIMITS)]
    return {
        "latency_ns": dict(zip(names, shares[:10], strict=True)),
        "latency_us": dict(zip(names, shares[10:20], strict=True)),
        "latency_ms": dict(zip([*names, "2000", ">=2000"], shares[20:], strict=True)),
    }


def _percent(counts: list[int]) -> list[float]:
    total = sum(counts)
    return [round(100 * count / total, 6) if total else 0.0 for count in counts]


def _busy_ns(dispatch: Times, complete: Times) -> int:
    """Returns how long the device had at least one request, from ``dispatch`` to ``complete`` of each."""
    import numpy as np

    if not len(dispatch):
        return 0
    order = np.argsort(dispatch, kind="stable")
    begin, end = dispatch[order].astype(np.int64), complete[order].astype(np.int64)
    before = np.concatenate(([begin[0]], np.maximum.accumulate(end)[:-1]))
    return int(np.maximum(end - np.maximum(begin, before), 0).sum())


def document(results: Sequence[tuple[str, Result]], *, plus: bool = False) -> dict[str, Any]:
    """Returns fio's document, with a job per result, or per section of a fio job, each in a group of its own;
    ``plus`` adds json+'s bins.

    Configuration keys with the same value in all results are ``global options``, all other keys are ``job
    options``.
    """
    options = [dict(_flat(result["config"].to_dict())) for _, result in results]
    shared = {
        key: value
        for key, value in (options[0] if options else {}).items()
        if all(other.get(key) == value for other in options)
    }
    jobs: list[dict[str, Any]] = []
    for (name, result), given in zip(results, options, strict=True):
        own = {key: value for key, value in given.items() if key not in shared}
        found = result.fio_digest()
        for part in found.parts or (found,):
            section = part.section.name if part.section else ""
            named = section if section and len(results) == 1 else ": ".join(filter(None, (name, section)))
            jobs.append(_job(named, len(jobs), result, part, own, plus))
    return {
        "fio version": VERSION,
        "global options": shared,
        "jobs": jobs,
        "disk_util": [_disk(name, result) for name, result in results],
    }


def _flat(config: Mapping[str, Any], prefix: str = "") -> Iterable[tuple[str, str]]:
    for key, value in config.items():
        if isinstance(value, Mapping):
            yield from _flat(value, f"{prefix}{key}.")
        elif value is not None:
            yield prefix + key, to_text(value)


def _job(
    name: str, group: int, result: Result, found: Digest, own: dict[str, str], plus: bool
) -> dict[str, Any]:
    data = result.to_dict()
    elapsed = found.elapsed_ns
    job: dict[str, Any] = {
        "jobname": name,
        "groupid": group,
        "error": errno.EROFS if any(data["health"]["failed"].values()) else 0,
        "eta": 0,
        "elapsed": math.ceil(elapsed / 1e9),
        "job options": {"name": name, **_options(data, found), **own},
    }
    for direction in ("read", "write", "trim"):
        job[direction] = _direction(found.directions[direction], elapsed, plus)
    sync = found.directions["sync"]
    job["sync"] = {"total_ios": sync.total_ios, "lat_ns": _latency(sync.lat, plus)}
    job["job_runtime"] = round(elapsed / 1e6)
    if "page_cache" not in data:
        # Simulated requests use no processor time. With a page cache they do, but ftlab keeps no total of
        # it, so these fields are left out.
        job |= {"usr_cpu": 0.0, "sys_cpu": 0.0, "ctx": 0, "majf": 0, "minf": 0}
    return job | {"iodepth_level": found.depths, **found.levels}


def _options(data: dict[str, Any], found: Digest) -> dict[str, str]:
    """Returns the options of fio that a run determines; plots choose by them, and use them as labels."""
    read, write, trim = (found.directions[name] for name in ("read", "write", "trim"))
    used = {name: each for name, each in (("read", read), ("write", write), ("trim", trim)) if each.total_ios}
    most = max(used.values(), key=lambda each: each.total_ios, default=read)
    # fio separates the sizes of reads and writes by a comma; the sizes here are means.
    sizes = [str(round(each.io_bytes / each.total_ios)) for each in (read, write) if each.total_ios]
    listed = [found.section] if found.section else sections(data.get("benchmark"))
    jobs = listed[0].numjobs if len(listed) == 1 else 1
    # Sections that ran at the same time are one job, with all that they kept outstanding.
    depth = (
        sum(each.iodepth * each.numjobs for each in listed) // jobs or data["config"]["host"]["queue_depth"]
    )
    return {
        "rw": ("rand" if most.random else "") + ("rw" if len(used) > 1 else next(iter(used), "rw")),
        "bs": ",".join(dict.fromkeys(sizes)),
        "iodepth": to_text(depth),
        "numjobs": str(jobs),
    }


def _direction(found: Direction, elapsed: int, plus: bool) -> dict[str, Any]:
    ran = elapsed if found.total_ios else 0
    bandwidth = found.io_bytes * 1_000_000_000 // ran if ran else 0
    moved, requests = ([sample[part] for sample in found.samples] for part in (0, 1))
    bw_mean, bw_dev = _mean_and_deviation(moved)
    iops_mean, iops_dev = _mean_and_deviation(requests)
    return {
        "io_bytes": found.io_bytes,
        "io_kbytes": found.io_bytes >> 10,
        "bw_bytes": bandwidth,
        "bw": bandwidth // 1024,
        "iops": found.total_ios * 1e9 / ran if ran else 0.0,
        "runtime": round(ran / 1e6),
        "total_ios": found.total_ios,
        "short_ios": 0,
        "drop_ios": 0,
        "slat_ns": _latency(found.slat, plus),
        "clat_ns": _latency(found.clat, plus),
        "lat_ns": _latency(found.lat, plus),
        "bw_min": min(moved, default=0),
        "bw_max": max(moved, default=0),
        "bw_agg": min(bw_mean * 102_400 / bandwidth, 100.0) if bandwidth else 0.0,
        "bw_mean": bw_mean,
        "bw_dev": bw_dev,
        "bw_samples": len(moved),
        "iops_min": min(requests, default=0),
        "iops_max": max(requests, default=0),
        "iops_mean": iops_mean,
        "iops_stddev": iops_dev,
        "iops_samples": len(requests),
    }


def _mean_and_deviation(values: list[int]) -> tuple[float, float]:
    """Returns the mean and, as fio does, the standard deviation of a sample (not of a population)."""
    if not values:
        return 0.0, 0.0
    mean = sum(values) / len(values)
    squares = sum((value - mean) ** 2 for value in values)
    return mean, math.sqrt(squares / (len(values) - 1)) if len(values) > 1 else 0.0


def _latency(histogram: Histogram, plus: bool) -> dict[str, Any]:
    count = histogram.count
    correction = math.sqrt(count / (count - 1)) if count > 1 else 0.0
    found: dict[str, Any] = {
        "min": histogram.min_ns,
        "max": histogram.max_ns,
        "mean": histogram.mean_ns,
        "stddev": histogram.stddev_ns * correction,
        "N": count,
    }
    if count:
        found["percentile"] = {f"{percent:.6f}": histogram.percentile(percent) for percent in PERCENTILES}
        if plus:
            found["bins"] = {str(midpoint(low)): number for low, number in histogram.bins}
    return found


def _disk(name: str, result: Result) -> dict[str, Any]:
    """Returns the device's counters as /proc/diskstats would show them; ticks are ms of latency, summed over
    requests.
    """
    found, data = result.fio_digest(), result.to_dict()
    read, write = (found.directions[direction] for direction in ("read", "write"))
    ticks = [round(each.lat.mean_ns * each.lat.count / 1e6) for each in (read, write)]
    disk: dict[str, Any] = {
        "name": name,
        "read_ios": read.total_ios,
        "write_ios": write.total_ios,
        "read_sectors": read.io_bytes // 512,
        "write_sectors": write.io_bytes // 512,
    }
    if "file_system" not in data:
        # A trace's requests reach the scheduler unmerged.
        disk |= {"read_merges": 0, "write_merges": 0}
    elapsed = data["elapsed_ns"]
    util = 100 * found.busy_ns / elapsed if elapsed else 0.0
    return disk | {
        "read_ticks": ticks[0],
        "write_ticks": ticks[1],
        "in_queue": sum(ticks),
        "util": util,
    }
