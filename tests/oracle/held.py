"""The map that the host holds (``host.map_cache``), on a device that collects garbage, request by request.

The device is that of ``collected.py``. An entry is the place of a page when the entry was handed out, and it
holds as long as the page is still there: no bitmap, no numbers of readings. Everything else is written from
the description in docs/host-map.md: what the host counts, which subregions it reads, which region leaves.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from . import collected
from .collected import PAGE, PER_PAGE, Block, Request

Place = tuple[Block, int] | None
"""Where a page was; None: it had no data."""


@dataclass(frozen=True)
class Config(collected.Config):
    """A device whose host holds entries; sizes in pages."""

    subregion: int = 8
    subregions: int = 2
    """Of a region."""
    regions: int = 3
    """That fit."""
    longest: int = 4
    policy_of_map: str = "lru"
    threshold: int = 2

    def settings(self) -> dict[str, Any]:
        """Returns the device as ftlab's keys."""
        region = self.subregion * self.subregions
        return super().settings() | {
            "host.map_cache": f"{self.regions * region * 8}B",
            "host.map_cache_read": f"{self.longest * PAGE}B",
            "host.map_region": f"{region * PAGE}B",
            "host.map_subregion": f"{self.subregion * PAGE}B",
            "host.map_policy": self.policy_of_map,
            "host.map_threshold": self.threshold,
        }


@dataclass
class Figures:
    """What has happened to entries so far."""

    carried: int = 0
    plain: int = 0
    loads: int = 0
    evictions: int = 0
    refused: int = 0
    hits: int = 0
    stale: int = 0


class Device(collected.Device):
    """A device, and the host above it."""

    def __init__(self, config: Config) -> None:
        super().__init__(config)
        self.map = config
        self.figures = Figures()
        self.entries: dict[int, Place] = {}
        self.held: set[int] = set()
        self.changed: set[int] = set()
        self.regions: list[int] = []  # least recently read first
        self.reads: Counter[int] = Counter()
        self.wanted: list[int] = []

    # --- the host ---------------------------------------------------------------------------------------

    def members(self, region: int) -> range:
        """Returns the subregions of a region."""
        return range(region * self.map.subregions, (region + 1) * self.map.subregions)

    def parts(self, lpns: Sequence[int]) -> list[int]:
        """Returns the subregions of pages."""
        return sorted({lpn // self.map.subregion for lpn in lpns})

    def score(self, region: int) -> int:
        return sum(self.reads[part] for part in self.members(region))

    def ask(self, part: int, again: bool) -> None:
        """Counts a read that asks for a subregion."""
        self.reads[part] += 1
        if self.reads[part] >= self.map.threshold and again and part not in self.wanted:
            self.wanted.append(part)

    def touch(self, region: int) -> None:
        if region in self.regions:
            self.regions.remove(region)
            self.regions.append(region)

    def note_read(self, lpns: Sequence[int], carries: bool) -> None:
        self.figures.carried += carries
        self.figures.plain += not carries
        for part in self.parts(lpns):
            region = part // self.map.subregions
            self.touch(region)
            if self.map.policy_of_map == "access-count":
                self.ask(part, part not in self.held or part in self.changed)
                if self.score(region) > self.map.subregion:
                    self.halve()

    def halve(self) -> None:
        self.reads = Counter({part: reads // 2 for part, reads in self.reads.items()})

    def note_change(self, lpns: Sequence[int]) -> None:
        for lpn in lpns:
            self.entries.pop(lpn, None)
        for part in self.parts(lpns):
            self.changed.add(part)
            if self.map.policy_of_map == "access-count":
                self.reads[part] = 0

    def victim(self) -> int:
        """Returns the region that leaves first; of equals, the one read least recently."""
        return self.regions[0] if self.map.policy_of_map == "lru" else min(self.regions, key=self.score)

    def evict(self, region: int) -> None:
        self.regions.remove(region)
        self.held.difference_update(self.members(region))
        self.entries = {
            lpn: place for lpn, place in self.entries.items() if lpn // self.map.subregion in self.held
        }
        self.figures.evictions += 1

    def read_entries(self, part: int) -> None:
        """Reads the entries of a subregion, if its region has room or gets it."""
        region = part // self.map.subregions
        if region not in self.regions:
            if len(self.regions) == self.map.regions:
                victim = self.victim()
                if self.map.policy_of_map == "access-count" and self.score(victim) >= self.score(region):
                    self.figures.refused += 1
                    return
                self.evict(victim)
            self.regions.append(region)
        if self.map.policy_of_map == "lru":
            self.reads[part] = 0
        self.changed.discard(part)
        lpns = range(part * self.map.subregion, min((part + 1) * self.map.subregion, self.map.pages()))
        for page in sorted({lpn // PER_PAGE for lpn in lpns}):
            if not all(self.cache.cached(lpn) for lpn in lpns if lpn // PER_PAGE == page):
                self.map_read()
        self.entries.update((lpn, self.newest.get(lpn)) for lpn in lpns)
        self.held.add(part)
        self.figures.loads += 1

    # --- requests ---------------------------------------------------------------------------------------

    def holds(self, lpn: int) -> bool:
        """Whether the entry of a page still says where the page is."""
        return self.entries[lpn] == self.newest.get(lpn)

    def look_up(self, lpns: Sequence[int]) -> None:
        """Serves a read that carries its entries."""
        whole = self.config.load == "request" or self.config.ftl == "tpftl"
        for at, lpn in enumerate(lpns):
            if self.holds(lpn):
                self.figures.hits += 1
                continue
            self.figures.stale += 1
            hit = self.cache.translate(lpn, False, lpns[at + 1 :] if whole else ())
            self.counts.hits += hit
            self.counts.misses += not hit

    def serve(self, op: str, lpns: Sequence[int], collected: int) -> None:
        """Serves a request, then reads the entries that are wanted."""
        short = op == "R" and len(lpns) <= self.map.longest
        carries = short and all(lpn in self.entries for lpn in lpns)
        if short:
            self.note_read(lpns, carries)
        elif op != "R":
            self.note_change(lpns)
        before = self.counts.map_reads
        if carries:
            self.look_up(lpns)
        else:
            super().serve(op, lpns, collected)
        if short and self.map.policy_of_map == "lru" and self.counts.map_reads > before:
            for part in self.parts(lpns):
                self.ask(part, True)
        while self.wanted:
            self.read_entries(self.wanted.pop(0))


def follow(
    device: Device, requests: Sequence[Request], collected: Sequence[int]
) -> Iterator[tuple[collected.Counts, Figures]]:
    """Yields what has been done after each request; ``collected`` has the blocks collected during each."""
    for (op, first, pages), blocks in zip(requests, collected, strict=True):
        device.serve(op, range(first, first + pages), blocks)
        yield replace(device.counts), replace(device.figures)
