//! VIOS: chip batches, channel batches within them, and blocks chosen by speed.
//!
//! Source: Cui et al., NPC 2016, section 3.3. The chip batch is found as in PIQ; within it a request joins the first
//! channel batch without a channel conflict, and the chip batch issues channel batch by channel batch. A write to a
//! chip that further requests wait for takes the chip's fastest writable block; any other write takes the next one in
//! order (if `flash.variation` makes blocks differ); this is the placement `vios`. [`super::batches`] has the
//! interpretation of what the paper leaves open.

use super::batches::ChipBatches;

pub(super) const NAME: &str = "vios";
pub(super) const DOC: &str =
    "VIOS (Cui et al., NPC 2016): chip batches of channel batches, reads first; blocks chosen by speed";

pub type Keys = ();

/// Chip batches, in each of which requests go channel batch by channel batch, then in the order of arrival.
pub(super) type Vios = ChipBatches<true>;
