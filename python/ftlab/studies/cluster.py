"""Runs on other machines, or on processes of this one: Dask.distributed, behind the same interface.

A task is the run's configuration as text and the hashes of its traces. It goes out, and a result comes
back; nothing else is shared. A trace that a worker cannot read is sent to it, once, by its content.
"""

from __future__ import annotations

import itertools
import json
import uuid
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from ftlab import policies
from ftlab._core import Config, InternalError, UserError
from ftlab.pool import cores
from ftlab.progress import Reporter
from ftlab.studies.executor import Finished, Group, Told
from ftlab.studies.plan import Run, content, engine
from ftlab.studies.worker import Answer, Task, Trace, mismatch, receive, work

LOCAL = "local"
"""In place of an address: processes of this machine, for as long as the study takes."""

MOST_KILLED = 3
"""Workers that a run may take with it."""

IN_FLIGHT = 500
"""Runs that are handed over before results have come back, so that neither pile up."""

PIECE = 4 << 20
"""Of a trace that is sent, bytes."""

MOST_LOST = 20
"""Traces that did not arrive, before that is an error."""

WAIT_S = 30
"""For a first worker."""


class Cluster:
    """Workers of a Dask scheduler; a context manager."""

    def __init__(self, address: str, jobs: int | None = None) -> None:
        """``address`` is a scheduler's, or `LOCAL`: ``jobs`` processes (default: as many as there are cores).

        Raises:
            UserError: Dask is not installed, or nobody answers there.
        """
        try:
            import distributed
        except ImportError:
            raise UserError("--dask needs Dask.distributed: pip install 'ftlab[dask]'") from None
        self._address = address
        self._distributed: Any = distributed
        self._cluster: Any = None
        if address == LOCAL:
            self._cluster = _local(jobs or cores())
        try:
            self._client: Any = self._distributed.Client(
                self._cluster or address, timeout="10s", set_as_default=False
            )
            self._client.wait_for_workers(1, timeout=WAIT_S)
        except TimeoutError as error:
            raise self._wrong(str(error) or "no answer") from None
        except (OSError, ValueError) as error:
            raise self._wrong(str(error)) from None
        self._sent: set[tuple[str, str]] = set()
        self._lost = 0

    def __enter__(self) -> Cluster:
        """The cluster itself."""
        return self

    def __exit__(self, *_: object) -> None:
        """Lets go of the scheduler; processes of this machine end."""
        self._client.close(timeout=5)
        if self._cluster is not None:
            self._cluster.close(timeout=5)

    @property
    def jobs(self) -> int:
        """Runs at a time, now."""
        return sum(self._client.nthreads().values())

    def execute(self, groups: Sequence[Group], reporter: Reporter, told: Told) -> None:
        """As `ftlab.studies.executor.Executor.execute`; devices are not shared among runs."""
        if not groups:
            return
        self._check_engines()
        waiting = iter([run for group in groups for run in group])
        done = self._distributed.as_completed(loop=self._client.loop)
        under_way: dict[str, tuple[Run, Trace | None]] = {}
        with self._at_most_killed():
            self._submit(itertools.islice(waiting, IN_FLIGHT), done, under_way)
            for batch in done.batches():
                # Workers go on with these while what came back is looked at.
                self._submit(itertools.islice(waiting, len(batch)), done, under_way)
                again = []
                for future, answer in zip(batch, self._answers(batch), strict=True):
                    run, trace = under_way.pop(future.key)
                    finished = self._finished(answer, trace)
                    future.release()
                    if finished is None:
                        again.append(run)
                        continue
                    if isinstance(finished, dict):
                        reporter.callback(run.name)(finished.get("trace", {}).get("requests", 0))
                        reporter.finish(run.name)
                    told(run, finished)
                self._submit(again, done, under_way)

    def _submit(self, runs: Iterable[Run], done: Any, under_way: dict[str, tuple[Run, Trace | None]]) -> None:
        keys, tasks = [], []
        for run in runs:
            trace = _trace(run.config)
            keys.append(f"ftlab-{run.key[:16]}-{uuid.uuid4().hex}")
            toml = run.config.toml()
            own = policies.content_of(toml)
            tasks.append(Task(run.figure.measure, toml, trace, engine(), own, run.collect))
            under_way[keys[-1]] = (run, trace)
        if tasks:
            done.update(self._client.map(work, tasks, key=keys, pure=False))

    def _answers(self, batch: Sequence[Any]) -> list[Answer]:
        """What workers say of tasks that ended, asked for at once."""
        try:
            found: list[Answer] = self._client.gather(batch)
            return found
        except Exception:
            # Of one of them; then each by itself.
            return [self._answer(future) for future in batch]

    def _answer(self, future: Any) -> Answer:
        if future.status == "cancelled":
            raise self._wrong("the scheduler is gone")
        error = future.exception()
        if isinstance(error, self._distributed.scheduler.KilledWorker):
            return "internal", f"{MOST_KILLED} workers died while they ran it"
        if error is not None:
            return "internal", f"{type(error).__name__}: {error}"
        answer: Answer = future.result()
        return answer

    def _finished(self, answer: Answer, trace: Trace | None) -> Finished | None:
        """What became of a task; None: it is to be done again, now that its trace is there."""
        kind, text = answer
        if kind == "missing":
            assert trace is not None
            try:
                self._send(trace, text)
            except UserError as refused:
                return refused
            return None
        if kind == "result":
            result: dict[str, Any] = json.loads(text)
            return result
        return UserError(text) if kind == "user" else InternalError(text)

    def _check_engines(self) -> None:
        """Refuses workers whose results might be others.

        Raises:
            UserError: naming worker and both engines.
        """
        try:
            found: dict[str, str] = self._client.run(engine)
        except Exception as error:
            raise self._wrong(f"its workers do not say their engine: {error}") from None
        for worker, theirs in found.items():
            if theirs != engine():
                raise self._wrong(mismatch(worker, theirs, engine()))

    @contextmanager
    def _at_most_killed(self) -> Iterator[None]:
        """The scheduler gives up on a run that took so many workers with it, for the block."""
        before = self._client.run_on_scheduler(_allow, MOST_KILLED - 1)
        try:
            yield
        finally:
            if self._client.status == "running":
                self._client.run_on_scheduler(_allow, before)

    def _send(self, trace: Trace, worker: str) -> None:
        """Sends a trace to a worker that lacks it.

        Raises:
            UserError: there is no room for it.
        """
        if (worker, trace.sha256) in self._sent:
            # Another run has asked for it meanwhile.
            return
        with Path(trace.path).open("rb") as file:
            place = 0
            while piece := file.read(PIECE):
                answer = self._client.run(receive, trace, place, piece, workers=[worker], on_error="return")
                said = answer.get(worker)
                if isinstance(said, str):
                    raise UserError(said)
                if said is not None:
                    # The worker died; whoever runs it next asks again, but not for ever.
                    self._lost += 1
                    if self._lost > MOST_LOST:
                        raise UserError(f"{trace.path}: could not be sent to worker {worker}: {said}")
                    return
                place += len(piece)
        self._sent.add((worker, trace.sha256))

    def _wrong(self, why: str) -> UserError:
        return UserError(f"--dask {self._address}: {why}")


def _local(jobs: int) -> Any:
    import logging

    import dask
    from distributed import LocalCluster

    dask.config.set({"distributed.scheduler.worker-saturation": 1.0})
    return LocalCluster(  # type: ignore[no-untyped-call]
        n_workers=jobs,
        threads_per_worker=1,
        processes=True,
        host="127.0.0.1",
        dashboard_address=None,
        silence_logs=logging.CRITICAL,
    )


def _allow(failures: int, dask_scheduler: Any = None) -> int:
    """Runs on the scheduler; what was allowed before."""
    before: int = dask_scheduler.allowed_failures
    dask_scheduler.allowed_failures = failures
    return before


def _trace(config: Config) -> Trace | None:
    if config.trace is None:
        return None
    return Trace(config.trace, Path(config.trace).stat().st_size, content(config.trace))
