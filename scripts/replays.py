"""Measures what each kind of replay predicts.

A program runs on live devices, and the recording of the first is replayed on the others. Needs root,
/dev/fuse, a loop device, mkfs.ext4, sqlite3 and fio.

    python scripts/replays.py             # docs/which-replay.md: the first table, and the workers on an ext4
"""

import json
import random
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

PRESET = "map-plus"
FRESH = ["flash.blocks_per_plane=1024", "device.precondition=none"]
DEVICES = {
    "fresh, MAP+": FRESH,
    "steady, MAP+": [FRESH[0], "device.precondition=steady"],
    "fresh, noop": [*FRESH, "host.scheduler=noop"],
    "fresh, a cache of 1 MiB": [*FRESH, "ftl.mapping_cache=1MiB"],
}
MESSAGES = """pragma journal_mode = wal;
create table message (id integer primary key, chat int, at int, body text);
create index by_chat on message (chat, at);
insert into message (chat, at, body)
  select abs(value * 7919) % 500, value, hex(randomblob(200)) from generate_series(1, 60000);
"""


def ftlab(*arguments: str) -> list[str]:
    """Returns a command of ftlab."""
    return [sys.executable, "-m", "ftlab", *arguments]


def sets(values: list[str]) -> list[str]:
    """Returns the options that set these keys."""
    return [option for value in values for option in ("--set", value)]


def root(*command: str | Path, text: str = "") -> str:
    """Returns what a command prints; it must succeed."""
    done = subprocess.run(command, input=text, capture_output=True, text=True, timeout=600, check=True)
    return done.stdout.strip()


def mounted(disk: Path, mount: Path, work: Callable[[Path], None]) -> None:
    """Lets a program work on an ext4 on the device."""
    loop = root("losetup", "--direct-io=on", "--find", "--show", disk)
    try:
        root("mkfs.ext4", "-q", "-E", "nodiscard,lazy_itable_init=0", loop)
        root("mount", loop, mount)
        try:
            work(mount)
        finally:
            root("umount", mount)
    finally:
        root("losetup", "--detach", loop)


def sqlite(mount: Path) -> None:
    """Lets SQLite write messages and read chats."""
    draw = random.Random(1)
    base = mount / "messages.db"
    root("sqlite3", base, text=MESSAGES)
    one = "insert into message (chat, at, body) values ({}, {}, hex(randomblob(200)));"
    root("sqlite3", base, text="\n".join(one.format(draw.randrange(500), at) for at in range(500)))
    root("sync")
    Path("/proc/sys/vm/drop_caches").write_text("3")
    look = "select body from message where chat = {} order by at desc limit 20;"
    root("sqlite3", base, text="\n".join(look.format(draw.randrange(500)) for _ in range(300)))


def workers(mount: Path) -> None:
    """Lets four workers of fio read and write, each a file of its own."""
    job = "--name=w --numjobs=4 --ioengine=psync --direct=1 --rw=randrw --rwmixread=70 --bs=4k --size=16m"
    root("fio", "--thread", f"--directory={mount}", *job.split(), "--fsync=4", "--number_ios=400")


def served(
    values: list[str], where: list[str], recording: Path, work: Callable[[], object]
) -> dict[str, Any]:
    """Returns the result of a live device, served at `where`, on which a program worked in real time."""
    out = recording.with_suffix(".json")
    options = [*sets(values), *where, "--record", str(recording), "--json", str(out)]
    command = ftlab("serve", PRESET, *options)
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr
        for line in process.stderr:
            if line.startswith("serving"):
                break
        try:
            work()
        finally:
            process.send_signal(signal.SIGINT)
            process.stderr.read()
    found: dict[str, Any] = json.loads(out.read_text())
    return found


def live(values: list[str], folder: Path, recording: Path, work: Callable[[Path], None]) -> dict[str, Any]:
    """Returns the result of a live device with an ext4 on which a program worked."""
    mount, fuse = folder / "mnt", folder / "fuse"
    mount.mkdir(exist_ok=True)
    fuse.mkdir(exist_ok=True)
    return served(values, ["--fuse", str(fuse)], recording, lambda: mounted(fuse / "disk", mount, work))


def replayed(values: list[str], recording: Path, *options: str) -> dict[str, Any]:
    """Returns the result of a replay."""
    command = ftlab(
        "run", PRESET, *sets(values), "--trace", str(recording), *options, "--quiet", "--json", "-"
    )
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def row(name: str, result: dict[str, Any]) -> str:
    """Returns a line of the table: mean and 99th percentile of reads and of writes, in us."""
    found = [result["latency"][op] for op in ("read", "write")]
    pairs = ((each["mean_ns"], each["percentile_ns"].get("99.000000", 0)) for each in found)
    cells = [cell / 1e3 for pair in pairs for cell in pair]
    return f"| {name} | " + " | ".join(f"{cell:,.0f}" for cell in cells) + " |"


def compare(work: Callable[[Path], None], devices: dict[str, list[str]]) -> None:
    """Prints a row for the first device and its replay there, and four for each of the others."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        recording = folder / "first.csv"
        first, *others = devices.items()
        print(row(f"live: {first[0]}", live(first[1], folder, recording, work)), flush=True)
        depth = max(int(line.split(",")[4]) for line in recording.read_text().splitlines()[1:])
        closed = ("--replay", "closed", "--set", f"host.queue_depth={depth}")
        print(row("its recording there", replayed(first[1], recording)), flush=True)
        for device, values in others:
            print(row(f"live: {device}", live(values, folder, folder / "other.csv", work)))
            print(row("open", replayed(values, recording, "--replay", "open")))
            print(row(f"closed, {depth}", replayed(values, recording, *closed)))
            print(row("dependent", replayed(values, recording)), flush=True)


def main() -> None:
    """Prints what each kind of replay predicts of SQLite, and of workers on one of the devices."""
    compare(sqlite, DEVICES)
    compare(workers, dict(list(DEVICES.items())[:2]))


if __name__ == "__main__":
    main()
