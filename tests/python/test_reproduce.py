"""``ftlab reproduce``: its declarations, runs by hash, verdicts, pictures and page."""

from __future__ import annotations

import csv
import gzip
import html
import os
import re
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import ftlab
from front import Cli, wait_until_busy
from ftlab import palette
from ftlab._core import UserError
from ftlab.configs import Override
from ftlab.progress import Reporter
from ftlab.reproduce import claims, command, papers
from ftlab.studies import cells, declaration
from ftlab.studies.plan import Planner
from ftlab.units import significant

ROOT = Path(__file__).resolve().parents[2]

PAPER = """
title = "A paper"
short = "Tiny"
citation = "A. Author, 2026."
required = ["fig1", "table1"]
figures = ["fig1", "table1", "fig1-recorded"]
[words]
"MAP+" = "the one <that> gains"
"""

FIGURE = """
title = "Latency of two schedulers"
place = "Fig. 1, section 2"
config = "map-plus"
[set]
"workload.synthetic.requests" = 4000
"workload.synthetic.interarrival" = "200us"
"workload.synthetic.region" = "64MiB"
[quick]
"workload.synthetic.requests" = 1000
[axis.workload.sets]
reads = { "workload.synthetic.read_share" = "90%" }
writes = { "workload.synthetic.read_share" = "10%" }
[axis.scheduler]
key = "host.scheduler"
labels = ["NOOP", "MAP+"]
values = ["noop", "map+"]
[value.mean]
is = "latency.all.mean_ns / 1000"
unit = "us"
[[panel]]
mark = "bars"
value = "mean"
x = "workload"
series = "scheduler"
normalise = { scheduler = "NOOP" }
mean = true
"""

TABLE = """
title = "The workloads"
place = "Table 1"
config = "map-plus"
measure = "workload"
[set]
"workload.synthetic.requests" = 1000
[axis.workload.sets]
reads = { "workload.synthetic.read_share" = "100%" }
[value.writes]
is = "writes"
[[panel]]
mark = "table"
value = "writes"
x = "workload"
"""

RECORDED = """
like = "fig1"
kind = "recorded"
[axis.workload]
traces = ["mine"]
"""

TRACES = '[trace.mine]\nfile = "mine.csv"\n[trace.mine.set]\nworkload = { out_of_range = "compact" }\n'

PUBLISHED = """
not_measured = ["The colour of the box."]
[reason.size]
text = "It is small."
written = "2026-11-22"
[[number]]
figure = "table1"
place = "Table 1"
value = "writes"
at = { workload = "reads" }
published = 7
[[claim]]
id = "gain"
text = "MAP+ is faster"
place = "section 2"
figure = "fig1"
published = -99.5
measure = "mean(change(mean_latency(), 0))"
reason = "because <b>, {table1.writes(workload='reads') as .1f} writes."
written = "2026-11-20"
reasons = ["size"]
[[claim]]
id = "all"
text = "MAP+ is never slower"
place = "section 2"
figure = "fig1"
measure = "every(mean(scheduler='MAP+') <= mean(scheduler='NOOP'))"
"""


@pytest.fixture
def tiny(tmp_path: Path) -> Path:
    """Makes a root with one small paper."""
    folder = tmp_path / "root" / "papers" / "tiny"
    folder.mkdir(parents=True)
    (folder.parent / "traces.toml").write_text(TRACES)
    files = {"paper": PAPER, "fig1": FIGURE, "table1": TABLE, "fig1-recorded": RECORDED}
    for name, text in files.items():
        (folder / f"{name}.toml").write_text(text)
    # Here `mean` is a value of the figure as well as a function of the language; the value takes precedence.
    text = PUBLISHED.replace("mean(change(mean_latency(), 0))", PAIR)
    (folder / "published.toml").write_text(text)
    return tmp_path / "root"


PAIR = "change(mean(scheduler='MAP+', workload='reads'), mean(scheduler='NOOP', workload='reads'))"


def options(root: Path, out: str = "out", **more: Any) -> command.Options:
    base = root.parent
    return command.Options(str(root), str(base / out), cache=str(base / "cache"), **more)


def run(root: Path, *figures: str, out: str = "out", **more: Any) -> command.Outcome:
    with Reporter(quiet=True) as reporter:
        return command.reproduce("tiny", figures, options(root, out, **more), reporter)


def files(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def rows(path: Path) -> list[dict[str, str]]:
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def test_a_figure_end_to_end(tiny: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("FTLAB_TRACES", raising=False)
    outcome = run(tiny)
    out = tiny.parent / "out"
    assert (outcome.run, outcome.reused) == (5, 0)
    made = files(out)
    assert made["tiny/fig1.svg"].startswith(b"<svg")
    assert made["tiny/fig1.png"].startswith(b"\x89PNG")
    measured = {(row["workload"], row["scheduler"]): row for row in rows(out / "tiny" / "fig1.csv")}
    assert len(measured) == 6  # four runs, and a mean for each of the two schedulers
    noop, other = (float(measured["reads", each]["measured"]) for each in ("NOOP", "MAP+"))
    assert float(measured["reads", "MAP+"]["normalised"]) == pytest.approx(other / noop, rel=1e-9)
    assert measured["mean", "NOOP"]["normalised"] == "1"
    # What the paper prints is next to what was measured, and nothing else has a published value.
    (table,) = rows(out / "tiny" / "table1.csv")
    assert (table["measured"], table["published"], table["place"]) == ("0", "7", "Table 1")
    assert all(row["published"] == "" for row in measured.values())
    page = made["index.html"].decode()
    for name in ("tiny-fig1", "tiny-table1", "tiny-fig1-recorded"):
        assert f'id="{name}"' in page
    assert "mine" in page and "not here" in page
    assert "because &lt;b&gt;, 0.0 writes. It is small. <small>(2026-11-22)" in page
    assert "The colour of the box." in page
    # Each file has a link; abbreviations are explained; verdicts are in full words.
    for name in ("fig1.csv", "fig1.svg", "fig1.png", "table1.csv"):
        assert f'<a href="tiny/{name}">{name}</a>' in page
    assert "<dt>MAP+</dt><dd>the one &lt;that&gt; gains</dd>" in page
    assert 'data-of="published">holds</td>' in page
    assert re.search(r'data-of="measured">(holds|does not hold|\d+ of \d+)</td>', page)


def test_seeds_are_replications(tiny: Path) -> None:
    """Pictures and tables show means over the seeds; the CSV and claims have each seed."""
    path = tiny / "papers" / "tiny" / "fig1.toml"
    table = '[[panel]]\nmark = "table"\nvalue = "mean"\nx = "workload"\nseries = "scheduler"\n'
    seeds = '[axis.seed]\nkey = "seed"\nlabels = ["1", "2"]\n[value.mean]'
    path.write_text(path.read_text().replace("[value.mean]", seeds) + table)
    published = tiny / "papers" / "tiny" / "published.toml"
    of_one = PAIR.replace("workload='reads'", "workload='reads', seed='1'")
    published.write_text(published.read_text().replace(PAIR, of_one))
    (part,) = run(tiny, "fig1").parts
    study = part.studies["fig1"]
    assert len(study.rows) == 8
    means = cells.over_seeds(study)
    assert means.axes == ("workload", "scheduler")
    assert cells.over_seeds(means) is means
    first, second = (
        study.series("mean", {"workload": "reads", "scheduler": "NOOP", "seed": s}) for s in "12"
    )
    assert first != second
    mean = means.series("mean", {"workload": "reads", "scheduler": "NOOP"})
    assert mean == pytest.approx((first + second) / 2)
    page = (tiny.parent / "out" / "index.html").read_text()
    assert f'<td>reads</td><td class="n">{significant(mean)}</td>' in page
    assert '"seed"' not in part.pictures["fig1"] and "<th>seed</th>" not in page
    found = rows(tiny.parent / "out" / "tiny" / "fig1.csv")
    assert {row["seed"] for row in found} == {"1", "2"}
    # A seed that a panel names is not a replication.
    path.write_text(path.read_text().replace('series = "scheduler"\n', 'series = "seed"\n', 1))
    (part,) = run(tiny, "fig1").parts
    assert len(cells.over_seeds(part.studies["fig1"]).rows) == 8


def test_a_policy_has_its_colour_in_every_figure_and_on_the_page(tiny: Path) -> None:
    """Regression: MAP and MAP+ swapped colours between two figures of a page."""
    folder = tiny / "papers" / "tiny"
    more = FIGURE.replace('["NOOP", "MAP+"]', '["HP", "MAP", "MAP+"]').replace(
        '["noop", "map+"]', '["hp", "map", "map+"]'
    )
    (folder / "fig2.toml").write_text(more.replace('scheduler = "NOOP"', 'scheduler = "HP"'))
    (folder / "paper.toml").write_text(PAPER.replace('"table1", "fig1-rec', '"table1", "fig2", "fig1-rec'))
    outcome = run(tiny, "fig1", "fig2")
    registered = [part["name"] for part in ftlab.components()["host.scheduler"]]
    wanted = [palette.colour(registered.index(name)) for name in ("hp", "map", "map+")]
    for figure, names in (("fig1", ["noop", "map+"]), ("fig2", ["hp", "map", "map+"])):
        picture = (tiny.parent / "out" / "tiny" / f"{figure}.svg").read_text()
        for name in names:
            assert palette.colour(registered.index(name)) in picture, (figure, name)
        assert ("#d55e00" in picture) == ("map" in names)
    page = outcome.index.read_text()
    for colour in wanted:
        assert f'fill="var(--c{palette.COLOURS["light"].index(colour)})"' in page


def test_a_legend_shows_the_markers_of_its_lines(tiny: Path) -> None:
    """Regression: legends of lines showed squares."""
    path = tiny / "papers" / "tiny" / "fig1.toml"
    path.write_text(path.read_text().replace('mark = "bars"', 'mark = "lines"'))
    run(tiny, "fig1")
    picture = (tiny.parent / "out" / "tiny" / "fig1.svg").read_text()
    drawn = re.findall(r'role-legend-symbol"[^>]*><path transform="[^"]*" d="([^"]*)"', picture)
    assert len(drawn) == len(set(drawn)) == 2, drawn


def test_places_of_policies() -> None:
    registered = [part["name"] for part in ftlab.components()["ftl.kind"]]
    places = palette.places("ftl", ["Base-DFTL", "minipage-FTL", "MSFTL-2KiB", "MSFTL-1KiB"])
    assert places["Base-DFTL"] == registered.index("dftl") and places["minipage-FTL"] == registered.index(
        "minipage"
    )
    # If two labels name the same policy, the second label gets a place of its own.
    assert places["MSFTL-2KiB"] == registered.index("msftl") and places["MSFTL-1KiB"] == len(registered)
    assert palette.places("host.deadline", ["0ms", "10ms"]) == {"0ms": 0, "10ms": 1}
    assert palette.places("host.scheduler", ["mine", "noop"])["noop"] == 0


def test_abbreviations_are_those_of_the_figures() -> None:
    """Every short name of a workload that a figure shows is explained, and no other name is."""
    for name in papers.names(ROOT):
        paper = papers.load_paper(ROOT, name)
        labels: set[str] = set()
        titles = {value.title for figure in paper.figures for value in figure.values}
        for figure in paper.figures:
            labels |= {label for axis in figure.axes for label in axis.labels}
            for axis in figure.axes:
                if axis.name == "workload" and figure.kind != declaration.RECORDED:
                    short = [label for label in axis.labels if len(label) <= 3]
                    assert [label for label in short if label not in paper.words] == [], figure.id
        for words in paper.words:
            for word in words.split(", "):
                assert word in labels | titles, (name, word)


def test_the_same_bytes_again_from_the_cache_and_anew(tiny: Path) -> None:
    run(tiny)
    again = run(tiny, out="again")
    assert (again.run, again.reused) == (0, 5)
    fresh = run(tiny, out="fresh", fresh=True)
    assert (fresh.run, fresh.reused) == (5, 0)
    first = files(tiny.parent / "out")
    assert first == files(tiny.parent / "again") == files(tiny.parent / "fresh")


def test_a_changed_policy_changes_only_its_own_bars(tiny: Path) -> None:
    run(tiny, "fig1")
    path = tiny / "papers" / "tiny" / "fig1.toml"
    path.write_text(path.read_text().replace('values = ["noop", "map+"]', 'values = ["noop", "hp"]'))
    outcome = run(tiny, "fig1", out="changed")
    assert (outcome.run, outcome.reused) == (2, 2)
    before, after = (rows(tiny.parent / out / "tiny" / "fig1.csv") for out in ("out", "changed"))
    kept = [row for row in before if row["scheduler"] == "NOOP"]
    assert kept == [row for row in after if row["scheduler"] == "NOOP"]
    assert before != after


def test_quick_is_shorter_and_says_so(tiny: Path) -> None:
    outcome = run(tiny, "fig1", quick=True)
    requests = {
        figure.figure.id: [each.config.json() for each in figure.runs]
        for part in outcome.parts
        for figure in part.studies.values()
    }
    assert all('"requests":1000' in text.replace(" ", "") for text in requests["fig1"])
    assert "quick run" in outcome.index.read_text()


def test_a_long_figure_is_in_a_quick_run_only_where_it_is_named(tiny: Path) -> None:
    declared = tiny / "papers" / "tiny" / "table1.toml"
    declared.write_text("long = true\n" + declared.read_text())

    def made(*figures: str, quick: bool) -> set[str]:
        return set(run(tiny, *figures, quick=quick).parts[0].studies)

    assert "table1" in made(quick=False)
    assert made(quick=True) == {"fig1", "fig1-recorded"}
    assert made("table1", quick=True) == {"table1"}


def test_runs_of_a_figure_can_be_looked_into(tiny: Path) -> None:
    path = tiny / "papers" / "tiny" / "fig1.toml"
    path.write_text("report = true\n" + path.read_text())
    outcome = run(tiny, "fig1", quick=True)
    page = outcome.index.read_text()
    # The charts are below the claims and figures, their data has the axes as labels, and nothing is fetched.
    assert page.index('id="tiny-fig1"') < page.index('id="overview"')
    assert "Tiny, Fig. 1" in page
    assert '"host.scheduler":"MAP+"' in page
    assert "ftlab reproduce tiny fig1 --quick" in page
    assert "Content-Security-Policy" in page
    assert outcome.index.read_bytes() == run(tiny, "fig1", out="again", quick=True).index.read_bytes()


def test_a_key_of_the_user_holds_in_every_run_and_the_page_says_so(tiny: Path) -> None:
    plain = run(tiny, "fig1", out="plain")
    set_ = (Override("--set x", "workload.synthetic.requests", "500"),)
    changed = run(tiny, "fig1", out="changed", settings=set_, quick=True)
    assert (changed.run, changed.reused) == (4, 0), "the keys of --quick do not come back"
    text = changed.index.read_text()
    assert "workload.synthetic.requests = 500" in text and "Changed in every run" in text
    assert "Changed in every run" not in plain.index.read_text()
    assert "4 runs." in text and "4 runs: 4 now, 0 from the cache" in command.summary(changed)
    measured = [rows(tiny.parent / out / "tiny" / "fig1.csv") for out in ("plain", "changed")]
    assert measured[0] != measured[1]
    again = run(tiny, "fig1", out="plain")
    assert (again.run, again.reused) == (0, 4)


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("host.scheduler", "noop", "--set x: tiny fig1 varies host.scheduler"),
        ("host.scheduling", "noop", "--set x: unknown key host.scheduling"),
        ("host.deadline", "20", "--set x: "),
    ],
)
def test_a_wrong_key_of_the_user_is_not_blamed_on_the_figure(
    tiny: Path, key: str, value: str, message: str
) -> None:
    with pytest.raises(UserError, match=re.escape(message)) as error:
        run(tiny, "fig1", settings=(Override("--set x", key, value),))
    assert "fig1.toml" not in str(error.value)


def test_keys_that_runs_ignore_are_named(tiny: Path) -> None:
    set_ = (Override("--set x", "host.deadline", "20ms"),)
    (note,) = run(tiny, "fig1", settings=set_, quick=True).notes
    assert note.startswith("host.deadline: ignored by 2 of 4 variants: tiny fig1 reads NOOP")


def test_keys_of_a_paper_hold_for_its_figures_which_come_first(tiny: Path) -> None:
    path = tiny / "papers" / "tiny" / "paper.toml"
    path.write_text(PAPER + '[set]\n"seed" = 7\n"workload.synthetic.requests" = 5\n')
    figures = {figure.id: figure for figure in papers.load_paper(tiny, "tiny").figures}
    assert figures["fig1"].set["seed"] == "7"
    assert figures["fig1"].set["workload.synthetic.requests"] == "4000"


def test_figures_with_the_same_runs_share_them(tiny: Path) -> None:
    """Runs for a report hold more fields, and also serve figures without a report."""
    folder = tiny / "papers" / "tiny"
    (folder / "fig2.toml").write_text("report = true\n" + FIGURE.replace("Fig. 1", "Fig. 2"))
    (folder / "paper.toml").write_text(
        PAPER.replace('"fig1", "table1", "fig1', '"fig1", "fig2", "table1", "fig1')
    )
    assert run(tiny, "fig1", "fig2", quick=True).run == 4
    one, two = (rows(tiny.parent / "out" / "tiny" / f"{name}.csv") for name in ("fig1", "fig2"))
    assert one == two


def test_a_recorded_trace_is_run_where_it_is(tiny: Path, tmp_path: Path) -> None:
    (tmp_path / "rec").mkdir()
    trace = tmp_path / "rec" / "mine.csv"
    trace.write_text("time_ns,op,offset,size\n0,W,0,4096\n500000,R,0,4096\n")
    run(tiny, "fig1", traces=str(tmp_path / "rec"))
    recorded = rows(tiny.parent / "out" / "tiny" / "fig1-recorded.csv")
    assert {row["workload"] for row in recorded} == {"mine", "mean"}
    # A trace with different content needs a new run; the same content at another path does not.
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "mine.csv").write_bytes(trace.read_bytes())
    assert run(tiny, "fig1", traces=str(elsewhere)).run == 0


def test_traces_on_end_are_each_read_by_their_own_keys(tiny: Path, tmp_path: Path) -> None:
    # Regression: the key that drops repeated requests of the first trace dropped those of all traces, and
    # repeating a sequence repeated each of its traces as well.
    folder = tiny / "papers"
    (folder / "traces.toml").write_text(
        '[trace.logged-twice]\nfile = "one.csv"\nset = { workload = { dedup = "50ms" } }\n'
        '[trace.plain]\nfile = "two.csv"\n'
    )
    recorded = 'like = "fig1"\nkind = "recorded"\nset = { workload = { repeat = 2 } }\n'
    recorded += '[axis.workload]\nsequences = { both = ["logged-twice", "plain"] }\n'
    recorded += '[value.mean]\nis = "trace.requests"\n'
    (folder / "tiny" / "fig1-recorded.toml").write_text(recorded)
    twice = "time_ns,op,offset,size\n" + "0,W,4096,4096\n" * 2
    for name in ("one", "two"):
        (tmp_path / f"{name}.csv").write_text(twice)
    run(tiny, "fig1-recorded", traces=str(tmp_path))
    found = rows(tiny.parent / "out" / "tiny" / "fig1-recorded.csv")
    assert {row["measured"] for row in found if row["measured"]} == {"6"}


def test_the_key_knows_content_configuration_and_measure(tiny: Path) -> None:
    paper = papers.load_paper(tiny, "tiny")
    planner = Planner(tiny, {}, None, quick=False)
    keys = {each.key for figure in paper.figures[:2] for each in planner.runs(figure)}
    assert len(keys) == 5
    quick = Planner(tiny, {}, None, quick=True)
    assert keys.isdisjoint(each.key for each in quick.runs(paper.figures[0]))


@pytest.mark.parametrize("report", [False, True])
def test_names_and_ids_are_text_on_the_page(tiny: Path, report: bool) -> None:
    """Regression: names of figures and papers and ids of claims were in the page unescaped."""
    hostile = "x\"><script>alert(1)</script><i id='"
    folder = tiny / "papers" / "tiny"
    # A file's name cannot contain a slash.
    name = hostile.replace("/", "")
    text = (folder / "published.toml").read_text()
    (folder / "published.toml").write_text(text.replace('id = "gain"', f"id = '''{hostile}'''"))
    (folder / f"{name}.toml").write_text(("report = true\n" if report else "") + FIGURE)
    listed = f"'''{name}'''"
    (folder / "paper.toml").write_text(
        PAPER.replace('"fig1", "table1", "f', f'{listed}, "fig1", "table1", "f')
    )
    folder.rename(folder.with_name(f"tiny{name}"))
    chosen = options(tiny, quick=True)
    with Reporter(quiet=True) as reporter:
        page = command.reproduce(f"tiny{name}", (), chosen, reporter).index.read_text()
    body = re.sub(r"<script.*?</script>|<svg.*?</svg>", "", page, flags=re.S) if report else page
    assert "alert(1)&lt;/script&gt;" in body and html.escape(name) in body
    assert "<script>alert" not in page and "<i id" not in body
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', page)
    assert policy and policy[1].startswith("default-src 'none'; script-src '")
    assert "unsafe-eval" not in policy[1] and "script-src 'unsafe-inline'" not in policy[1]


def damaged(text: bytes) -> dict[str, bytes]:
    """Returns damaged contents of a cached file, by the kind of damage."""
    packed = gzip.compress(text)
    flipped = bytearray(packed)
    flipped[len(packed) // 2] ^= 0x10
    return {
        "cut": packed[:40],
        # Regression: zlib.error, which is not an OSError, was reported as a bug in ftlab.
        "bad block": packed[:10] + b"\xff" * 40,
        "flipped": bytes(flipped),
        "no gzip": b"nothing of the kind",
        "empty": b"",
        # These contents were mistaken for results, and the figure was blamed.
        "empty object": gzip.compress(b"{}"),
        "list": gzip.compress(b"[]"),
        "other JSON": gzip.compress(text.replace(b"1", b"2")),
        "nested": gzip.compress(b"[" * 100_000),
        "text": gzip.compress(b"\xff\xfe"),
    }


def test_a_broken_file_of_the_cache_is_run_again(tiny: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Regression: every kind of damage except the first caused an error; see `damaged`."""
    run(tiny, "table1")
    path = next((tiny.parent / "cache").rglob("*.json.gz"))
    for name, data in damaged(gzip.decompress(path.read_bytes())).items():
        path.write_bytes(data)
        with Reporter() as reporter:
            again = command.reproduce("tiny", ["table1"], options(tiny), reporter)
        assert again.run == 1, name
        said = capsys.readouterr().err
        assert said.startswith(f"note: {path}: not used, and run again: "), (name, said)
        assert run(tiny, "table1").reused == 1, name


@pytest.mark.parametrize("name", ["none", "file/below"])
def test_a_cache_that_takes_nothing_is_no_error(
    tiny: Path, capsys: pytest.CaptureFixture[str], name: str
) -> None:
    """Regression: a read-only directory ended the run, although `Cache.put` says otherwise."""
    (tiny.parent / "file").write_text("")
    # Root can write even to read-only directories, but nobody can write in /proc.
    chosen = replace(options(tiny), cache="/proc/ftlab" if name == "none" else str(tiny.parent / name))
    with Reporter() as reporter:
        assert command.reproduce("tiny", ["table1"], chosen, reporter).run == 1
    assert "note: results are not kept: " in capsys.readouterr().err
    assert (tiny.parent / "out" / "index.html").is_file()


def test_a_reason_knows_no_figures_of_a_study_that_was_not_run(tiny: Path) -> None:
    (part,) = run(tiny, "fig1").parts
    # The sentence with the figure is left out as a whole.
    assert part.judged[0].reason == f"It is small. {claims.LEFT_OUT}"
    assert part.judged[0].reason_written == "2026-11-22"


@pytest.mark.parametrize(
    ("text", "name"),
    [("Fig. 9", "fig9"), ("9", "fig9"), ("FIG9", "fig9"), ("Table III", "table3"), ("table1", "table1")],
)
def test_names_of_figures(text: str, name: str) -> None:
    assert papers.normal(text) == name


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["vois"], "did you mean vios"),
        (["vios", "fig99"], "no figure or table 'fig99'"),
        (["all", "fig99"], "no figure or table"),
        (["vios", "--traces", "nowhere"], "no such directory"),
        (["vios", "--root", "nowhere"], "no papers/"),
        (["vios", "--out", "a.csv"], "--out a.csv"),
        (["vios", "--jobs", "0"], "--jobs"),
        ([], "PAPER"),
    ],
)
def test_errors_of_the_user(cli: Cli, arguments: list[str], message: str) -> None:
    done = cli("reproduce", *arguments)
    assert done.returncode == 2
    assert message in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("name", "old", "new", "message"),
    [
        ("fig1", "[set]", "colour = 1\n[set]", "colour: unknown key"),
        ("fig1", 'mark = "bars"', 'mark = "pie"', "'pie'"),
        ("fig1", "host.scheduler", "host.schedule", "host.scheduler"),
        ("fig1", "latency.all", "latncy.all", "no value 'latncy'"),
        ("fig1", 'value = "mean"', 'value = "median"', "no value 'median'"),
        ("paper", '"table1", "fig1-recorded"', '"fig1-recorded"', "table1"),
        ("published", 'figure = "table1"', 'figure = "table9"', "no figure 'table9'"),
        ("published", 'written = "2026-11-20"', "", "written: is missing"),
        ("published", 'reasons = ["size"]', 'reasons = ["sizes"]', "no reason 'sizes'"),
        ("published", "{table1.writes", "{table9.writes", "its reason knows no 'table9'"),
        ("published", 'reasons = ["size"]', 'construction = "luck"', "'luck'"),
        ("published", "every(", "evry(", "no value 'evry'"),
        # Regression: each of these was a bug in ftlab.
        ("fig1", 'labels = ["NOOP", "MAP+"]', 'labels = ["NOOP", ["MAP+"]]', "axis.scheduler.labels"),
        ("fig1", 'values = ["noop", "map+"]', "values = [{}, 1]", "axis.scheduler.values"),
        ("fig1", '"workload.synthetic.requests" = 4000', "a = [1]", "set.a: a list"),
        ("fig1", 'normalise = { scheduler = "NOOP" }', "normalise = { scheduler = 1 }", "normalise"),
        ("fig1", 'normalise = { scheduler = "NOOP" }', 'normalise = { colour = "x" }', "no axis 'colour'"),
        ("fig1", 'x = "workload"', 'x = "weather"', "no axis or value 'weather'"),
        ("fig1", "mean = true", "y_range = [1]", "y_range"),
        ("fig1", "mean = true", 'y_range = ["a", "b"]', "y_range"),
        ("fig1", "[set]", 'what = "wishes"\n[set]', "'wishes'"),
        ("fig1", "[set]", 'what = "points"\n[set]', "points"),
        ("fig1", "[set]", 'measure = "guess"\n[set]', "'guess'"),
        ("fig1", 'unit = "us"', 'unit = "us"\n[axis]\nx = 1', "axis"),
        ("fig1-recorded", "[axis.workload]\n", "axis = 1\n[x]\n", "axis"),
        ("published", 'at = { workload = "reads" }', 'at = { workload = ["reads"] }', "at.workload"),
        (
            "published",
            "published = 7",
            'axis = "workload"\nvalues = ["writes"]\nrows = { a = [1, 2] }',
            "rows.a",
        ),
        ("published", "published = 7", "published = 1e999", "a number beyond"),
        ("published", PAIR, "mean()", "came out as Series"),
        ("paper", 'title = "A paper"', "title = " + "[" * 100_000, "not valid TOML"),
    ],
)
def test_a_wrong_declaration_is_named(tiny: Path, name: str, old: str, new: str, message: str) -> None:
    path = tiny / "papers" / "tiny" / f"{name}.toml"
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))
    with pytest.raises(UserError, match=re.escape(message)) as error:
        run(tiny, quick=True)
    assert ".toml" in str(error.value)


@pytest.mark.parametrize(
    ("content", "message"),
    [(b"a = 1\n# caf\xe9\n", "fig1.toml:2: not UTF-8"), (b"#" * ((1 << 20) + 1), "larger than 1MiB")],
)
def test_a_declaration_that_is_no_text(tiny: Path, content: bytes, message: str) -> None:
    """Regression: such a file caused a traceback, and was read completely."""
    (tiny / "papers" / "tiny" / "fig1.toml").write_bytes(content)
    with pytest.raises(UserError, match=message):
        run(tiny)


def test_table_1_of_map_plus_is_the_papers(tmp_path: Path) -> None:
    chosen = command.Options(str(ROOT), str(tmp_path / "out"), cache=str(tmp_path / "cache"), quick=True)
    with Reporter(quiet=True) as reporter:
        outcome = command.reproduce("map-plus", ["table1", "table2"], chosen, reporter)
    for each in ("table1", "table2"):
        beside = [row for row in rows(tmp_path / "out" / "map-plus" / f"{each}.csv") if row["published"]]
        assert len(beside) == {"table1": 36, "table2": 30}[each]
        assert all(float(row["published"]) == float(row["measured"]) for row in beside)
    assert {each.verdict for part in outcome.parts for each in part.judged} == {claims.CONSTRUCTED}


def test_claims_of_figures_that_were_not_asked_for_are_left_out(tiny: Path) -> None:
    outcome = run(tiny, "table1")
    (part,) = outcome.parts
    assert list(part.studies) == ["table1"]
    assert not part.judged
    assert "Not asked for: fig1, fig1-recorded" in outcome.index.read_text()


def test_an_interrupt_leaves_the_cache_usable(tiny: Path) -> None:
    path = tiny / "papers" / "tiny" / "fig1.toml"
    key = '"workload.synthetic.requests" = 4000'
    path.write_text(path.read_text().replace(key, f"{key}0000"))
    call = [sys.executable, "-m", "ftlab", "reproduce", "tiny", "--root", str(tiny), "--jobs", "1"]
    call += ["--out", str(tiny.parent / "out"), "--cache", str(tiny.parent / "cache")]
    process = subprocess.Popen(
        call, stderr=subprocess.PIPE, text=True, env={**os.environ, "PYTHONUNBUFFERED": "1"}
    )
    wait_until_busy(process, cpu_s=2.0)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "Traceback" not in err
    assert not list((tiny.parent / "cache").rglob("*.tmp"))
    path.write_text(FIGURE)
    assert run(tiny).run >= 4


def test_an_estimate_of_the_time_left() -> None:
    class Lines:
        def __init__(self) -> None:
            self.text = ""

        def write(self, text: str) -> None:
            self.text += text

        def flush(self) -> None:
            pass

        def isatty(self) -> bool:
            return False

    stream = Lines()
    reporter = Reporter(stream=stream, every_s=0.0)  # type: ignore[arg-type]
    reporter.expect({"a": 1.0, "b": 3.0})
    reporter.callback("a")(10)
    assert "left" not in stream.text
    reporter.finish("a")
    assert re.search(r"1 of 2 done, .* about \d+ s left", stream.text)
    reporter.finish("b")
    assert stream.text.splitlines()[-1].endswith("about 0 s left")


def test_points_over_time_and_percentiles() -> None:
    first = {"from_ns": 0, "width_ns": 10, "count": [1, 2], "mean": [3.0, 4.0], "max": [5, 6]}
    second = {"from_ns": 0, "width_ns": 10, "count": [], "mean": [], "max": []}
    points = cells._points([first, second])
    assert [point["time_ns"] for point in points] == [5, 15]
    assert [point["mean"] + point["mean_2"] for point in points] == [3, 4]
