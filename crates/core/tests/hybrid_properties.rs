//! Random workloads on random small hybrid FTLs: after every operation, every invariant holds and the data are those of
//! a plain map; merges, copies and erases are those of a second model (`common/reference.rs`). Saved states and the
//! whole stack are tested, too.

use ftlab_conformance as common;

use std::collections::HashMap;

use crate::hybrid_devices::device;
use crate::hybrids::Driver;
use crate::reference::Model;
use ftlab_core::ftl::settings::PartialWrite;
use ftlab_core::request::Mark;
use ftlab_core::settings::{Endurance, Precondition, PreconditionKind, Settings};
use ftlab_core::sim::{Identity, Prepared, run, run_prepared};
use ftlab_core::workload::{Op, Record};
use proptest::prelude::*;
use proptest::test_runner::FileFailurePersistence;

fn config(cases: u32) -> ProptestConfig {
    ProptestConfig {
        cases,
        failure_persistence: Some(Box::new(FileFailurePersistence::Direct("tests/hybrids.regressions"))),
        ..ProptestConfig::default()
    }
}

/// The implementation and the model, which receive the same requests.
struct Pair {
    driver: Driver,
    model: Model,
    block_pages: u32,
    /// How often each page was written or trimmed, and whether it has data.
    versions: HashMap<u32, (u32, bool)>,
    /// Whether the FTL is compared with the model. (Trim pages are padding that is charged to no merge.)
    modelled: bool,
}

impl Pair {
    fn new(settings: &Settings, filled: bool) -> Pair {
        let mut driver = Driver::new(settings);
        let chips = settings.flash.luns();
        let blocks = settings.flash.blocks_per_lun() * u64::from(chips);
        let logs = (blocks * settings.ftl.log_blocks_ppm).div_ceil(1_000_000) as usize;
        let each: Vec<_> = (0..chips as usize)
            .map(|chip| logs / chips as usize + usize::from(chip < logs % chips as usize))
            .collect();
        let block_pages = settings.flash.pages_per_block;
        let threshold = u64::from(block_pages) * settings.ftl.csm_threshold_ppm / 1_000_000;
        let fast = settings.ftl.kind == "fast";
        let mut model = Model::new(fast, block_pages, driver.lpns(), &each, threshold as u32);
        let mut versions = HashMap::new();
        if filled {
            driver.prefill(0..driver.lpns());
            model.prefill();
            versions.extend((0..driver.lpns()).map(|lpn| (lpn, (1, true))));
        }
        Pair { driver, model, block_pages, versions, modelled: true }
    }

    fn change(&mut self, first: u32, pages: u32, data: bool) {
        for lpn in first..first + pages {
            let entry = self.versions.entry(lpn).or_insert((0, false));
            *entry = (entry.0 + 1, data);
        }
    }

    fn write(&mut self, first: u32, pages: u32, coop: bool) {
        self.driver.marked(first, pages, Mark { coop, ..Mark::default() });
        self.model.write(first, pages, coop);
        self.change(first, pages, true);
    }

    fn step(&mut self, op: u8, at: u32, pages: u32) {
        let lpns = self.driver.lpns();
        let pages = pages.min(lpns);
        let first = at % (lpns - pages + 1);
        let block = first / self.block_pages;
        match op {
            0 => {
                self.driver.trim(first, pages);
                self.model.trim(first, pages);
                self.change(first, pages, false);
            }
            1 => {
                self.driver.issue(block);
                self.model.issue(block);
            }
            2 => {
                self.driver.complete(block);
                self.model.complete(block);
            }
            3..6 => {
                // A block issue, as Algorithm 2 makes it; each other merge block gets one page.
                let pages = pages.min(self.block_pages - first % self.block_pages);
                for merged in self.driver.query(first, pages) {
                    let own = merged == block;
                    let (from, count) = if own { (first, pages) } else { (merged * self.block_pages, 1) };
                    self.driver.issue(merged);
                    self.model.issue(merged);
                    self.write(from, count, true);
                    self.driver.complete(merged);
                    self.model.complete(merged);
                }
                self.write(first, pages, true);
            }
            6..8 => self.write(first - first % self.block_pages, pages, false),
            _ => self.write(first, pages, op >= 14),
        }
        self.compare(first, pages);
    }

    fn compare(&self, first: u32, pages: u32) {
        if self.modelled {
            assert_eq!(self.driver.merges(), self.model.tally.merges);
            assert_eq!(self.driver.erases(), self.model.tally.erases);
            assert_eq!(self.driver.query(first, pages), self.model.query(first, pages));
        }
        for lpn in 0..self.driver.lpns() {
            let expected = self.versions.get(&lpn).and_then(|&(version, data)| data.then_some(version));
            assert_eq!(self.driver.version(lpn), expected, "LPN {lpn}");
            assert_eq!(self.model.version(lpn), expected, "LPN {lpn} of the model");
        }
        if self.modelled {
            self.driver.verify_times();
        }
    }
}

proptest! {
    #![proptest_config(config(256))]

    #[test]
    fn the_plain_model_agrees(
        settings in device(), filled: bool,
        steps in proptest::collection::vec((0u8..16, any::<u32>(), 1u32..12), 1..300),
    ) {
        let mut pair = Pair::new(&settings, filled);
        for (op, at, pages) in steps {
            pair.step(op, at, pages);
        }
    }

    /// With durable trims, which the model does not have, every page has its newest version, and no allocation fails.
    #[test]
    fn durable_trims_leave_what_is_there_alone(
        settings in device(), filled: bool,
        steps in proptest::collection::vec((0u8..16, any::<u32>(), 1u32..12), 1..300),
    ) {
        let mut settings = settings;
        settings.ftl.power_safe = true;
        let mut pair = Pair::new(&settings, filled);
        pair.modelled = false;
        for (op, at, pages) in steps {
            pair.step(op, at, pages);
        }
    }

    /// A device that is full to the last page is overwritten ten times: no allocation ever fails.
    #[test]
    fn a_full_device_runs_on_for_ten_overwrites(settings in device(), seed: u64, skewed: bool) {
        let mut pair = Pair::new(&settings, true);
        let lpns = pair.driver.lpns();
        let mut state = seed | 1;
        for index in 0..10 * lpns {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let mut lpn = (state >> 33) as u32 % lpns;
            if skewed && index % 8 != 0 {
                lpn %= lpns.div_ceil(5);
            }
            pair.write(lpn, 1, false);
        }
        pair.compare(0, 1);
    }

    /// Runs the whole stack in check mode, from every state at time 0. The state is also saved and loaded: it then has
    /// the same bytes again, and the run is the same.
    #[test]
    fn the_whole_stack_and_saved_states(
        settings in device(),
        scheduler in prop::sample::select(common::schedulers(false)),
        device_scheduler in prop::sample::select(common::device_schedulers()),
        (kind, share_ppm, depth, transfer, rmw) in
            (0usize..4, 1u64..=1_000_000, 1u32..12, 0u64..3, any::<bool>()),
        steps in proptest::collection::vec((0u8..10, any::<u32>(), 1u64..9000, 0u64..2_000_000), 1..200),
    ) {
        let mut settings = settings;
        settings.host.scheduler = scheduler.into();
        settings.device.scheduler = device_scheduler.into();
        settings.device.queue_depth = depth;
        settings.flash.transfer_ps = transfer * 10_000;
        settings.ftl.partial_write = if rmw { PartialWrite::Rmw } else { PartialWrite::Ignore };
        let kinds =
            [PreconditionKind::None, PreconditionKind::Mapped, PreconditionKind::Fill, PreconditionKind::Steady];
        settings.device.precondition =
            Precondition { kind: kinds[kind], share_ppm, rounds: 5, ..Precondition::default() };
        let user = settings.user_bytes();
        let mut time_ns = 0;
        let trace: Vec<_> = steps.iter().map(|&(op, at, size, gap)| {
            time_ns += if op % 3 == 0 { gap } else { 0 };
            let size = size.min(user);
            let op = match op { 0..3 => Op::Read, 3..8 => Op::Write, 8 => Op::Trim, _ => Op::Flush };
            let size = if op == Op::Flush { 0 } else { size };
            Record { time_ns, op, offset: u64::from(at) % (user - size + 1), size, ..Record::FLUSH }
        }).collect();
        let text = |prepared| {
            let report = run_prepared(&settings, prepared, &mut trace.clone().into_iter(), &mut ());
            serde_json::to_string(&report.expect("every invariant holds")).unwrap()
        };
        let save = |prepared: &Prepared| {
            let mut bytes = Vec::new();
            prepared.save(&Identity::new(), &mut bytes).unwrap();
            bytes
        };
        let own = Prepared::new(&settings, &mut (), true).expect("every invariant holds");
        let bytes = save(&own);
        prop_assert!(bytes == save(&Prepared::new(&settings, &mut (), false).unwrap()));
        let expected = text(own);
        for check in [true, false] {
            let loaded = Prepared::load(&settings, &Identity::new(), &mut &bytes[..], check).unwrap();
            prop_assert!(bytes == save(&loaded));
            prop_assert_eq!(&expected, &text(loaded));
        }
        let report: serde_json::Value = serde_json::from_str(&expected).unwrap();
        let sum: u64 = ["full", "partial", "switch", "padded_switch", "cooperative"].iter()
            .map(|kind| report["merges"][kind]["busy_ns"].as_u64().unwrap()).sum();
        prop_assert_eq!(Some(sum), report["flash"]["busy_ns"]["merge"].as_u64());
    }
}

/// Blocks wear out and spare blocks replace them; then the device turns read-only, keeps the data that it has
/// acknowledged, and refuses further writes. Everything is verified after every request.
#[test]
fn a_worn_out_device_turns_read_only() {
    for kind in common::hybrids() {
        let mut settings = common::hybrid_device(kind, 4, 60, 8);
        settings.flash.endurance = Endurance::Cycles(6);
        settings.ftl.spare_blocks = 5;
        settings.device.precondition = Precondition::fill();
        let mut trace: Vec<_> = (0..20_000u64)
            .map(|n| common::pages(n * 1_000_000, Op::Write, 4096, n * 7919 % 236, 1 + n % 5))
            .collect();
        trace.push(Record { time_ns: 30_000_000_000, ..Record::FLUSH });
        trace.push(common::pages(30_000_000_000, Op::Trim, 4096, 0, 4));
        trace.push(common::pages(30_000_000_000, Op::Read, 4096, 0, 200));
        let report = run(&settings, &mut trace.into_iter(), &mut (), true).expect("every invariant holds");
        let report = serde_json::to_value(&report).unwrap();
        let number = |path: &str| report.pointer(path).and_then(serde_json::Value::as_u64);
        let erases = number("/flash/erases/merge").unwrap();
        assert!(erases > 100, "{kind}: {erases} erases before it turned read-only");
        // The block without a successor serves the merges that are in progress.
        assert!(number("/wear/max").unwrap() <= 7, "{kind}: {}", report["wear"]);
        let health = &report["health"];
        assert_eq!(number("/health/blocks/spare_left"), Some(0), "{kind}: {health}");
        assert_eq!(number("/health/blocks/retired"), Some(5), "{kind}: {health}");
        assert!(number("/health/failed/writes").unwrap() > 10_000, "{kind}: {health}");
        assert_eq!(number("/health/failed/trims"), Some(1), "{kind}: {health}");
    }
}

/// The comparison can fail: a model with one log block fewer merges differently.
#[test]
fn a_different_model_disagrees() {
    let settings = common::hybrid_device("bast", 4, 20, 3);
    let mut pair = Pair::new(&settings, true);
    pair.model = Model::new(false, 4, 80, &[2], 2);
    pair.model.prefill();
    let caught = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        (0..40).for_each(|index| pair.step(8, index * 29 % 79, 1));
    }));
    assert!(caught.is_err());
}

/// The same configuration produces the same bytes.
#[test]
fn two_runs_are_equal() {
    for kind in common::hybrids() {
        let settings = common::hybrid_device(kind, 8, 60, 5);
        let trace: Vec<_> = (0..5000u64)
            .map(|n| common::pages(n * 100_000, Op::Write, 4096, n * 7919 % 470, 1 + n % 9))
            .collect();
        let report = || {
            let report = run(&settings, &mut trace.clone().into_iter(), &mut (), false).unwrap();
            serde_json::to_string(&report).unwrap()
        };
        assert_eq!(report(), report());
    }
}
