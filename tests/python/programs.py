"""Programs that tests start: they handle signals as on a terminal, and end with their test."""

from __future__ import annotations

import os
import signal
import subprocess
from pathlib import Path
from types import TracebackType
from typing import Any

SIGNALS = (signal.SIGINT, signal.SIGQUIT, signal.SIGTERM, signal.SIGHUP)


def take_no_notice(_number: int, _frame: object) -> None:
    """Handles a signal by doing nothing, as if the signal were ignored."""


def give_signals_back() -> None:
    """Gives programs the default handling of signals that are ignored here, as under nohup or in the
    background.

    Signals that a process ignores are also ignored in its children; signals that it handles are not.
    """
    for number in SIGNALS:
        if signal.getsignal(number) == signal.SIG_IGN:
            signal.signal(number, take_no_notice)


class Program(subprocess.Popen[Any]):
    """A program that a test started; `running` lists those that `clean_up` has to end."""

    running: list[Program] = []  # noqa: RUF012

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.running.append(self)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, where: TracebackType | None
    ) -> None:
        # After a failure in the block the program is killed, so that the test does not wait for it to end.
        if kind is not None:
            self.kill()
        super().__exit__(kind, error, where)


def clean_up(folder: Path) -> None:
    """Kills the programs that are still running, and unmounts what they mounted in a folder."""
    while Program.running:
        program = Program.running.pop()
        program.kill()
        for pipe in (program.stdin, program.stdout, program.stderr):
            if pipe is not None:
                pipe.close()
        program.wait()
    within = f"{folder}/".encode()
    for line in Path("/proc/mounts").read_bytes().splitlines():
        # Spaces in a path are escaped.
        at = line.split()[1].decode("unicode_escape").encode("latin-1")
        if at.startswith(within):
            subprocess.run(["umount", "--lazy", os.fsdecode(at)], check=False)
