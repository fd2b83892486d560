"""What comes with ftlab, in a checkout and in a wheel."""

from __future__ import annotations

import filecmp
import json
from pathlib import Path

from front import Cli
from ftlab.data import FOLDERS, folder

ROOT = Path(__file__).resolve().parents[2]


def test_demo_shows_the_comparison(cli: Cli) -> None:
    text = cli.ok("demo", "--out", "o")
    command, header, *rest = text.splitlines()
    assert command.startswith("$ ftlab compare map-plus --trace ")
    assert header == "map-plus on phone-mix.csv.gz: 59,950 requests, 48 % reads"
    assert "* best; (x) ratio to noop" in rest
    assert {path.name for path in (cli.directory / "o").iterdir()} == {
        *("demo.html", "demo.json", "demo.png", "demo.svg")
    }
    figures = json.loads((cli.directory / "o" / "demo.json").read_text())
    assert len(figures["variants"]) == 7


def test_what_comes_with_ftlab_is_copied(cli: Cli) -> None:
    cli.ok("demo", "--files", "at")
    for name in FOLDERS:
        ours, theirs = ROOT / name, cli.directory / "at" / name
        files = [str(path.relative_to(ours)) for path in ours.rglob("*") if path.is_file()]
        assert len(files) >= 3
        assert filecmp.cmpfiles(ours, theirs, files, shallow=False)[0] == files
    text = cli.ok("run", "at/workloads/vios/stg.toml", "--set", "workload.synthetic.requests=100")
    assert "workload: 100 requests" in text
    again = cli("demo", "--files", "at")
    assert (again.returncode, again.stderr) == (2, "error: --files at: at/papers is there already\n")
    both = cli("demo", "--files", "b", "--out", "o")
    assert both.returncode == 2
    assert sorted(path.name for path in cli.directory.iterdir()) == ["a.csv", "at"]


def test_the_package_has_one_copy() -> None:
    for name in FOLDERS:
        assert (folder() / name).resolve() == ROOT / name
