//! Clients above the block layer that have a part of the device's addresses, as a tenant of it.

use super::arrivals::{Above, VersionOf};
use crate::clock::NEVER;
use crate::config::ByteRange;
use crate::metrics::{Done, Report};
use crate::request::{Pool, Request};
use crate::workload::{Op, SourceError};

/// What a tenant's clients and the host have in common: addresses and times of the clients begin at 0, those of the
/// host where the tenant's part and its time begin.
pub(super) struct Part<'a> {
    above: &'a mut (dyn Above + Send),
    range: ByteRange,
    page_bytes: u64,
    stream: u16,
    start_ns: u64,
    /// When the clients are stopped, ns.
    end_ns: u64,
    /// Number of requests that became part of another.
    merged: u64,
}

impl<'a> Part<'a> {
    /// Gives clients the part `range` of a device with logical pages of `page_bytes`; they run from `start_ns` to
    /// `end_ns`, and their requests have the stream.
    pub(super) fn new(
        above: &'a mut (dyn Above + Send),
        (range, page_bytes): (ByteRange, u64),
        stream: u16,
        (start_ns, end_ns): (u64, u64),
    ) -> Part<'a> {
        Part { above, range, page_bytes, stream, start_ns, end_ns, merged: 0 }
    }

    /// Returns a time of the clients' as one of the host's.
    fn at(&self, own_ns: u64) -> u64 {
        own_ns.saturating_add(self.start_ns)
    }

    fn first_lpn(&self) -> u32 {
        (self.range.from / self.page_bytes) as u32
    }

    /// Makes a request of the clients one of the host's.
    fn place(&self, request: &mut Request) {
        request.arrival_ns = self.at(request.arrival_ns);
        if request.op != Op::Flush {
            request.offset += self.range.from;
            request.pages.first += self.first_lpn();
        }
        request.pages.stream = self.stream;
    }

    /// Puts the request that arrives next into the pool, with this number.
    pub(super) fn take_as(
        &mut self,
        number: u64,
        arrival_ns: u64,
        pool: &mut Pool,
    ) -> Result<u32, SourceError> {
        let id = self.above.take(arrival_ns - self.start_ns, pool)?;
        self.place(&mut pool[id]);
        pool[id].id = number;
        Ok(id)
    }

    /// Does what [`super::Arrivals::join`] does.
    pub(super) fn join(&mut self, from: u64, to: u64, joined: &mut Vec<Request>) {
        let (from, to) = (from.max(self.range.from), to.min(self.range.to));
        if from < to {
            let mut own = Vec::new();
            self.above.join(from - self.range.from, to - self.range.from, &mut own);
            own.iter_mut().for_each(|request| self.place(request));
            joined.append(&mut own);
        }
    }

    /// Does what [`super::Arrivals::merged`] does.
    pub(super) fn merged(&mut self, pending: &mut Request, taken: &Request) {
        self.merged += 1;
        self.above.merged(pending, taken);
    }

    /// Does what [`super::Arrivals::completed`] does.
    pub(super) fn completed(&mut self, now_ns: u64, request: &Request) {
        let mut own = *request;
        own.dispatch_ns = own.dispatch_ns.saturating_sub(self.start_ns);
        self.above.completed(now_ns - self.start_ns, &own);
    }

    pub(super) fn next_ns(&self) -> u64 {
        self.at(self.above.next_ns())
    }

    pub(super) fn ended(&self) -> bool {
        self.above.ended()
    }

    pub(super) fn holds(&self, now_ns: u64) -> bool {
        now_ns >= self.start_ns && self.above.holds(now_ns - self.start_ns)
    }

    /// Returns when the clients go on or are stopped, ns; [`NEVER`] if neither happens by itself.
    pub(super) fn timer_ns(&self) -> u64 {
        if self.ended() { NEVER } else { self.at(self.above.timer_ns()).min(self.end_ns) }
    }

    pub(super) fn goes_on(&self) -> bool {
        self.above.goes_on()
    }

    /// Does what [`Above::tick`] does.
    pub(super) fn tick(&mut self, now_ns: u64) -> Result<(), SourceError> {
        if now_ns < self.start_ns {
            return Ok(());
        }
        if now_ns >= self.end_ns {
            self.end_ns = NEVER;
            self.above.stop(now_ns - self.start_ns);
        }
        self.above.tick(now_ns - self.start_ns)
    }

    /// Records what the device has done so far, if a measured window has begun or ended.
    pub(super) fn measure(&mut self, done: Done) {
        if self.above.wants_measure() {
            self.above.measure(done);
        }
    }

    pub(super) fn wants_measure(&self) -> bool {
        self.above.wants_measure()
    }

    /// Does what [`super::Account::add_to`] does.
    pub(super) fn add_to(&self, report: &mut Report, done: &Done) {
        self.above.add_to(report, done, self.merged);
    }

    /// Does what [`super::Account::landed`] does.
    pub(super) fn landed(&mut self, request: &Request, version: VersionOf) {
        let first = self.first_lpn();
        self.above.landed(request, &|lpn| version(lpn + first));
    }

    /// Does what [`super::Account::verify`] does.
    pub(super) fn verify(&mut self, version: VersionOf) -> Result<(), String> {
        let first = self.first_lpn();
        self.above.verify(&|lpn| version(lpn + first))
    }
}
