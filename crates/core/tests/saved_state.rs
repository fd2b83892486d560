//! Saved states: a run from a saved state equals the run that preconditions itself, and a damaged or foreign state is
//! refused.

use ftlab_conformance as common;

use std::io::Read;

use crate::devices;
use crate::devices::device;
use common::settings;
use ftlab_core::ftl::gathers;
use ftlab_core::ftl::settings::StaticLeveling;
use ftlab_core::settings::{Precondition, PreconditionKind, Settings, Withheld};
use ftlab_core::sim::{FORMAT, Identity, Prepared, StateError, run_prepared};
use ftlab_core::workload::{Op, Record};
use proptest::prelude::*;

fn identity(settings: &Settings) -> Identity {
    let blocks = settings.flash.blocks_per_plane.to_string();
    [("ftl.kind", settings.ftl.kind.as_str()), ("flash.blocks_per_plane", &blocks)]
        .map(|(key, value)| (key.to_owned(), value.to_owned()))
        .into()
}

fn saved(settings: &Settings, prepared: &Prepared) -> Vec<u8> {
    let mut bytes = Vec::new();
    prepared.save(&identity(settings), &mut bytes).unwrap();
    bytes
}

fn load(settings: &Settings, mut bytes: &[u8], check: bool) -> Result<Prepared, StateError> {
    Prepared::load(settings, &identity(settings), &mut bytes, check)
}

/// Runs reads, writes, trims and flushes; returns the report's text.
fn run(settings: &Settings, prepared: Prepared, steps: &[(u8, u32, u64)]) -> String {
    let user = settings.user_bytes();
    let records = steps.iter().enumerate().map(|(index, &(op, at, size))| {
        let size = size.min(user);
        let op = match op % 10 {
            0..4 => Op::Read,
            4..8 => Op::Write,
            8 => Op::Trim,
            _ => Op::Flush,
        };
        let offset = u64::from(at) % (user - size + 1);
        let size = if op == Op::Flush { 0 } else { size };
        Record { time_ns: index as u64 * 50_000, op, offset, size, ..Record::FLUSH }
    });
    let mut records = records.collect::<Vec<_>>().into_iter();
    let report = run_prepared(settings, prepared, &mut records, &mut ()).expect("every invariant holds");
    serde_json::to_string(&report).unwrap()
}

proptest! {
    #![proptest_config(devices::cases(128, "tests/properties.regressions"))]

    /// The saved bytes are the same with and without check mode. In both modes a run of the loaded device equals the
    /// run that preconditioned itself, and a loaded device that is saved again has the same bytes.
    #[test]
    fn a_loaded_device_is_the_saved_one(
        settings in device(), kind in 0usize..5, kept: bool, share_ppm in 1u64..=1_000_000, depth in 1u32..16,
        steps in proptest::collection::vec((any::<u8>(), any::<u32>(), 1u64..3000), 1..200),
    ) {
        let kinds = [
            PreconditionKind::None,
            PreconditionKind::Mapped,
            PreconditionKind::Fill,
            PreconditionKind::Steady,
            PreconditionKind::Random(share_ppm),
        ];
        let withheld = if kept { Withheld::Kept } else { Withheld::Used };
        let mut settings = settings;
        settings.device.queue_depth = depth;
        settings.device.precondition =
            Precondition { kind: kinds[kind], share_ppm, withheld, rounds: 5, ..Precondition::default() };
        let own = Prepared::new(&settings, &mut (), true).expect("every invariant holds");
        let bytes = saved(&settings, &own);
        let plain = Prepared::new(&settings, &mut (), false).unwrap();
        prop_assert!(bytes == saved(&settings, &plain));
        let expected = run(&settings, own, &steps);
        for check in [true, false] {
            let loaded = load(&settings, &bytes, check).unwrap();
            prop_assert!(bytes == saved(&settings, &loaded));
            prop_assert_eq!(&expected, &run(&settings, loaded, &steps));
        }
    }
}

/// From a saved state, every policy continues as it would have otherwise, including its random draws; so does wear
/// levelling, with the block that it has set aside.
#[test]
fn every_policy_goes_on_where_it_was() {
    let steps: Vec<_> =
        (0..600u32).map(|n| (4 + (n % 3) as u8, n.wrapping_mul(2_654_435_761), 2048)).collect();
    for gc in common::victim_policies() {
        for wear_threshold in [None, Some(2)] {
            let mut settings = filled("dftl");
            common::set_gc(&mut settings, gc);
            settings.ftl.wear_leveling = wear_threshold.map(|threshold| StaticLeveling { threshold });
            let own = Prepared::new(&settings, &mut (), true).expect("every invariant holds");
            let bytes = saved(&settings, &own);
            let expected = run(&settings, own, &steps);
            let loaded = load(&settings, &bytes, true).unwrap();
            assert!(bytes == saved(&settings, &loaded), "{gc}");
            assert_eq!(expected, run(&settings, loaded, &steps), "{gc}, {wear_threshold:?}");
            if wear_threshold.is_some() {
                let report: serde_json::Value = serde_json::from_str(&expected).unwrap();
                let erases = report["flash"]["erases"]["gc"].as_u64().unwrap();
                assert!(erases > 100, "{gc}: {erases} collections");
            }
        }
    }
}

fn filled(kind: &str) -> Settings {
    let mut settings = settings();
    settings.ftl.kind = kind.into();
    settings.ftl.mapping_cache_bytes = Some(8 << 10);
    if gathers(&settings) {
        settings.ftl.mapping_cache_bytes = None;
        settings.ftl.flush_bytes = Some(64 << 10);
    }
    settings.ftl.over_provisioning_ppm = 300_000;
    settings.flash.blocks_per_plane = 24;
    settings.flash.pages_per_block = 8;
    settings.device.precondition =
        Precondition { kind: PreconditionKind::Steady, rounds: 5, ..Precondition::default() };
    settings
}

fn state(kind: &str) -> (Settings, Vec<u8>) {
    let settings = filled(kind);
    let prepared = Prepared::new(&settings, &mut (), false).unwrap();
    let bytes = saved(&settings, &prepared);
    (settings, bytes)
}

/// If any byte of a state is changed, or the state is cut off at any length, loading it is an error with a message.
#[test]
fn damage_is_an_error_wherever_it_is() {
    let mut aged = filled("page");
    aged.flash.errors.base = Some(1e-3);
    let with_errors = (aged.clone(), saved(&aged, &Prepared::new(&aged, &mut (), false).unwrap()));
    for (kind, (settings, bytes)) in
        common::all_ftls().into_iter().map(|kind| (kind, state(kind))).chain([("errors", with_errors)])
    {
        assert!(load(&settings, &bytes, true).is_ok());
        for at in 0..bytes.len() {
            let mut changed = bytes.clone();
            changed[at] ^= 1 << (at % 8);
            let error = load(&settings, &changed, false).unwrap_err();
            let expected = match at {
                0..8 => matches!(error, StateError::Foreign),
                8..12 => matches!(error, StateError::Format(_)),
                _ => matches!(error, StateError::Damaged(_) | StateError::Differs(_)),
            };
            assert!(expected, "{kind}, byte {at}: {error}");
            let error = load(&settings, &bytes[..at], false).unwrap_err();
            assert!(matches!(error, StateError::Damaged(_)) || at == 0, "{kind}, cut at {at}: {error}");
        }
        let longer = [&bytes[..], b"\n"].concat();
        let error = load(&settings, &longer, false).unwrap_err();
        assert_eq!(
            error.to_string(),
            "damaged: it goes on after its end; precondition anew and save it again"
        );
    }
}

#[test]
fn messages_say_what_is_wrong() {
    let (settings, bytes) = state("dftl");
    let text = |bytes: &[u8]| load(&settings, bytes, false).unwrap_err().to_string();
    assert_eq!(text(b""), "not a saved state of ftlab");
    assert_eq!(text(b"time_ns,op,offset,size\n0,W,0,4096\n"), "not a saved state of ftlab");
    assert_eq!(
        text(&bytes[..bytes.len() / 2]),
        "damaged: it ends early; precondition anew and save it again"
    );
    let mut newer = bytes.clone();
    newer[8..12].copy_from_slice(&(FORMAT + 1).to_le_bytes());
    assert_eq!(
        text(&newer),
        format!(
            "saved in format {}, this version of ftlab reads format {FORMAT}; precondition anew and save it again",
            FORMAT + 1
        )
    );
    let mut changed = bytes.clone();
    let last = changed.len() - 1;
    changed[last] ^= 1;
    assert_eq!(
        text(&changed),
        "damaged: a checksum in it does not match; precondition anew and save it again"
    );
}

#[test]
fn another_device_is_refused_with_the_keys_that_differ() {
    let (mut settings, bytes) = state("dftl");
    settings.ftl.kind = "cdftl".into();
    settings.flash.blocks_per_plane += 1;
    let error = load(&settings, &bytes, false).unwrap_err();
    assert_eq!(
        error.to_string(),
        "saved from another device:\n  flash.blocks_per_plane: 24 there, 25 here\n  ftl.kind: dftl there, cdftl here"
    );
    // Even an empty identity does not admit another device.
    let mut silent = Vec::new();
    let original = filled("dftl");
    let prepared = Prepared::new(&original, &mut (), false).unwrap();
    prepared.save(&Identity::new(), &mut silent).unwrap();
    let mut larger = original.clone();
    larger.flash.blocks_per_plane += 1;
    let error = Prepared::load(&larger, &Identity::new(), &mut &silent[..], false).unwrap_err();
    assert!(matches!(error, StateError::Damaged(_)), "{error}");
}

#[test]
fn many_differences_are_counted() {
    let (settings, bytes) = state("page");
    let many: Identity = (0..20).map(|n| (format!("ftl.k{n:02}"), n.to_string())).collect();
    let error = Prepared::load(&settings, &many, &mut &bytes[..], false).unwrap_err().to_string();
    assert_eq!(error.lines().count(), 10);
    assert!(error.ends_with("  and 14 more keys"), "{error}");
}

/// A reader that returns one byte at a time: nothing depends on how the system delivers the file.
struct Slow<'a>(&'a [u8]);

impl Read for Slow<'_> {
    fn read(&mut self, bytes: &mut [u8]) -> std::io::Result<usize> {
        let count = bytes.len().min(self.0.len()).min(1);
        self.0.read(&mut bytes[..count])
    }
}

#[test]
fn a_slow_file_is_read_whole() {
    let (settings, bytes) = state("cdftl");
    let loaded = Prepared::load(&settings, &identity(&settings), &mut Slow(&bytes), true).unwrap();
    assert!(saved(&settings, &loaded) == bytes);
}

const KINDS: [(&str, u64); 8] = [
    ("page", 7947159103024752941),
    ("dftl", 5723906855699325419),
    ("cdftl", 6640842305399454959),
    ("tpftl", 778313063219969117),
    ("msftl", 17609027011336494699),
    ("leaftl", 14991805840206898899),
    ("bast", 5054186864432612121),
    ("fast", 6254313841254445321),
];

const POLICIES: [(&str, u64); 7] = [
    ("greedy", 3306615471457431280),
    ("cost-benefit", 14451021842667104663),
    ("cyclic", 10938194237993717390),
    ("d-choices", 5568246384393669658),
    ("fifo", 12910454812870160478),
    ("random", 18300503391777465015),
    ("windowed-greedy", 3306615471457431280),
];

/// Checks the bytes of the format. If this fails because the state of an FTL is stored differently, raise `FORMAT` in
/// `sim/state.rs`, so that older files are refused; otherwise preconditioning itself has changed. In both cases record
/// the new sums here.
#[test]
fn golden() {
    let sum = |settings: &Settings| {
        let prepared = Prepared::new(settings, &mut (), false).unwrap();
        // The sum is FNV-1a.
        saved(settings, &prepared).iter().fold(0xcbf2_9ce4_8422_2325u64, |hash, byte| {
            (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3)
        })
    };
    let kinds = KINDS.map(|(kind, _)| (kind, sum(&filled(kind))));
    let policies = POLICIES.map(|(gc, _)| {
        let mut settings = filled("dftl");
        common::set_gc(&mut settings, gc);
        settings.ftl.wear_leveling = Some(StaticLeveling { threshold: 2 });
        (gc, sum(&settings))
    });
    assert_eq!((FORMAT, kinds, policies), (14, KINDS, POLICIES));
}
