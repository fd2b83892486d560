//! A campaign: mutated inputs for every reader written in Rust (traces, TOML, fio jobs, tables, saved states).
//!
//! No reader panics, each takes bounded memory and time, and every error has the proper form. The number of a case is
//! its seed. Inputs that once failed are kept in `tests/corpus`, in a folder for each reader. `make fuzz` has the long
//! form.

mod common;

use common::campaign::campaign;
use common::seeds::{JOBS, TABLES, TOMLS};
use common::{Folder, drain};
use ftlab_config::{Base, Override, Resolved, presets, resolve};
use ftlab_core::ftl;
use ftlab_core::settings::OutOfRange;
use ftlab_core::sim::Prepared;
use ftlab_files::clients::{Clients, fio};
use ftlab_trace::{Options, info, open, samples};
use rand::prelude::*;
use rand_xoshiro::Xoshiro256PlusPlus;
use std::alloc::{GlobalAlloc, Layout, System};
use std::io::Write;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::atomic::{AtomicI64, Ordering::Relaxed};
use std::time::{Duration, Instant};

/// Upper bound on the bytes that a reader may hold.
const MOST_MEMORY: i64 = 512 << 20;
/// Upper bound on the time that a reader may take; generous, since the machine may be busy.
const MOST_TIME: Duration = Duration::from_secs(20);
const SHORT: u64 = 1500;

struct Counting;

static HELD: AtomicI64 = AtomicI64::new(0);
static MOST: AtomicI64 = AtomicI64::new(0);

fn count(bytes: i64) {
    MOST.fetch_max(HELD.fetch_add(bytes, Relaxed) + bytes, Relaxed);
}

// SAFETY: every call goes to the system allocator unchanged.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(layout.size() as i64);
        // SAFETY: the caller's contract is the system allocator's.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        count(layout.size() as i64);
        // SAFETY: as above.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        count(-(layout.size() as i64));
        // SAFETY: as above.
        unsafe { System.dealloc(pointer, layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        count(size as i64 - layout.size() as i64);
        // SAFETY: as above.
        unsafe { System.realloc(pointer, layout, size) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// The readers that the campaign tests.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Reader {
    Trace,
    Configuration,
    Option,
    Job,
    Table,
    State,
}

const READERS: [(Reader, &str); 6] = [
    (Reader::Trace, "trace"),
    (Reader::Configuration, "configuration"),
    (Reader::Option, "option"),
    (Reader::Job, "job"),
    (Reader::Table, "table"),
    (Reader::State, "state"),
];

/// A small device of each FTL, and its saved state.
struct States(Vec<(Resolved, Vec<u8>)>);

impl States {
    fn new() -> States {
        States(ftl::choices().iter().map(|kind| States::of(kind.name)).collect())
    }

    fn of(kind: &str) -> (Resolved, Vec<u8>) {
        // A hybrid FTL has its own preset, with log blocks.
        let own = format!("coop-{kind}");
        let preset = if presets().iter().any(|preset| preset.name == own) { own } else { "map-plus".into() };
        let set =
            |key: &str, value: &str| Override { origin: key.into(), key: key.into(), value: value.into() };
        let mut sets = vec![
            set("ftl.over_provisioning", "30%"),
            set("flash.blocks_per_plane", "64"),
            set("device.precondition", "fill"),
        ];
        if preset == "map-plus" {
            sets.push(set("ftl.kind", kind));
        }
        let resolved =
            resolve(Base::Preset(&preset), &sets).unwrap_or_else(|error| panic!("{kind}: {error}"));
        let prepared = Prepared::new(&resolved.settings, &mut (), false).unwrap();
        let mut bytes = Vec::new();
        prepared.save(&resolved.state_identity(), &mut bytes).unwrap();
        (resolved, bytes)
    }
}

/// Strings that are likely to break the parsing of numbers, units, structures and encodings.
const PIECES: &[&[u8]] = &[
    b"18446744073709551615",
    b"18446744073709551616",
    b"-9223372036854775808",
    b"99999999999999999999999999",
    b"1e308",
    b"1e-400",
    b"nan",
    b"inf",
    b"-1",
    b"0",
    b"0x",
    b"%",
    b"%n",
    b"\0",
    b"\n",
    b"\r\n",
    b"\r",
    b"\t",
    b"\"",
    b"'''",
    b"\"\"\"",
    b"[",
    b"]",
    b"[[",
    b"{",
    b"}",
    b"=",
    b".",
    b",",
    b":",
    b"/",
    b"#",
    b";",
    b"-",
    b"KiB",
    b"ms",
    b"\xef\xbb\xbf",
    b"\xff\xfe",
    b"\xc3",
    "é".as_bytes(),
    "\u{202e}".as_bytes(),
    b"a.a.a.a.a.a",
    b"[[[[[[[[[[",
    b"{a={a={a=",
    b"\x1f\x8b\x08",
    b"\x28\xb5\x2f\xfd",
    b"BZh91AY",
    b"\xfd7zXZ\0",
    b"PAR1",
];

fn mutated(draw: &mut Xoshiro256PlusPlus, seed: &[u8], other: &[u8]) -> Vec<u8> {
    let mut text = seed.to_vec();
    for _ in 0..draw.random_range(1..=6) {
        let at = draw.random_range(0..=text.len());
        let end = (at + draw.random_range(0..64)).min(text.len());
        match draw.random_range(0..10) {
            0 if at < text.len() => text[at] = draw.random(),
            1 if at < text.len() => text[at] ^= 1 << draw.random_range(0..8),
            2 => drop(text.splice(at..at, PIECES.choose(draw).unwrap().iter().copied())),
            3 => drop(text.splice(at..end, PIECES.choose(draw).unwrap().iter().copied())),
            4 => drop(text.drain(at..end)),
            5 => text.truncate(at),
            6 => {
                let times = 1 << draw.random_range(0..14);
                let part = text[at..end].repeat(times);
                text.splice(at..at, part);
            }
            7 => {
                let from = draw.random_range(0..=other.len());
                text.splice(at..end, other[from..].iter().copied());
            }
            _ => {
                // Replaces a number with another.
                let digits = text[at..].iter().position(u8::is_ascii_digit).map(|first| at + first);
                if let Some(first) = digits {
                    let rest = text[first..].iter().position(|byte| !byte.is_ascii_digit());
                    let last = first + rest.unwrap_or(text.len() - first);
                    let number = (1u128 << draw.random_range(0..70)) - u128::from(draw.random::<bool>());
                    text.splice(first..last, number.to_string().into_bytes());
                }
            }
        }
        text.truncate(4 << 20);
    }
    text
}

/// Compresses a file, or leaves it as it is; the caller mutates its content, the compressed bytes or both.
fn packed(draw: &mut Xoshiro256PlusPlus, text: &[u8]) -> Vec<u8> {
    match draw.random_range(0..12) {
        0 => {
            let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
            encoder.write_all(text).unwrap();
            encoder.finish().unwrap()
        }
        1 => zstd::encode_all(text, 1).unwrap(),
        2 => {
            let mut encoder = bzip2::write::BzEncoder::new(Vec::new(), bzip2::Compression::fast());
            encoder.write_all(text).unwrap();
            encoder.finish().unwrap()
        }
        3 => {
            let mut encoder =
                lzma_rust2::XzWriter::new(Vec::new(), lzma_rust2::XzOptions::with_preset(0)).unwrap();
            encoder.write_all(text).unwrap();
            encoder.finish().unwrap()
        }
        _ => text.to_vec(),
    }
}

/// Makes the case with this number: a reader, and an input for it.
fn case(number: u64, states: &States) -> (Reader, Vec<u8>) {
    let mut draw = Xoshiro256PlusPlus::seed_from_u64(number);
    let draw = &mut draw;
    let reader = READERS[draw.random_range(0..READERS.len())].0;
    let texts = |from: &[&str], draw: &mut Xoshiro256PlusPlus| {
        let [one, other] = [(); 2].map(|()| from.choose(draw).unwrap().as_bytes().to_vec());
        mutated(draw, &one, &other)
    };
    let input = match reader {
        Reader::Trace => {
            let [(_, one), (_, other)] = [(); 2].map(|()| samples().choose(draw).unwrap());
            let text = mutated(draw, one, other);
            let packed = packed(draw, &text);
            if packed != text && draw.random() { mutated(draw, &packed, b"") } else { packed }
        }
        Reader::Configuration => texts(TOMLS, draw),
        Reader::Option => texts(&["4KiB/60:64KiB/40", "16KiB", "1.25ns", "7%", "map+", "128", "\"x\""], draw),
        Reader::Job => texts(JOBS, draw),
        Reader::Table => texts(TABLES, draw),
        Reader::State => {
            let [one, other] = [(); 2].map(|()| &states.0.choose(draw).unwrap().1);
            mutated(draw, one, other)
        }
    };
    (reader, input)
}

fn read(reader: Reader, input: &[u8], folder: &Folder, states: &States) {
    let refused = |error: Option<String>| {
        if let Some(error) = error {
            let error = error.replace(folder.0.to_str().unwrap(), "");
            assert!(error.lines().count() <= 12 && error.lines().all(|line| line.len() <= 1800), "{error}");
            assert!(error.lines().next().unwrap().contains(": "), "{error}");
        }
    };
    match reader {
        Reader::Trace => {
            let path = folder.file("trace", input);
            for out_of_range in [OutOfRange::Error, OutOfRange::Compact] {
                let options = Options {
                    closed: true,
                    out_of_range,
                    capacity_bytes: Some(1 << 30),
                    ..Options::default()
                };
                let outcome = open(&path, &options).and_then(|mut source| drain(&mut *source));
                refused(outcome.err().map(|error| error.to_string()));
            }
            refused(info(&path, &Options::default()).err().map(|error| error.to_string()));
        }
        Reader::Configuration => {
            let path = folder.file("c.toml", input);
            let outcome = ftlab_config::open(&path).and_then(|input| resolve(input.base(), &[]));
            refused(outcome.err().map(|error| error.to_string()));
        }
        Reader::Option => {
            let value = String::from_utf8_lossy(input);
            for key in [
                "workload.synthetic.read_sizes",
                "ftl.mapping_cache",
                "flash.transfer",
                "host.scheduler",
                "seed",
            ] {
                let option =
                    Override { origin: format!("--set {key}"), key: key.into(), value: value.clone().into() };
                let outcome = resolve(Base::Preset("map-plus"), &[option]);
                refused(outcome.err().map(|error| error.to_string()));
            }
        }
        Reader::Job => {
            let path = folder.file("j.fio", input);
            let Ok(text) = ftlab_config::read_text(&path, "fio job file") else { return };
            match fio::parse(&path, &text) {
                Err(error) => refused(Some(error.to_string())),
                Ok(jobs) => {
                    let settings = &states.0[0].0.settings;
                    drop(Clients::of_jobs(&jobs, settings, settings.user_bytes()));
                }
            }
        }
        Reader::Table => {
            let path = folder.file("t.toml", input);
            refused(ftlab_config::read_toml(&path, "targets file").err().map(|error| error.to_string()));
        }
        Reader::State => {
            for (resolved, _) in &states.0 {
                drop(Prepared::load(&resolved.settings, &resolved.state_identity(), &mut &*input, false));
            }
        }
    }
}

/// Reads an input; returns the fault, if there is one.
fn judged(reader: Reader, input: &[u8], folder: &Folder, states: &States) -> Option<String> {
    let held = HELD.load(Relaxed);
    MOST.store(held, Relaxed);
    let start = Instant::now();
    let outcome = catch_unwind(AssertUnwindSafe(|| read(reader, input, folder, states)));
    let memory = MOST.load(Relaxed) - held;
    if let Err(payload) = outcome {
        let text = payload.downcast_ref::<String>().map(String::as_str);
        return Some(format!("panic: {}", text.or(payload.downcast_ref::<&str>().copied()).unwrap_or("")));
    }
    if memory > MOST_MEMORY {
        return Some(format!("{} MiB", memory >> 20));
    }
    (start.elapsed() > MOST_TIME).then(|| format!("{:?}", start.elapsed()))
}

#[test]
fn mutated_inputs() {
    let (folder, states) = (Folder::new(), States::new());
    campaign("mutated", SHORT, 6 * MOST_TIME, |number, kept| {
        let (reader, input) = case(number, &states);
        let fault = judged(reader, &input, &folder, &states)?;
        let name = READERS.iter().find(|(each, _)| *each == reader).unwrap().1;
        let path = kept.join(format!("{name}-{number}"));
        std::fs::write(&path, &input).unwrap();
        Some(format!("reader {name}: {fault}; kept in {}", path.display()))
    });
}

/// Regression: every input on which a reader once failed is now read without a fault.
#[test]
fn the_corpus() {
    let (folder, states) = (Folder::new(), States::new());
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/corpus");
    for (reader, name) in READERS {
        let Ok(files) = std::fs::read_dir(corpus.join(name)) else { continue };
        for file in files.map(|file| file.unwrap().path()) {
            let fault = judged(reader, &std::fs::read(&file).unwrap(), &folder, &states);
            assert_eq!(fault, None, "{}", file.display());
        }
    }
}
