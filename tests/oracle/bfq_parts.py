"""The parts of `bfq`: a case, processes and their shares, and the device's rate."""

from __future__ import annotations

from dataclasses import dataclass, field

from . import kernel
from .generate import GEOMETRY
from .mapplus import Request

MS = 1_000_000
SECTOR = 512
DEFAULT = 16384


@dataclass(frozen=True)
class Case:
    """A configuration; None stands for no limit, or for ``auto``."""

    weights: tuple[int, ...]
    queue_depth: int | None = 128
    device_depth: int | None = 1
    slice_idle: int = 8 * MS
    strict: bool = False
    timeout: int = 125 * MS
    fifo_expire: int = 125 * MS
    back: int = 16 << 20
    penalty: int = 2
    max_budget: int | None = None

    def settings(self, traces: list[str]) -> dict[str, str | int | bool]:
        """Returns the case as ftlab's keys; each tenant has the trace of its number."""
        own: dict[str, str | int | bool] = {}
        for number, (weight, trace) in enumerate(zip(self.weights, traces, strict=True)):
            own[f"tenant.t{number}.weight"] = weight
            own[f"tenant.t{number}.trace"] = trace
            own[f"tenant.t{number}.range"] = "0B..256KiB"
        return {
            **GEOMETRY,
            "ftl.kind": "page",
            "flash.page": f"{kernel.PAGE}B",
            "flash.read": f"{kernel.READ_NS}ns",
            "flash.program": f"{kernel.PROGRAM_NS}ns",
            "host.scheduler": "bfq",
            "host.queue_depth": "unlimited" if self.queue_depth is None else self.queue_depth,
            "device.queue_depth": "unlimited" if self.device_depth is None else self.device_depth,
            "host.slice_idle": f"{self.slice_idle}ns",
            "host.strict_guarantees": self.strict,
            "host.timeout_sync": f"{self.timeout}ns",
            "host.fifo_expire_sync": f"{self.fifo_expire}ns",
            "host.back_seek_max": f"{self.back}B",
            "host.back_seek_penalty": self.penalty,
            "host.max_budget": "auto" if self.max_budget is None else f"{self.max_budget}B",
            **own,
        }


def start(request: Request) -> int:
    return request.offset // SECTOR


def sectors(request: Request) -> int:
    return -(-(request.offset + request.size) // SECTOR) - start(request)


def far(last: int, request: Request) -> bool:
    return last != 0 and abs(start(request) - last) > 800 and sectors(request) < 64


@dataclass(eq=False)
class Process:
    """A process: its requests, its habits and its share."""

    weight: int
    max_budget: int
    last_end: int
    since: int
    waiting: list[Request] = field(default_factory=list)
    next: Request | None = None
    late: Request | None = None
    out: int = 0
    busy: bool = False
    resumes: bool = False
    looked: bool = False
    new: bool = True
    quick: bool = True
    bound: bool = True
    rest: int = 0
    thinks: int = 0
    thought: int = 0
    seeks: tuple[bool, ...] = (*[False] * 31, True)
    last_sector: int = 0
    timeout: int = 0
    budget: int = 0
    service: int = 0
    start: int = 0
    finish: int = 0
    inserted: int = 0

    @property
    def left(self) -> int:
        return self.budget - self.service

    @property
    def seeky(self) -> bool:
        return sum(self.seeks) > 19

    @property
    def streams(self) -> bool:
        return not self.seeky and self.bound and self.quick


def span(service: int, weight: int) -> int:
    return (service << 22) // weight


class Shares:
    """B-WF2Q+: lists of active and idle processes."""

    def __init__(self) -> None:
        self.active: list[Process] = []
        self.idle: list[Process] = []
        self.vtime = 0
        self.sum = 0
        self.next: Process | None = None
        self.served: Process | None = None
        self.insertions = 0

    def put(self, process: Process, lists: list[Process]) -> None:
        self.insertions += 1
        process.inserted = self.insertions
        lists.append(process)

    @staticmethod
    def order(process: Process) -> tuple[int, int]:
        return process.finish, process.inserted

    def forget(self) -> None:
        if not self.idle:
            return
        last, first = max(self.idle, key=self.order), min(self.idle, key=self.order)
        if not self.active and last.finish <= self.vtime:
            self.vtime = last.finish
        if first.finish <= self.vtime:
            self.idle.remove(first)
            self.sum -= first.weight

    def pick(self, changed: Process | None, jumps: bool) -> None:
        if changed is not None and changed is not self.next:
            earlier = self.next is None or (changed.start <= self.vtime and changed.finish < self.next.finish)
            if earlier:
                self.next = changed
                return
        if not self.active:
            self.next = None
            return
        at = max(self.vtime, min(process.start for process in self.active))
        if jumps and at > self.vtime:
            self.vtime = at
            self.forget()
        self.next = min((p for p in self.active if p.start <= at), key=self.order)

    def activate(self, process: Process, resumes: bool) -> None:
        back = resumes and self.vtime > process.finish
        earliest = process.finish if back else self.vtime
        if process in self.idle:
            self.idle.remove(process)
            process.start = max(earliest, process.finish)
        else:
            process.start = earliest
            self.sum += process.weight
        process.finish = process.start + span(process.budget, process.weight)
        if back and process.finish < self.vtime:
            process.start += self.vtime - process.finish
            process.finish = self.vtime
        self.put(process, self.active)
        self.pick(process, self.served is None)

    def renew(self, process: Process, ended: bool) -> None:
        if process is self.served:
            process.start += span(process.service, process.weight)
        else:
            self.active.remove(process)
        process.finish = process.start + span(process.budget, process.weight)
        self.put(process, self.active)
        self.pick(process, self.served is None or ended)

    def retire(self, process: Process) -> None:
        process.finish = process.start + span(process.service, process.weight)
        self.served = None
        if process.finish > self.vtime:
            self.put(process, self.idle)
        else:
            self.sum -= process.weight

    def begin(self) -> Process | None:
        if self.next is None:
            return None
        self.served = self.next
        self.active.remove(self.served)
        self.pick(None, False)
        return self.served

    def serve(self, process: Process, service: int) -> None:
        process.service += service
        self.vtime += span(service, self.sum)
        self.forget()


class Rate:
    """The estimate of the peak rate."""

    def __init__(self, max_budget: int | None, timeout: int) -> None:
        self.fixed = max_budget is not None
        self.max_budget = DEFAULT if max_budget is None else max_budget // SECTOR
        self.timeout_ms = timeout // MS
        self.rate = 22_000
        self.sample: list[tuple[int, bool]] = []  # sectors, and whether it follows
        self.first = self.last = self.span = self.done = 0
        self.largest = 0
        self.position = 0

    def dispatched(self, request: Request, now: int, out: int) -> None:
        size = sectors(request)
        paused = now - self.last > 100 * MS and out == 0
        if self.sample and not paused:
            follows = (out > 0 or now - self.done < 2 * MS) and not far(self.position, request)
            self.sample.append((size, follows))
            self.largest = size if len(self.sample) % 32 == 0 else max(size, self.largest)
            self.span = now - self.first
        if self.sample and (paused or self.span >= 1000 * MS):
            self.end()
            self.sample = []
        if not self.sample:
            self.sample, self.first, self.largest = [(size, False)], now, size
        self.position = start(request) + size
        self.last = now

    def completed(self, now: int) -> None:
        us = (now - self.done) // 1000
        if us > 2000 and (self.largest << 16) // us < 64:
            self.end()
            self.sample = []
        self.done = now

    def end(self) -> None:
        count = len(self.sample)
        if count < 32 or self.span < 300 * MS:
            return
        self.span = max(self.span, self.done - self.first)
        follow = sum(follows for _, follows in self.sample)
        rate = (sum(size for size, _ in self.sample) << 16) // (self.span // 1000)
        if (follow < 3 * count // 4 and rate <= self.rate) or rate > 20 << 16:
            return
        part = 10 - min(8, 9 * follow // count * self.span // (1000 * MS))
        self.rate = max(1, self.rate * (part - 1) // part + rate // part)
        if not self.fixed:
            self.max_budget = self.rate * 1000 * self.timeout_ms >> 16
