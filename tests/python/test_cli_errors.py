"""A user's mistake leads to one short message, exit status 2, and no output file."""

from __future__ import annotations

import gzip
import os
import subprocess
from pathlib import Path

import pytest

from front import TRACE, Cli

MOST_LINES = 12


def check(done: subprocess.CompletedProcess[str], *parts: str) -> None:
    assert done.returncode == 2, (done.returncode, done.stderr)
    assert done.stdout == ""
    lines = done.stderr.splitlines()
    assert 1 <= len(lines) <= MOST_LINES, done.stderr
    assert lines[0].startswith("error: ")
    assert "Traceback" not in done.stderr
    for part in parts:
        assert part in done.stderr, done.stderr
    # The first line is enough by itself: it says where the mistake is.
    assert parts[0] in lines[0], done.stderr


@pytest.fixture
def bad(cli: Cli) -> Cli:
    """Makes a command line in a directory of bad files."""
    here = cli.directory
    (here / "directory").mkdir()
    (here / "empty.csv").write_text("")
    (here / "header.csv").write_text("time_ns,op,offset,size\n")
    (here / "binary.csv").write_bytes(bytes(range(256)) * 64)
    packed = gzip.compress((TRACE * 1).encode() + b"1000000,R,0,4096\n" * 20_000)
    (here / "cut.csv.gz").write_bytes(packed[: len(packed) // 2])
    (here / "negative.csv").write_text(TRACE + "1000001,R,0,-4096\n")
    (here / "far.csv").write_text(TRACE + "1000001,R,99000000000000,4096\n")
    (here / "wrong.toml").write_text('preset = "map-plus"\n[host]\nschduler = "noop"\n')
    (here / "noise.toml").write_bytes(b"\xff\xfe\x00[")
    (here / "fake.parquet").write_bytes(b"PAR1 is not enough")
    return cli


TRACES = [
    ("nothere.csv", "nothere.csv", "No such file"),
    ("directory", "directory", "directory"),
    ("empty.csv", "empty.csv", ""),
    ("header.csv", "header.csv", ""),
    ("binary.csv", "binary.csv", ""),
    ("cut.csv.gz", "cut.csv.gz", ""),
    ("negative.csv", "negative.csv:10", "-4096"),
    ("far.csv", "far.csv:10", "99000000000000"),
    ("fake.parquet", "fake.parquet", "Parquet"),
]


@pytest.mark.parametrize(("name", "where", "what"), TRACES)
def test_bad_trace(bad: Cli, name: str, where: str, what: str) -> None:
    before = sorted(os.listdir(bad.directory))
    outputs = ["--json", "r.json", "--requests", "r.csv"]
    check(bad("run", "map-plus", "--trace", name, *outputs), where, what)
    assert sorted(os.listdir(bad.directory)) == before


@pytest.mark.parametrize(("name", "where", "what"), TRACES)
def test_bad_trace_of_compare(bad: Cli, name: str, where: str, what: str) -> None:
    before = sorted(os.listdir(bad.directory))
    arguments = ["--vary", "host.scheduler=noop,map+", "--json", "r.json", "--plot", "r.png"]
    check(bad("compare", "map-plus", "--trace", name, *arguments), where, what)
    assert sorted(os.listdir(bad.directory)) == before


def test_error_of_one_variant_names_it(bad: Cli) -> None:
    arguments = ["--vary", "workload.out_of_range=wrap,error", "--json", "r.json"]
    done = bad("compare", "map-plus", "--trace", "far.csv", *arguments)
    check(done, "far.csv:10", "in the variant error")


@pytest.mark.parametrize(("name", "where", "what"), [case for case in TRACES if case[0] != "far.csv"])
@pytest.mark.parametrize("command", ["info", "convert"])
def test_bad_trace_of_trace(bad: Cli, command: str, name: str, where: str, what: str) -> None:
    before = sorted(os.listdir(bad.directory))
    target = ["out.parquet"] if command == "convert" else []
    check(bad("trace", command, name, *target), where, what)
    assert sorted(os.listdir(bad.directory)) == before


@pytest.mark.parametrize(
    ("setting", "what"),
    [
        ("ftl.mapping_cache=0B", "0B"),
        ("host.queue_depth=0", "0"),
        ("device.queue_depth=0", "0"),
        ("host.schduler=noop", "host.scheduler"),
        ("host.scheduler=mapp", "map+"),
        ("ftl.mapping_cache=16K", "16KiB"),
        ("flash.page=0B", "0B"),
        ("flash.capacity=3GiB", "flash.capacity"),
        ("host", "KEY=VALUE"),
        ("=noop", "KEY=VALUE"),
    ],
)
def test_bad_setting_names_the_option(cli: Cli, setting: str, what: str) -> None:
    done = cli("run", "map-plus", "--trace", "a.csv", "--set", setting, "--json", "r.json")
    check(done, f"--set {setting}", what)
    assert os.listdir(cli.directory) == ["a.csv"]


def test_bad_flag_names_the_flag(cli: Cli) -> None:
    check(cli("run", "map-plus", "--trace", "a.csv", "--dedup", "50"), "--dedup 50", "50ms")
    check(cli("run", "map-plus", "--trace", "a.csv", "--format", "msrr"), "--format msrr", "msr")


def test_bad_configuration_names_file_line_and_key(bad: Cli) -> None:
    check(bad("run", "wrong.toml", "--trace", "a.csv"), "wrong.toml:3: ", "host.schduler", "host.scheduler")
    check(bad("run", "noise.toml"), "noise.toml:1")
    check(bad("run", "directory"), "directory")
    check(bad("run", "map-pluss"), "map-pluss", "map-plus")
    check(bad("run", "nothere.toml"), "nothere.toml")


def test_inputs_without_an_end(bad: Cli) -> None:
    """Regression: a fio job was read until memory was full, a targets file of any size was read completely,
    and a nested targets file was parsed until Python's stack overflowed.
    """
    job = ["run", "coop-fast", "--set", "workload.fio_job=/dev/zero"]
    check(bad(*job), "/dev/zero: larger than 1MiB, so not a fio job file")
    with (bad.directory / "large.toml").open("wb") as file:
        file.truncate(3 << 30)
    large = bad("trace", "fit", "large.toml", "--out", "m")
    check(large, "large.toml: larger than 1MiB, so not a targets file")
    for deep in ("[" * 500_000, "a." * 500_000):
        (bad.directory / "deep.toml").write_text(f"a = 1\nb = {deep}")
        check(bad("trace", "fit", "deep.toml", "--out", "m"), "deep.toml:2: not valid TOML")
        check(bad("run", "deep.toml"), "deep.toml:2")
    check(bad("run", "/dev/zero"), "/dev/zero: larger than 1MiB, so not a configuration")
    check(bad("trace", "fit", "noise.toml", "--out", "m"), "noise.toml:1")


def test_no_workload(cli: Cli) -> None:
    check(cli("run", "map-plus"), "--trace FILE", "workload.synthetic.requests")


@pytest.mark.parametrize(
    ("vary", "what"),
    [
        ("host.scheduler", "--vary KEY=A,B"),
        ("=a,b", "--vary KEY=A,B"),
        ("host.scheduler=noop,", "empty value"),
        ("host.scheduler=noop,noop", "twice"),
        ("host.scheduler=noop,mapp", "map+"),
        ("host.schduler=noop", "host.scheduler"),
        ("ftl.mapping_cache=16KiB..64KiB", "list the values, ftl.mapping_cache=16KiB,...,64KiB"),
        ("seed=" + ",".join(map(str, range(1001))), "1001 variants"),
    ],
)
def test_bad_vary(cli: Cli, vary: str, what: str) -> None:
    done = cli("compare", "map-plus", "--trace", "a.csv", "--vary", vary, "--json", "r.json")
    check(done, "--vary", what)
    assert os.listdir(cli.directory) == ["a.csv"]


def test_vary_of_a_key_twice(cli: Cli) -> None:
    done = cli("compare", "map-plus", "--trace", "a.csv", "--vary", "seed=1", "--vary", "seed=2")
    check(done, "--vary seed=2", "varied already")


@pytest.mark.parametrize(
    ("option", "path", "what"),
    [
        ("--json", "a.csv/r.json", "is not a directory"),
        ("--json", ".", "directory"),
        ("--json", "/proc/r.json", "cannot write"),
        ("--requests", "a.csv", "would replace the input"),
        ("--json", "r.html", "must end in .json"),
        ("--html", "r.pdf", "must end in .html"),
        ("--requests", "-", "only --json prints to standard output"),
        ("--requests", "r.txt", ".csv or .parquet"),
        ("--requests", "/proc/r.parquet", "cannot write"),
    ],
)
def test_unwritable_output_is_found_before_the_run(cli: Cli, option: str, path: str, what: str) -> None:
    # A run of 10^12 requests would not end, so the error shows that the check comes first.
    endless = ["--set", "workload.synthetic.requests=1000000000000"]
    if path == "a.csv":
        endless = ["--trace", "a.csv"]
    done = cli("run", "map-plus", *endless, option, path)
    check(done, f"{option} {path}", what)
    assert (cli.directory / "a.csv").read_text() == TRACE
    assert os.listdir(cli.directory) == ["a.csv"]


def test_same_file_for_two_outputs(cli: Cli) -> None:
    done = cli("run", "map-plus", "--trace", "a.csv", "--json", "r.json", "--timeline", "r.json")
    check(done, "--timeline r.json", "--json")


@pytest.mark.parametrize("option", ["--json", "--requests"])
def test_full_disk(cli: Cli, option: str) -> None:
    target = "/dev/full"
    if option == "--requests":
        target = "full.csv"
        (cli.directory / target).symlink_to("/dev/full")
    done = cli("run", "map-plus", "--trace", "a.csv", option, target)
    check(done, option, "No space left on device")
    assert Path("/dev/full").is_char_device()


def test_full_disk_behind_a_requests_parquet(cli: Cli) -> None:
    (cli.directory / "full.parquet").symlink_to("/dev/full")
    done = cli("run", "map-plus", "--trace", "a.csv", "--requests", "full.parquet")
    check(done, "--requests full.parquet", "No space left on device")


@pytest.mark.parametrize("picture", ["full.png", "full.svg"])
def test_full_disk_behind_a_plot(cli: Cli, picture: str) -> None:
    (cli.directory / picture).symlink_to("/dev/full")
    arguments = ["--vary", "host.scheduler=noop,map+", "--plot", picture]
    done = cli("compare", "map-plus", "--trace", "a.csv", *arguments)
    check(done, f"--plot {picture}", "No space left on device")


@pytest.mark.parametrize(
    "arguments",
    [
        ["run", "map-plus", "--trace", "a.csv"],
        ["run", "map-plus", "--trace", "a.csv", "--json", "-"],
        ["compare", "map-plus", "--trace", "a.csv", "--vary", "host.scheduler=noop,map+"],
        ["trace", "info", "a.csv"],
        ["schema"],
        ["--help"],
    ],
)
def test_full_standard_output(cli: Cli, arguments: list[str]) -> None:
    command = " ".join(["exec", "python3", "-m", "ftlab", *arguments, ">/dev/full"])
    done = shell(cli, command)
    assert done.returncode == 2
    assert done.stderr == "error: standard output: No space left on device\n"


def shell(cli: Cli, command: str) -> subprocess.CompletedProcess[str]:
    import sys

    command = command.replace("python3", f"'{sys.executable}'", 1)
    return subprocess.run(
        ["bash", "-c", command], cwd=cli.directory, capture_output=True, text=True, timeout=60, check=False
    )


@pytest.mark.parametrize(
    "arguments",
    ["--help", "schema", "components", "run map-plus --trace a.csv --json -", "trace head a.csv"],
)
def test_closed_pipe_is_quiet(cli: Cli, arguments: str) -> None:
    done = shell(cli, f"python3 -m ftlab {arguments} | true; exit ${{PIPESTATUS[0]}}")
    assert (done.returncode, done.stderr) == (0, "")


def test_standard_output_and_pipes_by_name(cli: Cli) -> None:
    run = "python3 -m ftlab run map-plus --trace a.csv --json"
    for target, text in (
        (">(cat) | cat", True),
        ("/dev/stdout | cat", False),
        ("/dev/stdout > o; cat o", False),
    ):
        done = shell(cli, f"{run} {target}")
        assert (done.returncode, done.stderr) == (0, "")
        assert '"schema": "ftlab.result.v1"' in done.stdout
        assert ("where the time went" in done.stdout) is text


@pytest.mark.parametrize(
    ("arguments", "first", "rest"),
    [
        (["run"], "missing argument 'CONFIG'", "ftlab run --help"),
        (["run", "map-plus", "--jsn", "x"], "no such option '--jsn'", "--json"),
        (["rnu"], "no such command 'rnu'", "run"),
        (["run", "map-plus", "b.csv"], "unexpected extra argument", "did you mean --trace b.csv?"),
        (["run", "map-plus", "seed=2"], "unexpected extra argument", "did you mean --set seed=2?"),
        (["run", "map-plus", "--trace", "a.csv", "b.csv"], "unexpected extra argument (b.csv)\n", ""),
        (["run", "map-plus", "emmc-5.1"], "unexpected extra argument (emmc-5.1)\n", ""),
        (["run", "map-plus", "--set", "host.scheduler", "noop"], "write --set host.scheduler=noop", ""),
        (["compare", "map-plus", "--vary", "seed", "1,2"], "--vary seed 1,2: write --vary seed=1,2", ""),
        (["run", "map-plus", "--plot", "x.png"], "it is an option of `ftlab compare`; here --html FILE", ""),
        (["run", "map-plus", "--vary", "seed=1,2"], "it is an option of `ftlab compare`", ""),
        (["run", "--preset", "map-plus"], "the preset or file is the first argument", "--preset"),
        (["reproduce", "fig9"], "a figure, of coop, map-plus, vios: ftlab reproduce coop fig9", ""),
        (["components", "host.schedulr"], "host.schedulr", "did you mean host.scheduler?"),
        (
            ["serve", "map-plus", "--nbd", "unix:/no/x/s"],
            "--nbd unix:/no/x/s: there is no directory /no/x",
            "",
        ),
        (["serve", "map-plus", "--fuse", "/no/x"], "--fuse /no/x: there is no directory /no/x", ""),
        (
            ["serve", "map-plus", "--fuse", ".", "--media", "no/m"],
            "--media no/m: there is no directory no",
            "",
        ),
        (
            ["serve", "map-plus", "--fuse", ".", "--control", "no/c"],
            "--control no/c: there is no directory",
            "",
        ),
        (["compare", "map-plus"], "missing option '--vary'", "ftlab compare --help"),
        (["compare", "map-plus", "--vary", "seed=1", "--jobs", "0"], "--jobs", "x>=1"),
        (["run", "map-plus", "--htlm", "x.html"], "no such option '--htlm'", ""),
        (["simulate", "map-plus"], "no such command 'simulate'", ""),
        (["trace", "head", "a.csv", "-n", "x"], "'-n'", "not a valid integer"),
        (["presets", "map-pluss"], "map-pluss", "map-plus"),
    ],
)
def test_usage(cli: Cli, arguments: list[str], first: str, rest: str) -> None:
    done = cli(*arguments)
    check(done, first.removesuffix("\n"), first, rest)


def test_a_policy_in_the_place_of_another(cli: Cli) -> None:
    """Regression: the message was that the name is unknown, with a list of built-in names."""
    (cli.directory / "mine.py").write_text(
        "import ftlab\nclass Mine(ftlab.VictimPolicy):\n    def choose(self, candidates): return 0\n"
    )
    done = cli("run", "map-plus", "--trace", "a.csv", "--set", "host.scheduler=python:mine.py:Mine")
    check(
        done,
        "Mine is a VictimPolicy, for ftl.gc or ftl.translation_gc",
        "host.scheduler takes a HostScheduler",
    )


def test_name_that_is_no_text(cli: Cli) -> None:
    done = cli("run", "map-plus", "--trace", os.fsdecode(b"\xff.csv"))
    check(done, "\\udcff.csv", "not UTF-8")


def test_an_option_in_place_of_a_name_makes_no_file(cli: Cli) -> None:
    before = sorted(path.name for path in cli.directory.iterdir())
    for words in (
        ("run", "map-plus", "--json", "--quiet"),
        ("run", "map-plus", "--json", "./--quiet/a.json"),
        ("run", "map-plus", "--html", "--check"),
        ("sweep", "study.toml", "--out", "--dry-run"),
        ("tune", "tune.toml", "--out", "--strict"),
        ("reproduce", "vios", "--out", "--quick"),
    ):
        check(cli(*words), f"{words[2]} {words[3]}: that is an option")
    assert sorted(path.name for path in cli.directory.iterdir()) == before


def test_a_study_and_a_search_are_told_apart(cli: Cli) -> None:
    (cli.directory / "study.toml").write_text(
        'config = "map-plus"\n[axis.seed]\nkey = "seed"\nvalues = [1, 2]\n'
    )
    (cli.directory / "tune.toml").write_text(
        'config = "map-plus"\nminimize = ["waf.total"]\nruns = 2\n'
        '[parameter.scheduler]\nkey = "host.scheduler"\nchoices = ["noop", "map"]\n'
    )
    check(cli("tune", "study.toml", "--out", "out"), "study.toml: a study", "`ftlab sweep`")
    check(cli("sweep", "tune.toml", "--out", "out"), "tune.toml: a search", "`ftlab tune`")
    assert not (cli.directory / "out").exists()
