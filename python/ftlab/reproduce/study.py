"""A figure's measured values as CSV, next to the published ones."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence

from ftlab.reproduce.papers import Published
from ftlab.studies.cells import MEAN, Study, bars, text
from ftlab.studies.plan import AxisLabels
from ftlab.studies.series import Number


def to_csv(study: Study, published: Sequence[Published]) -> str:
    """Returns all measured values, one per row, with the published ones where the paper prints them."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow([*study.axes, "value", "unit", "measured", "normalised", "published", "place"])
    normalised = _normalised(study)
    printed = {_spot(study, each): each for each in published if each.figure == study.figure.id}
    for row in study.rows:
        for value in study.figure.values:
            spot = (value.name, row.labels)
            beside = printed.get(spot)
            cells = [value.name, value.unit, text(row.values[value.name]), text(normalised.get(spot))]
            cells += [text(beside.number), beside.place] if beside else ["", ""]
            writer.writerow([*row.labels, *cells])
    for (name, labels), number in normalised.items():
        if MEAN in labels:
            unit = study.figure.value(name).unit
            writer.writerow([*labels, name, unit, "", text(number), "", ""])
    return out.getvalue()


def _spot(study: Study, each: Published) -> tuple[str, AxisLabels]:
    return each.value, tuple(each.at.get(axis, "") for axis in study.axes)


def _normalised(study: Study) -> dict[tuple[str, AxisLabels], Number]:
    found: dict[tuple[str, AxisLabels], Number] = {}
    for panel in study.figure.panels:
        if panel.normalise:
            for bar in bars(study, panel):
                found.setdefault((bar.value, tuple(bar.labels.values())), bar.number)
    return found
