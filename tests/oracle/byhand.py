"""Timings worked out by hand from the rules (docs/flash-parallelism.md, docs/configuration.md), to compare
with ftlab's.

One channel, one chip, pages of 4,000 B. Times in us: a command takes C = 1, a page on the bus B = 10; the
cells take R = 20 to read, P = 200 to program, E = 1500 to erase, S = 20 to suspend, U = 20 to resume. A read
alone takes C + R + B = 31, a write alone C + B + P = 211, an erasure C + E = 1501. The arithmetic of each
case is next to it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from . import traces

PAGE = 4000
BASE: dict[str, Any] = {
    "host.queue_depth": "unlimited",
    "host.deadline": "none",
    "device.scheduler": "direct",
    "device.queue_depth": "unlimited",
    "ftl.kind": "page",
    "ftl.over_provisioning": "50%",
    "flash.blocks_per_plane": 16,
    "flash.pages_per_block": 4,
    "flash.read": "20us",
    "flash.program": "200us",
    "flash.erase": "1500us",
    "flash.transfer": "2.5ns",
    "flash.command": "1us",
}
DIES = {"flash.dies_per_chip": 2, "flash.interleave": True}
THREE = {**DIES, "flash.dies_per_chip": 3}
PLANES = {"flash.planes_per_die": 2, "flash.multi_plane": "free"}
SUSPEND = {"flash.suspend": "program-erase"}
CACHED = {"flash.cache_program": True}
NO_COMMAND = {"flash.command": "0ns"}
ONE_BY_ONE = {"device.scheduler": "noop", "device.queue_depth": 1}

Line = tuple[int, str, int, int]
"""A request: arrival in us, op, first page and number of pages."""


@dataclass(frozen=True)
class Case:
    """A trace, and the time in us at which each of its requests completes."""

    name: str
    more: dict[str, Any]
    trace: Sequence[Line]
    completes: Sequence[int]
    together: dict[str, int] = field(default_factory=dict)
    """The number of multi-plane operations of each kind, named as in the result's ``parallel``."""


def two(op: str, at: int = 0) -> list[Line]:
    return [(at, op, 0, 1), (at, op, 1, 1)]


INTERLEAVE = [
    Case("two dies, off: one after the other", {"flash.dies_per_chip": 2}, two("R"), [31, 62]),
    # The two commands are sent one after the other, so the pages are sensed at 21 and 22; the data take the
    # bus from 21 to 31 and from 31 to 41.
    Case("reads on two dies: B later", DIES, two("R"), [31, 41]),
    # Only the commands use the bus: 1 + 20, 2 + 20.
    Case("reads on two dies without data: C later", {**DIES, "flash.transfer": "0ns"}, two("R"), [21, 22]),
    # The data go in from 0 to 11 and from 11 to 22, and both programs take 200.
    Case("writes on two dies: C + B later", DIES, two("W"), [211, 222]),
    Case("four dies: sensed at 21, 22, 23, 24; data out one by one", {**DIES, "flash.dies_per_chip": 4},
         [(0, "R", lpn, 1) for lpn in range(4)], [31, 41, 51, 61]),
    # Pages 0 and 2 are on die 0, page 1 on die 1, whose data are out at 41. The third read's command waits
    # for the bus behind the second read's data (31 to 41): 41 + 1 + 20 + 10.
    Case("a die's next read waits for the bus", DIES, [(0, "R", lpn, 1) for lpn in range(3)], [31, 41, 72]),
    # The command for a third die comes at 25, while the first die's data are on the bus and the second die's
    # wait: 41 + 31.
    Case("a command behind data", THREE, [*two("R"), (25, "R", 2, 1)], [31, 41, 72]),
    # With commands first, that command is sent at 31; the second die's data follow from 32 to 42; the third
    # die's page is sensed at 52 and out at 62.
    Case("a command before data", {**THREE, "flash.bus": "commands-first"}, [*two("R"), (25, "R", 2, 1)],
         [31, 42, 62]),
    # The write's data go in from 0 to 11; the read's command follows, its page is sensed at 32 and out at 42.
    Case("a read during a program", DIES, [(0, "W", 0, 1), (0, "R", 1, 1)], [211, 42]),
]  # fmt: skip

MULTI_PLANE = [
    Case("two planes, off", {"flash.planes_per_die": 2}, two("W"), [211, 422]),
    # 2 (C + B) + P = 22 + 200.
    Case("programs", PLANES, two("W"), [222, 222], {"program": 1}),
    # 2 C + R + B = 2 + 20 + 10; the other page is out B later.
    Case("reads", PLANES, two("R"), [32, 42], {"read": 1}),
    Case("reads on four planes", {**PLANES, "flash.planes_per_die": 4},
         [(0, "R", lpn, 1) for lpn in range(4)], [34, 44, 54, 64]),
    Case("programs on four planes", {**PLANES, "flash.planes_per_die": 4},
         [(0, "W", lpn, 1) for lpn in range(4)], [244] * 4),
    # Page 0 has been written once more than page 1, so their planes are at different offsets.
    Case("free: planes that are not level", PLANES, [(0, "W", 0, 1), *two("W", 1000)], [211, 1222, 1222]),
    Case("same offset: not level, so one by one", {**PLANES, "flash.multi_plane": "same-offset"},
         [(0, "W", 0, 1), *two("W", 1000)], [211, 1211, 1422]),
    Case("same offset: level", {**PLANES, "flash.multi_plane": "same-offset"}, two("W"), [222, 222]),
    # A read and a program are different operations, so they cannot run on two planes together.
    Case("different kinds", PLANES, [(0, "W", 0, 1), (0, "R", 1, 1)], [211, 242]),
    # The die begins the first write alone; it does not wait for the second write.
    Case("one that comes later", PLANES, [(0, "W", 0, 1), (1, "W", 1, 1)], [211, 422]),
    # The two writes that wait are programmed together: 211 + 22 + 200.
    Case("two that come later", PLANES, [(0, "W", 0, 1), (1, "W", 2, 1), (2, "W", 1, 1)], [211, 433, 433]),
]  # fmt: skip

CACHE = [
    # The first data are in by 11, and the cells are programmed from 11 to 211. The next data are in by 22 and
    # are programmed from 211 on: P later.
    Case("program", {"flash.cache_program": True}, two("W"), [211, 411]),
    Case("three programs", {"flash.cache_program": True}, [(0, "W", lpn, 1) for lpn in range(3)],
         [211, 411, 611]),
    # P = 5: the first data are in at 11 and programmed at 16; the next are in at 22 and programmed at 27: C +
    # B later.
    Case("program faster than its data", {"flash.cache_program": True, "flash.program": "5us"}, two("W"),
         [16, 27]),
    # The second write comes while the first is programmed: its data go in from 100 to 111, and its cells are
    # programmed from 211 on.
    Case("program, later", {"flash.cache_program": True}, [(0, "W", 0, 1), (100, "W", 1, 1)], [211, 411]),
    # The write comes too late to gain the full time: its data go in from 205 to 216.
    Case("program, late", {"flash.cache_program": True}, [(0, "W", 0, 1), (205, "W", 1, 1)], [211, 416]),
    Case("off", {}, two("W"), [211, 422]),
    # R = 20, B = 10: the first page is out at 30, each further page R later.
    Case("read", {**NO_COMMAND, "flash.cache_read": True}, [(0, "R", lpn, 1) for lpn in range(3)],
         [30, 50, 70]),
    # R = 5: the first page is out at 15, each further page B later.
    Case("read faster than its data", {**NO_COMMAND, "flash.cache_read": True, "flash.read": "5us"},
         [(0, "R", lpn, 1) for lpn in range(3)], [15, 25, 35]),
    Case("read, off", NO_COMMAND, [(0, "R", lpn, 1) for lpn in range(3)], [30, 60, 90]),
]  # fmt: skip

FILLED: list[Line] = [(1000 * lpn, "W", lpn, 1) for lpn in range(4)]
"""Writes that fill block 0 long before the case begins, so that later writes go to another block."""
FILL_ENDS = [1000 * lpn + 211 for lpn in range(4)]


def after_fill(name: str, trace: Sequence[Line], completes: Sequence[int], **more: Any) -> Case:
    """Makes a case whose times are counted from 10,000 us."""
    settings = {**SUSPEND, **{key.replace("__", "."): value for key, value in more.items()}}
    shifted = [(10_000 + at, op, lpn, pages) for at, op, lpn, pages in trace]
    return Case(name, settings, [*FILLED, *shifted], [*FILL_ENDS, *(10_000 + at for at in completes)])


WRITE: Line = (0, "W", 8, 1)
"""A write that, if it is alone, has its data in by 11 and its cells programmed by 211."""

SUSPENSION = [
    after_fill("off", [WRITE, (50, "R", 0, 1)], [211, 242], flash__suspend="off"),
    after_fill("erasures alone", [WRITE, (50, "R", 0, 1)], [211, 242], flash__suspend="erase"),
    # The cells stop at 50 with 161 left. The suspension takes effect at 70; the read takes until 101; the
    # program resumes at 121: 121 + 161.
    after_fill("a read interrupts a program", [WRITE, (50, "R", 0, 1)], [282, 101]),
    # The second read comes before the suspension takes effect and shares it: 101 + 31 = 132, 152 + 161.
    after_fill("two reads share it", [WRITE, (50, "R", 0, 1), (60, "R", 1, 1)], [313, 101, 132]),
    # The second read comes at 150, when the program has been running again since 121 and has 132 left: 150 +
    # 20 + 31 = 201, 221 + 132.
    after_fill("a later read interrupts again", [WRITE, (50, "R", 0, 1), (150, "R", 1, 1)], [353, 101, 201]),
    # The program is not suspended a second time: it ends at 282, and the read follows.
    after_fill("as often as allowed", [WRITE, (50, "R", 0, 1), (150, "R", 1, 1)], [282, 101, 313],
               flash__max_suspensions=1),
    # The program ends at 211, when the suspension would take effect: the program is left alone.
    after_fill("ends when it would take effect", [WRITE, (191, "R", 0, 1)], [211, 242]),
    # The read comes 1 us sooner: the suspension takes effect at 210, the read takes until 241, and the
    # program, with 21 left, resumes at 261.
    after_fill("ends just later", [WRITE, (190, "R", 0, 1)], [282, 241]),
    # Page 8 is in the block in which page 9 is being programmed, so a read of page 8 waits.
    after_fill("a read of the block in hand waits", [WRITE, (300, "W", 9, 1), (400, "R", 8, 1)],
               [211, 511, 542]),
]  # fmt: skip

OUT_OF_ORDER = [
    after_fill("a read passes a waiting program", [WRITE, (1, "W", 9, 1), (50, "R", 0, 1)], [211, 453, 242],
               flash__suspend="off", flash__out_of_order=True),
    after_fill("in order", [WRITE, (1, "W", 9, 1), (50, "R", 0, 1)], [211, 422, 453], flash__suspend="off"),
    after_fill("but not the program of its own page", [WRITE, (1, "W", 9, 1), (50, "R", 9, 1)],
               [211, 422, 453], flash__suspend="off", flash__out_of_order=True),
    # After two reads have overtaken the second write's program, it is that program's turn.
    after_fill("no more than allowed", [WRITE, (1, "W", 9, 1), *((50, "R", lpn, 1) for lpn in range(3))],
               [211, 484, 242, 273, 515],
               flash__suspend="off", flash__out_of_order=True, flash__max_passed=2),
]  # fmt: skip

LEVEL: list[Line] = [(1000 * lpn, "W", lpn, 1) for lpn in range(8)]
"""Writes that fill block 0 of both dies, or of both planes, long before the case begins."""


def both(
    name: str, more: dict[str, Any], trace: Sequence[Line], completes: Sequence[int], **together: int
) -> Case:
    """Makes a case of two features; its times are counted from 10,000 us."""
    shifted = [(10_000 + at, op, lpn, pages) for at, op, lpn, pages in trace]
    alone = 210 if "flash.command" in more else 211
    ends = [1000 * lpn + alone for lpn in range(8)]
    return Case(name, more, [*LEVEL, *shifted], [*ends, *(10_000 + at for at in completes)], together)


TOGETHER = [
    # Pages 8, 9 and so on take the two dies in turn. Data go in from 0 to 11, to 22, to 33 and to 44; on each
    # die the second program begins when the first ends, at 211 and at 222.
    both("cached programs on two dies", {**DIES, "flash.cache_program": True},
         [(0, "W", lpn, 1) for lpn in range(8, 12)], [211, 222, 411, 422]),
    # Both dies sense from 0 to 20 and again from 20 to 40. Data are out at 30 and 40, then at 50 and 60.
    both("cached reads on two dies", {**DIES, **NO_COMMAND, "flash.cache_read": True},
         [(0, "R", lpn, 1) for lpn in range(4)], [30, 40, 50, 60]),
    # Each die asks for the bus again when its first page is in: pages 8, 9, 10 and 11 go in one after the
    # other. Die 0 has pages 8 and 10 by 33, die 1 pages 9 and 11 by 44.
    both("two planes of two dies, programs", {**PLANES, **DIES}, [(0, "W", lpn, 1) for lpn in range(8, 12)],
         [233, 244, 233, 244], program=2),
    # Four commands are sent. Die 0 has both of its by 3 and senses until 23, die 1 until 24. Data are out in
    # the order in which the dies ask: die 0 from 23, die 1 from 33, die 0 again from 43, die 1 again from 53.
    both("two planes of two dies, reads", {**PLANES, **DIES}, [(0, "R", lpn, 1) for lpn in range(4)],
         [33, 43, 53, 63], read=2),
    # The multi-plane program stops at 50 with 172 left. The read takes from 70 to 101; 121 + 172.
    both("a read interrupts a program of two planes", {**PLANES, **SUSPEND},
         [(0, "W", 8, 1), (0, "W", 9, 1), (50, "R", 0, 1)], [293, 293, 101], program=1),
    # The program on die 0 stops at 50 with 161 left. Its suspension takes effect at 70, while the other
    # write's data are on the bus (65 to 76). So the read takes from 76 to 107: 127 + 161. The other write: 76
    # + 200.
    both("a read interrupts while the bus is busy", {**DIES, **SUSPEND},
         [(0, "W", 8, 1), (50, "R", 0, 1), (65, "W", 9, 1)], [288, 107, 276]),
    # The first two programs go in until 22 and take until 222. The data of the next two go in from 22 to 44.
    both("cached programs of two planes", {**PLANES, **CACHED}, [(0, "W", lpn, 1) for lpn in range(8, 12)],
         [222, 222, 422, 422], program=2),
    # Both planes sense until 20, and again until 40. Data are out at 30 and 40, then at 50 and 60.
    both("cached reads of two planes", {**PLANES, **NO_COMMAND, "flash.cache_read": True},
         [(0, "R", lpn, 1) for lpn in range(4)], [30, 40, 50, 60], read=2),
    # Data go in until 11 and 22. The second program of each die follows the first: from 211, and from 222, as
    # the bus is free again then: 222 + 211.
    both("a merged write on two dies", {**ONE_BY_ONE, **DIES, "host.merge_limit": f"{4 * PAGE}B"},
         [(0, "W", lpn, 1) for lpn in range(8, 12)], [433]),
    # The read interrupts the program under way and passes the one that waits: 101. 121 + 161, then 282 + 211.
    both("a read interrupts one program and passes another", {**SUSPEND, "flash.out_of_order": True},
         [(0, "W", 8, 1), (1, "W", 9, 1), (50, "R", 0, 1)], [282, 493, 101]),
    # The read passes two programs that wait, one on each plane, and these then go together: 242 + 22 + 200.
    both("a read passes a program of two planes", {**PLANES, "flash.out_of_order": True},
         [(0, "W", 8, 1), (1, "W", 9, 1), (1, "W", 10, 1), (50, "R", 0, 1)], [211, 464, 464, 242], program=1),
    # The suspension takes effect at 70; both planes sense from 72 to 92, data are out at 102 and 112: 132 +
    # 161.
    both("reads of two planes interrupt", {**PLANES, **SUSPEND},
         [(0, "W", 8, 1), (50, "R", 0, 1), (50, "R", 1, 1)], [293, 102, 112], read=1),
    # Without commands the program has 160 left at 50. The first read senses from 70 to 90, the second, while
    # the data of the first go out, to 110; its data are out at 120: 140 + 160.
    both("cached reads interrupt", {**SUSPEND, **NO_COMMAND, "flash.cache_read": True},
         [(0, "W", 8, 1), (50, "R", 0, 1), (50, "R", 1, 1)], [300, 100, 120]),
    # At 50 the program has 172 left, at 150, when it has gone on since 121, 143: 170 + 31, then 221 + 143.
    both("a program of two planes is interrupted twice", {**PLANES, **SUSPEND},
         [(0, "W", 8, 1), (0, "W", 9, 1), (50, "R", 0, 1), (150, "R", 1, 1)], [364, 364, 101, 201],
         program=1),
]  # fmt: skip

CACHED_AND_READS = [
    # As without out-of-order service or suspension: the second program's data go in while the first one's
    # cells are at work.
    Case("cached, out of order", {**CACHED, "flash.out_of_order": True}, two("W"), [211, 411]),
    Case("cached, suspension", {**CACHED, "flash.suspend": "erase"}, two("W"), [211, 411]),
    # A program whose data are in waits behind the one that the read would interrupt, so the read waits
    # until that one begins, at 211, and interrupts it: 211 + 20 + 31, and 411 + 20 + 31 + 20.
    both("no interruption before a cached program", {**SUSPEND, **CACHED},
         [(0, "W", 8, 1), (20, "W", 9, 1), (50, "R", 0, 1)], [211, 482, 262]),
]  # fmt: skip
"""Cases in which ftlab differs: see ``test_second.py``."""

MERGED = {**ONE_BY_ONE, "host.merge_limit": f"{4 * PAGE}B"}
MERGING = [
    Case("off: one by one", ONE_BY_ONE, [(0, "W", lpn, 1) for lpn in range(4)], [211, 422, 633, 844]),
    # This is one request of four pages; the writes merged into it have no completions of their own.
    Case("adjacent writes of an instant", MERGED, [(0, "W", lpn, 1) for lpn in range(4)], [844]),
    # The fifth page exceeds the limit.
    Case("up to the limit", MERGED, [(0, "W", lpn, 1) for lpn in range(5)], [844, 1055]),
    Case("not across a gap", MERGED, [(0, "W", 0, 1), (0, "W", 2, 1)], [211, 422]),
    Case("not a read with a write", MERGED, [(0, "W", 0, 1), (0, "R", 1, 1)], [211, 242]),
    # Page 9 is already being written, so page 10 has nothing to join; page 11 joins page 10.
    Case("not one that has gone", MERGED, [(0, "W", 9, 1), (1, "W", 10, 1), (2, "W", 11, 1)], [211, 633]),
    Case("not across a boundary", {**MERGED, "host.merge_boundary": f"{2 * PAGE}B"},
         [(0, "W", lpn, 1) for lpn in range(4)], [422, 844]),
]  # fmt: skip

TIGHT = {
    **ONE_BY_ONE,
    "ftl.over_provisioning": "75%",
    "ftl.gc_background": True,
    "ftl.gc_free_blocks": 1,
    "ftl.gc_normal_blocks": 11,
}
"""Sixteen blocks of four pages; if fewer than eleven are erased, an idle chip collects garbage."""

UPDATED: list[Line] = [(1000 * n, "W", lpn, 1) for n, lpn in enumerate([*range(16), 0, 1, 2, 4, 5])]
"""Blocks 0 to 3 are full, block 4 is full of updates of their pages, block 5 has one page: ten blocks are
erased. Block 0 has one valid page left, page 3; block 1 has two.
"""
UPDATED_ENDS = [1000 * n + 211 for n in range(21)]


MORE: list[Line] = [*UPDATED[:16], *((16_000, "W", lpn, 1) for lpn in [0, 1, 2, 4, 5, 8, 9, 12, 13])]
"""The same with nine updates at once: block 6 has one page, nine blocks are erased. Blocks 1 to 3 have two
valid pages left; block 1 was the first to have no more.
"""
MORE_ENDS = [*UPDATED_ENDS[:16], *(16_000 + 211 * n for n in range(1, 10))]


def collecting(
    name: str, trace: Sequence[Line], completes: Sequence[int], twice: bool = False, **more: Any
) -> Case:
    """Makes a case whose times are counted from the end of ``UPDATED``, or of ``MORE`` if ``twice``."""
    settings = {**TIGHT, **{key.replace("__", "."): value for key, value in more.items()}}
    before, ends = (MORE, MORE_ENDS) if twice else (UPDATED, UPDATED_ENDS)
    shifted = [(ends[-1] + at, op, lpn, pages) for at, op, lpn, pages in trace]
    return Case(name, settings, [*before, *shifted], [*ends, *(ends[-1] + at for at in completes)])


BACKGROUND = [
    # The copy begins when the write ends, and takes 31 to read and 211 to program: 242. The read waits for
    # the copy, and not for the erasure.
    collecting("a request waits for the copy under way", [(100, "R", 15, 1)], [273]),
    # The erasure begins at 242 and ends at 1743.
    collecting("a request waits for the erasure under way", [(300, "R", 15, 1)], [1774]),
    # The first read begins before the erasure can begin; the erasure follows, from 273 to 1774.
    collecting("the erasure goes on behind the read", [(100, "R", 15, 1), (300, "R", 14, 1)], [273, 1805]),
    collecting("off", [(100, "R", 15, 1)], [131], ftl__gc_background=False),
    # Everything has been collected: there are eleven erased blocks.
    collecting("later nothing is left to do", [(5000, "R", 15, 1)], [5031]),
    # Two erased blocks are missing, so block 1 follows, with pages 6 and 7. The copy of page 6 takes
    # from 1743 to 1985; the read follows, then the copy of page 7, from 2016 to 2258, and the next read.
    collecting("a read between two copies", [(1800, "R", 15, 1), (2100, "R", 14, 1)], [2016, 2289],
               twice=True),
    # A step of two copies: both are read and programmed from 1743 to 2227.
    collecting("a step of two copies", [(1800, "R", 15, 1)], [2258], twice=True, ftl__gc_step=2),
    # The erasure stops at 300 with 1443 left. The read takes from 320 to 351; the erasure goes on from 371 to
    # 1814. At 500 it stops with 1314 left: 551, then from 571 to 1885. The write waits for that: 1885 + 211.
    collecting("reads interrupt the erasure, a write does not",
               [(300, "R", 15, 1), (500, "R", 14, 1), (1500, "W", 9, 1)], [351, 551, 2096],
               flash__suspend="erase", device__queue_depth="unlimited"),
]  # fmt: skip

SETS = {
    "interleave": INTERLEAVE,
    "multi-plane": MULTI_PLANE,
    "cache": CACHE,
    "suspension": SUSPENSION,
    "out of order": OUT_OF_ORDER,
    "together": TOGETHER,
    "merging": MERGING,
    "background": BACKGROUND,
}
ALL = [(kind, case) for kind, cases in SETS.items() for case in cases]


def run(case: Case) -> tuple[list[int], dict[str, Any]]:
    """Returns the times, in ns, at which ftlab completes the requests, and its result."""
    trace = [(at * 1000, op, first, pages) for at, op, first, pages in case.trace]
    return traces.timed({**BASE, **case.more}, trace, PAGE)
