"""Fixtures of the front's tests."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import ftlab
from front import TRACE, Cli, make_result
from ftlab import html
from reports import MEASURED, WORKLOAD, Runs


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


@pytest.fixture(scope="module")
def runs() -> Runs:
    """Two schedulers with two caches each, and garbage collected."""
    vary = {"host.scheduler": ["noop", "map+"], "ftl.mapping_cache": ["1KiB", "4KiB"]}
    return html.of_comparison(ftlab.compare("map-plus", vary, set={**WORKLOAD, **MEASURED}))
