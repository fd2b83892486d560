"""``ftlab calibrate``, the long form: FTLAB_MODELS=10 measures and finds ten random models, minutes each."""

from __future__ import annotations

import json
import os
from pathlib import Path
from random import Random

import pytest

from front import Cli
from ftlab.calibration.intervals import quantity_of
from ftlab.progress import Reporter
from test_calibrate import measure, model, row, table


@pytest.mark.parametrize("seed", range(int(os.environ.get("FTLAB_MODELS", "0"))))
def test_a_random_model_is_found_again(tmp_path: Path, seed: int) -> None:
    """Read curves within 1 %, keys that the rows determine within 5 %, the others inside their intervals."""
    draw = Random(seed)
    known = {
        "device.command_time": draw.randint(500, 4_000),
        "device.latency_read": draw.randint(2_000, 40_000),
        "flash.chips_per_channel": draw.randint(1, 8),
        "flash.read": draw.randint(20_000, 90_000),
    }
    command, latency, chips, read = known.values()
    (tmp_path / "known.toml").write_text(model(f"{command}ns", f"{latency}ns", chips, f"{read}ns"))
    (tmp_path / "start.toml").write_text(model())
    rows = [row(1 << at) for at in range(9)]
    with Reporter(quiet=True) as reporter:
        table(
            tmp_path / "drive.csv", rows, measure(tmp_path / "known.toml", rows, tmp_path / "cache", reporter)
        )
    Cli(tmp_path, timeout=3600).ok(
        "calibrate", "start.toml", "--measured", "drive.csv", "--out", "found.toml"
    )
    found = json.loads((tmp_path / "found.json").read_text())
    assert all(abs(each["errors"]["mean_us"]) < 0.01 for each in found["rows"]), found["rows"]
    for each in found["keys"]:
        if each["name"] not in known:
            continue
        low, best, high = (quantity_of(each[part]) for part in ("low", "best", "high"))
        truth = known[each["name"]]
        near = best == pytest.approx(truth, rel=0.05)
        # An interval of a tenth determines a key within 5 %.
        assert near if high <= 1.1 * low else near or low <= truth <= high, each
