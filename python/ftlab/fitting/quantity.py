"""Quantities as a configuration writes them."""

from __future__ import annotations

import re

_UNITS = {
    "B": 1, "kB": 10**3, "KiB": 2**10, "MB": 10**6, "MiB": 2**20, "GB": 10**9, "GiB": 2**30,
    "TB": 10**12, "TiB": 2**40, "ns": 1, "us": 10**3, "ms": 10**6, "s": 10**9, "h": 3600 * 10**9,
}  # fmt: skip


def parse(text: str) -> float:
    """Bytes of a size, nanoseconds of a time."""
    found = re.fullmatch(r"([0-9.]+)([a-zA-Z]+)", text)
    assert found is not None, "a resolved configuration writes a number and a unit"
    return float(found[1]) * _UNITS[found[2]]


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
