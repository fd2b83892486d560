"""What variants are called, and which of them may be compared: those that differ only in policies.

Policies are compared on a trace, a generator's keys and a seed. If variants differ in any of these, none of
them is the best, and ratios between them mean nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePath
from typing import TYPE_CHECKING, Any

from ftlab.units import count

if TYPE_CHECKING:
    from ftlab.results.section import Section

FILES = ("workload.trace", "workload.fio_job")
"""Keys that hold a file's name."""

LONGEST = 28
"""The maximum length at which a file's name is shown, unless files need more to be told apart."""

MOST_SOURCES = 8
"""The maximum number of workloads that a heading names."""


def is_policy(key: str) -> bool:
    """Whether a key belongs to the policies that are compared, not to the load on which they are compared."""
    return key != "seed" and not key.startswith("workload.")


@dataclass(frozen=True)
class Group:
    """Variants that differ only in policies."""

    load: str
    """The varied values that are not policies, which all members share; empty if no such key is varied."""
    members: list[int]
    """The variants' positions, in order; ratios refer to the first variant."""


class Labels:
    """The names of a comparison's variants, as tables and pictures show them."""

    def __init__(self, vary: Mapping[str, Sequence[str]], sets: Iterable[Mapping[str, str]]) -> None:
        """Makes the labels; ``vary`` has all values of each key, ``sets`` the values of each variant."""
        self.keys = list(vary)
        files = {key: short_names(vary[key]) for key in self.keys if key in FILES}
        self.shown = [[files.get(key, {}).get(value, value) for key, value in own.items()] for own in sets]
        """The varied values of each variant."""
        self.groups = self._groups()

    def __getitem__(self, position: int) -> str:
        """Returns a variant's whole name."""
        return ", ".join(self.shown[position])

    def policy(self, position: int) -> str:
        """Returns a variant's name within its group; empty if only the load was varied."""
        return ", ".join(self._chosen(position, is_policy))

    def load(self, position: int) -> str:
        """Returns the name of a variant's group."""
        return ", ".join(self._chosen(position, lambda key: not is_policy(key)))

    @property
    def policies(self) -> list[str]:
        """Returns the varied keys of the policies that are compared."""
        return [key for key in self.keys if is_policy(key)]

    @property
    def loads(self) -> list[str]:
        """Returns the varied keys of the load on which policies are compared."""
        return [key for key in self.keys if not is_policy(key)]

    def _chosen(self, position: int, wanted: Any) -> list[str]:
        return [value for key, value in zip(self.keys, self.shown[position], strict=True) if wanted(key)]

    def _groups(self) -> list[Group]:
        members: dict[str, list[int]] = {}
        for position in range(len(self.shown)):
            members.setdefault(self.load(position), []).append(position)
        return [Group(load, positions) for load, positions in members.items()]


def short_names(paths: Iterable[str]) -> dict[str, str]:
    """Returns, by path, the shortest end that distinguishes the path: the file name alone if all names
    differ.

    Ends longer than `LONGEST` are cut on the left, where names of traces differ least.
    """
    parts = {path: PurePath(path).parts for path in paths}
    ends = {
        path: _end(own, [other for other in parts.values() if other != own]) for path, own in parts.items()
    }
    for length in range(LONGEST, max(map(len, ends.values()), default=0)):
        cut = {path: cut_left(end, length) for path, end in ends.items()}
        if len(set(cut.values())) == len(cut):
            return cut
    return ends


def _end(own: tuple[str, ...], others: Sequence[tuple[str, ...]]) -> str:
    for length in range(1, len(own)):
        if all(other[-length:] != own[-length:] for other in others):
            return "/".join(own[-length:])
    return str(PurePath(*own))


def cut_left(text: str, length: int) -> str:
    """Fits ``text`` into this many characters: a longer text is cut to its end after an ellipsis."""
    return text if len(text) <= length else "\u2026" + text[len(text) - max(length, 2) + 1 :]


def source(result: Mapping[str, Any]) -> str:
    """Returns the name of a result's workload, without folders."""
    workload = result["config"]["workload"]
    named = (workload.get(key.removeprefix("workload.")) for key in FILES)
    return next((PurePath(name).name for name in named if name), "generated")


def parts(results: Sequence[Mapping[str, Any]], varied: Iterable[str] = ()) -> list[str]:
    """Returns a phrase, such as "scheduler noop", for each part that the results share and that was not
    varied.
    """
    first = results[0]["config"]
    looked_up = any(each["mapping"]["hits"] + each["mapping"]["misses"] for each in results)
    named = (
        ("host.scheduler", "scheduler", True),
        ("device.scheduler", "device scheduler", True),
        ("ftl.kind", "FTL", True),
        ("ftl.mapping_cache", "mapping cache", looked_up),
    )
    left_out = set(varied)
    chosen = []
    for key, name, shown in named:
        section, _, field = key.partition(".")
        value = first.get(section, {}).get(field)
        if shown and value is not None and key not in left_out:
            chosen.append(f"{name} {value}")
    return chosen


@dataclass(frozen=True)
class Shown:
    """A result with what was varied for it."""

    label: str
    """The varied values, joined by commas."""
    set: dict[str, str]
    """The varied keys with their values."""
    result: Section
    """The measured result."""


class Side:
    """Results side by side, as tables and pictures show them."""

    def __init__(self, config: dict[str, Any], vary: dict[str, list[str]], variants: Sequence[Shown]) -> None:
        """Makes the comparison; ``config`` is the resolved base, before any key was varied."""
        self.config = config
        self.vary = vary
        self.variants = variants
        self.named = ""
        """The file of the configuration, if it was read from one."""

    def labels(self) -> Labels:
        """Returns what tables and pictures call the variants."""
        return Labels(self.vary, (variant.set for variant in self.variants))

    def __len__(self) -> int:
        """Returns the number of variants."""
        return len(self.variants)


def title(config: Mapping[str, Any], named: str) -> str:
    """Returns what a configuration is called: the file it was read from, or else its preset."""
    return named or config.get("preset") or "configuration"


def heading(comparison: Side) -> list[str]:
    """Describes what was run: the parts that all variants share, then each workload with its requests."""
    results = [variant.result.to_dict() for variant in comparison.variants]
    name = title(comparison.config, comparison.named)
    sources = list(dict.fromkeys(_requests(result) for result in results))
    shared = ", ".join(parts(results, comparison.vary))
    if len(sources) == 1:
        return [f"{name} on {sources[0]}", *([shared] if shared else [])]
    more = len(sources) - MOST_SOURCES
    listed = [f"  {each}" for each in sources[:MOST_SOURCES]]
    return [f"{name}: {shared}" if shared else name, *listed, *([f"  and {more} more"] if more > 0 else [])]


def _requests(result: Mapping[str, Any]) -> str:
    trace = result["trace"]
    said = [f"{source(result)}: {count(trace['requests'])} requests"]
    if trace["requests"]:
        said.append(f"{trace['reads'] / trace['requests'] * 100:.0f} % reads")
    dropped = sum(trace["dropped"].values())
    if dropped:
        said.append(f"{count(dropped)} dropped")
    return ", ".join(said)
