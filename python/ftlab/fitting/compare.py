"""Compares the conflicts of a trace with those of its model, where conflicts were not fitted."""

from __future__ import annotations

import json
import math

from ftlab._core import Config
from ftlab.configs import Override, load
from ftlab.fitting.fit import Characteristic, Fit, Fitter, Progress
from ftlab.fitting.quantity import parse

DEVICE = {"preset": "vios", "device": {"scheduler": "noop"}}
"""The device on which conflicts are counted; it gets just enough blocks for what is stored and written."""

NOTE = "conflicts are those on vios with device.scheduler noop; --config CONFIG fits them, to any device"

_SPACE = 1.25
_SPARE_BYTES = 1 << 30
_DIES = ("channels", "chips_per_channel", "dies_per_chip", "planes_per_die")


def compare(fit: Fit, trace: Config, flags: list[Override], tolerance: float, progress: Progress) -> None:
    """Adds the conflicts of ``trace``, read with ``flags``, and of its model to what ``fit`` reports."""
    targets, keys = fit.targets, fit.keys
    written = (targets.writes + targets.trims) * (targets.mean_write_size or 0.0)
    space = max(parse(keys["region"]), targets.footprint_bytes or 0) + written
    flash = json.loads(load(DEVICE, []).json())["flash"]
    row = math.prod(flash[key] for key in _DIES) * flash["pages_per_block"] * parse(flash["page"])
    blocks = math.ceil((space * _SPACE + _SPARE_BYTES) / row)
    device = Fitter(DEVICE, [Override("trace fit", "flash.blocks_per_plane", str(blocks))], progress=progress)
    wanted, found = device.conflicts_of(trace, flags), device.conflicts_of_model(keys)
    rows: list[tuple[str, float, float, bool]] = [
        ("read_conflicts", wanted[0], found[0], False),
        ("write_conflicts", wanted[1], found[1], False),
        ("conflict_ratio", sum(wanted) / targets.requests, sum(found) / targets.requests, True),
    ]
    fit.characteristics += [
        Characteristic(name, target, reached, ratio, tolerance, fitted=False)
        for name, target, reached, ratio in rows
    ]
    targets.notes.append(NOTE)
