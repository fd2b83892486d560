"""Commands as functions of `import ftlab`: they return what the command line prints and writes."""

from __future__ import annotations

import json
import socket
from dataclasses import asdict
from pathlib import Path

import polars as pl
import pytest

import ftlab
from front import Cli

STUDY = """
config = "map-plus"
set = { "flash.blocks_per_plane" = 64, "workload.synthetic.requests" = 300 }
[axis.scheduler]
key = "host.scheduler"
values = ["noop", "map+"]
[axis.seed]
key = "seed"
values = [1, 2, 3]
"""

SEARCH = """
config = "map-plus"
minimize = ["latency.all.mean_ns"]
runs = 4
set = { "flash.blocks_per_plane" = 64, "workload.synthetic.requests" = 300 }
[parameter.scheduler]
key = "host.scheduler"
choices = ["noop", "row", "map", "map+"]
"""

SMALL = {"flash.blocks_per_plane": 64, "workload.synthetic.requests": 2000}

MEASURED = "drive,op,bs,depth,jobs,mean_us,iops\nd,randread,4096,1,1,80,12500\nd,randread,4096,4,1,85,47000\n"

DEVICE = """
[device]
scheduler = "direct"
queue_depth = 64
latency_read = "20us"
[ftl]
kind = "page"
over_provisioning = "20%"
[flash]
channels = 2
chips_per_channel = 2
blocks_per_plane = 32
read = "50us"
"""


def test_a_sweep_is_that_of_the_command(cli: Cli) -> None:
    (cli.directory / "study.toml").write_text(STUDY)
    done = ftlab.sweep(cli.directory / "study.toml", cli.directory / "out")
    assert (done.run, done.reused, done.failed) == (6, 0, 0)
    assert done.runs["scheduler"].to_list() == ["noop"] * 3 + ["map+"] * 3
    assert done.failures.is_empty()
    mean = done.summary.filter(pl.col("value") == "latency.all.mean_ns", pl.col("scheduler") == "noop")
    assert mean["mean"].item() == pytest.approx(done.runs["latency.all.mean_ns"][:3].mean())
    printed = cli.ok("sweep", "study.toml", "--out", "out")
    assert printed == f"{done}0 runs, 6 more already existed: out\n"
    again = ftlab.sweep(cli.directory / "study.toml", cli.directory / "out", jobs=1)
    assert (again.run, again.reused, str(again)) == (0, 6, str(done))
    with pytest.raises(ftlab.UserError, match="use `ftlab tune`"):
        (cli.directory / "tune.toml").write_text(SEARCH)
        ftlab.sweep(cli.directory / "tune.toml", cli.directory / "other")


def test_a_failed_run_of_a_sweep_is_counted(tmp_path: Path) -> None:
    (tmp_path / "bad.csv").write_text("time_ns,op,offset,size\n0,R,0,-4\n")
    (tmp_path / "good.csv").write_text("time_ns,op,offset,size\n0,R,0,4096\n")
    axis = '[axis.trace]\nkey = "workload.trace"\nvalues = ["bad.csv", "good.csv"]\n'
    (tmp_path / "study.toml").write_text(f'config = "map-plus"\n{axis}')
    done = ftlab.sweep(tmp_path / "study.toml", tmp_path / "out")
    assert (done.failed, done.runs.height, done.failures.height) == (1, 1, 1)
    assert "bad.csv:2" in done.failures["error"].item()


def test_a_search_is_that_of_the_command(cli: Cli) -> None:
    (cli.directory / "tune.toml").write_text(SEARCH)
    found = ftlab.tune(cli.directory / "tune.toml", cli.directory / "out", jobs=1)
    assert len(found.trials) == 4
    assert found.best is not None and found.best.config is not None
    assert ftlab.run(found.best.config).latency.all.mean_ns == found.best.values[0]
    assert found.best.values[0] == min(trial.values[0] for trial in found.trials)
    files = {
        name: (cli.directory / "out" / name).read_text() for name in ("best.toml", "trials.csv", "front.csv")
    }
    cli.ok("tune", "tune.toml", "--out", "there", "--jobs", "1")
    for name, text in files.items():
        assert (cli.directory / "there" / name).read_text() == text


def test_a_calibration_is_that_of_the_command(cli: Cli) -> None:
    (cli.directory / "measured.csv").write_text(MEASURED)
    (cli.directory / "base.toml").write_text(DEVICE)
    base, measured, out = (cli.directory / name for name in ("base.toml", "measured.csv", "model.toml"))
    before = ftlab.calibrate(base, measured)
    assert [pair.row.depth for pair in before.pairs] == [1, 4]
    assert not before.values
    found = ftlab.calibrate(base, [measured], out, free={"flash.read": "20us..80us"}, trials=6, jobs=1)
    assert list(found.values) == ["flash.read"]
    first, last = before.error(held=False), found.error(held=False)
    assert first is not None and last is not None and last < first
    words = ("--measured", "measured.csv", "--out", "there.toml", "--free", "flash.read=20us..80us")
    cli.ok("calibrate", "base.toml", *words, "--trials", "6", "--jobs", "1")
    texts = [json.loads((cli.directory / name).read_text()) for name in ("model.json", "there.json")]
    assert texts[0]["keys"] == texts[1]["keys"]
    with pytest.raises(ftlab.UserError, match="without out"):
        ftlab.calibrate(base, measured, hold_out=["30%"])


def test_differences_of_results_comparisons_and_files(tmp_path: Path) -> None:
    first, second = (ftlab.run("map-plus", set=SMALL, host__scheduler=each) for each in ("noop", "row"))
    (found,) = ftlab.diff(first, second)
    assert [each.name for each in found.settings] == ["host.scheduler"]
    assert found.settings[0].values == ("noop", "row")
    (tmp_path / "a.json").write_text(first.to_json())
    assert ftlab.diff(tmp_path / "a.json", second) == [found]
    (same,) = ftlab.diff(first, first.to_dict())
    assert not same.settings and not same.results and same.equal > 100
    vary = {"host.scheduler": ["noop", "row"]}
    pairs = ftlab.diff(
        ftlab.compare("map-plus", vary, set=SMALL), ftlab.compare("map-plus", vary, set=SMALL, seed=2)
    )
    assert [each.label for each in pairs] == ["noop", "row"]
    assert all([setting.name for setting in each.settings] == ["seed"] for each in pairs)


def test_power_cuts_are_those_of_the_command(cli: Cli) -> None:
    result = ftlab.crash("crash", cuts=20, seed=3)
    assert (result["cuts"], result["fault"]) == (20, None)
    assert json.loads(cli.ok("crash", "crash", "--cuts", "20", "--seed", "3", "--json", "-")) == result
    assert ftlab.crash("crash", at=[50, 10])["cuts"] == 2


def test_a_device_is_served_during_a_block(tmp_path: Path) -> None:
    place = tmp_path / "nbd"
    small = {"flash.blocks_per_plane": 64}
    with ftlab.serve("map-plus", nbd=f"unix:{place}", set=small, speed=None) as device:
        assert device.uris == [f"nbd+unix:///?socket={place}"]
        with socket.socket(socket.AF_UNIX) as client:
            client.connect(str(place))
            assert client.recv(8) == b"NBDMAGIC"
        assert device.ask("stats")["trace"]["requests"] == 0
        assert device.look() is False
        assert device.result is None
    assert device.result is not None
    assert device.result.config.flash.blocks_per_plane == 64
    assert not place.exists()
    with pytest.raises(ZeroDivisionError), ftlab.serve("map-plus", nbd=f"unix:{place}", set=small):
        raise ZeroDivisionError
    assert not place.exists()
    with pytest.raises(ftlab.UserError, match="serve it where"), ftlab.serve("map-plus"):
        pass


def test_a_fit_is_that_of_the_command(cli: Cli) -> None:
    lines = [f"{at * 50_000},{'RW'[at % 3 == 0]},{65536 * (at * 7 % 500)},4096" for at in range(600)]
    (cli.directory / "a.csv").write_text("\n".join(["time_ns,op,offset,size", *lines]) + "\n")
    on = "map-plus"
    source, model_file = cli.directory / "a.csv", cli.directory / "model.toml"
    (fitted,) = ftlab.trace.fit(source, model_file, preset=on, check_on=on)
    assert fitted.keys["requests"] == "600"
    given = ("--preset", on, "--check-on", on, "--json", "f.json")
    cli.ok("trace", "fit", "a.csv", "--out", "there.toml", *given)
    (told,) = json.loads((cli.directory / "f.json").read_text())
    assert told["end_to_end"] == [asdict(each) for each in fitted.end_to_end] != []
    model, there = ((cli.directory / name).read_text() for name in ("model.toml", "there.toml"))
    assert model.partition("\n")[2] == there.partition("\n")[2]
    assert ftlab.run(cli.directory / "model.toml").trace.requests == 600
    with pytest.raises(ftlab.UserError, match="--tolerance 1"):
        ftlab.trace.fit(cli.directory / "a.csv", cli.directory / "model.toml", tolerance="1")


def test_a_percentile_by_its_number() -> None:
    result = ftlab.run("map-plus", set=SMALL)
    assert result.latency.read.percentile(99) == result.latency.read.percentile_ns["99.000000"]
    assert result.latency.all.percentile(99.9) == result.latency.all.percentile_ns["99.900000"]
    with pytest.raises(ftlab.UserError, match=r"percentile 12.5: not in this result; there are: 1, 5, 10"):
        result.latency.read.percentile(12.5)
    with pytest.raises(ftlab.UserError, match="not a distribution"):
        result.waf.percentile(99)
    full = ftlab.run("map-plus", set={**SMALL, "results.histograms": True})
    assert full.latency.read.percentile(12.5) == full.histogram("latency", "read").percentile(12.5)
