//! Wear-out: blocks past their limit are retired, and spare blocks replace them.
//!
//! As in drives (NVMe's available spare, the reserved blocks of eMMC and UFS), `ftl.spare_blocks` blocks of each LUN
//! are withheld. A block's limit is a number of erasures or, with `ecc`, the error rate that the ECC corrects: the
//! block has reached it once even the smallest ISPP step exceeds that rate ([`crate::flash::variation`]). The limit is
//! checked whenever a block has been erased, so a retired block holds no data. It is never programmed again, and a
//! spare block takes its place, whichever log had it.
//!
//! Without a spare the device turns read-only: it could go on with less over-provisioning, but it has to keep its
//! capacity, and drives have spare blocks for that; users who want more of them configure more. The block that could
//! not be replaced serves until the current work ends (the current page, or a background step, and the mappings that
//! are then written back), so that every promise is kept and nothing stops half-way.

use super::pool::BlockPool;
use crate::config::Contradiction;
use crate::flash::Endurance;
use crate::flash::variation::Speeds;
use crate::ftl::settings::Settings;
use crate::util::Bits;
use crate::util::codec::Damage;

/// The spare blocks of a device, and which blocks are worn out.
#[derive(Clone, Debug)]
pub struct Lives {
    /// Number of erases after which a block is retired; `u32::MAX`: never.
    limit: u32,
    /// The limit of each block, if error rates set the limits; otherwise empty.
    limits: Vec<u32>,
    /// Number of spare blocks that each LUN had at first.
    per_lun: u32,
    /// Spare blocks of each LUN; the last one is used next.
    spares: Vec<Vec<u32>>,
    retired: Bits,
    /// Whether a LUN has needed a spare block and had none.
    exhausted: bool,
}

/// Wear of a device's blocks.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Life {
    /// Number of all blocks, including retired and spare ones.
    pub blocks: u64,
    /// Number of erased blocks that belong to no log.
    pub erased: u64,
    /// Number of retired blocks.
    pub retired: u64,
    /// Number of spare blocks at the beginning, and now.
    pub spares: (u64, u64),
    /// Number of spare blocks that each LUN had at the beginning, and number left on the LUN with the fewest.
    pub fewest: (u32, u32),
    /// Erases of a block as a share of its limit, averaged over all blocks; a block at 1 or above is worn out.
    /// `None` without a limit.
    pub used: Option<f64>,
}

impl Lives {
    /// Makes the lives of a device whose blocks have no limit and which has no spare blocks.
    pub(crate) fn unlimited() -> Lives {
        Lives {
            limit: u32::MAX,
            limits: Vec::new(),
            per_lun: 0,
            spares: Vec::new(),
            retired: Bits::new(0),
            exhausted: false,
        }
    }

    /// Makes the lives with the limits that follow from the settings; no block is spare or retired yet.
    fn new(settings: &Settings, blocks: u32) -> Lives {
        let limit = if let Endurance::Cycles(cycles) = settings.flash.endurance { cycles } else { u32::MAX };
        let by_errors = settings.flash.endurance == Endurance::Ecc;
        Lives {
            limit,
            limits: by_errors.then(|| lasts(settings)).flatten().unwrap_or_default(),
            per_lun: settings.ftl.spare_blocks,
            retired: Bits::new(blocks as usize),
            ..Lives::unlimited()
        }
    }

    /// Returns the spare blocks, LUN by LUN.
    pub(super) fn spares(&self) -> Vec<u32> {
        self.spares.concat()
    }

    /// Returns the number of erases after which a block is retired; `u32::MAX`: never.
    #[inline]
    fn lasts(&self, block: u32) -> u32 {
        self.limits.get(block as usize).copied().unwrap_or(self.limit)
    }
}

/// Returns the number of erases after which each block's errors exceed the ECC limit, if blocks differ; those of a
/// superblock once those of one of its blocks do.
fn lasts(settings: &Settings) -> Option<Vec<u32>> {
    Some(least_of_each(settings, Speeds::new(&settings.flash, settings.seed, 0)?.lasts()))
}

/// Returns, for each reclaim unit, the least of the values that its blocks have.
fn least_of_each(settings: &Settings, of_blocks: Vec<u32>) -> Vec<u32> {
    let Some(superblocks) = settings.superblocks() else { return of_blocks };
    let units = of_blocks.len() as u32 / superblocks.luns();
    let least = |unit| superblocks.blocks(unit).map(|block| of_blocks[block as usize]).min();
    (0..units).filter_map(least).collect()
}

impl BlockPool {
    /// Removes the spare blocks from a full pool, and also the blocks that are past their limit at time 0; spare
    /// blocks replace the latter.
    ///
    /// # Panics
    /// If the settings were not checked.
    pub(crate) fn withhold(&mut self, settings: &Settings) {
        let per_lun = settings.ftl.spare_blocks;
        if settings.flash.endurance == Endurance::Unlimited && per_lun == 0 {
            return;
        }
        let luns = self.count() / self.blocks_per_lun();
        *self.lives_mut() = Lives::new(settings, self.count());
        for lun in 0..luns {
            let serving = self.blocks_per_lun() - per_lun;
            let mut spares = Vec::with_capacity(per_lun as usize);
            let all: Vec<u32> = std::iter::from_fn(|| self.take(lun)).collect();
            for block in all {
                if self.is_past_limit(block) {
                    self.lives_mut().retired.set(block);
                } else if self.free(lun) < serving {
                    self.push(block);
                } else {
                    spares.push(block);
                }
            }
            assert_eq!(self.free(lun), serving, "the settings were checked");
            spares.reverse();
            self.lives_mut().spares.push(spares);
        }
    }

    /// Removes the spare and retired blocks from a pool that was found after a power cut and holds every erased block.
    /// The limit alone tells which of these are retired, as before the cut; erased blocks differ in nothing but wear,
    /// so the least worn ones become the spare blocks.
    pub(crate) fn withhold_found(&mut self, settings: &Settings) {
        let per_lun = settings.ftl.spare_blocks;
        if settings.flash.endurance == Endurance::Unlimited && per_lun == 0 {
            return;
        }
        *self.lives_mut() = Lives::new(settings, self.count());
        for lun in 0..self.count() / self.blocks_per_lun() {
            let worn_out = self.of_lun(lun).filter(|&block| self.is_past_limit(block)).count();
            self.lives_mut().exhausted |= worn_out > per_lun as usize;
            let mut erased: Vec<u32> = std::iter::from_fn(|| self.take(lun)).collect();
            let mut left = per_lun as usize;
            erased.retain(|&block| {
                let retires = left > 0 && self.is_past_limit(block);
                if retires {
                    left -= 1;
                    self.lives_mut().retired.set(block);
                }
                !retires
            });
            let mut spares = erased.clone();
            spares.sort_by_key(|&block| (self.erase_count(block), std::cmp::Reverse(block)));
            spares.truncate(left);
            erased.iter().filter(|&block| !spares.contains(block)).for_each(|&block| self.push(block));
            self.lives_mut().spares.push(spares);
        }
    }

    /// Sets the spare blocks to those of a saved state, which are listed LUN by LUN.
    pub(super) fn set_spares(&mut self, spares: &[u32]) -> Result<(), Damage> {
        let per_lun = self.blocks_per_lun();
        let of_luns = &mut self.lives_mut().spares;
        of_luns.iter_mut().for_each(Vec::clear);
        for &block in spares {
            match of_luns.get_mut((block / per_lun) as usize) {
                Some(of_lun) => of_lun.push(block),
                None => return Damage::impossible(format!("block {block} is a spare one, there are none")),
            }
        }
        Ok(())
    }

    /// Retires every block past its limit when a saved state is loaded.
    pub(super) fn retire_worn(&mut self) -> Result<(), Damage> {
        for lun in 0..self.lives().spares.len() as u32 {
            let worn: Vec<u32> = self.of_lun(lun).filter(|&block| self.is_past_limit(block)).collect();
            let lives = self.lives_mut();
            if worn.len() + lives.spares[lun as usize].len() != lives.per_lun as usize {
                return Damage::impossible(format!("LUN {lun} has spare blocks too many or too few"));
            }
            worn.iter().for_each(|&block| lives.retired.set(block));
        }
        Ok(())
    }

    /// Whether a block has reached its limit.
    #[inline]
    pub(super) fn is_past_limit(&self, block: u32) -> bool {
        self.erase_count(block) >= self.lives().lasts(block)
    }

    /// Returns the block that takes the place of one just erased: the same block or, if it is past its limit, a
    /// spare block of its LUN; the worn block is then retired.
    #[inline]
    pub(crate) fn successor(&mut self, lun: u32, block: u32) -> u32 {
        if !self.is_past_limit(block) {
            return block;
        }
        let lives = self.lives_mut();
        match lives.spares[lun as usize].pop() {
            Some(spare) => {
                lives.retired.set(block);
                spare
            }
            None => {
                lives.exhausted = true;
                block
            }
        }
    }

    /// Returns the number of blocks of each LUN that are neither spare nor retired; this number never changes.
    pub(crate) fn in_service(&self) -> u32 {
        self.blocks_per_lun() - self.lives().per_lun
    }

    /// Wears every block by this many erasures. A block that is then past its limit serves until it is erased, as one
    /// that comes to its limit by erasure does.
    pub(crate) fn wear(&mut self, cycles: u32) {
        (0..self.count()).for_each(|block| self.add_erases(block, cycles));
        (0..self.count() / self.blocks_per_lun()).for_each(|lun| self.raise_floor(lun, cycles));
    }

    /// Sets whether a LUN counts as one that has needed a spare block and had none.
    pub(crate) fn set_exhausted(&mut self, exhausted: bool) {
        if self.is_exhausted() != exhausted {
            self.lives_mut().exhausted = exhausted;
        }
    }

    /// Whether a LUN has needed a spare block and had none.
    #[inline]
    pub(crate) fn is_exhausted(&self) -> bool {
        self.lives().exhausted
    }

    /// Whether a block is retired.
    pub(crate) fn is_retired(&self, block: u32) -> bool {
        let lives = self.lives();
        !lives.spares.is_empty() && lives.retired.get(block)
    }

    /// Whether a block is a spare block.
    pub(crate) fn is_spare(&self, block: u32) -> bool {
        let spares = self.lives().spares.get((block / self.blocks_per_lun()) as usize);
        spares.is_some_and(|spares| spares.contains(&block))
    }

    /// Returns the wear of the blocks, each of which stands for this many blocks of the flash.
    pub fn life(&self, each: u64) -> Life {
        let lives = self.lives();
        let left = lives.spares.iter().map(Vec::len);
        let lasts = |block| match lives.lasts(block) {
            u32::MAX => f64::INFINITY,
            erases => f64::from(erases.max(1)),
        };
        let shares = (0..self.count()).map(|block| f64::from(self.erase_count(block)) / lasts(block));
        Life {
            blocks: u64::from(self.count()) * each,
            erased: (0..self.count() / self.blocks_per_lun())
                .map(|lun| u64::from(self.free(lun)) * each)
                .sum(),
            retired: lives.retired.count() * each,
            spares: (
                u64::from(lives.per_lun) * u64::from(self.count() / self.blocks_per_lun()) * each,
                left.clone().sum::<usize>() as u64 * each,
            ),
            fewest: (lives.per_lun, left.min().unwrap_or(0) as u32),
            used: (lives.limit != u32::MAX || !lives.limits.is_empty())
                .then(|| shares.sum::<f64>() / f64::from(self.count())),
        }
    }
}

/// Checks the limit against the wear at time 0.
///
/// # Errors
/// A [`Contradiction`] that names the key to change.
pub fn check(settings: &Settings) -> Result<(), Contradiction> {
    let flash = &settings.flash;
    let fail = |key, message| Err(Contradiction { key, message });
    match flash.endurance {
        Endurance::Unlimited => Ok(()),
        Endurance::Cycles(cycles) if flash.pe_cycles >= u64::from(cycles) => fail(
            "flash.endurance",
            format!(
                "every block has come to its limit of {cycles} erases at time 0 (flash.pe_cycles); raise one or lower \
                 the other"
            ),
        ),
        Endurance::Cycles(_) => Ok(()),
        Endurance::Ecc => {
            let Some(lasts) = lasts(settings) else {
                return fail(
                    "flash.endurance",
                    "\"ecc\" goes by the error rates of blocks, so it needs flash.variation.model = \"ispp\"; \
                     or give a number of erases"
                        .into(),
                );
            };
            let per_lun = flash.blocks_per_lun() as u32;
            let worn_out = |lun: u32| {
                let blocks = lun * per_lun..(lun + 1) * per_lun;
                blocks.filter(|&block| flash.pe_cycles >= u64::from(lasts[block as usize])).count()
            };
            let most = (0..lasts.len() as u32 / per_lun).map(worn_out).max().unwrap_or(0);
            if most > settings.ftl.spare_blocks as usize {
                return fail(
                    "ftl.spare_blocks",
                    format!(
                        "{most} blocks of a LUN are beyond the ECC limit at time 0 already (flash.pe_cycles, \
                         flash.variation.ecc_limit); give each LUN that many spare blocks at least"
                    ),
                );
            }
            Ok(())
        }
    }
}
