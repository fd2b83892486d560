"""The page of a reproduction: claims first, then every figure and table, published and measured.

It contains no date and no duration of the run: the same inputs give the same bytes.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from urllib.parse import quote

from ftlab import palette
from ftlab.html.page import policy, style
from ftlab.reproduce import claims as judging
from ftlab.reproduce.claims import Judged
from ftlab.reproduce.papers import Paper, Published
from ftlab.studies.cells import Study, bars, over_seeds
from ftlab.studies.declaration import RECORDED, Figure
from ftlab.units import change, significant

MOST_ROWS = 40
"""Tables with more rows than this are collapsed."""

STYLE = """
.repro table { border-collapse: collapse; margin: .5em 0 1em; font-size: .92em; display: table; width: auto; }
.repro td, .repro th { padding: .18em .6em; border-bottom: 1px solid var(--grid); white-space: normal; }
.repro td, .repro th { text-align: left; vertical-align: top; }
.repro td.n, .repro th.n { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap; }
.repro .wide { overflow-x: auto; }
.repro .holds, .repro .direction, .repro .fails, .repro .constructed { white-space: nowrap; }
.repro .holds { color: var(--good); } .repro .direction { color: var(--fair); }
.repro .fails { color: var(--bad); } .repro .claims td:nth-child(2) { min-width: 7em; }
.repro figure { margin: 1em 0; overflow-x: auto; } .repro figure svg { max-width: 100%; height: auto; }
.repro .reason { font-size: .92em; color: var(--soft); padding-left: 2em; }
.repro .note { max-width: 60em; } .repro section { margin-bottom: 2em; }
.repro dl { display: grid; grid-template-columns: max-content 1fr; gap: .1em 1em; font-size: .92em; }
.repro dt { font-weight: 600; } .repro dd { margin: 0; }
@media (max-width: 620px) {
  .repro figure svg { max-width: none !important; }
  /* A phone has room for the names of its rows alone; the claims below have the same numbers. */
  .repro figure.points { display: none; }
  .repro .stacked :is(tbody, tr, td) { display: block; }
  .repro .stacked tr:has(th) { display: none; }
  .repro .stacked tr { border-bottom: 1px solid var(--line); padding: .3em 0; }
  .repro .stacked td, .repro .stacked td.n { border: 0; text-align: left; padding: .05em 0; }
  .repro .stacked td { white-space: normal !important; }
  .repro .stacked td:empty { display: none; }
  .repro .stacked td[data-of]::before { content: attr(data-of) ": "; color: var(--soft); }
  .repro .reason { padding-left: 1em; }
}
"""
_CLASS = {
    judging.HOLDS: "holds",
    judging.SIGN: "holds",
    judging.DIRECTION: "direction",
    judging.FAILS: "fails",
    judging.CONSTRUCTED: "constructed",
}


@dataclass
class Part:
    """What the page says about one paper."""

    paper: Paper
    judged: Sequence[Judged]
    studies: Mapping[str, Study]
    pictures: Mapping[str, str]
    """The picture, as SVG, of each figure that has one."""
    left_out: Sequence[str] = field(default_factory=tuple)
    """Figures that were not requested."""
    claims_picture: str = ""
    """The picture of the claims, as SVG; empty if none of them states a number."""


def preface(
    parts: Sequence[Part], *, quick: bool, changed: Sequence[str] = (), runs: int = 0, shown: int = 0
) -> str:
    """Returns the page's body: verdicts, claims, figures.

    ``changed`` are keys that the user set in every run. ``shown`` of the ``runs`` follow the body, to choose
    from.
    """
    pieces = [f"<style>{STYLE}</style>", '<div class="repro themed">', _changes(changed)]
    pieces += [_mode(quick), _counted(runs, shown), _summary(parts)]
    for part in parts:
        pieces += [_paper(part), *(_figure(part, figure) for figure in _chosen(part))]
    return "\n".join([*pieces, "</div>"])


def _chosen(part: Part) -> list[Figure]:
    return [figure for figure in part.paper.figures if figure.id in part.studies]


def _changes(changed: Sequence[str]) -> str:
    if not changed:
        return ""
    named = ", ".join(f"<code>{_text(each)}</code>" for each in changed)
    return (
        f'<p class="note changed"><b>Changed in every run: {named}.</b> The published numbers are those'
        " of the papers' own settings.</p>"
    )


def _counted(runs: int, shown: int) -> str:
    if not runs:
        return ""
    below = f" The charts at the end show {shown:,} of them." if shown else ""
    return f'<p class="note">{runs:,} runs.{below}</p>'


def _mode(quick: bool) -> str:
    how = (
        "This is a quick run: workloads are shorter than the full ones, as stated next to each figure. "
        if quick
        else "This is a full run. "
    )
    return f'<p class="note">{how}{_RULES}</p>'


_RULES = """
The copies of the papers at hand hold no pictures: published are the numbers in their text and tables
alone; points of a figure that the text does not name are ftlab's own. A change <b>holds</b> if the sign is
the published one and the number within 2 percentage points or 25&nbsp;% of the published, whichever is
larger; it <b>holds in direction</b> if the sign alone agrees. Of a published change below 5&nbsp;% no more
is asked than the sign and less than 10&nbsp;% (<b>sign only</b>). An amount has no direction: it holds
within 25&nbsp;%, and in per cent within 5 points too. What holds <b>by construction</b> (a worked example,
arithmetic, the target of a fit) is not counted. In brackets, of a mean of changes: the least and the
greatest of them. Verdicts are computed, and so are the figures in the reasons for what does not hold; their
words are written by hand and dated.
""".strip()


def _summary(parts: Sequence[Part]) -> str:
    columns = judging.TOTALS
    head = "<tr><th>paper</th>" + "".join(f'<th class="n">{each}</th>' for each in columns)
    rows = [head + "<th>figures and tables</th></tr>"]
    for part in parts:
        cells = judging.totals(part.judged)
        links = ", ".join(
            f'<a href="#{_id(part, figure.id)}">{_text(label(figure))}</a>' for figure in _chosen(part)
        )
        rows.append(
            f'<tr><td><a href="#{_text(part.paper.name)}">{_text(part.paper.short)}</a></td>'
            + "".join(
                f'<td class="n" data-of="{each}">{cell}</td>'
                for each, cell in zip(columns, cells, strict=True)
            )
            + f"<td>{links}</td></tr>"
        )
    return "<h2>Verdicts</h2>" + _wide(f'<table id="verdicts" class="stacked">{"".join(rows)}</table>')


def label(figure: Figure) -> str:
    """Formats a figure's name for readers: Fig. 9; Table 1, recorded traces; Sequential."""
    name = re.sub(r"^(fig|table)(.*?)(-.*)?$", _name, figure.id)
    name = name if name != figure.id else name.capitalize()
    return name + (", recorded traces" if figure.kind == RECORDED else "")


def _name(match: re.Match[str]) -> str:
    kind = "Fig." if match[1] == "fig" else "Table"
    extra = (match[3] or "").removeprefix("-").removesuffix("recorded").rstrip("-")
    return f"{kind} {match[2]}" + (f" ({extra.replace('-', ' ')})" if extra else "")


def _paper(part: Part) -> str:
    paper = part.paper
    pieces = [f'<h2 id="{_text(paper.name)}">{_text(paper.short)}</h2>', f"<p>{_text(paper.citation)}</p>"]
    if paper.about:
        pieces.append(f'<p class="note">{_text(paper.about)}</p>')
    if part.left_out:
        pieces.append(f'<p class="note">Not asked for: {_text(", ".join(part.left_out))}.</p>')
    if paper.words:
        terms = "".join(f"<dt>{_text(name)}</dt><dd>{_text(what)}</dd>" for name, what in paper.words.items())
        pieces.append(f"<details open><summary>Abbreviations</summary><dl>{terms}</dl></details>")
    if part.claims_picture:
        name = f"{paper.short}: published and measured numbers of the claims"
        pieces.append(f'<figure class="points" tabindex="0">{_named(name, part.claims_picture)}</figure>')
    if part.judged:
        rows = [
            "<tr><th>claim</th><th>place</th><th>figure</th><th class='n'>published</th>"
            "<th class='n'>measured</th><th>verdict</th><th class='n'>recorded traces</th></tr>"
        ]
        previous = ""
        for each in part.judged:
            rows.append(_claim(part, each, previous))
            previous = each.reason or previous
        pieces.append(f'<table class="claims stacked">{"".join(rows)}</table>')
    if paper.not_claims:
        items = "".join(f"<li>{_text(each)}</li>" for each in paper.not_claims)
        heading = "What the paper says and nothing here measures"
        pieces.append(f"<details><summary>{heading}</summary><ul>{items}</ul></details>")
    return "\n".join(pieces)


def _claim(part: Part, each: Judged, previous: str) -> str:
    """Makes the row of a claim and, unless the reason is that of the row before (``previous``), a second row
    with the reason.
    """
    claim = each.claim
    figure = next(figure for figure in part.paper.figures if figure.id == claim.figure)
    made = claim.construction if each.verdict == judging.CONSTRUCTED else ""
    verdict = f"{each.verdict} ({made})" if made else each.verdict
    cells = [
        f"<td>{_text(claim.text)}</td><td>{_text(claim.place)}</td>",
        f'<td><a href="#{_id(part, figure.id)}">{_text(label(figure))}</a></td>',
        f'<td class="n" data-of="published">{_text(judging.published_text(claim))}</td>',
        f'<td class="n" data-of="measured">{_text(judging.measured_text(each))}</td>',
        f'<td class="{_CLASS[each.verdict]}" data-of="verdict">{_text(verdict)}</td>',
        f'<td class="n" data-of="recorded traces">{_text(each.recorded)}</td>',
    ]
    row = f'<tr id="{_id(part, f"claim-{claim.id}")}">{"".join(cells)}</tr>'
    if not each.reason or each.reason == previous:
        return row
    said = f"{_text(each.reason)} <small>({_text(each.reason_written)})</small>"
    return row + f'<tr><td class="reason" colspan="7">{said}</td></tr>'


def _figure(part: Part, figure: Figure) -> str:
    study = part.studies[figure.id]
    name = f"{part.paper.name}/{figure.id}"
    pieces = [
        f'<section id="{_id(part, figure.id)}">',
        f"<h3>{_text(label(figure))}: {_text(figure.title)}</h3>",
        f'<p class="note">{_text(figure.place)}. {_text(figure.about)}</p>',
    ]
    if study.absent:
        gone = f"Recorded traces that are not here, and are left out: {', '.join(study.absent)}."
        pieces.append(f'<p class="note absent">{_text(gone)} Name their directory with --traces.</p>')
    if figure.id in part.pictures:
        pieces.append(f'<figure tabindex="0">{_picture(figure, part.pictures[figure.id])}</figure>')
    pieces += [_table(study, number) for number, panel in enumerate(figure.panels) if panel.mark == "table"]
    pieces.append(_published(study, part.paper.numbers))
    if study.rows:
        files = ["csv", *(["svg", "png"] if figure.id in part.pictures else [])]
        links = ", ".join(
            f'<a href="{_text(quote(name))}.{kind}">{_text(figure.id)}.{kind}</a>' for kind in files
        )
        pieces.append(f'<p class="note">All measured values: {links}</p>')
    return "\n".join([*pieces, "</section>"])


def _table(study: Study, panel_number: int) -> str:
    """Makes the table of a panel, with a row for each x (and each label of the other axes) and a column for
    each value or series.
    """
    study = over_seeds(study)
    panel = study.figure.panels[panel_number]
    cells = bars(study, panel)
    columns = study.labels(panel.series) if panel.series and len(panel.values) == 1 else list(panel.values)
    titles = [study.figure.value(each).title for each in columns] if not panel.series else columns
    rest = [axis for axis in study.axes if axis != panel.series]
    lines: dict[tuple[str, ...], dict[str, str]] = {}
    for bar in cells:
        row = lines.setdefault(tuple(bar.labels[axis] for axis in rest), {})
        row[bar.labels[panel.series] if panel.series else bar.value] = significant(bar.number)
    head = "".join(f"<th>{_text(axis)}</th>" for axis in rest)
    head += "".join(f'<th class="n">{_text(title)}</th>' for title in titles)
    body = "".join(
        "<tr>"
        + "".join(f"<td>{_text(label)}</td>" for label in labels)
        + "".join(f'<td class="n">{row.get(each, "")}</td>' for each in columns)
        + "</tr>"
        for labels, row in lines.items()
    )
    heading = f"<p>{_text(panel.title)}</p>" if panel.title else ""
    return _folded(heading + _wide(f"<table><tr>{head}</tr>{body}</table>"), len(lines))


def _wide(table: str) -> str:
    """Makes a table scroll where the page is narrow."""
    return f'<div class="wide" tabindex="0">{table}</div>'


def _picture(figure: Figure, svg: str) -> str:
    """Applies the page's colours to a picture, and adds names for readers who cannot see it."""
    return _named(f"{label(figure)}: {figure.title}", svg)


def _named(name: str, svg: str) -> str:
    return palette.themed(svg).replace("<svg ", f'<svg role="img" aria-label="{_text(name)}" ', 1)


def _folded(table: str, rows: int) -> str:
    return f"<details><summary>{rows} rows</summary>{table}</details>" if rows > MOST_ROWS else table


def _published(study: Study, numbers: Iterable[Published]) -> str:
    """Returns numbers that the paper prints for cells of this figure, with what was measured there."""
    own = [each for each in numbers if each.figure == study.figure.id]
    table = {row.labels: row.values for row in study.rows}
    rows = []
    for each in own:
        labels = tuple(each.at.get(axis, "") for axis in study.axes)
        found = table.get(labels, {}).get(each.value)
        value = study.figure.value(each.value)
        off = change(found / each.number - 1, 1) if found is not None and each.number else ""
        cells = [f"<td>{_text(', '.join(filter(None, labels)))}</td><td>{_text(value.title)}</td>"]
        cells += [
            f'<td class="n">{_text(text)}</td>'
            for text in (significant(each.number), significant(found), off)
        ]
        rows.append(f"<tr>{''.join(cells)}<td>{_text(value.unit)}</td><td>{_text(each.place)}</td></tr>")
    if not rows:
        return ""
    head = "<tr><th>of</th><th>value</th><th class='n'>published</th><th class='n'>measured</th>"
    head += "<th class='n'>difference</th><th>unit</th><th>place</th></tr>"
    return _folded(_wide(f'<table class="published">{head}{"".join(rows)}</table>'), len(rows))


def _id(part: Part, name: str) -> str:
    return _text(f"{part.paper.name}-{name}")


def _text(value: str) -> str:
    return html.escape(value, quote=True)


def standalone(title: str, body: str) -> str:
    """Makes a document of its own from ``body``, in the report's style and the reader's colour scheme."""
    return (
        f'<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f'<meta http-equiv="Content-Security-Policy" content="{policy()}"><title>{_text(title)}</title>'
        f"<style>{style()}</style></head><body><main><h1>{_text(title)}</h1>\n"
        f'<div id="preface">{body}</div>\n</main></body></html>\n'
    )
