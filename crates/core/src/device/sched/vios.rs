//! VIOS: chip batches, in them channel batches, and blocks chosen by their speed.
//!
//! Source: Cui et al., NPC 2016, section 3.3. The chip batch is found as in PIQ; inside it a request
//! joins the first channel batch without a channel conflict, and the chip batch issues channel batch
//! by channel batch. A write to a chip that more requests wait for takes the chip's fastest writable
//! block, any other write the slowest (where `flash.variation` makes blocks differ): see
//! [`crate::ftl::log`]. What the paper leaves open stands in [`super::batches`].

use super::Scheduler;
use super::batches::Batches;
use crate::device::Array;
use crate::device::settings::Settings;
use crate::ftl::Ftl;
use crate::request::{Pool, Window};

pub(super) const NAME: &str = "vios";
pub(super) const DOC: &str =
    "VIOS (Cui et al., NPC 2016): chip batches of channel batches, reads first; blocks by speed";

/// Chip batches, in each of which requests go by channel batch, then in the order of arrival.
#[derive(Clone, Debug)]
pub(super) struct Vios(Batches<true>);

impl Scheduler for Vios {
    const BY_SPEED: bool = true;
    const BY_CHIPS: bool = true;

    fn new(settings: &Settings) -> Vios {
        Vios(Batches::new(settings))
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
