"""Measures what each kind of replay predicts.

SQLite runs on live devices, and the recording of the first is replayed on the others. Needs root, /dev/fuse,
a loop device, mkfs.ext4 and sqlite3.

    python scripts/replays.py             # the tables of docs/which-replay.md
"""

import json
import random
import signal
import subprocess
import sys
import tempfile
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


def use(disk: Path, mount: Path) -> None:
    """Lets SQLite write messages and read chats on the device."""
    draw = random.Random(1)
    loop = root("losetup", "--direct-io=on", "--find", "--show", disk)
    try:
        root("mkfs.ext4", "-q", "-E", "nodiscard,lazy_itable_init=0", loop)
        root("mount", loop, mount)
        try:
            base = mount / "messages.db"
            root("sqlite3", base, text=MESSAGES)
            one = "insert into message (chat, at, body) values ({}, {}, hex(randomblob(200)));"
            root("sqlite3", base, text="\n".join(one.format(draw.randrange(500), at) for at in range(500)))
            root("sync")
            Path("/proc/sys/vm/drop_caches").write_text("3")
            look = "select body from message where chat = {} order by at desc limit 20;"
            root("sqlite3", base, text="\n".join(look.format(draw.randrange(500)) for _ in range(300)))
        finally:
            root("umount", mount)
    finally:
        root("losetup", "--detach", loop)


def live(values: list[str], folder: Path, recording: Path) -> dict[str, Any]:
    """Returns the result of a live device on which SQLite ran, in real time."""
    mount, fuse, out = folder / "mnt", folder / "fuse", folder / "live.json"
    mount.mkdir(exist_ok=True)
    fuse.mkdir(exist_ok=True)
    options = ["--fuse", str(fuse), "--record", str(recording), "--json", str(out)]
    command = ftlab("serve", PRESET, *sets(values), *options)
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr
        for line in process.stderr:
            if line.startswith("serving"):
                break
        try:
            use(fuse / "disk", mount)
        finally:
            process.send_signal(signal.SIGINT)
            process.stderr.read()
    found: dict[str, Any] = json.loads(out.read_text())
    return found


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


def main() -> None:
    """Prints a table for each device but the first, whose recording is replayed."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        recording = folder / "fresh.csv"
        first, *others = DEVICES.items()
        print(row(f"live: {first[0]}", live(first[1], folder, recording)), flush=True)
        depth = max(int(line.split(",")[4]) for line in recording.read_text().splitlines()[1:])
        closed = ("--replay", "closed", "--set", f"host.queue_depth={depth}")
        print(row("its recording there", replayed(first[1], recording)), flush=True)
        for device, values in others:
            print(row(f"live: {device}", live(values, folder, folder / "other.csv")))
            print(row("open", replayed(values, recording, "--replay", "open")))
            print(row(f"closed, {depth}", replayed(values, recording, *closed)))
            print(row("dependent", replayed(values, recording)), flush=True)


if __name__ == "__main__":
    main()
