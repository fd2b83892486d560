"""``ftlab calibrate`` with logs of fio: levels and steps by hand, and a model whose SLC cache, programs and
over-provisioning are found again from the logs of its own fill and of its own steady writes.
"""

from __future__ import annotations

import csv
import json
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from front import Cli
from ftlab._core import UserError
from ftlab.calibration.intervals import quantity_of
from ftlab.calibration.keys import stages
from ftlab.calibration.logged import logged
from ftlab.calibration.logs import UnusableError, read_log, read_logs
from ftlab.calibration.measured import read
from ftlab.calibration.model import job_of
from ftlab.calibration.readings import readings
from ftlab.calibration.row import FULL, STEADY, Before, Row
from ftlab.configs import load

MIB = 1 << 20
ROOT = Path(__file__).resolve().parents[2]


def log_of(path: Path, rates_mib: list[int], window_ms: int = 1000) -> Path:
    """Writes a log of fio with these rates, in MiB/s; reads among the writes do not count."""
    lines = []
    for number, rate in enumerate(rates_mib, 1):
        lines += [f"{number * window_ms}, 999, 0, 131072, 0, 0"] * (number % 2)
        lines.append(f"{number * window_ms}, {rate * 1024}, 1, 131072, 0, 0")
    path.write_text("\n".join(lines) + "\n")
    return path


def job(
    folder: Path, op: str, name: str, bs: str = "128k", iops: float = 1000.0, written: int = 0, **more: str
) -> Path:
    """Writes the JSON of fio for a job whose log has a name, with ``more`` options."""
    options = {"rw": op, "bs": bs, "iodepth": "32", "write_bw_log": name, "direct": "1", "ioengine": "libaio"}
    options |= {"filename": "/dev/d", **more}
    size = int(bs.removesuffix("k")) * (1024 if bs.endswith("k") else 1)
    figures = {
        "iops": iops,
        "io_bytes": written,
        "total_ios": written // size or 1000,
        "lat_ns": {"mean": 32e9 / iops},
    }
    document = {
        "fio version": "fio-3.33",
        "jobs": [{"jobname": name, "groupid": 0, "error": 0, "job options": options, "write": figures}],
    }
    path = folder / f"{name}.json"
    path.write_text(json.dumps(document))
    return path


def row_of(folder: Path, op: str) -> Row:
    return Row(
        "d", op, 131_072, 32, 1, "", 2760.0, 32e6 / 2760, None, None, None, "", 1, str(folder / "f.json")
    )


def test_levels_by_hand(tmp_path: Path) -> None:
    log = read_log(log_of(tmp_path / "f_bw.1.log", [900, 1100, 1000, 400, 420, 380, 100, 90, 110, 100]))
    assert [round(level.rate / MIB) for level in log.levels()] == [1000, 400, 100]
    assert [round(level.written / MIB) for level in log.levels()] == [3000, 1200, 400]
    assert log.written == log.window_s * 4600 * MIB and log.window_s == 1.0
    # Rates that rise, or vary a little, are one level.
    for rates in ([100, 110, 400, 420], [100, 110, 95, 105, 90, 100], [7]):
        assert len(read_log(log_of(tmp_path / "g_bw.1.log", rates)).levels()) == 1
    assert log.last() is None
    steady = read_log(
        log_of(tmp_path / "h_bw.1.log", [900, 500, 200, 100, 100, 100, 102, 98, 100, 101, 99, 100])
    )
    assert steady.last() == pytest.approx(100 * MIB)


def test_windows_without_writes_have_no_line(tmp_path: Path) -> None:
    """Regression: a rate counted for all the time since the line before, and epoch stamps for half a century.

    fio 3.33 wrote this log of 1,200 KiB in bursts with pauses (log_avg_msec=100); its windows ran late.
    """
    path = tmp_path / "f_bw.1.log"
    text = "128, 3125, 1, 0, 0\n378, 2797, 1, 0, 0\n728, 4000, 1, 0, 0\n"
    path.write_text(text)
    log = read_log(path, 0.1)
    assert log.written == pytest.approx(992 * 1024, rel=1e-3) and log.elapsed_s == pytest.approx(0.7)
    epoch = 1_795_871_081_000
    path.write_text(
        "".join(
            f"{epoch + int(line.split(',')[0])},{line.split(',', 1)[1]}\n"
            for line in text.split("\n")
            if line
        )
    )
    again = read_log(path, 0.1)
    assert (again.written, again.levels()) == (log.written, log.levels())
    assert again.elapsed_s == pytest.approx(0.7, abs=1e-3)
    # Without the options, the usual time between two lines counts.
    path.write_text("".join(f"{epoch + at}, 1024, 1, 0, 0\n" for at in (500, 1000, 1500, 9000, 9500)))
    assert read_log(path).written == pytest.approx(2.5 * MIB)


@pytest.mark.skipif(not shutil.which("fio"), reason="fio is not installed")
@pytest.mark.parametrize("epoch", ["0", "1"])
def test_the_log_of_fio_itself_has_what_it_wrote(tmp_path: Path, epoch: str) -> None:
    """30 bursts of 256 KiB, a pause of 60 ms after each."""
    options = {"rw": "randwrite", "bs": "4k", "size": "8m", "io_size": "7680k", "ioengine": "psync"}
    options |= {"thinktime": "60ms", "thinktime_blocks": "64", "write_bw_log": "f", "log_avg_msec": "20"}
    options |= {"log_unix_epoch": epoch, "filename": "data"}
    command = ["fio", "--name=f", *(f"--{name}={value}" for name, value in options.items())]
    subprocess.run(command, cwd=tmp_path, check=True, capture_output=True)
    written = read_log(tmp_path / "f_bw.1.log", 0.02).written / MIB
    # A busy machine stretches windows, which then count less; by the time between lines it is 24 MiB, with
    # the epoch 1e9.
    assert 0 < written < 9, written


def test_a_log_that_is_not_of_windows_leaves_the_mean(tmp_path: Path) -> None:
    """Regression: fio's default, a line for each request, and the log of several jobs ended `calibrate`."""
    (tmp_path / "f_bw.1.log").write_text("0, 14590, 1, 4096, 0\n0, 11774, 1, 4096, 0\n1, 8989, 1, 4096, 0\n")
    job(tmp_path, "randwrite", "f")
    (tmp_path / "g_bw.log").write_text("500, 9, 1, 0, 0\n500, 9, 1, 0, 0\n1000, 9, 1, 0, 0\n")
    job(tmp_path, "write", "g")
    said: list[str] = []
    assert [(row.state, row.iops) for row in read([tmp_path], said.append)] == [("", 1000.0)] * 2
    taken = [note for note in said if note.endswith("the mean of the whole job is taken")]
    assert ["the time does not go on in line " in note for note in taken] == [True, True]


def test_a_level_log_is_not_yet_steady(tmp_path: Path) -> None:
    """Regression: a log of 12 s and 5 GB on a drive of 2 TB was taken for steady state."""

    def found() -> tuple[list[str], list[str]]:
        said: list[str] = []
        rows = read([tmp_path], said.append)
        taken = [note for note in said if "level at its end" in note]
        return [row.found for row in rows if row.op == "randwrite"], taken

    log_of(tmp_path / "r_bw.1.log", [400] * 12)
    job(tmp_path, "randwrite", "r", "4k", 400 * 256.0)
    states, said = found()
    assert states == ["empty"]
    assert "5.0 GB written; no fill tells what the drive holds: not taken for steady" in said[0]
    # Nor where it fell, as a fill says how much the drive holds.
    log_of(tmp_path / "r_bw.1.log", [800] * 4 + [400] * 8)
    states, said = found()
    assert states == ["steady"] and "taken for steady, as its rate fell before" in said[0]
    (tmp_path / "fill").mkdir()
    fill = job(tmp_path / "fill", "write", "a", written=2_000_000_000_000)
    (tmp_path / "fill" / "a_bw.1.log").write_text("")
    states, said = found()
    assert states == ["empty"] and "6.7 GB written of the 2,000.0 GB of d: not taken" in said[-1]
    fill.unlink()
    job(tmp_path / "fill", "write", "a", written=6_000_000_000)
    assert found()[0] == ["steady"]


def test_a_fill_tells_a_buffer_and_a_cache(tmp_path: Path) -> None:
    # Windows of 10 ms: 40 MiB at 1,000 MiB/s, then 320 MiB at 500, and 100 for the rest.
    log_of(tmp_path / "f_bw.1.log", [1000] * 4 + [500] * 64 + [100] * 640, window_ms=10)
    job(tmp_path, "write", "f")
    first, full = read([tmp_path])
    assert (first.state, full.state) == ("", FULL)
    assert first.iops == pytest.approx(500 * 8) and full.iops == pytest.approx(100 * 8)
    assert first.iops * first.mean_us == pytest.approx(32e6)
    settings = json.loads(load("map-plus", []).json())
    flash = {"channels": 1, "chips_per_channel": 1, "blocks_per_plane": 250, "pages_per_block": 256}
    settings["flash"] |= {**flash, "page": "4KiB"}
    settings["ftl"]["over_provisioning"] = "0%"
    buffer, cache = readings([first, full], settings)
    # What drained meanwhile was not held: half of the 40 MiB.
    assert (buffer.name, buffer.best) == ("device.write_buffer", f"{20 * 1024}KiB")
    assert (buffer.low, buffer.high) == (f"{15 * 1024}KiB", f"{25 * 1024}KiB")
    # The fill wrote 1,000 MiB, the model has 250.
    assert (cache.name, cache.best) == ("ftl.slc_cache", "dynamic:80MiB")
    assert (cache.low, cache.high) == ("79MiB", "81MiB")


def test_a_log_that_is_missing_or_not_steady_is_said(tmp_path: Path) -> None:
    said: list[str] = []
    assert logged(row_of(tmp_path, "write"), {}, said.append) == [row_of(tmp_path, "write")] and not said
    options = {"write_bw_log": "logs/f"}
    assert logged(row_of(tmp_path, "write"), options, said.append) == [row_of(tmp_path, "write")]
    assert said.pop().endswith("f_bw.1.log: the mean of the whole job is taken")
    log_of(tmp_path / "f_bw.1.log", [900, 500, 400, 300, 200, 180, 150, 130])
    assert not logged(row_of(tmp_path, "randwrite"), options, said.append)
    assert "not steady at its end" in said.pop()
    log_of(tmp_path / "f_bw.1.log", [345_000] * 8, window_ms=10)
    assert logged(row_of(tmp_path, "write"), options, said.append) == [row_of(tmp_path, "write")]
    assert "f_bw.1.log: 361,759 MB/s in the mean, and 362 in " in said.pop()
    log_of(tmp_path / "f_bw.2.log", [900])
    logged(row_of(tmp_path, "write"), options, said.append)
    assert "2 files are" in said.pop()


def test_logs_of_several_workers_are_added_up(tmp_path: Path) -> None:
    """Regression: fio writes a log for each worker, and a job of several had the mean of all of it."""
    log_of(tmp_path / "f_bw.1.log", [900, 900, 400, 400, 400])
    second = log_of(tmp_path / "f_bw.2.log", [300, 300, 100, 0, 100])
    # fio has no line for a window without requests, and lines are late by some milliseconds.
    lines = [line.replace("000,", "004,", 1) for line in second.read_text().splitlines()]
    second.write_text("\n".join(line for line in lines if ", 0, 1," not in line) + "\n")
    paths = [tmp_path / "f_bw.1.log", second]
    log = read_logs(paths)
    assert [rate / MIB for rate in log.rates] == [1200, 1200, 500, 400, 500]
    assert (log.times_s, log.window_s) == ((1.0, 2.0, 3.0, 4.0, 5.0), 1.0)
    row = replace(row_of(tmp_path, "write"), jobs=2, iops=6000.0)
    said: list[str] = []
    first, full = logged(row, {"write_bw_log": "f"}, said.append)
    assert (round(first.iops * first.bs / MIB), full.state) == (1200, FULL) and not said
    log_of(second, [300] * 5, window_ms=500)
    with pytest.raises(UnusableError, match=r"has windows of 1 s, and .*2\.log of 0\.5"):
        read_logs(paths)


@pytest.mark.skipif(not shutil.which("fio"), reason="fio is not installed")
def test_fio_writes_a_log_for_each_worker(tmp_path: Path) -> None:
    """Three workers with pauses: how long they take says nothing of how much they write."""
    options = {"rw": "write", "bs": "4k", "size": "2m", "ioengine": "psync", "numjobs": "3"}
    options |= {"thinktime": "60ms", "thinktime_blocks": "64", "write_bw_log": "f", "log_avg_msec": "20"}
    command = ["fio", "--name=f", *(f"--{name}={value}" for name, value in options.items())]
    subprocess.run(command, cwd=tmp_path, check=True, capture_output=True)
    paths = sorted(tmp_path.glob("f_bw.*.log"))
    assert len(paths) == 3
    apart = sum(read_log(path, 0.02).written for path in paths)
    assert read_logs(paths, 0.02).written == pytest.approx(apart, rel=1e-3)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("1000, 5, 1\n", ":1: not a line of fio's log"),
        ("1000, 5, 1, 4096\n2000, nan, 1, 4096\n", ":2: not a line"),
        ("1000, -5, 1, 4096\n", ":1: not a line"),
        ("1000, " + "9" * 400 + ", 1, 4096\n", ":1: not a line"),
        ("\x00\xff\n", ":1: not a line"),
    ],
)
def test_a_damaged_log_is_an_error(tmp_path: Path, text: str, said: str) -> None:
    (tmp_path / "f_bw.1.log").write_text(text, encoding="latin-1")
    job(tmp_path, "write", "f")
    with pytest.raises(UserError, match=said):
        read([tmp_path])


KNOWN = """
[host]
queue_depth = 64

[device]
scheduler = "direct"
queue_depth = 64
command_time = "2us"
latency_write = "10us"

[ftl]
kind = "page"
logical_page = "4KiB"
over_provisioning = "OVER"
slc_cache = "CACHE"

[flash]
channels = 2
chips_per_channel = 2
blocks_per_plane = 512
pages_per_block = 48
page = "16KiB"
cell = "tlc"
read = "50us"
programming = "word-line"
program = "PROGRAM"
erase = "1ms"
slc_program = "SLC"
"""
"""A small device with an SLC cache; four keys are put in."""


def model(over: str, cache: str, program: str, slc: str) -> str:
    text = KNOWN.replace("OVER", over).replace("CACHE", cache).replace("PROGRAM", program)
    return text.replace("SLC", slc)


def record(cli: Cli, op: str, requests: int, window_ms: int, *more: str) -> None:
    """Runs a job on the known model and writes what fio would have: its JSON, and its log."""
    pattern, bs = ("sequential", 16_384) if op == "write" else ("random", 4096)
    load_ = {"read_share": "0%", "pattern": pattern, "size": f"{bs}B", "requests": str(requests)}
    keys = [part for key, value in load_.items() for part in ("--set", f"workload.synthetic.{key}={value}")]
    closed = ("--set", "workload.replay=closed", "--set", "host.queue_depth=32")
    cli.ok("run", "known.toml", *closed, *keys, *more, "--requests", f"{op}.csv")
    with (cli.directory / f"{op}.csv").open(newline="") as file:
        ends = [int(each["complete_ns"]) for each in csv.DictReader(file)]
    window_ns = window_ms * 1_000_000
    counts = [0] * (max(ends) // window_ns)
    for end in ends:
        # The last window is not whole.
        if end < len(counts) * window_ns:
            counts[end // window_ns] += bs
    rates = [count / window_ms * 1000 / 1024 for count in counts]
    folder = cli.directory / "measured"
    folder.mkdir(exist_ok=True)
    text = [f"{at * window_ms}, {rate:.0f}, 1, {bs}, 0" for at, rate in enumerate(rates, 1)]
    (folder / f"{op}_bw.1.log").write_text("\n".join(text) + "\n")
    job(folder, op, op, str(bs), len(ends) / (max(ends) / 1e9), bs * len(ends))


def test_cache_programs_and_over_provisioning_are_found_again(tmp_path: Path) -> None:
    cli = Cli(tmp_path, timeout=600)
    (tmp_path / "known.toml").write_text(model("25%", "dynamic:300MiB", "900us", "300us"))
    (tmp_path / "start.toml").write_text(model("10%", "none", "500us", "cell"))
    record(cli, "write", 72_000, 100)
    # As much as the fill wrote, so that the log shows a steady drive.
    record(
        cli, "randwrite", 290_000, 50, "--set", "device.precondition=steady", "--set", "ftl.slc_cache=none"
    )
    rows = {each.state: each for each in read([tmp_path / "measured"])}
    assert set(rows) == {"", FULL, STEADY}
    free = ("flash.program=300us..2ms", "flash.slc_program=100us..900us", "ftl.over_provisioning=8%..50%")
    asked = [part for key in free for part in ("--free", key)]
    cli.ok(
        "calibrate", "start.toml", "--measured", "measured", *asked, "--trials", "3", "--out", "found.toml"
    )
    found = json.loads((tmp_path / "found.json").read_text())
    keys = {each["name"]: each for each in found["keys"]}
    cache = keys["ftl.slc_cache"]
    low, high = quantity_of(cache["low"]), quantity_of(cache["high"])
    assert low <= 300 * MIB <= high, cache
    for name, truth in (
        ("flash.program", 900e3),
        ("flash.slc_program", 300e3),
        ("ftl.over_provisioning", 0.25),
    ):
        low, best, high = (quantity_of(keys[name][part]) for part in ("low", "best", "high"))
        assert low <= truth <= high or best == pytest.approx(truth, rel=0.05), keys[name]
    for each in found["rows"]:
        assert abs(each["errors"]["mean_us"]) < 0.03, each
    text = (tmp_path / "found.toml").read_text()
    assert f'slc_cache = "{cache["best"]}"  # read off a log; ' in text
    # The model that was found, on the same jobs.
    checked = cli("calibrate", "--check", "found.toml", "--measured", "measured", "--most-error", "3%")
    assert checked.returncode == 0, checked.stderr


def test_rows_of_logs_tell_keys_of_their_own() -> None:
    settings = json.loads(load(str(ROOT / "examples" / "drives" / "tlc.toml"), []).json())
    plain = Row("d", "write", 131_072, 32, 1, "", 16e3, 2e3, None, None, None, "", 1)
    full = replace(plain, iops=2e3, mean_us=16e3, state=FULL)
    steady = replace(plain, op="randwrite", bs=4096, iops=1e4, mean_us=3.2e3, state=STEADY)
    found = {
        each.name: {key.name for key in each.free} for each in stages([plain, full, steady], settings, ())
    }
    assert list(found) == ["writes", "steady"]
    assert {"flash.program", "flash.slc_program", "device.write_buffer"} <= found["writes"]
    assert found["steady"] == {"ftl.over_provisioning"}
    # What is behind the cache tells the programs, and a log that shows the buffer fixes its size.
    buffered = replace(plain, before=Before(4e6, 2.1e9, 1e6, 1e12))
    (only,) = stages([buffered], settings, ())
    assert not {"flash.slc_program", "device.write_buffer"} & {key.name for key in only.free}


def test_a_link_that_carries_less_than_was_measured_is_free() -> None:
    """The base's 6 GB/s: rows of 5.9 GB/s leave it, those of 7.4 free it once, from there on."""
    settings = json.loads(load(str(ROOT / "examples" / "drives" / "tlc.toml"), []).json())
    slow = Row("d", "read", 131_072, 32, 1, "", 45e3, 32e6 / 45e3, None, None, None, "", 1)
    fast = replace(slow, iops=56_458.0, mean_us=32e6 / 56_458)
    links = [
        [key for stage in stages(rows, settings, ()) for key in stage.free if key.name == "device.link"]
        for rows in ([slow], [fast], [fast, replace(fast, op="write")], [replace(fast, op="write")])
    ]
    assert [[key.low for key in each] for each in links] == [[], [7400.0], [7400.0], [7400.0]]


def test_a_small_plane_has_the_room_of_a_large_one() -> None:
    settings = json.loads(load("map-plus", []).json())
    settings["flash"]["blocks_per_plane"], settings["ftl"]["over_provisioning"] = 480, "10%"
    row = Row("d", "randwrite", 4096, 32, 1, "", 1.0, 1.0, None, None, None, "", 1, state=STEADY)
    keys = job_of(row, settings)
    # Two blocks are kept: of 48 blocks 4.17 %, of 480 blocks 0.42 %.
    assert (keys["flash.blocks_per_plane"], keys["ftl.over_provisioning"]) == ("48", "13.75%")
    assert keys["device.precondition"] == "steady"
