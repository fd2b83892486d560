//! The frame of a mapping cache whose entries are written back as they leave the cache.
//!
//! [`Cached`] serves lookups from [`Entries`] and remembers what garbage collection has moved. A [`Policy`]
//! says which entry leaves a full cache; other things that a cache may do in its own way have defaults here.

use std::fmt::Debug;
use std::io;

use super::context::Context;
use super::entries::Entries;
use super::pages::TranslationPages;
use super::translation::Translation;
use super::units::UnitSpace;
use crate::config::Contradiction;
use crate::ftl::settings::Settings;
use crate::util::codec::{Damage, Decoder, Encoder};
use crate::util::{NONE, Stat};
use serde::Serialize;
use serde::de::DeserializeOwned;

/// What distinguishes one mapping cache from another. Entries are identified by ids below the capacity.
pub trait Policy: Sized + Clone + Debug {
    /// What the policy notes for each entry.
    type Note: Copy + Default + Debug + Serialize + DeserializeOwned;

    /// Name of the FTL that serves in place of this one if mappings are flushed after an amount of data; `None`:
    /// mappings cannot be flushed that way.
    const BY_AMOUNT: Option<&'static str> = None;

    /// Makes the policy of `settings`, for this many translation pages.
    fn new(settings: &Settings, pages: u32) -> Self;

    /// Checks the settings on which the policy depends.
    ///
    /// # Errors
    /// A [`Contradiction`] that names the key to change.
    fn check(_settings: &Settings) -> Result<(), Contradiction> {
        Ok(())
    }

    /// Returns the number of mappings that the cache can hold; `None`: no bound.
    fn capacity(settings: &Settings) -> Option<u32> {
        let bytes = settings.ftl.mapping_cache_bytes?;
        Some((bytes / u64::from(settings.ftl.entry_bytes)).clamp(1, settings.user_pages()) as u32)
    }

    /// Returns the number of entries that the cache can hold, which is below its capacity if the policy holds
    /// some mappings elsewhere.
    fn entries(settings: &Settings) -> Option<u32> {
        Self::capacity(settings)
    }

    /// Called when an entry is accessed.
    fn hit(&mut self, entries: &mut Entries<Self::Note>, id: u32);

    /// Called when an entry has come in.
    #[inline]
    fn insert(&mut self, _entries: &mut Entries<Self::Note>, _id: u32) {}

    /// Returns the entry that leaves a full cache.
    fn victim(&mut self, entries: &mut Entries<Self::Note>) -> u32;

    /// Called when an entry leaves.
    #[inline]
    fn remove(&mut self, _entries: &mut Entries<Self::Note>, _id: u32) {}

    /// Called when an entry has become dirty, or clean.
    #[inline]
    fn marked(&mut self, _entries: &mut Entries<Self::Note>, _id: u32, _dirty: bool) {}

    /// Whether an entry was accessed after another; always false if the dirty entries of a page are not ordered by age.
    #[inline]
    fn is_newer(&self, _id: u32, _other: u32) -> bool {
        false
    }

    /// Stores the update of a victim where it survives the eviction, and makes the victim clean.
    #[inline]
    fn write_back_victim(&mut self, entries: &mut Entries<Self::Note>, id: u32, context: &mut Context) {
        entries.rewrite(self, entries.page(id), 0, context);
    }

    /// Reads a translation page; returns the load's number.
    #[inline]
    fn load(&mut self, _entries: &mut Entries<Self::Note>, page: u32, context: &mut Context) -> u32 {
        context.load(page)
    }

    /// Serves an LPN that has no entry; returns the entry that the LPN gets, and whether its mapping was cached all the
    /// same.
    #[inline]
    fn fetch(&mut self, entries: &mut Entries<Self::Note>, lpn: u32, context: &mut Context) -> (u32, bool) {
        entries.make_room(self, context);
        let load = self.load(entries, context.pages.of(lpn), context);
        (entries.insert(self, lpn, load), false)
    }

    /// Brings in entries of one translation page; see [`Translation::prefetch`].
    fn prefetch(
        &mut self,
        entries: &mut Entries<Self::Note>,
        page: u32,
        missing: &[u32],
        context: &mut Context,
    ) {
        let load = self.load(entries, page, context);
        for &lpn in missing {
            entries.make_room(self, context);
            entries.insert(self, lpn, load);
        }
    }

    /// Returns the policy's own figures; called when a report is drawn up.
    fn stats(&self) -> Vec<Stat> {
        Vec::new()
    }

    /// Returns a dirty entry of the translation page that is to be written back next while no request is pending.
    fn first_dirty(&self, entries: &Entries<Self::Note>) -> Option<u32> {
        entries.any_dirty()
    }

    /// Writes back one translation page; see [`Translation::write_back`].
    fn write_back(&mut self, entries: &mut Entries<Self::Note>, context: &mut Context) -> bool {
        let Some(id) = self.first_dirty(entries) else { return false };
        self.write_back_victim(entries, id, context);
        true
    }

    /// Takes over the new slot of an LPN that has no entry, if the policy holds that mapping elsewhere; returns
    /// whether it does.
    #[inline]
    fn absorb(&mut self, _lpn: u32, _page: u32) -> bool {
        false
    }

    /// Whether the policy holds all mappings of a translation page.
    #[inline]
    fn holds(&self, _page: u32) -> bool {
        false
    }

    /// Whether the policy holds, outside the entries, a mapping of this LPN that is not yet on flash.
    fn is_updated(&self, _lpn: u32) -> bool {
        false
    }

    /// Visits the entries in an order in which they can be added again, one by one, from a saved state.
    fn each(&self, entries: &Entries<Self::Note>, visit: &mut dyn FnMut(u32));

    /// Whether another entry of a translation page can come in now.
    fn has_room(&self, entries: &Entries<Self::Note>, _page: u32) -> bool {
        !entries.slab.is_full()
    }

    /// Called with the saved note of an entry that has been added again, as a clean one, from a saved state.
    ///
    /// # Errors
    /// [`Damage`] if such an entry is impossible.
    fn restore(
        &mut self,
        _entries: &mut Entries<Self::Note>,
        _id: u32,
        _note: Self::Note,
    ) -> Result<(), Damage> {
        Ok(())
    }

    /// Writes the policy's state apart from the entries.
    ///
    /// # Errors
    /// An error of the output.
    fn save_rest(&self, _out: &mut Encoder) -> io::Result<()> {
        Ok(())
    }

    /// Reads what [`Policy::save_rest`] wrote, after the entries.
    ///
    /// # Errors
    /// [`Damage`] if what is read is incomplete or impossible.
    fn load_rest(
        &mut self,
        _entries: &mut Entries<Self::Note>,
        _pages: &TranslationPages,
        _from: &mut Decoder,
    ) -> Result<(), Damage> {
        Ok(())
    }
}

/// Refuses an amount of data after which mappings are to be flushed.
pub(super) fn by_eviction_alone(settings: &Settings) -> Result<(), Contradiction> {
    if settings.ftl.flush_bytes.is_none() {
        return Ok(());
    }
    let message = format!(
        "{} (ftl.kind) writes mappings back by eviction alone; set \"eviction\", or ftl.kind to dftl, minipage or \
         msftl",
        settings.ftl.kind
    );
    Err(Contradiction { key: "ftl.flush", message })
}

/// A mapping cache with the policy `P`.
#[derive(Clone, Debug)]
pub struct Cached<P: Policy> {
    pub(super) entries: Entries<P::Note>,
    pub(super) policy: P,
    capacity: Option<u32>,
    /// For each translation page, the number of its mappings that garbage collection has moved and that have no
    /// entry.
    moved: Vec<u32>,
    /// The pages that have moved mappings, in the order of the first move.
    moved_pages: Vec<u32>,
}

impl<P: Policy> Translation for Cached<P> {
    const ON_FLASH: bool = true;

    fn gathers(settings: &Settings) -> bool {
        Self::served_by(settings).is_some()
    }

    fn served_by(settings: &Settings) -> Option<&'static str> {
        P::BY_AMOUNT.filter(|_| settings.ftl.flush_bytes.is_some())
    }

    fn new(settings: &Settings, space: &UnitSpace) -> Cached<P> {
        Cached {
            entries: Entries::new(P::entries(settings), space),
            policy: P::new(settings, space.units),
            capacity: P::capacity(settings),
            moved: vec![0; space.units as usize],
            moved_pages: Vec::with_capacity(256),
        }
    }

    fn check(settings: &Settings) -> Result<(), Contradiction> {
        if P::BY_AMOUNT.is_none() {
            by_eviction_alone(settings)?;
        }
        P::check(settings)
    }

    #[inline]
    fn translate(&mut self, lpn: u32, write: bool, context: &mut Context) -> bool {
        let Cached { entries, policy, .. } = self;
        let (id, hit) = match entries.slab.find(lpn) {
            NONE => policy.fetch(entries, lpn, context),
            id => {
                context.work.need(entries.load(id));
                policy.hit(entries, id);
                (id, true)
            }
        };
        if write {
            entries.make_dirty(policy, id);
        }
        hit
    }

    fn prefetch(&mut self, page: u32, missing: &[u32], context: &mut Context) {
        self.policy.prefetch(&mut self.entries, page, missing, context);
    }

    #[inline]
    fn moved(&mut self, lpn: u32, pages: &TranslationPages) {
        let page = pages.of(lpn);
        match self.entries.slab.find(lpn) {
            NONE if self.policy.absorb(lpn, page) => (),
            NONE => {
                let count = &mut self.moved[page as usize];
                if *count == 0 {
                    self.moved_pages.push(page);
                }
                *count += 1;
            }
            id => self.entries.make_dirty(&mut self.policy, id),
        }
    }

    fn settle(&mut self, context: &mut Context) {
        if self.moved_pages.is_empty() {
            return;
        }
        for page in self.moved_pages.drain(..) {
            let moved = std::mem::take(&mut self.moved[page as usize]);
            self.entries.rewrite(&mut self.policy, page, moved, context);
        }
    }

    fn write_back(&mut self, context: &mut Context) -> bool {
        self.policy.write_back(&mut self.entries, context)
    }

    #[inline]
    fn cached(&self, lpn: u32, pages: &TranslationPages) -> bool {
        self.entries.slab.find(lpn) != NONE || self.policy.holds(pages.of(lpn))
    }

    fn each_cached(&self, pages: &TranslationPages, visit: &mut dyn FnMut(u32)) {
        let held = (0..pages.units()).filter(|&page| self.policy.holds(page)).map(|page| pages.range(page));
        held.for_each(|(first, end)| (first..end).for_each(&mut *visit));
        self.entries.slab.keys().for_each(visit);
    }

    fn stats(&self) -> Vec<Stat> {
        self.policy.stats()
    }

    fn capacity(&self) -> Option<u32> {
        self.capacity
    }

    fn dirty(&self, lpn: u32, _pages: &TranslationPages) -> bool {
        let id = self.entries.slab.find(lpn);
        (id != NONE && self.entries.is_dirty(id)) || self.policy.is_updated(lpn)
    }

    fn save(&self, out: &mut Encoder) -> io::Result<()> {
        debug_assert!(self.moved_pages.is_empty(), "every write settles what was moved");
        let mut kept = Vec::with_capacity(self.entries.slab.len() as usize);
        self.policy.each(&self.entries, &mut |id| {
            kept.push((self.entries.lpn(id), self.entries.is_dirty(id), self.entries.slab.value(id).note));
        });
        out.value(&kept)?;
        self.policy.save_rest(out)
    }

    fn load(&mut self, pages: &TranslationPages, from: &mut Decoder) -> Result<(), Damage> {
        let Cached { entries, policy, .. } = self;
        let kept: Vec<(u32, bool, P::Note)> = from.value()?;
        for (lpn, dirty, note) in kept {
            let is_new = lpn < pages.lpns() && entries.slab.find(lpn) == NONE;
            if !is_new || !policy.has_room(entries, pages.of(lpn)) {
                return Damage::impossible(format!("the mapping of page {lpn} cannot be cached"));
            }
            // The load that brought the entry in has ended.
            let id = entries.insert(policy, lpn, 0);
            policy.restore(entries, id, note)?;
            if dirty {
                entries.make_dirty(policy, id);
            }
        }
        policy.load_rest(entries, pages, from)
    }
}
