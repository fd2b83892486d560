//! Small cases with exact results.

use super::*;

pub(super) fn cache(pages: u64, global_tree: bool) -> PageCache {
    PageCache::new(pages * PAGE, global_tree)
}

#[test]
fn the_least_recently_used_clean_page_leaves() {
    let mut cache = cache(3, false);
    let ids: Vec<u32> = (0..3).map(|index| cache.insert(0, index, 10 + index, true)).collect();
    cache.find(0, 0);
    cache.change(ids[1], 11, 5);
    // Page 1 is dirty and page 0 has been used since, so page 2 is the one that leaves.
    cache.insert(0, 3, 13, true);
    assert_eq!([0, 1, 2, 3].map(|index| cache.find(0, index) != NONE), [true, true, false, true]);
    assert_eq!((cache.cached, cache.dirty), (3, 1));
}

#[test]
fn a_page_changed_while_it_is_written_stays_dirty() {
    let mut cache = cache(8, true);
    let id = cache.insert(4, 7, 99, true);
    cache.change(id, 99, 1);
    assert_eq!((cache.dirty_file(None), cache.next_dirty(4, 0)), (Some((4, 1)), Some(id)));
    cache.submit(id);
    assert_eq!((cache.dirty, cache.writeback, cache.busy_of(4)), (0, 1, 1));
    cache.change(id, 99, 9);
    // The page is dirty again, but must not be submitted until its first write has ended.
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
    // Four files with one node each; blocks 64 to 128 are in two leaves under a root.
    assert_eq!(cache.tree_bytes(), [4 * NODE_BYTES, 3 * NODE_BYTES]);
    cache.submit(found[0]);
    found.clear();
    cache.dirty_in(64, 128, &mut found);
    assert_eq!(found.len(), 2);
    assert!(!cache.forget(1, true), "one of its pages is being written");
    assert!(cache.forget(0, true));
    assert_eq!(cache.dirty, 2);
}
