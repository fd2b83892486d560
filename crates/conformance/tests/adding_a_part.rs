//! Adding a part takes one new file and one line: this test follows `docs/adding-a-policy.md` in a copy of the source,
//! and runs the outcome. No list of tests names the added parts.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

/// A test in the copy: each part is registered, passes its suite, and does what it should.
const USE: &str = r#"use ftlab_conformance as conformance;
use ftlab_core::flash::Cause;
use ftlab_core::workload::Op::{Read, Write};

#[test]
fn lifo_serves_the_youngest_first() {
    assert!(conformance::schedulers(false).contains(&"lifo"));
    conformance::host_scheduler("lifo");
    let mut settings = conformance::settings();
    settings.host.scheduler = "lifo".into();
    let read = |lpn| conformance::pages(0, Read, 4096, lpn, 1);
    let done = conformance::checked(&settings, vec![read(0), read(1), read(2)]).1;
    assert!(done[2].complete_ns < done[1].complete_ns && done[1].complete_ns < done[0].complete_ns);
    let keys = ftlab_core::config::section::keys::<ftlab_core::settings::Settings>();
    let key = keys.iter().find(|key| key.path == "host.lifo_depth").unwrap();
    assert_eq!((key.default, key.doc), ("1", "lifo: the oldest of this many youngest requests goes first."));
    settings.host.sched.own.lifo.depth = 3;
    let done = conformance::checked(&settings, vec![read(0), read(1), read(2)]).1;
    assert!(done[0].complete_ns < done[1].complete_ns && done[1].complete_ns < done[2].complete_ns);
}

#[test]
fn newest_collects_garbage() {
    assert!(conformance::victim_policies().contains(&"newest"));
    conformance::victims("newest");
    let mut settings = conformance::small("page", 1);
    settings.ftl.gc = "newest".into();
    let report = conformance::checked(&settings, conformance::bursts(1, 3000, settings.user_pages())).0;
    assert!(report.flash.erases[Cause::Gc] > 0);
}

/// Two ranges, each written over and over in order, one three times as fast: apart each block is invalid as a whole
/// when it is collected.
#[test]
fn ranges_keep_streams_apart() {
    assert!(conformance::placements().contains(&"ranges"));
    conformance::placement("ranges");
    let mut settings = conformance::small("page", 1);
    let half = settings.user_pages() / 2;
    let lpn = |n| if n % 4 == 0 { half + n / 4 % half } else { (n - n / 4 - 1) % half };
    let page = |n| conformance::pages(n, Write, 4096, lpn(n), 1);
    let load: Vec<_> = (0..20 * half).map(page).collect();
    let one = conformance::checked(&settings, load.clone()).0;
    assert!(one.flash.programs[Cause::Gc] > 0 && one.own.is_none());
    settings.ftl.placement = Some("ranges".into());
    let report = conformance::checked(&settings, load).0;
    assert_eq!(report.flash.programs[Cause::Gc], 0);
    assert_eq!(report.own.unwrap()["placement"]["copies"], Some(0.0));
    settings.ftl.placements.ranges.ranges = 3;
    let report = conformance::checked(&settings, conformance::bursts(1, 3000, settings.user_pages())).0;
    assert_eq!(report.own.unwrap()["placement"]["copies"], Some(report.flash.programs[Cause::Gc] as f64));
}

#[test]
fn clock_passes_over_what_was_used() {
    assert!(conformance::page_mapped().contains(&"clock"));
    conformance::ftl("clock");
    let mut settings = conformance::settings();
    settings.ftl.kind = "clock".into();
    settings.ftl.mapping_cache_bytes = Some(4 * 8);
    assert_eq!(settings.ftl.own.clock.most, u32::MAX);
    let page = |lpn| conformance::pages(0, Read, 4096, lpn, 1);
    // 0 was used again, so 1 makes room for 4: afterwards 0 is cached and 1 is not.
    let lpns = [0, 1, 2, 3, 0, 4, 0, 1];
    let mapping = conformance::checked(&settings, lpns.map(page).to_vec()).0.mapping;
    assert_eq!((mapping.hits, mapping.misses), (2, 6));
}

#[test]
fn the_patrol_reads_a_page_every_millisecond() {
    let mut settings = conformance::settings();
    settings.ftl.kind = "page".into();
    settings.device.precondition = ftlab_core::settings::Precondition::fill();
    let page = |time_ns, lpn| conformance::pages(time_ns, Read, 4096, lpn, 1);
    // The second read comes 10 us after the patrol's twentieth, and waits for the rest of its 35 us.
    let load = || vec![page(0, 0), page(20_010_000, 1)];
    let (before, _) = conformance::checked(&settings, load());
    settings.device.own.patrol.interval_ns = Some(1_000_000);
    let (report, done) = conformance::checked(&settings, load());
    assert_eq!((before.flash.reads[Cause::Wear], report.flash.reads[Cause::Wear]), (0, 20));
    assert_eq!((report.trace.requests, report.flash.reads[Cause::Host], done.len()), (2, 2, 2));
    assert!(before.own.is_none());
    assert_eq!(report.own.unwrap()["patrol"]["reads"], Some(20.0));
    assert_eq!((before.latency.read.max_ns, report.latency.read.max_ns), (35_000, 60_000));
    // The part does not keep a run alive, and a device driven from outside continues with it.
    assert_eq!((report.elapsed_ns, before.elapsed_ns), (20_070_000, 20_045_000));
    let prepared = ftlab_core::sim::Prepared::new(&settings, &mut (), true).unwrap();
    let mut driven = ftlab_core::Simulation::new(&settings, prepared);
    for until_ns in [1, 2_000_000, 2_000_010, 7_500_000] {
        driven.advance(until_ns, &mut ()).unwrap();
    }
    assert_eq!((driven.report().flash.reads[Cause::Wear], driven.next_event_ns()), (7, Some(8_000_000)));
}

#[test]
fn words_are_read() {
    let (name, sample) = ftlab_trace::samples().find(|(name, _)| *name == "words").unwrap();
    let path = std::env::temp_dir().join(format!("words-{}", std::process::id()));
    std::fs::write(&path, sample).unwrap();
    for format in [name, "auto"] {
        let options = ftlab_trace::Options { format: format.into(), ..Default::default() };
        let mut source = ftlab_trace::open(path.to_str().unwrap(), &options).unwrap();
        let mut next = || source.next().unwrap().map(|record| (record.time_ns, record.op, record.offset, record.size));
        assert_eq!(next(), Some((0, Read, 4096, 512)));
        assert_eq!(next(), Some((500, Write, 0, 4096)));
        assert_eq!(next(), None);
    }
    std::fs::remove_file(path).unwrap();
}
"#;

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copy(&entry.path(), &target);
        } else {
            fs::copy(entry.path(), target).unwrap();
        }
    }
}

/// Copies a crate's source, and its manifest without the dependencies of its own tests.
fn copy_crate(root: &Path, copied: &Path, folder: &str) {
    copy(&root.join(folder).join("src"), &copied.join(folder).join("src"));
    let manifest = fs::read_to_string(root.join(folder).join("Cargo.toml")).unwrap();
    let (before, after) = manifest.split_once("[dev-dependencies]").unwrap_or((&manifest, ""));
    let rest = after.find("[lints]").map_or("", |lints| &after[lints..]);
    fs::write(copied.join(folder).join("Cargo.toml"), format!("{before}{rest}")).unwrap();
}

/// Does what the page says: each piece of Rust code in it is a new file or, where the file exists, the first line of
/// its registry.
fn follow(page: &str, copied: &Path) -> Vec<String> {
    let mut done = Vec::new();
    let mut rest = page;
    while let Some((before, after)) = rest.split_once("```rust\n") {
        let (code, after) = after.split_once("```").unwrap();
        let path =
            before.split('`').rfind(|word| word.starts_with("crates/") && word.ends_with(".rs")).unwrap();
        let path = copied.join(path);
        if let Ok(registry) = fs::read_to_string(&path) {
            let found = ["\nregistry! {\n", "$list! {\n"].into_iter().find_map(|head| registry.find(head));
            let list = found.unwrap_or_else(|| panic!("{} has no registry", path.display()));
            let mut lines = registry[list..].match_indices('\n').map(|(at, _)| list + at + 1);
            // `Part = module::Part;`, `module::Part;`, or `module { Part = "name", ... }`.
            let is_part = |line: &str| line.contains(" = ") || line.contains("::") && !line.contains("pub ");
            let first = lines.find(|&at| registry[at..].lines().next().is_some_and(is_part)).unwrap();
            let (before, after) = registry.split_at(first);
            fs::write(&path, format!("{before}{code}{after}")).unwrap();
        } else {
            fs::write(&path, code).unwrap();
            done.push(path.file_name().unwrap().to_str().unwrap().to_owned());
        }
        rest = after;
    }
    done
}

#[test]
fn one_file_and_one_line() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().parent().unwrap();
    let copied = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("added-part");
    let _ = fs::remove_dir_all(&copied);
    let crates = ["crates/core", "crates/conformance", "crates/trace"];
    crates.iter().for_each(|folder| copy_crate(root, &copied, folder));
    let manifest = copied.join("crates/conformance/Cargo.toml");
    let with_trace =
        fs::read_to_string(&manifest).unwrap() + "[dev-dependencies]\nftlab-trace.workspace = true\n";
    fs::write(manifest, with_trace).unwrap();
    fs::copy(root.join("Cargo.lock"), copied.join("Cargo.lock")).unwrap();
    let workspace = fs::read_to_string(root.join("Cargo.toml")).unwrap();
    let members = format!("members = {crates:?}");
    let own: Vec<&str> = workspace
        .lines()
        .map(|line| if line.starts_with("members = ") { &*members } else { line })
        .filter(|line| !line.starts_with("default-members"))
        .collect();
    fs::write(copied.join("Cargo.toml"), own.join("\n")).unwrap();

    let page = fs::read_to_string(root.join("docs/adding-a-policy.md")).unwrap();
    assert_eq!(
        follow(&page, &copied),
        ["lifo.rs", "newest.rs", "ranges.rs", "clock.rs", "patrol.rs", "words.rs"]
    );
    let tests = copied.join("crates/conformance/tests");
    fs::create_dir_all(&tests).unwrap();
    fs::write(tests.join("added.rs"), USE).unwrap();

    let output = Command::new(env!("CARGO"))
        .args(["test", "--offline", "--quiet", "--package", "ftlab-conformance", "--test", "added"])
        .current_dir(&copied)
        .env("CARGO_TARGET_DIR", copied.with_file_name("added-part-target"))
        // The speed of the compiled copy does not matter here.
        .env("CARGO_PROFILE_DEV_OPT_LEVEL", "0")
        .env("CARGO_PROFILE_TEST_OPT_LEVEL", "0")
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && said.contains("6 passed"), "{said}");
}
