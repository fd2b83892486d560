"""The data that comes with ftlab, in a checkout and in a wheel."""

from __future__ import annotations

import filecmp
import itertools
import json
import os
import platform
import re
import shlex
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

import ftlab
from front import Cli
from ftlab.cli.man import pages
from ftlab.data import FOLDERS, folder
from pages import ROOT, indented


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
    # Regression: it said "Made by ftlab compare compare", and what it advised was not on the PATH.
    made_by = re.search(r"Made by <code>(.*?)</code>", (cli.directory / "o" / "demo.html").read_text())
    assert made_by and made_by[1].startswith("ftlab compare map-plus --trace ")
    advised = rest[-1].removeprefix("Your own trace: ").replace("FILE", "a.csv")
    done = subprocess.run(shlex.split(advised), cwd=cli.directory, capture_output=True, check=False)
    assert (done.returncode, done.stderr) == (0, b"")


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
    assert (again.returncode, again.stderr) == (2, "error: --files at: at/papers already exists\n")
    both = cli("demo", "--files", "b", "--out", "o")
    assert both.returncode == 2
    assert sorted(path.name for path in cli.directory.iterdir()) == ["a.csv", "at"]


@pytest.mark.skipif(not (ROOT / ".git").exists(), reason="a source distribution holds files, not links")
def test_a_checkout_has_one_copy() -> None:
    for name in FOLDERS:
        assert (folder() / name).resolve() == ROOT / name


def test_one_version() -> None:
    cited = re.search(r"^version: (.*)$", (ROOT / "CITATION.cff").read_text(), re.MULTILINE)
    assert cited is not None
    assert cited[1] == ftlab.__version__
    assert f"## {ftlab.__version__}, " in (ROOT / "CHANGELOG.md").read_text()


@pytest.fixture(scope="module")
def built() -> Path:
    """Returns the directory that `make dist` filled; skips the test if FTLAB_DIST is not set."""
    if "FTLAB_DIST" not in os.environ:
        pytest.skip("FTLAB_DIST names no directory of wheels; .ci/run makes them")
    return ROOT / os.environ["FTLAB_DIST"]


def wheel(built: Path, cpu: str) -> Path:
    (found,) = built.glob(f"ftlab-{ftlab.__version__}-cp311-abi3-manylinux_2_28_{cpu}.whl")
    return found


def interpreters() -> list[str]:
    """Returns the oldest and the newest installed Python that ftlab supports."""
    places = [f"{sys.base_prefix}/bin", *os.environ["PATH"].split(os.pathsep)]
    places += map(str, Path.home().glob(".pyenv/versions/*/bin"))
    found: dict[int, str] = {}
    for place, minor in itertools.product(places, range(11, 30)):
        path = Path(place) / f"python3.{minor}"
        # A shim of pyenv exists even for versions that are not selected, but fails when it is run.
        if (
            path.exists()
            and subprocess.run([path, "-m", "venv", "-h"], capture_output=True, check=False).returncode == 0
        ):
            found.setdefault(minor, str(path))
    return [found[minor] for minor in sorted({min(found), max(found)})]


@pytest.fixture(scope="module", params=range(2))
def installed(request: pytest.FixtureRequest, built: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Makes a fresh environment with the wheel and its dependencies."""
    there = interpreters()
    if request.param >= len(there):
        pytest.skip("there is one Python alone")
    folder = tmp_path_factory.mktemp("installed")
    subprocess.run([there[request.param], "-m", "venv", folder], check=True)
    file = str(wheel(built, platform.machine()))
    subprocess.run([folder / "bin" / "python", "-m", "pip", "install", "--quiet", file], check=True)
    return folder


def run(installed: Path, at: Path, *words: str) -> str:
    """Returns what an installed program prints, in an otherwise empty directory and without the network."""
    own = {"PATH": f"{installed / 'bin'}:/usr/bin:/bin", "HOME": str(at), "http_proxy": "http://127.0.0.1:9"}
    done = subprocess.run(words, cwd=at, env=own, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, f"{words}: {done.stderr}"
    return done.stdout


def test_what_is_installed_runs(installed: Path, tmp_path: Path) -> None:
    assert run(installed, tmp_path, "ftlab", "--version") == f"ftlab {ftlab.__version__}\n"
    where = run(installed, tmp_path, "python", "-c", "import ftlab; print(ftlab.__file__)")
    assert where.startswith(str(installed))
    said = [
        run(installed, tmp_path, *words) for words in indented((ROOT / "python" / "README.md").read_text())
    ]
    assert len(said) >= 5
    assert "* best; (x) ratio to noop" in said[0]
    assert "2 runs: 2 now, 0 from the cache" in said[-1]
    assert (tmp_path / "report.html").stat().st_size > 500_000
    requests = ("--set", "workload.synthetic.requests=100")
    assert "100 requests" in run(installed, tmp_path, "ftlab", "run", "workloads/vios/stg.toml", *requests)
    completion = run(installed, tmp_path, "ftlab", "completion", "bash")
    assert "complete" in completion
    manual = installed / "share" / "man" / "man1"
    assert {path.name for path in manual.iterdir()} == set(pages())


def test_a_report_costs_no_bundling(installed: Path, tmp_path: Path) -> None:
    library = "from importlib.resources import files; print((files('ftlab.html') / 'vega.js.gz').is_file())"
    assert run(installed, tmp_path, "python", "-c", library) == "True\n"


def test_what_an_index_shows(built: Path) -> None:
    with zipfile.ZipFile(wheel(built, platform.machine())) as archive:
        (name,) = (name for name in archive.namelist() if name.endswith(".dist-info/METADATA"))
        metadata = archive.read(name).decode()
    head, _, text = metadata.partition("\n\n")
    lines = head.splitlines()
    assert "Author: the ftlab developers" in lines
    assert "License-Expression: Apache-2.0" in lines
    assert any(line.startswith("Keywords: ") for line in lines)
    assert text.startswith("# ftlab\n")
    # A relative link, into the repository, would lead nowhere.
    assert [link for link in re.findall(r"\]\(([^)]*)\)", text) if not link.startswith("https://")] == []


def test_every_wheel_has_the_same_files(built: Path) -> None:
    held = {}
    for path in built.glob("*.whl"):
        with zipfile.ZipFile(path) as archive:
            held[path.name] = {name for name in archive.namelist() if "sboms" not in name}
    assert held
    first = next(iter(held.values()))
    assert "ftlab/data/traces/phone-mix.csv.gz" in first
    assert all(names == first for names in held.values())


def test_the_source_distribution_is_whole(built: Path) -> None:
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True)
    tracked = {name for name in listed.stdout.split("\0") if name and not (ROOT / name).is_symlink()}
    with tarfile.open(built / f"ftlab-{ftlab.__version__}.tar.gz") as archive:
        held = {member.name.partition("/")[2] for member in archive}
    assert tracked - held == set()
    assert {"PKG-INFO", "python/ftlab/html/vega.js.gz", "python/ftlab/data/papers/traces.toml"} <= held
