"""A model of an SLC cache over a page map with greedy garbage collection: counts, and times of requests.

It was written from the rules for the SLC cache and for cells (devices.md, "Fronts" and "Cells") and for the
FTL's page buffer (model.md), only to be compared with ftlab. Queue, dies and buses are those of ``cells.py``;
here is an FTL with its whole map in RAM whose writes go to blocks with one bit a cell first. Requests cover
whole logical pages, and all data is of one front (placement "one").

Where the rules leave a choice open, the model follows the description of ftlab's cache. These readings are
ftlab's own:

- Each LUN is sure of some blocks for its cache, at least one, and all others together may have all bits. An
  erased block of its pool may become either. The first page of each word line holds data in SLC mode.
- A block is closed as soon as it is full. The next is taken when a page needs it. Room is made first, and
  only then the version that a page replaces becomes invalid.
- A write that finds no room in the cache lets the oldest full block of its LUN be folded, or passes the cache
  by. When a block of all bits is needed, cached blocks beyond the sure ones are folded before garbage is
  collected.
- Folding and collection copy in the same way: in the order of the slots, into the open block of all bits of
  the same LUN. Where that is full a block of the reserve takes its place. What is copied is programmed before
  its block is erased, so the last unit may be part-full; all NAND pages of it have the cause of the copies.
  Each NAND page with something live is read whole.
- Reads and programs of copies take turns one by one; a word line is programmed after all reads of its data.
- The LUN of a write follows from the page where a logical page is programmed by itself. Elsewhere cache and
  blocks of all bits have a cursor each, which goes round the LUNs, page by page or unit by unit. The cache's
  begins at the second LUN, and passes LUNs whose cache takes nothing, even after a fold, as long as there is
  another.
  Both pass LUNs that hold too much already (``Mapping.takes_data``, found by comparing with ftlab).
- A flush pads all that has been begun, of either front; a write with FUA what has its own data.
- When the device has had no request for long enough and more will come, each LUN that has nothing to do folds
  its oldest full block, then the next, as requests of the device's own. What completes at the time when it
  comes (for example a trim) does not count as a request here.
"""

from __future__ import annotations

import heapq
from collections import Counter, deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import zip_longest

from . import cells
from .events import Operation, Request

DATA, CACHE = "front 0", "slc"
"""The fronts, under ftlab's names."""


@dataclass(frozen=True)
class Config(cells.Config):
    """The settings of the flash and of its cache; times are in ns, sizes in bytes."""

    erase: int = 1_500_000
    slc_read: int | None = None
    """The time to read a page in SLC mode; None: as one of the lowest type."""
    slc_program: int | None = None
    slc_erase: int | None = None
    spare: int = 50
    """What is withheld from the user, in percent of all pages."""
    reserve: int = 1
    """Erased blocks of a LUN that only copies may take."""
    fixed: int = 0
    """The size of the cache's fixed part."""
    dynamic: bool = False
    dynamic_most: int | None = None
    """The most that the dynamic part may hold; None: any number of bytes."""
    full: str = "fold"
    idle: int | None = 1_000_000_000
    """Time without requests after which the cache is folded; None: never."""
    filled: bool = False
    """Whether all pages are written in order before time 0."""

    @property
    def luns(self) -> int:
        return self.channels * self.ways

    @property
    def slc_pages(self) -> int:
        """Pages of a block in SLC mode."""
        return -(-self.block_pages // self.bits)

    def pages(self) -> int:
        """Returns the number of logical pages."""
        return self.luns * self.blocks * self.block_pages * self.logical * (100 - self.spare) // 100

    def cached_blocks(self, size: int) -> int:
        """Returns how many blocks of each LUN hold this many bytes in SLC mode."""
        return -(-size // (self.luns * self.slc_pages * self.page * self.logical))

    @property
    def sure(self) -> int:
        """Blocks of each LUN that the cache is sure of."""
        return max(1, self.cached_blocks(self.fixed))

    @property
    def most(self) -> int:
        """Blocks that the cache may have on each LUN."""
        if not self.dynamic:
            return self.sure
        if self.dynamic_most is None:
            return self.blocks
        return max(self.sure, self.cached_blocks(self.fixed) + self.cached_blocks(self.dynamic_most))

    def unit(self, front: str) -> int:
        """Returns how many logical pages are programmed at once."""
        return self.logical * (self.unit_pages if front == DATA else 1)

    def block_slots(self, front: str) -> int:
        """Returns how many logical pages a block has room for."""
        return self.logical * (self.block_pages if front == DATA else self.slc_pages)

    def settings(self) -> dict[str, str | int | bool]:
        """Returns these settings under ftlab's names for them."""
        parts = [f"{self.fixed}B"] if self.fixed or not self.dynamic else []
        if self.dynamic:
            parts.append("dynamic" if self.dynamic_most is None else f"dynamic:{self.dynamic_most}B")
        times = {"slc_read": self.slc_read, "slc_program": self.slc_program, "slc_erase": self.slc_erase}
        return {
            **super().settings(),
            "device.precondition": "fill" if self.filled else "none",
            "ftl.over_provisioning": f"{self.spare}%",
            "ftl.gc": "greedy",
            "ftl.gc_free_blocks": self.reserve,
            "ftl.slc_cache": "+".join(parts),
            "ftl.slc_full": self.full,
            "ftl.slc_fold_idle": "never" if self.idle is None else f"{self.idle}ns",
            "flash.erase": f"{self.erase}ns",
            **{f"flash.{name}": "cell" if ns is None else f"{ns}ns" for name, ns in times.items()},
        }


@dataclass
class Outcome:
    """When each request completed, ns, and what the flash did."""

    done: list[int]
    reads: Counter[str] = field(default_factory=Counter)
    """NAND pages read, by cause, as the following."""
    programs: Counter[str] = field(default_factory=Counter)
    erases: Counter[str] = field(default_factory=Counter)
    busy: Counter[str] = field(default_factory=Counter)
    """Time of cells and buses, ns."""
    times: Counter[int] = field(default_factory=Counter)
    """How many NAND pages took how long to program."""
    written: Counter[str] = field(default_factory=Counter)
    """Logical pages that the host wrote, by front."""
    moved: Counter[str] = field(default_factory=Counter)
    rare: Counter[str] = field(default_factory=Counter)
    """How often something happened that tests want to have happened."""


@dataclass(eq=False)
class Block:
    """An erase block that was taken to be written."""

    front: str
    lun: int
    pages: list[int | None] = field(default_factory=list)
    """The LPN of each slot, in order; None is padding."""
    live: int = 0
    """Slots that hold the newest version of their LPN."""
    programmed: int = 0
    """Slots that are on flash."""
    changed: int = 0
    """When, in events, the block came to its number of live slots."""


@dataclass
class Lun:
    """The blocks of a LUN."""

    pool: int
    """Erased blocks, those of the reserve left out."""
    reserve: int
    open: dict[str, Block] = field(default_factory=dict)
    """The block of each front that has room."""
    closed: list[Block] = field(default_factory=list)
    """Full blocks of all bits."""
    cached: deque[Block] = field(default_factory=deque)
    """Full blocks in SLC mode, the oldest first."""

    def held(self, front: str) -> int:
        """Returns the number of blocks in use; the reserve counts among those of all bits."""
        full = self.cached if front == CACHE else self.closed
        return len(full) + (front in self.open) + (self.reserve if front == DATA else 0)


class Mapping:
    """The FTL: where pages lie, which wait in RAM, and the operations of a request."""

    def __init__(self, config: Config, outcome: Outcome) -> None:
        self.config = config
        self.outcome = outcome
        self.types = config.types()
        self.luns = [Lun(config.blocks - config.reserve, config.reserve) for _ in range(config.luns)]
        self.by_home = config.unit(DATA) == 1
        """Whether a page's number says on which LUN it lies."""
        self.cursors = {DATA: 0, CACHE: 1 % len(self.luns)}
        self.at: dict[int, tuple[Block, int]] = {}
        """The block and slot of each page's newest version."""
        self.events = 0
        """Changes of numbers of live slots so far."""
        self.works: list[cells.Work] = []
        """Operations that were decided on and not handed over."""
        if config.filled:
            self.fill()

    def fill(self) -> None:
        """Writes all pages in order, before time 0."""
        for lpn in range(self.config.pages()):
            lun = lpn % len(self.luns) if self.by_home else self.cursors[DATA]
            self.make_data_room(lun)
            self.put(DATA, lun, lpn, "host")
        self.works = []
        for counts in [self.outcome.reads, self.outcome.programs, self.outcome.erases]:
            counts.clear()
        for others in [self.outcome.written, self.outcome.moved, self.outcome.busy]:
            others.clear()
        self.outcome.times.clear()

    # --- requests --------------------------------------------------------------------------

    def serve(self, op: str, lpns: range) -> list[cells.Work]:
        """Returns a request's operations; all decisions about it are taken now."""
        if op == "R":
            self.read(lpns)
        elif op == "T":
            for lpn in lpns:
                self.forget(lpn)
        elif op == "F":
            self.pad()
        else:
            for lpn in lpns:
                self.write(lpn)
            if op == "WF":
                self.pad(lpns)
        return self.handed_over()

    def handed_over(self) -> list[cells.Work]:
        """Returns the operations decided on since the last call."""
        works, self.works = self.works, []
        return works

    def place_of(self, lpn: int) -> tuple[int, object]:
        """Returns the LUN and the NAND page of a LPN; those of pages never written lie round the LUNs."""
        if lpn in self.at:
            block, slot = self.at[lpn]
            return block.lun, (block, slot // self.config.logical)
        page = lpn // self.config.logical
        return page // self.config.unit_pages % len(self.luns), page

    def touched(self, op: str, lpns: range) -> set[int]:
        """Returns the LUNs that a request concerns."""
        if op == "F":
            return set(range(len(self.luns)))
        if op == "R":
            return {self.place_of(lpn)[0] for lpn in lpns}
        assert self.by_home, "the model does not foresee which LUNs cursors come to"
        return {lpn % len(self.luns) for lpn in lpns}

    def read(self, lpns: range) -> None:
        """Reads pages that are on flash; neighbours in a NAND page are one read."""
        runs: list[tuple[int, list[int]]] = []
        last = None
        for lpn in lpns:
            place = self.place_of(lpn)
            if place == last:
                runs[-1][1].append(lpn)
            else:
                runs.append((place[0], [lpn]))
            last = place
        for lun, run in runs:
            if run[0] not in self.at:
                self.emit_read(lun, self.config.read[0], len(run), "host")
                continue
            block, slot = self.at[run[0]]
            if slot < block.programmed:
                self.emit_read(lun, self.read_time(block, slot), len(run), "host")

    def write(self, lpn: int) -> None:
        """Writes a page."""
        self.choose_lun(CACHE)
        front = CACHE if self.enter_cache(self.lun_of(CACHE, lpn)) else DATA
        if front == DATA:
            self.choose_lun(DATA)
            self.make_data_room(self.lun_of(DATA, lpn))
        self.put(front, self.lun_of(front, lpn), lpn, "host")
        self.outcome.written[front] += 1

    def choose_lun(self, front: str) -> None:
        """Moves a cursor to the next LUN that takes data, if nothing waits where it is; that of the cache to
        one whose cache has room, if there is one.
        """
        block = self.luns[self.cursors[front]].open.get(front)
        if self.by_home or (block is not None and len(block.pages) > block.programmed):
            return
        first = self.cursors[front]
        luns = [(first + step) % len(self.luns) for step in range(len(self.luns))]
        luns = [lun for lun in luns if self.takes_data(self.luns[lun])]
        for lun in [*self.with_room(front, luns), *luns]:
            self.cursors[front] = lun
            return

    def with_room(self, front: str, luns: Sequence[int]) -> list[int]:
        """Returns, of these LUNs, those whose cache has room or gets it by a fold."""
        if front == DATA:
            return []
        folds = self.config.full == "fold"
        here = [(lun, self.luns[lun]) for lun in luns]
        return [
            lun for lun, at in here if CACHE in at.open or self.cache_may_take(at) or (folds and at.cached)
        ]

    def takes_data(self, at: Lun) -> bool:
        """Whether a LUN has not this many live slots that it could not collect its garbage with more."""
        blocks = [*at.closed, *at.cached, *at.open.values()]
        unit, usual = self.config.unit(DATA), self.config.blocks - self.config.sure - self.config.reserve
        most = (self.config.block_slots(DATA) - unit + 1) * usual - 3 * unit
        return sum(block.live for block in blocks) <= most

    def lun_of(self, front: str, lpn: int) -> int:
        """Returns the LUN that a write to a front goes to."""
        return lpn % len(self.luns) if self.by_home else self.cursors[front]

    # --- room ------------------------------------------------------------------------------

    def enter_cache(self, lun: int) -> bool:
        """Makes room in the cache of a LUN; returns whether there is some."""
        at = self.luns[lun]
        while CACHE not in at.open:
            if self.cache_may_take(at):
                self.take(lun, CACHE)
            elif self.cache_is_short(at):
                self.outcome.rare["short"] += 1
                self.collect(lun)
            elif self.config.full == "direct":
                return False
            elif at.cached:
                self.fold(lun)
            else:
                self.outcome.rare["passed by"] += 1
                return False
        return True

    def cache_may_take(self, at: Lun) -> bool:
        """Whether the cache may take an erased block."""
        return at.pool > 0 and at.held(CACHE) < self.config.most

    def cache_is_short(self, at: Lun) -> bool:
        """Whether blocks of all bits have taken a block that the cache is sure of."""
        limit = self.config.blocks - self.config.sure
        return at.held(DATA) > limit and at.held(CACHE) < self.config.sure

    def data_may_take(self, at: Lun) -> bool:
        """Whether an erased block may become one of all bits."""
        return at.pool > 0 and at.held(DATA) < self.config.blocks - self.config.sure

    def make_data_room(self, lun: int) -> None:
        """Makes room in a block of all bits."""
        at = self.luns[lun]
        while DATA not in at.open:
            if self.data_may_take(at):
                self.take(lun, DATA)
            elif at.held(CACHE) > self.config.sure and at.cached:
                self.outcome.rare["yielded"] += 1
                self.fold(lun)
            else:
                self.collect(lun)

    def take(self, lun: int, front: str) -> None:
        """Takes an erased block of the pool."""
        self.luns[lun].pool -= 1
        self.luns[lun].open[front] = Block(front, lun)

    # --- copies ----------------------------------------------------------------------------

    def fold(self, lun: int) -> None:
        """Moves the oldest full block of the cache to blocks of all bits."""
        self.move(self.luns[lun].cached.popleft(), "fold")

    def collect(self, lun: int) -> None:
        """Collects the block of all bits with the fewest live slots, of several the one so for longest."""
        at = self.luns[lun]
        victim = min(at.closed, key=lambda block: (block.live, block.changed))
        assert victim.live < self.config.block_slots(DATA), "there is nothing to collect"
        at.closed.remove(victim)
        self.move(victim, "gc")

    def move(self, victim: Block, cause: str) -> None:
        """Copies what is live in a block of any kind, then erases it."""
        before, self.works = self.works, []
        self.copy(victim, cause)
        whole = self.config.unit(DATA) > self.config.logical
        self.works = before + (self.works if whole else self.in_turn(self.works))
        self.emit_erase(victim, cause)
        at = self.luns[victim.lun]
        if at.reserve < self.config.reserve:
            at.reserve += 1
        else:
            at.pool += 1

    @staticmethod
    def in_turn(works: Sequence[cells.Work]) -> list[cells.Work]:
        """Returns the operations of copies, with reads and programs taking turns while there are both."""
        pairs = zip_longest(*([work for work in works if work.op == op] for op in "RW"))
        return [work for pair in pairs for work in pair if work is not None]

    def copy(self, victim: Block, cause: str) -> None:
        """Copies what is live in a block into blocks of all bits."""
        lun, at, last = victim.lun, self.luns[victim.lun], None
        begun = DATA in at.open and len(at.open[DATA].pages) % self.config.unit(DATA) > 0
        for slot, lpn in enumerate(victim.pages):
            if lpn is None or self.at.get(lpn) != (victim, slot):
                continue
            page = slot // self.config.logical
            if page != last:
                self.emit_read(lun, self.read_time(victim, slot), self.config.logical, cause)
                last = page
            if DATA not in at.open:
                self.use_reserve(lun)
            self.put(DATA, lun, lpn, cause)
            self.outcome.moved[DATA] += 1
        if last is not None:
            self.end_copies(lun, cause, begun)

    def use_reserve(self, lun: int) -> None:
        """Takes a block of the reserve for copies that find no room."""
        self.luns[lun].reserve -= 1
        self.luns[lun].open[DATA] = Block(DATA, lun)

    def end_copies(self, lun: int, cause: str, begun: bool) -> None:
        """Programs what is begun on a LUN; the cursor goes on if the host had begun it."""
        block = self.luns[lun].open.get(DATA)
        if block is not None and len(block.pages) > block.programmed:
            self.program(block, cause)
        if begun and not self.by_home:
            self.advance(DATA)

    # --- pages -----------------------------------------------------------------------------

    def forget(self, lpn: int) -> None:
        """Makes the newest version of a page invalid, if there is one."""
        if lpn in self.at:
            block, _ = self.at.pop(lpn)
            block.live -= 1
            self.touch(block)

    def touch(self, block: Block) -> None:
        """Notes that a block's number of live slots has changed."""
        self.events += 1
        block.changed = self.events

    def put(self, front: str, lun: int, lpn: int, cause: str) -> None:
        """Puts a page's newest version into an open block; programs the unit that is full then."""
        self.forget(lpn)
        block = self.luns[lun].open[front]
        self.at[lpn] = (block, len(block.pages))
        block.pages.append(lpn)
        block.live += 1
        self.touch(block)
        if len(block.pages) % self.config.unit(front) == 0:
            self.program(block, cause)
            if cause == "host":
                self.advance(front)

    def advance(self, front: str) -> None:
        """Lets the next LUN have its turn."""
        self.cursors[front] = (self.cursors[front] + 1) % len(self.luns)

    def pad(self, lpns: range | None = None) -> None:
        """Programs the units that the host has begun or, of these, those with data of some pages."""
        for front in [DATA, CACHE]:
            block = self.luns[self.cursors[front]].open.get(front)
            if block is None or len(block.pages) == block.programmed:
                continue
            waiting = block.pages[block.programmed :]
            if lpns is None or any(self.at.get(lpn, (None,))[0] is block and lpn in waiting for lpn in lpns):
                self.program(block, "host")
                self.advance(front)

    def program(self, block: Block, cause: str) -> None:
        """Programs the unit of a block that is full, or that nothing more comes to."""
        config = self.config
        unit, written = config.unit(block.front), len(block.pages) - block.programmed
        ns, pages = self.program_time(block), unit // config.logical
        block.pages += [None] * (unit - written)
        block.programmed += unit
        full = written // config.logical if cause == "host" else pages
        self.outcome.programs[cause] += full
        self.outcome.programs["pad"] += pages - full
        self.outcome.times[ns] += pages
        data = config.command + pages * config.transfer(config.logical)
        self.emit(block.lun, "W", [(True, data, False), (False, ns, False)], "pad" if full == 0 else cause)
        if block.programmed == config.block_slots(block.front):
            at = self.luns[block.lun]
            (at.cached if block.front == CACHE else at.closed).append(block)
            del at.open[block.front]

    # --- times -----------------------------------------------------------------------------

    def read_time(self, block: Block, slot: int) -> int:
        """Returns how long the cells take to read a slot."""
        if block.front == CACHE:
            return self.config.read[0] if self.config.slc_read is None else self.config.slc_read
        kind = self.types[slot // self.config.logical]
        return self.config.read[kind % len(self.config.read)]

    def program_time(self, block: Block) -> int:
        """Returns how long the cells take to program the next unit of a block."""
        times = self.config.program
        if block.front == CACHE:
            return times[0] if self.config.slc_program is None else self.config.slc_program
        return times[self.types[block.programmed // self.config.logical] % len(times)]

    def emit_read(self, lun: int, ns: int, slots: int, cause: str) -> None:
        """Notes a read of some slots of a NAND page."""
        self.outcome.reads[cause] += 1
        data = self.config.transfer(slots)
        stages = [(True, self.config.command, True), (False, ns, False), (True, data, False)]
        self.emit(lun, "R", stages, cause)

    def emit_erase(self, block: Block, cause: str) -> None:
        """Notes an erase."""
        slow = block.front == DATA or self.config.slc_erase is None
        ns = self.config.erase if slow else self.config.slc_erase
        assert ns is not None
        self.outcome.erases[cause] += 1
        self.emit(block.lun, "E", [(True, self.config.command, True), (False, ns, False)], cause)

    def emit(self, lun: int, op: str, stages: list[tuple[bool, int, bool]], cause: str) -> None:
        """Notes an operation."""
        self.outcome.busy[cause] += sum(ns for _, ns, _ in stages)
        self.works.append(cells.Work(lun, op, stages))


class Device(cells.Device):
    """The device: a queue in order of arrival, above the FTL and the array, and folding while it is idle."""

    def __init__(self, config: Config, requests: Sequence[Request], mapping: type[Mapping] = Mapping) -> None:
        super().__init__(config, requests)
        self.config: Config = config
        self.slc = Outcome(self.completions)
        self.ftl = mapping(config, self.slc)
        self.to_come = len(requests)
        """Requests that have not arrived."""
        self.idle_since: int | None = None
        """Since when the device has held no request."""
        self.folding: Counter[int] = Counter()
        """Operations of folds under way, by LUN."""

    def run(self) -> list[int]:
        while self.due:
            now, resource, index = heapq.heappop(self.due)
            channel = resource - len(self.queues)
            if resource == self.arrivals:
                self.to_come -= 1
                self.arrive(index, now)
            elif resource < self.arrivals:
                self.elapse(resource, channel, now)
            if not self.due or self.due[0][0] > now or self.due[0][1] >= self.arrivals:
                self.bind(now)
            if not self.due or self.due[0][0] > now:
                self.fold_idle(now)
        return self.completions

    def elapse(self, resource: int, channel: int, now: int) -> None:
        """Ends the stage of a die, or of a bus and the die that has it."""
        if channel < 0:
            return self.end(resource, now)
        die = self.users[channel]
        assert die is not None
        self.users[channel] = None
        self.grant(channel, now)
        self.end(die, now)

    def may_issue(self, op: str, lpns: range) -> bool:
        """Whether the oldest request may issue."""
        if op == "F":
            return self.under_way == 0 and not any(self.folding.values())
        if self.config.depth is not None and self.under_way >= self.config.depth:
            return False
        touched = self.ftl.touched(op, lpns) if self.config.scheduler == "noop" else set()
        return not any(self.queues[lun] for lun in touched)

    def issue(self, index: int, now: int) -> None:
        """Sends a request's operations to their dies; one that has none completes at once."""
        _, op, first, pages = self.requests[index]
        works = self.ftl.serve(op, range(first, first + pages))
        self.pages_left[index] = len(works)
        self.under_way += bool(works)
        self.completions[index] = now
        self.send(works, index, now)

    def send(self, works: Sequence[cells.Work], index: int, now: int) -> None:
        """Sends operations to their dies."""
        for work in works:
            stages = [stage for stage in work.stages if stage[1] > 0]
            self.queues[work.lun].append(Operation(index, work.op, stages))
            if len(self.queues[work.lun]) == 1:
                self.begin(work.lun, now)

    def end(self, die: int, now: int) -> None:
        operation = self.queues[die][0]
        if operation.request >= 0:
            super().end(die, now)
            return
        operation.rest.pop(0)
        if not operation.rest:
            self.queues[die].popleft()
            self.folding[die] -= 1
        if self.queues[die]:
            self.begin(die, now)

    def fold_idle(self, now: int) -> None:
        """Lets each LUN that has nothing to do fold a block, once the device has been idle for long enough.
        All else that is due now has happened.
        """
        if self.under_way or self.queue:
            self.idle_since = None
            return
        if self.idle_since is None:
            self.idle_since = now
            if self.config.idle is not None:
                heapq.heappush(self.due, (now + self.config.idle, self.arrivals + 1, 0))
        if self.to_come and self.config.idle is not None and now >= self.idle_since + self.config.idle:
            for lun in self.ready():
                self.ftl.fold(lun)
                works = self.ftl.handed_over()
                self.folding[lun] += len(works)
                self.slc.rare["idle"] += 1
                self.send(works, -1, now)

    def ready(self) -> Iterator[int]:
        """Yields the LUNs that have nothing to do and a block to fold."""
        for lun, at in enumerate(self.ftl.luns):
            if not self.queues[lun] and at.cached:
                yield lun


def run(
    config: Config,
    requests: Sequence[Request],
    mapping: type[Mapping] = Mapping,
    device: type[Device] = Device,
) -> Outcome:
    """Returns what becomes of requests in order of arrival, whose op is "R", "W", "WF" (with FUA), "F" or
    "T" (a trim).
    """
    at_work = device(config, requests, mapping)
    at_work.run()
    return at_work.slc
