"""Numbers addressed by labels, with arithmetic on them cell by cell."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from ftlab._core import UserError

Number = float | None
Cells = dict[tuple[str, ...], Number]


@dataclass(frozen=True)
class Series:
    """Numbers (or truth values), one for each combination of the labels of some axes."""

    axes: tuple[str, ...]
    cells: Mapping[tuple[str, ...], Any]

    def select(self, chosen: Mapping[str, Any]) -> Any:
        """Selects the part with these labels; a single label removes its axis, a list of labels keeps it."""
        for axis, labels in chosen.items():
            if axis not in self.axes:
                raise UserError(f"no axis {axis!r}; there are: {', '.join(self.axes) or 'none'}")
            known = {key[self.axes.index(axis)] for key in self.cells}
            for label in [labels] if isinstance(labels, str) else labels:
                if label not in known:
                    raise UserError(f"axis {axis} has no {label!r}; there are: {', '.join(sorted(known))}")
        kept = tuple(axis for axis in self.axes if not isinstance(chosen.get(axis), str))
        cells = {}
        for key, value in self.cells.items():
            labels = dict(zip(self.axes, key, strict=True))
            if all(
                labels[axis] == wanted if isinstance(wanted, str) else labels[axis] in wanted
                for axis, wanted in chosen.items()
            ):
                cells[tuple(labels[axis] for axis in kept)] = value
        return cells.get(()) if not kept else Series(kept, cells)

    def known(self) -> list[Any]:
        """Returns the values that are not missing."""
        return [value for value in self.cells.values() if value is not None]


def combine(function: Callable[..., Any], left: Any, right: Any) -> Any:
    """Applies ``function`` cell by cell; the side with fewer axes is repeated along the others."""
    if not isinstance(left, Series) and not isinstance(right, Series):
        return None if left is None or right is None else _guarded(function, left, right)
    wide = left if _width(left) >= _width(right) else right
    assert isinstance(wide, Series)
    for side in (left, right):
        if isinstance(side, Series) and not set(side.axes) <= set(wide.axes):
            raise UserError(f"axes {', '.join(side.axes)} and {', '.join(wide.axes)} do not go together")
    cells = {}
    for key in wide.cells:
        labels = dict(zip(wide.axes, key, strict=True))
        cells[key] = combine(function, _at(left, labels), _at(right, labels))
    return Series(wide.axes, cells)


def _width(side: Any) -> int:
    return len(side.axes) if isinstance(side, Series) else -1


def _at(side: Any, labels: Mapping[str, str]) -> Any:
    if not isinstance(side, Series):
        return side
    return side.cells.get(tuple(labels[axis] for axis in side.axes))


def _guarded(function: Callable[..., Any], left: Any, right: Any) -> Any:
    try:
        return function(left, right)
    except ZeroDivisionError:
        return None


def values_of(of: Any) -> list[Any]:
    """Returns all values in lists and series that are not missing."""
    if isinstance(of, Series):
        return of.known()
    if isinstance(of, (list, tuple)):
        return [value for each in of for value in values_of(each)]
    return [] if of is None else [of]
