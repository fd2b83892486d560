"""Dependent replay: a second implementation of its rule, its default for recordings, and what is refused."""

from __future__ import annotations

import dataclasses
import heapq
import json
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import ftlab
from front import Cli
from oracle.dependent import Recorded, due, others

SMALL: dict[str, Any] = {"flash.blocks_per_plane": 256, "device.precondition": "none"}
DEVICES: dict[str, dict[str, Any]] = {
    "as recorded": {},
    "slow": {"flash.program": "2ms", "flash.read": "200us"},
    "fast, many at a time": {"flash.program": "20us", "flash.channels": 4, "device.queue_depth": 16},
    "map+ over dftl": {"host.scheduler": "map+", "ftl.mapping_cache": "4KiB"},
    "a short queue": {"host.queue_depth": 3},
}
PAGE = 4096


def recording(seed: int, count: int, streams: int) -> list[Recorded]:
    """Returns requests in bursts; some completed when others arrived, and of some it is not known when."""
    draw = np.random.default_rng(seed)
    gaps = np.where(draw.random(count) < 0.6, 0, draw.integers(0, 8, count) * 100_000)
    latencies = draw.integers(0, 15, count) * 50_000
    known = draw.random(count) < 0.95
    ops = draw.choice(list("RRWWTF"), count)
    return [
        Recorded(int(time), int(latency) if there else None, int(stream), str(op))
        for time, latency, there, stream, op in zip(
            np.cumsum(gaps), latencies, known, draw.integers(0, streams, count), ops, strict=True
        )
    ]


def rows(recorded: list[Recorded]) -> pl.DataFrame:
    """Returns the requests as a trace; each has a page of its own, by which it is found again, unless it is a
    flush.
    """
    count = len(recorded)
    latencies = [-1 if each.latency_ns is None else each.latency_ns for each in recorded]
    frame = {
        "ts_ns": [each.time_ns for each in recorded],
        "op": [each.op for each in recorded],
        "offset": [at * PAGE for at in range(count)],
        "size": [0 if each.op == "F" else PAGE for each in recorded],
        "latency_ns": latencies,
    }
    if any(each.stream for each in recorded):
        frame["stream"] = [each.stream for each in recorded]
    return pl.DataFrame(frame)


def unexplained(recorded: list[Recorded], done: pl.DataFrame) -> list[tuple[int, str, int | None]]:
    """Returns the requests that were not sent when the rule says: when, what, and when the rule says; None
    for a flush that has to be another one.
    """
    which, wrong = others(recorded), []
    ended = {
        offset // PAGE: end
        for op, offset, end in done.select("op", "offset", "complete_ns").iter_rows()
        if op != "F"
    }
    flushes = {at for at, each in enumerate(recorded) if each.op == "F"}
    for op, offset, arrival, end in (
        done.sort("id").select("op", "offset", "arrival_ns", "complete_ns").iter_rows()
    ):
        says: int | None
        if op == "F":
            # Flushes have no address. Which one it is, its time says.
            able = [at for at in sorted(flushes) if due(recorded, at, which[at], ended) == arrival]
            says = arrival if able else None
            flushes.difference_update(able[:1])
            ended |= dict.fromkeys(able[:1], end)
        else:
            says = due(recorded, offset // PAGE, which[offset // PAGE], ended)
        wrong += [] if says == arrival else [(arrival, op, says)]
    return wrong


@pytest.mark.parametrize("name", DEVICES)
@pytest.mark.parametrize("streams", [1, 3])
def test_every_request_is_sent_when_the_rule_says(name: str, streams: int) -> None:
    for seed in range(3):
        recorded = recording(seed, 400, streams)
        config = {**SMALL, **DEVICES[name]}
        result = ftlab.run("map-plus", trace=rows(recorded), replay="dependent", set=config)
        assert result.requests.height == len(recorded)
        assert not unexplained(recorded, result.requests)


def test_its_own_recording_gives_its_own_latencies(tmp_path: Path) -> None:
    """Also by way of csv and Parquet, and of `trace convert` from another layout with response times."""
    config = {**SMALL, "host.scheduler": "map+", "ftl.mapping_cache": "4KiB"}
    recorded = [dataclasses.replace(each, op="RW"[each.op in "WTF"]) for each in recording(7, 600, 1)]
    frame = rows(recorded).drop("latency_ns")
    open_ = ftlab.run("map-plus", trace=frame, set=config)
    done = open_.requests.sort("offset")
    latency = (done["complete_ns"] - done["arrival_ns"]).alias("latency_ns")
    lines = [
        f"{time},host,0,{'Write' if op == 'W' else 'Read'},{offset},{size},{ns}"
        for time, op, offset, size, ns in frame.with_columns(latency).iter_rows()
    ]
    # Stamps and response times of this layout are in ticks of 100 ns, so that a tick stands for one ns here.
    (tmp_path / "a.msr").write_text("\n".join(lines) + "\n")
    for target in ("a.csv", "a.parquet"):
        ftlab.convert_trace(tmp_path / "a.msr", tmp_path / target, format="msr")
        again = ftlab.run(
            "map-plus", trace=tmp_path / target, replay="dependent", speed=100, set=config
        ).requests.sort("offset")
        for column in ("complete_ns", "dispatch_ns"):
            moved = again[column] - again["arrival_ns"][0]
            assert moved.to_list() == (done[column] - done["arrival_ns"][0]).to_list(), target


def test_a_recording_waits_by_default_and_is_doubted_by_its_times(tmp_path: Path, cli: Cli) -> None:
    header = "time_ns,op,offset,size,outstanding,latency_ns\n"
    path = tmp_path / "a.csv"
    path.write_text(
        header + "".join(f"{110_000 * at},{'RW'[at % 2]},{at * PAGE},4096,1,100000\n" for at in range(200))
    )
    shown = cli("run", "map-plus", "--trace", str(path), "--json", "-")
    assert json.loads(shown.stdout)["config"]["workload"]["replay"] == "dependent"
    assert f"note: workload.replay: {path} is a recording of a live device" in shown.stderr
    assert "warning" not in shown.stderr
    stated = cli("run", "map-plus", "--trace", str(path), "--replay", "open", "--json", "-")
    assert json.loads(stated.stdout)["config"]["workload"]["replay"] == "open"
    assert f"warning: {path}: a recording of a live device, replayed by its times" in stated.stderr
    assert "--replay dependent" in stated.stderr
    table = cli("compare", "map-plus", "--trace", str(path), "--vary", "host.scheduler=noop,map+")
    assert "is a recording of a live device" in table.stderr
    # A converted copy keeps the completions, but is not a recording any more.
    note = "is not a recording any more: replay it with --replay dependent"
    assert note in cli("trace", "convert", str(path), str(tmp_path / "b.parquet")).stderr
    assert note not in cli("trace", "convert", str(tmp_path / "b.parquet"), str(tmp_path / "c.csv")).stderr
    assert ftlab.run("map-plus", trace=tmp_path / "b.parquet")["config"]["workload"]["replay"] == "open"


def test_a_report_says_how_many_completions_are_not_known(tmp_path: Path, cli: Cli) -> None:
    path = tmp_path / "a.csv"
    path.write_text("time_ns,op,offset,size,latency_ns\n0,R,0,4096,1000\n5000,R,4096,4096,\n")
    told = "    note: 1 request has no recorded completion, so that none waits for it"
    assert told in cli.ok("run", "map-plus", "--trace", str(path), "--replay", "dependent")
    assert "note: " not in cli.ok("run", "map-plus", "--trace", str(path))


def test_a_trace_without_completions_is_refused(tmp_path: Path, cli: Cli) -> None:
    path = tmp_path / "a.csv"
    path.write_text("time_ns,op,offset,size\n0,R,0,4096\n")
    refused = cli("run", "map-plus", "--trace", str(path), "--replay", "dependent")
    assert refused.returncode == 2
    assert f"{path}: read as csv, and does not say when requests completed" in refused.stderr
    assert "msr, " in refused.stderr
    assert "systor17" in refused.stderr
    generated = cli("run", "map-plus", "--replay", "dependent", "--set", "workload.synthetic.requests=9")
    assert "workload.replay: a generator's requests have no recorded completions" in generated.stderr


def test_a_tenant_that_stops_sends_what_is_due_before(cli: Cli) -> None:
    """The last request was known to come too late before the third was known to be due: both were dropped."""
    (cli.directory / "a.csv").write_text(
        "time_us,op,offset,size,latency_us\n"
        "0,W,0,4096,5\n0,R,4194304,4096,10\n20,R,8192,4096,5\n10000,R,16384,4096,5\n"
    )
    (cli.directory / "a.toml").write_text(
        'preset = "map-plus"\n[device]\nscheduler = "direct"\nqueue_depth = 64\n'
        '[flash]\nchannels = 2\nblocks_per_plane = 64\nprogram = "2ms"\n'
        '[tenant.a]\ntrace = "a.csv"\nreplay = "dependent"\nduration = "5ms"\n'
    )
    cli.ok("run", "./a.toml", "--json", "a.json", "--quiet")
    assert json.loads((cli.directory / "a.json").read_text())["trace"]["requests"] == 3


STEADY: dict[str, Any] = {"flash.blocks_per_plane": 512, "device.precondition": "steady"}
FRESH = {**STEADY, "device.precondition": "none"}


def workers(config: dict[str, Any], seed: int, count: int, think_ns: int, *, streams: bool) -> pl.DataFrame:
    """Returns what a device records of workers, each of which has one request under way.

    Seven of ten requests are reads, and every fourth write is followed by a flush.
    """
    draws = [np.random.default_rng([seed, worker]) for worker in range(count)]
    ready = [(int(draw.integers(20_000)), worker) for worker, draw in enumerate(draws)]
    heapq.heapify(ready)
    left, writes = [1600 // count] * count, [0] * count
    under_way: dict[int, tuple[int, int]] = {}
    recorded: list[tuple[int, int, int, str]] = []
    addresses: list[int] = []
    with ftlab.Simulation("map-plus", set=config) as device:
        while ready or under_way:
            event = device.next_event_ns()
            if ready and (event is None or ready[0][0] <= event):
                time, worker = heapq.heappop(ready)
                draw = draws[worker]
                op = "F" if writes[worker] == 4 else "RW"[int(draw.random() >= 0.7)]
                writes[worker] = 0 if op == "F" else writes[worker] + (op == "W")
                addresses.append(int(worker * 1024 + draw.integers(1024)) * PAGE)
                under_way[device.submit(op, addresses[-1], PAGE, at_ns=time)] = (len(recorded), worker)
                recorded.append((time, 0, worker * streams, op))
                continue
            for done in device.advance(event or 0):
                at, worker = under_way.pop(done.id)
                assert done.complete_ns is not None
                recorded[at] = (recorded[at][0], done.complete_ns - done.arrival_ns, *recorded[at][2:])
                left[worker] -= 1
                if left[worker]:
                    wait = think_ns + int(draws[worker].integers(1, 20_000))
                    heapq.heappush(ready, (done.complete_ns + wait, worker))
    return rows([Recorded(*each) for each in recorded]).with_columns(offset=pl.Series(addresses))


@pytest.mark.parametrize(
    ("count", "think_ns", "streams"), [(4, 0, False), (8, 0, False), (16, 0, False), (4, 2_000_000, True)]
)
def test_workers_on_a_steady_device_are_predicted(count: int, think_ns: int, streams: bool) -> None:
    """Recorded on a fresh device, they are within 25 % of those on a steady one; by their times 20 times off.

    The host takes no time here: what remains is which addresses the workers drew, and the rule.
    """
    recorded = workers(FRESH, 1, count, think_ns, streams=streams)
    told = workers(STEADY, 2, count, think_ns, streams=streams)
    found = {
        how: ftlab.run("map-plus", set=STEADY, trace=recorded, replay=how).requests
        for how in ("open", "dependent")
    }
    for op in "RW":
        real = told.filter(pl.col("op") == op)["latency_ns"].to_numpy()
        open_, dependent = (
            (done.filter(op=op)["complete_ns"] - done.filter(op=op)["arrival_ns"]).to_numpy()
            for done in (pl.DataFrame(found[how]) for how in ("open", "dependent"))
        )
        assert np.mean(dependent) == pytest.approx(np.mean(real), rel=0.25), op
        assert np.quantile(dependent, 0.99) == pytest.approx(np.quantile(real, 0.99), rel=0.25), op
        assert np.mean(open_) > 20 * np.mean(real), op
