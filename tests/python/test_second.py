"""Compares ftlab with second implementations, with times worked out by hand, and with closed forms.

The second implementations are those of FTLs that write mappings back after a given amount of data
(``tests/oracle/units.py``) and of BAST and FAST below noop, irbw, padding and coop (``coop.py``). The times
by hand are in ``byhand.py``, the comparison of write amplification with closed forms in ``steady.py``.
``test_oracle.py`` has TPFTL and CDFTL; ``test_units_oracle.py``, ``test_coop_oracle.py`` and
``test_mapping_faults.py`` have deliberate faults. ``FTLAB_CAMPAIGN=20000`` runs that many random cases, and
devices of 4,096 blocks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace

import pytest

import campaign
from oracle import byhand, coop_cases, engine, steady, units

pytestmark = pytest.mark.skipif(not engine.available(), reason=engine.SKIP_REASON)


def unequal(numbers: Iterable[int], differences: Callable[[int], list[str]]) -> list[str]:
    """Returns, for each case that differs, its first differences."""
    return [
        f"case {number}: " + "\n  ".join(found[:5]) for number in numbers if (found := differences(number))
    ]


def test_mappings_flushed_by_amount() -> None:
    found = unequal(campaign.cases("units", range(150)), lambda number: units.differences(units.case(number)))
    assert not found, "\n".join(found[:5])


def test_hybrid_ftls_below_the_schedulers_of_coop() -> None:
    found = unequal(
        campaign.cases("coop", range(240)), lambda number: coop_cases.differences(coop_cases.case(number))
    )
    assert not found, "\n".join(found[:5])


@pytest.mark.parametrize(("kind", "case"), byhand.ALL, ids=lambda of: getattr(of, "name", of))
def test_a_timing_by_hand(kind: str, case: byhand.Case) -> None:
    completes, result = byhand.run(case)
    assert completes == [at * 1000 for at in case.completes]
    for op, count in case.together.items():
        assert result["parallel"]["multi_plane"][op] == count


@pytest.mark.parametrize("case", byhand.CACHED_AND_READS, ids=lambda case: case.name)
def test_cached_programs_where_reads_may_go_first(case: byhand.Case) -> None:
    assert byhand.run(case)[0] == [at * 1000 for at in case.completes]


OFF: dict[str, dict[str, str | int | bool]] = {
    "interleave": {"flash.interleave": False},
    "multi-plane": {"flash.multi_plane": "off"},
    "cache": {"flash.cache_program": False, "flash.cache_read": False},
    "suspension": {"flash.suspend": "off"},
    "out of order": {"flash.out_of_order": False},
    "merging": {"host.merge_limit": "0B"},
    "background": {"ftl.gc_background": False},
}
"""The settings without which a set of timings by hand is about nothing."""
WRONG = {
    "flash.command": "3us",
    "flash.read": "23us",
    "flash.program": "207us",
    "flash.erase": "1501us",
    "flash.transfer": "3ns",
    "flash.suspend_time": "21us",
    "flash.resume_time": "21us",
}
"""A wrong value for each time."""
OPERATIONS = ["flash.command", "flash.read", "flash.program", "flash.transfer"]
NEEDED = {
    "interleave": OPERATIONS,
    "multi-plane": OPERATIONS,
    "cache": OPERATIONS,
    # These cases begin with writes, so that a wrong time of a program would be noticed in any case.
    "suspension": ["flash.read", "flash.suspend_time", "flash.resume_time"],
    "background": ["flash.read", "flash.erase", "flash.suspend_time", "flash.resume_time"],
    "together": ["flash.read", "flash.suspend_time", "flash.resume_time"],
}
"""The times of which each set has to notice a wrong value."""


def changed(kind: str, key: str, value: str | int | bool) -> int:
    """Returns how many cases of a set come out differently with another value of a key."""
    cases = [replace(case, more={**case.more, key: value}) for case in byhand.SETS[kind]]
    return sum(byhand.run(case)[0] != [at * 1000 for at in case.completes] for case in cases)


@pytest.mark.parametrize("kind", OFF)
def test_without_its_feature_a_timing_by_hand_differs(kind: str) -> None:
    for key, value in OFF[kind].items():
        assert changed(kind, key, value) >= 2


@pytest.mark.parametrize("kind", NEEDED)
def test_a_wrong_time_is_noticed(kind: str) -> None:
    for key in NEEDED[kind]:
        assert changed(kind, key, WRONG[key]) >= 1, key


BLOCKS, GATE = (4096, 0.005) if campaign.long() else (512, 0.015)
"""The number of blocks, and the tolerance: a small device stays below the closed forms, which hold for many
blocks.
"""


SPARES = (1.07, 1.15, 1.28)


@pytest.mark.parametrize("spare", SPARES)
@pytest.mark.parametrize(
    "policy",
    steady.policies(BLOCKS),
    ids=lambda policy: "-".join([policy.name, *map(str, policy.keys.values())]),
)
def test_write_amplification_follows_its_closed_form(policy: steady.Policy, spare: float) -> None:
    measured, exact = steady.amplification(policy, BLOCKS, spare)
    assert measured == pytest.approx(policy.form(exact), rel=GATE)
    if spare == min(SPARES):
        # Where the spare factor is least, forms differ most.
        assert not [form for form in policy.wrong if measured == pytest.approx(form(exact), rel=GATE)]
