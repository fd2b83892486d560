"""A model of reads that meet errors, over a page map with greedy garbage collection: counts, and times.

It was written from the rules for errors and age (devices.md, "Errors and age", and docs/errors-and-age.md),
only to be compared with ftlab. Map, garbage collection, queue, dies and buses are those of ``slc.py``,
without a cache; here blocks have a past, and the stages of a read follow from it. The coefficients of the
processes were taken from SimpleSSD (2y-nm MLC) and MQSim-JW (72-layer TLC), which count days.

Where the rules leave a choice open, the model follows ftlab's documentation. These readings are ftlab's own:

- A block's past is that at the time when the read's request issues. Erasures and reads count when they are
  decided on, and reads take turns in the order in which they are. The read itself does not count yet.
- The first page that is programmed in a block begins its age. Data that are there at time 0 were programmed
  at time 0 less ``flash.age``; this holds for whatever comes to their block later, too.
- What is repeated is the sensing and the transfer, without the command. The first sensing of a read takes the
  time of a read, also where it begins with a later step (retry "last").
- A failed read tries all steps that there are, beginning where any read would. A retry "last" learns nothing
  from it.
- Retry "pipelined": from the first repetition on, each transfer has the sensing of the next step next to it.
- Pages that were never written have no past, so they are read without errors. They do not count as reads
  that needed no step. (Found by comparing with ftlab.)
- The block that was erased first is the next to be written. But an erased block goes to the reserve if this
  lacks one, and stays there until copies need it, the block that came last first. So blocks of the reserve
  wear otherwise than the rest. (Found by comparing with ftlab.)
"""

from __future__ import annotations

import bisect
import math
from collections import Counter, deque
from collections.abc import Sequence
from dataclasses import dataclass, field

from . import cells, slc
from .events import Request, Stage
from .slc import DATA

HOUR = 3_600_000_000_000
"""An hour in ns."""
PROCESSES: dict[str, tuple[float, ...]] = {
    "none": (0, 0, 0, 0, 1, 1, 1, 1, 1),
    "mlc-2y-nm": (8.34e-5, 3.30e-11, 5.56e-19, 6.26e-13, 1.71, 2.49, 3.33, 1.76, 0.47),
    "tlc-72-layer": (1.48e-3, 3.90e-10, 6.28e-5, 3.73e-9, 2.05, 0.14, 0.54, 0.33, 1.71),
}
"""The base rate, the coefficients of wear, retention (in days) and disturb, and the exponents a to e."""
NAMES = ["base", "wear", "retention", "disturb", "a", "b", "c", "d", "e"]
"""The keys of these numbers."""


@dataclass(frozen=True)
class Config(slc.Config):
    """The settings of the flash and of its errors; times are in ns."""

    process: str = "none"
    own: tuple[tuple[str, float], ...] = ()
    """Numbers that replace those of the process, by name."""
    ecc_unit: int = 1024
    limit: float = 72.0
    gain: float = 1.5
    steps: int = 7
    retry_time: int | None = None
    """What the cells take for a step; None: as long as for the first read."""
    retry: str = "from-start"
    cycles: int = 0
    """How often each block was erased before time 0."""
    age: int = 0

    @property
    def sure(self) -> int:
        """Blocks of a cache, which there is not."""
        return 0

    def numbers(self) -> dict[str, float]:
        """Returns the base rate, the coefficients and the exponents, in hours and reads of a block."""
        numbers = dict(zip(NAMES, PROCESSES[self.process], strict=True))
        numbers["retention"] /= 24 ** numbers["c"]
        if self.process == "tlc-72-layer":
            numbers["disturb"] /= self.block_pages ** numbers["e"]
        return numbers | dict(self.own)

    def settings(self) -> dict[str, str | int | bool]:
        """Returns these settings under ftlab's names for them."""
        return {
            **cells.Config.settings(self),
            "device.precondition": "fill" if self.filled else "none",
            "ftl.over_provisioning": f"{self.spare}%",
            "ftl.gc": "greedy",
            "ftl.gc_free_blocks": self.reserve,
            "flash.erase": f"{self.erase}ns",
            "flash.pe_cycles": self.cycles,
            "flash.age": f"{self.age}ns",
            "flash.retry": self.retry,
            "flash.ecc_unit": f"{self.ecc_unit}B",
            "flash.errors.process": self.process,
            **{f"flash.errors.{name}": str(number) for name, number in self.own},
            "flash.errors.ecc_limit": str(self.limit),
            "flash.errors.retry_gain": str(self.gain),
            "flash.errors.retry_steps": self.steps,
            "flash.errors.retry_time": "read" if self.retry_time is None else f"{self.retry_time}ns",
        }


@dataclass
class Errors:
    """What reads met."""

    steps: Counter[int] = field(default_factory=Counter)
    """How many reads needed each step."""
    retries: int = 0
    retried: int = 0
    failed: int = 0
    requests: list[int] = field(default_factory=list)
    """The numbers of the host's reads that failed."""
    by_cause: Counter[str] = field(default_factory=Counter)
    """Repeated reads by cause."""
    closest: float = math.inf
    """How close a number of errors came to what a step corrects, as a share of this."""


@dataclass(eq=False)
class Block(slc.Block):
    """An erase block and its past."""

    cycles: int = 0
    """How often it has been erased."""
    reads: int = 0
    """Page reads since then."""
    since: int | None = None
    """The time of its first page, ns."""
    step: int = 0
    """The step at which its last read succeeded."""


class Mapping(slc.Mapping):
    """The FTL, whose reads take as long as the past of their block requires."""

    def __init__(self, config: Config, outcome: slc.Outcome) -> None:
        self.errors = Errors()
        self.numbers = config.numbers()
        self.now: int | None = None
        """The time, ns; None before time 0."""
        self.sensed: Block | None = None
        """The block of the read that is noted next."""
        self.lost = False
        """Whether a read of the host has failed since this was last set to False."""
        pool, reserve = config.blocks - config.reserve, config.reserve
        self.erased = [deque([config.cycles] * pool) for _ in range(config.luns)]
        """How often the erased blocks of each LUN were erased, in the order in which they will be written."""
        self.kept = [deque([config.cycles] * reserve) for _ in range(config.luns)]
        """The same for those of the reserve."""
        self.settings = config
        self.corrected = [config.limit * config.gain**step for step in range(config.steps + 1)]
        """How many wrong bits of a codeword each step corrects."""
        super().__init__(config, outcome)

    def write(self, lpn: int) -> None:
        self.choose_lun(DATA)
        lun = self.lun_of(DATA, lpn)
        self.make_data_room(lun)
        self.put(DATA, lun, lpn, "host")
        self.outcome.written[DATA] += 1

    # --- the past of a block ---------------------------------------------------------------

    def take(self, lun: int, front: str) -> None:
        self.luns[lun].pool -= 1
        self.luns[lun].open[DATA] = Block(DATA, lun, cycles=self.erased[lun].popleft())

    def use_reserve(self, lun: int) -> None:
        self.luns[lun].reserve -= 1
        self.luns[lun].open[DATA] = Block(DATA, lun, cycles=self.kept[lun].pop())

    def emit_erase(self, block: slc.Block, cause: str) -> None:
        assert isinstance(block, Block)
        short = self.luns[block.lun].reserve < self.config.reserve
        (self.kept if short else self.erased)[block.lun].append(block.cycles + 1)
        super().emit_erase(block, cause)

    def program(self, block: slc.Block, cause: str) -> None:
        assert isinstance(block, Block)
        if block.since is None:
            block.since = -self.settings.age if self.now is None else self.now
        super().program(block, cause)

    # --- reads -----------------------------------------------------------------------------

    def read_time(self, block: slc.Block, slot: int) -> int:
        assert isinstance(block, Block)
        self.sensed = block
        return super().read_time(block, slot)

    def emit_read(self, lun: int, ns: int, slots: int, cause: str) -> None:
        block, self.sensed = self.sensed, None
        data = self.config.transfer(slots)
        stages = [(True, self.config.command, True), (False, ns, False), (True, data, False)]
        if block is not None:
            stages += self.repetitions(block, ns, data, cause)
        self.outcome.reads[cause] += 1
        self.emit(lun, "R", stages, cause)

    def repetitions(self, block: Block, ns: int, data: int, cause: str) -> list[Stage]:
        """Returns what follows the first reading of a page."""
        needed = self.step_of(self.wrong_bits(block))
        retries = self.retries(block, needed)
        block.reads += 1
        if needed is None:
            self.errors.failed += 1
            self.lost |= cause == "host"
        else:
            self.errors.steps[needed] += 1
            self.learn(block, needed)
        self.errors.retries += retries
        self.errors.retried += retries > 0
        self.errors.by_cause[cause] += retries > 0
        sensing = ns if self.settings.retry_time is None else self.settings.retry_time
        return [stage for number in range(retries) for stage in self.repetition(number, sensing, data)]

    def retries(self, block: Block, needed: int | None) -> int:
        """Returns how often a page is read again."""
        if needed is None:
            return self.settings.steps - self.first_step(block)
        if self.settings.retry == "sentinel":
            return min(needed, 1)
        return needed - self.first_step(block)

    def first_step(self, block: Block) -> int:
        """Returns the step with which a read begins."""
        return block.step if self.settings.retry == "last" else 0

    def learn(self, block: Block, needed: int) -> None:
        """Remembers the step at which a read succeeded."""
        assert needed >= block.step
        block.step = needed

    def repetition(self, number: int, sensing: int, data: int) -> list[Stage]:
        """Returns the stages of a repetition, of which this is the number."""
        if self.settings.retry == "pipelined" and number > 0:
            sensing = max(0, sensing - data)
        return [(False, sensing, False), (True, data, False)]

    # --- the formula -----------------------------------------------------------------------

    def hours(self, block: Block) -> float:
        """Returns how long a block's data has lain."""
        assert self.now is not None and block.since is not None
        return (self.now - block.since) / HOUR

    def wrong_bits(self, block: Block) -> float:
        """Returns how many bits of a codeword are wrong."""
        at, cycles = self.numbers, float(block.cycles)
        wear = at["wear"] * cycles ** at["a"]
        retention = at["retention"] * cycles ** at["b"] * self.hours(block) ** at["c"]
        disturb = at["disturb"] * cycles ** at["d"] * float(block.reads) ** at["e"]
        rate = at["base"] + wear + retention + disturb
        return float(8 * self.settings.ecc_unit * min(rate, 0.5))

    def step_of(self, wrong: float) -> int | None:
        """Returns the step that corrects these errors, or None."""
        step = bisect.bisect_left(self.corrected, wrong)
        for most in self.corrected[max(0, step - 1) : step + 1]:
            self.errors.closest = min(self.errors.closest, abs(wrong / most - 1))
        return step if step <= self.settings.steps else None


class Device(slc.Device):
    """The device, which tells its FTL the time."""

    def __init__(self, config: Config, requests: Sequence[Request], mapping: type[Mapping] = Mapping) -> None:
        super().__init__(config, requests, mapping)
        assert isinstance(self.ftl, Mapping)
        self.map: Mapping = self.ftl

    def issue(self, index: int, now: int) -> None:
        self.map.now, self.map.lost = now, False
        super().issue(index, now)
        if self.map.lost:
            self.map.errors.requests.append(index)


def run(
    config: Config, requests: Sequence[Request], mapping: type[Mapping] = Mapping
) -> tuple[slc.Outcome, Errors]:
    """Returns what becomes of requests in order of arrival, whose op is "R", "W", "WF" (with FUA), "F" or
    "T" (a trim): times and counts, and what reads met.
    """
    device = Device(config, requests, mapping)
    device.run()
    return device.slc, device.map.errors
