//! Requests of a source (a trace or a generator) as they arrive.

use super::Arrivals;
use crate::clock::NEVER;
use crate::host::settings::Settings;
use crate::request::{Asks, Pages, Paging, Pool, Request};
use crate::util::Ring;
use crate::workload::settings::Replay;
use crate::workload::{Op, Record, Source, SourceError, SourceSummary};

/// The latest arrival that is simulated: a century and a half, far below the limit of 64 bits.
pub const LATEST_NS: u64 = 1 << 62;

/// Converts records to requests.
#[derive(Clone, Copy, Debug)]
pub struct Intake {
    paging: Paging,
    /// Number of bytes that requests can address.
    pub user_bytes: u64,
}

impl Intake {
    /// Makes the intake for the device of `settings`.
    pub fn new(settings: &Settings) -> Intake {
        Intake { paging: Paging::new(settings.ftl.logical_page_bytes), user_bytes: settings.user_bytes() }
    }

    /// Returns the request of a record; `None` if its range is empty or reaches beyond the device.
    #[inline(always)] // so that the request is built in place
    pub fn request(&self, number: u64, arrival_ns: u64, record: &Record) -> Option<Request> {
        let Record { op, offset, size, flags, stream, .. } = *record;
        let pages = if op == Op::Flush {
            Pages::NONE
        } else {
            let end = offset.checked_add(size)?;
            if end > self.user_bytes || size == 0 {
                return None;
            }
            self.paging.pages(op, offset, end)
        };
        let mut request = Request::new(number, arrival_ns, op, offset, size, pages);
        if flags & Record::FUA != 0 {
            request.mark.asks = Asks::Fua;
        }
        request.pages.stream = stream;
        Some(request)
    }
}

/// A source's requests as they arrive, in trace order; the next one waits here until it is admitted.
pub struct Replayed<'a> {
    source: &'a mut (dyn Source + Send),
    next: Record,
    /// Whether there is no next record: the source has ended or failed.
    ended: bool,
    /// When the next request arrives, ns.
    due_ns: u64,
    arrived: u64,
    /// Number of requests that became part of another.
    merged: u64,
    /// In closed replay, the number of requests that may still arrive at the start after the next one, and the times of
    /// completions, each of which lets another request arrive; `None` in open replay.
    closed: Option<(u32, Ring)>,
    /// When a closed replay starts, ns.
    start_ns: u64,
    intake: Intake,
}

impl<'a> Replayed<'a> {
    /// Makes the feed and reads the first record.
    ///
    /// # Errors
    /// The source's error.
    pub fn new(
        source: &'a mut (dyn Source + Send),
        settings: &Settings,
    ) -> Result<Replayed<'a>, SourceError> {
        Replayed::of_tenant(source, settings, (settings.workload.replay, settings.host.queue_depth, 0))
    }

    /// Makes the feed of a tenant: how its source is replayed, how many requests a closed replay keeps outstanding, and
    /// when that starts, ns.
    ///
    /// # Errors
    /// The source's error.
    pub fn of_tenant(
        source: &'a mut (dyn Source + Send),
        settings: &Settings,
        (replay, depth, start_ns): (Replay, u32, u64),
    ) -> Result<Replayed<'a>, SourceError> {
        let mut arrivals = Replayed {
            source,
            next: Record::FLUSH,
            ended: false,
            due_ns: NEVER,
            arrived: 0,
            merged: 0,
            closed: (replay == Replay::Closed).then(|| (depth, Ring::new(depth.min(1 << 16) as usize))),
            start_ns,
            intake: Intake::new(settings),
        };
        arrivals.fetch()?;
        Ok(arrivals)
    }

    /// Whether requests come at the times of their records.
    pub fn is_open(&self) -> bool {
        self.closed.is_none()
    }

    /// Reads the next record.
    #[inline(always)] // for every request
    fn fetch(&mut self) -> Result<(), SourceError> {
        let record = self.source.next();
        let Ok(Some(Record { time_ns, op, offset, size, line, flags, stream, .. })) = record else {
            self.end();
            return record.map(|_| ());
        };
        // The fields are copied one by one: reading the record as a whole would have to wait for the stores.
        (self.next.time_ns, self.next.op) = (time_ns, op);
        (self.next.flags, self.next.stream) = (flags, stream);
        (self.next.offset, self.next.size, self.next.line) = (offset, size, line);
        self.due_ns = match &mut self.closed {
            None if time_ns > LATEST_NS => {
                self.end();
                return Err(late(self.source, &self.next));
            }
            None => time_ns,
            Some((0, completions)) => completions.pop().unwrap_or(NEVER),
            Some((at_start, _)) => {
                *at_start -= 1;
                self.start_ns
            }
        };
        Ok(())
    }
}

/// Makes the error for an arrival that is too late to be simulated.
#[cold]
pub(super) fn late(source: &dyn Source, record: &Record) -> SourceError {
    SourceError::Input(format!(
        "{}: the arrival at {} ns is more than a century after the start; \
         are the times in another unit, or do they count from another epoch?",
        source.locate(record),
        record.time_ns
    ))
}

/// Makes the error for a request that is not within the device's `user_bytes`.
#[cold]
pub(super) fn beyond(source: &dyn Source, record: &Record, user_bytes: u64) -> SourceError {
    SourceError::Input(format!(
        "{}: {} B at offset {} are beyond the user capacity of {user_bytes} B; \
         set workload.out_of_range to wrap or compact, or enlarge the flash",
        source.locate(record),
        record.size,
        record.offset,
    ))
}

impl Replayed<'_> {
    /// Lets no more requests arrive.
    pub fn end(&mut self) {
        (self.ended, self.due_ns) = (true, NEVER);
    }

    /// Does what [`Arrivals::take`] does, for the request with this number.
    #[inline]
    pub fn take_as(&mut self, number: u64, arrival_ns: u64, pool: &mut Pool) -> Result<u32, SourceError> {
        debug_assert!(!self.ended, "one arrives");
        let request = self.intake.request(number, arrival_ns, &self.next);
        let request = request.ok_or_else(|| beyond(self.source, &self.next, self.intake.user_bytes))?;
        let id = pool.insert(request);
        self.fetch()?;
        self.arrived += 1;
        Ok(id)
    }
}

impl Arrivals for Replayed<'_> {
    fn summary(&self) -> SourceSummary {
        self.source.summary()
    }

    #[inline]
    fn next_ns(&self) -> u64 {
        self.due_ns
    }

    fn next_stream(&self) -> u16 {
        self.next.stream
    }

    fn ended(&self) -> bool {
        self.ended
    }

    #[inline]
    fn take(&mut self, arrival_ns: u64, pool: &mut Pool) -> Result<u32, SourceError> {
        self.take_as(self.arrived + 1 - self.merged, arrival_ns, pool)
    }

    fn merged(&mut self, pending: &mut Request, _taken: &Request) {
        self.merged += 1;
        pending.tag += 1;
    }

    /// Lets another request arrive now, in closed replay.
    #[inline]
    fn completed(&mut self, now_ns: u64, request: &Request) {
        let Some((_, completions)) = &mut self.closed else { return };
        if request.tag > 0 {
            // One more request arrives for each request that became part of this one.
            completions.push_many(now_ns, request.tag);
        }
        if self.due_ns == NEVER && !self.ended {
            self.due_ns = now_ns;
        } else {
            completions.push(now_ns);
        }
    }
}
