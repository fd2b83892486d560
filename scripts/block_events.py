"""Converts the kernel's block events, as tracefs prints them, to ftlab's own csv.

Requests are taken where they are inserted into the I/O scheduler's queue
(``block_rq_insert``; ``block_rq_merge`` where the scheduler joins them to a waiting neighbour instead):
adjacent pieces have been gathered into requests, but no scheduler has reordered or delayed them yet. A flush
bypasses that queue; it is taken where it is issued (``block_rq_issue``).

``block_bio_queue``, the I/O as the file system submitted it, serves as a check: each of its bytes must turn
up in one request. A piece that joined a waiting request, and so was never inserted itself, is a request of
its own, at the time it was submitted.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TextIO

SECTOR = 512
PAGE = 4096
SUBMITTED = "block_bio_queue"
INSERTED = "block_rq_insert"
MERGED = "block_rq_merge"
ISSUED = "block_rq_issue"
EVENTS = (SUBMITTED, INSERTED, MERGED, ISSUED)

# "  sqlite3-6516  [001] ...1.  1246.662782: block_rq_insert: 7,0 RM 4096 () 16968 + 8 be,0,4 [..]"
# and for a bio, without the bytes: "block_bio_queue: 7,0 RM 16968 + 8 [..]".
LINE = re.compile(
    r"\s(?P<seconds>\d+)\.(?P<micros>\d{6}): (?P<event>block_\w+): \d+,\d+ (?P<flags>[A-Z]+) "
    r"(?:\d+ \(.*\) )?(?P<sector>\d+) \+ (?P<sectors>\d+) "
)
LOST = re.compile(r"\[LOST (\d+) EVENTS\]")


class EventError(Exception):
    """The recording cannot be turned into a trace; the message says why."""


def operation(flags: str) -> str:
    """Returns R, W, T or F for the kernel's flags (``WSM``, ``RA``, ``DS``, ``FF``, ``FWFS``).

    An F in first place is a flush before the operation; FF without an operation is a flush.
    """
    if flags == "FF":
        return "F"
    letter = flags.removeprefix("F")[:1]
    if letter in ("R", "W"):
        return letter
    if letter == "D":
        return "T"
    raise EventError(f"block event of unknown kind {flags!r}")


@dataclass
class Account:
    """Keeps the pieces that were submitted and not yet inserted, by op and first sector."""

    waiting: dict[tuple[str, int], tuple[int, int]] = field(default_factory=dict)
    joined: list[tuple[int, str, int, int]] = field(default_factory=list)
    """Pieces that were never inserted: (time, op, first sector, sectors)."""

    def submit(self, time_ns: int, op: str, sector: int, sectors: int) -> None:
        """Notes that a piece was submitted; an earlier piece of the same operation and sector must have
        joined a waiting request.
        """
        before = self.waiting.pop((op, sector), None)
        if before is not None:
            self.joined.append((before[0], op, sector, before[1]))
        self.waiting[op, sector] = (time_ns, sectors)

    def insert(self, op: str, sector: int, end: int) -> bool:
        """Notes that a request, made up of submitted pieces, was inserted; returns False if a piece is
        unknown.
        """
        while sector < end:
            piece = self.waiting.pop((op, sector), None)
            if piece is None:
                return False
            time_ns, sectors = piece
            if sector + sectors > end:
                # A large piece was split; its remainder comes in another request.
                self.waiting[op, end] = (time_ns, sector + sectors - end)
            sector += sectors
        return True

    def close(self) -> list[tuple[int, str, int, int]]:
        """Returns all pieces that were never inserted."""
        rest = [(time, op, sector, n) for (op, sector), (time, n) in self.waiting.items()]
        return self.joined + rest


Request = tuple[int, str, int, int]
"""A request: time in ns, op, offset and size in bytes."""


@dataclass
class Recording:
    """The recorded requests in order of arrival, with times relative to the first request."""

    requests: list[Request]
    joined: int
    """How many of the requests joined a waiting request instead of being inserted."""


def parse(lines: Iterable[str]) -> Recording:
    """Reads the recording from the lines of a trace_pipe; raises EventError if it is incomplete."""
    account = Account()
    requests: list[Request] = []
    for number, line in enumerate(lines, 1):
        match = LINE.search(line)
        if match is None:
            if LOST.search(line):
                raise EventError(f"line {number}: the kernel lost events: enlarge the trace buffer")
            raise EventError(f"line {number}: not a block event: {line.strip()!r}")
        event, op = match["event"], operation(match["flags"])
        sector, sectors = int(match["sector"]), int(match["sectors"])
        time_ns = (int(match["seconds"]) * 1_000_000 + int(match["micros"])) * 1000
        if op == "F":
            if event == ISSUED:
                requests.append((time_ns, op, 0, 0))
        elif event == SUBMITTED and sectors:
            account.submit(time_ns, op, sector, sectors)
        elif event == MERGED and (op, sector) not in account.waiting:
            pass  # Two queued requests became one; both had been inserted before.
        elif event in (INSERTED, MERGED):
            if not account.insert(op, sector, sector + sectors):
                raise EventError(f"line {number}: inserted, but never submitted: {line.strip()!r}")
            requests.append((time_ns, op, sector * SECTOR, sectors * SECTOR))
    joined = account.close()
    requests += [(time, op, sector * SECTOR, n * SECTOR) for time, op, sector, n in joined]
    if not requests:
        raise EventError("no request was recorded")
    requests.sort(key=lambda request: request[0])
    start_ns = requests[0][0]
    from_start = [(time - start_ns, op, offset, size) for time, op, offset, size in requests]
    return Recording(from_start, len(joined))


def write_csv(recording: Recording, file: TextIO) -> None:
    """Writes ftlab's own csv to a text file."""
    file.write("time_ns,op,offset,size\n")
    for request in recording.requests:
        file.write(",".join(map(str, request)) + "\n")


def pages(requests: Iterable[Request], ops: str) -> set[int]:
    """Returns the 4 KiB pages that requests of these operations touch."""
    touched: set[int] = set()
    for _, op, offset, size in requests:
        if op in ops:
            touched.update(range(offset // PAGE, (offset + size + PAGE - 1) // PAGE))
    return touched


def facts(recording: Recording) -> dict[str, object]:
    """Returns, by name, figures that describe the recording to people."""
    requests = recording.requests
    of = {op: [request for request in requests if request[1] == op] for op in "RWTF"}
    size = {op: sum(request[3] for request in of[op]) for op in "RWT"}
    touched, written = pages(requests, "RW"), pages(requests, "W")
    per_second: dict[int, int] = {}
    for request in requests:
        second = request[0] // 1_000_000_000
        per_second[second] = per_second.get(second, 0) + 1
    span_s = requests[-1][0] / 1e9
    rate = f"mean {len(requests) / max(span_s, 1e-6):.0f} per second"
    footprint = f"{len(touched) * PAGE} bytes read or written, {len(written) * PAGE} written"
    return {
        "requests": f"{len(requests)} ({', '.join(f'{op} {len(of[op])}' for op in 'RWTF')})",
        "bytes": ", ".join(f"{op} {size[op]}" for op in "RWT"),
        "mean size": ", ".join(f"{op} {size[op] / max(1, len(of[op])) / 1024:.1f} KiB" for op in "RWT"),
        "footprint": f"{footprint} (4 KiB pages)",
        "end address": max(offset + size for _, _, offset, size in requests),
        "span": f"{span_s:.1f} s",
        "rate": f"{rate}, busiest second {max(per_second.values())}",
        "joined in queue": recording.joined,
    }
