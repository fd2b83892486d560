"""A closed loop in closed form: a delay, servers of one service time, and a rate that nothing exceeds.

Exact mean value analysis (Reiser and Lavenberg, "Mean-value analysis of closed multichain queuing networks",
Journal of the ACM 27, 1980). A request waits a delay that nothing shares, one of K equal servers chosen at
random, and one more server that all share, whose service time is the inverse of the rate. Service times are
exponential here; those of a drive are not, so this is where a fit begins and not where it ends.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from ftlab.calibration.descent import Vector, descend

SPAN = (1e-2, 1.0)
"""Between which shares of the latency at depth 1 delay and service time are sought."""


@dataclass(frozen=True)
class Loop:
    """A closed loop; times are in microseconds."""

    delay_us: float
    servers: int
    service_us: float
    command_us: float
    """The time that each request holds the server that all share: the inverse of the greatest rate."""

    def latencies(self, most: int) -> list[float]:
        """Returns the mean latency with 1 to ``most`` requests outstanding, in microseconds."""
        found: list[float] = []
        queue = shared = 0.0
        for outstanding in range(1, most + 1):
            # An arriving request finds what would be there without it.
            served = self.service_us * (1 + queue / self.servers)
            commanded = self.command_us * (1 + shared)
            latency = self.delay_us + served + commanded
            queue = outstanding / latency * served
            shared = outstanding / latency * commanded
            found.append(latency)
        return found


def fit(curve: Mapping[int, float], servers: int, busy: float = 1.0) -> tuple[Loop, float]:
    """Fits delay, service time and rate to mean latencies (us) by outstanding requests.

    ``busy`` is how busy the server that all share is at most, where the measured rate is greatest.

    Returns the loop, and the root mean square of ln(loop / measured).
    """
    depths = sorted(curve)
    measured = np.array([curve[depth] for depth in depths])
    alone = measured[0]
    # The greatest rate was at least reached.
    least_us = busy * float(min(latency / depth for depth, latency in curve.items()))
    low = np.log([SPAN[0] * alone, SPAN[0] * alone, SPAN[0] * least_us])
    high = np.log([SPAN[1] * alone, SPAN[1] * alone, least_us])

    def loop(point: Vector) -> Loop:
        delay, service, command = np.exp(low + (high - low) * point)
        return Loop(float(delay), servers, float(service), float(command))

    def residuals(points: Sequence[Vector]) -> list[Vector | None]:
        return [np.log(_at(loop(point), depths) / measured) for point in points]

    starts = [np.array([delay, service, 0.95]) for delay in (0.5, 0.8) for service in (0.6, 0.85)]
    valleys = [descend(residuals, start, 1e-4, 60) for start in starts]
    best = min(valleys, key=lambda valley: valley.cost)
    return loop(best.at), math.sqrt(best.cost / len(depths))


def _at(loop: Loop, depths: Sequence[int]) -> Vector:
    every = loop.latencies(depths[-1])
    return np.array([every[depth - 1] for depth in depths])
