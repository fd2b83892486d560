"""The oracle checked on its own: hand-computed cases, laws, and other formulations of its parts.

None of these tests runs ftlab; they say how far the oracle can be trusted.
"""

from __future__ import annotations

import itertools
import random
from dataclasses import asdict, replace
from typing import Any

import pytest

from oracle import cache, cases, generate, mapplus, rules, theory

SEEDS = range(300)
SMALL = mapplus.Config(
    scheduler="noop", deadline_ns=None, page_bytes=512, entry_bytes=64, read_ns=10, program_ns=100
)
"""Eight entries per translation page; a read takes 10 ns, a program 100 ns."""


def run(config: mapplus.Config, trace: list[mapplus.Record]) -> mapplus.Result:
    """Runs ``trace``, given in LPNs: (arrival_ns, op, first LPN, pages)."""
    page = config.page_bytes
    return mapplus.simulate(config, [(at, op, lpn * page, n * page) for at, op, lpn, n in trace])


def small(entries: int | None = None, **changes: Any) -> mapplus.Config:
    bytes_ = None if entries is None else entries * SMALL.entry_bytes
    return replace(SMALL, cache_bytes=bytes_, **changes)


def access(result: mapplus.Result) -> list[int]:
    return [request.complete - request.dispatch for request in result.requests]


def order(result: mapplus.Result) -> list[int]:
    return [request.id for request in result.order]


@pytest.mark.parametrize("case", cases.ALL, ids=lambda case: case.name)
def test_paper_case(case: cases.Case) -> None:
    config = mapplus.Config(**case.config)
    result = mapplus.simulate(config, case.byte_trace(config.page_bytes))
    cases.check(case, result.requests, asdict(result.counters))


# --- hand-computed: the mapping cache ---------------------------------------------------------


@pytest.mark.parametrize(("batch_update", "last"), [(True, 20), (False, 130)])
def test_dirty_victim_costs_read_and_program_and_a_batch_update_cleans(batch_update: bool, last: int) -> None:
    trace = [(0, "W", 0, 1), (0, "W", 1, 1), (0, "R", 2, 1), (0, "R", 3, 1)]
    result = run(small(2, batch_update=batch_update), trace)
    # A write takes 10 to fetch its entry and 100 to program; a read that misses and evicts entry 0 takes
    # 10 + 100 to write that back, then 10 to fetch its own entry and 10 to read; the last read evicts
    # entry 1.
    assert access(result) == [110, 110, 130, last]


def test_victim_of_another_translation_page_stays_dirty() -> None:
    trace = [(0, "W", 0, 1), (0, "W", 8, 1), (0, "R", 1, 1), (0, "R", 2, 1)]
    assert access(run(small(2), trace)) == [110, 110, 130, 130]


def test_a_request_is_loaded_with_its_first_miss_of_each_translation_page() -> None:
    trace = [(0, "R", 6, 4), (0, "R", 9, 2)]
    # Each page read takes 10; entries 8 and 9 are in the next translation page, so 9 is cached when it is
    # needed.
    assert access(run(small(20), trace)) == [80, 30]
    assert access(run(small(20, load="request"), trace)) == [60, 30]
    # Only four of the five entries fit, so the fifth has been evicted by the time it is needed. With room
    # for a single entry, loading by request changes nothing.
    assert access(run(small(4, load="request"), [(0, "R", 0, 5)])) == [70]
    assert access(run(small(1, load="request"), trace)) == access(run(small(1), trace))


def test_segmented_cache_keeps_what_was_hit_from_a_scan() -> None:
    scan = [(0, "R", lpn, 1) for lpn in range(100, 110)]
    trace = [(0, "R", 0, 1), (0, "R", 0, 1), *scan, (0, "R", 0, 1)]
    assert run(small(8), trace).requests[-1].mapping_misses == 0
    assert run(small(8, cache_policy="lru"), trace).requests[-1].mapping_misses == 1
    # A capacity below 8 has no protected segment.
    assert run(small(7), trace).requests[-1].mapping_misses == 1


def test_overflow_of_the_protected_segment_goes_to_the_probationary_head() -> None:
    # One of the 8 entries is protected: a hit on entry 1 pushes entry 0 out of the protected segment, ahead
    # of entries 7 to 2 in the other segment.
    touched = [(0, "R", lpn, 1) for lpn in [*range(8), 0, 1, *range(100, 106)]]
    # Six new entries evict entries 2 to 7; entry 0, which was pushed out, would be next, while entry 1 is
    # protected and stays.
    assert run(small(8), [*touched, (0, "R", 0, 1)]).requests[-1].mapping_misses == 0
    assert run(small(8), [*touched, (0, "R", 106, 1), (0, "R", 0, 1)]).requests[-1].mapping_misses == 1
    assert run(small(8), [*touched, (0, "R", 106, 1), (0, "R", 1, 1)]).requests[-1].mapping_misses == 0


def test_pages_are_translated_and_accessed_one_by_one() -> None:
    # The cache holds one entry, so each page of a write evicts the dirty entry of the page before.
    assert access(run(small(1), [(0, "W", 0, 3)])) == [110 + 2 * (110 + 110)]


def test_trim_translates_whole_pages_only_and_dirties() -> None:
    config = small(1)
    half = 256
    trace = [(0, "T", half, 512 * 3), (0, "R", 9 * 512, 512)]
    result = mapplus.simulate(config, trace)
    # The trim fetches entry 1, writes it back and fetches entry 2; the read writes entry 2 back, fetches its
    # own entry and reads.
    assert [request.pages for request in result.requests] == [[1, 2], [9]]
    assert access(result) == [10 + 120, 130]
    nothing = mapplus.simulate(config, [(0, "T", half, 512)])
    assert access(nothing) == [0]


def test_read_modify_write_reads_a_partly_written_page_that_holds_data() -> None:
    trace = [(0, "W", 0, 512), (0, "W", 256, 512)]  # LPN 0, then halves of LPNs 0 and 1
    config = small(None)
    assert access(mapplus.simulate(config, trace)) == [110, 210]
    assert access(mapplus.simulate(replace(config, partial_write="rmw"), trace)) == [110, 220]


# --- hand-computed: CDFTL -----------------------------------------------------------------------


def cdftl(cmt: int, ctp: int, **changes: Any) -> mapplus.Config:
    """Returns a configuration (pages of 512 B, entries of 64 B) whose capacity splits into cmt entries and
    ctp pages.
    """
    capacity = ctp * 512 + cmt * 64
    assert max(1, capacity // 2 // 512) == ctp
    return replace(SMALL, ftl="cdftl", cache_bytes=capacity, **changes)


def test_cdftl_a_loaded_page_serves_its_other_entries() -> None:
    result = run(cdftl(2, 1), [(0, "R", 0, 8), (0, "R", 0, 1), (0, "R", 8, 1)])
    assert [request.mapping_misses for request in result.requests] == [1, 0, 1]
    assert access(result) == [90, 10, 20]


def test_cdftl_dirty_entry_is_merged_into_its_cached_page_for_nothing() -> None:
    # The CTP holds one page, the CMT two entries. W0 and W1 make both entries dirty; W2 merges entry 0 into
    # the page, which is still cached, at no cost.
    result = run(cdftl(2, 1), [(0, "W", 0, 1), (0, "W", 1, 1), (0, "W", 2, 1), (0, "R", 8, 1)])
    # The last request loads page 1: page 0 is dirty and costs one program, no read. Then entries 1 and 2 are
    # dirty and their page is gone: page 0 is loaded again, in place of page 1, which is clean, and entry 1 is
    # merged into it.
    assert access(result) == [110, 100, 100, 100 + 10 + 10 + 10]
    assert result.counters.translation_programs == 1


def test_cdftl_loads_a_page_for_the_coldest_entry_if_none_may_go() -> None:
    trace = [(0, "W", 0, 1), (0, "W", 8, 1), (0, "W", 16, 1), (0, "R", 24, 1)]
    result = run(cdftl(2, 1), trace)
    # At the third request page 2 comes in; neither entry 0 nor entry 8 may leave, so page 0 comes in, in
    # place of page 2, which is clean, and entry 0 is merged. At the fourth request, page 0 is dirty and is
    # programmed, and page 3 comes in; neither entry 8 nor entry 16 may leave, so page 1 comes in.
    assert access(result) == [110, 110, 10 + 10 + 100, 100 + 10 + 10 + 10]


def test_cdftl_a_hit_in_a_page_refreshes_the_page() -> None:
    # There is room for two pages and eight entries: pages 0 and 1 come in, page 0 is hit again, page 2 evicts
    # page 1.
    pages_then_entries = [(0, "R", lpn, 1) for lpn in [0, 8, 1, 16, 2, 9]]
    result = run(cdftl(16, 2), pages_then_entries)
    assert [request.mapping_misses for request in result.requests] == [1, 1, 0, 1, 0, 1]


def test_cdftl_a_clean_entry_goes_before_a_dirty_one_whose_page_is_absent() -> None:
    trace = [(0, "W", 0, 1), (0, "R", 8, 1), (0, "R", 16, 1), (0, "R", 0, 1)]
    result = run(cdftl(2, 1), trace)
    # Entry 8 is clean, while entry 0 is dirty and its page absent, so entry 0 is still held at the end.
    assert [request.mapping_misses for request in result.requests] == [1, 1, 1, 0]
    assert access(result) == [110, 20, 20, 10]


# --- hand-computed: TPFTL -----------------------------------------------------------------------


def tpftl(bytes_: int | None, **changes: Any) -> mapplus.Config:
    """Returns a configuration of TPFTL: entries of 6 B, nodes of 8 B, eight entries per translation page."""
    return replace(SMALL, ftl="tpftl", cache_bytes=bytes_, **changes)


def test_tpftl_loads_the_rest_of_a_request_within_its_page() -> None:
    # Entries 6 and 7 come in with one read, entries 8 to 10 with another.
    assert access(run(tpftl(None), [(0, "R", 6, 5)])) == [2 * 10 + 5 * 10]


def test_tpftl_shrinks_a_prefetch_to_what_one_node_makes_room_for() -> None:
    # There is room for a node and four entries: entries 0 to 3 come in with one read, then entry 4 misses and
    # takes the place of entry 0.
    result = run(tpftl(8 + 4 * 6), [(0, "R", 0, 5), (0, "R", 0, 1)])
    assert [request.mapping_misses for request in result.requests] == [2, 1]


def test_tpftl_evicts_from_the_coldest_node_a_clean_entry_first() -> None:
    # There is room for two nodes of one entry each: the write's node is the older one, and its eviction costs
    # a read and a program.
    trace = [(0, "W", 0, 1), (0, "R", 8, 1), (0, "R", 16, 1), (0, "R", 8, 1)]
    assert access(run(tpftl(2 * 14), trace)) == [110, 20, 130, 10]
    # Within one node the clean entry leaves, although the dirty entry is older.
    trace = [(0, "W", 0, 1), (0, "R", 1, 1), (0, "R", 2, 1), (0, "R", 0, 1)]
    assert access(run(tpftl(8 + 2 * 6), trace)) == [110, 20, 20, 10]


def test_tpftl_prefetches_neighbours_when_nodes_leave() -> None:
    # Six nodes of one entry each come in: twice the balance reaches +3, which switches prefetching off and
    # sets the balance to 0. Entry 48 takes the place of one node, then entries 49, 51 and 53 each take the
    # place of another, so the balance reaches -3, which switches prefetching on. Entry 54 brings in entry 55
    # as well, since six entries before it are cached.
    trace = [(0, "R", lpn, 1) for lpn in [0, 8, 16, 24, 32, 40, *range(48, 56)]]
    result = run(tpftl(6 * 14), trace)
    assert [request.mapping_misses for request in result.requests[6:]] == [1, 1, 1, 1, 1, 1, 1, 0]


# --- hand-computed: schedulers ------------------------------------------------------------------


def test_row_alternates_only_while_a_write_waits() -> None:
    ops = "RRRWRR"
    trace = [(0, op, number, 1) for number, op in enumerate(ops)]
    assert order(run(small(None, scheduler="row"), trace)) == [1, 4, 2, 3, 5, 6]


def test_amphibian_takes_the_smallest() -> None:
    trace = [(0, "R", 0, 3), (0, "R", 10, 1), (0, "W", 20, 2), (0, "W", 30, 1), (0, "R", 40, 1)]
    assert order(run(small(None, scheduler="amphibian"), trace)) == [2, 4, 5, 3, 1]


def test_hp_order_and_alternation() -> None:
    warm = [(0, "R", 0, 4)]
    burst = [(100, op, lpn, 1) for op, lpn in [("W", 9), ("R", 9), ("R", 10), ("W", 0), ("R", 1), ("R", 2)]]
    config = small(None, scheduler="hp")
    assert order(run(config, warm + burst)) == [1, 6, 7, 5, 3, 4, 2]
    # The last request from the miss queue was a read of the warm-up, so this queue's write comes first.
    assert order(run(replace(config, alternate=True), warm + burst)) == [1, 6, 5, 7, 2, 3, 4]


def test_batch_is_chosen_whole_and_its_prefetch_is_one_read() -> None:
    # Two requests are in translation page 0, one request straddles pages 0 and 1, and one is in page 1.
    trace = [(0, "R", 0, 1), (0, "R", 8, 1), (0, "R", 7, 2), (0, "R", 1, 1)]
    result = run(small(None, scheduler="rb"), trace)
    assert order(result) == [1, 3, 4, 2]
    # Request 3 brings in entry 8 on demand, so the second batch finds nothing missing.
    assert access(result) == [20, 10, 30, 10]
    counters = result.counters
    assert (counters.prefetches, counters.misses, counters.hits, counters.batches) == (1, 1, 4, 2)
    assert [request.prioritized for request in result.requests] == [False, False, True, True]


def test_prefetch_that_evicts_its_own_entries_misses_on_demand() -> None:
    trace = [(0, "R", 0, 1), (0, "R", 1, 1)]
    result = run(small(1, scheduler="rb"), trace)
    # Both entries come in, and the second evicts the first: the first request takes 10 for the prefetch and
    # 10 + 10 for a miss; the second is another miss.
    assert access(result) == [30, 20]


def test_prefetch_enters_an_entry_once_however_many_requests_need_it() -> None:
    trace = [(0, "R", 8, 1), (100, "R", 0, 1), (100, "R", 0, 1), (200, "R", 8, 1)]
    result = run(small(2, scheduler="rb"), trace)
    assert access(result) == [20, 20, 10, 10]


def test_prefetch_charges_evictions_before_it_enters() -> None:
    trace = [(0, "W", 0, 2), (0, "W", 10, 1), (300, "R", 20, 2)]
    result = run(small(3, scheduler="rb"), trace)
    # The writes take 10 + 200 and 10 + 100, where 10 is a prefetch. The read's two entries evict entry 0,
    # which is dirty (writing it back takes 110 and cleans entry 1 too), and entry 1, which is then clean; one
    # read brings both entries in.
    assert access(result) == [210, 110, 110 + 10 + 20]


def test_densest_batch_first_ties_to_the_older() -> None:
    trace = [(0, "R", 0, 2), (0, "R", 8, 1), (0, "R", 16, 1)]
    assert order(run(small(None, scheduler="map+"), trace)) == [2, 3, 1]


def test_requests_that_arrive_during_a_batch_are_admitted_after_it() -> None:
    trace = [(0, "R", 0, 1), (0, "R", 1, 1), (5, "R", 2, 1), (5, "R", 0, 1)]
    result = run(small(None, scheduler="map+"), trace)
    assert order(result) == [1, 2, 4, 3]
    assert [request.batch for request in result.requests] == [1, 1, 2, None]


def test_deadline_list_is_taken_once_and_is_oldest_first() -> None:
    # Reads keep coming while writes wait. The cache is unlimited; a read that hits takes 10, a write 100.
    warm = [(0, "R", 0, 4)]
    burst = [(1000, "W", 0, 1), (1000, "W", 1, 1), (1000, "R", 2, 1), (1005, "R", 3, 1), (1115, "R", 0, 1)]
    config = small(None, scheduler="hp", deadline_ns=10)
    result = run(config, warm + burst)
    # At time 1000 read 4 is chosen. At 1010 both writes have waited 10 ns, but read 5 only 5 ns: writes 2 and
    # 3 leave by deadline and take until 1210. Only then is read 6 admitted, which came at 1115. The regular
    # decision that follows chooses read 5; the deadline check at 1220 takes read 6.
    assert order(result) == [1, 4, 2, 3, 5, 6]
    assert [request.expired for request in result.requests] == [False, True, True, False, False, True]
    assert [request.dispatch for request in result.requests] == [0, 1010, 1110, 1000, 1210, 1220]
    assert result.counters.prioritized == 2


def test_deadline_zero_takes_everything_after_the_first_choice() -> None:
    trace = [(0, "W", 0, 1), (0, "R", 1, 1), (0, "R", 2, 1), (0, "W", 3, 1)]
    result = run(small(None, scheduler="row", deadline_ns=0), trace)
    assert order(result) == [2, 1, 3, 4]
    assert result.counters.expired == 3


def test_decision_after_idling_has_no_check_before_it() -> None:
    trace = [(0, "R", 0, 1), (100, "W", 1, 1), (100, "R", 2, 1)]
    result = run(small(None, scheduler="row", deadline_ns=0), trace)
    # RoW chooses the write, since the last regular dispatch was a read.
    assert order(result) == [1, 2, 3]
    assert [request.expired for request in result.requests] == [False, False, True]


def test_batch_thinned_out_by_deadline_keeps_its_number() -> None:
    trace = [(0, "R", 0, 1), (0, "R", 8, 1), (15, "R", 9, 1)]
    result = run(small(None, scheduler="rb", deadline_ns=20, late="request"), trace)
    # At time 20, request 2 has waited 20, so its deadline takes it out of batch 2, which request 3 had
    # joined.
    assert [request.batch for request in result.requests] == [1, 2, 2]
    assert [request.expired for request in result.requests] == [False, True, False]
    assert access(result) == [20, 20, 20]


def test_batch_emptied_by_deadline_is_gone() -> None:
    trace = [(0, "R", 0, 1), (0, "R", 8, 1), (25, "R", 9, 1)]
    for late in ("batch", "request"):
        result = run(small(None, scheduler="rb", deadline_ns=20, late=late), trace)
        assert [request.batch for request in result.requests] == [1, 2, 3]


def test_late_request_takes_its_batch_along() -> None:
    trace = [(0, "R", 0, 1), (0, "R", 8, 1), (5, "R", 16, 1), (15, "R", 9, 1)]
    result = run(small(None, scheduler="rb", deadline_ns=20), trace)
    # At 20 read 2 is late: one read of its translation page serves it and read 4, which is not late.
    assert order(result) == [1, 2, 4, 3]
    assert [request.dispatch for request in result.requests] == [0, 20, 50, 40]
    assert [request.expired for request in result.requests] == [False, True, True, False]
    assert [request.prioritized for request in result.requests] == [False, False, False, True]
    assert result.counters.prefetches == 3


def test_deadlines_are_looked_at_again_after_each_late_batch() -> None:
    trace = [(0, "R", 0, 1), (0, "R", 8, 1), (15, "R", 16, 1), (25, "R", 0, 1)]
    result = run(small(None, scheduler="map+", deadline_ns=20), trace)
    # At 40 read 4 is a hit and would go next by choice, but read 3 has waited 25 by then.
    assert order(result) == [1, 2, 3, 4]
    assert [request.expired for request in result.requests] == [False, True, True, True]
    result = run(small(None, scheduler="map+", deadline_ns=20, late="request"), trace)
    assert order(result) == [1, 2, 4, 3]


def test_full_queue_keeps_arrivals_out_in_order() -> None:
    trace = [(0, "W", 0, 1), (0, "W", 1, 1), (0, "W", 2, 1), (0, "R", 3, 1)]
    assert order(run(small(None, scheduler="row", queue_depth=2), trace)) == [1, 2, 4, 3]
    assert order(run(small(None, scheduler="row", queue_depth=4), trace)) == [4, 1, 2, 3]


def test_closed_replay_keeps_the_depth_outstanding() -> None:
    trace = [(0, "R", lpn, 1) for lpn in range(5)]
    result = run(small(None, replay="closed", queue_depth=2), trace)
    assert [request.arrival for request in result.requests] == [0, 0, 20, 40, 60]
    assert [request.dispatch for request in result.requests] == [0, 20, 40, 60, 80]


def test_background_flush_makes_an_arrival_wait_for_the_page_in_progress() -> None:
    config = small(None, background_flush=True)
    trace = [(0, "W", 0, 1), (0, "W", 8, 1), (250, "R", 0, 1), (1000, "R", 8, 1)]
    result = run(config, trace)
    # The writes are done at 220; then the translation page of LPN 0, the tail, is written back until 330, and
    # the read waits only for that.
    assert [request.dispatch for request in result.requests] == [0, 110, 330, 1000]
    assert result.counters.translation_programs == 2


def test_background_flush_begins_at_the_probationary_tail() -> None:
    config = small(8, background_flush=True, batch_update=False)
    # LPN 0 is in the protected segment; in the other segment LPN 16 is ahead of LPN 8. The device is idle
    # from 430 on, and writing back a page takes 110, so at 581 the second page is being written back.
    writes = [(0, "W", 0, 1), (0, "W", 0, 1), (0, "W", 8, 1), (0, "W", 16, 1)]
    result = run(config, [*writes, (581, "R", 0, 1)])
    assert access(result) == [110, 100, 110, 110, 10]
    assert result.requests[-1].dispatch == 650
    # Only one page is written back before these reads: the sixth read evicts entry 8, which is clean, the
    # seventh entry 16.
    scan = [(535, "R", lpn, 1) for lpn in range(100, 108)]
    result = run(config, [*writes, *scan])
    assert result.requests[4].dispatch == 540
    assert access(result)[4:] == [20, 20, 20, 20, 20, 20, 130, 20]


def test_flush_has_no_pages() -> None:
    trace = [(0, "F", 0, 0), (0, "F", 0, 0), (0, "R", 0, 1)]
    hp = run(small(None, scheduler="hp"), trace)
    # A flush has no mapping that could be a hit, so it stays in the write half of the miss queue, behind the
    # read.
    assert [request.prioritized for request in hp.requests] == [False, False, False]
    assert order(hp) == [3, 1, 2]
    rb = run(small(None, scheduler="rb"), trace)
    assert [request.batch for request in rb.requests] == [1, 2, 3]
    assert order(rb) == [3, 1, 2]


def test_awareness() -> None:
    # The reads come in pairs on a page that the cache holds: the one chosen first goes ahead of the other.
    # Request 1001, the second of its pair, takes the second snapshot.
    trace = [(0, "R", 0, 1)] + [(1000 * n, "R", 0, 1) for n in range(1, 502) for _ in range(2)]
    expected = {"full": 501, "lru": 501, "polled": 2, "none": 0}
    for awareness, prioritized in expected.items():
        result = run(small(4, scheduler="hp", awareness=awareness), trace)
        assert result.counters.prioritized == prioritized, awareness


# --- laws on random cases -----------------------------------------------------------------------


def busy(config: mapplus.Config, counters: mapplus.Counters) -> int:
    reads = counters.host_reads + counters.translation_reads
    programs = counters.host_programs + counters.translation_programs
    return reads * config.read_ns + programs * config.program_ns


@pytest.mark.parametrize("seed", SEEDS)
def test_laws_on_random_cases(seed: int) -> None:
    config, trace = generate.case(seed)
    result = mapplus.simulate(config, trace)
    counters = result.counters
    assert len(result.order) == len(result.requests) == len(trace)
    end = 0
    for request in result.order:
        assert request.arrival <= request.dispatch
        assert end <= request.dispatch <= request.complete
        end = request.complete
    if not config.background_flush:
        assert sum(access(result)) == busy(config, counters)
    assert busy(config, counters) <= end
    assert counters.hits + counters.misses == sum(len(request.pages) for request in result.requests)
    assert counters.prioritized == sum(request.prioritized for request in result.requests)
    assert counters.expired == sum(request.expired for request in result.requests)
    assert counters.translation_reads >= counters.misses or config.ftl == "page"
    assert not any(request.expired and request.prioritized for request in result.requests)


def plain(seed: int, **changes: Any) -> tuple[mapplus.Config, list[mapplus.Record]]:
    """Returns a random case of reads and writes without deadline, flush and alternation, loading single
    entries.
    """
    config, trace = generate.case(seed)
    without = {"deadline_ns": None, "background_flush": False, "alternate": False}
    changes = without | {"replay": "open", "load": "entry"} | changes
    trace = [(at, op if op in "RW" else "W", offset, max(size, 1)) for at, op, offset, size in trace]
    return replace(config, **changes), trace


@pytest.mark.parametrize("seed", range(100))
@pytest.mark.parametrize("scheduler", generate.SCHEDULERS)
def test_order_of_dispatch_against_the_rules(scheduler: str, seed: int) -> None:
    for changes in ({"awareness": "none"}, {"ftl": "page", "awareness": "full"}):
        config, trace = plain(seed, scheduler=scheduler, **changes)
        rules.check(config, mapplus.simulate(config, trace).requests)


def times(result: mapplus.Result) -> list[tuple[int, int]]:
    return [(request.dispatch, request.complete) for request in result.requests]


def same_times(one: mapplus.Result, other: mapplus.Result) -> bool:
    return times(one) == times(other)


@pytest.mark.parametrize("seed", range(100))
def test_schedulers_that_coincide(seed: int) -> None:
    config, trace = plain(seed, awareness="none")

    def with_scheduler(name: str, **changes: Any) -> mapplus.Result:
        return mapplus.simulate(replace(config, scheduler=name, **changes), trace)

    assert same_times(with_scheduler("map"), with_scheduler("rb"))
    full = {"ftl": "page", "awareness": "full"}
    assert same_times(with_scheduler("map", **full), with_scheduler("hp", **full))
    assert same_times(with_scheduler("map+", **full), with_scheduler("hp", **full))
    assert same_times(with_scheduler("hp", alternate=True), with_scheduler("row"))
    # A pending queue of one request leaves nothing to choose.
    assert same_times(with_scheduler("row", queue_depth=1), with_scheduler("noop", queue_depth=1))


# --- the caches, formulated differently -----------------------------------------------------


def stack_distance_counts(references: list[tuple[int, bool]], capacity: int) -> tuple[int, int]:
    """Returns the misses and the dirty evictions of an LRU cache of entries, from reuse distances alone."""
    misses = dirty_evictions = 0
    last: dict[int, int] = {}
    dirty: dict[int, bool] = {}
    for now, (lpn, write) in enumerate(references):
        held = lpn in last and len({other for other, _ in references[last[lpn] + 1 : now]}) < capacity
        if not held:
            misses += 1
            dirty_evictions += lpn in last and dirty[lpn]
            dirty[lpn] = False
        dirty[lpn] = dirty[lpn] or write
        last[lpn] = now
    for lpn, at in last.items():
        gone = len({other for other, _ in references[at + 1 :]}) >= capacity
        dirty_evictions += gone and dirty[lpn]
    return misses, dirty_evictions


@pytest.mark.parametrize("seed", range(60))
def test_lru_against_reuse_distances(seed: int) -> None:
    config, trace = plain(
        seed, scheduler="noop", ftl="dftl", cache_policy="lru", batch_update=False, partial_write="ignore"
    )
    capacity = random.Random(seed).choice([1, 3, 9, 40])
    config = replace(config, cache_bytes=config.entry_bytes * capacity)
    trace = trace[:150]
    result = mapplus.simulate(config, trace)
    references = [(lpn, request.op == "W") for request in result.requests for lpn in request.pages]
    expected = stack_distance_counts(references, capacity)
    assert (result.counters.misses, result.counters.translation_programs) == expected


@pytest.mark.parametrize("seed", range(60))
def test_segmented_lru_against_time_stamps(seed: int) -> None:
    """Compares the cache with a table of each entry's segment and the time of its last move."""
    rng = random.Random(seed)
    capacity = rng.choice([1, 7, 8, 9, 16, 33])
    lists = cache.SegmentedLruList(capacity)
    table: dict[int, tuple[str, int]] = {}
    for now in range(600):
        lpn = rng.randrange(int(capacity * 1.7) + 2)
        assert lists.holds(lpn) == (lpn in table)
        if lpn in table:
            lists.touch(lpn)
            table[lpn] = ("protected", 2 * now)
            protected = [key for key in table if table[key][0] == "protected"]
            if len(protected) > capacity // 8:
                pushed = min(protected, key=lambda key: table[key][1])
                table[pushed] = ("probationary", 2 * now + 1)
            continue
        assert lists.full() == (len(table) == capacity)
        if lists.full():
            victim = min(table, key=lambda key: (table[key][0] == "protected", table[key][1]))
            assert lists.pop_victim() == victim
            del table[victim]
        lists.insert(lpn)
        table[lpn] = ("probationary", 2 * now)


class Counted:
    """A cost that counts the reads and the programs of translation pages."""

    def __init__(self) -> None:
        self.reads = 0
        self.programs = 0

    def map_read(self) -> None:
        self.reads += 1

    def map_program(self) -> None:
        self.programs += 1


@pytest.mark.parametrize("seed", range(60))
def test_no_update_of_the_map_is_lost(seed: int) -> None:
    """An entry that ceases to be dirty was merged into a cached dirty page, or is programmed just then."""
    rng = random.Random(seed)
    cost = Counted()
    batch_update = rng.random() < 0.5
    cached: cache.Cdftl | cache.Dftl
    if rng.random() < 0.5:
        cached = cache.Cdftl(rng.choice([1, 2, 5, 20]), rng.choice([1, 2, 3]), 8, cost)
    else:
        policy = rng.choice(["slru", "lru"])
        cached = cache.Dftl(rng.choice([1, 2, 9, 20]), policy, batch_update, 8, cost)

    def state() -> tuple[set[int], set[int]]:
        if isinstance(cached, cache.Dftl):
            return set(cached.dirty), set()
        return set(cached.dirty_entries), set(cached.dirty_pages)

    for _ in range(500):
        entries, pages = state()
        programs = cost.programs
        action = rng.random()
        lpn = rng.randrange(64)
        written = action < 0.45
        if action < 0.9:
            cached.translate(lpn, written, rest=range(lpn + 1, rng.randrange(lpn + 1, 66)))
        elif action < 0.95:
            cached.prefetch([lpn // 8 * 8 + rng.randrange(8) for _ in range(4)])
        else:
            assert cached.flush_one() == bool(entries or pages)
        entries_after, pages_after = state()
        assert not written or lpn in entries_after
        cleaned = {entry // 8 for entry in entries - entries_after} - pages_after
        needed = cleaned | (pages - pages_after)
        assert len(needed) <= cost.programs - programs
        if isinstance(cached, cache.Cdftl):
            assert len(cached.cmt) <= (cached.cmt_capacity or 0)
            assert len(cached.ctp) <= (cached.ctp_capacity or 0)
            assert pages_after <= set(cached.ctp)
            assert entries_after <= set(cached.cmt)
        else:
            assert all(cached.cached(entry) for entry in entries_after)


@pytest.mark.parametrize("seed", range(60))
def test_larger_lru_cache_never_hits_less_under_noop(seed: int) -> None:
    config, trace = plain(seed, scheduler="noop", ftl="dftl", cache_policy="lru")
    hits = [
        mapplus.simulate(replace(config, cache_bytes=n * config.entry_bytes), trace).counters.hits
        for n in (1, 2, 5, 12, 40, 200)
    ]
    assert hits == sorted(hits)


# --- the theory ---------------------------------------------------------------------------------


@pytest.mark.parametrize("published", theory.TABLE, ids=lambda row: f"b={row[0]} a={row[1]}")
def test_theory_reproduces_the_table(published: tuple[float, ...]) -> None:
    b, a, *expected = published
    assert [round(value, 4) for value in theory.row(int(b), a)[2:]] == expected


def test_theory_other_anchors() -> None:
    assert round(theory.fifo(1.3), 4) == 2.3642
    rho = 1 / 1.15
    assert theory.d_choices(1.15, 64, 1) == pytest.approx(1 / (1 - rho), rel=1e-9)
    assert theory.greedy(1.15, 4096) == pytest.approx(theory.fifo(1.15), rel=0.005)
    for b, a, exact, *_ in theory.TABLE:
        assert theory.greedy_smooth(a, b) == pytest.approx(exact, rel=0.0013)
    # With a reserve of 1, 8 and 16 of 512 blocks, simulations gave 3.877, 4.236 and 4.764.
    for reserve, simulated in [(1, 3.877), (8, 4.236), (16, 4.764)]:
        computed = theory.greedy_device(512, 64, 512 * 64 / 1.15, reserve, 2)
        assert computed == pytest.approx(simulated, rel=0.01)


@pytest.mark.parametrize("a", [1.07, 1.15, 1.28])
def test_windowed_greedy_lies_between_fifo_and_greedy(a: float) -> None:
    assert theory.windowed_greedy(a, 64, 0.0) == pytest.approx(theory.fifo(a), rel=1e-6)
    assert theory.windowed_greedy(a, 64, 1.0) == pytest.approx(theory.greedy(a, 64), rel=1e-6)
    steps = [theory.windowed_greedy(a, 64, share) for share in (0.0, 0.05, 0.1, 0.25, 0.5)]
    assert all(more < less for less, more in itertools.pairwise(steps))
