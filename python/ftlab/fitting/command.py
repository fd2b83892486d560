"""What ``ftlab trace fit`` does, without its options and output."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from ftlab import traces
from ftlab._core import Config, UserError
from ftlab.api import presets
from ftlab.configs import Override, keyword_overrides, load
from ftlab.fitting import end_to_end, report
from ftlab.fitting.compare import compare
from ftlab.fitting.fit import Fit, Fitter
from ftlab.fitting.targets import Targets, read_targets, targets_of_trace
from ftlab.outputs import Output, check_distinct, inside
from ftlab.progress import Reporter

SUFFIX = ".toml"
"""Suffix of a targets file and of a model."""


@dataclass
class Request:
    """What a fit was asked to do."""

    source: str
    out: str
    config: str | None
    only: tuple[str, ...]
    tolerance: float
    settings: list[Override]
    flags: dict[str, str]
    load_state: str | None
    preset: str | None = None
    """The preset that the model of a trace names as its device."""
    check_on: str | None = None
    """The device that is run on trace and model once a trace is fitted."""
    quiet: bool = False
    """Whether no progress is shown."""


def tolerance_of(text: str) -> float:
    """Parses the share given to ``--tolerance``.

    Raises:
        UserError: the text is not a share.
    """
    try:
        share = float(text.strip().removesuffix("%"))
        if text.strip().endswith("%") and 0 < share <= 100:
            return share / 100
    except ValueError:
        pass
    raise UserError(f"--tolerance {text}: expected a share such as 1%")


def run(request: Request) -> Iterator[tuple[Fit, str]]:
    """Performs the requested fits; yields each with the name of the file written for it."""
    if Path(request.source).suffix.lower() == SUFFIX:
        yield from _from_targets(request)
    else:
        yield _from_trace(request)


def _from_targets(request: Request) -> Iterator[tuple[Fit, str]]:
    if request.check_on is not None:
        raise UserError(f"--check-on: {request.source} is a targets file; the check needs a trace")
    if request.preset is not None:
        raise UserError(f"--preset: the device is in {request.source}, table [config]")
    given = [name for name in request.flags if name != "seed"]
    if given:
        raise UserError(f"--{given[0].replace('_', '-')}: {request.source} is a targets file, not a trace")
    if request.config is not None:
        raise UserError(f"--config: the device is in {request.source}, table [config]; change it with --set")
    config, wanted = read_targets(request.source, request.only)
    directory = Path(request.out)
    if directory.suffix == SUFFIX and len(wanted) > 1:
        raise UserError(f"--out {request.out}: {len(wanted)} models; name a directory, or choose with --only")
    one_file = directory.suffix == SUFFIX
    if not one_file:
        try:
            directory.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise UserError(f"--out {request.out}: {error.strerror}") from None
    outputs = [
        Output("--out", directory) if one_file else inside(directory, each.name + SUFFIX) for each in wanted
    ]
    for output in outputs:
        output.check()
    check_distinct(outputs, [request.source])
    overrides = [*request.settings, *keyword_overrides(request.flags)]
    with Reporter(tasks=len(wanted), quiet=request.quiet) as reporter:
        fitter = Fitter(config, overrides, tolerance=request.tolerance, load_state=request.load_state)
        for targets, output in zip(wanted, outputs, strict=True):
            # All fits share one fitter, so that its device is prepared only once.
            fitter.report_to(reporter.callback(targets.name))
            fit = fitter.fit(targets)
            _write(fit, output, fitter.config, device=targets.read_conflicts is not None)
            reporter.finish(targets.name)
            yield fit, output.name


def _from_trace(request: Request) -> tuple[Fit, str]:
    if request.only:
        raise UserError(f"--only: {request.source} is not a targets file (.toml)")
    if request.load_state is not None and request.config is None:
        raise UserError("--load-state: a state belongs to a device; name it with --config")
    output = Output("--out", request.out)
    output.check((SUFFIX,))
    check_distinct([output], [request.source])
    if request.preset is not None and request.preset not in presets():
        raise UserError(f"--preset {request.preset}: there are {', '.join(presets())}")
    if not Path(request.source).exists():
        raise UserError(f"{request.source}: No such file or directory")
    if request.check_on is not None:
        load(request.check_on)  # A misspelt name is told before the fit, which takes a while.
    flags = keyword_overrides({name: value for name, value in request.flags.items() if name != "seed"})
    trace = traces.trace_config(request.source, flags)
    seed = keyword_overrides({name: value for name, value in request.flags.items() if name == "seed"})
    name = Path(request.out).stem
    with Reporter(quiet=request.quiet) as reporter:
        fitter = Fitter(
            request.config,
            [*request.settings, *seed],
            tolerance=request.tolerance,
            progress=reporter.callback(name),
            load_state=request.load_state,
        )
        found = fitter.conflicts_of(trace, flags) if request.config is not None else None
        targets: Targets = targets_of_trace(trace, name, found)
        fit = fitter.fit(targets)
        if found is None and targets.mean_interarrival_ns is not None:
            compare(fit, trace, flags, request.tolerance, reporter.callback(name))
        _write(fit, output, fitter.config, device=found is not None, preset=request.preset)
    if request.check_on is not None:
        with Reporter(tasks=2 * len(end_to_end.SCHEDULERS), quiet=request.quiet) as reporter:
            fit.end_to_end = end_to_end.check(fit, request.check_on, request.source, flags, reporter)
    return fit, output.name


def _write(fit: Fit, output: Output, config: Config, *, device: bool, preset: str | None = None) -> None:
    """Writes the model to its file, which names ``preset``, or else the preset, if any, of the device for
    which the model was fitted.
    """
    resolved = json.loads(config.json())
    own = resolved.get("preset")
    described = None
    if device:
        described = (
            f"on {own or 'the device'}, device.precondition {resolved['device']['precondition']},"
            f" device.scheduler {resolved['device']['scheduler']},"
            f" flash.pe_cycles {resolved['flash']['pe_cycles']}, seed {resolved['seed']}"
        )
    output.write(report.toml(fit, preset or own, described).encode())
