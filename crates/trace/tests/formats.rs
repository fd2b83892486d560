//! Reads every layout, on lines that contain its pitfalls.

use crate::common;

use common::{Short, failure, read, rows, with};
use ftlab_core::workload::{Op, Record};
use ftlab_trace::{DEVICE_STRIDE, Options};

const S: u64 = 1_000_000_000;

/// Reads content whose layout is recognised, and checks that it reads the same when the layout is named.
fn both(name: &str, content: &str) -> Vec<Short> {
    let recognised = rows(content, &Options::default());
    assert_eq!(rows(content, &with(name)), recognised);
    recognised
}

#[test]
fn own_csv_keeps_its_stamps() {
    let content =
        "time_ns,op,offset,size\n100,R,4096,512\n200,w,0,1\n250,T,8192,4096\n300,F,,\n300,flush,1,2\n";
    assert_eq!(
        both("csv", content),
        [(100, 'R', 4096, 512), (200, 'W', 0, 1), (250, 'T', 8192, 4096), (300, 'F', 0, 0), (300, 'F', 0, 0)]
    );
}

#[test]
fn own_csv_in_other_orders_and_units() {
    let content =
        "\u{feff}size, Op ,note,TIME_US,offset\r\n4096,READ,x,1.5,8192\r\n\r\n512,write,,2,0,more\r\n";
    assert_eq!(both("csv", content), [(1500, 'R', 8192, 4096), (2000, 'W', 0, 512)]);
    assert_eq!(rows("time_s,op,offset,size\n0.0000000015,R,0,1", &with("auto")), [(2, 'R', 0, 1)]);
}

#[test]
fn own_csv_needs_its_header() {
    let text = failure("time_ns,op,offset\n1,R,0\n", &with("csv"));
    assert!(text.starts_with("trace:1: no column size in the header; "), "{text}");
    let text = failure("time_ns,time_s,op,offset,size\n", &with("csv"));
    assert!(text.starts_with("trace:1: column \"time_s\" appears twice"), "{text}");
}

#[test]
fn msr_ticks_are_exact() {
    // A double cannot distinguish these stamps.
    let content = "128166372003061629,usr,0,Read,7014609920,24576,41286\n\
                   128166372003061630,usr,0,Write,1317441536,8192,1963\n\
                   128166372013061629,usr,0,read,0,512,1963\n";
    assert_eq!(
        both("msr", content),
        [(0, 'R', 7_014_609_920, 24576), (100, 'W', 1_317_441_536, 8192), (S, 'R', 0, 512)]
    );
}

#[test]
fn msr_disks_have_their_own_ranges() {
    let content = "10,src1,1,Read,512,512,1\n20,src1,2,Read,512,512,1\n30,src1,1,Read,0,512,1\n40,src2,1,Read,0,512,1\n";
    let offsets: Vec<u64> = both("msr", content).iter().map(|row| row.2).collect();
    assert_eq!(offsets, [512, DEVICE_STRIDE + 512, 0, 2 * DEVICE_STRIDE]);
}

#[test]
fn spc_with_blanks_cases_and_odd_sizes() {
    let content =
        "0, 20941264, 8192, W, 0.551706\n0,100,3573,r,0.554041,extra\n1,20941264,0,w,0.6\n1,100,512,R,0.7\n";
    let (records, summary) = read(content, &Options::default()).unwrap();
    assert_eq!(
        common::short(&records),
        [
            (0, 'W', 20_941_264 * 512, 8192),
            (2_335_000, 'R', 51200, 3573),
            (148_294_000, 'R', DEVICE_STRIDE + 51200, 512)
        ]
    );
    assert_eq!(summary.dropped.into_iter().collect::<Vec<_>>(), [("zero_size", 1)]);
    assert_eq!(records[2].line, 4);
}

/// Lines as blktrace records them: each I/O queued, merged or issued, and completed; flushes without sectors;
/// a message; a SCSI command; a discard; the summary.
const BLKPARSE: &str = "  8,16   1        1     0.000000000   697  Q   W 223490 + 8 [kjournald]
  8,16   1        2     0.000001829   697  G   W 223490 + 8 [kjournald]
  8,16   1        3     0.000003339   697  P   N [kjournald]
  8,16   1        4     0.000004000   697  Q  WSM 223498 + 8 [a b]
  8,16   1        5     0.000004500   697  M  WSM 223498 + 8 [a b]
  8,16   1        0     0.000004600     0  m   N cfq697S / alloced
  8,16   1        6     0.000005000   697  I   W 223490 + 16 [kjournald]
  8,16   1        7     0.000006000   697  D   W 223490 + 16 [kjournald]
  8,16   0        1     0.000010000   697  Q FWFS 100 + 8 [kjournald]
  8,16   0        2     0.000011000   697  Q  FWS [kjournald]
  8,16   0        3     0.000012000   697  D  FN [kworker]
  8,16   0        4     0.000012500     0  C  FN 0 [0]
  8,16   0        5     0.000013000   698  Q  DS 4096 + 2048 [fstrim]
  8,16   0        6     0.000014000   698  Q  RA 8 + 8 [cat]
  8,16   0        7     0.000015000     0  C   W 223490 + 16 [0]
  8,16   0        8     0.000016000   699  Q   R 255 (12 00 00 00 ff 00 ..) [udev]
  8,16   0        9     0.000017000   699  A   W 300 + 8 <- (8,17) 200
  8,16   0       10     0.000018000   699  X   R 300 / 308 [dd]
CPU0 (8,16):
 Reads Queued:           1,        4KiB\t Writes Queued:           3,       12KiB
Total (8,16):
  8,16   0       11     9.000018000   699  Q   R 300 + 8 [dd]
";

#[test]
fn blkparse_counts_one_action() {
    let (records, summary) = read(BLKPARSE, &Options::default()).unwrap();
    assert_eq!(
        common::short(&records),
        [
            (0, 'W', 223_490 * 512, 4096),
            (4000, 'W', 223_498 * 512, 4096),
            (10_000, 'F', 0, 0),
            (10_000, 'W', 51200, 4096),
            (11_000, 'F', 0, 0),
            (13_000, 'T', 4096 * 512, 2048 * 512),
            (14_000, 'R', 4096, 4096)
        ]
    );
    assert_eq!(summary.dropped.into_iter().collect::<Vec<_>>(), [("not_issue", 11), ("other_op", 1)]);
    // FWFS: a flush, then a write with FUA.
    let flags: Vec<u8> = records.iter().map(|record| record.flags).collect();
    assert_eq!(flags, [0, 0, 0, Record::FUA, 0, 0, 0]);
}

#[test]
fn csv_has_an_op_for_fua() {
    let content = "time_ns,op,offset,size\n0,WF,0,512\n1,W,512,512\n2,wf,1024,0\n3,F,0,0\n";
    let (records, _) = read(content, &with("csv")).unwrap();
    assert_eq!(common::short(&records), [(0, 'W', 0, 512), (1, 'W', 512, 512), (3, 'F', 0, 0)]);
    assert_eq!(records.iter().map(|record| record.flags).collect::<Vec<_>>(), [Record::FUA, 0, 0]);
    let text = read("time_ns,op,offset,size\n0,RF,0,512\n", &with("csv")).unwrap_err().to_string();
    assert!(text.contains("WF (write with FUA)"), "{text}");
}

#[test]
fn blkparse_without_queue_events_counts_dispatches_then_completions() {
    let without = |actions: &[&str]| -> String {
        let kept = |line: &&str| !actions.iter().any(|action| line.contains(&format!("  {action} ")));
        BLKPARSE.lines().filter(kept).map(|line| format!("{line}\n")).collect()
    };
    assert_eq!(both("blkparse", &without(&["Q"])), [(0, 'W', 223_490 * 512, 8192), (6000, 'F', 0, 0)]);
    assert_eq!(both("blkparse", &without(&["Q", "D"])), [(0, 'F', 0, 0), (2500, 'W', 223_490 * 512, 8192)]);
}

/// Regression: where a recording has no Q, the arrival was taken from D, though I is closer to the arrival.
#[test]
fn blkparse_counts_inserts_before_dispatches() {
    let content = "  8,16 0 1 0.000001 5 I R 8 + 8 [a]\n  8,16 0 2 0.000002 5 I W 16 + 8 [a]\n\
                     8,16 0 3 0.000005 5 D W 16 + 8 [a]\n  8,16 0 4 0.000009 5 D R 8 + 8 [a]\n";
    assert_eq!(both("blkparse", content), [(0, 'R', 4096, 4096), (1000, 'W', 8192, 4096)]);
    let (_, summary) = read(content, &with("blkparse")).unwrap();
    assert_eq!(summary.notes, ["counted the rows of action I"]);
    // A flush bypasses the scheduler, so it would be lost if inserts were counted.
    let around = format!("{content}  8,16 0 5 0.000010 5 D FN [a]\n");
    let (records, summary) = read(&around, &with("blkparse")).unwrap();
    assert_eq!((records.len(), records[2].op), (3, Op::Flush));
    assert_eq!(summary.notes, ["counted the rows of action D; those of action I are fewer (2)"]);
}

/// Regression: stamps out of order were raised to the ones before: 38 % of one recording's, by 14 ms on average.
#[test]
fn rows_of_several_cpus_are_put_in_order() {
    let content = "  8,16 0 1 0.048 5 Q R 8 + 8 [a]\n  8,16 1 1 0.001 6 Q W 16 + 8 [b]\n\
                     8,16 1 2 0.030 6 Q FWFS 24 + 8 [b]\n  8,16 0 2 0.050 5 Q R 32 + 8 [a]\n";
    let (records, summary) = read(content, &with("blkparse")).unwrap();
    assert_eq!(
        records.iter().map(|r| (r.time_ns / 1_000_000, r.op, r.line)).collect::<Vec<_>>(),
        [(0, Op::Write, 2), (29, Op::Flush, 3), (29, Op::Write, 3), (47, Op::Read, 1), (49, Op::Read, 4)]
    );
    assert_eq!(summary.out_of_order, 0);
    let moved = "rows are put in order of their stamps: 2 came after later ones, by up to 47.000000 ms";
    assert_eq!(summary.notes.last().map(String::as_str), Some(moved));
}

/// Regression: tests in Rust read the samples and checked none of their values, so that a mutant of the
/// footer survived.
#[test]
fn parquet_samples_hold_what_pyarrow_reads() {
    let row = |i: u64| {
        let request = (
            i * i * 1000,
            b"RW"[i as usize % 2] as char,
            i * 47 % 64 * 4096,
            [4096, 512, 8192][i as usize % 3],
        );
        let flush = (i % 4 > 1 && !i.is_multiple_of(5)).then_some((request.0, 'F', 0, 0));
        flush.into_iter().chain([request])
    };
    let expected: Vec<Short> = (0..24).flat_map(row).collect();
    for (name, content) in ftlab_trace::samples().filter(|(name, _)| *name == "parquet") {
        assert_eq!(rows(content, &with(name)), expected);
    }
}

/// Regression: waits were taken for microseconds since the wait before, as fio's manual has it. fio 3.33 replays these
/// requests at 0, 1,000, 1,500 and 1,500 ms from its start.
#[test]
fn fio_version_2_waits() {
    let content = "fio version 2 iolog\n/dev/a add\n/dev/b add\n/dev/a open\n/dev/b open\n/dev/a read 4096 512\n\
                   /dev/a wait 1000 0\n/dev/b write 0 4096\n/dev/a wait 1500\n/dev/a sync 0 0\n/dev/a datasync\n\
                   /dev/a wait 1200 0\n/dev/a trim 8192 4096\n/dev/a close\n";
    assert_eq!(
        both("fio-iolog", content),
        [
            (0, 'R', 4096, 512),
            (1_000_000_000, 'W', DEVICE_STRIDE, 4096),
            (1_500_000_000, 'F', 0, 0),
            (1_500_000_000, 'F', 0, 0),
            (1_500_000_000, 'T', 8192, 4096)
        ]
    );
    let note = read(content, &Options::default()).unwrap().1.notes.remove(0);
    assert!(note.starts_with("a wait ends at its number of milliseconds since the start"), "{note}");
}

/// Regression: a log was refused until its unit was named, with 1ns on offer; fio writes microseconds.
#[test]
fn fio_version_3_is_in_microseconds() {
    let content =
        "fio version 3 iolog\n0 /dev/a add\n1 /dev/a open\n5 /dev/a write 0 4096\n9 /dev/a read 4096 4096\n";
    for (unit, ns) in [(None, 1000), (Some(1000), 1000), (Some(1), 1)] {
        let options = Options { fio_time_unit_ns: unit, ..Options::default() };
        assert_eq!(rows(content, &options), [(0, 'W', 0, 4096), (4 * ns, 'R', 4096, 4096)]);
    }
    assert!(read(content, &Options::default()).unwrap().1.notes.is_empty());
    assert!(failure("fio version 1 iolog\n", &Options::default()).contains("version 2 and 3"));
    assert!(failure("0,4096,1\n", &with("fio-iolog")).starts_with("trace:1: the first line is not"));
}

/// fio 3.33 replays the second request at once, as a stamp of 0 stands for none.
#[test]
fn a_pause_behind_a_stamp_of_0_is_kept() {
    let content = "fio version 3 iolog\n0 f add\n0 f open\n0 f write 0 4096\n2000000 f write 4096 4096\n\
                   2500000 f write 8192 4096\n";
    let expected = [(0, 'W', 0, 4096), (2_000_000_000, 'W', 4096, 4096), (2_500_000_000, 'W', 8192, 4096)];
    assert_eq!(both("fio-iolog", content), expected);
    let kept =
        "a pause of 2000.000 ms is kept in which fio's own replay does not wait: it is behind a stamp of 0";
    assert_eq!(read(content, &Options::default()).unwrap().1.notes, [kept]);
}

/// Regression: a log of two jobs, to which fio appends a second header, was refused as damaged.
#[test]
fn fio_appends_to_a_log() {
    let content = "fio version 3 iolog\n19 f add\n543 f write 0 4096\n589 f close\nfio version 3 iolog\n15 f add\n\
                   62 f read 0 4096\n";
    assert_eq!(both("fio-iolog", content), [(0, 'W', 0, 4096), (108_000, 'R', 0, 4096)]);
    let note = read(content, &Options::default()).unwrap().1.notes.remove(0);
    assert!(note.starts_with("holds 2 recordings, taken one after another"), "{note}");
}

#[test]
fn look_alikes_are_told_apart_by_name_alone() {
    let content = "1000 0 8 16 1\n3000 0 4096 8 0\n";
    let text = failure(content, &Options::default());
    let first = text.lines().next().unwrap();
    for name in ["mqsim", "ssdsim", "disksim", "replayer"] {
        assert!(first.contains(name), "{text}");
    }
    assert!(text.contains("--format mqsim"), "{text}");
    let sectors = [(0, 'R', 4096, 8192), (2000, 'W', 4096 * 512, 4096)];
    assert_eq!(rows(content, &with("mqsim")), sectors);
    assert_eq!(rows(content, &with("ssdsim")), sectors);
    let in_ms = sectors.map(|(time, op, offset, size)| (time * 1_000_000, op, offset, size));
    assert_eq!(rows(content, &with("disksim")), in_ms);
    assert_eq!(rows(content, &with("replayer")), [(0, 'R', 8, 16), (2000 * 1_000_000, 'W', 4096, 8)]);
}

#[test]
fn look_alikes_with_decimals_cannot_be_in_nanoseconds() {
    let text = failure("0.5 0 8 16 1\n1.25 0 8 16 0\n", &Options::default());
    assert!(text.starts_with("trace: five numbers a line can be disksim or replayer:"), "{text}");
    let text = failure("0.5 0 8 16 1\n", &with("mqsim"));
    assert!(text.starts_with("trace:1: arrival is \"0.5\", not a whole number"), "{text}");
}

#[test]
fn disksim_flags_and_fractions() {
    let content = "0.0000005 0 8 16 1\n0.0000014 0 8 16 0\n1.5 1 8 16 13\n2 0 8 16 0x1F\n2 0 8 16 20\n";
    assert_eq!(
        rows(content, &with("disksim")),
        [
            (0, 'R', 4096, 8192),
            (0, 'W', 4096, 8192),
            (1_499_999, 'R', DEVICE_STRIDE + 4096, 8192),
            (1_999_999, 'R', 4096, 8192),
            (1_999_999, 'W', 4096, 8192)
        ]
    );
    assert!(failure("0 0 8 16 +1\n", &with("disksim")).starts_with("trace:1: flags is \"+1\""));
}

#[test]
fn biotracer_sizes_lose_what_the_driver_adds() {
    let content = "131072\t8\t4096\t5\t10.5\t10.5001\t10.5002\t10.51\n\
                   200\t17\t8704\t1\t10.6\t10.6\t10.6\t10.7\n300\t3\t1536\t4\t10.7\t10.7\t10.7\t10.8\n";
    assert_eq!(
        both("biotracer", content),
        [
            (0, 'W', 131_072 * 512, 4096),
            (100_000_000, 'W', 200 * 512, 8192),
            (200_000_000, 'R', 300 * 512, 4096)
        ]
    );
}

#[test]
fn mobile_ebpf_takes_its_fields_from_the_right() {
    let content = "proces,device,rw_flag,sector,size,timestamp\n\
                   <...>-12228,8388608,R,29880920,16,159273.751646\n\
                   a,b \"c\",8388608,WS,8,8,159273.83748699998\n\
                   x-1,8388608,FF,0,0,159273.84\nx-1,8388608,D,16,2048,159273.85\nx-1,8388608,N,0,0,159273.86\n\
                   x-1,8388608,FWFS,24,8,159273.87\nx-1,8388608,R,24,0,159273.88\n";
    let (records, summary) = read(content, &Options::default()).unwrap();
    assert_eq!(
        common::short(&records),
        [
            (0, 'R', 29_880_920 * 512, 8192),
            (85_841_000, 'W', 4096, 4096),
            (88_354_000, 'F', 0, 0),
            (98_354_000, 'T', 8192, 1 << 20),
            (118_354_000, 'F', 0, 0),
            (118_354_000, 'W', 12288, 4096)
        ]
    );
    assert_eq!(records.last().unwrap().flags, Record::FUA);
    assert_eq!(summary.dropped.into_iter().collect::<Vec<_>>(), [("other_op", 1), ("zero_size", 1)]);
    let (_, headless) = content.split_once('\n').unwrap();
    assert_eq!(both("mobile-ebpf", headless), common::short(&records));
}

#[test]
fn systor17_with_blank_types() {
    let content = "Timestamp,Response,IOType,LUN,Offset,Size\n\
                   1456752000.022745000,0.000012,R,0,35264577536,32768\n1456752000.03,,,0,0,0\n\
                   1456752000.522745000,,W,1,4096,512\n";
    let (records, summary) = read(content, &Options::default()).unwrap();
    assert_eq!(
        common::short(&records),
        [(0, 'R', 35_264_577_536, 32768), (500_000_000, 'W', DEVICE_STRIDE + 4096, 512)]
    );
    assert_eq!(summary.dropped.into_iter().collect::<Vec<_>>(), [("other_op", 1)]);
    let (_, headless) = content.split_once('\n').unwrap();
    assert_eq!(both("systor17", headless), common::short(&records));
}

#[test]
fn alicloud_in_microseconds() {
    let content = "419,W,8792731648,16384,1577808144360767\n725,R,59110326272,36864,1577808144360813\n419,R,0,512,1577808144360814\n";
    assert_eq!(
        both("alicloud", content),
        [
            (0, 'W', 8_792_731_648, 16384),
            (46_000, 'R', DEVICE_STRIDE + 59_110_326_272, 36864),
            (47_000, 'R', 0, 512)
        ]
    );
}

#[test]
fn tencent_seconds_are_spread() {
    // These sizes of 8 sectors are also a valid operation code of cloudphysics-csv.
    let content = "1538323200,12910952,8,0,1063\n1538323200,6265368,8,1,1063\n1538323202,0,8,1,1283\n1538323202,8,8,1,1063\n";
    assert_eq!(
        both("tencent", content),
        [
            (0, 'R', 12_910_952 * 512, 4096),
            (S / 2, 'W', 6_265_368 * 512, 4096),
            (2 * S, 'W', DEVICE_STRIDE, 4096),
            (2 * S + S / 2, 'W', 4096, 4096)
        ]
    );
}

#[test]
fn cloudphysics_codes() {
    let content = "version,time,op,size,lbn\n1,5633898,2a,512,10\n1,5633898,28,1024,20\n1,5633898,35,0,0\n1,5633898,00,0,0\n1,5633899,8A,512,30\n";
    let (records, summary) = read(content, &Options::default()).unwrap();
    assert_eq!(
        common::short(&records),
        [(0, 'W', 5120, 512), (S / 3, 'R', 10240, 1024), (2 * S / 3, 'F', 0, 0), (S, 'W', 15360, 512)]
    );
    assert_eq!(summary.dropped.into_iter().collect::<Vec<_>>(), [("other_op", 1)]);
    let (_, headless) = content.split_once('\n').unwrap();
    assert_eq!(both("cloudphysics-csv", headless), common::short(&records));
}

#[test]
fn notimes_needs_closed_replay() {
    let content = "offset,size,type 507 14411 5701 4\n4220896,4096,1\n8,8704,0\n";
    let wanted = [(0, 'W', 4_220_896 * 512, 4096), (0, 'R', 4096, 8704)];
    assert_eq!(both("notimes", content), wanted);
    let device = Options { capacity_bytes: Some(1 << 40), ..Options::default() };
    let text = failure(content, &device);
    assert!(text.starts_with("trace: a notimes trace has no arrival times"), "{text}");
    assert!(text.contains("--replay closed"), "{text}");
    assert_eq!(rows(content, &Options { closed: true, ..device }), wanted);
}

#[test]
fn sqlitewal_dispatches_alone() {
    let content = "39949 D read 299008 4096 0.000000000 0 False\n0 C read 299008 4096 0.000122793 0.000122793 False\n\
                   18141 D write 270336 4096 1.5e-3 7.3902e-05 True\n1 D discard 0 8192 0.437281951 0 False\n";
    let (records, summary) = read(content, &Options::default()).unwrap();
    assert_eq!(
        common::short(&records),
        [(0, 'R', 299_008, 4096), (1_500_000, 'W', 270_336, 4096), (437_281_951, 'T', 0, 8192)]
    );
    assert_eq!(summary.dropped.into_iter().collect::<Vec<_>>(), [("not_issue", 1)]);
    assert_eq!(both("sqlitewal", content), common::short(&records));
}

#[test]
fn headers_that_others_added_are_passed_over() {
    let msr = "Timestamp,Hostname,DiskNumber,Type,Offset,Size,ResponseTime\n1,a,0,Read,0,512,1\n";
    assert_eq!(both("msr", msr), [(0, 'R', 0, 512)]);
    let ali = "device_id,opcode,offset,length,timestamp\n1,R,0,512,5\n";
    assert_eq!(both("alicloud", ali), [(0, 'R', 0, 512)]);
    let tencent = "Timestamp,Offset,Size,IOType,VolumeID\n5,0,1,0,9\n";
    assert_eq!(both("tencent", tencent), [(0, 'R', 0, 512)]);
    let spc = "ASU,LBA,Size,Opcode,Timestamp\n0,0,512,R,0.5\n";
    assert_eq!(both("spc", spc), [(0, 'R', 0, 512)]);
}
