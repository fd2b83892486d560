"""A second implementation of bfq, with the plain device of `kernel`.

It was written from the rules of the kernel's source (Linux 6.12, `low_latency` off) with what
docs/linux-schedulers.md leaves out left out. Requests enter when they arrive, whether the device has room or
not; queues are lists that are searched anew for each choice; timers are events of their own.

Times are integer nanoseconds, sizes and positions sectors of 512 bytes.
"""

from __future__ import annotations

import random

from . import kernel
from .bfq_parts import DEFAULT, MS, SECTOR, Case, Process, Rate, Shares, far, sectors, start
from .mapplus import Record, Request, pages_of

TIMEOUT_MS = 125


class Bfq(kernel.Scheduler):
    """Turns of processes."""

    def __init__(self, case: Case) -> None:
        self.case_of_bfq = case
        self.waiting = []
        self.idle_time = max(case.slice_idle, 8 * MS) if case.strict else case.slice_idle
        self.shares = Shares()
        self.rate = Rate(case.max_budget, case.timeout)
        self.processes: dict[int, Process] = {}
        self.turn: Process | None = None
        self.rests = False
        self.began = self.rest_began = 0
        self.count = 0
        self.out = self.most_out = self.samples = 0
        self.several: bool | None = None
        self.ends = dict.fromkeys(("idled", "timed_out", "exhausted", "emptied", "preempted"), 0)

    def largest(self) -> int:
        return DEFAULT if self.count < 194 else self.rate.max_budget

    def uneven(self, process: Process) -> bool:
        weights = {p.weight for p in self.processes.values() if p.busy or p.out}
        return len(weights) > 1 and process.weight != min(weights)

    def alone(self) -> bool:
        return sum(p.busy for p in self.processes.values()) == 1

    def worth(self, process: Process) -> bool:
        if self.case_of_bfq.strict:
            return True
        gains = self.several is False and process.streams
        return self.idle_time > 0 and (gains or self.uneven(process) or self.alone())

    def may_time_out(self, process: Process, now: int) -> bool:
        return (not self.rests or process.left >= process.budget // 3) and now >= process.timeout

    def nearer(self, one: Request | None, other: Request | None, last: int) -> Request | None:
        if one is None or other is None:
            return one or other

        def cost(request: Request) -> tuple[int, int, int]:
            at = start(request)
            if at >= last:
                return 0, at - last, -at
            if at + self.case_of_bfq.back // SECTOR >= last:
                return 0, (last - at) * self.case_of_bfq.penalty, -at
            return 1, 0, at

        return other if cost(other) < cost(one) else one

    def insert(self, request: Request, stream: int, now: int) -> None:
        self.waiting.append(request)
        if request.op == "F":
            return
        if stream not in self.processes:
            weight = self.case_of_bfq.weights[stream]
            self.processes[stream] = Process(weight, 2 * self.largest() // 3, now, now)
        own = self.processes[stream]
        self.arrives(own, request, now)
        own.waiting.append(request)
        before = own.next
        own.next = self.nearer(before, request, self.rate.position)
        if not own.busy:
            self.becomes_busy(own, now)
        elif own.next is not before and own is not self.turn:
            budget = max(own.max_budget, sectors(own.next or request), own.service)
            if budget != own.budget:
                own.budget = budget
                self.shares.renew(own, False)
        if own is self.turn and self.rests:
            small = len(own.waiting) == 1 and sectors(request) < 32
            if small and self.several is False and own.streams and now < own.timeout:
                return
            self.rests, self.timer = False, None
            if now >= own.timeout:
                self.end(now, "timed_out")

    def arrives(self, own: Process, request: Request, now: int) -> None:
        if not own.out and not own.busy:
            own.thinks = (7 * own.thinks + 256) // 8
            own.thought = (7 * own.thought + 256 * min(now - own.last_end, 2 * self.idle_time)) // 8
        if self.idle_time > 0:
            own.quick = not (own.thinks > 80 and (own.thought + 128) // own.thinks > self.idle_time // 2)
        own.seeks = (*own.seeks[1:], far(own.last_sector, request))
        own.last_sector = start(request) + sectors(request)
        if not own.waiting and not own.out:
            own.rest += now - own.last_end
        if not own.new:
            whole = now - own.since
            own.bound = own.rest * 5 <= whole
            if whole > 200 * MS:
                own.since, own.rest = now - whole // 2, own.rest // 2

    def becomes_busy(self, own: Process, now: int) -> None:
        assert own.next is not None
        resumes = own.resumes and now <= own.last_end + 3 * self.idle_time and own.left > 0
        own.budget = min(own.left, own.max_budget) if resumes else max(own.max_budget, sectors(own.next))
        own.service = 0
        own.resumes = own.new = False
        own.busy = True
        self.shares.activate(own, resumes)
        other = self.turn
        if other and (resumes or own.weight > other.weight or not self.worth(other)) and self.shares.next:
            self.end(now, "preempted")

    def end(self, now: int, why: str) -> None:
        own = self.turn
        assert own is not None
        self.ends[why] += 1
        us = max(0, (self.rest_began if self.from_timer else now) - self.began) // 1000
        slow = own.service < self.rate.max_budget // 2 if us > 20_000 else own.seeky
        if slow or (why == "timed_out" and own.left >= own.budget // 3):
            ms = 2 if us < 1000 else us // 1000
            charge = max(own.service, self.rate.max_budget * min(ms, TIMEOUT_MS) // TIMEOUT_MS)
            own.budget = max(own.budget, charge)
            self.shares.serve(own, charge - own.service)
        self.adapt(own, why)
        keeps = why == "preempted" and (self.uneven(own) or self.alone())
        if own.waiting or keeps:
            self.shares.renew(own, True)
            own.service = 0
        else:
            own.busy = False
            self.shares.retire(own)
            own.resumes = why not in ("timed_out", "exhausted")
            own.service *= own.resumes
        self.shares.served = self.turn = None
        self.rests, self.timer = False, None

    from_timer = False

    def adapt(self, own: Process, why: str) -> None:
        if why == "preempted":
            return
        least, most = self.largest() // 32, self.rate.max_budget
        if why == "idled" and not own.out:
            own.max_budget = own.max_budget - 4 * least if own.max_budget > 5 * least else least
        elif why == "emptied":
            own.max_budget = max(own.service, least)
        else:
            own.max_budget = min(most, own.max_budget * (4 if why == "exhausted" else 2))
        if self.count >= 194 and not self.rate.fixed:
            own.max_budget = min(own.max_budget, most)
        if own.next:
            own.budget = max(own.max_budget, sectors(own.next))

    def choose(self, now: int) -> Request | None:
        for request in self.waiting:
            if request.op == "F":
                self.waiting.remove(request)
                return request
        if not self.waiting or (self.case_of_bfq.strict and self.out):
            return None
        own = self.turn
        if own and self.may_time_out(own, now) and (own.waiting or not self.worth(own)):
            self.end(now, "timed_out")
        while True:
            own = self.turn
            if own is None:
                own = self.turn = self.shares.begin()
                if own is None:
                    return None
                own.looked, own.timeout = False, now + self.case_of_bfq.timeout
                self.began = now
                self.count = (7 * self.count + 256) // 8
            if own.next:
                if sectors(own.next) <= own.left:
                    self.rests, self.timer = False, None
                    return self.take(own, own.next, now)
                self.end(now, "exhausted")
            elif self.rests or (own.out and self.worth(own)):
                return None
            else:
                self.end(now, "emptied")

    def take(self, own: Process, request: Request, now: int) -> Request:
        self.shares.serve(own, sectors(request))
        self.rate.dispatched(request, now, self.out)
        request.expired = request is own.late
        oldest = own.waiting[0]
        late = oldest is not request and now >= oldest.arrival + self.case_of_bfq.fifo_expire
        by_address = sorted(own.waiting, key=lambda r: (start(r), r.id))
        at = by_address.index(request)
        own.waiting.remove(request)
        self.waiting.remove(request)
        if late and not own.looked:
            own.late = own.next = oldest
        else:
            ahead = by_address[at + 1] if at + 1 < len(by_address) else by_address[0]
            behind = by_address[at - 1] if at else None
            own.late = None
            own.next = self.nearer(None if ahead is request else ahead, behind, start(request))
        own.looked = True
        own.out += 1
        self.out += 1
        return request

    def done(self, request: Request, stream: int, now: int) -> None:
        if request.op == "F":
            return
        own = self.processes[stream]
        self.sample()
        self.out -= 1
        own.out -= 1
        own.last_end = now
        self.rate.completed(now)
        if own is not self.turn:
            return
        if not own.waiting and self.worth(own):
            if not own.out:
                short = own.seeky and not self.uneven(own)
                self.rests, self.rest_began = True, now
                self.timer = now + (min(self.idle_time, 2 * MS) if short else self.idle_time)
        elif self.may_time_out(own, now):
            self.end(now, "timed_out")
        elif not own.waiting:
            self.end(now, "emptied")

    def sample(self) -> None:
        self.most_out = max(self.most_out, self.out)
        waiting = sum(len(p.waiting) for p in self.processes.values())
        turn = self.turn
        lags = turn is not None and turn.quick and turn.out + len(turn.waiting) < 3 and self.out < 3
        if self.several or self.out + waiting <= 3 or lags:
            return
        self.samples += 1
        if self.samples == 33:
            self.several = self.most_out > 3
            self.most_out = self.samples = 0

    def expire_timer(self, now: int) -> None:
        self.timer, self.rests = None, False
        own = self.turn
        self.from_timer = True
        if own and now >= own.timeout:
            self.end(now, "timed_out")
        elif own and not own.waiting:
            self.end(now, "idled")
        self.from_timer = False


class Run(kernel.Run):
    """One run of a case."""

    def __init__(self, case: Case, traces: list[list[Record]]) -> None:
        lines = [(r[0], stream, r) for stream, trace in enumerate(traces) for r in trace]
        lines.sort(key=lambda line: line[:2])
        self.stream = {number: stream for number, (_, stream, _) in enumerate(lines, start=1)}
        self.upcoming = [
            Request(number, at, op, offset, size, *pages_of(op, offset, size, kernel.PAGE))
            for number, (_, _, (at, op, offset, size)) in enumerate(lines, start=1)
        ]
        self.limits = case
        self.bfq = Bfq(case)
        self.case = kernel.Case("bfq", case.queue_depth, case.device_depth)
        self.scheduler = self.bfq
        self.requests = list(self.upcoming)
        self.queue = []
        self.served = None

    def admit(self, now: int) -> None:
        depth = self.case.queue_depth
        while self.upcoming and self.upcoming[0].arrival <= now:
            if depth is not None and len(self.bfq.waiting) >= depth:
                return
            request = self.upcoming.pop(0)
            self.bfq.insert(request, self.stream[request.id], now)

    def hand_over(self, now: int) -> None:
        self.admit(now)
        super().hand_over(now)
        self.admit(now)

    def instant(self, now: int) -> None:
        done = [self.served] if self.served is not None and self.served.complete == now else []
        if done:
            self.served = None
        while True:
            for request in done:
                self.bfq.done(request, self.stream[request.id], now)
            if self.bfq.timer is not None and self.bfq.timer <= now:
                self.bfq.expire_timer(now)
            self.hand_over(now)
            done = []
            while self.queue and (self.served is None or kernel.touches_nothing(self.queue[0])):
                request = self.queue.pop(0)
                page_ns = {"R": kernel.READ_NS, "W": kernel.PROGRAM_NS}.get(request.op, 0)
                request.complete = now + page_ns * len(request.pages)
                if request.complete == now:
                    done.append(request)
                else:
                    self.served = request
            if not done:
                return

    def run(self) -> list[Request]:
        now = 0
        while True:
            self.instant(now)
            times = [self.served.complete] if self.served else []
            times += [self.upcoming[0].arrival] if self.upcoming else []
            if self.bfq.timer is not None and (times or self.bfq.waiting):
                times.append(self.bfq.timer)
            times = [time for time in times if time > now]
            if not times:
                return self.requests
            now = min(times)


def random_case(seed: int) -> tuple[Case, list[list[Record]]]:
    """Returns the case of a seed: a configuration and a trace of bursts and pauses for each tenant."""
    rng = random.Random(f"bfq {seed}")
    pick = rng.choice
    tenants = pick([1, 2, 2, 3, 5])
    weights = tuple(pick([1, 1, 2, 5]) for _ in range(tenants))
    case = Case(
        weights,
        queue_depth=pick([4, 32, 128, None, None]),
        device_depth=pick([1, 1, 2, 8, 32]),
        slice_idle=pick([0, 0, 200_000, 2 * MS, 8 * MS]),
        strict=rng.random() < 0.15,
        timeout=pick([MS, 5 * MS, 125 * MS]),
        fifo_expire=pick([0, MS, 20 * MS, 125 * MS]),
        back=pick([0, 16 << 10, 16 << 20]),
        penalty=pick([1, 2, 5]),
        max_budget=pick([None, None, None, 4096, 65536, 1 << 20]),
    )
    traces = []
    for _ in range(tenants):
        count, longest, pause = pick([20, 80, 300]), pick([2, 5, 50]), pick([1, 4, 20, 200]) * MS
        shares = {"R": pick([1, 3, 5]), "W": pick([1, 3, 5]), "T": pick([0, 1]), "F": pick([0, 0, 1])}
        now = rng.randrange(pause)
        trace: list[Record] = []
        follows, at = rng.random() < 0.5, 0
        while len(trace) < count:
            for _ in range(rng.randrange(1, longest)):
                op = rng.choices(list(shares), list(shares.values()))[0]
                size = rng.randrange(1, 4) * kernel.PAGE
                at = (
                    at + size
                    if follows and at + 2 * size < 60 * kernel.PAGE
                    else rng.randrange(60) * kernel.PAGE
                )
                trace.append((now, op, *((0, 0) if op == "F" else (at, size))))
                now += pick([0, 0, 0, 10_000, 35_000])
            now += rng.randrange(pause)
        traces.append(trace)
    return case, traces
