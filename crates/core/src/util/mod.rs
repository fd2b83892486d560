//! Flat data structures of the hot paths.

mod bits;
pub mod codec;
mod divider;
mod heap;
mod lru;
pub mod memory;
mod ordered;
mod random;
mod ring;
mod slab;
mod sooner;
mod stack_distance;
mod stat;
mod tournament;

pub use bits::Bits;
pub use divider::Divider;
pub use heap::LazyHeap;
pub use lru::{List, Lru};
pub use ordered::Ordered;
pub use random::{below, stream};
pub use ring::Ring;
pub use slab::{Chain, Linked, Neighbours, Slab};
pub use sooner::Sooner;
pub use stack_distance::{Curve, StackDistances};
pub use stat::Stat;
pub use tournament::{Race, Tournament};

/// The value that means "no id" in every `u32` link.
pub const NONE: u32 = u32::MAX;
