"""The check at the end of a fit: a device run on the trace and on its model, under several schedulers."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

from ftlab._core import UserError
from ftlab.configs import Override, keyword_overrides, load
from ftlab.fitting.fit import Fit
from ftlab.progress import Reporter
from ftlab.running import RunOptions, run_config
from ftlab.units import change, significant, time_unit

SCHEDULERS = ("noop", "row", "hp", "rb", "map+", "mq-deadline")
"""The schedulers that are compared: what may differ most between a trace and a model of it is their order."""

_PACKED = {"out_of_range": "compact"}


@dataclass(frozen=True)
class Compared:
    """Mean latency of reads and writes under one scheduler."""

    scheduler: str
    trace_ns: float
    """On the trace."""
    model_ns: float
    """On the model."""

    @property
    def error(self) -> float | None:
        """Returns the model's difference, as a share of the trace's latency; None if that is 0."""
        return self.model_ns / self.trace_ns - 1 if self.trace_ns > 0 else None


def check(
    fit: Fit, device: str, source: str, flags: Sequence[Override], reporter: Reporter
) -> list[Compared]:
    """Runs a device on the trace, read with ``flags``, and on its model, under each of `SCHEDULERS`.

    If addresses of the trace lie beyond the device, its pages are packed densely
    (``workload.out_of_range = "compact"``).

    Raises:
        UserError: the configuration of the device is wrong, or does not take the trace or the model.
    """
    trace = [*keyword_overrides({"trace": source}), *flags]
    model = [
        Override("the model", f"workload.synthetic.{key}", value)
        for key, value in fit.keys.items()
        if key != "seed"
    ]
    found = []
    for scheduler in SCHEDULERS:
        means = []
        for name, load_of in (("trace", trace), ("model", model)):
            overrides = [*load_of, Override("the check", "host.scheduler", scheduler)]
            means.append(_mean_ns(device, overrides, reporter, f"{scheduler} on the {name}"))
        found.append(Compared(scheduler, *means))
    return found


def _mean_ns(device: str, overrides: list[Override], reporter: Reporter, name: str) -> float:
    options = RunOptions(progress=reporter.callback(name))
    try:
        result = run_config(load(device, overrides), options)
    except UserError as error:
        if "out_of_range" not in str(error):
            raise
        result = run_config(load(device, [*overrides, *keyword_overrides(_PACKED)]), options)
    reporter.finish(name)
    return float(result["latency"]["all"]["mean_ns"])


def same_order(found: Sequence[Compared]) -> tuple[int, int]:
    """Returns how many pairs of schedulers the model orders as the trace does, and how many pairs there are.

    A pair that is equal on both counts as ordered alike.
    """
    pairs = list(itertools.combinations(found, 2))
    alike = sum(
        _sign(one.trace_ns - other.trace_ns) == _sign(one.model_ns - other.model_ns) for one, other in pairs
    )
    return alike, len(pairs)


def _sign(value: float) -> int:
    return (value > 0) - (value < 0)


def text(found: Sequence[Compared], device: str) -> str:
    """Returns the check as text for people: the schedulers in the order of the trace, best first."""
    unit = time_unit([each.trace_ns for each in found])
    head = f"mean latency on {device} ({unit.name})"
    lines = [f"    {head}", f"    {'':12}  {'trace':>10}  {'model':>10}  {'error':>10}"]
    for each in sorted(found, key=lambda each: each.trace_ns):
        place = 1 + sum(other.model_ns < each.model_ns for other in found)
        trace, model = (significant(ns / unit.ns) for ns in (each.trace_ns, each.model_ns))
        error = "-".rjust(10) if each.error is None else change(each.error, 1).rjust(10)
        lines.append(
            f"    {each.scheduler:12}  {trace:>10}  {model:>10}  {error}  place {place} on the model"
        )
    alike, pairs = same_order(found)
    lines.append(f"    {alike} of {pairs} pairs of schedulers are in the order of the trace")
    return "\n".join(lines) + "\n"
