"""A report as one HTML file: charts, tables and settings of runs, readable offline, without a server.

The charts are drawn in the reader's browser by Vega, which is in the file. Nothing is fetched; the page's
content security policy forbids it.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING

from ftlab.html.data import Measured, RunLabels, notes_in, payload, plain
from ftlab.outputs import HTML, Output
from ftlab.results.report import where_time_went

if TYPE_CHECKING:
    from ftlab.results.comparison import Comparison

KEYS = ("results.histograms", "results.series", "results.erase_map", "results.miss_curve")
"""Keys that make a result hold all that the report draws; without them the report draws less."""


def write_report(
    path: str | os.PathLike[str],
    *,
    title: str,
    runs: Sequence[tuple[RunLabels, Measured]],
    preface: str = "",
    command: str = "",
    notes: Sequence[str] | None = None,
) -> None:
    """Writes the report of some runs.

    Args:
        path: the file.
        title: the report's heading.
        runs: the results, each with the labels that distinguish it, by name: ``{"workload": "a.csv",
            "host.scheduler": "map+"}``. Runs with the same label ``figure`` (or ``study``) are shown
            together, distinguished by their other labels; if not all runs have that label, runs whose labels
            have the same names are shown together. A result may be shown in several places; it is embedded
            once. Results are `Result` objects or their dictionaries; charts that need more than summaries are
            drawn only for runs with `KEYS` set to true.
        preface: HTML placed before the charts as it is; the caller escapes its contents.
        command: the command that made the report, shown as text.
        notes: sentences about figures that do not mean what they seem to, shown at the top; by default those
            that follow from the results.

    Raises:
        ValueError: there are no runs.
        UserError: the file cannot be written.
    """
    output = Output("--html", path)
    output.check_kind(*HTML)
    output.write(render(title=title, runs=runs, preface=preface, command=command, notes=notes).encode())


def render(
    *,
    title: str,
    runs: Sequence[tuple[RunLabels, Measured]],
    preface: str = "",
    command: str = "",
    notes: Sequence[str] | None = None,
) -> str:
    """Returns the report's text, which is the same for equal results, whatever their ``engine``."""
    from ftlab.html.page import page

    told = notes_in(runs) if notes is None else notes
    spent = where_time_went(plain(runs[0][1])) if len(runs) == 1 else []
    return page(title=title, data=payload(runs), spent=spent, notes=told, preface=preface, command=command)


def of_comparison(comparison: Comparison) -> list[tuple[RunLabels, Measured]]:
    """Returns the runs of a comparison, labelled with the varied keys."""
    return [(dict(variant.set), variant.result) for variant in comparison.variants]
