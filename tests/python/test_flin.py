"""FLIN: ftlab against the model (``tests/oracle/flin.py``), request by request, and the two keys."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

import ftlab
from ftlab import UserError
from ftlab.reproduce import papers
from ftlab.studies import declaration
from ftlab.studies.measure import measure
from ftlab.studies.plan import Planner
from oracle import flin

ROOT = Path(__file__).resolve().parents[2]

RATES = {"light": 400_000, "near": 120_000, "heavy": 40_000}
"""Mean times between two requests, in ns; with two reads to a write a die has an operation every 140 us."""


def load(seed: int, mean_ns: int, tenants: int, requests: int = 700) -> list[flin.Request]:
    """Draws requests of tenants that differ in how much they send and in their share of reads."""
    draw = random.Random(seed)
    reads = [draw.choice([0.05, 0.5, 0.95]) for _ in range(tenants)]
    weights = [draw.choice([1, 10]) for _ in range(tenants)]
    now, found = 0, []
    for _ in range(requests):
        now += round(draw.expovariate(1 / mean_ns)) if draw.random() < 0.7 else 0
        (stream,) = draw.choices(range(tenants), weights)
        op = "R" if draw.random() < reads[stream] else "W"
        found.append((now, op, draw.randrange(200), stream))
    return found


def settings(device: flin.Device) -> dict[str, str]:
    thresholds = dict(device.thresholds)
    return {
        "ftl.kind": "page",
        "ftl.placement": "stream" if device.apart else "one",
        "ftl.fronts": "8",
        "device.scheduler": "direct",
        "device.queue_depth": "100000",
        "host.queue_depth": "100000",
        "host.scheduler": "noop",
        "host.deadline": "none",
        "workload.tenants": "by-stream",
        "flash.order": "flin",
        "flash.channels": str(device.dies),
        "flash.blocks_per_plane": "256",
        "flash.pages_per_block": str(device.block_pages),
        "flash.read": f"{device.read_ns}ns",
        "flash.program": f"{device.program_ns}ns",
        "flash.flin_epoch": f"{device.epoch_ns}ns",
        "flash.flin_read": f"{thresholds['R']}B",
        "flash.flin_write": f"{thresholds['W']}B",
    }


def completions(device: flin.Device, requests: list[flin.Request], folder: Path) -> list[int]:
    """Returns when ftlab completes each request."""
    trace = folder / "requests.csv"
    rows = [
        f"{at},{op},{page * device.page_bytes},{device.page_bytes},{stream}"
        for at, op, page, stream in requests
    ]
    trace.write_text("\n".join(["time_ns,op,offset,size,stream", *rows, ""]))
    result = ftlab.run("map-plus", trace=str(trace), set=settings(device), collect=True, check=True)
    found = result.requests
    assert found is not None
    by_id = sorted(zip(found["id"], found["complete_ns"], strict=True))
    return [complete for _, complete in by_id]


@pytest.mark.parametrize("tenants", [1, 2, 5])
@pytest.mark.parametrize("apart", [False, True])
@pytest.mark.parametrize("rate", RATES)
def test_every_operation_goes_when_the_model_says(
    rate: str, apart: bool, tenants: int, tmp_path: Path
) -> None:
    for seed in range(3):
        device = flin.Device(
            dies=1 + seed, apart=apart, epoch_ns=2_000_000, thresholds=(("R", 80_000), ("W", 40_000))
        )
        requests = load(seed, RATES[rate] // device.dies, tenants)
        ours, model = completions(device, requests, tmp_path), flin.simulate(device, requests)
        unequal = [at for at, (one, other) in enumerate(zip(ours, model, strict=True)) if one != other]
        assert not unequal, f"seed {seed}: {len(unequal)} of {len(ours)}, first {unequal[:5]}"


def test_the_loads_reach_every_rule() -> None:
    """Without one of them the model completes requests at other times: low intensity, moving forward, blocks
    of the tenants' own.
    """
    device = flin.Device(apart=True, epoch_ns=2_000_000, thresholds=(("R", 80_000), ("W", 40_000)))
    requests = load(1, RATES["heavy"], 5)
    usual = flin.simulate(device, requests)
    other = [
        flin.Device(apart=True, epoch_ns=2_000_000, thresholds=(("R", 0), ("W", 0))),
        flin.Device(apart=True, epoch_ns=2_000_000, thresholds=device.thresholds, fairness=0.0),
        flin.Device(apart=False, epoch_ns=2_000_000, thresholds=device.thresholds),
    ]
    assert all(flin.simulate(each, requests) != usual for each in other)


def tenants(order: str | None = None, arbiter: str = "flin", queues: str = "per-tenant") -> dict[str, str]:
    load = {"requests": "300", "interarrival": "60us", "read_share": "50%"}
    return {
        **({} if order is None else {"flash.order": order}),
        "host.arbiter": arbiter,
        "host.queues": queues,
        "device.scheduler": "direct",
        "device.queue_depth": "64",
        **{f"tenant.{name}.synthetic.{key}": value for name in "ab" for key, value in load.items()},
    }


def test_the_arbiter_brings_the_order_of_operations() -> None:
    """It is what round robin is with that order, and not what round robin is without it."""
    latency = {
        key: ftlab.run("map-plus", set=tenants(*key)).to_dict()["tenants"]
        for key in [(None, "flin"), ("flin", "flin"), ("flin", "rr"), ("emission", "rr")]
    }
    assert latency[None, "flin"] == latency["flin", "flin"] == latency["flin", "rr"]
    assert latency["emission", "rr"] != latency["flin", "rr"]


def test_one_half_of_flin_is_refused() -> None:
    for order in ["reads-first", "emission"]:
        with pytest.raises(UserError, match=r"flash\.order.*host\.arbiter"):
            ftlab.run("map-plus", set=tenants(order))
    with pytest.raises(UserError, match=r"host\.queues to \"per-tenant\""):
        ftlab.run("map-plus", set=tenants(queues="shared"))


def test_a_row_of_the_page() -> None:
    """The mix whose runs are the shortest, with and without FLIN."""
    (figure,) = papers.load_paper(ROOT, "flin").figures
    found: dict[str, list[float]] = {"FCFS": [], "FLIN": []}
    for run in Planner(ROOT, declaration.load_traces(ROOT), None, quick=False).runs(figure):
        mix, order, _ = run.labels
        if mix == "half and half, writes" and order in found:
            result = measure(figure.measure, run.config)
            found[order].append(result["fairness"]["unfairness"])
    fcfs, fair = (f"{sum(each) / 3:.2f}" for each in found.values())
    (row,) = (
        line.split(" | ")
        for line in (ROOT / "docs" / "flin.md").read_text().splitlines()
        if line.startswith("| half and half, writes |")
    )
    assert (row[1], row[4]) == (fcfs, fair)
