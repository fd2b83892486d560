"""Compares errors of reads and their retries with a second implementation, request by request.

``FTLAB_CAMPAIGN=N`` runs further random devices, up to the next multiple of N (see campaign.py).
"""

from __future__ import annotations

import functools
import random
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pytest

import campaign
from oracle import engine, errors, slc
from oracle.cells import CELLS
from oracle.errors import HOUR, Block, Config, Mapping
from oracle.events import Request, Stage

pytestmark = pytest.mark.skipif(not engine.available(), reason=engine.SKIP_REASON)

SLC: dict[str, Any] = {
    "read": (35_001,),
    "program": (350_003,),
    "erase": 1_500_007,
    "block_pages": 16,
    "blocks": 40,
    "spare": 25,
}
TLC: dict[str, Any] = {
    "cell": "tlc",
    "read": (56_003, 77_011, 106_019),
    "program": (450_007, 1_310_021, 2_050_033),
    "erase": 3_000_017,
    "block_pages": 24,
    "blocks": 40,
    "spare": 25,
}
WORD_LINE: dict[str, Any] = {"programming": "word-line", "program": (1_730_009,)}
BUS: dict[str, Any] = {"byte_ns": 0.83, "command": 211}
# With 1 KiB a codeword, the steps correct 4, 6, 9, 13.5, 20.25, ... wrong bits.
SMALL: dict[str, Any] = {"limit": 4.0}
WEAR = (("wear", 2e-4), ("a", 0.9))
RETENTION = (("retention", 1.3e-5), ("b", 0.15), ("c", 0.55))
DISTURB = (("disturb", 3e-6), ("d", 0.33), ("e", 0.8))
ALL = (("base", 3e-4), ("wear", 1e-7), ("a", 1.1), *RETENTION, *DISTURB)
DEVICES = {
    "base": Config(**SLC, **BUS, limit=1.1, own=(("base", 3e-4),)),
    "base, failing": Config(**SLC, **BUS, limit=1.1, steps=1, own=(("base", 3e-4),)),
    "wear": Config(**SLC, **BUS, **SMALL, own=WEAR, steps=4),
    "retention": Config(**TLC, **BUS, limit=3.0, own=RETENTION, cycles=1_000, steps=4, depth=4),
    "disturb": Config(**TLC, **BUS, limit=1.0, own=DISTURB, cycles=1_000, filled=True),
    "all": Config(**TLC, **BUS, **SMALL, own=ALL, cycles=5_000, age=200 * HOUR, filled=True, steps=5),
    "all, last": Config(
        **TLC, **BUS, **SMALL, own=ALL, cycles=1_000, age=90 * HOUR, filled=True, retry="last", steps=6
    ),
    "all, pipelined": Config(
        **TLC | WORD_LINE, **BUS, **SMALL, own=ALL, cycles=1_000, retry="pipelined", steps=6
    ),
    "quick steps, pipelined": Config(
        **SLC, byte_ns=9.5, limit=2.0, own=ALL, cycles=900, retry="pipelined", retry_time=20_011, logical=2
    ),
    "all, sentinel": Config(
        **SLC, **BUS, **SMALL, own=ALL, cycles=5_000, retry="sentinel", retry_time=71_003, depth=2, steps=5
    ),
    "mlc": Config(
        **SLC | {"cell": "mlc", "read": (40_009, 65_027), "order": "shadow"},
        **BUS,
        process="mlc-2y-nm",
        cycles=5_000,
        age=3_200 * HOUR,
        filled=True,
    ),
    "tlc": Config(**TLC, **BUS, process="tlc-72-layer", limit=16.0, cycles=1_000, logical=4, retry="last"),
    "tlc, old": Config(
        **TLC, process="tlc-72-layer", cycles=5_000, age=24 * 365 * HOUR, filled=True, gain=1.3, steps=3
    ),
    "new": Config(**TLC, **BUS, process="tlc-72-layer", limit=12.13, scheduler="noop", depth=8),
    "half of the bits": Config(
        **SLC, **BUS, own=(("wear", 0.1), ("a", 0.2), ("disturb", 0.5)), limit=1_000.0, gain=1.7, steps=4
    ),
}


def pages_of(draw: random.Random) -> int:
    """Draws the number of pages of a request."""
    return draw.choice([1, 1, 1, 1, 1, 1, 2, 3])


def in_order(config: Config, count: int) -> list[Request]:
    """Returns writes that fill the device in order, then reads at random."""
    draw, first, now, rows = random.Random(5), 0, 0, []
    while first < config.pages() and len(rows) < count // 2:
        pages = min(pages_of(draw), config.pages() - first)
        rows.append((now, "W", first, pages))
        now, first = now + 900_001, first + pages
    while len(rows) < count:
        pages = pages_of(draw)
        now += int(draw.expovariate(1 / 400_000))
        rows.append((now, "R", draw.randrange(config.pages() - pages + 1), pages))
    return rows


def mixed(
    config: Config,
    count: int,
    gap_ns: float,
    seed: int = 7,
    shares: Sequence[int] = (45, 45, 4, 2, 4),
    space: int | None = None,
) -> list[Request]:
    """Returns reads, writes, writes with FUA, flushes and trims at random times and places."""
    draw, now, rows = random.Random(seed), 0, []
    space = space or config.pages()
    for _ in range(count):
        now += int(draw.expovariate(1 / gap_ns)) + 1
        op = draw.choices(["R", "W", "WF", "F", "T"], shares)[0]
        pages = min(pages_of(draw), space)
        first = draw.randrange(space - pages + 1)
        rows.append((now, op, *((0, 0) if op == "F" else (first, pages))))
    return rows


def overwrites(config: Config, count: int) -> list[Request]:
    """Returns writes at random with reads between them."""
    return mixed(config, count, 2_500_000)


def old_data(config: Config, count: int) -> list[Request]:
    """Returns reads, and few writes, an hour apart on average."""
    return mixed(config, count, HOUR, shares=(85, 11, 2, 1, 1))


LOADS: dict[str, Callable[[Config, int], list[Request]]] = {
    "in order": in_order,
    "overwrites": overwrites,
    "old data": old_data,
}
FAILED = 2**64 - 1
"""What ftlab has in place of the time at which a request that failed was completed."""
KINDS = ["reads", "programs", "erases"]


def found_by_ftlab(config: Config, requests: Sequence[Request], check: bool = False) -> dict[str, object]:
    """Returns ftlab's values: when each request completed, what reads met, and the figures of the flash."""
    size = config.page
    trace = [(at, op, first * size, pages * size) for at, op, first, pages in requests]
    result = engine.result_of(config.settings(), trace, check)
    columns = [result.column(name).tolist() for name in ["id", "complete_ns"]]
    done = [None if at == FAILED else at for _, at in sorted(zip(*columns, strict=True))]
    values = result.to_dict()
    met, health = values["errors"], values["health"]
    return {
        **{f"request {number}": at for number, at in enumerate(done)},
        **{f"step {step}": n for step, n in enumerate(met["steps"]) if n},
        **{name: met[name] for name in ["retries", "retried_reads", "failed_reads", "refreshed_blocks"]},
        "media_errors": health["media_errors"],
        "failed requests": health["failed"]["reads"],
        **{f"{kind} {cause}": n for kind in KINDS for cause, n in values["flash"][kind].items() if n},
        "busy": sum(values["flash"]["busy_ns"].values()),
    }


def wanted_by_oracle(
    config: Config, requests: Sequence[Request], mapping: type[Mapping] = Mapping
) -> dict[str, object]:
    """Returns the oracle's values for the same."""
    outcome, met = errors.run(config, requests, mapping)
    counts = [outcome.reads, outcome.programs, outcome.erases]
    done: list[int | None] = [*outcome.done]
    for number in met.requests:
        done[number] = None
    return {
        **{f"request {number}": at for number, at in enumerate(done)},
        **{f"step {step}": n for step, n in sorted(met.steps.items())},
        "retries": met.retries,
        "retried_reads": met.retried,
        "failed_reads": met.failed,
        "refreshed_blocks": 0,
        "media_errors": met.failed,
        "failed requests": len(met.requests),
        **{
            f"{kind} {cause}": n
            for kind, by_cause in zip(KINDS, counts, strict=True)
            for cause, n in by_cause.items()
            if n
        },
        "busy": outcome.busy.total(),
    }


def differences(
    config: Config, requests: Sequence[Request], check: bool = False
) -> list[tuple[str, object, object]]:
    """Returns what differs, with ftlab's value and the oracle's."""
    found, wanted = found_by_ftlab(config, requests, check), wanted_by_oracle(config, requests)
    return [
        (name, found.get(name), wanted.get(name))
        for name in {**wanted, **found}
        if found.get(name) != wanted.get(name)
    ]


@pytest.mark.parametrize("load", LOADS)
@pytest.mark.parametrize("name", DEVICES)
def test_every_request_is_the_oracles(name: str, load: str) -> None:
    """ftlab and the oracle agree on 10,000 requests."""
    config = DEVICES[name]
    assert not differences(config, LOADS[load](config, 10_000))[:5]
