"""``ftlab crash --live``: the user's own program under power cuts."""

from __future__ import annotations

import dataclasses
import json
import os
import pwd
import shlex
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import click

from ftlab import _core
from ftlab._core import Config, UserError
from ftlab.cli import options
from ftlab.cli.stopping import Asked, asked_to_stop
from ftlab.configs import Override, file_name, keys, load
from ftlab.live.cuts import Campaign, Covered, Failure, Outcome, Programs
from ftlab.live.search import Search
from ftlab.outputs import tell, write_stdout
from ftlab.process import ENDED
from ftlab.units import count, duration, quantity

FAULT = 1
"""The exit status if the device, or the program, broke a promise."""
CACHE = "1MiB"
"""The volatile cache of a device whose configuration has none."""
BUFFER = "device.write_buffer"
MOST_EXACT = 1 << 53
"""The largest number of states that is told; JSON readers may round larger ones."""
MOST_SEED = (1 << 63) - 1
"""The largest seed of a first cut; those of the others are counted from it on, in 64 bits."""


class Wanted(NamedTuple):
    """What a campaign is to do."""

    cuts: int
    seed: str | None
    jobs: int
    keep: str | None
    minimise: bool
    every: int | None


def owner_of(name: str | None) -> tuple[int, int] | None:
    """Returns the numbers of a user and of the user's group.

    Raises:
        UserError: there is no such user, or only root may give files away.
    """
    if name is None:
        return None
    try:
        found = pwd.getpwnam(name)
    except KeyError:
        raise UserError(f"--owner {name}: there is no such user") from None
    if os.geteuid() != 0:
        raise UserError(f"--owner {name}: only root may give files to another user")
    return found.pw_uid, found.pw_gid


def seconds(text: str) -> float:
    """Returns a time such as 35s in seconds.

    Raises:
        UserError: it is not a time.
    """
    ns = quantity(text) if text.endswith("s") else None
    if ns is None or ns < 0:
        raise UserError(f"--settle {text}: a time with its unit, for example 35s")
    return ns / 1e9


def seed_of(text: str | None) -> int:
    """Returns the seed of the first cut.

    Raises:
        UserError: it is not a number, or out of range.
    """
    try:
        seed = int(text or "1")
    except ValueError:
        seed = -1
    if not 0 <= seed <= MOST_SEED:
        raise UserError(f"--seed {text}: with --live, a whole number from 0 to {MOST_SEED}")
    return seed


def _states_policy(config: str, policy: str) -> bool:
    """Returns whether a configuration that resolves to this policy of the buffer names it itself."""
    if policy != keys()[f"{BUFFER}_policy"]["default"]:
        return True
    # A resolved configuration does not tell a default from the same value in a file.
    stated = json.loads(_core.read_toml(config, "a configuration")) if file_name(config) else {}
    return "write_buffer_policy" in stated.get("device", {})


def volatile(config: str, user: list[Override]) -> tuple[Config, list[str]]:
    """Resolves the configuration of a device whose cache is volatile, as drives' caches are, and on which a
    cut loses what its seed draws; returns it with notes on what the user did not ask for.
    """
    safe = Override("--live", "ftl.power_safe", "true")
    given = {override.key for override in user}
    device = json.loads(load(config, [safe, *user]).json())["device"]
    added, notes = [safe], []
    none = quantity(device["write_buffer"]) == 0
    if none and BUFFER in given:
        return load(config, [safe, *user]), []
    if none:
        added.append(Override("--live", BUFFER, CACHE))
        notes.append(f"the device gets a volatile cache of {CACHE}; --set {BUFFER}=0B leaves it out")
    if device["power_loss_protection"] and "device.power_loss_protection" not in given:
        added.append(Override("--live", "device.power_loss_protection", "false"))
        notes.append("device.power_loss_protection is false here: the cache is volatile")
    if f"{BUFFER}_policy" not in given and not _states_policy(config, device["write_buffer_policy"]):
        added.append(Override("--live", f"{BUFFER}_policy", "adversarial"))
    return load(config, [*added, *user]), notes


def run(
    config: str,
    settings: tuple[str, ...],
    flags: dict[str, str | None],
    json_path: str | None,
    programs: Programs,
    wanted: Wanted,
) -> None:
    """Cuts the power under the user's own program, and reports."""
    if not programs.command:
        raise UserError("which command? ftlab crash CONFIG --live -- COMMAND")
    seed = seed_of(wanted.seed)
    resolved, notes = volatile(config, options.overrides(settings, flags))
    options.say_notes(resolved)
    for note in notes:
        tell(f"note: {note}")
    buffer = json.loads(resolved.json())["device"]
    drawn = quantity(buffer["write_buffer"]) != 0 and buffer["write_buffer_policy"] == "adversarial"
    if (wanted.every or wanted.minimise) and not drawn:
        option = "--every" if wanted.every else "--minimise"
        raise UserError(
            f"{option}: there is no cache whose states could be chosen; leave device.write_buffer* out"
        )
    output = options.json_output(json_path)
    keep = None if wanted.keep is None else _directory(wanted.keep)
    outcome = _searched(lambda ended: _outcome(Campaign(resolved, programs, ended, keep), seed, wanted))
    least = None
    if wanted.minimise and outcome.failures:
        failure = outcome.failures[0]
        try:
            least = _searched(lambda ended: Search(Campaign(resolved, programs, ended)).minimise(failure))
        except UserError as error:
            tell(f"warning: nothing was minimised: {error}")
            wanted = wanted._replace(minimise=False)
    result = _result(resolved, programs, seed, outcome, least)
    text = json.dumps(result, indent=2) + "\n"
    if output:
        output.write(text.encode())
    write_stdout(text if json_path == "-" else _report(result))
    if outcome.failures:
        _complain(outcome.failures[0], least, wanted, keep)
        click.get_current_context().exit(FAULT)


def _directory(name: str) -> Path:
    """Makes the directory for what a failure leaves; it has to be empty."""
    path = Path(name)
    try:
        path.mkdir(parents=True, exist_ok=True)
        if any(path.iterdir()):
            raise UserError(f"--keep {name}: is not empty")
    except OSError as error:
        raise UserError(f"--keep {name}: {error.strerror}") from None
    return path


T = TypeVar("T")


def _searched(work: Callable[[Asked], T]) -> T:
    """Returns what the work returns, which ends early if a signal asks for that."""
    with asked_to_stop(number for number in ENDED if signal.getsignal(number) != signal.SIG_IGN) as asked:
        done = work(asked)
    if asked.number:
        # Nothing is mounted any more, so the signal may now end this command, as it ends other commands.
        os.kill(os.getpid(), asked.number)
    return done


def _outcome(campaign: Campaign, seed: int, wanted: Wanted) -> Outcome:
    start, told = time.monotonic(), [0]

    def progress() -> None:
        told[0] += 1
        if told[0] % 10 == 0:
            of = "" if wanted.every else f" of {wanted.cuts}"
            click.echo(f"{told[0]}{of} cuts, {time.monotonic() - start:.0f} s", err=True)

    if wanted.every:
        return Search(campaign).every(seed, wanted.every, wanted.jobs, progress)
    return campaign.run(range(seed, seed + wanted.cuts), wanted.jobs, progress)


def _result(
    resolved: Config, programs: Programs, seed: int, outcome: Outcome, least: Failure | None
) -> dict[str, Any]:
    took = outcome.recoveries_ns

    def plain(failure: Failure) -> dict[str, Any]:
        return {key: value for key, value in dataclasses.asdict(failure).items() if key != "told"}

    return {
        "schema": "ftlab.crash-live.v1",
        "config": json.loads(resolved.json()),
        "command": list(programs.command),
        "seed": seed,
        "cuts": outcome.cuts,
        "operations": outcome.operations,
        "requests": outcome.requests,
        "states": outcome.states and _covered(outcome.states),
        "torn_programs": outcome.torn_programs,
        "torn_erases": outcome.torn_erases,
        "recovery": {"mean_ns": round(sum(took) / len(took)), "max_ns": max(took)} if took else None,
        "failures": [plain(failure) for failure in outcome.failures],
        "least": least and plain(least),
    }


def _covered(states: Covered) -> dict[str, Any]:
    """Returns the numbers of states; None stands for one above `MOST_EXACT`."""
    numbers = dataclasses.asdict(states)
    return {name: number if number <= MOST_EXACT else None for name, number in numbers.items()}


def _report(result: dict[str, Any]) -> str:
    """Returns the result as text."""
    took, states = result["recovery"], result["states"]
    recovery = (
        took
        and f"  time of a recovery: mean {duration(took['mean_ns'])}, longest {duration(took['max_ns'])}\n"
    )

    def part(judged: int, there: int | None) -> str:
        return f"{count(judged)} of {f'more than {count(MOST_EXACT)}' if there is None else count(there)}"

    covered = states and (
        f"  states judged: {part(states['judged'], states['all'])} of whole writes,"
        f" {part(states['torn'], states['torn_all'])} with a torn one\n"
    )
    return (
        f"{shlex.join(result['command'])}: {count(result['cuts'])} power cuts from seed {result['seed']} on,"
        f" {count(len(result['failures']))} failed\n"
        f"  without a cut: {count(result['operations'])} programs and erases,"
        f" {count(result['requests'])} writes, trims and flushes\n"
        f"{covered or ''}"
        f"  torn: {count(result['torn_programs'])} programs, {count(result['torn_erases'])} erases\n"
        f"{recovery or ''}"
    )


def _place(failure: Failure) -> str:
    """Returns where a cut was, in words."""
    if failure.request:
        return f"cut at request {count(failure.request)}"
    return f"cut in operation {count(failure.operation)}"


def _complain(failure: Failure, least: Failure | None, wanted: Wanted, keep: Path | None) -> None:
    """Reports what was lost, and how to see it again."""
    lines = [
        f"ftlab: seed {failure.seed}: {_place(failure)}, the check fails (exit status {failure.status}):",
        failure.text,
        failure.told,
    ]
    if least:
        lines += [f"earliest failure with the smallest loss: {_place(least)}", least.text, least.told]
    elif wanted.minimise:
        lines.append("no cut fails again, so nothing was minimised")
    if keep:
        lines.append(f"The device as the cut left it: {keep}/image; what was lost: {keep}/explanation.txt")
    if not wanted.every:
        lines.append(f"To see it again: the same command with --seed {failure.seed} --cuts 1")
    click.echo("\n".join(line for line in lines if line), err=True)
