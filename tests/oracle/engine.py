"""Runs ftlab on a case and returns rows and counters in the oracle's terms."""

from __future__ import annotations

import csv
import importlib.util
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .mapplus import Record

if TYPE_CHECKING:
    import ftlab

COUNTERS = [
    "hits",
    "misses",
    "prefetches",
    "translation_reads",
    "translation_programs",
    "prioritized",
    "batches",
    "expired",
    "host_reads",
    "host_programs",
]

Settings = Mapping[str, str | int | bool]


@dataclass
class Row:
    """One line of the per-request file."""

    id: int
    arrival: int
    dispatch: int
    complete: int
    op: str
    mapping_misses: int
    prioritized: bool
    expired: bool
    batch: int | None


class EngineError(Exception):
    """Raised if ftlab refused a case or failed on it."""


def available() -> bool:
    """Whether the package ``ftlab``, with its extension, is installed."""
    try:
        return importlib.util.find_spec("ftlab._core") is not None
    except ModuleNotFoundError:
        return False


SKIP_REASON = "the package ftlab is not installed here (pip install .), so there is no engine to test"


def shared_traces() -> Path:
    """Returns the folder of the recorded traces that the project may not ship."""
    beside = Path(__file__).resolve().parents[3] / "shared" / "traces"
    return Path(os.environ.get("FTLAB_TRACES", beside))


def shared_trace(name: str) -> Path:
    """Returns the path of a trace that the project may not ship; skips the test if the trace is absent."""
    import pytest  # not needed to run diff.py

    path = shared_traces() / name
    if not path.is_file():
        pytest.skip(f"no {name} in {path.parent} (FTLAB_TRACES names another folder)")
    return path


def toml(settings: Settings) -> str:
    """Writes a configuration file of dotted keys."""
    lines = [f"{key} = {json.dumps(value)}" for key, value in settings.items()]
    return "\n".join(lines) + "\n"


def trace_csv(trace: Sequence[Record]) -> str:
    """Writes a trace in ftlab's own format."""
    lines = ["time_ns,op,offset,size"]
    lines += [f"{at},{op},{offset},{size}" for at, op, offset, size in trace]
    return "\n".join(lines) + "\n"


def flag(text: str) -> bool:
    """Parses a boolean of the per-request file; empty means no."""
    known = {"": False, "0": False, "false": False, "1": True, "true": True}
    return known[text.strip().lower()]


def read_rows(path: Path) -> list[Row]:
    """Reads the per-request file; returns its rows in order of id."""
    with path.open(newline="") as file:
        rows = [
            Row(
                id=int(line["id"]),
                arrival=int(line["arrival_ns"]),
                dispatch=int(line["dispatch_ns"]),
                complete=int(line["complete_ns"]),
                op=line["op"],
                mapping_misses=int(line["mapping_misses"] or 0),
                prioritized=flag(line["prioritized"]),
                expired=flag(line["expired"]),
                batch=int(line["batch"]) if line["batch"] else None,
            )
            for line in csv.DictReader(file)
        ]
    return sorted(rows, key=lambda row: row.id)


def counters_of(result: Mapping[str, Any]) -> dict[str, int]:
    """Returns the counters of a result under the oracle's names."""
    mapping, scheduler, flash = result["mapping"], result["scheduler"], result["flash"]
    return {
        "hits": mapping["hits"],
        "misses": mapping["misses"],
        "prefetches": mapping["prefetches"],
        "translation_reads": mapping["translation_reads"],
        "translation_programs": mapping["translation_programs"],
        "prioritized": scheduler["prioritized"],
        "batches": scheduler["batches"],
        "expired": scheduler["expired"],
        "host_reads": flash["reads"].get("host", 0),
        "host_programs": flash["programs"].get("host", 0),
        "map_reads": flash["reads"].get("map", 0),
        "map_programs": flash["programs"].get("map", 0),
        "erases": sum(flash["erases"].values()),
    }


def command_line(
    settings: Settings, trace: Sequence[Record], folder: Path
) -> tuple[list[Row], dict[str, int]]:
    """Runs ``ftlab run`` on settings (dotted keys) and a trace in bytes; returns rows and counters."""
    (folder / "config.toml").write_text(toml(settings))
    (folder / "t.csv").write_text(trace_csv(trace))
    command = [sys.executable, "-m", "ftlab", "run", "config.toml", "--trace", "t.csv"]
    command += ["--requests", "out.csv", "--json", "out.json"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=600, check=False)
    if done.returncode != 0:
        raise EngineError(f"ftlab run: exit status {done.returncode}\n{done.stderr}")
    return read_rows(folder / "out.csv"), counters_of(json.loads((folder / "out.json").read_text()))


def run(settings: Settings, trace: Sequence[Record], check: bool = False) -> tuple[list[Row], dict[str, int]]:
    """Does the same as `command_line` in this process, through ``import ftlab``, which is much faster."""
    result = result_of(settings, trace, check)
    return result_rows(result), counters_of(result.to_dict())


def result_of(settings: Settings, trace: Sequence[Record], check: bool = False) -> ftlab.Result:
    """Runs settings and a trace in this process; returns the result."""
    import ftlab

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "t.csv"
        path.write_text(trace_csv(trace))
        try:
            return ftlab.run(dict(settings), trace=str(path), check=check)
        except (ftlab.UserError, ftlab.InternalError) as error:
            raise EngineError(f"{type(error).__name__}: {error}") from error


def result_rows(result: ftlab.Result) -> list[Row]:
    """Returns the collected requests of a result, in order of id."""
    fields = ["id", "arrival_ns", "dispatch_ns", "complete_ns", "op", "mapping_misses"]
    columns = [result.column(name).tolist() for name in [*fields, "prioritized", "expired", "batch"]]
    rows = [Row(*values) for values in zip(*columns, strict=True)]
    for row in rows:
        row.batch = row.batch or None  # 0 in the column: none
    return sorted(rows, key=lambda row: row.id)
