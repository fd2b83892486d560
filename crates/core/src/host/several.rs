//! The loads of several tenants, as one feed: each has a source of its own, and all share the device and its clock.

use super::{Arrivals, Replayed};
use crate::clock::NEVER;
use crate::host::settings::Settings;
use crate::request::{Pool, Request};
use crate::workload::{Record, Source, SourceError, SourceSummary};

/// One tenant's load.
struct Load<'a> {
    name: String,
    requests: Replayed<'a>,
    /// Whether the tenant's queue is full, so that its requests wait here.
    blocked: bool,
    /// When the tenant stops sending, ns.
    end_ns: u64,
}

impl Load<'_> {
    fn next_ns(&self) -> u64 {
        if self.blocked { NEVER } else { self.requests.next_ns() }
    }

    /// Ends the load if its next request would arrive too late.
    fn end_if_over(&mut self) {
        let due_ns = self.requests.next_ns();
        if due_ns >= self.end_ns && due_ns != NEVER {
            self.requests.end();
        }
    }
}

/// The loads of all tenants. Among requests that arrive at the same time, those of the first tenant come first.
pub struct Several<'a> {
    loads: Vec<Load<'a>>,
    /// The load whose request arrives next, and when, ns.
    next: (usize, u64),
    arrived: u64,
    merged: u64,
}

/// A tenant's source, with its addresses and its stream made those of the device: see [`Several::new`].
pub struct Placed {
    source: Box<dyn Source + Send>,
    from: u64,
    start_ns: u64,
    stream: u16,
}

impl Placed {
    /// Makes the source of the tenant with this number, whose addresses begin at the byte `from`, and which begins at
    /// `start_ns`.
    pub fn new(source: Box<dyn Source + Send>, from: u64, start_ns: u64, stream: u16) -> Placed {
        Placed { source, from, start_ns, stream }
    }
}

impl Source for Placed {
    fn next(&mut self) -> Result<Option<Record>, SourceError> {
        let record = self.source.next()?;
        Ok(record.map(|record| Record {
            time_ns: record.time_ns.saturating_add(self.start_ns),
            offset: record.offset + self.from,
            stream: self.stream,
            ..record
        }))
    }

    fn has_streams(&mut self) -> Result<bool, SourceError> {
        Ok(true)
    }

    fn summary(&self) -> SourceSummary {
        self.source.summary()
    }

    fn locate(&self, record: &Record) -> String {
        self.source.locate(&Record { offset: record.offset - self.from, ..*record })
    }
}

impl<'a> Several<'a> {
    /// Makes the feed of the settings' tenants from a source for each, which delivers addresses of the device, times
    /// from the start of the run on and the tenant's number as stream ([`Placed`]), and reads their first records.
    ///
    /// # Errors
    /// The sources' errors.
    pub fn new(
        sources: &'a mut [Box<dyn Source + Send>],
        settings: &Settings,
    ) -> Result<Several<'a>, SourceError> {
        let mut loads = Vec::new();
        for (source, tenant) in sources.iter_mut().zip(&settings.tenants.0) {
            let own = &tenant.own;
            let depth = own.queue_depth.unwrap_or(settings.host.queue_depth);
            let replay = (tenant.workload.replay, depth, own.start_ns);
            let mut load = Load {
                name: tenant.name.clone(),
                requests: Replayed::of_tenant(&mut **source, settings, replay)?,
                blocked: false,
                end_ns: own.duration_ns.map_or(NEVER, |long_ns| own.start_ns.saturating_add(long_ns)),
            };
            load.end_if_over();
            loads.push(load);
        }
        let mut several = Several { loads, next: (0, NEVER), arrived: 0, merged: 0 };
        several.look();
        Ok(several)
    }

    /// Finds the load whose request arrives next.
    fn look(&mut self) {
        let times = self.loads.iter().map(Load::next_ns).enumerate();
        self.next = times.min_by_key(|&(_, at_ns)| at_ns).unwrap_or((0, NEVER));
    }
}

impl Arrivals for Several<'_> {
    fn next_ns(&self) -> u64 {
        self.next.1
    }

    fn next_stream(&self) -> u16 {
        self.next.0 as u16
    }

    fn block(&mut self, tenant: u32, full: bool) -> bool {
        let load = &mut self.loads[tenant as usize];
        if load.blocked != full {
            load.blocked = full;
            self.look();
        }
        true
    }

    fn ended(&self) -> bool {
        self.loads.iter().all(|load| load.requests.ended())
    }

    fn take(&mut self, arrival_ns: u64, pool: &mut Pool) -> Result<u32, SourceError> {
        let load = &mut self.loads[self.next.0];
        let number = self.arrived + 1 - self.merged;
        let id = load.requests.take_as(number, arrival_ns, pool)?;
        load.end_if_over();
        self.arrived += 1;
        self.look();
        Ok(id)
    }

    fn merged(&mut self, pending: &mut Request, _taken: &Request) {
        self.merged += 1;
        pending.tag += 1;
    }

    fn completed(&mut self, now_ns: u64, request: &Request) {
        let load = &mut self.loads[usize::from(request.pages.stream)];
        load.requests.completed(now_ns, request);
        load.end_if_over();
        self.look();
    }

    fn summary(&self) -> SourceSummary {
        let mut all = SourceSummary::default();
        for load in &self.loads {
            let one = load.requests.summary();
            all.out_of_order += one.out_of_order;
            for (reason, count) in one.dropped {
                *all.dropped.entry(reason).or_default() += count;
            }
            all.notes.extend(one.notes.iter().map(|note| format!("{}: {note}", load.name)));
        }
        all
    }
}
