"""What a command line that cannot be read was probably meant to say."""

from __future__ import annotations

import importlib
import re
from collections.abc import Iterator, Mapping, Sequence

import click

from ftlab import _core

_EXTRA = re.compile(r"Got unexpected extra arguments? \((.*)\)", re.DOTALL)

_ASSIGNING = ("--set", "--vary")

_CONFIG = ("--config", "--preset")
"""Options that other programs have for what is the first argument here."""


def hint(error: click.ClickException, modules: Mapping[str, str]) -> str | None:
    """Returns a message better than click's own, if there is one; ``modules`` has each command's module."""
    context = error.ctx if isinstance(error, click.UsageError) else None
    if context is None:
        return None
    words = [str(word) for word in context.obj or ()]
    if isinstance(error, click.NoSuchOption):
        return _of_option(error.option_name, context, modules)
    if found := _EXTRA.match(error.message):
        return _of_extra(found[1].split(" "), words, context, error.message)
    return None


def _of_option(name: str, context: click.Context, modules: Mapping[str, str]) -> str | None:
    """Returns where an option is, if another command has it."""
    if name in _CONFIG and any(parameter.name == "config" for parameter in context.command.params):
        return f"no such option '{name}': the preset or file is the first argument, CONFIG"
    having = [command for command, options in _options(modules) if name in options]
    if not having:
        return None
    drawn = name == "--plot" and "--html" in _names(context.command)
    here = "; here --html FILE draws charts" if drawn else ""
    commands = ", ".join(f"`ftlab {each}`" for each in having)
    return f"no such option '{name}'; it is an option of {commands}{here}"


def _options(modules: Mapping[str, str]) -> Iterator[tuple[str, set[str]]]:
    for name, module in modules.items():
        yield name, _names(getattr(importlib.import_module(f"ftlab.cli.{module}"), name))


def _names(command: click.Command) -> set[str]:
    return {name for parameter in command.params for name in parameter.opts}


def _of_extra(extra: Sequence[str], words: Sequence[str], context: click.Context, message: str) -> str | None:
    """Returns how an argument too many was probably meant."""
    for option, key, value in zip(words, words[1:], words[2:], strict=False):
        if option in _ASSIGNING and "=" not in key and value in extra:
            return f"{option} {key} {value}: write {option} {key}={value}"
    there = _names(context.command)
    first = extra[0]
    if "=" in first and "--set" in there:
        meant = f"--set {first}"
    elif "--trace" in there and "--trace" not in words and first not in _presets():
        meant = f"--trace {first}"
    else:
        return None
    return f"{message.rstrip('.')}; did you mean {meant}?"


def _presets() -> set[str]:
    return {name for name, _, _ in _core.presets()}
