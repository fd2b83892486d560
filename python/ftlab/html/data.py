"""The data for the page's script: what the page shows of each run, no finer than a screen can display."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeAlias

from ftlab import palette
from ftlab._core import UserError
from ftlab.configs import load
from ftlab.results.histogram import lower
from ftlab.results.notes import notes_on

RunLabels: TypeAlias = dict[str, str]
"""The labels that distinguish a run from the others: name and value."""

Measured: TypeAlias = Mapping[str, Any]
"""A result: `Result`, or the dictionary of its JSON."""

_POLICIES = (*palette.POLICIES, "scheduler", "policy", "ftl", "variant")
"""What colours distinguish: the first of these that differs between runs."""

_STUDIES = ("figure", "study")
"""Labels that say which runs are shown together, if all runs have such a label."""

_PARTS = ("latency", "wait", "access")
_OPS = ("read", "write")
_SECTIONS = (
    *("trace", "mapping", "scheduler", "device", "conflicts", "merges", "waf", "placement", "wear", "health"),
    *("elapsed_ns", "throughput_bytes_per_s", "energy", "own", "own_legend", "fairness", "lifetime"),
)
_SUMMARY = ("count", "mean_ns", "stddev_ns", "min_ns", "max_ns", "percentile_ns")

_MOST_TENANTS = 12
"""The maximum number of tenants that a page shows of a result: as many as there are colours."""

MOST_CHECKED = 100
"""The maximum number of results whose configurations are resolved again, to know what they read."""

# For each level of detail: the maximum number of results for which it is used, the bins per power of two, and
# the cells of an erase map.
_FINENESS = ((24, 32, 4096), (100, 16, 1024), (10**9, 8, 256))


def payload(runs: Sequence[tuple[RunLabels, Measured]]) -> dict[str, Any]:
    """Returns the data of the page: the studies with their runs, and each result that runs refer to, once.

    Raises:
        ValueError: there are no runs.
    """
    if not runs:
        raise ValueError("a report needs at least one run")
    data = [plain(result) for _, result in runs]
    places: dict[str, int] = {}
    numbers = [places.setdefault(_identity(result), len(places)) for result in data]
    results = [data[numbers.index(number)] for number in range(len(places))]
    per_octave, cells = next((bins, cells) for most, bins, cells in _FINENESS if len(results) <= most)
    settings = [dict(_leaves(result["config"], "")) for result in results]
    keys = list(dict.fromkeys(key for values in settings for key in values))
    common = {
        key: settings[0].get(key)
        for key in keys
        if all(key in values and values[key] == settings[0].get(key) for values in settings)
    }
    shown = [
        {
            "settings": {key: value for key, value in values.items() if key not in common},
            **_run(result, per_octave, cells),
        }
        for values, result in zip(settings, results, strict=True)
    ]
    tenants = [tenant["name"] for run in shown for tenant in run.get("tenants", ())]
    return {
        "palette": palette.for_page(),
        "tenants": palette.places("tenant", tenants),
        "studies": [_study(name, members) for name, members in _studies(runs, numbers).items()],
        "settings": {"keys": keys, "common": common, "unread": _unread(results)},
        "results": shown,
    }


def _unread(results: Sequence[Mapping[str, Any]]) -> list[str]:
    """Returns the keys that none of the runs has read; none if there are very many runs."""
    if len(results) > MOST_CHECKED:
        return []
    try:
        ignored = [
            [note.partition(": ignored")[0] for note in load(result["config"]).notes() if ": ignored" in note]
            for result in results
        ]
    except UserError:
        # A configuration of another version, or one that names a class that is not here.
        return []
    return [key for key in ignored[0] if all(key in own for own in ignored)]


def _identity(result: Mapping[str, Any]) -> str:
    """Returns a text that two results share if and only if they are equal, apart from ``engine``."""
    measured = {name: value for name, value in result.items() if name != "engine"}
    return hashlib.sha256(json.dumps(measured, sort_keys=True).encode()).hexdigest()


MOST_NOTES = 12
"""The maximum number of notes that a page shows; there may be thousands of runs."""


def notes(runs: Sequence[tuple[RunLabels, Sequence[str]]]) -> list[str]:
    """Returns the notes on runs, each with the labels of its runs unless all runs have it; of notes that
    differ only in their figures, the first.
    """
    found: dict[str, list[tuple[str, str]]] = {}
    for labels, own in runs:
        for note in own:
            kind = re.sub(r"[0-9][0-9.,]*", "", note)
            found.setdefault(kind, []).append((", ".join(labels.values()), note))
    lines = []
    for having in found.values():
        label, note = having[0]
        every = len(having) == len(runs) and all(other == note for _, other in having)
        lines.append(note if every else f"{label}{_more(len(having) - 1)}: {note}")
    left = len(lines) - MOST_NOTES
    return lines if left <= 0 else [*lines[:MOST_NOTES], f"{left:,} more notes on other runs"]


def notes_in(runs: Sequence[tuple[RunLabels, Measured]]) -> list[str]:
    """Returns the notes that follow from the results themselves, whether read from files or measured now."""
    return notes([(labels, notes_on(plain(result))) for labels, result in runs])


def _more(others: int) -> str:
    return f" and {others:,} more" if others else ""


_Members: TypeAlias = list[tuple[RunLabels, int]]


def _studies(runs: Sequence[tuple[RunLabels, Measured]], numbers: Sequence[int]) -> dict[str, _Members]:
    """Groups runs by study: by the figure that their labels state, or else by the names of their labels."""
    label = next((name for name in _STUDIES if all(name in given for given, _ in runs)), None)
    studies: dict[str, _Members] = {}
    for (given, _), number in zip(runs, numbers, strict=True):
        own = {name: value for name, value in given.items() if name != label}
        name = given[label] if label else f"by {', '.join(own)}" if own else "runs"
        studies.setdefault(name, []).append((own, number))
    return studies


def _study(name: str, members: _Members) -> dict[str, Any]:
    labels = _distinct([given for given, _ in members])
    dimensions = _dimensions(labels)
    runs = [{"labels": given, "result": number} for given, (_, number) in zip(labels, members, strict=True)]
    return {"name": name, "dimensions": dimensions, "colour": _colour(dimensions), "runs": runs}


def plain(value: Any) -> Any:
    """Returns the dictionary of a result."""
    return value.to_dict() if hasattr(value, "to_dict") else value


def _distinct(labels: list[RunLabels]) -> list[RunLabels]:
    """Returns labels that distinguish all runs: if the given ones do not, every run's number is added."""
    names = dict.fromkeys(name for given in labels for name in given)
    complete = [{name: given.get(name, "-") for name in names} for given in labels]
    if not names or len({tuple(given.values()) for given in complete}) < len(complete):
        return [{**given, "run": str(number)} for number, given in enumerate(complete, 1)]
    return complete


def _dimensions(labels: list[RunLabels]) -> list[dict[str, Any]]:
    """Returns the names and values of the labels, each value with its place, which determines its colour."""
    dimensions = []
    for name in labels[0]:
        values = list(dict.fromkeys(given[name] for given in labels))
        dimensions.append({"name": name, "values": values, "places": palette.places(name, values)})
    return dimensions


def _colour(dimensions: list[dict[str, Any]]) -> str:
    differing = [dimension["name"] for dimension in dimensions if len(dimension["values"]) > 1]
    # If nothing differs between the runs, for example because there is only one, the policy gives the colour.
    names = differing or [dimension["name"] for dimension in dimensions]
    return next((name for name in _POLICIES if name in names), names[-1])


def _leaves(table: Mapping[str, Any], prefix: str) -> Iterator[tuple[str, Any]]:
    for name, value in table.items():
        if isinstance(value, Mapping):
            yield from _leaves(value, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}", value


def _run(result: Mapping[str, Any], per_octave: int, cells: int) -> dict[str, Any]:
    run = {name: result[name] for name in _SECTIONS if name in result}
    run["bottleneck"] = result["utilization"]["bottleneck"]
    run["flash"] = {
        name: {cause: n for cause, n in result["flash"][name].items() if n}
        for name in ("reads", "programs", "erases", "busy_ns")
    }
    run |= _times(result, per_octave)
    if result.get("tenants"):
        run["beside_tenants"] = result["beside_tenants"]
        run["tenants"] = [
            {
                "name": tenant["name"],
                "share": tenant["flash"]["share"],
                "slowdown": tenant.get("slowdown"),
                "requests_per_s": tenant["requests_per_s"],
                **_times(tenant, per_octave),
            }
            for tenant in _busiest(result["tenants"])
        ]
    if result.get("series"):
        run["series"] = _without_zeros(_rounded(result["series"]))
    if result.get("erase_map"):
        run["erase_map"] = fewer_cells(result["erase_map"], cells)
    if result.get("miss_curve"):
        run["miss_curve"] = _rounded(result["miss_curve"])
    return run


def _times(of: Mapping[str, Any], per_octave: int) -> dict[str, Any]:
    """Returns what the page shows of the times of a result or a tenant."""
    times = {}
    for part in _PARTS:
        times[part] = {op: {field: of[part][op][field] for field in _SUMMARY} for op in (*_OPS, "all")}
        # "all" needs no bins: the page adds up those of reads and writes.
        for op in _OPS:
            if "histogram" in of[part][op]:
                times[part][op]["bins"] = coarser(of[part][op]["histogram"]["bins"], per_octave)
    return times


def _busiest(tenants: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Returns the tenants for which the flash worked most, as many as a page shows, in their order."""
    busy = sorted(tenants, key=lambda tenant: -tenant["flash"]["busy_ns"])[:_MOST_TENANTS]
    kept = {tenant["name"] for tenant in busy}
    return [tenant for tenant in tenants if tenant["name"] in kept]


def coarser(bins: Iterable[Sequence[int]], per_octave: int) -> list[list[int]]:
    """Joins bins so that at most ``per_octave`` lie between successive powers of two; returns each bin's
    least value and count.
    """
    sub_bits = per_octave.bit_length() - 1
    joined: dict[int, int] = {}
    for low, count in bins:
        wider = lower(low, sub_bits)
        joined[wider] = joined.get(wider, 0) + count
    return [[low, count] for low, count in joined.items()]


def _without_zeros(series: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the series without causes that never occurred."""
    causes = {
        name: {cause: values for cause, values in series[name].items() if any(values)}
        for name in ("reads", "programs", "erases")
    }
    return {**series, **causes}


def fewer_cells(map_: Mapping[str, Any], most: int) -> dict[str, Any]:
    """Returns an erase map of at most ``most`` cells, but at least one for each chip."""
    mean: list[list[float]] = map_["mean"]
    highest: list[list[int]] = map_["max"]
    step = -(-len(mean) * len(mean[0]) // most)
    per_cell, blocks = map_["blocks_per_cell"], map_["blocks_per_unit"]
    spans = range(0, len(mean[0]), step)

    def mean_of(row: list[float], at: int) -> float:
        # The last cell of a row may have fewer blocks.
        weights = [min(per_cell, blocks - cell * per_cell) for cell in range(at, min(at + step, len(row)))]
        cells = zip(row[at : at + step], weights, strict=True)
        mean: float = sum(value * weight for value, weight in cells) / sum(weights)
        return round(mean, 2)

    few = {
        **map_,
        "blocks_per_cell": per_cell * step,
        "mean": [[mean_of(row, at) for at in spans] for row in mean],
        "max": [[max(row[at : at + step]) for at in spans] for row in highest],
    }
    if per_cell * step == 1:
        del few["mean"]
    return few


def _rounded(value: Any) -> Any:
    """Rounds ratios to six decimals: a screen shows no more."""
    if isinstance(value, Mapping):
        return {name: _rounded(inner) for name, inner in value.items()}
    if isinstance(value, list):
        return [round(inner, 6) if isinstance(inner, float) else inner for inner in value]
    return value
