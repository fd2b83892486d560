"""Writes the jobs of ``ftlab probe`` as files of fio, with a page that says what each does to a drive."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from ftlab._core import UserError
from ftlab.calibration.probe_jobs import GLOBAL, Probe, Section, destructive, read_only
from ftlab.outputs import Output

DESTRUCTIVE = "destructive"
"""The directory of jobs that write, inside that of the others."""

WHOLE = "100%"
"""The default of the part of the drive that jobs use: all of it."""

_SIZE = re.compile(r"[1-9][0-9]{0,11}[kmgt]|[1-9][0-9]?%|100%", re.IGNORECASE)

_READ_ME = """\
# Jobs that measure a drive

`ftlab probe` wrote these job files for fio. {first}

They use {size} of the drive, from its beginning on. Run them in this directory, as a user who can open the
drive, while nothing else uses it:

    export DRIVE=/dev/nvme0n1          # the drive; look twice
    for job in *.fio; do
        fio {readonly}--output-format=json+ --output="${{job%.fio}}.json" "$job"
    done

| file | what it tells | takes | erases |
|---|---|---|---|
{rows}

{last}"""

_ONLY_READ = "They only read."

_WARNING = """\
**Everything on the drive is lost.** fio refuses a
drive with a mounted file system, but not one that is in use otherwise (RAID, LVM, a database on the bare
drive). The jobs run in the order of their names: `1-fill.fio` begins with a drive that `blkdiscard` has
emptied, and leaves it full."""

_WHAT_IS_READ = """\
Reads measure flash only where something was written. A new or trimmed drive answers from its map alone,
faster than any flash: fill it first (a job of `ftlab probe --destructive` does), or use only what is known to
be full (`ftlab probe --size`).

fio writes what it measured into NAME.json; `ftlab calibrate BASE --measured .` reads it.
"""

_REST = """\
Some minutes of rest between two files let the drive empty its SLC cache. fio writes what it measured into
NAME.json and, for a log per second, into NAME_bw.1.log and its like.
"""


def write(folder: Path, *, writing: bool = False, size: str = WHOLE, replace: bool = False) -> list[Path]:
    """Writes the read-only jobs into a directory and, with ``writing``, the destructive ones into a directory
    in it; returns all files written.

    ``size`` is the part of the drive that the jobs use, as fio writes it: 16g, 50%. Unless ``replace`` is
    set, nothing is written if one of the files exists.

    Raises:
        UserError: ``size`` is not a size, a file exists, or one cannot be written.
    """
    if not _SIZE.fullmatch(size):
        raise UserError(f"--size {size}: write for example 16g, or a share of the drive such as 50%")
    files = _files(folder, list(read_only()), size)
    if writing:
        files |= _files(folder / DESTRUCTIVE, list(destructive()), size)
    there = [path for path in files if path.exists() or path.is_symlink()]
    if there and not replace:
        raise UserError(f"{there[0]}: exists; name another directory, or replace the files with --replace")
    outputs = {path: Output("--jobs", path, links=False) for path in files}
    for output in outputs.values():
        output.check()
    for path, output in outputs.items():
        output.write(files[path].encode())
    return list(files)


def _files(folder: Path, probes: Sequence[Probe], size: str) -> dict[Path, str]:
    """Returns the text of each file of a directory."""
    files = {folder / f"{probe.name}.fio": text(probe, size) for probe in probes}
    return {**files, folder / "README.md": read_me(probes, size)}


def text(probe: Probe, size: str = WHOLE) -> str:
    """Returns the text of a job file."""
    lines = [f"; {probe.purpose}", f"; Erases {probe.erases}." if probe.erases else "; Only reads."]
    lines += ["[global]", *_lines(GLOBAL | {"size": size} | probe.shared)]
    for number, section in enumerate(probe.sections):
        lines += ["", f"[{section.name}]", *_wall(number, section), *_lines(section.options)]
    return "\n".join(lines) + "\n"


def _wall(number: int, section: Section) -> list[str]:
    return [] if number == 0 or section.together else ["stonewall"]


def _lines(options: dict[str, str]) -> list[str]:
    return [f"{name}={value}" for name, value in options.items()]


def read_me(probes: Sequence[Probe], size: str) -> str:
    """Returns the page of a directory: how to run its jobs, what each tells, takes and erases."""
    writing = any(probe.erases for probe in probes)
    rows = ["| " + " | ".join(_cells(probe)) + " |" for probe in probes]
    return _READ_ME.format(
        first=_WARNING if writing else _ONLY_READ,
        size="all" if size == WHOLE else size,
        readonly="" if writing else "--readonly ",
        rows="\n".join(rows),
        last=_REST if writing else _WHAT_IS_READ,
    )


def _cells(probe: Probe) -> tuple[str, ...]:
    return (f"`{probe.name}.fio`", probe.purpose, probe.takes or _time(probe), probe.erases or "nothing")


def _time(probe: Probe) -> str:
    minutes, seconds = divmod(probe.seconds, 60)
    most = "" if "time_based" in probe.shared else "at most "
    return most + " ".join(f"{part} {unit}" for part, unit in ((minutes, "min"), (seconds, "s")) if part)
