"""A sweep to look at: its summary with intervals drawn, and under it the report of its runs."""

from __future__ import annotations

import html
from collections.abc import Sequence
from pathlib import Path

from ftlab.html import write_report
from ftlab.outputs import Output
from ftlab.studies.cache import Cache
from ftlab.studies.declaration import Figure
from ftlab.studies.plan import Run
from ftlab.studies.replications import Estimate, Line

MOST_RUNS = 200
"""That the report holds; of more the page has the summary alone."""

MOST_DRAWN = 60
"""Variants with an interval in the picture."""

_STYLE = (
    "<style>.sweep{overflow-x:auto;margin:1em 0}.sweep table{border-collapse:collapse}"
    ".sweep td,.sweep th{padding:.2em .7em;text-align:right;white-space:nowrap}"
    ".sweep .picture{background:#fff;display:inline-block;padding:6px}</style>"
)


def write(
    figure: Figure, runs: Sequence[Run], lines: Sequence[Line], cache: Cache, out: Path, said: str
) -> None:
    """Writes ``index.html``; nothing where no run came out, or runs are measured otherwise.

    Raises:
        UserError: it cannot be written.
    """
    if figure.measure != "run" or not lines:
        return
    preface = f"{_STYLE}{_pictures(lines)}{_table(figure, lines)}"
    target = Output("--out", out / "index.html")
    if len(runs) > MOST_RUNS:
        target.write(_summary(figure.title, preface, len(runs), said).encode())
        return
    names = [axis.name for axis in figure.axes]
    results = [(dict(zip(names, run.labels, strict=True)), cache.get(run.key)) for run in runs]
    found = [(labels, result) for labels, result in results if result is not None]
    write_report(target.name, title=figure.title, runs=found, preface=preface, command=said)


def _summary(title: str, body: str, runs: int, said: str) -> str:
    """A page without scripts, in the colours that the reader prefers."""
    style = "body{font-family:system-ui,sans-serif;margin:1.2em}:root{color-scheme:light dark}"
    return (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{html.escape(title)}</title><style>{style}</style></head><body>"
        f"<h1>{html.escape(title)}</h1><p>{runs:,} runs, each a row of runs.parquet. Made by"
        f" <code>{html.escape(said)}</code></p>{body}</body></html>\n"
    )


def _pictures(lines: Sequence[Line]) -> str:
    """A mean with its interval for each variant, a panel for each value."""
    if not any(line.estimate.half is not None for line in lines):
        return ""
    import altair as alt
    import vl_convert

    values = list(dict.fromkeys(line.value for line in lines))
    panels = []
    for value in values:
        own = [line for line in lines if line.value == value][:MOST_DRAWN]
        data = [
            {
                "variant": ", ".join(line.labels.values()) or value,
                "mean": line.estimate.mean,
                "low": line.estimate.low,
                "high": line.estimate.high,
            }
            for line in own
        ]
        order = [str(each["variant"]) for each in data]
        y = alt.Y("variant:N", sort=order, title=None, axis=alt.Axis(labelLimit=260))
        scale = alt.Scale(zero=False)
        title = f"{value} ({own[0].unit})" if own[0].unit else value
        base = alt.Chart(alt.InlineData(values=data)).encode(y=y)
        rules = base.mark_rule(color="#0072B2", strokeWidth=2).encode(
            x=alt.X("low:Q", scale=scale, title=title), x2="high:Q"
        )
        points = base.mark_point(filled=True, color="#0072B2", size=40, opacity=1).encode(x="mean:Q")
        panels.append((rules + points).properties(width=320, height=alt.Step(16)))
    chart = alt.concat(*panels, columns=2).properties(title="Mean and 95 % confidence interval")
    return (
        f'<div class="sweep"><div class="picture">{vl_convert.vegalite_to_svg(chart.to_dict())}</div></div>'
    )


def _table(figure: Figure, lines: Sequence[Line]) -> str:
    values = list(dict.fromkeys(line.value for line in lines))
    variants: dict[tuple[str, ...], dict[str, Line]] = {}
    for line in lines:
        variants.setdefault(tuple(line.labels.values()), {})[line.value] = line
    axes = list(lines[0].labels) if lines else []
    head = "".join(f"<th>{html.escape(name)}</th>" for name in (*axes, *values))
    rows = []
    for labels, cells in variants.items():
        texts = [html.escape(label) for label in labels]
        texts += [_cell(cells[value]) if value in cells else "" for value in values]
        rows.append("<tr>" + "".join(f"<td>{text}</td>" for text in texts) + "</tr>")
    base = html.escape(", ".join(f"{axis} = {label}" for axis, label in figure.base.items()))
    said = f" Differences from {base} in brackets." if base else ""
    return (
        f'<div class="sweep"><p>Means with 95 % confidence intervals.{said}</p>'
        f"<table><thead><tr>{head}</tr></thead><tbody>{''.join(rows)}</tbody></table></div>"
    )


def _cell(line: Line) -> str:
    text = _text(line.estimate)
    return f"{text} ({_text(line.difference)})" if line.difference else text


def _text(found: Estimate) -> str:
    return f"{found.mean:.4g}" + ("" if found.half is None else f" &#177;{found.half:.2g}")
