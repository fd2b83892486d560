"""``ftlab demo``."""

from __future__ import annotations

import shlex
import shutil
import sys
from pathlib import Path

import click

from ftlab._core import UserError
from ftlab.data import FOLDERS, folder

SCHEDULERS = "noop,row,amphibian,hp,rb,map,map+"
TRACE = "phone-mix.csv.gz"


@click.command()
@click.option("--out", metavar="DIR", help="Directory for picture, report and all figures.")
@click.option(
    "--files",
    metavar="DIR",
    help="Run nothing; copy what comes with ftlab into DIR: "
    + ", ".join(f"{name}/" for name in FOLDERS)
    + ".",
)
def demo(out: str | None, files: str | None) -> None:
    """Compare seven I/O schedulers on the trace that comes with ftlab.

    \b
    DIR/demo.png, .svg   mean latency with its wait and access parts
    DIR/demo.html        a report to explore in a browser
    DIR/demo.json        all figures
    """
    if files is not None:
        if out is not None:
            raise UserError("--out and --files exclude each other: --files runs nothing")
        return _copy(Path(files))
    from ftlab.cli import cli

    words = ["compare", "map-plus", "--trace", str(folder() / "traces" / TRACE)]
    words += ["--vary", f"host.scheduler={SCHEDULERS}"]
    click.echo(f"$ ftlab {shlex.join(words)}")
    if out is not None:
        target = Path(out) / "demo"
        words += ["--json", f"{target}.json", "--plot", f"{target}.png", "--plot", f"{target}.svg"]
        words += ["--html", f"{target}.html"]
    with cli.make_context("ftlab", list(words), obj=words) as inner:
        cli.invoke(inner)
    click.echo()
    if out is None:
        click.echo(f"The same with a picture and a report for the browser: {_program()} demo --out demo")
    else:
        click.echo(f"The picture: {target}.png (and .svg). A report for the browser: {target}.html.")
        click.echo(f"All figures: {target}.json.")
    click.echo(f"Your own trace: {_program()} compare map-plus --vary host.scheduler=noop,map+ --trace FILE")


def _program() -> str:
    """Returns what to type for ftlab here, where it need not be on the PATH."""
    called = Path(sys.argv[0])
    if called.name == "__main__.py":
        return f"{_typed(Path(sys.executable))} -m ftlab"
    on_path = shutil.which(called.name)
    return called.name if on_path and Path(on_path).samefile(called) else _typed(called)


def _typed(path: Path) -> str:
    here = Path.cwd()
    return shlex.quote(str(path.relative_to(here) if path.is_relative_to(here) else path))


def _copy(target: Path) -> None:
    """Copies the files that come with ftlab; existing files are left as they are.

    Raises:
        UserError: one of the folders exists, or cannot be written.
    """
    for name in FOLDERS:
        if (target / name).exists():
            raise UserError(f"--files {target}: {target / name} already exists")
    for name in FOLDERS:
        try:
            shutil.copytree(folder() / name, target / name)
        except OSError as error:
            raise UserError(f"--files {target}: {error.strerror or error}") from None
