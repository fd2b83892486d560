"""Notes on a result whose figures do not mean what a reader may take them for."""

from __future__ import annotations

from typing import Any

from ftlab.units import count, quantity, size

MANY_LUNS = 16
"""From how many LUNs on a device is an SSD rather than a card or a phone's memory."""

LEAST_MIXED = 0.05
"""The smallest share of reads, and of writes, in a load that is mixed."""

LEAST_REQUESTS = 1000
"""The smallest number of requests with notes: figures of a shorter run are those of a trial."""

MOST_UNWRITTEN = 0.05
"""The largest share of reads that may be of pages never written without a note."""


def notes_on(data: dict[str, Any], unwritten: int = 0) -> list[str]:
    """Returns the notes on a result. ``unwritten`` is how many logical pages were read that nothing had ever
    written, which the result itself does not hold.
    """
    if data["trace"]["requests"] < LEAST_REQUESTS:
        return []
    found = (
        _never_collected(data),
        _cache_never_short(data),
        _read_unwritten(data, unwritten),
        _reads_wait_for_erases(data),
    )
    return [note for note in found if note]


def _never_collected(data: dict[str, Any]) -> str | None:
    """Returns a note if write amplification is printed although no block was ever erased."""
    total, erases = data["waf"]["total"], sum(data["flash"]["erases"].values())
    if total is None or erases:
        return None
    return (
        f"no block was erased: the writes fitted into erased blocks, so the write amplification of"
        f" {total:.3f} leaves out what collecting garbage costs; write more, or begin with a full device"
        " (device.precondition)"
    )


def _cache_never_short(data: dict[str, Any]) -> str | None:
    """Returns a note if the mapping cache has room for all the entries that the requests need."""
    mapping, ftl, flash = data["mapping"], data["config"]["ftl"], data["config"]["flash"]
    # Without a limit the whole map is in RAM by choice.
    cache = None if ftl["mapping_cache"] == "unlimited" else quantity(str(ftl["mapping_cache"]))
    entry, page = quantity(str(ftl["entry"])), quantity(str(ftl["logical_page"]))
    # Under ftl.logical_page = "page" a logical page is a NAND page.
    page = page or quantity(str(flash["page"]))
    touched = data["trace"]["footprint_bytes"]
    if not mapping["hits"] + mapping["misses"] or not cache or not entry or not page or not touched:
        return None
    pages = touched // int(page)
    if cache // entry <= pages:
        return None
    return (
        f"the mapping cache of {size(cache)} has room for the entries of all {count(pages)} pages that the"
        " requests touched, so its misses are first uses and its hit ratio is not that of a cache that is"
        " too small; touch more pages, or make ftl.mapping_cache smaller"
    )


def _read_unwritten(data: dict[str, Any], unwritten: int) -> str | None:
    """Returns a note if a fair part of the reads were of pages that were never written."""
    if unwritten < MOST_UNWRITTEN * data["flash"]["reads"]["host"] or not unwritten:
        return None
    kind = data["precondition"]["kind"]
    state = "the device was empty at time 0" if kind == "none" else f"precondition {kind} did not write them"
    return (
        f"{count(unwritten)} reads of logical pages found nothing written there ({state}): many drives answer"
        " them without the flash, here each takes the time of a page read; write the pages first"
        ' (device.precondition = "fill")'
    )


def _reads_wait_for_erases(data: dict[str, Any]) -> str | None:
    """Returns a note if reads of an SSD wait for whole programs and erasures; those of today suspend them."""
    trace = data["trace"]
    mixed = min(trace["reads"], trace["writes"]) >= LEAST_MIXED * trace["requests"]
    remedy = lacks_of_today(data["config"])
    if not mixed or not remedy or not data["access"]["read"]["count"]:
        return None
    slowest_ns = data["access"]["read"]["percentile_ns"]["99.000000"]
    if slowest_ns < (quantity(str(data["config"]["flash"]["erase"])) or 0):
        return None
    return (
        f"one read in a hundred takes {slowest_ns / 1e6:,.4g} ms or more, longer than an erasure: reads wait"
        f" until programs and collection are done, which SSDs of today suspend ({remedy})"
    )


def lacks_of_today(config: dict[str, Any]) -> str | None:
    """Returns the keys by which reads of a device of many LUNs go before programs and erasures, as on SSDs of
    today; None if they do, or if it has few.
    """
    flash, ftl = config["flash"], config["ftl"]
    luns = flash["channels"] * flash["chips_per_channel"] * flash["dies_per_chip"]
    if luns < MANY_LUNS or flash["suspend"] != "off":
        return None
    keys = ['flash.suspend = "program-erase"']
    keys += [] if flash["out_of_order"] else ["flash.out_of_order = true"]
    keys += [] if ftl["allocation"] == "dynamic" else ['ftl.allocation = "dynamic"']
    return ", ".join(keys)
