"""Compares the SLC cache with a second implementation, by counts and request by request.

``FTLAB_CAMPAIGN=N`` runs further random devices, up to the next multiple of N (see campaign.py).
"""

from __future__ import annotations

import functools
import random
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from typing import Any

import pytest

import campaign
from oracle import engine, slc
from oracle.cells import CELLS, Work
from oracle.events import Request
from oracle.slc import CACHE, DATA, Block, Config, Device, Lun, Mapping

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
    "dynamic": Config(**TLC | {"block_pages": 25}, dynamic=True, order="shadow"),
    "dynamic-direct": Config(**TLC, **BUS, dynamic=True, full="direct", filled=True),
    "both": Config(**TLC, **BUS, fixed=3 * PART + 1, dynamic=True, dynamic_most=5 * PART, depth=4, reserve=2),
    "word-line": Config(**TLC | WORD_LINE | BUS, fixed=4 * PART),
    "quarters": Config(**TLC, **BUS, logical=4, dynamic=True),
    "four": Config(**TLC, **BUS, fixed=8 * PART, channels=2, ways=2, scheduler="noop", depth=8),
    "four-word-line": Config(
        **TLC | WORD_LINE | BUS, fixed=8 * PART, dynamic=True, spare=60, channels=2, ways=2
    ),
    "three-halves": Config(**TLC, **BUS, logical=2, fixed=9 * PART, spare=60, ways=3, full="direct"),
}
if campaign.long():
    DEVICES |= {
        "fixed-direct": Config(**TLC, **BUS, fixed=4 * PART, full="direct"),
        "word-line-direct": Config(**TLC | WORD_LINE, logical=2, fixed=8 * PART, full="direct"),
        "cells-times": Config(**QLC, blocks=48, block_pages=16, fixed=2 * 16 * 1024, idle=None),
    }


def pages_of(draw: random.Random) -> int:
    """Draws the number of pages of a request."""
    return draw.choice([1, 1, 1, 1, 2, 5])


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
        Config(**ONE_BLOCK, idle=5_000),
        one_by_one([0], 0) + one_by_one([1], 90_000),
        [50, 90_050],
        written=(0, 2),
    ),
    # The pages of the cache are programmed by themselves. The fold fills two pages of a word line, and its
    # program has three.
    "a fold pads its last word line": Case(
        Config(**ONE_BLOCK | {"program": (500,)}, programming="word-line", spare=60),
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
    # Nine blocks, all but the reserve, come to hold two pages each. Then a block of all bits is needed: the
    # oldest cached block is folded, into the reserve's block, which has room for the write behind its copies.
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


def test_the_loads_have_all_that_a_cache_does() -> None:
    """In the loads of these tests the cache is folded when it is full, when the device is idle, and for
    blocks of all bits. It is passed by, and its blocks come back from garbage collection.
    """
    rare, causes, written = Counter[str](), Counter[str](), Counter[str]()
    for name in ["fixed", "dynamic-direct", "four-word-line"]:
        for load in LOADS.values():
            outcome = slc.run(DEVICES[name], load(DEVICES[name], 2_000))
            rare += outcome.rare
            causes += outcome.erases
            written += outcome.written
    assert min(rare["short"], rare["idle"], causes["gc"], causes["fold"]) > 300
    assert rare["yielded"] > 30
    assert min(written[DATA], written[CACHE]) > 5_000


def random_case(seed: int) -> tuple[Config, list[Request]]:
    """Returns a random device, and 300 requests for it; times are whole microseconds on every other one."""
    draw = random.Random(seed)
    step = [1, 1_000][seed % 2]

    def ns(most_us: int) -> int:
        return draw.randrange(1, most_us + 1) * 1_000 + draw.randrange(1_000) // step

    cell = draw.choice(["mlc", "tlc", "tlc", "qlc"])
    bits, at_once = CELLS[cell], draw.random() < 0.4
    logical, page = draw.choice([1, 1, 1, 2, 4]), 4_096 if step == 1 else 4_000
    block_pages = draw.choice([2, 3, 4, 6]) * bits + (0 if at_once else draw.choice([0, 0, 1, 2]))
    channels, ways = draw.choice([(1, 1), (1, 1), (1, 1), (1, 2), (2, 1), (2, 2), (3, 1)])
    part = -(-block_pages // bits) * page * logical * channels * ways
    dynamic = draw.random() < 0.5
    gathers = at_once or logical > 1
    gap = draw.choice([20_000, 300_000, 2_000_000])
    reserve, user = draw.choice([1, 1, 1, 2, 3]), draw.randrange(4, 14)
    settings: dict[str, Any] = {
        "cell": cell,
        "programming": "word-line" if at_once else "page",
        "order": draw.choice(["word-line", "shadow"]),
        "read": tuple(ns(80) for _ in range(draw.choice([1, bits]))),
        "program": tuple(ns(900) for _ in range(1 if at_once else draw.choice([1, bits]))),
        "erase": ns(2_000),
        "slc_read": draw.choice([None, ns(30)]),
        "slc_program": draw.choice([None, ns(200)]),
        "slc_erase": draw.choice([None, ns(1_000)]),
        "page": page,
        "logical": logical,
        "block_pages": block_pages,
        "channels": channels,
        "ways": ways,
        "byte_ns": draw.choice([0.0, 0.0, 0.25, 0.83]),
        "command": draw.choice([0, 0, 211, 1_000]),
        "depth": draw.choice([None, 1, 2, 5]),
        "scheduler": "direct" if gathers else draw.choice(["direct", "direct", "noop"]),
        "reserve": reserve,
        "fixed": 0 if dynamic and draw.random() < 0.5 else int(part * draw.choice([0.3, 1, 2, 2.5, 4])),
        "dynamic": dynamic,
        "dynamic_most": draw.choice([None, int(part * draw.choice([0.5, 2, 3.1]))]) if dynamic else None,
        "full": draw.choice(["fold", "fold", "direct"]),
        "idle": draw.choice([None, 10**9, 3 * gap, gap]),
        "filled": draw.random() < 0.25,
    }
    plain = Config(**settings)
    slots, unit = plain.block_slots(DATA), plain.unit(DATA)
    # Blocks that are enough though each may lack a slot less than a unit.
    enough = -(-(user * slots + 3 * unit) // (slots - unit + 1)) + 1
    blocks = enough + draw.choice([0, 1, 1, 2, 5]) + plain.sure + reserve
    config = Config(**settings, blocks=blocks, spare=-(-100 * (blocks - user) // blocks))
    shares = draw.choice([(30, 60, 4, 2, 4), (0, 1, 0, 0, 0), (50, 50, 0, 0, 0), (10, 50, 15, 15, 10)])
    space = draw.choice([None, None, max(8, config.pages() // 4)])
    rows = mixed(config, 300, gap, seed, shares, draw.choice([0, 0, 0.05]), space)
    return config, [(at // step * step, op, first, pages) for at, op, first, pages in rows]


def test_random_devices() -> None:
    """On random devices, ftlab and the oracle agree on 300 requests each."""
    for seed in campaign.cases("slc", range(100)):
        config, requests = random_case(seed)
        found = differences(config, requests, check=seed % 4 == 0)
        assert not found, (seed, config, found[:5])


# --- faults that the comparison must notice ------------------------------------------------


class FoldsNewest(Mapping):
    """Folds the newest full block."""

    def fold(self, lun: int) -> None:
        self.move(self.luns[lun].cached.pop(), "fold")


class FoldsBackwards(Mapping):
    """Copies out of the cache from the last slot to the first."""

    def copy(self, victim: Block, cause: str) -> None:
        if victim.front == CACHE:
            last, old = len(victim.pages) - 1, victim.pages
            for slot, lpn in enumerate(old):
                if lpn is not None and self.at.get(lpn) == (victim, slot):
                    self.at[lpn] = (victim, last - slot)
            victim.pages = old[::-1]
        super().copy(victim, cause)


class FoldsAsCollection(Mapping):
    """Counts folds as garbage collection."""

    def move(self, victim: Block, cause: str) -> None:
        super().move(victim, "gc")


class FoldsIntoNewBlocks(Mapping):
    """Does not copy into a block that the host has begun."""

    def copy(self, victim: Block, cause: str) -> None:
        at = self.luns[victim.lun]
        if DATA in at.open and at.pool:
            at.closed.append(at.open.pop(DATA))
            at.pool, at.reserve = at.pool - 1, at.reserve + 1
        super().copy(victim, cause)


class CollectsNever(Mapping):
    """Does not collect garbage to get back the blocks that the cache is sure of."""

    def cache_is_short(self, at: Lun) -> bool:
        return False


class CollectsBeforeFolding(Mapping):
    """Collects garbage although the cache has more blocks than it is sure of."""

    def make_data_room(self, lun: int) -> None:
        at = self.luns[lun]
        while DATA not in at.open and not self.data_may_take(at) and any(b.live < 13 for b in at.closed):
            self.collect(lun)
        super().make_data_room(lun)


class LeavesOnePoolBlock(Mapping):
    """Lets the cache leave an erased block to others."""

    def cache_may_take(self, at: Lun) -> bool:
        return at.pool > 1 and super().cache_may_take(at)


class NewestOfEquals(Mapping):
    """Collects, of equally good victims, the one that has been so for the shortest time."""

    def collect(self, lun: int) -> None:
        at = self.luns[lun]
        victim = min(at.closed, key=lambda block: (block.live, -block.changed))
        at.closed.remove(victim)
        self.move(victim, "gc")


class ForgetsFirst(Mapping):
    """Makes the old version of a page invalid before it makes room for the new one."""

    def write(self, lpn: int) -> None:
        self.forget(lpn)
        super().write(lpn)


class KeepsTypes(Mapping):
    """Reads blocks in SLC mode as if their pages had types."""

    def read_time(self, block: Block, slot: int) -> int:
        return self.config.read[self.types[slot // self.config.logical] % len(self.config.read)]


class ProgramsSlowly(Mapping):
    """Programs pages in SLC mode in the time of the highest type."""

    def program_time(self, block: Block) -> int:
        return self.config.program[-1] if block.front == CACHE else super().program_time(block)


class ErasesSlowly(Mapping):
    """Erases all blocks in the same time."""

    def emit_erase(self, block: Block, cause: str) -> None:
        super().emit_erase(Block(DATA, block.lun), cause)


class BeginsAtFirst(Mapping):
    """Lets the cache's cursor begin where the other does."""

    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        self.cursors[CACHE] = 0


class SkipsNothing(Mapping):
    """Lets the cache's cursor stop at LUNs whose cache is full."""

    def with_room(self, front: str, luns: Sequence[int]) -> list[int]:
        return []


class TakesAnything(Mapping):
    """Lets LUNs take data however much they hold."""

    def takes_data(self, at: Lun) -> bool:
        return True


class StaysAtCopies(Mapping):
    """Leaves the cursor where copies have filled what the host had begun."""

    def end_copies(self, lun: int, cause: str, begun: bool) -> None:
        super().end_copies(lun, cause, False)


class PadsOne(Mapping):
    """Leaves what waits next to the cache unpadded."""

    def pad(self, lpns: range | None = None) -> None:
        block = self.luns[self.cursors[CACHE]].open.get(CACHE)
        if block is not None and len(block.pages) > block.programmed:
            super().pad(lpns)


class ReadsFirst(Mapping):
    """Reads all that is to be copied before it programs anything."""

    @staticmethod
    def in_turn(works: Sequence[Work]) -> list[Work]:
        return sorted(works, key=lambda work: work.op)


class TrimsNothing(Mapping):
    """Leaves trimmed pages valid."""

    def serve(self, op: str, lpns: range) -> list[Work]:
        return [] if op == "T" else super().serve(op, lpns)


class FillsCache(Mapping):
    """Prepares the device through its cache."""

    def make_data_room(self, lun: int) -> None:
        super().make_data_room(lun)
        at = self.luns[lun]
        if not at.cached and not self.outcome.written and at.pool:
            at.pool -= 1
            at.cached.append(Block(CACHE, lun))


class EveryRequest(Device):
    """Lets every request that arrives end idleness."""

    def arrive(self, index: int, now: int) -> None:
        super().arrive(index, now)
        self.idle_since = None


class OneFold(Device):
    """Folds one block only each time that the device is idle."""

    def fold_idle(self, now: int) -> None:
        super().fold_idle(now)
        if any(self.folding.values()):
            self.idle_since = 1 << 62


class FoldsAtEnd(Device):
    """Goes on folding when no request will come."""

    def fold_idle(self, now: int) -> None:
        self.to_come += 1
        super().fold_idle(now)
        self.to_come -= 1


class RoundedDown(Config):
    """Rounds sizes of the cache down."""

    def cached_blocks(self, size: int) -> int:
        return size // (self.luns * self.slc_pages * self.page * self.logical)


class ShortBlocks(Config):
    """Leaves a last, shorter word line out."""

    @property
    def slc_pages(self) -> int:
        return self.block_pages // self.bits


class Unbounded(Config):
    """Lets the dynamic part grow without bounds."""

    @property
    def most(self) -> int:
        return self.blocks if self.dynamic else super().most


class SureOfOneMore(Config):
    """Makes the cache sure of one block more."""

    @property
    def sure(self) -> int:
        return super().sure + 1


KEYS = [field.name for field in fields(Config)]
FAULTS: list[type[Mapping | Device | Config]] = [
    *[FoldsNewest, FoldsBackwards, FoldsAsCollection, FoldsIntoNewBlocks, CollectsNever],
    *[CollectsBeforeFolding, LeavesOnePoolBlock, NewestOfEquals, ForgetsFirst, KeepsTypes],
    *[ProgramsSlowly, ErasesSlowly, BeginsAtFirst, SkipsNothing, TakesAnything, StaysAtCopies],
    *[PadsOne, ReadsFirst, TrimsNothing, FillsCache, EveryRequest, OneFold, FoldsAtEnd],
    *[RoundedDown, ShortBlocks, Unbounded, SureOfOneMore],
]
FEW = TLC | {"blocks": 20, "block_pages": 13}
SCENES = {
    "fold": Config(**FEW, **BUS, fixed=3 * 5 * 4096 - 1, idle=90_000_000),
    "direct": Config(**FEW, fixed=3 * 5 * 4096, full="direct", filled=True, idle=30_000_000, spare=30),
    "dynamic": Config(**FEW, dynamic=True, dynamic_most=8 * 5 * 4096, idle=None, full="direct", spare=45),
    "word lines": Config(
        **FEW | {"block_pages": 12} | WORD_LINE | BUS,
        fixed=2 * 4 * 4096,
        ways=2,
        spare=65,
        full="direct",
        idle=20_000_000,
    ),
    "tight": Config(
        **FEW | {"block_pages": 12, "blocks": 12} | WORD_LINE,
        fixed=4 * 4 * 4096,
        filled=True,
        ways=2,
        spare=44,
    ),
    "two": Config(**FEW, **BUS, fixed=80 * 1024, logical=2, ways=2, spare=60),
}


@functools.cache
def scene(name: str) -> tuple[list[Request], dict[str, object]]:
    """Returns the requests of a scene, and what ftlab finds."""
    config = SCENES[name]
    rows = mixed(config, 500, 9_000_000, seed=1, shares=(30, 50, 5, 5, 10), pauses=0.05)
    return rows, found_by_ftlab(config, rows)


def test_the_scenes_are_the_oracles() -> None:
    for name, config in SCENES.items():
        assert wanted_by_oracle(config, scene(name)[0]) == scene(name)[1], name


@pytest.mark.parametrize("fault", FAULTS)
def test_the_comparison_notices(fault: type[Mapping | Device | Config]) -> None:
    """With a fault the oracle differs from ftlab in some scene."""
    for name, config in SCENES.items():
        rows, found = scene(name)
        given: dict[str, Any] = {}
        if issubclass(fault, Config):
            given["config"] = fault(**{key: getattr(config, key) for key in KEYS})
        else:
            given["mapping" if issubclass(fault, Mapping) else "device"] = fault
        if wanted_by_oracle(**{"config": config, "requests": rows, **given}) != found:
            return
    raise AssertionError("the fault makes no difference")
