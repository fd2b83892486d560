"""One of ftlab's own placements, with the same results except for the name, and one that estimates lifetimes.

ftlab compare map-plus --vary ftl.placement=gc-apart,python:examples/policies/placements.py:GcApart
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

import ftlab


class GcApart(ftlab.Placement):
    """What the host writes in one open block of a chip, copies in another."""

    fronts = 2

    def front(self, lpn: int, cause: str, stream: int, age: int | None) -> int:
        return int(cause == "gc")

    def front_name(self, front: int) -> str:
        return ("host", "copies")[front]


class ByLifetime(ftlab.Placement):
    """Pages whose last version was overwritten sooner than the median of late; other pages; copies."""

    fronts = 3

    def __init__(self) -> None:
        self.median = 1
        self.sooner = Counter[int]()

    def front(self, lpn: int, cause: str, stream: int, age: int | None) -> int:
        if cause == "gc":
            return 2
        front = int(age is None or age >= self.median)
        self.sooner[front] += 1
        return front

    def front_name(self, front: int) -> str:
        return ("short-lived", "long-lived", "copies")[front]

    def overwritten(self, lpn: int, front: int, age: int | None) -> None:
        """Moves the estimate of the median a little towards this age."""
        step = max(self.median // 64, 1)
        self.median = max(self.median + (step if (age or 0) > self.median else -step), 1)

    def save(self) -> Sequence[int]:
        return (self.median,)

    def load(self, saved: Sequence[int]) -> None:
        (self.median,) = saved

    def stats(self) -> Iterator[ftlab.Stat]:
        yield ftlab.Stat("median", self.median, "pages", "estimated median lifetime, in pages written")
        yield ftlab.Stat("short_lived", self.sooner[0], "pages", "written to the first front")
