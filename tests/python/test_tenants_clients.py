"""Tenants whose loads are clients: a benchmark or a fio job, with a file system of its own."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import ftlab
from front import Cli

JOBS = "[global]\nrw=randrw\nbs=4k\nsize=1m\nfsync=16\n[a]\n[b]\ndirect=1\niodepth=4\n"
CONFIG = """
preset = "map-plus"

[host]
page_cache = "4MiB"
queues = "per-tenant"

[tenant.jobs]
fio_job = "a.fio"

[tenant.mail.benchmark]
kind = "postmark"
files = 16
transactions = 64
runs = 2

[tenant.plain]
synthetic.requests = 500
"""


@pytest.fixture
def config(cli: Cli) -> str:
    (cli.directory / "a.fio").write_text(JOBS)
    (cli.directory / "three.toml").write_text(CONFIG)
    return "three.toml"


def test_clients_and_a_generator_share_a_device(cli: Cli, config: str) -> None:
    report = cli.ok("run", config, "--alone", "--check", "--json", "three.json")
    assert "benchmark: fio" in report and "benchmark: postmark" in report and "tenants: unfairness" in report
    data = json.loads((cli.directory / "three.json").read_text())
    assert "benchmark" not in data
    jobs, mail, plain = data["tenants"]
    assert [tenant["name"] for tenant in data["tenants"]] == ["jobs", "mail", "plain"]
    assert jobs["benchmark"]["name"] == "fio" and mail["benchmark"]["name"] == "postmark"
    assert "benchmark" not in plain and plain["requests"] <= 500
    for tenant in (jobs, mail):
        assert tenant["page_cache"]["size_bytes"] == 4 << 20 and tenant["file_system"]
        # What clients write reaches the device, with the journal and metadata besides.
        assert tenant["bytes_written"] > 0 and tenant["slowdown"] is not None
    assert sum(tenant["requests"] for tenant in data["tenants"]) == data["trace"]["requests"]


def test_python_shows_what_clients_saw(cli: Cli, config: str) -> None:
    result = ftlab.run(cli.directory / config, set={"tenant.jobs.fio_job": str(cli.directory / "a.fio")})
    mail = result.to_dict()["tenants"][1]
    assert mail["benchmark"]["operations"] > 0 and mail["page_cache"]["hits"] > 0
    assert "benchmark: postmark" in str(result)


def test_a_tenant_alone_is_the_run_without_tenants(cli: Cli, config: str) -> None:
    """Its clients see what they see on a device without tenants."""
    mail = {"benchmark.kind": "postmark", "benchmark.files": 16, "benchmark.transactions": 64}
    cache = {"host.page_cache": "4MiB"}
    one = ftlab.run("map-plus", set={**cache, **{f"tenant.mail.{key}": value for key, value in mail.items()}})
    none = ftlab.run("map-plus", set={**cache, **{f"workload.{key}": value for key, value in mail.items()}})
    (tenant,) = one.to_dict()["tenants"]
    for section in ("benchmark", "page_cache", "file_system"):
        assert tenant[section] == none.to_dict()[section], section
    assert one.to_dict()["flash"] == none.to_dict()["flash"]


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ("tenant.mail.range=0B..1MiB", "tenant.mail.benchmark.kind: postmark needs"),
        ("tenant.mail.range=0B..64KiB", "tenant.mail.range=0B..64KiB: too small for a file system"),
        ("host.page_cache=0B", "tenant.mail.benchmark.kind: postmark writes through the page cache"),
        ("tenant.mail.trace=a.csv", "tenant.mail.benchmark.kind: a benchmark is given as well as a trace"),
        ("tenant.jobs.fio_job=none.fio", "none.fio"),
        ("tenant.jobs.range=0B..1MiB", "the jobs' files take"),
        ("tenant.mail.benchmark.ageing_runs=2", "tenant.mail.benchmark.ageing_runs=2: 2 of 2 runs"),
        ("workload.benchmark.kind=dbench", "tenants ([tenant.NAME]); remove one"),
    ],
)
def test_mistakes_name_the_tenants_keys(cli: Cli, config: str, more: str, message: str) -> None:
    run = cli("run", config, "--set", more)
    assert run.returncode == 2 and message in run.stderr, run.stderr
    assert (
        "Traceback" not in run.stderr and "workload.trace" not in run.stderr
    ) or "workload.benchmark" in more


def test_keys_of_a_benchmark_that_is_not_chosen_are_named(cli: Cli, config: str, tmp_path: Path) -> None:
    run = cli("run", config, "--set", "tenant.plain.benchmark.files=3", "--set", "tenant.jobs.repeat=2")
    assert run.returncode == 0, run.stderr
    assert "note: tenant.plain.benchmark.files: ignored: there is no benchmark" in run.stderr
    assert "note: tenant.jobs.repeat: ignored: there is no trace" in run.stderr
    assert "host.page_cache: ignored" not in run.stderr
