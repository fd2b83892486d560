"""Colours, dashes and markers of all pictures and pages: a policy looks the same in all of them."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from functools import cache

from ftlab import _core

# Okabe and Ito's colours except yellow, then some of Tol's: distinguishable with all kinds of colour vision.
# The last three give every registered scheduler a colour of its own.
COLOURS = {
    "light": (
        *("#6b6b6b", "#e69f00", "#cc79a7", "#56b4e9", "#009e73", "#d55e00", "#0072b2", "#8a6d1f"),
        *("#882255", "#44aa99", "#332288", "#999933", "#7a2e0e", "#b01aa7", "#4d7a00"),
    ),
    "dark": (
        *("#b4b4b4", "#f0b429", "#dd8fbb", "#7cc7f2", "#2dc096", "#f0793a", "#4b9fe0", "#c8a95a"),
        *("#c75d8d", "#7fd6c8", "#9a8cf0", "#c4c46a", "#c98a6b", "#e871dd", "#93c24e"),
    ),
}
"""A colour for each place, on white and on black; further places repeat the colours from the first."""

OTHERS = {
    "light": (*("#4f5d75", "#b5654a", "#1f6f78", "#9c6b98", "#b8925a", "#7183c9", "#5e6a2f", "#22313f"),),
    "dark": (*("#93a3bf", "#e09a80", "#5fb3bd", "#c79bc3", "#e3c48c", "#b4c0f0", "#a9b770", "#c3cfda"),),
}
"""Colours of everything but policies (caches, workloads, ages) in pictures that have policies too."""

NEUTRAL = {
    "light": {
        **{"back": "#fcfcfb", "panel": "#ffffff", "bar": "#f3f4f6", "mark": "#fff3cd", "line": "#d9dde2"},
        **{"grid": "#e6e8eb", "text": "#1b1f23", "soft": "#575f68", "focus": "#0b62b8"},
        **{"good": "#00704e", "fair": "#855800", "bad": "#b03808"},
    },
    "dark": {
        **{"back": "#14171b", "panel": "#1b1f24", "bar": "#20262c", "mark": "#4a3c0e", "line": "#39414b"},
        **{"grid": "#2c333b", "text": "#e7eaee", "soft": "#a8b0ba", "focus": "#7ab8ff"},
        **{"good": "#3ecf9d", "fair": "#e0a83a", "bad": "#ff8a5c"},
    },
}
"""Colours of the backgrounds, lines, text and verdicts of pages."""

DASHES: tuple[tuple[int, ...], ...] = ((), (7, 3), (2, 2), (9, 3, 2, 3), (4, 2))
"""The dash patterns of lines, in pixels."""

SHAPES = (
    "M-1,0A1,1,0,1,1,1,0A1,1,0,1,1,-1,0Z",
    "M-.9,-.9H.9V.9H-.9Z",
    "M0,-1.1L1.1,.9H-1.1Z",
    "M0,-1.3L1.1,0L0,1.3L-1.1,0Z",
    "M0,1.1L1.1,-.9H-1.1Z",
    "M-.4,-1.2H.4V-.4H1.2V.4H.4V1.2H-.4V.4H-1.2V-.4H-.4Z",
    "M-1.2,-.8L-.8,-1.2L0,-.4L.8,-1.2L1.2,-.8L.4,0L1.2,.8L.8,1.2L0,.4L-.8,1.2L-1.2,.8L-.4,0Z",
)
"""The markers of lines, as paths in a square from -1 to 1. The combination of marker, dash and colour repeats
only after many places.
"""

CAUSES = {
    "host": "#8a8f98",
    "gc": "#b5485d",
    "wear": "#7d6550",
    "refresh": "#c2a67f",
    "map": "#5f8a3c",
    "gc-map": "#a6bf72",
    "dir": "#d3dfb2",
    "merge": "#d99aa6",
    "pad": "#54868c",
}
"""Colours of the causes of flash operations: none of them is a policy's, as both are on the same pages."""

REST = {"other tenants": "#c3c8d0", "the device's own": "#4d5560"}
"""Colours of the flash's time beside that of tenants that are shown."""

PARTS = {"wait": "#c3b1ea", "access": "#7a5fc4"}
"""Colours of the two parts of a latency, which no policy and no cause has."""

MERGES = {
    "full": "#8f2f45",
    "partial": "#d99aa6",
    "switch": "#54868c",
    "padded_switch": "#9fc4c7",
    "cooperative": "#c2a67f",
}
"""Colours of the kinds of merges."""

POLICIES = ("host.scheduler", "device.scheduler", "ftl.kind", "ftl.gc")
"""The keys of policies, in the order in which they are likely to be the subject of a picture."""


_SAID = {"baseline": "noop"}
"""ftlab's name of a policy, for each name in papers that contains no word of ftlab's name."""


@cache
def _registered() -> dict[str, list[str]]:
    return {key: [part["name"] for part in parts] for key, parts in json.loads(_core.components()).items()}


def places(name: str, values: Iterable[str]) -> dict[str, int]:
    """Returns the place of each value, which determines its colour, dash and marker.

    A policy has its place in the registry, also under the names that papers use (``MAP+``, ``Base-DFTL``);
    other values have the places that follow, in order. ``name`` is the key that has these values; if it is
    not the key of a policy, they are taken to be values of the first such key that has them all.
    """
    values = list(dict.fromkeys(values))
    registered = _registered()
    keys = [name] if name in registered else [key for key in POLICIES if key in registered]
    found = {key: {value: _policy(value, registered[key]) for value in values} for key in keys}
    key = next((key for key in keys if all(found[key].values())), name)
    known, policies = registered.get(key, []), found.get(key, {})
    placed: dict[str, int] = {}
    free = len(known)
    for value in values:
        policy = policies.get(value)
        place = known.index(policy) if policy else free
        if place in placed.values() or not policy:
            place, free = free, free + 1
        placed[value] = place
    return placed


def _policy(said: str, known: Sequence[str]) -> str | None:
    """Returns the policy that a value names, exactly or by one of its words."""
    lower = said.lower()
    lower = _SAID.get(lower, lower)
    if lower in known:
        return lower
    words = [word for word in re.split(r"[^a-z0-9+]+", lower) if word in known]
    return words[0] if len(words) == 1 else None


def is_policy(name: str, values: Iterable[str]) -> bool:
    """Whether these are values of a policy's key: of the one called ``name``, or of any that has them all."""
    registered = _registered()
    keys = [name] if name in registered else [key for key in POLICIES if key in registered]
    values = list(values)
    return any(all(_policy(value, registered[key]) for value in values) for key in keys)


def other(place: int) -> str:
    """Returns the colour of a place among everything but policies."""
    return OTHERS["light"][place % len(OTHERS["light"])]


def colour(place: int, theme: str = "light") -> str:
    """Returns the colour of a place."""
    return COLOURS[theme][place % len(COLOURS[theme])]


def dash(place: int) -> tuple[int, ...]:
    """Returns the dash of a place."""
    return DASHES[place % len(DASHES)]


def shape(place: int) -> str:
    """Returns the marker of a place."""
    return SHAPES[place % len(SHAPES)]


def for_page() -> dict[str, object]:
    """Returns the whole palette, for the script of a page."""
    return {
        "colours": COLOURS,
        "others": OTHERS,
        "dashes": DASHES,
        "shapes": SHAPES,
        "causes": CAUSES,
        "parts": PARTS,
        "rest": REST,
        "merges": MERGES,
    }


def css() -> str:
    """Returns all colours as CSS variables, for the reader's colour scheme or the page's ``data-theme``."""

    def variables(theme: str) -> str:
        places = {f"c{place}": value for place, value in enumerate(COLOURS[theme])}
        places |= {f"o{place}": value for place, value in enumerate(OTHERS[theme])}
        return " ".join(f"--{name}: {value};" for name, value in {**NEUTRAL[theme], **places}.items())

    dark = f"{variables('dark')} color-scheme: dark;"
    return (
        f":root {{ {variables('light')} color-scheme: light; }}\n"
        f'@media (prefers-color-scheme: dark) {{ :root:not([data-theme="light"]) {{ {dark} }} }}\n'
        f':root[data-theme="dark"] {{ {dark} }}\n'
    )


def themed(svg: str) -> str:
    """Makes a picture use the variables of `css` and the page's background, so that it follows the theme."""
    names = {value: f"c{place}" for place, value in enumerate(COLOURS["light"])}
    names |= {value: f"o{place}" for place, value in enumerate(OTHERS["light"])}
    names |= {
        NEUTRAL["light"][name]: name
        for name in ("text", "soft", "grid", "line", "panel", "good", "fair", "bad")
    }

    def variable(found: re.Match[str]) -> str:
        name = names.get(found[2].lower())
        return f'{found[1]}="var(--{name})"' if name else found[0]

    svg = svg.replace('fill="white"', 'fill="none"', 1)
    return re.sub(r'\b(fill|stroke)="(#[0-9a-fA-F]{6})"', variable, svg)
