"""Shell completions of presets, keys, their values, layouts and papers, all taken from the code itself."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from ftlab import configs

if TYPE_CHECKING:
    import click
    from click.shell_completion import CompletionItem

    Complete = Callable[[click.Context, click.Parameter, str], list[CompletionItem]]


def presets(_context: click.Context, _parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Completes names of presets, and files."""
    from click.shell_completion import CompletionItem

    from ftlab import _core

    return [
        *_items((name for name, _, _ in _core.presets()), incomplete),
        CompletionItem(incomplete, type="file"),
    ]


def layers(_context: click.Context, _parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Completes the keys whose value is the name of a part."""
    from ftlab import _core

    return _items(json.loads(_core.components()), incomplete)


def papers(_context: click.Context, _parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Completes names of papers."""
    from ftlab.reproduce.papers import names, root

    return _items([*names(root()), "all"], incomplete)


def figures(context: click.Context, _parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Completes names of figures of the paper that is named before them."""
    from ftlab.reproduce.papers import figure_names, names, root

    base, paper = root(), context.params.get("paper")
    chosen = [paper] if paper in names(base) else names(base)
    given = context.params.get("figures") or ()
    listed = dict.fromkeys(figure for name in chosen for figure in figure_names(base, name))
    return _items((figure for figure in listed if figure not in given), incomplete)


def settings(_context: click.Context, _parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Completes ``KEY=``, then ``KEY=VALUE``."""
    return _assignments(incomplete, listed=False)


def variations(_context: click.Context, _parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Completes ``KEY=``, then ``KEY=VALUE,VALUE``."""
    return _assignments(incomplete, listed=True)


def values_of(key: str) -> Complete:
    """Completes the values of a key, or files if it holds a path."""
    from click.shell_completion import CompletionItem

    def complete(
        _context: click.Context, _parameter: click.Parameter, incomplete: str
    ) -> list[CompletionItem]:
        if key in ("workload.trace", "workload.fio_job"):
            return [CompletionItem(incomplete, type="file")]
        return _items(_values(configs.keys()[key]), incomplete)

    return complete


def _items(names: Iterable[str], incomplete: str) -> list[CompletionItem]:
    from click.shell_completion import CompletionItem

    return [CompletionItem(name) for name in names if name.startswith(incomplete)]


def _assignments(incomplete: str, *, listed: bool) -> list[CompletionItem]:
    keys = configs.keys()
    key, equals, value = incomplete.partition("=")
    if not equals:
        return _items((f"{name}=" for name in keys), incomplete)
    before, _, _ = value.rpartition(",") if listed else ("", "", "")
    given = before.split(",") if before else []
    begun = "".join(f"{each}," for each in given)
    names = (name for name in _values(keys.get(key, {})) if name not in given)
    return _items((f"{key}={begun}{name}" for name in names), incomplete)


def _values(key: dict[str, Any]) -> list[str]:
    """Returns the values that a key can have, if they are names."""
    if key.get("type") == "boolean":
        return ["true", "false"]
    names = [str(name) for name in key.get("enum", [])]
    for either in key.get("anyOf", []):
        names += _values(either)
    return [*names, *([str(key["const"])] if "const" in key else [])]
