"""The documentation's site: `make site` builds it into out/site."""

from __future__ import annotations

import re
from typing import Any

import ftlab

project = "ftlab"
author = "the ftlab developers"
project_copyright = ""
release = version = ftlab.__version__

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "sphinx_click",
    "sphinx_copybutton",
]

# Pages are written for plain Markdown readers first, with only as much other syntax as the site needs.
myst_heading_anchors = 3
# A block without a language is output or a file, not Python.
highlight_language = "text"
# Names in single backticks, in docstrings and in the help of commands, are shown as code.
default_role = "code"

python_maximum_signature_line_length = 88
autodoc_member_order = "bysource"
autodoc_typehints = "signature"
# Names in signatures that belong to other packages and have no page here.
nitpick_ignore_regex = [
    ("py:class", r"(np|alt|numpy|pl|polars|os|collections|pathlib|typing|click)\..*"),
    ("py:class", r"(Any|ArrayLike|ConfigLike|Scalar|Frame|Mapping|Iterable|Progress|Preconditioning)"),
    ("py:class", "Completion"),
    ("py:class", r"(ftlab\.results\.result\.)?(Digest|Column|Timeline)"),
    ("py:class", r"(ftlab\.results\.labels\.)?Shown"),
    ("py:class", r"(ftlab\.fitting\.fit\.)?Fit|Name|Differences|LiveServer|Tuned"),
    ("py:class", r"ftlab\._core\..*"),
]

html_theme = "furo"
html_title = "ftlab"
html_show_copyright = False
html_show_sphinx = False
html_copy_source = False
# The search would fetch summaries, which browsers refuse for pages opened from a disk.
html_show_search_summary = False
html_static_path = ["static"]
html_css_files = ["site.css"]
copybutton_prompt_text = "$ "
copybutton_only_copy_prompt_lines = True

_MOVED = {
    "../DEVIATIONS.md": "deviations.md",
    "../ARCHITECTURE.md": "architecture.md",
}
"""The pages that include files from above docs/: on the site, links to such a file lead to its page."""


def _redirect(_app: Any, docname: str, source: list[str]) -> None:
    up = "../" if "/" in docname else ""
    for path, page in _MOVED.items():
        source[0] = re.sub(rf"\]\({re.escape(up + path)}(?=[)#])", f"]({up}{page}", source[0])


def _literal(_app: Any, _context: Any, lines: list[str]) -> None:
    """Marks options and commands in the help of commands as code; otherwise `--` would become a dash."""
    for number, line in enumerate(lines):
        if line.startswith("| ftlab"):
            lines[number] = f"| ``{line[2:]}``"
        elif not line.lstrip().startswith((".. ", ":")):
            lines[number] = re.sub(r"(?<![\w`-])--[a-z][a-z-]*", r"``\g<0>``", line)


def _accessible(_app: Any, _page: str, _template: str, context: dict[str, Any], _doctree: Any) -> None:
    """Adds what readers without a mouse or a screen need, and what Sphinx and the theme leave out."""
    if body := context.get("body"):
        # Elements that scroll can take the focus, so that arrow keys scroll them.
        body = re.sub(r"<pre(?= id| class|>)", '<pre tabindex="0"', body)
        body = body.replace('<div class="table-wrapper', '<div tabindex="0" class="table-wrapper')
        # The lines of a signature must not be marked up as a list of terms.
        context["body"] = re.sub(r"<dl>\n((?:<dd>.*</dd>\n)+)</dl>", _lines, body)
    if tree := context.get("furo_navigation_tree"):
        context["furo_navigation_tree"] = tree.replace('role="heading"', 'role="heading" aria-level="2"')


def _lines(found: re.Match[str]) -> str:
    inner = found[1].replace("<dd>", '<span class="sig-line">').replace("</dd>", "</span>")
    return f'<span class="sig-lines">{inner}</span>'


def setup(app: Any) -> None:
    """Connects the functions above to Sphinx, which calls this function."""
    # This handler runs after the theme's.
    app.connect("html-page-context", _accessible, priority=900)
    app.connect("source-read", _redirect)
    for part in ("description", "options"):
        app.connect(f"sphinx-click-process-{part}", _literal)
