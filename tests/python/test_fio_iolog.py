"""fio's I/O logs as fio writes and replays them: the times that ftlab reads are those that fio keeps."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.skipif(shutil.which("fio") is None, reason="fio is not installed")

LATE_MS = 400
"""By how much fio may be late on a busy machine; between two requests here are 500 ms or more."""


def fio(folder: Path, **options: str) -> None:
    given = {"ioengine": "psync", "filename": "data", "size": "1m", "name": "j", **options}
    command = ["fio", *(f"--{name}={value}" for name, value in given.items())]
    subprocess.run(command, cwd=folder, check=True, capture_output=True)


def read(path: Path) -> list[float]:
    """Returns when requests arrive, in ms since the first."""
    copy = path.with_suffix(".csv")
    command = [sys.executable, "-m", "ftlab", "trace", "convert", str(path), str(copy)]
    subprocess.run(command, check=True, capture_output=True)
    return [int(line.split(",")[0]) / 1e6 for line in copy.read_text().splitlines()[1:]]


def replayed(folder: Path, log: str) -> list[float]:
    """Returns when fio's own replay has done the requests, in ms since the first."""
    (folder / "data").write_bytes(bytes(1 << 20))
    fio(folder, read_iolog=log, write_lat_log="r")
    times = [int(line.split(",")[0]) for line in (folder / "r_lat.1.log").read_text().splitlines()]
    return [float(time - times[0]) for time in times]


def close(found: list[float], expected: list[float]) -> bool:
    return len(found) == len(expected) and all(
        abs(time - wanted) <= LATE_MS for time, wanted in zip(found, expected, strict=True)
    )


def test_version_3_is_in_microseconds(tmp_path: Path) -> None:
    fio(tmp_path, rw="write", bs="4k", io_size="12k", thinktime="600ms", write_iolog="w.log")
    assert (tmp_path / "w.log").read_text().startswith("fio version 3 iolog\n")
    found = read(tmp_path / "w.log")
    assert found[1] >= 600 and found[2] >= found[1] + 600 and found[2] < 60_000, found
    assert close(replayed(tmp_path, "w.log"), found)


def test_a_wait_of_version_2_ends_at_so_many_milliseconds(tmp_path: Path) -> None:
    """Against fio's manual, which has microseconds since the wait before: 1 ms, 2.5 ms and 3.7 ms here."""
    log = "fio version 2 iolog\ndata add\ndata open\ndata wait 1000 0\ndata write 0 4096\ndata wait 1500 0\n"
    (tmp_path / "v2.log").write_text(log + "data write 4096 4096\ndata wait 1200 0\ndata write 0 4096\n")
    assert read(tmp_path / "v2.log") == [0.0, 500.0, 500.0]
    assert close(replayed(tmp_path, "v2.log"), [0.0, 500.0, 500.0])


def test_fio_does_not_wait_behind_a_stamp_of_0(tmp_path: Path) -> None:
    log = "fio version 3 iolog\n0 data add\n0 data open\n0 data write 0 4096\n"
    (tmp_path / "v3.log").write_text(log + "2000000 data write 4096 4096\n2500000 data write 8192 4096\n")
    assert read(tmp_path / "v3.log") == [0.0, 2000.0, 2500.0]
    assert close(replayed(tmp_path, "v3.log"), [0.0, 0.0, 500.0])
