//! Exact cases of BAST, FAST and the cooperative switch merge, state by state.
//!
//! Sources: Shim et al., TC 2014 (Fig. 4, sections 2.2 and 5.4, Algorithms 1, 3 and 4); the cost of a merge follows
//! from its definition.

use ftlab_conformance as common;

use crate::hybrids::Driver;
use common::hybrid_device as device;
use ftlab_core::flash::Cause;
use ftlab_core::ftl::hybrid::merges::MergeKind;
use ftlab_core::request::Mark;

const NONE: (u64, u64) = (0, 0);

/// Makes BAST or FAST with four-page blocks, twenty user blocks laid out and `logs` log blocks.
fn laid(kind: &str, logs: u32) -> Driver {
    let mut driver = Driver::new(&device(kind, 4, 20, logs));
    driver.prefill(0..80);
    driver
}

/// Makes the state before Fig. 4: Log Block 0 is full, Log Block 1 has two free pages, and all valid log pages belong
/// to block 0. (There is also an SW log block, which is not in the figure.)
fn figure_4() -> Driver {
    let mut driver = laid("fast", 3);
    for offset in [3, 1, 2, 1, 2, 1] {
        driver.write(offset, 1);
    }
    assert_eq!(driver.merges(), [NONE; 5]);
    driver
}

#[test]
fn figure_4_without_cooperative_merges() {
    let mut driver = figure_4();
    driver.write(1, 2);
    assert_eq!(driver.merges(), [NONE; 5], "two pages fit into Log Block 1");
    let erases = driver.erases();
    driver.write(3, 1);
    assert_eq!(driver.merges(), [(1, 4), NONE, NONE, NONE, NONE], "a full merge of four copies");
    assert_eq!(driver.erases() - erases, 2, "the old data block and the victim");
    // Page 3 is in a new log block, which has three free pages; no other log block has any.
    assert_eq!(driver.query(4, 2), [0u32; 0]);
    driver.write(5, 1);
    driver.write(6, 1);
    driver.write(7, 1);
    assert_eq!(driver.merges()[0], (1, 4));
    driver.write(5, 1);
    assert_eq!(driver.merges()[0], (1, 4), "Log Block 1 holds nothing valid: it is erased without a merge");
    assert_eq!(driver.erases() - erases, 3);
    driver.verify_times();
}

#[test]
fn figure_4_with_cooperative_merges() {
    let mut driver = figure_4();
    // The threshold is two of four pages: a block issue of three pages is merged; so would be one of two pages, because
    // there are no more free pages than that.
    assert_eq!(driver.query(1, 3), [0]);
    assert_eq!(driver.query(1, 2), [0]);
    assert_eq!(driver.query(1, 1), [0u32; 0]);
    let erases = driver.erases();
    driver.issue(0);
    driver.write_coop(1, 3);
    assert_eq!(
        driver.merges(),
        [NONE, NONE, NONE, NONE, (0, 1)],
        "page 0 is copied before page 1 is written"
    );
    driver.complete(0);
    assert_eq!(driver.merges(), [NONE, NONE, NONE, NONE, (1, 1)]);
    assert_eq!(driver.erases() - erases, 3, "Data Block 0, Log Block 0, Log Block 1");
    // There are two empty log blocks: eight pages go in before anything is reclaimed.
    for lpn in [5, 6, 5, 6, 5, 6, 5, 6] {
        driver.write_coop(lpn, 1);
    }
    assert_eq!(driver.erases() - erases, 3);
    driver.write_coop(5, 1);
    assert_eq!(driver.erases() - erases, 4);
    driver.verify_times();
}

/// Reference figures: a switch merge copies nothing and erases one block; a partial merge copies b - n pages and erases
/// one block; a full merge copies at most b pages and erases two.
#[test]
fn what_merges_cost_in_bast() {
    let mut driver = laid("bast", 1);
    driver.write(0, 4);
    assert_eq!((driver.merges(), driver.erases()), ([NONE, NONE, (1, 0), NONE, NONE], 1));
    driver.write(4, 3);
    driver.write(8, 1);
    assert_eq!((driver.merges()[1], driver.erases()), ((1, 1), 2));
    driver.write(12, 1);
    assert_eq!((driver.merges()[1], driver.erases()), ((2, 4), 3));
    driver.write(13, 2);
    driver.write(12, 1);
    assert_eq!((driver.merges()[0], driver.erases()), ((1, 4), 5), "full, and merged at once");
    driver.write(17, 1);
    driver.write(20, 1);
    assert_eq!((driver.merges()[0], driver.erases()), ((2, 8), 7), "not from offset 0: full");
    let stats = driver.stats();
    assert_eq!(stats.of(MergeKind::Switch).busy_ns, 500_000);
    assert_eq!(stats.of(MergeKind::Partial).busy_ns, 4 * 285_000 + 2 * 500_000);
    assert_eq!(stats.of(MergeKind::Full).busy_ns, 8 * 285_000 + 4 * 500_000);
    driver.verify_times();
}

/// Reclaiming a victim of FAST that holds pages of k blocks costs at most k b copies and k + 1 erases.
#[test]
fn what_merges_cost_in_fast() {
    for k in 1..=4 {
        let mut driver = laid("fast", 2);
        for page in 0..4 {
            driver.write(4 * (page % k) + 1 + page / k % 3, 1);
        }
        assert_eq!(driver.merges(), [NONE; 5]);
        driver.write(79, 1);
        let merged = u64::from(k);
        assert_eq!((driver.merges()[0], driver.erases()), ((merged, 4 * merged), merged + 1), "{k} blocks");
    }
    let mut driver = laid("fast", 2);
    driver.write(0, 4);
    assert_eq!((driver.merges(), driver.erases()), ([NONE, NONE, (1, 0), NONE, NONE], 1));
    driver.write(4, 3);
    driver.write(8, 1);
    assert_eq!((driver.merges()[1], driver.erases()), ((1, 1), 2), "offset 0 again: a partial merge");
    driver.write(9, 1);
    driver.write(10, 2);
    assert_eq!((driver.merges()[2], driver.erases()), ((2, 0), 3), "continued to its end");
    driver.verify_times();
}

/// FAST: a part that neither begins at offset 0 nor continues the SW log block counts as random as a whole.
#[test]
fn what_fast_takes_for_sequential() {
    let mut driver = laid("fast", 3);
    driver.write(0, 2);
    driver.write(1, 2);
    driver.write(2, 2);
    assert_eq!(driver.merges(), [NONE, NONE, (1, 0), NONE, NONE], "SW: 0 and 1, then 2 and 3");
    // Page 1 has been rewritten meanwhile and is stale in the new data block; page 2 in the log block is older.
    let mut driver = laid("fast", 3);
    driver.write(0, 2);
    driver.write(0, 2);
    assert_eq!(driver.merges(), [NONE, (1, 2), NONE, NONE, NONE], "offset 0 of the same block too");
    // One request covers three blocks: its parts are requests of their own.
    let mut driver = laid("fast", 3);
    driver.write(2, 8);
    assert_eq!(driver.merges(), [NONE, NONE, (1, 0), NONE, NONE]);
    driver.write(10, 2);
    assert_eq!(driver.merges()[2], (2, 0), "the third part began a SW log block that this fills");
    // Under cooperation, the FTL does not guess what is sequential.
    let mut driver = laid("fast", 3);
    driver.write_coop(0, 2);
    driver.write_coop(2, 2);
    driver.write_coop(4, 1);
    assert_eq!(driver.merges(), [NONE; 5]);
}

/// A block of the victim that owns the SW log block is merged with it: partially, or fully if one of the pages in that
/// log block has been superseded.
#[test]
fn a_victim_that_owns_the_sequential_block() {
    let mut driver = laid("fast", 2);
    driver.write(0, 2);
    for _ in 0..4 {
        driver.write(3, 1);
    }
    driver.write(79, 1);
    assert_eq!((driver.merges(), driver.erases()), ([NONE, (1, 2), NONE, NONE, NONE], 2));
    let mut driver = laid("fast", 2);
    driver.write(0, 2);
    for _ in 0..4 {
        driver.write(1, 1);
    }
    driver.write(79, 1);
    assert_eq!((driver.merges(), driver.erases()), ([(1, 4), NONE, NONE, NONE, NONE], 3));
    driver.verify_times();
}

/// "A block that holds data, overwritten once in order: exactly one merge, without copies, a switch merge everywhere
/// but a CSM under coop on FAST." A block that holds no data yet is written through a log block, too (the last case).
#[test]
fn a_block_overwritten_in_order() {
    for kind in common::hybrids() {
        for at_once in [true, false] {
            let mut driver = laid(kind, 4);
            if at_once {
                driver.write(8, 4);
            } else {
                (8..12).for_each(|lpn| driver.write(lpn, 1));
            }
            assert_eq!(driver.merges(), [NONE, NONE, (1, 0), NONE, NONE], "{kind}");
            assert_eq!((driver.erases(), driver.programs(Cause::Host)), (1, 4));
        }
        let mut driver = laid(kind, 4);
        driver.cooperate(8, 4);
        let cooperative = kind == "fast";
        assert_eq!(driver.merges()[2], (u64::from(!cooperative), 0), "{kind}");
        assert_eq!(driver.merges()[4], (u64::from(cooperative), 0), "{kind}");
        assert_eq!((driver.erases(), driver.programs(Cause::Merge)), (1, 0));
        let mut driver = Driver::new(&device(kind, 4, 20, 4));
        driver.write(8, 4);
        assert_eq!(driver.merges(), [NONE, NONE, (1, 0), NONE, NONE], "{kind}");
        assert_eq!(driver.erases(), 0, "there was no data block before");
    }
}

/// Random writes over one block under COOP cause no full merge.
#[test]
fn random_writes_over_one_block_under_coop() {
    for kind in common::hybrids() {
        let mut driver = Driver::new(&device(kind, 8, 20, 2));
        driver.prefill(0..160);
        let mut state = 88_172_645_463_325_252u64;
        for _ in 0..2000 {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            let first = (state >> 20) as u32 % 8;
            let pages = 1 + (state >> 40) as u32 % (8 - first);
            driver.cooperate(16 + first, pages);
        }
        let [full, partial, switched, _, cooperative] = driver.merges();
        assert_eq!((full, partial), (NONE, NONE), "{kind}");
        assert!(cooperative.0 + switched.0 > 300, "{kind}: {cooperative:?}, {switched:?}");
        driver.verify_times();
    }
}

/// Tests Algorithm 3 line by line.
#[test]
fn query_of_bast() {
    let mut driver = laid("bast", 2);
    assert_eq!(driver.query(1, 3), [0u32; 0], "no log block allocated, one left");
    driver.write(0, 1);
    assert_eq!(driver.query(1, 2), [0u32; 0], "fewer pages than are free");
    assert_eq!(driver.query(1, 3), [0u32; 0], "in order, and as many as are free, at the right offset");
    assert_eq!(driver.query(0, 3), [0], "as many as are free, but not at the right offset");
    assert_eq!(driver.query(0, 4), [0], "more than are free");
    driver.write(6, 1);
    assert_eq!(driver.query(5, 3), [1], "not in order: filling the log would merge");
    assert_eq!(driver.query(4, 2), [0u32; 0]);
    assert_eq!(driver.query(8, 1), [0], "no log block left: the least recently written one");
    driver.write(1, 1);
    assert_eq!(driver.query(8, 1), [1]);
    driver.trim(6, 1);
    assert_eq!(driver.query(8, 1), [0u32; 0], "a victim without valid pages needs no merge");
}

/// Tests Algorithm 4 line by line.
#[test]
fn query_of_fast() {
    let mut driver = laid("fast", 3);
    assert_eq!(driver.query(5, 2), [0u32; 0], "eight pages free");
    assert_eq!(driver.query(4, 3), [1], "more than CSM_TH");
    for lpn in [9, 2, 5, 6, 6, 6] {
        driver.write(lpn, 1);
    }
    assert_eq!(driver.query(77, 1), [0u32; 0]);
    assert_eq!(driver.query(77, 2), [0, 1, 2], "as many pages as are free: the victim's blocks");
    assert_eq!(driver.query(77, 3), [19]);
    driver.write(5, 1);
    driver.write(2, 1);
    assert_eq!(driver.query(77, 1), [2], "what has a valid page in the victim");
    driver.write(9, 1);
    assert_eq!(driver.merges()[0], (1, 4), "the victim was reclaimed for page 9");
    assert_eq!(driver.query(77, 2), [0u32; 0]);
}

/// Block issues for the victim's blocks leave nothing to merge when the victim is reclaimed, and free its log block.
#[test]
fn cooperative_merges_clear_a_victim() {
    let mut driver = laid("fast", 2);
    for lpn in [9, 2, 5, 6] {
        driver.write(lpn, 1);
    }
    let set = driver.query(77, 2);
    assert_eq!(set, [0, 1, 2]);
    for block in set {
        driver.issue(block);
        driver.write_coop(4 * block + 1, 2);
        driver.complete(block);
    }
    assert_eq!(driver.merges(), [NONE, NONE, NONE, NONE, (3, 6)]);
    assert_eq!(driver.erases(), 4, "three data blocks and the log block");
    driver.write_coop(77, 2);
    assert_eq!((driver.merges()[0], driver.erases()), (NONE, 4));
}

/// Edge cases of Algorithm 1: events that end an issue early, and those that change nothing.
#[test]
fn edges_of_a_cooperative_merge() {
    for kind in common::hybrids() {
        let mut driver = laid(kind, 3);
        driver.complete(3);
        driver.issue(3);
        driver.issue(3);
        driver.complete(4);
        assert_eq!(driver.merges()[4], NONE, "{kind}: of another block, or none under way");
        driver.write_coop(13, 1);
        // Meanwhile, writes to other blocks go the ordinary way.
        driver.write_coop(5, 1);
        driver.write_coop(14, 1);
        assert_eq!(driver.merges()[4], (0, 1));
        driver.issue(6);
        assert_eq!(driver.merges()[4], (1, 2), "{kind}: another issue completes the one under way");
        driver.write_coop(26, 1);
        driver.write_coop(25, 1);
        assert_eq!(driver.merges()[4], (2, 5), "{kind}: so does a write behind the next free page");
        driver.complete(6);
        assert_eq!(driver.merges()[4], (2, 5));
        driver.issue(7);
        driver.write_coop(29, 1);
        driver.trim(29, 1);
        driver.write_coop(30, 2);
        driver.complete(7);
        assert_eq!(driver.merges()[4], (3, 6), "{kind}: what is trimmed meanwhile stays so");
        assert_eq!(driver.version(29), None);
        let erases = driver.erases();
        driver.trim(32, 4);
        driver.issue(8);
        driver.complete(8);
        assert_eq!((driver.merges()[4], driver.erases()), ((3, 6), erases), "{kind}: nothing to merge");
        driver.verify_times();
    }
}

/// If a log block is needed while the cooperative merge of its block is in progress, that merge is completed.
#[test]
fn a_merge_of_the_block_under_way_is_its_completion() {
    let mut driver = laid("bast", 1);
    driver.write(1, 1);
    driver.issue(0);
    driver.write_coop(2, 1);
    driver.write_coop(5, 1);
    assert_eq!(driver.merges(), [NONE, NONE, NONE, NONE, (1, 3)]);
    driver.write_coop(3, 1);
    driver.complete(0);
    assert_eq!(driver.merges()[4], (1, 3));
    let mut driver = laid("fast", 2);
    for offset in [1, 2, 1, 2] {
        driver.write(offset, 1);
    }
    driver.issue(0);
    driver.write_coop(0, 1);
    driver.write_coop(5, 1);
    assert_eq!(driver.merges(), [NONE, NONE, NONE, NONE, (1, 3)]);
    // Reclaiming the SW log block completes the merge of its block, too.
    let mut driver = laid("fast", 2);
    driver.write(0, 2);
    driver.issue(0);
    driver.write_coop(1, 1);
    driver.write(4, 1);
    assert_eq!(driver.merges(), [NONE, NONE, NONE, NONE, (1, 3)]);
}

/// Padding: its reads and programs belong to the padded switch merge, and are not host writes.
#[test]
fn padded_switch_merges() {
    let pad = Mark { pad: true, ..Mark::default() };
    for kind in common::hybrids() {
        let mut driver = laid(kind, 3);
        driver.marked(8, 1, pad);
        driver.write(9, 2);
        driver.marked(11, 1, pad);
        assert_eq!(driver.merges(), [NONE, NONE, NONE, (1, 2), NONE], "{kind}");
        assert_eq!((driver.programs(Cause::Host), driver.programs(Cause::Pad)), (2, 2));
        assert_eq!(driver.stats().of(MergeKind::PaddedSwitch).busy_ns, 2 * 240_000 + 500_000);
        driver.verify_times();
    }
}
