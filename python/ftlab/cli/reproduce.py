"""``ftlab reproduce``."""

from __future__ import annotations

import click

from ftlab.cli import completing, options
from ftlab.outputs import tell, write_stdout


@click.command()
@click.argument("paper", shell_complete=completing.papers)
@click.argument("figures", nargs=-1, metavar="[FIGURE]...", shell_complete=completing.figures)
@click.option(
    "--out",
    type=options.NEW,
    default="reproduced",
    show_default=True,
    metavar="DIR",
    help="Directory for page, pictures and CSV.",
)
@click.option("--quick", is_flag=True, help="Shorter workloads: every figure of all papers in minutes.")
@click.option("--fresh", is_flag=True, help="Run everything again, whatever the cache holds.")
@click.option(
    "--traces",
    metavar="DIR",
    help="Directory of recorded traces (papers/traces.toml).  [default: $FTLAB_TRACES, ../shared/traces]",
)
@click.option("--cache", metavar="DIR", help="Where results are kept.  [default: ~/.cache/ftlab/reproduce]")
@click.option(
    "--root",
    metavar="DIR",
    help="Directory that holds papers/ and workloads/ of your own.  [default: ftlab's own]",
)
@options.set_option
@click.option("--jobs", type=click.IntRange(min=1), metavar="N", help="Runs at a time.  [default: all cores]")
def reproduce(
    paper: str,
    figures: tuple[str, ...],
    out: str,
    quick: bool,
    fresh: bool,
    traces: str | None,
    cache: str | None,
    root: str | None,
    jobs: int | None,
    settings: tuple[str, ...],
) -> None:
    """Reproduce a paper's figures and tables, published against measured.

    PAPER is map-plus, vios, coop, msftl, flin, beyond or devices (both ftlab's own), or all; FIGURE is fig9,
    table1 or the like, by default all of them. What each runs is in papers/PAPER/FIGURE.toml.

    \b
    ftlab reproduce vios                      every figure and table
    ftlab reproduce vios fig6 table1          some
    ftlab reproduce all --quick               all papers, in minutes
    ftlab reproduce map-plus fig9 --set host.deadline=20ms

    --set changes a key in every run; a figure that varies this key is refused. The page says what was
    changed. --root names a directory with papers and workloads of your own, laid out like ftlab's:
    papers/traces.toml, papers/PAPER/paper.toml, published.toml and a file for each figure.

    Only what is missing is run: results are kept by the hash of configuration, trace and version. The
    page, DIR/index.html, begins with a verdict on each claim of the papers; DIR/PAPER/ takes a CSV, an
    SVG and a PNG of each figure.
    """
    from ftlab.progress import Reporter
    from ftlab.reproduce import command

    changed = options.overrides(settings, {})
    asked = command.Options(root, out, traces, quick, fresh, cache, jobs, changed)
    with Reporter() as reporter:
        outcome = command.reproduce(paper, figures, asked, reporter)
    for note in outcome.notes:
        tell(f"note: {note}")
    write_stdout(command.summary(outcome))
