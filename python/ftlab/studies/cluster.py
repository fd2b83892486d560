"""Does runs on other machines, or in processes of this machine, with Dask.distributed.

A task is the run's configuration as text and the hashes of its traces. The task is sent, and a result comes
back; nothing else is shared. If a worker cannot read a trace, the trace's content is sent to that worker,
once.
"""

from __future__ import annotations

import itertools
import json
import logging
import signal
import sys
import threading
import time
import uuid
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import CancelledError, ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeAlias

from ftlab import policies
from ftlab._core import Config, InternalError, UserError
from ftlab.pool import cores
from ftlab.progress import Reporter
from ftlab.studies.executor import Finished, Group, Told
from ftlab.studies.plan import Run, content, engine
from ftlab.studies.worker import BEGAN, Answer, Task, Trace, mismatch, receive, work
from ftlab.traces import trace_files

LOCAL = "local"
"""The address that means processes on this machine, started for the duration of the study."""

MOST_KILLED = 3
"""The maximum number of workers that one run may crash."""

MOST_WAITED = 20
"""How often a run is done again that the scheduler gave up although it did not crash that many workers."""

IN_FLIGHT = 500
"""The maximum number of runs handed over whose results are still missing, so that neither runs nor results
pile up.
"""

PIECE = 4 << 20
"""The size, in bytes, of the pieces in which a trace is sent."""

MOST_LOST = 20
"""How many times sending a trace may fail before that becomes an error."""

SAID_AFTER_S = 5.0
"""Time without a worker after which a message says so."""

LOOK_S = 1.0
"""Time between two checks that there is a worker."""


UnderWay: TypeAlias = dict[str, tuple[Run, Trace | None, Any]]
"""The tasks under way: for each task's key, its run, its trace and Dask's future."""


class Cluster:
    """The workers of a Dask scheduler, as a context manager."""

    def __init__(
        self,
        address: str,
        jobs: int | None = None,
        *,
        wait_s: float = 60.0,
        say: Callable[[str], None] = lambda text: None,
    ) -> None:
        """Connects to a scheduler at ``address``, or for `LOCAL` starts ``jobs`` processes (default: one per
        core).

        ``wait_s`` is how long to wait if there is no worker; ``say`` is called with notes for the user.

        Raises:
            UserError: Dask is not installed, or no scheduler answers there.
        """
        try:
            import distributed
        except ImportError:
            raise UserError("--dask needs Dask.distributed: pip install 'ftlab[dask]'") from None
        self._address = address
        self._wait_s = wait_s
        self._distributed: Any = distributed
        # Dask's modules log that the scheduler is gone, which is reported as an error anyway.
        for name in [*logging.root.manager.loggerDict, "asyncio", "tornado.application"]:
            if name.split(".")[0] in ("asyncio", "distributed", "tornado"):
                logging.getLogger(name).setLevel(logging.CRITICAL + 1)
        self._cluster: Any = None
        if address == LOCAL:
            self._cluster = _local(jobs or cores())
        try:
            self._client: Any = self._distributed.Client(
                self._cluster or address, timeout="10s", set_as_default=False
            )
            self._until_one(say, threading.Event())
        except TimeoutError as error:
            raise self._wrong(str(error) or "no answer") from None
        except (OSError, ValueError) as error:
            raise self._wrong(str(error)) from None
        self._sent: set[tuple[str, str]] = set()
        self._waited = Counter[str]()
        self._lost = 0
        self._given_up: UserError | None = None

    def __enter__(self) -> Cluster:
        """Returns the cluster itself."""
        return self

    def __exit__(self, *_: object) -> None:
        """Disconnects from the scheduler; worker processes that were started on this machine end."""
        self._client.close(timeout=5)
        if self._cluster is not None:
            self._cluster.close(timeout=5)

    @property
    def jobs(self) -> int:
        """Returns how many runs can be done at a time now."""
        with self._answering():
            return max(self._threads(), 1)

    @contextmanager
    def _answering(self) -> Iterator[None]:
        """During the block, turns the loss of the scheduler into a user's error."""
        try:
            yield
        except (self._distributed.comm.CommClosedError, CancelledError, TimeoutError):
            raise self._given_up or self._wrong("the scheduler is gone") from None

    def _threads(self) -> int:
        """Returns the number of threads of all connected workers."""
        return sum(self._client.nthreads().values())

    def _until_one(self, say: Callable[[str], None], over: threading.Event) -> None:
        """Waits for a worker, unless ``over`` is set meanwhile.

        Raises:
            UserError: no worker came in time.
        """
        since, said = time.monotonic(), False
        while not self._threads():
            waited = time.monotonic() - since
            if waited > self._wait_s:
                raise self._wrong(f"no worker for {self._wait_s:g} s (--dask-wait); what is done is kept")
            if waited > min(SAID_AFTER_S, self._wait_s / 2) and not said:
                say(f"--dask {self._address}: no worker; waiting {self._wait_s:g} s for one (--dask-wait)")
                said = True
            if over.wait(min(LOOK_S, self._wait_s / 10)):
                return
        if said:
            say(f"--dask {self._address}: a worker is there")

    @contextmanager
    def _watched(self, under_way: UnderWay, reporter: Reporter) -> Iterator[None]:
        """During the block, cancels the runs under way if there has been no worker for too long."""
        over = threading.Event()

        def watch() -> None:
            while not over.wait(LOOK_S):
                try:
                    self._until_one(reporter.note, over)
                except UserError as error:
                    self._given_up = error
                    self._client.cancel([future for *_, future in list(under_way.values())], force=True)
                    return
                except Exception:
                    # If the scheduler is gone, the runs under way end by themselves.
                    continue

        threading.Thread(target=watch, daemon=True).start()
        try:
            yield
        finally:
            over.set()

    def execute(self, groups: Sequence[Group], reporter: Reporter, told: Told) -> None:
        """Does the runs, like `ftlab.studies.executor.Executor.execute`; runs do not share devices."""
        if not groups:
            return
        self._check_engines()
        waiting = iter([run for group in groups for run in group])
        done = self._distributed.as_completed(loop=self._client.loop)
        under_way: UnderWay = {}
        with self._answering(), self._at_most_killed(), self._watched(under_way, reporter):
            self._submit(itertools.islice(waiting, IN_FLIGHT), done, under_way)
            for batch in done.batches():
                # Further runs keep the workers busy while results are processed.
                self._submit(itertools.islice(waiting, len(batch)), done, under_way)
                again = []
                for future, answer in zip(batch, self._answers(batch), strict=True):
                    run, trace, _ = under_way.pop(future.key)
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

    def _submit(self, runs: Iterable[Run], done: Any, under_way: UnderWay) -> None:
        keys, tasks, known = [], [], []
        for run in runs:
            trace = _trace(run.config)
            keys.append(f"ftlab-{run.key[:16]}-{uuid.uuid4().hex}")
            toml = run.config.toml()
            own = policies.content_of(toml)
            tasks.append(Task(run.figure.measure, toml, trace, engine(), own, run.collect))
            known.append((run, trace))
        if tasks:
            futures = self._client.map(work, tasks, key=keys, pure=False)
            under_way |= {
                key: (*each, future) for key, each, future in zip(keys, known, futures, strict=True)
            }
            done.update(futures)

    def _answers(self, batch: Sequence[Any]) -> list[Answer]:
        """Fetches the workers' answers to tasks that have ended, all of them together if possible."""
        try:
            found: list[Answer] = self._client.gather(batch)
            return found
        except Exception:
            # If one of the tasks failed, each answer is fetched separately.
            return [self._answer(future) for future in batch]

    def _answer(self, future: Any) -> Answer:
        if future.status == "cancelled":
            raise CancelledError
        error = future.exception()
        if isinstance(error, self._distributed.scheduler.KilledWorker):
            # The scheduler also counts the tasks that waited on a worker that died of another.
            run, _, _ = future.key.rpartition("-")
            self._waited[run] += 1
            if self._begun(future.key) < MOST_KILLED and self._waited[run] <= MOST_WAITED:
                return "waited", ""
            return "internal", f"{MOST_KILLED} workers died while they ran it"
        if error is not None:
            return "internal", f"{type(error).__name__}: {error}"
        answer: Answer = future.result()
        return answer

    def _begun(self, key: str) -> int:
        """Returns how often a task began on a worker."""
        return sum(begun == key for _, begun in self._client.get_events(BEGAN))

    def _finished(self, answer: Answer, trace: Trace | None) -> Finished | None:
        """Returns the outcome of a task; None if the task has to be repeated: it only waited on workers that
        died, or its worker lacked the trace, which is sent.
        """
        kind, text = answer
        if kind == "waited":
            return None
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
        """Refuses workers whose results might differ.

        Raises:
            UserError: there is such a worker; the message names it and both engines.
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
        """During the block, makes the scheduler give up on a run that has crashed `MOST_KILLED` workers."""
        before = self._client.run_on_scheduler(_allow, MOST_KILLED - 1)
        try:
            yield
        finally:
            if self._client.status == "running":
                self._client.run_on_scheduler(_allow, before)

    def _send(self, trace: Trace, worker: str) -> None:
        """Sends a trace to a worker that lacks it.

        Raises:
            UserError: the worker has no room for the trace, or too many workers have died while traces were
                sent.
        """
        if (worker, trace.sha256) in self._sent:
            # The trace has been sent meanwhile, for another run.
            return
        with Path(trace.path).open("rb") as file:
            place = 0
            while piece := file.read(PIECE):
                answer = self._client.run(receive, trace, place, piece, workers=[worker], on_error="return")
                said = answer.get(worker)
                if isinstance(said, str):
                    raise UserError(said)
                if said is not None:
                    # The worker died. The next worker that gets the run asks for the trace again, but at most
                    # `MOST_LOST` times in all.
                    self._lost += 1
                    if self._lost > MOST_LOST:
                        raise UserError(f"{trace.path}: could not be sent to worker {worker}: {said}")
                    return
                place += len(piece)
        self._sent.add((worker, trace.sha256))

    def _wrong(self, why: str) -> UserError:
        return UserError(f"--dask {self._address}: {why}")


def _local(jobs: int) -> Any:
    import dask
    from distributed import LocalCluster

    dask.config.set({"distributed.scheduler.worker-saturation": 1.0})

    def start() -> Any:
        return LocalCluster(  # type: ignore[no-untyped-call]
            n_workers=jobs,
            threads_per_worker=1,
            processes=True,
            host="127.0.0.1",
            # Port 0 means any free port.
            dashboard_address="127.0.0.1:0",
            silence_logs=logging.CRITICAL,
        )

    # A terminal interrupts all of its processes, but the workers must run until this process ends them.
    # Signals blocked in a thread are also blocked in the threads and processes that it starts.
    blocked = (signal.SIG_BLOCK, {signal.SIGINT})
    with (
        _silent_tracker(),
        ThreadPoolExecutor(1, initializer=signal.pthread_sigmask, initargs=blocked) as pool,
    ):
        return pool.submit(start).result()


@contextmanager
def _silent_tracker() -> Iterator[None]:
    """During the block, silences the process that clears away the locks of an interrupted command."""
    from multiprocessing import resource_tracker

    sys.warnoptions.append("ignore:resource_tracker:UserWarning")
    try:
        resource_tracker.ensure_running()
        yield
    finally:
        sys.warnoptions.pop()


def _allow(failures: int, dask_scheduler: Any = None) -> int:
    """Sets, on the scheduler, how many workers a run may crash; returns the previous number."""
    before: int = dask_scheduler.allowed_failures
    dask_scheduler.allowed_failures = failures
    return before


def _trace(config: Config) -> Trace | None:
    if config.trace is None:
        return None
    if len(trace_files(config.trace)) > 1:
        raise UserError(
            f"{config.trace}: a cluster takes one file: `ftlab trace convert` makes one"
            " (of a recording a copy that is to be replayed with --replay dependent)"
        )
    return Trace(config.trace, Path(config.trace).stat().st_size, content(config.trace))
