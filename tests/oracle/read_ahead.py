"""A model of the read-ahead of a device with one chip: its streams, its RAM, and the reads that wait for it.

It was written from the rules of docs/write-buffer.md ("Read-ahead"), only to be compared with ftlab;
buffer.py is the rest of the device. Two rules were taken from ftlab's source and have no independent witness:
of several streams that end at one page, the one in the first place goes on, where a new stream takes the
place of the one that it displaces; and pages are handed to the chip after those destaged at the same time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

STREAMS = 16
"""Streams that the device tells apart."""


@dataclass
class Stream:
    """A stream of reads: the page behind its last read, and the page behind the last one that it wanted."""

    end: int
    reached: int
    read: int
    """The number of its last read."""


@dataclass(eq=False)
class Page:
    """A page read ahead; it has come, or is on its way."""

    come: bool = False
    stale: bool = False
    """Whether it was written or trimmed on its way."""


@dataclass
class Waiting:
    """A read that waits for its pages."""

    lpns: range
    then: Callable[[], None]
    """Takes the pages, or reads them from the flash."""


@dataclass
class ReadAhead:
    """The read-ahead of a device; ``pages`` is how far it reads on."""

    pages: int
    streams: list[Stream] = field(default_factory=list)
    reads: int = 0
    """Reads noted."""
    wanted: list[int] = field(default_factory=list)
    ram: dict[int, Page] = field(default_factory=dict)
    """The page read ahead longest ago is first."""
    waiting: list[Waiting] = field(default_factory=list)
    read: int = 0
    """Pages read ahead."""

    def follow(self, lpns: range) -> None:
        """Notes a read; if it continues a stream, the pages behind it are wanted."""
        if not self.pages:
            return
        self.reads += 1
        stream = next((stream for stream in self.streams if stream.end == lpns.start), None)
        if stream is None:
            stream = Stream(lpns.stop, lpns.stop, self.reads)
            if len(self.streams) < STREAMS:
                self.streams.append(stream)
            else:
                oldest = min(self.streams, key=lambda stream: stream.read)
                self.streams[self.streams.index(oldest)] = stream
            return
        first, stop = max(lpns.stop, stream.reached), lpns.stop + self.pages
        self.wanted += range(first, stop)
        stream.end, stream.reached, stream.read = lpns.stop, max(stream.reached, stop), self.reads

    def has(self, lpn: int) -> bool:
        """Whether a page has come."""
        return lpn in self.ram and self.ram[lpn].come

    def coming(self, lpn: int) -> bool:
        """Whether a page is on its way, in its newest version."""
        return lpn in self.ram and not self.ram[lpn].come and not self.ram[lpn].stale

    def awaited(self, lpn: int) -> bool:
        """Whether a read waits that has this page."""
        return any(lpn in waiting.lpns for waiting in self.waiting)

    def hand(self, has_room: Callable[[int], bool]) -> Iterable[int]:
        """Yields the pages that are read now: those wanted that neither the RAM has nor the write buffer."""
        wanted, self.wanted = self.wanted, []
        for lpn in wanted:
            if lpn in self.ram or has_room(lpn):
                continue
            self.ram[lpn] = Page()
            self.shrink()
            self.read += 1
            yield lpn

    def shrink(self) -> None:
        """Removes the pages read ahead longest ago while there are too many pages."""
        while len(self.ram) > STREAMS * self.pages:
            oldest = next(iter(self.ram))
            if not self.has(oldest) or self.awaited(oldest):
                return
            del self.ram[oldest]

    def landed(self, lpn: int, waits: Callable[[range], bool]) -> None:
        """Notes that a page has come, and lets the reads go on that need not wait any more, first come, first
        served.
        """
        if self.ram[lpn].stale:
            del self.ram[lpn]
        else:
            self.ram[lpn].come = True
        for waiting in list(self.waiting):
            if not waits(waiting.lpns):
                self.waiting.remove(waiting)
                waiting.then()

    def take(self, lpns: range) -> None:
        """Removes the pages that a read takes, which are those that have come and that no other waits for."""
        for lpn in lpns:
            if self.has(lpn) and not self.awaited(lpn):
                del self.ram[lpn]

    def drop(self, lpns: range) -> None:
        """Removes pages that are written or trimmed."""
        for lpn in lpns:
            if self.has(lpn):
                del self.ram[lpn]
            elif lpn in self.ram:
                self.ram[lpn].stale = True
