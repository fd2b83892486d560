//! Streams of traces: which layouts have them, what is refused, and the files that keep them.

use crate::common;

use common::{Folder, drain, failure, read, short, with};
use ftlab_core::sim::{Completion, Observer};
use ftlab_core::workload::{Op, Record, SourceError};
use ftlab_trace::{
    Chunk, Chunks, Further, Options, Paced, RequestsCsv, convert_csv, open, open_chunks, samples,
};

/// Rows with streams and flags: an empty stream is none, and of the flags only those count that the operation can have.
const TRACE: &str = "time_ns,op,stream,offset,size,flags\n\
    0,W,1,0,512,\n1,WF,65535,512,512,0\n2,R,,0,512,1\n3,W,2,1024,512,3\n4,F,7,,,\n5,T,3,0,512,2\n";

fn streams(records: &[Record]) -> Vec<u16> {
    records.iter().map(|record| record.stream).collect()
}

fn has_streams(content: &str) -> bool {
    let folder = Folder::new();
    open(&folder.file("trace", content), &Options::default()).unwrap().has_streams().unwrap()
}

/// The flush that a flag asks for belongs to the stream of the request behind it.
#[test]
fn a_csv_has_streams_and_flags() {
    let (records, _) = read(TRACE, &Options::default()).unwrap();
    let rows = [(0, 'W', 0, 512), (1, 'W', 512, 512), (2, 'R', 0, 512), (3, 'F', 0, 0), (3, 'W', 1024, 512)];
    let rest = [(4, 'F', 0, 0), (5, 'F', 0, 0), (5, 'T', 0, 512)];
    assert_eq!(short(&records), [&rows[..], &rest].concat());
    assert_eq!(streams(&records), [1, 65535, 0, 2, 2, 7, 3, 3]);
    let flags: Vec<u8> = records.iter().map(|record| record.flags).collect();
    assert_eq!(flags, [0, 1, 0, 0, 1, 0, 0, 0]);
}

#[test]
fn a_stream_that_is_none_is_an_error_with_its_line() {
    for (stream, shown) in [("65536", "65536"), ("-1", "-1"), ("a", "a"), ("18446744073709551616", "1844")] {
        let text = failure(
            format!("time_ns,op,offset,size,stream\n0,W,0,512,1\n1,W,0,512,{stream}\n"),
            &with("csv"),
        );
        assert!(text.starts_with("trace:3: stream"), "{text}");
        assert!(text.contains(shown), "{text}");
    }
    let text = failure("time_ns,op,offset,size,stream\n0,W,0,512\n", &with("csv"));
    assert!(text.starts_with("trace:2: ") && text.contains("stream"), "{text}");
    let text = failure("time_ns,op,offset,size,flags\n0,W,0,512,sync\n", &with("csv"));
    assert!(text.starts_with("trace:2: flags"), "{text}");
}

#[test]
fn a_trace_says_whether_it_has_streams() {
    assert!(has_streams(TRACE));
    assert!(has_streams("\u{feff}STREAM,time_s,op,offset,size\n1,0,R,0,512\n"));
    assert!(has_streams("\n \ntime_ns,op,offset,size, stream \n0,R,0,512,0\n"));
    assert!(!has_streams("time_ns,op,offset,size,streams\n0,R,0,512,0\n"));
}

/// A layout that says it has no streams gives no request one; of the others, every sample has some.
#[test]
fn only_a_trace_with_streams_has_streams() {
    let folder = Folder::new();
    let mut with_streams = 0;
    for (name, sample) in samples() {
        let path = folder.file(name, sample);
        let options = Options { closed: true, ..with(name) };
        let mut source = open(&path, &options).unwrap();
        let has_streams = source.has_streams().unwrap();
        let found = streams(&drain(&mut *source).unwrap());
        assert_eq!(found.iter().any(|&stream| stream > 0), has_streams, "{name}");
        with_streams += u32::from(has_streams);
    }
    assert!(with_streams >= 6);
}

fn handed_over(chunks: Vec<Result<Chunk, SourceError>>) -> Chunks {
    let mut chunks = chunks.into_iter();
    Box::new(move |chunk| match chunks.next().transpose()? {
        Some(next) => {
            *chunk = next;
            Ok(true)
        }
        None => Ok(false),
    })
}

/// Asking whether there are streams loses no row, wherever the first row is.
#[test]
fn rows_in_columns_have_streams() {
    let row = |op: u8, stream: Vec<i64>| Chunk {
        ts_ns: vec![0],
        op: vec![op],
        offset: vec![0],
        size: vec![512],
        stream,
        ..Chunk::default()
    };
    let of = |chunks: Vec<Chunk>| {
        let mut chunks = Some(chunks.into_iter().map(Ok).collect());
        let make = Box::new(move || handed_over(chunks.take().unwrap_or_default()));
        open_chunks("rows", make, &Options::default()).unwrap()
    };
    let empty = Chunk::default();
    let mut source = of(vec![empty.clone(), row(b'W', vec![3]), empty, row(b'F', vec![65535])]);
    assert!(source.has_streams().unwrap());
    assert_eq!(streams(&drain(&mut *source).unwrap()), [3, 65535]);
    let mut source = of(vec![row(b'W', vec![])]);
    assert!(!source.has_streams().unwrap());
    assert_eq!(streams(&drain(&mut *source).unwrap()), [0]);
    for wrong in [-1, 65536] {
        let text = drain(&mut *of(vec![row(b'W', vec![wrong])])).unwrap_err().to_string();
        assert!(text.starts_with(&format!("rows: row 1: stream is {wrong}: ")), "{text}");
    }
    let text = drain(&mut *of(vec![row(b'W', vec![1, 2])])).unwrap_err().to_string();
    assert!(text.contains("different length"), "{text}");
}

#[test]
fn a_conversion_keeps_streams() {
    let folder = Folder::new();
    let (from, to) = (folder.file("from.csv", TRACE), folder.path("to.csv"));
    let opened = |path: &str| open(path, &Options::default()).unwrap();
    // A source around the trace passes the streams on.
    convert_csv(&mut Paced::new(TraceOf(opened(&from)), 1.0), to.as_ref()).unwrap();
    let expected = "time_ns,op,offset,size,stream\n0,W,0,512,1\n1,WF,512,512,65535\n2,R,0,512,0\n3,F,0,0,2\n\
        3,WF,1024,512,2\n4,F,0,0,7\n5,F,0,0,3\n5,T,0,512,3\n";
    assert_eq!(std::fs::read_to_string(&to).unwrap(), expected);
    let records = |path: &str| {
        let records = drain(&mut *opened(path)).unwrap();
        records.into_iter().map(|record| Record { line: 0, ..record }).collect::<Vec<_>>()
    };
    assert_eq!(records(&to), records(&from));
}

/// A source that passes all on.
struct TraceOf(Box<dyn ftlab_core::workload::Source + Send>);

impl ftlab_core::workload::Source for TraceOf {
    fn next(&mut self) -> Result<Option<Record>, SourceError> {
        self.0.next()
    }

    fn has_streams(&mut self) -> Result<bool, SourceError> {
        self.0.has_streams()
    }
}

/// Requests out of order, of a second pass and of requests that are like others but for their stream keep their stream.
#[test]
fn sorting_repeating_and_dropping_repeats_keep_streams() {
    let content = "time_ns,op,offset,size,stream\n5,W,0,512,1\n3,W,512,512,2\n6,W,0,512,3\n7,W,0,512,1\n";
    let options = Options { repeat: 2, dedup_ns: 50, ..Options::default() };
    let (records, summary) = read(content, &options).unwrap();
    assert_eq!(streams(&records), [2, 1, 3, 2, 1, 3]);
    assert_eq!(summary.dropped["duplicate"], 2);
}

#[test]
fn per_request_files_have_a_column_of_streams_if_they_are_to() {
    let done = Completion {
        id: 1,
        arrival_ns: 10,
        dispatch_ns: 11,
        complete_ns: 15,
        failed: false,
        op: Op::Read,
        offset: 4096,
        size: 8192,
        mapping_misses: 1,
        prioritized: false,
        expired: false,
        batch: 0,
        channel_batch: 0,
        buffered: 2,
        stream: 65535,
    };
    let folder = Folder::new();
    for (buffered, stream, head, row) in [
        (false, false, "batch,channel_batch\n", ",0,0,,\n"),
        (false, true, "channel_batch,stream\n", ",0,0,,,65535\n"),
        (true, false, "channel_batch,buffered\n", ",0,0,,,2\n"),
        (true, true, "channel_batch,buffered,stream\n", ",0,0,,,2,65535\n"),
    ] {
        let path = folder.path("requests.csv");
        let mut requests = RequestsCsv::create(path.as_ref(), Further { buffered, stream }).unwrap();
        requests.complete(&done);
        requests.finish().unwrap();
        let text = std::fs::read_to_string(&path).unwrap();
        assert!(text.contains(head) && text.ends_with(row), "{text}");
    }
}
