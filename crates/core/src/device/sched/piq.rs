//! PIQ: batches of requests that share no chip.
//!
//! Source: Gao et al., MSST 2014, as the baseline of Cui et al., NPC 2016. A request joins the first
//! batch of its half without a chip conflict, else opens one; read batches go first; any request of
//! the oldest batch may issue. What both papers leave open stands in [`super::batches`].

use super::Scheduler;
use super::batches::Batches;
use crate::device::Array;
use crate::device::settings::Settings;
use crate::ftl::Ftl;
use crate::request::{Pool, Window};

pub(super) const NAME: &str = "piq";
pub(super) const DOC: &str = "PIQ (Gao et al., MSST 2014): batches without chip conflict, reads first";

/// Chip batches, in each of which requests go in the order of arrival.
#[derive(Clone, Debug)]
pub(super) struct Piq(Batches<false>);

impl Scheduler for Piq {
    const BY_CHIPS: bool = true;

    fn new(settings: &Settings) -> Piq {
        Piq(Batches::new(settings))
    }

    #[inline]
    fn admit(&mut self, id: u32, chips: Window, pool: &mut Pool) {
        self.0.admit(id, chips, pool);
    }

    #[inline]
    fn next(&mut self, array: &Array, _ftl: &Ftl, pool: &mut Pool) -> Option<u32> {
        self.0.next(array, pool)
    }

    #[inline]
    fn batch_of(&self, id: u32) -> Option<(u64, u32)> {
        Some(self.0.batch_of(id))
    }

    fn batches(&self) -> u64 {
        self.0.created()
    }
}
