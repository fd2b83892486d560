"""What a cut has lost, told in words, and every choice of what persists."""

from __future__ import annotations

import itertools
import json
import random
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from ftlab.units import count, duration, size

SUFFIX = ".cut"
"""What the file of a cut adds to the name of the media file."""
SECTOR = 512
MOST_SHOWN = 40
"""The maximum number of requests that a timeline shows."""

State = tuple[str, ...]
"""For each unflushed write, a digit for each of its sectors: 1 if it persists, else 0."""


class Cut:
    """The unflushed writes at a cut, which of them persist, and the requests of the last second.

    The layout of the file is in ``crates/live/src/remains.rs``.
    """

    def __init__(self, media: Path) -> None:
        """Reads the file of a media file, which has to exist."""
        self._path = media.with_name(media.name + SUFFIX)
        line, _, self._data = self._path.read_bytes().partition(b"\n")
        self._head: dict[str, Any] = json.loads(line)
        self.writes: list[dict[str, Any]] = self._head["writes"]
        """The unflushed writes and trims, oldest first: ``op``, ``offset``, ``length``, ``end_ns`` (None: in
        flight) and ``persists``, a digit for each sector.
        """
        self.recent: list[dict[str, Any]] = self._head["recent"]
        """The requests of the last second, oldest first, with ``begin_ns`` and ``end_ns``."""
        self.time_ns: int = self._head["time_ns"]
        self._unflushed = {write["number"] for write in self.writes}

    @staticmethod
    def exists(media: Path) -> bool:
        """Returns whether a cut has left a file."""
        return media.with_name(media.name + SUFFIX).exists()

    def choose(self, state: State) -> None:
        """Decides what persists."""
        for write, persists in zip(self.writes, state, strict=True):
            write["persists"] = persists
        self._path.write_bytes(json.dumps(self._head).encode() + b"\n" + self._data)

    def state(self) -> State:
        """Returns what persists."""
        return tuple(write["persists"] for write in self.writes)

    def whole(self, persist: Sequence[bool]) -> State:
        """Returns the state in which these writes persist, each as a whole or not at all."""
        pairs = zip(self.writes, persist, strict=True)
        return tuple("01"[persists] * len(write["persists"]) for write, persists in pairs)

    def lost(self) -> list[dict[str, Any]]:
        """Returns the writes that do not persist as a whole: ``op``, ``offset``, ``length``, ``number``,
        ``acknowledged`` and, of its sectors, how many are lost (``sectors``, ``lost``).
        """
        found = []
        for write in self.writes:
            missing = write["persists"].count("0")
            if missing:
                found.append(
                    {
                        **{name: write[name] for name in ("number", "op", "offset", "length")},
                        "acknowledged": write["end_ns"] is not None,
                        "sectors": len(write["persists"]),
                        "lost": missing,
                    }
                )
        return found

    def durable_ns(self, event: dict[str, Any]) -> int | None:
        """Returns when a write of the last second was certain to be durable; None if it never was."""
        end_ns = event["end_ns"]
        # A write that is still unflushed was covered by nothing: a flush after it failed.
        if end_ns is None or event["op"] == "flush" or event["number"] in self._unflushed:
            return None
        if event["fua"]:
            return int(end_ns)
        ends = (
            each["end_ns"]
            for each in self.recent
            if each["op"] == "flush" and each["end_ns"] is not None and each["begin_ns"] >= end_ns
        )
        return min(ends, default=None)

    def told(self) -> str:
        """Returns what was lost, and the requests of the last second, as text."""
        lost = self.lost()
        lines = [f"lost: {count(len(lost))} of {count(len(self.writes))} unflushed writes and trims"]
        for write in lost[:MOST_SHOWN]:
            part = (
                ""
                if write["lost"] == write["sectors"]
                else f", {write['lost']} of {write['sectors']} sectors"
            )
            flight = "" if write["acknowledged"] else ", in flight"
            lines.append(f"  {_request(write)}{part}{flight}")
        if len(lost) > MOST_SHOWN:
            lines.append(f"  and {count(len(lost) - MOST_SHOWN)} more")
        shown = self.recent[-MOST_SHOWN:]
        lines.append(
            f"the last {count(len(shown))} requests of the last second, by simulated time before the cut:"
        )
        lines += [self._line(event) for event in shown]
        return "\n".join(lines)

    def _line(self, event: dict[str, Any]) -> str:
        before = duration(self.time_ns - event["begin_ns"])
        fate = "in flight"
        if event["end_ns"] is not None:
            durable = self.durable_ns(event)
            fate = "acknowledged, not flushed" if durable is None else "durable"
            fate = "done" if event["op"] == "flush" else fate
        persists = {write["number"]: write["persists"] for write in self.writes}.get(event["number"])
        if persists is None and fate == "acknowledged, not flushed":
            fate += ", not in the cache any more"
        if persists is not None:
            how = {"0": "lost", "1": "persists"}.get("".join(sorted(set(persists))), "persists in part")
            fate += f", {how}"
        return f"  -{before:>10}  {_request(event)}{' FUA' if event['fua'] else ''}: {fate}"


def _request(event: dict[str, Any]) -> str:
    """Returns a request as text."""
    if event["op"] == "flush":
        return f"#{event['number']} flush"
    return f"#{event['number']} {event['op']} of {size(event['length'])} at {count(event['offset'])}"


def states(writes: int, most: int) -> Iterator[tuple[bool, ...]]:
    """Yields the choices of which of the unflushed writes persist: all 2^writes of them if there are at most
    `most`; else first those in which none, all, one, all but one, or the first few do, then random ones.
    """
    if writes < 63 and 1 << writes <= most:
        yield from itertools.product((False, True), repeat=writes)
        return
    seen: set[tuple[bool, ...]] = set()
    for state in _likely(writes):
        if len(seen) == most:
            return
        if state not in seen:
            seen.add(state)
            yield state


def _likely(writes: int) -> Iterator[tuple[bool, ...]]:
    yield (False,) * writes
    yield (True,) * writes
    for one in reversed(range(writes)):
        yield tuple(at == one for at in range(writes))
        yield tuple(at != one for at in range(writes))
    for first in range(writes):
        yield tuple(at < first for at in range(writes))
    draw = random.Random(writes)
    while True:
        yield tuple(draw.random() < 0.5 for _ in range(writes))


def smaller(state: State) -> Iterator[State]:
    """Yields the states in which one lost or torn write more persists as a whole."""
    for at, persists in enumerate(state):
        if "0" in persists:
            yield (*state[:at], "1" * len(persists), *state[at + 1 :])
