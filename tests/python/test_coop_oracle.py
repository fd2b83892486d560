"""Deliberate faults in the second implementation of COOP, Padding, IRBW and CSM (``tests/oracle/coop.py``).

``test_second.py`` shows that it equals ftlab; here each fault makes it differ from ftlab in one of the same
cases, so that the comparison would notice such a fault in ftlab.
"""

from __future__ import annotations

import pytest

from oracle import coop, coop_cases, engine, plain
from oracle.coop import BastDevice, FastDevice, Host, Part

pytestmark = pytest.mark.skipif(not engine.available(), reason=engine.SKIP_REASON)


# --- of the host -------------------------------------------------------------------------------


class InOrderOfArrival(Host):
    """Issues the writes of a block in order of arrival."""

    def take(self, block: int) -> list[Part]:
        before = list(self.queue)
        return sorted(super().take(block), key=before.index)


class TakesReads(Host):
    """Lets writes of a block wait for the reads that came before them."""

    def take(self, block: int) -> list[Part]:
        first_read = next((at for at, part in enumerate(self.queue) if part.op == "R"), len(self.queue))
        later, self.queue = self.queue[first_read:], self.queue[:first_read]
        taken = super().take(block)
        self.queue += later
        return taken


class PadsForNothing(Host):
    """Takes no time for the reads of padding."""

    def pad(self, block: int, parts: list[Part]) -> list[Part]:
        before = self.now
        padded = super().pad(block, parts)
        self.now = before
        return padded


class PadsBefore(Host):
    """Pads up to the last page that is written."""

    def pad(self, block: int, parts: list[Part]) -> list[Part]:
        padded = super().pad(block, parts)
        last = max(at for at, part in enumerate(padded) if part.request >= 0)
        return padded[: last + 1]


class NeverAsks(Host):
    """Issues blocks without a query."""

    def block_issue(self, block: int) -> None:
        self.device.query = lambda first, pages: []  # type: ignore[method-assign]
        super().block_issue(block)


class AsksForOnePage(Host):
    """Queries for one page, however many are issued."""

    def block_issue(self, block: int) -> None:
        query = type(self.device).query
        self.device.query = lambda first, pages: query(self.device, first, 1)  # type: ignore[method-assign]
        super().block_issue(block)


class AsksForWholeBlock(Host):
    """Queries from the beginning of the block on."""

    def block_issue(self, block: int) -> None:
        query, size = type(self.device).query, self.case.block_pages
        self.device.query = lambda first, pages: query(self.device, first - first % size, pages)  # type: ignore[method-assign]
        super().block_issue(block)


class NeverCompletes(Host):
    """Sends no COOP_Complete."""

    def serve(self, part: Part, last: bool = False) -> None:
        super().serve(part)


class PassesTrims(Host):
    """Lets writes pass a trim of their block."""

    def trims(self, part: Part, block: int) -> bool:
        return False


class IgnoresTrims(Host):
    """Leaves trimmed pages valid."""

    def serve(self, part: Part, last: bool = False) -> None:
        if part.op != "T":
            super().serve(part, last)


class GoesAhead(Host):
    """Lets the writes of a merge block go ahead of any trim."""

    def may_go_ahead(self, block: int) -> bool:
        return True


# --- of a cooperative switch merge ---------------------------------------------------------------


class ProgramsBehind(FastDevice):
    """Programs a page behind the next free offset of the CSM_Log, which flash forbids."""

    def write(self, part: Part) -> None:
        if self.csm is not None and part.block == self.csm:
            self.next = min(self.next, part.lpns.start % self.ftl.block_pages)
        super().write(part)


class CopiesToCount(FastDevice):
    """Copies pages up to the next one that is written, but does not count them."""

    def copy_to(self, end: int) -> None:
        before = self.cooperative[1]
        super().copy_to(end)
        self.cooperative[1] = before


class LeavesRest(FastDevice):
    """Completes a block without the pages behind the last one that was written."""

    def complete(self) -> None:
        if self.csm is not None:
            self.next = self.ftl.block_pages
        super().complete()


class KeepsEmptyLogs(FastDevice):
    """Leaves RW log blocks without valid pages after a cooperative switch merge."""

    def erase_logs(self, block: int) -> None:
        pass


class KeepsCurrentLog(FastDevice):
    """Leaves the current RW log block, even if nothing in it is valid."""

    def erase_logs(self, block: int) -> None:
        current = self.fast.random[-1:]
        self.fast.random = self.fast.random[:-1]
        super().erase_logs(block)
        self.fast.random += current


class KeepsPair(BastDevice):
    """Leaves the log block of a block that was merged cooperatively."""

    def erase_logs(self, block: int) -> None:
        pass


# --- of COOP_Query -----------------------------------------------------------------------------


class FromThreshold(FastDevice):
    """Takes an issue of just CSM_TH pages for a sequential one."""

    def query(self, first: int, pages: int) -> list[int]:
        if pages == self.csm_threshold:
            return [first // self.ftl.block_pages]
        return super().query(first, pages)


class NoThreshold(FastDevice):
    """Never merges a block cooperatively for its size."""

    def query(self, first: int, pages: int) -> list[int]:
        self.csm_threshold = self.ftl.block_pages
        return super().query(first, pages)


class FillsLogs(FastDevice):
    """Names no block if the issue just fits."""

    def query(self, first: int, pages: int) -> list[int]:
        return super().query(first, pages) if pages > self.csm_threshold else super().query(first, pages - 1)


class Descending(FastDevice):
    """Names the victims' blocks in descending order."""

    def query(self, first: int, pages: int) -> list[int]:
        return super().query(first, pages)[::-1]


class NamesStale(FastDevice):
    """Names all blocks of a victim, also those without a valid page in it."""

    def query(self, first: int, pages: int) -> list[int]:
        named = super().query(first, pages)
        if not named or pages > self.csm_threshold:
            return named
        return sorted({lpn // self.ftl.block_pages for lpn in self.fast.random[0].pages})


class GuessesOffsetZero(FastDevice):
    """Takes requests at offset 0 for sequential under cooperation, too."""

    def write_log(self, part: Part) -> None:
        self.fast.write_part(part.block, part.lpns)


class JustFits(BastDevice):
    """Names no block if the issue just fills its log block, in order or not."""

    def query(self, first: int, pages: int) -> list[int]:
        log = self.bast.logs.get(first // self.ftl.block_pages)
        if log is not None and pages == self.ftl.block_pages - len(log.pages):
            return []
        return super().query(first, pages)


class NeverInOrder(BastDevice):
    """Names a block that fills its log block in order."""

    def query(self, first: int, pages: int) -> list[int]:
        log = self.bast.logs.get(first // self.ftl.block_pages)
        if log is not None and pages == self.ftl.block_pages - len(log.pages):
            return [first // self.ftl.block_pages]
        return super().query(first, pages)


class NewestPair(BastDevice):
    """Names the block whose log block was written last."""

    def query(self, first: int, pages: int) -> list[int]:
        named = super().query(first, pages)
        return named if named == [first // self.ftl.block_pages] or not named else [list(self.bast.logs)[-1]]


class Early(BastDevice):
    """Names a victim while a log block is still free."""

    def query(self, first: int, pages: int) -> list[int]:
        named = super().query(first, pages)
        if (
            named
            or len(self.bast.logs) + 1 < self.bast.log_blocks
            or first // self.ftl.block_pages in self.bast.logs
        ):
            return named
        return [next(iter(self.bast.logs))] if self.bast.logs else []


class CountsPaddedAsSwitch(Host):
    """Counts padded switch merges among switch merges."""

    def __init__(self, case: coop.Case) -> None:
        super().__init__(case)
        ftl = self.device.ftl
        ftl.keep_log = lambda log, block: plain.Hybrid.keep_log(ftl, log, block)  # type: ignore[method-assign]


HOSTS: list[type[Host]] = [
    *[InOrderOfArrival, TakesReads, PadsForNothing, PadsBefore, NeverAsks, AsksForOnePage, AsksForWholeBlock],
    *[NeverCompletes, CountsPaddedAsSwitch, PassesTrims, IgnoresTrims, GoesAhead],
]
ON_FAST: list[type[FastDevice]] = [
    *[ProgramsBehind, CopiesToCount, LeavesRest, KeepsEmptyLogs, KeepsCurrentLog, FromThreshold, NoThreshold],
    *[FillsLogs, Descending, NamesStale, GuessesOffsetZero],
]
ON_BAST: list[type[BastDevice]] = [KeepsPair, JustFits, NeverInOrder, NewestPair, Early]


def is_noticed(host: type[Host]) -> bool:
    """Whether a fault makes a difference to ftlab in a case of ``test_second.py``."""
    return any(coop_cases.differences(coop_cases.case(number), host) for number in range(240))


@pytest.mark.parametrize("fault", HOSTS)
def test_a_fault_of_the_host_is_noticed(fault: type[Host]) -> None:
    assert is_noticed(fault)


@pytest.mark.parametrize("fault", ON_FAST)
def test_a_fault_of_fast_is_noticed(fault: type[FastDevice]) -> None:
    assert is_noticed(type("Faulty", (Host,), {"fast": fault}))


@pytest.mark.parametrize("fault", ON_BAST)
def test_a_fault_of_bast_is_noticed(fault: type[BastDevice]) -> None:
    assert is_noticed(type("Faulty", (Host,), {"bast": fault}))
