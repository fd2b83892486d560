"""When a request is sent in dependent replay, written from docs/which-replay.md.

Nothing here simulates a device: the rule says which request each one continues and, given when that
completed, when it must have been sent. A replay in which every request was sent then follows the rule.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

ROUNDS = 4
"""The number of later requests that complete while another is idle, before it is forgotten."""
MOST = 32
"""The maximum number of idle requests."""


@dataclass(frozen=True)
class Recorded:
    """A request as the recording has it; times in ns, `latency_ns` is None where it is not known."""

    time_ns: int
    latency_ns: int | None
    stream: int = 0
    op: str = "R"

    @property
    def end_ns(self) -> int | None:
        """When it completed, if that is known."""
        return None if self.latency_ns is None else self.time_ns + self.latency_ns

    def completed_before(self, other: Recorded) -> bool:
        """Whether it had completed when `other` was sent; requests that were sent together had not."""
        end_ns = self.end_ns
        return end_ns is not None and self.time_ns < other.time_ns and end_ns <= other.time_ns


Before = tuple[int, int]
"""The request that another one continues or follows, and the last that had completed before that one came."""


def continued(recording: Sequence[Recorded]) -> list[Before | None]:
    """Returns what each request waits for, None where nothing had completed; all are of one stream."""
    found: list[Before | None] = []
    order = sorted(
        (at for at, each in enumerate(recording) if each.end_ns is not None),
        key=lambda at: (recording[at].end_ns, recording[at].latency_ns == 0, at),
    )
    ended: list[int] = []
    idle: list[int] = []
    for request in recording:
        while order and recording[order[0]].completed_before(request):
            ended.append(order.pop(0))
            idle = [at for at in idle if not _is_over(recording, at, ended)]
            idle = [*idle, ended[-1]][-MOST:]
        found.append((idle.pop(0) if idle else ended[-1], ended[-1]) if ended else None)
    return found


def _is_over(recording: Sequence[Recorded], at: int, ended: Sequence[int]) -> bool:
    """Whether an idle request is forgotten now that the last of `ended` has completed."""
    since = ended[ended.index(at) + 1 :]
    rounds = sum(recording[at].completed_before(recording[other]) for other in since)
    flushed = recording[ended[-1]].op == "F" and at < ended[-1] and recording[at].op in "WT"
    return flushed or rounds >= ROUNDS


def others(recording: Sequence[Recorded]) -> list[Before | None]:
    """Returns what each request waits for; streams do not wait for each other."""
    found: list[Before | None] = [None] * len(recording)
    for stream in {request.stream for request in recording}:
        own = [at for at, request in enumerate(recording) if request.stream == stream]
        for at, before in zip(own, continued([recording[at] for at in own]), strict=True):
            found[at] = None if before is None else (own[before[0]], own[before[1]])
    return found


def due(
    recording: Sequence[Recorded], at: int, before: Before | None, completed: Mapping[int, int]
) -> int | None:
    """Returns when a request is sent, ns; None before the one that it continues or follows completes."""
    if before is None:
        return recording[at].time_ns
    here, last = (completed.get(other) for other in before)
    if here is None:
        return None
    pause, rest = (recording[at].time_ns - (recording[other].end_ns or 0) for other in before)
    return here + pause if last is None else min(here + pause, max(here, last) + rest)
