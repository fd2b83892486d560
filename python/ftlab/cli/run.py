"""``ftlab run``."""

from __future__ import annotations

from pathlib import Path

import click

from ftlab._core import UserError
from ftlab.cli import completing, options
from ftlab.configs import file_name, load
from ftlab.outputs import (
    Output,
    check_distinct,
    json_text,
    saying_what_is_written,
    tell,
    write_report,
    write_stdout,
)
from ftlab.results.result import Timeline
from ftlab.units import count, duration

REQUESTS_SUFFIXES = (".csv", ".parquet")
"""The extensions of files that ``--requests`` can write."""

STDIN = "/dev/stdin"
"""The file of which ``--trace -`` is the short name."""


@click.command()
@click.argument("config", shell_complete=completing.presets)
@options.shorthands()
@options.set_option
@options.json_option
@options.output_format_option
@options.html_option
@click.option(
    "--requests",
    "requests_path",
    type=options.NEW,
    metavar="FILE",
    help="Write one row per request (times, misses, batch) to a .csv or .parquet file.",
)
@click.option(
    "--save-state",
    "state_path",
    type=options.NEW,
    metavar="FILE",
    help="Write the preconditioned device, as it is at time 0, to a file that --load-state takes.",
)
@options.load_state_option
@options.strict_option
@click.option(
    "--timeline",
    "timeline_path",
    type=options.NEW,
    metavar="FILE",
    help="Write what every channel, chip and die did, when and for whom; open it in ui.perfetto.dev.",
)
@click.option(
    "--timeline-window",
    metavar="START:END",
    help="The stretch of simulated time that --timeline shows, for example 10ms:20ms.",
)
@options.alone_option
@options.check_option
@options.quiet_option
def run(
    config: str,
    settings: tuple[str, ...],
    json_path: str | None,
    output_format: str,
    html_path: str | None,
    requests_path: str | None,
    state_path: str | None,
    load_state: str | None,
    strict: bool,
    timeline_path: str | None,
    timeline_window: str | None,
    alone: bool,
    check: bool,
    quiet: bool,
    **flags: str | None,
) -> None:
    """Run one configuration and report what it measured.

    CONFIG is a preset's name (see `ftlab presets`) or a TOML file; write ./NAME for a file that has the name
    of a preset. With --trace - the trace is read from standard input.
    """
    if flags["trace"] == "-":
        flags["trace"] = STDIN
    resolved = load(config, [*options.measured_for(html_path), *options.overrides(settings, flags)])
    if not quiet:
        options.say_notes(resolved)
    for_fio = options.check_output_format(output_format, json_path)
    if timeline_window is not None and timeline_path is None:
        raise UserError("--timeline-window needs --timeline FILE")
    json_output = options.json_output(json_path)
    requests = options.output("--requests", requests_path, REQUESTS_SUFFIXES)
    state = options.output("--save-state", state_path)
    timeline = options.output("--timeline", timeline_path)
    html = options.html_output(html_path)
    outputs = [output for output in (json_output, requests, state, timeline, html) if output]
    check_distinct(outputs, [name for name in (resolved.trace, load_state) if name])
    options.check_alone(resolved, alone=alone)
    options.check_traces([("", resolved)], strict, quiet=quiet)

    from ftlab.progress import Reporter
    from ftlab.running import RunOptions
    from ftlab.traces import run_with_outputs

    with saying_what_is_written(outputs):
        with Reporter(quiet=quiet) as reporter:
            told = RunOptions(
                collect=for_fio,
                check=check,
                progress=reporter.callback(config),
                preconditioning=reporter.preconditioning(config),
                timeline=timeline_path,
                timeline_window=timeline_window,
                save_state=state_path,
                load_state=load_state,
            )
            result = run_with_outputs(resolved, requests, told)
            if alone:
                from ftlab.tenants import with_slowdowns

                result = with_slowdowns(result, resolved, told)
        result.named = file_name(config)
        options.say_overloads([(resolved.trace or config, result)])
        for note in result.notes if not quiet else ():
            tell(f"note: {note}")
        if timeline and result.timeline and not quiet:
            _note(timeline, result.timeline, timeline_window)
        if for_fio:
            # The fio job is named after the configuration file, without folder and suffix.
            text = json_text(result.to_fio(Path(config).stem, plus=output_format == "fio+"))
        else:
            text = result.to_json()
        if json_output:
            json_output.write(text.encode())
        if html:
            result.html(html.name, command=options.command_line())
    if json_path == "-":
        write_stdout(text)
    elif not quiet:
        write_report(str(result))


def _note(output: Output, timeline: Timeline, window: str | None) -> None:
    """Reports what the timeline leaves out of the run."""
    if timeline.cut_ns is not None:
        tell(
            f"note: {output.name} ends at {duration(timeline.cut_ns)} of simulated time, after "
            f"{count(timeline.events)} events; choose a stretch with --timeline-window START:END"
        )
    elif timeline.events == 0:
        tell(f"note: {output.name}: nothing happened in --timeline-window {window}")
