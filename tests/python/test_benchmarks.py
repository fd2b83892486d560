"""Benchmarks and fio jobs above the page cache, from the command line and from the shipped files."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import ftlab
from front import Cli

WORKLOADS = Path(__file__).parents[2] / "workloads"
FILES = sorted((WORKLOADS / "coop").glob("*.toml"))

SMALLER = {
    "postmark": {"workload.benchmark.transactions": "20", "workload.benchmark.runs": "2"},
    "sysbench": {"workload.benchmark.requests": "300", "workload.benchmark.ageing": "100ms"},
    "filebench": {
        "workload.benchmark.file_size": "16MiB",
        "workload.benchmark.duration": "200ms",
        "workload.benchmark.runs": "2",
    },
    "dbench": {"workload.benchmark.duration": "500ms", "workload.benchmark.ageing": "100ms"},
}
"""Settings that shorten a benchmark of the paper."""


def test_there_is_a_file_for_every_point_of_the_figures() -> None:
    kinds = [path.name.split("-")[0] for path in FILES]
    assert {kind: kinds.count(kind) for kind in set(kinds)} == {
        "postmark": 5,
        "sysbench": 5,
        "filebench": 5,
        "dbench": 9,
    }


@pytest.mark.parametrize("kind", ["bast", "fast"])
def test_what_pads_a_block_goes_past_the_write_buffer(kind: str) -> None:
    """Regression: check mode took what padding writes again for lost, as it knew the page from the buffer."""
    keys = {
        "ftl.kind": kind,
        "device.write_buffer": "64KiB",
        "host.scheduler": "padding",
        "host.page_cache": "1MiB",
        "workload.benchmark.kind": "sysbench",
        "workload.benchmark.requests": "300",
        "workload.benchmark.files": "2",
        "workload.benchmark.file_size": "128KiB",
    }
    assert ftlab.run("map-plus", check=True, set=keys).to_dict()["file_system"]["commits"] > 0


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_a_benchmark_file_runs_checked(path: Path) -> None:
    kind = path.name.split("-")[0]
    result = ftlab.run(path, check=True, set=SMALLER[kind]).to_dict()
    bench = result["benchmark"]
    assert bench["name"] == kind
    assert bench["throughput_bytes_per_s"] > 0
    assert bench["operations"] > 20
    assert result["page_cache"]["size_bytes"] == 512 << 20
    assert result["file_system"]["commits"] > 0


def test_the_parameters_are_the_papers() -> None:
    def config(name: str) -> dict[str, str]:
        listed = dict(line.split(" = ") for line in _listed(name))
        return {key: value.split("#")[0].strip().strip('"') for key, value in listed.items()}

    assert config("postmark-2MiB")["files"] == "8"
    assert config("postmark-128KiB")["files"] == "128"
    assert config("sysbench-64KiB")["request"] == "64KiB"
    assert config("filebench-64MiB")["sync_every"] == "64MiB"
    assert config("dbench-9")["clients"] == "9"


def _listed(name: str) -> list[str]:
    text = (WORKLOADS / "coop" / f"{name}.toml").read_text()
    table = text.split("[workload.benchmark]\n")[1].split("\n[")[0]
    return [line for line in table.splitlines() if line]


def test_the_report_shows_what_the_clients_saw(cli: Cli) -> None:
    sets = ["--set", "host.page_cache=512MiB"]
    for key, value in {"workload.benchmark.kind": "dbench", **SMALLER["dbench"]}.items():
        sets += ["--set", f"{key}={value}"]
    text = cli.ok("run", "map-plus", *sets)
    assert "benchmark: dbench: clients 4, files 114, file_size 23MB, duration 0.5s, ageing 0.1s" in text
    assert "operations/s" in text
    assert "fsync (" in text
    assert "page cache: 512 MiB, hit ratio" in text
    assert "file system: " in text


def test_without_a_benchmark_its_sections_are_not_there(trace: Path) -> None:
    result = ftlab.run("map-plus", trace=str(trace)).to_dict()
    assert not {"benchmark", "page_cache", "file_system"} & set(result)


def test_a_benchmark_needs_a_page_cache(cli: Cli) -> None:
    done = cli("run", "map-plus", "--set", "workload.benchmark.kind=dbench")
    assert done.returncode == 2
    assert "writes through the page cache, and there is none (host.page_cache)" in done.stderr


def test_a_fio_job_runs(cli: Cli) -> None:
    job = str(WORKLOADS / "fio" / "randwrite-zipf.fio")
    data = json.loads(cli.ok("run", "map-plus", "--set", f"workload.fio_job={job}", "--json", "-"))
    assert data["benchmark"]["name"] == "fio"
    assert data["benchmark"]["latency"]["write"]["count"] == data["benchmark"]["operations"]
    assert "page_cache" not in data


def test_an_option_of_fio_that_is_not_read_is_refused_by_name(cli: Cli) -> None:
    (cli.directory / "x.fio").write_text("[a]\nsize=1m\ndirect=1\nwait_for=a\n")
    done = cli("run", "map-plus", "--set", "workload.fio_job=x.fio")
    assert done.returncode == 2
    assert "x.fio:4: wait_for" in done.stderr
    done = cli("run", "map-plus", "--set", "workload.fio_job=y.fio")
    assert done.returncode == 2
    assert "y.fio" in done.stderr


def test_a_benchmark_is_no_trace(cli: Cli) -> None:
    config = '[workload]\nfio_job = "x.fio"\n'
    (cli.directory / "a.toml").write_text(config)
    done = cli("trace", "convert", "a.toml", "out.csv")
    assert done.returncode == 2


def test_components_name_the_benchmarks(cli: Cli) -> None:
    listed = json.loads(cli.ok("components", "--json"))
    names = [entry["name"] for entry in listed["workload.benchmark.kind"]]
    assert names == ["postmark", "sysbench", "filebench", "dbench"]
    assert [entry["name"] for entry in listed["host.flush_policy"]] == ["auto", "baseline", "block"]
