//! Random operations on the page cache and on a plain model of it: what is cached, dirty and being written, which page
//! is dropped and which file is flushed first, the memory of the trees, and which pages a flush takes.
//!
//! The model is written from the module's sources (Shim et al., TC 2014, sections 5.3 and 6.1; radix trees of 64 slots)
//! with maps and lists, and stores nothing that could be computed from its other fields.

use std::collections::{BTreeMap, BTreeSet};

use super::*;
use proptest::prelude::*;

/// Numbers of a file and of a page in that file.
type Place = (u32, u32);

#[derive(Clone, Debug)]
struct Known {
    id: u32,
    block: u32,
    present: bool,
    dirty: bool,
    writeback: bool,
}

/// A radix tree: the numbers in it, and its height, which shrinks only when the tree becomes empty.
#[derive(Clone, Debug, Default)]
struct Radix {
    keys: BTreeSet<u32>,
    height: u32,
}

impl Radix {
    fn insert(&mut self, key: u32) {
        self.keys.insert(key);
        // Each level takes six bits of a number.
        let needed = (1..).find(|level| u64::from(key) < 1 << (6 * level)).unwrap();
        self.height = self.height.max(needed);
    }

    fn remove(&mut self, key: u32) {
        assert!(self.keys.remove(&key));
        if self.keys.is_empty() {
            self.height = 0;
        }
    }

    /// Returns the bytes of the tree's nodes: one node for every group of 64, 4096, ... numbers that contains a key.
    fn bytes(&self) -> u64 {
        let nodes = |level: u32| {
            let of = |key: &u32| u64::from(*key) >> (6 * level);
            self.keys.iter().map(of).collect::<BTreeSet<_>>().len() as u64
        };
        (1..=self.height).map(nodes).sum::<u64>() * 288
    }
}

#[derive(Default)]
struct Model {
    capacity: usize,
    pages: BTreeMap<Place, Known>,
    /// Clean cached pages, the least recently used first.
    clean: Vec<Place>,
    /// Files with dirty pages and the time at which each became dirty, the one that has been dirty longest first.
    dirty_files: Vec<(u32, u64)>,
    trees: BTreeMap<u32, Radix>,
    /// Dirty pages by block, if there is a tree over them.
    global: Option<(BTreeMap<u32, Place>, Radix)>,
}

impl Model {
    fn insert(&mut self, place: Place, block: u32, present: bool, id: u32) {
        if self.pages.len() >= self.capacity && !self.clean.is_empty() {
            self.drop(self.clean[0]);
        }
        self.pages.insert(place, Known { id, block, present, dirty: false, writeback: false });
        self.trees.entry(place.0).or_default().insert(place.1);
        if present {
            self.clean.push(place);
        }
    }

    fn drop(&mut self, place: Place) {
        self.clean.retain(|&other| other != place);
        self.pages.remove(&place);
        self.trees.get_mut(&place.0).unwrap().remove(place.1);
    }

    fn is_clean(&self, place: Place) -> bool {
        let page = &self.pages[&place];
        page.present && !page.dirty && !page.writeback
    }

    fn use_page(&mut self, place: Place) {
        if self.is_clean(place) {
            self.clean.retain(|&other| other != place);
            self.clean.push(place);
        }
    }

    fn change(&mut self, place: Place, now_ns: u64) {
        self.clean.retain(|&other| other != place);
        let page = self.pages.get_mut(&place).unwrap();
        if !page.dirty {
            page.dirty = true;
            let block = page.block;
            if !self.dirty_files.iter().any(|&(inode, _)| inode == place.0) {
                self.dirty_files.push((place.0, now_ns));
            }
            if let Some((blocks, tree)) = &mut self.global {
                blocks.insert(block, place);
                tree.insert(block);
            }
        }
    }

    fn undirty(&mut self, place: Place) {
        let page = self.pages.get_mut(&place).unwrap();
        page.dirty = false;
        if let Some((blocks, tree)) = &mut self.global {
            blocks.remove(&page.block);
            tree.remove(page.block);
        }
        if self.count(|at, page| at.0 == place.0 && page.dirty) == 0 {
            self.dirty_files.retain(|&(inode, _)| inode != place.0);
        }
    }

    fn forget(&mut self, inode: u32, dirty_too: bool) -> bool {
        let places: Vec<Place> =
            self.pages.range((inode, 0)..=(inode, u32::MAX)).map(|(&at, _)| at).collect();
        for place in places {
            if self.pages[&place].dirty && dirty_too {
                self.undirty(place);
            }
            if self.is_clean(place) {
                self.drop(place);
            }
        }
        self.count(|at, _| at.0 == inode) == 0
    }

    fn count(&self, which: impl Fn(&Place, &Known) -> bool) -> u32 {
        self.pages.iter().filter(|(at, page)| which(at, page)).count() as u32
    }

    /// Returns the pages that may be flushed: dirty and not being written.
    fn ready(&self, which: impl Fn(&Place, &Known) -> bool) -> Vec<u32> {
        let ready = |page: &Known| page.dirty && !page.writeback;
        self.pages
            .iter()
            .filter(|(at, page)| ready(page) && which(at, page))
            .map(|(_, page)| page.id)
            .collect()
    }

    /// Returns what a flush takes along with a page: the pages of its file that begin in the same flash block, in
    /// block order.
    fn unit(&self, place: Place, flash_block: u64) -> Vec<u32> {
        let of = |page: &Known| u64::from(page.block) * 4096 / flash_block;
        let own = of(&self.pages[&place]);
        let mut ids = self.ready(|at, page| at.0 == place.0 && of(page) == own);
        let blocks: BTreeMap<u32, u32> = self.pages.values().map(|page| (page.id, page.block)).collect();
        ids.sort_by_key(|id| blocks[id]);
        ids
    }
}

fn same(cache: &PageCache, model: &Model, inode: u32, from: u32) -> Result<(), TestCaseError> {
    for (&place, known) in &model.pages {
        let page = cache.page(known.id);
        prop_assert_eq!(((page.inode, page.index), page.block), (place, known.block));
        prop_assert_eq!(
            (page.present, page.dirty, page.writeback),
            (known.present, known.dirty, known.writeback)
        );
    }
    prop_assert_eq!(cache.cached as usize, model.pages.len());
    prop_assert_eq!(cache.dirty, model.count(|_, page| page.dirty));
    prop_assert_eq!(cache.writeback, model.count(|_, page| page.writeback));
    prop_assert_eq!(cache.dirty_of(inode), model.count(|at, page| at.0 == inode && page.dirty));
    let busy = model.count(|at, page| at.0 == inode && (page.writeback || !page.present));
    prop_assert_eq!(cache.busy_of(inode), busy);
    let global = model.global.as_ref().map_or(0, |(_, tree)| tree.bytes());
    prop_assert_eq!(cache.tree_bytes(), [model.trees.values().map(Radix::bytes).sum(), global]);
    let mut dirty_files = Vec::new();
    while let Some(next) = cache.dirty_file(dirty_files.last().map(|&(inode, _)| inode)) {
        dirty_files.push(next);
    }
    prop_assert_eq!(&dirty_files, &model.dirty_files);
    let next = model.ready(|at, _| at.0 == inode && at.1 >= from).first().copied();
    prop_assert_eq!(cache.next_dirty(inode, from), next);
    let mut found = Vec::new();
    cache.dirty_in(from, from + 90, &mut found);
    let expected: Vec<u32> = match &model.global {
        None => Vec::new(),
        Some((blocks, _)) => {
            let known = blocks.range(from..from + 90).map(|(_, place)| &model.pages[place]);
            known.filter(|page| !page.writeback).map(|page| page.id).collect()
        }
    };
    prop_assert_eq!(found, expected);
    Ok(())
}

#[derive(Clone, Copy, Debug)]
enum Step {
    /// Looks a page up, and reads it in if it is not there.
    Read,
    /// Completes the read of a page.
    Arrive,
    Write,
    Submit,
    Written,
    /// Flushes a page, together with the pages that the policy takes along.
    Flush,
    Forget(bool),
}

/// Checks each policy against the model: which pages it takes along with a dirty page.
fn flush(
    cache: &PageCache,
    model: &Model,
    id: u32,
    place: Place,
    flash_block: u64,
) -> Result<(), TestCaseError> {
    let mut unit = Vec::new();
    Policy::Baseline.unit(cache, id, &mut unit);
    prop_assert_eq!(&unit, &[id]);
    if model.global.is_some() {
        unit.clear();
        Policy::Block { bytes: flash_block }.unit(cache, id, &mut unit);
        prop_assert_eq!(unit, model.unit(place, flash_block));
    }
    Ok(())
}

fn step(
    (cache, model): (&mut PageCache, &mut Model),
    (step, place, now_ns): (Step, Place, u64),
    flash_block: u64,
) -> Result<(), TestCaseError> {
    let (inode, index) = place;
    let id = cache.find(inode, index);
    prop_assert_eq!(id, model.pages.get(&place).map_or(NONE, |page| page.id));
    let known = model.pages.get(&place).cloned();
    if known.is_some() {
        model.use_page(place);
    }
    // The files get three consecutive blocks each, one file after another, so that flash blocks hold pages of several
    // files.
    let block = (index / 3 * 4 + inode) * 3 + index % 3;
    match (step, known) {
        (Step::Read | Step::Write, None) => {
            let present = matches!(step, Step::Write);
            let id = cache.insert(inode, index, block, present);
            model.insert(place, block, present, id);
            if present {
                cache.change(id, block, now_ns);
                model.change(place, now_ns);
            }
        }
        (Step::Arrive, Some(page)) if !page.present => {
            cache.arrived(id);
            model.pages.get_mut(&place).unwrap().present = true;
            model.clean.push(place);
        }
        (Step::Write, Some(page)) if page.present => {
            cache.change(id, block, now_ns);
            model.change(place, now_ns);
        }
        (Step::Submit, Some(page)) if page.dirty && !page.writeback => {
            cache.submit(id);
            model.undirty(place);
            model.pages.get_mut(&place).unwrap().writeback = true;
        }
        (Step::Written, Some(page)) if page.writeback => {
            cache.written(id);
            model.pages.get_mut(&place).unwrap().writeback = false;
            if !page.dirty {
                model.clean.push(place);
            }
        }
        (Step::Flush, Some(page)) if page.dirty && !page.writeback => {
            flush(cache, model, id, place, flash_block)?;
        }
        (Step::Forget(dirty_too), _) => {
            prop_assert_eq!(cache.forget(inode, dirty_too), model.forget(inode, dirty_too));
        }
        _ => (),
    }
    Ok(())
}

fn steps() -> impl Strategy<Value = Vec<(Step, Place)>> {
    let step = prop_oneof![
        3 => Just(Step::Read),
        3 => Just(Step::Arrive),
        5 => Just(Step::Write),
        3 => Just(Step::Submit),
        3 => Just(Step::Written),
        2 => Just(Step::Flush),
        1 => any::<bool>().prop_map(Step::Forget),
    ];
    let index = prop_oneof![4 => 0u32..12, 2 => 60u32..70, 1 => 4090u32..4100, 1 => 0u32..400_000];
    proptest::collection::vec((step, (0u32..4, index)), 1..300)
}

proptest! {
    #[test]
    fn behaves_as_a_plain_model(
        steps in steps(),
        capacity in prop_oneof![1usize..20, Just(1000)],
        global in any::<bool>(),
        flash_block in prop_oneof![Just(4096u64), Just(5 * 4096), Just(16 * 4096), Just(6000)],
    ) {
        let mut cache = super::tests::cache(capacity as u64, global);
        let trees = global.then(Default::default);
        let mut model = Model { capacity, global: trees, ..Model::default() };
        for (now_ns, (at, place)) in (1..).zip(steps) {
            step((&mut cache, &mut model), (at, place, now_ns), flash_block)?;
            same(&cache, &model, place.0, place.1)?;
        }
        // Clean pages leave the cache in the model's order.
        for index in 0..model.clean.len() as u32 {
            let id = cache.insert(9, index, 1 << 25, false);
            model.insert((9, index), 1 << 25, false, id);
            same(&cache, &model, 9, 0)?;
        }
    }
}
