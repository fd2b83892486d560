"""Roots of functions that cost a simulation to evaluate: bisection, and Broyden's method in two
variables.

Broyden, "A class of methods for solving nonlinear simultaneous equations", Mathematics of Computation 19
(1965), method 1 ("good Broyden"): a Jacobian from finite differences, which each step then corrects.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

Pair = tuple[float, float]

LONGEST_STEP = 1.0
"""The longest step along each variable; the variables are logarithms."""

_RETRIES = 4


class Point(NamedTuple):
    """A point and the residuals there."""

    at: Pair
    residuals: Pair

    @property
    def distance(self) -> float:
        """Returns the larger of the two residuals, without sign."""
        return max(abs(self.residuals[0]), abs(self.residuals[1]))


class OverError(Exception):
    """Raised inside a search to leave it: the point is good enough, or the budget is spent."""


def bisect(function: Callable[[float], float], low: float, high: float, within: float, most: int) -> float:
    """Returns a point at which an increasing ``function`` is within ``within`` of 0, or else the nearest
    point found.

    At most ``most`` points are evaluated.
    """
    best, least = low, math.inf
    for turn in range(most):
        # The ends are tried first: the root may be beyond them.
        at = (low, high)[turn] if turn < 2 else (low + high) / 2
        value = function(at)
        if abs(value) < least:
            best, least = at, abs(value)
        if least <= within or (turn == 0 and value > 0) or (turn == 1 and value < 0):
            break
        if turn >= 2:
            low, high = (at, high) if value < 0 else (low, at)
    return best


class Search:
    """A search for a common root of two functions of two variables."""

    def __init__(
        self, function: Callable[[Pair], Pair], low: Pair, high: Pair, within: float, most: int
    ) -> None:
        """Makes the search; ``function`` returns the residuals at a point between ``low`` and ``high``.

        The search ends at a point where both residuals are at most ``within``, or after ``most`` evaluations.
        """
        self._function = function
        self._low, self._high = low, high
        self._within, self._left = within, most
        self.best: Point | None = None

    def run(self, start: Pair) -> Point:
        """Searches from ``start``; returns the best point found."""
        try:
            point = self._evaluate(start)
            while True:
                point = self._descend(point)
        except OverError:
            assert self.best is not None, "a search evaluates its start"
            return self.best

    def _evaluate(self, at: Pair) -> Point:
        if self._left == 0:
            raise OverError
        self._left -= 1
        at = self._clip(at)
        point = Point(at, self._function(at))
        if self.best is None or point.distance < self.best.distance:
            self.best = point
        if point.distance <= self._within:
            raise OverError
        return point

    def _clip(self, at: Pair) -> Pair:
        x, y = (min(max(v, a), b) for v, a, b in zip(at, self._low, self._high, strict=True))
        return x, y

    def _descend(self, point: Point) -> Point:
        """Steps from ``point`` as long as one Jacobian helps; returns the point at which to measure a new
        one.
        """
        jacobian = self._differences(point)
        for _ in range(_RETRIES * 3):
            step = _newton(jacobian, point.residuals)
            for _ in range(_RETRIES):
                reached = self._evaluate((point.at[0] + step[0], point.at[1] + step[1]))
                _correct(jacobian, point, reached)
                if reached.distance < point.distance:
                    break
                step = (step[0] / 2, step[1] / 2)
            else:
                # Continues next to the best point so far, where the slopes are measured anew.
                return self._around(self.best or point)
            point = reached
        return point

    def _around(self, point: Point) -> Point:
        """Returns a point slightly to one side of ``point``: random draws make the functions rough on the
        smallest scale.
        """
        turn = 2.399963 * self._left
        aside = (0.01 * math.cos(turn), 0.02 * math.sin(turn))
        return self._evaluate((point.at[0] + aside[0], point.at[1] + aside[1]))

    def _differences(self, point: Point) -> list[list[float]]:
        """Returns the slopes of both functions along both variables."""
        rows = [[0.0, 0.0], [0.0, 0.0]]
        for variable, step in enumerate((0.15, 0.2)):
            up = point.at[variable] + step <= self._high[variable]
            moved = list(point.at)
            moved[variable] += step if up else -step
            there = self._evaluate((moved[0], moved[1]))
            width = there.at[variable] - point.at[variable]
            for function in range(2):
                change = there.residuals[function] - point.residuals[function]
                rows[function][variable] = change / width if width else 0.0
        return rows


def _newton(jacobian: list[list[float]], residuals: Pair) -> Pair:
    """Returns Newton's step, damped (Levenberg) where both functions fall along the same direction."""
    (a, b), (c, d) = jacobian
    # The normal equations (J'J + damping) step = -J'r.
    p, q, s = a * a + c * c, a * b + c * d, b * b + d * d
    damping = 1e-4 * (p + s) + 1e-12
    p, s = p + damping, s + damping
    u = -(a * residuals[0] + c * residuals[1])
    v = -(b * residuals[0] + d * residuals[1])
    determinant = p * s - q * q
    x, y = (s * u - q * v) / determinant, (p * v - q * u) / determinant
    shrink = max(abs(x) / LONGEST_STEP, abs(y) / LONGEST_STEP, 1.0)
    return x / shrink, y / shrink


def _correct(jacobian: list[list[float]], before: Point, after: Point) -> None:
    """Applies Broyden's rank-one correction."""
    step = (after.at[0] - before.at[0], after.at[1] - before.at[1])
    square = step[0] ** 2 + step[1] ** 2
    # Tiny steps show the noise of the functions, not their slopes.
    if square < 1e-4:
        return
    for function in range(2):
        row = jacobian[function]
        change = after.residuals[function] - before.residuals[function]
        missed = (change - row[0] * step[0] - row[1] * step[1]) / square
        row[0] += missed * step[0]
        row[1] += missed * step[1]
