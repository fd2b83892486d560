"""``ftlab probe``."""

from __future__ import annotations

from pathlib import Path

import click

from ftlab.outputs import write_stdout


@click.command()
@click.option("--jobs", required=True, metavar="DIR", help="Directory for the job files and their README.md.")
@click.option(
    "--destructive", is_flag=True, help="Write jobs that erase the drive too, into DIR/destructive."
)
@click.option(
    "--size", metavar="SIZE", default="100%", show_default=True, help="Part of the drive to use, such as 16g."
)
@click.option("--replace", is_flag=True, help="Replace files that are there.")
def probe(jobs: str, destructive: bool, size: str, replace: bool) -> None:
    """Write job files for fio that measure a drive.

    ftlab touches no drive: fio runs the jobs, and you say on which. They only read, unless you ask for
    the others.

    \b
    DIR/README.md         what each job is for, how long it takes, what it erases
    DIR/*.fio             jobs that read
    DIR/destructive/      jobs that write, with a README.md of their own
    """
    from ftlab.calibration.probe import write

    paths = write(Path(jobs), writing=destructive, size=size, replace=replace)
    write_stdout("".join(f"{path}\n" for path in paths))
