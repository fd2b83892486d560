"""The studies of today's devices (``papers/devices``) against what docs/devices.md says about them."""

from __future__ import annotations

import json
import math
import re
from pathlib import Path

import ftlab
from ftlab.configs import Override, load
from ftlab.reproduce import papers
from ftlab.running import run_core
from ftlab.studies import declaration
from ftlab.studies.plan import Planner, Run

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "devices.md").read_text()

PAPER = papers.load_paper(ROOT, "devices")


def runs(figure: str, **labels: str) -> list[Run]:
    """Returns the runs of a figure that have these labels."""
    (declared,) = (each for each in PAPER.figures if each.id == figure)
    names = [axis.name for axis in declared.axes]
    planner = Planner(ROOT, declaration.load_traces(ROOT), None, quick=False)
    return [
        each
        for each in planner.runs(declared)
        if labels.items() <= dict(zip(names, each.labels, strict=True)).items()
    ]


def mean(figure: str, value: str, **labels: str) -> float:
    """Returns a value's mean over the seeds, as the page has it."""
    (declared,) = (each for each in PAPER.figures if each.id == figure)
    found = []
    for each in runs(figure, **labels):
        number = declared.value(value).get.number(json.loads(run_core(each.config).json))
        assert number is not None
        found.append(number)
    assert len(found) == 3
    return math.fsum(found) / len(found)


def test_the_page_counts_the_hypotheses() -> None:
    every, holds, fails = re.findall(
        r"\*\*All (\d+) expectations.*?(\w+) hold\s+and\s+(\w+) do not", PAGE, re.DOTALL
    )[0]
    assert int(every) == len(PAPER.claims)
    # What does not hold has a reason, and what holds has none.
    without = [each.id for each in PAPER.claims if each.reasons]
    assert (int(holds), int(fails)) == (len(PAPER.claims) - len(without), len(without))


def test_what_was_known_beforehand_is_named() -> None:
    named = set(re.findall(r"`(copies-\w+)`", PAGE))
    assert named <= {each.id for each in PAPER.claims} and len(named) == 3


def test_a_row_of_the_page_on_coop() -> None:
    """COOP's writes go past every buffer, and Baseline's do not."""

    def throughput(policy: str, buffer: str) -> float:
        where = {"file": "filebench-16MiB", "ftl": "BAST", "policy": policy, "buffer": buffer}
        return mean("buffer-coop", "throughput", **where)

    coop = throughput("COOP", "none")
    assert throughput("COOP", "1MiB") == coop
    none, some = ((coop / throughput("Baseline", size) - 1) * 100 for size in ("none", "1MiB"))
    assert f"| FileBench, 16MiB | bast | {none:+.1f} | {some:+.1f} |" in PAGE


def test_a_row_of_the_page_on_copies() -> None:
    one, apart = (
        mean("copies", "waf", ftl="page", load="Zipf 0.99", placement=name) for name in ("one", "gc-apart")
    )
    assert f"| {one:.3f}, {apart:.3f} | {(apart / one - 1) * 100:+.1f} % |" in PAGE


def test_a_row_of_the_page_on_vios() -> None:
    """Page types take most of what VIOS gains on hm."""
    where = {"workload": "hm", "cells": "TLC"}
    piq, vios = (mean("vios-tlc", "write", scheduler=name, **where) for name in ("PIQ", "VIOS"))
    assert f"| TLC | {piq:.0f} | {vios:.0f} |" in PAGE


def test_a_row_of_the_page_on_the_slc_cache() -> None:
    write, tail = (mean("emmc-slc", value, load="phone", cache="fold, never") for value in ("write", "tail"))
    assert f"| fold, never | {write:,.0f} | {tail:,.0f} |" in PAGE


def test_copies_has_every_ftl_with_a_placement() -> None:
    """The others are hybrids, which map blocks: a run says that they ignore the placement."""
    kinds = [part["name"] for part in ftlab.components()["ftl.kind"]]
    placement = Override("a test", "ftl.placement", "gc-apart")
    notes = {
        kind: load("map-plus", [Override("a test", "ftl.kind", kind), placement]).notes() for kind in kinds
    }
    ignore = {
        kind
        for kind, said in notes.items()
        if any("ftl.placement" in note and "maps blocks" in note for note in said)
    }
    assert ignore == {"bast", "fast"}
    (copies,) = (each for each in PAPER.figures if each.id == "copies")
    (ftl,) = (axis for axis in copies.axes if axis.name == "ftl")
    assert set(ftl.labels) == set(kinds) - ignore
    assert not [note for each in runs("copies") for note in each.config.notes() if "placement" in note]
