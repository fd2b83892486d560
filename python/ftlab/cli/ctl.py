"""``ftlab ctl``: commands to a running live device."""

from __future__ import annotations

import click

from ftlab import live
from ftlab._core import UserError
from ftlab.outputs import json_text, write_stdout

COMMANDS = ("stats", "flush", "trim-all", "stop")


@click.command(options_metavar="[OPTIONS]")
@click.argument("words", nargs=-1, required=True, metavar="[PATH] COMMAND")
def ctl(words: tuple[str, ...]) -> None:
    """Tell a live device something.

    PATH is its control socket, or the Unix socket of its NBD server; without it, the only device that
    runs is told.

    \b
    stats     print the result so far, JSON
    flush     return when all that was written is durable
    trim-all  trim all user data
    stop      end the device as an interrupt does; returns at once
    """
    *path, command = words
    if len(path) > 1:
        raise UserError(f"ctl takes a path and a command, not {len(words)} words")
    if command not in COMMANDS:
        raise UserError(f"{command!r} is no command: {', '.join(COMMANDS)}")
    answer = live.ask(path[0] if path else live.the_only(), command)
    if command == "stats":
        write_stdout(json_text(answer))
