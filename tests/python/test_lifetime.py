"""How long a device lasts under the load of a run: terabytes written, drive writes a day, years."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import ftlab
from front import Cli

LOAD: dict[str, Any] = {
    "flash.blocks_per_plane": 64,
    "workload.synthetic.requests": 4000,
    "workload.synthetic.read_share": "30%",
    "workload.synthetic.size": "4KiB",
    "device.precondition": "fill",
}


def test_by_hand() -> None:
    result = ftlab.run("map-plus", set={**LOAD, "flash.endurance": 3000}).to_dict()
    found, erases = result["lifetime"], sum(result["flash"]["erases"].values())
    written, elapsed = result["trace"]["bytes_written"], result["elapsed_ns"]
    # More blocks were erased than filled: the run began with some that were partly filled.
    assert erases >= sum(result["flash"]["programs"].values()) / 64 - 2
    worn = max(erases, sum(result["flash"]["programs"].values()) / 64)
    assert math.isclose(found["tbw"] * 1e12, 3000 * 64 * written / worn)
    assert found["capacity_bytes"] == round(64 * 64 * 4096 * 0.93)
    assert math.isclose(found["dwpd"], found["tbw"] * 1e12 / (64 * 64 * 4096 * 0.93) / (5 * 365))
    assert math.isclose(found["daily_bytes"], written / (elapsed / 1e9) * 86_400)
    assert math.isclose(found["years"], found["tbw"] * 1e12 / found["daily_bytes"] / 365)
    # Of data sheets: raw capacity x endurance / write amplification.
    assert math.isclose(found["tbw"] * 1e12, 3000 * 64 * 64 * 4096 / result["waf"]["total"], rel_tol=0.05)


def test_twice_the_endurance_is_twice_the_life() -> None:
    once, twice = (ftlab.run("map-plus", set={**LOAD, "flash.endurance": n})["lifetime"] for n in (500, 1000))
    assert math.isclose(twice["tbw"], 2 * once["tbw"]) and math.isclose(twice["years"], 2 * once["years"])


def test_without_a_number_of_erases_nothing_is_estimated() -> None:
    result = ftlab.run("map-plus", set=LOAD)
    assert "lifetime" not in result.to_dict() and "lifetime" not in str(result)
    reads = {**LOAD, "flash.endurance": 500, "workload.synthetic.read_share": "100%"}
    assert "lifetime" not in ftlab.run("map-plus", set=reads).to_dict()


def test_the_report_names_what_is_assumed() -> None:
    told = str(ftlab.run("map-plus", set={**LOAD, "flash.endurance": 3000}))
    assert "drive writes a day over 5 years" in told and "the rate of this run" in told
    assert "takes 3,000 erases (flash.endurance), all wear alike" in told
    empty = {**LOAD, "flash.endurance": 3000, "device.precondition": "none", "flash.blocks_per_plane": 2048}
    assert "no block was erased here: blocks that were filled count" in str(ftlab.run("map-plus", set=empty))


def test_comparisons_and_searches_have_it(cli: Cli, tmp_path: Path) -> None:
    vary = {"ftl.over_provisioning": ["7%", "28%"]}
    both = ftlab.compare("map-plus", vary, set={**LOAD, "flash.endurance": 3000})
    assert "drive writes a day" in str(both) and "years at this load" in str(both)
    first, second = both.to_polars()["lifetime.dwpd"]
    assert second > first > 0
    both.html(tmp_path / "r.html")
    assert '"lifetime":{"capacity_bytes"' in (tmp_path / "r.html").read_text()
    texts = [f'"{key}" = "{value}"' for key, value in LOAD.items()]
    (tmp_path / "tune.toml").write_text(
        'config = "map-plus"\nmaximize = ["lifetime.dwpd"]\nruns = 2\n'
        '[parameter.op]\nkey = "ftl.over_provisioning"\nchoices = ["7%", "28%"]\n'
        '[set]\n"flash.endurance" = 3000\n' + "\n".join(texts).replace('"64"', "64").replace('"4000"', "4000")
    )
    assert "lifetime" in cli.ok("tune", "tune.toml", "--out", "tuned")
