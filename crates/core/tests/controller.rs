//! Controller and link: the way of a command in numbers worked out by hand, and the laws of what bounds a device.
//!
//! Reads take 35 us, programs 350 us, pages are 4 KiB; a link of 4.096 GB/s carries a page in 1 us.

use ftlab_conformance as common;

use common::{checked, pages, settings};
use ftlab_core::device::controller::Duplex;
use ftlab_core::settings::Settings;
use ftlab_core::sim::Completion;
use ftlab_core::workload::{Op, Record};
use proptest::prelude::*;

const READ: u64 = 35_000;
const PROGRAM: u64 = 350_000;
const LINK: u64 = 4_096_000_000;
const PAGE: u64 = 1_000;
const COMMAND: u64 = 3_000;
const UNIT: u64 = 200;
const LATENCY: u64 = 7_000;
const ANSWER: u64 = 500;

/// A device of four chips with a link, one core, and a latency of each operation.
fn device() -> Settings {
    let mut settings = settings();
    settings.ftl.kind = "page".into();
    settings.device.queue_depth = u32::MAX;
    settings.flash.channels = 4;
    let controller = &mut settings.device.controller;
    controller.link = LINK;
    (controller.command_ns, controller.unit_ns) = (COMMAND, UNIT);
    controller.latency_read_ns = LATENCY;
    controller.latency_write_ns = 2 * LATENCY;
    controller.latency_other_ns = 3 * LATENCY;
    settings
}

fn at(time_ns: u64, op: Op, lpn: u64, count: u64) -> Record {
    pages(time_ns, op, 4096, lpn, count)
}

fn rows(settings: &Settings, trace: Vec<Record>) -> Vec<Completion> {
    let mut rows = checked(settings, trace).1;
    rows.sort_by_key(|row| row.id);
    rows
}

fn latencies(settings: &Settings, trace: Vec<Record>) -> Vec<u64> {
    rows(settings, trace).iter().map(|row| row.complete_ns - row.arrival_ns).collect()
}

#[test]
fn a_command_alone_takes_the_sum_of_its_stages() {
    let settings = device();
    assert_eq!(latencies(&settings, vec![at(0, Op::Read, 0, 1)]), [COMMAND + UNIT + READ + PAGE + LATENCY]);
    let four = COMMAND + 4 * UNIT + 4 * PAGE;
    assert_eq!(latencies(&settings, vec![at(0, Op::Read, 0, 4)]), [four + READ + LATENCY]);
    assert_eq!(latencies(&settings, vec![at(0, Op::Write, 0, 4)]), [four + PROGRAM + 2 * LATENCY]);
    // Neither carries data: a flush touches no page, a trim two.
    assert_eq!(latencies(&settings, vec![at(0, Op::Flush, 0, 0)]), [COMMAND + 3 * LATENCY]);
    assert_eq!(latencies(&settings, vec![at(0, Op::Trim, 0, 2)]), [COMMAND + 2 * UNIT + 3 * LATENCY]);
}

#[test]
fn the_link_carries_commands_and_answers_too() {
    let mut settings = device();
    settings.device.controller.link_command_ns = ANSWER;
    let alone = 2 * ANSWER + COMMAND + UNIT + PAGE;
    assert_eq!(latencies(&settings, vec![at(0, Op::Read, 0, 1)]), [alone + READ + LATENCY]);
    assert_eq!(latencies(&settings, vec![at(0, Op::Write, 0, 1)]), [alone + PROGRAM + 2 * LATENCY]);
}

/// Two reads of different chips at once: the core works on one after the other, all else is side by side.
#[test]
fn commands_wait_for_a_core() {
    let mut settings = device();
    let both = vec![at(0, Op::Read, 0, 1), at(0, Op::Read, 1, 1)];
    let alone = COMMAND + UNIT + READ + PAGE + LATENCY;
    assert_eq!(latencies(&settings, both.clone()), [alone, alone + COMMAND + UNIT]);
    // Two cores work on both; then the pages leave one after the other.
    settings.device.controller.cores = 2;
    assert_eq!(latencies(&settings, both), [alone, alone + PAGE]);
}

/// Without a core's time, a read of four pages leaves from 35 us to 39 us; the write came in from 35.5 us, and the
/// flash takes 350 us.
#[test]
fn directions_of_a_link_are_apart_unless_it_is_half_duplex() {
    let mut settings = device();
    let controller = &mut settings.device.controller;
    (controller.command_ns, controller.unit_ns) = (0, 0);
    let trace = vec![at(0, Op::Read, 0, 4), at(35_500, Op::Write, 8, 1)];
    let [read, write] = [READ + 4 * PAGE + LATENCY, PAGE + PROGRAM + 2 * LATENCY];
    assert_eq!(latencies(&settings, trace.clone()), [read, write]);
    settings.device.controller.duplex = Duplex::Half;
    assert_eq!(latencies(&settings, trace), [read, 3_500 + write]);
}

/// At depth 1 the next command is handed over when the first is answered.
#[test]
fn a_command_holds_its_place_until_it_is_answered() {
    let mut settings = device();
    settings.device.queue_depth = 1;
    let both = rows(&settings, vec![at(0, Op::Read, 0, 1), at(0, Op::Read, 1, 1)]);
    let alone = COMMAND + UNIT + READ + PAGE + LATENCY;
    assert_eq!(both[1].dispatch_ns, alone);
    assert_eq!(both[1].complete_ns, 2 * alone);
}

/// A link without end, cores without work and no latency are no controller.
#[test]
fn without_a_time_there_is_no_controller() {
    let mut off = device();
    off.device.controller = Default::default();
    assert!(ftlab_core::device::controller::Controller::new(&off.device.controller).is_none());
    let mut nearly = off.clone();
    nearly.device.controller.latency_other_ns = 1;
    let trace: Vec<Record> = (0..400)
        .map(|n| at(n * 9_000, if n % 3 == 0 { Op::Write } else { Op::Read }, n * 7 % 64, 1 + n % 3))
        .collect();
    // Nothing here waits for the one latency that there is.
    assert_eq!(rows(&off, trace.clone()), rows(&nearly, trace));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// A closed loop gives no more than cores / command_time, nor link / size, nor the flash.
    #[test]
    fn nothing_exceeds_cores_link_and_flash(
        depth in 1u32..64, cores in 1u32..4, command in 0u64..20_000, link in 50_000_000u64..5_000_000_000,
        channels in 1u32..9, size in 1u64..5,
    ) {
        let mut settings = device();
        settings.device.queue_depth = depth;
        settings.flash.channels = channels;
        let controller = &mut settings.device.controller;
        controller.link = link;
        (controller.cores, controller.command_ns, controller.unit_ns) = (cores, command, 0);
        let count = 500u64;
        let trace: Vec<Record> = (0..count).map(|n| at(0, Op::Read, n * 11 % 1024, size)).collect();
        let last = rows(&settings, trace).iter().map(|row| row.complete_ns).max().unwrap();
        let bytes = count * size * 4096;
        prop_assert!(last >= count.div_ceil(u64::from(cores)) * command);
        // Each transfer is rounded to the nearest nanosecond.
        prop_assert!(last + count >= (u128::from(bytes) * 1_000_000_000 / u128::from(link)) as u64);
        prop_assert!(last >= (count * size).div_ceil(u64::from(channels)) * READ);
    }
}
