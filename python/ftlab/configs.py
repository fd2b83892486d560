"""Turns what a user passes (a preset, a file, a mapping, keywords) into a resolved configuration."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

from ftlab import _core, policies
from ftlab._core import Config, UserError

Scalar: TypeAlias = "str | int | float | os.PathLike[str] | type | None"
"""A value of a key: text as in a file (``"16KiB"``), a number, true or false, None for "none", or the class
of a policy.

A size may be given as a whole number of bytes.
"""

ConfigLike: TypeAlias = "str | os.PathLike[str] | Mapping[str, Any] | Config"
"""A preset's name, a TOML file, a nested mapping (for example a result's ``config``) or a resolved
configuration.
"""


class Override(NamedTuple):
    """A key with a value that overrides the configuration's."""

    origin: str
    """The name of the override in messages: ``--set host.scheduler=noop``, ``--dedup 50ms``."""
    key: str
    """The key's dotted name."""
    value: str
    """The value as a configuration file has it, but without quotes."""


GENERATOR_DEFAULTS: dict[str, Scalar] = {"requests": 10_000, "region": "1GiB"}
"""Values that a generator without a device uses for keys that have no default or whose default depends on the
device.
"""


_NAMES = ("trace", "format", "dedup", "max_gap", "skip_bad", "out_of_range", "speed", "repeat", "replay")
SHORTHANDS = {**{name: f"workload.{name}" for name in _NAMES}, "seed": "seed"}
"""The dotted keys by short name: a flag of the command line, a keyword of `ftlab.run` and `ftlab.compare`."""


@cache
def keys() -> dict[str, dict[str, Any]]:
    """Returns the schema of every configuration key, by the key's dotted name."""

    def gather(table: Mapping[str, Any], prefix: str) -> Iterator[tuple[str, dict[str, Any]]]:
        for name, key in table["properties"].items():
            if "properties" in key:
                yield from gather(key, f"{prefix}{name}.")
            else:
                yield prefix + name, key

    return dict(gather(json.loads(_core.schema()), ""))


def _is_size(key: str) -> bool:
    schema = keys().get(key, {})
    return any("|KiB|" in each.get("pattern", "") for each in (schema, *schema.get("anyOf", ())))


def _size_text(size: int) -> str:
    """Writes a number of bytes in the largest unit of which it is a whole multiple."""
    for power, unit in ((40, "TiB"), (30, "GiB"), (20, "MiB"), (10, "KiB")):
        if size and size % (1 << power) == 0:
            return f"{size >> power}{unit}"
    return f"{size}B"


def to_text(value: Scalar, key: str = "") -> str:
    """Writes a value as in a configuration file, without quotes.

    For a ``key`` that is a size, a whole number means bytes.
    """
    if value is None:
        return "none"
    if isinstance(value, type):
        return policies.name_of(value)
    # A NumPy scalar is converted to the Python number that it holds.
    value = getattr(value, "item", lambda: value)()
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int) and key and _is_size(key):
        return _size_text(value)
    if isinstance(value, (int, float, str)):
        return str(value)
    return os.fspath(value)


def keyword_overrides(keywords: Mapping[str, Scalar]) -> list[Override]:
    """Returns overrides from Python keywords: ``host__scheduler="map+"``, ``trace="a.csv"``."""
    overrides = []
    for name, value in keywords.items():
        key = SHORTHANDS.get(name, name.replace("__", "."))
        text = to_text(value, key)
        meant = next((each for each in keys() if "_" in name and each.replace(".", "_") == name), "")
        if meant and key not in keys():
            right = meant.replace(".", "__")
            raise UserError(f"argument {name}={text}: two underscores stand for the dot: {right}={text}")
        overrides.append(Override(f"argument {name}={text}", key, text))
    return overrides


def mapping_overrides(values: Mapping[str, Any], origin: str) -> list[Override]:
    """Returns overrides from a mapping, nested or with dotted keys."""
    texts = ((key, to_text(value, key)) for key, value in _flatten(values, ""))
    return [Override(f"{origin} {key}={text}", key, text) for key, text in texts]


def overrides_of(values: Mapping[str, Any] | None, keywords: Mapping[str, Scalar]) -> list[Override]:
    """Returns the overrides passed to a Python function: those in its mapping, then those in its keywords."""
    return [*mapping_overrides(values or {}, "set"), *keyword_overrides(keywords)]


def _flatten(values: Mapping[str, Any], prefix: str) -> Iterator[tuple[str, Scalar]]:
    for name, value in values.items():
        if isinstance(value, Mapping):
            yield from _flatten(value, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}", value


def file_name(config: ConfigLike) -> str:
    """Returns the name, without folders, of the file that holds a configuration; empty for any other."""
    if isinstance(config, (Config, Mapping)) or str(config) in {name for name, _, _ in _core.presets()}:
        return ""
    return Path(config).name


def load(config: ConfigLike, overrides: Sequence[Override] = ()) -> Config:
    """Resolves a configuration with overrides; a text is the name of a preset, or else that of a file.

    Raises:
        UserError: there is no such preset or file, or the configuration is wrong; the text says where.
    """
    if isinstance(config, Config):
        return load_text("configuration", config.toml(), overrides)
    if isinstance(config, Mapping):
        given = mapping_overrides(config, "configuration:")
        # The mapping may come from a file, so classes named in it need permission; the caller's own are in
        # the overrides.
        with _policies_of(json.dumps([each.value for each in given]), overrides):
            return _core.resolve_text("configuration", "", [*given, *overrides])
    try:
        text = Path(config).read_text(encoding="utf-8") if Path(config).is_file() else ""
    except (OSError, UnicodeDecodeError):
        text = ""  # The core reports that the file cannot be read.
    with _policies_of(text, overrides):
        return _core.resolve(os.fspath(config), list(overrides))


@contextmanager
def _policies_of(text: str, overrides: Sequence[Override]) -> Iterator[None]:
    """Registers the classes that a configuration may name; if it names one without permission, an error in
    the block says so.
    """
    policies.find(value for _, _, value in overrides)
    refused = policies.find_in(text)
    try:
        yield
    except UserError as error:
        for origin, key, name in overrides:
            if ": unknown name;" in str(error) and (why := policies.misplaced(key, name)):
                raise UserError(f"{origin}: {why}") from None
        for name in refused:
            where, unknown, _ = str(error).partition(f"{name}: unknown name")
            if unknown:
                raise UserError(f"{where}{policies.refusal(name)}") from None
        raise


def read_toml(path: str | os.PathLike[str], what: str) -> dict[str, Any]:
    """Reads a TOML file that is not a configuration, within a configuration's limits: 1 MiB, nested 80 deep.

    ``what`` says in messages what the file should be.

    Raises:
        UserError: the file cannot be read, or is not TOML; the text says in which line.
    """
    text = _core.read_toml(os.fspath(path), what)
    for name in policies.find_in(text):
        raise UserError(f"{path}: {policies.refusal(name)}")
    found: dict[str, Any] = json.loads(text)
    return found


def load_text(name: str, text: str, overrides: Sequence[Override] = ()) -> Config:
    """Resolves a TOML text; messages use ``name`` for the file."""
    with _policies_of(text, overrides):
        return _core.resolve_text(name, text, list(overrides))
