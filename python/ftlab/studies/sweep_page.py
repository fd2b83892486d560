"""The page of a sweep: means with their intervals, a line for each run, and tables. If the runs are few,
there is also a report.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ftlab import palette
from ftlab.html import render
from ftlab.outputs import inside
from ftlab.studies import cells, figures, pages
from ftlab.studies.axes import Axis
from ftlab.studies.cache import Cache
from ftlab.studies.declaration import Figure
from ftlab.studies.plan import Run
from ftlab.studies.replications import Line, seeds, shown
from ftlab.units import quantity

PICTURES = ("figure.svg", "figure.png")

MOST_REPORTED = 200
"""The maximum number of runs in a report; if there are more runs, no report is made."""

MOST_RUNS = 5_000
"""The maximum number of runs, and of means, that a page shows; if there are more runs it shows only means."""

SECTIONS = (
    (
        "means",
        "Means",
        "Over the replications, with 95 % confidence intervals (Student's t). Of one replication there is"
        " no interval.",
    ),
    (
        "lines",
        "Runs",
        "A line for each run, through what was varied and what was measured; point at one to see which.",
    ),
    (
        "variants",
        "Variants",
        "Means and intervals; in brackets the paired difference from the base variant, where there is one.",
    ),
    ("runs", "All runs", "A click on a heading sorts."),
)
CHOICES = (("value", "Value"), ("kind", "Show"), ("x", "Along"), ("colour", "Colour by"))


def write(
    figure: Figure,
    runs: Sequence[Run],
    rows: Sequence[Mapping[str, Any]],
    lines: Sequence[Line],
    out: Path,
    said: str,
    *,
    picture: str = "",
    report: bool = False,
) -> None:
    """Writes ``index.html``, or removes it if no run succeeded.

    ``rows`` are those of the table with their ``labels``; ``report`` says whether `write_report_of` has
    written a report to link to.

    Raises:
        UserError: the page cannot be written.
    """
    if not lines:
        (out / "index.html").unlink(missing_ok=True)
        return
    page = pages.Page(
        title=figure.title,
        script="study.js",
        said=f"{len(runs):,} runs, each a row of runs.parquet",
        sections=SECTIONS,
        choices=CHOICES,
        command=said,
        lines=[figure.about] if figure.about else [],
        picture=_widened(palette.themed(picture)),
        report="report.html" if report else "",
    )
    inside(out, "index.html").write(pages.render(page, _data(figure, rows, lines)).encode())


def _widened(svg: str) -> str:
    """Returns a picture that takes the width of the page, but at most half as much again as it has."""
    found = re.search(r'<svg [^>]*?\bwidth="([0-9.]+)"', svg)
    if found is None:
        return svg
    return svg.replace("<svg ", f'<svg style="width: min(100%, {1.5 * float(found[1]):.0f}px)" ', 1)


def draw(figure: Figure, rows: Sequence[Mapping[str, Any]], out: Path) -> str:
    """Draws the study's panels as ``figure.svg`` and ``figure.png``; returns the SVG, empty if there is none.

    Raises:
        UserError: the files cannot be written.
    """
    table = cells.of_rows(figure, rows)
    if not figures.drawn(table):
        for name in PICTURES:
            (out / name).unlink(missing_ok=True)
        return ""
    picture = figures.svg(table)
    for name, data in zip(PICTURES, (picture.encode(), figures.png(picture)), strict=True):
        inside(out, name).write(data)
    return picture


def write_report_of(figure: Figure, runs: Sequence[Run], cache: Cache, out: Path, said: str) -> bool:
    """Writes ``report.html``, with all that the runs measured, if they are few; returns whether it was
    written.

    Raises:
        UserError: the report cannot be written.
    """
    target = out / "report.html"
    names = [axis.name for axis in figure.axes]
    found = []
    if figure.measure == "run" and len(runs) <= MOST_REPORTED:
        results = [(dict(zip(names, run.labels, strict=True)), cache.get(run.key)) for run in runs]
        found = [(labels, result) for labels, result in results if result is not None]
    if not found:
        target.unlink(missing_ok=True)
        return False
    inside(out, target.name).write(render(title=figure.title, runs=found, command=said).encode())
    return True


def _data(figure: Figure, rows: Sequence[Mapping[str, Any]], lines: Sequence[Line]) -> dict[str, Any]:
    over = seeds(figure)
    values = shown(figure, rows)
    titles = {value.name: value.title for value in figure.values}
    places = {axis.name: {label: at for at, label in enumerate(axis.labels)} for axis in figure.axes}
    numbers = {name: at for at, name in enumerate(values)}
    kept = rows if len(rows) <= MOST_RUNS else ()
    return {
        "axes": [_axis(axis, axis.name in over) for axis in figure.axes],
        "values": [
            {"name": name, "title": titles.get(name) or _short(name), "unit": unit}
            for name, unit in values.items()
        ],
        "base": dict(figure.base),
        "count": len(rows),
        "means": [
            [
                [places[axis][label] for axis, label in line.labels.items()],
                numbers[line.value],
                line.estimate.count,
                line.estimate.mean,
                line.estimate.half,
                line.difference.mean if line.difference else None,
                line.difference.half if line.difference else None,
            ]
            for line in lines[: MOST_RUNS * len(values)]
        ],
        "runs": [
            [
                row["run"],
                [places[axis][label] for axis, label in row["labels"].items()],
                [row.get(name) for name in values],
                row.get("seconds"),
            ]
            for row in kept
        ],
    }


def _axis(axis: Axis, seed: bool) -> dict[str, Any]:
    labels = axis.labels
    return {
        "name": axis.name,
        "title": axis.title,
        "labels": labels,
        # A policy has the same colour wherever it is drawn.
        "places": palette.places(axis.key or axis.name, labels),
        "ordered": len(labels) > 1 and all(quantity(label) is not None for label in labels),
        "seed": seed,
    }


def _short(name: str) -> str:
    """Formats a result's field as a heading: latency.all p99."""
    head, _, percent = name.partition(".percentile_ns.")
    return f"{head} p{float(percent):g}" if percent else name.removesuffix("_ns").removesuffix("_bytes_per_s")
