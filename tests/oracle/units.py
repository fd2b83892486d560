"""FTLs that write mappings back once enough data has been written: Base-DFTL, mini-page FTL and MSFTL, on one
chip.

The model was written from Kim and Lee (ICSOFT 2020, section 3), spec/msftl.md and DEVIATIONS.md. The part of
the map that has been used is in RAM; a flush gathers units of it (16 KiB, 4 KiB, or a segment). There is no
garbage collection of user or translation blocks: the loads are too small for that. Requests are (arrival_ns,
op, first page, pages).
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from typing import Any

from . import traces

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
    """An FTL, the number of pages of data that leads to a flush, and a trace."""

    unit: str
    flush_pages: int
    trace: list[Request]


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
        self.entries = UNITS[case.unit] // ENTRY
        self.units_of_page = PAGE // UNITS[case.unit]
        # For each unit that is on flash, the translation page that holds it.
        self.at: dict[int, int] = {}
        self.cached: set[int] = set()
        self.dirty: set[int] = set()
        self.since = 0
        self.now = 0
        self.out = Outcome()

    def flush(self) -> None:
        """Writes all units that have an update, in ascending order, gathered into pages."""
        units = sorted({lpn // self.entries for lpn in self.dirty})
        read: set[int] = set()
        for first in range(0, len(units), self.units_of_page):
            together = units[first : first + self.units_of_page]
            read |= {self.at[unit] for unit in together if unit in self.at}
            self.program(together)
        self.read(len(read))
        self.out.updated += len(self.dirty)
        self.dirty.clear()
        self.since = 0

    def program(self, units: list[int]) -> None:
        self.out.programs += 1
        self.out.carried += len(units) * self.entries
        self.now += PROGRAM_NS
        self.at.update(dict.fromkeys(units, -self.out.programs))

    def read(self, pages: int) -> None:
        self.out.reads += pages
        self.now += pages * READ_NS

    def serve(self, op: str, first: int, pages: int) -> None:
        if op == "F" and self.dirty:
            self.flush()
        for lpn in range(first, first + pages):
            if op == "R" and lpn not in self.cached:
                self.out.misses += 1
                self.read(lpn // self.entries in self.at)
            else:
                self.out.hits += 1
            self.cached.add(lpn)
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
    return Case(draw.choice(list(UNITS)), draw.choice([1, 2, 7, 30, 100]), trace)


def settings(case: Case) -> dict[str, Any]:
    kind, _, segment = case.unit.partition("-")
    return {
        "host.scheduler": "noop",
        "ftl.kind": kind,
        **({"ftl.segment": f"{segment}KiB"} if segment else {}),
        "ftl.flush": f"{case.flush_pages * PAGE}B",
        "ftl.entry": f"{ENTRY}B",
        "ftl.over_provisioning": "40%",
        "ftl.translation_blocks": 90,
        "flash.blocks_per_plane": BLOCKS,
        "flash.pages_per_block": BLOCK_PAGES,
        "flash.read": f"{READ_NS}ns",
        "flash.program": f"{PROGRAM_NS}ns",
    }


def differences(case: Case) -> list[str]:
    """Returns how ftlab's completions and counts differ from the model's."""
    model = Model(case).run()
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
