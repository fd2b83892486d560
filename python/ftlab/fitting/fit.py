"""Finds a generator's parameters from targets.

Targets that are shares, sizes or rates are set directly; the process of bursts has a closed form, corrected
for what the seed's draws actually give. The miss ratio is matched by bisection over how hot the hot part is;
this alternates with corrections of the region and of the share of requests near earlier ones, since all three
depend on each other. Conflicts are matched by adjusting two properties of the arrival process (Broyden's
method):

- where the rate is not a target: the time between bursts, and the length of bursts of reads or of writes, one
  of which stays at 1. A longer burst of one operation adds conflicts to that operation;
- where the rate is a target (as in a model of a trace): the length of bursts and the gap within them, or,
  with bursts of one operation, the ratio of the lengths of read and write bursts; the time between bursts
  follows from the rate. Both are tried, and the nearer one is kept.

Runs are seeded. A target that cannot be reached is reported, and the nearest result found is kept.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from ftlab import _core
from ftlab._core import Config, UserError
from ftlab.configs import ConfigLike, Override, load
from ftlab.fitting import gaps, persistence, processes, quantity, sizes, solve
from ftlab.fitting.measure import NEAR_RANGE, Workload, conflicts, measure, miss_ratio, updated_ratio
from ftlab.fitting.quantity import parse
from ftlab.fitting.targets import Targets

if TYPE_CHECKING:
    from ftlab.fitting.end_to_end import Compared

COARSE = 10
"""The coarse phase of a search for conflicts simulates only one in this many requests."""

COARSE_RUNS, FINE_RUNS = 60, 80
"""The maximum numbers of runs in the coarse and in the fine phase of a search for conflicts."""

BISECTIONS = 14
"""The maximum number of runs to match a miss ratio."""

PLACE_TURNS = 6
"""The maximum number of corrections of the near share, and of a region that is touched only in part."""

LARGEST_DEVICE = {
    "flash": {"blocks_per_plane": 16_777_216, "pages_per_block": 127},
    "ftl": {"over_provisioning": "1%"},
}
"""A device on which any region fits (about 8 TiB)."""

PLACES = (
    (False, "2MiB"),
    *(
        (True, size)
        for size in ("2MiB", "512KiB", "256KiB", "128KiB", "64KiB", "32KiB", "16KiB", "8KiB", "4KiB")
    ),
)
"""Settings to try, in order, to match a near ratio together with a miss ratio: whether the hot part is
scattered, and the near range. Requests to a contiguous hot part are often near each other by chance, requests
to a scattered one hardly ever; and the nearer requests are to earlier ones, the less they miss.
"""

HOT_PIECES = 256
"""The maximum number of pieces of a scattered hot part, so that it may be smaller than the mapping cache."""

ARRIVAL_TURNS = 16
"""The maximum number of corrections of the arrival process, whose draws deviate from what is expected."""

SIZE_TURNS = 4
"""The maximum number of corrections of a mix of sizes."""

GOOD = 0.25
"""A search ends when it is within this fraction of the tolerance."""

_LARGEST_REGION = 64
_HOT_REGION = 0.2
_PROGRESS, _STALLED = 0.9, 2
"""A correction that leaves more than this fraction of the largest difference has failed; the second failure
ends the turns.
"""
_REGIONS = (32 << 20, 32 << 30)
_MOST_HOT = 0.95
_KOLMOGOROV = 1.63
"""A limit that random draws exceed once in a hundred times, for differences of distributions."""


Progress = Callable[[int], "bool | None"]
"""A function called with the number of requests simulated so far; False stops with KeyboardInterrupt."""


@dataclass
class Characteristic:
    """One target, and the value that the generator reaches."""

    name: str
    target: float
    reached: float
    ratio: bool
    """Whether the target is a share: then the difference itself counts, not its ratio to the target."""
    tolerance: float
    fitted: bool = True
    """Whether the target is fitted; otherwise the value results from other targets, and is shown for
    comparison.
    """

    @property
    def difference(self) -> float:
        """Returns the reached value minus the target, relative to the target unless that is a share."""
        gap = self.reached - self.target
        if self.ratio or gap == 0:
            return gap
        return gap / self.target if self.target else math.copysign(math.inf, gap)

    @property
    def met(self) -> bool:
        """Whether the difference is within the tolerance."""
        return abs(self.difference) <= self.tolerance


@dataclass
class Fit:
    """A fitted generator."""

    targets: Targets
    keys: dict[str, str]
    """Keys of ``[workload.synthetic]``, without the prefix."""
    characteristics: list[Characteristic] = field(default_factory=list)
    runs: int = 0
    end_to_end: list[Compared] = field(default_factory=list)
    """Mean latencies on trace and model under several schedulers, if they were compared."""

    @property
    def missed(self) -> list[Characteristic]:
        """Returns the targets that were not met."""
        return [each for each in self.characteristics if each.fitted and not each.met]


class Fitter:
    """Fits generators; all conflicts are measured on one device."""

    def __init__(
        self,
        config: ConfigLike | None,
        overrides: list[Override] | None = None,
        *,
        tolerance: float = 0.01,
        progress: Progress | None = None,
        load_state: str | None = None,
    ) -> None:
        """Makes the fitter; ``config`` is the device on which conflicts are matched, or None if there are
        none to match.

        ``load_state`` is a saved state of the device.
        """
        # Without a device the only runs are those that measure misses, on a device as large as the region.
        self._config = load(config if config is not None else LARGEST_DEVICE, overrides or [])
        self._tolerance = tolerance
        self._progress = progress
        self._load_state = load_state
        self._device: _core.Device | None = None
        self._simulated = 0
        self._runs = 0

    @property
    def config(self) -> Config:
        """Returns the resolved configuration of the device."""
        return self._config

    def report_to(self, progress: Progress | None) -> None:
        """Sends the progress made from now on to ``progress``, counted from 0."""
        self._progress, self._simulated = progress, 0

    def conflicts_of(self, trace: Config, flags: list[Override]) -> tuple[int, int]:
        """Returns the numbers of conflicts of a trace's reads and writes on the device; pages are packed
        densely.

        ``flags`` state how the trace is read.
        """
        overrides = [
            *flags,
            Override("trace fit", "workload.trace", trace.trace or ""),
            Override("trace fit", "workload.format", trace.format),
            Override("trace fit", "workload.out_of_range", "compact"),
        ]
        return self._run(load(self._config, overrides))

    def conflicts_of_model(self, keys: dict[str, str]) -> tuple[int, int]:
        """Returns the numbers of conflicts of a generator's reads and writes on the device."""
        return self._run(self._generator(keys))

    def fit(self, targets: Targets) -> Fit:
        """Fits a generator to ``targets``."""
        self._runs = 0
        keys = _given(targets)
        # Arrivals are fitted first, since the draws of addresses depend on those of arrivals.
        gaps.given(targets, keys)
        if targets.updated_ratio is None:
            self._places(targets, keys)
        else:
            self._regions(targets, keys, targets.updated_ratio)
        if targets.read_conflicts is not None:
            self._conflicts(targets, keys)
        elif targets.mean_interarrival_ns is not None and keys.get("arrival") == "bursts":
            self._as_drawn(targets, keys)
        self._sizes_as_drawn(targets, keys)
        fit = Fit(targets, keys)
        fit.characteristics = self._reached(targets, keys)
        fit.runs = self._runs
        return fit

    def _generator(self, keys: dict[str, str]) -> Config:
        return load(
            self._config,
            [Override("trace fit", f"workload.synthetic.{key}", value) for key, value in keys.items()],
        )

    def _run(self, config: Config) -> tuple[int, int]:
        if self._device is None:
            self._device = _core.prepare(config, load_state=self._load_state)
        before = self._simulated

        def advance(requests: int) -> bool | None:
            self._simulated = before + requests
            return self._progress(self._simulated) if self._progress else None

        self._runs += 1
        return conflicts(config, self._device, progress=advance)

    def _tell(self, targets: Targets) -> None:
        """Tells the progress of a draw or a search for misses, which goes through all requests."""
        self._simulated += targets.requests
        if self._progress is not None and self._progress(self._simulated) is False:
            raise KeyboardInterrupt

    def _regions(self, targets: Targets, keys: dict[str, str], wanted: float) -> None:
        """Fits the region so that ``wanted`` is the share of updated entries among those that mapping flushes
        program: the larger the region, the fewer entries of a translation page are updated at a time.
        """
        before = dict(keys)

        def place(at: float) -> None:
            keys.clear()
            keys.update(before, region=f"{round(math.exp(at)) >> 16 << 6}KiB")
            self._places(targets, keys)

        def excess(at: float) -> float:
            place(at)
            return wanted - self._updated(keys)

        low, high = (math.log(size) for size in _REGIONS)
        while high > low and not self._fits({**keys, "region": f"{round(math.exp(high))}B"}):
            high -= math.log(2)
        place(solve.bisect(excess, low, high, wanted * self._tolerance, BISECTIONS))

    def _fits(self, keys: dict[str, str]) -> bool:
        """Returns whether the generator's region fits the device."""
        try:
            self._generator(keys)
        except UserError:
            return False
        return True

    def _updated(self, keys: dict[str, str]) -> float:
        config = self._generator(keys)
        if self._device is None:
            self._device = _core.prepare(config, load_state=self._load_state)
        self._runs += 1
        return updated_ratio(config, self._device)

    def _places(self, targets: Targets, keys: dict[str, str]) -> None:
        """Fits the region, the near share and the locality, in turns, since they depend on each other: how
        much of a region is touched depends on the locality, and so does how often two requests meet by
        chance.
        """
        if targets.footprint_bytes is None and targets.near_ratio is None:
            self._locality(targets, keys)
            return
        before, best, least = dict(keys), dict(keys), math.inf
        given = targets.synthetic.get("near_range")
        places = PLACES if given is None else ((False, given), (True, given))
        for scattered, near_range in places if targets.near_ratio is not None else places[:1]:
            keys.clear()
            keys.update(before)
            if scattered:
                share = parse(self._region_of(keys)) / HOT_PIECES
                keys["hot_piece"] = f"{max(math.ceil(share / NEAR_RANGE), 1) * (NEAR_RANGE >> 20)}MiB"
            keys["near_range"] = near_range
            distance = self._turns(targets, keys)
            if distance < least:
                best, least = dict(keys), distance
            if distance <= self._tolerance:
                break
        keys.clear()
        keys.update(best)

    def _turns(self, targets: Targets, keys: dict[str, str]) -> float:
        """Corrects first the locality, then the near share and the region, again and again; returns the
        largest difference that remains.
        """
        first = parse(keys["region"]) if targets.footprint_bytes is not None else 0.0
        best, least, stalled = dict(keys), math.inf, 0
        for _ in range(PLACE_TURNS):
            self._tell(targets)
            distance = self._locality(targets, keys)
            config = self._generator(keys)
            found = measure(config) if targets.near_ratio is not None else None
            if found is not None:
                for name in ("near_ratio", "stream_ratio", "sequential_ratio"):
                    if (wanted := getattr(targets, name)) is not None:
                        distance = max(distance, abs(getattr(found, name) - wanted))
            if targets.footprint_bytes is not None:
                touched = _footprint(config)
                distance = max(distance, abs(touched / targets.footprint_bytes - 1))
            stalled += distance > least * _PROGRESS
            if distance < least:
                best, least = dict(keys), distance
            if distance <= self._tolerance * GOOD or stalled == _STALLED:
                break
            corrected = dict(keys)
            if found is not None:
                _nearer(targets, found, corrected)
            if targets.footprint_bytes is not None:
                corrected["region"] = _region(keys["region"], targets.footprint_bytes / touched, first)
            if corrected == keys:
                break
            keys.update(corrected)
        keys.clear()
        keys.update(best)
        return least

    def _as_drawn(self, targets: Targets, keys: dict[str, str]) -> None:
        """Corrects the process of bursts for what its draws give, which with a heavy tail is far from the
        expectation; keeps the nearest result found.
        """
        asked = wanted = gaps.Gaps.of(targets)
        best, least = dict(keys), math.inf
        for _ in range(ARRIVAL_TURNS):
            self._tell(targets)
            found = measure(self._generator(keys))
            reached = gaps.Gaps(found.mean_gap_ns, found.gap_cv, found.median_gap_ns, found.burst_length)
            off = [
                goal / got if goal is not None and got else None
                for goal, got in zip(wanted, reached, strict=True)
            ]
            distance = max(abs(1 / each - 1) for each in off if each is not None)
            if distance < least:
                best, least = dict(keys), distance
            if distance <= self._tolerance * GOOD:
                break
            asked = asked.times(off)
            gaps.set_bursts(keys, asked.bursts())
        keys.clear()
        keys.update(best)

    def _sizes_as_drawn(self, targets: Targets, keys: dict[str, str]) -> None:
        """Corrects a mix that was made for a mean: with sizes that persist, few of them are drawn, and their
        mean is off by chance.
        """
        if targets.mean_size is None or targets.read_sizes is None:
            return
        allowed, asked = [size for size, _ in targets.read_sizes], targets.mean_size
        for _ in range(SIZE_TURNS):
            self._tell(targets)
            found = measure(self._generator(keys)).mean_size
            if found is None or abs(found / targets.mean_size - 1) <= self._tolerance * GOOD:
                break
            asked *= targets.mean_size / found
            if (mix := sizes.of_mean(allowed, asked)) is None:
                break
            keys.update(read_sizes=sizes.text(mix), write_sizes=sizes.text(mix))

    def _locality(self, targets: Targets, keys: dict[str, str]) -> float:
        """Fits how hot the hot part is, to match the miss ratio; returns the difference that remains.

        There is one variable, from 0 to 2: up to 1, the share of requests to the hot fifth grows from a fifth
        (uniform) to 95 %; from there to 2, the hot part shrinks to a ten-thousandth.
        """
        if targets.miss_ratio is None:
            return 0.0
        wanted, least = targets.miss_ratio, math.inf

        def place(at: float) -> None:
            share = _HOT_REGION + (_MOST_HOT - _HOT_REGION) * min(at, 1.0)
            region = _HOT_REGION * 10 ** (-3.3 * max(at - 1.0, 0.0))
            keys.update(
                pattern="hot-cold", hot_share=quantity.percent(share), hot_region=quantity.percent(region)
            )

        def excess(at: float) -> float:
            nonlocal least
            place(at)
            self._runs += 1
            self._tell(targets)
            gap = wanted - self._misses(keys)
            least = min(least, abs(gap))
            return gap

        place(solve.bisect(excess, 0.0, 2.0, self._tolerance * GOOD, BISECTIONS))
        return least

    def _misses(self, keys: dict[str, str]) -> float:
        return miss_ratio(self._generator(keys), round(parse(self._region_of(keys))))

    def _region_of(self, keys: dict[str, str]) -> str:
        config = self._generator(keys)
        region: str = json.loads(config.json())["workload"]["synthetic"]["region"]
        if region == "device":
            raise UserError('locality depends on the region: give [synthetic] region, for example "8GiB"')
        return region

    def _conflicts(self, targets: Targets, keys: dict[str, str]) -> None:
        """Fits the arrival process to the conflict targets; keeps the candidate that comes closest."""
        before, best = dict(keys), math.inf
        for process in processes.of(targets):
            tried = dict(before)
            distance = self._search(targets, tried, process)
            if distance < best:
                best = distance
                keys.clear()
                keys.update(tried)
            if best <= self._tolerance * GOOD:
                break

    def _search(self, targets: Targets, keys: dict[str, str], process: processes.Process) -> float:
        """Fits the variables of a process, first on a part of the requests; returns the difference that
        remains.
        """
        assert targets.read_conflicts is not None and targets.write_conflicts is not None
        wanted = (
            _share(targets.read_conflicts, targets.reads),
            _share(targets.write_conflicts, targets.writes),
        )

        def residuals(requests: int) -> Callable[[solve.Pair], solve.Pair]:
            def function(at: solve.Pair) -> solve.Pair:
                process.apply(at, keys)
                found = self._run(self._generator({**keys, "requests": str(requests)}))
                counts = [round(requests * ops / targets.requests) for ops in (targets.reads, targets.writes)]
                read, write = (
                    _residual(_share(*each), goal) for *each, goal in zip(found, counts, wanted, strict=True)
                )
                return read, write

            return function

        def search(requests: int, within: float, most: int, starts: list[solve.Pair]) -> solve.Point:
            """Searches from one start after another until a search succeeds; returns the best point found."""
            best: solve.Point | None = None
            for start in starts:
                function = residuals(requests)
                point = solve.Search(function, process.low, process.high, within, most).run(start)
                best = point if best is None or point.distance < best.distance else best
                if best.distance <= within:
                    break
            assert best is not None, "a process has a start"
            return best

        within, starts = self._tolerance * GOOD, process.starts
        if targets.requests >= 20_000 * COARSE:
            starts = [search(targets.requests // COARSE, within * 4, COARSE_RUNS, starts).at]
        best = search(targets.requests, within, FINE_RUNS, starts)
        process.apply(best.at, keys)
        return best.distance

    def _reached(self, targets: Targets, keys: dict[str, str]) -> list[Characteristic]:
        """Returns every target with the value that the finished model reaches."""
        config = self._generator(keys)
        found = measure(config)
        values: list[tuple[str, float | None, float | None, bool]] = [
            ("reads", targets.reads, found.counts[0], False),
            ("writes", targets.writes, found.counts[1], False),
            ("trims", targets.trims or None, found.counts[2], False),
            ("write_ratio", targets.write_ratio, found.write_ratio, True),
            ("mean_size", targets.mean_size, found.mean_size, False),
            ("mean_read_size", targets.mean_read_size, found.mean_read_size, False),
            ("mean_write_size", targets.mean_write_size, found.mean_write_size, False),
            ("read_size_mix", *_mix(targets.read_sizes, found, True), True),
            ("write_size_mix", *_mix(targets.write_sizes, found, False), True),
            ("sequential_ratio", targets.sequential_ratio, found.sequential_ratio, True),
            ("stream_ratio", targets.stream_ratio, found.stream_ratio, True),
            ("near_ratio", targets.near_ratio, found.near_ratio, True),
            ("mean_interarrival_ns", targets.mean_interarrival_ns, found.mean_gap_ns, False),
            ("median_interarrival_ns", targets.median_interarrival_ns, found.median_gap_ns, False),
            ("interarrival_cv", targets.interarrival_cv, found.gap_cv, False),
            ("burst_length", targets.burst_length, found.burst_length, False),
            *persistence.compared(targets.persistence, found.persistence),
        ]
        if targets.footprint_bytes is not None:
            values.append(("footprint_bytes", targets.footprint_bytes, _footprint(config), False))
        if targets.miss_ratio is not None:
            values.append(("miss_ratio", targets.miss_ratio, self._misses(keys), True))
        if targets.updated_ratio is not None:
            values.append(("updated_ratio", targets.updated_ratio, self._updated(keys), True))
        if targets.read_conflicts is not None and targets.write_conflicts is not None:
            read, write = self._run(config)
            both = targets.read_conflicts + targets.write_conflicts
            values += [
                ("read_conflicts", targets.read_conflicts, read, False),
                ("write_conflicts", targets.write_conflicts, write, False),
                ("conflict_ratio", both / targets.requests, (read + write) / targets.requests, True),
            ]
        spread = _spread(keys, found)
        # Fitting the conflicts determines the arrival process, so only its mean remains a target.
        taken = (
            ("median_interarrival_ns", "interarrival_cv", "burst_length")
            if targets.read_conflicts is not None
            else ()
        )
        return [
            Characteristic(
                name, target, reached, ratio, max(self._tolerance, spread.get(name, 0.0)), name not in taken
            )
            for name, target, reached, ratio in values
            if target is not None and reached is not None
        ]


def _nearer(targets: Targets, found: Workload, keys: dict[str, str]) -> None:
    """Corrects the generator's near and sequential shares according to the measured ones."""
    assert targets.near_ratio is not None
    share = quantity.share_of(keys["near_share"])
    # Of the requests outside the near share, the fraction `free` is not near an earlier request, either by
    # chance or in a sequence; only those requests become near as the share grows.
    free = (1 - found.near_ratio) / max(1 - share, 1e-6)
    share += (targets.near_ratio - found.near_ratio) / max(free, 1e-6)
    share = min(max(share, 0.0), 0.999999)
    keys["near_share"] = quantity.percent(share)
    if targets.sequential_ratio:
        runs = quantity.share_of(keys["sequential_share"])
        runs *= targets.sequential_ratio / max(found.sequential_ratio, 1e-6)
        keys["sequential_share"] = quantity.percent(min(runs, 1.0))
    if targets.stream_ratio is not None:
        part = max((1 - found.sequential_ratio) * share, 1e-3)
        streams = quantity.share_of(keys.get("near_sequential", "0%"))
        streams += (targets.stream_ratio - found.stream_ratio) / part
        keys["near_sequential"] = quantity.percent(min(max(streams, 0.0), 1.0))


def _region(region: str, factor: float, first: float) -> str:
    """Returns ``region`` multiplied by ``factor`` to correct the footprint; at least ``first`` bytes."""
    corrected = min(max(parse(region) * factor, first), first * _LARGEST_REGION) // 4096 * 4096
    return f"{round(corrected)}B"


def _given(targets: Targets) -> dict[str, str]:
    """Returns the keys that the targets state directly."""
    keys = {
        "requests": str(targets.requests),
        "read_share": quantity.percent(targets.reads / targets.requests),
        "trim_share": quantity.percent(targets.trims / targets.requests),
        "exact_mix": "true",
    }
    for name in ("read_sizes", "write_sizes"):
        if mix := getattr(targets, name):
            keys[name] = sizes.text(mix)
    if targets.sequential_ratio is not None:
        keys["sequential_share"] = quantity.percent(targets.sequential_ratio)
    if targets.near_ratio is not None:
        # This is a first guess, which ignores requests that are near by chance.
        left = 1 - (targets.sequential_ratio or 0.0)
        keys["near_share"] = quantity.percent(max(1 - (1 - targets.near_ratio) / left, 0.0) if left else 0.0)
    return keys | targets.synthetic


def _spread(keys: dict[str, str], found: Workload) -> dict[str, float]:
    """Returns how far each figure of the sizes may be from its target by chance alone. With few requests this
    is more than the tolerance; correlated requests count as fewer.
    """
    chance = found.persistence.chance if found.persistence is not None else 0.0
    spread = {f"size_lag_{lag}": chance for lag in persistence.LAGS}
    inflation = persistence.inflation(keys)
    for op, counts in (("read", found.read_sizes), ("write", found.write_sizes)):
        total, mean = counts.total() / inflation, getattr(found, f"mean_{op}_size")
        if not total:
            continue
        square = sum(size**2 * number for size, number in counts.items()) / counts.total()
        spread[f"{op}_size_mix"] = _KOLMOGOROV / math.sqrt(total)
        spread[f"mean_{op}_size"] = persistence.NORMAL * math.sqrt(square / mean**2 - 1) / math.sqrt(total)
    return spread


def _share(count: int, of: int) -> float:
    """Returns a share kept half a request away from 0 and 1, so that its log-odds are finite."""
    return min(max(count, 0.5), max(of - 0.5, 0.5)) / max(of, 1)


def _residual(found: float, wanted: float) -> float:
    """Returns a difference of log-odds, which searches treat as linear; for shares near 0 this is about the
    relative difference.
    """
    odds = math.log(found / (1 - found)) - math.log(wanted / (1 - wanted))
    return odds * (1 - wanted)


def _mix(wanted: sizes.Mix | None, found: Workload, reads: bool) -> tuple[float | None, float | None]:
    """Returns the target, which is 0, and the largest difference between the cumulative shares of sizes; both
    are None if there is no mix.
    """
    if wanted is None:
        return None, None
    return 0.0, sizes.difference(found.read_sizes if reads else found.write_sizes, dict(wanted))


def _footprint(config: Config) -> int:
    """Returns the bytes in the pages of 4 KiB that a generator touches."""
    import numpy as np

    touched: set[int] = set()
    for _, _, offsets, lengths, *_ in _core.trace_chunks(config, 1 << 18):
        first = np.asarray(offsets) >> 12
        last = (np.asarray(offsets) + np.asarray(lengths) - 1) >> 12
        for step in range(int((last - first).max()) + 1 if first.size else 0):
            touched.update((first[first + step <= last] + step).tolist())
    return len(touched) << 12
