"""Laws that every run obeys, whatever the policies; checked through the Python API.

Each law is checked against something other than the engine's own sums: the rows of the
run, a closed form (``tests/oracle/theory.py``), or another run.
"""

from __future__ import annotations

import json
import math
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from front import registered
from oracle import engine, theory

pytestmark = pytest.mark.skipif(not engine.available(), reason=engine.SKIP_REASON)

ALL_FTLS = registered("ftl.kind")
SMALL = {
    "flash.blocks_per_plane": 64,
    "flash.pages_per_block": 64,
    "flash.page": "4KiB",
    "ftl.mapping_cache": "16KiB",
    "ftl.over_provisioning": "20%",
}
"""A device of 16 MiB that collects garbage."""
MIXED = {
    "workload.synthetic.requests": 20_000,
    "workload.synthetic.pattern": "random",
    "workload.synthetic.read_share": "40%",
    "workload.synthetic.trim_share": "5%",
    "workload.synthetic.size": "8KiB",
    "workload.synthetic.interarrival": "500us",
    "device.precondition": "fill",
}
ARRAY = {
    "flash.channels": 2,
    "flash.chips_per_channel": 2,
    "flash.transfer": "2.5ns",
    "device.queue_depth": 32,
}


def run(*parts: dict[str, Any], **keywords: Any) -> Any:
    import ftlab

    settings: dict[str, Any] = {}
    for part in parts:
        settings |= part
    return ftlab.run(settings, **keywords)


@pytest.mark.parametrize("array", [{}, ARRAY], ids=["one chip", "four chips"])
@pytest.mark.parametrize("scheduler", registered("host.scheduler", "map-plus"))
@pytest.mark.parametrize("kind", ALL_FTLS)
def test_latency_is_wait_plus_access(kind: str, scheduler: str, array: dict[str, Any]) -> None:
    """The sum holds for each request, and so for the means; the summaries agree with the rows."""
    result = run(SMALL, MIXED, array, {"ftl.kind": kind, "host.scheduler": scheduler})
    arrival, dispatch, complete = (
        result.column(name).astype("int64") for name in ("arrival_ns", "dispatch_ns", "complete_ns")
    )
    assert len(arrival) == MIXED["workload.synthetic.requests"]
    assert (arrival <= dispatch).all()
    assert (dispatch <= complete).all()
    reads, writes = result.column("op") == "R", result.column("op") == "W"
    parts = {"latency": complete - arrival, "wait": dispatch - arrival, "access": complete - dispatch}
    for name, values in parts.items():
        section = result.to_dict()[name]
        check_summary(section["read"], values[reads])
        check_summary(section["write"], values[writes])
        # Only reads and writes count: trims and flushes have no data.
        check_summary(section["all"], values[reads | writes])
    for group in ("read", "write", "all"):
        mean = {name: result.to_dict()[name][group]["mean_ns"] for name in parts}
        assert mean["latency"] == pytest.approx(mean["wait"] + mean["access"], rel=1e-9, abs=2)


def check_summary(section: dict[str, Any], values: Any) -> None:
    """Checks the count, mean, deviation and extremes, and the percentiles to within the histogram's 1/128."""
    ordered = sorted(values.tolist())
    count = len(ordered)
    mean = sum(ordered) / count
    assert section["count"] == count
    assert section["min_ns"] == ordered[0]
    assert section["max_ns"] == ordered[-1]
    assert section["mean_ns"] == pytest.approx(mean, rel=1e-9, abs=1)
    variance = sum((value - mean) ** 2 for value in ordered) / count
    assert section["stddev_ns"] == pytest.approx(math.sqrt(variance), rel=1e-3, abs=1)
    for name, have in section["percentile_ns"].items():
        exact = ordered[max(0, math.ceil(float(name) / 100 * count) - 1)]
        assert abs(have - exact) <= exact / 128 + 1, f"percentile {name}: {have}, exact {exact}"


@pytest.mark.parametrize("array", [{}, ARRAY], ids=["one chip", "four chips"])
@pytest.mark.parametrize("kind", ALL_FTLS)
@pytest.mark.parametrize("flush", [False, True])
def test_busy_never_exceeds_elapsed(kind: str, flush: bool, array: dict[str, Any]) -> None:
    crowded = {**MIXED, "workload.synthetic.interarrival": "10us"}
    settings = {"ftl.kind": kind, "ftl.background_flush": flush}
    for workload in (MIXED, crowded):
        result = run(SMALL, workload, array, settings).to_dict()
        dies = 4 if array else 1
        busy = sum(result["flash"]["busy_ns"].values())
        assert 0 < busy <= dies * result["elapsed_ns"]
        if workload is crowded and not array:
            # A serial device that has work waiting is always busy, except during at most the first 1 % of
            # the run.
            assert busy >= 0.99 * result["elapsed_ns"]


@pytest.mark.parametrize("array", [{}, ARRAY], ids=["one chip", "four chips"])
@pytest.mark.parametrize("kind", ALL_FTLS)
def test_sequential_overwrite_moves_nothing(kind: str, array: dict[str, Any]) -> None:
    """Nothing is copied while an empty device is overwritten ten times in order, since no victim has a valid
    page.
    """
    chips = 4 if array else 1
    # Whole blocks are overwritten, so hybrid FTLs do only switch merges.
    pages = chips * 64 * 8 // 10 * 64
    sequential = {
        "workload.synthetic.requests": 10 * pages,
        "workload.synthetic.pattern": "sequential",
        "workload.synthetic.read_share": "0%",
        "workload.synthetic.size": "4KiB",
        "workload.synthetic.interarrival": "1us",
        "workload.synthetic.region": f"{pages * 4096}B",
    }
    result = run(SMALL, sequential, array, {"ftl.kind": kind}, collect=False).to_dict()
    assert result["flash"]["programs"]["host"] == 10 * pages
    erases = result["flash"]["erases"]
    assert erases["gc"] + erases["merge"] > 0, "the device must have been filled more than once"
    assert result["waf"]["gc"] == 0
    assert result["flash"]["programs"].get("gc", 0) == 0
    if result["mapping"]["unit_bytes"] == 0:
        assert result["waf"]["total"] == 1.0
        assert {name for name, n in result["flash"]["programs"].items() if n} == {"host"}


@pytest.mark.parametrize("pattern", ["random", "zipf"])
def test_larger_lru_cache_never_hits_less_under_noop(pattern: str) -> None:
    workload = {**MIXED, "workload.synthetic.pattern": pattern}
    settings = {"ftl.kind": "dftl", "ftl.cache_policy": "lru", "host.scheduler": "noop"}
    hits = []
    for entries in (1, 2, 3, 10, 50, 200, 1000, 2000, 4000):
        cache = {"ftl.mapping_cache": f"{8 * entries}B"}
        result = run(SMALL, workload, settings, cache, collect=False)
        hits.append(result.mapping.hits)
    assert hits == sorted(hits)
    assert hits[0] < hits[-1]


@pytest.mark.parametrize("op", ["read", "write"])
@pytest.mark.parametrize("channels", [1, 4])
@pytest.mark.parametrize("transfer_ns", [0, 1, 50])
def test_throughput_below_the_bound_of_the_bottleneck(op: str, channels: int, transfer_ns: int) -> None:
    """The throughput is below the bound, but near it: 512 outstanding requests of one page keep every chip
    busy.
    """
    chips = 2
    page, cell_ns = 4096, 35_000 if op == "read" else 350_000
    settings = {
        "ftl.kind": "page",
        "flash.channels": channels,
        "flash.chips_per_channel": chips,
        "flash.transfer": f"{transfer_ns}ns",
        "flash.blocks_per_plane": 256,
        "workload.replay": "closed",
        "host.queue_depth": 512,
        "device.queue_depth": "unlimited",
        "device.precondition": "fill" if op == "read" else "none",
        "workload.synthetic.requests": 20_000,
        "workload.synthetic.size": "4KiB",
        "workload.synthetic.read_share": "100%" if op == "read" else "0%",
        "workload.synthetic.pattern": "sequential",
    }
    have = run(settings, collect=False).to_dict()["throughput_bytes_per_s"]
    transfer = page * transfer_ns
    by_bus = channels * page / transfer * 1e9 if transfer else math.inf
    by_cells = channels * chips * page / cell_ns * 1e9
    assert have <= min(by_bus, by_cells) * (1 + 1e-9)
    # A chip has one register: it does not sense or program while it transfers.
    by_chips = channels * chips * page / (cell_ns + transfer) * 1e9
    assert have >= 0.99 * min(by_bus, by_chips)


@pytest.mark.parametrize(
    ("blocks", "b", "spare", "gate"),
    [
        (512, 64, 1.07, 0.02),
        (512, 64, 1.15, 0.02),
        (512, 64, 1.28, 0.02),
        (512, 256, 1.15, 0.02),
        (4096, 64, 1.15, 0.005),
    ],
)
def test_greedy_gc_meets_the_closed_form(blocks: int, b: int, spare: float, gate: float) -> None:
    """The write amplification is that of the closed form, under uniform random writes of one page each: 8
    times the logical space is written, after 12 times as a warm-up.

    The measured part is the difference between two runs with the same seed, one of them longer.
    """
    over_provisioning = round((1 - 1 / spare) * 1e6) / 1e4
    logical = int(blocks * b * (1_000_000 - round(over_provisioning * 1e4)) / 1_000_000)
    settings = {
        "ftl.kind": "page",
        "ftl.gc_free_blocks": 1,
        "ftl.over_provisioning": f"{over_provisioning}%",
        "flash.blocks_per_plane": blocks,
        "flash.pages_per_block": b,
        "device.precondition": "fill",
        "workload.synthetic.pattern": "random",
        "workload.synthetic.read_share": "0%",
        "workload.synthetic.size": "4KiB",
        "workload.synthetic.interarrival": "1us",
    }

    def programs(requests: int) -> tuple[int, int]:
        result = run(settings, {"workload.synthetic.requests": requests}, collect=False).to_dict()
        counted = result["flash"]["programs"]
        assert counted["host"] == requests
        return counted["host"], sum(counted.values())

    host_0, all_0 = programs(12 * logical)
    host_1, all_1 = programs(20 * logical)
    measured = (all_1 - all_0) / (host_1 - host_0)
    expected = theory.greedy_device(blocks, b, logical, reserve=1, frontiers=1)
    assert measured == pytest.approx(expected, rel=gate)


SCRIPT = """
import json, sys, ftlab
result = ftlab.run(json.loads(sys.argv[1]), collect=False)
sys.stdout.write(result.to_json())
"""


@pytest.mark.parametrize("kind", ALL_FTLS)
def test_same_configuration_same_bytes(kind: str) -> None:
    """Two processes with different hash seeds give the same result, byte by byte, except for the engine
    block.
    """
    settings = {**SMALL, **MIXED, "ftl.kind": kind, "host.scheduler": "map+", "seed": 7}
    texts = []
    for hash_seed in ("1", "2"):
        done = subprocess.run(
            [sys.executable, "-c", SCRIPT, json.dumps(settings)],
            capture_output=True,
            text=True,
            check=True,
            env={"PYTHONHASHSEED": hash_seed},
        )
        texts.append(without_engine(done.stdout))
    assert texts[0] == texts[1]
    other = run(settings, {"seed": 8}, collect=False)
    assert without_engine(other.to_json()) != texts[0]


def without_engine(text: str) -> str:
    """Returns a result's JSON text without its last block, which is ``engine``."""
    head, engine_block = text.split('"engine"')
    assert "wall_s" in engine_block
    return head


def test_serial_and_parallel_give_the_same_bytes(tmp_path: Path) -> None:
    import ftlab

    settings = {**SMALL, **MIXED}
    vary = {"host.scheduler": ["noop", "row", "hp", "map+"], "ftl.kind": ["page", "dftl"]}
    both = [ftlab.compare(settings, vary, jobs=jobs) for jobs in (1, 4)]
    texts = []
    for comparison in both:
        results = [variant.result for variant in comparison.variants]
        texts.append([without_engine(result.to_json()) for result in results])
    assert texts[0] == texts[1]
    assert len(texts[0]) == 8
