"""Mixes of request sizes: sizes with weights."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

MOST_SIZES = 64
"""The maximum number of sizes in a generator's mix."""

_WEIGHTS = 1_000_000
"""The approximate sum of a mix's weights."""

SECTOR = 512
"""The smallest size of a request, in bytes."""

Mix = list[tuple[int, int]]
"""Sizes in bytes, each with its weight, as in fio's bssplit."""


def of_mean(sizes: Sequence[int], mean: float) -> Mix | None:
    """Returns the mix of ``sizes`` that has this mean and assumes the least; None if no mix has this mean.

    This mix has the greatest entropy of all mixes with that mean: weights fall (or rise) exponentially with
    the size.
    """
    low, high = min(sizes), max(sizes)
    if not low <= mean <= high:
        return None
    if low == high:
        return [(low, 1)]

    def weights(slope: float) -> list[float]:
        exponents = [slope * size / high for size in sizes]
        top = max(exponents)
        return [math.exp(exponent - top) for exponent in exponents]

    def mean_of(slope: float) -> float:
        shares = weights(slope)
        return sum(share * size for share, size in zip(shares, sizes, strict=True)) / sum(shares)

    left, right = -1e4, 1e4
    for _ in range(200):
        middle = (left + right) / 2
        left, right = (middle, right) if mean_of(middle) < mean else (left, middle)
    shares = weights(left)
    total = sum(shares)
    mix = [(size, round(share / total * _WEIGHTS)) for size, share in zip(sizes, shares, strict=True)]
    return [(size, weight) for size, weight in mix if weight]


def of_counts(counts: Mapping[int, int]) -> Mix:
    """Returns a mix that keeps the most frequent sizes and replaces all other sizes by their mean."""
    common = sorted(counts, key=lambda size: (-counts[size], size))
    kept, rest = common[:MOST_SIZES], common[MOST_SIZES:]
    if rest:
        rest.append(kept.pop())
        requests = sum(counts[size] for size in rest)
        mean = sum(size * counts[size] for size in rest) / requests
        merged = {size: counts[size] for size in kept}
        whole = max(round(mean / SECTOR), 1) * SECTOR
        merged[whole] = merged.get(whole, 0) + requests
        counts = merged
    # A weight must fit into 32 bits.
    shrink = max(sum(counts.values()) / 2**31, 1)
    return [(max(size, SECTOR), max(round(counts[size] / shrink), 1)) for size in sorted(counts)]


def mean(mix: Mix) -> float:
    """Returns the mean size of a mix in bytes."""
    return sum(size * weight for size, weight in mix) / sum(weight for _, weight in mix)


def text(mix: Mix) -> str:
    """Writes a mix as in a configuration."""
    return ":".join(f"{_bytes(size)}/{weight}" for size, weight in mix)


def _bytes(size: int) -> str:
    return f"{size >> 10}KiB" if size % 1024 == 0 else f"{size}B"


def difference(found: Mapping[int, int], wanted: Mapping[int, int]) -> float:
    """Returns the largest difference between the cumulative shares of requests by size (the
    Kolmogorov-Smirnov statistic).
    """
    totals = (sum(found.values()), sum(wanted.values()))
    if not all(totals):
        return 0.0 if totals[0] == totals[1] else 1.0
    largest, sums = 0.0, [0, 0]
    for size in sorted({*found, *wanted}):
        sums[0] += found.get(size, 0)
        sums[1] += wanted.get(size, 0)
        largest = max(largest, abs(sums[0] / totals[0] - sums[1] / totals[1]))
    return largest
