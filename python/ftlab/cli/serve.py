"""``ftlab serve``: a simulated device that real programs use."""

from __future__ import annotations

import json
import signal
import threading
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ftlab._core import UserError
from ftlab.cli import completing, options
from ftlab.cli.stopping import asked_to_stop
from ftlab.configs import Override, load
from ftlab.live.devices import beside, check_places, interfered, named
from ftlab.live.recordings import check_recording, finish_recording, reader_of
from ftlab.outputs import Output, check_distinct, saying_what_is_written, tell, write_stdout
from ftlab.units import count, duration, quantity

if TYPE_CHECKING:
    from collections.abc import Callable

    from ftlab._core import LiveServer, Preconditioning
    from ftlab.results.result import Result

LOOK_S = 0.1
"""Time between two checks of the device for a failure, in seconds."""


@click.command()
@click.argument("config", shell_complete=completing.presets)
@click.option(
    "--nbd",
    "addresses",
    multiple=True,
    metavar="unix:PATH|tcp:HOST:PORT",
    help="Serve NBD clients there; TCP on loopback addresses only. Repeatable.",
)
@click.option(
    "--fuse",
    metavar="DIR",
    help="Mount the device there as a file, `disk`, for a loop device; with stats.json and health.json.",
)
@click.option(
    "--media",
    metavar="FILE",
    help="Keep the flash in a file, which outlasts the process however it ends; sets ftl.power_safe.",
)
@options.set_option
@click.option(
    "--time",
    "time_",
    type=click.Choice(["real", "free"]),
    default="real",
    show_default=True,
    help="real: a request completes when the simulated device says so; free: at once.",
)
@click.option(
    "--speed",
    type=click.FloatRange(1e-6, 1e6),
    default=None,
    metavar="X",
    help="Let simulated time pass X times as fast as the wall clock.  [default: 1]",
)
@click.option(
    "--wait",
    type=click.Choice(["auto", "awake", "sleep"]),
    default="auto",
    show_default=True,
    help="How threads wait under --time real. awake: some poll shortly before a reply is due; sleep: none"
    " does; auto: awake as long as the machine lets them.",
)
@click.option(
    "--control",
    metavar="PATH",
    help="The socket of `ftlab ctl` and `ftlab top`.  [default: the first Unix socket of --nbd with .ctl]",
)
@click.option(
    "--metrics",
    metavar="HOST:PORT",
    help="Answer Prometheus at http://HOST:PORT/metrics; loopback addresses only.",
)
@click.option("--read-only", is_flag=True, help="Refuse writes.")
@click.option(
    "--streams",
    type=click.IntRange(1, 255),
    default=None,
    metavar="N",
    help="Export the device N more times, as stream-1 to stream-N: the requests of a client have the stream"
    " of the name that it asks for.",
)
@click.option(
    "--trace-pids",
    is_flag=True,
    help="Keep the latencies of each program: of NBD clients on Unix sockets, of callers of the file.",
)
@click.option(
    "--record",
    "record",
    type=options.NEW,
    metavar="FILE",
    help="Write every request to a .csv or .parquet trace, which run --trace replays to the same result.",
)
@click.option(
    "--rotate",
    metavar="SIZE",
    help="Go on in a further file after SIZE (`64MiB`): --record a.csv gives a.0001.csv, a.0002.csv and so"
    " on, which --trace 'a.*.csv' reads.",
)
@options.json_option
@options.html_option
@options.load_state_option
@options.check_option
def serve(
    config: str,
    addresses: tuple[str, ...],
    fuse: str | None,
    media: str | None,
    settings: tuple[str, ...],
    time_: str,
    speed: float | None,
    wait: str,
    control: str | None,
    metrics: str | None,
    read_only: bool,
    streams: int | None,
    trace_pids: bool,
    record: str | None,
    rotate: str | None,
    json_path: str | None,
    html_path: str | None,
    load_state: str | None,
    check: bool,
) -> None:
    """Serve the simulated device as a real block device until it is interrupted.

    CONFIG is a preset's name (see `ftlab presets`) or a TOML file. An interrupt, or SIGTERM, ends it
    cleanly: requests under way complete, and the result is reported. A second one ends it at once.
    With --media its flash is there again at the next start; `ftlab ctl PATH cut` cuts its power.
    """
    if not addresses and not fuse:
        raise UserError("serve it where? --nbd unix:PATH or --fuse DIR")
    if speed is not None and time_ == "free":
        raise UserError("--speed: under --time free no wall clock is kept; leave one of the two out")
    if wait != "auto" and time_ == "free":
        raise UserError("--wait: under --time free nothing is waited for; leave one of the two out")
    if streams is not None and not addresses:
        raise UserError("--streams: only clients of NBD choose a stream; add --nbd, or leave it out")
    safe = [Override("--media", "ftl.power_safe", "true")] if media else []
    resolved = load(config, [*safe, *options.measured_for(html_path), *options.overrides(settings, {})])
    options.say_notes(resolved)
    json_output = options.json_output(json_path)
    html = options.html_output(html_path)
    recording = Output("--record", record) if record is not None else None
    rotated = None if rotate is None else _bytes("--rotate", rotate)
    check_recording(recording, rotated)
    check_places(nbd=addresses, fuse=fuse, media=media, control=control)
    outputs = [output for output in (json_output, html, recording) if output]
    check_distinct(outputs, [name for name in (load_state, media) if name])

    from ftlab import _core
    from ftlab.progress import Reporter
    from ftlab.results.result import Result

    with (
        reader_of(recording if rotated is None else None, _say) as recording_opened,
        saying_what_is_written(outputs),
        named(control or beside(addresses)) as commands,
        # The first two signals end the device even if the parent process ignores them; closing the terminal
        # does not end it.
        asked_to_stop([signal.SIGINT, signal.SIGTERM], [signal.SIGHUP]) as asked,
    ):
        with Reporter() as reporter:
            server = _core.LiveServer(
                resolved,
                addresses,
                fuse=fuse,
                media=media,
                control=commands,
                metrics=metrics,
                speed=None if time_ == "free" else speed or 1.0,
                read_only=read_only,
                record=recording.name if recording else None,
                rotate=rotated,
                wait=wait,
                load_state=load_state,
                check=check,
                streams=streams or 0,
                trace_pids=trace_pids,
                preconditioning=_unless(asked, reporter.preconditioning(config)),
            )
            recording_opened()
        _wait(server, asked, fuse, media)
        run = server.stop()
        assert run is not None
        result = Result.of_run(run)
        # What was measured is printed, whatever cannot be written.
        write_stdout(result.to_json() if json_path == "-" else str(result))
        if warning := interfered(result["live"]):
            _say(f"warning: {warning}")
        failures = _failures(result)
        if not (result["live"].get("recording") or {}).get("error"):
            failures += _failed(lambda: finish_recording(recording, config))
        if record and result["live"]["told"]:
            _say(_inexact(record, result["live"]["told"]))
        if json_output:
            failures += _failed(lambda: json_output.write(result.to_json().encode()))
        if html:
            failures += _failed(lambda: result.html(html.name, command=options.command_line()))
        if failures:
            raise UserError("\n".join(failures))


def _failures(result: Result) -> list[str]:
    """Returns what the device itself could not write."""
    own, found = result["live"], []
    if why := (own.get("media") or {}).get("error"):
        found.append(f"{why}: what was not written is lost, as by a power cut")
    if why := (own.get("recording") or {}).get("error"):
        found.append(why)
    return found


def _failed(write: Callable[[], object]) -> list[str]:
    """Writes something; returns why that failed, if it did."""
    try:
        write()
    except UserError as error:
        return [str(error)]
    return []


def _bytes(option: str, text: str) -> int:
    """Returns a size in bytes.

    Raises:
        UserError: the text is not a size, or is less than a byte.
    """
    number = quantity(text) if text.endswith("B") else None
    if not isinstance(number, int) or number < 1:
        raise UserError(f"{option} {text}: write a size, such as 64MiB")
    return number


def _unless(asked: threading.Event, told: Preconditioning | None) -> Preconditioning:
    """Returns a callback that passes progress on to ``told``, and ends the preparation once ``asked`` is set
    or ``told`` returns False.
    """

    def callback(*done: Any) -> bool:
        return not asked.is_set() and (told is None or told(*done) is not False)

    return callback


def _wait(server: LiveServer, asked: threading.Event, fuse: str | None, media: str | None) -> None:
    """Prints where the device is, and waits until it has to stop."""
    from ftlab.live.devices import uri

    for address in server.addresses():
        _say(f"serving {uri(address)}")
    if server.metrics():
        _say(f"metrics at http://{str(server.metrics()).removeprefix('tcp:')}/metrics")
    if fuse:
        _say(f"serving {Path(fuse) / 'disk'}")
    if media:
        _say(_found(media, json.loads(server.opened())))
    told = False
    while not asked.wait(LOOK_S):
        if server.look():
            return
        if not told and (why := server.recording_error()):
            told = True
            _say(f"warning: {why}; the device goes on")


def _found(media: str, opened: dict[str, Any]) -> str:
    """Describes the state in which the media file was found."""
    if opened["opened"] == "made":
        return f"{media}: made"
    if opened["opened"] == "checkpoint":
        return f"{media}: left by a clean stop, its checkpoint loaded"
    took = opened["recovery"]
    pages = took["scan_reads"] + took["map_reads"] + took["gc_reads"]
    return (
        f"{media}: recovered from flash alone in {duration(took['elapsed_ns'])}: {count(pages)} pages read,"
        f" {count(took['programs'])} programmed, {count(took['erases'])} blocks erased,"
        f" {count(took['torn_pages'])} torn pages met"
    )


def _inexact(record: str, told: list[dict[str, Any]]) -> str:
    """Says that a recording does not replay to the same result, because the device was told something."""
    what = ", ".join(f"{each['command']} at {duration(each['time_ns'])}" for each in told)
    return f"note: {record}: the device was told {what}; a replay repeats the requests, not this"


def _say(text: str) -> None:
    """Prints a line for the user; the terminal may be gone."""
    with suppress(OSError):
        tell(text)
