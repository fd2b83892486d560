"""Records in which order a kernel's schedulers dispatch, and compares ftlab's with it: `make kernel-order`.

    python scripts/kernel_order.py --out FOLDER              # boot a guest for each case, and compare
    python scripts/kernel_order.py --convert TRACE           # print the recording of a trace of events

A guest (qemu, one processor, emulated unless --accel names another) boots the kernel of a Debian package
with scripts/guest/init as its only process. It loads the block device null_blk, which takes a millisecond for
a request, runs scripts/guest/load.c on it, and prints the events of the kernel: a request enters the
scheduler, the scheduler is asked and answers, the device begins, the device ends. The Rust test kernel_order
lets ftlab's scheduler have the same requests at the same times, asks it when the kernel was asked, and
compares the answers.

It needs qemu-system-x86_64, busybox (static), gcc, dpkg-deb, xz and the package of a kernel; apt fetches the
latter into FOLDER. What is missing is named, and nothing runs.
"""

from __future__ import annotations

import argparse
import gzip
import os
import re
import shutil
import subprocess
import sys
from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
GUEST = ROOT / "scripts" / "guest"
TOOLS = {
    "qemu-system-x86_64": "qemu-system-x86",
    "busybox": "busybox-static",
    "gcc": "gcc",
    "dpkg-deb": "dpkg",
    "xz": "xz-utils",
    "cargo": "cargo (rustup)",
}
MODULES = ["configfs", "null_blk", "kyber-iosched", "bfq"]
APPLETS = ["sh", "mount", "mkdir", "insmod", "cat", "echo", "uname", "sync", "poweroff"]


@dataclass(frozen=True)
class Case:
    """A scheduler with its settings, as sysfs names them, the depth of the device, and a load."""

    name: str
    scheduler: str
    prefix: str
    depth: int
    settings: str
    load: str

    def script(self) -> str:
        """Returns what the guest reads."""
        return (
            f"SCHEDULER={self.scheduler}\nPREFIX={self.prefix}\nASK={self.prefix}_dispatch_request\n"
            f'COMPLETION=1000000\nDEPTH={self.depth}\nSETTINGS="{self.settings}"\nLOAD="{self.load}"\n'
        )


CASES = [
    Case("mq-deadline", "mq-deadline", "dd", 1, "read_expire=100 write_expire=400", "10000 128 60 4 1"),
    Case("kyber", "kyber", "kyber", 4, "read_lat_nsec=2000000 write_lat_nsec=10000000", "10000 128 60 4 1"),
    Case(
        "kyber-throttles",
        "kyber",
        "kyber",
        4,
        "read_lat_nsec=1000000 write_lat_nsec=10000000000",
        "10000 128 60 4 1",
    ),
    Case("bfq", "bfq", "bfq", 1, "low_latency=0 slice_idle=0", "3334 32 60 4 1 0 2 7 3"),
]

LINE = re.compile(r"-(?P<pid>\d+)\s+\[\d+\] \S+ +(?P<time>[\d.]+): (?P<event>\w+): (?P<rest>.*)")
BLOCK = re.compile(
    r"\d+,\d+ (?P<flags>[A-Z]+) (?:\d+ )?\(.*\) (?P<sector>\d+) \+ (?P<sectors>\d+) \w+,\d+,(?P<level>\d)"
)
ASKED = re.compile(r"jiffies=(?P<jiffies>\d+)(?: request=(?P<request>0x[0-9a-f]+))?")


class OrderError(Exception):
    """A guest or its events are not as expected; the message says what."""


def convert(case: Case, lines: Iterable[str]) -> Iterator[str]:
    """Yields the lines of a recording from the events that a guest prints.

    The form is that of crates/conformance/tests/kernel_order.rs. The kernel does not say which request the
    scheduler answered with, but the device begins them in that order.
    """
    events = [match for line in lines if (match := LINE.search(line))]
    begun = deque(
        match["sector"]
        for event in events
        if event["event"] == "block_rq_issue" and (match := BLOCK.match(event["rest"]))
    )
    streams: dict[str, int] = {}
    weights: list[int] = []
    recording: list[str] = []
    jiffies = 0
    for event in events:
        kind, time = event["event"], event["time"].replace(".", "")
        if asked := ASKED.search(event["rest"]):
            jiffies = int(asked["jiffies"])
            if kind == "timer":
                recording.append(f"T {time} {jiffies}")
            if asked["request"] is not None:
                answer = "-" if int(asked["request"], 16) == 0 else begun.popleft() if begun else None
                if answer is not None:  # else the recording ends before the device began it
                    recording.append(f"A {time} {jiffies} {answer}")
            continue
        block = BLOCK.match(event["rest"])
        if block is None:
            raise OrderError(f"an event of unknown form: {event.group(0)}")
        if kind == "block_rq_insert":
            stream = streams.setdefault(event["pid"], len(streams))
            if stream == len(weights):
                weights.append((8 - int(block["level"])) * 10)
            op = "R" if block["flags"].startswith("R") else "W"
            recording.append(f"I {time} {jiffies} {op} {block['sector']} {block['sectors']} {stream}")
        elif kind == "block_rq_issue":
            recording.append(f"D {time} {jiffies} {block['sector']}")
        elif kind == "block_rq_complete":
            recording.append(f"C {time} {jiffies} {block['sector']}")
    yield f"{case.scheduler} {case.settings} weights={','.join(map(str, weights))}"
    yield from recording


def run(*command: str | Path, folder: Path, said: bool = True) -> str:
    """Runs a command in a folder, says so, and returns what it printed."""
    words = [str(word) for word in command]
    if said:
        print("kernel-order:", " ".join(words), flush=True)
    done = subprocess.run(words, cwd=folder, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise OrderError(f"{words[0]} failed (exit status {done.returncode}):\n{done.stderr.strip()}")
    return done.stdout


def missing() -> list[str]:
    """Returns the packages of the tools that are absent."""
    return [package for tool, package in TOOLS.items() if shutil.which(tool) is None]


def fetch_kernel(folder: Path, suite: str) -> Path:
    """Fetches the package of a Debian kernel into the folder, with lists of its own; returns the package."""
    found = sorted(folder.glob("linux-image-*.deb"))
    if found:
        return found[-1]
    apt = folder / "apt"
    for part in ("lists/partial", "cache/archives/partial"):
        (apt / part).mkdir(parents=True, exist_ok=True)
    keys = "/usr/share/keyrings/debian-archive-keyring.gpg"
    source = apt / "sources.list"
    source.write_text(f"deb [signed-by={keys}] http://deb.debian.org/debian {suite} main\n")
    state = f"Dir::State::lists={apt}/lists"
    options = ["-o", f"Dir::Etc::sourcelist={source}", "-o", "Dir::Etc::sourceparts=-", "-o", state]
    options += ["-o", f"Dir::Cache={apt}/cache"]
    run("apt-get", *options, "update", folder=folder)
    depends = run("apt-cache", *options, "depends", "linux-image-amd64", folder=folder)
    names = re.findall(r"Depends: (linux-image-\S+)", depends)
    if not names:
        raise OrderError(f"{suite} has no package linux-image-amd64; name one with --kernel FILE.deb")
    run("apt-get", *options, "download", names[0], folder=folder)
    return sorted(folder.glob("linux-image-*.deb"))[-1]


def unpack(package: Path, folder: Path) -> Path:
    """Unpacks a kernel's package and makes what the guests of all cases share; returns the kernel."""
    run("dpkg-deb", "-x", package, "kernel", folder=folder)
    root = folder / "root"
    for part in ("bin", "modules"):
        (root / part).mkdir(parents=True, exist_ok=True)
    shutil.copy(shutil.which("busybox") or "busybox", root / "bin" / "busybox")
    for applet in APPLETS:
        (root / "bin" / applet).unlink(missing_ok=True)
        (root / "bin" / applet).symlink_to("busybox")
    run("gcc", "-O1", "-Wall", "-static", "-o", root / "load", GUEST / "load.c", folder=folder)
    shutil.copy(GUEST / "init", root / "init")
    (root / "init").chmod(0o755)
    for number, name in enumerate(MODULES):
        files = sorted((folder / "kernel").rglob(f"{name}.ko*"))
        if not files:
            raise OrderError(f"{package.name} has no module {name}")
        data = files[0].read_bytes()
        if files[0].suffix == ".xz":
            data = subprocess.run(["xz", "-dc", files[0]], capture_output=True, check=True).stdout
        (root / "modules" / f"{number}-{name}.ko").write_bytes(data)
    return next((folder / "kernel" / "boot").glob("vmlinuz-*"))


def record(case: Case, kernel: Path, folder: Path, accel: str) -> Path:
    """Boots a guest for a case; returns the recording."""
    root = folder / "root"
    (root / "case").write_text(case.script())
    files = "\n".join(str(path.relative_to(root)) for path in sorted(root.rglob("*")))
    archive = subprocess.run(
        ["busybox", "cpio", "-o", "-H", "newc"],
        cwd=root,
        input=files.encode(),
        capture_output=True,
        check=True,
    )
    initrd = folder / f"{case.name}.cpio.gz"
    initrd.write_bytes(gzip.compress(archive.stdout, 1))
    console, events = folder / f"{case.name}.console", folder / f"{case.name}.events"
    guest = ["qemu-system-x86_64", "-accel", accel, "-cpu", "max", "-m", "512", "-smp", "1", "-nographic"]
    guest += ["-no-reboot", "-monitor", "none", "-kernel", str(kernel), "-initrd", str(initrd)]
    guest += [
        "-append",
        "console=ttyS0 quiet panic=-1 no_timer_check",
        "-serial",
        f"file:{console}",
        "-serial",
        f"file:{events}",
    ]
    run(*guest, folder=folder)
    said = console.read_text(errors="replace")
    if "load: exit status 0" not in said or not re.search(r"^overrun: 0\r?$", said, re.MULTILINE):
        raise OrderError(f"the guest did not do its work, or lost events:\n{said[-2000:]}")
    print(
        "kernel-order:", next(line for line in said.splitlines() if "guest: " in line).partition("guest: ")[2]
    )
    recording = folder / f"{case.name}.order"
    with events.open(errors="replace") as lines:
        recording.write_text("".join(f"{line}\n" for line in convert(case, lines)))
    return recording


def main() -> int:
    """Runs the command line; returns the exit status."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument(
        "--out", type=Path, default=ROOT / "out" / "kernel-order", help="folder for everything"
    )
    parser.add_argument("--kernel", type=Path, help="a kernel's Debian package, if none is to be fetched")
    parser.add_argument("--suite", default="bookworm-backports", help="Debian suite to fetch the kernel from")
    parser.add_argument("--accel", default="tcg", help="qemu's accelerator: tcg, or kvm where it works")
    parser.add_argument(
        "--convert", type=Path, metavar="EVENTS", help="print the recording of an events file"
    )
    chosen = parser.parse_args()
    if chosen.convert:
        case = next(case for case in CASES if case.name == chosen.convert.stem)
        with chosen.convert.open(errors="replace") as lines:
            print("\n".join(convert(case, lines)))
        return 0
    if absent := missing():
        print(f"kernel-order: skipped, because these are not installed: {', '.join(absent)}")
        return 0
    chosen.out.mkdir(parents=True, exist_ok=True)
    try:
        package = chosen.kernel or fetch_kernel(chosen.out, chosen.suite)
    except OrderError as error:
        print(f"kernel-order: skipped, because no kernel can be had: {error}")
        return 0
    try:
        kernel = unpack(package.resolve(), chosen.out)
        for case in CASES:
            record(case, kernel, chosen.out, chosen.accel)
    except OrderError as error:
        print(f"kernel-order: {error}", file=sys.stderr)
        return 1
    command = ["cargo", "test", "--locked", "--package", "ftlab-conformance", "--test", "kernel_order"]
    command += ["whole_recordings", "--", "--nocapture"]
    where = {**os.environ, "FTLAB_KERNEL_ORDER": str(chosen.out.resolve())}
    status = subprocess.run(command, cwd=ROOT, env=where, check=False).returncode
    kyber = [chosen.out / f"{case.name}.order" for case in CASES if case.scheduler == "kyber"]
    places = subprocess.run([sys.executable, ROOT / "scripts" / "kernel_places.py", *kyber], check=False)
    return status or places.returncode


if __name__ == "__main__":
    raise SystemExit(main())
