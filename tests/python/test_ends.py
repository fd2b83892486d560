"""A campaign of signals and full disks at random moments, with every command that writes files.

Whenever a command ends, each file is complete or absent, nothing else is left behind, and no output is a
traceback. A study or a search that was stopped can be resumed once there is room. `make soak` has the long
form.
"""

from __future__ import annotations

import contextlib
import errno
import gzip
import json
import os
import random
import re
import resource
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import campaign
from front import TRACE, Cli
from test_reproduce import FIGURE, PAPER, PUBLISHED, TABLE, TRACES

WORK = ("--set", "workload.synthetic.requests=30000", "--set", "workload.synthetic.interarrival=400us")
DEVICE = ("--set", "flash.blocks_per_plane=64", "--set", "workload.synthetic.region=4MiB")
RUN = ("run", "map-plus", *WORK, *DEVICE)
COMPARE = ("compare", "map-plus", *WORK, *DEVICE, "--vary", "host.scheduler=noop,map+")
TARGETS = "[targets.one]\nreads = 3000\nwrites = 2000\nmean_size = '8KiB'\n[targets.two]\nreads = 900\n"

COMMANDS: dict[str, tuple[str, ...]] = {
    "run": (*RUN, "--json", "r.json", "--requests", "r.csv", "--timeline", "r.perfetto-trace"),
    "run to Parquet": (*RUN, "--requests", "r.parquet", "--save-state", "r.state"),
    "run to a page": (*RUN, "--html", "r.html", "--json", "r.json", "--output-format", "fio"),
    "compare": (*COMPARE, "--json", "c.json", "--plot", "c.png", "--plot", "c.svg", "--html", "c.html"),
    "crash": ("crash", "crash", "--cuts", "30", "--json", "k.json"),
    "info": ("trace", "info", "long.csv", "--json", "i.json"),
    "convert": ("trace", "convert", "long.csv", "t.csv"),
    "convert to Parquet": ("trace", "convert", "long.csv", "t.parquet"),
    "generate": ("trace", "generate", "g.csv", "--requests", "400000"),
    "generate Parquet": ("trace", "generate", "g.parquet", "--requests", "1000000"),
    "fit": ("trace", "fit", "mid.csv", "--out", "m.toml", "--json", "f.json"),
    "fit targets": ("trace", "fit", "targets.toml", "--out", "models"),
    "sweep": ("sweep", "study.toml", "--out", "swept", "--jobs", "2"),
    "tune": ("tune", "tune.toml", "--out", "tuned", "--jobs", "1"),
    "reproduce": ("reproduce", "tiny", "--root", "root", "--out", "out", "--cache", "cache", "--quick"),
}
"""Every command that writes files, with all kinds of files."""

RESUMED = ("sweep", "tune", "reproduce")
"""The commands that continue where they were stopped."""

STUDY = """
config = "map-plus"
[set]
"flash.blocks_per_plane" = 64
"workload.synthetic.requests" = 2000
[axis.scheduler]
key = "host.scheduler"
values = ["noop", "map+"]
[axis.seed]
key = "seed"
range = [1, 6, 1]
"""
SEARCH = """
config = "map-plus"
minimize = ["latency.all.percentile_ns.99"]
runs = 8
[set]
"flash.blocks_per_plane" = 64
"workload.synthetic.requests" = 2000
[parameter.cache]
key = "ftl.mapping_cache"
range = ["4KiB", "64KiB"]
"""

STARTS = ("Fatal Python error: init_", "Could not import runpy module")
"""The interpreter's messages if a signal ends it before ftlab has started."""


def whole(path: Path) -> None:
    """Fails if the file is incomplete."""
    data = path.read_bytes()
    match path.suffix:
        case ".json":
            json.loads(data)
        case ".parquet":
            # Since no run of the study fails, failures.parquet has no rows.
            assert pl.read_parquet(path).height > 0 or path.stem == "failures"
        case ".csv" | ".toml" | ".state" | ".perfetto-trace":
            assert data
            assert path.suffix not in (".csv", ".toml") or data.endswith(b"\n")
        case ".html":
            assert data.rstrip().endswith(b"</html>")
        case ".svg":
            assert data.rstrip().endswith(b"</svg>")
        case ".png":
            assert data.endswith(b"IEND\xaeB`\x82")
        case ".gz":
            assert gzip.decompress(data).endswith(b"}")
        case ".journal":
            assert [json.loads(line) for line in data.splitlines(keepends=True) if line.endswith(b"\n")]
        case "" if path.name == ".lock":
            pass
        case _:
            raise AssertionError(f"{path.name} was left behind")


@dataclass(frozen=True)
class Reference:
    """The outcome of a command if nothing disturbs it."""

    seconds: float
    sizes: dict[str, int]
    """The size in bytes of each file that the command writes."""


def contents(folder: Path) -> dict[str, int]:
    return {
        str(path.relative_to(folder)): path.stat().st_size for path in folder.rglob("*") if path.is_file()
    }


def set_up(folder: Path) -> None:
    (folder / "a.csv").write_text(TRACE)
    rows = (f"{number * 1000},{'RW'[number % 2]},{number % 512 * 4096},4096\n" for number in range(200_000))
    (folder / "long.csv").write_text("time_ns,op,offset,size\n" + "".join(rows))
    rows = (
        f"{number * 100_000},{'RW'[number % 2]},{number * 37 % 16384 * 4096},4096\n" for number in range(5000)
    )
    (folder / "mid.csv").write_text("time_ns,op,offset,size\n" + "".join(rows))
    (folder / "targets.toml").write_text(TARGETS)
    (folder / "study.toml").write_text(STUDY)
    (folder / "tune.toml").write_text(SEARCH)
    papers = folder / "root" / "papers" / "tiny"
    papers.mkdir(parents=True)
    (papers.parent / "traces.toml").write_text(TRACES)
    (papers / "paper.toml").write_text(PAPER.replace(', "fig1-recorded"]', "]"))
    (papers / "fig1.toml").write_text("report = true\n" + FIGURE)
    (papers / "table1.toml").write_text(TABLE)
    (papers / "published.toml").write_text(PUBLISHED.replace("mean(change(mean_latency(), 0))", "1"))


def command(name: str) -> list[str]:
    return [sys.executable, "-m", "ftlab", *COMMANDS[name]]


@pytest.fixture(scope="module")
def inputs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Makes a directory with the files that the commands read."""
    folder = tmp_path_factory.mktemp("inputs")
    set_up(folder)
    return folder


@pytest.fixture(scope="module")
def reference(inputs: Path, tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Reference]:
    """Returns a function that returns each command's undisturbed outcome, measured when first requested."""
    found: dict[str, Reference] = {}

    def look(name: str) -> Reference:
        if name not in found:
            folder = tmp_path_factory.mktemp("reference") / "work"
            shutil.copytree(inputs, folder)
            start = time.monotonic()
            done = subprocess.run(command(name), cwd=folder, capture_output=True, text=True, check=False)
            assert done.returncode == 0, done.stderr
            sizes = {path: size for path, size in contents(folder).items() if not (inputs / path).exists()}
            assert sizes
            found[name] = Reference(time.monotonic() - start, sizes)
        return found[name]

    return look


@contextlib.contextmanager
def small_disk(folder: Path, room: str) -> Iterator[None]:
    """Mounts a disk that is full after this many bytes or inodes, including the inputs; needs root."""
    subprocess.run(["mount", "-t", "tmpfs", "-o", room, "tmpfs", folder], check=True)
    try:
        yield
    finally:
        subprocess.run(["umount", folder], check=True)


def mounts() -> bool:
    """Whether a disk may be mounted here."""
    return os.geteuid() == 0 and shutil.which("mount") is not None and Path("/proc/mounts").exists()


def by_signal(name: str, folder: Path, seconds: float, draw: random.Random) -> str:
    """Ends a command by signals at a random moment; returns its output."""
    number = draw.choice([signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
    process = subprocess.Popen(
        command(name),
        cwd=folder,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONFAULTHANDLER": "1"},
    )
    time.sleep(draw.uniform(0, 1.1 * seconds))
    for _ in range(draw.choice([1, 1, 2, 3])):
        process.send_signal(number)
        time.sleep(draw.choice([0, 0, 0.01, 0.1]))
    try:
        _, said = process.communicate(timeout=120)
    except subprocess.TimeoutExpired:
        # On this signal, the process prints its stack.
        process.send_signal(signal.SIGABRT)
        raise AssertionError(f"it goes on after {number!r}: {process.communicate()[1]}") from None
    if any(start in said for start in STARTS):
        return ""
    # -number means that the signal came before ftlab had begun, or while it was only reading a trace.
    assert process.returncode in (0, 128 + number, -number), (process.returncode, said)
    if process.returncode == 128 + number:
        assert said.endswith(("interrupted\n", "terminated\n", "hung up\n")), said
    elif process.returncode == -number:
        # The interpreter's own output for an interrupt during its start is not ftlab's: it comes before
        # `main`.
        assert ", in main\n" not in said, said
        said = ""
    return said


def by_disk(name: str, folder: Path, **limits: Any) -> str:
    """Runs a command that writes to a disk which becomes full; returns its output."""
    done = subprocess.run(
        command(name), cwd=folder, capture_output=True, text=True, timeout=120, check=False, **limits
    )
    assert done.returncode in (0, 2), (done.returncode, done.stderr)
    if done.returncode == 2:
        why = [os.strerror(number) for number in (errno.ENOSPC, errno.EFBIG)]
        assert any(text in done.stderr for text in why), done.stderr
    said: str = done.stderr
    return said


def by_output(name: str, folder: Path, closed: bool) -> str:
    """Runs a command whose standard output is full or closed; returns its messages."""
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            command(name),
            cwd=folder,
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            timeout=120,
            check=False,
            preexec_fn=(lambda: os.close(1)) if closed else None,
        )
    assert done.returncode in (0, 2), (done.returncode, done.stderr)
    if done.returncode == 2:
        why = os.strerror(errno.EBADF if closed else errno.ENOSPC)
        assert f"error: standard output: {why}\n" in done.stderr, done.stderr
    said: str = done.stderr
    return said


def room_for(usual: Reference, inputs: Path, draw: random.Random) -> str:
    """Returns a disk size that may or may not suffice for a command."""
    if draw.random() < 0.4:
        there = 1 + sum(1 for _ in inputs.rglob("*"))
        return f"size=1g,nr_inodes={there + draw.randrange(1, len(usual.sizes) + 8)}"
    # A file takes up whole pages, and a directory takes up one page.
    pages = sum(-(-size // 4096) for size in contents(inputs).values()) + sum(1 for _ in inputs.rglob("*"))
    return f"size={(pages + 64) * 4096 + draw.randrange(2 * sum(usual.sizes.values()) + (1 << 16))}"


def one(number: int, inputs: Path, reference: Callable[[str], Reference], folder: Path) -> None:
    draw = random.Random(number)
    name = draw.choice(list(COMMANDS))
    usual = reference(name)
    how = draw.choice(["signal", "signal", "limit", "disk" if mounts() else "limit", "output"])
    folder.mkdir()
    largest = max(usual.sizes.values())
    with contextlib.ExitStack() as stack:
        if how == "disk":
            stack.enter_context(small_disk(folder, room_for(usual, inputs, draw)))
        shutil.copytree(inputs, folder, dirs_exist_ok=True)
        if how == "signal":
            said = by_signal(name, folder, usual.seconds, draw)
        elif how == "limit":
            most = draw.randrange(largest + largest // 4 + 1)
            limit = lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (most, most))  # noqa: E731
            said = by_disk(name, folder, preexec_fn=limit)
        elif how == "output":
            said = by_output(name, folder, draw.random() < 0.5)
        else:
            said = by_disk(name, folder)
        assert "Traceback" not in said and "panic" not in said and "Exception" not in said, said
        if name in RESUMED:
            if how == "disk":
                subprocess.run(["mount", "-o", "remount,size=1g,nr_inodes=10000", folder], check=True)
            again = subprocess.run(command(name), cwd=folder, capture_output=True, text=True, check=False)
            assert again.returncode == 0, again.stderr
            assert contents(folder).keys() - contents(inputs).keys() >= usual.sizes.keys()
        for path in contents(folder):
            if not (inputs / path).exists():
                assert path in usual.sizes, f"{path} was left behind"
                whole(folder / path)
    shutil.rmtree(folder)


PARTS = 5


@pytest.mark.parametrize("part", range(PARTS))
def test_nothing_is_half_written_or_left_behind(
    part: int, inputs: Path, reference: Callable[[str], Reference], tmp_path: Path
) -> None:
    """Tests 10 of 50 cases in each part; the long form is not divided into parts."""
    if campaign.long() and part:
        pytest.skip("the long form is in one part")
    if not mounts():
        print("no disk may be mounted here: full disks are limits on the size of files alone")
    for number in campaign.cases("ends", range(part * 10, part * 10 + 10)):
        try:
            one(number, inputs, reference, tmp_path / "work")
        except Exception as error:
            error.add_note(f"case {number}")
            raise


def limited(cli: Cli, size: int, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "ftlab", *arguments],
        cwd=cli.directory,
        capture_output=True,
        text=True,
        check=False,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (size, size)),
    )


def test_a_study_on_a_full_disk_says_so(cli: Cli) -> None:
    """Regression: the error was `parquet: File out of specification: Invalid thrift: transport error`."""
    (cli.directory / "study.toml").write_text(STUDY)
    done = limited(cli, 40_000, "sweep", "study.toml", "--out", "out")
    assert done.returncode == 2
    # On a slow machine the first file that does not fit may be a part of the table.
    assert re.fullmatch(r"error: --out out/\S+\.parquet: cannot write: File too large\n", done.stderr)


def test_too_few_inodes_are_the_users_error(cli: Cli) -> None:
    """Regression: the exit status was 1, and a bug in ftlab was reported."""
    if not mounts():
        pytest.skip("no disk may be mounted here")
    (cli.directory / "study.toml").write_text(STUDY)
    (cli.directory / "d").mkdir()
    for inodes in range(2, 9):
        with small_disk(cli.directory / "d", f"nr_inodes={inodes}"):
            done = cli("sweep", "study.toml", "--out", "d/out")
        assert done.returncode == 2, done.stderr
        assert "error: --out d/out" in done.stderr and "No space left on device" in done.stderr


@pytest.mark.parametrize("words", [["presets"], ["--version"], ["run", "--help"], ["schema"]])
def test_a_closed_standard_output_is_the_users_error(cli: Cli, words: list[str]) -> None:
    """Regression: `>&-` caused a traceback."""
    command = [sys.executable, "-m", "ftlab", *words]
    done = subprocess.run(
        command,
        cwd=cli.directory,
        stderr=subprocess.PIPE,
        text=True,
        check=False,
        preexec_fn=lambda: os.close(1),
    )
    assert (done.returncode, done.stderr) == (2, "error: standard output: Bad file descriptor\n")


@pytest.mark.parametrize(
    ("error", "status", "said"),
    [
        ("OSError(errno.EMFILE, 'Too many open files')", 2, "error: Too many open files\n"),
        ("OSError(errno.ENOSPC, 'No space', 'a/b')", 2, "error: a/b: No space\n"),
        ("OSError('odd')", 1, "ftlab: internal error: OSError: odd\n"),
    ],
)
def test_only_standard_output_is_taken_for_it(cli: Cli, error: str, status: int, said: str) -> None:
    """Regression: any system error without a file name was reported as an error of standard output."""
    code = f"""
import errno
from ftlab import __main__, _core
def broken(*arguments, **keywords):
    raise {error}
_core.run = broken
import sys
sys.argv[1:] = ["run", "map-plus", "--trace", "a.csv"]
__main__.main()
"""
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, cwd=cli.directory, capture_output=True, text=True, check=False)
    assert done.returncode == status
    assert done.stderr.startswith(said)


@pytest.mark.parametrize(
    "arguments", [["generate", "g.parquet", "--requests", "100000"], ["convert", "a.csv", "g.parquet"]]
)
def test_parquet_on_a_full_disk_is_the_users_error(cli: Cli, arguments: list[str]) -> None:
    """Regression: the exit status was 1, and a bug in ftlab was reported."""
    done = limited(cli, 100, "trace", *arguments)
    assert (done.returncode, done.stderr) == (
        2,
        "error: g.parquet: cannot write: File too large\n",
    )
    assert os.listdir(cli.directory) == ["a.csv"]


def test_a_comparison_on_a_full_disk_says_what_it_wrote(cli: Cli) -> None:
    """Regression: one of two files had been written when the other failed, and no message said so."""
    size = ("--set", "workload.synthetic.requests=100", *DEVICE)
    outputs = ("--plot", "c.png", "--html", "c.html")
    done = limited(cli, 400_000, "compare", "map-plus", *size, "--vary", "host.scheduler=noop,map+", *outputs)
    said = "error: --html c.html: cannot write: File too large\n  written before that: --plot c.png\n"
    assert (done.returncode, done.stderr) == (2, said)
    assert sorted(os.listdir(cli.directory)) == ["a.csv", "c.png"]
