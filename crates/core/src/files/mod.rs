//! The host above the block layer: clients, their file system, its page cache, and what they make of the
//! device's requests.
//!
//! [`FileHost`] is to the loop what a trace is: it says when its next request arrives and hands it over.
//! Beyond that it has timers (clients, the flusher, the journal's commit) and is told of completions. Its
//! parts know nothing of each other: [`crate::files::clients`] says what clients do,
//! [`crate::files::fs`] where things lie, [`crate::files::cache`] what is in memory; here is when.
//!
//! Read into it: every client has a processor of its own; a page that is being written is not submitted
//! again before that has ended (as Linux waits for write-back); pages are submitted one by one, and the
//! block layer merges them.

pub mod cache;
mod check;
mod chosen;
pub mod clients;
pub mod fs;
mod ops;
pub mod settings;
mod stats;
mod writeback;

use std::collections::{HashMap, VecDeque};

use crate::clock::{Clock, NEVER};
use crate::files::cache::{PAGE, PageCache, Policy};
use crate::files::clients::{Client, Clients, FileOp};
use crate::files::fs::{BLOCK, Fs, Tid};
use crate::host::Arrivals;
use crate::host::sched::needs;
use crate::request::{Paging, Pool, Request};
use crate::util::NONE;
use crate::workload::{Op, SourceError};
use check::Check;
use ops::Active;
use settings::{Files, Settings};
pub use stats::{Done, Sections};
use stats::{Reason, Stats};
use writeback::{Commit, Flusher};

/// What a block I/O is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum For {
    /// Write of a cached page.
    Page(u32),
    /// Read of so many pages of a file, from this one on.
    Read { inode: u32, index: u32, pages: u32 },
    /// A step of the commit under way.
    Commit,
    /// A buffer's copy of this transaction goes in place.
    InPlace(u32, Tid),
    /// Freed blocks are discarded.
    Discard(u32, u32),
    /// Part of a direct request.
    Direct(u32),
    /// A client's flush of the device.
    Flush(u32),
}

/// A block I/O, as the file system submits it.
#[derive(Clone, Copy, Debug)]
struct Bio {
    op: Op,
    offset: u64,
    size: u64,
    submitted_ns: u64,
    purpose: For,
    /// Check mode: what is written.
    token: u64,
    /// The next of its request, or of the free ones.
    next: u32,
    /// Its number in the outbox; 0: it is no longer there.
    waits: u64,
}

/// A direct request under way.
#[derive(Clone, Copy, Debug)]
struct Direct {
    client: u32,
    op: FileOp,
    begun_ns: u64,
    bios: u32,
    next_free: u32,
}

/// Why a client does not go on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Blocked {
    No,
    /// A page of this file is being read or written.
    Busy(u32),
    /// Too much is dirty.
    Throttled,
    /// This transaction is not committed.
    Commit(Tid),
    /// Its own flush of the device.
    Flush,
    /// Its direct requests.
    Await,
    /// The other clients.
    Gather,
}

#[derive(Clone, Debug)]
struct ClientState {
    client: Client,
    directory: u32,
    /// Inode of each of its files, by its own number.
    files: Vec<u32>,
    active: Option<Active>,
    blocked: Blocked,
    outstanding: u32,
    done: bool,
    /// The last read: file, where it ended, pages read ahead.
    last_read: (u32, u64, u32),
}

/// The host above the block layer.
pub struct FileHost {
    config: Files,
    paging: Paging,
    now_ns: u64,
    clients: Vec<ClientState>,
    live: u32,
    fs: Fs,
    cache: PageCache,
    policy: Policy,
    /// One slot for each client, then the flusher, the commit timer and the ends of the window.
    clock: Clock,
    window_ns: Option<(u64, u64)>,
    flusher: Flusher,
    commit: Commit,
    bios: Vec<Bio>,
    free_bio: u32,
    /// Block I/Os not handed over, each with its number. One that has left out of turn is no longer of that
    /// number; none such is in front.
    outbox: VecDeque<(u32, u64)>,
    submitted: u64,
    /// Some of the outbox has been taken since the flusher looked.
    taken: bool,
    /// Of the outbox, writes of cached pages by their block, if the scheduler cooperates.
    waiting: Option<HashMap<u32, u32>>,
    in_flight: u32,
    directs: Vec<Direct>,
    free_direct: u32,
    arrived: u64,
    /// Clients that wait because too much is dirty.
    throttled: u32,
    /// Steps since time last moved.
    steps: u64,
    scratch: Vec<u32>,
    stats: Stats,
    check: Option<Check>,
}

/// Steps at one instant after which nothing will move time.
const MOST_STEPS: u64 = 20_000_000;

impl FileHost {
    /// The host of these clients, above a device with flash blocks of so many bytes; `histograms`: the result
    /// shows them.
    pub fn new(
        settings: &Settings,
        clients: Clients,
        block_bytes: u64,
        histograms: bool,
        check: bool,
    ) -> FileHost {
        let count = clients.clients.len() as u32;
        let fs = Fs::new(settings.files.mkfs(), (settings.user_bytes() / BLOCK) as u32, count);
        let mut config = settings.files.clone();
        let cooperates = needs(&settings.host.scheduler).cooperation;
        let policy = Policy::new(&config.flush_policy, cooperates, block_bytes);
        config.flush_policy = policy.name().into();
        config.global_tree |= cooperates || policy != Policy::Baseline;
        let mut host = FileHost {
            paging: Paging::new(settings.ftl.logical_page_bytes),
            now_ns: 0,
            live: count,
            cache: PageCache::new(config.page_cache_bytes, config.global_tree),
            config,
            policy,
            clock: Clock::new(count + 3),
            window_ns: clients.window_ns,
            flusher: Flusher::new(&settings.files),
            commit: Commit::default(),
            bios: Vec::new(),
            free_bio: NONE,
            outbox: VecDeque::new(),
            submitted: 0,
            taken: false,
            waiting: cooperates.then(HashMap::new),
            in_flight: 0,
            directs: Vec::new(),
            free_direct: NONE,
            arrived: 0,
            throttled: 0,
            steps: 0,
            scratch: Vec::new(),
            check: check.then(|| Check::new(settings.user_bytes() / PAGE)),
            stats: Stats::new(&clients, histograms),
            clients: (0..)
                .zip(clients.clients)
                .map(|(directory, client)| ClientState {
                    client,
                    directory,
                    files: Vec::new(),
                    active: None,
                    blocked: Blocked::No,
                    outstanding: 0,
                    done: false,
                    last_read: (NONE, 0, 0),
                })
                .collect(),
            fs,
        };
        (0..count).for_each(|client| host.clock.set(client, 0));
        if let (Some(period), true) = (host.config.writeback_ns, host.fs.has_metadata()) {
            host.clock.set(count, period);
        }
        if let Some((from, _)) = host.window_ns {
            host.clock.set(count + 2, from);
        }
        host
    }

    fn flusher_slot(&self) -> u32 {
        self.clients.len() as u32
    }

    fn commit_slot(&self) -> u32 {
        self.clients.len() as u32 + 1
    }

    fn window_slot(&self) -> u32 {
        self.clients.len() as u32 + 2
    }

    /// The measured stretch begins or ends.
    fn window(&mut self) {
        let Some((from, to)) = self.window_ns else { return };
        if self.now_ns < to {
            debug_assert_eq!(self.now_ns, from);
            self.stats.begin(self.now_ns);
            self.clock.set(self.window_slot(), to);
        } else {
            self.stats.end(self.now_ns);
        }
    }

    /// A block I/O of the outbox, as a request.
    fn hand_over(&mut self, id: u32) -> Request {
        self.bios[id as usize].waits = 0;
        self.drop_departed();
        let bio = &self.bios[id as usize];
        if let (Some(waiting), For::Page(_)) = (&mut self.waiting, bio.purpose) {
            let block = (bio.offset / PAGE) as u32;
            debug_assert_eq!(waiting.get(&block), Some(&id), "no two writes of a block wait");
            waiting.remove(&block);
        }
        self.arrived += 1;
        let pages = self.paging.pages(bio.op, bio.offset, bio.offset + bio.size);
        let mut request = Request::new(self.arrived, bio.submitted_ns, bio.op, bio.offset, bio.size, pages);
        request.tag = id;
        request
    }

    fn drop_departed(&mut self) {
        while let Some(&(id, number)) = self.outbox.front() {
            if self.bios[id as usize].waits == number {
                break;
            }
            self.outbox.pop_front();
        }
    }

    /// The device refuses writes: the file system is read-only from now on, and the clients, whose next
    /// write would fail, end (as ext4 with errors=remount-ro leaves them).
    #[cold]
    fn fail(&mut self) {
        self.live = 0;
        let waits = |&&(id, number): &&(u32, u64)| self.bios[id as usize].waits == number;
        self.in_flight -= self.outbox.iter().filter(waits).count() as u32;
        self.outbox.clear();
        self.waiting = None;
        self.stats.fail(self.now_ns);
    }

    fn land(&mut self, bio: Bio) {
        match bio.purpose {
            For::Page(id) => {
                let inode = self.cache.page(id).inode;
                self.cache.written(id);
                self.no_longer_busy(inode);
                self.below_the_limit();
            }
            For::Read { inode, index, pages } => {
                for page in index..index + pages {
                    let id = self.cache.find(inode, page);
                    debug_assert_ne!(id, NONE, "pages being read stay");
                    self.cache.arrived(id);
                }
                self.wake(|blocked| blocked == Blocked::Busy(inode));
                self.no_longer_busy(inode);
            }
            For::Commit => self.commit_landed(),
            For::InPlace(buffer, tid) => {
                self.fs.journal.in_place(buffer, tid, &mut self.fs.buffers);
                self.room_in_journal();
            }
            For::Discard(first, count) => self.fs.release(first, count),
            For::Direct(direct) => self.direct_landed(direct),
            For::Flush(client) => {
                debug_assert_eq!(self.clients[client as usize].blocked, Blocked::Flush);
                self.resume(client);
            }
        }
    }

    fn submit(&mut self, op: Op, offset: u64, size: u64, purpose: For) {
        self.submitted += 1;
        let waits = self.submitted;
        let bio = Bio { op, offset, size, submitted_ns: self.now_ns, purpose, token: 0, next: NONE, waits };
        let id = match self.free_bio {
            NONE => {
                self.bios.push(bio);
                self.bios.len() as u32 - 1
            }
            id => {
                self.free_bio = self.bios[id as usize].next;
                self.bios[id as usize] = bio;
                id
            }
        };
        if let (Some(check), For::Page(page)) = (&self.check, purpose) {
            let page = self.cache.page(page);
            self.bios[id as usize].token = check.token(page.inode, page.index);
        }
        self.in_flight += 1;
        self.outbox.push_back((id, waits));
        if let (Some(waiting), For::Page(_)) = (&mut self.waiting, purpose) {
            waiting.insert((offset / PAGE) as u32, id);
        }
    }

    /// Submits a dirty page's write.
    fn submit_page(&mut self, id: u32) {
        let block = self.cache.page(id).block;
        self.cache.submit(id);
        self.submit(Op::Write, u64::from(block) * PAGE, PAGE, For::Page(id));
    }

    /// A client goes on at this instant.
    fn resume(&mut self, client: u32) {
        let state = &mut self.clients[client as usize];
        if state.blocked == Blocked::Throttled {
            self.throttled -= 1;
        }
        state.blocked = Blocked::No;
        self.clock.set(client, self.now_ns);
    }

    fn wake(&mut self, which: impl Fn(Blocked) -> bool) {
        for client in 0..self.clients.len() as u32 {
            let blocked = self.clients[client as usize].blocked;
            if blocked != Blocked::No && which(blocked) {
                self.resume(client);
            }
        }
    }

    /// Pages of a file have been read or written: who waited for the last of them goes on.
    fn no_longer_busy(&mut self, inode: u32) {
        if self.cache.busy_of(inode) == 0 {
            self.wake(|blocked| blocked == Blocked::Busy(inode));
            self.ordered_data_landed();
        }
    }

    fn below_the_limit(&mut self) {
        if self.throttled > 0 && !self.is_over_limit() {
            self.wake(|blocked| blocked == Blocked::Throttled);
        }
    }

    fn is_over_limit(&self) -> bool {
        let dirty = u64::from(self.cache.dirty()) + u64::from(self.cache.writeback());
        dirty * PAGE > share(self.config.page_cache_bytes, self.config.dirty_ppm)
    }

    /// Dirty pages of all files within a range of blocks go to the queue now, in the order of blocks. Needs
    /// the tree over logical pages.
    fn flush_blocks(&mut self, first: u32, end: u32) {
        let mut found = std::mem::take(&mut self.scratch);
        found.clear();
        self.cache.dirty_in(first, end, &mut found);
        found.iter().for_each(|&id| self.submit_page(id));
        self.stats.pages_written[Reason::Joined as usize] += found.len() as u64;
        self.scratch = found;
    }

    /// Sections of the result; `done` is what the device did.
    pub fn sections(&self, done: &Done, merged: u64) -> Sections {
        stats::sections(self, done, merged)
    }

    /// Whether a measured stretch has begun or ended, so that [`FileHost::measure`] wants to know what the
    /// device has done up to now: asked after every tick.
    #[inline]
    pub fn wants_measure(&self) -> bool {
        self.stats.wants_measure()
    }

    /// Takes what the device has done.
    pub fn measure(&mut self, done: Done) {
        self.stats.measure(done);
    }

    /// Check mode: a write reached the device; `version` is an LPN's there. To be called before
    /// [`FileHost::completed`].
    pub fn landed(&mut self, request: &Request, version: &dyn Fn(u32) -> Option<u32>) {
        let Some(check) = self.check.as_mut().filter(|_| !request.failed) else { return };
        let mut id = request.tag;
        while id != NONE {
            let bio = &self.bios[id as usize];
            check.landed(bio.op, bio.offset, bio.size, bio.token, self.paging, version);
            id = bio.next;
        }
    }

    /// Check mode: what fsyncs promised and reads delivered, since the last call.
    ///
    /// # Errors
    /// What is lost or stale, in words.
    pub fn verify(&mut self, version: &dyn Fn(u32) -> Option<u32>) -> Result<(), String> {
        match &mut self.check {
            Some(check) => check.verify(&self.fs, self.paging, version),
            None => Ok(()),
        }
    }
}

impl Arrivals for FileHost {
    fn next_ns(&self) -> Option<u64> {
        self.outbox.front().map(|&(bio, _)| self.bios[bio as usize].submitted_ns)
    }

    fn timer_ns(&self) -> u64 {
        if self.live == 0 { NEVER } else { self.clock.next().0 }
    }

    fn goes_on(&self) -> bool {
        self.taken && self.live > 0 && self.outbox.is_empty()
    }

    fn ended(&self) -> bool {
        self.live == 0 && self.in_flight == 0 && self.outbox.is_empty()
    }

    /// # Errors
    /// [`SourceError::Input`] if the workload cannot go on: no room, or no time passes.
    fn tick(&mut self, now_ns: u64) -> Result<(), SourceError> {
        if now_ns > self.now_ns {
            self.stats.sample(now_ns, &self.cache);
            self.steps = 0;
        }
        self.now_ns = now_ns;
        self.taken = false;
        while self.live > 0 {
            let (due_ns, slot) = self.clock.next();
            if due_ns > now_ns {
                break;
            }
            self.clock.set(slot, NEVER);
            self.steps += 1;
            if self.steps > MOST_STEPS {
                return Err(SourceError::Input(
                    "the workload's operations take no time, so that it never ends; \
                     set host.operation_time to more than 0ns"
                        .into(),
                ));
            }
            if slot < self.flusher_slot() {
                self.run_client(slot)?;
            } else if slot == self.flusher_slot() {
                self.wake_flusher();
            } else if slot == self.commit_slot() {
                self.request_commit(self.fs.journal.running().tid);
            } else {
                self.window();
            }
        }
        if self.live > 0 {
            self.write_back();
        }
        Ok(())
    }

    fn take(&mut self, _now_ns: u64, pool: &mut Pool) -> Result<Option<u32>, SourceError> {
        let Some((id, _)) = self.outbox.pop_front() else { return Ok(None) };
        self.taken = true;
        Ok(Some(pool.insert(self.hand_over(id))))
    }

    /// The issue range extension (Shim et al., TC 2014, section 5.3.2): writes of the dirty pages of all files
    /// between two bytes of the device, in order, those included that are submitted and not handed over.
    fn join(&mut self, from: u64, to: u64, joined: &mut Vec<Request>) {
        if self.live == 0 {
            return;
        }
        let (first, end) = (from.div_ceil(PAGE) as u32, to.div_ceil(PAGE) as u32);
        self.flush_blocks(first, end);
        for block in first..end {
            let Some(&id) = self.waiting.as_ref().and_then(|waiting| waiting.get(&block)) else { continue };
            self.taken = true;
            let request = self.hand_over(id);
            match joined.last_mut().filter(|last| last.offset + last.size == request.offset) {
                None => joined.push(request),
                Some(last) => {
                    last.size += request.size;
                    last.pages = self.paging.pages(Op::Write, last.offset, last.offset + last.size);
                    self.merged(last, &request);
                }
            }
        }
    }

    fn merged(&mut self, pending: &mut Request, taken: &Request) {
        self.arrived -= 1;
        self.bios[taken.tag as usize].next = pending.tag;
        pending.tag = taken.tag;
    }

    fn completed(&mut self, now_ns: u64, request: &Request) {
        self.now_ns = now_ns;
        if request.failed && self.live > 0 {
            self.fail();
        }
        self.stats.request(now_ns, request);
        let mut id = request.tag;
        while id != NONE {
            let bio = self.bios[id as usize];
            self.bios[id as usize].next = self.free_bio;
            self.free_bio = id;
            self.in_flight -= 1;
            if self.live > 0 {
                self.land(bio);
            }
            id = bio.next;
        }
    }
}

/// So many parts per million.
fn share(bytes: u64, ppm: u64) -> u64 {
    (u128::from(bytes) * u128::from(ppm) / 1_000_000) as u64
}
