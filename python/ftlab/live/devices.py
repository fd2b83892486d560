"""Running live devices: where to find them, and how to talk to them.

Each device leaves a name in a directory that belongs to its user: the control socket, or a symbolic link to
it.
"""

from __future__ import annotations

import json
import os
import socket
import stat
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from ftlab._core import UserError
from ftlab.units import percent, share_of

NOTICEABLE = 0.1
"""The share of the served time above which the wait for a processor is warned of."""


def runtime_directory() -> Path:
    """Returns the directory, in $XDG_RUNTIME_DIR or /tmp, in which this user's devices leave their names;
    creates it if it is missing.

    Raises:
        UserError: the directory belongs to somebody else, or cannot be made.
    """
    given = os.environ.get("XDG_RUNTIME_DIR")
    path = Path(given, "ftlab") if given else Path(tempfile.gettempdir(), f"ftlab-{os.getuid()}")
    try:
        path.mkdir(mode=0o700, exist_ok=True)
        found = path.lstat()
    except OSError as error:
        raise UserError(f"{path}: {error.strerror}; --control names another place") from None
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.getuid() or found.st_mode & 0o077:
        raise UserError(f"{path}: is not a directory for this user only (0700); remove it")
    return path


@contextmanager
def named(control: str | None) -> Iterator[str]:
    """Publishes this process's control socket under a name that other processes can find, as a symbolic link;
    if ``control`` is ``None``, the socket itself is created under that name.
    """
    name = runtime_directory() / f"{os.getpid()}.ctl"
    with suppress(FileNotFoundError):
        name.unlink()
    if control is None:
        yield str(name)
        return
    name.symlink_to(Path(control).absolute())
    try:
        yield control
    finally:
        with suppress(OSError):
            name.unlink()


def beside(addresses: Iterable[str]) -> str | None:
    """Returns the control socket next to the first Unix socket, if there is one."""
    paths = (address.removeprefix("unix:") for address in addresses if address.startswith("unix:"))
    return next((path + ".ctl" for path in paths), None)


def uri(address: str) -> str:
    """Returns an address in the form that NBD clients take."""
    kind, _, place = address.partition(":")
    return f"nbd+unix:///?socket={place}" if kind == "unix" else f"nbd://{place}"


def check_places(**paths: str | os.PathLike[str] | Iterable[str] | None) -> None:
    """Checks that the directories exist in which a device puts its sockets and files; ``paths`` has them by
    option.

    Raises:
        UserError: one is missing; the text names it.
    """
    for option, given in paths.items():
        listed = [given] if isinstance(given, (str, os.PathLike)) else given or ()
        for text in (os.fspath(each) for each in listed):
            path = Path(text.removeprefix("unix:"))
            folder = path if option == "fuse" else path.parent
            if not text.startswith("tcp:") and not folder.is_dir():
                missing = f"there is no directory {folder}; make it first"
                why = f"{folder} is not a directory" if folder.exists() else missing
                raise UserError(f"--{option} {text}: {why}")


def interfered(own: Mapping[str, Any]) -> str | None:
    """Returns a warning if clients of a live device saw other latencies than the result has, since threads of
    the device waited for a processor; ``own`` is the result's block ``live``.
    """
    found = own["interference"] or {}
    share = found.get("wait_share")
    if own["time"] == "free" or share is None or share <= NOTICEABLE:
        return None
    pressure = found["pressure"]
    others = "" if pressure is None else f"; tasks of the machine waited in {percent(pressure)} of the time"
    return (
        f"threads of the device waited for a processor, {share_of(share, 'the time in which requests were')}"
        f" under way{others}. Clients saw latencies that neither the simulation nor live.lateness has: give"
        " the device processors of its own, or a machine with less to do"
    )


def running() -> list[str]:
    """Returns the control sockets of this user's devices; removes names left by killed devices."""
    found = []
    for name in sorted(runtime_directory().glob("*.ctl")):
        with socket.socket(socket.AF_UNIX) as control:
            try:
                control.connect(str(name))
            except (ConnectionRefusedError, FileNotFoundError):
                with suppress(OSError):
                    name.unlink()
                continue
            except OSError:
                continue
        found.append(str(name.readlink()) if name.is_symlink() else str(name))
    # The name that a killed device has left may lead to the socket of a later one.
    return list(dict.fromkeys(found))


def the_only() -> str:
    """Returns the control socket of the only running device.

    Raises:
        UserError: no device is running, or several devices are; the error names the devices.
    """
    found = running()
    if len(found) == 1:
        return found[0]
    if not found:
        raise UserError("no live device of this user runs; start one with `ftlab serve`, or name its socket")
    raise UserError("several live devices run; name one:" + "".join(f"\n  {name}" for name in found))


def ask(path: str, command: str) -> dict[str, Any]:
    """Sends a command to a device and returns its answer; ``path`` is its control socket, or the Unix socket
    of its NBD server.

    Raises:
        UserError: no device answers there, or the device refuses the command.
    """
    last: OSError | None = None
    # The control socket is next to the NBD server's own socket, and is tried first: the NBD server would
    # answer with a greeting.
    for name in (path + ".ctl", path):
        with socket.socket(socket.AF_UNIX) as control:
            try:
                control.connect(name)
                control.sendall(command.encode() + b"\n")
                text = b"".join(iter(lambda: control.recv(1 << 16), b""))
            except OSError as error:
                last = error
                continue
        try:
            answer = json.loads(text)
        except ValueError:
            break
        if isinstance(answer, dict):
            if "error" in answer:
                raise UserError(f"{path}: {answer['error']}")
            return answer
    why = f": {last.strerror or last}" if last else ""
    raise UserError(f"{path}: no live device answers there{why}")
