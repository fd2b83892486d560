"""Options that several commands share."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, TypeVar

import click

from ftlab._core import UserError
from ftlab.configs import SHORTHANDS, Override

Decorated = TypeVar("Decorated", bound=Callable[..., Any])
_BY_NAME = {shorthand.name: shorthand for shorthand in SHORTHANDS}


def shorthands(names: Iterable[str] = tuple(_BY_NAME)) -> Callable[[Decorated], Decorated]:
    """The flags that stand for keys; a command takes them as keywords with underscores."""
    chosen = [_BY_NAME[name] for name in names]

    def decorate(command: Decorated) -> Decorated:
        for shorthand in reversed(chosen):
            text = f"{shorthand.help}  [{shorthand.key}]"
            option = click.option(shorthand.flag, shorthand.name, metavar=shorthand.metavar, help=text)
            command = option(command)
        return command

    return decorate


def set_option(command: Decorated) -> Decorated:
    """``--set KEY=VALUE``."""
    return click.option(
        "--set",
        "settings",
        multiple=True,
        metavar="KEY=VALUE",
        help="Set a key of the configuration, host.scheduler=noop say. Repeatable.",
    )(command)


def json_option(command: Decorated) -> Decorated:
    """``--json FILE|-``."""
    return click.option(
        "--json",
        "json_path",
        metavar="FILE|-",
        # Two writers of one file would overwrite each other.
        callback=lambda _context, _option, path: "-" if path == "/dev/stdout" else path,
        help="Write the result as JSON to a file, or to standard output instead of the text.",
    )(command)


def check_option(command: Decorated) -> Decorated:
    """``--check``."""
    return click.option(
        "--check", is_flag=True, help="Verify every invariant of the device after every operation (slow)."
    )(command)


def overrides(settings: Iterable[str], flags: dict[str, str | None]) -> list[Override]:
    """The overrides of ``--set`` and of the flags; the flags win.

    Raises:
        UserError: a ``--set`` without ``=``.
    """
    given = [_setting(text) for text in settings]
    for name, value in flags.items():
        if value is not None:
            shorthand = _BY_NAME[name]
            given.append(Override(f"{shorthand.flag} {value}", shorthand.key, value))
    return given


def _setting(text: str) -> Override:
    key, equals, value = text.partition("=")
    if not equals or not key.strip():
        raise UserError(f"--set {text}: write --set KEY=VALUE, --set host.scheduler=noop say")
    return Override(f"--set {text}", key.strip(), value.strip())
