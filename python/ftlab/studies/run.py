"""Runs what is missing, in parallel; an interrupt leaves the cache as it was, finished runs in it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from ftlab import _core
from ftlab._core import InternalError, UserError
from ftlab.pool import run_all
from ftlab.progress import Reporter
from ftlab.studies.cache import Cache
from ftlab.studies.measure import measure
from ftlab.studies.plan import Run

MOST_OF_A_DEVICE = 24
"""Runs on one prepared device, so that a large group is shared among the threads."""


@dataclass(frozen=True)
class Done:
    """What was found and what was run."""

    results: dict[str, dict[str, Any]]
    """By the runs' keys."""
    reused: int
    run: int


def run(runs: Iterable[Run], cache: Cache, reporter: Reporter, *, jobs: int | None = None) -> Done:
    """Results of all runs, from the cache or by running them, ``jobs`` at a time (default: the cores).

    Raises:
        UserError, InternalError: of the first run (in order) that failed.
        KeyboardInterrupt: finished runs are in the cache.
    """
    results: dict[str, dict[str, Any]] = {}
    missing: dict[str, Run] = {}
    for each in runs:
        if each.key in results or each.key in missing:
            continue
        found = cache.get(each.key)
        if found is None:
            missing[each.key] = each
        else:
            results[each.key] = found
    reused = len(results)
    reporter.expect({each.name: each.figure.seconds for each in missing.values()})

    def work(group: Sequence[Run]) -> None:
        device = None
        for position, each in enumerate(group):
            progress = reporter.callback(each.name)
            try:
                if len(group) > 1 and position == 0:
                    device = _core.prepare(each.config, preconditioning=reporter.preconditioning(each.name))
                result = measure(each.figure.measure, each, device=device, progress=progress)
            except (UserError, InternalError) as error:
                raise type(error)(f"{error}\n  in the run {each.name}") from error
            cache.put(each.key, result)
            results[each.key] = result
            reporter.finish(each.name)

    run_all(work, _groups(missing.values()), jobs=jobs, stop=reporter.stop)
    return Done(results, reused, len(missing))


def _groups(runs: Iterable[Run]) -> list[list[Run]]:
    """Runs that share a device, in the order of their first; those that share none, each alone."""
    groups: dict[str, list[Run]] = {}
    for each in runs:
        shared = each.device and each.figure.measure == "run"
        groups.setdefault(f"device {each.device}" if shared else each.key, []).append(each)
    parts = []
    for group in groups.values():
        parts += [group[at : at + MOST_OF_A_DEVICE] for at in range(0, len(group), MOST_OF_A_DEVICE)]
    # The longest first, so that no core is left alone with it at the end.
    return sorted(parts, key=lambda group: -sum(each.figure.seconds for each in group))
