"""Compares ftlab's steady-state write amplification under uniform random writes with the closed forms."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from . import theory

PAGES = 64
"""The number of pages in a block."""

WINDOWS = (0.05, 0.25)
"""The windows of windowed greedy that are tried, as shares of all full blocks."""


@dataclass(frozen=True)
class Policy:
    """A way to choose victims, and its closed form as a function of the spare factor."""

    name: str
    form: Callable[[float], float]
    keys: dict[str, Any] = field(default_factory=dict)


def policies(blocks: int) -> list[Policy]:
    """Returns all policies that have a closed form; a window is a share of this many blocks."""
    found = [Policy("fifo", theory.fifo), Policy("greedy", lambda a: theory.greedy(a, PAGES))]
    for choices in (2, 5, 10):
        form = partial(theory.d_choices, b=PAGES, d=choices)
        found.append(Policy("d-choices", form, {"ftl.gc_choices": choices}))
    for share in WINDOWS:
        form = partial(theory.windowed_greedy, b=PAGES, share=share)
        found.append(Policy("windowed-greedy", form, {"ftl.gc_window": round(share * blocks)}))
    return found


def amplification(policy: Policy, blocks: int, spare: float) -> tuple[float, float]:
    """Returns ftlab's programs per write between the 12th and the 20th overwrite of the device, and the value
    of the closed form.
    """
    import ftlab

    # One block is kept erased, and one is open.
    spare_pages = 1_000_000 - round(theory.effective_spare(blocks, PAGES, PAGES * blocks, 1, 1) / spare * 1e6)
    settings: dict[str, Any] = {
        "ftl.kind": "page",
        "ftl.gc": policy.name,
        **policy.keys,
        "ftl.gc_free_blocks": 1,
        "ftl.over_provisioning": f"{spare_pages / 1e4}%",
        "flash.blocks_per_plane": blocks,
        "flash.pages_per_block": PAGES,
        "device.precondition": "fill",
        "workload.synthetic.pattern": "random",
        "workload.synthetic.read_share": "0%",
        "workload.synthetic.size": "4KiB",
    }
    logical = blocks * PAGES * (1_000_000 - spare_pages) // 1_000_000
    programs: list[float] = []
    for writes in (12 * logical, 20 * logical):
        result = ftlab.run(settings | {"workload.synthetic.requests": writes}, collect=False)
        programs.append(float(sum(result["flash"]["programs"].values())))
    exact = theory.effective_spare(blocks, PAGES, logical, 1, 1)
    return (programs[1] - programs[0]) / (8 * logical), policy.form(exact)
