"""On whole traces, ftlab's counters are exactly equal to plain counts (``tests/oracle/plain.py``)."""

from __future__ import annotations

import pytest

from oracle import engine, plain, traces

pytestmark = pytest.mark.skipif(not engine.available(), reason=engine.SKIP_REASON)


@pytest.mark.parametrize("policy", ["lru", "slru"])
@pytest.mark.parametrize("name", ["phone-mix", *traces.RECORDED])
def test_hits_misses_and_map_programs(name: str, policy: str) -> None:
    if name in traces.RECORDED:
        engine.shared_trace(traces.RECORDED[name])
    have, wanted = traces.lookups(traces.recorded(name), policy)
    assert have == wanted


@pytest.mark.parametrize("filled", [False, True], ids=["erased", "filled"])
@pytest.mark.parametrize("log_blocks", [5, 80])
@pytest.mark.parametrize("load", traces.WRITTEN)
@pytest.mark.parametrize("ftl", plain.FTLS)
def test_merges_copies_and_erases(ftl: str, load: str, log_blocks: int, filled: bool) -> None:
    block_pages, accesses = traces.written(load)
    have, wanted = traces.merges(ftl, block_pages, log_blocks, filled, accesses)
    assert have == wanted
    assert all(count > 0 for count in have[:5:2]), "a load that says nothing of one kind"
