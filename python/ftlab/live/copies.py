"""Copies of the directory of a live device, whose flash may be a file of many holes."""

from __future__ import annotations

import os
import shutil
import stat
from pathlib import Path

CHUNK = 1 << 20


def _left_out(folder: str, names: list[str]) -> set[str]:
    """Returns what is not copied: what each device makes anew, mounted file systems, sockets and the like."""
    anew = shutil.ignore_patterns("nand", "output", "nbd*", "mnt")(folder, names)
    return anew | {name for name in names if not _is_plain(Path(folder, name))}


def _is_plain(path: Path) -> bool:
    """Returns whether a path is a file, a link or a directory on which nothing is mounted."""
    try:
        mode = path.lstat().st_mode
    except OSError:
        return False
    return stat.S_ISREG(mode) or stat.S_ISLNK(mode) or (stat.S_ISDIR(mode) and not path.is_mount())


def copy(pristine: Path, at: Path) -> None:
    """Copies the directory of a device, for root with the owners; holes in its media file stay holes."""
    shutil.copytree(pristine, at, symlinks=True, ignore=_left_out)
    for path in at.rglob("*") if os.geteuid() == 0 else ():
        found = (pristine / path.relative_to(at)).lstat()
        os.chown(path, found.st_uid, found.st_gid, follow_symlinks=False)
    with (pristine / "nand").open("rb") as source, (at / "nand").open("xb") as target:
        end = os.fstat(source.fileno()).st_size
        target.truncate(end)
        place = 0
        while place < end:
            try:
                place = os.lseek(source.fileno(), place, os.SEEK_DATA)
            except OSError:
                return
            hole = os.lseek(source.fileno(), place, os.SEEK_HOLE)
            while place < hole:
                data = os.pread(source.fileno(), min(CHUNK, hole - place), place)
                os.pwrite(target.fileno(), data, place)
                place += len(data)
