"""Why kyber's answers differ from a kernel's (scripts/kernel_places.py), on recordings of an imitated kernel.

Its tokens have numbers, drawn at random, and its timer counts ticks.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field

import pytest

from oracle import kernel
from oracle.mapplus import Request
from scripts import script

places = script("kernel_places")

US = 1000
TICK = 4000  # us
DEVICE = 4


@dataclass
class Imitation:
    """A kernel with a slow device, in us; every request is one of 128 outstanding ones."""

    random: random.Random
    rules: kernel.Kyber = field(
        default_factory=lambda: kernel.Kyber(kernel.Case("kyber", read_lat=1_000_000, write_lat=10**10))
    )
    numbers: dict[int, int] = field(default_factory=dict)
    lines: list[str] = field(
        default_factory=lambda: ["kyber read_lat_nsec=1000000 write_lat_nsec=10000000000"]
    )
    entered: int = 0

    def note(self, kind: str, now: int, *words: object) -> None:
        self.lines.append(" ".join(map(str, (kind, now, now // TICK, *words))))

    def enter(self, now: int) -> None:
        self.entered += 1
        op = "R" if self.random.random() < 0.6 else "W"
        self.note("I", now, op, self.entered * 8, 8, 0)
        request = Request(self.entered, now * US, op, self.entered * 4096, 4096, [], set())
        self.rules.waiting.append(request)

    def ask(self, now: int) -> Request | None:
        """Lets the rules choose, for which only tokens within the depth are out."""
        for op, depth in self.rules.depth.items():
            self.rules.out[op] = sum(
                number < depth for held, number in self.numbers.items() if self.ops[held] == op
            )
        request = self.rules.choose(now * US)
        if request is None:
            self.note("A", now, "-")
            return None
        taken = {number for held, number in self.numbers.items() if self.ops[held] == request.op}
        free = [number for number in range(self.rules.depth[request.op]) if number not in taken]
        self.numbers[request.id] = self.random.choice(free)
        self.ops[request.id] = request.op
        self.note("A", now, request.offset // 512)
        return request

    def record(self, requests: int) -> str:
        """Returns the recording of a run."""
        self.ops: dict[int, str] = {}
        now = timer = 0
        held: list[Request] = []
        for _ in range(128):
            self.enter(now)
        while self.entered < requests:
            while len(held) < DEVICE and (request := self.ask(now)):
                held.append(request)
                self.note("D", now, request.offset // 512)
                request.dispatch = now * US
            now += 1200
            if timer and now >= timer:
                self.note("T", timer)
                self.rules.expire_timer(timer // TICK * TICK * US)
                timer = 0
            for request in held:
                self.note("C", now, request.offset // 512)
                self.rules.out[request.op] += 1  # which the rules take back
                self.rules.completed(request, now * US)
                del self.numbers[request.id]
                timer = timer or (now // TICK + 26) * TICK
                self.enter(now)
            held.clear()
        return "\n".join(self.lines)


@pytest.mark.parametrize("seed", range(3))
def test_every_place_is_explained(seed: int) -> None:
    recording = Imitation(random.Random(seed)).record(9000)
    own, told = places.Comparison(recording, True), places.Comparison(recording, False)
    assert own.questions >= own.answers > 8000
    assert own.unexplained == told.unexplained == []
    causes = [{place.why.removesuffix(places.AFTER) for place in found.places} for found in (own, told)]
    assert places.DEPTHS in causes[0] and causes[1] <= {places.NUMBERS}
    assert own.kernel.rules.depth["W"] == 1


def test_an_answer_against_the_rules_is_not_explained() -> None:
    lines = Imitation(random.Random(4)).record(600).splitlines()
    asked = [number for number, line in enumerate(lines) if line.startswith("A")]
    assert places.Comparison("\n".join(lines), False).places == []
    one, other = asked[300], asked[301]
    words = [lines[at].split() for at in (one, other)]
    lines[one], lines[other] = (" ".join([*mine[:3], yours[3]]) for mine, yours in (words, words[::-1]))
    found = places.Comparison("\n".join(lines), False)
    assert found.unexplained[0] == one + 1
    assert found.places[0].why == places.UNEXPLAINED
