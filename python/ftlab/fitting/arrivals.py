"""Arrival processes from their mean and spread."""

from __future__ import annotations

import math
from typing import NamedTuple

STEADY_CV = 0.1
"""Below this coefficient of variation gaps are constant."""

POISSON_CV = 1.05
"""Up to this they are exponential."""


class Bursts(NamedTuple):
    """On and off: mean requests in a burst, mean gaps within and between, ns."""

    length: float
    within_ns: float
    between_ns: float


def bursts(mean_ns: float, cv: float, length: float) -> Bursts:
    """The bursts with this mean gap and coefficient of variation of the gaps.

    Gaps are a mixture of two exponentials, the long one with probability p = 1 / length: mean
    m = (1 - p) w + p b, second moment 2 ((1 - p) w^2 + p b^2) = (cv^2 + 1) m^2. With w >= 0 the length is
    at least (cv^2 + 1) / 2; a shorter one is raised.
    """
    length = max(length, (cv**2 + 1) / 2 * 1.02, 1.0001)
    p = 1 / length
    half = (cv**2 + 1) * mean_ns**2 / 2
    root = mean_ns**2 - (1 - p) / p * (mean_ns**2 / (1 - p) - half)
    between = mean_ns + math.sqrt(max(root, 0.0))
    within = max((mean_ns - p * between) / (1 - p), 0.0)
    return Bursts(length, within, between)


def seen_length(found: Bursts) -> float:
    """Requests for each gap above the mean gap, the measure of burstiness: in a process with these
    bursts a little more than their length where gaps within are short."""
    p = 1 / found.length
    mean = (1 - p) * found.within_ns + p * found.between_ns
    above = p * math.exp(-mean / found.between_ns) if found.between_ns else 0.0
    above += (1 - p) * math.exp(-mean / found.within_ns) if found.within_ns else 0.0
    return 1 / above if above else math.inf


def seen_bursts(mean_ns: float, cv: float, seen: float) -> Bursts:
    """The bursts with this mean gap, coefficient of variation and requests for each gap above the mean.

    Where no mixture of two exponentials has all three, the one that has the first two and is nearest
    in the third. Bisection over the length: the longer the bursts with the same spread, the longer the
    gaps within them, and the more of those are above the mean.
    """
    low, high = math.log((cv**2 + 1) / 2 * 1.02), math.log(1e9)
    for _ in range(100):
        middle = (low + high) / 2
        if seen_length(bursts(mean_ns, cv, math.exp(middle))) > seen:
            low = middle
        else:
            high = middle
    return bursts(mean_ns, cv, math.exp(low))


def median_bursts(mean_ns: float, median_ns: float, seen: float) -> Bursts:
    """The bursts with this mean gap, median gap and requests for each gap above the mean.

    Better conditioned than by the spread, which hardly depends on the gap within bursts where that is
    short. Bisections: the gap within for each length by the median, the length by the third.
    """

    def of_length(length: float) -> Bursts:
        p = 1 / length
        low, high = 0.0, mean_ns
        for _ in range(100):
            within = (low + high) / 2
            between = (mean_ns - (1 - p) * within) / p
            longer = p * math.exp(-median_ns / between)
            longer += (1 - p) * math.exp(-median_ns / within) if within else 0.0
            low, high = (within, high) if longer < 0.5 else (low, within)
        return Bursts(length, low, (mean_ns - (1 - p) * low) / p)

    low, high = math.log(1.0001), math.log(1e9)
    for _ in range(100):
        middle = (low + high) / 2
        if seen_length(of_length(math.exp(middle))) < seen:
            low = middle
        else:
            high = middle
    return of_length(math.exp(low))


class Lengths(NamedTuple):
    """Mean requests in a burst of reads, and in one of other operations."""

    reads: float
    others: float


def of_rate(mean_ns: float, within_ns: float, requests: tuple[int, int], lengths: Lengths) -> Bursts:
    """Bursts of one operation with these lengths, the gap between them such that the mean gap is kept.

    ``requests`` are reads and others; ``within_ns`` is the gap within bursts, at most the mean.
    """
    total = sum(requests)
    starts = requests[0] / lengths.reads + requests[1] / lengths.others
    within = min(within_ns, mean_ns)
    between = (mean_ns * total - within * (total - starts)) / starts
    return Bursts(lengths.others, within, between)
