"""``ftlab sweep``."""

from __future__ import annotations

from pathlib import Path

import click

from ftlab.cli import options
from ftlab.outputs import tell, write_stdout

MOST_ROWS = 40
"""The maximum number of variants that are printed; summary.csv has all of them."""


@click.command()
@click.argument("study")
@click.option(
    "--out", type=options.NEW, required=True, metavar="DIR", help="Directory for tables, results and page."
)
@click.option("--fresh", is_flag=True, help="Run everything again; what another study left there is removed.")
@click.option("--dry-run", is_flag=True, help="Report how many runs there are and what they take; run none.")
@options.allow_python_option
@options.dask_options
@click.option("--jobs", type=click.IntRange(min=1), metavar="N", help="Runs at a time.  [default: all cores]")
@options.strict_option
def sweep(
    study: str,
    out: str,
    fresh: bool,
    dry_run: bool,
    dask: str | None,
    dask_wait: float,
    jobs: int | None,
    strict: bool,
) -> None:
    """Run a study: every combination of its axes.

    STUDY is a TOML file with axes (docs: "A study of your own").

    \b
    DIR/runs.parquet      a row per run: labels, varied keys, every result field
    DIR/failures.parquet  runs that failed, and why
    DIR/json/HASH.json    the whole result of each run
    DIR/summary.csv       means and 95 % confidence intervals over seeds
    DIR/index.html        the same drawn; up to 200 runs with their report

    What is finished is kept: the same command goes on where it was stopped. A failed run does not end
    the others; the exit status is 1 then.
    """
    from ftlab.progress import Reporter
    from ftlab.studies import replications
    from ftlab.studies.executor import Threads
    from ftlab.studies.sweep import estimate, missing, plan
    from ftlab.studies.sweep import sweep as run

    planned = plan(Path(study))
    for note in planned.notes:
        tell(f"note: {note}")
    if dry_run:
        write_stdout(estimate(planned, Path(out), fresh=fresh, jobs=Threads(jobs).jobs))
        return
    unread = missing(planned, Path(out), fresh=fresh)
    options.check_traces(((each.name, each.config) for each in unread), strict, go_on=True)
    with options.executor(dask, dask_wait, jobs) as executor, Reporter(runs=True) as reporter:
        said = options.command_line()
        outcome = run(planned, Path(out), reporter, executor, fresh=fresh, command=said)
    text = replications.render(planned.figure, outcome.lines, MOST_ROWS)
    text += f"{outcome.done.run:,} runs, {outcome.done.reused:,} more already existed: {out}\n"
    write_stdout(text)
    if outcome.failures:
        count = f"{outcome.failures:,} of {len(planned.runs):,} runs failed"
        tell(f"error: {count}; the first: {outcome.first_failure}")
        raise click.exceptions.Exit(1)
