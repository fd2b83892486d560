"""A second, independent implementation of the specification of MAP+ and its baselines.

Plain and slow on purpose: lists instead of links, one function per rule, nothing
incremental. It simulates one flash chip that serves one request at a time
(``device.queue_depth = 1``), never runs out of erased blocks (no garbage collection), has no
bus time, and knows ``page``, ``dftl``, ``cdftl`` and ``tpftl``, the paper's seven schedulers and two of
ftlab's own, all four kinds of awareness, deadline, admission, background flush, open and closed replay. The
engine of ftlab is compared with it request by request (``diff.py``, ``tests/python/test_oracle.py``).

It was written from the paper (Ji et al., TCAD 2018) and the project's specification alone. Where these leave
a choice open, the choice made is stated in place, marked "Interpretation:".

Times are integer nanoseconds, sizes bytes. Request ids count from 1.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TypeAlias

from . import cache as caches
from .schedulers import Scheduler

POLL_EVERY = 1000

Record: TypeAlias = tuple[int, str, int, int]
"""A line of a trace: arrival_ns, op, offset, size."""


@dataclass
class Config:
    """The parts of a configuration that the oracle uses; defaults are those of the preset ``map-plus``."""

    scheduler: str = "map+"
    queue_depth: int | None = 128  # None: unlimited
    deadline_ns: int | None = 10_000_000  # None: no deadline
    late: str = "batch"
    awareness: str = "full"
    alternate: bool = False
    replay: str = "open"
    ftl: str = "dftl"
    cache_bytes: int | None = 16384  # None: unlimited
    cache_policy: str = "slru"
    batch_update: bool = True
    load: str = "entry"
    background_flush: bool = False
    partial_write: str = "ignore"
    entry_bytes: int = 8
    page_bytes: int = 4096
    read_ns: int = 35_000
    program_ns: int = 350_000


@dataclass
class Request:
    """One request of a trace and its outcome."""

    id: int
    arrival: int
    op: str
    offset: int
    size: int
    pages: list[int]  # LPNs that it translates, in order
    partial: set[int]  # those of the LPNs that it covers only in part
    dispatch: int = -1
    complete: int = -1
    mapping_misses: int = 0
    prioritized: bool = False
    expired: bool = False
    batch: int | None = None


@dataclass
class Counters:
    """Totals of a run."""

    hits: int = 0
    misses: int = 0
    prefetches: int = 0
    translation_reads: int = 0
    translation_programs: int = 0
    prioritized: int = 0
    batches: int = 0  # created
    batches_chosen: int = 0  # chosen by the scheduler
    expired: int = 0
    host_reads: int = 0
    host_programs: int = 0


@dataclass
class Result:
    """The requests of a run, both in the order of the trace and in the order of dispatch, and the totals."""

    requests: list[Request]
    order: list[Request] = field(default_factory=list)
    counters: Counters = field(default_factory=Counters)


def pages_of(op: str, offset: int, size: int, page_bytes: int) -> tuple[list[int], set[int]]:
    """Returns the LPNs that a request translates, and those of them that it covers only in part."""
    if op == "F" or size == 0:
        return [], set()
    first = offset // page_bytes
    last = (offset + size - 1) // page_bytes
    pages = list(range(first, last + 1))
    partial = set()
    for lpn in pages:
        if offset > lpn * page_bytes or offset + size < (lpn + 1) * page_bytes:
            partial.add(lpn)
    if op == "T":
        pages = [lpn for lpn in pages if lpn not in partial]
        partial = set()
    return pages, partial


class HostLru:
    """Awareness ``lru``: the host's own LRU, with as many entries as the device's cache."""

    def __init__(self, capacity: int | None) -> None:
        self.list = caches.LruList(capacity)

    def cached(self, lpn: int) -> bool:
        return self.list.holds(lpn)

    def feed(self, lpn: int) -> None:
        if self.list.holds(lpn):
            self.list.touch(lpn)
        else:
            if self.list.full():
                self.list.pop_victim()
            self.list.insert(lpn)


class Simulation:
    """One run. ``trace`` is a list of (arrival_ns, op, offset, size), sizes above 0 except for F."""

    def __init__(self, config: Config, trace: list[Record]) -> None:
        self.config = config
        self.counters = Counters()
        self.cache = caches.make(config, self)
        self.scheduler = Scheduler(config, self.is_hit)
        self.host_lru = HostLru(caches.entries_held(config))
        self.polled: caches.Known | None = None
        self.busy_until = 0
        self.requests: list[Request] = []
        self.written: set[int] = set()
        for number, (arrival, op, offset, size) in enumerate(trace, start=1):
            pages, partial = pages_of(op, offset, size, config.page_bytes)
            self.requests.append(Request(number, arrival, op, offset, size, pages, partial))
        self.not_arrived = list(self.requests)
        self.arrived: list[Request] = []  # at the host, outside the pending queue
        self.order: list[Request] = []
        if config.replay == "closed":
            assert config.queue_depth is not None, "closed replay needs a depth"
            for _ in range(config.queue_depth):
                self.next_arrives(0)

    # --- costs: the one place where device time passes -------------------------------------

    def map_read(self) -> None:
        self.counters.translation_reads += 1
        self.busy_until += self.config.read_ns

    def map_program(self) -> None:
        self.counters.translation_programs += 1
        self.busy_until += self.config.program_ns

    def host_read(self) -> None:
        self.counters.host_reads += 1
        self.busy_until += self.config.read_ns

    def host_program(self) -> None:
        self.counters.host_programs += 1
        self.busy_until += self.config.program_ns

    # --- what the host believes about the mapping cache --------------------------------------

    def is_hit(self, request: Request) -> bool:
        awareness = self.config.awareness
        if awareness == "none":
            return False
        if not request.pages:
            return False  # a flush has no mapping to look up, and concerns the writes before it
        if self.config.ftl == "page":
            return True  # every entry counts as cached
        known: caches.Known = self.cache
        if awareness == "polled":
            assert self.polled is not None
            known = self.polled
        elif awareness == "lru":
            known = self.host_lru
        return all(known.cached(lpn) for lpn in request.pages)

    # --- arrivals ----------------------------------------------------------------------------

    def next_arrives(self, now: int) -> None:
        """In closed replay, lets one more request arrive."""
        if self.not_arrived:
            request = self.not_arrived.pop(0)
            request.arrival = now
            self.arrived.append(request)

    def admit(self, now: int) -> None:
        """Admits all arrivals up to now, in order, while the pending queue has room."""
        if self.config.replay == "open":
            while self.not_arrived and self.not_arrived[0].arrival <= now:
                self.arrived.append(self.not_arrived.pop(0))
        depth = self.config.queue_depth
        while self.arrived and (depth is None or self.scheduler.pending() < depth):
            request = self.arrived.pop(0)
            if (request.id - 1) % POLL_EVERY == 0:
                self.polled = self.cache.snapshot()
            self.scheduler.admit(request)

    # --- the device --------------------------------------------------------------------------

    def prefetch(self, requests: list[Request]) -> None:
        """Prefetches the batch's translation page, which is that of the first request's first LPN."""
        if not requests[0].pages:
            return
        per_page = self.config.page_bytes // self.config.entry_bytes
        page = requests[0].pages[0] // per_page
        needed = [lpn for request in requests for lpn in request.pages if lpn // per_page == page]
        if self.cache.prefetch(needed):
            self.counters.prefetches += 1

    def serve(self, request: Request, batch: list[Request] | None = None) -> None:
        """Serves a request on the idle device from beginning to end; given a ``batch``, first prefetches for
        it.
        """
        request.dispatch = self.busy_until
        self.order.append(request)
        for lpn in request.pages:
            self.host_lru.feed(lpn)
        if batch is not None:
            self.prefetch(batch)
        for at, lpn in enumerate(request.pages):
            whole = self.config.load == "request" or self.config.ftl == "tpftl"
            rest = request.pages[at + 1 :] if whole else []
            if self.cache.translate(lpn, request.op in "WT", rest):
                self.counters.hits += 1
            else:
                self.counters.misses += 1
                request.mapping_misses += 1
            if request.op == "R":
                self.host_read()
            elif request.op == "W":
                if self.config.partial_write == "rmw" and lpn in request.partial & self.written:
                    self.host_read()
                self.host_program()
                self.written.add(lpn)
            elif request.op == "T":
                self.written.discard(lpn)
        request.complete = self.busy_until
        if self.config.replay == "closed":
            self.next_arrives(request.complete)

    # --- the one loop --------------------------------------------------------------------------

    def regular_decision(self) -> bool:
        """Serves one choice of the scheduler to its end; returns False if nothing is pending."""
        choice = self.scheduler.choose(self.busy_until)
        if choice is None:
            return False
        requests, prioritized, is_batch = choice
        if not is_batch and self.scheduler.pending() == 0:
            # A hit that was the only pending request overtakes nothing.
            prioritized = [False]
        if is_batch:
            self.counters.batches_chosen += 1
        for position, request in enumerate(requests):
            request.prioritized = prioritized[position]
            self.counters.prioritized += prioritized[position]
            self.serve(request, batch=requests if is_batch and position == 0 else None)
        return True

    def deadline_check(self) -> None:
        """Checks deadlines after a regular dispatch: the expired requests are collected once, then served
        without new checks. Where batches stay whole, the oldest late request goes with its batch, and after
        that the deadlines are checked again.
        """
        if self.config.late == "batch" and self.scheduler.batches is not None:
            while self.late_batch():
                self.admit(self.busy_until)
            return
        expired = self.scheduler.take_expired(self.busy_until, self.config.deadline_ns)
        for request in expired:
            request.expired = True
            self.counters.expired += 1
            self.serve(request)

    def late_batch(self) -> bool:
        """Serves the oldest late request, and all requests of its batch; returns False if none is late."""
        now = self.busy_until
        taken = self.scheduler.take_late_batch(now, self.config.deadline_ns)
        if taken is None:
            return False
        requests, is_batch = taken
        for position, request in enumerate(requests):
            # Interpretation: in a batch that is dispatched by deadline, requests that are late themselves
            # count as expired; the others, except the first, count as prioritized.
            request.expired = now - request.arrival >= (self.config.deadline_ns or 0)
            request.prioritized = not request.expired and position > 0
            self.counters.expired += request.expired
            self.counters.prioritized += request.prioritized
            self.serve(request, batch=requests if is_batch and position == 0 else None)
        return True

    def run(self) -> Result:
        while True:
            self.admit(self.busy_until)
            if self.regular_decision():
                self.admit(self.busy_until)
                self.deadline_check()
                continue
            # Nothing is pending, and the device is idle. Interpretation: the run ends with the last
            # completion; no background flush begins after it.
            if not self.not_arrived:
                break
            if self.config.background_flush and self.cache.flush_one():
                continue
            self.busy_until = self.not_arrived[0].arrival
        if self.scheduler.batches is not None:
            self.counters.batches = self.scheduler.batches.created
        return Result(self.requests, self.order, self.counters)


def simulate(config: Config, trace: list[Record]) -> Result:
    """Runs ``trace``, a list of (arrival_ns, op, offset, size); returns its result."""
    return Simulation(config, trace).run()
