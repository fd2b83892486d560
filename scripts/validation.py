"""Measures ftlab against models of its own and against public simulators' figures: docs/validation.md.

    python scripts/validation.py                       # print the page
    python scripts/validation.py --write FILE          # write it (`make validation`)
    python scripts/validation.py --only ssdsim-waf-1.28

The models and the facts are those of tests/oracle. The exit status is 1 if a figure differs from its model's
or is out of its bounds; the page is written all the same, and its rows say so.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests"))

from oracle import arrays, engine, events, facts, plain, timings, traces  # noqa: E402

HEAD = """<!-- Written by scripts/validation.py (`make validation`); not edited by hand. -->

# Validation

What ftlab is compared with, and how well it agrees. `make validation` measures ftlab's side anew, writes
this page and fails if a figure differs from its model's or leaves its bound; the tests named here run the
same comparisons in CI. The papers' own figures are on the page [reproduction](reproduction.md).
"""

EQUAL = """
## Equal to plain models

The models are plain Python in `tests/oracle`, written from the rules and not from the core. Differences are
counted exactly: to the nanosecond, to the single merge. The figures are those of `make validation`; the
test next to them (`python -m pytest TEST`) runs the same in CI, the event model on fewer requests.

"""

TIMES = """
## Sums of timings

A request of one page alone in the device takes the sum of its timings; {limit} of them at once take what the
busiest die or bus needs for all their operations, and at most one page operation more. Sums and bounds are
computed from the times that the papers give. A write of `map-plus` and `crash` reads a translation page
first. Command: `python -m pytest tests/python/test_timing.py`.

"""

AGAINST = """
## Against public simulators

Figures that SSDSim, MQSim and FlashSim gave once for the same question. Their commits were not recorded, nor
were all traces. Where ftlab's side can be run again as the note of the measurement describes it, the row says
"again" and its bound is checked; where it cannot, the row says what was not kept, and ftlab's figure is the
one that it gave then. One row again: `python scripts/validation.py --only NAME`; all, in CI:
`python -m pytest tests/python/test_validation.py`.

- **SSDSim and MQSim**: 20 / 200 / 1500 us; SSDSim 25 ns a byte and 175 ns a command, pages of 4 KiB; MQSim
  290 ns a command and 20 ns ready time, without collection.
- **Single requests**: 999 of one page, 1 ms apart, addresses by seed 13, `device.scheduler = "direct"`.
  SSDSim leaves tPROG out of a write's time; it is added to theirs.
- **Write amplification**: uniform random writes of one page, seed 13, on 1,024 blocks of 64 pages,
  `ftl.gc_free_blocks = 1`.
- **BAST**: 200 blocks written whole, in order or permuted (seed 13), on 512 filled blocks of 64 pages.

"""

PURPOSE = """
## Where we differ on purpose

As the sources of SSDSim 2.1 (`flash.c`) and MQSim (`NVM_PHY_ONFI_NVDDR2.cpp` and its data cache) read.

- **Acknowledgement of writes.** A write completes when the cells have been programmed, one of several pages
  when the last of them has. SSDSim's response time of a write ends when its data are in the chip, MQSim's in
  its write cache, where that is on. Where the NAND page is larger than the logical page, ftlab too
  acknowledges what does not fill the page yet ([MSFTL](msftl.md)).
- **Reads after writes.** A read of a page that is being written waits for its program and reads the cells.
  SSDSim's buffer and MQSim's cache answer it, where they are on; SSDSim also ends a read after 1 us if
  another read of the same page waits.
- **Independent dies.** Dies and planes of a chip add capacity alone unless `flash.interleave` and
  `flash.multi_plane` say otherwise. MQSim's dies always work side by side, SSDSim's with its interleave
  command.
- **Order on the bus.** First come, first served; `flash.bus = "commands-first"` lets waiting commands of
  reads and erases go before transfers. SSDSim serves reads before writes, and the data of the lowest chip
  first; MQSim sends the data of reads that wait, in their order, then asks its scheduler.
- **Whole-page transfers.** Every touched logical page crosses the bus whole. In both others a transfer takes
  as long as its sectors need.

"As in SSDSim and MQSim" holds only with `device.scheduler = "direct"`, `flash.out_of_order = true` and
`flash.max_passed = "unlimited"`: a die's reads then go before its programs and erasures that wait, but for
the program of their own page and erasures of their block.

### What the order on the bus alone changes

The event model alone: mean latencies of {count:,} requests of one page, 60 % of them reads, on one channel
with eight chips (20 / 200 us, 25 ns a byte, 175 ns a command), seed 13.

"""

TAIL = """
## What this does not show

- Collection in time: the event model knows none. Its counts are held by the closed forms
  (`tests/python/test_laws.py`), its effect on latencies by nothing outside.
- Multi-plane, cached and suspended operations: exact cases of our own alone
  (`crates/core/tests/die_timing.rs`).
- Real devices: no figure here was measured on one.
"""


def table(header: str, rows: Iterable[str]) -> str:
    """Returns a table in Markdown; ``header`` has the names of its columns, separated by commas."""
    names = header.split(", ")
    return "\n".join([line(names), line(["---"] * len(names)), *rows]) + "\n"


def line(cells: Iterable[str]) -> str:
    """Returns a row of a table."""
    return f"| {' | '.join(cells)} |"


@dataclass
class Equality:
    """A comparison of ftlab with a plain model, which should give equal figures."""

    what: str
    on: str
    compared: int
    unequal: int
    test: str

    def row(self) -> str:
        """Returns the comparison's line of the table."""
        return line([self.what, self.on, f"{self.compared:,}", str(self.unequal), f"`{self.test}`"])


MODEL_REQUESTS = {1: 8000, 16: 2000}
"""How many requests are compared with the event model, by the maximum number of pages in a request."""


def completions() -> Iterator[Equality]:
    """Yields comparisons of the completions of requests in ftlab with those in the event model."""
    for geometry, array in arrays.GEOMETRIES.items():
        compared = unequal = 0
        for share in arrays.LOADS.values():
            for most, count in MODEL_REQUESTS.items():
                requests = arrays.load(array, share, most, count, seed=17)
                unequal += len(arrays.unequal(array, requests))
                compared += count
        what = f"completion of each request: {', '.join(arrays.LOADS)}; 1 page and 1 to 16; seed 17"
        yield Equality(what, geometry, compared, unequal, "tests/python/test_events.py")


def counters() -> Iterator[Equality]:
    """Yields comparisons of ftlab's counters with those of the plain models."""
    test = "tests/python/test_counts.py"
    for name in ("phone-mix", *traces.RECORDED):
        if name in traces.RECORDED and not (engine.shared_traces() / traces.RECORDED[name]).is_file():
            continue
        accesses = traces.recorded(name)
        for policy in ("lru", "slru"):
            have, wanted = traces.lookups(accesses, policy)
            on = f"`{name}`: {wanted[0]:,}, {wanted[1]:,}, {wanted[2]:,}"
            what = f"{policy.upper()} of 2,048 entries: hits, misses, map programs"
            yield Equality(what, on, len(wanted), differ(have, wanted), test)
    for ftl in plain.FTLS:
        for load in traces.WRITTEN:
            block_pages, accesses = traces.written(load)
            have, wanted = traces.merges(ftl, block_pages, 80, True, accesses)
            on = f"{load}: {wanted[0]:,}, {wanted[2]:,}, {wanted[4]:,}"
            what = f"{ftl.upper()}: full, partial and switch merges, copies by kind, erases"
            yield Equality(what, on, len(wanted), differ(have, wanted), test)


def together(equalities: Iterable[Equality]) -> Iterator[str]:
    """Yields a line for each thing that is compared, of all that it is compared on."""
    found: dict[str, Equality] = {}
    for each in equalities:
        if (first := found.get(each.what)) is None:
            found[each.what] = each
        else:
            found[each.what] = replace(
                first,
                on=f"{first.on}; {each.on}",
                compared=first.compared + each.compared,
                unequal=first.unequal + each.unequal,
            )
    return (each.row() for each in found.values())


def differ(have: list[int], wanted: list[int]) -> int:
    """Returns how many figures differ between the two lists."""
    return sum(one != other for one, other in zip(have, wanted, strict=True))


def timing_rows() -> Iterator[tuple[str, bool]]:
    """Yields a row for each preset, and whether its figures agree with its timings."""
    for preset, timing in timings.PRESETS.items():
        have, wanted = timings.alone(preset)
        cells, good = [preset], have == wanted
        for op in "RW":
            for found in (wanted, have):
                cells.append(", ".join(f"{ns / 1000:.2f}" for name, ns in sorted(found) if name == op))
        for op in "RW":
            elapsed, bound = timings.at_limit(preset, op)
            cells += [f"{bound / 1e6:.3f}", f"{elapsed / 1e6:.3f}"]
            good &= bound <= elapsed <= bound + timing.of(op)
        yield line(cells), good


def shown(value: float, digits: int) -> str:
    """Formats a figure with this many decimals."""
    return f"{value:,.{digits}f}"


def fact_row(fact: facts.Fact) -> tuple[str, bool]:
    """Returns a fact's line, and whether ftlab is within its bounds."""
    again = fact.rerun is not None and fact.available()
    value = fact.rerun() if fact.rerun is not None and again else fact.then
    away = (round(value, fact.digits) - fact.theirs) / fact.theirs if fact.theirs else value
    difference = f"{away:+.2%}" if away else "0"
    settings = fact.settings
    if fact.needs and again:
        settings = settings.replace(f"`{fact.needs}`", facts.digest(fact.needs))
    simulator = fact.simulator
    if fact.commit != facts.UNKNOWN:
        simulator += f" {fact.commit}"
    good = not again or fact.within(value)
    if again:
        run = "again" if good else "again: out of its bound"
    else:
        run = f"not kept: {fact.missing}" if fact.missing else "not again: the trace is not here"
    cells = [
        fact.name,
        f"{simulator}: {settings}" if settings else simulator,
        fact.metric,
        shown(fact.theirs, fact.digits),
        shown(value, fact.digits),
        difference,
        f"{fact.bound:.0%}" if fact.bound else "equal",
        run,
        fact.cause,
    ]
    return line(cells), good


BUS_REQUESTS = 5000


def order_rows() -> Iterator[str]:
    """Yields rows with the means under each rule for the bus, from the model alone."""
    array = arrays.GEOMETRIES["1x8"]
    for load, share in [("half loaded", 0.5), ("nine tenths", 0.9)]:
        requests = arrays.load(array, share, 1, BUS_REQUESTS, seed=13)
        for order in events.ARBITRATIONS:
            ends = events.simulate(replace(array, arbitration=order), requests)
            means = []
            for wanted in "RW":
                each = [end - at for (at, op, *_), end in zip(requests, ends, strict=True) if op == wanted]
                means.append(f"{sum(each) / len(each) / 1000:.1f}")
            yield line([load, order, *means])


def page() -> tuple[str, list[str]]:
    """Returns the page, and those of its rows whose figures are out of bounds."""
    equalities = [*completions(), *counters()]
    times = list(timing_rows())
    rows = [fact_row(fact) for fact in facts.FACTS]
    wrong = [each.row() for each in equalities if each.unequal]
    wrong += [row for row, good in [*times, *rows] if not good]
    limit = timings.AT_LIMIT
    parts = [
        HEAD,
        EQUAL,
        table("what, on, compared, unequal, test", together(equalities)),
        TIMES.format(limit=limit),
        table(
            "preset, read (us): sum, ftlab, write (us): sum, ftlab, "
            f"{limit} reads (ms): bound, ftlab, {limit} writes (ms): bound, ftlab",
            (row for row, _ in times),
        ),
        AGAINST,
        table(
            "name, simulator and settings, metric, theirs, ftlab, difference, bound, run, cause",
            (row for row, _ in rows),
        ),
        PURPOSE.format(count=BUS_REQUESTS),
        table("load, order, read (us), write (us)", order_rows()),
        TAIL,
    ]
    return "".join(parts), wrong


def main() -> int:
    """Runs the command line; returns the exit status."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--write", type=Path, metavar="FILE", help="write the page there")
    parser.add_argument("--only", metavar="NAME", help="one fact alone")
    arguments = parser.parse_args()
    if arguments.only:
        rows = [fact_row(fact) for fact in facts.FACTS if fact.name == arguments.only]
        if not rows:
            parser.error(
                f"no fact {arguments.only}; there are {', '.join(fact.name for fact in facts.FACTS)}"
            )
        print(rows[0][0])
        return 0 if rows[0][1] else 1
    began = time.process_time()
    text, wrong = page()
    if arguments.write:
        arguments.write.write_text(text)
    else:
        sys.stdout.write(text)
    for file in traces.RECORDED.values():
        if not (engine.shared_traces() / file).is_file():
            print(f"validation: no {file}, whose rows are not run (FTLAB_TRACES)", file=sys.stderr)
    for row in wrong:
        print(f"validation: wrong: {row}", file=sys.stderr)
    print(f"validation: {len(wrong)} wrong, {time.process_time() - began:.0f} CPU-seconds", file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
