"""What sharing a device costs each tenant: every one of them alone and all of them together.

The figures are those of FLIN (Tavakkol et al., ISCA 2018, section 6): slowdown, fairness, weighted and
harmonic speedup, all from mean latencies.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from ftlab._core import UserError
from ftlab.pool import run_all
from ftlab.results.result import Result
from ftlab.running import RunOptions, run_config

if TYPE_CHECKING:
    from ftlab._core import Config

NO_TENANTS = (
    'there are no tenants to run alone; write [tenant.NAME] tables, or workload.tenants = "by-stream"'
)


def with_slowdowns(result: Result, config: Config, options: RunOptions, *, jobs: int | None = None) -> Result:
    """Runs each tenant of a result alone on the same device; returns the result with the slowdowns.

    ``jobs`` of them run at a time (default: as many as there are cores). A tenant that completed no read or
    write, together or alone, has no slowdown and does not count.

    Raises:
        UserError: the result has no tenants.
    """
    tenants = result.to_dict().get("tenants")
    if not tenants:
        raise UserError(NO_TENANTS)
    alone = replace(
        options, collect=False, requests_csv=None, timeline=None, timeline_window=None, save_state=None
    )
    each = run_all(
        lambda tenant: run_config(config, replace(alone, only=tenant["name"])),
        tenants,
        jobs=jobs,
        stop=lambda: None,
    )
    slowdowns = [_slowdown(tenant, run.to_dict()) for tenant, run in zip(tenants, each, strict=True)]
    result.to_dict()["fairness"] = fairness([ratio for ratio in slowdowns if ratio is not None])
    return result


def _slowdown(tenant: dict[str, Any], alone: dict[str, Any]) -> float | None:
    """Notes in a tenant's figures its mean latency alone and its slowdown; returns the latter."""
    before, now = alone["latency"]["all"], tenant["latency"]["all"]
    known = before["count"] and now["count"] and before["mean_ns"]
    tenant["alone_mean_ns"] = before["mean_ns"] if before["count"] else None
    slowdown: float | None = now["mean_ns"] / before["mean_ns"] if known else None
    tenant["slowdown"] = slowdown
    return slowdown


def fairness(slowdowns: list[float]) -> dict[str, float | None]:
    """Returns the figures that compare tenants' slowdowns; None for each if there are no slowdowns."""
    if not slowdowns:
        return dict.fromkeys(("unfairness", "fairness", "weighted_speedup", "harmonic_speedup"))
    least, greatest = min(slowdowns), max(slowdowns)
    return {
        "unfairness": greatest / least,
        "fairness": least / greatest,
        "weighted_speedup": sum(1 / ratio for ratio in slowdowns),
        "harmonic_speedup": len(slowdowns) / sum(slowdowns),
    }
