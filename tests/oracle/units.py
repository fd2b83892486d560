"""FTLs that write mappings back once enough data has been written: Base-DFTL, mini-page FTL and MSFTL, on one
chip.

The model was written from Kim and Lee (ICSOFT 2020, section 3), spec/msftl.md and docs/readings/msftl.md. The
part of the map that has been used is in RAM, or as much of it as a cache holds; a flush gathers
units of it (16 KiB, 4 KiB, or a segment). ``units_log.py`` has the translation blocks; no user blocks are
collected, as the loads are too small for that. Requests are (arrival_ns, op, first page, pages).

With a bounded cache, which the paper does not have, the entry that leaves is DFTL's victim. If it is dirty,
its unit is written, in one page with the next units that have updates. No independent witness, since no text
says it and ftlab was asked: behind the last unit the next one is the lowest; a flush of the host begins the
amount anew even if nothing is dirty.
"""

from __future__ import annotations

import math
import random
from dataclasses import dataclass, field
from typing import Any

from . import traces
from .cache import LruList, SegmentedLruList
from .units_log import ERASE_NS, PROGRAM_NS, READ_NS, Log

PAGE = 16 << 10
ENTRY = 64
"""The size of an entry in bytes: the largest that ftlab allows, so that even a small device has many units.
"""

UNITS = {"dftl": PAGE, "minipage": 4 << 10, "msftl-2": 2 << 10, "msftl-1": 1 << 10}
BLOCKS, SPARE = 600, 40
"""The number of erase blocks, and the share of them in per cent that is withheld from the user."""

Request = tuple[int, str, int, int]


@dataclass
class Case:
    """An FTL, its cache, the number of pages of data that leads to a flush, and a trace."""

    unit: str
    flush_pages: int | None
    """None: mappings are written only when their entries are evicted, or at a flush of the host."""
    trace: list[Request]
    entries: int | None = None
    """For how many entries the cache has room; None: for all."""
    policy: str = "slru"
    load: str = "entry"
    block_pages: int = 16
    translation_blocks: int = 90


@dataclass
class Outcome:
    """The completion of each request in ns, and the totals of a run."""

    completes: list[int] = field(default_factory=list)
    hits: int = 0
    misses: int = 0
    reads: int = 0
    programs: int = 0
    updated: int = 0
    carried: int = 0
    """The number of entries in the units programmed."""


class Model:
    """The state of one run of an FTL."""

    log_of = Log

    def __init__(self, case: Case) -> None:
        self.case = case
        self.per_unit = UNITS[case.unit] // ENTRY
        self.units_of_page = PAGE // UNITS[case.unit]
        pages = BLOCKS * case.block_pages * (100 - SPARE) // 100
        # An entry of the directory is as large as one of the map.
        directory = math.ceil(math.ceil(pages / self.per_unit) * ENTRY / PAGE)
        self.log = self.log_of(
            case.translation_blocks, case.block_pages, self.units_of_page, directory, self.spend
        )
        self.at = self.log.at
        self.cached = LruList(case.entries) if case.policy == "lru" else SegmentedLruList(case.entries)
        self.dirty: set[int] = set()
        self.since = 0
        self.now = 0
        self.out = Outcome()

    def spend(self, ns: int) -> None:
        self.now += ns

    def unit_of(self, lpn: int) -> int:
        return lpn // self.per_unit

    def flush(self) -> None:
        """Writes all units that have an update, in ascending order, gathered into pages."""
        units = sorted({self.unit_of(lpn) for lpn in self.dirty})
        fetched: set[int] = set()
        for first in range(0, len(units), self.units_of_page):
            self.gather(units[first : first + self.units_of_page], units, fetched)
        self.since = 0

    def gather(self, together: list[int], wanted: list[int], fetched: set[int]) -> None:
        """Programs a page of units, after their old versions have been read: each page once, for all of the
        wanted units in it, which wait in RAM from then on.
        """
        self.log.begin_page()
        for unit in together:
            if unit in self.at and unit not in fetched:
                self.read(1)
                fetched |= self.found_with(unit, wanted)
        self.log.directory_is_old = True
        self.log.program(together)
        self.out.programs += 1
        self.out.carried += len(together) * self.per_unit
        written = {lpn for lpn in self.dirty if self.unit_of(lpn) in together}
        self.out.updated += len(written)
        self.dirty -= written

    def found_with(self, unit: int, wanted: list[int]) -> set[int]:
        """Returns the wanted units that are in the same page as a unit."""
        return {other for other in wanted if self.at.get(other) == self.at[unit]}

    def read(self, pages: int) -> None:
        self.out.reads += pages
        self.now += pages * READ_NS

    # --- a bounded cache -------------------------------------------------------------------------

    def make_room(self) -> None:
        if not self.cached.full():
            return
        victim = self.cached.pop_victim()
        if victim in self.dirty:
            units = self.together(self.unit_of(victim))
            self.gather(units, units, set())

    def together(self, unit: int) -> list[int]:
        """Returns a victim's unit and the next ones with updates, as many as a page holds."""
        dirty = {self.unit_of(lpn) for lpn in self.dirty} | {unit}
        return sorted(dirty, key=lambda other: (other < unit, other))[: self.units_of_page]

    def translate(self, op: str, lpn: int, rest: range) -> None:
        if self.cached.holds(lpn):
            self.out.hits += 1
            return self.cached.touch(lpn)
        if op != "R":
            # A write needs no old entry.
            self.out.hits += 1
            self.make_room()
            return self.cached.insert(lpn)
        self.out.misses += 1
        self.make_room()
        self.read(self.unit_of(lpn) in self.at)
        for other in reversed(rest) if self.case.load == "request" else ():
            if self.unit_of(other) == self.unit_of(lpn) and not self.cached.holds(other):
                self.cached.insert(other)
                self.make_room()
        return self.cached.insert(lpn)

    def serve(self, op: str, first: int, pages: int) -> None:
        if op == "F" and self.case.flush_pages is not None:
            self.flush()
        for lpn in range(first, first + pages):
            self.translate(op, lpn, range(lpn + 1, first + pages))
            if op == "R":
                self.now += READ_NS
                continue
            self.dirty.add(lpn)
            if op == "W":
                self.now += PROGRAM_NS
                self.since += 1
            if self.since == self.case.flush_pages:
                self.flush()

    def run(self) -> Outcome:
        for at, op, first, pages in self.case.trace:
            self.now = max(self.now, at)
            self.serve(op, first, pages)
            self.out.completes.append(self.now)
        return self.out


def case(seed: int) -> Case:
    """Returns a random case."""
    draw = random.Random(f"units {seed}")
    few_blocks = seed % 3 == 0
    region = draw.choice([400, 1400, 1400] if few_blocks else [40, 400, 1400])
    now, end, trace = 0, 0, []
    for _ in range(draw.choice([40, 150, 400])):
        now += draw.choice([0, 0, 500_000, 20_000_000])
        op = draw.choices("WRTF", [70, 20, 5, 1])[0]
        pages = 0 if op == "F" else draw.choice([1, 1, 2, 6])
        first = end if draw.random() < 0.3 and end + pages < region else draw.randrange(region - 6)
        end = first + pages
        trace.append((now, op, 0 if op == "F" else first, pages))
    case = Case(draw.choice(list(UNITS)), draw.choice([1, 2, 7, 30, 100]), trace)
    if few_blocks:
        # Four or five translation blocks are the fewest that hold the map of such a device.
        least = 4 if case.unit == "dftl" else 5
        case.block_pages, case.translation_blocks = draw.choice([4, 8]), draw.choice([least, least, 6, 8])
    if seed % 2:
        case.entries = draw.choice([1, 2, 7, 8, 16, 60, 300])
        case.policy, case.load = draw.choice(["slru", "lru"]), draw.choice(["entry", "entry", "request"])
        if case.unit != "dftl" and draw.random() < 0.5:
            case.flush_pages = None
    return case


def settings(case: Case) -> dict[str, Any]:
    kind, _, segment = case.unit.partition("-")
    return {
        "host.scheduler": "noop",
        "ftl.kind": kind,
        **({"ftl.segment": f"{segment}KiB"} if segment else {}),
        "ftl.flush": "eviction" if case.flush_pages is None else f"{case.flush_pages * PAGE}B",
        "ftl.mapping_cache": "unlimited" if case.entries is None else f"{case.entries * ENTRY}B",
        "ftl.cache_policy": case.policy,
        "ftl.load": case.load,
        "ftl.entry": f"{ENTRY}B",
        "ftl.over_provisioning": f"{SPARE}%",
        "ftl.translation_blocks": case.translation_blocks,
        "flash.blocks_per_plane": BLOCKS,
        "flash.pages_per_block": case.block_pages,
        "flash.read": f"{READ_NS}ns",
        "flash.program": f"{PROGRAM_NS}ns",
        "flash.erase": f"{ERASE_NS}ns",
    }


def differences(case: Case, model_of: type[Model] = Model) -> list[str]:
    """Returns how ftlab's completions and counts differ from a model's."""
    model = model_of(case)
    out, log = model.run(), model.log.counts
    rows, result = traces.timed(settings(case), case.trace, PAGE)
    flash, mapping = result["flash"], result["mapping"]
    assert not flash["programs"]["gc"], "a load with collection of user blocks"
    programs = out.programs + log.copied + log.directory
    wanted = {
        "hits": (mapping["hits"], out.hits),
        "misses": (mapping["misses"], out.misses),
        "pages read": (flash["reads"]["map"], out.reads),
        "pages programmed": (flash["programs"]["map"], out.programs),
        "pages read for copies": (flash["reads"]["gc-map"], log.read),
        "pages copied": (flash["programs"]["gc-map"], log.copied),
        "pages of the directory": (flash["programs"]["dir"], log.directory),
        "erases": (sum(flash["erases"].values()), log.erases),
        "bytes programmed": (mapping["map_bytes_programmed"], programs * PAGE),
        "updated ratio": (mapping["updated_ratio"], out.updated / out.carried if out.carried else None),
    }
    found = [
        f"request {number} {case.trace[number]}: {have} in ftlab, {want} in the model"
        for number, (have, want) in enumerate(zip(rows, out.completes, strict=True))
        if have != want
    ]
    return found + [
        f"{name}: {have} in ftlab, {want} in the model"
        for name, (have, want) in wanted.items()
        if have != want
    ]
