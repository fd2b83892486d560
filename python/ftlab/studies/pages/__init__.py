"""Pages of studies and searches: one HTML file each, drawn by its own script; nothing is fetched.

`study.js` draws a sweep and `tuning.js` a search, both with the functions of `draw.js` and `rows.js`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

from ftlab import palette
from ftlab._core import __version__
from ftlab.html.page import alone, policy, script_json


@dataclass(frozen=True)
class Page:
    """The content of a page besides its data."""

    title: str
    script: str
    """The script, in this folder, that draws the sections."""
    said: str
    """A line of text under the title."""
    sections: Sequence[tuple[str, str, str]]
    """The id, the heading and the note of each section."""
    choices: Sequence[tuple[str, str]]
    """The id and the name of each drop-down list; the script fills the lists."""
    command: str = ""
    lines: Sequence[str] = ()
    """Further lines of text under the title."""
    picture: str = ""
    """A picture as SVG, inserted as it is."""
    report: str = ""
    """The name of a page in the same folder that shows more of the runs; empty if there is none."""


def render(page: Page, data: dict[str, Any]) -> str:
    """Returns the whole file; everything but the picture is escaped here."""
    from jinja2 import Environment, StrictUndefined
    from markupsafe import Markup

    environment = Environment(
        autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    script = alone('"use strict";\n' + _part("draw.js") + _part("rows.js") + _part(page.script))
    return environment.from_string(_part("page.html")).render(
        title=page.title,
        said=page.said,
        version=__version__,
        command=page.command,
        lines=page.lines,
        sections=page.sections,
        choices=page.choices,
        report=page.report,
        picture=Markup(page.picture),
        # The picture uses the palette's variables, as those of other pages do.
        style=Markup(palette.css() + _colours() + _part("page.css")),
        # The policy is marked as safe: an escaped quote would become part of it.
        policy=Markup(policy(script)),
        script=Markup(script),
        data=Markup(script_json({**data, "colours": len(palette.COLOURS["light"])})),
    )


def _colours() -> str:
    """Returns the palette's colours as classes, `c0` and so on, in both themes."""
    rules = []
    for place, (light, dark) in enumerate(
        zip(palette.COLOURS["light"], palette.COLOURS["dark"], strict=True)
    ):
        rules.append(f".c{place} {{ --c: {light}; }} [data-theme=dark] .c{place} {{ --c: {dark}; }}\n")
    return "".join(rules)


@cache
def _part(name: str) -> str:
    return (files("ftlab.studies.pages") / name).read_text(encoding="utf-8")
