"""Arrival processes with two free variables, for the search for conflicts."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

from ftlab.fitting import arrivals, quantity, solve
from ftlab.fitting.targets import Targets

WITHIN_BURST_NS = 20_000
"""The mean gap within bursts if the targets do not state it."""

START_GAP_NS = 3e6
_SHORTEST_GAP_NS, _LONGEST_GAP_NS = 1e3, 1e11
_LONGEST_BURST = 6.0


class Process(NamedTuple):
    """An arrival process with two variables: the function that sets these, the points where searches start,
    and the variables' limits.
    """

    apply: Callable[[solve.Pair, dict[str, str]], None]
    starts: list[solve.Pair]
    low: solve.Pair
    high: solve.Pair


def of(targets: Targets) -> list[Process]:
    """Returns the arrival processes that may reach the conflict targets, the most likely first."""
    if targets.mean_interarrival_ns is None:
        return [_of_any_rate()]
    return [_of_rate(targets, single=False), _of_rate(targets, single=True)]


def _of_any_rate() -> Process:
    """Returns a process with bursts of one operation each. Its variables are logarithms: of the gap between
    bursts, and of the length of read bursts (above 0) or of write bursts (below 0).
    """

    def apply(at: solve.Pair, keys: dict[str, str]) -> None:
        _without_pauses(keys)
        keys.update(arrival="bursts", burst_ops="single", burst_gap=quantity.ns(math.exp(at[0])))
        keys.setdefault("interarrival", quantity.ns(WITHIN_BURST_NS))
        keys["read_burst_length"] = quantity.length(math.exp(max(at[1], 0.0)))
        keys["burst_length"] = quantity.length(math.exp(max(-at[1], 0.0)))

    low = (math.log(_SHORTEST_GAP_NS), -_LONGEST_BURST)
    high = (math.log(_LONGEST_GAP_NS), _LONGEST_BURST)
    gap = math.log(START_GAP_NS)
    # The slopes on the two sides of 0 differ, so a search may need to start on the correct side.
    return Process(apply, [(gap, 0.0), (gap, -1.0), (gap, 1.0)], low, high)


def _of_rate(targets: Targets, *, single: bool) -> Process:
    """Returns a process with bursts at the rate of the targets, which determines the gap between bursts.

    The variables are logarithms: of the bursts' length, and of the gap within them over its first guess or,
    for bursts of one operation, of the length of read bursts over that of write bursts.
    """
    mean = targets.mean_interarrival_ns
    assert mean is not None
    cv = max(targets.interarrival_cv or 1.0, 1.0)
    guess = arrivals.bursts(mean, cv, targets.burst_length or 10.0)
    within = max(guess.within_ns, 1000.0)

    def apply(at: solve.Pair, keys: dict[str, str]) -> None:
        tight = 1.0 if single else math.exp(at[1])
        ratio = at[1] if single else 0.0
        lengths = arrivals.Lengths(math.exp(at[0] + max(ratio, 0.0)), math.exp(at[0] + max(-ratio, 0.0)))
        ops = (targets.reads, targets.writes + targets.trims)
        _without_pauses(keys)
        found = arrivals.of_rate(mean, within * tight, ops, lengths)
        keys.update(
            arrival="bursts",
            burst_ops="single" if single else "mixed",
            interarrival=quantity.ns(found.within_ns),
            burst_gap=quantity.ns(found.between_ns),
            read_burst_length=quantity.length(lengths.reads),
            burst_length=quantity.length(lengths.others),
        )

    longest = math.log(max(targets.requests / 20, 2.0))
    start = (min(math.log(guess.length), longest), 0.0)
    return Process(apply, [start], (0.0, -_LONGEST_BURST), (longest, _LONGEST_BURST))


def _without_pauses(keys: dict[str, str]) -> None:
    """Removes the keys of pauses, which the processes here do not have."""
    for key in ("pause_share", "pause"):
        keys.pop(key, None)
