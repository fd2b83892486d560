//! The generator of `[workload.synthetic]`.
//!
//! Every draw uses one 64-bit number of xoshiro256++ and integer arithmetic, except in two distributions: exponential
//! gaps (`rand_distr`'s ziggurat) and zipf ranks. Those use floats, whose four basic operations IEEE 754 fixes, and
//! whose logarithms and powers come from the crate `libm` (`rand_distr` without its `std_math`), never from the
//! platform; so the requests of a seed are the same on every machine. `golden` and the digests in the tests guard
//! this. Nothing is allocated after [`Generator::new`].

mod arrivals;
mod mix;
mod sizes;

use arrivals::ArrivalProcess;
use ftlab_core::settings::{Pattern, Synthetic};
use ftlab_core::util::{below, stream};
use ftlab_core::workload::{Op, Record, Scatter, Source, SourceError};
use mix::Mix;
use rand::RngCore;
use rand_distr::{Distribution, Zipf};
use rand_xoshiro::Xoshiro256PlusPlus;
use sizes::SizeProcess;

/// One million: shares are in parts per million.
const ALL: u64 = 1_000_000;

/// Number of recent requests that are remembered: the near share of new requests begins in or after their ranges.
const REMEMBERED: usize = 8;

/// Draws requests: when they arrive, which operation they are, how large they are, and where they go.
///
/// A request begins where the one before it ended (with the sequential share), or in the range of one of the
/// [`REMEMBERED`] requests before it (with the near share: at a uniformly drawn place, or where a run of them ended),
/// or at an address of the pattern, a multiple of the alignment within the region. Addresses at the end of the region,
/// where the largest request does not fit, are not drawn. The first request arrives at 0. The same settings and seed
/// give the same requests.
#[derive(Clone, Debug)]
pub struct Generator {
    rng: Xoshiro256PlusPlus,
    requests: u64,
    made: u64,
    arrivals: ArrivalProcess,
    mix: Mix,
    op: Op,
    op_correlation_ppm: u64,
    /// Sizes of reads, and of all other requests.
    sizes: [SizeProcess; 2],
    places: Places,
    time_ns: u64,
}

impl Generator {
    /// Makes a generator for a device of `user_bytes`, with the random stream `workload` of `seed`.
    ///
    /// # Panics
    /// If a request does not fit in the region.
    pub fn new(synthetic: &Synthetic, user_bytes: u64, seed: u64) -> Generator {
        let mut rng = stream(seed, "workload");
        let places = Places::new(synthetic, user_bytes, &mut rng);
        let arrivals = ArrivalProcess::new(synthetic);
        Generator {
            rng,
            requests: synthetic.requests,
            made: 0,
            mix: Mix::new(synthetic, arrivals.lengths()),
            arrivals,
            op: Op::Read,
            op_correlation_ppm: synthetic.op_correlation_ppm,
            sizes: [&synthetic.read_sizes, &synthetic.write_sizes]
                .map(|mix| SizeProcess::new(mix, synthetic)),
            places,
            time_ns: 0,
        }
    }
}

impl Generator {
    /// Draws whether the request has the same operation as the one before it in its burst.
    #[inline]
    fn keeps_operation(&mut self) -> bool {
        // Without correlation, no number is drawn.
        self.op_correlation_ppm > 0
            && below(self.rng.next_u64(), ALL) < self.op_correlation_ppm
            && self.mix.has(self.op)
    }
}

impl Source for Generator {
    #[inline]
    fn next(&mut self) -> Result<Option<Record>, SourceError> {
        if self.made == self.requests {
            return Ok(None);
        }
        let mut begins = true;
        if self.made > 0 {
            // A burst of one operation ends early when its share of the requests has been drawn.
            let can_go_on = !self.arrivals.single() || self.mix.has(self.op);
            begins = self.arrivals.pass(self.op, can_go_on, &mut self.time_ns, &mut self.rng);
        }
        if begins || !(self.arrivals.single() || self.keeps_operation()) {
            self.op = self.mix.draw(&mut self.rng);
        }
        self.mix.take(self.op);
        if begins {
            self.sizes.iter_mut().for_each(SizeProcess::begin_burst);
        }
        let size = self.sizes[usize::from(self.op != Op::Read)].draw(&mut self.rng);
        let offset = self.places.draw(size, &mut self.rng);
        self.made += 1;
        Ok(Some(Record {
            time_ns: self.time_ns,
            op: self.op,
            offset,
            size,
            line: self.made,
            ..Record::FLUSH
        }))
    }

    fn locate(&self, record: &Record) -> String {
        format!("generated request {}", record.line)
    }
}

/// Where requests go.
#[derive(Clone, Debug)]
struct Places {
    region: u64,
    align: u64,
    /// Number of aligned addresses at which the largest request fits in the region.
    slots: u64,
    sequential_ppm: u64,
    near_ppm: u64,
    near_range: u64,
    near_sequential_ppm: u64,
    /// Where recent requests began and ended; number `drawn % REMEMBERED` is the oldest.
    recent: [(u64, u64); REMEMBERED],
    drawn: usize,
    order: Order,
    /// Where the previous request ended; `None` before the first.
    end: Option<u64>,
}

#[derive(Clone, Debug)]
enum Order {
    Random,
    Sequential,
    Zipf { ranks: Zipf<f64>, scatter: Scatter },
    HotCold { parts: HotCold, share_ppm: u64 },
}

/// Slots in pieces that each begin with hot slots; what is left after the last whole piece is cold.
#[derive(Clone, Copy, Debug)]
struct HotCold {
    pieces: u64,
    /// Number of slots in a piece, and how many of them are hot.
    slots: u64,
    hot: u64,
    all_slots: u64,
}

impl HotCold {
    fn new(all_slots: u64, piece_slots: Option<u64>, region_ppm: u64) -> HotCold {
        let slots = piece_slots.unwrap_or(all_slots).clamp(1, all_slots);
        let hot = (u128::from(slots) * u128::from(region_ppm) / u128::from(ALL)) as u64;
        HotCold { pieces: all_slots / slots, slots, hot: hot.max(1), all_slots }
    }

    #[inline]
    fn draw(&self, hot: bool, rng: &mut Xoshiro256PlusPlus) -> u64 {
        let hot_slots = self.pieces * self.hot;
        if hot || hot_slots == self.all_slots {
            let at = below(rng.next_u64(), hot_slots);
            return at / self.hot * self.slots + at % self.hot;
        }
        let at = below(rng.next_u64(), self.all_slots - hot_slots);
        let cold = self.slots - self.hot;
        if at < self.pieces * cold {
            at / cold * self.slots + self.hot + at % cold
        } else {
            // The slot is after the last whole piece.
            hot_slots + at
        }
    }
}

impl Places {
    fn new(synthetic: &Synthetic, user_bytes: u64, rng: &mut Xoshiro256PlusPlus) -> Places {
        let region = synthetic.region.unwrap_or(user_bytes);
        let (largest, align) = (synthetic.size_range().1, synthetic.align_bytes());
        assert!(largest <= region, "a request of {largest} B does not fit in the region");
        let slots = (region - largest) / align + 1;
        let order = match synthetic.pattern {
            Pattern::Random => Order::Random,
            Pattern::Sequential => Order::Sequential,
            Pattern::Zipf => Order::Zipf {
                ranks: Zipf::new(slots as f64, synthetic.zipf_theta).expect("theta is a positive number"),
                scatter: Scatter::new(slots, rng),
            },
            Pattern::HotCold => {
                let piece_slots = synthetic.hot_piece.map(|bytes| bytes / align);
                let parts = HotCold::new(slots, piece_slots, synthetic.hot_region_ppm);
                Order::HotCold { parts, share_ppm: synthetic.hot_share_ppm }
            }
        };
        let sequential_ppm = match order {
            Order::Sequential => ALL,
            _ => synthetic.sequential_ppm,
        };
        Places {
            region,
            align,
            slots,
            sequential_ppm,
            near_ppm: synthetic.near_ppm,
            near_range: synthetic.near_range,
            near_sequential_ppm: synthetic.near_sequential_ppm,
            recent: [(0, 0); REMEMBERED],
            drawn: 0,
            order,
            end: None,
        }
    }

    #[inline]
    fn draw(&mut self, size: u64, rng: &mut Xoshiro256PlusPlus) -> u64 {
        let follows = match self.sequential_ppm {
            0 => false,
            ALL => true,
            share => below(rng.next_u64(), ALL) < share,
        };
        let offset = match self.end {
            Some(end) if follows && end + size <= self.region => end,
            _ => self.near(size, rng).unwrap_or_else(|| self.slot(rng) * self.align),
        };
        if self.near_ppm > 0 {
            self.recent[self.drawn % REMEMBERED] = (offset, offset + size);
            self.drawn += 1;
        }
        self.end = Some(offset + size);
        offset
    }

    /// Returns, with the probability of the near share, an address near a recent request; otherwise, or if the request
    /// cannot begin there, returns `None`.
    #[inline]
    fn near(&self, size: u64, rng: &mut Xoshiro256PlusPlus) -> Option<u64> {
        let known = self.drawn.min(REMEMBERED);
        if known == 0 || below(rng.next_u64(), ALL) >= self.near_ppm {
            return None;
        }
        let (begin, end) = self.recent[below(rng.next_u64(), known as u64) as usize];
        if self.near_sequential_ppm > 0 && below(rng.next_u64(), ALL) < self.near_sequential_ppm {
            let end = self.end_of_run(end);
            return (end + size <= self.region).then_some(end);
        }
        let start = begin / self.near_range * self.near_range;
        let first = start.div_ceil(self.align);
        let last = ((start + self.near_range - 1) / self.align).min(self.slots - 1);
        (first <= last).then(|| (first + below(rng.next_u64(), last - first + 1)) * self.align)
    }

    /// Returns the end of the run of remembered requests that continues at `end`.
    fn end_of_run(&self, mut end: u64) -> u64 {
        // At most one step for each request, since runs do not turn back.
        for _ in 0..REMEMBERED {
            match self.recent.iter().find(|next| next.0 == end && next.1 > end) {
                Some(next) => end = next.1,
                None => break,
            }
        }
        end
    }

    #[inline]
    fn slot(&self, rng: &mut Xoshiro256PlusPlus) -> u64 {
        match &self.order {
            Order::Random => below(rng.next_u64(), self.slots),
            Order::Sequential => 0,
            Order::Zipf { ranks, scatter } => {
                let rank = ranks.sample(rng) as u64;
                // Ranks run from 1 to the number of slots; the clamp guards against rounding at both ends.
                scatter.place(rank.clamp(1, self.slots) - 1)
            }
            Order::HotCold { parts, share_ppm } => {
                let hot = below(rng.next_u64(), ALL) < *share_ppm;
                parts.draw(hot, rng)
            }
        }
    }
}

#[cfg(test)]
mod burst_tests;
#[cfg(test)]
mod tests;
