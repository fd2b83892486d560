"""The command line as a new user meets it."""

from __future__ import annotations

import csv
import io
import itertools
import json
import os
import pty
import re
import resource
import select
import signal
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import click
import polars as pl
import pytest

from front import Cli, wait_until_busy
from ftlab import _core
from ftlab.cli import COMMANDS, GROUPS, describe
from ftlab.cli import cli as commands

SCHEDULERS = "noop,row,amphibian,hp,rb,map,map+"
WORK = ("--set", "workload.synthetic.requests=20000", "--set", "workload.synthetic.interarrival=400us")


def without_engines(text: str) -> str:
    """Returns JSON text without its `engine` blocks."""
    blank = re.sub(r'"engine": \{[^}]*\}', '"engine": {}', text)
    assert blank != text
    return blank


def test_run_prints_a_report_and_nothing_else(cli: Cli) -> None:
    done = cli("run", "map-plus", "--trace", "a.csv")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("map-plus: scheduler map+, device scheduler noop, FTL dftl")
    for part in ("workload: 8 requests", "read: 4 requests", "write: 3 requests", "where the time went: "):
        assert part in done.stdout


def test_run_writes_json_and_requests(cli: Cli) -> None:
    text = cli.ok("run", "map-plus", "--trace", "a.csv", "--json", "r.json", "--requests", "r.csv")
    assert "where the time went" in text
    result = json.loads((cli.directory / "r.json").read_text())
    assert result["schema"] == "ftlab.result.v1"
    assert list(result)[-1] == "engine"
    with (cli.directory / "r.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert [int(row["id"]) for row in rows] == list(range(1, 9))
    reads = [int(row["complete_ns"]) - int(row["arrival_ns"]) for row in rows if row["op"] == "R"]
    assert sum(reads) / len(reads) == result["latency"]["read"]["mean_ns"]
    assert sorted(os.listdir(cli.directory)) == ["a.csv", "r.csv", "r.json"]


def test_requests_parquet_equals_csv(cli: Cli) -> None:
    cli.ok("run", "map-plus", *WORK, "--requests", "r.csv")
    cli.ok("run", "map-plus", *WORK, "--requests", "r.parquet")
    frame = pl.read_parquet(cli.directory / "r.parquet")
    assert frame.height == 20_000
    assert frame.schema["op"] == pl.Enum(["R", "W", "T", "F"])
    assert frame.schema["expired"] == pl.Boolean
    assert frame["batch"].null_count() > 0
    flags = [pl.col(name).cast(pl.Int64) for name in ("prioritized", "expired")]
    again = frame.with_columns(*flags, pl.col("op").cast(pl.String)).write_csv()
    assert again == (cli.directory / "r.csv").read_text()
    assert sorted(os.listdir(cli.directory)) == ["a.csv", "r.csv", "r.parquet"]


def test_a_key_set_in_vain_is_noted(cli: Cli) -> None:
    keys = ("--set", "host.scheduler=noop", "--set", "host.deadline=5ms")
    done = cli("run", "map-plus", "--trace", "a.csv", *keys)
    note = 'note: host.deadline: ignored: host.scheduler = "noop" dispatches nothing by deadline\n'
    assert (done.returncode, done.stderr) == (0, note)


def test_a_comparison_says_what_its_variants_ignore(cli: Cli) -> None:
    """Regression: nothing was reported, whichever keys were varied or set to no effect."""
    deadlines = ("--vary", "host.deadline=1ms,5ms")
    done = cli("compare", "map-plus", "--trace", "a.csv", *deadlines, "--set", "host.scheduler=noop")
    why = 'ignored: host.scheduler = "noop" dispatches nothing by deadline'
    said = f"error: --vary host.deadline: every variant ignores it; 1ms: {why}\n"
    assert (done.returncode, done.stdout, done.stderr) == (2, "", said)
    done = cli("compare", "map-plus", "--trace", "a.csv", *deadlines, "--vary", "host.scheduler=noop,map+")
    some = "note: host.deadline: ignored by 2 of 4 variants: 1ms, noop; 5ms, noop\n"
    assert (done.returncode, done.stderr) == (0, some)
    keys = ("--set", "host.scheduler=noop", "--set", "host.deadline=5ms", "--vary", "seed=1,2")
    done = cli("compare", "map-plus", "--trace", "a.csv", *keys)
    assert (done.returncode, done.stderr) == (0, f"note: host.deadline: {why}\n")


def test_json_on_standard_output_is_all_there_is(cli: Cli) -> None:
    done = cli("run", "map-plus", "--trace", "a.csv", "--json", "-")
    assert done.stderr == ""
    assert json.loads(done.stdout)["trace"]["requests"] == 8
    done = cli("compare", "map-plus", "--trace", "a.csv", "--vary", "seed=1,2", "--json", "-")
    assert done.stderr == ""
    assert [variant["label"] for variant in json.loads(done.stdout)["variants"]] == ["1", "2"]


def test_shorthand_flags_are_keys(cli: Cli) -> None:
    flags = ["--dedup", "50ms", "--max-gap", "60s", "--skip-bad", "3", "--format", "csv", "--seed", "9"]
    flags += ["--out-of-range", "wrap", "--speed", "2", "--repeat", "3", "--replay", "closed"]
    result = json.loads(cli.ok("run", "map-plus", "--trace", "a.csv", *flags, "--json", "-"))
    assert result["config"]["seed"] == 9
    workload = result["config"]["workload"]
    names = ("trace", "dedup", "max_gap", "skip_bad", "format", "out_of_range", "speed", "repeat", "replay")
    expected: list[Any] = ["a.csv", "50ms", "60s", 3, "csv", "wrap", 2.0, 3, "closed"]
    assert [workload[name] for name in names] == expected
    assert result["trace"]["requests"] == 8 * 3


def test_flag_beats_set_and_file(cli: Cli) -> None:
    (cli.directory / "c.toml").write_text('preset = "map-plus"\nseed = 1\n[host]\nscheduler = "row"\n')
    arguments = [
        "--trace",
        "a.csv",
        "--seed",
        "3",
        "--set",
        "seed=2",
        "--set",
        "host.scheduler=hp",
        "--json",
        "-",
    ]
    config = json.loads(cli.ok("run", "c.toml", *arguments))["config"]
    assert (config["seed"], config["host"]["scheduler"]) == (3, "hp")


def test_preset_printed_is_a_file_that_runs_the_same(cli: Cli) -> None:
    (cli.directory / "p.toml").write_text(cli.ok("presets", "map-plus"))
    both = [
        json.loads(cli.ok("run", name, "--trace", "a.csv", "--json", "-")) for name in ("map-plus", "p.toml")
    ]
    assert both[0]["latency"] == both[1]["latency"]
    assert both[0]["config"]["ftl"] == both[1]["config"]["ftl"]
    assert "map-plus" in cli.ok("presets")


def test_run_twice_same_bytes(cli: Cli) -> None:
    texts = [cli.ok("run", "map-plus", *WORK, "--json", "-", PYTHONHASHSEED=seed) for seed in "12"]
    assert without_engines(texts[0]) == without_engines(texts[1])


def test_compare_serial_and_parallel_same_bytes(cli: Cli) -> None:
    arguments = ["compare", "map-plus", *WORK, "--vary", f"host.scheduler={SCHEDULERS}"]
    arguments += ["--vary", "ftl.mapping_cache=8KiB,16KiB", "--json"]
    texts = [cli.ok(*arguments, "-", "--jobs", jobs) for jobs in ("1", "4")]
    assert without_engines(texts[0]) == without_engines(texts[1])
    comparison = json.loads(texts[0])
    assert list(comparison) == ["schema", "config", "vary", "variants"]
    assert comparison["schema"] == "ftlab.compare.v1"
    assert comparison["vary"]["host.scheduler"] == SCHEDULERS.split(",")
    sets = [tuple(variant["set"].values()) for variant in comparison["variants"]]
    assert sets == [(s, c) for s in SCHEDULERS.split(",") for c in ("8KiB", "16KiB")]
    for variant in comparison["variants"]:
        assert variant["result"]["config"]["host"]["scheduler"] == variant["set"]["host.scheduler"]
    assert comparison["variants"][-1]["label"] == "map+, 16KiB"


def test_compare_prints_a_table_and_draws(cli: Cli) -> None:
    plots = ["--plot", "c.png", "--plot", "c.svg"]
    arguments = ["--vary", f"host.scheduler={SCHEDULERS}", *plots, "--json", "c.json"]
    done = cli("compare", "map-plus", *WORK, *arguments, COLUMNS="100")
    assert (done.returncode, done.stderr) == (0, "")
    lines = done.stdout.splitlines()
    assert lines[0].startswith("map-plus on generated: 20,000 requests, ")
    assert max(len(line.rstrip()) for line in lines) <= 100
    assert "*" in done.stdout
    assert (cli.directory / "c.png").read_bytes().startswith(b"\x89PNG")
    assert (cli.directory / "c.svg").read_text().startswith("<svg")
    assert json.loads((cli.directory / "c.json").read_text())["variants"][0]["label"] == "noop"
    assert sorted(os.listdir(cli.directory)) == ["a.csv", "c.json", "c.png", "c.svg"]


def test_compare_prints_its_table_for_programs(cli: Cli) -> None:
    arguments = ["compare", "map-plus", *WORK, "--vary", "host.scheduler=noop,map+", "--json", "c.json"]
    rows = json.loads(cli.ok(*arguments, "--table", "json"))
    variants = json.loads((cli.directory / "c.json").read_text())["variants"]
    assert [row["waf.total"] for row in rows] == [each["result"]["waf"]["total"] for each in variants]
    assert cli.ok(*arguments, "--table", "csv").splitlines()[2].startswith("map+,")
    assert cli.ok(*arguments, "--table", "markdown").startswith("| host.scheduler | mean read, ")
    both = cli(*arguments[:-1], "-", "--table", "csv")
    assert both.returncode == 2
    assert both.stderr.startswith("error: --table csv and --json - both print to standard output")
    assert cli(*arguments, "--table", "xml").returncode == 2


def test_a_report_on_a_terminal_breaks_no_word(cli: Cli) -> None:
    line = f"stty cols 50; {sys.executable} -m ftlab run map-plus --trace a.csv"
    done = subprocess.run(
        ["script", "-qec", line, "/dev/null"],
        cwd=cli.directory,
        env={key: value for key, value in os.environ.items() if key != "COLUMNS"},
        capture_output=True,
        text=True,
        check=True,
    )
    lines = done.stdout.replace("\r", "").splitlines()
    assert max(map(len, lines)) <= 50
    whole = " ".join(done.stdout.split())
    assert "scheduler map+, device scheduler noop, FTL dftl, mapping cache 16KiB" in whole


def test_trace_head_info_and_round_trip(cli: Cli) -> None:
    head = cli.ok("trace", "head", "a.csv", "-n", "3")
    assert head == "time_ns,op,offset,size\n0,W,0,4096\n1000,W,4096,8192\n2000,R,0,4096\n"
    text = cli.ok("trace", "info", "a.csv")
    assert "a.csv: csv (recognised by its header)\nrequests: 8: 4 reads, 3 writes, 1 flushes\n" in text
    info = json.loads(cli.ok("trace", "info", "a.csv", "--json", "-"))
    assert (info["format"], info["requests"], info["bytes_written"]) == ("csv", 8, 16384)
    done = cli("trace", "convert", "a.csv", "b.parquet")
    assert (done.stdout, done.stderr) == ("", "b.parquet: 8 requests\n")
    cli.ok("trace", "convert", "b.parquet", "c.csv")
    assert (cli.directory / "c.csv").read_text() == (cli.directory / "a.csv").read_text()


def test_convert_says_what_it_dropped_and_that_there_are_no_times(cli: Cli) -> None:
    (cli.directory / "d.csv").write_text("time_ns,op,offset,size\n0,R,0,512\n9,R,0,512\n10,R,512,0\n")
    done = cli("trace", "convert", "d.csv", "e.csv", "--dedup", "1ms")
    assert done.stderr == "e.csv: 1 requests, 1 dropped (duplicate), 1 dropped (zero_size)\n"
    (cli.directory / "n.txt").write_text("offset,size,type\n8,4096,1\n16,4096,0\n")
    done = cli("trace", "convert", "n.txt", "n.csv", "--format", "notimes")
    assert "note: the trace has no times" in done.stderr


def test_generate_is_what_run_generates(cli: Cli) -> None:
    shape = {"requests": "5000", "pattern": "zipf", "read_share": "30%", "size": "8KiB", "region": "64MiB"}
    flags = [text for name, value in shape.items() for text in (f"--{name.replace('_', '-')}", value)]
    cli.ok("trace", "generate", "g.csv", *flags, "--interarrival", "1ms", "--seed", "5")
    settings = [
        text for name, value in shape.items() for text in ("--set", f"workload.synthetic.{name}={value}")
    ]
    settings += ["--set", "workload.synthetic.interarrival=1ms", "--seed", "5"]
    results = [
        json.loads(cli.ok("run", "map-plus", *source, "--json", "-"))
        for source in (settings, ["--trace", "g.csv"])
    ]
    for field in ("trace", "latency", "mapping", "flash"):
        assert results[0][field] == results[1][field]
    cli.ok("trace", "generate", "g.parquet", *flags, "--interarrival", "1ms", "--seed", "5")
    assert cli.ok("trace", "head", "g.parquet", "-n", "5000") == (cli.directory / "g.csv").read_text()


def test_schema_and_components(cli: Cli) -> None:
    assert json.loads(cli.ok("schema"))["title"] == "ftlab configuration"
    listed = cli.ok("components")
    for name, mark in (("map\\+", "paper"), ("kyber", "kernel"), ("map-rate", "ftlab"), ("wrr", "NVMe")):
        assert re.search(rf"^    {name} +{mark} +\w", listed, re.MULTILINE), name
    assert re.search(r"^    noop +arrival order$", listed, re.MULTILINE)
    assert "host.scheduler" in json.loads(cli.ok("components", "--json"))


def test_components_of_one_key(cli: Cli) -> None:
    listed = cli.ok("components", "host.scheduler")
    assert listed.startswith("host.scheduler\n    noop ") and listed.count("\n    ") == listed.count("\n") - 1
    assert list(json.loads(cli.ok("components", "ftl.gc", "--json"))) == ["ftl.gc"]


def test_help_is_a_word_too(cli: Cli) -> None:
    for words in ([], ["run"], ["trace", "head"]):
        assert cli.ok("help", *words) == cli.ok(*words, "--help")


def test_what_is_set_and_varied_is_told(cli: Cli) -> None:
    words = ["--trace", "a.csv", "--set", "host.scheduler=noop", "--vary", "host.scheduler=map,map+"]
    done = cli("compare", "map-plus", *words)
    assert done.stderr == "note: --set host.scheduler=noop: --vary host.scheduler takes its place\n"


def test_notes_wrap_on_a_terminal(cli: Cli) -> None:
    """Regression: a terminal broke notes within words."""
    ours, theirs = pty.openpty()
    words = ["--trace", "a.csv", "--set", "host.scheduler=noop", "--vary", "host.scheduler=map,map+"]
    done = subprocess.run(
        [sys.executable, "-m", "ftlab", "compare", "map-plus", *words],
        cwd=cli.directory,
        stdout=subprocess.DEVNULL,
        stderr=theirs,
        env={**os.environ, "COLUMNS": "50", "TERM": "dumb"},
        check=True,
    )
    assert done.returncode == 0
    text = os.read(ours, 4096).decode().replace("\r\n", "\n")
    os.close(ours)
    os.close(theirs)
    assert "note: --set host.scheduler=noop: --vary\n  host.scheduler takes its place\n" in text


def test_descriptions_of_components_wrap_on_a_terminal() -> None:
    listed = json.loads(_core.components())
    flat, wrapped = describe.components_text(listed, None), describe.components_text(listed, 80)
    assert wrapped.split() == flat.split()
    assert max(map(len, flat.splitlines())) > 120
    # The header of a csv has nowhere to break.
    assert all(len(line) <= 80 or len(line.split()) == 1 for line in wrapped.splitlines())


HELPS = [
    [],
    ["run"],
    ["compare"],
    ["trace"],
    ["trace", "info"],
    ["trace", "head"],
    ["trace", "convert"],
    ["trace", "generate"],
    ["trace", "fit"],
    ["crash"],
    ["reproduce"],
    ["presets"],
    ["components"],
    ["schema"],
]


@pytest.mark.parametrize("command", HELPS, ids=lambda command: " ".join(command) or "ftlab")
def test_help_names_only_what_works(cli: Cli, command: list[str]) -> None:
    text = cli.ok(*command, "--help", COLUMNS="100")
    assert max(map(len, text.splitlines())) <= 100
    assert "sprandom" not in text
    keys = set(re.findall(r"\[((?:workload|host|ftl|flash|device)\.[a-z_.]+|seed)\]", text))
    known = set(keys_of(json.loads(cli.ok("schema"))))
    # Each name in brackets is a key or a table of keys.
    assert all(key in known or any(name.startswith(f"{key}.") for name in known) for key in keys)


def keys_of(schema: dict[str, Any], prefix: str = "") -> list[str]:
    found: list[str] = []
    for name, value in schema.get("properties", {}).items():
        found += keys_of(value, f"{prefix}{name}.") if "properties" in value else [prefix + name]
    return found


def test_lines_that_a_help_keeps_are_lines() -> None:
    """Regression: if text followed the no-wrap mark on its line, click joined lines that must stay apart."""
    context = click.Context(commands, info_name="ftlab")
    for name in COMMANDS:
        command = commands.get_command(context, name)
        assert command is not None
        assert not re.search("\b[^\n]", command.help or ""), name


def test_the_help_lists_every_command_in_one_group(cli: Cli) -> None:
    assert sorted(name for names in GROUPS.values() for name in names) == sorted(COMMANDS)
    shown = cli.ok("--help")
    assert all(f"\n{group}:\n" in shown for group in GROUPS)
    assert all(re.search(rf"^  {name} +\w", shown, re.MULTILINE) for name in COMMANDS)


def test_the_list_of_commands_says_what_each_says_itself(cli: Cli) -> None:
    context = click.Context(commands, info_name="ftlab")
    for name, (_, said) in COMMANDS.items():
        command = commands.get_command(context, name)
        assert command is not None
        assert command.name == name
        own = " ".join((command.help or "").replace("\b", "").split())
        assert own.startswith(said[:-1]), name
        assert own[len(said) - 1] in ".:"


def test_a_command_nearly_right_is_guessed(cli: Cli) -> None:
    done = cli("comparee")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("error: no such command 'comparee'. Did you mean 'compare'?\n")


def _cpu_ms(*command: str) -> float:
    """Returns the processor time that a command takes, in ms."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, stdout=subprocess.DEVNULL, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return (after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime) * 1e3


@pytest.mark.parametrize(("option", "beside"), [("--version", "pass"), ("--help", "import click")])
def test_start_up_takes_no_more_than_25_ms(option: str, beside: str) -> None:
    python = sys.executable
    pairs = [_cpu_ms(python, "-m", "ftlab", option) - _cpu_ms(python, "-c", beside) for _ in range(21)]
    assert statistics.median(pairs) <= 25


def test_the_package_loads_what_is_asked_for() -> None:
    code = (
        "import sys, ftlab; assert not {'numpy', 'polars', 'click', 'ftlab._core'} & set(sys.modules);"
        "from ftlab import *; assert set(ftlab.__all__) <= set(dir(ftlab));"
        "assert all(getattr(ftlab, name) is globals()[name] for name in ftlab.__all__);"
        "hasattr(ftlab, 'nothing') and sys.exit('has everything')"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_no_command_shows_help(cli: Cli) -> None:
    assert cli.ok() == cli.ok("--help")


def endless(cli: Cli, *arguments: str) -> subprocess.Popen[str]:
    command = [
        sys.executable,
        "-m",
        "ftlab",
        *arguments,
        "--set",
        "workload.synthetic.requests=1000000000000",
    ]
    return subprocess.Popen(
        command, cwd=cli.directory, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
@pytest.mark.parametrize(
    "arguments",
    [
        ["run", "map-plus", "--json", "r.json", "--requests", "r.csv", "--timeline", "t"],
        ["run", "map-plus", "--requests", "r.parquet"],
        ["compare", "map-plus", "--vary", "host.scheduler=noop,row,map+", "--json", "r.json"],
    ],
)
def test_a_signal_stops_cleanly(cli: Cli, arguments: list[str], number: signal.Signals) -> None:
    """Regression: SIGTERM left .part and .tmp files, and a second SIGINT left the temporary rows of a Parquet
    file.
    """
    process = endless(cli, *arguments)
    wait_until_busy(process)
    process.send_signal(number)
    if number == signal.SIGINT:
        process.send_signal(number)
    out, err = process.communicate(timeout=20)
    said = {signal.SIGINT: "interrupted\n", signal.SIGTERM: "terminated\n", signal.SIGHUP: "hung up\n"}
    assert (process.returncode, out, err) == (128 + number, "", said[number])
    assert os.listdir(cli.directory) == ["a.csv"]


def test_a_signal_that_was_ignored_stays_so(cli: Cli) -> None:
    """A command that is started with a signal ignored, as under nohup, does not end on that signal."""
    command = ["nohup", sys.executable, "-m", "ftlab", "run", "map-plus"]
    command += ["--set", "workload.synthetic.requests=1000000000000"]
    process = subprocess.Popen(
        command, cwd=cli.directory, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    wait_until_busy(process)
    process.send_signal(signal.SIGHUP)
    time.sleep(0.5)
    assert process.poll() is None
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=20)
    assert process.returncode == 128 + signal.SIGTERM


def test_a_signal_stops_a_generation(cli: Cli) -> None:
    for target, number in itertools.product(("g.csv", "g.parquet"), (signal.SIGINT, signal.SIGTERM)):
        command = [sys.executable, "-m", "ftlab", "trace", "generate", target, "--requests", "1000000000000"]
        process = subprocess.Popen(command, cwd=cli.directory, stderr=subprocess.PIPE, text=True)
        wait_until_busy(process)
        process.send_signal(number)
        _, err = process.communicate(timeout=20)
        said = "interrupted\n" if number == signal.SIGINT else "terminated\n"
        assert (process.returncode, err) == (128 + number, said)
        assert os.listdir(cli.directory) == ["a.csv"]


def test_progress_on_a_terminal_only(cli: Cli) -> None:
    """The display is drawn only on a terminal and removed at the end; NO_COLOR disables colours."""
    shown = on_terminal(cli, {})
    assert "requests, " in shown
    assert "\x1b[" in shown
    plain = on_terminal(cli, {"NO_COLOR": "1"})
    assert "requests, " in plain
    assert not re.search(r"\x1b\[[0-9;]*3[0-7]m", plain)


def on_terminal(cli: Cli, environment: dict[str, str]) -> str:
    """Returns what a run writes to standard error on a terminal until it has shown its progress."""
    ours, theirs = pty.openpty()
    command = [sys.executable, "-m", "ftlab", "run", "map-plus"]
    command += ["--set", "workload.synthetic.requests=1000000000000"]
    process = subprocess.Popen(
        command,
        cwd=cli.directory,
        stdout=subprocess.DEVNULL,
        stderr=theirs,
        env={**os.environ, "TERM": "xterm-256color", **environment},
    )
    os.close(theirs)
    text = io.BytesIO()
    end = time.monotonic() + 30
    while time.monotonic() < end and b"requests, " not in text.getvalue():
        if select.select([ours], [], [], 0.1)[0]:
            text.write(os.read(ours, 4096))
    process.send_signal(signal.SIGINT)
    assert process.wait(20) == 130
    os.close(ours)
    return text.getvalue().decode()


PANIC = """
import sys
from ftlab import _core, cli
def broken(*arguments, **keywords):
    raise {error}
_core.run = broken
cli.main(["run", "map-plus", "--trace", "a.csv"])
"""


@pytest.mark.parametrize("error", ["_core.InternalError('panic at x.rs:1: boom')", "KeyError('boom')"])
def test_fault_of_ftlab_is_exit_status_1(cli: Cli, error: str) -> None:
    command = [sys.executable, "-c", PANIC.format(error=error)]
    done = subprocess.run(command, cwd=cli.directory, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert done.stderr.startswith("ftlab: internal error: ")
    assert "boom" in done.stderr.splitlines()[0]
    assert "bug in ftlab" in done.stderr
    assert "Traceback" not in done.stderr
    env = {**os.environ, "FTLAB_DEBUG": "1"}
    done = subprocess.run(command, cwd=cli.directory, capture_output=True, text=True, check=False, env=env)
    assert done.returncode == 1
    assert "Traceback" in done.stderr


def test_panic_is_a_fault_of_ftlab_and_prints_nothing_itself(cli: Cli) -> None:
    code = """
from ftlab import _core, cli, traces
chunks = _core.trace_chunks(traces.trace_config("a.csv"), 1 << 62)
try:
    next(chunks)
except _core.InternalError as error:
    assert not isinstance(error, _core.UserError)
    print(error)
"""
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, cwd=cli.directory, capture_output=True, text=True, check=False)
    assert done.stderr == ""
    assert re.match(r"panic at .*\.rs:\d+: capacity overflow\n", done.stdout)


def test_interrupt_ends_a_look_at_a_trace(cli: Cli) -> None:
    os.mkfifo(cli.directory / "pipe")
    command = [sys.executable, "-m", "ftlab", "trace", "info", "pipe", "--format", "csv"]
    # The pipe is opened for reading and writing, so that opening it does not block.
    pipe = os.open(cli.directory / "pipe", os.O_RDWR)
    process = subprocess.Popen(command, cwd=cli.directory, stderr=subprocess.PIPE, text=True)
    os.write(pipe, b"time_ns,op,offset,size\n")
    end = time.monotonic() + 20
    while process.poll() is None and time.monotonic() < end:
        # Wait until the process has taken the line from the pipe, so that it is reading the trace.
        time.sleep(0.1)
        if not select.select([pipe], [], [], 0)[0]:
            break
    process.send_signal(signal.SIGINT)
    assert process.communicate(timeout=20)[1] == "interrupted\n"
    assert process.returncode == 130
    os.close(pipe)


def traces() -> Path:
    """Returns the directory of the recorded traces, which the project may not ship."""
    beside = Path(__file__).resolve().parents[2].parent / "shared" / "traces"
    return Path(os.environ.get("FTLAB_TRACES", beside))


@pytest.mark.parametrize(
    ("name", "flags"),
    [
        ("pixel6a-telegram-exec.csv.gz", ["--dedup", "50ms", "--max-gap", "60s"]),
        ("cloudphysics-sample.csv.gz", []),
    ],
)
def test_compare_on_recorded_traces(cli: Cli, name: str, flags: list[str]) -> None:
    path = traces() / name
    if not path.exists():
        pytest.skip(f"no recorded traces in {traces()} (set FTLAB_TRACES)")
    arguments = ["--trace", str(path), *flags, "--out-of-range", "compact"]
    text = cli.ok("compare", "map-plus", *arguments, "--vary", f"host.scheduler={SCHEDULERS}", "--json", "-")
    variants = json.loads(text)["variants"]
    assert [variant["label"] for variant in variants] == SCHEDULERS.split(",")
    counts = {variant["result"]["trace"]["requests"] for variant in variants}
    assert len(counts) == 1
    assert counts.pop() > 100_000


def test_a_trace_from_standard_input(cli: Cli) -> None:
    lines = ["time_ns,op,offset,size", *(f"{at * 1000},R,{4096 * (at % 9)},4096" for at in range(50))]
    (cli.directory / "a.csv").write_text("\n".join(lines) + "\n")
    named = json.loads(cli.ok("run", "map-plus", "--trace", "a.csv", "--json", "-"))
    piped = subprocess.run(
        [sys.executable, "-m", "ftlab", "run", "map-plus", "--trace", "-", "--json", "-"],
        cwd=cli.directory,
        input=(cli.directory / "a.csv").read_text(),
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert json.loads(piped.stdout)["latency"] == named["latency"]
    assert named["trace"]["requests"] == 50


@pytest.mark.parametrize("command", [("run", "map-plus"), ("compare", "map-plus", "--vary", "seed=1,2")])
def test_a_quiet_run_prints_warnings_alone(cli: Cli, command: tuple[str, ...]) -> None:
    ignored = ("--set", "ftl.kind=page", "--set", "ftl.mapping_cache=4KiB")
    words = (*command, "--set", "workload.synthetic.requests=200", *ignored)
    loud = cli(*words)
    assert loud.stdout
    assert loud.stderr.startswith("note: ")
    done = cli(*words, "--quiet", "--json", "a.json")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert '"requests": 200' in (cli.directory / "a.json").read_text()
    assert "latency" in cli.ok(*words, "--quiet", "--json", "-")
    if command[0] == "compare":
        assert cli.ok(*words, "--quiet", "--table", "csv").startswith("seed,latency.read.mean_ns,")
