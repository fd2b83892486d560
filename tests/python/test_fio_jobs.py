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
    "all of the drive": "rw=read\nbs=1m\noffset=0%",
    "a number of requests": "rw=read\nsize=64k\nnumber_ios=3",
    "part of a file": "rw=read\nbs=1m\nfilesize=4m\nsize=2m",
    "part of a file, twice": "rw=read\nbs=1m\nfilesize=4m\nsize=3m\nloops=2",
    "a file behind its offset": "rw=read\nbs=1m\nfilesize=4m\noffset=1m",
    "a share of the size": "rw=read\nsize=64k\nio_size=50%",
    "time_based without a runtime": "rw=read\nsize=16k\ntime_based",
}
# Values whose meaning is not what one would guess.
VALUES = {
    "MiB are powers of 1000": "rw=write\nbs=4000\nsize=1MiB",
    "MiB with kb_base": "rw=write\nsize=1MiB\nbs=4096\nkb_base=1000",
    "k with kb_base": "rw=write\nbs=4KiB\nkb_base=1000\nsize=512k",
    "ki": "rw=write\nbs=4ki\nsize=1mi",
    "hexadecimal": "rw=read\nbs=0x2000\nsize=64ki",
    "a size for writes, read": "rw=read\nsize=64k\nbs=16k\nbs=,8k",
    "a size for writes, written": "rw=write\nsize=64k\nbs=,8k",
    "a size for reads, written": "rw=write\nsize=64k\nbs=8k,",
    "three sizes": "rw=write\nsize=64k\nbs=8k,16k,32k",
    "a colon between sizes": "rw=write\nsize=64k\nbs=8k:16k",
    "bssplit for reads, written": "rw=write\nsize=64k\nbssplit=16k/100,,",
    "bssplit above bs": "rw=write\nsize=64k\nbssplit=,16k/100\nbs=8k",
    "bsrange above bs": "rw=write\nsize=64k\nbsrange=8k-8k\nbs=16k",
    "a limit for reads, written": "rw=write\nsize=64k\nrate=1,",
    "loops=0": "rw=read\nsize=16k\nloops=0",
}
RANDOM = {
    "aligned": ("rw=randread\nsize=16k\nio_size=8m\nblockalign=512", 25),
    "mixed sizes": ("rw=randread\nsize=256k\nio_size=64m\nnorandommap\nbssplit=4k/60:16k/30:64k/10", None),
    "in a zone": (f"rw=randread\n{STRIDED}\nzonesize=1t\nzonerange=16k\nio_size=4m\noffset=1m", 4),
}

pytestmark = pytest.mark.skipif(not shutil.which("fio"), reason="fio is not installed")


def play(tmp_path: Path, job: str) -> ftlab.Result:
    path = tmp_path / "by_ftlab.fio"
    path.write_text(f"[global]\ndirect=1\nnorandommap=1\nfilename=drive\n[a]\n{job}\n")
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


def test_what_a_job_takes_from_around_it(tmp_path: Path, drive: int, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "part.fio").write_text("bs=${SIZE}\nsize=64k\n")
    monkeypatch.setenv("SIZE", "8k")
    job = f"rw=write\ninclude {tmp_path}/part.fio"
    assert by_ftlab(tmp_path, job) == by_fio(tmp_path, job) == [(at << 13, 8192) for at in range(8)]
    monkeypatch.delenv("SIZE")
    with pytest.raises(ftlab.UserError, match=r"part.fio:1: bs: the environment variable SIZE is not set"):
        play(tmp_path, job)


def by_ftlab(tmp_path: Path, job: str) -> list[tuple[int, int]]:
    """Returns offset and size of each request of ftlab."""
    result = play(tmp_path, job)
    return list(zip(result.column("offset").tolist(), result.column("size").tolist(), strict=True))


@pytest.mark.parametrize("name", SEQUENTIAL | VALUES)
def test_sequential_jobs_make_the_same_requests(tmp_path: Path, drive: int, name: str) -> None:
    job = (SEQUENTIAL | VALUES)[name]
    expected = by_fio(tmp_path, job)
    assert expected
    assert all(offset + size <= drive for offset, size in expected)
    assert by_ftlab(tmp_path, job) == expected


def test_an_unknown_unit_of_time_is_us(tmp_path: Path, drive: int) -> None:
    # How far fio comes in 60 us is not the same each time; that it does not read 8 MB is.
    job = "rw=read\nsize=8m\nruntime=60sec"
    found = [of(tmp_path, job) for of in (by_fio, by_ftlab)]
    assert all(len(requests) < 2000 for requests in found)
    assert found[0] == [(at << 12, 4096) for at in range(len(found[0]))]
    assert found[1] == [(at << 12, 4096) for at in range(len(found[1]))]


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
