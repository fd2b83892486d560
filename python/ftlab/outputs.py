"""Output files, which are checked before the work starts and appear only when they are complete.

A regular file appears by rename. A target that exists and is not a regular file (a pipe, /dev/full) is
written in place. A failed write is a user's error that names the option and the path.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import stat
import sys
import tempfile
import textwrap
import threading
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, TextIO

from ftlab import _core
from ftlab._core import UserError

# Files that are being written, next to their targets or in directories of their own.
_unfinished: set[Path] = set()

ENDS = threading.Event()
"""Set when the process ends and removes what is being written: threads that still write find it gone."""


def discard_unfinished() -> None:
    """Removes all files that are still being written, including those that the extension writes.

    For a process that ends right afterwards without unwinding, for example on a signal.
    """
    ENDS.set()
    for path in list(_unfinished):
        with suppress(OSError):
            _remove(path)
    _core.discard_unfinished()


def _remove(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path)
    path.unlink(missing_ok=True)


@contextmanager
def _temporary(path: Path) -> Iterator[Path]:
    """Yields ``path``, which is removed when the block ends, however that happens."""
    _unfinished.add(path)
    try:
        yield path
    finally:
        _remove(path)
        _unfinished.discard(path)


@contextmanager
def beside(target: Path, suffix: str = "") -> Iterator[Path]:
    """Yields a new, empty file next to a target, removed at the end of the block.

    No other user who may write there can have put a link in its place, since the name cannot be guessed.
    """
    with _temporary(target.with_name(f".{target.name}.{os.urandom(8).hex()}.tmp{suffix}")) as path:
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        os.close(os.open(path, flags, 0o666))
        yield path


def no_links(path: str, flags: int) -> int:
    """Opens a file unless its name is a link; an ``opener`` for `open`."""
    return os.open(path, flags | os.O_NOFOLLOW | os.O_CLOEXEC, 0o666)


def inside(folder: Path, name: str) -> Output:
    """Returns an output, named by ftlab itself, in the directory of ``--out``; a link of that name is
    replaced.
    """
    return Output("--out", folder / name, links=False)


def folder_in(folder: Path, name: str) -> Path:
    """Makes a directory inside the directory of ``--out``.

    Raises:
        UserError: the directory cannot be made, or is a link.
    """
    refuse_link(folder, name)
    try:
        (folder / name).mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UserError(f"--out {folder}: cannot make the directory: {error.strerror}") from None
    return folder / name


def refuse_link(folder: Path, name: str) -> None:
    """Refuses a link in the place of a file or a directory that ftlab itself names.

    Raises:
        UserError: there is such a link.
    """
    if (folder / name).is_symlink():
        raise UserError(f"--out {folder}: {name} is a link: remove it, or name another directory")


_KINDS = frozenset([".csv", ".gz", ".htm", ".html", ".jpg", ".json", ".parquet", ".pdf", ".png", ".svg"])
"""Extensions that say what kind of file a name is for."""

HTML = (".html", ".htm")


class Output:
    """A file that an option names; its directories are created."""

    def __init__(self, option: str, path: str | os.PathLike[str], *, links: bool = True) -> None:
        """Makes the output; ``option`` is its name in messages, such as ``--json``, empty for an argument.

        With ``links`` the target of a symbolic link is replaced and the link stays; otherwise the link itself
        is replaced.
        """
        self.option = option
        self.name = os.fspath(path)
        self._is_link = not links and Path(self.name).is_symlink()
        # An open pipe, such as /dev/stdout, is a link to a name that does not exist; the link is opened
        # unresolved.
        opened = os.path.exists(self.name) and not os.path.isfile(self.name)  # noqa: PTH110, PTH113
        self.path = Path(self.name if opened or self._is_link else os.path.realpath(self.name))

    @property
    def suffix(self) -> str:
        """Returns the extension of the file's name, in lower case."""
        return Path(self.name).suffix.lower()

    @property
    def special(self) -> bool:
        """Whether the target exists and is not a regular file: it is then written in place."""
        given = Path(self.name)
        return not self._is_link and given.exists() and not given.is_file()

    def version(self) -> tuple[int, int] | None:
        """Returns a value that changes whenever the file is written; None if there is no regular file."""
        try:
            found = self.path.stat()
        except OSError:
            return None
        return (found.st_ino, found.st_mtime_ns) if stat.S_ISREG(found.st_mode) else None

    def fail(self, why: str) -> UserError:
        """Returns the error that says why this output cannot be written."""
        return UserError(f"{self.option} {self.name}: {why}".lstrip())

    def check(self, suffixes: Sequence[str] = ()) -> None:
        """Checks early that the file can be written.

        Raises:
            UserError: the file cannot be written, or its name does not end in one of ``suffixes``.
        """
        if not self.name:
            raise self.fail("the name is empty")
        if self.name == "-":
            raise self.fail("only --json prints to standard output; name a file")
        # A pipe or a device has no file name extension; it gets the first format.
        if suffixes and self.suffix not in suffixes and not self.special:
            raise self.fail(f"the name must end in {' or '.join(suffixes)}")
        try:
            self._check()
        except OSError as error:
            raise self.fail(f"cannot write: {error.strerror}") from None

    def check_kind(self, *suffixes: str) -> None:
        """Checks early that the file can be written, and is not named as a file of another kind.

        Raises:
            UserError: the file cannot be written, or its extension is that of another kind of file than
                ``suffixes``.
        """
        if self.suffix in _KINDS - set(suffixes) and not self.special:
            raise self.fail(f"a {self.suffix} file is something else; the name must end in {suffixes[0]}")
        self.check()

    def _check(self) -> None:
        if not self._is_link and self.path.is_dir():
            raise self.fail("is a directory; name a file")
        # A read-only file must not be replaced.
        if not self._is_link and Path(self.name).exists() and not os.access(self.name, os.W_OK):
            raise self.fail("cannot write: Permission denied")
        if self.special:
            return
        parent = self.path.parent
        if parent.exists() and not parent.is_dir():
            raise self.fail(f"cannot write: {parent} is not a directory")
        parent.mkdir(parents=True, exist_ok=True)
        with beside(self.path):
            pass

    def write(self, data: bytes) -> None:
        """Writes the whole file.

        Raises:
            UserError: the write failed; nothing half-written is left.
        """
        with self.staged() as path:
            path.write_bytes(data)

    @contextmanager
    def staged(self) -> Iterator[Path]:
        """Yields a path to write to; the file there becomes the target if the block ends without an
        exception.
        """
        try:
            if self.special:
                with _temporary(Path(tempfile.mkdtemp(prefix="ftlab-"))) as directory:
                    path = directory / "output"
                    yield path
                    with path.open("rb") as source, Path(self.name).open("wb") as target:
                        shutil.copyfileobj(source, target)
            else:
                with beside(self.path) as path:
                    yield path
                    self._install(path)
        except OSError as error:
            raise self.fail(f"cannot write: {error.strerror or error}") from None

    def _install(self, path: Path) -> None:
        """Puts the finished file in the target's place."""
        if not self._is_link and self.path.exists():
            path.chmod(stat.S_IMODE(self.path.stat().st_mode))
        # With delayed allocation the file system may report errors only here; they must come before the
        # rename.
        with path.open("rb") as file:
            os.fsync(file.fileno())
        path.replace(self.path)


@contextmanager
def system_errors(path: Path) -> Iterator[None]:
    """Replaces polars' message about a file that it cannot write with the error that the system gave."""
    import polars as pl

    try:
        yield
    except pl.exceptions.PolarsError as error:
        text = str(error)
        if number := re.search(r"\(os error (\d+)\)", text):
            raise OSError(int(number[1]), os.strerror(int(number[1]))) from None
        # Polars hides some errors ("Invalid thrift"). Whatever made its write fail also makes a write of
        # another megabyte fail, with the system's own error.
        with path.open("ab") as file:
            file.write(bytes(1 << 20))
        raise OSError((text.strip().splitlines() or [type(error).__name__])[0]) from None


@contextmanager
def saying_what_is_written(outputs: Iterable[Output]) -> Iterator[None]:
    """If the block fails, reports which of these files had already been written."""
    before = [(output, output.version()) for output in outputs]
    try:
        yield
    except UserError as error:
        written = [f"{output.option} {output.name}" for output, old in before if output.version() != old]
        if not written:
            raise
        raise UserError(f"{error}\n  written before that: {', '.join(written)}") from None


def check_distinct(outputs: Sequence[Output], inputs: Sequence[str | os.PathLike[str]] = ()) -> None:
    """Refuses two outputs to one file, and an output that would replace an input.

    Raises:
        UserError: there is such a pair; the message names both.
    """
    seen: dict[Path, Output] = {}
    for output in outputs:
        if output.special:
            continue
        if output.path in seen:
            raise output.fail(f"{seen[output.path].option} names the same file")
        seen[output.path] = output
        for name in inputs:
            if output.path == Path(os.path.realpath(name)):
                raise output.fail("would replace the input")


def json_text(data: dict[str, Any]) -> str:
    """Returns ``data`` as JSON text, ended by a line feed: indented, with lists of numbers on one line."""

    def on_one_line(found: re.Match[str]) -> str:
        return _BREAK.sub(lambda gap: " " if gap[1] else "", found[0])

    return _NUMBERS.sub(on_one_line, json.dumps(data, indent=2)) + "\n"


# Strings in JSON contain no line ends, so these patterns do not match inside them.
_NUMBERS = re.compile(r"\[\n *(?:(?:[-+.0-9eE]+|null),\n *)*(?:[-+.0-9eE]+|null)\n *\]")
_BREAK = re.compile(r"(?<=(,))\n *|\n *")


def write_stdout(text: str) -> None:
    """Prints ``text`` and flushes it, so that an error of the system is raised here."""
    sys.stdout.write(text)
    sys.stdout.flush()


def write_report(text: str) -> None:
    """Prints text for people: on a terminal, no word is broken at the edge."""
    write_stdout(wrapped(text, sys.stdout))


def tell(text: str) -> None:
    """Prints a note, a warning or an error, like `write_report`, on standard error."""
    sys.stderr.write(wrapped(f"{text}\n", sys.stderr))
    sys.stderr.flush()


def wrapped(text: str, stream: TextIO) -> str:
    """Returns text for a stream: on a terminal, lines are wrapped between words."""
    if not stream.isatty():
        return text
    width = shutil.get_terminal_size().columns
    return "".join(f"{folded(line, width)}\n" for line in text.splitlines())


def folded(line: str, width: int) -> str:
    """Wraps a line at ``width`` characters; words, including file names, stay whole."""
    if len(line) <= width:
        return line
    margin = " " * (len(line) - len(line.lstrip()))
    found = textwrap.wrap(
        line.lstrip(),
        max(width, len(margin) + 20),
        initial_indent=margin,
        subsequent_indent=f"{margin}  ",
        break_long_words=False,
        break_on_hyphens=False,
    )
    return "\n".join(found)
