"""Deliberate faults in the second implementation of Base-DFTL, mini-page FTL and MSFTL (``oracle/units.py``).

``test_second.py`` shows that it equals ftlab; here each fault makes it differ from ftlab in one of the same
cases, so that the comparison would notice such a fault in ftlab.
"""

from __future__ import annotations

import pytest

from oracle import engine, units
from oracle.units import Model

pytestmark = pytest.mark.skipif(not engine.available(), reason=engine.SKIP_REASON)


class Descending(Model):
    """Gathers units in descending order."""

    def flush(self) -> None:
        dirty = sorted({self.unit_of(lpn) for lpn in self.dirty}, reverse=True)
        read = self.sources(dirty)
        for first in range(0, len(dirty), self.units_of_page):
            self.program(dirty[first : first + self.units_of_page])
        self.read(len(read))
        self.since = 0


class ReadsForEachPage(Model):
    """Reads a translation page once for each page that is programmed from it."""

    def flush(self) -> None:
        dirty = sorted({self.unit_of(lpn) for lpn in self.dirty})
        for first in range(0, len(dirty), self.units_of_page):
            together = dirty[first : first + self.units_of_page]
            self.read(len(self.sources(together)))
            self.program(together)
        self.since = 0


class ReadsEachUnit(Model):
    """Reads a translation page once for each unit that is wanted of it."""

    def sources(self, units: list[int]) -> set[int]:
        return {unit for unit in units if unit in self.at}


class LosesUnits(Model):
    """Takes the units that share a page with one that is written anew for lost."""

    def program(self, units: list[int]) -> None:
        gone = self.sources(units)
        super().program(units)
        self.at = {unit: page for unit, page in self.at.items() if page not in gone}


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


FAULTS = [
    *[Descending, ReadsForEachPage, ReadsEachUnit, LosesUnits, VictimAlone, LowestFirst, CleansVictim],
    *[FetchesForWrites, ReadsUnwritten, CountsFromFlush, CountsTrims],
]


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_is_noticed(fault: type[Model]) -> None:
    assert any(units.differences(units.case(number), fault) for number in range(150))
