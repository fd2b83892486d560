"""Options that several commands share."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeVar

import click

from ftlab._core import UserError
from ftlab.configs import SHORTHANDS, Override
from ftlab.outputs import Output

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


def output(option: str, path: str | None, suffixes: Sequence[str] = ()) -> Output | None:
    """The file that an option asks for, found to be writable; None where it is not given.

    Raises:
        UserError: it cannot be written, or its name does not end in one of ``suffixes``.
    """
    if path is None:
        return None
    asked = Output(option, path)
    asked.check(suffixes)
    return asked


def json_output(path: str | None) -> Output | None:
    """That of ``--json``; standard output (``-``) is none."""
    return output("--json", None if path == "-" else path)


OUTPUT_FORMATS = ("json", "fio", "fio+")
"""Layouts of ``--json``."""


def output_format_option(command: Decorated) -> Decorated:
    """``--output-format``."""
    return click.option(
        "--output-format",
        "output_format",
        type=click.Choice(OUTPUT_FORMATS),
        default="json",
        help="Layout of --json: ftlab's own, fio's, or fio's with histograms (json+).  [default: json]",
    )(command)


def check_output_format(output_format: str, json_path: str | None) -> bool:
    """Whether fio's layout is asked for.

    Raises:
        UserError: it is, and nothing says where to.
    """
    if output_format != "json" and json_path is None:
        raise UserError(f"--output-format {output_format} needs --json FILE, or --json - to print it")
    return output_format != "json"


def html_option(command: Decorated) -> Decorated:
    """``--html FILE``."""
    return click.option(
        "--html",
        "html_path",
        metavar="FILE",
        help="Write a report to read offline in a browser: charts, tables and settings in one file. Results"
        " then hold what it draws (keys of [results]).",
    )(command)


def measured_for(html_path: str | None) -> list[Override]:
    """The overrides that have results hold what an HTML report draws; `--set` comes after them."""
    if html_path is None:
        return []
    from ftlab.html import KEYS

    return [Override("--html", key, "true") for key in KEYS]


def command_line() -> str:
    """The command line as it was typed, for a report to state."""
    context = click.get_current_context()
    return shlex.join([*context.command_path.split(), *context.obj]) if context.obj else ""


def check_option(command: Decorated) -> Decorated:
    """``--check``."""
    return click.option(
        "--check", is_flag=True, help="Verify every invariant of the device after every operation (slow)."
    )(command)


def load_state_option(command: Decorated) -> Decorated:
    """``--load-state FILE``."""
    return click.option(
        "--load-state",
        "load_state",
        metavar="FILE",
        help="Start from the device saved there (run --save-state) instead of preconditioning.",
    )(command)


_GENERATOR = (
    ("requests", "N", "Number of requests.  [default: 10000]"),
    ("pattern", "NAME", "random, sequential, zipf or hot-cold.  [default: random]"),
    ("zipf-theta", "X", "Exponent of zipf.  [default: 1.1]"),
    ("hot-share", "PERCENT", "hot-cold: requests to the hot part.  [default: 80%]"),
    ("hot-region", "PERCENT", "hot-cold: part of the region that is hot.  [default: 20%]"),
    ("hot-piece", "BYTES", "hot-cold: the beginning of each such piece is hot.  [default: region]"),
    ("sequential-share", "PERCENT", "Requests that begin where the one before ended.  [default: 0%]"),
    ("near-share", "PERCENT", "Of the others, those that begin near one of the 8 before.  [default: 0%]"),
    ("near-range", "BYTES", "How near: in the same aligned range of this size.  [default: 2MiB]"),
    ("near-sequential", "PERCENT", "Of those, those that go on where that one ended.  [default: 0%]"),
    ("read-share", "PERCENT", "Share of reads.  [default: 50%]"),
    ("trim-share", "PERCENT", "Share of trims.  [default: 0%]"),
    ("exact-mix", "BOOL", "true: the shares hold exactly.  [default: false]"),
    ("size", "SIZE", "Bytes per request.  [default: 4KiB]"),
    ("read-sizes", "MIX", "Sizes of reads by weight, 4KiB/60:64KiB/40 say.  [default: --size]"),
    ("write-sizes", "MIX", "Sizes of writes and trims by weight.  [default: --size]"),
    ("align", "SIZE", "Addresses are multiples of this.  [default: the smallest size]"),
    ("region", "SIZE", "Bytes addressed, from offset 0.  [default: 1GiB]"),
    ("arrival", "NAME", "exponential, constant or bursts.  [default: exponential]"),
    ("interarrival", "TIME", "Mean time between arrivals (within a burst).  [default: 100us]"),
    ("burst-length", "N", "bursts: mean requests in one.  [default: 10]"),
    ("read-burst-length", "N", "bursts of one operation: mean reads in one.  [default: --burst-length]"),
    ("burst-gap", "TIME", "bursts: mean time between two.  [default: 10ms]"),
    ("pause-share", "PERCENT", "bursts: those that begin after a pause.  [default: 0%]"),
    ("pause", "TIME", "bursts: mean length of a pause.  [default: 1s]"),
    ("burst-ops", "NAME", "bursts: operations within one, mixed or single.  [default: mixed]"),
    ("seed", "N", "Seed.  [default: 1]"),
)


def generator_options(command: Decorated) -> Decorated:
    """The keys of the generator as flags."""
    for name, metavar, text in reversed(_GENERATOR):
        command = click.option(f"--{name}", metavar=metavar, help=text)(command)
    return command


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
