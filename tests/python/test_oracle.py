"""Compares ftlab with the oracle, request by request, on random cases, and with the schedulers' rules.

A failing case prints its seed and the command that reproduces and shrinks it. More seeds:
``python tests/oracle/diff.py --seeds 0:10000``.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from oracle import diff, engine, generate, mapplus, rules

pytestmark = pytest.mark.skipif(not engine.available(), reason=engine.SKIP_REASON)

CHUNK = 50


@pytest.mark.parametrize("first", range(0, 600, CHUNK))
def test_engine_agrees_with_the_oracle(first: int) -> None:
    reports = [diff.compare_seed(seed) for seed in range(first, first + CHUNK)]
    failing = [report for report in reports if report is not None]
    assert not failing, "\n".join(failing)


def test_engine_agrees_with_the_oracle_under_check() -> None:
    reports = [diff.compare_seed(seed, check=True) for seed in range(10_000, 10_030)]
    failing = [report for report in reports if report is not None]
    assert not failing, "\n".join(failing)


@pytest.mark.parametrize("scheduler", generate.SCHEDULERS)
def test_order_of_dispatch_obeys_the_rules(scheduler: str) -> None:
    """Nothing is simulated here: the rows alone show whether each choice was right
    (``tests/oracle/rules.py``).
    """
    for seed in range(20):
        config, trace = generate.case(seed)
        trace = [(at, op if op in "RW" else "W", offset, max(size, 1)) for at, op, offset, size in trace]
        config = replace(
            config,
            scheduler=scheduler,
            deadline_ns=None,
            background_flush=False,
            replay="open",
            alternate=False,
        )
        for changed in (
            replace(config, awareness="none"),
            replace(config, ftl="page", awareness="full"),
        ):
            rows, _ = engine.run(generate.settings(changed), trace)
            rules.check(changed, with_pages(rows, trace, changed), f"seed {seed}")


def with_pages(
    rows: list[engine.Row], trace: list[mapplus.Record], config: mapplus.Config
) -> list[mapplus.Request]:
    """Returns the engine's rows as requests whose pages are known."""
    requests = []
    for row, (arrival, op, offset, size) in zip(rows, trace, strict=True):
        pages, partial = mapplus.pages_of(op, offset, size, config.page_bytes)
        request = mapplus.Request(row.id, arrival, op, offset, size, pages, partial)
        request.dispatch, request.complete, request.batch = row.dispatch, row.complete, row.batch
        requests.append(request)
    return requests


def test_command_line_and_python_agree(tmp_path: Path) -> None:
    """The files that ``ftlab run`` writes hold the same as results in Python, which the other tests use."""
    for seed in range(5):
        config, trace = generate.case(seed)
        folder = tmp_path / str(seed)
        folder.mkdir()
        settings = generate.settings(config)
        assert engine.command_line(settings, trace, folder) == engine.run(settings, trace)


@pytest.mark.parametrize("ftl", ["dftl", "cdftl"])
@pytest.mark.parametrize("scheduler", generate.SCHEDULERS)
def test_recorded_trace(scheduler: str, ftl: str) -> None:
    """ftlab and the oracle agree on 10,000 requests of Financial1 on the paper's device, replayed ten times
    as fast, so that they queue.
    """
    path = engine.shared_trace("financial1-first10000.ssdsim.txt")
    trace = []
    with path.open() as file:
        for line in file:
            arrival, _, sector, sectors, is_read = (int(field) for field in line.split())
            offset = sector * 512 % (200 << 20)
            trace.append((arrival // 10, "R" if is_read else "W", offset, sectors * 512))
    config = mapplus.Config(scheduler=scheduler, ftl=ftl)
    found = diff.differences(config, trace)
    assert not found, "\n".join(found[:12])
