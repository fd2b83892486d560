#!/usr/bin/env python3
"""What six phone applications do to one file system at the same time.

``prepare DIR`` lays out their data, ``run DIR`` uses it: each application is a process that thinks, then
works in a burst of parallel jobs, as applications do when somebody looks at them. Inside a burst the jobs are
paced by networks, decoders and fingers: short random pauses. Databases are SQLite's, with both kinds of
journal and Android's small write-ahead log; every commit is synchronous; files are dropped from the page
cache before they are read, so that reads reach the device. Recent and popular data is used more often.

Everything random comes from one seed, so two runs issue the same operations;
their interleaving, and so the block trace, differs from run to run. File
contents are random bytes.
"""

# ruff: noqa: D102  (what `prepare` and `burst` are is said once, at Application)

from __future__ import annotations

import argparse
import contextlib
import multiprocessing
import os
import random
import sqlite3
import sys
import threading
import time
from collections.abc import Callable, Iterable
from pathlib import Path

KIB = 1024
MIB = 1024 * KIB


def drop_from_page_cache(path: Path) -> None:
    """Drops the clean cached pages of a file, so that reading it reaches the device."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
    finally:
        os.close(descriptor)


def write_file(path: Path, data: bytes) -> None:
    """Writes a whole file; the kernel decides when it reaches the device."""
    path.write_bytes(data)


def read_cold(path: Path) -> None:
    """Reads a whole file from the device."""
    drop_from_page_cache(path)
    with path.open("rb", buffering=0) as file:
        while file.read(256 * KIB):
            pass


def log_uniform(rng: random.Random, low: int, high: int) -> int:
    """Returns a random size between low and high whose logarithm is uniform: small sizes are frequent."""
    ratio: float = high / low
    return int(low * ratio ** rng.random())


def popular(rng: random.Random, count: int) -> int:
    """Returns a random number below count; small numbers are more likely (the lowest eighth of the numbers
    gets half of the draws).
    """
    return int(count * rng.random() ** 3)


def at_once(*jobs: Callable[[], object]) -> None:
    """Runs the jobs in parallel threads and passes on the first failure."""
    failures: list[BaseException] = []

    def guarded(job: Callable[[], object]) -> None:
        try:
            job()
        except BaseException as failure:  # passed on below, in the caller's thread
            failures.append(failure)

    threads = [threading.Thread(target=guarded, args=(job,)) for job in jobs]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failures:
        raise failures[0]


class Application:
    """An application: its folder, its stream of random numbers, and its habits."""

    name = ""
    bursts = 0
    """The number of bursts in one run."""
    think_s = 0.0
    """The mean pause before a burst, in seconds."""

    def __init__(self, root: Path, seed: str) -> None:
        """Makes the application in a folder of the file system mounted at root."""
        self.folder = root / self.name
        self.rng = random.Random(f"{seed}/{self.name}")
        # Pauses have a stream of their own, so that what parallel jobs do does not depend on which of them
        # pauses first.
        self.pauses = random.Random(f"{seed}/{self.name}/pauses")

    def pause(self, mean_ms: float) -> None:
        """Waits for an exponentially distributed time, as if for a network, a decoder or a finger."""
        time.sleep(self.pauses.expovariate(1000 / mean_ms))

    def prepare(self) -> None:
        """Lays out the data that the application has from earlier days."""
        raise NotImplementedError

    def burst(self) -> None:
        """Does what the application does when somebody looks at it once."""
        raise NotImplementedError

    def database(self, journal: str) -> contextlib.closing[sqlite3.Connection]:
        """Returns a connection to the application's database; every commit reaches the device."""
        connection = sqlite3.connect(
            self.folder / "app.db", isolation_level=None, timeout=60, check_same_thread=False
        )
        connection.execute(f"PRAGMA journal_mode = {journal}")
        connection.execute("PRAGMA synchronous = FULL")
        connection.execute("PRAGMA wal_autocheckpoint = 100")
        # The cache is small, as on a phone: data read twice, far apart in time, is read from the file twice.
        connection.execute("PRAGMA cache_size = -512")
        return contextlib.closing(connection)

    def query_cold(self, journal: str, sql: str, keys: Iterable[int], pause_ms: float) -> None:
        """Runs a query for each key, on a new connection to a database that is not cached."""
        drop_from_page_cache(self.folder / "app.db")
        with self.database(journal) as database:
            for key in keys:
                database.execute(sql, (key,)).fetchall()
                self.pause(pause_ms)

    def write_paced(self, path: Path, pieces: Iterable[bytes], pause_ms: float) -> None:
        """Writes a file piece by piece, as a camera or a download does, and syncs it."""
        with path.open("wb", buffering=0) as file:
            for piece in pieces:
                file.write(piece)
                os.fdatasync(file.fileno())
                self.pause(pause_ms)
            os.fsync(file.fileno())


class Messenger(Application):
    """A messenger with a write-ahead log: each message that arrives is a commit; meanwhile the open chat is
    read.
    """

    name = "messenger"
    bursts = 58
    think_s = 1.8
    chats = 300
    old_messages = 40_000

    def message(self, at: int) -> tuple[int, int, bytes]:
        picture = self.rng.random() < 0.06
        size = log_uniform(self.rng, 4 * KIB, 32 * KIB) if picture else log_uniform(self.rng, 80, 2000)
        return (popular(self.rng, self.chats), at, self.rng.randbytes(size))

    def prepare(self) -> None:
        with self.database("WAL") as database:
            database.execute("CREATE TABLE message (id INTEGER PRIMARY KEY, chat INT, at INT, body BLOB)")
            database.execute("CREATE INDEX message_chat ON message (chat, at)")
            database.execute("CREATE TABLE chat (id INTEGER PRIMARY KEY, last INT, unread INT, draft BLOB)")
            database.execute("BEGIN")
            drafts = ((chat, self.rng.randbytes(400)) for chat in range(self.chats))
            database.executemany("INSERT INTO chat VALUES (?, 0, 0, ?)", drafts)
            messages = (self.message(at) for at in range(self.old_messages))
            database.executemany("INSERT INTO message (chat, at, body) VALUES (?, ?, ?)", messages)
            database.execute("COMMIT")

    def burst(self) -> None:
        messages = [self.message(self.old_messages + i) for i in range(int(log_uniform(self.rng, 5, 60)))]
        opened = [popular(self.rng, self.chats) for _ in range(6)]
        recent = "SELECT * FROM message WHERE chat = ? ORDER BY at DESC LIMIT 40"
        at_once(
            lambda: self.receive(messages),
            lambda: self.query_cold("WAL", recent, opened[:3], 15),
            lambda: self.query_cold("WAL", recent, opened[3:], 15),
        )

    def receive(self, messages: Iterable[tuple[int, int, bytes]]) -> None:
        with self.database("WAL") as database:
            for message in messages:
                database.execute("BEGIN IMMEDIATE")
                insert = "INSERT INTO message (chat, at, body) VALUES (?, ?, ?)"
                row = database.execute(insert, message).lastrowid
                update = "UPDATE chat SET last = ?, unread = unread + 1 WHERE id = ?"
                database.execute(update, (row, message[0]))
                database.execute("COMMIT")
                self.pause(12)


class Feed(Application):
    """A news feed with a rollback journal: a refresh replaces posts and updates counters while somebody
    scrolls.
    """

    name = "feed"
    bursts = 45
    think_s = 2.4
    posts = 12_000

    def prepare(self) -> None:
        with self.database("DELETE") as database:
            database.execute("CREATE TABLE post (id INTEGER PRIMARY KEY, likes INT, body BLOB)")
            database.execute("BEGIN")
            rows = ((log_uniform(self.rng, 300, 6000),) for _ in range(self.posts))
            bodies = ((self.rng.randbytes(size),) for (size,) in rows)
            database.executemany("INSERT INTO post (likes, body) VALUES (0, ?)", bodies)
            database.execute("COMMIT")

    def burst(self) -> None:
        scrolled = [self.posts - popular(self.rng, self.posts) for _ in range(10)]
        page = "SELECT * FROM post WHERE id >= ? ORDER BY id LIMIT 8"
        at_once(self.refresh, lambda: self.query_cold("DELETE", page, scrolled, 25))

    def refresh(self) -> None:
        with self.database("DELETE") as database:
            for _ in range(self.rng.randrange(4, 14)):
                database.execute("BEGIN IMMEDIATE")
                database.execute("DELETE FROM post WHERE id IN (SELECT id FROM post ORDER BY id LIMIT 4)")
                for _ in range(4):
                    body = self.rng.randbytes(log_uniform(self.rng, 300, 6000))
                    database.execute("INSERT INTO post (likes, body) VALUES (0, ?)", (body,))
                for _ in range(self.rng.randrange(1, 12)):
                    liked = self.posts - popular(self.rng, self.posts)
                    database.execute("UPDATE post SET likes = likes + 1 WHERE id = ?", (liked,))
                database.execute("COMMIT")
                self.pause(30)


class Search(Application):
    """A search that only reads: several threads make point queries through an index, and short scans."""

    name = "search"
    bursts = 29
    think_s = 3.4
    documents = 22_000

    def prepare(self) -> None:
        with self.database("WAL") as database:
            database.execute("CREATE TABLE document (id INTEGER PRIMARY KEY, word INT, body BLOB)")
            database.execute("BEGIN")
            bodies = (
                (self.rng.randrange(1 << 40), self.rng.randbytes(log_uniform(self.rng, KIB, 12 * KIB)))
                for _ in range(self.documents)
            )
            database.executemany("INSERT INTO document (word, body) VALUES (?, ?)", bodies)
            database.execute("CREATE INDEX document_word ON document (word)")
            database.execute("COMMIT")

    def burst(self) -> None:
        sql = "SELECT * FROM document WHERE word >= ? ORDER BY word LIMIT 3"
        keys = [[popular(self.rng, 1 << 40) for _ in range(self.rng.randrange(3, 11))] for _ in range(4)]
        at_once(*(lambda part=part: self.query_cold("WAL", sql, part, 12) for part in keys))


class Photos(Application):
    """A camera: pictures are taken (files of some MiB, with thumbnails and an index) and viewed."""

    name = "photos"
    bursts = 28
    think_s = 4.0
    old_photos = 45
    thumbnails = 400

    def prepare(self) -> None:
        for i in range(self.old_photos):
            write_file(self.folder / f"{i}.jpg", self.rng.randbytes(log_uniform(self.rng, MIB, 4 * MIB)))
        for i in range(self.thumbnails):
            data = self.rng.randbytes(log_uniform(self.rng, 6 * KIB, 40 * KIB))
            write_file(self.folder / f"{i}.thumb", data)
        with self.database("WAL") as database:
            database.execute("CREATE TABLE photo (id INTEGER PRIMARY KEY, name TEXT, place BLOB)")

    def burst(self) -> None:
        seen = [popular(self.rng, self.thumbnails) for _ in range(16)]
        at_once(
            self.take,
            lambda: self.look(f"{i}.thumb" for i in seen[:8]),
            lambda: self.look(f"{i}.thumb" for i in seen[8:]),
            lambda: self.look([f"{seen[0] % self.old_photos}.jpg"]),
        )

    def look(self, names: Iterable[str]) -> None:
        for name in names:
            read_cold(self.folder / name)
            self.pause(10)

    def take(self) -> None:
        with self.database("WAL") as database:
            for _ in range(self.rng.randrange(1, 3)):
                name = f"new{self.rng.randrange(1 << 40)}"
                size = log_uniform(self.rng, 300 * KIB, 2 * MIB)
                pieces = (self.rng.randbytes(64 * KIB) for _ in range(size // (64 * KIB)))
                self.write_paced(self.folder / f"{name}.jpg", pieces, 40)
                self.write_paced(self.folder / f"{name}.thumb", [self.rng.randbytes(size // 60)], 5)
                row = (name, self.rng.randbytes(200))
                database.execute("INSERT INTO photo (name, place) VALUES (?, ?)", row)


class Browser(Application):
    """A browser: a cache of many small files that nobody syncs, and a database of cookies that is synced."""

    name = "browser"
    bursts = 50
    think_s = 2.2
    cached = 1_500

    def cache_file(self, number: int) -> None:
        size = log_uniform(self.rng, KIB, 90 * KIB)
        write_file(self.folder / f"cache{number}", self.rng.randbytes(size))

    def prepare(self) -> None:
        for number in range(self.cached):
            self.cache_file(number)
        with self.database("PERSIST") as database:
            database.execute("CREATE TABLE cookie (id INTEGER PRIMARY KEY, value BLOB)")
            database.execute("BEGIN")
            cookies = ((self.rng.randbytes(300),) for _ in range(3000))
            database.executemany("INSERT INTO cookie (value) VALUES (?)", cookies)
            database.execute("COMMIT")

    def burst(self) -> None:
        pages = [[popular(self.rng, self.cached) for _ in range(self.rng.randrange(2, 11))] for _ in range(4)]
        at_once(self.browse, *(lambda page=page: self.load(page) for page in pages))
        for _ in range(self.rng.randrange(5, 30)):
            number = popular(self.rng, self.cached)
            (self.folder / f"cache{number}").unlink()
            self.cache_file(number)
            self.pause(5)

    def load(self, page: Iterable[int]) -> None:
        for number in page:
            read_cold(self.folder / f"cache{number}")
            self.pause(10)

    def browse(self) -> None:
        with self.database("PERSIST") as database:
            for _ in range(self.rng.randrange(1, 10)):
                database.execute("BEGIN IMMEDIATE")
                for _ in range(self.rng.randrange(1, 5)):
                    change = (self.rng.randbytes(300), self.rng.randrange(1, 3000))
                    database.execute("UPDATE cookie SET value = ? WHERE id = ?", change)
                database.execute("COMMIT")
                self.pause(10)


class Copying(Application):
    """A file manager: it copies a file, syncs it, and deletes the last copy but one."""

    name = "copying"
    bursts = 14
    think_s = 8.0
    originals = 4

    def prepare(self) -> None:
        for number in range(self.originals):
            write_file(self.folder / f"original{number}", self.rng.randbytes(16 * MIB))

    def burst(self) -> None:
        source = self.folder / f"original{self.rng.randrange(self.originals)}"
        target = self.folder / f"copy{self.rng.randrange(1 << 40)}"
        drop_from_page_cache(source)
        pieces = log_uniform(self.rng, 16, 80)
        with source.open("rb", buffering=0) as reader:
            self.write_paced(target, (reader.read(64 * KIB) for _ in range(pieces)), 40)
        copies = sorted(self.folder.glob("copy*"), key=lambda path: path.stat().st_mtime_ns)
        for old in copies[:-2]:
            old.unlink()


APPLICATIONS: list[type[Application]] = [Messenger, Feed, Search, Photos, Browser, Copying]


def free_bytes(root: Path) -> int:
    """Returns how many bytes the file system can still take."""
    status = os.statvfs(root)
    return status.f_bavail * status.f_frsize


def age(root: Path, seed: str, free: int) -> None:
    """Fills the file system with files and deletes some, which leaves free space in many small holes."""
    rng = random.Random(f"{seed}/age")
    folder = root / "old"
    folder.mkdir()
    files: list[Path] = []
    while free_bytes(root) > 8 * MIB:
        files.append(folder / str(len(files)))
        with files[-1].open("wb") as file:
            os.posix_fallocate(file.fileno(), 0, log_uniform(rng, 16 * KIB, MIB))
    os.sync()
    rng.shuffle(files)
    while files and free_bytes(root) < free:
        files.pop().unlink()


def prepare(root: Path, seed: str) -> None:
    """Lays out the data of every application below root, on a file system that looks long in use."""
    for kind in APPLICATIONS:
        application = kind(root, seed)
        application.folder.mkdir()
        application.prepare()
    os.sync()
    age(root, seed, 128 * MIB)
    os.sync()


def use(kind: type[Application], root: Path, seed: str, share: float) -> None:
    """Runs one application in its process: it thinks and works in turns."""
    application = kind(root, f"{seed}/run")
    for _ in range(max(1, round(application.bursts * share))):
        time.sleep(application.think_s * application.rng.uniform(0.5, 1.5))
        application.burst()


def run(root: Path, seed: str, share: float) -> int:
    """Runs all applications at the same time; returns how many of them failed."""
    # The processes are started by fork and share nothing but their code.
    context = multiprocessing.get_context("fork")
    processes = [context.Process(target=use, args=(kind, root, seed, share)) for kind in APPLICATIONS]
    try:
        for process in processes:
            process.start()
        for process in processes:
            process.join()
    finally:
        for process in processes:
            if process.is_alive():
                process.terminate()
                process.join()
    return sum(process.exitcode != 0 for process in processes)


def main() -> int:
    """Runs the command line; returns the exit status."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("verb", choices=["prepare", "run"])
    parser.add_argument("root", type=Path, help="a folder on the file system to work on")
    parser.add_argument("--seed", default="1")
    parser.add_argument("--share", type=float, default=1.0, help="part of the bursts to run (default 1.0)")
    arguments = parser.parse_args()
    if arguments.verb == "prepare":
        prepare(arguments.root, arguments.seed)
        return 0
    failed = run(arguments.root, arguments.seed, arguments.share)
    if failed:
        print(f"{failed} of {len(APPLICATIONS)} applications failed", file=sys.stderr)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
