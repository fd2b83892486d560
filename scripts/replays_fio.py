"""Measures what dependent replay predicts of fio's jobs on other devices, in real time; needs fio with nbd.

python scripts/replays_fio.py         # the second table of docs/which-replay.md
"""

import csv
import json
import subprocess
import tempfile
from pathlib import Path
from typing import Any, NamedTuple

from replays import ftlab, row, served, sets

FRESH = ["flash.blocks_per_plane=512", "device.precondition=none"]
STEADY = [FRESH[0], "device.precondition=steady"]
PAGE = ["device.precondition=none", "ftl.kind=page"]
SLOW = ["flash.chips_per_channel=1", "flash.read=300us", "flash.program=2400us"]
WORKER = "--rw=randrw --rwmixread=70 --bs=4k --size=16m --fsync=4 --number_ios=500"


class Pair(NamedTuple):
    """A program, the device on which it is recorded, and the one on which it is replayed."""

    name: str
    jobs: list[str]
    """What each of its workers does, as options of fio."""
    recorded: list[str]
    other: list[str]
    streams: int = 0
    """The number of streams that the devices tell apart; each worker then is one."""


WORKERS = [f"{WORKER} --offset={16 * at}m" for at in range(4)]
READER = "--rw=randrw --rwmixread=90 --bs=4k --size=16m --number_ios=500"
READERS = [f"{READER} --offset={16 * at}m" for at in range(8)]
MANY = [f"{WORKER} --offset={4 * at}m --size=4m --number_ios=150" for at in range(16)]
PAIRS = [
    Pair("4 workers that sync every 4th write; fresh, on steady", WORKERS, FRESH, STEADY),
    Pair("the same, a stream for each worker", WORKERS, FRESH, STEADY, 4),
    Pair("the same, 2 ms thought", [f"{worker} --thinktime=2000" for worker in WORKERS], FRESH, STEADY),
    Pair("8 workers without sync, 90 % reads", READERS, FRESH, STEADY),
    Pair("16 workers", MANY, FRESH, STEADY),
    Pair(
        "one that keeps 16 under way; fresh, on steady",
        ["--rw=randrw --rwmixread=70 --bs=4k --iodepth=16 --size=64m --number_ios=3000"],
        FRESH,
        STEADY,
    ),
    Pair(
        "a copy, 64 KiB, 4 at a time; page map, on one chip that is 3 times as slow",
        ["--rw=rw --bs=64k --iodepth=4 --size=48m --number_ios=500"],
        ["flash.blocks_per_plane=512", *PAGE],
        ["flash.blocks_per_plane=1024", *PAGE, *SLOW],
    ),
    Pair(
        "a log, 8 KiB, 5 ms thought, a sync every 8th; fresh, on steady with noop",
        ["--rw=randwrite --bs=8k --size=64m --thinktime=5000 --fsync=8 --number_ios=600"],
        FRESH,
        [*STEADY, "host.scheduler=noop"],
    ),
]


def live(pair: Pair, values: list[str], folder: Path, recording: Path) -> dict[str, Any]:
    """Returns the result of a live device on which the program ran, in real time."""
    socket = folder / "socket"
    where = ["--nbd", f"unix:{socket}"]
    where += ["--streams", str(pair.streams)] if pair.streams else []
    fio = ["fio", "--thread", "--allrandrepeat=1"]
    for number, job in enumerate(pair.jobs, 1):
        export = f"stream-{number}" if pair.streams else ""
        uri = f"--uri=nbd+unix:///{export}?socket={socket}"
        fio += [f"--name=job{number}", "--ioengine=nbd", uri, f"--randseed={number}", *job.split()]

    def work() -> None:
        subprocess.run(fio, cwd=folder, capture_output=True, timeout=600, check=True)

    return served(values, where, recording, work)


def replayed(values: list[str], recording: Path, how: str, requests: Path) -> dict[str, Any]:
    """Returns the result of a replay, which lists its requests in a file."""
    options = [
        "--trace",
        str(recording),
        "--replay",
        how,
        "--requests",
        str(requests),
        "--quiet",
        "--json",
        "-",
    ]
    command = ftlab("run", "map-plus", *sets(values), *options, "--json", "-")
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def stalled(path: Path) -> str:
    """Returns how many reads of a recording, or of a list of requests, took longer than 10 ms."""
    with path.open() as lines:
        rows = [row for row in csv.DictReader(lines) if row["op"] == "R"]
    took = [int(row.get("latency_ns") or int(row["complete_ns"]) - int(row["arrival_ns"])) for row in rows]
    return f"{sum(ns > 10_000_000 for ns in took)} of {len(took)} reads took more than 10 ms"


def main() -> None:
    """Prints for each pair the recorded device, the other one, and what its replays predict of that."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        first, second, requests = (folder / f"{each}.csv" for each in ("first", "second", "requests"))
        for pair in PAIRS:
            print(pair.name)
            print(row("live, recorded", live(pair, pair.recorded, folder, first)))
            print(row("live, other", live(pair, pair.other, folder, second)), stalled(second))
            print(row("open", replayed(pair.other, first, "open", requests)))
            found = replayed(pair.other, first, "dependent", requests)
            print(row("dependent", found), stalled(requests), flush=True)


if __name__ == "__main__":
    main()
