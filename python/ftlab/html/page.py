"""The page around the data: the package's template, style sheet and script, and the charting library."""

from __future__ import annotations

import base64
import gzip
import hashlib
import json
from collections.abc import Sequence
from functools import cache
from importlib.resources import files
from typing import Any

from ftlab import palette
from ftlab._core import __version__

_SCRIPTS = ("look.js", "metrics.js", "charts.js", "tenants.js", "picture.js", "address.js", "report.js")


def policy(*scripts: str) -> str:
    """Returns the content security policy of a page: nothing is fetched, and no scripts but these run."""
    hashes = [base64.b64encode(hashlib.sha256(script.encode()).digest()).decode() for script in scripts]
    allowed = " ".join(f"'sha256-{each}'" for each in hashes) or "'none'"
    return (
        f"default-src 'none'; script-src {allowed}; style-src 'unsafe-inline'; img-src data: blob:;"
        " base-uri 'none'; form-action 'none'"
    )


def style() -> str:
    """Returns the style sheet of every page: the palette's colours, and the rules that use them."""
    return palette.css() + _part("report.css")


def page(
    *,
    title: str,
    data: dict[str, Any],
    spent: Sequence[str],
    notes: Sequence[str],
    preface: str,
    command: str,
) -> str:
    """Returns the whole file. ``preface`` is HTML; everything else is escaped here.

    ``spent`` are the lines that say where the time of a single run went.
    """
    from jinja2 import Environment, StrictUndefined
    from markupsafe import Markup

    environment = Environment(
        autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    template = environment.from_string(_part("report.html"))
    library, script = _library(), alone('"use strict";\n' + "".join(map(_part, _SCRIPTS)))
    return template.render(
        title=title,
        command=command,
        notes=notes,
        spent=spent,
        version=__version__,
        preface=Markup(preface),
        style=Markup(style()),
        # The policy is marked as safe: an escaped quote would become part of it.
        policy=Markup(policy(library, script)),
        library=Markup(library),
        script=Markup(script),
        data=Markup(script_json(data)),
        licences=_part("vega.licences.txt"),
        runs=sum(len(study["runs"]) for study in data["studies"]),
        studies=len(data["studies"]),
        labels=[dimension["name"] for dimension in data["studies"][0]["dimensions"]],
    )


def _part(name: str) -> str:
    return (files("ftlab.html") / name).read_text(encoding="utf-8")


def bundle() -> str:
    """Returns Vega as one script, as vl-convert bundles it; only what the report calls becomes a global."""
    import vl_convert

    script: str = vl_convert.javascript_bundle("window.vegaEmbed=vegaEmbed;")
    return script


@cache
def _library() -> str:
    """Returns Vega: the copy that the build has left in this folder (`scripts/vega.py`), or else a new
    bundle.
    """
    held = files("ftlab.html") / "vega.js.gz"
    script = gzip.decompress(held.read_bytes()).decode() if held.is_file() else bundle()
    # The script must not close the element that contains it.
    return alone(script.replace("</script", "<\\/script"))


def alone(script: str) -> str:
    """Wraps a script so that its names are not globals."""
    return f"\n(() => {{\n{script}\n}})();\n"


def script_json(data: dict[str, Any]) -> str:
    """Writes JSON in which no HTML parser finds a comment, or the end of the element that holds the JSON."""
    text = json.dumps(data, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    for character in "<>&\u2028\u2029":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return text
