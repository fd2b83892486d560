"""Compares noop (the paper's Baseline), irbw, padding and coop on the benchmarks of Shim et al., TC 2014:
the tables of docs/coop.md.

    python scripts/coop_tables.py                                # every file in workloads/coop, both FTLs
    python scripts/coop_tables.py --only dbench-4,sysbench-16KiB
    python scripts/coop_tables.py --set host.page_cache=64MiB    # another host or device

All figures are of the measured stretch; changes are in per cent of the baseline's, costs of merges are
multiples of the time of the host's own flash operations.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
import time
from pathlib import Path
from typing import Any, NamedTuple

from ftlab import _core
from ftlab.configs import Override, load
from ftlab.traces import chunks_of

ROOT = Path(__file__).resolve().parents[1]
POLICIES = ("noop", "irbw", "padding", "coop")
FTLS = ("bast", "fast")
MERGES = ("full", "partial", "switch", "padded_switch", "cooperative")


class Run(NamedTuple):
    """What one run measured."""

    throughput: float
    page_ns: float | None
    costs: dict[str, float]
    counts: dict[str, int]
    joined: int
    tree_bytes: float
    cpu_s: float

    @property
    def cost(self) -> float:
        """That of all merges."""
        return sum(self.costs.values())


def run(config: _core.Config) -> Run:
    """One run."""
    before = time.process_time()
    result = json.loads(_core.run(config, chunks=chunks_of(config)).json)
    cpu_s = time.process_time() - before
    bench, cache = result["benchmark"], result["page_cache"]
    merges = bench["merges"]
    return Run(
        bench["throughput_bytes_per_s"] / 1e6,
        bench["write_latency_mean_ns"],
        {kind: merges[kind]["cost_ratio"] or 0.0 for kind in MERGES},
        {kind: merges[kind]["count"] for kind in MERGES},
        cache["pages_written"]["joined"],
        (cache["tree_bytes_mean"] or 0.0) + (cache["global_tree_bytes_mean"] or 0.0),
        cpu_s,
    )


def order(name: str) -> tuple[str, float]:
    """A benchmark, and its parameter as a number."""
    kind, _, size = name.partition("-")
    number = re.match(r"\d+", size)
    scale = 1024 if size.endswith("MiB") else 1
    return kind, float(number.group()) * scale if number else 0.0


def measure(arguments: argparse.Namespace) -> dict[tuple[str, str, str], Run]:
    """Every file under every FTL and policy."""
    names = [path.stem for path in (ROOT / "workloads" / "coop").glob("*.toml")]
    if arguments.only:
        names = [name for name in names if name in arguments.only.split(",")]
    given = dict(text.split("=", 1) for text in arguments.set)
    found: dict[tuple[str, str, str], Run] = {}
    for name in sorted(names, key=order):
        for ftl in FTLS:
            for policy in POLICIES:
                keys = {"ftl.kind": ftl, "host.scheduler": policy, **given}
                overrides = [Override(f"{key}={value}", key, value) for key, value in keys.items()]
                found[name, ftl, policy] = run(
                    load(str(ROOT / "workloads" / "coop" / f"{name}.toml"), overrides)
                )
                print(name, ftl, policy, found[name, ftl, policy], file=sys.stderr)
    return found


def change(new: float, old: float) -> str:
    """Per cent of ``old``."""
    return f"{(new / old - 1) * 100:+.1f}" if old else ""


def table(found: dict[tuple[str, str, str], Run], ftl: str) -> list[str]:
    """The table of one FTL."""
    lines = [
        "| file | MB/s: noop | irbw | padding | coop | coop vs noop, % | cost of merges: noop | irbw "
        "| padding | coop | full + partial: noop | irbw | coop | pages joined |",
        "|---" * 14 + "|",
    ]
    for name in dict.fromkeys(name for name, _, _ in found):
        runs = [found[name, ftl, policy] for policy in POLICIES]
        noop, irbw, _, coop = runs
        hard = [f"{each.costs['full'] + each.costs['partial']:.2f}" for each in (noop, irbw, coop)]
        cells = [name, *(f"{each.throughput:.2f}" for each in runs), change(coop.throughput, noop.throughput)]
        cells += [*(f"{each.cost:.2f}" for each in runs), *hard, f"{coop.joined:,}"]
        lines.append("| " + " | ".join(cells) + " |")
    return lines


def means(found: dict[tuple[str, str, str], Run]) -> list[str]:
    """Mean and best change of throughput of each benchmark, against noop."""
    lines = ["| benchmark | FTL | irbw, % | padding, % | coop, % | coop, best |", "|---" * 6 + "|"]
    for kind in dict.fromkeys(order(name)[0] for name, _, _ in found):
        for ftl in FTLS:
            names = [
                name for name, at, policy in found if (order(name)[0], at, policy) == (kind, ftl, "noop")
            ]
            changes = {
                policy: [
                    (found[name, ftl, policy].throughput / found[name, ftl, "noop"].throughput - 1) * 100
                    for name in names
                ]
                for policy in POLICIES[1:]
            }
            cells = [f"{sum(values) / len(values):+.1f}" for values in changes.values()]
            lines.append(f"| {kind} | {ftl} | " + " | ".join([*cells, f"{max(changes['coop']):+.1f}"]) + " |")
    return lines


def main() -> None:
    """Prints the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--only", default="", help="files of workloads/coop, separated by commas")
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help="as for ftlab run")
    parser.add_argument("--json", default=None, help="file that takes every figure")
    arguments = parser.parse_args()
    found = measure(arguments)
    print("\n".join([*means(found), ""]))
    for ftl in FTLS:
        print("\n".join([f"{ftl}:", "", *table(found, ftl), ""]))
    cpu = max(found, key=lambda key: found[key].cpu_s)
    print(f"most CPU of a run: {found[cpu].cpu_s:.2f} s ({', '.join(cpu)})")
    if arguments.json:
        rows: list[dict[str, Any]] = [
            {"file": name, "ftl": ftl, "policy": policy, **each._asdict()}
            for (name, ftl, policy), each in found.items()
        ]
        Path(arguments.json).write_text(json.dumps(rows, indent=1) + "\n")


if __name__ == "__main__":
    main()
