"""The translation blocks of FTLs that gather units of the map into pages (``units.py``), on one chip.

The model was written from Kim and Lee (ICSOFT 2020, sections 3.3 and 3.4), spec/msftl.md and
docs/readings/msftl.md: pages go to one open block. When the last block would be opened, the directory is
written, and then blocks with the fewest up-to-date units are collected until one is free. The directory on
flash is data like units.

No independent witness, since no text says it and ftlab was asked: one more erased block is kept, for the
copies; room for a page is made before the old versions of its units are read.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

READ_NS, PROGRAM_NS, ERASE_NS = 49_000, 600_000, 4_000_000
MOST_ROUNDS = 1000
"""More blocks than are ever collected for one page."""


@dataclass
class Counts:
    """What collecting translation blocks has taken."""

    directory: int = 0
    """Pages of the directory that were programmed."""
    copied: int = 0
    """Pages into which live units were gathered."""
    read: int = 0
    """Pages read for them."""
    erases: int = 0


@dataclass(eq=False)
class Block:
    """The pages of a block, each with its number, and when the block came to its number of live units."""

    pages: list[int] = field(default_factory=list)
    since: int = 0


class Log:
    """All translation blocks, and where the newest version of each unit is."""

    def __init__(
        self, limit: int, block_pages: int, page_units: int, directory: int, spend: Callable[[int], None]
    ) -> None:
        """Makes an empty log of at most ``limit`` blocks, with a directory of this many pages."""
        self.limit, self.block_pages, self.page_units = limit, block_pages, page_units
        self.directory = directory
        self.spend = spend
        self.counts = Counts()
        self.at: dict[int, int] = {}
        self.pages: dict[int, list[int]] = {}
        self.blocks = [Block()]
        self.events = 0
        self.collecting = False
        self.directory_is_old = False

    def begin_page(self) -> None:
        """Makes room for a page."""
        rounds = 0
        while len(self.blocks[-1].pages) == self.block_pages:
            self.note(self.blocks[-1])
            self.blocks.append(Block())
            if not self.collecting and self.is_due():
                self.collect()
            rounds += 1
            assert rounds < MOST_ROUNDS, "collecting blocks makes no room"

    def is_due(self) -> bool:
        return len(self.blocks) >= self.limit - 1

    def note(self, block: Block) -> None:
        self.events += 1
        block.since = self.events

    def program(self, units: list[int]) -> None:
        """Programs a page of these units, of which older versions are stale then."""
        self.begin_page()
        number = len(self.pages)
        self.pages[number] = units
        self.blocks[-1].pages.append(number)
        for unit in units:
            for block in self.blocks[:-1]:
                if self.at.get(unit) in block.pages:
                    self.note(block)
            self.at[unit] = number
        self.spend(PROGRAM_NS)

    def live(self, block: Block) -> list[int]:
        """Returns a block's up-to-date units, in their order."""
        return [unit for page in block.pages for unit in self.pages[page] if self.at[unit] == page]

    def collect(self) -> None:
        self.collecting = True
        if self.directory_is_old:
            self.write_directory()
        rounds = 0
        while self.is_due():
            self.collect_block(self.victim())
            rounds += 1
            assert rounds < MOST_ROUNDS, "collecting blocks makes no room"
        self.collecting = False

    def write_directory(self) -> None:
        self.directory_is_old = False
        for page in range(self.directory):
            # Units of the map have numbers from 0 on.
            first = -1 - page * self.page_units
            self.program([first - number for number in range(self.page_units)])
            self.counts.directory += 1

    def victim(self) -> Block:
        """Returns the block with the fewest live units; of several, that which came to this number first."""
        return min(self.blocks[:-1], key=lambda block: (len(self.live(block)), block.since))

    def collect_block(self, victim: Block) -> None:
        """Gathers a block's live units into full pages, and erases it."""
        units = self.live(victim)
        read = len({self.at[unit] for unit in units})
        self.counts.read += read
        self.spend(read * READ_NS)
        self.blocks.remove(victim)
        for first in range(0, len(units), self.page_units):
            self.program(units[first : first + self.page_units])
            self.counts.copied += 1
        self.counts.erases += 1
        self.spend(ERASE_NS)
