"""How far each key can be moved, the others following, before the model is 10 % worse, and not by chance."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from ftlab.calibration.descent import Valley, Vector, step_to
from ftlab.calibration.search import FEW_STEPS, Ground, Point, is_count
from ftlab.studies.tuning import Parameter
from ftlab.units import quantity

WORSE = 1.1
"""The error at the ends of an interval, as a multiple of the best."""
FURTHEST = 4.0
"""How far a key is moved, as a multiple of where the slopes alone would put the end of its interval."""
LADDER = (0.06, 0.25, 0.5, 1.0)
"""The steps on the way there."""
FAR = (0.5, 1.0)
"""Further steps, as shares of the room to a key's bound: another valley may be there, and what is inside at
the bound has no end that the rows tell.
"""
FOLLOWS = 2
"""How often the other keys follow at each step at most."""
SETTLED = 0.99
"""The ratio of one error to the one before it from which the other keys count as having followed."""
HOPELESS = 10.0
"""The same to the best error, from which they follow no further."""
NEAR = 2.0
"""The greatest square of an error, as a multiple of the lowest, that tells where an interval ends."""
LEAST_POINTS = 5
"""From how many points, the nearest, an end is told at least."""
LEAST_MOVE = 1e-3
"""The least move that is tried, as a share of a key's range."""
DETERMINED = 1.1
"""The greatest ratio of an interval's ends for which the rows count as determining a key: its middle is
within 5 % of both.
"""
FOLLOWED = 1e-6
"""The damping with which the other keys follow a key that is moved."""


@dataclass(frozen=True)
class Interval:
    """Between which values the error is within 10 % of the best, or as far off as chance makes it."""

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
    """Returns the interval of each free key, and the best point met on the way.

    What is inside for one key is inside for all: on the way to the end of one, the others go to values that
    their own way may have missed.
    """
    met = [best]
    found: list[Interval] = []
    most = _most(ground, best)
    for each in ground.free:
        if each.choices:
            made, points = _of_choices(ground, best, each, most)
        elif is_count(each):
            made, points = _of_count(ground, best, each, most)
        else:
            made, points = _of_key(ground, best, valley, each, most)
        found.append(made)
        met += points
    inside = [point.chosen for point in met if point.error**2 <= most]
    return (
        [_widened(made, each, inside) for made, each in zip(found, ground.free, strict=True)],
        min(met, key=lambda point: point.error),
    )


def _widened(made: Interval, each: Parameter, inside: Sequence[Mapping[str, str]]) -> Interval:
    """Returns an interval that also holds the values of a key in these choices."""
    if each.choices:
        return made
    texts = sorted([made.low, made.high, *(chosen[each.name] for chosen in inside)], key=quantity_of)
    low, high = texts[0], texts[-1]
    ends = [quantity_of(each.text(round(end))) for end in (each.low, each.high)]
    return replace(
        made,
        low=low,
        high=high,
        open_low=made.open_low or (not is_count(each) and quantity_of(low) <= ends[0]),
        open_high=made.open_high or (not is_count(each) and quantity_of(high) >= ends[1]),
    )


def _most(ground: Ground, best: Point) -> float:
    """Returns the greatest square of an error inside an interval.

    What was measured had its luck, too, as a run has: a model cannot be told from the best one if it is no
    further off than the best one is, in the mean, in one run with other random numbers.
    """
    runs = np.array(ground.reseeded(best.chosen))
    level = max(float(np.sum(np.square(runs.mean(axis=0)))), best.error**2)
    return max(WORSE**2 * level, float(np.square(runs).sum(axis=1).mean()))


def _of_choices(ground: Ground, best: Point, each: Parameter, most: float) -> tuple[Interval, list[Point]]:
    others = [choice for choice in each.choices if choice != best.chosen[each.name]]
    points = [ground.descend({**best.chosen, each.name: choice}, FEW_STEPS)[0] for choice in others]
    alike = [point.chosen[each.name] for point in points if point.error**2 <= most]
    own = best.chosen[each.name]
    made = Interval(each.name, own, own, alike[-1] if alike else own, False, False)
    return made, points


def _of_count(ground: Ground, best: Point, each: Parameter, most: float) -> tuple[Interval, list[Point]]:
    """Walks a count away from the best, the other keys descending again at each value."""
    own = int(best.chosen[each.name])
    ends, opened = [own, own], [False, False]
    met: list[Point] = []
    for side, step in enumerate((-1, 1)):
        chosen = best.chosen
        while True:
            count = ends[side] + step
            if not each.low <= count <= each.high:
                opened[side] = True
                break
            point = ground.descend({**chosen, each.name: str(count)}, FEW_STEPS)[0]
            met.append(point)
            if point.error**2 > most:
                break
            ends[side], chosen = count, point.chosen
    low, high = map(str, ends)
    return Interval(each.name, str(own), low, high, *opened), met


def _of_key(
    ground: Ground, best: Point, valley: Valley, each: Parameter, most: float
) -> tuple[Interval, list[Point]]:
    """Moves a key step by step to both sides, the others following, and puts a parabola through the errors:
    percentiles of runs are noisy, and the best point is one of luck, too.
    """
    axis = [free.name for free in ground.moved()].index(each.name)
    at = ground.place(best.chosen)
    reach = FURTHEST * _reach(valley, axis, most - valley.cost)
    known: list[tuple[float, Point]] = []
    # Each side goes on from where the other keys had followed to.
    sides = [(sign, room, at) for sign, room in ((-1, at[axis]), (1, 1 - at[axis]))]
    sides = [side for side in sides if side[1] >= LEAST_MOVE]
    for rung in range(len(LADDER) + len(FAR)):
        parts = [float(at[axis] + sign * _rungs(reach, room)[rung]) for sign, room, _ in sides]
        moves = [(part, place) for part, (_, _, place) in zip(parts, sides, strict=True)]
        steps = _followed(ground, best, valley, axis, moves)
        known += [
            (part, point) for part, (point, _) in zip(parts, steps, strict=True) if math.isfinite(point.error)
        ]
        sides = [(*side[:2], place) for side, (_, place) in zip(sides, steps, strict=True)]
    tried = np.array([at[axis], *(part for part, _ in known)])
    costs = np.array([best.error**2, *(point.error**2 for _, point in known)])
    low, high = _ends(tried, costs, most)
    # What was met inside is inside, wherever the parabola ends: it goes through noise.
    inside = tried[costs <= most]
    low, high = min(low, float(inside.min())), max(high, float(inside.max()))
    # Nor does it tell an end at which the others can follow no further: the error jumps there.
    low, high = min(low, _crossing(tried, costs, most, -1)), max(high, _crossing(tried, costs, most, 1))
    first, last = (
        ground.chosen(_put(at, axis, min(max(end, 0.0), 1.0)), {})[each.name] for end in (low, high)
    )
    made = Interval(each.name, best.chosen[each.name], first, last, low <= 0.0, high >= 1.0)
    return made, [point for _, point in known]


def _rungs(reach: float, room: float) -> list[float]:
    """Returns by how much a key is moved to one side, step by step, which has some room."""
    near = [share * min(reach, room) for share in LADDER]
    return near + [max(near[-1], share * room) for share in FAR]


def _followed(
    ground: Ground, best: Point, valley: Valley, axis: int, moves: Sequence[tuple[float, Vector]]
) -> list[tuple[Point, Vector]]:
    """Moves a key to each of some places, each from a point, and lets the others follow by the slopes of the
    best point; returns the lowest points, and where they are.

    At first its twin alone makes up for it, as a delay does for the controller's time: noise in the slopes
    misleads many keys further than two. All others follow from there.
    """
    others = np.delete(valley.jacobian, axis, axis=1)
    places = [_with_twin(place, valley, axis, part) for part, place in moves]
    lowest = [Point(best.chosen, math.inf)] * len(moves)
    ends = list(places)
    going = list(range(len(moves)))
    for turn in range(FOLLOWS + 1):
        chosen = [ground.chosen(places[number], best.chosen) for number in going]
        # A place that is not valid has no error that could be compared, and leads no further.
        met = [
            (number, Point(values, math.sqrt(float(heights @ heights))), heights)
            for number, values, heights in zip(going, chosen, ground.residuals(chosen), strict=True)
            if heights is not None
        ]
        going = []
        for number, point, heights in met:
            settled = point.error >= SETTLED * lowest[number].error or point.error > HOPELESS * best.error
            if point.error < lowest[number].error:
                lowest[number], ends[number] = point, places[number]
            if turn and settled:
                continue
            free = np.delete(places[number], axis)
            moved = step_to(free, heights, others, FOLLOWED) if len(free) else free
            places[number] = np.insert(moved, axis, places[number][axis])
            going.append(number)
        if not going:
            break
    return list(zip(lowest, ends, strict=True))


def _with_twin(place: Vector, valley: Valley, axis: int, part: float) -> Vector:
    """Returns a place with a key moved, and with it the one whose slopes are most like its own, such that as
    much as possible of what it changes is undone.
    """
    moved, own = _put(place, axis, part), valley.jacobian[:, axis]
    alike = valley.jacobian.T @ own
    lengths = np.linalg.norm(valley.jacobian, axis=0)
    cosines = np.divide(np.abs(alike), lengths, out=np.zeros_like(alike), where=lengths > 0)
    cosines[axis] = 0.0
    twin = int(cosines.argmax())
    if cosines[twin] > 0:
        moved[twin] -= (part - place[axis]) * alike[twin] / lengths[twin] ** 2
    return np.clip(moved, 0.0, 1.0)


def _ends(tried: Vector, costs: Vector, most: float) -> tuple[float, float]:
    """Returns where a parabola through the costs near the lowest reaches the greatest inside an interval, or
    is 10 % in error above its bottom.
    """
    near = np.argsort(costs)[: max(LEAST_POINTS, int((costs <= NEAR * costs.min()).sum()))]
    if len(near) < LEAST_POINTS:
        return float(tried.min()), float(tried.max())
    own = tried[0]
    bend, slope, height = np.polyfit(tried[near] - own, costs[near], 2)
    if bend <= 0:
        # Noise alone: it tells no end, and what was met has to.
        return float(own), float(own)
    bottom = max(height - slope**2 / (4 * bend), 0.0) or float(costs.min())
    room = max((WORSE**2 - 1) * bottom, most - bottom)
    middle, half = own - slope / (2 * bend), math.sqrt(room / bend)
    return min(float(middle - half), float(own)), max(float(middle + half), float(own))


def _crossing(tried: Vector, costs: Vector, most: float, sign: int) -> float:
    """Returns where a line between the last place inside and the first one outside leaves the interval."""
    order = np.argsort(sign * tried)
    order = order[np.flatnonzero(costs[order] <= most)[-1] :]
    if len(order) < 2:
        return float(tried[order[0]])
    first, last = costs[order[0]], costs[order[1]]
    start, end = tried[order[0]], tried[order[1]]
    return float(start + (end - start) * (most - first) / (last - first))


def _reach(valley: Valley, axis: int, room: float) -> float:
    """Returns how far the slopes say that a key can be moved, the others following: at most its range."""
    own = valley.jacobian[:, axis]
    others = np.delete(valley.jacobian, axis, axis=1)
    part = own - others @ np.linalg.lstsq(others, own, rcond=None)[0] if others.size else own
    slope = float(part @ part)
    room = max(room, 1e-12)
    return min(math.sqrt(room / slope), 1.0) if slope > room else 1.0


def _put(at: Vector, axis: int, part: float) -> Vector:
    place = np.array(at)
    place[axis] = part
    return place
