"""A device with its flash in a file: its power is cut, its process is killed, or its disk is full.

`make soak` runs the long form: 1,000 cycles each on tmpfs and on the tests' own disk, and 100 with ext4 on
the device.
"""

from __future__ import annotations

import os
import random
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

import campaign
import ftlab
from front import Cli
from ftlab.configs import load
from live import DEVICES, lacks, need, need_loop, root
from stores import FLUSH, FUA, READ, SECTOR, TRIM, WRITE, Client

SMALL = ["crash", "--set", "ftl.kind=dftl"]
"""A device of a few MiB."""
BUFFERED = {
    "device.power_loss_protection": ["false"],
    "flash.programming": ["word-line"],
    "ftl.power_safe": ["true"],
    "device.write_buffer": ["0B", "16KiB", "64KiB", "256KiB"],
    "device.write_buffer_policy": ["fifo", "lru", "sorted", "block", "adversarial", "adversarial"],
}
"""The write buffers of random devices."""


class Account:
    """The contents that each sector may have: the last known content, and those written since."""

    def __init__(self, sectors: int) -> None:
        self.known = [0] * sectors
        self.since: dict[int, list[int]] = {}
        self.floor: dict[int, int] = {}
        self.version = 0

    def settle(self, data: bytes) -> None:
        """Checks the device's content, and takes it as the known state from then on."""
        for sector, known in enumerate(self.known):
            found = data[sector * SECTOR : (sector + 1) * SECTOR]
            assert found == found[:8] * (SECTOR // 8), f"sector {sector} is torn"
            (version,) = struct.unpack("<Q", found[:8])
            since, floor = self.since.get(sector, []), self.floor.get(sector)
            allowed = [known, *since] if floor is None else since[floor:]
            assert version in allowed, f"sector {sector} holds {version}, not one of {allowed}"
            self.known[sector] = version
        self.since.clear()
        self.floor.clear()

    def load(self, client: Client, draw: random.Random, requests: int) -> None:
        """Writes, trims and flushes until all requests are done or the device is gone."""
        written: dict[int, int] = {}
        for _ in range(requests):
            first = draw.randrange(len(self.known) // (1 if draw.random() < 0.4 else 5))
            count = min(draw.randint(1, 40), len(self.known) - first)
            what, fua = draw.random(), FUA if draw.random() < 0.1 else 0
            if what < 0.2:
                client.ask(FLUSH)
                self.floor.update(written)
                written.clear()
                continue
            if what < 0.35:
                # A trim covers only whole pages.
                first, count = first // 8 * 8, 8
            self.version += what >= 0.35
            version = 0 if what < 0.35 else self.version
            for sector in range(first, first + count):
                self.since.setdefault(sector, []).append(version)
            if version:
                client.ask(
                    WRITE, first * SECTOR, data=struct.pack("<Q", version) * (count * SECTOR // 8), flags=fua
                )
            else:
                client.ask(TRIM, first * SECTOR, count * SECTOR, flags=fua)
            done = {sector: len(self.since[sector]) - 1 for sector in range(first, first + count)}
            written |= done
            if fua:
                self.floor.update(done)


@contextmanager
def started(directory: Path, *arguments: str) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """Starts a device with its flash in `directory`; yields its process and its message. The caller ends the
    process.
    """
    path = directory / "live.sock"
    command = [sys.executable, "-m", "ftlab", "serve", *arguments, "--media", str(directory / "m.nand")]
    with subprocess.Popen(
        [*command, "--nbd", f"unix:{path}"], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stderr
        lines: list[str] = []
        try:
            while not lines or "m.nand: " not in lines[-1]:
                lines.append(process.stderr.readline())
                assert lines[-1], lines
            yield process, lines[-1]
        except BaseException:
            process.kill()
            raise
        process.wait(timeout=60)


def tell(directory: Path, words: str) -> bytes:
    """Sends words to the device over its control socket; returns its answer."""
    with socket.socket(socket.AF_UNIX) as control:
        control.connect(str(directory / "live.sock.ctl"))
        control.sendall(words.encode() + b"\n")
        return b"".join(iter(lambda: control.recv(1 << 16), b""))


def choices() -> dict[str, list[str]]:
    """Returns the keys of a device that the schema gives a list of choices, with these."""
    found = {}

    def walk(path: str, properties: dict[str, Any]) -> None:
        for name, about in properties.items():
            walk(f"{path}.{name}", about.get("properties", {}))
            values = ["true", "false"] if about.get("type") == "boolean" else about.get("enum", [])
            found[f"{path}.{name}"] = [str(value) for value in values]

    for section in ("host", "device", "ftl", "flash"):
        walk(section, ftlab.schema()["properties"][section]["properties"])
    return {key: values for key, values in found.items() if values}


def drawn(draw: random.Random) -> list[str]:
    """Returns the arguments of a random small device with a write buffer whose power can be cut; choices that
    do not go together are left out.
    """
    keys = {**choices(), "ftl.over_provisioning": ["25%", "50%"], "device.queue_depth": ["1", "4", "32"]}
    while True:
        # Fewer log blocks are too few for a hybrid FTL of this size.
        given = {"ftl.log_blocks": "15%"}
        for key in ["ftl.kind", *draw.sample(list(keys), 12), *BUFFERED]:
            more = {**given, key: draw.choice(BUFFERED.get(key) or keys[key])}
            with suppress(ftlab.UserError):
                load({"preset": "crash", **more})
                given = more
        with suppress(ftlab.UserError):
            ftlab.crash({"preset": "crash", **given}, cuts=1, operations=1)
            return ["crash", *(word for pair in given.items() for word in ("--set", "=".join(pair)))]


def endure(
    directory: Path, draw: random.Random, account: Account | None, keys: Sequence[str] = SMALL
) -> Account:
    """Does one cycle: compares the file's content, runs a load, and ends the device in one of five ways."""
    if draw.random() < 0.2:
        doomed(directory, draw, keys)
    device = started(directory, *keys, "--time", "free")
    with device as (process, said), Client(directory / "live.sock") as client:
        account = account or Account(client.size // SECTOR)
        account.settle(client.ask(READ, 0, client.size))
        end = draw.randrange(5)
        assert ": made" in said or "pages read" in said or "checkpoint" in said, said
        killer = threading.Timer(draw.uniform(0.001, 0.2), process.kill)
        if end == 0:
            killer.start()
        elif end == 1:
            assert tell(directory, f"cut {draw.randint(1, 600)} {draw.randrange(99)}") == b"{}\n"
        with suppress(OSError):
            account.load(client, draw, 100_000 if end < 2 else draw.randrange(200))
        if end == 2:
            assert tell(directory, "cut") == b"{}\n"
        elif end >= 3:
            process.send_signal(signal.SIGTERM)
        if end == 4:
            # It is killed while it stops, or has stopped by then.
            time.sleep(draw.uniform(0, 0.03))
            process.kill()
        status = process.wait(timeout=60)
        expected = {0: [-signal.SIGKILL], 4: [-signal.SIGKILL, 0]}.get(end, [0])
        assert status in expected, process.stderr and process.stderr.read()
    return account


def doomed(directory: Path, draw: random.Random, keys: Sequence[str]) -> None:
    """Starts a device and kills it, perhaps while it recovers."""
    command = [sys.executable, "-m", "ftlab", "serve", *keys, "--media", str(directory / "m.nand")]
    with subprocess.Popen(
        [*command, "--nbd", f"unix:{directory}/live.sock"], stderr=subprocess.PIPE
    ) as process:
        time.sleep(draw.uniform(0.3, 1))
        process.kill()


@pytest.mark.parametrize("where", ["tmpfs", "disk"])
def test_what_was_promised_outlasts_cuts_kills_and_stops(tmp_path: Path, where: str) -> None:
    """Data that a completed flush or FUA covers are there; every other sector is old or new, and none is
    torn.
    """
    if where == "tmpfs" and not os.access("/dev/shm", os.W_OK):
        lacks("/dev/shm is not there, or not for this user")
    with tempfile.TemporaryDirectory(dir="/dev/shm" if where == "tmpfs" else tmp_path) as name:
        account = None
        for seed in campaign.cases(f"live-cuts-{where}", range(10)):
            account = endure(Path(name), random.Random(seed), account)


def test_random_devices_keep_their_promises(tmp_path: Path) -> None:
    """Regression: a new device was refused after a cut, as a copy put back, if it had not programmed
    anything; and one whose process was killed while it wrote its checkpoint, as damaged.
    """
    for seed in campaign.cases("live-cuts-random", range(2)):
        draw = random.Random(seed)
        keys, account = drawn(draw), None
        with tempfile.TemporaryDirectory(dir=tmp_path) as name:
            for cycle in range(8):
                try:
                    account = endure(Path(name), draw, account, keys)
                except BaseException as error:
                    error.add_note(f"seed {seed}, cycle {cycle}: {' '.join(keys)}")
                    raise


def test_how_the_file_was_left_is_told(tmp_path: Path, cli: Cli) -> None:
    """The message says that the file was made, or was left by a stop, a cut or a kill; the control command's
    output is checked too.
    """
    with started(tmp_path, *SMALL) as (process, said):
        assert said.endswith(": made\n")
        refused = cli("ctl", str(tmp_path / "live.sock"), "stats", "--after", "3")
        assert refused.returncode == 2 and "belong to cut" in refused.stderr
        process.send_signal(signal.SIGTERM)
    with started(tmp_path, *SMALL) as (process, said):
        assert "its checkpoint loaded" in said
        cli.ok("ctl", str(tmp_path / "live.sock"), "cut")
        assert process.wait(timeout=30) == 0
    with started(tmp_path, *SMALL) as (process, said):
        assert "recovered from flash alone in " in said and " pages read" in said
        process.kill()
    with started(tmp_path, *SMALL) as (process, said):
        assert "recovered" in said
        process.send_signal(signal.SIGTERM)


def test_files_of_others_are_refused_and_untouched(tmp_path: Path, cli: Cli) -> None:
    """Files of another device, version or kind, damaged files and files in use lead to status 2, and no byte
    of them changes.
    """
    path = tmp_path / "m.nand"
    device = started(tmp_path, *SMALL, "--time", "free")
    with device as (process, _), Client(tmp_path / "live.sock") as client:
        for at in range(40):
            client.ask(WRITE, at * 4096, data=bytes([at + 1]) * 4096)
        serve = ("serve", *SMALL, "--nbd", f"unix:{tmp_path}/other.sock", "--media")
        used = cli(*serve, str(path))
        assert used.returncode == 2 and "another process has it open" in used.stderr
        process.send_signal(signal.SIGTERM)
    whole = path.read_bytes()
    draw = random.Random(5)
    # In the first parts of the file every byte matters; in the others, only bytes outside holes matter.
    drawn = [at for at in draw.sample(range(len(whole)), 4000) if whole[at]]
    places = [0, 8, 20, 65536, *drawn[:12]]
    cases = [(whole[:at] + bytes([whole[at] ^ 0x10]) + whole[at + 1 :], "") for at in places if whole[at]]
    cases += [(whole[:-1], "damaged"), (whole + b"x", "damaged"), (b"text" * 20, "not a media file")]
    cases += [(whole[:8] + b"\x02" + whole[9:], "version 2")]
    bad = tmp_path / "bad.nand"
    for content, word in cases:
        bad.write_bytes(content)
        done = cli(*serve, str(bad))
        assert done.returncode == 2 and word in done.stderr and "bad.nand: " in done.stderr, done.stderr
        assert bad.read_bytes() == content
    other = cli(*serve, str(path), "--set", "flash.pages_per_block=32")
    assert other.returncode == 2 and "flash.pages_per_block: 16 there, 32 here" in other.stderr, other.stderr
    directory = cli(*serve, str(tmp_path))
    assert directory.returncode == 2 and "regular file" in directory.stderr
    unsafe = cli(*serve, str(tmp_path / "new"), "--set", "ftl.power_safe=false")
    assert unsafe.returncode == 2 and "ftl.power_safe" in unsafe.stderr
    worn = ("--set", "ftl.kind=fast", "--set", "ftl.log_blocks=15%", "--set", "flash.endurance=100")
    hybrid = cli(*serve, str(tmp_path / "new"), *worn)
    assert hybrid.returncode == 2 and "hybrid FTLs" in hybrid.stderr, hybrid.stderr
    assert not list(tmp_path.glob("new*"))
    assert path.read_bytes() == whole


def test_power_is_cut_only_where_something_is_left(tmp_path: Path, cli: Cli) -> None:
    from live import served

    with served(tmp_path, *DEVICES["page"]) as device:
        refused = cli("ctl", str(device.path), "cut")
        assert refused.returncode == 2 and "--media" in refused.stderr


def test_a_full_disk_fails_writes_and_not_reads(tmp_path: Path) -> None:
    """On a full disk writes fail and reads do not; once there is room again the device continues, and the
    data that it promised to keep are there.
    """
    need("mount")
    if os.geteuid() != 0:
        lacks("only root may mount a small file system")
    small = tmp_path / "small"
    small.mkdir()
    root("mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", small)
    try:
        (small / "ballast").write_bytes(bytes(300_000))
        device = started(small, *SMALL, "--time", "free")
        with device as (process, _), Client(small / "live.sock") as client:
            page = 0
            with pytest.raises(OSError, match=r"No space|Input/output"):
                for page in range(client.size // 4096):
                    client.ask(WRITE, page * 4096, data=bytes([page % 255 + 1]) * 4096)
            assert page > 50
            assert client.ask(READ, 0, page * 4096)[::4096] == bytes(at % 255 + 1 for at in range(page))
            with pytest.raises(OSError):
                client.ask(WRITE, 0, data=b"y" * 4096)
            (small / "ballast").unlink()
            client.ask(WRITE, 0, data=b"y" * 4096, flags=FUA)
            process.kill()
        with started(small, *SMALL) as (process, _), Client(small / "live.sock") as client:
            found = client.ask(READ, 0, page * 4096)[::4096]
            assert found == b"y" + bytes(at % 255 + 1 for at in range(1, page))
            process.send_signal(signal.SIGTERM)
    finally:
        root("umount", small)


@pytest.mark.parametrize("buffer", ["0B", "256KiB"])
def test_ext4_on_it_is_whole_after_every_cut(tmp_path: Path, buffer: str) -> None:
    """With data=ordered, e2fsck finds nothing once the journal is replayed. A write buffer loses only what
    was not flushed.
    """
    need_loop()
    need("mkfs.ext4", "e2fsck")
    mount, at = tmp_path / "mnt", tmp_path / "fs"
    mount.mkdir()
    at.mkdir()
    device = ["map-plus", "--set", "flash.blocks_per_plane=128", "--time", "free", "--fuse", str(mount)]
    device += ["--set", f"device.write_buffer={buffer}", "--set", "device.queue_depth=16"]
    for seed in campaign.cases(f"live-cuts-ext4-{buffer}", range(3)):
        draw = random.Random(seed)
        with started(tmp_path, *device) as (process, said):
            block = root("losetup", "--direct-io=on", "--find", "--show", mount / "disk").strip()
            try:
                if ": made" in said:
                    root("mkfs.ext4", "-q", block)
                    root("sync")
                else:
                    root("mount", "-o", "data=ordered", block, at)
                    root("umount", at)
                    root("e2fsck", "-fn", block)
                root("mount", "-o", "data=ordered", block, at)
                kept = at / "kept"
                if kept.exists():
                    assert kept.read_text() == "as it was promised\n"
                kept.write_text("as it was promised\n")
                descriptor = os.open(kept, os.O_RDONLY)
                os.fsync(descriptor)
                os.close(descriptor)
                tell(tmp_path, f"cut {draw.randint(1, 300)} {seed}")
                with suppress(OSError):
                    for number in range(100_000):
                        shutil.rmtree(at / f"d{(number - 20) // 5}", ignore_errors=True)
                        (at / f"d{number // 5}").mkdir(exist_ok=True)
                        file = at / f"d{number // 5}" / f"f{number}"
                        file.write_bytes(draw.randbytes(draw.randrange(50_000)))
                        descriptor = os.open(file, os.O_RDONLY)
                        try:
                            os.fsync(descriptor)
                        finally:
                            os.close(descriptor)
                assert process.wait(timeout=60) == 0
            finally:
                subprocess.run(["umount", "--lazy", at], capture_output=True, check=False)
                subprocess.run(["losetup", "--detach", block], capture_output=True, check=False)
                subprocess.run(["umount", "--lazy", mount], capture_output=True, check=False)


STORE = """
import os, sys
mode, at = sys.argv[1], os.environ["FTLAB_DISK"]
work = os.getcwd()
fs = os.path.join(work, "fs")

def shell(*words):
    import subprocess
    done = subprocess.run(words, capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"{words}: {done.stdout}{done.stderr}")
    return done.stdout.strip()

def mend(block):
    # The superblock is two sectors with one checksum (CRC-32C), written in place. A torn one gets that of
    # what is there; whatever else is damaged stays so, and the mount refuses it or replays the journal.
    with open(block, "r+b") as disk:
        disk.seek(1024)
        held = disk.read(1024)
        crc = 0xFFFFFFFF
        for byte in held[:1020]:
            crc ^= byte
            for _ in range(8):
                crc = crc >> 1 ^ (0x82F63B78 & -(crc & 1))
        if held[56:58] == (0xEF53).to_bytes(2, "little") and held[1020:] != crc.to_bytes(4, "little"):
            disk.seek(2044)
            disk.write(crc.to_bytes(4, "little"))

block = shell("losetup", "--direct-io=on", "--find", "--show", at)
try:
    if mode == "make":
        shell("mkfs.ext4", "-q", "-E", "lazy_itable_init=0", block)
        sys.exit()
    os.makedirs(fs, exist_ok=True)
    if mode == "judge":
        mend(block)
    shell("mount", "-o", "OPTIONS", block, fs)
    try:
        PROGRAM
    finally:
        os.system(f"umount --lazy {fs}")
finally:
    os.system(f"losetup --detach {block}")
"""
"""A program that stores numbers on an ext4 file system on the device, and prints those it has acknowledged.
"""

KEYS = """
        store = os.path.join(fs, "store")
        if mode == "judge":
            told = open("told").read().split() if os.path.exists("told") else []
            kept = open(store).read().split() if os.path.exists(store) else []
            sys.exit(f"{len(kept)} keys of {len(told)}" if kept[:len(told)] != told else 0)
        with open(store, "w", buffering=1) as keys, open("told", "w", buffering=1) as told:
            for number in range(60):
                print(f"key-{number}", file=keys)
                if number % 20 == 19:
                    os.system(f"sync -f {fs}")
                print(f"key-{number}", file=told)
"""

SQLITE = """
        import sqlite3
        store = os.path.join(fs, "store")
        base = sqlite3.connect(store, isolation_level=None)
        base.execute("pragma journal_mode=JOURNAL").fetchall()
        base.execute("pragma synchronous=SYNCHRONOUS")
        base.execute("create table if not exists t (n integer primary key, text)")
        if mode == "judge":
            told = open("told").read().split() if os.path.exists("told") else []
            found = base.execute("pragma integrity_check").fetchall()
            if found != [("ok",)]:
                sys.exit(f"{found}")
            kept = {str(n) for n, in base.execute("select n from t")}
            sys.exit(f"{set(told) - kept} lost" if set(told) - kept else 0)
        with open("told", "w", buffering=1) as told:
            for number in range(40):
                base.execute("insert into t values (?, ?)", (number, "x" * 500))
                if number % 20 == 19:
                    os.system(f"sync -f {fs}")
                print(number, file=told)
        base.close()
"""


RENAMES = """
        if mode == "judge":
            told = open("told").read().split() if os.path.exists("told") else []
            kept = {name: open(os.path.join(fs, name)).read() for name in os.listdir(fs) if name[0] == "k"}
            lost = [name for name in told if kept.get(name) != name]
            sys.exit(f"{lost} of {len(told)} lost" if lost else 0)
        folder = os.open(fs, os.O_RDONLY)
        with open("told", "w", buffering=1) as told:
            for number in range(20):
                with open(os.path.join(fs, "new"), "w") as new:
                    new.write(f"key-{number}")
                    new.flush()
                    FSYNC(new.fileno())
                os.rename(os.path.join(fs, "new"), os.path.join(fs, f"key-{number}"))
                SYNC(folder)
                print(f"key-{number}", file=told)
        os.close(folder)
"""
"""A program that puts each key into a file of its own, under a temporary name first."""


def renames(file: bool = True, directory: bool = True) -> str:
    """Returns the program, which syncs each file before it is renamed, and the directory afterwards."""
    nothing = "(lambda _: None)"
    return RENAMES.replace("FSYNC", "os.fsync" if file else nothing).replace(
        "SYNC", "os.fsync" if directory else nothing
    )


def store_of(program: str, mount: str = "defaults") -> str:
    """Returns a program whose data are on an ext4 file system, mounted with these options."""
    return STORE.replace("        PROGRAM", program.strip("\n")).replace("OPTIONS", mount)


def campaign_of(
    tmp_path: Path, program: str, cuts: int, mount: str = "defaults"
) -> subprocess.CompletedProcess[str]:
    """Runs a program under power cuts, with its data on an ext4 file system on the device."""
    script = tmp_path / "store.py"
    script.write_text(store_of(program, mount))
    words = f"{sys.executable} {script}"
    command = [
        *(
            sys.executable,
            "-m",
            "ftlab",
            "crash",
            "map-plus",
            "--set",
            "flash.blocks_per_plane=128",
            "--live",
        ),
        *("--fuse", "--cuts", str(cuts), "--jobs", "2", "--setup-command", f"{words} make"),
        *("--check-command", f"{words} judge", "--", sys.executable, str(script), "load"),
    ]
    most = 36_000 if campaign.long() else 600
    return subprocess.run(command, capture_output=True, text=True, timeout=most, check=False)


def cuts_of(short: int) -> int:
    """Returns the number of cuts that a program has to survive."""
    return 1000 if campaign.long() else short


@pytest.mark.parametrize(("journal", "how"), [("wal", "full"), ("truncate", "full"), ("delete", "extra")])
def test_programs_that_ask_for_durability_have_it(tmp_path: Path, journal: str, how: str) -> None:
    """SQLite, in WAL mode and in rollback mode, loses nothing that it acknowledged.

    Where a commit is the deletion of the journal, synchronous=FULL does not sync the directory, so the last
    commit may be rolled back.
    """
    need_loop()
    need("mkfs.ext4")
    program = SQLITE.replace("JOURNAL", journal).replace("SYNCHRONOUS", how)
    done = campaign_of(tmp_path, program, cuts_of(6))
    assert done.returncode == 0, done.stdout + done.stderr
    assert "0 failed" in done.stdout


@pytest.mark.parametrize("which", ["keys", "sqlite", "no directory sync", "no file sync", "no barrier"])
def test_programs_that_lose_data_are_caught(tmp_path: Path, which: str) -> None:
    """A key-value store without fsync, files renamed without a sync of them or of their directory, and SQLite
    with synchronous=OFF fail within 20 cuts; on an ext4 without barriers a correct program does within 50.
    """
    need_loop()
    need("mkfs.ext4")
    program, cuts, mount = {
        "keys": (KEYS, 20, "defaults"),
        "sqlite": (SQLITE.replace("JOURNAL", "delete").replace("SYNCHRONOUS", "off"), 20, "defaults"),
        "no directory sync": (renames(directory=False), 20, "defaults"),
        "no file sync": (renames(file=False, directory=False), 20, "defaults"),
        "no barrier": (renames(), 50, "barrier=0"),
    }[which]
    done = campaign_of(tmp_path, program, cuts, mount)
    assert done.returncode == 1, done.stdout + done.stderr
    assert "lost: " in done.stderr and "the last " in done.stderr, done.stderr
    assert "To see it again: the same command with --seed " in done.stderr, done.stderr


def test_files_renamed_with_both_syncs_are_kept(tmp_path: Path) -> None:
    """The correct twin of the programs that rename files."""
    need_loop()
    need("mkfs.ext4")
    done = campaign_of(tmp_path, renames(), cuts_of(6))
    assert done.returncode == 0, done.stdout + done.stderr
    assert "0 failed" in done.stdout


def test_the_end_of_a_campaign_kills_nobody(tmp_path: Path) -> None:
    """Regression: a check that was running when another cut failed was killed, and its mount remained."""
    need_loop()
    # The first check belongs to the run without a cut; the second check fails as soon as the third has
    # begun.
    check = f"""cd {tmp_path}
        mkdir rehearsed && exit
        if mkdir first; then until [ -e second ]; do sleep 0.01; done; exit 1; fi
        mkdir second && sleep 1 && mkdir unmounted
        exit 0"""
    load = "dd if=/dev/zero of=$FTLAB_DISK bs=4k count=16 conv=notrunc,fsync"
    command = [sys.executable, "-m", "ftlab", "crash", *SMALL, "--live", "--fuse", "--cuts", "9"]
    done = subprocess.run(
        [*command, "--jobs", "2", "--check-command", check, "--", "/bin/sh", "-c", load],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 1, done.stdout + done.stderr
    assert (tmp_path / "unmounted").exists(), done.stderr


@pytest.mark.parametrize("within", ["rehearsal", "cuts"])
def test_an_interrupted_campaign_leaves_nothing(tmp_path: Path, within: str) -> None:
    """Regression: the campaign left the device mounted, its folder in place, and the programs running."""
    need_loop()
    load = "dd if=/dev/zero of=$FTLAB_DISK bs=4k count=16 conv=notrunc,fsync"
    check = f"echo >> {tmp_path}/checks; sleep 1; [ -e $FTLAB_DISK ] && echo >> {tmp_path}/whole"
    command = [
        sys.executable,
        "-m",
        "ftlab",
        "crash",
        *SMALL,
        "--live",
        "--fuse",
        "--cuts",
        "99",
        "--jobs",
        "2",
    ]
    checks, whole = tmp_path / "checks", tmp_path / "whole"
    with subprocess.Popen(
        [*command, "--jobs", "2", "--check-command", check, "--", "/bin/sh", "-c", load],
        env={**os.environ, "TMPDIR": str(tmp_path)},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        wanted = 1 if within == "rehearsal" else 3
        while not checks.exists() or len(checks.read_text()) < wanted:
            assert process.poll() is None
            time.sleep(0.02)
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=60)
    assert (process.returncode, said.splitlines()[-1]) == (130, "interrupted")
    # Each check that had begun ended by itself, with its device in place.
    assert whole.read_text() == checks.read_text()
    assert not list(tmp_path.glob("ftlab-*"))
    assert str(tmp_path) not in Path("/proc/mounts").read_text()
