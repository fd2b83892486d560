//! What a mapping cache must provide.

use std::io;

use super::context::Context;
use super::pages::TranslationPages;
use super::units::UnitSpace;
use crate::config::Contradiction;
use crate::flash::ByCause;
use crate::ftl::settings::Settings;
use crate::util::Stat;
use crate::util::codec::{Damage, Decoder, Encoder};

/// A mapping cache: how logical addresses are resolved, and what that costs.
pub trait Translation: Sized {
    /// Whether translation pages exist at all.
    const ON_FLASH: bool;

    /// Whether translation pages name the slot of each LPN, so that the host may hold entries of them.
    const HAS_ENTRIES: bool = Self::ON_FLASH;

    /// The key that sets the size of a translation unit.
    const UNIT_KEY: &'static str = "flash.page";

    /// Whether [`Translation::settle`] is called after each page written, even if no mapping has moved.
    const SETTLES_ALWAYS: bool = false;

    /// Returns the size of a translation unit in bytes.
    fn unit_bytes(settings: &Settings) -> u32 {
        settings.flash.page_bytes
    }

    /// Whether translation units are gathered into NAND pages ([`super::units`]); otherwise each unit is a page and is
    /// written back by itself.
    fn gathers(_settings: &Settings) -> bool {
        false
    }

    /// Returns the name of the FTL that serves in place of this one under these settings, if another does.
    fn served_by(_settings: &Settings) -> Option<&'static str> {
        None
    }

    /// Makes the cache of `settings`, for these translation units.
    fn new(settings: &Settings, space: &UnitSpace) -> Self;

    /// Checks the settings on which the cache depends.
    ///
    /// # Errors
    /// A [`Contradiction`] that names the key to change.
    fn check(_settings: &Settings) -> Result<(), Contradiction> {
        Ok(())
    }

    /// Resolves one LPN; a write leaves its entry dirty. Returns true on a hit.
    fn translate(&mut self, lpn: u32, write: bool, context: &mut Context) -> bool;

    /// Brings in entries of one translation page, none of them cached, with one read.
    fn prefetch(&mut self, page: u32, missing: &[u32], context: &mut Context);

    /// Notes that garbage collection moved this LPN's data; `settle` charges the cost.
    fn moved(&mut self, lpn: u32, pages: &TranslationPages);

    /// Updates the flash copies of moved entries that are not cached.
    fn settle(&mut self, context: &mut Context);

    /// Writes back one translation page with dirty entries; returns false if there is none.
    fn write_back(&mut self, context: &mut Context) -> bool;

    /// Whether a translation would hit now.
    fn cached(&self, lpn: u32, pages: &TranslationPages) -> bool;

    /// Calls `visit` with every LPN whose translation would hit now.
    fn each_cached(&self, pages: &TranslationPages, visit: &mut dyn FnMut(u32));

    /// Returns the number of entries that the cache can hold; `None`: no bound.
    fn capacity(&self) -> Option<u32>;

    /// Whether the cache holds an update, not yet on flash, of this LPN's entry.
    fn dirty(&self, lpn: u32, pages: &TranslationPages) -> bool;

    /// Whether entries are updated without being fetched first, so that no write misses.
    fn updates_free(&self) -> bool {
        false
    }

    /// Checks, in check mode and in a loaded state, what the cache itself has of where an LPN is; `slot` is the truth
    /// ([`crate::util::NONE`]: nowhere).
    fn verify(&self, _lpn: u32, _slot: u32) -> Result<(), String> {
        Ok(())
    }

    /// Makes all mappings durable, if that is part of a host's flush.
    fn flush(&mut self, _context: &mut Context) {}

    /// Returns the cache's own figures; called when a report is drawn up.
    fn stats(&self) -> Vec<Stat> {
        Vec::new()
    }

    /// Counts only the data programmed from now on; `programs` has the number of all programs so far
    /// ([`crate::flash::Counts::programs`]).
    fn count_from(&mut self, _programs: &ByCause<u64>) {}

    /// Writes the contents of the cache as they are before a run.
    ///
    /// # Errors
    /// An error of the output.
    fn save(&self, _out: &mut Encoder) -> io::Result<()> {
        Ok(())
    }

    /// Fills a new cache with the contents of a saved one.
    ///
    /// # Errors
    /// [`Damage`] if what is read is incomplete or impossible.
    fn load(&mut self, _pages: &TranslationPages, _from: &mut Decoder) -> Result<(), Damage> {
        Ok(())
    }
}
