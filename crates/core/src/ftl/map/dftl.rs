//! DFTL: a page map on flash, with its hot entries cached one by one.
//!
//! Source: Gupta, Kim, Urgaonkar, "DFTL: A Flash Translation Layer Employing
//! Demand-Based Selective Caching of Page-Level Address Mappings", ASPLOS 2009,
//! as the MAP+ paper uses it (Ji et al., TCAD 2018, sections III-A, IV-A, V-D).
//!
//! Interpretation: the cache is a segmented LRU, whose protected segment has an eighth of the capacity (rounded
//! down) and whose probationary segment has the rest; a hit moves an entry to the protected head, and what
//! overflows there goes to the probationary head; a miss in a full cache first evicts the probationary tail (the
//! protected tail if the probationary segment is empty). A dirty victim costs a read and a program of its
//! translation page and cleans all cached dirty entries of that page (batch update; `ftl.batch_update = false`
//! writes only the victim's entry, as FlashSim does). Then the missed entry costs one read: eq. (2) of the
//! paper. Entries that garbage collection moves are updated in the cache if they are there, else on flash, with
//! one read and one program for each translation page concerned.
//!
//! A miss brings in only its own entry. With `ftl.load = "request"` its read also brings in the entries of the same
//! translation page that the rest of the request needs and the cache lacks, as the read of a batch does for the batch
//! (section V-B). The missed entry counts as a miss; the others hit. The entries come in from the last one to the
//! missed one, each evicting an entry as a miss does, so that the next entries stay even if the request is larger than
//! the cache; the first entry of the request that is no longer cached misses again and loads the rest.

use std::fmt::Debug;

use super::context::Context;
use super::entries::Entries;
use super::policy::{Cached, Policy};
use crate::config::section::one_of;
use crate::config::{Choice, choice, outside, section};
use crate::ftl::settings::Settings;
use crate::util::codec::Damage;
use crate::util::{List, NONE, Stat};

/// The name under which this FTL is registered.
pub const NAME: &str = "dftl";
/// Description in one line, for `ftlab components`.
pub const DOC: &str = "demand-cached page map (Gupta et al., ASPLOS 2009)";
section! {
    /// The keys of dftl.
    #[derive(Clone, Debug, PartialEq)]
    pub struct Keys {
        /// Replacement in the mapping cache of dftl, minipage and msftl.
        replacement: String = "ftl.cache_policy", one_of(replacements), "slru";
        /// A write-back of dftl cleans every cached dirty entry of its translation page.
        batch_update: bool = "ftl.batch_update", "true";
        /// Which mappings a miss loads when it reads a translation page (dftl, minipage and msftl).
        load: Load = "ftl.load", "entry";
    }
}

choice! {
    /// The values of `ftl.load`: which mappings a miss brings in.
    pub enum Load {
        /// the missed mapping
        Entry = "entry",
        /// the missed mapping, and those in the same translation page that the rest of the request needs
        Request = "request",
    }
}

fn replacements() -> Vec<Choice> {
    vec![
        Choice { name: "slru", doc: "segmented LRU, protected : probationary = 1 : 7" },
        Choice { name: "lru", doc: "one LRU list" },
    ]
}

/// A replacement policy that is not one of ftlab's own, for `ftl.cache_policy`; it decides which entry leaves a full
/// cache. Entries are identified by LPN.
pub trait Replacement: Debug + Send + Sync {
    /// Called when an entry is accessed.
    fn hit(&mut self, lpn: u32);
    /// Called when an entry has come in.
    fn insert(&mut self, lpn: u32);
    /// Returns the entry that is to leave; it is still cached, and a call of [`Replacement::remove`] follows.
    fn victim(&mut self) -> u32;
    /// Called when an entry leaves.
    fn remove(&mut self, lpn: u32);
    /// Returns the policy's own figures; called when a report is drawn up.
    fn stats(&self) -> Vec<Stat> {
        Vec::new()
    }
    /// Returns a copy of the policy in the same state.
    fn copy(&self) -> Box<dyn Replacement>;
}

impl Clone for Box<dyn Replacement> {
    fn clone(&self) -> Self {
        (**self).copy()
    }
}

const KEY: &str = "ftl.cache_policy";

/// A function that makes a replacement policy for this many entries (`None`: no bound).
type Outside = Box<dyn Fn(Option<u32>) -> Box<dyn Replacement> + Send + Sync>;

/// Registers a replacement policy under a name that can then be the value of `ftl.cache_policy`. `make` is
/// called once for each cache, with the number of its entries (`None`: no bound).
pub fn register(name: &str, make: impl Fn(Option<u32>) -> Box<dyn Replacement> + Send + Sync + 'static) {
    outside::add::<Outside>(&[KEY], name, Box::new(make));
}

/// The mapping cache of DFTL.
pub type Dftl = Cached<Segmented>;

/// Segmented LRU; if the capacity of the protected segment is 0, the cache is one LRU list.
#[derive(Clone, Debug)]
pub struct Segmented {
    protected_capacity: u32,
    probationary: List,
    protected: List,
    /// How many dirty entries the probationary and the protected segment have.
    dirty_in: [u32; 2],
    batch_update: bool,
    load: Load,
    /// A registered replacement policy; if present, it decides which entry leaves, and the lists are empty.
    outside: Option<Box<dyn Replacement>>,
}

impl Segmented {
    #[inline]
    fn set_protected(&mut self, entries: &mut Entries<bool>, id: u32, protected: bool) {
        *entries.note(id) = protected;
        if entries.is_dirty(id) {
            self.dirty_in[usize::from(!protected)] -= 1;
            self.dirty_in[usize::from(protected)] += 1;
        }
    }

    /// Brings in the entries that the rest of the request needs from the translation page that `load` reads for
    /// `lpn`.
    #[inline(never)] // keeps the path of `ftl.load = "entry"` short
    fn fetch_ahead(&mut self, entries: &mut Entries<bool>, (lpn, load): (u32, u32), context: &mut Context) {
        for other in context.ahead_of(lpn) {
            if entries.slab.find(other) == NONE {
                entries.insert(self, other, load);
                entries.make_room(self, context);
            }
        }
    }
}

impl Policy for Segmented {
    /// Whether the entry is in the protected segment.
    type Note = bool;

    /// With an amount in `ftl.flush`, dftl is the Base-DFTL of Kim and Lee (ICSOFT 2020), whose unit is the NAND page.
    const BY_AMOUNT: Option<&'static str> = Some(super::units::GATHERED);

    fn new(settings: &Settings, _pages: u32) -> Segmented {
        let capacity = Self::capacity(settings).unwrap_or(u32::MAX);
        let keys = &settings.ftl.own.dftl;
        let registered = replacements().iter().any(|known| known.name == keys.replacement);
        let make = || outside::maker::<Outside>(KEY, &keys.replacement)(Self::capacity(settings));
        Segmented {
            protected_capacity: if keys.replacement == "slru" { capacity / 8 } else { 0 },
            probationary: List::EMPTY,
            protected: List::EMPTY,
            dirty_in: [0; 2],
            batch_update: keys.batch_update,
            load: keys.load,
            outside: (!registered).then(make),
        }
    }

    fn hit(&mut self, entries: &mut Entries<bool>, id: u32) {
        if let Some(outside) = &mut self.outside {
            outside.hit(entries.lpn(id));
        } else if *entries.note(id) {
            entries.slab.touch(&mut self.protected, id);
        } else if self.protected_capacity == 0 {
            entries.slab.touch(&mut self.probationary, id);
        } else {
            entries.slab.unlink(&mut self.probationary, id);
            entries.slab.push_head(&mut self.protected, id);
            self.set_protected(entries, id, true);
            if self.protected.len > self.protected_capacity {
                let demoted = self.protected.tail;
                entries.slab.unlink(&mut self.protected, demoted);
                entries.slab.push_head(&mut self.probationary, demoted);
                self.set_protected(entries, demoted, false);
            }
        }
    }

    #[inline]
    fn insert(&mut self, entries: &mut Entries<bool>, id: u32) {
        match &mut self.outside {
            None => entries.slab.push_head(&mut self.probationary, id),
            Some(outside) => outside.insert(entries.lpn(id)),
        }
    }

    #[inline]
    fn victim(&mut self, entries: &mut Entries<bool>) -> u32 {
        if let Some(outside) = &mut self.outside {
            let lpn = outside.victim();
            let id = entries.slab.find(lpn);
            assert!(id != NONE, "{outside:?} lets LPN {lpn} leave, which is not cached");
            return id;
        }
        if self.probationary.len > 0 { self.probationary.tail } else { self.protected.tail }
    }

    #[inline]
    fn remove(&mut self, entries: &mut Entries<bool>, id: u32) {
        if let Some(outside) = &mut self.outside {
            return outside.remove(entries.lpn(id));
        }
        let list = if *entries.note(id) { &mut self.protected } else { &mut self.probationary };
        entries.slab.unlink(list, id);
    }

    #[inline]
    fn marked(&mut self, entries: &mut Entries<bool>, id: u32, dirty: bool) {
        let count = &mut self.dirty_in[usize::from(*entries.note(id))];
        *count = if dirty { *count + 1 } else { *count - 1 };
    }

    #[inline]
    fn write_back_victim(&mut self, entries: &mut Entries<bool>, id: u32, context: &mut Context) {
        let page = entries.page(id);
        if self.batch_update {
            entries.rewrite(self, page, 0, context);
        } else {
            context.read(page);
            entries.make_clean(self, id);
            context.program_one(entries.lpn(id));
        }
    }

    #[inline]
    fn fetch(&mut self, entries: &mut Entries<bool>, lpn: u32, context: &mut Context) -> (u32, bool) {
        entries.make_room(self, context);
        let load = context.load(context.pages.of(lpn));
        if self.load == Load::Request {
            self.fetch_ahead(entries, (lpn, load), context);
        }
        (entries.insert(self, lpn, load), false)
    }

    fn stats(&self) -> Vec<Stat> {
        self.outside.as_ref().map_or_else(Vec::new, |outside| outside.stats())
    }

    fn each(&self, entries: &Entries<bool>, visit: &mut dyn FnMut(u32)) {
        if self.outside.is_some() {
            entries.slab.keys().for_each(|lpn| visit(entries.slab.find(lpn)));
        }
        for list in [self.probationary, self.protected] {
            entries.slab.each(list, visit);
        }
    }

    fn restore(&mut self, entries: &mut Entries<bool>, id: u32, protected: bool) -> Result<(), Damage> {
        if protected {
            self.hit(entries, id);
        }
        Ok(())
    }

    /// Returns the dirty entry nearest the probationary tail or, if that segment has none, nearest the protected tail.
    /// The search goes from both ends: after idle times the few entries still dirty are recent ones.
    fn first_dirty(&self, entries: &Entries<bool>) -> Option<u32> {
        if self.outside.is_some() {
            return entries.any_dirty();
        }
        let segment = self.dirty_in.iter().position(|&count| count > 0)?;
        let list = if segment == 0 { &self.probationary } else { &self.protected };
        let (mut old, mut recent) = (list.tail, list.head);
        let mut left = self.dirty_in[segment];
        loop {
            if entries.is_dirty(old) {
                return Some(old);
            }
            left -= u32::from(entries.is_dirty(recent));
            if left == 0 {
                return Some(recent);
            }
            (old, recent) = (entries.slab.newer(old), entries.slab.older(recent));
        }
    }
}
