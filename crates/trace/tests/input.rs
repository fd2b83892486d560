//! Files as they arrive: compressed, truncated, binary, missing; and output files.

use crate::common;

use common::{Folder, check_form, drain, failure, read, with};
use ftlab_core::settings::OutOfRange;
use ftlab_core::sim::{Completion, Observer};
use ftlab_core::workload::Op;
use ftlab_trace::atomic::{self, OutputFile};
use ftlab_trace::{Further, Options, RequestsCsv, info, open};
use std::io::Write;
use std::path::Path;

/// Makes a longer trace whose lines do not repeat.
fn text() -> Vec<u8> {
    let mut text = b"time_ns,op,offset,size\n".to_vec();
    let mut state = 1u64;
    for i in 0..30_000u64 {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        writeln!(
            text,
            "{},{},{},512",
            i * 1000 + (state >> 55),
            if state >> 63 == 0 { 'R' } else { 'W' },
            state >> 20
        )
        .unwrap();
    }
    text
}

fn gzip(data: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    encoder.write_all(data).unwrap();
    encoder.finish().unwrap()
}

fn zstd(data: &[u8]) -> Vec<u8> {
    let mut encoder = zstd::Encoder::new(Vec::new(), 1).unwrap();
    encoder.include_checksum(true).unwrap();
    encoder.write_all(data).unwrap();
    encoder.finish().unwrap()
}

fn xz(data: &[u8]) -> Vec<u8> {
    let mut writer = lzma_rust2::XzWriter::new(Vec::new(), lzma_rust2::XzOptions::with_preset(1)).unwrap();
    writer.write_all(data).unwrap();
    writer.finish().unwrap()
}

fn bzip2(data: &[u8]) -> Vec<u8> {
    let mut encoder = bzip2::write::BzEncoder::new(Vec::new(), bzip2::Compression::best());
    encoder.write_all(data).unwrap();
    encoder.finish().unwrap()
}

type Compress = fn(&[u8]) -> Vec<u8>;
const KINDS: [(&str, Compress); 4] = [("gzip", gzip), ("zstd", zstd), ("xz", xz), ("bzip2", bzip2)];

#[test]
fn compressed_files_read_as_they_are() {
    let text = text();
    let plain = read(&text, &Options::default()).unwrap().0;
    assert_eq!(plain.len(), 30_000);
    for (name, compress) in KINDS {
        let folder = Folder::new();
        let path = folder.file("a", compress(&text));
        assert_eq!(info(&path, &Options::default()).unwrap().compression, Some(name));
        assert_eq!(read(compress(&text), &Options::default()).unwrap().0, plain, "{name}");
        // The text is compressed in two parts (members, streams or frames), which follow one another in the file.
        let (first, second) = text.split_at(text.len() / 3);
        let both = [compress(first), compress(second)].concat();
        assert_eq!(read(both, &Options::default()).unwrap().0, plain, "{name} in two parts");
    }
}

#[test]
fn skippable_zstd_frames_are_skipped() {
    let mut data = vec![0x53, 0x2a, 0x4d, 0x18, 3, 0, 0, 0, 1, 2, 3];
    data.extend(zstd(&text()));
    assert_eq!(read(&data, &Options::default()).unwrap().0.len(), 30_000);
    let cut = failure(&data[..9], &Options::default());
    assert!(cut.contains("zstd data ends too early"), "{cut}");
}

#[test]
fn truncated_files_are_refused_with_their_kind() {
    let text = text();
    for (name, compress) in KINDS {
        let whole = compress(&text);
        for length in [whole.len() / 2, whole.len() - 1, 12] {
            let message = failure(&whole[..length], &Options::default());
            let expected = format!("trace: the {name} data ends too early: the file is truncated");
            assert_eq!(message, expected, "{name} cut to {length} of {}", whole.len());
        }
    }
}

#[test]
fn damaged_files_are_refused() {
    let text = text();
    for (name, compress) in KINDS {
        let mut data = compress(&text);
        let middle = data.len() / 2;
        for byte in &mut data[middle..middle + 40] {
            *byte ^= 0x5a;
        }
        let message = failure(&data, &Options::default());
        // Either the decoder reports the damage or, except for xz, the parser meets a damaged line before the decoder
        // has reached the checksum.
        let found = message.starts_with(&format!("trace: the {name} data is damaged: "));
        assert!(found || name != "xz", "{message}");
    }
    // The checksum of zstd is at its end.
    let mut data = zstd(&text);
    *data.last_mut().unwrap() ^= 1;
    assert!(failure(&data, &Options::default()).contains("checksum"));
}

#[test]
fn nothing_to_read() {
    let folder = Folder::new();
    let message = |path: &str| {
        let text = open(path, &Options::default()).err().unwrap().to_string();
        check_form(&text);
        text.replace(path, "trace")
    };
    assert_eq!(message(&folder.path("none.csv")), "trace: No such file or directory");
    assert_eq!(message(folder.0.to_str().unwrap()), "trace: is a directory, not a trace file");
    assert_eq!(message(&folder.file("empty", "")), "trace: the file is empty");
    assert_eq!(message(&folder.file("blank", "\n \n\r\n")), "trace: the file holds only blank lines");
    assert_eq!(message(&folder.file("empty.gz", gzip(b""))), "trace: the gzip data is empty");
}

#[test]
fn rows_but_no_request() {
    let text = failure("time_ns,op,offset,size\n", &Options::default());
    assert_eq!(text, "trace: no request in this trace (read as csv): it holds no rows");
    let text = failure("time_ns,op,offset,size\n1,R,0,0\n", &Options::default());
    assert!(text.ends_with("all rows were dropped (zero_size 1)"), "{text}");
    let compact = Options { out_of_range: OutOfRange::Compact, ..Options::default() };
    assert!(failure("time_ns,op,offset,size\n1,R,0,0\n", &compact).ends_with("(zero_size 1)"));
    let only_completions = "0 C read 0 4096 0.5 0 False\n";
    assert!(failure(only_completions, &with("auto")).ends_with("(not_issue 1)"));
}

#[test]
fn files_that_are_no_traces() {
    let binary: Vec<u8> = (0..5000u32).map(|i| (i.wrapping_mul(2_654_435_761) >> 13) as u8).collect();
    let text = failure(&binary, &Options::default());
    assert!(text.starts_with("trace: is not a text trace: byte "), "{text}");
    assert!(failure(&binary, &with("msr")).starts_with("trace: is not a text trace"));
    assert!(failure(b"PAR1\x15\x04", &Options::default()).contains("Parquet"));
    let torn = failure([0x07, b't', b'a', b'e', 0, 0], &Options::default());
    assert!(torn.contains("the file ends within a record of 48 B"), "{torn}");
    let prose = failure("It was the best of times,\nit was the worst of times.\n", &Options::default());
    assert!(prose.starts_with("trace: the layout is none that ftlab recognises\n"), "{prose}");
    let columns = failure("Time_ns,op,offset\n1,R,0\n", &Options::default());
    assert!(columns.starts_with("trace: no column size in the header; the header must name"), "{columns}");
    let semicolons = failure("time_us;op;offset;size\n1;R;0;4096\n", &Options::default());
    assert_eq!(semicolons, "trace: semicolons between the fields, where ftlab's csv has commas");
    let both = failure("time_us;op;offset\n1;R;0\n", &Options::default());
    assert!(both.contains("semicolons") && both.contains("no column size"), "{both}");
    assert!(failure("1,2\n", &with("nosuch")).contains("no trace format is called \"nosuch\""));
    let long = vec![b'x'; 1 << 20];
    assert!(failure(&long, &with("spc")).starts_with("trace:1: a line longer than 256 KiB"));
}

#[test]
fn a_layout_is_recognised_by_most_of_its_lines() {
    let good = "0,100,512,r,0.0\n";
    let text = failure(format!("{good}{good}0,100,r,0.0\n"), &Options::default());
    assert!(text.starts_with("trace:3: "), "{text}");
    let text = failure("0,100,-512,r,0.0\n", &Options::default());
    assert!(text.starts_with("trace:1: Size is \"-512\": it must not be negative\n"), "{text}");
    let blank_first = "\n\nproces,device,rw_flag,sector,size,timestamp\na,8,R,8,8,1.5\n";
    assert_eq!(read(blank_first, &Options::default()).unwrap().0[0].line, 4);
}

#[test]
fn parquet_is_told_by_its_magic() {
    let folder = Folder::new();
    let message = |path: &str| open(path, &Options::default()).err().unwrap().to_string();
    let whole = folder.file("a", b"PAR1....PAR1");
    assert_eq!(
        message(&whole),
        format!("{whole}: not a Parquet file: its footer cannot have 774778414 bytes")
    );
    assert!(message(&folder.file("b", b"PAR")).contains("layout"));
    let packed = message(&folder.file("c", gzip(b"PAR1....PAR1")));
    assert!(packed.contains("is a Parquet file, which is read as format parquet"), "{packed}");
}

#[cfg(target_os = "linux")]
#[test]
fn a_pipe_is_read_once() {
    let folder = Folder::new();
    let path = folder.path("pipe");
    assert!(std::process::Command::new("mkfifo").arg(&path).status().unwrap().success());
    let feed = || {
        let path = path.clone();
        std::thread::spawn(move || std::fs::write(path, "time_ns,op,offset,size\n5,R,0,512\n"))
    };
    let feeder = feed();
    let mut source = open(&path, &Options::default()).unwrap();
    assert_eq!(common::drain(&mut *source).unwrap().len(), 1);
    feeder.join().unwrap().unwrap();
    // While this reader has the pipe open, the next writer would not wait for another, which would then wait for ever.
    drop(source);
    let feeder = feed();
    let error = open(&path, &Options { repeat: 2, ..Options::default() }).err().unwrap().to_string();
    assert!(error.contains("cannot be read twice"), "{error}");
    let _ = feeder.join().unwrap();
}

#[test]
fn outputs_appear_when_complete() {
    let folder = Folder::new();
    let target = folder.path("out.json");
    let mut file = OutputFile::create(target.as_ref()).unwrap();
    file.write_all(b"half").unwrap();
    file.flush().unwrap();
    assert!(!Path::new(&target).exists());
    drop(file);
    assert_eq!(std::fs::read_dir(&folder.0).unwrap().count(), 0, "nothing is left of it");
    atomic::write(target.as_ref(), b"whole").unwrap();
    assert_eq!(std::fs::read(&target).unwrap(), b"whole");
    atomic::write(target.as_ref(), b"other").unwrap();
    assert_eq!(std::fs::read(&target).unwrap(), b"other");
    assert_eq!(std::fs::read_dir(&folder.0).unwrap().count(), 1);
}

#[cfg(unix)]
#[test]
fn links_and_permissions_stay() {
    use std::os::unix::fs::PermissionsExt;
    let folder = Folder::new();
    let real = folder.file("real", "old");
    std::fs::set_permissions(&real, std::fs::Permissions::from_mode(0o640)).unwrap();
    let link = folder.path("link");
    std::os::unix::fs::symlink("real", &link).unwrap();
    atomic::write(link.as_ref(), b"new").unwrap();
    assert!(std::fs::symlink_metadata(&link).unwrap().is_symlink());
    assert_eq!(std::fs::read(&real).unwrap(), b"new");
    assert_eq!(std::fs::metadata(&real).unwrap().permissions().mode() & 0o777, 0o640);
    let dangling = folder.path("dangling");
    std::os::unix::fs::symlink("later", &dangling).unwrap();
    atomic::write(dangling.as_ref(), b"now").unwrap();
    assert_eq!(std::fs::read(folder.path("later")).unwrap(), b"now");
}

#[test]
fn outputs_that_cannot_be() {
    let folder = Folder::new();
    let fail = |path: &str| {
        let text = atomic::write(path.as_ref(), b"x").unwrap_err().to_string();
        check_form(&text);
        text.replace(folder.0.to_str().unwrap(), "")
    };
    assert_eq!(fail(folder.0.to_str().unwrap()), ": cannot write: is a directory");
    assert_eq!(fail(&folder.path("none/out")), "/none/out: cannot write: No such file or directory");
    let file = folder.file("file", "");
    assert_eq!(fail(&format!("{file}/out")), "/file/out: cannot write: Not a directory");
    if Path::new("/dev/full").exists() {
        assert_eq!(fail("/dev/full"), "/dev/full: cannot write: No space left on device");
        atomic::write("/dev/null".as_ref(), b"x").unwrap();
        assert!(!Path::new("/dev/null").is_file(), "it is still the device");
    }
}

fn completion(id: u64) -> Completion {
    Completion {
        id,
        arrival_ns: id * 10,
        dispatch_ns: id * 10 + 1,
        complete_ns: id * 10 + 5,
        failed: id == 6,
        op: Op::Read,
        offset: id * 4096,
        size: 4096,
        mapping_misses: 1,
        prioritized: id == 2,
        expired: id == 3,
        batch: if id == 1 { 0 } else { id },
        channel_batch: u64::from(id == 3),
        buffered: 0,
        stream: 0,
    }
}

#[test]
fn per_request_rows_come_in_order() {
    let folder = Folder::new();
    let path = folder.path("requests.csv");
    let mut requests = RequestsCsv::create(path.as_ref(), Further::default()).unwrap();
    for id in [3, 1, 2, 5, 6, 4] {
        requests.complete(&completion(id));
    }
    assert!(!Path::new(&path).exists());
    assert_eq!(requests.finish().unwrap(), 6);
    let text = std::fs::read_to_string(&path).unwrap();
    let lines: Vec<_> = text.lines().collect();
    assert_eq!(
        lines[0],
        "id,arrival_ns,dispatch_ns,complete_ns,op,offset,size,mapping_misses,prioritized,expired,batch,channel_batch"
    );
    assert_eq!(lines[1], "1,10,11,15,R,4096,4096,1,0,0,,");
    assert_eq!(lines[2], "2,20,21,25,R,8192,4096,1,1,0,2,");
    assert_eq!(lines[3], "3,30,31,35,R,12288,4096,1,0,1,3,1");
    assert_eq!(lines[6], "6,60,61,,R,24576,4096,1,0,0,6,");
    let ids: Vec<_> = lines[1..].iter().map(|line| line.split(',').next().unwrap()).collect();
    assert_eq!(ids, ["1", "2", "3", "4", "5", "6"]);
}

#[test]
fn per_request_rows_on_a_full_disk() {
    if !Path::new("/dev/full").exists() {
        eprintln!("SKIPPED: no /dev/full");
        return;
    }
    let mut requests = RequestsCsv::create("/dev/full".as_ref(), Further::default()).unwrap();
    for id in 1..10_000 {
        requests.complete(&completion(id));
    }
    let text = requests.finish().unwrap_err().to_string();
    assert_eq!(text, "/dev/full: cannot write: No space left on device");
}

proptest::proptest! {
    #![proptest_config(common::cases(64))]

    /// Completions in any order produce rows in the order of their ids.
    #[test]
    fn per_request_rows_in_any_order(
        ids in proptest::strategy::Strategy::prop_shuffle(proptest::strategy::Just((1..60u64).collect::<Vec<_>>()))
    ) {
        let folder = Folder::new();
        let path = folder.path("requests.csv");
        let mut requests = RequestsCsv::create(path.as_ref(), Further::default()).unwrap();
        for &id in &ids {
            requests.complete(&completion(id));
        }
        requests.finish().unwrap();
        let text = std::fs::read_to_string(&path).unwrap();
        let got: Vec<u64> = text.lines().skip(1).map(|line| line.split(',').next().unwrap().parse().unwrap()).collect();
        proptest::prop_assert_eq!(got, (1..60).collect::<Vec<_>>());
    }
}

/// The files of a recording that went on in numbered ones are read as one trace, compressed or not, and their header
/// once; a file that lacks the header is read from its first line.
#[test]
fn numbered_files_are_one_trace() {
    let folder = Folder::new();
    let text = text();
    let lines: Vec<&[u8]> = text.split_inclusive(|&byte| byte == b'\n').collect();
    for (at, part) in lines[1..].chunks(4_001).enumerate() {
        let header = if at == 2 { &[][..] } else { lines[0] };
        let part = [header, &part.concat()].concat();
        let part = if at % 2 == 0 { part } else { gzip(&part) };
        folder.file(&format!("a.{:02}.csv", at + 3), part);
    }
    let whole = folder.file("whole.csv", &text);
    let records = |path: &str| common::short(&drain(&mut *open(path, &Options::default()).unwrap()).unwrap());
    let pattern = folder.path("a.*.csv");
    assert_eq!(records(&pattern), records(&whole));
    let twice = Options { repeat: 2, ..Options::default() };
    assert_eq!(drain(&mut *open(&pattern, &twice).unwrap()).unwrap().len(), 60_000);
    std::fs::remove_file(folder.path("a.04.csv")).unwrap();
    let message = open(&pattern, &Options::default()).err().unwrap().to_string();
    assert!(message.contains("a.05.csv lack what was between them"), "{message}");
}

/// Cut off at any byte, a recording is read up to its last whole line; other files may lack the last line feed.
#[test]
fn a_recording_ends_at_its_last_whole_line() {
    let text = "time_ns,op,offset,size,outstanding\n5,R,4096,4096,12\n7,WF,8192,512,13\n";
    let starts: Vec<usize> = text.match_indices('\n').map(|(at, _)| at + 1).collect();
    for end in starts[1]..=text.len() {
        let (records, summary) = read(&text[..end], &Options::default()).unwrap();
        assert_eq!(records.len(), starts[1..].iter().filter(|&&start| start <= end).count(), "{end}");
        assert_eq!(summary.dropped.contains_key("cut_off"), !starts.contains(&end), "{end}");
    }
    let plain = text.replace(",outstanding", "").replace(",12", "").replace(",13", "");
    assert_eq!(read(plain.trim_end(), &Options::default()).unwrap().0.len(), 2);
}
