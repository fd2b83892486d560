"""Says why kyber's answers differ from a kernel's, place by place: part of `make kernel-order`.

    python scripts/kernel_places.py RECORDING...             # how many places differ, and why
    python scripts/kernel_places.py --places RECORDING...    # each of them, with the state of both sides

A recording (scripts/kernel_order.py) has every question of the block layer and what the kernel answered. Two
models follow it. One has the rules of block/kyber-iosched.c (Linux 6.12): its timer expires when the
kernel's did, and tokens have numbers, as those of lib/sbitmap.c. When a depth is cut, tokens with a number
beyond it do not count any more. Numbers begin at random, so the model keeps every choice of tokens that the
answers since have left possible; where none is left, the place is not explained and the exit status is 1.
The other model is ftlab's second implementation (tests/oracle/kernel.py), without numbers, once with a timer
of its own and once with the kernel's.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter, deque
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

from oracle import kernel
from oracle.mapplus import Request

TICK_NS = 4_000_000
DOMAINS = list(kernel.Kyber.MOST)
DEPTHS = "depths moved at another time"
NUMBERS = "the kernel has tokens that do not count"
AFTER = ", left behind by an earlier place"
UNEXPLAINED = "not explained"

# A state of the kernel: whose turn it is, how many went in a row, and the ids of the requests whose token
# does not count.
State = tuple[str, int, frozenset[int]]


class Numbered:
    """The kernel's rules: what it may be like inside, as far as its answers tell."""

    def __init__(self, case: kernel.Case) -> None:
        """Begins without requests."""
        self.rules = kernel.Kyber(case)  # for latencies and depths
        self.waiting: dict[str, deque[Request]] = {domain: deque() for domain in DOMAINS}
        self.out: dict[str, list[Request]] = {domain: [] for domain in DOMAINS}
        self.states: set[State] = {("R", 0, frozenset())}

    def ended(self, request: Request, now: int) -> None:
        """Notes that the device has ended a request."""
        self.rules.completed(request, now)
        self.out[request.op].remove(request)
        self.states = {(turn, row, free - {request.id}) for turn, row, free in self.states}

    def expire_timer(self, tick: int) -> None:
        """Moves the depths; of the tokens that are out any may have a number within a smaller depth."""
        before = dict(self.rules.depth)
        self.rules.expire_timer(tick * TICK_NS)
        for domain, depth in self.rules.depth.items():
            if depth < before[domain]:
                self.states = {cut for state in self.states for cut in self.cut(state, domain, depth)}

    def cut(self, state: State, domain: str, depth: int) -> Iterator[State]:
        """Yields the states that a state may become when a domain's depth shrinks."""
        turn, row, free = state
        counting = {request.id for request in self.out[domain]} - free
        for number in range(min(len(counting), depth) + 1):
            for kept in combinations(sorted(counting), number):
                yield turn, row, free | (counting - set(kept))

    def counting(self, domain: str, free: frozenset[int]) -> int:
        """Returns how many tokens of a domain are out and count."""
        return sum(request.id not in free for request in self.out[domain])

    def answer(self, state: State) -> tuple[State, str | None]:
        """Returns what a state becomes by a question, and the domain that it answers with."""
        turn, row, free = state

        def may(domain: str) -> bool:
            return bool(self.waiting[domain]) and self.counting(domain, free) < self.rules.depth[domain]

        if row < kernel.Kyber.BATCH[turn] and may(turn):
            return (turn, row + 1, free), turn
        at = DOMAINS.index(turn)
        for domain in DOMAINS[at + 1 :] + DOMAINS[: at + 1]:
            if may(domain):
                return (domain, 1, free), domain
        return (turn, 0, free), None

    def ask(self, sector: str) -> tuple[Request | None, bool]:
        """Follows the kernel's answer; returns its request, and whether the rules explain it."""
        heads = {domain: queue[0] for domain, queue in self.waiting.items() if queue}
        found = next((d for d, head in heads.items() if str(head.offset // 512) == sector), None)
        answers = [self.answer(state) for state in self.states]
        same = {state for state, domain in answers if domain == found}
        explained = bool(same) and (found is not None or sector == "-")
        # From a place that the rules do not explain, they go on as if they had given that answer.
        self.states = same or {(found or turn, 1, free) for (turn, _, free), _ in answers}
        if found is None:
            return None, explained
        request = self.waiting[found].popleft()
        self.out[found].append(request)
        self.rules.out[found] += 1
        return request, explained

    def describe(self) -> str:
        """Returns a state that is possible, in words."""
        turn, row, free = min(self.states, key=lambda state: (state[0], state[1], sorted(state[2])))
        tokens = [
            f"{domain} {self.counting(domain, free)} of {self.rules.depth[domain]}"
            + (f" and {rest} that do not count" if (rest := sum(r.id in free for r in out)) else "")
            for domain, out in self.out.items()
            if domain in "RW"
        ]
        return f"turn {turn}, {row} in a row, tokens {', '.join(tokens)}"


@dataclass(frozen=True)
class Place:
    """An answer of the kernel's that ftlab's model does not give."""

    line: int
    text: str
    why: str


class Ours:
    """ftlab's rules, asked as the kernel was."""

    def __init__(self, case: kernel.Case, has_timer: bool) -> None:
        """Begins without requests; without a timer of its own, it is told when depths move."""
        self.kyber = kernel.Kyber(case)
        self.has_timer = has_timer
        self.answered: deque[Request] = deque()
        self.begun: deque[Request] = deque()

    def run_to(self, now: int) -> None:
        """Moves depths if the timer has expired."""
        if self.has_timer and self.kyber.timer is not None and self.kyber.timer <= now:
            self.kyber.expire_timer(self.kyber.timer)

    def ask(self, now: int) -> str:
        """Returns the sector of the request that goes next, or a dash."""
        request = self.kyber.choose(now)
        self.answered.extend([request] if request else [])
        return "-" if request is None else str(request.offset // 512)

    def describe(self) -> str:
        """Returns the state, in words."""
        kyber = self.kyber
        tokens = ", ".join(f"{domain} {kyber.out[domain]} of {kyber.depth[domain]}" for domain in "RW")
        return f"turn {kyber.turn}, {kyber.in_batch} in a row, tokens {tokens}"


class Comparison:
    """A recording of kyber, and what was found in it."""

    def __init__(self, recording: str, has_timer: bool) -> None:
        """Follows a whole recording."""
        head, *lines = recording.splitlines()
        settings = dict(word.split("=") for word in head.split()[1:])
        targets = {name: int(settings[f"{name}_nsec"]) for name in ("read_lat", "write_lat")}
        case = kernel.Case("kyber", **targets)
        self.kernel, self.ours = Numbered(case), Ours(case, has_timer)
        self.answered: deque[Request] = deque()
        self.begun: deque[Request] = deque()
        self.questions = self.answers = 0
        self.places: list[Place] = []
        self.unexplained: list[int] = []
        self.root = ""  # the last cause of another state
        start = int(lines[0].split()[1])
        for number, line in enumerate(lines, start=2):
            kind, time, tick, *rest = line.split()
            now = (int(time) - start) * 1000
            self.ours.run_to(now)
            if kind == "A":
                self.ask(number, now, rest[0])
            else:
                self.event(kind, number, now, int(tick), rest)

    def event(self, kind: str, number: int, now: int, tick: int, rest: list[str]) -> None:
        """Follows an event that is not a question."""
        ours = self.ours
        if kind == "I":
            place = int(rest[1]) * 512, int(rest[2]) * 512
            ours.kyber.waiting.append(Request(number, now, rest[0], *place, [], set()))
            self.kernel.waiting[rest[0]].append(Request(number, now, rest[0], *place, [], set()))
        elif kind == "T":
            self.kernel.expire_timer(tick)
            if not ours.has_timer:
                ours.kyber.expire_timer(tick * TICK_NS)
        for answered, begun in [(self.answered, self.begun), (ours.answered, ours.begun)]:
            if kind == "D" and answered:
                begun.append(answered.popleft())
                begun[-1].dispatch = now
        if kind == "C" and self.begun:
            self.kernel.ended(self.begun.popleft(), now)
        if kind == "C" and ours.begun:
            ours.kyber.completed(ours.begun.popleft(), now)

    def ask(self, number: int, now: int, sector: str) -> None:
        """Asks both sides; ``sector`` is the kernel's answer."""
        inside = f"kernel: {self.kernel.describe()}; ftlab: {self.ours.describe()}"
        if self.ours.kyber.depth != self.kernel.rules.depth:
            self.root = why = DEPTHS
        elif any(free for _, _, free in self.kernel.states):
            self.root = why = NUMBERS
        else:
            why = self.root and self.root + AFTER
        request, explained = self.kernel.ask(sector)
        self.answered.extend([request] if request else [])
        own = self.ours.ask(now)
        self.questions += 1
        self.answers += (sector, own) != ("-", "-")
        if not explained:
            self.unexplained.append(number)
        if own != sector:
            text = f"{now / 1e9:.6f} s: the kernel answers {sector}, ftlab {own}; {inside}"
            self.places.append(Place(number, text, why if explained and why else UNEXPLAINED))


def main() -> int:
    """Runs the command line; returns the exit status."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("recordings", nargs="+", type=Path, metavar="RECORDING")
    parser.add_argument("--places", action="store_true", help="print each place that differs")
    chosen = parser.parse_args()
    status = 0
    for path in chosen.recordings:
        recording = path.read_text()
        for has_timer, timer in [(True, "a timer of its own"), (False, "the kernel's timer")]:
            found = Comparison(recording, has_timer)
            same = found.answers - len(found.places)
            print(f"{path.stem}, {timer}: {same:,} of {found.answers:,} answers are the kernel's")
            for why, count in Counter(place.why for place in found.places).most_common():
                print(f"  {count} others: {why}")
            for place in found.places if chosen.places else []:
                print(f"  {path}:{place.line}: {place.text}: {place.why}")
            status |= bool(found.unexplained)
        print(f"  {len(found.unexplained)} of {found.questions:,} questions are not explained")
    return status


if __name__ == "__main__":
    raise SystemExit(main())
