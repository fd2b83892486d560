"""A comparison as a table: best value marked, ratio to the first variant.

Variants are columns where they fit, rows otherwise.
"""

from __future__ import annotations

import io
import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TextIO

from ftlab.metrics import METRICS, Metric, Number, best, ratio
from ftlab.units import Unit, significant, time_unit

if TYPE_CHECKING:
    from rich.table import Table
    from rich.text import Text

    from ftlab.comparison import Comparison

# Columns that carry the story where there is no room for all of them, the first ones first.
_PREFERRED = (
    "mean all",
    "mean read",
    "mean write",
    "hit ratio",
    "p99 all",
    "mean wait",
    "map reads",
    "WAF",
    "mean access",
    "map programs",
    "prioritized",
)
# Spaces between columns.
_GAP = 2
# The column that its ratio to the first variant follows.
_WITH_RATIO = "mean all"


@dataclass(frozen=True)
class _Line:
    """A metric over all variants, as text."""

    metric: Metric
    unit: str
    values: list[str]
    ratios: list[str]
    best: set[int]

    @property
    def width(self) -> int:
        return max(len(value) for value in self.values)


def render(comparison: Comparison, width: int) -> str:
    """The table without colours."""
    return render_for(comparison, io.StringIO(), width)


def render_for(comparison: Comparison, stream: TextIO, width: int | None = None) -> str:
    """The table as ``stream`` can show it: coloured on a terminal and as wide as it is, else 100 wide."""
    from rich.console import Console

    if width is None and not stream.isatty() and "COLUMNS" not in os.environ:
        width = 100
    console = Console(file=stream, width=width, highlight=False)
    lines = _lines(comparison)
    labels = [list(variant.set.values()) for variant in comparison.variants]
    table = _columns(list(comparison.vary), labels, lines, console.width)
    if table is None:
        table = _rows(list(comparison.vary), labels, lines, console.width)
    with console.capture() as captured:
        console.print(_heading_line(comparison), style="bold")
        console.print(table)
        if len(comparison) > 1:
            console.print(f"* best; (x) ratio to {comparison.variants[0].label}", style="dim")
    return captured.get()


def _heading_line(comparison: Comparison) -> str:
    """What was run, of the first variant: the others may differ in the varied keys alone."""
    config, first = comparison.config, comparison.variants[0].result.to_dict()["trace"]
    source = config["workload"].get("trace", "generated")
    parts = [f"{source.rsplit('/', 1)[-1]}: {first['requests']:,} requests"]
    if first["requests"]:
        parts.append(f"{first['reads'] / first['requests'] * 100:.0f} % reads")
    dropped = sum(first["dropped"].values())
    if dropped:
        parts.append(f"{dropped:,} dropped")
    return f"{config.get('preset', 'configuration')} on {', '.join(parts)}"


def _lines(comparison: Comparison) -> list[_Line]:
    results = [variant.result.to_dict() for variant in comparison.variants]
    table = [(metric, [metric.get(result) for result in results]) for metric in METRICS]
    units = {group: _unit(table, group) for group in {metric.group for metric, _ in table}}
    return [
        _line(metric, values, units[metric.group] or time_unit(values))
        for metric, values in table
        # A row of nothing says nothing.
        if any(value for value in values)
    ]


def _unit(table: list[tuple[Metric, list[Number]]], group: str) -> Unit | None:
    """The unit that the times of a group share; None: each row its own, wait and access differ too much."""
    if group == "of which":
        return None
    values = [values for metric, values in table if metric.group == group and metric.kind == "time"]
    return time_unit([value for row in values for value in row])


def _line(metric: Metric, values: list[Number], unit: Unit) -> _Line:
    texts, name = _texts(metric, values, unit)
    # What looks the same is the same.
    shown = {texts[position] for position in best(metric, values)}
    marked = {position for position, text in enumerate(texts) if text in shown}
    if len(marked) == len(values):
        marked = set()
    stars = ["*" if position in marked else " " for position in range(len(values))]
    compared = metric.better is not None and metric.kind != "share"
    ratios = [ratio(value, values[0]) if compared else None for value in values]
    return _Line(
        metric,
        name,
        [text + star for text, star in zip(texts, stars, strict=True)],
        ["" if r is None else f"({r:.2f})" for r in ratios],
        marked,
    )


def _texts(metric: Metric, values: list[Number], unit: Unit) -> tuple[list[str], str]:
    def each(scale: float) -> list[str]:
        return [significant(None if value is None else value / scale) for value in values]

    match metric.kind:
        case "time":
            return each(unit.ns), unit.name
        case "share":
            return ["-" if value is None else f"{value * 100:.2f}" for value in values], "%"
        case "rate":
            return each(1e6), "MB/s"
        case "factor":
            return ["-" if value is None else f"{value:.3f}" for value in values], ""
        case "count":
            return ["-" if value is None else f"{value:,}" for value in values], ""


def _columns(keys: list[str], labels: list[list[str]], lines: list[_Line], width: int) -> Table | None:
    """Variants as columns: ratios beside the values if there is room, else below; None: no room."""
    name_width = max([len(_row_name(line)) for line in lines] + [len(key) for key in keys])
    for beside in (True, False):
        cells = [[_cell(line, position, beside) for line in lines] for position in range(len(labels))]
        widths = [
            max(len(part) for text in [*label, *column] for part in text.split("\n"))
            for label, column in zip(labels, cells, strict=True)
        ]
        if name_width + sum(widths) + _GAP * len(widths) <= width:
            return _column_table(keys, labels, lines, cells)
    return None


def _row_name(line: _Line) -> str:
    return f"  {line.metric.name}" + (f", {line.unit}" if line.unit else "")


def _cell(line: _Line, position: int, beside: bool) -> str:
    value, share = line.values[position], line.ratios[position]
    if beside:
        return f"{value}{share:>7}"
    # Below, only where most eyes go: the table would get long.
    return f"{value}\n{share} " if share and line.metric.kind == "time" else value


def _new_table() -> Table:
    from rich import box
    from rich.table import Table

    return Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, _GAP - 1, 0, 0), show_edge=False)


def _column_table(
    keys: list[str], labels: list[list[str]], lines: list[_Line], cells: list[list[str]]
) -> Table:
    from rich.text import Text

    table = _new_table()
    table.add_column(Text("\n".join(keys), style="bold"), no_wrap=True)
    for label in labels:
        table.add_column(Text("\n".join(label), style="bold"), justify="right", no_wrap=True)
    group = None
    for row, line in enumerate(lines):
        if line.metric.group != group:
            group = line.metric.group
            table.add_row(Text(group, style="bold"))
        texts = [_styled(column[row], position in line.best) for position, column in enumerate(cells)]
        table.add_row(_row_name(line), *texts)
    return table


def _styled(text: str, is_best: bool) -> Text:
    from rich.text import Text

    return Text(text, style="bold green" if is_best else "")


def _rows(keys: list[str], labels: list[list[str]], lines: list[_Line], width: int) -> Table:
    """Variants as rows, with as many metrics as fit."""
    from rich.text import Text

    chosen = _fitting(keys, labels, lines, width)
    table = _new_table()
    for key in keys:
        table.add_column(Text(key.replace(".", "\n"), style="bold"), no_wrap=True, overflow="ellipsis")
    for line in chosen:
        table.add_column(Text("\n".join(_heading(line)), style="bold"), justify="right", no_wrap=True)
        if line.metric.short == _WITH_RATIO:
            table.add_column(Text("(x)", style="bold"), justify="right", no_wrap=True)
    for position, label in enumerate(labels):
        cells = [Text(value) for value in label]
        for line in chosen:
            cells.append(_styled(line.values[position], position in line.best))
            if line.metric.short == _WITH_RATIO:
                cells.append(Text(line.ratios[position]))
        table.add_row(*cells)
    return table


def _heading(line: _Line) -> list[str]:
    parts = line.metric.short.split()
    return [*parts, line.unit] if line.unit else parts


def _fitting(keys: list[str], labels: Sequence[Sequence[str]], lines: list[_Line], width: int) -> list[_Line]:
    free = width
    for column, key in enumerate(keys):
        parts = [*key.split("."), *(label[column] for label in labels)]
        free -= max(len(part) for part in parts) + _GAP
    chosen: list[_Line] = []
    by_name = {line.metric.short: line for line in lines}
    for name in _PREFERRED:
        line = by_name.get(name)
        if line is None:
            continue
        needed = max(line.width, *(len(part) for part in _heading(line))) + _GAP
        if name == _WITH_RATIO:
            needed += max(len(text) for text in line.ratios) + _GAP
        if needed <= free or not chosen:
            free -= needed
            chosen.append(line)
    return [line for line in lines if line in chosen]
