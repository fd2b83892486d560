#!/usr/bin/env python3
"""Record the block requests of a real workload into a trace that ftlab ships.

Makes an ext4 file system in a temporary file, mounts it over a loop device,
runs phone_workload.py on it, records the kernel's block events of that loop
device from tracefs, and writes ftlab's own csv, compressed, beside a file that
says where it came from. Needs root, loop devices, tracefs and mkfs.ext4; needs
neither blktrace nor anything outside Python's standard library. Whatever it
sets up it takes down again, also when it fails or is interrupted.
"""

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
from pathlib import Path

import block_events

HERE = Path(__file__).resolve().parent
TRACEFS = Path("/sys/kernel/tracing")
LOOP_MAJOR = 7
# What the loop device's queue is set to: a scheduler, so that requests are
# inserted into one; read-ahead and largest request as on phones.
QUEUE = {
    "scheduler": "mq-deadline",
    "read_ahead_kb": "128",
    "max_sectors_kb": "512",
    "rotational": "0",
}
MKFS_OPTIONS = ["-F", "-E", "lazy_itable_init=0,lazy_journal_init=0"]
MOUNT_OPTIONS = "discard,noatime"


class Refusal(Exception):
    """Something this machine lacks; the text says what and what to do."""


def command(*words):
    """Run a command; its output, or a Refusal with what it complained of."""
    done = subprocess.run(words, capture_output=True, text=True, stdin=subprocess.DEVNULL)
    if done.returncode:
        raise Refusal(f"{' '.join(words)} failed: {done.stderr.strip() or done.stdout.strip()}")
    return done.stdout.strip()


def check_machine():
    """Refuse, before anything is set up, where the recording cannot work."""
    if sys.platform != "linux":
        raise Refusal("recording needs Linux")
    if os.geteuid() != 0:
        raise Refusal("recording needs root, for the loop device, the mount and tracefs: try sudo")
    for tool in ("mkfs.ext4", "losetup", "mount", "umount"):
        if not shutil.which(tool):
            raise Refusal(f"{tool} is not installed (Debian: e2fsprogs, mount)")
    if not Path("/dev/loop-control").exists():
        raise Refusal("this kernel has no loop devices (/dev/loop-control is missing: modprobe loop)")


def mounted_tracefs(stack):
    """Mount tracefs for as long as the stack lives, unless it is mounted."""
    if not (TRACEFS / "events").is_dir():
        if not TRACEFS.is_dir():
            raise Refusal("this kernel has no tracefs (/sys/kernel/tracing is missing)")
        command("mount", "-t", "tracefs", "nodev", str(TRACEFS))
        stack.callback(command, "umount", str(TRACEFS))
    for event in block_events.EVENTS:
        if not (TRACEFS / "events/block" / event).is_dir():
            raise Refusal(f"this kernel does not trace {event} (CONFIG_BLK_DEV_IO_TRACE)")


def unmount(folder):
    """Unmount, patiently: something may still look at the new file system."""
    for attempt in range(20):
        if subprocess.run(["umount", str(folder)], capture_output=True).returncode == 0:
            return
        time.sleep(0.25)
    command("umount", str(folder))


def loop_device(stack, image):
    """Attach the image to a free loop device and set its queue; the device's path and direct I/O."""
    direct = True
    try:
        device = command("losetup", "--find", "--show", "--direct-io=on", str(image))
    except Refusal:
        direct = False
        device = command("losetup", "--find", "--show", str(image))
    stack.callback(command, "losetup", "--detach", device)
    queue = Path("/sys/block", Path(device).name, "queue")
    for name, value in QUEUE.items():
        try:
            (queue / name).write_text(value)
        except OSError as failure:
            raise Refusal(f"cannot set {queue / name} to {value}: {failure.strerror}") from failure
    return device, direct


def drain(pipe, raw_file, stop):
    """Copy trace_pipe into raw_file until it is empty after stop was set."""
    while True:
        stopping = stop.is_set()
        try:
            raw_file.write(os.read(pipe, 1 << 16))
        except BlockingIOError:
            if stopping:
                return
            time.sleep(0.02)


@contextlib.contextmanager
def tracing(device, raw_file, buffer_kib):
    """Record the device's block events into raw_file, in a tracing instance of our own."""
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


def workload(verb, folder, arguments):
    """Run one verb of the workload as its own process."""
    words = [sys.executable, str(HERE / "phone_workload.py"), verb, str(folder)]
    words += ["--seed", str(arguments.seed), "--share", str(arguments.share)]
    process = subprocess.Popen(words, stdin=subprocess.DEVNULL, start_new_session=True)
    try:
        if process.wait():
            raise Refusal(f"the workload failed ({verb}); see above")
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def record(arguments):
    """Set up, run and record; the recording and how the device was set up."""
    with contextlib.ExitStack() as stack:
        mounted_tracefs(stack)
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="ftlab-record-", dir=arguments.dir)))
        image, mounted = folder / "image", folder / "mounted"
        mounted.mkdir()
        with open(image, "wb") as file:
            file.truncate(arguments.image_mib << 20)
        command("mkfs.ext4", "-q", *MKFS_OPTIONS, str(image))
        device, direct = loop_device(stack, image)
        command("mount", "-o", MOUNT_OPTIONS, device, str(mounted))
        unmount_once = stack.callback(unmount, mounted)
        say("laying out the applications' data")
        workload("prepare", mounted, arguments)
        # Mounted anew, nothing of the file system is in the page cache.
        unmount(mounted)
        command("mount", "-o", MOUNT_OPTIONS, device, str(mounted))
        del unmount_once
        raw = stack.enter_context(tempfile.TemporaryFile(dir=folder))
        say("recording (about two and a half minutes)")
        with tracing(device, raw, arguments.buffer_kib):
            workload("run", mounted, arguments)
            os.sync()
            # The last journal commit, and the discards it sets off.
            time.sleep(7)
        raw.seek(0)
        recording = block_events.parse(io.TextIOWrapper(raw, "ascii", errors="replace"))
    return recording, direct


def say(text):
    """Progress goes to standard error."""
    print(f"record_trace: {text}", file=sys.stderr, flush=True)


def compressed(recording):
    """The csv, gzipped: the same recording gives the same bytes."""
    text = io.StringIO()
    block_events.write_csv(recording, text)
    return gzip.compress(text.getvalue().encode("ascii"), compresslevel=9, mtime=0)


def provenance(recording, direct, arguments, name, data):
    """The text that tells where the trace came from."""
    # The release up to its first dash: the rest names somebody's build.
    kernel = f"{platform.system()} {platform.release().split('-')[0]} {platform.machine()}"
    mkfs = subprocess.run(["mkfs.ext4", "-V"], capture_output=True, text=True).stderr.splitlines()[0]
    queue = ", ".join(f"{key} = {value}" for key, value in QUEUE.items())
    rows = {
        "file": name,
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


def write_by_rename(path, data):
    """Put a file in place whole or not at all."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        temporary.write_bytes(data)
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


def interrupted(signal_number, _frame):
    """Turn a request to stop into an exception, so that everything is taken down."""
    raise Refusal(f"stopped by signal {signal_number}; nothing was written")


def parse_arguments():
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    default = HERE.parent / "traces" / "phone-mix.csv.gz"
    parser.add_argument("--out", type=Path, default=default, help="the trace to write (default traces/phone-mix.csv.gz)")
    parser.add_argument("--seed", type=int, default=1, help="seed of the workload (default 1)")
    parser.add_argument("--share", type=float, default=1.0, help="part of the workload's bursts to run (default 1.0)")
    parser.add_argument("--image-mib", type=int, default=768, help="size of the file system (default 768 MiB)")
    parser.add_argument("--buffer-kib", type=int, default=16384, help="trace buffer per CPU (default 16384 KiB)")
    parser.add_argument("--dir", default=None, help="where the image goes (default: the system's temporary folder)")
    return parser.parse_args()


def main():
    """Record, convert, write; exit status 2 with one message where it cannot be done."""
    arguments = parse_arguments()
    signal.signal(signal.SIGTERM, interrupted)
    signal.signal(signal.SIGINT, interrupted)
    signal.signal(signal.SIGHUP, interrupted)
    try:
        check_machine()
        recording, direct = record(arguments)
        data = compressed(recording)
        name = arguments.out.name
        text = provenance(recording, direct, arguments, name, data)
        write_by_rename(arguments.out, data)
        write_by_rename(arguments.out.with_name(name.split(".")[0] + ".provenance.txt"), text.encode())
    except (Refusal, block_events.BadEvents, OSError) as failure:
        print(f"record_trace: {failure}", file=sys.stderr)
        return 2
    print(text, end="")
    return 0


if __name__ == "__main__":
    sys.exit(main())
