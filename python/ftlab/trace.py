"""What ``ftlab trace`` does, as functions."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

from ftlab.configs import Scalar, mapping_overrides, to_text
from ftlab.fitting import Fit
from ftlab.fitting.command import Request, run, tolerance_of


def fit(
    source: str | os.PathLike[str],
    out: str | os.PathLike[str],
    *,
    config: str | os.PathLike[str] | None = None,
    preset: str | None = None,
    check_on: str | os.PathLike[str] | None = None,
    only: Sequence[str] = (),
    tolerance: str = "1%",
    format: str | None = None,  # noqa: A002
    dedup: str | None = None,
    max_gap: str | None = None,
    skip_bad: int | None = None,
    speed: float | None = None,
    seed: int | None = None,
    set: Mapping[str, Any] | None = None,  # noqa: A002 - the name of the command line's option
    load_state: str | os.PathLike[str] | None = None,
    progress: bool = False,
) -> list[Fit]:
    """Fits a generator to a trace, or generators to the characteristics in a targets file, as
    ``ftlab trace fit`` does.

    Args:
        source: a trace, or a file of targets (.toml).
        out: the model, a .toml file; for a targets file a directory that takes NAME.toml of each.
        config: for a trace: match its conflicts on this device too.
        preset: for a trace: preset that the model names, to run as it is.
        check_on: for a trace: run this device on trace and model, under several schedulers, and compare.
        only: for a targets file: fit only these.
        tolerance: what counts as reached.
        format, dedup, max_gap, skip_bad, speed, seed: as for `ftlab.run`.
        set: overrides of the device by dotted key, as for `ftlab.run`.
        load_state: start from the device saved there.
        progress: show progress on standard error.

    Returns:
        The fits, each with the ``keys`` of its generator, its ``characteristics`` with target and reached
        value, those that were not reached (``missed``), and with ``check_on`` what the schedulers' mean
        latencies are on trace and model (``end_to_end``).

    Raises:
        UserError: the source or an option is wrong, or the model cannot be written.
    """
    given: dict[str, Scalar] = {
        "format": format,
        "dedup": dedup,
        "max_gap": max_gap,
        "skip_bad": skip_bad,
        "speed": speed,
        "seed": seed,
    }
    request = Request(
        source=os.fspath(source),
        out=os.fspath(out),
        config=None if config is None else os.fspath(config),
        only=tuple(only),
        tolerance=tolerance_of(tolerance),
        settings=mapping_overrides(set or {}, "set"),
        flags={name: to_text(value) for name, value in given.items() if value is not None},
        load_state=None if load_state is None else os.fspath(load_state),
        preset=preset,
        check_on=None if check_on is None else os.fspath(check_on),
        quiet=not progress,
    )
    return [fitted for fitted, _ in run(request)]
