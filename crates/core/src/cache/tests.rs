//! Exact small cases, and random steps against a plain model.

use std::collections::BTreeMap;

use super::*;
use proptest::prelude::*;

fn cache(pages: u64, global_tree: bool) -> PageCache {
    PageCache::new(&Files { page_cache_bytes: pages * PAGE, global_tree, ..Files::NONE })
}

#[test]
fn the_least_recently_used_clean_page_leaves() {
    let mut cache = cache(3, false);
    let ids: Vec<u32> = (0..3).map(|index| cache.insert(0, index, 10 + index, true)).collect();
    cache.find(0, 0);
    cache.change(ids[1], 11, 5);
    // Page 1 is dirty, page 0 was used: page 2 leaves.
    cache.insert(0, 3, 13, true);
    assert_eq!([0, 1, 2, 3].map(|index| cache.find(0, index) != NONE), [true, true, false, true]);
    assert_eq!((cache.cached(), cache.dirty()), (3, 1));
}

#[test]
fn a_page_changed_while_it_is_written_stays_dirty() {
    let mut cache = cache(8, true);
    let id = cache.insert(4, 7, 99, true);
    cache.change(id, 99, 1);
    assert_eq!((cache.dirty_file(None), cache.next_dirty(4, 0)), (Some((4, 1)), Some(id)));
    cache.submit(id);
    assert_eq!((cache.dirty(), cache.writeback(), cache.busy_of(4)), (0, 1, 1));
    cache.change(id, 99, 9);
    // It is dirty again, but not to be submitted before it has been written.
    assert_eq!((cache.dirty_file(None), cache.next_dirty(4, 0)), (Some((4, 9)), None));
    cache.written(id);
    assert_eq!((cache.dirty_of(4), cache.next_dirty(4, 0), cache.busy_of(4)), (1, Some(id), 0));
}

#[test]
fn the_tree_over_logical_pages_finds_dirty_pages_of_all_files() {
    let mut cache = cache(64, true);
    for (inode, block) in [(0, 70), (1, 64), (2, 127), (3, 128)] {
        let id = cache.insert(inode, 0, block, true);
        cache.change(id, block, 0);
    }
    let mut found = Vec::new();
    cache.dirty_in(64, 128, &mut found);
    let blocks: Vec<u32> = found.iter().map(|&id| cache.page(id).block).collect();
    assert_eq!(blocks, [64, 70, 127]);
    // Four files of a node each; blocks 64 to 128 in two leaves under a root.
    assert_eq!(cache.tree_bytes(), [4 * NODE_BYTES, 3 * NODE_BYTES]);
    cache.submit(found[0]);
    found.clear();
    cache.dirty_in(64, 128, &mut found);
    assert_eq!(found.len(), 2);
    assert!(!cache.forget(1, true), "one of its pages is being written");
    assert!(cache.forget(0, true));
    assert_eq!(cache.dirty(), 2);
}

/// What a page is in the model: dirty, being written.
type Model = BTreeMap<(u32, u32), (bool, bool)>;

proptest! {
    #[test]
    fn behaves_as_a_plain_model(
        steps in proptest::collection::vec((0u8..6, 0u32..3, prop_oneof![0u32..10, 60u32..200]), 1..300),
        global in any::<bool>(),
    ) {
        // As large as all pages there may be: nothing leaves but on request.
        let mut cache = cache(1000, global);
        let mut model = Model::new();
        for (now, (step, inode, index)) in steps.into_iter().enumerate() {
            let block = inode * 1000 + index;
            let id = cache.find(inode, index);
            prop_assert_eq!(id != NONE, model.contains_key(&(inode, index)));
            match step {
                0 | 1 => {
                    let id = if id == NONE { cache.insert(inode, index, block, true) } else { id };
                    cache.change(id, block, now as u64);
                    model.entry((inode, index)).or_default().0 = true;
                }
                2 if id != NONE && cache.page(id).dirty && !cache.page(id).writeback => {
                    cache.submit(id);
                    model.insert((inode, index), (false, true));
                }
                3 if id != NONE && cache.page(id).writeback => {
                    cache.written(id);
                    model.get_mut(&(inode, index)).unwrap().1 = false;
                }
                4 => {
                    cache.forget(inode, true);
                    model.retain(|key, state| {
                        state.0 &= key.0 != inode;
                        key.0 != inode || state.1
                    });
                }
                _ => {
                    cache.forget(inode, false);
                    model.retain(|key, state| key.0 != inode || state.0 || state.1);
                }
            }
            let count = |which: fn(&(bool, bool)) -> bool| model.values().filter(|state| which(state)).count() as u32;
            prop_assert_eq!(cache.cached(), model.len() as u32);
            prop_assert_eq!(cache.dirty(), count(|state| state.0));
            prop_assert_eq!(cache.writeback(), count(|state| state.1));
            let next = model.iter().find(|(key, state)| key.0 == inode && state.0 && !state.1).map(|(key, _)| key.1);
            prop_assert_eq!(cache.next_dirty(inode, 0).map(|id| cache.page(id).index), next);
            let mut found = Vec::new();
            cache.dirty_in(0, 1 << 20, &mut found);
            let ready = model.values().filter(|state| state.0 && !state.1).count();
            prop_assert_eq!(found.len(), if global { ready } else { 0 });
        }
    }
}
