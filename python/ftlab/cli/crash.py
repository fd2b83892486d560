"""``ftlab crash``."""

from __future__ import annotations

import json
import shlex
import sys
from typing import Any

import click

from ftlab import _core
from ftlab._core import UserError
from ftlab.cli import completing, crash_live, options
from ftlab.configs import load
from ftlab.live.cuts import Programs
from ftlab.outputs import check_distinct, write_stdout
from ftlab.units import count, duration


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
    help="Cut when this many programs and erases have finished, instead of at random. Repeatable; those of"
    " recoveries do not count.",
)
@click.option("--live", is_flag=True, help="Cut the power under a COMMAND of your own, on a live device.")
@click.option(
    "--check-command",
    metavar="CMD",
    help="With --live: a shell command that judges the recovered device; it fails if something is lost.",
)
@click.option(
    "--setup-command",
    metavar="CMD",
    help="With --live: a shell command that runs once, before any cut, on the device they all begin with.",
)
@click.option(
    "--fuse", is_flag=True, help="With --live: the device is a file for the programs, not an NBD URI."
)
@click.option(
    "--jobs", type=click.IntRange(1), metavar="N", help="With --live: number of cuts at a time.  [default: 1]"
)
@click.option(
    "--keep",
    metavar="DIR",
    help="With --live: put the device of the first failure, as the cut left it, and what was lost into DIR.",
)
@click.option(
    "--minimise",
    is_flag=True,
    help="With --live: after a failure, look for the earliest cut and the smallest loss that still fail.",
)
@click.option(
    "--every",
    type=click.IntRange(1),
    is_flag=False,
    flag_value=64,
    metavar="N",
    help="With --live: cut at every write, trim and flush, and judge every state of the unflushed writes, at"
    " most N for each cut (64 without N). For short programs.",
)
@click.option(
    "--owner", metavar="USER", help="With --live: the directories and the sockets belong to this user (root)."
)
@click.option(
    "--settle",
    default="0s",
    show_default=True,
    metavar="TIME",
    help="With --live: how long the device stays up after COMMAND has ended, before a cut that has not come.",
)
@click.argument("command", nargs=-1, type=click.UNPROCESSED)
def crash(
    config: str,
    settings: tuple[str, ...],
    json_path: str | None,
    cuts: int,
    operations: int,
    at: tuple[int, ...],
    live: bool,
    check_command: str | None,
    setup_command: str | None,
    fuse: bool,
    jobs: int | None,
    keep: str | None,
    minimise: bool,
    every: int | None,
    owner: str | None,
    settle: str,
    command: tuple[str, ...],
    **flags: str | None,
) -> None:
    """Cut the power again and again, recover from flash alone, verify what was promised.

    Every cut falls between two flash operations or tears a page or a block; recoveries are cut too.
    Verified are every write and trim that a completed flush covers, every completed write with FUA,
    that every other page has a version that was written, and every invariant of the mapping, while the
    device goes on.

    CONFIG is a preset's name or a TOML file; the preset `crash` is a small device made for this. Without a
    workload the requests are random writes, trims, reads and flushes. The seed determines the cuts.

    With --live COMMAND runs on a live device (`ftlab serve`), which it finds in $FTLAB_DISK; power is cut
    in a random program or erase, or at a random request, the device recovers, --check-command judges. Each
    cut has a seed of its own, counted from --seed on. The device has a volatile cache
    (device.write_buffer), of which a cut loses what its seed draws.
    """
    context = click.get_current_context()
    if live:
        given = {"--operations": "operations", "--at": "at"}
        for option, name in given.items():
            if context.get_parameter_source(name) is not click.core.ParameterSource.DEFAULT:
                raise UserError(f"{option}: with --live the command's own operations are cut, at random")
        if every and context.get_parameter_source("cuts") is not click.core.ParameterSource.DEFAULT:
            raise UserError("--every and --cuts exclude each other: --every cuts at each request")
        seed = flags.pop("seed")
        programs = Programs(
            command,
            setup_command,
            check_command,
            fuse,
            crash_live.owner_of(owner),
            crash_live.seconds(settle),
        )
        wanted = crash_live.Wanted(cuts, seed, jobs or 1, keep, minimise, every)
        crash_live.run(config, settings, flags, json_path, programs, wanted)
        return
    settles = context.get_parameter_source("settle") is not click.core.ParameterSource.DEFAULT
    if any((*command, check_command, setup_command, fuse, jobs, keep, minimise, every, owner, settles)):
        raise UserError(
            "a command, its setup and check, --fuse, --jobs, --keep, --minimise, --every, --owner and"
            " --settle belong to --live"
        )
    for option in ("cuts", "operations"):
        if at and context.get_parameter_source(option) is not click.core.ParameterSource.DEFAULT:
            raise UserError(f"--at and --{option} exclude each other: --at says when each cut is")
    resolved = load(config, options.overrides(settings, flags))
    options.say_notes(resolved)
    output = options.json_output(json_path)
    if output:
        check_distinct([output], [resolved.trace] if resolved.trace else [])

    from ftlab.progress import Reporter

    with Reporter(unit="power cuts", whole=len(at) or cuts) as reporter:
        text = _core.crash(
            resolved,
            cuts=cuts,
            operations=operations,
            at=sorted(at) or None,
            progress=reporter.callback(config),
        )
    result = json.loads(text)
    if output:
        output.write((json.dumps(result, indent=2) + "\n").encode())
    write_stdout(json.dumps(result, indent=2) + "\n" if json_path == "-" else report(result))
    if result["fault"] is not None:
        _complain(result, config, settings, flags, operations, at)
        context.exit(crash_live.FAULT)


def report(result: dict[str, Any]) -> str:
    """Returns the result as text."""
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
    """Reports what broke, and how to reproduce it."""
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
        f"This is a bug in ftlab {_core.__version__}. Seed {seed}; to see it again:\n  {shlex.join(again)}",
        file=sys.stderr,
    )
