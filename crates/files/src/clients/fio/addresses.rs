//! Which block a random request of a fio job goes to.
//!
//! zipf, pareto and normal draw a rank, and the rank's place is fio's hash of it: a product modulo 2^64 and then modulo
//! the number of blocks. If that number is not a power of two, the hash does not reach all blocks, and some are hot
//! twice.

use rand::RngCore;
use rand_distr::{Distribution as _, Zipf};
use rand_xoshiro::Xoshiro256PlusPlus;

use super::Distribution;
use ftlab_core::util::below;

/// Factor of fio's hash of ranks.
const GOLDEN: u64 = 0x61C8_8646_80B5_83EB;

/// Number of uniform draws whose mean is fio's normal distribution.
const DRAWS: u64 = 12;

/// Where random requests go, in blocks.
#[derive(Clone, Debug)]
pub(super) enum Addresses {
    Random,
    Ranked(Ranked),
    /// For reads, writes and trims.
    Zoned([Vec<Zone>; 3]),
}

/// A zone: the number (out of 1,000,000) below which a draw selects it, where it begins and where it ends; both in
/// parts per million of the blocks or, of `zoned_abs`, in bytes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Zone {
    below: u64,
    begin: u64,
    end: u64,
    absolute: bool,
}

/// Ranks and where they are.
#[derive(Clone, Debug)]
pub(super) struct Ranked {
    /// The ranks' own draws go on from pass to pass.
    random: Xoshiro256PlusPlus,
    kind: Rank,
    blocks: u64,
    /// Added to the hash.
    offset: u64,
}

#[derive(Clone, Debug)]
enum Rank {
    Zipf(Zipf<f64>),
    /// The exponent of the power law.
    Pareto(f64),
    /// The width within which a draw moves away from the mean of the others.
    Normal(u64),
}

impl Addresses {
    /// Makes the addresses of this many blocks, for the distributions that have ranks.
    pub fn new(distribution: &Distribution, blocks: u64, mut random: Xoshiro256PlusPlus) -> Addresses {
        let place = |share: f64| (blocks as f64 * share) as u64;
        let (kind, offset) = match distribution {
            Distribution::Random => return Addresses::Random,
            Distribution::Zoned(zones) => {
                return Addresses::Zoned(zones.each_ref().map(|all| listed(all, false)));
            }
            Distribution::ZonedBytes(zones) => {
                return Addresses::Zoned(zones.each_ref().map(|all| listed(all, true)));
            }
            Distribution::Zipf(theta, center) => {
                let zipf = Zipf::new(blocks as f64, *theta).expect("a checked theta");
                (Rank::Zipf(zipf), center.map(place))
            }
            // As in fio: the share h of the blocks takes 1 - h of the accesses, and so on within that share.
            Distribution::Pareto(h, center) => {
                (Rank::Pareto(libm::log(*h) / libm::log(1.0 - h)), center.map(place))
            }
            Distribution::Normal(deviation, center) => {
                let width = libm::ceil(blocks as f64 * deviation / 100.0) as u64;
                let offset = center.map_or(0.0, |center| blocks as f64 * (center - 0.5)) as i64 as u64;
                (Rank::Normal(width.min(blocks / 2)), Some(offset))
            }
        };
        let offset = offset.unwrap_or_else(|| random.next_u64() >> 32);
        Addresses::Ranked(Ranked { random, kind, blocks, offset })
    }

    /// Draws a block for a direction that has this many, of this many bytes each.
    pub fn draw(&mut self, way: usize, blocks: u64, unit: u64, random: &mut Xoshiro256PlusPlus) -> u64 {
        match self {
            Addresses::Random => below(random.next_u64(), blocks),
            Addresses::Ranked(ranked) => ranked.draw(),
            Addresses::Zoned(zones) if zones[way].is_empty() => below(random.next_u64(), blocks),
            Addresses::Zoned(zones) => {
                let draw = below(random.next_u64(), 1_000_000);
                let zone = zones[way].iter().find(|zone| draw < zone.below).or(zones[way].last());
                let zone = zone.expect("at least one");
                let at = |size: u64| match zone.absolute {
                    true => size / unit,
                    false => (u128::from(blocks) * u128::from(size) / 1_000_000) as u64,
                };
                let first = at(zone.begin).min(blocks - 1);
                first + below(random.next_u64(), at(zone.end).min(blocks).saturating_sub(first).max(1))
            }
        }
    }
}

/// Lists the zones of a direction by where they begin and end.
fn listed(zones: &[(u64, u64)], absolute: bool) -> Vec<Zone> {
    let (mut below, mut end) = (0, 0);
    let zone = |&(share, size): &(u64, u64)| {
        let begin = end;
        below += share;
        end += size;
        Zone { below, begin, end, absolute }
    };
    zones.iter().map(zone).collect()
}

impl Ranked {
    fn draw(&mut self) -> u64 {
        let random = &mut self.random;
        let uniform =
            |random: &mut Xoshiro256PlusPlus| (random.next_u64() >> 11) as f64 / (1u64 << 53) as f64;
        let rank = match &self.kind {
            // Ranks run from 1 to the number of blocks; the clamp guards against rounding at both ends.
            Rank::Zipf(ranks) => (ranks.sample(random) as u64).clamp(1, self.blocks) - 1,
            Rank::Pareto(power) => ((self.blocks - 1) as f64 * libm::pow(uniform(random), *power)) as u64,
            Rank::Normal(width) => {
                let sum: u64 = (0..DRAWS).map(|_| below(random.next_u64(), self.blocks + 1)).sum();
                let mean = sum.div_ceil(DRAWS) as i64;
                let mut away = (*width as f64 * uniform(random)) as i64 - (width / 2) as i64;
                while !(0..self.blocks as i64).contains(&(mean + away)) && away != 0 {
                    away /= 2;
                }
                (mean + away) as u64
            }
        };
        rank.wrapping_mul(GOLDEN).wrapping_add(self.offset) % self.blocks
    }
}
