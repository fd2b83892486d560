"""Compares noop, piq and vios on the twelve calibrated generators and on traces: the tables of docs/vios.md.

    python scripts/vios_tables.py                                  # at 12K cycles
    python scripts/vios_tables.py --vary flash.pe_cycles=6000,9000,12000,15000
    python scripts/vios_tables.py --trace FILE ...                 # traces instead of the generators
    python scripts/vios_tables.py --until 95%                      # runs that use the erased blocks up
    python scripts/vios_tables.py --set ftl.over_provisioning=3%   # another device

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
    programs: int
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
        result["flash"]["programs"]["host"],
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


def enough(config: _core.Config, device: _core.Device, share: float) -> str:
    """Requests with which a generator writes ``share`` of what is erased at time 0, from a first run."""
    first = run(config, device)
    settings = json.loads(config.json())
    flash, spare = settings["flash"], float(settings["ftl"]["over_provisioning"].rstrip("%")) / 100
    pages = flash["pages_per_block"] * spare
    for part in ("channels", "chips_per_channel", "dies_per_chip", "planes_per_die", "blocks_per_plane"):
        pages *= flash[part]
    requests = settings["workload"]["synthetic"]["requests"]
    return str(round(requests * share * pages / first.programs))


def measure(arguments: argparse.Namespace) -> dict[tuple[str, str, str], Run]:
    """Every workload under every scheduler at every value."""
    given = dict(text.split("=", 1) for text in arguments.set)
    vary, values = arguments.vary.split("=", 1)
    found: dict[tuple[str, str, str], Run] = {}
    lengths: dict[str, str] = {}
    for value in values.split(","):
        for scheduler in arguments.schedulers.split(","):
            device = None
            keys = {"flash.pe_cycles": "12000", **given, "device.scheduler": scheduler, vary: value}
            for name, base, own in sources(arguments):
                config = load(base, overrides({**keys, **own}))
                device = device or _core.prepare(config, load_state=arguments.load_state)
                if arguments.until:
                    if name not in lengths:
                        lengths[name] = enough(config, device, float(arguments.until.rstrip("%")) / 100)
                    own["workload.synthetic.requests"] = lengths[name]
                    config = load(base, overrides({**keys, **own}))
                found[value, scheduler, name] = run(config, device)
                print(f"{value} {scheduler} {name} {found[value, scheduler, name]}", file=sys.stderr)
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


def table(found: dict[tuple[str, str, str], Run], value: str) -> list[str]:
    """The table of one value of what varies."""
    head = "| workload | conflicts | read us: noop | piq | vios | vs noop | vs piq"
    lines = [head + " | write us: noop | piq | vios | vs noop | vs piq | WAF |", "|---" * 13 + "|"]
    sums: list[list[float]] = [[], [], [], []]
    for name in dict.fromkeys(name for at, _, name in found if at == value):
        noop, piq, vios = (found[value, scheduler, name] for scheduler in SCHEDULERS)
        changes = [
            change(vios.read_ns, noop.read_ns),
            change(vios.read_ns, piq.read_ns),
            change(vios.write_ns, noop.write_ns),
            change(vios.write_ns, piq.write_ns),
        ]
        for values, each in zip(sums, changes, strict=True):
            values.extend([] if each is None else [each])
        reads = [cell(us(done.read_ns), ",.0f") for done in (noop, piq, vios)]
        writes = [cell(us(done.write_ns), ",.0f") for done in (noop, piq, vios)]
        cells = [name, f"{noop.read_conflicts + noop.write_conflicts:,}", *reads, *map(cell, changes[:2])]
        lines.append("| " + " | ".join([*cells, *writes, *map(cell, changes[2:]), f"{vios.waf:.2f}"]) + " |")
    means = [cell(sum(values) / len(values) if values else None) for values in sums]
    cells = ["mean", "", "", "", "", *means[:2], "", "", "", *means[2:], ""]
    return [*lines, "| " + " | ".join(cells) + " |"]


def main() -> None:
    """Prints the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--vary", default="flash.pe_cycles=12000", help="KEY=A,B,...: a table for each")
    parser.add_argument("--schedulers", default=",".join(SCHEDULERS), help="all three for tables")
    parser.add_argument("--until", default="", help="longer runs that write this share of what is erased")
    parser.add_argument("--only", default="", help="generators, separated by commas")
    parser.add_argument("--trace", nargs="*", default=[], help="traces instead of the generators")
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help="as for ftlab run")
    parser.add_argument("--load-state", default=None, help="state of the device, of one stage")
    parser.add_argument("--json", default=None, help="file that takes every figure")
    arguments = parser.parse_args()
    found = measure(arguments)
    if arguments.schedulers == ",".join(SCHEDULERS):
        key = arguments.vary.split("=", 1)[0]
        for value in dict.fromkeys(value for value, _, _ in found):
            print("\n".join([f"{key} = {value}:", "", *table(found, value), ""]))
    cpu = max(found.values(), key=lambda each: each.cpu_s)
    print(f"most CPU of a run: {cpu.cpu_s:.2f} s")
    if arguments.json:
        rows: list[dict[str, Any]] = [
            {"value": value, "scheduler": scheduler, "workload": name, **each._asdict()}
            for (value, scheduler, name), each in found.items()
        ]
        Path(arguments.json).write_text(json.dumps(rows, indent=1) + "\n")


if __name__ == "__main__":
    main()
