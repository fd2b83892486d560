"""Compares ftlab's steady-state write amplification under uniform random writes with the closed forms."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from . import theory

PAGES = 64
"""The number of pages in a block."""

WINDOWS = (0.05, 0.25)
"""The windows of windowed greedy that are tried, as shares of all full blocks."""


Form = Callable[[float], float]
"""Write amplification as a function of the spare factor."""


@dataclass(frozen=True)
class Policy:
    """A way to choose victims, its closed form, and forms of which a measurement must tell it."""

    name: str
    form: Form
    wrong: Sequence[Form]
    keys: dict[str, Any] = field(default_factory=dict)


def policies(blocks: int) -> list[Policy]:
    """Returns all policies that have a closed form; a window is a share of this many blocks."""
    greedy = partial(theory.greedy, b=PAGES)
    # Blocks four times as large, and a spare factor that is off by a block and a half of 512.
    larger = partial(theory.greedy, b=4 * PAGES)
    found = [
        Policy("fifo", theory.fifo, [greedy]),
        Policy("greedy", greedy, [theory.fifo, larger, lambda a: greedy(a * 1.003)]),
        # Of one block drawn at random, a share of 1 / a of the pages is valid.
        Policy("random", lambda a: 1 / (1 - 1 / a), [partial(theory.d_choices, b=PAGES, d=2)]),
    ]
    for choices, other in [(2, 3), (5, 4), (10, 8)]:
        form, wrong = (partial(theory.d_choices, b=PAGES, d=number) for number in (choices, other))
        found.append(Policy("d-choices", form, [wrong], {"ftl.gc_choices": choices}))
    for share, other_share in zip(WINDOWS, reversed(WINDOWS), strict=True):
        form, wrong = (partial(theory.windowed_greedy, b=PAGES, share=each) for each in (share, other_share))
        keys = {"ftl.gc_window": round(share * blocks)}
        found.append(Policy("windowed-greedy", form, [wrong, theory.fifo], keys))
    return found


def spare_factor(logical: int, blocks: int) -> float:
    """Returns the spare factor of a device that keeps one block erased and one open."""
    return theory.effective_spare(blocks, PAGES, logical, 1, 1)


def amplification(policy: Policy, blocks: int, spare: float) -> tuple[float, float]:
    """Returns ftlab's programs per write between the 12th and the 20th overwrite of the device, and the exact
    spare factor of that device.
    """
    import ftlab

    spare_pages = 1_000_000 - round(spare_factor(PAGES * blocks, blocks) / spare * 1e6)
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
    return (programs[1] - programs[0]) / (8 * logical), spare_factor(logical, blocks)
