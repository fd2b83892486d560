"""Notes on a result whose figures do not mean what a reader may take them for."""

from __future__ import annotations

from typing import Any

from ftlab.units import count, quantity, size

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
    found = (_never_collected(data), _cache_never_short(data), _read_unwritten(data, unwritten))
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
