"""``ftlab presets``, ``components`` and ``schema``: what can be chosen, as the code itself lists it."""

from __future__ import annotations

import difflib
import json
import re
import shutil
import sys
import textwrap

import click

from ftlab import _core
from ftlab._core import UserError
from ftlab.cli import completing
from ftlab.outputs import write_stdout

_LEAST = 30
"""Columns that a description takes at least; on a narrower terminal its lines are longer than that."""


@click.command()
@click.argument("name", required=False)
def presets(name: str | None) -> None:
    """List the presets; with NAME, print that one as a file to start from."""
    if name is not None:
        for known, _, text in _core.presets():
            if known == name:
                write_stdout(text)
                return
        # The name is unknown: the core reports that, and suggests the nearest one.
        _core.resolve_text("presets", "", [(name, "preset", name)])
    width = max(len(known) for known, _, _ in _core.presets())
    write_stdout("".join(f"{known:{width}}  {doc}\n" for known, doc, _ in _core.presets()))


@click.command()
@click.argument("key", required=False, shell_complete=completing.layers)
@click.option("--json", "as_json", is_flag=True, help="As JSON.")
def components(key: str | None, as_json: bool) -> None:
    """List what can be chosen in each layer, or for one KEY.

    A mark says where a part comes from: paper, kernel (Linux), NVMe, or ftlab itself.
    """
    listed = json.loads(_core.components())
    if key is not None:
        if key not in listed:
            near = difflib.get_close_matches(key, listed, n=1)
            hint = f"; did you mean {near[0]}?" if near else ""
            raise UserError(f"{key}: no part is chosen by that key{hint}; `ftlab components` lists all")
        listed = {key: listed[key]}
    if as_json:
        write_stdout(json.dumps(listed, indent=2) + "\n")
        return
    room = shutil.get_terminal_size().columns if sys.stdout.isatty() else None
    write_stdout(components_text(listed, room))


@click.command()
def schema() -> None:
    """Print the JSON Schema of a configuration file, for editors."""
    write_stdout(json.dumps(json.loads(_core.schema()), indent=2) + "\n")


def _mark(doc: str) -> str:
    """Returns where a part comes from, as its line of documentation says; empty if it names no source."""
    if "(Linux" in doc:
        return "kernel"
    if "(NVMe" in doc:
        return "NVMe"
    if "(ftlab)" in doc:
        return "ftlab"
    return "paper" if re.search(r"\b(19|20)[0-9]{2}\)", doc) else ""


def components_text(listed: dict[str, list[dict[str, str]]], room: int | None) -> str:
    """Formats the parts, a line each for programs such as grep; on a terminal with ``room`` columns the
    descriptions wrap.
    """
    lines = []
    for key, parts in listed.items():
        lines.append(key)
        width = max(len(part["name"]) for part in parts)
        marks = [_mark(part["doc"]) for part in parts]
        wide = max(map(len, marks))
        gap = "  " if wide else ""
        for part, mark in zip(parts, marks, strict=True):
            head = f"    {part['name']:{width}}  {mark:{wide}}{gap}"
            left = len(part["doc"]) if room is None else room - len(head)
            wrapped = textwrap.wrap(part["doc"], max(left, _LEAST), break_long_words=False)
            lines.append(head + ("\n" + " " * len(head)).join(wrapped))
    return "\n".join(lines) + "\n"
