"""The picture of a paper's claims: each published number with the measured one next to it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ftlab import palette
from ftlab.reproduce import claims
from ftlab.reproduce.claims import Judged
from ftlab.studies.figures import styled

if TYPE_CHECKING:
    import altair as alt

LONGEST = 64
"""The maximum number of characters of a claim's text in the picture."""
WIDTH = 420
"""The width of a panel, in pixels."""
ROW = 17
"""The height of a claim's row, in pixels."""

_NEUTRAL = palette.NEUTRAL["light"]
_COLOURS = {
    claims.HOLDS: _NEUTRAL["good"],
    claims.SIGN: _NEUTRAL["good"],
    claims.DIRECTION: _NEUTRAL["fair"],
    claims.FAILS: _NEUTRAL["bad"],
}
"""The colour of each verdict, as on the page."""


def svg(judged: Sequence[Judged]) -> str:
    """Returns the claims that state a number as SVG, a panel for each unit; empty if there are none.

    Claims that hold by construction are left out.
    """
    import vl_convert

    units: dict[str, list[dict[str, Any]]] = {}
    for each in judged:
        if each.claim.published is not None and each.measured is not None and each.verdict in _COLOURS:
            name = f"{each.claim.unit}, change" if each.claim.kind == "change" else each.claim.unit
            units.setdefault(name, []).append(_row(each))
    if not units:
        return ""
    panels = [_panel(unit, rows) for unit, rows in units.items()]
    return vl_convert.vegalite_to_svg(styled(panels))


def _row(each: Judged) -> dict[str, Any]:
    text = each.claim.text
    short = text if len(text) <= LONGEST else text[: LONGEST - 1].rstrip() + "\u2026"
    return {
        "text": short,
        "published": each.claim.published,
        "measured": each.measured,
        "verdict": each.verdict,
    }


def _panel(unit: str, rows: list[dict[str, Any]]) -> Any:
    import altair as alt

    # Two claims may have the same words, so their positions make the rows.
    rows = [{**row, "row": number} for number, row in enumerate(rows)]
    labels = json.dumps([row["text"] for row in rows])
    axis = alt.Axis(
        title=None, labelLimit=0, ticks=False, domain=False, labelExpr=f"{labels}[toNumber(datum.value)]"
    )
    y = alt.Y("row:O", sort=None, axis=axis)
    title = f"published (hollow) and measured (filled){', ' + unit if unit else ''}"
    base = alt.Chart(alt.InlineData(values=rows)).encode(y=y)
    verdicts = [verdict for verdict in _COLOURS if any(row["verdict"] == verdict for row in rows)]
    colours: alt.Color = alt.Color(
        "verdict:N",
        scale=alt.Scale(domain=verdicts, range=[_COLOURS[verdict] for verdict in verdicts]),
        legend=alt.Legend(title=None, orient="top", direction="horizontal", symbolType="circle"),
    )
    between = base.mark_rule(color=_NEUTRAL["line"], strokeWidth=2).encode(
        x=alt.X("published:Q", title=title), x2="measured:Q"
    )
    hollow = base.mark_point(size=46, color=_NEUTRAL["text"], fill=_NEUTRAL["panel"]).encode(x="published:Q")
    filled = base.mark_point(size=46, filled=True, opacity=1).encode(x="measured:Q", color=colours)
    return alt.layer(between, hollow, filled).properties(width=WIDTH, height=max(ROW * len(rows), 40))
