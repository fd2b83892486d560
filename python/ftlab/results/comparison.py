"""Comparisons: every combination of varied values is run, in parallel; the variants have a fixed order."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ftlab._core import Config, InternalError, UserError
from ftlab.configs import ConfigLike, Override, Scalar, load, to_text
from ftlab.outputs import json_text
from ftlab.progress import Reporter
from ftlab.results.labels import Labels, Shown, Side
from ftlab.results.result import Result
from ftlab.running import RunOptions, run_config
from ftlab.studies.axes import Axis, Choice
from ftlab.studies.declaration import study_of
from ftlab.studies.executor import Group, Threads
from ftlab.studies.plan import Run, check_varied, combinations, ignored, notes_of
from ftlab.tenants import with_slowdowns

if TYPE_CHECKING:
    import altair as alt
    import polars as pl

MOST_VARIANTS = 1000
"""The maximum number of variants; more are probably a typing error, or need a loop of the user's own."""


@dataclass(frozen=True)
class Variant(Shown):
    """One of the compared configurations, with its result."""

    result: Result
    """The measured result."""


class Plan:
    """Variants that have been checked but not yet run."""

    def __init__(
        self, base: Config, vary: dict[str, list[str]], variants: list[Run], replaced: Sequence[str] = ()
    ) -> None:
        """Makes the plan from variants that `prepare` has checked; ``replaced`` has a sentence for each
        override that a varied key replaces.
        """
        self.base = base
        self.vary = vary
        self.variants = variants
        self._replaced = replaced

    @property
    def labelled(self) -> list[tuple[str, Config]]:
        """Returns the variants' configurations with their labels."""
        return [(_label(variant), variant.config) for variant in self.variants]

    def ignored(self) -> dict[str, list[tuple[str, str]]]:
        """Returns the keys that the user set or varied but variants ignore, each with the labels of those
        variants and the reason.
        """
        return ignored(self.labelled)

    def notes(self) -> list[str]:
        """Returns a sentence for each key that some variant ignores, or that is both set and varied."""
        return [*self._replaced, *notes_of(self.ignored(), len(self.variants))]

    @property
    def traces(self) -> list[str]:
        """Returns the traces that will be read."""
        return sorted({variant.config.trace for variant in self.variants if variant.config.trace})

    def run(
        self,
        reporter: Reporter,
        options: RunOptions,
        *,
        jobs: int | None = None,
        for_fio: bool = False,
        alone: bool = False,
    ) -> Comparison:
        """Runs all variants, ``jobs`` at a time (default: as many as there are cores).

        ``options``, except for their callbacks, apply to each variant. ``for_fio`` keeps the figures that
        `Comparison.to_fio` computes from the requests, but not the requests. ``alone`` runs each tenant of
        each variant alone too.

        Raises:
            UserError, InternalError: the error of the first variant (in order) that failed.
        """

        labels = Labels(self.vary, (dict(variant.varied) for variant in self.variants))
        shown = {_label(variant): labels[position] for position, variant in enumerate(self.variants)}
        results: dict[str, Result] = {}

        def work(group: Group, reporter: Reporter) -> Iterator[tuple[Run, Any]]:
            for variant in group:
                label = shown[_label(variant)]
                own = replace(
                    options,
                    collect=options.collect or for_fio,
                    progress=reporter.callback(label),
                    preconditioning=reporter.preconditioning(label),
                )
                try:
                    result = run_config(variant.config, own)
                    if alone:
                        # The variants are on all cores already.
                        result = with_slowdowns(result, variant.config, own, jobs=1)
                    if for_fio:
                        result.fio_digest(drop_requests=not options.collect)
                except (UserError, InternalError) as error:
                    yield variant, error
                    continue
                reporter.finish(label)
                yield variant, result

        def told(variant: Run, finished: Any) -> None:
            if isinstance(finished, (UserError, InternalError)):
                raise type(finished)(f"{finished}\n  in the variant {_label(variant)}") from finished
            results[_label(variant)] = finished

        Threads(jobs, work=work).execute([[variant] for variant in self.variants], reporter, told)
        variants = [
            Variant(label, dict(variant.varied), results[label])
            for variant in self.variants
            for label in [_label(variant)]
        ]
        return Comparison(json.loads(self.base.json()), self.vary, variants)


class Comparison(Side):
    """Variants that have been run, the last key varying fastest; `print` shows them as a table."""

    variants: list[Variant]

    def __getitem__(self, which: str | int | Mapping[str, Scalar]) -> Result:
        """Returns the result of a variant: by label, by position, or by varied values that identify it.

        ``comparison["map+, 8KiB"]``, ``comparison[-1]``, ``comparison[{"host.scheduler": "map+"}]``.

        Raises:
            KeyError: no variant has this label or these values, or several have them.
            IndexError: there are too few variants for this position.
        """
        if isinstance(which, int):
            return self.variants[which].result
        if isinstance(which, str):
            found = [variant for variant in self.variants if variant.label == which]
        else:
            wanted = {key: to_text(value, key) for key, value in which.items()}.items()
            found = [variant for variant in self.variants if wanted <= variant.set.items()]
        if len(found) != 1:
            labels = ", ".join(variant.label for variant in found or self.variants)
            said = f"{len(found)} variants have {which!r}" if found else f"no variant {which!r}; there are"
            raise KeyError(f"{said}: {labels}")
        return found[0].result

    def __iter__(self) -> Iterator[Result]:
        """Iterates over the results, in order."""
        return (variant.result for variant in self.variants)

    def to_dict(self) -> dict[str, Any]:
        """Returns the comparison as a dictionary, as its JSON file holds it."""
        variants = [
            {"label": variant.label, "set": variant.set, "result": variant.result.to_dict()}
            for variant in self.variants
        ]
        return {
            "schema": "ftlab.compare.v1",
            "config": self.config,
            "vary": self.vary,
            "variants": variants,
        }

    def to_json(self) -> str:
        """Returns the comparison as JSON text, which is deterministic except for the ``engine`` blocks."""
        return json_text(self.to_dict())

    def to_fio(self, *, plus: bool = False) -> dict[str, Any]:
        """Returns all variants in the layout of fio's JSON, one job for each variant; needs the requests
        (`collect=True`).

        Args:
            plus: include the histograms' bins, as fio's ``json+`` does.

        Raises:
            UserError: the requests were not collected.
        """
        from ftlab.results.fio import document

        return document([(variant.label, variant.result) for variant in self.variants], plus=plus)

    def to_polars(self) -> pl.DataFrame:
        """Returns a frame with a row for each variant: the varied values as text, then every metric.

        Times are in nanoseconds, rates are per second.
        """
        import polars as pl

        from ftlab.results.table import records

        return pl.DataFrame(records(self), infer_schema_length=None)

    def plot(self, path: str | os.PathLike[str] | None = None) -> alt.VConcatChart:
        """Draws mean latency with its wait and access parts, using Altair; with ``path``, also writes the
        picture as .png or .svg.

        Raises:
            UserError: the file cannot be written.
        """
        from ftlab.plot import SUFFIXES, chart, draw

        if path is not None:
            from ftlab.outputs import Output

            output = Output("plot", path)
            output.check(SUFFIXES)
            output.write(draw(self, output.suffix))
        return chart(self)

    def _repr_html_(self) -> str:
        """Returns the table, for notebooks."""
        from ftlab.results.table import as_html

        return as_html(self)

    def html(self, path: str | os.PathLike[str], *, title: str | None = None, command: str = "") -> None:
        """Writes a report to read in a browser, as one file that needs no others.

        The report shows what the results hold: everything, if the keys of `ftlab.html.KEYS` were set to true.
        ``command`` is shown as the command that made the report.

        Raises:
            UserError: the file cannot be written.
        """
        from ftlab.html import of_comparison, write_report
        from ftlab.html.data import notes

        trace = None if "workload.trace" in self.vary else self.config["workload"].get("trace")
        source = f", {os.path.basename(trace)}" if trace else ""  # noqa: PTH119
        heading = f"Comparison by {' and '.join(self.vary)}{source}"
        told = notes([(dict(variant.set), variant.result.notes) for variant in self.variants])
        write_report(path, title=title or heading, runs=of_comparison(self), command=command, notes=told)

    def __str__(self) -> str:
        """Returns the table that ``ftlab compare`` prints, 100 columns wide."""
        from ftlab.results.table import render

        return render(self, width=100)

    def __repr__(self) -> str:
        """Returns a line that says what was varied."""
        return f"<ftlab.Comparison of {len(self)} variants over {', '.join(self.vary)}>"


def prepare(
    config: ConfigLike,
    vary: Mapping[str, Sequence[Scalar]],
    overrides: Sequence[Override],
    origin: str,
) -> Plan:
    """Resolves the base and every variant, so that errors come before any run.

    ``origin`` is what messages put before a varied key (``--vary``).

    Raises:
        UserError: there is nothing to vary, a configuration is wrong, or every variant ignores a varied key.
    """
    texts = _check_vary(vary, origin)
    count = math.prod(map(len, texts.values()))
    if count > MOST_VARIANTS:
        raise UserError(f"{origin}: {count} variants are more than {MOST_VARIANTS}; compare fewer values")
    base = load(config, overrides)
    axes = [Axis(key, tuple(Choice(value, set={key: value}) for value in texts[key]), key) for key in texts]
    figure = study_of(Path(origin))
    variants = []
    for labels, varied, _ in combinations(axes):
        ours = [Override(f"{origin} {key}={value}", key, value) for key, value in varied.items()]
        variants.append(Run(figure, labels, load(config, [*overrides, *ours]), varied=varied))
    replaced = [
        f"{each.origin}: {origin} {each.key} takes its place" for each in overrides if each.key in texts
    ]
    plan = Plan(base, texts, variants, replaced)
    check_varied(origin, texts, plan.ignored(), len(variants))
    return plan


def _label(variant: Run) -> str:
    """Returns a variant's label: its varied values, joined by commas."""
    return ", ".join(variant.labels)


def _check_vary(vary: Mapping[str, Sequence[Scalar]], origin: str) -> dict[str, list[str]]:
    if not vary:
        raise UserError(f"{origin}: nothing to compare; name a key and its values")
    texts: dict[str, list[str]] = {}
    for key, values in vary.items():
        # A string is a sequence too, but would be split into letters.
        if isinstance(values, str) or not isinstance(values, Sequence):
            raise UserError(f"{origin} {key}: the values must be a list")
        texts[key] = [to_text(value, key) for value in values]
        if not texts[key]:
            raise UserError(f"{origin} {key}: no values")
        for value in texts[key]:
            if texts[key].count(value) > 1:
                raise UserError(f"{origin} {key}: the value {value!r} is given twice")
    return texts
