//! What a correct configuration resolves to.

use ftlab_config::{Base, Override, Resolved, presets, resolve};
use ftlab_core::config::{Key, Kind, Value};
use ftlab_core::settings::{OutOfRange, Precondition, Replay};
use ftlab_files::settings::all;

fn of_text(text: &str) -> Resolved {
    resolve(Base::Text { name: "c.toml", text }, &[]).unwrap_or_else(|error| panic!("{error}"))
}

fn set(key: &str, value: &str) -> Override {
    Override { origin: format!("--set {key}={value}"), key: key.into(), value: value.into() }
}

fn of_options(base: Base<'_>, options: &[(&str, &str)]) -> Resolved {
    let options: Vec<_> = options.iter().map(|(key, value)| set(key, value)).collect();
    resolve(base, &options).unwrap_or_else(|error| panic!("{error}"))
}

/// The contract's block with every fixed name, as a user would write it.
const CONTRACT: &str = r#"
preset = "map-plus"                 # map-plus | vios | coop-bast | coop-fast | msftl | ...
seed = 1
[workload]
trace = "a.csv"                     # or a generator: [workload.synthetic], [workload.benchmark]
format = "auto"                     # see traces.md
dedup = "0ms"                       # drop a repeat of op, offset, size within this time
max_gap = "none"                    # shorten longer idle gaps
skip_bad = 0
repeat = 1
out_of_range = "error"              # error | wrap | compact (touched pages packed densely, order kept)
replay = "open"                     # open (arrival times) | closed (keep queue_depth outstanding)
speed = 1.0
[host]
scheduler = "map+"
queue_depth = 128                   # pending queue of the scheduler
deadline = "10ms"
awareness = "full"                  # full | polled | lru | none
page_cache = "0B"                   # 0: requests enter below it
[device]
scheduler = "noop"                  # at the device: noop | piq | vios
queue_depth = 1                     # requests the device holds, waiting or in service; or "unlimited"
[ftl]
kind = "dftl"                       # page | dftl | cdftl | minipage | msftl | bast | fast
segment = "1KiB"                    # msftl's unit
mapping_cache = "16KiB"             # or "unlimited"
cache_policy = "slru"               # slru | lru
flush = "eviction"                  # or by amount of data programmed: "9MiB"
logical_page = "4KiB"               # default: the NAND page
partial_write = "ignore"            # ignore | rmw
over_provisioning = "7%"            # of the raw capacity
gc = "greedy"
log_blocks = "5%"                   # hybrid FTLs, rounded up
csm_threshold = "50%"               # of a block's pages
entry = "8B"
background_flush = false
[flash]
channels = 1
chips_per_channel = 1
dies_per_chip = 1
planes_per_die = 1
blocks_per_plane = 4096
pages_per_block = 64
page = "4KiB"
read = "35us"
program = "350us"
erase = "1.5ms"
transfer = "0ns"                    # per byte on the channel bus
pe_cycles = 0                       # wear at the start
"#;

#[test]
fn the_contract_resolves() {
    let resolved = of_text(CONTRACT);
    assert_eq!(resolved.preset.as_deref(), Some("map-plus"));
    let settings = &resolved.settings;
    assert_eq!(settings.workload.trace.as_deref(), Some("a.csv"));
    assert_eq!(settings.workload.max_gap_ns, None);
    assert_eq!(settings.workload.out_of_range, OutOfRange::Error);
    assert_eq!(settings.workload.replay, Replay::Open);
    assert_eq!(settings.host.deadline_ns, Some(10_000_000));
    assert_eq!(settings.ftl.mapping_cache_bytes, Some(16_384));
    assert_eq!(settings.ftl.logical_page_bytes, 4096);
    assert_eq!(settings.flash.erase_ns, 1_500_000);
    assert_eq!(settings.flash.raw_bytes(), 1 << 30, "the file's geometry, not the preset's");
    // Keys of parts that this build does not have are kept.
    assert_eq!(resolved.values["ftl.segment"], Value::Bytes(1024));
    assert_eq!(resolved.values["ftl.log_blocks"], Value::Ppm(50_000));
    assert_eq!(resolved.values["ftl.csm_threshold"], Value::Ppm(500_000));
    assert_eq!(resolved.to_json()["ftl"]["segment"], "1KiB");
}

/// Returns the keys that have values of their own; those declared for every tenant have none.
fn own() -> Vec<Key> {
    all().into_iter().filter(|key| !key.path.starts_with("tenant.")).collect()
}

#[test]
fn every_key_is_documented_and_its_default_is_legal() {
    let resolved = of_text("");
    for key in own() {
        assert!(key.doc.len() > 5 && key.doc.ends_with('.'), "{}: {:?}", key.path, key.doc);
        // Resolving reads the defaults; keys without a default are absent.
        assert_eq!(resolved.values.contains_key(key.path), !key.default.is_empty(), "{}", key.path);
        if let Kind::Choice(list) = key.kind {
            assert!(list().iter().all(|choice| !choice.doc.is_empty()), "{}", key.path);
            let mut names: Vec<_> = list().iter().map(|choice| choice.name).collect();
            names.sort_unstable();
            names.dedup();
            assert_eq!(names.len(), list().len(), "{} lists a name twice", key.path);
        }
        assert_eq!(resolved.origin(key.path).as_deref(), (!key.default.is_empty()).then_some("default"));
    }
}

#[test]
fn the_default_of_every_key_is_what_its_declaration_writes() {
    // Written out in a file, the defaults change nothing.
    let defaults = of_text("");
    for key in own().iter().filter(|key| !key.default.is_empty()) {
        let options = [(key.path, key.default)];
        assert_eq!(
            of_options(Base::Text { name: "", text: "" }, &options).values,
            defaults.values,
            "{}",
            key.path
        );
    }
}

#[test]
fn later_layers_win() {
    let text = "preset = 'map-plus'\n[host]\nscheduler = 'hp'\nqueue_depth = 7\n";
    let resolved = resolve(
        Base::Text { name: "c.toml", text },
        &[set("host.queue_depth", "8"), set("host.queue_depth", "9"), set("ftl.kind", "'page'")],
    )
    .unwrap();
    assert_eq!(resolved.settings.host.scheduler, "hp");
    assert_eq!(resolved.settings.host.queue_depth, 9);
    assert_eq!(resolved.settings.ftl.kind, "page");
    assert_eq!(resolved.settings.flash.blocks_per_plane, 65_536);
    assert_eq!(resolved.origin("host.scheduler").as_deref(), Some("c.toml:3"));
    assert_eq!(resolved.origin("host.queue_depth").as_deref(), Some("--set host.queue_depth=9"));
    assert_eq!(resolved.origin("flash.blocks_per_plane").as_deref(), Some("preset map-plus:39"));
    assert_eq!(resolved.origin("workload.speed").as_deref(), Some("default"));
    assert_eq!(resolved.origin("workload.trace"), None);
}

#[test]
fn an_option_may_choose_the_preset() {
    let text = "[flash]\nblocks_per_plane = 100\n";
    let plain = of_options(Base::Text { name: "c.toml", text }, &[]);
    assert_eq!((plain.preset, plain.settings.ftl.kind.as_str()), (None, "page"));
    let preset = of_options(Base::Text { name: "c.toml", text }, &[("preset", "map-plus")]);
    assert_eq!(preset.settings.ftl.kind, "dftl");
    assert_eq!(preset.settings.flash.blocks_per_plane, 100, "the file comes over the preset");
    assert_eq!(preset.preset.as_deref(), Some("map-plus"));
}

/// A key that the user sets for a part that was not chosen is noted; a key that a preset sets is ignored silently.
#[test]
fn keys_set_in_vain_are_noted() {
    let of = |options: &[(&str, &str)]| of_options(Base::Preset("map-plus"), options).notes();
    let noop = ("host.scheduler", "noop");
    assert_eq!(
        of(&[noop, ("host.deadline", "5ms")]),
        ["host.deadline: ignored: host.scheduler = \"noop\" dispatches nothing by deadline"]
    );
    assert!(of(&[noop]).is_empty() && of(&[("host.deadline", "5ms")]).is_empty());
    let of = |options: &[(&str, &str)]| of_options(Base::Preset("vios"), options).notes();
    let slowest = ("device.unhurried", "slowest");
    assert!(of(&[slowest]).is_empty() && of(&[("device.scheduler", "piq")]).is_empty());
    assert_eq!(
        of(&[slowest, ("device.scheduler", "piq")]),
        ["device.unhurried: ignored: device.scheduler = \"piq\" chooses no block by its speed"]
    );
    assert_eq!(
        of(&[slowest, ("flash.variation.model", "none")]),
        ["device.unhurried: ignored: all blocks are equally fast without flash.variation.model"]
    );
    let by_speed = ("ftl.placement", "vios");
    assert!(of(&[slowest, ("device.scheduler", "piq"), by_speed]).is_empty());
    assert_eq!(
        of(&[slowest, ("ftl.placement", "one")]),
        ["device.unhurried: ignored: ftl.placement = \"one\""]
    );
    assert_eq!(
        of(&[by_speed, ("flash.variation.model", "none")]),
        ["ftl.placement: ignored: all blocks are equally fast without flash.variation.model"]
    );
}

#[test]
fn options_are_written_without_quotes() {
    let resolved = of_options(
        Base::Preset("map-plus"),
        &[
            ("host.scheduler", "map+"),
            ("host.alternate", "true"),
            ("host.queue_depth", "'12'"),
            ("device.queue_depth", "unlimited"),
            ("ftl.mapping_cache", "\"8KiB\""),
            ("ftl.over_provisioning", "4.98%"),
            ("flash.transfer", "1.25ns"),
            (" seed ", "1_000"),
            ("workload.speed", "2"),
            ("workload.trace", " my traces/a 'b'.csv"),
        ],
    );
    let settings = &resolved.settings;
    assert!(settings.host.sched.alternate);
    assert_eq!(settings.host.queue_depth, 12);
    assert_eq!(settings.device.queue_depth, u32::MAX);
    assert_eq!(settings.ftl.mapping_cache_bytes, Some(8192));
    assert_eq!(settings.ftl.over_provisioning_ppm, 49_800);
    assert_eq!(settings.flash.transfer_ps, 1250);
    assert_eq!(settings.seed, 1000);
    assert_eq!(settings.workload.speed, 2.0);
    assert_eq!(settings.workload.trace.as_deref(), Some(" my traces/a 'b'.csv"));
}

#[test]
fn files_may_be_written_in_any_toml_style() {
    let plain = of_text("seed = 5\n[flash]\npage = '8KiB'\nchannels = 2\n");
    for text in [
        "seed = 5\nflash.page = '8KiB'\nflash.channels = 2",
        "flash = { page = \"8 KiB\", channels = 0x2 }\nseed = +5",
        "\u{feff}seed = 5\r\n[ flash ] # c\r\npage = \"8.0KiB\"\r\n\"channels\" = 2\r\n",
        "[flash]\nchannels = 2\npage = \"\"\"8KiB\"\"\"\n[host]\n[workload.synthetic]\n[workload]\nspeed = 1",
    ] {
        let other = of_text(text);
        let want = if text.starts_with("[flash]") { 1 } else { 5 };
        assert_eq!(other.settings.seed, want);
        assert_eq!(other.settings.flash, plain.settings.flash, "{text}");
    }
}

#[test]
fn map_plus_is_the_device_of_the_paper() {
    let resolved = of_options(Base::Preset("map-plus"), &[]);
    let settings = &resolved.settings;
    let flash = &settings.flash;
    assert_eq!((flash.chips(), flash.dies_per_chip, flash.planes_per_die), (1, 1, 1));
    assert_eq!((flash.blocks_per_plane, flash.pages_per_block, flash.page_bytes), (65_536, 64, 4096));
    assert_eq!(flash.raw_bytes(), 16 << 30);
    assert_eq!((flash.read.mean(), flash.program.mean(), flash.transfer_ps), (35_000, 350_000, 0));
    assert_eq!((settings.ftl.kind.as_str(), settings.ftl.own.dftl.replacement.as_str()), ("dftl", "slru"));
    assert_eq!((settings.ftl.mapping_cache_bytes, settings.ftl.entry_bytes), (Some(16_384), 8));
    assert!(settings.ftl.own.dftl.batch_update && !settings.ftl.background_flush);
    assert_eq!((settings.host.scheduler.as_str(), settings.host.queue_depth), ("map+", 128));
    assert_eq!((settings.host.deadline_ns, settings.host.awareness.name()), (Some(10_000_000), "full"));
    assert_eq!((settings.device.queue_depth, &settings.device.precondition), (1, &Precondition::default()));
}

#[test]
fn presets_are_in_order() {
    for preset in presets() {
        assert!(
            preset.text.starts_with(&format!("# {}\n", preset.doc)),
            "{}: its first line is its doc",
            preset.name
        );
        let resolved = of_options(Base::Preset(preset.name), &[]);
        assert_eq!(resolved.preset.as_deref(), Some(preset.name));
        assert!(!resolved.values.contains_key("flash.capacity"), "{}: presets state geometry", preset.name);
        assert!(resolved.settings.workload.trace.is_none(), "{}", preset.name);
        // The preset's text gives the same configuration when a user has copied it to a file.
        assert_eq!(of_text(preset.text).values, resolved.values);
    }
}

#[test]
fn a_capacity_that_agrees_is_kept() {
    let resolved = of_options(Base::Preset("map-plus"), &[("flash.capacity", "16GiB")]);
    assert_eq!(resolved.to_json()["flash"]["capacity"], "16GiB");
    assert!(resolved.to_toml().contains("\ncapacity = \"16GiB\"\n"));
}

#[test]
fn json_is_nested_in_the_order_of_the_stack() {
    let json = of_options(Base::Preset("map-plus"), &[("workload.trace", "a.csv")]).to_json();
    let names: Vec<_> = json.as_object().unwrap().keys().map(String::as_str).collect();
    assert_eq!(names, ["preset", "seed", "workload", "host", "device", "ftl", "flash", "energy", "results"]);
    assert_eq!(json["preset"], "map-plus");
    assert_eq!(json["workload"]["trace"], "a.csv");
    assert_eq!(json["workload"]["speed"], 1.0);
    assert_eq!(json["workload"]["synthetic"]["read_share"], "50%");
    assert_eq!(json["host"]["queue_depth"], 128);
    assert_eq!(json["host"]["alternate"], false);
    assert_eq!(json["host"]["deadline"], "10ms");
    assert_eq!(json["flash"]["erase"], "1.5ms");
    assert_eq!(
        of_options(Base::Preset("map-plus"), &[("host.deadline", "none")]).to_json()["host"]["deadline"],
        "none"
    );
}

#[test]
fn the_hash_follows_the_values_alone() {
    let preset = of_options(Base::Preset("map-plus"), &[]);
    assert_eq!(preset.hash().len(), 32);
    assert!(preset.hash().bytes().all(|b| b.is_ascii_hexdigit()));
    // Another spelling and another origin give the same values.
    let copy = preset.to_toml().replace("preset = \"map-plus\"\n", "").replace("\"10ms\"", "\"10_000us\"");
    assert_eq!(of_text(&copy).hash(), preset.hash());
    assert_eq!(of_text(&copy).preset, None);
    let other = of_options(Base::Preset("map-plus"), &[("flash.read", "36us")]);
    assert_ne!(other.hash(), preset.hash());
}

#[test]
fn a_later_error_is_located_like_the_front_s_own() {
    let text = "[workload]\ntrace = 'gone.csv'\n";
    let error = of_text(text).complain("workload.trace", "gone.csv: no such file");
    assert_eq!(error.headline(), "c.toml:2: workload.trace: gone.csv: no such file");
    let option = Override {
        origin: "--trace gone.csv".into(),
        key: "workload.trace".into(),
        value: "gone.csv".into(),
    };
    let resolved = resolve(Base::Preset("map-plus"), &[option]).unwrap();
    let error = resolved.complain("workload.trace", "gone.csv: no such file");
    assert_eq!(error.headline(), "--trace gone.csv: workload.trace: gone.csv: no such file");
}

/// As in the paper, the user space is 14,352 of 15,104 blocks, with 8,073 page mapping tables of 4,096 entries each
/// (ICSOFT 2020, section 4.1).
#[test]
fn the_preset_msftl_has_the_user_space_of_its_paper() {
    let settings = of_options(Base::Preset("msftl"), &[]).settings;
    assert_eq!(settings.flash.raw_bytes(), 15_104 * (9 << 20));
    assert_eq!(settings.user_bytes(), 14_352 * (9 << 20));
    assert_eq!(settings.user_pages(), 8_073 * 4_096);
    assert_eq!((ftlab_core::ftl::unit_bytes(&settings), settings.ftl.flush_bytes), (1024, Some(9 << 20)));
}

/// FLIN orders flash operations itself: its order takes the place of the default, also in a file of all values.
#[test]
fn an_arbiter_brings_its_order() {
    let text = "workload.tenants = \"by-stream\"\nhost.queues = \"per-tenant\"\nhost.arbiter = \"flin\"\n";
    let resolved = of_text(text);
    assert_eq!(resolved.values["flash.order"], Value::Text("flin".into()));
    let again = of_text(&resolved.to_toml());
    assert_eq!((again.hash(), &again.settings), (resolved.hash(), &resolved.settings));
    assert_eq!(of_text(&format!("{text}flash.order = \"flin\"\n")).hash(), resolved.hash());
    for other in ["emission", "reads-first"] {
        let text = format!("{text}flash.order = \"{other}\"\n");
        let refused = resolve(Base::Text { name: "c.toml", text: &text }, &[]).expect_err("two orders");
        let expected = "c.toml:4: flash.order: does not go with host.arbiter = \"flin\"";
        assert!(refused.headline().starts_with(expected), "{refused}");
    }
    let alone = Base::Text { name: "c.toml", text: "host.arbiter = \"flin\"\nflash.order = \"emission\"\n" };
    let unused = resolve(alone, &[]).expect("no tenants, so no arbiter");
    assert_eq!(unused.values["flash.order"], Value::Text("emission".into()));
}
