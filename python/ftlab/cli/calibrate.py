"""``ftlab calibrate``."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

import click

from ftlab._core import UserError
from ftlab.cli import options
from ftlab.configs import load
from ftlab.outputs import Output, write_stdout

if TYPE_CHECKING:
    from ftlab.calibration.fit import Asked
    from ftlab.calibration.row import Row
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
    from ftlab.calibration.distance import weights_of
    from ftlab.calibration.fit import Asked, held_out, picked, rows_of

    counted = weights_of(weights)
    known, others = rows_of([Path(each) for each in measured])
    rows = picked(known, only)
    if check is not None:
        if base is not None or out is not None or free or hold_out:
            raise UserError(
                f"--check {check}: fits nothing, so it takes neither BASE nor --out, --free or --hold-out"
            )
        with options.executor(dask, dask_wait, jobs) as executor:
            _check(check, rows, counted, _share(most_error or "10%"), executor)
        return
    if base is None or out is None:
        raise UserError(
            "calibrate needs BASE and --out FILE.toml, or --check FILE; see `ftlab calibrate --help`"
        )
    if most_error is not None:
        raise UserError(f"--most-error {most_error}: goes with --check FILE")
    held = tuple(held_out(rows, hold_out, seed))
    passed = () if only else tuple(others)
    folder = Path(out).with_suffix(".calibration")
    asked = Asked(base, free, tuple(rows), held, passed, counted, trials, seed, Path(out), folder)
    with options.executor(dask, dask_wait, jobs) as executor:
        _fit(asked, executor)


def _share(text: str) -> float:
    found = re.fullmatch(r"([0-9]+\.?[0-9]*) ?%", text.strip())
    if not found:
        raise UserError(f"--most-error {text}: write per cent, such as 10%")
    return float(found[1]) / 100


def _check(config: str, rows: list[Row], weights: dict[str, float], most: float, executor: Executor) -> None:
    import tempfile

    from ftlab.calibration.fit import check
    from ftlab.calibration.written import over, render
    from ftlab.progress import Reporter

    with tempfile.TemporaryDirectory() as folder, Reporter(runs=True) as reporter:
        found = check(config, rows, weights, executor, reporter, Path(folder))
    write_stdout(render(found))
    beyond = over(found, most)
    if beyond:
        for line in beyond[:MOST_SHOWN]:
            click.echo(f"off: {line}", err=True)
        count = f"{len(beyond)} rates and means are more than {most:.1%} off"
        click.echo(f"error: {config}: {count}", err=True)
        raise click.exceptions.Exit(1)


def _fit(asked: Asked, executor: Executor) -> None:
    from ftlab.calibration import page
    from ftlab.calibration.fit import fit
    from ftlab.calibration.model import overrides
    from ftlab.calibration.written import render, text_of, to_json, toml
    from ftlab.progress import Reporter
    from ftlab.studies.alone import alone

    files = [Output("--out", asked.out.with_suffix(suffix)) for suffix in (".toml", ".json", ".html")]
    files[0].check([".toml"])
    if asked.out.suffix.lower() != ".toml":
        raise UserError(f"--out {asked.out}: a model is a .toml")
    with alone(asked.folder, asked.out), Reporter(runs=True) as reporter:
        found = fit(asked, executor, reporter)
    config = load(asked.base, overrides(found.values))
    command = options.command_line()
    files[0].write(toml(found, config, text_of(asked.base), command).encode())
    files[1].write(to_json(found).encode())
    files[2].write(page.render(found, asked.out.stem, command).encode())
    write_stdout(render(found))
    write_stdout(f"model: {asked.out}\n")
