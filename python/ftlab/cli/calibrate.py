"""``ftlab calibrate``."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

import click

from ftlab._core import UserError
from ftlab.cli import options
from ftlab.outputs import tell, write_stdout

if TYPE_CHECKING:
    from ftlab.calibration.fit import Asked
    from ftlab.studies.executor import Executor

MOST_SHOWN = 5
"""The number of rows beyond ``--most-error`` that are named."""


@click.command()
@click.argument("base", required=False)
@click.option(
    "--measured",
    multiple=True,
    required=True,
    metavar="FILE|DIR",
    help="What was measured: a table, fio's JSON, or a directory of them. Repeatable.",
)
@click.option(
    "--only",
    multiple=True,
    metavar="FIELD=A,B",
    help="Take these rows alone: drive, op, bs, depth, jobs or engine. Repeatable.",
)
@click.option(
    "--free",
    multiple=True,
    metavar="KEY=RANGE",
    help="A key to fit, such as flash.read=20us..80us; without it, what the rows tell. Repeatable.",
)
@click.option(
    "--hold-out",
    multiple=True,
    metavar="30%|FIELD=A,B",
    help='Rows that are predicted and not fitted: a share, or depth=2,8, or "op=read bs=4096". Repeatable.',
)
@click.option(
    "--trials",
    type=click.IntRange(min=2),
    default=60,
    show_default=True,
    metavar="N",
    help="Trials of each stage; descents come on top.",
)
@click.option(
    "--seed",
    type=click.IntRange(min=0),
    default=1,
    show_default=True,
    metavar="N",
    help="Seed of the search.",
)
@click.option(
    "--weights",
    metavar="NAME=N,...",
    help="What errors count: iops=1,mean=1,p50=0.05,p99=0.05,p999=0.02 unless given.",
)
@click.option(
    "--out",
    type=options.NEW,
    metavar="FILE",
    help="The model, a .toml; FILE's .json and .html hold what was found.",
)
@click.option("--check", metavar="FILE", help="Fit nothing: state the errors of this configuration.")
@click.option(
    "--most-error",
    metavar="PERCENT",
    help="With --check: exit with 1 if a rate or a mean is further off.  [default: 10%]",
)
@options.allow_python_option
@options.dask_options
@click.option("--jobs", type=click.IntRange(min=1), metavar="N", help="Runs at a time.  [default: all cores]")
def calibrate(
    base: str | None,
    measured: tuple[str, ...],
    only: tuple[str, ...],
    free: tuple[str, ...],
    hold_out: tuple[str, ...],
    trials: int,
    seed: int,
    weights: str | None,
    out: str | None,
    check: str | None,
    most_error: str | None,
    dask: str | None,
    dask_wait: float,
    jobs: int | None,
) -> None:
    """Fit a model to what a drive was measured to do.

    BASE is a preset or a file of the right family. Each measured row becomes a run of the same job, and the
    free keys are moved until rates and latencies agree (docs: "Calibrate a drive"). Needs Optuna:
    pip install 'ftlab[tune]'.

    \b
    my-drive.toml         the model; each fitted number says how well it is known
    my-drive.json, .html  measured and modelled, the errors, what stayed undetermined
    my-drive.calibration  what was tried: the same command goes on where it was stopped

    With --check FILE nothing is fitted: the errors of the file are stated, and the exit status is 1 if one of
    them is above --most-error.
    """
    from ftlab.calibration.outcome import asked

    paths = [Path(each) for each in measured]
    if check is not None:
        if base is not None or out is not None or free or hold_out:
            raise UserError(
                f"--check {check}: fits nothing, so it takes neither BASE nor --out, --free or --hold-out"
            )
        with options.executor(dask, dask_wait, jobs) as executor:
            _check(check, paths, only, weights, _share(most_error or "10%"), executor)
        return
    if base is None or out is None:
        raise UserError(
            "calibrate needs BASE and --out FILE.toml, or --check FILE; see `ftlab calibrate --help`"
        )
    if most_error is not None:
        raise UserError(f"--most-error {most_error}: goes with --check FILE")
    wanted = asked(
        base,
        paths,
        Path(out),
        only=only,
        free=free,
        hold_out=hold_out,
        trials=trials,
        seed=seed,
        weights=weights,
    )
    with options.executor(dask, dask_wait, jobs) as executor:
        _fit(wanted, executor)


def _share(text: str) -> float:
    found = re.fullmatch(r"([0-9]+\.?[0-9]*) ?%", text.strip())
    if not found:
        raise UserError(f"--most-error {text}: write per cent, such as 10%")
    return float(found[1]) / 100


def _check(
    config: str,
    measured: list[Path],
    only: tuple[str, ...],
    weights: str | None,
    most: float,
    executor: Executor,
) -> None:
    from ftlab.calibration.outcome import errors_of
    from ftlab.calibration.written import over, render
    from ftlab.progress import Reporter

    with Reporter(runs=True) as reporter:
        # The number of runs is not known, nor what is left.
        reporter.expect({})
        found = errors_of(config, measured, executor, reporter, only=only, weights=weights)
    write_stdout(render(found))
    beyond = over(found, most)
    if beyond:
        for line in beyond[:MOST_SHOWN]:
            click.echo(f"off: {line}", err=True)
        count = f"{len(beyond)} rates and means are more than {most:.1%} off"
        tell(f"error: {config}: {count}")
        raise click.exceptions.Exit(1)


def _fit(wanted: Asked, executor: Executor) -> None:
    from ftlab.calibration.outcome import calibrate as run
    from ftlab.calibration.written import render
    from ftlab.progress import Reporter

    with Reporter(runs=True) as reporter:
        found = run(wanted, executor, reporter, options.command_line())
    write_stdout(render(found))
    write_stdout(f"model: {wanted.out}\n")
