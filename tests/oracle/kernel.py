"""A second implementation of the schedulers that Linux has, with the plainest device that shows their order.

It was written from the kernel's documentation and the rules of its source (docs/linux-schedulers.md), only
to be compared with ftlab request by request: lists that are searched anew for each choice, latencies that
are kept one by one and sorted, and a timer that is an event of its own. The device is one chip behind a
first-in first-out queue, with the whole map in RAM and no garbage collection; trims and flushes take no time.

Times are integer nanoseconds.
"""

from __future__ import annotations

import math
import random
from dataclasses import dataclass
from typing import ClassVar

from .engine import Row
from .generate import GEOMETRY
from .mapplus import Record, Request, pages_of

PAGE = 4096
READ_NS = 35_000
PROGRAM_NS = 350_000


@dataclass(frozen=True)
class Case:
    """A configuration; None stands for no limit."""

    scheduler: str
    queue_depth: int | None = 128
    device_depth: int | None = 1
    read_expire: int = 500_000_000
    write_expire: int = 5_000_000_000
    writes_starved: int = 2
    fifo_batch: int = 16
    read_lat: int = 2_000_000
    write_lat: int = 10_000_000

    def settings(self) -> dict[str, str | int | bool]:
        """Returns the case as ftlab's keys."""
        own: dict[str, str | int | bool] = {
            "host.read_expire": f"{self.read_expire}ns",
            "host.write_expire": f"{self.write_expire}ns",
            "host.writes_starved": self.writes_starved,
            "host.fifo_batch": self.fifo_batch,
        }
        if self.scheduler == "kyber":
            own = {
                "host.read_lat_nsec": f"{self.read_lat}ns",
                "host.write_lat_nsec": f"{self.write_lat}ns",
            }
        return {
            **GEOMETRY,
            "ftl.kind": "page",
            "flash.page": f"{PAGE}B",
            "flash.read": f"{READ_NS}ns",
            "flash.program": f"{PROGRAM_NS}ns",
            "host.scheduler": self.scheduler,
            "host.queue_depth": "unlimited" if self.queue_depth is None else self.queue_depth,
            "device.queue_depth": "unlimited" if self.device_depth is None else self.device_depth,
            **own,
        }


class Scheduler:
    """What both schedulers answer."""

    timer: int | None = None

    def __init__(self, case: Case) -> None:
        self.case = case
        self.waiting: list[Request] = []  # in order of admission

    def choose(self, now: int) -> Request | None:
        """Takes out the request that goes next."""
        raise NotImplementedError

    def completed(self, request: Request, now: int) -> None:
        """Is told of a completion."""

    def expire_timer(self, now: int) -> None:
        """Is called at the time of ``timer``."""


class MqDeadline(Scheduler):
    """Batches by address; between batches reads first, and the oldest request if it has expired."""

    def __init__(self, case: Case) -> None:
        super().__init__(case)
        self.position = {"R": 0, "W": 0}
        self.direction = "W"
        self.in_batch = 0
        self.starved = 0

    def of(self, direction: str) -> list[Request]:
        return [r for r in self.waiting if r.op != "F" and (r.op == "R") == (direction == "R")]

    def ahead(self, direction: str) -> Request | None:
        """Returns the request at the lowest address from the position on, of equal ones the oldest."""
        ahead = [r for r in self.of(direction) if r.offset >= self.position[direction]]
        return min(ahead, key=lambda r: (r.offset, r.id), default=None)

    def choose(self, now: int) -> Request | None:
        for request in self.waiting:
            if request.op == "F":
                self.waiting.remove(request)
                return request
        chosen = self.ahead(self.direction)
        if chosen is None or self.in_batch >= self.case.fifo_batch:
            reads, writes = bool(self.of("R")), bool(self.of("W"))
            if not reads and not writes:
                return None
            self.direction = "W"
            if reads and (not writes or self.starved < self.case.writes_starved):
                self.direction = "R"
            if self.direction == "W":
                self.starved = 0
            elif writes:
                self.starved += 1
            oldest = self.of(self.direction)[0]
            expire = self.case.read_expire if self.direction == "R" else self.case.write_expire
            oldest.expired = now >= oldest.arrival + expire
            chosen = oldest if oldest.expired else self.ahead(self.direction) or oldest
            self.in_batch = 0
        self.in_batch += 1
        self.position[self.direction] = chosen.offset
        self.waiting.remove(chosen)
        return chosen


class Kyber(Scheduler):
    """Domains in turn, each with a number of tokens that follows the latencies."""

    MOST: ClassVar = {"R": 256, "W": 128, "T": 64, "F": 16}
    BATCH: ClassVar = {"R": 16, "W": 8, "T": 1, "F": 1}

    def __init__(self, case: Case) -> None:
        super().__init__(case)
        self.depth = dict(self.MOST)
        self.out = dict.fromkeys(self.MOST, 0)
        self.target = {"R": case.read_lat, "W": case.write_lat, "T": 5_000_000_000}
        self.device: dict[str, list[int]] = {op: [] for op in self.target}
        self.whole: dict[str, list[int]] = {op: [] for op in self.target}
        self.second: dict[str, int | None] = dict.fromkeys(self.target)
        self.kept: dict[str, int | None] = dict.fromkeys(self.target)
        self.turn = "R"
        self.in_batch = 0
        self.throttled = 0  # how often a depth below its most held a request back

    def take(self) -> Request | None:
        """Takes the oldest request of the domain whose turn it is, if it has a token."""
        if self.out[self.turn] >= self.depth[self.turn]:
            waits = any(request.op == self.turn for request in self.waiting)
            self.throttled += waits and self.depth[self.turn] < self.MOST[self.turn]
            return None
        for request in self.waiting:
            if request.op == self.turn:
                self.waiting.remove(request)
                self.out[self.turn] += 1
                self.in_batch += 1
                return request
        return None

    def choose(self, now: int) -> Request | None:
        if self.in_batch < self.BATCH[self.turn] and (found := self.take()):
            return found
        self.in_batch = 0
        domains = list(self.MOST)
        start = domains.index(self.turn)
        for step in range(1, 5):
            self.turn = domains[(start + step) % 4]
            if found := self.take():
                return found
        return None

    def completed(self, request: Request, now: int) -> None:
        self.out[request.op] -= 1
        if request.op == "F":
            return
        self.device[request.op].append(now - request.dispatch)
        self.whole[request.op].append(now - request.arrival)
        if self.timer is None:
            self.timer = now + 100_000_000

    def quarters(self, latency: int, op: str) -> int:
        """Returns how many quarters of the target a latency exceeds, at most 7."""
        quarter = max(1, self.target[op] // 4)
        return min(7, max(0, math.ceil(latency / quarter) - 1))

    def percentile(self, latencies: dict[str, list[int]], op: str, percent: int, now: int) -> int | None:
        found = sorted(latencies[op])
        if not found:
            return None
        if self.second[op] is None:
            self.second[op] = now + 1_000_000_000
        second = self.second[op]
        assert second is not None
        if len(found) < 500 and now < second:
            return None
        self.second[op] = None
        latencies[op] = []
        return self.quarters(found[-(-len(found) * percent // 100) - 1], op)

    def expire_timer(self, now: int) -> None:
        self.timer = None
        shares = [self.percentile(self.device, op, 90, now) for op in self.target]
        congested = any(share is not None and share >= 4 for share in shares)
        for op in self.target:
            share = self.percentile(self.whole, op, 99, now)
            if congested:
                share = self.kept[op] if share is None else share
                self.kept[op] = None
            elif share is not None:
                self.kept[op] = share
            if share is not None and (congested or share >= 4):
                self.depth[op] = min(max(self.depth[op] * (share + 1) // 4, 1), self.MOST[op])


SCHEDULERS: dict[str, type[Scheduler]] = {"mq-deadline": MqDeadline, "kyber": Kyber}


def touches_nothing(request: Request) -> bool:
    """Whether a request is a trim that covers no whole page; it needs no chip. A flush waits for all."""
    return request.op == "T" and not request.pages


class Run:
    """One run of a case."""

    def __init__(self, case: Case, trace: list[Record]) -> None:
        self.case = case
        self.scheduler = SCHEDULERS[case.scheduler](case)
        self.upcoming = [
            Request(number, at, op, offset, size, *pages_of(op, offset, size, PAGE))
            for number, (at, op, offset, size) in enumerate(trace, start=1)
        ]
        self.requests = list(self.upcoming)
        self.queue: list[Request] = []  # in the device, behind the one in service
        self.served: Request | None = None

    def admit(self, now: int) -> None:
        depth = self.case.queue_depth
        while self.upcoming and self.upcoming[0].arrival <= now:
            if depth is not None and len(self.scheduler.waiting) >= depth:
                return
            self.scheduler.waiting.append(self.upcoming.pop(0))

    def hand_over(self, now: int) -> None:
        """Fills the device."""
        depth = self.case.device_depth
        while depth is None or len(self.queue) + (self.served is not None) < depth:
            self.admit(now)
            request = self.scheduler.choose(now)
            if request is None:
                return
            request.dispatch = now
            self.queue.append(request)

    def instant(self, now: int) -> None:
        if self.scheduler.timer is not None and self.scheduler.timer <= now:
            self.scheduler.expire_timer(self.scheduler.timer)
        done: list[Request] = []
        if self.served is not None and self.served.complete == now:
            done, self.served = [self.served], None
        while True:
            for request in done:
                self.scheduler.completed(request, now)
            self.hand_over(now)
            done = []
            while self.queue and (self.served is None or touches_nothing(self.queue[0])):
                request = self.queue.pop(0)
                page_ns = {"R": READ_NS, "W": PROGRAM_NS}.get(request.op, 0)
                request.complete = now + page_ns * len(request.pages)
                if request.complete == now:
                    done.append(request)
                else:
                    self.served = request
            if not done:
                return

    def run(self) -> list[Request]:
        now = 0
        while True:
            self.instant(now)
            times = [self.served.complete] if self.served else []
            times += [self.upcoming[0].arrival] if self.upcoming else []
            if not times:
                return self.requests
            if self.scheduler.timer is not None:
                times.append(self.scheduler.timer)
            now = max(now, min(time for time in times if time > now))


def first_difference(rows: list[Row], expected: list[Request], case: object) -> str | None:
    """Returns the first difference of ftlab's rows, in order of dispatch, or None."""
    assert len(rows) == len(expected)
    pairs = sorted(zip(rows, expected, strict=True), key=lambda pair: (pair[1].dispatch, pair[1].complete))
    for row, request in pairs:
        for name in ["dispatch", "complete", "expired"]:
            have, want = getattr(row, name), getattr(request, name)
            if have != want:
                return f"{case}: request {request.id}: {name} is {have}, oracle {want}"
    return None


def follow(case: Case, trace: list[Record]) -> list[Request]:
    """Returns the requests of a trace, in order of id, with their outcome."""
    return Run(case, trace).run()


def random_case(seed: int) -> tuple[Case, list[Record]]:
    """Returns the case of a seed: a configuration and a trace of bursts and pauses."""
    rng = random.Random(f"kernel {seed}")
    pick = rng.choice
    scheduler = ("mq-deadline", "kyber")[seed % 2]
    ms = 1_000_000
    case = Case(
        scheduler,
        queue_depth=pick([1, 4, 32, 128, None]),
        device_depth=pick([1, 1, 2, 8, 32]),
        read_expire=pick([0, ms, 10 * ms, 500 * ms]),
        write_expire=pick([0, 5 * ms, 100 * ms, 5000 * ms]),
        writes_starved=pick([0, 1, 2, 5]),
        fifo_batch=pick([0, 1, 2, 5, 16]),
        read_lat=pick([40_000, 200_000, ms, 5 * ms, 100 * ms]),
        write_lat=pick([300_000, ms, 5 * ms, 50 * ms, 2000 * ms]),
    )
    count, longest, pause = pick([20, 80, 300]), pick([5, 50, 400]), pick([1, 10, 100, 700]) * ms
    if scheduler == "kyber":
        # Depths move after 500 requests or a second if one kind is slow and the other is not, and bind only
        # where the device holds more.
        tight, loose = pick([40_000, 400_000]), pick([400 * ms, 4000 * ms])
        targets = pick([(tight, loose), (tight, loose), (loose, tight), (case.read_lat, case.write_lat)])
        case = Case(scheduler, pick([8, 128, None]), pick([16, 64, None, None, None]), 0, 0, 0, 0, *targets)
        count, longest, pause = rng.randrange(900, 3000), pick([50, 400, 400]), pick([100, 200, 700]) * ms
    shares = {"R": pick([1, 3, 5]), "W": pick([1, 3, 5]), "T": pick([0, 1]), "F": pick([0, 1])}
    now = 0
    trace: list[Record] = []
    while len(trace) < count:
        for _ in range(rng.randrange(1, longest)):
            op = rng.choices(list(shares), list(shares.values()))[0]
            offset, size = rng.randrange(64) * PAGE, rng.randrange(1, 4) * PAGE
            if rng.random() < 0.2:
                offset, size = offset + 512 * rng.randrange(8), max(512, size - 512 * rng.randrange(8))
            trace.append((now, op, *((0, 0) if op == "F" else (offset, size))))
            now += pick([0, 0, 0, 10_000, 35_000])
        now += rng.randrange(pause)
    return case, trace
