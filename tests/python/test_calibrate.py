"""``ftlab calibrate``: closed forms, descent and intervals by themselves; models that are measured by their
own jobs and found again from another start.
"""

from __future__ import annotations

import csv
import json
import math
import subprocess
import sys
import time
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from browser import Page
from front import Cli
from ftlab._core import UserError
from ftlab.calibration import mva
from ftlab.calibration.descent import Vector, descend
from ftlab.calibration.distance import WEIGHTS, distance, weights_of
from ftlab.calibration.fit import held_out, picked
from ftlab.calibration.intervals import intervals
from ftlab.calibration.keys import Stage, declared, ranged
from ftlab.calibration.model import Figures, Rig
from ftlab.calibration.row import Row
from ftlab.calibration.search import Ground
from ftlab.progress import Reporter
from ftlab.studies.cache import Cache
from ftlab.studies.executor import Threads
from test_accessibility import findings

ROOT = Path(__file__).resolve().parents[2]
DRIVES = ROOT / "examples" / "drives"

KNOWN = """
[device]
scheduler = "direct"
queue_depth = 1024
command_time = "COMMAND"
latency_read = "LATENCY"

[ftl]
kind = "page"
over_provisioning = "20%"

[flash]
channels = 2
chips_per_channel = CHIPS
blocks_per_plane = 32
read = "READ"
"""
"""A small device whose keys are put in."""


def model(command: str = "3us", latency: str = "20us", chips: int = 3, read: str = "50us") -> str:
    """Returns the configuration of a small device."""
    text = KNOWN.replace("COMMAND", command).replace("LATENCY", latency)
    return text.replace("CHIPS", str(chips)).replace("READ", read)


def row(depth: int, mean_us: float = 100.0, **others: object) -> Row:
    """Returns a row of random reads of 4 KiB."""
    known: dict[str, object] = {
        **{"drive": "d", "op": "randread", "bs": 4096, "depth": depth, "jobs": 1, "engine": "spdk"},
        **{
            "iops": depth * 1e6 / mean_us,
            "mean_us": mean_us,
            "p50_us": None,
            "p99_us": None,
            "p999_us": None,
        },
        **{"source": "s", "line": depth},
    }
    return Row(**{**known, **others})  # type: ignore[arg-type]


def measure(config: Path, rows: Sequence[Row], folder: Path, reporter: Reporter) -> list[Figures]:
    """Returns what the jobs of the rows give on a configuration."""
    rig = Rig(str(config), Cache(folder), Threads(2), reporter)
    found = rig.figures(rows, [{}])[0]
    assert found is not None, "the model runs"
    return found


def table(path: Path, rows: Sequence[Row], figures: Sequence[Figures]) -> None:
    """Writes what was measured as a table."""
    names = ["drive", "op", "bs", "depth", "jobs", "engine", "iops", "mean_us", "p50_us", "p99_us", "p999_us"]
    with path.open("w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow([*names, "source"])
        for each, known in zip(rows, figures, strict=True):
            job = [getattr(each, name) for name in names[:6]]
            writer.writerow(
                [*job, *("" if value is None else f"{value:.3f}" for value in vars(known).values()), "model"]
            )


@pytest.fixture(scope="module")
def measured(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Returns a directory with what a known model of 6 dies gives, and another model to begin with."""
    folder = tmp_path_factory.mktemp("calibrate")
    (folder / "known.toml").write_text(model())
    (folder / "start.toml").write_text(model("1us", "5us", 8, "90us"))
    rows = [row(depth) for depth in (1, 2, 4, 8, 16, 32)]
    with Reporter(quiet=True) as reporter:
        figures = measure(folder / "known.toml", rows, folder / "cache", reporter)
    # Means alone: their noise is small, so few requests tell the keys.
    table(
        folder / "drive.csv", rows, [Figures(each.iops, each.mean_us, None, None, None) for each in figures]
    )
    return folder


def test_a_loop_by_hand() -> None:
    # One server: a second request finds 10 / 20 of one there, a third finds 2 / 25 x 15.
    assert mva.Loop(10, 1, 10, 0).latencies(3) == pytest.approx([20, 25, 32])
    # Two servers, each of which a request visits half the time.
    assert mva.Loop(10, 2, 10, 0).latencies(2) == pytest.approx([20, 22.5])
    # The rate that nothing exceeds: one each 5 us.
    assert mva.Loop(1, 64, 1, 5).latencies(400)[-1] == pytest.approx(400 * 5, rel=1e-6)


@pytest.mark.parametrize(
    ("file", "servers", "within"), [("samsung-980-pro", 32, 0.022), ("wd-zn540", 16, 0.014)]
)
def test_measured_curves_are_loops(file: str, servers: int, within: float) -> None:
    """The deviations are those that the fits of the drives' own figures are stated to have."""
    with (DRIVES / f"{file}.csv").open(newline="") as rows:
        curve = {
            int(each["depth"]): float(each["mean_us"])
            for each in csv.DictReader(rows)
            if (each["op"], each["bs"], each["jobs"]) == ("randread", "4096", "1")
        }
    assert len(curve) == 9
    loop, error = mva.fit(curve, servers)
    found = loop.latencies(max(curve))
    assert max(abs(found[depth - 1] / mean - 1) for depth, mean in curve.items()) <= within
    assert error < within


def test_a_descent_finds_the_bottom_of_a_bent_valley() -> None:
    """Rosenbrock's function has its minimum, 0, at (1, 1); here the cube is two units long."""

    def residuals(points: Sequence[Vector]) -> list[Vector | None]:
        return [np.array([10 * (2 * y - (2 * x) ** 2), 1 - 2 * x]) for x, y in points]

    found = descend(residuals, np.array([0.1, 0.9]), 1e-5, 200)
    assert found.at == pytest.approx([0.5, 0.5], abs=1e-3)


def test_a_descent_passes_by_what_is_not_valid_and_keeps_to_the_cube() -> None:
    def residuals(points: Sequence[Vector]) -> list[Vector | None]:
        return [None if x < 0.3 else np.array([x + 0.5, y - 2.0]) for x, y in points]

    found = descend(residuals, np.array([0.8, 0.5]), 1e-3, 50)
    assert found.at[1] == 1.0
    assert 0.3 <= found.at[0] < 0.8


class Sum:
    """A device whose latency is the sum of two keys, and whose rate is bounded by a third."""

    def figures(
        self, rows: Sequence[Row], candidates: Sequence[Mapping[str, str]], length: float = 1.0
    ) -> list[list[Figures] | None]:
        """Returns figures in closed form, which no run takes."""
        found: list[list[Figures] | None] = []
        for values in candidates:
            read, latency, command = (
                float(values[key].removesuffix("ns")) / 1e3
                for key in ("flash.erase", "device.latency_read", "device.command_time")
            )
            means = [max(read + latency, each.depth * command) for each in rows]
            found.append(
                [
                    Figures(each.depth * 1e6 / mean, mean, None, None, None)
                    for each, mean in zip(rows, means, strict=True)
                ]
            )
        return found


def test_an_interval_says_what_rows_do_not_determine() -> None:
    keys = [
        ranged("flash.erase", 1_000, 100_000),
        ranged("device.latency_read", 0, 100_000),
        ranged("device.command_time", 100, 10_000),
    ]
    rows = tuple(
        row(depth, max(60.0, depth * 2.0) * factor) for depth, factor in ((1, 1.01), (4, 0.99), (64, 1.0))
    )
    stage = Stage("all", rows, tuple(keys))
    ground = Ground(Sum(), stage, keys, WEIGHTS)  # type: ignore[arg-type]
    start = {"flash.erase": "20000ns", "device.latency_read": "30000ns", "device.command_time": "1500ns"}
    best, valley = ground.descend(start, 40)
    assert best.error == pytest.approx(0.01 * math.sqrt(2 / 3), rel=0.05)
    found = {each.name: each for each in intervals(ground, best, valley)[0]}
    command = found["device.command_time"]
    # The rate at depth 64 alone tells it, and the error grows by a tenth where it is 0.46 % off.
    width = math.sqrt(0.21) * best.error * math.sqrt(3) * 2000
    assert command.determined and float(command.high.removesuffix("ns")) == pytest.approx(2000 + width, abs=4)
    for name in ("flash.erase", "device.latency_read"):
        assert not found[name].determined and "not determined" in found[name].said


def test_the_distance_is_the_weighted_root_mean_square() -> None:
    rows = [row(1, 100.0, p50_us=90.0), row(2, 100.0)]
    figures = [Figures(10_000.0, 110.0, 99.0, 1.0, 1.0), Figures(20_000.0, 100.0, 1.0, 1.0, 1.0)]
    squares = math.log(1.1) ** 2 * (1 + 0.5)
    assert distance(rows, figures, {**WEIGHTS, "p50_us": 0.5}) == pytest.approx(math.sqrt(squares / 4.5))


@pytest.mark.parametrize("text", ["p98=1", "mean", "mean=x", "mean=-1", "mean=inf", "mean=0,iops=0"])
def test_wrong_weights_are_refused(text: str) -> None:
    with pytest.raises(UserError, match="--weights"):
        weights_of(text)
    assert weights_of("p99=0.5")["p99_us"] == 0.5


def test_rows_are_held_out_by_share_and_by_value() -> None:
    rows = [row(depth) for depth in (1, 2, 4, 8, 16, 32, 64, 128, 256)]
    assert [each.depth for each in held_out(rows, ["depth=2,8,32,128"], 1)] == [2, 8, 32, 128]
    drawn = held_out(rows, ["30%"], 1)
    assert len(drawn) == 3 and drawn == held_out(rows, ["30%"], 1)
    both = held_out(rows, ["op=randread depth=4", "depth=8"], 1)
    assert [each.depth for each in both] == [4, 8]
    assert [each.depth for each in picked(rows, ["depth=4,8", "op=randread"])] == [4, 8]
    for text in ("0%", "100%", "depth=3", "colour=red", "depth"):
        with pytest.raises(UserError, match="--hold-out"):
            held_out(rows, [text], 1)
    with pytest.raises(UserError, match="--only"):
        picked(rows, ["depth=3"])


def test_free_keys_are_read_with_their_units() -> None:
    settings = {"flash": {"cell": "tlc"}}
    found = declared(
        ["flash.read=20us..80us", "flash.transfer=0.5ns..2ns", "device.link=1GB/s..8GB/s"], settings
    )
    assert [each.name for each in found[:3]] == ["flash.read[0]", "flash.read[1]", "flash.read[2]"]
    assert [(each.low, each.high, each.unit) for each in found[2:]] == [
        (20_000, 80_000, "ns"),
        (500, 2_000, "ps"),
        (1_000, 8_000, "MB/s"),
    ]
    (choice,) = declared(["ftl.gc=greedy,fifo"], settings)
    assert choice.choices == ("greedy", "fifo")


def test_a_model_is_found_from_its_own_measurements(measured: Path) -> None:
    cli = Cli(measured)
    free = ("flash.chips_per_channel=1..5", "device.latency_read=0us..70us", "flash.read=10us..90us")
    asked = [part for key in free for part in ("--free", key)]
    base = ("calibrate", "start.toml", "--measured", "drive.csv", "--out", "found.toml", "--trials", "4")
    said = cli.ok(*base, *asked)
    found = json.loads((measured / "found.json").read_text())
    assert found["error"] < 0.01 < found["error_before"], said
    for each in found["rows"]:
        assert abs(each["errors"]["mean_us"]) < 0.01, each
    known = {"device.latency_read": 20_000 + 2_000, "flash.read": 50_000}
    settings = tomllib.loads((measured / "found.toml").read_text())
    assert settings["flash"]["chips_per_channel"] == 3
    for each in found["keys"]:
        low, best, high = (float(each[part].removesuffix("ns")) for part in ("low", "best", "high"))
        assert low <= best <= high
        if each["name"] in known:
            # The start's command time is 2 us less, which is a part of the latency here.
            assert each["determined"] and best == pytest.approx(known[each["name"]], rel=0.05), each
    text = (measured / "found.toml").read_text()
    marked = [line for line in text.splitlines() if "# fitted, " in line]
    assert {line.partition(" =")[0] for line in marked} == {"latency_read", "read", "chips_per_channel"}
    assert all(" on 6 rows; " in line for line in marked), marked
    # The file is a configuration, whose errors are those that were stated.
    checked = cli("calibrate", "--check", "found.toml", "--measured", "drive.csv", "--most-error", "1%")
    assert checked.returncode == 0, checked.stderr
    page = (measured / "found.html").read_text()
    assert "Measured and modelled" in page and "Errors" in page


def test_a_check_fails_above_the_most_error(measured: Path) -> None:
    cli = Cli(measured)
    assert cli("calibrate", "--check", "known.toml", "--measured", "drive.csv").returncode == 0
    done = cli("calibrate", "--check", "start.toml", "--measured", "drive.csv", "--most-error", "20%")
    assert done.returncode == 1
    assert "error: start.toml: " in done.stderr and "20.0% off" in done.stderr
    assert "off: randread 4096 B, depth 1, jobs 1: rate" in done.stderr


def test_reads_that_wait_for_writes_are_told(tmp_path: Path) -> None:
    """The models made by the guides had reads of 70 ms at p99 where the drives suspend and have 0.4."""
    head = "drive,op,bs,depth,jobs,engine,iops,mean_us,p50_us,p99_us,p999_us,source"
    rows = ["d,randread,4096,1,1,,16000,60,,,,", "d,randwrite,4096,1,1,,80000,12,,,,"]
    for name, lines in ("both", rows), ("reads", rows[:1]):
        (tmp_path / f"{name}.csv").write_text("\n".join([head, *lines, ""]))
    cli = Cli(tmp_path)
    said = cli("calibrate", "--check", "vios", "--measured", "both.csv").stderr
    assert "note: reads of this model wait for programs and collection" in said
    assert 'flash.suspend = "program-erase"' in said
    assert "suspend" not in cli("calibrate", "--check", "vios", "--measured", "reads.csv").stderr


def test_the_same_seed_gives_the_same_files(measured: Path) -> None:
    cli = Cli(measured)
    base = ("calibrate", "start.toml", "--measured", "drive.csv", "--trials", "4", "--hold-out", "depth=4")
    free = ("--free", "device.command_time=1us..9us", "--free", "device.latency_read=0us..60us")
    printed = []
    for jobs in ("1", "2"):
        (measured / "same.toml").unlink(missing_ok=True)
        if jobs == "1":
            printed.append(cli.ok(*base, *free, "--out", "same.toml", "--jobs", jobs))
        first = (measured / "same.json").read_bytes()
    # The same command goes on where it was: everything is known already.
    assert cli.ok(*base, *free, "--out", "same.toml", "--jobs", "2") == printed[0]
    assert (measured / "same.json").read_bytes() == first
    # And anew, elsewhere, with other cores.
    (measured / "again").mkdir()
    cli.ok(*base, *free, "--out", "again/same.toml", "--jobs", "2")
    assert (measured / "again" / "same.json").read_bytes() == first
    found = json.loads(first)
    assert [each["depth"] for each in found["rows"] if each["held_out"]] == [4]
    assert found["error_held_out"] is not None


ASKED = ("calibrate", "start.toml", "--measured", "drive.csv", "--trials", "3")
"""A small fit, of two keys that the rows tell."""
FREE = ("--free", "device.command_time=1us..9us", "--free", "device.latency_read=0us..60us")


def test_killed_it_goes_on_to_the_same_file(measured: Path) -> None:
    whole, killed = measured / "whole.json", measured / "killed.json"
    Cli(measured).ok(*ASKED, *FREE, "--out", "whole.toml")
    kept = measured / "killed.calibration" / "results"
    command = [sys.executable, "-m", "ftlab", *ASKED, *FREE, "--out", "killed.toml"]
    for runs in (8, 40):
        with subprocess.Popen(
            command, cwd=measured, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        ) as process:
            while process.poll() is None and sum(each.is_file() for each in kept.rglob("*")) < runs:
                time.sleep(0.01)
            assert process.poll() is None, "it was not killed in the middle"
            process.kill()
        assert not killed.exists()
    Cli(measured).ok(*ASKED, *FREE, "--out", "killed.toml")
    assert killed.read_bytes() == whole.read_bytes()


def test_the_same_file_on_processes_of_dask(measured: Path) -> None:
    cli = Cli(measured)
    for name, more in (("threads", ()), ("dask", ("--dask", "local", "--jobs", "2"))):
        cli.ok(*ASKED, *FREE, "--out", f"{name}.toml", *more)
    assert (measured / "dask.json").read_bytes() == (measured / "threads.json").read_bytes()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("start.toml",), "--measured"),
        (("--measured", "drive.csv"), "calibrate needs BASE and --out"),
        (("start.toml", "--measured", "drive.csv"), "calibrate needs BASE and --out"),
        (("start.toml", "--measured", "gone.csv", "--out", "m.toml"), "gone.csv"),
        (("start.toml", "--measured", "drive.csv", "--out", "m.txt"), "m.txt"),
        (("gone.toml", "--measured", "drive.csv", "--out", "m.toml"), "gone.toml"),
        (
            ("start.toml", "--measured", "drive.csv", "--out", "m.toml", "--free", "flash.raed=1us..2us"),
            "did you mean flash.read?",
        ),
        (
            ("start.toml", "--measured", "drive.csv", "--out", "m.toml", "--free", "flash.read=2us..1us"),
            "the first is the least",
        ),
        (("start.toml", "--measured", "drive.csv", "--out", "m.toml", "--free", "flash.read=9"), "LOW..HIGH"),
        (
            ("start.toml", "--measured", "drive.csv", "--out", "m.toml", "--free", "flash.read"),
            "KEY=LOW..HIGH",
        ),
        (("start.toml", "--measured", "drive.csv", "--out", "m.toml", "--only", "depth=7"), "meets no row"),
        (("start.toml", "--measured", "drive.csv", "--out", "m.toml", "--hold-out", "depth=7"), "--hold-out"),
        (("start.toml", "--measured", "drive.csv", "--out", "m.toml", "--most-error", "5%"), "--check"),
        (("start.toml", "--measured", "drive.csv", "--check", "known.toml"), "fits nothing"),
        (("--measured", "drive.csv", "--check", "known.toml", "--most-error", "much"), "write per cent"),
        (("--measured", "drive.csv", "--check", "gone.toml"), "gone.toml"),
    ],
)
def test_wrong_arguments_are_explained(measured: Path, arguments: tuple[str, ...], said: str) -> None:
    done = Cli(measured)("calibrate", *arguments)
    assert done.returncode == 2, done.stdout
    assert said in done.stderr and done.stderr.startswith("error: ")
    assert "Traceback" not in done.stderr
    assert not (measured / "m.toml").exists()


def test_a_model_without_times_is_refused(tmp_path: Path) -> None:
    text = model(command="0us", latency="0us", read="0us")
    (tmp_path / "free.toml").write_text(f'{text}transfer = "0us"\ncommand = "0us"\n')
    table(tmp_path / "drive.csv", [row(1)], [Figures(10_000, 100, None, None, None)])
    done = Cli(tmp_path)("calibrate", "--measured", "drive.csv", "--check", "free.toml")
    assert done.returncode == 2, done.stderr
    assert "drive.csv:2: in the model the requests of this row take no time" in done.stderr


def test_a_page_draws_every_job(browser: Any, measured: Path) -> None:
    cli = Cli(measured)
    base = ("calibrate", "start.toml", "--measured", "drive.csv", "--out", "drawn.toml", "--trials", "2")
    cli.ok(*base, "--free", "device.latency_read=0us..60us", "--hold-out", "depth=4")
    page = Page(browser, measured / "drawn.html")
    assert page.texts("#jobs figcaption") == ["d: randread, 4 KiB, one job, spdk"]
    # Six depths: five fitted, one held out.
    assert page.tab.locator("#jobs .marks .point").count() == 6
    assert page.tab.locator("#jobs .marks .point.best").count() == 1
    assert page.tab.locator("#jobs .marks .line").count() == 1
    page.tab.fill("#filter", "depth<4")
    assert page.tab.locator("#jobs .marks .point").count() == 2
    assert page.texts("#count") == ["2 of 6 rows"]
    assert findings(page.tab) == []
    page.close()
