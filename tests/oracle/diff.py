"""Compares ftlab with the oracle on random cases, request by request and counter by counter.

    python tests/oracle/diff.py --seeds 0:1000           # seeds 0 to 999
    python tests/oracle/diff.py --seeds 17:18 --shrink   # one seed, cut to a minimal trace

A seed determines the configuration and the trace, so a failing seed fails anywhere. The exit status is 1 if
any case differs.
"""

from __future__ import annotations

import argparse
import sys
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from oracle import engine, generate, mapplus

FIELDS = ["arrival", "dispatch", "complete", "op", "mapping_misses", "prioritized", "expired", "batch"]


SHOWN = 12
"""How many of a case's last requests are printed."""


def differences(config: mapplus.Config, trace: list[mapplus.Record], check: bool = False) -> list[str]:
    """Describes how engine and oracle differ on a case; returns an empty list if they do not."""
    expected = mapplus.simulate(config, trace)
    rows, counters = engine.run(generate.settings(config), trace, check)
    found = []
    if len(rows) != len(expected.requests):
        found.append(f"{len(rows)} rows from ftlab, {len(expected.requests)} from the oracle")
    # The rows are sorted by dispatch, so that the first difference is the cause and not a consequence.
    pairs = sorted(zip(rows, expected.requests, strict=False), key=lambda pair: pair[1].dispatch)
    for row, request in pairs:
        for name in FIELDS:
            have, want = getattr(row, name), getattr(request, name)
            if have != want:
                found.append(f"request {request.id}: {name} is {have}, oracle {want}")
    wanted = asdict(expected.counters)
    for name in engine.COUNTERS:
        if counters[name] != wanted[name]:
            found.append(f"{name} is {counters[name]}, oracle {wanted[name]}")
    if counters["erases"]:
        found.append(
            f"{counters['erases']} erases: there was garbage collection, which the oracle does not know"
        )
    for name, wanted_name in [("map_reads", "translation_reads"), ("map_programs", "translation_programs")]:
        if counters[name] != wanted[wanted_name]:
            found.append(f"flash {name} is {counters[name]}, oracle {wanted[wanted_name]}")
    return found


def fails(config: mapplus.Config, trace: list[mapplus.Record], check: bool) -> bool:
    """Whether engine and oracle differ; a case that the engine refuses counts as a difference."""
    try:
        return bool(differences(config, trace, check))
    except engine.EngineError:
        return True


SIMPLER: dict[str, Any] = {
    "scheduler": "noop",
    "queue_depth": 128,
    "deadline_ns": None,
    "late": "request",
    "awareness": "full",
    "alternate": False,
    "replay": "open",
    "ftl": "dftl",
    "cache_policy": "lru",
    "batch_update": True,
    "load": "entry",
    "background_flush": False,
    "partial_write": "ignore",
    "cache_bytes": None,
}


def shrink(
    config: mapplus.Config, trace: list[mapplus.Record], check: bool = False
) -> tuple[mapplus.Config, list[mapplus.Record]]:
    """Returns a smaller case that still fails: settings are simplified, then requests are left out."""
    for name, value in SIMPLER.items():
        if name == "ftl" and config.ftl == "tpftl":
            continue  # this FTL's cache may be too small for another FTL
        plainer = replace(config, **{name: value})
        if plainer != config and fails(plainer, trace, check):
            config = plainer
    step = max(1, len(trace) // 2)
    while True:
        at = 0
        while at < len(trace):
            shorter = trace[:at] + trace[at + step :]
            if shorter and fails(config, shorter, check):
                trace = shorter
            else:
                at += step
        if step == 1:
            return config, trace
        step = max(1, step // 2)


def describe(config: mapplus.Config, trace: list[mapplus.Record]) -> str:
    """Returns a case as text: its configuration, its trace and the oracle's rows."""
    lines = [f"  {key} = {value!r}" for key, value in asdict(config).items()]
    for request in mapplus.simulate(config, trace).requests[-SHOWN:]:
        first = request.pages[0] if request.pages else "-"
        lines.append(
            f"  {request.id}: {request.arrival} {request.op} {request.offset} {request.size}"
            f" (LPN {first} x {len(request.pages)}) oracle: dispatch {request.dispatch}"
            f" complete {request.complete} misses {request.mapping_misses}"
            f" prioritized {request.prioritized} expired {request.expired} batch {request.batch}"
        )
    return "\n".join(lines)


def compare_seed(seed: int, check: bool = False) -> str | None:
    """Returns the report of a failing seed, or None."""
    config, trace = generate.case(seed)
    try:
        found = differences(config, trace, check)
    except engine.EngineError as error:
        found = [str(error)]
    if not found:
        return None
    head = "\n".join(f"  {line}" for line in found[:12])
    return (
        f"seed {seed} ({config.scheduler}, {config.ftl}, {len(trace)} requests): {len(found)} differences\n"
        f"{head}\n  reproduce: python tests/oracle/diff.py --seeds {seed}:{seed + 1} --shrink"
    )


def main() -> int:
    """Runs the command line; returns the exit status."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seeds", default="0:200", help="first:end, the end not included")
    parser.add_argument("--shrink", action="store_true", help="cut failing cases to minimal ones")
    parser.add_argument("--check", action="store_true", help="run ftlab with --check")
    parser.add_argument("--keep-going", action="store_true", help="do not stop at the tenth failure")
    arguments = parser.parse_args()
    first, end = (int(part) for part in arguments.seeds.split(":"))
    failed = 0
    for seed in range(first, end):
        report = compare_seed(seed, arguments.check)
        if report is None:
            continue
        failed += 1
        print(report, flush=True)
        if arguments.shrink:
            config, trace = shrink(*generate.case(seed), arguments.check)
            print(describe(config, trace))
            try:
                print("\n".join(f"  {line}" for line in differences(config, trace, arguments.check)[:12]))
            except engine.EngineError as error:
                print(f"  {error}", flush=True)
        if failed == 10 and not arguments.keep_going:
            print(f"stopped at seed {seed}: ten cases differ")
            return 1
    print(f"seeds {first}:{end}: {failed} of {end - first} cases differ")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
