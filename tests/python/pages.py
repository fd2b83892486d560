"""The pages of README.md and docs/: their blocks, the commands in them, the files that they show."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
PAGES = [ROOT / "README.md", ROOT / "ARCHITECTURE.md", ROOT / "DEVIATIONS.md", ROOT / "traces" / "README.md"]
PAGES += [ROOT / f"{name}.md" for name in ("CHANGELOG", "CONTRIBUTING", "SECURITY")]
PAGES += sorted(DOCS.glob("**/*.md"))
TRACE = "traces/phone-mix.csv.gz"


def named(path: Path) -> str:
    return str(path.relative_to(ROOT))


def blocks(page: Path, language: str) -> list[str]:
    """Returns a page's fenced blocks in a language."""
    return re.findall(rf"^```{language}\n(.*?)^```", page.read_text(), re.MULTILINE | re.DOTALL)


def files(page: Path) -> dict[str, str]:
    """Returns the files that a page shows: TOML that begins with the file's name, and traces that the page
    says to save under a name.
    """
    found = (re.match(r"# (\S+\.toml)\n", block) for block in blocks(page, "toml"))
    saved = re.findall(
        r"Save this as\s`(\S+\.csv)`:\n\n```text\n(.*?)^```", page.read_text(), re.MULTILINE | re.DOTALL
    )
    return {match[1]: match.string for match in found if match} | dict(saved)


def indented(text: str) -> list[list[str]]:
    """Returns ftlab's commands in indented blocks, without comments, and in `console` blocks."""
    text = re.sub(r"\\\n\s*", "", text)
    found = re.findall(r"^(?: {4,}|\$ )(ftlab [a-z].*)$", text, re.MULTILINE)
    split = [shlex.split(line, comments=True) for line in found]
    return [words[: words.index(">")] if ">" in words else words for words in split]
