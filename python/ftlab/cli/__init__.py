"""The command line. Exit status: 0 done, 2 the user's error, 1 a bug in ftlab."""

from __future__ import annotations

import errno
import importlib
import os
import signal
import sys
from collections.abc import Sequence
from contextlib import suppress
from typing import NoReturn

import click

from ftlab._core import InternalError, UserError, __version__
from ftlab.process import STDOUT

MOST_LINES = 12
"""The maximum number of lines in a message to the user."""

REFUSALS = {
    *(errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EROFS, errno.EIO, errno.ESTALE),
    *(errno.EACCES, errno.EPERM, errno.EMFILE, errno.ENFILE, errno.ENOMEM),
}
"""System errors that are not a bug in ftlab: the system has run out of something, or forbids something."""

_COMPLETION = "_FTLAB_COMPLETE"
_INTERRUPTED = 128 + signal.SIGINT


COMMANDS = {
    "calibrate": ("calibrate", "Fit a model to what a drive was measured to do."),
    "components": (
        "describe",
        "List what can be chosen in each layer, or for one KEY.",
    ),
    "compare": ("compare", "Run variants of a configuration side by side."),
    "completion": (
        "completion",
        "Print what a shell needs to complete commands, options, presets, keys and their values.",
    ),
    "crash": ("crash", "Cut the power again and again, recover from flash alone, verify what was promised."),
    "ctl": ("ctl", "Tell a live device something."),
    "demo": ("demo", "Compare seven I/O schedulers on the trace that comes with ftlab."),
    "diff": ("diff", "Say what differs between two results, settings first."),
    "presets": ("describe", "List the presets; with NAME, print that one as a file to start from."),
    "probe": ("probe", "Write job files for fio that measure a drive."),
    "reproduce": ("reproduce", "Reproduce a paper's figures and tables, published against measured."),
    "run": ("run", "Run one configuration and report what it measured."),
    "schema": ("describe", "Print the JSON Schema of a configuration file, for editors."),
    "serve": ("serve", "Serve the simulated device as a real block device until it is interrupted."),
    "sweep": ("sweep", "Run a study: every combination of its axes."),
    "top": ("top", "Watch a live device until it stops or you interrupt."),
    "trace": ("trace", "Look at traces, convert them, make them."),
    "tune": ("tune", "Search for the best configuration."),
}
"""For each command, its module in this package and its line in the list of commands."""


GROUPS = {
    "Runs": ("run", "compare", "demo", "diff", "crash"),
    "Traces": ("trace",),
    "Studies": ("sweep", "tune"),
    "Drives": ("probe", "calibrate"),
    "Papers": ("reproduce",),
    "Live device": ("serve", "top", "ctl"),
    "What there is": ("presets", "components", "schema", "completion"),
}
"""The groups in which the help lists the commands."""


class Commands(click.Group):
    """The commands, each of which is loaded when it is called; listing the commands loads none of them."""

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Returns the command of that name, if there is one."""
        if cmd_name not in COMMANDS:
            return None
        module = importlib.import_module(f"ftlab.cli.{COMMANDS[cmd_name][0]}")
        command: click.Command = getattr(module, cmd_name)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Lists the commands by group, all in the same columns."""
        width = max(map(len, COMMANDS))
        for group, names in GROUPS.items():
            with formatter.section(group):
                formatter.write_dl([(f"{name:{width}}", COMMANDS[name][1]) for name in names])


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(__version__, "-V", "--version", prog_name="ftlab", message="%(prog)s %(version)s")
def cli() -> None:
    """A laboratory for flash storage: replay a trace on a simulated device, compare its parts.

    \b
    ftlab run map-plus --trace a.csv
    ftlab compare map-plus --trace a.csv --vary host.scheduler=noop,row,map+
    """


# Click looks names up, and finds names to suggest, in this table; `get_command` loads the command itself.
cli.commands = {name: click.Command(name) for name in COMMANDS}


def main(arguments: Sequence[str] | None = None) -> NoReturn:
    """Runs the command line and exits."""
    status = call(arguments)
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        _discard_stdout()
    except OSError as error:
        status = status or _refused(error)
    sys.exit(status)


def call(arguments: Sequence[str] | None = None) -> int:
    """Runs the command line and returns the exit status."""
    try:
        given = list(sys.argv[1:] if arguments is None else arguments)
        _check_text(given)
        if _COMPLETION in os.environ:
            cli.main(given, prog_name="ftlab", complete_var=_COMPLETION)
        # This does not call cli.main, which treats a closed pipe as a failure.
        with cli.make_context("ftlab", _helped(given), obj=given) as context:
            cli.invoke(context)
        return 0
    except click.exceptions.Exit as done:
        return done.exit_code
    except click.exceptions.NoArgsIsHelpError as help_text:
        click.echo(help_text.format_message())
        return 0
    except UserError as error:
        return _fail(str(error))
    except click.ClickException as error:
        return _usage(error)
    except (KeyboardInterrupt, click.Abort):
        click.echo("interrupted", err=True)
        return _INTERRUPTED
    except BrokenPipeError:
        # The reader of our output has seen enough.
        _discard_stdout()
        return 0
    except OSError as error:
        return _refused(error)
    except Exception as error:
        return _fault(error)


def _helped(given: Sequence[str]) -> list[str]:
    """Returns the words of a call; ``help COMMAND`` is another way to write ``COMMAND --help``."""
    return [*given[1:], "--help"] if given[:1] == ["help"] else list(given)


def _check_text(arguments: Sequence[str]) -> None:
    for argument in arguments:
        try:
            argument.encode()
        except UnicodeEncodeError:
            shown = argument.encode(errors="backslashreplace").decode()
            raise UserError(
                f"{shown}: not UTF-8; rename the file, or link to it under a plain name"
            ) from None


def _fail(text: str) -> int:
    text = text.removeprefix("error: ")
    lines = text.rstrip("\n").split("\n")
    if len(lines) > MOST_LINES:
        lines = [*lines[: MOST_LINES - 1], "..."]
    from ftlab.outputs import tell

    # Standard error may be on a full disk too.
    with suppress(OSError):
        tell("error: " + "\n".join(lines))
    return 2


def _refused(error: OSError) -> int:
    """Reports an operation that the system refused, as on a full disk; any other system error is a bug in
    ftlab.
    """
    if error.filename == STDOUT:
        _discard_stdout()
    elif error.errno not in REFUSALS:
        return _fault(error)
    return _fail(": ".join(str(part) for part in (error.filename, error.strerror) if part is not None))


def _usage(error: click.ClickException) -> int:
    from ftlab.cli import slips

    modules = {name: module for name, (module, _) in COMMANDS.items()}
    text = (slips.hint(error, modules) or error.format_message()).rstrip(".")
    hint = ""
    if isinstance(error, click.UsageError) and error.ctx is not None:
        hint = f"\nsee `{error.ctx.command_path} --help`"
    return _fail(text[:1].lower() + text[1:] + hint)


def _fault(error: Exception) -> int:
    """Reports a bug in ftlab, and asks the user to pass the report on."""
    name = "" if isinstance(error, InternalError) else f"{type(error).__name__}: "
    first = (str(error).splitlines() or [""])[0]
    click.echo(f"ftlab: internal error: {name}{first}", err=True)
    if os.environ.get("FTLAB_DEBUG", "0") not in ("", "0"):
        import traceback

        traceback.print_exception(error)
    else:
        click.echo(
            f"This is a bug in ftlab {__version__}, not in your input. Please report it with the command\n"
            "line, the configuration and what the same command prints with FTLAB_DEBUG=1 set.",
            err=True,
        )
    return 1


def _discard_stdout() -> None:
    """Redirects standard output to /dev/null, so that the interpreter's own flush at exit cannot fail."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
