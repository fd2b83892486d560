"""ftlab's counters against plain counts (``tests/oracle/plain.py``), exactly, on whole traces."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from oracle import engine, plain, traces

pytestmark = pytest.mark.skipif(not engine.available(), reason=engine.SKIP_REASON)

RECORDED = {
    "phone-mix": None,
    "financial1": "financial1-first10000.ssdsim.txt",
    "tpcc": "tpcc-small.mqsim.txt",
}


def recorded(name: str) -> list[plain.Access]:
    """A recorded trace; the test is skipped where it is absent."""
    file = RECORDED[name]
    return traces.shipped() if file is None else traces.packed(traces.sectors(engine.shared_trace(file)))


@pytest.mark.parametrize("policy", ["lru", "slru"])
@pytest.mark.parametrize("name", RECORDED)
def test_hits_misses_and_map_programs(name: str, policy: str) -> None:
    accesses = recorded(name)
    settings = {
        "ftl.kind": "dftl",
        "ftl.mapping_cache": "16KiB",
        "ftl.cache_policy": policy,
        "flash.blocks_per_plane": 8192,
    }
    result = traces.run(settings, accesses)
    have = [result["mapping"][key] for key in ("hits", "misses", "translation_programs")]
    wanted = plain.dftl(accesses, entries=2048, per_page=512, policy=policy)
    assert have == [wanted.hits, wanted.misses, wanted.programs]


KINDS = ["full", "partial", "switch"]
BLOCKS = 4096
LOADS: dict[str, tuple[int, Callable[[], list[plain.Access]]]] = {
    "phone-mix": (64, lambda: [each for each in traces.shipped() if each[0] == "W"]),
    "mixed, blocks of 64": (64, lambda: traces.mixed(250 * 64, 64, 3000, seed=5)),
    "mixed, blocks of 8": (8, lambda: traces.mixed(300 * 8, 8, 8000, seed=6)),
}
"""Pages of a block, and the writes."""


@pytest.mark.parametrize("filled", [False, True], ids=["erased", "filled"])
@pytest.mark.parametrize("log_blocks", [5, 80])
@pytest.mark.parametrize("load", LOADS)
@pytest.mark.parametrize("ftl", plain.FTLS)
def test_merges_copies_and_erases(ftl: str, load: str, log_blocks: int, filled: bool) -> None:
    block_pages, writes = LOADS[load]
    settings: dict[str, Any] = {
        "ftl.kind": ftl,
        # Rounded down here, up to whole blocks there.
        "ftl.log_blocks": f"{log_blocks * 1_000_000 // BLOCKS / 10_000}%",
        "ftl.over_provisioning": "10%",
        "flash.blocks_per_plane": BLOCKS,
        "flash.pages_per_block": block_pages,
        "device.precondition": "fill" if filled else "none",
    }
    accesses = writes()
    result = traces.run(settings, accesses)
    have = {kind: [result["merges"][kind][key] for key in ("count", "pages_copied")] for kind in KINDS}
    model = plain.FTLS[ftl](block_pages, log_blocks, BLOCKS * block_pages * 9 // 10 if filled else 0)
    for _, first, pages in accesses:
        model.write(first, pages)
    assert have == {kind: getattr(model.merges, kind) for kind in KINDS}
    assert sum(result["flash"]["erases"].values()) == model.merges.erases
    assert all(count > 0 for count, _ in have.values()), "a load that says nothing of one kind"
