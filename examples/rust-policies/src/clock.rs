//! Clock: a hand goes round the entries, spares each one that was accessed since it last came by, and evicts
//! the first one that was not.

use std::collections::{HashMap, VecDeque};

use ftlab_core::ftl::map::dftl::Replacement;
use ftlab_core::util::Stat;

/// The replacement policy.
#[derive(Clone, Debug, Default)]
pub struct Clock {
    /// LPNs of the entries, starting at the hand.
    round: VecDeque<u32>,
    /// Whether each entry was accessed since the hand last came by.
    accessed: HashMap<u32, bool>,
    spared: u64,
}

impl Replacement for Clock {
    fn hit(&mut self, lpn: u32) {
        self.accessed.insert(lpn, true);
    }

    fn insert(&mut self, lpn: u32) {
        self.round.push_back(lpn);
        self.accessed.insert(lpn, false);
    }

    fn victim(&mut self) -> u32 {
        while self.accessed.insert(self.round[0], false) == Some(true) {
            self.round.rotate_left(1);
            self.spared += 1;
        }
        self.round[0]
    }

    fn remove(&mut self, lpn: u32) {
        self.round.retain(|&other| other != lpn);
        self.accessed.remove(&lpn);
    }

    fn stats(&self) -> Vec<Stat> {
        vec![Stat::new(
            "spared",
            self.spared as f64,
            "entries",
            "accessed since the hand came by, and left in the cache",
        )]
    }

    fn copy(&self) -> Box<dyn Replacement> {
        Box::new(self.clone())
    }
}
