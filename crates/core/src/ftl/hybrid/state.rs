//! A hybrid FTL's saved state: its small parts as they are, and of the large ones the map alone.

use std::io;

use super::layout::Shape;
use super::store::Store;
use crate::flash::variation::Speeds;
use crate::ftl::settings::Settings;
use crate::util::codec::{Damage, Decoder, Encoder};
use crate::util::{Bits, NONE};

impl Store {
    /// Writes the map; the rest of the store is serialised as a value.
    ///
    /// # Errors
    /// The output's.
    pub(crate) fn save_map(&self, out: &mut Encoder) -> io::Result<()> {
        out.words(&self.map)
    }

    /// Completes a deserialised store. In check mode every page's version counts from 1 again.
    ///
    /// # Errors
    /// [`Damage`] if the store is of another shape, or the map cannot be that of a store.
    pub(crate) fn load_map(
        &mut self,
        settings: &Settings,
        check: bool,
        from: &mut Decoder,
    ) -> Result<(), Damage> {
        let corrupt = |what: &str| Err(Damage::Corrupt(what.into()));
        // These are the run's, not the state's.
        let Shape { csm_threshold, power_safe, .. } = Shape::new(settings);
        (self.shape.csm_threshold, self.shape.power_safe) = (csm_threshold, power_safe);
        if self.shape != Shape::new(settings) || self.blocks.len() != self.shape.blocks() as usize {
            return corrupt("it holds a device of another size");
        }
        let flash = &settings.flash;
        let speeds = Speeds::new(flash, settings.seed, flash.pe_cycles as u32);
        self.pool.set_speeds(flash.program_ns, speeds);
        let pages = self.shape.blocks() * self.shape.pages_per_block;
        self.map = vec![0; self.shape.owners() as usize];
        from.words(&mut self.map)?;
        self.spare = vec![0; pages as usize];
        self.valid = Bits::new(pages as usize);
        for (lpn, &page) in self.map.iter().enumerate() {
            if page == NONE {
                continue;
            }
            if page >= pages || self.valid.get(page) {
                return corrupt(&format!("page {lpn} lies in page {page}, which is not its own"));
            }
            self.valid.set(page);
            self.spare[page as usize] = lpn as u32;
        }
        if check {
            self.remember();
        }
        Ok(())
    }
}
