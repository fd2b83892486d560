"""The mapping caches of the oracle: which part of the map a device holds in RAM, and what that costs.

Every cache answers the same five questions:

- ``cached(lpn)``      is the entry held? (changes nothing)
- ``translate(lpn, dirties, rest)``  look the entry up, fetching it if it is missing; True for a hit.
  ``rest`` has the LPNs that the request translates next, which a miss may load too
- ``prefetch(lpns)``   with one read, bring in the missing ones of these entries, which are all of one
  translation page; True if there was a read
- ``flush_one()``      write back one translation page in the background; True if there was a dirty one
- ``snapshot()``       a frozen copy that answers ``cached``

Costs are reported to ``cost``, an object with ``map_read()`` and ``map_program()``.
Lists begin with the most recent entry, so ``[-1]`` is the tail.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from .mapplus import Config


class Cost(Protocol):
    """What a cache calls to report reads and programs of translation pages."""

    def map_read(self) -> None: ...
    def map_program(self) -> None: ...


class Known(Protocol):
    """Answers whether an entry is cached."""

    def cached(self, lpn: int) -> bool: ...


class Cache(Known, Protocol):
    """A device's mapping cache; see the module's docstring."""

    def translate(self, lpn: int, dirties: bool, rest: Sequence[int] = ()) -> bool: ...
    def prefetch(self, lpns: list[int]) -> bool: ...
    def flush_one(self) -> bool: ...
    def snapshot(self) -> Known: ...


class FullMap:
    """The whole map in RAM (``ftl.kind = "page"``): every entry counts as cached, nothing has a cost."""

    def __init__(self, cost: Cost) -> None:
        self.cost = cost

    def cached(self, lpn: int) -> bool:
        return True

    def translate(self, lpn: int, dirties: bool, rest: Sequence[int] = ()) -> bool:
        return True

    def prefetch(self, lpns: list[int]) -> bool:
        return False

    def flush_one(self) -> bool:
        return False

    def snapshot(self) -> Known:
        return self


class Frozen:
    """A snapshot: the LPNs held, and the translation pages held as a whole."""

    def __init__(self, lpns: Iterable[int], pages: Iterable[int], entries_per_page: int) -> None:
        self.lpns = set(lpns)
        self.pages = set(pages)
        self.entries_per_page = entries_per_page

    def cached(self, lpn: int) -> bool:
        return lpn in self.lpns or lpn // self.entries_per_page in self.pages


class LruList:
    """One plain list of LPNs: ``cache_policy = "lru"``."""

    def __init__(self, capacity: int | None) -> None:
        self.capacity = capacity  # None: unlimited
        self.list: list[int] = []

    def holds(self, lpn: int) -> bool:
        return lpn in self.list

    def full(self) -> bool:
        return self.capacity is not None and len(self.list) >= self.capacity

    def touch(self, lpn: int) -> None:
        self.list.remove(lpn)
        self.list.insert(0, lpn)

    def insert(self, lpn: int) -> None:
        self.list.insert(0, lpn)

    def pop_victim(self) -> int:
        return self.list.pop()

    def coldest_first(self) -> list[int]:
        return list(reversed(self.list))


class SegmentedLruList:
    """A protected and a probationary segment, 1 : 7 of the capacity: ``cache_policy = "slru"``."""

    def __init__(self, capacity: int | None) -> None:
        self.capacity = capacity
        # An unlimited cache never chooses a victim, so its segments have no limit either.
        self.protected_capacity = None if capacity is None else capacity // 8
        self.protected: list[int] = []
        self.probationary: list[int] = []

    def holds(self, lpn: int) -> bool:
        return lpn in self.protected or lpn in self.probationary

    def full(self) -> bool:
        if self.capacity is None:
            return False
        return len(self.protected) + len(self.probationary) >= self.capacity

    def touch(self, lpn: int) -> None:
        if lpn in self.protected:
            self.protected.remove(lpn)
        else:
            self.probationary.remove(lpn)
        self.protected.insert(0, lpn)
        if self.protected_capacity is not None and len(self.protected) > self.protected_capacity:
            self.probationary.insert(0, self.protected.pop())

    def insert(self, lpn: int) -> None:
        self.probationary.insert(0, lpn)

    def pop_victim(self) -> int:
        if self.probationary:
            return self.probationary.pop()
        return self.protected.pop()

    def coldest_first(self) -> list[int]:
        return list(reversed(self.probationary)) + list(reversed(self.protected))


class Dftl:
    """Single entries, cached on demand (Gupta et al., ASPLOS 2009; map-plus.md, "DFTL")."""

    def __init__(
        self, capacity: int | None, policy: str, batch_update: bool, entries_per_page: int, cost: Cost
    ) -> None:
        self.entries: LruList | SegmentedLruList = (
            LruList(capacity) if policy == "lru" else SegmentedLruList(capacity)
        )
        self.batch_update = batch_update
        self.entries_per_page = entries_per_page
        self.cost = cost
        self.dirty: set[int] = set()

    def cached(self, lpn: int) -> bool:
        return self.entries.holds(lpn)

    def translate(self, lpn: int, dirties: bool, rest: Sequence[int] = ()) -> bool:
        hit = self.entries.holds(lpn)
        if hit:
            self.entries.touch(lpn)
        else:
            self.make_room()
            self.cost.map_read()
            # Interpretation of ``ftl.load = "request"``: those entries of the page that the rest of the
            # request needs come in with this read, in reverse order and the missed one last; room is made for
            # each.
            for other in reversed(rest):
                if other // self.entries_per_page == lpn // self.entries_per_page and not self.cached(other):
                    self.entries.insert(other)
                    self.make_room()
            self.entries.insert(lpn)
        if dirties:
            self.dirty.add(lpn)
        return hit

    def prefetch(self, lpns: list[int]) -> bool:
        # Interpretation: missing entries are determined when the batch begins. An entry that was cached then
        # and that the prefetch itself evicts is a miss later, on demand.
        missing: list[int] = []
        for lpn in lpns:
            if not self.entries.holds(lpn) and lpn not in missing:
                missing.append(lpn)
        if not missing:
            return False
        for lpn in missing:
            self.make_room()
            self.entries.insert(lpn)
        self.cost.map_read()
        return True

    def make_room(self) -> None:
        if self.entries.full():
            victim = self.entries.pop_victim()
            if victim in self.dirty:
                self.write_back(victim)

    def write_back(self, lpn: int) -> None:
        """Writes back with one read and one program, after which the whole translation page, or only the
        entry, is clean.
        """
        self.cost.map_read()
        self.cost.map_program()
        self.dirty.discard(lpn)
        if self.batch_update:
            page = lpn // self.entries_per_page
            self.dirty = {other for other in self.dirty if other // self.entries_per_page != page}

    def flush_one(self) -> bool:
        for lpn in self.entries.coldest_first():
            if lpn in self.dirty:
                self.write_back(lpn)
                return True
        return False

    def snapshot(self) -> Known:
        return Frozen(self.entries.coldest_first(), [], self.entries_per_page)


class Cdftl:
    """Entries (CMT) over whole translation pages (CTP) (Qin et al., RTAS 2011; reference.md, 2).

    Interpretation, where the reference is silent:
    - a hit in the CMT leaves the CTP's order alone; a hit in the CTP makes the page the most recent;
    - on a miss the page enters the CTP first, then the entry enters the CMT, so the CMT's
      victim may be merged into the page just loaded;
    - a CTP page that is written back carries only what was merged into it;
      dirty CMT entries of that page stay dirty;
    - a page loaded because no CMT entry qualified costs one read, and also one program if the CTP page that
      it evicts is dirty.
    """

    def __init__(
        self,
        cmt_capacity: int | None,
        ctp_capacity: int | None,
        entries_per_page: int,
        cost: Cost,
    ) -> None:
        self.cmt_capacity = cmt_capacity  # entries; None: unlimited
        self.ctp_capacity = ctp_capacity  # pages
        self.entries_per_page = entries_per_page
        self.cost = cost
        self.cmt: list[int] = []
        self.ctp: list[int] = []
        self.dirty_entries: set[int] = set()
        self.dirty_pages: set[int] = set()

    def cached(self, lpn: int) -> bool:
        return lpn in self.cmt or lpn // self.entries_per_page in self.ctp

    def translate(self, lpn: int, dirties: bool, rest: Sequence[int] = ()) -> bool:
        page = lpn // self.entries_per_page
        if lpn in self.cmt:
            hit = True
            self.cmt.remove(lpn)
            self.cmt.insert(0, lpn)
        elif page in self.ctp:
            hit = True
            self.ctp.remove(page)
            self.ctp.insert(0, page)
            self.insert_entry(lpn)
        else:
            hit = False
            self.load_page(page)
            self.insert_entry(lpn)
        if dirties:
            self.dirty_entries.add(lpn)
        return hit

    def prefetch(self, lpns: list[int]) -> bool:
        missing: list[int] = []
        for lpn in lpns:
            if not self.cached(lpn) and lpn not in missing:
                missing.append(lpn)
        if not missing:
            return False
        self.load_page(missing[0] // self.entries_per_page)
        for lpn in missing:
            self.insert_entry(lpn)
        return True

    def load_page(self, page: int) -> None:
        if self.ctp_capacity is not None and len(self.ctp) >= self.ctp_capacity:
            victim = self.ctp.pop()
            if victim in self.dirty_pages:
                self.cost.map_program()
                self.dirty_pages.remove(victim)
        self.cost.map_read()
        self.ctp.insert(0, page)

    def insert_entry(self, lpn: int) -> None:
        if self.cmt_capacity is not None and len(self.cmt) >= self.cmt_capacity:
            self.evict_entry()
        self.cmt.insert(0, lpn)

    def evict_entry(self) -> None:
        for lpn in reversed(self.cmt):
            page = lpn // self.entries_per_page
            if lpn not in self.dirty_entries:
                self.cmt.remove(lpn)
                return
            if page in self.ctp:
                self.merge(lpn)
                self.cmt.remove(lpn)
                return
        # Here every entry is dirty, and none of the entries' pages is cached.
        coldest = self.cmt[-1]
        self.load_page(coldest // self.entries_per_page)
        self.merge(coldest)
        self.cmt.remove(coldest)

    def merge(self, lpn: int) -> None:
        self.dirty_entries.remove(lpn)
        self.dirty_pages.add(lpn // self.entries_per_page)

    def flush_one(self) -> bool:
        """Interpretation: CMT entries go first, from the tail, then CTP pages, from the tail.

        A page that the CTP holds is programmed without a read. The program also writes back every dirty CMT
        entry of the page (ftl.batch_update concerns only dftl's victims).
        """
        for lpn in reversed(self.cmt):
            if lpn in self.dirty_entries:
                page = lpn // self.entries_per_page
                if page not in self.ctp:
                    self.cost.map_read()
                self.cost.map_program()
                self.dirty_pages.discard(page)
                self.dirty_entries = {
                    other for other in self.dirty_entries if other // self.entries_per_page != page
                }
                return True
        for page in reversed(self.ctp):
            if page in self.dirty_pages:
                self.cost.map_program()
                self.dirty_pages.discard(page)
                return True
        return False

    def snapshot(self) -> Known:
        return Frozen(self.cmt, self.ctp, self.entries_per_page)


def entries_held(config: Config) -> int | None:
    """Returns for how many entries a cache, or a host that imitates the cache, has room."""
    if config.cache_bytes is None:
        return None
    if config.ftl == "tpftl":
        # Interpretation: for tpftl, as many entries as fit into one node.
        return (config.cache_bytes - 8) // 6
    return config.cache_bytes // config.entry_bytes


def make(config: Config, cost: Cost) -> Cache:
    """Returns the mapping cache that a configuration asks for."""
    entries_per_page = config.page_bytes // config.entry_bytes
    if config.ftl == "page":
        return FullMap(cost)
    capacity = config.cache_bytes
    if config.ftl == "dftl":
        entries = None if capacity is None else capacity // config.entry_bytes
        assert entries is None or entries >= 1, "a cache of no entries"
        return Dftl(entries, config.cache_policy, config.batch_update, entries_per_page, cost)
    if config.ftl == "tpftl":
        from .tpftl import Tpftl

        return Tpftl(capacity, entries_per_page, cost)
    assert config.ftl == "cdftl"
    if capacity is None:
        return Cdftl(None, None, entries_per_page, cost)
    pages = max(1, capacity // 2 // config.page_bytes)
    entries = (capacity - pages * config.page_bytes) // config.entry_bytes
    assert entries >= 1, "the cache has no room for an entry in addition to one translation page"
    return Cdftl(entries, pages, entries_per_page, cost)
