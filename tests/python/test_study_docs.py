"""Runs the studies, searches and queries that the pages on studies show, and the examples."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from front import Cli
from ftlab.studies import sweep
from ftlab.studies.tuning import load_tuning

ROOT = Path(__file__).resolve().parents[2]


def blocks(page: str, language: str) -> list[str]:
    text = (ROOT / "docs" / f"{page}.md").read_text()
    return re.findall(rf"```{language}\n(.*?)```", text, re.DOTALL)


@pytest.fixture
def swept(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> Cli:
    """Runs the first study of the page as the page says, but with fewer requests."""
    (cli.directory / "study.toml").write_text(blocks("studies", "toml")[0].replace("100000", "300"))
    cli.ok("sweep", "study.toml", "--out", "results", "--dry-run")
    cli.ok("sweep", "study.toml", "--out", "results")
    monkeypatch.chdir(cli.directory)
    return cli


def test_the_study_and_its_queries_run(swept: Cli) -> None:
    frame = pl.read_parquet(swept.directory / "results" / "runs.parquet")
    assert frame.height == 3 * 4 * 10
    means = {row[:2]: row[2] for row in grouped(frame).iter_rows()}
    ran = []
    for code in blocks("studies", "python"):
        package = re.findall(r"import (\w+) as", code)[0]
        try:
            found = evaluated(code)
        except ModuleNotFoundError:
            continue
        ran.append(package)
        if package == "polars":
            assert {row[:2]: row[2] for row in found.iter_rows()} == pytest.approx(means)
        else:
            assert found.loc["map+", "8KiB"] == pytest.approx(means["map+", "8KiB"])
    assert "polars" in ran


def grouped(frame: pl.DataFrame) -> pl.DataFrame:
    return frame.group_by("scheduler", "cache").agg(pl.mean("p99_ms"))


def evaluated(code: str) -> Any:
    """Returns the value of the last line of a piece of code."""
    *before, last = code.strip().split("\n")
    names: dict[str, Any] = {}
    exec("\n".join(before), names)
    return eval(last, names)


def test_the_query_in_sql_runs(swept: Cli) -> None:
    duckdb = pytest.importorskip("duckdb")
    (query,) = blocks("studies", "sql")
    rows = duckdb.sql(query).fetchall()
    frame = pl.read_parquet(swept.directory / "results" / "runs.parquet")
    expected = {row[:2]: row[2] for row in grouped(frame).iter_rows()}
    assert {row[:2]: row[2] for row in rows} == pytest.approx(expected)


def test_the_python_of_the_first_study_runs(
    cli: Cli, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The code on the page runs with the page's study; `test_snippets` compares what it prints."""
    (cli.directory / "workloads").symlink_to(ROOT / "workloads")
    (cli.directory / "study.toml").write_text(blocks("first-study", "toml")[0].replace("20000", "300"))
    cli.ok("sweep", "study.toml", "--out", "results")
    monkeypatch.chdir(cli.directory)
    (code,) = blocks("first-study", "python")
    exec(code, {})
    assert "map+" in capsys.readouterr().out


def test_the_fleet_of_the_page_runs(cli: Cli) -> None:
    rows = [
        f"{volume},W,{4096 * at},4096,{1_577_808_000_000_000 + 1000 * at}"
        for at in range(20)
        for volume in (1, 2)
    ]
    (cli.directory / "alibaba.csv").write_text("\n".join(rows) + "\n")
    cli.ok("trace", "split", "alibaba.csv", "--by", "volume", "--out", "volumes")
    (cli.directory / "fleet.toml").write_text(blocks("fleets", "toml")[0])
    cli.ok("sweep", "fleet.toml", "--out", "fleet")
    assert len((cli.directory / "fleet" / "worst.csv").read_text().splitlines()) == 3
    assert (cli.directory / "fleet" / "fleets.json").exists()


def test_the_search_of_the_page_runs(cli: Cli) -> None:
    text = blocks("tuning", "toml")[0].replace("runs = 120", "runs = 2")
    (cli.directory / "tune.toml").write_text(text)
    (cli.directory / "traces").symlink_to(ROOT / "traces")
    cli.ok("tune", "tune.toml", "--out", "tuned")
    cli.ok("run", "tuned/best.toml")


def test_the_examples_are_studies(cli: Cli) -> None:
    planned = sweep.plan(ROOT / "examples" / "studies" / "schedulers.toml")
    assert len(planned.runs) == 100 and not planned.notes
    path = ROOT / "examples" / "studies" / "map-plus.tune.toml"
    tuning = load_tuning(path)
    assert {each.name: len(each.choices) for each in tuning.parameters} == {
        "scheduler": 7,
        "cache": 0,
        "deadline": 0,
        "flush": 4,
    }
    (cli.directory / "tune.toml").write_text(
        path.read_text().replace("runs = 120", "runs = 1").replace("../../traces", str(ROOT / "traces"))
    )
    cli.ok("tune", "tune.toml", "--out", "tuned")
    # The default is the paper's own choice, whose figure is on the page.
    page = (ROOT / "docs" / "tuning.md").read_text()
    assert "the paper's own choice | MAP+ | 16 KiB | 10 ms | eviction | 9.9 ms" in page
    data = (cli.directory / "tuned" / "index.html").read_text()
    (mean,) = re.findall(r'"number":0,"parameters":\{[^}]*\},"values":\[([0-9.]+),16384.0\]', data)
    assert round(float(mean) / 1e6, 1) == 9.9
