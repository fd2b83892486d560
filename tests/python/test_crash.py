"""`ftlab crash`: power cuts on the command line."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from front import Cli, registered
from ftlab import _core
from ftlab import cli as front


@pytest.mark.parametrize("kind", registered("ftl.kind"))
@pytest.mark.parametrize("flush", ["", "256KiB"], ids=["", "by amount"])
def test_every_ftl_recovers(cli: Cli, kind: str, flush: str) -> None:
    size = ["--set", "ftl.log_blocks=12%", "--set", "host.scheduler=coop"]
    if flush:
        size += ["--set", "flash.page=8KiB", "--set", f"ftl.flush={flush}"]
    done = cli("crash", "crash", "--cuts", "60", "--set", f"ftl.kind={kind}", *size, "--json", "-")
    if flush and "writes mappings back by eviction alone" in done.stderr:
        return
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    assert result["schema"] == "ftlab.crash.v1"
    assert (result["cuts"], result["recovery"]["count"], result["fault"]) == (60, 60, None)
    assert result["config"]["ftl"]["kind"] == kind
    for seen in ("torn_programs", "durable_writes", "durable_trims", "pages_verified"):
        assert result[seen] > 0, seen
    recovery = result["recovery"]
    assert recovery["elapsed_ns"]["max"] >= recovery["elapsed_ns"]["mean"] > 0
    # Every page that holds data, and the first erased page of each block, is read.
    assert 72 <= recovery["scan_reads"]["max"] <= 72 * 16


@pytest.mark.parametrize(
    "settings",
    [
        ("ftl.gc_background=true", "ftl.gc_normal_blocks=3"),
        ("ftl.allocation=dynamic",),
        ("flash.interleave=true", "flash.dies_per_chip=2", "flash.suspend=erase"),
        ("flash.page=16KiB", "ftl.logical_page=4KiB"),
    ],
)
def test_any_device_can_be_cut(cli: Cli, settings: tuple[str, ...]) -> None:
    given = [part for setting in settings for part in ("--set", setting)]
    result = json.loads(cli.ok("crash", "crash", "--cuts", "40", *given, "--json", "-"))
    assert (result["cuts"], result["fault"], result["read_only"]) == (40, None, False)


def test_a_device_that_wears_out_ends_its_life(cli: Cli) -> None:
    given = ("--set", "flash.endurance=8", "--set", "ftl.spare_blocks=1", "--cuts", "2000")
    result = json.loads(cli.ok("crash", "crash", *given, "--json", "-"))
    assert result["read_only"]
    assert 1 < result["cuts"] < 2000
    assert "the device is read-only" in cli.ok("crash", "crash", *given)


def test_the_same_seed_is_the_same_life(cli: Cli) -> None:
    run = ("crash", "crash", "--cuts", "20", "--json", "-")
    assert cli.ok(*run) == cli.ok(*run)
    assert cli.ok(*run) != cli.ok(*run, "--seed", "2")


def test_chosen_cuts_and_text(cli: Cli) -> None:
    done = cli("crash", "crash", "--at", "900", "--at", "100")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("FTL dftl: 2 power cuts, seed 1\n")
    assert re.search(r"requests acknowledged, 900 programs and erases", done.stdout)
    for part in ("torn: ", "durable and verified: ", "time of a recovery: mean ", "spare areas read: "):
        assert part in done.stdout


def test_a_trace_begins_again_when_it_has_ended(cli: Cli) -> None:
    result = json.loads(cli.ok("crash", "crash", "--trace", "a.csv", "--cuts", "30", "--json", "-"))
    assert result["cuts"] == 30
    assert result["requests"] > 100


def test_user_errors(cli: Cli) -> None:
    for arguments, part in (
        (("--at", "5", "--cuts", "3"), "--at and --cuts exclude each other"),
        (("--cuts", "0"), "--cuts"),
        (("--set", "flash.blocks_per_plane=16777216"), "too large for power cuts"),
        (("--trace", "missing.csv"), "missing.csv"),
    ):
        done = cli("crash", "crash", *arguments)
        assert (done.returncode, done.stdout) == (2, ""), arguments
        assert part in done.stderr
    (cli.directory / "empty.csv").write_text("time_ns,op,offset,size\n")
    done = cli("crash", "crash", "--trace", "empty.csv")
    assert done.returncode == 2
    assert "no request" in done.stderr


def test_a_fault_says_how_to_see_it_again(
    cli: Cli, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    good = json.loads(cli.ok("crash", "crash", "--cuts", "3", "--seed", "7", "--json", "-"))

    def broken(*_: Any, **__: Any) -> str:
        return json.dumps({**good, "fault": {"cut": 3, "what": "LPN 5 has no data"}})

    monkeypatch.setattr(_core, "crash", broken)
    given = ["crash", "crash", "--set", "ftl.kind=dftl", "--cuts", "9", "--seed", "7"]
    assert front.call(given) == 1
    captured = capsys.readouterr()
    assert captured.out.startswith("FTL dftl: 3 power cuts, seed 7\n")
    assert "cut 3: LPN 5 has no data" in captured.err
    assert "ftlab crash crash --seed 7 --set ftl.kind=dftl --cuts 3 --operations 200" in captured.err
