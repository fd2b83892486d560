"""Results of finished runs, kept in files named by the hash of all they depend on."""

from __future__ import annotations

import gzip
import json
import os
from pathlib import Path
from typing import Any


def default() -> Path:
    """``$XDG_CACHE_HOME/ftlab/reproduce``, else in ``~/.cache``."""
    base = os.environ.get("XDG_CACHE_HOME", "")
    # As the specification of XDG has it, a relative path is to be ignored.
    return (Path(base) if base.startswith("/") else Path.home() / ".cache") / "ftlab" / "reproduce"


class Cache:
    """A directory of results. A file appears whole, by rename, so that an interrupt leaves none broken."""

    def __init__(self, folder: Path, *, fresh: bool = False) -> None:
        """``fresh``: what was there before is not looked at."""
        self.folder = folder
        self._fresh = fresh
        self._new: set[str] = set()

    def _path(self, key: str) -> Path:
        return self.folder / key[:2] / f"{key}.json.gz"

    def get(self, key: str) -> dict[str, Any] | None:
        """The result kept under ``key``."""
        if self._fresh and key not in self._new:
            return None
        try:
            with gzip.open(self._path(key), "rb") as file:
                found: dict[str, Any] = json.loads(file.read())
        except (OSError, EOFError, ValueError):
            # Not there, or not whole, as after a full disk: then it is run again.
            return None
        return found

    def put(self, key: str, result: dict[str, Any]) -> None:
        """Keeps a result; if it cannot be kept it is found by nobody, which is no error of the run."""
        path = self._path(key)
        path.parent.mkdir(parents=True, exist_ok=True)
        staged = path.with_name(f".{path.name}.{os.getpid()}.tmp")
        try:
            # Without a time in its head: the same result, the same bytes.
            staged.write_bytes(gzip.compress(json.dumps(result).encode(), compresslevel=5, mtime=0))
            staged.replace(path)
        finally:
            staged.unlink(missing_ok=True)
        self._new.add(key)
