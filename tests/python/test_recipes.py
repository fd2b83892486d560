"""Recipes of the pages, typed as printed: those that need root, several terminals or long campaigns."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from live import need, need_loop
from pages import DOCS, blocks

NOT_TYPED = {
    r"ftlab crash CONFIG": "a synopsis",
    r"ftlab top": "on a terminal: test_live_watched.py",
    r"qemu-system": "with `...` in it",
    r"echo 3 >": "for the whole machine: test it on one of your own",
}
SMALLER = {
    "200000": "2000",
    "--size=64m": "--size=1m",
    "--cuts 200": "--cuts 8",
    "blocks_per_plane=4096": "blocks_per_plane=512",
    "serve msftl ": "serve msftl --set flash.blocks_per_plane=64 ",
}


def commands(console: str) -> Iterator[tuple[str, list[str]]]:
    """Yields the commands of a block, each with the lines that the block shows below it."""
    for part in re.split(r"^[$#] ", console, flags=re.MULTILINE)[1:]:
        typed, *lines = part.splitlines()
        while lines and not complete(typed):
            typed += "\n" + lines.pop(0)
        yield typed, lines


def complete(typed: str) -> bool:
    """Whether a command is complete, so that a shell would not wait for more lines."""
    if typed.endswith("\\"):
        return False
    done = subprocess.run(["bash", "-n", "-c", typed], capture_output=True, check=False)
    return not done.returncode and not done.stderr


class Terminals:
    """A shell, and a second one for a device that is served; the page's paths are below `place`."""

    def __init__(self, place: Path) -> None:
        self.place = place
        self.stand_ins = {"/run/user/1000": str(place), "/mnt/": f"{place}/mnt-", **SMALLER}
        self.served: subprocess.Popen[str] | None = None
        shim = place / "bin" / "ftlab"
        shim.parent.mkdir()
        shim.write_text(f'#!/bin/sh\nexec {sys.executable} -m ftlab "$@"\n')
        shim.chmod(0o755)
        path = f"{shim.parent}:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
        self.environment = {**os.environ, "PATH": path, "XDG_RUNTIME_DIR": str(place)}

    def here(self, text: str) -> str:
        """Returns a text of the page with its paths replaced by those below `place`."""
        for name, stand_in in self.stand_ins.items():
            text = text.replace(name, stand_in)
        return text

    def type(self, typed: str, shown: list[str]) -> None:
        """Types a command, which must succeed and print what the page shows."""
        if typed.startswith("ftlab compare"):
            # As the page says, the device in the first terminal is interrupted first.
            self.interrupt()
        typed = self.here(typed)
        if typed.startswith("ftlab serve"):
            self.serve(typed, shown)
            return
        done = self.run(typed)
        assert done.returncode == 0, f"{typed}: {done.stdout}{done.stderr}"
        if typed.startswith("losetup --direct-io"):
            (device,) = shown
            self.stand_ins[device] = done.stdout.strip()
        if shown:
            assert done.stdout.splitlines() == [self.here(line) for line in shown]

    def run(self, typed: str) -> subprocess.CompletedProcess[str]:
        """Runs a command in the shell."""
        return subprocess.run(
            ["bash", "-c", typed],
            cwd=self.place,
            env=self.environment,
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )

    def serve(self, typed: str, shown: list[str]) -> None:
        """Serves a device in the other terminal."""
        assert self.served is None
        self.served = subprocess.Popen(
            ["bash", "-c", f"exec {typed}"],
            cwd=self.place,
            env=self.environment,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        )
        assert self.served.stderr
        said = self.served.stderr.readline()
        assert said.startswith("serving "), said + self.served.stderr.read()
        if shown:
            assert [said.strip()] == [self.here(line) for line in shown]

    def interrupt(self) -> None:
        """Interrupts the device that is served."""
        if self.served is None:
            return
        self.served.send_signal(signal.SIGINT)
        _, said = self.served.communicate(timeout=60)
        assert self.served.returncode == 0, said
        self.served = None

    def leave(self) -> None:
        """Removes what a recipe, finished or not, has left mounted or running."""
        self.run(self.here("umount /mnt/phone"))
        for device in {value for name, value in self.stand_ins.items() if name.startswith("/dev/loop")}:
            self.run(f"losetup --detach {device}")
        try:
            self.interrupt()
        finally:
            if self.served is not None:
                self.served.kill()
                self.served.communicate()
            self.run(self.here("umount --lazy /mnt/ftlab"))


@contextmanager
def terminals(place: Path) -> Iterator[Terminals]:
    found = Terminals(place)
    with ExitStack() as stack:
        stack.callback(found.leave)
        yield found


@pytest.mark.parametrize("page", ["live", "serve-a-device", "real-workload"])
def test_a_recipe_does_what_the_page_says(page: str, tmp_path: Path) -> None:
    """Each command of the recipe, typed block by block, succeeds and prints what the page shows."""
    need_loop()
    need("mkfs.ext4", "sqlite3", "fio", "nbdinfo")
    typed = 0
    with terminals(tmp_path) as shell:
        for block in blocks(DOCS / f"{page}.md", "console"):
            for command, shown in commands(block):
                if not any(re.match(each, command) for each in NOT_TYPED):
                    shell.type(command, shown)
                    typed += 1
    assert typed >= 2


def test_the_script_under_power_cuts_loses_nothing_that_it_acknowledged(tmp_path: Path) -> None:
    """Regression: the page's script acknowledged a key although the sync had failed, as the first cuts
    revealed.

    As the page says, cuts also reveal a script that does this, or one without the line that syncs.
    """
    need_loop()
    need("mkfs.ext4")
    page = DOCS / "cut-the-power.md"
    (script,) = blocks(page, "bash")
    name = re.search(r"^# (\S+) ", script, re.MULTILINE)
    assert name
    ((command, _),) = [
        found
        for block in blocks(page, "console")
        for found in commands(block)
        if not any(re.match(each, found[0]) for each in NOT_TYPED)
    ]
    assert name[1] in command
    with terminals(tmp_path) as shell:
        path = tmp_path / name[1]
        path.write_text(script)
        path.chmod(0o755)
        shell.type(command, [])
        without = (r" \|\| exit(?=    #)", r"^ +sync .*\n")
        for changed in (re.sub(each, "", script, flags=re.MULTILINE) for each in without):
            assert changed != script
            path.write_text(changed)
            done = shell.run(shell.here(command))
            assert done.returncode == 1 and "the check fails" in done.stderr, done.stdout + done.stderr
