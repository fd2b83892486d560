//! VIOS: chip batches, in them channel batches, and blocks chosen by their speed.
//!
//! Source: Cui et al., NPC 2016, section 3.3. The chip batch is found as in PIQ; inside it a request
//! joins the first channel batch without a channel conflict, and the chip batch issues channel batch
//! by channel batch. A write to a chip that more requests wait for takes the chip's fastest writable
//! block, any other write the slowest (where `flash.variation` makes blocks differ): see
//! [`crate::ftl::log`]. What the paper leaves open stands in [`super::batches`].

use super::batches::ChipBatches;

pub(super) const NAME: &str = "vios";
pub(super) const DOC: &str =
    "VIOS (Cui et al., NPC 2016): chip batches of channel batches, reads first; blocks by speed";
pub type Keys = ();

/// Chip batches, in each of which requests go by channel batch, then in the order of arrival.
pub(super) type Vios = ChipBatches<true>;
