"""fio jobs make the requests that fio itself makes: the same offsets and sizes, by fio's own I/O log."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

import ftlab

STRIDED = "size=64k\nzonemode=strided"
SEQUENTIAL = {
    "a file": "rw=read\nsize=12k",
    "less than the file": "rw=write\nsize=16k\nio_size=8k",
    "more than the file": "rw=write\nsize=12k\nio_size=20k",
    "a part of the drive": "rw=read\nbs=1m\noffset=8m\nsize=4m",
    "shares of the drive": "rw=read\nbs=1m\noffset=50%\nsize=25%",
    "what is behind an offset": "rw=read\nbs=1m\noffset=9m\nsize=100%",
    "loops": "rw=read\nsize=16k\nloops=2",
    "loops over less than the file": "rw=read\nsize=12k\nio_size=8k\nloops=3",
    "strides": f"rw=read\n{STRIDED}\nzonesize=4k\nzoneskip=12k\nio_size=16k",
    "half of each zone": f"rw=read\n{STRIDED}\nzonesize=8k\nzonerange=16k\nzoneskip=16k\nio_size=16k",
    "each zone twice": f"rw=read\n{STRIDED}\nzonesize=16k\nzonerange=8k\nzoneskip=8k\nio_size=24k",
    "strides over it all": "rw=read\nsize=100%\nio_size=24k\nzonemode=strided\nzonesize=4k\nzoneskip=4092k",
    "zones far apart": f"rw=read\n{STRIDED}\nzonesize=4k\nzoneskip=1g\nio_size=12k\noffset=1m",
    "two jobs": "rw=write\nsize=8k\n[b]\nstonewall\nrw=read\nsize=12k\nbs=2k",
}
RANDOM = {
    "aligned": ("rw=randread\nsize=16k\nio_size=8m\nblockalign=512", 25),
    "mixed sizes": ("rw=randread\nsize=256k\nio_size=64m\nbssplit=4k/60:16k/30:64k/10", None),
    "in a zone": (f"rw=randread\n{STRIDED}\nzonesize=1t\nzonerange=16k\nio_size=4m\noffset=1m", 4),
}

pytestmark = pytest.mark.skipif(not shutil.which("fio"), reason="fio is not installed")


def play(tmp_path: Path, job: str) -> ftlab.Result:
    path = tmp_path / "by_ftlab.fio"
    path.write_text(f"[global]\ndirect=1\nfilename=drive\n[a]\n{job}\n")
    return ftlab.run("map-plus", set={"workload.fio_job": str(path), "flash.blocks_per_plane": "64"})


@pytest.fixture
def drive(tmp_path: Path) -> int:
    """Makes a file of the size of the device; returns its bytes."""
    with pytest.raises(ftlab.UserError) as error:
        play(tmp_path, "size=1t")
    found = re.search(r"the device has (\d+) B", str(error.value))
    assert found
    with (tmp_path / "drive").open("wb") as file:
        file.truncate(int(found[1]))
    return int(found[1])


def by_fio(tmp_path: Path, job: str) -> list[tuple[int, int]]:
    """Returns offset and size of each request of fio, from its I/O log."""
    options = "filename=drive\nioengine=psync\nnorandommap=1\nwrite_iolog=log"
    (tmp_path / "by.fio").write_text(f"[global]\n{options}\n[a]\n{job}\n")
    subprocess.run(["fio", "by.fio"], cwd=tmp_path, check=True, capture_output=True)
    rows = [line.split() for line in (tmp_path / "log").read_text().splitlines()]
    # Version 2 and 3 of the log end each row of a request with its operation, offset and size.
    return [(int(row[-2]), int(row[-1])) for row in rows if row[-3:-2] in (["read"], ["write"])]


def by_ftlab(tmp_path: Path, job: str) -> list[tuple[int, int]]:
    """Returns offset and size of each request of ftlab."""
    result = play(tmp_path, job)
    return list(zip(result.column("offset").tolist(), result.column("size").tolist(), strict=True))


@pytest.mark.parametrize("name", SEQUENTIAL)
def test_sequential_jobs_make_the_same_requests(tmp_path: Path, drive: int, name: str) -> None:
    expected = by_fio(tmp_path, SEQUENTIAL[name])
    assert len(expected) >= 2
    assert all(offset + size <= drive for offset, size in expected)
    assert by_ftlab(tmp_path, SEQUENTIAL[name]) == expected


@pytest.mark.parametrize("name", RANDOM)
def test_random_jobs_use_the_same_places_and_sizes(tmp_path: Path, drive: int, name: str) -> None:
    job, places = RANDOM[name]
    found = [of(tmp_path, job) for of in (by_fio, by_ftlab)]
    assert all(offset + size <= drive for offset, size in found[1])
    sizes = [{size: 0 for _, size in requests} for requests in found]
    for requests, count in zip(found, sizes, strict=True):
        for _, size in requests:
            count[size] += 1
    assert sizes[0].keys() == sizes[1].keys()
    for size in sizes[0]:
        shares = [count[size] / len(requests) for count, requests in zip(sizes, found, strict=True)]
        assert shares[1] == pytest.approx(shares[0], abs=0.03)
    if places:
        assert [len({offset for offset, _ in requests}) for requests in found] == [places, places]
        assert {offset for offset, _ in found[0]} == {offset for offset, _ in found[1]}
