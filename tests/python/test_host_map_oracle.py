"""The map that the host holds, compared with a second implementation after every request.

`FTLAB_CAMPAIGN=N` makes a campaign of the random cases (see campaign.py).
"""

from __future__ import annotations

import functools
import itertools
import random
from collections.abc import Sequence
from dataclasses import fields

import pytest

import campaign
from oracle import engine, held
from oracle.collected import PAGE, Counts, Request
from oracle.held import Config, Device, Figures

pytestmark = pytest.mark.skipif(not engine.available(), reason=engine.SKIP_REASON)

Done = tuple[list[tuple[Counts, Figures]], list[int]]
"""What ftlab has done after each request, and how many blocks it collected during each."""


def found(config: Config, requests: Sequence[Request]) -> Done:
    """Returns what ftlab does."""
    import ftlab

    counts, erased = [], [0]
    with ftlab.Simulation(config.settings()) as simulation:
        for op, first, pages in requests:
            simulation.submit(op, first * PAGE, pages * PAGE)
            simulation.run_until_idle()
            result = simulation.result().to_dict()
            mapping, flash, own = result["mapping"], result["flash"], result["own"]["host_map"]
            done = Counts(
                mapping["hits"],
                mapping["misses"],
                mapping["translation_reads"],
                mapping["translation_programs"],
                flash["programs"].get("gc", 0),
                flash["programs"].get("host", 0),
            )
            counts.append((done, Figures(*(int(own[field.name]) for field in fields(Figures)))))
            erased.append(flash["erases"].get("gc", 0))
    return counts, [after - before for before, after in itertools.pairwise(erased)]


def random_case(seed: int) -> tuple[Config, list[Request]]:
    """Returns a random device that soon collects garbage, and requests; a write or trim has one page."""
    draw = random.Random(f"held {seed}")
    ftl = ("cdftl", "tpftl", "dftl")[seed % 3]
    tiny = {"cdftl": PAGE + 64, "tpftl": 64, "dftl": 64}[ftl]
    subregion = draw.choice([4, 8, 12, 16])
    config = Config(
        ftl=ftl,
        cache_bytes=tiny + draw.choice([0, 64, 200, 512, 1100]),
        blocks=draw.choice([48, 64]),
        block_pages=draw.choice([4, 8, 12]),
        spare=draw.choice([45, 55]),
        policy=draw.choice(["slru", "lru"]),
        load=draw.choice(["entry", "request"]),
        subregion=subregion,
        subregions=draw.choice([1, 2, 3]),
        regions=draw.choice([1, 2, 4]),
        longest=draw.choice([1, 2, min(6, subregion)]),
        policy_of_map=("lru", "access-count")[seed // 3 % 2],
        threshold=draw.choice([1, 2, 5]),
    )
    # Writes go to few pages, so that garbage collection moves pages that the host reads but does not write.
    space = config.pages() if draw.random() < 0.5 else config.pages() // 2
    rows: list[Request] = [("W", lpn, 1) for lpn in range(space)]
    for _ in range(600):
        op = draw.choices("WRT", [55, 42, 3])[0]
        pages = draw.choice([1, 1, 2, 6]) if op == "R" else 1
        near = draw.random() < (0.5 if op == "R" else 0.9)
        first = draw.randrange(30) if near else draw.randrange(space - 6)
        rows.append((op, first + 20 * (op == "R" and near), pages))
    return config, rows


SEEDS = range(36)


@functools.lru_cache(maxsize=64)
def scene(seed: int) -> tuple[Config, list[Request], Done]:
    """Returns a random case, and what ftlab does."""
    config, requests = random_case(seed)
    return config, requests, found(config, requests)


def difference(seed: int, device: type[Device] = Device) -> object:
    """Returns the first request after which ftlab and the oracle differ, and what each has done by then."""
    config, requests, (have, collected) = scene(seed)
    wanted = held.follow(device(config), requests, collected)
    for number, (request, one, other) in enumerate(zip(requests, have, wanted, strict=True)):
        if one != other:
            return number, request, one, other
    return None


def test_random_devices() -> None:
    """On random devices, ftlab and the oracle agree after every request."""
    for seed in campaign.cases("held", SEEDS):
        assert (at := difference(seed)) is None, (seed, scene(seed)[0], at)


def test_the_cases_have_everything() -> None:
    """Entries are used and out of date, regions leave and are refused, on several devices each."""
    last = [scene(seed)[2][0][-1][1] for seed in SEEDS]
    for field in fields(Figures):
        assert sum(getattr(figures, field.name) > 3 for figures in last) >= 3, field.name


# --- faults that the comparison must notice ---------------------------------------------------------------


class NeverStale(Device):
    """Uses every entry."""

    def holds(self, lpn: int) -> bool:
        return True


class Remembers(Device):
    """Keeps the entries of pages that the host writes."""

    def note_change(self, lpns: Sequence[int]) -> None:
        kept = dict(self.entries)
        super().note_change(lpns)
        self.entries = kept


class Newest(Device):
    """Lets the region leave that was read last."""

    def victim(self) -> int:
        return self.regions[-1]


class NoTouch(Device):
    """Orders regions by when they came."""

    def touch(self, region: int) -> None:
        pass


class NoHalving(Device):
    """Never halves the counts of reads."""

    def halve(self) -> None:
        pass


class PastTheCache(Device):
    """Reads entries without a look into the mapping cache."""

    def read_entries(self, part: int) -> None:
        before = self.counts.map_reads
        super().read_entries(part)
        self.counts.map_reads = before + (part in self.held)


@pytest.mark.parametrize("fault", [NeverStale, Remembers, Newest, NoTouch, NoHalving, PastTheCache])
def test_a_fault_is_noticed(fault: type[Device]) -> None:
    """With a fault the oracle differs from ftlab on one of the random devices."""
    assert any(difference(seed, fault) for seed in SEEDS)
