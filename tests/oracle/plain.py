"""Plain counts, without times, for mapping caches of single entries and for the merges of BAST and FAST.

They were written from the papers' rules (docs/mapping-caches.md, docs/hybrid-ftls.md), only to be compared
with ftlab's counters on whole traces. Requests are (first page, pages), in order.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable
from dataclasses import dataclass, field

Access = tuple[str, int, int]
"""An access: \"R\" or \"W\", first page, number of pages."""


@dataclass
class Lookups:
    """The counts of a mapping cache."""

    hits: int = 0
    misses: int = 0
    programs: int = 0


def dftl(accesses: Iterable[Access], entries: int, per_page: int, policy: str) -> Lookups:
    """Counts what DFTL does with a cache of single entries: LRU, or segmented LRU with an eighth protected.

    A miss brings in one entry; a hit makes the entry the newest (in SLRU the newest of the protected segment;
    if that is too full, its oldest entry becomes the newest of the other segment). The oldest entry of the
    other segment leaves a full cache; if it is dirty, its translation page is programmed with all its dirty
    cached entries.
    """
    protected_most = entries // 8 if policy == "slru" else 0
    protected: OrderedDict[int, None] = OrderedDict()
    other: OrderedDict[int, None] = OrderedDict()
    dirty: dict[int, set[int]] = {}
    counted = Lookups()
    for op, first, pages in accesses:
        for lpn in range(first, first + pages):
            if lpn in protected or lpn in other:
                counted.hits += 1
                if policy == "lru":
                    other.move_to_end(lpn)
                else:
                    other.pop(lpn, None)
                    protected[lpn] = None
                    protected.move_to_end(lpn)
                    if len(protected) > protected_most:
                        oldest, _ = protected.popitem(last=False)
                        other[oldest] = None
            else:
                counted.misses += 1
                if len(protected) + len(other) == entries:
                    victim, _ = (other or protected).popitem(last=False)
                    if victim in dirty.get(victim // per_page, ()):
                        counted.programs += 1
                        del dirty[victim // per_page]
                other[lpn] = None
            if op == "W":
                dirty.setdefault(lpn // per_page, set()).add(lpn)
    return counted


@dataclass
class Log:
    """A log block: the logical pages programmed in it, in order."""

    owner: int | None = None
    pages: list[int] = field(default_factory=list)


@dataclass
class Merges:
    """The numbers of merges of each kind, of the pages that they copied, and of blocks erased."""

    full: list[int] = field(default_factory=lambda: [0, 0])
    partial: list[int] = field(default_factory=lambda: [0, 0])
    switch: list[int] = field(default_factory=lambda: [0, 0])
    erases: int = 0


class Hybrid:
    """What BAST and FAST share: data blocks, and which log block has a page's newest version."""

    def __init__(self, block_pages: int, log_blocks: int, filled: int = 0) -> None:
        """Makes this many log blocks on one chip; the first ``filled`` pages have data."""
        self.block_pages = block_pages
        self.log_blocks = log_blocks
        # For each page that was ever written: the log block that holds its newest version, and the place in
        # that block; None if the version is in the data block.
        self.newest: dict[int, tuple[Log, int] | None] = dict.fromkeys(range(filled))
        self.data_blocks = {page // block_pages for page in range(filled)}
        self.merges = Merges()

    def append(self, log: Log, lpn: int) -> None:
        self.newest[lpn] = (log, len(log.pages))
        log.pages.append(lpn)

    def is_full(self, log: Log) -> bool:
        return len(log.pages) == self.block_pages

    def in_order(self, log: Log, block: int) -> bool:
        first = block * self.block_pages
        return log.pages == list(range(first, first + len(log.pages)))

    def valid(self, log: Log) -> list[int]:
        """Returns the logical pages whose newest version is in a log block, in the order of the log block's
        pages.
        """
        found = []
        for place, lpn in enumerate(log.pages):
            at = self.newest.get(lpn)
            if at is not None and at[0] is log and at[1] == place:
                found.append(lpn)
        return found

    def gather(self, block: int, begin: int) -> int:
        """Copies a block's newest pages, from offset ``begin`` on, to its data block; returns the number of
        these pages.
        """
        first = block * self.block_pages
        copied = [lpn for lpn in range(first + begin, first + self.block_pages) if lpn in self.newest]
        self.newest.update(dict.fromkeys(copied))
        return len(copied)

    def replace_data(self, block: int) -> None:
        """Gives a block a new data block; the previous one is erased."""
        self.merges.erases += block in self.data_blocks
        self.data_blocks.add(block)

    def full_merge(self, block: int) -> None:
        self.count(self.merges.full, self.gather(block, 0))
        self.replace_data(block)

    def keep_log(self, log: Log, block: int) -> None:
        """Makes a log block that was written in order the new data block, by a switch or partial merge."""
        whole = self.is_full(log)
        self.newest.update(dict.fromkeys(self.valid(log)))
        copies = self.gather(block, len(log.pages))
        self.count(self.merges.switch if whole else self.merges.partial, copies)
        self.replace_data(block)

    @staticmethod
    def count(kind: list[int], copies: int) -> None:
        kind[0] += 1
        kind[1] += copies

    def trim(self, lpns: range) -> None:
        """Takes pages away."""
        for lpn in lpns:
            self.newest.pop(lpn, None)

    def write(self, first: int, pages: int) -> None:
        """Serves one request, one logical block after another."""
        end = first + pages
        while first < end:
            block = first // self.block_pages
            part = min(end, (block + 1) * self.block_pages)
            self.write_part(block, range(first, part))
            first = part

    def write_part(self, block: int, lpns: range) -> None:
        raise NotImplementedError


class Bast(Hybrid):
    """A log block for each logical block that is written; the least recently written one is reclaimed."""

    def __init__(self, block_pages: int, log_blocks: int, filled: int = 0) -> None:
        super().__init__(block_pages, log_blocks, filled)
        self.logs: OrderedDict[int, Log] = OrderedDict()

    def write_part(self, block: int, lpns: range) -> None:
        for lpn in lpns:
            if block not in self.logs:
                if len(self.logs) == self.log_blocks:
                    self.merge(next(iter(self.logs)))
                self.logs[block] = Log(block)
            self.logs.move_to_end(block)
            self.append(self.logs[block], lpn)
            if self.is_full(self.logs[block]):
                self.merge(block)

    def merge(self, block: int) -> None:
        log = self.logs.pop(block)
        if not self.valid(log):
            self.merges.erases += 1
            return None
        if self.in_order(log, block):
            return self.keep_log(log, block)
        self.full_merge(block)
        self.merges.erases += 1


class Fast(Hybrid):
    """Log blocks that all blocks share (RW), of which the one filled first is reclaimed first, and one log
    block for sequential writes (SW).
    """

    def __init__(self, block_pages: int, log_blocks: int, filled: int = 0) -> None:
        super().__init__(block_pages, log_blocks, filled)
        self.random: list[Log] = []
        self.sequential: Log | None = None

    def write_part(self, block: int, lpns: range) -> None:
        offset = lpns[0] % self.block_pages
        if offset == 0:
            if self.sequential is not None:
                self.merge_sequential(self.sequential)
            self.sequential = Log(block)
        log = self.sequential
        if log is None or log.owner != block or len(log.pages) != offset:
            return self.write_random(lpns)
        for lpn in lpns:
            self.append(log, lpn)
        if self.is_full(log):
            self.merge_sequential(log)

    def write_random(self, lpns: range) -> None:
        for lpn in lpns:
            if not self.random or self.is_full(self.random[-1]):
                if len(self.random) == self.log_blocks - 1:
                    self.reclaim(self.random.pop(0))
                self.random.append(Log())
            self.append(self.random[-1], lpn)

    def merge_sequential(self, log: Log) -> None:
        """Reclaims the SW log block; if it has no valid page, that is not a merge."""
        self.sequential = None
        if self.valid(log):
            assert log.owner is not None
            self.keep_log(log, log.owner)
        else:
            self.merges.erases += 1

    def reclaim(self, victim: Log) -> None:
        """Merges every logical block with a valid page in an RW log block."""
        while valid := self.valid(victim):
            block = valid[0] // self.block_pages
            log = self.sequential
            if log is None or log.owner != block:
                self.full_merge(block)
            elif len(self.valid(log)) == sum(lpn in self.newest for lpn in log.pages):
                self.merge_sequential(log)
            else:
                self.sequential = None
                self.full_merge(block)
                self.merges.erases += 1
        self.merges.erases += 1


FTLS: dict[str, type[Hybrid]] = {"bast": Bast, "fast": Fast}
