//! What every replacement in a mapping cache must hold.

use std::collections::BTreeSet;

use ftlab_core::ftl::map::dftl::Replacement;
use ftlab_core::util::stream;
use rand::Rng;

/// Entries of the cache.
const ENTRIES: usize = 16;

/// A replacement of one's own, as `make` makes it for so many entries: what it lets go is in the cache, and its
/// copy goes on as it does itself.
///
/// # Panics
/// If it does not hold what [`Replacement`] promises.
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
