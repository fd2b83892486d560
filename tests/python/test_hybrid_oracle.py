"""Compares BAST and FAST with a second implementation (``tests/oracle/hybrid.py``), request by request.

`FTLAB_CAMPAIGN=N` makes a campaign of the random cases (see campaign.py).
"""

from __future__ import annotations

import functools
import random
from collections.abc import Iterator, Sequence

import pytest

import campaign
from oracle import engine, hybrid
from oracle.hybrid import KINDS, PAGE, Bast, Block, Chip, Config, Counts, Fast, Request

pytestmark = pytest.mark.skipif(not engine.available(), reason=engine.SKIP_REASON)


def found(config: Config, requests: Sequence[Request], check: bool = False) -> Iterator[Counts]:
    """Yields what ftlab has done after each request."""
    import ftlab

    with ftlab.Simulation(config.settings(), check=check) as simulation:
        for op, first, pages in requests:
            simulation.submit(op, first * PAGE, pages * PAGE)
            (done,) = simulation.run_until_idle()
            assert done.complete_ns is not None
            result = simulation.result().to_dict()
            merges = {kind: result["merges"][kind] for kind in KINDS}
            valid = (sorted(n for n in chip if n) for chip in simulation.valid_pages().tolist())
            yield Counts(
                done.complete_ns - done.arrival_ns,
                {kind: (of["count"], of["pages_copied"], of["busy_ns"]) for kind, of in merges.items()},
                sum(result["flash"]["erases"].values()),
                tuple(map(tuple, valid)),
            )


def difference(
    config: Config, requests: Sequence[Request], check: bool = False
) -> tuple[int, Request, Counts, Counts] | None:
    """Returns the first request after which ftlab and the oracle differ, and what each has done by then."""
    both = zip(requests, found(config, requests, check), hybrid.run(config, requests), strict=True)
    for number, (request, have, want) in enumerate(both):
        if have != want:
            return number, request, have, want
    return None


def drawn(config: Config, seed: int, count: int, trims: float, begin: float = 0.2) -> list[Request]:
    """Returns random requests: a share begins a logical block, some go on where the last write ended."""
    draw = random.Random(seed)
    size, space = config.block_pages, draw.choice([config.user_blocks, max(2, config.user_blocks // 3)])
    rows: list[Request] = []
    end = 0
    for _ in range(count):
        kind = draw.random()
        pages = draw.choice([1, 1, 1, 2, size // 2, size, draw.randrange(1, 2 * size)])
        first = draw.randrange(space * size)
        if kind < begin:
            first -= first % size
        elif kind < begin + 0.35:
            first = end
        pages = min(pages, config.user_blocks * size - first)
        op = "T" if draw.random() < trims else "R" if draw.random() < 0.05 else "W"
        if pages:
            rows.append((op, first, pages))
        if op == "W":
            end = (first + pages) % (config.user_blocks * size)
    return rows


def random_case(seed: int) -> tuple[Config, list[Request]]:
    """Returns a random device, and 150 requests."""
    draw = random.Random(f"hybrid {seed}")
    config = Config(
        ftl=["fast", "fast", "bast"][seed % 3],
        chips=draw.choice([1, 1, 2, 3]),
        blocks=draw.choice([12, 20, 40]),
        block_pages=draw.choice([2, 4, 5, 8]),
        log_blocks=draw.choice([2, 2, 3, 5]),
        filled=draw.random() < 0.5,
    )
    return config, drawn(config, seed, 150, draw.choice([0, 0.05, 0.2]), draw.choice([0.02, 0.1, 0.2]))


def test_random_devices() -> None:
    """On random devices, ftlab and the oracle agree after every request."""
    for seed in campaign.cases("hybrid", range(120)):
        config, requests = random_case(seed)
        assert (at := difference(config, requests, check=seed % 4 == 0)) is None, (seed, config, at)


# --- cases by hand ---------------------------------------------------------------------------

R, P, E = hybrid.READ_NS, hybrid.PROGRAM_NS, hybrid.ERASE_NS
ONE = Config("fast", chips=1, blocks=12, block_pages=4, log_blocks=2, filled=True)
"""FAST with one RW log block and one SW log block."""
PAIR = Config("bast", chips=1, blocks=12, block_pages=4, log_blocks=2, filled=True)
BY_HAND: dict[str, tuple[Config, list[Request], list[int]]] = {
    # Block 0 is written whole and in order: the log block becomes the data block, the old one is erased.
    "switch": (ONE, [("W", 0, 4)], [4 * P + E]),
    # A second request at offset 0 finds two pages in the SW log block: the other two are copied to it.
    "partial": (ONE, [("W", 0, 2), ("W", 4, 1)], [2 * P, 2 * (R + P) + E + P]),
    "continued": (ONE, [("W", 0, 2), ("W", 2, 2)], [2 * P, 2 * P + E]),
    # The fifth page that is not sequential reclaims the RW log block, with pages of blocks 0 and 1 in it.
    # Each of these is merged with four copies; three blocks are erased.
    "full": (ONE, [("W", 1, 2), ("W", 6, 2), ("W", 10, 1)], [2 * P, 2 * P, 8 * (R + P) + 3 * E + P]),
    # Page 1 fills the log block four times: three versions are stale, one block is merged.
    "full of one page": (ONE, [("W", 1, 1)] * 5, [P] * 4 + [4 * (R + P) + 2 * E + P]),
    # The victim's block owns the SW log block, whose page 0 is current: it is merged with three copies, one
    # of them from the RW log block.
    "owner of the SW log block": (
        ONE, [("W", 0, 1), ("W", 2, 1), ("W", 2, 1), ("W", 2, 1), ("W", 2, 1), ("W", 2, 1)],
        [P] * 5 + [3 * (R + P) + 2 * E + P],
    ),
    # The same, but page 0 of the SW log block is trimmed: nothing stands in the way of keeping it. Pages 2
    # and 3 are copied.
    "owner of a SW log block with a trimmed page": (
        ONE, [("W", 0, 2), ("T", 0, 1), ("W", 3, 1), ("W", 3, 1), ("W", 3, 1), ("W", 3, 1), ("W", 3, 1)],
        [2 * P, 0, *[P] * 4, 2 * (R + P) + 2 * E + P],
    ),
    # The same, but page 1 of the SW log block is stale: all four pages are copied, three blocks erased.
    "owner of a SW log block with a stale page": (
        ONE, [("W", 0, 2), ("W", 1, 1), ("W", 1, 1), ("W", 1, 1), ("W", 1, 1), ("W", 1, 1)],
        [2 * P, *[P] * 4, 4 * (R + P) + 3 * E + P],
    ),
    # BAST: the third block needs a log block; that of block 0 has page 0, then page 1, in order.
    "bast, partial": (PAIR, [("W", 0, 2), ("W", 5, 1), ("W", 9, 1)], [2 * P, P, 2 * (R + P) + E + P]),
    "bast, full": (PAIR, [("W", 1, 1), ("W", 5, 1), ("W", 9, 1)], [P, P, 4 * (R + P) + 2 * E + P]),
    "bast, its log block is full": (PAIR, [("W", 1, 3), ("W", 0, 1)], [3 * P, P + 4 * (R + P) + 2 * E]),
}  # fmt: skip


@pytest.mark.parametrize("name", BY_HAND)
def test_cases_worked_out_by_hand(name: str) -> None:
    config, requests, latencies = BY_HAND[name]
    assert [counts.latency for counts in hybrid.run(config, requests)] == latencies
    assert difference(config, requests, check=True) is None


# --- faults that the comparison must notice ----------------------------------------------------


class MergesAtGap(Fast):
    """Merges the SW log block when its own logical block is written elsewhere, as public codes do."""

    def is_sequential(self, owner: int, first: int) -> bool:
        sequential = super().is_sequential(owner, first)
        if not sequential and self.sequential is not None and self.sequential.owner == owner:
            self.merge_sequential(self.sequential)
        return sequential


class OneAtATime(Fast):
    """Sends a write at offset 0 to the RW log blocks while the SW log block is in use."""

    def is_sequential(self, owner: int, first: int) -> bool:
        return self.sequential is None and super().is_sequential(owner, first)


class NeverContinues(Fast):
    """Takes only requests at offset 0 for sequential."""

    def is_sequential(self, owner: int, first: int) -> bool:
        return first % self.size == 0 and super().is_sequential(owner, first)


class FullLater(Fast):
    """Leaves the SW log block until another one begins, even if it is full."""

    def is_full(self, log: Block) -> bool:
        return log is not self.sequential and super().is_full(log)


class NewestVictim(Fast):
    """Reclaims the RW log block that was filled last."""

    def victim(self) -> Block:
        return self.random[-1]


class OneMoreRandom(Fast):
    """Counts no SW log block among the log blocks."""

    def random_most(self) -> int:
        return self.log_blocks


class KeepsStale(Fast):
    """Keeps the SW log block of a victim's logical block although one of its pages is stale."""

    def is_stale(self, log: Block) -> bool:
        return False


class NeverKeeps(Fast):
    """Merges a victim's logical block fully although its SW log block could be kept."""

    def is_stale(self, log: Block) -> bool:
        return True


class TrimmedIsStale(Fast):
    """Takes a trimmed page of the SW log block for a stale one."""

    def is_stale(self, log: Block) -> bool:
        return self.valid(log) != log.pages


class LeavesSequential(Fast):
    """Merges a victim's logical block without its SW log block, which stays."""

    def merge_associated(self, owner: int) -> None:
        self.full_merge(owner)


class CountsEmpty(Fast):
    """Counts the erasure of a RW log block without valid pages as a merge."""

    def reclaim(self, victim: Block) -> None:
        self.merges["full"][0] += not self.valid(victim)
        super().reclaim(victim)


class LeavesRandom(Fast):
    """Leaves pages in RW log blocks where they are in a partial merge."""

    def copy_from(self, block: Block, owner: int, offset: int, kind: str) -> None:
        away = {lpn: at for lpn, at in self.map.items() if at[0] in self.random and kind == "partial"}
        for lpn in away:
            del self.map[lpn]
        super().copy_from(block, owner, offset, kind)
        self.map.update(away)


class CopiesTrimmed(Fast):
    """Copies offsets without data, too."""

    def copy_from(self, block: Block, owner: int, offset: int, kind: str) -> None:
        super().copy_from(block, owner, offset, kind)
        self.merges[kind][1] += sum(lpn is None for lpn in block.pages[offset:])


class IgnoresTrims(Fast):
    """Leaves trimmed pages valid."""

    def serve(self, op: str, owner: int, lpns: Sequence[int]) -> None:
        if op != "T":
            super().serve(op, owner, lpns)


class KeepsOldData(Fast):
    """Does not erase the data block that a merge replaces."""

    def become_data(self, block: Block, owner: int, kind: str) -> None:
        self.data.pop(owner, None)
        super().become_data(block, owner, kind)


class FirstWrittenFirst(Bast):
    """Reclaims the log block that was opened first."""

    def victim(self) -> Block:
        return min(self.pairs, key=lambda log: self.opened.index(id(log)))

    def __init__(self, config: Config) -> None:
        super().__init__(config)
        self.opened: list[int] = []
        self.kept: list[Block] = []

    def host_program(self, log: Block, lpn: int) -> None:
        if not log.pages:
            self.opened.append(id(log))
            self.kept.append(log)  # so that no later block has the same id
        super().host_program(log, lpn)


class OrderAlone(Bast):
    """Ends the order of a log block when one of its pages is trimmed."""

    def in_order(self, log: Block) -> bool:
        return super().in_order(log) and self.valid(log) == log.pages


class NoOrder(Bast):
    """Merges every log block fully."""

    def in_order(self, log: Block) -> bool:
        return False


class MergesEmpty(Bast):
    """Merges a log block all of whose pages are trimmed."""

    def valid(self, block: Block) -> list[int]:
        return super().valid(block) or [lpn for lpn in block.pages if lpn is not None]


FAULTS: list[type[Chip]] = [
    *[
        MergesAtGap,
        OneAtATime,
        NeverContinues,
        FullLater,
        NewestVictim,
        OneMoreRandom,
        KeepsStale,
        NeverKeeps,
    ],
    *[TrimmedIsStale, LeavesSequential, CountsEmpty, LeavesRandom, CopiesTrimmed, IgnoresTrims, KeepsOldData],
    *[FirstWrittenFirst, OrderAlone, NoOrder, MergesEmpty],
]
SCENES = {
    "fast": Config("fast", chips=1, blocks=20, block_pages=4, log_blocks=3),
    "fast, two chips": Config("fast", chips=2, blocks=14, block_pages=8, log_blocks=4, filled=True),
    "bast": Config("bast", chips=1, blocks=20, block_pages=4, log_blocks=3, filled=True),
}


@functools.cache
def scene(name: str) -> tuple[list[Request], list[Counts]]:
    """Returns the requests of a scene, and what ftlab has done after each."""
    if name in BY_HAND:
        return BY_HAND[name][1], list(found(BY_HAND[name][0], BY_HAND[name][1]))
    rows = drawn(SCENES[name], seed=1, count=250, trims=0.15)
    rows += drawn(SCENES[name], seed=2, count=250, trims=0.15, begin=0.02)
    return rows, list(found(SCENES[name], rows))


@pytest.mark.parametrize("name", SCENES)
def test_the_scenes_are_the_oracles(name: str) -> None:
    rows, have = scene(name)
    assert list(hybrid.run(SCENES[name], rows)) == have
    kinds = have[-1].merges
    assert min(kinds[kind][0] for kind in KINDS) >= 5, "too few merges of a kind"


@pytest.mark.parametrize("fault", FAULTS)
def test_the_comparison_notices(fault: type[Chip]) -> None:
    """With a fault the oracle differs from ftlab in some scene, or in a case by hand."""
    ftl = "fast" if issubclass(fault, Fast) else "bast"
    configs = {**SCENES, **{name: case[0] for name, case in BY_HAND.items()}}
    names = [name for name, config in configs.items() if config.ftl == ftl]
    assert any(list(hybrid.run(configs[name], scene(name)[0], fault)) != scene(name)[1] for name in names)
