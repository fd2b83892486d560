"""What the tests of HTML reports share: a workload, hostile names, and a parser of pages."""

from __future__ import annotations

import json
import re
from html.parser import HTMLParser
from typing import Any

from ftlab import html

MEASURED = dict.fromkeys(html.KEYS, "true")
WORKLOAD = {
    "workload.synthetic.requests": 4000,
    "workload.synthetic.region": "4MiB",
    "workload.synthetic.read_share": "40%",
    "workload.synthetic.interarrival": "900us",
    "workload.synthetic.pattern": "zipf",
    "flash.blocks_per_plane": 40,
    "ftl.over_provisioning": "30%",
}
HOSTILE = '</script><script>window.broken = 1</script><img src="x" onerror="window.broken = 2">'
SECTIONS = (
    *(
        "overview",
        "distribution",
        "percentiles",
        "parts",
        "tenants",
        "tenant-shares",
        "time",
        "throughput",
        "waf",
        "waf-time",
        "merges",
        "misses",
        "wear",
    ),
    *("flash", "figures", "settings"),
)

Runs = list[tuple[dict[str, str], Any]]


class Structure(HTMLParser):
    """Collects a page's elements and links, and whether the elements are balanced."""

    VOID = frozenset({"meta", "link", "input", "img", "br", "hr"})

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.text: dict[str, str] = {}

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open:
            self.text[self.open[-1]] = self.text.get(self.open[-1], "") + data


def parsed(text: str) -> Structure:
    structure = Structure()
    structure.feed(text)
    structure.close()
    assert structure.open == []
    return structure


def data_of(text: str) -> dict[str, Any]:
    found = re.search(r'<script type="application/json" id="data">(.*?)</script>', text, re.S)
    assert found
    data: dict[str, Any] = json.loads(found[1])
    return data
