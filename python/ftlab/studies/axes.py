"""Axes, which say what a study varies; all studies declare them in the same form."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from decimal import Decimal, InvalidOperation
from pathlib import Path

from ftlab.configs import to_text
from ftlab.studies.toml import Table

MOST_LABELS = 1_000_000
"""The maximum number of labels of an axis; more are a mistake in its range."""


@dataclass(frozen=True)
class Choice:
    """One label of an axis, with its meaning."""

    label: str
    config: str | None = None
    """The configuration file; None if it is the figure's own."""
    set: Mapping[str, str] = field(default_factory=dict)
    traces: tuple[str, ...] = ()
    """Names of recorded traces (`papers/traces.toml`), replayed one after another."""


@dataclass(frozen=True)
class Axis:
    """A dimension of a study, in the order in which it is drawn."""

    name: str
    choices: tuple[Choice, ...]
    title: str

    @property
    def labels(self) -> list[str]:
        """Returns the axis's labels in order."""
        return [choice.label for choice in self.choices]

    @property
    def key(self) -> str | None:
        """Returns the key that the axis varies, if it varies exactly one."""
        keys = {tuple(choice.set) for choice in self.choices if not choice.config}
        only = next(iter(keys)) if len(keys) == 1 else ()
        return only[0] if len(only) == 1 else None

    def sets(self, key: str) -> bool:
        """Whether the axis varies that key."""
        return any(key in choice.set for choice in self.choices)


def load_axis(name: str, table: Table) -> Axis:
    """Reads one ``[axis.NAME]``: labels in one of five forms, with the meaning of each.

    Raises:
        UserError: the table is wrong; the text says what is wrong with it.
    """
    title = table.text("title", name)
    if table.has("traces"):
        choices = tuple(Choice(trace, traces=(trace,)) for trace in table.texts("traces"))
    elif table.has("sequences"):
        sequences = table.get("sequences", dict)
        inner = table.inner("sequences")
        choices = tuple(Choice(label, traces=tuple(inner.texts(label))) for label in sequences)
    elif table.has("sets"):
        inner, pattern = table.inner("sets"), table.text("config", "")
        choices = tuple(
            Choice(label, config=pattern.replace("{}", label) or None, set=inner.keys_of(label))
            for label in table.get("sets", dict)
        )
    elif table.has("files"):
        choices = tuple(_files(table))
    else:
        choices = tuple(_values(table))
    table.done()
    if not choices:
        raise table.wrong("values", "an axis without labels")
    axis = Axis(name, choices, title)
    for label, count in Counter(axis.labels).items():
        if count > 1:
            raise table.wrong("labels", f"{label!r} is given twice")
    return axis


def _values(table: Table) -> Iterator[Choice]:
    if table.has("range"):
        values = _range(table)
    else:
        name = "values" if table.has("values") else "labels"
        values = [to_text(value) for value in table.list_of(name, (str, int, float))]
    labels = table.texts("labels") if table.has("labels") else values
    if len(values) != len(labels):
        raise table.wrong("values", "must be as many as the labels")
    key, config = table.text("key", ""), table.text("config", "")
    keys = [each.strip() for each in key.split(",") if each.strip()]
    for label, value in zip(labels, values, strict=True):
        chosen = config.replace("{}", value) if config else None
        yield Choice(label, config=chosen, set=dict.fromkeys(keys, value))


def _files(table: Table) -> Iterator[Choice]:
    """Yields a choice for each trace, sorted by name; labels leave out an extension that all names share."""
    pattern = table.text("files")
    folder = table.path.parent
    try:
        # An absolute pattern is searched for from the root, since it cannot be relative to a folder.
        start = Path(pattern).anchor
        found = Path(start).glob(str(Path(pattern).relative_to(start))) if start else folder.glob(pattern)
        paths = sorted(path for path in found if path.is_file())
    except (ValueError, NotImplementedError, OSError) as error:
        raise table.wrong("files", f"{pattern!r}: {error}") from None
    if not paths:
        raise table.wrong("files", f"no file matches {pattern!r}")
    names = [path.name.split(".")[0] for path in paths]
    if len(set(names)) < len(names):
        names = [path.as_posix() if start else path.relative_to(folder).as_posix() for path in paths]
    for path, label in zip(paths, names, strict=True):
        # The path is kept as written in the file, so that a study and its traces can be moved together.
        said = path.as_posix() if start else path.relative_to(folder).as_posix()
        yield Choice(label, set={"workload.trace": said})


_QUANTITY = re.compile(r"\s*([-+]?[0-9.]+(?:[eE][-+]?[0-9]+)?)\s*([A-Za-z%]*(?:B/s)?)\s*")


def _range(table: Table) -> list[str]:
    """Returns the values of a range ``[from, to, step]``; ``to`` is one of them if a step lands on it."""
    given = table.list_of("range", (str, int, float))
    if len(given) != 3:
        raise table.wrong("range", "is [from, to, step]")
    parts = [_QUANTITY.fullmatch(to_text(value)) for value in given]
    try:
        first, last, step = (Decimal(part[1]) for part in parts if part)
    except (ValueError, InvalidOperation):
        raise table.wrong("range", f"{given!r}: numbers, or quantities of one unit") from None
    units = {part[2] for part in parts if part}
    if len(units) != 1:
        raise table.wrong("range", f"{given!r}: quantities of one unit are needed")
    if step == 0 or (last - first) / step < 0:
        raise table.wrong("range", f"a step of {given[2]} does not lead from {given[0]} to {given[1]}")
    if (last - first) / step >= MOST_LABELS:
        raise table.wrong("range", f"more than {MOST_LABELS:,} values")
    unit = units.pop()
    count = int((last - first) / step) + 1
    return [f"{first + step * at:f}{unit}" for at in range(count)]
