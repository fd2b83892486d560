"""``ftlab tune``."""

from __future__ import annotations

from pathlib import Path

import click

from ftlab._core import UserError
from ftlab.cli import options
from ftlab.outputs import tell, write_stdout


@click.command()
@click.argument("file")
@click.option(
    "--out", type=options.NEW, required=True, metavar="DIR", help="Directory for results and what was found."
)
@options.allow_python_option
@options.dask_options
@click.option("--jobs", type=click.IntRange(min=1), metavar="N", help="Runs at a time.  [default: all cores]")
@options.strict_option
def tune(file: str, out: str, dask: str | None, dask_wait: float, jobs: int | None, strict: bool) -> None:
    """Search for the best configuration.

    FILE is a TOML file with what is sought and what may be changed (docs: "Find the best configuration").
    Needs Optuna: pip install 'ftlab[tune]'.

    \b
    DIR/best.toml         the configuration found, for `ftlab run`
    DIR/front.csv         the Pareto front
    DIR/trials.csv        everything that was tried
    DIR/index.html        the front, how it was found, what the parameters account for

    The same command goes on where it was stopped; with --jobs 1 the same seed gives the same trials.
    """
    from ftlab.progress import Reporter
    from ftlab.studies.front import place_of_default, render
    from ftlab.studies.tune import traced
    from ftlab.studies.tuned_page import search
    from ftlab.studies.tuning import load_tuning

    tuning = load_tuning(Path(file))
    folder = Path(out)
    options.check_traces(traced(tuning), strict)
    with options.executor(dask, dask_wait, jobs) as executor, Reporter(runs=True) as reporter:
        tuned = search(tuning, folder, executor, reporter, options.command_line())
    write_stdout(render(tuned))
    failed = [trial for trial in tuned.trials if not trial.values]
    if failed:
        tell(f"note: {len(failed)} trials failed; the first: {failed[0].error}")
    if tuned.best is None or tuned.best.config is None:
        raise UserError(f"{file}: none of {len(tuned.trials)} trials meets the constraints")
    write_stdout(f"{place_of_default(tuned)}\nbest: {folder / 'best.toml'}\n")
