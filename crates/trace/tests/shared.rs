//! Tests on the recordings of the shared folder, if that is present: numbers of rows known from `wc -l`, and the doubts
//! that a recording raises.

use crate::common;

use common::{drain, shared, with};
use ftlab_core::settings::OutOfRange;
use ftlab_trace::{DEVICE_STRIDE, Info, Options, info, open};

fn figures(name: &str, options: &Options) -> Option<Info> {
    shared(name).map(|path| info(&path, options).unwrap_or_else(|error| panic!("{error}")))
}

#[test]
fn pixel6a() {
    // File, number of rows, number of reads.
    let files = [
        ("pixel6a-cod-exec", 223_998, 201_635),
        ("pixel6a-pubg-exec", 67_757, 50_737),
        ("pixel6a-pubg-precond", 51_110, 0),
        ("pixel6a-slideshow-exec", 84_197, 77_755),
        ("pixel6a-telegram-exec", 251_879, 24_094),
        ("pixel6a-telegram-precond", 5_320, 0),
    ];
    for (name, rows, reads) in files {
        let Some(info) = figures(&format!("{name}.csv.gz"), &Options::default()) else { return };
        assert_eq!((info.format, info.compression), ("mobile-ebpf", Some("gzip")));
        assert_eq!((info.requests, info.reads, info.writes), (rows, reads, rows - reads), "{name}");
        assert_eq!((info.out_of_order, info.dropped.len()), (0, 0), "{name}");
        assert_eq!(info.aligned_4kib, Some(1.0), "{name}");
    }
}

#[test]
fn telegram_without_repeats_and_gaps() {
    let options = Options { dedup_ns: 50_000_000, max_gap_ns: Some(60_000_000_000), ..Options::default() };
    let Some(info) = figures("pixel6a-telegram-exec.csv.gz", &options) else { return };
    assert_eq!(info.requests + info.dropped["duplicate"], 251_879);
    // An independent program, which uses a dictionary, drops the same number ("many requests logged twice").
    assert_eq!(info.dropped["duplicate"], 66_472);
    // No gap in this recording is longer than `max_gap_ns`; the recording of another day has such a gap.
    assert_eq!(info.span_ns, 7_474_114_590_000);
    let Some(info) = figures("pixel6a-pubg-exec.csv.gz", &options) else { return };
    assert!(info.span_ns < 527_750_210_109_000 / 20, "{}", info.span_ns);
}

#[test]
fn cloudphysics() {
    let Some(info) = figures("cloudphysics-sample.csv.gz", &Options::default()) else { return };
    assert_eq!((info.format, info.requests, info.reads), ("cloudphysics-csv", 113_872, 46_974));
    // The recording lasts two hours in whole seconds, and the requests of the last second are spread over it.
    assert!((7_200_000_000_000..7_201_000_000_000).contains(&info.span_ns), "{}", info.span_ns);
    assert!(info.notes.iter().any(|note| note.contains("whole seconds")), "{:?}", info.notes);
}

#[test]
fn financial1_in_two_layouts() {
    let (Some(spc), Some(ssdsim)) =
        (shared("financial1-first949.spc"), shared("financial1-first10000.ssdsim.txt"))
    else {
        return;
    };
    let spc = drain(&mut *open(&spc, &Options::default()).unwrap()).unwrap();
    let all = drain(&mut *open(&ssdsim, &with("ssdsim")).unwrap()).unwrap();
    assert_eq!((spc.len(), all.len()), (949, 10_000));
    for (a, b) in spc.iter().zip(&all) {
        // One file has microseconds, and the other passed through single-precision floats, so the times differ a
        // little.
        assert!(a.time_ns.abs_diff(b.time_ns) < 2000, "{a:?} {b:?}");
        assert_eq!((a.op, a.offset, a.size, a.line), (b.op, b.offset, b.size, b.line));
    }
    let asus = all.iter().map(|record| record.offset / DEVICE_STRIDE).max().unwrap() + 1;
    assert_eq!(asus, 22);
}

#[test]
fn look_alikes() {
    for (name, format, requests) in [
        ("msr-cut-rw20-80.replayer.txt", "replayer", 10_000),
        ("msr-cut-rw40-60.replayer.txt", "replayer", 10_000),
        ("tpcc-small.mqsim.txt", "mqsim", 6_999),
    ] {
        let Some(path) = shared(name) else { return };
        assert!(info(&path, &Options::default()).unwrap_err().to_string().contains(format));
        assert_eq!(info(&path, &with(format)).unwrap().requests, requests, "{name}");
    }
}

#[test]
fn without_times() {
    for (name, requests) in [("nexus5-messaging-notimes.txt", 5_702), ("baidutieba-4h-notimes.txt", 61_666)] {
        let Some(info) = figures(name, &Options::default()) else { return };
        assert_eq!((info.format, info.requests, info.peak_rate_per_s), ("notimes", requests, None));
    }
}

#[test]
fn sqlitewal() {
    let Some(info) = figures("sqlitewal-ext4.txt", &Options::default()) else { return };
    assert_eq!((info.reads, info.writes, info.trims), (4, 5_003, 1));
    assert_eq!((info.dropped["not_issue"], info.span_ns), (4_992, 1_412_912_035));
}

#[test]
fn ycsb() {
    let Some(info) = figures("ycsb-f2fs.blkparse.txt", &Options::default()) else { return };
    // blkparse's own summary gives the same for dispatches: 4722 reads of 524,572 KiB, 1005 writes of 429,540
    // KiB.
    assert_eq!((info.format, info.reads, info.writes), ("blkparse", 4_722, 1_005));
    assert_eq!((info.bytes_read >> 10, info.bytes_written >> 10), (524_572, 429_540));
    assert_eq!(
        info.notes,
        [
            "counted the rows of action I",
            "rows are put in order of their stamps: 1147 came after later ones, by up to 48.680264 ms"
        ]
    );
    assert_eq!(info.out_of_order, 0);
}

#[test]
fn every_file_can_be_packed() {
    for (name, format) in [
        ("pixel6a-telegram-exec.csv.gz", "auto"),
        ("cloudphysics-sample.csv.gz", "auto"),
        ("financial1-first10000.ssdsim.txt", "ssdsim"),
        ("msr-cut-rw20-80.replayer.txt", "replayer"),
    ] {
        let Some(path) = shared(name) else { return };
        let footprint = info(&path, &with(format)).unwrap().footprint_bytes;
        let options =
            Options { out_of_range: OutOfRange::Compact, capacity_bytes: Some(footprint), ..with(format) };
        let records = drain(&mut *open(&path, &options).unwrap()).unwrap();
        assert_eq!(
            records.iter().map(|record| record.offset + record.size).max().unwrap().div_ceil(4096) * 4096,
            footprint
        );
        let one_page_less = Options { capacity_bytes: Some(footprint - 4096), ..options };
        assert!(open(&path, &one_page_less).is_err());
    }
}
