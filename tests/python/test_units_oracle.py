"""Deliberate faults in the second implementation of Base-DFTL, mini-page FTL and MSFTL (``oracle/units.py``).

``test_second.py`` shows that it equals ftlab; here each fault makes it differ from ftlab in one of the same
cases, so that the comparison would notice such a fault in ftlab.
"""

from __future__ import annotations

import pytest

from oracle import engine, units
from oracle.units import Model
from oracle.units_log import Block, Log

pytestmark = pytest.mark.skipif(not engine.available(), reason=engine.SKIP_REASON)


# --- of gathering, and of a bounded cache -------------------------------------------------------


class Descending(Model):
    """Gathers units in descending order."""

    def flush(self) -> None:
        units = sorted({self.unit_of(lpn) for lpn in self.dirty}, reverse=True)
        fetched: set[int] = set()
        for first in range(0, len(units), self.units_of_page):
            self.gather(units[first : first + self.units_of_page], units, fetched)
        self.since = 0


class ReadsForEachPage(Model):
    """Reads a translation page once for each page that is programmed from it."""

    def gather(self, together: list[int], wanted: list[int], fetched: set[int]) -> None:
        super().gather(together, wanted, set())


class ReadsEachUnit(Model):
    """Reads a translation page once for each unit that is wanted of it."""

    def found_with(self, unit: int, wanted: list[int]) -> set[int]:
        return {unit}


class ReadsBeforeRoom(Model):
    """Reads the old versions of units before room for their page is made."""

    def gather(self, together: list[int], wanted: list[int], fetched: set[int]) -> None:
        for unit in together:
            if unit in self.at and unit not in fetched:
                self.read(1)
                fetched |= self.found_with(unit, wanted)
        super().gather(together, wanted, fetched | set(together))


class VictimAlone(Model):
    """Writes the unit of an evicted entry alone."""

    def together(self, unit: int) -> list[int]:
        return [unit]


class LowestFirst(Model):
    """Adds the lowest units with updates to that of an evicted entry."""

    def together(self, unit: int) -> list[int]:
        others = sorted({self.unit_of(lpn) for lpn in self.dirty} - {unit})
        return [unit, *others][: self.units_of_page]


class CleansVictim(Model):
    """Cleans the evicted entry alone, not all of the units that are written."""

    def make_room(self) -> None:
        before = set(self.dirty)
        held = self.cached.coldest_first()
        super().make_room()
        if self.dirty != before:
            self.dirty = before - (set(held) - set(self.cached.coldest_first()))


class FetchesForWrites(Model):
    """Lets a write that lacks its entry miss."""

    def translate(self, op: str, lpn: int, rest: range) -> None:
        super().translate("R", lpn, rest)


class ReadsUnwritten(Model):
    """Reads a unit that was never written."""

    def translate(self, op: str, lpn: int, rest: range) -> None:
        self.at.setdefault(self.unit_of(lpn), 1)
        super().translate(op, lpn, rest)


class CountsFromFlush(Model):
    """Lets a flush of the host leave the amount that has been written since the last one."""

    def serve(self, op: str, first: int, pages: int) -> None:
        before = self.since
        super().serve(op, first, pages)
        if op == "F":
            self.since = before


class CountsTrims(Model):
    """Counts trimmed pages as written."""

    def serve(self, op: str, first: int, pages: int) -> None:
        super().serve(op, first, pages)
        self.since += pages if op == "T" else 0


# --- of the translation blocks -----------------------------------------------------------------


class NoReserve(Log):
    """Collects when the last block is opened, not when it would be the next."""

    def is_due(self) -> bool:
        return len(self.blocks) >= self.limit


class NoDirectory(Log):
    """Writes no directory before blocks are collected."""

    def write_directory(self) -> None:
        pass


class AlwaysDirectory(Log):
    """Writes the directory even if no unit has been programmed since."""

    def collect(self) -> None:
        self.directory_is_old = True
        super().collect()


class DirectoryIsNoData(Log):
    """Counts nothing of the directory as live."""

    def write_directory(self) -> None:
        self.directory_is_old = False
        for _ in range(self.directory):
            self.program([])
            self.counts.directory += 1


class OldestBlock(Log):
    """Collects the block that was opened first."""

    def victim(self) -> Block:
        return self.blocks[0]


class LastOfEquals(Log):
    """Of blocks with the same number of live units, collects that which came to it last."""

    def victim(self) -> Block:
        return min(self.blocks[:-1], key=lambda block: (len(self.live(block)), -block.since))


class FewestPages(Log):
    """Collects the block with the fewest pages in which something is live."""

    def victim(self) -> Block:
        return min(self.blocks[:-1], key=lambda block: len({self.at[unit] for unit in self.live(block)}))


class PageByPage(Log):
    """Copies pages as they are, without gathering their live units."""

    def collect_block(self, victim: Block) -> None:
        live = self.live(victim)
        pages = [[unit for unit in live if self.at[unit] == page] for page in victim.pages]
        more = sum(bool(units) for units in pages) - -(-len(live) // self.page_units)
        super().collect_block(victim)
        self.counts.copied += more


FAULTS = [
    *[Descending, ReadsForEachPage, ReadsEachUnit, ReadsBeforeRoom, VictimAlone, LowestFirst, CleansVictim],
    *[FetchesForWrites, ReadsUnwritten, CountsFromFlush, CountsTrims],
]
LOG_FAULTS = [
    *[NoReserve, NoDirectory, AlwaysDirectory, DirectoryIsNoData, OldestBlock, LastOfEquals, FewestPages],
    *[PageByPage],
]


def is_noticed(model: type[Model], cases: range) -> bool:
    """Whether a fault makes a difference to ftlab in one of the cases, or never ends."""
    try:
        return any(units.differences(units.case(number), model) for number in cases)
    except AssertionError as error:
        return "makes no room" in str(error)


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_is_noticed(fault: type[Model]) -> None:
    assert is_noticed(fault, range(150))


@pytest.mark.parametrize("fault", LOG_FAULTS)
def test_a_fault_of_the_translation_blocks_is_noticed(fault: type[Log]) -> None:
    # Every third case has few translation blocks.
    assert is_noticed(type("Faulty", (Model,), {"log_of": fault}), range(0, 900, 3))
