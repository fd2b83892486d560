//! VIOS: chip batches, channel batches within them, and blocks chosen by speed.
//!
//! Source: Cui et al., NPC 2016, section 3.3. The chip batch is found as in PIQ; within it a request joins
//! the first channel batch without a channel conflict, and the chip batch issues channel batch by channel
//! batch. A write to a chip that more requests wait for takes the chip's fastest writable block, any other
//! write the next one in order (if `flash.variation` makes blocks differ): see [`crate::ftl::log`].
//! [`super::batches`] has the interpretation of what the paper leaves open.
//!
//! Interpretation: the paper's unhurried write takes "a slower block", which need not be the slowest one.

use super::batches::ChipBatches;
use crate::config::section;
use crate::ftl::blocks::by_speed::Unhurried;

pub(super) const NAME: &str = "vios";
pub(super) const DOC: &str =
    "VIOS (Cui et al., NPC 2016): chip batches of channel batches, reads first; blocks by speed";

section! {
    /// Keys of vios alone.
    #[derive(Clone, Debug, PartialEq)]
    pub struct Keys {
        /// Under vios, if blocks differ in speed: which block a write takes that nobody waits behind, and a
        /// copy.
        unhurried: Unhurried = "device.unhurried", "in-order";
    }
}

/// Chip batches, in each of which requests go by channel batch, then in the order of arrival.
pub(super) type Vios = ChipBatches<true>;
