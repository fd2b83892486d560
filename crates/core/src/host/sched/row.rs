//! RoW: reads over writes.
//!
//! Source: Ji et al., TCAD 2018, section VI-A (after Kim et al., EMSOFT 2009): a read and a write
//! queue; reads first, but two reads in succession only if no write waits.

use super::halves::{Halves, Turn};
use super::{Around, Decision, Needs, Scheduler};
use crate::request::Pool;

pub(super) const NAME: &str = "row";
pub(super) const DOC: &str = "reads first, but reads and writes take turns while both wait";
pub type Keys = ();

/// The scheduler `row`: reads first, alternating with writes while both wait.
pub(super) type Row = ReadsFirst<true>;

/// Reads before writes; while both wait they alternate if `ALTERNATE` or `host.alternate` is set.
#[derive(Clone, Debug)]
pub(super) struct ReadsFirst<const ALTERNATE: bool> {
    halves: Halves,
    turn: Turn,
}

impl<const ALTERNATE: bool> Scheduler for ReadsFirst<ALTERNATE> {
    const NEEDS: Needs = Needs { deadline: true, ..Needs::NOTHING };

    fn new(keys: &super::Keys, _block_pages: u32) -> ReadsFirst<ALTERNATE> {
        ReadsFirst { halves: Halves::default(), turn: Turn::new(ALTERNATE || keys.alternate) }
    }

    fn admit(&mut self, id: u32, pool: &mut Pool) {
        self.halves.push(id, pool);
    }

    fn choose(&mut self, pool: &mut Pool, _around: &mut dyn Around) -> Decision {
        self.halves.pop(&mut self.turn, pool).map_or(Decision::Nothing, Decision::One)
    }

    fn remove(&mut self, id: u32, pool: &mut Pool) {
        self.halves.unlink(id, pool);
    }

    fn verify(&self, pool: &Pool) -> Result<u32, String> {
        self.halves.verify(pool, |_| true)
    }
}
