"""One of ftlab's own mapping-cache replacement policies, in Python; results are the same except for the name.

ftlab compare map-plus --vary ftl.cache_policy=lru,python:examples/policies/replacements.py:Lru
"""

from __future__ import annotations

from collections import OrderedDict

import ftlab


class Lru(ftlab.Replacement):
    """Evicts the entry whose last access is the oldest."""

    def __init__(self) -> None:
        self.keys: OrderedDict[int, None] = OrderedDict()

    def hit(self, key: int) -> None:
        self.keys.move_to_end(key)

    def insert(self, key: int) -> None:
        self.keys[key] = None

    def victim(self) -> int:
        return next(iter(self.keys))

    def remove(self, key: int) -> None:
        del self.keys[key]
