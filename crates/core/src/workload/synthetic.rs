//! The generator of `[workload.synthetic]`.
//!
//! Every draw is one 64-bit number of xoshiro256++ and integer arithmetic, but for two
//! distributions: exponential gaps (`rand_distr`'s ziggurat) and zipf ranks. Those use floats, whose
//! four operations IEEE 754 fixes, and whose logarithms and powers come from the crate `libm`
//! (`rand_distr` without its `std_math`), never from the platform; so the requests of a seed are the
//! same on every machine. `golden` and the digests in the tests keep them. Nothing is allocated
//! after [`Generator::new`].

mod arrivals;
mod mix;

use super::{Op, Record, Scatter, Source, SourceError};
use crate::config::{Pattern, SizeMix, Synthetic};
use crate::util::{below, stream};
use arrivals::Arrivals;
use mix::Mix;
use rand::RngCore;
use rand_distr::{Distribution, Zipf};
use rand_xoshiro::Xoshiro256PlusPlus;

/// A million: a share of all in parts per million.
const ALL: u64 = 1_000_000;

/// Requests drawn at random: when (arrivals), which operation (mix), how large, where.
///
/// A request begins where the one before it ended (with the sequential share), or at an address of
/// the pattern, a multiple of the alignment within the region. What is left of the region after the
/// last place that holds the largest request is not drawn. The first request arrives at 0. The same
/// settings and seed give the same requests.
#[derive(Clone, Debug)]
pub struct Generator {
    rng: Xoshiro256PlusPlus,
    requests: u64,
    made: u64,
    arrivals: Arrivals,
    mix: Mix,
    op: Op,
    read_sizes: Sizes,
    write_sizes: Sizes,
    places: Places,
    time_ns: u64,
}

impl Generator {
    /// A generator for a device of `user_bytes`, with the random stream `workload` of `seed`.
    ///
    /// # Panics
    /// If a request does not fit in the region.
    pub fn new(synthetic: &Synthetic, user_bytes: u64, seed: u64) -> Generator {
        let mut rng = stream(seed, "workload");
        let places = Places::new(synthetic, user_bytes, &mut rng);
        let arrivals = Arrivals::new(synthetic);
        Generator {
            rng,
            requests: synthetic.requests,
            made: 0,
            mix: Mix::new(synthetic, arrivals.lengths()),
            arrivals,
            op: Op::Read,
            read_sizes: Sizes::new(&synthetic.read_sizes),
            write_sizes: Sizes::new(&synthetic.write_sizes),
            places,
            time_ns: 0,
        }
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
        if begins || !self.arrivals.single() {
            self.op = self.mix.draw(&mut self.rng);
        }
        self.mix.take(self.op);
        let sizes = if self.op == Op::Read { &self.read_sizes } else { &self.write_sizes };
        let size = sizes.draw(&mut self.rng);
        let offset = self.places.draw(size, &mut self.rng);
        self.made += 1;
        Ok(Some(Record { time_ns: self.time_ns, op: self.op, offset, size, line: self.made, flags: 0 }))
    }

    fn locate(&self, record: &Record) -> String {
        format!("generated request {}", record.line)
    }
}

/// A [`SizeMix`] to draw from.
#[derive(Clone, Debug)]
struct Sizes {
    /// Bytes, and the sum of the weights up to here.
    parts: Vec<(u64, u64)>,
    total: u64,
}

impl Sizes {
    fn new(mix: &SizeMix) -> Sizes {
        let mut total = 0;
        let parts = mix.parts().iter().map(|&(bytes, weight)| {
            total += u64::from(weight);
            (bytes, total)
        });
        Sizes { parts: parts.collect(), total }
    }

    #[inline]
    fn draw(&self, rng: &mut Xoshiro256PlusPlus) -> u64 {
        if let [(bytes, _)] = self.parts[..] {
            return bytes;
        }
        let at = below(rng.next_u64(), self.total);
        self.parts.iter().find(|part| at < part.1).expect("below the total").0
    }
}

/// Where requests go.
#[derive(Clone, Debug)]
struct Places {
    region: u64,
    align: u64,
    /// Aligned addresses at which the largest request fits in the region.
    slots: u64,
    sequential_ppm: u64,
    order: Order,
    /// Where the request before ended; `None` before the first.
    end: Option<u64>,
}

#[derive(Clone, Debug)]
enum Order {
    Random,
    Sequential,
    Zipf { ranks: Zipf<f64>, scatter: Scatter },
    HotCold { hot_slots: u64, share_ppm: u64 },
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
            Pattern::Zipf { theta } => Order::Zipf {
                ranks: Zipf::new(slots as f64, theta).expect("theta is a positive number"),
                scatter: Scatter::new(slots, rng),
            },
            Pattern::HotCold { share_ppm, region_ppm } => {
                let hot = u128::from(slots) * u128::from(region_ppm) / u128::from(ALL);
                Order::HotCold { hot_slots: (hot as u64).max(1), share_ppm }
            }
        };
        let sequential_ppm = match order {
            Order::Sequential => ALL,
            _ => synthetic.sequential_ppm,
        };
        Places { region, align, slots, sequential_ppm, order, end: None }
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
            _ => self.slot(rng) * self.align,
        };
        self.end = Some(offset + size);
        offset
    }

    #[inline]
    fn slot(&self, rng: &mut Xoshiro256PlusPlus) -> u64 {
        match &self.order {
            Order::Random => below(rng.next_u64(), self.slots),
            Order::Sequential => 0,
            Order::Zipf { ranks, scatter } => {
                let rank = ranks.sample(rng) as u64;
                // From 1 to slots, but floats are not trusted with the ends.
                scatter.place(rank.clamp(1, self.slots) - 1)
            }
            &Order::HotCold { hot_slots, share_ppm } => {
                let hot = below(rng.next_u64(), ALL) < share_ppm;
                let (first, slots) = if hot || hot_slots == self.slots {
                    (0, hot_slots)
                } else {
                    (hot_slots, self.slots - hot_slots)
                };
                first + below(rng.next_u64(), slots)
            }
        }
    }
}

#[cfg(test)]
#[path = "synthetic_tests.rs"]
mod tests;
