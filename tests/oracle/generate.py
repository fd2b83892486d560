"""Random small cases for the comparison of engine and oracle: a seed gives a case.

A case is a ``mapplus.Config`` and a byte trace. Clustered arrivals on a coarse time grid make
many events fall on one instant; hot pages, straddling requests and tiny caches make evictions,
write-backs and prefetches meet.
"""

import random

from .mapplus import Config

BLOCKS = 1024
PAGES_PER_BLOCK = 64
OVER_PROVISIONING = "50%"
"""The flash of every case: half of it is never addressed, so that no trace fills it."""

SCHEDULERS = ["noop", "row", "amphibian", "hp", "rb", "map", "map+"]
AWARENESS = ["full", "polled", "lru", "none"]
TIMINGS = [(35_000, 350_000), (35_000, 350_000), (10, 100), (7, 13), (1, 1)]
SHAPES = [(512, 64), (512, 64), (512, 32), (512, 8), (512, 5), (4096, 8), (800, 8)]  # page, entry
CACHE_ENTRIES = [1, 2, 3, 7, 8, 9, 15, 16, 17, 64, 64, 200, None]


def config(random_source):
    """A random configuration."""
    pick = random_source.choice
    read_ns, program_ns = pick(TIMINGS)
    page_bytes, entry_bytes = pick(SHAPES)
    ftl = pick(["dftl", "dftl", "dftl", "cdftl", "cdftl", "page"])
    if ftl == "cdftl":
        # At least one translation page and one entry beside it.
        cache_bytes = pick([page_bytes + entry_bytes * pick([1, 2, 5, 20]), page_bytes * pick([2, 3, 4, 7, 12]), None])
    else:
        entries = pick(CACHE_ENTRIES)
        cache_bytes = None if entries is None else entries * entry_bytes + random_source.randrange(entry_bytes)
    return Config(
        scheduler=pick(SCHEDULERS),
        queue_depth=pick([1, 2, 3, 8, 32, 128]),
        deadline_ns=pick([None, 0, 3 * read_ns, 20 * read_ns, 200 * read_ns, 10_000_000]),
        awareness=pick(["full", "full", "full", *AWARENESS]),
        alternate=pick([False, False, True]),
        replay=pick(["open", "open", "open", "closed"]),
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
    )


def trace(random_source, case_config, requests=None):
    """A random trace for a configuration: (arrival_ns, op, offset, size)."""
    rng = random_source
    if requests is None:
        # A poll happens every 1000 admissions: go beyond the second one.
        polled = case_config.awareness == "polled" and rng.random() < 0.5
        requests = rng.randrange(1001, 1500) if polled else rng.choice([5, 12, 40, 150, 400])
    unit = case_config.read_ns
    per_page = case_config.page_bytes // case_config.entry_bytes
    region = min(20_000, max(40, per_page * rng.choice([1, 2, 5, 20])))
    hot = [rng.randrange(region) for _ in range(rng.choice([1, 4, 20]))]
    read_share = rng.choice([0.1, 0.5, 0.9])
    odd_share = rng.choice([0.0, 0.1])  # trims and flushes, each
    burst = rng.choice([0.5, 0.8, 0.95])
    idle = rng.choice([3, 30, 300])
    largest = rng.choice([1, 3, 20])
    now = 0
    records = []
    for _ in range(requests):
        if rng.random() > burst:
            now += unit * rng.randrange(idle * 2)
        elif rng.random() < 0.3:
            now += rng.choice([unit, unit // 2, 1])
        records.append(request(rng, case_config, now, hot, region, read_share, odd_share, largest))
    return records


def request(rng, case_config, now, hot, region, read_share, odd_share, largest):
    """One record at ``now``."""
    kind = rng.random()
    if kind < odd_share:
        return (now, "F", 0, 0)
    op = "R" if rng.random() < read_share else "W"
    if kind < 2 * odd_share:
        op = "T"
    lpn = rng.choice(hot) if rng.random() < 0.6 else rng.randrange(region)
    pages = rng.randrange(1, largest + 1) if rng.random() < 0.5 else 1
    page = case_config.page_bytes
    offset, size = lpn * page, pages * page
    if rng.random() < 0.15:  # not aligned
        offset += rng.randrange(page)
        size = max(1, size - rng.randrange(page))
    return (now, op, offset, size)


def case(seed):
    """The case of a seed: configuration and trace."""
    rng = random.Random(f"ftlab oracle {seed}")
    case_config = config(rng)
    return case_config, trace(rng, case_config)


def settings(case_config):
    """The same configuration as ftlab's keys, each value written as in a file."""
    c = case_config
    return {
        "host.scheduler": c.scheduler,
        "host.queue_depth": c.queue_depth,
        "host.deadline": "none" if c.deadline_ns is None else f"{c.deadline_ns}ns",
        "host.awareness": c.awareness,
        "host.alternate": c.alternate,
        "workload.replay": c.replay,
        "device.scheduler": "noop",
        "device.queue_depth": 1,
        "ftl.kind": c.ftl,
        "ftl.mapping_cache": "unlimited" if c.cache_bytes is None else f"{c.cache_bytes}B",
        "ftl.cache_policy": c.cache_policy,
        "ftl.batch_update": c.batch_update,
        "ftl.background_flush": c.background_flush,
        "ftl.partial_write": c.partial_write,
        "ftl.entry": f"{c.entry_bytes}B",
        "ftl.over_provisioning": OVER_PROVISIONING,
        "flash.channels": 1,
        "flash.chips_per_channel": 1,
        "flash.dies_per_chip": 1,
        "flash.planes_per_die": 1,
        "flash.blocks_per_plane": BLOCKS,
        "flash.pages_per_block": PAGES_PER_BLOCK,
        "flash.page": f"{c.page_bytes}B",
        "flash.read": f"{c.read_ns}ns",
        "flash.program": f"{c.program_ns}ns",
        "flash.transfer": "0ns",
    }
