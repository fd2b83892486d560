//! The entries of a mapping cache, and which of them are dirty.

use super::context::Context;
use super::policy::Policy;
use super::units::UnitSpace;
use crate::util::{Divider, Lru, NONE};

/// A cached entry, with the policy's note on it.
#[derive(Clone, Copy, Debug, Default)]
pub struct Mapping<N> {
    pub(super) note: N,
    dirty: bool,
    /// The next newer dirty entry of its translation page; the newest one points to the oldest.
    prev: u32,
    /// The next older dirty entry of its translation page, or [`NONE`].
    next: u32,
    /// Number of the load that brought the entry in.
    load: u32,
}

/// The cached entries by LPN, and the dirty ones by translation page. Callers that add an entry, or make one
/// dirty or clean, pass in the policy, which is then told about it.
#[derive(Clone, Debug)]
pub struct Entries<N> {
    pub(super) slab: Lru<Mapping<N>>,
    /// Newest dirty entry of each translation page.
    dirty: Vec<u32>,
    per_page: Divider,
}

impl<N: Copy + Default> Entries<N> {
    /// Makes room for `capacity` entries of these translation pages; without a bound, the room grows as needed.
    pub(super) fn new(capacity: Option<u32>, space: &UnitSpace) -> Entries<N> {
        Entries {
            slab: Lru::new(capacity),
            dirty: vec![NONE; space.units as usize],
            per_page: Divider::new(space.entries),
        }
    }

    /// Returns the LPN of an entry.
    #[inline]
    pub(super) fn lpn(&self, id: u32) -> u32 {
        self.slab.key(id)
    }

    /// Returns the translation page of an entry.
    #[inline]
    pub(super) fn page(&self, id: u32) -> u32 {
        self.per_page.div(self.slab.key(id))
    }

    /// Returns the policy's note on an entry.
    #[inline]
    pub(super) fn note(&mut self, id: u32) -> &mut N {
        &mut self.slab.value_mut(id).note
    }

    /// Returns the number of the load that brought an entry in.
    #[inline]
    pub(super) fn load(&self, id: u32) -> u32 {
        self.slab.value(id).load
    }

    /// Whether an entry has an update that is not yet on flash.
    #[inline]
    pub(super) fn is_dirty(&self, id: u32) -> bool {
        self.slab.value(id).dirty
    }

    /// Returns the dirty entries of a translation page, newest first.
    pub(super) fn dirty_of(&self, page: u32) -> impl Iterator<Item = u32> + '_ {
        let known = |id| (id != NONE).then_some(id);
        std::iter::successors(known(self.dirty[page as usize]), move |&id| known(self.slab.value(id).next))
    }

    /// Returns the oldest dirty entry of a translation page, or [`NONE`].
    #[inline]
    pub(super) fn oldest_dirty_of(&self, page: u32) -> u32 {
        match self.dirty[page as usize] {
            NONE => NONE,
            newest => self.slab.value(newest).prev,
        }
    }

    /// Adds a clean entry; returns its id.
    #[inline(always)] // called for every miss
    pub(super) fn insert<P: Policy<Note = N>>(&mut self, policy: &mut P, lpn: u32, load: u32) -> u32 {
        let id = self.slab.insert(lpn, Mapping { load, ..Mapping::default() });
        policy.insert(self, id);
        id
    }

    /// Removes a clean entry.
    #[inline]
    pub(super) fn remove<P: Policy<Note = N>>(&mut self, policy: &mut P, id: u32) {
        policy.remove(self, id);
        self.slab.remove(id);
    }

    /// Evicts an entry, after writing back its update, if it has one.
    #[inline(always)] // called for every miss
    pub(super) fn evict<P: Policy<Note = N>>(&mut self, policy: &mut P, id: u32, context: &mut Context) {
        if self.is_dirty(id) {
            policy.write_back_victim(self, id, context);
        }
        self.remove(policy, id);
    }

    /// Makes room for an entry, by evicting another one if the cache is full.
    #[inline(always)] // called for every miss
    pub(super) fn make_room<P: Policy<Note = N>>(&mut self, policy: &mut P, context: &mut Context) {
        if self.slab.is_full() {
            let id = policy.victim(self);
            self.evict(policy, id, context);
        }
    }

    /// Notes that an entry has an update that is not yet on flash.
    #[inline]
    pub(super) fn make_dirty<P: Policy<Note = N>>(&mut self, policy: &mut P, id: u32) {
        if !self.is_dirty(id) {
            self.link(id, |other| policy.is_newer(other, id));
            policy.marked(self, id, true);
        }
    }

    /// Notes that an entry's update is on flash.
    pub(super) fn make_clean<P: Policy<Note = N>>(&mut self, policy: &mut P, id: u32) {
        self.unlink(id);
        policy.marked(self, id, false);
    }

    /// Makes a dirty entry the newest of its translation page.
    pub(super) fn renew(&mut self, id: u32) {
        self.unlink(id);
        self.link(id, |_| false);
    }

    /// Marks all entries of a translation page as clean; returns how many were dirty.
    pub(super) fn clean<P: Policy<Note = N>>(&mut self, policy: &mut P, page: u32) -> u32 {
        let mut id = std::mem::replace(&mut self.dirty[page as usize], NONE);
        let mut cleaned = 0;
        while id != NONE {
            let mapping = self.slab.value_mut(id);
            mapping.dirty = false;
            let next = mapping.next;
            policy.marked(self, id, false);
            id = next;
            cleaned += 1;
        }
        cleaned
    }

    /// Updates the flash copy of a translation page with everything known about the page, after reading that copy;
    /// `moved` is the number of the page's moved mappings that have no cache entry.
    pub(super) fn rewrite<P: Policy<Note = N>>(
        &mut self,
        policy: &mut P,
        page: u32,
        moved: u32,
        context: &mut Context,
    ) {
        context.read(page);
        let cleaned = self.clean(policy, page);
        context.program(page, cleaned + moved);
    }

    /// Returns a dirty entry, if there is one.
    pub(super) fn any_dirty(&self) -> Option<u32> {
        self.dirty.iter().copied().find(|&id| id != NONE)
    }

    /// Makes an entry dirty and puts it, in the order of age, behind the newer dirty entries of its page.
    #[inline]
    fn link(&mut self, id: u32, newer: impl Fn(u32) -> bool) {
        let page = self.page(id) as usize;
        let newest = self.dirty[page];
        let (mut before, mut after) = (NONE, newest);
        while after != NONE && newer(after) {
            (before, after) = (after, self.slab.value(after).next);
        }
        let oldest = if newest == NONE { id } else { self.slab.value(newest).prev };
        let mapping = self.slab.value_mut(id);
        (mapping.dirty, mapping.next) = (true, after);
        mapping.prev = if before == NONE { oldest } else { before };
        match before {
            NONE => self.dirty[page] = id,
            before => self.slab.value_mut(before).next = id,
        }
        match after {
            NONE => self.slab.value_mut(self.dirty[page]).prev = id,
            after => self.slab.value_mut(after).prev = id,
        }
    }

    fn unlink(&mut self, id: u32) {
        let page = self.page(id) as usize;
        let Mapping { prev, next, .. } = *self.slab.value(id);
        let newest = self.dirty[page];
        match newest {
            newest if newest == id => self.dirty[page] = next,
            _ => self.slab.value_mut(prev).next = next,
        }
        self.slab.value_mut(if next == NONE { newest } else { next }).prev = prev;
        self.slab.value_mut(id).dirty = false;
    }
}
