"""Checks that README.md and docs/ describe what the code does."""

from __future__ import annotations

import importlib.util
import re
import shlex
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import ftlab

ROOT = Path(__file__).resolve().parents[2]
README = (ROOT / "README.md").read_text()
RESULTS = (ROOT / "docs" / "results.md").read_text()
FIELDS = (ROOT / "docs" / "fields.md").read_text()
FORMATS = (ROOT / "docs" / "trace-formats.md").read_text()


def layouts() -> list[str]:
    return [choice["name"] for choice in ftlab.components()["workload.format"] if choice["name"] != "auto"]


def fields(section: Any) -> Iterator[str]:
    """Yields names of a result's fields; the configuration's keys are documented elsewhere."""
    for name, value in section.items():
        yield name
        if isinstance(value, dict) and name not in ("config", "percentile_ns", "dropped"):
            yield from fields(value)


def test_the_configuration_reference_is_current() -> None:
    text = (ROOT / "docs" / "configuration.md").read_text()
    assert text == ftlab.reference(), "run `make docs`"


def test_the_collected_readings_are_current() -> None:
    done = subprocess.run(
        [sys.executable, ROOT / "scripts" / "readings.py"], capture_output=True, text=True, check=True
    )
    assert done.stdout == (ROOT / "DEVIATIONS.md").read_text(), "run `make docs`"


def test_the_keys_that_answer_questions_exist() -> None:
    text = (ROOT / "docs" / "which-keys.md").read_text()
    rows = re.findall(r"^\| (?!question|---)[^|]+ \| ([^|]+) \|", text, re.MULTILINE)
    named = re.findall(r"`([^`]+)`", " ".join(rows))
    heading, keys = "", {"preset", "seed"}
    for line in ftlab.reference().splitlines():
        heading = line[5:-2] if line.startswith("## `[") else heading
        keys |= {f"{heading}.{name}" for name in re.findall(r"^\| `([^`]+)` \|", line)}
    assert len(rows) > 30
    assert sorted(set(named) - keys) == []
    # No table of the file is without a question.
    tables = {key.rpartition(".")[0] for key in keys} - {"", "tenant"}
    assert sorted(tables - {key.rpartition(".")[0] for key in named}) == []


def test_every_field_of_a_result_is_documented(trace: Path) -> None:
    asked = {f"results.{key}": "true" for key in ftlab.schema()["properties"]["results"]["properties"]}
    assert len(asked) == 4
    result = ftlab.run("map-plus", trace=str(trace), set=asked).to_dict()
    assert {"series", "erase_map", "miss_curve"} < set(result)
    named = set(re.findall(r"[\w-]+", " ".join(re.findall(r"`([^`]+)`", RESULTS + FIELDS))))
    assert sorted(set(fields(result)) - named) == []


def test_every_column_of_the_request_file_is_documented(trace: Path) -> None:
    columns = ftlab.run("map-plus", trace=str(trace)).requests.columns
    assert [column for column in columns if f"`{column}`" not in RESULTS] == []


def test_every_layout_has_a_row_and_no_other() -> None:
    rows = re.findall(r"^\| `([a-z0-9-]+)` \|", FORMATS, re.MULTILINE)
    assert sorted(rows) == sorted(layouts())


def test_every_key_and_choice_the_prose_names_exists() -> None:
    keys = set(
        re.findall(
            r"(?<![\w-])(?:workload|host|device|ftl|flash|results)\.(?!md\b)[a-z_]+",
            README + RESULTS + FORMATS,
        )
    )
    tables = ftlab.schema()["properties"]
    known = {f"{table}.{key}" for table, body in tables.items() for key in body.get("properties", ())}
    assert sorted(keys - known) == []
    choices = {key: {part["name"] for part in parts} for key, parts in ftlab.components().items()}
    for line in README.splitlines():
        if row := re.match(r"\| `((?:host|ftl)\.\w+)` \| (.*) \|$", line):
            assert set(re.findall(r"`([^`]+)`", row[2])) == choices[row[1]], row[1]


def test_the_counts_of_the_readme_are_those_of_this_build() -> None:
    kinds = [part["name"] for part in ftlab.components()["ftl.kind"]]
    caches = len(set(kinds) - {"page", "bast", "fast"})
    assert f"{len(layouts())} trace layouts" in README
    assert f"page map, {caches} mapping caches, 2 hybrids" in README
    assert f"{len(ftlab.components()['host.scheduler'])}, with the page cache" in README


def test_the_picture_and_its_words_are_of_todays_runs() -> None:
    specification = importlib.util.spec_from_file_location("picture", ROOT / "scripts" / "picture.py")
    assert specification and specification.loader
    picture = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(picture)
    assert picture.drawn() == (ROOT / "docs" / "images" / "stack.svg").read_text(), "run `make picture`"
    base, page, second, idle = (
        picture.measured(keys)
        for keys in ({}, {"ftl.kind": "page"}, picture.chips(2), {"ftl.gc_background": True})
    )
    for text in (README, (ROOT / "docs" / "index.md").read_text()):
        assert f"{base:.1f} ms" in text and f"{page:.1f} ms" in text
    assert second < page
    assert (base - idle) / (base - page) > 0.5


def test_versions_asked_for_are_those_of_the_manifests() -> None:
    rust = tomllib.loads((ROOT / "Cargo.toml").read_text())["workspace"]["package"]["rust-version"]
    python = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["requires-python"]
    assert f"Rust {rust} or later" in README
    assert f"Python {python.removeprefix('>=')} or later" in README


def test_packages_are_installed_by_hash() -> None:
    """Regression: the locks had only versions, and one package that another needs was in none of them."""
    locks = sorted(path.name for path in ROOT.glob("requirements*.lock"))
    makefile = (ROOT / "Makefile").read_text()
    installed = re.findall(r"pip install --require-hashes --requirement (\S+)", makefile)
    made = re.findall(r"^\t\$\(call locked,([^,]+),", makefile, re.MULTILINE)
    assert sorted(installed) == sorted(made) == locks
    for name in locks:
        text = re.sub(r"^#.*\n", "", (ROOT / name).read_text(), flags=re.MULTILINE)
        found = re.split(r"\n(?=\S)", text.strip())
        assert len(found) > 10
        hashed = r"[\w.-]+==\S+( ; [^\\\n]+)?( \\\n +--hash=sha256:[0-9a-f]{64})+"
        assert [each for each in found if not re.fullmatch(hashed, each)] == []


def commands() -> list[list[str]]:
    """Returns the README's commands, which are run on the trace that comes with ftlab."""
    text = README.replace("\\\n", " ")
    lines = re.findall(r"^    (?:\.venv/bin/)?(ftlab .*)$", text, re.MULTILINE)
    return [shlex.split(line) for line in lines]


def test_the_commands_of_the_readme_run(tmp_path: Path) -> None:
    for folder in ("traces", "crates", "examples"):
        (tmp_path / folder).symlink_to(ROOT / folder)
    (tmp_path / "out").mkdir()
    ran = printed = 0
    for words in commands():
        words = ["traces/phone-mix.csv.gz" if word == "FILE" else word for word in words[1:]]  # noqa: PLW2901
        if words[0] == "reproduce":
            # Reproducing everything takes minutes; other tests run more of it.
            assert words == ["reproduce", "all", "--quick"]
            words = ["reproduce", "map-plus", "table2", "--quick", "--cache", "cache"]  # noqa: PLW2901
        target = tmp_path / words.pop() if ">" in words else None
        if target:
            words.remove(">")
        done = subprocess.run(
            [sys.executable, "-m", "ftlab", *words],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        assert done.returncode == 0, f"{words}: {done.stderr}"
        if target:
            target.write_text(done.stdout)
        if "ftl.kind=dftl,page" in words:
            # Regression: the README's first figures needed four settings that it did not show.
            means = re.search(r"^  all, ms +([\d.]+) .* ([\d.]+)\*", done.stdout, re.MULTILINE)
            assert means and [f"{float(mean):.1f} ms" in README for mean in means.groups()] == [True, True]
            printed += 1
        ran += 1
    assert ran >= 6 and printed == 1
    assert (tmp_path / "out" / "deadline.png").stat().st_size > 0


def test_the_python_of_the_readme_runs(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    code = re.search(r"```python\n(.*?)```", README, re.DOTALL)
    assert code is not None
    monkeypatch.chdir(ROOT)
    names: dict[str, Any] = {}
    exec(code[1], names)
    assert names["result"]["trace"]["requests"] == 59_950
    assert "hit ratio" in capsys.readouterr().out
