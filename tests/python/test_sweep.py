"""``ftlab sweep``: its axes, its tables, its replications, the results that it keeps, and how it survives
failures and kills.
"""

from __future__ import annotations

import json
import math
import os
import random
import resource
import signal
import statistics
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from front import TRACE, Cli
from ftlab._core import UserError
from ftlab.configs import load
from ftlab.studies.declaration import load_study
from ftlab.studies.executor import Budget, estimated_bytes
from ftlab.studies.expression import Expression
from ftlab.studies.replications import student
from ftlab.studies.rows import names_of, with_numbers

STUDY = """
config = "map-plus"

[set]
"flash.blocks_per_plane" = 64
"workload.synthetic.requests" = 300

[axis.scheduler]
key = "host.scheduler"
values = ["noop", "map+"]

[axis.cache]
key = "ftl.mapping_cache"
range = ["4KiB", "8KiB", "4KiB"]

[axis.seed]
key = "seed"
range = [1, 5, 1]

[derive]
p99_ms = "latency.all.percentile_ns.99 / 1e6"
twice = "p99_ms * 2"

[compare]
base = { scheduler = "noop" }
"""

SLOW = STUDY.replace("300", "20000").replace("[1, 5, 1]", "[1, 20, 1]")

CHANGING = ("seconds", "worker")


def table(folder: Path, name: str = "runs") -> pl.DataFrame:
    return pl.read_parquet(folder / f"{name}.parquet")


def same(frame: pl.DataFrame) -> bytes:
    """Returns the content of a table that must not depend on where and when a study ran."""
    kept = [name for name in frame.columns if name not in CHANGING and not name.startswith("engine.")]
    return frame.select(kept).write_csv().encode() + str(frame.select(kept).schema).encode()


@pytest.fixture
def study(cli: Cli) -> Path:
    path = cli.directory / "study.toml"
    path.write_text(STUDY)
    return path


def test_a_row_for_each_run_in_the_order_of_the_plan(cli: Cli, study: Path) -> None:
    cli.ok("sweep", "study.toml", "--out", "out")
    frame = table(cli.directory / "out")
    keys = frame.select("host.scheduler", "ftl.mapping_cache", "seed").rows()
    assert keys == [(s, c, n) for s in ("noop", "map+") for c in ("4KiB", "8KiB") for n in range(1, 6)]
    assert frame["scheduler"].to_list() == frame["host.scheduler"].to_list()
    assert frame["scheduler"].to_list() == frame["scheduler.name"].to_list()
    assert frame["run"].to_list() == list(range(1, 21))
    assert not (cli.directory / "out" / "parts").exists()
    assert table(cli.directory / "out", "failures").height == 0
    for row in frame.iter_rows(named=True):
        whole = json.loads((cli.directory / "out" / "json" / f"{row['hash']}.json").read_text())
        assert row["latency.all.mean_ns"] == whole["latency"]["all"]["mean_ns"]
        assert row["config.seed"] == row["seed"] == whole["config"]["seed"]
        assert row["flash.programs.gc-map"] == 0
        assert row["p99_ms"] == whole["latency"]["all"]["percentile_ns"]["99.000000"] / 1e6
        assert row["twice"] == 2 * row["p99_ms"]
        assert row["seconds"] == whole["engine"]["seconds"] >= whole["engine"]["wall_s"] > 0
        assert row["engine.identity"] == whole["engine"]["identity"]
    # The latency in the table is the one that `ftlab run` measures.
    first = cli.ok("run", "map-plus", "--json", "-", "--set", "flash.blocks_per_plane=64",
                   "--set", "workload.synthetic.requests=300", "--set", "host.scheduler=noop",
                   "--set", "ftl.mapping_cache=4KiB", "--set", "seed=1")  # fmt: skip
    assert (
        json.loads(first)["latency"]
        == json.loads((cli.directory / "out" / "json" / f"{frame['hash'][0]}.json").read_text())["latency"]
    )


def test_means_intervals_and_paired_differences(cli: Cli, study: Path) -> None:
    printed = cli.ok("sweep", "study.toml", "--out", "out")
    frame = table(cli.directory / "out")
    summary = pl.read_csv(cli.directory / "out" / "summary.csv")
    t_of_four = 2.776445

    def values(scheduler: str) -> list[float]:
        chosen = (pl.col("scheduler") == scheduler) & (pl.col("cache") == "8KiB")
        return frame.filter(chosen).sort("seed")["p99_ms"].to_list()

    def line(scheduler: str) -> dict[str, Any]:
        chosen = (pl.col("scheduler") == scheduler) & (pl.col("cache") == "8KiB")
        return summary.filter(chosen & (pl.col("value") == "p99_ms")).row(0, named=True)

    def half(of: list[float]) -> float:
        return t_of_four * statistics.stdev(of) / math.sqrt(5)

    own, base = values("map+"), values("noop")
    found = line("map+")
    assert found["replications"] == found["pairs"] == 5
    assert found["mean"] == pytest.approx(statistics.mean(own))
    assert found["high"] - found["mean"] == pytest.approx(half(own), rel=1e-5)
    differences = [a - b for a, b in zip(own, base, strict=True)]
    assert found["difference"] == pytest.approx(statistics.mean(differences))
    assert found["difference"] - found["difference_low"] == pytest.approx(half(differences), rel=1e-5)
    assert line("noop")["difference"] is None
    assert f"{found['mean']:.4g} ±{half(own):.2g}" in printed


@pytest.mark.parametrize(
    ("freedom", "t"), [(1, 12.7062), (2, 4.3027), (3, 3.1824), (4, 2.7764), (9, 2.2622), (100, 1.984)]
)
def test_students_t(freedom: int, t: float) -> None:
    assert student(freedom) == pytest.approx(t, abs=5e-5)


def test_what_is_there_is_not_run_again(cli: Cli, study: Path) -> None:
    first = cli.ok("sweep", "study.toml", "--out", "out")
    assert "20 runs, 0 more already existed" in first
    before = table(cli.directory / "out")
    assert "0 runs, 20 more already existed" in cli.ok("sweep", "study.toml", "--out", "out")
    assert table(cli.directory / "out").equals(before)
    # With a longer axis only the new runs are done; after damage to a result, only that run is done again.
    study.write_text(STUDY.replace("[1, 5, 1]", "[1, 6, 1]"))
    (cli.directory / "out" / "json" / f"{before['hash'][3]}.json").write_text("{")
    assert "5 runs, 19 more already existed" in cli.ok("sweep", "study.toml", "--out", "out")
    assert "24 runs, 0 more already existed" in cli.ok("sweep", "study.toml", "--out", "out", "--fresh")


def test_what_a_short_run_costs(cli: Cli) -> None:
    """A short run costs a few ms of processor time. When this was measured, each of 400 runs of half a
    millisecond took 3 ms, after a second for the start.
    """
    (cli.directory / "study.toml").write_text(STUDY.replace("[1, 5, 1]", "[1, 100, 1]"))
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    assert "400 runs" in cli.ok("sweep", "study.toml", "--out", "out")
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    spent = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    # A busy machine costs processor time too, so twice 5 ms for each run are allowed.
    assert spent < 2 * (1 + 400 * 0.005)


def test_a_dry_run_runs_nothing(cli: Cli, study: Path) -> None:
    said = cli.ok("sweep", "study.toml", "--out", "out", "--dry-run")
    assert "runs: 20\n" in said
    assert "CPU time: about" in said
    assert "memory: up to" in said
    assert not (cli.directory / "out").exists()


FILES = """
config = "map-plus"
[axis.volume]
files = "volumes/*.csv"
"""


def test_traces_by_name_and_runs_that_fail(cli: Cli) -> None:
    (cli.directory / "volumes").mkdir()
    for place, name in enumerate(("b", "a", "c", "d")):
        (cli.directory / "volumes" / f"{name}.csv").write_text(TRACE.replace("900000", f"90000{place}"))
    (cli.directory / "volumes" / "bad.csv").write_text(TRACE.replace("150000,R", "150000,Q"))
    (cli.directory / "volumes" / "huge.csv").write_text(TRACE.replace("1048576", "1048576000000000"))
    (cli.directory / "study.toml").write_text(FILES)
    # The command runs in another directory: the traces are next to the study.
    done = Cli(Path("/"))("sweep", f"{cli.directory}/study.toml", "--out", f"{cli.directory}/out")
    assert done.returncode == 1
    # The faults are reported before the first run, and no other run is lost because of them.
    for name in ("bad", "huge"):
        path = f"{cli.directory}/volumes/{name}.csv"
        assert f"warning: {path}: a run of it will fail: {path}:" in done.stderr
    strict = cli("sweep", "study.toml", "--out", "strict", "--strict")
    assert strict.returncode == 2
    assert strict.stderr.startswith("error: volumes/bad.csv: a run of it will fail: volumes/bad.csv:")
    assert not (cli.directory / "strict").exists()
    assert "error: 2 of 6 runs failed; the first: bad: " in done.stderr
    assert "Traceback" not in done.stderr
    frame = table(cli.directory / "out")
    assert frame["volume"].to_list() == ["a", "b", "c", "d"]
    assert frame["workload.trace"].to_list() == [f"volumes/{name}.csv" for name in "abcd"]
    failures = table(cli.directory / "out", "failures")
    assert failures["volume"].to_list() == ["bad", "huge"]
    assert "bad.csv" in failures["error"][0]
    assert failures["kind"].to_list() == ["user", "user"]
    # Once the traces are repaired, only their runs are done.
    (cli.directory / "volumes" / "bad.csv").write_text(TRACE.replace("4096", "8192"))
    (cli.directory / "volumes" / "huge.csv").unlink()
    assert "1 runs, 4 more already existed" in cli.ok("sweep", "study.toml", "--out", "out")


def test_every_run_fails(cli: Cli) -> None:
    (cli.directory / "study.toml").write_text(FILES.replace("volumes/", ""))
    (cli.directory / "a.csv").write_text("time_ns,op,offset,size\nx\n")
    done = cli("sweep", "study.toml", "--out", "out")
    assert done.returncode == 1
    assert table(cli.directory / "out").height == 0
    assert table(cli.directory / "out", "failures").height == 1


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("range = [1, 5, 1]", "range = [1, 5]", "axis.seed.range: is [from, to, step]"),
        ("range = [1, 5, 1]", "range = [5, 1, 1]", "does not lead from 5 to 1"),
        ("range = [1, 5, 1]", 'range = ["1KiB", "5B", 1]', "of one unit"),
        ("range = [1, 5, 1]", "range = [1, 5000000, 1]", "more than 1,000,000 values"),
        ("range = [1, 5, 1]", "values = [1, 1]", "'1' is given twice"),
        ("range = [1, 5, 1]", "rnge = [1, 1]", "axis.seed.rnge: unknown key"),
        ('key = "seed"', 'key = "sed"', "unknown key sed"),
        ("[axis.seed]", "[axis.hash]", "the table has a column of that name"),
        ("map+", "mapp", "mapp"),
        ('scheduler = "noop" }', 'scheduler = "nop" }', "no such axis or label"),
        ("p99_ms * 2", "p98_ms * 2", "no value 'p98_ms'"),
        ("p99_ms * 2", "host.scheduler", "which is not a number"),
        ('config = "map-plus"', 'config = "map-plus"\nwhat = "requests"', "a row for each run"),
    ],
)
def test_errors_of_the_user(cli: Cli, study: Path, old: str, new: str, message: str) -> None:
    assert old in STUDY
    study.write_text(STUDY.replace(old, new))
    done = cli("sweep", "study.toml", "--out", "out")
    assert (done.returncode, message in done.stderr, "Traceback" in done.stderr) == (2, True, False), (
        done.stderr
    )


def test_keys_varied_in_vain(cli: Cli, study: Path) -> None:
    deadlines = STUDY.replace('key = "ftl.mapping_cache"', 'key = "host.deadline"').replace("KiB", "ms")
    study.write_text(deadlines)
    done = cli("sweep", "study.toml", "--out", "out")
    assert done.returncode == 0
    assert "note: host.deadline: ignored by 10 of 20 variants: noop 4ms 1; noop 4ms 2" in done.stderr
    study.write_text(deadlines.replace('["noop", "map+"]', '["noop"]'))
    done = cli("sweep", "study.toml", "--out", "out")
    assert done.returncode == 2
    assert "axis: host.deadline: every variant ignores it; noop 4ms 1: ignored: host.scheduler" in done.stderr


@pytest.mark.parametrize(
    ("given", "labels"),
    [
        ("[0, 1, 0.25]", ["0.00", "0.25", "0.50", "0.75", "1.00"]),
        ("[10, 1, -4]", ["10", "6", "2"]),
        ('["0.5ms", "2ms", "0.5ms"]', ["0.5ms", "1.0ms", "1.5ms", "2.0ms"]),
    ],
)
def test_ranges(tmp_path: Path, given: str, labels: list[str]) -> None:
    (tmp_path / "s.toml").write_text(
        f'config = "map-plus"\n[axis.a]\nkey = "workload.speed"\nrange = {given}\n'
    )
    assert load_study(tmp_path / "s.toml").axes[0].labels == labels


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ('ftl.mapping_cache <= "64KiB"', True),
        ('ftl.mapping_cache < "16KiB"', False),
        ('host.deadline == "10ms"', True),
        ("ftl.mapping_cache / 1024", 16.0),
        ("flash.reads.host + flash.channels", 8.0),
        ("latency.all.percentile_ns.99 - latency.all.percentile_ns.99.9", -1.0),
        ('host.scheduler != "noop"', True),
    ],
)
def test_expressions_of_results_and_settings(text: str, value: object) -> None:
    result = {
        "config": {
            "ftl": {"mapping_cache": "16KiB"},
            "host": {"deadline": "10ms", "scheduler": "map+"},
            "flash": {"channels": 1, "reads": 5},
        },
        "flash": {"reads": {"host": 7}},
        "latency": {"all": {"percentile_ns": {"99.000000": 4, "99.900000": 5}}},
    }
    assert Expression(text, "x")(names_of(result)) == value


def test_as_many_at_a_time_as_memory_allows() -> None:
    budget, most, running = Budget(100), 0, 0
    lock = threading.Lock()

    def work(wanted: int) -> None:
        nonlocal most, running
        with budget.reserved(wanted):
            with lock:
                running += wanted
                most = max(most, running)
            time.sleep(0.01)
            with lock:
                running -= wanted

    threads = [threading.Thread(target=work, args=(wanted,)) for wanted in (40, 40, 40, 60, 100, 30)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert 40 < most <= 100
    # A run larger than the whole budget is let in when no other run uses the budget.
    with budget.reserved(1000):
        pass


@pytest.mark.parametrize("preset", ["map-plus", "vios", "coop-bast", "coop-fast", "msftl"])
def test_the_estimate_of_a_devices_memory_holds(preset: str) -> None:
    config = load(preset)
    script = (
        "from ftlab._core import peak_rss_bytes; from ftlab.configs import load;"
        "from ftlab.running import run_core;"
        f"c = load({preset!r}, [('', 'device.precondition', 'fill'), "
        "('', 'workload.synthetic.requests', '9')]);"
        "before = peak_rss_bytes(); run_core(c); print(peak_rss_bytes() - before)"
    )
    used = int(subprocess.run([sys.executable, "-c", script], capture_output=True, check=True).stdout)
    assert used <= estimated_bytes(config) <= 3 * used + (64 << 20)


def test_killed_at_any_moment_it_goes_on(cli: Cli) -> None:
    """The study is killed twenty times; finished runs are not repeated, and the rows are those of an
    undisturbed study.
    """
    (cli.directory / "study.toml").write_text(SLOW)
    cli.ok("sweep", "study.toml", "--out", "whole")
    draw = random.Random(16)
    stamps: dict[str, int] = {}
    folder = cli.directory / "out" / "json"
    command = [sys.executable, "-m", "ftlab", "sweep", "study.toml", "--out", "out"]
    kills = 0
    while kills < 20:
        left = 80 - len(stamps)
        with subprocess.Popen(command, cwd=cli.directory, stdout=subprocess.DEVNULL) as process:
            # Each kill waits for so few runs that some are still left for the last kill.
            wanted = len(stamps) + draw.randint(0, max(min(left // (20 - kills), 6), 0))
            while process.poll() is None and len(list(folder.glob("*.json"))) < wanted:
                time.sleep(0.002)
            time.sleep(draw.random() * 0.03 if stamps else 0.5)
            process.send_signal(signal.SIGKILL)
        kills += 1
        now = {path.name: path.stat().st_mtime_ns for path in folder.glob("*.json")}
        assert stamps.items() <= now.items(), "a finished run was done again"
        stamps = now
    printed = cli.ok("sweep", "study.toml", "--out", "out")
    assert f"{80 - len(stamps)} runs, {len(stamps)} more already existed" in printed
    assert same(table(cli.directory / "out")) == same(table(cli.directory / "whole"))
    now = {path.name: path.stat().st_mtime_ns for path in folder.glob("*.json")}
    assert stamps.items() <= now.items()
    assert not list(folder.glob(".*.tmp")), "what a kill left behind is cleared away"


def test_an_interrupt_says_so_and_leaves_what_is_done(cli: Cli) -> None:
    (cli.directory / "study.toml").write_text(SLOW)
    command = [sys.executable, "-m", "ftlab", "sweep", "study.toml", "--out", "out"]
    with subprocess.Popen(command, cwd=cli.directory, stderr=subprocess.PIPE, text=True) as process:
        folder = cli.directory / "out" / "json"
        while process.poll() is None and len(list(folder.glob("*.json"))) < 3:
            time.sleep(0.005)
        os.kill(process.pid, signal.SIGINT)
        _, errors = process.communicate(timeout=30)
    assert (process.returncode, errors) == (130, "interrupted\n")
    done = len(list(folder.glob("*.json")))
    assert f"{80 - done} runs, {done} more already existed" in cli.ok("sweep", "study.toml", "--out", "out")


def test_two_at_once_do_not_write_in_one_place(cli: Cli) -> None:
    (cli.directory / "study.toml").write_text(SLOW)
    command = [sys.executable, "-m", "ftlab", "sweep", "study.toml", "--out", "out"]
    with subprocess.Popen(command, cwd=cli.directory, stderr=subprocess.DEVNULL) as process:
        while not list((cli.directory / "out" / "json").glob("*.json")):
            time.sleep(0.01)
        done = cli("sweep", "study.toml", "--out", "out")
        assert (done.returncode, "another study is writing there" in done.stderr) == (2, True)
        process.kill()


def test_a_directory_holds_one_study(cli: Cli, study: Path) -> None:
    """Regression: a second study silently replaced the tables of the first, whose figure stayed."""
    study.write_text(STUDY.replace("[1, 5, 1]", "[1, 1, 1]"))
    cli.ok("sweep", "study.toml", "--out", "out")
    (cli.directory / "out" / "figure.png").touch()
    (cli.directory / "other").mkdir()
    other = cli.directory / "other" / "study.toml"
    other.write_text(study.read_text().replace('"map+"]', '"row"]'))
    before = table(cli.directory / "out")
    done = cli("sweep", "other/study.toml", "--out", "out")
    assert (done.returncode, done.stderr) == (
        2,
        "error: --out out: holds the study study.toml: name another directory, or empty this one"
        " (`sweep --fresh` does)\n",
    )
    assert table(cli.directory / "out").equals(before)
    # The same study continues, from wherever it is called.
    said = Cli(cli.directory / "other").ok("sweep", "../study.toml", "--out", "../out")
    assert "0 runs, 4 more already existed" in said
    cli.ok("sweep", "other/study.toml", "--out", "out", "--fresh")
    assert table(cli.directory / "out")["scheduler"].unique().sort().to_list() == ["noop", "row"]
    assert not (cli.directory / "out" / "figure.png").exists()


@pytest.mark.parametrize("name", ["json", "parts", ".lock"])
def test_a_link_where_it_writes_is_refused(cli: Cli, study: Path, name: str) -> None:
    """Regression: links in the directory were followed, and their targets overwritten."""
    elsewhere = cli.directory / "elsewhere"
    if name == ".lock":
        elsewhere.write_text("kept")
    else:
        elsewhere.mkdir()
        (elsewhere / "kept").write_text("kept")
    (cli.directory / "out").mkdir()
    (cli.directory / "out" / name).symlink_to(elsewhere)
    done = cli("sweep", "study.toml", "--out", "out")
    said = f"error: --out out: {name} is a link: remove it, or name another directory\n"
    assert (done.returncode, done.stderr) == (2, said)
    kept = elsewhere if name == ".lock" else elsewhere / "kept"
    assert kept.read_text() == "kept"
    assert elsewhere.is_file() or os.listdir(elsewhere) == ["kept"]


def test_links_in_the_place_of_files_are_replaced(cli: Cli, study: Path) -> None:
    names = ("runs.parquet", "failures.parquet", "summary.csv", "index.html", "report.html")
    (cli.directory / "kept").write_text("kept")
    (cli.directory / "out").mkdir()
    for name in names:
        (cli.directory / "out" / name).symlink_to(cli.directory / "kept")
    cli.ok("sweep", "study.toml", "--out", "out")
    assert (cli.directory / "kept").read_text() == "kept"
    for name in names:
        path = cli.directory / "out" / name
        assert path.is_file() and not path.is_symlink()


def test_a_directory_that_cannot_be_written(cli: Cli, study: Path) -> None:
    done = cli("sweep", "study.toml", "--out", "/proc/ftlab")
    assert (done.returncode, "--out /proc/ftlab: cannot make the directory" in done.stderr) == (2, True)


def test_a_value_that_does_not_fit_is_found_at_the_first_result(cli: Cli, study: Path) -> None:
    study.write_text(STUDY.replace("p99_ms * 2", "latency"))
    done = cli("sweep", "study.toml", "--out", "out")
    assert (done.returncode, "derive.twice" in done.stderr) == (2, True)


def test_a_study_like_another(tmp_path: Path) -> None:
    (tmp_path / "one.toml").write_text(STUDY)
    (tmp_path / "two.toml").write_text('like = "one"\n[axis.seed]\nkey = "seed"\nvalues = [7]\n')
    study = load_study(tmp_path / "two.toml")
    assert [axis.labels for axis in study.axes] == [["noop", "map+"], ["4KiB", "8KiB"], ["7"]]
    with pytest.raises(UserError, match=r"three\.toml"):
        load_study(tmp_path / "three.toml")


def test_varied_quantities_have_a_column_of_numbers_each() -> None:
    frame = pl.DataFrame(
        {
            "host.deadline": ["10ms", "none", "1s"],
            "ftl.mapping_cache": ["2KiB", "unlimited", "16KiB"],
            "ftl.over_provisioning": ["7%", "20%", "7%"],
            "host.merge_rate": ["1MiB/s", "2MiB/s", None],
            "host.scheduler": ["noop", "map+", "rb"],
            "seed": [1, 2, 3],
        }
    )
    found = with_numbers(frame, frame.columns)
    assert found["host.deadline_ns"].to_list() == [10_000_000.0, None, 1e9]
    assert found["ftl.mapping_cache_bytes"].to_list() == [2048.0, math.inf, 16384.0]
    assert found["ftl.over_provisioning_share"].to_list() == [0.07, 0.2, 0.07]
    assert found["host.merge_rate_bytes_per_s"].to_list() == [float(1 << 20), float(2 << 20), None]
    assert [name for name in found.columns if name.startswith(("seed", "host.sch"))] == [
        "host.scheduler",
        "seed",
    ]
    assert found.columns[:2] == ["host.deadline", "host.deadline_ns"]


def test_a_sweep_writes_the_numbers(cli: Cli) -> None:
    (cli.directory / "s.toml").write_text(
        'config = "map-plus"\n[set]\n"workload.synthetic.requests" = 50\n'
        '[axis.cache]\nkey = "ftl.mapping_cache"\nvalues = ["2KiB", "4KiB"]\n'
    )
    cli.ok("sweep", "s.toml", "--out", "o")
    frame = pl.read_parquet(cli.directory / "o/runs.parquet")
    assert frame["ftl.mapping_cache_bytes"].to_list() == [2048.0, 4096.0]
    # The command again finds its runs, and writes the same columns.
    cli.ok("sweep", "s.toml", "--out", "o")
    assert pl.read_parquet(cli.directory / "o/runs.parquet").columns == frame.columns
