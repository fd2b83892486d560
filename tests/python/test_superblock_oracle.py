"""Compares superblocks with a second implementation, request by request, to the page.

`FTLAB_CAMPAIGN=N` makes a campaign of the random cases (see campaign.py).
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence

import pytest

import campaign
from oracle import engine, superblocks
from oracle.mapplus import Record
from oracle.superblocks import Config, Counts

pytestmark = pytest.mark.skipif(not engine.available(), reason=engine.SKIP_REASON)


def drawn(config: Config, draw: random.Random, count: int, trims: float) -> list[Record]:
    """Returns requests of mostly one page, most of them writes, of which a part of the pages has most."""
    pages, rows = config.pages(), []
    hot = max(1, pages // draw.choice([1, 4, 10]))
    for number in range(count):
        kind = draw.random()
        op = "T" if kind < trims else "R" if kind < trims + 0.02 else "W"
        size = min(draw.choice([1] * 12 + [2, 3, 5]), pages)
        first = min(draw.randrange(hot if draw.random() < 0.8 else pages), pages - size)
        rows.append((number, op, first * config.page, size * config.page))
    return rows


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
                programs, erases = result["flash"]["programs"], result["flash"]["erases"]
                counts = Counts(
                    programs.get("host", 0),
                    programs.get("gc", 0),
                    erases.get("gc", 0),
                    tuple(tuple(sorted(lun)) for lun in simulation.valid_pages().tolist()),
                )
                assert sum(programs.values()) == counts.written + counts.moved
                assert sum(erases.values()) == counts.erased
                if config.apart:
                    fronts = result["placement"]["fronts"]
                    assert [front["written"] for front in fronts] == [counts.written, 0]
                    assert [front["moved"] for front in fronts] == [0, counts.moved]
                yield counts


def difference(config: Config, rows: Sequence[Record], step: int = 1, check: bool = False) -> object:
    """Returns after how many requests ftlab first differs from the oracle, and what each has done by then."""
    expected = list(superblocks.run(config, rows))
    numbers = [number for number in range(1, len(rows) + 1) if number % step == 0 or number == len(rows)]
    for number, counts in zip(numbers, found(config, rows, step, check), strict=True):
        if counts != expected[number - 1]:
            return number, counts, expected[number - 1]
    return None


def test_by_hand() -> None:
    """Two LUNs with three blocks of two pages: a superblock has four pages, one is in reserve, the user has
    three pages.

    Writes of 0, 1, 2, 0 fill the first superblock, 1, 0, 1, 0 the second: the first has page 2 left, on the
    first LUN, the second 1 and 0, on both LUNs. The next write of 2 finds only the reserve. So 2 is copied
    there, both blocks of the first superblock are erased, and the new 2 follows on the second LUN.
    """
    config = Config(luns=2, width=2, blocks=3, block_pages=2, spare=67)
    lpns = [0, 1, 2, 0, 1, 0, 1, 0, 2]
    rows = [(at, "W", lpn * 4096, 4096) for at, lpn in enumerate(lpns)]
    assert config.pages() == 3
    found = list(superblocks.run(config, rows))
    assert found[7].valid == ((0, 1, 1), (0, 0, 1))
    assert (found[8].written, found[8].moved, found[8].erased) == (9, 1, 2)
    assert difference(config, rows, check=True) is None


DEVICES = {
    "all": Config(blocks=48, spare=30),
    "pairs": Config(luns=6, width=2, blocks=40, spare=25, reserve=2),
    "apart": Config(luns=3, width=3, blocks=40, block_pages=8, spare=30, apart=True),
    "single": Config(luns=3, width=1, blocks=40, block_pages=8, spare=25),
}


@pytest.mark.parametrize("name", DEVICES)
def test_every_page_goes_where_the_oracle_puts_it(name: str) -> None:
    """ftlab and the oracle agree on 4,000 requests, and copies are among them."""
    config = DEVICES[name]
    rows = drawn(config, random.Random(name), 4_000, 0.04)
    assert difference(config, rows, step=25) is None
    assert list(superblocks.run(config, rows))[-1].moved > 500


def random_case(seed: int) -> tuple[Config, list[Record]]:
    """Returns a device of random sizes, and 500 requests."""
    draw = random.Random(seed)
    width, groups = draw.choice([(1, 2), (2, 1), (2, 2), (3, 1), (2, 3), (4, 1), (5, 1)])
    user, spare = draw.randrange(4, 16), draw.randrange(4, 9)
    config = Config(
        luns=width * groups,
        width=width,
        blocks=user + spare,
        block_pages=draw.choice([1, 2, 3, 4]),
        spare=-(-spare * 100 // (user + spare)),
        reserve=draw.choice([1, 1, 1, 2]),
        apart=draw.choice([False, True]),
    )
    return config, drawn(config, draw, 500, draw.choice([0, 0.05, 0.2]))


def test_random_devices() -> None:
    """On random devices, ftlab and the oracle agree after every request."""
    for seed in campaign.cases("superblocks", range(40)):
        config, rows = random_case(seed)
        assert difference(config, rows, check=seed % 4 == 0) is None, seed
