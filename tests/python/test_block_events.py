"""The recorder's account of the kernel's block events, and the trace that it made."""

from __future__ import annotations

import csv
import gzip
import hashlib
from pathlib import Path

import pytest

import ftlab
from scripts import script

ROOT = Path(__file__).resolve().parents[2]
TRACE = ROOT / "traces" / "phone-mix.csv.gz"


events = script("block_events")


def bio(micros: int, flags: str, sector: int, sectors: int) -> str:
    return (
        f"  sqlite3-65  [001] .....  1246.{micros:06}: block_bio_queue: 7,0 {flags} {sector} + {sectors} [x]"
    )


def request(micros: int, event: str, flags: str, sector: int, sectors: int) -> str:
    size = sectors * 512
    return (
        f"  kworker/0:1H-58 [000] ...1.  1246.{micros:06}: block_rq_{event}: 7,0 {flags} {size} () "
        f"{sector} + {sectors} be,0,4 [kworker/0:1H]"
    )


def test_pieces_gathered_into_a_request_are_one() -> None:
    lines = [bio(10, "WS", 8, 8), bio(11, "WS", 16, 8), request(15, "insert", "WS", 8, 16)]
    recording = events.parse(lines)
    assert recording.requests == [(0, "W", 8 * 512, 16 * 512)]
    assert recording.joined == 0


def test_a_large_piece_comes_in_several_requests() -> None:
    lines = [
        bio(10, "RA", 0, 24),
        request(11, "insert", "RA", 0, 16),
        request(14, "insert", "RA", 16, 8),
    ]
    assert events.parse(lines).requests == [(0, "R", 0, 16 * 512), (3000, "R", 16 * 512, 8 * 512)]


def test_a_request_merged_on_insertion_counts_once() -> None:
    lines = [
        bio(10, "W", 0, 8),
        request(11, "insert", "W", 0, 8),
        bio(12, "W", 8, 8),
        request(13, "merge", "W", 8, 8),
        # Then the queue merges requests that it already holds: nothing new arrives.
        request(14, "merge", "W", 0, 16),
    ]
    assert events.parse(lines).requests == [(0, "W", 0, 4096), (2000, "W", 4096, 4096)]


def test_a_piece_that_joined_a_waiting_request_is_not_lost() -> None:
    lines = [
        bio(10, "R", 0, 8),
        request(11, "insert", "R", 0, 8),
        bio(12, "R", 8, 8),
        bio(20, "R", 800, 8),
        request(21, "insert", "R", 800, 8),
    ]
    recording = events.parse(lines)
    assert [row[2] // 512 for row in recording.requests] == [0, 8, 800]
    assert [row[0] for row in recording.requests] == [0, 1000, 10_000]
    assert recording.joined == 1


def test_flushes_discards_and_preflushed_writes() -> None:
    lines = [
        bio(1, "FWS", 0, 0),  # a flush without data; its request is the FF below
        request(2, "issue", "FF", 0, 0),
        bio(3, "FWFSM", 64, 8),
        request(4, "insert", "WSM", 64, 8),
        request(5, "issue", "WSM", 64, 8),  # the second event of the same request
        bio(6, "DS", 128, 2048),
        request(7, "insert", "DS", 128, 2048),
    ]
    assert events.parse(lines).requests == [
        (0, "F", 0, 0),
        (2000, "W", 64 * 512, 4096),
        (5000, "T", 128 * 512, 1 << 20),
    ]


@pytest.mark.parametrize(
    ("lines", "why"),
    [
        ([], "no request"),
        (["CPU:1 [LOST 12 EVENTS]"], "lost events"),
        ([request(1, "insert", "R", 0, 8)], "line 1: inserted, but never submitted"),
        ([bio(1, "R", 0, 8), request(2, "insert", "R", 0, 16)], "line 2: inserted, but never submitted"),
        (["# tracer: nop"], "line 1: not a block event"),
        ([bio(1, "N", 0, 8)], "unknown kind 'N'"),
    ],
)
def test_a_recording_that_is_not_whole_is_refused(lines: list[str], why: str) -> None:
    with pytest.raises(events.EventError, match=why):
        events.parse(lines)


def facts_of(path: Path) -> dict[str, str]:
    pairs = (line.split(":", 1) for line in path.read_text().splitlines())
    return {key: value.strip() for key, value in pairs}


def test_the_shipped_trace_is_the_one_its_provenance_describes() -> None:
    provenance = facts_of(TRACE.with_name("phone-mix.provenance.txt"))
    assert provenance["file"] == TRACE.name
    assert provenance["sha256"] == hashlib.sha256(TRACE.read_bytes()).hexdigest()
    with gzip.open(TRACE, "rt") as file:
        rows = [(int(r["time_ns"]), r["op"], int(r["offset"]), int(r["size"])) for r in csv.DictReader(file)]
    described = {key: str(value) for key, value in events.facts(events.Recording(rows, 0)).items()}
    assert described.items() <= provenance.items()


def test_ftlab_reads_all_of_the_shipped_trace() -> None:
    info = ftlab.trace_info(TRACE)
    provenance = facts_of(TRACE.with_name("phone-mix.provenance.txt"))
    assert provenance["requests"].startswith(f"{info['requests']} ")
    assert not any(info["dropped"].values())
    assert info["out_of_order"] == 0


def test_the_workload_draws_the_same_from_the_same_seed(tmp_path: Path) -> None:
    workload = script("phone_workload")
    first, second, other = (workload.Messenger(tmp_path, seed) for seed in ("1", "1", "2"))
    drawn = [[app.message(at) for at in range(20)] for app in (first, second, other)]
    assert drawn[0] == drawn[1] != drawn[2]
