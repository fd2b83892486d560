"""A measured row as a run of the same job on a candidate configuration, and the figures of that run."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import astuple, dataclass
from pathlib import Path
from typing import Any

from ftlab._core import Config, InternalError, UserError
from ftlab.calibration.row import FULL, STEADY, Row
from ftlab.configs import Override, load
from ftlab.progress import Reporter
from ftlab.studies.cache import Cache
from ftlab.studies.declaration import study_of
from ftlab.studies.executor import Executor
from ftlab.studies.plan import Run, key_of
from ftlab.studies.run import run
from ftlab.units import quantity

OPS = {
    "randread": ("100%", "random"),
    "read": ("100%", "sequential"),
    "randwrite": ("0%", "random"),
    "write": ("0%", "sequential"),
    "append": ("0%", "sequential"),
}
"""The share of reads and the order of addresses, by the operation of a row."""

REQUESTS = 60_000
"""Requests of a run whose row has percentiles: 60 of them above p99.9."""
FEW_REQUESTS = 20_000
"""Requests of a run whose row has a mean alone."""
LARGE = 16 << 10
"""Bytes of a read beyond which fewer requests do, in proportion."""
ROUNDS = 100
"""The least number of rounds, each of as many requests as are outstanding: the first is not like the rest."""
BUFFERS = 20
"""How many times the write buffer is written at least, so that its filling counts for little."""
MOST_REQUESTS = 200_000
"""Requests of a run at most."""
LEAST_BLOCKS = 8
"""Blocks of a plane at least, so that there is room for what garbage collection keeps in reserve."""
WITHHELD = "50%"
"""What such a small plane withholds, so that what is kept in reserve is a part of it."""
SPARE = 1.4
"""How many times the room for what is written there is, so that nothing is collected in between."""
SLC_SPARE = 7
"""The same with an SLC cache: three bits for one, of which half is withheld."""
FULL_SHARE = 0.02
"""The share of what is written that finds room in the SLC cache where it is to be full."""
STEADY_BLOCKS = 48
"""Blocks of a plane where writes are to be steady, if the configuration has as many."""
KEPT_BLOCKS = 2
"""Blocks that each plane keeps: an open one, and an erased one to collect into."""


@dataclass(frozen=True)
class Figures:
    """What a job gave, on a drive or in a model."""

    iops: float
    mean_us: float
    p50_us: float | None
    p99_us: float | None
    p999_us: float | None


NAMES = ("iops", "mean_us", "p50_us", "p99_us", "p999_us")
"""The names of the figures, in the order in which they are shown."""


def figures_of(row: Row) -> Figures:
    """Returns the figures of a measured row."""
    return Figures(*(getattr(row, name) for name in NAMES))


def mean_of(runs: Sequence[Figures]) -> Figures:
    """Returns the means of the figures of several runs of a job."""
    every = zip(*(astuple(each) for each in runs), strict=True)
    means: list[Any] = [None if None in values else sum(values) / len(values) for values in every]
    return Figures(*means)


def cannot(row: Row) -> str:
    """Returns why a row's job cannot be modelled; empty if it can."""
    if row.op not in OPS:
        return f"{row.op}: not among the modelled operations ({', '.join(OPS)})"
    if row.op == "read" and row.jobs > 1:
        return "sequential reads of several jobs: the generator has one stream"
    return ""


def _requests(row: Row, settings: Mapping[str, Any], share: float) -> int:
    """Returns how many requests a run needs, or a share of them."""
    tail = any(each is not None for each in (row.p50_us, row.p99_us, row.p999_us))
    # A read alone waits for nothing, so few of them show all latencies that there are.
    tail &= row.depth * row.jobs > 1 or OPS[row.op][0] == "0%"
    # A large read meets many dies, each of which tells as much as that of a small one.
    parts = max(row.bs // LARGE, 1) if OPS[row.op][0] == "100%" else 1
    wanted = max((REQUESTS if tail else FEW_REQUESTS) // parts, ROUNDS * row.depth * row.jobs)
    if OPS[row.op][0] == "0%":
        buffer = quantity(settings["device"]["write_buffer"]) or 0
        wanted = max(wanted, math.ceil(BUFFERS * buffer / row.bs))
    return max(round(share * min(wanted, MOST_REQUESTS)), 1)


def _blocks(row: Row, requests: int, settings: Mapping[str, Any]) -> int:
    """Returns how many blocks a plane needs; without an SLC cache at most those of the configuration."""
    flash = settings["flash"]
    page = quantity(flash["page"]) or 4096
    planes = math.prod(
        flash[part] for part in ("channels", "chips_per_channel", "dies_per_chip", "planes_per_die")
    )
    if row.state == STEADY:
        return min(STEADY_BLOCKS, int(flash["blocks_per_plane"]))
    wanted = 0.0
    if OPS[row.op][0] == "0%":
        wanted = _written(row, requests, settings) * (SLC_SPARE if _has_cache(settings) else SPARE)
    blocks: int = LEAST_BLOCKS + math.ceil(wanted / (planes * flash["pages_per_block"] * page))
    # What goes into an SLC cache needs its room, even if the configuration has less.
    return blocks if _has_cache(settings) else min(blocks, int(flash["blocks_per_plane"]))


def _written(row: Row, requests: int, settings: Mapping[str, Any]) -> float:
    """Returns how many bytes requests write; what is smaller than a logical page takes one all the same."""
    unit = quantity(settings["ftl"]["logical_page"]) or quantity(settings["flash"]["page"]) or 4096
    return float(requests * max(row.bs, unit))


def _has_cache(settings: Mapping[str, Any]) -> bool:
    return bool(settings["ftl"]["slc_cache"] != "none")


def _state_of(row: Row, requests: int, blocks: int, settings: Mapping[str, Any]) -> dict[str, str]:
    """Returns the keys that bring the device into the row's state."""
    if row.state == STEADY:
        # A small plane keeps a larger share of its blocks, which is not to count.
        kept = KEPT_BLOCKS * (1 / blocks - 1 / settings["flash"]["blocks_per_plane"])
        over = (quantity(settings["ftl"]["over_provisioning"]) or 0.0) + kept
        return {
            "device.precondition": "steady",
            "ftl.slc_cache": "none",
            "ftl.over_provisioning": f"{over:.2%}",
        }
    found = {
        "device.precondition": "fill" if OPS[row.op][0] == "100%" else "none",
        "ftl.over_provisioning": WITHHELD,
    }
    if _has_cache(settings):
        room = _written(row, requests, settings) * (FULL_SHARE if row.state == FULL else 1.0)
        found["ftl.slc_cache"] = "none" if OPS[row.op][0] == "100%" else f"{math.ceil(room)}B"
    return found


def job_of(row: Row, settings: Mapping[str, Any], length: float = 1.0) -> dict[str, str]:
    """Returns the keys that make the row's job: a closed loop on a device no larger than it has to be.

    Reads find a device that was filled in order, writes an empty one, unless the row says another state; an
    SLC cache holds all that is written, unless it is full. Jobs are outstanding requests of one stream.
    ``length`` is the share of the usual requests that reads are to take.
    """
    share, pattern = OPS[row.op]
    requests = _requests(row, settings, length if share == "100%" else 1.0)
    blocks = _blocks(row, requests, settings)
    return {
        "workload.replay": "closed",
        "workload.synthetic.requests": str(requests),
        "workload.synthetic.read_share": share,
        "workload.synthetic.pattern": pattern,
        "workload.synthetic.size": f"{row.bs}B",
        "host.queue_depth": str(row.depth * row.jobs),
        "flash.blocks_per_plane": str(blocks),
        **_state_of(row, requests, blocks, settings),
    }


def overrides(values: Mapping[str, str]) -> list[Override]:
    """Returns the overrides of a candidate's keys."""
    return [Override(f"{key}={value}", key, value) for key, value in values.items()]


class Rig:
    """Runs the jobs of rows on candidate configurations."""

    def __init__(
        self,
        base: str,
        cache: Cache,
        executor: Executor,
        reporter: Reporter,
        given: Mapping[str, str] | None = None,
    ) -> None:
        """Makes the rig; ``base`` is a preset or a file, with the ``given`` keys, ``cache`` keeps results."""
        self.base = base
        self._given = dict(given or {})
        self._cache = cache
        self._executor = executor
        self._reporter = reporter
        self._figure = study_of(Path("calibrate"))
        self.refusal = ""
        """Why a candidate could not run, the last time that one could not."""

    def settings(self, values: Mapping[str, str]) -> dict[str, Any]:
        """Returns the resolved candidate with these values of its keys.

        Raises:
            UserError: no configuration accepts them.
        """
        found: dict[str, Any] = json.loads(load(self.base, overrides({**self._given, **values})).json())
        return found

    def figures(
        self, rows: Sequence[Row], candidates: Sequence[Mapping[str, str]], length: float = 1.0
    ) -> list[list[Figures] | None]:
        """Returns the figures of each row on each candidate; None for one that no configuration accepts.

        ``length`` is that of the runs, as `job_of` takes it.
        """
        runs: dict[tuple[int, int], Run] = {}
        refused: set[int] = set()
        for number, values in enumerate(candidates):
            try:
                settings = self.settings(values)
                for at, row in enumerate(rows):
                    job = job_of(row, settings, length)
                    config = load(self.base, overrides({**self._given, **values, **job}))
                    runs[number, at] = self._run(config, f"depth {row.depth * row.jobs} {row.op}")
            except UserError as error:
                refused.add(number)
                self.refusal = str(error)
        results: dict[str, Mapping[str, Any]] = {}

        def fail(each: Run, error: UserError | InternalError) -> None:
            if isinstance(error, InternalError):
                raise error
            self.refusal = str(error)

        wanted = [each for (number, _), each in runs.items() if number not in refused]
        run(wanted, self._cache, self._reporter, self._executor, results.__setitem__, fail, expected=True)
        found: list[list[Figures] | None] = []
        for number in range(len(candidates)):
            own = [runs[number, at] for at in range(len(rows)) if (number, at) in runs]
            whole = number not in refused and all(each.key in results for each in own)
            found.append(
                [_measured(row, results[each.key]) for row, each in zip(rows, own, strict=True)]
                if whole
                else None
            )
        return found

    def _run(self, config: Config, label: str) -> Run:
        settings = json.loads(config.json())
        workload = settings.pop("workload")
        return Run(self._figure, (label,), config, key_of(settings, workload, [config], self._figure))


def _measured(row: Row, result: Mapping[str, Any]) -> Figures:
    """Returns the figures of a run's result.

    Raises:
        UserError: the requests took no time, so there is no rate.
    """
    latency = result["latency"]["read" if OPS[row.op][0] == "100%" else "write"]
    points = latency["percentile_ns"]
    percentiles = [points[name] / 1e3 for name in ("50.000000", "99.000000", "99.900000")]
    if not latency["mean_ns"]:
        raise UserError(
            f"{row.place}: in the model the requests of this row take no time, so they have no rate;"
            " give flash.read, flash.program or device.latency_* a time"
        )
    # By Little's law, as fewer requests are outstanding at the end of a run; with the measured number of
    # them, which the host's own time between a completion and the next request makes less than depth x jobs.
    mean_us = latency["mean_ns"] / 1e3
    return Figures(row.iops * row.mean_us / mean_us, mean_us, *percentiles)
