"""``ftlab calibrate`` on what fio itself measures: a model is served over NBD, measured there by fio, and
found again from another start.

The model is slow, so that a busy machine adds little; what it adds all the same is in both fio's figures and
the server's account of its lateness, and bounds what may be asked.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from front import Cli
from ftlab.calibration.intervals import quantity_of
from live import need, served
from test_calibrate import model

READ = 60_000_000
"""The time of a read of the flash, ns."""
SLOW = ("1ms", "20ms", 3, f"{READ}ns")
"""Command time, latency, chips of each of two channels, and read time: a read takes 81 ms."""
NEAR = 0.25
"""How far fio's mean may be from what the server simulated and was late by: fio waits for processors, too."""


def measured(folder: Path, depth: int) -> tuple[dict[str, Any], dict[str, Any]]:
    """Returns what fio measured on the served model, and the server's result."""
    out = folder / f"depth-{depth}.json"
    with served(folder, str(folder / "known.toml"), "--set", "device.precondition=fill") as device:
        device.client(
            *("fio", "--name=reads", "--ioengine=nbd", f"--uri={device.uri}", "--rw=randread", "--bs=4k"),
            *(f"--iodepth={depth}", "--norandommap", "--runtime=5", "--time_based"),
            *("--output-format=json+", f"--output={out}"),
        )
    (job,) = json.loads(out.read_text())["jobs"]
    return job["read"], device.result


def test_a_served_model_is_found_again_from_what_fio_measures(tmp_path: Path) -> None:
    need("fio")
    (tmp_path / "known.toml").write_text(model(*SLOW))
    (tmp_path / "start.toml").write_text(model(*SLOW[:3], "150ms"))
    added = 1.0
    for depth in (1, 4):
        fio, server = measured(tmp_path, depth)
        simulated_ns = server["latency"]["read"]["mean_ns"]
        late_ns = server["live"]["lateness"]["mean_ns"]
        assert fio["total_ios"] == server["latency"]["read"]["count"]
        assert fio["lat_ns"]["mean"] >= simulated_ns, "no answer comes before its time"
        assert fio["lat_ns"]["mean"] == pytest.approx(simulated_ns + late_ns, rel=NEAR)
        added = max(added, fio["lat_ns"]["mean"] / simulated_ns)
    # fio's direct=1 is left out, as there is no page cache between: a note says so.
    Cli(tmp_path, timeout=300).ok(
        *("calibrate", "start.toml", "--measured", "depth-1.json", "--measured", "depth-4.json"),
        *("--free", "flash.read=20ms..200ms", "--trials", "4", "--weights", "p50=0,p99=0,p999=0"),
        *("--out", "found.toml"),
    )
    (key,) = json.loads((tmp_path / "found.json").read_text())["keys"]
    # All that the machine added counts as time of the flash: it takes 60 of the 81 ms.
    most = READ * (1 + (added - 1) * 81 / 60)
    assert 0.95 * READ <= quantity_of(key["best"]) <= 1.05 * most, (key, added)
