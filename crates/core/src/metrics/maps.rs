//! Result sections on request: `erase_map`, `miss_curve`.

use serde::Serialize;

use crate::device::Lookups;
use crate::ftl::{Ftl, Inspect};
use crate::util::StackDistances;

/// Upper bound on the number of cells of a map, unless there are more chips.
const CELLS: u64 = 4096;

/// How often blocks were erased, `flash.pe_cycles` and preconditioning included.
#[derive(Clone, Debug, Serialize)]
pub struct EraseMap {
    /// What each row stands for: a chip, or a die or plane where those work on their own.
    pub unit: &'static str,
    /// Number of erase blocks in each row.
    pub blocks_per_unit: u64,
    /// Number of neighbouring blocks in a cell; the last cell of a row may have fewer.
    pub blocks_per_cell: u64,
    /// Mean erase count of each cell, by row.
    pub mean: Vec<Vec<f64>>,
    /// Greatest erase count of each cell, by row.
    pub max: Vec<Vec<u32>>,
}

impl EraseMap {
    /// Makes the map of a device with this many units, each of which is called `unit`.
    pub fn new(ftl: &Ftl, units: u32, unit: &'static str) -> EraseMap {
        let mut erases = Vec::new();
        ftl.erases(&mut |count| erases.push(count));
        EraseMap::of(&erases, u64::from(units), unit)
    }

    fn of(erases: &[u32], units: u64, unit: &'static str) -> EraseMap {
        let blocks_per_unit = erases.len() as u64 / units;
        let cells = (CELLS / units).clamp(1, blocks_per_unit);
        let blocks_per_cell = blocks_per_unit.div_ceil(cells);
        let rows = || erases.chunks(blocks_per_unit as usize);
        let mean = |cell: &[u32]| cell.iter().copied().map(u64::from).sum::<u64>() as f64 / cell.len() as f64;
        let most = |cell: &[u32]| cell.iter().copied().max().expect("a cell has blocks");
        EraseMap {
            unit,
            blocks_per_unit,
            blocks_per_cell,
            mean: rows().map(|row| row.chunks(blocks_per_cell as usize).map(mean).collect()).collect(),
            max: rows().map(|row| row.chunks(blocks_per_cell as usize).map(most).collect()).collect(),
        }
    }
}

/// The misses that an LRU mapping cache of every size would have over the run's own lookups.
#[derive(Clone, Debug, Serialize)]
pub struct MissCurves {
    /// Translations.
    pub lookups: u64,
    /// For a cache of mapping entries.
    pub entries: MissCurve,
    /// For a cache of whole translation units.
    pub units: MissCurve,
}

/// Misses of an LRU cache of each size; it starts empty.
#[derive(Clone, Debug, Serialize)]
pub struct MissCurve {
    /// Size of an item, which is a mapping entry or a translation unit.
    pub item_bytes: u64,
    /// Number of different items looked up; an estimate if they were sampled.
    pub items: u64,
    /// Items that were sampled / items; at 1 the curve is exact.
    pub sampling_rate: f64,
    /// Sizes of the cache.
    pub capacity_bytes: Vec<u64>,
    /// (first lookups + repeated lookups with at least capacity / item size different items looked up since the item's
    /// last lookup) / lookups.
    pub miss_ratio: Vec<f64>,
}

impl MissCurve {
    fn new(distances: &StackDistances, item_bytes: u64) -> MissCurve {
        let curve = distances.curve();
        MissCurve {
            item_bytes,
            items: curve.items,
            sampling_rate: curve.rate,
            capacity_bytes: curve.capacity.iter().map(|items| items * item_bytes).collect(),
            miss_ratio: curve.miss_ratio,
        }
    }
}

impl MissCurves {
    /// Makes the curves of these lookups.
    pub fn new(lookups: &Lookups, entry_bytes: u64, unit_bytes: u64) -> MissCurves {
        MissCurves {
            lookups: lookups.entries.references(),
            entries: MissCurve::new(&lookups.entries, entry_bytes),
            units: MissCurve::new(&lookups.units, unit_bytes),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_are_bounded_and_lose_no_block() {
        let erases: Vec<u32> = (0..2 * 5_001).map(|block| block % 7).collect();
        let map = EraseMap::of(&erases, 2, "chip");
        assert_eq!((map.blocks_per_unit, map.blocks_per_cell), (5_001, 3));
        assert!(map.max.iter().map(Vec::len).sum::<usize>() as u64 <= CELLS);
        let counted: f64 = map.mean.iter().flatten().sum::<f64>() * 3.0;
        assert_eq!(counted.round() as u32, erases.iter().sum::<u32>());
        let small = EraseMap::of(&[3, 1, 4, 1], 2, "die");
        assert_eq!((small.blocks_per_cell, small.max), (1, vec![vec![3, 1], vec![4, 1]]));
    }
}
