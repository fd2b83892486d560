"""Whole-drive fills, published and modelled: the table of docs/slc-cache.md.

    python scripts/fills.py

Prints the table in Markdown. Each drive is filled once in order, as a copy of a hundredth of its size.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

import ftlab

GB = 10**9
SCALE = 100
PAGE = 16384
LANES = 32
WRITE = 1 << 20
FIXED = 6 * GB // SCALE
"""Bytes of the cache that always serve, as in the 980 PRO; the rest serves while blocks are erased."""


class Step(NamedTuple):
    """A stretch of a fill: up to how many GB have been written, and the rate, MB/s."""

    until_gb: float
    rate: float


class Drive(NamedTuple):
    """A drive, what was published of its fill, and the keys of its model that were set by that."""

    name: str
    bits: int
    steps: tuple[Step, ...]
    average: float
    """Of the whole fill as published, MB/s."""
    full: str
    """What its model does with a full cache (``ftl.slc_full``)."""
    program_us: int
    """Fitted: the second step's rate."""


# From the reviews that docs/slc-cache.md names: a sequential stream of 1 MB blocks into an erased drive.
DRIVES = [
    Drive("Samsung 980 PRO 1 TB", 3, (Step(113, 4000), Step(1000, 1500)), 1900, "direct", 910),
    Drive("XPG Atom 50 1 TB", 3, (Step(280, 4500), Step(500, 2000), Step(1000, 500)), 800, "direct", 760),
    Drive("Samsung 980 1 TB", 3, (Step(160, 2500), Step(1000, 500)), 600, "fold", 2040),
    Drive("HP FX700 2 TB", 4, (Step(54, 5000), Step(460, 3500), Step(2000, 130)), 168, "fold", 12000),
]


def harmonic(steps: tuple[Step, ...]) -> float:
    """Returns the rate of a fill with these steps, MB/s: what is written by the time that the steps take."""
    begins = [0.0, *(step.until_gb for step in steps)]
    parts = zip(steps, begins, strict=False)
    return steps[-1].until_gb / sum((step.until_gb - begin) / step.rate for step, begin in parts)


def settings(drive: Drive) -> dict[str, Any]:
    """Returns the settings of the model of a drive."""
    cache_gb = drive.steps[-2].until_gb if drive.full == "fold" else drive.steps[0].until_gb
    capacity, cache = drive.steps[-1].until_gb * GB / SCALE, cache_gb * GB / SCALE
    begins = harmonic(tuple(step for step in drive.steps if step.until_gb <= cache_gb))
    pages = 96 * drive.bits
    return {
        "host": {"queue_depth": 4},
        "workload": {
            "replay": "closed",
            "synthetic": {
                "requests": int(capacity) // WRITE,
                "read_share": "0%",
                "pattern": "sequential",
                "size": "1MiB",
            },
        },
        "device": {
            "scheduler": "direct",
            "queue_depth": 256,
            "write_buffer": "16MiB",
            "precondition": "none",
        },
        "ftl": {
            "kind": "page",
            "logical_page": "16KiB",
            "over_provisioning": "7%",
            "slc_cache": f"{FIXED}B+dynamic:{int(cache) - FIXED}B",
            "slc_full": drive.full,
        },
        "flash": {
            "channels": 8,
            "chips_per_channel": LANES // 8,
            "blocks_per_plane": -(-int(capacity / 0.93) // (pages * PAGE * LANES)) + 1,
            "pages_per_block": pages,
            "page": "16KiB",
            "cell": {3: "tlc", 4: "qlc"}[drive.bits],
            "programming": "word-line",
            "read": "60us",
            "program": f"{drive.program_us}us",
            "erase": "1250us",
            "slc_read": "25us",
            # Fitted: the rate of the cache.
            "slc_program": f"{LANES * PAGE / begins - 13.1:.1f}us",
            "slc_erase": "750us",
            "transfer": "0.8ns",
        },
    }


def rates(drive: Drive, result: ftlab.Result) -> list[float]:
    """Returns the rates of a fill within the published steps, MB/s, and that of the whole."""
    ends = np.sort(result.column("complete_ns"))
    marks = [int(step.until_gb * GB / SCALE) // WRITE for step in drive.steps]
    times = [0, *(int(ends[min(mark, len(ends)) - 1]) for mark in marks)]
    parts = zip([0, *marks], marks, times, times[1:], strict=False)
    found = [(mark - begin) * WRITE * 1e3 / (end - start) for begin, mark, start, end in parts]
    return [*found, len(ends) * WRITE * 1e3 / int(ends[-1])]


def main() -> None:
    """Prints the table."""
    names = ["drive", "published steps", "their harmonic mean", "published average"]
    print("| " + " | ".join([*names, "model: the same steps", "whole fill", "off"]) + " |")
    print("|" + "---|" * 7)
    for drive in DRIVES:
        *steps, whole = rates(drive, ftlab.run(settings(drive)))
        cells = [
            drive.name,
            ", ".join(f"{step.rate:,.0f} to {step.until_gb:,.0f} GB" for step in drive.steps),
            f"{harmonic(drive.steps):,.0f}",
            f"{drive.average:,.0f}",
            ", ".join(f"{rate:,.0f}" for rate in steps),
            f"{whole:,.0f}",
            f"{whole / drive.average - 1:+.0%}".replace("%", " %"),
        ]
        print(f"| {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
