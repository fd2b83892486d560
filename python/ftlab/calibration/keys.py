"""The free keys of a calibration: which, within which bounds, and which rows tell them."""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from ftlab._core import UserError
from ftlab.calibration import mva
from ftlab.calibration.row import FULL, STEADY, Row
from ftlab.configs import keys, to_text
from ftlab.studies.tuning import Parameter
from ftlab.units import quantity

BY_TYPE = ("flash.read",)
"""Keys that hold one value for each page type, each of which is free by itself."""
BITS = {"slc": 1, "mlc": 2, "tlc": 3, "qlc": 4}
"""Page types of a word line, by `flash.cell`."""

DIES = "flash.chips_per_channel"
"""The key that sets how many dies there are; the channels are the base's."""
MOST_CHIPS = 16
"""The greatest number of chips of a channel that is tried by default."""

DECADES = 100
"""The ratio of a range's ends above which it is searched on a logarithmic scale."""
LEAST_DEPTHS = 3
"""Of how many depths a closed form makes sense."""
MOST_STARTS = 6
"""How many starts in closed form there are."""
IDLE = 0.5
"""How busy the controller is at most in half of the starts, in which the dies bound the rate."""

FREE_LINK = 256
"""The greatest rate of a link, as a multiple of what it carried at least: such a link takes no time."""

OVER = (1.0, 60.0)
"""Over-provisioning that is searched, in per cent."""

LINK = "device.link"
_PICOS = ("flash.transfer",)
_BANDWIDTHS = (LINK,)
_STEP_OF_BUFFER = "KiB"


@dataclass(frozen=True)
class Stage:
    """A part of the search: the rows that it takes in, and the keys which those tell."""

    name: str
    rows: tuple[Row, ...]
    """All rows that are to be met, those of earlier stages included."""
    free: tuple[Parameter, ...]
    starts: tuple[Mapping[str, str], ...] = ()
    """Where the search begins: values of some of the free keys, by name."""


def setting(settings: Mapping[str, Any], key: str) -> Any:
    """Returns the value of a dotted key in a resolved configuration; None if it is not set."""
    value: Any = settings
    for name in key.split("."):
        value = value.get(name) if isinstance(value, Mapping) else None
    return value


def types_of(settings: Mapping[str, Any], key: str) -> int:
    """Returns how many values a key holds: one, or one for each page type."""
    return BITS[settings["flash"]["cell"]] if key in BY_TYPE else 1


def values_of(free: Sequence[Parameter], chosen: Mapping[str, str]) -> dict[str, str]:
    """Returns the keys of a configuration that hold the chosen values of the free keys."""
    found: dict[str, list[str]] = {}
    for each in free:
        if each.name in chosen:
            found.setdefault(each.key, []).append(chosen[each.name])
    return {key: "/".join(values) for key, values in found.items()}


def chosen_of(free: Sequence[Parameter], settings: Mapping[str, Any]) -> dict[str, str]:
    """Returns the values that a configuration gives the free keys, put within their bounds."""
    found: dict[str, str] = {}
    for each in free:
        text = to_text(setting(settings, each.key))
        parts = text.split("/")
        at = int(each.name.partition("[")[2].rstrip("]") or 0)
        value = quantity(parts[min(at, len(parts) - 1)])
        if each.choices:
            found[each.name] = text if text in each.choices else each.choices[0]
            continue
        number = each.low if value is None else _scaled(each, value)
        found[each.name] = each.text(round(min(max(number, each.low), each.high)))
    return found


def _scaled(free: Parameter, value: float) -> float:
    """Converts a quantity of `ftlab.units` to the unit in which a free key is counted."""
    return value / (quantity("1" + free.unit.removesuffix("/s")) or 1) if free.unit != "ps" else value * 1000


def declared(texts: Sequence[str], settings: Mapping[str, Any]) -> tuple[Parameter, ...]:
    """Reads the free keys of ``--free KEY=LOW..HIGH`` and ``--free KEY=A,B,C``.

    Raises:
        UserError: the key is unknown, or its range is wrong.
    """
    found: list[Parameter] = []
    for text in texts:
        key, equals, range_ = text.partition("=")
        key = key.strip()
        if not equals:
            raise UserError(
                f"--free {text}: write --free KEY=LOW..HIGH, such as --free flash.read=20us..80us"
            )
        if key not in keys():
            near = difflib.get_close_matches(key, keys(), 1)
            raise UserError(
                f"--free {text}: no key is called {key!r}" + (f"; did you mean {near[0]}?" if near else "")
            )
        if any(each.key == key for each in found):
            raise UserError(f"--free {text}: {key} is given twice")
        found += _split(_bounded(key, range_.strip(), f"--free {text}"), settings)
    return tuple(found)


def _split(free: Parameter, settings: Mapping[str, Any]) -> list[Parameter]:
    """Returns a free key for each page type of a key that has a value for each."""
    types = types_of(settings, free.key)
    return [free] if types == 1 else [replace(free, name=f"{free.name}[{at}]") for at in range(types)]


def _bounded(key: str, text: str, where: str) -> Parameter:
    ends = re.split(r"\s*\.\.\s*", text)
    if len(ends) == 1 and "," in text:
        choices = tuple(each.strip() for each in text.split(","))
        return Parameter(key, key, choices, 0.0, 0.0, False, "", None)
    unit = _unit_of(key)
    numbers = [quantity(end) for end in ends]
    if len(ends) != 2 or None in numbers:
        raise UserError(f"{where}: a range is LOW..HIGH with two quantities, choices are A,B,C")
    plain = Parameter(key, key, (), 0.0, 0.0, False, unit, None)
    low, high = (float(round(_scaled(plain, number))) for number in numbers if number is not None)
    if not 0 <= low < high:
        raise UserError(f"{where}: the first is the least, and not below 0")
    return ranged(key, low, high)


def _unit_of(key: str) -> str:
    """Returns the unit in which a key's values are counted, as whole numbers."""
    if key in _PICOS:
        return "ps"
    if key in _BANDWIDTHS:
        return "MB/s"
    schema = keys()[key]
    patterns = " ".join(each.get("pattern", "") for each in (schema, *schema.get("anyOf", ())))
    if "|KiB|" in patterns:
        return _STEP_OF_BUFFER
    return "ns" if "us" in patterns else "%" if "%" in patterns else ""


def ranged(key: str, low: float, high: float) -> Parameter:
    """Returns a free key within bounds, in the unit in which it is counted."""
    # Times add up, so they are searched as they are; only in a wide range does the low end need room.
    log = low > 0 and high / low > DECADES
    return Parameter(key, key, (), float(round(low)), float(round(high)), log, _unit_of(key), None)


def stages(rows: Sequence[Row], settings: Mapping[str, Any], free: Sequence[Parameter]) -> list[Stage]:
    """Returns the stages of a search: one with all ``free`` keys, or those of the unknowns that rows tell.

    Raises:
        UserError: no row tells anything by default, so that free keys have to be named.
    """
    if free:
        starts = [
            _begun(name, own, settings, free)
            for name, own in (("reads", _smallest(rows)), ("writes", _writes(rows)))
        ]
        return [Stage("all", tuple(rows), tuple(free), tuple(each for part in starts for each in part))]
    found: list[Stage] = []
    for name, own, make in (
        ("reads", _smallest(rows), _of_reads),
        ("sizes", _larger(rows), _of_sizes),
        ("streams", [row for row in rows if row.op == "read"], _of_streams),
        ("writes", _writes(rows), _of_writes),
        ("steady", [row for row in rows if row.state == STEADY], _of_steady),
    ):
        if not own:
            continue
        before = found[-1].rows if found else ()
        told = [*before, *own] if name == "sizes" else own
        made = make(told, settings)
        if name in ("streams", "writes") and LINK not in {each.key for part in found for each in part.free}:
            made += _of_link(own, settings)
        keys_ = [part for each in made for part in _split(each, settings)]
        found.append(Stage(name, (*before, *own), tuple(keys_), _begun(name, own, settings, keys_)))
    if not found:
        raise UserError("--measured: no row whose job can be modelled; see `ftlab calibrate --help`")
    return found


def _begun(
    name: str, rows: Sequence[Row], settings: Mapping[str, Any], free: Sequence[Parameter]
) -> tuple[Mapping[str, str], ...]:
    """Returns the starts of a stage in closed form, if it has some."""
    made = {"reads": _starts, "writes": _write_starts}.get(name)
    return made(rows, settings, free) if made and rows else ()


def _writes(rows: Sequence[Row]) -> list[Row]:
    return [row for row in rows if row.op in ("write", "randwrite", "append") and row.state != STEADY]


def _random(rows: Sequence[Row]) -> list[Row]:
    return [row for row in rows if row.op == "randread"]


def _smallest(rows: Sequence[Row]) -> list[Row]:
    """Returns the random reads of up to 4 KiB, or else those of the smallest size."""
    least = max(min((row.bs for row in _random(rows)), default=0), 4096)
    return [row for row in _random(rows) if row.bs <= least]


def _larger(rows: Sequence[Row]) -> list[Row]:
    small = _smallest(rows)
    return [row for row in _random(rows) if row not in small]


def curve_of(rows: Sequence[Row]) -> dict[int, float]:
    """Returns mean latencies (us) by outstanding requests; of several rows the first counts."""
    curve: dict[int, float] = {}
    for row in sorted(rows, key=lambda row: row.jobs):
        curve.setdefault(row.depth * row.jobs, row.mean_us)
    return curve


def _least_us(rows: Sequence[Row]) -> float:
    return min(curve_of(rows).values())


def _per_command_us(rows: Sequence[Row]) -> float:
    """Returns the time between completions at the greatest rate, in us."""
    return min(mean / outstanding for outstanding, mean in curve_of(rows).items())


def _of_reads(rows: Sequence[Row], settings: Mapping[str, Any]) -> list[Parameter]:
    alone, each = _least_us(rows) * 1e3, _per_command_us(rows) * 1e3 * settings["device"]["cores"]
    return [
        Parameter(DIES, DIES, (), 1.0, float(MOST_CHIPS), True, "", None),
        ranged("device.latency_read", 0, alone),
        ranged("device.command_time", 0, each),
        ranged("flash.read", alone / 10, alone * 1.3),
        # Up to a quarter of the latency for 4 KiB; in ps a byte.
        ranged("flash.transfer", 0, alone / 16),
    ]


def _of_sizes(rows: Sequence[Row], settings: Mapping[str, Any]) -> list[Parameter]:
    unit = _unit(settings)
    per_unit = min(_per_command_us([row]) * unit / row.bs for row in rows) * 1e3
    # The link carried at least what was read.
    rate = _most_bytes(rows)
    return [
        ranged("device.unit_time", 0, per_unit * settings["device"]["cores"]),
        ranged(LINK, rate, rate * FREE_LINK),
    ]


def _of_link(rows: Sequence[Row], settings: Mapping[str, Any]) -> list[Parameter]:
    """Returns the link, if rows carried more than the base's does: no other key makes up for that."""
    rate, given = _most_bytes(rows), quantity(to_text(setting(settings, LINK)))
    return [ranged(LINK, rate, rate * FREE_LINK)] if given and given < rate * 1e6 else []


def _most_bytes(rows: Sequence[Row]) -> float:
    """Returns the greatest rate of rows in MB/s."""
    return max(row.bs / _per_command_us([row]) for row in rows)


def _of_streams(rows: Sequence[Row], settings: Mapping[str, Any]) -> list[Parameter]:
    page = quantity(settings["flash"]["page"]) or 4096
    return [ranged("device.read_ahead", page / 1024, 4096)]


def _of_writes(rows: Sequence[Row], settings: Mapping[str, Any]) -> list[Parameter]:
    cores, unit = settings["device"]["cores"], _unit(settings)
    full = [row for row in rows if row.state == FULL]
    plain = [row for row in rows if row.state != FULL] or full
    command = _per_command_us(_least_size(plain)) * 1e3 * cores
    program = _program_ns(full or plain, settings)
    free = [
        ranged("device.latency_write", 0, _least_us(plain) * 1e3),
        ranged("device.command_time_write", max(command / 20, 1), command),
        ranged("flash.program", program / 8, program * 2),
    ]
    if full:
        slc = _program_ns(plain, settings) / BITS[settings["flash"]["cell"]]
        free.append(ranged("flash.slc_program", slc / 8, slc * 2))
    if all(row.before is None or row.state == FULL for row in rows):
        free.append(ranged("device.write_buffer", 256, 256 * 1024))
    if len({row.bs for row in plain}) > 1:
        per_unit = min(_per_command_us([row]) * unit / row.bs for row in plain) * 1e3
        free.append(ranged("device.unit_time_write", 0, per_unit * cores))
    return free


def _of_steady(rows: Sequence[Row], settings: Mapping[str, Any]) -> list[Parameter]:
    return [ranged("ftl.over_provisioning", *OVER)]


def _least_size(rows: Sequence[Row]) -> list[Row]:
    least = min(row.bs for row in rows)
    return [row for row in rows if row.bs == least]


def _unit(settings: Mapping[str, Any]) -> float:
    return quantity(settings["ftl"]["logical_page"]) or quantity(settings["flash"]["page"]) or 4096


def _program_ns(rows: Sequence[Row], settings: Mapping[str, Any]) -> float:
    """Returns the program time with which all dies, always programming, give the greatest rate of rows."""
    flash = settings["flash"]
    page = quantity(flash["page"]) or 4096
    bits = BITS[flash["cell"]] if flash["programming"] == "word-line" else 1
    dies = int(flash["channels"] * flash["chips_per_channel"] * flash["planes_per_die"])
    return bits * page * dies / _most_bytes(rows) * 1e3


def _write_starts(
    rows: Sequence[Row], settings: Mapping[str, Any], free: Sequence[Parameter]
) -> tuple[Mapping[str, str], ...]:
    """Returns starts of writes: the controller bounds the smallest of them, or the flash does."""
    names = {each.name: each for each in free}
    plain = [row for row in rows if row.state != FULL] or rows
    small = _least_size(plain)
    behind = [row for row in rows if row.state == FULL] or rows
    slc_ns = _program_ns(plain, settings) / BITS[settings["flash"]["cell"]]
    bound = _per_command_us(small) * settings["device"]["cores"]
    found = []
    for busy in (1.0, IDLE):
        command_us = busy * bound
        start = {
            "device.command_time_write": f"{command_us * 1e3:.0f}ns",
            "device.latency_write": f"{max(_least_us(small) - command_us, 0.0) * 1e3:.0f}ns",
            "flash.program": f"{_program_ns(behind, settings):.0f}ns",
            "flash.slc_program": f"{slc_ns:.0f}ns",
        }
        found.append({name: _within(names[name], text) for name, text in start.items() if name in names})
    return tuple(found)


def _starts(
    rows: Sequence[Row], settings: Mapping[str, Any], free: Sequence[Parameter]
) -> tuple[Mapping[str, str], ...]:
    """Returns starts in closed form, the best first: loops of as many servers as dies may be, and page types
    whose mean, median and tail are those of a read alone.
    """
    curve = curve_of(rows)
    if len(curve) < LEAST_DEPTHS:
        return ()
    names = {each.name: each for each in free}
    flash = settings["flash"]
    lanes = flash["channels"] * (flash["dies_per_chip"] if flash["interleave"] else 1)
    chips = names.get(DIES)
    counts = range(int(chips.low), int(chips.high) + 1) if chips else [flash["chips_per_channel"]]
    types = types_of(settings, "flash.read")
    found = []
    loops = [mva.fit(curve, lanes * count, most) for count in counts for most in (1.0, IDLE)]
    for loop, _ in sorted(loops, key=lambda pair: pair[1])[:MOST_STARTS]:
        start = {
            DIES: str(loop.servers // lanes),
            "device.latency_read": f"{loop.delay_us * 1e3:.0f}ns",
            "device.command_time": f"{loop.command_us * 1e3:.0f}ns",
        }
        for at, time_us in enumerate(_types_us(loop.service_us, rows, types)):
            start["flash.read" + (f"[{at}]" if types > 1 else "")] = f"{time_us * 1e3:.0f}ns"
        found.append({name: _within(names[name], text) for name, text in start.items() if name in names})
    return tuple(found)


def _within(free: Parameter, text: str) -> str:
    if free.choices:
        return text if text in free.choices else free.choices[0]
    number = _scaled(free, quantity(text) or 0.0)
    return free.text(round(min(max(number, free.low), free.high)))


def _types_us(mean_us: float, rows: Sequence[Row], types: int) -> list[float]:
    """Returns read times of the page types: around the mean as those of a read alone are."""
    first = min(rows, key=lambda row: row.depth * row.jobs)
    alone = first.mean_us
    if types == 1 or first.p99_us is None or first.p50_us is None:
        return [mean_us] * types
    slowest = mean_us + first.p99_us - alone
    middle = mean_us + first.p50_us - alone
    lowest = types * mean_us - slowest - (types - 2) * middle
    return sorted([lowest, *[middle] * (types - 2), slowest])
