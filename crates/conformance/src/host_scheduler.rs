//! What every I/O scheduler of the host must guarantee.

use std::collections::BTreeSet;
use std::ops::Range;

use ftlab_core::host::sched::{self, Around, Decision, Keys, Needs, Sched};
use ftlab_core::request::{Pages, Pool, Request};
use ftlab_core::util::NONE;
use ftlab_core::workload::Op;
use rand::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

use crate::registered::all_ftls;
use crate::stack::{bursts, every_request_completes_once, small};

/// Number of logical pages of a flash block, and of a translation page, for a scheduler that is tested alone.
const BLOCK: u32 = 8;
const TRANSLATION_PAGE: u32 = 16;

/// Tests a registered scheduler, alone and above every FTL: every request leaves exactly once, by choice or by
/// deadline; the scheduler never rests while a request waits and none is in the device; its counts agree with the
/// requests; and a second run chooses the same order.
///
/// ```
/// use ftlab_core::host::sched::{self, Around, Decision, Keys, Needs, Scheduler};
/// use ftlab_core::request::{Pool, Queue};
///
/// /// Arrival order.
/// #[derive(Debug)]
/// struct Fifo(Queue);
///
/// impl Scheduler for Fifo {
///     const NEEDS: Needs = Needs { deadline: true, ..Needs::NOTHING };
///
///     fn new(_keys: &Keys, _block_pages: u32) -> Fifo {
///         Fifo(Queue::default())
///     }
///     fn admit(&mut self, id: u32, pool: &mut Pool) {
///         self.0.push(id, pool);
///     }
///     fn choose(&mut self, pool: &mut Pool, _around: &mut dyn Around) -> Decision {
///         self.0.pop(pool).map_or(Decision::Nothing, Decision::One)
///     }
///     fn remove(&mut self, id: u32, pool: &mut Pool) {
///         self.0.unlink(id, pool);
///     }
///     fn verify(&self, _pool: &Pool) -> Result<u32, String> {
///         Ok(self.0.len())
///     }
/// }
///
/// sched::register::<Fifo>("fifo");
/// ftlab_conformance::host_scheduler("fifo");
/// ```
///
/// # Panics
/// If the scheduler breaks a promise of [`sched::Scheduler`], or no scheduler has that name.
pub fn host_scheduler(name: &str) {
    for seed in 0..200 {
        let left = Run::of(name, seed);
        assert_eq!(left, Run::of(name, seed), "seed {seed}: other choices for the same requests");
    }
    // Schedulers that work on whole flash blocks cut requests, which then complete in parts.
    if sched::needs(name).blocks {
        return;
    }
    for kind in all_ftls() {
        for (chips, depth, transfer_ps) in [(1, 1, 0), (4, 8, 0), (4, u32::MAX, 25_000)] {
            let mut settings = small(kind, chips);
            settings.host.scheduler = name.into();
            settings.device.queue_depth = depth;
            settings.flash.transfer_ps = transfer_ps;
            let trace = bursts(u64::from(chips), 3000, settings.user_pages());
            every_request_completes_once(&settings, &trace);
        }
    }
}

/// A scheduler at work.
struct Run {
    scheduler: Sched,
    /// Whether requests leave when their deadline has passed.
    expires: bool,
    /// Whether the scheduler is told about completions: requests complete as they leave.
    told: bool,
    pool: Pool,
    waiting: BTreeSet<u32>,
    random: Xoshiro256PlusPlus,
    admitted: u64,
    /// Numbers of the requests that have left, in order.
    left: Vec<u64>,
    seed: u64,
}

impl Run {
    /// Returns the numbers of the requests, in the order in which they left.
    fn of(name: &str, seed: u64) -> Vec<u64> {
        let scheduler = Sched::new(name, &Keys::default(), BLOCK);
        let Needs { deadline: expires, completions: told, .. } = sched::needs(name);
        let random = Xoshiro256PlusPlus::seed_from_u64(seed);
        let pool = Pool::default();
        let mut run = Run {
            scheduler,
            expires,
            told,
            pool,
            waiting: BTreeSet::new(),
            random,
            admitted: 0,
            left: Vec::new(),
            seed,
        };
        // Some queues are shallow, others deep.
        let admissions = run.random_below(7) + 2;
        for _ in 0..300 {
            match run.random_below(10) {
                step if step < admissions => run.admit(),
                8 if run.expires => run.expire(),
                9 => run.grow(),
                _ => run.choose(),
            }
            run.verify();
        }
        while !run.waiting.is_empty() {
            run.choose();
            run.verify();
        }
        run.choose();
        assert_eq!(run.left.len() as u64, run.admitted, "seed {seed}");
        run.left
    }

    fn random_below(&mut self, end: u32) -> u32 {
        self.random.random_range(0..end)
    }

    fn verify(&self) {
        let held = self.scheduler.verify(&self.pool);
        assert_eq!(held, Ok(self.waiting.len() as u32), "seed {}", self.seed);
    }

    fn admit(&mut self) {
        let op = [Op::Read, Op::Write, Op::Write, Op::Trim, Op::Flush][self.random_below(5) as usize];
        let start = self.random_below(60);
        let count = if op == Op::Flush { 0 } else { 1 + self.random_below(BLOCK - start % BLOCK) };
        let first = if op == Op::Flush { 0 } else { start };
        self.admitted += 1;
        let mut request = request(self.admitted, op, first, count);
        request.host.hit = self.random_below(2) == 0;
        if count > 0 {
            request.host.translation_page = first / TRANSLATION_PAGE;
        }
        let id = self.pool.insert(request);
        self.waiting.insert(id);
        self.scheduler.admit(id, &mut self.pool);
    }

    /// Lets a deadline pass: the oldest request leaves, alone or with its batch.
    fn expire(&mut self) {
        let oldest = self.waiting.iter().copied().min_by_key(|&id| self.pool[id].id);
        let Some(id) = oldest else { return };
        if self.random_below(2) == 0 {
            self.scheduler.remove(id, &mut self.pool);
            return self.leave(id);
        }
        let number = self.pool[id].id;
        match self.scheduler.expire(id, &mut self.pool) {
            Decision::Nothing => panic!("seed {}: request {number} stays", self.seed),
            Decision::One(id) => self.leave(id),
            Decision::Batch(mut queue) => {
                while let Some(id) = queue.pop(&mut self.pool) {
                    self.leave(id);
                }
            }
        }
        assert!(self.left.contains(&number), "seed {}: request {number} stays", self.seed);
    }

    /// Merges a later request with a waiting one, without filling its block.
    fn grow(&mut self) {
        let room = |request: &Request| !(request.pages.first + request.pages.pages).is_multiple_of(BLOCK);
        let grows = |id: &&u32| matches!(self.pool[**id].op, Op::Read | Op::Write) && room(&self.pool[**id]);
        let Some(&id) = self.waiting.iter().find(grows) else { return };
        let before = self.pool[id].pages.pages;
        self.pool[id].pages.pages += 1;
        self.pool[id].size += 4096;
        self.scheduler.grown(id, before, &mut self.pool);
    }

    fn choose(&mut self) {
        let mut around = Quiet::default();
        let seed = self.seed;
        match self.scheduler.choose(&mut self.pool, &mut around) {
            Decision::Nothing => {
                assert!(self.waiting.is_empty(), "seed {seed}: it rests while requests wait")
            }
            Decision::One(id) => self.leave(id),
            Decision::Batch(mut queue) => {
                assert!(!queue.is_empty(), "seed {seed}: an empty batch");
                let mut count = 0;
                let len = queue.len();
                while let Some(id) = queue.pop(&mut self.pool) {
                    count += 1;
                    match around.padding.remove(&id) {
                        true => self.pool.release(id),
                        false => self.leave(id),
                    }
                }
                assert_eq!(count, len, "seed {seed}: a batch says how many it holds");
                assert!(around.padding.is_empty(), "seed {seed}: padding that is not issued");
            }
        }
    }

    fn leave(&mut self, id: u32) {
        assert!(self.waiting.remove(&id), "seed {}: {id} is chosen and does not wait", self.seed);
        self.left.push(self.pool[id].id);
        if self.told {
            self.scheduler.completed(id, 0, &self.pool);
        }
        self.pool.release(id);
    }
}

fn request(number: u64, op: Op, first: u32, count: u32) -> Request {
    let pages = Pages { first, pages: count, ..Pages::NONE };
    Request::new(number, 0, op, u64::from(first) * 4096, u64::from(count) * 4096, pages)
}

/// Surroundings without a page cache, above a device that merges nothing.
#[derive(Default)]
struct Quiet {
    padding: BTreeSet<u32>,
}

impl Around for Quiet {
    fn pages_of(&self, block: u32) -> Range<u32> {
        block * BLOCK..(block + 1) * BLOCK
    }

    fn query(&self, _first: u32, _pages: u32, set: &mut Vec<u32>) {
        set.clear();
    }

    fn join(&mut self, _block: u32, _pool: &mut Pool, _found: &mut Vec<u32>) {}

    fn now_ns(&self) -> u64 {
        0
    }

    fn pad(&mut self, op: Op, pages: Range<u32>, pool: &mut Pool) -> u32 {
        let id = pool.insert(request(0, op, pages.start, pages.end - pages.start));
        assert_ne!(id, NONE);
        self.padding.insert(id);
        id
    }
}
