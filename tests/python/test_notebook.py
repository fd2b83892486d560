"""Checks that the example notebook does what its text says.

Its cells are run here as Jupyter runs them, one after the other in one namespace; Jupyter itself would need
some thirty packages for that.
"""

from __future__ import annotations

import ast
import json
from pathlib import Path
from typing import Any

NOTEBOOK = Path(__file__).resolve().parents[2] / "examples" / "garbage-collection.ipynb"


def run(cells: list[str]) -> tuple[dict[str, Any], list[Any]]:
    """Returns the remaining names, and what each cell shows: its last line, if that is an expression."""
    names: dict[str, Any] = {}
    shown = []
    for number, source in enumerate(cells):
        tree = ast.parse(source)
        last = tree.body.pop() if isinstance(tree.body[-1], ast.Expr) else None
        exec(compile(tree, f"cell {number}", "exec"), names)
        if isinstance(last, ast.Expr):
            shown.append(eval(compile(ast.Expression(last.value), f"cell {number}", "eval"), names))
    return names, shown


def test_a_garbage_collection_is_stepped_through_and_drawn() -> None:
    book = json.loads(NOTEBOOK.read_text())
    assert book["nbformat"] == 4
    cells = [cell for cell in book["cells"] if cell["cell_type"] == "code"]
    assert all(not cell["outputs"] and cell["execution_count"] is None for cell in cells), "without outputs"
    names, shown = run(["".join(cell["source"]) for cell in cells])
    charts = [each.to_dict() for each in shown if hasattr(each, "to_dict") and hasattr(each, "mark_bar")]
    assert [chart["mark"]["type"] for chart in charts] == ["bar", "rect", "line"]
    # The victim had the fewest valid pages of all full blocks, and these pages are now elsewhere.
    (victim,) = names["victims"]
    before, after = names["before"].ravel(), names["after"].ravel()
    assert 0 < before[victim] < 32
    assert after[victim] == 0
    assert before.sum() == after.sum() == names["pages"]
    assert names["took_us"] > before[victim] * (35 + 350), "the write waited for the copies"
    assert repr(names["device"]) == "<ftlab.Simulation map-plus: map+ over page, closed>"
