"""A calibration, from what was asked to the files that it leaves; for the command and `ftlab.calibrate`."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path

from ftlab._core import UserError
from ftlab.calibration import page
from ftlab.calibration.distance import weights_of
from ftlab.calibration.fit import Asked, Fit, check, fit, held_out, picked, rows_of
from ftlab.calibration.model import overrides
from ftlab.calibration.written import text_of, to_json, toml
from ftlab.configs import load
from ftlab.outputs import Output
from ftlab.progress import Reporter
from ftlab.studies.alone import alone
from ftlab.studies.executor import Executor


def asked(
    base: str,
    measured: Sequence[Path],
    out: Path,
    *,
    only: Sequence[str],
    free: Sequence[str],
    hold_out: Sequence[str],
    trials: int,
    seed: int,
    weights: str | None,
) -> Asked:
    """Returns what a calibration is asked to do; all texts are those of the command's options.

    Raises:
        UserError: nothing was measured, or an option is wrong.
    """
    counted = weights_of(weights)
    known, others = rows_of(measured)
    rows = picked(known, only)
    held = tuple(held_out(rows, hold_out, seed))
    passed = () if only else tuple(others)
    folder = out.with_suffix(".calibration")
    return Asked(base, tuple(free), tuple(rows), held, passed, counted, trials, seed, out, folder)


def calibrate(wanted: Asked, executor: Executor, reporter: Reporter, command: str) -> Fit:
    """Fits, or goes on with a fit, and writes the model, its figures and its page.

    Raises:
        UserError: the base, a key or an output is wrong, or no trial is valid.
    """
    files = [Output("--out", wanted.out.with_suffix(suffix)) for suffix in (".toml", ".json", ".html")]
    files[0].check([".toml"])
    if wanted.out.suffix.lower() != ".toml":
        raise UserError(f"--out {wanted.out}: a model is a .toml")
    with alone(wanted.folder, wanted.out):
        found = fit(wanted, executor, reporter)
    config = load(wanted.base, overrides(found.values))
    files[0].write(toml(found, config, text_of(wanted.base), command).encode())
    files[1].write(to_json(found).encode())
    files[2].write(page.render(found, wanted.out.stem, command).encode())
    return found


def errors_of(
    config: str,
    measured: Sequence[Path],
    executor: Executor,
    reporter: Reporter,
    *,
    only: Sequence[str],
    weights: str | None,
) -> Fit:
    """Returns how far a configuration is from what was measured; fits nothing and writes nothing.

    Raises:
        UserError: nothing was measured, or the configuration cannot run the rows.
    """
    counted = weights_of(weights)
    known, _ = rows_of(measured)
    with tempfile.TemporaryDirectory() as folder:
        return check(config, picked(known, only), counted, executor, reporter, Path(folder))
