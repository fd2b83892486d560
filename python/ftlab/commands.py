"""Commands as functions, with the options of the command line: studies, searches, fits, power cuts."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ftlab._core import UserError
from ftlab.configs import ConfigLike, Scalar, load, overrides_of
from ftlab.progress import Reporter

if TYPE_CHECKING:
    import polars as pl

    from ftlab.calibration.fit import Fit
    from ftlab.results.comparison import Comparison
    from ftlab.results.differences import Differences
    from ftlab.studies.front import Tuned

Name = str | os.PathLike[str]
"""A file or a directory."""


@dataclass(frozen=True)
class Swept:
    """What a sweep has left in its directory; prints as the table of ``ftlab sweep``."""

    out: Path
    """The directory."""
    text: str
    """Means over the seeds with their 95 % confidence intervals, as the command prints them."""
    run: int
    """How many runs were done."""
    reused: int
    """How many results were there already."""
    failed: int
    """How many runs failed; `failures` has their errors."""

    @property
    def runs(self) -> pl.DataFrame:
        """Returns a row for each run that succeeded, with labels, varied keys and all fields."""
        return self._read("runs")

    @property
    def failures(self) -> pl.DataFrame:
        """Returns a row for each run that failed, with its ``error``."""
        return self._read("failures")

    @property
    def summary(self) -> pl.DataFrame:
        """Returns the means over the seeds, their intervals and differences, a row for each value."""
        import polars as pl

        return pl.read_csv(self.out / "summary.csv")

    def _read(self, name: str) -> pl.DataFrame:
        import polars as pl

        return pl.read_parquet(self.out / f"{name}.parquet")

    def __str__(self) -> str:
        """Returns the table."""
        return self.text


def sweep(
    study: Name,
    out: Name,
    *,
    fresh: bool = False,
    dask: str | None = None,
    dask_wait: float = 60.0,
    jobs: int | None = None,
    progress: bool = False,
) -> Swept:
    """Runs a study, every combination of its axes, as ``ftlab sweep`` does; what is finished is kept.

    Args:
        study: a TOML file with axes.
        out: directory for tables, results and page; the same call goes on where it was stopped.
        fresh: run everything again.
        dask: address of a Dask scheduler, or ``"local"``.
        dask_wait: how long to wait for workers of that scheduler, in seconds.
        jobs: runs at a time; by default the number of cores.
        progress: show progress on standard error.

    Raises:
        UserError: the study or a configuration is wrong, or an output cannot be written. A run that fails
            raises nothing: `Swept.failed` counts it.
    """
    from ftlab.studies import replications
    from ftlab.studies.executor import chosen
    from ftlab.studies.sweep import plan
    from ftlab.studies.sweep import sweep as run

    planned, folder = plan(Path(study)), Path(out)
    with (
        Reporter(runs=True, quiet=not progress) as reporter,
        chosen(dask, dask_wait, jobs, reporter.note) as executor,
    ):
        said = f"ftlab sweep {os.fspath(study)} --out {os.fspath(out)}"
        outcome = run(planned, folder, reporter, executor, fresh=fresh, command=said)
    text = replications.render(planned.figure, outcome.lines, len(planned.runs))
    return Swept(folder, text, outcome.done.run, outcome.done.reused, outcome.failures)


def tune(
    file: Name,
    out: Name,
    *,
    dask: str | None = None,
    dask_wait: float = 60.0,
    jobs: int | None = None,
    progress: bool = False,
) -> Tuned:
    """Searches for the best configuration as ``ftlab tune`` does; needs Optuna.

    Args:
        file: a TOML file with what is sought and what may be changed.
        out: directory for results and what was found; the same call goes on where it was stopped.
        dask, dask_wait, jobs, progress: as for `sweep`; with ``jobs=1`` the same seed gives the same trials.

    Returns:
        The default configuration, all ``trials``, the Pareto ``front``, the ``best`` trial (None if no trial
        meets the constraints) and the ``importance`` of each parameter. A trial has its ``parameters``,
        ``values`` and ``config``, which `run` takes.

    Raises:
        UserError: Optuna is missing, the search is wrong, or an output cannot be written.
    """
    from ftlab.studies.executor import chosen
    from ftlab.studies.tuned_page import search
    from ftlab.studies.tuning import load_tuning

    with (
        Reporter(runs=True, quiet=not progress) as reporter,
        chosen(dask, dask_wait, jobs, reporter.note) as executor,
    ):
        said = f"ftlab tune {os.fspath(file)} --out {os.fspath(out)}"
        return search(load_tuning(Path(file)), Path(out), executor, reporter, said)


def calibrate(
    base: str | os.PathLike[str],
    measured: Name | Sequence[Name],
    out: Name | None = None,
    *,
    only: Sequence[str] = (),
    free: Mapping[str, str] | None = None,
    hold_out: Sequence[str] = (),
    trials: int = 60,
    seed: int = 1,
    weights: Mapping[str, float] | None = None,
    dask: str | None = None,
    dask_wait: float = 60.0,
    jobs: int | None = None,
    progress: bool = False,
) -> Fit:
    """Fits a model to what a drive was measured to do, as ``ftlab calibrate`` does; needs Optuna.

    Args:
        base: a preset or a file of the right family.
        measured: tables, fio's JSON, or directories of them.
        out: the model, a .toml; without it nothing is fitted, and the errors of ``base`` are returned.
        only: take these rows alone, ``["op=read", "bs=4096,8192"]``.
        free: the keys to fit with their ranges, ``{"flash.read": "20us..80us"}``; by default what the rows
            tell.
        hold_out: rows that are predicted and not fitted, ``["30%"]`` or ``["depth=2,8"]``.
        trials: trials of each stage.
        seed: seed of the search.
        weights: what errors count, ``{"iops": 1, "p99": 0.05}``.
        dask, dask_wait, jobs, progress: as for `sweep`.

    Returns:
        The fitted ``values`` and their ``intervals``, and ``pairs`` of measured row and model with their
        ``errors``.

    Raises:
        UserError: a file, a key or an option is wrong, or no trial is valid.
    """
    from ftlab.calibration import outcome
    from ftlab.studies.executor import chosen

    each = [measured] if isinstance(measured, (str, os.PathLike)) else measured
    paths = [Path(path) for path in each]
    counted = None if weights is None else ",".join(f"{name}={value}" for name, value in weights.items())
    keys = [f"{key}={values}" for key, values in (free or {}).items()]
    if out is None and (keys or hold_out):
        raise UserError("calibrate: without out nothing is fitted, so free and hold_out mean nothing")
    with (
        Reporter(runs=True, quiet=not progress) as reporter,
        chosen(dask, dask_wait, jobs, reporter.note) as executor,
    ):
        named = os.fspath(base)
        if out is None:
            return outcome.errors_of(named, paths, executor, reporter, only=only, weights=counted)
        wanted = outcome.asked(
            named,
            paths,
            Path(out),
            only=only,
            free=keys,
            hold_out=hold_out,
            trials=trials,
            seed=seed,
            weights=counted,
        )
        return outcome.calibrate(wanted, executor, reporter, f"ftlab.calibrate({named!r}, ...)")


def diff(
    first: Name | Mapping[str, Any] | Comparison, second: Name | Mapping[str, Any] | Comparison
) -> list[Differences]:
    """Returns what differs between two results, or between the variants of the same label of two comparisons,
    as ``ftlab diff`` does.

    Args:
        first: a result, a comparison, or a file that ``run --json`` or ``compare --json`` wrote.
        second: the other one.

    Returns:
        For each pair the ``label``, ``settings`` and ``results`` that differ, each with its ``name`` and both
        ``values``, and the number of ``equal`` values. What the engine took is left out.

    Raises:
        UserError: a file is none of these, or no variant is in both.
    """
    from ftlab.results.differences import between

    found = between(_results(first), _results(second))
    if not found:
        raise UserError("diff: no variant in common")
    return found


def _results(given: Name | Mapping[str, Any] | Comparison) -> Mapping[str, Mapping[str, Any]]:
    from ftlab.results.differences import read
    from ftlab.results.section import Section

    if isinstance(given, (str, os.PathLike)):
        return read(given)
    if isinstance(given, Mapping):
        return {"": given.to_dict() if isinstance(given, Section) else given}
    return {variant.label: variant.result.to_dict() for variant in given.variants}


def crash(
    config: ConfigLike,
    *,
    cuts: int = 300,
    operations: int = 200,
    at: Sequence[int] | None = None,
    set: Mapping[str, Any] | None = None,  # noqa: A002 - the name of the command line's option
    progress: bool = False,
    **overrides: Scalar,
) -> dict[str, Any]:
    """Cuts the power again and again, recovers from flash alone and verifies what was promised, as
    ``ftlab crash`` does.

    Args:
        config: as for `run`; the preset ``"crash"`` is a small device made for this.
        cuts: how many random cuts.
        operations: programs and erases between two random cuts, on average.
        at: cut when this many programs and erases have finished, instead of at random.
        set: overrides by dotted key, as for `run`.
        progress: show progress on standard error.
        overrides: further keys, as for `run` (``seed=2``, ``trace="a.csv"``, ``ftl__kind="page"``).

    Returns:
        What ``ftlab crash --json`` writes; ``fault`` is None if the device kept all promises.

    Raises:
        UserError: the configuration is wrong.
    """
    from ftlab import _core

    resolved = load(config, overrides_of(set, overrides))
    with Reporter(unit="power cuts", whole=len(at or ()) or cuts, quiet=not progress) as reporter:
        text = _core.crash(
            resolved,
            cuts=cuts,
            operations=operations,
            at=sorted(at) if at else None,
            progress=reporter.callback("crash"),
        )
    result: dict[str, Any] = json.loads(text)
    return result
