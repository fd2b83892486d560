"""A running live device as others see it: metrics, `ftlab top`, `ftlab ctl` without a path, recordings."""

from __future__ import annotations

import json
import os
import pty
import re
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path

import polars as pl
import pytest

from front import Cli
from ftlab.live import devices
from live import DEVICES, Served, need, served, without_times

DASHBOARD = Path(__file__).resolve().parents[2] / "docs" / "live-dashboard.json"
WRITES = """
h.connect_uri(URI)
for at in range(0, 40 << 20, 1 << 16):
    h.pwrite(b"x" * 65536, at % (20 << 20))
for at in range(0, 4 << 20, 4096):
    h.pread(4096, at)
h.trim(1 << 20, 0)
h.flush()
"""


@pytest.fixture(autouse=True)
def alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Hides the devices of other tests."""
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))


def fetch(device: Served) -> tuple[str, str]:
    """Returns the text of the metrics, and its content type."""
    accept = {"Accept": "application/openmetrics-text;version=1.0.0;q=0.5,text/plain;q=0.3,*/*;q=0.2"}
    return ask(device, "GET", accept)


def ask(device: Served, method: str, headers: dict[str, str]) -> tuple[str, str]:
    """Returns the answer to a query for the metrics, and its content type."""
    said = device.said.removeprefix("metrics at ").strip()
    query = urllib.request.Request(said, headers=headers, method=method)
    with urllib.request.urlopen(query, timeout=10) as answer:
        return answer.read().decode(), answer.headers["Content-Type"]


def samples(text: str) -> dict[str, float]:
    """Returns the value of each metric, by its name with labels."""
    lines = [line.rsplit(" ", 1) for line in text.splitlines() if not line.startswith("#")]
    return {name.replace("{}", ""): float(value) for name, value in lines}


def test_metrics_say_what_the_result_says(tmp_path: Path, cli: Cli) -> None:
    need("nbdsh")
    arguments = [*DEVICES["dftl"], "--time", "free", "--metrics", "127.0.0.1:0"]
    with served(tmp_path, *arguments, said="metrics at") as device:
        device.shell(WRITES)
        text, kind = fetch(device)
        stats = json.loads(cli.ok("ctl", "stats"))
        for path, status in (("", 404), ("/metrics/x", 404), ("/x?/metrics", 404)):
            with pytest.raises(urllib.error.HTTPError, match=str(status)):
                urllib.request.urlopen(device.said.split()[-1].removesuffix("/metrics") + path, timeout=10)
        refused = {"Accept": "application/openmetrics-text;q=0,text/plain"}
        assert ask(device, "GET", refused)[1].startswith("text/plain")
        asked = device.said.split()[-1] + "?x=1"
        with urllib.request.urlopen(asked, timeout=10) as answer:
            assert "ftlab_free_blocks" in answer.read().decode()
    assert kind.startswith("application/openmetrics-text") and text.endswith("# EOF\n")
    found = samples(text)
    for name, field in (("read", "reads"), ("write", "writes"), ("trim", "trims"), ("flush", "flushes")):
        assert found[f'ftlab_latency_seconds_count{{operation="{name}"}}'] == stats["trace"][field] > 0
        assert found[f'ftlab_latency_seconds_bucket{{le="+Inf",operation="{name}"}}'] == stats["trace"][field]
    total = found['ftlab_latency_seconds_sum{operation="read"}']
    mean_ns = stats["latency"]["read"]["mean_ns"]
    assert total == pytest.approx(mean_ns * stats["trace"]["reads"] / 1e9, rel=1e-9)
    parts = {
        f'ftlab_write_amplification_ratio{{cause="{cause}"}}' for cause in stats["waf"] if cause != "total"
    }
    assert parts == {name for name in found if name.startswith("ftlab_write_amplification_ratio")}
    overall = found["ftlab_overall_write_amplification_ratio"]
    assert overall == pytest.approx(stats["waf"]["total"])
    for cause, share in stats["waf"].items():
        if cause == "total":
            continue
        assert found[f'ftlab_write_amplification_ratio{{cause="{cause}"}}'] == pytest.approx(share)
    for kind, field in (("read", "reads"), ("program", "programs"), ("erase", "erases")):
        for cause, number in stats["flash"][field].items():
            assert found[f'ftlab_flash_operations_total{{operation="{kind}",cause="{cause}"}}'] == number
    assert found["ftlab_mapping_hit_ratio"] == pytest.approx(stats["mapping"]["hit_ratio"])
    assert found["ftlab_free_blocks"] == stats["live"]["free_blocks"] > 0
    assert found["ftlab_accepted_connections_total"] == 1 and found["ftlab_connections"] == 0
    assert found["ftlab_payload_bytes"] == stats["live"]["payload_bytes"]
    assert found['ftlab_queue_requests{queue="device"}'] == 0
    assert found["ftlab_simulated_seconds_total"] == pytest.approx(stats["live"]["simulated_ns"] / 1e9)


def test_the_format_of_metrics_is_negotiated(tmp_path: Path) -> None:
    """Without a wish for OpenMetrics the text is in Prometheus' older format, with the same samples; HEAD has
    the head alone.
    """
    need("nbdsh", "curl")
    arguments = [*DEVICES["dftl"], "--time", "free", "--metrics", "127.0.0.1:0"]
    with served(tmp_path, *arguments, said="metrics at") as device:
        device.shell(WRITES)
        text, kind = fetch(device)
        plain, plain_kind = ask(device, "GET", {"Accept": "text/plain"})
        head, head_kind = ask(device, "HEAD", {})
        address = device.said.split()[-1]
        assert device.client("curl", "-s", address) == plain
        assert "Content-Length:" in device.client("curl", "-s", "--head", address)
        with pytest.raises(urllib.error.HTTPError, match="405"):
            ask(device, "DELETE", {})
    assert kind.startswith("application/openmetrics-text; version=1.0.0")
    assert plain_kind == head_kind == "text/plain; version=0.0.4; charset=utf-8" and head == ""
    # Some are NaN, which differs from itself.
    assert repr(samples(plain)) == repr(samples(text))
    types = dict(re.findall("^# TYPE ([^ ]+) ([a-z]+)$", plain, re.MULTILINE))
    for name in samples(plain):
        family = re.sub("_(bucket|sum|count)$", "", re.split("[{ ]", name)[0])
        assert family in types, name
    assert types["ftlab_host_bytes_total"] == "counter" and "UNIT" not in plain and "EOF" not in plain


def test_metrics_have_the_figures_of_parts_own(tmp_path: Path, cli: Cli) -> None:
    """Figures that parts report are metrics with the unit at the end of the name, and with a description;
    without such parts there are no such metrics.
    """
    need("nbdsh")
    policy = f"host.scheduler=python:{DASHBOARD.parents[1]}/examples/policies/shortest.py:ShortestFirst"
    arguments = [*DEVICES["dftl"], "--time", "free", "--metrics", "127.0.0.1:0"]
    for also, named in ((["--set", policy], ["ftlab_own_scheduler_passed_requests"]), ([], [])):
        with served(tmp_path, *arguments, *also, said="metrics at") as device:
            device.shell(WRITES)
            text, _ = fetch(device)
            stats = json.loads(cli.ok("ctl", "stats"))
        found = samples(text)
        assert [name for name in found if "_own_" in name] == named
        for name in named:
            assert found[name] == stats["own"]["scheduler"]["passed"]
            assert f"# HELP {name} {stats['own_legend'][0]['doc']}\n" in text
            assert f"# TYPE {name} gauge" in text and f"# UNIT {name} requests" in text


def test_the_dashboard_shows_what_is_served(tmp_path: Path) -> None:
    """Every metric in the dashboard is served, and every metric that is served is in it."""
    panels = json.loads(DASHBOARD.read_text())["panels"]
    asked = {
        name
        for panel in panels
        for target in panel["targets"]
        for name in re.findall(r"\bftlab_[a-z_]+", target["expr"])
    }
    with served(tmp_path, *DEVICES["page"], "--metrics", "127.0.0.1:0", said="metrics at") as device:
        text, _ = fetch(device)
    names = {re.split("[{ ]", name)[0] for name in samples(text)}
    assert asked <= names, asked - names
    families = {re.sub("_(bucket|sum|count)$", "", name) for name in names}
    assert families == {re.sub("_(bucket|sum|count)$", "", name) for name in asked}


def test_metrics_are_for_this_machine(tmp_path: Path, cli: Cli) -> None:
    for address, word in (("0.0.0.0:9188", "tunnel"), ("9188", "unix:PATH or tcp:HOST:PORT")):
        nbd = f"unix:{tmp_path}/a.sock"
        done = cli("serve", *DEVICES["page"], "--nbd", nbd, "--metrics", address)
        assert done.returncode == 2 and "--metrics" in done.stderr and word in done.stderr, done.stderr


def test_the_only_device_needs_no_name(tmp_path: Path, cli: Cli) -> None:
    """Commands without a path go to the only device; if no device runs, or several do, a message says so.
    Names left by killed devices are removed.
    """
    none = cli("ctl", "stats")
    assert none.returncode == 2 and "no live device of this user runs" in none.stderr
    one, two = tmp_path / "one", tmp_path / "two"
    one.mkdir()
    two.mkdir()
    (tmp_path / "ftlab" / "1.ctl").symlink_to(tmp_path / "gone")
    with served(one, *DEVICES["page"], "--time", "free") as device:
        stats = json.loads(cli.ok("ctl", "stats"))
        assert stats["live"]["time"] == "free"
        with served(two, *DEVICES["page"]):
            for command in (("ctl", "stats"), ("top",)):
                several = cli(*command)
                assert several.returncode == 2 and str(one) in several.stderr and str(two) in several.stderr
        assert json.loads(cli.ok("ctl", str(device.path), "stats"))["live"]["time"] == "free"
        cli.ok("ctl", "stop")
        assert device.process.wait(timeout=30) == 0
    assert list((tmp_path / "ftlab").iterdir()) == []
    assert cli("ctl", "jump").returncode == 2


def test_the_directory_of_names_is_the_users_own(tmp_path: Path, cli: Cli) -> None:
    (tmp_path / "ftlab").mkdir(mode=0o777)
    (tmp_path / "ftlab").chmod(0o777)
    refused = cli("ctl", "stats")
    assert refused.returncode == 2 and "for this user only" in refused.stderr


def test_top_shows_the_device(tmp_path: Path, cli: Cli) -> None:
    """The device is shown once if the output is not a terminal, and again and again if it is."""
    need("nbdsh")
    with served(tmp_path, *DEVICES["dftl"], "--speed", "100") as device:
        device.shell(WRITES)
        # A line may be broken anywhere in a long path of the device.
        shown = " ".join(cli.ok("top").split())
        for text in (
            "FTL dftl",
            "time real, speed 100",
            "1024",
            "hit ratio",
            "write amplification",
            "lateness",
        ):
            assert text in shown, shown
        assert watched(device) > 2


def watched(device: Served) -> int:
    """Returns how often `ftlab top` draws the device within a few seconds."""
    main, terminal = pty.openpty()
    command = [sys.executable, "-m", "ftlab", "top", str(device.path), "--interval", "0.2"]
    with subprocess.Popen(command, stdin=terminal, stdout=terminal, stderr=terminal) as process:
        os.close(terminal)
        text, end = b"", time.monotonic() + 20
        while text.count(b"requests") < 4 and time.monotonic() < end:
            text += os.read(main, 1 << 16)
        process.terminate()
        os.close(main)
    return text.count(b"requests")


@pytest.mark.parametrize("how", [["--time", "free"], ["--speed", "20"]], ids=["free", "real"])
def test_a_parquet_recording_replays_to_the_same_result(tmp_path: Path, cli: Cli, how: list[str]) -> None:
    """A Parquet recording replays to the result of the device; it has the columns that `trace convert`
    writes, and one for the number of outstanding requests.
    """
    need("nbdsh")
    recording = tmp_path / "recording.parquet"
    with served(tmp_path, *DEVICES["dftl"], *how, "--record", str(recording)) as device:
        device.shell(WRITES + 'h.pwrite(b"y" * 512, 0, nbd.CMD_FLAG_FUA)\n')
    replayed = json.loads(cli.ok("run", *DEVICES["dftl"], "--trace", str(recording), "--json", "-"))
    assert without_times(replayed) == without_times(device.result)
    (tmp_path / "a.csv").write_text("time_ns,op,offset,size\n0,W,0,4096\n")
    cli.ok("trace", "convert", str(tmp_path / "a.csv"), str(tmp_path / "a.parquet"))
    converted = pl.read_parquet_schema(tmp_path / "a.parquet")
    assert pl.read_parquet_schema(recording) == {
        **converted,
        "outstanding": pl.UInt32,
        "latency_ns": pl.Int64,
    }
    assert not list(tmp_path.glob(".recording*"))


def test_waits_for_a_processor_are_told(tmp_path: Path, cli: Cli) -> None:
    """The result has how long threads of the device waited for a processor; what two clients cause by
    themselves on one processor is counted, and `top` shows it.
    """
    need("nbdsh", "taskset")
    with served(tmp_path, *DEVICES["page"]) as device:
        subprocess.run(["taskset", "-acp", "0", str(device.process.pid)], check=True, capture_output=True)
        loop = "import os\nos.sched_setaffinity(0, {0})\nwhile True: pass"
        with subprocess.Popen([sys.executable, "-c", loop]) as busy:
            device.shell("h.connect_uri(URI)\nfor at in range(300): h.pwrite(bytes(4096), 4096 * at)")
            told = cli.ok("top", str(device.path))
            busy.kill()
    found = device.result["live"]["interference"]
    assert found["served_ns"] >= device.result["latency"]["write"]["min_ns"] * 300
    assert found["wait_ns"] > 0 and found["involuntary_switches"] > 0
    assert found["wait_share"] == found["wait_ns"] / found["served_ns"]
    assert found["pressure"] is None or 0 < found["pressure"] <= 1
    assert "wait for processors: " in told
    warned = "threads of the device waited for a processor" in device.ended
    assert warned == (found["wait_share"] > devices.NOTICEABLE)


@pytest.mark.parametrize(
    ("share", "time_", "warns"),
    [(0.11, "real", True), (0.1, "real", False), (None, "real", False), (9.0, "free", False)],
)
def test_more_than_a_tenth_is_warned_of(share: float | None, time_: str, warns: bool) -> None:
    found = {"wait_share": share, "pressure": None}
    assert (devices.interfered({"time": time_, "interference": found}) is not None) == warns


def test_clients_are_tenants_by_their_exports(tmp_path: Path, cli: Cli) -> None:
    """`top` has a row for each stream, and so has the result, whose sums are those of all requests."""
    need("nbdsh")
    more = ("--streams", "2", "--set", "workload.tenants=by-stream", "--set", "host.queues=per-tenant")
    with served(tmp_path, *DEVICES["dftl"], *more, "--speed", "100") as device:
        device.shell(WRITES)
        device.shell('URI = URI.replace("///?", "///stream-2?")\n' + WRITES)
        lines = [line.split() for line in cli.ok("top").splitlines()]
        at = next(at for at, words in enumerate(lines) if words[:2] == ["tenant", "requests"])
        rows = [words for words in lines[at + 1 :] if words and words[0] in ("0", "2")]
        assert [words[0] for words in rows] == ["0", "2"], lines
        assert rows[0][1] == rows[1][1] != "0"
    tenants = device.result["tenants"]
    assert [tenant["name"] for tenant in tenants] == ["0", "2"]
    assert tenants[0]["bytes_written"] == tenants[1]["bytes_written"] > 0
    assert sum(tenant["requests"] for tenant in tenants) == device.result["trace"]["requests"]
