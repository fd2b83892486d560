//! Adding a scheduler, a victim policy or a mapping cache is one new file and one registry line: this test
//! does all three, in a copy of the source, and runs what comes out. No list of tests names what was added.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

/// The new file: the youngest request first.
const LIFO: &str = r#"//! LIFO: the youngest request first.

use super::{Around, Decision, Needs, Scheduler};
use crate::config::section;
use crate::config::section::count;
use crate::request::Pool;

pub(super) const NAME: &str = "lifo";
pub(super) const DOC: &str = "the youngest request first";

section! {
    /// Its own keys.
    #[derive(Clone, Debug, PartialEq)]
    pub struct Keys {
        /// lifo: the oldest of so many youngest requests goes first.
        depth: u32 = "host.lifo_depth", count(1, 1024), "1";
    }
}

#[derive(Clone, Debug)]
pub(super) struct Lifo {
    stack: Vec<u32>,
    depth: usize,
}

impl Scheduler for Lifo {
    const NEEDS: Needs = Needs { deadline: true, ..Needs::NOTHING };

    fn new(keys: &super::Keys, _block_pages: u32) -> Lifo {
        Lifo { stack: Vec::new(), depth: keys.own.lifo.depth as usize }
    }

    fn admit(&mut self, id: u32, _pool: &mut Pool) {
        self.stack.push(id);
    }

    fn choose(&mut self, _pool: &mut Pool, _around: &mut impl Around) -> Decision {
        if self.stack.is_empty() {
            return Decision::Nothing;
        }
        Decision::One(self.stack.remove(self.stack.len().saturating_sub(self.depth)))
    }

    fn remove(&mut self, id: u32, _pool: &mut Pool) {
        self.stack.retain(|&other| other != id);
    }

    fn verify(&self, _pool: &Pool) -> Result<u32, String> {
        Ok(self.stack.len() as u32)
    }
}
"#;

/// The registry line.
const LINE: &str = "    Lifo = lifo::Lifo;\n";

/// The new policy: the youngest block that gains anything.
const NEWEST: &str = r#"//! Newest: the youngest block that gains anything.

use super::{Need, Own, Space, Victims};
use rand_xoshiro::Xoshiro256PlusPlus;

pub(super) const NAME: &str = "newest";
pub(super) const DOC: &str = "the youngest block that gains anything";
pub type Keys = ();

#[derive(Clone, Debug)]
pub(super) struct Newest {
    space: Space,
    closed: Vec<Vec<u32>>,
}

impl Victims for Newest {
    fn new(_keys: &Own, space: Space, _rng: Xoshiro256PlusPlus) -> Newest {
        Newest { space, closed: vec![Vec::new(); space.chips as usize] }
    }

    fn close(&mut self, chip: u32, block: u32, _valid: u32, _now: u64) {
        self.closed[chip as usize].push(block);
    }

    fn invalidate(&mut self, _chip: u32, _block: u32, _valid: u32, _now: u64) {}

    fn choose(&mut self, need: Need, valid: impl Fn(u32) -> u32) -> u32 {
        let mut young = self.closed[need.chip as usize].iter().rev().copied();
        young.find(|&block| self.space.gainful(valid(block))).unwrap()
    }

    fn remove(&mut self, chip: u32, block: u32, _valid: impl Fn(u32) -> u32) {
        self.closed[chip as usize].retain(|&other| other != block);
    }

    fn each(&self, chip: u32, visit: &mut dyn FnMut(u32, Option<u32>)) {
        self.closed[chip as usize].iter().for_each(|&block| visit(block, None));
    }
}
"#;

/// The new mapping cache: a hand goes round the entries and passes over those used since it came by.
const CLOCK: &str = r#"//! Clock: an entry leaves when the hand finds it unused since it came by last.
//!
//! Source: Corbato, "A Paging Experiment with the Multics System", MIT Project MAC, 1968.

use super::entries::Entries;
use super::policy::{Cached, Policy};
use crate::config::section;
use crate::config::section::count;
use crate::ftl::settings::Settings;
use crate::util::codec::Damage;

/// Registered name.
pub const NAME: &str = "clock";
/// One line for `ftlab components`.
pub const DOC: &str = "demand-cached page map, second chance";

section! {
    /// Its own keys.
    #[derive(Clone, Debug, PartialEq)]
    pub struct Keys {
        /// clock: entries that the hand goes round.
        most: u32 = "ftl.clock_entries", count(1, 1 << 30) or "all", "all";
    }
}

/// The mapping cache.
pub type Clock = Cached<Hand>;

/// The hand.
#[derive(Clone, Debug)]
pub struct Hand {
    /// Entry it comes to next.
    next: u32,
    entries: u32,
}

impl Policy for Hand {
    /// Whether the entry was used since the hand came by.
    type Note = bool;

    fn new(settings: &Settings, _pages: u32) -> Hand {
        let most = settings.ftl.own.clock.most;
        Hand { next: 0, entries: Self::capacity(settings).unwrap_or(u32::MAX).min(most) }
    }

    fn hit(&mut self, entries: &mut Entries<bool>, id: u32) {
        *entries.note(id) = true;
    }

    fn victim(&mut self, entries: &mut Entries<bool>) -> u32 {
        loop {
            let id = self.next;
            self.next = (id + 1) % self.entries;
            if !std::mem::take(entries.note(id)) {
                return id;
            }
        }
    }

    /// As the hand will meet them.
    fn each(&self, entries: &Entries<bool>, visit: &mut dyn FnMut(u32)) {
        let mut ids: Vec<u32> = entries.slab.keys().map(|lpn| entries.slab.find(lpn)).collect();
        ids.sort_by_key(|&id| (id >= self.entries, id < self.next, id));
        ids.into_iter().for_each(visit);
    }

    fn restore(&mut self, entries: &mut Entries<bool>, id: u32, used: bool) -> Result<(), Damage> {
        *entries.note(id) = used;
        Ok(())
    }
}
"#;

/// A test of the copy: the scheduler is listed, is run, and does what it says.
const USE: &str = r#"mod common;

/// The tests that go over what is registered have all three.
#[test]
fn what_is_added_is_tested() {
    assert!(common::schedulers(false).contains(&"lifo"));
    assert!(common::page_mapped().contains(&"clock") && common::by_eviction().contains(&"clock"));
    assert!(common::victim_policies().contains(&"newest"));
}

#[test]
fn lifo_serves_the_youngest_first() {
    assert!(ftlab_core::host::sched::choices().iter().any(|choice| choice.name == "lifo"));
    let mut settings = common::settings();
    settings.host.scheduler = "lifo".into();
    let read = |lpn| common::pages(0, ftlab_core::workload::Op::Read, 4096, lpn, 1);
    let done = common::checked(&settings, vec![read(0), read(1), read(2)]).1;
    assert!(done[2].complete_ns < done[1].complete_ns && done[1].complete_ns < done[0].complete_ns);
    let keys = ftlab_core::config::section::keys::<ftlab_core::settings::Settings>();
    let key = keys.iter().find(|key| key.path == "host.lifo_depth").unwrap();
    assert_eq!((key.default, key.doc), ("1", "lifo: the oldest of so many youngest requests goes first."));
    settings.host.sched.own.lifo.depth = 3;
    let done = common::checked(&settings, vec![read(0), read(1), read(2)]).1;
    assert!(done[0].complete_ns < done[1].complete_ns && done[1].complete_ns < done[2].complete_ns);
}

#[test]
fn newest_collects_garbage() {
    assert!(ftlab_core::ftl::gc::choices().iter().any(|choice| choice.name == "newest"));
    let mut settings = common::settings();
    settings.ftl.kind = "page".into();
    settings.ftl.gc = "newest".into();
    settings.flash.blocks_per_plane = 16;
    let user = settings.user_pages();
    let write = |i: u64| common::pages(0, ftlab_core::workload::Op::Write, 4096, i * 7919 % user, 1);
    let report = common::checked(&settings, (0..4 * user).map(write).collect()).0;
    assert!(report.flash.erases["gc"] > 0);
}

#[test]
fn clock_passes_over_what_was_used() {
    use ftlab_core::workload::Op::{Read, Write};
    let mut settings = common::settings();
    settings.ftl.kind = "clock".into();
    settings.ftl.mapping_cache_bytes = Some(4 * 8);
    assert_eq!(settings.ftl.own.clock.most, u32::MAX);
    let page = |op, lpn| common::pages(0, op, 4096, lpn, 1);
    // 0 was used again, so 1 makes room for 4: then 0 is there and 1 is not.
    let lpns = [0, 1, 2, 3, 0, 4, 0, 1];
    let mapping = common::checked(&settings, lpns.map(|lpn| page(Read, lpn)).to_vec()).0.mapping;
    assert_eq!((mapping.hits, mapping.misses), (2, 6));
    settings.flash.blocks_per_plane = 32;
    settings.ftl.over_provisioning_ppm = 250_000;
    let user = settings.user_pages();
    let mixed = |i: u64| page(if i % 3 == 0 { Read } else { Write }, i * 7919 % user / (1 + i % 2 * 9));
    let report = common::checked(&settings, (0..4 * user).map(mixed).collect()).0;
    assert!(report.flash.erases["gc"] > 0 && report.mapping.hits > 0);
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

/// Writes the new file and the line at the head of its registry.
fn add(folder: &Path, name: &str, file: &str, line: &str) {
    fs::write(folder.join(name).with_extension("rs"), file).unwrap();
    let registry = fs::read_to_string(folder.join("mod.rs")).unwrap();
    let (before, after) = registry.split_once("\nregistry! {\n").unwrap();
    fs::write(folder.join("mod.rs"), format!("{before}\nregistry! {{\n{line}{after}")).unwrap();
}

#[test]
fn one_file_and_one_line() {
    let core = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    let root = core.parent().unwrap().parent().unwrap();
    let copied = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("added-scheduler");
    let _ = fs::remove_dir_all(&copied);
    for folder in ["src", "tests/common"] {
        copy(&core.join(folder), &copied.join("crates/core").join(folder));
    }
    // Only its own test is compiled, and not for speed: no other test's libraries, no optimisation.
    let manifest = fs::read_to_string(core.join("Cargo.toml")).unwrap();
    let (before, after) = manifest.split_once("[dev-dependencies]").unwrap();
    let lints = after.find("[lints]").unwrap();
    fs::write(copied.join("crates/core/Cargo.toml"), format!("{before}{}", &after[lints..])).unwrap();
    fs::copy(root.join("Cargo.lock"), copied.join("Cargo.lock")).unwrap();
    let workspace = fs::read_to_string(root.join("Cargo.toml")).unwrap();
    let own: Vec<&str> = workspace
        .lines()
        .map(|line| if line.starts_with("members = ") { "members = [\"crates/core\"]" } else { line })
        .filter(|line| !line.starts_with("default-members"))
        .collect();
    fs::write(copied.join("Cargo.toml"), own.join("\n")).unwrap();

    let source = copied.join("crates/core/src");
    add(&source.join("host/sched"), "lifo", LIFO, LINE);
    add(&source.join("ftl/gc"), "newest", NEWEST, "    Newest = newest::Newest;\n");
    add(&source.join("ftl"), "map/clock", CLOCK, "    Clock = clock::Clock;\n");
    fs::write(copied.join("crates/core/tests/lifo.rs"), USE).unwrap();
    // Two of those tests, as they are.
    for test in ["told.rs", "map_plus_cases.rs"] {
        fs::copy(core.join("tests").join(test), copied.join("crates/core/tests").join(test)).unwrap();
    }

    let output = Command::new(env!("CARGO"))
        .args([
            "test",
            "--offline",
            "--quiet",
            "--test",
            "lifo",
            "--test",
            "told",
            "--test",
            "map_plus_cases",
        ])
        .current_dir(&copied)
        .env("CARGO_TARGET_DIR", copied.with_file_name("added-scheduler-target"))
        .env("CARGO_PROFILE_DEV_OPT_LEVEL", "0")
        .env("CARGO_PROFILE_TEST_OPT_LEVEL", "0")
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && said.contains("4 passed"), "{said}");
}
