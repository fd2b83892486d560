"""A model of BAST and FAST below noop, irbw, padding and coop, on one serial chip, with times.

It follows Algorithms 1 to 4 of Shim et al. (TC 2014) and their interpretation in spec/coop.md and
docs/readings/coop.md; the merges are those of ``plain.py``. Requests are (arrival_ns, op, first page, pages),
reads, writes and trims. Writes that are pending together cover the same pages or disjoint ones, because no
source says how overlapping writes are ordered.

No independent witness, since the paper has no trims and ftlab was asked: writes of a block that COOP_Query
names stay in the queue if a trim of that block waits, before them or behind, or if they wait behind any trim.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

from . import plain

READ_NS, PROGRAM_NS, ERASE_NS = 45_000, 240_000, 500_000
BLOCKS = 100
USER_BLOCKS = 60

Request = tuple[int, str, int, int]


@dataclass
class Case:
    """A device of 100 blocks, a policy and a trace."""

    ftl: str
    policy: str
    block_pages: int
    log_blocks: int
    filled: bool
    trace: list[Request]


@dataclass
class Part:
    """A piece of a request within one logical block."""

    request: int
    op: str
    lpns: range
    block: int


class Padding(plain.Hybrid):
    """A hybrid FTL that knows which log blocks hold padding; padded switch merges count those blocks' pages
    as copied.
    """

    def start(self) -> None:
        self.padding = False
        self.completed: list[plain.Log] = []
        self.padded = [0, 0]

    def append(self, log: plain.Log, lpn: int) -> None:
        if self.padding:
            self.completed.append(log)
            self.padded[1] += 1
        super().append(log, lpn)

    def keep_log(self, log: plain.Log, block: int) -> None:
        before = list(self.merges.switch)
        super().keep_log(log, block)
        if self.merges.switch != before and any(each is log for each in self.completed):
            self.merges.switch = before
            self.padded[0] += 1


class Bast(Padding, plain.Bast):
    """BAST with padding."""


class Fast(Padding, plain.Fast):
    """FAST with padding."""


class Device:
    """Answers, on top of the plain merges, the calls that both FTLs have to answer; subclasses decide which
    blocks a query names.
    """

    def __init__(self, ftl: Padding, csm_threshold: int) -> None:
        self.ftl = ftl
        ftl.start()
        self.csm_threshold = csm_threshold
        self.cooperative = [0, 0]
        self.csm: int | None = None
        self.next = 0
        self.coop = False

    def copies(self) -> int:
        merges = self.ftl.merges
        return sum(kind[1] for kind in (merges.full, merges.partial, merges.switch, self.cooperative))

    def moved(self) -> int:
        """Returns the time that all copies and erasures up to now have taken."""
        return self.copies() * (READ_NS + PROGRAM_NS) + self.ftl.merges.erases * ERASE_NS

    # --- Algorithm 1 ---------------------------------------------------------------------------

    def issue(self, block: int) -> None:
        self.csm, self.next = block, 0

    def write(self, part: Part) -> None:
        if self.csm is None or part.block != self.csm:
            return self.write_log(part)
        for lpn in part.lpns:
            offset = lpn % self.ftl.block_pages
            if offset < self.next:
                # The page cannot be programmed again, so the block is completed and becomes the data block.
                self.complete()
                return self.write_log(Part(part.request, "W", range(lpn, part.lpns.stop), part.block))
            self.copy_to(offset)
            self.ftl.newest[lpn] = None
            self.next = offset + 1
        return None

    def copy_to(self, end: int) -> None:
        """Copies the valid pages from the next free offset up to, but not including, ``end``."""
        assert self.csm is not None
        first = self.csm * self.ftl.block_pages
        for lpn in range(first + self.next, first + end):
            if lpn in self.ftl.newest:
                self.ftl.newest[lpn] = None
                self.cooperative[1] += 1
        self.next = end

    def complete(self) -> None:
        if self.csm is None:
            return
        self.copy_to(self.ftl.block_pages)
        self.cooperative[0] += 1
        block, self.csm = self.csm, None
        self.ftl.replace_data(block)
        self.erase_logs(block)

    # --- by FTL ----------------------------------------------------------------------------------

    def write_log(self, part: Part) -> None:
        raise NotImplementedError

    def erase_logs(self, block: int) -> None:
        raise NotImplementedError

    def query(self, first: int, pages: int) -> list[int]:
        raise NotImplementedError


class BastDevice(Device):
    """Answers as BAST does (Algorithm 3)."""

    def __init__(self, ftl: Bast, csm_threshold: int) -> None:
        super().__init__(ftl, csm_threshold)
        self.bast = ftl

    def write_log(self, part: Part) -> None:
        self.bast.write_part(part.block, part.lpns)

    def erase_logs(self, block: int) -> None:
        if self.bast.logs.pop(block, None) is not None:
            self.ftl.merges.erases += 1

    def query(self, first: int, pages: int) -> list[int]:
        block, offset = divmod(first, self.ftl.block_pages)
        log = self.bast.logs.get(block)
        if log is not None:
            free = self.ftl.block_pages - len(log.pages)
            if pages < free:
                return []
            if pages == free and self.ftl.in_order(log, block) and offset == len(log.pages):
                return []
            return [block]
        if len(self.bast.logs) < self.bast.log_blocks:
            return []
        victim, log = next(iter(self.bast.logs.items()))
        return [victim] if self.ftl.valid(log) else []


class FastDevice(Device):
    """Answers as FAST does (Algorithm 4)."""

    def __init__(self, ftl: Fast, csm_threshold: int) -> None:
        super().__init__(ftl, csm_threshold)
        self.fast = ftl

    def write_log(self, part: Part) -> None:
        if self.coop:
            self.fast.write_random(part.lpns)
        else:
            self.fast.write_part(part.block, part.lpns)

    def erase_logs(self, block: int) -> None:
        empty = [log for log in self.fast.random if not self.ftl.valid(log)]
        self.fast.random = [log for log in self.fast.random if self.ftl.valid(log)]
        self.ftl.merges.erases += len(empty)

    def query(self, first: int, pages: int) -> list[int]:
        block_pages = self.ftl.block_pages
        if pages > self.csm_threshold:
            return [first // block_pages]
        logs = self.fast.random
        free = (self.fast.log_blocks - 1 - len(logs)) * block_pages
        if logs:
            free += block_pages - len(logs[-1].pages)
        if pages < free:
            return []
        return sorted({lpn // block_pages for lpn in self.ftl.valid(logs[0])}) if logs else []


@dataclass
class Outcome:
    """The completion of each request in ns, and the numbers of merges, of their copies, and of erasures."""

    completes: list[int]
    merges: dict[str, list[int]] = field(default_factory=dict)
    erases: int = 0


class Host:
    """A queue of parts in order of arrival, above a device that serves one part at a time."""

    bast: ClassVar[type[BastDevice]] = BastDevice
    fast: ClassVar[type[FastDevice]] = FastDevice

    def __init__(self, case: Case) -> None:
        self.case = case
        filled = USER_BLOCKS * case.block_pages if case.filled else 0
        threshold = case.block_pages // 2
        self.device: Device
        if case.ftl == "bast":
            self.device = self.bast(Bast(case.block_pages, case.log_blocks, filled), threshold)
        else:
            self.device = self.fast(Fast(case.block_pages, case.log_blocks, filled), threshold)
        self.device.coop = case.policy == "coop"
        self.now = 0
        self.completes = [0] * len(case.trace)
        self.queue: list[Part] = []

    def parts(self, number: int) -> list[Part]:
        """Returns the parts of a request: a write is cut at the ends of logical blocks, others are not."""
        _, op, first, pages = self.case.trace[number]
        size, end = self.case.block_pages, first + pages
        if op != "W":
            return [Part(number, op, range(first, end), first // size)]
        found = []
        while first < end:
            until = min(end, (first // size + 1) * size)
            found.append(Part(number, op, range(first, until), first // size))
            first = until
        return found

    def serve(self, part: Part, last: bool = False) -> None:
        """Serves one part at the device; if the part is the last of a block issue, COOP_Complete follows."""
        if part.op == "R":
            self.now += len(part.lpns) * READ_NS
        elif part.op == "T":
            self.device.ftl.trim(part.lpns)
        else:
            before = self.device.moved()
            self.device.ftl.padding = part.request < 0
            self.device.write(part)
            if last:
                self.device.complete()
            self.now += len(part.lpns) * PROGRAM_NS + self.device.moved() - before
        if part.request >= 0:
            self.completes[part.request] = self.now

    def take(self, block: int) -> list[Part]:
        """Takes the queued writes of a block, up to a trim of that block, ascending by page; writes of the
        same pages are in order of arrival.
        """
        taken = self.queued(block)
        self.queue = [part for part in self.queue if not any(part is each for each in taken)]
        return sorted(taken, key=lambda part: part.lpns.start)

    def queued(self, block: int) -> list[Part]:
        found = []
        for part in self.queue:
            if part.op == "W" and part.block == block:
                found.append(part)
            if self.trims(part, block):
                break
        return found

    def trims(self, part: Part, block: int) -> bool:
        return part.op == "T" and any(lpn // self.case.block_pages == block for lpn in part.lpns)

    def may_go_ahead(self, block: int) -> bool:
        """Whether a merge block's writes go ahead of the queue: see the module's docstring about trims."""
        first = next((at for at, part in enumerate(self.queue) if (part.op, part.block) == ("W", block)), 0)
        ahead = any(part.op == "T" for part in self.queue[:first])
        return not ahead and not any(self.trims(part, block) for part in self.queue)

    def pad(self, block: int, parts: list[Part]) -> list[Part]:
        """Reads the pages that no part writes; returns the writes of the whole block."""
        first = block * self.case.block_pages
        written = {lpn for part in parts for lpn in part.lpns}
        omitted = [lpn for lpn in range(first, first + self.case.block_pages) if lpn not in written]
        self.now += len(omitted) * READ_NS
        pads = [Part(-1, "W", range(lpn, lpn + 1), block) for lpn in omitted]
        return sorted(parts + pads, key=lambda part: part.lpns.start)

    def block_issue(self, block: int) -> None:
        """Issues all queued writes of the victim's block."""
        if self.case.policy == "coop":
            # Algorithm 2.
            queued = self.queued(block)
            # Interpretation: a page with two queued writes is written twice, and counts twice.
            first = min(part.lpns.start for part in queued)
            named = self.device.query(first, sum(len(part.lpns) for part in queued))
            for merged in named:
                parts = self.take(merged) if merged == block or self.may_go_ahead(merged) else []
                if parts:
                    self.device.issue(merged)
                for part in parts:
                    self.serve(part, last=part is parts[-1])
            if block in named:
                return
        parts = self.take(block)
        for part in self.pad(block, parts) if self.case.policy == "padding" else parts:
            self.serve(part)

    def run(self) -> Outcome:
        waiting = list(range(len(self.case.trace)))
        while waiting or self.queue:
            if not self.queue:
                self.now = max(self.now, self.case.trace[waiting[0]][0])
            while waiting and self.case.trace[waiting[0]][0] <= self.now:
                self.queue += self.parts(waiting.pop(0))
            victim = self.queue[0]
            if victim.op != "W" or self.case.policy == "noop":
                self.serve(self.queue.pop(0))
            else:
                self.block_issue(victim.block)
        merges = self.device.ftl.merges
        kinds = {"full": merges.full, "partial": merges.partial, "switch": merges.switch}
        more = {"padded_switch": self.device.ftl.padded, "cooperative": self.device.cooperative}
        return Outcome(self.completes, kinds | more, merges.erases)
