"""A live device in a process of its own, and file systems on it."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

PAGE_MAPPED = ["--set", "flash.blocks_per_plane=256"]
DEVICES: dict[str, list[str]] = {
    "page": ["map-plus", *PAGE_MAPPED, "--set", "ftl.kind=page"],
    "dftl": ["map-plus", *PAGE_MAPPED],
    "msftl": ["msftl", "--set", "flash.blocks_per_plane=64"],
    "bast": ["coop-bast"],
    "fast": ["coop-fast"],
    # A file of all its 128 GiB, of which each page is filled first, would take minutes.
    "vios": ["vios", "--set", "flash.blocks_per_plane=64"],
}


def need(*commands: str) -> None:
    """Skips a test that needs a client which is not installed; in CI, fails it."""
    for command in commands:
        if shutil.which(command) is None:
            lacks(f"{command} is not installed (.ci/run names the packages)")


def need_loop() -> None:
    """Skips a test if no file system can be mounted on the device; in CI, fails it."""
    if os.geteuid() != 0:
        lacks("only root may mount a file system")
    for path in ("/dev/fuse", "/dev/loop-control"):
        if not Path(path).exists():
            lacks(f"there is no {path}")


def lacks(what: str) -> None:
    """Skips the test because something is missing; in CI, fails it."""
    assert "CI" not in os.environ, what
    pytest.skip(what)


class Served:
    """A live device in its own process."""

    def __init__(self, process: subprocess.Popen[str], uri: str, path: Path) -> None:
        self.process = process
        self.uri = uri
        self.path = path
        self.said = ""
        self.printed = ""
        self.ended = ""
        self.result: dict[str, Any] = {}

    @property
    def disk(self) -> Path:
        """Returns the path of the device's file."""
        return self.path.with_name("mnt") / "disk"

    def client(self, *command: str) -> str:
        """Returns what a client prints; the client must succeed."""
        # nbdsh runs in the system's own Python, where libnbd's module is.
        system = {"PATH": "/usr/bin:/bin"}
        done = subprocess.run(
            command,
            cwd=self.path.parent,
            env=system,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def shell(self, script: str) -> None:
        """Runs Python with libnbd's handle `h`, and the address `URI`."""
        self.client("nbdsh", "-c", f"URI = {self.uri!r}", "-c", script)


@contextmanager
def served(
    directory: Path,
    *arguments: str,
    stop: int = signal.SIGTERM,
    fuse: bool = False,
    said: str = "",
    status: int = 0,
) -> Iterator[Served]:
    """Serves a device on a Unix socket and, with `fuse`, also as a file; at the end its result is available,
    and what it prints and says.

    `said` is the beginning of a line that the device prints before the line that says where the file is;
    `status` is the one with which it has to end. A device that is killed has no result.
    """
    path, out = directory / "live.sock", directory / "live.json"
    command = [sys.executable, "-m", "ftlab", "serve", *arguments]
    mount = directory / "mnt"
    if fuse:
        mount.mkdir(exist_ok=True)
        command += ["--fuse", str(mount)]
    with subprocess.Popen(
        [*command, "--nbd", f"unix:{path}", "--json", str(out)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stderr
        first = process.stderr.readline()
        assert first.startswith("serving "), first + process.stderr.read()
        device = Served(process, first.removeprefix("serving ").strip(), path)
        if said:
            device.said = process.stderr.readline()
            assert device.said.startswith(said), device.said
        if fuse:
            assert process.stderr.readline() == f"serving {device.disk}\n"
        try:
            yield device
        finally:
            process.send_signal(stop)
            device.printed, device.ended = process.communicate(timeout=60)
        assert process.returncode == status, device.ended
        if status >= 0:
            device.result = json.loads(out.read_text())
    assert not path.exists()


def root(*command: str | Path) -> str:
    """Returns what a command prints; the command must succeed."""
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, f"{command}: {done.stdout}{done.stderr}"
    return done.stdout


@contextmanager
def loop(disk: Path) -> Iterator[str]:
    """Yields a loop device over the file."""
    device = root("losetup", "--direct-io=on", "--find", "--show", disk).strip()
    try:
        yield device
    finally:
        root("losetup", "--detach", device)


@contextmanager
def mounted(device: str, at: Path) -> Iterator[Path]:
    """Mounts the file system of a block device, during the `with` block."""
    at.mkdir(exist_ok=True)
    root("mount", device, at)
    try:
        yield at
    finally:
        root("umount", at)


def without_times(result: dict[str, Any]) -> dict[str, Any]:
    """Returns the parts of a result that a replay must reproduce."""
    kept = {key: value for key, value in result.items() if key not in ("engine", "live")}
    kept["config"] = {key: value for key, value in kept["config"].items() if key != "workload"}
    return kept
