"""``ftlab serve`` with the clients that people use: libnbd's, qemu's, fio."""

from __future__ import annotations

import json
import os
import signal
import socket
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import campaign
from live import DEVICES, need, served, without_times


@pytest.mark.parametrize("name", DEVICES)
@pytest.mark.parametrize("how", ["--time free", "--speed 20", "--time free --media m.nand"])
def test_a_recording_replays_to_the_same_result(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cli: Any, name: str, how: str
) -> None:
    """fio verifies the bytes that it wrote, and the recording replays to the result that was reported."""
    need("fio")
    monkeypatch.chdir(tmp_path)
    recording = tmp_path / "recording.csv"
    with served(tmp_path, *DEVICES[name], *how.split(), "--record", str(recording)) as device:
        fio = ["fio", "--name=job", "--ioengine=nbd", f"--uri={device.uri}", "--rw=randrw", "--iodepth=16"]
        sizes = ["--bsrange=512-16k", "--size=8m", "--verify=crc32c", "--verify_fatal=1", "--fsync=37"]
        device.client(*fio, *sizes, "--do_verify=1")
    # A device with its flash in a file can lose power, so it has the setting ftl.power_safe.
    safe = ("--set", "ftl.power_safe=true") if "--media" in how else ()
    replayed = json.loads(cli.ok("run", *DEVICES[name], *safe, "--trace", str(recording), "--json", "-"))
    assert without_times(replayed) == without_times(device.result)
    assert device.result["trace"]["requests"] > 1000
    late = device.result["live"]["lateness"]["count"]
    assert (late == 0) == ("free" in how)


def test_copies_come_back_and_holes_are_known(tmp_path: Path) -> None:
    """Checks copies to the device and back by nbdcopy, nbdinfo's map, qemu-img's comparison, and nbdsh's
    trims and zeroes.
    """
    need("nbdcopy", "nbdinfo", "qemu-img")
    sent, back = tmp_path / "sent", tmp_path / "back"
    size = (1 << 30) if campaign.long() else (20 << 20)
    blocks = f"flash.blocks_per_plane={256 * (size // (20 << 20))}"
    sent.write_bytes(os.urandom(size))
    with served(tmp_path, *DEVICES["dftl"], "--set", blocks, "--time", "free") as device:
        assert stat.S_IMODE(device.path.stat().st_mode) == 0o600
        device.client("nbdcopy", str(sent), device.uri)
        device.client("nbdcopy", device.uri, str(back))
        assert back.read_bytes()[:size] == sent.read_bytes()
        assert not back.read_bytes()[size:].strip(b"\0")
        extents = json.loads(device.client("nbdinfo", "--map", "--json", device.uri))
        assert [at["type"] for at in extents] == [0, 3] and extents[0]["length"] == size
        device.client("qemu-img", "compare", "-f", "raw", "-F", "raw", device.uri, str(back))
        told = json.loads(device.client("nbdinfo", "--json", "--list", device.uri))["exports"]
        assert [export["export-name"] for export in told] == [""]
        assert told[0]["can_multi_conn"] and told[0]["can_fua"] and not told[0]["is_read_only"]


def test_what_qemu_writes_is_there(tmp_path: Path) -> None:
    """Writes, zeroes, discards and reads back with qemu-io, or with the program that ``FTLAB_QEMU_IO`` names.

    Regression: from 10.0 on qemu asks for extended headers, and sends the data of a write without the flag
    that announces them; the write failed with "Invalid argument".
    """
    qemu = os.environ.get("FTLAB_QEMU_IO", "qemu-io")
    need(qemu)
    with served(tmp_path, *DEVICES["page"], "--time", "free") as device:
        steps = ["write -P 97 4096 512", "write -f -P 98 8192 65536", "write -z -u 12288 8192", "flush"]
        steps += ["discard 40960 8192", "read -P 97 4096 512", "read -P 98 8192 4096", "read -P 0 12288 8192"]
        steps += ["read -P 0 40960 8192", "read -P 98 49152 4096", "read -P 0 4608 3584"]
        words = [word for step in steps for word in ("-c", step)]
        told = device.client(qemu, "-f", "raw", "-d", "unmap", *words, device.uri)
        assert "failed" not in told and told.count("ops; ") == len(steps) - 1, told


def test_trims_zeroes_and_flushes(tmp_path: Path) -> None:
    """A trim covers only whole pages, writing zeroes covers every byte, and these as well as flushes reach
    the simulation.
    """
    need("nbdsh")
    script = """
h.connect_uri(URI)
h.pwrite(b"x" * 20000, 0, nbd.CMD_FLAG_FUA)
h.trim(8000, 1000)
assert h.pread(20000, 0) == b"x" * 4096 + bytes(4096) + b"x" * 11808
h.zero(9000, 9000)
assert h.pread(20000, 0) == b"x" * 4096 + bytes(4096) + b"x" * 808 + bytes(9000) + b"x" * 2000
h.zero(100, 0, nbd.CMD_FLAG_NO_HOLE | nbd.CMD_FLAG_FUA)
h.cache(4096, 0)
h.flush()
assert h.pread(4096, 0) == bytes(100) + b"x" * 3996
try:
    h.pwrite(b"y" * 4096, h.get_size() - 2048)
    raise SystemExit("a write beyond the end was taken")
except nbd.Error as error:
    assert error.errno in ("ENOSPC", "EINVAL"), error
"""
    recording = tmp_path / "recording.csv"
    with served(tmp_path, *DEVICES["page"], "--time", "free", "--record", str(recording)) as device:
        device.shell(script)
    ops = [line.split(",")[1] for line in recording.read_text().splitlines()[1:]]
    assert ops == ["WF", "T", "R", "W", "T", "W", "R", "WF", "F", "R"]


def test_a_read_only_export_refuses_writes(tmp_path: Path) -> None:
    """The export announces that it is read-only, and refuses all writes."""
    need("nbdsh")
    script = """
h.set_strict_mode(0)
h.connect_uri(URI)
assert h.is_read_only() and h.pread(512, 0) == bytes(512)
for refused in (lambda: h.pwrite(b"x", 0), lambda: h.zero(512, 0), lambda: h.trim(512, 0)):
    try:
        refused()
        raise SystemExit("a write was taken")
    except nbd.Error as error:
        assert error.errno == "EPERM", error
"""
    with served(tmp_path, *DEVICES["page"], "--read-only") as device:
        device.shell(script)
    assert device.result["trace"]["writes"] == 0


def test_requests_take_the_time_that_was_asked(tmp_path: Path) -> None:
    """No request completes before its time: reads take 20 ms, programs 30 ms."""
    need("nbdsh")
    slow = ["--set", "flash.read=20ms", "--set", "flash.program=30ms"]
    script = """
import time
h.connect_uri(URI)
for ask, least in ((lambda: h.pwrite(b"x" * 4096, 0), 0.03), (lambda: h.pread(4096, 0), 0.02)):
    since = time.monotonic()
    ask()
    took = time.monotonic() - since
    assert least <= took < least + 0.5, took
"""
    with served(tmp_path, *DEVICES["page"], *slow) as device:
        device.shell(script)
    assert device.result["live"]["lateness"]["count"] == 2
    assert device.result["latency"]["read"]["max_ns"] == 20_000_000


def kept_awake_ns(process: int) -> int:
    """Returns the processor time that a process's threads of the lowest priority have used."""
    threads = [
        at
        for at in Path(f"/proc/{process}/task").iterdir()
        if os.getpriority(os.PRIO_PROCESS, int(at.name)) == 19
    ]
    return sum(int((at / "schedstat").read_text().split()[0]) for at in threads)


def test_processors_are_kept_awake_for_a_prompt_client_alone(tmp_path: Path) -> None:
    need("nbdsh")
    if not 2 <= len(os.sched_getaffinity(0)) <= 4:
        pytest.skip("on one processor, or on more than four, none is kept awake")
    with served(tmp_path, *DEVICES["page"], "--wait", "awake") as device:
        process = device.process.pid
        slowly = "import time\nh.connect_uri(URI)\nfor _ in range(25): time.sleep(0.005); h.pread(4096, 0)"
        device.shell(slowly)
        before = kept_awake_ns(process)
        device.shell(slowly)
        assert kept_awake_ns(process) == before
        # On a busy machine the lowest priority may wait long for its turn.
        for _ in range(20):
            device.shell("h.connect_uri(URI)\nfor _ in range(500): h.pread(4096, 0)")
            if kept_awake_ns(process) > before:
                return
        pytest.fail("no processor was kept awake")


def test_nobody_stays_awake_if_told_to_sleep(tmp_path: Path) -> None:
    need("nbdsh")
    with served(tmp_path, *DEVICES["page"], "--wait", "sleep") as device:
        device.shell("h.connect_uri(URI)\nfor _ in range(200): h.pread(4096, 0)")
        tasks = Path(f"/proc/{device.process.pid}/task").iterdir()
        assert all(os.getpriority(os.PRIO_PROCESS, int(at.name)) < 19 for at in tasks)
    assert device.result["live"]["lateness"]["count"] == 200


def test_both_signals_end_it_cleanly_even_if_ignored(tmp_path: Path) -> None:
    """Both signals end the device cleanly, even if it was started with the signals ignored, as by a shell
    that starts it in the background.
    """
    for number in (signal.SIGINT, signal.SIGTERM):
        before = signal.signal(number, signal.SIG_IGN)
        try:
            with (
                served(tmp_path, *DEVICES["page"], stop=number) as device,
                socket.socket(socket.AF_UNIX) as plain,
            ):
                plain.connect(str(device.path))
                assert plain.recv(18)[:8] == b"NBDMAGIC"
            assert device.result["live"]["connections"] == 1
        finally:
            signal.signal(number, before)


def test_what_cannot_be_served_is_refused(tmp_path: Path, cli: Any) -> None:
    """Addresses of other machines, names in use and contradictory options lead to exit status 2, with a
    reason.
    """
    (tmp_path / "file").write_text("kept")
    with socket.socket(socket.AF_UNIX) as used:
        used.bind(str(tmp_path / "used.sock"))
        used.listen()
        for arguments, word in (
            (("--nbd", "tcp:0.0.0.0:10809"), "tunnel"),
            (("--nbd", "somewhere"), "unix:PATH"),
            (("--nbd", f"unix:{tmp_path}/file"), "not a socket"),
            (("--nbd", f"unix:{tmp_path}/used.sock"), "another process listens"),
            (("--nbd", "tcp:127.0.0.1:0", "--time", "free", "--speed", "2"), "--speed"),
            (("--nbd", "tcp:127.0.0.1:0", "--time", "free", "--wait", "awake"), "--wait: under --time free"),
            (("--nbd", "tcp:127.0.0.1:0", "--record", "a.txt"), ".csv or .parquet"),
            ((), "--nbd unix:PATH or --fuse DIR"),
        ):
            done = cli("serve", *DEVICES["page"], *arguments)
            assert done.returncode == 2 and word in done.stderr, done.stderr
    assert (tmp_path / "file").read_text() == "kept"
    # A socket on which nobody listens any more is taken over.
    assert (tmp_path / "used.sock").exists()
    again = [sys.executable, "-m", "ftlab", "serve", *DEVICES["page"], "--nbd", f"unix:{tmp_path}/used.sock"]
    with subprocess.Popen(again, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr
        assert process.stderr.readline().startswith("serving ")
        process.send_signal(signal.SIGINT)
        assert process.wait(timeout=60) == 0


def test_a_running_device_is_asked_and_told(tmp_path: Path, cli: Any) -> None:
    """`ftlab ctl` works over either socket: it asks for the result so far, flushes, trims everything and
    stops.
    """
    need("nbdsh")
    with served(tmp_path, *DEVICES["page"], "--time", "free") as device:
        control = device.path.with_name("live.sock.ctl")
        assert stat.S_IMODE(control.stat().st_mode) == 0o600
        device.shell('h.connect_uri(URI)\nh.pwrite(b"x" * 16384, 0)')
        stats = json.loads(cli.ok("ctl", str(device.path), "stats"))
        assert stats["trace"]["writes"] == 1 and stats["live"]["payload_bytes"] == 16384
        assert cli.ok("ctl", str(control), "flush") == ""
        cli.ok("ctl", str(control), "trim-all")
        device.shell("h.connect_uri(URI)\nassert h.pread(16384, 0) == bytes(16384)")
        refused = cli("ctl", str(tmp_path / "nothing"), "stats")
        assert refused.returncode == 2 and "no live device" in refused.stderr
        cli.ok("ctl", str(device.path), "stop")
        device.process.wait(timeout=30)
    assert not control.exists()
    assert device.result["trace"]["requests"] >= 4


def test_a_read_only_device_is_not_trimmed(tmp_path: Path, cli: Any) -> None:
    """The control socket is not a way around `--read-only`."""
    with served(tmp_path, *DEVICES["page"], "--read-only") as device:
        refused = cli("ctl", str(device.path), "trim-all")
        assert refused.returncode == 2 and "read-only" in refused.stderr
