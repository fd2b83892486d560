"""Campaigns of seeded cases; the long form resumes where it stopped.

`FTLAB_CAMPAIGN=N` requests the long form: all cases up to the next multiple of N; the number of the next case
is kept in out/campaigns/NAME. `FTLAB_CAMPAIGN_SECONDS` ends the campaign earlier.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path

KEPT = Path(__file__).resolve().parents[2] / "out" / "campaigns"


def cases(name: str, short: range) -> Iterator[int]:
    """Yields the numbers of the cases to run now: those in `short`, or those of the long form."""
    whole = int(os.environ.get("FTLAB_CAMPAIGN", "0"))
    if not whole:
        yield from short
        return
    path = KEPT / name
    first = int(path.read_text()) if path.exists() else 0
    start, seconds = time.monotonic(), float(os.environ.get("FTLAB_CAMPAIGN_SECONDS", "inf"))
    done = first
    path.parent.mkdir(parents=True, exist_ok=True)
    for number in range(first, (first // whole + 1) * whole):
        if time.monotonic() - start > seconds:
            break
        yield number
        done = number + 1
        path.write_text(str(done))
    print(f"{name}: cases {first} to {done}, {time.monotonic() - start:.0f} s")


def long() -> bool:
    """Whether the long form is requested."""
    return bool(os.environ.get("FTLAB_CAMPAIGN"))
