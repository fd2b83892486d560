//! How worn the blocks are.

use serde::Serialize;

use crate::ftl::{Ftl, Inspect};

/// Erase counts of all blocks, `flash.pe_cycles` and those of preconditioning included.
#[derive(Clone, Debug, Serialize)]
pub struct Wear {
    /// Least.
    pub min: u32,
    /// Mean.
    pub mean: f64,
    /// Greatest.
    pub max: u32,
    /// Standard deviation of the population.
    pub stddev: f64,
}

impl Wear {
    /// Makes the figures of all blocks.
    pub fn new(ftl: &Ftl) -> Wear {
        let (mut min, mut max, mut blocks, mut sum, mut squares) = (u32::MAX, 0, 0u128, 0u128, 0u128);
        ftl.erases(&mut |erases| {
            min = min.min(erases);
            max = max.max(erases);
            blocks += 1;
            sum += u128::from(erases);
            squares += u128::from(erases) * u128::from(erases);
        });
        // n * sum(x^2) - sum(x)^2 in integers: no cancellation.
        let variance = (blocks * squares - sum * sum) as f64 / (blocks * blocks) as f64;
        Wear { min, mean: sum as f64 / blocks as f64, max, stddev: variance.sqrt() }
    }
}
