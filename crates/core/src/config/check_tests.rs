//! Every contradiction, its key and its words.

use crate::config::{Kind, Settings, Value, Values, all, units};

/// The defaults of every key.
fn defaults() -> Values {
    let mut values = Values::new();
    for key in all() {
        if key.default.is_empty() {
            continue;
        }
        let word = key.words.iter().find(|word| **word == key.default);
        let value = match (word, key.kind) {
            (Some(word), _) => Value::Word(word),
            (None, Kind::Bool) => Value::Bool(key.default == "true"),
            (None, Kind::Count { .. }) => Value::Count(key.default.parse().unwrap()),
            (None, Kind::Number { .. }) => Value::Number(key.default.parse().unwrap()),
            (None, Kind::Bytes { .. }) => Value::Bytes(units::BYTES.parse(key.default).unwrap()),
            (None, Kind::Duration { .. }) => Value::Nanos(units::NANOS.parse(key.default).unwrap()),
            (None, Kind::TimePerByte) => {
                Value::PicosPerByte(units::PICOS_PER_BYTE.parse(key.default).unwrap())
            }
            (None, Kind::Percent { .. }) => Value::Ppm(units::PPM.parse(key.default).unwrap()),
            (None, Kind::SizeMix { .. }) => panic!("{} defaults to a word", key.path),
            (None, Kind::Path | Kind::Choice(_)) => Value::Text(key.default.into()),
        };
        values.insert(key.path, value);
    }
    values
}

fn with(changes: &[(&'static str, Value)]) -> Values {
    let mut values = defaults();
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
    let settings = Settings::from_values(&defaults()).unwrap();
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
    // The limits of the two keys allow no such pair today; the check stands for wider limits.
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
        message.starts_with("ftl.over_provisioning: leaves the user nothing of the raw capacity of 4KiB"),
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
        "workload.trace: a trace is given beside a generator (workload.synthetic.requests); remove one of the two"
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
    assert_eq!(
        refused(&[("workload.fio_time_unit", Value::Nanos(0))]),
        "workload.fio_time_unit: a unit of 0ns; write 1us or 1ns"
    );
}

/// Hybrid FTLs: what they need beside the user's blocks is said with its number and its key.
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
    // Nor does the preset's mapping cache matter to them.
    assert!(fits("bast", &[("ftl.mapping_cache", Value::Bytes(1))]).is_ok());
}
