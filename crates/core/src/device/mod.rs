//! The device: its queue, its chips and channel buses, and when each step runs.
//!
//! The host hands requests over while there is room; the device's scheduler
//! decides which may issue; issuing runs the FTL, whose steps then run on the
//! chips in the order of emission. A chip serves one step at a time: data in over
//! its channel's bus, cells, data out. A channel's bus serves chips first come,
//! first served. With the options of [`crate::flash::parallel`] dies and planes work side by side
//! ([`array`]).
//!
//! A step waits at its chip for the step of the same chain before it, even if that
//! runs on another chip: so each block is programmed in the order the FTL decided,
//! and a block is programmed again only after its erasure has finished.

pub mod array;
mod background;
mod lookups;
pub mod sched;
pub mod settings;

use crate::device::settings::Settings;
use crate::flash::Work;
use crate::flash::media::Tape;
use crate::flash::parallel::{Allocation, Place};
use crate::ftl::{Cooperate, Ftl, Idle, Locate, LookUp, Serve};
use crate::request::Mark;
use crate::request::{Pool, Request, Window};
use crate::util::{Divider, NONE};
use crate::workload::Op;
pub use array::{Array, Overlaps, Part, Span};
pub use lookups::Lookups;
use sched::Sched;

/// Owner of the steps of a background write-back.
const BACKGROUND: u32 = u32::MAX - 1;
/// Owner of the steps of garbage collection in the background.
const COLLECTION: u32 = u32::MAX - 2;

/// Requests that met a busy or awaited chip on arrival at the device (VIOS, Table 1).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Conflicts {
    /// By half: reads, and writes with trims.
    pub requests: [u64; 2],
}

/// How the chips that a request touches are found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Touch {
    /// They follow one another.
    Window,
    /// Page by page.
    Each,
    /// Under dynamic allocation writes go where there is room: where data lies is all there is to know.
    Unknown,
}

/// The device.
#[derive(Clone, Debug)]
pub struct Device {
    depth: u32,
    held: u32,
    sched: Sched,
    /// Requests waiting for each chip (NR of VIOS, eq. (2)).
    wanted: Vec<u32>,
    /// Writes to a chip that more requests wait for are marked in their [`Work`].
    by_speed: bool,
    /// Logical pages that lie on one unit before static allocation goes on to the next.
    stripe: Divider,
    slots_per_page: u32,
    /// How the chips of a request are found.
    touch: Touch,
    places: Vec<Place>,
    array: Array,
    /// Unfinished steps of the write-back in the background.
    background_steps: u32,
    /// Requests held that have not issued, and the flushes among them.
    waiting: u32,
    flushes: u32,
    /// When the device turned read-only, and how many requests the FTL had refused since, when that was
    /// looked at last.
    read_only_ns: Option<u64>,
    refused: u64,
    conflicts: Conflicts,
    /// Hears of every request that issues, if power cuts are simulated.
    tape: Option<Tape>,
    /// Follows the mapping's lookups, if a result is to show how another cache had done.
    lookups: Option<Box<Lookups>>,
    /// Somebody hears of every request that issues: tape or lookups.
    heard: bool,
}

impl Device {
    /// An idle device.
    pub fn new(settings: &Settings) -> Device {
        let chips = settings.flash.units();
        let touch = match settings.ftl.allocation {
            _ if crate::ftl::is_hybrid(settings) => Touch::Window,
            Allocation::Dynamic => Touch::Unknown,
            _ if settings.spread().in_turn() => Touch::Window,
            _ => Touch::Each,
        };
        Device {
            depth: settings.device.queue_depth,
            held: 0,
            sched: Sched::new(settings),
            wanted: vec![0; chips as usize],
            by_speed: settings.allocates_by_speed(),
            stripe: Divider::new(crate::ftl::stripe(settings)),
            slots_per_page: settings.flash.page_bytes / settings.ftl.logical_page_bytes,
            touch,
            places: settings.spread().places(),
            array: Array::new(settings),
            background_steps: 0,
            waiting: 0,
            flushes: 0,
            read_only_ns: None,
            refused: 0,
            conflicts: Conflicts::default(),
            tape: None,
            lookups: None,
            heard: false,
        }
    }

    /// Whether the queue can take another request. A write-back in the background is waited for.
    #[inline]
    pub fn has_room(&self) -> bool {
        self.held < self.depth && self.background_steps == 0
    }

    /// Whether nothing is held, in the background either.
    pub fn is_idle(&self) -> bool {
        self.held == 0
    }

    /// Whether requests are held.
    pub fn has_requests(&self) -> bool {
        self.held > u32::from(self.background_steps > 0)
    }

    /// When the next resource is due, or [`crate::clock::NEVER`].
    #[inline]
    pub fn next_ns(&self) -> u64 {
        self.array.next_ns()
    }

    /// Conflicts so far.
    pub fn conflicts(&self) -> Conflicts {
        self.conflicts
    }

    /// The chips and buses.
    pub fn array(&self) -> &Array {
        &self.array
    }

    /// Batches the device's scheduler created.
    pub fn batches(&self) -> u64 {
        self.sched.batches()
    }

    /// Batch and channel batch of a request that has issued: see [`sched::Scheduler::batch_of`].
    #[inline]
    pub fn batch_of(&self, id: u32) -> Option<(u64, u32)> {
        self.sched.batch_of(id)
    }

    /// The chips of a request's pages where static allocation puts them (VIOS, eq. (1)).
    #[inline]
    fn window(&self, pages: crate::request::Pages, ftl: &Ftl) -> Window {
        if pages.pages == 0 || self.touch != Touch::Window {
            return Window { first: 0, width: 0 };
        }
        let first = ftl.home_chip(pages.first);
        if pages.pages == 1 {
            return Window { first, width: 1 };
        }
        let last = pages.first + pages.pages - 1;
        let width = self.stripe.div(last) - self.stripe.div(pages.first) + 1;
        Window { first, width: width.min(self.wanted.len() as u32) }
    }

    /// From now on what chips and buses do is kept for [`Device::take_spans`]; the FTL's work must be
    /// labelled.
    pub fn keep_spans(&mut self) {
        self.array.keep_spans();
    }

    /// From now on a tape hears of every request that issues.
    pub fn keep_tape(&mut self, tape: Tape) {
        self.tape = Some(tape);
        self.heard = true;
    }

    /// From now on the mapping's lookups are followed, where the FTL has a mapping cache.
    pub fn keep_lookups(&mut self, ftl: &Ftl) {
        self.lookups = Lookups::new(ftl).map(Box::new);
        self.heard |= self.lookups.is_some();
    }

    /// The lookups, if they are followed.
    pub fn lookups(&self) -> Option<&Lookups> {
        self.lookups.as_deref()
    }

    /// Hands out what chips and buses have done since the last call, each span with its request
    /// (`None`: a write-back or garbage collection in the background). To be called before completed
    /// requests are released.
    pub fn take_spans(&mut self, pool: &Pool, mut take: impl FnMut(&Span, Place, Option<&Request>)) {
        for span in self.array.take_spans() {
            let request = (span.owner < COLLECTION).then(|| &pool[span.owner]);
            take(&span, self.places[span.unit as usize], request);
        }
    }

    /// Takes a request into the queue.
    #[inline]
    pub fn accept(&mut self, id: u32, pool: &mut Pool, ftl: &Ftl) {
        self.held += 1;
        self.waiting += 1;
        let request = &mut pool[id];
        self.flushes += u32::from(request.op == Op::Flush);
        let window = self.window(request.pages, ftl);
        request.chips = window;
        let chips = self.wanted.len() as u32;
        let mut conflict = false;
        let busy = self.array.busy();
        for chip in window.members(chips) {
            let wanted = &mut self.wanted[chip as usize];
            conflict |= *wanted > 0 || busy.get(chip);
            *wanted += 1;
        }
        if self.touch != Touch::Window {
            conflict = self.meets_others(request, ftl);
        }
        self.conflicts.requests[request.half() as usize] += u64::from(conflict);
        let touched = if request.op == Op::Flush { Window { first: 0, width: chips } } else { window };
        self.sched.admit(id, touched, pool);
    }

    /// Whether a request, whose chips do not follow one another, meets a busy or awaited one. Under
    /// dynamic allocation, whether the chips of its data are busy, for a write whether all are.
    #[cold]
    fn meets_others(&mut self, request: &Request, ftl: &Ftl) -> bool {
        let pages = request.pages.first..request.pages.first + request.pages.pages;
        if self.touch == Touch::Unknown {
            let reads = request.op == Op::Read;
            let busy = |lpn| !self.array.is_idle(ftl.read_chip(lpn));
            let all = || self.array.busy().count() == self.wanted.len() as u64;
            return !pages.is_empty() && if reads { pages.into_iter().any(busy) } else { all() };
        }
        let home = |lpn| ftl.home_chip(lpn);
        let meets = |chip: u32| self.wanted[chip as usize] > 0 || !self.array.is_idle(chip);
        let conflict = pages.clone().any(|lpn| meets(home(lpn)));
        pages.for_each(|lpn| self.wanted[home(lpn) as usize] += 1);
        conflict
    }

    /// A request whose chips do not follow one another begins.
    #[cold]
    fn begin_elsewhere(&mut self, pages: crate::request::Pages, ftl: &Ftl, work: &mut Work) {
        if self.touch == Touch::Unknown {
            return work.set_busy(self.array.busy());
        }
        for lpn in pages.first..pages.first + pages.pages {
            self.wanted[ftl.home_chip(lpn) as usize] -= 1;
        }
    }

    /// Issues what may issue; ids of requests that completed at once go to `done`.
    #[inline(always)] // called in one place, for every request
    pub fn issue(
        &mut self,
        now_ns: u64,
        pool: &mut Pool,
        ftl: &mut Ftl,
        work: &mut Work,
        done: &mut Vec<u32>,
    ) {
        while let Some(id) = self.sched.next(&self.array, ftl, pool) {
            self.begin(id, now_ns, pool, ftl, work, done);
        }
        self.array.settle(now_ns);
    }

    /// Tells those who hear of every request of one that issues.
    #[cold]
    fn tell(&mut self, request: &Request, now_ns: u64, ftl: &Ftl) {
        if let Some(tape) = &self.tape {
            // Padding is no request of the workload's.
            tape.issue(if request.mark.pad { u64::MAX } else { request.id }, now_ns, request.mark.fua);
        }
        if let Some(lookups) = &mut self.lookups {
            lookups.request(request.pages, ftl);
        }
    }

    /// Runs a request through the FTL and starts its steps.
    #[inline(always)] // called in one place, for every request
    fn begin(
        &mut self,
        id: u32,
        now_ns: u64,
        pool: &mut Pool,
        ftl: &mut Ftl,
        work: &mut Work,
        done: &mut Vec<u32>,
    ) {
        work.clear();
        let Request { op, pages, chips, prefetch, mark, .. } = pool[id];
        if self.heard {
            self.tell(&pool[id], now_ns, ftl);
        }
        self.waiting -= 1;
        self.flushes -= u32::from(op == Op::Flush);
        for chip in chips.members(self.wanted.len() as u32) {
            let wanted = &mut self.wanted[chip as usize];
            if self.by_speed && *wanted > 1 {
                work.hurry(chip);
            }
            *wanted -= 1;
        }
        if self.touch != Touch::Window {
            self.begin_elsewhere(pages, ftl, work);
        }
        if prefetch && (op == Op::Read || !ftl.updates_free()) {
            let Request { batch, translation_page, .. } = pool[id];
            let mut at = id;
            // A scheduler of the device may have let later members of the batch pass this one; the
            // slot of one that completed may by now hold a request of another batch.
            let mut needs = std::iter::from_fn(|| {
                let member = (at != NONE && pool[at].batch == batch).then(|| pool[at].pages)?;
                at = pool.behind(at);
                Some(member)
            });
            ftl.prefetch(translation_page, &mut needs, work);
        }
        let (misses, read_only) = {
            let misses = match op {
                _ if mark.any() => marked(ftl, op, pages, mark, work),
                Op::Read => ftl.read(pages, work),
                Op::Write => ftl.write(pages, work),
                Op::Trim => ftl.trim(pages, work),
                Op::Flush => {
                    ftl.flush(work);
                    0
                }
            };
            (misses, ftl.is_read_only())
        };
        if read_only {
            pool[id].failed = self.turned_read_only(now_ns, ftl);
        }
        let request = &mut pool[id];
        request.misses = misses;
        request.steps_left = work.steps().len() as u32;
        if request.steps_left == 0 {
            self.held -= 1;
            done.push(id);
        } else {
            self.array.start(id, work.steps(), op == Op::Read, now_ns);
            if self.array.keeps_spans() {
                self.array.label(work.labels());
            }
        }
    }

    /// Starts one background write-back on an idle device; false if nothing is dirty.
    pub fn write_back(&mut self, now_ns: u64, ftl: &mut Ftl, work: &mut Work) -> bool {
        debug_assert!(self.is_idle());
        work.clear();
        work.chain();
        if !ftl.write_back(work) {
            return false;
        }
        self.held += 1;
        self.background_steps = work.steps().len() as u32;
        self.array.start(BACKGROUND, work.steps(), false, now_ns);
        if self.array.keeps_spans() {
            self.array.label(work.labels());
        }
        self.array.settle(now_ns);
        if ftl.is_read_only() {
            self.turned_read_only(now_ns, ftl);
        }
        true
    }

    /// Lets every resource that is due at `now_ns` move on; completed requests go to `done`.
    #[inline]
    pub fn advance(&mut self, now_ns: u64, pool: &mut Pool, done: &mut Vec<u32>) {
        while let Some(owner) = self.array.advance(now_ns) {
            let Some(owner) = owner else { continue };
            if owner == COLLECTION {
                continue;
            }
            if owner == BACKGROUND {
                self.background_steps -= 1;
                self.held -= u32::from(self.background_steps == 0);
                continue;
            }
            let request = &mut pool[owner];
            request.steps_left -= 1;
            if request.steps_left == 0 {
                self.held -= 1;
                done.push(owner);
            }
        }
    }
}

/// Runs a request that the host has marked, between the commands of cooperation that go with it.
#[cold]
fn marked(
    ftl: &mut (impl Cooperate + Serve),
    op: Op,
    pages: crate::request::Pages,
    mark: Mark,
    work: &mut Work,
) -> u32 {
    let block = ftl.block_size().map_or(0, |size| pages.first / size.pages);
    if mark.begin {
        ftl.coop_issue(block, work);
    }
    let misses = match op {
        Op::Read => ftl.read_marked(pages, mark, work),
        Op::Write => ftl.write_marked(pages, mark, work),
        Op::Trim => ftl.trim(pages, work),
        Op::Flush => {
            ftl.flush(work);
            0
        }
    };
    if mark.end {
        ftl.coop_complete(block, work);
    }
    misses
}
