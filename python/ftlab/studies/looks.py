"""How the series of a figure look: colour, dash, marker and legend."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ftlab import palette
from ftlab.studies.cells import Study
from ftlab.studies.declaration import Panel

if TYPE_CHECKING:
    import altair as alt

ALONE = palette.NEUTRAL["light"]["soft"]
"""The colour if colours distinguish nothing: none of a policy."""

_VALUES = {
    **palette.CAUSES,
    **palette.MERGES,
    **palette.PARTS,
    **{"user": palette.CAUSES["host"], "mapping": palette.CAUSES["map"]},
}
"""Colours of values that are causes, merges or parts of a latency, by their names in the declarations."""

LETTER = 6.5
"""The largest average width of a letter in a label, in pixels."""
WIDTH = 340
"""The width of a panel of lines, in pixels."""


def by(panel: Panel) -> str | None:
    """Returns the field that colours distinguish: the labels of the series, or the values if there are
    several.
    """
    return "_value" if len(panel.values) > len(panel.once) + 1 else panel.series


def _places(study: Study, panel: Panel, order: Sequence[str]) -> list[int]:
    """Returns the place of each label; a policy has the same place in every panel and figure."""
    if by(panel) == "_value" or not panel.series:
        return list(range(len(order)))
    axis = study.figure.axis(panel.series)
    labels = axis.labels if axis else study.labels(panel.series)
    places = palette.places((axis and axis.key) or panel.series, labels)
    return [places.get(label, number) for number, label in enumerate(order)]


def _colours(study: Study, panel: Panel, order: Sequence[str]) -> list[str]:
    named = {study.figure.value(name).title: _VALUES[name] for name in panel.values if name in _VALUES}
    if by(panel) == "_value" and all(label in named for label in order):
        return [named[label] for label in order]
    # A value that is drawn once is about the user's own data, so it has the host's colour.
    once = {study.figure.value(name).title for name in panel.once}
    places = zip(order, _places(study, panel, order), strict=True)
    own = palette.other if _beside_policies(study, panel) else palette.colour
    return [palette.CAUSES["host"] if label in once else own(place) for label, place in places]


def _beside_policies(study: Study, panel: Panel) -> bool:
    """Whether colours distinguish something else here, and policies in another panel of the picture."""
    series = {each.series for each in study.figure.panels if each.series and by(each) == each.series}
    policies = {name for name in series if _of_policies(study, name)}
    return bool(policies) and (by(panel) == "_value" or panel.series not in policies)


def _of_policies(study: Study, name: str) -> bool:
    axis = study.figure.axis(name)
    return palette.is_policy((axis and axis.key) or name, axis.labels if axis else study.labels(name))


def colour(study: Study, panel: Panel, order: Sequence[str], field: str, width: int = WIDTH) -> alt.Color:
    """Returns the colours of the labels of ``field``, and the legend of a panel of this width."""
    import altair as alt

    colours = _colours(study, panel, order) if len(order) > 1 else [ALONE]
    return alt.Color(
        f"{field}:N",
        sort=list(order),
        scale=alt.Scale(domain=list(order), range=colours),
        legend=_legend(panel, order, width),
    )


def _legend(panel: Panel, order: Sequence[str], width: int) -> alt.Legend | None:
    """Returns the legend, above the panel, where the reader looks first; None if an earlier panel has the
    same legend.
    """
    import altair as alt

    if not panel.legend or len(order) < 2:
        return None
    wide = [30 + LETTER * len(label) for label in order]
    columns = len(order) if sum(wide) <= width else max(1, int(width // max(wide)))
    legend = alt.Legend(title=None, orient="top", direction="horizontal", columns=columns)
    # For lines the legend shows their markers, for bars only their colours.
    if panel.mark in ("bars", "stack"):
        legend.symbolType = "square"
    return legend


def lines(study: Study, panel: Panel, order: Sequence[str], field: str) -> dict[str, Any]:
    """Returns the dashes and markers of lines, which they have in addition to their colours."""
    import altair as alt

    places = _places(study, panel, order)
    domain = list(order)
    shapes = alt.Scale(domain=domain, range=[palette.shape(place) for place in places])
    dashes = alt.Scale(domain=domain, range=[list(palette.dash(place) or (1, 0)) for place in places])
    return {
        "shape": alt.Shape(f"{field}:N", sort=domain, scale=shapes, legend=_legend(panel, order, WIDTH)),
        "strokeDash": alt.StrokeDash(f"{field}:N", sort=domain, scale=dashes, legend=None),
    }
