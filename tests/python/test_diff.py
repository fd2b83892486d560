"""``ftlab diff``: what differs between two results."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from front import Cli
from ftlab.results.differences import compare, render

Make = Callable[..., dict[str, Any]]


def lines(first: dict[str, Any], second: dict[str, Any], **options: bool) -> list[str]:
    return render(("a", "b"), [compare(first, second)], **options).splitlines()


def test_settings_come_first_and_times_share_a_unit(result_of: Make) -> None:
    shown = lines(result_of("noop"), result_of("map+", 0.005))
    assert [line.split() for line in shown[:3]] == [
        ["settings", "a", "b"],
        ["host.scheduler", "noop", "map+"],
        ["results", "a", "b"],
    ]
    assert shown[3].split() == ["latency.read.mean_ns", "2,000", "us", "10.00", "us", "x", "0.005"]
    assert any(line.split() == ["scheduler.name", "noop", "map+"] for line in shown)
    assert not any("engine" in line or "trace.requests" in line for line in shown)


def test_what_took_another_time_alone_is_the_same(result_of: Make) -> None:
    other = result_of("noop")
    other["engine"]["wall_s"] = 99.0
    assert lines(result_of("noop"), other) == ["no difference except in engine"]


def test_a_field_that_one_lacks_is_a_dash(result_of: Make) -> None:
    other = result_of("noop")
    other["config"]["host"]["awareness"] = "lru"
    other["flash"]["reads"]["gc"] = 0
    shown = lines(result_of("noop"), other)
    assert shown[1].split() == ["host.awareness", "-", "lru"]
    assert shown[3].split() == ["flash.reads.gc", "-", "0"]


def test_unusual_percentiles_are_counted_or_shown(result_of: Make) -> None:
    first, second = result_of("noop"), result_of("noop")
    second["latency"]["all"]["percentile_ns"] |= {"5.000000": 7, "99.000000": 8}
    first["latency"]["all"]["percentile_ns"]["5.000000"] = 6
    shown = lines(first, second)
    assert [line.split()[0] for line in shown[2:-1]] == ["latency.all.percentile_ns.99.000000"]
    assert shown[-1].endswith("; 1 other percentiles differ (--all)")
    assert "latency.all.percentile_ns.5.000000" in " ".join(lines(first, second, everything=True))


def test_results_and_comparisons_of_the_command_line(cli: Cli) -> None:
    run = ["run", "map-plus", "--trace", "a.csv"]
    cli.ok(*run, "--json", "a.json")
    cli.ok(*run, "--set", "flash.read=70us", "--json", "b.json")
    cli.ok("compare", *run[1:], "--vary", "host.scheduler=noop,map+", "--json", "c.json")
    cli.ok("compare", *run[1:], "--vary", "host.scheduler=map+,rb", "--json", "d.json")
    assert cli.ok("diff", "a.json", "b.json").splitlines()[1].split() == ["flash.read", "35us", "70us"]
    assert cli.ok("diff", "a.json", "a.json") == "no difference except in engine\n"
    both = cli("diff", "c.json", "d.json")
    assert (both.returncode, both.stdout) == (0, "variant map+\nno difference except in engine\n")
    assert both.stderr == "note: only in c.json: noop\nnote: only in d.json: rb\n"
    found = json.loads(cli.ok("diff", "a.json", "b.json", "--json", "-"))
    assert found[0]["settings"] == {"flash.read": ["35us", "70us"]}
    assert found[0]["results"]["latency.read.mean_ns"][1] > found[0]["results"]["latency.read.mean_ns"][0]


@pytest.mark.parametrize(
    ("name", "text", "why"),
    [
        ("none.json", None, "No such file or directory"),
        ("a.csv", "x", "not JSON; a result is written by `ftlab run --json`"),
        ("list.json", "[1]", "neither a result (`ftlab run --json`) nor a comparison"),
        ("half.json", '{"schema": "ftlab.compare.v1"}', "a comparison whose variants are incomplete"),
    ],
)
def test_what_is_no_result_is_refused(cli: Cli, name: str, text: str | None, why: str) -> None:
    if text is not None:
        (cli.directory / name).write_text(text)
    done = cli("diff", name, name)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith(f"error: {name}: {why}")
