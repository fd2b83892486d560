//! The erase blocks of the flash, shared by the logs that write to them.

use super::by_speed::Order;
use super::endurance::Lives;
use crate::flash::Cells;
use crate::ftl::settings::Settings;
use crate::util::codec::{Damage, Decoder, Encoder};
use crate::util::{Bits, NONE};

#[derive(Clone, Copy, Debug)]
pub(super) struct PoolBlock {
    pub(super) next: u32,
    erases: u32,
    free: bool,
}

/// Erased blocks of a LUN (of one speed, if they are sorted by speed), in the order of erasure.
#[derive(Clone, Copy, Debug)]
pub(super) struct List {
    pub(super) head: u32,
    tail: u32,
}

pub(super) const EMPTY: List = List { head: NONE, tail: NONE };

/// Erased blocks of each LUN, in the order of their erasure or by speed, and every block's erase count.
/// Blocks are numbered LUN by LUN.
#[derive(Clone, Debug)]
pub struct BlockPool {
    pub(super) blocks: Vec<PoolBlock>,
    /// Lists of erased blocks, by LUN and speed class.
    pub(super) lists: Vec<List>,
    /// For each LUN, the classes whose list has a block, as a bit set.
    pub(super) classes: Vec<u64>,
    /// Number of erased blocks of each LUN.
    pub(super) free: Vec<u32>,
    blocks_per_lun: u32,
    /// Number of speed classes into which blocks are sorted; more than 1 only during a run, so never in a saved
    /// state.
    pub(super) speeds: u32,
    /// If blocks are sorted by speed but taken in order: the order in which they returned to the pool.
    pub(super) order: Option<Order>,
    /// Erase count of each LUN's least worn movable block, as of the last check.
    floors: Vec<u32>,
    /// Under wear levelling, by how much the erase counts of a LUN's blocks may differ.
    threshold: Option<u32>,
    uneven: Option<u32>,
    /// Spare and retired blocks.
    lives: Lives,
}

impl BlockPool {
    /// Makes a pool of all blocks, each of them erased and with an erase count of `flash.pe_cycles`. If there is
    /// a `threshold`, the pool watches for LUNs whose blocks differ by more than this in their erase counts.
    pub(crate) fn new(settings: &Settings, threshold: Option<u32>) -> BlockPool {
        let flash = &settings.flash;
        let (luns, blocks_per_lun) = (flash.luns(), flash.blocks_per_lun() as u32);
        let pe_cycles = flash.pe_cycles as u32;
        let block = PoolBlock { next: NONE, erases: pe_cycles, free: false };
        let mut pool = BlockPool {
            blocks: vec![block; (luns * blocks_per_lun) as usize],
            lists: vec![EMPTY; luns as usize],
            classes: vec![0; luns as usize],
            free: vec![0; luns as usize],
            blocks_per_lun,
            speeds: 1,
            order: None,
            floors: vec![pe_cycles; luns as usize],
            threshold,
            uneven: None,
            lives: Lives::unlimited(),
        };
        (0..luns * blocks_per_lun).for_each(|block| pool.push(block));
        pool
    }

    /// Turns this into the pool of a flash that was saved, or found after a power cut, with these erase counts and
    /// these erased blocks, which enter the pool in the order given.
    pub(crate) fn find(&mut self, erases: impl Fn(u32) -> u32, erased: &[u32]) {
        for (block, state) in (0..).zip(&mut self.blocks) {
            *state = PoolBlock { next: NONE, erases: erases(block), free: false };
        }
        self.lists.fill(EMPTY);
        self.classes.fill(0);
        self.free.fill(0);
        erased.iter().for_each(|&block| self.push(block));
    }

    /// Returns the spare and retired blocks.
    pub(super) fn lives(&self) -> &Lives {
        &self.lives
    }

    /// Returns the spare and retired blocks, so that they can be changed.
    pub(super) fn lives_mut(&mut self) -> &mut Lives {
        &mut self.lives
    }

    /// Returns the number of blocks on each LUN.
    pub(crate) fn blocks_per_lun(&self) -> u32 {
        self.blocks_per_lun
    }

    /// Returns the number of blocks on all LUNs.
    pub(crate) fn count(&self) -> u32 {
        self.blocks.len() as u32
    }

    /// Returns the number of erased blocks of a LUN that belong to no log.
    #[inline]
    pub(crate) fn free(&self, lun: u32) -> u32 {
        self.free[lun as usize]
    }

    /// Whether a block is erased and belongs to no log.
    pub(crate) fn is_free(&self, block: u32) -> bool {
        self.blocks[block as usize].free
    }

    /// Takes one of a LUN's erased blocks, if there are any: the one that was erased first or, if blocks are taken
    /// slowest first, the slowest one.
    pub(crate) fn take(&mut self, lun: u32) -> Option<u32> {
        match self.classes[lun as usize] {
            0 => None,
            classes => Some(self.take_class(lun, self.next_class(lun, classes))),
        }
    }

    /// Takes the block that was erased first among a LUN's erased blocks of one class, of which there must be at least
    /// one.
    #[inline]
    pub(crate) fn take_class(&mut self, lun: u32, class: u32) -> u32 {
        let list = self.list(lun, class);
        let block = self.lists[list].head;
        self.lists[list].head = self.blocks[block as usize].next;
        if self.lists[list].head == NONE {
            self.lists[list].tail = NONE;
            self.classes[lun as usize] &= !(1 << class);
        }
        self.free[lun as usize] -= 1;
        self.blocks[block as usize].free = false;
        block
    }

    #[inline]
    pub(super) fn list(&self, lun: u32, class: u32) -> usize {
        (lun * self.speeds + class) as usize
    }

    /// Returns the speed class of a block (0 is the fastest) if blocks are sorted by speed; otherwise 0.
    #[inline]
    pub(crate) fn class(&self, block: u32, cells: &Cells) -> u32 {
        cells.speeds().filter(|_| self.speeds > 1).map_or(0, |speeds| speeds.class(block))
    }

    /// Counts an erasure of a block, and notes the LUN if its erase counts now differ too much.
    #[inline]
    pub(crate) fn erased(&mut self, lun: u32, block: u32) {
        let erases = &mut self.blocks[block as usize].erases;
        *erases += 1;
        if let Some(threshold) = self.threshold
            && erases.saturating_sub(self.floors[lun as usize]) > threshold
        {
            self.uneven = Some(lun);
        }
    }

    /// Returns by how much the erase counts of a LUN's blocks may differ under wear levelling.
    pub(crate) fn threshold(&self) -> Option<u32> {
        self.threshold
    }

    /// Returns the LUN whose erase counts were last seen to differ too much.
    #[inline]
    pub(crate) fn uneven(&self) -> Option<u32> {
        self.uneven
    }

    /// Sets the erase count against which a LUN's blocks are measured, and forgets that a LUN was seen to be uneven.
    pub(crate) fn set_floor(&mut self, lun: u32, floor: u32) {
        self.uneven = None;
        self.floors[lun as usize] = floor;
    }

    /// Adds to the erase count of a block.
    pub(super) fn add_erases(&mut self, block: u32, erases: u32) {
        let count = &mut self.blocks[block as usize].erases;
        *count = count.saturating_add(erases).min(MOST_ERASES);
    }

    /// Adds to the erase count against which a LUN's blocks are measured.
    pub(super) fn raise_floor(&mut self, lun: u32, erases: u32) {
        let floor = &mut self.floors[lun as usize];
        *floor = floor.saturating_add(erases).min(MOST_ERASES);
    }

    /// Returns the block numbers of a LUN.
    pub(crate) fn of_lun(&self, lun: u32) -> std::ops::Range<u32> {
        lun * self.blocks_per_lun..(lun + 1) * self.blocks_per_lun
    }

    /// Returns the erase count of a block.
    #[inline]
    pub(crate) fn erase_count(&self, block: u32) -> u32 {
        self.blocks[block as usize].erases
    }

    /// Removes an erased block from the pool and puts another in its place.
    ///
    /// # Panics
    /// If `out` is not in the pool, or blocks are sorted by speed.
    pub(crate) fn exchange(&mut self, out: u32, into: u32) {
        assert!(self.speeds == 1, "blocks are kept by speed");
        assert!(self.blocks[out as usize].free, "block {out} is not in the pool");
        let next = self.blocks[out as usize].next;
        let list = &mut self.lists[(out / self.blocks_per_lun) as usize];
        if list.tail == out {
            list.tail = into;
        }
        if list.head == out {
            list.head = into;
        } else {
            let mut before = list.head;
            while self.blocks[before as usize].next != out {
                before = self.blocks[before as usize].next;
            }
            self.blocks[before as usize].next = into;
        }
        self.blocks[out as usize].free = false;
        self.blocks[into as usize].free = true;
        self.blocks[into as usize].next = next;
    }

    /// Gives back an erased block to a pool whose blocks are not sorted by speed.
    pub(crate) fn push(&mut self, block: u32) {
        self.push_class(block, 0);
    }

    /// Gives an erased block of this speed class back to the pool.
    pub(crate) fn push_class(&mut self, block: u32, class: u32) {
        let lun = block / self.blocks_per_lun;
        let list = self.list(lun, class);
        self.note_order(block);
        self.blocks[block as usize].next = NONE;
        self.blocks[block as usize].free = true;
        match self.lists[list].tail {
            NONE => self.lists[list].head = block,
            tail => self.blocks[tail as usize].next = block,
        }
        self.lists[list].tail = block;
        self.classes[lun as usize] |= 1 << class;
        self.free[lun as usize] += 1;
    }

    /// Returns the erase counts of all blocks.
    pub(crate) fn erases(&self) -> impl Iterator<Item = u32> + '_ {
        self.blocks.iter().map(|block| block.erases)
    }
}

/// The highest erase count that a block of a saved state may have, so that a run can still erase the block.
const MOST_ERASES: u32 = u32::MAX / 2;

/// Which blocks of a saved state are claimed: each belongs to one part only.
#[derive(Debug)]
pub(crate) struct Claims {
    taken: Bits,
    blocks: u32,
}

impl Claims {
    /// Claims a block for the part of the FTL that calls this.
    pub(crate) fn claim(&mut self, block: u32) -> Result<(), Damage> {
        if block >= self.blocks || self.taken.get(block) {
            return Damage::impossible(format!("block {block} is not there, or in two places"));
        }
        self.taken.set(block);
        Ok(())
    }
}

impl BlockPool {
    /// Writes the state of the pool; which blocks are retired follows from the erase counts.
    pub(crate) fn save(&self, out: &mut Encoder) -> std::io::Result<()> {
        debug_assert!(self.speeds == 1, "a run's alone");
        let mut erased = Vec::new();
        for list in &self.lists {
            let mut block = list.head;
            while block != NONE {
                erased.push(block);
                block = self.blocks[block as usize].next;
            }
        }
        let erases: Vec<u32> = self.erases().collect();
        out.value(&(erases, erased, &self.floors, self.uneven, self.lives.spares()))
    }

    /// Restores the saved pool into a new one. The other parts must then claim the blocks that are not in it,
    /// after which [`BlockPool::retire`] retires the unclaimed ones.
    pub(crate) fn load(&mut self, from: &mut Decoder) -> Result<Claims, Damage> {
        type Saved = (Vec<u32>, Vec<u32>, Vec<u32>, Option<u32>, Vec<u32>);
        let (erases, erased, floors, uneven, spares): Saved = from.value()?;
        let luns = self.floors.len();
        if erases.len() != self.blocks.len()
            || floors.len() != luns
            || uneven.is_some_and(|lun| lun as usize >= luns)
        {
            return Damage::impossible("it holds a device of another size");
        }
        if let Some(block) = erases.iter().position(|&count| count > MOST_ERASES) {
            return Damage::impossible(format!("block {block} was erased {} times", erases[block]));
        }
        let mut claims = Claims { taken: Bits::new(self.blocks.len()), blocks: self.count() };
        erased.iter().chain(&spares).try_for_each(|&block| claims.claim(block))?;
        self.find(|block| erases[block as usize], &erased);
        (self.floors, self.uneven) = (floors, uneven);
        self.set_spares(&spares)?;
        Ok(claims)
    }

    /// Retires the unclaimed blocks of a loaded pool.
    pub(crate) fn retire(&mut self, claims: &Claims) -> Result<(), Damage> {
        match (0..self.count()).find(|&block| claims.taken.get(block) == self.is_past_limit(block)) {
            Some(block) if claims.taken.get(block) => {
                Damage::impossible(format!("block {block} is in use past its limit"))
            }
            Some(block) => Damage::impossible(format!("block {block} is nobody's")),
            None => self.retire_worn(),
        }
    }
}
