"""What ``ftlab reproduce`` does: plan, run what is missing, judge, draw, write."""

from __future__ import annotations

import os
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from ftlab._core import UserError
from ftlab.configs import Override
from ftlab.outputs import folder_in, inside
from ftlab.progress import Reporter
from ftlab.reproduce import claims, claims_picture, papers, reproduction_page, study
from ftlab.reproduce.claims import Judged
from ftlab.reproduce.papers import Paper
from ftlab.studies import cells, figures
from ftlab.studies.cache import Cache
from ftlab.studies.cache import default as default_cache
from ftlab.studies.cells import Study
from ftlab.studies.declaration import Figure, load_traces
from ftlab.studies.executor import Threads
from ftlab.studies.plan import Planner, Run, ignored, notes_of, together
from ftlab.studies.run import run

ALL = "all"

MOST_NAMED = 5
"""The maximum number of runs that a note names."""


@dataclass(frozen=True)
class Options:
    """Options of a reproduction."""

    root: str | None = None
    out: str = "reproduced"
    traces: str | None = None
    quick: bool = False
    fresh: bool = False
    cache: str | None = None
    jobs: int | None = None
    settings: Sequence[Override] = field(default_factory=tuple)
    """Keys that are set in every run, whatever the papers set."""


@dataclass(frozen=True)
class Outcome:
    """What a reproduction has judged and written."""

    index: Path
    parts: Sequence[reproduction_page.Part]
    reused: int
    run: int
    notes: Sequence[str] = field(default_factory=tuple)
    """What was set to no effect."""


def reproduce(which: str, wanted: Sequence[str], options: Options, reporter: Reporter) -> Outcome:
    """Runs what is missing and writes pictures, CSV and the page.

    Raises:
        UserError: there is no such paper or figure, or a declaration or an output is wrong.
    """
    base = papers.root(options.root)
    chosen = _papers(base, which)
    selected = {
        name: [_changed(figure, options.settings) for figure in figures]
        for name, figures in papers.choose(chosen, wanted, quick=options.quick).items()
    }
    out = Path(options.out)
    _writable(out)
    planner = Planner(base, load_traces(base), trace_folder(base, options.traces), options.quick)
    folder = Path(options.cache) if options.cache else default_cache()
    cache = Cache(folder, fresh=options.fresh, say=reporter.note)
    try:
        runs = together(
            each
            for paper in chosen
            for figure in selected[paper.name]
            for each in planner.runs(figure, shared_device=paper.shared_device)
        )
    except UserError as error:
        raise _traced_back(error, options.settings) from None
    by_figure: dict[tuple[str, str], list[Run]] = {}
    for each in runs:
        by_figure.setdefault((each.figure.paper, each.figure.id), []).append(each)
    results: dict[str, dict[str, Any]] = {}

    def found(key: str, result: dict[str, Any]) -> None:
        results[key] = {name: value for name, value in result.items() if name != "engine"}

    done = run(runs, cache, reporter, Threads(options.jobs), found)
    absent: dict[str, list[str]] = {}
    for missing in planner.missing:
        absent.setdefault(f"{missing.figure.paper} {missing.figure.id}", []).append(missing.trace.file)
    parts = []
    for paper in chosen:
        if not selected[paper.name]:
            continue
        studies = {
            figure.id: cells.measured(
                figure,
                by_figure.get((paper.name, figure.id), []),
                results,
                absent.get(f"{paper.name} {figure.id}", ()),
            )
            for figure in selected[paper.name]
        }
        parts.append(_write(paper, studies, out))
    target = _page(out, parts, results, options, _said(which, wanted, options))
    return Outcome(target, parts, done.reused, done.run, _without_effect(runs, options.settings))


def _changed(figure: Figure, settings: Sequence[Override]) -> Figure:
    """Returns the figure with keys that the user sets, over those that it sets itself.

    Raises:
        UserError: the figure varies one of them.
    """
    for each in settings:
        axis = next((axis for axis in figure.axes if axis.sets(each.key)), None)
        if axis is not None:
            raise UserError(
                f"{each.origin}: {figure.paper} {figure.id} varies {each.key} (its axis {axis.name}); name"
                " figures that do not"
            )
    own = {each.key: each.value for each in settings}
    return replace(figure, set={**figure.set, **own}, quick={**figure.quick, **own} if own else figure.quick)


def _traced_back(error: UserError, settings: Sequence[Override]) -> UserError:
    """Returns the error of a run as one of the key that the user set, if that caused it."""
    for each in settings:
        _, caused, why = str(error).partition(f": {each.key}={each.value}: ")
        if caused:
            return UserError(f"{each.origin}: {why}")
    return error


def _without_effect(runs: Sequence[Run], settings: Sequence[Override]) -> list[str]:
    """Returns a note for each key of the user that some runs ignore."""
    if not settings:
        return []
    keys = {each.key for each in settings}
    found = ignored((each.name, each.config) for each in runs)
    own = {key: ignoring for key, ignoring in found.items() if key in keys}
    return notes_of(own, len(runs), most=MOST_NAMED)


def _said(which: str, wanted: Sequence[str], options: Options) -> str:
    changed = [word for each in options.settings for word in ("--set", f"{each.key}={each.value}")]
    quick = ["--quick"] if options.quick else []
    return shlex.join(["ftlab", "reproduce", which, *wanted, *changed, *quick])


def _papers(base: Path, which: str) -> list[Paper]:
    there = papers.names(base)
    if which == ALL:
        return [papers.load_paper(base, name) for name in there]
    if which not in there:
        figure = papers.normal(which)
        if having := [name for name in there if figure in papers.figure_names(base, name)]:
            raise UserError(
                f"{which} is a figure, of {', '.join(having)}: ftlab reproduce {having[0]} {figure}"
            )
        import difflib

        near = difflib.get_close_matches(which, [*there, ALL], n=1)
        hint = f"; did you mean {near[0]}?" if near else ""
        raise UserError(f"no paper {which!r}{hint}\n  there are: {', '.join([*there, ALL])}")
    return [papers.load_paper(base, which)]


def trace_folder(base: Path, given: str | None) -> Path | None:
    """Returns the directory of recorded traces: the one that is named, ``$FTLAB_TRACES`` or
    ``shared/traces``; None if none of these exists.

    Raises:
        UserError: the named directory does not exist.
    """
    for name, said in (("--traces", given), ("FTLAB_TRACES", os.environ.get("FTLAB_TRACES"))):
        if said:
            if not Path(said).is_dir():
                raise UserError(f"{name} {said}: no such directory")
            return Path(said).resolve()
    # In a checkout `base` may be the folder that links to the directories at the checkout's top.
    beside = (base / "papers").resolve().parents[1] / "shared" / "traces"
    return beside if beside.is_dir() else None


def _writable(out: Path) -> None:
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UserError(f"--out {out}: cannot make the directory: {error.strerror}") from None
    inside(out, "index.html").check()


def _write(paper: Paper, studies: Mapping[str, Study], out: Path) -> reproduction_page.Part:
    folder = folder_in(out, paper.name)
    judged = claims.judge(paper, studies)
    pictures = {}
    for name, each in studies.items():
        if each.rows:
            inside(folder, f"{name}.csv").write(study.to_csv(each, paper.numbers).encode())
        if figures.drawn(each):
            pictures[name] = figures.svg(cells.over_seeds(each))
            inside(folder, f"{name}.svg").write(pictures[name].encode())
            inside(folder, f"{name}.png").write(figures.png(pictures[name]))
    inside(folder, "claims.csv").write(claims.to_csv(judged).encode())
    both = claims_picture.svg(judged)
    if both:
        inside(folder, "claims.svg").write(both.encode())
        inside(folder, "claims.png").write(figures.png(both))
    left_out = [figure.id for figure in paper.figures if figure.id not in studies]
    return reproduction_page.Part(paper, judged, studies, pictures, left_out, both)


def _page(
    out: Path,
    parts: Sequence[reproduction_page.Part],
    results: Mapping[str, dict[str, Any]],
    options: Options,
    said: str,
) -> Path:
    """Writes the page: claims and pictures first, then the runs of some figures, to choose from; returns its
    path.
    """
    from ftlab.html import render

    target = out / "index.html"
    title = "Reproduction: " + ", ".join(part.paper.short for part in parts)
    runs = _report_runs(parts, results)
    changed = [f"{each.key} = {each.value}" for each in options.settings]
    body = reproduction_page.preface(
        parts, quick=options.quick, changed=changed, runs=len(results), shown=len(runs)
    )
    if runs:
        text = render(title=title, runs=runs, preface=body, command=said)
    else:
        text = reproduction_page.standalone(title, body)
    inside(out, target.name).write(text.encode())
    return target


def _report_runs(
    parts: Sequence[reproduction_page.Part], results: Mapping[str, dict[str, Any]]
) -> list[tuple[dict[str, str], dict[str, Any]]]:
    """Returns the runs that the page shows interactively; each figure is a study, with its axes as labels."""
    runs = []
    for part in parts:
        for each in part.studies.values():
            if each.figure.report:
                figure = f"{part.paper.short}, {reproduction_page.label(each.figure)}"
                names = [axis.key or axis.name for axis in each.figure.axes]
                for run in each.runs:
                    labels = dict(zip(names, run.labels, strict=True))
                    runs.append(({"figure": figure, **labels}, results[run.key]))
    return runs


def summary(outcome: Outcome) -> str:
    """Returns the text printed at the end: verdicts by paper, and the claims that do not hold."""
    names = [part.paper.name for part in outcome.parts]
    width = max(map(len, names), default=0)
    columns = [*claims.TOTALS, "figures"]
    lines = [f"{'':{width}}  " + "  ".join(columns)]
    for part in outcome.parts:
        cells = [*claims.totals(part.judged), len(part.studies)]
        named = zip(columns, cells, strict=True)
        lines.append(
            f"{part.paper.name:{width}}  " + "  ".join(f"{cell:>{len(name)}}" for name, cell in named)
        )
    for part in outcome.parts:
        lines += [_line(part.paper, each) for each in part.judged if each.verdict == claims.FAILS]
    every = outcome.run + outcome.reused
    lines.append(f"{every:,} runs: {outcome.run:,} now, {outcome.reused:,} from the cache")
    lines.append(f"page: {outcome.index}")
    return "\n".join(lines) + "\n"


def _line(paper: Paper, each: Judged) -> str:
    published, measured = claims.published_text(each.claim), claims.measured_text(each)
    said = f"does not hold: {paper.name} {each.claim.id}: "
    if each.claim.published is None:
        # A direction has no number; how often it holds, if it has several cases.
        return said + each.claim.text + (f": {measured}" if each.counted else "")
    return f"{said}published {published}, measured {measured}"
