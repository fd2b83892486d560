//! The loads of several tenants, as one feed: each has a source or clients of its own, and all share the device and its
//! clock.

use super::arrivals::{Above, Account, Arrivals, VersionOf};
use super::dependent::Dependent;
use super::part::Part;
use super::replay::Replayed;
use crate::clock::NEVER;
use crate::host::settings::Settings;
use crate::metrics::{Done, Report};
use crate::request::{Pool, Request};
use crate::workload::settings::Replay;
use crate::workload::tenants::{Tenant, told_of};
use crate::workload::{Record, Source, SourceError, SourceSummary};

/// What is noted about the recording of a live device in a tenant that replays it by its times.
const BY_ITS_TIMES: &str = "a recording of a live device, replayed by its times: on a slower or faster device its \
                            requests would have come later or sooner; replay = \"dependent\" lets them wait as its \
                            clients did";

/// What sends a tenant's requests.
pub enum Sender {
    /// A source, which delivers addresses of the device, times from the start of the run on and the tenant's number as
    /// stream ([`Placed`]).
    Source(Box<dyn Source + Send>),
    /// Clients above the block layer, whose addresses and times begin at 0.
    Above(Box<dyn Above + Send>),
}

/// A tenant's requests as they arrive.
enum Requests<'a> {
    Replayed(Replayed<'a>),
    Dependent(Box<Dependent<'a>>),
    Part(Part<'a>),
}

macro_rules! on {
    ($requests:expr, $it:ident => $body:expr) => {
        match $requests {
            Requests::Replayed($it) => $body,
            Requests::Dependent($it) => $body,
            Requests::Part($it) => $body,
        }
    };
}

/// One tenant's load.
struct Load<'a> {
    name: String,
    requests: Requests<'a>,
    /// Whether the tenant's queue is full, so that its requests wait here.
    blocked: bool,
    /// When a source of the tenant's stops sending, ns.
    end_ns: u64,
}

/// Lets a source's error be about a tenant.
#[cold]
fn of_tenant(name: &str, error: SourceError) -> SourceError {
    match error {
        SourceError::Input(text) => SourceError::Input(told_of(name, &text)),
        other => other,
    }
}

impl Load<'_> {
    /// Returns when the next request arrives, ns. Ends a source if all that it has would be too late.
    #[inline]
    fn next_ns(&mut self) -> u64 {
        let due_ns = on!(&self.requests, it => it.next_ns());
        let over = due_ns >= self.end_ns && due_ns != NEVER;
        let due_ns = if over { self.end(due_ns) } else { due_ns };
        if self.blocked { NEVER } else { due_ns }
    }

    #[cold]
    fn end(&mut self, due_ns: u64) -> u64 {
        match &mut self.requests {
            Requests::Replayed(replayed) => replayed.end(),
            Requests::Dependent(dependent) => dependent.end(),
            Requests::Part(_) => return due_ns,
        }
        NEVER
    }
}

/// The loads of all tenants. Among requests that arrive at the same time, those of the first tenant come first.
pub struct Several<'a> {
    loads: Vec<Load<'a>>,
    /// For each load, when its next request arrives, ns.
    due_ns: Vec<u64>,
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

/// Makes the requests of a tenant that has a source; in dependent replay they are one stream.
fn of_source<'a>(
    source: &'a mut (dyn Source + Send),
    settings: &Settings,
    tenant: &Tenant,
) -> Result<Requests<'a>, SourceError> {
    let (replay, own) = (tenant.workload.replay, &tenant.own);
    if replay == Replay::Dependent {
        return Ok(Requests::Dependent(Box::new(Dependent::new(source, settings)?)));
    }
    let depth = own.queue_depth.unwrap_or(settings.host.queue_depth);
    Ok(Requests::Replayed(Replayed::of_tenant(source, settings, (replay, depth, own.start_ns))?))
}

impl<'a> Several<'a> {
    /// Makes the feed of the settings' tenants from a sender for each, and reads the sources' first records.
    ///
    /// # Errors
    /// The sources' errors.
    pub fn new(senders: &'a mut [Sender], settings: &Settings) -> Result<Several<'a>, SourceError> {
        let page_bytes = u64::from(settings.ftl.logical_page_bytes);
        let ranges = settings.tenants.ranges(settings.user_bytes(), page_bytes);
        let mut loads = Vec::new();
        for (number, (sender, tenant)) in (0..).zip(senders.iter_mut().zip(&settings.tenants.0)) {
            let own = &tenant.own;
            let end_ns = own.duration_ns.map_or(NEVER, |long_ns| own.start_ns.saturating_add(long_ns));
            let requests = match sender {
                Sender::Source(source) => {
                    let requests = of_source(&mut **source, settings, tenant);
                    requests.map_err(|error| of_tenant(&tenant.name, error))?
                }
                Sender::Above(above) => {
                    let range = (ranges[usize::from(number)], page_bytes);
                    Requests::Part(Part::new(&mut **above, range, number, (own.start_ns, end_ns)))
                }
            };
            loads.push(Load { name: tenant.name.clone(), requests, blocked: false, end_ns });
        }
        let due_ns = vec![NEVER; loads.len()];
        let mut several = Several { loads, due_ns, next: (0, NEVER), arrived: 0, merged: 0 };
        several.look();
        Ok(several)
    }

    /// Whether any of the loads are clients.
    pub fn has_clients(&self) -> bool {
        self.parts().next().is_some()
    }

    fn parts(&self) -> impl Iterator<Item = &Part<'a>> {
        self.loads.iter().filter_map(|load| match &load.requests {
            Requests::Part(part) => Some(part),
            Requests::Replayed(_) | Requests::Dependent(_) => None,
        })
    }

    fn parts_mut(&mut self) -> impl Iterator<Item = &mut Part<'a>> {
        self.loads.iter_mut().filter_map(|load| match &mut load.requests {
            Requests::Part(part) => Some(part),
            Requests::Replayed(_) | Requests::Dependent(_) => None,
        })
    }

    /// Asks every load when its next request arrives.
    fn look(&mut self) {
        for (due_ns, load) in self.due_ns.iter_mut().zip(&mut self.loads) {
            *due_ns = load.next_ns();
        }
        self.find();
    }

    /// Asks a load when its next request arrives.
    #[inline]
    fn look_at(&mut self, at: usize) {
        let due_ns = self.loads[at].next_ns();
        if due_ns == self.due_ns[at] {
            return;
        }
        self.due_ns[at] = due_ns;
        if (due_ns, at) < (self.next.1, self.next.0) {
            self.next = (at, due_ns);
        } else if at == self.next.0 {
            self.find();
        }
    }

    /// Finds the load whose request arrives next.
    #[inline]
    fn find(&mut self) {
        let mut next = (0, NEVER);
        for (at, &due_ns) in self.due_ns.iter().enumerate() {
            if due_ns < next.1 {
                next = (at, due_ns);
            }
        }
        self.next = next;
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
            self.look_at(tenant as usize);
        }
        true
    }

    fn ended(&self) -> bool {
        self.loads.iter().all(|load| on!(&load.requests, it => it.ended()))
    }

    fn holds(&self, now_ns: u64) -> bool {
        self.parts().any(|part| part.holds(now_ns))
    }

    fn take(&mut self, arrival_ns: u64, pool: &mut Pool) -> Result<u32, SourceError> {
        let at = self.next.0;
        let load = &mut self.loads[at];
        let number = self.arrived + 1 - self.merged;
        let id = on!(&mut load.requests, it => it.take_as(number, arrival_ns, pool));
        let id = id.map_err(|error| of_tenant(&load.name, error))?;
        self.arrived += 1;
        self.look_at(at);
        Ok(id)
    }

    fn join(&mut self, from: u64, to: u64, joined: &mut Vec<Request>) {
        let before = joined.len();
        self.parts_mut().for_each(|part| part.join(from, to, joined));
        for request in &mut joined[before..] {
            self.arrived += 1;
            request.id = self.arrived - self.merged;
        }
        self.look();
    }

    fn merged(&mut self, pending: &mut Request, taken: &Request) {
        self.merged += 1;
        match &mut self.loads[usize::from(taken.pages.stream)].requests {
            Requests::Replayed(_) => pending.tag += 1,
            Requests::Dependent(dependent) => dependent.merged(pending, taken),
            Requests::Part(part) => part.merged(pending, taken),
        }
    }

    fn completed(&mut self, now_ns: u64, request: &Request) {
        let at = usize::from(request.pages.stream);
        let load = &mut self.loads[at];
        on!(&mut load.requests, it => it.completed(now_ns, request));
        self.look_at(at);
    }

    fn summary(&self) -> SourceSummary {
        let mut all = SourceSummary::default();
        for load in &self.loads {
            let one = match &load.requests {
                Requests::Replayed(requests) => {
                    let mut one = requests.summary();
                    if one.recording && requests.is_open() {
                        one.notes.push(BY_ITS_TIMES.into());
                    }
                    one
                }
                Requests::Dependent(requests) => requests.summary(),
                Requests::Part(_) => continue,
            };
            all.out_of_order += one.out_of_order;
            for (reason, count) in one.dropped {
                *all.dropped.entry(reason).or_default() += count;
            }
            all.notes.extend(one.notes.iter().map(|note| format!("{}: {note}", load.name)));
        }
        all
    }
}

/// What a feed with clients among its loads has besides.
impl Above for Several<'_> {
    fn timer_ns(&self) -> u64 {
        self.parts().map(Part::timer_ns).min().unwrap_or(NEVER)
    }

    fn goes_on(&self) -> bool {
        self.parts().any(Part::goes_on)
    }

    fn tick(&mut self, now_ns: u64) -> Result<(), SourceError> {
        let done = self.parts_mut().try_for_each(|part| part.tick(now_ns));
        self.look();
        done
    }
}

impl Account for Several<'_> {
    fn wants_measure(&self) -> bool {
        self.parts().any(Part::wants_measure)
    }

    fn measure(&mut self, done: Done) {
        self.parts_mut().for_each(|part| part.measure(done));
    }

    /// Adds to each tenant what its clients saw.
    fn add_to(&self, report: &mut Report, done: &Done, _merged: u64) {
        let mut tenants = report.tenants.take();
        for (load, tenant) in self.loads.iter().zip(tenants.iter_mut().flatten()) {
            let Requests::Part(part) = &load.requests else { continue };
            part.add_to(report, done);
            tenant.benchmark = report.benchmark.take();
            tenant.page_cache = report.page_cache.take();
            tenant.file_system = report.file_system.take();
        }
        report.tenants = tenants;
    }

    fn landed(&mut self, request: &Request, version: VersionOf) {
        if let Requests::Part(part) = &mut self.loads[usize::from(request.pages.stream)].requests {
            part.landed(request, version);
        }
    }

    fn verify(&mut self, version: VersionOf) -> Result<(), String> {
        self.parts_mut().try_for_each(|part| part.verify(version))
    }
}
