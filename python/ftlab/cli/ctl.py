"""``ftlab ctl``: commands to a running live device."""

from __future__ import annotations

from pathlib import Path

import click

from ftlab._core import UserError
from ftlab.live import devices
from ftlab.outputs import json_text, write_stdout

COMMANDS = {
    "stats": "",
    "flush": "",
    "trim-all": "",
    "cut": "",
    "save": "FILE",
    "fail": "read|write LBA..., or none",
    "slow": "FACTOR",
    "age": "HOURS",
    "wear": "CYCLES",
    "readonly": "",
    "stop": "",
}
"""The commands, each with the words that follow it."""


@click.command(options_metavar="[OPTIONS]")
@click.argument("words", nargs=-1, required=True, metavar="[PATH] COMMAND [WORD]...")
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
    stats               print the result so far, JSON
    flush               return when all that was written is durable
    trim-all            trim all user data
    cut                 cut the power of a device with --media: what is under way is torn
    save FILE           save the device's state, for `ftlab run --load-state`
    fail read LBA...    fail reads of these logical blocks (512 B; 7, or 7-9), until they are written
    fail write LBA...   fail writes of them; `fail none` ends both
    slow FACTOR         let reads, programs and erases take FACTOR times their time; 1: as before
    age HOURS           let the data lie for HOURS more
    wear CYCLES         wear each block by CYCLES erasures more
    readonly            turn read-only, as a worn-out device does
    stop                end the device as an interrupt does; returns at once
    """
    path, command, further = parsed(words)
    if command != "cut" and (after is not None or seed is not None):
        raise UserError(f"--after and --seed belong to cut, not to {command}")
    told = " ".join([command, *further])
    if command == "cut":
        told = f"cut {after or 0} {seed or 0}"
    elif command == "save":
        # The device runs in another directory.
        told = f"save {Path(further[0]).absolute()}"
    if "\n" in told:
        raise UserError(f"{command}: a command is one line")
    answer = devices.ask(path or devices.the_only(), told)
    if command == "stats":
        write_stdout(json_text(answer))


def parsed(words: tuple[str, ...]) -> tuple[str | None, str, tuple[str, ...]]:
    """Splits the words of the command line into the path, the command and what follows it.

    Raises:
        UserError: there is no command, or the wrong number of words follow it.
    """
    at = next((at for at, word in enumerate(words[:2]) if word in COMMANDS), None)
    if at is None:
        raise UserError(f"{' '.join(words[:2])!r} holds no command: {', '.join(COMMANDS)}")
    path, command, further = words[:at], words[at], words[at + 1 :]
    wanted = COMMANDS[command]
    if bool(wanted) != bool(further) or (len(further) > 1 and command != "fail"):
        raise UserError(f"write {command} {wanted}".rstrip() + ", after the path if there is one")
    return (path[0] if path else None), command, further
