"""Times of the live device compared with nbdkit's, with the same fio jobs (Debian: fio, nbdkit).

`python scripts/live_bench.py` measures both in turn, several times, and prints the medians and the spread.
Flash that takes no time is compared with nbdkit's memory plugin; reads of 1 ms and programs of 3 ms on one
chip are compared with nbdkit's delay filter, which counts in milliseconds. Reads of 100 us and programs of
300 us have no counterpart. Other load on the machine affects all of these times.

`python scripts/live_bench.py --wait` measures that: for each way to wait (`ftlab serve --wait`), on one
processor and on all, without and with busy loops, the latency that one client sees at depth 1 of reads of
100 us.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

SIZE = 512 << 20
DEVICE = (
    *(
        "map-plus",
        "--set",
        "ftl.kind=page",
        "--set",
        "host.scheduler=noop",
        "--set",
        "flash.blocks_per_plane=4096",
    ),
    *("--set", "flash.erase=0ns"),
)
AT_ONCE = ("--set", "device.queue_depth=unlimited", "--set", "flash.read=0ns", "--set", "flash.program=0ns")
TIMED = ("--set", "flash.read=100us", "--set", "flash.program=300us")
FULL = ("--set", "device.precondition=mapped")
SLOW = ("--set", "flash.read=1ms", "--set", "flash.program=3ms")
WAIT_S = 30.0


@contextmanager
def serving(command: list[str], path: Path) -> Iterator[None]:
    """Runs a server on a Unix socket during the block."""
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        end = time.monotonic() + WAIT_S
        while not path.exists():
            if process.poll() is not None or time.monotonic() > end:
                raise SystemExit(f"it does not start: {' '.join(command)}")
            time.sleep(0.05)
        try:
            yield
        finally:
            process.send_signal(signal.SIGINT)
            process.wait()


def fio(
    path: Path, operation: str, depth: int, seconds: float, before: Sequence[str] = ()
) -> dict[str, float]:
    """Returns IOPS, and the median and the 99th percentile of the completion latency in us.

    ``before`` is what comes before the command.
    """
    job = [
        *before,
        "fio",
        "--name=job",
        "--ioengine=nbd",
        f"--uri=nbd+unix:///?socket={path}",
        f"--rw={operation}",
    ]
    size = ["--bs=4k", f"--iodepth={depth}", f"--size={SIZE}", "--time_based", f"--runtime={seconds}"]
    done = subprocess.run([*job, *size, "--output-format=json"], capture_output=True, text=True, check=True)
    found: dict[str, Any] = json.loads(done.stdout[done.stdout.index("{") :])["jobs"][0]
    part = found["read" if operation == "randread" else "write"]
    at = part["clat_ns"]["percentile"]
    return {"iops": part["iops"], "p50_us": at["50.000000"] / 1e3, "p99_us": at["99.000000"] / 1e3}


def compare(
    title: str, servers: dict[str, Path], jobs: list[tuple[str, int]], options: argparse.Namespace
) -> None:
    """Runs each job on each server in turn and prints the medians."""
    print(title)
    for operation, depth in jobs:
        measured: dict[str, list[dict[str, float]]] = {name: [] for name in servers}
        for number in range(options.pairs):
            # The order alternates, since the machine may be warmer for the server that comes second.
            for name in sorted(servers, reverse=number % 2 == 1):
                measured[name].append(fio(servers[name], operation, depth, options.seconds))
        for name, runs in measured.items():
            texts = []
            for key in ("p50_us", "p99_us", "iops"):
                values = sorted(run[key] for run in runs)
                shown = [f"{value:,.{0 if key == 'iops' else 1}f}" for value in values]
                middle = statistics.median_low(values)
                texts.append(f"{key} {shown[values.index(middle)]} ({shown[0]} to {shown[-1]})")
            print(f"  {operation} depth {depth:2} {name:7} {', '.join(texts)}", flush=True)


@contextmanager
def busy(processors: str, loops: int) -> Iterator[None]:
    """Keeps processors busy with loops during the block."""
    loop = ["taskset", "-c", processors, sys.executable, "-c", "while True: pass"]
    running = [subprocess.Popen(loop) for _ in range(loops)]
    try:
        yield
    finally:
        for process in running:
            process.kill()
            process.wait()


def waits(folder: Path, options: argparse.Namespace) -> None:
    """Measures the ways to wait and prints the medians of the runs."""
    own, result = folder / "own", folder / "result.json"
    every = f"0-{(os.cpu_count() or 1) - 1}"
    for processors, loops in itertools.product(dict.fromkeys(("0", every)), (0, options.loops)):
        pinned = ["taskset", "-c", processors]
        for wait in ("awake", "sleep", "auto"):
            serve = [*pinned, sys.executable, "-m", "ftlab", "serve", *DEVICE, *TIMED, *FULL, "--wait", wait]
            at = ["--nbd", f"unix:{own}", "--json", str(result)]
            with busy(processors, loops), serving([*serve, *at], own):
                runs = [fio(own, "randread", 1, options.seconds, pinned) for _ in range(options.pairs)]
            live = json.loads(result.read_text())["live"]
            late, share = live["lateness"]["percentile_ns"], live["interference"]["wait_share"]
            middle = {key: statistics.median_low([run[key] for run in runs]) for key in runs[0]}
            print(
                f"processors {processors:3} loops {loops} {wait:5}"
                f" client p50 {middle['p50_us']:,.0f} us, p99 {middle['p99_us']:,.0f} us;"
                f" lateness p50 {late['50.000000'] / 1e3:,.0f} us, p99 {late['99.000000'] / 1e3:,.0f} us;"
                f" wait share {share:.3f}",
                flush=True,
            )


def main() -> None:
    """Measures all servers and prints the results."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--pairs", type=int, default=5, help="runs of each server (5)")
    parser.add_argument("--seconds", type=float, default=3, help="of each run (3)")
    parser.add_argument("--wait", action="store_true", help="measure the ways to wait instead")
    parser.add_argument("--loops", type=int, default=3, help="busy loops on the busy machine of --wait (3)")
    options = parser.parse_args()
    print(f"load of the machine: {os.getloadavg()[0]:.1f} on {os.cpu_count()} processors")
    if options.wait:
        with tempfile.TemporaryDirectory() as folder:
            waits(Path(folder), options)
        return
    with tempfile.TemporaryDirectory() as folder:
        own, other, result = Path(folder, "own"), Path(folder, "other"), Path(folder, "result.json")
        servers = {"ftlab": own, "nbdkit": other}
        serve = [
            sys.executable,
            "-m",
            "ftlab",
            "serve",
            *DEVICE,
            "--nbd",
            f"unix:{own}",
            "--json",
            str(result),
        ]
        kit = ["nbdkit", "--foreground", "--unix", str(other)]
        with serving([*serve, *AT_ONCE], own), serving([*kit, "memory", str(SIZE)], other):
            for path in servers.values():
                fio(path, "randwrite", 1, 2)
            depths = [("randread", depth) for depth in (1, 16, 64)]
            compare("flash of no time, nbdkit memory", servers, [*depths, ("randwrite", 1)], options)
        # nbdkit leaves its socket behind.
        other.unlink(missing_ok=True)
        jobs = [("randwrite", 1), ("randread", 1)]
        delay = ["--filter=delay", "memory", str(SIZE), "delay-read=1ms", "delay-write=3ms"]
        with serving([*serve, *SLOW], own), serving([*kit, *delay], other):
            compare("read 1 ms, program 3 ms, nbdkit's delay filter", servers, jobs, options)
        with serving([*serve, *TIMED], own):
            compare("read 100 us, program 300 us", {"ftlab": own}, jobs, options)
        at = json.loads(result.read_text())["live"]["lateness"]["percentile_ns"]
        late = {name: at[f"{name}.000000"] / 1e3 for name in (50, 90, 99)}
        print("  live.lateness " + ", ".join(f"p{name} {value:.1f} us" for name, value in late.items()))


if __name__ == "__main__":
    main()
