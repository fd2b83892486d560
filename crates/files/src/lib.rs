//! The host above the block layer: clients, their file system and its page cache.
//!
//! To the simulation's loop, [`FileHost`] is like a trace: it says when its next request arrives and supplies it. It
//! also has timers (clients, the flusher, the journal's commit) and is told about completions. Its parts know nothing
//! about each other: [`crate::clients`] decides what clients do, [`crate::fs`] where things are, [`crate::cache`] what
//! is in memory, and this module decides when things happen.
//!
//! Interpretation: every client has a processor of its own, except for the time to move pages
//! (`host.flash_cpu`), during which nothing else happens; a page that is being written is not submitted again
//! before that write has ended (as Linux waits for write-back); pages are submitted one by one, and the block
//! layer merges them.

mod bios;
pub mod cache;
mod check;
mod chosen;
pub mod clients;
mod feed;
pub mod fs;
mod ops;
pub mod settings;
mod stats;
mod tenants;
mod transfers;
mod writeback;

use std::collections::{HashMap, VecDeque};

use crate::cache::{PAGE, PageCache, Policy};
use crate::clients::{Client, Clients};
use crate::fs::{BLOCK, Fs, Tid};
use bios::{Bio, DirectRequest};
use check::Check;
use ftlab_core::clock::Clock;
use ftlab_core::host::sched::needs;
use ftlab_core::metrics::Report;
use ftlab_core::request::Paging;
use ftlab_core::sim::{Observer, Prepared, RunError, Simulation};
use ftlab_core::util::{NONE, Slab};
use ops::Active;
use settings::{Files, Settings};
use stats::Stats;
pub use tenants::{Load, run_tenants};
use writeback::Commit;

/// Makes a simulation of these clients, with a file system and a page cache, above the device of `settings`.
pub fn simulation(settings: &Settings, prepared: Prepared, clients: Clients) -> Simulation<'static> {
    let (block_bytes, check) = (prepared.block_bytes(settings), prepared.check);
    let host = FileHost::new(settings, clients, settings.user_bytes(), block_bytes, check);
    Simulation::below(settings, prepared, Box::new(host))
}

/// Runs clients above a file system and its page cache until they end.
///
/// # Errors
/// [`RunError`] if the clients cannot go on, the observer stops them or, on a device that is checked, an invariant
/// does not hold.
pub fn run(
    settings: &Settings,
    prepared: Prepared,
    clients: Clients,
    observer: &mut dyn Observer,
) -> Result<Report, RunError> {
    simulation(settings, prepared, clients).run(observer)
}

/// Why a client waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Blocked {
    /// The client does not wait, or its operation has finished.
    No,
    /// The client waits until no page of this file is being read or written.
    Busy(u32),
    /// The client waits because too many pages are dirty.
    Throttled,
    /// The client waits for the commit of this transaction.
    Commit(Tid),
    /// The client waits for a flush of the device, or a trim, that it asked for.
    Flush,
    /// The client waits for one of its direct requests.
    Await,
    /// The client waits for the other clients to reach this step.
    Gather,
}

#[derive(Clone, Debug)]
struct ClientState {
    client: Client,
    directory: u32,
    /// Inode of each of the client's files, indexed by the client's own number for the file.
    files: Vec<u32>,
    active: Option<Active>,
    blocked: Blocked,
    outstanding: u32,
    done: bool,
    /// The last read: its file, the offset at which it ended, and the number of pages that were read ahead.
    last_read: (u32, u64, u32),
}

impl ClientState {
    fn new((directory, client): (u32, Client)) -> ClientState {
        ClientState {
            client,
            directory,
            files: Vec::new(),
            active: None,
            blocked: Blocked::No,
            outstanding: 0,
            done: false,
            last_read: (NONE, 0, 0),
        }
    }
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
    /// The timers: one slot for each client, then the flusher, the commit timer and the ends of the measured window.
    clock: Clock,
    window_ns: Option<(u64, u64)>,
    /// The flusher writes data that became dirty at this time or before; `None`: it is not looking for old data.
    old_ns: Option<u64>,
    commit: Commit,
    bios: Slab<Bio>,
    /// Block I/Os not yet handed over, each with the number that it had when it was queued. If that number is no longer
    /// the block I/O's `waits`, the block I/O has already left out of order and the entry is stale.
    outbox: VecDeque<(u32, u64)>,
    submitted: u64,
    /// Whether something has been taken from the outbox since the flusher last looked.
    taken: bool,
    /// Writes of cached pages that are in the outbox, by block; kept only if the scheduler cooperates.
    waiting: Option<HashMap<u32, u32>>,
    in_flight: u32,
    /// Completed requests whose pages the processor has yet to move: when it will have moved them, and the request's
    /// first block I/O.
    moving: VecDeque<(u64, u32)>,
    /// Time at which the processor will have moved the last page.
    moved_ns: u64,
    directs: Slab<DirectRequest>,
    arrived: u64,
    /// Number of clients that wait because too many pages are dirty.
    throttled: u32,
    /// Number of steps since time last advanced.
    steps: u64,
    scratch: Vec<u32>,
    stats: Stats,
    check: Option<Check>,
}

impl FileHost {
    /// Makes the host of these clients, above `user_bytes` of a device with flash blocks of `block_bytes`.
    pub fn new(
        settings: &Settings,
        clients: Clients,
        user_bytes: u64,
        block_bytes: u64,
        check: bool,
    ) -> FileHost {
        let count = clients.clients.len() as u32;
        let fs = Fs::new(settings.files.mkfs(), (user_bytes / BLOCK) as u32, count);
        let mut config = settings.files.clone();
        let cooperates = needs(&settings.host.scheduler).cooperation;
        let policy;
        (policy, config.flush_policy) = Policy::new(config.flush_policy, cooperates, block_bytes);
        config.global_tree |= cooperates || policy != Policy::Baseline;
        let paging = Paging::new(settings.ftl.logical_page_bytes);
        let mut host = FileHost {
            paging,
            now_ns: 0,
            live: count,
            cache: PageCache::new(config.page_cache_bytes, config.global_tree),
            config,
            policy,
            clock: Clock::new(count + 3),
            window_ns: clients.window_ns,
            old_ns: None,
            commit: Commit::default(),
            bios: Slab::default(),
            outbox: VecDeque::new(),
            submitted: 0,
            taken: false,
            waiting: cooperates.then(HashMap::new),
            in_flight: 0,
            moving: VecDeque::new(),
            moved_ns: 0,
            directs: Slab::default(),
            arrived: 0,
            throttled: 0,
            steps: 0,
            scratch: Vec::new(),
            check: check.then(|| Check::new(user_bytes / PAGE, paging)),
            stats: Stats::new(&clients, settings.results.histograms),
            clients: (0..).zip(clients.clients).map(ClientState::new).collect(),
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

    /// Begins the measured window or, at its end, ends it.
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

    /// Lets a client continue at this instant.
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

    /// Wakes the clients that waited for pages of a file, if no page of that file is being read or written any more.
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
        let dirty = u64::from(self.cache.dirty) + u64::from(self.cache.writeback);
        dirty * PAGE > share(self.config.page_cache_bytes, self.config.dirty_ppm)
    }
}

/// Returns a share of a number of bytes; the share is given in parts per million.
fn share(bytes: u64, ppm: u64) -> u64 {
    (u128::from(bytes) * u128::from(ppm) / 1_000_000) as u64
}
