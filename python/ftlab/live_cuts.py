"""The user's program under power cuts, on a live device: cut, recover, judge, again and again."""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import subprocess
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from ftlab import _core
from ftlab._core import UserError

if TYPE_CHECKING:
    from ftlab._core import Config, LiveServer

DISK = "FTLAB_DISK"
"""The environment variable that tells programs where the device is."""
GRACE_S = 10.0
"""How long a program may take to notice that its device has gone, before it is killed."""
LOOK_S = 0.005
CHUNK = 1 << 20
MOST_TEXT = 4000
"""The maximum number of characters of a program's output that are shown."""


@dataclass(frozen=True)
class Programs:
    """The programs that run on the device, and whether they see it as a file or as an NBD server."""

    command: Sequence[str]
    setup: str | None
    check: str | None
    fuse: bool


@dataclass
class Outcome:
    """The outcome of all cuts."""

    cuts: int = 0
    """The number of cuts that were judged."""
    operations: int = 0
    """The number of flash programs and erases that the command causes if the power is not cut."""
    torn_programs: int = 0
    torn_erases: int = 0
    recoveries_ns: list[int] = field(default_factory=list)
    failures: list[Failure] = field(default_factory=list)


@dataclass(frozen=True)
class Failure:
    """A cut after which the check failed."""

    seed: int
    operation: int
    status: int
    text: str


class _StoppedError(Exception):
    """Raised when the campaign ends early."""


class Campaign:
    """A series of power cuts, on one device that one program uses."""

    def __init__(self, config: Config, programs: Programs, ended: threading.Event) -> None:
        """Makes the campaign; ``config`` has ``ftl.power_safe``; setting ``ended`` ends the campaign."""
        self._config = config
        self._programs = programs
        self._ended = ended

    def run(self, seeds: Sequence[int], jobs: int, told: Any = lambda: None) -> Outcome:
        """Cuts the power once for each seed, until a check fails. Calls `told` after each cut."""
        outcome = Outcome()
        # Names of sockets must be short. What a killed program leaves mounted cannot be removed.
        folder = tempfile.TemporaryDirectory(prefix="ftlab-", ignore_cleanup_errors=True)
        with suppress(_StoppedError), folder as name:
            scratch = Path(name)
            pristine = scratch / "pristine"
            pristine.mkdir()
            self._set_up(pristine)
            outcome.operations = self._rehearse(scratch / "rehearsal", pristine)
            with ThreadPoolExecutor(jobs) as pool:
                try:
                    cuts = [
                        pool.submit(self._cut, scratch / str(seed), pristine, seed, outcome.operations)
                        for seed in seeds
                    ]
                    for done in as_completed(cuts):
                        with suppress(_StoppedError):
                            _add(outcome, *done.result())
                            told()
                        if outcome.failures:
                            self._ended.set()
                finally:
                    self._ended.set()
        outcome.failures.sort(key=lambda failure: failure.seed)
        return outcome

    def _set_up(self, at: Path) -> None:
        """Makes a device and runs the setup command, if there is one, on it."""
        with self._device(at) as server:
            if self._programs.setup is not None:
                status, text = self._call(["/bin/sh", "-c", self._programs.setup], at, None)
                if status:
                    raise UserError(f"--setup-command failed (exit status {status}):\n{text}")
            server.stop()

    def _rehearse(self, at: Path, pristine: Path) -> int:
        """Runs the command and the check without a cut; returns how many programs and erases the command
        caused.
        """
        _copy(pristine, at)
        with self._device(at) as server:
            status, text = self._call(self._programs.command, at, None)
            if status:
                raise UserError(f"the command fails without a power cut (exit status {status}):\n{text}")
            run = server.stop()
            assert run is not None
        failure = self._judge(at)
        if failure is not None:
            status, text = failure
            raise UserError(f"the check fails without a power cut (exit status {status}):\n{text}")
        operations = json.loads(run.json)["live"]["media"]["operations"]
        if not operations:
            raise UserError("the command changes nothing on the flash, so nothing can be cut")
        shutil.rmtree(at)
        return int(operations)

    def _cut(
        self, at: Path, pristine: Path, seed: int, operations: int
    ) -> tuple[dict[str, Any], int, Failure | None]:
        """Performs one cut; returns what the cut did, how many ns recovery took, and the failure that the
        check found, if any.
        """
        if self._ended.is_set():
            raise _StoppedError
        _copy(pristine, at)
        operation = random.Random(seed).randint(1, operations)
        with self._device(at) as server:
            server.cut(operation, seed)
            self._call(self._programs.command, at, server)
            # If the command has finished before that operation, the power is cut now.
            if not server.look():
                server.cut(0, seed)
            run = server.stop()
            assert run is not None
            done = json.loads(run.json)["live"]["media"]["cut"]
        recovery: list[int] = []
        failure = self._judge(at, recovery)
        shutil.rmtree(at, ignore_errors=True)
        return done, sum(recovery), failure and Failure(seed, operation, *failure)

    def _judge(self, at: Path, recovery: list[int] | None = None) -> tuple[int, str] | None:
        """Starts the device again and runs the check; if that fails, returns its exit status and output."""
        with self._device(at) as server:
            opened = json.loads(server.opened())
            if recovery is not None:
                recovery.append(opened.get("recovery", {}).get("elapsed_ns", 0))
            if self._programs.check is None:
                return None
            status, text = self._call(["/bin/sh", "-c", self._programs.check], at, None)
            server.stop()
        return (status, text) if status else None

    @contextmanager
    def _device(self, at: Path) -> Iterator[LiveServer]:
        """Yields the device whose flash is in a directory."""
        mount = at / "mnt"
        mount.mkdir(exist_ok=True)
        server = _core.LiveServer(
            self._config,
            [f"unix:{at / 'nbd'}"],
            fuse=mount if self._programs.fuse else None,
            media=at / "nand",
            speed=None,
        )
        try:
            yield server
        finally:
            server.stop()

    def _call(self, command: Sequence[str], at: Path, server: LiveServer | None) -> tuple[int, str]:
        """Runs a program in the directory, with `server` only until that device has lost its power; returns
        the program's exit status and output.
        """
        if self._ended.is_set():
            raise _StoppedError
        disk = f"nbd+unix:///?socket={at / 'nbd'}"
        environment = {**os.environ, DISK: str(at / "mnt" / "disk") if self._programs.fuse else disk}
        with (at / "output").open("w+b") as output:
            try:
                process = subprocess.Popen(
                    command,
                    cwd=at,
                    env=environment,
                    stdin=subprocess.DEVNULL,
                    stdout=output,
                    stderr=subprocess.STDOUT,
                    start_new_session=True,
                )
            except OSError as error:
                raise UserError(f"{command[0]}: {error.strerror}") from None
            try:
                self._wait(process, server)
            finally:
                with suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)
                process.wait()
            return process.returncode, _shown(output)

    def _wait(self, process: subprocess.Popen[bytes], server: LiveServer | None) -> None:
        """Waits for a program to end, but at most `GRACE_S` after its device or the campaign has ended.

        The program is not killed immediately, even if nobody needs its result: it has to unmount what it
        mounted.
        """
        over_since = None
        while process.poll() is None:
            ended = self._ended.is_set()
            if over_since is None and (ended or (server is not None and server.look())):
                over_since = time.monotonic()
            if over_since is not None and time.monotonic() - over_since > GRACE_S:
                if ended:
                    raise _StoppedError
                return
            time.sleep(LOOK_S)


def _add(outcome: Outcome, done: dict[str, Any], recovery_ns: int, failure: Failure | None) -> None:
    outcome.cuts += 1
    outcome.torn_programs += done["torn_programs"]
    outcome.torn_erases += done["torn_erases"]
    outcome.recoveries_ns.append(recovery_ns)
    if failure is not None:
        outcome.failures.append(failure)


def _shown(output: IO[bytes]) -> str:
    """Returns the end of a program's output."""
    output.seek(0, os.SEEK_END)
    output.seek(max(0, output.tell() - MOST_TEXT))
    return output.read().decode(errors="replace").strip()


def _copy(pristine: Path, at: Path) -> None:
    """Copies the directory of a device; holes in its media file stay holes."""
    shutil.copytree(pristine, at, ignore=shutil.ignore_patterns("nand", "output", "nbd*", "mnt"))
    with (pristine / "nand").open("rb") as source, (at / "nand").open("wb") as target:
        end = os.fstat(source.fileno()).st_size
        target.truncate(end)
        place = 0
        while place < end:
            try:
                place = os.lseek(source.fileno(), place, os.SEEK_DATA)
            except OSError:
                return
            hole = os.lseek(source.fileno(), place, os.SEEK_HOLE)
            while place < hole:
                data = os.pread(source.fileno(), min(CHUNK, hole - place), place)
                os.pwrite(target.fileno(), data, place)
                place += len(data)
