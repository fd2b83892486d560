"""Random operations on one file, each compared with a plain array of bytes, in the manner of fsx.

`python tests/python/fsx.py FILE [SEED [OPERATIONS]]` tries any file system.
"""

from __future__ import annotations

import ctypes
import errno
import mmap
import os
import random
import sys
from pathlib import Path

KEEP_SIZE, PUNCH, COLLAPSE, ZERO, INSERT = 1, 3, 8, 16, 32
BLOCK = 4096
LIBC = ctypes.CDLL(None, use_errno=True)


def fallocate(file: int, mode: int, offset: int, length: int) -> None:
    """Calls the system's fallocate."""
    if LIBC.fallocate(file, mode, ctypes.c_int64(offset), ctypes.c_int64(length)):
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))


class Fsx:
    """A file and its expected content. A file that is `fixed` can neither change its size nor be mapped."""

    def __init__(self, path: Path, seed: int, most: int = 256 << 10, *, fixed: bool = False) -> None:
        self.path = path
        self.random = random.Random(seed)
        self.most = most
        self.fixed = fixed
        self.file = os.open(path, os.O_RDWR | (0 if fixed else os.O_CREAT))
        self.model = bytearray(os.pread(self.file, most, 0) if fixed else b"")
        self.done: list[str] = []
        self.operations = [self.write, self.write, self.read, self.read, self.punch, self.zero, self.settle]
        if not fixed:
            self.operations += [self.truncate, self.map_write, self.map_read, self.shift]

    def run(self, operations: int) -> None:
        """Performs this many operations, then compares the whole file."""
        for _ in range(operations):
            operation = self.random.choice(self.operations)
            try:
                operation()
            except Exception as error:
                last = "\n".join(self.done[-20:])
                raise AssertionError(f"{self.path}: operation {len(self.done)}: {error}\n{last}") from error
        self.settle()
        self.check(0, self.most)

    def close(self) -> None:
        os.close(self.file)

    def part(self, most: int, step: int = 1) -> tuple[int, int]:
        """Returns a random range within the first `most` bytes, as offset and length."""
        if self.random.random() < 0.3:
            step = max(step, 512)
        offset = self.random.randrange(0, max(most, 1)) // step * step
        length = min(self.random.choice((512, 4096, 20_000, 64 << 10)), most - offset)
        return offset, self.random.randint(0, max(length, 0)) // step * step

    def note(self, *what: object) -> None:
        self.done.append(" ".join(map(str, what)))

    def put(self, offset: int, data: bytes) -> None:
        """Writes into the expected content, which is extended with zeroes if needed."""
        if not data:
            return
        self.model.extend(bytes(max(0, offset + len(data) - len(self.model))))
        self.model[offset : offset + len(data)] = data

    def write(self) -> None:
        offset, length = self.part(self.most)
        self.note("write", offset, length)
        data = self.random.randbytes(length)
        assert os.pwrite(self.file, data, offset) == length
        self.put(offset, data)

    def check(self, offset: int, length: int) -> None:
        found = os.pread(self.file, length, offset)
        wanted = bytes(self.model[offset : offset + length])
        if found != wanted:
            at = next((i for i, (a, b) in enumerate(zip(found, wanted, strict=False)) if a != b), -1)
            raise AssertionError(f"read {offset} {length}: {len(found)} bytes, wrong from {offset + at} on")
        if not self.fixed:
            assert os.fstat(self.file).st_size == len(self.model)

    def read(self) -> None:
        offset, length = self.part(self.most)
        self.note("read", offset, length)
        self.check(offset, length)

    def truncate(self) -> None:
        size = self.random.randint(0, self.most)
        self.note("truncate", size)
        os.ftruncate(self.file, size)
        del self.model[size:]
        self.model.extend(bytes(size - len(self.model)))

    def punch(self) -> None:
        offset, length = self.part(len(self.model))
        if length:
            self.note("punch", offset, length)
            fallocate(self.file, PUNCH, offset, length)
            self.put(offset, bytes(length))

    def zero(self) -> None:
        offset, length = self.part(len(self.model) if self.fixed else self.most)
        if length:
            self.note("zero", offset, length)
            fallocate(self.file, ZERO, offset, length)
            self.put(offset, bytes(length))

    def shift(self) -> None:
        """Removes a range of blocks from the file, or inserts one."""
        offset, length = self.part(len(self.model), BLOCK)
        mode = self.random.choice((COLLAPSE, INSERT))
        if not length or offset + length >= len(self.model):
            return
        if mode == INSERT and len(self.model) + length > self.most:
            return
        self.note("insert" if mode == INSERT else "collapse", offset, length)
        try:
            fallocate(self.file, mode, offset, length)
        except OSError as error:
            if error.errno in (errno.EINVAL, errno.EOPNOTSUPP):  # the file system's blocks have another size
                return
            raise
        if mode == INSERT:
            self.model[offset:offset] = bytes(length)
        else:
            del self.model[offset : offset + length]

    def map_write(self) -> None:
        offset, length = self.part(len(self.model))
        if length:
            self.note("map_write", offset, length)
            data = self.random.randbytes(length)
            with mmap.mmap(self.file, len(self.model)) as mapped:
                mapped[offset : offset + length] = data
            self.put(offset, data)

    def map_read(self) -> None:
        offset, length = self.part(len(self.model))
        if length:
            self.note("map_read", offset, length)
            with mmap.mmap(self.file, len(self.model), prot=mmap.PROT_READ) as mapped:
                assert mapped[offset : offset + length] == self.model[offset : offset + length], "mapped"

    def settle(self) -> None:
        """Makes the file durable and drops its cache, or only makes it durable, or reopens it."""
        match self.random.randrange(3):
            case 0:
                self.note("forget")
                os.fsync(self.file)
                os.posix_fadvise(self.file, 0, 0, os.POSIX_FADV_DONTNEED)
            case 1:
                self.note("fdatasync")
                os.fdatasync(self.file)
            case _:
                self.note("reopen")
                os.close(self.file)
                self.file = os.open(self.path, os.O_RDWR)


if __name__ == "__main__":
    seed, operations = [*map(int, sys.argv[2:]), 1, 10_000][:2]
    Fsx(Path(sys.argv[1]), seed).run(operations)
