"""Runs ftlab on a case and hands back rows and counters in the oracle's terms."""

import csv
import importlib.util
import json
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Optional

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
    batch: Optional[int]


class EngineError(Exception):
    """ftlab refused or broke down on a case."""


def available():
    """Whether the package ``ftlab`` is installed."""
    return importlib.util.find_spec("ftlab") is not None


def toml(settings):
    """A configuration file of dotted keys."""
    lines = []
    for key, value in settings.items():
        if isinstance(value, bool):
            text = "true" if value else "false"
        elif isinstance(value, (int, float)):
            text = str(value)
        else:
            text = json.dumps(value)
        lines.append(f"{key} = {text}")
    return "\n".join(lines) + "\n"


def trace_csv(trace):
    """ftlab's own trace format."""
    lines = ["time_ns,op,offset,size"]
    lines += [f"{at},{op},{offset},{size}" for at, op, offset, size in trace]
    return "\n".join(lines) + "\n"


def flag(text):
    """A yes or no of the per-request file; empty is no."""
    known = {"": False, "0": False, "false": False, "1": True, "true": True}
    return known[text.strip().lower()]


def read_rows(path):
    """The per-request file, in order of id."""
    rows = []
    with open(path, newline="") as file:
        for line in csv.DictReader(file):
            rows.append(
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
            )
    return sorted(rows, key=lambda row: row.id)


def read_counters(result):
    """The counters of a result's JSON under the oracle's names."""
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
    }


def run_files(config_text, trace_text, folder, options=()):
    """Runs the command line in ``folder``; rows and the whole result."""
    folder = Path(folder)
    (folder / "config.toml").write_text(config_text)
    (folder / "t.csv").write_text(trace_text)
    command = [sys.executable, "-m", "ftlab", "run", "config.toml", "--trace", "t.csv"]
    command += ["--requests", "out.csv", "--json", "out.json", *options]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=600)
    if done.returncode != 0:
        raise EngineError(f"ftlab run: exit status {done.returncode}\n{done.stderr}")
    return read_rows(folder / "out.csv"), json.loads((folder / "out.json").read_text())


def run(settings, trace, options=()):
    """Runs ftlab on settings (dotted keys) and a byte trace; rows and counters."""
    with tempfile.TemporaryDirectory() as folder:
        rows, result = run_files(toml(settings), trace_csv(trace), folder, options)
    return rows, read_counters(result)
