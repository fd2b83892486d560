"""``ftlab ctl``: commands to a running live device."""

from __future__ import annotations

import json
import socket

import click

from ftlab._core import UserError
from ftlab.outputs import json_text, write_stdout

COMMANDS = ("stats", "flush", "trim-all", "stop")


@click.command()
@click.argument("path")
@click.argument("command", type=click.Choice(COMMANDS))
def ctl(path: str, command: str) -> None:
    """Tell a live device something: PATH is its control socket, or the Unix socket of its NBD server.

    \b
    stats     print the result so far, JSON
    flush     return when all that was written is durable
    trim-all  trim all user data
    stop      end the device as an interrupt does; returns at once
    """
    answer = _ask(path, command)
    if "error" in answer:
        raise UserError(f"{path}: {answer['error']}")
    if command == "stats":
        write_stdout(json_text(answer))


def _ask(path: str, command: str) -> dict[str, object]:
    last: OSError | None = None
    # An NBD server greets; its control socket is beside it.
    for name in (path + ".ctl", path):
        with socket.socket(socket.AF_UNIX) as control:
            try:
                control.connect(name)
                control.sendall(command.encode() + b"\n")
                text = b"".join(iter(lambda: control.recv(1 << 16), b""))
            except OSError as error:
                last = error
                continue
        try:
            answer = json.loads(text)
        except ValueError:
            break
        if isinstance(answer, dict):
            return answer
    why = f": {last.strerror or last}" if last else ""
    raise UserError(f"{path}: no live device answers there{why}")
