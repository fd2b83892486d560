//! Laws of dies and planes that work in parallel, over random devices, options and requests: where nothing
//! can overlap they behave like chips, to the nanosecond. The exact times are in `die_timing.rs`.

use ftlab_conformance as common;

use crate::devices;
use crate::devices::{device, parallel};
use common::checked;
use ftlab_core::flash::parallel::{Allocation, MultiPlane, Parallel, Suspend};
use ftlab_core::ftl;
use ftlab_core::settings::{Precondition, Settings};
use ftlab_core::workload::{Op, Record};
use proptest::prelude::*;

/// Makes requests at random times.
fn trace(settings: &Settings, steps: &[(u8, u32, u64, u64)]) -> Vec<Record> {
    let user = settings.user_bytes();
    let mut time_ns = 0;
    let record = |&(op, at, size, gap): &(u8, u32, u64, u64)| {
        time_ns += if op % 3 == 0 { gap } else { 0 };
        let size = size.min(user);
        let op = match op {
            0..4 => Op::Read,
            4..8 => Op::Write,
            8 => Op::Trim,
            _ => Op::Flush,
        };
        let offset = u64::from(at) % (user - size + 1);
        Record {
            time_ns,
            op,
            offset,
            size: if op == Op::Flush { 0 } else { size },
            line: 0,
            flags: 0,
            stream: 0,
            latency_ns: Record::UNKNOWN,
        }
    };
    steps.iter().map(record).collect()
}

/// Returns a device in which each chip is one die of one plane, without options.
fn plain(mut settings: Settings) -> Settings {
    settings.flash.blocks_per_plane *= settings.flash.dies_per_chip * settings.flash.planes_per_die;
    settings.flash.dies_per_chip = 1;
    settings.flash.planes_per_die = 1;
    settings.flash.parallel = Parallel::default();
    if settings.ftl.allocation != Allocation::Dynamic {
        settings.ftl.allocation = Allocation::CHANNEL_FIRST;
    }
    settings
}

fn steps() -> impl Strategy<Value = Vec<(u8, u32, u64, u64)>> {
    proptest::collection::vec((0u8..10, any::<u32>(), 1u64..3000, 0u64..2_000_000), 1..200)
}

proptest! {
    #![proptest_config(devices::cases(192, "tests/properties.regressions"))]

    /// The options change nothing, to the nanosecond, if each chip is one die of one plane: whole reports and
    /// completions are equal. The same holds where steps could overtake each other but never do, because suspending
    /// takes longer than any erasure; each step is then a separate operation.
    #[test]
    fn one_die_and_plane_are_a_chip(
        settings in device(),
        scheduler in prop::sample::select(common::device_schedulers()),
        host in prop::sample::select(common::schedulers(false)),
        (depth, transfer, command) in (1u32..12, 0u64..3, 0u64..3),
        background: bool,
        steps in steps(),
    ) {
        let mut one = plain(settings);
        prop_assume!(ftl::check(&one).is_ok());
        one.device.queue_depth = depth;
        one.host.scheduler = host.into();
        one.flash.transfer_ps = transfer * 10_000;
        one.flash.command_ns = command * 700;
        one.ftl.background_flush = background;
        one.device.scheduler = scheduler.into();
        if one.allocates_by_speed() {
            one.ftl.wear_leveling = None;
        }
        if ftlab_core::device::check::check(&one).is_err() {
            one.device.scheduler = "noop".into();
        }
        // Suspensions let requests overtake what the device rewrites or folds.
        (one.ftl.refresh, one.ftl.slc_fold_idle_ns) = (None, None);
        let mut other = one.clone();
        other.flash.parallel.interleave = true;
        other.flash.parallel.multi_plane = MultiPlane::Free;
        let mut patient = other.clone();
        patient.flash.parallel.suspend = Suspend::Erase;
        patient.flash.parallel.suspend_ns = u64::MAX;
        let (mut expected, rows) = checked(&one, trace(&one, &steps));
        // Under noop and noop-busy a request issues even to a busy chip whose operation it could interrupt, so the
        // second device is left out.
        let count = if one.device.scheduler.starts_with("noop") { 1 } else { 2 };
        for settings in [other, patient].iter().take(count) {
            let (report, other_rows) = checked(settings, trace(settings, &steps));
            prop_assert_eq!(&rows, &other_rows);
            // Dies are reported separately if they have options.
            prop_assert_eq!(&report.utilization.die_busy_ns, &report.utilization.chip_busy_ns);
            expected.utilization = report.utilization.clone();
            prop_assert_eq!(format!("{:?}", report), format!("{:?}", expected));
        }
    }

    /// With one channel, one chip, queue depth 1, no bus time and no variation, this is the serial device, whatever the
    /// options: the flash operations of a request follow one another without a gap.
    #[test]
    fn nothing_overlaps_at_queue_depth_1_on_one_die(
        settings in device(),
        options in parallel(),
        background: bool,
        steps in steps(),
    ) {
        let mut one = plain(settings);
        one.flash.blocks_per_plane *= one.flash.chips();
        one.flash.channels = 1;
        one.flash.chips_per_channel = 1;
        one.flash.variation = None;
        one.device.scheduler = "noop".into();
        one.ftl.background_flush = background;
        // Suspensions let requests overtake what the device rewrites.
        (one.ftl.refresh, one.ftl.slc_fold_idle_ns) = (None, None);
        prop_assume!(ftl::check(&one).is_ok());
        let mut other = one.clone();
        other.flash.parallel = options;
        prop_assert_eq!(checked(&one, trace(&one, &steps)).1, checked(&other, trace(&other, &steps)).1);
    }

    /// Whatever the options: every request completes, no resource is busy for longer than the run, every
    /// invariant of check mode holds, and a second run gives the same completions.
    #[test]
    fn all_options_together_keep_every_invariant(
        settings in device(),
        options in parallel(),
        scheduler in prop::sample::select(common::device_schedulers()),
        (dies, planes, depth, transfer, command) in (1u32..4, 1u32..4, 1u32..40, 0u64..3, 0u64..3),
        steps in steps(),
    ) {
        let mut all = settings;
        all.flash.dies_per_chip = dies;
        all.flash.planes_per_die = planes;
        all.flash.parallel = options;
        while ftl::check(&all).is_err() && all.flash.blocks_per_plane < 80 {
            all.flash.blocks_per_plane += 1;
        }
        prop_assume!(ftl::check(&all).is_ok());
        all.device.queue_depth = depth;
        all.flash.transfer_ps = transfer * 10_000;
        all.flash.command_ns = command * 700;
        all.device.scheduler = scheduler.into();
        if all.allocates_by_speed() {
            all.ftl.wear_leveling = None;
        }
        if ftlab_core::device::check::check(&all).is_err() {
            all.device.scheduler = "direct".into();
        }
        if steps.len().is_multiple_of(2) {
            all.ftl.slc_fold_idle_ns = None;
        }
        let (report, rows) = checked(&all, trace(&all, &steps));
        prop_assert_eq!(rows.len(), steps.len());
        let used = &report.utilization;
        for busy_ns in used.chip_busy_ns.iter().chain(&used.die_busy_ns).chain(&used.channel_busy_ns) {
            prop_assert!(*busy_ns <= report.elapsed_ns);
        }
        // If nothing overlaps within a die, dies are busy for exactly as long as flash operations and suspensions take;
        // what is being rewritten or folded when the run ends counts only up to that moment.
        let folds = all.ftl.slc_cache.is_some() && all.ftl.slc_fold_idle_ns.is_some();
        let ends = all.ftl.refresh.is_none() && !folds;
        if ends && options.multi_plane == MultiPlane::Off && !options.cache_read && !options.cache_program {
            let busy: u64 = if options.interleave { &used.die_busy_ns } else { &used.chip_busy_ns }.iter().sum();
            let suspended = (report.parallel.suspensions.program + report.parallel.suspensions.erase)
                * (options.suspend_ns + options.resume_ns);
            prop_assert_eq!(busy, report.flash.busy_ns.total() + suspended);
        }
        prop_assert_eq!(checked(&all, trace(&all, &steps)).1, rows);
    }
}

/// Returns settings of a device with two dies of two planes, which evicts mappings and is filled up to its capacity.
fn filled(blocks_per_plane: u32, withheld_ppm: u64) -> Settings {
    let mut settings = common::settings();
    settings.flash.dies_per_chip = 2;
    settings.flash.planes_per_die = 2;
    settings.flash.parallel.multi_plane = MultiPlane::SameOffset;
    settings.flash.blocks_per_plane = blocks_per_plane;
    settings.ftl.over_provisioning_ppm = withheld_ppm;
    settings.ftl.mapping_cache_bytes = Some(1 << 10);
    settings.device.precondition = Precondition::fill();
    settings.device.queue_depth = 32;
    settings
}

/// While nothing is erased, blocks that hold nothing change nothing: a device of the same capacity with twice as many
/// blocks behaves the same, to the nanosecond. With the same share withheld, it does not: planes of one die work
/// together where their next pages are level, and which planes are level depends on how many data and translation pages
/// were laid before.
#[test]
fn only_the_capacity_tells_256_blocks_a_plane_from_512() {
    let all = [filled(256, 100_000), filled(512, 550_000), filled(512, 100_000)];
    let [capacity, same, more] = all.each_ref().map(|settings| settings.user_pages());
    assert!(capacity == same && more > capacity);
    let mut others = 0;
    for seed in 0..25 {
        let [one, same, more] = all.each_ref().map(|settings| {
            let (report, rows) = checked(settings, common::bursts(seed, 300, capacity));
            assert_eq!(report.flash.erases.values().sum::<u64>(), 0, "seed {seed}");
            (rows, format!("{:?}", report.flash))
        });
        assert_eq!(one, same, "seed {seed}");
        others += usize::from(one != more);
    }
    assert!(others > 0, "the layout shows nowhere");
}
