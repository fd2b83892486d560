"""The script behind the tables of docs/placement.md: its loads, its tables on small devices."""

from __future__ import annotations

import random
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from scripts import script

ROOT = Path(__file__).resolve().parents[2]

placement = script("placement")


@pytest.mark.parametrize("mix", ["even", "span", "objects"])
@pytest.mark.parametrize("order", ["random", "circular", "by-kind"])
def test_each_class_writes_its_share_within_its_span(order: str, mix: str) -> None:
    scale = 16
    load = placement.cache_load(placement.Drive(order=order, mix=mix), scale)
    mib = placement.PAGE
    total = placement.OVERWRITES * placement.CAPACITY_GIB * 1024 // scale
    assert load["size"].sum() == pytest.approx(total * mib, rel=0.005)
    weights = [
        {"even": 1, "span": kind.span_gib, "objects": kind.object_pages}[mix] for kind in placement.KINDS
    ]
    shares = [kind.workers * weight for kind, weight in zip(placement.KINDS, weights, strict=True)]
    base = 0
    for stream, kind in enumerate(placement.KINDS):
        mine = load.filter(pl.col("stream") == stream)
        end = base + kind.workers * kind.span_gib * 1024 // scale
        assert mine["size"].unique().to_list() == [kind.object_pages * mib]
        assert mine["size"].sum() == pytest.approx(total * mib * shares[stream] / sum(shares), rel=0.01)
        assert base * mib <= mine["offset"].min() and (mine["offset"] + mine["size"]).max() <= end * mib
        base = end
    # 89 % of the drive, as reported.
    assert base * scale / 1024 == 855


def test_the_rest_is_trimmed_first() -> None:
    load = placement.cache_load(placement.Drive(rest="trimmed"), 16)
    first = load.row(0, named=True)
    assert (first["op"], first["offset"] + first["size"]) == ("T", 960 * 1024 // 16 * placement.PAGE)
    assert set(load["op"][1:]) == {"W"} and (load["offset"] + load["size"])[1:].max() <= first["offset"]


def test_a_table_of_a_small_drive() -> None:
    header, _, *rows = placement.fdp(64)
    assert len(rows) == len(placement.DRIVES) and all(row.count("|") == header.count("|") for row in rows)
    # What is overwritten in the order of its writing, at one speed, leaves nothing to copy.
    (circular,) = [row for row in rows if "| circular | span |" in row]
    assert "| 1.000 | 1.000 | +0.0 % |" in circular


def test_a_drive_without_room_for_the_fronts_is_refused() -> None:
    drive = placement.Drive(reclaim_gib=64)
    assert placement.cache_waf(drive, placement.cache_load(drive, 64), "stream", 64) is None


def test_the_first_row_of_the_page() -> None:
    drive = placement.DRIVES[0]
    load = placement.cache_load(drive, 1)
    one, stream = (placement.cache_waf(drive, load, name, 1) for name in ("one", "stream"))
    row = f"| {one:.3f} | {stream:.3f} | {placement.change(stream, one)} |"
    assert row in (ROOT / "docs" / "placement.md").read_text()


def test_pages_that_requests_touch() -> None:
    frame = pl.DataFrame(
        {"offset": [4095, 8192, 0], "size": [2, 4096, 0]}, schema_overrides={"size": pl.UInt64}
    )
    assert placement.touched(frame).tolist() == [0, 1, 2, 0]


def test_a_row_of_a_trace(tmp_path: Path) -> None:
    draw = random.Random(1)
    # A fifth of 500 pages takes four fifths of the writes.
    pages = [draw.randrange(100) if draw.random() < 0.8 else draw.randrange(100, 500) for _ in range(4000)]
    path = tmp_path / "skewed.csv"
    lines = [f"{at},W,{4096 * (page + 1000)},4096" for at, page in enumerate(pages)]
    path.write_text("\n".join(["time_ns,op,offset,size", *lines]) + "\n")
    name, _, repeats, overwrites, share, top, *wafs = (
        placement.trace_row(path, {}, 4).strip("| ").split(" | ")
    )
    counts = np.sort(np.unique(pages, return_counts=True)[1])[::-1]
    assert (name, repeats, share) == ("skewed", "1", "100%")
    assert overwrites == f"{4000 / len(counts):.1f}"
    assert top == f"{counts[: len(counts) // 5].sum() / 4000:.0%}"
    one, apart, *_ = (float(waf) for waf in wafs[:4])
    assert 1 < apart < one
