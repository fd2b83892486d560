"""The page around the data: a template, style and script of the package, and the charting library."""

from __future__ import annotations

import json
from functools import cache
from importlib.resources import files
from typing import Any

from ftlab._core import __version__

# Vega's own function, made reachable for the script; nothing else of the library becomes a global.
_LIBRARY = "window.vegaEmbed=vegaEmbed;"


def page(*, title: str, data: dict[str, Any], preface: str, command: str) -> str:
    """The whole file. ``preface`` is HTML; everything else is escaped here."""
    from jinja2 import Environment, StrictUndefined
    from markupsafe import Markup

    environment = Environment(
        autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    template = environment.from_string(_part("report.html"))
    return template.render(
        title=title,
        command=command,
        version=__version__,
        preface=Markup(preface),
        style=Markup(_part("report.css")),
        library=Markup(_library()),
        script=Markup(_part("charts.js") + _part("report.js")),
        data=Markup(_script_json(data)),
        runs=sum(len(study["runs"]) for study in data["studies"]),
        studies=len(data["studies"]),
        labels=[dimension["name"] for dimension in data["studies"][0]["dimensions"]],
    )


def _part(name: str) -> str:
    return (files("ftlab.html") / name).read_text(encoding="utf-8")


@cache
def _library() -> str:
    import vl_convert

    # It must not end the element that it stands in.
    return vl_convert.javascript_bundle(_LIBRARY).replace("</script", "<\\/script")


def _script_json(data: dict[str, Any]) -> str:
    """JSON that no HTML parser takes for the end of its element, nor for a comment."""
    text = json.dumps(data, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    for character in "<>&\u2028\u2029":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return text
