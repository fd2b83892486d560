"""Compares ftlab's array with the event model (``tests/oracle/events.py``), request by request."""

from __future__ import annotations

from dataclasses import replace

import pytest

from oracle import arrays, engine, events

pytestmark = pytest.mark.skipif(not engine.available(), reason=engine.SKIP_REASON)

REQUESTS = {1: 2000, 16: 600}
"""How many requests are compared, by the maximum number of pages in a request."""


def orders_on_the_bus() -> list[str]:
    """Returns the rules for the bus that both ftlab and the model have; none if ftlab is not installed."""
    if not engine.available():
        return []
    import ftlab

    choices = ftlab.components().get("flash.bus", [{"name": "fcfs"}])
    return [name for name in events.ARBITRATIONS if name in {choice["name"] for choice in choices}]


def unequal(array: events.Array, share: float, most_pages: int, seed: int) -> list[str]:
    return arrays.unequal(array, arrays.load(array, share, most_pages, REQUESTS[most_pages], seed))


@pytest.mark.parametrize("most_pages", REQUESTS)
@pytest.mark.parametrize("load", arrays.LOADS)
@pytest.mark.parametrize("geometry", arrays.GEOMETRIES)
@pytest.mark.parametrize("order", orders_on_the_bus())
def test_every_request_completes_when_the_model_says(
    geometry: str, load: str, most_pages: int, order: str
) -> None:
    array = replace(arrays.GEOMETRIES[geometry], arbitration=order)
    found = unequal(array, arrays.LOADS[load], most_pages, seed=13)
    assert not found, f"{len(found)} unequal\n" + "\n".join(found[:5])


@pytest.mark.parametrize("hot_pages", [None, 200])
@pytest.mark.parametrize("load", arrays.LOADS)
@pytest.mark.parametrize("geometry", arrays.GEOMETRIES)
@pytest.mark.parametrize("order", orders_on_the_bus())
def test_pages_are_bound_when_a_die_is_free(
    geometry: str, load: str, hot_pages: int | None, order: str
) -> None:
    """ftlab completes every request when the model does; if hot pages are few, that includes reads of pages
    whose write has no die yet.
    """
    array = replace(arrays.GEOMETRIES[geometry], allocation="dynamic", arbitration=order)
    requests = arrays.load(array, arrays.LOADS[load], 16, REQUESTS[16], seed=16)
    if hot_pages is not None:
        requests = [(at, op, first % hot_pages, pages) for at, op, first, pages in requests]
    found = arrays.unequal(array, requests)
    assert not found, f"{len(found)} unequal\n" + "\n".join(found[:5])


def test_a_write_waits_for_a_die_and_a_read_for_its_write() -> None:
    """A page without a die gets the first idle one: with two dies and no time on the bus, the third page of
    the write goes to the die at which no read waits.
    """
    array = events.Array(
        channels=2, read_ns=10, program_ns=100, byte_ns=0.0, command_ns=0, allocation="dynamic"
    )
    requests = [(0, "W", 0, 3), (20, "R", 0, 1), (30, "R", 2, 1)]
    assert events.simulate(array, requests) == [200, 110, 210]


@pytest.mark.parametrize("interleave", [False, True])
@pytest.mark.parametrize("allocation", ["wdpc", "pcwd", "dpwc"])
def test_other_orders_of_allocation(allocation: str, interleave: bool) -> None:
    array = replace(arrays.GEOMETRIES["8x2x2x2"], allocation=allocation, interleave=interleave)
    found = unequal(array, 0.5, 16, seed=14)
    assert not found, f"{len(found)} unequal\n" + "\n".join(found[:5])


def test_without_a_bus() -> None:
    array = events.Array(channels=3, ways=2, byte_ns=0.0, command_ns=0)
    assert not unequal(array, 2.0, 16, seed=15)


def test_a_request_alone_takes_the_sum_of_its_timings() -> None:
    assert events.simulate(events.Array(), [(0, "R", 0, 1)]) == [175 + 20_000 + 102_400]
    assert events.simulate(events.Array(), [(0, "W", 0, 1)]) == [175 + 102_400 + 200_000]


def test_two_reads_of_one_channel_share_its_bus() -> None:
    """The commands are sent one after another; the second page's data go out after those of the first."""
    two = [(0, "R", 0, 1), (0, "R", 1, 1)]
    assert events.simulate(events.Array(ways=2), two) == [122_575, 122_575 + 102_400]
    assert events.simulate(events.Array(channels=2), two) == [122_575, 122_575]


def test_commands_first_lets_a_command_pass_a_transfer() -> None:
    """With commands first, the third read's command, which comes while one page is on the bus and another
    page waits for the bus, goes before the page that waits.
    """
    requests = [(0, "R", 0, 1), (0, "R", 1, 1), (30_000, "R", 2, 1)]
    behind = events.simulate(events.Array(ways=3), requests)
    passing = events.simulate(events.Array(ways=3, arbitration="commands-first"), requests)
    assert behind == [122_575, 224_975, 224_975 + 175 + 20_000 + 102_400]
    assert passing == [122_575, 225_150, 225_150 + 102_400]


def test_the_comparison_would_notice_another_order_on_the_bus() -> None:
    array = arrays.GEOMETRIES["1x8"]
    requests = arrays.load(array, 2.0, 1, 500, seed=13)
    ours = arrays.run(array, requests)
    for other in events.ARBITRATIONS[1:]:
        assert events.simulate(replace(array, arbitration=other), requests) != ours
