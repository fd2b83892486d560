"""Compares noop, piq and vios on the twelve calibrated generators and on traces: the tables of docs/vios.md.

    python scripts/vios_tables.py                                  # at 12K cycles
    python scripts/vios_tables.py --cycles 6000,9000,12000,15000   # Fig. 7
    python scripts/vios_tables.py --trace FILE ...                 # traces instead of the generators
    python scripts/vios_tables.py --set ftl.gc_free_blocks=1100    # another state of the device

Each device is prepared once and every workload runs on a copy of it. Differences are those of the mean
latencies, in per cent of the baseline's; the last line of a table is their mean over the workloads.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from ftlab import _core
from ftlab.configs import Override, load
from ftlab.traces import chunks_of

ROOT = Path(__file__).resolve().parents[1]
WORKLOADS = ("prn", "fin", "hm", "mds", "proj", "rsrch", "src", "stg", "ts", "usr", "wdev", "web")
SCHEDULERS = ("noop", "piq", "vios")


class Run(NamedTuple):
    """What one run measured."""

    read_ns: float | None
    write_ns: float | None
    read_conflicts: int
    write_conflicts: int
    waf: float
    cpu_s: float


def overrides(values: dict[str, str]) -> list[Override]:
    """Keys as overrides."""
    return [Override(f"{key}={value}", key, value) for key, value in values.items()]


def run(config: _core.Config, device: _core.Device) -> Run:
    """One run on a copy of the device."""
    before = time.process_time()
    result = json.loads(_core.run(config, chunks=chunks_of(config), device=device).json)
    cpu_s = time.process_time() - before
    latency, conflicts = result["latency"], result["conflicts"]
    return Run(
        latency["read"]["mean_ns"],
        latency["write"]["mean_ns"],
        conflicts["read"],
        conflicts["write"],
        result["waf"]["total"],
        cpu_s,
    )


def sources(arguments: argparse.Namespace) -> Iterator[tuple[str, str, dict[str, str]]]:
    """Name, configuration and keys of each workload."""
    if arguments.trace:
        for path in arguments.trace:
            name = Path(path).name.split(".")[0]
            yield name, "vios", {"workload.trace": path, "workload.out_of_range": "compact"}
    else:
        for name in arguments.only.split(",") if arguments.only else WORKLOADS:
            yield name, str(ROOT / "workloads" / "vios" / f"{name}.toml"), {}


def measure(arguments: argparse.Namespace) -> dict[tuple[str, str, str], Run]:
    """Every workload under every scheduler at every stage."""
    given = dict(text.split("=", 1) for text in arguments.set)
    found = {}
    for cycles in arguments.cycles.split(","):
        for scheduler in SCHEDULERS:
            device = None
            keys = {"flash.pe_cycles": cycles, "device.scheduler": scheduler, **given}
            for name, base, own in sources(arguments):
                config = load(base, overrides({**keys, **own}))
                if device is None:
                    device = _core.prepare(config, load_state=arguments.load_state)
                found[cycles, scheduler, name] = run(config, device)
                print(f"{cycles} {scheduler} {name} {found[cycles, scheduler, name]}", file=sys.stderr)
    return found


def change(new: float | None, old: float | None) -> float | None:
    """Per cent of ``old``; None where there is nothing to compare."""
    return None if not old or new is None else (new / old - 1) * 100


def cell(value: float | None, form: str = "+.2f") -> str:
    """A number, or nothing."""
    return "" if value is None else f"{value:{form}}"


def us(value: float | None) -> float | None:
    """Nanoseconds in microseconds."""
    return None if value is None else value / 1000


def table(found: dict[tuple[str, str, str], Run], cycles: str) -> list[str]:
    """The table of one stage."""
    head = "| workload | conflicts | read us: noop | piq | vios | vs noop | vs piq"
    lines = [head + " | write us: noop | piq | vios | vs noop | vs piq | WAF |", "|---" * 13 + "|"]
    sums: list[list[float]] = [[], [], [], []]
    for name in dict.fromkeys(name for at, _, name in found if at == cycles):
        noop, piq, vios = (found[cycles, scheduler, name] for scheduler in SCHEDULERS)
        changes = [
            change(vios.read_ns, noop.read_ns),
            change(vios.read_ns, piq.read_ns),
            change(vios.write_ns, noop.write_ns),
            change(vios.write_ns, piq.write_ns),
        ]
        for values, value in zip(sums, changes, strict=True):
            values.extend([] if value is None else [value])
        reads = [cell(us(each.read_ns), ",.0f") for each in (noop, piq, vios)]
        writes = [cell(us(each.write_ns), ",.0f") for each in (noop, piq, vios)]
        cells = [name, f"{noop.read_conflicts + noop.write_conflicts:,}", *reads, *map(cell, changes[:2])]
        lines.append("| " + " | ".join([*cells, *writes, *map(cell, changes[2:]), f"{vios.waf:.2f}"]) + " |")
    means = [cell(sum(values) / len(values) if values else None) for values in sums]
    cells = ["mean", "", "", "", "", *means[:2], "", "", "", *means[2:], ""]
    return [*lines, "| " + " | ".join(cells) + " |"]


def main() -> None:
    """Prints the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--cycles", default="12000", help="stages, separated by commas")
    parser.add_argument("--only", default="", help="generators, separated by commas")
    parser.add_argument("--trace", nargs="*", default=[], help="traces instead of the generators")
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help="as for ftlab run")
    parser.add_argument("--load-state", default=None, help="state of the device, of one stage")
    parser.add_argument("--json", default=None, help="file that takes every figure")
    arguments = parser.parse_args()
    found = measure(arguments)
    for cycles in arguments.cycles.split(","):
        print("\n".join([f"{cycles} cycles:", "", *table(found, cycles), ""]))
    cpu = max(found.values(), key=lambda each: each.cpu_s)
    print(f"most CPU of a run: {cpu.cpu_s:.2f} s")
    if arguments.json:
        rows: list[dict[str, Any]] = [
            {"cycles": cycles, "scheduler": scheduler, "workload": name, **each._asdict()}
            for (cycles, scheduler, name), each in found.items()
        ]
        Path(arguments.json).write_text(json.dumps(rows, indent=1) + "\n")


if __name__ == "__main__":
    main()
