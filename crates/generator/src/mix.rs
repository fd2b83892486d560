//! Which operation comes next.

use ftlab_core::settings::Synthetic;
use ftlab_core::util::below;
use ftlab_core::workload::Op;
use rand::RngCore;
use rand_xoshiro::Xoshiro256PlusPlus;

const OPS: [Op; 3] = [Op::Read, Op::Trim, Op::Write];

/// Draws operations according to their shares: of all requests, or of the requests left (drawn without replacement, so
/// that each operation ends up with exactly its number).
#[derive(Clone, Debug)]
pub(super) struct Mix {
    /// Parts per million, or requests left, in the order of [`OPS`].
    left: [u64; 3],
    exact: bool,
    /// Mean number of requests that one draw decides, for reads and for all others.
    lengths: [f64; 2],
}

impl Mix {
    pub fn new(synthetic: &Synthetic, lengths: [f64; 2]) -> Mix {
        let (read, trim) = (synthetic.read_ppm, synthetic.trim_ppm);
        let count = |ppm: u64| {
            if !synthetic.exact_mix {
                return ppm;
            }
            // The sums are rounded, so that the parts add up exactly.
            ((u128::from(synthetic.requests) * u128::from(ppm) + 500_000) / 1_000_000) as u64
        };
        let (reads, not_written) = (count(read), count(read + trim));
        let left = [reads, not_written - reads, count(1_000_000) - not_written];
        Mix { left, exact: synthetic.exact_mix, lengths }
    }

    /// Whether there is another request of `op`.
    #[inline]
    pub fn has(&self, op: Op) -> bool {
        self.left[place(op)] > 0
    }

    /// Returns the operation of the next request, or of the next burst.
    #[inline]
    pub fn draw(&self, rng: &mut Xoshiro256PlusPlus) -> Op {
        let [reads, trims, writes] = if self.lengths == [1.0; 2] { self.left } else { self.bursts() };
        let draw = below(rng.next_u64(), reads + trims + writes);
        if draw < reads {
            Op::Read
        } else if draw < reads + trims {
            Op::Trim
        } else {
            Op::Write
        }
    }

    /// Returns the weights in bursts instead of requests: an operation with long bursts begins fewer bursts.
    fn bursts(&self) -> [u64; 3] {
        let weight = |op: usize| {
            let bursts = self.left[op] as f64 / self.lengths[usize::from(op > 0)];
            // A burst counts as 2^20, so that fractions of bursts matter; an operation that has requests left always
            // has a chance.
            ((bursts * f64::from(1 << 20)) as u64).max(u64::from(self.left[op] > 0))
        };
        [weight(0), weight(1), weight(2)]
    }

    /// Notes that a request of `op` has been made.
    #[inline]
    pub fn take(&mut self, op: Op) {
        if self.exact {
            self.left[place(op)] -= 1;
        }
    }
}

fn place(op: Op) -> usize {
    OPS.iter().position(|known| *known == op).expect("no flushes are generated")
}
