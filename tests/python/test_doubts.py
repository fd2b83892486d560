"""Traces that are not what they seem to be: what is reported about them, and when."""

from __future__ import annotations

import io
import json
import re
import tarfile
from pathlib import Path

import pytest

import ftlab
from front import TRACE, Cli
from ftlab.progress import Reporter

ROWS = 200


def made(*, gap_ns: int = 100_000, size: int = 4096, op: str = "", jump: tuple[int, int] = (0, 0)) -> str:
    """Makes a trace of alternating reads and writes, or only of `op`. `jump` is the number of a row, and the
    time in ns by which that row and all later rows are delayed.
    """
    lines, now = ["time_ns,op,offset,size"], 0
    for row in range(ROWS):
        now += (gap_ns if row else 0) + (jump[1] if row == jump[0] else 0)
        lines.append(f"{now},{op or 'RW'[row % 2]},{row % 50 * 4096},{size}")
    return "\n".join(lines) + "\n"


def logged_twice() -> str:
    """Makes a trace whose recorder logs a tenth of the requests again, a millisecond later."""
    header, *rows = made(gap_ns=2 * 10**6).splitlines()
    again = [row.replace("00000,", "00001,", 1) for row in rows]
    return "\n".join(
        [header, *(line for i, row in enumerate(rows) for line in [row, again[i]][: 1 + (i % 9 == 1)])]
    )


def joined() -> str:
    """Makes a recording followed by the beginning of another, so that too many rows are out of order to be
    sorted.
    """
    rows = [f"{i * 10**6},{'RW'[i % 2]},{i % 50 * 4096},4096" for i in [*range(20_000), *range(1000)]]
    return "\n".join(["time_ns,op,offset,size", *rows]) + "\n"


DAY_NS = 86_400 * 10**9
DOUBTFUL = {
    "twice": (
        logged_twice(),
        "10.3 % of the requests are the same as one of the 4 before them, within 50 ms: if the recorder logs",
    ),
    "joined": (
        joined(),
        "1000 of 21000 stamps go back too far to be sorted, and were raised to the one before",
    ),
    "jump": (made(jump=(99, 1_266_874_890 * 10**9)), "the stamps jump by 1266874890 s at a.csv:101; if that"),
    "days": (
        made(jump=(3, 2 * DAY_NS)),
        "1 gap of a day or more between arrivals, the longest of 2.0 days before",
    ),
    "fast": (made(gap_ns=100), "10050251 requests a second are more than any drive serves: are the stamps"),
    "slow": (made(gap_ns=3_000 * 10**9), "one request in 2985 s on average: are the stamps in another unit?"),
    "sizes": (
        made(size=100),
        "200 of 200 requests are not whole sectors of 512 B, the first at a.csv:2: is it",
    ),
    "reads": (made(op="R"), "all requests are reads: is the column of the operation read right (--format)?"),
    "at-once": (
        made(gap_ns=0),
        "all 200 requests arrive at one time; replay them one after another: --replay",
    ),
}


def test_a_sane_trace_is_not_doubted(cli: Cli) -> None:
    (cli.directory / "a.csv").write_text(made())
    assert cli.ok("trace", "info", "a.csv", "--strict").splitlines()[-1] == "nothing doubtful"
    done = cli("run", "map-plus", "--trace", "a.csv", "--strict")
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("name", DOUBTFUL)
def test_a_doubtful_trace_is_named_with_the_remedy(cli: Cli, name: str) -> None:
    text, doubt = DOUBTFUL[name]
    (cli.directory / "a.csv").write_text(text)
    info = cli("trace", "info", "a.csv")
    assert (info.returncode, info.stderr) == (0, "")
    doubts = [line for line in info.stdout.splitlines() if line.startswith("doubtful: ")]
    assert len(doubts) == 1
    assert doubts[0].startswith(f"doubtful: {doubt}")
    strict = cli("trace", "info", "a.csv", "--strict")
    assert (strict.returncode, strict.stdout) == (2, info.stdout)
    assert strict.stderr.startswith(f"error: a.csv: {doubt}")
    for command in (["run", "map-plus"], ["compare", "map-plus", "--vary", "host.scheduler=noop,map+"]):
        done = cli(*command, "--trace", "a.csv")
        assert done.returncode == 0
        assert done.stderr.startswith(f"warning: a.csv: {doubt}")
        assert done.stderr.count("warning: ") == 1
        assert cli(*command, "--trace", "a.csv", "--strict").returncode == 2


@pytest.mark.parametrize(
    ("name", "remedy"),
    [
        ("jump", ["--max-gap", "60s"]),
        ("days", ["--max-gap", "60s"]),
        ("at-once", ["--replay", "closed"]),
        ("twice", ["--dedup", "50ms"]),
    ],
)
def test_the_remedy_helps(cli: Cli, name: str, remedy: list[str]) -> None:
    (cli.directory / "a.csv").write_text(DOUBTFUL[name][0])
    cli.ok("run", "map-plus", "--trace", "a.csv", "--strict", *remedy)


def test_more_data_than_a_drive_transfers_is_doubted(cli: Cli) -> None:
    """Regression: sectors mistaken for bytes, or the other way round, were not doubted, even at 62 GiB per
    second.
    """
    (cli.directory / "a.csv").write_text(made(size=1 << 28))
    said = cli.ok("trace", "info", "a.csv")
    assert "doubtful: 50 GiB in one second are more than any drive transfers: are sizes or stamps in" in said


def test_a_device_that_cannot_keep_up_is_said_to(cli: Cli) -> None:
    """Regression: a mean latency of seconds, all due to the backlog, was reported without a warning."""
    rows = [f"{i * 10_000},R,{i * 7919 % 50_000 * 4096},4096" for i in range(20_000)]
    rows[5] = rows[5].replace("R", "W")
    (cli.directory / "a.csv").write_text("\n".join(["time_ns,op,offset,size", *rows]) + "\n")
    noop = ("--set", "host.scheduler=noop")

    def warnings(*arguments: str) -> str:
        done = cli("run", "map-plus", "--trace", "a.csv", *arguments)
        assert done.returncode == 0
        return "".join(line for line in done.stderr.splitlines(True) if not line.startswith("note: "))

    first = warnings(*noop)
    said = re.fullmatch(
        r"warning: a\.csv: the device kept up (\d+) % of the time, else requests waited for more than a"
        r" second: these are the latencies of a backlog; try --speed (\S+)\n",
        first,
    )
    assert said, first
    # A request arrives every 10 us and takes 70 us; the first request that waits for a second arrives at
    # 167 ms.
    assert int(said[1]) == 12
    assert warnings(*noop, "--speed", said[2]) == ""
    assert warnings("--replay", "closed") == ""
    both = cli("compare", "map-plus", "--trace", "a.csv", "--vary", "host.scheduler=noop,row").stderr
    assert [line.split(" kept")[0] for line in both.splitlines()] == [
        "warning: noop: the device",
        "warning: row: the device",
    ]


STUDY = """config = "map-plus"
[set]
"workload.trace" = "a.csv"
"""


def test_studies_and_searches_look_at_their_traces_too(cli: Cli) -> None:
    (cli.directory / "a.csv").write_text(DOUBTFUL["reads"][0])
    (cli.directory / "study.toml").write_text(
        STUDY + '[axis.cache]\nkey = "ftl.mapping_cache"\nvalues = ["1KiB", "4KiB"]\n'
    )
    (cli.directory / "tune.toml").write_text(
        'minimize = ["latency.read.mean_ns"]\nruns = 2\nseed = 1\n'
        + STUDY
        + '[parameter.cache]\nkey = "ftl.mapping_cache"\nchoices = ["1KiB", "4KiB"]\n'
    )
    for command in (["sweep", "study.toml"], ["tune", "tune.toml"]):
        strict = cli(*command, "--out", "o", "--strict")
        assert (strict.returncode, strict.stderr.splitlines()[0]) == (
            2,
            f"error: a.csv: {DOUBTFUL['reads'][1]}",
        )
        assert not (cli.directory / "o").exists()
        done = cli(*command, "--out", command[0])
        assert done.returncode == 0
        # Two runs with the same trace give one warning.
        assert done.stderr.count("warning: a.csv: all requests are reads") == 1
        # Existing results are not checked again.
    assert "warning" not in cli("sweep", "study.toml", "--out", "sweep").stderr


def test_parquet_is_looked_at_too(cli: Cli) -> None:
    (cli.directory / "a.csv").write_text(made(op="R"))
    cli.ok("trace", "convert", "a.csv", "a.parquet")
    done = cli("run", "map-plus", "--trace", "a.parquet")
    assert done.stderr.startswith("warning: a.parquet: all requests are reads")


@pytest.mark.parametrize("kind", [tarfile.PAX_FORMAT, tarfile.GNU_FORMAT])
def test_an_archive_is_called_one(cli: Cli, kind: int) -> None:
    data = TRACE.encode()
    with tarfile.open(cli.directory / "a.tar.gz", "w:gz", format=kind) as archive:
        member = tarfile.TarInfo("a.csv")
        member.size = len(data)
        member.pax_headers = {"comment": "x"}
        archive.addfile(member, io.BytesIO(data))
    done = cli("trace", "info", "a.tar.gz")
    assert done.returncode == 2
    assert done.stderr == (
        "error: a.tar.gz: is a tar (or pax) archive: unpack it with tar -xf, and name a file of it\n"
    )


def test_a_trace_at_fault_is_found_before_the_device_is_prepared(cli: Cli) -> None:
    (cli.directory / "a.csv").write_text(TRACE + "1000001,W,99999999999999,4096\n")
    for command in (["run", "vios"], ["compare", "vios", "--vary", "device.scheduler=piq,vios"]):
        prepared = cli(*command, "--trace", "a.csv", "--set", "device.precondition=steady", "--set", "seed=1")
        assert prepared.returncode == 2
        assert prepared.stderr.startswith("error: a.csv:10: ")
        assert "precondition" not in prepared.stderr


def test_the_time_of_preconditioning_is_shown_apart(trace: Path) -> None:
    small = {"flash.blocks_per_plane": 2048, "device.precondition": "steady"}
    result = ftlab.run("map-plus", set=small, trace=trace)
    assert 0 < result.prepare_s < result.engine.wall_s
    engine = next(line for line in str(result).splitlines() if line.startswith("engine: "))
    assert engine.startswith(f"engine: {result.prepare_s:.2f} s of preconditioning, ")
    assert "prepare" not in result.to_json()
    assert "preconditioning" not in str(ftlab.Result(json.loads(result.to_json())))


def test_a_look_at_a_long_trace_shows_a_sign_of_life() -> None:
    stream = io.StringIO()
    with Reporter(stream=stream, every_s=0, unit="requests checked") as reporter:
        reporter.callback("check")(4096)
    assert stream.getvalue().startswith("ftlab: 4,096 requests checked, ")
