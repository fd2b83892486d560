"""A model of LeaFTL: learned segments, their levels, lookups, mispredictions and the cache of groups.

It was written from descriptions of the paper (Sun et al., ASPLOS 2023) and from the readings at the head of
ftlab's ``leaftl.rs``, only to be compared with ftlab: with sets, fractions and linear searches throughout.
The device has one chip and never collects garbage, so that the n-th page written is in the n-th slot.
"""

from __future__ import annotations

import math
import random
import struct
from bisect import bisect_left
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction

PAGE = 4096
ENTRY = 8
GROUP = 256
UNIT = PAGE // ENTRY
Request = tuple[str, int, int]
"""Operation, first LPN and number of pages."""

SLOPES = [
    Fraction(0),
    *(Fraction(struct.unpack("<e", struct.pack("<H", bits))[0]) for bits in range(1024, 0x3C01, 2)),
]
"""The half-precision numbers from 0 to 1 with a lowest bit of 0, ascending, without those too small for a
normal number."""


@dataclass(frozen=True)
class Config:
    """The settings of the model."""

    gamma: int = 0
    batch: int = 256
    compact_after: int = 1_000_000
    cache_bytes: int | None = None
    block_pages: int = 64
    blocks: int = 256

    def settings(self) -> dict[str, str | int | bool]:
        """Returns these settings under ftlab's names for them."""
        cache = "unlimited" if self.cache_bytes is None else f"{self.cache_bytes}B"
        return {
            "preset": "map-plus",
            "ftl.kind": "leaftl",
            "ftl.gamma": self.gamma,
            "ftl.learn_batch": self.batch,
            "ftl.compact_after": self.compact_after,
            "ftl.mapping_cache": cache,
            "ftl.entry": f"{ENTRY}B",
            "flash.page": f"{PAGE}B",
            "flash.pages_per_block": self.block_pages,
            "flash.blocks_per_plane": self.blocks,
            "host.scheduler": "noop",
        }


@dataclass
class Segment:
    """A line through slots; ``places`` are those that it claims to map."""

    slope: Fraction
    base: int
    places: set[int]
    approximate: bool

    @property
    def span(self) -> range:
        return range(min(self.places), max(self.places) + 1)

    def predict(self, place: int) -> int:
        return self.base + math.floor(self.slope * place + Fraction(1, 2))

    def overlaps(self, other: Segment) -> bool:
        return self.span.start < other.span.stop and other.span.start < self.span.stop

    def lose(self, places: set[int]) -> bool:
        """Takes places away, if they can be; returns whether any are left."""
        left = self.places - places
        if not left or self.approximate:
            self.places = left
        else:
            self.places = {place for place in self.places if min(left) <= place <= max(left)}
        return bool(self.places)

    def listed(self) -> int:
        """Returns the bytes of the conflict resolution buffer."""
        if not self.approximate:
            return 0
        runs = sum(place - 1 not in self.places for place in self.places)
        return min(len(self.places), 2 * runs) + 1


Points = Sequence[tuple[int, int]]


def even(points: Points) -> int:
    """Returns how many points come at one distance in successive slots."""
    count = 1
    while count < len(points):
        (a, s), (b, t) = points[count - 1], points[count]
        if t != s + 1 or b - a != points[1][0] - points[0][0]:
            break
        count += 1
    return count


def cone(points: Points, gamma: int) -> tuple[int, Fraction]:
    """Returns how many points one line fits, and its slope."""
    if len(points) < 2:
        return 1, Fraction(0)
    (x0, y0), (x1, y1) = points[:2]
    x, y = Fraction(x0 + x1, 2), Fraction(y0 + y1, 2)
    low = max(Fraction(0), Fraction(y1 - y0 - 2 * gamma, x1 - x0))
    high = min(Fraction(1), Fraction(y1 - y0 + 2 * gamma, x1 - x0))
    if low > high:
        return 1, Fraction(0)
    count = 2
    for place, slot in points[2:]:
        if not low <= (slot - y) / (place - x) <= high:
            break
        low = max(low, (slot - gamma - y) / (place - x))
        high = min(high, (slot + gamma - y) / (place - x))
        count += 1
    return count, (low + high) / 2


def nearest(slope: Fraction) -> Fraction:
    """Returns the nearest slope that a segment can have."""
    if slope < SLOPES[1]:
        return SLOPES[0]
    at = bisect_left(SLOPES, slope)
    if SLOPES[at] == slope:
        return slope
    return min(SLOPES[at - 1 : at + 1], key=lambda near: (abs(near - slope), -near))


def line(points: Points, slope: Fraction, gamma: int, lowest: int, highest: int) -> Segment | None:
    """Returns the segment of these points, unless it would be wrong by more than gamma."""
    segment = Segment(slope, 0, {place for place, _ in points}, gamma > 0)
    rests = [slot - segment.predict(place) for place, slot in points]
    least = lowest - segment.predict(points[0][0])
    most = highest - segment.predict(points[-1][0])
    segment.base = min(max((min(rests) + max(rests)) // 2, least), most)
    wrong = max(abs(segment.predict(place) - slot) for place, slot in points)
    return segment if segment.base >= least and wrong <= gamma else None


def fit(points: Points, gamma: int, lowest: int, highest: int) -> tuple[Segment, int]:
    """Returns the segment of as many points as it can have, and their number."""
    regular = even(points)
    count = cone(points, gamma)[0] if gamma else regular
    while count > regular:
        fitted, slope = cone(points[:count], gamma)
        segment = line(points[:fitted], nearest(slope), gamma, lowest, highest)
        if segment:
            return segment, fitted
        count -= 1
    slope = Fraction(1, points[1][0] - points[0][0]) if regular > 1 else Fraction(0)
    segment = line(points[:regular], nearest(slope), 0, lowest, highest)
    assert segment
    return segment, regular


@dataclass
class Group:
    """The segments of a group by level, the top one first."""

    levels: list[list[Segment]] = field(default_factory=list)

    def segments(self) -> list[Segment]:
        return [segment for level in self.levels for segment in level]

    def find(self, place: int) -> Segment | None:
        return next((segment for segment in self.segments() if place in segment.places), None)

    def bytes(self) -> int:
        return 4 + sum(8 + segment.listed() for segment in self.segments())

    def add(self, new: Segment) -> None:
        if new.approximate:
            for level in self.levels:
                level[:] = [old for old in level if not old.approximate or old.lose(new.places)]
        top = self.levels[0] if self.levels else []
        stay: list[Segment] = [new]
        down: list[Segment] = []
        for old in sorted(top, key=lambda old: old.span.start):
            if not old.overlaps(new):
                stay.append(old)
            elif old.lose(new.places):
                (down if old.overlaps(new) else stay).append(old)
        self.levels = [stay, *(level for level in self.levels[1:] if level)]
        for old in down:
            if len(self.levels) == 1 or any(old.overlaps(other) for other in self.levels[1]):
                self.levels.insert(1, [])
            self.levels[1].append(old)

    def compact(self) -> None:
        """Drops what is out of date, and puts each segment as high as those above it let it."""
        old, self.levels = self.levels, []
        newer: set[int] = set()
        for segment in [
            segment for level in old for segment in sorted(level, key=lambda one: one.span.start)
        ]:
            if not segment.lose(newer):
                continue
            newer |= segment.places
            under = [
                number
                for number, level in enumerate(self.levels)
                if any(other.overlaps(segment) for other in level)
            ]
            at = max(under, default=-1) + 1
            if at == len(self.levels):
                self.levels.append([])
            self.levels[at].append(segment)


class Device:
    """The device, with its cache of groups."""

    def __init__(self, config: Config) -> None:
        self.config = config
        self.slots: dict[int, int] = {}
        self.next = 0
        self.groups: dict[int, Group] = {}
        self.cached: list[int] = []
        """Groups in the cache, the least recently used first."""
        self.waiting: list[int] = []
        self.left = 0
        """Mappings that take an entry of the cache as they wait."""
        self.dirty: set[int] = set()
        self.written = 0
        cache = config.cache_bytes
        self.batch = config.batch if cache is None else min(config.batch, max(1, cache // (2 * ENTRY)))
        names = "hits misses reads programs predictions mispredictions batches compactions"
        self.counts = dict.fromkeys(names.split(), 0)

    def used(self) -> int:
        return sum(self.groups[group].bytes() for group in self.cached)

    def make_room(self) -> None:
        bound = self.config.cache_bytes
        while bound is not None and len(self.cached) > 1 and self.used() + self.left * ENTRY > bound:
            unit = self.cached[0] * GROUP // UNIT
            if any(lpn // GROUP == self.cached[0] for lpn in self.dirty):
                self.counts["reads"] += 1
                self.counts["programs"] += 1
                self.dirty = {lpn for lpn in self.dirty if lpn // UNIT != unit}
            del self.cached[0]

    def enter(self, group: int) -> bool:
        if group in self.cached:
            self.cached.remove(group)
            self.cached.append(group)
            return True
        self.counts["reads"] += 1
        self.groups.setdefault(group, Group())
        self.cached.append(group)
        self.make_room()
        return False

    def learn(self) -> None:
        waiting, self.waiting = sorted(self.waiting), []
        self.counts["batches"] += 1
        for group in sorted({lpn // GROUP for lpn in waiting}):
            lpns = [lpn for lpn in waiting if lpn // GROUP == group]
            self.enter(group)
            self.learn_group(self.groups[group], lpns)
            self.dirty |= set(lpns)
            self.left -= len(lpns)
            self.make_room()

    def learn_group(self, group: Group, lpns: Iterable[int]) -> None:
        blocks: dict[int, list[tuple[int, int]]] = {}
        for lpn in lpns:
            if lpn in self.slots:
                slot = self.slots[lpn]
                blocks.setdefault(slot // self.config.block_pages, []).append((lpn % GROUP, slot))
        for block in sorted(blocks):
            points = blocks[block]
            highest = max(slot for _, slot in points)
            while points:
                segment, count = fit(points, self.config.gamma, block * self.config.block_pages, highest)
                group.add(segment)
                points = points[count:]
        if group.bytes() > 4 + 8 * GROUP:
            group.compact()
            self.counts["compactions"] += 1

    def write(self, lpn: int, slot: int | None) -> None:
        self.counts["hits"] += 1
        self.written += 1
        if len(self.waiting) >= self.batch:
            self.learn()
        if self.written >= self.config.compact_after:
            self.written = 0
            for group in self.cached:
                self.groups[group].compact()
                self.counts["compactions"] += 1
            # A group may take up more once its segments are compacted.
            self.make_room()
        if lpn not in self.waiting:
            self.waiting.append(lpn)
            self.left += 1
        if slot is None:
            self.slots.pop(lpn, None)
        else:
            self.slots[lpn] = slot

    def read(self, lpn: int) -> None:
        hit = lpn in self.waiting or self.enter(lpn // GROUP)
        self.counts["hits" if hit else "misses"] += 1
        segment = None if lpn in self.waiting else self.groups[lpn // GROUP].find(lpn % GROUP)
        if segment and lpn in self.slots:
            predicted = segment.predict(lpn % GROUP)
            assert abs(predicted - self.slots[lpn]) <= self.config.gamma
            self.counts["predictions"] += 1
            self.counts["mispredictions"] += predicted != self.slots[lpn]
            self.counts["reads"] += predicted != self.slots[lpn]

    def take(self, request: Request) -> None:
        op, first, pages = request
        for lpn in range(first, first + pages):
            if op == "R":
                self.read(lpn)
            elif op == "T":
                self.write(lpn, None)
            else:
                self.write(lpn, self.next)
                self.next += 1

    def figures(self) -> dict[str, float]:
        """Returns what the device has done, and what it has learned."""
        groups = [group for group in self.groups.values() if group.segments()]
        segments = [segment for group in groups for segment in group.segments()]
        levels = [len(group.levels) for group in groups]
        return {
            **self.counts,
            "second_reads": self.counts["mispredictions"],
            "accurate": sum(not segment.approximate for segment in segments),
            "approximate": sum(segment.approximate for segment in segments),
            "map_bytes": sum(group.bytes() for group in groups),
            "listed_bytes": sum(segment.listed() for segment in segments),
            "mapped": sum(len(set().union(*(one.places for one in group.segments()))) for group in groups),
            "cached_bytes": self.used(),
            "levels_max": max(levels, default=0),
            "levels_mean": sum(levels) / len(levels) if levels else math.nan,
        }


def random_case(seed: int) -> tuple[Config, list[Request]]:
    """Returns a random device and requests: runs, strides, single pages, reads and trims."""
    draw = random.Random(f"leaftl {seed}")
    config = Config(
        gamma=draw.choice([0, 1, 2, 4, 16]),
        batch=draw.choice([3, 17, 64, 256]),
        compact_after=draw.choice([300, 1_000_000]),
        cache_bytes=draw.choice([None, None, 64, 300, 1000, 4096]),
        block_pages=draw.choice([16, 64, 128]),
    )
    config = Config(**{**vars(config), "blocks": 16384 // config.block_pages})
    space = draw.choice([300, 1000, 3000])
    requests: list[Request] = []
    pages = 0
    while pages < 4000 and len(requests) < 1200:
        first = draw.randrange(space)
        kind = draw.random()
        if kind < 0.45:
            # Pages in ascending order with gaps, as a sorted buffer hands them over.
            most = draw.choice([1, 2, 3, 8])
            for _ in range(draw.randrange(1, 30)):
                requests.append(("W", first, 1))
                first, pages = first + draw.randrange(1, most + 1), pages + 1
        elif kind < 0.65:
            count = draw.choice([1, 1, 2, 5, 20, 60])
            requests.append(("W", first, count))
            pages += count
        elif kind < 0.7:
            requests.append(("T", first, draw.choice([1, 3])))
        else:
            requests += [("R", draw.randrange(space), draw.choice([1, 1, 4, 30])) for _ in range(4)]
    return config, requests
