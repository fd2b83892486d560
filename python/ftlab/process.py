"""The process of a command: its signals and standard streams are set up before anything else is loaded."""

import io
import os
import signal
import sys

ENDED = {signal.SIGINT: "interrupted", signal.SIGTERM: "terminated", signal.SIGHUP: "hung up"}
"""Signals that end a command, with what it then prints; the exit status is 128 plus the signal's number."""

STDOUT = "standard output"
"""The name that errors of standard output have in place of a file's name."""

_SHOW_CURSOR = "\r\x1b[K\x1b[?25h"


def begin() -> None:
    """Installs handlers for the signals that end a command, and replaces standard streams that are closed."""
    for number in ENDED:
        # Signals that the parent process ignored stay ignored, as under nohup.
        if signal.getsignal(number) != signal.SIG_IGN:
            signal.signal(number, _end)
    # A file that is opened later must not take the place of a closed stream. A closed standard output is
    # opened only for reading, so that writing to it is still an error.
    for opened, mode in enumerate((os.O_RDONLY, os.O_RDONLY, os.O_WRONLY)):
        try:
            os.fstat(opened)
        except OSError:
            os.set_inheritable(os.open(os.devnull, mode), True)
    sys.stderr = sys.stderr or open(2, "w", closefd=False)  # noqa: SIM115
    stream = sys.stdout or open(1, "w", closefd=False)  # noqa: SIM115
    if isinstance(stream, io.TextIOWrapper):
        settings = {name: getattr(stream, name) for name in _SETTINGS}
        # Code that asks for the terminal's width uses ``sys.__stdout__``.
        sys.stdout = sys.__stdout__ = _Stdout(stream.detach(), **settings)  # type: ignore[misc]


_SETTINGS = ("encoding", "errors", "line_buffering", "write_through")
"""The settings that a replaced text stream keeps."""


class _Stdout(io.TextIOWrapper):
    """Standard output, whose errors name it in place of a file."""

    def write(self, text: str) -> int:
        """Writes ``text``; an error names standard output."""
        try:
            return super().write(text)
        except OSError as error:
            error.filename = STDOUT
            raise

    def flush(self) -> None:
        """Flushes the stream; an error names standard output."""
        try:
            super().flush()
        except OSError as error:
            error.filename = STDOUT
            raise


def _end(number: int, _frame: object) -> None:
    """Ends the process at once, whatever it is doing, and leaves no unfinished file.

    An exception would not do: libraries mistake it for a failure of their own and report that, callbacks of
    the interpreter print and drop it, and a second signal would interrupt the cleanup after the first.
    """
    # If `ftlab.outputs` was never loaded, or is just being loaded, no file is being written.
    if discard := getattr(sys.modules.get("ftlab.outputs"), "discard_unfinished", None):
        discard()
    # The cursor is shown again, since a live display hides it.
    shown = (_SHOW_CURSOR if os.isatty(2) else "") + ENDED[signal.Signals(number)] + "\n"
    try:
        os.write(2, shown.encode())
    finally:
        os._exit(128 + number)
