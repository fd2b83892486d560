"""The display of progress on standard error."""

from __future__ import annotations

import io
import re

import pytest

from ftlab.progress import Reporter, fitting


class Terminal(io.StringIO):
    """A stream that claims to be a terminal."""

    def isatty(self) -> bool:
        return True


def test_quiet_without_a_terminal() -> None:
    stream = io.StringIO()
    with Reporter(stream=stream) as reporter:
        assert reporter.callback("a")(1000) is True
        reporter.finish("a")
    assert stream.getvalue() == ""


def test_a_line_now_and_then_without_a_terminal() -> None:
    stream = io.StringIO()
    with Reporter(tasks=2, stream=stream, every_s=0) as reporter:
        a, b = reporter.callback("a"), reporter.callback("b")
        a(1000)
        b(500)
        a(2000)
        reporter.finish("a")
    lines = stream.getvalue().splitlines()
    assert [line.split(" requests")[0] for line in lines] == [
        "ftlab: 0 of 2 done, 1,000",
        "ftlab: 0 of 2 done, 1,500",
        "ftlab: 0 of 2 done, 2,500",
        "ftlab: 1 of 2 done, 2,500",
    ]
    assert "\x1b" not in stream.getvalue()


def test_preconditioning_is_said_until_the_first_request() -> None:
    stream = io.StringIO()
    with Reporter(stream=stream, every_s=0) as reporter:
        before, advance = reporter.preconditioning("a"), reporter.callback("a")
        assert before(65_536, 0, None) is True
        assert before(1_000_000, 3, 2.3456) is True
        advance(1000)
        reporter.stop()
        assert before(2_000_000, 4, 2.3) is False
    lines = stream.getvalue().splitlines()
    assert lines[:2] == [
        "ftlab: preconditioning: 65,536 pages written",
        "ftlab: preconditioning: 1,000,000 pages written, round 3, write amplification 2.346",
    ]
    assert lines[2].startswith("ftlab: 1,000 requests, ")


def test_several_preconditioning_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ftlab.progress.LIVE_AFTER_S", 0.0)
    monkeypatch.setenv("TERM", "xterm-256color")
    stream = Terminal()
    with Reporter(tasks=3, stream=stream) as reporter:
        reporter.preconditioning("noop")(1000, 0, None)
        reporter.preconditioning("map+")(1000, 0, None)
    assert "2 preconditioning" in stream.getvalue()
    assert "noop, map+" in stream.getvalue()


def test_stop_reaches_the_callbacks() -> None:
    reporter = Reporter(quiet=True)
    advance = reporter.callback("a")
    assert advance(1) is True
    reporter.stop()
    assert advance(2) is False


def test_terminal_shows_a_display_and_takes_it_away(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ftlab.progress.LIVE_AFTER_S", 0.0)
    monkeypatch.setenv("TERM", "xterm-256color")
    stream = Terminal()
    with Reporter(tasks=2, stream=stream) as reporter:
        reporter.callback("map+")(12_345)
        reporter.finish("map+")
    assert "12,345 requests" in stream.getvalue()
    assert "\x1b[2K" in stream.getvalue()


def test_quiet_reporter_says_nothing_on_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ftlab.progress.LIVE_AFTER_S", 0.0)
    stream = Terminal()
    with Reporter(quiet=True, stream=stream, every_s=0) as reporter:
        reporter.callback("a")(1)
        reporter.finish("a")
    assert stream.getvalue() == ""


@pytest.mark.parametrize(
    ("room", "shown"),
    [
        (80, "about 3 s left, 1,234 requests, 99 a second  noop, amphibian, map+"),
        (60, "about 3 s left, 1,234 requests, 99 a second  noop, amphibia\u2026"),
        (50, "about 3 s left, 1,234 requests, 99 a second"),
        (35, "about 3 s left, 1,234 requests"),
        (20, "about 3 s left"),
        (3, "about 3 s left"),
    ],
)
def test_names_go_first_and_the_time_left_stays(room: int, shown: str) -> None:
    assert fitting(room, "about 3 s left", "1,234 requests, 99 a second", "noop, amphibian, map+") == shown


def test_a_narrow_terminal_keeps_bar_count_and_time_left(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ftlab.progress.LIVE_AFTER_S", 0.0)
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.setenv("COLUMNS", "80")
    stream = Terminal()
    name = "a-variant-of-a-very-long-name, with-another-key, and-another-one"
    with Reporter(tasks=200, stream=stream) as reporter:
        for number in range(100):
            reporter.callback(f"{name}-{number}")(10**9)
            reporter.finish(f"{name}-{number}")
        reporter.callback(name)(1)
    last = re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", stream.getvalue()).rstrip().splitlines()[-1].split("\r")[-1]
    assert len(last) <= 80
    assert "100/200" in last
    assert "about 0 s left" in last
    assert "\u2501" in last


def test_a_single_task_of_known_length_has_a_bar(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ftlab.progress.LIVE_AFTER_S", 0.0)
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.setenv("COLUMNS", "80")
    stream = Terminal()
    with Reporter(unit="power cuts", whole=300, stream=stream) as reporter:
        reporter.callback("crash")(120)
    shown = re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", stream.getvalue())
    assert "120/300" in shown
    assert "\u2501" in shown
    lines = io.StringIO()
    with Reporter(unit="power cuts", whole=300, stream=lines, every_s=0) as reporter:
        reporter.callback("crash")(120)
    assert lines.getvalue().startswith("ftlab: 120 of 300 power cuts, ")


def test_a_bar_appears_once_the_number_of_runs_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ftlab.progress.LIVE_AFTER_S", 0.0)
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.setenv("COLUMNS", "80")
    stream = Terminal()
    with Reporter(runs=True, stream=stream) as reporter:
        reporter.finish("default")
        assert "\u2501" not in stream.getvalue()
        reporter.expect({f"trial {number}": 1.0 for number in range(1, 121)})
        reporter.finish("trial 1")
    shown = re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", stream.getvalue())
    # What was done before is not counted: a search of 30 trials ended at 31/30.
    assert " 1/120" in shown and " 2/120" not in shown
