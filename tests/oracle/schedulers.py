"""The schedulers of the oracle: which of the pending requests comes next.

A scheduler keeps what was admitted and answers:

- ``admit(request)``    take in one request (its class is settled here, once)
- ``take_expired(now, deadline_ns)``  take out what has waited that long, oldest first
- ``choose()``          take out the next choice as (requests, prioritized flags, is_batch),
  or None when nothing is pending
- ``pending()``         how many are held

Trim and flush belong to the write half.
"""


class Alternation:
    """RoW: reads first, but two reads in succession only if no write waits."""

    def __init__(self, enabled):
        self.enabled = enabled
        self.last_was_read = False

    def read_next(self, reads_wait, writes_wait):
        if not reads_wait:
            choose_read = False
        elif not writes_wait:
            choose_read = True
        elif self.enabled:
            choose_read = not self.last_was_read
        else:
            choose_read = True
        self.last_was_read = choose_read
        return choose_read


class Halves:
    """A read queue and a write queue of single requests."""

    def __init__(self, alternate, key):
        self.reads = []
        self.writes = []
        self.alternation = Alternation(alternate)
        self.key = key

    def all(self):
        return self.reads + self.writes

    def admit(self, request):
        (self.reads if request.op == "R" else self.writes).append(request)

    def remove(self, request):
        (self.reads if request.op == "R" else self.writes).remove(request)

    def choose(self):
        if not self.reads and not self.writes:
            return None
        read = self.alternation.read_next(bool(self.reads), bool(self.writes))
        queue = self.reads if read else self.writes
        chosen = min(queue, key=self.key)
        queue.remove(chosen)
        return chosen


class Batch:
    """Pending requests of one half whose first LPN lies in one translation page."""

    def __init__(self, number, half, page):
        self.number = number
        self.half = half
        self.page = page  # None: a request without pages, alone in its batch
        self.requests = []


class Batches:
    """Read batches and write batches."""

    def __init__(self, alternate, densest_first, entries_per_page):
        self.list = []  # in order of creation
        self.created = 0
        self.alternation = Alternation(alternate)
        self.densest_first = densest_first
        self.entries_per_page = entries_per_page

    def all(self):
        return [request for batch in self.list for request in batch.requests]

    def admit(self, request):
        half = "R" if request.op == "R" else "W"
        page = request.pages[0] // self.entries_per_page if request.pages else None
        found = None
        for batch in self.list:
            if page is not None and batch.half == half and batch.page == page:
                found = batch
        if found is None:
            self.created += 1
            found = Batch(self.created, half, page)
            self.list.append(found)
        found.requests.append(request)
        request.batch = found.number

    def remove(self, request):
        """By deadline; a batch that is emptied so is gone."""
        for batch in list(self.list):
            if request in batch.requests:
                batch.requests.remove(request)
                if not batch.requests:
                    self.list.remove(batch)

    def choose(self):
        if not self.list:
            return None
        reads = [batch for batch in self.list if batch.half == "R"]
        writes = [batch for batch in self.list if batch.half == "W"]
        candidates = reads if self.alternation.read_next(bool(reads), bool(writes)) else writes
        best = candidates[0]
        if self.densest_first:
            for batch in candidates[1:]:
                if denser(batch, best):
                    best = batch
        self.list.remove(best)
        return best


def denser(one, other):
    """Whether eq. (9), requests / pages, is greater; no pages at all is densest."""
    requests_1 = len(one.requests)
    requests_2 = len(other.requests)
    pages_1 = sum(len(request.pages) for request in one.requests)
    pages_2 = sum(len(request.pages) for request in other.requests)
    return requests_1 * pages_2 > requests_2 * pages_1


class Scheduler:
    """All seven, put together from a hit queue and a queue of the rest."""

    def __init__(self, config, is_hit):
        name = config.scheduler
        entries_per_page = config.page_bytes // config.entry_bytes

        def by_arrival(request):
            return request.id

        def by_size(request):
            return (len(request.pages), request.id)

        self.name = name
        self.is_hit = is_hit
        self.hits = None
        self.arrival_order = None
        self.batches = None
        self.rest = None
        if name in ("hp", "map", "map+"):
            self.hits = Halves(config.alternate, by_arrival)
        if name == "noop":
            self.arrival_order = []
        elif name == "row":
            self.rest = Halves(True, by_arrival)
        elif name == "amphibian":
            self.rest = Halves(True, by_size)
        elif name == "hp":
            self.rest = Halves(config.alternate, by_arrival)
        elif name in ("rb", "map", "map+"):
            self.batches = Batches(config.alternate, name == "map+", entries_per_page)
        else:
            raise ValueError(name)

    def parts(self):
        return [part for part in (self.hits, self.rest, self.batches) if part is not None]

    def pending(self):
        if self.arrival_order is not None:
            return len(self.arrival_order)
        return sum(len(part.all()) for part in self.parts())

    def admit(self, request):
        if self.arrival_order is not None:
            self.arrival_order.append(request)
        elif self.hits is not None and self.is_hit(request):
            self.hits.admit(request)
        elif self.batches is not None:
            self.batches.admit(request)
        else:
            self.rest.admit(request)

    def take_expired(self, now, deadline_ns):
        if self.name == "noop" or deadline_ns is None:
            return []
        expired = []
        for part in self.parts():
            for request in part.all():
                if now - request.arrival >= deadline_ns:
                    expired.append(request)
                    part.remove(request)
        return sorted(expired, key=lambda request: request.id)

    def choose(self):
        if self.arrival_order is not None:
            if not self.arrival_order:
                return None
            return [self.arrival_order.pop(0)], [False], False
        if self.hits is not None:
            chosen = self.hits.choose()
            if chosen is not None:
                return [chosen], [True], False
        if self.rest is not None:
            chosen = self.rest.choose()
            return None if chosen is None else ([chosen], [False], False)
        batch = self.batches.choose()
        if batch is None:
            return None
        return batch.requests, [False] + [True] * (len(batch.requests) - 1), True
