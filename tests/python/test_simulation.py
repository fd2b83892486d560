"""Tests of `ftlab.Simulation`, which its caller drives: its results, compared with those of `ftlab.run`, and
the calls that it refuses.
"""

from __future__ import annotations

import json
import threading
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import ftlab
from ftlab.results.result import OPS, REQUEST_COLUMNS

Rows = list[tuple[int, str, int, int]]

DEVICES: dict[str, dict[str, Any]] = {
    "map+ over dftl": {"host.scheduler": "map+"},
    "cdftl, deadline": {"ftl.kind": "cdftl", "host.scheduler": "rb", "host.deadline": "2ms"},
    "tpftl, preconditioned": {"ftl.kind": "tpftl", "device.precondition": "mapped"},
    "bast": {"ftl.kind": "bast", "flash.blocks_per_plane": 256},
    "fast and coop": {"ftl.kind": "fast", "flash.blocks_per_plane": 256, "host.scheduler": "coop"},
    "vios on chips": {
        "ftl.kind": "page",
        "flash.channels": 4,
        "flash.chips_per_channel": 2,
        "device.scheduler": "vios",
        "device.queue_depth": 64,
        "flash.variation.model": "ispp",
    },
    "in the background": {"ftl.background_flush": True, "host.scheduler": "row"},
    "merging": {"host.merge_limit": "64KiB", "host.scheduler": "map"},
}


def load(seed: int, count: int) -> Rows:
    """Returns requests of a few pages each, in bursts; some are neighbours."""
    rng = np.random.default_rng(seed)
    gaps = np.where(rng.random(count) < 0.7, 0, rng.integers(0, 3_000_000, count))
    times = np.cumsum(gaps)
    ops = rng.choice(["R", "W", "T", "F"], count, p=[0.45, 0.45, 0.06, 0.04])
    offsets = rng.integers(0, 4000, count) * 4096
    offsets[1::3] = offsets[::3][: len(offsets[1::3])] + 4096
    sizes = rng.integers(1, 6, count) * 4096
    return [
        (int(at), str(op), 0 if op == "F" else int(offset), 0 if op == "F" else int(size))
        for at, op, offset, size in zip(times, ops, offsets, sizes, strict=True)
    ]


def write_trace(path: Path, rows: Rows) -> Path:
    lines = [f"{at},{op},{offset},{size}" for at, op, offset, size in rows]
    path.write_text("\n".join(["time_ns,op,offset,size", *lines]) + "\n")
    return path


def comparable(result: ftlab.Result) -> dict[str, Any]:
    """Returns the parts of a result that must be equal."""
    data: dict[str, Any] = json.loads(result.to_json())
    del data["engine"], data["config"]["workload"]
    del data["trace"]["out_of_order"], data["trace"]["dropped"]
    return data


def drive(device: ftlab.Simulation, rows: Rows, how: str) -> list[Any]:
    done: list[Any] = []
    last_ns = rows[-1][0]
    if how == "columns":
        ids = device.submit_many(
            {
                "op": [row[1] for row in rows],
                "offset": np.array([row[2] for row in rows]),
                "size": pl.Series([row[3] for row in rows]),
                "at_ns": [row[0] for row in rows],
            }
        )
        assert ids == range(1, len(rows) + 1)
    for number, (at_ns, op, offset, size) in enumerate(rows, 1):
        if how == "columns":
            break
        assert device.submit(op, offset, size, at_ns=at_ns) == number
        if how == "up to each" and at_ns > device.now_ns:
            done += device.advance(at_ns - 1)
            assert device.now_ns == at_ns - 1
    while how == "steps" and device.now_ns + 700_001 <= last_ns:
        done += device.advance(device.now_ns + 700_001)
    return done + device.run_until_idle()


@pytest.mark.parametrize("how", ["at once", "columns", "up to each", "steps"])
@pytest.mark.parametrize("name", DEVICES)
def test_it_does_what_run_does(tmp_path: Path, name: str, how: str) -> None:
    rows = load(len(name), 400)
    trace = write_trace(tmp_path / "a.csv", rows)
    expected = ftlab.run("map-plus", set=DEVICES[name], trace=trace)
    device = ftlab.Simulation("map-plus", set=DEVICES[name], collect=True)
    done = drive(device, rows, how)
    result = device.result()
    assert comparable(result) == comparable(expected)
    assert result.requests.equals(expected.requests)
    assert sorted(completion.id for completion in done) == list(range(1, len(rows) + 1))
    if name != "merging":
        by_id = sorted(done, key=lambda completion: completion.id)
        for column in REQUEST_COLUMNS:
            assert [getattr(completion, column) for completion in by_id] == expected.requests[
                column
            ].to_list()


def test_merged_requests_are_answered_one_by_one() -> None:
    device = ftlab.Simulation("map-plus", host__merge_limit="64KiB", collect=True)
    device.submit("W", 4096 * 4000, 4096)
    for page in range(4):
        device.submit("R", page * 4096, 4096, at_ns=1000 + page)
    done = device.run_until_idle()
    assert [(each.id, each.offset, each.size) for each in done[1:]] == [
        (page + 2, page * 4096, 4096) for page in range(4)
    ]
    assert len({each.complete_ns for each in done[1:]}) == 1
    requests = device.result().requests
    assert requests["size"].to_list() == [4096, 4 * 4096]
    assert sum(each.mapping_misses for each in done) == requests["mapping_misses"].sum()


def test_a_loaded_state_goes_on(tmp_path: Path) -> None:
    rows = load(5, 200)
    trace = write_trace(tmp_path / "a.csv", rows)
    state = tmp_path / "device.state"
    settings = {"device.precondition": "mapped"}
    expected = ftlab.run("map-plus", set=settings, trace=trace, save_state=state)
    device = ftlab.Simulation("map-plus", set=settings, load_state=state)
    drive(device, rows, "at once")
    assert comparable(device.result()) == comparable(expected)


def test_what_is_wrong_is_refused_and_changes_nothing() -> None:
    device = ftlab.Simulation("map-plus")
    device.advance(5_000)
    before = comparable(device.result())
    for arguments, text in [
        (("X", 0, 4096), "R, W, T"),
        (("R", 0, 0), "not within the user capacity"),
        (("R", 1 << 60, 4096), "not within the user capacity"),
    ]:
        with pytest.raises(ftlab.UserError, match=text):
            device.submit(*arguments)
    with pytest.raises(ftlab.UserError, match="in the past"):
        device.submit("R", 0, 4096, at_ns=4_999)
    with pytest.raises(ftlab.UserError, match="in the past"):
        device.advance(4_999)
    with pytest.raises(ftlab.UserError, match="row 1"):
        ftlab.Simulation("map-plus").submit_many(
            {"op": "RW", "offset": [0], "size": [4096]}
            | {"op": ["R", "W"], "offset": [0, 0], "size": [4096, 0]}
        )
    with pytest.raises(ftlab.UserError, match="no column 'length'"):
        device.submit_many({"op": ["R"], "offset": [0], "length": [4096]})
    with pytest.raises(ftlab.UserError, match="differ in length"):
        device.submit_many({"op": ["R"], "offset": [0, 1], "size": [4096]})
    with pytest.raises(ftlab.UserError, match="the power is on"):
        device.recover()
    with pytest.raises(ftlab.UserError, match=r"ftl\.power_safe"):
        device.cut()
    assert (comparable(device.result()), device.next_event_ns()) == (before, None)


def test_a_cut_and_a_recovery() -> None:
    device = ftlab.Simulation("map-plus", ftl__power_safe=True)
    for page in range(64):
        device.submit("W", page * 4096, 4096)
    device.submit("F", 0, 0)
    assert len(device.run_until_idle()) == 65
    for page in range(64):
        device.submit("W", page * 4096, 4096)
    assert len(device.advance(device.now_ns + 1_000_000)) < 64
    cut = device.cut(seed=3)
    assert cut["operations"] >= 64
    with pytest.raises(ftlab.UserError, match="recover first"):
        device.submit("R", 0, 4096)
    now_ns = device.now_ns
    found = device.recover()
    assert found["scan_reads"] > 0
    assert device.now_ns == now_ns + found["elapsed_ns"]
    assert device.submit("R", 0, 64 * 4096) == 130
    (done,) = device.run_until_idle()
    assert done.id == 130


def test_it_takes_one_call_at_a_time() -> None:
    """The call in progress ends normally, and a second one is refused, whichever thread is slow."""
    device = ftlab.Simulation("map-plus")
    columns = {"op": ["W"] * 100_000, "offset": [0] * 100_000, "size": [4096] * 100_000}
    busy = rounds = completed = 0

    def run() -> None:
        nonlocal completed
        completed += len(device.run_until_idle())

    while busy == 0 and rounds < 50:
        rounds += 1
        device.submit_many(columns)
        thread = threading.Thread(target=run)
        thread.start()
        while thread.is_alive():
            try:
                assert device.now_ns >= 0
            except ftlab.UserError as error:
                assert "busy in another call" in str(error)
                busy += 1
        thread.join()
    assert busy > 0
    assert completed == rounds * 100_000
    assert device.result().trace.requests == completed


def test_letters_and_codes_are_the_same() -> None:
    results = []
    for ops in (list(OPS), np.arange(4)):
        device = ftlab.Simulation("map-plus")
        device.submit_many({"op": ops, "offset": [0] * 4, "size": [4096] * 4, "fua": [0, 1, 0, 0]})
        device.run_until_idle()
        results.append(comparable(device.result()))
    assert results[0] == results[1]
    assert "ftlab.Simulation" in repr(device)


def test_it_says_what_it_is_and_frees_its_memory() -> None:
    with ftlab.Simulation("map-plus", set={"flash.blocks_per_plane": 64}) as device:
        device.submit("W", 0, 8192)
        device.advance(1_500_000)
        assert repr(device) == "<ftlab.Simulation map-plus: map+ over dftl, at 1,500 us>"
        valid = device.valid_pages()
        assert valid.shape == (1, 64)
        assert valid.sum() == 2
        result = device.result()
    assert repr(device) == "<ftlab.Simulation map-plus: map+ over dftl, closed>"
    assert result.trace.requests == 1
    with pytest.raises(ftlab.UserError, match="this simulation is closed"):
        device.submit("R", 0, 4096)
    device.close()


def test_time_ends() -> None:
    device = ftlab.Simulation("map-plus", set={"flash.blocks_per_plane": 64})
    with pytest.raises(ftlab.UserError, match="more than a century"):
        device.advance(2**64 - 1)
    assert device.now_ns == 0
