"""A campaign: mutated inputs for every reader in Python (declarations, targets, expressions, cache entries,
measured files); crates/trace/tests/mutated.rs has the readers in Rust.

No reader raises anything but a user's error, and each takes bounded time and memory. The number of a case
is its seed; inputs that once failed are kept in tests/corpus, in a folder for each reader. `make fuzz` has
the long form.
"""

from __future__ import annotations

import gzip
import json
import random
import resource
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import campaign
import test_measured
import test_measured_fio
from ftlab._core import UserError
from ftlab.calibration import measured
from ftlab.fitting.targets import read_targets
from ftlab.reproduce import claims, papers
from ftlab.studies import cache, cells
from ftlab.studies.declaration import load_traces
from ftlab.studies.expression import Expression
from ftlab.studies.series import Series
from test_ends import TARGETS
from test_reproduce import FIGURE, PAPER, PUBLISHED, RECORDED, TABLE, TRACES

MOST_SECONDS = 20
MOST_MEMORY = 1 << 30
CORPUS = Path(__file__).resolve().parents[1] / "corpus"

SERIES = Series(
    ("x", "y"), {(a, b): float(i) for i, (a, b) in enumerate([("p", "q"), ("p", "r"), ("s", "q")])}
)
NAMES: dict[str, Any] = {
    "a": lambda **where: SERIES.select(where),
    "latency": {"all": {"mean_ns": 5, "percentile_ns": {"50.000000": None}, "max_ns": 9}},
    "parts": [1, 2.5, None],
}
EXPRESSIONS = [
    "mean(change(a(), a(x='p')))",
    "every(a(x=['p', 's']) >= 2) and not count(a()) > 3",
    "latency.all.mean_ns / 1000",
    "parts[1] * -2 + greatest(parts)",
    "rank_correlation(mean_over(a(), 'x'), least_over(a(), 'x'))",
    "where_greatest(a() / 2) == 'p, q'",
    "distribution(latency['all'])",
    "total(steps(a(x='p'))) | exponent(a(), a(), 'x')",
    "geometric(a(x='p') / a(x='q')) <= 1",
]
MEASURED = [test_measured.TABLE.encode(), json.dumps(test_measured_fio.FIO, indent=1).encode()]
DECLARATIONS = {
    "paper": PAPER,
    "fig1": FIGURE,
    "table1": TABLE,
    "fig1-recorded": RECORDED,
    "published": PUBLISHED,
}
PIECES = [
    *(
        b"18446744073709551616",
        b"-1",
        b"1e308",
        b"nan",
        b"inf",
        b"0x",
        b"\0",
        b"\n",
        b'"',
        b"'''",
        b"[",
        b"]",
        b"[[",
    ),
    *(
        b"{",
        b"}",
        b"=",
        b".",
        b",",
        b"#",
        b"\xff",
        b"\xef\xbb\xbf",
        "é".encode(),
        b"**",
        b"**{}",
        b"<<",
        b" * ",
        b"(",
    ),
    *(
        b")",
        b"-" * 200,
        b"(" * 200,
        b"[" * 200,
        b"a.",
        b"lambda: 0",
        b" if 1 else ",
        b" for x in ",
        b"true",
        b"{ }",
    ),
    *(
        b"[1, 2]",
        b"1.5",
        b'"text"',
        b"[axis]\n",
        b"[value.x]\n",
        b"axis",
        b"value",
        b"every(",
        b"mean(",
        b"a()",
    ),
]


def mutated(draw: random.Random, seed: bytes, other: bytes = b"") -> bytes:
    """Returns a valid input with some of it changed."""
    text = bytearray(seed)
    for _ in range(draw.randint(1, 5)):
        at = draw.randint(0, len(text))
        end = min(at + draw.randrange(40), len(text))
        match draw.randrange(9):
            case 0 if at < len(text):
                text[at] = draw.randrange(256)
            case 1:
                text[at:at] = draw.choice(PIECES)
            case 2:
                text[at:end] = draw.choice(PIECES)
            case 3:
                del text[at:end]
            case 4 if draw.random() < 0.3:
                del text[at:]
            case 5:
                text[at:at] = text[at:end] * (1 << draw.randrange(12))
            case 6:
                text[at:end] = other[draw.randint(0, len(other)) :]
            case _:
                # Replaces the value on a line with another value.
                lines = bytes(text).split(b"\n")
                chosen = draw.randrange(len(lines))
                name, equals, _ = lines[chosen].partition(b"=")
                if equals:
                    lines[chosen] = name + b"= " + draw.choice(PIECES)
                    text = bytearray(b"\n".join(lines))
        del text[2 << 20 :]
    return bytes(text)


def declaration(draw: random.Random) -> bytes:
    name, other = draw.choice(list(DECLARATIONS)), draw.choice(list(DECLARATIONS))
    return name.encode() + b"\n" + mutated(draw, DECLARATIONS[name].encode(), DECLARATIONS[other].encode())


def read_declaration(data: bytes, folder: Path) -> None:
    """Reads a paper with one of its files replaced, and judges its claims on invented cells."""
    changed, _, text = data.partition(b"\n")
    paper_folder = folder / "papers" / "tiny"
    paper_folder.mkdir(parents=True, exist_ok=True)
    (folder / "papers" / "traces.toml").write_text(TRACES)
    for name, good in DECLARATIONS.items():
        (paper_folder / f"{name}.toml").write_bytes(text if name.encode() == changed else good.encode())
    load_traces(folder)
    paper = papers.load_paper(folder, "tiny")
    studies = {}
    for figure in paper.figures:
        if figure.what != "runs" or len(figure.axes) > 3:
            continue
        axes = tuple(axis.name for axis in figure.axes)
        labels = [(axis.labels or ["x"])[0] for axis in figure.axes]
        rows = (cells.Row(tuple(labels), {value.name: 1.5 for value in figure.values}),)
        studies[figure.id] = cells.Study(figure, axes, rows, (), ())
        for panel in figure.panels:
            cells.bars(studies[figure.id], panel)
        for value in figure.values:
            value.get.number(NAMES)
    claims.judge(paper, studies)


def read_expression(data: bytes, folder: Path) -> None:
    parsed = Expression(data.decode(errors="surrogateescape"), "claim x")
    parsed.used()
    parsed.counted(NAMES)
    parsed.number(NAMES)


def read_cache(data: bytes, folder: Path) -> None:
    (folder / "ab").mkdir(exist_ok=True)
    (folder / "ab" / "abc.json.gz").write_bytes(data)
    found = cache.Cache(folder).get("abc")
    assert found is None or found == {"a": 1}


def cached(draw: random.Random) -> bytes:
    good = cache._packed({"a": 1})
    return mutated(draw, gzip.compress(good)) if draw.random() < 0.5 else gzip.compress(mutated(draw, good))


def read_target(data: bytes, folder: Path) -> None:
    (folder / "t.toml").write_bytes(data)
    read_targets(str(folder / "t.toml"))


def read_measured(data: bytes, folder: Path) -> None:
    """Reads a measured file; its first byte tells the kind."""
    path = folder / ("measured.csv" if data[:1] == b"d" else "measured.json")
    path.write_bytes(data)
    notes: list[str] = []
    measured.read([path], notes.append)
    assert all(len(note) < 2000 for note in notes)


READERS: dict[str, tuple[Callable[[random.Random], bytes], Callable[[bytes, Path], None]]] = {
    "declaration": (declaration, read_declaration),
    "expression": (
        lambda draw: mutated(draw, *(t.encode() for t in draw.sample(EXPRESSIONS, 2))),
        read_expression,
    ),
    "targets": (lambda draw: mutated(draw, TARGETS.encode(), FIGURE.encode()), read_target),
    "cache": (cached, read_cache),
    "measured": (
        lambda draw: mutated(draw, draw.choice(MEASURED), MEASURED[0]),
        read_measured,
    ),
}


@pytest.fixture
def bounded() -> Iterator[None]:
    """Makes a case fail if it takes too much time or memory."""

    def late(*_: object) -> None:
        raise TimeoutError(f"more than {MOST_SECONDS} s")

    before = signal.signal(signal.SIGALRM, late)
    limits = resource.getrlimit(resource.RLIMIT_AS)
    used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + MOST_MEMORY, limits[1]))
    yield
    resource.setrlimit(resource.RLIMIT_AS, limits)
    signal.signal(signal.SIGALRM, before)


def judge(reader: str, data: bytes, folder: Path) -> None:
    signal.alarm(MOST_SECONDS)
    try:
        READERS[reader][1](data, folder)
    except UserError as error:
        assert len(str(error)) < 20_000
    finally:
        signal.alarm(0)


def test_mutated_inputs(bounded: None, tmp_path: Path) -> None:
    faults = []
    for number in campaign.cases("mutated-python", range(500)):
        draw = random.Random(number)
        reader = draw.choice(list(READERS))
        data = READERS[reader][0](draw)
        try:
            judge(reader, data, tmp_path)
        except BaseException as error:
            if isinstance(error, KeyboardInterrupt):
                raise
            campaign.KEPT.mkdir(parents=True, exist_ok=True)
            (campaign.KEPT / f"{reader}-{number}").write_bytes(data)
            faults.append(f"case {number}, reader {reader}: {type(error).__name__}: {str(error)[:200]}")
    assert not faults, "\n".join(faults)


def test_the_corpus(bounded: None, tmp_path: Path) -> None:
    """Reads the inputs on which a reader once failed."""
    for reader in READERS:
        for path in sorted((CORPUS / reader).glob("*")):
            judge(reader, path.read_bytes(), tmp_path)
