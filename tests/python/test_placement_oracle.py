"""Compares the placement SepBIT with a second implementation, write by write, to the page.

`FTLAB_CAMPAIGN=N` makes a campaign of the random cases (see campaign.py).
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction

import pytest

import campaign
from oracle import engine, sepbit
from oracle.mapplus import Record
from oracle.sepbit import Config, Counts, Lifespans

pytestmark = pytest.mark.skipif(not engine.available(), reason=engine.SKIP_REASON)

DEVICES = {
    "one": Config(blocks=64, block_pages=8, spare=40),
    "four": Config(luns=4, blocks=48, block_pages=4, spare=40),
    "reserve": Config(luns=2, blocks=48, block_pages=4, spare=45, reserve=3),
    "tight": Config(blocks=80, block_pages=16, spare=15),
}
Draw = Callable[[random.Random, int], int]
"""Draws a page out of this many."""


def zipf(draw: random.Random, pages: int) -> int:
    """Draws a page; that of rank r has a share of about 1 / r, and ranks are scattered over the device."""
    return int(pages ** draw.random()) * 7919 % pages


def uniform(draw: random.Random, pages: int) -> int:
    return draw.randrange(pages)


def regions(draw: random.Random, pages: int) -> int:
    """Draws a page; the first tenth of the pages has nine tenths of the writes."""
    hot = max(1, pages // 10)
    return draw.randrange(hot) if draw.random() < 0.9 else draw.randrange(hot - 1, pages)


LOADS: dict[str, Draw] = {"zipf": zipf, "uniform": uniform, "regions": regions}


def drawn(config: Config, seed: int, count: int, load: Draw, trims: float = 0.04) -> list[Record]:
    """Returns requests of mostly one page, most of them writes, on the whole device or a part of it."""
    draw = random.Random(seed)
    space = draw.choice([config.pages(), config.pages(), config.pages() * 3 // 4])
    rows = []
    for number in range(count):
        kind = draw.random()
        op = "T" if kind < trims else "R" if kind < trims + 0.02 else "W"
        pages = min(draw.choice([1] * 12 + [2, 3, 5]), space)
        first = min(load(draw, space), space - pages)
        rows.append((number, op, first * config.page, pages * config.page))
    return rows


def in_order(config: Config, count: int) -> list[Record]:
    """Returns writes of three pages in order, over and over."""
    starts = [number * 3 % (config.pages() - 2) for number in range(count)]
    return [(at, "W", lpn * config.page, 3 * config.page) for at, lpn in enumerate(starts)]


def writes(lpns: Sequence[int]) -> list[Record]:
    """Returns writes of one page each."""
    return [(at, "W", lpn * 4096, 4096) for at, lpn in enumerate(lpns)]


def found(config: Config, rows: Sequence[Record], step: int, check: bool) -> Iterator[Counts]:
    """Yields what ftlab has done after each ``step`` requests, and after the last."""
    import ftlab

    settings = {"preset": "map-plus", **config.settings()}
    with ftlab.Simulation(settings, check=check) as simulation:
        for number, (_, op, offset, size) in enumerate(rows, 1):
            simulation.submit(op, offset, size)
            simulation.run_until_idle()
            if number % step == 0 or number == len(rows):
                result = simulation.result().to_dict()
                fronts = result["placement"]["fronts"]
                counts = Counts(
                    tuple(front["written"] for front in fronts),
                    tuple(front["moved"] for front in fronts),
                    result["flash"]["erases"].get("gc", 0),
                    tuple(tuple(sorted(lun)) for lun in simulation.valid_pages().tolist()),
                )
                assert result["flash"]["programs"].get("host", 0) == sum(counts.written)
                assert result["flash"]["programs"].get("gc", 0) == sum(counts.moved)
                assert sum(result["flash"]["programs"].values()) == sum(counts.written + counts.moved)
                assert sum(result["flash"]["erases"].values()) == counts.erased
                yield counts


def difference(
    config: Config, rows: Sequence[Record], step: int = 1, check: bool = False
) -> tuple[int, Counts, Counts] | None:
    """Returns after how many requests ftlab first differs from the oracle: what ftlab has done by then, and
    what the oracle has done.
    """
    expected = list(sepbit.run(config, rows))
    numbers = [number for number in range(1, len(rows) + 1) if number % step == 0 or number == len(rows)]
    for number, counts in zip(numbers, found(config, rows, step, check), strict=True):
        if counts != expected[number - 1]:
            return number, counts, expected[number - 1]
    return None


BY_HAND = Config(blocks=13, block_pages=2)
"""A device of 13 logical pages."""
FILLED = [*range(10), 0, 2, 4, 6, 8, 10, 11, 0, 4, 10, 8, 4, 12]
"""Writes that leave nothing but the reserve and room for one page of class 2. Each of the blocks then has one
valid page, but one block has two. The block of pages 0 and 1 came to that number first, that of pages 2 and 3
next.
"""


def test_classes_follow_from_the_mean_lifespan() -> None:
    """The mean lifespan is infinite at first. Then it is 10.5, and the bounds are 10.5, 42 and 168."""
    lifespans = Lifespans()
    assert [lifespans.of_write(10**9), lifespans.of_write(None)] == [1, 2]
    assert [lifespans.of_copy(1, 10**9), lifespans.of_copy(2, 10**9)] == [3, 4]
    for number in range(16):
        assert lifespans.mean is None
        lifespans.collect(sepbit.Block(2, 0), 1_000)  # not of class 1
        lifespans.collect(sepbit.Block(1, 100), 110 + number % 2)
    assert lifespans.mean == Fraction(21, 2)
    assert [lifespans.of_write(lifespan) for lifespan in (0, 10, 11, None)] == [1, 1, 2, 2]
    assert [lifespans.of_copy(6, age) for age in (0, 41, 42, 167, 168)] == [4, 4, 5, 5, 6]
    assert lifespans.of_copy(1, 10**9) == 3


@pytest.mark.parametrize(
    ("rows", "written", "moved", "erased", "valid"),
    [
        (writes(FILLED), (10, 13), 0, 0, [0, *[1] * 11, 2]),
        # Pages 1 and 3 are copied to class 4, each out of a block of its own, before there is room to write
        # page 1 again. Its copy is invalid at once.
        (writes([*FILLED, 1]), (11, 13), 2, 2, [0, *[1] * 11, 2]),
        # Page 3 finds room behind page 1; both copies are invalid now.
        (writes([*FILLED, 1, 3]), (12, 13), 2, 2, [0, 0, *[1] * 9, 2, 2]),
        # The block of the two copies is collected.
        (writes([*FILLED, 1, 3, 5]), (13, 13), 2, 3, [0, 0, *[1] * 9, 2, 2]),
        # After the trim page 1 has no version that could be replaced, and goes to class 2, which has room.
        (
            [*writes(FILLED), (23, "T", 4096, 4096), (24, "W", 4096, 4096)],
            (10, 14),
            0,
            0,
            [0, 0, *[1] * 9, 2, 2],
        ),
    ],
)
def test_a_case_by_hand(
    rows: list[Record], written: tuple[int, int], moved: int, erased: int, valid: list[int]
) -> None:
    """Oracle and ftlab do what was worked out by hand; l is infinite."""
    expected = Counts((*written, 0, 0, 0, 0), (0, 0, 0, moved, 0, 0), erased, (tuple(valid),))
    assert list(sepbit.run(BY_HAND, rows))[-1] == expected
    assert difference(BY_HAND, rows, check=True) is None


@pytest.mark.parametrize("load", LOADS)
@pytest.mark.parametrize("name", DEVICES)
def test_every_write_goes_to_the_oracles_front(name: str, load: str) -> None:
    """ftlab and the oracle agree on 10,000 requests."""
    config = DEVICES[name]
    assert difference(config, drawn(config, 7, 10_000, LOADS[load]), step=20) is None


@pytest.mark.parametrize("name", DEVICES)
def test_writes_in_order(name: str) -> None:
    """ftlab and the oracle agree on writes in order, which need no copies."""
    config = DEVICES[name]
    rows = in_order(config, 1_000)
    assert difference(config, rows, step=5) is None


class Watched(sepbit.Device):
    """Counts what is rare."""

    mixed = 0
    """Blocks that copies of several classes share."""

    def shared_class(self, classes: Sequence[int]) -> int:
        self.mixed += len(set(classes)) > 1
        return super().shared_class(classes)


def test_the_loads_have_all_that_sepbit_does() -> None:
    """In the loads of these tests pages go to all classes, l changes, and copies of several classes share
    blocks.
    """
    mixed = 0
    for config in DEVICES.values():
        moved = [0] * 6
        for load in LOADS.values():
            device, means = Watched(config), set()
            for _ in sepbit.follow(device, drawn(config, 7, 10_000, load)):
                means.add(device.lifespans.mean)
            assert min(device.counts().written[:2]) > 1_000
            assert len(means) > 10
            moved = [sum(both) for both in zip(moved, device.counts().moved, strict=True)]
            mixed += device.mixed
        assert min(moved[2:]) > 10
    assert mixed > 30


def random_case(seed: int) -> tuple[Config, list[Record]]:
    """Returns a device of random sizes, and 500 requests in one of the loads. Every third device has large
    blocks, few of them to spare, and is first filled in order.
    """
    draw = random.Random(seed)
    tight = seed % 3 == 0
    user, spare = (draw.randrange(16, 40), 9) if tight else (draw.randrange(4, 24), draw.randrange(8, 16))
    config = Config(
        luns=1 if tight else draw.choice([1, 1, 2, 3, 4]),
        blocks=user + spare,
        block_pages=draw.choice([8, 12, 16] if tight else [2, 3, 4, 4, 5, 8]),
        spare=-(-spare * 100 // (user + spare)),
        reserve=draw.choice([1, 1, 1, 2]),
    )
    fill = in_order(config, -(-config.pages() // 3)) if tight else []
    load = draw.choice(list(LOADS.values()))
    return config, fill + drawn(config, seed, 500, load, trims=draw.choice([0, 0.05, 0.2]))


def test_random_devices() -> None:
    """On random devices, ftlab and the oracle agree after every request."""
    for seed in campaign.cases("sepbit", range(40)):
        config, rows = random_case(seed)
        assert difference(config, rows, check=seed % 4 == 0) is None, seed
