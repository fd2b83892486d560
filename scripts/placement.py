"""Placement against published shapes: the tables of docs/placement.md.

    python scripts/placement.py fdp                     caches of a language model on a drive with FDP
    python scripts/placement.py traces shared/traces    placements on recorded traces, each one repeated

Each prints a table in Markdown. Simulations run one at a time.
"""

from __future__ import annotations

import argparse
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import polars as pl

import ftlab

ROOT = Path(__file__).resolve().parents[1]
PAGE = 4096


class Kind(NamedTuple):
    """A class of the benchmark's workers; a page stands for 1 MiB of the drive."""

    workers: int
    object_pages: int
    span_gib: int
    order: str  # with the order by-kind: circular where objects are used little before they are replaced


# https://github.com/LMCache/LMCache/pull/4016, comment of 2026-07-28: chat, long context, shared prefix,
# random prompts, metadata.
KINDS = [
    Kind(2, 4, 90, "circular"),
    Kind(1, 32, 180, "circular"),
    Kind(2, 16, 90, "random"),
    Kind(3, 2, 90, "circular"),
    Kind(1, 1, 45, "random"),
]
CAPACITY_GIB = 960
OVERWRITES = 4


class Drive(NamedTuple):
    """What the report leaves open. The defaults were chosen before the first run."""

    order: str = "random"  # of the objects of a worker: random, circular, by-kind (KINDS)
    mix: str = "even"  # bytes of a worker: the same for all, as its span, as the size of its objects
    reclaim_gib: int = 16
    raw_gib: int = 1200
    rest: str = "kept"  # what no worker overwrites of the drive: kept, trimmed


def cache_load(drive: Drive, scale: int, seed: int = 1) -> pl.DataFrame:
    """Returns the writes of all workers, 1 / scale of the drive, with their classes as streams."""
    draw = np.random.default_rng(seed)
    workers = [(stream, kind) for stream, kind in enumerate(KINDS) for _ in range(kind.workers)]
    weights = np.array(
        [{"even": 1, "span": kind.span_gib, "objects": kind.object_pages}[drive.mix] for _, kind in workers]
    )
    pages = OVERWRITES * CAPACITY_GIB * 1024 // scale * weights / weights.sum()
    parts, base = [], 0
    for (stream, kind), amount in zip(workers, pages, strict=True):
        slots, count = kind.span_gib * 1024 // scale // kind.object_pages, int(amount) // kind.object_pages
        order = kind.order if drive.order == "by-kind" else drive.order
        slot = draw.integers(slots, size=count) if order == "random" else np.arange(count) % slots
        parts.append(
            pl.DataFrame(
                {
                    "ts_ns": ((np.arange(count) + draw.random(count)) * 1e15 / count).astype(np.int64),
                    "offset": (base + slot * kind.object_pages) * PAGE,
                    "size": np.full(count, kind.object_pages * PAGE),
                    "stream": np.full(count, stream),
                }
            )
        )
        base += slots * kind.object_pages
    load = pl.concat(parts).sort("ts_ns").with_columns(op=pl.lit("W"))
    if drive.rest == "kept":
        return load
    end = CAPACITY_GIB * 1024 // scale
    rest = {"ts_ns": 0, "offset": base * PAGE, "size": (end - base) * PAGE, "stream": 0, "op": "T"}
    return pl.concat([pl.DataFrame([rest], schema=load.schema), load])


def cache_waf(drive: Drive, load: pl.DataFrame, placement: str, scale: int) -> float | None:
    """Returns the write amplification from the full drive on; None if too many blocks are open."""
    blocks = drive.raw_gib // drive.reclaim_gib
    config = device(blocks, drive.reclaim_gib * 1024 // scale, 100 * (1 - CAPACITY_GIB / drive.raw_gib))
    config["ftl"] |= {"placement": placement}
    if placement == "stream":
        config["ftl"] |= {"fronts": len(KINDS) + 1}
    try:
        result = ftlab.run(config, trace=load, replay="closed", collect=False)
    except ftlab.UserError as error:
        if "too little is withheld" not in str(error):
            raise
        return None
    waf: float = result["waf"]["total"]
    return waf


def device(blocks: int, block_pages: int, withheld: float) -> dict[str, Any]:
    """Returns a page-mapped device of one LUN, full at time 0; withheld is in per cent."""
    return {
        "host": {"queue_depth": 1},
        "device": {"precondition": "fill"},
        "ftl": {"kind": "page", "over_provisioning": f"{withheld:.4f}%"},
        "flash": {"blocks_per_plane": blocks, "pages_per_block": block_pages, "page": PAGE},
    }


DRIVES = [
    *(
        Drive(order, mix)
        for order in ("random", "circular", "by-kind")
        for mix in ("even", "span", "objects")
    ),
    *(Drive(order, raw_gib=raw) for order in ("random", "by-kind") for raw in (1024, 1120, 1280)),
    *(Drive(order, reclaim_gib=unit) for order in ("random", "by-kind") for unit in (4, 1)),
    *(Drive(order, reclaim_gib=1, raw_gib=1024) for order in ("random", "by-kind")),
    *(Drive(order, rest="trimmed") for order in ("random", "by-kind")),
]


def fdp(scale: int) -> Iterator[str]:
    """Yields the rows of the table of LMCache's load, `one` against `stream`."""
    yield "| order | bytes of a worker | reclaim unit | withheld | rest | `one` | `stream` | change |"
    yield "|---|---|---|---|---|---|---|---|"
    for drive in DRIVES:
        load = cache_load(drive, scale)
        one, apart = (cache_waf(drive, load, placement, scale) for placement in ("one", "stream"))
        withheld = 1 - CAPACITY_GIB / drive.raw_gib
        yield (
            f"| {drive.order} | {drive.mix} | {drive.reclaim_gib} GiB | {withheld:.1%} | {drive.rest} "
            f"| {figure(one)} | {figure(apart)} | {change(apart, one)} |"
        )


def figure(value: float | None) -> str:
    """Returns an amplification as text."""
    return "refused" if value is None else f"{value:.3f}"


def change(value: float | None, base: float | None) -> str:
    """Returns by how much a value differs from a base, as text."""
    return "" if value is None or base is None else f"{100 * (value / base - 1):+.1f} %"


PLACEMENTS = ["one", "gc-apart", "hot-cold", "sepbit"]
WITHHELD = 13
TRACE_OVERWRITES = 4


def trace_row(path: Path, given: dict[str, Any], block_pages: int, victims: str = "greedy") -> str:
    """Returns the row of a trace: its skew, and its amplification under each placement.

    The device holds just the pages that the trace touches. The trace is repeated until it has written as
    much as TRACE_OVERWRITES times that.
    """
    reading = {key: given[key] for key in ("format", "dedup", "max_gap") if key in given}
    frame = ftlab.read_trace(path, **reading)
    pages = {op: touched(frame.filter(pl.col("op") == op)) for op in "RWT"}
    footprint = len(np.unique(np.concatenate(list(pages.values()))))
    repeat = max(1, -(-TRACE_OVERWRITES * footprint // max(1, len(pages["W"]))))
    _, counts = np.unique(pages["W"], return_counts=True)
    top = np.sort(counts)[::-1][: max(1, len(counts) // 5)].sum() / counts.sum()
    blocks = -(-footprint * 100 // ((100 - WITHHELD) * block_pages)) + 1
    wafs = []
    for placement in PLACEMENTS:
        config = device(blocks, block_pages, WITHHELD)
        config["ftl"] |= {"placement": placement, "gc": victims}
        config["workload"] = reading | {"out_of_range": "compact"}
        result = ftlab.run(config, trace=path, repeat=repeat, replay="closed", collect=False)
        wafs.append(result["waf"]["total"])
    name, size = path.name.split(".")[0], footprint * PAGE / 2**20
    written, share = len(pages["W"]) * repeat / footprint, len(counts) / footprint
    return (
        f"| {name} | {size:.0f} MiB | {repeat} | {written:.1f} | {share:.0%} | {top:.0%} | "
        + " | ".join(map(figure, wafs))
        + f" | {change(wafs[3], wafs[1])} | {change(wafs[3], min(wafs[:3]))} |"
    )


def touched(frame: pl.DataFrame) -> np.ndarray:
    """Returns the pages that the requests touch, a page once for each time."""
    offset, size = (frame[name].to_numpy().astype(np.int64) for name in ("offset", "size"))
    first = offset // PAGE
    counts = (offset + np.maximum(size, 1) - 1) // PAGE - first + 1
    steps = np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts)
    pages: np.ndarray = np.repeat(first, counts) + steps
    return pages


def traces(folder: Path, block_pages: int, victims: str) -> Iterator[str]:
    """Yields the rows of the table of the recorded traces in a folder that papers/traces.toml names."""
    listed = tomllib.loads((ROOT / "papers" / "traces.toml").read_text())["trace"]
    found: dict[str, dict[str, Any]] = {}
    for entry in listed.values():
        if (folder / entry["file"]).exists():
            found.setdefault(entry["file"], entry["set"]["workload"])
    columns = ["trace", "footprint", "repeats", "overwrites", "pages written", "top 20 %"]
    columns += [f"`{placement}`" for placement in PLACEMENTS]
    columns += ["`sepbit` against `gc-apart`", "against the best other"]
    yield "| " + " | ".join(columns) + " |"
    yield "|---" * len(columns) + "|"
    for name, given in sorted(found.items()):
        yield trace_row(folder / name, given, block_pages, victims)


def main() -> None:
    """Prints the table that is asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    tables = parser.add_subparsers(dest="table", required=True)
    drive = tables.add_parser("fdp")
    drive.add_argument(
        "--scale", type=int, default=1, help="model only this part of the drive: 4 for a quarter"
    )
    recorded = tables.add_parser("traces")
    recorded.add_argument("folder", type=Path)
    recorded.add_argument("--block-pages", type=int, default=32, help="pages of 4 KiB in a block")
    recorded.add_argument("--victims", default="greedy", help="how victims are chosen (ftl.gc)")
    options = parser.parse_args()
    if options.table == "fdp":
        rows = fdp(options.scale)
    else:
        rows = traces(options.folder, options.block_pages, options.victims)
    for row in rows:
        print(row, flush=True)


if __name__ == "__main__":
    main()
