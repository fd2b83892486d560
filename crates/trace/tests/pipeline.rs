//! What happens to parsed rows: dropping, times, passes, addresses; also chunks, and conversion to csv and back.

use crate::common;

use common::{Folder, Short, check_form, drain, failure, read, rows, short};
use ftlab_core::settings::{OutOfRange, Replay};
use ftlab_core::workload::{Op, SourceError};
use ftlab_trace::{Chunk, Chunks, Options, convert_csv, head, info, open, open_chunks};

const PAGE: u64 = 4096;

fn csv(lines: &[(u64, char, u64, u64)]) -> String {
    let mut text = String::from("time_ns,op,offset,size\n");
    for (time, op, offset, size) in lines {
        text.push_str(&format!("{time},{op},{offset},{size}\n"));
    }
    text
}

#[test]
fn everything_together_in_order() {
    // A request of size 0 comes first: it must become neither the start of the trace nor the kept one of two
    // duplicates.
    let content = "0,0,0,r,0.5\n0,8,4096,r,1.0\n0,8,4096,r,1.04\n0,8,4096,w,1.05\n0,16,4096,r,0.9\n0,8,4096,r,1.08\n0,24,4096,r,9.0\n";
    let options = Options {
        dedup_ns: 50_000_000,
        max_gap_ns: Some(2_000_000_000),
        speed: 2.0,
        repeat: 2,
        ..Options::default()
    };
    let (records, summary) = read(content, &options).unwrap();
    let ms: Vec<_> = records.iter().map(|r| (r.time_ns / 1_000_000, r.op.letter(), r.line)).collect();
    // Without the speed, the arrivals would be 0, 100, 150, 180 and 2180; the mean gap would be 545, so the next pass
    // would start at 2725.
    let first = [(0, 'R', 5), (50, 'R', 2), (75, 'W', 4), (90, 'R', 6), (1090, 'R', 7)];
    let second = [(1362, 'R', 5), (1412, 'R', 2), (1437, 'W', 4), (1452, 'R', 6), (2452, 'R', 7)];
    assert_eq!(ms, [first, second].concat());
    assert_eq!(summary.out_of_order, 0);
    let moved = "rows are put in order of their stamps: 1 came after later ones, by up to 150.000000 ms";
    assert_eq!(summary.notes, [moved]);
    assert_eq!(summary.dropped.into_iter().collect::<Vec<_>>(), [("duplicate", 2), ("zero_size", 2)]);
}

#[test]
fn bad_lines_up_to_the_number_allowed() {
    let content = "time_ns,op,offset,size\n0,R,0,512\nnonsense\n5,R,-4096,512\n9,W,0,512\n";
    let text = failure(content, &Options::default());
    assert!(text.starts_with("trace:3: op is missing: the line has too few fields\n"), "{text}");
    let text = failure(content, &Options { skip_bad: 1, ..Options::default() });
    assert!(text.starts_with("trace:4: offset is \"-4096\": it must not be negative\n"), "{text}");
    assert!(text.contains("bad line 2"), "{text}");
    let options = Options { skip_bad: 2, repeat: 3, out_of_range: OutOfRange::Compact, ..Options::default() };
    let (records, summary) = read(content, &options).unwrap();
    assert_eq!((records.len(), summary.dropped["bad_line"]), (6, 6));
}

#[test]
fn addresses_beyond_the_device() {
    let content =
        csv(&[(0, 'W', 0, 512), (5, 'R', 10 * PAGE + 512, PAGE), (9, 'F', 0, 0), (9, 'T', 3 * PAGE, PAGE)]);
    let device = Options { capacity_bytes: Some(4 * PAGE), ..Options::default() };
    let text = failure(&content, &device);
    assert!(
        text.starts_with(
            "trace:3: 4096 B at byte 41472 (40.5 KiB) are beyond the user capacity of 16384 B (16 KiB)\n"
        ),
        "{text}"
    );
    assert!(text.contains("workload.out_of_range = \"compact\"") && text.contains(", \"wrap\" "), "{text}");
    let wrapped = rows(&content, &Options { out_of_range: OutOfRange::Wrap, ..device.clone() });
    assert_eq!(
        wrapped,
        [(0, 'W', 0, 512), (5, 'R', 2 * PAGE + 512, PAGE), (9, 'F', 0, 0), (9, 'T', 3 * PAGE, PAGE)]
    );
    let packed = rows(&content, &Options { out_of_range: OutOfRange::Compact, ..device.clone() });
    assert_eq!(
        packed,
        [(0, 'W', 0, 512), (5, 'R', 2 * PAGE + 512, PAGE), (9, 'F', 0, 0), (9, 'T', PAGE, PAGE)]
    );
    let small = Options { capacity_bytes: Some(3 * PAGE), out_of_range: OutOfRange::Compact, ..device };
    let text = failure(&content, &small);
    assert!(
        text.starts_with(
            "trace: the touched pages need 16384 B (16 KiB) packed, and the user capacity is 12288 B"
        ),
        "{text}"
    );
}

#[test]
fn the_largest_numbers() {
    let most = u64::MAX;
    let content = csv(&[(most, 'W', most - 512, 512)]);
    assert_eq!(rows(&content, &Options::default()), [(most, 'W', most - 512, 512)]);
    for out_of_range in [OutOfRange::Wrap, OutOfRange::Compact] {
        let device = Options { capacity_bytes: Some(4 * PAGE), out_of_range, ..Options::default() };
        let placed = rows(&content, &device);
        assert!(placed[0].2 + 512 <= 4 * PAGE, "{placed:?}");
    }
    let text = failure(csv(&[(0, 'W', most - 511, 512)]), &Options::default());
    assert!(text.starts_with("trace:2: offset and size together exceed 2^64 bytes"), "{text}");
    let twice = Options { repeat: 2, ..Options::default() };
    let text = failure(csv(&[(0, 'W', 0, 512), (most, 'W', 0, 512)]), &twice);
    assert!(text.contains("exceeds 2^64 ns"), "{text}");
}

#[test]
fn a_trace_of_many_lines_streams_across_buffers() {
    // The lines have all lengths, so that they straddle the end of the buffer in every way.
    let mut content = String::from("note,time_ns,op,offset,size\n");
    let count = 60_000u64;
    for i in 0..count {
        content.push_str(&"x".repeat((i * 7 % 41) as usize));
        content.push_str(&format!(",{i},W,{},512\n", i * 512));
    }
    let (records, _) = read(&content, &Options::default()).unwrap();
    assert_eq!(records.len() as u64, count);
    for (i, record) in (0..).zip(&records) {
        assert_eq!((record.time_ns, record.offset, record.line), (i, i * 512, i + 2));
    }
}

#[test]
fn locate_names_file_and_line() {
    let folder = Folder::new();
    let path = folder.file("a.csv", csv(&[(0, 'W', 0, 512), (1, 'W', 0, 512)]));
    let mut source = open(&path, &Options::default()).unwrap();
    let records = drain(&mut *source).unwrap();
    assert_eq!(source.locate(&records[1]), format!("{path}:3"));
}

/// Makes a function that returns these chunks one after another.
fn handed_over(chunks: Vec<Result<Chunk, SourceError>>) -> Chunks {
    let mut chunks = chunks.into_iter();
    Box::new(move |chunk| {
        let next = chunks.next().transpose()?;
        let more = next.is_some();
        *chunk = next.unwrap_or_default();
        Ok(more)
    })
}

fn chunks_of(rows: Vec<Short>, size: usize) -> Chunks {
    let chunks = rows
        .chunks(size)
        .map(|rows| {
            Ok(Chunk {
                ts_ns: rows.iter().map(|row| row.0 as i64).collect(),
                op: rows.iter().map(|row| row.1 as u8).collect(),
                offset: rows.iter().map(|row| row.2 as i64).collect(),
                size: rows.iter().map(|row| row.3 as i64).collect(),
                ..Chunk::default()
            })
        })
        .collect();
    handed_over(chunks)
}

const ROWS: [Short; 5] =
    [(7, 'W', 0, 512), (17, 'R', 99 * PAGE, 512), (27, 'F', 5, 5), (27, 'T', PAGE, PAGE), (37, 'R', PAGE, 0)];

#[test]
fn chunks_go_the_same_way() {
    for size in [1, 2, 3, 100] {
        let make = move || -> ftlab_trace::MakeChunks { Box::new(move || chunks_of(ROWS.to_vec(), size)) };
        let options = Options {
            capacity_bytes: Some(3 * PAGE),
            out_of_range: OutOfRange::Compact,
            repeat: 2,
            ..Options::default()
        };
        let mut source = open_chunks("a.parquet", make(), &options).unwrap();
        let records = drain(&mut *source).unwrap();
        let first = [(7, 'W', 0, 512), (17, 'R', 2 * PAGE, 512), (27, 'F', 0, 0), (27, 'T', PAGE, PAGE)];
        // The span is 20, and the mean gap is 20 / 3.
        let second = first.map(|(time, op, offset, size)| (time + 27, op, offset, size));
        assert_eq!(short(&records), [first, second].concat());
        assert_eq!(source.summary().dropped["zero_size"], 2);
        assert_eq!(source.locate(&records[1]), "a.parquet: row 2");
    }
}

/// Regression: a recording of a client that waited for replies was replayed by its times; this reversed the result of a
/// comparison, and nothing warned of it.
#[test]
fn a_recording_of_clients_that_waited_is_doubted() {
    let recording = |outstanding: fn(u64) -> u64| {
        let row = |i: u64| format!("{},R,{},4096,{}\n", i * 100_000, i * PAGE, outstanding(i));
        format!("time_ns,op,offset,size,outstanding\n{}", (0..200).map(row).collect::<String>())
    };
    let doubts = |content: &str, replay: Replay| {
        let folder = Folder::new();
        let mut source = open(&folder.file("a.csv", content), &Options::default()).unwrap();
        ftlab_trace::doubts(&mut *source, replay)
            .unwrap()
            .into_iter()
            .filter(|d| d.contains("waited"))
            .collect::<Vec<_>>()
    };
    let steady = recording(|i| (i + 1).min(16));
    let found = doubts(&steady, Replay::Open);
    assert!(found[0].contains("16 requests under way; by its times") && found.len() == 1, "{found:?}");
    assert!(found[0].ends_with("--set workload.replay=closed --set host.queue_depth=16"), "{found:?}");
    assert!(doubts(&steady, Replay::Closed).is_empty());
    let folder = Folder::new();
    let info = info(&folder.file("a.csv", &steady), &Options::default()).unwrap();
    assert_eq!(info.notes, ["recorded with 15.4 requests under way on average, 16 at most"]);
    // Here work arrives by itself, now and then much of it at the same time, so the clients did not wait.
    assert!(doubts(&recording(|i| 1 + i % 50 * (i / 190)), Replay::Open).is_empty());
}

/// FUA applies only to a write; a flush requested before a request precedes that request, and is a repeat only if the
/// request is one.
#[test]
fn flags_of_chunks() {
    let make = || -> ftlab_trace::MakeChunks {
        Box::new(|| {
            let chunk = Chunk {
                ts_ns: vec![0, 10, 20, 30, 30],
                op: vec![b'R', b'W', b'T', b'W', b'W'],
                offset: vec![0, 512, 1024, 2048, 2048],
                size: vec![512; 5],
                flags: vec![1, 1, 3, 255, 3],
                ..Chunk::default()
            };
            handed_over(vec![Ok(chunk)])
        })
    };
    let options = Options { dedup_ns: 50, ..Options::default() };
    let mut source = open_chunks("a.parquet", make(), &options).unwrap();
    let records = drain(&mut *source).unwrap();
    let rows = [(0, 'R', 0, 512), (10, 'W', 512, 512), (20, 'F', 0, 0), (20, 'T', 1024, 512)];
    assert_eq!(short(&records), [&rows[..], &[(30, 'F', 0, 0), (30, 'W', 2048, 512)]].concat());
    let flags: Vec<u8> = records.iter().map(|record| record.flags).collect();
    assert_eq!(flags, [0, 1, 0, 0, 0, 1]);
    assert_eq!((records[4].line, source.summary().dropped["duplicate"]), (4, 1));
}

#[test]
fn chunks_that_are_wrong() {
    let fail = |chunk: Result<Chunk, SourceError>, options: &Options| {
        let mut chunk = Some(chunk);
        let make = Box::new(move || handed_over(chunk.take().into_iter().collect()));
        let text = match open_chunks("a.parquet", make, options) {
            Err(error) => error.to_string(),
            Ok(mut source) => drain(&mut *source).unwrap_err().to_string(),
        };
        check_form(&text);
        text
    };
    let row = |op: u8, offset: i64, size: i64| Chunk {
        ts_ns: vec![0],
        op: vec![op],
        offset: vec![offset],
        size: vec![size],
        ..Chunk::default()
    };
    let options = Options::default();
    let negative = fail(Ok(row(b'R', 0, -5)), &options);
    assert!(negative.starts_with("a.parquet: row 1: size is -5: it must not be negative"), "{negative}");
    assert!(fail(Ok(row(b'X', 0, 5)), &options).starts_with("a.parquet: row 1: op is \"X\""));
    assert!(fail(Ok(Chunk { size: vec![], ..row(0, 0, 0) }), &options).contains("different length"));
    assert!(fail(Ok(Chunk { flags: vec![1, 1], ..row(0, 0, 5) }), &options).contains("different length"));
    assert!(fail(Ok(Chunk::default()), &options).contains("it holds no rows"));
    assert_eq!(fail(Err(SourceError::Input("b: broken".into())), &options), "b: broken");
    let skipping = Options { skip_bad: 1, ..options };
    assert!(fail(Ok(row(b'R', -1, 5)), &skipping).contains("all rows were dropped (bad_line 1)"));
}

#[test]
fn an_interrupt_passes_through() {
    let make = Box::new(|| handed_over(vec![Err(SourceError::Interrupted)]));
    let mut source = open_chunks("a.parquet", make, &Options::default()).unwrap();
    assert!(matches!(source.next(), Err(SourceError::Interrupted)));
}

#[test]
fn csv_and_back() {
    let folder = Folder::new();
    let lines: Vec<Short> = ROWS[..4].to_vec();
    let from = folder.file("from.csv", csv(&lines));
    let to = folder.path("to.csv");
    let mut source = open(&from, &Options::default()).unwrap();
    assert_eq!(convert_csv(&mut *source, to.as_ref()).unwrap(), 4);
    let again = std::fs::read_to_string(&to).unwrap();
    assert_eq!(
        again,
        csv(&[(7, 'W', 0, 512), (17, 'R', 99 * PAGE, 512), (27, 'F', 0, 0), (27, 'T', PAGE, PAGE)])
    );
    let mut second = open(&to, &Options::default()).unwrap();
    let mut first = open(&from, &Options::default()).unwrap();
    assert_eq!(drain(&mut *second).unwrap(), drain(&mut *first).unwrap());
    let fua = "time_ns,op,offset,size\n0,W,0,512\n5,WF,512,512\n";
    let mut source = open(&folder.file("fua.csv", fua), &Options::default()).unwrap();
    assert_eq!(convert_csv(&mut *source, to.as_ref()).unwrap(), 2);
    assert_eq!(std::fs::read_to_string(&to).unwrap(), fua);
}

#[test]
fn a_failed_conversion_leaves_the_target_alone() {
    let folder = Folder::new();
    let from = folder.file("from.csv", "time_ns,op,offset,size\n1,R,0,512\nbad\n");
    let to = folder.file("to.csv", "as it was");
    let mut source = open(&from, &Options::default()).unwrap();
    assert!(convert_csv(&mut *source, to.as_ref()).is_err());
    assert_eq!(std::fs::read_to_string(&to).unwrap(), "as it was");
    assert_eq!(std::fs::read_dir(&folder.0).unwrap().count(), 2);
}

#[test]
fn heads_show_addresses_as_recorded() {
    let folder = Folder::new();
    let path = folder.file("a.csv", csv(&[(5, 'W', 1 << 40, 512), (6, 'R', 0, 512), (7, 'R', 0, 512)]));
    let options = Options { capacity_bytes: Some(PAGE), ..Options::default() };
    let records = head(&path, &options, 2).unwrap().0;
    assert_eq!(short(&records), [(5, 'W', 1 << 40, 512), (6, 'R', 0, 512)]);
    assert_eq!(head(&path, &options, 100).unwrap().0.len(), 3);
}

#[test]
fn info_counts() {
    let folder = Folder::new();
    let s = 1_000_000_000;
    let path = folder.file(
        "a.csv",
        csv(&[
            (5 * s, 'W', 8192, 4096),
            (5 * s + s / 2, 'R', 12288, 512),
            (5 * s + s - 1, 'R', 12800, 512),
            (6 * s, 'F', 0, 0),
            (7 * s, 'T', 1 << 30, 1 << 20),
            (7 * s, 'W', 0, 0),
            (9 * s, 'W', 8192, 4096),
            (8 * s, 'W', 20480, 4096),
        ]),
    );
    let info = info(&path, &Options { capacity_bytes: Some(PAGE), ..Options::default() }).unwrap();
    assert_eq!((info.format, info.compression), ("csv", None));
    assert_eq!((info.requests, info.reads, info.writes, info.trims, info.flushes), (7, 2, 3, 1, 1));
    assert_eq!((info.bytes_read, info.bytes_written, info.bytes_trimmed), (1024, 12288, 1 << 20));
    assert_eq!(info.span_ns, 4 * s);
    assert_eq!(info.mean_rate_per_s, Some(7.0 / 4.0));
    assert_eq!(info.peak_rate_per_s, Some(3));
    assert_eq!((info.min_offset, info.max_end), (Some(8192), Some((1 << 30) + (1 << 20))));
    assert_eq!(info.footprint_bytes, 3 * 4096 + (1 << 20));
    assert_eq!((info.alignment_bytes, info.aligned_4kib), (Some(512), Some(4.0 / 6.0)));
    // 12288 follows 8192 + 4096, and 12800 follows that.
    assert_eq!(info.sequential_ratio, Some(2.0 / 6.0));
    assert_eq!((info.sizes[0].bytes, info.sizes[0].requests), (4096, 3));
    assert_eq!((info.sizes[1].bytes, info.sizes[1].requests), (512, 2));
    assert_eq!((info.out_of_order, info.dropped["zero_size"]), (0, 1));
    let json = serde_json::to_value(&info).unwrap();
    assert_eq!(json["dropped"]["zero_size"], 1);
    assert_eq!(json["sizes"][0]["bytes"], 4096);
}

#[test]
fn info_of_flushes_alone_has_no_ranges() {
    let folder = Folder::new();
    let path = folder.file("a.csv", csv(&[(0, 'F', 0, 0)]));
    let info = info(&path, &Options::default()).unwrap();
    assert_eq!((info.min_offset, info.alignment_bytes, info.sequential_ratio), (None, None, None));
    assert_eq!((info.footprint_bytes, info.mean_rate_per_s), (0, None));
}

#[test]
fn flush_repeats_are_dropped_like_others() {
    let content = csv(&[(0, 'F', 0, 0), (10, 'F', 0, 0), (100, 'F', 0, 0)]);
    let (records, summary) = read(content, &Options { dedup_ns: 50, ..Options::default() }).unwrap();
    assert_eq!((records.len(), summary.dropped["duplicate"]), (2, 1));
    assert!(records.iter().all(|record| record.op == Op::Flush));
}
