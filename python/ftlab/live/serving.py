"""A live device as a context manager: `ftlab.serve`."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ftlab import _core
from ftlab._core import InternalError, UserError
from ftlab.configs import ConfigLike, Override, Scalar, load, overrides_of
from ftlab.live import devices
from ftlab.live.recordings import check_recording, finish_recording, reader_of
from ftlab.outputs import Output
from ftlab.results.result import Result

if TYPE_CHECKING:
    from ftlab._core import LiveServer


class LiveDevice:
    """A simulated device that real programs use while the block of `serve` runs."""

    def __init__(self, server: LiveServer, control: str, fuse: str | os.PathLike[str] | None) -> None:
        """Makes the handle of a running server."""
        self._server = server
        self.control = control
        """The socket of ``ftlab ctl`` and ``ftlab top``."""
        self.uris = [devices.uri(address) for address in server.addresses()]
        """The addresses in the form that NBD clients take."""
        self.disk = None if fuse is None else Path(fuse) / "disk"
        """The device as a file, if it has a FUSE directory."""
        self.metrics = server.metrics()
        """The address of the metrics for Prometheus, if there is one."""
        self.opened: dict[str, Any] = json.loads(server.opened())
        """In what state the media file was found."""
        self.result: Result | None = None
        """What was measured; None as long as the device runs."""

    def ask(self, command: str) -> dict[str, Any]:
        """Returns the answer to a command of ``ftlab ctl``, such as ``"stats"`` or ``"flush"``.

        Raises:
            UserError: the device refuses the command, or does not run any more.
        """
        return devices.ask(self.control, command)

    def look(self) -> bool:
        """Returns whether the device was asked to stop by a command; raises the error that stopped it.

        Raises:
            UserError: the device has failed, for example because its media file cannot be written.
        """
        return self._server.look()


@contextmanager
def serve(
    config: ConfigLike,
    *,
    nbd: str | Sequence[str] = (),
    fuse: str | os.PathLike[str] | None = None,
    media: str | os.PathLike[str] | None = None,
    set: Mapping[str, Any] | None = None,  # noqa: A002 - the name of the command line's option
    speed: float | None = 1.0,
    control: str | None = None,
    metrics: str | None = None,
    read_only: bool = False,
    streams: int = 0,
    trace_pids: bool = False,
    record: str | os.PathLike[str] | None = None,
    rotate: int | None = None,
    wait: str = "auto",
    load_state: str | os.PathLike[str] | None = None,
    check: bool = False,
    **overrides: Scalar,
) -> Iterator[LiveDevice]:
    """Serves the simulated device as a real block device during a block, as ``ftlab serve`` does.

    When the block ends, requests under way complete, and `LiveDevice.result` has what was measured.

    Args:
        config: as for `ftlab.run`.
        nbd: addresses for NBD clients, ``"unix:PATH"`` or ``"tcp:HOST:PORT"`` (loopback alone).
        fuse: directory in which the device is a file, ``disk``.
        media: file that keeps the flash; sets ``ftl.power_safe``.
        set: overrides by dotted key, as for `ftlab.run`.
        speed: how fast simulated time passes against the wall clock; None completes requests at once.
        control: socket for commands; by default next to the first Unix socket of ``nbd``.
        metrics: ``"HOST:PORT"`` at which Prometheus is answered.
        read_only: refuse writes.
        streams: export the device this many more times, as ``stream-1`` and so on.
        trace_pids: tell the latencies of the programs that ask apart.
        record: write every request to a .csv or .parquet trace; a named pipe is waited for, without a word,
            until somebody reads it.
        rotate: begin a further, numbered csv file after this many bytes.
        wait: how threads wait, ``"auto"``, ``"awake"`` or ``"sleep"``.
        load_state: start from the device saved there, or held by that media file.
        check: verify every invariant after every operation (slow).
        overrides: further keys, as for `ftlab.run`.

    Raises:
        UserError: the configuration, an address or a file is wrong; at the end of the block, the recording
            could not be written as a whole (`LiveDevice.result` is there nevertheless).
    """
    addresses = [nbd] if isinstance(nbd, str) else list(nbd)
    if not addresses and fuse is None:
        raise UserError('serve it where? nbd="unix:PATH" or fuse="DIR"')
    safe = [] if media is None else [Override("argument media", "ftl.power_safe", "true")]
    resolved = load(config, [*safe, *overrides_of(set, overrides)])
    recording = None if record is None else Output("record", record)
    check_recording(recording, rotate)
    devices.check_places(nbd=addresses, fuse=fuse, media=media, control=control)
    pipe = reader_of(recording if rotate is None else None)
    with pipe as recording_opened, devices.named(control or devices.beside(addresses)) as commands:
        server = _core.LiveServer(
            resolved,
            addresses,
            fuse=fuse,
            media=media,
            control=commands,
            metrics=metrics,
            speed=speed,
            read_only=read_only,
            record=recording.name if recording else None,
            rotate=rotate,
            wait=wait,
            load_state=load_state,
            check=check,
            streams=streams,
            trace_pids=trace_pids,
        )
        recording_opened()
        device = LiveDevice(server, commands, fuse)
        try:
            yield device
        except BaseException:
            # The block's own error is the one to raise, so one of the device's is left out.
            with suppress(UserError, InternalError):
                server.stop()
            raise
        run = server.stop()
        assert run is not None, "a server is stopped once"
        device.result = Result.of_run(run)
        if why := (device.result["live"].get("recording") or {}).get("error"):
            raise UserError(why)
        finish_recording(recording, str(config))
