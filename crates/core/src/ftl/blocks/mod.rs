//! Erase blocks: which are erased, which are worn out, which replace them.

pub mod by_speed;
pub mod endurance;
pub mod pool;
