"""A command line in its own directory, a small trace, an invented result."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import ftlab
from ftlab import _core

TRACE = """time_ns,op,offset,size
0,W,0,4096
1000,W,4096,8192
2000,R,0,4096
150000,R,8192,4096
150000,W,1048576,4096
400000,R,4096,4096
900000,R,1048576,4096
1000000,F,0,0
"""
"""Eight requests in ftlab's own layout: four reads, three writes and a flush."""


def registered(key: str, preset: str = "") -> list[str]:
    """Returns the names that are registered under a key and that a preset accepts."""

    def is_taken(name: str) -> bool:
        try:
            _core.resolve(preset, [("set", key, name)])
        except _core.UserError:
            return False
        return True

    names = [choice["name"] for choice in ftlab.components()[key]]
    return [name for name in names if not preset or is_taken(name)]


def wait_until_busy(process: subprocess.Popen[Any], cpu_s: float = 1.0) -> None:
    """Waits until the process has used this much processor time, so that it has started up and is at work."""
    ticks = os.sysconf("SC_CLK_TCK")
    for _ in range(600):
        assert process.poll() is None, "the process has ended"
        fields = Path(f"/proc/{process.pid}/stat").read_text().rsplit(")", 1)[1].split()
        if (int(fields[11]) + int(fields[12])) / ticks >= cpu_s:
            return
        time.sleep(0.05)
    raise AssertionError("the process never came to work")


class Cli:
    """Runs `ftlab` as a user does, in a directory of its own."""

    def __init__(self, directory: Path, timeout: float = 120) -> None:
        """Calls end after ``timeout`` seconds."""
        self.directory = directory
        self._timeout = timeout

    def __call__(self, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
        """Returns the finished process, with its output as text."""
        return subprocess.run(
            [sys.executable, "-m", "ftlab", *arguments],
            cwd=self.directory,
            env={**os.environ, **environment},
            capture_output=True,
            text=True,
            timeout=self._timeout,
            check=False,
        )

    def ok(self, *arguments: str, **environment: str) -> str:
        """Returns the standard output of a call that must succeed."""
        done = self(*arguments, **environment)
        assert done.returncode == 0, done.stderr
        return done.stdout


def _summary(mean: float, count: int = 1000) -> dict[str, Any]:
    points = {"50.000000": 0.7, "90.000000": 2.2, "99.000000": 5.1, "99.900000": 9.0}
    return {
        "count": count,
        "mean_ns": mean,
        "stddev_ns": mean * 1.3,
        "min_ns": 35_000,
        "max_ns": int(mean * 12),
        "percentile_ns": {point: int(mean * factor) for point, factor in points.items()},
    }


def make_result(scheduler: str, factor: float = 1.0, cache: str = "16KiB") -> dict[str, Any]:
    """Returns a result with plausible numbers; its latencies grow with `factor`."""
    means = {"read": 2.0e6 * factor, "write": 4.0e6 * factor, "all": 3.0e6 * factor}
    merges = ("full", "partial", "switch", "padded_switch", "cooperative")
    return {
        "schema": "ftlab.result.v1",
        "config": {
            "preset": "map-plus",
            "workload": {"trace": "traces/a.csv"},
            "host": {"scheduler": scheduler},
            "device": {"scheduler": "piq"},
            "ftl": {"kind": "dftl", "mapping_cache": cache},
            "flash": {"channels": 1, "chips_per_channel": 1, "dies_per_chip": 1},
        },
        "trace": {
            "requests": 123_456,
            "reads": 50_000,
            "writes": 73_000,
            "bytes_read": 50_000 * 4096,
            "bytes_written": 73_000 * 4096,
            "footprint_bytes": 1 << 29,
            "dropped": {"duplicate": 12_034, "zero_size": 0},
        },
        "latency": {op: _summary(mean) for op, mean in means.items()},
        "wait": {op: _summary(mean * 0.75) for op, mean in means.items()},
        "access": {op: _summary(mean * 0.25) for op, mean in means.items()},
        "mapping": {
            "hits": 100_000,
            "misses": 40_000,
            "prefetches": 1_200,
            "hit_ratio": 0.7057 + (1 - factor) / 4,
            "translation_reads": int(61_234 * factor),
            "translation_programs": 21_234,
            "map_bytes_programmed": 21_234 * 4096,
            "updated_ratio": 0.2,
        },
        "scheduler": {"name": scheduler, "prioritized": 1000, "batches": 0, "expired": 312},
        "conflicts": {"read": 0, "write": 0, "ratio": 0.0},
        "flash": {
            "reads": {"host": 150_000, "map": 61_234},
            "programs": {"host": 293_824, "map": 21_234},
            "erases": {},
            "busy_ns": {"host": 75_000_000_000, "map": 25_000_000_000},
        },
        "merges": {
            merge: {"count": 0, "pages_copied": 0, "busy_ns": 0, "cost_ratio": 0.0} for merge in merges
        },
        "waf": {"total": 1.07, "gc": 0.0, "map": 0.07, "merge": 0.0, "pad": 0.0},
        "wear": {"min": 0, "mean": 0.0, "max": 0, "stddev": 0.0},
        "health": {
            "state": "good",
            "read_only_ns": None,
            "failed": {"writes": 0, "trims": 0, "flushes": 0},
            "blocks": {"all": 8192, "retired": 0, "spare": 0, "spare_left": 0},
            "nvme_smart": {"percentage_used": None},
        },
        "precondition": {
            "kind": "none",
            "pages_written": 0,
            "programs": 0,
            "erases": 0,
            "rounds": 0,
            "waf": [],
            "outcome": None,
        },
        "utilization": {"chip_busy_ns": [100_000_000_000], "channel_busy_ns": [0]},
        "elapsed_ns": 400_000_000_000,
        "throughput_bytes_per_s": 5.2e6,
        "engine": {"wall_s": 0.123, "requests_per_s": 1e6, "peak_rss_bytes": 45 << 20, "version": "0"},
    }
