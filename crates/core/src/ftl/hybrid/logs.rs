//! The use of log blocks, in which hybrid FTLs differ.

use super::layout::Shape;
use super::store::Store;
use crate::flash::{Cause, Work};
use crate::util::Stat;

/// The part of a write within one logical block.
#[derive(Clone, Copy, Debug)]
pub struct BlockWrite {
    /// Logical block that is written.
    pub logical: u32,
    /// First LPN of the part.
    pub first: u32,
    /// Whether the host cooperates, so that the FTL need not guess what is sequential.
    pub coop: bool,
}

/// The log blocks of a hybrid FTL: all that distinguishes BAST from FAST.
pub trait Logs: Sized + Clone {
    /// The name under which the FTL is registered.
    const NAME: &'static str;
    /// The least number of log blocks that a LUN needs.
    const LEAST: u64;

    /// Makes the lists of log blocks; no log block is in use yet.
    fn new(shape: &Shape) -> Self;
    /// Whether a part counts as sequential; asked before its first page is written.
    fn sequential(&mut self, part: BlockWrite, store: &mut Store, work: &mut Work) -> bool;
    /// Writes a page of a part to a log block, as [`Logs::sequential`] has decided for the part, with the
    /// merges that are needed before and after it.
    fn write(&mut self, lpn: u32, sequential: bool, cause: Cause, store: &mut Store, work: &mut Work);
    /// Makes room for a page of a logical block's trims, in the log block that takes this logical block's
    /// writes.
    fn make_room(&mut self, logical: u32, store: &mut Store, work: &mut Work);
    /// Writes a page of a logical block's trims into the log block that takes this logical block's writes.
    fn write_trims(&mut self, logical: u32, store: &mut Store, work: &mut Work);
    /// Visits the log blocks in an order from which they can be restored ([`Logs::found`]).
    fn each(&self, visit: &mut dyn FnMut(u32));
    /// Makes the lists of the log blocks that were found after a power cut, or in a saved state; `logs` lists them in
    /// the order of their last programs.
    ///
    /// # Errors
    /// A message, if there are more log blocks than allowed.
    fn found(logs: &[FoundLog], store: &Store) -> Result<Self, String>;
    /// After a cooperative switch merge of a logical block, erases the log blocks that no longer hold anything valid.
    fn release(&mut self, logical: u32, store: &mut Store, work: &mut Work);
    /// COOP_Query (Algorithms 3 and 4): fills `set`, which must be empty, with the logical blocks whose full or partial
    /// merge a block issue would cause, in ascending order.
    fn query(&self, first: u32, pages: u32, store: &Store, set: &mut Vec<u32>);
    /// Returns the log blocks' own figures; called when a report is drawn up.
    fn stats(&self) -> Vec<Stat> {
        Vec::new()
    }
    /// Check mode: verifies the log blocks in use.
    ///
    /// # Errors
    /// A message about the first log block that is wrong.
    fn verify(&self, store: &Store) -> Result<(), String>;
}

/// A log block that was found after a power cut or in a saved state.
#[derive(Clone, Copy, Debug)]
pub struct FoundLog {
    /// Number of the block.
    pub block: u32,
    /// Number of the block's first program or, in a saved state, its place among the log blocks.
    pub born: u64,
}
