//! By what a layout is recognised, and what is asked instead of guessed.

use crate::common;

use common::{Folder, drain, failure, read, rows, with};
use ftlab_core::settings::ObjectUnit;
use ftlab_trace::{Options, info, open};

const S: u64 = 1_000_000_000;

/// Returns the layout and what it was recognised by.
fn told(name: &str, content: &str) -> (&'static str, Option<String>) {
    let folder = Folder::new();
    let found = info(&folder.file(name, content), &Options::default()).unwrap();
    (found.format, found.recognised_by)
}

/// Lines of `time,op,offset,size`, as a program makes them without a header.
fn headless(more: &str) -> String {
    let line = |i: u64| {
        format!(
            "{},{},{},4096{more}\n",
            i * 431_000,
            if i.is_multiple_of(3) { 'W' } else { 'R' },
            i * 7 % 40 * 4096
        )
    };
    (1..200).map(line).collect()
}

/// Regression: these lines were taken for bpftrace's, so that 5.4 MiB became 10.9 GiB without a doubt.
#[test]
fn own_columns_without_their_header_are_asked_about() {
    for more in ["", ",0", ",3,77"] {
        let text = failure(headless(more), &Options::default());
        assert!(text.contains("nothing in the lines shows their layout"), "{text}");
        assert!(text.contains("put this in the first line: time_ns,op,offset,size"), "{text}");
    }
    let whole = format!("time_ns,op,offset,size\n{}", headless(""));
    assert_eq!(rows(whole, &Options::default()).len(), 199);
    let text = failure(headless(""), &with("bpftrace"));
    assert!(text.starts_with("trace:1: nr_sector is missing"), "{text}");
}

/// Lines that two layouts share, and columns that only resemble those of a layout, are not guessed either.
#[test]
fn lines_of_others_are_asked_about() {
    // A time where SPC has its ASU, and a latency where it has a time.
    let latency = |i: u64| format!("{},{},4096,R,{}.5\n", i * 100, i * 8 + 1, i * 7919 % 13);
    // Bytes in place of sectors, in a file that has SPC's columns.
    let bytes = |i: u64| format!("0,{},4096,R,{i}.5\n", i * 4096);
    // Seconds in place of Alibaba's microseconds.
    let seconds = |i: u64| format!("{},R,{},4096,{i}\n", i % 3, i * 4096);
    // Bytes in place of Tencent's sectors.
    let tencent = |i: u64| format!("{},{},4096,0,7\n", 1_538_323_200 + i, i * 4096);
    let lines: [(&str, &dyn Fn(u64) -> String); 4] =
        [("spc", &latency), ("spc", &bytes), ("alicloud", &seconds), ("tencent", &tencent)];
    for (name, line) in lines {
        let content: String = (1..100).map(line).collect();
        let text = failure(&content, &Options::default());
        assert!(text.starts_with("trace: nothing in the lines shows their layout; it could be "), "{text}");
        assert!(text.contains(&format!("{name} if it has ")) && text.contains("--format "), "{text}");
        assert_eq!(rows(&content, &with(name)).len(), 99, "named, it is read");
    }
}

#[test]
fn detection_says_what_it_went_by() {
    let by = |text: &str| Some(text.to_owned());
    assert_eq!(told("a", "time_ns,op,offset,size\n0,R,0,512\n"), ("csv", by("its header")));
    assert_eq!(
        told("a", "45502109053447 W 4096 170104688 8\n"),
        ("bpftrace", by("its lines: bytes that are 512 times nr_sector"))
    );
    assert_eq!(told("a", "ASU,LBA,Size,Opcode,Timestamp\n0,0,512,R,5\n"), ("spc", by("its header")));
    let folder = Folder::new();
    let path = folder.file("a", "0,1,512,R,0.5\n");
    assert_eq!(info(&path, &with("spc")).unwrap().recognised_by, None);
}

/// Regression: a table with other names got the error of a layout that its lines resemble, and `--skip-bad`.
#[test]
fn a_header_of_other_names_is_told_the_nearest() {
    let rows = "0.000144,W,2113536,4096\n0.000439,R,15081472,4096\n".repeat(20);
    for (header, nearest) in [
        (
            "timestamp,op,lba,size",
            "no column time_ns, offset in the header; the header must name time_ns (or time_us, time_s), op, \
             offset and size\n  it has timestamp,op,lba,size; nearest: timestamp for time_ns, time_us or time_s, \
             lba for offset (bytes)",
        ),
        (
            "\"ts\",\"io_type\",\"Address\",\"Length\"",
            "it has ts,io_type,Address,Length; nearest: ts for time_ns, time_us or time_s, io_type for op, \
             Address for offset (bytes), Length for size (bytes)",
        ),
        ("a,b,c,d", "\n  it has a,b,c,d"),
        (
            "time_s;rw;offset;size",
            "semicolons between the fields, where ftlab's csv has commas; no column op",
        ),
    ] {
        let text = failure(format!("{header}\n{rows}"), &Options::default());
        assert!(text.contains(nearest) && !text.contains("--skip-bad"), "{text}");
        assert!(text.starts_with("trace: "), "{text}");
    }
}

/// Regression: the last column of a file with the line ends of DOS was dropped, `stream` or the latency, and so were
/// bpftrace's.
#[test]
fn line_ends_of_dos_belong_to_no_column() {
    let kept = Options { completions: ftlab_trace::Completions::Kept, ..Options::default() };
    for (content, format) in [
        ("time_ns,op,offset,size,stream\n0,W,0,4096,3\n", "csv"),
        ("time_ns,op,offset,size,latency_ns\n0,W,0,4096,300\n", "csv"),
        ("nsecs rwbs bytes sector pid\n5 W 4096 8 812\n", "bpftrace"),
        ("8,16 0 1 0.1 5 Q FN\n8,16 0 2 0.2 0 C FN\n", "blkparse"),
        (
            "filename,file_offset,op_type,request_io_size_bytes,start_time,simulated_latency\na,0,READ,512,1,0.5\n",
            "thesios",
        ),
    ] {
        let dos = content.replace('\n', "\r\n");
        let folder = Folder::new();
        let opened = |name: &str, content: &str| {
            let path = folder.file(name, content);
            let mut source = open(&path, &kept).unwrap();
            let has = (source.has_streams().unwrap(), source.has_completions().unwrap());
            (drain(&mut *source).unwrap(), has)
        };
        let (unix, has) = opened("unix", content);
        assert_eq!(opened("dos", &dos), (unix, has), "{format}");
        assert!(has.0 || has.1, "{format} has a stream or a completion");
        assert_eq!(told("dos", &dos).0, format);
    }
}

/// Regression: a csv of pyarrow (strings in quotation marks) or of base R (and the numbers of its rows) was not read.
#[test]
fn quoted_csv_is_read() {
    let pyarrow = "\"time_ns\",\"op\",\"offset\",\"size\"\n0,\"W\",4096,512\n7,\"R\",0,4096\n";
    let base_r =
        "\"\",\"time_ns\",\"op\",\"offset\",\"size\"\n\"1\",0,\"W\",4096,512\n\"2\",7,\"R\",0,4096\n";
    let expected = [(0, 'W', 4096, 512), (7, 'R', 0, 4096)];
    for content in [pyarrow, base_r] {
        assert_eq!(rows(content, &Options::default()), expected);
        assert_eq!(rows(content, &with("csv")), expected);
        assert_eq!(rows(content.replace('\n', "\r\n"), &Options::default()), expected);
    }
    // The same holds for the layouts of others that went through such a program.
    let msr = "\"Timestamp\",\"Hostname\",\"DiskNumber\",\"Type\",\"Offset\",\"Size\",\"ResponseTime\"\n\
        1,\"a\",0,\"Read\",0,512,1\n";
    assert_eq!(rows(msr, &Options::default()), [(0, 'R', 0, 512)]);
}

/// Output of programs whose text ftlab does not read is called nothing else, whatever its first lines are.
#[test]
fn programs_that_are_not_read_are_not_taken_for_others() {
    let bcc = "TIME(s)     COMM           PID    DISK    T SECTOR     BYTES  LAT(ms)\n\
        0.000000    supervise      1950   xvda1   W 13092560   4096   0.74\n";
    let iosnoop = "COMM         PID    TYPE DEV      BLOCK        BYTES     LATms\n\
        supervise    1809   W    202,1    17039968     4096       1.32\n";
    let ftrace = "# tracer: nop\n#\n#           TASK-PID     CPU#  |||||  TIMESTAMP  FUNCTION\n\
        kworker-12    [002] d..1. 90211.100010: block_rq_issue: 259,0 WS 8192 () 81920 + 16 none,0,0 [a]\n";
    for content in [bcc, iosnoop, ftrace] {
        let text = failure(content, &Options::default());
        assert!(text.starts_with("trace: the layout is none that ftlab recognises\n"), "{text}");
    }
}

/// Regression: the banner of every bpftrace program claimed biosnoop.bt, which prints no addresses (bpftrace 0.24).
#[test]
fn biosnoop_of_bpftrace_has_nothing_to_replay() {
    for banner in ["Attaching 4 probes...\n", "Attached 4 probes\n", ""] {
        let content = format!(
            "{banner}TIME(ms)     DISK ID        COMM             PID    LAT(ms)\n             MAJOR MINOR\n\
             611          259   0        bash             4179        10\n"
        );
        let text = failure(content, &Options::default());
        assert!(text.starts_with("trace: is what biosnoop.bt of bpftrace prints"), "{text}");
        assert!(text.contains("neither addresses nor sizes"), "{text}");
    }
    let text = failure("Attaching 1 probe...\nhello\n", &Options::default());
    assert!(text.starts_with("trace: the layout is none that ftlab recognises"), "{text}");
}

/// A file of a volume and day: seconds since the first request of all, bytes.
#[test]
fn k5cloud_in_seconds_and_bytes() {
    let content =
        "2264,86400.121837000,R,48195870720,4096\n2264,86400.621837,W,0,8192\n7,86401.121837,R,0,512\n";
    let expected =
        [(0, 'R', 48_195_870_720, 4096), (S / 2, 'W', 0, 8192), (S, 'R', ftlab_trace::DEVICE_STRIDE, 512)];
    assert_eq!(rows(content, &Options::default()), expected);
    assert_eq!(rows(content, &with("k5cloud")), expected);
    assert_eq!(rows(format!("ID,Timestamp,Type,Offset,Length\n{content}"), &Options::default()), expected);
    let text = failure("1,0.5,R,0,512,9\n", &with("k5cloud"));
    assert!(text.starts_with("trace:1: what follows the length is \"9\""), "{text}");
}

/// Regression: blkparse prints the completion of a flush as a write of nothing, which was dropped; the same record in
/// blktrace's binary was a completion.
#[test]
fn blkparse_completes_flushes_as_writes_of_nothing() {
    let content = "  8,16 0 1 0.000001000 5 Q FWS [a]\n  8,16 0 2 0.000003000 5 Q W 8 + 8 [a]\n\
                     8,16 0 3 0.000101000 0 C FWS 0 [0]\n  8,16 0 4 0.000204000 0 C W 8 + 8 [0]\n";
    let kept = Options { completions: ftlab_trace::Completions::Kept, ..Options::default() };
    let (records, summary) = read(content, &kept).unwrap();
    let found: Vec<_> = records.iter().map(|record| (record.op.letter(), record.latency_ns)).collect();
    assert_eq!(found, [('F', 100_000), ('W', 201_000)]);
    assert!(summary.dropped.is_empty(), "{:?}", summary.dropped);
}

/// Regression: byte offsets, which libCacheSim's converters write, were taken for sectors without a doubt, and the
/// doubt about a trace of reads alone came where no operations are recorded.
#[test]
fn objects_may_be_byte_offsets() {
    let folder = Folder::new();
    let made = |name: &str, object: &dyn Fn(u64) -> u64| {
        let row = |i: u64| {
            let second = (i as u32 / 100).to_le_bytes();
            [&second[..], &object(i).to_le_bytes(), &16384_u32.to_le_bytes(), &[0xff; 8]].concat()
        };
        folder.file(&format!("{name}.oracleGeneral"), (0..1000).flat_map(row).collect::<Vec<u8>>())
    };
    let byte = Options { object_unit: ObjectUnit::Byte, ..Options::default() };
    let doubts = |path: &str, options: &Options| info(path, options).unwrap().doubts;
    let apart = "all objects are apart by multiples of 512, as byte offsets are";
    let far = "addresses of up to 999 TiB are beyond any drive";
    for (name, object, doubt) in [
        ("msr", &(|i: u64| i * 7919 % 997 * 4096) as &dyn Fn(u64) -> u64, Some(apart)),
        // The number of a volume is added.
        ("k5", &|i| 2264 + i * 16384, Some(apart)),
        ("volumes", &|i| i % 7 + (i << 31), Some(far)),
        ("sectors", &|i| i * 7919 % 997 * 8, None),
    ] {
        let path = made(name, object);
        let found = doubts(&path, &Options::default());
        assert_eq!(
            found.first().map(|found| found.starts_with(doubt.unwrap())),
            doubt.map(|_| true),
            "{found:?}"
        );
        assert!(!found.iter().any(|each| each.contains("all requests are reads")), "{found:?}");
        assert!(found.iter().all(|each| each.contains("--set workload.object_unit=byte")), "{found:?}");
        let read = drain(&mut *open(&path, &byte).unwrap()).unwrap();
        assert_eq!(
            read.iter().map(|each| each.offset).collect::<Vec<_>>(),
            (0..1000).map(object).collect::<Vec<_>>()
        );
    }
    assert_eq!(doubts(&made("bytes", &|i| i * 4096), &byte), Vec::<String>::new());
    let notes = info(&made("notes", &|i| i * 8), &byte).unwrap().notes;
    assert_eq!(notes[1], "objects are taken for byte offsets (workload.object_unit)");
    assert!(notes[2].contains("that of its first access"), "{notes:?}");
}
