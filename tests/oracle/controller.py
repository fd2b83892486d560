"""A model of controller, link and one chip as servers with queues; it computes when each request completes.

It was written from the description of the stages (docs/controller.md), only to be compared with ftlab.
Requests cover whole pages and there is no garbage collection, so the flash takes a fixed time for each page.
"""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

from .mapplus import Record


@dataclass(frozen=True)
class Config:
    """The model's settings; times are in ns."""

    bytes_per_s: int | None = None
    half_duplex: bool = False
    link_command: int = 0
    cores: int = 1
    command: int = 0
    unit: int = 0
    command_write: int | None = None
    """What a core takes for a write, where that is another time than for a read; likewise ``unit_write``."""
    unit_write: int | None = None
    latency: tuple[int, int] = (0, 0)
    """The fixed latencies of a read and of a write."""
    latency_other: int = 0
    """The fixed latency of a trim or flush."""
    read: int = 35_000
    program: int = 350_000
    page: int = 4096

    def settings(self) -> dict[str, str | int]:
        """Returns these settings under ftlab's names for them."""
        return {
            "ftl.kind": "page",
            "host.scheduler": "noop",
            "host.queue_depth": "unlimited",
            "device.queue_depth": "unlimited",
            "flash.page": f"{self.page}B",
            "flash.read": f"{self.read}ns",
            "flash.program": f"{self.program}ns",
            "device.link": "none" if self.bytes_per_s is None else f"{self.bytes_per_s}B/s",
            "device.link_duplex": "half" if self.half_duplex else "full",
            "device.link_command": f"{self.link_command}ns",
            "device.cores": self.cores,
            "device.command_time": f"{self.command}ns",
            "device.unit_time": f"{self.unit}ns",
            "device.command_time_write": "command_time"
            if self.command_write is None
            else f"{self.command_write}ns",
            "device.unit_time_write": "unit_time" if self.unit_write is None else f"{self.unit_write}ns",
            "device.latency_read": f"{self.latency[0]}ns",
            "device.latency_write": f"{self.latency[1]}ns",
            "device.latency_other": f"{self.latency_other}ns",
        }


FLASH, CONTROLLER, HOST = range(3)
"""The order of events at the same time: first the flash finishes, then link and cores, then requests arrive.
"""


class Clock:
    """A queue of events in order of time. Events at the same time are ordered by the three kinds above;
    events of the same kind happen in the order in which they were requested.
    """

    def __init__(self) -> None:
        self.now = 0
        self.asked = 0
        self.events: list[tuple[int, int, int, Callable[[], None]]] = []

    def number(self) -> int:
        self.asked += 1
        return self.asked

    def at(self, ns: int, whose: int, number: int, what: Callable[[], None]) -> None:
        heapq.heappush(self.events, (ns, whose, number, what))

    def run(self, at_end: Callable[[], None] = lambda: None) -> None:
        """Lets all events happen; calls ``at_end`` each time before time moves on."""
        while self.events:
            self.now, _, _, what = heapq.heappop(self.events)
            what()
            if not self.events or self.events[0][0] > self.now:
                at_end()


class Servers:
    """Servers with a common queue; each serves one customer at a time, in order of arrival."""

    def __init__(self, clock: Clock, count: int = 1, whose: int = CONTROLLER) -> None:
        self.clock = clock
        self.free = count
        self.whose = whose
        self.line: deque[tuple[int, int, Callable[[], None]]] = deque()

    def serve(self, ns: int, then: Callable[[], None]) -> None:
        if ns == 0:
            return then()
        self.line.append((ns, self.clock.number(), then))
        self.begin()

    def begin(self) -> None:
        while self.free and self.line:
            ns, number, then = self.line.popleft()
            self.free -= 1
            self.clock.at(self.clock.now + ns, self.whose, number, partial(self.end, then))

    def end(self, then: Callable[[], None]) -> None:
        self.free += 1
        self.begin()
        then()


class Controller:
    """Link, cores and fixed latencies, which commands go through before and after the flash.

    Operations are "R", "W", "WF" (a write with FUA), "T" and "F".
    """

    def __init__(self, config: Config, clock: Clock) -> None:
        self.config = config
        self.clock = clock
        self.into = Servers(clock)
        self.out = self.into if config.half_duplex else Servers(clock)
        self.cores = Servers(clock, config.cores)
        self.held = 0 if config.bytes_per_s is None else config.link_command

    def transfer(self, size: int) -> int:
        rate = self.config.bytes_per_s
        return 0 if rate is None else (size * 10**9 + rate // 2) // rate

    def work(self, op: str, pages: int) -> int:
        command, unit = self.config.command, self.config.unit
        if op.startswith("W"):
            command = command if self.config.command_write is None else self.config.command_write
            unit = unit if self.config.unit_write is None else self.config.unit_write
        return command + unit * pages

    def take(self, op: str, size: int, then: Callable[[], None]) -> None:
        """Carries a command to the device, works on it and carries its data; then calls ``then``."""
        work = self.work(op, size // self.config.page)
        data = self.transfer(size) if op.startswith("W") else 0
        self.into.serve(self.held, lambda: self.cores.serve(work, lambda: self.into.serve(data, then)))

    def answer(self, op: str, size: int, then: Callable[[], None]) -> None:
        """Carries data and answer of a command to the host; then calls ``then``."""
        data = self.transfer(size) if op == "R" else 0
        self.out.serve(data, lambda: self.out.serve(self.held, lambda: self.delay(op, then)))

    def delay(self, op: str, then: Callable[[], None]) -> None:
        of_op = {"R": self.config.latency[0], "W": self.config.latency[1]}
        ns = of_op.get(op[0], self.config.latency_other)
        if ns == 0:
            return then()
        self.clock.at(self.clock.now + ns, CONTROLLER, self.clock.number(), then)


def completions(config: Config, trace: Sequence[Record]) -> list[int]:
    """Returns the time, in ns, at which each request of the trace completes; its op is "R" or "W"."""
    clock = Clock()
    controller, chip = Controller(config, clock), Servers(clock, whose=FLASH)
    done = [0] * len(trace)

    def send(number: int, op: str, size: int) -> None:
        flash = (config.read if op == "R" else config.program) * (size // config.page)

        def answered() -> None:
            done[number] = clock.now

        controller.take(op, size, lambda: chip.serve(flash, lambda: controller.answer(op, size, answered)))

    for number, (arrival, op, _, size) in enumerate(trace):
        clock.at(arrival, HOST, number, partial(send, number, op, size))
    clock.run()
    return done
