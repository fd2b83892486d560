"""Results in fio's layout, compared with fio's own output, fio's own script, and the result's figures."""

from __future__ import annotations

import json
import math
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import ftlab
from front import Cli
from ftlab.results.histogram import lower, midpoint

WORK = {
    "workload.synthetic.requests": 4000,
    "workload.synthetic.interarrival": "400us",
    "workload.synthetic.trim_share": "5%",
}
PARTS = {"slat_ns": "wait", "clat_ns": "access", "lat_ns": "latency"}
values = st.lists(st.integers(0, 2**50) | st.integers(0, 300), max_size=60)

# Keys of `fio --name=j --rw=randrw --output-format=json` (3.33) for which ftlab has no value.
LEFT_OUT = {"iodepth_submit", "iodepth_complete"}
LEFT_OUT |= {"latency_depth", "latency_target", "latency_percentile", "latency_window"}
TOP = {"fio version", "global options", "jobs", "disk_util"}
JOB = {"jobname", "groupid", "error", "eta", "elapsed", "job options", "read", "write", "trim", "sync"}
JOB |= {"job_runtime", "usr_cpu", "sys_cpu", "ctx", "majf", "minf", "iodepth_level"}
JOB |= {"latency_ns", "latency_us", "latency_ms"}


@pytest.fixture(scope="module")
def result() -> ftlab.Result:
    return ftlab.run("map-plus", set=WORK)


def job_of(result: ftlab.Result, *, plus: bool = False) -> dict[str, Any]:
    job: dict[str, Any] = result.to_fio(plus=plus)["jobs"][0]
    return job


def test_figures_are_those_of_the_result(result: ftlab.Result) -> None:
    job = job_of(result)
    for op in ("read", "write"):
        for theirs, ours in PARTS.items():
            found, expected = job[op][theirs], result[ours][op]
            assert found["N"] == expected.count == job[op]["total_ios"]
            assert (found["min"], found["max"]) == (expected.min_ns, expected.max_ns)
            assert found["mean"] == pytest.approx(expected.mean_ns, rel=1e-12)
            sample = math.sqrt(expected.count / (expected.count - 1))
            assert found["stddev"] == pytest.approx(expected.stddev_ns * sample, rel=1e-9)
            assert found["percentile"] == expected.percentile_ns.to_dict()
    assert job["read"]["io_bytes"] == result.trace.bytes_read
    assert job["write"]["io_bytes"] == result.trace.bytes_written
    assert job["trim"]["total_ios"] == result.trace.trims > 0
    moved = job["read"]["bw_bytes"] + job["write"]["bw_bytes"]
    assert moved == pytest.approx(result.throughput_bytes_per_s, abs=2)
    assert job["read"]["iops"] == pytest.approx(result.trace.reads * 1e9 / result.elapsed_ns)
    assert job["job_runtime"] == round(result.elapsed_ns / 1e6)


def test_shares_add_up(result: ftlab.Result) -> None:
    job = job_of(result)
    levels = [share for unit in ("ns", "us", "ms") for share in job[f"latency_{unit}"].values()]
    assert len(levels) == 32
    assert sum(levels) == pytest.approx(100, abs=1e-4)
    assert sum(job["iodepth_level"].values()) == pytest.approx(100, abs=1e-4)
    # The only chip does nothing but serve requests, which reach it one by one.
    assert result.to_fio()["disk_util"][0]["util"] == pytest.approx(
        100 * result.utilization.chip[0], rel=1e-6
    )


def test_buckets_depths_and_samples_by_hand(tmp_path: Path) -> None:
    # A program takes 350 us and a read 35 us, so only the second write waits.
    rows = ["0,W,0,4096", "0,W,4096,4096", "600000000,W,0,4096", "1600000000,R,0,4096"]
    path = tmp_path / "t.csv"
    path.write_text("\n".join(["time_ns,op,offset,size", *rows]) + "\n")
    result = ftlab.run("map-plus", trace=path, ftl__kind="page", host__scheduler="noop")
    job = job_of(result, plus=True)
    assert job["latency_us"]["500"] == 75.0
    assert job["latency_us"]["50"] == 25.0
    assert job["iodepth_level"] == {
        "1": 75.0,
        "2": 25.0,
        **dict.fromkeys(("4", "8", "16", "32", ">=64"), 0.0),
    }
    assert job["write"]["clat_ns"]["bins"] == {"350208": 3}
    assert job["write"]["slat_ns"]["bins"] == {"0": 2, "350208": 1}
    assert job["read"]["slat_ns"]["bins"] == {"0": 1}
    # A sample covers 0.5 s. The first has two writes, the second has one, the third has none; the fourth is
    # incomplete, so the read is in no sample.
    assert [job["write"][f"iops_{part}"] for part in ("samples", "min", "max", "mean")] == [2, 2, 4, 3.0]
    assert job["write"]["iops_stddev"] == pytest.approx(math.sqrt(2))
    assert (job["write"]["bw_min"], job["write"]["bw_max"]) == (8, 16)
    assert job["read"]["iops_samples"] == 0
    assert job["elapsed"] == 2
    disk = result.to_fio()["disk_util"][0]
    assert (disk["read_ios"], disk["write_ios"], disk["write_sectors"]) == (1, 3, 24)
    assert (disk["write_ticks"], disk["in_queue"]) == (1, 1)
    assert disk["util"] == pytest.approx(100 * 1_085_000 / 1_600_035_000)


def test_options_say_what_ran(result: ftlab.Result) -> None:
    document = result.to_fio("mine")
    assert document["fio version"] == f"fio-3.33-ftlab-{ftlab.__version__}"
    assert document["global options"]["host.scheduler"] == "map+"
    options = document["jobs"][0]["job options"]
    assert options == {"name": "mine", "rw": "randrw", "bs": "4096", "iodepth": "128", "numjobs": "1"}
    reads = ftlab.run("map-plus", set=WORK | {"workload.synthetic.read_share": "95%"})
    assert reads.trace.writes == 0
    assert reads.trace.trims > 0
    only = ftlab.run(
        "map-plus", set={"workload.synthetic.requests": 50}, workload__synthetic__read_share="100%"
    )
    assert job_of(only)["job options"]["rw"] == "randread"
    assert "percentile" not in job_of(only)["write"]["lat_ns"]
    assert job_of(only)["write"]["runtime"] == 0


SECTIONS = """
[global]
direct=1
ioengine=libaio
filename=a
size=4m
[rr]
rw=randread
bs=4k
iodepth=8
[sw]
STONEWALL
rw=write
bs=16k
iodepth=2
numjobs=2
"""


def test_a_fio_job_has_a_job_for_each_section(tmp_path: Path) -> None:
    """Regression: all sections were one job, with host.queue_depth (1024) as iodepth, and random reads were
    called `read`. What fio-plot 1.1.21 looks for with ``-r randread -d 8 -n 1`` are these three options.
    """
    file = tmp_path / "two.fio"
    file.write_text(SECTIONS.replace("STONEWALL", "stonewall"))
    keys = {"workload.fio_job": str(file), "host.merge_limit": "0B"}
    result = ftlab.run("map-plus", set=keys)
    document = result.to_fio("mine")
    first, second = document["jobs"]
    wanted = ("name", "rw", "iodepth", "numjobs")
    assert [first["job options"][name] for name in wanted] == ["rr", "randread", "8", "1"]
    assert [second["job options"][name] for name in wanted] == ["sw", "write", "2", "2"]
    assert [(job["jobname"], job["groupid"]) for job in (first, second)] == [("rr", 0), ("sw", 1)]
    assert [first["read"]["io_bytes"], second["read"]["io_bytes"]] == [4 << 20, 0]
    assert [first["write"]["io_bytes"], second["write"]["io_bytes"]] == [0, 8 << 20]
    # Little's law holds in each: the workers keep that many requests outstanding.
    for job, op, depth in ((first, "read", 8), (second, "write", 4)):
        assert job[op]["iops"] * job[op]["lat_ns"]["mean"] / 1e9 == pytest.approx(depth, rel=0.02)
    assert sum(job["job_runtime"] for job in (first, second)) == pytest.approx(result.elapsed_ns / 1e6, abs=2)
    assert len(document["disk_util"]) == 1
    # Sections at the same time cannot be told apart.
    file.write_text(SECTIONS.replace("STONEWALL\n", ""))
    (job,) = ftlab.run("map-plus", set=keys).to_fio("mine")["jobs"]
    assert [job["job options"][name] for name in wanted] == ["mine", "randrw", "12", "1"]


@pytest.mark.parametrize(("op", "share"), [("read", "100%"), ("write", "0%")])
@pytest.mark.parametrize("pattern", ["random", "sequential"])
def test_random_requests_are_named_so(op: str, share: str, pattern: str) -> None:
    generator = {"requests": 500, "read_share": share, "pattern": pattern}
    result = ftlab.run(
        "map-plus", set={f"workload.synthetic.{key}": value for key, value in generator.items()}
    )
    expected = f"rand{op}" if pattern == "random" else op
    assert job_of(result)["job options"]["rw"] == expected


def test_keys_are_those_of_fio(result: ftlab.Result) -> None:
    document = result.to_fio()
    assert set(document) == TOP
    assert set(document["jobs"][0]) == JOB


@pytest.mark.skipif(shutil.which("fio") is None, reason="fio is not installed")
def test_keys_are_those_of_the_fio_installed(result: ftlab.Result, tmp_path: Path) -> None:
    command = "fio --name=j --rw=randrw --size=1M --bs=4k --output-format=json+"
    done = subprocess.run(command.split(), cwd=tmp_path, capture_output=True, text=True, check=True)
    theirs = json.loads(done.stdout[done.stdout.index("{") :])["jobs"][0]
    ours = job_of(result, plus=True)

    def keys(section: dict[str, Any], prefix: str = "") -> Iterator[str]:
        for name, value in section.items():
            if name not in ("job options", "bins", "percentile") and name not in LEFT_OUT:
                yield prefix + name
                if isinstance(value, dict):
                    yield from keys(value, f"{prefix}{name}.")

    # fio 3.34 and later also report when a job began.
    assert set(keys(theirs)) - {"job_start"} <= set(keys(ours))
    assert list(theirs["read"]["clat_ns"]["percentile"]) == list(ours["read"]["clat_ns"]["percentile"])
    # fio's bins are the same as ours: every value that it prints is the midpoint of a bin.
    for op in ("read", "write"):
        for text in theirs[op]["clat_ns"]["bins"]:
            assert midpoint(lower(int(text))) == int(text)


def test_run_writes_it_and_time_of_day_is_not_in_it(cli: Cli) -> None:
    arguments = ("run", "map-plus", "--trace", "a.csv", "--output-format", "fio+")
    printed = cli.ok(*arguments, "--json", "-")
    text = cli.ok(*arguments, "--json", "r.json")
    assert "where the time went" in text
    assert (cli.directory / "r.json").read_text() == printed
    document = json.loads(printed)
    assert "timestamp" not in document
    job = document["jobs"][0]
    assert job["jobname"] == "map-plus"
    assert job["sync"]["total_ios"] == 1
    assert sum(job["read"]["lat_ns"]["bins"].values()) == 4
    assert "bins" not in cli.ok(*arguments[:-1], "fio", "--json", "-")


def test_compare_writes_one_job_per_variant(cli: Cli) -> None:
    vary = ("--vary", "host.scheduler=noop,map+", "--vary", "ftl.mapping_cache=8KiB,16KiB")
    arguments = ("compare", "map-plus", "--trace", "a.csv", *vary, "--output-format", "fio")
    document = json.loads(cli.ok(*arguments, "--json", "-"))
    jobs = document["jobs"]
    labels = ["noop, 8KiB", "noop, 16KiB", "map+, 8KiB", "map+, 16KiB"]
    assert [job["jobname"] for job in jobs] == labels
    assert [job["groupid"] for job in jobs] == [0, 1, 2, 3]
    assert jobs[2]["job options"]["host.scheduler"] == "map+"
    assert jobs[2]["job options"]["ftl.mapping_cache"] == "8KiB"
    assert not {"host.scheduler", "ftl.mapping_cache"} & set(document["global options"])
    one = cli.ok("run", "map-plus", "--trace", "a.csv", "--json", "-", "--output-format", "fio")
    for part in ("read", "write", "sync", "latency_us"):
        assert json.loads(one)["jobs"][0][part] == jobs[3][part]
    comparison = ftlab.compare(
        "map-plus", {"host.alternate": [True]}, trace=cli.directory / "a.csv", collect=True
    )
    assert comparison.to_fio()["jobs"][0]["jobname"] == "true"


def test_refused_requests_are_an_error_and_no_ios() -> None:
    mortal = {
        "workload.synthetic.requests": 20_000,
        "workload.synthetic.read_share": "20%",
        "ftl.over_provisioning": "25%",
        "flash.blocks_per_plane": 32,
        "flash.pages_per_block": 16,
        "flash.endurance": 5,
        "device.precondition": "fill",
    }
    result = ftlab.run("map-plus", set=mortal)
    assert result.health.failed.writes > 1000
    job = job_of(result)
    assert job["error"] == 30
    assert job["write"]["total_ios"] == result.latency.write.count
    assert job["write"]["total_ios"] == result.trace.writes - result.health.failed.writes
    moved = job["read"]["bw_bytes"] + job["write"]["bw_bytes"]
    assert moved == pytest.approx(result.throughput_bytes_per_s, abs=2)


def test_a_page_cache_uses_a_processor_that_is_not_summed_up(cli: Cli) -> None:
    file = Path(__file__).resolve().parents[2] / "workloads" / "coop" / "dbench-1.toml"
    document = json.loads(cli.ok("run", str(file), "--json", "-", "--output-format", "fio"))
    job = document["jobs"][0]
    assert job["jobname"] == "dbench-1"
    assert "usr_cpu" not in job
    assert job["write"]["total_ios"] > 10_000
    assert "write_merges" not in document["disk_util"][0]


def test_the_layout_needs_somewhere_to_go(cli: Cli) -> None:
    for command in (("run", "map-plus"), ("compare", "map-plus", "--vary", "seed=1,2")):
        done = cli(*command, "--output-format", "fio")
        assert done.returncode == 2
        assert "--output-format fio needs --json FILE" in done.stderr
    with pytest.raises(ftlab.UserError, match="collect=True"):
        ftlab.run("map-plus", set=WORK, collect=False).to_fio()


@pytest.mark.skipif(shutil.which("fio_jsonplus_clat2csv") is None, reason="fio's scripts are not installed")
def test_fio_s_own_script_reads_the_bins(cli: Cli) -> None:
    """The script fio_jsonplus_clat2csv, which comes with fio and needs Python's module six, finds the bins in
    our output.
    """
    interpreter = "/usr/bin/python3"
    if subprocess.run([interpreter, "-c", "import six"], capture_output=True, check=False).returncode:
        pytest.skip("fio's script lacks the module six")
    vary = ("--vary", "host.scheduler=noop,map+")
    cli.ok("compare", "map-plus", "--trace", "a.csv", *vary, "--json", "r.json", "--output-format", "fio+")
    script = shutil.which("fio_jsonplus_clat2csv")
    assert script is not None
    for options in ([], ["--validate"]):
        done = subprocess.run(
            [interpreter, script, "r.json", "r.csv", *options],
            cwd=cli.directory,
            capture_output=True,
            text=True,
            check=True,
        )
    assert done.stdout == "r_job0.csv validated\nr_job1.csv validated\n"


@pytest.mark.parametrize("part", ["latency", "wait", "access"])
@pytest.mark.parametrize("op", ["read", "write", "all"])
def test_a_result_s_histogram_has_its_figures(result: ftlab.Result, part: str, op: str) -> None:
    found, expected = result.histogram(part, op), result[part][op]
    assert (found.count, found.min_ns, found.max_ns) == (expected.count, expected.min_ns, expected.max_ns)
    assert found.mean_ns == pytest.approx(expected.mean_ns, rel=1e-12)
    assert found.stddev_ns == pytest.approx(expected.stddev_ns, rel=1e-9)
    for percent, value in expected.percentile_ns.items():
        assert found.percentile(float(percent)) == value, percent


def test_histograms_of_two_runs_add_up(result: ftlab.Result) -> None:
    parts = [result.histogram("latency", op) for op in ("read", "write")]
    assert sum(parts, ftlab.Histogram()) == result.histogram("latency", "all")
    again = ftlab.Histogram.of_summary(parts[0].to_dict())
    assert again == parts[0]
    assert again.stddev_ns == pytest.approx(parts[0].stddev_ns)
    assert list(parts[0].to_dict()["percentile_ns"]) == list(result.latency.read.percentile_ns)


def test_histogram_errors(result: ftlab.Result) -> None:
    with pytest.raises(
        ftlab.UserError, match=r"no histogram latency\.trim; there are: latency, wait, access"
    ):
        result.histogram("latency", "trim")
    bare = ftlab.run("map-plus", set=WORK, collect=False)
    with pytest.raises(ftlab.UserError, match=r"results\.histograms"):
        bare.histogram()
    with pytest.raises(ValueError, match="between 0 and 100"):
        ftlab.Histogram([1]).percentile(101)
    with pytest.raises(TypeError, match="whole numbers"):
        ftlab.Histogram([1.5])
    with pytest.raises(ValueError, match="negative"):
        ftlab.Histogram([-1])
    empty = ftlab.Histogram()
    assert (empty.count, empty.mean_ns, empty.stddev_ns, empty.percentile(50)) == (0, 0.0, 0.0, 0)
    assert empty.to_dict()["percentile_ns"] == {}


@given(values, values)
def test_merging_is_counting_together(left: list[int], right: list[int]) -> None:
    merged, together = ftlab.Histogram(left).merge(ftlab.Histogram(right)), ftlab.Histogram(left + right)
    assert merged == together
    assert merged == ftlab.Histogram(right) + ftlab.Histogram(left)
    assert merged.stddev_ns == pytest.approx(together.stddev_ns, rel=1e-6, abs=1e-3)
    for percent in (0, 1, 50, 99.9, 100):
        assert merged.percentile(percent) == together.percentile(percent)


@given(values.filter(bool), st.floats(0, 100))
def test_percentiles_are_within_a_128th(numbers: list[int], percent: float) -> None:
    histogram = ftlab.Histogram(numbers)
    parts_per_million = math.floor(percent * 10_000 + 0.5)
    exact = sorted(numbers)[max(-(-len(numbers) * parts_per_million // 1_000_000), 1) - 1]
    assert abs(histogram.percentile(percent) - exact) * 128 <= exact


@given(st.integers(0, 2**64 - 1))
def test_bins_are_those_of_the_core(value: int) -> None:
    low = lower(value)
    width = 1 if low < 128 else 1 << (low.bit_length() - 7)
    assert low <= value < low + width
    assert low % width == 0
    assert [(low, 1)] == ftlab.Histogram(np.array([value], dtype=np.uint64)).bins
    assert midpoint(low) == low + width // 2


def test_the_module_needs_no_numpy_until_it_is_used() -> None:
    """`import ftlab` does not import NumPy, so that the command line starts fast."""
    code = "import sys, ftlab; assert 'numpy' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)
