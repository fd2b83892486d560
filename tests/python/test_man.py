"""Manual pages made from the commands."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from ftlab.cli import COMMANDS
from ftlab.cli.man import pages


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("man") / "man1"
    subprocess.run([sys.executable, "-m", "ftlab.cli.man", str(folder)], check=True)
    return folder


def test_each_command_has_a_page(folder: Path) -> None:
    found = {path.name for path in folder.iterdir()}
    assert found == set(pages())
    assert {"ftlab.1", "ftlab-trace-info.1", *(f"ftlab-{name}.1" for name in COMMANDS)} <= found
    page = (folder / "ftlab-compare.1").read_text()
    assert page.startswith(".TH FTLAB-COMPARE 1 ")
    assert "\\-\\-vary KEY=A,B,..." in page
    assert "ftlab\\-compare \\- Run variants of a configuration side by side\n" in page


@pytest.mark.skipif(shutil.which("groff") is None, reason="groff is not installed")
def test_pages_are_what_groff_takes(folder: Path) -> None:
    for path in sorted(folder.iterdir()):
        done = subprocess.run(
            ["groff", "-man", "-ww", "-Tutf8", str(path)], capture_output=True, text=True, check=True
        )
        assert done.stderr == ""
        assert "130 interrupted." in done.stdout
