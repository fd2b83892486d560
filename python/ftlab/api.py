"""Runs one configuration, or several in parallel."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ftlab import _core
from ftlab.configs import SHORTHANDS, ConfigLike, Scalar, load, overrides_of
from ftlab.frames import NAME, Frame, chunks
from ftlab.results.result import Result
from ftlab.running import RunOptions, run_config

if TYPE_CHECKING:
    from ftlab._core import MakeChunks, Preconditioning, Progress
    from ftlab.results.comparison import Comparison


def _workload(arguments: Mapping[str, Any]) -> tuple[dict[str, Scalar], MakeChunks | None]:
    """Returns the shorthand keywords given in a call and, if its trace is in memory, what yields the trace's
    rows.
    """
    given = {name: arguments[name] for name in SHORTHANDS if arguments[name] is not None}
    trace = given.get("trace")
    if trace is None or isinstance(trace, (str, os.PathLike)):
        return given, None
    return {**given, "trace": NAME}, chunks(trace)


def run(
    config: ConfigLike,
    *,
    trace: str | os.PathLike[str] | Frame | None = None,
    format: str | None = None,  # noqa: A002
    dedup: str | None = None,
    max_gap: str | None = None,
    skip_bad: int | None = None,
    out_of_range: str | None = None,
    speed: float | None = None,
    repeat: int | None = None,
    replay: str | None = None,
    seed: int | None = None,
    set: Mapping[str, Any] | None = None,  # noqa: A002 - the name of the command line's option
    collect: bool = True,
    check: bool = False,
    timeline: str | os.PathLike[str] | None = None,
    timeline_window: str | None = None,
    progress: Progress | None = None,
    preconditioning: Preconditioning | None = None,
    save_state: str | os.PathLike[str] | None = None,
    load_state: str | os.PathLike[str] | None = None,
    alone: bool = False,
    **overrides: Scalar,
) -> Result:
    """Runs one configuration.

    Args:
        config: a preset's name, a TOML file, a nested mapping (such as ``other_result["config"]``).
        trace: the workload: a trace file's name, or a data frame with the columns ts_ns, op, offset and
            size (`ftlab.read_trace`): polars, pandas, pyarrow, anything with Arrow's PyCapsule interface.
        format: layout of the trace, if it is not recognised.
        dedup: drop a request that repeats an earlier one within this time, ``"50ms"``.
        max_gap: shorten longer gaps between arrivals, ``"60s"``.
        skip_bad: how many lines of the trace may fail to parse.
        out_of_range: what to do about addresses beyond the device: ``"error"``, ``"wrap"`` or ``"compact"``.
        speed: divide arrival times by this.
        repeat: replay the trace this many times.
        replay: ``"open"`` (recorded times), ``"closed"`` (queue kept full) or ``"dependent"`` (each request
            waits for the one that it continues; the default for a live device's recording).
        seed: the seed of every random stream.
        set: overrides by dotted key, ``{"host.scheduler": "map+"}``. Sizes are text (``"16KiB"``) or a
            whole number of bytes, times are text (``"350us"``).
        collect: keep every request (71 bytes each) for `Result.requests` and `Result.column`.
        check: verify every invariant after every operation (slow).
        timeline: write what every channel, chip and die did to this file, for ui.perfetto.dev;
            `Result.timeline` describes what the file holds.
        timeline_window: the stretch of simulated time that the timeline shows, ``"10ms:20ms"``; by default
            the beginning of the run, up to a million events.
        progress: called about every 50 ms with the requests done so far; False stops the run
            with `KeyboardInterrupt`.
        preconditioning: called in the same way while the device is preconditioned, with the pages written,
            the rounds done and the write amplification of the last round (None before the first).
        save_state: file to which the state of the device at time 0 is written.
        load_state: file from which such a state is read, instead of preconditioning the device; the result
            is the same except for the engine block.
        alone: run each tenant alone too, for slowdowns, fairness and speedups.
        overrides: further keys to set; two underscores stand for the dot (``host__scheduler="map+"``).

    Raises:
        UserError: the configuration or the trace is at fault; the text says where.
        InternalError: a bug in ftlab.
    """
    keywords, rows = _workload(locals())
    options = RunOptions(
        collect=collect,
        check=check,
        timeline=timeline,
        timeline_window=timeline_window,
        progress=progress,
        preconditioning=preconditioning,
        save_state=save_state,
        load_state=load_state,
        chunks=rows,
    )
    resolved = load(config, overrides_of(set, {**keywords, **overrides}))
    result = run_config(resolved, options)
    if not alone:
        return result
    from ftlab.tenants import with_slowdowns

    return with_slowdowns(result, resolved, options)


def compare(
    config: ConfigLike,
    vary: Mapping[str, Sequence[Scalar]],
    *,
    trace: str | os.PathLike[str] | Frame | None = None,
    format: str | None = None,  # noqa: A002
    dedup: str | None = None,
    max_gap: str | None = None,
    skip_bad: int | None = None,
    out_of_range: str | None = None,
    speed: float | None = None,
    repeat: int | None = None,
    replay: str | None = None,
    seed: int | None = None,
    set: Mapping[str, Any] | None = None,  # noqa: A002 - the name of the command line's option
    collect: bool = False,
    check: bool = False,
    alone: bool = False,
    jobs: int | None = None,
    progress: bool = False,
    load_state: str | os.PathLike[str] | None = None,
    **overrides: Scalar,
) -> Comparison:
    """Runs every combination of the values in ``vary``, in parallel; the order of the variants is fixed.

    Args:
        config: as for `run`.
        vary: values by dotted key, ``{"host.scheduler": ["noop", "map+"]}``; the last key varies
            fastest.
        trace, format, dedup, max_gap, skip_bad, out_of_range, speed, repeat, replay, seed: as for `run`.
        set: overrides for all variants, as for `run`.
        collect: keep every request of every variant.
        check: verify every invariant after every operation (slow).
        alone: run each tenant of each variant alone too, as for `run`.
        jobs: number of variants to run at a time; by default the number of cores.
        progress: show progress on standard error.
        load_state: as for `run`, for every variant.
        overrides: as for `run`.

    Raises:
        UserError: a configuration or the trace is at fault; the text says where.
        InternalError: a bug in ftlab.
    """
    keywords, rows = _workload(locals())
    from ftlab.progress import Reporter
    from ftlab.results.comparison import prepare

    plan = prepare(config, vary, overrides_of(set, {**keywords, **overrides}), "vary")
    with Reporter(tasks=len(plan.variants), quiet=not progress) as reporter:
        options = RunOptions(collect=collect, check=check, load_state=load_state, chunks=rows)
        return plan.run(reporter, options, jobs=jobs, alone=alone)


def presets() -> dict[str, str]:
    """Returns a one-line description of each preset, by the preset's name."""
    return {name: doc for name, doc, _ in _core.presets()}


def components() -> Any:
    """Returns the registered parts of every layer, as the code lists them."""
    return json.loads(_core.components())


def schema() -> dict[str, Any]:
    """Returns the JSON Schema of a configuration file, for editors."""
    loaded: dict[str, Any] = json.loads(_core.schema())
    return loaded


def reference() -> str:
    """Returns the reference of all configuration keys, in Markdown."""
    return _core.reference()
