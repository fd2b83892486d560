"""The schedulers that Linux has, compared request by request with a second implementation on random cases.

`FTLAB_CAMPAIGN=N` makes a campaign of the random cases (see campaign.py).
"""

from __future__ import annotations

import pytest

import campaign
from oracle import engine, kernel

pytestmark = pytest.mark.skipif(not engine.available(), reason=engine.SKIP_REASON)


def difference(seed: int, check: bool = False) -> str | None:
    """Returns what differs first, in order of dispatch, or None."""
    case, trace = kernel.random_case(seed)
    rows = engine.result_rows(engine.result_of(case.settings(), trace, check))
    return kernel.first_difference(rows, kernel.follow(case, trace), f"seed {seed} ({case})")


def test_linux_schedulers_agree_with_the_oracle() -> None:
    for seed in campaign.cases("kernel_oracle", range(60)):
        found = difference(seed, check=seed % 10 < 2)
        assert found is None, found


def test_depths_move_in_the_cases_of_kyber() -> None:
    """The comparison above says little about depths unless they change and bind."""
    moved = bound = 0
    for seed in range(1, 60, 2):
        case, trace = kernel.random_case(seed)
        run = kernel.Run(case, trace)
        run.run()
        assert isinstance(run.scheduler, kernel.Kyber)
        moved += run.scheduler.depth != kernel.Kyber.MOST
        bound += run.scheduler.throttled > 0
    assert moved >= 8
    assert bound >= 6
