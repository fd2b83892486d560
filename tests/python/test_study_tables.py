"""The tables that ``ftlab sweep`` and ``ftlab tune`` print: units, headings, and the room that they take."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest

from front import Cli
from ftlab.studies import front, readable
from ftlab.studies.axes import Axis, Choice
from ftlab.studies.declaration import study_of
from ftlab.studies.front import Trial, Tuned
from ftlab.studies.replications import Line, estimate, render
from ftlab.studies.tuning import load_tuning

STUDY = """
config = "map-plus"
set = { "flash.blocks_per_plane" = 64, "workload.synthetic.requests" = 300 }
[axis.scheduler]
key = "host.scheduler"
values = ["noop", "map+"]
[axis.seed]
key = "seed"
values = [1, 2]
"""

SEARCH = """
config = "map-plus"
minimize = ["latency.all.mean_ns", "ftl.mapping_cache"]
maximize = ["mapping.hit_ratio"]
runs = 2
[parameter.cache]
key = "ftl.mapping_cache"
range = ["2KiB", "64KiB"]
[parameter.deadline]
key = "host.deadline"
range = ["1ms", "100ms"]
"""


def test_the_table_is_as_wide_as_the_terminal(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    (cli.directory / "study.toml").write_text(STUDY)
    for columns in (50, 80, 200):
        monkeypatch.setenv("COLUMNS", str(columns))
        printed = cli.ok("sweep", "study.toml", "--out", "out")
        lines = printed.splitlines()[:-1]
        left_out = [line for line in lines if line.startswith("no room for")]
        assert bool(left_out) == (columns < 200), printed
        rows = [line for line in lines if line not in left_out]
        assert max(map(len, rows)) <= columns, printed
        assert [line.split()[0] for line in rows[-2:]] == ["noop", "map+"]
        # Times have the unit that suits their column.
        assert re.search(r"mean, (us|ms)", rows[1]), printed


def test_long_labels_lose_their_beginning() -> None:
    found = [
        Line(
            {"trace": f"{'folder/' * 20}{name}.csv"}, "latency.all.mean_ns", "ns", estimate([at * 1e6]), None
        )
        for at, name in enumerate(("first", "second"), 20)
    ]
    axis = Axis("trace", tuple(Choice(line.labels["trace"]) for line in found), "trace")
    figure = replace(study_of(Path("study.toml")), axes=(axis,))
    lines = render(figure, found, 40, width=40).splitlines()
    assert all(len(line) <= 40 for line in lines)
    assert "mean, ms" in lines[1]
    assert [line.split()[-1] for line in lines[-2:]] == ["20", "21"]
    assert lines[-1].startswith("\u2026")
    assert "/second.csv" in lines[-1]


def test_a_front_has_units_and_says_of_what_a_share_is(tmp_path: Path) -> None:
    path = tmp_path / "tune.toml"
    path.write_text(SEARCH)
    tuning = load_tuning(path)
    trial = Trial(7, {"cache": "2320B", "deadline": "99317818ns"}, (6_694_780.0, 2320.0, 0.5))
    default = Trial(0, {}, (9_916_090.0, 16_384.0, 0.25))
    shares = {"cache": [0.03, 0.38, 0.2], "deadline": [0.33, 0.09, 0.1]}
    lines = front.render(Tuned(tuning, default, [trial], [trial], trial, shares), 80).splitlines()
    assert "2.3 KiB  99.32 ms" in lines[3]
    assert "mean, us" in lines[1]
    assert lines[3].split()[:2] == ["best", "7"]
    assert lines[3].split()[-4:] == ["6,695", "2.3", "KiB", "0.5000"]
    assert lines[4].split()[-4:] == ["9,916", "16", "KiB", "0.2500"]
    assert lines[5] == (
        "cache accounts for 3% of latency.all.mean_ns, 38% of ftl.mapping_cache, 20% of mapping.hit_ratio"
    )
    assert max(len(line) for line in lines[:5]) <= 80


@pytest.mark.parametrize(
    ("name", "unit"),
    [
        ("latency.read.percentile_ns.99.000000", "ns"),
        ("host.deadline", "ns"),
        ("ftl.mapping_cache", "B"),
        ("throughput_bytes_per_s", "B/s"),
        ("waf.total", ""),
        ("latency.all.mean_ns / 1e6", ""),
    ],
)
def test_the_unit_of_a_field_or_a_key(name: str, unit: str) -> None:
    assert readable.unit_of(name) == unit


@pytest.mark.parametrize(
    ("name", "unit", "shown"),
    [
        ("latency.all.mean_ns", "ms", "latency.all\nmean, ms"),
        ("latency.all.percentile_ns.99.000000", "us", "latency.all\np99, us"),
        ("latency.all.percentile_ns.99.990000", "us", "latency.all\np99.99, us"),
        ("latency.all.percentile_ns.100.000000", "us", "latency.all\np100, us"),
        ("throughput_bytes_per_s", "MiB/s", "throughput, MiB/s"),
        ("p99_ms", "", "p99_ms"),
    ],
)
def test_headings(name: str, unit: str, shown: str) -> None:
    assert readable.heading(name, unit) == shown
