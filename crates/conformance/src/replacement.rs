//! What every replacement policy of a mapping cache must guarantee.

use std::collections::BTreeSet;

use ftlab_core::ftl::map::dftl::Replacement;
use ftlab_core::util::stream;
use rand::Rng;

/// Number of entries that the cache has.
const ENTRIES: usize = 16;

/// Tests a replacement policy from another crate, which `make` makes for a number of entries: every entry that it
/// evicts is in the cache, and a copy of the policy goes on in the same way.
///
/// # Panics
/// If the policy breaks a promise of [`Replacement`].
pub fn replacement_of(make: impl Fn(Option<u32>) -> Box<dyn Replacement>) {
    for seed in 0..100 {
        let mut rng = stream(seed, "replacement");
        let mut both = [make(Some(ENTRIES as u32)), make(Some(ENTRIES as u32))];
        let mut held = BTreeSet::new();
        for step in 0..1000 {
            let lpn = rng.random_range(0..40);
            if held.contains(&lpn) {
                both.iter_mut().for_each(|each| each.hit(lpn));
                continue;
            }
            if held.len() == ENTRIES {
                let [victim, of_the_copy] = both.each_mut().map(|each| each.victim());
                assert!(held.remove(&victim), "seed {seed}: LPN {victim} is to leave, and is not cached");
                assert_eq!(victim, of_the_copy, "seed {seed}, step {step}: a copy chooses otherwise");
                both.iter_mut().for_each(|each| each.remove(victim));
            }
            held.insert(lpn);
            both.iter_mut().for_each(|each| each.insert(lpn));
            if step % 100 == 0 {
                both[1] = both[0].copy();
            }
        }
    }
}
