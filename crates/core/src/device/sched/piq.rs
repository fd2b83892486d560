//! PIQ: batches of requests that share no chip.
//!
//! Source: Gao et al., MSST 2014, as the baseline of Cui et al., NPC 2016. A request joins the first batch of
//! its half without a chip conflict, or else opens one; read batches go first; any request of the oldest
//! batch may issue. [`super::batches`] has the interpretation of what both papers leave open.

use super::batches::ChipBatches;

pub(super) const NAME: &str = "piq";
pub(super) const DOC: &str = "PIQ (Gao et al., MSST 2014): batches without chip conflicts, reads first";
pub type Keys = ();

/// Chip batches, in each of which requests go in the order of arrival.
pub(super) type Piq = ChipBatches<false>;
