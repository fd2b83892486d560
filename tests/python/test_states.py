"""Preconditioning and saved states, from the command line and from Python."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

import ftlab
from front import Cli

CONFIG = """
seed = 7
[workload.synthetic]
requests = 2000
[device]
precondition = "steady"
precondition_bound = "5%"
[ftl]
kind = "dftl"
mapping_cache = "8KiB"
over_provisioning = "20%"
[flash]
blocks_per_plane = 128
pages_per_block = 32
"""

ENDLESS = ("--set", "device.precondition_bound=0.0001%", "--set", "device.precondition_rounds=1000000")


@pytest.fixture
def lab(cli: Cli) -> Cli:
    """Makes a command line in a directory with the configuration of a steady device."""
    (cli.directory / "c.toml").write_text(CONFIG)
    return cli


def measured(path: Path) -> dict[str, Any]:
    """Returns a result without its engine block."""
    result: dict[str, Any] = json.loads(path.read_text())
    result.pop("engine")
    return result


def test_a_loaded_state_gives_the_same_bytes(lab: Cli) -> None:
    lab.ok("run", "c.toml", "--save-state", "dev.state", "--json", "a.json", "--requests", "a-rows.csv")
    text = lab.ok(
        "run", "c.toml", "--load-state", "dev.state", "--json", "b.json", "--requests", "b-rows.csv"
    )
    lab.ok("run", "c.toml", "--load-state", "dev.state", "--json", "c.json", "--check")
    a, b, c = (lab.directory / name for name in ("a.json", "b.json", "c.json"))
    assert json.dumps(measured(a)) == json.dumps(measured(b)) == json.dumps(measured(c))
    rows = [(lab.directory / name).read_bytes() for name in ("a-rows.csv", "b-rows.csv")]
    assert rows[0] == rows[1]
    done = measured(a)["precondition"]
    assert done["kind"] == "steady"
    assert done["outcome"] == "reached"
    assert len(done["waf"]) == 5
    assert (max(done["waf"]) - min(done["waf"])) * 5 / sum(done["waf"]) <= 0.05
    assert f"steady after {done['rounds']} rounds" in text
    assert measured(a)["wear"]["max"] > 0


def test_times_and_workloads_may_differ(lab: Cli) -> None:
    lab.ok("run", "c.toml", "--save-state", "dev.state")
    changes = ("--set", "flash.read=50us", "--set", "host.scheduler=map+", "--set", "device.queue_depth=4")
    lab.ok("run", "c.toml", "--load-state", "dev.state", *changes, "--json", "a.json")
    lab.ok("run", "c.toml", *changes, "--json", "b.json")
    assert measured(lab.directory / "a.json") == measured(lab.directory / "b.json")


def test_compare_starts_every_variant_from_the_state(lab: Cli) -> None:
    lab.ok("run", "c.toml", "--save-state", "dev.state")
    vary = ("compare", "c.toml", "--vary", "host.scheduler=noop,map+")
    lab.ok(*vary, "--load-state", "dev.state", "--json", "a.json")
    lab.ok(*vary, "--json", "b.json")
    texts = [json.loads((lab.directory / name).read_text()) for name in ("a.json", "b.json")]
    for variant in (variant for text in texts for variant in text["variants"]):
        variant["result"].pop("engine")
    assert texts[0] == texts[1]
    done = lab(*vary[:-1], "ftl.kind=dftl,page", "--load-state", "dev.state")
    assert done.returncode == 2
    assert "ftl.kind" in done.stderr
    assert "in the variant page" in done.stderr


def test_another_device_is_refused(lab: Cli) -> None:
    lab.ok("run", "c.toml", "--save-state", "dev.state")
    changes = ("--set", "flash.channels=2", "--set", "ftl.kind=page", "--set", "seed=8")
    done = lab("run", "c.toml", "--load-state", "dev.state", *changes)
    assert done.returncode == 2
    assert done.stderr == (
        'note: ftl.mapping_cache: ignored: ftl.kind = "page" has no mapping cache\n'
        "error: dev.state: saved from another device:\n"
        "  flash.channels: 1 there, 2 here\n"
        '  ftl.kind: "dftl" there, "page" here\n'
        "  seed: 7 there, 8 here\n"
    )
    assert (
        lab("run", "c.toml", "--load-state", "dev.state", "--set", "device.precondition=fill").returncode == 2
    )


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (None, "dev.state: cannot read: No such file or directory"),
        (b"", "dev.state: not a saved state of ftlab"),
        (b"R,0,4096\n" * 50, "dev.state: not a saved state of ftlab"),
        ("cut", "dev.state: damaged: it ends early; precondition anew and save it again"),
        (
            "changed",
            "dev.state: damaged: a checksum in it does not match; precondition anew and save it again",
        ),
        ("longer", "dev.state: damaged: it goes on after its end; precondition anew and save it again"),
    ],
)
def test_what_is_no_state_is_the_users_error(lab: Cli, content: bytes | str | None, message: str) -> None:
    state = lab.directory / "dev.state"
    if isinstance(content, str):
        lab.ok("run", "c.toml", "--save-state", "dev.state")
        whole = state.read_bytes()
        changed = whole[:-100] + bytes([whole[-100] ^ 1]) + whole[-99:]
        state.write_bytes({"cut": whole[:-9], "changed": changed, "longer": whole + b"\0"}[content])
    elif content is not None:
        state.write_bytes(content)
    done = lab("run", "c.toml", "--load-state", "dev.state")
    assert (done.returncode, done.stderr) == (2, f"error: {message}\n")


def test_a_state_that_cannot_be_written(lab: Cli) -> None:
    done = lab("run", "c.toml", "--save-state", "c.toml/dev.state")
    assert done.returncode == 2
    assert done.stderr.startswith("error: --save-state c.toml/dev.state: cannot write")
    done = lab("run", "c.toml", "--save-state", "/dev/full")
    assert (done.returncode, done.stderr) == (2, "error: /dev/full: cannot write: No space left on device\n")
    lab.ok("run", "c.toml", "--save-state", "dev.state")
    before = (lab.directory / "dev.state").read_bytes()
    done = lab("run", "c.toml", "--load-state", "dev.state", "--save-state", "dev.state")
    assert done.returncode == 2
    assert "would replace the input" in done.stderr
    assert (lab.directory / "dev.state").read_bytes() == before
    assert lab("run", "c.toml", "--load-state", ".").returncode == 2


def test_an_interrupt_ends_preconditioning(lab: Cli) -> None:
    command = [sys.executable, "-m", "ftlab", "run", "c.toml", *ENDLESS, "--save-state", "dev.state"]
    with subprocess.Popen(command, cwd=lab.directory, stderr=subprocess.PIPE, text=True) as process:
        time.sleep(2)
        assert process.poll() is None
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=30)
    assert (process.returncode, errors) == (130, "interrupted\n")
    assert sorted(path.name for path in lab.directory.iterdir()) == ["a.csv", "c.toml"]


def test_from_python(lab: Cli) -> None:
    config, state = lab.directory / "c.toml", lab.directory / "dev.state"
    seen: list[tuple[int, int, float | None]] = []

    def watch(pages: int, rounds: int, waf: float | None) -> bool:
        seen.append((pages, rounds, waf))
        return len(seen) < 3

    endless = {"device.precondition_bound": "0.0001%", "device.precondition_rounds": 1_000_000}
    with pytest.raises(KeyboardInterrupt):
        ftlab.run(config, set=endless, preconditioning=watch)
    assert len(seen) == 3
    assert seen == sorted(seen, key=lambda point: point[:2])
    assert seen[-1][2] is not None
    assert seen[-1][2] > 1

    first = ftlab.run(config, save_state=state)
    second = ftlab.run(config, load_state=state)
    assert first.precondition.outcome == "reached"
    assert first.requests.equals(second.requests)
    compared = ftlab.compare(config, {"host.scheduler": ["noop"]}, load_state=state)
    assert compared[0].latency.all.mean_ns == first.latency.all.mean_ns
    with pytest.raises(ftlab.UserError, match="saved from another device"):
        ftlab.run(config, load_state=state, seed=8)


def test_the_cap_is_said(lab: Cli) -> None:
    capped = ("--set", "device.precondition_bound=0.0001%", "--set", "device.precondition_rounds=5")
    assert "NOT steady after 5 rounds" in lab.ok("run", "c.toml", *capped)


def test_mapped_shares(lab: Cli) -> None:
    for share, pages in (("25%", 819), ("50%", 1638), ("100%", 3276)):
        text = lab.ok(
            "run",
            "c.toml",
            "--check",
            "--set",
            "device.precondition=mapped",
            "--set",
            f"device.precondition_share={share}",
        )
        assert f"precondition: mapped: {pages:,} logical pages written" in text


FRONTS = """
[workload.synthetic]
requests = 1500
size = "4KiB"
read_share = "0%"

[device]
precondition = "steady"
precondition_rounds = 5

[ftl]
kind = "dftl"
mapping_cache = "4KiB"
logical_page = "512B"
over_provisioning = "50%"
power_safe = true

[flash]
blocks_per_plane = 24
page = "8KiB"
"""
"""A device with page buffers, on which what replaces a page may still wait in one of them."""


def test_a_state_knows_which_blocks_wait_for_a_page_buffer(tmp_path: Path) -> None:
    """After loading, a block was erased before the newer version of its page had been programmed."""
    config, state = tmp_path / "fronts.toml", tmp_path / "fronts.state"
    config.write_text(FRONTS)
    saved = ftlab.run(config, ftl__placement="hot-cold", save_state=state)
    loaded = ftlab.run(config, ftl__placement="hot-cold", load_state=state)
    assert {**saved.to_dict(), "engine": None} == {**loaded.to_dict(), "engine": None}


@pytest.mark.parametrize("placement", ["sepbit", "hot-cold"])
def test_levelling_goes_by_the_front_that_a_flush_leaves(placement: str, tmp_path: Path) -> None:
    """A flush before a move could turn the chip to another front, whose block was then set aside twice."""
    config = tmp_path / "fronts.toml"
    config.write_text(FRONTS)
    level = {"ftl.placement": placement, "ftl.wear_leveling": "static", "ftl.wear_threshold": 1}
    result = ftlab.run(config, check=True, set=level)
    assert result.flash.programs["wear"] > 0
