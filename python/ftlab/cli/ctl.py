"""``ftlab ctl``: commands to a running live device."""

from __future__ import annotations

import click

from ftlab import live
from ftlab._core import UserError
from ftlab.outputs import json_text, write_stdout

COMMANDS = ("stats", "flush", "trim-all", "cut", "stop")


@click.command(options_metavar="[OPTIONS]")
@click.argument("words", nargs=-1, required=True, metavar="[PATH] COMMAND")
@click.option(
    "--after",
    type=click.IntRange(1, 1 << 40),
    metavar="OPS",
    help="With cut: cut in the OPS-th program or erase of the flash from now on, not now.",
)
@click.option(
    "--seed",
    type=click.IntRange(0, (1 << 64) - 1),
    metavar="S",
    help="With cut: the seed of what is torn, and of the moment in the operation.  [default: 0]",
)
def ctl(words: tuple[str, ...], after: int | None, seed: int | None) -> None:
    """Tell a live device something.

    PATH is its control socket, or the Unix socket of its NBD server; without it, the only device that
    runs is told.

    \b
    stats     print the result so far, JSON
    flush     return when all that was written is durable
    trim-all  trim all user data
    cut       cut the power of a device with --media: what is under way is torn, and the process ends
    stop      end the device as an interrupt does; returns at once
    """
    *path, command = words
    if len(path) > 1:
        raise UserError(f"ctl takes a path and a command, not {len(words)} words")
    if command not in COMMANDS:
        raise UserError(f"{command!r} is not a command: {', '.join(COMMANDS)}")
    if command != "cut" and (after is not None or seed is not None):
        raise UserError(f"--after and --seed belong to cut, not to {command}")
    told = f"cut {after or 0} {seed or 0}" if command == "cut" else command
    answer = live.ask(path[0] if path else live.the_only(), told)
    if command == "stats":
        write_stdout(json_text(answer))
