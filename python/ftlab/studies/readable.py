"""Values of a study as readers see them: in the units of `ftlab run`, in tables as wide as the terminal."""

from __future__ import annotations

import io
import re
import shutil
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from ftlab.configs import keys
from ftlab.units import Unit, amount, duration, quantity, size, time_unit

if TYPE_CHECKING:
    from rich.table import Table

_WIDTH = 100
"""The width of a table without a terminal."""
_UNBOUND = 10_000
_BANDWIDTHS = (Unit("B/s", 1), Unit("KiB/s", 1 << 10), Unit("MiB/s", 1 << 20), Unit("GiB/s", 1 << 30))


def unit_of(name: str) -> str:
    """Returns the unit of a field of a result or of a key: "ns", "B", "B/s", or empty for any other."""
    if name in keys():
        schema = keys()[name]
        patterns = "".join(each.get("pattern", "") for each in (schema, *schema.get("anyOf", ())))
        kinds = {"KiB/s": "B/s", "|KiB|": "B", "|us|": "ns"}
        return next((unit for part, unit in kinds.items() if part in patterns), "")
    if not re.fullmatch(r"[\w.-]+", name):
        return ""
    if name.endswith("_ns") or "_ns." in name:
        return "ns"
    return "B/s" if name.endswith("_bytes_per_s") else "B" if name.endswith("_bytes") else ""


def scale(values: Iterable[float | None], unit: str) -> Unit:
    """Returns the unit in which a column of values in ``unit`` is shown, with its length in ``unit``."""
    if unit == "ns":
        return time_unit(values)
    if unit == "B/s":
        largest = max((abs(value) for value in values if value is not None), default=0)
        return next((each for each in reversed(_BANDWIDTHS) if largest >= each.ns), _BANDWIDTHS[0])
    return Unit(unit, 1)


def heading(name: str, unit: str = "") -> str:
    """Returns a column's heading, on two lines if the name is long: ``latency.all`` above ``p99, ms``."""
    if found := re.fullmatch(r"(.+)\.percentile_ns\.([0-9]+)(?:\.([0-9]*?)0*)?", name):
        above, leaf = found[1], f"p{found[2]}{'.' if found[3] else ''}{found[3] or ''}"
    else:
        above, _, leaf = name.rpartition(".")
        leaf = leaf.removesuffix("_bytes_per_s").removesuffix("_ns") if unit else leaf
    leaf = f"{leaf}, {unit}" if unit else leaf
    return f"{above}\n{leaf}" if above else leaf


def shown(value: float, unit: str) -> str:
    """Formats one value in the unit that suits it: 99.32 ms, 2.3 KiB."""
    return duration(value) if unit == "ns" else size(value) if unit == "B" else amount(value)


def setting(text: str) -> str:
    """Formats a quantity of a configuration with many digits for readers; any other text stays as it is."""
    found = re.fullmatch(r"[0-9.]{4,}(B|ns)", text)
    value = quantity(text)
    return shown(value, found[1]) if found and value is not None else text


def room() -> int:
    """Returns the number of columns of the terminal, or of $COLUMNS; 100 where there is neither."""
    return shutil.get_terminal_size((_WIDTH, 24)).columns


def table(columns: Sequence[tuple[str, bool]]) -> Table:
    """Makes a table without frame; each column has its heading and whether it holds numbers."""
    from rich import box
    from rich.table import Table

    made = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0), show_edge=False)
    for name, numeric in columns:
        made.add_column(name, justify="right" if numeric else "left", no_wrap=True)
    return made


def text_of(made: Table, width: int) -> str:
    """Returns a table as text; a line that exceeds ``width`` is better than a number that is cut."""
    from rich.console import Console

    console = Console(file=io.StringIO(), width=_UNBOUND, highlight=False)
    console.width = max(width, console.measure(made).maximum)
    with console.capture() as captured:
        console.print(made)
    return "".join(f"{line.rstrip()}\n" for line in captured.get().splitlines())


def widest(cells: Iterable[str]) -> int:
    """Returns the length of the longest line in these cells."""
    return max((len(line) for cell in cells for line in cell.split("\n")), default=0)
