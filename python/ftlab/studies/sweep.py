"""What ``ftlab sweep`` does: plan, run what is missing, and write tables, summary and page."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ftlab._core import UserError
from ftlab.outputs import inside
from ftlab.progress import Reporter
from ftlab.studies import fleet, replications, sweep_page
from ftlab.studies.alone import alone
from ftlab.studies.cache import Folder
from ftlab.studies.declaration import Figure, load_study
from ftlab.studies.executor import Executor, estimated_bytes, free_memory
from ftlab.studies.plan import Planner, Run, check_varied, ignored, notes_of
from ftlab.studies.rows import RESERVED, Rows
from ftlab.studies.run import Done, run
from ftlab.traces import trace_files
from ftlab.units import quantity, size

if TYPE_CHECKING:
    import polars as pl

MOST_NAMED = 3
"""The maximum number of runs that a note names; there may be thousands of runs."""
SECONDS_PER_REQUEST = 1.2e-6
"""A rough estimate of the time per request, used if no run has been measured."""
SECONDS_PER_PAGE = 4e-8
"""A rough estimate of the time to precondition a page of a device."""
BYTES_PER_REQUEST = 40
"""A rough estimate of the size of a request in a text trace."""


@dataclass(frozen=True)
class Planned:
    """A study with its runs."""

    figure: Figure
    runs: tuple[Run, ...]
    notes: tuple[str, ...]
    """Notes on what the runs ignore."""


@dataclass(frozen=True)
class Outcome:
    """The outcome of a sweep."""

    done: Done
    failures: int
    first_failure: str
    lines: Sequence[replications.Line]


def plan(path: Path) -> Planned:
    """Reads a study and resolves all its runs.

    Raises:
        UserError: the study or a configuration is wrong; the text says where.
    """
    figure = load_study(path)
    for axis in figure.axes:
        if axis.name in RESERVED:
            raise UserError(f"{path}: axis.{axis.name}: the table has a column of that name; take another")
    planner = Planner(path.parent, {}, None, quick=False)
    runs = tuple(planner.runs(figure))
    if not runs:
        raise UserError(f"{path}: no runs")
    found = ignored((each.name, each.config) for each in runs)
    varied = dict.fromkeys(key for each in runs for key in each.varied)
    if len(runs) > 1:
        check_varied(f"{path}: axis:", varied, found, len(runs))
    return Planned(figure, runs, tuple(notes_of(found, len(runs), MOST_NAMED)))


def missing(planned: Planned, out: Path, *, fresh: bool) -> list[Run]:
    """Returns the runs whose result does not exist yet."""
    folder = Folder(out / "json", fresh=fresh)
    return [each for each in planned.runs if fresh or not folder.path(each.key).is_file()]


def sweep(
    planned: Planned, out: Path, reporter: Reporter, executor: Executor, *, fresh: bool, command: str
) -> Outcome:
    """Runs what is missing and writes everything to ``out``.

    Raises:
        UserError: an output cannot be written, or an expression does not fit the results.
    """
    figure, runs = planned.figure, planned.runs
    with alone(out, figure.path, fresh=fresh):
        rows = Rows(figure, runs, out)
        cache = Folder(out / "json", fresh=fresh, say=reporter.note)

        def failed(each: Run, error: Any) -> None:
            rows.fail(each, error)
            reporter.failed(each.name)

        done = run(runs, cache, reporter, executor, rows.add, failed)
        frame = rows.join()
        labelled = list(_labelled(frame, runs, figure))
        lines = replications.lines(figure, labelled)
        inside(out, "summary.csv").write(replications.to_csv(figure, lines).encode())
        # The folder is opened without ``fresh``, so that the results of this sweep are found.
        fleet.write(figure, runs, Folder(out / "json", say=reporter.note), out)
        report = sweep_page.write_report_of(
            figure, runs, Folder(out / "json", say=reporter.note), out, command
        )
        picture = sweep_page.draw(figure, labelled, out)
        sweep_page.write(figure, runs, labelled, lines, out, command, picture=picture, report=report)
        first = rows.first_failure() if rows.failures else ""
        return Outcome(done, rows.failures, first, lines)


def _labelled(frame: pl.DataFrame, runs: Sequence[Run], figure: Figure) -> Iterator[Mapping[str, Any]]:
    """Yields the rows of the table, each with the values to summarise, the run's duration and its labels."""
    names = [axis.name for axis in figure.axes]
    wanted = [value.name for value in figure.values] or replications.VALUES
    there = [name for name in wanted if name in frame.columns]
    took = [name for name in ("seconds",) if name in frame.columns]
    for row in frame.select("run", *there, *took).iter_rows(named=True):
        labels = dict(zip(names, runs[row["run"] - 1].labels, strict=True))
        yield {**row, "labels": labels}


def estimate(planned: Planned, out: Path, *, fresh: bool, jobs: int) -> str:
    """Describes what a sweep would cost."""
    folder = Folder(out / "json", fresh=fresh)
    there: dict[str, float] = {}
    missing: dict[str, Run] = {}
    for each in planned.runs:
        found = None if fresh or not folder.path(each.key).is_file() else folder.get(each.key)
        if found is None:
            missing[each.key] = each
        else:
            there[each.key] = float(found["engine"].get("seconds") or 0)
    if there:
        seconds, how = sum(there.values()) / len(there) * len(missing), "as those that are there took"
    else:
        seconds, how = sum(_seconds(each) for each in missing.values()), "a guess from requests and pages"
    memory = sorted((estimated_bytes(each.config) for each in planned.runs), reverse=True)
    free = free_memory()
    at_once = max((n for n in range(1, jobs + 1) if sum(memory[:n]) <= free), default=1)
    reused = f", {len(there):,} of them there already" if there else ""
    return (
        f"runs: {len(planned.runs):,}{reused}\n"
        f"CPU time: about {_time(seconds)}, {how}; {_time(seconds / at_once)} on {jobs} cores\n"
        f"memory: up to {size(memory[0])} a run, {at_once} at a time: {size(sum(memory[:at_once]))}"
        f" of {size(free)} free\n"
    )


def _seconds(each: Run) -> float:
    settings = json.loads(each.config.json())
    workload = settings["workload"]
    requests = float(workload.get("synthetic", {}).get("requests") or 1e5)
    if each.config.trace is not None:
        files = trace_files(each.config.trace)
        requests = sum(Path(file).stat().st_size for file in files) / BYTES_PER_REQUEST
    prepared = settings["device"].get("precondition", "none") != "none"
    pages = estimated_bytes(each.config) / 10 if prepared else 0
    repeat = quantity(str(workload.get("repeat", 1))) or 1
    return requests * repeat * SECONDS_PER_REQUEST + pages * SECONDS_PER_PAGE + 0.002


def _time(seconds: float) -> str:
    if seconds < 90:
        return f"{seconds:.1f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"
