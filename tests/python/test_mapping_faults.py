"""Deliberate faults in the second implementations of CDFTL and TPFTL (``cache.py``, ``tpftl.py``).

``test_oracle.py`` shows that they equal ftlab; here each fault makes them differ from ftlab in one of the
same cases, so that the comparison would notice such a fault in ftlab.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction

import pytest

from oracle import cache, diff, engine, generate, tpftl
from oracle.cache import Cdftl
from oracle.tpftl import Tpftl

pytestmark = pytest.mark.skipif(not engine.available(), reason=engine.SKIP_REASON)


class RefreshesPage(Cdftl):
    """Makes the page of an entry that was hit in the CMT the most recent of the CTP."""

    def translate(self, lpn: int, dirties: bool, rest: Sequence[int] = ()) -> bool:
        page = lpn // self.entries_per_page
        if lpn in self.cmt and page in self.ctp:
            self.ctp.remove(page)
            self.ctp.insert(0, page)
        return super().translate(lpn, dirties, rest)


class LeavesPage(Cdftl):
    """Leaves the order of the CTP when a page is hit there."""

    def translate(self, lpn: int, dirties: bool, rest: Sequence[int] = ()) -> bool:
        before, known = list(self.ctp), lpn // self.entries_per_page in self.ctp
        hit = super().translate(lpn, dirties, rest)
        if known and set(before) == set(self.ctp):
            self.ctp = before
        return hit


class EntryFirst(Cdftl):
    """On a miss makes room for the entry before the page is loaded."""

    def load_page(self, page: int) -> None:
        if self.cmt_capacity is not None and len(self.cmt) >= self.cmt_capacity:
            self.evict_entry()
        super().load_page(page)


class OldestEntry(Cdftl):
    """Evicts the least recent entry, whose page is loaded if it is dirty and the page absent."""

    def evict_entry(self) -> None:
        lpn = self.cmt.pop()
        if lpn in self.dirty_entries:
            if lpn // self.entries_per_page not in self.ctp:
                self.load_page(lpn // self.entries_per_page)
            self.merge(lpn)


class CleanFirst(Cdftl):
    """Evicts a clean entry where there is one, before a dirty one whose page is cached."""

    def evict_entry(self) -> None:
        clean = [lpn for lpn in self.cmt if lpn not in self.dirty_entries]
        if clean:
            self.cmt.remove(clean[-1])
        else:
            super().evict_entry()


class ReadsVictim(Cdftl):
    """Reads a dirty page of the CTP before it is programmed."""

    def load_page(self, page: int) -> None:
        full = self.ctp_capacity is not None and len(self.ctp) >= self.ctp_capacity
        if full and self.ctp[-1] in self.dirty_pages:
            self.cost.map_read()
        super().load_page(page)


class CleansEntries(Cdftl):
    """Programs the dirty entries of the CMT with a page of the CTP."""

    def load_page(self, page: int) -> None:
        dirty = set(self.dirty_pages)
        super().load_page(page)
        for gone in dirty - self.dirty_pages:
            self.dirty_entries = {lpn for lpn in self.dirty_entries if lpn // self.entries_per_page != gone}


class MergesClean(Cdftl):
    """Makes a page of the CTP dirty by evicting a clean entry."""

    def evict_entry(self) -> None:
        before = set(self.cmt)
        super().evict_entry()
        self.dirty_pages |= {lpn // self.entries_per_page for lpn in before - set(self.cmt)} & set(self.ctp)


CDFTL_FAULTS = [
    *[
        RefreshesPage,
        LeavesPage,
        EntryFirst,
        OldestEntry,
        CleanFirst,
        ReadsVictim,
        CleansEntries,
        MergesClean,
    ],
]


# --- faults of TPFTL -----------------------------------------------------------------------------


class LastUse(Tpftl):
    """Takes the node that was used least recently for the coldest."""

    def coldest(self) -> int:
        return min(self.nodes, key=lambda page: (max(self.nodes[page].values()), page))


class HigherPage(Tpftl):
    """Of nodes with equal means, takes that of the highest translation page for the coldest."""

    def coldest(self) -> int:
        def mean(page: int) -> tuple[Fraction, int]:
            uses = self.nodes[page].values()
            return Fraction(sum(uses), len(uses)), -page

        return min(self.nodes, key=mean)


class OldestOfNode(Tpftl):
    """Evicts the least recent entry of the coldest node, even if it is dirty and another is clean."""

    def evict_from(self, page: int) -> None:
        victim = next(iter(self.nodes[page]))
        if victim in self.dirty:
            self.write_back(page)
        del self.nodes[page][victim]
        if not self.nodes[page]:
            del self.nodes[page]
            self.count_node(-1)


class WritesVictimAlone(Tpftl):
    """Leaves the other entries of a node dirty when the victim is written back."""

    def write_back(self, page: int) -> None:
        kept = self.dirty - {next(iter(self.nodes[page]))}
        super().write_back(page)
        self.dirty = kept


class NodeLeaves(Tpftl):
    """Lets a node whose dirty entries are written back leave as a whole."""

    def evict_from(self, page: int) -> None:
        written = all(lpn in self.dirty for lpn in self.nodes[page])
        super().evict_from(page)
        if written and page in self.nodes:
            del self.nodes[page]
            self.count_node(-1)


class NoRest(Tpftl):
    """Loads nothing for the rest of a request."""

    def load(self, lpn: int, rest: Sequence[int]) -> None:
        super().load(lpn, ())


class NoNeighbours(Tpftl):
    """Never prefetches as many entries as are cached before the missed one."""

    def predecessors(self, lpn: int) -> int:
        return 0


class NeighboursFromStart(Tpftl):
    """Begins with the prefetching of neighbours switched on."""

    def __init__(self, capacity: int | None, entries_per_page: int, cost: cache.Cost) -> None:
        super().__init__(capacity, entries_per_page, cost)
        self.selective = True


class NeverOff(Tpftl):
    """Does not switch the prefetching of neighbours off again."""

    def count_node(self, by: int) -> None:
        before = self.selective
        super().count_node(by)
        self.selective |= before


class BalanceStays(Tpftl):
    """Does not begin again at 0 when the prefetching of neighbours is switched."""

    def count_node(self, by: int) -> None:
        before = self.balance + by
        super().count_node(by)
        self.balance = before


class ManyNodes(Tpftl):
    """Makes room for a prefetch from as many nodes as it takes."""

    def load(self, lpn: int, rest: Sequence[int]) -> None:
        page = self.page_of(lpn)
        wanted = 1 + sum(self.page_of(other) == page and not self.cached(other) for other in rest)
        while self.capacity is not None and self.nodes and self.free_after(page, wanted) < 0:
            self.evict_from(self.coldest())
        super().load(lpn, rest)


class FreeNodes(Tpftl):
    """Counts no bytes for a node."""

    def free_after(self, page: int, more: int) -> int:
        assert self.capacity is not None
        return self.capacity - tpftl.ENTRY * (sum(map(len, self.nodes.values())) + more)


TPFTL_FAULTS = [
    *[LastUse, HigherPage, OldestOfNode, WritesVictimAlone, NodeLeaves, NoRest, NoNeighbours],
    *[NeighboursFromStart, NeverOff, BalanceStays, ManyNodes, FreeNodes],
]


def cases_of(ftl: str) -> Iterator[int]:
    """Yields seeds of ``generate.case`` whose configuration has this FTL."""
    return (seed for seed in range(600) if generate.case(seed)[0].ftl == ftl)


@pytest.mark.parametrize("fault", CDFTL_FAULTS)
def test_a_fault_of_cdftl_is_noticed(fault: type[Cdftl], monkeypatch: pytest.MonkeyPatch) -> None:
    """With a fault the oracle differs from ftlab in one of the cases of ``test_oracle.py``."""
    monkeypatch.setattr(cache, "Cdftl", fault)
    assert any(diff.differences(*generate.case(seed)) for seed in cases_of("cdftl"))


@pytest.mark.parametrize("fault", TPFTL_FAULTS)
def test_a_fault_of_tpftl_is_noticed(fault: type[Tpftl], monkeypatch: pytest.MonkeyPatch) -> None:
    """With a fault the oracle differs from ftlab in one of the cases of ``test_oracle.py``."""
    monkeypatch.setattr(tpftl, "Tpftl", fault)
    assert any(diff.differences(*generate.case(seed)) for seed in cases_of("tpftl"))
