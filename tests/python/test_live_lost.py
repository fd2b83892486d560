"""Programs on the bare device under power cuts: wrong ones are found, right ones pass, losses are explained.

No file system is mounted, so nearly nothing here needs root. `make soak` runs the long form: 1,000 cuts for
each correct program on each preset.
"""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

import campaign
import ftlab
import stores
from front import Cli
from ftlab.cli import crash_live
from ftlab.live import lost
from live import lacks, need

DRIVE = {"device.precondition": "none", "flash.blocks_per_plane": "32"}
PRESETS: dict[str, dict[str, str]] = {
    "crash": {},
    "coop-bast": {"flash.blocks_per_plane": "512"},
    "coop-fast": {"flash.blocks_per_plane": "512"},
    "map-plus": {"flash.blocks_per_plane": "128"},
    "msftl": {"flash.blocks_per_plane": "64"},
    "vios": {"flash.channels": "2", "flash.chips_per_channel": "2", "flash.blocks_per_plane": "32"},
    "emmc-5.1": {**DRIVE, "flash.programming": "word-line"},
    "nvme-970-pro": {**DRIVE, "flash.programming": "word-line"},
    "nvme-980-pro": DRIVE,
    "nvme-qlc": DRIVE,
    "nvme-zn540": DRIVE,
    "ufs-3.1": DRIVE,
}
"""Every preset, small enough to be opened again and again; word lines programmed page by page are not cut."""
STORES = Path(stores.__file__)


def command_of(how: str, *options: str, preset: str = "crash") -> list[str]:
    """Returns the command of a campaign."""
    keys = [part for key, value in PRESETS[preset].items() for part in ("--set", f"{key}={value}")]
    program = [sys.executable, "-S", "-E", str(STORES), how]
    check = f"{' '.join(program)} judge"
    live = ["crash", preset, *keys, "--live", *options, "--check-command", check]
    return [*live, "--", *program, "load"]


def outcome_of(words: list[str]) -> subprocess.CompletedProcess[str]:
    """Returns the outcome of a command of ftlab."""
    most = 36_000 if campaign.long() else 600
    words = [sys.executable, "-m", "ftlab", *words]
    return subprocess.run(words, capture_output=True, text=True, timeout=most, check=False)


def run(how: str, *options: str, preset: str = "crash") -> subprocess.CompletedProcess[str]:
    """Returns the outcome of a campaign."""
    return outcome_of(command_of(how, *options, preset=preset))


def run_script(script: Path, how: str, *options: str) -> subprocess.CompletedProcess[str]:
    """Returns the outcome of a campaign of a program that runs the store in its own way."""
    words = command_of(how, *options)
    words[words.index("--") + 1 :] = [sys.executable, "-S", "-E", str(script), how, "load"]
    return outcome_of(words)


@pytest.mark.parametrize("how", stores.WRONG)
@pytest.mark.parametrize("preset", PRESETS)
def test_a_program_that_flushes_too_little_is_found(preset: str, how: str) -> None:
    """Within 20 cuts, on every preset."""
    done = run(how, "--cuts", "20", preset=preset)
    assert done.returncode == 1, done.stdout + done.stderr
    assert "the check fails" in done.stderr and "transaction" in done.stderr, done.stderr


@pytest.mark.parametrize("how", stores.RIGHT)
@pytest.mark.parametrize("preset", PRESETS)
def test_its_correct_twin_loses_nothing(preset: str, how: str) -> None:
    """3 cuts here, 1,000 in the long form."""
    done = run(how, "--cuts", "1000" if campaign.long() else "3", preset=preset)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "0 failed" in done.stdout


def test_a_loss_explains_itself(tmp_path: Path) -> None:
    """The message and the JSON say what was lost and what was asked last; the image that is kept fails the
    check when it is served by hand.
    """
    out, keep = tmp_path / "out.json", tmp_path / "kept"
    done = run("no-flush", "--cuts", "20", "--json", str(out), "--keep", str(keep))
    assert done.returncode == 1, done.stderr
    failure = json.loads(out.read_text())["failures"][0]
    assert failure["lost"] and all(write["lost"] <= write["sectors"] for write in failure["lost"])
    assert any(write["acknowledged"] for write in failure["lost"])
    # Nothing was flushed, so whatever came is a write, and the numbers go up.
    assert {event["op"] for event in failure["recent"]} == {"write"}
    assert sorted(event["begin_ns"] for event in failure["recent"]) == [
        event["begin_ns"] for event in failure["recent"]
    ]
    assert f"lost: {len(failure['lost'])} of " in done.stderr and ", lost" in done.stderr
    assert failure["text"] in (keep / "explanation.txt").read_text()
    media = keep / "image" / "nand"
    cut = lost.Cut(media)
    assert cut.lost() == failure["lost"]
    assert judged(tmp_path, media) == failure["text"]
    assert not lost.Cut.exists(media), "what the cut left is taken up once"
    assert judged(tmp_path, media) == failure["text"]


def judged(tmp_path: Path, media: Path) -> str:
    """Returns what the check says about the device of a kept image, served by hand."""
    keys = {"device.write_buffer": "1MiB", "device.write_buffer_policy": "adversarial"}
    socket = tmp_path / "by-hand"
    with ftlab.serve("crash", nbd=f"unix:{socket}", media=media, speed=None, set=keys) as device:
        check = subprocess.run(
            [sys.executable, "-S", str(STORES), "no-flush", "judge"],
            cwd=media.parent,
            env={**os.environ, "FTLAB_DISK": device.uris[0]},
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
    return check.stderr.strip()


def test_a_write_that_failed_long_ago_is_told(tmp_path: Path, cli: Cli) -> None:
    """Also one that is older than the requests of the last second, of which there are at most 1,000."""
    media, socket = tmp_path / "nand", tmp_path / "socket"
    keys = {"device.write_buffer": "1MiB", "device.write_buffer_policy": "adversarial"}
    with (
        ftlab.serve("crash", nbd=f"unix:{socket}", media=media, speed=None, set=keys),
        stores.Client(socket) as client,
    ):
        client.ask(stores.WRITE, 0, data=b"a" * 512)
        cli.ok("ctl", str(socket), "readonly")
        for number in range(1, 1002):
            with pytest.raises(OSError):
                client.ask(stores.WRITE, number * 512, data=b"b" * 512)
        cli.ok("ctl", str(socket), "cut")
    cut = lost.Cut(media)
    cut.choose(tuple("0" * sectors for sectors in cut.sectors()))
    first, second = (write["number"] for write in cut.writes[:2])
    assert second < cut.recent[0]["number"]
    fates = [(write["number"], write["acknowledged"], write["failed"]) for write in cut.lost()[:2]]
    assert fates == [(first, True, False), (second, False, True)]
    told = cut.told().splitlines()
    assert told[1:3] == [f"  #{first} write of 512 B at 0", f"  #{second} write of 512 B at 512, failed"]


@pytest.mark.parametrize("search", [["--cuts", "20"], ["--every"]])
def test_a_command_that_fails_by_itself_is_no_cut(tmp_path: Path, search: list[str]) -> None:
    """A command that cannot begin, as one whose mount is refused, ends the campaign; one that the cut has
    ended is judged.
    """
    script = tmp_path / "once.py"
    script.write_text(
        f"import pathlib, sys\nbegun = pathlib.Path({str(tmp_path / 'begun')!r})\n"
        "if begun.exists(): sys.exit('cannot mount')\n"
        f"begun.touch()\nsys.path.insert(0, {str(STORES.parent)!r})\nimport stores\nstores.main()\n"
    )
    done = run_script(script, "flushes", *search)
    assert done.returncode == 2, done.stdout + done.stderr
    assert "seed 1: the command fails while the device has power (exit status 1)" in done.stderr, done.stderr
    assert done.stderr.strip().endswith("cannot mount")
    judged = run("flushes", "--cuts", "5", "--seed", "3")
    assert judged.returncode == 0 and "5 power cuts" in judged.stdout, judged.stderr


def test_a_loss_outlasts_a_command_that_fails_while_minimising(tmp_path: Path) -> None:
    """Regression, likewise: here the command fails as soon as the check has."""
    begun, out = tmp_path / "begun", tmp_path / "out.json"
    words = command_of("no-flush", "--cuts", "20", "--minimise", "--json", str(out))
    check, program = words.index("--check-command") + 1, words.index("--") + 1
    words[check] = f"{words[check]} || {{ touch {begun}; exit 1; }}"
    words[program:] = ["sh", "-c", f"! [ -e {begun} ] && exec {shlex.join(words[program:])}"]
    done = outcome_of(words)
    assert done.returncode == 1, done.stdout + done.stderr
    assert "warning: nothing was minimised: the command fails without a power cut" in done.stderr, done.stderr
    assert "the check fails" in done.stderr and "no cut fails again" not in done.stderr
    result = json.loads(out.read_text())
    assert len(result["failures"]) == 1 and result["least"] is None


def test_what_is_kept_leaves_sockets_out(tmp_path: Path) -> None:
    """Regression: a socket that the command left behind, as a server does, ended the campaign."""
    script = tmp_path / "server.py"
    script.write_text(
        "import socket, sys\nsocket.socket(socket.AF_UNIX).bind('mine')\n"
        f"sys.path.insert(0, {str(STORES.parent)!r})\nimport stores\nstores.main()\n"
    )
    keep = tmp_path / "kept"
    done = run_script(script, "no-flush", "--cuts", "20", "--keep", str(keep))
    assert done.returncode == 1, done.stderr
    assert (keep / "image" / "told").exists() and not (keep / "image" / "mine").exists()


def test_the_smallest_loss_is_one_write(tmp_path: Path) -> None:
    """A commit record that comes with its data: of the first transaction, the data alone are lost."""
    out = tmp_path / "out.json"
    done = run("no-flush-between", "--cuts", "20", "--minimise", "--json", str(out))
    assert done.returncode == 1, done.stderr
    least = json.loads(out.read_text())["least"]
    # The flush that follows them is the third request.
    assert least["request"] == 3
    assert [(write["offset"], write["length"]) for write in least["lost"]] == [(0, stores.BLOCK)]
    assert "earliest failure with the smallest loss: cut at request 3" in done.stderr


@pytest.mark.parametrize(("how", "requests", "flushes"), [("flushes", 4, 2), ("fua", 3, 1)])
def test_every_state_of_a_short_program(tmp_path: Path, how: str, requests: int, flushes: int) -> None:
    """A right program passes in all states: before each write there is nothing to lose, before each flush one
    write is or is not; the one with data, of 8 sectors, may also be torn.
    """
    out = tmp_path / "out.json"
    done = run(how, "--every", "6", "--json", str(out), "--jobs", "2")
    assert done.returncode == 0, done.stdout + done.stderr
    result = json.loads(out.read_text())
    assert result["requests"] == requests * stores.TRANSACTIONS
    assert result["cuts"] == result["requests"] + 1
    covered = result["cuts"] + flushes * stores.TRANSACTIONS
    torn, torn_all = (6 - 2) * stores.TRANSACTIONS, (256 - 2) * stores.TRANSACTIONS
    assert result["states"] == {"judged": covered, "all": covered, "torn": torn, "torn_all": torn_all}
    assert f"states judged: {covered} of {covered} of whole writes, {torn} of 3,048" in done.stdout
    # The states are judged on copies, on which no recovery is timed.
    assert result["recovery"] is None and "recovery" not in done.stdout


def test_every_state_finds_what_is_wrong(tmp_path: Path) -> None:
    """The first cut that can fail, and the state in which it does."""
    out = tmp_path / "out.json"
    done = run("no-flush-between", "--every", "--json", str(out))
    assert done.returncode == 1, done.stderr
    failure = json.loads(out.read_text())["failures"][0]
    assert failure["request"] == 3 and failure["lost"][0]["offset"] == 0


TORN = """
import os, sys
sys.path.insert(0, STORES)
import stores
from pathlib import Path
client = stores.Client(Path(os.environ["FTLAB_DISK"].split("=")[1]))
if sys.argv[1] == "load":
    client.ask(stores.WRITE, 0, data=b"x" * 1024)
    client.ask(stores.FLUSH)
else:
    data = client.ask(stores.READ, 0, 1024)
    sys.exit("half a record" if data[:512] != data[512:] else 0)
"""
"""A record of two sectors without a checksum, which must not be torn."""


def test_every_state_finds_a_torn_write(tmp_path: Path) -> None:
    """Whole, the record passes; each of the two ways to tear it fails."""
    script, out = tmp_path / "torn.py", tmp_path / "out.json"
    script.write_text(TORN.replace("STORES", repr(str(STORES.parent))))
    program = [sys.executable, "-S", str(script)]
    words = ["crash", "crash", "--live", "--every", "--json", str(out)]
    words += ["--check-command", shlex.join([*program, "judge"]), "--", *program, "load"]
    done = outcome_of(words)
    assert done.returncode == 1, done.stdout + done.stderr
    (failure,) = json.loads(out.read_text())["failures"]
    assert failure["request"] == 2 and "half a record" in failure["text"]
    assert [(write["sectors"], write["lost"]) for write in failure["lost"]] == [(2, 1)]
    assert "1 of 2 sectors" in done.stderr


def test_the_cache_is_volatile_unless_it_is_left_out(tmp_path: Path) -> None:
    """A device without a buffer gets one, and a note says so; --set leaves it out, and then a program without
    any flush passes, as every write that was answered is on flash.
    """
    out = tmp_path / "out.json"
    done = run("no-flush", "--cuts", "20", "--json", str(out), preset="map-plus")
    assert (
        "the device gets a volatile cache of 1MiB; --set device.write_buffer=0B leaves it out" in done.stderr
    )
    assert json.loads(out.read_text())["config"]["device"]["write_buffer_policy"] == "adversarial"
    without = run("no-flush", "--cuts", "5", "--set", "device.write_buffer=0B", preset="map-plus")
    assert without.returncode == 0, without.stderr
    assert "volatile" not in without.stderr


def test_mistakes_are_explained(cli: Cli) -> None:
    """Options that do not go together, and what is not there."""
    cases = [
        (["--every", "--cuts", "3"], "--every and --cuts exclude each other"),
        (["--settle", "35"], "a time with its unit, for example 35s"),
        (["--owner", "no-such-user"], "there is no such user"),
        (["--every", "--set", "device.write_buffer=0B"], "no cache whose states"),
        (["--minimise", "--set", "device.write_buffer_policy=fifo"], "--minimise: there is no cache whose"),
        (["--seed", "-1"], "--seed -1: with --live, a whole number from 0 to"),
        (["--seed", str(1 << 64)], "a whole number from 0 to 9223372036854775807"),
        (["--keep", str(STORES.parent)], "is not empty"),
    ]
    for options, says in cases:
        done = cli(*command_of("flushes", *options))
        assert done.returncode == 2 and says in done.stderr, done.stderr
    for options in (["--minimise"], ["--settle", "1s"]):
        alone = cli("crash", "crash", *options)
        assert alone.returncode == 2 and "belong to --live" in alone.stderr.replace("\n", " "), options


@pytest.mark.parametrize(
    ("stated", "policy"), [("", "adversarial"), ('"lru"', "lru"), ('"fifo"', "fifo"), ('"sorted"', "sorted")]
)
def test_the_policy_of_a_file_stays(tmp_path: Path, stated: str, policy: str) -> None:
    """Also the default, if the file names it."""
    key = f"write_buffer_policy = {stated}\n" if stated else ""
    path = tmp_path / "a.toml"
    path.write_text(f'preset = "map-plus"\n[device]\nwrite_buffer = "1MiB"\n{key}')
    resolved, notes = crash_live.volatile(str(path), [])
    assert json.loads(resolved.json())["device"]["write_buffer_policy"] == policy
    assert not notes


def test_the_owner_of_the_directories(tmp_path: Path) -> None:
    """A program that has given up its rights reaches the socket, and may write into the directory."""
    if os.geteuid() != 0:
        lacks("only root may give files to another user")
    need("setpriv")
    out = tmp_path / "out.json"
    words = command_of("flushes", "--owner", "nobody", "--cuts", "2", "--json", str(out))
    program = words[words.index("--") + 1 :]
    other = "setpriv --reuid=nobody --regid=65534 --clear-groups sh -c 'echo > mine && test -w nbd'"
    words[words.index("--") + 1 :] = ["sh", "-c", f"{other} && exec {shlex.join(program)}"]
    done = outcome_of(words)
    assert done.returncode == 0, done.stdout + done.stderr
    assert json.loads(out.read_text())["cuts"] == 2


def test_a_device_that_settles_is_cut_later(tmp_path: Path) -> None:
    """A child in a session of its own writes after the command has ended: it is counted, and it is cut."""
    script = tmp_path / "late.py"
    script.write_text(
        "import os, sys, time\nsays, told = os.pipe()\nif os.fork(): os._exit(os.read(says, 1) != b'.')\n"
        "os.setsid(); os.write(told, b'.'); time.sleep(1)\n"
        f"sys.path.insert(0, {str(STORES.parent)!r})\nimport stores\nstores.main()\n"
    )
    counts = []
    for settle in ("0s", "6s"):
        done = run_script(script, "no-flush", "--settle", settle, "--cuts", "3")
        counts.append((done.returncode, "changes nothing on the device" in done.stderr))
    assert counts == [(2, True), (1, False)], done.stderr
