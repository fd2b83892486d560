"""Pages under axe: no finding that it calls serious or critical."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
from axe_playwright_python.sync_playwright import Axe

from browser import Page
from ftlab import html
from reports import Runs


def findings(tab: Any) -> list[str]:
    """What axe finds: rule, how bad, and where."""
    # It is taken from the package, not from the network.
    violations = Axe().run(tab).response["violations"]
    return [
        f"{each['id']} ({each['impact']}): {node['html'][:200]} {node['any'][:1]}"
        for each in violations
        if each["impact"] in ("serious", "critical")
        for node in each["nodes"]
    ]


def test_it_finds_something(browser: Any, tmp_path: Path) -> None:
    page = tmp_path / "x.html"
    page.write_text(
        '<html data-drawn="1"><title>x</title><body><img src="data:,"><p style="color:#ccc">pale</p>'
    )
    tab = Page(browser, page)
    found = " ".join(findings(tab.tab))
    assert "image-alt" in found and "color-contrast" in found and "html-has-lang" in found
    tab.faults.clear()
    tab.close()


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1280, 390])
def test_a_report(browser: Any, runs: Runs, tmp_path: Path, width: int, scheme: str) -> None:
    html.write_report(tmp_path / "x.html", title="Report", runs=runs, command="ftlab x")
    page = Page(browser, tmp_path / "x.html", width, scheme)
    page.tab.click("footer summary")
    assert findings(page.tab) == []
    page.close()


@pytest.mark.skipif("FTLAB_SITE" not in os.environ, reason="no site: make site, then FTLAB_SITE=out/site")
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_site(browser: Any, scheme: str) -> None:
    """Every page of it."""
    root = Path(os.environ["FTLAB_SITE"]).resolve()
    pages = sorted(root.glob("**/*.html"))
    assert len(pages) > 30
    tab = browser.new_context(viewport={"width": 1280, "height": 900}, color_scheme=scheme).new_page()
    found = []
    for path in pages:
        tab.goto(path.as_uri())
        found += [f"{path.relative_to(root)}: {each}" for each in findings(tab)]
    tab.context.close()
    assert found == []
