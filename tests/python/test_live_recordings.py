"""Recordings of a live device whose end is not a clean one: a kill, a full disk; and numbered files."""

from __future__ import annotations

import json
import os
import re
import resource
import signal
import subprocess
import sys
import time
from contextlib import nullcontext
from pathlib import Path

import polars as pl
import pytest

from front import Cli
from live import DEVICES, Served, need, served, without_times

WRITES = "h.connect_uri(URI)\nfor at in range(COUNT): h.pwrite(bytes(4096), at % 4096 * 4096)\n"


def write(device: Served, count: int) -> None:
    """Writes this many pages, one after the other."""
    device.shell(f"COUNT = {count}\n{WRITES}")


def rows(path: Path) -> int:
    """Returns the number of requests in a recording, each a whole line."""
    text = path.read_text()
    assert text.endswith("\n")
    return text.count("\n") - 1


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_a_kill_leaves_a_recording(tmp_path: Path, cli: Cli, suffix: str) -> None:
    """A killed device leaves what it recorded until just before, under its name and as any trace."""
    need("nbdsh")
    recording = tmp_path / f"recording.{suffix}"
    how = ("--time", "free", "--record", str(recording))
    with served(tmp_path, *DEVICES["page"], *how, status=-signal.SIGKILL) as device:
        write(device, 3000)
        end = time.monotonic() + 30
        while not recording.exists() or rows(recording) < 3000:
            assert time.monotonic() < end, "rows are written soon"
            time.sleep(0.05)
        device.process.kill()
        device.process.wait()
        device.path.unlink()
    told = json.loads(cli.ok("run", *DEVICES["page"], "--trace", str(recording), "--json", "-"))
    assert told["trace"]["writes"] == 3000


def test_a_full_disk_ends_the_recording_alone(tmp_path: Path, cli: Cli) -> None:
    """A recording that meets the end of the disk (here a limit of the file's size) keeps its whole lines. The
    device says so at once and goes on, and its result is printed.
    """
    need("nbdsh")
    recording, most = tmp_path / "recording.csv", 100_000
    how = ("--time", "free", "--record", str(recording))
    with served(tmp_path, *DEVICES["page"], *how, status=2) as device:
        resource.prlimit(device.process.pid, resource.RLIMIT_FSIZE, (most, most))
        write(device, 8000)
        assert device.process.stderr
        warning = device.process.stderr.readline()
        assert re.match(rf"warning: {recording}: cannot write: File too large; .*the device goes on", warning)
        stats = json.loads(cli.ok("ctl", str(device.path), "stats"))["live"]["recording"]
        assert "File too large" in cli.ok("top", str(device.path))
        write(device, 10)
    kept = rows(recording)
    assert most - 100 < recording.stat().st_size <= most
    assert device.result["trace"]["writes"] == 8010
    assert device.result["live"]["recording"] == stats
    assert stats["requests"] == kept and f"ends after {kept} requests" in warning
    assert stats["error"] in device.ended and "8,010" in device.printed
    assert json.loads(cli.ok("trace", "info", str(recording), "--json", "-"))["writes"] == kept


def test_numbered_files_replay_to_the_same_result(tmp_path: Path, cli: Cli) -> None:
    """With `--rotate` a recording goes on in numbered files, which are replayed, converted and described as
    one trace; a second device does not mix its files with them.
    """
    need("nbdsh")
    how = ("--time", "free", "--record", str(tmp_path / "r.csv"), "--rotate", "8KiB")
    with served(tmp_path, *DEVICES["dftl"], *how) as device:
        write(device, 2000)
    told = device.result["live"]["recording"]
    files = sorted(tmp_path.glob("r.*.csv"))
    assert told == {"requests": 2000, "files": len(files), "error": None} and len(files) > 4
    assert files[0].name == "r.0001.csv" and all(file.stat().st_size <= 8192 for file in files)
    pattern = str(tmp_path / "r.*.csv")
    replayed = json.loads(cli.ok("run", *DEVICES["dftl"], "--trace", pattern, "--json", "-"))
    assert without_times(replayed) == without_times(device.result)
    assert replayed["config"]["workload"]["replay"] == "dependent"
    cli.ok("trace", "convert", pattern, str(tmp_path / "all.parquet"))
    assert len(pl.read_parquet(tmp_path / "all.parquet")) == 2000
    again = cli("serve", *DEVICES["dftl"], "--nbd", f"unix:{tmp_path}/b.sock", *how)
    assert again.returncode == 2 and "r.0001.csv: exists" in again.stderr
    files[1].unlink()
    lacks = cli("run", *DEVICES["dftl"], "--trace", pattern)
    assert lacks.returncode == 2 and "lack what was between them" in lacks.stderr


def test_what_cannot_be_rotated_is_refused(tmp_path: Path, cli: Cli) -> None:
    for options, word in (
        (("--rotate", "1MiB"), "--record"),
        (("--rotate", "much", "--record", "a.csv"), "64MiB"),
        (("--rotate", "10ms", "--record", "a.csv"), "64MiB"),
        (("--rotate", "1MiB", "--record", "a.parquet"), "numbered files are csv"),
    ):
        done = cli("serve", *DEVICES["page"], "--nbd", f"unix:{tmp_path}/a.sock", *options)
        assert done.returncode == 2 and word in done.stderr, done.stderr


@pytest.mark.parametrize("read", [True, False, None])
def test_a_pipe_waits_for_its_reader(tmp_path: Path, read: bool | None) -> None:
    """A recording into a named pipe begins when somebody reads it; an interrupt ends the wait. A reader that
    leaves at once (None) ends the recording, not the device.
    """
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    command = [sys.executable, "-m", "ftlab", "serve", *DEVICES["page"], "--nbd", f"unix:{tmp_path}/a.sock"]
    with subprocess.Popen([*command, "--record", str(pipe)], stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr
        assert process.stderr.readline() == f"waiting until somebody reads {pipe}\n"
        if read is None:
            pipe.open().close()
        with pipe.open() if read else nullcontext() as reader:
            if read is not False:
                assert process.stderr.readline().startswith("serving ")
            process.send_signal(signal.SIGINT)
            said = process.communicate(timeout=60)[1]
            if reader:
                assert reader.read().startswith("time_ns,op,")
    assert process.returncode == {True: 0, False: 130, None: 2}[read], said
    assert (f"{pipe}: cannot write: Broken pipe" in said) is (read is None), said
