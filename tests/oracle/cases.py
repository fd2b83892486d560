"""The exact cases of the paper (spec: map-plus.md, "Exact cases"), as traces and expectations.

Each case is independent of what runs it: ``tests/python/test_oracle_self.py`` runs them on the
oracle, ``tests/python/test_paper_cases.py`` on ftlab. Addresses are LPNs here; a runner turns
them into bytes. Ids in the expectations are those of the paper; ``first`` is the id, counted from 1, that the
paper's request 1 has in the trace, after the requests that warm up the cache.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from .mapplus import Record

READ_NS = 35_000
MS = 1_000_000


@dataclass
class Case:
    """A run: its requests, each as (arrival_ns, op, first LPN, pages), and the expected outcome."""

    name: str
    config: dict[str, Any]  # fields of mapplus.Config
    trace: list[Record]
    first: int = 1
    order: list[int] | None = None  # paper's ids in the order of dispatch
    latency: dict[int, int] | None = None  # paper's id -> ns
    wait: dict[int, int] | None = None
    misses: dict[int, int] | None = None  # paper's id -> mapping misses
    prioritized: int | None = None  # of the whole run
    counters: dict[str, int] = field(default_factory=dict)

    def byte_trace(self, page_bytes: int) -> list[Record]:
        """Returns the trace as (arrival_ns, op, offset, size)."""
        return [(at, op, lpn * page_bytes, n * page_bytes) for at, op, lpn, n in self.trace]


def figure_7(scheduler: str, units: list[int]) -> Case:
    """Returns the case of Fig. 7 and Table II: two batches of reads, an unlimited cache, no deadline."""
    page_a, page_b = 0, 512  # first LPNs of two translation pages of 512 entries
    sizes = [(page_a, 2), (page_b, 1), (page_a + 10, 2), (page_b + 10, 1), (page_b + 20, 2)]
    return Case(
        name=f"figure 7, {scheduler}",
        config={"scheduler": scheduler, "cache_bytes": None, "deadline_ns": None, "read_ns": READ_NS},
        trace=[(0, "R", lpn, pages) for lpn, pages in sizes],
        latency={number: unit * READ_NS for number, unit in enumerate(units, start=1)},
        counters={"misses": 0, "prefetches": 2, "translation_reads": 2, "host_reads": 8, "batches": 2},
    )


FIGURE_7 = [
    figure_7("rb", [3, 7, 5, 8, 10]),
    figure_7("map+", [8, 2, 10, 3, 5]),
]

# Table I: entries cached at the start, and the LPNs of requests 1 to 12.
CACHED = [10, 11, 110, 111, 210, 211]
TABLE_1_LPNS = [5, 105, 106, 6, 10, 205, 206, 11, 110, 111, 210, 211]


def table_1(scheduler: str, order: list[int], prioritized: int) -> Case:
    """Returns the case of Fig. 5 and Table I: 100 entries per translation page, twelve reads at one instant.

    The cached entries are brought in by six reads of one page, far apart in time, so that none of them is
    prioritized and each is a batch of its own. Then the twelve arrive together.
    """
    start = 100 * MS
    warm_up = [(10 * MS * number, "R", lpn, 1) for number, lpn in enumerate(CACHED)]
    hits = {5, 8, 9, 10, 11, 12}
    batched = {4, 3, 7} if scheduler == "map" else set[int]()
    return Case(
        name=f"table I, {scheduler}",
        config={"scheduler": scheduler, "page_bytes": 800, "entry_bytes": 8, "deadline_ns": None},
        trace=warm_up + [(start, "R", lpn, 1) for lpn in TABLE_1_LPNS],
        first=len(warm_up) + 1,
        order=order,
        # In a batch the prefetch brings in the missing entries, so no request has a miss; the first request
        # also takes the time of the prefetch.
        misses={n: int(n not in hits and scheduler != "map") for n in range(1, 13)},
        latency=table_1_latency(order, hits | batched),
        prioritized=prioritized,
    )


def table_1_latency(order: list[int], free: set[int]) -> dict[int, int]:
    """Returns the latencies: a request reads its page and, unless it is in ``free``, a translation page."""
    now = 0
    latency: dict[int, int] = {}
    for number in order:
        now += READ_NS if number in free else 2 * READ_NS
        latency[number] = now
    return latency


TABLE_1 = [
    table_1("noop", [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12], 0),
    table_1("hp", [5, 8, 9, 10, 11, 12, 1, 2, 3, 4, 6, 7], 6),
    table_1("map", [5, 8, 9, 10, 11, 12, 1, 4, 2, 3, 6, 7], 9),
]


def figure_6(scheduler: str, waits: tuple[int, int]) -> Case:
    """Returns the case of Fig. 6, where reads take 10 us: at time 0 a read misses on the translation page of
    request 2; at 10 us requests 1 and 2 arrive.
    """
    us = 1000
    return Case(
        name=f"figure 6, {scheduler}",
        config={"scheduler": scheduler, "read_ns": 10 * us, "deadline_ns": None},
        trace=[(0, "R", 7, 1), (10 * us, "R", 3000, 1), (10 * us, "R", 7, 1)],
        first=2,
        wait={1: waits[0] * us, 2: waits[1] * us},
        misses={1: 1, 2: 0},
    )


FIGURE_6 = [figure_6("noop", (10, 30)), figure_6("hp", (20, 10))]

ALL = FIGURE_7 + TABLE_1 + FIGURE_6


class Row(Protocol):
    """The fields of a request that a check reads."""

    arrival: int
    dispatch: int
    complete: int
    mapping_misses: int
    prioritized: bool


def check(case: Case, rows: Sequence[Row], counters: Mapping[str, int]) -> None:
    """Asserts that the rows and counters of a run, of the oracle or of ftlab, are those of a case.

    ``rows`` are in order of id, each with arrival, dispatch, complete, mapping_misses, prioritized.
    """
    paper = {number: rows[case.first - 1 + number - 1] for number in range(1, len(rows) - case.first + 2)}
    if case.order is not None:
        order = sorted(paper, key=lambda number: paper[number].dispatch)
        assert order == case.order, f"{case.name}: order {order}"
    for number, expected in (case.latency or {}).items():
        got = paper[number].complete - paper[number].arrival
        assert got == expected, f"{case.name}: latency of {number} is {got} ns, not {expected}"
    for number, expected in (case.wait or {}).items():
        got = paper[number].dispatch - paper[number].arrival
        assert got == expected, f"{case.name}: wait of {number} is {got} ns, not {expected}"
    for number, expected in (case.misses or {}).items():
        got = paper[number].mapping_misses
        assert got == expected, f"{case.name}: misses of {number} are {got}, not {expected}"
    if case.prioritized is not None:
        got = sum(bool(row.prioritized) for row in rows)
        assert got == case.prioritized, f"{case.name}: {got} rows prioritized"
        assert counters["prioritized"] == case.prioritized, f"{case.name}: counter {counters}"
    for name, expected in case.counters.items():
        assert counters[name] == expected, f"{case.name}: {name} is {counters[name]}, not {expected}"
