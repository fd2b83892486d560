"""The picture of a comparison: mean latency, split into wait and access, in a row of panels for each load."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ftlab.palette import PARTS
from ftlab.results.labels import heading
from ftlab.units import significant, time_unit

if TYPE_CHECKING:
    import altair as alt

    from ftlab.results.labels import Labels, Side

SUFFIXES = (".png", ".svg")
"""The file extensions that `draw` can produce."""

_OPS = (("read", "Reads"), ("write", "Writes"), ("all", "Reads and writes"))
_WORDS = {"wait": "waiting in the queue", "access": "in the device"}


def draw(comparison: Side, suffix: str) -> bytes:
    """Returns the picture as a file's bytes, ``.png`` or ``.svg``."""
    import vl_convert

    spec = chart(comparison).to_dict()
    if suffix == ".svg":
        return vl_convert.vegalite_to_svg(spec).encode()
    return vl_convert.vegalite_to_png(spec, scale=2.0)


def chart(comparison: Side) -> alt.VConcatChart:
    """Returns the chart, for a notebook or for further changes."""
    import altair as alt

    labels = comparison.labels()
    ops = [op for op in _OPS if any(_mean(variant.result, op[0]) for variant in comparison.variants)]
    rows: list[Any] = []
    for group in labels.groups:
        bars = [(labels.policy(at) or "as set", comparison.variants[at].result) for at in group.members]
        first = not rows
        panels = [_panel(bars, op, title, index == 0, first) for index, (op, title) in enumerate(ops)]
        row = alt.hconcat(*panels, spacing=18)
        heading = alt.TitleParams(group.load, anchor="start", fontSize=13, offset=8)
        rows.append(row.properties(title=heading) if group.load else row)
    drawn: alt.VConcatChart = (
        alt.vconcat(*rows, spacing=24)
        .properties(title=_title(comparison, labels))
        .configure(font="DejaVu Sans, Arial, sans-serif", background="white")
        .configure_view(stroke=None)
        .configure_axis(labelFontSize=12, titleFontSize=12, titleFontWeight="normal", titleColor="#444")
        .configure_legend(labelFontSize=12, symbolType="square", labelLimit=0)
    )
    return drawn


def _title(comparison: Side, labels: Labels) -> alt.TitleParams:
    import altair as alt

    return alt.TitleParams(
        "Mean latency by " + " and ".join(labels.policies or labels.keys),
        subtitle=heading(comparison),
        anchor="start",
        fontSize=16,
        subtitleFontSize=12,
        subtitleColor="#555",
        offset=14,
    )


def _mean(result: Any, op: str) -> float:
    mean: float | None = result["latency"][op]["mean_ns"]
    return mean or 0.0


def _panel(results: Sequence[tuple[str, Any]], op: str, title: str, first: bool, legend: bool) -> Any:
    import altair as alt

    unit = time_unit([_mean(result, op) for _, result in results], least=1)
    labels = [label for label, _ in results]
    parts = [
        {"variant": label, "part": _WORDS[part], "order": order, "value": (mean or 0) / unit.ns}
        for label, result in results
        for order, part in enumerate(PARTS)
        for mean in [result[part][op]["mean_ns"]]
    ]
    means = [_mean(result, op) / unit.ns for _, result in results]
    totals = [
        {"variant": label, "value": mean, "text": significant(mean, 3)}
        for label, mean in zip(labels, means, strict=True)
    ]
    axis = alt.Axis(title=None, domain=False, ticks=False, labelPadding=6, labelLimit=260, labels=first)
    y = alt.Y("variant:N", sort=labels, axis=axis, scale=alt.Scale(paddingInner=0.25))
    x = alt.X(
        "value:Q",
        stack="zero",
        # Leaves room for the number next to the longest bar.
        scale=alt.Scale(domain=[0, max(means) * 1.18 or 1], nice=False),
        axis=alt.Axis(
            title=f"mean latency ({unit.name})", grid=True, gridColor="#e6e6e6", domain=False, tickCount=3
        ),
    )
    colour = alt.Color(
        "part:N",
        sort=list(_WORDS.values()),
        scale=alt.Scale(domain=list(_WORDS.values()), range=list(PARTS.values())),
        legend=alt.Legend(title=None, orient="bottom", direction="horizontal") if first and legend else None,
    )
    height = max(60, 26 * len(labels))
    bars = (
        alt.Chart(alt.InlineData(values=parts))
        .mark_bar()
        .encode(y=y, x=x, color=colour, order=alt.Order("order:Q", sort="ascending"))
    )
    numbers = (
        alt.Chart(alt.InlineData(values=totals))
        .mark_text(align="left", dx=4, fontSize=11, color="#333")
        .encode(y=alt.Y("variant:N", sort=labels), x=alt.X("value:Q"), text="text:N")
    )
    heading = alt.TitleParams(title, anchor="start", fontSize=13, fontWeight="normal", color="#222")
    return alt.layer(bars, numbers).properties(width=230, height=height, title=heading)
