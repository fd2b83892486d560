"""`ftlab trace fit`: the closed forms, the searches, models of targets and of traces."""

from __future__ import annotations

import json
import math
import tomllib
from pathlib import Path
from typing import Any

import pytest

from front import Cli
from ftlab.fitting import arrivals, measure, sizes, solve
from ftlab.traces import generator_config

TARGETS = """source = "made up"
[config]
preset = "vios"
[config.device]
scheduler = "noop"
[config.flash]
blocks_per_plane = 32
[synthetic]
region = "256MiB"
interarrival = "20us"
[targets.calm]
reads = 6000
writes = 14000
read_conflicts = 1800
write_conflicts = 2000
mean_read_size = "12kB"
mean_write_size = "6kB"
"""


def model(path: Path) -> dict[str, Any]:
    return tomllib.loads(path.read_text())


@pytest.mark.parametrize(
    ("mean_ns", "cv", "length"), [(1e6, 1.2, 4.0), (5e4, 3.0, 20.0), (1e6, 10.0, 2.0), (7e5, 1.06, 1.0)]
)
def test_bursts_have_the_mean_and_the_spread(mean_ns: float, cv: float, length: float) -> None:
    found = arrivals.bursts(mean_ns, cv, length)
    p = 1 / found.length
    mean = (1 - p) * found.within_ns + p * found.between_ns
    second = 2 * ((1 - p) * found.within_ns**2 + p * found.between_ns**2)
    assert mean == pytest.approx(mean_ns, rel=1e-9)
    assert math.sqrt(second / mean**2 - 1) == pytest.approx(cv, rel=1e-6)
    assert found.within_ns >= 0


def test_bursts_of_one_operation_keep_the_rate() -> None:
    lengths = arrivals.Lengths(4.0, 2.0)
    found = arrivals.of_rate(1e6, 2e4, (30_000, 70_000), lengths)
    gaps = 30_000 / 4 + 70_000 / 2
    assert (gaps * found.between_ns + (100_000 - gaps) * found.within_ns) / 100_000 == pytest.approx(1e6)


@pytest.mark.parametrize("mean", [4096.0, 5000.0, 8300.0, 24_000.0, 60_000.0, 65_536.0])
def test_a_mix_has_its_mean(mean: float) -> None:
    mix = sizes.of_mean([4096, 8192, 16_384, 32_768, 65_536], mean)
    assert mix is not None
    assert sizes.mean(mix) == pytest.approx(mean, rel=2e-4)


def test_a_mix_has_no_mean_beyond_its_sizes() -> None:
    assert sizes.of_mean([4096, 8192], 4000.0) is None
    assert sizes.of_mean([4096, 8192], 8193.0) is None


def test_rare_sizes_are_merged_into_their_mean() -> None:
    counts = {512 * n: 1000 - n for n in range(1, 101)}
    mix = sizes.of_counts(counts)
    assert len(mix) <= sizes.MOST_SIZES
    mean = sum(size * number for size, number in counts.items()) / sum(counts.values())
    assert sizes.mean(mix) == pytest.approx(mean, rel=0.005)
    assert sizes.difference(dict(mix), {512: 1}) > 0.9
    assert sizes.difference(dict(mix), dict(mix)) == 0


def test_bisection_finds_a_root_and_says_the_nearer_end() -> None:
    assert solve.bisect(lambda x: x**3 - 2, 0, 2, 1e-6, 60) == pytest.approx(2 ** (1 / 3), abs=1e-5)
    assert solve.bisect(lambda x: x + 1, 0, 2, 1e-6, 60) == 0
    assert solve.bisect(lambda x: x - 9, 0, 2, 1e-6, 60) == 2


def test_a_search_finds_the_common_root_of_two_coupled_functions() -> None:
    calls = 0

    def function(at: solve.Pair) -> solve.Pair:
        nonlocal calls
        calls += 1
        x, y = at
        return math.exp(-x) + 0.3 * y - 0.5, math.exp(-x) - 0.2 * math.exp(y)

    found = solve.Search(function, (-9, -6), (9, 6), 1e-6, 80).run((0.0, 0.0))
    assert found.distance <= 1e-6
    assert calls < 40


def test_a_search_without_a_root_keeps_the_nearest_within_its_budget() -> None:
    calls = 0

    def function(at: solve.Pair) -> solve.Pair:
        nonlocal calls
        calls += 1
        return at[0] ** 2 + 1, at[1]

    found = solve.Search(function, (-9, -6), (9, 6), 1e-6, 50).run((2.0, 1.0))
    assert calls == 50
    assert found.distance < 1.2


def test_targets_are_reached_and_the_model_runs(cli: Cli) -> None:
    (cli.directory / "t.toml").write_text(TARGETS)
    text = cli.ok("trace", "fit", "t.toml", "--out", "models", "--json", "fit.json")
    assert text.startswith("calm: models/calm.toml (")
    (fitted,) = json.loads((cli.directory / "fit.json").read_text())
    found = fitted["characteristics"]
    for name, target in (("reads", 6000), ("writes", 14_000)):
        assert (found[name]["target"], found[name]["reached"]) == (target, target)
    for name, target in (("read_conflicts", 1800), ("write_conflicts", 2000)):
        assert abs(found[name]["reached"] / target - 1) <= 0.01
    path = cli.directory / "models" / "calm.toml"
    assert model(path)["preset"] == "vios"
    # The file alone gives what the report says.
    settings = ("--set", "device.scheduler=noop", "--set", "flash.blocks_per_plane=32")
    result = json.loads(cli.ok("run", str(path), *settings, "--json", "-"))
    assert result["conflicts"]["read"] == found["read_conflicts"]["reached"]
    assert result["conflicts"]["write"] == found["write_conflicts"]["reached"]
    assert result["trace"]["reads"] == 6000
    assert cli.ok("trace", "fit", "t.toml", "--only", "calm", "--out", "one.toml")
    assert (cli.directory / "one.toml").read_text() == path.read_text(), "seeded: the same again"


def test_what_cannot_be_reached_is_said(cli: Cli) -> None:
    """No order of arrivals has every write conflict and no read."""
    text = TARGETS.replace("read_conflicts = 1800", "read_conflicts = 0")
    (cli.directory / "t.toml").write_text(text.replace("write_conflicts = 2000", "write_conflicts = 14000"))
    done = cli("trace", "fit", "t.toml", "--out", "t")
    assert done.returncode == 0, done.stderr
    assert "NOT reached" in done.stdout
    assert "warning: calm: write_conflicts was not reached" in done.stderr
    assert "NOT reached" in (cli.directory / "t" / "calm.toml").read_text()


def test_a_trace_becomes_a_model_of_itself(cli: Cli) -> None:
    made: tuple[str, ...] = (
        "--requests",
        "20000",
        "--read-share",
        "35%",
        "--pattern",
        "hot-cold",
        "--hot-share",
        "90%",
    )
    made += ("--read-sizes", "4KiB/3:16KiB/1", "--size", "8KiB", "--sequential-share", "20%")
    made += ("--region", "64MiB", "--align", "4KiB", "--arrival", "bursts", "--burst-length", "6")
    cli.ok("trace", "generate", "a.parquet", *made, "--interarrival", "50us", "--burst-gap", "4ms")
    cli.ok("trace", "fit", "a.parquet", "--out", "m.toml", "--json", "f.json")
    (fitted,) = json.loads((cli.directory / "f.json").read_text())
    found = fitted["characteristics"]
    for name in ("reads", "writes", "mean_read_size", "sequential_ratio", "miss_ratio", "read_size_mix"):
        assert found[name]["met"], (name, found[name])
    # Two moments of a random process, of 20,000 draws each.
    assert abs(found["mean_interarrival_ns"]["difference"]) < 0.05
    assert abs(found["interarrival_cv"]["difference"]) < 0.05
    assert found["reads"]["target"] == found["reads"]["reached"]
    assert "preset" not in model(cli.directory / "m.toml")
    result = json.loads(cli.ok("run", "m.toml", "--json", "-"))
    assert result["trace"]["requests"] == 20_000


def test_a_trace_with_a_device_keeps_its_conflicts(cli: Cli) -> None:
    made: tuple[str, ...] = (
        "--requests",
        "20000",
        "--read-share",
        "40%",
        "--size",
        "8KiB",
        "--region",
        "64MiB",
    )
    made += ("--arrival", "bursts", "--burst-length", "5", "--interarrival", "40us", "--burst-gap", "2ms")
    cli.ok("trace", "generate", "a.csv", *made)
    device = ("--config", "vios", "--set", "flash.blocks_per_plane=32", "--set", "device.scheduler=noop")
    cli.ok("trace", "fit", "a.csv", "--out", "m.toml", *device, "--json", "f.json")
    (fitted,) = json.loads((cli.directory / "f.json").read_text())
    found = fitted["characteristics"]
    # Of some thousand conflicts; their own spread is 2 %.
    assert abs(found["read_conflicts"]["difference"]) < 0.03, found
    assert abs(found["write_conflicts"]["difference"]) < 0.03, found
    assert abs(found["mean_interarrival_ns"]["difference"]) < 0.05


def test_measures_are_those_of_trace_info(cli: Cli) -> None:
    config = generator_config({"requests": 5000, "sequential_share": "30%", "read_share": "25%"})
    found = measure.measure(config)
    cli.ok(
        "trace", "generate", "a.csv", "--requests", "5000", "--sequential-share", "30%", "--read-share", "25%"
    )
    info = json.loads(cli.ok("trace", "info", "a.csv", "--json", "-"))
    assert found.counts == [info["reads"], info["writes"], info["trims"]]
    assert found.sequential_ratio == pytest.approx(info["sequential_ratio"], abs=1e-12)
    assert found.mean_gap_ns == pytest.approx(info["span_ns"] / 4999)


MISTAKES = [
    ("no = 1", "t.toml: no: unknown"),
    ("[targets.a]\nreads = 5\nreeds = 1", "t.toml: targets.a.reeds: unknown"),
    ("[targets.a]\nreads = -5", "t.toml: targets.a.reads: -5: expected a whole number"),
    ("[targets.a]\nreads = 5\nread_conflicts = 1", "read_conflicts and write_conflicts come together"),
    ("[targets.a]\nreads = 5\nread_conflicts = 6\nwrite_conflicts = 0", "more conflicts than reads"),
    ("[targets.a]\nwrites = 0", "no reads and no writes"),
    ('[targets.a]\nreads = 5\nmean_read_size = "1MiB"', "is no mean of sizes"),
    ('[targets.a]\nreads = 5\nmean_read_size = "8K"', "ambiguous, write 8KiB or 8kB"),
    ("[targets.a]\nreads = 5\nmiss_ratio = 1.5", "expected a number from 0 to 1"),
    ('[config]\npreset = "vois"\n[targets.a]\nreads = 5', "vois"),
    ("[targets", "not valid TOML"),
    ('[targets.a]\nreads = 5\nsynthetic = { patern = "zipf" }', "workload.synthetic.pattern"),
]


@pytest.mark.parametrize(("text", "said"), MISTAKES)
def test_mistakes_in_targets(cli: Cli, text: str, said: str) -> None:
    (cli.directory / "t.toml").write_text(text + "\n")
    done = cli("trace", "fit", "t.toml", "--out", "models")
    assert done.returncode == 2, done.stderr
    assert done.stderr.startswith("error: ")
    assert said in done.stderr
    assert "Traceback" not in done.stderr


def test_mistakes_on_the_command_line(cli: Cli) -> None:
    (cli.directory / "t.toml").write_text(TARGETS + "[targets.other]\nreads = 5\n")
    for arguments, said in [
        (("a.csv", "--out", "m.csv"), "the name must end in .toml"),
        (("nothere.csv", "--out", "m.toml"), "No such file"),
        (("t.toml", "--out", "m.toml"), "name a directory"),
        (("t.toml", "--out", "m", "--only", "no"), "there are calm, other"),
        (("t.toml", "--out", "m", "--config", "vios"), "table [config]"),
        (("a.csv", "--out", "m.toml", "--tolerance", "1"), "expected a share"),
        (("a.csv", "--out", "m.toml", "--only", "x"), "no targets file"),
    ]:
        done = cli("trace", "fit", *arguments)
        assert done.returncode == 2, (arguments, done.stderr)
        assert said in done.stderr, (arguments, done.stderr)
