"""A model of the placement SepBIT over a page map with greedy garbage collection; it counts pages, not time.

It was written from the paper (Wang et al., FAST 2022, section 3), from the contract of fronts (devices.md)
and of the page-mapped log (model.md), only to be compared with ftlab. Requests cover whole pages, and a
logical page is a NAND page.

Where these rules leave a choice open, the model follows the documentation of ftlab's log and placement. These
readings are ftlab's own:

- A segment is an erase block. Each LUN has an open block of each class. The mean lifespan l is the whole
  device's, and so is the clock, which counts the pages that the host has written.
- The first version of a page, and the first after a trim, goes to class 2.
- A block is closed as soon as it is full. The next block of its class is taken when a page needs it. If only
  the reserve is left then, one victim after another is collected until there is a block.
- The class of a write is determined first, then room is made for it, and only then the version that it
  replaces becomes invalid. So that version may be copied just before.
- The victim is the closed block with the fewest valid pages; of several, the one that came to this number
  first.
- A victim's pages are copied in their order. Those that find no room in the open block of their class take
  one block of the reserve together, which becomes the open block of the class of the last of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from fractions import Fraction

from .mapplus import Record

CLASSES = range(1, 7)
SEGMENTS = 16
"""So many segments of class 1 are collected before the mean lifespan is determined anew."""


@dataclass(frozen=True)
class Config:
    """The settings of the model: sizes of the device."""

    luns: int = 1
    blocks: int = 32
    """Erase blocks of a LUN."""
    block_pages: int = 4
    spare: int = 50
    """What is withheld from the user, in percent of all pages."""
    reserve: int = 1
    """Erased blocks of a LUN that only copies may take."""
    page: int = 4096
    """Bytes of a page."""

    def pages(self) -> int:
        """Returns the number of logical pages."""
        return self.luns * self.blocks * self.block_pages * (100 - self.spare) // 100

    def settings(self) -> dict[str, str | int | bool]:
        """Returns these settings under ftlab's names for them."""
        return {
            "ftl.kind": "page",
            "ftl.placement": "sepbit",
            "ftl.gc": "greedy",
            "ftl.gc_free_blocks": self.reserve,
            "ftl.over_provisioning": f"{self.spare}%",
            "host.scheduler": "noop",
            "flash.channels": self.luns,
            "flash.blocks_per_plane": self.blocks,
            "flash.pages_per_block": self.block_pages,
            "flash.page": f"{self.page}B",
        }


@dataclass(frozen=True)
class Counts:
    """What a device has done since it was new, and what its blocks hold."""

    written: tuple[int, ...]
    """Pages that the host wrote to each class, class 1 first."""
    moved: tuple[int, ...]
    """Pages that were copied to each class."""
    erased: int
    """Blocks that were erased."""
    valid: tuple[tuple[int, ...], ...]
    """For each LUN, how many valid pages its blocks have, in ascending order."""


@dataclass
class Block:
    """An erase block that was taken to be written."""

    of: int
    """The class for which it was taken."""
    since: int
    """The time of its first page."""
    pages: list[int] = field(default_factory=list)
    """The LPNs that were programmed, in order."""
    live: set[int] = field(default_factory=set)
    """The LPNs whose newest version is here."""
    changed: int = 0
    """When, in events, the block came to its number of valid pages."""


@dataclass
class Lun:
    """The blocks of a LUN."""

    erased: int
    """Erased blocks, the reserve included."""
    open: dict[int, Block] = field(default_factory=dict)
    """The block of each class that has room."""
    closed: list[Block] = field(default_factory=list)


class Lifespans:
    """The mean lifespan l of the segments of class 1, and the classes that follow from it."""

    def __init__(self) -> None:
        self.mean: Fraction | None = None
        """The mean, in pages that the host wrote; ``None`` is infinite."""
        self.collected: list[int] = []
        """The lifespans that the next mean will be of."""

    def below(self, pages: int | None, times: int = 1) -> bool:
        """Whether a time is below ``times`` times l; ``None`` is infinite, and not below infinity."""
        return pages is not None and (self.mean is None or pages < times * self.mean)

    def of_write(self, lifespan: int | None) -> int:
        """Returns the class of a write, by how long the version that it replaces lasted."""
        return 1 if self.below(lifespan) else 2

    def of_copy(self, of: int, age: int) -> int:
        """Returns the class of a copy, by the class that it comes from and its age."""
        if of == 1:
            return 3
        return 4 if self.below(age, 4) else 5 if self.below(age, 16) else 6

    def collect(self, block: Block, now: int) -> None:
        """Learns the lifespan of a block that is collected."""
        if block.of == 1:
            self.collected.append(now - block.since)
        if len(self.collected) == SEGMENTS:
            self.mean = Fraction(sum(self.collected), SEGMENTS)
            self.collected = []


class Device:
    """The device; its pages are written and trimmed one by one."""

    def __init__(self, config: Config) -> None:
        self.config = config
        self.luns = [Lun(config.blocks) for _ in range(config.luns)]
        self.lifespans = Lifespans()
        self.clock = 0
        """Pages that the host has written."""
        self.events = 0
        """Changes of valid pages so far."""
        self.at: dict[int, Block] = {}
        """The block that holds a page's newest version."""
        self.written_at: dict[int, int] = {}
        """When the host wrote a page that is valid."""
        self.written = dict.fromkeys(CLASSES, 0)
        self.moved = dict.fromkeys(CLASSES, 0)
        self.erased = 0

    def write(self, lpn: int) -> None:
        """Writes a page."""
        lun = self.luns[lpn % self.config.luns]
        lifespan = self.clock - self.written_at[lpn] if lpn in self.written_at else None
        to = self.lifespans.of_write(lifespan)
        while to not in lun.open:
            if lun.erased > self.config.reserve:
                self.take(lun, to)
            else:
                self.collect(lun)
        self.trim(lpn)
        self.program(lun, lun.open[to], lpn)
        self.written[to] += 1
        self.written_at[lpn] = self.clock
        self.clock += 1

    def trim(self, lpn: int) -> None:
        """Makes the newest version of a page invalid, if there is one."""
        self.written_at.pop(lpn, None)
        block = self.at.pop(lpn, None)
        if block is not None:
            block.live.remove(lpn)
            self.touch(block)

    def take(self, lun: Lun, of: int) -> Block:
        """Takes an erased block for a class."""
        lun.erased -= 1
        lun.open[of] = Block(of, self.clock)
        return lun.open[of]

    def touch(self, block: Block) -> None:
        """Notes that a block's number of valid pages has changed."""
        self.events += 1
        block.changed = self.events

    def program(self, lun: Lun, block: Block, lpn: int) -> None:
        """Programs a page's newest version into an open block, which is closed if it is full then."""
        block.pages.append(lpn)
        block.live.add(lpn)
        self.at[lpn] = block
        self.touch(block)
        if len(block.pages) == self.config.block_pages:
            lun.closed.append(block)
            del lun.open[block.of]

    def collect(self, lun: Lun) -> None:
        """Collects a victim, since only the reserve is left."""
        victim = min(lun.closed, key=lambda block: (len(block.live), block.changed))
        lun.closed.remove(victim)
        self.lifespans.collect(victim, self.clock)
        for block, lpn in self.destinations(lun, victim):
            self.program(lun, block, lpn)
            self.moved[block.of] += 1
        lun.erased += 1
        self.erased += 1

    def destinations(self, lun: Lun, victim: Block) -> Iterator[tuple[Block, int]]:
        """Yields the victim's valid pages, each with the block that it goes to."""
        valid = [lpn for place, lpn in enumerate(victim.pages) if self.is_newest(victim, place)]
        of = {lpn: self.lifespans.of_copy(victim.of, self.clock - self.written_at[lpn]) for lpn in valid}
        left = []
        for lpn in valid:
            if of[lpn] in lun.open:
                yield lun.open[of[lpn]], lpn
            else:
                left.append(lpn)
        if left:
            shared = self.take(lun, self.shared_class([of[lpn] for lpn in left]))
            for lpn in left:
                yield shared, lpn

    def shared_class(self, classes: Sequence[int]) -> int:
        """Returns the class of the block that copies without room share, given their classes in order."""
        return classes[-1]

    def is_newest(self, block: Block, place: int) -> bool:
        """Whether a page of a block is the newest version of its LPN."""
        lpn = block.pages[place]
        return lpn in block.live and lpn not in block.pages[place + 1 :]

    def counts(self) -> Counts:
        """Returns what was done so far."""
        return Counts(
            tuple(self.written.values()),
            tuple(self.moved.values()),
            self.erased,
            tuple(self.valid(lun) for lun in self.luns),
        )

    def valid(self, lun: Lun) -> tuple[int, ...]:
        """Returns how many valid pages the blocks of a LUN have, in ascending order."""
        found = [len(block.live) for block in [*lun.closed, *lun.open.values()]]
        return tuple(sorted([0] * lun.erased + found))


def follow(device: Device, trace: Iterable[Record]) -> Iterator[None]:
    """Lets a device serve the requests of a trace, whose op is "R", "W" or "T"; yields after each."""
    page = device.config.page
    for _, op, offset, size in trace:
        for lpn in range(offset // page, (offset + size) // page):
            if op == "W":
                device.write(lpn)
            elif op == "T":
                device.trim(lpn)
        yield


def run(config: Config, trace: Iterable[Record]) -> Iterator[Counts]:
    """Yields what a new device has done after each request of a trace."""
    device = Device(config)
    for _ in follow(device, trace):
        yield device.counts()
