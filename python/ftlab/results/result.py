"""What a run measured: the result's JSON as an object, and its requests as columns."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple, Self

from ftlab._core import RunResult, UserError
from ftlab.fields import Fields
from ftlab.outputs import json_text
from ftlab.results.labels import Shown, Side
from ftlab.results.lifetime import with_lifetime
from ftlab.results.section import Section
from ftlab.units import count, duration

__all__ = ["Result", "Section", "Timeline"]

if TYPE_CHECKING:
    import altair as alt
    import numpy as np
    import polars as pl

    from ftlab._core import Column
    from ftlab.results.fio import Digest
    from ftlab.results.histogram import Histogram

REQUEST_COLUMNS = (
    "id",
    "arrival_ns",
    "dispatch_ns",
    "complete_ns",
    "op",
    "offset",
    "size",
    "mapping_misses",
    "prioritized",
    "expired",
    "batch",
    "channel_batch",
)
"""Columns of the per-request file."""

FLAGS = ("prioritized", "expired")
"""The columns that are boolean."""

REFUSED = 2**64 - 1
"""The ``complete_ns`` that :meth:`Result.column` has for a request refused by a read-only device."""

OPS = ("R", "W", "T", "F")
"""The letters of the operations, in order of their codes."""


_PARTS = {
    "latency": ("arrival_ns", "complete_ns"),
    "wait": ("arrival_ns", "dispatch_ns"),
    "access": ("dispatch_ns", "complete_ns"),
}
_LETTERS = {"read": ["R"], "write": ["W"], "all": ["R", "W"]}


KEPT_UP = 0.9
"""A device that keeps up with arrivals for a smaller share of the time than this counts as overloaded."""

MARGIN = 0.5
"""The share of the time for which the device is busy, at the suggested speed, with the requests that were a
backlog; it is less than 1 because some arrivals were denser than others.
"""


class Timeline(NamedTuple):
    """What a timeline holds."""

    events: int
    """The number of slices plus the number of counter changes."""
    cut_ns: int | None
    """The simulated time, ns, at which the timeline ended because it had reached its limit; None if it did
    not reach the limit.
    """


class Result(Fields):
    """A run's result: `schema`, `config`, `trace`, the measured fields and `engine`.

    Its fields are those of the JSON that ``ftlab run --json`` writes; times are in nanoseconds, sizes in
    bytes. If the requests were collected, :meth:`column` and :attr:`requests` hold every one of them.
    """

    def __init__(
        self,
        data: dict[str, Any],
        columns: Mapping[str, Column | np.ndarray[Any, Any]] | None = None,
        timeline: Timeline | None = None,
        prepare_s: float = 0.0,
        behind: tuple[int, int] = (0, 0),
        unwritten: int = 0,
    ) -> None:
        """Makes the result; ``columns`` are the per-request columns, if they were collected."""
        super().__init__(data)
        self._columns = columns
        self._timeline = timeline
        self._prepare_s = prepare_s
        self._behind = behind
        self._unwritten = unwritten
        self._fio: Digest | None = None
        self._named = ""

    @property
    def named(self) -> str:
        """Returns the file of the configuration, the report's title; empty if it was not read from one."""
        return self._named

    @named.setter
    def named(self, file: str) -> None:
        self._named = file

    @property
    def timeline(self) -> Timeline | None:
        """Returns what the timeline holds, if one was written."""
        return self._timeline

    @property
    def prepare_s(self) -> float:
        """Returns the part of ``engine.wall_s`` in which the device was prepared; 0.0 for a result from a
        file.
        """
        return self._prepare_s

    @property
    def overload(self) -> str | None:
        """Returns a message that the device did not keep up with recorded arrivals, with a remedy; None if
        the device kept up.

        For a result from a file, which does not hold what the message needs, None is returned too.
        """
        behind_ns, arrivals_ns = self._behind
        workload = self._data["config"]["workload"]
        kept = 1 - behind_ns / max(self._data["elapsed_ns"], 1)
        timed = "trace" in workload or "synthetic" in workload
        if kept >= KEPT_UP or workload["replay"] == "closed" or not timed:
            return None
        speed = workload["speed"] * arrivals_ns / behind_ns * MARGIN
        remedy = f"--speed {_rounded_down(speed)}" if speed else "--replay closed"
        return (
            f"the device kept up {100 * kept:.0f} % of the time, else requests waited for more than a second:"
            f" these are the latencies of a backlog; try {remedy}"
        )

    @property
    def notes(self) -> list[str]:
        """Returns sentences about figures of this result that do not mean what they seem to: for example a
        write amplification of a run in which no garbage was collected.

        For a result from a file, reads of pages that were never written are not known.
        """
        from ftlab.results.notes import notes_on

        return notes_on(self._data, self._unwritten)

    @classmethod
    def of_run(cls, run: RunResult) -> Result:
        """Makes the result of a finished run."""
        timeline = Timeline(*run.timeline) if run.timeline else None
        return cls(
            with_lifetime(json.loads(run.json)),
            run.take_columns(),
            timeline,
            run.prepare_s,
            run.behind,
            run.unwritten,
        )

    def to_json(self) -> str:
        """Returns the result as JSON text, which is deterministic except for ``engine``."""
        return json_text(self._data)

    def __reduce__(self) -> tuple[type[Self], tuple[Any, ...]]:
        """Supports pickle; the requests are included if they were collected."""
        import numpy as np

        columns = self._columns and {name: np.array(column) for name, column in self._columns.items()}
        return type(self), (self._data, columns, self._timeline)

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """Exports the requests through Arrow's PyCapsule interface: ``pyarrow.table(result)``.

        Raises:
            UserError: the requests were not collected.
        """
        return self.requests.__arrow_c_stream__(requested_schema)

    def plot(self) -> alt.VConcatChart:
        """Draws mean latency with its wait and access parts, as an Altair chart."""
        from ftlab.plot import chart

        return chart(self._alone())

    def _repr_html_(self) -> str:
        """Returns the most important figures, for notebooks."""
        from ftlab.results.table import as_html

        return as_html(self._alone())

    def _alone(self) -> Side:
        name = self._data["scheduler"]["name"]
        shown = Shown(name, {"host.scheduler": name}, self)
        return Side(self._data["config"], {"host.scheduler": [name]}, [shown])

    def histogram(self, part: str = "latency", op: str = "all") -> Histogram:
        """Returns the histogram of ``latency``, ``wait`` or ``access`` of ``read``, ``write`` or ``all``.

        It is made from the bins in the result (``results.histograms``), or else from the requests.

        Raises:
            UserError: there is no such part, or the result has neither bins nor requests.
        """
        from ftlab.results.histogram import Histogram

        if part not in _PARTS or op not in _LETTERS:
            raise UserError(
                f"no histogram {part}.{op}; there are: {', '.join(_PARTS)}; {', '.join(_LETTERS)}"
            )
        if "histogram" in self._data[part][op] or self._columns is None:
            return Histogram.of_summary(self._data[part][op])
        import numpy as np

        chosen = np.isin(self.column("op"), _LETTERS[op]) & (self.column("complete_ns") != np.uint64(REFUSED))
        first, last = _PARTS[part]
        return Histogram(self.column(last)[chosen] - self.column(first)[chosen])

    def to_fio(self, name: str | None = None, *, plus: bool = False) -> dict[str, Any]:
        """Returns the result in the layout of fio's JSON, as one job; needs the requests (``collect=True``).

        Args:
            name: the name of the job; by default that of the preset.
            plus: include the histograms' bins, as fio's ``json+`` does.

        Raises:
            UserError: the requests were not collected.
        """
        from ftlab.results.fio import document

        return document([(name or self._data["config"].get("preset") or "ftlab", self)], plus=plus)

    def fio_digest(self, *, drop_requests: bool = False) -> Digest:
        """Returns the figures that `to_fio` computes from the requests. They are computed once; with
        ``drop_requests`` the requests are then dropped.

        Raises:
            UserError: the requests were not collected.
        """
        from ftlab.results.fio import digest

        if self._fio is None:
            self._fio = digest(self)
        if drop_requests:
            self._columns = None
        return self._fio

    def html(self, path: str | os.PathLike[str], *, title: str | None = None, command: str = "") -> None:
        """Writes a report to read in a browser, as one file that needs no others.

        The report shows what the result holds: everything, if the keys of `ftlab.html.KEYS` were set to true.
        ``command`` is shown as the command that made the report.

        Raises:
            UserError: the file cannot be written.
        """
        from ftlab.html import write_report
        from ftlab.results.labels import title as label_of

        config = self._data["config"]
        trace = config["workload"].get("trace")
        labels = {
            "workload": os.path.basename(trace) if trace else "generated",  # noqa: PTH119
            "host.scheduler": config["host"]["scheduler"],
            "ftl.kind": config["ftl"]["kind"],
        }
        heading = f"{label_of(config, self.named)}: {', '.join(labels.values())}"
        told = self.notes
        write_report(path, title=title or heading, runs=[(labels, self)], command=command, notes=told)

    def column(self, name: str) -> np.ndarray[Any, Any]:
        """Returns a per-request column as a NumPy array, in order of id.

        Columns: id, arrival_ns, dispatch_ns, complete_ns, op (letters R, W, T, F), offset, size,
        mapping_misses, prioritized, expired, batch, channel_batch (0: none); of a device with RAM also
        buffered (pages of a read that came from it); of a workload with streams also stream (0: none). A
        request that a read-only device refused, and a read that failed, have the ``complete_ns`` 2^64 - 1.
        Numbers share the memory of the run; nothing is copied.

        Raises:
            UserError: the requests were not collected, or there is no such column.
        """
        import numpy as np

        columns = self._collected()
        if name not in columns:
            raise UserError(f"no column {name!r}; there are: {', '.join(columns)}")
        values: np.ndarray[Any, Any] = np.asarray(columns[name])
        if name == "op":
            letters: np.ndarray[Any, Any] = np.array(OPS)[values]
            return letters
        return values.view(np.bool_) if name in FLAGS else values

    @property
    def requests(self) -> pl.DataFrame:
        """Returns a frame with one row per request, in order of id; ``batch`` is null if there is none.

        ``complete_ns`` is null for a request that a read-only device refused.

        Raises:
            UserError: the requests were not collected.
        """
        import polars as pl

        frame = pl.DataFrame({name: self._series(name) for name in self._collected()})
        batches = pl.col("batch", "channel_batch")
        completed = pl.col("complete_ns")
        return frame.with_columns(
            pl.when(batches != 0).then(batches),
            pl.when(completed != REFUSED).then(completed),
        )

    def _series(self, name: str) -> pl.Series:
        import numpy as np
        import polars as pl

        values = np.asarray(self._collected()[name])
        if name == "op":
            return pl.Series(name, OPS, pl.Enum(OPS)).gather(values)
        return pl.Series(name, values.view(np.bool_) if name in FLAGS else values)

    def _collected(self) -> Mapping[str, Column | np.ndarray[Any, Any]]:
        if self._columns is None:
            raise UserError("this run did not keep its requests; run with collect=True")
        return self._columns

    def __str__(self) -> str:
        """Returns the report that ``ftlab run`` prints."""
        from ftlab.results.report import render

        return render(self)

    def __repr__(self) -> str:
        """Returns a line with scheduler, requests and mean latency."""
        latency = self._data["latency"]["all"]
        mean = duration(latency["mean_ns"]) if latency["count"] else "-"
        scheduler = self._data["scheduler"]["name"]
        return f"<ftlab.Result {scheduler}: {count(self._data['trace']['requests'])} requests, mean {mean}>"


def _rounded_down(value: float) -> str:
    """Returns a number rounded down to its first digit."""
    step = 10.0 ** math.floor(math.log10(value))
    return f"{math.floor(value / step) * step:g}"
