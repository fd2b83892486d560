"""The arrival process, as far as figures of the gaps determine it."""

from __future__ import annotations

from typing import NamedTuple

from ftlab.fitting import arrivals, persistence, quantity
from ftlab.fitting.targets import Targets


def given(targets: Targets, keys: dict[str, str]) -> None:
    """Sets the keys that give the gaps the requested mean and spread, and bursts the sizes of the trace."""
    mean, cv = targets.mean_interarrival_ns, targets.interarrival_cv
    if mean is None:
        return
    keys["interarrival"] = quantity.ns(mean)
    if targets.median_interarrival_ns is not None or (cv is not None and cv > arrivals.POISSON_CV):
        keys["arrival"] = "bursts"
        found = Gaps.of(targets).bursts()
        set_bursts(keys, found)
        if targets.persistence is not None:
            persistence.set_sizes(targets.persistence, found, keys)
    elif cv is not None and cv <= arrivals.STEADY_CV:
        keys["arrival"] = "constant"
    else:
        keys["arrival"] = "exponential"


class Gaps(NamedTuple):
    """Figures of the gaps between arrivals; those not requested are None."""

    mean_ns: float | None
    cv: float | None
    median_ns: float | None
    seen: float | None
    """The number of requests per gap above the mean gap."""

    @classmethod
    def of(cls, targets: Targets) -> Gaps:
        """Returns the figures of ``targets``."""
        return cls(
            targets.mean_interarrival_ns,
            targets.interarrival_cv,
            targets.median_interarrival_ns,
            targets.burst_length,
        )

    def times(self, factors: list[float | None]) -> Gaps:
        """Returns the figures multiplied by these factors, each limited to between 0.5 and 2; the spread
        stays one that bursts can have.
        """
        mean, cv, median, seen = (
            value if value is None or by is None else value * min(max(by, 0.5), 2.0)
            for value, by in zip(self, factors, strict=True)
        )
        return Gaps(mean, None if cv is None else max(cv, 1.0), median, seen)

    def bursts(self) -> arrivals.Bursts:
        """Returns the bursts that have these figures, from the closed forms."""
        assert self.mean_ns is not None
        if self.median_ns is not None and self.seen is not None:
            return arrivals.median_bursts(self.mean_ns, self.median_ns, self.seen, self.cv)
        assert self.cv is not None
        if self.seen is not None:
            return arrivals.seen_bursts(self.mean_ns, self.cv, self.seen)
        return arrivals.bursts(self.mean_ns, self.cv, 10.0)


def set_bursts(keys: dict[str, str], found: arrivals.Bursts) -> None:
    """Sets the keys of a process of bursts."""
    keys.update(
        interarrival=quantity.ns(found.within_ns),
        burst_gap=quantity.ns(found.between_ns),
        burst_length=quantity.length(found.length),
    )
    for key in ("pause_share", "pause"):
        keys.pop(key, None)
    if found.pause_share:
        keys.update(pause_share=quantity.percent(found.pause_share), pause=quantity.ns(found.pause_ns))
