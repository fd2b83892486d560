"""Compares LeaFTL with a second implementation of its segments, levels, lookups and cache.

`FTLAB_CAMPAIGN=N` makes a campaign of the random cases (see campaign.py).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction

import pytest

import campaign
from oracle import engine, leaftl
from oracle.leaftl import Config, Device, Group, Request, Segment

pytestmark = pytest.mark.skipif(not engine.available(), reason=engine.SKIP_REASON)


def found(config: Config, requests: Sequence[Request], step: int = 100) -> list[dict[str, float]]:
    """Returns what ftlab has done and learned after each ``step`` requests, and after the last."""
    import ftlab

    figures = []
    with ftlab.Simulation(config.settings(), check=True) as simulation:
        for number, (op, first, pages) in enumerate(requests, 1):
            simulation.submit(op, first * leaftl.PAGE, pages * leaftl.PAGE)
            simulation.run_until_idle()
            if number % step == 0 or number == len(requests):
                result = simulation.result().to_dict()
                assert not any(result["flash"]["erases"].values()), "no garbage is collected"
                own = dict(result["own"]["ftl"])
                flash = result["flash"]
                own |= {name: result["mapping"][name] for name in ("hits", "misses")}
                own |= {name: flash[name].get("map", 0) for name in ("reads", "programs")}
                figures.append(own)
    return figures


def differences(
    config: Config, requests: Sequence[Request], step: int = 100, device: type[Device] = Device
) -> list[tuple[int, str, float, float]]:
    """Returns what differs first: the number of requests, the figure, ftlab's value and the oracle's."""
    have = iter(found(config, requests, step))
    model = device(config)
    for number, request in enumerate(requests, 1):
        model.take(request)
        if number % step == 0 or number == len(requests):
            one, other = next(have), model.figures()
            assert one.keys() == other.keys()
            differ = [name for name in other if one[name] != other[name] and not math.isnan(other[name])]
            if differ:
                return [(number, name, one[name], other[name]) for name in differ]
    return []


def test_random_cases() -> None:
    """On random devices and requests, ftlab and the oracle agree on every figure after each hundred."""
    for seed in campaign.cases("leaftl", range(60)):
        assert not differences(*leaftl.random_case(seed)), f"case {seed}"


def test_the_random_cases_have_all_that_there_is() -> None:
    """The cases mispredict, compact, evict changes, list LPNs and go several levels deep."""
    most: dict[str, float] = {}
    for seed in range(12):
        config, requests = leaftl.random_case(seed)
        model = Device(config)
        for request in requests:
            model.take(request)
        for name, value in model.figures().items():
            most[name] = max(most.get(name, 0), value)
    assert most["levels_max"] > 3
    named = ["misses", "programs", "mispredictions", "compactions", "approximate", "listed_bytes"]
    assert all(most[name] > 0 for name in named)


class Unsorted(Group):
    """Puts an old segment that still overlaps a new one into the top level all the same."""

    def add(self, new: Segment) -> None:
        super().add(new)
        if len(self.levels) > 1:
            self.levels[0:2] = [self.levels[0] + self.levels[1]]


def test_a_fault_in_the_levels_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(leaftl, "Group", Unsorted)
    assert any(differences(*leaftl.random_case(seed)) for seed in range(4))


def test_a_fault_in_the_slopes_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Slopes are the nearest of 16 bits; the next smaller one is another."""

    def smaller(slope: Fraction) -> Fraction:
        return max(one for one in leaftl.SLOPES if one <= slope)

    monkeypatch.setattr(leaftl, "nearest", smaller)
    cases = [leaftl.random_case(seed) for seed in range(12)]
    assert any(broken(config, requests) for config, requests in cases if config.gamma > 0)


def broken(config: Config, requests: Sequence[Request]) -> bool:
    """Whether ftlab and the oracle differ, or the oracle cannot fit a segment."""
    try:
        return bool(differences(config, requests))
    except AssertionError:
        return True
