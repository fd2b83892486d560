"""Quantities as they are written in a configuration."""

from __future__ import annotations

from ftlab.units import quantity


def parse(text: str) -> float:
    """Parses a size, in bytes, or a time, in nanoseconds."""
    found = quantity(text)
    assert found is not None, "a resolved configuration writes a number and a unit"
    return float(found)


def share_of(text: str) -> float:
    """Parses a percentage as a share between 0 and 1."""
    return float(text.removesuffix("%")) / 100


def percent(share: float) -> str:
    """Writes a share as a percentage, rounded to parts per million."""
    return f"{round(share * 1e6) / 1e4:.4f}%"


def ns(value: float) -> str:
    """Writes a time in whole nanoseconds."""
    return f"{round(value)}ns"


def length(value: float) -> str:
    """Writes the mean number of requests in a burst, at least 1."""
    return f"{max(value, 1.0):.6f}"
