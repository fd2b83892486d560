//! Where the random requests of a fio job go.

use rand::RngCore;
use rand_distr::{Distribution as _, Zipf};
use rand_xoshiro::Xoshiro256PlusPlus;

use super::Distribution;
use ftlab_core::util::below;
use ftlab_core::workload::Scatter;

/// Where random requests go, in blocks.
#[derive(Clone, Debug)]
pub(super) enum Addresses {
    Random,
    /// The distribution of ranks, and how ranks are scattered over the file.
    Zipf(Zipf<f64>, Scatter),
    /// The exponent of the power law, and how ranks are scattered over the file.
    Pareto(f64, Scatter),
    /// For each zone: the number (out of 1,000,000) below which a draw selects the zone, the zone's first block, and
    /// its number of blocks.
    Zoned(Vec<(u64, u64, u64)>),
}

impl Addresses {
    /// Makes the addresses of this many blocks.
    pub fn new(distribution: &Distribution, blocks: u64, random: &mut Xoshiro256PlusPlus) -> Addresses {
        match distribution {
            Distribution::Random | Distribution::Normal(..) | Distribution::ZonedBytes(_) => {
                Addresses::Random
            }
            Distribution::Zipf(theta, _) => Addresses::Zipf(
                Zipf::new(blocks as f64, *theta).expect("a checked theta"),
                Scatter::new(blocks, random),
            ),
            // As in fio: the share h of the blocks takes 1 - h of the accesses, and so on within that share.
            Distribution::Pareto(h, _) => {
                Addresses::Pareto(libm::log(*h) / libm::log(1.0 - h), Scatter::new(blocks, random))
            }
            Distribution::Zoned([zones, ..]) => {
                let (mut accesses, mut size) = (0, 0);
                let at = |size: u64| (u128::from(blocks) * u128::from(size) / 1_000_000) as u64;
                let zone = |&(share, part): &(u64, u64)| {
                    let first = at(size).min(blocks - 1);
                    accesses += share;
                    size += part;
                    (accesses, first, at(size).saturating_sub(first).max(1))
                };
                Addresses::Zoned(zones.iter().map(zone).collect())
            }
        }
    }

    /// Draws a block.
    pub fn draw(&self, blocks: u64, random: &mut Xoshiro256PlusPlus) -> u64 {
        match self {
            Addresses::Random => below(random.next_u64(), blocks),
            Addresses::Zipf(ranks, scatter) => {
                // Ranks run from 1 to the number of blocks; the clamp guards against rounding at both ends.
                scatter.place((ranks.sample(random) as u64).clamp(1, blocks) - 1)
            }
            Addresses::Pareto(power, scatter) => {
                let uniform = (random.next_u64() >> 11) as f64 / (1u64 << 53) as f64;
                let rank = (blocks as f64 * libm::pow(uniform, *power)) as u64;
                scatter.place(rank.min(blocks - 1))
            }
            Addresses::Zoned(zones) => {
                let draw = below(random.next_u64(), 1_000_000);
                let zone = zones.iter().find(|zone| draw < zone.0).or(zones.last()).expect("at least one");
                zone.1 + below(random.next_u64(), zone.2)
            }
        }
    }
}
