"""The schedulers of the oracle: which of the pending requests comes next.

A scheduler keeps what was admitted and answers:

- ``admit(request)``    take in one request (its class is decided here, once)
- ``take_expired(now, deadline_ns)``  take out the requests that have waited for ``deadline_ns``, oldest first
- ``take_late_batch(now, deadline_ns)``  take out the oldest such request with its batch, or None
- ``choose(now)``       take out the next choice, or None when nothing is pending
- ``pending()``         how many requests are held

Trim and flush belong to the write half.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

if TYPE_CHECKING:
    from .mapplus import Config, Request

SortKey: TypeAlias = "Callable[[Request], tuple[int, ...]]"


class Choice(NamedTuple):
    """What is dispatched next: one request, or a whole batch in order."""

    requests: list[Request]
    prioritized: list[bool]
    is_batch: bool


class Alternation:
    """RoW: reads first, but two reads in succession only if no write waits."""

    def __init__(self, enabled: bool) -> None:
        self.enabled = enabled
        self.last_was_read = False

    def read_next(self, reads_wait: bool, writes_wait: bool) -> bool:
        if not reads_wait:
            choose_read = False
        elif not writes_wait:
            choose_read = True
        elif self.enabled:
            choose_read = not self.last_was_read
        else:
            choose_read = True
        self.last_was_read = choose_read
        return choose_read


class Halves:
    """A read queue and a write queue of single requests."""

    def __init__(self, alternate: bool, key: SortKey) -> None:
        self.reads: list[Request] = []
        self.writes: list[Request] = []
        self.alternation = Alternation(alternate)
        self.key = key

    def all(self) -> list[Request]:
        return self.reads + self.writes

    def admit(self, request: Request) -> None:
        (self.reads if request.op == "R" else self.writes).append(request)

    def remove(self, request: Request) -> None:
        (self.reads if request.op == "R" else self.writes).remove(request)

    def choose(self) -> Request | None:
        if not self.reads and not self.writes:
            return None
        read = self.alternation.read_next(bool(self.reads), bool(self.writes))
        queue = self.reads if read else self.writes
        chosen = min(queue, key=self.key)
        queue.remove(chosen)
        return chosen


class Batch:
    """Pending requests of one half whose first LPNs share a translation page."""

    def __init__(self, number: int, half: str, page: int | None) -> None:
        self.number = number
        self.half = half
        self.page = page  # None: a request without pages, alone in its batch
        self.requests: list[Request] = []


class Batches:
    """Read batches and write batches."""

    def __init__(self, alternate: bool, densest_first: bool, entries_per_page: int) -> None:
        self.list: list[Batch] = []  # in order of creation
        self.created = 0
        self.alternation = Alternation(alternate)
        self.densest_first = densest_first
        self.entries_per_page = entries_per_page

    def all(self) -> list[Request]:
        return [request for batch in self.list for request in batch.requests]

    def admit(self, request: Request) -> None:
        half = "R" if request.op == "R" else "W"
        page = request.pages[0] // self.entries_per_page if request.pages else None
        found = None
        for batch in self.list:
            if page is not None and batch.half == half and batch.page == page:
                found = batch
        if found is None:
            self.created += 1
            found = Batch(self.created, half, page)
            self.list.append(found)
        found.requests.append(request)
        request.batch = found.number

    def remove(self, request: Request) -> None:
        """Removes a request that leaves by deadline, and its batch if that becomes empty."""
        for batch in list(self.list):
            if request in batch.requests:
                batch.requests.remove(request)
                if not batch.requests:
                    self.list.remove(batch)

    def choose(self) -> Batch | None:
        if not self.list:
            return None
        reads = [batch for batch in self.list if batch.half == "R"]
        writes = [batch for batch in self.list if batch.half == "W"]
        candidates = reads if self.alternation.read_next(bool(reads), bool(writes)) else writes
        best = candidates[0]
        if self.densest_first:
            for batch in candidates[1:]:
                if denser(batch, best):
                    best = batch
        self.list.remove(best)
        return best


def denser(one: Batch, other: Batch) -> bool:
    """Whether one batch is denser by eq. (9), requests / pages; without pages the density is 0."""
    requests_1 = len(one.requests)
    requests_2 = len(other.requests)
    pages_1 = sum(len(request.pages) for request in one.requests)
    pages_2 = sum(len(request.pages) for request in other.requests)
    if pages_1 == 0 or pages_2 == 0:
        return pages_1 > 0
    return requests_1 * pages_2 > requests_2 * pages_1


class Jobs:
    """The queue of map-rate and map-ratio: batches as in `Batches`, and each hit as a batch of its own, in
    one list.

    The cost of a batch is a read of its translation page, plus a read or a program for each page of its
    requests. A hit needs no translation page, the pages of a trim cost nothing, and no cost is below 1 ns.
    """

    def __init__(self, config: Config, is_hit: Callable[[Request], bool]) -> None:
        self.list: list[Batch] = []
        self.hits: set[int] = set()  # numbers of the batches that are hits
        self.flush_ns: dict[int, int] = {}  # by number of the batch: the cost of a flush under map-ratio
        self.created = 0
        self.config = config
        self.is_hit = is_hit

    def all(self) -> list[Request]:
        return [request for batch in self.list for request in batch.requests]

    def pages_ns(self, request: Request) -> int:
        page = {"R": self.config.read_ns, "W": self.config.program_ns}.get(request.op, 0)
        return page * len(request.pages)

    def admit(self, request: Request) -> None:
        half = "R" if request.op == "R" else "W"
        page = None
        if request.pages:
            page = request.pages[0] // (self.config.page_bytes // self.config.entry_bytes)
        hit = self.is_hit(request)
        for batch in self.list:
            if not hit and page is not None and (batch.half, batch.page) == (half, page):
                batch.requests.append(request)
                request.batch = batch.number
                return
        self.created += 1
        waiting = sum(self.pages_ns(other) for other in self.all() if other.op != "R")
        self.flush_ns[self.created] = waiting + self.config.read_ns
        if hit:
            self.hits.add(self.created)
        new = Batch(self.created, half, None if hit else page)
        new.requests.append(request)
        request.batch = new.number
        self.list.append(new)

    def remove(self, request: Request) -> None:
        for batch in list(self.list):
            if request in batch.requests:
                batch.requests.remove(request)
                if not batch.requests:
                    self.list.remove(batch)

    def cost_ns(self, batch: Batch) -> int:
        load = self.config.read_ns if batch.page is not None else 0
        return max(1, load + sum(self.pages_ns(request) for request in batch.requests))

    def value(self, batch: Batch, now: int) -> Fraction:
        count = len(batch.requests)
        flush = batch.requests[0].op == "F"
        if self.config.scheduler == "map-rate":
            return Fraction(0 if flush else count, self.cost_ns(batch))
        cost = self.flush_ns[batch.number] if flush else self.cost_ns(batch)
        waits = sum(now - request.arrival for request in batch.requests)
        return Fraction(waits + count * cost, cost)

    def choose(self, now: int) -> Batch | None:
        if not self.list:
            return None
        return max(self.list, key=lambda batch: (self.value(batch, now), -batch.requests[0].id))

    def take(self, batch: Batch) -> tuple[list[Request], bool]:
        """Takes a batch out; returns its requests, small ones first, and whether they go as a batch."""
        self.list.remove(batch)
        requests = sorted(batch.requests, key=lambda request: (len(request.pages), request.id))
        return requests, batch.number not in self.hits


class Scheduler:
    """Any of the schedulers, assembled from a hit queue and a queue of the other requests."""

    def __init__(self, config: Config, is_hit: Callable[[Request], bool]) -> None:
        name = config.scheduler
        entries_per_page = config.page_bytes // config.entry_bytes

        def by_arrival(request: Request) -> tuple[int, ...]:
            return (request.id,)

        def by_size(request: Request) -> tuple[int, ...]:
            # A flush has no pages, and goes last.
            return (len(request.pages) or 1 << 32, request.id)

        self.name = name
        self.is_hit = is_hit
        self.hits: Halves | None = None
        self.arrival_order: list[Request] | None = None
        self.batches: Batches | Jobs | None = None
        self.rest: Halves | None = None
        if name in ("hp", "map", "map+"):
            self.hits = Halves(config.alternate, by_arrival)
        if name == "noop":
            self.arrival_order = []
        elif name == "row":
            self.rest = Halves(True, by_arrival)
        elif name == "amphibian":
            self.rest = Halves(True, by_size)
        elif name == "hp":
            self.rest = Halves(config.alternate, by_arrival)
        elif name in ("rb", "map", "map+"):
            self.batches = Batches(config.alternate, name == "map+", entries_per_page)
        elif name in ("map-rate", "map-ratio"):
            self.batches = Jobs(config, is_hit)
        else:
            raise ValueError(name)

    def parts(self) -> list[Halves | Batches | Jobs]:
        return [part for part in (self.hits, self.rest, self.batches) if part is not None]

    def pending(self) -> int:
        if self.arrival_order is not None:
            return len(self.arrival_order)
        return sum(len(part.all()) for part in self.parts())

    def admit(self, request: Request) -> None:
        if self.arrival_order is not None:
            self.arrival_order.append(request)
        elif self.hits is not None and self.is_hit(request):
            self.hits.admit(request)
        elif self.batches is not None:
            self.batches.admit(request)
        elif self.rest is not None:
            self.rest.admit(request)

    def take_expired(self, now: int, deadline_ns: int | None) -> list[Request]:
        if self.name in ("noop", "map-ratio") or deadline_ns is None:
            return []
        expired = []
        for part in self.parts():
            for request in part.all():
                if now - request.arrival >= deadline_ns:
                    expired.append(request)
                    part.remove(request)
        return sorted(expired, key=lambda request: request.id)

    def take_late_batch(self, now: int, deadline_ns: int | None) -> tuple[list[Request], bool] | None:
        """Takes out the oldest request, together with its batch if it is in one; returns the requests taken
        out, and whether they are a batch. Returns None if the oldest request has not yet waited for
        ``deadline_ns``.
        """
        waiting = [request for part in self.parts() for request in part.all()]
        if not waiting or deadline_ns is None or self.name == "map-ratio":
            return None
        oldest = min(waiting, key=lambda request: request.id)
        if now - oldest.arrival < deadline_ns:
            return None
        batches = self.batches
        for batch in batches.list if batches is not None else []:
            if oldest in batch.requests and isinstance(batches, Jobs):
                return batches.take(batch)
            if batches is not None and oldest in batch.requests:
                requests = list(batch.requests)
                for request in requests:
                    batches.remove(request)
                return requests, True
        for part in self.parts():
            if oldest in part.all():
                part.remove(oldest)
        return [oldest], False

    def choose(self, now: int) -> Choice | None:
        if self.arrival_order:
            return Choice([self.arrival_order.pop(0)], [False], False)
        if self.hits is not None:
            chosen = self.hits.choose()
            if chosen is not None:
                return Choice([chosen], [True], False)
        if self.rest is not None:
            chosen = self.rest.choose()
            if chosen is not None:
                return Choice([chosen], [False], False)
        if isinstance(self.batches, Jobs):
            job = self.batches.choose(now)
            if job is None:
                return None
            requests, is_batch = self.batches.take(job)
            later = [True] * (len(requests) - 1)
            return Choice(requests, [not is_batch, *later], is_batch)
        if self.batches is not None:
            batch = self.batches.choose()
            if batch is not None:
                return Choice(batch.requests, [False] + [True] * (len(batch.requests) - 1), True)
        return None
