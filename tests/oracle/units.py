"""FTLs that write mappings back once enough data has been written: Base-DFTL, mini-page FTL and MSFTL, on one
chip.

The model was written from Kim and Lee (ICSOFT 2020, section 3), spec/msftl.md and DEVIATIONS.md. The part of
the map that has been used is in RAM, or as much of it as a cache holds; a flush gathers units of it (16 KiB,
4 KiB, or a segment). There is no garbage collection of user or translation blocks: the loads are too small
for that. Requests are (arrival_ns, op, first page, pages).

With a bounded cache, which the paper does not have, the entry that leaves is DFTL's victim. If it is dirty,
its unit is written, in one page with the next units that have updates. No independent witness, since no text
says it and ftlab was asked: behind the last unit the next one is the lowest; a flush of the host begins the
amount anew even if nothing is dirty.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from typing import Any

from . import traces
from .cache import LruList, SegmentedLruList

READ_NS, PROGRAM_NS = 49_000, 600_000
PAGE = 16 << 10
ENTRY = 64
"""The size of an entry in bytes: the largest that ftlab allows, so that even a small device has many units.
"""

UNITS = {"dftl": PAGE, "minipage": 4 << 10, "msftl-2": 2 << 10, "msftl-1": 1 << 10}
BLOCKS, BLOCK_PAGES = 256, 16

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

    def __init__(self, case: Case) -> None:
        self.case = case
        self.per_unit = UNITS[case.unit] // ENTRY
        self.units_of_page = PAGE // UNITS[case.unit]
        # For each unit that is on flash, the translation page that holds it.
        self.at: dict[int, int] = {}
        self.cached = LruList(case.entries) if case.policy == "lru" else SegmentedLruList(case.entries)
        self.dirty: set[int] = set()
        self.since = 0
        self.now = 0
        self.out = Outcome()

    def unit_of(self, lpn: int) -> int:
        return lpn // self.per_unit

    def flush(self) -> None:
        """Writes all units that have an update, in ascending order, gathered into pages."""
        units = sorted({self.unit_of(lpn) for lpn in self.dirty})
        read = self.sources(units)
        for first in range(0, len(units), self.units_of_page):
            self.program(units[first : first + self.units_of_page])
        self.read(len(read))
        self.since = 0

    def sources(self, units: list[int]) -> set[int]:
        """Returns the translation pages that hold old versions of units."""
        return {self.at[unit] for unit in units if unit in self.at}

    def program(self, units: list[int]) -> None:
        self.out.programs += 1
        self.out.carried += len(units) * self.per_unit
        self.now += PROGRAM_NS
        self.at.update(dict.fromkeys(units, -self.out.programs))
        written = {lpn for lpn in self.dirty if self.unit_of(lpn) in units}
        self.out.updated += len(written)
        self.dirty -= written

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
            read = self.sources(units)
            self.program(units)
            self.read(len(read))

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
    region = draw.choice([40, 400, 2000])
    now, end, trace = 0, 0, []
    for _ in range(draw.choice([40, 150, 400])):
        now += draw.choice([0, 0, 500_000, 20_000_000])
        op = draw.choices("WRTF", [70, 20, 5, 1])[0]
        pages = 0 if op == "F" else draw.choice([1, 1, 2, 6])
        first = end if draw.random() < 0.3 and end + pages < region else draw.randrange(region - 6)
        end = first + pages
        trace.append((now, op, 0 if op == "F" else first, pages))
    case = Case(draw.choice(list(UNITS)), draw.choice([1, 2, 7, 30, 100]), trace)
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
        "ftl.over_provisioning": "40%",
        "ftl.translation_blocks": 90,
        "flash.blocks_per_plane": BLOCKS,
        "flash.pages_per_block": BLOCK_PAGES,
        "flash.read": f"{READ_NS}ns",
        "flash.program": f"{PROGRAM_NS}ns",
    }


def differences(case: Case, model_of: type[Model] = Model) -> list[str]:
    """Returns how ftlab's completions and counts differ from a model's."""
    model = model_of(case).run()
    rows, result = traces.timed(settings(case), case.trace, PAGE)
    assert not sum(result["flash"]["erases"].values()), "a load with garbage collection"
    found = [
        f"request {number} {case.trace[number]}: {have} in ftlab, {want} in the model"
        for number, (have, want) in enumerate(zip(rows, model.completes, strict=True))
        if have != want
    ]
    mapping = result["mapping"]
    wanted = {
        "hits": model.hits,
        "misses": model.misses,
        "translation_reads": model.reads,
        "translation_programs": model.programs,
        "map_bytes_programmed": model.programs * PAGE,
    }
    found += [
        f"{key}: {mapping[key]}, {want} in the model" for key, want in wanted.items() if mapping[key] != want
    ]
    ratio = model.updated / model.carried if model.carried else None
    if mapping["updated_ratio"] != ratio:
        found.append(f"updated_ratio: {mapping['updated_ratio']}, {ratio} in the model")
    return found
