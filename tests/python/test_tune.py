"""``ftlab tune``: what it finds, under which constraints, and that neither a stop nor a repetition changes
that.
"""

from __future__ import annotations

import itertools
import math
import os
import re
import signal
import statistics
import subprocess
import sys
import time
from pathlib import Path

import polars as pl
import pytest

from front import Cli
from ftlab._core import UserError
from ftlab.progress import Reporter
from ftlab.studies.executor import Threads
from ftlab.studies.front import Trial, Tuned, importance, knee, pareto
from ftlab.studies.tune import Tuner
from ftlab.studies.tuning import load_tuning

SPACE = """
config = "map-plus"
minimize = ["latency.all.mean_ns", "ftl.mapping_cache"]
runs = 24
seed = SEED

[set]
"flash.blocks_per_plane" = 64
"workload.synthetic.requests" = 300
"workload.synthetic.pattern" = "zipf"
"workload.synthetic.region" = "4MiB"

[parameter.scheduler]
key = "host.scheduler"
choices = ["noop", "row", "rb", "map+"]

[parameter.cache]
key = "ftl.mapping_cache"
choices = ["256B", "512B", "1KiB", "2KiB", "4KiB", "8KiB"]

[parameter.deadline]
key = "host.deadline"
choices = ["1ms", "5ms", "20ms", "100ms"]
"""
"""The space has 4 x 6 x 4 = 96 configurations; a quarter of them is 24."""

RANGES = """
config = "map-plus"
maximize = ["throughput_bytes_per_s"]
minimize = ["latency.all.percentile_ns.99"]
constraints = ['ftl.mapping_cache <= "16KiB"']
runs = 16
seed = 3

[set]
"flash.blocks_per_plane" = 64
"workload.synthetic.requests" = 300

[parameter.scheduler]
key = "host.scheduler"
choices = ["noop", "map+"]

[parameter.cache]
key = "ftl.mapping_cache"
range = ["4KiB", "64KiB"]
log = true

[parameter.deadline]
key = "host.deadline"
range = ["1ms", "100ms"]
log = true
when = 'scheduler != "noop"'
"""


SOUGHT = 'maximize = ["throughput_bytes_per_s"]\nminimize = ["latency.all.percentile_ns.99"]'


def search(folder: Path, text: str, name: str = "out") -> Tuned:
    path = folder / "tune.toml"
    path.write_text(text)
    (folder / name / "json").mkdir(parents=True, exist_ok=True)
    with Reporter(quiet=True) as reporter:
        return Tuner(load_tuning(path), folder / name, Threads(1), reporter).search(1)


def area(points: list[tuple[float, float]], far: tuple[float, float]) -> float:
    """Returns the area that lies below and left of ``far`` and is dominated by some point."""
    covered, height = 0.0, far[1]
    for x, y in sorted(points):
        if x < far[0] and y < height:
            covered += (far[0] - x) * (height - y)
            height = y
    return covered


def test_a_quarter_of_a_small_space_finds_its_front(tmp_path: Path) -> None:
    """The median hypervolume of ten seeds is within 5 per cent of that of the true front."""
    path = tmp_path / "tune.toml"
    path.write_text(SPACE.replace("SEED", "1"))
    (tmp_path / "out" / "json").mkdir(parents=True)
    tuning = load_tuning(path)
    names = [each.name for each in tuning.parameters]
    space = itertools.product(*(each.choices for each in tuning.parameters))
    asked = [Trial(at, dict(zip(names, chosen, strict=True))) for at, chosen in enumerate(space, 1)]
    assert len(asked) == 96
    with Reporter(quiet=True) as reporter:
        done = Tuner(tuning, tmp_path / "out", Threads(), reporter).tried(asked)
    every = [trial.values for trial in done]

    # Cache sizes are scaled logarithmically, or the largest would account for almost all of the area.
    def scaled(values: tuple[float, ...]) -> tuple[float, float]:
        return values[0], math.log2(values[1])

    points = [scaled(values) for values in every]
    far = (max(x for x, _ in points), max(y for _, y in points) + 1)
    shares = []
    for seed in range(1, 11):
        (tmp_path / f"s{seed}").mkdir()
        (tmp_path / f"s{seed}" / "out").mkdir()
        (tmp_path / f"s{seed}" / "out" / "json").symlink_to(tmp_path / "out" / "json")
        found = search(tmp_path / f"s{seed}", SPACE.replace("SEED", str(seed)))
        assert len(found.trials) == 24
        shares.append(area([scaled(t.values) for t in found.front], far) / area(points, far))
    assert statistics.median(shares) >= 0.95, shares


def test_the_same_seed_the_same_trials_and_within_bounds(tmp_path: Path) -> None:
    first = search(tmp_path, RANGES)
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
    assert search(tmp_path / "one", RANGES).trials == first.trials
    other = search(tmp_path / "two", RANGES.replace("seed = 3", "seed = 4"))
    assert [trial.parameters for trial in other.trials] != [trial.parameters for trial in first.trials]
    assert {trial.feasible for trial in first.trials} == {True, False}
    for trial in first.trials:
        cache = int(trial.parameters["cache"].removesuffix("B"))
        assert 4096 <= cache <= 65536
        assert trial.feasible == (cache <= 16384)
        assert ("deadline" in trial.parameters) == (trial.parameters["scheduler"] != "noop")
        if "deadline" in trial.parameters:
            assert 10**6 <= int(trial.parameters["deadline"].removesuffix("ns")) <= 10**8
    assert all(trial.feasible for trial in first.front)
    # With a larger budget the search continues where it ended.
    longer = search(tmp_path, RANGES.replace("runs = 16", "runs = 20"))
    assert longer.trials[:16] == first.trials
    (tmp_path / "long").mkdir()
    assert [t.parameters for t in search(tmp_path / "long", RANGES.replace("runs = 16", "runs = 20")).trials][
        :4
    ] == [trial.parameters for trial in first.trials][:4]
    with pytest.raises(UserError, match="holds another search"):
        search(tmp_path, RANGES.replace("seed = 3", "seed = 4"))


def test_what_the_command_leaves(cli: Cli) -> None:
    (cli.directory / "tune.toml").write_text(RANGES)
    printed = cli.ok("tune", "tune.toml", "--out", "out", "--jobs", "1")
    trials = pl.read_csv(cli.directory / "out" / "trials.csv")
    assert trials["trial"].to_list() == list(range(1, 17))
    front = pl.read_csv(cli.directory / "out" / "front.csv")
    assert front["trial"].to_list() and set(front["feasible"]) == {True}
    assert "scheduler accounts for" in printed
    assert "better than the default in every respect" in printed
    # `run` measures for the recommended configuration what the search has reported.
    best = cli.ok("run", "out/best.toml", "--json", "-")
    number = re.search(r"^ *best (\d+) ", printed, re.MULTILINE)
    assert number is not None
    chosen = trials.filter(pl.col("trial") == int(number[1]))
    measured = re.search(r'"throughput_bytes_per_s": ([0-9.e+]+)', best)
    assert measured is not None
    assert float(measured[1]) == pytest.approx(chosen["throughput_bytes_per_s"][0])


def test_a_journal_without_an_end_is_cut(cli: Cli) -> None:
    """Regression: after a full disk the next start appended to half a line, and every later start failed."""
    (cli.directory / "tune.toml").write_text(RANGES)
    whole = cli.ok("tune", "tune.toml", "--out", "out", "--jobs", "1")
    trials = (cli.directory / "out" / "trials.csv").read_text()
    journal = cli.directory / "out" / "trials.journal"
    lines = journal.read_bytes().splitlines(keepends=True)
    for cut in (b"".join(lines)[:-1], b"".join(lines[:-3]) + lines[-3][:40], lines[0][:9], b""):
        journal.write_bytes(cut)
        assert cli.ok("tune", "tune.toml", "--out", "out", "--jobs", "1") == whole
        assert (cli.directory / "out" / "trials.csv").read_text() == trials
    # A journal in the state that the previous version left is refused; once it is removed, the search finds
    # the same results again.
    journal.write_bytes(lines[0] + lines[1][:20] + b"".join(lines[1:]))
    done = cli("tune", "tune.toml", "--out", "out", "--jobs", "1")
    assert done.returncode == 2
    assert done.stderr.startswith("error: --out out/trials.journal: damaged; remove it"), done.stderr
    journal.unlink()
    assert cli.ok("tune", "tune.toml", "--out", "out", "--jobs", "1") == whole


def test_killed_it_goes_on_as_if_it_had_not_been(cli: Cli) -> None:
    (cli.directory / "tune.toml").write_text(RANGES.replace("= 300", "= 20000"))
    command = [sys.executable, "-m", "ftlab", "tune", "tune.toml", "--jobs", "1", "--out"]
    subprocess.run([*command, "whole"], cwd=cli.directory, check=True, capture_output=True)
    for wanted in (3, 7):
        with subprocess.Popen([*command, "out"], cwd=cli.directory, stdout=subprocess.DEVNULL) as process:
            folder = cli.directory / "out" / "json"
            while process.poll() is None and len(list(folder.glob("*.json"))) < wanted:
                time.sleep(0.005)
            os.kill(process.pid, signal.SIGKILL)
    subprocess.run([*command, "out"], cwd=cli.directory, check=True, capture_output=True)
    texts = [(cli.directory / name / "trials.csv").read_text() for name in ("whole", "out")]
    assert texts[0] == texts[1]


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (
            'maximize = ["throughput_bytes_per_s"]\nminimize = ["latency.all.percentile_ns.99"]',
            "",
            "minimize",
        ),
        ('range = ["4KiB", "64KiB"]', 'range = ["4KiB", "64ms"]', "of one kind"),
        ('range = ["4KiB", "64KiB"]', 'range = ["64KiB", "4KiB"]', "the first is the least"),
        ('range = ["4KiB", "64KiB"]', "range = [0, 5]", "begins above 0"),
        ('range = ["4KiB", "64KiB"]', 'choices = ["1KiB"]\nrange = [1, 5]', "either choices, or a range"),
        ("'scheduler != \"noop\"'", "'schedler != 1'", "no parameter 'schedler' comes before it"),
        ('<= "16KiB"', '< "4KiB"', "none of 16 trials meets"),
        ("runs = 16", "runs = 0", "at least one"),
        ("runs = 16", "", "runs: is missing"),
        ('["throughput_bytes_per_s"]', '["troughput"]', "no value 'troughput'"),
    ],
)
def test_errors_of_the_user(cli: Cli, old: str, new: str, message: str) -> None:
    assert old in RANGES
    (cli.directory / "tune.toml").write_text(RANGES.replace(old, new))
    done = cli("tune", "tune.toml", "--out", "out")
    assert (done.returncode, message in done.stderr, "Traceback" in done.stderr) == (2, True, False), (
        done.stderr
    )


def test_the_front_of_random_points_is_what_nothing_dominates(tmp_path: Path) -> None:
    path = tmp_path / "tune.toml"
    path.write_text(RANGES)
    tuning = load_tuning(path)
    grid = itertools.product(range(5), range(5))
    # Throughput counts upward: the first objective is minimized, the second maximized.
    trials = [Trial(at, {}, (float(a), float(b))) for at, (a, b) in enumerate(grid, 1) if a + 1 >= b]
    front = [trial.values for trial in pareto(trials, tuning)]
    assert sorted(front) == [(0.0, 1.0), (1.0, 2.0), (2.0, 3.0), (3.0, 4.0)]
    chosen = knee(pareto(trials, tuning), tuning)
    assert chosen is not None and chosen.values in ((1.0, 2.0), (2.0, 3.0))
    assert knee([], tuning) is None


def test_importance_is_the_variance_between_values(tmp_path: Path) -> None:
    path = tmp_path / "tune.toml"
    path.write_text(RANGES)
    tuning = load_tuning(path)
    trials = [
        Trial(at, {"scheduler": name, "cache": f"{cache}B"}, (10.0 * (name == "noop"), float(cache)))
        for at, (name, cache) in enumerate(itertools.product(["noop", "map+"], range(8)), 1)
    ]
    found = importance(tuning, trials)
    assert found["scheduler"] == [1.0, 0.0]
    assert found["cache"][0] == 0.0
    assert found["cache"][1] > 0.9
    assert found["deadline"] == [0.0, 0.0]
    # The objective that is maximized comes last.
    assert [each.maximize for each in tuning.objectives] == [False, True]


@pytest.mark.parametrize(("given", "digits"), [('["7%", "28%"]', 0), ('["0.5%", "2.5%"]', 4)])
def test_ranges_of_shares(tmp_path: Path, given: str, digits: int) -> None:
    """Regression: 7% became 7.000000000000001%, which no configuration accepts."""
    text = RANGES.replace('key = "ftl.mapping_cache"\nrange = ["4KiB", "64KiB"]\nlog = true', "KEY")
    text = text.replace("KEY", f'key = "ftl.spare"\nrange = {given}').replace("runs = 16", "runs = 4")
    text = text.replace("ftl.spare", "ftl.over_provisioning").replace('"flash.blocks_per_plane" = 64', "")
    found = search(tmp_path, text.replace("constraints", "# constraints"))
    shares = [trial.parameters["cache"] for trial in found.trials]
    assert all(trial.values for trial in found.trials), [trial.error for trial in found.trials]
    assert all(len(share.removesuffix("%").partition(".")[2]) <= digits for share in shares), shares


def test_runs_that_last_are_not_ended_by_those_before(tmp_path: Path) -> None:
    """Regression: the second of two trials was taken to have been interrupted."""
    found = search(tmp_path, RANGES.replace("= 300", "= 200000").replace("runs = 16", "runs = 3"))
    assert all(trial.values for trial in found.trials)


def test_without_optuna_it_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "optuna", None)
    with pytest.raises(UserError, match=r"pip install 'ftlab\[tune\]'"):
        search(tmp_path, RANGES)
