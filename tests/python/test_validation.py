"""Checks that the rows of docs/validation.md on public simulators hold, and show what is measured today."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType

import pytest

import scripts
from oracle import engine, facts, theory, traces

pytestmark = pytest.mark.skipif(not engine.available(), reason=engine.SKIP_REASON)

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "validation.md").read_text()


@pytest.fixture(scope="module")
def script() -> ModuleType:
    return scripts.script("validation")


@pytest.mark.parametrize("fact", facts.FACTS, ids=lambda fact: fact.name)
def test_a_fact_is_within_its_bound_and_on_the_page(fact: facts.Fact, script: ModuleType) -> None:
    if not fact.available():
        engine.shared_trace(fact.needs or "")
    row, good = script.fact_row(fact)
    assert good, row
    assert row in PAGE.splitlines(), "run `make validation`"


def test_a_fact_is_run_again_or_says_why_not() -> None:
    names = [fact.name for fact in facts.FACTS]
    assert len(set(names)) == len(names)
    for fact in facts.FACTS:
        assert (fact.rerun is None) == bool(fact.missing), fact.name
        assert fact.within(fact.then), fact.name
        assert fact.needs is None or fact.needs in traces.RECORDED.values()


def test_a_figure_out_of_its_bound_is_noticed() -> None:
    for fact in facts.FACTS:
        step = 10.0**-fact.digits
        assert fact.within(fact.theirs)
        assert not fact.within(fact.theirs * (1 + 1.01 * fact.bound) + step), fact.name


def test_the_page_is_all_equal() -> None:
    rows = [line.split(" | ") for line in PAGE.splitlines() if line.endswith(".py` |")]
    assert len(rows) >= 5
    assert {row[3] for row in rows} == {"0"}


@pytest.mark.parametrize("spare", facts.WAF)
def test_write_amplification_follows_the_closed_form(spare: float) -> None:
    """The measured write amplification differs from the closed form by at most 1 %, the bound of SSDSim's
    rows.
    """
    measured = facts.WAF[spare]()
    expected = theory.greedy_device(
        facts.BLOCKS,
        facts.BLOCK_PAGES,
        facts.BLOCKS * facts.BLOCK_PAGES / spare,
        reserve=1,
        frontiers=1,
    )
    assert measured == pytest.approx(expected, rel=0.01)
