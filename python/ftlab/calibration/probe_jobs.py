"""The jobs that tell what a model of a drive needs to know: what each is for, how long it takes, what it
erases.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

KIB, MIB, GIB = 1 << 10, 1 << 20, 1 << 30

DEPTHS = tuple(1 << power for power in range(9))
"""Depths of the curve of random reads: 1 to 256."""

RAMP_S, RUN_S = 2, 10
"""Seconds that a read is not measured at first, and that it is measured then."""

GLOBAL: dict[str, str] = {
    "filename": "${DRIVE}",
    "direct": "1",
    "ioengine": "libaio",
    "group_reporting": "1",
    "randrepeat": "0",
    "norandommap": "1",
}
"""What all jobs begin with. fio puts the environment's DRIVE in the place of ``${DRIVE}``."""

TIMED: dict[str, str] = {"ramp_time": f"{RAMP_S}s", "runtime": f"{RUN_S}s", "time_based": "1"}


@dataclass(frozen=True)
class Section:
    """One job of a file; fio begins it when those before it have ended, unless it has ``together``."""

    name: str
    options: dict[str, str]
    together: bool = False
    """Whether it runs at the same time as the section before it."""


@dataclass(frozen=True)
class Probe:
    """A file of jobs."""

    name: str
    """Name of the file, without its suffix."""
    purpose: str
    """What it tells about a drive."""
    sections: tuple[Section, ...]
    shared: dict[str, str] = field(default_factory=dict)
    """Options of all sections."""
    erases: str = ""
    """What of the drive is overwritten; empty for jobs that only read."""
    takes: str = ""
    """How long it takes, if that depends on the drive; empty: what the sections' times come to."""

    @property
    def seconds(self) -> int:
        """Returns the largest number of seconds that the sections can take by their options."""
        return sum(
            int((self.shared | section.options).get(name, "0s").removesuffix("s"))
            for section in self.sections
            if not section.together
            for name in ("ramp_time", "runtime")
        )


def size_text(value: int) -> str:
    """Returns a size in bytes as fio writes it: 4k, 1m."""
    for unit, name in ((GIB, "g"), (MIB, "m"), (KIB, "k")):
        if value % unit == 0:
            return f"{value // unit}{name}"
    return str(value)


def read_only() -> Iterator[Probe]:
    """Yields the files whose jobs only read."""
    yield Probe(
        "read-depth",
        "Random reads of 4 KiB over the depth: the delay, how many the drive serves at once, the rate.",
        tuple(Section(f"depth-{depth}", {"iodepth": str(depth)}) for depth in DEPTHS),
        {"rw": "randread", "bs": "4k", **TIMED},
    )
    sizes = (4 * KIB, 8 * KIB, 16 * KIB, 32 * KIB, 64 * KIB, 128 * KIB)
    yield Probe(
        "read-size",
        "Random reads of 4 to 128 KiB: the unit of a read, how a request is striped, the rate of the link.",
        tuple(
            Section(f"{size_text(size)}-depth-{depth}", {"bs": size_text(size), "iodepth": str(depth)})
            for depth in (1, 32)
            for size in sizes
        ),
        {"rw": "randread", **TIMED},
    )
    strides = (16 * KIB, 64 * KIB, 256 * KIB, MIB, 4 * MIB, 16 * MIB, 64 * MIB)
    yield Probe(
        "read-strided",
        "Reads of 4 KiB in strides: where addresses lie; a stride that meets the same dies is slow.",
        tuple(
            Section(f"stride-{size_text(stride)}", {"zoneskip": size_text(stride - 4 * KIB)})
            for stride in strides
        ),
        {"rw": "read", "bs": "4k", "iodepth": "32", "zonemode": "strided", "zonesize": "4k", **TIMED},
    )
    yield Probe(
        "read-again",
        "A small range read again and again: whether the drive keeps in its memory what it has read.",
        tuple(
            Section(f"range-{size_text(size)}", {"zonerange": size_text(size)})
            for size in (256 * KIB, 4 * MIB, 64 * MIB)
        ),
        {"rw": "randread", "bs": "4k", "iodepth": "1", "zonemode": "strided", "zonesize": "1t", **TIMED},
    )
    yield Probe(
        "read-sequential",
        "Sequential reads of 4 and 128 KiB: reading ahead, and the rate of the whole drive.",
        tuple(
            Section(f"{bs}-depth-{depth}", {"bs": bs, "iodepth": str(depth)})
            for bs in ("4k", "128k")
            for depth in (1, 4, 32)
        ),
        {"rw": "read", **TIMED},
    )


def destructive() -> Iterator[Probe]:
    """Yields the files whose jobs write, in the order in which they are to be run: that of their names."""
    log = {"log_avg_msec": "1000"}
    anywhere = "what lies where it writes, anywhere on the drive"
    yield Probe(
        "1-fill",
        "A sequential fill of the whole drive with a log per second: the SLC cache, its size and steps.",
        (Section("fill", {}),),
        {"rw": "write", "bs": "128k", "iodepth": "32", "write_bw_log": "1-fill", **log},
        erases="everything",
        takes="capacity over write rate: 17 min for 1 TB at 1 GB/s",
    )
    yield Probe(
        "2-write-depth",
        "Writes of 4 to 128 KiB over the depth: the delay and the rate of the write buffer.",
        (
            *(
                Section(f"{bs}-depth-{depth}", {"rw": "write", "bs": bs, "iodepth": str(depth)})
                for bs in ("4k", "16k", "64k", "128k")
                for depth in (1, 4, 16, 64)
            ),
            *(
                Section(f"random-4k-depth-{depth}", {"rw": "randwrite", "bs": "4k", "iodepth": str(depth)})
                for depth in (1, 4, 16, 64, 256)
            ),
        ),
        {"io_size": "1g", "runtime": "10s"},
        erases=f"{anywhere}, 21 GiB at most",
    )
    yield Probe(
        "3-write-bursts",
        "Bursts of writes with pauses: how much the write buffer holds, how fast it drains.",
        tuple(
            Section(f"burst-{size_text(size)}", {"thinktime_blocks": str(size // (64 * KIB))})
            for size in (MIB, 16 * MIB, 256 * MIB, GIB)
        ),
        {
            **{"rw": "randwrite", "bs": "64k", "iodepth": "32"},
            # fio counts completed requests by default, which makes the first burst longer than the others.
            **{"thinktime": "2s", "thinktime_blocks_type": "issue", "runtime": "30s", "time_based": "1"},
        },
        erases=anywhere,
    )
    yield Probe(
        "4-read-among-writes",
        "Reads of 4 KiB among writes at a steady rate: how long a read waits for programs and erases.",
        tuple(section for rate in (100, 400, 1600) for section in _among(rate)),
        {"ramp_time": f"{RAMP_S}s", "runtime": "30s", "time_based": "1"},
        erases=anywhere,
    )
    yield Probe(
        "5-steady",
        "Random writes until they are steady, with a log per second: over-provisioning, garbage collection.",
        (Section("steady", {}),),
        {
            **{"rw": "randwrite", "bs": "4k", "iodepth": "32", "runtime": "3600s", "time_based": "1"},
            **{"write_bw_log": "5-steady", "write_lat_log": "5-steady", **log},
        },
        erases="everything",
    )


def _among(rate: int) -> tuple[Section, Section]:
    """Returns reads, and this number of writes a second at the same time."""
    writes = {"rw": "randwrite", "bs": "64k", "iodepth": "4", "rate_iops": str(rate)}
    return (
        Section(f"reads-{rate}", {"rw": "randread", "bs": "4k", "iodepth": "4"}),
        Section(f"writes-{rate}", writes, together=True),
    )
