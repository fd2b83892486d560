"""``ftlab reproduce``."""

from __future__ import annotations

import click

from ftlab.cli import completing, options
from ftlab.outputs import write_stdout


@click.command()
@click.argument("paper", shell_complete=completing.papers)
@click.argument("figures", nargs=-1, metavar="[FIGURE]...")
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
    "--root", metavar="DIR", help="Directory that holds papers/ and workloads/.  [default: ftlab's own]"
)
@options.allow_python_option
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
) -> None:
    """Reproduce a paper's figures and tables, published against measured.

    PAPER is map-plus, vios, coop, msftl, beyond or devices (both ftlab's own), or all; FIGURE is fig9, table1
    or the like, by default all of them. What each runs is in papers/PAPER/FIGURE.toml.

    \b
    ftlab reproduce vios                      every figure and table
    ftlab reproduce vios fig6 table1          some
    ftlab reproduce all --quick               all papers, in minutes

    Only what is missing is run: results are kept by the hash of configuration, trace and version. The
    page, DIR/index.html, begins with a verdict on each claim of the papers; DIR/PAPER/ takes a CSV, an
    SVG and a PNG of each figure.
    """
    from ftlab.progress import Reporter
    from ftlab.reproduce import command

    options = command.Options(root, out, traces, quick, fresh, cache, jobs)
    with Reporter() as reporter:
        outcome = command.reproduce(paper, figures, options, reporter)
    write_stdout(command.summary(outcome))
