//! When requests arrive.

use crate::ALL;
use ftlab_core::settings::{Arrival, BurstOps, Synthetic};
use ftlab_core::util::below;
use ftlab_core::workload::Op;
use rand::RngCore;
use rand_distr::{Distribution, Exp1};
use rand_xoshiro::Xoshiro256PlusPlus;

/// The arrival process.
#[derive(Clone, Debug)]
pub(super) struct ArrivalProcess {
    process: Arrival,
    /// Whether all requests of a burst have the same operation.
    single: bool,
    /// Mean number of requests in a burst of reads, and in a burst of all other operations.
    lengths: [f64; 2],
    interarrival_ns: u64,
    burst_gap_ns: u64,
    pause_ppm: u64,
    pause_ns: u64,
    isolated_ppm: u64,
    /// Whether the current burst is a single request.
    isolated: bool,
    /// A burst of this operation (0: reads, 1: all others) ends after a request if a draw of 64 bits is at
    /// most this number.
    ends: [u64; 2],
    /// The fraction of a nanosecond by which time still has to advance, so that rounding does not change the mean.
    rest_ns: f64,
}

impl ArrivalProcess {
    pub fn new(synthetic: &Synthetic) -> ArrivalProcess {
        let bursts = synthetic.arrival == Arrival::Bursts;
        let single = bursts && synthetic.burst_ops == BurstOps::Single;
        let length = synthetic.burst_length;
        let several = [if single { synthetic.read_burst_length } else { length }, length];
        let isolated = synthetic.isolated_ppm as f64 / ALL as f64;
        ArrivalProcess {
            process: synthetic.arrival,
            single,
            lengths: several.map(|length| length + isolated * (1.0 - length)),
            interarrival_ns: synthetic.interarrival_ns,
            burst_gap_ns: synthetic.burst_gap_ns,
            pause_ppm: synthetic.pause_ppm,
            pause_ns: synthetic.pause_ns,
            isolated_ppm: synthetic.isolated_ppm,
            isolated: false,
            ends: if bursts { several.map(threshold) } else { [u64::MAX; 2] },
            rest_ns: 0.0,
        }
    }

    /// Returns whether all requests of a burst have the same operation.
    #[inline]
    pub fn single(&self) -> bool {
        self.single
    }

    /// Returns the mean number of requests between draws of an operation, for reads and for all others.
    pub fn lengths(&self) -> [f64; 2] {
        if self.single { self.lengths } else { [1.0; 2] }
    }

    /// Advances `time_ns` from a request of `op` to the next request; returns whether the next request begins a burst.
    #[inline]
    pub fn pass(&mut self, op: Op, can_go_on: bool, time_ns: &mut u64, rng: &mut Xoshiro256PlusPlus) -> bool {
        let mut begins = true;
        let mean_ns = match self.process {
            Arrival::Constant => {
                *time_ns = time_ns.saturating_add(self.interarrival_ns);
                return true;
            }
            Arrival::Exponential => self.interarrival_ns,
            Arrival::Bursts => {
                let end = self.isolated || rng.next_u64() <= self.ends[usize::from(op != Op::Read)];
                begins = end || !can_go_on;
                if begins {
                    self.isolated = self.isolated_ppm > 0 && below(rng.next_u64(), ALL) < self.isolated_ppm;
                }
                match begins {
                    false => self.interarrival_ns,
                    // Without pauses, no number is drawn.
                    true if self.pause_ppm > 0 && below(rng.next_u64(), ALL) < self.pause_ppm => {
                        self.pause_ns
                    }
                    true => self.burst_gap_ns,
                }
            }
        };
        if mean_ns > 0 {
            let gap: f64 = Exp1.sample(rng);
            let gap_ns = gap * mean_ns as f64 + self.rest_ns;
            *time_ns = time_ns.saturating_add(gap_ns as u64);
            self.rest_ns = gap_ns.fract();
        }
        begins
    }
}

/// Returns the bound that 64 random bits stay at or below with a probability of 1 / `length`.
fn threshold(length: f64) -> u64 {
    // The conversion saturates at a length of 1.
    (18_446_744_073_709_551_616.0 / length) as u64
}
