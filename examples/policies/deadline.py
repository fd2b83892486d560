"""mq-deadline, Linux's deadline scheduler, in Python: the order is that of ftlab's own.

ftlab compare map-plus --trace a.csv --set host.deadline=none \\
  --vary host.scheduler=mq-deadline,python:examples/policies/deadline.py:MqDeadline

Source: block/mq-deadline.c of Linux 6. A batch goes on by address from where its direction stopped; a new
batch begins with the oldest request of its direction if that one has expired.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from itertools import count

import ftlab
from ftlab import Request


class Direction:
    """The waiting reads, or the waiting writes and trims."""

    def __init__(self, expire_ns: float) -> None:
        self.expire_ns = expire_ns
        # Arrival by id, oldest first, and the places of requests in the order of their addresses.
        self.arrivals: dict[int, int] = {}
        self.places: dict[int, tuple[int, int, int]] = {}
        self.sorted: list[tuple[int, int, int]] = []
        self.numbers = count()
        self.reached = 0

    def insert(self, request: Request) -> None:
        self.arrivals.setdefault(request.id, request.arrival_ns)
        self.places[request.id] = (request.offset, next(self.numbers), request.id)
        insort(self.sorted, self.places[request.id])

    def remove(self, id: int) -> None:
        del self.arrivals[id]
        self.forget(id)

    def forget(self, id: int) -> tuple[int, int, int]:
        place = self.places.pop(id)
        del self.sorted[bisect_left(self.sorted, place)]
        return place

    def next(self) -> int | None:
        """Returns the request at the next address, if any lies ahead."""
        at = bisect_left(self.sorted, (self.reached, -1, -1))
        return self.sorted[at][2] if at < len(self.sorted) else None

    def first(self, now_ns: int) -> int:
        """Returns the request that begins a batch."""
        oldest, arrival_ns = next(iter(self.arrivals.items()))
        ahead = self.next()
        return oldest if ahead is None or now_ns - arrival_ns >= self.expire_ns else ahead

    def take(self, id: int) -> int:
        del self.arrivals[id]
        self.reached = self.forget(id)[0]
        return id


class MqDeadline(ftlab.HostScheduler):
    """Batches by address, reads first, with soft expiry; the parameters are the keys of ftlab's own."""

    def __init__(
        self,
        read_expire: float = 500e6,
        write_expire: float = 5e9,
        writes_starved: int = 2,
        fifo_batch: int = 16,
    ) -> None:
        self.reads, self.writes = Direction(read_expire), Direction(write_expire)
        self.last = self.writes
        self.flushes: list[int] = []
        self.writes_starved, self.fifo_batch = writes_starved, fifo_batch
        self.batching = self.starved = 0

    def direction(self, op: str) -> Direction:
        return self.reads if op == "R" else self.writes

    def admit(self, request: Request) -> None:
        if request.op == "F":
            self.flushes.append(request.id)
        else:
            self.direction(request.op).insert(request)

    def grown(self, request: Request) -> None:
        direction = self.direction(request.op)
        if direction.places[request.id][0] != request.offset:
            direction.forget(request.id)
            direction.insert(request)

    def remove(self, id: int) -> None:
        if id in self.flushes:
            self.flushes.remove(id)
        else:
            (self.reads if id in self.reads.arrivals else self.writes).remove(id)

    def choose(self) -> int | None:
        # Linux leads flushes past its schedulers.
        if self.flushes:
            return self.flushes.pop(0)
        chosen = self.last.next()
        if chosen is None or self.batching >= self.fifo_batch:
            self.last, self.batching = self.turn(), 0
            chosen = self.last.first(self.now_ns)
        self.batching += 1
        return self.last.take(chosen)

    def turn(self) -> Direction:
        """Returns the direction of a new batch."""
        if self.reads.arrivals and not (self.writes.arrivals and self.starved >= self.writes_starved):
            self.starved += bool(self.writes.arrivals)
            return self.reads
        self.starved = 0
        return self.writes


class Limited(MqDeadline):
    """The same, with at most ``depth`` requests in the device, as if its queue were that short."""

    def __init__(self, depth: int = 1) -> None:
        super().__init__()
        self.depth, self.outstanding = depth, 0

    def choose(self) -> int | None:
        if self.outstanding >= self.depth:
            return None
        self.outstanding += 1
        return super().choose()

    def completed(self, id: int) -> None:
        self.outstanding -= 1

    def remove(self, id: int) -> None:
        super().remove(id)
        self.outstanding += 1
