//! Random numbers: one seeded stream per component, and whole numbers drawn from it.

use rand::SeedableRng;
use rand_xoshiro::Xoshiro256PlusPlus;

/// Returns the random stream of one component, independent of the others with the same seed.
pub fn stream(seed: u64, name: &str) -> Xoshiro256PlusPlus {
    // FNV-1a; the generator's own seeding (SplitMix64) does the mixing.
    let hash = name.bytes().fold(0xcbf2_9ce4_8422_2325u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
    });
    Xoshiro256PlusPlus::seed_from_u64(seed ^ hash)
}

/// Returns a number below `bound` from 64 random bits (Lemire's multiplication; its bias, at most `bound` /
/// 2^64, is accepted).
#[inline]
pub fn below(bits: u64, bound: u64) -> u64 {
    ((u128::from(bits) * u128::from(bound)) >> 64) as u64
}
