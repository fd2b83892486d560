//! Tests of the values of options, each with what fio 3.33 makes of it.

use super::{Around, Engine, Extent, Group, Job, Mix, Pattern, Sync, Think, parse, parse_with};

fn only(options: &str) -> Result<Job, String> {
    let text = format!("[a]\nsize=1m\n{options}");
    parse("a.fio", &text).map(|mut jobs| jobs.remove(0)).map_err(|error| error.to_string())
}

/// The values are those of fio 3.33: its null engine's I/O log has these sizes.
#[test]
fn numbers_and_their_units() {
    let size = |value: &str| match only(&format!("size={value}\n")).map(|job| job.size) {
        Ok(Extent::Bytes(bytes)) => Ok(bytes),
        other => Err(format!("{other:?}")),
    };
    for (value, bytes) in [
        ("1048576", 1 << 20),
        ("64k", 65_536),
        ("64K", 65_536),
        ("64kb", 65_536),
        ("64ki", 65_536),
        ("4Mi", 4 << 20),
        // With kb_base=1024, fio's default, these are powers of 1000.
        ("64KiB", 64_000),
        ("4MiB", 4_000_000),
        ("1GiB", 1_000_000_000),
        ("0x10000", 65_536),
        ("8192B", 8192),
        ("1p", 1 << 50),
    ] {
        assert_eq!(size(value), Ok(bytes), "{value}");
    }
    assert_eq!(size("4MiB\nkb_base=1000"), Ok(4 << 20), "kb_base is read first");
    assert_eq!(size("4m\nkb_base=1000"), Ok(4_000_000));
    assert_eq!(
        only("bs=0x1000\nnumjobs=0x2\niodepth=1k\n").map(|job| (job.numjobs, job.iodepth)),
        Ok((2, 1024))
    );
    for wrong in ["1.5k", "64q", "-1", "99999999999t", "(4*1024)"] {
        assert!(size(wrong).unwrap_err().contains("is not a size"), "{wrong}");
    }
    // fio 3.33 reads "size= 64k" as 64 bytes.
    assert!(
        size(" 64k").unwrap_err().contains("fio leaves out the unit of a number behind a blank; write 64k")
    );
    assert_eq!(size(" 65536"), Ok(65_536));
    assert!(size("8z").unwrap_err().contains("counts zones of a zoned drive"));
}

#[test]
fn times_and_their_units() {
    let told = |value: &str| {
        let text = format!("[a]\nsize=1m\nruntime={value}\n");
        parse_with("a.fio", &text, &Around::NOTHING)
            .map(|read| (read.jobs[0].runtime_ns.unwrap_or(0), read.notes))
    };
    let ms = 1_000_000;
    for (value, ns) in [
        ("2", 2000 * ms),
        ("2s", 2000 * ms),
        ("2S", 2000 * ms),
        ("1500msec", 1500 * ms),
        ("900us", ms * 9 / 10),
        ("1m", 60_000 * ms),
        ("2h", 7_200_000 * ms),
        ("1d", 86_400_000 * ms),
        ("0", 0),
    ] {
        assert_eq!(told(value), Ok((ns, vec![])), "{value}");
    }
    // fio 3.33 runs such a job for 60 us, and so does ftlab, but it says so.
    let note = "runtime=60sec is 60 us to fio, which knows d, h, m, s, ms and us";
    assert_eq!(told("60sec"), Ok((60_000, vec![note.into()])));
    let text = "[a]\nsize=1m\ntime_based\n";
    let read = parse_with("a.fio", text, &Around::NOTHING).unwrap();
    assert_eq!(read.notes, ["job \"a\": time_based is ignored without a runtime"]);
    assert!(!read.jobs[0].time_based);
    let job = only("startdelay=5\nthinktime=1\nthinktime_blocks_type=issue\n").unwrap();
    assert_eq!((job.delay_ns, job.think), (5000 * ms, Think { ns: 1000, requests: 1, issued: true }));
    assert!(only("startdelay=5-10\n").unwrap_err().contains("is drawn by fio"));
}

/// An empty place keeps what was there, the last value holds for those after it, and a comma at the end keeps it from
/// doing so: fio 3.33, by its null engine's I/O log.
#[test]
fn values_for_each_direction() {
    let bs = |options: &str| {
        only(options).map(|job| job.block.map(|sizes| (sizes.least() >> 10, sizes.most() >> 10)))
    };
    let one = |sizes: [u64; 3]| Ok(sizes.map(|size| (size, size)));
    assert_eq!(bs("bs=8k\n"), one([8, 8, 8]));
    assert_eq!(bs("bs=8k,16k\n"), one([8, 16, 16]));
    assert_eq!(bs("bs=,8k\n"), one([4, 8, 8]));
    assert_eq!(bs("bs=16k\nbs=,8k\n"), one([16, 8, 8]));
    assert_eq!(bs("bs=8k,\n"), one([8, 4, 4]));
    assert_eq!(bs("bs=8k,4k,64k\n"), one([8, 4, 64]));
    assert_eq!(bs("bs=8k,,64k\n"), one([8, 4, 64]));
    assert_eq!(bs("bs=8k:16k\n"), one([8, 16, 16]));
    assert_eq!(bs("bs=8k-16k\n"), one([8, 16, 16]));
    assert!(bs("bs=,\n").unwrap_err().contains("bs: \"\" is not a size"));
    assert!(bs("bs=1k,1k,1k,1k\n").unwrap_err().contains("more than values for reads, writes and trims"));
    assert_eq!(bs("bsrange=16k-4k,8k:32k\n"), Ok([(4, 16), (8, 32), (8, 32)]));
    assert_eq!(bs("bsrange=,4k-16k\nbs=64k\n"), Ok([(64, 64), (4, 16), (4, 16)]));
    // bssplit is above bs, wherever they stand.
    assert_eq!(bs("bssplit=8k/90:16k/10,,\nbs=64k\n"), Ok([(8, 16), (64, 64), (64, 64)]));
    assert_eq!(bs("bssplit=,8k/100\n"), one([4, 8, 8]));
    assert!(
        bs("bssplit=4k/100\nbsrange=4k-8k\n").unwrap_err().contains("bssplit and bsrange exclude each other")
    );
    let rate = |options: &str| only(options).unwrap().rate;
    assert_eq!(rate("rate=10m,\n"), [10 << 20, 0, 0]);
    assert_eq!(rate("rate_iops=90,10,\nbs=8k,4k\n"), [90 << 13, 10 << 12, 0]);
    assert_eq!(rate("rate_iops=90,10\n"), [90 << 12, 10 << 12, 10 << 12]);
    assert_eq!(only("percentage_random=50,0\n").unwrap().random_percent, [50, 0, 0]);
    assert_eq!(only("ba=512,4k,\n").unwrap().align, [Some(512), Some(4096), None]);
}

#[test]
fn directions_and_groups() {
    let of =
        |value: &str| only(&format!("rw={value}\n")).map(|job| (job.pattern, job.mix, job.group, job.stride));
    let (sequential, random, single) = (Pattern::Sequential, Pattern::Random, Group::Follows(1));
    assert_eq!(of("trim"), Ok((sequential, Mix::Trims, single, 0)));
    assert_eq!(of("randtrimwrite"), Ok((random, Mix::TrimWrites, single, 0)));
    assert_eq!(of("readwrite"), Ok((sequential, Mix::Mixed(50), single, 0)));
    assert_eq!(of("randread:8"), Ok((random, Mix::Reads, Group::Follows(8), 0)));
    assert_eq!(of("randread:8\nrw_sequencer=identical"), Ok((random, Mix::Reads, Group::Repeats(8), 0)));
    assert_eq!(of("write:4k"), Ok((sequential, Mix::Writes, single, 4096)));
    assert_eq!(of("read:-8k"), Ok((sequential, Mix::Reads, single, -8192)));
    for wrong in ["randreadwrite", "READ", "randrand", "rwtrim"] {
        assert!(of(wrong).unwrap_err().contains("is not one of read, write"), "{wrong}");
    }
}

#[test]
fn engines_and_what_is_durable() {
    let of = |options: &str| {
        only(options).map(|job| (job.engine, job.sync, job.fdatasync, job.end_fsync, job.verify))
    };
    assert_eq!(of(""), Ok((Engine::Waits, Sync::None, 0, false, false)), "psync is fio's default");
    assert_eq!(
        of("ioengine=libaio\nsync=dsync\nfdatasync=1\n"),
        Ok((Engine::Queues, Sync::Data, 1, false, false))
    );
    let job = of("ioengine=io_uring\nsync=1\nend_fsync=1\nrw=write\nverify=crc32c\n");
    assert_eq!(job, Ok((Engine::QueuesAll, Sync::All, 0, true, true)));
    assert!(!of("rw=write\nverify=md5\ndo_verify=0\n").unwrap().4);
    assert!(of("rw=write\nverify_pattern=0xff\n").unwrap().4, "a pattern is verified");
    assert!(!of("rw=read\nverify=md5\n").unwrap().4, "a job that only reads verifies what it reads");
    for other in ["ftruncate", "falloc", "cpuio", "net", "rbd"] {
        assert!(
            of(&format!("ioengine={other}\n")).unwrap_err().contains("has no reads and writes of a drive")
        );
    }
}
