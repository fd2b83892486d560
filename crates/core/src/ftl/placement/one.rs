//! One: all data of a LUN goes into one open block, new versions and copies alike.

use super::{Own, Page, Placement, Space, Writable};

pub(super) const NAME: &str = super::ONE;
pub(super) const DOC: &str = "all pages in one open block of their LUN";
pub type Keys = ();

#[derive(Clone, Debug)]
pub(super) struct One;

impl Placement for One {
    fn new(_keys: &Own, _space: Space) -> One {
        One
    }

    fn front(&mut self, _page: Page, _blocks: &(impl Writable + ?Sized)) -> u32 {
        0
    }
}
