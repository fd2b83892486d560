"""Checks the pages of docs/: links, commands, outputs, code, and the formulas of a result's fields."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import click
import numpy as np
import pytest

import ftlab
from ftlab.cli import cli as commands
from pages import DOCS, PAGES, ROOT, TRACE, indented, named
from scripts import script


def anchors(page: Path) -> set[str]:
    """Returns the names of a page's headings, as Markdown readers make them."""
    lines = re.sub(r"^```.*?^```", "", page.read_text(), flags=re.MULTILINE | re.DOTALL)
    titles = re.findall(r"^#+ +(.*)$", lines, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


@pytest.mark.parametrize("page", PAGES, ids=named)
def test_links_lead_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\(([^)\s]+)\)", page.read_text()):
        if "://" in target:
            continue
        path, _, anchor = target.partition("#")
        there = (page.parent / path).resolve() if path else page
        assert there.exists(), target
        assert not anchor or anchor in anchors(there), target


@pytest.mark.parametrize("page", PAGES, ids=named)
def test_no_page_names_a_machine(page: Path) -> None:
    found = re.findall(r"(?<![\w.])/(?:home|root|work|Users|tmp)/[\w./-]*", page.read_text())
    assert found == []


@pytest.mark.parametrize("page", PAGES, ids=named)
def test_every_command_of_the_pages_is_one(page: Path) -> None:
    """Commands, options and keys exist; quick commands are also run (below)."""
    known = set(keys())
    for words in indented(page.read_text()):
        context = click.Context(commands)
        command: click.Command | None = commands
        rest = words[1:]
        while isinstance(command, click.Group):
            name, rest = rest[0], rest[1:]
            command = command.get_command(context, name)
        assert command is not None, words
        parsed = command.make_context("ftlab", list(rest)).params
        texts = [*parsed.get("settings", ()), *parsed.get("vary", ())]
        for text in texts:
            # "Getting started" shows what a misspelt key leads to.
            assert text.partition("=")[0] in known | {"host.schedular"}, words


@pytest.mark.parametrize("page", PAGES, ids=named)
def test_options_that_the_prose_names_exist(page: Path) -> None:
    """Of commands within sentences, such as `ftlab run --set`; metavariables stand in for the rest."""
    prose = re.sub(r"```.*?```", "", page.read_text(), flags=re.DOTALL)
    for text in re.findall(r"`ftlab ([^`]+)`", prose):
        words = text.partition(" -- ")[0].split()
        command: click.Command = commands
        while isinstance(command, click.Group) and words:
            inner = command.get_command(click.Context(command), words[0])
            if inner is None:
                break
            command, words = inner, words[1:]
        known = {"--help", "--version"} | {option for each in command.params for option in each.opts}
        named_here = {word.partition("=")[0] for word in words if word.startswith("--")}
        assert named_here <= known, text


def keys() -> Iterator[str]:
    for table, body in ftlab.schema()["properties"].items():
        yield table
        for key, inner in body.get("properties", {}).items():
            yield f"{table}.{key}"
            for leaf in inner.get("properties", ()):
                yield f"{table}.{key}.{leaf}"


def test_there_are_commands_to_look_at() -> None:
    assert sum(len(indented(page.read_text())) for page in PAGES) > 60


@pytest.mark.parametrize("name", ["map-plus", "vios", "coop", "msftl", "time", "write"])
def test_pictures_are_drawn_and_shown(name: str, tmp_path: Path) -> None:
    """`make picture` writes the pictures: none is empty, and one page shows each."""
    explained = script("explained")
    assert set(explained.PICTURES) == {"map-plus", "vios", "coop", "msftl", "time", "write"}
    svg = explained.svg(explained.PICTURES[name](tmp_path))
    written = (DOCS / "images" / f"how-{name}.svg").read_text()
    # Only the number of marks is compared: other versions of the library may place them a little differently.
    assert 20 < svg.count("<path") == written.count("<path")
    assert [page.name for page in PAGES if f"](images/how-{name}.svg)" in page.read_text()] != []


# The formulas of fields are checked with a run's requests.


@pytest.fixture(scope="module")
def collected() -> ftlab.Result:
    """Returns the result of a run with garbage collection, trims, flushes and pages smaller than the NAND
    page.
    """
    keys = {
        "workload.synthetic.requests": 6000,
        "workload.synthetic.read_share": "30%",
        "workload.synthetic.trim_share": "2%",
        "workload.synthetic.write_sizes": "4KiB/60:20KiB/40",
        "workload.synthetic.interarrival": "2ms",
        "device.precondition": "fill",
        "flash.blocks_per_plane": 96,
        "flash.page": "8KiB",
        "ftl.logical_page": "4KiB",
    }
    return ftlab.run("map-plus", set=keys)


def test_formulas_of_times(collected: ftlab.Result) -> None:
    arrival, dispatch, complete = (
        collected.column(f"{name}_ns").astype(np.int64) for name in ("arrival", "dispatch", "complete")
    )
    op, size = collected.column("op"), collected.column("size")
    times = {"latency": complete - arrival, "wait": dispatch - arrival, "access": complete - dispatch}
    for part, time in times.items():
        for name, letters in (("read", "R"), ("write", "W"), ("all", "RW")):
            chosen, found = time[np.isin(op, list(letters))], collected[part][name]
            assert found.count == len(chosen)
            assert (found.min_ns, found.max_ns) == (chosen.min(), chosen.max())
            assert found.mean_ns == pytest.approx(chosen.mean())
            assert found.stddev_ns == pytest.approx(chosen.std())
            for point, value in found.percentile_ns.items():
                rank = -(-len(chosen) * round(float(point) * 10_000) // 1_000_000)
                exact = np.sort(chosen)[rank - 1]
                assert abs(value - exact) * 128 <= exact, (part, name, point)
    assert collected.elapsed_ns == complete.max() - arrival.min()
    moved = int(size[(op == "R") | (op == "W")].sum())
    assert collected.throughput_bytes_per_s == pytest.approx(moved * 1e9 / collected.elapsed_ns)
    assert collected.engine.requests_per_s == pytest.approx(6000 / collected.engine.wall_s, rel=0.01)


def test_formulas_of_counts(collected: ftlab.Result) -> None:
    op = collected.column("op")
    offset, size = (collected.column(name).astype(np.int64) for name in ("offset", "size"))
    trace, mapping, flash, waf = (collected[name] for name in ("trace", "mapping", "flash", "waf"))
    counts = {name: int((op == letter).sum()) for name, letter in zip(OPS, "RWTF", strict=True)}
    assert {name: trace[name] for name in OPS} == counts
    assert trace.requests == sum(counts.values()) == len(op)
    page = 4096
    spans = zip((offset // page).tolist(), (-(-(offset + size) // page)).tolist(), strict=True)
    touched = {lpn for first, end in spans for lpn in range(first, end)}
    assert trace.footprint_bytes == len(touched) * page
    asked = mapping.hits + mapping.misses
    assert mapping.hit_ratio == pytest.approx((mapping.hits - mapping.prefetches) / asked)
    assert mapping.translation_reads == flash.reads["map"]
    assert mapping.translation_programs == flash.programs["map"]
    of_map = flash.programs["map"] + flash.programs["gc-map"] + flash.programs["dir"]
    assert mapping.map_bytes_programmed == of_map * 8192
    written = int((size[op == "W"] // page).sum())
    assert flash.programs["gc"] > 0
    sums = {
        "total": sum(flash.programs.values()),
        "gc": flash.programs["gc"] + flash.programs["wear"],
        "map": of_map,
        "merge": flash.programs["merge"],
        "pad": flash.programs["pad"],
    }
    for name, programs in sums.items():
        assert waf[name] == pytest.approx(programs * 2 / written), name
    conflicts = collected.conflicts
    assert conflicts.ratio == pytest.approx((conflicts.read + conflicts.write) / trace.requests)
    assert collected.scheduler.prioritized == collected.column("prioritized").sum()
    assert collected.scheduler.expired == collected.column("expired").sum()
    assert collected.scheduler.batches == collected.column("batch").max()
    busy = collected.utilization.chip_busy_ns[0]
    assert busy == sum(flash.busy_ns.values())
    assert collected.utilization.chip[0] == pytest.approx(busy / collected.elapsed_ns)
    smart = collected.health.nvme_smart
    assert smart.data_units_read == -(-trace.bytes_read // 512_000)
    assert smart.host_write_commands == trace.writes


OPS = ("reads", "writes", "trims", "flushes")


@pytest.mark.parametrize(("deadline", "first"), [("10ms", 2), ("50ms", 6)])
def test_the_figures_of_map_plus_are_those_of_its_command(deadline: str, first: int) -> None:
    """The page's table has the figures that its command gives. Its columns are the published read and write;
    then, for each deadline, read, write, all and hit ratio.
    """
    table = re.findall(r"^\| ([a-z+]+) \|(.*)\|$", (DOCS / "map-plus.md").read_text(), re.MULTILINE)
    rows = {name: cells.split("|") for name, cells in table if cells.count("|") == 9}
    comparison = ftlab.compare(
        "map-plus",
        {"host.scheduler": list(rows)},
        trace=ROOT / TRACE,
        host__deadline=deadline,
    )
    base = comparison["row"].latency
    assert list(rows) == ["row", "noop", "amphibian", "hp", "rb", "map", "map+"]
    for name, cells in rows.items():
        latency = comparison[name].latency
        shown = [
            f"{100 * (latency[op].mean_ns / base[op].mean_ns - 1):+.1f}" for op in ("read", "write", "all")
        ]
        if name == "row":
            shown = ["", "", ""]
        hits = f"{100 * (comparison[name].mapping.hit_ratio or 0):.1f}"
        assert [cell.strip() for cell in cells[first : first + 4]] == [*shown, hits], name
