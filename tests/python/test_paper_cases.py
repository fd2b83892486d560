"""The paper's exact cases on ftlab, to the nanosecond (spec: map-plus.md, "Exact cases").

The cases themselves, with their expectations, are in ``tests/oracle/cases.py``; the oracle passes them too
(``test_oracle_self.py``).
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from oracle import cases, engine, generate

pytestmark = pytest.mark.skipif(not engine.available(), reason=engine.SKIP_REASON)

US = 1000
MS = 1000 * US


def run_preset(tmp_path: Path, trace: list[Any], **fields: Any) -> Any:
    """Runs the preset ``map-plus`` with fields of the oracle's configuration changed."""
    import ftlab

    path = tmp_path / "t.csv"
    path.write_text(engine.trace_csv(trace))
    return ftlab.run("map-plus", set=generate.keys_of(fields), trace=str(path))


@pytest.mark.parametrize("case", cases.ALL, ids=lambda case: case.name)
def test_exact_case(case: cases.Case, tmp_path: Path) -> None:
    result = run_preset(tmp_path, case.byte_trace(case.config.get("page_bytes", 4096)), **case.config)
    cases.check(case, engine.result_rows(result), engine.counters_of(result.to_dict()))


@pytest.mark.parametrize("case", cases.ALL, ids=lambda case: case.name)
def test_exact_case_on_the_command_line(case: cases.Case, tmp_path: Path) -> None:
    settings = {"preset": "map-plus", **generate.keys_of(case.config)}
    trace = case.byte_trace(case.config.get("page_bytes", 4096))
    rows, counters = engine.command_line(settings, trace, tmp_path)
    cases.check(case, rows, counters)


def test_means_of_table_2(tmp_path: Path) -> None:
    for case, units in zip(cases.FIGURE_7, (6.6, 5.6), strict=True):
        result = run_preset(tmp_path, case.byte_trace(4096), **case.config)
        assert result.latency.read.mean_ns == pytest.approx(units * cases.READ_NS, abs=0.5)
        # The paper's Table II prints a total access time of 11; its own rows give 10.
        assert result.access.all.mean_ns == pytest.approx(10 / 5 * cases.READ_NS, abs=0.5)


def test_preset_is_the_device_of_the_paper(tmp_path: Path) -> None:
    """The preset has the paper's figures, which are measured here in runs and not read from the preset's
    file.
    """
    page = 4096

    def access(trace: list[Any], **fields: Any) -> list[int]:
        rows = engine.result_rows(run_preset(tmp_path, trace, **fields))
        return [row.complete - row.dispatch for row in rows]

    # A read takes 35 us and a program 350 us; each needs one read of a translation page, and they are far
    # apart in time.
    assert access([(0, "R", 0, page), (MS, "W", 7 * page, page)]) == [70 * US, 385 * US]
    # The bus and RAM take no time, so a hit costs only the read of the page.
    assert access([(0, "R", 0, page), (MS, "R", 0, page)]) == [70 * US, 35 * US]
    # A translation page has 512 entries: LPNs 0 and 511 make one batch, LPN 512 another.
    together = [(0, "R", 0, page), (0, "R", 511 * page, page), (0, "R", 512 * page, page)]
    rows = engine.result_rows(run_preset(tmp_path, together))
    assert [row.batch for row in rows] == [1, 1, 2]
    # The cache holds 2048 entries: the first page's entry is gone once 2049 pages have been read, but not
    # after 2048 pages.
    for entries, misses in ((2048, 0), (2049, 1)):
        scan = [(number * MS, "R", number * page, page) for number in range(entries)]
        again = [*scan, (entries * MS, "R", 0, page)]
        rows = engine.result_rows(run_preset(tmp_path, again, scheduler="noop"))
        assert rows[-1].mapping_misses == misses
    # The deadline is 10 ms. A write of an uncached page comes amid a stream of reads that hit and never
    # cease: it waits until a check finds it 10 ms old.
    warm = [(0, "R", 0, page)]
    stream = [(MS + number * 35 * US, "R", 0, page) for number in range(600)]
    trace = sorted([*warm, *stream, (MS + 1, "W", 512 * page, page)])
    rows = engine.result_rows(run_preset(tmp_path, trace))
    (write,) = [row for row in rows if row.op == "W"]
    assert write.expired
    assert write.dispatch - write.arrival >= 10 * MS
    assert write.dispatch - write.arrival < 10 * MS + 35 * US
    # The pending queue holds 128 requests: of 130 that arrive together, the last two are admitted only as
    # writes leave the queue, so RoW chooses two writes before the read.
    trace = [(0, "W", number * page, page) for number in range(129)] + [(0, "R", 0, page)]
    rows = engine.result_rows(run_preset(tmp_path, trace, scheduler="row", deadline_ns=None))
    assert [row.id for row in sorted(rows, key=lambda row: row.dispatch)][:4] == [1, 2, 130, 3]
    # The flash never fills up: nothing is erased.
    result = run_preset(tmp_path, [(0, "W", 0, 64 * page)] * 200)
    assert sum(result.to_dict()["flash"]["erases"].values()) == 0


@pytest.mark.parametrize("name", ["pixel6a-telegram-exec.csv.gz", "cloudphysics-sample.csv.gz"])
def test_preset_is_large_enough_for_the_named_traces(name: str) -> None:
    """These traces cause no garbage collection: as in the paper, the flash starts empty and never fills."""
    import ftlab

    path = engine.shared_trace(name)
    result = ftlab.run(
        "map-plus",
        trace=str(path),
        dedup="50ms",
        max_gap="60s",
        out_of_range="compact",
        host__scheduler="noop",
        collect=False,
    )
    assert sum(result.to_dict()["flash"]["erases"].values()) == 0


def random_reads_and_writes(start: int, pages: int, page_bytes: int) -> list[tuple[int, str, int, int]]:
    """Returns bursts of reads and writes of 1 to 8 pages within ``pages``, from ``start``."""
    import random

    rng = random.Random(2018)
    now, trace = start, []
    for _ in range(3000):
        if rng.random() < 0.2:
            now += rng.randrange(2000) * US
        size = rng.randrange(1, 9)
        lpn = rng.randrange(pages - size)
        trace.append((now, rng.choice("RRW"), lpn * page_bytes, size * page_bytes))
    return trace


@pytest.mark.parametrize("kind", ["dftl", "cdftl", "tpftl"])
@pytest.mark.parametrize("scheduler", generate.SCHEDULERS)
def test_cache_as_large_as_the_map_equals_page(scheduler: str, kind: str, tmp_path: Path) -> None:
    """Once every entry has been touched, a cache as large as the map and a map in RAM lead to the same
    dispatches and completions, to the nanosecond.
    """
    page, pages = 4096, 4096
    warm_up = [(0, "R", lpn * page, 64 * page) for lpn in range(0, pages, 64)]
    start = 3600 * 1000 * MS
    trace = warm_up + random_reads_and_writes(start, pages, page)
    rows = {}
    # CDFTL splits its capacity between entries and pages: with twice the map's size either part holds the
    # whole map.
    capacity = pages * 8 if kind == "dftl" else 2 * pages * 8
    for ftl in (kind, "page"):
        result = run_preset(tmp_path, trace, scheduler=scheduler, ftl=ftl, cache_bytes=capacity)
        rows[ftl] = engine.result_rows(result)[len(warm_up) :]
    assert len(rows["page"]) == 3000
    for cached, full in zip(rows[kind], rows["page"], strict=True):
        assert (cached.dispatch, cached.complete) == (full.dispatch, full.complete), cached
        assert (cached.prioritized, cached.expired) == (full.prioritized, full.expired), cached
        assert cached.mapping_misses == 0
