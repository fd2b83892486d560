"""A model of link, controller, write buffer and one chip; it computes when each request completes.

It was written from the rules of the write buffer (devices.md, "The way of a command"), only to be compared
with ftlab. Requests cover whole pages, a logical page is a NAND page, and there is no garbage collection.

Where these rules leave a choice open, the model follows the documentation of ftlab's buffer. These readings
are ftlab's own:

- A page is on its way to the flash from the time when it is handed over. One chip has one such page at a
  time, whose program waits in the chip's line behind the commands that have issued before.
- A page is handed over once everything else that is due at the time has happened, and only if the device
  holds no command, or destaging has begun, or a flush or a write waits. No page is handed over after the last
  request has completed.
- Room that a program frees is taken before anything else that is due at the time happens. Room that
  commands free as they issue is taken when no other command can issue.
- While writes wait for room, only writes that need room wait behind them.
- A flush waits for the pages that have room when it comes. A page that replaces one of these counts among
  them.
- A page that is on its way when it is written again needs further room for its new version.
- Policy "sorted" is policy "block" with one block.
- Policy "block": the pages of the chosen block leave one by one. The next block is chosen when the last of
  these pages has been handed over and a further page has to leave. Pages that are written to a chosen block
      later
  count anew.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial

from . import controller
from .controller import FLASH, HOST, Clock, Controller, Servers
from .mapplus import Record
from .read_ahead import ReadAhead, Waiting


@dataclass(frozen=True)
class Config(controller.Config):
    """The settings of the stages before and after the buffer, and those of the buffer."""

    scheduler: str = "noop"
    """The device's scheduler; of those that ftlab has, the model knows "noop" and "direct"."""
    pages: int = 64
    """Pages that the buffer has room for."""
    policy: str = "fifo"
    high: int = 80
    """Destaging begins above this share of the buffer, in percent, and ends below the share ``low``."""
    low: int = 60
    protected: bool = False
    block_pages: int = 64
    ahead: int = 0
    """How many pages the device reads ahead."""

    def settings(self) -> dict[str, str | int | bool]:
        """Returns these settings under ftlab's names for them."""
        return {
            **super().settings(),
            "device.scheduler": self.scheduler,
            "flash.pages_per_block": self.block_pages,
            "device.write_buffer": f"{self.pages * self.page}B",
            "device.write_buffer_policy": self.policy,
            "device.write_buffer_high": f"{self.high}%",
            "device.write_buffer_low": f"{self.low}%",
            "device.power_loss_protection": self.protected,
            "device.read_ahead": f"{self.ahead * self.page}B",
        }


@dataclass
class Figures:
    """What the buffer did; the names are those of ftlab's result."""

    hits: int = 0
    coalesced: int = 0
    destaged: int = 0
    stalls: int = 0
    wait_ns: int = 0
    high_water: int = 0


@dataclass
class Outcome:
    """For each request, when it completed, ns, and how many of its pages were answered from the buffer."""

    done: list[int]
    buffered: list[int]
    figures: Figures = field(default_factory=Figures)
    read_ahead: int = 0
    """Pages read ahead."""


@dataclass
class Command:
    """A request that the device holds."""

    number: int
    op: str
    lpns: range
    size: int
    since: int = 0
    """When the command began to wait for room."""
    placed: int = 0
    """How many of the command's pages have got room."""


@dataclass
class Line:
    """The pages that wait to be destaged, with their rooms (numbers), and the order in which they leave."""

    policy: str
    block_pages: int
    rooms: dict[int, int] = field(default_factory=dict)
    next: dict[int, None] = field(default_factory=dict)
    """The pages that leave next, in this order."""
    blocks: dict[int, set[int]] = field(default_factory=dict)
    """Under policy "block", the other pages. The block whose number of pages changed longest ago is first."""

    def block(self, lpn: int) -> int:
        return 0 if self.policy == "sorted" else lpn // self.block_pages

    def add(self, lpn: int, room: int) -> None:
        self.rooms[lpn] = room
        if self.policy in ("block", "sorted"):
            block = self.block(lpn)
            self.blocks[block] = self.blocks.pop(block, set()) | {lpn}
        else:
            self.next[lpn] = None

    def replace(self, lpn: int) -> None:
        """Notes that a page was written again."""
        if self.policy == "lru":
            del self.next[lpn]
            self.next[lpn] = None

    def remove(self, lpn: int) -> int:
        """Removes a page; returns its room."""
        if lpn in self.next:
            del self.next[lpn]
        else:
            block = self.block(lpn)
            left = self.blocks.pop(block) - {lpn}
            if left:
                self.blocks[block] = left
        return self.rooms.pop(lpn)

    def choose(self) -> None:
        """Chooses the next block, if no page of the chosen block is left."""
        if not self.next and self.blocks:
            block = max(self.blocks, key=lambda block: len(self.blocks[block]))
            self.next = dict.fromkeys(sorted(self.blocks.pop(block)))


class Device:
    """The device with the commands that it holds."""

    def __init__(self, config: Config, requests: int) -> None:
        self.config = config
        self.clock = Clock()
        self.controller = Controller(config, self.clock)
        self.chip = Servers(self.clock, whose=FLASH)
        self.outcome = Outcome([0] * requests, [0] * requests)
        self.figures = self.outcome.figures
        self.left = requests
        self.held = 0
        self.queue: deque[Command] = deque()
        self.line = Line(config.policy, config.block_pages)
        self.ahead = ReadAhead(config.ahead)
        self.flying: tuple[int, int] | None = None
        """The page on its way to the flash, and its room."""
        self.dropped = False
        """Whether the page on its way to the flash was dropped meanwhile."""
        self.rooms = 0
        """Rooms given so far."""
        self.destaging = False
        self.writes: deque[Command] = deque()
        self.flushes: deque[tuple[Command, set[int]]] = deque()
        """The flushes that wait, each with the rooms that it waits for."""

    def used(self) -> int:
        return len(self.line.rooms) + (self.flying is not None)

    def has_room(self, lpn: int) -> bool:
        """Whether a room is in use for this page."""
        return lpn in self.line.rooms or (self.flying is not None and self.flying[0] == lpn)

    def holds(self, lpn: int) -> bool:
        """Whether reads find this page in the buffer."""
        flying = self.flying is not None and self.flying[0] == lpn and not self.dropped
        return flying or lpn in self.line.rooms

    def arrive(self, command: Command) -> None:
        self.held += 1
        self.controller.take(command.op, command.size, partial(self.enter, command))

    def enter(self, command: Command) -> None:
        """Takes a command into the buffer, or past it into the queue."""
        op, protected = command.op, self.config.protected
        if op == "R":
            self.ahead.follow(command.lpns)
        if self.config.pages and (op == "W" or (op == "WF" and protected)):
            self.write(command)
        elif op == "R":
            self.look(command)
        elif op == "F" and protected:
            self.answer(command)
        elif op == "F" and self.used():
            flying = set() if self.flying is None else {self.flying[1]}
            self.flushes.append((command, flying.union(self.line.rooms.values())))
        else:
            self.queue.append(command)

    def found(self, lpn: int) -> bool:
        """Whether the device's RAM has a page."""
        return self.holds(lpn) or self.ahead.has(lpn)

    def waits(self, lpns: range) -> bool:
        """Whether what the RAM does not have of these pages is on its way there."""
        left = [lpn for lpn in lpns if not self.found(lpn)]
        return bool(left) and all(map(self.ahead.coming, left))

    def look(self, command: Command) -> None:
        """Answers a read from RAM, lets it wait for pages that are on their way there, or queues it."""
        if all(map(self.found, command.lpns)):
            self.hit(command, len(command.lpns))
            self.answer(command)
        elif self.waits(command.lpns):
            self.ahead.waiting.append(Waiting(command.lpns, partial(self.look, command)))
        else:
            self.queue.append(command)

    def write(self, command: Command) -> None:
        if not self.writes and self.place(command):
            return self.answer(command)
        command.since = self.clock.now
        self.writes.append(command)
        self.figures.stalls += 1

    def place(self, command: Command) -> bool:
        """Gives room to a command's pages while there is room; returns whether all pages have got room."""
        for lpn in command.lpns[command.placed :]:
            if lpn in self.line.rooms:
                self.line.replace(lpn)
                self.figures.coalesced += 1
            elif self.used() < self.config.pages:
                self.rooms += 1
                self.line.add(lpn, self.rooms)
                self.figures.high_water = max(self.figures.high_water, self.used())
                self.destaging |= self.used() > self.config.pages * self.config.high // 100
            else:
                return False
            self.ahead.drop(range(lpn, lpn + 1))
            command.placed += 1
        return True

    def free(self, room: int) -> None:
        """Notes that a room is no longer in use."""
        if self.used() < self.config.pages * self.config.low // 100:
            self.destaging = False
        for _, rooms in self.flushes:
            rooms.discard(room)

    def admit(self) -> bool:
        """Lets the flushes and writes that need not wait go on; returns whether a flush joined the queue."""
        joined = False
        while self.flushes and not self.flushes[0][1]:
            self.queue.append(self.flushes.popleft()[0])
            joined = True
        while self.writes and self.place(self.writes[0]):
            command = self.writes.popleft()
            self.figures.wait_ns += self.clock.now - command.since
            self.answer(command)
        return joined

    def hit(self, command: Command, pages: int) -> None:
        self.ahead.take(command.lpns)
        self.outcome.buffered[command.number] += pages
        self.figures.hits += pages

    def end_instant(self) -> None:
        """Lets commands issue and pages go to the flash, once all else that is due has happened."""
        self.issue()
        while self.admit():
            self.issue()
        self.destage()
        self.read_on()

    def read_on(self) -> None:
        """Hands the wanted pages to the flash, to be read ahead."""
        if self.left:
            for lpn in self.ahead.hand(self.has_room):
                self.chip.serve(self.config.read, partial(self.ahead.landed, lpn, self.waits))

    def issue(self) -> None:
        """Issues commands from the head of the queue as long as the scheduler lets them issue."""
        while self.queue and (self.chip.free or self.ignores_chip(self.queue[0])):
            command = self.queue.popleft()
            ns = 0
            if command.op == "R":
                found = sum(map(self.found, command.lpns))
                self.hit(command, found)
                ns = self.config.read * (len(command.lpns) - found)
            elif command.op != "F":
                self.drop(command.lpns)
                ns = 0 if command.op == "T" else self.config.program * len(command.lpns)
            self.chip.serve(ns, partial(self.answer, command))

    def ignores_chip(self, command: Command) -> bool:
        """Whether a command may issue although the chip is not idle."""
        return self.config.scheduler == "direct" and command.op != "F"

    def drop(self, lpns: range) -> None:
        """Drops pages from the RAM; the room of a page on its way to the flash stays in use."""
        self.ahead.drop(lpns)
        for lpn in lpns:
            if lpn in self.line.rooms:
                self.free(self.line.remove(lpn))
            self.dropped |= self.flying is not None and self.flying[0] == lpn

    def destage(self) -> None:
        """Hands a page to the flash, if a page has to leave now and none is on its way."""
        wanted = self.held == 0 or self.destaging or self.flushes or self.writes
        while self.left and wanted and self.line.rooms:
            self.line.choose()
            if self.flying:
                return
            lpn = next(iter(self.line.next))
            self.flying, self.dropped = (lpn, self.line.remove(lpn)), False
            self.figures.destaged += 1
            self.chip.serve(self.config.program, partial(self.landed, self.flying[1]))

    def landed(self, room: int) -> None:
        self.flying = None
        self.free(room)
        self.admit()

    def answer(self, command: Command) -> None:
        self.controller.answer(command.op, command.size, partial(self.answered, command))

    def answered(self, command: Command) -> None:
        self.outcome.done[command.number] = self.clock.now
        self.held -= 1
        self.left -= 1


def run(config: Config, trace: Sequence[Record]) -> Outcome:
    """Returns what becomes of the requests of a trace, whose op is "R", "W", "WF", "T" or "F"."""
    device = Device(config, len(trace))
    for number, (arrival, op, offset, size) in enumerate(trace):
        lpns = range(offset // config.page, (offset + size) // config.page)
        command = Command(number, op, lpns, size)
        device.clock.at(arrival, HOST, number, partial(device.arrive, command))
    device.clock.run(device.end_instant)
    device.outcome.read_ahead = device.ahead.read
    return device.outcome
