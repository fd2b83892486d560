"""Prints the targets and the values that fits reached, as the tables of docs/fit-a-generator.md.

    ftlab trace fit workloads/map-plus/targets.toml --out workloads/map-plus --json map-plus.json
    python scripts/fit_tables.py map-plus.json

A row for each model, a column for each characteristic: reached (target). Targets that were not reached are
marked !, those that were not fitted ~. Several files make one table.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

from ftlab.units import percent, significant

RATIOS = ("_ratio", "_mix")
HIDDEN = ("requests", "reads", "writes", "trims", "read_size_mix", "write_size_mix")
"""Characteristics that are not shown: counts, which are always reached exactly, and mixes, which have no
single target.
"""


def cell(name: str, found: dict[str, Any]) -> str:
    """Returns ``reached (target)`` with its mark."""

    def shown(value: float) -> str:
        if name.endswith(RATIOS):
            return percent(value)
        if name.endswith("_ns"):
            return f"{significant(value / 1e6)} ms"
        if name.endswith("_bytes"):
            return f"{value / 2**20:,.1f} MiB"
        return significant(value)

    mark = "" if found["met"] else "!" if found["fitted"] else "~"
    return f"{shown(found['reached'])} ({shown(found['target'])}){mark}"


def table(fits: list[dict[str, Any]]) -> list[str]:
    """Returns the table in Markdown."""
    names = dict.fromkeys(name for fit in fits for name in fit["characteristics"] if name not in HIDDEN)
    lines = ["| " + " | ".join(["model", *(name.removesuffix("_ns") for name in names)]) + " |"]
    lines.append("|---" * (len(names) + 1) + "|")
    for fit in fits:
        found = fit["characteristics"]
        cells = [cell(name, found[name]) if name in found else "" for name in names]
        lines.append("| " + " | ".join([fit["name"], *cells]) + " |")
    return lines


def main() -> None:
    """Prints the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("json", nargs="+", metavar="FILE", help="written by ftlab trace fit --json")
    arguments = parser.parse_args()
    print("\n".join(table([fit for path in arguments.json for fit in json.loads(Path(path).read_text())])))


if __name__ == "__main__":
    main()
