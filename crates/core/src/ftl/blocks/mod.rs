//! Erase blocks: which are erased, which are worn out, which replace them.

pub mod endurance;
pub mod pool;
