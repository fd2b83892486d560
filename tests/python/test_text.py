"""Texts that people read: numbers, the report of a run, the table and the picture of a comparison."""

from __future__ import annotations

import csv
import io
import json
import math
import re
import shutil
import struct
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from rich.console import Console

from ftlab.cli.top import view
from ftlab.plot import draw
from ftlab.results.comparison import Comparison, Variant
from ftlab.results.labels import short_names
from ftlab.results.metrics import METRICS, best, ratio
from ftlab.results.result import Result
from ftlab.results.table import render, render_as, render_for
from ftlab.units import (
    bandwidth,
    change,
    duration,
    fio,
    iops,
    percent,
    share_of,
    significant,
    size,
    time_unit,
)

FACTORS = {"noop": 1.0, "row": 0.97, "amphibian": 0.95, "hp": 0.93, "rb": 0.71, "map": 0.7, "map+": 0.66}


Make = Callable[..., dict[str, Any]]


def comparison(make: Make, schedulers: list[str], caches: list[str] | None = None) -> Comparison:
    vary = {"host.scheduler": schedulers}
    if caches:
        vary["ftl.mapping_cache"] = caches
    variants = []
    for scheduler in schedulers:
        for index, cache in enumerate(caches or ["16KiB"]):
            chosen = {"host.scheduler": scheduler} | ({"ftl.mapping_cache": cache} if caches else {})
            data = make(scheduler, FACTORS[scheduler] / (1 + index), cache)
            variants.append(Variant(", ".join(chosen.values()), chosen, Result(data)))
    return Comparison(variants[0].result.to_dict()["config"], vary, variants)


@pytest.mark.parametrize(
    ("ns", "text"),
    [
        (0, "0 ns"),
        (999, "999 ns"),
        (35_000, "35.00 us"),
        (9_999_000, "9,999 us"),
        (10_000_000, "10.00 ms"),
        (2_500_000_000, "2.500 s"),
        (None, "-"),
    ],
)
def test_duration(ns: float | None, text: str) -> None:
    assert duration(ns) == text


def test_numbers() -> None:
    assert significant(0.12345) == "0.1235"
    assert significant(12.345) == "12.35"
    assert significant(123_456) == "123,456"
    assert significant(None) == "-"
    assert size(1536) == "1.5 KiB"
    assert size(1 << 30) == "1 GiB"
    assert percent(0.5) == "50.00 %"
    assert time_unit([None, 3]).name == "ns"


def test_report_says_it_all_and_ends_in_where_the_time_went(result_of: Make) -> None:
    text = str(Result(result_of("map+")))
    for part in (
        "map-plus: scheduler map+, device scheduler piq, FTL dftl, mapping cache 16KiB\n",
        "read: 1,000 requests, IOPS=2, BW=500KiB/s (512kB/s)\n",
        "write: 1,000 requests, IOPS=2, BW=4578KiB/s (4688kB/s)\n",
        "reads and writes: 1,000 requests, IOPS=2, BW=5078KiB/s (5200kB/s)\n",
        "50,000 reads (40.5 %), 73,000 writes, 456 trims and flushes",
        "dropped: 12,034 duplicate\n",
        "50th=1,400, 90th=4,400, 99th=10,200, 99.9th=18,000",
        "hit ratio 70.57 %",
        "map+: 1,000 prioritized, 0 batches, 312 dispatched by deadline",
        "reads: host=150,000, map=61,234",
        "erases: none",
        "write amplification: 1.070 (map 0.070)",
        "simulated: 400.0 s",
        "peak memory 45 MiB",
    ):
        assert part in text
    assert text.splitlines()[-2] == "where the time went: wait 75.0 %, access 25.0 % of the latency"
    assert text.splitlines()[-1].strip() == "chips busy 25 % of the time; flash time: host 75 %, map 25 %"


def test_report_gives_each_line_a_unit_of_its_own(result_of: Make) -> None:
    data = result_of("map+")
    data["wait"]["read"] |= {"min_ns": 0, "max_ns": 9_000, "mean_ns": 3_200.0, "stddev_ns": 50.0}
    data["latency"]["read"] |= {"mean_ns": 3.5e9}
    text = str(Result(data))
    assert "       wait (ns): min=0, max=9,000, mean=3,200, stddev=50.00\n" in text
    assert "    latency (s): " in text and "    percentiles (s): " in text


def test_report_of_few_requests_has_rates_below_one() -> None:
    assert [iops(value) for value in (0, 0.004567, 0.25, 1.5)] == [
        *("IOPS=0", "IOPS=0.0046", "IOPS=0.25", "IOPS=1"),
    ]


def test_report_is_titled_by_its_file(result_of: Make) -> None:
    result = Result(result_of("map+"))
    result.named = "my-device.toml"
    assert str(result).startswith("my-device.toml: scheduler map+, ")


def test_report_does_not_speak_of_preconditioning_where_there_was_none(result_of: Make) -> None:
    data = result_of("map+")
    assert data["precondition"]["kind"] == "none"
    assert "preconditioning" not in str(Result(data, prepare_s=0.02))
    data["precondition"]["kind"] = "fill"
    assert "engine: 0.02 s of preconditioning, " in str(Result(data, prepare_s=0.02))


@pytest.mark.parametrize("width", [80, 120])
def test_top_cuts_no_digits(width: int) -> None:
    """A busy device of two tenants for a day: no number is cut, at the width of a plain terminal."""
    import ftlab

    small = {"workload.synthetic.requests": 50, "workload.synthetic.region": "1MiB"}
    after = ftlab.run("map-plus", set=small).to_dict()
    after["live"] = {
        **{"time": "free", "speed": 1.0, "simulated_ns": 10**14, "free_blocks": 12_345, "waiting": 100},
        **{"held": 32, "connections": 3, "payload_bytes": 10**9, "lateness": {"count": 0}},
        **{"failed": {"reads": 0, "writes": 0}, "told": [], "interference": None},
    }
    before = json.loads(json.dumps(after))
    after["trace"] |= {"reads": 123_456_789, "writes": 23_456_789}
    after["trace"] |= {"bytes_read": 10**13, "bytes_written": 10**12}
    for kind in ("reads", "programs", "erases"):
        after["flash"][kind] |= {"host": 123_456_789, "gc": 12_345_678}
        before["flash"][kind] = dict.fromkeys(after["flash"][kind], 0)
    own = {"name": "database", "requests": 123_456_789, "bytes_read": 10**13, "bytes_written": 10**12}
    after["tenants"] = [{**own, "latency": after["latency"], "flash": {"share": 0.5}}]
    console = Console(width=width, file=io.StringIO(), record=True)
    console.print(view("/run/a.sock", before, after, 100.0))
    shown = console.export_text()
    assert "\u2026" not in shown
    assert all(text in shown for text in ("123M", "1235k", "9313GiB", "database", "12.3M"))


@pytest.mark.parametrize(
    ("flash", "left"),
    [
        ({"multi_plane": "free"}, "3.9 % without the open and the erased blocks of each plane"),
        ({"interleave": True}, "5.4 % without the open and the erased blocks of each die"),
        ({}, "6.2 % without the open and the erased blocks of each chip"),
    ],
)
def test_report_says_how_much_spare_space_collection_has(
    result_of: Make, flash: dict[str, Any], left: str
) -> None:
    """The report says how much spare space is left: 7 % of 64 blocks are 4.48 blocks, of which a plane has
    2.48 without its open and its erased block.
    """
    data = result_of("noop")
    data["waf"] |= {"total": 8.3, "gc": 7.3}
    geometry = {"dies_per_chip": 2, "planes_per_die": 2, "blocks_per_plane": 64}
    data["config"]["flash"] = {**geometry, "multi_plane": "off", "interleave": False, **flash}
    data["config"]["ftl"] = {"over_provisioning": "7%", "gc_free_blocks": 1, "spare_blocks": 0}
    assert f"    spare: 7 % withheld, {left}\n" in str(Result(data))


def test_report_of_an_empty_run_leaves_out_what_is_not_there(result_of: Make) -> None:
    data = result_of("noop")
    for part in ("latency", "wait", "access"):
        for op in ("read", "write", "all"):
            nothing = {"count": 0, "percentile_ns": {}}
            data[part][op] = nothing | dict.fromkeys(("mean_ns", "stddev_ns", "min_ns", "max_ns"))
    data["mapping"] |= {"hits": 0, "misses": 0, "hit_ratio": None}
    data["waf"] = dict.fromkeys(data["waf"])
    data["throughput_bytes_per_s"] = None
    text = str(Result(data))
    assert "latency" not in text
    assert "mapping:" not in text
    assert "amplification" not in text


@pytest.mark.parametrize(
    ("value", "thousand", "text"),
    [
        (0, 1000, "0"),
        (2541.9, 1000, "2541"),
        (9999, 1000, "9999"),
        (10_412_000, 1024, "9.93Mi"),
        (14_600, 1000, "14.6k"),
        (118_500, 1000, "119k"),
        (999_900, 1000, "1000k"),
        (1_028_505, 1024, "1004Ki"),
        (59_768_832, 1024, "57.0Mi"),
        (349_175_808, 1024, "333Mi"),
        (2 << 40, 1024, "2048Gi"),
    ],
)
def test_numbers_as_fio_prints_them(value: float, thousand: int, text: str) -> None:
    assert fio(value, thousand) == text


@pytest.mark.skipif(shutil.which("fio") is None, reason="fio is not installed")
def test_rates_are_printed_as_fio_prints_them(tmp_path: Path) -> None:
    job = "--name=a --ioengine=null --size=64m --rate=3m --bs=7k --runtime=1 --time_based"
    formats = ["--output-format=normal,json", "--output=out"]
    subprocess.run(["fio", *job.split(), *formats], cwd=tmp_path, check=True, capture_output=True)
    text, _, rest = (tmp_path / "out").read_text().partition("{")
    read = json.loads("{" + rest[: rest.rindex("}") + 1])["jobs"][0]["read"]
    shown = re.search(r"IOPS=.*?\)", text + rest)
    assert shown is not None
    assert shown[0] == f"{iops(read['iops'])}, {bandwidth(read['bw_bytes'])}"


def test_best_and_ratio() -> None:
    low = next(metric for metric in METRICS if metric.better == "low")
    high = next(metric for metric in METRICS if metric.better == "high")
    neither = next(metric for metric in METRICS if metric.better is None)
    assert best(low, [3, 1, None, 1]) == {1, 3}
    assert best(high, [3, 1, None]) == {0}
    assert best(low, [2, 2]) == set()
    assert best(low, [2, None]) == set()
    assert best(neither, [1, 2]) == set()
    assert ratio(3, 2) == 1.5
    assert ratio(3, 0) is None
    assert ratio(None, 2) is None


@pytest.mark.parametrize("width", [80, 100, 120])
def test_table_of_seven_schedulers_fits(result_of: Make, width: int) -> None:
    text = render(comparison(result_of, list(FACTORS)), width)
    assert max(len(line.rstrip()) for line in text.splitlines()) <= width
    for scheduler in FACTORS:
        assert scheduler in text
    assert "…" not in text
    assert "* best; (x) ratio to noop" in text


def test_table_marks_the_best_and_gives_ratios(result_of: Make) -> None:
    text = render(comparison(result_of, list(FACTORS)), 100)
    reads = next(line for line in text.splitlines() if line.strip().startswith("read, us"))
    assert re.findall(r"[\d,]+\*", reads) == ["1,320*"]
    assert reads.rstrip().endswith("1,320*")
    below = text.splitlines()[text.splitlines().index(reads) + 1]
    assert below.split() == [f"({factor:.2f})" for factor in FACTORS.values()]
    hits = next(line for line in text.splitlines() if "hit ratio" in line)
    assert hits.count("*") == 1
    assert "(" not in next(line for line in text.splitlines() if "prioritized" in line)


def test_table_puts_ratios_beside_where_there_is_room(result_of: Make) -> None:
    text = render(comparison(result_of, ["noop", "map+"]), 100)
    line = next(line for line in text.splitlines() if line.strip().startswith("read, us"))
    assert line.split()[-4:] == ["2,000", "(1.00)", "1,320*", "(0.66)"]


def test_table_of_many_variants_has_them_as_rows(result_of: Make) -> None:
    caches = ["8KiB", "16KiB", "64KiB", "128KiB"]
    text = render(comparison(result_of, list(FACTORS), caches), 80)
    lines = [line.rstrip() for line in text.splitlines()]
    assert max(len(line) for line in lines) <= 80
    rows = [line for line in lines if line.split()[:1] and line.split()[0] in FACTORS]
    assert len(rows) == 28
    assert rows[0].split()[:2] == ["noop", "8KiB"]
    assert rows[-1].count("*") >= 4
    assert not any("*" in row for row in rows[:-1])


def on_traces(make: Make, traces: dict[str, float]) -> Comparison:
    """Returns a comparison of two schedulers on traces, which multiply the latencies by their factors; the
    trace varies slowest.
    """
    schedulers = {"noop": 1.0, "map+": 0.5}
    variants = []
    for trace, times in traces.items():
        for scheduler, factor in schedulers.items():
            data = make(scheduler, factor * times)
            data["config"]["workload"]["trace"] = trace
            chosen = {"workload.trace": trace, "host.scheduler": scheduler}
            variants.append(Variant(", ".join(chosen.values()), chosen, Result(data)))
    vary = {"workload.trace": list(traces), "host.scheduler": list(schedulers)}
    return Comparison(variants[0].result.to_dict()["config"], vary, variants)


@pytest.mark.parametrize("width", [80, 200])
def test_best_and_base_are_of_each_trace(result_of: Make, width: int) -> None:
    text = render(on_traces(result_of, {"/data/a.csv": 1.0, "/other/b.csv": 100.0}), width)
    assert "/data" not in text
    assert text.startswith("map-plus: device scheduler piq, FTL dftl, mapping cache 16KiB\n  a.csv: 123,456")
    assert "\n  b.csv: 123,456 requests, 41 % reads, 12,034 dropped\n" in text
    assert "* best; (x) ratio to noop, of the same workload.trace\n" in text
    ratios = [float(each) for each in re.findall(r"\((\d+\.\d\d)\)", text)]
    assert max(ratios) == 1.0
    reads = next(line for line in text.splitlines() if line.strip().startswith("read, us"))
    assert re.findall(r"[\d,]+\*", reads) == ["1,000*", "100,000*"]


def test_where_only_the_trace_varies_nothing_is_best(result_of: Make) -> None:
    whole = on_traces(result_of, {"/data/a.csv": 1.0, "/other/b.csv": 100.0})
    alone = Comparison(whole.config, {"workload.trace": whole.vary["workload.trace"]}, whole.variants[::2])
    for variant in alone.variants:
        del variant.set["host.scheduler"]
    text = render(alone, 100)
    assert "*" not in text
    assert "(1.00)" not in text
    assert "nothing is marked as best: variants differ only in workload.trace\n" in text


def test_a_seed_is_no_policy(result_of: Make) -> None:
    variants = [
        Variant(f"{seed}, {name}", {"seed": seed, "host.scheduler": name}, Result(result_of(name, factor)))
        for seed, times in (("1", 1.0), ("2", 0.1))
        for name, factor in (("noop", times), ("map+", times / 2))
    ]
    whole = Comparison(
        variants[0].result.to_dict()["config"],
        {"seed": ["1", "2"], "host.scheduler": ["noop", "map+"]},
        variants,
    )
    line = next(line for line in render(whole, 120).splitlines() if line.strip().startswith("read, us"))
    assert line.split()[2:] == ["2,000", "(1.00)", "1,000*", "(0.50)", "200.0", "(1.00)", "100.0*", "(0.50)"]


def test_names_of_files_are_told_apart_and_cut_from_the_left() -> None:
    assert short_names(["/x/a.csv", "b.csv"]) == {"/x/a.csv": "a.csv", "b.csv": "b.csv"}
    assert short_names(["/x/a.csv", "/y/a.csv"]) == {"/x/a.csv": "x/a.csv", "/y/a.csv": "y/a.csv"}
    assert short_names(["a.csv", "./x/a.csv"]) == {"a.csv": "a.csv", "./x/a.csv": "x/a.csv"}
    long = ["/t/" + "very-" * 8 + name for name in ("one.csv", "two.csv")]
    cut = list(short_names(long).values())
    assert [len(name) for name in cut] == [28, 28]
    assert cut[0].startswith("\u2026")
    assert cut[0].endswith("-one.csv")
    # If the names end in the same way, more of each name is shown.
    same = ["/t/" + letter + "x" * 40 for letter in "ab"]
    assert list(short_names(same).values()) == [letter + "x" * 40 for letter in "ab"]


@pytest.mark.parametrize("width", [20, 40, 60, 80, 100, 140, 250])
def test_no_number_is_cut_and_what_has_no_room_is_named(result_of: Make, width: int) -> None:
    whole = on_traces(result_of, {f"/data/a-rather-long-name-{n}.csv": 1000.0 * n for n in range(1, 4)})
    text = render(whole, width)
    table = text.partition("* best")[0].splitlines()
    # Only names of files may be cut.
    assert all(re.fullmatch(r"\u2026[-.a-z0-9]+", word) for word in text.split() if "\u2026" in word)
    if width >= 60:
        assert max(map(len, table)) <= width
    footer = " ".join(text.partition("no room for: ")[2].split()).partition(";")[0]
    for metric in METRICS[:8]:
        shown = footer + " ".join(table)
        assert metric.short in footer or metric.name in shown, metric.short
    assert bool(footer) == (width < 150)


def test_a_redirected_table_is_100_wide_and_names_the_rest(result_of: Make, monkeypatch: Any) -> None:
    monkeypatch.delenv("COLUMNS", raising=False)
    text = render_for(comparison(result_of, list(FACTORS), ["8KiB", "16KiB"]), io.StringIO())
    assert max(map(len, text.splitlines())) <= 100
    assert "no room for: " in text


def test_tables_for_programs_have_every_metric_as_measured(result_of: Make) -> None:
    whole = on_traces(result_of, {"/data/a.csv": 1.0, "/other/b.csv": 100.0})
    rows = json.loads(render_as(whole, "json"))
    assert len(rows) == 4
    assert rows[1]["workload.trace"] == "/data/a.csv"
    assert rows[1]["latency.read.mean_ns"] == 1_000_000.0
    assert rows[1]["iops"] == 2.5
    assert set(rows[0]) == {"workload.trace", "host.scheduler", *(metric.column for metric in METRICS)}
    read = list(csv.DictReader(io.StringIO(render_as(whole, "csv"))))
    assert [row["waf.total"] for row in read] == ["1.07"] * 4
    assert list(read[0]) == list(rows[0])


def test_table_in_markdown(result_of: Make) -> None:
    lines = render_as(on_traces(result_of, {"a|b.csv": 1.0}), "markdown").splitlines()
    assert len({len(re.findall(r"(?<!\\)\|", line)) for line in lines}) == 1
    assert lines[0].startswith("| workload.trace | host.scheduler | mean read, us |")
    assert lines[3].startswith("| a\\|b.csv | map+ | **1,000** |")


def test_table_without_a_terminal_has_no_colour(result_of: Make) -> None:
    assert "\x1b" not in render_for(comparison(result_of, ["noop", "map+"]), io.StringIO())


class Terminal(io.StringIO):
    """A stream that claims to be a terminal."""

    def isatty(self) -> bool:
        return True


def test_table_colours_respect_no_color(result_of: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    shown = comparison(result_of, ["noop", "map+"])
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.delenv("NO_COLOR", raising=False)
    assert "\x1b[1;32m" in render_for(shown, Terminal(), 100)
    monkeypatch.setenv("NO_COLOR", "1")
    assert "32m" not in render_for(shown, Terminal(), 100)


def test_picture_is_a_png_of_readable_size(result_of: Make) -> None:
    data = draw(comparison(result_of, list(FACTORS)), ".png")
    assert data.startswith(b"\x89PNG\r\n\x1a\n")
    width, height = struct.unpack(">II", data[16:24])
    assert 1000 < width < 2500
    assert 400 < height < 1500


def test_picture_has_panels_for_each_trace_and_a_true_subtitle(result_of: Make) -> None:
    data = draw(on_traces(result_of, {"/data/a.csv": 1.0, "/other/b.csv": 1000.0}), ".svg")
    texts = [each.text for each in ElementTree.fromstring(data).iter() if each.tag.endswith("}text")]
    assert texts.count("Reads") == 2
    assert "mean latency (ms)" in texts
    assert "mean latency (s)" in texts
    assert {"a.csv", "b.csv", "Mean latency by host.scheduler"} <= set(texts)
    whole = b" ".join(data.split())
    assert b"device scheduler piq" in whole
    assert b"/data" not in whole


def test_picture_names_variants_parts_and_units(result_of: Make) -> None:
    data = draw(comparison(result_of, list(FACTORS)), ".svg")
    texts = {element.text for element in ElementTree.fromstring(data).iter() if element.tag.endswith("}text")}
    assert {*FACTORS, "Reads", "Writes", "Reads and writes", "mean latency (ms)"} <= texts
    assert {"waiting in the queue", "in the device", "2", "1.32"} <= {
        (text or "").rstrip("0.") or text for text in texts
    } | texts
    assert draw(comparison(result_of, list(FACTORS)), ".svg") == data


def test_large_shares_are_factors() -> None:
    """Regression: threads waited in 11773.15 % of the time."""
    assert share_of(117.7315, "the time") == "118 times the time"
    assert share_of(0.5, "the time") == "50.00 % of the time"
    assert [change(117.7315), change(0.5), change(-0.5, 1)] == ["x 119", "+50.00 %", "-50.0 %"]
    # A fit of a trace whose value was 0 ended in an internal error.
    assert change(math.inf) == "from 0"
