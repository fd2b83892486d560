"""How long a device lasts under the load of a run, if every block takes ``flash.endurance`` erases.

The estimate is that of data sheets: what the host may write until the blocks are used up on average. What it
writes for each erase is taken from the run; blocks that its programs filled count as erased if they are more,
since a device that is not full yet fills blocks before it erases any.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ftlab.units import quantity, significant, size

WARRANTY_YEARS = 5
"""The years over which drive writes per day are counted, as most makers do."""

UNEVEN = 1.5
"""The greatest erase count over the mean, above which the report says that blocks do not wear alike."""

_DAY_NS = 86_400 * 10**9
_TERA = 10**12


def with_lifetime(data: dict[str, Any]) -> dict[str, Any]:
    """Adds the block ``lifetime`` to a result with a number in ``flash.endurance``, if the run has written.

    Its ``capacity_bytes`` is what the user has of the simulated flash; ``tbw`` is in terabytes (10^12 B),
    ``dwpd`` in user capacities a day over `WARRANTY_YEARS`; ``daily_bytes`` is what a day at the run's rate
    writes, ``years`` how long a new device takes that, ``bytes_per_erase`` what the host writes for each
    erase.
    """
    flash, ftl = data["config"]["flash"], data["config"]["ftl"]
    endurance = flash["endurance"]
    written, elapsed = data["trace"]["bytes_written"], data["elapsed_ns"]
    pages = sum(data["flash"]["programs"].values())
    if not isinstance(endurance, int) or not written or not elapsed or not pages:
        return data
    worn = max(sum(data["flash"]["erases"].values()), pages / flash["pages_per_block"])
    blocks = data["health"]["blocks"]["all"]
    raw = blocks * flash["pages_per_block"] * _number(flash["page"])
    user = raw * (1 - _number(ftl["over_provisioning"]))
    lasting = endurance * blocks * written / worn
    daily = written * _DAY_NS / elapsed
    data["lifetime"] = {
        "capacity_bytes": round(user),
        "tbw": lasting / _TERA,
        "dwpd": lasting / (user * 365 * WARRANTY_YEARS) if user else None,
        "daily_bytes": daily,
        "years": lasting / daily / 365,
        "bytes_per_erase": written / worn,
    }
    return data


def _number(text: object) -> float:
    return quantity(str(text)) or 0


def lines(data: Mapping[str, Any]) -> list[str]:
    """Returns the lines of the report, which name what is assumed; none without an endurance."""
    found = data.get("lifetime")
    if found is None:
        return []
    cycles, wear = data["config"]["flash"]["endurance"], data["wear"]
    lines = [
        f"lifetime: TBW {significant(found['tbw'])} TB on {size(found['capacity_bytes'])},"
        f" {significant(found['dwpd'])} drive writes a day over {WARRANTY_YEARS} years;"
        f" {_years(found['years'])} at {size(found['daily_bytes'])} a day, the rate of this run",
        f"    if each block takes {cycles:,} erases (flash.endurance), all wear alike, and the host writes"
        f" {size(found['bytes_per_erase'])} for each erase, as here",
    ]
    if not sum(data["flash"]["erases"].values()):
        lines.append(
            "    no block was erased here: blocks that were filled count, and collecting costs nothing"
        )
    elif wear["max"] > UNEVEN * wear["mean"]:
        uneven = significant(wear["max"] / wear["mean"], 3)
        lines.append(f"    they do not wear alike here: the most erased block has {uneven} times the mean")
    return lines


def _years(years: float) -> str:
    return f"{significant(years, 3)} years" if years >= 1 else f"{significant(years * 365, 3)} days"
