"""Fleets: a trace is split by volume, the volumes are run one by one, and the fleet's result is their sum."""

from __future__ import annotations

import json
import random
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from front import Cli
from ftlab._core import UserError
from ftlab.configs import Override, load
from ftlab.results.histogram import Histogram
from ftlab.studies import split
from ftlab.studies.measure import measure
from ftlab.traces import trace_config

ROOT = Path(__file__).parents[2]

STUDY = """
config = "map-plus"
[set]
"flash.blocks_per_plane" = 256
"workload.out_of_range" = "compact"
[axis.volume]
files = "volumes/*.parquet"
[axis.scheduler]
key = "host.scheduler"
values = ["noop", "map+"]
[aggregate]
worst = 3
"""


def cloud(path: Path, volumes: int, requests: int, seed: int = 1) -> None:
    """Writes a seeded random trace in Alibaba's layout, with volumes of different load."""
    draw, lines, time_us = random.Random(seed), [], 1_577_808_000_000_000
    weights = [1 / (rank + 1) for rank in range(volumes)]
    for volume in draw.choices(range(volumes), weights, k=requests):
        time_us += draw.randint(1, 400)
        op = draw.choice("RW")
        lines.append(
            f"{volume + 7},{op},{draw.randint(0, 2000) * 4096},{draw.choice((4096, 8192))},{time_us}"
        )
    path.write_text("\n".join(lines) + "\n")


def by_hand(path: Path) -> dict[str, list[tuple[int, str, int, int]]]:
    """Returns the requests of each volume; the volumes are in the order of their first requests."""
    found: dict[str, list[tuple[int, str, int, int]]] = {}
    lines = path.read_text().split()
    first = int(lines[0].split(",")[4])
    for line in lines:
        volume, op, offset, size, time_us = line.split(",")
        found.setdefault(volume, []).append(((int(time_us) - first) * 1000, op, int(offset), int(size)))
    return found


@pytest.mark.parametrize("held", [50, 1 << 20], ids=["spilled-often", "in-memory"])
def test_every_volume_gets_its_requests(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, held: int) -> None:
    monkeypatch.setattr(split, "MOST_ROWS", held)
    monkeypatch.setattr(split, "CHUNK_ROWS", 100)
    trace = tmp_path / "cloud.csv"
    cloud(trace, 20, 3000)
    found = split.split(trace_config(trace), tmp_path / "volumes")
    expected = list(by_hand(trace).values())
    assert found == {"volumes": len(expected), "requests": 3000}
    index = pl.read_csv(tmp_path / "volumes" / "index.csv")
    assert index["requests"].to_list() == [len(rows) for rows in expected]
    assert sum(index["reads"].to_list()) + sum(index["writes"].to_list()) == 3000
    for row, rows in zip(index.iter_rows(named=True), expected, strict=True):
        frame = pl.read_parquet(tmp_path / "volumes" / row["file"])
        ops = [("R", "W")[code] for code in frame["op"]]
        got = list(zip(frame["ts_ns"], ops, frame["offset"], frame["size"], strict=True))
        assert got == rows
        assert row["first_ns"] == rows[0][0] and row["last_ns"] == rows[-1][0]
        assert row["max_end"] == max(offset + size for _, _, offset, size in rows)
    assert not (tmp_path / "volumes" / "spill").exists()


def test_a_fleet_is_all_of_its_volumes(cli: Cli) -> None:
    """The fleet's result equals that of all volumes together, bin by bin and counter by counter."""
    cloud(cli.directory / "cloud.csv", 12, 4000)
    cli.ok("trace", "split", "cloud.csv", "--by", "volume", "--out", "volumes")
    (cli.directory / "study.toml").write_text(STUDY)
    cli.ok("sweep", "study.toml", "--out", "out")
    fleets = json.loads((cli.directory / "out" / "fleets.json").read_text())
    assert [fleet["labels"] for fleet in fleets] == [{"scheduler": "noop"}, {"scheduler": "map+"}]
    frame = pl.read_parquet(cli.directory / "out" / "runs.parquet")
    for fleet in fleets:
        rows = frame.filter(pl.col("scheduler") == fleet["labels"]["scheduler"])
        bins: dict[int, int] = {}
        host = programs = 0.0
        for key in rows["hash"]:
            result: dict[str, Any] = json.loads((cli.directory / "out" / "json" / f"{key}.json").read_text())
            for low, count in result["latency"]["all"]["histogram"]["bins"]:
                bins[low] = bins.get(low, 0) + count
            own = sum(result["flash"]["programs"].values())
            programs += own
            host += own / result["waf"]["total"]
        assert fleet["volumes"] == rows.height == 12
        assert dict(fleet["latency"]["all"]["histogram"]["bins"]) == bins
        assert sum(bins.values()) == fleet["latency"]["all"]["count"] == 4000 == fleet["trace"]["requests"]
        assert fleet["flash"]["programs"]["host"] == rows["flash.programs.host"].sum()
        assert fleet["waf"]["total"] == pytest.approx(programs / host)
        # A percentile is that of all requests together, not the mean of the volumes' percentiles.
        merged = Histogram.of_summary(fleet["latency"]["all"])
        assert fleet["latency"]["all"]["percentile_ns"]["99.000000"] == merged.percentile(99)
    worst = pl.read_csv(cli.directory / "out" / "worst.csv")
    assert worst.height == 6
    values = frame.filter(pl.col("scheduler") == "noop")["latency.all.percentile_ns.99.000000"].to_list()
    assert worst["latency.all.percentile_ns.99"].to_list()[:3] == sorted(values, reverse=True)[:3]


def test_two_hundred_volumes_of_the_shipped_models(tmp_path: Path) -> None:
    """Volumes are split, run and combined on two cores within 1 GiB; the fleet's bins are those of all
    requests together.
    """
    made = subprocess.run(
        [sys.executable, str(ROOT / "scripts" / "fleet.py"), str(tmp_path), "--requests", "40000"],
        capture_output=True,
        text=True,
        check=True,
    )
    peaks = [int(peak) for peak in re.findall(r"([0-9]+) MiB at most", made.stdout)]
    assert len(peaks) == 2 and max(peaks) < 1024, made.stdout
    (fleet,) = json.loads((tmp_path / "out" / "fleets.json").read_text())
    frame = pl.read_parquet(tmp_path / "out" / "runs.parquet")
    assert fleet["volumes"] == frame.height == 200
    latencies: dict[str, list[int]] = {"read": [], "write": []}
    keys = {"flash.blocks_per_plane": "4096", "workload.out_of_range": "compact"}
    for name in frame["workload.trace"]:
        own = {**keys, "workload.trace": str(tmp_path / name)}
        config = load("map-plus", [Override(key, key, value) for key, value in own.items()])
        requests = measure("run", config, collect=True)["requests"]
        for op, arrival, complete in zip(
            requests["op"], requests["arrival_ns"], requests["complete_ns"], strict=True
        ):
            latencies["read" if op == "R" else "write"].append(complete - arrival)
    everything = latencies["read"] + latencies["write"]
    assert len(everything) == fleet["trace"]["requests"] == fleet["latency"]["all"]["count"]
    for op, values in {**latencies, "all": everything}.items():
        bins = fleet["latency"][op]["histogram"]["bins"]
        assert bins == [list(each) for each in Histogram(values).bins], op
        assert fleet["latency"][op]["max_ns"] == max(values)
        assert fleet["latency"][op]["percentile_ns"]["99.000000"] == Histogram(values).percentile(99)


def test_a_target_that_cannot_be_written(cli: Cli) -> None:
    done = cli("trace", "split", "a.csv", "--by", "volume", "--out", "/proc/ftlab")
    assert (done.returncode, "--out /proc/ftlab: cannot make the directory" in done.stderr) == (2, True)
    with pytest.raises(UserError, match=r"bad\.csv"):
        (cli.directory / "bad.csv").write_text("time_ns,op,offset,size\nx\n")
        split.split(trace_config(cli.directory / "bad.csv"), cli.directory / "out")
