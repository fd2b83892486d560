"""Options that several commands share."""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeVar

import click

from ftlab import policies
from ftlab._core import Config, UserError
from ftlab.cli import completing
from ftlab.configs import GENERATOR_DEFAULTS, SHORTHANDS, Override, keys
from ftlab.outputs import HTML, Output, tell

if TYPE_CHECKING:
    from ftlab.results.comparison import Plan
    from ftlab.results.result import Result
    from ftlab.studies.executor import Executor

Decorated = TypeVar("Decorated", bound=Callable[..., Any])


def shorthands(names: Iterable[str] = tuple(SHORTHANDS)) -> Callable[[Decorated], Decorated]:
    """Returns a decorator that adds the shorthand flags of keys; the command gets them as keywords with
    underscores.
    """
    chosen = {name: SHORTHANDS[name] for name in names}

    def decorate(command: Decorated) -> Decorated:
        for name, key in reversed(chosen.items()):
            command = _key_option(name, key, f"[{key}]")(command)
        return command

    return decorate


def _key_option(name: str, key: str, note: str) -> Callable[[Decorated], Decorated]:
    """Makes the flag of a key from the key's schema; ``note`` is appended to the flag's help."""
    schema = keys()[key]
    return click.option(
        _flag(name),
        name,
        metavar=_metavar(schema),
        help=f"{schema['description']}{_names(schema)}  {note}",
        shell_complete=completing.values_of(key),
    )


def _flag(name: str) -> str:
    return "--" + name.replace("_", "-")


def allow_python_option(command: Decorated) -> Decorated:
    """Adds ``--allow-python``."""

    def allow(_context: click.Context, _option: click.Parameter, given: bool) -> None:
        if given:
            policies.allow_python()

    return click.option(
        "--allow-python",
        is_flag=True,
        is_eager=True,
        expose_value=False,
        callback=allow,
        help="Let the file name policies in Python (python:FILE.py:CLASS), which run as code.",
    )(command)


def set_option(command: Decorated) -> Decorated:
    """Adds ``--set KEY=VALUE``, and ``--allow-python`` for classes that the configuration file names."""
    return click.option(
        "--set",
        "settings",
        multiple=True,
        metavar="KEY=VALUE",
        shell_complete=completing.settings,
        help="Set a key of the configuration, for example host.scheduler=noop. Repeatable.",
    )(allow_python_option(command))


def say_notes(config: Config | Plan) -> None:
    """Reports keys that the user set to no effect."""
    of_jobs = config.job_notes() if isinstance(config, Config) else []
    for note in [*config.notes(), *of_jobs]:
        tell(f"note: {note}")


def strict_option(command: Decorated) -> Decorated:
    """Adds ``--strict``."""
    return click.option(
        "--strict",
        is_flag=True,
        help="Refuse doubtful traces: their warnings become errors, with status 2.",
    )(command)


MOST_DOUBTS = 10
"""The maximum number of warnings about traces that are printed; there may be thousands of them."""


def check_traces(
    configs: Iterable[tuple[str, Config]], strict: bool, *, go_on: bool = False, quiet: bool = False
) -> None:
    """Reads the traces of labelled configurations before anything is prepared for them.

    Reasons to doubt a trace are reported as warnings, or as errors with ``strict``; with ``go_on`` a fault in
    a trace is one such reason. With ``quiet`` no progress is shown.

    Raises:
        UserError: a trace is at fault, or a trace is doubtful and ``strict`` is set.
    """
    from ftlab.progress import Reporter
    from ftlab.traces import doubts

    with Reporter(unit="requests checked", quiet=quiet) as reporter:
        found = doubts(configs, reporter.callback("check"), go_on=go_on)
    say_doubts(found, strict)


def say_doubts(found: Mapping[str, Sequence[str]], strict: bool) -> None:
    """Prints the doubts ``found`` about each trace, as warnings.

    Raises:
        UserError: with ``strict``, if any trace is doubtful.
    """
    lines = [f"{trace}: {doubt}" for trace, doubts in found.items() for doubt in doubts]
    if strict and lines:
        raise UserError("\n  ".join([lines[0], *lines[1:], "without --strict this is a warning"]))
    for line in lines[:MOST_DOUBTS]:
        tell(f"warning: {line}")
    if len(lines) > MOST_DOUBTS:
        tell(f"warning: {len(lines) - MOST_DOUBTS:,} more doubts about traces")


def say_overloads(results: Iterable[tuple[str, Result]]) -> None:
    """Warns about labelled results whose device did not keep up."""
    lines = [f"{label}: {result.overload}" for label, result in results if result.overload]
    for line in lines[:MOST_DOUBTS]:
        tell(f"warning: {line}")
    if len(lines) > MOST_DOUBTS:
        tell(f"warning: {len(lines) - MOST_DOUBTS:,} more variants did not keep up")


class NewName(click.types.StringParamType):
    """The name of a file or directory that is written; another option in its place is a slip."""

    name = "file"

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Returns the name.

        Raises:
            UserError: a part of the name begins with two hyphens, as after an option without its value.
        """
        if any(part.startswith("--") for part in value.split("/")):
            said = param.opts[0] if param is not None else ""
            raise UserError(f"{said} {value}: that is an option; name what {said} is to write")
        return value


NEW = NewName()


def json_option(command: Decorated) -> Decorated:
    """Adds ``--json FILE|-``."""
    return click.option(
        "--json",
        "json_path",
        type=NEW,
        metavar="FILE|-",
        # The name /dev/stdout means the same as -: two writers to one file would overwrite each other's
        # output.
        callback=lambda _context, _option, path: "-" if path == "/dev/stdout" else path,
        help="Write the result as JSON to a file, or to standard output instead of the text.",
    )(command)


def output(option: str, path: str | None, suffixes: Sequence[str] = ()) -> Output | None:
    """Returns the file that an option names, after checking that it can be written; None if the option is not
    given.

    Raises:
        UserError: the file cannot be written, or its name does not end in one of ``suffixes``.
    """
    if path is None:
        return None
    asked = Output(option, path)
    asked.check(suffixes)
    return asked


def json_output(path: str | None) -> Output | None:
    """Returns the file of ``--json``; None for standard output (``-``)."""
    return None if path in (None, "-") else _of_kind("--json", path, ".json")


def html_output(path: str | None) -> Output | None:
    """Returns the file of ``--html``."""
    return None if path is None else _of_kind("--html", path, *HTML)


def _of_kind(option: str, path: str, *suffixes: str) -> Output:
    asked = Output(option, path)
    asked.check_kind(*suffixes)
    return asked


OUTPUT_FORMATS = ("json", "fio", "fio+")
"""Layouts that ``--json`` can write."""


def output_format_option(command: Decorated) -> Decorated:
    """Adds ``--output-format``."""
    return click.option(
        "--output-format",
        "output_format",
        type=click.Choice(OUTPUT_FORMATS),
        default="json",
        help="Layout of --json: ftlab's own, fio's, or fio's with histograms (json+).  [default: json]",
    )(command)


def check_output_format(output_format: str, json_path: str | None) -> bool:
    """Returns whether fio's output format is requested.

    Raises:
        UserError: fio's format is requested, but no file is named for the output.
    """
    if output_format != "json" and json_path is None:
        raise UserError(f"--output-format {output_format} needs --json FILE, or --json - to print it")
    return output_format != "json"


def html_option(command: Decorated) -> Decorated:
    """Adds ``--html FILE``."""
    return click.option(
        "--html",
        "html_path",
        type=NEW,
        metavar="FILE",
        help="Write a report to read offline in a browser: charts, tables and settings in one file. Results"
        " then hold what it draws (keys of [results]).",
    )(command)


def measured_for(html_path: str | None) -> list[Override]:
    """Returns overrides that make results hold what an HTML report draws; ``--set`` can undo them."""
    if html_path is None:
        return []
    from ftlab.html import KEYS

    return [Override("--html", key, "true") for key in KEYS]


def command_line() -> str:
    """Returns the command line as it was typed, for reports."""
    context = click.get_current_context()
    return shlex.join(["ftlab", *context.obj]) if context.obj else ""


def quiet_option(command: Decorated) -> Decorated:
    """Adds ``--quiet``."""
    return click.option(
        "--quiet",
        is_flag=True,
        help="Print neither report nor notes nor progress; warnings and errors remain.",
    )(command)


def check_option(command: Decorated) -> Decorated:
    """Adds ``--check``."""
    return click.option(
        "--check", is_flag=True, help="Verify every invariant of the device after every operation (slow)."
    )(command)


def dask_options(command: Decorated) -> Decorated:
    """Adds ``--dask ADDRESS|local`` and ``--dask-wait SECONDS``."""
    command = click.option(
        "--dask-wait",
        type=click.FloatRange(min=0),
        default=60,
        show_default=True,
        metavar="SECONDS",
        help="How long to wait for workers if the scheduler has none.",
    )(command)
    return click.option(
        "--dask",
        metavar="ADDRESS|local",
        help="Run on the workers of this Dask scheduler, or on processes of this machine.",
    )(command)


@contextmanager
def executor(dask: str | None, dask_wait: float, jobs: int | None) -> Iterator[Executor]:
    """Yields what executes the runs: threads of this process, or the Dask cluster that ``--dask`` names.

    Raises:
        UserError: Dask is not installed, or no scheduler answers.
    """
    from ftlab.studies.executor import chosen

    with chosen(dask, dask_wait, jobs, lambda text: tell(f"note: {text}")) as executor:
        yield executor


def alone_option(command: Decorated) -> Decorated:
    """Adds ``--alone``."""
    return click.option(
        "--alone",
        is_flag=True,
        help="Run each tenant alone too, and report slowdowns, fairness and speedups.",
    )(command)


def check_alone(config: Config, *, alone: bool) -> None:
    """Checks that the trace can be read again for each tenant, if tenants are to run ``alone``.

    Raises:
        UserError: the trace is not a file.
    """
    from ftlab.traces import can_be_read_again

    if alone and config.trace is not None and not can_be_read_again(config.trace):
        raise UserError(f"--alone reads the trace again for each tenant, and {config.trace} is not a file")


def load_state_option(command: Decorated) -> Decorated:
    """Adds ``--load-state FILE``."""
    return click.option(
        "--load-state",
        "load_state",
        metavar="FILE",
        help="Start from the device saved there (run --save-state, ctl save, serve --media) instead of"
        " preconditioning.",
    )(command)


def generator_options(command: Decorated) -> Decorated:
    """Adds the keys of the generator as flags, from the schema."""
    table = "workload.synthetic."
    names = {key.removeprefix(table): key for key in keys() if key.startswith(table)} | {"seed": "seed"}
    for name, key in reversed(names.items()):
        default = GENERATOR_DEFAULTS.get(name, keys()[key].get("default"))
        shown = default if isinstance(default, str) else json.dumps(default)
        command = _key_option(name, key, f"[default: {shown}]")(command)
    return command


def _names(key: dict[str, Any]) -> str:
    """Returns a sentence that lists the names a key can hold; empty if the key is not a choice."""
    return f" One of {', '.join(key['enum'])}." if "enum" in key else ""


_METAVARS = {"boolean": "BOOL", "integer": "N", "number": "X"}
_UNITS = {"KiB": "SIZE", "KiB/s": "BANDWIDTH", "us": "TIME", "%": "PERCENT"}


def _metavar(key: dict[str, Any]) -> str:
    """Returns the word that stands for a key's value in the help."""
    if "enum" in key:
        return "NAME"
    holds = key["anyOf"][-1] if "anyOf" in key else key
    if "minLength" in holds:
        return "FILE"
    pattern = holds.get("pattern", "")
    quantities = (word for unit, word in _UNITS.items() if f"|{unit}|" in pattern or f"({unit})" in pattern)
    return _METAVARS.get(holds["type"]) or next(quantities, "MIX")


def overrides(settings: Iterable[str], flags: dict[str, str | None]) -> list[Override]:
    """Returns the overrides from ``--set`` and from the flags; the flags take precedence.

    Raises:
        UserError: a ``--set`` without ``=``.
    """
    given = [_setting(text) for text in settings]
    for name, value in flags.items():
        if value is not None:
            given.append(Override(f"{_flag(name)} {value}", SHORTHANDS[name], value))
    return given


def _setting(text: str) -> Override:
    key, equals, value = text.partition("=")
    if not equals or not key.strip():
        raise UserError(f"--set {text}: write --set KEY=VALUE, such as --set host.scheduler=noop")
    return Override(f"--set {text}", key.strip(), value.strip())
