"""From figures to the runs they need: each combination of their axes, resolved and named by its hash."""

from __future__ import annotations

import functools
import hashlib
import itertools
import json
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from ftlab import _core, policies
from ftlab._core import Config, UserError
from ftlab.configs import Override, load
from ftlab.html import KEYS
from ftlab.studies.axes import Axis, Choice
from ftlab.studies.declaration import Figure, Trace
from ftlab.studies.toml import place
from ftlab.traces import digest_of

FORMAT = 2
"""The version of the cache's content; a new number invalidates all that is cached."""

OF_ONE_TRACE = ("workload.dedup", "workload.max_gap")
"""Keys that make sense within one trace only: the times of one trace say nothing about another's."""

MOST_NAMED = 50
"""The maximum number of variants that a note names by default."""

AxisLabels = tuple[str, ...]


@dataclass(frozen=True)
class Run:
    """The run for one cell of a figure."""

    figure: Figure
    labels: AxisLabels
    """The cell's labels, one for each axis of the figure."""
    config: Config
    key: str = ""
    """Hash of everything that the run's result depends on; empty if the result is not cached."""
    device: str = ""
    """Hash of what determines a shareable device: the configuration without its workload."""
    collect: bool = False
    """Whether the run's individual requests are needed."""
    plain: str = ""
    """The key of the same run without the settings that only the page's charts need."""
    sequence: tuple[Config, ...] = ()
    """If several traces are replayed one after another, a configuration for each that says how it is read."""
    varied: Mapping[str, str] = field(default_factory=dict)
    """The keys that the figure's axes set, with the values that they give."""

    @property
    def name(self) -> str:
        """Returns the run's name for messages."""
        names = [self.figure.paper, self.figure.id] if self.figure.paper else []
        return " ".join([*names, *self.labels]) or self.figure.id


@dataclass(frozen=True)
class Missing:
    """A recorded trace that is absent, and the figure that needs it."""

    figure: Figure
    trace: Trace


def combinations(axes: Sequence[Axis]) -> Iterator[tuple[AxisLabels, dict[str, str], tuple[Choice, ...]]]:
    """Yields every combination of labels (the last axis varies fastest), each with the keys that it sets and
    with its choices.
    """
    for choices in itertools.product(*(axis.choices for axis in axes)):
        varied = {key: value for choice in choices for key, value in choice.set.items()}
        yield tuple(choice.label for choice in choices), varied, choices


class Planner:
    """Turns figures into resolved runs."""

    def __init__(self, base: Path, traces: Mapping[str, Trace], folder: Path | None, quick: bool) -> None:
        """Makes the planner. ``base`` holds papers/ and workloads/; ``folder`` may hold recorded traces."""
        self.base = base
        self._traces = traces
        self._folder = folder
        self._quick = quick
        self.missing: list[Missing] = []

    def trace_file(self, name: str) -> Path | None:
        """Returns a recorded trace's file, if it exists."""
        if self._folder is None or name not in self._traces:
            return None
        path = self._folder / self._traces[name].file
        return path if path.is_file() else None

    def runs(self, figure: Figure, *, shared_device: bool = False) -> Iterator[Run]:
        """Yields the figure's runs in the order of its axes; runs on absent traces are left out (see
        `missing`).

        With ``shared_device``, runs that differ only in their workload may share one prepared device.

        Raises:
            UserError: a configuration is wrong; the text names the figure's file.
        """
        absent = set()
        for labels, varied, choices in combinations(figure.axes):
            config, keys, traces = figure.config, dict(figure.set), tuple[str, ...]()
            if self._quick:
                keys |= figure.quick
            for choice in choices:
                config = choice.config or config
                for name in choice.traces:
                    if name not in self._traces:
                        raise UserError(f"{figure.path}: no trace {name!r} in papers/traces.toml")
                gone = [name for name in choice.traces if self.trace_file(name) is None]
                if gone:
                    absent.update(gone)
                    break
                traces = choice.traces or traces
            else:
                run = self._run(figure, labels, config, keys | varied, traces, shared_device)
                yield replace(run, varied=varied)
        self.missing += [Missing(figure, self._traces[name]) for name in sorted(absent)]

    def _trace_keys(self, name: str) -> dict[str, str]:
        return {"workload.trace": str(self.trace_file(name)), **self._traces[name].set}

    def _run(
        self,
        figure: Figure,
        labels: AxisLabels,
        base: str,
        keys: dict[str, str],
        traces: tuple[str, ...],
        shared_device: bool,
    ) -> Run:
        if base.endswith(".toml"):
            base = str(self.base / base)
        # The keys that say how a trace is read come first, so that an axis may override them.
        first = self._trace_keys(traces[0]) if traces else {}
        if len(traces) > 1:
            # These keys apply to each trace by itself, not again to the sequence of all traces.
            first = {key: value for key, value in first.items() if key not in OF_ONE_TRACE}
        if traces:
            # A recorded trace replaces a generator and its number of requests.
            keys = {key: value for key, value in keys.items() if not key.startswith("workload.synthetic.")}
        if figure.aggregate:
            # A fleet merges the histograms of its runs.
            keys = {**keys, "results.histograms": "true"}
        trace = keys.get("workload.trace")
        if trace is not None and not os.path.isabs(trace):  # noqa: PTH117
            keys["workload.trace"] = str(self.base / trace)
        if figure.report:
            # The charts of the page need more than summaries.
            keys = {**keys, **dict.fromkeys(KEYS, "true")}
        try:
            config = load(base, _overrides({**first, **keys}))
            once = {key: value for key, value in keys.items() if key != "workload.repeat"}
            sequence = tuple(
                load(base, _overrides({**self._trace_keys(name), **once}))
                for name in traces
                if len(traces) > 1
            )
        except UserError as error:
            where = place(figure.path, declared(figure, error))
            raise UserError(f"{where}: {' '.join(labels)}: {error}") from None
        collect = figure.what == "requests"
        settings = json.loads(config.json())
        workload = settings.pop("workload")
        # An empty device is not shared: making one is faster than copying it.
        shared_device = shared_device and settings["device"].get("precondition", "none") != "none"
        own = hashlib.sha256(json.dumps(settings).encode()).hexdigest() if shared_device else ""
        key = key_of(settings, workload, [config, *sequence], figure)
        settings.pop("results", None)
        # Only figures of papers share runs with each other.
        plain = key_of(settings, workload, [config, *sequence], figure) if figure.paper else ""
        return Run(figure, labels, config, key, own, collect, plain, sequence)


def declared(figure: Figure, error: UserError) -> str:
    """Returns the place in the study that caused a configuration error; ``config`` if no single key did."""
    key, equals, _ = str(error).partition("=")
    if not equals or " " in key:
        return "config"
    part = "key" if "unknown key" in str(error) else "values"
    return next((f"axis.{axis.name}.{part}" for axis in figure.axes if axis.sets(key)), f"set.{key}")


def ignored(variants: Iterable[tuple[str, Config]]) -> dict[str, list[tuple[str, str]]]:
    """Returns the keys that were set to no effect, each with the variants that ignore it and the reasons."""
    found: dict[str, list[tuple[str, str]]] = {}
    for label, config in variants:
        for note in config.notes():
            key, _, why = note.partition(": ")
            found.setdefault(key, []).append((label, why))
    return found


def check_varied(where: str, varied: Iterable[str], found: Mapping[str, Any], variants: int) -> None:
    """Refuses to vary a key that every variant ignores.

    Raises:
        UserError: there is such a key; the message names it, after ``where``.
    """
    for key in varied:
        if len(found.get(key, ())) == variants:
            label, why = found[key][0]
            raise UserError(f"{where} {key}: every variant ignores it; {label}: {why}")


def notes_of(
    found: Mapping[str, Sequence[tuple[str, str]]], variants: int, most: int = MOST_NAMED
) -> list[str]:
    """Returns a sentence for each key that some variant ignores; it names at most ``most`` variants."""
    notes = []
    for key, ignoring in found.items():
        whys = {why for _, why in ignoring}
        if len(ignoring) == variants and len(whys) == 1:
            notes.append(f"{key}: {whys.pop()}")
        else:
            labels = [label for label, _ in ignoring]
            more = f"; {len(labels) - most} more" if len(labels) > most else ""
            named = "; ".join(labels[:most])
            notes.append(f"{key}: ignored by {len(ignoring)} of {variants} variants: {named}{more}")
    return notes


def together(runs: Iterable[Run]) -> list[Run]:
    """Replaces each run by the run for a report that differs from it only in what the charts need, if there
    is one, so that both need only one run.
    """
    runs = list(runs)
    full = {each.plain: each for each in runs if each.figure.report}
    return [
        replace(each, config=same.config, key=same.key, device=same.device, sequence=same.sequence)
        if (same := full.get(each.plain))
        else each
        for each in runs
    ]


def _overrides(keys: Mapping[str, str]) -> list[Override]:
    return [Override(f"{key}={value}", key, value) for key, value in keys.items()]


def key_of(
    settings: Mapping[str, Any], workload: Mapping[str, Any], configs: list[Config], figure: Figure
) -> str:
    """Hashes the configuration, the content of the traces, the engine's version, and what is kept of the
    result.
    """
    # A trace is identified by its content, not by its path.
    workload = {**workload, "trace": None} if configs[0].trace is not None else dict(workload)
    trace = [content(config.trace) for config in configs if config.trace is not None]
    parts = {
        "format": FORMAT,
        "engine": engine(),
        "settings": settings,
        "workload": workload,
        "trace": trace,
        "measure": figure.measure,
        "requests": figure.what == "requests",
    }
    if own := policies.content_of(json.dumps(settings)):
        parts["policies"] = own
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()


@functools.cache
def engine() -> str:
    """Returns the version of the engine: its number and the hash of the built extension."""
    return f"{_core.__version__} {content(_core.__file__)}"


@functools.cache
def content(path: str) -> str:
    """Returns the SHA-256 of a trace's bytes; each trace is read once.

    Raises:
        UserError: the file cannot be read.
    """
    return digest_of(path)
