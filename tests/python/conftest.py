"""Fixtures of the front end's tests."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import ftlab
import programs
from browser import CHROMIUM
from front import TRACE, Cli, make_result
from ftlab import html
from reports import MEASURED, WORKLOAD, Runs


@pytest.fixture(scope="session", autouse=True)
def signals() -> None:
    """Gives programs default handling of signals, even if the tests were started with signals ignored."""
    programs.give_signals_back()


@pytest.fixture(autouse=True)
def started(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[None]:
    """Ends programs that a test has started and not ended."""
    monkeypatch.setattr(subprocess, "Popen", programs.Program)
    yield
    programs.clean_up(tmp_path)


@pytest.fixture
def cli(tmp_path: Path) -> Cli:
    """Makes a command line in a directory that holds only the trace `a.csv`."""
    (tmp_path / "a.csv").write_text(TRACE)
    return Cli(tmp_path)


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    """Writes a small trace."""
    path = tmp_path / "a.csv"
    path.write_text(TRACE)
    return path


@pytest.fixture
def result_of() -> Callable[..., dict[str, Any]]:
    """Returns the function `make_result`."""
    return make_result


@pytest.fixture(scope="module")
def runs() -> Runs:
    """Runs two schedulers with two caches each, with garbage collection."""
    vary = {"host.scheduler": ["noop", "map+"], "ftl.mapping_cache": ["1KiB", "4KiB"]}
    return html.of_comparison(ftlab.compare("map-plus", vary, set={**WORKLOAD, **MEASURED}))


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    """Starts Chromium without a window."""
    if CHROMIUM is None and not os.environ.get("CI"):
        pytest.skip("no Chromium; on Debian: apt install chromium, elsewhere name it in FTLAB_CHROMIUM")
    assert CHROMIUM, "CI has Chromium"
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield browser
        browser.close()
