"""``ftlab compare``."""

from __future__ import annotations

import sys

import click

from ftlab._core import UserError
from ftlab.cli import completing, options
from ftlab.configs import file_name
from ftlab.outputs import Output, check_distinct, json_text, saying_what_is_written, write_stdout
from ftlab.units import quantity


@click.command()
@click.argument("config", shell_complete=completing.presets)
@click.option(
    "--vary",
    multiple=True,
    required=True,
    metavar="KEY=A,B,...",
    shell_complete=completing.variations,
    help="Compare these values of a key. Repeatable: every combination is run.",
)
@options.shorthands()
@options.set_option
@options.json_option
@options.output_format_option
@click.option(
    "--table",
    "layout",
    type=click.Choice(["csv", "markdown", "json"]),
    help="Print all metrics, a row for each variant, in this layout instead of the text.",
)
@click.option(
    "--plot",
    "plots",
    type=options.NEW,
    multiple=True,
    metavar="FILE",
    help="Draw mean latency with its wait and access parts, as .png or .svg. Repeatable.",
)
@options.html_option
@click.option(
    "--jobs", type=click.IntRange(min=1), metavar="N", help="Variants at a time.  [default: all cores]"
)
@options.alone_option
@options.load_state_option
@options.strict_option
@options.check_option
@options.quiet_option
def compare(
    config: str,
    vary: tuple[str, ...],
    settings: tuple[str, ...],
    json_path: str | None,
    output_format: str,
    layout: str | None,
    plots: tuple[str, ...],
    html_path: str | None,
    jobs: int | None,
    alone: bool,
    load_state: str | None,
    strict: bool,
    check: bool,
    quiet: bool,
    **flags: str | None,
) -> None:
    """Run variants of a configuration side by side.

    CONFIG is a preset's name (see `ftlab presets`) or a TOML file. The table marks the best value of
    each metric and gives the ratio to the first variant. Where the trace, a generator's key or the seed
    varies, both are among the variants that have it in common.
    """
    from ftlab.results.comparison import prepare

    overrides = [*options.measured_for(html_path), *options.overrides(settings, flags)]
    plan = prepare(config, _values(vary), overrides, "--vary")
    if not quiet:
        options.say_notes(plan)
    if layout is not None and json_path == "-":
        raise UserError(
            f"--table {layout} and --json - both print to standard output; name a file for --json"
        )
    for_fio = options.check_output_format(output_format, json_path)
    json_output = options.json_output(json_path)
    pictures = [Output("--plot", plot) for plot in plots]
    if pictures:
        from ftlab.plot import SUFFIXES

        for picture in pictures:
            picture.check(SUFFIXES)
    html = options.html_output(html_path)
    inputs = [*plan.traces, *([load_state] if load_state else [])]
    outputs = [output for output in (json_output, html, *pictures) if output]
    check_distinct(outputs, inputs)
    for _, variant in plan.labelled:
        options.check_alone(variant, alone=alone)
    options.check_traces(plan.labelled, strict, quiet=quiet)

    from ftlab.progress import Reporter
    from ftlab.running import RunOptions

    with Reporter(tasks=len(plan.variants), quiet=quiet) as reporter:
        told = RunOptions(check=check, load_state=load_state)
        comparison = plan.run(reporter, told, jobs=jobs, for_fio=for_fio, alone=alone)
    comparison.named = file_name(config)
    options.say_overloads((variant.label, variant.result) for variant in comparison.variants)
    text = ""
    if json_path is not None:
        plus = output_format == "fio+"
        text = json_text(comparison.to_fio(plus=plus)) if for_fio else comparison.to_json()
    with saying_what_is_written(outputs):
        if json_output:
            json_output.write(text.encode())
        if pictures:
            from ftlab.plot import draw

            for picture in pictures:
                picture.write(draw(comparison, picture.suffix))
        if html:
            comparison.html(html.name, command=options.command_line())
    if json_path == "-":
        write_stdout(text)
    elif layout or not quiet:
        from ftlab.results.table import render_as, render_for

        write_stdout(render_as(comparison, layout) if layout else render_for(comparison, sys.stdout))


def _values(vary: tuple[str, ...]) -> dict[str, list[str]]:
    values: dict[str, list[str]] = {}
    for text in vary:
        key, equals, listed = text.partition("=")
        key = key.strip()
        if not equals or not key:
            raise UserError(f"--vary {text}: write --vary KEY=A,B, such as --vary host.scheduler=noop,map+")
        if key in values:
            raise UserError(f"--vary {text}: {key} is varied already; name all its values in one --vary")
        values[key] = [value.strip() for value in listed.split(",")]
        for value in values[key]:
            least, dots, most = value.partition("..")
            if dots and quantity(least) is not None and quantity(most) is not None:
                raise UserError(f"--vary {text}: no range; list the values, {key}={least},...,{most}")
        if "" in values[key]:
            raise UserError(f"--vary {text}: an empty value; separate values by single commas")
    return values
