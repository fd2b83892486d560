"""Traces as page accesses, read without ftlab, and runs of ftlab on the same accesses."""

from __future__ import annotations

import csv
import gzip
import random
import tempfile
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from . import plain
from .engine import shared_traces, trace_csv
from .plain import Access

SHIPPED = Path(__file__).resolve().parents[2] / "traces" / "phone-mix.csv.gz"
"""The recorded trace that comes with ftlab."""


@cache
def shipped(page_bytes: int = 4096) -> list[Access]:
    """Returns the reads and writes of the shipped trace."""
    with gzip.open(SHIPPED, "rt", newline="") as file:
        rows = [(row["op"], int(row["offset"]), int(row["size"])) for row in csv.DictReader(file)]
    return [access(op, offset, size, page_bytes) for op, offset, size in rows if op in "RW"]


def sectors(path: Path, page_bytes: int = 4096) -> list[Access]:
    """Reads a trace in MQSim's or SSDSim's layout: time, device, sector, sectors, 1 for a read."""
    with path.open() as file:
        rows = [[int(part) for part in line.split()] for line in file]
    # Not all of these traces are in time order.
    rows.sort(key=lambda row: row[0])
    return [
        access("R" if is_read else "W", (device << 50) + sector * 512, count * 512, page_bytes)
        for _, device, sector, count, is_read in rows
    ]


RECORDED = {
    "financial1": "financial1-first10000.ssdsim.txt",
    "tpcc": "tpcc-small.mqsim.txt",
}
"""Recorded traces that do not come with ftlab."""


def recorded(name: str) -> list[Access]:
    """Reads a recorded trace by name."""
    if name == "phone-mix":
        return shipped()
    return packed(sectors(shared_traces() / RECORDED[name]))


def access(op: str, offset: int, size: int, page_bytes: int) -> Access:
    """Returns the pages that a request touches."""
    first = offset // page_bytes
    return op, first, (offset + size - 1) // page_bytes - first + 1


def packed(accesses: Sequence[Access]) -> list[Access]:
    """Returns the accesses with the touched pages renumbered densely, in order (``workload.out_of_range =
    "compact"``).
    """
    touched = sorted({lpn for _, first, pages in accesses for lpn in range(first, first + pages)})
    rank = {lpn: number for number, lpn in enumerate(touched)}
    return [(op, rank[first], pages) for op, first, pages in accesses]


def mixed(lpns: int, block_pages: int, count: int, seed: int) -> list[Access]:
    """Returns random writes, some of whole blocks, and some that continue where the previous one ended."""
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
    """Returns ftlab's result on these accesses, one at a time in their order."""
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


def timed(
    settings: Mapping[str, Any], requests: Sequence[tuple[int, str, int, int]], page_bytes: int = 4096
) -> tuple[list[int], dict[str, Any]]:
    """Returns the times, in ns, at which ftlab completes requests (arrival_ns, op, first page, pages), and
    its result.
    """
    import ftlab

    rows = [(at, op, first * page_bytes, pages * page_bytes) for at, op, first, pages in requests]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "t.csv"
        path.write_text(trace_csv(rows))
        result = ftlab.run({"flash.page": f"{page_bytes}B", **settings}, trace=str(path), check=True)
    columns = zip(result.column("id").tolist(), result.column("complete_ns").tolist(), strict=True)
    return [complete for _, complete in sorted(columns)], result.to_dict()


def lookups(accesses: Sequence[Access], policy: str, kib: int = 16) -> tuple[list[int], list[int]]:
    """Returns hits, misses and map programs of dftl, as counted by ftlab and by the plain model."""
    settings = {
        "ftl.kind": "dftl",
        "ftl.mapping_cache": f"{kib}KiB",
        "ftl.cache_policy": policy,
        "ftl.entry": "8B",
        "flash.blocks_per_plane": 8192,
    }
    mapping = run(settings, accesses)["mapping"]
    counted = plain.dftl(accesses, entries=kib * 128, per_page=512, policy=policy)
    have = [mapping[key] for key in ("hits", "misses", "translation_programs")]
    return have, [counted.hits, counted.misses, counted.programs]


BLOCKS = 4096
"""The number of erase blocks of the device on which merges are counted."""

KINDS = ("full", "partial", "switch")


def merges(
    ftl: str, block_pages: int, log_blocks: int, filled: bool, accesses: Sequence[Access]
) -> tuple[list[int], list[int]]:
    """Returns merges and copies of each kind, and erases, as counted by ftlab and by the plain model."""
    settings = {
        "ftl.kind": ftl,
        # The share is rounded down here; ftlab rounds up to whole blocks.
        "ftl.log_blocks": f"{log_blocks * 1_000_000 // BLOCKS / 10_000}%",
        "ftl.over_provisioning": "10%",
        "flash.blocks_per_plane": BLOCKS,
        "flash.pages_per_block": block_pages,
        "device.precondition": "fill" if filled else "none",
    }
    result = run(settings, accesses)
    model = plain.FTLS[ftl](block_pages, log_blocks, BLOCKS * block_pages * 9 // 10 if filled else 0)
    for _, first, pages in accesses:
        model.write(first, pages)
    have = [result["merges"][kind][key] for kind in KINDS for key in ("count", "pages_copied")]
    wanted = [count for kind in KINDS for count in getattr(model.merges, kind)]
    return [*have, sum(result["flash"]["erases"].values())], [*wanted, model.merges.erases]


def written(name: str) -> tuple[int, list[Access]]:
    """Returns a number of pages per block, and writes that lead to all kinds of merges with blocks of that
    size.
    """
    if name == "phone-mix":
        return 64, [each for each in shipped() if each[0] == "W"]
    if name == "mixed, blocks of 64":
        return 64, mixed(250 * 64, 64, 3000, seed=5)
    return 8, mixed(300 * 8, 8, 8000, seed=6)


WRITTEN = ("phone-mix", "mixed, blocks of 64", "mixed, blocks of 8")
