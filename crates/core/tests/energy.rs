//! The energy of a run, against numbers worked out by hand, and laws for random devices.

use ftlab_conformance as common;

use common::{bursts, checked, pages, settings, tiny};
use ftlab_core::Simulation;
use ftlab_core::config::ByPageType;
use ftlab_core::flash::Cause;
use ftlab_core::flash::settings::{Cell, Programming};
use ftlab_core::ftl::check;
use ftlab_core::metrics::{Energy, Report};
use ftlab_core::settings::Settings;
use ftlab_core::sim::Prepared;
use ftlab_core::workload::{Op, Record};
use proptest::prelude::*;

const PAGE: u64 = 4096;
/// A microjoule and a picojoule, fJ, and a milliwatt, uW.
const UJ: u64 = 1_000_000_000;
const PJ: u64 = 1_000;
const MW: u64 = 1_000;
/// Reads take 35 us and programs 350 us.
const READ_NS: f64 = 35_000.0;
const PROGRAM_NS: f64 = 350_000.0;

/// Returns a page-mapped device of one chip with a block of four word lines of three pages.
fn tlc() -> Settings {
    let mut settings = settings();
    settings.ftl.kind = "page".into();
    settings.flash.pages_per_block = 12;
    settings.flash.blocks_per_plane = 64;
    settings.flash.page_bytes = PAGE as u32;
    settings.ftl.logical_page_bytes = PAGE as u32;
    settings.ftl.over_provisioning_ppm = 250_000;
    settings.flash.cell = Cell::Tlc;
    settings
}

/// Makes requests of one page each, in address order, 10 ms after one another from `start_ms` on.
fn one_by_one(start_ms: u64, op: Op, count: u64) -> Vec<Record> {
    (0..count).map(|at| pages((start_ms + at * 10) * 1_000_000, op, PAGE, at, 1)).collect()
}

fn run(settings: &Settings, trace: Vec<Record>) -> (Report, Energy) {
    check(settings).expect("it fits");
    settings.check(&Default::default()).expect("it fits");
    let report = checked(settings, trace).0;
    let energy = report.energy.clone().expect("energies are set");
    (report, energy)
}

/// Returns the number of pages of 4 KiB that the user has.
fn room(settings: &Settings) -> u64 {
    settings.user_pages() * u64::from(settings.ftl.logical_page_bytes) / PAGE
}

/// Asserts that two energies agree but for the rounding of their last digits.
fn agree(found: f64, expected: f64) {
    assert!((found - expected).abs() <= 1e-12 * expected.abs(), "{found}, not {expected}");
}

/// Nine pages, three of each type, are written and then read: programs of 20, 30 and 40 uJ, reads of 10, 12 and 15 uJ.
#[test]
fn each_page_takes_the_energy_of_its_type() {
    let mut settings = tlc();
    settings.energy.read = ByPageType::energies(&[10 * UJ, 12 * UJ, 15 * UJ]);
    settings.energy.program = ByPageType::energies(&[20 * UJ, 30 * UJ, 40 * UJ]);
    let mut trace = one_by_one(0, Op::Write, 9);
    trace.extend(one_by_one(200, Op::Read, 9));
    let (_, energy) = run(&settings, trace);
    agree(energy.read_mj, 3.0 * 0.037);
    agree(energy.program_mj, 3.0 * 0.090);
    agree(energy.total_mj, 3.0 * 0.127);
    agree(energy.by_cause[Cause::Host], 3.0 * 0.127);
    agree(energy.per_request_uj.expect("there are requests"), 3.0 * 127.0 / 18.0);
    assert_eq!((energy.transfer_mj, energy.link_mj, energy.idle_mj), (0.0, 0.0, 0.0));
}

/// Types are told apart even if all of them take the same time and one of them a different energy.
#[test]
fn a_type_counts_even_if_only_programs_differ() {
    let mut settings = tlc();
    settings.energy.program = ByPageType::energies(&[0, 0, 40 * UJ]);
    settings.energy.read = ByPageType::energies(&[10 * UJ]);
    let mut trace = one_by_one(0, Op::Write, 8);
    trace.extend(one_by_one(200, Op::Read, 8));
    let (_, energy) = run(&settings, trace);
    agree(energy.program_mj, 2.0 * 0.040);
    agree(energy.read_mj, 8.0 * 0.010);
}

/// A word line is programmed at once, with the energy of one program: two full ones, and one that a flush fills up,
/// whose three pages share the energy between the host and padding.
#[test]
fn a_word_line_takes_the_energy_of_one_program() {
    let mut settings = tlc();
    settings.flash.programming = Programming::WordLine;
    settings.energy.program = ByPageType::energies(&[100 * UJ]);
    settings.energy.transfer_fj = PJ;
    let mut trace = one_by_one(0, Op::Write, 7);
    let flush = Record { time_ns: 100_000_000, ..Record::FLUSH };
    trace.push(flush);
    let (report, energy) = run(&settings, trace);
    assert_eq!([Cause::Host, Cause::Pad].map(|cause| report.flash.programs[cause]), [7, 2]);
    agree(energy.program_mj, 0.300);
    // A page of 4,096 bytes is transferred with 4,096 pJ.
    agree(energy.transfer_mj, 9.0 * 4.096e-6);
    agree(energy.by_cause[Cause::Host], 0.700 / 3.0 + 7.0 * 4.096e-6);
    agree(energy.by_cause[Cause::Pad], 0.200 / 3.0 + 2.0 * 4.096e-6);
}

/// A read of one of the four logical pages in a NAND page transfers a quarter of it; a program transfers all of it.
#[test]
fn only_bytes_on_the_bus_take_the_energy_of_a_transfer() {
    let mut settings = tlc();
    settings.flash.cell = Cell::Slc;
    settings.ftl.logical_page_bytes = 1024;
    settings.energy.transfer_fj = 5 * PJ;
    settings.energy.link_fj = 7 * PJ;
    settings.energy.command_fj = UJ / 1000;
    let small = |time_ms: u64, op, lpn, count| pages(time_ms * 1_000_000, op, 1024, lpn, count);
    let mut trace: Vec<Record> = (0..8).map(|at| small(10 * at, Op::Write, at, 1)).collect();
    trace.extend([small(100, Op::Read, 0, 1), small(110, Op::Read, 5, 2), small(120, Op::Read, 0, 8)]);
    let (report, energy) = run(&settings, trace);
    assert_eq!((report.flash.programs.total(), report.flash.reads.total()), (2, 4));
    let picojoules = |bytes: f64, each: f64| bytes * each * 1e-9;
    agree(energy.transfer_mj, picojoules(2.0 * 4096.0 + 1024.0 + 2048.0 + 8192.0, 5.0));
    agree(energy.link_mj, picojoules(8.0 * 1024.0 + 11.0 * 1024.0, 7.0));
    // Eleven commands of a nanojoule each.
    agree(energy.command_mj, 11e-6);
}

/// Two reads and a write with gaps between them: something is under way for as long as they take, and nothing for the
/// rest of the time from the first arrival to the last completion.
#[test]
fn the_controller_idles_between_requests() {
    let mut settings = tlc();
    settings.energy.idle_uw = 50 * MW;
    settings.energy.active_uw = 2000 * MW;
    let trace = vec![
        pages(5_000_000, Op::Read, PAGE, 0, 1),
        pages(15_000_000, Op::Write, PAGE, 1, 1),
        pages(15_010_000, Op::Read, PAGE, 2, 1),
        pages(40_000_000, Op::Read, PAGE, 3, 1),
    ];
    settings.device.queue_depth = 1;
    let (report, energy) = run(&settings, trace);
    // The second read waits in the host for the write.
    let active_ns = READ_NS + (PROGRAM_NS + READ_NS) + READ_NS;
    assert_eq!(report.elapsed_ns, 35_035_000);
    // 2 W for a nanosecond are 2e-6 mJ, 50 mW are 5e-8.
    agree(energy.active_mj, active_ns * 2e-6);
    agree(energy.idle_mj, (35_035_000.0 - active_ns) * 5e-8);
    agree(energy.total_mj, energy.active_mj + energy.idle_mj);
}

/// A report that is made while a request is under way counts up to that moment, and changes nothing that follows.
#[test]
fn a_report_counts_up_to_now() {
    let mut settings = tlc();
    settings.energy.idle_uw = MW;
    settings.energy.active_uw = 3 * MW;
    let mut simulation =
        Simulation::new(&settings, Prepared::new(&settings, &mut (), true).expect("it fits"));
    for (time_ns, lpn) in [(1_000, 0), (1_000_000, 1)] {
        simulation.submit(pages(time_ns, Op::Read, PAGE, lpn, 1)).expect("it is in the future");
    }
    let mut at = |until_ns| {
        simulation.advance(until_ns, &mut ()).expect("a sound run");
        let energy = simulation.report().energy.expect("energies are set");
        (energy.active_mj, energy.idle_mj)
    };
    for (until_ns, active_ns, idle_ns) in [
        (11_000, 10_000.0, 0.0),
        // Nothing is under way: the run extends to the last completion.
        (500_000, READ_NS, 0.0),
        (1_020_000, READ_NS + 20_000.0, 999_000.0 - READ_NS),
        (2_000_000, 2.0 * READ_NS, 999_000.0 - READ_NS),
    ] {
        let (active_mj, idle_mj) = at(until_ns);
        agree(active_mj, active_ns * 3e-9);
        agree(idle_mj, idle_ns * 1e-9);
    }
}

/// With all energies 0 there is no section, and energies change nothing else in a result.
#[test]
fn energies_change_nothing_else() {
    for kind in common::all_ftls() {
        let plain = tiny(kind);
        let mut settings = plain.clone();
        settings.energy.read = ByPageType::energies(&[10 * UJ]);
        settings.energy.active_uw = MW;
        settings.energy.idle_uw = 1;
        let (expected, done) = checked(&plain, bursts(3, 300, room(&plain)));
        let (mut report, again) = checked(&settings, bursts(3, 300, room(&plain)));
        assert!(expected.energy.is_none());
        assert!(report.energy.take().is_some_and(|energy| energy.total_mj > 0.0), "{kind}");
        assert_eq!(format!("{report:?}"), format!("{expected:?}"), "{kind}");
        assert_eq!(again, done, "{kind}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 12, failure_persistence: None, ..ProptestConfig::default() })]

    /// The parts make the total, the causes make the flash's part, and telling page types apart changes no result:
    /// types with equal energies, one of which is stated as different by a femtojoule.
    #[test]
    fn energy_is_conserved(
        kind in prop::sample::select(common::all_ftls()),
        seed in 0u64..1000,
        energies in prop::array::uniform8(0u64..1_000_000),
        programming in 0usize..3,
    ) {
        let plain = common::programming(kind)[programming].clone();
        let mut settings = plain.clone();
        let [read, program, erase, transfer, link, command, idle, active] = energies;
        let bits = settings.flash.cell.bits() as usize;
        let mut reads = vec![read; bits];
        reads[bits - 1] += 1;
        settings.energy.read = ByPageType::energies(&reads);
        settings.energy.program = ByPageType::energies(&[program]);
        (settings.energy.erase_fj, settings.energy.transfer_fj) = (erase, transfer);
        (settings.energy.link_fj, settings.energy.command_fj) = (link, command);
        (settings.energy.idle_uw, settings.energy.active_uw) = (idle, active);
        let (expected, done) = checked(&plain, bursts(seed, 200, room(&plain)));
        let (mut report, again) = checked(&settings, bursts(seed, 200, room(&plain)));
        let energy = report.energy.take().expect("the highest type takes energy");
        prop_assert_eq!(format!("{:?}", report), format!("{:?}", expected));
        prop_assert_eq!(again, done);
        let flash = energy.read_mj + energy.program_mj + energy.erase_mj + energy.transfer_mj;
        let rest = energy.link_mj + energy.command_mj + energy.active_mj + energy.idle_mj;
        let causes: f64 = energy.by_cause.values().sum();
        prop_assert!((flash - causes).abs() <= 1e-12 * flash);
        prop_assert!((flash + rest - energy.total_mj).abs() <= 1e-12 * energy.total_mj);
        let units = report.flash.programs.total() / u64::from(settings.flash.unit_pages());
        agree(energy.program_mj, (units * program) as f64 * 1e-12);
        agree(energy.erase_mj, (report.flash.erases.total() * erase) as f64 * 1e-12);
    }
}
