"""Makes a cloud's trace from the shipped models, splits it and runs its volumes: what a billion requests
cost.

    python scripts/fleet.py /tmp/fleet                      200 volumes, a million requests, all cores
    python scripts/fleet.py /tmp/fleet --dask local         the same on Dask

Prints seconds and peak memory of `ftlab trace split` and of `ftlab sweep`, each a process of its own.
"""

from __future__ import annotations

import argparse
import os
import random
import resource
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

from ftlab import _core
from ftlab.configs import Override, load
from ftlab.traces import CHUNK_ROWS

WORKLOADS = Path(__file__).resolve().parents[1] / "workloads"
MODELS = sorted(
    path
    for folder in ("map-plus", "msftl", "vios")
    for path in (WORKLOADS / folder).glob("*.toml")
    if path.stem != "targets"
)

STUDY = """config = "map-plus"

[set]
"flash.blocks_per_plane" = 4096
"workload.out_of_range" = "compact"

[axis.volume]
files = "volumes/*.parquet"

[aggregate]
"""

_ROW = np.dtype([("time_us", "<u8"), ("volume", "<u4"), ("op", "u1"), ("offset", "<u8"), ("size", "<u8")])


def cloud(path: Path, volumes: int, requests: int, seed: int) -> int:
    """Writes a trace in Alibaba's layout; returns the number of its requests. The load of the nth volume is
    proportional to n^-0.7.
    """
    draw = random.Random(seed)
    weights = [1 / (rank + 1) ** 0.7 for rank in range(volumes)]
    parts = [
        _volume(number, max(1, round(requests * weight / sum(weights))), draw)
        for number, weight in enumerate(weights)
    ]
    rows = np.concatenate(parts)
    rows = rows[np.argsort(rows["time_us"], kind="stable")]
    with path.open("w") as file:
        for at in range(0, len(rows), CHUNK_ROWS):
            file.writelines(
                f"{row[1]},{'RW'[row[2]]},{row[3]},{row[4]},{row[0]}\n"
                for row in rows[at : at + CHUNK_ROWS].tolist()
            )
    return len(rows)


def _volume(number: int, requests: int, draw: random.Random) -> np.ndarray[Any, Any]:
    """Returns the requests of one volume, from a random model with a seed of its own and a random start."""
    keys = {"workload.synthetic.requests": str(requests), "seed": str(draw.randint(1, 10**6))}
    config = load(str(draw.choice(MODELS)), [Override(key, key, value) for key, value in keys.items()])
    # Stamps as the cloud's: microseconds since 1970.
    start_us = 1_577_808_000_000_000 + draw.randint(0, 60_000_000)
    parts = []
    for chunk in _core.trace_chunks(config, CHUNK_ROWS):
        times, ops, offsets, sizes, *_ = (np.asarray(column) for column in chunk)
        data = ops <= 1
        rows = np.empty(int(data.sum()), dtype=_ROW)
        rows["time_us"], rows["volume"] = times[data] // 1000 + start_us, number
        rows["op"], rows["offset"], rows["size"] = ops[data], offsets[data], sizes[data]
        parts.append(rows)
    return np.concatenate(parts)


def main() -> None:
    """Makes, splits and runs the fleet."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path)
    parser.add_argument("--volumes", type=int, default=200)
    parser.add_argument("--requests", type=int, default=1_000_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--dask", metavar="ADDRESS|local")
    given = parser.parse_args()
    given.folder.mkdir(parents=True, exist_ok=True)
    requests = cloud(given.folder / "cloud.csv", given.volumes, given.requests, given.seed)
    (given.folder / "study.toml").write_text(STUDY)
    print(f"{given.volumes} volumes, {requests:,} requests, {len(os.sched_getaffinity(0))} cores")
    where = ["--dask", given.dask] if given.dask else []
    _timed(given.folder, requests, "trace", "split", "cloud.csv", "--by", "volume", "--out", "volumes")
    _timed(given.folder, requests, "sweep", "study.toml", "--out", "out", "--fresh", *where)


def _timed(folder: Path, requests: int, *command: str) -> None:
    """Runs a command; prints the seconds and the memory that it took."""
    begun, before = time.perf_counter(), resource.getrusage(resource.RUSAGE_CHILDREN)
    # The command measures its own peak of memory, since the peak that the kernel reports for a child is at
    # least that of this process.
    script = (
        "import sys, pathlib; from ftlab.cli import call; status = call(sys.argv[1:]);"
        "print(pathlib.Path('/proc/self/status').read_text().split('VmHWM:')[1].split()[0], file=sys.stderr);"
        "sys.exit(status)"
    )
    done = subprocess.run(
        [sys.executable, "-c", script, *command], cwd=folder, check=False, capture_output=True, text=True
    )
    if done.returncode:
        sys.exit(done.stderr)
    seconds = time.perf_counter() - begun
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    peak = int(done.stderr.split()[-1]) / 1024
    billion = cpu / requests * 1e9 / 3600
    took = f"{seconds:.1f} s, {cpu:.1f} s of processor time, {peak:.0f} MiB at most"
    print(f"ftlab {' '.join(command[:2])}: {took}; {billion:.1f} core-hours for a billion requests")


if __name__ == "__main__":
    main()
