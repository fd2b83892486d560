"""Runs the commands and the Python code that README.md and docs/ show, and compares their outputs."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from pages import DOCS, PAGES, ROOT, TRACE, blocks, files, indented, named

ELSEWHERE = {
    # These commands are tested elsewhere, and take too long for this test.
    r"reproduce ": "test_reproduce.py, test_claims.py",
    r"(serve|ctl|top) ": "test_recipes.py",
    r"crash \S+ --live": "test_recipes.py",
    r"crash my.toml": "test_crash.py",
    r"(sweep|tune) |run tuned/": "test_study_docs.py",
    r"trace (fit|split) |\w+ model.toml": "test_fitting.py, test_fleet.py",
    # These commands need a device of 128 GiB, or traces that the project may not ship.
    r"(run|compare) (\S*vios|msftl)": "test_reproduce.py",
    r"compare \S+ .*(recording.csv)": "test_recipes.py",
}
PROMPTS = ("live.md", "serve-a-device.md", "real-workload.md", "cut-the-power.md")
"""Pages whose console blocks need root or several terminals; test_recipes.py runs those."""


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """Makes a directory with the files that commands of the pages name."""
    for folder in ("traces", "workloads", "examples"):
        (tmp_path / folder).symlink_to(ROOT / folder)
    (tmp_path / "out").mkdir()
    return tmp_path


def laid(page: Path, place: Path) -> None:
    """Writes the files that a page shows into `place`."""
    for name, text in files(page).items():
        (place / name).write_text(text)


def ran(words: list[str], place: Path) -> subprocess.CompletedProcess[str]:
    assert words[0] == "ftlab"
    return subprocess.run(
        [sys.executable, "-m", "ftlab", *words[1:]],
        cwd=place,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


def consoles() -> list[Path]:
    return [page for page in PAGES if page.name not in PROMPTS and blocks(page, "console")]


@pytest.mark.parametrize("page", consoles(), ids=named)
def test_outputs_are_those_of_the_commands(page: Path, place: Path) -> None:
    laid(page, place)
    for block in blocks(page, "console"):
        for part in re.split(r"^(?=\$ )", block, flags=re.MULTILINE):
            if part:
                command, *lines = part.splitlines()
                compared(shlex.split(command.removeprefix("$ ")), lines, place)


def compared(words: list[str], lines: list[str], place: Path) -> None:
    """Checks that lines occur in the output in this order; `...` matches what the page leaves out."""
    done = ran(words, place)
    assert done.returncode == (2 if lines[0].startswith("error:") else 0), done.stderr
    printed = [line.rstrip() for line in (done.stdout or done.stderr).splitlines()]
    at, anywhere = 0, False
    for line in lines:
        if line == "...":
            anywhere = True
            continue
        assert line in printed[at:], f"{words}: no line {line!r} in\n" + "\n".join(printed)
        found = printed.index(line, at)
        assert anywhere or found == at, f"{words}: before {line!r} come {printed[at:found]}"
        at, anywhere = found + 1, False
    assert anywhere or at == len(printed), f"{words}: {printed[at:]} follow"


def unfenced(page: Path) -> list[list[str]]:
    """Returns the commands outside fences; `test_docs` runs those of README.md in the order of that page."""
    if page.name == "README.md":
        return []
    text = re.sub(r"^```.*?^```", "", page.read_text(), flags=re.MULTILINE | re.DOTALL)
    return [
        words
        for words in indented(text)
        if not any(re.match(each, " ".join(words[1:])) for each in ELSEWHERE)
    ]


@pytest.mark.parametrize("page", [page for page in PAGES if unfenced(page)], ids=named)
def test_commands_run(page: Path, place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Runs the commands in indented blocks, one after another, on the trace that comes with ftlab."""
    # A page exports it before.
    monkeypatch.setenv("DRIVE", "/dev/nvme0n1")
    laid(page, place)
    for words in unfenced(page):
        stand_ins = dict.fromkeys(("FILE", "TRACE", "a.csv", "mine.bin"), TRACE)
        # Only a few cuts are made, and a shell loop is run once. A trace that a command makes keeps its name.
        stand_ins |= {"10000": "20", "depths/rw-$depth-1.json": "depth.json"}
        generates = words[1:3] == ["trace", "generate"]
        done = ran(
            [word if generates else stand_ins.get(word, word.replace("$depth", "4")) for word in words], place
        )
        assert done.returncode == 0, f"{words}: {done.stderr}"


def test_the_times_of_how_time_is_kept_are_those_of_its_command(place: Path) -> None:
    page = DOCS / "how-time-is-kept.md"
    laid(page, place)
    (words,) = unfenced(page)
    assert ran(words, place).returncode == 0
    requests = (place / "out" / "few-requests.csv").read_text().splitlines()[1:]
    rows = re.findall(r"^\| (\d) \| (.*) us \|$", page.read_text(), re.MULTILINE)
    assert len(rows) == len(requests) == 4
    for (number, cells), line in zip(rows, requests, strict=True):
        name, *stamps = line.split(",")[:4]
        arrival, dispatch, complete = map(int, stamps)
        times = [arrival, dispatch, complete, dispatch - arrival, complete - dispatch, complete - arrival]
        assert (name, times) == (number, [round(1000 * float(cell)) for cell in cells.split("|")])


def test_there_are_commands_to_run() -> None:
    assert sum(len(unfenced(page)) for page in PAGES) > 40
    assert len(consoles()) >= 5


def python_blocks() -> list[tuple[Path, int, str]]:
    """Returns page, number and text of every block of Python; `test_study_docs` has the blocks on studies."""
    return [
        (page, number, code)
        for page in PAGES
        if page.name not in ("studies.md", "first-study.md")
        for number, code in enumerate(blocks(page, "python"))
    ]


@pytest.mark.parametrize(
    ("page", "code"),
    [pytest.param(page, code, id=f"{named(page)}-{at}") for page, at, code in python_blocks()],
)
def test_the_python_of_the_pages_runs(
    page: Path, code: str, place: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    laid(page, place)
    monkeypatch.chdir(place)
    exec(compile(code, named(page), "exec"), {})
    # The text right below a block is its output.
    text = page.read_text()
    after = text[text.index(code) + len(code) :]
    if shown := re.match(r"```\n\n```\n(.*?)```", after, re.DOTALL):
        assert capsys.readouterr().out == shown[1]


def test_there_is_python_to_run() -> None:
    pages = {named(page) for page, _, _ in python_blocks()}
    assert {"README.md", "docs/getting-started.md", "docs/python.md"} <= pages
    # Indented blocks hold commands; Python is in fences, which are run.
    for page in PAGES:
        assert re.findall(r"^    (?:import \w|from \w+ import|>>> )", page.read_text(), re.MULTILINE) == [], (
            page
        )
    assert (DOCS / "python.md") in PAGES
