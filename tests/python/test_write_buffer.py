"""Compares the write buffer with a second implementation, request by request, to the nanosecond."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

import pytest

from oracle import buffer, engine
from oracle.buffer import Config
from oracle.mapplus import Record

pytestmark = pytest.mark.skipif(not engine.available(), reason=engine.SKIP_REASON)

TIMES: dict[str, Any] = {"read": 35_017, "program": 350_039}
LINK: dict[str, Any] = {"bytes_per_s": 250_000_001, "link_command": 900}
STAGES: dict[str, Any] = {
    **LINK,
    "cores": 2,
    "command": 30_000,
    "unit": 2_500,
    "latency": (7_777, 5_555),
    "latency_other": 3_333,
}
DEVICES = {
    "fifo": Config(**TIMES),
    "direct": Config(**TIMES, scheduler="direct"),
    "direct-block": Config(**TIMES, scheduler="direct", policy="block", block_pages=8, pages=12),
    "lru": Config(**TIMES, policy="lru"),
    "block": Config(**TIMES, policy="block", block_pages=16),
    "sorted": Config(**TIMES, policy="sorted", pages=40),
    "protected": Config(**TIMES, protected=True, policy="lru"),
    "stalling": Config(**TIMES, pages=5, policy="block", block_pages=8),
    "one-page": Config(**TIMES, pages=1),
    "bounds": Config(**TIMES, pages=100, high=50, low=3, policy="lru"),
    "link": Config(**TIMES, **LINK, half_duplex=True),
    "all": Config(**TIMES, **STAGES, policy="block", block_pages=32),
    "all-protected": Config(**TIMES, **STAGES, pages=24, protected=True),
}
OPS = ["R", "W", "WF", "T", "F"]


def trace(
    seed: int,
    count: int,
    gap_ns: int,
    spaces: Sequence[int] = (40, 1000),
    shares: Sequence[int] = (45, 45, 3, 5, 2),
    step_ns: int = 1,
) -> list[Record]:
    """Returns requests of one to eight pages at random times, which are multiples of a step. Each begins
    within the first pages of the device; how many these are is drawn from ``spaces``.
    """
    draw = random.Random(seed)
    now, rows = 0, []
    for _ in range(count):
        now += int(draw.expovariate(1 / gap_ns)) + 1
        op = draw.choices(OPS, shares)[0]
        pages, lpn = draw.choice([1, 1, 1, 2, 4, 8]), draw.randrange(draw.choice(spaces))
        place = (0, 0) if op == "F" else (lpn * 4096, pages * 4096)
        rows.append((now // step_ns * step_ns, op, *place))
    return rows


def differences(config: Config, rows: list[Record]) -> list[tuple[str, object, object]]:
    """Returns what differs, with ftlab's value and the oracle's: requests (completion, and how many pages
    were answered from the buffer) and figures of the buffer.
    """
    expected = buffer.run(config, rows)
    settings = {"preset": "map-plus", "flash.blocks_per_plane": 8192, **config.settings()}
    result = engine.result_of(settings, rows)
    columns = [result.column(name).tolist() for name in ["id", "complete_ns", "buffered"]]
    found = {f"request {number}": (at, pages) for number, at, pages in zip(*columns, strict=True)}
    found |= result.to_dict()["device"]["buffer"]
    wanted: dict[str, object] = asdict(expected.figures)
    for number, answer in enumerate(zip(expected.done, expected.buffered, strict=True), min(columns[0])):
        wanted[f"request {number}"] = answer
    assert found.keys() == wanted.keys()
    return [(name, found[name], wanted[name]) for name in wanted if found[name] != wanted[name]]


@pytest.mark.parametrize("load", [0.2, 0.9, 1.5])
@pytest.mark.parametrize("name", DEVICES)
def test_every_request_is_the_oracles(name: str, load: float) -> None:
    """At each load, ftlab and the oracle agree on 10,000 requests; without a buffer a request takes the flash
    520 us on average.
    """
    assert not differences(DEVICES[name], trace(7, 10_000, int(520_000 / load)))[:5]


def test_the_loads_have_all_that_a_buffer_does() -> None:
    """In the loads of these tests, pages are hit, replaced and destaged, reads find some of their pages in
    the buffer, and writes wait.
    """
    for load in (0.9, 1.5):
        rows = trace(7, 10_000, int(520_000 / load))
        outcome = buffer.run(DEVICES["stalling"], rows)
        assert min(asdict(outcome.figures).values()) > 0
        assert any(0 < pages * 4096 < row[3] for pages, row in zip(outcome.buffered, rows, strict=True))


@pytest.mark.parametrize("policy", ["fifo", "lru", "block", "sorted"])
@pytest.mark.parametrize("protected", [False, True])
@pytest.mark.parametrize(("load", "scheduler"), [(0.9, "noop"), (1.5, "noop"), (0.9, "direct")])
def test_what_is_due_at_the_same_time_has_an_order(
    load: float, scheduler: str, protected: bool, policy: str
) -> None:
    """ftlab and the oracle agree on the order of events that are due at the same time, of which there are
    many, since all times are whole microseconds.
    """
    config = Config(
        bytes_per_s=4_096_000_000,
        link_command=1_000,
        cores=2,
        command=5_000,
        unit=1_000,
        latency=(3_000, 2_000),
        latency_other=1_000,
        read=3_000,
        program=9_000,
        scheduler=scheduler,
        pages=12,
        policy=policy,
        protected=protected,
        block_pages=8,
    )
    assert not differences(config, trace(11, 10_000, int(16_000 / load), step_ns=1_000))[:5]


@pytest.mark.parametrize("seed", range(100))
def test_random_devices(seed: int) -> None:
    """On random devices, ftlab and the oracle agree on 300 requests each; times are whole microseconds on
    every other device.
    """
    draw = random.Random(seed)
    step = [1, 1_000][seed % 2]

    def time(most_us: int) -> int:
        return draw.choice([0, draw.randrange(most_us * 1_000) // step * step])

    high = draw.choice([0, 50, 80, 100, draw.randrange(101)])
    config = Config(
        bytes_per_s=draw.choice([None, 250_000_001, 4_096_000_000]),
        half_duplex=draw.choice([False, True]),
        link_command=time(4),
        cores=draw.choice([1, 3]),
        command=time(10),
        unit=time(3),
        latency=(time(10), time(10)),
        latency_other=time(5),
        read=draw.choice([1_000, 3_000, 35_000]),
        program=draw.choice([3_000, 9_000, 35_000, 350_000]),
        scheduler=draw.choice(["noop", "direct"]),
        pages=draw.choice([1, 2, 3, 5, 8, 16, 40]),
        policy=draw.choice(["fifo", "lru", "block", "sorted"]),
        high=high,
        low=draw.randrange(high + 1),
        protected=draw.random() < 0.3,
        block_pages=draw.choice([4, 8, 16]),
    )
    shares = draw.choice([(45, 45, 3, 5, 2), (10, 50, 10, 20, 10), (30, 60, 0, 10, 0), (1, 1, 1, 1, 1)])
    gap = int((config.read + config.program) * 1.3 / draw.choice([0.2, 0.8, 1.2, 3]))
    rows = trace(seed, 300, gap, [draw.choice([6, 20, 100])], shares, step)
    assert not differences(config, rows)[:5]
