"""fio jobs make the requests that fio itself makes, by fio's own I/O log.

One after another where a job leaves nothing to chance, else by what holds whatever the random numbers
are: those of fio differ between its versions.
"""

from __future__ import annotations

import itertools
import json
import re
import shutil
import subprocess
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

import ftlab

Requests = list[tuple[str, int, int]]
"""Operation (R, W, T, F for a flush), offset and size of each request, in the order of issue."""

OPERATIONS = {"read": "R", "write": "W", "trim": "T", "sync": "F", "datasync": "F"}
BLOCK = 4096

pytestmark = pytest.mark.skipif(not shutil.which("fio"), reason="fio is not installed")


def version() -> tuple[int, ...]:
    """Returns the version of the fio that is installed."""
    text = subprocess.run(["fio", "--version"], check=True, capture_output=True, text=True).stdout
    return tuple(int(part) for part in text.strip().removeprefix("fio-").split("-")[0].split("."))


def by_fio(tmp_path: Path, job: str, each: int = 0) -> Requests:
    """Returns the requests of fio, which needs no file for them unless the job names an engine; ``each``:
    bytes of each of several files, which are put one behind another.
    """
    engine = "" if "ioengine" in job else "ioengine=null\n"
    name = "" if each else "filename=file\n"
    (tmp_path / "by.fio").write_text(f"[a]\n{name}write_iolog=log\n{engine}{job}\n")
    # fio appends to a log.
    (tmp_path / "log").unlink(missing_ok=True)
    subprocess.run(["fio", "by.fio"], cwd=tmp_path, check=True, capture_output=True)
    requests: Requests = []
    files: list[str] = []
    for line in (tmp_path / "log").read_text().splitlines():
        words = line.split()
        if words[-1] == "add":
            files.append(words[-2])
        at = next((at for at, word in enumerate(words) if word in OPERATIONS), None)
        if at is not None:
            op = OPERATIONS[words[at]]
            begin = files.index(words[at - 1]) * each
            place = (0, 0) if op == "F" else (begin + int(words[at + 1]), int(words[at + 2]))
            # Before fio 3.38 an fsync could follow another.
            if op != "F" or requests[-1][0] != "F":
                requests.append((op, *place))
    return requests


def by_ftlab(tmp_path: Path, job: str, each: int = 0) -> Requests:
    """Returns the requests of ftlab."""
    path = tmp_path / "by_ftlab.fio"
    name = "" if each else "filename=file\n"
    path.write_text(f"[a]\ndirect=1\n{name}{job}\n")
    settings = {"workload.fio_job": str(path), "flash.blocks_per_plane": "256", "host.merge_limit": "0B"}
    result = ftlab.run("map-plus", set=settings)
    columns = [result.column(name).tolist() for name in ("op", "offset", "size")]
    return [(op, 0, 0) if op == "F" else (op, at, size) for op, at, size in zip(*columns, strict=True)]


def both(tmp_path: Path, job: str) -> list[Requests]:
    return [by_fio(tmp_path, job), by_ftlab(tmp_path, job)]


EXACT = {
    "less than a request more": "size=1m\nio_size=10k",
    "no whole number of requests": "size=10k\nio_size=30k",
    "no whole number of requests, queued": "size=10k\nio_size=30k\nioengine=libaio\niodepth=4",
    "no whole number of requests, loops": "size=10k\nloops=3",
    "io_size below a request": "size=10k\nio_size=1k",
    "a last zone cut short": "size=60k\nzonemode=strided\nzonesize=8k\nzonerange=16k",
    "fsync": "rw=write\nsize=40k\nfsync=4",
    "fsync over passes": "rw=write\nsize=16k\nfsync=2\nloops=2",
    "fdatasync and fsync": "rw=write\nsize=40k\nfdatasync=3\nfsync=4",
    "end_fsync": "rw=write\nsize=32k\nend_fsync=1\nloops=2",
    "trims": "rw=trim\nsize=40k",
    "trims and writes": "rw=trimwrite\nsize=40k",
    "trims and writes, twice": "rw=trimwrite\nsize=16k\nloops=2",
    "trims and writes of other sizes": "rw=trimwrite\nsize=64k\nbs=4k,8k,16k",
    "holes": "rw=read:4k\nsize=64k",
    "holes that end with the file": "rw=write:8k\nsize=64k",
    "holes, twice": "rw=write:4k\nsize=64k\nloops=2",
    "backwards": "rw=read:-8k\nsize=64k",
    "backwards behind an offset": "rw=read:-4k\nsize=64k\noffset=16k\nio_size=128k",
}


@pytest.mark.parametrize("name", EXACT)
def test_what_is_left_to_nothing_is_the_same(tmp_path: Path, name: str) -> None:
    fio, ftlab_requests = both(tmp_path, EXACT[name])
    assert len(fio) > 0
    assert ftlab_requests == fio


FILES = {
    "in turn": ("rw=write\nsize=60k\nnrfiles=3", 20),
    "some requests each": ("rw=write\nsize=60k\nnrfiles=3\nfile_service_type=roundrobin:2", 20),
    "one after another": ("rw=write\nsize=60k\nnrfiles=3\nfile_service_type=sequential", 20),
    "one at a time": ("rw=write\nsize=60k\nnrfiles=3\nopenfiles=1", 20),
    "two at a time": ("rw=write\nsize=64k\nnrfiles=4\nopenfiles=2", 16),
    "no whole number of requests": ("rw=write\nsize=64k\nnrfiles=3", 24),
    "by name": ("rw=write\nsize=60k\nfilename=x:y:z", 20),
    "behind an offset": ("rw=write\nsize=32k\nfilename=x:y\noffset=8k", 24),
    "twice": ("rw=write\nsize=36k\nnrfiles=3\nio_size=20k\nloops=2", 12),
    "files of a size": ("rw=write\nnrfiles=2\nfilesize=16k\nsize=20k", 16),
}


@pytest.mark.parametrize("name", FILES)
def test_several_files_take_turns(tmp_path: Path, name: str) -> None:
    job, each = FILES[name]
    fio = by_fio(tmp_path, job, each << 10)
    assert len(fio) > 4
    assert by_ftlab(tmp_path, job, each << 10) == fio


@pytest.mark.parametrize("service", ["roundrobin", "sequential", "random"])
def test_each_file_has_a_map_of_its_own(tmp_path: Path, service: str) -> None:
    job = f"rw=randwrite\nsize=96k\nnrfiles=3\nfile_service_type={service}"
    for requests in (by(tmp_path, job, 32 << 10) for by in (by_fio, by_ftlab)):
        passes(requests, 24)
        files = [offset // (32 << 10) for _, offset, _ in requests]
        if service != "random":
            assert files == ([0, 1, 2] * 8 if service == "roundrobin" else [0] * 8 + [1] * 8 + [2] * 8)
        for file in range(3):
            places = [offset for at, (_, offset, _) in zip(files, requests, strict=True) if at == file]
            assert len(places) == 8
            assert places != sorted(places)


def passes(requests: Requests, blocks: int) -> list[list[tuple[int, int]]]:
    """Cuts requests of one block each into passes over this many blocks, which touch each block once."""
    places = [(offset, size) for _, offset, size in requests]
    cut = [places[at : at + blocks] for at in range(0, len(places), blocks)]
    for each in cut:
        assert len(set(each)) == len(each)
    return cut


@pytest.mark.parametrize("more", ["io_size=768k", "loops=3", "ioengine=libaio\niodepth=8\nloops=3"])
@pytest.mark.parametrize("pattern", ["randread", "randwrite", "randrw"])
def test_each_block_once_a_pass_and_passes_alike(tmp_path: Path, pattern: str, more: str) -> None:
    for requests in both(tmp_path, f"rw={pattern}\nsize=256k\n{more}"):
        first, *others = passes(requests, 64)
        assert len(requests) == 192
        assert all(other == first for other in others)
        assert first != sorted(first)


@pytest.mark.parametrize("more", ["randrepeat=0\nloops=3", "time_based\nruntime=2\nrate_iops=100"])
def test_a_new_order_in_each_pass(tmp_path: Path, more: str) -> None:
    for requests in both(tmp_path, f"rw=randread\nsize=128k\n{more}"):
        cut = passes(requests, 32)
        assert cut[0] != cut[1]
        assert cut[1] != cut[2]


@pytest.mark.parametrize("more", ["norandommap", "blockalign=512", "random_distribution=zipf:0.4"])
def test_blocks_come_again_without_the_map(tmp_path: Path, more: str) -> None:
    for requests in both(tmp_path, f"rw=randwrite\nsize=1m\n{more}"):
        assert len(requests) == 256
        assert len({offset for _, offset, _ in requests}) < 256


@pytest.mark.parametrize(
    ("job", "repeats"),
    [
        ("rw=randread\nioengine=libaio", True),
        ("rw=randread", False),
        ("rw=randwrite\nioengine=libaio", False),
        ("rw=randrw\nioengine=libaio", False),
    ],
)
def test_whether_draws_repeat_within_io_size(tmp_path: Path, job: str, repeats: bool) -> None:
    for requests in both(tmp_path, f"{job}\nnorandommap\nsize=256k\nio_size=512k"):
        half = len(requests) // 2
        assert (requests[:half] == requests[half:]) is repeats


@pytest.mark.parametrize("sizes", ["bssplit=4k/60:16k/30:64k/10", "bsrange=4k-64k"])
def test_the_map_cuts_requests_short(tmp_path: Path, sizes: str) -> None:
    shares = []
    for requests in both(tmp_path, f"rw=randwrite\nsize=16m\n{sizes}"):
        touched = Counter(
            block for _, at, size in requests for block in range(at // BLOCK, (at + size) // BLOCK)
        )
        assert set(touched.values()) == {1}
        assert len(touched) == 4096
        counts = Counter(size // BLOCK for _, _, size in requests)
        assert len(counts) > 12
        shares.append([counts[blocks] / len(requests) for blocks in range(17)])
    assert shares[1] == pytest.approx(shares[0], abs=0.03)


def of(requests: Requests, op: str) -> list[int]:
    return [offset for each, offset, _ in requests if each == op]


def test_each_direction_has_a_position_of_its_own(tmp_path: Path) -> None:
    for requests in both(tmp_path, "rw=rw\nsize=256k"):
        for op in "RW":
            assert of(requests, op) == [at * BLOCK for at in range(len(of(requests, op)))]
        assert len(requests) == 64
    for requests in both(tmp_path, "rw=randrw\nsize=4m\nbs=4k,16k\nnorandommap"):
        assert {at % 16384 for at in of(requests, "R")} == {0, 4096, 8192, 12288}
        assert {at % 16384 for at in of(requests, "W")} == {0}
    for requests in both(tmp_path, "rw=rw\nsize=64k\nzonemode=strided\nzonesize=8k\nzonerange=16k"):
        for at in range(0, 16, 2):
            (op, one, _), (other, two, _) = requests[at : at + 2]
            assert one == at // 2 % 4 * 16384
            assert two == one + (BLOCK if op == other else 0)


@pytest.mark.skipif(not shutil.which("fio") or version() < (3, 38), reason="so from fio 3.38 on")
def test_directions_begin_again_by_themselves(tmp_path: Path) -> None:
    for requests in both(tmp_path, "rw=rw\nsize=64k\nio_size=256k"):
        for op in "RW":
            assert of(requests, op) == [at % 16 * BLOCK for at in range(len(of(requests, op)))]


@pytest.mark.parametrize(("blocks", "reached"), [(1000, 308), (3000, 865), (1024, 1024)])
def test_blocks_that_a_distribution_reaches(tmp_path: Path, blocks: int, reached: int) -> None:
    job = f"rw=randread\nbs=512\nsize={blocks * 512}\nio_size=32m\nrandom_distribution=zipf:0.2"
    for requests in both(tmp_path, job):
        assert len({offset for _, offset, _ in requests}) == reached


def test_groups_of_requests(tmp_path: Path) -> None:
    for requests in both(tmp_path, "rw=randread:8\nsize=8m"):
        places = [offset // BLOCK for _, offset, _ in requests]
        assert len(places) == 2048
        follow = [places[at] == places[at - 1] + 1 for at in range(1, 2048) if at % 8]
        assert sum(follow) / len(follow) > 0.95
        assert len(set(places)) / 2048 == pytest.approx(0.63, abs=0.05)
    for requests in both(tmp_path, "rw=randread:4\nsize=1m\nrw_sequencer=identical"):
        assert all(len(set(requests[at : at + 4])) == 1 for at in range(0, 256, 4))


def test_a_share_of_requests_is_random(tmp_path: Path) -> None:
    for requests in both(tmp_path, "rw=randread\nsize=16m\npercentage_random=30\nnorandommap"):
        follow = sum(one[1] + one[2] == two[1] for one, two in itertools.pairwise(requests))
        assert follow / len(requests) == pytest.approx(0.7, abs=0.04)


def test_trims_and_writes_of_random_places_take_turns(tmp_path: Path) -> None:
    for requests in both(tmp_path, "rw=randtrimwrite\nsize=256k"):
        assert [op for op, _, _ in requests] == ["T", "W"] * 64
        assert of(requests, "T") == of(requests, "W")
        assert len(set(of(requests, "T"))) == 64


def written_and_read(requests: Requests) -> tuple[list[int], list[int]]:
    writes = of(requests, "W")
    return writes, of(requests, "R")


@pytest.mark.parametrize(
    ("more", "expected"),
    [("", lambda writes: writes), ("norandommap", lambda writes: sorted(set(writes)))],
)
def test_what_was_written_is_read(
    tmp_path: Path, more: str, expected: Callable[[list[int]], list[int]]
) -> None:
    for requests in both(tmp_path, f"rw=randwrite\nsize=256k\nverify=crc32c\n{more}"):
        writes, reads = written_and_read(requests)
        assert len(writes) == 64
        assert reads == expected(writes)


@pytest.mark.parametrize("batch", [0, 1, 2, 5])
@pytest.mark.parametrize(
    "job", ["rw=write\nsize=48k", "rw=randwrite\nsize=48k", "rw=write\nsize=32k\nloops=2"]
)
def test_what_was_written_is_read_early(tmp_path: Path, job: str, batch: int) -> None:
    found = both(tmp_path, f"{job}\nverify=crc32c\nverify_backlog=3\nverify_backlog_batch={batch}")
    order = ["".join(op for op, _, _ in requests if op != "F") for requests in found]
    assert order[1] == order[0]
    assert order[0].startswith("WWWR")
    for requests in found:
        writes, reads = written_and_read(requests)
        assert reads == writes
    if "rand" not in job:
        assert of(found[1], "W") == of(found[0], "W")


BURSTS = {
    "": [8, 1, 1],
    "iodepth_low=2": [8, 6, 6],
    "iodepth_batch_complete_min=4\niodepth_batch_complete_max=4": [8, 4, 4],
    "iodepth_low=3\niodepth_batch_complete_min=3\niodepth_batch_complete_max=3": [8, 6, 6],
}


@pytest.mark.parametrize("more", BURSTS)
def test_a_full_queue_is_filled_again(tmp_path: Path, more: str) -> None:
    """The unit test of the same name has what ftlab does on a device with one request at a time."""
    job = f"[a]\nfilename=file\nrw=read\nsize=128k\nioengine=libaio\niodepth=8\n{more}\n"
    (tmp_path / "by.fio").write_text(job)
    done = subprocess.run(
        ["fio", "--debug=io", "by.fio"], cwd=tmp_path, check=True, capture_output=True, text=True
    )
    events = re.findall(r" (queue|complete): io_u", done.stdout + done.stderr)
    if not events:
        pytest.skip("this fio was built without its debug output")
    bursts = [len(list(group)) for event, group in itertools.groupby(events) if event == "queue"]
    assert bursts[:3] == BURSTS[more]


def figures(tmp_path: Path, job: str) -> list[tuple[float, int]]:
    """Returns how long each section ran in fio, in seconds, and how many requests it made."""
    (tmp_path / "by.fio").write_text(f"[global]\nioengine=null\nrw=read\nsize=1m\n{job}\n")
    command = ["fio", "--output-format=json", "--output=out.json", "by.fio"]
    subprocess.run(command, cwd=tmp_path, check=True, capture_output=True)
    jobs = json.loads((tmp_path / "out.json").read_text())["jobs"]
    return [(each["job_runtime"] / 1000, each["read"]["total_ios"]) for each in jobs]


@pytest.mark.parametrize("what", ["group", "stonewall", "all"])
def test_a_job_that_ends_ends_others(tmp_path: Path, what: str) -> None:
    """The job "a" of a second ends one that would go on for a minute; the job of another group makes all of
    its requests, or is ended too; and the one behind a stone wall begins, or does not.
    """
    apart = "size=3200k" if what == "group" else "time_based\nruntime=60"
    job = (
        f"rate_iops=100\nexitall\n[a]\nbs=4k\nsize=400k\nexit_what={what}\n[b]\nbs=8k\ntime_based\nruntime=60\n"
        f"[c]\nbs=16k\nnew_group\n{apart}\n[d]\nbs=32k\nstonewall\nsize=64k"
    )
    fio = [count for _, count in figures(tmp_path, job)]
    path = tmp_path / "by_ftlab.fio"
    path.write_text(f"[global]\ndirect=1\nrw=read\nsize=1m\n{job}\n")
    result = ftlab.run("map-plus", set={"workload.fio_job": str(path), "host.merge_limit": "0B"})
    sizes = Counter(result.column("size").tolist())
    ftlab_counts = [sizes[kib << 10] for kib in (4, 8, 16, 32)]
    for a, b, c, d in (fio, ftlab_counts):
        assert a == 100
        assert b < 5900
        assert c == 200 if what == "group" else c < 5900
        assert d == (0 if what == "all" else 2)
    assert 100 <= ftlab_counts[1] <= 102


@pytest.mark.parametrize(("more", "seconds"), [("", 3), ("ss_ramp=1", 5), ("group_reporting\nnumjobs=2", 3)])
def test_a_steady_job_ends(tmp_path: Path, more: str, seconds: int) -> None:
    """fio takes a figure each second, the first a little early; a busy machine only makes it later."""
    job = f"time_based\nruntime=60\nrate_iops=100\nss=iops:60%\nss_dur=3\n{more}"
    fio = figures(tmp_path, f"{job}\n[a]")
    workers = 2 if "numjobs" in more else 1
    assert seconds - 1 < fio[0][0] / workers < 60
    path = tmp_path / "by_ftlab.fio"
    path.write_text(f"[a]\ndirect=1\nrw=read\nsize=1m\n{job}\n")
    result = ftlab.run("map-plus", set={"workload.fio_job": str(path), "host.merge_limit": "0B"})
    assert len(result.column("size")) == workers * (seconds * 100 + 1)


@pytest.mark.parametrize(
    ("job", "count"),
    [
        ("rw=randread\nsize=64k\nnumber_ios=5", 5),
        ("rw=randread\nsize=16k\nio_size=64k\nnumber_ios=9", 9),
        ("rw=randread\nsize=16k\nloops=3\nnumber_ios=9", 12),
        ("rw=randread\nsize=64k\nio_size=96k\nloops=2", 32),
        ("rw=randread\nsize=64k\nio_size=32k\nloops=3", 24),
        ("rw=randwrite\nsize=32k\nio_size=64k\nverify=crc32c", 16),
        ("rw=read\nsize=32k\nrate_iops=40\nramp_time=100ms", 8),
    ],
)
def test_the_number_of_requests(tmp_path: Path, job: str, count: int) -> None:
    for requests in both(tmp_path, job):
        assert sum(op != "F" for op, _, _ in requests) == count
