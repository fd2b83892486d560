"""How long sizes persist: measured of a workload, estimated for the generator, and reached by it."""

from __future__ import annotations

import math

import numpy as np
import pytest

from front import Cli
from ftlab.configs import Override, load
from ftlab.fitting import arrivals, measure, persistence
from ftlab.fitting.persistence import Persistence
from ftlab.fitting.quantity import share_of

BURSTS = arrivals.Bursts(length=12.0, within_ns=3e5, between_ns=1e9)
"""Bursts so far apart that hardly two of them look like one."""


def generator(**keys: str) -> dict[str, str]:
    given = {
        "requests": "120000",
        "region": "256MiB",
        "read_sizes": "4KiB/40:8KiB/30:16KiB/20:64KiB/10",
        "write_sizes": "4KiB/10:8KiB/20:32KiB/70",
        "arrival": "bursts",
        "burst_ops": "single",
        "interarrival": f"{BURSTS.within_ns:.0f}ns",
        "burst_gap": f"{BURSTS.between_ns:.0f}ns",
        "burst_length": f"{BURSTS.length}",
    }
    return given | keys


def found_in(keys: dict[str, str]) -> measure.Workload:
    overrides = [Override("test", f"workload.synthetic.{key}", value) for key, value in keys.items()]
    return measure.measure(load("map-plus", overrides))


def shares(keys: dict[str, str]) -> tuple[float, ...]:
    names = ("size_correlation", "size_persistence", "burst_size_correlation")
    return tuple(share_of(keys.get(name, "0%")) for name in names)


@pytest.mark.parametrize("p", [0.0, 0.2, 0.61, 0.95])
@pytest.mark.parametrize("c", [0.0, 0.1, 0.5, 0.9])
@pytest.mark.parametrize("lag", [2, 16])
def test_two_correlations_give_the_two_shares(p: float, c: float, lag: int) -> None:
    near, far = p + (1 - p) * c, p + (1 - p) * c**lag
    assert persistence.split(near, far, lag) == pytest.approx((p, c), abs=1e-6)


def test_what_falls_faster_than_repeats_can_has_no_persistence() -> None:
    assert persistence.split(0.6, 0.0, 16) == pytest.approx((0.0, 0.6), abs=1e-6)


def test_persistence_is_no_greater_than_what_is_left_far_apart() -> None:
    """Regression: neighbours that were all alike gave persistence 1, whatever there was farther apart."""
    for far in (0.0, 0.4, 0.9):
        assert persistence.split(1.0, far, 16)[0] <= far + 1e-3


def test_lengths_of_bursts_have_the_generators_defaults() -> None:
    """Regression: `same` was taken for a number, and an absent length of bursts for 1."""
    keys = {"arrival": "bursts", "size_persistence": "40%"}
    stated = keys | {"burst_length": "10", "read_burst_length": "10"}
    assert persistence.inflation(keys | {"read_burst_length": "same"}) == persistence.inflation(stated)
    assert persistence.inflation(keys) == persistence.inflation(stated)


@pytest.mark.parametrize(
    "asked", [(0.0, 0.0, 0.0), (0.6, 0.0, 0.0), (0.0, 0.7, 0.0), (0.3, 0.5, 0.0), (0.2, 0.6, 0.6)]
)
def test_the_generators_keys_are_found_in_its_requests(asked: tuple[float, float, float]) -> None:
    names = ("size_correlation", "size_persistence", "burst_size_correlation")
    given = {name: f"{share:.0%}" for name, share in zip(names, asked, strict=True)}
    found = found_in(generator(**given)).persistence
    assert found is not None
    keys: dict[str, str] = {}
    persistence.set_sizes(found, BURSTS, keys)
    assert shares(keys)[:2] == pytest.approx(asked[:2], abs=0.05)
    if asked[1]:
        assert shares(keys)[2] == pytest.approx(asked[2], abs=0.1)


def test_bursts_that_merge_are_allowed_for() -> None:
    """Gaps between these bursts are often below the mean gap: 16 requests apart less than half of the
    pairs of what looks like a burst are in one, and the shorter distances have to do.
    """
    close = arrivals.Bursts(length=8.0, within_ns=1e6, between_ns=5e6)
    assert arrivals.same_burst(close)[0] ** 16 < 0.5
    keys = generator(
        interarrival="1ms", burst_gap="5ms", burst_length="8", size_persistence="70%", requests="400000"
    )
    found = found_in(keys).persistence
    assert found is not None
    assert found.within[8] < 0.55
    fitted: dict[str, str] = {}
    persistence.set_sizes(found, close, fitted)
    assert shares(fitted)[:2] == pytest.approx((0.0, 0.7), abs=0.08)


def test_same_burst_is_the_share_of_gaps_within_bursts() -> None:
    bursts = arrivals.Bursts(5.0, 1e5, 2e6, pause_share=0.25, pause_ns=5e7)
    rng = np.random.default_rng(1)
    ends = rng.random(400_000) < 1 / bursts.length
    between = np.where(rng.random(ends.size) < bursts.pause_share, bursts.pause_ns, bursts.between_ns)
    gaps = rng.exponential(np.where(ends, between, bursts.within_ns))
    short = gaps <= gaps.mean()
    expected = ((~ends)[short].mean(), (~ends)[~short].mean())
    assert arrivals.same_burst(bursts) == pytest.approx(expected, abs=0.003)


def test_few_pairs_and_equal_sizes_say_nothing() -> None:
    times, reads = np.arange(50, dtype=np.uint64), np.ones(50, dtype=bool)
    found = persistence.measured(times, reads, np.full(50, 4096.0))
    assert (found.within, found.across) == ({}, 0.0)
    keys: dict[str, str] = {}
    persistence.set_sizes(Persistence({}, 0.0), BURSTS, keys)
    assert keys == {}


def test_what_chance_may_give_is_left_out() -> None:
    within = {1: 0.04, 16: 0.03}
    for chance, kept in (
        (0.05, []),
        (0.035, ["size_correlation"]),
        (0.02, ["size_correlation", "size_persistence"]),
    ):
        keys: dict[str, str] = {}
        persistence.set_sizes(Persistence(within, 0.01, chance), BURSTS, keys)
        assert list(keys) == kept


def test_bursts_never_keep_their_size_for_good() -> None:
    keys: dict[str, str] = {}
    persistence.set_sizes(Persistence({1: 0.5, 16: 0.5}, 0.6), BURSTS, keys)
    assert share_of(keys["burst_size_correlation"]) == persistence.MOST_KEPT


@pytest.mark.parametrize("asked", [(0.5, 0.0, 0.0), (0.0, 0.6, 0.0), (0.2, 0.4, 0.5)])
def test_a_mean_of_persistent_sizes_varies_as_stated(asked: tuple[float, float, float]) -> None:
    """The variance of means of 600 sizes, over that of independent sizes."""
    c, p, g = asked
    length, requests, runs = 6.0, 600, 4000
    rng = np.random.default_rng(2)
    burst, last = rng.standard_normal(runs), np.zeros(runs)
    total = np.zeros(runs)
    begins = np.ones(runs, dtype=bool)
    for _ in range(requests):
        burst = np.where(begins & (rng.random(runs) >= g), rng.standard_normal(runs), burst)
        drawn = np.where(rng.random(runs) < math.sqrt(p), burst, rng.standard_normal(runs))
        last = np.where(~begins & (rng.random(runs) < c), last, drawn)
        total += last
        begins = rng.random(runs) < 1 / length
    keys = {
        "arrival": "bursts",
        "burst_length": f"{length}",
        "size_correlation": f"{c:.0%}",
        "size_persistence": f"{p:.0%}",
        "burst_size_correlation": f"{g:.0%}",
    }
    assert total.var() / requests == pytest.approx(persistence.inflation(keys), rel=0.08)


def test_a_trace_whose_sizes_persist_becomes_such_a_model(cli: Cli) -> None:
    keys = generator(requests="60000", size_correlation="20%", size_persistence="50%")
    flags = [word for key, value in keys.items() for word in (f"--{key.replace('_', '-')}", value)]
    cli.ok("trace", "generate", "a.parquet", *flags)
    cli.ok("trace", "fit", "a.parquet", "--out", "model.toml")
    text = (cli.directory / "model.toml").read_text()
    assert "size_lag_1 " in text and "size_lag_16" in text
    model = load(str(cli.directory / "model.toml"))
    found = measure.measure(model).persistence
    assert found is not None
    assert found.within[1] == pytest.approx(0.6, abs=0.05)
    assert found.within[16] == pytest.approx(0.5, abs=0.08)
