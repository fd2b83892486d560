"""What a live device was told while it was recorded, in the recording itself: a replay does not repeat it."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

TOLD_LINE = "# told"
"""The beginning of such a line of a recording in csv."""

_KEY = "told"
"""The key under which a recording in Parquet has the same in its metadata."""


def told_metadata(lines: Iterable[str]) -> dict[str, str]:
    """Returns what the lines of a recording say about this, as metadata; empty if they say nothing."""
    told = [line.removeprefix(TOLD_LINE).strip() for line in lines if line.startswith(TOLD_LINE)]
    return {_KEY: "; ".join(told)} if told else {}


def told_doubts(trace: str) -> list[str]:
    """Returns a reason to doubt the replay of a recording in Parquet, if there is one; the reader of csv has
    its own, and csv is also what a killed device leaves under a name in .parquet.
    """
    if not trace.endswith(".parquet"):
        return []
    with Path(trace).open("rb") as file:
        if file.read(4) != b"PAR1":
            return []
    import polars as pl

    told = pl.read_parquet_metadata(trace).get(_KEY)
    if not told:
        return []
    return [
        f"recorded of a device that was told to behave differently ({told}); a replay repeats the requests,"
        " not this, so its result is not that of the device"
    ]
