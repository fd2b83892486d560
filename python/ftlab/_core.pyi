"""Types of the Rust extension."""

from collections.abc import Callable, Iterable, Iterator
from os import PathLike
from typing import SupportsIndex

from typing_extensions import Buffer

__version__: str

class UserError(Exception):
    """An input or an option is at fault; the text is for the user (exit status 2)."""

class InternalError(Exception):
    """A fault of ftlab: a broken invariant or a panic (exit status 1)."""

class Column(Buffer):
    """A read-only column of numbers; supports the buffer protocol."""

    def __len__(self) -> int: ...

class Config:
    """A resolved configuration."""

    def json(self) -> str: ...
    def toml(self) -> str: ...
    def hash(self) -> str: ...
    @property
    def preset(self) -> str | None: ...
    @property
    def trace(self) -> str | None: ...
    @property
    def format(self) -> str: ...
    @property
    def scheduler(self) -> str: ...
    @property
    def user_bytes(self) -> int: ...

class RunResult:
    """What a run measured."""

    @property
    def json(self) -> str: ...
    @property
    def wall_s(self) -> float: ...
    def take_columns(self) -> dict[str, Column] | None: ...
