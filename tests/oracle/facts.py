"""Figures measured once with public simulators, and ftlab's figures for the same questions today.

Each fact is a row of docs/validation.md. If the notes of a measurement say enough about it, ``rerun``
measures ftlab's side again; a figure out of ``bound`` fails `make validation`. If the notes do not,
``missing`` says what is not known, and the row shows ftlab's figure at the time.
"""

from __future__ import annotations

import hashlib
import random
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

from . import arrays, engine, plain, theory, traces

UNKNOWN = "not recorded"
"""The value of details that the notes of the measurements do not give."""

FLASHSIM_CACHE = "2,048 entries, LRU, pages of 4 KiB"


@dataclass(frozen=True)
class Fact:
    """A figure of another simulator, and ftlab's figure."""

    name: str
    simulator: str
    settings: str
    """Settings and trace of both sides, beyond what the page says about all rows of a kind."""
    metric: str
    theirs: float
    then: float
    """ftlab's figure at the time of the measurement."""
    digits: int
    bound: float
    """The largest difference allowed between ftlab's figure and ``theirs``, as a share of ``theirs``; 0 if
    both must be equal in the digits shown.
    """
    cause: str
    rerun: Callable[[], float] | None = None
    missing: str = ""
    commit: str = UNKNOWN
    """The commit of the other simulator that was measured."""
    needs: str | None = None
    """A recorded trace that the measurement needs and that does not come with ftlab."""

    def within(self, value: float) -> bool:
        """Whether a figure of ftlab is within the bound."""
        away = abs(round(value, self.digits) - self.theirs)
        # With a bound of 0, the figures must be equal in the digits shown.
        return away <= max(self.bound * self.theirs, 0.001 / float(10**self.digits))

    def available(self) -> bool:
        """Whether ftlab's side can be measured here."""
        return self.needs is None or (engine.shared_traces() / self.needs).is_file()


@cache
def separated(geometry: str) -> dict[str, list[int]]:
    """Returns the latencies, ns, of 999 reads and 999 writes of one page, each alone in the device."""
    array = arrays.GEOMETRIES[geometry]
    draw = random.Random(13)
    gap = 1_000_000
    ops = ["R", "W"] * 999
    requests = [
        (number * gap, op, draw.randrange(arrays.pages_of(array)), 1) for number, op in enumerate(ops)
    ]
    completed = arrays.run(array, requests)
    latencies: dict[str, list[int]] = {"R": [], "W": []}
    for (at, op, *_), end in zip(requests, completed, strict=True):
        latencies[op].append(end - at)
    return latencies


def alone(geometry: str, op: str, theirs_us: float) -> Callable[[], float]:
    """Returns a function that measures the mean latency in us; it raises an error if any request differs from
    ``theirs_us``.
    """

    def rerun() -> float:
        found = separated(geometry)[op]
        unequal = sum(ns != round(theirs_us * 1000) for ns in found)
        if unequal:
            raise ValueError(f"{unequal} of {len(found)} requests differ")
        return sum(found) / len(found) / 1000

    return rerun


BLOCKS, BLOCK_PAGES = 1024, 64


def steady_waf(spare: float) -> Callable[[], float]:
    """Returns a function that measures the write amplification of greedy collection under uniform random
    writes of one page, between the 8th and the 16th overwrite of the device.
    """

    @cache
    def rerun() -> float:
        import ftlab

        withheld = round((1 - 1 / spare) * 1e6)
        logical = BLOCKS * BLOCK_PAGES * (1_000_000 - withheld) // 1_000_000
        settings: dict[str, Any] = {
            "ftl.kind": "page",
            "ftl.gc_free_blocks": 1,
            "ftl.over_provisioning": f"{withheld / 1e4}%",
            "flash.blocks_per_plane": BLOCKS,
            "flash.pages_per_block": BLOCK_PAGES,
            "device.precondition": "fill",
            "workload.synthetic.pattern": "random",
            "workload.synthetic.read_share": "0%",
            "workload.synthetic.size": "4KiB",
            "seed": 13,
        }
        programs: list[float] = []
        for writes in (8 * logical, 16 * logical):
            asked = settings | {"workload.synthetic.requests": writes}
            counted = ftlab.run(asked, collect=False)["flash"]["programs"]
            programs.append(float(sum(counted.values())))
        return (programs[1] - programs[0]) / (8 * logical)

    return rerun


WAF = {spare: steady_waf(spare) for spare in (1.15, 1.28, 1.5)}
"""For each spare factor, the function that measures its write amplification (only once)."""


def dftl_hits(file: str) -> Callable[[], float]:
    """Returns a function that measures the hits of an LRU cache of 2,048 entries on a recorded trace."""

    def rerun() -> float:
        accesses = traces.packed(traces.sectors(engine.shared_traces() / file))
        settings = {
            "ftl.kind": "dftl",
            "ftl.mapping_cache": "16KiB",
            "ftl.cache_policy": "lru",
            "flash.blocks_per_plane": 8192,
        }
        return float(traces.run(settings, accesses)["mapping"]["hits"])

    return rerun


def bast_merges(permuted: bool, kind: str) -> Callable[[], float]:
    """Returns a function that counts BAST's merges of a ``kind`` while each of 200 blocks is written once
    completely.
    """

    def rerun() -> float:
        draw = random.Random(13)
        accesses: list[plain.Access] = []
        for block in range(200):
            pages = [block * BLOCK_PAGES + offset for offset in range(BLOCK_PAGES)]
            if permuted:
                draw.shuffle(pages)
            accesses += [("W", page, 1) for page in pages]
        settings = {
            "ftl.kind": "bast",
            "ftl.over_provisioning": "20%",
            "flash.blocks_per_plane": 512,
            "flash.pages_per_block": BLOCK_PAGES,
            "device.precondition": "fill",
        }
        return float(traces.run(settings, accesses)["merges"][kind]["count"])

    return rerun


def digest(file: str) -> str:
    """Returns the beginning of a trace's hash."""
    path = engine.shared_traces() / file
    return f"`{file}`, sha256 {hashlib.sha256(path.read_bytes()).hexdigest()[:12]}"


def separated_facts() -> list[Fact]:
    return [
        Fact(
            name=f"ssdsim-{geometry}-{what}",
            simulator="SSDSim",
            settings=geometry,
            metric=f"{what} latency, us",
            theirs=theirs,
            then=theirs,
            digits=3,
            bound=0,
            cause="",
            rerun=alone(geometry, op, theirs),
        )
        for geometry in ("1x1", "8x2", "8x2x2x2")
        for op, what, theirs in [("R", "read", 122.575), ("W", "write", 302.575)]
    ]


def waf_facts() -> list[Fact]:
    known = [(1.15, 3.8073, 3.8123), (1.28, 2.4087, 2.4085), (1.5, 1.6821, 1.6836)]
    return [
        Fact(
            name=f"ssdsim-waf-{spare}",
            simulator="SSDSim",
            settings=f"greedy, spare factor {spare}",
            metric="steady write amplification",
            theirs=theirs,
            then=then,
            digits=4,
            bound=0.01,
            cause=f"other draws; closed form {theory.greedy(spare, BLOCK_PAGES):.4f}",
            rerun=WAF[spare],
        )
        for spare, theirs, then in known
    ]


def dftl_facts() -> list[Fact]:
    known = [
        ("financial1", "financial1-first10000.ssdsim.txt", 13_712.0),
        ("tpcc", "tpcc-small.mqsim.txt", 127.0),
    ]
    return [
        Fact(
            name=f"flashsim-dftl-{name}",
            simulator="FlashSim",
            settings=f"DFTL, {FLASHSIM_CACHE}; `{file}`",
            metric="mapping hits",
            theirs=hits,
            then=hits,
            digits=0,
            bound=0,
            cause="",
            rerun=dftl_hits(file),
            needs=file,
        )
        for name, file, hits in known
    ]


def bast_facts() -> list[Fact]:
    known = [
        ("in order", False, "switch", 200.0),
        ("in order", False, "full", 0.0),
        ("permuted", True, "switch", 0.0),
        ("permuted", True, "full", 200.0),
    ]
    facts = [
        Fact(
            name=f"flashsim-bast-{order.replace(' ', '-')}-{kind}",
            simulator="FlashSim",
            settings=f"BAST, {order}",
            metric=f"{kind} merges",
            theirs=merges,
            then=merges,
            digits=0,
            bound=0,
            cause="",
            rerun=bast_merges(permuted, kind),
        )
        for order, permuted, kind, merges in known
    ]
    mixed = [
        Fact(
            name=f"flashsim-bast-mixed-{kind}",
            simulator="FlashSim",
            settings="BAST, some in order and some permuted",
            metric=f"{kind} merges",
            theirs=merges,
            then=merges,
            digits=0,
            bound=0,
            cause="",
            missing="which blocks were permuted",
        )
        for kind, merges in [("switch", 95.0), ("full", 105.0)]
    ]
    return facts + mixed


def kept_facts() -> list[Fact]:
    """Returns the facts whose measurement was not recorded well enough to repeat it."""

    def fact(name: str, simulator: str, settings: str, metric: str, **rest: Any) -> Fact:
        return Fact(name, simulator, settings, metric, **rest)

    ssdsim: dict[str, Any] = {"simulator": "SSDSim"}
    mqsim: dict[str, Any] = {"simulator": "MQSim", "metric": "mean read latency, us", "digits": 2}
    equal: dict[str, Any] = {"bound": 0, "cause": ""}
    order: dict[str, Any] = {
        "bound": 0.03,
        "cause": "the order on the bus, MQSim's own or first come, first served",
        "missing": "page size, time of a byte and how addresses were brought into the device",
    }
    gone = {"settings": "dtrs100m", "missing": "the trace"}
    collected: dict[str, Any] = {
        "bound": 0.01,
        "cause": UNKNOWN,
        "digits": 4,
        "settings": "",
        "missing": "trace, geometry and over-provisioning",
        "metric": "write amplification",
    }
    search: dict[str, Any] = {"missing": "the trace and the time of a byte"}
    return [
        fact("ssdsim-dtrs-read", **ssdsim, metric="read latency, us", theirs=208.081, then=208.081,
             digits=3, **equal, **gone),
        fact("ssdsim-dtrs-write", **ssdsim, metric="write latency, us", theirs=386.685, then=386.685,
             digits=3, **equal, **gone),
        fact("ssdsim-gc-1", **ssdsim, theirs=2.6556, then=2.6576, **collected),
        fact("ssdsim-gc-2", **ssdsim, theirs=3.1003, then=3.1018, **collected),
        fact("mqsim-wsrch-8x2", settings="8x2; wsrch", theirs=44.968, then=44.968,
             **{**mqsim, "digits": 3}, **equal, **search),
        fact("mqsim-wsrch-2x2", settings="2x2; wsrch", theirs=52.762, then=52.762,
             **{**mqsim, "digits": 3}, **equal, **search),
        fact("mqsim-tpcc-8x2", settings="8x2; `tpcc-small.mqsim.txt`", theirs=160.83, then=163.24,
             **mqsim, **order),
        fact("mqsim-tpcc-2x2", settings="2x2; `tpcc-small.mqsim.txt`", theirs=6465, then=6324,
             **{**mqsim, "digits": 0}, **order),
    ]  # fmt: skip


FACTS = [*separated_facts(), *waf_facts(), *dftl_facts(), *bast_facts(), *kept_facts()]
