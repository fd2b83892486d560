"""A model of flash whose cells hold several bits: it computes when each request completes.

It was written from the rules for cells (devices.md, "Cells") and for the FTL's page buffer (model.md), only
to be compared with ftlab. Dies and buses are those of ``events.py``; here are the device's queue, an FTL with
its whole map in RAM, and the times of page types. Requests cover whole logical pages, and there is no garbage
collection.

Where a logical page is a NAND page and pages are programmed one by one, the page number decides on the chip.
Everywhere else pages gather in RAM until they fill a unit, which is a NAND page or a word line. The chips
take turns unit by unit.

Where the rules leave a choice open, the model follows ftlab's documentation. These readings are ftlab's own:

- A write takes no time for pages that wait in RAM afterwards. It waits for the programs of all units that it
  fills, whoever wrote their other pages.
- Of a padded unit, those NAND pages count as padding that are not full of the host's pages.
- A program counts once for each NAND page, and so does its time, although a word line takes this time once.
- Neighbouring pages of a request that lie in one NAND page are one read. Pages that were never written count
  as if they lay in order, unit by unit round the chips.
- The bus time of a NAND page is rounded to whole nanoseconds. If only some of its logical pages are wanted,
  the bus time of each is rounded.
- A word line that is programmed at once has its types in ascending order, whatever ``page_order`` is.
- A flush waits until nothing else is under way, and what came later waits behind it.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from .events import Array, Model, Operation, Request, Stage

CELLS = {"slc": 1, "mlc": 2, "tlc": 3, "qlc": 4}
"""The bits of a cell, which are also the page types of a word line."""


@dataclass(frozen=True)
class Config:
    """The model's settings; times are in ns."""

    cell: str = "slc"
    read: tuple[int, ...] = (35_000,)
    """The time to read a page: one time, or one for each page type, the lowest first."""
    program: tuple[int, ...] = (350_000,)
    """The time to program a page, likewise; with word-line programming, that of a whole word line."""
    order: str = "word-line"
    programming: str = "page"
    page: int = 4096
    """Bytes of a logical page."""
    logical: int = 1
    """Logical pages in a NAND page."""
    block_pages: int = 12
    blocks: int = 4096
    channels: int = 1
    ways: int = 1
    """Chips of a channel."""
    byte_ns: float = 0.0
    """Bus time of a byte."""
    command: int = 0
    """Bus time of a command."""
    scheduler: str = "direct"
    """The device's scheduler; of those that ftlab has, the model knows "noop" and "direct"."""
    depth: int | None = None
    """How many requests the device holds; None: any number."""

    @property
    def bits(self) -> int:
        """Pages of a word line."""
        return CELLS[self.cell]

    def transfer(self, pages: int) -> int:
        """Returns the bus time of some or all logical pages of a NAND page, ns."""
        parts = 1 if pages == self.logical else pages
        return parts * round(pages // parts * self.page * self.byte_ns)

    @property
    def unit_pages(self) -> int:
        """NAND pages that are programmed at once."""
        return self.bits if self.programming == "word-line" else 1

    @property
    def gathers(self) -> bool:
        """Whether pages wait in RAM until a unit is full."""
        return self.logical * self.unit_pages > 1

    def types(self) -> list[int]:
        """Returns the type of each page of a block, in the order in which they are programmed."""
        pages = [divmod(page, self.bits) for page in range(self.block_pages)]
        if self.order == "shadow" and self.programming == "page":
            pages.sort(key=lambda page: (page[0] + page[1], page[1]))
        return [kind for _, kind in pages]

    def settings(self) -> dict[str, str | int | bool]:
        """Returns these settings under ftlab's names for them."""
        return {
            "host.scheduler": "noop",
            "host.queue_depth": "unlimited",
            "host.deadline": "none",
            "device.scheduler": self.scheduler,
            "device.queue_depth": "unlimited" if self.depth is None else self.depth,
            "ftl.kind": "page",
            "ftl.over_provisioning": "95%",
            "ftl.logical_page": f"{self.page}B",
            "flash.channels": self.channels,
            "flash.chips_per_channel": self.ways,
            "flash.blocks_per_plane": self.blocks,
            "flash.pages_per_block": self.block_pages,
            "flash.page": f"{self.page * self.logical}B",
            "flash.cell": self.cell,
            "flash.read": "/".join(f"{ns}ns" for ns in self.read),
            "flash.program": "/".join(f"{ns}ns" for ns in self.program),
            "flash.page_order": self.order,
            "flash.programming": self.programming,
            "flash.transfer": f"{self.byte_ns}ns",
            "flash.command": f"{self.command}ns",
        }


@dataclass
class Outcome:
    """When each request completed, ns, and what the flash did."""

    done: list[int]
    reads: int = 0
    programs: Counter[str] = field(default_factory=Counter)
    """NAND pages programmed, by cause."""
    times: list[int] = field(default_factory=list)
    """The time that the cells took, for each NAND page programmed, ns."""
    busy: int = 0
    """Time of cells and buses, ns."""
    written: int = 0
    """Logical pages that the host wrote."""


@dataclass(frozen=True)
class Place:
    """Where a logical page lies."""

    lun: int
    page: int
    """The NAND page, counted over all that the chip has programmed."""


@dataclass(frozen=True)
class Work:
    """An operation that has no place in time yet."""

    lun: int
    op: str
    stages: list[Stage]


class Mapping:
    """The FTL: where pages lie, which wait in RAM, and the operations of a request."""

    def __init__(self, config: Config, outcome: Outcome) -> None:
        self.config = config
        self.outcome = outcome
        self.luns = config.channels * config.ways
        self.types = config.types()
        self.places: dict[int, Place] = {}
        self.programmed = [0] * self.luns
        """NAND pages that each chip has programmed."""
        self.turn = 0
        """The chip whose unit is being filled."""
        self.filled = 0
        """Logical pages in this unit."""

    def place_of(self, lpn: int) -> Place:
        """Returns where a page lies; the NAND pages of those that were never written are below 0."""
        page = lpn // self.config.logical
        return self.places.get(lpn, Place(page // self.config.unit_pages % self.luns, -1 - page))

    def waits(self, place: Place) -> bool:
        """Whether a page is still in RAM."""
        return place.page >= self.programmed[place.lun]

    def next_luns(self, pages: int) -> set[int]:
        """Returns the chips that get the next pages to be written."""
        size = self.config.logical * self.config.unit_pages
        return {(self.turn + (self.filled + page) // size) % self.luns for page in range(pages)}

    def touched(self, op: str, lpns: range) -> set[int]:
        """Returns the chips that a request concerns; a page in RAM belongs to the chip that will get it."""
        if op == "F":
            return set(range(self.luns))
        if op == "R":
            return {self.place_of(lpn).lun for lpn in lpns}
        return self.next_luns(len(lpns)) if self.config.gathers else {lpn % self.luns for lpn in lpns}

    def serve(self, op: str, lpns: range) -> list[Work]:
        """Returns a request's operations; all decisions about it are taken now."""
        if op == "R":
            return list(self.read(lpns))
        if op == "F":
            return list(self.pad())
        self.outcome.written += len(lpns)
        works = [work for lpn in lpns for work in self.write(lpn)]
        return works + list(self.pad() if op == "WF" else ())

    def read(self, lpns: range) -> Iterator[Work]:
        """Yields the reads of pages that are on flash."""
        runs: list[tuple[Place, int]] = []
        last = None
        for lpn in lpns:
            place = self.place_of(lpn)
            if place == last:
                runs[-1] = (place, runs[-1][1] + 1)
            else:
                runs.append((place, 1))
            last = place
        for place, pages in runs:
            if self.waits(place):
                continue
            kind = self.types[place.page % len(self.types)] if place.page >= 0 else 0
            self.outcome.reads += 1
            data = self.config.transfer(pages)
            cells = self.config.read[kind % len(self.config.read)]
            stages = [(True, self.config.command, True), (False, cells, False), (True, data, False)]
            yield Work(place.lun, "R", stages)

    def write(self, lpn: int) -> Iterator[Work]:
        """Takes a page; yields the program of a unit that is full now."""
        if not self.config.gathers:
            self.turn = lpn % self.luns
        page = self.programmed[self.turn] + self.filled // self.config.logical
        self.places[lpn] = Place(self.turn, page)
        self.filled += 1
        if self.filled == self.config.logical * self.config.unit_pages:
            yield self.program()

    def pad(self) -> Iterator[Work]:
        """Yields the program of a unit that has been begun."""
        if self.filled:
            yield self.program()

    def program(self) -> Work:
        """Programs the unit being filled; the next chip takes its turn."""
        config, pages = self.config, self.config.unit_pages
        kind = self.types[self.programmed[self.turn] % len(self.types)]
        cells = config.program[kind % len(config.program)]
        full = self.filled // config.logical
        self.outcome.programs.update(host=full, pad=pages - full)
        self.outcome.times += [cells] * pages
        data = config.command + pages * config.transfer(config.logical)
        lun = self.turn
        self.programmed[lun] += pages
        self.filled = 0
        self.turn = (lun + 1) % self.luns
        return Work(lun, "W", [(True, data, False), (False, cells, False)])


class Device(Model):
    """The device: a queue in order of arrival, above the FTL and the array."""

    def __init__(self, config: Config, requests: Sequence[Request]) -> None:
        array = Array(config.channels, config.ways, byte_ns=config.byte_ns, command_ns=config.command)
        super().__init__(array, requests)
        self.config = config
        self.outcome = Outcome(self.completions)
        self.mapping = Mapping(config, self.outcome)
        self.queue: deque[int] = deque()
        self.under_way = 0
        """Requests that have operations to end."""

    def arrive(self, index: int, now: int) -> None:
        self.queue.append(index)

    def may_issue(self, op: str, lpns: range) -> bool:
        """Whether the oldest request may issue."""
        if op == "F":
            return self.under_way == 0
        if self.config.depth is not None and self.under_way >= self.config.depth:
            return False
        touched = self.mapping.touched(op, lpns) if self.config.scheduler == "noop" else set()
        return not any(self.queues[lun] for lun in touched)

    def bind(self, now: int) -> None:
        """Lets requests issue, once all else that is due has happened."""
        while self.queue:
            _, op, first, pages = self.requests[self.queue[0]]
            if not self.may_issue(op, range(first, first + pages)):
                return
            self.issue(self.queue.popleft(), now)

    def issue(self, index: int, now: int) -> None:
        """Sends a request's operations to their dies; one that has none completes at once."""
        _, op, first, pages = self.requests[index]
        works = self.mapping.serve(op, range(first, first + pages))
        self.pages_left[index] = len(works)
        self.under_way += bool(works)
        self.completions[index] = now
        for work in works:
            self.outcome.busy += sum(ns for _, ns, _ in work.stages)
            stages = [stage for stage in work.stages if stage[1] > 0]
            self.queues[work.lun].append(Operation(index, work.op, stages))
            if len(self.queues[work.lun]) == 1:
                self.begin(work.lun, now)

    def end(self, die: int, now: int) -> None:
        index = self.queues[die][0].request
        super().end(die, now)
        self.under_way -= self.pages_left[index] == 0


def run(config: Config, requests: Sequence[Request]) -> Outcome:
    """Returns what becomes of requests in order of arrival, whose op is "R", "W", "WF" (with FUA) or "F"."""
    device = Device(config, requests)
    device.run()
    return device.outcome
