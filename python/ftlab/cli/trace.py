"""``ftlab trace``: look at traces, convert them, make them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click

from ftlab.cli import completing, options
from ftlab.outputs import Output, check_distinct, tell, write_report, write_stdout
from ftlab.trace_text import info_text, summary_text

_READING = ("format", "dedup", "max_gap", "skip_bad", "speed", "repeat")


@click.group()
def trace() -> None:
    """Look at traces, convert them, make them."""


@trace.command()
@click.argument("file")
@options.shorthands(_READING)
@options.set_option
@options.json_option
@options.strict_option
def info(
    file: str, settings: tuple[str, ...], json_path: str | None, strict: bool, **flags: str | None
) -> None:
    """Say what a trace holds: requests, span, operations, addresses, rates, and what was dropped.

    The last line says whether the trace seems to be what it is taken for. ftlab run and ftlab compare look
    at the same before they begin.
    """
    from ftlab import traces

    config = traces.trace_config(file, options.overrides(settings, flags))
    output = options.json_output(json_path)
    if output:
        check_distinct([output], [file])
    found = traces.info(config)
    text = json.dumps(found, indent=2) + "\n"
    if output:
        output.write(text.encode())
    if json_path == "-":
        write_stdout(text)
    else:
        write_report(info_text(found))
    if strict:
        options.say_doubts({file: found["doubts"]}, strict)


@trace.command()
@click.argument("file")
@click.option("-n", "rows", type=click.IntRange(min=1), default=10, show_default=True, help="Requests.")
@options.shorthands(_READING)
@options.set_option
def head(file: str, rows: int, settings: tuple[str, ...], **flags: str | None) -> None:
    """Print the first requests of a trace in ftlab's own csv layout."""
    from ftlab import traces

    config = traces.trace_config(file, options.overrides(settings, flags))
    found = traces.head(config, rows)
    stream = ",stream" if found and len(found[0]) > 4 else ""
    lines = [f"time_ns,op,offset,size{stream}", *(",".join(map(str, row)) for row in found)]
    write_stdout("\n".join(lines) + "\n")


@trace.command()
@click.argument("source")
@click.argument("target")
@options.shorthands((*_READING, "out_of_range"))
@options.set_option
def convert(source: str, target: str, settings: tuple[str, ...], **flags: str | None) -> None:
    """Convert a trace to ftlab's own .csv or .parquet."""
    from ftlab import traces

    config = traces.trace_config(source, options.overrides(settings, flags))
    _convert(config, target)
    if traces.is_recording(config):
        tell(
            "note: the copy keeps completions, but is not a recording any more: replay it with --replay"
            " dependent"
        )


@trace.command()
@click.argument("file")
@click.option("--by", type=click.Choice(["volume"]), required=True, help="What gets a file of its own.")
@click.option(
    "--out", type=options.NEW, metavar="DIR", required=True, help="Directory for the files and index.csv."
)
@options.shorthands(_READING)
@options.set_option
def split(file: str, by: str, out: str, settings: tuple[str, ...], **flags: str | None) -> None:
    """Write one Parquet file for each volume that a trace names, in one pass.

    Volumes are numbered in the order of their first requests; times stay those of the trace.
    """
    from ftlab import traces
    from ftlab.progress import Reporter
    from ftlab.studies.split import split as split_trace

    config = traces.trace_config(file, options.overrides(settings, flags))
    with Reporter() as reporter:
        found = split_trace(config, Path(out), reporter.callback("split"))
    click.echo(f"{out}: {found['volumes']:,} volumes, {found['requests']:,} requests", err=True)


@trace.command()
@click.argument("target")
@options.generator_options
def generate(target: str, **flags: str | None) -> None:
    """Make a synthetic trace, .csv or .parquet."""
    from ftlab import traces

    given = {name: value for name, value in flags.items() if value is not None}
    _convert(traces.generator_config(given, flags=True), target)


@trace.command()
@click.argument("source")
@click.option(
    "--out",
    type=options.NEW,
    metavar="FILE|DIR",
    required=True,
    help="The model, a .toml file; for a targets file a directory that takes NAME.toml of each.",
)
@click.option("--config", metavar="CONFIG", help="For a trace: match its conflicts on this device too.")
@click.option("--preset", metavar="NAME", help="For a trace: preset that the model names, to run as it is.")
@click.option(
    "--check-on",
    metavar="CONFIG",
    shell_complete=completing.presets,
    help="For a trace: run this device on trace and model, under several schedulers, and compare.",
)
@click.option("--only", multiple=True, metavar="NAME", help="For a targets file: fit only these. Repeatable.")
@click.option(
    "--tolerance", metavar="PERCENT", default="1%", show_default=True, help="What counts as reached."
)
@options.shorthands(("format", "dedup", "max_gap", "skip_bad", "speed", "seed"))
@options.set_option
@options.load_state_option
@options.json_option
def fit(
    source: str,
    out: str,
    config: str | None,
    preset: str | None,
    check_on: str | None,
    only: tuple[str, ...],
    tolerance: str,
    settings: tuple[str, ...],
    load_state: str | None,
    json_path: str | None,
    **flags: str | None,
) -> None:
    """Fit a generator to a trace, or to the characteristics in a targets file.

    SOURCE is a trace, of which the model can be passed on in its place, or a file of targets (.toml).
    The model is a configuration file with the table [workload.synthetic]; the report has target and
    reached value of each characteristic (docs/generator.md). With --check-on it ends with what the
    model is for: the latencies, and the order of the schedulers, on the trace and on the model.
    """
    from ftlab import fitting
    from ftlab.fitting import command, end_to_end, report

    request = command.Request(
        source=source,
        out=out,
        config=config,
        only=only,
        tolerance=command.tolerance_of(tolerance),
        settings=options.overrides(settings, {}),
        flags={name: value for name, value in flags.items() if value is not None},
        load_state=load_state,
        preset=preset,
        check_on=check_on,
    )
    output = options.json_output(json_path)
    if output:
        check_distinct([output], [source])
    done: list[tuple[fitting.Fit, str]] = []
    for fitted, path in command.run(request):
        done.append((fitted, path))
        if json_path != "-":
            write_stdout(report.text(fitted, path))
            if check_on is not None:
                write_stdout(end_to_end.text(fitted.end_to_end, Path(check_on).name))
        for missed in fitted.missed:
            tell(f"warning: {fitted.targets.name}: {missed.name} was not reached")
    text = json.dumps([report.as_json(*each) for each in done], indent=2) + "\n"
    if output:
        output.write(text.encode())
    if json_path == "-":
        write_stdout(text)


def _convert(config: Any, target: str) -> None:
    from ftlab import traces
    from ftlab.progress import Reporter

    with Reporter() as reporter:
        summary = traces.convert(config, Output("", target), progress=reporter.callback("convert"))
    click.echo(f"{target}: {summary_text(summary)}", err=True)
