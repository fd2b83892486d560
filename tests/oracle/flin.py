"""FLIN for one-page requests on dies without a bus, written from docs/flin.md, only to be compared.

It has no mapping cache and no collection: page numbers decide on which die an operation runs, a die programs
its pages one after another, and reads of pages that were never written read some page. A tenant is a stream.
With ``apart`` every tenant has erase blocks of its own on each die, otherwise all share one.

Queues are plain lists, and the place of a new operation is found by trying every place and evaluating all
slowdowns anew.
"""

from __future__ import annotations

import heapq
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field

Request = tuple[int, str, int, int]
"""A request: arrival in ns, "R" or "W", page, stream."""

CLASSES = ("urgent", "high", "medium", "low")

ROUND = ["urgent", "high", "urgent", "medium", "urgent", "high", "urgent", "low"]
ROUND = [*ROUND, *ROUND[:-1]]
"""Whose turn it is, turn by turn."""


@dataclass(frozen=True)
class Device:
    """A device; times in ns, thresholds in bytes."""

    dies: int = 1
    page_bytes: int = 4096
    block_pages: int = 16
    read_ns: int = 35_000
    program_ns: int = 350_000
    apart: bool = False
    epoch_ns: int = 10_000_000
    thresholds: tuple[tuple[str, int], ...] = (("R", 32 << 20), ("W", 256 << 10))
    fairness: float = 0.6
    classes: tuple[str, ...] = ()
    """The class of each stream; those beyond are medium."""


@dataclass(eq=False)
class Operation:
    """A page operation."""

    request: int
    op: str
    stream: int
    since: int
    service: int
    block: tuple[int, ...] | None = None
    waits_for: Operation | None = None
    alone: int = 0
    low: bool = False
    barrier: bool = False
    done: bool = False
    begun: bool = False


@dataclass(eq=False)
class Tenant:
    """What a tenant has asked of a die, of one kind."""

    epoch: int = 0
    recent: int = 0
    low: bool = False
    slowdowns: list[float] = field(default_factory=list)
    total: float = 0.0
    last: Operation | None = None


class Die:
    """A die with its queues."""

    def __init__(self, device: Device, classes: dict[int, str]) -> None:
        """Makes an idle die; ``classes`` are those of the tenants that have sent anything."""
        self.device = device
        self.classes = classes
        self.queues: dict[tuple[str, str], list[Operation]] = {
            (name, op): [] for name in CLASSES for op in "RW"
        }
        self.tenants: dict[tuple[int, str], Tenant] = defaultdict(Tenant)
        self.turn = dict.fromkeys("RW", 0)
        self.working: Operation | None = None
        self.latest: Operation | None = None
        self.until = 0

    def enter(self, new: Operation, now: int) -> None:
        name = self.classes[new.stream]
        queue = self.queues[name, new.op]
        single = sum(each == name for each in self.classes.values()) == 1
        tenant = self.tenants[new.stream, new.op]
        new.low = self.counted(tenant, new.op, now) and not single
        new.alone = self.alone(tenant, new, now)
        tenant.last = new
        lows = sum(each.low for each in queue)
        end = lows if new.low else len(queue)
        begin = 0 if new.low else lows
        while begin < end and any(self.keeps(each, new) for each in queue[begin:end]):
            begin += 1
        if single:
            begin = end
        if not new.low and not single and self.slowed_most(new, name):
            new.barrier = True
            queue.insert(begin, new)
            return
        # Of places that are equally fair, the one nearest the tail.
        region = queue[lows:] if not new.low else queue[:lows]
        ahead = 0 if new.low else lows

        def fair(place: int) -> float:
            at = place - ahead
            order = [*region[:at], new, *region[at:]]
            left = max(0, self.until - now) + sum(each.service for each in queue[:ahead])
            found = []
            for each in order:
                left += each.service
                found.append((now - each.since + left) / max(1, each.alone + each.service))
            return min(found) / max(found)

        best = max(range(end, begin - 1, -1), key=lambda place: (fair(place), place))
        queue.insert(best, new)

    def counted(self, tenant: Tenant, op: str, now: int) -> bool:
        """Counts an operation; returns whether its tenant sent few in the epoch before."""
        epoch = now // self.device.epoch_ns
        if epoch > tenant.epoch:
            recent = tenant.recent if epoch == tenant.epoch + 1 else 0
            sent = recent * self.device.page_bytes * self.device.dies
            tenant.low = sent < dict(self.device.thresholds)[op]
            tenant.epoch, tenant.recent = epoch, 0
        tenant.recent += 1
        return tenant.low

    def alone(self, tenant: Tenant, new: Operation, now: int) -> int:
        before = tenant.last
        if before is None or before.begun:
            before = self.latest if self.latest and self.latest.stream == new.stream else None
        return max(0, before.since + before.alone + before.service - now) if before else 0

    def keeps(self, waiting: Operation, new: Operation) -> bool:
        """Whether a new operation may not go in front of one that waits."""
        same_block = new.block is not None and waiting.block == new.block
        return waiting.stream == new.stream or same_block or (waiting.barrier and not new.low)

    def slowed_most(self, new: Operation, name: str) -> bool:
        means = {
            stream: tenant.total / len(tenant.slowdowns)
            for (stream, op), tenant in self.tenants.items()
            if op == new.op and self.classes[stream] == name and tenant.slowdowns
        }
        if new.stream not in means:
            return False
        return (
            means[new.stream] == max(means.values())
            and min(means.values()) / max(means.values()) < self.device.fairness
        )

    def able(self, operation: Operation) -> bool:
        """Whether an operation can begin: a read after the program of its page, a program after those of its
        block.
        """
        if operation.waits_for is None:
            return True
        return operation.waits_for.done if operation.op == "R" else operation.waits_for.begun

    def slot(self, op: str) -> Operation | None:
        first = {
            name: next((each for each in self.queues[name, op] if self.able(each)), None) for name in CLASSES
        }
        for turn in range(len(ROUND)):
            found = first[ROUND[(self.turn[op] + turn) % len(ROUND)]]
            if found:
                return found
        return None

    def choose(self, now: int) -> Operation | None:
        read, write = self.slot("R"), self.slot("W")
        if not read or not write:
            return read or write
        of_read = (now - read.since + write.service) * write.service
        of_write = (now - write.since + read.service) * read.service
        return read if of_read >= of_write else write

    def begin(self, now: int) -> int | None:
        """Begins the next operation of an idle die; returns when it will have finished."""
        chosen = self.choose(now) if self.working is None else None
        if chosen is None:
            return None
        name = self.classes[chosen.stream]
        self.queues[name, chosen.op].remove(chosen)
        while ROUND[self.turn[chosen.op]] != name:
            self.turn[chosen.op] = (self.turn[chosen.op] + 1) % len(ROUND)
        self.turn[chosen.op] = (self.turn[chosen.op] + 1) % len(ROUND)
        chosen.begun = True
        self.working = self.latest = chosen
        self.until = now + chosen.service
        tenant = self.tenants[chosen.stream, chosen.op]
        slowdown = (self.until - chosen.since) / max(1, chosen.alone + chosen.service)
        tenant.slowdowns.append(slowdown)
        tenant.total += slowdown
        return self.until


def simulate(device: Device, requests: Sequence[Request]) -> list[int]:
    """Returns when each request completes; requests must be in order of arrival."""
    classes: dict[int, str] = {}
    dies = [Die(device, classes) for _ in range(device.dies)]
    written: dict[int, Operation] = {}
    newest: dict[tuple[int, ...], Operation] = {}
    programs: dict[tuple[int, ...], int] = defaultdict(int)
    done = [0] * len(requests)
    # Entries are: time, die (requests come after all dies), index of a request.
    due = [(at, device.dies, index) for index, (at, *_) in enumerate(requests)]
    heapq.heapify(due)
    touched: list[int] = []

    def serve(number: int, now: int) -> None:
        until = dies[number].begin(now)
        if until is not None:
            heapq.heappush(due, (until, number, 0))

    while due:
        now, number, index = heapq.heappop(due)
        if number < device.dies:
            operation = dies[number].working
            assert operation is not None
            dies[number].working = None
            operation.done = True
            done[operation.request] = now
            serve(number, now)
        else:
            _, op, page, stream = requests[index]
            name = device.classes[stream] if stream < len(device.classes) else "medium"
            classes.setdefault(stream, name)
            number = page % device.dies
            service = device.read_ns if op == "R" else device.program_ns
            new = Operation(index, op, stream, now, service)
            if op == "R":
                new.waits_for = written.get(page)
            else:
                front = (number, stream) if device.apart else (number,)
                new.block = (*front, programs[front] // device.block_pages)
                programs[front] += 1
                new.waits_for = newest.get(new.block)
                newest[new.block] = written[page] = new
            dies[number].enter(new, now)
            touched.append(number)
        if not due or due[0][0] > now:
            for each in touched:
                serve(each, now)
            touched.clear()
    return done
