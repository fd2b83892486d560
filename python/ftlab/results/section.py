"""JSON objects whose fields are attributes too, with the types that `ftlab.fields` declares."""

from __future__ import annotations

import types
import typing
from collections.abc import Iterator, Mapping
from functools import cache
from typing import TYPE_CHECKING, Any, Final, Self

from ftlab._core import UserError
from ftlab.units import count, duration, size

_LINE = 100
"""The maximum length of a section's line in characters."""


class Section(Mapping[str, Any]):
    """A JSON object whose fields are attributes too: ``result.latency.read.mean_ns``."""

    def __init__(self, data: dict[str, Any]) -> None:
        """Makes the section; ``data`` is shared, not copied."""
        self._data: Final = data

    def __getitem__(self, name: str) -> Any:
        """Returns the field ``name``; an object is returned as a section."""
        value = self._data[name]
        return _sections(type(self)).get(name, Section)(value) if isinstance(value, dict) else value

    if not TYPE_CHECKING:
        # This is hidden from type checkers, which know the declared fields and no others.

        def __getattr__(self, name: str) -> Any:
            """Returns the field ``name``."""
            if name.startswith("_"):
                raise AttributeError(name)
            try:
                return self[name]
            except KeyError:
                if name in _optional(type(self)):
                    return None
                raise AttributeError(f"no field {name!r}; there are: {', '.join(self._data)}") from None

    def __iter__(self) -> Iterator[str]:
        """Iterates over the names of the fields, in order."""
        return iter(self._data)

    def __len__(self) -> int:
        """Returns the number of fields."""
        return len(self._data)

    def __dir__(self) -> list[str]:
        """Returns the names of all attributes, including the fields, for completion."""
        return [*super().__dir__(), *self._data]

    def __reduce__(self) -> tuple[type[Self], tuple[dict[str, Any]]]:
        """Supports pickle."""
        return type(self), (self._data,)

    def __repr__(self) -> str:
        """Returns the fields on one line, with units; nested objects are shown only by name."""
        shown = ", ".join(f"{_plain(name)}={_shown(name, value)}" for name, value in self._data.items())
        if len(shown) > _LINE:
            shown = shown[: _LINE - 3].rsplit(", ", 1)[0] + ", ..."
        return f"{type(self).__name__}({shown})"

    def percentile(self, percent: float) -> int:
        """Returns the time at or below which ``percent`` of a distribution's values lie, in ns:
        ``result.latency.read.percentile(99)``.

        A result with histograms (``results.histograms``) has all percentiles, any other one those of
        ``percentile_ns``.

        Raises:
            UserError: not a distribution, or it lacks this percentile; the text names those it has.
        """
        points = self._data.get("percentile_ns")
        if points is None:
            raise UserError(f"{type(self).__name__} is not a distribution of times, so it has no percentiles")
        key = f"{percent:.6f}"
        if key in points:
            return int(points[key])
        if "histogram" in self._data:
            from ftlab.results.histogram import Histogram

            return Histogram.of_summary(self._data).percentile(percent)
        known = ", ".join(f"{float(each):g}" for each in points) or "none, as there are no values"
        raise UserError(
            f"percentile {percent:g}: not in this result; there are: {known}"
            "\n  run with results.histograms = true for all others"
        )

    def to_dict(self) -> dict[str, Any]:
        """Returns the plain dictionary; do not change it."""
        return self._data


def _plain(name: str) -> str:
    """Returns a name without its unit, which is shown with the value."""
    return name.removesuffix("_ns").removesuffix("_bytes")


def _shown(name: str, value: Any) -> str:
    if isinstance(value, dict):
        return "{...}"
    if isinstance(value, list):
        return f"[{len(value)}]"
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return repr(value)
    if name.endswith("_ns"):
        return duration(value)
    if name.endswith("_bytes") or name.startswith("bytes_"):
        return size(value)
    return count(value) if isinstance(value, int) else f"{value:.6g}"


@cache
def _hints(kind: type[Section]) -> dict[str, tuple[Any, ...]]:
    """Returns the declared types of each field."""
    hints = typing.get_type_hints(kind)
    return {
        name: typing.get_args(hint) if typing.get_origin(hint) in (types.UnionType, typing.Union) else (hint,)
        for name, hint in hints.items()
    }


@cache
def _optional(kind: type[Section]) -> frozenset[str]:
    """Returns the fields that some results lack; in those results they are None."""
    return frozenset(name for name, options in _hints(kind).items() if types.NoneType in options)


@cache
def _sections(kind: type[Section]) -> dict[str, type[Section]]:
    """Returns the declared classes of a section's own sections."""
    return {
        name: each
        for name, options in _hints(kind).items()
        for each in options
        if isinstance(each, type) and issubclass(each, Section)
    }


class Settings(Section):
    """The configuration of a result: every key (docs/configuration.md)."""

    if TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            """Returns a key, or a table of keys."""
