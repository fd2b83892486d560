"""Does missing runs in parallel; after an interrupt the cache is valid and has the runs that finished."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from ftlab._core import InternalError, UserError
from ftlab.progress import Reporter
from ftlab.studies.cache import Cache
from ftlab.studies.executor import Executor, Finished, Group
from ftlab.studies.plan import Run

MOST_OF_A_DEVICE = 24
"""The maximum number of runs on one prepared device, so that threads can divide a large group."""


@dataclass(frozen=True)
class Done:
    """How many results were reused, and how many runs were done."""

    reused: int
    run: int


Found = Callable[[str, dict[str, Any]], None]
"""A function called with a run's key and its result."""

Failed = Callable[[Run, "UserError | InternalError"], None]
"""A function called with a run that failed, and its error."""


def stop(run: Run, error: UserError | InternalError) -> None:
    """Raises the error of one run, which ends all other runs."""
    raise type(error)(f"{error}\n  in the run {run.name}") from error


def run(
    runs: Iterable[Run],
    cache: Cache,
    reporter: Reporter,
    executor: Executor,
    found: Found,
    failed: Failed = stop,
    *,
    expected: bool = False,
) -> Done:
    """Gets the results of all runs, from the cache or by running them; ``found`` takes each result once.

    With ``expected`` the reporter has already been given the runs' costs.

    Raises:
        UserError, InternalError: the error of the first run (in order) that failed, unless ``failed`` takes
        it.
        KeyboardInterrupt: the user has interrupted; the runs that have finished are in the cache.
    """
    missing: dict[str, Run] = {}
    seen: set[str] = set()
    for each in runs:
        if each.key in seen:
            continue
        seen.add(each.key)
        there = cache.get(each.key)
        if there is None:
            missing[each.key] = each
        else:
            found(each.key, there)
    if not expected:
        reporter.expect({each.name: each.figure.seconds for each in missing.values()})

    def told(each: Run, finished: Finished) -> None:
        if isinstance(finished, (UserError, InternalError)):
            failed(each, finished)
            return
        cache.put(each.key, finished)
        found(each.key, finished)

    executor.execute(_groups(missing.values()), reporter, told)
    return Done(len(seen) - len(missing), len(missing))


def _groups(runs: Iterable[Run]) -> list[Group]:
    """Groups the runs that share a device; any other run is a group by itself. Costly groups come first."""
    groups: dict[str, list[Run]] = {}
    for each in runs:
        shared = each.device and each.figure.measure == "run"
        groups.setdefault(f"device {each.device}" if shared else each.key, []).append(each)
    parts: list[Group] = []
    for group in groups.values():
        parts += [group[at : at + MOST_OF_A_DEVICE] for at in range(0, len(group), MOST_OF_A_DEVICE)]
    # The longest group starts first, so that at the end no single core is still busy with it.
    return sorted(parts, key=lambda group: -sum(each.figure.seconds for each in group))
