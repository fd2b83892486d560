"""What reports and comparisons show of tenants: a colour for each, their curves, shares and slowdowns."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import ftlab
from browser import Page
from front import Cli
from ftlab import palette
from ftlab.html.data import payload
from ftlab.results.metrics import metrics_of
from reports import MEASURED

VARY = {"host.queues": ["shared", "per-tenant"]}
NAMES = ("heavy", "light", "third")
LOADS = {
    "tenant.heavy.synthetic.requests": 3000,
    "tenant.heavy.synthetic.read_share": "0%",
    "tenant.light.synthetic.requests": 400,
    "tenant.light.synthetic.interarrival": "800us",
    "tenant.third.synthetic.requests": 300,
}


@pytest.fixture(scope="module")
def compared() -> ftlab.Comparison:
    return ftlab.compare("map-plus", VARY, set={**LOADS, **MEASURED}, alone=True)


def test_a_comparison_has_the_slowdowns_of_its_variants(compared: ftlab.Comparison) -> None:
    alone = ftlab.run("map-plus", set={**LOADS, "host.queues": "per-tenant"}, alone=True)
    assert compared["per-tenant"].to_dict()["fairness"] == alone.to_dict()["fairness"]
    shown = str(compared)
    for name in ("slowdown", *NAMES, "unfairness", "harmonic speedup"):
        assert name in shown, shown
    columns = compared.to_polars().to_dicts()[1]
    slowdowns = {tenant["name"]: tenant["slowdown"] for tenant in alone.to_dict()["tenants"]}
    assert {name: columns[f"tenants.{name}.slowdown"] for name in NAMES} == slowdowns
    for tenant in alone.to_dict()["tenants"]:
        name, latency = tenant["name"], tenant["latency"]["all"]
        assert columns[f"tenants.{name}.latency.all.mean_ns"] == latency["mean_ns"]
        assert (
            columns[f"tenants.{name}.latency.all.percentile_ns.99.000000"]
            == (latency["percentile_ns"]["99.000000"])
        )
        assert columns[f"tenants.{name}.requests_per_s"] == tenant["requests_per_s"]
    assert columns["fairness.unfairness"] == alone.to_dict()["fairness"]["unfairness"]


def test_compare_runs_tenants_alone(cli: Cli, tmp_path: Path) -> None:
    options = [word for key, value in LOADS.items() for word in ("--set", f"{key}={value}")]
    vary = ("--vary", "host.queues=shared,per-tenant")
    plain = cli.ok("compare", "map-plus", *options, *vary)
    # Regression: without --alone a comparison said nothing of its tenants.
    assert "slowdown" not in plain and plain.index("tenant heavy\n") < plain.index("tenant light\n")
    rows = plain[plain.index("tenant light\n") :].splitlines()[1:4]
    assert [row.split()[0] for row in rows] == ["mean", "99th", "IOPS"]
    told = cli.ok("compare", "map-plus", *options, *vary, "--alone", "--json", str(tmp_path / "c.json"))
    assert "slowdown" in told and "unfairness" in told
    for variant in json.loads((tmp_path / "c.json").read_text())["variants"]:
        assert variant["result"]["fairness"]["unfairness"] >= 1
    one = ("--set", "workload.synthetic.requests=9", "--vary", "host.scheduler=noop,row")
    none = cli("compare", "map-plus", *one, "--alone")
    assert none.returncode == 2 and "there are no tenants to run alone" in none.stderr


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_each_tenant_has_a_colour(
    browser: Any, compared: ftlab.Comparison, tmp_path: Path, scheme: str
) -> None:
    compared.html(tmp_path / "x.html")
    page = Page(browser, tmp_path / "x.html")
    if scheme == "dark":
        page.tab.click("#theme")
        page.tab.wait_for_function("document.documentElement.dataset.drawn > 1")
    colours = list(palette.OTHERS[scheme][: len(NAMES)])
    # Regression: a tenant had the colour of a policy on the same page.
    assert set(colours).isdisjoint(palette.COLOURS[scheme])
    # The page opens with the tenants, with a figure of each; slowdowns are there, for each also ran alone.
    assert page.texts("#contents a")[:2] == ["Latency by tenant", "Flash time by tenant"]
    rows = page.texts("#tenants tbody th")
    assert [row.partition(" of ")[0] for row in rows] == [
        *("mean latency", "99th percentile", "IOPS", "slowdown")
    ] * len(NAMES)
    for section in ("tenants", "tenant-shares"):
        assert page.texts(f"#{section} .legend span")[:3] == list(NAMES)
    lines = "all => all.map(one => one.getAttribute('stroke'))"
    assert page.tab.eval_on_selector_all("#tenants .legend line", lines) == colours
    assert page.texts("#tenants h3") == VARY["host.queues"]
    for panel, result in enumerate(compared):
        tenants = result.to_dict()["tenants"]
        spec = page.tab.evaluate(f"window.ftlabCharts.get('tenants')[{panel}].spec")
        scale = spec["layer"][0]["encoding"]["color"]["scale"]
        assert (scale["domain"], scale["range"]) == (list(NAMES), colours)
        # The last point of a curve is the tenant's slowest request.
        ends = {row["policy"]: row["share"] for row in spec["data"]["values"]}
        assert ends == pytest.approx(
            {tenant["name"]: 1 / tenant["latency"]["all"]["count"] for tenant in tenants}
        )
    shares = page.tab.evaluate("window.ftlabCharts.get('tenant-shares')[0].spec")["layer"][0]["data"]
    for label, result in zip(VARY["host.queues"], compared, strict=True):
        own = {tenant["name"]: tenant["flash"]["share"] * 100 for tenant in result.to_dict()["tenants"]}
        bar = {row["kind"]: row["value"] for row in shares["values"] if row["policy"] == label}
        assert {name: bar[name] for name in NAMES} == pytest.approx(own)
    assert "slowdown of heavy" in page.texts("#figures tbody th")
    page.close()


def test_of_very_many_tenants_the_busiest_are_shown() -> None:
    count = range(800)
    columns = {
        "ts_ns": [at * 50_000 for at in count],
        "op": [1 for _ in count],
        "offset": [at % 64 * 4096 for at in count],
        "size": [4096 for _ in count],
        "stream": [at % 40 + at % 2 for at in count],
    }
    many = {"workload.tenants": "by-stream", **MEASURED}
    result = ftlab.run("map-plus", trace=pl.DataFrame(columns), set=many)
    page = payload([({}, result)])
    kept = [tenant["name"] for tenant in page["results"][0]["tenants"]]
    # So does a table; csv has all of them.
    groups = {metric.group for metric in metrics_of([result.to_dict()], 12)}
    assert {group.removeprefix("tenant ") for group in groups if group.startswith("tenant ")} == set(kept)
    assert sum(metric.column.endswith(".slowdown") for metric in metrics_of([result.to_dict()])) > 12
    busy = {tenant["name"]: tenant["flash"]["busy_ns"] for tenant in result.to_dict()["tenants"]}
    assert len(kept) == 12 < len(busy)
    assert min(busy[name] for name in kept) >= max(busy[name] for name in busy if name not in kept)
    assert list(page["tenants"]) == kept
