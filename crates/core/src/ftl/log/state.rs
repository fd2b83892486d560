//! A log's saved state: its small parts as they are, and of the large ones the map alone.
//!
//! Which slots are valid, and who owns them, follows from the map. Stale owners of invalid slots
//! are not kept: nothing reads them.

use std::io;

use super::{COPIED, Log, Shape};
use crate::util::codec::{Damage, Decoder, Encoder};
use crate::util::{Bits, NONE, memory};

fn corrupt<T>(what: String) -> Result<T, Damage> {
    Err(Damage::Corrupt(what))
}

impl Log {
    /// Writes the map; the rest of the log is serialised as a value.
    ///
    /// # Errors
    /// The output's.
    pub(crate) fn save_map(&self, out: &mut Encoder) -> io::Result<()> {
        out.words(&self.map)
    }

    /// Completes a deserialised log of this shape, on a device of `blocks` erase blocks. In check
    /// mode every owner's version counts from 1 again.
    ///
    /// # Errors
    /// [`Damage`] if the log is of another shape, or the map cannot be that of a log.
    pub(crate) fn load_map(
        &mut self,
        shape: Shape,
        blocks: u32,
        check: bool,
        from: &mut Decoder,
    ) -> Result<(), Damage> {
        if self.shape != shape || self.blocks.len() != blocks as usize {
            return corrupt("it holds a log of another shape".into());
        }
        let slots = blocks * self.slots_per_block;
        self.map = memory::filled(0, shape.owners as usize);
        from.words(&mut self.map)?;
        self.spare = vec![0; slots as usize];
        self.valid = Bits::new(slots as usize);
        for (owner, &slot) in self.map.iter().enumerate() {
            if slot == NONE {
                continue;
            }
            if slot >= slots || self.valid.get(slot) {
                return corrupt(format!("page {owner} lies in slot {slot}, which is not its own"));
            }
            self.valid.set(slot);
            self.spare[slot as usize] = owner as u32;
        }
        self.copied = Vec::with_capacity(COPIED);
        self.leaving = Vec::with_capacity(self.slots_per_block as usize);
        if check {
            self.medium = Some(self.policed());
        }
        Ok(())
    }
}
