"""Compares flash whose cells hold several bits with a second implementation, request by request.

``FTLAB_CAMPAIGN=N`` runs further random devices, up to the next multiple of N (see campaign.py).
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import pytest

import campaign
from oracle import cells, engine
from oracle.cells import Config
from oracle.events import Request

pytestmark = pytest.mark.skipif(not engine.available(), reason=engine.SKIP_REASON)

TLC: dict[str, Any] = {
    "cell": "tlc",
    "read": (56_003, 77_011, 106_019),
    "program": (450_007, 1_310_021, 2_050_033),
}
MLC: dict[str, Any] = {"cell": "mlc", "read": (40_009, 65_027), "program": (380_041, 1_450_057)}
QLC: dict[str, Any] = {"cell": "qlc", "read": (70_001, 90_003, 120_011, 160_033), "program": (2_100_077,)}
BUS: dict[str, Any] = {"byte_ns": 0.83, "command": 211}
SHADOW: dict[str, Any] = {"order": "shadow"}
WORD_LINE: dict[str, Any] = {"programming": "word-line"}
DEVICES = {
    "slc": Config(),
    "slc-quarters": Config(**BUS, logical=4, channels=2),
    "mlc": Config(**MLC),
    "mlc-shadow": Config(**MLC, **SHADOW, **BUS, ways=3),
    "mlc-word-line": Config(**MLC | WORD_LINE | BUS | {"program": (900_019,)}, channels=2, ways=2),
    "tlc": Config(**TLC, **BUS, depth=8),
    "tlc-noop": Config(**TLC, **BUS, scheduler="noop"),
    "tlc-shadow": Config(**TLC, **SHADOW, block_pages=13, logical=2, channels=3),
    "tlc-shadow-quarters": Config(**TLC, **SHADOW, **BUS, block_pages=16, logical=4, ways=4, depth=32),
    "tlc-word-line": Config(**TLC | WORD_LINE | BUS | {"program": (1_730_009,)}),
    "tlc-word-line-halves": Config(**TLC | WORD_LINE | BUS | {"program": (1_730_009,)}, logical=2, ways=3),
    "qlc": Config(**QLC, **BUS, logical=2, depth=1),
    "qlc-shadow": Config(**QLC, **SHADOW, block_pages=64, channels=2, depth=3),
    "qlc-word-line": Config(**QLC, **WORD_LINE, **BUS, logical=4, channels=2, ways=2, depth=16),
    "qlc-word-line-noop": Config(**QLC, **WORD_LINE, **BUS, scheduler="noop", depth=2),
}
OPS = ["R", "W", "WF", "F"]


def load(
    seed: int,
    count: int,
    gap_ns: float,
    spaces: Sequence[int] = (6, 40, 1000),
    shares: Sequence[int] = (50, 44, 4, 2),
    step_ns: int = 1,
) -> list[Request]:
    """Returns requests of one to eight pages at random times, which are multiples of a step. Each begins
    within the first pages of the device; how many these are is drawn from ``spaces``.
    """
    draw = random.Random(seed)
    now, requests = 0, []
    for _ in range(count):
        now += int(draw.expovariate(1 / gap_ns)) + 1
        op = draw.choices(OPS, shares)[0]
        pages, first = draw.choice([1, 1, 1, 2, 4, 8]), draw.randrange(draw.choice(spaces))
        requests.append((now // step_ns * step_ns, op, *((0, 0) if op == "F" else (first, pages))))
    return requests


def work_ns(config: Config, requests: Sequence[Request]) -> float:
    """Returns the mean time that a request takes the flash, ns, if the chips share it evenly."""
    return cells.run(config, requests).busy / len(requests) / (config.channels * config.ways)


def found_by_ftlab(config: Config, requests: Sequence[Request]) -> dict[str, object]:
    """Returns ftlab's values: when each request completed, and the figures of the flash."""
    size = config.page
    trace = [(at, op, first * size, pages * size) for at, op, first, pages in requests]
    result = engine.result_of(config.settings(), trace)
    columns = [result.column(name).tolist() for name in ["id", "complete_ns"]]
    done = [at for _, at in sorted(zip(*columns, strict=True))]
    values = result.to_dict()
    flash, waf = values["flash"], values["waf"]
    times = flash["program_time"]
    return {
        **{f"request {number}": at for number, at in enumerate(done)},
        **{f"{kind} {cause}": n for kind in ["reads", "programs"] for cause, n in flash[kind].items() if n},
        "erases": sum(flash["erases"].values()),
        "busy": sum(flash["busy_ns"].values()),
        **{f"program_time {name}": times[name] for name in ["count", "min_ns", "max_ns"]},
        "program_time mean_ns": round(times["mean_ns"], 3),
        **{f"waf {part}": None if waf[part] is None else round(waf[part], 9) for part in waf},
    }


def wanted_by_oracle(config: Config, requests: Sequence[Request]) -> dict[str, object]:
    """Returns the oracle's values for the same."""
    outcome = cells.run(config, requests)
    programs, times, written = +outcome.programs, outcome.times, outcome.written
    share = {"total": programs.total(), "pad": programs["pad"]}
    return {
        **{f"request {number}": at for number, at in enumerate(outcome.done)},
        **({"reads host": outcome.reads} if outcome.reads else {}),
        **{f"programs {cause}": n for cause, n in programs.items()},
        "erases": 0,
        "busy": outcome.busy,
        "program_time count": len(times),
        "program_time min_ns": min(times, default=0),
        "program_time max_ns": max(times, default=0),
        "program_time mean_ns": round(sum(times) / len(times), 3) if times else 0,
        **{
            f"waf {part}": round(share.get(part, 0) * config.logical / written, 9) if written else None
            for part in ["total", "gc", "map", "merge", "pad"]
        },
    }


def differences(config: Config, requests: Sequence[Request]) -> list[tuple[str, object, object]]:
    """Returns what differs, with ftlab's value and the oracle's."""
    found, wanted = found_by_ftlab(config, requests), wanted_by_oracle(config, requests)
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
    reads: int = 0
    programs: tuple[int, int] = (0, 0)
    """Those of cause host, and of cause pad."""


SMALL_TLC: dict[str, Any] = {"cell": "tlc", "read": (10, 20, 30), "program": (100, 200, 400)}
SMALL_MLC: dict[str, Any] = {"cell": "mlc", "read": (10, 20), "program": (100, 200)}
AT_ONCE: dict[str, Any] = {"cell": "tlc", "read": (10, 20, 30), "program": (500,), "programming": "word-line"}


def in_order(op: str, pages: int, gap: int = 0, start: int = 0) -> list[Request]:
    """Returns requests for the first pages, one after another."""
    return [(start + page * gap, op, page, 1) for page in range(pages)]


CASES = {
    # The types of a block's pages are 0 1 2 0 1 2.
    "word-line order": Case(
        Config(**SMALL_TLC, block_pages=6),
        [*in_order("W", 7), *in_order("R", 7, 1000, 10_000)],
        [100, 300, 700, 800, 1000, 1400, 1500, 10_010, 11_020, 12_030, 13_010, 14_020, 15_030, 16_010],
        reads=7,
        programs=(7, 0),
    ),
    # L0 L1 M0 L2 M1 L3 M2 M3, then the next block's L0.
    "shadow order of two types": Case(
        Config(**SMALL_MLC, order="shadow", block_pages=8),
        [*in_order("W", 9), *in_order("R", 9, 1000, 10_000)],
        [
            *(100, 200, 400, 500, 700, 800, 1000, 1200, 1300),
            *(10_010, 11_010, 12_020, 13_010, 14_020, 15_010, 16_020, 17_020, 18_010),
        ],
        reads=9,
        programs=(9, 0),
    ),
    # L0 L1 M0 L2 M1 U0 M2 U1 U2.
    "shadow order of three types": Case(
        Config(**SMALL_TLC, order="shadow", block_pages=9),
        in_order("W", 9),
        [100, 200, 400, 500, 700, 1100, 1300, 1700, 2100],
        programs=(9, 0),
    ),
    # L0 L1 M0 L2 M1 U0 U1: word line 2 has a lower page only. Then the next block's L0.
    "shadow order, a short last word line": Case(
        Config(**SMALL_TLC, order="shadow", block_pages=7),
        in_order("W", 8),
        [100, 200, 400, 500, 700, 1100, 1500, 1600],
        programs=(8, 0),
    ),
    "a page never written is of the lowest type": Case(
        Config(**SMALL_TLC), [(0, "R", 5, 1), (100, "R", 2, 2)], [10, 120], reads=3
    ),
    # Pages 2 and 3 lie in one NAND page of chip 1, page 4 in one of chip 0.
    "pages never written lie round the chips": Case(
        Config(**SMALL_TLC, channels=2, logical=2, byte_ns=0.33),
        [(0, "R", 2, 3), (5000, "R", 2, 1), (5000, "R", 3, 1)],
        [10 + 2703, 5000 + 10 + 1352, 5000 + 2 * (10 + 1352)],
        reads=4,
    ),
    # Pages 0 to 2 count as if they lay on chip 0, 3 to 5 on chip 1.
    "pages never written lie round the chips by word lines": Case(
        Config(**AT_ONCE, channels=2), [(0, "R", 0, 5), (100, "R", 3, 2)], [30, 120], reads=7
    ),
    # Commands take 7 ns, the data of a page 4,096 ns. The last request waits for one program of three pages.
    "a word line at once": Case(
        Config(**AT_ONCE, byte_ns=1.0, command=7),
        in_order("W", 3, 10),
        [0, 10, 20 + 7 + 3 * 4096 + 500],
        programs=(3, 0),
    ),
    "a flush pads a word line": Case(
        Config(**AT_ONCE, byte_ns=1.0, command=7),
        [(0, "W", 0, 1), (10, "F", 0, 0), (20, "F", 0, 0), (30_000, "R", 0, 1)],
        [0, 12_805, 12_805, 34_113],
        reads=1,
        programs=(1, 2),
    ),
    # The first page of the request fills the word line; the other page is padded at once.
    "a write with FUA pads a word line": Case(
        Config(**AT_ONCE), [(0, "W", 0, 2), (10, "WF", 2, 2)], [0, 1010], programs=(4, 2)
    ),
    "a write with FUA that fills a word line pads nothing": Case(
        Config(**AT_ONCE),
        [(0, "W", 0, 2), (10, "WF", 2, 1), (600, "F", 0, 0)],
        [0, 510, 600],
        programs=(3, 0),
    ),
    # Page 0 was written again, so its first version, of the lower type, counts no more.
    "what waits is read from RAM": Case(
        Config(**AT_ONCE),
        [
            (0, "W", 0, 1),
            (10, "R", 0, 1),
            (20, "W", 1, 1),
            (30, "W", 0, 1),
            (40, "R", 0, 2),
            (600, "R", 0, 2),
        ],
        [0, 10, 20, 530, 580, 650],
        reads=4,
        programs=(3, 0),
    ),
    "what is programmed at once has no order of types": Case(
        Config(**AT_ONCE, order="shadow"),
        [(0, "W", 0, 6), *in_order("R", 6, 1000, 10_000)],
        [1000, 10_010, 11_020, 12_030, 13_010, 14_020, 15_030],
        reads=6,
        programs=(6, 0),
    ),
    # Pages 0 to 2 on chip 0, 3 to 5 on chip 1, 6 to 8 on chip 0. Then the pages of the first two are read at
    # the same time.
    "chips take turns by word lines": Case(
        Config(**AT_ONCE, channels=2),
        [(0, "W", 0, 9), (2000, "R", 0, 6)],
        [1000, 2060],
        reads=6,
        programs=(9, 0),
    ),
    "chips take turns by NAND pages": Case(
        Config(**SMALL_TLC, channels=2, logical=2),
        [(0, "W", 0, 5), (1000, "F", 0, 0), (2000, "R", 0, 4)],
        [100, 1200, 2010],
        reads=2,
        programs=(2, 1),
    ),
    # One read of two logical pages, whose data take 8,192 ns, and one of one page. Chip and bus do one thing
    # at a time.
    "pages of one NAND page are read at once": Case(
        Config(**SMALL_TLC, logical=2, byte_ns=1.0),
        [(0, "W", 0, 4), (50_000, "R", 0, 3)],
        [2 * 8192 + 300, 50_000 + 10 + 8192 + 20 + 4096],
        reads=2,
        programs=(2, 0),
    ),
    # The flush waits for the read; the second read came later, so it follows.
    "a flush waits, and lets nothing pass": Case(
        Config(**SMALL_TLC, logical=2),
        [(0, "W", 0, 1), (10, "R", 9, 1), (12, "F", 0, 0), (15, "R", 8, 1)],
        [0, 20, 120, 130],
        reads=2,
        programs=(0, 1),
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_cases_worked_out_by_hand(name: str) -> None:
    case = CASES[name]
    outcome = cells.run(case.config, case.requests)
    assert (outcome.done, outcome.reads) == (case.done, case.reads)
    assert (outcome.programs["host"], outcome.programs["pad"]) == case.programs
    assert not differences(case.config, case.requests)


@pytest.mark.parametrize("share", [0.2, 0.9, 1.5])
@pytest.mark.parametrize("name", DEVICES)
def test_every_request_is_the_oracles(name: str, share: float) -> None:
    """At each load, a share of what the chips can do, ftlab and the oracle agree on 10,000 requests."""
    config = DEVICES[name]
    gap = work_ns(config, load(7, 10_000, 1)) / share
    assert not differences(config, load(7, 10_000, gap))[:5]


def test_the_loads_have_all_that_cells_do() -> None:
    """In the loads of these tests, pages are padded, some reads need no flash, and one read has several
    logical pages.
    """
    config = DEVICES["tlc-word-line-halves"]
    requests = load(7, 10_000, work_ns(config, load(7, 10_000, 1)) / 0.9)
    outcome = cells.run(config, requests)
    assert min(outcome.programs.values()) > 500
    assert outcome.reads < sum(pages for _, op, _, pages in requests if op == "R")
    at_once = [op for (at, op, *_), done in zip(requests, outcome.done, strict=True) if at == done]
    assert min(Counter(at_once)[op] for op in "RW") > 30


@pytest.mark.parametrize("programming", ["page", "word-line"])
@pytest.mark.parametrize("share", [0.9, 1.5])
def test_what_is_due_at_the_same_time_has_an_order(share: float, programming: str) -> None:
    """ftlab and the oracle agree on the order of events that are due at the same time, of which there are
    many, since all times are whole microseconds.
    """
    config = Config(
        cell="tlc",
        read=(2_000, 3_000, 5_000),
        program=(9_000,),
        programming=programming,
        page=4_000,
        logical=2,
        channels=2,
        ways=3,
        byte_ns=0.25,
        command=1_000,
    )
    gap = work_ns(config, load(11, 10_000, 1)) / share
    assert not differences(config, load(11, 10_000, gap, step_ns=1_000))[:5]


def random_case(seed: int) -> tuple[Config, list[Request]]:
    """Returns a random device, and 300 requests for it; times are whole microseconds on every other one."""
    draw = random.Random(seed)
    step = [1, 1_000][seed % 2]
    cell = draw.choice(list(cells.CELLS))
    bits = cells.CELLS[cell]

    def times(most_us: int, count: int) -> tuple[int, ...]:
        return tuple(
            draw.randrange(1, most_us + 1) * 1_000 + draw.randrange(1_000) // step for _ in range(count)
        )

    programming = draw.choice(["page", "word-line"])
    at_once = programming == "word-line"
    block_pages = draw.choice([bits, 4 * bits, 16 * bits]) + (0 if at_once else draw.choice([0, 0, 1, 2]))
    config = Config(
        cell=cell,
        read=times(80, draw.choice([1, bits])),
        program=times(draw.choice([20, 900]), 1 if at_once else draw.choice([1, bits])),
        order=draw.choice(["word-line", "shadow"]),
        programming=programming,
        page=4_096 if step == 1 else 4_000,
        logical=draw.choice([1, 1, 2, 4]),
        block_pages=max(block_pages, 2),
        channels=draw.choice([1, 1, 2, 3]),
        ways=draw.choice([1, 1, 2, 4]),
        byte_ns=draw.choice([0.0, 0.25, 1.0, 0.83, 10.0]),
        command=draw.choice([0, 1_000, 211]),
        depth=draw.choice([None, 1, 2, 5, 32]),
        scheduler=draw.choice(["direct", "direct", "noop"]),
    )
    shares = draw.choice([(50, 44, 4, 2), (10, 60, 10, 20), (30, 70, 0, 0), (1, 1, 1, 1), (80, 20, 0, 0)])
    spaces = [draw.choice([6, 20, 100])]
    gap = work_ns(config, load(seed, 300, 1, spaces, shares)) / draw.choice([0.2, 0.8, 1.2, 3])
    return config, load(seed, 300, max(gap, 1), spaces, shares, step)


def test_random_devices() -> None:
    """On random devices, ftlab and the oracle agree on 300 requests each."""
    for seed in campaign.cases("cells", range(120)):
        config, requests = random_case(seed)
        found = differences(config, requests)
        assert not found, (seed, config, found[:5])


def test_the_comparison_would_notice_another_device() -> None:
    """Other readings of cells lead to other times."""
    requests = load(3, 500, 2_000_000)
    ours = found_by_ftlab(DEVICES["tlc-shadow-quarters"], requests)
    config = DEVICES["tlc-shadow-quarters"]
    for other in [
        replace(config, order="word-line"),
        replace(config, read=(56_003, 106_019, 77_011)),
        replace(config, block_pages=17),
    ]:
        assert wanted_by_oracle(other, requests) != ours
