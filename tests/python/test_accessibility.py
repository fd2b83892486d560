"""Checks pages with axe, which must find nothing serious or critical."""

from __future__ import annotations

import functools
import http.server
import os
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest
from axe_playwright_python.sync_playwright import Axe  # type: ignore[import-untyped]

from browser import Page
from ftlab import html
from reports import Runs

ROOT = Path(__file__).resolve().parents[2]


def findings(tab: Any) -> list[str]:
    """Returns axe's findings: rule, severity and place."""
    # Axe is taken from the package, not from the network.
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


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1280, 390])
@pytest.mark.parametrize("figure", ["fig9", "fig2"])
def test_a_reproduction(browser: Any, reproduced: Path, figure: str, width: int, scheme: str) -> None:
    """Checks a page that has runs to explore below the figures, and a page that has none."""
    tab = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=scheme).new_page()
    tab.goto((reproduced / figure / "index.html").as_uri())
    if figure == "fig9":
        tab.wait_for_function("document.documentElement.dataset.drawn", timeout=60_000)
    assert tab.evaluate("document.documentElement.scrollWidth") <= width

    def style(selector: str, name: str) -> str:
        found: str = tab.eval_on_selector(selector, f"one => getComputedStyle(one).{name}")
        return found

    # Pictures, too, have the page's colours, for their text and their background.
    assert style("figure svg .role-title-text text", "fill") == style("h1", "color")
    assert style("figure svg > rect", "fill") == "none"
    assert style("body", "backgroundColor") == (
        "rgb(20, 23, 27)" if scheme == "dark" else "rgb(252, 252, 251)"
    )
    assert findings(tab) == []
    tab.context.close()


@pytest.fixture(scope="module")
def reproduced(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Reproduces two figures, each on a page of its own."""
    folder = tmp_path_factory.mktemp("reproduced")
    for figure in ("fig9", "fig2"):
        command = ["reproduce", "coop", figure, "--root", str(ROOT), "--cache", "cache", "--out", figure]
        subprocess.run([sys.executable, "-m", "ftlab", *command], cwd=folder, check=True, capture_output=True)
    return folder


SITE = Path(os.environ.get("FTLAB_SITE", "")).resolve()
built = pytest.mark.skipif(
    "FTLAB_SITE" not in os.environ, reason="no site: make site, then FTLAB_SITE=out/site"
)


@built
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_site(browser: Any, scheme: str) -> None:
    """Checks every page of the site; on a phone no page is wider than the screen."""
    pages = sorted(SITE.glob("**/*.html"))
    assert len(pages) > 30
    tab = browser.new_context(viewport={"width": 1280, "height": 900}, color_scheme=scheme).new_page()
    found = []
    for path in pages:
        tab.goto(path.as_uri())
        found += [f"{path.relative_to(SITE)}: {each}" for each in findings(tab)]
        tab.set_viewport_size({"width": 390, "height": 900})
        assert tab.evaluate("document.documentElement.scrollWidth") <= 390, path
        tab.set_viewport_size({"width": 1280, "height": 900})
    tab.context.close()
    assert found == []


@built
@pytest.mark.parametrize("scheme", ["file", "http"])
def test_the_search_of_the_site(browser: Any, scheme: str) -> None:
    """The search works both if the site is opened from a disk and if it comes from a server."""
    handler = functools.partial(http.server.SimpleHTTPRequestHandler, directory=SITE)
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        tab = browser.new_page()
        tab.goto(
            f"http://127.0.0.1:{server.server_port}/" if scheme == "http" else SITE.as_uri() + "/index.html"
        )
        tab.fill("input[name=q]", "ftl.mapping_cache")
        tab.keyboard.press("Enter")
        tab.wait_for_selector("text=finished, found", timeout=30_000)
        found = tab.eval_on_selector_all("ul.search a", "all => all.map(one => one.textContent)")
        assert {"All configuration keys", "Size a mapping cache"} <= set(found)
        tab.close()
        server.shutdown()
