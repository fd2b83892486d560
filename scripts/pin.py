"""Pins what ftlab computes: hashes of the results of several hundred configurations.

    python scripts/pin.py --check tests/pins.txt                   # what differs, and in which field first
    python scripts/pin.py --check tests/pins.txt --short           # every eighth case, for CI
    python scripts/pin.py --check tests/pins.txt --against PYTHON  # with another ftlab's values next to ours
    python scripts/pin.py --write tests/pins.txt                   # hash all cases anew
    python scripts/pin.py --write tests/pins.txt --more            # and add cases for values that are new
    python scripts/pin.py --show "kind=dftl workload=zipf"         # the JSON of one case

A case is a line: its settings by name (AXES below, registered parts by their own names; an axis that is not
named has its first value), a hash of the result's JSON without `engine` and `config` (four digits for each
field at the top level), a hash of the per-request columns, a hash of the timeline. Writing keeps the cases
that are in the file, so that a difference shows on the line of its case; --more adds cases until each pair of
compatible values is in one of them. The script uses only the documented commands and package, so it also runs
with the interpreter of an older tree.
"""

from __future__ import annotations

import argparse
import hashlib
import itertools
import json
import os
import random
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import ftlab
from ftlab.results.result import REQUEST_COLUMNS

ROOT = Path(__file__).resolve().parents[1]
RECORDED = Path(os.environ.get("FTLAB_TRACES", ROOT.parent / "shared" / "traces"))
"""The directory of recorded traces that the project may not ship."""
LEAST = 360
"""The minimum number of generated cases; cases with recorded traces are added to these."""
EVERY = 8
"""A short check takes one in this many cases."""

LIVE = ("postmark", "sysbench", "filebench", "dbench", "fio-direct", "fio-buffered")
"""Workloads that generate their requests during the run."""

Settings = dict[str, str]
Case = tuple[tuple[str, str], ...]
"""A case as pairs of axis and value, in the order of the axes; axes with their first value are left out."""

BASE: Settings = {
    "flash.blocks_per_plane": "40",
    "flash.pages_per_block": "32",
    "flash.page": "4KiB",
    "flash.read": "40us",
    "flash.program": "300us",
    "flash.erase": "2ms",
    "ftl.entry": "32B",
    "ftl.over_provisioning": "35%",
    "ftl.log_blocks": "10%",
    "flash.variation.growth_mean": "3.7e-4",
    "flash.variation.ecc_limit": "1.3e-3",
    "host.page_cache": "0B",
}


def switch(key: str, *values: str) -> dict[str, Settings]:
    """Returns an axis that varies one key; each value is named as it is written."""
    return {value: {key: value} for value in values}


def registered(key: str) -> dict[str, Settings]:
    """Returns an axis that varies a key over all registered parts."""
    table, name = key.split(".")
    names = ftlab.schema()["properties"][table]["properties"][name]["enum"]
    return switch(key, *names)


def synthetic(**keys: str) -> Settings:
    """Returns the settings of a generated workload."""
    keys = {"requests": "3000", "interarrival": "200us", **keys}
    return {f"workload.synthetic.{key}": value for key, value in keys.items()}


def benchmark(**keys: str) -> Settings:
    """Returns the settings of a benchmark through the page cache."""
    return {"host.page_cache": "1MiB", **{f"workload.benchmark.{key}": value for key, value in keys.items()}}


def workloads(folder: Path) -> dict[str, Settings]:
    """Returns the workloads that are not recorded traces."""
    bursts = synthetic(pattern="hot-cold", arrival="bursts", burst_ops="single", read_share="60%")
    direct, buffered = folder / "direct.fio", folder / "buffered.fio"
    return {
        "random": synthetic(read_share="30%"),
        "zipf": synthetic(pattern="zipf", trim_share="10%", write_sizes="4KiB/3:16KiB/1", exact_mix="true"),
        "bursts": bursts | {"workload.synthetic.read_sizes": "4KiB/2:8KiB/1:32KiB/1"},
        "streams": synthetic(
            sequential_share="30%", near_share="60%", near_sequential="50%", near_range="256KiB"
        ),
        "marked": {"workload.trace": str(folder / "marked.csv"), "workload.out_of_range": "wrap"},
        "phone": {"workload.trace": str(folder / "phone.csv"), "workload.out_of_range": "wrap"},
        "postmark": benchmark(kind="postmark", transactions="150", runs="2", files="8", file_size="64KiB"),
        "sysbench": benchmark(
            kind="sysbench", requests="600", ageing="50ms", file_size="1MiB", sync_every="128KiB"
        ),
        "filebench": benchmark(
            kind="filebench", duration="300ms", runs="2", file_size="1MiB", sync_every="256KiB"
        ),
        "dbench": benchmark(
            kind="dbench", duration="300ms", ageing="50ms", clients="2", files="6", file_size="300KiB"
        ),
        "fio-direct": {"workload.fio_job": str(direct)},
        "fio-buffered": {"workload.fio_job": str(buffered), "host.page_cache": "1MiB"},
    }


def axes(folder: Path) -> dict[str, dict[str, Settings]]:
    """Returns what cases consist of: the values of each axis, and the settings of each value."""
    worn = {"flash.endurance": "40", "flash.pe_cycles": "30", "ftl.spare_blocks": "2"}
    unequal = {"flash.variation.model": "ispp", "flash.pe_cycles": "12000"}
    slowest = {"device.scheduler": "vios", "device.unhurried": "slowest", **unequal}
    results = {f"results.{key}": "true" for key in ("histograms", "series", "erase_map", "miss_curve")}
    return {
        "kind": registered("ftl.kind"),
        "host": registered("host.scheduler"),
        "device": registered("device.scheduler") | {"vios-slowest": slowest},
        "gc": {name: {**keys, "ftl.translation_gc": name} for name, keys in registered("ftl.gc").items()},
        "translation": {"as-gc": {}, **switch("ftl.translation_gc", "greedy", "random")},
        "workload": workloads(folder),
        "chips": {
            "1x1": {},
            "1x2": {"flash.chips_per_channel": "2"},
            "2x2": {"flash.channels": "2", "flash.chips_per_channel": "2"},
            "4x1": {"flash.channels": "4"},
        },
        "bus": switch("flash.transfer", "0ns", "2.5ns", "25ns"),
        "dies": switch("flash.dies_per_chip", "1", "2"),
        "planes": switch("flash.planes_per_die", "1", "2"),
        "interleave": switch("flash.interleave", "false", "true"),
        "multi-plane": switch("flash.multi_plane", "off", "same-offset", "free"),
        "cache-program": switch("flash.cache_program", "false", "true"),
        "cache-read": switch("flash.cache_read", "false", "true"),
        "suspend": switch("flash.suspend", "off", "erase", "program-erase"),
        "order": {
            "in": {},
            "out": {"flash.out_of_order": "true"},
            "bounded": {"flash.out_of_order": "true", "flash.max_passed": "3"},
        },
        "command": switch("flash.command", "0ns", "300ns"),
        "allocation": switch("ftl.allocation", "cwdp", "wcdp", "pdwc", "dynamic"),
        "page": {
            "4KiB": {},
            "halves": {"flash.page": "8KiB", "ftl.logical_page": "4KiB", "flash.pages_per_block": "16"},
            "rmw": {"flash.page": "8KiB", "ftl.partial_write": "rmw", "flash.pages_per_block": "16"},
        },
        "cache": {
            "unlimited": {},
            "2KiB": {"ftl.mapping_cache": "2KiB"},
            "8KiB": {"ftl.mapping_cache": "8KiB"},
            "lru": {"ftl.mapping_cache": "2KiB", "ftl.cache_policy": "lru"},
            "single": {"ftl.mapping_cache": "2KiB", "ftl.batch_update": "false"},
        },
        "flush": {
            "eviction": {},
            "amount": {"ftl.flush": "512KiB"},
            "user": {"ftl.flush": "512KiB", "ftl.flush_counts": "user", "ftl.host_flush": "data"},
        },
        "segment": switch("ftl.segment", "1KiB", "2KiB"),
        "background": {
            "none": {},
            "flush": {"ftl.background_flush": "true"},
            "collection": {"ftl.gc_background": "true", "ftl.gc_step": "2"},
            "both": {
                "ftl.background_flush": "true",
                "ftl.gc_background": "true",
                "ftl.gc_normal_blocks": "6",
            },
        },
        "power": switch("ftl.power_safe", "false", "true"),
        "precondition": {
            "none": {},
            "mapped": {"device.precondition": "mapped", "device.precondition_share": "70%"},
            "sequential": {"device.precondition": "mapped", "device.precondition_pattern": "sequential"},
            "fill": {"device.precondition": "fill"},
            "steady": {"device.precondition": "steady", "device.precondition_rounds": "5"},
            "random": {"device.precondition": "random:80%"},
            "kept": {"device.precondition": "random:40%", "device.precondition_withheld": "kept"},
        },
        "free": switch("ftl.free_blocks", "erased", "withheld"),
        "merge": switch("host.merge_limit", "auto", "64KiB"),
        "deadline": switch("host.deadline", "10ms", "1ms", "none"),
        "late": switch("host.late", "batch", "request"),
        "awareness": registered("host.awareness"),
        "alternate": switch("host.alternate", "false", "true"),
        "pending": switch("host.queue_depth", "128", "4", "unlimited"),
        "depth": switch("device.queue_depth", "1", "8", "unlimited"),
        "replay": {
            "open": {},
            "closed": {"workload.replay": "closed"},
            "fast": {"workload.speed": "8"},
        },
        "wear": {
            "none": {},
            "leveling": {"ftl.wear_leveling": "static", "ftl.wear_threshold": "4"},
            "endurance": worn,
            "both": {"ftl.wear_leveling": "static", "ftl.wear_threshold": "4", **worn},
        },
        "variation": {
            "none": {},
            "ispp": unequal,
        },
        **parts(),
        "results": {"plain": {}, "all": results},
        "seed": {"1": {}, "2": {"seed": "2"}},
        "mode": {
            **{mode: {} for mode in ("run", "timeline", "state", "check")},
            # The queues are bounded, since requests that come faster than they are served would pile up until
            # the next cut.
            "crash": {"device.queue_depth": "8", "host.queue_depth": "128", "workload.speed": "1"},
        },
        "recorded": {"none": {}, **recorded()},
    }


def parts() -> dict[str, dict[str, Settings]]:
    """Returns the axes of the parts that drives of today have."""
    link = {"device.link": "400MB/s", "device.command_time": "3us", "device.latency_read": "5us"}
    half = {"device.link": "100MB/s", "device.link_duplex": "half", "device.link_command": "1us"}
    times = {"flash.read": "30us/50us", "flash.program": "200us/500us", "flash.cell": "mlc"}
    lines = {"flash.cell": "mlc", "flash.programming": "word-line", "flash.read": "30us/50us"}
    errors = {"flash.errors.process": "tlc-72-layer", "flash.pe_cycles": "2500", "flash.age": "100d"}
    return {
        "controller": {
            "none": {},
            "link": {**link, "device.cores": "2", "device.unit_time": "1us", "device.latency_write": "4us"},
            "half": half,
        },
        "buffer": {
            "none": {},
            "fifo": {"device.write_buffer": "64KiB"},
            "lru": {
                "device.write_buffer": "128KiB",
                "device.write_buffer_policy": "lru",
                "device.power_loss_protection": "true",
            },
            "block": {
                "device.write_buffer": "256KiB",
                "device.write_buffer_policy": "block",
                "device.write_buffer_high": "50%",
                "device.write_buffer_low": "20%",
            },
            "ahead": {"device.read_ahead": "64KiB"},
            "sorted": {"device.write_buffer": "256KiB", "device.write_buffer_policy": "sorted"},
        },
        "cells": {
            "slc": {},
            "types": times,
            "shadow": {**times, "flash.page_order": "shadow"},
            "word-line": lines,
        },
        "placement": {
            "default": {},
            **switch("ftl.placement", "one", "gc-apart", "hot-cold", "sepbit", "stream"),
            "kept": {"ftl.placement": "stream", "ftl.copies": "kept", "ftl.fronts": "3"},
        },
        "slc": {
            "none": {},
            "fixed": {"ftl.slc_cache": "256KiB", "flash.slc_program": "100us"},
            "dynamic": {"ftl.slc_cache": "dynamic", "ftl.slc_fold_idle": "5ms"},
            "both": {"ftl.slc_cache": "256KiB+dynamic", "ftl.slc_full": "direct", "flash.slc_read": "20us"},
        },
        "errors": {
            "none": {},
            "retry": errors,
            "last": {**errors, "flash.retry": "last", "flash.errors.retry_time": "60us"},
            "refresh": {**errors, "flash.retry": "pipelined", "ftl.refresh": "2"},
        },
        "reclaim": switch("ftl.reclaim_unit", "block", "superblock", "superblock:2"),
        "tenants": {
            "none": {},
            "shared": {"workload.tenants": "by-stream"},
            "rr": {"workload.tenants": "by-stream", "host.queues": "per-tenant"},
        },
        "die": switch("flash.order", "emission", "reads-first"),
        "energy": {
            "none": {},
            "some": {
                "energy.read": "10uJ",
                "energy.program": "60uJ",
                "energy.erase": "200uJ",
                "energy.transfer": "30pJ",
                "energy.active": "1W",
                "energy.idle": "20mW",
            },
        },
    }


def recorded() -> dict[str, Settings]:
    """Returns the settings of the recorded traces, by file."""
    phone = {"workload.dedup": "50ms", "workload.max_gap": "60s"}
    closed = {"workload.replay": "closed"}
    files: dict[str, Settings] = {
        "cloudphysics-sample.csv.gz": {},
        "financial1-first10000.ssdsim.txt": {"workload.format": "ssdsim"},
        "financial1-first949.spc": {},
        "msr-cut-rw20-80.replayer.txt": {"workload.format": "replayer"},
        "msr-cut-rw40-60.replayer.txt": {"workload.format": "replayer"},
        "tpcc-small.mqsim.txt": {"workload.format": "mqsim"},
        "nexus5-messaging-notimes.txt": closed,
        "baidutieba-4h-notimes.txt": closed,
        "pixel6a-pubg-exec.csv.gz": phone,
        "pixel6a-slideshow-exec.csv.gz": phone,
        "pixel6a-telegram-precond.csv.gz": phone,
        "sqlitewal-ext4.txt": {},
        "ycsb-f2fs.blkparse.txt": {},
    }
    known = {name: {"workload.trace": str(RECORDED / name)} | keys for name, keys in files.items()}
    return {name: keys | {"workload.out_of_range": "compact"} for name, keys in known.items()}


REPLAYS = [
    {},
    {"kind": "dftl", "cache": "8KiB", "host": "map+"},
    {"kind": "tpftl", "cache": "8KiB", "chips": "2x2", "depth": "8", "bus": "2.5ns", "device": "direct"},
    {"kind": "page", "chips": "2x2", "depth": "unlimited", "device": "vios", "bus": "25ns"},
    {"kind": "fast", "host": "coop", "awareness": "none"},
    {"kind": "msftl", "flush": "amount", "chips": "1x2", "suspend": "program-erase", "depth": "8"},
]
"""The settings with which each recorded trace is replayed."""


def write_inputs(folder: Path) -> None:
    """Writes the files that workloads name: a trace with flushes, FUA and trims, the first requests of the
    shipped trace, and fio jobs.
    """
    draw = random.Random(12)
    lines, now = ["time_ns,op,offset,size"], 0
    for _ in range(2500):
        now += draw.choice([0, 1000, 40_000, 300_000, 4_000_000])
        op = draw.choices(["R", "W", "WF", "T", "F"], [40, 40, 8, 8, 4])[0]
        page, pages = draw.randrange(700) ** 2 // 700, draw.choice([1, 1, 1, 2, 4, 9])
        lines.append(f"{now},{op},0,0" if op == "F" else f"{now},{op},{page * 4096},{pages * 4096}")
    (folder / "marked.csv").write_text("\n".join(lines) + "\n")
    import gzip

    with gzip.open(ROOT / "traces" / "phone-mix.csv.gz", "rt") as trace:
        rows = [next(trace).split(",") for _ in range(4001)]
    rows[1:] = [[str(int(row[0]) // 200), *row[1:]] for row in rows[1:]]
    (folder / "phone.csv").write_text("".join(",".join(row) for row in rows))
    job = "[global]\nsize=1m\nbs=4k\n{}\n[w]\nrw=randwrite\niodepth={}\n[r]\nrw=read\nbs=16k\n"
    (folder / "direct.fio").write_text(job.format("ioengine=libaio\ndirect=1", 8))
    (folder / "buffered.fio").write_text(job.format("direct=0\nfsync=50", 1))


class Pins:
    """The cases, and the functions that run them."""

    def __init__(self, folder: Path) -> None:
        """Writes the input files to ``folder``, where outputs go too, and lists the axes."""
        write_inputs(folder)
        self.folder = folder
        self.axes = axes(folder)

    def case(self, values: dict[str, str]) -> Case:
        """Returns the case with these values."""
        named = {axis: values[axis] for axis in self.axes if axis in values}
        return tuple((axis, value) for axis, value in named.items() if value != next(iter(self.axes[axis])))

    def parse(self, text: str) -> Case:
        """Returns the case with this name."""
        return self.case(dict(part.split("=", 1) for part in text.split()))

    def settings(self, case: Case) -> Settings:
        """Returns the settings of a case."""
        values = dict(case)
        chosen = [
            settings[values.get(axis, next(iter(settings)))]
            for axis, settings in self.axes.items()
            if not (axis == "workload" and "recorded" in values)
        ]
        merged = dict(BASE)
        for settings in chosen:
            merged |= settings
        if "recorded" in values:
            merged |= {
                "flash.blocks_per_plane": "3000",
                "flash.pages_per_block": "64",
                "ftl.over_provisioning": "12%",
            }
        return merged

    def outcome(self, case: Case) -> tuple[dict[str, Any], list[str]]:
        """Returns the result's JSON, without `engine` and `config`, and hashes of the other outputs.

        Raises:
            ftlab.UserError: the values are incompatible.
        """
        mode, settings = dict(case).get("mode", "run"), self.settings(case)
        if mode == "crash":
            return self._crash(settings), []
        name = hashlib.sha256(name_of(case).encode()).hexdigest()[:16]
        timeline, state = self.folder / f"{name}.timeline", self.folder / f"{name}.state"
        if mode == "state":
            ftlab.run("map-plus", set=settings, collect=False, save_state=state)
        try:
            result = ftlab.run(
                "map-plus",
                set=settings,
                check=mode == "check",
                timeline=timeline if mode == "timeline" else None,
                load_state=state if mode == "state" else None,
            )
            digests = [columns_hash(result)]
            if mode == "timeline":
                digests.append(hashlib.sha256(timeline.read_bytes()).hexdigest()[:12])
        finally:
            timeline.unlink(missing_ok=True)
            state.unlink(missing_ok=True)
        return stripped(result.to_dict()), digests

    def _crash(self, settings: Settings) -> dict[str, Any]:
        command = [sys.executable, "-m", "ftlab", "crash", "map-plus", "--cuts", "12", "--operations", "80"]
        for key, value in settings.items():
            command += ["--set", f"{key}={value}"]
        try:
            done = subprocess.run(
                [*command, "--json", "-"], capture_output=True, text=True, timeout=60, check=False
            )
        except subprocess.TimeoutExpired:
            raise ftlab.UserError("more than a minute") from None
        if not done.stdout:
            raise ftlab.UserError(done.stderr.strip())
        return stripped(json.loads(done.stdout))

    def pin(self, case: Case) -> str:
        """Returns the hashes of a case, or the reason why it has none."""
        try:
            result, digests = self.outcome(case)
        except (ftlab.UserError, ftlab.InternalError) as error:
            return "! " + " ".join(str(error).split())
        return " ".join([fields_hash(result), *digests])

    def absent(self, case: Case) -> bool:
        """Whether a case needs a recorded trace that is absent."""
        name = dict(case).get("recorded")
        return name is not None and not (RECORDED / name).exists()

    def complete(self, cases: list[Case]) -> Iterator[Case]:
        """Yields further cases until each pair of compatible values is in a case and there are at least
        `LEAST`.
        """
        draw = random.Random(12)
        free = {axis: list(values) for axis, values in self.axes.items() if axis != "recorded"}
        pairs = {
            ((a, left), (b, right))
            for a, b in itertools.combinations(free, 2)
            for left in free[a]
            for right in free[b]
        }
        for case in cases:
            pairs -= self.pairs(case, free)
        count = sum("recorded" not in dict(case) for case in cases)
        while pairs or count < LEAST:
            wanted = dict(draw.choice(sorted(pairs))) if pairs else {}
            found = self.completed(wanted, free, pairs, draw)
            if found is not None:
                yield found
                count += 1
                pairs -= self.pairs(found, free)
            pairs.discard(tuple(wanted.items()))
        for values, name in itertools.product(REPLAYS, recorded()):
            case = self.case({**values, "recorded": name})
            if case not in cases and not self.absent(case) and not self.pin(case).startswith("!"):
                yield case

    def completed(
        self, wanted: dict[str, str], free: dict[str, list[str]], pairs: set[Any], draw: random.Random
    ) -> Case | None:
        """Returns a case with the ``wanted`` values that can be run; its other values are drawn so that the
        case covers many of ``pairs``.
        """
        drawn = [
            {axis: draw.choice(values) for axis, values in free.items()} | wanted
            for _ in range(8 if pairs else 1)
        ]
        values = max(drawn, key=lambda values: len(self.pairs(self.case(values), free) & pairs))
        others = [axis for axis in free if axis not in wanted]
        draw.shuffle(others)
        while True:
            case = self.case(values)
            if self.runs(case):
                return case
            # As long as the values are incompatible, one value after another is reset to the first value of
            # its axis.
            changed = [axis for axis in others if values[axis] != free[axis][0]]
            if not changed:
                return None
            values[changed[0]] = free[changed[0]][0]

    def runs(self, case: Case) -> bool:
        """Whether a case can be run: its values are compatible, and no power is cut under a workload in
        `LIVE`.
        """
        if dict(case).get("mode") == "crash" and dict(case).get("workload") in LIVE:
            return False
        try:
            ftlab.configs.load("map-plus", ftlab.configs.mapping_overrides(self.settings(case), "set"))
        except ftlab.UserError:
            return False
        return not self.pin(case).startswith("!")

    def pairs(self, case: Case, free: dict[str, list[str]]) -> set[Any]:
        """Returns the pairs of values in a case."""
        values = {axis: names[0] for axis, names in free.items()} | dict(case)
        return set(itertools.combinations([(axis, values[axis]) for axis in free], 2))


def name_of(case: Case) -> str:
    """Returns the name with which the line of a case begins."""
    return " ".join(f"{axis}={value}" for axis, value in case) or "mode=run"


DERIVED = ("engine", "config", "lifetime")
"""Blocks of a result that are not pinned: how it was computed, from what, and what follows from the rest."""


def stripped(result: dict[str, Any]) -> dict[str, Any]:
    """Returns a result without the parts that say how it was computed and from which files."""
    return {key: value for key, value in result.items() if key not in DERIVED}


def fields_hash(result: dict[str, Any]) -> str:
    """Returns a hash of a result, with four digits for each field at the top level."""
    texts = [json.dumps([key, value], sort_keys=True) for key, value in result.items()]
    return "".join(hashlib.sha256(text.encode()).hexdigest()[:4] for text in texts)


def columns_hash(result: ftlab.Result) -> str:
    """Returns a hash of the per-request columns."""
    digest = hashlib.sha256()
    for name in REQUEST_COLUMNS:
        column = result.column(name)
        digest.update(f"{name} {','.join(map(str, column.tolist()))}\n".encode())
    return digest.hexdigest()[:12]


def leaves(value: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """Yields the innermost fields of a JSON value, each with its path."""
    items: Iterable[tuple[Any, Any]] = ()
    if isinstance(value, dict):
        items = value.items()
    elif isinstance(value, list):
        items = enumerate(value)
    else:
        yield path, value
    for key, inner in items:
        yield from leaves(inner, f"{path}.{key}" if path else str(key))


def read_pins(path: Path, pins: Pins) -> dict[Case, str]:
    """Returns the cases of a file and their hashes."""
    lines = [line for line in path.read_text().splitlines() if line and not line.startswith("#")]
    split = [line.split(": ", 1) for line in lines]
    return {pins.parse(name): hashes for name, hashes in split}


def difference(pins: Pins, case: Case, pinned: str, against: str | None) -> str:
    """Returns where a case first differs from its pinned hashes, or from another ftlab."""
    try:
        result, _ = pins.outcome(case)
    except (ftlab.UserError, ftlab.InternalError) as error:
        return f"does not run: {error}"
    if against:
        command = [against, __file__, "--show", name_of(case)]
        other = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
        ours, theirs = dict(leaves(result)), dict(leaves(other))
        for path in [*ours, *theirs]:
            if ours.get(path) != theirs.get(path):
                return f"{path} is {ours.get(path)!r}, was {theirs.get(path)!r}"
        return "the JSON is the same" + ("" if len(ours) == len(theirs) else ", fields apart")
    now, then = fields_hash(result), pinned.split(maxsplit=1)[0]
    if now == then:
        return "requests or timeline"
    if len(now) != len(then):
        return f"{len(now) // 4} fields at the top, pinned were {len(then) // 4}"
    return next(key for at, key in enumerate(result) if now[4 * at : 4 * at + 4] != then[4 * at : 4 * at + 4])


def check(pins: Pins, path: Path, *, short: bool, against: str | None) -> int:
    """Runs the cases of a file; returns how many differ."""
    pinned = read_pins(path, pins)
    if short:
        pinned = dict(list(pinned.items())[::EVERY])
    present = [case for case in pinned if not pins.absent(case)]
    with ThreadPoolExecutor(os.cpu_count()) as threads:
        found = dict(zip(present, threads.map(pins.pin, present), strict=True))
    differing = [case for case in present if found[case] != pinned[case]]
    for case in differing:
        print(f"{name_of(case)}: {difference(pins, case, pinned[case], against)}")
    absent = (
        f"; {len(pinned) - len(present)} passed over, whose traces are not here"
        if present != [*pinned]
        else ""
    )
    print(f"{len(present)} cases, {len(differing)} differ{absent}")
    return len(differing)


def write(pins: Pins, path: Path, *, more: bool) -> None:
    """Hashes the cases of a file anew and, with ``more``, cases that the file lacks; writes all of them to
    the file.
    """
    known = read_pins(path, pins) if path.exists() else {}
    cases = [*known, *(pins.complete([*known]) if more or not known else ())]
    here = [case for case in cases if not pins.absent(case)]
    with ThreadPoolExecutor(os.cpu_count()) as threads:
        known |= dict(zip(here, threads.map(pins.pin, here), strict=True))
    failed = [name_of(case) for case in cases if known[case].startswith("!")]
    if failed:
        sys.exit("these cases do not run:\n  " + "\n  ".join(failed))
    head = f"# {__file__.rsplit('/', 1)[-1]}: cases; hashes of JSON, requests, timeline\n"
    path.write_text(head + "".join(f"{name_of(case)}: {known[case]}\n" for case in cases))
    print(f"{len(cases)} cases")


def main() -> None:
    """Checks or writes a file of pins, or prints one case."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    chosen = parser.add_mutually_exclusive_group(required=True)
    chosen.add_argument("--check", type=Path, metavar="FILE")
    chosen.add_argument("--write", type=Path, metavar="FILE")
    chosen.add_argument("--show", metavar="CASE")
    parser.add_argument("--more", action="store_true", help="with --write: add cases")
    parser.add_argument("--short", action="store_true", help=f"with --check: one case of {EVERY}")
    parser.add_argument("--against", metavar="PYTHON", help="with --check: interpreter of another ftlab")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        pins = Pins(Path(folder))
        if arguments.check:
            sys.exit(min(check(pins, arguments.check, short=arguments.short, against=arguments.against), 1))
        if arguments.write:
            return write(pins, arguments.write, more=arguments.more)
        print(json.dumps(pins.outcome(pins.parse(arguments.show))[0], indent=1))


if __name__ == "__main__":
    main()
