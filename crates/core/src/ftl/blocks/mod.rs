//! Erase blocks: which are erased, which are worn out, and which blocks replace the worn ones.

pub mod by_speed;
pub mod endurance;
pub mod pool;
