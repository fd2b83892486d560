//! GC apart: what the host writes in one open block, what garbage collection copies in another.
//!
//! Source: common practice. Page-mapped FTLs fill one block with new versions and one with copies, since what a victim
//! still holds has outlived the rest of it. Papers on placement compare with it; Wang et al. (FAST 2022, section 4.1)
//! call it SepGC.

use super::{Own, Page, Placement, Space, Writable};

pub(super) const NAME: &str = "gc-apart";
pub(super) const DOC: &str = "what the host writes in one open block of a LUN, copies in another";
pub type Keys = ();

#[derive(Clone, Debug)]
pub(super) struct GcApart;

impl Placement for GcApart {
    fn new(_keys: &Own, _space: Space) -> GcApart {
        GcApart
    }

    fn fronts(&self) -> u32 {
        2
    }

    fn front_name(&self, front: u32) -> String {
        ["host", "copies"][front as usize].into()
    }

    fn front(&mut self, page: Page, _blocks: &(impl Writable + ?Sized)) -> u32 {
        u32::from(page.is_copy())
    }
}
