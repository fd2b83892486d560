//! `ftl.power_safe` in a run: the cost of trims that have to survive a power cut, and of those that do not.

use ftlab_conformance as common;

use common::{page_mapped_both_ways, pages, set_ftl, settings};
use ftlab_core::flash::Cause;
use ftlab_core::ftl::settings::HostFlush;
use ftlab_core::metrics::Report;
use ftlab_core::settings::Settings;
use ftlab_core::sim::{Completion, Observer, run};
use ftlab_core::workload::{Op, Record};

const PAGE: u64 = 4096;

/// Makes a device of two chips, which hold 150 user pages.
fn device(kind: &str, power_safe: bool) -> Settings {
    let mut settings = settings();
    set_ftl(&mut settings, kind);
    settings.ftl.mapping_cache_bytes = settings.ftl.flush_bytes.is_none().then_some(8192);
    settings.ftl.host_flush = HostFlush::Data;
    settings.flash.chips_per_channel = 2;
    settings.flash.pages_per_block = 8;
    settings.flash.blocks_per_plane = 20;
    settings.ftl.over_provisioning_ppm = 530_000;
    settings.ftl.power_safe = power_safe;
    ftlab_core::ftl::check(&settings).expect("it fits");
    settings
}

#[derive(Default)]
struct Done(Vec<Completion>);

impl Observer for Done {
    fn complete(&mut self, completion: &Completion) {
        self.0.push(*completion);
    }
}

fn simulate(settings: &Settings, trace: Vec<Record>) -> (Report, Vec<Completion>) {
    let mut done = Done::default();
    let report = run(settings, &mut trace.into_iter(), &mut done, true).expect("every invariant holds");
    (report, done.0)
}

/// Makes requests that come one after another, far apart.
fn spaced(ops: &[(Op, u64, u64)]) -> Vec<Record> {
    let record = |(at, &(op, lpn, count)): (usize, &(Op, u64, u64))| {
        let record = pages(at as u64 * 100_000_000, op, PAGE, lpn, count);
        if op == Op::Flush { Record { offset: 0, size: 0, ..record } } else { record }
    };
    ops.iter().enumerate().map(record).collect()
}

/// A flush with trims before it programs one page and takes as long as that program; any other flush, and every flush
/// without `ftl.power_safe`, costs nothing.
#[test]
fn a_flush_makes_the_trims_before_it_durable() {
    let ops = [
        (Op::Write, 0, 20),
        (Op::Flush, 0, 0),
        (Op::Trim, 3, 5),
        (Op::Flush, 0, 0),
        (Op::Flush, 0, 0),
        (Op::Trim, 3, 5),
        (Op::Flush, 0, 0),
        (Op::Write, 4, 1),
        (Op::Trim, 10, 1),
        (Op::Trim, 12, 1),
        (Op::Flush, 0, 0),
    ];
    for kind in page_mapped_both_ways() {
        for power_safe in [false, true] {
            let settings = device(kind, power_safe);
            let (report, done) = simulate(&settings, spaced(&ops));
            let flushes: Vec<u64> = done
                .iter()
                .filter(|done| done.op == Op::Flush)
                .map(|done| done.complete_ns - done.arrival_ns)
                .collect();
            let program = settings.flash.program.mean();
            // Pages that are already trimmed are not trimmed again.
            let expected = if power_safe { [0, program, 0, 0, program] } else { [0; 5] };
            assert_eq!(flushes, expected, "{kind}, power_safe {power_safe}");
            let pads = report.flash.programs[Cause::Pad];
            assert_eq!(pads, 2 * u64::from(power_safe), "{kind}");
        }
    }
}

/// Without a flush, only garbage collection has to record trims; without trims, there is nothing to record.
#[test]
fn a_long_run_with_trims() {
    for kind in page_mapped_both_ways() {
        let mut random = 1u64;
        let mut draw = |bound: u64| {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (random >> 33) % bound
        };
        let mut trace = Vec::new();
        for at in 0..6000 {
            let op = if draw(6) == 0 { Op::Trim } else { Op::Write };
            trace.push(pages(at * 2_000_000, op, PAGE, draw(140), 1 + draw(3)));
        }
        let writes: Vec<Record> = trace.iter().copied().filter(|record| record.op == Op::Write).collect();
        let moved = |power_safe, trace: &[Record]| {
            let (report, _) = simulate(&device(kind, power_safe), trace.to_vec());
            let programs = &report.flash.programs;
            (programs[Cause::Host], programs[Cause::Gc], programs[Cause::Pad])
        };
        let (plain, safe) = (moved(false, &trace), moved(true, &trace));
        assert_eq!((plain.0, plain.2), (safe.0, safe.2), "{kind}");
        assert!(safe.1 > plain.1, "{kind}: {safe:?} after {plain:?}");
        assert_eq!(moved(false, &writes), moved(true, &writes), "{kind}: without trims it is the same run");
    }
}
