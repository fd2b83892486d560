#!/usr/bin/env python3
"""Records the block requests of a real workload into a trace that ftlab ships.

Makes an ext4 file system in a temporary file, mounts it over a loop device, runs phone_workload.py on it,
records the kernel's block events of that loop device from tracefs, and writes ftlab's own csv, compressed,
next to a file that says where it came from. Needs root, loop devices, tracefs and mkfs.ext4; needs neither
blktrace nor anything outside Python's standard library. Whatever it sets up it takes down again, even when it
fails or is interrupted.
"""

from __future__ import annotations

import argparse
import contextlib
import datetime
import gzip
import hashlib
import io
import os
import platform
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, NoReturn

import block_events

HERE = Path(__file__).resolve().parent
TRACEFS = Path("/sys/kernel/tracing")
LOOP_MAJOR = 7
# The settings of the loop device's queue: a scheduler, so that there is one into which requests are inserted;
# read-ahead and the largest request as on phones.
QUEUE = {
    "scheduler": "mq-deadline",
    "read_ahead_kb": "128",
    "max_sectors_kb": "512",
    "rotational": "0",
}
MKFS_OPTIONS = ["-F", "-E", "lazy_itable_init=0,lazy_journal_init=0"]
SMALLEST_IMAGE_MIB = 640
MOUNT_OPTIONS = "discard,noatime"
STOPPING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class RefusalError(Exception):
    """Raised if nothing can be recorded, or recording was stopped; the message says why."""


def command(*words: str) -> str:
    """Runs a command; returns its output, or raises RefusalError with its error message."""
    done = subprocess.run(words, check=False, capture_output=True, text=True, stdin=subprocess.DEVNULL)
    if done.returncode:
        raise RefusalError(f"{' '.join(words)} failed: {done.stderr.strip() or done.stdout.strip()}")
    return done.stdout.strip()


def check(arguments: argparse.Namespace) -> None:
    """Raises RefusalError, before anything is set up, if the recording cannot work."""
    if not arguments.out.parent.is_dir():
        raise RefusalError(f"--out {arguments.out}: there is no folder {arguments.out.parent}")
    if arguments.image_mib < SMALLEST_IMAGE_MIB:
        raise RefusalError(f"--image-mib {arguments.image_mib}: the data needs {SMALLEST_IMAGE_MIB} or more")
    if sys.platform != "linux":
        raise RefusalError("recording needs Linux")
    if os.geteuid() != 0:
        raise RefusalError("recording needs root, for the loop device, the mount and tracefs: try sudo")
    for tool in ("mkfs.ext4", "losetup", "mount", "umount"):
        if not shutil.which(tool):
            raise RefusalError(f"{tool} is not installed (Debian: e2fsprogs, mount)")
    if not Path("/dev/loop-control").exists():
        raise RefusalError("this kernel has no loop devices (/dev/loop-control is missing: modprobe loop)")


def mounted_tracefs(stack: contextlib.ExitStack) -> None:
    """Mounts tracefs until the stack is closed, unless it is mounted already."""
    if not (TRACEFS / "events").is_dir():
        if not TRACEFS.is_dir():
            raise RefusalError("this kernel has no tracefs (/sys/kernel/tracing is missing)")
        command("mount", "-t", "tracefs", "nodev", str(TRACEFS))
        stack.callback(command, "umount", str(TRACEFS))
    for event in block_events.EVENTS:
        if not (TRACEFS / "events/block" / event).is_dir():
            raise RefusalError(f"this kernel does not trace {event} (CONFIG_BLK_DEV_IO_TRACE)")


def unmount(folder: Path) -> None:
    """Unmounts a file system, with several attempts: another process may still be examining it."""
    for _ in range(20):
        if not folder.is_mount():
            return
        if subprocess.run(["umount", str(folder)], check=False, capture_output=True).returncode == 0:
            return
        time.sleep(0.25)
    command("umount", str(folder))


def loop_device(stack: contextlib.ExitStack, image: Path) -> tuple[str, bool]:
    """Attaches the image to a free loop device and sets its queue parameters; returns the device's path and
    whether it uses direct I/O.
    """
    direct = True
    try:
        device = command("losetup", "--find", "--show", "--direct-io=on", str(image))
    except RefusalError:
        direct = False
        device = command("losetup", "--find", "--show", str(image))
    stack.callback(command, "losetup", "--detach", device)
    queue = Path("/sys/block", Path(device).name, "queue")
    for name, value in QUEUE.items():
        try:
            (queue / name).write_text(value)
        except OSError as failure:
            raise RefusalError(f"cannot set {queue / name} to {value}: {failure.strerror}") from failure
    return device, direct


def drain(pipe: int, raw_file: BinaryIO, stop: threading.Event) -> None:
    """Copies trace_pipe into raw_file until stop is set and the pipe is empty."""
    while True:
        stopping = stop.is_set()
        try:
            raw_file.write(os.read(pipe, 1 << 16))
        except BlockingIOError:
            if stopping:
                return
            time.sleep(0.02)


@contextlib.contextmanager
def tracing(device: str, raw_file: BinaryIO, buffer_kib: int) -> Iterator[None]:
    """Records the device's block events into raw_file, in a tracing instance of our own."""
    instance = TRACEFS / "instances" / f"ftlab-{os.getpid()}"
    minor = int(Path(device).name.removeprefix("loop"))
    with contextlib.ExitStack() as stack:
        instance.mkdir()
        stack.callback(instance.rmdir)
        (instance / "trace_clock").write_text("mono")
        (instance / "buffer_size_kb").write_text(str(buffer_kib))
        pipe = os.open(instance / "trace_pipe", os.O_RDONLY | os.O_NONBLOCK)
        stack.callback(os.close, pipe)
        stop = threading.Event()
        reader = threading.Thread(target=drain, args=(pipe, raw_file, stop))
        reader.start()
        stack.callback(reader.join)
        stack.callback(stop.set)
        stack.callback((instance / "tracing_on").write_text, "0")
        for event in block_events.EVENTS:
            folder = instance / "events/block" / event
            (folder / "filter").write_text(f"dev == {(LOOP_MAJOR << 20) + minor}")
            (folder / "enable").write_text("1")
        yield


def workload(verb: str, folder: Path, arguments: argparse.Namespace) -> None:
    """Runs phone_workload.py with the command ``verb`` (prepare or run), in a process of its own."""
    words = [sys.executable, str(HERE / "phone_workload.py"), verb, str(folder)]
    words += ["--seed", str(arguments.seed), "--share", str(arguments.share)]
    process = subprocess.Popen(words, stdin=subprocess.DEVNULL, start_new_session=True)
    try:
        if process.wait():
            raise RefusalError(f"the workload failed ({verb}); see above")
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def record(arguments: argparse.Namespace) -> tuple[block_events.Recording, bool]:
    """Sets up the device, runs the workload and records it; returns the recording, and whether direct I/O was
    used.
    """
    with contextlib.ExitStack() as stack:
        mounted_tracefs(stack)
        temporary = tempfile.TemporaryDirectory(prefix="ftlab-record-", dir=arguments.dir)
        folder = Path(stack.enter_context(temporary))
        image, mounted = folder / "image", folder / "mounted"
        mounted.mkdir()
        with image.open("wb") as file:
            file.truncate(arguments.image_mib << 20)
        command("mkfs.ext4", "-q", *MKFS_OPTIONS, str(image))
        device, direct = loop_device(stack, image)
        command("mount", "-o", MOUNT_OPTIONS, device, str(mounted))
        stack.callback(unmount, mounted)
        say("laying out the applications' data")
        workload("prepare", mounted, arguments)
        # After a fresh mount nothing of the file system is in the page cache.
        unmount(mounted)
        command("mount", "-o", MOUNT_OPTIONS, device, str(mounted))
        raw = stack.enter_context(tempfile.TemporaryFile(dir=folder))
        say("recording (the whole workload takes two and a half minutes)")
        with tracing(device, raw, arguments.buffer_kib):
            workload("run", mounted, arguments)
            os.sync()
            # The pause leaves time for the last journal commit, and for the discards that it causes.
            time.sleep(7)
        raw.seek(0)
        recording = block_events.parse(io.TextIOWrapper(raw, "ascii", errors="replace"))
    return recording, direct


def say(text: str) -> None:
    """Prints progress to standard error."""
    print(f"record_trace: {text}", file=sys.stderr, flush=True)


def compressed(recording: block_events.Recording) -> bytes:
    """Returns the csv of a recording, gzipped so that the same recording gives the same bytes."""
    text = io.StringIO()
    block_events.write_csv(recording, text)
    return gzip.compress(text.getvalue().encode("ascii"), compresslevel=9, mtime=0)


def provenance(
    recording: block_events.Recording, direct: bool, arguments: argparse.Namespace, data: bytes
) -> str:
    """Returns the text that says where the trace came from."""
    # Only the part of the release before its first dash is kept: the rest names somebody's build.
    kernel = f"{platform.system()} {platform.release().split('-')[0]} {platform.machine()}"
    version = subprocess.run(["mkfs.ext4", "-V"], check=False, capture_output=True, text=True)
    mkfs = version.stderr.splitlines()[0]
    queue = ", ".join(f"{key} = {value}" for key, value in QUEUE.items())
    rows: dict[str, object] = {
        "file": arguments.out.name,
        "sha256": hashlib.sha256(data).hexdigest(),
        "size": f"{len(data)} bytes",
        "licence": "CC0-1.0 (public domain dedication), by the authors of ftlab",
        "recorded": datetime.date.today().isoformat(),
        "recorded by": f"sudo python3 scripts/record_trace.py --seed {arguments.seed} "
        f"--share {arguments.share} --image-mib {arguments.image_mib}",
        "kernel": kernel,
        "tools": f"SQLite {sqlite3.sqlite_version}, Python {platform.python_version()}, {mkfs}",
        "file system": f"mkfs.ext4 {' '.join(MKFS_OPTIONS)}; mount -o {MOUNT_OPTIONS}",
        "device": f"loop device over a file of {arguments.image_mib} MiB, "
        f"{'direct' if direct else 'buffered'} I/O; {queue}",
        "workload": "scripts/phone_workload.py: six applications at once, "
        "SQLite in WAL and rollback mode, files written, copied and read cold",
        "events": "block_rq_insert and block_rq_merge (reads, writes, discards), "
        "block_rq_issue (flushes); clock mono, in microseconds",
        "account": "every byte at block_bio_queue is in exactly one request",
        **block_events.facts(recording),
    }
    width = max(map(len, rows)) + 2
    return "".join(f"{key + ':':<{width}}{value}\n" for key, value in rows.items())


def write_by_rename(path: Path, data: bytes) -> None:
    """Writes a file that appears completely or not at all."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        # The name can be guessed, and root writes here: a link of that name is not followed.
        with temporary.open("xb") as file:
            file.write(data)
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


def interrupted(signal_number: int, _frame: object) -> NoReturn:
    """Turns a signal to stop into an exception, so that all that was set up is taken down."""
    for number in STOPPING:
        # A further signal must not interrupt the cleanup.
        signal.signal(number, signal.SIG_IGN)
    raise RefusalError(f"stopped by signal {signal_number}; nothing was written")


def parse_arguments() -> argparse.Namespace:
    """Parses the command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    default = HERE.parent / "traces" / "phone-mix.csv.gz"
    add = parser.add_argument
    add("--out", type=Path, default=default, help="the trace (default traces/phone-mix.csv.gz)")
    add("--seed", default="1", help="seed of the workload (default 1)")
    add("--share", type=float, default=1.0, help="part of the workload's bursts to run (default 1.0)")
    add("--image-mib", type=int, default=768, help="size of the file system (default 768 MiB)")
    add("--buffer-kib", type=int, default=16384, help="trace buffer per CPU (default 16384 KiB)")
    add("--dir", help="folder for the image (default: the system's temporary folder)")
    return parser.parse_args()


def main() -> int:
    """Records, converts and writes the trace; if that is impossible, prints a message and returns exit status
    2.
    """
    arguments = parse_arguments()
    for number in STOPPING:
        signal.signal(number, interrupted)
    try:
        check(arguments)
        recording, direct = record(arguments)
        data = compressed(recording)
        name = arguments.out.name
        text = provenance(recording, direct, arguments, data)
        write_by_rename(arguments.out, data)
        write_by_rename(arguments.out.with_name(name.split(".")[0] + ".provenance.txt"), text.encode())
    except (RefusalError, block_events.EventError, OSError) as failure:
        print(f"record_trace: {failure}", file=sys.stderr)
        return 2
    print(text, end="")
    return 0


if __name__ == "__main__":
    sys.exit(main())
