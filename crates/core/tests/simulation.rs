//! The simulation as an object: the outcome is the same however its driver divides time.

use ftlab_conformance as common;

use crate::devices;
use crate::hybrid_devices;
use std::collections::HashMap;

use common::{Log, pages, settings};
use ftlab_core::Simulation;
use ftlab_core::device::Stage;
use ftlab_core::flash::Operation;
use ftlab_core::flash::moves::Move;
use ftlab_core::flash::parallel::Allocation;
use ftlab_core::host::SubmitError;
use ftlab_core::host::sched;
use ftlab_core::settings::{GcBackground, Settings};
use ftlab_core::sim::{Activity, Completion, Observer, Prepared, RunError, run_prepared};
use ftlab_core::workload::{Op, Record};
use proptest::prelude::*;

const PAGE: u64 = 512;

/// An observer that stores every completion and every answer.
#[derive(Default)]
struct Both {
    rows: Vec<Completion>,
    answers: Vec<Completion>,
    room: Option<u64>,
}

impl Observer for Both {
    fn complete(&mut self, completion: &Completion) {
        self.rows.push(*completion);
    }

    fn answer(&mut self, completion: &Completion) {
        self.answers.push(*completion);
    }

    fn room(&self) -> u64 {
        self.room.unwrap_or(u64::MAX)
    }
}

fn prepared(settings: &Settings) -> Prepared {
    Prepared::new(settings, &mut (), true).expect("it can be prepared")
}

fn json(report: &ftlab_core::metrics::Report) -> String {
    serde_json::to_string(report).expect("a report is numbers and text")
}

/// How a driver divides time.
#[derive(Clone, Copy, Debug)]
enum Steps {
    /// Everything is submitted, then the simulation runs to its end.
    AtOnce,
    /// Each record is submitted, then time moves to just before it.
    UpToEach,
    /// Everything is submitted; time moves in steps of this many ns.
    Even(u64),
    /// Records are submitted when time is about to reach them, in steps of this many ns.
    Late(u64),
    /// Everything is submitted; the driver has room for this many answers at a time.
    Room(u64),
}

fn drive(settings: &Settings, records: &[Record], steps: Steps) -> (String, Both) {
    let mut simulation = Simulation::new(settings, prepared(settings));
    let mut both = Both::default();
    let submit = |simulation: &mut Simulation, record: &Record| {
        simulation.submit(*record).expect("a record within the device");
    };
    let last_ns = records.last().map_or(0, |record| record.time_ns);
    match steps {
        Steps::AtOnce => records.iter().for_each(|record| submit(&mut simulation, record)),
        Steps::UpToEach => {
            for record in records {
                submit(&mut simulation, record);
                if record.time_ns > simulation.now_ns() {
                    simulation.advance(record.time_ns - 1, &mut both).unwrap();
                }
            }
        }
        Steps::Even(step) => {
            records.iter().for_each(|record| submit(&mut simulation, record));
            while simulation.now_ns() + step <= last_ns {
                simulation.advance(simulation.now_ns() + step, &mut both).unwrap();
                let before = json(&simulation.report());
                assert_eq!(before, json(&simulation.report()), "a report changes nothing");
            }
        }
        Steps::Late(step) => {
            let mut left = records;
            while !left.is_empty() {
                let until_ns = simulation.now_ns() + step;
                let due = left.iter().take_while(|record| record.time_ns <= until_ns).count();
                left[..due].iter().for_each(|record| submit(&mut simulation, record));
                left = &left[due..];
                simulation.advance(until_ns, &mut both).unwrap();
                assert_eq!(simulation.now_ns(), until_ns);
            }
        }
        Steps::Room(room) => {
            records.iter().for_each(|record| submit(&mut simulation, record));
            both.room = Some(room);
            while both.answers.len() < records.len() {
                let before = both.answers.len();
                simulation.run_until_idle(&mut both).unwrap();
                let heard = &both.answers[before..];
                assert!(heard.len() as u64 >= room || both.answers.len() == records.len());
                let later =
                    heard.iter().skip(room as usize - 1).any(|done| done.complete_ns != simulation.now_ns());
                assert!(!later || both.answers.len() == records.len(), "it stops where the room is used up");
            }
            both.room = None;
        }
    }
    simulation.run_until_idle(&mut both).unwrap();
    let end_ns = both.answers.iter().map(|done| done.complete_ns).max().unwrap_or(0);
    // Padding is the host's own work, and may outlast the last request.
    if !matches!(steps, Steps::Late(_)) && settings.host.scheduler != "padding" {
        assert_eq!(simulation.now_ns(), end_ns, "it stops at the last completion");
    }
    let mut numbers: Vec<_> = both.answers.iter().map(|done| done.id).collect();
    numbers.sort_unstable();
    assert_eq!(numbers, (1..=records.len() as u64).collect::<Vec<_>>(), "each submission is answered once");
    (json(&simulation.report()), both)
}

/// Makes requests of a few pages, some at the same time.
fn load() -> impl Strategy<Value = Vec<(u8, u64, u64, u64)>> {
    prop::collection::vec((0u8..10, 0u64..1000, 1u64..6, 0u64..400_000), 0..60)
}

fn records(load: &[(u8, u64, u64, u64)], settings: &Settings) -> Vec<Record> {
    let user = settings.user_pages();
    let mut time_ns = 0;
    let record = |&(kind, at, count, gap): &(u8, u64, u64, u64)| {
        time_ns += if gap < 150_000 { 0 } else { gap };
        let (lpn, op) = (at % user, [Op::Read, Op::Write, Op::Write, Op::Trim, Op::Flush]);
        let op = op[usize::from(kind / 2)];
        if op == Op::Flush {
            pages(time_ns, op, PAGE, 0, 0)
        } else {
            pages(time_ns, op, PAGE, lpn, count.min(user - lpn))
        }
    };
    load.iter().map(record).collect()
}

/// Draws options of the host, and of the device's own work.
fn options() -> impl Strategy<Value = (usize, u32, Option<u64>, Option<u64>, u8)> {
    let host = (0..sched::choices().len(), prop_oneof![Just(1u32), 2u32..40]);
    let times = (prop::option::of(0u64..2_000_000), prop::option::of(1u64..9));
    (host, times, 0u8..4).prop_map(|((scheduler, depth), (deadline, limit), own)| {
        (scheduler, depth, deadline, limit.map(|pages| pages * PAGE), own)
    })
}

fn with_options(
    mut settings: Settings,
    (scheduler, depth, deadline, limit, own): (usize, u32, Option<u64>, Option<u64>, u8),
) -> Settings {
    let scheduler = sched::choices()[scheduler].name;
    if scheduler != "padding" || ftlab_core::ftl::is_hybrid(&settings) {
        settings.host.scheduler = scheduler.into();
    }
    settings.host.deadline_ns = deadline;
    settings.host.merge_limit = limit;
    settings.device.queue_depth = depth;
    settings.results.series = true;
    settings.ftl.background_flush = own & 1 != 0;
    if own & 2 != 0 && !ftlab_core::ftl::maps_blocks(&settings) {
        settings.ftl.gc_background =
            Some(GcBackground { normal_blocks: settings.ftl.gc_free_blocks + 1, step_pages: 1 });
    }
    settings
}

fn same_for_every_partition(settings: &Settings, records: &[Record], step: u64) -> Result<(), TestCaseError> {
    let mut log = Log::default();
    let report =
        run_prepared(settings, prepared(settings), &mut Vec::from(records).into_iter(), &mut log).unwrap();
    let mut partitions = vec![Steps::AtOnce, Steps::UpToEach, Steps::Even(step), Steps::Room(step % 5 + 1)];
    if !settings.ftl.background_flush && settings.ftl.gc_background.is_none() {
        // Work of the device's own goes on even while no further request is known.
        partitions.push(Steps::Late(step));
    }
    for steps in partitions {
        let (found, both) = drive(settings, records, steps);
        prop_assert_eq!(&both.rows, &log.0, "{:?}", steps);
        prop_assert_eq!(&found, &json(&report), "{:?}", steps);
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    #[test]
    fn partitions_of_time_make_no_difference(
        device in devices::device(),
        load in load(),
        options in options(),
        step in 1_000u64..3_000_000,
    ) {
        let settings = with_options(device, options);
        same_for_every_partition(&settings, &records(&load, &settings), step)?;
    }

    #[test]
    fn partitions_of_time_make_no_difference_to_hybrid_ftls(
        device in hybrid_devices::device(),
        load in load(),
        options in options(),
        step in 1_000u64..3_000_000,
    ) {
        let settings = with_options(device, options);
        same_for_every_partition(&settings, &records(&load, &settings), step)?;
    }
}

#[test]
fn two_in_turn_are_as_each_alone() {
    let mut settings = settings();
    settings.ftl.mapping_cache_bytes = Some(4096);
    let load = |lpn: u64| {
        (0..200).map(move |n| {
            pages(n * 100_000, [Op::Write, Op::Read][(n % 2) as usize], 4096, (n * lpn) % 3000, 2)
        })
    };
    let loads = [load(7), load(31)].map(Iterator::collect::<Vec<_>>);
    let alone = loads.each_ref().map(|records| drive(&settings, records, Steps::AtOnce).0);
    let mut both = loads.each_ref().map(|records| {
        let mut simulation = Simulation::new(&settings, prepared(&settings));
        for record in records {
            simulation.submit(*record).unwrap();
        }
        simulation
    });
    for until_ns in (0..=19_900_000).step_by(33_000) {
        both.iter_mut().for_each(|simulation| simulation.advance(until_ns, &mut ()).unwrap());
    }
    both.iter_mut().for_each(|simulation| simulation.run_until_idle(&mut ()).unwrap());
    assert_eq!(both.map(|simulation| json(&simulation.report())), alone);
}

#[test]
fn what_is_wrong_changes_nothing() {
    let settings = settings();
    let mut simulation = Simulation::new(&settings, prepared(&settings));
    simulation.advance(1_000, &mut ()).unwrap();
    assert!(matches!(simulation.advance(u64::MAX, &mut ()), Err(RunError::Late(u64::MAX))));
    let user_bytes = settings.user_bytes();
    let read = |time_ns, offset, size| Record { time_ns, op: Op::Read, offset, size, ..Record::FLUSH };
    let before = json(&simulation.report());
    for (record, error) in [
        (read(999, 0, 4096), SubmitError::Past { at_ns: 999, now_ns: 1_000 }),
        (read(1_000, 0, 0), SubmitError::Range { offset: 0, size: 0, user_bytes }),
        (read(1_000, user_bytes - 1, 2), SubmitError::Range { offset: user_bytes - 1, size: 2, user_bytes }),
        (read(1_000, u64::MAX, 2), SubmitError::Range { offset: u64::MAX, size: 2, user_bytes }),
        (read(u64::MAX, 0, 512), SubmitError::Late(u64::MAX)),
    ] {
        assert_eq!(simulation.submit(record), Err(error));
    }
    assert!(matches!(simulation.advance(999, &mut ()), Err(RunError::Past { .. })));
    assert_eq!((simulation.next_event_ns(), json(&simulation.report())), (None, before));
    assert_eq!(simulation.submit(read(5_000, 0, 4096)), Ok(1));
    let early = SubmitError::Before { at_ns: 4_999, last_ns: 5_000 };
    assert_eq!(simulation.submit(read(4_999, 0, 4096)), Err(early));
    assert_eq!(simulation.next_event_ns(), Some(5_000));
    let mut both = Both::default();
    simulation.run_until_idle(&mut both).unwrap();
    assert_eq!((simulation.now_ns(), both.answers.len()), (75_000, 1));
}

#[test]
fn an_idle_device_works_on_when_time_moves_on() {
    let mut settings = settings();
    settings.ftl.background_flush = true;
    let mut simulation = Simulation::new(&settings, prepared(&settings));
    simulation.submit(pages(0, Op::Write, 4096, 0, 1)).unwrap();
    simulation.run_until_idle(&mut ()).unwrap();
    assert_eq!((simulation.now_ns(), simulation.report().mapping.translation_programs), (385_000, 0));
    while let Some(at_ns) = simulation.next_event_ns() {
        simulation.advance(at_ns, &mut ()).unwrap();
    }
    assert_eq!(simulation.report().mapping.translation_programs, 1);
}

/// An observer that does not ask for completions receives none.
#[test]
fn nobody_is_told_who_does_not_ask() {
    struct Deaf;
    impl Observer for Deaf {
        fn complete(&mut self, _completion: &Completion) {
            panic!("nobody asked");
        }

        fn wants_completions(&self) -> bool {
            false
        }
    }
    let settings = settings();
    let mut simulation = Simulation::new(&settings, prepared(&settings));
    for observer in [&mut Both::default() as &mut dyn Observer, &mut Deaf] {
        simulation.submit(pages(simulation.now_ns(), Op::Write, 4096, 0, 1)).unwrap();
        simulation.run_until_idle(observer).unwrap();
    }
    assert_eq!(simulation.report().trace.requests, 2);
}

#[test]
fn a_cut_keeps_what_was_flushed() {
    for kind in common::all_ftls() {
        let mut settings = settings();
        settings.ftl.kind = kind.into();
        settings.ftl.power_safe = true;
        let mut simulation = Simulation::new(&settings, prepared(&settings));
        assert!(matches!(simulation.cut(1), Err(RunError::Power(_))), "nobody has allowed it");
        simulation.allow_cuts().unwrap();
        let mut both = Both::default();
        for lpn in 0..200 {
            simulation.submit(pages(0, Op::Write, 4096, lpn * 7 % 200, 1)).unwrap();
        }
        simulation.submit(pages(0, Op::Flush, 4096, 0, 0)).unwrap();
        simulation.run_until_idle(&mut both).unwrap();
        assert_eq!(both.answers.len(), 201);
        let now_ns = simulation.now_ns();
        for lpn in 0..50 {
            simulation.submit(pages(now_ns, Op::Write, 4096, lpn, 1)).unwrap();
        }
        simulation.advance(now_ns + 3_000_000, &mut both).unwrap();
        let answered = both.answers.len();
        assert!(answered < 251, "some are under way");
        // Regression: after the recovery, no request could be submitted that was to arrive before a request that had
        // been lost.
        let later = pages(now_ns + 3_600_000_000_000, Op::Read, 4096, 0, 1);
        simulation.submit(later).unwrap();
        let cut = simulation.cut(7).unwrap();
        assert!(cut.finished > 200, "{kind}: {cut:?}");
        assert_eq!(simulation.next_event_ns(), None, "{kind}: nothing is to come");
        assert_eq!(simulation.submit(pages(u64::MAX >> 3, Op::Read, 4096, 0, 1)), Err(SubmitError::Off));
        assert!(matches!(simulation.advance(u64::MAX >> 3, &mut both), Err(RunError::Power(_))));
        let recovered = simulation.recover().unwrap();
        assert!(recovered.recovery.scan_reads > 0 && recovered.elapsed_ns > 0, "{kind}: {recovered:?}");
        assert_eq!(simulation.now_ns(), now_ns + 3_000_000 + recovered.elapsed_ns);
        assert!(matches!(simulation.recover(), Err(RunError::Power(_))));
        let now_ns = simulation.now_ns();
        assert_eq!(simulation.submit(pages(now_ns, Op::Read, 4096, 0, 200)), Ok(253), "{kind}");
        simulation.run_until_idle(&mut both).unwrap();
        assert_eq!(both.answers.len(), answered + 1, "what was outstanding never completes");
        // Cuts and recovers once more, from the state after the recovery.
        simulation.cut(8).unwrap();
        simulation.recover().unwrap();
    }
}

#[test]
fn blocks_hold_what_was_written_and_not_overwritten() {
    let settings = settings();
    let mut simulation = Simulation::new(&settings, prepared(&settings));
    let page = u64::from(settings.ftl.logical_page_bytes);
    for (at_ns, lpn) in [(0, 3), (1, 4), (2, 3), (3, 900)] {
        simulation.submit(pages(at_ns, Op::Write, page, lpn, 2)).unwrap();
    }
    simulation.submit(pages(4, Op::Trim, page, 900, 1)).unwrap();
    simulation.run_until_idle(&mut ()).unwrap();
    let valid = simulation.valid_pages();
    assert_eq!(valid.len(), 256);
    assert_eq!(valid.iter().sum::<u32>(), 4, "3, 4, 5 and 901");
    assert_eq!(valid.iter().max(), Some(&4), "one block is open for the host");
}

/// Makes random overwrites, in bursts, for a device that has almost no spare room.
fn overwrites(settings: &Settings, requests: u64) -> Vec<Record> {
    let user = settings.user_pages();
    let lpn = |at: u64| at.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 33;
    (0..requests).map(|at| pages(at / 40 * 20_000_000, Op::Write, 4096, lpn(at) % user, 1)).collect()
}

/// A follower that keeps the bytes receives each program and each erasure: no slot is programmed twice
/// between two erasures, and each page's data is where the FTL finds it.
#[test]
fn whoever_follows_is_told_of_every_move() {
    for kind in common::all_ftls() {
        let settings = common::small(kind, 2);
        let mut simulation = Simulation::new(&settings, prepared(&settings));
        let moves = simulation.follow();
        for record in overwrites(&settings, 2_000) {
            simulation.submit(record).unwrap();
        }
        simulation.run_until_idle(&mut ()).unwrap();
        let (mut told, mut held, mut erased) = (Vec::new(), HashMap::new(), 0);
        moves.take(&mut told);
        for what in told {
            match what {
                Move::Program { slot, lpn } => {
                    assert_eq!(held.insert(slot, lpn), None, "{kind}: slot {slot} is programmed twice");
                }
                Move::Erase { first, slots } => {
                    erased += 1;
                    (first..first + slots).for_each(|slot| _ = held.remove(&slot));
                }
                _ => (),
            }
        }
        assert!(erased > 20, "{kind}: {erased} erasures");
        for lpn in 0..settings.user_pages() as u32 {
            let slot = simulation.slot(lpn);
            assert!(slot == u32::MAX || held.get(&slot) == Some(&lpn), "{kind}: LPN {lpn} in slot {slot}");
        }
    }
}

/// When the cells begin and end their work on each program and erasure, by number.
#[derive(Default)]
struct Cells(HashMap<u32, (Operation, u64, u64)>);

impl Observer for Cells {
    fn complete(&mut self, _completion: &Completion) {}

    fn activity(&mut self, activity: &Activity) {
        let Activity { number, stage, operation, begin_ns, end_ns, .. } = *activity;
        if let (Some(number), Stage::Cells) = (number, stage) {
            self.0.insert(number, (operation, begin_ns, end_ns));
        }
    }
}

/// Where pages may go to any chip, the new version of a page may be under way on another chip. The block with the old
/// version is not erased before that program has ended; otherwise a power cut could take both versions.
#[test]
fn a_block_outlasts_the_programs_that_take_its_place() {
    let mut settings = common::small("page", 4);
    settings.ftl.allocation = Allocation::Dynamic;
    settings.ftl.power_safe = true;
    settings.device.scheduler = "direct".into();
    settings.device.queue_depth = 64;
    let mut simulation = Simulation::new(&settings, prepared(&settings));
    let (moves, mut cells) = (simulation.follow(), Cells::default());
    simulation.report_activity();
    for record in overwrites(&settings, 4_000) {
        simulation.submit(record).unwrap();
    }
    simulation.run_until_idle(&mut cells).unwrap();
    let mut told = Vec::new();
    moves.take(&mut told);
    let per_block = settings.flash.pages_per_block;
    let (mut number, mut old, mut later, mut waits) = (0, None, HashMap::<u32, Vec<u32>>::new(), 0);
    for what in told {
        match what {
            Move::Write { old: slot } => old = (slot != u32::MAX).then_some(slot / per_block),
            Move::Copy { from } => old = Some(from / per_block),
            Move::Program { .. } => {
                if let Some(block) = old.take() {
                    later.entry(block).or_default().push(number);
                }
                assert_eq!(cells.0[&number].0, Operation::Program);
                number += 1;
            }
            Move::Erase { first, .. } => {
                let (operation, begin_ns, _) = cells.0[&number];
                assert_eq!(operation, Operation::Erase);
                for program in later.remove(&(first / per_block)).unwrap_or_default() {
                    let (_, _, end_ns) = cells.0[&program];
                    assert!(
                        end_ns <= begin_ns,
                        "{program} ends at {end_ns}, the erasure begins at {begin_ns}"
                    );
                    waits += u32::from(end_ns == begin_ns);
                }
                number += 1;
            }
            _ => (),
        }
    }
    assert!(waits > 0, "no erasure had to wait");
}
