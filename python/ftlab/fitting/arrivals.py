"""Arrival processes with a given mean and spread."""

from __future__ import annotations

import math
from typing import NamedTuple

STEADY_CV = 0.1
"""Below this coefficient of variation, gaps are modelled as constant."""

POISSON_CV = 1.05
"""Up to this coefficient of variation, gaps are modelled as exponential."""

PAUSE_PARTS = (0.5, 0.7, 0.8, 0.9, 0.95)
"""Ratios to try, in this order: the mean of those gaps between bursts that are not pauses, over the mean of
all gaps between bursts.
"""


class Bursts(NamedTuple):
    """An on-off process: the mean number of requests in a burst, and the mean gaps within and between bursts,
    in ns.
    """

    length: float
    within_ns: float
    between_ns: float
    pause_share: float = 0.0
    """Share of the gaps between bursts that are pauses."""
    pause_ns: float = 0.0


def bursts(mean_ns: float, cv: float, length: float) -> Bursts:
    """Returns the bursts whose gaps have this mean and this coefficient of variation.

    Gaps are a mixture of two exponentials, the long one with probability p = 1 / length: mean m = (1 - p) w +
    p b, second moment 2 ((1 - p) w^2 + p b^2) = (cv^2 + 1) m^2. With w >= 0 the length is at least (cv^2 + 1)
    / 2; a shorter length is raised to slightly more than that.
    """
    length = max(length, (cv**2 + 1) / 2 * 1.02, 1.0001)
    p = 1 / length
    half = (cv**2 + 1) * mean_ns**2 / 2
    root = mean_ns**2 - (1 - p) / p * (mean_ns**2 / (1 - p) - half)
    between = mean_ns + math.sqrt(max(root, 0.0))
    within = max((mean_ns - p * between) / (1 - p), 0.0)
    return Bursts(length, within, between)


def longer(found: Bursts, gap_ns: float) -> float:
    """Returns the share of the gaps longer than ``gap_ns``."""
    p = 1 / found.length
    parts = (
        (1 - p, found.within_ns),
        (p * (1 - found.pause_share), found.between_ns),
        (p * found.pause_share, found.pause_ns),
    )
    return sum(share * math.exp(-gap_ns / mean) for share, mean in parts if mean > 0)


def seen_length(found: Bursts) -> float:
    """Returns the number of requests per gap above the mean gap, the measure of burstiness: slightly more
    than the length of these bursts if gaps within them are short.
    """
    p = 1 / found.length
    between = (1 - found.pause_share) * found.between_ns + found.pause_share * found.pause_ns
    above = longer(found, (1 - p) * found.within_ns + p * between)
    return 1 / above if above else math.inf


def same_burst(found: Bursts) -> tuple[float, float]:
    """Returns how many of the gaps up to the mean gap are within a burst (most), and how many of those above
    it (hardly any), as shares. A trace shows gaps, and not what they are.
    """
    p = 1 / found.length
    parts = (
        (1 - p, found.within_ns),
        (p * (1 - found.pause_share), found.between_ns),
        (p * found.pause_share, found.pause_ns),
    )
    limit = sum(share * mean for share, mean in parts)
    above = [share * math.exp(-limit / mean) if mean > 0 else 0.0 for share, mean in parts]
    below = [share - long for (share, _), long in zip(parts, above, strict=True)]
    return below[0] / sum(below), above[0] / sum(above)


def seen_bursts(mean_ns: float, cv: float, seen: float) -> Bursts:
    """Returns the bursts with this mean gap, coefficient of variation and requests per gap above the mean.

    If no mixture of two exponentials has all three, the result is the mixture that has the first two and is
    nearest in the third. This is a bisection over the length: the longer the bursts with the same spread, the
    longer the gaps within them, and the more of those are above the mean.
    """
    low, high = math.log((cv**2 + 1) / 2 * 1.02), math.log(1e9)
    for _ in range(100):
        middle = (low + high) / 2
        if seen_length(bursts(mean_ns, cv, math.exp(middle))) > seen:
            low = middle
        else:
            high = middle
    return bursts(mean_ns, cv, math.exp(low))


def median_bursts(mean_ns: float, median_ns: float, seen: float, cv: float | None = None) -> Bursts:
    """Returns the bursts with this mean gap, median gap and requests per gap above the mean; with ``cv`` some
    of the gaps between bursts are pauses, so that all gaps together have that spread too.

    This is better conditioned than a fit by the spread alone, which hardly depends on the gap within bursts
    if that is short. There are two nested bisections: the inner one finds the gap within bursts that gives
    the median at a given length, the outer one the length that gives the third figure.
    """

    found = [_median_bursts(mean_ns, median_ns, seen, cv, part) for part in PAUSE_PARTS]
    # The first candidate within 0.1 % of the target is taken, or else the nearest.
    return min(found, key=lambda each: max(abs(seen_length(each) / seen - 1), 0.001))


def _median_bursts(mean_ns: float, median_ns: float, seen: float, cv: float | None, part: float) -> Bursts:
    def of_length(length: float) -> Bursts:
        low, high = 0.0, mean_ns
        for _ in range(60 if median_ns > 0 else 0):
            within = (low + high) / 2
            if longer(_with_pauses(mean_ns, cv, length, within, part), median_ns) < 0.5:
                low = within
            else:
                high = within
        return _with_pauses(mean_ns, cv, length, low, part)

    low, high = math.log(1.0001), math.log(1e9)
    for _ in range(60):
        middle = (low + high) / 2
        if seen_length(of_length(math.exp(middle))) < seen:
            low = middle
        else:
            high = middle
    return of_length(math.exp(low))


def _with_pauses(mean_ns: float, cv: float | None, length: float, within_ns: float, part: float) -> Bursts:
    """Returns bursts with this mean gap and spread. The mean and the second moment of the gaps between bursts
    are then known; those that are not pauses have ``part`` of that mean, or more if the spread requires it.
    """
    p = 1 / length
    mean = (mean_ns - (1 - p) * within_ns) / p
    if cv is None:
        return Bursts(length, within_ns, mean)
    variance = ((cv**2 + 1) / 2 * mean_ns**2 - (1 - p) * within_ns**2) / p - mean**2
    if variance <= 0:
        # Even without pauses the spread is larger than requested.
        return Bursts(length, within_ns, mean)
    odds = min(((1 - part) * mean) ** 2 / variance, 1.0)
    return Bursts(
        length,
        within_ns,
        mean - math.sqrt(odds * variance),
        odds / (1 + odds),
        mean + math.sqrt(variance / odds),
    )


class Lengths(NamedTuple):
    """The mean number of requests in a burst of reads, and in a burst of other operations."""

    reads: float
    others: float


def of_rate(mean_ns: float, within_ns: float, requests: tuple[int, int], lengths: Lengths) -> Bursts:
    """Returns bursts of one operation with these lengths, and a gap between them that keeps the mean gap.

    ``requests`` are the numbers of reads and of other requests; ``within_ns`` is the gap within bursts, at
    most the mean.
    """
    total = sum(requests)
    starts = requests[0] / lengths.reads + requests[1] / lengths.others
    within = min(within_ns, mean_ns)
    between = (mean_ns * total - within * (total - starts)) / starts
    return Bursts(lengths.others, within, between)
