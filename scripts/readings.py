"""DEVIATIONS.md: what modules say after ``Interpretation:`` in their heads, and the pages of docs/readings.

Usage: readings.py [--write]; without it the page goes to standard output.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "DEVIATIONS.md"
HEAD = """\
# Readings and deviations

Where a paper or the specification is silent or open, what ftlab does and why. A module's own readings stand
in its head, and `make docs` collects them here; what concerns several has a page for each chapter.

## Chapters

"""


def chapters() -> Iterator[str]:
    """Yields a line for each page of docs/readings."""
    for page in sorted((ROOT / "docs" / "readings").glob("*.md")):
        title = page.read_text().partition("\n")[0].removeprefix("# Readings: ")
        yield f"- [{title}](docs/readings/{page.name})\n"


def reading(source: str) -> str | None:
    """Returns what the head of a module says from ``Interpretation:`` on; None if it says nothing."""
    head = re.match(r"(?://!.*\n)+", source)
    lines = [line[3:].removeprefix(" ") for line in head[0].splitlines()] if head else []
    _, found, text = "\n".join(lines).partition("Interpretation:")
    if not found:
        return None
    # Links between items of the source are names here; anything else in brackets stays.
    return re.sub(r"\[(`[^`]+`)\](?!\()(?:\[[^]]*\])?", r"\1", text.strip())


def modules() -> Iterator[str]:
    """Yields a section for each module that has readings."""
    for path in sorted((ROOT / "crates").glob("*/src/**/*.rs")):
        text = reading(path.read_text())
        if text:
            yield f"\n### `{path.relative_to(ROOT / 'crates')}`\n\n{text[0].upper()}{text[1:]}\n"


def whole() -> str:
    """Returns the page."""
    return HEAD + "".join(chapters()) + "\n## Modules\n" + "".join(modules())


if __name__ == "__main__":
    if sys.argv[1:] == ["--write"]:
        PAGE.write_text(whole())
    else:
        sys.stdout.write(whole())
