"""BAST and FAST on several chips, request by request: merges of each kind with copies and times, erasures,
latencies, and the valid pages of every block.

Written from Shim et al. (TC 2014, sections 2.2.1 and 2.2.2) and docs/readings/hybrid-ftls.md. A block is the
list of what was programmed in it, and the map names a block and a place, so that what is valid follows from
the map alone. ``plain.py`` counts the same merges without blocks, ``coop.py`` adds the host on one chip.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

READ_NS, PROGRAM_NS, ERASE_NS = 45_000, 240_000, 500_000
PAGE = 4096
KINDS = ("full", "partial", "switch")

Request = tuple[str, int, int]
"""R, W or T, first page, pages; each request is sent when the one before it has ended."""


@dataclass(frozen=True)
class Config:
    """A device: ``log_blocks`` is the number on each chip, FAST's SW log block included."""

    ftl: str
    chips: int
    blocks: int
    """Erase blocks on each chip."""
    block_pages: int
    log_blocks: int
    filled: bool = False

    @property
    def user_blocks(self) -> int:
        """Logical blocks, the same number on each chip; the rest is log blocks and erased ones."""
        return (self.blocks - self.log_blocks - 4) * self.chips

    def settings(self) -> dict[str, Any]:
        """Returns the device as ftlab's keys."""
        whole = self.blocks * self.chips
        # Both shares are rounded so that they give these numbers of blocks.
        logs, spare = (
            f"{part * 1_000_000 // whole / 10_000}%"
            for part in (self.log_blocks * self.chips, whole - self.user_blocks)
        )
        return {
            "ftl.kind": self.ftl,
            "host.scheduler": "noop",
            "device.queue_depth": 1,
            "ftl.log_blocks": logs,
            "ftl.over_provisioning": spare,
            "flash.page": f"{PAGE}B",
            "flash.chips_per_channel": self.chips,
            "flash.blocks_per_plane": self.blocks,
            "flash.pages_per_block": self.block_pages,
            "flash.read": f"{READ_NS}ns",
            "flash.program": f"{PROGRAM_NS}ns",
            "flash.erase": f"{ERASE_NS}ns",
            "device.precondition": "fill" if self.filled else "none",
        }


@dataclass
class Counts:
    """What a device has done so far, and how long the last request took."""

    latency: int
    merges: dict[str, tuple[int, ...]]
    """Of each kind: merges, pages copied, and time in ns, erasures of empty log blocks included."""
    erases: int
    valid: tuple[tuple[int, ...], ...]
    """Of each chip: the numbers of valid pages of its blocks, without zeros, in ascending order."""


@dataclass(eq=False)
class Block:
    """The logical pages programmed in a block, in order; a page left out is None."""

    owner: int = -1
    pages: list[int | None] = field(default_factory=list)


class Chip(ABC):
    """One chip with its share of logical blocks and of log blocks; what BAST and FAST have in common."""

    def __init__(self, config: Config) -> None:
        self.size = config.block_pages
        self.log_blocks = config.log_blocks
        self.map: dict[int, tuple[Block, int]] = {}
        self.data: dict[int, Block] = {}
        self.merges = {kind: [0, 0, 0] for kind in KINDS}
        self.erases = 0
        self.busy = 0

    def program(self, block: Block, lpn: int) -> None:
        self.map[lpn] = (block, len(block.pages))
        block.pages.append(lpn)

    def valid(self, block: Block) -> list[int]:
        """Returns the pages whose newest version is in a block, in their order."""
        return [
            lpn for _, lpn in sorted((place, lpn) for lpn, (at, place) in self.map.items() if at is block)
        ]

    def is_full(self, log: Block) -> bool:
        return len(log.pages) == self.size

    def valid_pages(self) -> tuple[int, ...]:
        return tuple(sorted(Counter(id(block) for block, _ in self.map.values()).values()))

    def erase(self, kind: str) -> None:
        self.erases += 1
        self.spend(kind, ERASE_NS)

    def spend(self, kind: str, ns: int) -> None:
        self.merges[kind][2] += ns
        self.busy += ns

    def copy_from(self, block: Block, owner: int, offset: int, kind: str) -> None:
        """Copies the newest versions of the pages from an offset on; pages without data are left out."""
        for lpn in range(owner * self.size + offset, (owner + 1) * self.size):
            if lpn not in self.map:
                block.pages.append(None)
                continue
            self.program(block, lpn)
            self.merges[kind][1] += 1
            self.spend(kind, READ_NS + PROGRAM_NS)

    def become_data(self, block: Block, owner: int, kind: str) -> None:
        self.merges[kind][0] += 1
        if owner in self.data:
            self.erase(kind)
        self.data[owner] = block

    def full_merge(self, owner: int) -> None:
        self.copy_from(block := Block(owner), owner, 0, "full")
        self.become_data(block, owner, "full")

    def keep(self, log: Block) -> None:
        """Makes a log block written in order the data block, by a switch merge or a partial one."""
        kind = "switch" if self.is_full(log) else "partial"
        self.copy_from(log, log.owner, len(log.pages), kind)
        self.become_data(log, log.owner, kind)

    def host_program(self, log: Block, lpn: int) -> None:
        self.program(log, lpn)
        self.busy += PROGRAM_NS

    @abstractmethod
    def write(self, owner: int, lpns: Sequence[int]) -> None:
        """Serves the part of a write that lies in one logical block."""

    def serve(self, op: str, owner: int, lpns: Sequence[int]) -> None:
        """Serves the part of a request that lies in one logical block."""
        if op == "W":
            self.write(owner, lpns)
        for lpn in lpns:
            if op == "R":
                self.busy += READ_NS
            elif op == "T":
                self.map.pop(lpn, None)


class Bast(Chip):
    """A log block for each logical block that is written (section 2.2.1)."""

    def __init__(self, config: Config) -> None:
        super().__init__(config)
        # The least recently written first.
        self.pairs: list[Block] = []

    def victim(self) -> Block:
        return self.pairs[0]

    def write(self, owner: int, lpns: Sequence[int]) -> None:
        for lpn in lpns:
            log = next((each for each in self.pairs if each.owner == owner), None)
            if log is None:
                if len(self.pairs) == self.log_blocks:
                    self.merge(self.victim())
                log = Block(owner)
            else:
                self.pairs.remove(log)
            self.pairs.append(log)
            self.host_program(log, lpn)
            if self.is_full(log):
                self.merge(log)

    def in_order(self, log: Block) -> bool:
        return all(lpn == log.owner * self.size + place for place, lpn in enumerate(log.pages))

    def merge(self, log: Block) -> None:
        self.pairs.remove(log)
        if not self.valid(log):
            return self.erase("full")
        if self.in_order(log):
            return self.keep(log)
        self.full_merge(log.owner)
        return self.erase("full")


class Fast(Chip):
    """RW log blocks that all blocks share, and one SW log block (section 2.2.2)."""

    def __init__(self, config: Config) -> None:
        super().__init__(config)
        self.random: list[Block] = []
        self.sequential: Block | None = None

    def is_sequential(self, owner: int, first: int) -> bool:
        """Whether a write goes to the SW log block, which is merged before if another one begins."""
        log = self.sequential
        if first % self.size == 0:
            if log is not None:
                self.merge_sequential(log)
            self.sequential = Block(owner)
            return True
        return log is not None and log.owner == owner and len(log.pages) == first % self.size

    def write(self, owner: int, lpns: Sequence[int]) -> None:
        if not self.is_sequential(owner, lpns[0]):
            for lpn in lpns:
                self.append(lpn)
            return
        assert self.sequential is not None
        for lpn in lpns:
            self.host_program(self.sequential, lpn)
        if self.is_full(self.sequential):
            self.merge_sequential(self.sequential)

    def append(self, lpn: int) -> None:
        if not self.random or self.is_full(self.random[-1]):
            if len(self.random) == self.random_most():
                self.reclaim(self.victim())
            self.random.append(Block())
        self.host_program(self.random[-1], lpn)

    def random_most(self) -> int:
        return self.log_blocks - 1

    def victim(self) -> Block:
        return self.random[0]

    def merge_sequential(self, log: Block) -> None:
        self.sequential = None
        if self.valid(log):
            self.keep(log)
        else:
            self.erase("partial")

    def reclaim(self, victim: Block) -> None:
        """Merges every logical block with a valid page in an RW log block, and erases it."""
        self.random.remove(victim)
        while valid := self.valid(victim):
            self.merge_associated(valid[0] // self.size)
        self.erase("full")

    def merge_associated(self, owner: int) -> None:
        log = self.sequential
        if log is None or log.owner != owner:
            return self.full_merge(owner)
        if not self.is_stale(log):
            return self.merge_sequential(log)
        # An offset of the SW log block that was written again elsewhere cannot be programmed a second time.
        self.sequential = None
        self.full_merge(owner)
        return self.erase("full")

    def is_stale(self, log: Block) -> bool:
        return len(self.valid(log)) < sum(lpn in self.map for lpn in log.pages)


FTLS: dict[str, type[Chip]] = {"bast": Bast, "fast": Fast}


def run(config: Config, requests: Sequence[Request], ftl: type[Chip] | None = None) -> Iterator[Counts]:
    """Yields what has been done after each request; ``ftl`` may be one with a deliberate fault."""
    chips = [(ftl or FTLS[config.ftl])(config) for _ in range(config.chips)]
    size = config.block_pages
    if config.filled:
        for owner in range(config.user_blocks):
            chip, block = chips[owner % config.chips], Block(owner)
            for lpn in range(owner * size, (owner + 1) * size):
                chip.program(block, lpn)
            chip.data[owner] = block
    for op, first, pages in requests:
        for chip in chips:
            chip.busy = 0
        lpn = first
        while lpn < first + pages:
            owner = lpn // size
            end = min(first + pages, (owner + 1) * size)
            chips[owner % config.chips].serve(op, owner, range(lpn, end))
            lpn = end
        # Chips work side by side, and each goes through its steps in order.
        sums = {kind: [chip.merges[kind] for chip in chips] for kind in KINDS}
        yield Counts(
            max(chip.busy for chip in chips),
            {kind: tuple(map(sum, zip(*each, strict=True))) for kind, each in sums.items()},
            sum(chip.erases for chip in chips),
            tuple(chip.valid_pages() for chip in chips),
        )
