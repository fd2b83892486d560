"""The data that comes with ftlab: a trace, the fitted workloads, the declarations of the papers' figures.

In a checkout the folders are links to those at the checkout's top; a wheel holds the files themselves.
"""

from __future__ import annotations

from pathlib import Path

FOLDERS = ("papers", "traces", "workloads")


def folder() -> Path:
    """Returns the directory that holds `FOLDERS`."""
    return Path(__file__).parent
