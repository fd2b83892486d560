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
    latency: tuple[int, int] = (0, 0)
    """The fixed latencies of a read and of a write."""
    read: int = 35_000
    program: int = 350_000
    page: int = 4096

    def settings(self) -> dict[str, str | int]:
        """Returns the same settings as keys of ftlab."""
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
            "device.latency_read": f"{self.latency[0]}ns",
            "device.latency_write": f"{self.latency[1]}ns",
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

    def run(self) -> None:
        while self.events:
            self.now, _, _, what = heapq.heappop(self.events)
            what()


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


def completions(config: Config, trace: Sequence[Record]) -> list[int]:
    """Returns the time, in ns, at which each request of the trace completes; its op is "R" or "W"."""
    clock = Clock()
    into = Servers(clock)
    out = into if config.half_duplex else Servers(clock)
    cores, chip = Servers(clock, config.cores), Servers(clock, whose=FLASH)
    done = [0] * len(trace)

    def transfer(size: int) -> int:
        rate = config.bytes_per_s
        return 0 if rate is None else (size * 10**9 + rate // 2) // rate

    def send(number: int, op: str, size: int) -> None:
        pages = size // config.page
        reads = op == "R"
        held = 0 if config.bytes_per_s is None else config.link_command
        flash = pages * (config.read if reads else config.program)

        def received() -> None:
            cores.serve(config.command + config.unit * pages, worked_on)

        def worked_on() -> None:
            into.serve(0 if reads else transfer(size), lambda: chip.serve(flash, finished))

        def finished() -> None:
            out.serve(transfer(size) if reads else 0, lambda: out.serve(held, answered))

        def answered() -> None:
            done[number] = clock.now + config.latency[0 if reads else 1]

        into.serve(held, received)

    for number, (arrival, op, _, size) in enumerate(trace):
        clock.at(arrival, HOST, number, partial(send, number, op, size))
    clock.run()
    return done
