"""A device that wears out, as users see it: result, report, per-request rows, errors."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import polars as pl
import pytest

import ftlab

MORTAL = {
    "workload.synthetic.requests": 60_000,
    "workload.synthetic.read_share": "20%",
    "ftl.over_provisioning": "25%",
    "ftl.spare_blocks": 4,
    "flash.blocks_per_plane": 64,
    "flash.pages_per_block": 16,
    "flash.endurance": 20,
    "device.precondition": "fill",
}


def test_a_read_only_device_is_named_everywhere(tmp_path: Path) -> None:
    result = ftlab.run("map-plus", set=MORTAL, collect=True)
    health = result.health
    failed = health.failed.writes
    assert health.state == "read-only"
    assert failed > 1000
    assert health.blocks.spare_left == 0
    assert health.nvme_smart.critical_warning == 0b1001
    assert health.emmc_ext_csd.PRE_EOL_INFO == 3
    assert health.ufs_health_descriptor.bPreEOLInfo == 3
    text = str(result)
    assert "health: READ-ONLY: " in text
    assert f"refused: {failed:,} writes" in text

    # Every request has completed, except the writes that were refused.
    assert result.requests["complete_ns"].null_count() == failed
    served = result.requests.drop_nulls("complete_ns")
    assert set(result.requests.filter(pl.col("complete_ns").is_null())["op"].unique()) == {"W"}
    assert served.height == result.latency.all.count

    config, rows = tmp_path / "mortal.toml", tmp_path / "rows.csv"
    config.write_text(
        'preset = "map-plus"\n' + "".join(f"{key} = {value!r}\n" for key, value in MORTAL.items())
    )
    command = [sys.executable, "-m", "ftlab", "run", str(config), "--requests", str(rows)]
    assert "READ-ONLY" in subprocess.run(command, check=True, capture_output=True, text=True).stdout
    assert pl.read_csv(rows)["complete_ns"].null_count() == failed


def test_health_is_quiet_without_an_endurance() -> None:
    result = ftlab.run("map-plus", set={"workload.synthetic.requests": 100})
    assert result.health.state == "good"
    assert result.health.nvme_smart.percentage_used is None
    assert "health" not in str(result)


def test_preconditioning_that_wears_the_device_out_is_an_error() -> None:
    with pytest.raises(ftlab.UserError, match="preconditioning wore the device out"):
        ftlab.run("map-plus", set={**MORTAL, "device.precondition": "steady"})


def test_a_normal_threshold_that_does_not_fit_says_which_would() -> None:
    over = {**MORTAL, "ftl.gc_background": True, "ftl.gc_normal_blocks": 30}
    with pytest.raises(ftlab.UserError, match=r"ftl.gc_normal_blocks.*\d+ would fit"):
        ftlab.run("map-plus", set=over)
