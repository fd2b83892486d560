//! LeaFTL: mappings learned as line segments, whose mispredictions cost a second read.
//!
//! Source: Sun, Li, Sun, Sun, Vucinic, Huang, "LeaFTL: A Learning-Based Flash Translation Layer for Solid-State
//! Drives", ASPLOS 2023 (arXiv 2301.00072), and the authors' program (github.com/platformxlab/LeaFTL).
//! [`super::segments`] has the segments and how they are fitted, [`super::levels`] the levels of a group.
//!
//! Interpretation:
//! - LPNs are mapped in groups of 256 (of a translation page, if that has fewer). A slot is the paper's PPA.
//! - Mappings are learned in batches of `ftl.learn_batch`: those of the pages written or moved since the last batch,
//!   which wait in RAM and take an entry each. A batch is sorted by LPN, and the pages of each erase block are fitted
//!   by themselves, as the paper's batch fills a block. Data that is to lie on flash in the order of its LPNs has to
//!   come that way, from the host or from the write buffer (`device.write_buffer_policy = "sorted"`).
//! - The mapping cache holds whole groups, least recently used ones leave. A read whose group is not there is a miss
//!   and reads the group's translation page. A write never misses; a batch reads the page of each group that it changes
//!   and that is not cached. (The paper's program keeps changes of groups that are not there apart until they leave.)
//! - A group with changes that leaves costs a read and a program of its translation page, which takes along the changes
//!   of the page's other groups, as in [`super::dftl`]. One group stays, however large. A translation page has room for
//!   its segments: where they would take more than entries, it holds entries.
//! - All cached groups are compacted when `ftl.compact_after` pages have been written, and a group at once when it
//!   takes more than 8 B for each LPN.
//! - A misprediction is a read whose predicted slot is not that of its LPN. The predicted page is read, with the cause
//!   `map`, unless it is the page wanted or still in the page buffer; its spare area has the LPNs of `ftl.gamma` pages
//!   on either side, hence the page wanted. The spare area of a page has those of later pages too: they are in RAM by
//!   the time it is programmed. (The paper's buffer holds whole blocks.) A page is found without that to be collected
//!   or read for a write of a part of it: which slots are valid is kept in RAM.
//! - A group that has not been used since the device was prepared, or recovered after a power cut, is learned as it is
//!   loaded: it has the segments of its LPNs in the order of their blocks. Trimmed LPNs stay in their segments; that
//!   they are trimmed is known from what is valid.
//! - Time to fit and to compact is not charged.

use std::io;

use super::context::Context;
use super::learned::Learned;
use super::levels::{GROUP_BYTES, Grouping, Levels};
use super::pages::TranslationPages;
use super::policy::by_eviction_alone;
use super::segments::GROUP;
use super::translation::Translation;
use super::units::UnitSpace;
use crate::config::section::count;
use crate::config::{Contradiction, section};
use crate::flash::{ByCause, Cause};
use crate::ftl::settings::Settings;
use crate::util::codec::{Damage, Decoder, Encoder, MOST_COUNTED};
use crate::util::{Bits, List, Lru, NONE, Stat};

/// The name under which this FTL is registered.
pub const NAME: &str = "leaftl";
/// Description in one line, for `ftlab components`.
pub const DOC: &str = "page map learned as line segments (Sun et al., ASPLOS 2023)";

section! {
    /// The keys that only leaftl has.
    #[derive(Clone, Debug, PartialEq)]
    pub struct Keys {
        /// leaftl: how far from its slot a page may be predicted; each spare area has the LPNs of as many pages on
        /// either side.
        gamma: u32 = "ftl.gamma", count(0, 31), "0";
        /// leaftl: number of mappings that are sorted and learned together.
        batch: u32 = "ftl.learn_batch", count(1, 1 << 20), "256";
        /// leaftl: number of pages written after which the cached segments are compacted.
        compact_after: u64 = "ftl.compact_after", count(1, 1 << 40), "1000000";
    }
}

/// What has been counted since the run began.
#[derive(Clone, Copy, Debug, Default)]
struct Counted {
    predictions: u64,
    mispredictions: u64,
    second_reads: u64,
    batches: u64,
}

/// The mapping cache of LeaFTL.
#[derive(Clone, Debug)]
pub struct LeaFtl {
    keys: Keys,
    /// Number of waiting mappings that are learned at once.
    batch: usize,
    entry_bytes: u64,
    /// Size of the cache in bytes; `None`: no bound.
    bytes: Option<u64>,
    lpns: u32,
    space: Grouping,
    /// The segments of all groups, wherever the groups are.
    learned: Learned,
    /// The cached groups, each with its load, the most recently used one first.
    cached: Lru<u32>,
    order: List,
    /// Bytes that the cached groups take.
    used: u64,
    /// LPNs whose change is not in their translation page; those that wait come on top.
    dirty: Bits,
    /// LPNs that wait to be learned, and which they are.
    waiting: Vec<u32>,
    waits: Bits,
    pending: u64,
    /// Pages written since the last compaction.
    written: u64,
    counted: Counted,
}

impl LeaFtl {
    /// Lets the mapping of an LPN wait to be learned.
    fn wait(&mut self, lpn: u32) {
        if !self.waits.get(lpn) {
            self.waits.set(lpn);
            self.waiting.push(lpn);
            self.pending += 1;
        }
    }

    /// Makes sure that a group is cached; returns whether it was.
    fn enter(&mut self, group: u32, context: &mut Context) -> bool {
        let id = self.cached.find(group);
        if id != NONE {
            context.work.need(*self.cached.value(id));
            self.cached.touch(&mut self.order, id);
            return true;
        }
        let load = context.load(self.space.unit(group));
        self.bring_in(group, load, context);
        self.make_room(context);
        false
    }

    /// Puts a group, with what a load has of it, at the front of the cache, and learns it if it never was.
    fn bring_in(&mut self, group: u32, load: u32, context: &Context) {
        if !self.learned.knows(group) {
            let (first, end) = self.space.range(group);
            let settled = (first..end).filter(|&lpn| !self.waits.get(lpn));
            self.learned.learn(group, settled, context);
        }
        let id = self.cached.insert(group, load);
        self.cached.push_head(&mut self.order, id);
        self.used += self.learned.bytes(group);
    }

    /// Lets groups leave, the least recently used first, until the cache is within its bound or has one group.
    fn make_room(&mut self, context: &mut Context) {
        let Some(bytes) = self.bytes else { return };
        while self.order.len > 1 && self.used + self.pending * self.entry_bytes > bytes {
            let id = self.order.tail;
            let group = self.cached.key(id);
            let (first, end) = self.space.range(group);
            if self.dirty.next_set(first, end).is_some() {
                self.write_unit(self.space.unit(group), context);
            }
            self.cached.unlink(&mut self.order, id);
            self.cached.remove(id);
            self.used -= self.learned.bytes(group);
        }
    }

    /// Programs a translation page with all that has been learned about it, after reading its copy on flash.
    fn write_unit(&mut self, unit: u32, context: &mut Context) {
        context.read(unit);
        let (first, end) = context.pages.range(unit);
        let updated = self.dirty.take(first, end);
        context.program_but(unit, updated, |lpn| self.waits.get(lpn));
    }

    /// Learns the mappings that wait.
    fn learn(&mut self, context: &mut Context) {
        let mut waiting = std::mem::take(&mut self.waiting);
        self.counted.batches += u64::from(!waiting.is_empty());
        waiting.sort_unstable();
        let space = self.space;
        for lpns in waiting.chunk_by(|&a, &b| space.group(a) == space.group(b)) {
            let group = space.group(lpns[0]);
            self.enter(group, context);
            let before = self.learned.bytes(group);
            self.learned.learn(group, lpns.iter().copied(), context);
            for &lpn in lpns {
                self.waits.clear(lpn);
                self.dirty.set(lpn);
            }
            self.pending -= lpns.len() as u64;
            self.used = self.used + self.learned.bytes(group) - before;
            self.make_room(context);
        }
        waiting.clear();
        self.waiting = waiting;
    }

    /// Learns what waits if it fills a batch, and compacts the cached groups if that is due.
    fn keep_up(&mut self, context: &mut Context) {
        if self.waiting.len() >= self.batch {
            self.learn(context);
        }
        if self.written >= self.keys.compact_after {
            self.written = 0;
            self.used = 0;
            for group in self.cached.keys() {
                self.learned.compact(group);
                self.used += self.learned.bytes(group);
            }
            self.make_room(context);
        }
    }

    /// Predicts the slot of an LPN that is read; if it is another, reads the page predicted.
    fn predict(&mut self, lpn: u32, context: &mut Context) {
        let slot = context.newest.of(lpn);
        let Some(predicted) = self.learned.predict(lpn).filter(|_| slot != NONE) else { return };
        self.counted.predictions += 1;
        if predicted == slot {
            return;
        }
        self.counted.mispredictions += 1;
        let Context { data, work, .. } = context;
        let page = data.addresses.nand_page(predicted);
        if page != data.addresses.nand_page(slot) && !data.buffered(predicted) && !data.buffered(slot) {
            self.counted.second_reads += 1;
            work.read(data.addresses.lun(predicted), page, Cause::Map);
        }
    }
}

impl Translation for LeaFtl {
    const ON_FLASH: bool = true;
    const HAS_ENTRIES: bool = false;

    fn new(settings: &Settings, space: &UnitSpace) -> LeaFtl {
        let keys = settings.ftl.own.leaftl.clone();
        let entry_bytes = u64::from(settings.ftl.entry_bytes);
        let bytes = settings.ftl.mapping_cache_bytes;
        // What waits takes half the cache at most.
        let most = bytes.map_or(u64::MAX, |bytes| (bytes / (2 * entry_bytes)).max(1));
        let lpns = settings.user_pages() as u32;
        let space = Grouping::new(space, lpns);
        LeaFtl {
            batch: u64::from(keys.batch).min(most) as usize,
            keys,
            entry_bytes,
            bytes,
            lpns,
            space,
            learned: Learned::new(settings, space),
            cached: Lru::new(Some(space.groups.max(1))),
            order: List::EMPTY,
            used: 0,
            dirty: Bits::new(lpns as usize),
            waiting: Vec::with_capacity(lpns as usize),
            waits: Bits::new(lpns as usize),
            pending: 0,
            written: 0,
            counted: Counted::default(),
        }
    }

    fn check(settings: &Settings) -> Result<(), Contradiction> {
        by_eviction_alone(settings)
    }

    fn translate(&mut self, lpn: u32, write: bool, context: &mut Context) -> bool {
        if write {
            self.written += 1;
            self.keep_up(context);
            self.wait(lpn);
            return true;
        }
        if self.waits.get(lpn) {
            return true;
        }
        let hit = self.enter(self.space.group(lpn), context);
        self.predict(lpn, context);
        hit
    }

    fn prefetch(&mut self, page: u32, missing: &[u32], context: &mut Context) {
        let load = context.load(page);
        for &lpn in missing {
            let group = self.space.group(lpn);
            if self.cached.find(group) == NONE {
                self.bring_in(group, load, context);
                self.make_room(context);
            }
        }
    }

    fn moved(&mut self, lpn: u32, _pages: &TranslationPages) {
        self.wait(lpn);
    }

    fn settle(&mut self, context: &mut Context) {
        self.keep_up(context);
    }

    /// Writes the first translation page that has changes back; if there is none, what waits is learned first.
    fn write_back(&mut self, context: &mut Context) -> bool {
        if self.dirty.next_set(0, self.lpns).is_none() {
            self.learn(context);
        }
        let Some(lpn) = self.dirty.next_set(0, self.lpns) else { return false };
        self.write_unit(self.space.unit(self.space.group(lpn)), context);
        true
    }

    #[inline]
    fn cached(&self, lpn: u32, _pages: &TranslationPages) -> bool {
        self.waits.get(lpn) || self.cached.find(self.space.group(lpn)) != NONE
    }

    fn each_cached(&self, pages: &TranslationPages, visit: &mut dyn FnMut(u32)) {
        (0..pages.lpns()).filter(|&lpn| self.cached(lpn, pages)).for_each(visit);
    }

    /// Returns an upper bound: the mappings of groups without segments.
    fn capacity(&self) -> Option<u32> {
        let groups = (self.bytes? / GROUP_BYTES).max(1);
        Some(groups.saturating_mul(GROUP.into()).min(self.lpns.into()) as u32)
    }

    fn dirty(&self, lpn: u32, _pages: &TranslationPages) -> bool {
        self.dirty.get(lpn) || self.waits.get(lpn)
    }

    fn updates_free(&self) -> bool {
        true
    }

    fn verify(&self, lpn: u32, slot: u32) -> Result<(), String> {
        if slot == NONE || self.waits.get(lpn) { Ok(()) } else { self.learned.verify(lpn, slot) }
    }

    fn stats(&self) -> Vec<Stat> {
        let counts = [
            ("predictions", self.counted.predictions, "reads", "whose slot a segment predicted"),
            ("mispredictions", self.counted.mispredictions, "reads", "whose predicted slot was another"),
            ("second_reads", self.counted.second_reads, "pages", "read where a slot was mispredicted"),
            ("batches", self.counted.batches, "batches", "of mappings learned"),
            ("cached_bytes", self.used, "bytes", "of the groups in the mapping cache"),
        ];
        let counts = counts.map(|(name, value, unit, doc)| Stat::new(name, value as f64, unit, doc));
        counts.into_iter().chain(self.learned.stats()).collect()
    }

    /// Begins to count anew.
    fn count_from(&mut self, _programs: &ByCause<u64>) {
        self.counted = Counted::default();
        self.learned.compactions = 0;
    }

    fn save(&self, out: &mut Encoder) -> io::Result<()> {
        let mut cached = Vec::with_capacity(self.order.len as usize);
        self.cached.each(self.order, &mut |id| cached.push(self.cached.key(id)));
        let dirty: Vec<u32> = self.dirty.members(0, self.lpns).collect();
        out.value(&(self.written, &self.waiting, dirty))?;
        out.value(&(cached, self.learned.all()))
    }

    fn load(&mut self, _pages: &TranslationPages, from: &mut Decoder) -> Result<(), Damage> {
        let (written, waiting, dirty): (u64, Vec<u32>, Vec<u32>) = from.value()?;
        let (cached, learned): (Vec<u32>, Vec<(u32, Levels)>) = from.value()?;
        if written > MOST_COUNTED || waiting.iter().chain(&dirty).any(|&lpn| lpn >= self.lpns) {
            return Damage::impossible("mappings of pages that there are not wait to be learned or written");
        }
        self.written = written;
        waiting.into_iter().for_each(|lpn| self.wait(lpn));
        dirty.into_iter().for_each(|lpn| self.dirty.set(lpn));
        self.learned.restore(learned)?;
        for group in cached {
            if !self.learned.knows(group) || self.cached.find(group) != NONE {
                return Damage::impossible(format!("group {group} cannot be cached"));
            }
            let id = self.cached.insert(group, 0);
            self.cached.push_head(&mut self.order, id);
            self.used += self.learned.bytes(group);
        }
        if self.order.len > 1 && self.bytes.is_some_and(|bytes| self.used > bytes) {
            return Damage::impossible("more segments are cached than the mapping cache holds");
        }
        Ok(())
    }
}
