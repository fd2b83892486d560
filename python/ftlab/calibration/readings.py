"""Keys whose values are read off a log: how much the write buffer and the SLC cache hold."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from ftlab.calibration.intervals import Interval
from ftlab.calibration.row import FULL, STEADY, Before, Row
from ftlab.units import quantity

_MIB = 1 << 20


def readings(rows: Sequence[Row], settings: Mapping[str, Any]) -> list[Interval]:
    """Returns the keys that the rows' logs tell, with their values and between which these are: a window of
    the log more or less. Of several logs the first counts.

    The buffer drains while it fills, at the rate behind it. The cache of a model that is smaller than the
    drive has the same share of its capacity; a fill wrote all of the drive. The cache is a dynamic one:
    whether it would have room on a full drive, the fill of an empty one does not tell.
    """
    found: dict[str, Interval] = {}
    for row in rows:
        if row.before is None or row.state == STEADY:
            continue
        made = _cache(row.before, settings) if row.state == FULL else _buffer(row, row.before)
        found.setdefault(made.name, made)
    return list(found.values())


def _buffer(row: Row, before: Before) -> Interval:
    kept = 1 - row.iops * row.bs / before.rate
    return _interval("device.write_buffer", "KiB", 1024, _ends(before, kept))


def _cache(before: Before, settings: Mapping[str, Any]) -> Interval:
    share = min(_capacity(settings) / before.whole, 1.0)
    made = _interval("ftl.slc_cache", "MiB", _MIB, _ends(before, share))
    return replace(made, best=f"dynamic:{made.best}")


def _ends(before: Before, share: float) -> Iterator[float]:
    for windows in (0, -1, 1):
        yield (before.written + windows * before.window) * share


def _interval(key: str, unit: str, step: int, ends: Iterator[float]) -> Interval:
    best, low, high = (f"{max(round(end / step), 1)}{unit}" for end in ends)
    return Interval(key, best, low, high, False, False)


def _capacity(settings: Mapping[str, Any]) -> float:
    """Returns the bytes that a configuration offers to the host, what it keeps in reserve included."""
    flash = settings["flash"]
    parts = ("channels", "chips_per_channel", "dies_per_chip", "planes_per_die", "blocks_per_plane")
    blocks = math.prod(flash[part] for part in parts)
    page = quantity(flash["page"]) or 4096
    over = quantity(settings["ftl"]["over_provisioning"]) or 0.0
    return float(blocks * flash["pages_per_block"] * page * (1 - over))
