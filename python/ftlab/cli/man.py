"""Manual pages, made from the commands: ``python -m ftlab.cli.man DIR`` writes a page for each."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import click

from ftlab._core import __version__
from ftlab.cli import COMMANDS, cli

_VERBATIM = "\b"


def pages() -> dict[str, str]:
    """Returns the text of each page, in the macros of man(7), by file name."""
    root = click.Context(cli, info_name="ftlab")
    return {f"{name.replace(' ', '-')}.1": page for name, page in _pages(root)}


def _pages(context: click.Context) -> Iterator[tuple[str, str]]:
    command, name = context.command, context.command_path
    within = []
    if isinstance(command, click.Group):
        for each in command.list_commands(context):
            found = command.get_command(context, each)
            assert found is not None, "the command is listed"
            within.append(click.Context(found, info_name=each, parent=context))
    yield name, _page(context, name, within)
    for inner in within:
        yield from _pages(inner)


def _page(context: click.Context, name: str, within: list[click.Context]) -> str:
    title = name.replace(" ", "-")
    command = context.command
    known = COMMANDS.get(name.removeprefix("ftlab "))
    short = known[1] if known else command.get_short_help_str(200)
    lines = [
        f'.TH {title.upper()} 1 "" "ftlab {__version__}" "ftlab"',
        ".SH NAME",
        f"{_text(title)} \\- {_text(short.rstrip('.'))}",
        ".SH SYNOPSIS",
        f".B {_text(name)}",
        _text(" ".join(command.collect_usage_pieces(context))),
        ".SH DESCRIPTION",
        *_paragraphs(command.help or ""),
    ]
    options = [each for each in command.get_params(context) if isinstance(each, click.Option)]
    records = [record for each in options if (record := each.get_help_record(context))]
    if records:
        lines.append(".SH OPTIONS")
        for option, text in records:
            lines += [".TP", f".B {_text(option)}", _text(" ".join(text.split()))]
    if within:
        lines.append(".SH COMMANDS")
        for inner in within:
            lines += [".TP", f".B {_text(inner.command_path)}", _text(inner.command.get_short_help_str(200))]
    lines += [
        ".SH EXIT STATUS",
        "0 done, 2 an error of the user's, 1 a bug in ftlab, 130 interrupted.",
    ]
    return "\n".join(lines) + "\n"


def _paragraphs(text: str) -> Iterator[str]:
    """Formats a command's help: a paragraph that begins with a backspace keeps its lines, as in click."""
    for number, paragraph in enumerate(text.strip().split("\n\n")):
        if number:
            yield ".PP"
        lines = [line.strip(" ") for line in paragraph.split("\n")]
        if _VERBATIM in lines:
            yield ".nf"
            yield from (_text(line) for line in paragraph.split("\n") if _VERBATIM not in line)
            yield ".fi"
        else:
            yield _text(" ".join(lines))


def _text(text: str) -> str:
    """Escapes plain text for roff: backslashes, typed hyphens, lines that look like a macro call."""
    escaped = text.replace("\\", "\\e").replace("-", "\\-").replace("\u2026", "...")
    return f"\\&{escaped}" if escaped[:1] in (".", "'") else escaped


def main(arguments: list[str]) -> None:
    """Writes the pages into a directory."""
    if len(arguments) != 1:
        sys.exit("usage: python -m ftlab.cli.man DIR")
    folder = Path(arguments[0])
    folder.mkdir(parents=True, exist_ok=True)
    for name, page in pages().items():
        (folder / name).write_text(page, encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
