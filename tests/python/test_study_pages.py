"""What the pages of sweeps and searches hold, and what a browser shows of them."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from browser import Page
from front import Cli
from ftlab import palette
from ftlab.studies import cells, sweep_page
from ftlab.studies.declaration import load_study
from reports import HOSTILE, data_of, parsed
from test_accessibility import findings
from test_tune import RANGES

STUDY = """
title = "Caches & schedulers"
config = "map-plus"

[set]
"flash.blocks_per_plane" = 64
"workload.synthetic.requests" = 200

[axis.scheduler]
key = "host.scheduler"
values = ["noop", "map+"]

[axis.cache]
key = "ftl.mapping_cache"
values = ["2KiB", "4KiB", "16KiB"]

[axis.deadline]
key = "host.deadline"
values = ["5ms", "20ms"]

[axis.seed]
key = "seed"
range = [1, 3, 1]

[value.mean]
is = "latency.all.mean_ns"
unit = "ns"
title = "mean latency"

[derive]
hits = "mapping.hit_ratio"

[compare]
base = { scheduler = "noop" }

[[panel]]
mark = "lines"
value = "mean"
x = "cache"
series = "scheduler"
facet = "deadline"
"""
"""36 runs: 12 variants with three replications each."""

Made = tuple[Path, Path]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Made]:
    """Makes the directories of a sweep and of a search."""
    cli = Cli(tmp_path_factory.mktemp("pages"))
    (cli.directory / "study.toml").write_text(STUDY)
    (cli.directory / "tune.toml").write_text(RANGES)
    cli.ok("sweep", "study.toml", "--out", "swept")
    cli.ok("tune", "tune.toml", "--out", "tuned")
    yield cli.directory / "swept", cli.directory / "tuned"


def test_they_are_whole_pages_that_fetch_nothing(made: Made) -> None:
    for folder in made:
        text = (folder / "index.html").read_text()
        found = parsed(text)
        ids = [attributes["id"] for _, attributes in found.elements if "id" in attributes]
        assert len(ids) == len(set(ids))
        for tag, attributes in found.elements:
            for name in ("src", "action", "data", "srcset", "poster"):
                assert name not in attributes, (tag, attributes)
            assert not [name for name in attributes if name.startswith("on")]
        policies = [a["content"] for _, a in found.elements if a.get("http-equiv")]
        assert len(policies) == 1 and "unsafe-eval" not in (policies[0] or "")
        assert len(re.findall(r"script-src 'sha256-[^ ']*';", policies[0] or "")) == 1
        assert text.count("<script>") == 1
        assert str(folder.parent) not in text, "no path of this machine"


def test_what_is_drawn_is_what_the_table_holds(made: Made) -> None:
    data = data_of((made[0] / "index.html").read_text())
    summary = pl.read_csv(made[0] / "summary.csv")
    assert len(data["means"]) == summary.height == 24
    for (labels, value, count, mean, half, difference, around), row in zip(
        data["means"], summary.iter_rows(named=True), strict=True
    ):
        axes = [axis for axis in data["axes"] if not axis["seed"]]
        assert [axis["labels"][at] for axis, at in zip(axes, labels, strict=True)] == [
            row["scheduler"], row["cache"], row["deadline"]
        ]  # fmt: skip
        assert data["values"][value]["name"] == row["value"]
        assert (count, mean) == (3, pytest.approx(row["mean"]))
        assert mean - half == pytest.approx(row["low"])
        assert (difference is None) == (row["difference"] is None) == (row["scheduler"] == "noop")
        if difference is not None:
            assert difference + around == pytest.approx(row["difference_high"])
    frame = pl.read_parquet(made[0] / "runs.parquet")
    assert [run[0] for run in data["runs"]] == frame["run"].to_list()
    assert [run[2][0] for run in data["runs"]] == frame["mean"].to_list()
    # A policy has the same colour as in every report.
    assert data["axes"][0]["places"] == {"noop": 0, "map+": 6}


def test_panels_of_a_study_are_drawn(made: Made) -> None:
    picture = (made[0] / "figure.svg").read_text()
    assert {"5ms", "20ms", "2KiB", "4KiB", "16KiB", "noop", "map+"} <= set(
        re.findall(r">([^<>]+)</text>", picture)
    )
    assert "Caches &amp; schedulers" in picture and "mean latency (ns)" in picture
    # The page has the same picture in its own colours and, on a wide page, larger.
    drawn = palette.themed(picture).partition("<svg ")[2]
    assert drawn in (made[0] / "index.html").read_text()
    assert (made[0] / "figure.png").read_bytes().startswith(b"\x89PNG")
    # Each point is a mean over the seeds.
    figure = load_study(made[0].parent / "study.toml")
    frame = pl.read_parquet(made[0] / "runs.parquet")
    names = [axis.name for axis in figure.axes]
    rows = [
        {**row, "labels": {name: str(row[name]) for name in names}} for row in frame.iter_rows(named=True)
    ]
    table = cells.of_rows(figure, rows)
    assert table.axes == ("scheduler", "cache", "deadline") and len(table.rows) == 12
    chosen = (pl.col("scheduler") == "map+") & (pl.col("cache") == "4KiB") & (pl.col("deadline") == "5ms")
    (row,) = (row for row in table.rows if row.labels == ("map+", "4KiB", "5ms"))
    assert row.values["mean"] == pytest.approx(frame.filter(chosen)["mean"].mean())


def test_a_page_of_too_many_runs_has_their_means(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    from ftlab.cli import call

    monkeypatch.chdir(cli.directory)
    monkeypatch.setattr(sweep_page, "MOST_RUNS", 30)
    monkeypatch.setattr(sweep_page, "MOST_REPORTED", 30)
    Path("study.toml").write_text(STUDY)
    assert call(["sweep", "study.toml", "--out", "out"]) == 0
    data = data_of(Path("out/index.html").read_text())
    assert (data["runs"], data["count"], len(data["means"])) == ([], 36, 24)
    assert not Path("out/report.html").exists()


def test_a_sweep_in_a_browser(browser: Any, made: Made) -> None:
    page = Page(browser, made[0] / "index.html")
    # There is a panel for each deadline, with a point and its interval for each variant.
    assert page.texts("#means figcaption") == ["deadline = 5ms", "deadline = 20ms"]
    assert page.tab.locator("#means .marks .interval").count() == 12
    assert page.tab.locator("#means .marks .point").count() == 12
    page.tab.hover("#means .marks .point >> nth=0")
    assert page.texts("#tip")[0].startswith("scheduler = noop\ncache = 2KiB\ndeadline = 5ms\n")
    # There is a line for each run.
    assert page.tab.locator("#lines g.run").count() == 36
    assert page.texts("#count") == ["36 of 36 runs"]
    # The length of the interval agrees with the axis.
    page.choose("#value", "1")
    assert "hits" in page.texts("#means .title.y")[0]
    page.choose("#kind", "difference")
    assert page.tab.locator("#means .marks .interval").count() == 6
    page.choose("#colour", "")
    page.choose("#x", "scheduler")
    assert len(page.texts("#means figcaption")) == 6
    page.close()


def test_its_table_filters_and_sorts(browser: Any, made: Made) -> None:
    page = Page(browser, made[0] / "index.html")
    frame = pl.read_parquet(made[0] / "runs.parquet")
    page.tab.fill("#filter", "scheduler=map+ 4KiB")
    chosen = frame.filter((pl.col("scheduler") == "map+") & (pl.col("cache") == "4KiB"))
    assert chosen.height == 6 and page.texts("#count") == ["6 of 36 runs"]
    assert page.texts("#runs tbody td:first-child") == [str(run) for run in chosen["run"]]
    assert page.tab.locator("#means .marks .point").count() == 2, "the means follow"
    # Rows are sorted by the mean latency, then the other way round, with the keyboard.
    page.tab.focus("#runs thead th:nth-child(6) button")
    page.tab.keyboard.press("Enter")
    assert page.texts("#runs tbody td:first-child") == [str(run) for run in chosen.sort("mean")["run"]]
    page.tab.keyboard.press("Enter")
    upside_down = chosen.sort("mean", descending=True)["run"]
    assert page.texts("#runs tbody td:first-child") == [str(run) for run in upside_down]
    assert page.tab.get_attribute("#runs thead th:nth-child(6)", "aria-sort") == "descending"
    # The filter takes values in the unit that is shown.
    limit = sorted(frame["mean"])[4] / 1e6
    page.tab.fill("#filter", f"mean<{limit:.6f}")
    assert page.texts("#count") == [
        f"{sum(each / 1e6 < float(f'{limit:.6f}') for each in frame['mean'])} of 36 runs"
    ]
    # Sizes are sorted as numbers of bytes, not as text.
    page.tab.fill("#filter", "")
    page.tab.click("#variants thead th:nth-child(2) button")
    caches = page.texts("#variants tbody td:nth-child(2)")
    assert caches == sorted(caches, key=["2KiB", "4KiB", "16KiB"].index)
    page.tab.fill("#filter", "nothing=1")
    assert page.texts("#means .missing") == ["Nothing fits the filter."]
    page.close()


def test_a_search_in_a_browser(browser: Any, made: Made) -> None:
    page = Page(browser, made[1] / "index.html")
    trials = pl.read_csv(made[1] / "trials.csv")
    front = pl.read_csv(made[1] / "front.csv")
    assert page.tab.locator("#front .marks .point").count() == trials.height + 1
    on_it = page.tab.locator("#front .marks .point.front, #front .marks .point.best").count()
    assert on_it == front.height
    assert page.tab.locator("#front .marks .point.default").count() == 1
    assert page.tab.locator("#front .marks .point.refused").count() == (~trials["feasible"]).sum()
    page.tab.hover("#front .marks .point.best")
    said = page.texts("#tip")[0]
    assert ", best\nscheduler = " in said and "throughput_bytes_per_s: " in said
    page.tab.hover("#front .marks .point.default")
    assert page.texts("#tip")[0].startswith("default")
    # There is a chart of the course for each objective, and bars of importance.
    assert page.tab.locator("#history svg .marks .line.front").count() == 2
    assert page.tab.locator("#importance rect").count() == 6
    rows = page.texts("#table tbody tr")
    assert len(rows) == front.height + 1 and rows[0].startswith("default")
    assert "map+" in rows[0], "the default's own values"
    page.tab.fill("#filter", "scheduler=noop")
    assert page.tab.locator("#trials tbody tr").count() == (trials["scheduler"] == "noop").sum()
    page.close()


@pytest.mark.parametrize("which", [0, 1], ids=["sweep", "search"])
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1280, 390])
def test_they_fit_and_follow_the_scheme(
    browser: Any,
    made: Made,
    width: int,
    scheme: str,
    which: int,
) -> None:
    page = Page(browser, made[which] / "index.html", width, scheme)
    assert findings(page.tab) == []
    assert page.tab.evaluate("document.documentElement.scrollWidth") <= width
    assert page.tab.evaluate("document.documentElement.dataset.theme") == scheme
    before = page.tab.evaluate("getComputedStyle(document.body).backgroundColor")
    page.tab.click("#theme")
    assert page.tab.evaluate("getComputedStyle(document.body).backgroundColor") != before
    wide = "all => all.filter(one => one.getBoundingClientRect().right > innerWidth).length"
    assert page.tab.eval_on_selector_all("section, .chart > svg, .chart figure svg, .scroll", wide) == 0
    page.close()


SMALL = 'config = "map-plus"\n[set]\n"workload.synthetic.requests" = 50\n"flash.blocks_per_plane" = 64\n'


@pytest.mark.parametrize(
    ("axes", "labels", "points"),
    [
        ("", [""], 1),
        ("[axis.seed]\nkey = 'seed'\nrange = [1, 3, 1]\n", [""], 1),
        ("[axis.size]\nkey = 'ftl.mapping_cache'\nvalues = ['8KiB']\n", ["8KiB"], 1),
        ("[axis.many]\nkey = 'host.deadline'\nrange = ['1ms', '150ms', '1ms']\n", ["1ms"], 150),
    ],
    ids=["one-run", "seeds-alone", "one-label", "very-many-labels"],
)
def test_studies_of_any_shape(browser: Any, cli: Cli, axes: str, labels: list[str], points: int) -> None:
    (cli.directory / "study.toml").write_text(SMALL + axes)
    cli.ok("sweep", "study.toml", "--out", "out")
    page = Page(browser, cli.directory / "out" / "index.html")
    assert page.tab.locator("#means .marks .point").count() == points
    there = page.texts("#means svg.plot > .tick")
    assert [label for label in labels if label and label not in there] == []
    assert len(there) < 100, "no more than fit"
    assert page.tab.locator("#runs tbody tr").count() == (3 if "seed" in axes else points)
    page.close()


@pytest.mark.parametrize("sought", ["waf.total", 'waf.total", "latency.all.mean_ns", "mapping.hit_ratio'])
def test_searches_for_one_thing_or_three(browser: Any, cli: Cli, sought: str) -> None:
    text = RANGES.replace('maximize = ["throughput_bytes_per_s"]\n', "").replace("runs = 16", "runs = 6")
    (cli.directory / "tune.toml").write_text(text.replace("latency.all.percentile_ns.99", sought))
    cli.ok("tune", "tune.toml", "--out", "out")
    page = Page(browser, cli.directory / "out" / "index.html")
    several = "," in sought
    assert page.tab.locator("#history svg[role=img]").count() == (3 if several else 1)
    assert page.tab.locator("#front .marks .point").count() == (7 if several else 0)
    if several:
        page.choose("#x", "2")
        assert "mapping.hit_ratio" in page.texts("#front .title.x")[0]
        # The x axis, which showed this objective until then, now shows another one.
        page.choose("#y", "2")
        assert page.tab.input_value("#x") != "2"
    else:
        assert page.texts("#front .missing")[0].startswith("One objective")
    page.close()


def test_names_are_text(browser: Any, cli: Cli) -> None:
    label = json.dumps(HOSTILE)
    (cli.directory / "study.toml").write_text(
        f'title = {label}\nconfig = "map-plus"\n[set]\n"workload.synthetic.requests" = 50\n'
        f"[axis.a]\ntitle = {label}\n[axis.a.sets]\n{label} = {{ seed = 1 }}\nb = {{ seed = 2 }}\n"
        f"[value.x]\nis = 'latency.all.mean_ns'\ntitle = {label}\n"
        "[[panel]]\nmark = 'bars'\nvalue = 'x'\nx = 'a'\n"
    )
    cli.ok("sweep", "study.toml", "--out", "out")
    page = Page(browser, cli.directory / "out" / "index.html")
    assert page.tab.evaluate("window.broken") is None
    assert page.texts("h1") == [HOSTILE]
    page.close()
