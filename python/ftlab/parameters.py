"""Parameters of policies in Python: ``python:FILE.py:CLASS:NAME=VALUE`` and `HostScheduler.using`."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any, TypeVar

from ftlab._core import UserError
from ftlab.units import quantity

if TYPE_CHECKING:
    from collections.abc import Mapping

PREFIX = "python:"
WRITE = f'write "{PREFIX}FILE.py:CLASS", and behind it :NAME=VALUE for its parameters'
"""How a policy in a file is named, for messages."""

Kind = TypeVar("Kind")


def parts_of(text: str) -> tuple[str, str, dict[str, str]]:
    """Returns file, class and parameters of a text ``python:FILE.py:CLASS:NAME=VALUE:...``.

    Raises:
        UserError: a parameter is there twice, or has no value.
    """
    words = text.removeprefix(PREFIX).split(":")
    parameters: dict[str, str] = {}
    while len(words) > 2 and "=" in words[-1]:
        name, _, value = words.pop().partition("=")
        if not value:
            raise UserError(f"{text}: {name}= has no value; {WRITE}")
        if name in parameters:
            raise UserError(f"{text}: {name} is there twice; remove one")
        parameters[name] = value
    return ":".join(words[:-1]), words[-1], dict(reversed(parameters.items()))


def parametrised(policy: type[Kind], parameters: Mapping[str, str | float]) -> type[Kind]:
    """Returns a class whose objects are made with these arguments; see `_Policy.using`.

    Raises:
        UserError: ``__init__`` does not take them.
    """
    values = {name: _value(value) for name, value in parameters.items()}
    check(policy, values)
    said = "".join(f":{name}={value}" for name, value in parameters.items())

    def make(self: Any) -> None:
        policy.__init__(self, **values)

    members = {"__init__": make, "__qualname__": policy.__qualname__ + said, "__module__": policy.__module__}
    return type(policy.__name__ + said, (policy,), members)


def check(policy: type, values: Mapping[str, str | float]) -> None:
    """Checks that an object can be made with these arguments.

    Raises:
        UserError: ``__init__`` does not take one of them, or needs another.
    """
    try:
        inspect.signature(policy).bind(**values)
    except TypeError as error:
        takes = ", ".join(inspect.signature(policy).parameters) or "none"
        raise UserError(f"{policy.__name__}: {error}; its parameters are: {takes}") from None


def _value(given: str | float) -> str | float:
    if not isinstance(given, str):
        return given
    if given in ("true", "false"):
        return given == "true"
    number = quantity(given)
    return given if number is None else number
