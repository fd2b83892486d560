//! MAP-ratio: hits and batches of both halves in one order; the one with the highest response ratio goes first.
//!
//! Source: ftlab's own, after MAP+ (Ji et al., TCAD 2018, section V-C) and "highest response ratio next" of Brinch
//! Hansen, "Operating System Principles", 1973, where a job's ratio is (wait + cost) / cost. The ratio of a batch of n
//! requests is (sum of their waits + n x cost) / cost: the time that its requests would spend waiting and being served
//! if the batch went now, per unit of device time. Without any wait the ratio is the number of requests; it grows at
//! the rate requests / cost.
//!
//! Interpretation: costs are as in `costed.rs`; at equal ratios, the batch with the oldest request goes first. There is
//! no deadline: a ratio grows without bound, and that of a new batch is at most the number of its requests, so that
//! nothing starves. A flush costs as much as the writes that wait when it is admitted, plus one read.

use super::batches::BATCHED;
use super::costed::{Costed, Job};
use super::{Around, Decision, Needs, Scheduler};
use crate::request::{Half, Pool};
use crate::util::{NONE, Race, Tournament};

pub(super) const NAME: &str = "map-ratio";
pub(super) const DOC: &str =
    "hits and batches in one order, highest response ratio first, no deadline (ftlab)";
pub type Keys = ();

/// A batch's ratio as a line over time: (requests x time - arrivals) / cost + requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Line {
    requests: u64,
    /// Sum of the requests' arrival times, ns, modulo 2^64: the waits, which are differences, fit into 64 bits.
    arrivals: u64,
    cost_ns: u64,
    oldest: u64,
}

impl Line {
    /// Returns the total time that the requests would spend waiting and being served if the batch went now, ns.
    #[inline]
    fn spent_ns(&self, now: u64) -> i64 {
        self.requests.wrapping_mul(now.wrapping_add(self.cost_ns)).wrapping_sub(self.arrivals) as i64
    }

    /// Returns by how much this batch's ratio is ahead of another's at time `now`, times both costs.
    #[inline]
    fn lead(&self, other: &Line, now: u64) -> i128 {
        product(self.spent_ns(now), other.cost_ns) - product(other.spent_ns(now), self.cost_ns)
    }

    /// Returns whether this batch is ahead of another at time `now`.
    fn leads(&self, other: &Line, now: u64) -> bool {
        let lead = self.lead(other, now);
        lead > 0 || lead == 0 && self.oldest < other.oldest
    }

    /// Returns whether this batch is ahead of another at time `now`, and until when that is certain not to change.
    #[inline]
    fn against(&self, other: &Line, now: u64) -> Race {
        if (self.requests, self.cost_ns) == (other.requests, other.cost_ns) {
            // Neither gains on the other.
            let lead = other.arrivals.wrapping_sub(self.arrivals) as i64;
            let first = lead > 0 || lead == 0 && self.oldest < other.oldest;
            return Race { first, until: u64::MAX };
        }
        let lead = self.lead(other, now);
        let gains =
            product(self.requests as i64, other.cost_ns) - product(other.requests as i64, self.cost_ns);
        let first = lead > 0 || lead == 0 && self.oldest < other.oldest;
        let (lead, loses) = if first { (lead, -gains) } else { (-lead, gains) };
        if loses <= 0 {
            return Race { first, until: u64::MAX };
        }
        // A time that is too early is safe, so an estimate is enough; it takes less time than a division. The factor is
        // below 1 by more than what rounding adds.
        let passes = float(lead) / float(loses) * (1.0 - 1e-9);
        Race { first, until: now.saturating_add((passes as u64).max(1)) }
    }
}

fn product(value: i64, ns: u64) -> i128 {
    i128::from(value) * i128::from(ns as i64)
}

/// Returns a number that is not negative as floating point, at most a part in 2^31 too small.
#[inline]
fn float(value: i128) -> f64 {
    // The conversion of 128 bits is a function, that of 64 bits one instruction.
    match (i64::try_from(value), i64::try_from(value >> 32)) {
        (Ok(small), _) => small as f64,
        (_, Ok(high)) => high as f64 * 4_294_967_296.0,
        _ => value as f64,
    }
}

#[derive(Clone, Debug)]
pub(super) struct MapRatio {
    jobs: Costed,
    /// The line of each batch, by slot.
    lines: Vec<Line>,
    /// The order of each half: ratios within a half, whose costs are similar, seldom overtake each other.
    orders: [Tournament; 2],
    /// The batch that left last, if it is still in its order: usually the next new batch takes its place there.
    left: Option<(Half, u32)>,
    /// Time of the last choice, ns; the time of an admission is not known.
    chosen_ns: u64,
}

fn race(lines: &[Line]) -> impl Fn(u32, u32, u64) -> Race {
    |left, right, now| lines[left as usize].against(&lines[right as usize], now)
}

impl MapRatio {
    /// Notes that a batch is new or has changed. `arrival_ns` is the arrival of the request that joined it, or 0.
    fn enter(&mut self, slot: u32, arrival_ns: u64, new: bool, half: Half, pool: &Pool) {
        let Job { requests, cost_ns, oldest, .. } = self.jobs.job(slot, pool);
        let at = slot as usize;
        if self.lines.len() <= at {
            self.lines.resize(at + 1, Line { requests: 0, arrivals: 0, cost_ns: 1, oldest: 0 });
        }
        match self.left {
            Some(left) if left == (half, slot) => self.left = None,
            Some((_, other)) if other == slot => self.settle(),
            _ => (),
        }
        let before = if new { 0 } else { self.lines[at].arrivals };
        let cost_ns = if requests == 0 { self.jobs.flush_ns() } else { cost_ns };
        self.lines[at] =
            Line { requests: requests.max(1), arrivals: before.wrapping_add(arrival_ns), cost_ns, oldest };
        self.play(slot, true, half);
    }

    /// Removes from its order the batch that left last, if it is still there.
    fn settle(&mut self) {
        if let Some((half, slot)) = self.left.take() {
            self.play(slot, false, half);
        }
    }

    fn play(&mut self, slot: u32, present: bool, half: Half) {
        let MapRatio { lines, orders, chosen_ns, .. } = self;
        orders[half as usize].set(slot, present, *chosen_ns, &race(lines));
    }

    /// Returns the half and the slot of the batch with the highest ratio, if any batch waits.
    fn leader(&mut self) -> Option<(Half, u32)> {
        self.settle();
        let MapRatio { lines, orders, chosen_ns, .. } = self;
        let [read, write] = orders.each_mut().map(|order| order.leader(*chosen_ns, &race(lines)));
        match (read, write) {
            (NONE, NONE) => None,
            (NONE, write) => Some((Half::Write, write)),
            (read, NONE) => Some((Half::Read, read)),
            (read, write) if lines[read as usize].leads(&lines[write as usize], *chosen_ns) => {
                Some((Half::Read, read))
            }
            (_, write) => Some((Half::Write, write)),
        }
    }
}

impl Scheduler for MapRatio {
    const NEEDS: Needs = Needs { hits: true, deadline: false, batches: false, ..BATCHED };

    fn new(keys: &super::Keys, _block_pages: u32) -> MapRatio {
        MapRatio {
            jobs: Costed::new(keys.times),
            lines: Vec::with_capacity(128),
            orders: Default::default(),
            left: None,
            chosen_ns: 0,
        }
    }

    fn admit(&mut self, id: u32, pool: &mut Pool) {
        let (slot, new) = self.jobs.admit(id, pool);
        self.enter(slot, pool[id].arrival_ns, new, pool[id].half(), pool);
    }

    fn grown(&mut self, id: u32, before: u32, pool: &mut Pool) {
        let slot = self.jobs.grown(id, before, pool);
        self.enter(slot, 0, false, pool[id].half(), pool);
    }

    fn choose(&mut self, pool: &mut Pool, around: &mut dyn Around) -> Decision {
        self.chosen_ns = around.now_ns();
        self.left = self.leader();
        match self.left {
            Some((_, slot)) => self.jobs.take(slot, pool),
            None => Decision::Nothing,
        }
    }

    fn batches(&self) -> u64 {
        self.jobs.created()
    }

    fn verify(&self, pool: &Pool) -> Result<u32, String> {
        let mut best = None;
        let requests = self.jobs.verify(pool, |slot| {
            let line = &self.lines[slot as usize];
            let job = self.jobs.job(slot, pool);
            if (line.oldest, line.requests) != (job.oldest, job.requests.max(1)) {
                return Err(format!("the ratio of the batch of request {} is not up to date", line.oldest));
            }
            let leads = best.is_none_or(|other: u32| line.leads(&self.lines[other as usize], self.chosen_ns));
            best = if leads { Some(slot) } else { best };
            Ok(())
        })?;
        let leader = self.clone().leader().map(|(_, slot)| slot);
        if leader != best {
            return Err(format!("{leader:?} is taken for the highest ratio, which is that of {best:?}"));
        }
        Ok(requests)
    }
}
