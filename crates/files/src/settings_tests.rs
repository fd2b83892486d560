//! Every contradiction between settings is reported with its key and its message.

use crate::settings::{Settings, all};
use ftlab_core::config::section::defaults;
use ftlab_core::config::{Kind, SizeMix, Value, Values};
use ftlab_core::settings::shapes_state;

fn with(changes: &[(&'static str, Value)]) -> Values {
    let mut values = defaults::<Settings>();
    values.extend(changes.iter().cloned());
    values
}

fn refused(changes: &[(&'static str, Value)]) -> String {
    match Settings::from_values(&with(changes)) {
        Ok(_) => panic!("{changes:?} was accepted"),
        Err(contradiction) => contradiction.to_string(),
    }
}

fn text(text: &str) -> Value {
    Value::Text(text.into())
}

const KIB: u64 = 1 << 10;

#[test]
fn defaults_fit_together() {
    let settings = Settings::from_values(&defaults::<Settings>()).unwrap();
    assert_eq!(settings.flash.raw_bytes(), 1 << 30);
    assert_eq!(settings.ftl.logical_page_bytes, 4096);
}

#[test]
fn logical_page_must_divide_the_page() {
    assert_eq!(
        refused(&[("ftl.logical_page", Value::Bytes(3 * KIB))]),
        "ftl.logical_page: 3KiB does not divide the NAND page of 4KiB (flash.page); choose a whole fraction of it"
    );
    assert!(
        refused(&[("ftl.logical_page", Value::Bytes(8 * KIB))])
            .starts_with("ftl.logical_page: 8KiB does not")
    );
    assert!(Settings::from_values(&with(&[("ftl.logical_page", Value::Bytes(512))])).is_ok());
}

#[test]
fn an_entry_must_fit_a_page() {
    // The limits of these two keys rule such a pair out today; the check guards against wider limits.
    let changes = [("ftl.entry", Value::Bytes(1024)), ("flash.page", Value::Bytes(512))];
    assert_eq!(
        refused(&changes),
        "ftl.entry: an entry of 1KiB does not fit in a NAND page of 512B (flash.page)"
    );
}

#[test]
fn the_largest_counts_are_refused_without_overflow() {
    let most = |path: &str| match all().into_iter().find(|key| key.path == path).unwrap().kind {
        Kind::Count { max, .. } => Value::Count(max),
        other => panic!("{path}: {other:?}"),
    };
    let changes: Vec<_> = [
        "flash.channels",
        "flash.chips_per_channel",
        "flash.dies_per_chip",
        "flash.planes_per_die",
        "flash.blocks_per_plane",
        "flash.pages_per_block",
    ]
    .map(|path| (path, most(path)))
    .into();
    let message = refused(&changes);
    assert!(
        message.starts_with("flash.blocks_per_plane: the geometry ([flash]: 1024 channels x 1024 chips x"),
        "{message}"
    );
    assert!(
        message.contains("has 4722366482869645213696 logical pages of 4KiB (ftl.logical_page)"),
        "{message}"
    );
}

#[test]
fn the_limit_of_page_numbers_is_exact() {
    let blocks =
        |n: u64| [("flash.blocks_per_plane", Value::Count(n)), ("flash.pages_per_block", Value::Count(256))];
    assert!(Settings::from_values(&with(&blocks(1 << 23))).is_ok());
    assert!(refused(&blocks((1 << 23) + 1)).contains("has 2147483904 logical pages"));
}

#[test]
fn capacity_must_agree_with_the_geometry() {
    assert!(Settings::from_values(&with(&[("flash.capacity", Value::Bytes(1 << 30))])).is_ok());
    assert_eq!(
        refused(&[("flash.capacity", Value::Bytes(4 << 30))]),
        "flash.capacity: 4GiB contradicts the geometry, which holds 1GiB ([flash]: 1 channel x 1 chip x 1 die x 1 plane \
         x 4096 blocks x 64 pages x 4KiB); flash.blocks_per_plane = 16384 would fit"
    );
    assert!(refused(&[("flash.capacity", Value::Bytes(300 * KIB))]).ends_with(
        "no flash.blocks_per_plane fits, each block of every plane adds 256KiB: 1 would give 256KiB"
    ));
    assert!(refused(&[("flash.capacity", Value::Bytes(1))]).ends_with("adds 256KiB: 0 would give 0B"));
}

#[test]
fn over_provisioning_must_leave_something() {
    let changes = [("flash.blocks_per_plane", Value::Count(1)), ("flash.pages_per_block", Value::Count(1))];
    let message = refused(&changes);
    assert!(
        message.starts_with("ftl.over_provisioning: leaves the user none of the raw capacity of 4KiB"),
        "{message}"
    );
}

#[test]
fn a_cache_must_hold_an_entry() {
    let cache = |kind: &str, bytes| [("ftl.kind", text(kind)), ("ftl.mapping_cache", Value::Bytes(bytes))];
    assert_eq!(
        refused(&cache("dftl", 0)),
        "ftl.mapping_cache: 0B holds no mapping entry of 8B (ftl.entry); give at least 8B, or \"unlimited\""
    );
    assert!(refused(&cache("cdftl", 7)).starts_with("ftl.mapping_cache: 7B holds no mapping entry"));
    assert!(refused(&cache("page", 0)).starts_with("ftl.mapping_cache: 0B holds no mapping entry"));
    assert!(Settings::from_values(&with(&cache("page", 7))).is_ok(), "page has no cache: the key is ignored");
}

#[test]
fn closed_replay_needs_a_depth() {
    let changes = [("workload.replay", text("closed")), ("host.queue_depth", Value::Word("unlimited"))];
    assert!(refused(&changes).starts_with("host.queue_depth: closed replay (workload.replay) keeps"));
    assert!(Settings::from_values(&with(&changes[..1])).is_ok());
    assert!(Settings::from_values(&with(&changes[1..])).is_ok());
}

#[test]
fn a_trace_without_times_is_replayed_closed() {
    let mut changes = vec![("workload.format", text("notimes")), ("workload.trace", text("a.gz"))];
    assert!(
        refused(&changes)
            .starts_with("workload.replay: a trace of workload.format \"notimes\" has no arrival")
    );
    changes.push(("workload.replay", text("closed")));
    assert!(Settings::from_values(&with(&changes)).is_ok());
}

#[test]
fn generators_must_be_possible() {
    let base = ("workload.synthetic.requests", Value::Count(1000));
    let case = |key: &'static str, value: Value| refused(&[base.clone(), (key, value)]);
    assert_eq!(
        case("workload.trace", text("a.csv")),
        "workload.trace: a trace is given as well as a generator (workload.synthetic.requests); remove one of the two"
    );
    assert_eq!(
        case("workload.synthetic.trim_share", Value::Ppm(500_001)),
        "workload.synthetic.trim_share: more than 100% together with workload.synthetic.read_share"
    );
    assert!(
        case("workload.synthetic.region", Value::Bytes(1 << 30))
            .starts_with("workload.synthetic.region: 1GiB is beyond the user capacity of ")
    );
    let small = [
        base.clone(),
        ("workload.synthetic.region", Value::Bytes(8192)),
        ("workload.synthetic.size", Value::Bytes(8193)),
    ];
    assert_eq!(
        refused(&small),
        "workload.synthetic.size: a request of 8193B does not fit in the region of 8KiB (workload.synthetic.region)"
    );
    assert!(case("workload.synthetic.interarrival", Value::Nanos(u64::MAX)).contains("more than 100 years"));
    let mix = SizeMix::new(vec![(512, 9), (16_384, 1)]);
    let mixed = refused(&[
        base.clone(),
        ("workload.synthetic.region", Value::Bytes(8192)),
        ("workload.synthetic.write_sizes", Value::Form(mix.to_string())),
    ]);
    assert!(
        mixed.starts_with(
            "workload.synthetic.write_sizes: a request of 16KiB does not fit in the region of 8KiB"
        ),
        "{mixed}"
    );
    let late = refused(&[
        base.clone(),
        ("workload.synthetic.arrival", text("bursts")),
        ("workload.synthetic.burst_gap", Value::Nanos(u64::MAX)),
    ]);
    assert!(
        late.starts_with("workload.synthetic.burst_gap: ") && late.contains("more than 100 years"),
        "{late}"
    );
    assert_eq!(
        refused(&[("workload.fio_time_unit", Value::Nanos(0))]),
        "workload.fio_time_unit: a unit of 0ns; write 1us or 1ns"
    );
}

/// For hybrid FTLs, the message names the key to change and the number of blocks that the FTL needs besides the user's
/// blocks.
#[test]
fn a_hybrid_ftl_needs_log_blocks_and_erased_ones() {
    let fits = |kind, keys: &[(&'static str, Value)]| {
        let base = [("ftl.kind", text(kind)), ("flash.blocks_per_plane", Value::Count(100))];
        Settings::from_values(&self::with(&[&base[..], keys].concat()))
    };
    let fault = |kind, keys: &[(&'static str, Value)]| fits(kind, keys).unwrap_err().to_string();
    let logs = |percent: u64| ("ftl.log_blocks", Value::Ppm(percent * 10_000));
    let withheld = |percent: u64| ("ftl.over_provisioning", Value::Ppm(percent * 10_000));
    assert!(fits("bast", &[logs(5), withheld(7)]).is_ok());
    assert_eq!(
        fault("bast", &[logs(5), withheld(6)]),
        "ftl.over_provisioning: too little is withheld: bast needs 94 data blocks, 5 log blocks (ftl.log_blocks) \
         and 2 erased ones for merges on each chip, of 100 there are; withhold 7%, lower ftl.log_blocks, or raise \
         flash.blocks_per_plane"
    );
    assert_eq!(
        fault("bast", &[logs(0)]),
        "ftl.log_blocks: that share of 100 blocks is 0 log blocks; bast needs 1 on each of 1 chips: give at least 1%"
    );
    assert!(fits("fast", &[logs(2)]).is_ok());
    let chips = || ("flash.channels", Value::Count(4));
    assert_eq!(
        fault("fast", &[logs(1), chips()]),
        "ftl.log_blocks: that share of 400 blocks is 4 log blocks; fast needs 2 on each of 4 chips: give at least 2%"
    );
    assert!(fits("fast", &[logs(2), chips()]).is_ok());
    let small = ("ftl.logical_page", Value::Bytes(2048));
    assert!(fault("fast", &[small]).starts_with("ftl.logical_page: fast maps blocks of whole NAND pages"));
    // Nor does a mapping cache that is too small for other FTLs matter to them.
    assert!(fits("bast", &[("ftl.mapping_cache", Value::Bytes(1))]).is_ok());
}

#[test]
fn benchmarks_must_fit() {
    let bench = |more: &[(&'static str, Value)]| {
        let mut changes = vec![("workload.benchmark.kind", text("filebench"))];
        changes.extend(more.iter().cloned());
        changes
    };
    let cached = ("host.page_cache", Value::Bytes(512 << 20));
    assert_eq!(
        refused(&bench(&[])),
        "workload.benchmark.kind: filebench writes through the page cache, and there is none \
         (host.page_cache); the paper's phone has host.page_cache = \"512MiB\""
    );
    assert!(Settings::from_values(&with(&bench(std::slice::from_ref(&cached)))).is_ok());
    let trace = bench(&[cached.clone(), ("workload.trace", text("a.csv"))]);
    assert!(refused(&trace).starts_with("workload.benchmark.kind: a benchmark is given as well as a trace"));
    let both = [("workload.fio_job", text("a.fio")), ("workload.trace", text("a.csv"))];
    assert!(refused(&both).starts_with("workload.fio_job: a fio job is given as well as a trace"));
    let runs = bench(&[cached.clone(), ("workload.benchmark.ageing_runs", Value::Count(6))]);
    assert!(refused(&runs).starts_with("workload.benchmark.ageing_runs: 6 of 6 runs"));
    let large = bench(&[cached.clone(), ("workload.benchmark.file_size", Value::Bytes(1 << 30))]);
    assert!(refused(&large).starts_with("workload.benchmark.kind: filebench needs 1GiB for its files"));
    let request = bench(&[cached.clone(), ("workload.benchmark.request", Value::Bytes(1 << 29))]);
    assert!(refused(&request).starts_with("workload.benchmark.request: a request of 512MiB does not fit"));
    let none = bench(&[cached, ("workload.benchmark.duration", Value::Nanos(0))]);
    assert!(refused(&none).starts_with("workload.benchmark.duration: 0ns measures nothing"));
}

#[test]
fn the_page_cache_must_be_possible() {
    assert!(
        refused(&[("host.page_cache", Value::Bytes(4096))]).starts_with("host.page_cache: fewer than 64")
    );
    let ratio = [("host.dirty_background_ratio", Value::Ppm(500_000))];
    assert!(refused(&ratio).starts_with("host.dirty_background_ratio: above host.dirty_ratio"));
    // Regression: a run with a period of 7 ns never ended.
    for period_ns in [0, 7, 999_999] {
        let often = [("host.dirty_writeback", Value::Nanos(period_ns))];
        assert!(
            refused(&often).starts_with("host.dirty_writeback: below 1ms the flusher would hardly sleep")
        );
    }
    let journal = [("host.page_cache", Value::Bytes(1 << 20)), ("host.journal", Value::Bytes(1 << 30))];
    assert!(refused(&journal).starts_with("host.journal: the journal leaves the files no room"));
}

#[test]
fn flushing_by_amount_must_fit_the_ftl() {
    let amount = ("ftl.flush", Value::Bytes(9 << 20));
    let kind = |name: &str| ("ftl.kind", text(name));
    assert!(
        refused(&[kind("cdftl"), amount.clone()]).starts_with("ftl.flush: cdftl (ftl.kind) writes mappings")
            && refused(&[kind("tpftl"), amount.clone()]).starts_with("ftl.flush: tpftl (ftl.kind) writes")
    );
    for name in ["minipage", "msftl", "dftl", "page"] {
        let cache = ("ftl.mapping_cache", Value::Bytes(16 * KIB));
        assert!(Settings::from_values(&with(&[kind(name)])).is_ok());
        assert!(Settings::from_values(&with(&[kind(name), amount.clone()])).is_ok());
        assert!(Settings::from_values(&with(&[kind(name), amount.clone(), cache])).is_ok());
    }
}

#[test]
fn a_segment_is_a_power_of_two_from_the_ecc_unit_up_to_the_page() {
    let segment = |bytes, page| {
        [
            ("ftl.kind", text("msftl")),
            ("ftl.flush", Value::Bytes(9 << 20)),
            ("ftl.segment", Value::Bytes(bytes)),
            ("flash.page", Value::Bytes(page)),
        ]
    };
    for bytes in [KIB, 2 * KIB, 4 * KIB, 16 * KIB] {
        assert!(Settings::from_values(&with(&segment(bytes, 16 * KIB))).is_ok(), "{bytes}");
    }
    for bytes in [512, 3 * KIB] {
        let message = refused(&segment(bytes, 16 * KIB));
        assert_eq!(
            message,
            format!(
                "ftl.segment: {bytes} B is not a power of two from flash.ecc_unit (the unit of error correction) to flash.page"
            )
        );
    }
    for (bytes, page) in [(32 * KIB, 16 * KIB), (4 * KIB, 18 * KIB)] {
        assert!(refused(&segment(bytes, page)).starts_with("ftl.segment: units of"), "{bytes}");
    }
    let [_, flush, ..] = segment(1, 1);
    let pages = [("ftl.kind", text("minipage")), flush, ("flash.page", Value::Bytes(2 * KIB))];
    assert!(refused(&pages).starts_with("flash.page: units of 4096 B do not fill a NAND page of 2048 B"));
}

#[test]
fn translation_blocks_must_hold_the_mapping() {
    let blocks = |count| {
        [
            ("ftl.kind", text("msftl")),
            ("ftl.flush", Value::Bytes(9 << 20)),
            ("ftl.translation_blocks", Value::Count(count)),
        ]
    };
    // 243,793 entries of 8 B fill 477 pages of 4 KiB in units of 1 KiB, and their directory fills 4 more: eight blocks
    // of 64 pages, besides an open block and an erased one.
    let message = refused(&blocks(9));
    assert_eq!(
        message,
        "ftl.translation_blocks: 9 blocks do not hold the mapping, its directory, an open and an erased block; 10 are needed"
    );
    assert!(Settings::from_values(&with(&blocks(10))).is_ok());
    assert!(refused(&blocks(1000)).starts_with("ftl.over_provisioning: too little is withheld"));
}

#[test]
fn the_user_capacity_can_be_whole_blocks() {
    let by =
        |step: &str| Settings::from_values(&with(&[("ftl.capacity_step", text(step))])).unwrap().user_pages();
    assert_eq!((by("page"), by("block")), (243_793, 243_776));
    assert_eq!(by("block") % 64, 0);
}

/// What a saved state covers: the flash and what writes to it, but neither the host nor times.
#[test]
fn some_keys_shape_the_state_at_time_0() {
    let shapes = shapes_state;
    assert!(["seed", "device.precondition", "ftl.kind", "flash.page"].into_iter().all(shapes));
    assert!(!["host.scheduler", "device.queue_depth", "flash.read", "ftl.gc_step"].into_iter().any(shapes));
}
