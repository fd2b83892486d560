//! The owners in the spare areas of slots.

use std::ops::Range;

use crate::util::{Bits, Divider};

/// Number of slots from which on a device's owners are kept as what differs from a device written in order.
const LARGE: usize = 16 << 20;

/// The owner in each slot's spare area.
///
/// Of a large device, what is kept of an owner is its difference (exclusive or) from the owner that the slot would have
/// if the device were written once, in order. Where it was, that is 0, and takes up no memory.
#[derive(Debug)]
pub(crate) struct Spare {
    kept: Vec<u32>,
    order: Option<Order>,
}

/// Which owner each slot has if owners are written in order, and their pages go to the LUNs in turn.
#[derive(Clone, Debug)]
struct Order {
    by_page: Divider,
    by_lun: Divider,
    luns: u32,
    /// Number of pages of each LUN before the one where the first owner lies; `None` until an owner is written.
    skipped: Option<u32>,
}

impl Order {
    /// Returns the LUN of a slot, the number of its page there, and its place in the page.
    fn place(&self, slot: u32) -> (u32, u32, u32) {
        let page = self.by_page.div(slot);
        (self.by_lun.div(page), self.by_lun.rem(page), self.by_page.rem(slot))
    }

    fn owner(&self, slot: u32) -> u32 {
        let ((lun, page, at), skipped) = (self.place(slot), self.skipped.unwrap_or(0));
        let pages = page.wrapping_sub(skipped).wrapping_mul(self.luns).wrapping_add(lun);
        pages.wrapping_mul(self.by_page.get()).wrapping_add(at)
    }
}

impl Clone for Spare {
    fn clone(&self) -> Spare {
        let Some(order) = &self.order else { return Spare { kept: self.kept.clone(), order: None } };
        let mut kept = vec![0; self.kept.len()];
        let differs = self.kept.iter().enumerate().filter(|&(_, &word)| word != 0);
        differs.for_each(|(slot, &word)| kept[slot] = word);
        Spare { kept, order: Some(order.clone()) }
    }
}

impl Spare {
    /// Makes the spare areas of erased slots, of which `per_page` are a page.
    pub(crate) fn new(slots: u32, per_page: u32, luns: u32) -> Spare {
        let order = (slots as usize >= LARGE).then(|| Order {
            by_page: Divider::new(per_page),
            by_lun: Divider::new(slots / per_page / luns),
            luns,
            skipped: None,
        });
        Spare { kept: vec![0; slots as usize], order }
    }

    /// Returns the number of slots.
    pub(crate) fn len(&self) -> usize {
        self.kept.len()
    }

    /// Returns the owner in a slot that was programmed.
    #[inline]
    pub(crate) fn of(&self, slot: u32) -> u32 {
        let kept = self.kept[slot as usize];
        self.order.as_ref().map_or(kept, |order| kept ^ order.owner(slot))
    }

    /// Passes on the slots of a set in a range, each with its owner.
    #[inline]
    pub(crate) fn each(&self, set: &Bits, range: Range<u32>, mut take: impl FnMut(u32, u32)) {
        match &self.order {
            None => set.each(range, |slot| take(slot, self.kept[slot as usize])),
            Some(_) => set.each(range, |slot| take(slot, self.of(slot))),
        }
    }

    /// Sets the owner in a slot.
    #[inline]
    pub(crate) fn set(&mut self, slot: u32, owner: u32) {
        match &mut self.order {
            None => self.kept[slot as usize] = owner,
            Some(order) => Spare::set_difference(&mut self.kept[slot as usize], order, slot, owner),
        }
    }

    /// Sets the owners in the slots from `first` on.
    #[inline]
    pub(crate) fn set_all(&mut self, first: u32, owners: impl ExactSizeIterator<Item = u32>) {
        if self.order.is_some() {
            return (first..).zip(owners).for_each(|(slot, owner)| self.set(slot, owner));
        }
        let kept = &mut self.kept[first as usize..][..owners.len()];
        kept.iter_mut().zip(owners).for_each(|(kept, owner)| *kept = owner);
    }

    #[inline(never)] // keeps the path of a small device short
    fn set_difference(kept: &mut u32, order: &mut Order, slot: u32, owner: u32) {
        if order.skipped.is_none() {
            let (_, page, _) = order.place(slot);
            order.skipped = Some(page.wrapping_sub(order.by_page.div(owner) / order.luns));
        }
        let differs = owner ^ order.owner(slot);
        // A page of memory that is only read takes up none.
        if *kept != differs {
            *kept = differs;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_owner_is_found_whatever_the_order() {
        let slots = LARGE as u32 + 4096;
        for (per_page, luns) in [(1, 1), (4, 8)] {
            let mut spare = Spare::new(slots, per_page, luns);
            let mut pairs: Vec<(u32, u32)> = (0..5000).map(|n| (n * 3301 % slots, n)).collect();
            pairs.push((4, u32::MAX));
            pairs.iter().for_each(|&(slot, owner)| spare.set(slot, owner));
            let copy = spare.clone();
            for of in [spare, copy] {
                assert!(pairs.iter().all(|&(slot, owner)| of.of(slot) == owner));
            }
        }
    }

    #[test]
    fn owners_written_in_order_take_up_nothing() {
        let (slots, per_page, luns) = (LARGE as u32, 4, 8);
        let mut spare = Spare::new(slots, per_page, luns);
        let per_lun = slots / luns;
        // The first pages of each LUN stay erased, as those of a reserve do.
        for owner in 0..1 << 16 {
            let page = owner / per_page;
            let slot = page % luns * per_lun + (page / luns + 1024) * per_page + owner % per_page;
            spare.set(slot, owner);
            assert_eq!(spare.of(slot), owner);
        }
        assert!(spare.kept.iter().all(|&word| word == 0));
    }
}
