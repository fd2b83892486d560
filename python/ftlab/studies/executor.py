"""Where runs are done: the interface, and its implementation by threads of this process.

An executor takes groups of runs and reports the outcome of each; runs of a group may share a device.
`ftlab.studies.cluster` is the other implementation.
"""

from __future__ import annotations

import json
import math
import os
import socket
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Protocol, TypeAlias

from ftlab import _core
from ftlab._core import Config, InternalError, UserError
from ftlab.pool import cores, run_all
from ftlab.progress import Reporter
from ftlab.studies.measure import measure
from ftlab.studies.plan import Run, engine
from ftlab.units import quantity

Group: TypeAlias = Sequence[Run]
"""Runs that share one prepared device, or a single run."""

Finished: TypeAlias = "dict[str, Any] | UserError | InternalError"
"""A result, including its ``engine`` block, or the error that says why there is none."""

Told: TypeAlias = Callable[[Run, Finished], None]
"""A function called with the outcome of each run. If it raises an exception, all other runs end."""

Work: TypeAlias = Callable[[Group, Reporter], Iterator[tuple[Run, Any]]]
"""A function that does the runs of a group and yields each run with its outcome."""

SHARE_OF_MEMORY = 0.8
"""The share of the free memory that devices may take, less than all because their sizes are estimates."""

_BASE_BYTES = 16 << 20
_PAGE_BYTES = 10
_UNIT_BYTES = 8


class Executor(Protocol):
    """Anything that can do runs."""

    @property
    def jobs(self) -> int:
        """Returns how many runs are done at a time."""

    def execute(self, groups: Sequence[Group], reporter: Reporter, told: Told) -> None:
        """Does all runs; ``told`` is called for one run at a time, in the order in which they end.

        Raises:
            UserError: the executor cannot do the runs; raised before any run is started.
        """


class Threads:
    """Does runs in threads on all cores of this machine; the simulator releases Python's lock."""

    def __init__(
        self, jobs: int | None = None, budget: Budget | None = None, work: Work | None = None
    ) -> None:
        """Makes the executor for ``jobs`` groups at a time (default: one per core); ``work`` does a group
        (default: `measured`).
        """
        self.jobs = jobs or cores()
        self._work = work or measured
        self._budget = budget or Budget(free_memory())

    def execute(self, groups: Sequence[Group], reporter: Reporter, told: Told) -> None:
        """Does the runs, like `Executor.execute`."""
        lock = threading.Lock()
        # An earlier call has stopped its own runs at its end; a search then goes on with further runs.
        reporter.stopped = False

        def tell(run: Run, finished: Finished) -> None:
            with lock:
                told(run, finished)

        def work(group: Group) -> None:
            with self._budget.reserved(estimated_bytes(group[0].config)):
                for run, finished in self._work(group, reporter):
                    tell(run, finished)

        run_all(work, groups, jobs=self.jobs, stop=reporter.stop)


def measured(group: Group, reporter: Reporter) -> Iterator[tuple[Run, Finished]]:
    """Does the runs of a group, one after another."""
    device = None
    for position, run in enumerate(group):
        progress = reporter.callback(run.name)
        start = time.perf_counter()
        try:
            if len(group) > 1 and position == 0:
                before = reporter.preconditioning(run.name)
                device = _core.prepare(run.config, preconditioning=before)
            result = measure(
                run.figure.measure,
                run.config,
                sequence=run.sequence,
                collect=run.collect,
                device=device,
                progress=progress,
            )
        except (UserError, InternalError) as error:
            yield run, error
            continue
        seconds = round(time.perf_counter() - start, 6)
        where = {"identity": engine(), "worker": worker_name(), "seconds": seconds}
        result["engine"] = {**result.get("engine", {}), **where}
        reporter.finish(run.name)
        yield run, result


def worker_name() -> str:
    """Returns the name of this thread, unique among all that may work for a study."""
    return f"{socket.gethostname()}/{os.getpid()}/{threading.current_thread().name}"


class Budget:
    """Memory that runs share; each run waits until there is room for its device."""

    def __init__(self, total: int) -> None:
        """Makes a budget of ``total`` bytes; a run that needs more is done while no other run uses the
        budget.
        """
        self.total = total
        self._used = 0
        self._changed = threading.Condition()

    @contextmanager
    def reserved(self, wanted: int) -> Iterator[None]:
        """Reserves this much memory for the block."""
        with self._changed:
            self._changed.wait_for(lambda: not self._used or self._used + wanted <= self.total)
            self._used += wanted
        try:
            yield
        finally:
            with self._changed:
                self._used -= wanted
                self._changed.notify_all()


def free_memory() -> int:
    """Returns how many bytes of memory devices may take on this machine."""
    try:
        with open("/proc/meminfo", encoding="ascii") as file:  # noqa: PTH123
            fields = dict(line.split(":", 1) for line in file)
        return int(int(fields["MemAvailable"].split()[0]) * 1024 * SHARE_OF_MEMORY)
    except (OSError, KeyError, ValueError):
        # On systems other than Linux, half of the memory counts as free.
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2


def estimated_bytes(config: Config) -> int:
    """Estimates the memory of a run from its physical pages and the number of logical pages in each."""
    settings = json.loads(config.json())
    flash = settings["flash"]
    parts = ("channels", "chips_per_channel", "dies_per_chip", "planes_per_die", "blocks_per_plane")
    pages = math.prod(flash[part] for part in parts) * flash["pages_per_block"]
    page = quantity(flash["page"]) or 1
    unit = quantity(settings["ftl"].get("logical_page", "")) or page
    return int(_BASE_BYTES + pages * max(_PAGE_BYTES, _UNIT_BYTES * page / unit))


@contextmanager
def chosen(
    dask: str | None, wait_s: float, jobs: int | None, say: Callable[[str], None]
) -> Iterator[Executor]:
    """Yields threads of this process, or the Dask cluster of the scheduler ``dask``; waits ``wait_s`` for its
    workers.

    Raises:
        UserError: Dask is not installed, or no scheduler answers.
    """
    if dask is None:
        yield Threads(jobs)
        return
    from ftlab.studies.cluster import Cluster

    with Cluster(dask, jobs, wait_s=wait_s, say=say) as cluster:
        yield cluster
