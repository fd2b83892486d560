"""Compares read-ahead with a second implementation, request by request, to the nanosecond."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import asdict
from typing import Any

import pytest

from oracle import buffer, engine, read_ahead
from oracle.buffer import Config, Device
from oracle.mapplus import Record
from oracle.read_ahead import ReadAhead

pytestmark = pytest.mark.skipif(not engine.available(), reason=engine.SKIP_REASON)

TIMES: dict[str, Any] = {"read": 35_017, "program": 350_039}
STAGES: dict[str, Any] = {
    "bytes_per_s": 250_000_001,
    "link_command": 900,
    "cores": 2,
    "command": 30_000,
    "unit": 2_500,
    "latency": (7_777, 5_555),
    "latency_other": 3_333,
}
DEVICES = {
    "no-buffer": Config(**TIMES, pages=0, ahead=4),
    "far": Config(**TIMES, pages=0, ahead=24),
    "direct": Config(**TIMES, scheduler="direct", pages=0, ahead=8),
    "buffer": Config(**TIMES, ahead=8),
    "direct-buffer": Config(**TIMES, scheduler="direct", policy="lru", pages=12, ahead=3),
    "block": Config(**TIMES, policy="block", block_pages=8, pages=24, ahead=5),
    "one-page": Config(**TIMES, pages=1, ahead=1),
    "protected": Config(**TIMES, pages=24, protected=True, ahead=6),
    "all": Config(**TIMES, **STAGES, policy="lru", ahead=8),
    "all-no-buffer": Config(**TIMES, **STAGES, pages=0, ahead=8),
}
REQUESTS = 10_000


def trace(
    seed: int,
    count: int,
    gap_ns: int,
    streams: int = 4,
    shares: tuple[int, ...] = (70, 10, 12, 2, 5, 1),
    space: int = 4000,
    step_ns: int = 1,
) -> list[Record]:
    """Returns requests at random times, which are multiples of a step: reads that go on in one of the
    streams, random reads, writes, writes with FUA, trims and flushes, with the given shares. Of the random
    reads, writes and trims, half are near the end of a stream. Now and then a stream begins anew elsewhere.
    """
    draw = random.Random(seed)
    ends = [draw.randrange(space) for _ in range(streams)]
    now, rows = 0, []
    for _ in range(count):
        now += int(draw.expovariate(1 / gap_ns)) + 1
        kind = draw.choices(["S", "R", "W", "WF", "T", "F"], shares)[0]
        stream, pages = draw.randrange(streams), draw.choice([1, 1, 1, 2, 4, 8])
        lpn = draw.randrange(space)
        if kind == "S":
            if draw.random() < 0.02 or ends[stream] + pages > space:
                ends[stream] = lpn
            lpn = ends[stream]
            ends[stream] += pages
        elif draw.random() < 0.5:
            lpn = max(0, ends[stream] + draw.randrange(-3, 12))
        place = (0, 0) if kind == "F" else (lpn * 4096, pages * 4096)
        rows.append((now // step_ns * step_ns, "R" if kind == "S" else kind, *place))
    return rows


def differences(config: Config, rows: list[Record]) -> list[tuple[str, object, object]]:
    """Returns what differs, with ftlab's value and the oracle's: requests (completion, and how many pages
    were answered from RAM), figures of the buffer, and the pages read ahead.
    """
    expected = buffer.run(config, rows)
    settings = {"preset": "map-plus", "flash.blocks_per_plane": 8192, **config.settings()}
    result = engine.result_of(settings, rows)
    columns = [result.column(name).tolist() for name in ["id", "complete_ns", "buffered"]]
    found = {f"request {number}": (at, pages) for number, at, pages in zip(*columns, strict=True)}
    figures = result.to_dict()
    found |= figures["device"]["buffer"]
    found["own.read_ahead.pages"] = figures["own"]["read_ahead"]["pages"]
    wanted: dict[str, object] = asdict(expected.figures)
    for number, answer in enumerate(zip(expected.done, expected.buffered, strict=True), min(columns[0])):
        wanted[f"request {number}"] = answer
    wanted["own.read_ahead.pages"] = expected.read_ahead
    assert found.keys() == wanted.keys()
    return [(name, found[name], wanted[name]) for name in wanted if found[name] != wanted[name]]


@pytest.mark.parametrize("gap_ns", [110_000, 150_000, 400_000])
@pytest.mark.parametrize("name", DEVICES)
def test_every_request_is_the_oracles(name: str, gap_ns: int) -> None:
    """At each load, ftlab and the oracle agree on 10,000 requests; the first is more than most devices can
    take.
    """
    assert not differences(DEVICES[name], trace(7, REQUESTS, gap_ns))[:5]


@pytest.mark.parametrize("streams", [1, 20])
@pytest.mark.parametrize("name", ["far", "buffer"])
def test_streams_are_told_apart(name: str, streams: int) -> None:
    """They agree on a single stream, and on more streams than are told apart."""
    assert not differences(DEVICES[name], trace(8, REQUESTS, 150_000, streams))[:5]


def dense() -> list[Record]:
    """Returns requests that meet often: two streams, and few pages."""
    return trace(7, 2000, 60_000, 2, (60, 20, 10, 2, 8, 0), 300)


@pytest.mark.parametrize("name", ["direct", "all"])
def test_requests_meet(name: str) -> None:
    """They agree on requests that often have pages in common."""
    assert not differences(DEVICES[name], dense())[:5]


def test_two_reads_get_the_same_page() -> None:
    """Two reads that wait for a page are both answered when it comes."""
    rows = [(0, "R", 0, 4096), (100_000, "R", 4096, 4096)]
    rows += [(100_001, "R", 2 * 4096, 4 * 4096), (100_002, "R", 4 * 4096, 4096)]
    outcome = buffer.run(Config(**TIMES, pages=0, ahead=8), rows)
    assert outcome.buffered == [0, 0, 4, 1]
    assert outcome.done[2] - outcome.done[3] == TIMES["read"]
    assert not differences(Config(**TIMES, pages=0, ahead=8), rows)


@pytest.mark.parametrize("seed", range(100))
def test_random_devices(seed: int) -> None:
    """On random devices, ftlab and the oracle agree on 400 requests each; times are whole microseconds on
    every other device.
    """
    draw = random.Random(seed)
    step = [1, 1_000][seed % 2]

    def time(most_us: int) -> int:
        return draw.choice([0, draw.randrange(most_us * 1_000) // step * step])

    config = Config(
        bytes_per_s=draw.choice([None, 250_000_001, 4_096_000_000]),
        half_duplex=draw.choice([False, True]),
        link_command=time(4),
        cores=draw.choice([1, 3]),
        command=time(10),
        unit=time(3),
        latency=(time(10), time(10)),
        latency_other=time(5),
        read=draw.choice([1_000, 3_000, 35_000]),
        program=draw.choice([3_000, 9_000, 35_000, 350_000]),
        scheduler=draw.choice(["noop", "direct"]),
        pages=draw.choice([0, 0, 1, 5, 16, 40]),
        policy=draw.choice(["fifo", "lru", "block", "sorted"]),
        block_pages=draw.choice([4, 8, 16]),
        ahead=draw.choice([1, 2, 5, 16, 40]),
    )
    streams, space = draw.choice([1, 3, 17, 24]), draw.choice([60, 300, 4000])
    shares = draw.choice([(70, 10, 12, 2, 5, 1), (40, 20, 20, 5, 14, 1), (95, 5, 0, 0, 0, 0)])
    gap = int((config.read * 3 + config.program / 4) / draw.choice([0.3, 0.8, 1.5]))
    assert not differences(config, trace(seed, 400, gap, streams, shares, space, step))[:5]


def _from_the_first_read(self: ReadAhead, lpns: range) -> None:
    """Reads ahead of every read."""
    self.wanted += range(lpns.stop, lpns.stop + self.pages)


def _one_page_too_few(self: ReadAhead, lpns: range) -> None:
    self.pages -= 1
    follow(self, lpns)
    self.pages += 1


def _again_from_the_end(self: ReadAhead, lpns: range) -> None:
    """Wants pages again that it has wanted before."""
    follow(self, lpns)
    for stream in self.streams:
        stream.reached = stream.end


def _takes_what_others_wait_for(self: ReadAhead, lpns: range) -> None:
    for lpn in filter(self.has, lpns):
        del self.ram[lpn]


def _keeps_what_was_read(self: ReadAhead, lpns: range) -> None:
    pass


def _forgets_what_is_on_its_way(self: ReadAhead, lpns: range) -> None:
    for lpn in filter(self.has, lpns):
        del self.ram[lpn]


def _drops_what_is_on_its_way(self: ReadAhead) -> None:
    while len(self.ram) > read_ahead.STREAMS * self.pages and self.has(next(reversed(self.ram))):
        del self.ram[next(reversed(self.ram))]


def _last_waits_least(self: ReadAhead, lpn: int, waits: Callable[[range], bool]) -> None:
    self.waiting.reverse()
    landed(self, lpn, waits)
    self.waiting.reverse()


def _reads_what_is_in_the_buffer(self: Device, lpn: int) -> bool:
    return False


def _never_waits(self: Device, lpns: range) -> bool:
    return False


follow, landed = ReadAhead.follow, ReadAhead.landed
FAULTS: dict[str, tuple[Any, str, Any]] = {
    "15 streams": (read_ahead, "STREAMS", 15),
    "begins with the first read": (ReadAhead, "follow", _from_the_first_read),
    "a page too few": (ReadAhead, "follow", _one_page_too_few),
    "wants pages again": (ReadAhead, "follow", _again_from_the_end),
    "takes what others wait for": (ReadAhead, "take", _takes_what_others_wait_for),
    "keeps what was read": (ReadAhead, "take", _keeps_what_was_read),
    "keeps an old version": (ReadAhead, "drop", _keeps_what_was_read),
    "lets an old version come": (ReadAhead, "drop", _forgets_what_is_on_its_way),
    "drops the newest": (ReadAhead, "shrink", _drops_what_is_on_its_way),
    "lets the last go first": (ReadAhead, "landed", _last_waits_least),
    "reads what is in the buffer": (Device, "has_room", _reads_what_is_in_the_buffer),
    "never waits": (Device, "waits", _never_waits),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_faulty_oracle_is_noticed(fault: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each of these faults in the oracle makes it differ from ftlab."""
    monkeypatch.setattr(*FAULTS[fault])
    assert any(differences(DEVICES[name], dense()) for name in ("direct", "all"))
