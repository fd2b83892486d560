//! The device: its queue, its chips and channel buses, and when each step runs.
//!
//! The host hands requests over while there is room; the device's scheduler decides which may issue; issuing
//! runs the FTL, whose steps then run on the chips in the order of emission. A chip serves one step at a
//! time: data in over its channel's bus, cells, data out. A channel's bus serves chips first come, first
//! served. With the options of [`crate::flash::parallel`] dies and planes work side by side ([`mod@array`]).
//!
//! A step waits at its chip for the step before it in the same chain, even if that runs on another chip: so
//! each block is programmed in the order that the FTL decided, and a block is programmed again only after its
//! erasure has finished.

pub mod array;
mod begin;
pub mod buffer;
pub mod check;
pub mod controller;
pub mod energy;
mod entries;
pub mod own;
mod queue;
mod row;
pub mod sched;
pub mod settings;
mod turn;
mod watch;

use crate::device::settings::Settings;
use crate::flash::Work;
use crate::flash::errors::rates::are_on;
use crate::flash::media::Tape;
use crate::flash::moves::Moves;
use crate::flash::parallel::Place;
use crate::ftl::settings::PartialWrite;
use crate::ftl::{Ftl, Police, Running};
use crate::request::{Pool, Request};
use crate::util::Stat;
use crate::workload::Op;
use crate::workload::tenants::Class;
pub use array::{Array, Overlaps, Owner, Span, Stage, Used};
use buffer::settings::Around;
use entries::Entries;
pub use queue::Conflicts;
use queue::Waiting;
pub use row::hub::{Served, Service, Spent};
use row::{Plan, Row};
pub use turn::Turn;
use watch::{Awake, Followed, Ledger, Taped, Watch};
pub use watch::{Lookups, Share};

/// Value of [`Request::task`] for a request of the host that goes back through the row.
const COMMAND: u8 = u8::MAX;

/// The device: its queue, its chips and buses, and what records its requests.
#[derive(Debug)]
pub struct Device {
    depth: u32,
    /// Number of host requests held.
    held: u32,
    /// Number of the device's own requests that keep those of the host out.
    occupied: u32,
    /// Number of the device's own requests that have not ended.
    pub own: u32,
    /// The stages that commands go through before the queue and after the flash: link, cores and write buffer.
    row: Row,
    /// Whether a request that is handed over simply joins the queue: the row is empty, no request carries mapping
    /// entries, and the device is not read-only.
    straight: bool,
    /// Requests that the device holds and that have not issued.
    waiting: Waiting,
    places: Vec<Place>,
    array: Array,
    /// The device's own tasks.
    pub tasks: own::Tasks,
    /// When the device turned read-only, and how many requests the FTL had refused when last checked.
    read_only_ns: Option<u64>,
    refused: u64,
    /// The probes, if there are any.
    watch: Watch,
    /// The mapping entries on their way to the host and back, if the host holds any.
    entries: Option<Box<Entries>>,
    /// Whether a probe is told about the flash's work, or the host holds entries.
    more_after_issue: bool,
    /// Whether a probe is told about a request that issues, or it may issue in parts or meet errors.
    more_at_issue: bool,
    /// What [`Array::changes`] returned when chips or buses last moved on; `u64::MAX`: a request has ended since.
    changes: u64,
}

impl Device {
    /// Makes an idle device.
    pub fn new(settings: &Settings) -> Device {
        let waiting = Waiting::new(settings);
        let own = &settings.device;
        let unit = settings.flash.unit_bytes() / settings.ftl.logical_page_bytes;
        let around = Around {
            page_bytes: settings.ftl.logical_page_bytes,
            unit,
            block: settings.flash.units_per_block() * unit * settings.reclaim_luns(),
            pages: settings.user_pages() as u32,
            luns: settings.flash.luns(),
            dynamic: settings.allocates_late(),
            completes: settings.ftl.partial_write == PartialWrite::Rmw,
        };
        let settings::Device { controller, buffer, row: keys, .. } = own;
        let row = Row::new(&Plan { controller, buffer, around }, keys);
        let watch = Watch::new(&own.watch, &settings.flash);
        let more = watch.hears_issues() || waiting.sched.divides() || row.buffer.is_some();
        Device {
            depth: settings.device.queue_depth,
            held: 0,
            occupied: 0,
            own: 0,
            straight: row.is_empty(),
            more_at_issue: more || are_on(&settings.flash),
            row,
            waiting,
            places: settings.spread().places(),
            array: Array::new(settings, &settings.order),
            tasks: own::Tasks::new(settings),
            read_only_ns: None,
            refused: 0,
            entries: None,
            more_after_issue: watch.hears_works(),
            watch,
            changes: 0,
        }
    }

    /// Whether the queue can take another request; it cannot while work of the device's own keeps requests out.
    #[inline]
    pub fn has_room(&self) -> bool {
        self.held < self.depth && self.occupied == 0
    }

    /// Returns the number of requests held, including the device's own requests that keep the host's out.
    pub fn held(&self) -> u32 {
        self.held + self.occupied
    }

    /// Whether no request is held.
    pub fn is_idle(&self) -> bool {
        self.held() == 0
    }

    /// Whether the device holds a request of the host or works for itself.
    pub fn is_under_way(&self) -> bool {
        self.held + self.own > 0
    }

    /// Whether requests of the host are held.
    pub fn has_requests(&self) -> bool {
        self.held > 0
    }

    /// Returns when the next resource or command is due, or [`crate::clock::NEVER`]; a time in the past stands for now.
    pub fn next_ns(&self) -> u64 {
        self.array.next_ns().min(self.stages_ns())
    }

    /// Returns the number of conflicts so far.
    pub fn conflicts(&self) -> Conflicts {
        self.waiting.conflicts
    }

    /// Returns the chips and buses.
    pub fn array(&self) -> &Array {
        &self.array
    }

    /// Stores in `used` how long each part worked up to a moment; no work may have begun after that moment or still be
    /// due before it.
    pub fn used(&self, now_ns: u64, used: &mut Used) {
        self.array.used(now_ns, used);
        self.row.used(now_ns, used);
    }

    /// Returns the time that commands have spent outside queue and flash, if there is a controller.
    pub fn spent(&self) -> Option<Spent> {
        self.row.hub.spent()
    }

    /// Returns the number of batches that the device's scheduler created.
    pub fn batches(&self) -> u64 {
        self.waiting.sched.batches()
    }

    /// Returns the probes' own figures, with the name of each.
    pub fn watched(&self) -> impl Iterator<Item = (&'static str, Vec<Stat>)> {
        self.watch.stats()
    }

    /// Whether the flash's work has to be one step for each operation.
    pub fn keeps_apart(&self) -> bool {
        self.array.overlaps_steps() || self.watch.keeps_apart()
    }

    /// Returns the scheduler's own figures.
    pub fn stats(&self) -> Vec<Stat> {
        self.waiting.sched.stats()
    }

    /// Returns the batch and channel batch of a request that has issued: see [`sched::Scheduler::batch_of`].
    #[inline]
    pub fn batch_of(&self, id: u32) -> Option<(u64, u32)> {
        self.waiting.sched.batch_of(id)
    }

    /// From now on, records what chips and buses do, for [`Device::take_spans`], and what link and cores do, for
    /// [`Device::take_served`]; the FTL's work must be labelled.
    pub fn keep_spans(&mut self) {
        self.array.keep_spans();
        self.row.hub.keep_served();
    }

    /// Returns what a command has found in the write buffer, if there is one.
    pub fn found(&self, id: u32) -> buffer::Found {
        self.row.buffer.as_ref().map_or_else(Default::default, |buffer| buffer.found(id))
    }

    /// Follows the versions of pages in the write buffer from now on, if `follow`.
    pub fn keep_versions(&mut self, follow: bool) {
        if let (Some(buffer), true) = (&mut self.row.buffer, follow) {
            buffer.keep_versions();
        }
    }

    /// Returns the version that the device has of a page, in check mode.
    pub fn version(&self, lpn: u32, ftl: &Ftl) -> Option<u32> {
        self.row.buffer.as_ref().map_or_else(|| ftl.version(lpn), |buffer| buffer.version(lpn, ftl))
    }

    /// Returns the pages that are only in the write buffer, in ascending order.
    pub fn dirty(&self) -> Vec<u32> {
        self.row.buffer.as_ref().map_or_else(Vec::new, |buffer| buffer.dirty())
    }

    /// From now on, records on a tape every request that issues.
    pub fn keep_tape(&mut self, tape: Tape) {
        self.watch.tape = Some(Box::new(Taped(tape)));
        self.more_at_issue = true;
    }

    /// From now on, reports to `moves` the requests that issue and where reads find their data.
    pub fn follow(&mut self, moves: &Moves) {
        self.watch.moves = Some(Box::new(Followed(moves.clone())));
        self.more_at_issue = true;
    }

    /// Follows the mapping's lookups, where the FTL has a mapping cache.
    pub fn keep_lookups(&mut self, ftl: &Ftl) {
        self.watch.lookups = Lookups::new(ftl).map(Box::new);
        self.more_at_issue |= self.watch.lookups.is_some();
    }

    /// From now on, counts for how long anything is under way.
    pub fn keep_awake(&mut self) {
        self.watch.awake = Some(Box::default());
    }

    /// Returns for how long anything was under way, if that is counted: up to now, or up to the last completion.
    pub fn awake(&self) -> Option<Awake> {
        self.watch.awake.as_deref().copied()
    }

    /// Whether a probe is told how time passes.
    pub fn hears_time(&self) -> bool {
        self.watch.hears_time()
    }

    /// Tells the probes that it is now later; the first request arrives at `first_ns`, if that is known.
    pub fn passes(&mut self, now_ns: u64, first_ns: Option<u64>) {
        let under_way = self.is_under_way();
        self.watch.passes(now_ns, first_ns, under_way);
    }

    /// Tells the probes that a request of the workload completes.
    pub fn completes(&mut self) {
        self.watch.completes();
    }

    /// Returns the lookups, if they are followed.
    pub fn lookups(&self) -> Option<&Lookups> {
        self.watch.lookups.as_deref()
    }

    /// Hands out the work that chips and buses have done since the last call, each span with its request (`None` for
    /// work of the device's own). Must be called before completed requests are released.
    pub fn take_spans(&mut self, pool: &Pool, mut take: impl FnMut(&Span, Place, Option<&Request>)) {
        for span in self.array.take_spans() {
            let request = Some(&pool[span.owner]).filter(|request| matches!(request.task, 0 | COMMAND));
            take(&span, self.places[span.lun as usize], request);
        }
    }

    /// Hands out the services that link and cores have completed since the last call; must be called before completed
    /// requests are released.
    pub fn take_served(&mut self, now_ns: u64, pool: &Pool, mut take: impl FnMut(&Served, &Request)) {
        self.row.hub.take_served(now_ns, |served| take(served, &pool[served.id]));
    }

    /// From now on, tells tenants apart by the streams of their requests: charges the flash's work to the streams of
    /// the requests that ask for it, from what `work` has counted on. These are the classes of the first streams.
    pub fn tell_apart(&mut self, classes: Vec<Class>, work: &Work) {
        (self.watch.ledger, self.more_after_issue) = (Some(Box::new(Ledger::new(work.counts()))), true);
        self.array.tell_apart(classes);
    }

    /// Returns the flash's work for a stream's requests.
    pub fn share(&self, stream: u16) -> Share {
        self.watch.ledger.as_ref().map_or(Share::default(), |ledger| ledger.of(stream))
    }

    /// Returns the number of pages of the write buffer that are in use, if there is one.
    pub fn buffer_level(&self) -> Option<u32> {
        self.row.buffer.as_ref().and_then(|buffer| buffer.level())
    }

    /// Returns the counters of the write buffer, if there is one.
    pub fn buffered(&self) -> Option<buffer::Stats> {
        self.row.buffer.as_ref().map(|buffer| buffer.stats)
    }

    /// Issues the requests that may issue; those that complete at once are done.
    #[inline(always)] // called in one place, for every request
    pub fn issue(&mut self, turn: &mut Turn<impl Running>) {
        while let Some(id) = self.waiting.sched.next(&self.array, turn.ftl, turn.pool) {
            // Opaque; otherwise the compiler keeps addresses on the stack for a second round, which is rare.
            let device = std::hint::black_box(&mut *self);
            if device.more_at_issue | device.more_after_issue {
                let Turn { now_ns, pool, ftl, work, done } = &mut *turn;
                device.begin_with_more(id, *now_ns, pool, *ftl, work, done);
            } else {
                device.begin::<false>(id, turn);
            }
        }
        self.array.settle(turn.now_ns);
    }

    /// Lets chips and buses that are due at `now_ns` move on; completed requests go to `done`. Returns whether anything
    /// can begin because of it.
    #[inline(never)] // keeps its many addresses apart from those of the loop
    pub fn advance(&mut self, now_ns: u64, pool: &mut Pool, done: &mut Vec<u32>) -> bool {
        let mut any = false;
        while let Some(owner) = self.array.advance(now_ns) {
            any = true;
            let Some(owner) = owner else { continue };
            let request = &mut pool[owner];
            request.device.steps_left -= 1;
            if request.device.steps_left == 0 {
                self.end(owner, now_ns, pool, done);
            }
        }
        any && self.has_changed(done)
    }

    /// Ends a request: a request of the host goes to `done`, through the row if there is one; a request of the
    /// device's own is reported to its task.
    #[inline(always)] // for every request
    fn end(&mut self, id: u32, now_ns: u64, pool: &mut Pool, done: &mut Vec<u32>) {
        if pool[id].task > 0 {
            return self.end_elsewhere(id, now_ns, pool, done);
        }
        self.held -= 1;
        done.push(id);
    }

    #[cold]
    fn end_elsewhere(&mut self, id: u32, now_ns: u64, pool: &mut Pool, done: &mut Vec<u32>) {
        self.changes = u64::MAX;
        if pool[id].task == COMMAND {
            return self.row.answer(id, now_ns, pool, done, &mut self.held);
        }
        if let (Some(buffer), 1..) = (&mut self.row.buffer, pool[id].pages.pages) {
            match pool[id].op {
                Op::Read if pool[id].failed => buffer.did_not_come(pool[id].pages),
                Op::Read => buffer.came(pool[id].pages),
                _ => buffer.landed(pool[id].pages.first, pool[id].id),
            }
        }
        self.own -= 1;
        self.occupied -= u32::from(self.tasks.ended(&pool[id]));
        pool.release(id);
    }

    /// Returns when the device turned read-only, if it has, ns.
    pub fn read_only_ns(&self) -> Option<u64> {
        self.read_only_ns
    }

    /// Notes when the FTL turned the device read-only; returns whether it has refused a request since the
    /// last call.
    #[cold]
    pub(crate) fn turned_read_only(&mut self, now_ns: u64, ftl: &impl Running) -> bool {
        self.read_only_ns.get_or_insert(now_ns);
        self.straight = false;
        self.row.close();
        let refused = ftl.refused();
        std::mem::replace(&mut self.refused, refused) != refused
    }
}
