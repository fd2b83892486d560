"""An idea: the request with the fewest pages goes first."""

import ftlab
from ftlab import Request


class ShortestFirst(ftlab.HostScheduler):
    """Takes the request with the fewest pages first; among equals, the oldest."""

    def __init__(self) -> None:
        self.pending: dict[int, int] = {}
        self.passed = 0

    def admit(self, request: Request) -> None:
        self.pending[request.id] = request.pages

    def choose(self) -> int | None:
        if not self.pending:
            return None
        chosen = min(self.pending, key=lambda id: (self.pending[id], id))
        self.passed += chosen != next(iter(self.pending))
        del self.pending[chosen]
        return chosen

    def remove(self, id: int) -> None:
        del self.pending[id]

    def stats(self) -> list[ftlab.Stat]:
        return [ftlab.Stat("passed", self.passed, "requests", "chosen while an older one was pending")]
