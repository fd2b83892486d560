//! Sets of chips, or of channels, as rows of machine words.

use crate::request::Window;

/// Sets `mask` to the members of `window`, which wraps around at `of`.
#[inline]
pub(super) fn fill(mask: &mut [u64], window: Window, of: u32) {
    mask.fill(0);
    let end = window.first + window.width;
    for (from, to) in [(window.first, end.min(of)), (0, end.saturating_sub(of))] {
        let mut at = from;
        while at < to {
            let bits = (64 - at % 64).min(to - at);
            mask[at as usize / 64] |= (u64::MAX >> (64 - bits)) << (at % 64);
            at += bits;
        }
    }
}

/// Whether two sets have a member in common.
#[inline]
pub(super) fn meet(set: &[u64], other: &[u64]) -> bool {
    set.iter().zip(other).any(|(a, b)| a & b != 0)
}

/// Adds the members of another set.
#[inline]
pub(super) fn join(set: &mut [u64], other: &[u64]) {
    set.iter_mut().zip(other).for_each(|(a, b)| *a |= b);
}
