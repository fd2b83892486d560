"""ftlab's pages in a browser: the system's Chromium."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Any

CHROMIUM = os.environ.get("FTLAB_CHROMIUM") or shutil.which("chromium") or shutil.which("chromium-browser")


class Page:
    """A report in a tab. Every console message and every request counts as a fault."""

    def __init__(
        self, browser: Any, path: Path, width: int = 1280, scheme: str = "light", fragment: str = ""
    ) -> None:
        self.faults: list[str] = []
        self.context = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=scheme)
        self.tab = self.context.new_page()
        self.tab.on("console", lambda message: self.faults.append(f"console: {message.text}"))
        self.tab.on("pageerror", lambda error: self.faults.append(f"error: {error}"))
        self.tab.on("request", lambda request: self.requested(request.url, path))
        self.tab.goto(path.as_uri() + fragment)
        self.wait()

    def requested(self, url: str, path: Path) -> None:
        if url.partition("#")[0] != path.as_uri() and not url.startswith(("data:", "blob:")):
            self.faults.append(f"request: {url}")

    def wait(self) -> None:
        """Waits until the page has drawn everything."""
        self.tab.wait_for_function("document.documentElement.dataset.drawn", timeout=60_000)

    def choose(self, selector: str, value: str) -> None:
        self.tab.select_option(selector, value)
        self.wait()

    def marks(self, section: str) -> str:
        """Returns what a section's charts show, as text that can be compared."""
        drawn: str = self.tab.eval_on_selector_all(
            f"#{section} .chart svg.marks, #{section} .chart canvas.marks",
            "found => found.map(one => one.tagName === 'CANVAS' ? one.toDataURL() : one.outerHTML).join()",
        )
        return drawn

    def texts(self, selector: str) -> list[str]:
        found: list[str] = self.tab.eval_on_selector_all(selector, "all => all.map(one => one.textContent)")
        return found

    def close(self) -> None:
        self.context.close()
        assert self.faults == []
