"""TPFTL (Zhou et al., EuroSys 2015), from the specification's digest of two public implementations and from
docs/readings/mapping-caches.md.

Entries of 6 B are in nodes of 8 B, one for each translation page with a cached entry. The mean over a node's
entries says how recently the node was used; it is computed anew each time.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import TYPE_CHECKING

from .cache import Frozen, Known

if TYPE_CHECKING:
    from .cache import Cost

ENTRY, NODE = 6, 8
"""The sizes in bytes of an entry, and of a node without its entries."""

SWITCH = 3
"""Prefetching of neighbours ends when this many more nodes have been added than removed, and begins when this
many more have been removed than added.
"""


class Tpftl:
    """Answers the five questions of ``cache.Cache``."""

    def __init__(self, capacity: int | None, entries_per_page: int, cost: Cost) -> None:
        self.capacity = capacity  # bytes; None: unlimited
        self.entries_per_page = entries_per_page
        self.cost = cost
        # The cached entries of each translation page, the least recent first: LPN and number of the last use.
        self.nodes: dict[int, dict[int, int]] = {}
        self.dirty: set[int] = set()
        self.used = 0  # translations so far
        self.balance = 0
        self.selective = False

    def page_of(self, lpn: int) -> int:
        return lpn // self.entries_per_page

    def cached(self, lpn: int) -> bool:
        return lpn in self.nodes.get(self.page_of(lpn), {})

    def touch(self, lpn: int) -> None:
        node = self.nodes[self.page_of(lpn)]
        node.pop(lpn, None)
        node[lpn] = self.used

    def translate(self, lpn: int, dirties: bool, rest: Sequence[int] = ()) -> bool:
        self.used += 1
        hit = self.cached(lpn)
        if hit:
            self.touch(lpn)
        else:
            self.load(lpn, rest)
        if dirties:
            self.dirty.add(lpn)
        return hit

    def load(self, lpn: int, rest: Sequence[int]) -> None:
        """Fetches an entry and those that follow it, as many as find room without evicting from more than one
        node.
        """
        page = self.page_of(lpn)
        length = sum(self.page_of(other) == page for other in rest)
        if self.selective:
            length = max(length, self.predecessors(lpn))
        end = min(lpn + length + 1, (page + 1) * self.entries_per_page)
        wanted = [other for other in range(lpn + 1, end) if not self.cached(other)]
        if self.capacity is not None:
            coldest, room_for = self.coldest() if self.nodes else None, 1 + len(wanted)
            while coldest in self.nodes and self.free_after(page, room_for) < 0:
                self.evict_from(coldest)
            # Interpretation: entries of the same node that were evicted for this are fetched too, as many as
            # there is room for.
            wanted = [other for other in range(lpn + 1, end) if not self.cached(other)]
            while wanted and self.free_after(page, 1 + len(wanted)) < 0:
                wanted.pop()
        self.cost.map_read()
        self.insert(page, [lpn, *wanted])

    def predecessors(self, lpn: int) -> int:
        """Counts the cached entries right before this one, within its translation page."""
        run = 0
        while (lpn - run) % self.entries_per_page and self.cached(lpn - run - 1):
            run += 1
        return run

    def free_after(self, page: int, more: int) -> int:
        """Returns how many bytes are left after a node gets ``more`` entries."""
        assert self.capacity is not None
        nodes = len(self.nodes) + (page not in self.nodes)
        return self.capacity - NODE * nodes - ENTRY * (sum(map(len, self.nodes.values())) + more)

    def insert(self, page: int, lpns: list[int]) -> None:
        if page not in self.nodes:
            self.nodes[page] = {}
            self.count_node(+1)
        for lpn in lpns:
            self.touch(lpn)

    def count_node(self, by: int) -> None:
        self.balance += by
        if abs(self.balance) == SWITCH:
            self.selective = self.balance < 0
            self.balance = 0

    def coldest(self) -> int:
        """Returns the node with the lowest mean; among equal means, that of the lowest translation page."""

        def mean(page: int) -> tuple[Fraction, int]:
            uses = self.nodes[page].values()
            return Fraction(sum(uses), len(uses)), page

        return min(self.nodes, key=mean)

    def evict_from(self, page: int) -> None:
        """Evicts one entry of a node: the least recent clean one, or else the least recent."""
        node = self.nodes[page]
        clean = [lpn for lpn in node if lpn not in self.dirty]
        victim = (clean or list(node))[0]
        if not clean:
            self.write_back(page)
        del node[victim]
        if not node:
            del self.nodes[page]
            self.count_node(-1)

    def write_back(self, page: int) -> None:
        """Writes back all dirty entries of a node, with one read and one program."""
        self.cost.map_read()
        self.cost.map_program()
        self.dirty -= self.nodes[page].keys()

    def prefetch(self, lpns: list[int]) -> bool:
        missing = list(dict.fromkeys(lpn for lpn in lpns if not self.cached(lpn)))
        if not missing:
            return False
        self.used += 1
        page = self.page_of(missing[0])
        coldest = -1
        while self.capacity is not None and self.free_after(page, len(missing)) < 0:
            # Interpretation: nodes are emptied one after another; if a batch is larger than the cache, its
            # last entries are left out.
            if not self.nodes:
                missing.pop()
                continue
            if coldest not in self.nodes:
                coldest = self.coldest()
            self.evict_from(coldest)
        self.cost.map_read()
        self.insert(page, missing)
        return True

    def flush_one(self) -> bool:
        dirty = {self.page_of(lpn) for lpn in self.dirty}
        if not dirty:
            return False
        nodes = self.nodes
        self.nodes = {page: nodes[page] for page in dirty}
        page = self.coldest()
        self.nodes = nodes
        self.write_back(page)
        return True

    def snapshot(self) -> Known:
        return Frozen((lpn for node in self.nodes.values() for lpn in node), [], self.entries_per_page)
