"""DFTL, CDFTL and TPFTL with garbage collection, compared with second implementations after every request.

``tests/oracle/collected.py`` adds what garbage collection does to the map. Without it these caches are
compared in ``test_oracle.py``, under every scheduler.

`FTLAB_CAMPAIGN=N` makes a campaign of the random cases (see campaign.py).
"""

from __future__ import annotations

import functools
import itertools
import random
from collections.abc import Sequence
from dataclasses import dataclass

import pytest

import campaign
from oracle import collected, engine
from oracle.collected import PAGE, Config, Counts, Device, Request

pytestmark = pytest.mark.skipif(not engine.available(), reason=engine.SKIP_REASON)


@dataclass(frozen=True)
class Found:
    """What ftlab has done after each request, and how many blocks it collected during each."""

    counts: list[Counts]
    collected: list[int]


def found(config: Config, requests: Sequence[Request]) -> Found:
    """Returns what ftlab does."""
    import ftlab

    counts, erased = [], [0]
    with ftlab.Simulation(config.settings()) as simulation:
        for op, first, pages in requests:
            simulation.submit(op, first * PAGE, pages * PAGE)
            simulation.run_until_idle()
            result = simulation.result().to_dict()
            mapping, flash = result["mapping"], result["flash"]
            counts.append(
                Counts(
                    mapping["hits"],
                    mapping["misses"],
                    mapping["translation_reads"],
                    mapping["translation_programs"],
                    flash["programs"].get("gc", 0),
                    flash["programs"].get("host", 0),
                )
            )
            erased.append(flash["erases"].get("gc", 0))
    return Found(counts, [after - before for before, after in itertools.pairwise(erased)])


def difference(
    config: Config, requests: Sequence[Request], have: Found, device: type[Device] = Device
) -> tuple[int, Request, Counts, Counts] | None:
    """Returns the first request after which ftlab and the oracle differ, and what each has done by then."""
    wanted = collected.follow(device(config), requests, have.collected)
    for number, (request, one, other) in enumerate(zip(requests, have.counts, wanted, strict=True)):
        if one != other:
            return number, request, one, other
    return None


def random_case(seed: int) -> tuple[Config, list[Request]]:
    """Returns a random device that soon collects garbage, and requests; a write or trim has one page."""
    draw = random.Random(f"collected {seed}")
    ftl = ("cdftl", "tpftl", "dftl")[seed % 3]
    tiny = {"cdftl": PAGE + 64, "tpftl": 64, "dftl": 64}[ftl]
    config = Config(
        ftl=ftl,
        cache_bytes=tiny + draw.choice([0, 64, 200, 512, 1100, 2000]),
        blocks=draw.choice([48, 64]),
        block_pages=draw.choice([4, 8, 12]),
        spare=draw.choice([45, 55]),
        policy=draw.choice(["slru", "lru"]),
        load=draw.choice(["entry", "request"]),
    )
    space = config.pages() if draw.random() < 0.7 else config.pages() // 2
    rows: list[Request] = [("W", lpn, 1) for lpn in range(space)] if draw.random() < 0.5 else []
    for _ in range(600):
        op = draw.choices("WRT", [70, 27, 3])[0]
        pages = draw.choice([1, 2, 6]) if op == "R" else 1
        first = draw.randrange(space - 6) if draw.random() < 0.6 else draw.randrange(20)
        rows.append((op, first, pages))
    return config, rows


SEEDS = range(48)


@functools.lru_cache(maxsize=64)
def scene(seed: int) -> tuple[Config, list[Request], Found]:
    """Returns a random case, and what ftlab does."""
    config, requests = random_case(seed)
    return config, requests, found(config, requests)


def test_random_devices_that_collect_garbage() -> None:
    """On random devices, ftlab and the oracle agree after every request."""
    for seed in campaign.cases("collected", SEEDS):
        assert (at := difference(*scene(seed))) is None, (seed, scene(seed)[0], at)


def test_most_devices_collect_garbage() -> None:
    """Each cache has devices on which valid pages are copied."""
    copied = [seed % 3 for seed in SEEDS if scene(seed)[2].counts[-1].copies > 10]
    assert min(copied.count(kind) for kind in range(3)) >= 3


# --- faults of garbage collection that the comparison must notice -----------------------------


class PastCache(Device):
    """Updates every mapping that moved on flash."""

    def update_cached(self, lpn: int) -> bool:
        return False


class StaysClean(Device):
    """Leaves a cached mapping that moved clean."""

    def update_cached(self, lpn: int) -> bool:
        return self.cache.cached(lpn)


class IsAccess(Device):
    """Counts the update of a cached mapping as an access."""

    def update_cached(self, lpn: int) -> bool:
        return self.cache.cached(lpn) and self.cache.translate(lpn, True)


class StaysDirty(Device):
    """Leaves the dirty entries of a translation page that is programmed dirty."""

    def clean(self, page: int) -> None:
        pass


class OneByOne(Device):
    """Updates each mapping with a read and a program of its own."""

    def update(self, moved: list[int]) -> None:
        for lpn in moved:
            super().update([lpn])


class WithoutRead(Device):
    """Programs a translation page without a read."""

    def update(self, moved: list[int]) -> None:
        before = self.counts.map_reads
        super().update(moved)
        self.counts.map_reads = before


class NewestBlock(Device):
    """Collects the block that was filled last."""

    def collect(self) -> list[int]:
        self.blocks.rotate(2)
        victim = self.blocks.popleft()
        self.blocks.rotate(-1)
        self.blocks.appendleft(victim)
        return super().collect()


class OldVersionGone(Device):
    """Takes the old version of the page that is written for stale already."""

    def serve(self, op: str, lpns: Sequence[int], collected: int) -> None:
        if op == "W":
            self.newest.pop(lpns[0], None)
        super().serve(op, lpns, collected)


COLLECTION_FAULTS = [
    *[PastCache, StaysClean, IsAccess, StaysDirty, OneByOne, WithoutRead, NewestBlock, OldVersionGone],
]


@pytest.mark.parametrize("fault", COLLECTION_FAULTS)
def test_a_fault_of_collection_is_noticed(fault: type[Device]) -> None:
    """With a fault the oracle differs from ftlab on one of the random devices."""
    assert any(difference(*scene(seed), fault) for seed in SEEDS)
