"""Reads measured rows from fio's JSON, of all versions that name the options of a job (2.3 and later).

Source: axboe/fio stat.c (show_thread_status_json, add_ddir_status_json) of 2.2.10, 2.4, 2.21, 3.0 and 3.33.
Times are in us before fio 3.0 (``lat``, ``clat``), since then in ns (``lat_ns``, ``clat_ns``).
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import zip_longest
from typing import Any

from ftlab._core import UserError
from ftlab.calibration.latencies import Latencies, latencies, number, pooled
from ftlab.calibration.logged import logged
from ftlab.calibration.row import (
    LEAST_BLOCK,
    MOST_BLOCK,
    MOST_DEPTH,
    OPERATIONS,
    PERCENTILES,
    Row,
    Tell,
    loop_fault,
    printable,
    shown,
    tail_fault,
)

_START = re.compile(r"^[ \t]*\{", re.MULTILINE)
_NEXT = re.compile(r"\s*\{")
_NAME = re.compile(r'(?<!\\)"jobname"\s*:')
# Some versions print figures that they do not have as C does, which JSON knows nothing of.
_NOT_JSON = re.compile(r"(:\s*)[-+]?(?:nan|inf)\b", re.IGNORECASE)
_SIZE = re.compile(r"(0x[0-9a-f]+|[0-9]+)(?:([kmg])(ib)?[a-z]*|b)?", re.IGNORECASE)
_SMALL = re.compile("[0-9]{1,5}")

WAITING = ("psync", "sync", "vsync", "pvsync", "pvsync2", "mmap")
"""Engines of fio that wait for each request, whatever iodepth says; the first is fio's default."""

_CACHED = (*WAITING, "libaio", "io_uring", "posixaio")
_DIRECTIONS = ("read", "write", "trim")
_ALL_CLIENTS = "All clients"
_USUAL_BLOCK = "4096"

SAME = 0.01
"""By how much the mean size of requests differs from the options' at most: the last may be shorter."""

OTHERWISE: Mapping[str, tuple[str, ...]] = {
    "blockalign": (),
    "blocksize_range": (),
    "bsrange": (),
    "bssplit": (),
    "fdatasync": ("0",),
    "fsync": ("0",),
    "latency_target": ("0",),
    "loops": ("1",),
    "random_distribution": ("random",),
    "rate": ("0",),
    "rate_iops": ("0",),
    "read_iolog": (),
    "sync": ("0", "none"),
    "thinktime": ("0",),
    "verify": ("0",),
    "zonemode": ("none", "zbd"),
    "zoneskip": ("0",),
}
"""Options of fio that make a job another load than the plain closed loop of a row; of each the values that
change nothing.
"""


@dataclass(frozen=True)
class _Job:
    """A job of fio, or all jobs of one section that it reports together."""

    name: str
    file: str
    line: int
    fields: Mapping[str, Any]
    options: Mapping[str, str]
    version: str

    @property
    def where(self) -> str:
        """Returns the file, the line and the job, for messages."""
        return f"{self.file}:{self.line}: job {shown(self.name)}"


@dataclass(frozen=True)
class _Load:
    """What a job asked of the drive."""

    op: str
    bs: int
    depth: int
    engine: str


class _LeftOutError(Exception):
    """Why jobs cannot be a row."""


def read_fio(file: str, text: str, tell: Tell) -> list[Row]:
    """Returns the rows of all JSON documents in a text; ``file`` names it in messages.

    Raises:
        UserError: no document is there, it is damaged, or it or a log is not fio's.
    """
    documents = list(_documents(file, text))
    if not documents:
        raise UserError(
            f"{file}: holds no JSON; measure with fio --output-format=json+ --output=NAME.json NAME.fio; name"
            " a table .csv or .csv.gz, and what else is compressed .json.gz"
        )
    rows: list[Row] = []
    for (place, document, lines), after in zip_longest(documents, documents[1:]):
        groups = _groups(place, document, lines)
        if after is not None and _is_interim(document, after[1]):
            continue
        for group in groups:
            try:
                rows += logged(_row(file, document, group, tell), group[0].options, tell)
            except _LeftOutError as reason:
                tell(f"{group[0].where}: left out: {reason}")
    return rows


def _is_interim(document: Mapping[str, Any], after: Mapping[str, Any]) -> bool:
    """Returns whether the document after this one reports the same run of fio again (--status-interval)."""
    begun_ms, written_ms = _begun_ms(after), _written_ms(document)
    if begun_ms is None or written_ms is None or _names(document) != _names(after):
        return False
    # fio rounds up to seconds how long it ran.
    return begun_ms <= written_ms - 1000


def _names(document: Mapping[str, Any]) -> list[Any]:
    listed = document.get("jobs")
    return [job.get("jobname") for job in listed if isinstance(job, dict)] if isinstance(listed, list) else []


def _written_ms(document: Mapping[str, Any]) -> float | None:
    seconds = number(document.get("timestamp"))
    return number(document.get("timestamp_ms")) or (seconds and seconds * 1000)


def _begun_ms(document: Mapping[str, Any]) -> float | None:
    listed, written = document.get("jobs"), _written_ms(document)
    if written is None or not isinstance(listed, list):
        return None
    ran_s = [number(job.get("elapsed")) or 0 for job in listed if isinstance(job, dict)]
    return written - max(ran_s, default=0) * 1000


def _documents(file: str, text: str) -> Iterator[tuple[str, dict[str, Any], list[int]]]:
    """Yields the place of each JSON document, the document, and the line of each of its jobs.

    fio prints warnings into the same file, before the document; they are skipped.
    """
    text = _NOT_JSON.sub(r"\1null", text)
    decoder = json.JSONDecoder()
    at, counted, line = 0, 0, 1
    while found := _NEXT.match(text, at) or _START.search(text, at):
        begin = found.end() - 1
        line += text.count("\n", counted, begin)
        counted = begin
        try:
            document, at = decoder.raw_decode(text, begin)
        except json.JSONDecodeError as error:
            raise UserError(
                f"{file}:{error.lineno}: the JSON that begins in line {line} is damaged or cut short"
                f" ({error.msg.lower()}); measure this job again"
            ) from None
        except (RecursionError, ValueError):
            raise UserError(f"{file}:{line}: not the JSON of fio; name a file that fio wrote") from None
        names, lines, seen = [match.start() for match in _NAME.finditer(text, begin, at)], [], begin
        last = line
        for start in names:
            last += text.count("\n", seen, start)
            seen = start
            lines.append(last)
        yield f"{file}:{line}", document, lines


def _groups(place: str, document: Mapping[str, Any], lines: Sequence[int]) -> list[list[_Job]]:
    """Returns the jobs of a document in their groups: those that ran at the same time.

    Raises:
        UserError: the document is not fio's.
    """
    listed = document.get("jobs", document.get("client_stats"))
    if not isinstance(listed, list) or not all(isinstance(job, dict) for job in listed):
        raise UserError(f"{place}: not the JSON of fio, it holds no jobs; name the files that fio wrote")
    shared = _options(document.get("global options"))
    version = printable(document.get("fio version", "fio"))[:40]
    file, _, begin = place.rpartition(":")
    groups: dict[str, list[_Job]] = {}
    for index, fields in enumerate(listed):
        name = str(fields.get("jobname", ""))
        if name == _ALL_CLIENTS:
            continue
        line = lines[index] if len(lines) == len(listed) else int(begin)
        options = {**shared, **_options(fields.get("job options"))}
        # Each client has groups of its own.
        key = f"{fields.get('hostname', '')}:{fields.get('port', '')}:{fields.get('groupid', index)}"
        groups.setdefault(key, []).append(_Job(name, file, line, fields, options, version))
    return list(groups.values())


def _options(value: Any) -> dict[str, str]:
    return {str(name): printable(held) for name, held in value.items()} if isinstance(value, dict) else {}


def _row(file: str, document: Mapping[str, Any], group: Sequence[_Job], tell: Tell) -> Row:
    """Returns the row of jobs that ran at the same time.

    Raises:
        _LeftOutError: they cannot be a row.
    """
    for job in group:
        if failed := number(job.fields.get("error")):
            raise _LeftOutError(f"job {shown(job.name)} ended with error {failed:g}")
    parts = [_part(job, tell) for job in group]
    if len({load for load, _ in parts}) > 1:
        names = ", ".join(dict.fromkeys(shown(job.name) for job in group[:5]))
        raise _LeftOutError(f"the jobs {names} ran at the same time; give each section a stonewall")
    first, load, each = group[0], parts[0][0], [found for _, found in parts]
    whole = pooled(each)
    if not any(whole.tail.values()) and any(any(found.tail.values()) for found in each):
        tell(
            f"{first.where}: percentiles of {len(group)} jobs cannot be added up, they are left out; measure"
            " with group_reporting, or with --output-format=json+"
        )
    elif missing := [f"{PERCENTILES[name]:g}" for name, late in whole.tail.items() if late is None]:
        tell(
            f"{first.where}: without the percentiles {', '.join(missing)}; measure without"
            " clat_percentiles=0, disable_clat and percentile_list"
        )
    p50, p99, p999 = whole.tail.values()
    row = Row(
        *(
            _drive(document, first, file),
            load.op,
            load.bs,
            load.depth,
            _count(group),
            load.engine,
            whole.iops,
        ),
        *(whole.mean_us, p50, p99, p999, file, first.line, file),
        written=sum(_written(job) for job in group),
    )
    if wrong := loop_fault(row):
        raise _LeftOutError(wrong)
    if wrong := tail_fault(row):
        # Some builds of fio write the largest latency of their histogram as every percentile.
        tell(f"{first.where}: its percentiles are left out: {wrong.partition(':')[0]}")
        return replace(row, p50_us=None, p99_us=None, p999_us=None)
    return row


def _count(group: Sequence[_Job]) -> int:
    """Returns how many jobs ran: each is reported apart, or all of a section as one."""
    given = group[0].options.get("numjobs", "1")
    return max(int(given), 1) if len(group) == 1 and _SMALL.fullmatch(given) else len(group)


def _part(job: _Job, tell: Tell) -> tuple[_Load, Latencies]:
    """Returns a job's load and figures.

    Raises:
        _LeftOutError: they cannot be those of a row.
    """
    used = _used(job)
    if not used:
        mixed = "mixed" in job.fields
        raise _LeftOutError("reads and writes are reported as one" if mixed else "no request completed")
    if len(used) > 1:
        raise _LeftOutError(f"a job of {' and '.join(f'{name}s' for name in used)}; a row has one operation")
    if not job.options:
        raise _LeftOutError(
            f"{job.version} does not say what the job was; measure with a later fio, or write a table"
        )
    for name, plain in OTHERWISE.items():
        if (value := job.options.get(name, "")) not in ("", *plain):
            raise _LeftOutError(f"{name}={value[:40]} makes it another load than a plain closed loop")
    load = _load(job, used[0], tell)
    if not number(job.fields[used[0]].get("iops")):
        raise _LeftOutError(f"its rate is not a number above 0 (iops of {used[0]}); measure this job again")
    found = latencies(job.fields[used[0]])
    if found is None:
        raise _LeftOutError("fio kept no latencies (gtod_reduce, disable_lat)")
    return load, found


def _used(job: _Job) -> list[str]:
    return [name for name in _DIRECTIONS if _completed(job.fields.get(name))]


def _completed(fields: Any) -> bool:
    return isinstance(fields, dict) and bool(number(fields.get("iops")) or number(fields.get("total_ios")))


def _load(job: _Job, direction: str, tell: Tell) -> _Load:
    op = job.options.get("rw", job.options.get("readwrite", ""))
    if op in OPERATIONS and not op.endswith(direction):
        tell(f"{job.where}: rw={op} is not what it did: it is taken for {direction}s in order")
        op = direction
    elif not op:
        # fio's own default is reads in order.
        if direction != _DIRECTIONS[0] or "job options" not in job.fields:
            tell(f"{job.where}: does not say whether at random (rw): it is taken for {direction}s in order")
        op = direction
    # SPDK's engine has an option of its own.
    if op == "write" and job.options.get("zone_append", "0") != "0":
        op = "append"
    if op not in OPERATIONS:
        raise _LeftOutError(f"rw={op[:40]} is not one of {', '.join(OPERATIONS)}")
    bs = _agreed(job, direction, tell)
    text = job.options.get("iodepth", "1")
    if not _SMALL.fullmatch(text) or not 1 <= int(text) <= MOST_DEPTH:
        raise _LeftOutError(f"iodepth={text[:40]} is not a number of requests")
    depth, engine = int(text), job.options.get("ioengine", WAITING[0])
    if "-ftlab-" in job.version:
        engine = "ftlab"
    elif "spdk" in engine:
        engine = "spdk"
    if engine in WAITING and depth > 1:
        tell(f"{job.where}: engine {engine} keeps one request outstanding, not iodepth={depth}: depth is 1")
        depth = 1
    direct = job.options.get("direct", "0") != "0" or job.options.get("buffered", "1") == "0"
    if engine in _CACHED and not direct:
        tell(f"{job.where}: direct=1 is not among its options; are the figures those of the page cache?")
    return _Load(op, bs, depth, engine)


def _agreed(job: _Job, direction: str, tell: Tell) -> int:
    """Returns the bytes of a request: the options' where the figures agree, else those of the figures."""
    stated, fields = _block(job.options, direction), job.fields[direction]
    moved, count = number(fields.get("io_bytes")), number(fields.get("total_ios"))
    if not moved or not count:
        return stated
    # io_bytes was in KiB before io_kbytes came.
    sizes = [moved / count] if "lat_ns" in fields else [moved / count, moved / count * 1024]
    # What is under way when the ramp ends counts in one of the two figures alone.
    ramped = "ramp_time" in job.options
    under_way = (_whole(job, "iodepth") + 1) * _whole(job, "numjobs") / count if ramped else 0.0
    if any(abs(size - stated) <= (SAME + under_way) * stated for size in sizes):
        return stated
    size, said = sizes[-1], f"bs={job.options.get('bs', job.options.get('blocksize', 'unknown'))[:40]}"
    found = round(size / LEAST_BLOCK) * LEAST_BLOCK
    if not _is_near(size, found) or not LEAST_BLOCK <= found <= MOST_BLOCK:
        raise _LeftOutError(f"{said}, but its requests are of {size:,.1f} B in the mean; a row has one size")
    tell(f"{job.where}: {said}, but its requests are of {found} B (io_bytes / total_ios): bs is {found}")
    return found


def _whole(job: _Job, option: str) -> int:
    text = job.options.get(option, "1")
    return int(text) if text.isdecimal() else 1


def _is_near(size: float, other: float) -> bool:
    return abs(size - other) <= SAME * other


def _written(job: _Job) -> float:
    """Returns how many bytes a job wrote; 0 if fio counts them in KiB, or not at all."""
    fields = job.fields.get("write")
    return (number(fields.get("io_bytes")) or 0.0) if isinstance(fields, dict) and "lat_ns" in fields else 0.0


def _block(options: Mapping[str, str], direction: str) -> int:
    """Returns the bytes of a request; reads, writes and trims can have their own, as in bs=4k,8k."""
    text = options.get("bs", options.get("blocksize", _USUAL_BLOCK))
    parts, at = re.split("[,:-]", text), _DIRECTIONS.index(direction)
    # As in fio: the last size holds for those after it, and an empty place is as if there were no bs.
    found = _SIZE.fullmatch(parts[min(at, len(parts) - 1)] or _USUAL_BLOCK)
    size = _bytes(found, options.get("kb_base", "1024")) if found else 0
    if not LEAST_BLOCK <= size <= MOST_BLOCK:
        raise _LeftOutError(f"bs={text[:40]} is not a size from {LEAST_BLOCK} to {MOST_BLOCK}")
    return size


def _bytes(found: re.Match[str], kb_base: str) -> int:
    """Returns a size of fio in bytes: KiB is what k is not, a power of 1000 where kb_base is not 1000."""
    number, unit, binary = found.groups()
    kilo = 1024 if (kb_base == "1000") == bool(binary) else 1000
    digits = int(number[:18], 16 if number[:2].lower() == "0x" else 10)
    return digits * int(kilo ** ("kmg".index(unit.lower()) + 1 if unit else 0))


def _drive(document: Mapping[str, Any], job: _Job, file: str) -> str:
    """Returns the name of the drive: of its device file, else of the only disk that fio lists."""
    name = job.options.get("filename", "")
    if name.startswith("/dev/"):
        return name.removeprefix("/dev/")
    disks = document.get("disk_util")
    if isinstance(disks, list) and len(disks) == 1 and isinstance(disks[0], dict) and disks[0].get("name"):
        return printable(disks[0]["name"])
    return name or file
