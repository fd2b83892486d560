"""What a campaign of power cuts tries, keeps and tells, without a program and a device."""

from __future__ import annotations

import json
import stat
import threading
from pathlib import Path
from typing import Any

import pytest

from ftlab._core import UserError
from ftlab.configs import load
from ftlab.live import lost
from ftlab.live.cuts import Campaign, Failure, Outcome, Point, Programs


def test_a_loss_outlasts_a_command_that_fails_by_itself() -> None:
    """Regression: a loss was thrown away if the command failed by itself in another job."""

    def tried(first: object, then: object) -> Outcome:
        ended = threading.Event()

        def work(point: Point) -> Any:
            if point.seed == 2:
                assert ended.wait(60)
            what = (first, then)[point.seed - 1]
            if isinstance(what, UserError):
                raise what
            return {"torn_programs": 0, "torn_erases": 0}, None, what

        outcome = Outcome()
        campaign = Campaign(load("crash", []), Programs([], None, None, False), ended)
        campaign.each([Point(1), Point(2)], work, outcome, 2, lambda: None)
        return outcome

    loss, wrong = Failure(1, 1, 1, "lost"), UserError("cannot mount")
    assert tried(loss, wrong).failures == tried(wrong, loss).failures == [loss]
    with pytest.raises(UserError, match="first"):
        tried(UserError("first"), UserError("second"))


def test_states_are_all_or_the_likeliest() -> None:
    """Each state comes once; beyond the bound, whole writes come before torn ones, and those that lose or
    keep one write before random ones.
    """
    assert len(set(lost.states([1, 1, 1], 8))) == 8
    assert sorted(lost.states([2, 1], 8)) == sorted((a + b, c) for a in "01" for b in "01" for c in "01")
    assert len(list(lost.states([8, 8], 64, torn=False))) == 4
    few = list(lost.states([8] * 20, 30))
    assert len(set(few)) == 30 and few[0] == ("0" * 8,) * 20 and few[1] == ("1" * 8,) * 20
    assert {state.count("1" * 8) for state in few[2:]} == {1, 19} and not any(map(lost.is_torn, few))
    several = list(lost.states([8, 8], 20))
    assert not any(map(lost.is_torn, several[:4])) and all(map(lost.is_torn, several[4:8]))
    assert several[4] == ("0" * 8, "1" * 4 + "0" * 4) and len(set(several)) == 20
    assert list(lost.smaller(("11", "01", "0"))) == [("11", "11", "0"), ("11", "01", "1")]


@pytest.mark.parametrize(
    ("unflushed", "failed", "durable_ns", "fate"),
    [
        (True, True, None, "acknowledged, not flushed, lost"),
        (False, True, None, "acknowledged, not flushed, not in the cache any more"),
        (False, False, 30, "durable"),
    ],
)
def test_a_flush_that_failed_makes_nothing_durable(
    tmp_path: Path, unflushed: bool, failed: bool, durable_ns: int | None, fate: str
) -> None:
    """Whether the write is still among the unflushed ones, or older than those that the cache holds."""
    asked = {"fua": False, "failed": False}
    write = {"number": 1, "op": "write", "offset": 0, "length": 512, **asked, "begin_ns": 0, "end_ns": 10}
    flush = {**write, "number": 2, "op": "flush", "begin_ns": 20, "end_ns": 30, "failed": failed}
    head = {"time_ns": 40, "writes": [{**write, "persists": "0"}] * unflushed, "recent": [write, flush]}
    (tmp_path / "nand.cut").write_bytes(json.dumps(head).encode() + b"\n")
    cut = lost.Cut(tmp_path / "nand")
    assert cut.durable_ns(write) == durable_ns
    assert f"#1 write of 512 B at 0: {fate}" in cut.told()
    assert f"#2 flush: {'failed' if failed else 'done'}" in cut.told()


def test_a_write_that_failed_is_not_acknowledged(tmp_path: Path) -> None:
    """Regression: it counted as acknowledged, since it was answered. It may be older than the last second."""
    write = {"number": 1, "op": "write", "offset": 0, "length": 512, "end_ns": 10, "persists": "0"}
    for failed, told in ((False, ""), (True, ", failed")):
        head = {"time_ns": 40, "writes": [{**write, "failed": failed}], "recent": []}
        (tmp_path / "nand.cut").write_bytes(json.dumps(head).encode() + b"\n")
        cut = lost.Cut(tmp_path / "nand")
        assert [(lost["acknowledged"], lost["failed"]) for lost in cut.lost()] == [(not failed, failed)]
        assert f"  #1 write of 512 B at 0{told}\n" in cut.told()


def test_a_loss_that_the_device_did_not_cause_is_told(tmp_path: Path) -> None:
    """Regression: of a program that never flushes, the report said "0 of 1 unflushed writes"."""
    write = {"number": 1, "op": "write", "offset": 0, "length": 512, "end_ns": 10, "persists": "1"}
    for writes in ([], [write]):
        head = {"time_ns": 40, "writes": writes, "recent": []}
        (tmp_path / "nand.cut").write_bytes(json.dumps(head).encode() + b"\n")
        told = lost.Cut(tmp_path / "nand").told()
        assert told.startswith(
            "lost: nothing that had reached the device. What the check misses was still in RAM"
        )


def test_what_persists_is_written_through_no_link(tmp_path: Path) -> None:
    """Regression: a link in the place of the file of a cut was followed."""
    write = {"number": 1, "op": "write", "offset": 0, "length": 512, "end_ns": 10, "persists": "1"}
    head = json.dumps({"time_ns": 40, "writes": [write], "recent": []}).encode() + b"\n"
    (tmp_path / "victim").write_bytes(head)
    (tmp_path / "nand.cut").symlink_to("victim")
    lost.Cut(tmp_path / "nand").choose(("0",))
    assert (tmp_path / "victim").read_bytes() == head
    assert lost.Cut(tmp_path / "nand").state() == ("0",)
    found = (tmp_path / "nand.cut").lstat()
    assert stat.S_ISREG(found.st_mode) and stat.S_IMODE(found.st_mode) == 0o600
