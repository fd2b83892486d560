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
pub mod controller;
mod lookups;
pub mod own;
mod queue;
pub mod sched;
pub mod settings;

use crate::device::settings::Settings;
use crate::flash::Work;
use crate::flash::media::Tape;
use crate::flash::moves::{Move, Moves};
use crate::flash::parallel::Place;
use crate::ftl::{Ftl, Running};
use crate::request::{COMMAND, HostSide, Mark, Pages, Pool, Request};
use crate::util::{NONE, Stat};
use crate::workload::Op;
pub use array::{Array, Overlaps, Span, Stage, Used};
use controller::{Controller, Leaves};
pub use lookups::Lookups;
pub use queue::Conflicts;
use queue::Waiting;

/// The device.
#[derive(Debug)]
pub struct Device {
    depth: u32,
    /// Number of host requests held, and of the device's own that keep others out.
    held: u32,
    occupied: u32,
    /// Number of requests of its own that have not ended.
    pub own: u32,
    /// What commands go through before the queue and after the flash, if that takes time; those that are
    /// through to the queue; and what has been answered.
    controller: Option<Box<Controller>>,
    through: Vec<u32>,
    /// Requests held that have not issued.
    waiting: Waiting,
    places: Vec<Place>,
    array: Array,
    /// Its own tasks.
    pub tasks: own::Tasks,
    /// When the device turned read-only, and how many requests the FTL had refused when last checked.
    read_only_ns: Option<u64>,
    refused: u64,
    /// Records every request that issues, if power cuts are simulated.
    tape: Option<Tape>,
    /// Receives them too, and where reads find their data, if the bytes are followed.
    moves: Option<Moves>,
    /// Follows the mapping's lookups, if a result is to show how another cache would have performed.
    lookups: Option<Box<Lookups>>,
    /// Whether tape, moves or lookups receive a request that issues, or it may issue in parts.
    attended: bool,
}

impl Device {
    /// Makes an idle device.
    pub fn new(settings: &Settings) -> Device {
        let waiting = Waiting::new(settings);
        Device {
            depth: settings.device.queue_depth,
            held: 0,
            occupied: 0,
            own: 0,
            controller: Controller::new(&settings.device.controller),
            through: Vec::new(),
            attended: waiting.sched.divides(),
            waiting,
            places: settings.spread().places(),
            array: Array::new(settings),
            tasks: own::Tasks::new(settings),
            read_only_ns: None,
            refused: 0,
            tape: None,
            moves: None,
            lookups: None,
        }
    }

    /// Whether the queue can take another request; not while work of the device's own keeps requests out.
    #[inline]
    pub fn has_room(&self) -> bool {
        self.held < self.depth && self.occupied == 0
    }

    /// Returns the number of requests held, including those of its own that keep others out.
    pub fn held(&self) -> u32 {
        self.held + self.occupied
    }

    /// Whether nothing is held.
    pub fn is_idle(&self) -> bool {
        self.held() == 0
    }

    /// Whether requests of the host are held.
    pub fn has_requests(&self) -> bool {
        self.held > 0
    }

    /// Returns when the next resource is due, or [`crate::clock::NEVER`].
    #[inline]
    pub fn next_ns(&self) -> u64 {
        match &self.controller {
            None => self.array.next_ns(),
            Some(controller) => self.array.next_ns().min(controller.next_ns()),
        }
    }

    /// Returns the conflicts so far.
    pub fn conflicts(&self) -> Conflicts {
        self.waiting.conflicts
    }

    /// Returns the chips and buses.
    pub fn array(&self) -> &Array {
        &self.array
    }

    /// Returns the number of batches that the device's scheduler created.
    pub fn batches(&self) -> u64 {
        self.waiting.sched.batches()
    }

    /// Returns the scheduler's own figures.
    pub fn stats(&self) -> Vec<Stat> {
        self.waiting.sched.stats()
    }

    /// Returns batch and channel batch of a request that has issued: see [`sched::Scheduler::batch_of`].
    #[inline]
    pub fn batch_of(&self, id: u32) -> Option<(u64, u32)> {
        self.waiting.sched.batch_of(id)
    }

    /// Keeps what chips and buses do for [`Device::take_spans`]; the FTL's work must be labelled.
    pub fn keep_spans(&mut self) {
        self.array.keep_spans();
    }

    /// Records every request that issues on a tape.
    pub fn keep_tape(&mut self, tape: Tape) {
        self.tape = Some(tape);
        self.attended = true;
    }

    /// Reports requests that issue, and where their reads find data.
    pub fn follow(&mut self, moves: &Moves) {
        self.moves = Some(moves.clone());
        self.attended = true;
    }

    /// Follows the mapping's lookups, where the FTL has a mapping cache.
    pub fn keep_lookups(&mut self, ftl: &Ftl) {
        self.lookups = Lookups::new(ftl).map(Box::new);
        self.attended |= self.lookups.is_some();
    }

    /// Returns the lookups, if they are followed.
    pub fn lookups(&self) -> Option<&Lookups> {
        self.lookups.as_deref()
    }

    /// Hands out what chips and buses have done since the last call, each span with its request (`None`: the
    /// device's own). Must be called before completed requests are released.
    pub fn take_spans(&mut self, pool: &Pool, mut take: impl FnMut(&Span, Place, Option<&Request>)) {
        for span in self.array.take_spans() {
            let request = Some(&pool[span.owner]).filter(|request| request.is_of_host());
            take(&span, self.places[span.lun as usize], request);
        }
    }

    /// Takes a request into the queue.
    #[inline]
    pub fn accept(&mut self, id: u32, now_ns: u64, pool: &mut Pool, ftl: &impl Running) {
        self.held += 1;
        if let Some(controller) = &mut self.controller {
            pool[id].task = COMMAND;
            if controller.receive(id, &pool[id], now_ns) {
                self.through.push(id);
            }
            return;
        }
        self.waiting.accept(id, pool, &self.array, ftl);
    }

    /// Issues what may issue; ids of requests that complete at once go to `done`.
    #[inline(always)] // called in one place, for every request
    pub fn issue(
        &mut self,
        now_ns: u64,
        pool: &mut Pool,
        ftl: &mut impl Running,
        work: &mut Work,
        done: &mut Vec<u32>,
    ) {
        if !self.through.is_empty() {
            self.queue_up(pool, ftl);
        }
        while let Some(id) = self.waiting.sched.next(&self.array, ftl, pool) {
            // Opaque, or the compiler keeps addresses on the stack for a second round, which is rare.
            std::hint::black_box(&mut *self).begin(id, now_ns, pool, ftl, work, done);
        }
        self.array.settle(now_ns);
    }

    /// Takes commands that have gone through the controller into the queue.
    #[cold]
    fn queue_up(&mut self, pool: &mut Pool, ftl: &impl Running) {
        for id in self.through.drain(..) {
            self.waiting.accept(id, pool, &self.array, ftl);
        }
    }

    /// Tells tape, moves and lookups which pages of a request issue.
    #[cold]
    fn tell(&mut self, request: &Request, pages: Pages, now_ns: u64, ftl: &impl Running) {
        if let Some(tape) = &self.tape {
            // Padding is not a request of the workload.
            tape.issue(if request.mark.pad { u64::MAX } else { request.id }, now_ns, request.mark.fua);
        }
        if let Some(moves) = &self.moves {
            moves.note(Move::Issue { request: (!request.mark.pad).then_some(request.id) });
            if request.op == Op::Read {
                let end = pages.first + pages.pages;
                (pages.first..end).for_each(|lpn| moves.note(Move::Read { lpn, slot: ftl.slot(lpn) }));
            }
        }
        if let Some(lookups) = &mut self.lookups {
            lookups.request(pages, ftl);
        }
    }

    /// Runs a request through the FTL and starts its steps.
    #[inline(always)] // called in one place, for every request
    fn begin(
        &mut self,
        id: u32,
        now_ns: u64,
        pool: &mut Pool,
        ftl: &mut impl Running,
        work: &mut Work,
        done: &mut Vec<u32>,
    ) {
        work.clear();
        if self.attended {
            if let Some(part) = self.waiting.sched.part(work) {
                return self.begin_part((id, part), now_ns, pool, ftl, work, done);
            }
            self.tell(&pool[id], pool[id].pages, now_ns, ftl);
        }
        let request = &pool[id];
        self.waiting.leave(request, &self.array, ftl, work);
        let (op, pages) = (request.op, request.pages);
        if request.host.prefetch && (op == Op::Read || !ftl.updates_free()) {
            fetch_for_batch(id, pool, ftl, work);
        }
        let misses = if request.mark.any() {
            marked(ftl, op, pages, request.mark, work)
        } else {
            serve(ftl, op, pages, None, work)
        };
        if ftl.is_read_only() {
            pool[id].failed = self.turned_read_only(now_ns, ftl);
        }
        let request = &mut pool[id];
        request.misses = misses;
        request.device.steps_left = work.steps().len() as u32;
        if request.device.steps_left == 0 {
            self.end(id, now_ns, pool, done);
        } else {
            self.array.start(id, work, op == Op::Read, now_ns);
        }
    }

    /// Begins a part of a request. Pages that have not issued count as steps.
    #[cold]
    fn begin_part(
        &mut self,
        (id, part): (u32, sched::Part),
        now_ns: u64,
        pool: &mut Pool,
        ftl: &mut impl Running,
        work: &mut Work,
        done: &mut Vec<u32>,
    ) {
        let Request { op, pages, mark, failed, host, .. } = pool[id];
        let sched::Part::Pages { at, count } = part else {
            self.waiting.leave(&pool[id], &self.array, ftl, work);
            pool[id].device.steps_left = pages.pages;
            return;
        };
        let issuing = pages.part(at, count);
        self.tell(&pool[id], issuing, now_ns, ftl);
        if host.prefetch && (op == Op::Read || !ftl.updates_free()) {
            fetch_for_batch(id, pool, ftl, work);
            pool[id].host.prefetch = false;
        }
        if !failed {
            let misses = match op {
                Op::Write => ftl.write_page(pages, at, mark, work),
                _ => serve(ftl, op, issuing, Some(mark), work),
            };
            pool[id].misses += misses;
            if ftl.is_read_only() {
                pool[id].failed = self.turned_read_only(now_ns, ftl);
            }
        }
        let steps = work.steps().len() as u32;
        let left = &mut pool[id].device.steps_left;
        *left = *left - count + steps;
        if *left == 0 {
            self.end(id, now_ns, pool, done);
        }
        if steps > 0 {
            self.array.start(id, work, op == Op::Read, now_ns);
        }
    }

    /// Lets every resource that is due at `now_ns` move on; completed requests go to `done`.
    #[inline(never)] // keeps its many addresses apart from those of the loop
    pub fn advance(&mut self, now_ns: u64, pool: &mut Pool, done: &mut Vec<u32>) {
        while let Some(owner) = self.array.advance(now_ns) {
            let Some(owner) = owner else { continue };
            let request = &mut pool[owner];
            request.device.steps_left -= 1;
            if request.device.steps_left == 0 {
                self.end(owner, now_ns, pool, done);
            }
        }
        if self.controller.is_some() {
            self.go_through(now_ns, pool, done);
        }
    }

    /// Ends a request: one of the host's goes to `done`, by way of the controller if there is one; one of the
    /// device's own to its task.
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
        if let (Some(controller), COMMAND) = (&mut self.controller, pool[id].task) {
            if controller.finish(id, &pool[id], now_ns) {
                self.held -= 1;
                done.push(id);
            }
            return;
        }
        self.own -= 1;
        self.occupied -= u32::from(self.tasks.ended(&pool[id]));
        pool.release(id);
    }

    /// Lets commands go through the stages of the controller.
    #[cold]
    fn go_through(&mut self, now_ns: u64, pool: &Pool, done: &mut Vec<u32>) {
        let Some(controller) = &mut self.controller else { return };
        while let Some(leaves) = controller.advance(now_ns, pool) {
            match leaves {
                None => {}
                Some(Leaves::ToQueue(id)) => self.through.push(id),
                Some(Leaves::Answered(id)) => {
                    self.held -= 1;
                    done.push(id);
                }
            }
        }
    }

    /// Whether an operation is refused before it is queued.
    #[inline]
    pub fn refuses(&self, op: impl FnOnce() -> Op) -> bool {
        self.read_only_ns.is_some() && op() != Op::Read
    }

    /// Returns when the device turned read-only, if it has, ns.
    pub fn read_only_ns(&self) -> Option<u64> {
        self.read_only_ns
    }

    /// Notes when the FTL turned the device read-only; returns whether it has refused a request since the
    /// last call.
    #[cold]
    fn turned_read_only(&mut self, now_ns: u64, ftl: &impl Running) -> bool {
        self.read_only_ns.get_or_insert(now_ns);
        let refused = ftl.refused();
        std::mem::replace(&mut self.refused, refused) != refused
    }
}

/// Brings in the mappings of its translation page that a batch misses, when the batch's first request issues.
fn fetch_for_batch(id: u32, pool: &Pool, ftl: &mut impl Running, work: &mut Work) {
    let HostSide { batch, translation_page, .. } = pool[id].host;
    let mut at = id;
    // A scheduler of the device may have let later members of the batch pass this one; the slot of one that
    // completed may by now hold a request of another batch.
    let mut needs = std::iter::from_fn(|| {
        let member = (at != NONE && pool[at].host.batch == batch).then(|| pool[at].pages)?;
        at = pool.behind(at);
        Some(member)
    });
    ftl.prefetch(translation_page, &mut needs, work);
}

/// Runs a request that the host has marked, between the commands of cooperation that go with it.
#[cold]
fn marked(ftl: &mut impl Running, op: Op, pages: Pages, mark: Mark, work: &mut Work) -> u32 {
    let block = ftl.block_size().map_or(0, |size| pages.first / size.pages);
    if mark.begin {
        ftl.coop_issue(block, work);
    }
    let misses = serve(ftl, op, pages, Some(mark), work);
    if mark.end {
        ftl.coop_complete(block, work);
    }
    misses
}

/// Runs a request through the FTL; returns the number of its mapping-cache misses.
#[inline(always)] // for every request
fn serve(ftl: &mut impl Running, op: Op, pages: Pages, mark: Option<Mark>, work: &mut Work) -> u32 {
    match (op, mark) {
        (Op::Read, None) => ftl.read(pages, work),
        (Op::Read, Some(mark)) => ftl.read_marked(pages, mark, work),
        (Op::Write, None) => ftl.write(pages, work),
        (Op::Write, Some(mark)) => ftl.write_marked(pages, mark, work),
        (Op::Trim, _) => ftl.trim(pages, work),
        (Op::Flush, _) => {
            ftl.flush(work);
            0
        }
    }
}
