"""`ftlab probe`: fio and ftlab's own reader of jobs accept its files, which say what they do."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

import ftlab
from front import Cli
from ftlab._core import UserError
from ftlab.calibration import measured, probe
from ftlab.calibration.probe_jobs import Probe, destructive, read_only
from pages import DOCS

PROBES = [*read_only(), *destructive()]
WRITES = re.compile("rw=(write|randwrite|rw|randrw|trim)")

SHORTER = {
    r"(ramp_time|runtime)=[0-9]+s": r"\1=10ms",
    r"thinktime=2s": "thinktime=100us",
    r"io_size=1g": "io_size=256k",
    r"zonerange=64m": "zonerange=1m",
}
"""What makes a job short enough for a test."""


def shorter(text: str) -> str:
    for pattern, short in SHORTER.items():
        text = re.sub(pattern, short, text)
    return text


def test_only_the_destructive_jobs_write(tmp_path: Path) -> None:
    files = probe.write(tmp_path / "jobs", writing=True)
    for path in files:
        erases = path.parent.name == probe.DESTRUCTIVE
        if path.suffix == ".fio":
            assert bool(WRITES.search(path.read_text())) == erases
            assert ("; Erases " in path.read_text()) == erases
    assert {probe_.erases != "" for probe_ in read_only()} == {False}
    assert sorted(probe_.name for probe_ in destructive()) == [probe_.name for probe_ in destructive()]


def test_the_page_names_every_file_its_time_and_what_it_erases(tmp_path: Path) -> None:
    probe.write(tmp_path, writing=True)
    for folder, probes in ((tmp_path, read_only()), (tmp_path / "destructive", destructive())):
        page = (folder / "README.md").read_text()
        rows = {row.split("`")[1]: row for row in page.splitlines() if row.startswith("| `")}
        assert sorted(rows) == sorted(path.name for path in folder.glob("*.fio"))
        for each in probes:
            assert each.purpose in rows[f"{each.name}.fio"]
            assert rows[f"{each.name}.fio"].endswith(f"| {each.erases or 'nothing'} |")
    assert "| 1 min 48 s | nothing |" in (tmp_path / "README.md").read_text()
    assert "Everything on the drive is lost." in (tmp_path / "destructive" / "README.md").read_text()
    assert "fio --readonly" in (tmp_path / "README.md").read_text()


def test_files_are_not_replaced_without_being_told(cli: Cli) -> None:
    said = cli.ok("probe", "--jobs", "jobs").splitlines()
    assert said[-1] == "jobs/README.md"
    assert not (cli.directory / "jobs" / "destructive").exists()
    (cli.directory / "jobs" / "read-depth.fio").write_text("mine")
    done = cli("probe", "--jobs", "jobs", "--destructive")
    assert done.returncode == 2
    assert "jobs/read-depth.fio: exists; name another directory, or replace the files with" in done.stderr
    assert not (cli.directory / "jobs" / "destructive").exists()
    assert (cli.directory / "jobs" / "read-depth.fio").read_text() == "mine"
    cli.ok("probe", "--jobs", "jobs", "--destructive", "--replace", "--size", "16g")
    assert "size=16g" in (cli.directory / "jobs" / "read-depth.fio").read_text()
    assert (cli.directory / "jobs" / "destructive" / "README.md").exists()


@pytest.mark.parametrize("size", ["", "0g", "16", "all", "101%", "16 g", "1" * 50 + "k"])
def test_a_size_is_one_of_fio(tmp_path: Path, size: str) -> None:
    with pytest.raises(UserError, match="write for example 16g, or a share of the drive"):
        probe.write(tmp_path, size=size)
    assert not list(tmp_path.iterdir())


def test_the_page_of_the_site_has_the_same_rows(tmp_path: Path) -> None:
    probe.write(tmp_path, writing=True)
    page = (DOCS / "probe-a-drive.md").read_text()
    for folder in (tmp_path, tmp_path / "destructive"):
        for row in (folder / "README.md").read_text().splitlines():
            assert not row.startswith("| `") or row in page, row


@pytest.mark.skipif(not shutil.which("fio"), reason="fio is not installed")
@pytest.mark.parametrize("given", PROBES, ids=lambda given: given.name)
def test_fio_accepts_every_job(tmp_path: Path, given: Probe) -> None:
    (tmp_path / "a.fio").write_text(probe.text(given))
    (tmp_path / "drive").write_bytes(bytes(1 << 20))
    done = parsed(tmp_path, {**os.environ, "DRIVE": "drive"})
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    unset = {name: value for name, value in os.environ.items() if name != "DRIVE"}
    assert parsed(tmp_path, unset).returncode != 0, "without a drive nothing runs"


def parsed(folder: Path, environment: dict[str, str]) -> subprocess.CompletedProcess[str]:
    command = ["fio", "--parse-only", "a.fio"]
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("given", PROBES, ids=lambda given: given.name)
def test_ftlab_runs_every_job(tmp_path: Path, given: Probe, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DRIVE", "/dev/drive")
    path = tmp_path / "a.fio"
    path.write_text(shorter(probe.text(given)))
    settings = {"workload.fio_job": str(path), "flash.blocks_per_plane": "64"}
    result = ftlab.run("map-plus", set=settings).to_dict()
    stages = sum(not section.together for section in given.sections)
    assert len(result["benchmark"]["runs"]) == stages
    reads = any(not WRITES.search(f"rw={(given.shared | s.options)['rw']}") for s in given.sections)
    assert (result["benchmark"]["bytes_read"] > 0) == reads
    assert (result["benchmark"]["bytes_written"] > 0) == bool(given.erases)


@pytest.mark.skipif(not shutil.which("fio"), reason="fio is not installed")
def test_what_the_curve_measures_is_read(tmp_path: Path) -> None:
    """fio runs the job on a file, as if it were a drive; every depth becomes a row."""
    curve = next(given for given in PROBES if given.name == "read-depth")
    text = probe.text(curve).replace("bs=4k", "bs=64k").replace("ioengine=libaio", "ioengine=posixaio")
    (tmp_path / "a.fio").write_text(re.sub("(ramp_time|runtime)=[0-9]+s", r"\1=100ms", text))
    (tmp_path / "drive").write_bytes(bytes(16 << 20))
    subprocess.run(
        ["fio", "--readonly", "--output-format=json+", "--output=a.json", "a.fio"],
        cwd=tmp_path,
        env={**os.environ, "DRIVE": "drive"},
        check=True,
        capture_output=True,
    )
    notes: list[str] = []
    rows = measured.read([tmp_path / "a.json"], notes.append)
    said = {row.depth for row in rows} | {
        int(d) for note in notes for d in re.findall(r'"depth-(\d+)"', note)
    }
    assert said == {1, 2, 4, 8, 16, 32, 64, 128, 256}
    assert {(row.op, row.bs, row.jobs) for row in rows} == {("randread", 1 << 16, 1)}
