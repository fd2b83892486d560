//! A trace streams: neither the bytes held nor the number of allocations grows with its length.

mod common;

use common::Folder;
use ftlab_core::settings::OutOfRange;
use ftlab_trace::{Options, open};
use std::alloc::{GlobalAlloc, Layout, System};
use std::fmt::Write;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// Counts what passes through the system's allocator.
struct Counting;

static ALLOCATIONS: AtomicUsize = AtomicUsize::new(0);
static HELD: AtomicUsize = AtomicUsize::new(0);
static PEAK: AtomicUsize = AtomicUsize::new(0);

// SAFETY: every call goes to the system's allocator unchanged.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.fetch_add(1, Relaxed);
        PEAK.fetch_max(HELD.fetch_add(layout.size(), Relaxed) + layout.size(), Relaxed);
        // SAFETY: the caller keeps the contract of `alloc`.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        HELD.fetch_sub(layout.size(), Relaxed);
        // SAFETY: the caller keeps the contract of `dealloc`.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Returns the number of allocations made, and the largest number of bytes held, while a trace is read to its end.
fn cost(path: &str, options: &Options) -> (usize, usize) {
    let (allocations, held) = (ALLOCATIONS.load(Relaxed), HELD.load(Relaxed));
    PEAK.store(held, Relaxed);
    let mut source = open(path, options).unwrap();
    let mut requests = 0;
    while source.next().unwrap().is_some() {
        requests += 1;
    }
    assert!(requests > 1000);
    (ALLOCATIONS.load(Relaxed) - allocations, PEAK.load(Relaxed) - held)
}

/// Returns lines of a trace with this many requests, ten thousand addresses and three devices.
fn trace(requests: u64) -> String {
    let mut text = String::new();
    for i in 0..requests {
        let op = if i % 3 == 0 { "Read" } else { "Write" };
        let offset = i * 7919 % 10_000 * 4096;
        writeln!(text, "{},host,{},{op},{offset},4096,0", i * 1000, i % 3).unwrap();
    }
    text
}

/// Neither the allocations nor the memory of reading a trace grow with its length. This test is the only one here,
/// because the counters belong to the whole process.
#[test]
fn cost_does_not_grow_with_length() {
    let folder = Folder::new();
    let gzip = |text: &str| {
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        std::io::Write::write_all(&mut encoder, text.as_bytes()).unwrap();
        encoder.finish().unwrap()
    };
    let (short, long) = (trace(20_000), trace(400_000));
    let plain = [folder.file("short", &short), folder.file("long", &long)];
    let packed = [folder.file("short.gz", gzip(&short)), folder.file("long.gz", gzip(&long))];
    drop((short, long));
    let all = Options {
        dedup_ns: 1_000_000,
        max_gap_ns: Some(1000),
        speed: 1.5,
        repeat: 2,
        out_of_range: OutOfRange::Compact,
        capacity_bytes: Some(1 << 40),
        ..Options::default()
    };
    for options in [Options::default(), all] {
        for [short, long] in [&plain, &packed] {
            let (short, long) = (cost(short, &options), cost(long, &options));
            assert_eq!(short.0, long.0, "allocations");
            assert!(long.1 <= short.1 + 1024 && long.1 < 2 << 20, "bytes: {} and {}", short.1, long.1);
        }
    }
}
