//! Layouts of traces that people bring: their pitfalls, and their streams.

use crate::common;

use common::{Folder, Short, drain, failure, read, rows, short, with};
use ftlab_core::settings::StreamsOf;
use ftlab_core::workload::Record;
use ftlab_trace::{DEVICE_STRIDE, Options, StreamCount, convert_csv, info, open};

const S: u64 = 1_000_000_000;
const US: u64 = 1000;

/// Returns requests and their streams of content whose layout is recognised; checks that it reads the same when named.
fn both(name: &str, content: impl AsRef<[u8]>) -> (Vec<Short>, Vec<u16>) {
    let (records, _) = read(&content, &Options::default()).unwrap();
    assert_eq!(read(&content, &with(name)).unwrap().0, records, "{name}");
    streamed(&records)
}

fn streamed(records: &[Record]) -> (Vec<Short>, Vec<u16>) {
    (short(records), records.iter().map(|record| record.stream).collect())
}

/// The stamps are those of completions: the read of the second row arrives before the write of the first.
#[test]
fn io_tracer_requests_arrive_when_they_are_issued() {
    let content = "timestamp,operation,pid,tid,command,sector,size,latency_ms,device,flags,cpu_id,ppid\n\
        2024-02-29 23:59:59.999000,write,12,12,sh,8,4096,1.5,8:0,sync|fua,0,1\n\
        2024-03-01 00:00:00.001000,read,7,7,\"a, \"\"b\"\"\",16,512,4.25,8:0,meta,1,1\n\
        timestamp,operation,pid,tid,command,sector,size,latency_ms,device,flags,irp\n\
        2024-03-01 00:00:00.002,discard,12,12,sh,8,4096,,259:1,,0\n\
        2024-03-01 00:00:00.003,none,12,12,sh,0,0,0.0,8:0,,0\n";
    let (requests, streams) = both("io-tracer", content);
    let trim = (5250 * US, 'T', DEVICE_STRIDE + 4096, 4096);
    assert_eq!(requests, [(0, 'R', 8192, 512), (750 * US, 'W', 4096, 4096), trim]);
    assert_eq!(streams, [2, 1, 1]);
    let (records, summary) = read(content, &Options::default()).unwrap();
    assert_eq!(records[1].flags, Record::FUA);
    assert_eq!(summary.dropped["other_op"], 1);
    assert_eq!(summary.notes[0], "1 writes have FUA");
}

/// Before schema 3, files had no header, and the letters of rwbs were words of the operation.
#[test]
fn io_tracer_without_a_header() {
    let content = "2024-01-15 10:30:45.5,9,sh,8,write|sync,4096,0.5,9,1,3,8:16,,,\n\
        2024-01-15 10:30:45.6,9,sh,8,flush|write|flush,4096,0,9,1,3,8:32,,,\n\
        2024-01-15 10:30:45.7,9,sh,0,flush,0,0,9,1,3,8:16,,,\n";
    let device = DEVICE_STRIDE + 4096;
    let (at, other) = (100_500 * US, 200_500 * US);
    let expected = [(0, 'W', 4096, 4096), (at, 'F', 0, 0), (at, 'W', device, 4096), (other, 'F', 0, 0)];
    assert_eq!(both("io-tracer", content), (expected.to_vec(), vec![1; 4]));
    // The layout before that one has a parent process where this one has the device.
    let older = "2024-01-15 10:30:45.5,9,sh,8,read,4096,0,9,8,0,1233\n2024-01-15 10:30:45.5,9,sh,8,read,4096,0,9,8,0,7\n";
    assert_eq!(both("io-tracer", older).0, [(0, 'R', 4096, 4096); 2]);
}

#[test]
fn io_tracer_names_what_is_wrong() {
    let of = |row: &str| {
        failure(format!("timestamp,operation,pid,sector,size,latency_ms\n{row}\n"), &Options::default())
    };
    for (row, message) in [
        ("2024-13-15 10:30:45,read,1,8,512,1", "timestamp is \"2024-13-15 10:30:45\", not a date"),
        ("2024-01-15 10:30:61,read,1,8,512,1", "timestamp is"),
        ("1969-01-15 10:30:45,read,1,8,512,1", "timestamp is"),
        ("2024-01-15 10:30:45,7,1,8,512,1", "operation is \"7\", not a word"),
        ("2024-01-15 10:30:45,read,1,8,512", "latency_ms is missing"),
        ("2024-01-15 10:30:45,read,1,x,512,1", "sector is \"x\""),
    ] {
        let text = of(row);
        assert!(text.starts_with(&format!("trace:2: {message}")), "{text}");
    }
    let text = failure("timestamp,operation,pid\n", &with("io-tracer"));
    assert!(text.starts_with("trace:1: the header does not name timestamp"), "{text}");
}

#[test]
fn bpftrace_with_and_without_columns_named() {
    let plain = "Attaching 1 probe...\n45502109053447, W, 4096, 170104688, 8\n45502109053448, R, 512, 8, 1\n\n\
        45502109053449, FF, 0, 18446744073709551615, 0\n45502109053450, N, 0, 0, 0\n@count: 4\n";
    let expected = [(0, 'W', 170_104_688 * 512, 4096), (1, 'R', 4096, 512), (2, 'F', 0, 0)];
    assert_eq!(both("bpftrace", plain), (expected.to_vec(), vec![0; 3]));
    // A comma and a blank, or either of them.
    for apart in [",", " "] {
        assert_eq!(both("bpftrace", plain.replace(", ", apart)).0, expected);
    }
    let named = "nsecs pid comm dev rwbs sector nr_sector\n7 31 a 8388624 FWFS 8 8\n9 32 b 8388608 R 8 8\n";
    let expected = [(0, 'F', 0, 0), (0, 'W', 4096, 4096), (2, 'R', DEVICE_STRIDE + 4096, 4096)];
    assert_eq!(both("bpftrace", named), (expected.to_vec(), vec![1, 1, 2]));
}

/// Both have five columns in the same places.
#[test]
fn bpftrace_is_told_from_alibaba_cloud() {
    let content = "419,W,8792731648,16384,1577808144360767\n725,R,59110326272,36864,1577808144360813\n";
    assert_eq!(both("alicloud", content).0.len(), 2);
    let text = failure(content, &with("bpftrace"));
    assert!(text.starts_with("trace:1: bytes is \"8792731648\", not 512 times nr_sector"), "{text}");
}

/// The header of a published shard; shards that are put together repeat it.
#[test]
fn thesios_reads_that_the_cache_answers_are_dropped() {
    let header = "filename,file_offset,application,c_time,io_zone,redundancy_type,op_type,service_class,\
        from_flash_cache,cache_hit,request_io_size_bytes,disk_io_size_bytes,response_io_size_bytes,start_time,\
        disk_time,simulated_disk_start_time,simulated_latency\n";
    let content = format!(
        "{header}aa,4096,app,1,COLD,ERASURE_CODED,READ,OTHER,0,0,1050624,1052672,1050624,1705305600.5,0.03,1.0,0.03\n\
         {header}bb,461618,spanner,1,WARM,REPLICATED,WRITE,LATENCY_SENSITIVE,0,-1,512,0,0,1705305601,0.0,0.0,0.0\n\
         aa,0,app,1,COLD,ERASURE_CODED,READ,OTHER,0,1,4096,0,0,1705305602.0,0.02,1.0,0.06\n\
         aa,0,app,1,COLD,ERASURE_CODED,READ,OTHER,0,0,0,0,0,1705305602.0,0.02,1.0,0.06\n"
    );
    let expected = [(0, 'R', 4096, 1_050_624), (S / 2, 'W', (1 << 40) + 461_618, 512)];
    assert_eq!(both("thesios", &content), (expected.to_vec(), vec![1, 2]));
    let dropped = read(&content, &Options::default()).unwrap().1.dropped;
    assert_eq!((dropped["cache_hit"], dropped["zero_size"]), (1, 1));
    let text = failure("filename,size\n", &with("thesios"));
    assert!(text.starts_with("trace:1: the header must name filename, file_offset"), "{text}");
}

/// Of two years, blocks are held by a host or a shard; a header of 2019 says that it has neither.
#[test]
fn baleen_of_each_year() {
    let block = 1 << 26;
    let pipelines = "# block_id io_offset io_size op_time op_name pipeline user_namespace user_name\n\
        3092 131072 65536 1571702400.5 1 3 2 71\n17 0 8388608 1571702401.25 4 3 2 72\n\
        3092 0 1 1571702402 100 3 2 71\n3092 0 8 1571702402 2 4 2 71\n";
    let expected = [(0, 'R', 131_072, 65536), (3 * S / 4, 'W', block, 8_388_608), (3 * S / 2, 'R', 0, 8)];
    assert_eq!(both("baleen", pipelines), (expected.to_vec(), vec![1, 2, 1]));
    let headless = pipelines.split_once('\n').unwrap().1;
    assert_eq!(rows(headless, &with("baleen")), expected);
    let hosts =
        "3 0 512 1600000010 5 1 71 8 1\n3 0 512 1600000010 6 1 71 9 3\n3 512 512 1600000011 5 1 70 8 0\n";
    let expected = [(0, 'R', 0, 512), (0, 'W', block, 512), (S, 'R', 512, 512)];
    assert_eq!(both("baleen", hosts), (expected.to_vec(), vec![1, 1, 2]));
    let notes = read(hosts, &Options::default()).unwrap().1.notes;
    assert!(notes[0].starts_with("1 lines stand for several requests"), "{notes:?}");
    let shards = hosts.replace(" 1\n", " 1 host\n").replace(" 3\n", " 3 host\n").replace(" 0\n", " 0 host\n");
    assert_eq!(both("baleen", shards).0, expected);
    let text = failure("3 0 512 10 7 1 71 8 1\n", &with("baleen"));
    assert!(text.starts_with("trace:1: op_name is \"7\", not 1, 2 or 5"), "{text}");
}

/// Makes a record of vscsi: command, bytes, sector, microseconds.
fn vscsi(version: u8, (command, bytes, sector, us): (u16, u32, u64, u64)) -> Vec<u8> {
    let head = [command, u16::from(version) << 8].map(u16::to_le_bytes).concat();
    let counts = [1, bytes, 2].map(u32::to_le_bytes).concat();
    let tail = [sector, us].map(u64::to_le_bytes).concat();
    match version {
        1 => [&counts, &head, &tail[..]].concat(),
        _ => [&head, &counts, &tail, &[0xff; 8][..]].concat(),
    }
}

#[test]
fn vscsi_of_both_versions() {
    let requests =
        [(0x28, 4096, 8, 500), (0x2a, 512, 42_932_745, 501), (0x12, 36, 0, 502), (0x35, 0, 0, 503)];
    let expected = [(0, 'R', 4096, 4096), (US, 'W', 42_932_745 * 512, 512), (3 * US, 'F', 0, 0)];
    for version in [1, 2] {
        let content: Vec<u8> = requests.iter().flat_map(|&request| vscsi(version, request)).collect();
        assert_eq!(both("vscsi", &content), (expected.to_vec(), vec![0; 3]));
        assert_eq!(read(&content, &Options::default()).unwrap().1.dropped["other_op"], 1);
        let text = failure(&content[..content.len() - 1], &Options::default());
        let record = content.len() / 4;
        assert!(
            text.starts_with(&format!("trace: row 4: the file ends within a record of {record} B")),
            "{text}"
        );
        let text = failure([&content[..record], &[0; 40]].concat(), &with("vscsi"));
        assert!(text.contains("no record of vscsi"), "{text}");
    }
}

/// Makes a header of lcs with this version.
fn lcs_header(version: u64) -> Vec<u8> {
    let magic = 0x1234_5678_9abc_def0_u64.to_le_bytes();
    [&magic[..], &version.to_le_bytes(), &[0xee; 8192 - 24], &magic].concat()
}

/// Makes a record of lcs: second, sector, bytes, operation, tenant.
fn lcs(version: u64, (second, sector, bytes, op, tenant): (u32, u64, u32, u32, u32)) -> Vec<u8> {
    let begin = [&second.to_le_bytes()[..], &sector.to_le_bytes(), &bytes.to_le_bytes()].concat();
    let (named, next) = ((tenant << 8 | op).to_le_bytes(), (-1_i64).to_le_bytes());
    match version {
        1 => [&begin, &next[..]].concat(),
        2 => [&begin, &named[..], &next].concat(),
        _ => {
            let features = [0, 1, 2, 4, 8, 16][version as usize - 3];
            let ttl = 7_u32.to_le_bytes();
            [&begin, &[0; 4][..], &named, &ttl, &next, &vec![0xaa; 4 * features]].concat()
        }
    }
}

#[test]
fn lcs_of_all_versions() {
    let requests =
        [(100, 8, 4096, 12, 70_000), (102, 16, 512, 13, 5), (104, 8, 512, 9, 70_000), (104, 8, 1, 0, 5)];
    for version in 1..=8 {
        let records: Vec<u8> = requests.iter().flat_map(|&request| lcs(version, request)).collect();
        let (found, streams) = both("lcs", [lcs_header(version), records].concat());
        let at = |index: usize| found[index].0;
        let ops = if version == 1 { ['R'; 4] } else { ['R', 'W', 'T', 'R'] };
        let expected = [
            (0, ops[0], 4096, 4096),
            (2 * S, ops[1], 8192, 512),
            (at(2), ops[2], 4096, 512),
            (at(3), ops[3], 4096, 1),
        ];
        assert_eq!(found, expected, "version {version}");
        assert_eq!(streams, if version == 1 { [0; 4] } else { [1, 2, 1, 2] });
    }
    let text = failure([lcs_header(9), vec![0; 100]].concat(), &Options::default());
    assert!(text.starts_with("trace: row 1: version 9 of lcs, where ftlab reads 1 to 8"), "{text}");
    let text = failure(&lcs_header(2)[..5000], &Options::default());
    assert!(text.contains("the file ends within the header of 8192 B"), "{text}");
    let text = failure([lcs_header(1), lcs(1, (1, u64::MAX, 1, 0, 0))].concat(), &Options::default());
    assert!(text.contains("object 18446744073709551615 is not a sector"), "{text}");
}

/// The header that lcs had first describes its records itself.
#[test]
fn lcs_with_a_format() {
    let magic = 0x1234_5678_9abc_def0_u64.to_le_bytes();
    let made = |format: &str, fields: [u8; 8]| {
        let mut header = [&magic[..], format.as_bytes(), &vec![0; 240 - format.len()], &fields].concat();
        header.resize(1016, 0);
        [header, magic.to_vec()].concat()
    };
    // tenant, size, operation, a float, object, time
    let record =
        [&[3, 0][..], &4096_u32.to_le_bytes(), &[13], &[9; 4], &8_u64.to_le_bytes(), &9_u64.to_le_bytes()];
    let content = [made("<HIBfQq", [5, 2, 6, 0, 0, 3, 0, 1]), record.concat()].concat();
    assert_eq!(both("lcs", &content), (vec![(0, 'W', 4096, 4096)], vec![1]));
    for (fields, message) in [
        ([0, 2, 6, 0, 0, 0, 0, 0], "the header names no field for the object"),
        ([4, 2, 6, 0, 0, 0, 0, 0], "field 4 of the header's format is not a whole number"),
        ([7, 2, 6, 0, 0, 0, 0, 0], "field 7 of the header's format is not a whole number"),
    ] {
        let text = failure([made("<HIBfQq", fields), vec![0; 27]].concat(), &Options::default());
        assert!(text.starts_with(&format!("trace: row 1: {message}")), "{text}");
    }
    let text = failure([made("<s", [1; 8]), vec![0; 27]].concat(), &Options::default());
    assert!(text.contains("the header has a field of kind 's'"), "{text}");
}

#[test]
fn oracle_general_with_operations() {
    let row = |(second, sector, bytes, op, tenant): (u32, u64, u32, u8, u16)| {
        let begin = [&second.to_le_bytes()[..], &sector.to_le_bytes(), &bytes.to_le_bytes(), &[op]].concat();
        [&begin, &tenant.to_le_bytes()[..], &[0xff; 8]].concat()
    };
    let requests = [(7, 8, 4096, 1, 9), (9, 16, 512, 3, 0), (11, 24, 512, 0, 9), (13, 24, 512, 99, 9)];
    let content: Vec<u8> = requests.into_iter().flat_map(row).collect();
    let folder = Folder::new();
    let path = folder.file("w01.oracleGeneralOpNS.bin", &content);
    let mut source = open(&path, &Options::default()).unwrap();
    assert!(source.has_streams().unwrap());
    let expected = [(0, 'R', 4096, 4096), (2 * S, 'W', 8192, 512), (4 * S, 'R', 12288, 512)];
    assert_eq!(streamed(&drain(&mut *source).unwrap()), (expected.to_vec(), vec![1, 2, 1]));
    let summary = source.summary();
    assert_eq!(summary.dropped["other_op"], 1);
    assert_eq!(summary.notes[0], "1 requests name no operation: they are reads");
    assert_eq!(summary.notes[1], "objects are taken for sectors (workload.object_unit)");
    assert_eq!(info(&path, &Options::default()).unwrap().format, "oracle-general-op");
}

/// What a layout names besides its streams becomes one if that is asked for, and changes nothing else.
#[test]
fn processes_and_volumes_become_streams_if_asked_for() {
    let asked = |of: StreamsOf| Options { streams: of, ..Options::default() };
    let (process, volume) = (StreamsOf::Process, StreamsOf::Volume);
    let msr = "10,src1,1,Read,512,512,1\n20,src1,2,Read,512,512,1\n30,src2,1,Read,0,512,1\n40,src1,1,Read,0,512,1\n";
    let blkparse = "8,0 0 1 0.1 31 Q R 8 + 8 [a]\n8,16 0 2 0.2 32 Q FWS 8 + 8 [b]\n8,0 0 3 0.3 31 Q FN [a]\n";
    let mobile = "proces,device,rw_flag,sector,size,timestamp\na,b-1,8,R,8,16,1\nc,9,R,8,16,1\n,9,R,8,16,1\n";
    let fiu = "1 5 x 8 8 W 6 0 5ab\n2 5 x 8 8 R 8 1\n3 6 y 8 8 R 8 1\n";
    for (content, of, expected, names) in [
        (msr, volume, vec![1, 2, 3, 1], vec!["src1,1", "src1,2", "src2,1"]),
        ("0,1,512,W,0.5\n3,1,512,R,1.5\n0,8,512,R,2.5\n", volume, vec![1, 2, 1], vec!["0", "3"]),
        ("Timestamp,Response,IOType,LUN,Offset,Size\n1,,R,4,0,512\n", volume, vec![1], vec!["4"]),
        (
            "419,W,8192,512,1577808144360767\n725,R,8192,512,1577808144360768\n",
            volume,
            vec![1, 2],
            vec!["419", "725"],
        ),
        ("1538323200,8,8,0,1063\n1538323201,8,8,1,1064\n", volume, vec![1, 2], vec!["1063", "1064"]),
        (blkparse, process, vec![1, 2, 2, 1], vec!["31", "32"]),
        (blkparse, volume, vec![1, 2, 2, 1], vec!["8,0", "8,16"]),
        (mobile, process, vec![1, 2, 0], vec!["a,b-1", "c"]),
        (mobile, volume, vec![1, 2, 2], vec!["8", "9"]),
        (fiu, process, vec![1, 1, 2], vec!["5", "6"]),
        (fiu, volume, vec![1, 2, 2], vec!["6 0", "8 1"]),
        (
            "7 D read 0 512 0.1 0 x\n8 C read 0 512 0.1 0 x\n9 D read 0 512 0.2 0 x\n",
            process,
            vec![1, 2],
            vec!["7", "9"],
        ),
    ] {
        let (plain, _) = read(content, &Options::default()).unwrap();
        let (records, _) = read(content, &asked(of)).unwrap();
        assert_eq!(streamed(&records), (short(&plain), expected), "{content}");
        assert!(plain.iter().all(|record| record.stream == 0));
        let folder = Folder::new();
        let path = folder.file("trace", content);
        assert!(open(&path, &asked(of)).unwrap().has_streams().unwrap());
        let found = info(&path, &asked(of)).unwrap().streams;
        assert_eq!(found.into_iter().filter_map(|each| each.name).collect::<Vec<_>>(), names, "{content}");
    }
    let named = Options { format: "mqsim".into(), ..asked(volume) };
    assert_eq!(streamed(&read("1 3 8 8 1\n2 4 8 8 1\n", &named).unwrap().0).1, [1, 2]);
    for (content, of) in [(msr, process), ("time_ns,op,offset,size\n0,R,0,512\n", volume)] {
        let text = failure(content, &asked(of));
        assert!(
            text.contains(&format!("lines name no {}", of.name())) && text.contains("workload.streams"),
            "{text}"
        );
    }
}

/// What a layout cannot mean is refused where it stands.
#[test]
fn days_of_no_month_and_missing_columns_are_refused() {
    let of_day = |day: &str| {
        format!("timestamp,operation,sector,size,latency_ms\n2023-{day} 10:30:45.5,read,8,4096,1.5\n")
    };
    for day in ["02-29", "02-31", "04-31", "13-01", "12-32", "06-00"] {
        let text = failure(of_day(day), &Options::default());
        assert!(text.contains(":2: ") && text.contains("a date and time such as"), "{text}");
    }
    for day in ["02-28", "04-30", "12-31"] {
        assert_eq!(read(of_day(day), &Options::default()).unwrap().0.len(), 1, "{day}");
    }
    let leap = of_day("02-29").replace("2023", "2024");
    assert_eq!(read(&leap, &Options::default()).unwrap().0.len(), 1);
    let device = "nsecs rwbs bytes sector nr_sector dev\n1 W 4096 0 8 7\n2 W 4096 8 8\n";
    let text = failure(device, &Options::default());
    assert!(text.contains(":3: ") && text.contains("dev is missing"), "{text}");
}

/// A layout with streams says what they are when others are asked for.
#[test]
fn a_layout_says_what_its_streams_are() {
    let options = Options { streams: StreamsOf::Process, ..Options::default() };
    let text = failure("nsecs rwbs bytes sector nr_sector pid\n1 W 4096 0 8 7\n", &options);
    assert!(text.contains("lines name no process besides its streams, which are processes (pid)"), "{text}");
    let text = failure("time_ns,op,offset,size\n0,R,0,512\n", &options);
    assert!(text.contains("which are those of its column stream"), "{text}");
}

/// The figures of streams have the names that the trace gives them, and a conversion keeps their numbers.
#[test]
fn streams_have_figures() {
    let content = "nsecs rwbs bytes sector nr_sector pid comm\n1 W 4096 0 8 31 a\n2 R 512 8 1 32 b\n3 W 512 8 1 31 c\n\
        4 F 0 0 0 31 a\n";
    let folder = Folder::new();
    let (path, to) = (folder.file("trace", content), folder.path("to.csv"));
    let count = |stream, name: Option<&str>, [requests, bytes_read, bytes_written]: [u64; 3]| StreamCount {
        stream,
        name: name.map(str::to_owned),
        requests,
        bytes_read,
        bytes_written,
        share: requests as f64 / 4.0,
    };
    let found = info(&path, &Options::default()).unwrap();
    let expected = [count(1, Some("31 a"), [3, 0, 4608]), count(2, Some("32 b"), [1, 512, 0])];
    assert_eq!(found.streams, expected);
    convert_csv(&mut *open(&path, &Options::default()).unwrap(), to.as_ref()).unwrap();
    let converted = info(&to, &Options::default()).unwrap().streams;
    assert_eq!(converted, [count(1, None, [3, 0, 4608]), count(2, None, [1, 512, 0])]);
    let plain = folder.file("plain", "time_ns,op,offset,size\n0,R,0,512\n");
    assert!(info(&plain, &Options::default()).unwrap().streams.is_empty());
}
