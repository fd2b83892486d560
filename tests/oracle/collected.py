"""The mapping caches of DFTL, CDFTL and TPFTL on a device that collects garbage, request by request.

The caches are those of ``cache.py`` and ``tpftl.py``. This file adds the user's data on one chip, the copies
of garbage collection, and what a copy does to the map: a mapping that is cached becomes dirty there, which is
not an access; the others are written, with one read and one program of each translation page. The victim is
the block that was opened first (``ftl.gc = "fifo"``); copies go behind the last page written.

Taken from ftlab is how many blocks are collected during each request, since how data and translation pages
share erased blocks is ftlab's own choice (docs/decisions/0002-one-pool-two-logs.md). What is copied then, and
what that costs the map, is not. No independent witness, since no text says it and ftlab was asked: the
mappings that one page's collections move are updated together, after all of its copies.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from . import cache as caches
from .cache import Cdftl, Dftl
from .mapplus import Config as MapConfig
from .tpftl import Tpftl

PAGE, ENTRY = 512, 64
PER_PAGE = PAGE // ENTRY

Request = tuple[str, int, int]
"""R, W or T, first page, pages; each request is sent when the one before it has ended."""


@dataclass(frozen=True)
class Config:
    """A device of one chip."""

    ftl: str
    cache_bytes: int
    blocks: int
    block_pages: int
    spare: int
    """Per cent of all pages."""
    policy: str = "slru"
    load: str = "entry"

    def pages(self) -> int:
        """Returns the number of logical pages."""
        return self.blocks * self.block_pages * (100 - self.spare) // 100

    def map_config(self) -> MapConfig:
        """Returns what ``cache.make`` reads."""
        return MapConfig(
            ftl=self.ftl, cache_bytes=self.cache_bytes, cache_policy=self.policy, load=self.load,
            entry_bytes=ENTRY, page_bytes=PAGE,
        )  # fmt: skip

    def settings(self) -> dict[str, Any]:
        """Returns the device as ftlab's keys."""
        return {
            "host.scheduler": "noop",
            "device.queue_depth": 1,
            "ftl.kind": self.ftl,
            "ftl.mapping_cache": f"{self.cache_bytes}B",
            "ftl.cache_policy": self.policy,
            "ftl.load": self.load,
            "ftl.entry": f"{ENTRY}B",
            "ftl.gc": "fifo",
            "ftl.over_provisioning": f"{self.spare}%",
            "flash.page": f"{PAGE}B",
            "flash.blocks_per_plane": self.blocks,
            "flash.pages_per_block": self.block_pages,
        }


@dataclass
class Counts:
    """What a device has done so far."""

    hits: int = 0
    misses: int = 0
    map_reads: int = 0
    map_programs: int = 0
    copies: int = 0
    programs: int = 0
    """Pages of the host's."""


@dataclass(eq=False)
class Block:
    """The logical pages programmed in a block, in order."""

    pages: list[int] = field(default_factory=list)


class Device:
    """The map, its cache, and the blocks of user data."""

    def __init__(self, config: Config) -> None:
        self.config = config
        self.counts = Counts()
        self.cache = caches.make(config.map_config(), self)
        self.newest: dict[int, tuple[Block, int]] = {}
        self.blocks: deque[Block] = deque()

    def map_read(self) -> None:
        self.counts.map_reads += 1

    def map_program(self) -> None:
        self.counts.map_programs += 1

    # --- user data ----------------------------------------------------------------------------------

    def append(self, lpn: int) -> None:
        if not self.blocks or len(self.blocks[-1].pages) == self.config.block_pages:
            self.blocks.append(Block())
        block = self.blocks[-1]
        self.newest[lpn] = (block, len(block.pages))
        block.pages.append(lpn)

    def is_at(self, lpn: int, block: Block, place: int) -> bool:
        at = self.newest.get(lpn)
        return at is not None and at[0] is block and at[1] == place

    def collect(self) -> list[int]:
        """Copies the valid pages of the oldest block; returns them."""
        victim = self.blocks.popleft()
        moved = [lpn for place, lpn in enumerate(victim.pages) if self.is_at(lpn, victim, place)]
        for lpn in moved:
            self.append(lpn)
        self.counts.copies += len(moved)
        return moved

    # --- the map --------------------------------------------------------------------------------------

    def update(self, moved: list[int]) -> None:
        """Updates the mappings of moved pages: in the cache, or else by translation page on flash."""
        elsewhere = [lpn for lpn in moved if not self.update_cached(lpn)]
        for page in dict.fromkeys(lpn // PER_PAGE for lpn in elsewhere):
            self.map_read()
            self.map_program()
            self.clean(page)

    def update_cached(self, lpn: int) -> bool:
        """Notes a new place in the cache, if the mapping is there."""
        cache, page = self.cache, lpn // PER_PAGE
        if isinstance(cache, Cdftl):
            if lpn in cache.cmt:
                cache.dirty_entries.add(lpn)
            elif page in cache.ctp:
                cache.dirty_pages.add(page)
            return cache.cached(lpn)
        assert isinstance(cache, Dftl | Tpftl)
        if cache.cached(lpn):
            cache.dirty.add(lpn)
        return cache.cached(lpn)

    def clean(self, page: int) -> None:
        """A program of a translation page carries the dirty entries of the page."""
        cache = self.cache
        if isinstance(cache, Cdftl):
            cache.dirty_entries = {lpn for lpn in cache.dirty_entries if lpn // PER_PAGE != page}
        else:
            assert isinstance(cache, Dftl | Tpftl)
            cache.dirty = {lpn for lpn in cache.dirty if lpn // PER_PAGE != page}

    # --- requests ---------------------------------------------------------------------------------------

    def serve(self, op: str, lpns: Sequence[int], collected: int) -> None:
        """Serves a request during which this many blocks are collected; those that write have one page."""
        whole = self.config.load == "request" or self.config.ftl == "tpftl"
        for at, lpn in enumerate(lpns):
            hit = self.cache.translate(lpn, op in "WT", lpns[at + 1 :] if whole else ())
            self.counts.hits += hit
            self.counts.misses += not hit
            self.update([other for _ in range(collected) for other in self.collect()])
            if op == "W":
                self.append(lpn)
                self.counts.programs += 1
            elif op == "T":
                self.newest.pop(lpn, None)


def follow(device: Device, requests: Sequence[Request], collected: Sequence[int]) -> Iterator[Counts]:
    """Yields what has been done after each request; ``collected`` has the blocks collected during each."""
    for (op, first, pages), blocks in zip(requests, collected, strict=True):
        device.serve(op, range(first, first + pages), blocks)
        yield replace(device.counts)
