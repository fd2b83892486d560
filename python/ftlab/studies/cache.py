"""Results of finished runs, kept in files named by the hash of everything they depend on."""

from __future__ import annotations

import gzip
import hashlib
import itertools
import json
import os
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

from ftlab._core import UserError
from ftlab.outputs import ENDS, Output, beside

_PIECE = 1 << 20
MOST_BYTES = 256 * _PIECE
"""The maximum size of an unpacked entry in bytes; a larger entry is not read to its end."""


def default() -> Path:
    """Returns ``$XDG_CACHE_HOME/ftlab/reproduce``, or else ``~/.cache/ftlab/reproduce``."""
    base = os.environ.get("XDG_CACHE_HOME", "")
    # The XDG specification says that a relative path has to be ignored.
    return (Path(base) if base.startswith("/") else Path.home() / ".cache") / "ftlab" / "reproduce"


class Cache:
    """A directory of results. Files appear complete, by rename, so an interrupt leaves no incomplete file."""

    def __init__(
        self, folder: Path, *, fresh: bool = False, say: Callable[[str], None] | None = None
    ) -> None:
        """Makes the cache; with ``fresh`` earlier results are ignored. ``say`` is called with notes for the
        user.
        """
        self.folder = folder
        self._fresh = fresh
        self._say = say or (lambda text: None)
        self._new: set[str] = set()
        self._unwritable = False

    def path(self, key: str) -> Path:
        """Returns where the result of that key is stored."""
        return self.folder / key[:2] / f"{key}.json.gz"

    def get(self, key: str) -> dict[str, Any] | None:
        """Returns the result stored under ``key``, or None; a damaged result is ignored, with a note."""
        if self._fresh and key not in self._new:
            return None
        path = self.path(key)
        try:
            return self._read(path)
        except FileNotFoundError:
            return None
        except (OSError, EOFError, zlib.error, ValueError, RecursionError) as error:
            # The file is damaged, for example by a full disk or a flipped bit: the run is done again.
            self._say(f"{path}: not used, and run again: {error}")
            return None

    def put(self, key: str, result: dict[str, Any]) -> None:
        """Stores a result; a failure is not an error, as the run is then simply not cached.

        The engine block is left out: it does not depend on the key.
        """
        path = self.path(key)
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._write(path, result)
        except (OSError, UserError) as error:
            if not (self._unwritable or ENDS.is_set()):
                why = error.strerror if isinstance(error, OSError) else error
                self._say(f"results are not kept: {why}")
            self._unwritable = True
            return
        self._new.add(key)

    def _read(self, path: Path) -> dict[str, Any]:
        with gzip.open(path, "rb") as file:
            # Reads one piece at a time: if `MOST_BYTES` were requested at once, even a small file would take
            # that much memory.
            pieces = list(itertools.islice(iter(lambda: file.read(_PIECE), b""), MOST_BYTES // _PIECE + 1))
        return _unpacked(b"".join(pieces))

    def _write(self, path: Path, result: dict[str, Any]) -> None:
        # The gzip header holds no time: the same result gives the same bytes.
        measured = {name: value for name, value in result.items() if name != "engine"}
        Output("cache", path, links=False).write(gzip.compress(_packed(measured), compresslevel=5, mtime=0))


class Folder(Cache):
    """A cache of plain files, ``HASH.json``, that other programs can read; each holds a whole result."""

    def path(self, key: str) -> Path:
        """Returns where the result of that key is stored."""
        return self.folder / f"{key}.json"

    def _read(self, path: Path) -> dict[str, Any]:
        found = json.loads(path.read_bytes())
        if not isinstance(found, dict) or "engine" not in found:
            raise ValueError("it is not a result")
        return found

    def _write(self, path: Path, result: dict[str, Any]) -> None:
        # This does not use `Output`, which waits for the disk: after a power cut the run can simply be
        # repeated.
        with beside(path) as unfinished:
            unfinished.write_text(json.dumps(result), encoding="utf-8")
            unfinished.replace(path)


def _packed(result: dict[str, Any]) -> bytes:
    """Returns the result's JSON, preceded by its hash."""
    text = json.dumps(result).encode()
    return hashlib.sha256(text).hexdigest().encode() + b"\n" + text


def _unpacked(data: bytes) -> dict[str, Any]:
    if len(data) > MOST_BYTES:
        raise ValueError(f"more than {MOST_BYTES >> 20} MiB")
    digest, _, text = data.partition(b"\n")
    if digest != hashlib.sha256(text).hexdigest().encode():
        raise ValueError("it does not match its hash")
    found: dict[str, Any] = json.loads(text)
    return found
