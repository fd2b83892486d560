"""Loads for the event model (``events.py``), and runs of ftlab on the same loads."""

from __future__ import annotations

import random
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from .engine import trace_csv
from .events import Array, Request, simulate

GEOMETRIES = {
    "1x1": Array(),
    # In this array many chips wait for one bus.
    "1x8": Array(ways=8),
    "8x2": Array(channels=8, ways=2),
    "8x2x2x2": Array(channels=8, ways=2, dies=2, planes=2, interleave=True),
}
"""Arrays named by channels x chips per channel (x dies x planes). A read takes 20 us, a program 200 us; the
bus takes 25 ns per byte and 175 ns per command.
"""

LOADS = {"separated": 0.0, "half loaded": 0.5, "saturated": 2.0}
"""The offered load as a share of what the bottleneck can do; 0 means that each request is alone in the
device.
"""

BLOCKS = 256
"""The number of erase blocks in each plane, each of 64 pages: enough for these loads without garbage
collection.
"""


def pages_of(array: Array) -> int:
    """Returns the number of logical pages that the loads address."""
    return array.channels * array.ways * array.dies * array.planes * 64 * BLOCKS // 4


def bottleneck_ns(array: Array, read_share: float) -> float:
    """Returns the time per page, ns, of the busier resource: the buses or the dies."""
    bus = sum(ns for needs_bus, ns, _ in array.stages("R") if needs_bus)
    ends = {op: sum(ns for _, ns, _ in array.stages(op)) for op in "RW"}
    buses = {"R": bus, "W": array.stages("W")[0][1]}
    mean = {
        name: read_share * each["R"] + (1 - read_share) * each["W"]
        for name, each in [("dies", ends), ("buses", buses)]
    }
    dies = array.channels * array.ways * (array.dies if array.interleave else 1)
    return max(mean["dies"] / dies, mean["buses"] / array.channels)


def load(array: Array, share: float, most_pages: int, count: int, seed: int) -> list[Request]:
    """Returns random requests, 60 % of them reads, of 1 to ``most_pages`` pages, which offer the load
    ``share`` (see `LOADS`).
    """
    draw = random.Random(seed)
    mean_pages = (1 + most_pages) / 2
    alone_ns = 10 * most_pages * (array.program_ns + array.read_ns + round(array.page_bytes * array.byte_ns))
    now = 0
    requests = []
    for _ in range(count):
        gap = bottleneck_ns(array, 0.6) * mean_pages / share if share else 0.0
        now += round(draw.expovariate(1 / gap)) if share else alone_ns
        pages = draw.randint(1, most_pages)
        op = "R" if draw.random() < 0.6 else "W"
        requests.append((now, op, draw.randrange(pages_of(array) - pages), pages))
    return requests


def settings(array: Array) -> dict[str, Any]:
    """Returns ftlab's configuration of an array, with no queue in front of it."""
    chosen = {"flash.bus": array.arbitration} if array.arbitration != "fcfs" else {}
    return chosen | {
        "host.queue_depth": "unlimited",
        "host.deadline": "none",
        "device.scheduler": "direct",
        "device.queue_depth": "unlimited",
        "ftl.over_provisioning": "20%",
        "ftl.allocation": array.allocation,
        "flash.channels": array.channels,
        "flash.chips_per_channel": array.ways,
        "flash.dies_per_chip": array.dies,
        "flash.planes_per_die": array.planes,
        "flash.interleave": array.interleave,
        "flash.blocks_per_plane": BLOCKS,
        "flash.pages_per_block": 64,
        "flash.page": f"{array.page_bytes}B",
        "flash.read": f"{array.read_ns}ns",
        "flash.program": f"{array.program_ns}ns",
        "flash.transfer": f"{array.byte_ns}ns",
        "flash.command": f"{array.command_ns}ns",
    }


def run(array: Array, requests: Sequence[Request], more: Mapping[str, Any] | None = None) -> list[int]:
    """Returns the time at which ftlab completes each request, ns."""
    import ftlab

    size = array.page_bytes
    trace = [(at, op, first * size, pages * size) for at, op, first, pages in requests]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "t.csv"
        path.write_text(trace_csv(trace))
        result = ftlab.run(settings(array) | dict(more or {}), trace=str(path))
    moved = result["flash"]["erases"]
    if any(moved.values()):
        raise ValueError(f"the event model knows no garbage collection: {moved}")
    completed = dict(zip(result.column("id").tolist(), result.column("complete_ns").tolist(), strict=True))
    return [completed[number] for number in sorted(completed)]


def unequal(array: Array, requests: Sequence[Request]) -> list[str]:
    """Describes the requests that ftlab completes at a different time from the model."""
    pairs = zip(requests, simulate(array, requests), run(array, requests), strict=True)
    late = [(at, request, model, ours) for (at, *request), model, ours in pairs if model != ours]
    return [f"{request} of {at}: {ours} in ftlab, {model} in the model" for at, request, model, ours in late]
