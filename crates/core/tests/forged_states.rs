//! A campaign with forged states: some bytes of a saved state are changed, and the section's checksum is corrected. A
//! state that loads also runs, with the same result in check mode and without; all others are refused with a message of
//! one line. No case panics, and none hangs.
//!
//! The number of a case is its seed; eight cases forge the state of one device, and the registered FTLs take turns.
//! `make soak` runs the long form. Faults that the campaign found have tests of their own.

#[path = "../../trace/tests/common/campaign.rs"]
mod campaign;
use ftlab_conformance as common;
#[path = "common/devices.rs"]
mod devices;

use std::hash::Hasher;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

use campaign::campaign;
use common::{AGEING, settings};
use ftlab_core::config::Choice;
use ftlab_core::flash::parallel::Allocation;
use ftlab_core::ftl::settings::FreeBlocks;
use ftlab_core::ftl::settings::StaticLeveling;
use ftlab_core::ftl::{self, gc};
use ftlab_core::settings::{Endurance, GcBackground, Precondition, PreconditionKind, Settings};
use ftlab_core::sim::{Identity, Prepared, StateError, run_prepared};
use ftlab_core::workload::{Op, Record};
use rand::prelude::*;
use rand_xoshiro::Xoshiro256PlusPlus as Draw;
use serde::Serialize;
use serde::de::DeserializeOwned;
use twox_hash::XxHash3_64;

/// Number of cases for each device.
const CASES: u64 = 8;
/// Length of the magic and the format number, bytes.
const HEAD: usize = 12;
/// A case that takes longer is considered hung. The limit is generous, since the machine may be busy.
const HANGS: Duration = Duration::from_secs(60);

/// Returns a small device, whose FTL and policy follow from the number and which is otherwise random, and its saved
/// state.
fn prepared(number: u64) -> (Settings, Vec<u8>) {
    let mut draw = Draw::seed_from_u64(number);
    let pick = |names: &[Choice], at: u64| names[at as usize % names.len()].name.to_owned();
    let kinds = ftl::choices();
    let schedulers = common::schedulers(false);
    loop {
        let mut settings = settings();
        settings.seed = draw.random();
        settings.ftl.kind = pick(&kinds, number);
        settings.ftl.gc = pick(&gc::choices(), number / kinds.len() as u64);
        settings.ftl.translation_gc = pick(&gc::choices(), draw.random());
        settings.flash.channels = draw.random_range(1..3);
        settings.flash.chips_per_channel = draw.random_range(1..3);
        settings.flash.blocks_per_plane = draw.random_range(10..40);
        settings.flash.pages_per_block = draw.random_range(3..9);
        settings.flash.page_bytes = 512 << draw.random_range(0..4);
        settings.flash.ecc_unit_bytes = 1;
        if draw.random_bool(0.2) {
            settings.flash.endurance = Endurance::Cycles(draw.random_range(40..200));
            settings.ftl.spare_blocks = draw.random_range(0..3);
        }
        if draw.random_bool(0.2) {
            settings.flash.pe_cycles = 500;
            settings.flash.variation = Some(AGEING);
        }
        let page = settings.flash.page_bytes;
        settings.ftl.logical_page_bytes = if draw.random_bool(0.5) { page } else { 512 };
        settings.ftl.own.msftl.segment_bytes = 64 << draw.random_range(0..3);
        settings.ftl.entry_bytes = 4 << draw.random_range(0..3);
        settings.ftl.gc_free_blocks = draw.random_range(1..3);
        settings.ftl.log_blocks_ppm = draw.random_range(100_000..300_000);
        settings.ftl.over_provisioning_ppm = draw.random_range(200_000..600_000);
        settings.ftl.mapping_cache_bytes =
            draw.random_bool(0.8).then(|| u64::from(page) + draw.random_range(8..1500));
        settings.ftl.flush_bytes = draw.random_bool(0.5).then(|| draw.random_range(1..40) * u64::from(page));
        if draw.random_bool(0.3) {
            settings.ftl.wear_leveling = Some(StaticLeveling { threshold: draw.random_range(1..4) });
        }
        if draw.random_bool(0.2) {
            settings.ftl.allocation = Allocation::Dynamic;
        }
        if draw.random_bool(0.2) {
            settings.ftl.gc_background = Some(GcBackground { normal_blocks: 4, step_pages: 2 });
        }
        if draw.random_bool(0.3) {
            settings.ftl.free_blocks = FreeBlocks::Withheld;
        }
        settings.ftl.background_flush = draw.random_bool(0.3);
        settings.ftl.power_safe = draw.random_bool(0.5);
        settings.device.queue_depth = draw.random_range(1..9);
        settings.host.scheduler = schedulers[draw.random_range(0..schedulers.len())].into();
        let random = PreconditionKind::Random(500_000);
        let kinds = [PreconditionKind::Steady, PreconditionKind::Steady, PreconditionKind::Mapped, random];
        settings.device.precondition = Precondition {
            kind: kinds[draw.random_range(0..4)],
            rounds: draw.random_range(0..4),
            share_ppm: 500_000,
            ..Precondition::default()
        };
        if ftl::check(&settings).is_ok()
            && let Ok(prepared) = Prepared::new(&settings, &mut (), false)
        {
            let mut state = Vec::new();
            prepared.save(&Identity::new(), &mut state).unwrap();
            return (settings, state);
        }
    }
}

/// Returns where the sections of a state end, each before its checksum.
fn ends(state: &[u8]) -> Vec<usize> {
    let mut ends = Vec::new();
    let mut first = HEAD;
    while first < state.len() {
        let mut hash = XxHash3_64::new();
        let sealed = |&end: &usize| {
            let sum = u64::from_le_bytes(state[end..end + 8].try_into().unwrap());
            let found = hash.finish() == sum;
            hash.write(&state[end..=end]);
            found
        };
        let end = (first..=state.len() - 8).find(sealed).expect("a section ends with its checksum");
        ends.push(end);
        first = end + 8;
    }
    ends
}

/// Changes a few bytes of one section; returns the new section.
fn change(section: &mut Vec<u8>, draw: &mut Draw) {
    let most = draw.random_range(1..=8);
    for _ in 0..draw.random_range(1..=most) {
        if section.is_empty() {
            return section.push(draw.random());
        }
        let at = draw.random_range(0..section.len());
        let other = draw.random_range(0..section.len());
        let run = at..section.len().min(at + draw.random_range(1..9));
        match draw.random_range(0..12) {
            0 => section[at] = draw.random(),
            1 => section[at] = section[at].wrapping_add(1),
            2 => section[at] = section[at].wrapping_sub(1),
            3 => section[at] ^= 1 << draw.random_range(0..8),
            4 => section[run].fill(0),
            5 => section[run].fill(0xFF),
            6 => section.swap(at, other),
            7 => section[at] = section[other],
            8 => section.insert(at, draw.random()),
            // Swaps two whole words, such as those of a map.
            9 | 10 => (0..4).for_each(|byte| swap(section, at / 4 * 4 + byte, other / 4 * 4 + byte)),
            _ => drop(section.remove(at)),
        }
    }
}

fn swap(bytes: &mut [u8], one: usize, other: usize) {
    if one.max(other) < bytes.len() {
        bytes.swap(one, other);
    }
}

/// Returns the state with one section changed and its checksum corrected.
fn forged(state: &[u8], draw: &mut Draw) -> Vec<u8> {
    let ends = ends(state);
    let which = draw.random_range(0..ends.len());
    let first = if which == 0 { HEAD } else { ends[which - 1] + 8 };
    let mut section = state[first..ends[which]].to_vec();
    change(&mut section, draw);
    seal(&state[..first], &section, &state[ends[which] + 8..])
}

fn seal(before: &[u8], section: &[u8], behind: &[u8]) -> Vec<u8> {
    [before, section, &XxHash3_64::oneshot(section).to_le_bytes(), behind].concat()
}

fn load(settings: &Settings, mut state: &[u8], check: bool) -> Result<Prepared, StateError> {
    Prepared::load(settings, &Identity::new(), &mut state, check)
}

/// Makes requests of all kinds, most of them short.
fn requests(settings: &Settings, draw: &mut Draw) -> Vec<Record> {
    let user = settings.user_bytes();
    let mut time_ns = 0;
    let mut request = |_| {
        time_ns += if draw.random_bool(0.1) { 50_000_000 } else { draw.random_range(0..300_000) };
        let op = [Op::Read, Op::Read, Op::Write, Op::Write, Op::Write, Op::Write, Op::Trim, Op::Flush];
        let op = op[draw.random_range(0..op.len())];
        let size = if op == Op::Flush { 0 } else { draw.random_range(1..6000).min(user) };
        Record { time_ns, op, offset: draw.random_range(0..=user - size), size, ..Record::FLUSH }
    };
    (0..200).map(&mut request).collect()
}

/// Loads the state and runs from it; returns whether the state was loaded, or what was wrong.
fn judge(settings: &Settings, state: &[u8], records: &[Record]) -> Result<bool, String> {
    let one = |check| {
        let prepared = match load(settings, state, check) {
            Ok(prepared) => prepared,
            Err(StateError::Check(fault)) => return Err(format!("loaded, but {fault}")),
            Err(StateError::Differs(_)) => return Ok(None),
            Err(error) if error.to_string().contains('\n') => return Err(format!("two lines: {error}")),
            Err(_) => return Ok(None),
        };
        let mut records = Vec::from(records).into_iter();
        let report = run_prepared(settings, prepared, &mut records, &mut ());
        let report = report.map_err(|error| format!("ran, but {error}"))?;
        Ok(Some(serde_json::to_string(&report).unwrap()))
    };
    let calm = |check| {
        catch_unwind(AssertUnwindSafe(|| one(check))).unwrap_or_else(|panic| {
            let text = panic.downcast_ref::<String>().cloned();
            Err(format!("panic: {}", text.unwrap_or_else(|| (*panic.downcast_ref::<&str>().unwrap()).into())))
        })
    };
    let (checked, plain) = (calm(true)?, calm(false)?);
    if checked != plain {
        return Err("check mode makes a difference".into());
    }
    Ok(plain.is_some())
}

#[test]
fn no_forged_state_harms() {
    let mut known: Option<(u64, (Settings, Vec<u8>))> = None;
    let mut loaded = 0;
    campaign("forged-states", 400, HANGS, |number, _| {
        let which = number / CASES;
        if known.as_ref().is_none_or(|(at, ..)| *at != which) {
            known = Some((which, prepared(which)));
        }
        let (_, (settings, state)) = known.as_ref().unwrap();
        let mut draw = Draw::seed_from_u64(!number);
        let state = forged(state, &mut draw);
        let result = judge(settings, &state, &requests(settings, &mut draw));
        loaded += u32::from(result == Ok(true));
        result.err().map(|fault| format!("{} {}: {fault}", settings.ftl.kind, settings.ftl.gc))
    });
    println!("{loaded} of them were loaded");
}

/// Returns a steady device of two chips and its state.
fn steady(kind: &str) -> (Settings, Vec<u8>) {
    let mut settings = settings();
    settings.ftl.kind = kind.into();
    settings.flash.channels = 2;
    settings.flash.blocks_per_plane = 16;
    settings.flash.pages_per_block = 4;
    settings.flash.page_bytes = 512;
    settings.ftl.logical_page_bytes = 512;
    settings.ftl.entry_bytes = 64;
    settings.ftl.mapping_cache_bytes = Some(16 * 64);
    settings.ftl.over_provisioning_ppm = 500_000;
    settings.ftl.log_blocks_ppm = 200_000;
    settings.device.precondition =
        Precondition { kind: PreconditionKind::Steady, rounds: 3, ..Precondition::default() };
    let mut state = Vec::new();
    Prepared::new(&settings, &mut (), true).unwrap().save(&Identity::new(), &mut state).unwrap();
    (settings, state)
}

/// Changes the value that a section holds; returns the message with which the state is then refused, or nothing if the
/// state is loaded.
fn revised<T: Serialize + DeserializeOwned>(
    kind: &str,
    section: usize,
    revise: impl FnOnce(&mut T),
) -> Option<String> {
    let (settings, state) = steady(kind);
    let ends = ends(&state);
    let (first, end) = (ends[section - 1] + 8, ends[section]);
    let mut value: T = postcard::from_bytes(&state[first..end]).unwrap();
    revise(&mut value);
    let section = postcard::to_stdvec(&value).unwrap();
    let state = seal(&state[..first], &section, &state[end + 8..]);
    let records = requests(&settings, &mut Draw::seed_from_u64(1));
    judge(&settings, &state, &records).expect("neither harms nor differs");
    load(&settings, &state, false).err().map(|error| error.to_string())
}

fn assert_refused(refused: Option<String>, because: &str) {
    let refused = refused.expect("it is refused");
    assert!(refused.starts_with("damaged: ") && refused.contains(because), "{refused}");
}

/// Number of the section of the pool; the log and the map of the user data follow, and then what depends on the FTL.
const POOL: usize = 1;
const DATA: usize = 2;
const MAP: usize = 3;
const CACHE: usize = 7;
type Pool = (Vec<u32>, Vec<u32>, Vec<u32>, Option<u32>, Vec<u32>);
type Data =
    (u64, u32, u32, Vec<u32>, Vec<[u32; 2]>, Vec<(u32, u64)>, Vec<u32>, Option<[u64; 4]>, Vec<(u32, u32)>);
type Hybrid = (Vec<(u32, u32)>, Vec<(u32, u32, u32, bool)>);

/// Regression: lists of blocks were once linked, and a block could point at itself.
#[test]
fn a_block_that_comes_twice_is_refused() {
    let twice = "is not there, or in two places";
    assert_refused(revised("bast", POOL, |pool: &mut Pool| pool.1.push(pool.1[0])), twice);
    assert_refused(revised("page", DATA, |data: &mut Data| data.5.push(data.5[0])), twice);
    assert_refused(revised("page", DATA, |data: &mut Data| data.3[0] = 1 << 31), twice);
    let newer = "newer versions of what is in no block";
    assert_refused(revised("page", DATA, |data: &mut Data| data.8.push((1 << 31, 0))), newer);
    // Where all erased blocks are free, no block is closed without having been written.
    let unwritten = "is closed without ever having been written";
    assert_refused(revised("page", DATA, |data: &mut Data| data.6.push(data.5[0].0)), unwritten);
    assert_refused(revised("fast", DATA, |(_, logs): &mut Hybrid| logs.push(logs[0])), twice);
}

#[test]
fn a_block_that_nobody_has_is_refused() {
    assert_refused(revised("bast", POOL, |pool: &mut Pool| pool.1.truncate(1)), "is nobody's");
    assert_refused(revised("bast", POOL, |pool: &mut Pool| pool.4.push(pool.1.pop().unwrap())), "spare one");
}

#[test]
fn a_count_that_would_overflow_is_refused() {
    assert_refused(revised("page", POOL, |pool: &mut Pool| pool.0[5] = u32::MAX), "block 5 was erased");
    assert_refused(revised("page", DATA, |data: &mut Data| data.0 = u64::MAX), "another shape");
    assert_refused(revised("page", DATA, |data: &mut Data| data.5[0].1 = data.0 + 1), "was modified at");
    assert_refused(revised("tpftl", CACHE + 1, |rest: &mut (u64, i32, bool)| rest.0 = 0), "touched after");
}

/// Regression: with data on a chip that cannot collect that much, collection went on for ever or gained nothing.
#[test]
fn data_in_another_place_than_its_own_is_refused() {
    let words = |section: &[u8]| -> Vec<u32> {
        section.chunks_exact(4).map(|word| u32::from_le_bytes(word.try_into().unwrap())).collect()
    };
    let (settings, state) = steady("page");
    let ends = ends(&state);
    let (first, end) = (ends[MAP - 1] + 8, ends[MAP]);
    let map = words(&state[first..end]);
    let refused = |change: &dyn Fn(&mut Vec<u32>)| {
        let mut map = map.clone();
        change(&mut map);
        let section: Vec<u8> = map.iter().flat_map(|slot| slot.to_le_bytes()).collect();
        let state = seal(&state[..first], &section, &state[end + 8..]);
        load(&settings, &state, false).err().map(|error| error.to_string())
    };
    assert_refused(refused(&|map| map[0] = map[1]), "which is not its own");
    assert_refused(refused(&|map| map.swap(0, 1)), "not on its LUN");
    // There are four slots per block and 16 blocks per chip.
    let data: Data = postcard::from_bytes(&state[ends[DATA - 1] + 8..ends[DATA]]).unwrap();
    let erased = data.3.iter().find(|&&block| block / 16 == map[0] / 64).unwrap() * 4;
    assert_refused(refused(&|map| map[0] = erased), "nothing was programmed");
}

#[test]
fn a_mapping_that_cannot_be_cached_is_refused() {
    type Entries = Vec<(u32, bool, bool)>;
    let full = "cannot be cached";
    assert_refused(revised("dftl", CACHE, |cache: &mut Entries| cache[0] = cache[1]), full);
    assert_refused(revised("dftl", CACHE, |cache: &mut Entries| cache[0].0 = 1 << 30), full);
    assert_refused(revised("dftl", CACHE, |cache: &mut Entries| cache.push((0, false, false))), full);
    assert_eq!(revised("dftl", CACHE, |cache: &mut Entries| cache.truncate(3)), None);
    // There may be any number of protected entries: the cache keeps its own bounds.
    let protect = |cache: &mut Entries| cache.iter_mut().for_each(|entry| entry.2 = true);
    assert_eq!(revised("dftl", CACHE, protect), None);
}

/// Regression: segments were only checked one by one, and a page that they put elsewhere was found in check mode alone.
#[test]
fn a_segment_that_puts_a_page_elsewhere_is_refused() {
    type Segment = ([u64; 4], u32, u32, u32, u16);
    type Learned = (Vec<u32>, Vec<(u32, Vec<(u32, Segment)>)>);
    let (elsewhere, rest) = ("a segment puts LPN", CACHE + 1);
    fn segment(learned: &mut Learned) -> &mut Segment {
        &mut learned.1[0].1[0].1
    }
    assert_refused(revised("leaftl", rest, |learned: &mut Learned| segment(learned).3 += 1), elsewhere);
    assert_refused(
        revised("leaftl", rest, |learned: &mut Learned| learned.1[0].1.clear()),
        "no segment maps LPN",
    );
}

#[test]
fn a_log_block_that_is_not_what_it_says_is_refused() {
    let disordered = |(_, logs): &mut Hybrid| logs.iter_mut().for_each(|log| log.3 = true);
    let refused = revised("bast", DATA, disordered).unwrap();
    assert!(refused.contains("is not in order") || refused.contains("older pages"), "{refused}");
    assert_refused(
        revised("bast", DATA, |(_, logs): &mut Hybrid| logs[0].1 = u32::MAX),
        "log block too many",
    );
    assert_refused(revised("fast", DATA, |(_, logs): &mut Hybrid| logs[0].2 = 0), "cannot be");
}

/// Regression, found by case 276: the block set aside was taken for the full one.
#[test]
fn a_block_set_aside_alone_is_written_on() {
    let aside = |data: &mut Data| data.4.iter_mut().for_each(|open| open.swap(0, 1));
    assert_eq!(revised("page", DATA, aside), None);
}
