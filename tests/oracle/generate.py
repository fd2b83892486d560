"""Random small cases for the comparison of engine and oracle: each seed gives a case.

A case is a ``mapplus.Config`` and a byte trace. Clustered arrivals on a coarse time grid make
many events fall on one instant; hot pages, straddling requests and tiny caches make evictions, write-backs
and prefetches coincide.
"""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from .mapplus import Config, Record

GEOMETRY: dict[str, str | int | bool] = {
    "device.scheduler": "noop",
    "device.queue_depth": 1,
    "ftl.over_provisioning": "80%",
    "flash.channels": 1,
    "flash.chips_per_channel": 1,
    "flash.dies_per_chip": 1,
    "flash.planes_per_die": 1,
    "flash.blocks_per_plane": 4096,
    "flash.pages_per_block": 64,
    "flash.transfer": "0ns",
}
"""One serial chip; most of it is never addressed, so that none of these traces fills it."""

KEYS = {  # field of Config: key of ftlab, unit of the value, word for None
    "scheduler": ("host.scheduler", "", ""),
    "queue_depth": ("host.queue_depth", "", "unlimited"),
    "deadline_ns": ("host.deadline", "ns", "none"),
    "late": ("host.late", "", ""),
    "awareness": ("host.awareness", "", ""),
    "alternate": ("host.alternate", "", ""),
    "replay": ("workload.replay", "", ""),
    "ftl": ("ftl.kind", "", ""),
    "cache_bytes": ("ftl.mapping_cache", "B", "unlimited"),
    "cache_policy": ("ftl.cache_policy", "", ""),
    "batch_update": ("ftl.batch_update", "", ""),
    "load": ("ftl.load", "", ""),
    "background_flush": ("ftl.background_flush", "", ""),
    "partial_write": ("ftl.partial_write", "", ""),
    "entry_bytes": ("ftl.entry", "B", ""),
    "page_bytes": ("flash.page", "B", ""),
    "read_ns": ("flash.read", "ns", ""),
    "program_ns": ("flash.program", "ns", ""),
}

SCHEDULERS = ["noop", "row", "amphibian", "hp", "rb", "map", "map+"]
OWN = ["map-rate", "map-ratio"]
"""The schedulers that are ftlab's own."""
AWARENESS = ["full", "polled", "lru", "none"]
TIMINGS = [(35_000, 350_000), (35_000, 350_000), (10, 100), (7, 13), (1, 1)]
SHAPES = [(512, 64), (512, 64), (512, 32), (512, 8), (512, 5), (4096, 8), (800, 8)]  # bytes of page, entry
CACHE_ENTRIES = [1, 2, 3, 7, 8, 9, 15, 16, 17, 64, 64, 200, None]


def config(random_source: random.Random) -> Config:
    """Returns a random configuration."""
    pick = random_source.choice
    read_ns, program_ns = pick(TIMINGS)
    page_bytes, entry_bytes = pick(SHAPES)
    ftl = pick(["dftl", "dftl", "dftl", "cdftl", "cdftl", "tpftl", "tpftl", "page"])
    if ftl == "cdftl":
        # There is room for at least a translation page and one more entry.
        tiny = page_bytes + entry_bytes * pick([1, 2, 5, 20])
        cache_bytes = pick([tiny, page_bytes * pick([2, 3, 4, 7, 12]), None])
    elif ftl == "tpftl":
        # There is room for at least a node with one entry; ftlab requires room for an entry as large as on
        # flash.
        tiny = max(14, entry_bytes)
        cache_bytes = pick([tiny, *(tiny + more for more in (1, 6, 13, 14, 46, 86, 286, 986)), None])
    else:
        entries = pick(CACHE_ENTRIES)
        rest = random_source.randrange(entry_bytes)
        cache_bytes = None if entries is None else entries * entry_bytes + rest
    replay = pick(["open", "open", "open", "closed"])
    return Config(
        scheduler=pick(SCHEDULERS + OWN),
        queue_depth=pick([1, 2, 3, 8, 32, 128, None if replay == "open" else 128]),
        deadline_ns=pick([None, 0, 3 * read_ns, 20 * read_ns, 200 * read_ns, 10_000_000]),
        awareness=pick(["full", "full", "full", *AWARENESS]),
        alternate=pick([False, False, True]),
        replay=replay,
        ftl=ftl,
        cache_bytes=cache_bytes,
        cache_policy=pick(["slru", "slru", "lru"]),
        batch_update=pick([True, True, False]),
        background_flush=pick([False, False, True]),
        partial_write=pick(["ignore", "ignore", "rmw"]),
        entry_bytes=entry_bytes,
        page_bytes=page_bytes,
        read_ns=read_ns,
        program_ns=program_ns,
        load=pick(["entry", "entry", "request"]),
        late=pick(["batch", "batch", "request"]),
    )


@dataclass
class Mix:
    """The ranges and shares from which a trace's requests are drawn."""

    page_bytes: int
    hot: list[int]  # LPNs
    region: int  # pages
    read_share: float
    odd_share: float  # the share of trims, and also that of flushes
    largest: int  # pages


def trace(rng: random.Random, case_config: Config, requests: int | None = None) -> list[Record]:
    """Returns a random trace for a configuration: (arrival_ns, op, offset, size)."""
    if requests is None:
        # A poll happens every 1000 admissions: the trace has to go beyond the second poll.
        polled = case_config.awareness == "polled" and rng.random() < 0.5
        requests = rng.randrange(1001, 1500) if polled else rng.choice([5, 12, 40, 150, 400])
    unit = case_config.read_ns
    per_page = case_config.page_bytes // case_config.entry_bytes
    region = min(20_000, max(40, per_page * rng.choice([1, 2, 5, 20])))
    mix = Mix(
        page_bytes=case_config.page_bytes,
        hot=[rng.randrange(region) for _ in range(rng.choice([1, 4, 20]))],
        region=region,
        read_share=rng.choice([0.1, 0.5, 0.9]),
        odd_share=rng.choice([0.0, 0.1]),
        largest=rng.choice([1, 3, 20]),
    )
    burst = rng.choice([0.5, 0.8, 0.95])
    idle = rng.choice([3, 30, 300])
    now = 0
    records = []
    for _ in range(requests):
        if rng.random() > burst:
            now += unit * rng.randrange(idle * 2)
        elif rng.random() < 0.3:
            now += rng.choice([unit, unit // 2, 1])
        records.append(request(rng, mix, now))
    return records


def request(rng: random.Random, mix: Mix, now: int) -> Record:
    """Returns one record at ``now``."""
    kind = rng.random()
    if kind < mix.odd_share:
        return (now, "F", 0, 0)
    op = "R" if rng.random() < mix.read_share else "W"
    if kind < 2 * mix.odd_share:
        op = "T"
    lpn = rng.choice(mix.hot) if rng.random() < 0.6 else rng.randrange(mix.region)
    pages = rng.randrange(1, mix.largest + 1) if rng.random() < 0.5 else 1
    offset, size = lpn * mix.page_bytes, pages * mix.page_bytes
    if rng.random() < 0.15:  # a request that is not aligned to pages
        offset += rng.randrange(mix.page_bytes)
        size = max(1, size - rng.randrange(mix.page_bytes))
    return (now, op, offset, size)


def case(seed: int) -> tuple[Config, list[Record]]:
    """Returns the case of a seed: configuration and trace."""
    rng = random.Random(f"ftlab oracle {seed}")
    case_config = config(rng)
    return case_config, trace(rng, case_config)


def keys_of(fields: Mapping[str, Any]) -> dict[str, str | int | bool]:
    """Returns the fields of a ``Config`` as ftlab's keys, each value written as in a file."""
    found: dict[str, str | int | bool] = {}
    for name, value in fields.items():
        key, unit, without = KEYS[name]
        if value is None:
            found[key] = without
        else:
            found[key] = f"{value}{unit}" if unit else value
    return found


def settings(case_config: Config) -> dict[str, str | int | bool]:
    """Returns a whole configuration as ftlab's keys, including the device's geometry."""
    return {**keys_of(asdict(case_config)), **GEOMETRY}
