//! The route: which LUN and which head of it take an owner's next version.
//!
//! The LUN is an owner's home, or that of a cursor where it does not follow from the owner: pages go to the LUNs in
//! turn if slots are smaller than pages, and to the next idle LUN under dynamic allocation. If slots are smaller than
//! pages, each front has a page buffer and a cursor of its own. Only the page at the front's cursor can be part-full:
//! it was begun by the host, and whoever else fills the rest of it lets the host go on elsewhere.

use super::Addresses;
use super::heads::{At, Heads};
use super::placed::Placed;
use crate::flash::superblocks::Superblocks;

/// Where the next pages are written.
#[derive(Clone, Debug)]
pub(crate) struct Route {
    /// Whether writes go to a cursor's LUN rather than to the owner's home LUN.
    pub(super) leads: bool,
    /// Front of the next write, if slots are smaller than pages, so that each front has a page buffer; otherwise 0.
    pub(super) front: u32,
    /// For each front that has a page buffer, the LUN whose page is filled there next; or one LUN, where dynamic
    /// allocation looks first.
    pub(super) luns: Vec<u32>,
    /// For each LUN, the head that was last written: trim pages go there, and copies for which no head has room.
    pub(super) facing: Vec<u32>,
    /// The placement, which says which front takes a page; without it there is one front. A placement by speed
    /// exists only during a run, so never in a saved state.
    pub(crate) placed: Option<Box<Placed>>,
}

impl Route {
    pub(crate) fn new(of: &Addresses) -> Route {
        Route {
            leads: !of.shape.serial && (of.shape.slots_per_page > 1 || of.shape.dynamic),
            front: 0,
            luns: vec![0],
            facing: vec![0; of.space.luns as usize],
            placed: None,
        }
    }

    /// Whether the placement chooses blocks by their speed.
    #[inline]
    pub(super) fn is_by_speed(&self) -> bool {
        self.placed.as_ref().is_some_and(|placed| placed.by_speed)
    }

    /// Returns the LUN of the cursor.
    pub(super) fn cursor(&self) -> u32 {
        self.luns[self.front as usize]
    }

    /// Returns the LUN of the next write of this owner. If slots are smaller than pages, pages are filled one after
    /// another, and the LUNs take turns.
    #[inline]
    pub(super) fn lun(&self, of: &Addresses, owner: u32) -> u32 {
        if self.leads { self.cursor() } else { of.home(owner) }
    }

    /// Returns the head of a LUN that was last written.
    pub(super) fn facing(&self, lun: u32) -> At {
        At { lun, head: self.facing[lun as usize] }
    }

    /// Returns the head of a LUN into which what the device itself writes goes first: the one last written, unless that
    /// leaves slots empty.
    pub(super) fn face_own(&mut self, heads: &Heads, lun: u32) -> At {
        let facing = &mut self.facing[lun as usize];
        if heads.has_gap(*facing) {
            *facing = 0;
        }
        At { lun, head: *facing }
    }

    /// Counts pages that were moved to the head last written on a LUN.
    pub(super) fn count_moved(&mut self, lun: u32, pages: u32) {
        if let Some(placed) = &mut self.placed {
            placed.counts[self.facing[lun as usize] as usize].1 += u64::from(pages);
        }
    }

    /// Returns the LUN of an owner's write after `ahead` other slots have been written, as far as it can be
    /// known now.
    #[inline(always)] // called for every request that waits
    pub(super) fn lun_ahead(&self, of: &Addresses, heads: &Heads, owner: u32, ahead: u32) -> u32 {
        if let Some(superblocks) = &of.shape.superblocks {
            return self.superblock_ahead(superblocks, (of, heads), owner, ahead);
        }
        if self.leads { self.cursor_ahead(of, heads, ahead) } else { of.home(owner) }
    }

    fn cursor_ahead(&self, of: &Addresses, heads: &Heads, ahead: u32) -> u32 {
        let at = At { lun: self.cursor(), head: self.front };
        of.luns.rem(at.lun + of.page(of.in_page(heads[at].next) + ahead))
    }

    /// Does what [`Route::lun_ahead`] does where the LUNs of a group take turns; returns a LUN of the flash.
    #[cold]
    fn superblock_ahead(
        &self,
        superblocks: &Superblocks,
        (of, heads): (&Addresses, &Heads),
        owner: u32,
        ahead: u32,
    ) -> u32 {
        let (at, units) = if self.leads {
            let at = At { lun: self.cursor(), head: self.front };
            let units = of.page(of.in_page(heads[at].next) + ahead);
            (At { lun: of.luns.rem(at.lun + units), ..at }, units)
        } else {
            (self.facing(of.home(owner)), ahead)
        };
        let unit = of.page(heads[at].next) + of.luns.div(units);
        superblocks.luns_of(at.lun).start + unit % superblocks.luns()
    }

    /// Returns the heads at the cursors.
    pub(super) fn buffers(&self) -> impl Iterator<Item = At> + '_ {
        (0..).zip(&self.luns).map(|(head, &lun)| At { lun, head })
    }
}
