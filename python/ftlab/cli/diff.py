"""``ftlab diff``."""

from __future__ import annotations

import json
from typing import Any

import click

from ftlab._core import UserError
from ftlab.cli import options
from ftlab.outputs import check_distinct, tell, write_stdout


@click.command()
@click.argument("first", metavar="A.json")
@click.argument("second", metavar="B.json")
@click.option("--all", "everything", is_flag=True, help="All percentiles, not only the usual ones.")
@options.json_option
def diff(first: str, second: str, everything: bool, json_path: str | None) -> None:
    """Say what differs between two results, settings first.

    A.json and B.json are files that run --json or compare --json wrote; of comparisons, variants of the same
    label are compared. The last column is B over A. What the engine took is left out. Exit status 0, whether
    or not there are differences.
    """
    from ftlab.results import differences

    output = options.json_output(json_path)
    if output:
        check_distinct([output], [first, second])
    results = [differences.read(path) for path in (first, second)]
    found = differences.between(*results)
    if not found:
        raise UserError(f"{first} and {second} have no variant in common")
    for path, own in ((first, results[0]), (second, results[1])):
        both = {each.label for each in found}
        if alone := [label for label in own if label not in both and both != {""}]:
            tell(f"note: only in {path}: {'; '.join(alone)}")
    text = json.dumps([_as_json(each) for each in found], indent=2) + "\n"
    if output:
        output.write(text.encode())
    names = (first, second)
    write_stdout(text if json_path == "-" else differences.render(names, found, everything=everything))


def _as_json(found: Any) -> dict[str, Any]:
    return {
        "variant": found.label or None,
        "settings": {each.name: list(each.values) for each in found.settings},
        "results": {each.name: list(each.values) for each in found.results},
        "equal": found.equal,
    }
