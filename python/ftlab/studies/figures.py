"""Pictures of figures: one style for all, with the axes and the grouping of the papers' figures."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from ftlab import palette
from ftlab.studies import looks
from ftlab.studies.cells import MEAN, Bar, Study, bars
from ftlab.studies.declaration import RECORDED, Figure, Panel

if TYPE_CHECKING:
    import altair as alt

TEXT, SOFT, GRID = (palette.NEUTRAL["light"][name] for name in ("text", "soft", "grid"))
FONT = "DejaVu Sans, Arial, sans-serif"
BAR = 11
"""The width of a bar in pixels."""
HEIGHT = 190
MOST_IN_A_ROW = 1300
"""The width in pixels beyond which panels are stacked."""
LIMIT = 3000
"""The maximum number of points of a line; a longer line keeps only the greatest of every few neighbours."""


def drawn(study: Study) -> bool:
    """Whether there is a picture to draw: not for a table, nor for a figure without data."""
    return bool(study.rows) and any(panel.mark != "table" for panel in study.figure.panels)


def svg(study: Study) -> str:
    """Returns the figure as SVG."""
    import vl_convert

    return vl_convert.vegalite_to_svg(specification(study))


def png(picture: str) -> bytes:
    """Converts an SVG to PNG; the bytes are those that the specification would give, but nothing is drawn
    again.
    """
    import vl_convert

    return vl_convert.svg_to_png(picture, scale=2.0)


def specification(study: Study) -> dict[str, Any]:
    """Returns the figure as a Vega-Lite specification."""
    import altair as alt

    panels = [_panel(study, panel) for panel in _one_legend_each(study.figure.panels)]
    # If the panels do not fit into one row, every row gets the same number of them.
    lines = max(1, -(-sum(width for _, width in panels) // MOST_IN_A_ROW))
    each = -(-len(panels) // min(lines, len(panels)))
    rows = [panels[at : at + each] for at in range(0, len(panels), each)]
    # Vega merges the legends of colours and markers only if both are shared by the same panels.
    apart: dict[str, Any] = dict.fromkeys(("color", "shape", "strokeDash"), "independent")
    parts = [alt.hconcat(*(chart for chart, _ in row), spacing=24) for row in rows]
    if not study.figure.paper:
        # Panels next to each other may be coloured by different axes.
        parts = [part.resolve_scale(**apart) for part in parts]
    return styled(parts, _title(study.figure))


def styled(parts: Sequence[Any], title: alt.TitleParams | None = None) -> dict[str, Any]:
    """Returns parts below each other, in the style of all figures, as a Vega-Lite specification."""
    import altair as alt

    chart = alt.vconcat(*parts, spacing=20).resolve_scale(
        color="independent", shape="independent", strokeDash="independent"
    )
    if title is not None:
        chart = chart.properties(title=title)
    chart = (
        chart.configure(font=FONT, background="white")
        .configure_view(stroke=None)
        .configure_axis(
            labelFontSize=11,
            titleFontSize=11,
            titleFontWeight="normal",
            titleColor=SOFT,
            labelColor=SOFT,
            domainColor=SOFT,
            tickColor=SOFT,
            gridColor=GRID,
        )
        .configure_legend(labelFontSize=11, titleFontSize=11, labelColor=TEXT, labelLimit=0)
        .configure_header(labelFontSize=11, labelColor=TEXT, labelOrient="bottom", titleFontSize=11)
    )
    loaded: dict[str, Any] = json.loads(chart.to_json())
    return loaded


def _one_legend_each(panels: Sequence[Panel]) -> list[Panel]:
    """Returns the panels that are drawn; of panels with the same colours, only the first has a legend."""
    kept, seen = [], set()
    for panel in panels:
        if panel.mark != "table":
            colours = (looks.by(panel), panel.values if looks.by(panel) == "_value" else (), panel.once)
            kept.append(replace(panel, legend=colours not in seen))
            seen.add(colours)
    return kept


def _title(figure: Figure) -> alt.TitleParams:
    import altair as alt

    return alt.TitleParams(
        figure.place.split(",")[0] + _variant(figure) if figure.paper else figure.title,
        subtitle=figure.title if figure.paper else figure.place,
        anchor="start",
        fontSize=14,
        subtitleFontSize=12,
        color=TEXT,
        subtitleColor=SOFT,
        offset=10,
    )


def _variant(figure: Figure) -> str:
    """Returns the suffix of a figure's title: " on recorded traces"; for a figure that repeats another one,
    the part of its id that follows the other's, in parentheses; otherwise empty.
    """
    if figure.kind == RECORDED:
        return " on recorded traces"
    return "" if figure.of == figure.id else f" ({figure.id.removeprefix(figure.of).strip('-')})"


def _panel(study: Study, panel: Panel) -> tuple[Any, int]:
    if panel.x in {value.name for value in study.figure.values}:
        return _curve(study, panel)
    cells = [bar for bar in bars(study, panel) if bar.number is not None]
    if panel.mark == "stack":
        return _stack(study, panel, cells)
    if panel.mark == "bars":
        return _faceted(study, panel, cells, *_bars(study, panel, _with_once(study, panel, cells)))
    return _faceted(study, panel, cells, *_lines(study, panel, cells))


def _faceted(study: Study, panel: Panel, cells: Sequence[Bar], chart: Any, width: int) -> tuple[Any, int]:
    """Draws a chart for each label of the panel's facet, side by side."""
    import altair as alt

    if not panel.facet:
        return chart, width
    facets = _order(study, cells, panel.facet)
    header = alt.Header(title=None, labelOrient="bottom", labelPadding=4)
    column = alt.Column(f"{panel.facet}:N", sort=facets, header=header, spacing=12)
    if isinstance(chart, alt.LayerChart):
        # The heading applies to all facets.
        chart.title = alt.Undefined
        column = alt.Column(f"{panel.facet}:N", sort=facets, header=header)
        faceted = chart.facet(column=column, spacing=12).properties(title=_heading(panel))
        return faceted, len(facets) * width
    return chart.encode(column=column), len(facets) * width


def _data(cells: Sequence[Bar], study: Study) -> Any:
    import altair as alt

    titles = {value.name: value.title for value in study.figure.values}
    rows = [{**bar.labels, "_value": titles[bar.value], "_number": bar.number} for bar in cells]
    return alt.InlineData(values=rows)


def _with_once(study: Study, panel: Panel, cells: Sequence[Bar]) -> list[Bar]:
    """Returns the cells, in which a value that is drawn only once becomes a series named after its title."""
    if not panel.once or not panel.series:
        return list(cells)
    series = panel.series
    first = _order(study, cells, series)[0]
    shown = []
    for bar in cells:
        if bar.value not in panel.once:
            shown.append(bar)
        elif bar.labels[series] == first:
            title = study.figure.value(bar.value).title
            shown.append(Bar({**bar.labels, series: title}, bar.value, bar.number))
    return shown


def _order(study: Study, cells: Sequence[Bar], axis: str) -> list[str]:
    """Returns an axis's labels in the order in which they are declared; the mean comes last."""
    there = {bar.labels[axis] for bar in cells}
    declared = study.figure.axis(axis)
    order = declared.labels if declared else study.labels(axis)
    return [label for label in [*order, MEAN] if label in there]


def _y(study: Study, panel: Panel, *, stack: bool = False) -> alt.Y:
    import altair as alt

    title = panel.y_title or _unit_title(study.figure, panel)
    scale = alt.Scale(type="log") if panel.log[1] else alt.Scale(zero=panel.mark in ("bars", "stack"))
    if panel.y_range:
        scale = alt.Scale(domain=list(panel.y_range), clamp=True)
    axis = alt.Axis(title=title, domain=False, tickCount=6, ticks=False)
    return alt.Y("_number:Q", axis=axis, scale=scale, stack="zero" if stack else None)


def _unit_title(figure: Figure, panel: Panel) -> str:
    value = figure.value(panel.values[0])
    if panel.normalise:
        base = ", ".join(panel.normalise.values())
        return {"ratio": f"normalised to {base}", "change": f"% against {base}"}.get(
            panel.relative, f"% less than {base}"
        )
    return f"{value.title} ({value.unit})" if value.unit else value.title


def _heading(panel: Panel) -> Any:
    import altair as alt

    return alt.TitleParams(panel.title, anchor="start", fontSize=12, fontWeight="normal", color=TEXT)


def _axis_title(study: Study, panel: Panel) -> str | None:
    if panel.x_title:
        return panel.x_title
    axis = study.figure.axis(panel.x)
    return axis.title if axis and axis.title != axis.name else None


def _by_order(study: Study, panel: Panel, cells: Sequence[Bar]) -> list[str]:
    if looks.by(panel) == "_value":
        return [study.figure.value(name).title for name in panel.values]
    once = [study.figure.value(name).title for name in panel.once]
    return [*once, *_order(study, cells, panel.series)] if panel.series else []


def _bars(study: Study, panel: Panel, cells: Sequence[Bar]) -> tuple[Any, int]:
    import altair as alt

    order, series = _order(study, cells, panel.x), _by_order(study, panel, cells)
    by = looks.by(panel)
    chart = alt.Chart(_data(cells, study)).mark_bar()
    width = max(120, int(len(order) * (max(len(series), 1) * BAR * 1.35 + 4)))
    angle = _angle(order, width)
    labels = alt.Axis(title=_axis_title(study, panel), labelAngle=angle, ticks=False, labelLimit=160)
    scale = alt.Scale(paddingInner=0.25, paddingOuter=0.1)
    x = alt.X(f"{panel.x}:N", sort=order, axis=labels, scale=scale)
    encoded = chart.encode(x=x, y=_y(study, panel))
    if by:
        encoded = encoded.encode(
            xOffset=alt.XOffset(f"{by}:N", sort=series), color=looks.colour(study, panel, series, by, width)
        )
    else:
        encoded = encoded.encode(color=alt.value(looks.ALONE))
    return encoded.properties(width=width, height=HEIGHT, title=_heading(panel)), width + 60


def _angle(labels: Sequence[str], width: int) -> int:
    """Returns the angle, in degrees, to which the labels of an axis are turned lest they overlap."""
    return -40 if looks.LETTER * max(map(len, labels), default=0) > width / max(len(labels), 1) else 0


def _stack(study: Study, panel: Panel, cells: Sequence[Bar]) -> tuple[Any, int]:
    import altair as alt

    parts = [study.figure.value(name).title for name in panel.values]
    order = _order(study, cells, panel.x)
    rank = {part: number for number, part in enumerate(parts)}
    data = _data(cells, study)
    for row in data.values:
        row["_rank"] = rank[row["_value"]]
    axis = alt.Axis(title=_axis_title(study, panel), labelAngle=-90, ticks=False, labelLimit=120)
    facets = _order(study, cells, panel.facet) if panel.facet else [""]
    # The names of facets are side by side, so each facet is at least as wide as the longest name.
    width = max(len(order) * (BAR + 4), int(looks.LETTER * max(map(len, facets))), 24 if panel.facet else 90)
    chart = (
        alt.Chart(data)
        .mark_bar()
        .encode(
            x=alt.X(f"{panel.x}:N", sort=order, axis=axis, scale=alt.Scale(paddingInner=0.2)),
            y=_y(study, panel, stack=True),
            color=looks.colour(study, panel, parts, "_value", max(width * len(facets), looks.WIDTH)),
            order=alt.Order("_rank:Q"),
        )
    )
    if not panel.facet:
        return chart.properties(width=width, height=HEIGHT, title=_heading(panel)), width + 60
    header = alt.Header(title=None, labelOrient="bottom", labelPadding=4)
    column = alt.Column(f"{panel.facet}:N", sort=facets, header=header, spacing=6)
    chart = chart.encode(column=column).properties(width=width, height=HEIGHT, title=_heading(panel))
    return chart, len(facets) * (width + 6) + 60


def _lines(study: Study, panel: Panel, cells: Sequence[Bar]) -> tuple[Any, int]:
    import altair as alt

    series = _by_order(study, panel, cells)
    by = looks.by(panel)
    order = _order(study, cells, panel.x)
    data = _data(cells, study)
    if panel.quantitative:
        for row in data.values:
            row["_x"] = float(row[panel.x])
        scale = alt.Scale(type="log", base=2) if panel.log[0] else alt.Scale(zero=False)
        x = alt.X("_x:Q", scale=scale, axis=alt.Axis(title=_axis_title(study, panel), grid=False))
    else:
        labels = alt.Axis(title=_axis_title(study, panel), labelAngle=_angle(order, looks.WIDTH), grid=False)
        x = alt.X(f"{panel.x}:N", sort=order, axis=labels, scale=alt.Scale(padding=0.3))
    chart = alt.Chart()
    placed: dict[str, Any] = {"x": x, "y": _y(study, panel)}
    if by is None:
        placed["color"] = alt.value(looks.ALONE)
        layers = [chart.mark_line(strokeWidth=1.6).encode(**placed)]
        layers.append(chart.mark_point(size=24, filled=True).encode(**placed))
    else:
        told = looks.lines(study, panel, series, by)
        placed["color"] = looks.colour(study, panel, series, by)
        layers = [chart.mark_line(strokeWidth=1.6).encode(**placed, strokeDash=told["strokeDash"])]
        marks = chart.mark_point(size=34, filled=True, opacity=1)
        layers.append(marks.encode(**placed, shape=told["shape"]))
    return alt.layer(*layers, data=data).properties(
        width=looks.WIDTH, height=HEIGHT, title=_heading(panel)
    ), looks.WIDTH + 60


def _curve(study: Study, panel: Panel) -> tuple[Any, int]:
    """Draws points whose x is a number, such as values over time or a distribution."""
    import altair as alt

    places = {row.labels: row.values[panel.x] for row in study.rows}
    rows = []
    for bar in bars(study, panel):
        at = places[tuple(bar.labels[axis] for axis in study.axes)]
        if at is not None and bar.number is not None:
            by = bar.labels[panel.series] if panel.series else ""
            rows.append({"_x": at, "_number": bar.number, "_by": by})
    there = {row["_by"] for row in rows}
    series = [label for label in (study.labels(panel.series) if panel.series else [""]) if label in there]
    value = study.figure.value(panel.x)
    scale = alt.Scale(type="log") if panel.log[0] else alt.Scale(zero=False)
    title = panel.x_title or (f"{value.title} ({value.unit})" if value.unit else value.title)
    x = alt.X("_x:Q", scale=scale, axis=alt.Axis(title=title, grid=False))
    chart = alt.Chart(alt.InlineData(values=_thin(rows)))
    if panel.mark == "points":
        marked = chart.mark_circle(size=10, opacity=0.5)
    else:
        marked = chart.mark_line(
            strokeWidth=1.5, interpolate="step-after" if panel.mark == "steps" else "linear"
        )
    encoded = marked.encode(x=x, y=_y(study, panel), color=looks.colour(study, panel, series, "_by"))
    if panel.mark != "points" and len(series) > 1:
        encoded = encoded.encode(strokeDash=looks.lines(study, panel, series, "_by")["strokeDash"])
    return encoded.properties(width=looks.WIDTH, height=HEIGHT, title=_heading(panel)), looks.WIDTH + 60


def _thin(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Returns at most `LIMIT` points of each series: from each group of neighbouring points, the one with the
    greatest value.
    """
    groups: dict[str, list[dict[str, Any]]] = {}
    for row in rows:
        groups.setdefault(row["_by"], []).append(row)
    kept = []
    for group in groups.values():
        step = -(-len(group) // LIMIT)
        kept += [
            max(group[at : at + step], key=lambda row: row["_number"]) for at in range(0, len(group), step)
        ]
    return kept
