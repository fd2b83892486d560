"""Compares the SLC cache with a second implementation, by counts and request by request.

``FTLAB_CAMPAIGN=N`` runs further random devices, up to the next multiple of N (see campaign.py).
"""

from __future__ import annotations

import functools
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from typing import Any

import pytest

import campaign
from oracle import engine, slc
from oracle.cells import CELLS
from oracle.events import Request
from oracle.slc import CACHE, DATA, Block, Config, Device, Lun, Mapping, Outcome, Work

pytestmark = pytest.mark.skipif(not engine.available(), reason=engine.SKIP_REASON)

TLC: dict[str, Any] = {
    "cell": "tlc",
    "read": (56_003, 77_011, 106_019),
    "program": (450_007, 1_310_021, 2_050_033),
    "slc_read": 30_001,
    "slc_program": 200_003,
    "slc_erase": 900_007,
    "block_pages": 24,
    "blocks": 40,
}
WORD_LINE: dict[str, Any] = {"programming": "word-line", "program": (1_730_009,)}
QLC: dict[str, Any] = {"cell": "qlc", "read": (70_001, 90_003, 120_011, 160_033), "program": (2_100_077,)}
BUS: dict[str, Any] = {"byte_ns": 0.83, "command": 211}
PART = 24 * 4096 // 3
"""Bytes of a block of ``TLC`` in SLC mode."""
DEVICES = {
    "fixed": Config(**TLC, fixed=4 * PART),
    "fixed-direct": Config(**TLC, **BUS, fixed=4 * PART, full="direct"),
    "dynamic": Config(**TLC | {"block_pages": 25}, dynamic=True, order="shadow"),
    "dynamic-direct": Config(**TLC, **BUS, dynamic=True, full="direct", filled=True),
    "both": Config(**TLC, **BUS, fixed=3 * PART + 1, dynamic=True, dynamic_most=5 * PART, depth=4, reserve=2),
    "word-line": Config(**TLC | WORD_LINE | BUS, fixed=4 * PART),
    "word-line-direct": Config(**TLC | WORD_LINE, logical=2, fixed=8 * PART, full="direct"),
    "quarters": Config(**TLC, **BUS, logical=4, dynamic=True),
    "cells-times": Config(**QLC, blocks=48, block_pages=16, fixed=2 * 16 * 1024, idle=None),
    "four": Config(**TLC, **BUS, fixed=8 * PART, channels=2, ways=2, scheduler="noop", depth=8),
    "four-word-line": Config(
        **TLC | WORD_LINE | BUS, fixed=8 * PART, dynamic=True, spare=60, channels=2, ways=2
    ),
    "three-halves": Config(**TLC, **BUS, logical=2, fixed=9 * PART, spare=60, ways=3, full="direct"),
}


def pages_of(draw: random.Random) -> int:
    """Draws the number of pages of a request."""
    return draw.choice([1, 1, 1, 2, 4, 8])


def in_order(config: Config, count: int) -> list[Request]:
    """Returns writes that fill the device in order, then once more, and so on."""
    draw, first, rows = random.Random(5), 0, []
    for number in range(count):
        pages = min(pages_of(draw), config.pages() - first)
        rows.append((number * 300_000, "W", first, pages))
        first = (first + pages) % config.pages()
    return rows


def mixed(
    config: Config,
    count: int,
    gap_ns: float,
    seed: int = 7,
    shares: Sequence[int] = (45, 45, 4, 2, 4),
    pauses: float = 0,
    space: int | None = None,
) -> list[Request]:
    """Returns reads, writes, writes with FUA, flushes and trims at random times and places. A share of them
    comes after a pause.
    """
    draw, now, rows = random.Random(seed), 0, []
    space = space or config.pages()
    for _ in range(count):
        now += int(draw.expovariate(1 / gap_ns)) + 1 + int(40 * gap_ns) * (draw.random() < pauses)
        op = draw.choices(["R", "W", "WF", "F", "T"], shares)[0]
        pages = min(pages_of(draw), space)
        first = draw.randrange(space - pages + 1)
        rows.append((now, op, *((0, 0) if op == "F" else (first, pages))))
    return rows


def overwrites(config: Config, count: int) -> list[Request]:
    return mixed(config, count, 1_000_000, shares=(0, 1, 0, 0, 0))


def with_pauses(config: Config, count: int) -> list[Request]:
    return mixed(config, count, 30_000_000, pauses=0.05)


LOADS: dict[str, Callable[[Config, int], list[Request]]] = {
    "in order": in_order,
    "overwrites": overwrites,
    "with pauses": with_pauses,
}


def found_by_ftlab(config: Config, requests: Sequence[Request], check: bool = False) -> dict[str, object]:
    """Returns ftlab's values: when each request completed, and the figures of the flash."""
    size = config.page
    trace = [(at, op, first * size, pages * size) for at, op, first, pages in requests]
    result = engine.result_of(config.settings(), trace, check)
    columns = [result.column(name).tolist() for name in ["id", "complete_ns"]]
    done = [at for _, at in sorted(zip(*columns, strict=True))]
    values = result.to_dict()
    flash, waf, times = values["flash"], values["waf"], values["flash"]["program_time"]
    return {
        **{f"request {number}": at for number, at in enumerate(done)},
        **{f"{kind} {cause}": n for kind in KINDS for cause, n in flash[kind].items() if n},
        **{
            f"{front['name']} {part}": front[part]
            for front in values["placement"]["fronts"]
            for part in ["written", "moved"]
        },
        "program_time count": times["count"],
        "program_time min_ns": times["min_ns"],
        "program_time max_ns": times["max_ns"],
        "program_time mean_ns": round(times["mean_ns"], 3),
        **({"busy": sum(flash["busy_ns"].values())} if config.luns == 1 else {}),
        **{f"waf {part}": round(share, 9) for part, share in waf.items() if share},
    }


KINDS = ["reads", "programs", "erases"]


def wanted_by_oracle(
    config: Config,
    requests: Sequence[Request],
    mapping: type[Mapping] = Mapping,
    device: type[Device] = Device,
) -> dict[str, object]:
    """Returns the oracle's values for the same."""
    outcome = slc.run(config, requests, mapping, device)
    times, programs, written = outcome.times, outcome.programs, outcome.written.total()
    parts = {"total": programs.total(), **{part: programs[part] for part in ["gc", "pad", "fold"]}}
    counts = [outcome.reads, programs, outcome.erases]
    return {
        **{f"request {number}": at for number, at in enumerate(outcome.done)},
        **{
            f"{kind} {cause}": n
            for kind, by_cause in zip(KINDS, counts, strict=True)
            for cause, n in by_cause.items()
            if n
        },
        **{f"{front} written": outcome.written[front] for front in [DATA, CACHE]},
        **{f"{front} moved": outcome.moved[front] for front in [DATA, CACHE]},
        "program_time count": times.total(),
        "program_time min_ns": min(times, default=0),
        "program_time max_ns": max(times, default=0),
        "program_time mean_ns": round(sum(ns * n for ns, n in times.items()) / max(times.total(), 1), 3),
        **({"busy": outcome.busy.total()} if config.luns == 1 else {}),
        **{f"waf {part}": round(n * config.logical / written, 9) for part, n in parts.items() if n},
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


@dataclass
class Case:
    """A case worked out by hand."""

    config: Config
    requests: list[Request]
    done: list[int]
    fold: tuple[int, int, int] = (0, 0, 0)
    """Reads, programs and erases of cause fold."""
    written: tuple[int, int] = (0, 0)
    """Pages that the host wrote to blocks of all bits, and to the cache."""


SMALL: dict[str, Any] = {
    "cell": "tlc",
    "read": (10, 20, 30),
    "program": (100, 200, 400),
    "erase": 1000,
    "slc_read": 5,
    "slc_program": 50,
    "slc_erase": 700,
    "block_pages": 6,
    "blocks": 16,
}
ONE_BLOCK: dict[str, Any] = {**SMALL, "fixed": 2 * 4096}
"""A cache of one block, of two pages."""


def one_by_one(lpns: Sequence[int], start: int = 0) -> list[Request]:
    """Returns writes of one page each, 10 us apart."""
    return [(start + number * 10_000, "W", lpn, 1) for number, lpn in enumerate(lpns)]


CASES = {
    # A fold reads two pages (5 each), programs them as types 0 1, then 2 0, and erases.
    "a full cache is folded": Case(
        Config(**ONE_BLOCK),
        one_by_one(range(5)),
        [50, 10_050, 20_000 + 10 + 300 + 700 + 50, 30_050, 40_000 + 10 + 500 + 700 + 50],
        fold=(4, 4, 2),
        written=(0, 5),
    ),
    "a full cache is passed by": Case(
        Config(**ONE_BLOCK, full="direct"),
        one_by_one(range(5)),
        [50, 10_050, 20_100, 30_200, 40_400],
        written=(3, 2),
    ),
    # Two blocks on each of two LUNs, rounded up from three and a bit.
    "the fixed part is rounded up on each LUN": Case(
        Config(**SMALL, fixed=6 * 4096 + 1, channels=2, full="direct"),
        one_by_one(range(9)),
        [*(number * 10_000 + 50 for number in range(8)), 80_100],
        written=(1, 8),
    ),
    # A block of seven pages has three word lines, the last with one page: three pages in SLC mode.
    "a word line with fewer pages counts": Case(
        Config(**SMALL | {"block_pages": 7}, fixed=3 * 4096, full="direct"),
        one_by_one(range(4)),
        [50, 10_050, 20_050, 30_100],
        written=(1, 3),
    ),
    "what was overwritten or trimmed is not copied": Case(
        Config(**ONE_BLOCK),
        [*one_by_one([0, 0, 1]), (25_000, "T", 1, 1), (30_000, "W", 2, 1), (40_000, "W", 3, 1)],
        [50, 10_050, 20_000 + 5 + 100 + 700 + 50, 25_000, 30_050, 40_000 + 5 + 200 + 700 + 50],
        fold=(2, 2, 2),
        written=(0, 5),
    ),
    # Folding begins at 10,050 + 5,000 and takes 10 + 300 + 700. Page 0 is then of the lowest type, page 1 of
    # the middle one.
    "an idle device folds, and a request waits for the fold": Case(
        Config(**ONE_BLOCK, idle=5_000),
        [*one_by_one([0, 1]), (15_100, "R", 0, 1), (30_000, "R", 1, 1), (40_000, "W", 2, 1)],
        [50, 10_050, 16_070, 30_020, 40_050],
        fold=(2, 2, 1),
        written=(0, 3),
    ),
    "without further requests nothing is folded": Case(
        Config(**ONE_BLOCK, idle=5_000), one_by_one([0, 1]), [50, 10_050], written=(0, 2)
    ),
    # The trim at 12,000 completes when it comes, so folding begins at 15,050 all the same.
    "a request that takes no time does not end idleness": Case(
        Config(**ONE_BLOCK, idle=5_000),
        [*one_by_one([0, 1]), (12_000, "T", 5, 1), (15_100, "R", 0, 1)],
        [50, 10_050, 12_000, 16_070],
        fold=(2, 2, 1),
        written=(0, 2),
    ),
    "a block that has room is not folded in idle time": Case(
        Config(**ONE_BLOCK, idle=5_000), one_by_one([0], 0) + one_by_one([1], 90_000), [50, 90_050], written=(0, 2)
    ),
    # The pages of the cache are programmed by themselves. The fold fills two pages of a word line, and its
    # program has three.
    "a fold pads its last word line": Case(
        Config(**ONE_BLOCK | {"program": (500,)}, programming="word-line"),
        one_by_one(range(3)),
        [50, 10_050, 20_000 + 10 + 500 + 700 + 50],
        fold=(2, 3, 1),
        written=(0, 3),
    ),
    # Without a time of its own the cache takes that of the lowest type, and flash.erase.
    "times of the cell": Case(
        Config(**ONE_BLOCK | {"slc_read": None, "slc_program": None, "slc_erase": None}),
        [*one_by_one(range(2)), (20_000, "R", 1, 1), (30_000, "W", 2, 1)],
        [100, 10_100, 20_010, 30_000 + 20 + 300 + 1000 + 100],
        fold=(2, 2, 1),
        written=(0, 3),
    ),
    "the cache is empty at time 0": Case(
        Config(**ONE_BLOCK, filled=True, full="direct"),
        one_by_one(range(3)),
        [50, 10_050, 20_100],
        written=(1, 2),
    ),
    # Page 0 of four blocks of two in the dynamic cache; all that is erased but the reserve serves.
    "a dynamic cache takes what is erased": Case(
        Config(**SMALL | {"blocks": 10}, dynamic=True, full="direct"),
        one_by_one(range(19)),
        [*(number * 10_000 + 50 for number in range(18)), 180_000 + 10 + 300 + 700 + 400],
        fold=(2, 2, 1),
        written=(1, 18),
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_cases_worked_out_by_hand(name: str) -> None:
    case = CASES[name]
    outcome = slc.run(case.config, case.requests)
    assert outcome.done == case.done
    assert (outcome.reads["fold"], outcome.programs["fold"], outcome.erases["fold"]) == case.fold
    assert (outcome.written[DATA], outcome.written[CACHE]) == case.written
    assert not differences(case.config, case.requests, check=True)


@pytest.mark.parametrize("load", LOADS)
@pytest.mark.parametrize("name", DEVICES)
def test_every_request_is_the_oracles(name: str, load: str) -> None:
    """ftlab and the oracle agree on 10,000 requests."""
    config = DEVICES[name]
    assert not differences(config, LOADS[load](config, 10_000))[:5]
