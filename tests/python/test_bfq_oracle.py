"""bfq, compared request by request with a second implementation on random cases of several tenants.

`FTLAB_CAMPAIGN=N` makes a campaign of the random cases (see campaign.py).
"""

from __future__ import annotations

from pathlib import Path

import pytest

import campaign
from oracle import bfq, engine, kernel
from oracle.bfq_parts import Case
from oracle.mapplus import Record

pytestmark = pytest.mark.skipif(not engine.available(), reason=engine.SKIP_REASON)


def result_of(case: Case, traces: list[list[Record]], folder: Path, check: bool) -> list[engine.Row]:
    """Runs ftlab on a case; returns its requests."""
    import ftlab

    paths = [folder / f"{number}.csv" for number in range(len(traces))]
    for path, trace in zip(paths, traces, strict=True):
        path.write_text(engine.trace_csv(trace))
    result = ftlab.run(case.settings([str(path) for path in paths]), check=check)
    own = result.to_dict()["own"]["scheduler"]
    run = bfq.Run(case, traces)
    run.run()
    for name, count in run.bfq.ends.items():
        assert own[name] == count, f"{case}: {name} {own[name]}, oracle {count}"
    assert own["max_budget"] == run.bfq.rate.max_budget, case
    return engine.result_rows(result)


def difference(seed: int, folder: Path, check: bool = False) -> str | None:
    """Returns what differs first, in order of dispatch, or None."""
    case, traces = bfq.random_case(seed)
    rows = result_of(case, traces, folder, check)
    return kernel.first_difference(rows, bfq.Run(case, traces).run(), f"seed {seed} ({case})")


def test_bfq_agrees_with_the_oracle(tmp_path: Path) -> None:
    for seed in campaign.cases("bfq_oracle", range(80)):
        found = difference(seed, tmp_path, check=seed % 10 < 2)
        assert found is None, found


def test_the_cases_end_turns_in_every_way() -> None:
    """The comparison above says little about a way to end a turn that does not occur."""
    ends = dict.fromkeys(bfq.Bfq(bfq.random_case(0)[0]).ends, 0)
    estimates = set()
    for seed in range(80):
        run = bfq.Run(*bfq.random_case(seed))
        run.run()
        for name, count in run.bfq.ends.items():
            ends[name] += count
        estimates.add(run.bfq.rate.rate)
    assert min(ends.values()) >= 20, ends
    assert len(estimates) >= 5
