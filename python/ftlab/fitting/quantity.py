"""Quantities as a configuration writes them."""

from __future__ import annotations

from ftlab.units import quantity


def parse(text: str) -> float:
    """Bytes of a size, nanoseconds of a time."""
    found = quantity(text)
    assert found is not None, "a resolved configuration writes a number and a unit"
    return float(found)


def share_of(text: str) -> float:
    """The share of a percentage."""
    return float(text.removesuffix("%")) / 100


def percent(share: float) -> str:
    """A share, to parts per million."""
    return f"{round(share * 1e6) / 1e4:.4f}%"


def ns(value: float) -> str:
    """A time in whole nanoseconds."""
    return f"{round(value)}ns"


def length(value: float) -> str:
    """Requests in a burst, at least one."""
    return f"{max(value, 1.0):.6f}"
