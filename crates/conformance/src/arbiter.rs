//! What every arbiter must guarantee.

use ftlab_core::host::arbiter::{Arbitration, Claim, Own};
use ftlab_core::util::Bits;
use ftlab_core::workload::tenants::Class;
use rand::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

/// The largest number of tenants in a test.
const MOST: u32 = 9;

/// Tests a registered arbiter: it names a tenant that has a request, the same one until that request has gone; and
/// tenants of one class that always have requests are served again and again, none more seldom than its weight among
/// all weights allows.
///
/// # Panics
/// If the arbiter breaks a promise of [`ftlab_core::host::arbiter::Arbiter`], or none has that name.
pub fn arbiter(name: &str) {
    for seed in 0..200 {
        names_tenants_that_are_ready(name, seed);
        lets_nobody_starve(name, seed);
    }
}

fn made(name: &str, random: &mut Xoshiro256PlusPlus, classes: &[Class]) -> (Arbitration, Vec<u32>) {
    let mut arbiter = Arbitration::new(name, &Own::default());
    let count = random.random_range(2..=MOST);
    let claim = |_| Claim {
        weight: random.random_range(1..=5),
        class: classes[random.random_range(0..classes.len())],
    };
    let claims: Vec<Claim> = (0..count).map(claim).collect();
    claims.iter().for_each(|&claim| arbiter.add(claim));
    (arbiter, claims.iter().map(|claim| claim.weight).collect())
}

fn names_tenants_that_are_ready(name: &str, seed: u64) {
    let mut random = Xoshiro256PlusPlus::seed_from_u64(seed);
    let (mut arbiter, weights) = made(name, &mut random, &Class::ALL);
    let count = weights.len() as u32;
    for _ in 0..200 {
        let mut ready = Bits::new(count as usize);
        (0..count).filter(|_| random.random_bool(0.4)).for_each(|tenant| ready.set(tenant));
        ready.set(random.random_range(0..count));
        let tenant = arbiter.choose(&ready).expect("one is ready");
        assert!(tenant < count && ready.get(tenant), "{name}, seed {seed}: {tenant} has no request");
        assert_eq!(arbiter.choose(&ready), Some(tenant), "{name}, seed {seed}: the choice does not last");
        if random.random_bool(0.8) {
            arbiter.sent(tenant);
        }
    }
    let chosen = arbiter.choose(&Bits::new(count as usize));
    assert_eq!(chosen, None, "{name}, seed {seed}: nobody has a request");
}

fn lets_nobody_starve(name: &str, seed: u64) {
    let mut random = Xoshiro256PlusPlus::seed_from_u64(seed);
    let class = Class::ALL[random.random_range(0..Class::ALL.len())];
    let (mut arbiter, weights) = made(name, &mut random, &[class]);
    let mut ready = Bits::new(weights.len());
    (0..weights.len() as u32).for_each(|tenant| ready.set(tenant));
    let round: u32 = weights.iter().sum();
    let mut waits = vec![0; weights.len()];
    for _ in 0..20 * round {
        let tenant = arbiter.choose(&ready).expect("one is ready");
        arbiter.sent(tenant);
        waits.iter_mut().for_each(|wait| *wait += 1);
        waits[tenant as usize] = 0;
        assert!(waits.iter().all(|&wait| wait < 2 * round), "{name}, seed {seed}: {waits:?} of {weights:?}");
    }
}
