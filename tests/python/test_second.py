"""Compares ftlab with second implementations, with times worked out by hand, and with closed forms.

The second implementations are those of FTLs that write mappings back after a given amount of data
(``tests/oracle/units.py``) and of BAST and FAST below noop, irbw, padding and coop (``coop.py``). The times
by hand are in ``byhand.py``, the comparison of write amplification with closed forms in ``steady.py``. TPFTL
and CDFTL are part of ``test_oracle.py``. ``FTLAB_CAMPAIGN=20000`` runs that many random cases, and devices of
4,096 blocks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

import pytest

import campaign
from oracle import byhand, coop, engine, steady, units

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
    found = unequal(campaign.cases("coop", range(240)), lambda number: coop.differences(coop.case(number)))
    assert not found, "\n".join(found[:5])


@pytest.mark.parametrize(("kind", "case"), byhand.ALL, ids=lambda of: getattr(of, "name", of))
def test_a_timing_by_hand(kind: str, case: byhand.Case) -> None:
    completes, result = byhand.run(case)
    assert completes == [at * 1000 for at in case.completes]
    for op, count in case.together.items():
        assert result["parallel"]["multi_plane"][op] == count


BLOCKS, GATE = (4096, 0.005) if campaign.long() else (512, 0.015)
"""The number of blocks, and the tolerance: a small device stays below the closed forms, which hold for many
blocks.
"""


@pytest.mark.parametrize("spare", [1.07, 1.15, 1.28])
@pytest.mark.parametrize(
    "policy",
    steady.policies(BLOCKS),
    ids=lambda policy: "-".join([policy.name, *map(str, policy.keys.values())]),
)
def test_write_amplification_follows_its_closed_form(policy: steady.Policy, spare: float) -> None:
    measured, expected = steady.amplification(policy, BLOCKS, spare)
    assert measured == pytest.approx(expected, rel=GATE)
