"""Output files are checked early, and are complete or absent."""

from __future__ import annotations

import os
import stat
import threading
from pathlib import Path
from typing import Any

import pytest

from ftlab import UserError, outputs
from ftlab.outputs import Output, check_distinct, inside
from ftlab.studies import cache
from ftlab.studies.cache import Folder


def test_appears_whole_with_usual_permissions(tmp_path: Path) -> None:
    output = Output("--json", tmp_path / "r.json")
    output.check()
    assert os.listdir(tmp_path) == []
    output.write(b"{}")
    assert (tmp_path / "r.json").read_bytes() == b"{}"
    umask = os.umask(0)
    os.umask(umask)
    assert stat.S_IMODE((tmp_path / "r.json").stat().st_mode) == 0o666 & ~umask
    assert os.listdir(tmp_path) == ["r.json"]


def test_failure_keeps_the_old_file_and_leaves_nothing(tmp_path: Path) -> None:
    (tmp_path / "r.json").write_text("old")
    with pytest.raises(RuntimeError), Output("--json", tmp_path / "r.json").staged() as path:
        path.write_text("half")
        raise RuntimeError
    assert (tmp_path / "r.json").read_text() == "old"
    assert os.listdir(tmp_path) == ["r.json"]


def test_link_stays_and_its_target_is_replaced(tmp_path: Path) -> None:
    (tmp_path / "real").write_text("old")
    (tmp_path / "link").symlink_to("real")
    Output("--json", tmp_path / "link").write(b"new")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "real").read_text() == "new"


def test_a_planted_link_is_not_followed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Regression: the names of unfinished files could be guessed, and links with such names were followed."""
    target = tmp_path / "r.json"
    with Output("--json", target).staged() as path:
        first = path.name
    with Output("--json", target).staged() as path:
        assert path.name != first
    (tmp_path / "victim").write_text("kept")
    monkeypatch.setattr("os.urandom", bytes)  # eight zero bytes
    (tmp_path / f".r.json.{'00' * 8}.tmp").symlink_to("victim")
    with pytest.raises(UserError, match="cannot write: File exists"):
        Output("--json", target).write(b"x")
    assert (tmp_path / "victim").read_text() == "kept"


def test_a_file_that_ftlab_names_replaces_a_link(tmp_path: Path) -> None:
    for there in ("victim", ".", "nowhere"):
        (tmp_path / "victim").write_text("kept")
        (tmp_path / "x.csv").symlink_to(there)
        output = inside(tmp_path, "x.csv")
        output.check()
        output.write(b"new")
        assert (tmp_path / "victim").read_text() == "kept"
        assert not (tmp_path / "x.csv").is_symlink()
        assert (tmp_path / "x.csv").read_bytes() == b"new"
        (tmp_path / "x.csv").unlink()
    assert os.listdir(tmp_path) == ["victim"]


def test_pipe_is_written_in_place(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    output = Output("--json", tmp_path / "pipe")
    output.check()
    got: list[bytes] = []
    reader = threading.Thread(target=lambda: got.append((tmp_path / "pipe").read_bytes()))
    reader.start()
    output.write(b"through")
    reader.join(10)
    assert got == [b"through"]
    assert (tmp_path / "pipe").is_fifo()


def test_full_device_is_an_error_that_names_option_and_path() -> None:
    output = Output("--json", "/dev/full")
    output.check()
    with pytest.raises(UserError, match=r"^--json /dev/full: cannot write: No space left on device$"):
        output.write(b"x")
    assert Path("/dev/full").is_char_device()


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("", "the name is empty"),
        (".", "is a directory; name a file"),
        ("-", "only --json prints to standard output; name a file"),
        ("a.csv/r.json", "cannot write: "),
        ("a.csv/none/r.json", "cannot write: "),
        ("/proc/ftlab.json", "cannot write: "),
        ("x" * 300 + ".json", "cannot write: File name too long"),
    ],
)
def test_check_refuses(trace: Path, monkeypatch: pytest.MonkeyPatch, name: str, why: str) -> None:
    monkeypatch.chdir(trace.parent)
    with pytest.raises(UserError) as raised:
        Output("--json", name).check()
    assert str(raised.value).startswith(f"--json {name}: {why}")
    assert os.listdir(trace.parent) == ["a.csv"]


def test_missing_directories_are_made(tmp_path: Path) -> None:
    output = Output("--json", tmp_path / "none" / "deeper" / "r.json")
    output.check()
    output.write(b"x")
    assert (tmp_path / "none" / "deeper" / "r.json").read_bytes() == b"x"


def test_suffix_is_checked(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"a\.gif: the name must end in \.png or \.svg"):
        Output("--plot", tmp_path / "a.gif").check((".png", ".svg"))
    Output("--plot", tmp_path / "a.PNG").check((".png", ".svg"))


def test_outputs_must_differ_from_each_other_and_from_the_input(trace: Path) -> None:
    one, two = Output("--json", trace.parent / "x"), Output("--requests", trace.parent / "." / "x")
    with pytest.raises(UserError, match=r"--requests .*: --json names the same file"):
        check_distinct([one, two])
    with pytest.raises(UserError, match="would replace the input"):
        check_distinct([Output("--json", trace)], [trace])
    check_distinct([Output("--json", "/dev/null"), Output("--requests", "/dev/null")])


def test_an_open_pipe_is_written_in_place() -> None:
    """Regression: /dev/fd/N is a link to a name that does not exist, and was refused."""
    reading, writing = os.pipe()
    output = Output("--json", f"/dev/fd/{writing}")
    output.check((".csv", ".parquet"))
    output.write(b"{}")
    os.close(writing)
    with os.fdopen(reading, "rb") as pipe:
        assert pipe.read() == b"{}"


def test_what_an_interrupt_removes_is_not_missed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Regression: a thread whose file an interrupt had removed said that results are not kept."""

    class Interrupted(Folder):
        def _write(self, path: Path, result: dict[str, Any]) -> None:
            with outputs.beside(path) as unfinished:
                outputs.discard_unfinished()
                unfinished.replace(path)

    monkeypatch.setattr(outputs, "ENDS", threading.Event())
    monkeypatch.setattr(cache, "ENDS", outputs.ENDS)
    notes: list[str] = []
    Interrupted(tmp_path, say=notes.append).put("key", {})
    assert (notes, list(tmp_path.iterdir())) == ([], [])
