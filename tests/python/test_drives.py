"""Checks that docs/drives.md shows what the presets of drives give today, within the bounds it has."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType

import pytest

import scripts
from ftlab.calibration.fit import Pair
from ftlab.calibration.model import Figures
from ftlab.calibration.row import Row
from oracle import engine

pytestmark = pytest.mark.skipif(not engine.available(), reason=engine.SKIP_REASON)

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def script() -> ModuleType:
    return scripts.script("drives")


def test_the_page_is_what_the_models_give(script: ModuleType) -> None:
    text, wrong = script.page(None)
    assert not wrong
    assert text == (ROOT / "docs" / "drives.md").read_text(), "run `make validation`"


def test_an_error_beyond_its_bound_is_noticed(script: ModuleType) -> None:
    drive = script.DRIVES[0]
    series = script.Series("all", lambda row: True, script.never, 0.0, "")
    row = Row("d", "randread", 4096, 1, 1, "", 1e4, 100.0, None, None, None, "", 1)
    pair = Pair(row, Figures(1e4, 101.0, 1.0, 1.0, 1.0), False)
    assert script.out_of_bound(drive, series, [pair]) == [f"{drive.model}: all, depth 1, jobs 1: +1.0 %"]


def test_every_number_of_a_preset_has_its_source() -> None:
    presets = ROOT / "crates" / "config" / "presets"
    for path in sorted(path for kind in ("nvme", "ufs", "emmc") for path in presets.glob(f"{kind}-*.toml")):
        for line in path.read_text().splitlines():
            assert " = " not in line or line.startswith("#") or "  # " in line, f"{path.name}: {line}"
