"""``ftlab crash``."""

from __future__ import annotations

import json
import shlex
import sys
from typing import Any

import click

from ftlab import _core
from ftlab._core import UserError
from ftlab.cli import completing, options
from ftlab.configs import load
from ftlab.outputs import check_distinct, write_stdout
from ftlab.units import count, duration

FAULT = 1
"""Exit status when the device broke a promise."""


@click.command()
@click.argument("config", shell_complete=completing.presets)
@options.shorthands()
@options.set_option
@options.json_option
@click.option(
    "--cuts",
    type=click.IntRange(1),
    default=300,
    show_default=True,
    metavar="N",
    help="How many random cuts.",
)
@click.option(
    "--operations",
    type=click.IntRange(1, 1 << 32),
    default=200,
    show_default=True,
    metavar="N",
    help="Programs and erases between two random cuts, on average.",
)
@click.option(
    "--at",
    type=click.IntRange(0),
    multiple=True,
    metavar="OP",
    help="Cut when so many programs and erases have finished, instead of at random. Repeatable; those of"
    " recoveries do not count.",
)
def crash(
    config: str,
    settings: tuple[str, ...],
    json_path: str | None,
    cuts: int,
    operations: int,
    at: tuple[int, ...],
    **flags: str | None,
) -> None:
    """Cut the power again and again, recover from flash alone, verify what was promised.

    Every cut falls between two flash operations or tears a page or a block; recoveries are cut too.
    Verified are every write and trim that a completed flush covers, every completed write with FUA,
    that every other page has a version that was written, and every invariant of the mapping, while the
    device goes on.

    CONFIG is a preset's name or a TOML file; the preset `crash` is a small device for this. Without a
    workload the requests are random writes, trims, reads and flushes. The cuts follow from the seed.
    """
    context = click.get_current_context()
    for option in ("cuts", "operations"):
        if at and context.get_parameter_source(option) is not click.core.ParameterSource.DEFAULT:
            raise UserError(f"--at and --{option} exclude each other: --at says when each cut is")
    resolved = load(config, options.overrides(settings, flags))
    options.say_notes(resolved)
    output = options.json_output(json_path)
    if output:
        check_distinct([output], [resolved.trace] if resolved.trace else [])

    from ftlab.progress import Reporter
    from ftlab.traces import chunks_of

    with Reporter(unit="power cuts") as reporter:
        text = _core.crash(
            resolved,
            cuts=cuts,
            operations=operations,
            at=sorted(at) or None,
            chunks=chunks_of(resolved),
            progress=reporter.callback(config),
        )
    result = json.loads(text)
    if output:
        output.write((json.dumps(result, indent=2) + "\n").encode())
    write_stdout(json.dumps(result, indent=2) + "\n" if json_path == "-" else report(result))
    if result["fault"] is not None:
        _complain(result, config, settings, flags, operations, at)
        context.exit(FAULT)


def report(result: dict[str, Any]) -> str:
    """The result as text."""
    recovery, resolved = result["recovery"], result["config"]
    mean, longest = recovery["elapsed_ns"]["mean"], recovery["elapsed_ns"]["max"]
    lines = [
        f"FTL {resolved['ftl']['kind']}: {count(result['cuts'])} power cuts, seed {resolved['seed']}",
        f"  before the cuts: {count(result['requests'])} requests acknowledged, "
        f"{count(result['operations'])} programs and erases",
        f"  torn: {count(result['torn_programs'])} programs, {count(result['torn_erases'])} erases",
        f"  durable and verified: {count(result['durable_writes'])} writes, "
        f"{count(result['durable_trims'])} trims; {count(result['pages_verified'])} pages compared",
        f"  recoveries: {count(recovery['count'])}, and {count(recovery['cut'])} that were cut themselves",
        f"  time of a recovery: mean {duration(round(mean))}, longest {duration(longest)}",
    ]
    if result["read_only"]:
        lines.insert(1, "  blocks wore out, the device is read-only: no cut comes after the last one")
    names = {
        "scan_reads": "spare areas read",
        "map_reads": "mapping pages read",
        "gc_reads": "pages read to be copied",
        "programs": "pages programmed",
        "erases": "blocks erased",
    }
    for key, name in names.items():
        lines.append(f"    {name}: mean {recovery[key]['mean']:.1f}, most {count(recovery[key]['max'])}")
    return "\n".join(lines) + "\n"


def _complain(
    result: dict[str, Any],
    config: str,
    settings: tuple[str, ...],
    flags: dict[str, str | None],
    operations: int,
    at: tuple[int, ...],
) -> None:
    """Says what broke, and how to see it again."""
    fault, seed = result["fault"], result["config"]["seed"]
    again = ["ftlab", "crash", config]
    for name, value in {**flags, "seed": str(seed)}.items():
        again += [f"--{name.replace('_', '-')}", value] if value is not None else []
    for setting in settings:
        again += ["--set", setting]
    if at:
        again += [part for op in sorted(at)[: fault["cut"]] for part in ("--at", str(op))]
    else:
        again += ["--cuts", str(fault["cut"]), "--operations", str(operations)]
    print(
        f"ftlab: cut {fault['cut']}: {fault['what']}\n"
        f"This is a fault of ftlab {_core.__version__}. Seed {seed}; to see it again:\n  {shlex.join(again)}",
        file=sys.stderr,
    )
