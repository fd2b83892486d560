"""Three of ftlab's own I/O schedulers, written in Python; results are the same except for the name.

ftlab compare map-plus --vary host.scheduler=rb,python:examples/policies/schedulers.py:Rb
"""

from __future__ import annotations

from collections import deque

import ftlab
from ftlab import Request


class Noop(ftlab.HostScheduler):
    """Takes requests in the order of arrival. With host.deadline = "none" it does the same as noop."""

    def __init__(self) -> None:
        self.queue: deque[int] = deque()

    def admit(self, request: Request) -> None:
        self.queue.append(request.id)

    def choose(self) -> int | None:
        return self.queue.popleft() if self.queue else None

    def remove(self, id: int) -> None:
        self.queue.remove(id)


class Row(ftlab.HostScheduler):
    """Takes reads before writes (Ji et al., TCAD 2018, VI-A); never two in a row while a write waits."""

    def __init__(self) -> None:
        self.reads: deque[int] = deque()
        self.writes: deque[int] = deque()
        self.read_last = False

    def admit(self, request: Request) -> None:
        (self.reads if request.op == "R" else self.writes).append(request.id)

    def choose(self) -> int | None:
        if not self.reads and not self.writes:
            return None
        self.read_last = bool(self.reads) and not (self.writes and self.read_last)
        return (self.reads if self.read_last else self.writes).popleft()

    def remove(self, id: int) -> None:
        (self.reads if id in self.reads else self.writes).remove(id)


class Rb(ftlab.HostScheduler):
    """Request batched (Ji et al., TCAD 2018, section V-B).

    Reads that share a translation page go as one batch, and so do writes; the oldest batch of reads goes
    first. A late request goes alone, as under ``rb`` with ``host.late = "request"``.
    """

    def __init__(self) -> None:
        self.created = 0
        # The batches of reads and the batches of writes, each by its translation page, oldest first; a flush
        # has a batch of its own.
        self.halves: tuple[dict[object, tuple[int, list[int]]], ...] = ({}, {})

    def admit(self, request: Request) -> int:
        half = self.halves[request.op != "R"]
        key = ("flush", request.id) if request.translation_page is None else request.translation_page
        if key not in half:
            self.created += 1
            half[key] = (self.created, [])
        number, members = half[key]
        members.append(request.id)
        return number

    def choose(self) -> list[int] | None:
        for half in self.halves:
            if half:
                return half.pop(next(iter(half)))[1]
        return None

    def remove(self, id: int) -> None:
        for half in self.halves:
            for key, (_, members) in half.items():
                if id in members:
                    members.remove(id)
                    if not members:
                        del half[key]
                    return
