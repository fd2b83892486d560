"""When a request is sent in dependent replay, written from docs/which-replay.md.

Nothing here simulates a device: given when each request completed, the rule says when each must have been
sent. A replay in which every request was sent then, and none at another time, follows the rule.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Recorded:
    """A request as the recording has it; times in ns, `latency_ns` is None where it is not known."""

    time_ns: int
    latency_ns: int | None
    stream: int = 0

    def completed_before(self, other: Recorded) -> bool:
        """Whether it had completed when `other` was sent; requests that were sent together had not."""
        if self.latency_ns is None or self.stream != other.stream:
            return False
        return self.time_ns < other.time_ns and self.time_ns + self.latency_ns <= other.time_ns


def sent(recording: Sequence[Recorded], completed: Sequence[int]) -> list[int]:
    """Returns when each request is sent, ns, if the requests complete at these times."""
    found: list[int] = []
    last: dict[int, int] = {}
    for at, request in enumerate(recording):
        before = [each for each in recording[:at] if each.completed_before(request)]
        pause = request.time_ns - max((each.time_ns + (each.latency_ns or 0) for each in before), default=0)
        here = sorted(
            end
            for each, end in zip(recording[:at], completed, strict=False)
            if each.stream == request.stream and each.latency_ns is not None
        )
        due = (here[len(before) - 1] if before else 0) + pause
        found.append(max(due, last.get(request.stream, 0)))
        last[request.stream] = found[-1]
    return found
