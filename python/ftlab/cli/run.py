"""``ftlab run``."""

from __future__ import annotations

import click

from ftlab.cli import options
from ftlab.configs import load
from ftlab.outputs import Output, check_distinct, write_stdout

REQUESTS_SUFFIXES = (".csv", ".parquet")
"""What ``--requests`` can write."""


@click.command()
@click.argument("config")
@options.shorthands()
@options.set_option
@options.json_option
@click.option(
    "--requests",
    "requests_path",
    metavar="FILE",
    help="Write one row per request (times, misses, batch) to a .csv or .parquet file.",
)
@options.check_option
def run(
    config: str,
    settings: tuple[str, ...],
    json_path: str | None,
    requests_path: str | None,
    check: bool,
    **flags: str | None,
) -> None:
    """Run one configuration and report what it measured.

    CONFIG is a preset's name (see `ftlab presets`) or a TOML file; write ./NAME for a file that is
    called like a preset.
    """
    resolved = load(config, options.overrides(settings, flags))
    json_output = Output("--json", json_path) if json_path not in (None, "-") else None
    requests = Output("--requests", requests_path) if requests_path is not None else None
    if json_output:
        json_output.check()
    if requests:
        requests.check(REQUESTS_SUFFIXES)
    outputs = [output for output in (json_output, requests) if output]
    check_distinct(outputs, [resolved.trace] if resolved.trace else [])

    from ftlab.progress import Reporter
    from ftlab.traces import run_with_requests

    with Reporter() as reporter:
        progress = reporter.callback(config)
        result = run_with_requests(resolved, requests, check=check, progress=progress)
    if json_output:
        json_output.write(result.to_json().encode())
    write_stdout(result.to_json() if json_path == "-" else str(result))
