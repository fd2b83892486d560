"""What a browser shows of HTML reports."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

import ftlab
from browser import Page
from ftlab import html
from ftlab.html.data import payload
from reports import HOSTILE, MEASURED, SECTIONS, WORKLOAD, Runs

PREFACE = "<section><h2>Claims</h2><table><tr><td style='color: #333'>holds</td></tr></table></section>"


@pytest.fixture(scope="module")
def report(runs: Runs, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("html") / "report.html"
    html.write_report(path, title="Report", runs=runs, preface=PREFACE, command="ftlab x")
    return path


def shown(value: float) -> str:
    """Returns a number as the page writes it."""
    digits = max(0, 4 - len(str(int(value))))
    return f"{value:,.{digits}f}"


def test_no_other_script_runs(browser: Any, runs: Runs, tmp_path: Path) -> None:
    """A script that got into the page unescaped does not run; nor does an event handler."""
    html.write_report(tmp_path / "r.html", title="x", runs=runs, preface=HOSTILE)
    page = Page(browser, tmp_path / "r.html")
    assert page.tab.evaluate("window.broken") is None
    refused = [fault for fault in page.faults if "Content Security Policy" in fault]
    assert len(refused) >= 2 and not [fault for fault in page.faults if fault.startswith("error:")]
    page.faults.clear()
    page.close()


def test_every_section_is_drawn(browser: Any, report: Path, runs: Runs) -> None:
    page = Page(browser, report)
    drawn = {name: page.marks(name) for name in SECTIONS}
    for name in (
        "overview",
        "distribution",
        "parts",
        "time",
        "throughput",
        "waf",
        "waf-time",
        "misses",
        "flash",
    ):
        assert drawn[name].count("<path") > 3, name
    # Each policy is a panel of the same chart.
    assert drawn["waf-time"].count("<svg") == 1
    small = [result for labels, result in runs if labels["ftl.mapping_cache"] == "1KiB"]
    # Policies whose maps are the same share a panel, whose title names them.
    assert drawn["wear"].count("data:image/png") == len({str(run["erase_map"]["max"]) for run in small})
    titles = page.texts("#wear .panels h3")
    assert sorted(name for title in titles for name in title.split(", ")) == ["map+", "noop"]
    # The chart's numbers are those of the results.
    means = [result["latency"]["all"]["mean_ns"] for _, result in runs]
    # One unit for all times of latencies.
    unit = 1e6 if max(means) >= 1e6 else 1e3
    texts = page.texts("#overview .role-mark.layer_1_marks text")
    assert sorted(texts) == sorted(shown(mean / unit) for mean in means)
    ninety_ninth = [result["latency"]["all"]["percentile_ns"]["99.000000"] for result in small]
    row = page.texts("#percentiles tbody tr:nth-child(13) > *")
    assert row[0] == "99th" and [float(cell.replace(",", "")) for cell in row[1:]] == pytest.approx(
        [value / unit for value in ninety_ninth],
        rel=1e-3,
    )
    keys, settings = page.texts("#settings tbody th"), payload(runs)["settings"]
    assert "ftl.cache_policy" in keys and len(keys) == len(settings["keys"]) - len(settings["unread"])
    page.close()


def curve_of(page: Page, name: str) -> tuple[list[dict[str, Any]], float]:
    """Returns the points of a curve of the distribution, and the unit of its times in ns."""
    page.choose("#curve", name)
    (spec,) = page.tab.evaluate("window.ftlabCharts.get('distribution').map(one => one.spec)")
    unit = spec["layer"][0]["encoding"]["x"]["title"].split("(")[1].split(",")[0]
    return spec["data"]["values"], {"ns": 1.0, "µs": 1e3, "ms": 1e6}[unit]


def check_curves(page: Page, runs: Runs, part: str, op: str) -> None:
    points, unit = curve_of(page, "cdf")
    slower, _ = curve_of(page, "ccdf")
    for labels, result in runs:
        if labels["ftl.mapping_cache"] != "1KiB":
            continue
        summary = result[part][op]
        bins = summary["histogram"]["bins"]
        cdf, ccdf = (
            [row for row in rows if row["policy"] == labels["host.scheduler"]] for rows in (points, slower)
        )
        assert len(cdf) == len(ccdf) > 1
        for row, other in zip(cdf[:-1], ccdf[:-1], strict=True):
            assert other["share"] == pytest.approx(1 - row["share"] / 100)
            if row["time"] * unit > 1000:
                lower = round(row["time"] * unit)
                # The first point is at the least value, every other point at the beginning of a bin.
                faster = 0 if row is cdf[0] else sum(n for at, n in bins if at < lower)
                assert row["share"] == pytest.approx(faster / summary["count"] * 100), lower
        assert cdf[-1]["share"] == 100
        assert cdf[-1]["time"] * unit == pytest.approx(max(summary["max_ns"], 1000))
        assert ccdf[-1]["share"] == pytest.approx(1 / summary["count"])


def test_curves_are_those_of_the_requests(browser: Any, report: Path, runs: Runs) -> None:
    """Compares the curves with the histograms of the results, whose bins are finer than the page's."""
    page = Page(browser, report)
    for op in ("all", "read", "write"):
        page.choose("#op", op)
        for part in ("latency", "wait", "access"):
            page.choose("#part", part)
            check_curves(page, runs, part, op)
    page.close()


def test_every_axis_has_a_title(browser: Any, report: Path) -> None:
    page = Page(browser, report)
    for chart in ("overview", "distribution", "parts", "time", "waf", "waf-time", "misses", "flash"):
        charts = page.tab.query_selector_all(f"#{chart} svg.marks")
        for svg in charts:
            titles = svg.eval_on_selector_all(
                ".role-axis-title text", "all => all.map(one => one.textContent)"
            )
            assert len(titles) == 2 and all(titles), (chart, titles)
    page.close()


@pytest.mark.parametrize(
    ("control", "value", "changed"),
    [
        ("#metric", "waf", {"overview"}),
        ("#metric", "p99", {"overview"}),
        ("#part", "access", {"distribution"}),
        ("#curve", "cdf", {"distribution"}),
        ("#unit", "units", {"misses"}),
        ("#cause", "map", {"waf-time"}),
        ("#operations", "erases", {"flash"}),
        ("#op", "write", {"overview", "distribution", "parts", "time"}),
        ("#cases select", "4KiB", {"distribution", "parts", "time", "flash"}),
        (
            "#colour",
            "ftl.mapping_cache",
            {"overview", "distribution", "parts", "time", "waf", "misses", "flash"},
        ),
    ],
)
def test_a_choice_changes_what_it_is_about(
    browser: Any, report: Path, control: str, value: str, changed: set[str]
) -> None:
    page = Page(browser, report)
    charts = ("overview", "distribution", "parts", "time", "waf", "waf-time", "misses", "flash")
    before = {name: page.marks(name) for name in charts}
    page.choose(control, value)
    after = {name: page.marks(name) for name in charts}
    assert changed <= {name for name in charts if before[name] != after[name]}
    if control in ("#metric", "#part", "#curve", "#unit", "#operations", "#cause"):
        assert changed == {name for name in charts if before[name] != after[name]}
    page.close()


def test_policies_can_be_hidden_and_found_by_keyboard(browser: Any, report: Path) -> None:
    page = Page(browser, report)
    assert page.texts("#figures thead th") == ["metric", "noop", "map+"]
    page.tab.focus("#policies input[value='noop']")
    page.tab.keyboard.press("Space")
    page.wait()
    assert page.texts("#figures thead th") == ["metric", "map+"]
    assert page.texts("#waf-time .legend span") == ["map+"]
    page.tab.keyboard.press("Tab")
    page.tab.keyboard.press("Space")
    page.wait()
    assert page.texts("#overview .missing") == ["No run is chosen."]
    assert page.texts("#contents a") == ["Overview"]
    page.close()


def test_settings_are_found(browser: Any, report: Path) -> None:
    page = Page(browser, report)
    page.tab.fill("#find", "mapping_cache")
    page.wait()
    assert page.texts("#settings tbody tr") == ["ftl.mapping_cache1KiB1KiB"]
    # What no run read is folded away, unless it is looked for.
    page.tab.fill("#find", "log_blocks")
    page.wait()
    assert page.texts("#settings tbody th") == ["ftl.log_blocks"]
    page.tab.fill("#find", "")
    page.wait()
    assert "ftl.log_blocks" not in page.texts("#settings tbody th")
    page.tab.check("#unread")
    page.wait()
    assert "ftl.log_blocks" in page.texts("#settings tbody th")
    page.tab.check("#differing")
    page.wait()
    assert (
        page.texts("#settings tbody tr.differs th") == page.texts("#settings tbody th") == ["host.scheduler"]
    )
    page.close()


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1280, 400])
def test_it_fits_and_follows_the_scheme(browser: Any, report: Path, width: int, scheme: str) -> None:
    page = Page(browser, report, width, scheme)
    assert page.tab.evaluate("document.documentElement.scrollWidth") <= width
    assert page.tab.evaluate("document.documentElement.dataset.theme") == scheme
    dark = page.tab.evaluate("getComputedStyle(document.body).backgroundColor")
    page.tab.click("#theme")
    page.wait()
    assert page.tab.evaluate("getComputedStyle(document.body).backgroundColor") != dark
    # No chart is wider than its frame.
    wide = "all => all.filter(one => one.scrollWidth > one.clientWidth + 1).map(one => one.parentNode.id)"
    assert page.tab.eval_on_selector_all(".chart", wide) == []
    page.close()


def test_what_stands_before_the_charts_stays_on_paper(browser: Any, report: Path) -> None:
    """Regression: in dark mode, a reproduction's claims were on dark panels, in text colours made for white
    paper.
    """
    page = Page(browser, report, scheme="dark")

    def style(selector: str, name: str) -> str:
        found: str = page.tab.eval_on_selector(selector, f"one => getComputedStyle(one).{name}")
        return found

    assert style("#preface", "backgroundColor") == "rgb(255, 255, 255)"
    assert (
        style("#preface section", "backgroundColor")
        == style("#preface td", "backgroundColor")
        == "rgba(0, 0, 0, 0)"
    )
    assert style("#preface h2", "color") == "rgb(27, 31, 35)"
    assert style("#overview", "backgroundColor") != "rgb(255, 255, 255)"
    page.close()


def test_hybrid_ftls_without_what_is_asked_for(browser: Any, tmp_path: Path) -> None:
    """Merges are drawn, and distributions are made from percentiles; the page says what was not measured."""
    vary = {"ftl.kind": ["bast", "fast"]}
    comparison = ftlab.compare(
        "coop-fast", vary, set={"workload.synthetic.requests": 6000, "workload.synthetic.region": "48MiB"}
    )
    comparison.html(tmp_path / "x.html")
    page = Page(browser, tmp_path / "x.html")
    before = page.marks("merges")
    assert before.count("<path") > 3
    page.choose("#merge", "busy_ns")
    assert page.marks("merges") != before
    assert page.marks("distribution").count("<path") > 3
    # Charts without data do not appear; a line at the end says how to get them.
    assert {"Latency over time", "Erase counts"}.isdisjoint(page.texts("#contents a"))
    (absent,) = page.texts("#absent")
    assert "Latency over time (not measured: run with --html, or set results.series)" in absent
    assert "Erase counts (not measured: run with --html, or set results.erase_map)" in absent
    page.close()


def test_runs_without_reads_writes_or_erases(browser: Any, tmp_path: Path) -> None:
    """Trims have no latency, and flushes without writes have no mappings: all charts are empty, but nothing
    fails.
    """
    trims = {
        **WORKLOAD,
        **MEASURED,
        "workload.synthetic.read_share": "0%",
        "workload.synthetic.trim_share": "100%",
    }
    (tmp_path / "a.csv").write_text("time_ns,op,offset,size\n0,F,0,0\n")
    flush = ftlab.run("map-plus", set=MEASURED, trace=tmp_path / "a.csv")
    runs = [
        ({"host.scheduler": "noop"}, ftlab.run("map-plus", set=trims)),
        ({"host.scheduler": "row"}, flush),
    ]
    html.write_report(tmp_path / "x.html", title="empty", runs=runs)
    page = Page(browser, tmp_path / "x.html")
    (absent,) = page.texts("#absent")
    for name in ("Latency distribution", "Wait and access", "Latency over time"):
        assert f"{name} (no request of this operation)" in absent
    assert "Write amplification over time (nothing was written)" in absent
    assert "Erase counts (no block was erased)" in absent
    assert page.tab.is_visible("#figures") and not page.tab.is_visible("#distribution")
    # The page shows the first metric for which a run has a value.
    assert page.tab.input_value("#metric") not in ("", "mean")
    page.close()


def test_hostile_names_do_nothing(browser: Any, runs: Runs, tmp_path: Path) -> None:
    named = [({**labels, HOSTILE: HOSTILE + labels["host.scheduler"]}, result) for labels, result in runs]
    html.write_report(tmp_path / "x.html", title=HOSTILE, runs=named, command=HOSTILE)
    page = Page(browser, tmp_path / "x.html")
    page.choose("#colour", HOSTILE)
    assert page.tab.evaluate("window.broken") is None
    assert HOSTILE + "noop" in page.texts("#policies label")
    page.close()


def test_each_study_has_its_own_choices(browser: Any, runs: Runs, tmp_path: Path) -> None:
    figures = [({"figure": "Fig. 8", **labels}, result) for labels, result in runs]
    figures += [
        ({"figure": "Fig. 9", "cache": labels["ftl.mapping_cache"]}, result) for labels, result in runs[:2]
    ]
    html.write_report(tmp_path / "x.html", title="figures", runs=figures)
    page = Page(browser, tmp_path / "x.html")
    assert page.texts("#study option") == ["Fig. 8", "Fig. 9"]
    assert page.texts("#policies legend") == ["host.scheduler"]
    page.choose("#metric", "waf")
    page.choose("#study", "1")
    assert page.texts("#policies legend") == ["cache"] and page.texts("#cases label") == []
    assert page.texts("#figures thead th") == ["metric", "1KiB", "4KiB"]
    assert page.tab.input_value("#metric") == "waf"
    page.choose("#study", "0")
    assert len(page.texts("#overview .role-mark.layer_1_marks text")) == 4
    page.close()


def test_a_page_with_very_many_cases_stays_readable(browser: Any, runs: Runs, tmp_path: Path) -> None:
    many = [
        ({"workload": f"w{number}", "size": f"s{size}", **labels}, result)
        for number in range(20)
        for size in range(2)
        for labels, result in runs
    ]
    html.write_report(tmp_path / "x.html", title="many", runs=many)
    page = Page(browser, tmp_path / "x.html")
    # Of the 80 cases, only those with the first workload are drawn.
    assert len(page.texts("#overview .role-mark.layer_1_marks text")) == 8
    page.choose("#cases select[data-dimension='workload']", "w7")
    assert len(page.texts("#overview .role-mark.layer_1_marks text")) == 8
    page.close()


def test_the_contents_are_the_sections_that_are_there(browser: Any, report: Path) -> None:
    page = Page(browser, report)
    titles = page.texts("main > section:not([hidden]) > h2")
    assert page.texts("#contents a") == titles
    # There is no hybrid FTL, so there is nothing about merges.
    assert "Merges" not in titles and "Settings" in titles
    assert page.texts("#absent") == [
        "Nothing to show of: Merges (only the hybrid FTLs (bast, fast) merge blocks)."
    ]
    page.tab.click("#contents a >> text=Settings")
    top = page.tab.eval_on_selector("#settings", "one => one.getBoundingClientRect().top")
    assert 0 <= top < 900
    page.close()


def test_choices_stand_in_the_address(browser: Any, report: Path) -> None:
    """A link with the choices shows the same page, in a new tab and in an open one; default choices are not
    in the link.
    """
    page = Page(browser, report)
    assert "#" not in page.tab.url
    page.choose("#metric", "p99")
    page.choose("#op", "read")
    page.choose("#cause", "map")
    page.choose("#cases select", "4KiB")
    page.tab.uncheck("#policies input[value='noop']")
    page.tab.fill("#find", "cache")
    page.tab.click("#theme")
    page.wait()
    address = page.tab.url
    charts = ("overview", "distribution", "waf-time", "parts")
    shown = {name: page.marks(name) for name in charts}
    page.close()
    again = Page(browser, report, fragment="#" + address.partition("#")[2])
    assert again.tab.url == address
    assert {name: plain(again.marks(name)) for name in charts} == {k: plain(v) for k, v in shown.items()}
    assert again.tab.input_value("#find") == "cache"
    assert again.tab.evaluate("document.documentElement.dataset.theme") == "dark"
    # Unknown choices are ignored.
    again.tab.evaluate("location.hash = '#metric=p50&op=no&colour=no&at.x=y&section=parts'")
    again.tab.wait_for_function("document.getElementById('metric').value === 'p50'")
    again.wait()
    assert (again.tab.input_value("#op"), again.tab.input_value("#cause")) == ("all", "all")
    assert again.texts("#figures thead th") == ["metric", "noop", "map+"]
    again.close()


def plain(svg: str) -> str:
    """Removes the names that Vega numbers consecutively."""
    return re.sub(r"clip\d+", "clip", svg)


@pytest.mark.parametrize("section", ["distribution", "waf", "wear"])
def test_pictures_have_their_legend(browser: Any, report: Path, tmp_path: Path, section: str) -> None:
    page = Page(browser, report)
    for kind in ("svg", "png"):
        with page.tab.expect_download() as download:
            page.tab.click(f"#{section} .save [data-type={kind}]")
        assert download.value.suggested_filename == f"{section}.{kind}"
        download.value.save_as(tmp_path / f"x.{kind}")
    picture = (tmp_path / "x.svg").read_text()
    texts = [html_text.strip() for html_text in re.findall(r">([^<>]+)<", picture)]
    assert page.texts(f"#{section} h2")[0] in texts
    for entry in [*page.texts(f"#{section} .legend span"), *page.texts(f"#{section} .panels h3")]:
        assert entry in texts, entry
    # The picture names the case that it belongs to, and has its own background.
    assert "ftl.mapping_cache 1KiB" in texts and 'fill="#ffffff"' in picture
    assert (tmp_path / "x.png").read_bytes().startswith(b"\x89PNG")
    page.close()


def test_curves_are_told_apart_without_colour(browser: Any, report: Path) -> None:
    page = Page(browser, report)
    for section in ("distribution", "time", "waf-time"):
        dashes = page.tab.eval_on_selector_all(
            f"#{section} .legend line", "all => all.map(one => one.getAttribute('stroke-dasharray'))"
        )
        shapes = page.tab.eval_on_selector_all(
            f"#{section} .legend path", "all => all.map(one => one.getAttribute('d'))"
        )
        assert len({*zip(dashes, shapes, strict=True)}) == len(set(shapes)) == 2
        # Dashes and markers of the curves match those of the legend.
        spec = page.tab.evaluate(f"window.ftlabCharts.get('{section}')[0].spec")
        line, point = spec["layer"]
        assert point["encoding"]["shape"]["scale"]["range"] == shapes
        drawn = [" ".join(map(str, dash)) for dash in line["encoding"]["strokeDash"]["scale"]["range"]]
        assert drawn == dashes
        marked = [row["policy"] for row in spec["data"]["values"] if row["marked"]]
        assert set(marked) == {"noop", "map+"}
    page.close()


def test_amplification_over_time_is_that_of_the_series(browser: Any, report: Path, runs: Runs) -> None:
    page = Page(browser, report)
    (spec,) = page.tab.evaluate("window.ftlabCharts.get('waf-time').map(one => one.spec)")
    rows = spec["data"]["values"]
    for labels, result in runs:
        if labels["ftl.mapping_cache"] == "1KiB":
            own = [row for row in rows if row["policy"] == labels["host.scheduler"]]
            pages = sum(row["value"] * row["host"] for row in own)
            written = sum(row["host"] for row in own)
            assert written == sum(result["series"]["host_pages"])
            assert pages / written == pytest.approx(result["waf"]["total"], rel=0.02)
    assert spec["layer"][0]["encoding"]["y"]["scale"] == {"zero": False}
    page.close()


def test_throughput_over_time_is_that_of_the_series(browser: Any, report: Path, runs: Runs) -> None:
    page = Page(browser, report)
    for rate in ("requests", "written"):
        page.choose("#rate", rate)
        (spec,) = page.tab.evaluate("window.ftlabCharts.get('throughput').map(one => one.spec)")
        for labels, result in runs:
            if labels["ftl.mapping_cache"] == "1KiB":
                rows = [row for row in spec["data"]["values"] if row["policy"] == labels["host.scheduler"]]
                series = result["series"]
                # Intervals in which nothing completed are there too.
                covered = series["width_ns"] * len(series["host_pages"]) / 1e9
                assert sum(row["seconds"] for row in rows) == pytest.approx(covered)
                done = sum(row["value"] * row["seconds"] for row in rows)
                whole = sum(map(sum, series["requests"].values()))
                if rate == "written":
                    whole = sum(series["host_pages"]) * 4096 / 1e6
                assert done == pytest.approx(whole)
    page.close()


def test_a_single_run_has_no_chart_of_one_bar(browser: Any, runs: Runs, tmp_path: Path) -> None:
    """Regression: overview, parts, causes and merges of a run were each a single bar."""
    html.write_report(tmp_path / "x.html", title="x", runs=runs[:1], notes=["a is b"])
    page = Page(browser, tmp_path / "x.html")
    assert not page.tab.is_visible("#overview") and not page.tab.is_visible("#metric")
    assert page.texts("#contents a")[0] == "Wait and access"
    bars = page.texts("#parts .role-axis-label text")
    assert {"reads", "writes", "reads and writes"} <= set(bars)
    for section in ("flash", "waf"):
        charts = page.tab.evaluate(f"window.ftlabCharts.get('{section}').map(one => one.spec)")
        assert all(len(spec["data"]["values"]) > 1 for spec in charts)
    # Notes come behind the charts; the head leads to them.
    assert page.texts("#to-notes") == ["1 note on these figures"] and page.texts("#notes p") == ["A is b."]
    page.tab.click("#to-notes")
    assert page.tab.evaluate("document.activeElement.id") == "notes"
    page.close()


def test_equal_best_values_are_all_bold(browser: Any, runs: Runs, tmp_path: Path) -> None:
    """Regression: of values that look the same only one was bold."""
    twins = [({"x": name}, runs[at][1]) for name, at in (("a", 0), ("b", 0), ("c", 2))]
    html.write_report(tmp_path / "x.html", title="x", runs=twins)
    page = Page(browser, tmp_path / "x.html")
    page.tab.wait_for_selector("#percentiles td.best")
    found = page.tab.eval_on_selector_all(
        "#percentiles tbody tr, #figures tbody tr",
        "all => all.map(tr => [...tr.querySelectorAll('td')].map(td => [td.textContent, !!td.className]))",
    )
    assert any(sum(bold for _, bold in row) == 2 for row in found)
    for row in found:
        marked = {text for text, bold in row if bold}
        assert all(bold == (text in marked) for text, bold in row) and len(marked) <= 1
        assert len(marked) == 0 or len({text for text, _ in row}) > 1
    page.close()


def test_a_table_has_one_unit_of_time(browser: Any, report: Path) -> None:
    """Regression: mean access was in microseconds among latencies in milliseconds."""
    page = Page(browser, report)
    names = page.texts("#figures tbody th")
    units = {unit for name in names for unit in re.findall(r"\((ns|µs|ms|s)\)$", name)}
    assert len(units) == 1 and len(names) > 15
    page.close()


@pytest.mark.parametrize("width", [1280, 390])
def test_long_names_leave_room(browser: Any, runs: Runs, tmp_path: Path, width: int) -> None:
    """Regression: the title of an axis covered long labels; the ends of names were cut off."""
    named = [
        ({"trace": f"a very long name of a folder, and in it a recording of a phone/{number}.csv"}, result)
        for number, (_, result) in enumerate(runs)
    ]
    html.write_report(tmp_path / "x.html", title="x", runs=named)
    page = Page(browser, tmp_path / "x.html", width)
    assert page.tab.evaluate("document.documentElement.scrollWidth") <= width
    for section in ("overview", "parts", "flash"):
        box = "all => all.map(one => one.getBoundingClientRect().toJSON())"
        (title,) = page.tab.eval_on_selector_all(
            f"#{section} .role-axis-title text[transform*='rotate']", box
        )
        labels = page.tab.eval_on_selector_all(f"#{section} .role-axis-label text", box)
        names = page.texts(f"#{section} .role-axis-label text")
        assert {f"{number}.csv" for number in range(4)} <= {name[-5:] for name in names}
        for label in labels:
            apart = label["left"] >= title["right"] or label["bottom"] <= title["top"]
            assert apart or label["top"] >= title["bottom"], (section, label, title)
    page.close()


def test_of_very_many_runs_some_curves_are_drawn(browser: Any, runs: Runs, tmp_path: Path) -> None:
    many = [({"ftl.mapping_cache": f"{size}KiB"}, runs[size % 4][1]) for size in range(1, 64)]
    html.write_report(tmp_path / "x.html", title="many", runs=many)
    page = Page(browser, tmp_path / "x.html")
    assert len(page.texts("#overview .role-mark.layer_1_marks text")) == 63
    curves = page.texts("#distribution .legend span")
    assert len(curves) == 12 and curves[0] == "1KiB" and curves[-1] == "63KiB"
    assert "12 of 63 are drawn" in page.texts("#distribution .chart .note")[0]
    page.close()


def test_titles_of_axes_are_whole_on_a_phone(browser: Any, report: Path) -> None:
    """Regression: the title of an axis ran out of the picture if it was longer than the axis."""
    page = Page(browser, report, 390)
    for metric in ("mean", "p9999", "stddev", "busiest"):
        page.choose("#metric", metric)
        outside = page.tab.eval_on_selector_all(
            "section:not([hidden]) svg.marks",
            """all => all.flatMap(svg => {
                const frame = svg.getBoundingClientRect();
                return [...svg.querySelectorAll(".role-axis-title text")].filter(text => {
                    const box = text.getBoundingClientRect();
                    return box.left < frame.left - 1 || box.right > frame.right + 1;
                }).map(text => text.textContent);
            })""",
        )
        assert outside == [], metric
    page.close()
