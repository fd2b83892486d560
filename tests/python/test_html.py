"""What the file of an HTML report holds."""

from __future__ import annotations

import base64
import gzip
import hashlib
import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import vl_convert
from hypothesis import given
from hypothesis import strategies as st

import ftlab
from front import Cli
from ftlab import html
from ftlab.html.data import coarser, fewer_cells, payload
from reports import HOSTILE, SECTIONS, WORKLOAD, Runs, data_of, parsed


def test_a_report_is_one_whole_page_that_fetches_nothing(runs: Runs) -> None:
    text = html.render(
        title="A report", runs=runs, preface="<p id='claims'>first</p>", command="ftlab compare x"
    )
    page = parsed(text)
    assert text.startswith("<!DOCTYPE html>")
    ids = [attributes["id"] for _, attributes in page.elements if "id" in attributes]
    assert len(ids) == len(set(ids)) and {*SECTIONS, "data", "claims"} <= set(ids)
    assert text.index("id='claims'") < text.index('id="overview"')
    for tag, attributes in page.elements:
        for name in ("src", "href", "action", "data", "srcset", "poster"):
            assert (attributes.get(name) or "#").startswith(("#", "data:")), (tag, attributes)
    policies = [a["content"] for _, a in page.elements if a.get("http-equiv") == "Content-Security-Policy"]
    assert len(policies) == 1 and (policies[0] or "").startswith("default-src 'none';")
    # Regression: inline scripts and eval were allowed, so anything that got into the page would have run.
    scripts = re.findall(r"<script>(.*?)</script>", text, re.S)
    hashes = [base64.b64encode(hashlib.sha256(script.encode()).digest()).decode() for script in scripts]
    allowed = " ".join(f"'sha256-{each}'" for each in hashes)
    assert len(scripts) == 2 and f"script-src {allowed};" in (policies[0] or "")
    assert "unsafe-eval" not in (policies[0] or "")
    assert not [name for _, attributes in page.elements for name in attributes if name.startswith("on")]
    # Except for the command, nothing names the machine on which the report was made.
    assert "ftlab compare x" in text and str(Path.cwd()) not in text
    assert {"lang": "en"} in [attributes for tag, attributes in page.elements if tag == "html"]
    # Every control is inside a label.
    for control in re.finditer(r"<(select|input)\b", re.sub(r"<script.*?</script>", "", text, flags=re.S)):
        before = text[: text.index(control[0])]
        assert before.count("<label") >= before.count("</label")


def test_the_library_is_that_of_the_pictures() -> None:
    """The library in the package, where `make` puts it with `scripts/vega.py`, is the one that draws the
    pictures.
    """
    held = (Path(html.__file__).parent / "vega.js.gz").read_bytes()
    assert gzip.decompress(held).decode() == vl_convert.javascript_bundle("window.vegaEmbed=vegaEmbed;")


def test_licences_of_what_it_holds_stand_in_it(runs: Runs) -> None:
    text = parsed(html.render(title="x", runs=runs)).text["pre"]
    for words in (
        "vega-embed",
        "d3-array",
        "University of Washington Interactive Data Lab",
        "Redistributions in binary form must reproduce the above copyright notice",
        "Mike Bostock",
        "ColorBrewer",
    ):
        assert words in text, words


def test_a_report_costs_little(runs: Runs) -> None:
    """Regression: Vega was bundled again for each report, in more than two seconds of processor time."""
    code = (
        "import json, sys, time\n"
        "runs = json.load(sys.stdin)\n"
        "began = time.process_time()\n"
        "from ftlab import html\n"
        "html.render(title='x', runs=runs)\n"
        "print(time.process_time() - began)\n"
    )
    plain = json.dumps([(labels, result.to_dict()) for labels, result in runs])
    call = [sys.executable, "-c", code]
    spent = [
        float(subprocess.run(call, input=plain, capture_output=True, text=True, check=True).stdout)
        for _ in range(3)
    ]
    assert min(spent) < 0.3


def test_whatever_stands_in_names_is_text(runs: Runs) -> None:
    named = [({**labels, "workload": HOSTILE}, result) for labels, result in runs]
    text = html.render(title=HOSTILE, runs=named, command=HOSTILE)
    page = parsed(text)
    assert [tag for tag, _ in page.elements].count("img") == 0
    assert page.text["title"] == HOSTILE and page.text["code"] == HOSTILE
    assert data_of(text)["studies"][0]["runs"][0]["labels"]["workload"] == HOSTILE
    assert [tag for tag, _ in page.elements].count("script") == 3


def test_the_engine_is_not_in_it(runs: Runs) -> None:
    def other(result: Any) -> dict[str, Any]:
        plain: dict[str, Any] = json.loads(json.dumps(result.to_dict()))
        plain["engine"] = {"wall_s": 1e9, "version": "other"}
        return plain

    again = [(labels, other(result)) for labels, result in runs]
    assert html.render(title="x", runs=runs) == html.render(title="x", runs=again)


def test_every_setting_and_label_is_in_it(runs: Runs) -> None:
    data = payload(runs)
    settings = data["settings"]
    (study,) = data["studies"]
    for run, (labels, result) in zip(study["runs"], runs, strict=True):
        assert run["labels"] == labels
        whole = {**settings["common"], **data["results"][run["result"]]["settings"]}
        assert set(whole) == set(settings["keys"])
        config = result["config"]
        assert whole["host.scheduler"] == config["host"]["scheduler"] == labels["host.scheduler"]
        assert whole["workload.synthetic.region"] == "4MiB" and whole["seed"] == 1
    assert study["colour"] == "host.scheduler"
    places = {d["name"]: d["places"] for d in study["dimensions"]}
    names = [part["name"] for part in ftlab.components()["host.scheduler"]]
    # The same policy has the same colour in every report.
    assert places["host.scheduler"] == {name: names.index(name) for name in ("noop", "map+")}


def test_runs_that_their_labels_do_not_tell_apart_are_numbered(runs: Runs) -> None:
    result = runs[0][1]

    def labels(*given_labels: dict[str, str]) -> list[list[dict[str, str]]]:
        studies = payload([(given_label, result) for given_label in given_labels])["studies"]
        return [[run["labels"] for run in study["runs"]] for study in studies]

    assert labels({}) == [[{"run": "1"}]]
    assert labels({"a": "x"}, {"a": "x"}) == [[{"a": "x", "run": "1"}, {"a": "x", "run": "2"}]]
    with pytest.raises(ValueError, match="at least one run"):
        payload([])


def test_runs_of_a_figure_are_a_study(runs: Runs) -> None:
    """The runs of a figure are a study with the figure's own labels; a result in several figures is embedded
    once.
    """
    (_, noop), (_, other), (_, map_plus), _ = runs
    papers = [
        ({"figure": "Fig. 10", "workload": "FB", "scheduler": "MAP+"}, map_plus),
        ({"figure": "Fig. 10", "workload": "FB", "scheduler": "NoOp"}, noop),
        ({"figure": "Fig. 14", "deadline": "10ms"}, map_plus),
        ({"figure": "Fig. 14", "deadline": "20ms"}, other),
    ]
    data = payload(papers)
    assert [study["name"] for study in data["studies"]] == ["Fig. 10", "Fig. 14"]
    assert [run["result"] for study in data["studies"] for run in study["runs"]] == [0, 1, 0, 2]
    first, second = data["studies"]
    assert (first["colour"], second["colour"]) == ("scheduler", "deadline")
    names = [part["name"] for part in ftlab.components()["host.scheduler"]]
    scheduler = next(d for d in first["dimensions"] if d["name"] == "scheduler")
    assert scheduler["places"] == {"MAP+": names.index("map+"), "NoOp": names.index("noop")}
    # Without figures, runs whose labels have the same names are a study.
    ragged = payload([({"a": "x"}, noop), ({"b": "y"}, noop)])["studies"]
    assert [study["name"] for study in ragged] == ["by a", "by b"]


@given(st.dictionaries(st.integers(0, 2**40), st.integers(1, 10**6)), st.sampled_from([8, 16, 32]))
def test_coarser_bins_keep_every_request(bins: dict[int, int], per_octave: int) -> None:
    given_bins = sorted([lower, count] for lower, count in bins.items())
    joined = coarser(given_bins, per_octave)
    assert sum(count for _, count in joined) == sum(bins.values())
    lowers = [lower for lower, _ in joined]
    assert lowers == sorted(set(lowers))
    for lower, count in joined:
        width = max(1, (1 << lower.bit_length() >> 1) // per_octave)
        assert count == sum(n for value, n in given_bins if lower <= value < lower + width)


@given(st.integers(1, 5), st.integers(1, 40), st.integers(1, 3), st.integers(1, 64), st.randoms())
def test_fewer_cells_keep_the_mean(rows: int, blocks: int, per_cell: int, most: int, random: Any) -> None:
    erases = [[random.randrange(100) for _ in range(blocks)] for _ in range(rows)]

    def cells(row: list[int], of: Any) -> list[Any]:
        return [of(row[at : at + per_cell]) for at in range(0, blocks, per_cell)]

    given_map = {
        "unit": "chip",
        "blocks_per_unit": blocks,
        "blocks_per_cell": per_cell,
        "mean": [cells(row, lambda cell: sum(cell) / len(cell)) for row in erases],
        "max": [cells(row, max) for row in erases],
    }
    few = fewer_cells(given_map, most)
    step = few["blocks_per_cell"]
    assert sum(map(len, few["max"])) <= max(most, rows) + rows
    for row, highest, number in zip(erases, few["max"], range(rows), strict=True):
        spans = [row[at : at + step] for at in range(0, blocks, step)]
        assert highest == [max(span) for span in spans]
        if step > 1:
            mean = [sum(span) / len(span) for span in spans]
            assert few["mean"][number] == pytest.approx(mean, abs=0.006)


def test_html_of_the_command_line(cli: Cli) -> None:
    sets = [f"--set={key}={value}" for key, value in WORKLOAD.items()]
    cli.ok(
        "compare",
        "map-plus",
        *sets,
        "--vary",
        "host.scheduler=noop,map+",
        "--html",
        "a b.html",
        "--json",
        "a.json",
    )
    text = (cli.directory / "a b.html").read_text(encoding="utf-8")
    assert "--vary host.scheduler=noop,map+ --html &#39;a b.html&#39;" in text
    first = data_of(text)["results"][0]
    assert first["latency"]["read"]["bins"] and first["series"] and first["erase_map"] and first["miss_curve"]
    # The JSON file of the same command holds the same parts.
    variants = json.loads((cli.directory / "a.json").read_text())["variants"]
    assert variants[0]["result"]["latency"]["all"]["mean_ns"] == first["latency"]["all"]["mean_ns"]
    assert "histogram" in variants[0]["result"]["latency"]["all"]
    cli.ok("run", "map-plus", *sets, "--html", "run.html")
    assert len(data_of((cli.directory / "run.html").read_text(encoding="utf-8"))["results"]) == 1


def test_html_that_cannot_be_written(cli: Cli) -> None:
    sets = ["--set", "workload.synthetic.requests=10"]
    for command in (["run", "map-plus"], ["compare", "map-plus", "--vary", "seed=1,2"]):
        done = cli(*command, *sets, "--html", "a.csv/x.html")
        assert done.returncode == 2 and "a.csv is not a directory" in done.stderr
        done = cli(*command, *sets, "--html", "x", "--json", "x")
        assert done.returncode == 2 and "names the same file" in done.stderr
        assert not (cli.directory / "x").exists()
