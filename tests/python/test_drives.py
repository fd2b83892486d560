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


MARKS = ("sheet", "published", "fitted", "assumed")
"""Where a number of a drive's model comes from: the first word of its remark, explained in docs/drives.md."""
PRESETS = ROOT / "crates" / "config" / "presets"
EXAMPLES = ROOT / "examples" / "drives"
OF_DRIVES = sorted(path for kind in ("nvme", "ufs", "emmc") for path in PRESETS.glob(f"{kind}-*.toml"))
FITTED_FROM = {
    PRESETS / "nvme-980-pro.toml": EXAMPLES / "tlc.toml",
    PRESETS / "nvme-zn540.toml": EXAMPLES / "tlc.toml",
    EXAMPLES / "zn540-appends.toml": PRESETS / "nvme-zn540.toml",
    EXAMPLES / "nvme-a.toml": EXAMPLES / "tlc.toml",
}
"""The files that `ftlab calibrate` made, each with the one it began with."""


def numbers(path: Path) -> dict[str, tuple[str, str]]:
    """Returns what follows each key of a configuration: its value, and its remark."""
    found: dict[str, tuple[str, str]] = {}
    section = ""
    for line in path.read_text().splitlines():
        if line.startswith("["):
            section = line.strip("[]")
        elif line and not line.startswith("#"):
            key, _, rest = line.partition(" = ")
            value, _, remark = rest.partition("#")
            found[f"{section}.{key}"] = (value.strip(), remark.strip())
    return found


@pytest.mark.parametrize("path", [*OF_DRIVES, EXAMPLES / "zn540-appends.toml"], ids=lambda path: path.stem)
def test_every_number_of_a_drive_has_its_source(path: Path) -> None:
    found = numbers(path)
    assert len(found) > 15, "the file was read"
    assert not {key: remark for key, (_, remark) in found.items() if not remark.startswith(MARKS)}


@pytest.mark.parametrize("path", FITTED_FROM, ids=lambda path: path.stem)
def test_nothing_fitted_stands_unmarked(path: Path) -> None:
    """What differs from the file that the fit began with was found, or its remark says what else it is."""
    base, found = numbers(FITTED_FROM[path]), numbers(path)
    changed = {key: remark for key, (value, remark) in found.items() if value != base.get(key, ("",))[0]}
    others = ("published: ", "assumed, a model's size: ")
    assert any(remark.startswith("fitted, ") for remark in changed.values())
    assert not {
        key: remark for key, remark in changed.items() if not remark.startswith(("fitted, ", *others))
    }
