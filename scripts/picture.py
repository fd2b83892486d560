"""Draws the picture of README.md and of the site's first page: `python scripts/picture.py FILE.svg`.

The picture shows the stack, and what each part does to mean latency: one trace on one device, of which one
part at a time is exchanged.
"""

from __future__ import annotations

import sys
from pathlib import Path
from xml.sax.saxutils import escape

import ftlab
from ftlab import palette

ROOT = Path(__file__).resolve().parents[1]
TRACE = ROOT / "traces" / "phone-mix.csv.gz"
BLOCKS = 1280
DEVICE = {
    "workload.out_of_range": "compact",
    "host.scheduler": "noop",
    "device.precondition": "fill",
    "flash.blocks_per_plane": BLOCKS,
}
"""Settings on top of the preset map-plus: a device that is full, and small enough to collect garbage."""


def chips(number: int) -> dict[str, object]:
    """Returns the settings that spread the same blocks over this many chips that work in parallel."""
    return {
        "flash.chips_per_channel": number,
        "flash.blocks_per_plane": BLOCKS // number,
        "device.scheduler": "direct",
        "device.queue_depth": 32,
    }


ROWS: tuple[tuple[str, str, dict[str, dict[str, object]], tuple[str, ...]], ...] = (
    (
        "I/O scheduler",
        "host",
        {name: {"host.scheduler": name} for name in ("noop", "row", "amphibian", "hp", "rb", "map", "map+")},
        ("map+", "rb"),
    ),
    (
        "FTL",
        "device",
        {name: {"ftl.kind": name} for name in ("dftl", "cdftl", "tpftl", "page")},
        ("cdftl", "tpftl", "page"),
    ),
    (
        "mapping cache",
        "device",
        {size: {"ftl.mapping_cache": size} for size in ("4KiB", "16KiB", "64KiB", "256KiB", "unlimited")},
        ("4KiB", "64KiB", "unlimited"),
    ),
    (
        "garbage collection",
        "device",
        {
            "greedy": {},
            "cost-benefit": {"ftl.gc": "cost-benefit"},
            "greedy, when idle": {"ftl.gc_background": True},
            "fifo": {"ftl.gc": "fifo"},
        },
        ("greedy, when idle",),
    ),
    (
        "NAND chips",
        "flash",
        {"1": chips(1), "2": chips(2), "4": chips(4)},
        ("2", "4"),
    ),
)
"""For each row: the layer, where it is, its alternatives, and which of them are labelled in addition to the
device's own.
"""

WIDTH, LEFT, RIGHT, TOP, STEP, MOST = 520, 174, 508, 96, 58, 34.0
FLOORS = {"host": 0, "device": 6, "flash": 4}
"""Each floor's place in the palette."""


def measured(keys: dict[str, object]) -> float:
    """Returns the mean latency of reads and writes in ms."""
    return ftlab.run("map-plus", trace=TRACE, set={**DEVICE, **keys}).latency.all.mean_ns / 1e6


def text(x: float, y: float, words: str, style: str = "", anchor: str = "start") -> str:
    """Returns the SVG text element for words at a place."""
    return f'<text x="{x:.4g}" y="{y:.4g}" class="{style}" text-anchor="{anchor}">{escape(words)}</text>'


def across(value: float) -> float:
    """Returns the x coordinate of a latency on the axis."""
    return LEFT + (RIGHT - LEFT) * value / MOST


def row(
    at: int, name: str, floor: str, means: dict[str, float], labelled: tuple[str, ...], base: float
) -> list[str]:
    """Draws a layer of the stack with its values; values beyond the axis are written at the axis's end."""
    y = TOP + at * STEP
    parts = [
        f'<rect x="10" y="{y}" width="150" height="{STEP - 18}" rx="5" class="box {floor}"/>',
        text(85, y + 25, name, "name", "middle"),
        f'<path d="M{LEFT} {y + 20}H{RIGHT}" class="grid"/>',
    ]
    if at:
        parts.append(f'<path d="M85 {y - 17}v13m-4 -5l4 5l4 -5" class="flow"/>')
    above = True
    for label, mean in means.items():
        if mean > MOST:
            parts.append(f'<path d="M{RIGHT - 6} {y + 15}l8 5l-8 5z" class="soft"/>')
            parts.append(text(RIGHT, y + 39, f"{label} {mean / 1000:.0f} s", "soft", "end"))
            continue
        x = across(mean)
        parts.append(f'<circle cx="{x:.4g}" cy="{y + 20}" r="6" class="dot {floor}"/>')
        if mean == base:
            parts.append(text(x + 8, y + 9, label))
        elif label in labelled:
            above = not above
            parts.append(text(x, y + (9 if above else 39), label, "", "middle"))
    return parts


def style() -> str:
    """Returns the style sheet with the colours of both themes and the fonts."""

    def rules(theme: str) -> str:
        tone, colours = palette.NEUTRAL[theme], palette.COLOURS[theme]
        floors = "".join(f".{floor}{{fill:{colours[place]}}}" for floor, place in FLOORS.items())
        return (
            f".back{{fill:{tone['back']}}}text{{fill:{tone['text']}}}text.soft{{fill:{tone['soft']}}}"
            f".soft{{fill:{tone['soft']}}}.grid{{stroke:{tone['line']}}}.flow,.base{{stroke:{tone['soft']}}}{floors}"
        )

    return (
        "<style>text{font:13px sans-serif}.title{font:bold 17px sans-serif}.name{font:bold 13.5px sans-serif}"
        ".box{fill-opacity:.22}.grid,.flow,.base{fill:none}.base{stroke-dasharray:4 3}"
        f"{rules('light')}@media(prefers-color-scheme:dark){{{rules('dark')}}}</style>"
    )


def drawn() -> str:
    """Makes the runs; returns the picture as SVG."""
    means = [{label: measured(keys) for label, keys in row[2].items()} for row in ROWS]
    base = next(iter(means[0].values()))
    end = TOP + len(ROWS) * STEP
    parts = [
        style(),
        f'<rect width="{WIDTH}" height="{end + 42}" rx="8" class="back"/>',
        text(10, 28, "One trace, one device, one part changed at a time", "title"),
        text(10, 50, "Phone-like applications on a filled eMMC. Each dot: mean latency with", "soft"),
        text(10, 67, f"another choice of that part. Dashed: the device as it is, {base:.1f} ms.", "soft"),
        f'<path d="M{across(base):.4g} {TOP - 8}V{end - 8}" class="base"/>',
    ]
    for at, ((name, floor, _, labelled), values) in enumerate(zip(ROWS, means, strict=True)):
        parts += row(at, name, floor, values, labelled, base)
    parts += [text(across(tick), end + 12, str(tick), "soft", "middle") for tick in (0, 10, 20, 30)]
    parts.append(text(RIGHT, end + 30, "mean latency, ms", "soft", "end"))
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {end + 42}" role="img">'
    return head + "\n".join(parts) + "</svg>\n"


if __name__ == "__main__":
    Path(sys.argv[1]).write_text(drawn())
