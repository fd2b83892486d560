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
from oracle.slc import DATA

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
    # Here chips wait for the bus between two repetitions.
    "three chips, pipelined": Config(
        **TLC, byte_ns=9.5, limit=2.0, own=ALL, cycles=1_000, filled=True, retry="pipelined", ways=3, depth=6
    ),
}


def pages_of(draw: random.Random) -> int:
    """Draws the number of pages of a request."""
    return draw.choice([1, 1, 1, 1, 1, 1, 2, 3])


def in_order(config: Config, count: int) -> list[Request]:
    """Returns writes that fill the device in order, then reads at random."""
    draw, first, now = random.Random(5), 0, 0
    rows: list[Request] = []
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
FEWER = {
    "base": ["overwrites"],
    "base, failing": ["old data"],
    "wear": ["overwrites", "old data"],
    "retention": ["old data"],
    "all, sentinel": ["overwrites", "old data"],
    "quick steps, pipelined": ["in order"],
    "mlc": ["in order", "old data"],
    "tlc": ["old data"],
    "new": ["old data"],
    "half of the bits": ["overwrites"],
    "three chips, pipelined": ["overwrites"],
}
"""Loads that are enough for a device, for others would add little."""
PAIRS = [
    (name, load) for name in DEVICES for load in LOADS if campaign.long() or load in FEWER.get(name, LOADS)
]
"""The devices and loads to be compared."""
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


@pytest.mark.parametrize(("name", "load"), PAIRS)
def test_every_request_is_the_oracles(name: str, load: str) -> None:
    """ftlab and the oracle agree on 10,000 requests."""
    config = DEVICES[name]
    assert not differences(config, LOADS[load](config, 10_000))[:5]


def test_the_loads_have_all_that_errors_do() -> None:
    """In the loads of these tests reads need every step, some fail, reads of the host and copies are
    repeated, and no read is so close to what a step corrects that rounding could decide.
    """
    steps, causes, failed, closest = Counter[int](), Counter[str](), 0, 1.0
    for name in ["wear", "all, last", "all, sentinel", "new"]:
        for load in LOADS.values():
            _, met = errors.run(DEVICES[name], load(DEVICES[name], 1_500))
            steps += met.steps
            causes += met.by_cause
            failed += len(met.requests)
            closest = min(closest, met.closest)
    assert min(steps[step] for step in range(6)) > 100
    assert min(causes["host"], causes["gc"], failed) > 50
    assert closest > 1e-9


@dataclass
class Case:
    """A case worked out by hand."""

    config: Config
    requests: list[Request]
    done: list[int]
    steps: dict[int, int]
    retries: int = 0
    failed: int = 0
    """Requests that failed."""


def certain(wrong: float, **others: Any) -> Config:
    """Returns a device of which this many bits of a codeword are wrong, and the steps of which correct 4, 8,
    16 and 32. A page is read in 100 ns; its data and a command take 64 and 7 ns.
    """
    settings: dict[str, Any] = {"own": (("base", wrong / 8192),), "limit": 4.0, "gain": 2.0, "steps": 3}
    times = {"read": (100,), "program": (1000,), "erase": 5000, "byte_ns": 0.016, "page": 4_000, "command": 7}
    return Config(**SLC | times | settings | others)


WRITE: Request = (0, "W", 0, 1)
READS: list[Request] = [(10_000, "R", 0, 1), (20_000, "R", 0, 1)]
ONE = 7 + 100 + 64
CASES = {
    "what the limit just corrects": Case(certain(4), [WRITE, *READS], [1071, 10_171, 20_171], {0: 2}),
    "what step 2 just corrects": Case(
        certain(16), [WRITE, *READS], [1071, 10_000 + ONE + 328, 20_000 + ONE + 328], {2: 2}, 4
    ),
    "last": Case(
        certain(17, retry="last", retry_time=30),
        [WRITE, *READS],
        [1071, 10_000 + ONE + 3 * 94, 20_000 + ONE],
        {3: 2},
        3,
    ),
    "pipelined": Case(
        certain(17, retry="pipelined", retry_time=70),
        [WRITE, *READS],
        [1071, 10_000 + ONE + 70 + 2 * 70 + 64, 20_000 + ONE + 70 + 2 * 70 + 64],
        {3: 2},
        6,
    ),
    "pipelined, with slow transfers": Case(
        certain(17, retry="pipelined", retry_time=60),
        [WRITE, *READS],
        [1071, 10_000 + ONE + 60 + 3 * 64, 20_000 + ONE + 60 + 3 * 64],
        {3: 2},
        6,
    ),
    "sentinel": Case(
        certain(17, retry="sentinel", retry_time=70),
        [WRITE, *READS],
        [1071, 10_000 + ONE + 134, 20_000 + ONE + 134],
        {3: 2},
        2,
    ),
    # Each read tries all steps; the write that comes meanwhile waits for them.
    "a read that fails": Case(
        certain(33, retry="sentinel"),
        [WRITE, READS[0], (10_001, "W", 1, 1)],
        [1071, 10_000 + ONE + 3 * 164, 10_000 + ONE + 3 * 164 + 1071],
        {},
        3,
        1,
    ),
    # The data have lain for four hours and for one.
    "age is that of what was there": Case(
        certain(0, own=(("retention", 5 / 8192), ("c", 0.5)), filled=True, age=3 * HOUR, cycles=1),
        [(HOUR, "W", 0, 1), (HOUR + 10_000, "R", 0, 1), (HOUR + 20_000, "R", 1, 1)],
        [HOUR + 1071, HOUR + 10_000 + ONE, HOUR + 20_000 + ONE + 328],
        {0: 1, 2: 1},
        2,
    ),
    # Of the first two pages the block has been read 0, 1, ... times before.
    "reads disturb the block": Case(
        certain(0, own=(("disturb", 2.5 / 8192),), cycles=2),
        [(0, "W", 0, 2), *((10_000 * number, "R", number % 2, 1) for number in range(1, 5))],
        [2142, 10_171, 20_171 + 164, 30_171 + 328, 40_171 + 328],
        {0: 1, 1: 1, 2: 2},
        5,
    ),
    "what was never written has no errors": Case(certain(33), READS, [10_171, 20_171], {}),
}


@pytest.mark.parametrize("name", CASES)
def test_cases_worked_out_by_hand(name: str) -> None:
    case = CASES[name]
    outcome, met = errors.run(case.config, case.requests)
    assert (outcome.done, met.steps, met.retries) == (case.done, case.steps, case.retries)
    assert len(met.requests) == case.failed
    assert not differences(case.config, case.requests, check=True)


def random_case(seed: int) -> tuple[Config, list[Request]]:
    """Returns a random device, and 300 requests for it; times are whole microseconds on every other one."""
    draw = random.Random(seed)
    step = [1, 1_000][seed % 2]

    def ns(most_us: int) -> int:
        return draw.randrange(1, most_us + 1) * 1_000 + draw.randrange(1_000) // step

    cell = draw.choice(list(CELLS))
    bits, at_once = CELLS[cell], draw.random() < 0.3
    logical, page = draw.choice([1, 1, 1, 2, 4]), 4_096 if step == 1 else 4_000
    cycles = draw.choice([0, 1, 300, 1_000, 5_000])
    wear, b, d = (draw.choice([0.0, 0.2, 0.5, 1.0, draw.uniform(0, 2)]) for _ in range(3))
    c, e = draw.choice([0.3, 0.54, 1.0, 1.5]), draw.choice([0.4, 0.8, 1.0, 1.71])
    unit = draw.choice([512, 1_024, 1_024, 4_096])
    gap = draw.choice([30_000, 400_000, 3_000_000, HOUR // 60, HOUR, 30 * HOUR])
    age = draw.choice([0, 0, HOUR, 1_000 * HOUR, 20_000 * HOUR + 1])
    limit = draw.choice([1.0, 4.0, 13.3, 72.0])
    # Each coefficient is drawn so that what it stands for makes some codewords need a step, or all.
    about = max(cycles, 4)
    most = [1, about**wear, about**b * ((300 * gap + age) / HOUR) ** c, about**d * 60**e]
    terms = draw.sample(range(4), draw.choice([1, 3, 4]))
    share = [draw.uniform(0.5, 9) * limit / (8 * unit) if term in terms else 0.0 for term in range(4)]
    numbers = [min(part / whole, 0.5) for part, whole in zip(share, most, strict=True)]
    names = ["base", "wear", "retention", "disturb", "a", "b", "c", "d", "e"]
    process = draw.choice(["none", "none", "none", "mlc-2y-nm", "tlc-72-layer"])
    own = [*zip(names, [*numbers, wear, b, c, d, e], strict=True)]
    single = at_once or logical > 1
    channels, ways = (1, 1) if single else draw.choice([(1, 1), (1, 1), (1, 2), (2, 1), (2, 2), (1, 3)])
    settings: dict[str, Any] = {
        "cell": cell,
        "programming": "word-line" if at_once else "page",
        "order": draw.choice(["word-line", "shadow"]),
        "read": tuple(ns(80) for _ in range(draw.choice([1, bits]))),
        "program": tuple(ns(900) for _ in range(1 if at_once else draw.choice([1, bits]))),
        "erase": ns(2_000),
        "page": page,
        "logical": logical,
        "block_pages": draw.choice([2, 3, 4, 6]) * bits + (0 if at_once else draw.choice([0, 0, 1, 2])),
        "byte_ns": draw.choice([0.0, 0.25, 0.83, 9.7]),
        "command": draw.choice([0, 0, 211, 1_000]),
        "depth": draw.choice([None, 1, 2, 5]),
        "channels": channels,
        "ways": ways,
        "scheduler": "direct" if single else draw.choice(["direct", "direct", "noop"]),
        "reserve": draw.choice([1, 1, 2, 3]),
        "filled": draw.random() < 0.5,
        "process": process,
        "own": tuple(own if process == "none" else draw.sample(own[:4], draw.choice([0, 0, 1, 2]))),
        "ecc_unit": unit,
        "limit": limit if process == "none" else draw.choice([9.0, 15.0, 30.0, 72.0]),
        "gain": draw.choice([1.1, 1.3, 1.5, 2.7]),
        "steps": draw.choice([0, 1, 2, 4, 7, 11]),
        "retry_time": draw.choice([None, None, 0, ns(30), ns(200)]),
        "retry": draw.choice(["from-start", "last", "pipelined", "sentinel"]),
        "cycles": cycles,
        "age": age,
    }
    plain = Config(**settings)
    user, slots, lost = draw.randrange(4, 14), plain.block_slots(DATA), plain.unit(DATA)
    # Blocks that are enough though each may lack a slot less than a unit.
    enough = -(-(user * slots + 3 * lost) // (slots - lost + 1)) + 1
    blocks = enough + draw.choice([0, 1, 1, 2, 5]) + plain.reserve
    config = Config(**settings, blocks=blocks, spare=-(-100 * (blocks - user) // blocks))
    shares = draw.choice([(50, 40, 4, 2, 4), (30, 70, 0, 0, 0), (80, 18, 0, 0, 2), (40, 40, 5, 10, 5)])
    space = draw.choice([None, None, min(config.pages(), max(8, config.pages() // 4))])
    rows = mixed(config, 300, gap, seed, shares, space)
    return config, [(at // step * step, op, first, pages) for at, op, first, pages in rows]


def test_random_devices() -> None:
    """On random devices, ftlab and the oracle agree on 300 requests each."""
    for seed in campaign.cases("errors", range(200)):
        config, requests = random_case(seed)
        found = differences(config, requests, check=seed % 4 == 0)
        assert not found, (seed, config, found[:5])


# --- faults that the comparison must notice ------------------------------------------------


class CountsItself(Mapping):
    """Counts a read among those that have disturbed its page."""

    def repetitions(self, block: Block, ns: int, data: int, cause: str) -> list[Stage]:
        block.reads += 1
        stages = super().repetitions(block, ns, data, cause)
        block.reads -= 1
        return stages


class CountsRepetitions(Mapping):
    """Counts each repetition as a read that disturbs."""

    def repetitions(self, block: Block, ns: int, data: int, cause: str) -> list[Stage]:
        stages = super().repetitions(block, ns, data, cause)
        block.reads += len(stages) // 2
        return stages


class CountsHostReads(Mapping):
    """Lets reads of copies disturb nothing."""

    def repetitions(self, block: Block, ns: int, data: int, cause: str) -> list[Stage]:
        stages = super().repetitions(block, ns, data, cause)
        block.reads -= cause != "host"
        return stages


class CopiesWithoutErrors(Mapping):
    """Lets reads of copies meet no errors."""

    def repetitions(self, block: Block, ns: int, data: int, cause: str) -> list[Stage]:
        if cause != "host":
            block.reads += 1
            return []
        return super().repetitions(block, ns, data, cause)


class FailsForCopies(Mapping):
    """Lets a request fail for a copy that was lost."""

    def repetitions(self, block: Block, ns: int, data: int, cause: str) -> list[Stage]:
        before = self.errors.failed
        stages = super().repetitions(block, ns, data, cause)
        self.lost |= self.errors.failed > before
        return stages


class AgeOfLastPage(Mapping):
    """Lets every page that is programmed begin the age of its block anew."""

    def program(self, block: slc.Block, cause: str) -> None:
        assert isinstance(block, Block)
        block.since = None
        super().program(block, cause)


class AgeForAll(Mapping):
    """Counts flash.age for data that were written after time 0 as well."""

    def hours(self, block: Block) -> float:
        assert block.since is not None
        return super().hours(block) + (self.settings.age / HOUR if block.since >= 0 else 0)


class NoAge(Mapping):
    """Forgets flash.age."""

    def hours(self, block: Block) -> float:
        assert self.now is not None and block.since is not None
        return (self.now - max(block.since, 0)) / HOUR


class FixedCycles(Mapping):
    """Leaves out the erasures since time 0."""

    def wrong_bits(self, block: Block) -> float:
        kept, block.cycles = block.cycles, self.settings.cycles
        wrong = super().wrong_bits(block)
        block.cycles = kept
        return wrong


class NewAtStart(Mapping):
    """Leaves out the erasures before time 0."""

    def wrong_bits(self, block: Block) -> float:
        block.cycles -= self.settings.cycles
        wrong = super().wrong_bits(block)
        block.cycles += self.settings.cycles
        return wrong


class OneQueue(Mapping):
    """Keeps no erased blocks apart for copies: all are written in the order in which they were erased."""

    def __init__(self, config: Config, outcome: slc.Outcome) -> None:
        super().__init__(config, outcome)
        for lun, queue in enumerate(self.erased):
            queue.extend(self.kept[lun])
        self.kept = self.erased


class OldestOfReserve(Mapping):
    """Takes that block of the reserve for copies which was erased first."""

    def use_reserve(self, lun: int) -> None:
        self.kept[lun].rotate(-1)
        super().use_reserve(lun)


class Days(Mapping):
    """Takes a coefficient of retention for hours as one for days."""

    def hours(self, block: Block) -> float:
        return super().hours(block) / 24


class BeyondHalf(Mapping):
    """Lets more than half of the bits be wrong."""

    def wrong_bits(self, block: Block) -> float:
        wrong = super().wrong_bits(block)
        return 1e9 if wrong >= 4 * self.settings.ecc_unit else wrong


class LimitItself(Mapping):
    """Does not correct as many errors as the limit is."""

    def step_of(self, wrong: float) -> int | None:
        return super().step_of(wrong * (1 + 1e-12))


class GrowsEvenly(Mapping):
    """Lets what steps correct grow evenly."""

    def __init__(self, config: Config, outcome: slc.Outcome) -> None:
        super().__init__(config, outcome)
        gain = config.gain - 1
        self.corrected = [config.limit * (1 + gain * step) for step in range(config.steps + 1)]


class OneStepLess(Mapping):
    """Counts the first read among the steps."""

    def __init__(self, config: Config, outcome: slc.Outcome) -> None:
        super().__init__(replace(config, steps=config.steps - 1), outcome)


class LearnsFromFailure(Mapping):
    """Lets the next read of a block begin with the last step after one that failed."""

    def repetitions(self, block: Block, ns: int, data: int, cause: str) -> list[Stage]:
        before = self.errors.failed
        stages = super().repetitions(block, ns, data, cause)
        if self.errors.failed > before:
            block.step = self.settings.steps
        return stages


class LearnsFromHost(Mapping):
    """Begins reads of copies with step 0."""

    def repetitions(self, block: Block, ns: int, data: int, cause: str) -> list[Stage]:
        kept = block.step
        if cause != "host":
            block.step = 0
        stages = super().repetitions(block, ns, data, cause)
        block.step = max(block.step, kept)
        return stages


class StepsTakeTheirTime(Mapping):
    """Lets the first sensing of a read that begins with a later step take a step's time."""

    def emit_read(self, lun: int, ns: int, slots: int, cause: str) -> None:
        later = self.sensed is not None and self.first_step(self.sensed) > 0
        own = self.settings.retry_time
        super().emit_read(lun, own if later and own is not None else ns, slots, cause)


class RepeatsCommands(Mapping):
    """Sends a command for each repetition."""

    def repetition(self, number: int, sensing: int, data: int) -> list[Stage]:
        return [(True, self.config.command, True), *super().repetition(number, sensing, data)]


class TransfersOnce(Mapping):
    """Transfers the data of a repeated read once."""

    def repetition(self, number: int, sensing: int, data: int) -> list[Stage]:
        return super().repetition(number, sensing, 0)


class SensesAhead(Mapping):
    """Senses for the first repetition before the read has failed."""

    def repetition(self, number: int, sensing: int, data: int) -> list[Stage]:
        return super().repetition(number + 1, sensing, data)


class FailsAtOnce(Mapping):
    """Gives up a read that no step corrects after one repetition."""

    def retries(self, block: Block, needed: int | None) -> int:
        return min(1, super().retries(block, needed)) if needed is None else super().retries(block, needed)


class ReadsUnwritten(Mapping):
    """Counts reads of pages that were never written as reads without errors."""

    def emit_read(self, lun: int, ns: int, slots: int, cause: str) -> None:
        self.errors.steps[0] += self.sensed is None
        super().emit_read(lun, ns, slots, cause)


FAULTS: list[type[Mapping]] = [
    *[CountsItself, CountsRepetitions, CountsHostReads, CopiesWithoutErrors, FailsForCopies, AgeOfLastPage],
    *[AgeForAll, NoAge, FixedCycles, NewAtStart, OneQueue, OldestOfReserve, Days, BeyondHalf, LimitItself],
    *[
        GrowsEvenly,
        OneStepLess,
        LearnsFromFailure,
        LearnsFromHost,
        StepsTakeTheirTime,
        RepeatsCommands,
        TransfersOnce,
    ],
    *[SensesAhead, FailsAtOnce, ReadsUnwritten],
]
FEW = SLC | {"blocks": 16, "block_pages": 8, "spare": 40}
SCENES = {
    "last": Config(
        **FEW, **BUS, **SMALL, own=ALL, cycles=900, age=600 * HOUR, retry="last", retry_time=21_001, steps=3,
        filled=True,
    ),
    "pipelined": Config(**FEW, **BUS, **SMALL, own=ALL, cycles=900, retry="pipelined", depth=2, steps=3),
    "sentinel": Config(**FEW, **BUS, limit=7.0, own=ALL, cycles=5_000, retry="sentinel", steps=2),
    "half": Config(**FEW, **BUS, own=(("wear", 0.1), ("disturb", 0.1)), limit=999.0, gain=1.7, steps=4),
    "just": Config(**FEW, **BUS, own=(("base", 1 / 1_024),), limit=4.0, gain=2.0, steps=1, filled=True),
    "erased": Config(**FEW, limit=2.0, own=(("wear", 2e-4),), filled=True, steps=9, reserve=2),
}  # fmt: skip


@functools.cache
def scene(name: str) -> tuple[list[Request], dict[str, object]]:
    """Returns the requests of a scene, and what ftlab finds."""
    config = SCENES[name]
    rows = mixed(config, 600, HOUR, seed=1, shares=(50, 40, 3, 2, 5))
    return rows, found_by_ftlab(config, rows)


def test_the_scenes_are_the_oracles() -> None:
    for name, config in SCENES.items():
        assert wanted_by_oracle(config, scene(name)[0]) == scene(name)[1], name


@pytest.mark.parametrize("fault", FAULTS)
def test_the_comparison_notices(fault: type[Mapping]) -> None:
    """With a fault the oracle differs from ftlab in some scene."""
    for name, config in SCENES.items():
        rows, found = scene(name)
        if wanted_by_oracle(config, rows, fault) != found:
            return
    raise AssertionError("the fault makes no difference")
