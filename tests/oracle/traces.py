"""Traces as page accesses, read without ftlab, and ftlab's runs on the same accesses."""

from __future__ import annotations

import csv
import gzip
import random
import tempfile
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from .engine import trace_csv
from .plain import Access

SHIPPED = Path(__file__).resolve().parents[2] / "traces" / "phone-mix.csv.gz"
"""The recorded trace that comes with ftlab."""


@cache
def shipped(page_bytes: int = 4096) -> list[Access]:
    """Its reads and writes."""
    with gzip.open(SHIPPED, "rt", newline="") as file:
        rows = [(row["op"], int(row["offset"]), int(row["size"])) for row in csv.DictReader(file)]
    return [access(op, offset, size, page_bytes) for op, offset, size in rows if op in "RW"]


def sectors(path: Path, page_bytes: int = 4096) -> list[Access]:
    """A trace of MQSim's or SSDSim's: time, device, sector, sectors, 1 for a read."""
    with path.open() as file:
        rows = [[int(part) for part in line.split()] for line in file]
    # Not all of them are in the order of time.
    rows.sort(key=lambda row: row[0])
    return [access("R" if row[4] else "W", row[2] * 512, row[3] * 512, page_bytes) for row in rows]


def access(op: str, offset: int, size: int, page_bytes: int) -> Access:
    """The pages that a request touches."""
    first = offset // page_bytes
    return op, first, (offset + size - 1) // page_bytes - first + 1


def packed(accesses: Sequence[Access]) -> list[Access]:
    """The pages touched, packed densely in their order (``workload.out_of_range = "compact"``)."""
    touched = sorted({lpn for _, first, pages in accesses for lpn in range(first, first + pages)})
    rank = {lpn: number for number, lpn in enumerate(touched)}
    return [(op, rank[first], pages) for op, first, pages in accesses]


def mixed(lpns: int, block_pages: int, count: int, seed: int) -> list[Access]:
    """Writes at random, some of whole blocks, and some that go on where the one before ended."""
    draw = random.Random(seed)
    accesses = []
    end = 0
    for _ in range(count):
        kind = draw.random()
        pages = draw.randint(1, block_pages // 2)
        first = draw.randrange(lpns - pages)
        if kind < 0.15:
            first, pages = draw.randrange(lpns // block_pages) * block_pages, draw.randint(1, block_pages)
        elif kind < 0.45 and end + pages <= lpns:
            first = end
        accesses.append(("W", first, pages))
        end = first + pages
    return accesses


def run(settings: Mapping[str, Any], accesses: Sequence[Access], page_bytes: int = 4096) -> dict[str, Any]:
    """ftlab's result on these accesses, one at a time in their order."""
    import ftlab

    rows = [(0, op, first * page_bytes, pages * page_bytes) for op, first, pages in accesses]
    alone = {"host.scheduler": "noop", "host.deadline": "none", "device.queue_depth": 1}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "t.csv"
        path.write_text(trace_csv(rows))
        result = ftlab.run(
            {"flash.page": f"{page_bytes}B", **alone, **settings}, trace=str(path), collect=False
        )
    return result.to_dict()
