"""An event model of the flash array: it computes when each page operation runs, and nothing else.

It has static allocation, dies that serve their operations in the order of arrival, and channel buses. It has
no garbage collection, and no mapping except that of dynamic allocation: page numbers decide where an
operation goes. It was written from model.md and docs/flash-parallelism.md, not from the core;
`tests/python/test_events.py` compares the two request by request, with `device.scheduler = "direct"`.

With the allocation "dynamic", pages of writes wait in the order of arrival until a die is idle; the oldest
goes to the idle die that is next in a round over all dies. A read of a page that waits goes right behind its
write.

A read takes the bus for its command, then the cells, then the bus for its data. A program takes the bus for
command and data together, then the cells. Stages that take no time are skipped.

At one instant, dies are handled before buses and buses before arrivals: dies and buses in the order of their
numbers, then pages that wait for a die, then arrivals in the order of the trace. A die's number is its rank
in the order of allocation.
"""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass

Request = tuple[int, str, int, int]
"""A request: arrival in ns, "R" or "W", first page and number of pages."""

Stage = tuple[bool, int, bool]
"""A stage: whether it needs the bus, its time in ns, and whether it is only a command."""

ARBITRATIONS = ["fcfs", "commands-first", "reads-first"]
"""Rules for which die gets a bus that several dies wait for: the die that asked first; a die with a read's
command before any die with a transfer; or a die that reads before a die that programs, and among equals the
die with the lowest number.
"""


@dataclass(frozen=True)
class Array:
    """The geometry of an array, its times in ns, and the rule for its buses."""

    channels: int = 1
    ways: int = 1
    dies: int = 1
    planes: int = 1
    interleave: bool = False
    allocation: str = "cwdp"
    page_bytes: int = 4096
    read_ns: int = 20_000
    program_ns: int = 200_000
    byte_ns: float = 25.0
    command_ns: int = 175
    arbitration: str = "fcfs"

    def place(self, page: int) -> tuple[int, int, int]:
        """Returns channel, way and die of a page; without interleaving a chip is one die."""
        sizes = {"c": self.channels, "w": self.ways, "d": self.dies, "p": self.planes}
        at = {}
        for level in "cwdp" if self.allocation == "dynamic" else self.allocation:
            page, at[level] = divmod(page, sizes[level])
        return at["c"], at["w"], at["d"] if self.interleave else 0

    def stages(self, op: str) -> list[Stage]:
        """Returns the stages of a page operation, in order."""
        data_ns = round(self.page_bytes * self.byte_ns)
        if op == "R":
            stages = [(True, self.command_ns, True), (False, self.read_ns, False), (True, data_ns, False)]
        else:
            stages = [(True, self.command_ns + data_ns, False), (False, self.program_ns, False)]
        return [stage for stage in stages if stage[1] > 0]


@dataclass
class Operation:
    """A page operation at its die."""

    request: int
    op: str
    rest: list[Stage]


@dataclass(eq=False)
class Unbound:
    """A page of a write that has no die yet, and the requests that read it meanwhile."""

    request: int
    page: int
    readers: list[int]


class Model:
    """Dies and buses, and when each finishes its present work."""

    def __init__(self, array: Array, requests: Sequence[Request]) -> None:
        self.array = array
        self.requests = requests
        cycle = array.channels * array.ways * array.dies * array.planes
        places = [array.place(page) for page in range(cycle)]
        numbers = {place: number for number, place in enumerate(dict.fromkeys(places))}
        self.die_of_page = [numbers[place] for place in places]
        self.channel_of_die = [channel for channel, *_ in numbers]
        self.queues: list[deque[Operation]] = [deque() for _ in numbers]
        self.waiting: list[list[tuple[int, int, int, int]]] = [[] for _ in range(array.channels)]
        self.users: list[int | None] = [None] * array.channels
        self.asked = 0
        # The pages to be written that have no die yet, and the newest of these for each page number; then the
        # die of each page that was written.
        self.unbound: deque[Unbound] = deque()
        self.newest: dict[int, Unbound] = {}
        self.written: dict[int, int] = {}
        self.turn = 0
        self.pages_left = [pages for *_, pages in requests]
        self.completions = [0] * len(requests)
        # Entries are: time, resource (dies, then buses, then arrivals), index of an arrival.
        self.arrivals = len(numbers) + array.channels
        self.due = [(at, self.arrivals, index) for index, (at, *_) in enumerate(requests)]
        heapq.heapify(self.due)

    def run(self) -> list[int]:
        while self.due:
            now, resource, index = heapq.heappop(self.due)
            channel = resource - len(self.queues)
            if resource == self.arrivals:
                self.arrive(index, now)
            elif channel < 0:
                self.end(resource, now)
            else:
                die = self.users[channel]
                assert die is not None
                # A waiting die is served before the die that had the bus can ask for it again.
                self.users[channel] = None
                self.grant(channel, now)
                self.end(die, now)
            if not self.due or self.due[0][0] > now or self.due[0][1] == self.arrivals:
                self.bind(now)
        return self.completions

    def arrive(self, index: int, now: int) -> None:
        """Sends a request's pages to their dies."""
        _, op, first, pages = self.requests[index]
        for page in range(first, first + pages):
            die = self.written.get(page, self.die_of_page[page % len(self.die_of_page)])
            if self.array.allocation == "dynamic" and op == "W":
                self.newest[page] = Unbound(index, page, [])
                self.unbound.append(self.newest[page])
            elif page in self.newest:
                self.newest[page].readers.append(index)
            else:
                self.enqueue(die, index, op, now)

    def enqueue(self, die: int, index: int, op: str, now: int) -> None:
        """Puts a page operation into its die's queue."""
        self.queues[die].append(Operation(index, op, self.array.stages(op)))
        if len(self.queues[die]) == 1:
            self.begin(die, now)

    def bind(self, now: int) -> None:
        """Assigns idle dies to the oldest pages that wait for one."""
        dies = len(self.queues)
        while self.unbound and not all(self.queues):
            die = next(die % dies for die in range(self.turn, 2 * dies) if not self.queues[die % dies])
            self.turn = (die + 1) % dies
            write = self.unbound.popleft()
            self.written[write.page] = die
            if self.newest[write.page] is write:
                del self.newest[write.page]
            self.enqueue(die, write.request, "W", now)
            for reader in write.readers:
                self.enqueue(die, reader, "R", now)

    def begin(self, die: int, now: int) -> None:
        """Begins the next stage of the operation at the head of a die's queue."""
        needs_bus, ns, _ = self.queues[die][0].rest[0]
        if not needs_bus:
            heapq.heappush(self.due, (now + ns, die, 0))
            return
        channel = self.channel_of_die[die]
        self.asked += 1
        heapq.heappush(self.waiting[channel], (*self.rank(die), self.asked, die))
        self.grant(channel, now)

    def rank(self, die: int) -> tuple[int, int]:
        """Returns a die's rank among the dies that wait for a bus. The lowest rank is served first; dies of
        equal rank are served in the order in which they asked.
        """
        operation = self.queues[die][0]
        if self.array.arbitration == "commands-first":
            return int(not operation.rest[0][2]), 0
        if self.array.arbitration == "reads-first":
            return int(operation.op != "R"), die
        return 0, 0

    def grant(self, channel: int, now: int) -> None:
        """If the bus is free, lets it serve the first die that waits."""
        if self.users[channel] is None and self.waiting[channel]:
            *_, die = heapq.heappop(self.waiting[channel])
            self.users[channel] = die
            _, ns, _ = self.queues[die][0].rest[0]
            heapq.heappush(self.due, (now + ns, len(self.queues) + channel, 0))

    def end(self, die: int, now: int) -> None:
        """Ends a die's stage."""
        operation = self.queues[die][0]
        operation.rest.pop(0)
        if not operation.rest:
            self.queues[die].popleft()
            self.pages_left[operation.request] -= 1
            if self.pages_left[operation.request] == 0:
                self.completions[operation.request] = now
        if self.queues[die]:
            self.begin(die, now)


def simulate(array: Array, requests: Sequence[Request]) -> list[int]:
    """Returns the time, in ns, at which each request completes; requests must be in order of arrival."""
    return Model(array, requests).run()
