"""A model of superblocks over a page map with greedy garbage collection; it counts pages, not time.

It was written from the contracts of fronts (devices.md) and of the page-mapped log (model.md), only to be
compared with ftlab. Requests cover whole pages, and a logical page is a NAND page.

Where these leave a choice open, the model follows the documentation of ftlab's log. These readings are
ftlab's own:

- A group is a number of neighbouring LUNs. A page is at home in the group with its number modulo the number
  of groups. A group fills one superblock of each class.
- The pages of a superblock go round the LUNs of its group, beginning with the first.
- A superblock is closed as soon as it is full, and the next one is taken when a page needs it. If only the
  reserve is left then, one victim after another is collected until there is one. Room is made before the
  version that is replaced becomes invalid.
- The victim is the closed superblock with the fewest valid pages; of several, the one that came to this
  number first. Its pages are copied in their order. Those that find no room in the open superblock of their
  class take one superblock of the reserve together, which becomes the open one of that class.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from .mapplus import Record


@dataclass(frozen=True)
class Config:
    """The settings of the model: sizes of the device."""

    luns: int = 4
    width: int = 4
    """LUNs of a group; it divides their number."""
    blocks: int = 32
    """Erase blocks of a LUN."""
    block_pages: int = 4
    spare: int = 50
    """What is withheld from the user, in percent of all pages."""
    reserve: int = 1
    """Erased superblocks of a group that only copies may take."""
    apart: bool = False
    """Whether copies are a class of their own."""
    page: int = 4096
    """Bytes of a page."""

    def pages(self) -> int:
        """Returns the number of logical pages."""
        return self.luns * self.blocks * self.block_pages * (100 - self.spare) // 100

    def settings(self) -> dict[str, str | int | bool]:
        """Returns these settings under ftlab's names for them."""
        return {
            "ftl.kind": "page",
            "ftl.placement": "gc-apart" if self.apart else "one",
            "ftl.gc": "greedy",
            "ftl.gc_free_blocks": self.reserve,
            "ftl.over_provisioning": f"{self.spare}%",
            "ftl.reclaim_unit": f"superblock:{self.width}",
            "host.scheduler": "noop",
            "flash.channels": self.luns,
            "flash.blocks_per_plane": self.blocks,
            "flash.pages_per_block": self.block_pages,
            "flash.page": f"{self.page}B",
        }


@dataclass(frozen=True)
class Counts:
    """What a device has done since it was new, and what its blocks hold."""

    written: int
    """Pages that the host wrote."""
    moved: int
    """Pages that were copied."""
    erased: int
    """Blocks that were erased."""
    valid: tuple[tuple[int, ...], ...]
    """For each LUN, how many valid pages its blocks have, in ascending order."""


@dataclass(eq=False)
class Superblock:
    """A superblock that was taken to be written."""

    pages: list[int] = field(default_factory=list)
    """The LPNs that were programmed, in order."""
    live: dict[int, int] = field(default_factory=dict)
    """The LPNs whose newest version is here, with its place among the pages."""
    changed: int = 0
    """When, in events, the superblock came to its number of valid pages."""


@dataclass
class Group:
    """The superblocks of a group."""

    erased: int
    """Erased superblocks, the reserve included."""
    open: dict[str, Superblock] = field(default_factory=dict)
    """The superblock of each class that has room."""
    closed: list[Superblock] = field(default_factory=list)


class Device:
    """The device; its pages are written and trimmed one by one."""

    def __init__(self, config: Config) -> None:
        self.config = config
        self.full = config.width * config.block_pages
        """Pages of a superblock."""
        self.groups = [Group(config.blocks) for _ in range(config.luns // config.width)]
        self.copies = "copies" if config.apart else "host"
        """The class of copies."""
        self.at: dict[int, Superblock] = {}
        """The superblock that holds a page's newest version."""
        self.events = self.written = self.moved = self.erased = 0

    def write(self, lpn: int) -> None:
        """Writes a page."""
        group = self.groups[lpn % len(self.groups)]
        while "host" not in group.open:
            if group.erased > self.config.reserve:
                self.take(group, "host")
            else:
                self.collect(group)
        self.trim(lpn)
        self.program(group, "host", lpn)
        self.written += 1

    def trim(self, lpn: int) -> None:
        """Makes the newest version of a page invalid, if there is one."""
        superblock = self.at.pop(lpn, None)
        if superblock is not None:
            del superblock.live[lpn]
            self.touch(superblock)

    def take(self, group: Group, of: str) -> None:
        """Takes an erased superblock for a class."""
        group.erased -= 1
        group.open[of] = Superblock()

    def touch(self, superblock: Superblock) -> None:
        """Notes that a superblock's number of valid pages has changed."""
        self.events += 1
        superblock.changed = self.events

    def program(self, group: Group, of: str, lpn: int) -> None:
        """Programs a page's newest version into the open superblock of a class; closes it if full."""
        superblock = group.open[of]
        superblock.live[lpn] = len(superblock.pages)
        superblock.pages.append(lpn)
        self.at[lpn] = superblock
        self.touch(superblock)
        if len(superblock.pages) == self.full:
            group.closed.append(group.open.pop(of))

    def collect(self, group: Group) -> None:
        """Collects a victim, since only the reserve is left."""
        victim = min(group.closed, key=lambda one: (len(one.live), one.changed))
        group.closed.remove(victim)
        for lpn in list(victim.live):
            if self.copies not in group.open:
                self.take(group, self.copies)
            self.program(group, self.copies, lpn)
        self.moved += len(victim.live)
        group.erased += 1
        self.erased += self.config.width

    def counts(self) -> Counts:
        """Returns what was done so far."""
        valid = tuple(self.valid(lun) for lun in range(self.config.luns))
        return Counts(self.written, self.moved, self.erased, valid)

    def valid(self, lun: int) -> tuple[int, ...]:
        """Returns how many valid pages the blocks of a LUN have, in ascending order."""
        group, row = self.groups[lun // self.config.width], lun % self.config.width
        taken = [*group.closed, *group.open.values()]
        found = [sum(at % self.config.width == row for at in one.live.values()) for one in taken]
        return tuple(sorted([0] * group.erased + found))


def run(config: Config, trace: Iterable[Record]) -> Iterator[Counts]:
    """Yields what a new device has done after each request of a trace, whose op is "R", "W" or "T"."""
    device = Device(config)
    for _, op, offset, size in trace:
        for lpn in range(offset // config.page, (offset + size) // config.page):
            if op == "W":
                device.write(lpn)
            elif op == "T":
                device.trim(lpn)
        yield device.counts()
