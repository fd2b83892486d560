"""Latency histograms that can be added, in the bins of the core and of fio's json+ output.

Values below 128 have a bin each; above, every power of two has 64 bins of equal width, so a bin's midpoint is
at most 1/128 off. The same layout is in crates/core/src/metrics/histogram.rs and in fio (FIO_IO_U_PLAT_BITS
of 6 in its stat.h), without fio's upper bound of 17 s.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from ftlab._core import UserError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import ArrayLike

SUB_BITS = 6
"""The number of bins per power of two, as the exponent of 2."""

PERCENTILES = (
    *(1.0, 5.0, 10.0, 20.0, 30.0, 40.0, 50.0, 60.0, 70.0, 80.0, 90.0, 95.0),
    *(99.0, 99.5, 99.9, 99.95, 99.99),
)
"""The percentiles of a result: fio's list."""

_CHUNK = 1 << 16


def lower(value: int, sub_bits: int = SUB_BITS) -> int:
    """Returns the least value of the bin of ``value``; each power of two has ``2**sub_bits`` bins."""
    shift = max(value.bit_length() - sub_bits - 1, 0)
    return value >> shift << shift


def midpoint(low: int) -> int:
    """Returns the representative value of the bin that begins at ``low``."""
    return low + (1 << max(low.bit_length() - SUB_BITS - 1, 0) >> 1)


class Histogram:
    """Counts of values (ns) in bins of bounded relative width, with exact count, mean and extremes.

    The sum of the histograms of two runs is the histogram of both together::

        both = first.histogram("latency", "read") + second.histogram("latency", "read")
        both.percentile(99), both.mean_ns

    Histograms are equal if their bins, extremes and sums are.
    """

    def __init__(self, values: ArrayLike = ()) -> None:
        """Makes the histogram of ``values``, which are whole numbers of at least 0."""
        import numpy as np

        numbers = np.asarray(values)
        if numbers.size and numbers.dtype.kind not in "iu":
            raise TypeError(f"values must be whole numbers of ns, not {numbers.dtype}")
        if numbers.size and int(numbers.min()) < 0:
            raise ValueError("values must not be negative")
        numbers = numbers.astype(np.uint64, copy=False).ravel()
        lows, counts = np.unique(_lowers(numbers), return_counts=True)
        self._bins: dict[int, int] = dict(zip(lows.tolist(), counts.tolist(), strict=True))
        self.count = int(numbers.size)
        """The number of values."""
        self.min_ns = int(numbers.min()) if numbers.size else 0
        """The least value; 0 if there are no values."""
        self.max_ns = int(numbers.max()) if numbers.size else 0
        """The greatest value; 0 if there are no values."""
        # The values are summed in parts small enough that no part's sum can overflow.
        parts = [numbers[start : start + _CHUNK] for start in range(0, len(numbers), _CHUNK)]
        self._sum = sum(int(part.sum()) for part in parts)
        mean = self.mean_ns
        self._deviations = float(sum(np.square(part.astype(np.float64) - mean).sum() for part in parts))

    @classmethod
    def of_summary(cls, summary: Mapping[str, Any]) -> Histogram:
        """Reads the histogram in a part of a result (``result.latency.read``), or in what `to_dict` returns.

        Raises:
            UserError: the part has no bins.
        """
        if "histogram" not in summary:
            raise UserError("no histogram in this result; run with results.histograms = true")
        new = cls()
        new._bins = {int(low): int(count) for low, count in summary["histogram"]["bins"]}
        new.count = summary["count"]
        new.min_ns, new.max_ns = summary["min_ns"], summary["max_ns"]
        new._sum = round(summary["mean_ns"] * new.count)
        new._deviations = summary["stddev_ns"] ** 2 * new.count
        return new

    @property
    def bins(self) -> list[tuple[int, int]]:
        """Returns the least value and count of every bin that holds a value, ascending."""
        return sorted(self._bins.items())

    @property
    def mean_ns(self) -> float:
        """Returns the arithmetic mean; 0 if there are no values."""
        return self._sum / self.count if self.count else 0.0

    @property
    def stddev_ns(self) -> float:
        """Returns the standard deviation of the population; 0 if there are no values."""
        return math.sqrt(self._deviations / self.count) if self.count else 0.0

    def percentile(self, percent: float) -> int:
        """Returns the value at or below which ``percent`` of the values lie, within 1/128; 0 if empty."""
        if not 0 <= percent <= 100:
            raise ValueError(f"a percentile is between 0 and 100, not {percent}")
        rank = -(-self.count * math.floor(percent * 10_000 + 0.5) // 1_000_000)
        rank = max(rank, 1)
        seen = 0
        for low, count in self.bins:
            seen += count
            if seen >= rank:
                return min(max(midpoint(low), self.min_ns), self.max_ns)
        return self.max_ns

    def merge(self, *others: Histogram) -> Histogram:
        """Returns a new histogram of the values of this one and of ``others``."""
        new = Histogram()
        histograms = [one for one in (self, *others) if one.count]
        if not histograms:
            return new
        new.count = sum(one.count for one in histograms)
        new.min_ns = min(one.min_ns for one in histograms)
        new.max_ns = max(one.max_ns for one in histograms)
        new._sum = sum(one._sum for one in histograms)
        for one in histograms:
            for low, count in one._bins.items():
                new._bins[low] = new._bins.get(low, 0) + count
            # The spread around the histogram's own mean, moved to the common mean.
            new._deviations += one._deviations + one.count * (one.mean_ns - new.mean_ns) ** 2
        return new

    def __add__(self, other: Histogram) -> Histogram:
        """Merges two histograms; ``sum(histograms, ftlab.Histogram())`` merges many."""
        return self.merge(other) if isinstance(other, Histogram) else NotImplemented

    def __eq__(self, other: object) -> bool:
        """Whether the bins, the extremes and the sums are the same."""
        if not isinstance(other, Histogram):
            return NotImplemented
        return self._key() == other._key()

    def _key(self) -> tuple[dict[int, int], int, int, int, int]:
        return self._bins, self.count, self.min_ns, self.max_ns, self._sum

    __hash__ = None  # type: ignore[assignment]

    def to_dict(self, percentiles: Iterable[float] = PERCENTILES) -> dict[str, Any]:
        """Returns the histogram in the form that it has in a result with ``results.histograms``."""
        points = percentiles if self.count else ()
        return {
            "count": self.count,
            "mean_ns": self.mean_ns,
            "stddev_ns": self.stddev_ns,
            "min_ns": self.min_ns,
            "max_ns": self.max_ns,
            "percentile_ns": {f"{percent:.6f}": self.percentile(percent) for percent in points},
            "histogram": {"bins": [list(each) for each in self.bins]},
        }

    def __repr__(self) -> str:
        """Returns a line with count, mean and extremes."""
        return (
            f"<ftlab.Histogram of {self.count} values, {self.min_ns} to {self.max_ns} ns, "
            f"mean {self.mean_ns:.1f} ns>"
        )


def _lowers(values: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Returns `lower` of every value."""
    import numpy as np

    # The number of binary digits, from the exponent; a value that rounds up to the next power of two seems to
    # have one digit too many.
    digits = np.frexp(values.astype(np.float64))[1]
    shift = np.maximum(digits - (SUB_BITS + 1), 0).astype(np.uint64)
    over = (shift > 0) & ((values >> shift) < np.uint64(1 << SUB_BITS))
    shift -= over.astype(np.uint64)
    lows: np.ndarray[Any, Any] = values >> shift << shift
    return lows
