"""Checks the fills of docs/slc-cache.md: rates by hand, and that a fill takes the times of its steps."""

from __future__ import annotations

import pytest

import ftlab
from oracle import engine
from scripts import script

pytestmark = pytest.mark.skipif(not engine.available(), reason=engine.SKIP_REASON)


def test_a_fill_takes_the_sum_of_its_steps() -> None:
    """By hand: 54 GB at 5,000 MB/s, 406 at 3,500 and 1,540 at 130 take 10.8, 116 and 11,846 s."""
    fills = script("fills")
    [drive] = [drive for drive in fills.DRIVES if "FX700" in drive.name]
    assert fills.harmonic(drive.steps) == pytest.approx(2_000_000 / (10.8 + 116 + 11_846.15), rel=1e-4)
    *steps, whole = fills.rates(drive, ftlab.run(fills.settings(drive)))
    assert steps[0] == pytest.approx(steps[1], rel=0.05)
    assert steps[1] > 20 * steps[2]
    modelled = tuple(step._replace(rate=rate) for step, rate in zip(drive.steps, steps, strict=True))
    assert fills.harmonic(modelled) == pytest.approx(whole, rel=0.01)
    assert whole == pytest.approx(drive.average, rel=0.05)
