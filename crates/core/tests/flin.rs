//! FLIN (`flash.order = "flin"`): small cases worked out by hand, and what holds for every device.
//!
//! In the cases there is one die without a bus. A read takes 35 us, a program 350 us.

use ftlab_conformance as common;

use crate::devices;
use crate::devices::{device, parallel};
use common::{bursts, checked, pages, settings, shared, small, with_tenants};
use ftlab_core::ftl;
use ftlab_core::host::settings::Queues;
use ftlab_core::settings::Settings;
use ftlab_core::sim::Completion;
use ftlab_core::workload::settings::By;
use ftlab_core::workload::tenants::Class;
use ftlab_core::workload::{Op, Record};
use proptest::prelude::*;

const US: u64 = 1_000;
const READ: u64 = 35 * US;
const PROGRAM: u64 = 350 * US;

/// Returns a device of one die whose tenants are the streams of its requests.
fn die() -> Settings {
    let mut settings = settings();
    settings.ftl.kind = "page".into();
    settings.device.queue_depth = u32::MAX;
    settings.device.scheduler = "direct".into();
    settings.order.name = "flin".into();
    settings.workload.tenants = By::Stream;
    settings
}

fn at(time_ns: u64, op: Op, lpn: u64, stream: u16) -> Record {
    Record { stream, ..pages(time_ns, op, 4096, lpn, 1) }
}

/// Returns when each request is completed.
fn completions(settings: &Settings, trace: Vec<Record>) -> Vec<u64> {
    checked(settings, trace).1.iter().map(|row| row.complete_ns).collect()
}

/// Returns the streams of requests in the order of their completion.
fn order(rows: &[Completion]) -> Vec<u16> {
    let mut rows = rows.to_vec();
    rows.sort_by_key(|row| row.complete_ns);
    rows.iter().map(|row| row.stream).collect()
}

/// At 350 us the read has waited for 340 us and would wait for 350 us more, 690 / 35 of its own time; the write would
/// have waited for 375 / 350 of its own.
#[test]
fn a_read_goes_before_a_write_that_came_first() {
    let trace = vec![at(0, Op::Write, 0, 0), at(10 * US, Op::Write, 2, 0), at(10 * US, Op::Read, 1, 1)];
    let done = [PROGRAM, 2 * PROGRAM + READ, PROGRAM + READ];
    assert_eq!(completions(&die(), trace.clone()), done);
    let mut emission = die();
    emission.order.name = "emission".into();
    assert_eq!(completions(&emission, trace), [PROGRAM, 2 * PROGRAM, 2 * PROGRAM + READ]);
}

/// A read comes 1 us before the die is free, again and again. The write goes as soon as (t + 35) / 350 exceeds
/// (1 + 350) / 35, which is 3,510 / 350: at 3,500 us, after a hundred reads.
#[test]
fn a_write_goes_before_reads_once_it_has_waited_long() {
    let mut trace = vec![at(0, Op::Write, 0, 0), at(0, Op::Read, 1, 1)];
    trace.extend((1..120).map(|nth| at(nth * READ - US, Op::Read, 1, 1)));
    let done = completions(&die(), trace);
    assert_eq!(done[0], 100 * READ + PROGRAM);
    assert_eq!(done[1..=100], (1..=100).map(|nth| nth * READ).collect::<Vec<_>>());
}

/// Four reads of one tenant; alone, none is slowed down. The other tenant's read comes at 1 us. At the tail it would
/// take 174 / 35 of its time; in front of the second it takes 69 / 35, and the others 105 / 70, 140 / 105 and 175 / 140
/// of what they take alone: 1.25 / 1.97 is the greatest ratio of all places.
#[test]
fn a_read_goes_where_slowdowns_are_most_alike() {
    let mut trace: Vec<Record> = (0..4).map(|lpn| at(0, Op::Read, lpn, 0)).collect();
    trace.push(at(US, Op::Read, 9, 1));
    assert_eq!(completions(&die(), trace), [READ, 3 * READ, 4 * READ, 5 * READ, 2 * READ]);
}

/// Programs of one block begin in the order in which they were emitted. Where tenants have blocks of their own, the
/// write of the second goes in front of the first's second one: 1,400 / 1,050 to 699 / 350 is the greatest ratio.
#[test]
fn writes_pass_each_other_in_blocks_of_their_own() {
    let mut trace: Vec<Record> = (0..3).map(|lpn| at(0, Op::Write, lpn, 0)).collect();
    trace.push(at(US, Op::Write, 9, 1));
    let mut settings = die();
    assert_eq!(completions(&settings, trace.clone()), [PROGRAM, 2 * PROGRAM, 3 * PROGRAM, 4 * PROGRAM]);
    settings.ftl.placement = Some("stream".into());
    assert_eq!(completions(&settings, trace), [PROGRAM, 3 * PROGRAM, 4 * PROGRAM, 2 * PROGRAM]);
}

/// In the first millisecond the first tenant reads ten pages and the second one page, with a threshold of two. In the
/// second one every read of the second tenant goes in front of those of the first.
#[test]
fn who_reads_little_goes_first() {
    let mut settings = die();
    settings.order.own.flin.epoch_ns = 1000 * US;
    settings.order.own.flin.read_bytes = 2 * 4096;
    let mut trace: Vec<Record> = (0..10).map(|lpn| at(0, Op::Read, lpn, 0)).collect();
    trace.push(at(500 * US, Op::Read, 10, 1));
    trace.extend((0..4).map(|lpn| at(1000 * US, Op::Read, lpn, 0)));
    trace.extend((0..6).map(|lpn| at(1001 * US, Op::Read, lpn, 1)));
    let rows = checked(&settings, trace).1;
    assert_eq!(order(&rows)[11..], [0, 1, 1, 1, 1, 1, 1, 0, 0, 0]);
    // If nobody reads little, the slowdowns decide, and the last of the six do not go in front of all others.
    settings.order.own.flin.read_bytes = 0;
    let trace = rows.iter().map(|row| at(row.arrival_ns, Op::Read, 1, row.stream)).collect();
    assert_ne!(order(&checked(&settings, trace).1)[11..], [0, 1, 1, 1, 1, 1, 1, 0, 0, 0]);
}

/// Of 15 turns urgent tenants have 8 and low ones 1, the eighth.
#[test]
fn classes_have_turns() {
    let mut settings = die();
    settings.workload.tenants = By::None;
    settings.host.queues = Queues::PerTenant;
    let mut settings = with_tenants(&settings, &["a", "b"]);
    settings.tenants.0[0].own.priority = Class::Low;
    settings.tenants.0[1].own.priority = Class::Urgent;
    let load = |count| (0..count).map(|lpn| pages(0, Op::Read, 4096, lpn, 1)).collect();
    let rows = shared(&settings, &[load(3), load(6)]).1;
    assert_eq!(order(&rows), [1, 1, 1, 1, 0, 1, 1, 0, 0]);
}

/// Reads of one tenant go in the order of their arrival, as with reads first; and one tenant is none.
#[test]
fn one_tenant_is_none() {
    for kind in ["page", "dftl", "tpftl"] {
        let mut settings = small(kind, 4);
        settings.device.scheduler = "direct".into();
        settings.device.queue_depth = 64;
        settings.order.name = "flin".into();
        let load = bursts(3, 800, settings.user_pages());
        let expected = checked(&settings, load.clone()).1;
        settings.workload.tenants = By::Stream;
        assert_eq!(format!("{:?}", checked(&settings, load.clone()).1), format!("{expected:?}"), "{kind}");
        if kind != "page" {
            // Reads of mappings go before all others.
            continue;
        }
        let reads: Vec<Record> = load.into_iter().map(|record| Record { op: Op::Read, ..record }).collect();
        let ordered = checked(&settings, reads.clone()).1;
        settings.order.name = "reads-first".into();
        assert_eq!(format!("{:?}", checked(&settings, reads).1), format!("{ordered:?}"), "{kind}");
    }
}

proptest! {
    #![proptest_config(devices::cases(192, "tests/properties.regressions"))]

    /// Whatever the options: every request completes, every invariant of check mode holds, and a second run gives the
    /// same completions.
    #[test]
    fn every_request_completes(
        settings in device(),
        options in parallel(),
        (dies, planes, depth, transfer) in (1u32..4, 1u32..4, 1u32..40, 0u64..3),
        (apart, thresholds, epoch_us) in (any::<bool>(), any::<bool>(), 1u64..5_000),
        steps in proptest::collection::vec((0u8..10, any::<u32>(), 0u64..3, 0u64..600_000, 0u16..5), 1..200),
    ) {
        let mut all = settings;
        (all.flash.dies_per_chip, all.flash.planes_per_die) = (dies, planes);
        all.flash.parallel = options;
        all.order.name = "flin".into();
        (all.flash.transfer_ps, all.device.queue_depth) = (transfer * 10_000, depth);
        (all.device.scheduler, all.order.own.flin.epoch_ns) = ("direct".into(), epoch_us * US);
        if thresholds {
            (all.order.own.flin.read_bytes, all.order.own.flin.write_bytes) = (16 << 10, 16 << 10);
        }
        if apart {
            all.ftl.placement = Some("stream".into());
        }
        if all.allocates_by_speed() {
            all.ftl.wear_leveling = None;
        }
        all.host.scheduler = "noop".into();
        while ftl::check(&all).is_err() && all.flash.blocks_per_plane < 120 {
            all.flash.blocks_per_plane += 1;
        }
        prop_assume!(ftl::check(&all).is_ok() && ftlab_core::device::check::check(&all).is_ok());
        (all.workload.tenants, all.host.queues) = (By::Stream, Queues::PerTenant);
        let page = u64::from(all.ftl.logical_page_bytes);
        let mut time_ns = 0;
        let trace: Vec<Record> = steps.iter().map(|&(op, place, more, gap, stream)| {
            time_ns += gap;
            let op = [Op::Read, Op::Write, Op::Trim][usize::from(op / 5 + op / 9)];
            let lpn = u64::from(place) % (all.user_pages() - more);
            Record { stream, ..pages(time_ns, op, page, lpn, more + 1) }
        }).collect();
        let (report, rows) = checked(&all, trace.clone());
        prop_assert_eq!(rows.len(), trace.len());
        prop_assert_eq!(rows, checked(&all, trace).1);
        prop_assert!(report.utilization.die_busy_ns.iter().all(|&busy| busy <= report.elapsed_ns));
    }
}
