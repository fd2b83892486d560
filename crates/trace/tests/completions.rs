//! When requests completed, in the layouts that say so.

use crate::common;

use common::{Folder, failure, read, with};
use ftlab_core::workload::Record;
use ftlab_trace::{Completions, Options, convert_csv, is_recording, open, samples};

const UNKNOWN: u64 = Record::UNKNOWN;

fn needed(format: &str) -> Options {
    Options { completions: Completions::Needed, ..with(format) }
}

/// Returns the latencies in a trace, ns.
fn latencies(content: impl AsRef<[u8]>, options: &Options) -> Vec<u64> {
    let (records, _) = read(content, options).unwrap_or_else(|error| panic!("{error}"));
    records.iter().map(|record| record.latency_ns).collect()
}

#[test]
fn layouts_with_a_column() {
    let csv = "time_ns,op,offset,size,latency_us\n5,R,0,512,1.5\n9,W,0,512,\n9,F,,,0.25\n";
    assert_eq!(latencies(csv, &needed("auto")), [1500, UNKNOWN, 250]);
    let msr = "128166372003061629,usr,0,Read,0,512,41286\n128166372003061700,usr,0,Write,0,512,0\n";
    assert_eq!(latencies(msr, &needed("msr")), [4_128_600, 0]);
    let systor = "Timestamp,Response,IOType,LUN,Offset,Size\n1.5,0.25,R,0,0,512\n2,,W,0,0,512\n";
    assert_eq!(latencies(systor, &needed("auto")), [250_000_000, UNKNOWN]);
    let io_tracer = "timestamp,operation,pid,tid,command,sector,size,latency_ms,device,flags\n\
        2024-01-15 10:30:45.123456,write,1,1,a,8,4096,1.234,8:0,\n\
        2024-01-15 10:30:46.123456,flush,1,1,a,0,0,,8:0,\n";
    assert_eq!(latencies(io_tracer, &needed("auto")), [1_234_000, UNKNOWN]);
    let biotracer = "8\t8\t4096\t5\t10.5\t10.5001\t10.5002\t10.51\n";
    assert_eq!(latencies(biotracer, &needed("biotracer")), [10_000_000]);
}

/// A completion covers bytes: of several requests that were merged, and a part of one that was split.
#[test]
fn completions_that_are_rows() {
    let blkparse = "8,0 1 1 0.000001 7 Q W 8 + 8 [k]\n\
        8,0 1 2 0.000002 7 Q W 16 + 8 [k]\n\
        8,0 1 3 0.000003 7 Q R 64 + 16 [k]\n\
        8,0 1 4 0.000004 7 Q FN [k]\n\
        8,0 1 5 0.000005 0 C R 64 + 8 [0]\n\
        8,0 1 6 0.000006 0 C W 8 + 16 [0]\n\
        8,0 1 7 0.000009 0 C R 72 + 8 [0]\n\
        8,0 1 8 0.000010 7 Q R 8 + 8 [k]\n\
        8,0 1 9 0.000011 7 Q R 8 + 8 [k]\n\
        8,0 1 10 0.000013 0 C R 8 + 8 [0]\n\
        8,0 1 11 0.000015 0 C FN 0 [0]\n";
    let found = latencies(blkparse, &needed("blkparse"));
    assert_eq!(found, [5000, 4000, 6000, 11_000, 3000, UNKNOWN]);
    assert_eq!(latencies(blkparse, &with("blkparse")), [UNKNOWN; 6]);
    let (records, summary) = read(blkparse, &needed("blkparse")).unwrap();
    assert!(records.iter().all(|record| record.flags == 0), "{records:?}");
    assert_eq!(summary.dropped.get("not_issue"), None);
}

#[test]
fn completions_in_blktrace() {
    let event = |ns: u64, sector: u64, bytes: u32, action: u32| {
        let mut record = [0; 48];
        record[..4].copy_from_slice(&0x6561_7407_u32.to_le_bytes());
        record[8..16].copy_from_slice(&ns.to_le_bytes());
        record[16..24].copy_from_slice(&sector.to_le_bytes());
        record[24..28].copy_from_slice(&bytes.to_le_bytes());
        record[28..32].copy_from_slice(&action.to_le_bytes());
        record
    };
    let (queued, completed, write) = (1, 8, 2 << 16);
    let trace = [
        event(100, 8, 4096, queued | write),
        event(150, 64, 512, queued),
        event(400, 8, 4096, completed | write),
        event(900, 64, 512, completed),
    ];
    assert_eq!(latencies(trace.concat(), &needed("auto")), [300, 750]);
    let only_completions = trace[2..].concat();
    assert!(failure(only_completions, &needed("blktrace")).contains("does not say when requests completed"));
}

/// Makes a record of blktrace's version 8: ns, sector, bytes, and the action with its categories.
fn event_8(ns: u64, sector: u64, bytes: u32, action: u64) -> Vec<u8> {
    let begin = [&0x6561_7408_u32.to_le_bytes()[..], &1_u32.to_le_bytes(), &ns.to_le_bytes()].concat();
    let what = [&sector.to_le_bytes()[..], &bytes.to_le_bytes(), &700_u32.to_le_bytes()].concat();
    let device = (259_u32 << 20).to_le_bytes();
    // A message of four bytes follows each record.
    let end = [&action.to_le_bytes()[..], &device, &[0; 4], &[0, 0, 4, 0], &[0; 12], b"abcd"].concat();
    [begin, what, end].concat()
}

/// Regression: version 8 (Linux 6.19 on: records of 64 B, the process before a wider action) was no layout at all. What
/// zones are told has no bytes, but for an append, whose second completion says where it went.
#[test]
fn blktrace_of_version_8() {
    let (queued, completed) = (1_u64, 8_u64);
    let of = |category: u32| 1_u64 << (16 + category);
    let (write, complete, append, reset, open) = (of(1), of(7), of(16), of(17), of(20));
    let trace = [
        event_8(100, 8, 4096, queued | write),
        event_8(200, 1024, 8192, queued | write | append),
        event_8(250, 2048, 0, queued | write | reset),
        event_8(260, 2048, 0, queued | open),
        event_8(400, 8, 4096, completed | complete | write),
        event_8(500, 1040, 8192, completed | write | append),
        event_8(510, 1040, 8192, completed | complete | write | append),
    ];
    let (records, summary) = read(trace.concat(), &needed("auto")).unwrap();
    let found: Vec<_> =
        records.iter().map(|r| (r.time_ns, r.op.letter(), r.offset, r.size, r.latency_ns)).collect();
    assert_eq!(found, [(0, 'W', 4096, 4096, 300), (100, 'W', 524_288, 8192, UNKNOWN)]);
    assert_eq!(summary.dropped.into_iter().collect::<Vec<_>>(), [("not_issue", 1), ("other_op", 2)]);
    assert!(
        summary.notes[1].starts_with("1 zone appends have the start of their zone"),
        "{:?}",
        summary.notes
    );
    let (records, summary) = read(trace[4..].concat(), &with("blktrace")).unwrap();
    let found: Vec<_> = records.iter().map(|r| (r.time_ns, r.offset, r.size)).collect();
    assert_eq!(found, [(0, 4096, 4096), (110, 532_480, 8192)]);
    assert_eq!(summary.notes, ["counted the rows of action C"]);
    let torn = failure([&trace[0][..], &[8; 68]].concat(), &with("blktrace"));
    assert!(torn.contains("no record of blktrace (version 8) begins here"), "{torn}");
}

/// Thesios says how long a request took; where its column is not known, neither is that.
#[test]
fn completions_of_thesios() {
    let csv = "filename,file_offset,op_type,request_io_size_bytes,start_time,simulated_latency\n\
        a,0,READ,512,10,0.25\na,512,WRITE,512,11,0.00000131\na,0,READ,512,12,\n";
    assert_eq!(latencies(csv, &needed("auto")), [250_000_000, 1310, UNKNOWN]);
    assert_eq!(latencies(csv, &with("auto")), [UNKNOWN; 3]);
    let without = csv.replace("simulated_latency", "latency");
    assert!(failure(without, &needed("auto")).contains("does not say when requests completed"));
}

/// Latencies that are not asked for are not read, so that a fault in them does not matter.
#[test]
fn what_is_not_asked_for_is_not_read() {
    let csv = "time_ns,op,offset,size,latency_ns\n5,R,0,512,soon\n";
    assert_eq!(latencies(csv, &with("auto")), [UNKNOWN]);
    assert!(failure(csv, &needed("auto")).contains("trace:2: latency is \"soon\""));
}

#[test]
fn layouts_without_completions_are_refused() {
    let mut with_them = Vec::new();
    for (format, content) in samples().filter(|(format, _)| *format != "parquet") {
        let options = Options { closed: true, ..needed(format) };
        let Err(text) = read(content, &options) else {
            with_them.push(format);
            continue;
        };
        assert!(
            text.contains(&format!("read as {format}, and does not say when requests completed")),
            "{text}"
        );
        assert!(text.contains("msr, ") && text.contains("blktrace"), "{text}");
    }
    assert_eq!(with_them, ["msr", "biotracer", "systor17", "io-tracer", "thesios"]);
}

/// Completions keep their order with arrivals under any speed; pauses are cut only where nothing is under way.
#[test]
fn speed_and_gaps() {
    let csv = "time_ns,op,offset,size,latency_ns\n0,R,0,512,90\n10,R,0,512,5\n100,R,0,512,1\n";
    let faster = Options { speed: 3.0, ..needed("auto") };
    let (records, _) = read(csv, &faster).unwrap();
    let ends: Vec<_> = records.iter().map(|r| (r.time_ns, r.time_ns + r.latency_ns)).collect();
    assert_eq!(ends, [(0, 30), (3, 5), (33, 34)]);
    let cut = |completions| {
        let options = Options { max_gap_ns: Some(6), completions, ..with("auto") };
        read(csv, &options).unwrap().0.iter().map(|r| r.time_ns).collect::<Vec<_>>()
    };
    // The first request is under way until 90.
    assert_eq!(cut(Completions::Needed), [0, 10, 96]);
    assert_eq!(cut(Completions::Ignored), [0, 6, 12]);
}

#[test]
fn a_converted_trace_keeps_them_and_only_a_recording_is_one() {
    let folder = Folder::new();
    let systor = "Timestamp,Response,IOType,LUN,Offset,Size\n1,0.5,R,0,0,512\n2,,W,0,0,512\n";
    let (from, to) = (folder.file("a.csv", systor), folder.path("b.csv"));
    let options = Options { completions: Completions::Kept, ..Options::default() };
    convert_csv(&mut *open(&from, &options).unwrap(), to.as_ref()).unwrap();
    let expected = "time_ns,op,offset,size,latency_ns\n0,R,0,512,500000000\n1000000000,W,0,512,\n";
    assert_eq!(std::fs::read_to_string(&to).unwrap(), expected);
    assert!(!is_recording(&to, "auto") && !is_recording(&from, "auto"));
    let recording = folder.file("c.csv", "time_ns,op,offset,size,outstanding,latency_ns\n1,R,0,512,1,9\n");
    assert!(is_recording(&recording, "auto") && is_recording(&recording, "csv"));
    assert!(!is_recording(&recording, "msr") && !is_recording(&folder.path("none.csv"), "auto"));
}
