"""The live device as a file, and file systems on it.

`make soak` has the long form: 20 seeds of 10,000 operations, a larger repository and database.
"""

from __future__ import annotations

import json
import os
import random
import sqlite3
from collections import Counter
from contextlib import closing, suppress
from pathlib import Path

import pytest

import campaign
from front import Cli
from fsx import Fsx, fallocate
from live import DEVICES, lacks, loop, mounted, need, need_loop, root, served

SIZED = ["map-plus", "--set", "flash.blocks_per_plane=2048", "--time", "free"]
"""A device of 400 MiB: xfs needs at least 300."""
PUNCH, ZERO = 3, 16
MAKE = {"ext4": ["mkfs.ext4", "-q", "-F"], "xfs": ["mkfs.xfs", "-q", "-f"]}


def need_fuse() -> None:
    """Skips a test if nothing can be mounted; in CI, fails it."""
    if not os.access("/dev/fuse", os.R_OK | os.W_OK):
        lacks("/dev/fuse is not there, or not for this user")


def test_the_device_is_a_file_of_its_own_size(tmp_path: Path) -> None:
    """The file is read and written at any byte, holes are punched and ranges zeroed, and its size stays the
    same; NBD clients see the same bytes.
    """
    need_fuse()
    need("nbdsh")
    with served(tmp_path, *DEVICES["page"], "--time", "free", fuse=True) as device:
        size = device.disk.stat().st_size
        device.shell(f"h.connect_uri(URI)\nassert h.get_size() == {size}")
        file = os.open(device.disk, os.O_RDWR)
        os.pwrite(file, b"x" * 20_000, 100)
        fallocate(file, PUNCH, 5000, 9000)
        assert os.pread(file, 30_000, 0) == bytes(100) + b"x" * 4900 + bytes(9000) + b"x" * 6100 + bytes(9900)
        fallocate(file, ZERO, 0, 200)
        fallocate(file, 0, 0, size)
        assert os.pread(file, 300, 0) == bytes(200) + b"x" * 100
        os.pwrite(file, b"durable", size - 7)
        assert os.pread(file, 100, size - 7) == b"durable"
        assert os.pread(file, 100, size) == b""
        os.fsync(file)
        for refused in (
            lambda: os.ftruncate(file, 4096),
            lambda: os.pwrite(file, b"12345678", size - 7),
            lambda: fallocate(file, 0, size, 1),
        ):
            with pytest.raises(OSError):
                refused()
        # This hole is larger than one request can be, and ends beyond the end of the file.
        fallocate(file, PUNCH, 0, 1 << 40)
        os.close(file)
        device.shell(
            f"h.connect_uri(URI)\nassert h.pread(8192, 0) == bytes(8192)\nassert h.get_size() == {size}"
        )
        assert sorted(path.name for path in device.disk.parent.iterdir()) == [
            "disk",
            "health.json",
            "stats.json",
        ]
        stats = json.loads((device.disk.parent / "stats.json").read_text())
        assert stats["schema"] == "ftlab.result.v1" and stats["trace"]["writes"] > 2
        assert json.loads((device.disk.parent / "health.json").read_text()) == stats["health"]
    assert device.result["trace"]["flushes"] == 1
    assert not device.disk.exists()


def test_writes_that_ask_for_it_are_durable(tmp_path: Path) -> None:
    """A write with O_DSYNC has FUA; a write without it has not; fsync becomes a flush."""
    need_fuse()
    recording = tmp_path / "recording.csv"
    arguments = [*DEVICES["page"], "--time", "free", "--record", str(recording)]
    with served(tmp_path, *arguments, fuse=True) as device:
        for flags in (0, os.O_DSYNC, os.O_SYNC):
            file = os.open(device.disk, os.O_RDWR | flags)
            os.pwrite(file, b"x" * 4096, 0)
            os.close(file)
        file = os.open(device.disk, os.O_RDWR)
        os.fdatasync(file)
        os.close(file)
    ops = [line.split(",")[1] for line in recording.read_text().splitlines()[1:]]
    # The kernel may add writes of its own after O_SYNC.
    assert ops[0] == "W" and ops[1] == "WF" and "WF" in ops[2:4] and ops[-1] == "F"


def test_a_read_only_file_refuses_writes(tmp_path: Path) -> None:
    need_fuse()
    with served(tmp_path, *DEVICES["page"], "--read-only", fuse=True) as device:
        assert device.disk.read_bytes()[:100] == bytes(100)
        with pytest.raises(OSError, match="Read-only"):
            os.open(device.disk, os.O_RDWR)


def test_unmounting_ends_the_device(tmp_path: Path) -> None:
    need_fuse()
    need("umount")
    with served(tmp_path, *DEVICES["page"], fuse=True) as device:
        root("umount", device.disk.parent)
        assert device.process.wait(timeout=30) == 0


def test_a_device_in_use_is_stopped(tmp_path: Path) -> None:
    """A process that has the file open gets errors once the device stops; nothing hangs or stays mounted."""
    need_fuse()
    with served(tmp_path, *DEVICES["page"], fuse=True) as device:
        file = os.open(device.disk, os.O_RDWR)
        os.pwrite(file, b"x" * 4096, 0)
    with pytest.raises(OSError):
        os.pread(file, 4096, 0)
    with suppress(OSError):
        os.close(file)
    assert device.result["trace"]["writes"] == 1
    assert not os.path.ismount(tmp_path / "mnt")


def test_a_directory_that_cannot_be_mounted_is_refused(tmp_path: Path, cli: Cli) -> None:
    (tmp_path / "file").write_text("")
    for name, word in (("file", "not a directory"), ("nothing", "there is no directory")):
        done = cli("serve", *DEVICES["page"], "--fuse", str(tmp_path / name))
        assert done.returncode == 2 and word in done.stderr, done.stderr


@pytest.mark.parametrize("name", ["page", "dftl"])
def test_fio_finds_what_it_wrote(tmp_path: Path, name: str) -> None:
    """Blocks are trimmed and rewritten, and fio verifies them; writes to the file have FUA."""
    need_fuse()
    need("fio")
    recording = tmp_path / "recording.csv"
    arguments = ["--set", "flash.blocks_per_plane=1024", "--time", "free", "--record", str(recording)]
    size = "100m" if campaign.long() else "8m"
    with served(tmp_path, *DEVICES[name], *arguments, fuse=True) as device:
        verified = ["--bs=4k", f"--size={size}", "--verify=crc32c", "--verify_fatal=1", "--do_verify=1"]
        nbd = ["--ioengine=nbd", f"--uri={device.uri}", "--iodepth=16"]
        device.client("fio", "--name=anew", "--rw=randtrimwrite", *verified, *nbd)
        beside = ["--name=trims", "--rw=randtrim", "--bs=4k", f"--size={size}", f"--offset={size}", *nbd]
        device.client("fio", "--name=job", "--rw=randrw", "--fsync=37", *verified, *nbd, *beside)
        file = ["--ioengine=libaio", "--iodepth=8", "--direct=1", f"--filename={device.disk}", "--sync=dsync"]
        device.client("fio", "--name=file", "--rw=randrw", *verified, *file)
    ops = Counter(line.split(",")[1] for line in recording.read_text().splitlines()[1:])
    assert min(ops[op] for op in ("R", "W", "T", "WF")) > 500 and ops["F"] > 10, ops


@pytest.mark.parametrize("name", ["page", "dftl", "bast", "fast"])
def test_random_operations_on_the_file_itself(tmp_path: Path, name: str) -> None:
    """Every byte of the device's file equals that of a plain array."""
    need_fuse()
    with served(tmp_path, *DEVICES[name], "--time", "free", fuse=True) as device:
        for seed in campaign.cases(f"live-file-{name}", range(1)):
            fsx = Fsx(device.disk, seed, fixed=True)
            fsx.run(10_000 if campaign.long() else 500)
            fsx.close()


@pytest.mark.parametrize("kind", MAKE)
def test_random_operations_on_a_file_system(tmp_path: Path, kind: str) -> None:
    """Every byte of a file in a file system equals that of a plain array, even after a remount."""
    need_loop()
    need(MAKE[kind][0])
    with served(tmp_path, *SIZED, fuse=True) as device, loop(device.disk) as block:
        root(*MAKE[kind], block)
        for seed in campaign.cases(f"live-{kind}", range(2)):
            with mounted(block, tmp_path / "fs") as at:
                fsx = Fsx(at / f"file-{seed}", seed)
                fsx.run(10_000 if campaign.long() else 500)
                fsx.close()
            with mounted(block, tmp_path / "fs") as at:
                assert (at / f"file-{seed}").read_bytes() == fsx.model
                root("fstrim", at)
        root(*(["e2fsck", "-fn"] if kind == "ext4" else ["xfs_repair", "-n"]), block)


BUILD = """
program: $(patsubst %.c,%.o,$(wildcard part*.c)) main.o
	cc -o $@ $^
%.o: %.c
	cc -c -o $@ $<
"""


def test_a_build_and_its_repository(tmp_path: Path) -> None:
    """Programs built on ext4 run, and git finds nothing wrong, even after a remount."""
    need_loop()
    need("git", "make", "cc", "mkfs.ext4")
    parts = 400 if campaign.long() else 20
    with served(tmp_path, *SIZED, fuse=True) as device, loop(device.disk) as block:
        root(*MAKE["ext4"], block)
        with mounted(block, tmp_path / "fs") as at:
            (at / "Makefile").write_text(BUILD)
            declared = "".join(f"int part{n}(void);" for n in range(parts))
            calls = "+".join(f"part{n}()" for n in range(parts))
            (at / "main.c").write_text(
                f"{declared} int main(void) {{ return {calls} != {sum(range(parts))}; }}"
            )
            for n in range(parts):
                (at / f"part{n}.c").write_text(f"int part{n}(void) {{ return {n}; }}\n")
            git = ["git", "-C", str(at), "-c", "user.name=t", "-c", "user.email=t@example.org"]
            root("git", "init", "-q", at)
            for n in range(5):
                (at / "changes").write_bytes(random.Random(n).randbytes(1 << 20))
                root("make", "-C", at, "-j4")
                root(*git, "add", "-A")
                root(*git, "commit", "-q", "-m", str(n))
            root(*git, "gc", "-q")
        with mounted(block, tmp_path / "fs") as at:
            root("git", "-C", at, "-c", f"safe.directory={at}", "fsck", "--full", "--strict")
            root(at / "program")
        root("e2fsck", "-fn", block)


@pytest.mark.parametrize("journal", ["delete", "wal"])
def test_a_database(tmp_path: Path, journal: str) -> None:
    """After transfers between accounts, as in TPC-B, SQLite finds its file intact, and no money is lost."""
    need_loop()
    need("mkfs.ext4")
    transfers, accounts = (20_000, 100_000) if campaign.long() else (300, 1000)
    pick = random.Random(1)
    with served(tmp_path, *SIZED, fuse=True) as device, loop(device.disk) as block:
        root(*MAKE["ext4"], block)
        with mounted(block, tmp_path / "fs") as at, closing(sqlite3.connect(at / "bank.db")) as bank:
            bank.execute(f"pragma journal_mode = {journal}")
            bank.execute("pragma synchronous = full")
            bank.execute(
                "create table account (id integer primary key, teller int, balance int, filler text)"
            )
            bank.execute("create table history (account int, other int, amount int)")
            bank.execute("create index by_teller on account (teller, balance)")
            rows = ((n, n % 100, 1000, "x" * 80) for n in range(accounts))
            bank.executemany("insert into account values (?, ?, ?, ?)", rows)
            bank.commit()
            for _ in range(transfers):
                one, other, amount = pick.randrange(accounts), pick.randrange(accounts), pick.randrange(100)
                bank.execute("update account set balance = balance - ? where id = ?", (amount, one))
                bank.execute("update account set balance = balance + ? where id = ?", (amount, other))
                bank.execute("insert into history values (?, ?, ?)", (one, other, amount))
                bank.commit()
        with mounted(block, tmp_path / "fs") as at, closing(sqlite3.connect(at / "bank.db")) as bank:
            assert bank.execute("pragma integrity_check").fetchall() == [("ok",)]
            assert bank.execute("select sum(balance) from account").fetchone() == (1000 * accounts,)
            assert bank.execute("select count(*) from history").fetchone() == (transfers,)
        root("e2fsck", "-fn", block)
    assert device.result["trace"]["flushes"] >= transfers
