"""A comparison as a table: for each group that may be compared, the best values, and ratios to the group's
first variant.

Variants are columns if they fit, otherwise rows. Only file names are shortened: a column that does not fit is
left out and named below.
"""

from __future__ import annotations

import csv
import html
import io
import json
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TextIO

from ftlab.outputs import folded
from ftlab.results.labels import FILES, Labels, Side, cut_left, heading
from ftlab.results.metrics import Metric, Number, best, metrics_of, ratio
from ftlab.units import Unit, amount, fio, significant, time_unit

if TYPE_CHECKING:
    from rich.table import Table
    from rich.text import Text


# The columns to keep if there is no room for all of them, the most important first.
_PREFERRED = (
    "mean all",
    "mean read",
    "mean write",
    "hit ratio",
    "p99 all",
    "mean wait",
    "map reads",
    "WAF",
    "IOPS",
    "BW",
    "mean access",
    "map programs",
    "prioritized",
)
# The number of spaces between columns.
_GAP = 2
# The column that is followed by its ratio.
_WITH_RATIO = "mean all"
# The width of the table if none is given.
_WIDTH = 100
_UNBOUND = 10_000
# The maximum number of tenants with rows of their own; csv and json have all of them.
_MOST_TENANTS = 12
# A file's name is not cut to fewer characters than this.
_LEAST = 12


@dataclass(frozen=True)
class _Line:
    """A metric's values for all variants, as text."""

    metric: Metric
    unit: str
    values: list[str]
    ratios: list[str]
    best: set[int]

    @property
    def width(self) -> int:
        return max(len(value) for value in self.values)

    @property
    def has_ratios(self) -> bool:
        return any(self.ratios)

    @property
    def name(self) -> str:
        return self.metric.name + (f", {self.unit}" if self.unit else "")

    @property
    def full_name(self) -> str:
        """Returns the name that is shown where the heading of the metric's group is absent."""
        return self.metric.short + (f", {self.unit}" if self.unit else "")


@dataclass
class _Shown:
    """What the table shows; the variants are in the order of their groups."""

    keys: list[str]
    labels: list[list[str]]
    lines: list[_Line]
    ends: set[int]
    """Positions of the last variant of each group."""


def render(comparison: Side, width: int) -> str:
    """Returns the table as text without colours."""
    return render_for(comparison, io.StringIO(), width)


def render_for(comparison: Side, stream: TextIO, width: int | None = None) -> str:
    """Formats the table for ``stream``: if that is a terminal, in colour and as wide as the terminal;
    otherwise 100 columns wide.
    """
    from rich.console import Console

    if width is None and not stream.isatty() and "COLUMNS" not in os.environ:
        width = _WIDTH
    console = Console(file=stream, width=width, highlight=False)
    width = console.width
    labels = comparison.labels()
    shown = _shown(comparison, labels)
    table, left_out = _columns(shown, width), list[_Line]()
    if table is None:
        table, left_out = _rows(shown, width)
    # A line that exceeds the terminal is better than a number that is cut.
    console.width = _UNBOUND
    console.width = max(width, console.measure(table).maximum)
    with console.capture() as captured:
        for line in heading(comparison):
            console.print(folded(line, width), style="bold", soft_wrap=True)
        console.print(table)
        for line in _footer(comparison, labels, left_out):
            console.print(folded(line, width), style="dim", soft_wrap=True)
    return "".join(f"{line.rstrip()}\n" for line in captured.get().splitlines())


def render_as(comparison: Side, layout: str) -> str:
    """Returns all metrics with a row for each variant, in ``csv`` or ``json`` as measured, or in ``markdown``
    formatted for readers.
    """
    if layout == "markdown":
        return _markdown(comparison)
    rows = records(comparison)
    if layout == "json":
        return json.dumps(rows, indent=2) + "\n"
    text = io.StringIO()
    writer = csv.DictWriter(text, list(rows[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue()


def records(comparison: Side) -> list[dict[str, str | Number]]:
    """Returns the varied values and all metrics of each variant, as measured."""
    results = [variant.result.to_dict() for variant in comparison.variants]
    metrics = metrics_of(results)
    return [
        {**variant.set, **{metric.column: metric.get(result) for metric in metrics}}
        for variant, result in zip(comparison.variants, results, strict=True)
    ]


def _markdown(comparison: Side) -> str:
    header, rows = _texts_of(comparison, "**{}**".format)
    keys = len(comparison.vary)
    aligned = ["---"] * keys + ["---:"] * (len(header) - keys)
    lines = [[cell.replace("|", "\\|") for cell in row] for row in [header, aligned, *rows]]
    return "".join(f"| {' | '.join(row)} |\n" for row in lines)


def as_html(comparison: Side) -> str:
    """Returns all metrics as an HTML table, with a row for each variant and the best values in bold."""
    # Values are escaped before they are marked.
    header, rows = _texts_of(comparison, "<b>{}</b>".format, html.escape)
    head = "".join(f"<th>{html.escape(cell)}</th>" for cell in header)
    body = "".join("<tr>" + "".join(f"<td>{cell}</td>" for cell in row) + "</tr>" for row in rows)
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def _texts_of(
    comparison: Side, bold: Callable[[str], str], escape: Callable[[str], str] = str
) -> tuple[list[str], list[list[str]]]:
    """Returns the headings and, for each variant, its varied values and metrics as text."""
    shown = _shown(comparison, comparison.labels())
    header = list(shown.keys)
    for line in shown.lines:
        header += [line.full_name, *(["(x)"] if line.metric.short == _WITH_RATIO and line.has_ratios else [])]
    rows = []
    for position, label in enumerate(shown.labels):
        cells = [escape(value) for value in label]
        for line in shown.lines:
            value = escape(line.values[position].strip().removesuffix("*"))
            cells.append(bold(value) if position in line.best else value)
            if line.metric.short == _WITH_RATIO and line.has_ratios:
                cells.append(line.ratios[position])
        rows.append(cells)
    return header, rows


def _footer(comparison: Side, labels: Labels, left_out: list[_Line]) -> list[str]:
    """Returns lines that say what the marks mean, and what is not shown."""
    lines = []
    if labels.policies and len(comparison) > 1:
        first = labels.policy(labels.groups[0].members[0])
        among = f", of the same {' and '.join(labels.loads)}" if len(labels.groups) > 1 else ""
        lines.append(f"* best; (x) ratio to {first}{among}")
    elif len(comparison) > 1:
        lines.append(f"nothing is marked as best: variants differ only in {' and '.join(labels.loads)}")
    if left_out:
        names = ", ".join(line.metric.short for line in left_out)
        lines.append(f"no room for: {names}; a wider terminal or --table csv|markdown|json shows all")
    return lines


def _shown(comparison: Side, labels: Labels) -> _Shown:
    order = [position for group in labels.groups for position in group.members]
    places = {position: place for place, position in enumerate(order)}
    groups = [[places[position] for position in group.members] for group in labels.groups]
    results = [comparison.variants[position].result.to_dict() for position in order]
    metrics = metrics_of(results, _MOST_TENANTS)
    table = [(metric, [metric.get(result) for result in results]) for metric in metrics]
    units = {group: _unit(table, group, groups) for group in {metric.group for metric, _ in table}}
    lines = [
        _line(metric, values, units[metric.group] or _time_unit(values, groups), groups)
        for metric, values in table
        # A row whose values are all missing or 0 would say nothing, so it is left out.
        if any(value for value in values)
    ]
    return _Shown(
        labels.keys,
        [labels.shown[position] for position in order],
        lines,
        {group[-1] for group in groups},
    )


def _time_unit(values: Sequence[Number], groups: list[list[int]]) -> Unit:
    """Returns the unit that suits the group with the shortest times, so that no number is too small."""
    units = [time_unit([values[place] for place in group]) for group in groups]
    return min(units, key=lambda unit: unit.ns)


def _unit(table: list[tuple[Metric, list[Number]]], name: str, groups: list[list[int]]) -> Unit | None:
    """Returns the unit that the times under a heading share; None if each row has its own unit."""
    if name == "of which":
        return None
    values = [values for metric, values in table if metric.group == name and metric.kind == "time"]
    joined = [max((row[place] or 0 for row in values), default=0) for place in range(len(table[0][1]))]
    return _time_unit(joined, groups)


def _line(metric: Metric, values: list[Number], unit: Unit, groups: list[list[int]]) -> _Line:
    texts, name = _texts(metric, values, unit)
    marked: set[int] = set()
    ratios = [""] * len(values)
    compared = metric.better is not None and metric.kind != "share"
    for group in (group for group in groups if len(group) > 1):
        own = [values[place] for place in group]
        # Values that look the same count as equal.
        looks = {texts[group[position]] for position in best(metric, own)}
        same = {place for place in group if texts[place] in looks}
        marked |= same if len(same) < len(group) else set()
        for place in group if compared else ():
            share = ratio(values[place], own[0])
            ratios[place] = "" if share is None else f"({share:.2f})"
    stars = ["*" if place in marked else " " for place in range(len(values))]
    return _Line(metric, name, [text + star for text, star in zip(texts, stars, strict=True)], ratios, marked)


def _texts(metric: Metric, values: list[Number], unit: Unit) -> tuple[list[str], str]:
    def each(scale: float) -> list[str]:
        return [significant(None if value is None else value / scale) for value in values]

    match metric.kind:
        case "time":
            return each(unit.ns), unit.name
        case "share":
            return ["-" if value is None else f"{value * 100:.2f}" for value in values], "%"
        case "bandwidth":
            return each(1 << 20), "MiB/s"
        case "iops":
            return ["-" if value is None else fio(value) for value in values], ""
        case "factor":
            return ["-" if value is None else f"{value:.3f}" for value in values], ""
        case "amount":
            return ["-" if value is None else amount(value) for value in values], ""
        case "count":
            return ["-" if value is None else f"{value:,}" for value in values], ""


def _columns(shown: _Shown, width: int) -> Table | None:
    """Makes a table with variants as columns; ratios are next to the values if there is room, otherwise below
    them. Returns None if the table does not fit.
    """
    name_width = max([len(line.name) + 2 for line in shown.lines] + [len(key) for key in shown.keys])
    for beside in (True, False):
        cells = [
            [_cell(line, position, beside) for line in shown.lines] for position in range(len(shown.labels))
        ]
        widths = [
            max(len(part) for text in [*label, *column] for part in text.split("\n"))
            for label, column in zip(shown.labels, cells, strict=True)
        ]
        if name_width + sum(widths) + _GAP * len(widths) <= width:
            return _column_table(shown, cells)
    return None


def _cell(line: _Line, position: int, beside: bool) -> str:
    value, share = line.values[position], line.ratios[position]
    if beside:
        return f"{value}{share:>7}" if line.has_ratios else value
    # Only rows of times have ratios below their values, or the table would become too long.
    return f"{value}\n{share} " if share and line.metric.kind == "time" else value


def _new_table() -> Table:
    from rich import box
    from rich.table import Table

    return Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, _GAP - 1, 0, 0), show_edge=False)


def _column_table(shown: _Shown, cells: list[list[str]]) -> Table:
    from rich.text import Text

    table = _new_table()
    table.add_column(Text("\n".join(shown.keys), style="bold"), no_wrap=True)
    for label in shown.labels:
        table.add_column(Text("\n".join(label), style="bold"), justify="right", no_wrap=True)
    group = None
    for row, line in enumerate(shown.lines):
        if line.metric.group != group:
            group = line.metric.group
            table.add_row(Text(group, style="bold"))
        texts = [_styled(column[row], position in line.best) for position, column in enumerate(cells)]
        table.add_row(f"  {line.name}", *texts)
    return table


def _styled(text: str, is_best: bool) -> Text:
    from rich.text import Text

    return Text(text, style="bold green" if is_best else "")


def _rows(shown: _Shown, width: int) -> tuple[Table, list[_Line]]:
    """Makes a table with variants as rows, and as many metrics as fit; also returns the metrics left out."""
    from rich.text import Text

    labels = _narrowed(shown, width)
    chosen = _fitting(shown, labels, width)
    table = _new_table()
    for key in shown.keys:
        table.add_column(Text(key.replace(".", "\n"), style="bold"), no_wrap=True)
    for line in chosen:
        table.add_column(Text("\n".join(_heading(line)), style="bold"), justify="right", no_wrap=True)
        if _beside(line):
            table.add_column(Text("(x)", style="bold"), justify="right", no_wrap=True)
    for position, label in enumerate(labels):
        cells = [Text(value) for value in label]
        for line in chosen:
            cells.append(_styled(line.values[position], position in line.best))
            if _beside(line):
                cells.append(Text(line.ratios[position]))
        # A line separates groups, unless each group has only one row.
        table.add_row(*cells, end_section=position in shown.ends and len(shown.ends) < len(labels))
    return table, [line for line in shown.lines if line not in chosen]


def _beside(line: _Line) -> bool:
    return line.metric.short == _WITH_RATIO and line.has_ratios


def _heading(line: _Line) -> list[str]:
    parts = line.metric.short.split()
    return [*parts, line.unit] if line.unit else parts


def _needed(line: _Line) -> int:
    needed = max(line.width, *(len(part) for part in _heading(line))) + _GAP
    return needed + (max(len(text) for text in line.ratios) + _GAP if _beside(line) else 0)


def _key_widths(shown: _Shown, labels: Sequence[Sequence[str]]) -> int:
    """Returns the width of the columns that name a variant."""
    columns = ([*key.split("."), *(label[at] for label in labels)] for at, key in enumerate(shown.keys))
    return sum(max(map(len, column)) + _GAP for column in columns)


def _narrowed(shown: _Shown, width: int) -> list[list[str]]:
    """Returns the labels, with file names cut on the left until the first column of numbers fits."""
    labels = shown.labels
    by_name = {line.metric.short: line for line in shown.lines}
    first = next((by_name[name] for name in _PREFERRED if name in by_name), None)
    files = [at for at, key in enumerate(shown.keys) if key in FILES]
    room = width - (_needed(first) if first else 0)
    longest = max((len(label[at]) for label in labels for at in files), default=0)
    for length in range(longest, _LEAST - 1, -1):
        if _key_widths(shown, labels) <= room:
            break
        labels = [
            [cut_left(value, length) if at in files else value for at, value in enumerate(label)]
            for label in shown.labels
        ]
    return labels


def _fitting(shown: _Shown, labels: Sequence[Sequence[str]], width: int) -> list[_Line]:
    free = width - _key_widths(shown, labels)
    chosen: list[_Line] = []
    by_name = {line.metric.short: line for line in shown.lines}
    for name in _PREFERRED:
        line = by_name.get(name)
        if line is not None and (_needed(line) <= free or not chosen):
            free -= _needed(line)
            chosen.append(line)
    return [line for line in shown.lines if line in chosen]
