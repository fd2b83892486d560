"""How far a model is from what was measured."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np

from ftlab._core import UserError
from ftlab.calibration.descent import Vector
from ftlab.calibration.model import NAMES, Figures, figures_of
from ftlab.calibration.row import Row

WEIGHTS = {"iops": 1.0, "mean_us": 1.0, "p50_us": 0.05, "p99_us": 0.05, "p999_us": 0.02}
"""What the square of each figure's logarithmic error counts, unless ``--weights`` says otherwise.

Percentiles count less as those of a run are noisy: they decide where rates and means cannot.
"""


def weights_of(text: str | None) -> dict[str, float]:
    """Reads ``--weights mean=1,iops=1,p50=0.1,p99=0.1,p999=0.1``; what is left out keeps its default.

    Raises:
        UserError: a name or a number is none.
    """
    found = dict(WEIGHTS)
    for part in (text or "").split(","):
        if not part.strip():
            continue
        name, equals, number = (each.strip() for each in part.partition("="))
        name = name if name in found else f"{name}_us"
        try:
            value = float(number)
        except ValueError:
            value = -1.0
        if not equals or name not in found or not 0 <= value < math.inf:
            short = ", ".join(each.removesuffix("_us") for each in WEIGHTS)
            raise UserError(f"--weights {text}: write NAME=NUMBER for any of {short}, such as p99=0.5")
        found[name] = value
    if not found["iops"] + found["mean_us"]:
        raise UserError(f"--weights {text}: rate and mean latency cannot both count nothing")
    return found


def errors(measured: Figures, model: Figures) -> dict[str, float]:
    """Returns ln(model / measured) of each figure that was measured."""
    found = {}
    for name in NAMES:
        there, here = getattr(measured, name), getattr(model, name)
        if there and here:
            found[name] = math.log(here / there)
    return found


def residuals(rows: Sequence[Row], model: Sequence[Figures], weights: Mapping[str, float]) -> Vector:
    """Returns the weighted errors, such that the sum of their squares is the square of the distance."""
    found: list[float] = []
    total = 0.0
    for row, figures in zip(rows, model, strict=True):
        for name, error in errors(figures_of(row), figures).items():
            found.append(math.sqrt(weights[name]) * error)
            total += weights[name]
    return np.array(found) / math.sqrt(total)


def distance(rows: Sequence[Row], model: Sequence[Figures], weights: Mapping[str, float]) -> float:
    """Returns the weighted root mean square of ln(model / measured) over all figures of all rows."""
    found = residuals(rows, model, weights)
    return math.sqrt(float(found @ found))
