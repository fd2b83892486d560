"""``ftlab trace``: look at traces, convert them, make them."""

from __future__ import annotations

import json
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import click

from ftlab.cli import options
from ftlab.outputs import Output, check_distinct, write_stdout

_READING = ("format", "dedup", "max_gap", "skip_bad", "speed", "repeat")


@click.group()
def trace() -> None:
    """Look at traces, convert them, make them."""


@trace.command()
@click.argument("file")
@options.shorthands(_READING)
@options.set_option
@options.json_option
def info(file: str, settings: tuple[str, ...], json_path: str | None, **flags: str | None) -> None:
    """Say what a trace holds: requests, span, operations, addresses, rates, and what was dropped."""
    from ftlab import traces

    config = traces.trace_config(file, options.overrides(settings, flags))
    output = Output("--json", json_path) if json_path not in (None, "-") else None
    if output:
        output.check()
        check_distinct([output], [file])
    with _interruptible():
        found = traces.info(config)
    text = json.dumps(found, indent=2) + "\n"
    if output:
        output.write(text.encode())
    write_stdout(text if json_path == "-" else traces.info_text(found))


@trace.command()
@click.argument("file")
@click.option("-n", "rows", type=click.IntRange(min=1), default=10, show_default=True, help="Requests.")
@options.shorthands(_READING)
@options.set_option
def head(file: str, rows: int, settings: tuple[str, ...], **flags: str | None) -> None:
    """Print the first requests of a trace in ftlab's own csv layout."""
    from ftlab import traces

    config = traces.trace_config(file, options.overrides(settings, flags))
    lines = ["time_ns,op,offset,size"]
    with _interruptible():
        lines += [",".join(map(str, row)) for row in traces.head(config, rows)]
    write_stdout("\n".join(lines) + "\n")


@trace.command()
@click.argument("source")
@click.argument("target")
@options.shorthands((*_READING, "out_of_range"))
@options.set_option
def convert(source: str, target: str, settings: tuple[str, ...], **flags: str | None) -> None:
    """Convert a trace to ftlab's own .csv or .parquet."""
    from ftlab import traces

    _convert(traces.trace_config(source, options.overrides(settings, flags)), target)


@trace.command()
@click.argument("target")
@click.option("--requests", metavar="N", help="Number of requests.  [default: 10000]")
@click.option("--pattern", metavar="NAME", help="random, sequential or zipf.  [default: random]")
@click.option("--zipf-theta", metavar="X", help="Exponent of zipf.  [default: 1.1]")
@click.option("--read-share", metavar="PERCENT", help="Share of reads.  [default: 50%]")
@click.option("--trim-share", metavar="PERCENT", help="Share of trims.  [default: 0%]")
@click.option("--size", metavar="SIZE", help="Bytes per request.  [default: 4KiB]")
@click.option("--region", metavar="SIZE", help="Bytes addressed, from offset 0.  [default: 1GiB]")
@click.option("--interarrival", metavar="TIME", help="Mean time between arrivals.  [default: 100us]")
@click.option("--seed", metavar="N", help="Seed.  [default: 1]")
def generate(target: str, **flags: str | None) -> None:
    """Make a synthetic trace, .csv or .parquet."""
    from ftlab import traces

    given = {name: value for name, value in flags.items() if value is not None}
    _convert(traces.generator_config(given, flags=True), target)


@contextmanager
def _interruptible() -> Iterator[None]:
    """Lets an interrupt end the process at once: reading in Rust does not look for one, and nothing is
    being written that would have to be cleared away."""
    before = signal.signal(signal.SIGINT, signal.SIG_DFL)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def _convert(config: Any, target: str) -> None:
    from ftlab import traces
    from ftlab.progress import Reporter

    with Reporter() as reporter:
        summary = traces.convert(config, Output("", target), progress=reporter.callback("convert"))
    click.echo(f"{target}: {traces.summary_text(summary)}", err=True)
