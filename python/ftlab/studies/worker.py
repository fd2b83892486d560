"""What a worker of a cluster does for a study: it performs tasks, and receives traces that it lacks."""

from __future__ import annotations

import functools
import hashlib
import json
import shutil
import threading
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

from ftlab import policies
from ftlab._core import InternalError, UserError
from ftlab.configs import Override, load_text
from ftlab.outputs import no_links
from ftlab.studies.executor import Budget, estimated_bytes, free_memory, worker_name
from ftlab.studies.measure import measure
from ftlab.studies.plan import engine

SHARE_OF_LIMIT = 0.8
"""The share of a worker's memory limit that devices may take."""

BEGAN = "ftlab-began"
"""The topic under which a scheduler keeps the key of each task that began."""

Answer: TypeAlias = tuple[str, str]
"""A worker's answer to a task: its kind and its text (see `work`)."""


@dataclass(frozen=True)
class Trace:
    """A trace's file, identified by its content."""

    path: str
    size: int
    sha256: str


@dataclass(frozen=True)
class Task:
    """A run in the form in which it is sent."""

    measure: str
    toml: str
    trace: Trace | None
    engine: str
    policies: str
    """What identifies the Python classes that the configuration names (`ftlab.policies.content_of`)."""
    collect: bool


def mismatch(worker: str, theirs: str, ours: str) -> str:
    """Reports that a worker has another build of ftlab."""
    return f"the engine of worker {worker} is {theirs}, here it is {ours}; install the same one"


def work(task: Task) -> Answer:
    """Performs a task on a worker.

    It returns "result" and the result's JSON, "user" or "internal" and why there is no result, or "missing"
    and the address of this worker, which cannot read the trace.
    """
    from distributed import get_worker

    worker = get_worker()
    _begin(worker)
    if engine() != task.engine:
        return "user", mismatch(worker.address, engine(), task.engine)
    if why := _other_policies(task):
        return "user", f"worker {worker.address}: {why}"
    try:
        return _work(task, worker)
    except Exception as error:
        # The error is sent as text: not every exception can be sent.
        return "internal", f"{type(error).__name__}: {error}"


def _begin(worker: Any) -> None:
    """Tells the scheduler that the current task begins, and waits until it knows: it may kill the worker."""
    from distributed.utils import sync

    sync(worker.loop, worker.scheduler.log_event, topic=BEGAN, msg=worker.get_current_task())


def _other_policies(task: Task) -> str | None:
    """Returns a message if the classes that a task names are not those of the client; otherwise None."""
    names = ", ".join(sorted(set(policies.named_in(task.toml))))
    if not names:
        return None
    if policies.content_of(task.toml) != task.policies:
        return f"{names}: not there, or another file; name it by a path that all workers can read"
    # A module is loaded only once, so a changed source would not take effect.
    if _loaded.setdefault(names, task.policies) != task.policies:
        return f"{names}: changed since it was loaded; start the workers anew"
    return None


_loaded: dict[str, str] = {}


def _work(task: Task, worker: Any) -> Answer:
    start = time.perf_counter()
    overrides = []
    if task.trace is not None:
        path = _readable(task.trace, worker)
        if path is None:
            return "missing", worker.address
        overrides.append(Override("workload.trace", "workload.trace", str(path)))
    try:
        # Permission for these classes was checked where the task was sent.
        policies.find(policies.named_in(task.toml))
        config = load_text("run", task.toml, overrides)
        with _budget(worker).reserved(estimated_bytes(config)):
            result = measure(task.measure, config, collect=task.collect)
    except UserError as error:
        text = str(error)
        if task.trace is not None:
            # The error names the trace as the study does.
            text = text.replace(str(path), task.trace.path)
        return "user", text
    except InternalError as error:
        return "internal", str(error)
    where = {"identity": engine(), "worker": worker_name(), "seconds": round(time.perf_counter() - start, 6)}
    result["engine"] = {**result.get("engine", {}), **where}
    return "result", json.dumps(result)


_lock = threading.Lock()
_shared: list[Budget] = []


def _budget(worker: Any) -> Budget:
    """Returns the memory that all runs of this worker share."""
    with _lock:
        if not _shared:
            limit = worker.memory_manager.memory_limit
            _shared.append(Budget(int(limit * SHARE_OF_LIMIT) if limit else free_memory()))
        return _shared[0]


def _stored(trace: Trace, worker: Any) -> Path:
    """Returns the path at which a worker stores a trace that was sent to it, under the trace's own file name.
    The file is removed when the worker ends.
    """
    return Path(worker.local_directory) / "ftlab-traces" / trace.sha256 / Path(trace.path).name


def _readable(trace: Trace, worker: Any) -> Path | None:
    """Returns a path at which this worker can read the trace: the trace's own path, or the stored copy."""
    for path in (Path(trace.path), _stored(trace, worker)):
        try:
            found = path.stat()
            # A worker runs for a long time: a file may have changed since it was last read.
            if found.st_size == trace.size and _hash(path, found.st_mtime_ns) == trace.sha256:
                return path
        except OSError:
            continue
    return None


@functools.lru_cache(10_000)
def _hash(path: Path, changed_ns: int) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def receive(trace: Trace, place: int, piece: bytes, dask_worker: Any = None) -> str | None:
    """Receives a piece of a trace on a worker; if that fails, returns the reason."""
    path = _stored(trace, dask_worker)
    unfinished = path.with_name(path.name + ".part")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        free = shutil.disk_usage(path.parent).free
        if place == 0 and free < trace.size:
            return (
                f"{trace.path}: {trace.size:,} B are more than the {free:,} B free on worker"
                f" {dask_worker.address}"
            )
        # pathlib knows no opener.
        with open(unfinished, "r+b" if place else "wb", opener=no_links) as file:
            file.seek(place)
            file.write(piece)
        if place + len(piece) == trace.size:
            with unfinished.open("rb") as file:
                if hashlib.file_digest(file, "sha256").hexdigest() != trace.sha256:
                    return f"{trace.path}: it changed while it was read"
            unfinished.replace(path)
    except OSError as error:
        return f"{trace.path}: worker {dask_worker.address} cannot keep it: {error.strerror}"
    return None
