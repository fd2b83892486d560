"""Replays smartphone traces on the device of MSFTL's paper, preconditioned: tables of docs/msftl.md.

    python scripts/msftl_tables.py --trace FILE ...                # each trace alone, with its own times
    python scripts/msftl_tables.py --trace FILE ... --sequence     # all of them in one run, one after another
    python scripts/msftl_tables.py --trace FILE ... --sequence --repeat 3

In a sequence one request is outstanding at a time, so that its response time is the time of its flash
operations, as the paper computes it. So is it for traces without times. Each device is prepared once
and every trace runs on a copy of it.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ftlab import _core
from ftlab.configs import Override, load

if TYPE_CHECKING:
    from ftlab._core import Columns

FTLS = {
    "Base-DFTL": {"ftl.kind": "dftl"},
    "8 KiB": {"ftl.kind": "msftl", "ftl.segment": "8KiB"},
    "mini-page": {"ftl.kind": "minipage"},
    "2 KiB": {"ftl.kind": "msftl", "ftl.segment": "2KiB"},
    "1 KiB": {"ftl.kind": "msftl", "ftl.segment": "1KiB"},
}
SHARES = ("25%", "50%", "100%")
PERCENTILES = ("99", "99.5", "99.9", "99.95", "99.99")
ALONE = {"workload.replay": "closed", "host.queue_depth": "1"}
# Of MobileBlockIOTraces: requests logged twice, pauses between sessions (docs/trace-formats.md).
LAYOUTS = {"mobile-ebpf": {"workload.dedup": "50ms", "workload.max_gap": "60s"}, "notimes": ALONE}
ROWS = 1 << 18


class Run(NamedTuple):
    """What one run measured."""

    requests: int
    mib: dict[str, float]
    """Data programmed by cause."""
    updated_ratio: float | None
    mean_us: float
    worst_ms: float
    percentile_us: dict[str, float]

    @property
    def all_mib(self) -> float:
        """All data written."""
        return sum(self.mib.values())

    @property
    def map_mib(self) -> float:
        """Mapping data, directory included."""
        return sum(self.mib[cause] for cause in ("map", "gc-map", "dir"))


def overrides(values: dict[str, str]) -> list[Override]:
    """Keys as overrides."""
    return [Override(f"{key}={value}", key, value) for key, value in values.items()]


def keys_of(path: str) -> dict[str, str]:
    """What a trace is replayed with, by its layout."""
    config = load("msftl", overrides({"workload.trace": path, **ALONE}))
    layout = json.loads(_core.trace_info(config))["format"]
    return {"workload.trace": path, **LAYOUTS.get(layout, {})}


def in_sequence(paths: list[str]) -> Iterator[Columns]:
    """The requests of several traces, one trace after another."""
    end = 0
    for path in paths:
        chunk = None
        for chunk in _core.trace_chunks(load("msftl", overrides({**keys_of(path), **ALONE})), ROWS):
            times, ops, offsets, sizes, flags = (np.asarray(memoryview(column)) for column in chunk)
            times = times.astype(np.int64) + end
            yield (
                times,
                ops.astype(np.uint8),
                offsets.astype(np.int64),
                sizes.astype(np.int64),
                flags.astype(np.uint8),
            )
        end = int(times[-1]) if chunk is not None else end


def measured(text: str) -> Run:
    """The figures of a result."""
    result = json.loads(text)
    latency, page = result["latency"]["all"], result["config"]["flash"]["page"]
    page_kib = int(page.removesuffix("KiB"))
    return Run(
        result["trace"]["requests"],
        {cause: pages * page_kib / 1024 for cause, pages in result["flash"]["programs"].items()},
        result["mapping"]["updated_ratio"],
        latency["mean_ns"] / 1e3,
        latency["max_ns"] / 1e6,
        {each: latency["percentile_ns"][f"{float(each):.6f}"] / 1e3 for each in PERCENTILES},
    )


def measure(arguments: argparse.Namespace) -> dict[tuple[str, str, str], Run]:
    """Every trace, or all in sequence, on every device under every FTL."""
    found: dict[tuple[str, str, str], Run] = {}
    given = dict(text.split("=", 1) for text in arguments.set)
    paths: list[str] = arguments.trace
    if arguments.sequence:
        work = {
            "all, in sequence": {"workload.trace": paths[0], **ALONE, "workload.repeat": arguments.repeat}
        }
    else:
        work = {Path(path).name.split(".")[0]: keys_of(path) for path in paths}
    chunks = (lambda: in_sequence(paths)) if arguments.sequence else None
    for share in arguments.shares.split(","):
        before = {"device.precondition": "mapped", "device.precondition_share": share}
        for ftl in arguments.ftls.split(","):
            devices: dict[str | None, _core.Device] = {}
            for name, own in work.items():
                config = load("msftl", overrides({**before, **FTLS[ftl], **own, **given}))
                # A device belongs to the keys of the host too.
                depth = own.get("host.queue_depth")
                if depth not in devices:
                    devices[depth] = _core.prepare(config)
                device = devices[depth]
                run = measured(_core.run(config, chunks=chunks, device=device).json)
                found[share, name, ftl] = run
                print(f"{share} {name} {ftl} {run}", file=sys.stderr, flush=True)
    return found


def against(new: float, old: float) -> str:
    """Per cent of the old value."""
    return f"{(new / old - 1) * 100:+.1f}" if old else ""


def written(found: dict[tuple[str, str, str], Run], share: str, names: list[str]) -> list[str]:
    """The table of amounts written (Fig. 2 and 5)."""
    lines = [
        "| trace | FTL | host, MiB | GC, MiB | mapping, MiB | of user data, % | all, MiB"
        " | all vs Base, % | vs mini-page, % | updated ratio, % |",
        "|---" * 10 + "|",
    ]
    for name in names:
        runs = {ftl: run for (at, of, ftl), run in found.items() if (at, of) == (share, name)}
        base, mini = runs.get("Base-DFTL"), runs.get("mini-page")
        for ftl, run in runs.items():
            host, ratio = run.mib["host"] + run.mib["pad"], run.updated_ratio
            cells = [
                name,
                ftl,
                f"{host:,.1f}",
                f"{run.mib['gc']:,.1f}",
                f"{run.map_mib:,.2f}",
                f"{run.map_mib / host * 100:.2f}" if host else "",
                f"{run.all_mib:,.1f}",
                against(run.all_mib, base.all_mib) if base else "",
                against(run.all_mib, mini.all_mib) if mini else "",
                f"{ratio * 100:.1f}" if ratio is not None else "",
            ]
            lines.append("| " + " | ".join(cells) + " |")
    return lines


def times(found: dict[tuple[str, str, str], Run], share: str, names: list[str]) -> list[str]:
    """The table of response times (Fig. 6)."""
    versus = "vs Base, % | vs mini-page, %"
    head = f"| trace | FTL | mean, us | {versus} | worst, ms | {versus}"
    lines = [head + "".join(f" | {each} %, ms" for each in PERCENTILES) + " |"]
    lines.append("|---" * (8 + len(PERCENTILES)) + "|")
    for name in names:
        runs = {ftl: run for (at, of, ftl), run in found.items() if (at, of) == (share, name)}
        base, mini = runs.get("Base-DFTL"), runs.get("mini-page")
        for ftl, run in runs.items():
            cells = [name, ftl, f"{run.mean_us:,.0f}"]
            cells += [against(run.mean_us, other.mean_us) if other else "" for other in (base, mini)]
            cells.append(f"{run.worst_ms:,.1f}")
            cells += [against(run.worst_ms, other.worst_ms) if other else "" for other in (base, mini)]
            cells += [f"{run.percentile_us[each] / 1e3:,.1f}" for each in PERCENTILES]
            lines.append("| " + " | ".join(cells) + " |")
    return lines


def main() -> None:
    """Prints the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--trace", nargs="+", required=True, metavar="FILE", help="traces of block requests")
    parser.add_argument("--sequence", action="store_true", help="one run over all of them")
    parser.add_argument("--repeat", default="1", help="times the sequence is replayed")
    parser.add_argument("--shares", default=",".join(SHARES), help="of the device written beforehand")
    parser.add_argument("--ftls", default=",".join(FTLS), help="of " + ", ".join(FTLS))
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help="as for ftlab run")
    parser.add_argument("--json", default=None, help="file that takes every figure")
    arguments = parser.parse_args()
    found = measure(arguments)
    for share in dict.fromkeys(share for share, _, _ in found):
        names = list(dict.fromkeys(name for _, name, _ in found))
        print("\n".join([f"{share} preconditioned:", "", *written(found, share, names), ""]))
        print("\n".join([*times(found, share, names), ""]))
    if arguments.json:
        rows: list[dict[str, Any]] = [
            {"share": share, "trace": name, "ftl": ftl, **run._asdict()}
            for (share, name, ftl), run in found.items()
        ]
        Path(arguments.json).write_text(json.dumps(rows, indent=1) + "\n")


if __name__ == "__main__":
    main()
