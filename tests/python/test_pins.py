"""Results match the pins: this test runs every eighth case, `scripts/pin.py` runs all of them."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import ftlab

ROOT = Path(__file__).resolve().parents[2]
PIN = ROOT / "scripts" / "pin.py"
PINS = ROOT / "tests" / "pins.txt"


def check(pins: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(PIN), "--check", str(pins), "--short"]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_results_are_those_pinned() -> None:
    done = check(PINS)
    assert done.returncode == 0, done.stdout + done.stderr


def test_a_difference_is_found_and_named(tmp_path: Path) -> None:
    first = next(line for line in PINS.read_text().splitlines() if "mode=" not in line and line[0] != "#")
    case, hashes = first.split(": ")
    (tmp_path / "json.txt").write_text(f"{case}: {hashes[:8]}{'0000'}{hashes[12:]}\n")
    (tmp_path / "rows.txt").write_text(f"{case}: {hashes[:-12]}{'0' * 12}\n")
    for name, field in {"json": "latency", "rows": "requests or timeline"}.items():
        done = check(tmp_path / f"{name}.txt")
        assert done.returncode == 1
        assert f"{case}: {field}\n1 cases, 1 differ" in done.stdout


@pytest.mark.parametrize(
    "part", ["ftl.kind", "host.scheduler", "device.scheduler", "ftl.gc", "host.awareness"]
)
def test_every_registered_part_is_pinned(part: str) -> None:
    table, name = part.split(".")
    axis = {"kind": "kind", "gc": "gc", "awareness": "awareness"}.get(name, table)
    names = ftlab.schema()["properties"][table]["properties"][name]["enum"]
    text = PINS.read_text()
    # No case names the first value of an axis.
    assert [value for value in names[1:] if f"{axis}={value}" not in text.replace(":", " ").split()] == []
