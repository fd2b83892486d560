//! Every kind of mistake is reported with exactly the first line that is shown here.

use ftlab_config::{Base, ConfigError, Override, resolve};

fn of_text(text: &str) -> ConfigError {
    match resolve(Base::Text { name: "c.toml", text }, &[]) {
        Ok(_) => panic!("accepted: {text}"),
        Err(error) => error,
    }
}

fn set(key: &str, value: &str) -> Override {
    Override { origin: format!("--set {key}={value}"), key: key.into(), value: value.into() }
}

fn of_options(base: Base<'_>, options: &[Override]) -> ConfigError {
    match resolve(base, options) {
        Ok(_) => panic!("accepted: {options:?}"),
        Err(error) => error,
    }
}

/// Checks first lines, and what must hold for every message.
fn check(cases: &[(&str, &str)]) {
    for (text, expected) in cases {
        let error = of_text(text);
        assert_eq!(error.headline(), *expected, "for {text:?}");
        bounded(&error);
    }
}

fn bounded(error: &ConfigError) {
    let text = error.to_string();
    assert!(text.lines().count() <= 12, "{text}");
    assert!(text.chars().all(|c| c == '\n' || !c.is_control()), "{text:?}");
}

#[test]
fn a_message_shows_where() {
    let error = of_text("seed = 1\n[host]\nschduler = \"noop\"\n");
    let expected = "\
c.toml:3: host.schduler: unknown key; did you mean host.scheduler?
 --> c.toml:3:1
  |
3 | schduler = \"noop\"
  | ^^^^^^^^";
    assert_eq!(error.to_string(), expected);
}

#[test]
fn unknown_keys_and_tables() {
    check(&[
        ("[host]\nschduler = 1", "c.toml:2: host.schduler: unknown key; did you mean host.scheduler?"),
        ("host.schduler = 1", "c.toml:1: host.schduler: unknown key; did you mean host.scheduler?"),
        ("host = { schduler = 1 }", "c.toml:1: host.schduler: unknown key; did you mean host.scheduler?"),
        (
            "scheduler = 'noop'",
            "c.toml:1: scheduler: unknown key; did you mean host.scheduler or device.scheduler?",
        ),
        (
            "[flash]\nmapping_cache = '16KiB'",
            "c.toml:2: flash.mapping_cache: unknown key; it belongs in [ftl]: ftl.mapping_cache",
        ),
        (
            "[flash]\ncapacity_bytes = 1",
            "c.toml:2: flash.capacity_bytes: unknown key; did you mean flash.capacity?",
        ),
        ("[ftl]\nzzzz = 1", "c.toml:2: ftl.zzzz: unknown key"),
        ("preste = 'map-plus'", "c.toml:1: preste: unknown key; did you mean preset?"),
        ("\n[hots]\nscheduler = 'noop'", "c.toml:2: [hots]: unknown table; did you mean [host]?"),
        ("[Flash]\npage = '4KiB'", "c.toml:1: [Flash]: unknown table; did you mean [flash]?"),
        (
            "[synthetic]\nrequests = 1",
            "c.toml:1: [synthetic]: unknown table; did you mean [workload.synthetic]?",
        ),
        ("[workload.benchmarks]", "c.toml:1: [workload.benchmarks]: unknown table"),
        ("['']", "c.toml:1: []: unknown table"),
        (
            "'host.scheduler' = 'noop'",
            "c.toml:1: \"host.scheduler\": a quoted name with a dot is not a path; write host.scheduler without quotes",
        ),
        ("'x.y' = 1", "c.toml:1: x.y: unknown key"),
        ("\"a\\nb\" = 1", "c.toml:1: a\\nb: unknown key"),
    ]);
    assert!(of_text("[ftl]\nzzzz = 1").to_string().contains("[ftl] has kind, mapping_cache"));
}

#[test]
fn the_first_mistake_of_the_text_is_reported() {
    check(&[
        ("[workload]\nspeed = 0\n[flash]\nx = 1", "c.toml:2: workload.speed: 0: must be above 0"),
        ("[flash]\nx = 1\n[device]\nqueue_depth = 0", "c.toml:2: flash.x: unknown key"),
    ]);
}

#[test]
fn tables_and_values_confused() {
    check(&[
        ("host = 3", "c.toml:1: host: a table; write [host] and its keys below it"),
        ("[[host]]\nscheduler = 'noop'", "c.toml:1: host: a table; write [host] and its keys below it"),
        ("[host.scheduler]", "c.toml:1: host.scheduler: a table, where a name in quotes is expected"),
        (
            "[host]\nqueue_depth = { a = 1 }",
            "c.toml:2: host.queue_depth: a table, where a whole number such as 128, or \"unlimited\" is expected",
        ),
        ("[preset]", "c.toml:1: preset: a table, where the name of a preset is expected"),
        ("preset = 3", "c.toml:1: preset: expected the name of a preset in quotes"),
        ("[flash]\npage = [1, 2]", "c.toml:2: flash.page: an array: expected a size such as \"16KiB\""),
        (
            "[workload]\ntrace = 1979-05-27",
            "c.toml:2: workload.trace: a date: expected the path of a file, in quotes",
        ),
    ]);
}

#[test]
fn texts_that_are_no_toml() {
    check(&[
        ("[host]\nscheduler = noop", "c.toml:2: host.scheduler: noop needs quotes: scheduler = \"noop\""),
        ("[flash]\npage = 4KiB # x", "c.toml:2: flash.page: 4KiB needs quotes: page = \"4KiB\""),
        (
            "workload.trace = a/b.csv",
            "c.toml:1: workload.trace: a/b.csv needs quotes: workload.trace = \"a/b.csv\"",
        ),
        ("preset = map-plus", "c.toml:1: preset: map-plus needs quotes: preset = \"map-plus\""),
        ("[flash]\npage = 16K", "c.toml:2: flash.page: 16K: ambiguous, write 16KiB or 16kB"),
        ("[host]\nalternate = True", "c.toml:2: host.alternate: True: expected true or false"),
        ("[host]\nschduler = noop", "c.toml:2: host.schduler: unknown key; did you mean host.scheduler?"),
        ("[host]\nscheduler =", "c.toml:2: host.scheduler: no value after \"=\""),
        ("seed = 1\nseed = 2", "c.toml:2: seed: given twice"),
        ("[host]\ndeadline = '1ms'\ndeadline = '2ms'", "c.toml:3: host.deadline: given twice"),
        ("[host]\n[ftl]\n[host]", "c.toml:3: [host]: given twice"),
        ("[host", "c.toml:1: not valid TOML: unclosed table, expected `]`"),
        ("[host]\nscheduler = \"noop", "c.toml:2: not valid TOML: invalid basic string, expected `\"`"),
        ("time,op,offset\n1,R,0", "c.toml:1: not valid TOML: key with no value, expected `=`"),
        ("seed = 1__0", "c.toml:1: seed: 1__0: expected a whole number such as 128"),
        ("seed = [1, 2", "c.toml:1: not valid TOML: unclosed array, expected `]`"),
    ]);
    let binary = of_text("\0\u{1}\u{1b}[31m\u{202e}");
    assert!(binary.headline().starts_with("c.toml:1: not valid TOML: "), "{binary}");
    bounded(&binary);
    assert!(of_text("1,2").to_string().contains("a trace is given with --trace"));
}

#[test]
fn quantities() {
    check(&[
        ("[flash]\npage = 16", "c.toml:2: flash.page: 16: no unit; write 16B, 16kB or 16KiB"),
        ("[flash]\npage = '16'", "c.toml:2: flash.page: 16: no unit; write 16B, 16kB or 16KiB"),
        ("[flash]\npage = '16K'", "c.toml:2: flash.page: 16K: ambiguous, write 16KiB or 16kB"),
        ("[flash]\npage = '16KB'", "c.toml:2: flash.page: 16KB: ambiguous, write 16KiB or 16kB"),
        ("[flash]\npage = '1M'", "c.toml:2: flash.page: 1M: ambiguous, write 1MiB or 1MB"),
        ("[flash]\npage = '1G'", "c.toml:2: flash.page: 1G: ambiguous, write 1GiB or 1GB"),
        ("[flash]\npage = '16kib'", "c.toml:2: flash.page: 16kib: unknown unit kib; did you mean KiB?"),
        ("[flash]\npage = '0.3KiB'", "c.toml:2: flash.page: 0.3KiB: not a whole number of bytes"),
        ("[flash]\npage = '-4KiB'", "c.toml:2: flash.page: -4KiB: must not be negative"),
        ("[flash]\npage = -4", "c.toml:2: flash.page: -4: must not be negative"),
        ("[flash]\npage = '0B'", "c.toml:2: flash.page: 0B: must be at least 512B"),
        ("[flash]\npage = '32MiB'", "c.toml:2: flash.page: 32MiB: must be at most 16MiB"),
        ("[flash]\npage = '99999999999TiB'", "c.toml:2: flash.page: 99999999999TiB: must be at most 16MiB"),
        ("[flash]\npage = 'large'", "c.toml:2: flash.page: large: expected a size such as \"16KiB\""),
        ("[flash]\npage = ''", "c.toml:2: flash.page: empty; expected a size such as \"16KiB\""),
        ("[flash]\npage = true", "c.toml:2: flash.page: true: expected a size such as \"16KiB\""),
        ("[flash]\npage = 0x10", "c.toml:2: flash.page: 0x10: expected a size such as \"16KiB\""),
        ("[flash]\nerase = 1.5", "c.toml:2: flash.erase: 1.5: no unit; write 1.5us or 1.5ms"),
        ("[flash]\nerase = '5m'", "c.toml:2: flash.erase: 5m: ambiguous, write 5ms or 5min"),
        ("[flash]\nerase = '0.5ns'", "c.toml:2: flash.erase: 0.5ns: not a whole number of nanoseconds"),
        ("[flash]\nerase = '2s'", "c.toml:2: flash.erase: 2s: must be at most 1s"),
        ("[flash]\nerase = '4KiB'", "c.toml:2: flash.erase: 4KiB: unknown unit KiB"),
        ("[flash]\nerase = '35 usec'", "c.toml:2: flash.erase: 35 usec: unknown unit usec; did you mean us?"),
        ("[flash]\nerase = inf", "c.toml:2: flash.erase: inf: not a finite number"),
        ("[flash]\nerase = 'nan'", "c.toml:2: flash.erase: nan: not a finite number"),
        ("[flash]\ntransfer = 1", "c.toml:2: flash.transfer: 1: no unit; write 1ns"),
        ("[flash]\ntransfer = '2us'", "c.toml:2: flash.transfer: 2us: must be at most 1us"),
        ("[ftl]\nover_provisioning = 7", "c.toml:2: ftl.over_provisioning: 7: no unit; write 7%"),
        (
            "[ftl]\nover_provisioning = '4.98765%'",
            "c.toml:2: ftl.over_provisioning: 4.98765%: not a whole number of parts per million",
        ),
        ("[ftl]\nover_provisioning = '100%'", "c.toml:2: ftl.over_provisioning: 100%: must be at most 99%"),
        ("[host]\npage_cache = '2TiB'", "c.toml:2: host.page_cache: 2TiB: must be at most 1TiB"),
        ("[workload]\nmax_gap = 'nonne'", "c.toml:2: workload.max_gap: nonne: did you mean \"none\"?"),
        ("[workload]\nmax_gap = '2y'", "c.toml:2: workload.max_gap: 2y: unknown unit y"),
    ]);
    assert!(
        of_text("[flash]\npage = 16").to_string().ends_with("units: B, kB, KiB, MB, MiB, GB, GiB, TB, TiB")
    );
}

#[test]
fn size_mixes() {
    let case =
        |value: &str| of_text(&format!("[workload.synthetic]\nread_sizes = {value}")).headline().to_owned();
    let headed = |text: &str| format!("c.toml:2: workload.synthetic.read_sizes: {text}");
    for (value, expected) in [
        (
            "\"4KiB/60:64KiB\"",
            "4KiB/60:64KiB: 64KiB needs a weight, a whole number from 1: \"4KiB/60:64KiB/40\"",
        ),
        ("\"4KiB/0\"", "4KiB/0: 4KiB/0 needs a weight, a whole number from 1: \"4KiB/60:64KiB/40\""),
        ("\"4K/1\"", "4K: ambiguous, write 4KiB or 4kB"),
        ("\"4KiB/1:256B/1\"", "256B: must be at least 512B, or \"size\""),
        ("4096", "4096: no unit; write 4096B, 4096kB or 4096KiB"),
    ] {
        assert_eq!(case(value), headed(expected), "{value}");
    }
    let many = vec!["4KiB/1"; 65].join(":");
    assert_eq!(case(&format!("\"{many}\"")), headed("65 sizes; at most 64 are taken"));
}

#[test]
fn numbers_and_flags() {
    check(&[
        ("[host]\nqueue_depth = 0", "c.toml:2: host.queue_depth: 0: must be at least 1, or \"unlimited\""),
        (
            "[device]\nqueue_depth = 0",
            "c.toml:2: device.queue_depth: 0: must be at least 1, or \"unlimited\"",
        ),
        ("[host]\nqueue_depth = -1", "c.toml:2: host.queue_depth: -1: must not be negative"),
        (
            "[host]\nqueue_depth = '128'",
            "c.toml:2: host.queue_depth: \"128\" is text; write it without quotes",
        ),
        ("[host]\nqueue_depth = 1.0", "c.toml:2: host.queue_depth: 1.0: not a whole number"),
        (
            "[host]\nqueue_depth = 'unlimted'",
            "c.toml:2: host.queue_depth: unlimted: did you mean \"unlimited\"?",
        ),
        ("[flash]\nchannels = 0", "c.toml:2: flash.channels: 0: must be at least 1"),
        (
            "[flash]\nchannels = 99999999999999999999",
            "c.toml:2: flash.channels: 99999999999999999999: must be at most 1024",
        ),
        (
            "seed = 0xffff_ffff_ffff_ffff",
            "c.toml:1: seed: 0xffffffffffffffff: must be at most 9223372036854775807",
        ),
        ("[workload]\nspeed = 0.0", "c.toml:2: workload.speed: 0.0: must be above 0"),
        ("[workload]\nspeed = -1.5", "c.toml:2: workload.speed: -1.5: must not be negative"),
        ("[workload]\nspeed = nan", "c.toml:2: workload.speed: nan: not a finite number"),
        ("[workload]\nspeed = -inf", "c.toml:2: workload.speed: -inf: not a finite number"),
        ("[workload]\nspeed = 1e999", "c.toml:2: workload.speed: 1e999: must be at most 1000000000.0"),
        ("[workload]\nspeed = 'fast'", "c.toml:2: workload.speed: fast: expected a number such as 1.5"),
        ("[host]\nalternate = 1", "c.toml:2: host.alternate: 1: expected true or false"),
        ("[host]\nalternate = 'true'", "c.toml:2: host.alternate: \"true\" is text; write it without quotes"),
        (
            "[workload]\ntrace = ''",
            "c.toml:2: workload.trace: an empty path; expected the path of a file, in quotes",
        ),
        ("[workload]\ntrace = \"a\\u0000b\"", "c.toml:2: workload.trace: a path cannot hold a NUL character"),
    ]);
}

#[test]
fn names_of_registries() {
    check(&[
        ("[host]\nscheduler = 'nop'", "c.toml:2: host.scheduler: nop: unknown name; did you mean \"noop\"?"),
        (
            "[host]\nscheduler = 'anticipatory'",
            "c.toml:2: host.scheduler: anticipatory: unknown name; the names are noop, row, amphibian, hp, rb, map, \
             map+, map-rate, map-ratio, irbw, padding, coop, mq-deadline, kyber, bfq",
        ),
        ("[workload]\nformat = 'zzzz'", "c.toml:2: workload.format: zzzz: unknown name"),
        ("[workload]\nformat = 'mrs'", "c.toml:2: workload.format: mrs: unknown name; did you mean \"msr\"?"),
        ("[host]\nscheduler = 1", "c.toml:2: host.scheduler: 1: expected a name in quotes"),
        (
            "preset = 'map-pls'",
            "c.toml:1: preset: no preset is called \"map-pls\"; did you mean \"map-plus\"?",
        ),
        ("preset = ''", "c.toml:1: preset: no preset is called \"\""),
    ]);
    assert!(of_text("[workload]\nformat = 'zzzz'").to_string().contains("names: auto, csv, parquet, msr"));
    assert_eq!(
        of_options(Base::Preset("map-pls"), &[]).headline(),
        "map-pls: no preset is called \"map-pls\"; did you mean \"map-plus\"?"
    );
}

#[test]
fn options_are_named_as_the_user_gave_them() {
    let option = |origin: &str, key: &str, value: &str| Override {
        origin: origin.into(),
        key: key.into(),
        value: value.into(),
    };
    let cases = [
        (
            set("host.schduler", "noop"),
            "--set host.schduler=noop: unknown key host.schduler; did you mean host.scheduler?",
        ),
        (set("host.scheduler", "nop"), "--set host.scheduler=nop: unknown name; did you mean \"noop\"?"),
        (set("host.queue_depth", "0"), "--set host.queue_depth=0: must be at least 1, or \"unlimited\""),
        (set("ftl.mapping_cache", "16K"), "--set ftl.mapping_cache=16K: ambiguous, write 16KiB or 16kB"),
        (
            set("ftl.mapping_cache", "0B"),
            "--set ftl.mapping_cache=0B: 0B holds no mapping entry of 8B (ftl.entry); \
             give at least 8B, or \"unlimited\"",
        ),
        (set("host", "x"), "--set host=x: host is a table; name one of its keys"),
        (set("", "x"), "--set =x: no key; write KEY=VALUE, for example host.scheduler=noop"),
        (set("seed", ""), "--set seed=: empty; expected a whole number such as 128"),
        (set("seed", "1e3"), "--set seed=1e3: not a whole number"),
        (set("preset", "nothing"), "--set preset=nothing: no preset is called \"nothing\""),
        (
            set("preset", "coop"),
            "--set preset=coop: no preset is called \"coop\"; did you mean \"coop-bast\"?",
        ),
        (
            option("--dedup 50", "workload.dedup", "50"),
            "--dedup 50: workload.dedup: no unit; write 50us or 50ms",
        ),
        (
            option("keyword 'seed'", "seed", "many"),
            "keyword 'seed': many: expected a whole number such as 128",
        ),
        (
            set("host.scheduler", "a\nb\u{1b}[31m"),
            "--set host.scheduler=a\\nb\\u{1b}[31m: unknown name; \
             the names are noop, row, amphibian, hp, rb, map, \
             map+, map-rate, map-ratio, irbw, padding, coop, mq-deadline, kyber, bfq",
        ),
    ];
    for (option, expected) in cases {
        let error = of_options(Base::Preset("map-plus"), std::slice::from_ref(&option));
        assert_eq!(error.headline(), expected);
        bounded(&error);
    }
}

#[test]
fn a_contradiction_is_located_where_its_key_was_written() {
    let file = "preset = 'map-plus'\n[flash]\ncapacity = '4GiB'\n";
    let expected = "\
c.toml:3: flash.capacity: 4GiB contradicts the geometry, which holds 16GiB ([flash]: 1 channel x 1 chip x \
1 die x 1 plane x 65536 blocks x 64 pages x 4KiB); flash.blocks_per_plane = 16384 would fit
 --> c.toml:3:12
  |
3 | capacity = '4GiB'
  |            ^^^^^^
  flash.capacity = \"4GiB\" (c.toml:3)
  flash.blocks_per_plane = 65536 (preset map-plus:39)";
    assert_eq!(of_text(file).to_string(), expected);

    // The key is in the file; the message also names the option that broke it.
    let error = of_options(
        Base::Text { name: "c.toml", text: "[flash]\ncapacity = '1GiB'\n" },
        &[set("flash.channels", "2")],
    );
    assert!(
        error.headline().starts_with("c.toml:2: flash.capacity: 1GiB contradicts the geometry"),
        "{error}"
    );
    assert!(error.to_string().ends_with("flash.channels = 2 (--set flash.channels=2)"), "{error}");
}

#[test]
fn a_contradiction_with_a_preset_is_located_at_what_the_user_wrote() {
    let error = of_options(Base::Preset("map-plus"), &[set("flash.channels", "1024")]);
    assert_eq!(
        error.headline(),
        "--set flash.channels=1024: flash.blocks_per_plane: the geometry ([flash]: 1024 channels x 1 chip x 1 die x \
         1 plane x 65536 blocks x 64 pages x 4KiB) has 4294967296 logical pages of 4KiB (ftl.logical_page); \
         the most is 2147483648: choose fewer blocks or larger pages"
    );
    let text = "preset = 'map-plus'\n[workload]\nreplay = 'closed'\n[host]\nqueue_depth = 'unlimited'";
    assert_eq!(
        of_text(text).headline(),
        "c.toml:5: host.queue_depth: closed replay (workload.replay) keeps host.queue_depth requests outstanding, \
         so it needs a number here, not \"unlimited\""
    );
    let error = of_options(
        Base::Text { name: "c.toml", text: "workload.synthetic.requests = 5" },
        &[Override { origin: "--trace a.csv".into(), key: "workload.trace".into(), value: "a.csv".into() }],
    );
    assert_eq!(
        error.to_string(),
        "--trace a.csv: workload.trace: a trace is given as well as a generator (workload.synthetic.requests); \
         remove one of the two\n  workload.trace = \"a.csv\" (--trace a.csv)\n  workload.synthetic.requests = 5 (c.toml:1)"
    );
}

#[test]
fn inputs_that_are_no_configuration() {
    let headline = |argument: &str| ftlab_config::open(argument).unwrap_err().headline().to_owned();
    let dir = std::env::temp_dir().join(format!("ftlab-config-{}", std::process::id()));
    std::fs::create_dir_all(&dir).unwrap();
    let path = |name: &str, bytes: &[u8]| {
        let path = dir.join(name);
        std::fs::write(&path, bytes).unwrap();
        path.to_str().unwrap().to_owned()
    };
    assert_eq!(
        headline("map-pls"),
        "map-pls: no file and no preset of this name; did you mean the preset map-plus?"
    );
    assert_eq!(headline("no/such.toml"), "no/such.toml: no file and no preset of this name");
    assert_eq!(headline(""), "CONFIG: empty; give a preset's name or a TOML file");
    let directory = dir.to_str().unwrap();
    let expected = format!("{directory}: a directory, where a configuration file or a preset is expected");
    assert_eq!(headline(directory), expected);
    let latin = path("latin.toml", b"seed = 1\n# caf\xe9\n");
    let no_configuration = "so not a configuration; a trace is given with --trace FILE";
    assert_eq!(headline(&latin), format!("{latin}:2: not UTF-8 text (byte 0xe9), {no_configuration}"));
    let wide = path("wide.toml", b"\xff\xfes\0e\0");
    assert_eq!(headline(&wide), format!("{wide}:1: UTF-16 text; save it as UTF-8"));
    let large = path("large.csv", &vec![b'1'; (1 << 20) + 1]);
    assert_eq!(headline(&large), format!("{large}: larger than 1MiB, {no_configuration}"));
    // Regression: an endless file was read until the memory was full.
    assert_eq!(headline("/dev/zero"), format!("/dev/zero: larger than 1MiB, {no_configuration}"));
    let marked = path("marked.toml", b"\xef\xbb\xbfseed = 7\n");
    let input = ftlab_config::open(&marked).unwrap();
    assert_eq!(resolve(input.base(), &[]).unwrap().settings.seed, 7);
    std::fs::remove_dir_all(&dir).unwrap();
}

/// The scheduler `padding` is refused if the FTL has no merges to pad for; `irbw` and `coop` are accepted.
#[test]
fn padding_needs_an_ftl_that_merges() {
    check(&[(
        "[host]\nscheduler = 'padding'",
        "c.toml:2: host.scheduler: \"padding\" makes flash blocks whole for the FTL's merges, and \
         ftl.kind = \"page\" has none; choose \"bast\" or \"fast\" there, or another scheduler",
    )]);
    for scheduler in ["irbw", "coop"] {
        assert!(resolve(Base::Preset("map-plus"), &[set("host.scheduler", scheduler)]).is_ok());
    }
    assert!(resolve(Base::Preset("coop-bast"), &[set("host.scheduler", "padding")]).is_ok());
}

/// Regression: every one of 100,000 wrong keys got a message of its own, which took minutes, though only one
/// message was shown.
#[test]
fn many_mistakes_cost_as_much_as_one() {
    let text: String = (0..100_000).rev().map(|number| format!("k{number}=1\n")).collect();
    let start = std::time::Instant::now();
    let error = resolve(Base::Text { name: "a.toml", text: &text }, &[]).unwrap_err();
    assert_eq!(error.headline(), "a.toml:1: k99999: unknown key");
    assert!(start.elapsed().as_secs() < 30, "{:?}", start.elapsed());
}

#[test]
fn tables_of_no_configuration_keep_their_order_and_have_its_limits() {
    let dir = std::env::temp_dir().join(format!("ftlab-table-{}", std::process::id()));
    std::fs::create_dir_all(&dir).unwrap();
    let read = |text: &[u8]| {
        let path = dir.join("a.toml");
        std::fs::write(&path, text).unwrap();
        let shown = |error: ftlab_config::ConfigError| error.headline().replace(dir.to_str().unwrap(), "");
        ftlab_config::read_toml(path.to_str().unwrap(), "targets file").map(|v| v.to_string()).map_err(shown)
    };
    let text = b"z = 0x10\n[y.b]\nd = 1.5\n[y.a]\nf = [true, 2026-01-02, \"\\n\", {}]\n";
    let json = r#"{"z":16,"y":{"b":{"d":1.5},"a":{"f":[true,"2026-01-02","\n",{}]}}}"#;
    assert_eq!(read(text).as_deref(), Ok(json));
    let deep = ["[".repeat(500_000), "a.".repeat(500_000)];
    for text in deep.iter().map(|deep| format!("b = 1\na = {deep}")) {
        let error = read(text.as_bytes()).unwrap_err();
        assert!(error.starts_with("/a.toml:2: not valid TOML: "), "{error}");
    }
    // Regression: the stack overflowed, because the parser's bound does not hold where keys are missing.
    let error = read("a = { = ".repeat(100_000).as_bytes()).unwrap_err();
    assert!(error.starts_with("/a.toml:1: "), "{error}");
    let error = resolve(Base::Text { name: "a.toml", text: &"a = { = ".repeat(100_000) }, &[]).unwrap_err();
    assert!(error.headline().starts_with("a.toml:1: "), "{error}");
    let set = Override { origin: "--set".into(), key: "seed".into(), value: "{ = ".repeat(30_000) };
    assert!(resolve(Base::Preset("map-plus"), &[set]).is_err());
    for number in ["inf", "nan", "1e400", "9223372036854775808"] {
        let error = read(format!("a = {number}").as_bytes()).unwrap_err();
        assert_eq!(error, "/a.toml:1: a number beyond what ftlab reads");
    }
    // Regression: a message quoted a key of 20,000 characters.
    let long = format!("[a]\n{} = 1", "i".repeat(201));
    assert_eq!(read(long.as_bytes()).unwrap_err(), "/a.toml:2: a key of more than 200 characters");
    let long = format!("a = 1\nb = \"{}\"", "i".repeat(10_001));
    assert_eq!(read(long.as_bytes()).unwrap_err(), "/a.toml:2: a text of more than 10000 characters");
    assert_eq!(read(b"\xff").unwrap_err(), "/a.toml:1: not UTF-8 text (byte 0xff), so not a targets file");
    let error = ftlab_config::read_toml("/dev/zero", "targets file").unwrap_err();
    assert_eq!(error.headline(), "/dev/zero: larger than 1MiB, so not a targets file");
    std::fs::remove_dir_all(&dir).unwrap();
}
