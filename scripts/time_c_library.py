"""Compares the CPU time of the C library with `ftlab run` on the same records, in pairs.

    make install-lib PREFIX=$PWD/out/lib
    gcc -O2 -Iout/lib/include examples/c/replay.c -Lout/lib/lib -lftlab -Wl,-rpath,$PWD/out/lib/lib -o replay
    python scripts/time_c_library.py map-plus trace.csv --replay ./replay --set flash.blocks_per_plane=4096

The trace is in ftlab's own layout, uncompressed. The time that each program takes for the first record alone
(to start, precondition and end) is subtracted. The script prints medians, and for the ratios also the range.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path


def cpu_s(command: list[str]) -> float:
    """Returns the user and system time that a command takes, in seconds."""
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        sys.exit(f"{command} failed")
    return usage.ru_utime + usage.ru_stime


def main() -> None:
    """Prints the ratios."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("config")
    parser.add_argument("trace", type=Path)
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE")
    parser.add_argument("--replay", required=True, help="the compiled examples/c/replay.c")
    parser.add_argument("--pairs", type=int, default=9)
    arguments = parser.parse_args()

    def commands(trace: Path) -> dict[str, list[str]]:
        run = [sys.executable, "-m", "ftlab", "run", arguments.config, "--trace", str(trace)]
        run += [word for text in arguments.set for word in ("--set", text)]
        c = [arguments.replay, arguments.config, str(trace)]
        ahead = {"64 ahead": "64", "one at a time": "1"}
        return {"ftlab run": run} | {name: [*c, n, n, *arguments.set] for name, n in ahead.items()}

    with tempfile.TemporaryDirectory() as folder, arguments.trace.open() as trace:
        first = Path(folder) / "first.csv"
        first.write_text(trace.readline() + trace.readline())
        start = {name: min(cpu_s(command) for _ in range(3)) for name, command in commands(first).items()}
        pairs = [
            {name: cpu_s(command) - start[name] for name, command in commands(arguments.trace).items()}
            for _ in range(arguments.pairs)
        ]
    for name in pairs[0]:
        ratios = [pair[name] / pair["ftlab run"] for pair in pairs]
        time_s = statistics.median(pair[name] for pair in pairs)
        ratio = statistics.median(ratios)
        print(f"{name:14} {time_s:6.3f} s  {ratio:.3f} ({min(ratios):.3f} to {max(ratios):.3f})")


if __name__ == "__main__":
    main()
