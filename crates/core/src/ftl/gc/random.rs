//! Random: any closed block, each with equal probability.
//!
//! Under uniform random writes its write amplification is 1 / (1 - rho) (the closed form of d-choices with d
//! = 1). For that, blocks without an invalid slot must be collected too when they are drawn, as they are here
//! ([`super`] says how that ends).

use super::closed::Closed;
use super::{Need, Own, Space, Victims};
use rand_xoshiro::Xoshiro256PlusPlus;

pub(super) const NAME: &str = "random";
pub(super) const DOC: &str = "any block, each as likely as any other";
pub type Keys = ();

#[derive(Clone, Debug)]
pub(super) struct Random(Closed);

impl Victims for Random {
    fn new(_keys: &Own, space: Space, rng: Xoshiro256PlusPlus) -> Random {
        Random(Closed::new(space, rng))
    }

    fn close(&mut self, lun: u32, block: u32, _valid: u32, _now: u64) {
        self.0.push(lun, block);
    }

    fn choose(&mut self, need: Need, valid: &dyn Fn(u32) -> u32, _erases: &dyn Fn(u32) -> u32) -> u32 {
        self.0.fewest_of(1, need, valid)
    }

    fn remove(&mut self, lun: u32, block: u32, _valid: &dyn Fn(u32) -> u32) {
        self.0.remove(lun, block);
    }

    fn each(&self, lun: u32, visit: &mut dyn FnMut(u32, Option<u32>)) {
        self.0.each(lun, visit);
    }

    fn random(&mut self) -> Option<&mut Xoshiro256PlusPlus> {
        Some(&mut self.0.rng)
    }
}
