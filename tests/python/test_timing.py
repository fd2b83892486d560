"""Times that follow from a preset's timings alone: a request by itself, and a device at its limit."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from oracle import engine

pytestmark = pytest.mark.skipif(not engine.available(), reason=engine.SKIP_REASON)


@dataclass(frozen=True)
class Timing:
    """A preset's figures, from its paper and not from its file; times in ns."""

    read: int
    program: int
    byte: float = 0.0
    page: int = 4096
    """Bytes of a request: a NAND page."""
    chips: int = 1
    channels: int = 1
    lookups: tuple[int, int] = (0, 0)
    """Translation pages read by a write, and by the read of the page it wrote."""
    more: dict[str, Any] = field(default_factory=dict)
    limit: dict[str, Any] = field(default_factory=dict)
    """Settings at its limit alone."""

    @property
    def bus(self) -> int:
        return round(self.page * self.byte)

    def of(self, operation: str) -> int:
        """A page operation by itself."""
        return self.bus + (self.read if operation == "R" else self.program)


# Its few translation pages lie on one chip, which would be all there is to see.
FULL_MAP = {"ftl.kind": "page"}
# Blocks that were never erased program at the largest step: half the nominal time.
FRESH = {"flash.pe_cycles": 0, "device.precondition": "none"}
PRESETS = {
    "map-plus": Timing(35_000, 350_000, lookups=(1, 0)),
    "msftl": Timing(49_000, 600_000, byte=1.25, page=16384, chips=4, channels=2),
    "vios": Timing(20_000, 300_000, byte=25.0, page=2048, chips=64, channels=8, more=FRESH),
    "coop-bast": Timing(45_000, 240_000),
    "coop-fast": Timing(45_000, 240_000),
    "crash": Timing(50_000, 500_000, byte=2.5, chips=4, channels=2, lookups=(1, 0), limit=FULL_MAP),
}


def run(preset: str, trace: list[tuple[int, str, int, int]], more: dict[str, Any]) -> Any:
    import ftlab

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "t.csv"
        path.write_text(engine.trace_csv(trace))
        return ftlab.run(preset, trace=str(path), set=more)


def test_every_preset_is_here() -> None:
    if not engine.available():
        return
    import ftlab

    assert set(PRESETS) == set(ftlab.presets())


@pytest.mark.parametrize("preset", PRESETS)
def test_a_request_alone_takes_the_sum_of_its_timings(preset: str) -> None:
    timing = PRESETS[preset]
    gap, count, size = 100_000_000, 40, timing.page
    offsets = [3 * number * size for number in range(count)]
    trace = [(number * gap, "W", offset, size) for number, offset in enumerate(offsets)]
    trace += [((count + number) * gap, "R", offset, size) for number, offset in enumerate(offsets)]
    rows = engine.result_rows(run(preset, trace, timing.more))
    written, read = timing.lookups
    expected = {
        "W": timing.of("W") + written * timing.of("R"),
        "R": timing.of("R") + read * timing.of("R"),
    }
    assert {(row.op, row.complete - row.arrival) for row in rows} == set(expected.items())


@pytest.mark.parametrize("op", ["R", "W"])
@pytest.mark.parametrize("preset", PRESETS)
def test_at_its_limit_a_device_is_as_fast_as_its_bottleneck(preset: str, op: str) -> None:
    timing = PRESETS[preset]
    count = 640
    trace = [(0, op, number * timing.page, timing.page) for number in range(count)]
    result = run(preset, trace, timing.more | timing.limit | {"host.queue_depth": "unlimited"}).to_dict()
    reads, programs, erases = (
        sum(result["flash"][kind].values()) for kind in ("reads", "programs", "erases")
    )
    assert erases == 0
    assert (reads if op == "R" else programs) >= count
    dies = (reads * timing.of("R") + programs * timing.of("W")) / timing.chips
    buses = (reads + programs) * timing.bus / timing.channels
    bound = max(dies, buses)
    if timing.chips == 1:
        assert result["elapsed_ns"] == bound
    # The last page comes off the bottleneck while something else has yet to end, or had yet to begin.
    assert bound <= result["elapsed_ns"] <= bound + timing.of(op)
