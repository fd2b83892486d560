"""The generators of workloads/vios have what Table 1 of the VIOS paper has.

All of them have its numbers of reads and writes. Conflicts cost a simulation of the 128 GiB device (1.2 GiB
of memory), so `make test` looks at three; `make check-workloads` at all.
"""

from __future__ import annotations

import os
import tomllib
from pathlib import Path
from typing import Any

import pytest

from ftlab import _core
from ftlab.configs import Override, load
from ftlab.fitting.measure import conflicts, measure

FOLDER = Path(__file__).resolve().parents[2] / "workloads" / "vios"
TOLERANCE = 0.005
"""Of each count of conflicts."""

# Name: reads, writes, read conflicts, write conflicts, ratio in per cent, as printed in the paper.
TABLE_1 = {
    "prn": (61422, 438578, 37678, 261787, 59.89),
    "fin": (129342, 370658, 12135, 129379, 28.30),
    "hm": (139527, 360473, 54387, 168864, 44.65),
    "mds": (26301, 473699, 10947, 12570, 4.70),
    "proj": (151549, 348451, 38615, 32852, 14.29),
    "rsrch": (43803, 456197, 19413, 217828, 47.45),
    "src": (81377, 418623, 28146, 360549, 77.74),
    "stg": (43818, 456182, 21657, 210355, 46.40),
    "ts": (76687, 423313, 27566, 7161, 6.95),
    "usr": (206983, 293017, 91391, 9068, 20.09),
    "wdev": (102663, 397337, 48986, 170202, 43.84),
    "web": (239458, 260542, 89753, 19184, 21.79),
}
CHEAP = ("fin", "mds", "src")
"""Few reads' conflicts, few conflicts, most conflicts."""

TARGETS: dict[str, Any] = tomllib.loads((FOLDER / "targets.toml").read_text())["targets"]


def test_the_targets_are_the_table() -> None:
    assert list(TARGETS) == list(TABLE_1)
    for name, (reads, writes, read_conflicts, write_conflicts, ratio) in TABLE_1.items():
        target = TARGETS[name]
        assert (target["reads"], target["writes"]) == (reads, writes)
        assert (target["read_conflicts"], target["write_conflicts"]) == (read_conflicts, write_conflicts)
        assert reads + writes == 500_000
        # The table agrees with itself, to its last digit.
        assert abs((read_conflicts + write_conflicts) / 5000 - ratio) <= 0.0051, name


@pytest.mark.parametrize("name", TABLE_1)
def test_the_mix_of_operations_is_exact(name: str) -> None:
    found = measure(load(str(FOLDER / f"{name}.toml")))
    assert found.counts == [*TABLE_1[name][:2], 0]
    for op, mean in (("read", found.mean_read_size), ("write", found.mean_write_size)):
        stated = float(TARGETS[name][f"mean_{op}_size"].removesuffix("kB")) * 1000
        assert mean == pytest.approx(stated, rel=0.01), op


def test_conflicts_are_those_of_the_table() -> None:
    """One device for all, prepared once."""
    chosen = TABLE_1 if os.environ.get("FTLAB_WORKLOADS") == "all" else CHEAP
    at_12k = [
        Override("noop at 12K", "device.scheduler", "noop"),
        Override("noop at 12K", "flash.pe_cycles", "12000"),
    ]
    device: _core.Device | None = None
    missed = []
    for name in chosen:
        config = load(str(FOLDER / f"{name}.toml"), at_12k)
        device = device or _core.prepare(config)
        for found, wanted in zip(conflicts(config, device), TABLE_1[name][2:4], strict=True):
            if abs(found / wanted - 1) > TOLERANCE:
                missed.append(f"{name}: {found} conflicts, {wanted} in the table")
    assert not missed
