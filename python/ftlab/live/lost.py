"""What a cut has lost, told in words, and every choice of what persists."""

from __future__ import annotations

import itertools
import json
import random
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from ftlab.outputs import beside
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
        flight), ``failed`` (answered with an error) and ``persists``, a digit for each sector.
        """
        self.recent: list[dict[str, Any]] = self._head["recent"]
        """The requests of the last second, oldest first, with ``begin_ns`` and ``end_ns``."""
        self.time_ns: int = self._head["time_ns"]
        self._unflushed = {write["number"] for write in self.writes}
        self._failed = {each["number"] for each in self.recent if each.get("failed")}

    @staticmethod
    def exists(media: Path) -> bool:
        """Returns whether a cut has left a file."""
        return media.with_name(media.name + SUFFIX).exists()

    def choose(self, state: State) -> None:
        """Decides what persists."""
        for write, persists in zip(self.writes, state, strict=True):
            write["persists"] = persists
        with beside(self._path) as unfinished:
            # Only the owner may read the data of the device.
            unfinished.chmod(0o600)
            unfinished.write_bytes(json.dumps(self._head).encode() + b"\n" + self._data)
            unfinished.replace(self._path)

    def state(self) -> State:
        """Returns what persists."""
        return tuple(write["persists"] for write in self.writes)

    def sectors(self) -> list[int]:
        """Returns how many sectors each of the writes touches."""
        return [len(write["persists"]) for write in self.writes]

    def lost(self) -> list[dict[str, Any]]:
        """Returns the writes that do not persist as a whole: ``op``, ``offset``, ``length``, ``number``,
        ``acknowledged`` (answered without an error), ``failed`` (answered with one) and, of its sectors,
        how many are lost (``sectors``, ``lost``).
        """
        found = []
        for write in self.writes:
            # Files of older versions say it of the last second alone.
            failed = write.get("failed", write["number"] in self._failed)
            missing = write["persists"].count("0")
            if missing:
                found.append(
                    {
                        **{name: write[name] for name in ("number", "op", "offset", "length")},
                        "acknowledged": write["end_ns"] is not None and not failed,
                        "failed": failed,
                        "sectors": len(write["persists"]),
                        "lost": missing,
                    }
                )
        return found

    def durable_ns(self, event: dict[str, Any]) -> int | None:
        """Returns when a write of the last second was certain to be durable; None if it never was."""
        end_ns = event["end_ns"]
        if end_ns is None or event["op"] == "flush" or event["failed"] or event["number"] in self._unflushed:
            return None
        if event["fua"]:
            return int(end_ns)
        ends = (
            each["end_ns"]
            for each in self.recent
            if each["op"] == "flush"
            and each["end_ns"] is not None
            and not each["failed"]
            and each["begin_ns"] >= end_ns
        )
        return min(ends, default=None)

    def told(self) -> str:
        """Returns what was lost, and the requests of the last second, as text."""
        lost = self.lost()
        lines = [f"lost: {count(len(lost))} of {count(len(self.writes))} unflushed writes and trims"]
        if not lost:
            lines = [
                "lost: nothing that had reached the device. What the check misses was still in RAM: in the"
                " page cache, or in the program"
            ]
        for write in lost[:MOST_SHOWN]:
            part = (
                ""
                if write["lost"] == write["sectors"]
                else f", {write['lost']} of {write['sectors']} sectors"
            )
            fate = ", failed" if write["failed"] else "" if write["acknowledged"] else ", in flight"
            lines.append(f"  {_request(write)}{part}{fate}")
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
            fate = "failed" if event["failed"] else fate
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


def states(sectors: Sequence[int], most: int, torn: bool = True) -> Iterator[State]:
    """Yields choices of what persists of the unflushed writes, no choice twice: all of them if there are at
    most `most`, else the likeliest `most`; `sectors` says how many each of the writes touches.

    Without `torn` each write persists as a whole or not at all.
    """
    units = [1] * sum(sectors) if torn else sectors
    if len(units) < 63 and 1 << len(units) <= most:
        for digits in itertools.product("01", repeat=len(units)):
            text = iter("".join(digit * unit for digit, unit in zip(digits, units, strict=True)))
            yield tuple("".join(itertools.islice(text, length)) for length in sectors)
        return
    seen: set[State] = set()
    for state in _likely(sectors, most, torn):
        if len(seen) == most:
            return
        if state not in seen:
            seen.add(state)
            yield state


def is_torn(state: State) -> bool:
    """Returns whether a write persists in part."""
    return any(len(set(persists)) > 1 for persists in state)


def _likely(sectors: Sequence[int], most: int, torn: bool) -> Iterator[State]:
    """Yields first whole writes: none, all, one, all but one, the first few, and all combinations if they are
    at most half of `most`; then one torn write, the others lost or kept; then random choices, without end.
    """
    none, kept = (tuple(digit * length for length in sectors) for digit in "01")
    yield none
    yield kept
    places = range(len(sectors))
    for one in reversed(places):
        yield (*none[:one], kept[one], *none[one + 1 :])
        yield (*kept[:one], none[one], *kept[one + 1 :])
    for first in places:
        yield (*kept[:first], *none[first:])
    if torn and len(sectors) < 63 and 1 << len(sectors) <= most // 2:
        yield from itertools.product(*zip(none, kept, strict=True))
    for one in reversed(places) if torn else ():
        half = sectors[one] // 2
        for part in (kept[one][:half] + none[one][half:], none[one][:half] + kept[one][half:]):
            yield from ((*others[:one], part, *others[one + 1 :]) for others in (none, kept))
    draw = random.Random(len(sectors))
    while True:
        yield tuple(draw.choice("01") * length for length in sectors)
        if torn:
            yield tuple("".join(draw.choices("01", k=length)) for length in sectors)


def smaller(state: State) -> Iterator[State]:
    """Yields the states in which one lost or torn write more persists as a whole."""
    for at, persists in enumerate(state):
        if "0" in persists:
            yield (*state[:at], "1" * len(persists), *state[at + 1 :])
