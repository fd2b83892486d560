"""Searches among cuts: every state at every request, and the smallest loss that still fails."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from contextlib import suppress
from dataclasses import astuple
from pathlib import Path
from typing import Any

from ftlab.live.copies import copy
from ftlab.live.cuts import Campaign, Covered, Failure, Outcome, Point, StoppedError
from ftlab.live.lost import Cut, State, is_torn, smaller, states

MOST_CUTS = 200
"""How many requests may come before a failure for an earlier one to be looked for."""
MOST_TRIED = 16
"""How many states of each cut the search for the earliest cut tries."""


class Search:
    """What is tried on the devices that cuts have left."""

    def __init__(self, campaign: Campaign) -> None:
        """Makes the search of a campaign."""
        self._campaign = campaign

    def every(self, seed: int, most: int, jobs: int, told: Callable[[], None]) -> Outcome:
        """Cuts the power at each request and after the last one; judges all states of the unflushed writes,
        but at most `most` for each cut, until one fails.
        """
        outcome = Outcome()
        covered: list[Covered] = []

        def work(point: Point) -> tuple[dict[str, Any], None, Failure | None]:
            covered.append(own := Covered())
            done, failure = self._all_states(point, most, own)
            return done["cut"], None, failure

        with suppress(StoppedError), self._campaign.begun(outcome):
            points = [Point(seed + at - 1, request=at) for at in range(1, outcome.requests + 2)]
            self._campaign.each(points, work, outcome, jobs, told)
        outcome.states = Covered(*(sum(each) for each in zip(*map(astuple, covered), strict=True)))
        outcome.failures.sort(key=lambda failure: failure.request)
        return outcome

    def _all_states(self, point: Point, most: int, covered: Covered) -> tuple[dict[str, Any], Failure | None]:
        """Judges the states of one cut, and counts them; returns the media's part of the result and the
        failure.
        """
        at = self._campaign.scratch / f"every-{point.request}"
        done = self._campaign.lose_power(at, point)
        sectors = Cut(at / "nand").sectors()
        covered.all = 1 << len(sectors)
        covered.torn_all = (1 << sum(sectors)) - covered.all
        failure = None
        for state in states(sectors, most):
            covered.torn += is_torn(state)
            covered.judged += not is_torn(state)
            failure = self._judged(at, point, done["requests"], state)
            if failure:
                break
        shutil.rmtree(at, ignore_errors=True)
        return done, failure

    def _judged(self, left: Path, point: Point, requests: int, state: State) -> Failure | None:
        """Judges a copy of the device that a cut has left, in one state of its unflushed writes."""
        at = left.with_name(f"{left.name}-try")
        copy(left, at)
        Cut(at / "nand").choose(state)
        try:
            return self._campaign.judged(at, point, requests)
        finally:
            shutil.rmtree(at, ignore_errors=True)

    def minimise(self, failed: Failure) -> Failure | None:
        """Returns the failure at the earliest request at which a cut fails in one of its likeliest states or,
        if more than `MOST_CUTS` requests came before it, at the same point again; with the smallest loss: if
        any one of its lost writes persists too, the check passes. None if no cut fails again.
        """
        found = None
        outcome = Outcome()
        last = failed.request or failed.requests + 1
        with suppress(StoppedError), self._campaign.begun(outcome):
            for request in range(1, last + 1 if last <= MOST_CUTS else 1):
                found = self._first(Point(failed.seed, request=request))
                if found:
                    return found
            found = self._again(failed)
        return found

    def _again(self, failed: Failure) -> Failure | None:
        """Returns the smallest loss at the cut that failed."""
        point = Point(failed.seed, failed.operation, failed.request)
        at = self._campaign.scratch / "again"
        done = self._campaign.lose_power(at, point)
        state = Cut(at / "nand").state()
        first = self._judged(at, point, done["requests"], state)
        return first and self._least(at, first, state)

    def _first(self, point: Point) -> Failure | None:
        """Returns the smallest loss of a cut at a request, if one of its likeliest states fails."""
        at = self._campaign.scratch / f"first-{point.request}"
        done = self._campaign.lose_power(at, point)
        sectors = Cut(at / "nand").sectors()
        try:
            for state in states(sectors, MOST_TRIED, torn=False):
                failure = self._judged(at, point, done["requests"], state)
                if failure:
                    return self._least(at, failure, state)
        finally:
            shutil.rmtree(at, ignore_errors=True)
        return None

    def _least(self, at: Path, failure: Failure, state: State) -> Failure:
        """Lets one lost write after another persist, as long as the check still fails."""
        point = Point(failure.seed, failure.operation, failure.request)
        while True:
            for less in smaller(state):
                found = self._judged(at, point, failure.requests, less)
                if found:
                    failure, state = found, less
                    break
            else:
                return failure
