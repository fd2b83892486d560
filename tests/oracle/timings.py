"""Times that follow from a preset's timings alone, for single requests and for a device at its limit."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from . import engine
from .mapplus import Record


@dataclass(frozen=True)
class Timing:
    """A preset's figures, taken from its paper and not from its file; times in ns."""

    read: int
    program: int
    byte: float = 0.0
    page: int = 4096
    """The size in bytes of a request, which is one NAND page."""
    chips: int = 1
    channels: int = 1
    lookups: tuple[int, int] = (0, 0)
    """The number of translation pages that a write reads, and the number that a later read of the same page
    reads.
    """
    more: dict[str, Any] = field(default_factory=dict)
    limit: dict[str, Any] = field(default_factory=dict)
    """Settings used only in the test of the device at its limit."""

    @property
    def bus(self) -> int:
        return round(self.page * self.byte)

    def of(self, operation: str) -> int:
        """Returns the time of a single page operation."""
        return self.bus + (self.read if operation == "R" else self.program)


# With a cached map, the few translation pages would be on one chip, whose time would dominate everything.
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


def run(preset: str, trace: Sequence[Record], more: dict[str, Any]) -> Any:
    """Returns ftlab's result for a trace under a preset."""
    import ftlab

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "t.csv"
        path.write_text(engine.trace_csv(trace))
        return ftlab.run(preset, trace=str(path), set=more)


def alone(preset: str) -> tuple[set[tuple[str, int]], set[tuple[str, int]]]:
    """Returns the latencies of 40 writes and then 40 reads of the same pages, both ftlab's and those computed
    from the timings.
    """
    timing = PRESETS[preset]
    gap, count, size = 100_000_000, 40, timing.page
    offsets = [3 * number * size for number in range(count)]
    trace = [(number * gap, "W", offset, size) for number, offset in enumerate(offsets)]
    trace += [((count + number) * gap, "R", offset, size) for number, offset in enumerate(offsets)]
    rows = engine.result_rows(run(preset, trace, timing.more))
    written, read = timing.lookups
    expected = {
        ("W", timing.of("W") + written * timing.of("R")),
        ("R", timing.of("R") + read * timing.of("R")),
    }
    return {(row.op, row.complete - row.arrival) for row in rows}, expected


AT_LIMIT = 640
"""The number of requests, each of one page, that all arrive together."""


def at_limit(preset: str, op: str) -> tuple[int, float]:
    """Returns how long ftlab takes for `AT_LIMIT` requests, and the least time that the busiest die or bus
    takes, ns.
    """
    timing = PRESETS[preset]
    trace = [(0, op, number * timing.page, timing.page) for number in range(AT_LIMIT)]
    more = timing.more | timing.limit | {"host.queue_depth": "unlimited"}
    result = run(preset, trace, more).to_dict()
    reads, programs, erases = (
        sum(result["flash"][kind].values()) for kind in ("reads", "programs", "erases")
    )
    assert erases == 0
    assert (reads if op == "R" else programs) >= AT_LIMIT
    dies = (reads * timing.of("R") + programs * timing.of("W")) / timing.chips
    buses = (reads + programs) * timing.bus / timing.channels
    return result["elapsed_ns"], max(dies, buses)
