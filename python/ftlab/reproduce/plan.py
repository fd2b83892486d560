"""From figures to the runs they need: every combination of their axes, resolved and named by its hash."""

from __future__ import annotations

import functools
import hashlib
import itertools
import json
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ftlab import _core
from ftlab._core import Config, UserError
from ftlab.configs import Override, load
from ftlab.reproduce.papers import Figure, Paper, Trace

FORMAT = 1
"""Of what the cache holds; another number makes all of it stale."""

Labels = tuple[str, ...]


@dataclass(frozen=True)
class Run:
    """One cell of a figure."""

    figure: Figure
    labels: Labels
    """One per axis of the figure."""
    config: Config
    key: str
    """Hash of all that its result depends on."""
    device: str
    """Hash of what a device may be shared by: the configuration without its workload."""
    collect: bool
    """Whether its requests are wanted one by one."""

    @property
    def name(self) -> str:
        """For messages."""
        return " ".join([self.figure.paper, self.figure.id, *self.labels])


@dataclass(frozen=True)
class Missing:
    """A recorded trace that is not there."""

    figure: Figure
    trace: Trace


class Planner:
    """Resolves figures to runs."""

    def __init__(self, base: Path, traces: Mapping[str, Trace], folder: Path | None, quick: bool) -> None:
        """``base``: where papers/ and workloads/ are; ``folder``: where recorded traces may be."""
        self.base = base
        self._traces = traces
        self._folder = folder
        self._quick = quick
        self.missing: list[Missing] = []

    def trace_file(self, name: str) -> Path | None:
        """A recorded trace's file, if it is there."""
        if self._folder is None or name not in self._traces:
            return None
        path = self._folder / self._traces[name].file
        return path if path.is_file() else None

    def runs(self, paper: Paper, figure: Figure) -> Iterator[Run]:
        """The figure's runs in the order of its axes, those on absent traces left out (`missing`).

        Raises:
            UserError: a configuration is wrong; names the figure's file.
        """
        absent = set()
        for choices in itertools.product(*(axis.choices for axis in figure.axes)):
            config, keys = figure.config, dict(figure.set)
            if self._quick:
                keys |= figure.quick
            for choice in choices:
                config = choice.config or config
                if choice.trace is not None:
                    if choice.trace not in self._traces:
                        raise UserError(f"{figure.path}: no trace {choice.trace!r} in papers/traces.toml")
                    path = self.trace_file(choice.trace)
                    if path is None:
                        absent.add(choice.trace)
                        break
                    keys |= {"workload.trace": str(path), **self._traces[choice.trace].set}
                keys |= choice.set
            else:
                labels = tuple(choice.label for choice in choices)
                yield self._run(paper, figure, labels, config, keys)
        self.missing += [Missing(figure, self._traces[name]) for name in sorted(absent)]

    def _run(self, paper: Paper, figure: Figure, labels: Labels, base: str, keys: dict[str, str]) -> Run:
        if base.endswith(".toml"):
            base = str(self.base / base)
        trace = keys.get("workload.trace")
        if trace is not None and not os.path.isabs(trace):  # noqa: PTH117
            keys["workload.trace"] = str(self.base / trace)
        overrides = [Override(f"{key}={value}", key, value) for key, value in keys.items()]
        try:
            config = load(base, overrides)
        except UserError as error:
            raise UserError(f"{figure.path}: {' '.join(labels)}: {error}") from None
        collect = figure.what == "requests"
        settings = json.loads(config.json())
        workload = settings.pop("workload")
        own = hashlib.sha256(json.dumps(settings).encode()).hexdigest() if paper.shared_device else ""
        return Run(figure, labels, config, key_of(settings, workload, config, figure), own, collect)


def key_of(settings: Mapping[str, Any], workload: Mapping[str, Any], config: Config, figure: Figure) -> str:
    """The hash of configuration, content of the trace, version of the engine, and what is kept."""
    workload = dict(workload)
    trace = None
    if config.trace is not None:
        # Its content counts, not where it lies.
        workload["trace"] = None
        trace = content(config.trace)
    parts = {
        "format": FORMAT,
        "engine": engine(),
        "settings": settings,
        "workload": workload,
        "trace": trace,
        "measure": figure.measure,
        "requests": figure.what == "requests",
    }
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()


@functools.cache
def engine() -> str:
    """Version of the engine: its number and the hash of the extension that was built."""
    return f"{_core.__version__} {content(_core.__file__)}"


@functools.cache
def content(path: str) -> str:
    """SHA-256 of a file's bytes.

    Raises:
        UserError: it cannot be read.
    """
    try:
        with Path(path).open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise UserError(f"{path}: {error.strerror}") from None
