//! Flat data structures of the hot paths.

mod bits;
pub mod codec;
mod divider;
mod heap;
mod lru;
mod random;
mod ring;

pub use bits::Bits;
pub use divider::Divider;
pub use heap::LazyHeap;
pub use lru::{List, Lru};
pub use random::{below, stream};
pub use ring::Ring;

/// The absent id in every `u32` link.
pub const NONE: u32 = u32::MAX;
