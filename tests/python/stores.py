"""A store on the bare device: a data block and a commit record each time, in a right or a wrong order.

It is a program of its own, for campaigns of power cuts: `stores.py HOW load` writes transactions, and a line
for each that it acknowledges to the file `told`; `stores.py HOW judge` fails if an acknowledged one is lost,
or a commit record is there without its data.
"""

from __future__ import annotations

import os
import socket
import struct
import sys
from pathlib import Path

SECTOR = 512
BLOCK = 4096
FUA = 1
READ, WRITE, FLUSH, TRIM = 0, 1, 3, 4
TRANSACTIONS = 12
LOG = 64 * BLOCK
"""Where the commit records begin, a sector each; the data blocks come before."""

WRONG = {
    "no-flush": "data, commit, tell",
    "no-flush-between": "data, commit, flush, tell",
    "commit-first": "commit, flush, data, flush, tell",
    "tell-first": "data, flush, commit, tell, flush",
}
"""Programs that may lose something, by what they do in each transaction."""
RIGHT = {
    "flushes": "data, flush, commit, flush, tell",
    "fua": "data, flush, commit-fua, tell",
}
"""Their correct twins."""


class Client:
    """An NBD client that does one thing at a time."""

    def __init__(self, path: Path) -> None:
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.settimeout(30)
        self.socket.connect(str(path))
        assert self._take(18)[:8] == b"NBDMAGIC"
        self.socket.sendall(struct.pack(">I8sII", 3, b"IHAVEOPT", 1, 0))
        self.size = struct.unpack(">QH", self._take(10))[0]

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_: object) -> None:
        self.socket.close()

    def _take(self, count: int) -> bytes:
        data = bytearray()
        while len(data) < count:
            more = self.socket.recv(count - len(data))
            if not more:
                raise ConnectionError("cut off")
            data += more
        return bytes(data)

    def ask(self, command: int, offset: int = 0, length: int = 0, data: bytes = b"", flags: int = 0) -> bytes:
        """Sends a request and waits for its answer; returns the data of a read, or raises the device's error
        as an OSError.
        """
        header = struct.pack(">IHHQQI", 0x25609513, flags, command, 7, offset, length or len(data))
        self.socket.sendall(header + data)
        _, error, cookie = struct.unpack(">IIQ", self._take(16))
        assert cookie == 7
        if error:
            raise OSError(error, os.strerror(error))
        return self._take(length) if command == READ else b""


def data_of(number: int) -> bytes:
    """Returns the data block of a transaction."""
    return struct.pack("<Q", number + 1) * (BLOCK // 8)


def record_of(number: int) -> bytes:
    """Returns the commit record of a transaction."""
    return struct.pack("<Q", ~number & (1 << 64) - 1) * (SECTOR // 8)


def load(client: Client, steps: list[str]) -> None:
    """Does the steps of each transaction, until all are done or the device is gone."""
    with Path("told").open("w", buffering=1) as told:
        for number in range(TRANSACTIONS):
            for step in steps:
                if step == "data":
                    client.ask(WRITE, number * BLOCK, data=data_of(number))
                elif step == "flush":
                    client.ask(FLUSH)
                elif step == "tell":
                    print(number, file=told)
                else:
                    flags = FUA if step == "commit-fua" else 0
                    client.ask(WRITE, LOG + number * SECTOR, data=record_of(number), flags=flags)


def judge(client: Client) -> str | None:
    """Returns what is lost."""
    told = len(Path("told").read_text().split()) if Path("told").exists() else 0
    for number in range(TRANSACTIONS):
        committed = client.ask(READ, LOG + number * SECTOR, SECTOR) == record_of(number)
        if number < told and not committed:
            return f"transaction {number} of {told} acknowledged is lost"
        if committed and client.ask(READ, number * BLOCK, BLOCK) != data_of(number):
            return f"transaction {number} is committed, but its data are not there"
    return None


def main() -> None:
    """Runs the program."""
    how, mode = sys.argv[1:]
    path = Path(os.environ["FTLAB_DISK"].split("socket=")[1])
    with Client(path) as client:
        if mode == "load":
            load(client, (WRONG | RIGHT)[how].split(", "))
        else:
            sys.exit(judge(client))


if __name__ == "__main__":
    main()
