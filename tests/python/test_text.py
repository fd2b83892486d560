"""What people read: numbers, the report of a run, the table of a comparison, the picture."""

from __future__ import annotations

import io
import re
import struct
from collections.abc import Callable
from typing import Any
from xml.etree import ElementTree

import pytest

from ftlab.comparison import Comparison, Variant
from ftlab.metrics import METRICS, best, ratio
from ftlab.plot import draw
from ftlab.result import Result
from ftlab.table import render, render_for
from ftlab.units import duration, percent, significant, size, time_unit

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
        "map-plus: scheduler map+, FTL dftl, mapping cache 16KiB",
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


def test_table_without_a_terminal_has_no_colour(result_of: Make) -> None:
    assert "\x1b" not in render_for(comparison(result_of, ["noop", "map+"]), io.StringIO())


class Terminal(io.StringIO):
    """A stream that says it is a terminal."""

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


def test_picture_names_variants_parts_and_units(result_of: Make) -> None:
    data = draw(comparison(result_of, list(FACTORS)), ".svg")
    texts = {element.text for element in ElementTree.fromstring(data).iter() if element.tag.endswith("}text")}
    assert {*FACTORS, "Reads", "Writes", "Reads and writes", "mean latency (ms)"} <= texts
    assert {"waiting in the queue", "in the device", "2", "1.32"} <= {
        (text or "").rstrip("0.") or text for text in texts
    } | texts
    assert draw(comparison(result_of, list(FACTORS)), ".svg") == data
