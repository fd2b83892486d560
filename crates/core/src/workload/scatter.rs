//! A bijection that scatters its values.

use rand::RngCore;
use rand_xoshiro::Xoshiro256PlusPlus;

/// A bijection of `0..slots`, so that the ranks of a zipf distribution are spread over the region.
///
/// Rounds of multiplication and shift permute the numbers below the next power of two; a value that is not below
/// `slots` is permuted again until it is (less than twice on average).
#[derive(Clone, Debug)]
pub struct Scatter {
    slots: u64,
    mask: u64,
    shift: u32,
    keys: [(u64, u64); 3],
}

impl Scatter {
    /// Draws a bijection of `0..slots` from `rng`.
    pub fn new(slots: u64, rng: &mut Xoshiro256PlusPlus) -> Scatter {
        let bits = 64 - (slots - 1).max(1).leading_zeros();
        let mask = u64::MAX >> (64 - bits);
        let keys = std::array::from_fn(|_| (rng.next_u64() | 1, rng.next_u64()));
        Scatter { slots, mask, shift: bits.div_ceil(2), keys }
    }

    /// Returns the value to which `rank` is mapped.
    #[inline]
    pub fn place(&self, rank: u64) -> u64 {
        let mut at = rank;
        loop {
            for (factor, offset) in self.keys {
                at = at.wrapping_mul(factor).wrapping_add(offset) & self.mask;
                at ^= at >> self.shift;
            }
            if at < self.slots {
                return at;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::util::stream;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn scatter_is_a_bijection(slots in 1u64..3000, seed in any::<u64>()) {
            let scatter = Scatter::new(slots, &mut stream(seed, "test"));
            let mut seen = vec![false; slots as usize];
            for rank in 0..slots {
                let at = scatter.place(rank) as usize;
                prop_assert!(!seen[at]);
                seen[at] = true;
            }
        }
    }
}
