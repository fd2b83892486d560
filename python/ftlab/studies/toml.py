"""The tables of a study's TOML file, in which a key that the code never asks for is an error."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from ftlab._core import UserError
from ftlab.configs import read_toml, to_text


class Table:
    """A TOML table in which a key that the code never asks for is an error."""

    def __init__(self, path: Path, values: dict[str, Any] | None = None, where: str = "") -> None:
        """Makes the table of a file, which is read unless ``values`` are given; for a part of the file,
        ``where`` is the part's name in messages.
        """
        self.path = path
        self.where = where
        if values is None:
            values = read_toml(path, "declaration")
        self._values = dict(values)
        self._asked: set[str] = set()
        self._known: set[str] = set()

    def wrong(self, key: str, why: str) -> UserError:
        """Returns the error that says why a key is wrong."""
        return UserError(f"{self.place(key)}: {why}")

    def place(self, key: str) -> str:
        """Returns the place of a key, for messages: file, line and name."""
        return place(self.path, f"{self.where}{key}")

    def get(self, key: str, kind: Any, default: Any = None) -> Any:
        """Returns the value of a key, or the default; without a default the key is required.

        Raises:
            UserError: the value is missing, or of another type.
        """
        self._asked.add(key)
        if key not in self._values:
            if default is None:
                near = difflib.get_close_matches(key, self._values.keys() - self._asked, n=1)
                if near:
                    raise self.wrong(near[0], f"unknown key; did you mean {key}?")
                raise self.wrong(key, "is missing")
            return default
        value = self._values[key]
        if not isinstance(value, kind):
            raise self.wrong(key, f"{value!r} is not of the right kind")
        return value

    def text(self, key: str, default: str | None = None) -> str:
        """Returns the value of a key that is a string."""
        value: str = self.get(key, str, default)
        return value

    def flag(self, key: str, default: bool = False) -> bool:
        """Returns the value of a key that is a boolean."""
        value: bool = self.get(key, bool, default)
        return value

    def number(self, key: str, default: float | None = None) -> float:
        """Returns the value of a key that is a number."""
        return float(self.get(key, (int, float), default))

    def list_of(self, key: str, kind: Any) -> list[Any]:
        """Returns the list under a key, whose elements have one type; empty if the key is absent."""
        values = self.get(key, list, [])
        if not all(isinstance(value, kind) for value in values):
            raise self.wrong(key, f"{values!r}: not all of it is of the right kind")
        return list(values)

    def texts(self, key: str) -> list[str]:
        """Returns the list of strings under a key."""
        return self.list_of(key, str)

    def labels(self, key: str) -> dict[str, str]:
        """Returns the table under a key, which names a label of one or more axes: the labels by axis."""
        return {axis: self.inner(key).text(axis) for axis in self.get(key, dict, {})}

    def keys_of(self, key: str) -> dict[str, str]:
        """Returns the table of configuration keys (dotted or nested) under a key."""
        return dict(self.inner(key)._flat(self.get(key, dict, {}), ""))

    def _flat(self, values: Mapping[str, Any], prefix: str) -> Iterable[tuple[str, str]]:
        for name, value in values.items():
            if isinstance(value, Mapping):
                yield from self._flat(value, f"{prefix}{name}.")
            elif isinstance(value, list):
                raise self.wrong(f"{prefix}{name}", "a list, where a value of the configuration is expected")
            else:
                yield f"{prefix}{name}", to_text(value)

    def inner(self, key: str) -> Table:
        """Returns the table under a key; empty if the key is absent."""
        return Table(self.path, self.get(key, dict, {}), f"{self.where}{key}.")

    def table(self, key: str) -> dict[str, Table]:
        """Returns the subtables of the table under a key, by name."""
        around = self.inner(key)
        return {name: around.inner(name) for name in around._values}

    def tables(self, key: str) -> list[Table]:
        """Returns the list of tables under a key."""
        parts = self.list_of(key, dict)
        return [Table(self.path, values, f"{self.where}{key}[{at}].") for at, values in enumerate(parts)]

    def has(self, key: str) -> bool:
        """Whether the key exists."""
        self._known.add(key)
        return key in self._values

    def over(self, other: Table) -> Table:
        """Returns the declarations of ``other``, overridden by those of this table. Axes are overridden one
        by one, any other key as a whole.
        """
        own = {key: value for key, value in self._values.items() if key != "like"}
        axes = {**other.get("axis", dict, {}), **self.get("axis", dict, {})}
        return Table(self.path, {**other._values, **own, "axis": axes})

    def done(self) -> None:
        """Refuses keys that were not asked for."""
        for key in self._values:
            if key not in self._asked:
                near = difflib.get_close_matches(key, self._asked | self._known, n=1)
                raise self.wrong(key, "unknown key" + (f"; did you mean {near[0]}?" if near else ""))


_NAME = re.compile(r"""\s*("[^"]*"|'[^']*'|[\w-]+)\s*(\.|=|\])?""")


def place(path: Path, name: str) -> str:
    """Returns the place of a dotted key, ``FILE:LINE: NAME``; without LINE if the file lacks the key."""
    line = line_of(path, name)
    return f"{path}{f':{line}' if line else ''}: {name}"


def line_of(path: Path, name: str) -> int | None:
    """Returns the line of a dotted key, or else of the nearest table around it."""
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError):
        return None
    table, found, length = "", None, 0
    counts: dict[str, int] = {}
    for number, text in enumerate(lines, 1):
        brackets = len(text.lstrip()) - len(text.lstrip().lstrip("["))
        here = _dotted(text.lstrip().lstrip("["), "]" if brackets else "=")
        if here is None:
            continue
        if brackets == 2:
            counts[here] = counts.get(here, -1) + 1
            here = f"{here}[{counts[here]}]"
        if brackets:
            table = f"{here}."
        else:
            here = table + here
        # This line has the key itself, a table around the key, or the first entry of the key's own table.
        shorter, longer = sorted((here, name), key=len)
        if (
            longer.startswith(shorter)
            and longer[len(shorter) :][:1] in ("", ".", "[")
            and len(shorter) > length
        ):
            found, length = number, len(shorter)
    return found


def _dotted(text: str, end: str) -> str | None:
    """Returns the dotted name at the beginning of ``text``; None unless it is followed by ``end``."""
    parts, at = [], 0
    while match := _NAME.match(text, at):
        parts.append(match[1].strip("\"'"))
        at = match.end()
        if match[2] != ".":
            return ".".join(parts) if match[2] == end else None
    return None
