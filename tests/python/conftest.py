"""Fixtures of the front's tests."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from front import TRACE, Cli, make_result


@pytest.fixture
def cli(tmp_path: Path) -> Cli:
    """The command line, in an empty directory that holds the trace `a.csv`."""
    (tmp_path / "a.csv").write_text(TRACE)
    return Cli(tmp_path)


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    """A small trace."""
    path = tmp_path / "a.csv"
    path.write_text(TRACE)
    return path


@pytest.fixture
def result_of() -> Callable[..., dict[str, Any]]:
    """`make_result`."""
    return make_result
