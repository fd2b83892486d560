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
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from ftlab import _core
from ftlab._core import UserError
from ftlab.live.copies import copy
from ftlab.live.lost import Cut
from ftlab.outputs import Output

if TYPE_CHECKING:
    from ftlab._core import Config, LiveServer

DISK = "FTLAB_DISK"
"""The environment variable that tells programs where the device is."""
GRACE_S = 10.0
"""How long a program may take to notice that its device has gone, before it is killed."""
NOTED_S = 1.0
"""How long after a client it may be known that the power has gone."""
LOOK_S = 0.005
MOST_TEXT = 4000
"""The maximum number of characters of a program's output that are shown."""


@dataclass(frozen=True)
class Programs:
    """The programs that run on the device, and whether they see it as a file or as an NBD server."""

    command: Sequence[str]
    setup: str | None
    check: str | None
    fuse: bool
    owner: tuple[int, int] | None = None
    """The user and the group to which the directories and the socket of each device belong."""
    settle_s: float = 0.0
    """How long the device stays up after the command has ended."""


@dataclass
class Covered:
    """How many states of the unflushed writes were judged, and how many there are."""

    judged: int = 0
    """States in which each write persists as a whole or not at all."""
    all: int = 0
    torn: int = 0
    """States in which some write persists in part."""
    torn_all: int = 0


@dataclass
class Outcome:
    """The outcome of all cuts."""

    cuts: int = 0
    """The number of cuts that were judged."""
    operations: int = 0
    """The number of flash programs and erases that the command causes if the power is not cut."""
    requests: int = 0
    """The number of its writes, trims and flushes, likewise."""
    states: Covered | None = None
    """With every state."""
    torn_programs: int = 0
    torn_erases: int = 0
    recoveries_ns: list[int] = field(default_factory=list)
    failures: list[Failure] = field(default_factory=list)


@dataclass(frozen=True)
class Failure:
    """A cut after which the check failed."""

    seed: int
    operation: int
    """The program or erase in which the power was cut; 0 if it was cut at a request."""
    status: int
    text: str
    request: int = 0
    """The write, trim or flush that the cut lost as it came, from 1 on; 0 if it was cut in an operation."""
    requests: int = 0
    """How many writes, trims and flushes had come."""
    lost: list[dict[str, Any]] = field(default_factory=list)
    """The unflushed writes that do not persist as a whole."""
    recent: list[dict[str, Any]] = field(default_factory=list)
    """The requests of the last second."""
    told: str = ""
    """The same as text; empty on a device without a volatile cache that a seed plays against."""


@dataclass(frozen=True)
class Point:
    """Where the power is cut: in an operation of the flash, or at a request; one of them is 0."""

    seed: int
    operation: int = 0
    request: int = 0


class StoppedError(Exception):
    """Raised when the campaign ends early."""


def drawn(seed: int, outcome: Outcome) -> Point:
    """Returns where a seed cuts: in one of the operations, or at one of the requests."""
    number = random.Random(seed).randint(1, outcome.operations + outcome.requests)
    if number <= outcome.operations:
        return Point(seed, operation=number)
    return Point(seed, request=number - outcome.operations)


class Campaign:
    """A series of power cuts, on one device that one program uses."""

    def __init__(
        self, config: Config, programs: Programs, ended: threading.Event, keep: Path | None = None
    ) -> None:
        """Makes the campaign; ``config`` has ``ftl.power_safe``; setting ``ended`` ends the campaign; the
        first failure is kept in the directory ``keep``.
        """
        self.programs = programs
        self._config = config
        self._ended = ended
        self._keep = keep
        self.scratch = self.pristine = Path()

    def run(self, seeds: Sequence[int], jobs: int, told: Any = lambda: None) -> Outcome:
        """Cuts the power once for each seed, until a check fails. Calls `told` after each cut."""
        outcome = Outcome()
        with suppress(StoppedError), self.begun(outcome):
            points = (drawn(seed, outcome) for seed in seeds)
            self.each(points, self.cut, outcome, jobs, told)
        outcome.failures.sort(key=lambda failure: failure.seed)
        return outcome

    @contextmanager
    def begun(self, outcome: Outcome) -> Iterator[None]:
        """Runs the setup, and the command and the check without a cut, before the block, in which cuts may be
        made.
        """
        # Names of sockets must be short. What a killed program leaves mounted cannot be removed.
        folder = tempfile.TemporaryDirectory(prefix="ftlab-", ignore_cleanup_errors=True)
        with folder as name:
            self.scratch = Path(name)
            if self.programs.owner:
                # Its files are for their owner alone; the way to them is open.
                self.scratch.chmod(0o711)
            self.pristine = self.scratch / "pristine"
            self.pristine.mkdir()
            self._set_up(self.pristine)
            outcome.operations, outcome.requests = self._rehearse(self.scratch / "rehearsal")
            yield

    def each(
        self,
        points: Iterable[Point],
        work: Callable[[Point], tuple[dict[str, Any], int | None, Failure | None]],
        outcome: Outcome,
        jobs: int,
        told: Callable[[], None],
    ) -> None:
        """Does the work of all points, `jobs` at a time, until one fails.

        Raises:
            UserError: a command failed by itself, and no check has failed.
        """
        wrong = None
        with ThreadPoolExecutor(jobs) as pool:
            try:
                cuts = [pool.submit(work, point) for point in points]
                for done in as_completed(cuts):
                    try:
                        _add(outcome, *done.result())
                        told()
                    except StoppedError:
                        pass
                    except UserError as error:
                        wrong = wrong or error
                    if outcome.failures or wrong:
                        self._ended.set()
            finally:
                self._ended.set()
        if wrong and not outcome.failures:
            raise wrong

    def _set_up(self, at: Path) -> None:
        """Makes a device and runs the setup command, if there is one, on it."""
        with self._device(at) as server:
            if self.programs.setup is not None:
                status, text = self._call(["/bin/sh", "-c", self.programs.setup], at, None)
                if status:
                    raise UserError(f"--setup-command failed (exit status {status}):\n{text}")
            server.stop()

    def _rehearse(self, at: Path) -> tuple[int, int]:
        """Runs the command and the check without a cut; returns how many programs and erases the command
        caused, and how many writes, trims and flushes it sent.
        """
        copy(self.pristine, at)
        with self._device(at) as server:
            status, text = self._call(self.programs.command, at, None)
            if status:
                raise UserError(f"the command fails without a power cut (exit status {status}):\n{text}")
            self._ended.wait(self.programs.settle_s)
            run = server.stop()
            assert run is not None
        judged = self.judge(at)
        if judged is not None:
            status, text = judged
            raise UserError(f"the check fails without a power cut (exit status {status}):\n{text}")
        media = json.loads(run.json)["live"]["media"]
        if not media["operations"] and not media["requests"]:
            raise UserError("the command changes nothing on the device, so nothing can be cut")
        shutil.rmtree(at)
        return int(media["operations"]), int(media["requests"])

    def cut(self, point: Point) -> tuple[dict[str, Any], int, Failure | None]:
        """Performs one cut; returns what the cut did, how many ns recovery took, and the failure that the
        check found, if any.
        """
        at = self.scratch / str(point.seed)
        done = self.lose_power(at, point)
        recovery: list[int] = []
        failure = self.judged(at, point, done["requests"], recovery)
        shutil.rmtree(at, ignore_errors=True)
        return done["cut"], sum(recovery), failure

    def lose_power(self, at: Path, point: Point) -> dict[str, Any]:
        """Runs the command in a new directory until the power is cut; returns the media's part of the
        result.
        """
        if self._ended.is_set():
            raise StoppedError
        copy(self.pristine, at)
        with self._device(at) as server:
            if point.request:
                server.cut_at_request(point.request, point.seed)
            else:
                server.cut(point.operation, point.seed)
            status, text = self._call(self.programs.command, at, server)
            if status and not _gone(server):
                raise UserError(
                    f"seed {point.seed}: the command fails while the device has power (exit status {status}),"
                    f" so this cut would show nothing:\n{text}"
                )
            waited = time.monotonic() + self.programs.settle_s
            while not server.look() and time.monotonic() < waited and not self._ended.is_set():
                time.sleep(LOOK_S)
            # If the command has finished before that operation or request, the power is cut now.
            if not server.look():
                server.cut(0, point.seed)
            run = server.stop()
            assert run is not None
        media: dict[str, Any] = json.loads(run.json)["live"]["media"]
        return media

    def judged(
        self, at: Path, point: Point, requests: int, recovery: list[int] | None = None
    ) -> Failure | None:
        """Judges the device that a cut has left in a directory; returns the failure, explained."""
        lost = Cut(at / "nand") if Cut.exists(at / "nand") else None
        kept = self.scratch / f"kept-{point.seed}"
        if self._keep:
            copy(at, kept)
        judged = self.judge(at, recovery)
        failure = None
        if judged is not None:
            failure = Failure(point.seed, point.operation, *judged, point.request, requests)
            if lost:
                failure = replace(failure, lost=lost.lost(), recent=lost.recent, told=lost.told())
            self._put_by(kept, failure)
        shutil.rmtree(kept, ignore_errors=True)
        return failure

    def _put_by(self, kept: Path, failure: Failure) -> None:
        """Moves what a failed cut has left to the directory for it, if that is still empty."""
        if self._keep is None or any(self._keep.iterdir()):
            return
        copy(kept, self._keep / "image")
        text = f"exit status {failure.status}\n{failure.text}\n\n{failure.told}\n"
        Output("--keep", self._keep / "explanation.txt", links=False).write(text.encode())

    def judge(self, at: Path, recovery: list[int] | None = None) -> tuple[int, str] | None:
        """Starts the device again and runs the check; if that fails, returns its exit status and output."""
        with self._device(at) as server:
            opened = json.loads(server.opened())
            if recovery is not None:
                recovery.append(opened.get("recovery", {}).get("elapsed_ns", 0))
            if self.programs.check is None:
                return None
            status, text = self._call(["/bin/sh", "-c", self.programs.check], at, None)
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
            fuse=mount if self.programs.fuse else None,
            media=at / "nand",
            speed=None,
        )
        try:
            if self.programs.owner:
                for path in (at, at / "nbd"):
                    os.chown(path, *self.programs.owner)
            yield server
        finally:
            server.stop()

    def _call(self, command: Sequence[str], at: Path, server: LiveServer | None) -> tuple[int, str]:
        """Runs a program in the directory, with `server` only until that device has lost its power; returns
        the program's exit status and output.
        """
        if self._ended.is_set():
            raise StoppedError
        disk = f"nbd+unix:///?socket={at / 'nbd'}"
        environment = {**os.environ, DISK: str(at / "mnt" / "disk") if self.programs.fuse else disk}
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
                    raise StoppedError
                return
            time.sleep(LOOK_S)


def _gone(server: LiveServer) -> bool:
    """Returns whether a device has lost its power; a client may learn of it a moment earlier."""
    latest = time.monotonic() + NOTED_S
    while not server.look() and time.monotonic() < latest:
        time.sleep(LOOK_S)
    return server.look()


def _add(outcome: Outcome, done: dict[str, Any], recovery_ns: int | None, failure: Failure | None) -> None:
    outcome.cuts += 1
    outcome.torn_programs += done["torn_programs"]
    outcome.torn_erases += done["torn_erases"]
    if recovery_ns is not None:
        outcome.recoveries_ns.append(recovery_ns)
    if failure is not None:
        outcome.failures.append(failure)


def _shown(output: IO[bytes]) -> str:
    """Returns the end of a program's output."""
    output.seek(0, os.SEEK_END)
    output.seek(max(0, output.tell() - MOST_TEXT))
    return output.read().decode(errors="replace").strip()
