"""What is said about a trace on the terminal."""

from __future__ import annotations

from typing import Any

from ftlab.units import count, duration, percent, significant, size

_STREAMS_SHOWN = 16


def info_text(found: dict[str, Any]) -> str:
    """Formats the figures of a trace."""
    packed = f", {found['compression']}" if found["compression"] else ""
    told = f" (recognised by {found['recognised_by']})" if found["recognised_by"] else ""
    kinds = [
        f"{count(found[kind])} {kind}" for kind in ("reads", "writes", "trims", "flushes") if found[kind]
    ]
    lines = [
        f"{found['path']}: {found['format']}{packed}{told}",
        f"requests: {count(found['requests'])}: {', '.join(kinds)}",
        f"    {size(found['bytes_read'])} read, {size(found['bytes_written'])} written"
        + (f", {size(found['bytes_trimmed'])} trimmed" if found["bytes_trimmed"] else ""),
    ]
    rate = f"span: {duration(found['span_ns'])}"
    if found["mean_rate_per_s"] is not None:
        mean, peak = significant(found["mean_rate_per_s"]), count(found["peak_rate_per_s"])
        rate += f", {mean} requests/s on average, {peak} in the busiest second"
    lines.append(rate)
    if found["min_offset"] is not None:
        lines += [
            f"addresses: {count(found['min_offset'])} to {count(found['max_end'])} B,"
            f" footprint {size(found['footprint_bytes'])} in pages of {size(found['page_bytes'])}",
            f"    {percent(found['aligned_4kib'])} aligned to 4 KiB,"
            f" {percent(found['sequential_ratio'])} sequential",
            f"sizes: mean {size(round(found['mean_size_bytes']))}; most frequent "
            + ", ".join(f"{size(each['bytes'])} ({count(each['requests'])})" for each in found["sizes"]),
        ]
    lines += _streams_text(found["streams"])
    lines += [f"dropped: {count(number)} {reason}" for reason, number in found["dropped"].items()]
    if found["out_of_order"]:
        lines.append(f"out of order: {count(found['out_of_order'])} stamps raised to the one before")
    lines += [f"note: {note}" for note in found["notes"]]
    lines += [f"doubtful: {doubt}" for doubt in found["doubts"]] or ["nothing doubtful"]
    return "\n".join(lines) + "\n"


def _streams_text(streams: list[dict[str, Any]]) -> list[str]:
    """Describes the streams that have the most requests, in the order of their numbers."""
    if not streams:
        return []
    largest = sorted(streams, key=lambda each: -each["requests"])[:_STREAMS_SHOWN]
    lines = [f"streams: {count(len(streams))}"]
    for each in sorted(largest, key=lambda each: each["stream"]):
        name = f" ({each['name']})" if each["name"] else ""
        lines.append(
            f"    {each['stream']}{name}: {count(each['requests'])} requests ({percent(each['share'])}),"
            f" {size(each['bytes_read'])} read, {size(each['bytes_written'])} written"
        )
    if len(largest) < len(streams):
        lines.append(f"    and {count(len(streams) - len(largest))} with fewer requests (--json has all)")
    return lines


def summary_text(summary: dict[str, Any]) -> str:
    """Describes a conversion in one line."""
    parts = [f"{count(summary['requests'])} requests"]
    parts += [
        f"{count(number)} dropped ({reason})" for reason, number in summary["dropped"].items() if number
    ]
    if summary["out_of_order"]:
        parts.append(f"{count(summary['out_of_order'])} stamps out of order, raised to the one before")
    text = ", ".join(parts)
    if summary["requests"] > 1 and summary["last_ns"] == 0:
        text += "\nnote: the trace has no times, so every request is written at time 0; replay it closed"
    return text
