"""Compares the presets of drives with what was measured on the drives: docs/drives.md.

    python scripts/drives.py                           # print the page
    python scripts/drives.py --write FILE              # write it and its pictures (`make validation`)

The measured rows are those of examples/drives, whose column `source` names the place of each. The exit status
is 1 if an error is out of the bound that the page states.
"""

from __future__ import annotations

import argparse
import math
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from ftlab.calibration.distance import WEIGHTS
from ftlab.calibration.fit import Pair, check
from ftlab.calibration.measured import read
from ftlab.calibration.model import cannot
from ftlab.calibration.row import Row
from ftlab.palette import COLOURS, NEUTRAL
from ftlab.progress import Reporter
from ftlab.studies.executor import Threads

ROOT = Path(__file__).resolve().parents[1]
MEASURED = ROOT / "examples" / "drives"
PRESETS = "crates/config/presets"
IMAGES = ROOT / "docs" / "images"

HEAD = """<!-- Written by scripts/drives.py (`make validation`); not edited by hand. -->

# Drives, measured and modelled

How far the presets of drives are from what was measured on the drives. `make validation` runs every job
again and writes this page; it fails if an error leaves its bound. [Calibrate a drive](calibrate-a-drive.md)
makes such a preset. One alone, by hand:

```text
ftlab calibrate --check crates/config/presets/NAME.toml --measured examples/drives/TABLE.csv
```

Each row is a closed loop: `depth` requests outstanding in each of `jobs` jobs, one unless there is a column.
Latencies are in us; "off" is by how many per cent the model's mean is above what was measured, and behind it
the same for percentiles. Rows that begin with a number **in bold** told the model its numbers (fitted), the
others did not (predicted). In the pictures points were measured, lines are the model.

In the presets' files each number has a mark: *sheet* (its maker or a standard says so), *published* (others
who measured or modelled the drive do), *fitted* (to which rows, and between which values it is known) or
*assumed* (nothing tells it).
"""


@dataclass(frozen=True)
class Series:
    """Rows of a drive that belong together."""

    title: str
    chosen: Callable[[Row], bool]
    fitted: Callable[[Row], bool]
    most_mean: float
    """The greatest error of a mean, as a share, that `make validation` accepts."""
    said: str
    """What the figures show, and what part of a drive would explain what is missed."""


@dataclass(frozen=True)
class Drive:
    """A preset and the table it is compared with."""

    model: str
    """The model's file, from the root of the project."""
    title: str
    table: str
    said: str
    series: tuple[Series, ...]

    @property
    def short(self) -> str:
        """Returns the title without the name of the file."""
        return self.title.partition(":")[0]


def job(op: str, bs: int, jobs: Sequence[int] = (1,), most: int = 512) -> Callable[[Row], bool]:
    """Returns whether a row is of this operation, size and number of jobs, up to a depth."""
    return lambda row: row.op == op and row.bs == bs and row.jobs in jobs and row.depth <= most


def never(_: Row) -> bool:
    """Tells that no row was fitted."""
    return False


READS = "Random reads of 4 KiB"
RANDOM_WRITES = "Random writes of 4 KiB"
STREAM = "Sequential reads of 128 KiB"
AS_LONG = """Random reads tell `device.command_time`. The model's controller takes as long for a write as
for a read, the drive does not."""
CACHE_WRITES = """Writes of 128 KiB into the empty cache (`ftlab run nvme-qlc --set
workload.replay=closed --set host.queue_depth=32 --set device.precondition=none --set
workload.synthetic.requests=8000 --set workload.synthetic.size=128KiB --set
workload.synthetic.pattern=sequential --set workload.synthetic.read_share=0%`) take 1,717 MB/s;
`flash.slc_program` is fitted to 1,700."""
UFS_STREAM = """Sequential reads tell the link. Writes into the empty cache (the command of the P1, with
`ufs-3.1`) take 1,202 MB/s; `flash.slc_program` is fitted to 1,200."""

DRIVES: tuple[Drive, ...] = (
    Drive(
        f"{PRESETS}/nvme-980-pro.toml",
        "Samsung 980 PRO 1 TB: preset `nvme-980-pro`",
        "samsung-980-pro.csv",
        """A client drive with TLC and PCIe 4, measured with fio and SPDK after two fills
(stonet-research/icpe24_io_scheduler_study_artifact, commit 013f1e1, MIT licence; ICPE
2024). Its makers state neither dies nor times of its NAND. The model has 40 lanes that
read side by side, 5 on each channel; with up to 7 on each the error is within 10 % of
the best, or further off by chance only.""",
        (
            Series(
                "Random reads of 4 KiB, one job",
                job("randread", 4096),
                lambda row: True,
                0.02,
                """Fitted to depths 1, 4, 16, 64 and 256 alone (`--only jobs=1 --hold-out
depth=2,8,32,128`), the model predicts the other four within 1.0 % of the mean and 7.0 %
of each percentile.""",
            ),
            Series(
                "Random reads of 4 KiB, two jobs",
                job("randread", 4096, (2,)),
                never,
                0.13,
                """No model whose requests are alike can meet both series: the drive answers two jobs of
depth 1 in 54.2 us and one job of depth 2 in 60.4 us, though as many requests are
outstanding. From 16 outstanding on it is the other way round.""",
            ),
        ),
    ),
    Drive(
        f"{PRESETS}/nvme-zn540.toml",
        "Western Digital ZN540 1 TB: preset `nvme-zn540`",
        "wd-zn540.csv",
        """A drive with zones and TLC, modelled as a conventional one; measured with fio and SPDK
(Krien/NVMeBenchmarks, commit 01f40f1, MIT licence; CLUSTER 2023). [Model a
drive](model-a-drive.md) has a model of it by hand.""",
        (
            Series(
                "Random reads of 4 KiB",
                job("randread", 4096, (1, 2, 4, 8)),
                lambda row: row.jobs == 1,
                0.06,
                """At depth 128 and 256 the fit stands between two rates: the drive gives 437,000 random
reads a second and 408,000 sequential ones, and the model has one controller for both; no time
of one controller is within 3 % of both. A time of its own for what is read ahead would explain
both rates.""",
            ),
            Series(
                "Random reads of 16 KiB",
                job("randread", 16384, (1, 2, 4, 8)),
                lambda row: row.jobs == 1 and row.depth in (1, 64),
                0.07,
                """Predicted from reads of 4 KiB and two rows more. Depth 64 is needed: the drive gives no
more than 160,000 of these reads a second, and depth 1 alone cannot tell what bounds them, the
controller's time for each page (`device.unit_time`) or the channels. A fit without it was
12.5 % off beyond depth 32.""",
            ),
            Series(
                "Sequential reads of 4 KiB",
                job("read", 4096, (1,), 128),
                lambda row: row.depth in (1, 4, 128),
                0.08,
                """From the read-ahead. The drive's slowest reads (p99.9) are longer than the model's:
something interrupts its streams once in a thousand reads. Beyond depth 128 the drive
gives 322,000 a second instead of 408,000, which no part of the model explains.""",
            ),
            Series(
                "Writes of 4 KiB, one in each of several zones",
                lambda row: row.op == "write" and row.bs == 4096,
                lambda row: row.jobs in (1, 8),
                0.17,
                """The drive writes 186,000 a second at most, bound by its controller
(`device.command_time_write`) and not by its flash. With two zones the drive's writes
wait for each other and the model's do not: its controller takes the same time for each,
that of a drive varies. One whose times are exponential would answer two in 13.8 us, by mean
value analysis (`ftlab.calibration.mva`).""",
            ),
            Series(
                "Writes of 16 KiB, one in each of several zones",
                lambda row: row.op == "write" and row.bs == 16384,
                lambda row: row.jobs <= 8,
                0.02,
                """These are bound by the flash. The percentiles were given no weight: the model's dies free
room in the buffer in step, the drive's more evenly.""",
            ),
        ),
    ),
    Drive(
        "examples/drives/zn540-appends.toml",
        "The ZN540 whose host appends: `examples/drives/zn540-appends.toml`",
        "wd-zn540.csv",
        """An append takes the drive longer than a write, and ftlab has no appends: this is the preset with
other times for writes.""",
        (
            Series(
                "Appends of 4 KiB to one zone",
                job("append", 4096),
                lambda row: row.depth in (1, 4, 16, 256),
                0.15,
                """132,000 appends a second are the most, and the model's too. At depth 2 the drive's appends
wait for each other and the model's do not, as with its writes.""",
            ),
            Series(
                "Appends of 16 KiB to one zone",
                job("append", 16384),
                lambda row: row.depth == 1,
                0.04,
                """Predicted from one row; the flash bounds them.""",
            ),
        ),
    ),
    Drive(
        "examples/drives/nvme-a.toml",
        "A conventional NVMe drive, not named: `examples/drives/nvme-a.toml`",
        "nvme-a.csv",
        """Of the same measurements: random writes of a conventional drive into its write cache.""",
        (
            Series(
                "Random writes of 4 KiB",
                job("randwrite", 4096),
                lambda row: row.depth not in (8, 32, 128, 512),
                0.05,
                """The drive answers single writes in 9.5 us and two at once in 10.4 us. The controller of
the model takes the same time for every write, so that two of them need not wait for each other: the fit
stands in between.

p99 is too short: on the drive it is 6 times the mean at depth 8 to 32, as if a waiting write were chosen at
random. The model's writes wait in one line for whichever die is idle first; no key chooses among them.""",
            ),
        ),
    ),
    Drive(
        f"{PRESETS}/nvme-qlc.toml",
        "Crucial P1 1 TB: preset `nvme-qlc`",
        "crucial-p1.csv",
        """A client drive with QLC and PCIe 3. The figures are the maker's, each an "up to", by way of
[TechReport](https://techreport.com/review/34266/crucial-p1-500-gb-qlc-nvme-ssd-reviewed), which
has them for three sizes, and [KitGuru](https://kitguru.net/components/ssd-drives/simon-crisp/crucial-p1-1000gb-nvme-ssd-review/9).
At which depth they hold is not said; 32 is assumed, and the means follow from it.""",
        (
            Series(
                READS,
                job("randread", 4096),
                lambda row: True,
                0.02,
                """Random reads tell `flash.read`, random writes `device.command_time`, sequential reads the
link. **Predicted** are the random reads of the other two sizes, with half and twice the dies:
`--set flash.chips_per_channel=1` (500 GB) and `=4` (2 TB) give 92,200 and 239,800 reads a
second, where the maker has 90,000 and 250,000.

```text
ftlab run nvme-qlc --set workload.replay=closed --set host.queue_depth=32 \\
    --set workload.synthetic.requests=50000 --set workload.synthetic.size=4KiB \\
    --set workload.synthetic.read_share=100% --set flash.chips_per_channel=1
```""",
            ),
            Series(RANDOM_WRITES, job("randwrite", 4096), lambda row: True, 0.02, ""),
            Series(
                STREAM,
                job("read", 131072),
                lambda row: True,
                0.02,
                f"""{CACHE_WRITES} **Predicted**, with
the other sizes' chips: 862 MB/s (500 GB) and 2,000 MB/s (2 TB), where the maker has 950
(KitGuru: 905) and 1,750. The model's 2 TB are bound by the link, the drive by something
before it.

[A review](https://techpowerup.com/review/crucial-p1-nvme-m-2-ssd-1-tb/6.html) filled the drive:
1.6 GB/s until 140 GB were written, then 150 MB/s. To these two steps the cache and
`flash.program` are fitted: 182,662 requests, the model's 24 GB, give 1,709 and 146 MB/s.""",
            ),
        ),
    ),
    Drive(
        f"{PRESETS}/ufs-3.1.toml",
        "Samsung eUFS 3.1 512 GB: preset `ufs-3.1`",
        "samsung-eufs-3.1.csv",
        """A drive for telephones. The four figures are the maker's of March 2020, each an "up to", by
way of [Liliputing](https://liliputing.com/2020/03/samsungs-ufs-3-1-storage-brings-ssd-speeds-to-smartphones.html).
At which depth they hold is not said; 32 is assumed.""",
        (
            Series(READS, job("randread", 4096), lambda row: True, 0.02, ""),
            Series(RANDOM_WRITES, job("randwrite", 4096), never, 0.31, AS_LONG),
            Series(STREAM, job("read", 131072), lambda row: True, 0.02, UFS_STREAM),
        ),
    ),
    Drive(
        f"{PRESETS}/emmc-5.1.toml",
        "Samsung eMMC 5.1 64 GB: preset `emmc-5.1`",
        "samsung-emmc-5.1.csv",
        """Flash behind an eMMC controller. The four figures are the maker's of February 2015, each an
"up to", by way of [SamMobile](http://sammobile.com/2015/02/18/samsung-introduces-emmc-5-1-based-flash-memory).
At which depth they hold is not said; 32, the length of the command queue, is assumed.""",
        (
            Series(READS, job("randread", 4096), lambda row: True, 0.02, ""),
            Series(RANDOM_WRITES, job("randwrite", 4096), never, 0.19, AS_LONG),
            Series(
                STREAM,
                job("read", 131072),
                lambda row: True,
                0.02,
                "Sequential reads tell `flash.transfer`, sequential writes `flash.program`.",
            ),
            Series(
                "Sequential writes of 128 KiB",
                job("write", 131072),
                lambda row: True,
                0.02,
                "",
            ),
        ),
    ),
)


def measured(drive: Drive, folder: Path, reporter: Reporter) -> list[tuple[Series, list[Pair]]]:
    """Runs the jobs of a drive's rows on its preset; returns the pairs of each series."""
    rows = [row for row in read([MEASURED / drive.table]) if not cannot(row)]
    wanted = [row for row in rows if any(series.chosen(row) for series in drive.series)]
    path = str(ROOT / drive.model)
    found = check(path, wanted, WEIGHTS, Threads(), reporter, folder)
    return [(series, [pair for pair in found.pairs if series.chosen(pair.row)]) for series in drive.series]


def signed(error: float | None) -> str:
    """Formats ln(model / measured) in per cent."""
    return "" if error is None else f"{100 * math.expm1(error):+.1f}"


def table_of(series: Series, pairs: Sequence[Pair]) -> list[str]:
    """Returns the lines of a series' table."""
    # Depths of several jobs are those of several rows: a column has their number, unless all are alike.
    alike = len({each.row.jobs for each in pairs}) == 1
    names = ["depth", *([] if alike else ["jobs"]), "mean: measured", "model", "off", "p50", "p99", "p99.9"]
    lines = [f"| {' | '.join(names)} |", "|" + "---|" * len(names)]
    for each in pairs:
        depth = f"**{each.row.depth}**" if series.fitted(each.row) else str(each.row.depth)
        cells = [depth, *([] if alike else [str(each.row.jobs)]), *figures(each)]
        lines.append(f"| {' | '.join(cells)} |")
    return lines


def figures(pair: Pair) -> list[str]:
    """Returns the means of a row, and by how much the model is off."""
    off = [signed(pair.errors.get(name)) for name in ("mean_us", "p50_us", "p99_us", "p999_us")]
    return [f"{pair.row.mean_us:,.2f}", f"{pair.model.mean_us:,.2f}", *off]


def sheet(found: Sequence[tuple[Series, list[Pair]]]) -> str:
    """Returns the table and the sentences of a drive of which a maker states one rate for each load."""
    names = ["load", "mean: measured", "model", "off"]
    lines = [f"| {' | '.join(names)} |", "|" + "---|" * len(names)]
    for series, pairs in found:
        (pair,) = pairs
        title = f"**{series.title}**" if series.fitted(pair.row) else series.title
        lines.append(f"| {' | '.join([title, *figures(pair)[:3]])} |")
    table = "\n".join(lines)
    said = "\n\n".join(series.said for series, _ in found if series.said)
    return f"\n{table}\n\n{said}\n"


def out_of_bound(drive: Drive, series: Series, pairs: Sequence[Pair]) -> list[str]:
    """Returns what is further off than the page says."""
    where = f"{drive.model}: {series.title}"
    return [
        f"{where}, depth {each.row.depth}, jobs {each.row.jobs}: {signed(each.errors['mean_us'])} %"
        for each in pairs
        if abs(math.expm1(each.errors["mean_us"])) > series.most_mean
    ]


def picture(drive: Drive, found: Sequence[tuple[Series, list[Pair]]], path: Path) -> None:
    """Draws measured points and modelled lines of a drive's series, mean, p50 and p99 over depth."""
    import altair as alt
    import vl_convert

    panels = []
    for series, pairs in found:
        points = [
            {"outstanding": each.row.depth * each.row.jobs, "us": value, "figure": name, "of": of}
            for each in pairs
            for name in ("mean", "p50", "p99")
            for of, figures in (("measured", each.row), ("model", each.model))
            if (value := getattr(figures, f"{name}_us")) is not None
        ]
        base = alt.Chart(alt.InlineData(points)).encode(
            x=alt.X("outstanding:Q", scale=alt.Scale(type="log", base=2), title="requests outstanding"),
            y=alt.Y("us:Q", scale=alt.Scale(type="log"), title="latency (us)"),
            color=alt.Color("figure:N", scale=alt.Scale(range=list(COLOURS["light"][1:4])), title=None),
        )
        line = base.transform_filter("datum.of == 'model'").mark_line()
        dots = base.transform_filter("datum.of == 'measured'").mark_point(filled=True, size=36)
        panels.append((line + dots).properties(width=320, height=220, title=series.title))
    chart = (
        alt.vconcat(*panels).configure_axis(gridColor=NEUTRAL["light"]["grid"]).configure(background="white")
    )
    path.write_text(vl_convert.vegalite_to_svg(chart.to_dict()))


def page(images: Path | None) -> tuple[str, list[str]]:
    """Returns the page, and the errors that are out of bounds; pictures go to ``images``."""
    parts, wrong = [HEAD], []
    with tempfile.TemporaryDirectory() as folder, Reporter(runs=True) as reporter:
        for drive in DRIVES:
            found = measured(drive, Path(folder), reporter)
            name = f"drive-{Path(drive.model).stem}.svg"
            # A picture of a single depth would show no curve.
            curved = any(len({pair.row.depth * pair.row.jobs for pair in pairs}) > 1 for _, pairs in found)
            if curved and images is not None:
                picture(drive, found, images / name)
            parts.append(f"\n## {drive.title}\n\n{drive.said}\n")
            if curved:
                parts.append(f"\n![Latencies of the {drive.short} and of its model](images/{name})\n")
                for series, pairs in found:
                    parts.append(f"\n### {series.title}\n\n" + "\n".join(table_of(series, pairs)) + "\n")
                    parts.append(f"\n{series.said}\n")
            else:
                parts.append(sheet(found))
            for series, pairs in found:
                wrong += out_of_bound(drive, series, pairs)
    return "".join(parts), wrong


def main() -> int:
    """Runs the command line; returns the exit status."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--write", type=Path, metavar="FILE", help="write the page there, its pictures to images/"
    )
    arguments = parser.parse_args()
    text, wrong = page(IMAGES if arguments.write else None)
    if arguments.write:
        arguments.write.write_text(text)
    else:
        sys.stdout.write(text)
    for row in wrong:
        print(f"drives: out of its bound: {row}", file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
