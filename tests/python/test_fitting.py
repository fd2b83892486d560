"""`ftlab trace fit`: its closed forms and searches, and the models of targets and of traces."""

from __future__ import annotations

import json
import math
import tomllib
from pathlib import Path
from typing import Any

import pytest

from front import Cli
from ftlab.fitting import Fitter, Targets, arrivals, end_to_end, measure, sizes, solve
from ftlab.fitting.measure import miss_ratio
from ftlab.traces import generator_config, trace_config

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


@pytest.mark.parametrize(
    ("mean_ns", "median_ns", "seen", "cv"),
    [(2.8e6, 7e4, 10.3, 13.9), (2.1e8, 5.5e4, 27.3, 8.2), (3.4e7, 2.6e5, 9.0, None), (8.6e6, 0.0, 12.8, 6.0)],
)
def test_bursts_with_pauses_have_mean_median_length_and_spread(
    mean_ns: float, median_ns: float, seen: float, cv: float | None
) -> None:
    found = arrivals.median_bursts(mean_ns, median_ns, seen, cv)
    p, q = 1 / found.length, found.pause_share
    parts = [
        (1 - p, found.within_ns), (p * (1 - q), found.between_ns), (p * q, found.pause_ns),
    ]  # fmt: skip
    mean = sum(share * each for share, each in parts)
    assert mean == pytest.approx(mean_ns, rel=1e-6)
    if median_ns:
        assert arrivals.longer(found, median_ns) == pytest.approx(0.5, abs=1e-6)
    assert 1 / arrivals.longer(found, mean_ns) == pytest.approx(seen, rel=1e-6)
    if cv is not None:
        second = 2 * sum(share * each**2 for share, each in parts)
        assert math.sqrt(second / mean**2 - 1) == pytest.approx(cv, rel=1e-3)


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
    assert "on vios, device.precondition fill, device.scheduler noop, flash.pe_cycles" in path.read_text()
    # The model's file alone leads to the figures in the report.
    settings = ("--set", "device.scheduler=noop", "--set", "flash.blocks_per_plane=32")
    result = json.loads(cli.ok("run", str(path), *settings, "--json", "-"))
    assert result["conflicts"]["read"] == found["read_conflicts"]["reached"]
    assert result["conflicts"]["write"] == found["write_conflicts"]["reached"]
    assert result["trace"]["reads"] == 6000
    assert cli.ok("trace", "fit", "t.toml", "--only", "calm", "--out", "one.toml")
    assert (cli.directory / "one.toml").read_text() == path.read_text(), "seeded: the same again"


def test_what_cannot_be_reached_is_said(cli: Cli) -> None:
    """The output and the model say which target was not reached: no order of arrivals makes every write
    conflict but no read.
    """
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
    # The two figures are moments of a random process, each estimated from 20,000 draws.
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
    # There are a few thousand conflicts, so their number varies by 2 % by chance.
    assert abs(found["read_conflicts"]["difference"]) < 0.03, found
    assert abs(found["write_conflicts"]["difference"]) < 0.03, found
    assert abs(found["mean_interarrival_ns"]["difference"]) < 0.05


FIGURES = """source = "a table"
[config]
preset = "map-plus"
[synthetic]
region = "64MiB"
align = "4KiB"
[targets.app]
requests = 20000
write_ratio = 0.9
mean_size = "9kB"
sequential_ratio = 0.1
stream_ratio = 0.2
near_ratio = 0.7
miss_ratio = 0.55
mean_interarrival = "10ms"
median_interarrival = "100us"
interarrival_cv = 8
burst_length = 9
"""


def test_figures_of_a_table_are_reached(cli: Cli) -> None:
    """A model reaches targets as a paper prints them: requests, shares, one mean size, locality, bursts."""
    (cli.directory / "t.toml").write_text(FIGURES)
    cli.ok("trace", "fit", "t.toml", "--out", "m", "--json", "f.json")
    (fitted,) = json.loads((cli.directory / "f.json").read_text())
    found = fitted["characteristics"]
    missed = {name: each for name, each in found.items() if not each["met"]}
    assert not missed
    stated = {"write_ratio", "mean_size", "stream_ratio", "near_ratio", "miss_ratio"}
    assert stated | {"median_interarrival_ns", "interarrival_cv", "burst_length"} <= set(found)
    assert found["writes"]["reached"] == 18_000
    # The model's file names the device, so that a run of it needs no other configuration; the run has the
    # miss ratio that was asked for.
    written = model(cli.directory / "m" / "app.toml")
    assert written["preset"] == "map-plus"
    alone = ("--set", "workload.replay=closed", "--set", "host.queue_depth=1", "--set", "host.scheduler=noop")
    mapping = json.loads(cli.ok("run", "m/app.toml", *alone, "--json", "-"))["mapping"]
    assert mapping["misses"] / (mapping["hits"] + mapping["misses"]) == pytest.approx(0.55, abs=0.01)


def test_a_share_of_updated_mappings_is_reached_by_the_region(cli: Cli) -> None:
    text = (
        FIGURES.partition("mean_interarrival")[0]
        .replace("miss_ratio", "updated_ratio")
        .replace("0.55", "0.2")
    )
    text = text.replace(
        '"map-plus"', '"msftl"\n[config.ftl]\nkind = "dftl"\n[config.flash]\nblocks_per_plane = 64'
    )
    (cli.directory / "t.toml").write_text(text)
    cli.ok("trace", "fit", "t.toml", "--out", "m", "--json", "f.json")
    (fitted,) = json.loads((cli.directory / "f.json").read_text())
    assert fitted["characteristics"]["updated_ratio"]["reached"] == pytest.approx(0.2, abs=0.02)


def test_a_model_has_no_place_and_no_time_of_its_trace(cli: Cli) -> None:
    """A confidential trace can be passed on as a model, which holds sizes and shares, but no address and no
    time.
    """
    rows, time, state = ["time_ns,op,offset,size"], 1_234_567_891, 1
    offsets = []
    for at in range(3000):
        state = state * 6364136223846793005 % 2**64
        place = state >> 33
        offsets.append(((place % 500) * 7919 + 7_777_777) << 12)
        time += 1_000_003 if place % 5 else 50_000_017
        rows.append(f"{time},{'W' if at % 4 else 'R'},{offsets[-1]},{65_536 if place % 3 else 4096}")
    (cli.directory / "secret.csv").write_text("\n".join(rows) + "\n")
    cli.ok("trace", "fit", "secret.csv", "--out", "m.toml", "--preset", "msftl", "--json", "f.json")
    (fitted,) = json.loads((cli.directory / "f.json").read_text())
    found = fitted["characteristics"]
    asked = {"reads", "writes", "read_size_mix", "write_size_mix", "sequential_ratio", "miss_ratio"}
    asked |= {"conflict_ratio", "interarrival_cv", "stream_ratio", "near_ratio"}
    assert asked <= set(found)
    assert not found["conflict_ratio"]["fitted"]
    text = (cli.directory / "m.toml").read_text()
    assert not any(str(offset >> shift) in text for offset in set(offsets) for shift in (0, 9, 12))
    assert "1234567891" not in text
    written = model(cli.directory / "m.toml")
    assert written["preset"] == "msftl"
    assert list(written["workload"]) == ["synthetic"]
    # The pages are packed densely: the region is as large as what was touched, wherever that was.
    assert "7777777" not in text
    assert found["footprint_bytes"]["target"] < 40 << 20


def test_a_region_may_be_larger_than_the_default_device() -> None:
    """Regression: a trace of more than 1 GiB, including the phone's, could not be fitted: its region was
    checked against the default device, on which nothing runs.
    """
    fit = Fitter(None).fit(Targets("large", "", reads=100, writes=0, synthetic={"region": "3GiB"}))
    assert fit.characteristics[0].met


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
    ('[targets.a]\nreads = 5\nmean_read_size = "1MiB"', "is not a mean of sizes"),
    ('[targets.a]\nreads = 5\nmean_read_size = "8K"', "ambiguous, write 8KiB or 8kB"),
    ("[targets.a]\nreads = 5\nmiss_ratio = 1.5", "expected a number from 0 to 1"),
    ('[config]\npreset = "vois"\n[targets.a]\nreads = 5', "vois"),
    ("[targets.a]\nrequests = 5", "requests and write_ratio come together"),
    ("[targets.a]\nrequests = 5\nwrite_ratio = 0.5\nreads = 3", "or requests and write_ratio; not both"),
    ("[targets.a]\nrequests = 5\nwrite_ratio = 1.1", "expected a number from 0 to 1"),
    ("[targets.a]\nreads = 5\nburst_length = 0.5", "expected a number from 1 to"),
    ('[targets.a]\nreads = 5\nmean_size = "8KiB"\nmean_read_size = "8KiB"', "mean_size, or mean_read_size"),
    ("[targets.a]\nreads = 5\ninterarrival_cv = 2", "interarrival_cv needs mean_interarrival"),
    ('[targets.a]\nreads = 5\nmean_interarrival = "1ms"\nburst_length = 2', "burst_length needs"),
    (
        '[targets.a]\nreads = 5\nmean_interarrival = "1ms"\nmedian_interarrival = "2ms"\nburst_length = 2',
        "expected less than 0.6 of mean_interarrival",
    ),
    ("[targets.a]\nreads = 5\nstream_ratio = 0.5", "stream_ratio needs near_ratio"),
    (
        "[targets.a]\nreads = 5\nnear_ratio = 0.5\nsequential_ratio = 0.4\nstream_ratio = 0.3",
        "less than sequential_ratio",
    ),
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
        (("a.csv", "--out", "m.toml", "--only", "x"), "not a targets file"),
        (("a.csv", "--out", "m.toml", "--preset", "x"), "there are map-plus"),
        (("t.toml", "--out", "m", "--preset", "msftl"), "table [config]"),
    ]:
        done = cli("trace", "fit", *arguments)
        assert done.returncode == 2, (arguments, done.stderr)
        assert said in done.stderr, (arguments, done.stderr)


def test_a_trace_of_few_pages_is_fitted(tmp_path: Path) -> None:
    """Regression: the device on which misses are counted was too small for its own translation pages."""
    lines = [f"{at * 50_000},R,{4096 * (at * 7 % 40)},4096" for at in range(300)]
    (tmp_path / "a.csv").write_text("\n".join(["time_ns,op,offset,size", *lines]) + "\n")
    assert 0 < miss_ratio(trace_config(tmp_path / "a.csv"), 40 * 4096) < 1


def test_the_check_compares_schedulers_on_trace_and_model(cli: Cli) -> None:
    """The trace's side is what `ftlab run` gives, the model's side what a run of the model's file gives."""
    generated = ("trace", "generate", "a.csv", "--requests", "1500", "--region", "32MiB")
    cli.ok(*generated, "--interarrival", "300us")
    said = cli.ok("trace", "fit", "a.csv", "--out", "m.toml", "--check-on", "map-plus", "--json", "f.json")
    (fit,) = json.loads((cli.directory / "f.json").read_text())
    found = {row["scheduler"]: row for row in fit["end_to_end"]}
    assert set(found) == set(end_to_end.SCHEDULERS)
    for name, load in (("trace", ("map-plus", "--trace", "a.csv")), ("model", ("m.toml",))):
        more = ("--set", "preset=map-plus") if name == "model" else ()
        result = json.loads(cli.ok("run", *load, *more, "--set", "host.scheduler=rb", "--json", "-"))
        assert found["rb"][f"{name}_ns"] == result["latency"]["all"]["mean_ns"]
    assert "mean latency on map-plus" in said and "of 15 pairs of schedulers" in said
    refused = cli("trace", "fit", "t.toml", "--out", "m", "--check-on", "map-plus")
    assert refused.returncode == 2 and "the check needs a trace" in refused.stderr


def test_pairs_in_the_same_order_are_counted() -> None:
    rows = [("a", 1.0, 10.0), ("b", 2.0, 30.0), ("c", 3.0, 20.0), ("d", 3.0, 20.0)]
    found = [end_to_end.Compared(*row) for row in rows]
    # b comes before c and d on the trace, behind both on the model.
    assert end_to_end.same_order(found) == (4, 6)
    assert found[1].error == 14.0
    shown = end_to_end.text(found, "x").splitlines()
    assert [line.split()[0] for line in shown[2:6]] == ["a", "b", "c", "d"]
    assert shown[3].endswith("place 4 on the model")
