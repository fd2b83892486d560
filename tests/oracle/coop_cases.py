"""Random cases for the model of COOP's schedulers (``coop.py``), and its comparison with ftlab."""

from __future__ import annotations

import itertools
import random
from typing import Any

from . import traces
from .coop import BLOCKS, ERASE_NS, PROGRAM_NS, READ_NS, USER_BLOCKS, Case, Host

POLICIES = ("noop", "irbw", "padding", "coop")


def case(seed: int) -> Case:
    """Returns a random case."""
    draw = random.Random(f"coop {seed}")
    block_pages = draw.choice([4, 5, 8])
    # The extents that writes cover: each block is cut at the same places.
    cuts = [0, *sorted(draw.sample(range(1, block_pages), draw.randrange(1, block_pages))), block_pages]
    extents = list(itertools.pairwise(cuts))
    blocks = draw.choice([3, 8, 20, USER_BLOCKS])
    now, trace, trims = 0, [], 0.1 + draw.choice([0, 0.05, 0.2])
    for _ in range(draw.choice([20, 60, 200])):
        now += draw.choice([0, 0, 0, 0, 0, 100_000, 5_000_000])
        block = draw.randrange(blocks)
        first, last = draw.choice(extents)
        kind = draw.random()
        if kind < 0.1:
            trace.append((now, "R", block * block_pages + first, last - first))
        elif kind < trims:
            trace.append(
                (now, "T", block * block_pages + draw.randrange(block_pages), draw.choice([1, 1, 3, 9]))
            )
        elif kind > 0.9:
            # This write covers the last extent of a block and the first of the next block.
            start = block * block_pages + cuts[-2]
            trace.append((now, "W", start, block_pages - cuts[-2] + cuts[1]))
        else:
            trace.append((now, "W", block * block_pages + first, last - first))
    trace = [each for each in trace if each[2] + each[3] <= USER_BLOCKS * block_pages]
    return Case(
        draw.choice(["bast", "fast"]),
        POLICIES[seed % len(POLICIES)],
        block_pages,
        draw.choice([2, 3, 5, 10]),
        draw.random() < 0.5,
        trace,
    )


def settings(case: Case) -> dict[str, Any]:
    return {
        "ftl.kind": case.ftl,
        "host.scheduler": case.policy,
        "host.queue_depth": "unlimited",
        "ftl.log_blocks": f"{case.log_blocks}%",
        "ftl.over_provisioning": "40%",
        "flash.blocks_per_plane": BLOCKS,
        "flash.pages_per_block": case.block_pages,
        "flash.read": f"{READ_NS}ns",
        "flash.program": f"{PROGRAM_NS}ns",
        "flash.erase": f"{ERASE_NS}ns",
        "device.precondition": "fill" if case.filled else "none",
    }


def differences(case: Case, host: type[Host] = Host) -> list[str]:
    """Returns how ftlab's completions and counts differ from those of a model of the host."""
    model = host(case).run()
    rows, result = traces.timed(settings(case), case.trace)
    found = [
        f"request {number} {case.trace[number]}: {have} in ftlab, {want} in the model"
        for number, (have, want) in enumerate(zip(rows, model.completes, strict=True))
        if have != want
    ]
    merges = result["merges"]
    for kind, want in model.merges.items():
        have = [merges[kind]["count"], merges[kind]["pages_copied"]]
        if have != want:
            found.append(f"{kind} merges and copies: {have} in ftlab, {want} in the model")
    erases = sum(result["flash"]["erases"].values())
    if erases != model.erases:
        found.append(f"{erases} erases in ftlab, {model.erases} in the model")
    return found
