"""Draws the pictures of the explaining pages: ``python scripts/explained.py [NAME...]``, or `make picture`.

Each picture is drawn from runs that take seconds, of a trace or a configuration that is on the picture's
page. All are SVG on a white ground, which suits both themes of the site, and narrow, so that their text is
legible on a telephone.
"""

from __future__ import annotations

import re
import sys
import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import altair as alt
import vl_convert

import ftlab
from ftlab.palette import CAUSES, COLOURS, NEUTRAL

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests" / "python"))

from pages import DOCS, ROOT, files
from timelines import Slice, Trace

WIDTH = 400
"""The width of the plot in pixels; a picture, with its labels, is about 480 pixels wide."""

ORANGE, PINK, SKY, GREEN, RED, BLUE = COLOURS["light"][1:7]
DARK = (RED, BLUE)
"""The colours on which text is white."""

LEGEND = alt.Legend(title=None, orient="bottom", columns=3, symbolType="square")
GRID = NEUTRAL["light"]["grid"]


@dataclass
class Box:
    """A box that covers a stretch of time on one row."""

    row: str
    begin: float
    end: float
    kind: str
    text: str = ""


def saved(folder: Path, page: str) -> Path:
    """Saves the configuration file that a page shows, as its readers do; returns its path."""
    ((name, text),) = files(DOCS / page).items()
    file = folder / name
    file.write_text(text)
    return file


def timeline(folder: Path, config: str | Path, window: str | None = None, **options: Any) -> Trace:
    """Runs a configuration; returns the timeline, which shows what each chip did."""
    out = folder / "run.pftrace"
    ftlab.run(config, timeline=out, timeline_window=window, **options)
    return Trace(out)


def steps(trace: Trace, chips: Iterable[int]) -> list[tuple[str, Slice]]:
    """Returns the operations of the chips' cells, each with its chip, in the order of chips and times."""
    names = [f"chip {chip}" for chip in chips]
    return [(name, one) for name in names for one in trace.on(name) if one.category != "bus"]


def heading(text: str) -> alt.TitleParams:
    """Makes the heading of a panel."""
    colour = NEUTRAL["light"]["text"]
    return alt.TitleParams(text, anchor="start", fontSize=13, fontWeight="normal", color=colour, offset=6)


def boxes_drawn(
    boxes: Sequence[Box],
    colours: Mapping[str, str],
    title: str,
    *,
    unit: str | None,
    domain: tuple[float, float] | None = None,
    step: int = 30,
    font: int = 11,
    gap: float = 0.7,
) -> alt.LayerChart:
    """Draws boxes on rows over time; if there is no ``unit``, the time axis is left out."""
    rows, kinds = list(dict.fromkeys(box.row for box in boxes)), list(colours)
    limits = domain or (0, max(box.end for box in boxes))
    labels = alt.Axis(title=None, domain=False, ticks=False, labelPadding=6)
    time = alt.Axis(title=unit, gridColor=GRID, domain=False, tickCount=5) if unit else None
    place = alt.Y("row:N", sort=rows, scale=alt.Scale(domain=rows, paddingInner=0.2), axis=labels)
    base = alt.Chart(alt.InlineData(values=[asdict(box) for box in boxes]))
    bars = base.mark_bar(aria=False, stroke="white", strokeWidth=gap, clip=True).encode(
        x=alt.X("begin:Q", scale=alt.Scale(domain=list(limits), nice=False), axis=time),
        x2="end:Q",
        y=place,
        color=alt.Color("kind:N", scale=alt.Scale(domain=kinds, range=list(colours.values())), legend=LEGEND),
    )
    white = alt.FieldOneOfPredicate("kind", [kind for kind in kinds if colours[kind] in DARK])
    words = (
        base.transform_filter("datum.text != ''")
        .transform_calculate(middle="(datum.begin + datum.end) / 2")
        .mark_text(aria=False, fontSize=font, clip=True)
        .encode(
            x="middle:Q",
            y=place,
            text="text:N",
            color=alt.condition(white, alt.value("white"), alt.value("black")),
        )
    )
    chart: Any = alt.layer(bars, words)
    drawn: alt.LayerChart = chart.properties(width=WIDTH, height=step * len(rows), title=heading(title))
    return drawn


def map_plus(folder: Path) -> alt.TopLevelMixin:
    """Draws twelve reads that arrive together, under four schedulers."""
    file = saved(folder, "how-map-plus-works.md")
    translation, hits, *batches = colours = {
        "translation page read": CAUSES["map"],
        "hit queue": CAUSES["host"],
        "batch A": ORANGE,
        "batch B": GREEN,
        "batch C": PINK,
    }
    boxes: list[Box] = []
    for scheduler in ("noop", "hp", "map", "map+"):
        for _, one in steps(timeline(folder, "map-plus", trace=file, host__scheduler=scheduler), [0]):
            # The first six reads fill the cache; the other reads arrive 10 ms after the first one.
            number, begin, end = one.args["request"] - 6, one.begin / 1e3 - 1e4, one.end / 1e3 - 1e4
            if number < 1:
                continue
            if one.args["cause"] == "map":
                boxes.append(Box(scheduler, begin, end, translation))
                continue
            kind = hits if number in (5, 8, 9, 10, 11, 12) else batches[one.args["lpn"] // 512]
            if boxes and (boxes[-1].row, boxes[-1].text) == (scheduler, str(number)):
                boxes[-1].end = end
            else:
                boxes.append(Box(scheduler, begin, end, kind, str(number)))
    title = "What the chip does, request by request"
    return boxes_drawn(boxes, colours, title, unit="time since the twelve arrived (us)")


SPEEDS = {
    "up to 320 us": (320, GREEN),
    "to 360 us": (360, SKY),
    "to 420 us": (420, ORANGE),
    "longer": (10**9, RED),
}
"""The classes of programs, each with its longest time in us and its colour."""


def vios(folder: Path) -> alt.TopLevelMixin:
    """Draws the programs of four chips, long and short, without and with VIOS."""
    file = saved(folder, "how-vios-works.md")
    colours = {name: colour for name, (_, colour) in SPEEDS.items()}
    panels = []
    for scheduler, unit in (("piq", None), ("vios", "time (ms)")):
        boxes = []
        for chip, one in steps(timeline(folder, file, device__scheduler=scheduler), range(4)):
            took = (one.end - one.begin) / 1000
            kind = next(name for name, (most, _) in SPEEDS.items() if took <= most)
            boxes.append(Box(chip, one.begin / 1e6, one.end / 1e6, kind))
        panels.append(boxes_drawn(boxes, colours, scheduler, unit=unit, domain=(0, 6), step=22))
    return alt.vconcat(*panels, spacing=8)


BEGIN, SPAN = 42, 3
"""The begin and the length of the stretch of the benchmark that is drawn, in s."""

FILE = range(94, 222)
"""The logical blocks in which the benchmark's file lies."""


def coop(folder: Path) -> alt.TopLevelMixin:
    """Draws which blocks of a file are written when, and during which of these writes a merge takes place.

    The copies of a merge carry the LPN of the write that caused the merge, so they are drawn in that write's
    block.
    """
    host, merge = colours = {"pages of the host": CAUSES["host"], "copies of a merge": CAUSES["merge"]}
    config, window = ROOT / "workloads" / "coop" / "sysbench-4KiB.toml", f"{BEGIN}s:{BEGIN + SPAN}s"
    fill = alt.Color(
        "kind:N", scale=alt.Scale(domain=list(colours), range=list(colours.values())), legend=LEGEND
    )
    block_axis = alt.Axis(title="block being written", values=[0, 32, 64, 96, 128], gridColor=GRID)
    panels = []
    for scheduler, unit in (("noop", None), ("coop", "time (s)")):
        areas: list[dict[str, Any]] = []
        trace = timeline(folder, config, window, ftl__kind="bast", host__scheduler=scheduler)
        for _, one in steps(trace, [0]):
            number = one.args.get("lpn", 0) // 64
            if number not in FILE:
                continue
            begin, end = one.begin / 1e9 - BEGIN, one.end / 1e9 - BEGIN
            if not areas or areas[-1]["block"] != number - FILE.start:
                areas.append({"block": number - FILE.start, "begin": begin, "kind": host})
            # A page that the host writes amid the copies of a merge counts as part of the merge.
            if one.args["cause"] == "merge":
                areas[-1]["kind"] = merge
            # Every area is drawn large enough to be seen: three blocks high, and a pixel and a half wide.
            areas[-1]["below"] = areas[-1]["block"] + 3
            areas[-1]["end"] = max(end, areas[-1]["begin"] + 1.5 * SPAN / WIDTH)
        time = alt.Axis(title=unit, grid=False, tickCount=5) if unit else None
        panels.append(
            alt.Chart(alt.InlineData(values=areas))
            .mark_rect(aria=False, clip=True)
            .encode(
                x=alt.X("begin:Q", scale=alt.Scale(domain=[0, SPAN], nice=False), axis=time),
                x2="end:Q",
                y=alt.Y("block:Q", scale=alt.Scale(domain=[0, len(FILE)], reverse=True), axis=block_axis),
                y2="below:Q",
                color=fill,
            )
            .properties(width=WIDTH, height=190, title=heading(scheduler))
        )
    return alt.vconcat(*panels, spacing=8)


FLUSH = (34.0, 80.0)
"""The stretch of time that is drawn, in ms: the first flush, and then the writes that waited for it."""


def msftl(folder: Path) -> alt.TopLevelMixin:
    """Draws what four chips do during a flush, and after it."""
    file = saved(folder, "how-msftl-works.md")
    data, read, program = colours = {
        "program of data": CAUSES["host"],
        "read of mappings": CAUSES["gc-map"],
        "program of mappings": CAUSES["map"],
    }
    panels = []
    for kind, unit in (("dftl", None), ("minipage", None), ("msftl", "time (ms)")):
        boxes: list[Box] = []
        for chip, one in steps(timeline(folder, file, ftl__kind=kind), range(4)):
            begin, end = one.begin / 1e6, one.end / 1e6
            if not FLUSH[0] <= begin < FLUSH[1]:
                continue
            what = {"program host": data, "read map": read, "program map": program}[one.name]
            if what == read and boxes and (boxes[-1].row, boxes[-1].kind) == (chip, read):
                boxes[-1].end = end
            else:
                boxes.append(Box(chip, begin, end, what))
        panels.append(boxes_drawn(boxes, colours, kind, unit=unit, domain=FLUSH, step=16, gap=0.4))
    return alt.vconcat(*panels, spacing=6)


def time(folder: Path) -> alt.TopLevelMixin:
    """Draws four requests in the host, on the bus and on two chips."""
    file = saved(folder, "how-time-is-kept.md")
    keys = {
        "host.scheduler": "noop",
        "ftl.kind": "cdftl",
        "device.scheduler": "direct",
        "device.queue_depth": 2,
        "flash.chips_per_channel": 2,
        "flash.transfer": "10ns",
    }
    trace = timeline(folder, "map-plus", trace=file, set=keys)
    waiting = "waiting in the host"
    colours = {"request 1": BLUE, "request 2": ORANGE, "request 3": GREEN, "request 4": PINK}
    boxes = []
    for one in sorted(trace.on("requests"), key=lambda one: int(one.args["request"])):
        name = f"request {one.args['request']}"
        for part in one.inside:
            kind = waiting if part.name == "wait" else name
            boxes.append(Box(name, part.begin / 1e3, part.end / 1e3, kind))
    words = {
        "data out": "out",
        "data in": "in",
        "read map": "map",
        "read host": "read",
        "program host": "program",
    }
    work = [("bus", one) for one in trace.on("bus")] + steps(trace, range(2))
    for row, one in work:
        name = f"request {one.args['request']}"
        boxes.append(Box(row, one.begin / 1e3, one.end / 1e3, name, words[one.name]))
    colours[waiting] = NEUTRAL["light"]["line"]
    return boxes_drawn(boxes, colours, "Four requests", unit="time (us)", step=26, font=10)


def write(folder: Path) -> alt.TopLevelMixin:
    """Draws eight writes and a flush, from the core to the flash, coloured by word line."""
    shown = files(DOCS / "where-a-write-goes.md")
    for name, text in shown.items():
        (folder / name).write_text(text)
    config, trace_file = (next(name for name in shown if name.endswith(end)) for end in (".toml", ".csv"))
    trace = timeline(folder, folder / config, trace=folder / trace_file)
    flush, *lines = colours = {
        "flush": NEUTRAL["light"]["line"],
        "writes 1 to 3": BLUE,
        "writes 4 to 6": ORANGE,
        "writes 7 and 8": GREEN,
    }
    kinds = {number: lines[(number - 1) // 3] for number in range(1, 9)}
    boxes = []
    for row in ("requests", "core 0", "link to the device"):
        for one in trace.on(row):
            number = int(one.args["request"])
            text = str(number) if row == "requests" and number in kinds else ""
            kind = kinds.get(number, flush)
            boxes.append(Box(row.removesuffix(" to the device"), one.begin / 1e3, one.end / 1e3, kind, text))
    for row in ("chip 0", "chip 1"):
        for one in trace.on(row):
            # What a flush programs has no LPN of its own: it is the last word line.
            kind = kinds[one.args.get("lpn", 7) + 1]
            text = "in" if one.category == "bus" else "program"
            boxes.append(Box(row, one.begin / 1e3, one.end / 1e3, kind, text))
    return boxes_drawn(boxes, colours, "Eight writes, then a flush", unit="time (us)", step=26, font=10)


PICTURES: dict[str, Callable[[Path], alt.TopLevelMixin]] = {
    "map-plus": map_plus,
    "vios": vios,
    "coop": coop,
    "msftl": msftl,
    "time": time,
    "write": write,
}
"""The functions that draw `docs/images/how-NAME.svg`, by NAME."""


def svg(chart: Any) -> str:
    """Returns a chart as the text of an SVG file."""
    chart = (
        chart.configure(font="DejaVu Sans, Arial, sans-serif", background="white", padding=12)
        .configure_view(stroke=None)
        .configure_axis(labelFontSize=12, titleFontSize=12, titleFontWeight="normal")
        .configure_legend(labelFontSize=12, labelLimit=0)
    )
    # Hundredths of a pixel are precise enough.
    return re.sub(r"(\.\d\d)\d+", r"\1", vl_convert.vegalite_to_svg(chart.to_dict())) + "\n"


def main(names: Sequence[str]) -> None:
    """Draws the pictures with these names, or all pictures if there are no names."""
    for name in names or PICTURES:
        with tempfile.TemporaryDirectory() as folder:
            text = svg(PICTURES[name](Path(folder)))
        target = DOCS / "images" / f"how-{name}.svg"
        target.write_text(text)
        print(f"{target.relative_to(ROOT)}: {len(text) / 1000:.0f} kB")


if __name__ == "__main__":
    main(sys.argv[1:])
