"""Checks a run's rows against the schedulers' rules, as statements about the rows alone.

Nothing is simulated: `check` examines only which request was dispatched when. It applies to runs of reads and
writes with open arrivals, whose operations take time, without a deadline or a background flush. The class of
a request must not depend on a cache (awareness ``none``, or the FTL ``page``, where everything is a hit).
These rules check the oracle by other means, and they check ftlab as well.
"""

from __future__ import annotations

from .mapplus import Config, Request


def check(config: Config, requests: list[Request], where: str = "") -> None:
    """Raises AssertionError if the order of dispatch breaks a rule.

    ``requests`` are in order of id, each with id, op, pages, arrival, dispatch, complete, batch. ``where`` is
    put before the message.
    """
    try:
        check_order(config, requests)
    except AssertionError as error:
        raise AssertionError(f"{where}: {error}") from error


def check_order(config: Config, requests: list[Request]) -> None:
    """Goes through the dispatches and checks each against the requests that were pending then."""
    order = sorted(requests, key=lambda request: request.dispatch)
    batched = config.scheduler in ("rb", "map", "map+")
    whole = config.ftl == "page" and config.awareness != "none"
    if batched and config.scheduler != "rb" and whole:
        batched = False  # all requests are in the hit queue
    free_at = 0
    pending: list[Request] = []
    upcoming = list(requests)
    alternation_read = False
    position = 0
    while position < len(order):
        first = order[position]
        # The device works whenever something waits.
        earliest = min(request.arrival for request in order[position:])
        assert first.dispatch == max(free_at, earliest), f"idle before {first.id}"
        now = first.dispatch
        depth = len(requests) if config.queue_depth is None else config.queue_depth
        while upcoming and upcoming[0].arrival <= now and len(pending) < depth:
            pending.append(upcoming.pop(0))
        assert first in pending, f"{first.id} was not in the pending queue"
        group = [request for request in pending if request.batch == first.batch] if batched else [first]
        if batched:
            check_batch(config, pending, group, first)
        else:
            check_single(config, pending, first, alternation_read)
            alternation_read = first.op == "R"
        for request in sorted(group, key=lambda request: request.id):
            assert order[position] is request, f"{request.id} out of its place"
            assert request.dispatch == max(free_at, now), f"gap before {request.id}"
            free_at = request.complete
            pending.remove(request)
            position += 1


def check_single(config: Config, pending: list[Request], chosen: Request, last_was_read: bool) -> None:
    """Checks the rules of noop, row and amphibian, and of a single queue in HP's order."""
    rivals = [request for request in pending if request.op == chosen.op]
    reads = any(request.op == "R" for request in pending)
    writes = any(request.op == "W" for request in pending)
    if config.scheduler == "noop":
        assert chosen.id == min(request.id for request in pending)
        return
    if config.scheduler == "amphibian":
        assert all((len(chosen.pages), chosen.id) <= (len(r.pages), r.id) for r in rivals)
    else:
        assert chosen.id == min(request.id for request in rivals)
    alternates = config.scheduler in ("row", "amphibian") or config.alternate
    if reads and writes:
        expected = "W" if alternates and last_was_read else "R"
        assert chosen.op == expected, f"{chosen.id} is {chosen.op}"


def check_batch(config: Config, pending: list[Request], group: list[Request], first: Request) -> None:
    """Checks the rules of rb, and of map and map+ if nothing is a hit; without alternation."""
    assert not config.alternate
    per_page = config.page_bytes // config.entry_bytes

    def batch_of(request: Request) -> tuple[str, int]:
        return request.op, request.pages[0] // per_page

    batches: dict[tuple[str, int], list[Request]] = {}
    for request in pending:
        batches.setdefault(batch_of(request), []).append(request)
    assert sorted(r.id for r in group) == sorted(r.id for r in batches[batch_of(first)])
    if any(request.op == "R" for request in pending):
        assert first.op == "R"
    rivals = [members for key, members in batches.items() if key[0] == first.op]
    oldest = {id(members): min(request.id for request in members) for members in rivals}
    mine = min(request.id for request in group)

    def density(members: list[Request]) -> float:
        return len(members) / sum(len(request.pages) for request in members)

    if config.scheduler == "map+":
        best = max(density(members) for members in rivals)
        assert density(group) == best
        rivals = [members for members in rivals if density(members) == best]
    assert mine == min(oldest[id(members)] for members in rivals)
