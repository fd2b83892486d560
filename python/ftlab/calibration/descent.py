"""Least squares by the method of Levenberg and Marquardt, with a Jacobian from finite differences.

Marquardt, "An algorithm for least-squares estimation of nonlinear parameters", SIAM Journal 11 (1963).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

Vector: TypeAlias = "np.ndarray[tuple[int], np.dtype[np.float64]]"
Matrix: TypeAlias = "np.ndarray[tuple[int, int], np.dtype[np.float64]]"

Residuals: TypeAlias = Callable[[Sequence[Vector]], "list[Vector | None]"]
"""The residuals at each of several points; None where a point is not valid."""

DAMPING = (1e-3, 1e-1, 1e1)
"""How much each trial step is damped, relative to the diagonal; all are tried at once."""

ENOUGH = 1e-3
"""The relative gain of a step below which the descent ends."""


@dataclass(frozen=True)
class Valley:
    """Where a descent has ended."""

    at: Vector
    residuals: Vector
    jacobian: Matrix
    """The derivatives of the residuals, a row each, at the end or one step before it."""

    @property
    def cost(self) -> float:
        """Returns the sum of the squared residuals."""
        return float(self.residuals @ self.residuals)


def descend(residuals: Residuals, start: Vector, step: float, most: int) -> Valley:
    """Returns the lowest point found from ``start`` in at most ``most`` steps.

    Points lie in the unit cube; ``step`` is the length of the differences along each axis.
    """
    at = np.clip(start, 0.0, 1.0)
    (here,) = residuals([at])
    if here is None:
        raise ValueError("the start is not valid")
    jacobian = slopes(residuals, at, here, step)
    for number in range(most):
        found = _lower(residuals, at, here, jacobian)
        if found is None:
            break
        gain = 1 - float(found[1] @ found[1]) / max(float(here @ here), 1e-300)
        at, here = found
        if gain < ENOUGH or number == most - 1:
            break
        jacobian = slopes(residuals, at, here, step)
    return Valley(at, here, jacobian)


def slopes(residuals: Residuals, at: Vector, here: Vector, step: float) -> Matrix:
    """Returns the Jacobian at a point; each difference points into the cube."""
    moves = np.where(at + step <= 1.0, step, -step)
    there = residuals([at + move * axis for move, axis in zip(moves, np.eye(len(at)), strict=True)])
    # A key that cannot be moved there has no slope: the step leaves it alone.
    columns = [
        (each - here) / move if each is not None else np.zeros_like(here)
        for each, move in zip(there, moves, strict=True)
    ]
    return np.stack(columns, axis=1) if columns else np.zeros((len(here), 0))


def _lower(residuals: Residuals, at: Vector, here: Vector, jacobian: Matrix) -> tuple[Vector, Vector] | None:
    """Returns a lower point and its residuals; None if no step leads to one."""
    points = [step_to(at, here, jacobian, damping) for damping in DAMPING]
    there = residuals(points)
    known = [
        (float(each @ each), point, each)
        for point, each in zip(points, there, strict=True)
        if each is not None
    ]
    if not known:
        return None
    cost, point, each = min(known, key=lambda one: one[0])
    return (point, each) if cost < float(here @ here) else None


def step_to(at: Vector, here: Vector, jacobian: Matrix, damping: float) -> Vector:
    """Returns where a damped step leads; it stays in the cube, and axes that it would leave stand still."""
    free = np.ones(len(at), dtype=bool)
    moved = np.array(at)
    for _ in range(len(at)):
        if not free.any():
            break
        part = jacobian[:, free]
        normal = part.T @ part
        # An axis without any slope would make the matrix singular.
        diagonal = np.maximum(np.diag(normal), 1e-9)
        move = np.linalg.solve(normal + np.diag(damping * diagonal), -part.T @ here)
        moved = np.array(at)
        moved[free] += move
        stuck = free & (((at <= 0.0) & (moved < 0.0)) | ((at >= 1.0) & (moved > 1.0)))
        if not stuck.any():
            break
        free &= ~stuck
    return np.clip(moved, 0.0, 1.0)
