"""``ftlab top``: a running live device in the terminal."""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING, Any

import click

from ftlab.live import devices
from ftlab.units import count, duration, fio, percent, share_of, significant, size

if TYPE_CHECKING:
    from rich.console import Group
    from rich.table import Table


@click.command()
@click.argument("path", required=False)
@click.option(
    "--interval",
    type=click.FloatRange(0.1, 3600),
    default=1.0,
    show_default=True,
    metavar="SECONDS",
    help="Interval between two looks.",
)
@click.option("--once", is_flag=True, help="Look once.  [default: if the output is not a terminal]")
def top(path: str | None, interval: float, once: bool) -> None:
    """Watch a live device until it stops or you interrupt.

    PATH is its control socket, or the Unix socket of its NBD server; without it, the only device that
    runs is shown. Rates are those of the last interval, the rest is since the start.
    """
    from rich.console import Console
    from rich.live import Live

    path = path or devices.the_only()
    before, at = devices.ask(path, "stats"), time.monotonic()
    console = Console()
    if once or not sys.stdout.isatty():
        console.print(view(path, before, before, 1.0))
        return
    try:
        with Live(view(path, before, before, 1.0), console=console, screen=True, auto_refresh=False) as shown:
            while True:
                time.sleep(interval)
                after, now = devices.ask(path, "stats"), time.monotonic()
                shown.update(view(path, before, after, now - at), refresh=True)
                before, at = after, now
    except KeyboardInterrupt:
        return


def view(path: str, before: dict[str, Any], after: dict[str, Any], seconds: float) -> Group:
    """Returns all that is shown; rates are computed from two results that are ``seconds`` apart."""
    from rich.console import Group
    from rich.text import Text

    own, config = after["live"], after["config"]
    pace = "time free" if own["time"] == "free" else f"time real, speed {significant(own['speed'])}"
    head = (
        f"{path}: FTL {config['ftl']['kind']}, scheduler {config['host']['scheduler']}; {pace};"
        f" {duration(own['simulated_ns'])} simulated"
    )
    return Group(
        Text(head, style="bold"),
        _requests(before, after, seconds),
        *_tenants(before, after, seconds),
        *_programs(after),
        _flash(before, after, seconds),
        Text("\n".join(_facts(after))),
    )


def _requests(before: dict[str, Any], after: dict[str, Any], seconds: float) -> Table:
    """Returns the table of reads and writes with their latencies."""
    table = _table("requests", "all", "/s", "bytes", "bytes/s", "p50", "p99", "max")
    for name, field in (("read", "reads"), ("write", "writes"), ("trim", "trims"), ("flush", "flushes")):
        row = [fio(after["trace"][field]), _rate(before["trace"][field], after["trace"][field], seconds)]
        if name in after["latency"]:
            moved, times = f"bytes_{'read' if name == 'read' else 'written'}", after["latency"][name]
            rate = (after["trace"][moved] - before["trace"][moved]) / seconds
            at = times["percentile_ns"]
            row += [_bytes(after["trace"][moved]), _bytes(rate)]
            row += [duration(at.get(f"{percent}.000000")) for percent in (50, 99)]
            row += [duration(times["max_ns"] if times["count"] else None)]
        table.add_row(name, *row)
    return table


def _tenants(before: dict[str, Any], after: dict[str, Any], seconds: float) -> list[Table]:
    """Returns the table of tenants, if the device tells them apart and any has sent requests."""
    if not after.get("tenants"):
        return []
    table = _table("tenant", "requests", "/s", "read", "written", "p50", "p99", "max", "flash")
    earlier = {tenant["name"]: tenant["requests"] for tenant in before.get("tenants") or ()}
    for tenant in after["tenants"]:
        times, share = tenant["latency"]["all"], tenant["flash"]["share"]
        at = times["percentile_ns"]
        table.add_row(
            tenant["name"],
            fio(tenant["requests"]),
            _rate(earlier.get(tenant["name"], 0), tenant["requests"], seconds),
            _bytes(tenant["bytes_read"]),
            _bytes(tenant["bytes_written"]),
            *(duration(at.get(f"{percent}.000000")) for percent in (50, 99)),
            duration(times["max_ns"] if times["count"] else None),
            "-" if share is None else f"{100 * share:.0f} %",
        )
    return [table]


def _programs(after: dict[str, Any]) -> list[Table]:
    """Returns the table of programs, if the device tells them apart and any has asked."""
    programs = after["live"].get("programs")
    if not programs:
        return []
    table = _table("program", "reads", "p50", "p99", "writes", "p50", "p99", "flushes", "p99")
    for program in programs:
        row = []
        for kind, percents in (("read", (50, 99)), ("write", (50, 99)), ("flush", (99,))):
            times = program[kind]
            row += [fio(times["count"]), *(_percentile(times, percent) for percent in percents)]
        table.add_row(program["name"], *row)
    return [table]


def _percentile(times: dict[str, Any], percent: int) -> str:
    return duration(times["percentile_ns"].get(f"{percent}.000000"))


def _flash(before: dict[str, Any], after: dict[str, Any], seconds: float) -> Table:
    """Returns the table of flash operations by cause, without causes that did not occur."""
    table = _table("flash", "reads", "/s", "programs", "/s", "erases", "/s", "time")
    whole = sum(after["flash"]["busy_ns"].values())
    for cause, busy_ns in after["flash"]["busy_ns"].items():
        row = []
        for kind in ("reads", "programs", "erases"):
            was, now = before["flash"][kind][cause], after["flash"][kind][cause]
            row += [fio(now), _rate(was, now, seconds)]
        if any(after["flash"][kind][cause] for kind in ("reads", "programs", "erases")):
            table.add_row(cause, *row, f"{100 * busy_ns / whole:.0f} %" if whole else "-")
    return table


def _facts(data: dict[str, Any]) -> list[str]:
    """Returns lines with the figures that need no table."""
    own, waf, late = data["live"], data["waf"], data["live"]["lateness"]
    causes = ", ".join(f"{cause} {significant(waf[cause])}" for cause in ("gc", "map", "merge", "pad"))
    lines = [
        f"write amplification: {significant(waf['total'])} ({causes})",
        f"free blocks: {count(own['free_blocks'])}",
        f"queues: {count(own['waiting'])} in the host, {count(own['held'])} in the device",
        f"connections: {count(own['connections'])} so far; data kept: {size(own['payload_bytes'])}",
    ]
    hits = data["mapping"]["hit_ratio"]
    if hits is not None:
        lines.append(f"mapping: hit ratio {significant(100 * hits)} %")
    lines += _troubles(data)
    if late["count"]:
        at = late["percentile_ns"]
        lines.append(f"lateness: p50 {duration(at['50.000000'])}, p99 {duration(at['99.000000'])}")
    found = own["interference"] or {}
    if (share := found.get("wait_share")) is not None:
        pressure = found["pressure"]
        others = (
            "" if pressure is None else f"; the machine's tasks waited in {percent(pressure)} of the time"
        )
        lines.append(f"wait for processors: {share_of(share, 'the served time')}{others}")
    if (recording := own.get("recording")) is not None:
        state = f"ENDED: {recording['error']}" if recording["error"] else f"{count(recording['files'])} files"
        lines.append(f"recording: {count(recording['requests'])} requests, {state}")
    return lines


def _troubles(data: dict[str, Any]) -> list[str]:
    """Returns lines on what fails or is worn, and what the device was told."""
    own, health, errors = data["live"], data["health"], data.get("errors")
    lines = []
    used = health["nvme_smart"]["percentage_used"]
    if health["state"] != "good" or used is not None:
        life = "" if used is None else f", {used} % of life used"
        spare = health["nvme_smart"]["available_spare"]
        life += "" if spare is None else f", {spare} % of spare blocks left"
        lines.append(f"health: {health['state']}{life}")
    if errors:
        lines.append(
            f"read errors: {count(errors['retried_reads'])} reads repeated,"
            f" {count(errors['failed_reads'])} failed"
        )
    if any(own["failed"].values()):
        made = own["failed"]
        lines.append(f"made to fail: {count(made['reads'])} reads, {count(made['writes'])} writes")
    if own["told"]:
        lines.append("told: " + ", ".join(each["command"] for each in own["told"]))
    return lines


def _rate(before: int, after: int, seconds: float) -> str:
    """Returns a rate in at most six characters, as digits are cut where 80 columns do not suffice."""
    rate = (after - before) / seconds
    return fio(rate) if rate >= 100 else significant(rate, 3)


def _bytes(value: float) -> str:
    return f"{fio(value, 1024)}B"


def _table(*columns: str) -> Table:
    """Makes a table whose first column is text."""
    from rich.table import Table

    table = Table(box=None, pad_edge=False, padding=(0, 1), title=" ", header_style="bold underline")
    for column in columns:
        first = column == columns[0]
        table.add_column(column, justify="left" if first else "right", no_wrap=not first, overflow="fold")
    return table
