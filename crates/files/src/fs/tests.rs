//! Small cases with exact results, which also show that no block ever has two owners.

use super::*;
use proptest::prelude::*;

/// Returns a file system on 64 MiB, with one group and a journal of 4 MiB.
fn fs(clients: u32) -> Fs {
    Fs::new(Some(Mkfs { journal_bytes: None }), 16_384, clients)
}

/// Returns the blocks of the running transaction's buffers.
fn changed(fs: &Fs) -> Vec<u32> {
    let mut blocks: Vec<u32> =
        fs.journal.running.buffers.iter().map(|&id| fs.buffers[id as usize].block).collect();
    blocks.sort_unstable();
    blocks
}

fn commit(fs: &mut Fs) {
    fs.journal.begin_commit();
    for _ in 0..fs.journal.committing.as_ref().unwrap().log_blocks() {
        fs.journal.advance();
    }
    let done = fs.journal.end_commit(&mut fs.buffers, 0);
    done.freed.iter().for_each(|&(first, count)| fs.release(first, count));
}

/// A device of 512 MiB as mke2fs lays it out: 4 groups, 32 MiB of inode tables, a journal of 16 MiB.
#[test]
fn the_layout_of_the_papers_device() {
    let layout = Layout::new(Mkfs { journal_bytes: None }, 131_072);
    assert_eq!((layout.groups, layout.bitmaps, layout.inode_tables), (4, 2, 10));
    assert_eq!((layout.inodes_per_group, layout.journal, layout.journal_len), (8192, 10 + 2048, 4096));
    assert_eq!(layout.data, 10 + 2048 + 4096);
}

/// Each operation changes exactly the blocks that it should. The superblock is block 0, the group descriptors are block
/// 1, the block bitmap is block 2 and the inode bitmap block 3; the inode table begins at block 4.
#[test]
fn operations_change_their_blocks() {
    let mut fs = fs(1);
    let directory = fs.buffers.last().unwrap().block;
    let inode = fs.create(0, 0).unwrap();
    // The directory's inode and the file's share a block of the table.
    assert_eq!(changed(&fs), [1, 3, 4, directory]);
    commit(&mut fs);
    assert!(changed(&fs).is_empty());
    fs.allocate(inode, 0, 4096, 0).unwrap();
    assert_eq!((changed(&fs), fs.journal.running.files.as_slice()), (vec![1, 2, 4], &[inode][..]));
    commit(&mut fs);
    fs.touch(inode, 4096, 0);
    assert_eq!((changed(&fs), fs.journal.running.files.len()), (vec![4], 0));
    commit(&mut fs);
    fs.rename(inode, 0).unwrap();
    assert_eq!(changed(&fs), [4, directory]);
    commit(&mut fs);
    fs.unlink(inode, 0);
    assert_eq!(changed(&fs), [0, 1, 2, 3, 4, directory]);
}

/// Regression: one file more than there are inodes caused a panic. Now its creation is refused and changes nothing,
/// and a freed inode can be used again.
#[test]
fn inodes_run_out() {
    let mut fs = fs(1);
    // There is an inode for every four blocks; the directory takes one of them.
    let all: Vec<u32> = (1..4096).map(|_| fs.create(0, 0).unwrap()).collect();
    commit(&mut fs);
    assert_eq!((fs.create(0, 0), changed(&fs)), (Err(Full), vec![]));
    fs.unlink(all[77], 0);
    assert_eq!(fs.create(0, 0), Ok(all[77]));
    assert_eq!(fs.create(0, 0), Err(Full));
}

/// A block of a deleted file can be used by another file only after the commit.
#[test]
fn freed_blocks_wait_for_the_commit() {
    let mut fs = fs(1);
    let all = fs.free_blocks();
    let inode = fs.create(0, 0).unwrap();
    let block = fs.allocate(inode, 0, 4096, 0).unwrap();
    fs.close(inode);
    assert_eq!(fs.free_blocks(), all - 1, "the rest of the window is given back");
    fs.unlink(inode, 0);
    assert_eq!(fs.free_blocks(), all - 1);
    let other = fs.create(0, 0).unwrap();
    assert_ne!(fs.allocate(other, 0, 4096, 0).unwrap(), block);
    fs.close(other);
    commit(&mut fs);
    assert_eq!(fs.free_blocks(), all - 1);
}

/// Files that grow alternately are stored in runs of the size of their windows, not page by page.
#[test]
fn windows_keep_files_together() {
    let mut fs = fs(2);
    let files = [0, 1].map(|directory| fs.create(directory, 0).unwrap());
    for page in 0..64 {
        for inode in files {
            fs.allocate(inode, page, u64::from(page + 1) * BLOCK, 0).unwrap();
        }
    }
    for inode in files {
        let breaks =
            (1..64).filter(|&page| fs.inode(inode).block(page) != fs.inode(inode).block(page - 1) + 1);
        assert!(breaks.count() <= 5);
    }
}

/// In a ring of 8 blocks, a buffer that is committed again frees the part that its older copy took; so does a
/// buffer that has been written in place.
#[test]
fn the_ring_is_freed_from_its_tail() {
    let mut buffers = vec![Buffer::new(0), Buffer::new(1)];
    let mut journal = Journal::new(100, 8);
    let commit = |journal: &mut Journal, buffers: &mut Vec<Buffer>, ids: &[u32], now| {
        for &id in ids {
            journal.change(id, buffers, now);
        }
        let blocks = journal.begin_commit().log_blocks();
        let log: Vec<u32> = (0..blocks).map(|_| journal.advance()).collect();
        journal.end_commit(buffers, now);
        log
    };
    assert_eq!(commit(&mut journal, &mut buffers, &[0], 1), [100, 101, 102]);
    assert_eq!(journal.room().0, 5);
    assert_eq!(commit(&mut journal, &mut buffers, &[0], 2), [103, 104, 105]);
    assert_eq!((journal.room().0, buffers[0].dirtied_ns), (5, 1), "dirty since the first");
    assert_eq!(commit(&mut journal, &mut buffers, &[1], 3), [106, 107, 100]);
    assert_eq!(journal.room().0, 2);
    let tid = buffers[0].logged;
    buffers[0].writing = true;
    journal.in_place(0, tid, &mut buffers);
    assert_eq!(journal.room().0, 5);
    // A copy written in place that is not from the last commit frees no room in the journal.
    buffers[1].writing = true;
    let old = buffers[1].logged;
    commit(&mut journal, &mut buffers, &[1], 4);
    assert_eq!(journal.room().0, 5);
    journal.in_place(1, old, &mut buffers);
    assert_eq!((journal.room().0, buffers[1].logged), (5, old + 1));
}

#[test]
fn a_changed_buffer_is_not_written_in_place_before_its_commit() {
    let mut buffers = vec![Buffer::new(0)];
    let mut journal = Journal::new(10, 64);
    journal.change(0, &mut buffers, 0);
    assert!(!buffers[0].is_writable());
    journal.begin_commit();
    assert!(!buffers[0].is_writable());
    journal.end_commit(&mut buffers, 0);
    assert!(buffers[0].is_writable());
    journal.change(0, &mut buffers, 0);
    assert!(!buffers[0].is_writable());
}

/// 509 blocks need two descriptors.
#[test]
fn descriptors() {
    let of = |buffers| Transaction { buffers: (0..buffers).collect(), ..Transaction::default() }.log_blocks();
    assert_eq!((of(1), of(508), of(509)), (3, 510, 512));
}

proptest! {
    #[test]
    fn no_block_has_two_owners(
        steps in proptest::collection::vec((0u8..6, 0usize..6, 0u32..700), 1..120),
    ) {
        let mut fs = fs(2);
        let empty = fs.free_blocks();
        let mut files: [Option<u32>; 6] = [None; 6];
        for (step, at, page) in steps {
            match (step, files[at]) {
                (5, _) => commit(&mut fs),
                (_, None) => files[at] = Some(fs.create(at as u32 % 2, 0).unwrap()),
                (0..=2, Some(inode)) => {
                    for page in page..page + 20 {
                        fs.allocate(inode, page, u64::from(page + 20) * BLOCK, 0).unwrap();
                    }
                }
                (3, Some(inode)) => fs.close(inode),
                (_, Some(inode)) => {
                    fs.unlink(inode, 0);
                    files[at] = None;
                }
            }
            let mut blocks: Vec<u32> = files
                .iter()
                .flatten()
                .flat_map(|&inode| (0..720).map(move |page| (inode, page)))
                .map(|(inode, page)| fs.inode(inode).block(page))
                .filter(|&block| block != NONE)
                .collect();
            let count = blocks.len();
            blocks.sort_unstable();
            blocks.dedup();
            prop_assert_eq!(blocks.len(), count);
            prop_assert!(blocks.iter().all(|&block| block >= fs.layout.data));
        }
        for inode in files.into_iter().flatten() {
            fs.unlink(inode, 0);
        }
        commit(&mut fs);
        prop_assert_eq!(fs.free_blocks(), empty);
    }
}
