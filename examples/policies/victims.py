"""Two of ftlab's own victim policies, written in Python; results are the same except for the name.

ftlab compare map-plus --vary ftl.gc=greedy,python:examples/policies/victims.py:Greedy
"""

from __future__ import annotations

import ftlab


class Greedy(ftlab.VictimPolicy):
    """Chooses the block with the fewest valid pages; among equals, the one that reached that number first."""

    def choose(self, candidates: ftlab.Candidates) -> int:
        return int(candidates.valid.argmin())


class Fifo(ftlab.VictimPolicy):
    """Chooses the block that was filled first."""

    def choose(self, candidates: ftlab.Candidates) -> int:
        return int(candidates.closed.argmin())
