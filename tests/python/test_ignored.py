"""A key that is reported as ignored really is ignored: none of its values changes a result."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import ftlab
from front import Cli
from ftlab import _core

SMALL = {
    "flash.blocks_per_plane": "48",
    "flash.pages_per_block": "16",
    "flash.channels": "2",
    "ftl.over_provisioning": "30%",
    "ftl.mapping_cache": "8KiB",
    "device.queue_depth": "4",
}
LOAD = {
    "workload.synthetic.requests": "600",
    "workload.synthetic.size": "6KiB",
    "workload.synthetic.align": "2KiB",
    "workload.synthetic.trim_share": "5%",
    "workload.synthetic.interarrival": "100us",
    "workload.synthetic.sequential_share": "20%",
}
BURSTS = {**LOAD, "workload.synthetic.arrival": "bursts"}
FILLED = {"device.precondition": "fill"}
CONFIGURATIONS: dict[str, dict[str, str]] = {
    "page": {**BURSTS, **FILLED, "ftl.kind": "page", "ftl.gc": "d-choices"},
    "dftl": {**LOAD, **FILLED, "ftl.kind": "dftl", "host.scheduler": "map+", "workload.replay": "closed"},
    "dftl-unlimited": {**LOAD, "ftl.kind": "dftl", "ftl.mapping_cache": "unlimited"},
    "cdftl": {**BURSTS, "ftl.kind": "cdftl", "host.scheduler": "rb", "device.precondition": "mapped"},
    "tpftl": {**LOAD, **FILLED, "ftl.kind": "tpftl", "host.scheduler": "amphibian"},
    "minipage": {**BURSTS, **FILLED, "ftl.kind": "minipage", "ftl.flush": "1MiB", "host.scheduler": "row"},
    "msftl": {**LOAD, **FILLED, "ftl.kind": "msftl", "ftl.flush": "1MiB", "device.scheduler": "piq"},
    "msftl-bounded": {**LOAD, **FILLED, "ftl.kind": "msftl", "ftl.mapping_cache": "512B"},
    "bast": {**BURSTS, **FILLED, "ftl.kind": "bast", "ftl.log_blocks": "15%"},
    "fast": {**LOAD, **FILLED, "ftl.kind": "fast", "host.scheduler": "coop", "ftl.log_blocks": "15%"},
    "trace": {"workload.trace": "a.csv", "ftl.kind": "dftl", "workload.replay": "closed"},
}


def _keys(schema: dict[str, Any], prefix: str = "") -> Iterator[tuple[str, dict[str, Any]]]:
    for name, key in schema["properties"].items():
        if "properties" in key:
            yield from _keys(key, f"{prefix}{name}.")
        else:
            yield prefix + name, key


def _values(key: dict[str, Any]) -> list[str]:
    """Returns some values that a key may take."""
    if "enum" in key:
        return [str(value) for value in key["enum"]]
    holds = key["anyOf"][-1] if "anyOf" in key else key
    pattern = holds.get("pattern", "")
    if "KiB/s" in pattern:
        return ["2MB/s", "37.5MiB/s", "3.2GB/s"]
    by_unit = {"KiB": ["512B", "4KiB", "1MiB"], "us": ["1us", "3ms", "5s"], "%": ["2%", "40%", "100%"]}
    found = [value for unit, some in by_unit.items() if unit in pattern for value in some]
    by_type = {"boolean": ["true", "false"], "integer": ["1", "2", "7", "100"], "number": ["0.02", "3.0"]}
    return found or by_type.get(holds.get("type", ""), [])


KEYS = dict(_keys(json.loads(_core.schema())))


def _measured(config: _core.Config) -> tuple[dict[str, Any], list[bytes]]:
    result = ftlab.run(config)
    times = [result.column(name).tobytes() for name in ("arrival_ns", "dispatch_ns", "complete_ns")]
    data = {name: value for name, value in result.to_dict().items() if name not in ("config", "engine")}
    return data, times


@pytest.mark.parametrize("name", CONFIGURATIONS)
def test_what_is_ignored_changes_nothing(name: str, trace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(trace.parent)
    fixed = [("set", key, value) for key, value in {**SMALL, **CONFIGURATIONS[name]}.items()]
    expected = _measured(_core.resolve("map-plus", fixed))
    ignored = set()
    for key, schema in KEYS.items():
        for value in _values(schema):
            try:
                config = _core.resolve("map-plus", [*fixed, ("set", key, value)])
            except ftlab.UserError:
                continue
            if any(note.startswith(f"{key}: ignored: ") for note in config.notes()):
                ignored.add(key)
                assert _measured(config) == expected, f"{key} = {value}"
    assert len(ignored) >= 40


@pytest.mark.parametrize(
    ("settings", "why"),
    [
        ("ftl.kind=page ftl.mapping_cache=8KiB", 'ftl.kind = "page" has no mapping cache'),
        ("ftl.kind=page ftl.cache_policy=lru", 'ftl.kind = "page"'),
        ("host.page_cache=1MiB", "a trace or a generator enters below the page cache; clients are"),
        ("host.scheduler=row host.late=request", 'host.scheduler = "row" takes no batch along'),
        ("host.scheduler=rb host.deadline=none host.late=request", 'host.deadline = "none"'),
        ("host.scheduler=noop host.deadline=5ms", 'host.scheduler = "noop" dispatches nothing by deadline'),
        ("host.scheduler=rb host.awareness=none", 'host.scheduler = "rb" does not ask for cached mappings'),
        ("host.scheduler=noop host.alternate=true", 'host.scheduler = "noop" has an order of its own'),
        ("ftl.segment=1KiB", 'ftl.kind = "dftl"'),
        ("ftl.kind=tpftl ftl.load=request", 'ftl.kind = "tpftl"'),
        ("ftl.flush=1MiB ftl.batch_update=false", "units of mappings are gathered, and written back whole"),
        ("ftl.log_blocks=7%", 'ftl.kind = "dftl" has no log blocks'),
        ("ftl.kind=fast ftl.gc=random", 'ftl.kind = "fast" maps blocks'),
        ("ftl.gc_window=3", 'neither ftl.gc nor ftl.translation_gc is "windowed-greedy"'),
        ("ftl.gc_step=3", "ftl.gc_background = false"),
        ("ftl.wear_threshold=3", 'ftl.wear_leveling = "none"'),
        ("flash.variation.ecc_limit=0.1", 'flash.variation.model = "none"'),
        ("flash.suspend_time=3us", 'flash.suspend = "off"'),
        ("device.max_passed=3", 'device.scheduler = "noop" makes no batches'),
        ("device.precondition_rounds=7", 'device.precondition = "none"'),
        ("workload.synthetic.read_share=10%", "there is no generator (workload.synthetic.requests)"),
        ("workload.replay=closed workload.speed=2", 'workload.replay = "closed" goes by no arrival times'),
    ],
)
def test_a_key_without_effect_is_named_with_the_reason(cli: Cli, settings: str, why: str) -> None:
    given = [part for setting in settings.split() for part in ("--set", setting)]
    done = cli("run", "map-plus", "--trace", "a.csv", *given)
    assert done.returncode == 0, done.stderr
    key = settings.rsplit(maxsplit=1)[-1].partition("=")[0]
    assert done.stderr.startswith(f"note: {key}: ignored: {why}")
    assert done.stderr.count("note: ") == 1


def test_no_preset_and_no_seed_is_noted(cli: Cli) -> None:
    for preset in ftlab.presets():
        done = cli("run", preset, "--trace", "a.csv", "--seed", "3")
        assert (done.returncode, done.stderr) == (0, "")


def test_varying_what_every_variant_ignores_is_refused(cli: Cli) -> None:
    given = ["compare", "map-plus", "--trace", "a.csv", "--vary", "ftl.mapping_cache=8KiB,16KiB"]
    done = cli(*given, "--set", "ftl.kind=page")
    assert done.returncode == 2
    why = 'every variant ignores it; 8KiB: ignored: ftl.kind = "page" has no mapping cache\n'
    assert done.stderr == f"error: --vary ftl.mapping_cache: {why}"
    some = cli(*given, "--vary", "ftl.kind=page,dftl")
    assert some.returncode == 0
    assert some.stderr == "note: ftl.mapping_cache: ignored by 2 of 4 variants: 8KiB, page; 16KiB, page\n"
