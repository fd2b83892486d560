"""The timeline, read with Perfetto's own definitions."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

import ftlab
from front import Cli
from timelines import Slice, Trace

GEOMETRY = {
    "flash.channels": 2,
    "flash.chips_per_channel": 2,
    "flash.blocks_per_plane": 20,
    "flash.pages_per_block": 16,
    "ftl.over_provisioning": "45%",
    "ftl.mapping_cache": "8KiB",
    "device.queue_depth": 8,
    "device.precondition": "fill",
    "workload.out_of_range": "wrap",
}


def write_trace(path: Path, requests: int = 3000) -> Path:
    """Writes bursts of reads, writes, trims and flushes."""
    state = 88172645463325252
    lines = ["time_ns,op,offset,size"]
    now = 0
    for _ in range(requests):
        state ^= (state << 13) & (2**64 - 1)
        state ^= state >> 7
        state ^= (state << 17) & (2**64 - 1)
        now += 9_000_000 if state % 16 == 0 else state % 1000
        op = "RRRRWWWWWWWWWWTF"[state // 16 % 16]
        offset, size = (0, 0) if op == "F" else (state // 256 % 700 * 4096, (1 + state % 3) * 4096)
        lines.append(f"{now},{op},{offset},{size}")
    path.write_text("\n".join(lines) + "\n")
    return path


def run(tmp_path: Path, **options: Any) -> tuple[ftlab.Result, Trace]:
    """Returns a run with a timeline, and the timeline."""
    config = GEOMETRY | {"flash.transfer": options.pop("transfer", "0ns")}
    out = tmp_path / "t.pftrace"
    trace = write_trace(tmp_path / "trace.csv")
    result = ftlab.run("map-plus", set=config, trace=str(trace), timeline=out, **options)
    return result, Trace(out)


@pytest.mark.parametrize("transfer", ["0ns", "2.5ns"])
def test_agrees_with_the_result(tmp_path: Path, transfer: str) -> None:
    result, trace = run(tmp_path, transfer=transfer)
    trace.check_no_overlap()
    assert result.timeline is not None
    assert result.timeline.cut_ns is None
    nested = sum(len(one.inside) for one in trace.slices)
    assert result.timeline.events == len(trace.slices) + nested + len(trace.counters["pending queue"])

    chips = [trace.on(f"chip {chip}") for chip in range(4)]
    busy = [sum(one.end - one.begin for one in slices) for slices in chips]
    assert busy == result["utilization"]["chip_busy_ns"]
    for channel in range(2):
        [group] = [uuid for uuid, name in trace.names.items() if name == f"channel {channel}"]
        inside = {name for uuid, name in trace.names.items() if trace.parents[uuid] == group}
        assert inside == {"bus", f"chip {channel}", f"chip {channel + 2}"}
        buses = [one for one in trace.on("bus") if trace.parents[one.track] == group]
        used = sum(one.end - one.begin for one in buses)
        assert used == result["utilization"]["channel_busy_ns"][channel]
        assert {one.args["chip"] % 2 for one in buses} <= {channel}

    cells = [one for slices in chips for one in slices if one.category != "bus"]
    counts = Counter((one.category, one.args["cause"]) for one in cells)
    expected = {
        (kind, cause): number
        for kind in ("read", "program", "erase")
        for cause, number in result["flash"][f"{kind}s"].items()
        if number
    }
    assert counts == expected
    assert counts["erase", "gc"] and counts["read", "map"], "the workload has garbage and misses"
    assert all(one.name == f"{one.category} {one.args['cause']}" for one in cells)


LINK = {
    "device.link": "200MB/s",
    "device.link_command": "300ns",
    "device.cores": 2,
    "device.command_time": "9us",
    "device.latency_read": "5us",
}


@pytest.mark.parametrize(
    ("duplex", "links"), [("full", ["link to the device", "link to the host"]), ("half", ["link"])]
)
def test_link_and_cores_have_tracks(tmp_path: Path, duplex: str, links: list[str]) -> None:
    out = tmp_path / "t.pftrace"
    requests = str(write_trace(tmp_path / "trace.csv", 600))
    keys = {**GEOMETRY, **LINK, "device.link_duplex": duplex, "device.queue_depth": 8}
    result = ftlab.run("map-plus", set=keys, trace=requests, timeline=out)
    plain = ftlab.run("map-plus", set=keys, trace=requests)
    trace = Trace(out)
    trace.check_no_overlap()
    [group] = [uuid for uuid, name in trace.names.items() if name == "controller"]
    inside = [name for uuid, name in trace.names.items() if trace.parents[uuid] == group]
    assert inside == [*links, "core 0", "core 1"]
    busy = {name: sum(one.end - one.begin for one in trace.on(name)) for name in inside}
    device, elapsed = result["device"], result["elapsed_ns"]
    assert device["link_busy"] == pytest.approx(max(busy[name] for name in links) / elapsed)
    assert device["core_busy"] == pytest.approx((busy["core 0"] + busy["core 1"]) / 2 / elapsed)
    assert plain["device"] == device and plain["latency"] == result["latency"]
    drawn = {one.args["request"]: one for one in trace.on("requests")}
    names = Counter(one.name for name in inside for one in trace.on(name))
    assert names["command"] == names["work"] == names["answer"] == len(drawn)
    assert names["data in"] and names["data out"]
    for one in (one for name in inside for one in trace.on(name)):
        assert one.flows == [one.args["request"]]
        [access] = [part for part in drawn[one.args["request"]].inside if part.name == "access"]
        assert access.begin <= one.begin <= one.end <= access.end


def test_the_write_buffer_has_a_count(tmp_path: Path) -> None:
    """It rises with the pages written, and ends with those that nothing has destaged."""
    out = tmp_path / "t.pftrace"
    rows = "0,W,0,4096\n5000,W,4096,8192\n9000000,R,65536,4096\n"
    (tmp_path / "a.csv").write_text("time_ns,op,offset,size\n" + rows)
    keys = {"device.write_buffer": "64KiB", "device.queue_depth": 8}
    result = ftlab.run("map-plus", set=keys, trace=str(tmp_path / "a.csv"), timeline=out)
    trace = Trace(out)
    levels = trace.counters["write buffer"]
    assert levels[:2] == [(0, 1), (5000, 3)]
    assert result["device"]["buffer"]["high_water"] == 3
    assert levels[-1][1] == 0
    ends = [
        one.end for chip in range(4) for one in trace.on(f"chip {chip}") if one.name.startswith("program")
    ]
    assert {at for at, _ in levels[-3:]} <= set(ends)
    assert "write buffer" not in run(tmp_path)[1].names.values()


def test_shows_every_request(tmp_path: Path) -> None:
    result, trace = run(tmp_path)
    rows = {row["id"]: row for row in result.requests.to_dicts()}
    drawn = trace.on("requests")
    assert sorted(one.args["request"] for one in drawn) == sorted(rows)
    for one in drawn:
        row = rows[one.args["request"]]
        letters = {"read": "R", "write": "W", "trim": "T", "flush": "F"}
        assert letters[one.name] == row["op"]
        assert (one.begin, one.end) == (row["arrival_ns"], row["complete_ns"])
        assert (one.args["offset"], one.args["size"]) == (row["offset"], row["size"])
        assert one.args["latency_ns"] == row["complete_ns"] - row["arrival_ns"]
        assert one.args["mapping_misses"] == row["mapping_misses"]
        parts = {part.name: (part.begin, part.end) for part in one.inside}
        wait = (row["arrival_ns"], row["dispatch_ns"])
        assert parts.pop("wait", (wait[0], wait[0])) == wait
        assert parts == {"access": (row["dispatch_ns"], row["complete_ns"])}

    # An arrow leads from the access of a request through its flash operations.
    access = {flow: part for one in drawn for part in one.inside for flow in part.flows}
    assert set(access) == set(rows)
    operations = [one for chip in range(4) for one in trace.on(f"chip {chip}")]
    for one in operations:
        assert one.flows == [one.args["request"]]
        assert access[one.flows[0]].begin <= one.begin <= one.end <= access[one.flows[0]].end
        row = rows[one.flows[0]]
        first = row["offset"] // 4096
        # Two kinds are left out: a prefetch may serve another request of the batch, and a flush has no page.
        if one.args["op"] != "flush" and one.args["cause"] == "host":
            assert first <= one.args["lpn"] < first + row["size"] // 4096
    assert trace.counters["pending queue"][-1][1] == 0


@pytest.mark.parametrize("by_stream", [False, True], ids=["tables", "streams"])
def test_slices_name_their_tenants(tmp_path: Path, by_stream: bool) -> None:
    """Each tenant has a track for its requests, and every slice that runs for a request names its tenant."""
    load = {"device.link": "1GB/s", "flash.transfer": "2.5ns"}
    if by_stream:
        rows = "".join(f"{at * 400_000},{'RW'[at % 2]},{at % 50 * 4096},4096,{at % 3}\n" for at in range(300))
        (tmp_path / "s.csv").write_text("time_ns,op,offset,size,stream\n" + rows)
        load |= {"workload.tenants": "by-stream", "workload.trace": str(tmp_path / "s.csv")}
        names = ["0", "1", "2"]
    else:
        names = ["one", "two"]
        load |= {f"tenant.{name}.synthetic.requests": "150" for name in names}
    result = ftlab.run("map-plus", set={**GEOMETRY, **load}, timeline=tmp_path / "t.pftrace", collect=True)
    trace = Trace(tmp_path / "t.pftrace")
    trace.check_no_overlap()
    of = {row["id"]: names[row["stream"]] for row in result.requests.to_dicts()}
    drawn = {name: trace.on(f"requests of {name}") for name in names}
    assert not trace.on("requests")
    for name in names:
        assert {one.args["request"] for one in drawn[name]} == {
            at for at, tenant in of.items() if tenant == name
        }
        assert {one.name for one in drawn[name]} <= {f"read ({name})", f"write ({name})"}
    others = [one for one in trace.slices if not trace.names[one.track].startswith("requests of ")]
    kinds = {one.name.removesuffix(f" ({of[one.args['request']]})") for one in others}
    assert {"read host", "program host", "data in", "data out"} <= kinds
    assert all("(" not in kind for kind in kinds)


def test_window(tmp_path: Path) -> None:
    whole = run(tmp_path)[1]
    longest = max(whole.on("requests"), key=lambda one: one.end - one.begin)
    start = (longest.begin + longest.end) // 2
    end = start + 50_000_000
    result, trace = run(tmp_path, timeline_window=f"{start}ns:{end}ns")
    trace.check_no_overlap()
    assert result.timeline is not None
    assert result.timeline.cut_ns is None
    every = [part for one in trace.slices for part in (one, *one.inside)]
    assert all(start <= one.begin <= one.end <= end for one in every)
    assert all(start <= time < end for time, _ in trace.counters["pending queue"])

    def seen(slices: list[Slice]) -> list[tuple[int, int, str, Any]]:
        return sorted(
            (max(one.begin, start), min(one.end, end), one.name, one.args.get("request"))
            for one in slices
            if one.begin < end and (one.end > start or one.begin >= start)
        )

    for name in [*(f"chip {chip}" for chip in range(4)), "requests"]:
        assert seen(trace.on(name)) == seen(whole.on(name))
    assert any(one.begin == start for one in trace.on("requests")), "one was there already"
    cut = [one for one in trace.slices if "whole_ns" in one.args]
    assert cut and all(one.args["whole_ns"] > one.end - one.begin for one in cut)
    open_end = run(tmp_path, timeline_window=f"{start}ns:")[1]
    assert open_end.last == whole.last


def test_results_and_file_are_the_same_every_time(tmp_path: Path) -> None:
    first = run(tmp_path)[0]
    once = (tmp_path / "t.pftrace").read_bytes()
    second = run(tmp_path)[0]
    assert (tmp_path / "t.pftrace").read_bytes() == once
    config = GEOMETRY | {"flash.transfer": "0ns"}
    without = ftlab.run("map-plus", set=config, trace=str(tmp_path / "trace.csv"))
    assert without.timeline is None
    plain = [{k: v for k, v in one.to_dict().items() if k != "engine"} for one in (first, second, without)]
    assert plain[0] == plain[1] == plain[2]
    assert first.requests.equals(without.requests)


def test_stops_at_its_bound_and_says_so(cli: Cli) -> None:
    write_trace(cli.directory / "long.csv", 260_000)
    done = cli("run", "map-plus", "--trace", "long.csv", "--timeline", "t.pftrace")
    assert done.returncode == 0, done.stderr
    [note] = [line for line in done.stderr.splitlines() if line.startswith("note: t.pftrace")]
    assert note.startswith("note: t.pftrace ends at ")
    assert "--timeline-window START:END" in note
    said = int(note.split(" events")[0].split()[-1].replace(",", ""))
    assert 1_000_000 <= said < 1_000_100


def test_empty_window_is_said(cli: Cli) -> None:
    done = cli("run", "map-plus", "--trace", "a.csv", "--timeline", "t.pftrace", "--timeline-window", "5s:6s")
    assert done.returncode == 0
    assert done.stderr == "note: t.pftrace: nothing happened in --timeline-window 5s:6s\n"
    assert Trace(cli.directory / "t.pftrace").slices == []


@pytest.mark.parametrize(
    ("window", "why"),
    [
        ("10ms", "--timeline-window 10ms: write START:END, for example 10ms:20ms"),
        ("20ms:10ms", "--timeline-window 20ms:10ms: it ends before it begins"),
        ("1:2ms", "--timeline-window 1:2ms: 1 has no unit; write 1us or 1ms"),
        ("1ms:2ks", "--timeline-window 1ms:2ks: unknown unit ks"),
    ],
)
def test_bad_windows(cli: Cli, window: str, why: str) -> None:
    done = cli("run", "map-plus", "--trace", "a.csv", "--timeline", "t", "--timeline-window", window)
    assert done.returncode == 2
    assert done.stderr.startswith(f"error: {why}")
    assert not (cli.directory / "t").exists()


def test_output_errors(cli: Cli) -> None:
    run = ("run", "map-plus", "--trace", "a.csv")
    full = cli(*run, "--timeline", "/dev/full")
    assert (full.returncode, full.stderr) == (
        2,
        "error: --timeline /dev/full: cannot write: No space left on device\n",
    )
    missing = cli(*run, "--timeline", "a.csv/t")
    assert missing.returncode == 2
    assert missing.stderr.startswith("error: --timeline a.csv/t: cannot write: ")
    same = cli(*run, "--timeline", "x", "--json", "x")
    assert (same.returncode, same.stderr) == (2, "error: --timeline x: --json names the same file\n")
    alone = cli(*run, "--timeline-window", "1ms:2ms")
    assert (alone.returncode, alone.stderr) == (2, "error: --timeline-window needs --timeline FILE\n")
    assert sorted(path.name for path in cli.directory.iterdir()) == ["a.csv"]
