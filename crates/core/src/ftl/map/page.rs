//! The full page map in RAM: every translation is free.
//!
//! It is the upper bound for every demand-cached map, and a mapping cache as large as the map must equal it once
//! the cache is warm.

use super::context::Context;
use super::pages::TranslationPages;
use super::translation::Translation;
use super::units::UnitSpace;
use crate::ftl::settings::Settings;

/// The name under which this FTL is registered.
pub const NAME: &str = "page";
/// Description in one line, for `ftlab components`.
pub const DOC: &str = "full page map in RAM";
/// The keys that only page has: none.
pub type Keys = ();

/// The full map. It stores nothing: the log's own map is the mapping.
#[derive(Clone, Copy, Debug, Default)]
pub struct FullMap;

impl Translation for FullMap {
    const ON_FLASH: bool = false;

    fn new(_settings: &Settings, _space: &UnitSpace) -> FullMap {
        FullMap
    }

    #[inline]
    fn translate(&mut self, _lpn: u32, _write: bool, _context: &mut Context) -> bool {
        true
    }

    fn prefetch(&mut self, _page: u32, _missing: &[u32], _context: &mut Context) {}

    #[inline]
    fn moved(&mut self, _lpn: u32, _pages: &TranslationPages) {}

    #[inline]
    fn settle(&mut self, _context: &mut Context) {}

    fn write_back(&mut self, _context: &mut Context) -> bool {
        false
    }

    #[inline]
    fn cached(&self, _lpn: u32, _pages: &TranslationPages) -> bool {
        true
    }

    fn each_cached(&self, pages: &TranslationPages, visit: &mut dyn FnMut(u32)) {
        (0..pages.lpns()).for_each(visit);
    }

    fn capacity(&self) -> Option<u32> {
        None
    }

    fn dirty(&self, _lpn: u32, _pages: &TranslationPages) -> bool {
        true
    }
}
