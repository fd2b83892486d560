"""Compares controller and link with a second implementation, request by request, to the nanosecond."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest

from oracle import controller, engine
from oracle.controller import Config

pytestmark = pytest.mark.skipif(not engine.available(), reason=engine.SKIP_REASON)

DEVICES = {
    "link": Config(bytes_per_s=800_000_000, link_command=700),
    "half-duplex": Config(bytes_per_s=100_000_000, half_duplex=True, link_command=1_300),
    "cores": Config(cores=3, command=21_000, unit=1_700),
    "writes": Config(cores=2, command=9_000, unit=1_100, command_write=31_000, unit_write=700),
    "only-writes": Config(bytes_per_s=800_000_000, command_write=40_000, latency=(2_100, 0)),
    "latency": Config(latency=(9_100, 3_300), command=2_000),
    "all": Config(
        bytes_per_s=250_000_001, link_command=900, cores=2, command=30_000, unit=2_500, latency=(7_777, 5_555)
    ),
}


def trace(seed: int, count: int, gap_ns: int) -> list[tuple[int, str, int, int]]:
    """Returns reads and writes of one to eight pages of 4 KiB, at random times and places."""
    draw = random.Random(seed)
    now, rows = 0, []
    for _ in range(count):
        now += int(draw.expovariate(1 / gap_ns)) + 1
        op = "R" if draw.random() < 0.7 else "W"
        pages = draw.choice([1, 1, 1, 2, 4, 8])
        rows.append((now, op, draw.randrange(2000) * 4096, pages * 4096))
    return rows


def unequal(config: Config, rows: list[tuple[int, str, int, int]]) -> list[tuple[int, int, int]]:
    """Returns the requests whose completion differs: number, ftlab's time and the oracle's time."""
    expected = controller.completions(config, rows)
    found, _ = engine.run({"preset": "map-plus", "flash.blocks_per_plane": 8192, **config.settings()}, rows)
    return [(row.id, row.complete, at) for row, at in zip(found, expected, strict=True) if row.complete != at]


@pytest.mark.parametrize("load", [0.3, 0.8, 1.5])
@pytest.mark.parametrize("name", DEVICES)
def test_every_completion_is_the_oracles(name: str, load: float) -> None:
    """At each load, ftlab and the oracle agree on 10,000 requests; on average a request takes the flash 390
    us.
    """
    config = replace(DEVICES[name], read=35_017, program=350_039)
    assert not unequal(config, trace(7, 10_000, int(390_000 / load)))[:5]


@pytest.mark.parametrize("half_duplex", [False, True])
@pytest.mark.parametrize("load", [0.8, 1.5])
def test_what_is_due_at_the_same_time_has_an_order(load: float, half_duplex: bool) -> None:
    """ftlab and the oracle agree on the order of events that are due at the same time, of which there are
    many, since all times are whole microseconds.
    """
    config = Config(
        bytes_per_s=4_096_000_000,
        half_duplex=half_duplex,
        link_command=1_000,
        cores=2,
        command=5_000,
        unit=1_000,
        latency=(3_000, 2_000),
        read=3_000,
        program=9_000,
    )
    rows = trace(11, 10_000, int(13_000 / load))
    assert not unequal(config, [(now // 1000 * 1000, op, offset, size) for now, op, offset, size in rows])[:5]
