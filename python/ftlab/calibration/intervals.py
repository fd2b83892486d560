"""How far each key can be moved, the others following, before the model is 10 % worse."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from ftlab.calibration.descent import Valley, Vector, step_to
from ftlab.calibration.search import FEW_STEPS, Ground, Point, is_count
from ftlab.studies.tuning import Parameter
from ftlab.units import quantity

WORSE = 1.1
"""The error at the ends of an interval, as a multiple of the best."""
LADDER = (0.25, 0.5, 1.0, 2.0, 4.0)
"""Where an end is looked for, as multiples of where the slopes alone would put it."""
LEAST_MOVE = 1e-3
"""The least move that is tried, as a share of a key's range."""
DETERMINED = 1.5
"""The greatest ratio of an interval's ends for which the rows count as determining a key."""
FOLLOWED = 1e-6
"""The damping with which the other keys follow a key that is moved."""


@dataclass(frozen=True)
class Interval:
    """Between which values the error is within 10 % of the best."""

    name: str
    best: str
    low: str
    high: str
    open_low: bool
    """Whether the interval goes on to the least value that was allowed."""
    open_high: bool
    """Whether it goes on to the greatest value that was allowed."""

    @property
    def determined(self) -> bool:
        """Whether the rows determine the key."""
        low, high = quantity_of(self.low), quantity_of(self.high)
        return not (self.open_low and self.open_high) and (low > 0 and high / low <= DETERMINED)

    @property
    def said(self) -> str:
        """Returns the interval in words."""
        words = f"{self.low} to {self.high}" if self.low != self.high else f"{self.low} alone"
        return words if self.determined else f"{words}: not determined by these rows"


def quantity_of(text: str) -> float:
    """Returns a value as a number in the base unit."""
    if text.endswith("ps"):
        return float(text.removesuffix("ps")) / 1000
    return quantity(text) or 0.0


def intervals(ground: Ground, best: Point, valley: Valley) -> tuple[list[Interval], Point]:
    """Returns the interval of each free key, and the best point met on the way."""
    lowest = best
    found: list[Interval] = []
    for each in ground.free:
        if each.choices:
            made, met = _of_choices(ground, best, each)
        elif is_count(each):
            made, met = _of_count(ground, best, each)
        else:
            made, met = _of_key(ground, best, valley, each)
        found.append(made)
        if met.error < lowest.error:
            lowest = met
    return found, lowest


def _of_choices(ground: Ground, best: Point, each: Parameter) -> tuple[Interval, Point]:
    others = [choice for choice in each.choices if choice != best.chosen[each.name]]
    points = [ground.descend({**best.chosen, each.name: choice}, FEW_STEPS)[0] for choice in others]
    alike = [point.chosen[each.name] for point in points if point.error <= WORSE * best.error]
    own = best.chosen[each.name]
    made = Interval(each.name, own, own, alike[-1] if alike else own, False, False)
    return made, min([best, *points], key=lambda point: point.error)


def _of_count(ground: Ground, best: Point, each: Parameter) -> tuple[Interval, Point]:
    """Walks a count away from the best, the other keys descending again at each value."""
    own = int(best.chosen[each.name])
    ends, opened, lowest = [own, own], [False, False], best
    for side, step in enumerate((-1, 1)):
        chosen = best.chosen
        while True:
            count = ends[side] + step
            if not each.low <= count <= each.high:
                opened[side] = True
                break
            point = ground.descend({**chosen, each.name: str(count)}, FEW_STEPS)[0]
            lowest = min(lowest, point, key=lambda one: one.error)
            if point.error > WORSE * best.error:
                break
            ends[side], chosen = count, point.chosen
    low, high = map(str, ends)
    return Interval(each.name, str(own), low, high, *opened), lowest


def _of_key(ground: Ground, best: Point, valley: Valley, each: Parameter) -> tuple[Interval, Point]:
    axis = [free.name for free in ground.moved()].index(each.name)
    at = ground.place(best.chosen)
    reach = _reach(valley, axis)
    places: list[tuple[int, float, dict[str, str]]] = []
    for side, sign in enumerate((-1, 1)):
        moves = {float(np.clip(at[axis] + sign * factor * reach, 0.0, 1.0)) for factor in LADDER}
        for part in sorted(moves, key=lambda part: abs(part - at[axis])):
            if abs(part - at[axis]) >= LEAST_MOVE:
                places.append((side, part, ground.chosen(_following(valley, at, axis, part), best.chosen)))
    errors = ground.errors([chosen for _, _, chosen in places])
    lowest = best
    ends = [float(at[axis])] * 2
    closed = [False, False]
    before = [best.error, best.error]
    for (side, part, chosen), error in zip(places, errors, strict=True):
        lowest = min(lowest, Point(chosen, error), key=lambda one: one.error)
        if closed[side]:
            continue
        if error > WORSE * best.error:
            share = (
                (WORSE * best.error - before[side]) / (error - before[side]) if math.isfinite(error) else 0.0
            )
            ends[side] += share * (part - ends[side])
            closed[side] = True
        else:
            ends[side], before[side] = part, error
    low, high = (ground.chosen(_put(at, axis, end), best.chosen)[each.name] for end in ends)
    bounds = ends[0] <= LEAST_MOVE and not closed[0], ends[1] >= 1 - LEAST_MOVE and not closed[1]
    return Interval(each.name, best.chosen[each.name], low, high, *bounds), lowest


def _reach(valley: Valley, axis: int) -> float:
    """Returns how far the slopes say that a key can be moved, the others following: at most its range."""
    own = valley.jacobian[:, axis]
    others = np.delete(valley.jacobian, axis, axis=1)
    part = own - others @ np.linalg.lstsq(others, own, rcond=None)[0] if others.size else own
    slope = float(part @ part)
    room = (WORSE**2 - 1) * max(valley.cost, 1e-12)
    return min(math.sqrt(room / slope), 1.0) if slope > room else 1.0


def _following(valley: Valley, at: Vector, axis: int, part: float) -> Vector:
    """Returns the place where a key is moved and the others follow as the slopes say."""
    others = np.delete(valley.jacobian, axis, axis=1)
    here = valley.residuals + valley.jacobian[:, axis] * (part - at[axis])
    place = np.delete(at, axis)
    moved = step_to(place, here, others, FOLLOWED) if others.size else place
    return np.insert(moved, axis, part)


def _put(at: Vector, axis: int, part: float) -> Vector:
    place = np.array(at)
    place[axis] = part
    return place
