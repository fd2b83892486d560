//! Kyber: a queue for each kind of request, and a limit on how many of each kind are in the device, which follows the
//! latencies.
//!
//! Source: Documentation/block/kyber-iosched.rst and block/kyber-iosched.c of Linux 6 (read in the form of 6.17, whose
//! rules are those of every version since 4.20). The domains read, write, discard and other take turns, in batches of
//! at most 16, 8, 1 and 1 requests. A request needs one of its domain's tokens (at most 256, 128, 64 and 16) from its
//! dispatch until it completes. Latencies are counted in quarters of their target ([`Histogram`]). 100 ms after a
//! completion that finds no timer set, the depths are adjusted: the device is congested if the 90th percentile of any
//! domain's latency in the device is above the target. A congested device shrinks the domains whose 99th percentile of
//! the whole latency is below their target, in proportion, and domains above theirs always grow in proportion.
//!
//! A percentile is taken of at least 500 latencies, or of fewer once a second has passed since the first was seen. Both
//! percentiles of a domain share the mark of that second, and the one that is taken first, of the latency in the
//! device, clears it; so under a light load the other one waits for 500 latencies. That is the source's own behaviour.
//!
//! Interpretation: tokens have no numbers, so after a cut of the depth no token is given until fewer are out than the
//! new depth (in Linux that depends on which numbers are out). The whole latency counts from the arrival, also while
//! the pending queue is full. Timers are exact to the nanosecond instead of the tick. A flush belongs to the domain
//! other, as the source classifies it, although Linux leads most flushes past its schedulers. All requests come from
//! one CPU. The limit on asynchronous requests (`async_depth`) is left out: requests do not say whether they are
//! asynchronous.

use super::{Around, Decision, Needs, Scheduler};
use crate::clock::NEVER;
use crate::config::section;
use crate::config::section::ANY_TIME;
use crate::request::{Pool, Queue, Request};
use crate::util::Stat;
use crate::workload::Op;

pub(super) const NAME: &str = "kyber";
pub(super) const DOC: &str = "limits reads and writes in the device by latency targets (Linux 6)";

section! {
    /// Its own keys.
    #[derive(Clone, Debug, PartialEq)]
    pub struct Keys {
        /// kyber: latency target of reads.
        read_lat_ns: u64 = "host.read_lat_nsec", ANY_TIME, "2ms";
        /// kyber: latency target of writes.
        write_lat_ns: u64 = "host.write_lat_nsec", ANY_TIME, "10ms";
    }
}

/// Names of the domains.
const NAMES: [&str; 4] = ["read", "write", "discard", "other"];
/// Most tokens of each domain.
const DEPTHS: [u32; 4] = [256, 128, 64, 16];
/// Most requests of each domain in a row.
const BATCHES: [u32; 4] = [16, 8, 1, 1];
/// Latency target of discards, ns, which has no key.
const DISCARD_LAT_NS: u64 = 5_000_000_000;
/// Number of domains with a latency target.
const TIMED: usize = 3;
/// Number of buckets up to the target.
const GOOD: usize = 4;
/// Number of latencies of which a percentile is taken at once.
const SAMPLES: u64 = 500;
/// After this time a percentile is taken of fewer latencies, ns.
const SECOND_NS: u64 = 1_000_000_000;
/// Time from a completion to the adjustment of depths, ns.
const WINDOW_NS: u64 = 100_000_000;

/// Latencies, counted by quarters of their target; the last bucket holds all above 1 3/4 of the target.
#[derive(Clone, Copy, Debug, Default)]
struct Histogram([u64; 2 * GOOD]);

impl Histogram {
    fn add(&mut self, latency_ns: u64, target_ns: u64) {
        let quarter_ns = (target_ns / GOOD as u64).max(1);
        let bucket = latency_ns.saturating_sub(1) / quarter_ns;
        self.0[bucket.min(2 * GOOD as u64 - 1) as usize] += 1;
    }
}

/// The requests of one kind.
#[derive(Clone, Debug, Default)]
struct Domain {
    queue: Queue,
    /// Number of tokens, and how many of them are out.
    depth: u32,
    out: u32,
    /// Latencies in the device, and those from arrival on.
    device: Histogram,
    whole: Histogram,
    target_ns: u64,
    /// When a percentile is taken of fewer latencies than [`SAMPLES`], if that is set.
    due_ns: Option<u64>,
    /// Bucket of the 99th percentile, kept for the next congestion.
    p99: Option<usize>,
    /// Smallest depth so far.
    least: u32,
}

impl Domain {
    /// Returns the bucket of a percentile and empties the histogram; `None` if there are too few latencies yet.
    fn percentile(
        &mut self,
        of: fn(&mut Domain) -> &mut Histogram,
        percent: u64,
        now_ns: u64,
    ) -> Option<usize> {
        let samples: u64 = of(self).0.iter().sum();
        if samples == 0 {
            return None;
        }
        let due_ns = *self.due_ns.get_or_insert(now_ns + SECOND_NS);
        if samples < SAMPLES && now_ns < due_ns {
            return None;
        }
        self.due_ns = None;
        let mut left = (samples * percent).div_ceil(100);
        let buckets = std::mem::take(of(self)).0;
        for (bucket, &count) in buckets[..2 * GOOD - 1].iter().enumerate() {
            if count >= left {
                return Some(bucket);
            }
            left -= count;
        }
        Some(2 * GOOD - 1)
    }

    /// Scales the depth by the bucket of a percentile.
    fn scale(&mut self, bucket: usize, most: u32) {
        self.depth = (self.depth * (bucket as u32 + 1) / GOOD as u32).clamp(1, most);
        self.least = self.least.min(self.depth);
    }
}

#[derive(Clone, Debug)]
pub(super) struct Kyber {
    /// Apart, since all schedulers would take their room.
    domains: Box<[Domain; 4]>,
    current: usize,
    /// Number of requests that the current domain has dispatched in a row.
    batching: u32,
    /// When depths are adjusted next, ns; [`NEVER`] if nothing has completed since the last time.
    timer_ns: u64,
}

/// Returns the domain of a request.
fn domain(request: &Request) -> usize {
    match request.op {
        Op::Read => 0,
        Op::Write => 1,
        Op::Trim => 2,
        Op::Flush => 3,
    }
}

impl Kyber {
    /// Adjusts the depths if the timer has expired by now. Depths matter only at a choice, so it is enough to look then
    /// and at completions, which change the histograms.
    fn look_at_timer(&mut self, now_ns: u64) {
        if now_ns >= self.timer_ns {
            let at_ns = std::mem::replace(&mut self.timer_ns, NEVER);
            self.adjust(at_ns);
        }
    }

    fn adjust(&mut self, now_ns: u64) {
        let mut congested = false;
        for domain in &mut self.domains[..TIMED] {
            let p90 = domain.percentile(|domain| &mut domain.device, 90, now_ns);
            congested |= p90.is_some_and(|bucket| bucket >= GOOD);
        }
        for (domain, most) in self.domains[..TIMED].iter_mut().zip(DEPTHS) {
            let mut p99 = domain.percentile(|domain| &mut domain.whole, 99, now_ns);
            if congested {
                p99 = p99.or(domain.p99.take());
                domain.p99 = None;
            } else if p99.is_some() {
                domain.p99 = p99;
            }
            if let Some(bucket) = p99.filter(|&bucket| congested || bucket >= GOOD) {
                domain.scale(bucket, most);
            }
        }
    }

    /// Takes the oldest request of the current domain, if there are both a request and a token.
    fn take(&mut self, pool: &mut Pool) -> Option<u32> {
        let domain = &mut self.domains[self.current];
        if domain.out >= domain.depth {
            return None;
        }
        let id = domain.queue.pop(pool)?;
        domain.out += 1;
        self.batching += 1;
        Some(id)
    }
}

impl Scheduler for Kyber {
    const NEEDS: Needs = Needs { completions: true, ..Needs::NOTHING };

    fn new(keys: &super::Keys, _block_pages: u32) -> Kyber {
        let keys = &keys.own.kyber;
        let targets = [keys.read_lat_ns, keys.write_lat_ns, DISCARD_LAT_NS, NEVER];
        let domain = |at: usize| Domain {
            depth: DEPTHS[at],
            least: DEPTHS[at],
            target_ns: targets[at],
            ..Domain::default()
        };
        Kyber { domains: Box::new([0, 1, 2, 3].map(domain)), current: 0, batching: 0, timer_ns: NEVER }
    }

    fn admit(&mut self, id: u32, pool: &mut Pool) {
        self.domains[domain(&pool[id])].queue.push(id, pool);
    }

    fn choose(&mut self, pool: &mut Pool, around: &mut dyn Around) -> Decision {
        self.look_at_timer(around.now_ns());
        if self.batching < BATCHES[self.current]
            && let Some(id) = self.take(pool)
        {
            return Decision::One(id);
        }
        self.batching = 0;
        for _ in 0..self.domains.len() {
            self.current = (self.current + 1) % self.domains.len();
            if let Some(id) = self.take(pool) {
                return Decision::One(id);
            }
        }
        Decision::Nothing
    }

    fn completed(&mut self, id: u32, now_ns: u64, pool: &Pool) {
        self.look_at_timer(now_ns);
        let request = &pool[id];
        let at = domain(request);
        let domain = &mut self.domains[at];
        domain.out -= 1;
        if at < TIMED {
            domain.whole.add(now_ns - request.arrival_ns, domain.target_ns);
            domain.device.add(now_ns - request.dispatch_ns, domain.target_ns);
            self.timer_ns = self.timer_ns.min(now_ns + WINDOW_NS);
        }
    }

    /// Returns the depths at the end, and the smallest ones so far.
    fn stats(&self) -> Vec<Stat> {
        let figures = [
            ["read_depth", "least_read_depth"],
            ["write_depth", "least_write_depth"],
            ["discard_depth", "least_discard_depth"],
        ];
        let domains = self.domains.iter().zip(figures);
        domains
            .flat_map(|(domain, [now, least])| {
                [
                    Stat::new(now, f64::from(domain.depth), "requests", "limit of the domain at the end"),
                    Stat::new(least, f64::from(domain.least), "requests", "smallest limit of the domain"),
                ]
            })
            .collect()
    }

    fn verify(&self, pool: &Pool) -> Result<u32, String> {
        let mut waiting = 0;
        for (at, held) in self.domains.iter().enumerate() {
            waiting += held.queue.verify(pool, |request| domain(request) == at)?;
            // A depth may have been cut while more tokens were out.
            if held.depth == 0 || held.out > DEPTHS[at] {
                return Err(format!("{}: {} of {} tokens are out", NAMES[at], held.out, held.depth));
            }
        }
        Ok(waiting)
    }
}
