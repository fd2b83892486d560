"""Numbers as people read them: times, sizes, counts, shares."""

from __future__ import annotations

import functools
import math
import re
from collections.abc import Iterable
from typing import NamedTuple


class Unit(NamedTuple):
    """A unit of time."""

    name: str
    """The unit's symbol."""
    ns: int
    """The unit's length in nanoseconds."""


_TIMES = (Unit("ns", 1), Unit("us", 1_000), Unit("ms", 1_000_000), Unit("s", 1_000_000_000))
_DECIMAL = ("", "k", "M", "G", "T", "P", "E")
_BINARY = ("", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei")
_FIO_DIGITS = 4
_SIZES = ("B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB")


def time_unit(values_ns: Iterable[float | None], least: int = 10) -> Unit:
    """Returns the largest unit in which the largest of the values is at least ``least`` (1 for seconds)."""
    largest = max((abs(value) for value in values_ns if value is not None), default=0)
    for unit in reversed(_TIMES):
        if largest >= unit.ns * (1 if unit.name == "s" else least):
            return unit
    return _TIMES[0]


def significant(value: float | None, digits: int = 4) -> str:
    """Formats a value with ``digits`` digits or as a whole number, whichever is longer: 0.1235, 12.35,
    12,345.
    """
    if value is None:
        return "-"
    if value == 0:
        return "0"
    decimals = digits - len(str(int(abs(value)))) if abs(value) >= 1 else digits
    return f"{value:,.{max(decimals, 0)}f}"


def amount(value: float | None) -> str:
    """Formats a number without unit: whole numbers as they are, others with four digits; a dash for None."""
    return significant(value) if value is None or value % 1 else f"{value:,.0f}"


def duration(ns: float | None) -> str:
    """Formats a time in the unit that suits it: 35.00 us."""
    if ns is None:
        return "-"
    unit = time_unit([ns])
    if unit.ns == 1:
        return f"{ns:,.0f} ns"
    return f"{significant(ns / unit.ns)} {unit.name}"


def size(value: float) -> str:
    """Formats a number of bytes in binary units: 12.5 MiB."""
    for name in _SIZES:
        if abs(value) < 1024 or name == _SIZES[-1]:
            break
        value /= 1024
    return f"{value:,.0f} {name}" if value == int(value) else f"{value:,.1f} {name}"


def fio(value: float, thousand: int = 1000) -> str:
    """Formats a number as fio does, with at most four digits and a prefix: 14.6k, or 9.93Mi if ``thousand``
    is 1024.

    Source: axboe/fio lib/num2str.c with the four significant digits that fio takes by default.
    """
    number, rest, prefix = int(value), None, 0
    while len(str(number)) > _FIO_DIGITS:
        number, rest = divmod(number, thousand)
        prefix += 1
    name = (_BINARY if thousand == 1024 else _DECIMAL)[prefix]
    if rest is None:
        return f"{number}{name}"
    decimals = _FIO_DIGITS - len(str(number)) - 1
    if decimals < 1:
        return f"{number + (rest >= thousand // 2)}{name}"
    # fio itself prints 9.999 as 9.00.
    return f"{number + rest / thousand:.{decimals}f}{name}"


def iops(value: float) -> str:
    """Formats requests per second as fio does: IOPS=14.6k; below 1, where fio prints 0, with two digits."""
    if 0 < value < 1:
        return f"IOPS={value:.2g}"
    return f"IOPS={fio(value)}"


def bandwidth(bytes_per_s: float) -> str:
    """Formats bytes per second as fio does: BW=9.93MiB/s (10.4MB/s)."""
    decimal = fio(bytes_per_s)
    return f"BW={fio(bytes_per_s, 1024)}B/s ({decimal}B/s)"


def count(value: int | None) -> str:
    """Formats a whole number with separators; a dash for None."""
    return "-" if value is None else f"{value:,}"


def percent(share: float | None) -> str:
    """Formats a share as a percentage with two decimals."""
    return "-" if share is None else f"{share * 100:.2f} %"


def share_of(share: float, whole: str) -> str:
    """Formats a share of ``whole``: as a percentage, or above 200 % as a factor."""
    return f"{significant(share, 3)} times {whole}" if abs(share) > 2 else f"{percent(share)} of {whole}"


def change(share: float, decimals: int = 2) -> str:
    """Formats a relative difference: as a percentage with its sign, above 200 % as a factor."""
    if math.isinf(share):
        return "from 0"
    return f"x {significant(share + 1, 3)}" if share > 2 else f"{share * 100:+.{decimals}f} %"


_QUANTITIES = {
    "B": 1, "kB": 10**3, "KiB": 2**10, "MB": 10**6, "MiB": 2**20, "GB": 10**9, "GiB": 2**30,
    "TB": 10**12, "TiB": 2**40, "ns": 1, "us": 10**3, "ms": 10**6, "s": 10**9, "min": 60 * 10**9,
    "h": 3600 * 10**9, "%": 0.01, "": 1,
}  # fmt: skip
_QUANTITY = re.compile(r"([-+]?[0-9]+\.?[0-9]*(?:[eE][-+]?[0-9]+)?) ?([a-zA-Z%]*)")


@functools.lru_cache(1024)
def quantity(text: str) -> float | None:
    """Parses a quantity: a size in bytes, a bandwidth in bytes/s, a time in ns, a percentage as a share;
    returns None for other text.
    """
    if text == "unlimited":
        return math.inf
    found = _QUANTITY.fullmatch(text.removesuffix("/s") if text.endswith("B/s") else text)
    if found is None or found[2] not in _QUANTITIES:
        return None
    number = float(found[1]) * _QUANTITIES[found[2]]
    return int(number) if number.is_integer() else number
