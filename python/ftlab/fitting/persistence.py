"""How long sizes persist: measured of a workload, and the generator's keys that give it.

The correlation of log sizes of two requests of one kind (reads; writes and trims) in a burst tells how long
sizes persist. It is measured at several distances, since on recorded traces it falls at first and then stays:
requests repeat the size before them, and bursts have sizes of their own.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ftlab.fitting import arrivals, quantity

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

LAGS = (1, 2, 4, 8, 16)
"""Numbers of requests from one request of a pair to the other."""

LEAST_PAIRS = 100
"""With fewer pairs a correlation is not measured."""

NORMAL = 2.58
"""The limit, in standard errors, that random draws exceed once in a hundred times."""

MOST_KEPT = 0.95
"""The largest share of bursts that keep the size of the one before: with more, few sizes would be drawn."""

MOST_ALIKE = 0.9999
"""The largest correlation that is told from 1, at which nothing would say how fast it falls."""

_SAME_BURST = 0.5
"""At least this share of the pairs measured must be in one burst of the process fitted."""

_LEAST_TOLD = 0.1
"""Gaps must tell bursts apart this much: the difference between the shares of short and of long gaps that are
within a burst.
"""


@dataclass
class Persistence:
    """Correlations of log sizes, each minus the mean of its kind."""

    within: dict[int, float]
    """By the number of requests from one to the other: of requests of one kind in one burst, which ends at a
    gap above the mean gap. Distances with too few pairs are left out.
    """
    across: float
    """Of the last request of a burst and the first of the next, if they are of one kind; 0 with few pairs."""
    chance: float = 0.0
    """What independent sizes would exceed once in a hundred times."""


def measured(times: NDArray[np.uint64], reads: NDArray[np.bool_], sizes: NDArray[np.float64]) -> Persistence:
    """Returns the correlations of requests with these arrivals in ns, operations, and sizes in bytes."""
    import numpy as np

    gaps = np.diff(times)
    ends = np.flatnonzero(gaps > gaps.mean()) if gaps.size else np.empty(0, dtype=np.intp)
    bursts = np.zeros(times.size, dtype=np.int64)
    bursts[ends + 1] = 1
    bursts = bursts.cumsum()
    logs = np.log2(np.maximum(sizes, 1.0))
    for kind in (reads, ~reads):
        if kind.any():
            logs[kind] -= logs[kind].mean()
    within = {}
    for lag in LAGS:
        if times.size > lag:
            pairs = (bursts[:-lag] == bursts[lag:]) & (reads[:-lag] == reads[lag:])
            if (found := _correlation(logs[:-lag][pairs], logs[lag:][pairs])) is not None:
                within[lag] = found
    ends = ends[reads[ends] == reads[ends + 1]]
    # Sizes of one burst say much the same about how long sizes persist, so each burst counts once.
    chance = NORMAL / math.sqrt(int(bursts[-1]) + 1)
    return Persistence(within, _correlation(logs[ends], logs[ends + 1]) or 0.0, chance)


def _correlation(left: NDArray[np.float64], right: NDArray[np.float64]) -> float | None:
    """Returns the correlation; None if there are few pairs or no differences."""
    import numpy as np

    if left.size < LEAST_PAIRS or not left.any() or np.ptp(left) == 0 or np.ptp(right) == 0:
        return None
    return float(np.corrcoef(left, right)[0, 1])


def set_sizes(found: Persistence, bursts: arrivals.Bursts, keys: dict[str, str]) -> None:
    """Sets the keys with which bursts of this process have the correlations found.

    A short gap may be one between bursts, a long one may be within a burst: each correlation found is a
    mixture of those of one burst and of two. Within a burst the generator's sizes have the correlation
    p + (1 - p) c^k, in neighbouring bursts p g (c, p and g are the three keys): c and p follow from two
    distances, g from neighbouring bursts. What chance may give is left out.
    """
    short, long = arrivals.same_burst(bursts)
    told = short - long
    if 1 not in found.within or told < _LEAST_TOLD:
        return
    near = _limited((found.within[1] * (1 - long) - found.across * (1 - short)) / told)
    across = (found.across * short - found.within[1] * long) / told
    lag = max(lag for lag in found.within if lag == 1 or short**lag >= _SAME_BURST)
    share = short**lag
    far = near if lag == 1 else _limited((found.within[lag] - (1 - share) * across) / share)
    if near <= found.chance:
        return
    persistence, correlation = split(near, min(far, near), lag)
    if persistence <= found.chance:
        persistence, correlation = 0.0, near
    keys["size_correlation"] = quantity.percent(correlation)
    if persistence:
        keys["size_persistence"] = quantity.percent(persistence)
    if persistence and across > found.chance:
        keys["burst_size_correlation"] = quantity.percent(min(across / persistence, MOST_KEPT))


def _limited(correlation: float) -> float:
    """Returns the nearest share."""
    return min(max(correlation, 0.0), 1.0)


def compared(wanted: Persistence | None, found: Persistence | None) -> list[tuple[str, float, float, bool]]:
    """Returns the correlations of requests next to each other, and farthest apart, of two workloads: name,
    target, reached, and that it is a ratio.
    """
    if wanted is None or found is None:
        return []
    both = [lag for lag in (LAGS[0], LAGS[-1]) if lag in wanted.within and lag in found.within]
    return [(f"size_lag_{lag}", wanted.within[lag], found.within[lag], True) for lag in both]


def inflation(keys: dict[str, str]) -> float:
    """Returns how many times the variance of a mean of sizes is that of as many independent ones: 1 + twice
    the sum of all correlations, of the same burst (with geometric lengths) and of later ones.
    """
    if keys.get("arrival") != "bursts":
        return 1.0
    correlation, persistence, across = (
        quantity.share_of(keys.get(key, "0%"))
        for key in ("size_correlation", "size_persistence", "burst_size_correlation")
    )
    length = float(keys.get("burst_length", "10"))
    reads = keys.get("read_burst_length", "same")
    length = length if reads == "same" else max(length, float(reads))
    repeats = (1 - 1 / length) * correlation
    within = persistence * (length - 1) + (1 - persistence) * repeats / max(1 - repeats, 1e-6)
    return 1 + 2 * (within + persistence * length * across / max(1 - across, 1e-6))


def split(near: float, far: float, lag: int) -> tuple[float, float]:
    """Returns p and c with p + (1 - p) c = ``near`` and p + (1 - p) c^lag = ``far``, which is at most
    ``near``; p is at least 0.

    (1 - far) / (1 - near) is 1 + c + ... + c^(lag - 1), which grows with c.
    """
    if lag == 1:
        return near, 0.0
    near, far = min(near, MOST_ALIKE), min(far, MOST_ALIKE)
    wanted = (1 - far) / (1 - near)
    low, high = 0.0, near
    for _ in range(60):
        middle = (low + high) / 2
        if math.fsum(middle**power for power in range(lag)) < wanted:
            low = middle
        else:
            high = middle
    return max(1 - (1 - near) / (1 - low), 0.0), low
