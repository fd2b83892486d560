"""Tenants in a configuration: errors with their places, notes, the file written back, `--alone`, Python."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import ftlab
from front import Cli
from ftlab.tenants import fairness

TWO = """
preset = "map-plus"

[tenant.heavy]
synthetic.requests = 4000
synthetic.interarrival = "100us"

[tenant.light.synthetic]
requests = 500
interarrival = "800us"
"""


def of(text: str, tmp_path: Path) -> str:
    """Writes a configuration; returns its path."""
    path = tmp_path / "two.toml"
    path.write_text(text)
    return str(path)


def test_the_report_has_lines_for_each_tenant_and_their_slowdowns(cli: Cli, tmp_path: Path) -> None:
    run = cli("run", of(TWO, tmp_path), "--alone", "--json", str(tmp_path / "two.json"))
    assert run.returncode == 0, run.stderr
    assert "tenant heavy: 4,000 requests" in run.stdout and "tenant light: 500 requests" in run.stdout
    assert "tenants: unfairness" in run.stdout
    data = json.loads((tmp_path / "two.json").read_text())
    slowdowns = [tenant["slowdown"] for tenant in data["tenants"]]
    assert data["fairness"] == fairness(slowdowns) and min(slowdowns) > 1
    # Alone, the tenant has the same requests at the same addresses.
    alone = ftlab.run(of(TWO, tmp_path), set={"tenant.heavy.duration": "0ns"})
    assert alone.latency.all.mean_ns == data["tenants"][1]["alone_mean_ns"]


def test_streams_can_be_tenants(tmp_path: Path) -> None:
    rows = "".join(f"{at * 50_000},R,{at % 64 * 4096},4096,{at % 3}\n" for at in range(300))
    trace = tmp_path / "three.csv"
    trace.write_text("time_ns,op,offset,size,stream\n" + rows)
    result = ftlab.run("map-plus", trace=trace, workload__tenants="by-stream", alone=True)
    tenants = result.to_dict()["tenants"]
    assert [(tenant["name"], tenant["reads"]) for tenant in tenants] == [("0", 100), ("1", 100), ("2", 100)]
    assert all(tenant["slowdown"] >= 1 for tenant in tenants)


def test_figures_of_fairness_by_hand() -> None:
    assert fairness([2.0, 4.0]) == {
        "unfairness": 2.0,
        "fairness": 0.5,
        "weighted_speedup": 0.75,
        "harmonic_speedup": 2 / 6,
    }
    assert set(fairness([]).values()) == {None}


def test_the_written_configuration_is_the_same(tmp_path: Path) -> None:
    first = ftlab.run(of(TWO, tmp_path))
    again = ftlab.run(dict(first["config"]))
    assert {**first.to_dict(), "engine": None} == {**again.to_dict(), "engine": None}


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ("wieght = 2", "two.toml:11: tenant.light.synthetic.wieght: unknown key"),
        (
            "region = '900GiB'",
            "two.toml:11: tenant.light.synthetic.region: 900GiB is beyond the tenant's part of",
        ),
        ("[tenant.'a b']\nweight = 1", "two.toml:11"),
        ("[tenant.third]\nweight = 2", "tenant.third.trace: the tenant has no load"),
        ("[tenant.third]\nweight = 0", "two.toml:12: tenant.third.weight: 0: "),
        (
            "[tenant.third]\nsynthetic.requests = 1\nrange = '0B..900GiB'",
            "two.toml:13: tenant.third.range: 0B..900GiB is beyond the user capacity",
        ),
        (
            "[tenant.third]\nsynthetic.requests = 1\nrange = '4KiB..0B'",
            "two.toml:13: tenant.third.range: 4KiB..0B: expected a range",
        ),
        (
            "[tenant.third]\nsynthetic.requests = 1\nrange = '1KiB..8KiB'",
            "two.toml:13: tenant.third.range: 1KiB..8KiB is not a range of logical pages",
        ),
        (
            "[workload]\nsynthetic.requests = 3",
            "workload.synthetic.requests: a load besides those of the tenants",
        ),
        ("[host]\nscheduler = 'padding'\nqueues = 'per-tenant'", "whole flash blocks"),
        ("[tenant.third]", "[tenant.third]: empty; a tenant needs a load"),
        ("[tenant.NAME]\nweight = 3", "NAME stands for the name of your tenant"),
        ("[tenant.third]\nstreams = 'volume'", "two.toml:12: tenant.third.streams: unknown key"),
        (
            "[tenant.third]\nwieght = 2",
            "two.toml:12: tenant.third.wieght: unknown key; did you mean tenant.third.weight?",
        ),
        (
            "[tenant.third.synthetic]\nrequests = 9\nregion = '64KiB'\nread_sizes = '128KiB/1'",
            "two.toml:14: tenant.third.synthetic.read_sizes: a request of 128KiB does not fit",
        ),
        (
            "[tenant.third]\ntrace = 'far.csv'",
            'tenant.third.out_of_range = "compact" packs the touched pages densely',
        ),
    ],
)
def test_mistakes_are_found_where_they_are(cli: Cli, more: str, message: str, tmp_path: Path) -> None:
    (cli.directory / "far.csv").write_text("time_ns,op,offset,size\n0,R,1073741824000,4096\n")
    kind = 'preset = "coop-fast"' if "padding" in more else 'preset = "map-plus"'
    run = cli("run", of(TWO.replace('preset = "map-plus"', kind) + more + "\n", tmp_path))
    assert run.returncode == 2 and message in run.stderr, run.stderr
    assert "Traceback" not in run.stderr


def test_keys_without_effect_are_named(cli: Cli, tmp_path: Path) -> None:
    more = "[tenant.third]\nsynthetic.requests = 1\nweight = 3\nqueue_depth = 4\nspeed = 1.0\ndedup = '1ms'\n"
    run = cli("run", of(TWO + more, tmp_path))
    for key in ("weight", "queue_depth", "dedup"):
        assert f"note: tenant.third.{key}: ignored: " in run.stderr
    alone = cli("run", "map-plus", "--set", "workload.synthetic.requests=9", "--set", "host.arbiter=wrr")
    assert "note: host.arbiter: ignored: there are no tenants" in alone.stderr


def test_alone_needs_tenants(cli: Cli) -> None:
    run = cli("run", "map-plus", "--set", "workload.synthetic.requests=9", "--alone")
    assert run.returncode == 2 and "there are no tenants to run alone" in run.stderr


def test_a_tenant_is_set_on_the_command_line(cli: Cli) -> None:
    more = [f"tenant.{name}.synthetic.requests={count}" for name, count in (("a", 30), ("b", 20))]
    options = [word for key in more for word in ("--set", key)]
    run = cli("run", "map-plus", *options, "--json", "-")
    assert [tenant["requests"] for tenant in json.loads(run.stdout)["tenants"]] == [30, 20]
    run = cli("run", "map-plus", *options, "--set", "tenant.a.wait=3")
    assert run.returncode == 2 and "unknown key tenant.a.wait" in run.stderr


def test_power_is_cut_under_one_load_only() -> None:
    with pytest.raises(ftlab.UserError, match="this command takes one load"):
        ftlab.crash("map-plus", cuts=2, set={"tenant.a.synthetic.requests": 10})


def test_a_file_with_tenants_fits_the_schema(tmp_path: Path) -> None:
    import tomllib

    import jsonschema  # type: ignore[import-untyped]

    jsonschema.validate(tomllib.loads(TWO), ftlab.schema())
    for wrong in ("[tenant.a]\nwieght = 1", "[tenant.a]\nstreams = 'volume'"):
        with pytest.raises(jsonschema.ValidationError):
            jsonschema.validate(tomllib.loads(wrong), ftlab.schema())


def test_a_name_is_plain_everywhere(cli: Cli) -> None:
    for name in ("a b", "", "x]", "a" * 60):
        run = cli("run", "map-plus", "--set", f"tenant.{name}.synthetic.requests=10")
        assert run.returncode == 2 and "unknown key" in run.stderr, run.stderr


def test_too_many_streams_are_refused(tmp_path: Path) -> None:
    rows = "".join(f"{at},R,0,4096,{at}\n" for at in range(1100))
    trace = tmp_path / "many.csv"
    trace.write_text("time_ns,op,offset,size,stream\n" + rows)
    with pytest.raises(ftlab.UserError, match=r"many\.csv:1026: more than 1024 streams"):
        ftlab.run("map-plus", trace=trace, workload__tenants="by-stream")


def test_alone_reads_a_trace_more_than_once(cli: Cli) -> None:
    run = cli("run", "map-plus", "--trace", "/dev/null", "--set", "workload.tenants=by-stream", "--alone")
    assert run.returncode == 2 and "--alone reads the trace again" in run.stderr


def test_a_recording_by_its_times_is_noted(tmp_path: Path) -> None:
    """The recording of a live device says when requests completed; only its tenant can say that they wait."""
    rows = "".join(f"{at * 1000},W,{at * 4096},4096,1,900\n" for at in range(20))
    (tmp_path / "r.csv").write_text(f"time_ns,op,offset,size,outstanding,latency_ns\n{rows}")
    table = f'preset = "map-plus"\n[tenant.phone]\ntrace = "{tmp_path}/r.csv"\n'
    for replay, noted in (("", True), ('replay = "dependent"\n', False), ('replay = "closed"\n', False)):
        notes = ftlab.run(of(table + replay, tmp_path))["trace"].get("notes") or []
        told = [note for note in notes if note.startswith("phone: a recording of a live device")]
        assert bool(told) == noted, (replay, notes)
