"""Times that follow from a preset's timings alone (``tests/oracle/timings.py``)."""

from __future__ import annotations

import pytest

from oracle import engine, timings

pytestmark = pytest.mark.skipif(not engine.available(), reason=engine.SKIP_REASON)


def test_every_preset_is_here() -> None:
    import ftlab

    # Presets of drives are compared with what was measured on the drives (docs/drives.md).
    assert set(timings.PRESETS) == {
        name for name in ftlab.presets() if not name.startswith(("nvme-", "ufs-", "emmc-"))
    }


@pytest.mark.parametrize("preset", timings.PRESETS)
def test_a_request_alone_takes_the_sum_of_its_timings(preset: str) -> None:
    have, wanted = timings.alone(preset)
    assert have == wanted


@pytest.mark.parametrize("op", ["R", "W"])
@pytest.mark.parametrize("preset", timings.PRESETS)
def test_at_its_limit_a_device_is_as_fast_as_its_bottleneck(preset: str, op: str) -> None:
    elapsed, bound = timings.at_limit(preset, op)
    timing = timings.PRESETS[preset]
    if timing.chips == 1:
        assert elapsed == bound
    # Before the bottleneck is first busy, and after it has served its last page, other stages may take time,
    # but together no more than that of one operation.
    assert bound <= elapsed <= bound + timing.of(op)
