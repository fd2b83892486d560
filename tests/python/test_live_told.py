"""What a live device is told while it runs, its state on the way into runs, and latencies by program."""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import time
from pathlib import Path
from typing import Any

import pytest

import ftlab
from front import Cli
from live import DEVICES, lacks, need, served, without_times
from stores import FLUSH, READ, TRIM, WRITE, Client

MADE = "m.nand: made"
LEFT = "m.nand: left by a clean stop"
SAFE = ("--set", "ftl.power_safe=true")
WORN = ["crash", "--set", "ftl.kind=page"]
KINDS = ("page", "dftl", "msftl", "tpftl", "bast", "fast")
ERRORS = [*WORN, "--set", "flash.errors.process=tlc-72-layer", "--set", "flash.ecc_unit=1KiB"]


@pytest.fixture(autouse=True)
def alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Hides the devices of other tests, and makes the test's directory the current one."""
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    monkeypatch.chdir(tmp_path)


def small(kind: str) -> list[str]:
    """Returns a device of a few MiB with this FTL."""
    hybrid = ["--set", "ftl.log_blocks=15%"] if kind in ("bast", "fast") else []
    return ["crash", "--set", f"ftl.kind={kind}", *hybrid]


def overwrite(path: Path, seed: int, requests: int = 600) -> None:
    """Writes here and there in half of the device, with a read, a trim and a flush now and then."""
    with Client(path) as client:
        places = client.size // 2 >> 14
        for at in range(requests):
            place = (at * 7919 + seed * 104729) % places << 14
            client.ask(WRITE, place, data=bytes([at % 251]) * (1 << 14 if at % 2 else 1 << 12))
            if at % 100 == 99:
                client.ask(READ, place, 1 << 12)
                client.ask(TRIM, place, 1 << 12)
                client.ask(FLUSH)


def replayed(cli: Cli, device: list[str], state: str, trace: str) -> dict[str, Any]:
    """Returns what a run of a recording gives on the device in a file."""
    text = cli.ok("run", *device, *SAFE, "--load-state", state, "--trace", trace, "--json", "-")
    return without_times(json.loads(text))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("end", ["stop", "kill"])
def test_a_used_device_replays_as_it_was_used(tmp_path: Path, cli: Cli, kind: str, end: str) -> None:
    """A second use of a media file, which a clean stop or a kill has left, replays to the byte on the file as
    it was before; reading it leaves it as it is.
    """
    preset = small(kind)
    device = [*preset, "--time", "free", "--media", "m.nand"]
    before = tmp_path / "before.nand"
    if end == "stop":
        with served(tmp_path, *device, said=MADE) as made:
            overwrite(made.path, 1)
    else:
        with pytest.raises(AssertionError), served(tmp_path, *device, said=MADE, stop=signal.SIGKILL) as made:
            overwrite(made.path, 1)
    shutil.copy(tmp_path / "m.nand", before)
    kept = before.read_bytes()
    with served(tmp_path, *device, "--record", "second.csv", said="m.nand: ") as again:
        assert again.said.startswith(LEFT) == (end == "stop")
        overwrite(again.path, 2)
    # What a new device has not: blocks that were erased before.
    assert again.result["wear"]["max"] > 1
    assert replayed(cli, preset, "before.nand", "second.csv") == without_times(again.result)
    assert before.read_bytes() == kept


def test_a_running_device_is_saved(tmp_path: Path, cli: Cli) -> None:
    """`ctl save` writes the state that a clean stop leaves in the media file, of any device."""
    for kind in ("dftl", "msftl", "fast"):
        preset = small(kind)
        device = [*preset, "--time", "free", "--media", "m.nand"]
        with served(tmp_path, *device, said=MADE) as running:
            overwrite(running.path, 1)
            refused = cli("ctl", "save", "m.nand")
            assert refused.returncode == 2 and "holds the flash of this device" in refused.stderr
            cli.ok("ctl", "flush")
            cli.ok("ctl", "save", "saved.state")
        load = ("--trace", "load.csv", "--json", "-")
        rows = "".join(f"{at}000,{'RWT'[at % 3]},{at * 37 % 256 * 4096},4096\n" for at in range(3000))
        Path("load.csv").write_text(f"time_ns,op,offset,size\n{rows}")
        states = [
            json.loads(cli.ok("run", *preset, *SAFE, "--load-state", state, *load))
            for state in ("saved.state", "m.nand")
        ]
        assert without_times(states[0]) == without_times(states[1])
        assert states[0]["wear"]["max"] > 0
        Path("m.nand").unlink()


def test_a_device_of_python_is_that_of_a_media_file(tmp_path: Path) -> None:
    device = [*WORN, "--time", "free", "--media", "m.nand"]
    with served(tmp_path, *device, said=MADE) as running:
        overwrite(running.path, 1)
    keys = {"ftl.kind": "page", "ftl.power_safe": True}
    simulation = ftlab.Simulation("crash", set=keys, load_state="m.nand")
    assert simulation.result()["wear"]["max"] == running.result["wear"]["max"] > 0


def test_what_is_not_the_device_of_a_media_file(tmp_path: Path, cli: Cli) -> None:
    device = [*DEVICES["page"], "--time", "free", "--media", "m.nand"]
    load = ("--load-state", "m.nand", "--set", "workload.synthetic.requests=10")
    with served(tmp_path, *device, said=MADE):
        refused = cli("run", *DEVICES["page"], *SAFE, *load)
        assert refused.returncode == 2 and "another process has it open" in refused.stderr
    refused = cli("run", *DEVICES["page"], *load)
    assert refused.returncode == 2 and "ftl.power_safe: true there, false here" in refused.stderr
    media = tmp_path / "m.nand"
    media.write_bytes(media.read_bytes()[:-1])
    refused = cli("run", *DEVICES["page"], *SAFE, *load)
    assert refused.returncode == 2 and "damaged" in refused.stderr and "Traceback" not in refused.stderr


def test_sectors_fail_until_they_are_written(tmp_path: Path, cli: Cli) -> None:
    """Reads of bad sectors fail with EIO, a write heals them; writes of bad sectors fail. The
    recording replays to the result all the same.
    """
    with (
        served(tmp_path, *DEVICES["page"], "--time", "free", "--record", "r.csv") as device,
        Client(device.path) as client,
    ):
        client.ask(WRITE, 0, data=b"a" * 16384)
        cli.ok("ctl", "fail", "read", "9", "24-31")
        for offset, length in ((4096, 4096), (0, 16384), (4608, 512), (12288, 512)):
            with pytest.raises(OSError, match="Input/output"):
                client.ask(READ, offset, length)
        assert client.ask(READ, 5120, 512) == b"a" * 512
        client.ask(WRITE, 4608, data=b"b" * 512)
        assert client.ask(READ, 4608, 1024) == b"b" * 512 + b"a" * 512
        client.ask(TRIM, 12288, 4096)
        assert client.ask(READ, 12288, 4096) == bytes(4096)
        cli.ok("ctl", "fail", "write", "0-7")
        with pytest.raises(OSError, match="Input/output"):
            client.ask(WRITE, 0, data=b"c" * 4096)
        assert client.ask(READ, 0, 4096) == b"a" * 4096
        cli.ok("ctl", "fail", "none")
        client.ask(WRITE, 0, data=b"c" * 4096)
        assert client.ask(READ, 0, 4096) == b"c" * 4096
        for words, why in (
            (("fail", "read"), "write fail"),
            (("fail", "read", "x"), "7-9"),
            (("fail", "read", str(1 << 40)), "beyond the device"),
            (("fail",), "write fail read|write LBA"),
        ):
            refused = cli("ctl", *words)
            assert refused.returncode == 2 and why in refused.stderr, refused.stderr
    assert device.result["live"]["failed"] == {"reads": 4, "writes": 1}
    text = cli.ok("run", *DEVICES["page"], "--trace", "r.csv", "--json", "-")
    assert without_times(json.loads(text)) == without_times(device.result)


def test_a_slow_device_is_slow_and_its_recording_says_so(tmp_path: Path, cli: Cli) -> None:
    """The cells take FACTOR times as long, until they are told otherwise; a replay warns."""
    times = ["--set", "flash.read=100us", "--set", "flash.program=1ms", "--set", "flash.transfer=0ns"]
    for recording in ("r.csv", "r.parquet"):
        device_ = [*DEVICES["page"], *times, "--time", "free", "--record", recording]
        with served(tmp_path, *device_) as device, Client(device.path) as client:
            slowest = []
            for factor in (None, "3.5", "1"):
                if factor:
                    cli.ok("ctl", "slow", factor)
                client.ask(WRITE, 0, data=b"x" * 4096)
                client.ask(READ, 0, 4096)
                latency = json.loads(cli.ok("ctl", "stats"))["latency"]
                slowest.append([latency[kind]["max_ns"] for kind in ("read", "write")])
            told = json.loads(cli.ok("ctl", "stats"))["live"]["told"]
            shown = cli.ok("top")
        assert slowest == [[100_000, 1_000_000], [350_000, 3_500_000], [350_000, 3_500_000]]
        assert [each["command"] for each in told] == ["slow 3.5", "slow 1"]
        assert "told: slow 3.5, slow 1" in shown
        latency = device.result["latency"]["read"]
        assert latency["mean_ns"] == pytest.approx(550_000 / 3)
        # Two programs took 1 ms, one 3.5 ms.
        programs = device.result["flash"]["program_time"]
        assert programs["count"] == 3 and programs["mean_ns"] == pytest.approx(5_500_000 / 3)
        done = cli("run", *DEVICES["page"], *times, "--trace", recording)
        assert done.returncode == 0 and "told to behave differently" in done.stderr, done.stderr


def test_a_worn_device_fails_at_last_and_its_health_says_so(tmp_path: Path, cli: Cli) -> None:
    """With wear and age reads are repeated, then fail; endurance runs out, and the device turns read-only."""
    limit = ["--set", "flash.endurance=5000", "--set", "ftl.spare_blocks=2"]
    with (
        served(tmp_path, *ERRORS, *limit, "--time", "free") as device,
        Client(device.path) as client,
    ):
        for at in range(64):
            client.ask(WRITE, at * 4096, data=b"x" * 4096)

        def read() -> tuple[int, dict[str, Any]]:
            """Reads all that was written; returns how many reads failed, and the result so far."""
            failed = 0
            for at in range(64):
                try:
                    assert client.ask(READ, at * 4096, 4096) == b"x" * 4096
                except OSError:
                    failed += 1
            return failed, json.loads(cli.ok("ctl", "stats"))

        failed, fresh = read()
        assert failed == 0 and fresh["health"]["emmc_ext_csd"]["DEVICE_LIFE_TIME_EST_TYP_A"] == 1
        cli.ok("ctl", "wear", "4500")
        cli.ok("ctl", "age", "2000")
        failed, worn = read()
        assert failed == 0 and worn["errors"]["retries"] > fresh["errors"]["retries"]
        assert worn["latency"]["read"]["max_ns"] > fresh["latency"]["read"]["max_ns"]
        assert worn["health"]["nvme_smart"]["percentage_used"] in (89, 90)
        assert worn["health"]["emmc_ext_csd"]["DEVICE_LIFE_TIME_EST_TYP_A"] in (9, 10)
        cli.ok("ctl", "wear", "100000")
        cli.ok("ctl", "age", "800000")
        # Regression: beyond what fits in nanoseconds the device died.
        for _ in range(4):
            cli.ok("ctl", "age", "876000")
        failed, lost = read()
        assert failed > 0 and lost["health"]["failed"]["reads"] == failed
        assert lost["health"]["media_errors"] >= failed
        with pytest.raises(OSError, match="Input/output"):
            for at in range(20000):
                client.ask(WRITE, at % 256 * 4096, data=b"y" * 4096)
        shown = cli.ok("top")
    assert device.result["health"]["state"] == "read-only"
    assert device.result["health"]["nvme_smart"]["critical_warning"] & 8
    assert "health: read-only" in shown and "read errors:" in shown


@pytest.mark.parametrize("name", ["dftl", "msftl", "fast"])
def test_a_device_turns_read_only(tmp_path: Path, cli: Cli, name: str) -> None:
    """Writes fail with EIO, reads go on, and what was written is there."""
    with (
        served(tmp_path, *DEVICES[name], "--time", "free") as device,
        Client(device.path) as client,
    ):
        client.ask(WRITE, 0, data=b"x" * 65536)
        cli.ok("ctl", "readonly")
        for command, length in ((WRITE, 0), (TRIM, 4096), (FLUSH, 0)):
            with pytest.raises(OSError, match="Input/output"):
                client.ask(command, 0, length, data=b"y" * 4096 if command == WRITE else b"")
        assert client.ask(READ, 0, 65536) == b"x" * 65536
        now = json.loads(cli.ok("ctl", "stats"))["health"]
        assert now["state"] == "read-only" and now["failed"]["writes"] == 1
    assert device.result["live"]["told"][0]["command"] == "readonly"


def test_wear_outlasts_the_process(tmp_path: Path, cli: Cli) -> None:
    """The media file has the erase counts that the device was told, however it ends."""
    device = [*WORN, "--time", "free", "--media", "m.nand"]
    with served(tmp_path, *device, said=MADE) as running:
        overwrite(running.path, 1, 200)
        cli.ok("ctl", "wear", "70")
    least = running.result["wear"]["min"]
    assert least >= 70
    for stop in (signal.SIGKILL, signal.SIGTERM):
        try:
            with served(tmp_path, *device, said="m.nand: ", stop=stop) as running:
                stats = json.loads(cli.ok("ctl", "stats"))
                assert stats["wear"]["min"] >= least
        except AssertionError:
            assert stop == signal.SIGKILL
    refused = cli("ctl", "age", "5")
    assert refused.returncode == 2 and "no live device" in refused.stderr


def test_what_a_device_cannot_be_told(tmp_path: Path, cli: Cli) -> None:
    Path("other.txt").write_text("mine")
    with served(tmp_path, *DEVICES["page"], "--time", "free"):
        for words, why in (
            (("age", "5"), "choose flash.errors.process"),
            (("slow", "0"), "a number above 0"),
            (("wear", "1.5"), "erasures are whole"),
            (("slow",), "write slow FACTOR"),
            (("save", "no/such/directory"), "cannot write"),
            (("save", "other.txt"), "exists and is not a saved state"),
            (("fail", "read", *map(str, range(1500))), "longer than 4096 bytes"),
            (("wander",), "holds no command"),
        ):
            refused = cli("ctl", *words)
            assert refused.returncode == 2 and why in refused.stderr, refused.stderr
            assert "Traceback" not in refused.stderr


def test_words_that_are_no_text_are_answered(tmp_path: Path) -> None:
    """Regression: bytes that are not UTF-8 got no answer."""
    with (
        served(tmp_path, *DEVICES["page"], "--time", "free") as device,
        socket.socket(socket.AF_UNIX) as control,
    ):
        control.connect(f"{device.path}.ctl")
        control.sendall(b"st\xff\xfe\n")
        answer = json.loads(b"".join(iter(lambda: control.recv(4096), b"")))
        assert answer == {"error": "the command is not text in UTF-8"}


def test_latencies_are_told_by_program(tmp_path: Path, cli: Cli) -> None:
    """Each client on a Unix socket counts for the program that connected."""
    need("nbdsh")
    begun = time.time()
    with served(tmp_path, *DEVICES["page"], "--time", "free", "--trace-pids") as device:
        overwrite(device.path, 1, 99)
        device.shell('h.connect_uri(URI)\nh.pwrite(b"x" * 65536, 0)\nh.pread(4096, 0)\nh.pread(4096, 0)')
        shown = cli.ok("top")
    programs = {program["name"]: program for program in device.result["live"]["programs"]}
    own = Path(f"/proc/{os.getpid()}/comm").read_text().strip()
    assert programs[own]["write"]["count"] == 99 and programs[own]["processes"] == 1
    other = next(program for name, program in programs.items() if program["read"]["count"] == 2)
    assert other["write"]["count"] == 1 and other["read"]["max_ns"] > 0
    total = sum(program["write"]["count"] for program in programs.values())
    assert total == device.result["trace"]["writes"] == 100
    assert own in shown and other["name"][:8] in shown
    slowest = device.result["live"]["slowest"]
    times = [slow["latency_ns"] for slow in slowest]
    assert len(times) == 20 and times == sorted(times, reverse=True)
    assert times[0] == max(program["write"]["max_ns"] for program in programs.values())
    assert all(begun <= slow["answered_s"] <= time.time() for slow in slowest)
    # A write of several pages takes longer than those of one.
    (large,) = (slow for slow in slowest if slow["length"] == 65536)
    assert (large["program"], large["operation"], large["offset"]) == (other["name"], "write", 0)


def test_programs_are_not_told_apart_unless_asked(tmp_path: Path) -> None:
    with served(tmp_path, *DEVICES["page"], "--time", "free") as device, Client(device.path) as client:
        client.ask(WRITE, 0, data=b"x" * 4096)
    assert not {"programs", "slowest"} & set(device.result["live"])


def test_a_caller_of_the_file_is_known_and_gets_errors(tmp_path: Path, cli: Cli) -> None:
    """Over FUSE a request counts for the process that makes it, and failing blocks are EIO there too."""
    if not Path("/dev/fuse").exists():
        lacks("there is no /dev/fuse")
    arguments = [*DEVICES["page"], "--time", "free", "--trace-pids"]
    with served(tmp_path, *arguments, fuse=True) as device:
        file = os.open(device.disk, os.O_RDWR)
        try:
            os.pwrite(file, b"x" * 8192, 0)
            assert os.pread(file, 4096, 4096) == b"x" * 4096
            cli.ok("ctl", "fail", "read", "0")
            with pytest.raises(OSError, match="Input/output"):
                os.pread(file, 4096, 0)
            cli.ok("ctl", "readonly")
            with pytest.raises(OSError, match="Input/output"):
                os.pwrite(file, b"y" * 4096, 4096)
            assert os.pread(file, 4096, 4096) == b"x" * 4096
        finally:
            os.close(file)
    own = Path(f"/proc/{os.getpid()}/comm").read_text().strip()
    (program,) = (each for each in device.result["live"]["programs"] if each["name"] == own)
    assert program["write"]["count"] == 1 and program["read"]["count"] == 2
