//! Victim selection of garbage collection: which closed block of a LUN is collected next.
//!
//! A [`crate::ftl::log::Log`] tells its policy about every block that closes, loses a valid slot or leaves, and asks it
//! for a victim. To add a policy, add a file here with `NAME`, `DOC`, `Keys` and a type that implements [`Victims`],
//! and one line to the registry below. A saved device state holds the closed blocks in the order of [`Victims::each`],
//! and when the state is loaded, they are closed again in that order.
//!
//! **No policy deadlocks.** A victim whose valid slots fill as many pages as the block has gains nothing when it
//! is collected; any other block is called *gainful*. When a LUN is collected, at least one of its `C` closed
//! blocks is gainful (see [`crate::ftl::log`]), and collecting one block changes no other closed block, so a
//! gainful block stays gainful until it is the victim. Every policy takes a gainful block within `C + 1`
//! collections, or within as many collections as the log has blocks:
//!
//! - `greedy` takes a block that gains most, the one with the fewest valid slots, which is gainful if any is;
//!   `cost-benefit` considers only gainful blocks.
//! - `fifo` takes the oldest block, gainful or not: this is the policy that the closed form of FIFO cleaning describes.
//!   A gainless victim's data goes into the youngest block, so each collection brings the first gainful block one place
//!   nearer to the head.
//! - `cyclic` goes round the blocks in the order of their numbers. A round visits at most the blocks that were closed,
//!   open or erased when it began, and so comes to the first gainful block.
//! - `windowed-greedy` takes the block that gains most among the `W` oldest. While none of them is gainful, each
//!   collection removes one of them and the next oldest block enters the window, so a gainful block enters within `C -
//!   W` collections and is taken at once.
//! - `random` and `d-choices` collect what they draw, gainful or not, again as their closed forms assume (with 64 pages
//!   per block and 7 % of spare space, 18 % of the blocks drawn at random are full). Draws may miss the gainful blocks
//!   for ever, so after `C` gainless collections in succession the victim is a block that gains most.
//!
//! The log counts gainless collections in succession and stops the run if there are more of them than it has
//! blocks.

mod bag;
mod lists;

use std::fmt::Debug;

use crate::config::parts::{dispatch, registry};
use crate::util::Stat;

pub use rand_xoshiro::Xoshiro256PlusPlus;

/// The blocks from which a policy chooses.
#[derive(Clone, Copy, Debug)]
pub struct Space {
    /// Number of LUNs; each victim is chosen among the blocks of one LUN.
    pub luns: u32,
    /// Number of blocks of each LUN; blocks are numbered LUN by LUN.
    pub blocks_per_lun: u32,
    /// Number of slots in a block.
    pub slots_per_block: u32,
    /// Number of slots in a NAND page.
    pub slots_per_page: u32,
    /// Number of open blocks among which the copies of one collection may be spread; each may end with a part-full
    /// page.
    pub fronts: u32,
}

impl Space {
    /// Returns the number of blocks on all LUNs.
    fn blocks(&self) -> u32 {
        self.luns * self.blocks_per_lun
    }

    /// Returns the largest number of slots that a collection can lose because pages stay part-full.
    fn lost(&self) -> u32 {
        self.fronts * (self.slots_per_page - 1)
    }

    /// Returns the least number of slots that collection can fill in any block; 0: none for certain.
    pub(crate) fn sure(&self) -> u64 {
        u64::from(self.slots_per_block.saturating_sub(self.lost()))
    }

    /// Whether collecting a block with this many valid slots gains a page.
    #[inline]
    pub fn gainful(&self, valid: u32) -> bool {
        valid + self.lost() < self.slots_per_block
    }
}

/// A closed block, as its policy is told about it.
#[derive(Clone, Copy, Debug)]
pub struct Closed {
    /// LUN of the block.
    pub lun: u32,
    /// Number of the block.
    pub block: u32,
    /// Number of its slots that are valid.
    pub valid: u32,
    /// Number of writes to the log so far, not counting copies.
    pub now: u64,
}

/// The circumstances in which a victim is chosen.
#[derive(Clone, Copy, Debug)]
pub struct Need {
    /// LUN to be collected.
    pub lun: u32,
    /// Number of writes to the log so far, not counting copies.
    pub now: u64,
    /// Number of collections in succession that have gained nothing.
    pub gainless: u32,
}

registry! {
    /// A registered policy for choosing victims.
    #[derive(Clone, Debug)]
    pub enum Policy or AnyVictims, for "ftl.gc";

    Greedy = greedy::Greedy;
    CostBenefit = cost_benefit::CostBenefit;
    Cyclic = cyclic::Cyclic;
    DChoices = d_choices::DChoices;
    Fifo = fifo::Fifo;
    Random = random::Random;
    WindowedGreedy = windowed_greedy::WindowedGreedy;
}

dispatch! {
    /// A policy for choosing victims. It holds the closed blocks of one log; `valid` returns the number of a block's
    /// valid slots.
    pub trait Victims: [Debug + Send + Sync];
    for Policy or AnyVictims (Clone by copy), which "ftl.gc", "ftl.translation_gc" may name;

    /// Makes the policy with these keys; `rng` is its own random stream.
    fn new(keys: &Own, space: Space, rng: Xoshiro256PlusPlus);
    /// Called when a block has become full.
    #[inline]
    fn close(self: &mut Self, closed: Closed);
    /// Called when a closed block has lost a valid slot.
    #[inline]
    fn invalidate(self: &mut Self, closed: Closed) = {};
    /// Returns the block to collect, which stays with the policy until it is removed. At least one closed block
    /// of the LUN is gainful. `erases` returns a block's erase count.
    #[inline]
    fn choose(self: &mut Self, need: Need, valid: &dyn Fn(u32) -> u32, erases: &dyn Fn(u32) -> u32) -> u32;
    /// Called when a closed block leaves the policy.
    #[inline]
    fn remove(self: &mut Self, lun: u32, block: u32, valid: &dyn Fn(u32) -> u32);
    /// Visits every block of a LUN that the policy holds, with the number of valid slots under which the block
    /// is filed, if the policy files blocks by this number. If the blocks are closed again in this order, they
    /// are chosen in the same order as now.
    fn each(self: &Self, lun: u32, visit: &mut dyn FnMut(u32, Option<u32>));
    /// Returns when a block that the policy holds was last modified; 0 if that does not matter to the policy.
    fn modified(self: &Self, block: u32) -> u64 = { 0 };
    /// Returns the policy's random stream, if it draws random numbers.
    fn random(self: &mut Self) -> Option<&mut Xoshiro256PlusPlus> = { None };
    /// Returns the policy's own figures; called when a report is drawn up.
    fn stats(self: &Self) -> Vec<Stat> = { Vec::new() };
}
