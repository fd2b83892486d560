//! Tests of the reader of job files.

use super::{Distribution, Extent, Job, Mix, Pattern, Sizes, Strides, Think, files, parse};

fn refused(text: &str) -> String {
    parse("a.fio", text).unwrap_err().to_string()
}

#[test]
fn globals_hold_until_a_job_says_otherwise() {
    let text = "; two jobs\n[global]\nrw=randrw\nbs=8k,16K\nsize=64m\nrwmixread=70\n\n[a]\niodepth=4\n\
                direct=1\n[b]\nrw=write\nnumjobs=3\nfsync=32\nrate=1m\nruntime=90s\ntime_based\n";
    let jobs = parse("a.fio", text).unwrap();
    let [a, b] = &jobs[..] else { panic!("two jobs") };
    assert_eq!((a.name.as_str(), a.mix, a.iodepth, a.direct), ("a", Mix::Mixed(70), 4, true));
    assert_eq!(a.block, [8192, 16_384, 16_384].map(Sizes::One));
    assert_eq!((a.size, a.pattern), (Extent::Bytes(64 << 20), Pattern::Random));
    assert_eq!((b.mix, b.numjobs, b.fsync, b.rate), (Mix::Writes, 3, 32, [1 << 20; 3]));
    assert_eq!((b.runtime_ns, b.time_based, b.iodepth), (Some(90_000_000_000), true, 1));
}

#[test]
fn jobs_as_people_have_them() {
    let text = "[global]\nioengine=libaio ; async\ngroup_reporting\nfilename=/dev/nvme0n1\nbuffered=0\n\
                [a]\nsize=1m\nrw=randrw\nrwmixwrite=30\nioengine=io_uring\n";
    assert_eq!(crate::clients::fio::passed_over(text), ["ioengine", "group_reporting"]);
    let jobs = parse("a.fio", text).unwrap();
    assert_eq!((jobs[0].mix, jobs[0].direct), (Mix::Mixed(70), true));
    assert_eq!(jobs[0].file.as_deref(), Some("/dev/nvme0n1"));
}

#[test]
fn distributions() {
    let of = |value: &str| {
        let text = format!("[a]\nsize=1m\nrandom_distribution={value}\n");
        parse("a.fio", &text).map(|jobs| jobs[0].distribution.clone())
    };
    assert_eq!(of("zipf:1.2").unwrap(), Distribution::Zipf(1.2, None));
    assert_eq!(of("pareto:0.2").unwrap(), Distribution::Pareto(0.2, None));
    assert_eq!(
        of("zoned:60/10:40/90").unwrap(),
        Distribution::Zoned([0; 3].map(|_| vec![(600_000, 100_000), (400_000, 900_000)]))
    );
    assert_eq!(
        of("zoned:60/10:30/90").unwrap_err().to_string(),
        "a.fio:3: random_distribution: zones of 60/10:30/90: accesses and sizes must each come to 100 percent"
    );
    assert!(of("normal:3").unwrap_err().message.contains("is not one of random, zipf:THETA"));
}

#[test]
fn what_is_not_read_is_refused_by_name_and_line() {
    assert_eq!(
        refused("[a]\nsize=1m\nverify=crc32c\n"),
        "a.fio:3: option verify is not read by ftlab\n  it knows rw, bs, bssplit, blockalign, iodepth, filename, \
         offset, size, io_size, loops, zonemode, zonesize, zonerange, zoneskip, rwmixread, rwmixwrite, random_distribution, \
         fsync, rate, rate_iops, thinktime, thinktime_blocks, ramp_time, runtime, time_based, numjobs, stonewall, \
         direct, buffered"
    );
    let all = refused("[a]\nsize=1m\nverify=crc32c\nioengine=libaio\nreplay_align\nrw=trim\n");
    assert!(all.starts_with("a.fio:3: option verify is not read by ftlab\n  line 5: option replay_align is"));
    assert!(all.contains("\n  line 6: rw: \"trim\" is not one of read"), "{all}");
    assert!(!all.contains("ioengine"));
    assert_eq!(refused("rw=read\n"), "a.fio:1: rw: before any section; begin with [global] or [job]");
    assert!(refused("[a]\nsize=1m\nrw=trim\n").starts_with("a.fio:3: rw: \"trim\" is not one of read"));
    assert!(refused("[a]\nsize=1m\nbs=4q\n").starts_with("a.fio:3: bs: \"4q\" is not a size"));
    assert!(refused("[a]\nsize=1m\niodepth=0\n").starts_with("a.fio:3: iodepth: \"0\" is not a whole"));
    assert!(refused("[a]\nsize=1m\nruntime=soon\n").starts_with("a.fio:3: runtime: \"soon\" is not a time"));
    assert_eq!(refused("[a]\nrw=read\n"), "a.fio:1: job \"a\" has no size; write for example size=64m");
    assert!(refused("[a]\nsize=1m\ntime_based=1\n").contains("time_based without runtime"));
    assert!(refused("[global]\nrw=read\n").starts_with("a.fio:2: no job"));
    assert!(refused("").starts_with("a.fio:1: no job"));
    assert!(refused("[a\n").starts_with("a.fio:1: \"[a\""));
    assert!(refused("[a]\nsize=4k\nbs=8k\n").contains("bs is larger than size"));
}

fn only(options: &str) -> Result<Job, String> {
    let text = format!("[a]\nsize=1m\n{options}");
    parse("a.fio", &text).map(|mut jobs| jobs.remove(0)).map_err(|error| error.to_string())
}

#[test]
fn parts_of_a_drive() {
    let job = only("size=50%\noffset=10%\nio_size=64k\n").unwrap();
    assert_eq!((job.offset, job.size, job.io_size), (Extent::Percent(10), Extent::Percent(50), Some(65_536)));
    let places = files(&[job], 1_000_000).unwrap();
    // Shares of the drive are whole pages, and an offset is rounded up.
    assert_eq!((places[0].first, places[0].bytes), (102_400, 499_712));
    // What begins behind the offset ends with the drive.
    let places = files(&[only("size=100%\noffset=256k\n").unwrap()], 1 << 20).unwrap();
    assert_eq!((places[0].first, places[0].bytes, places[0].file), (256 << 10, 768 << 10, 1 << 20));
    assert!(only("size=101%\n").unwrap_err().contains("size: \"101\" is not a whole number from 1 to 100"));
    assert!(files(&[only("size=1%\n").unwrap()], 1 << 18).unwrap_err().contains("bs is larger than size"));
}

#[test]
fn jobs_share_the_file_that_they_name() {
    let text =
        "[global]\ndirect=1\nsize=1m\n[a]\nnumjobs=2\n[b]\nfilename=x\noffset=3m\n[c]\nfilename=x\nsize=2m\n";
    let jobs = parse("a.fio", text).unwrap();
    let owners: Vec<(u32, u64)> =
        files(&jobs, 0).unwrap().iter().map(|place| (place.owner, place.file >> 20)).collect();
    assert_eq!(owners, [(0, 1), (1, 1), (2, 4), (2, 2)]);
}

#[test]
fn mixed_sizes() {
    let split = |value: &str| only(&format!("bssplit={value}\n")).map(|job| job.block);
    let sizes =
        |parts: &[(u64, u64)]| Sizes::Split(parts.iter().map(|&(kib, below)| (kib << 10, below)).collect());
    let mix = sizes(&[(4, 60), (16, 100)]);
    assert_eq!(split("4k/60:16k/40").unwrap(), [mix.clone(), mix.clone(), mix.clone()]);
    assert_eq!(split("4k/60:16k/40,8k").unwrap(), [mix, sizes(&[(8, 100)]), sizes(&[(8, 100)])]);
    // As in fio's HOWTO: what has no percentage shares what the others leave.
    assert_eq!(split("4k/50:1k/:32k").unwrap()[0], sizes(&[(4, 50), (1, 75), (32, 100)]));
    assert!(
        split("4k/60:16k/30").unwrap_err().contains("the percentages of 4k/60:16k/30 come to 90, not to 100")
    );
    assert!(split("4k/60:16k/60").unwrap_err().contains("come to 120, not to 100"));
    assert!(split("4k/60:/40").unwrap_err().contains("bssplit: \"\" is not a size"));
}

#[test]
fn zones_of_a_file() {
    let zones = |options: &str| only(options).map(|job| job.strides);
    let strides = Strides { bytes: 4096, range: 8192, skip: 16_384 };
    let given = "zonesize=4k\nzonerange=8k\nzoneskip=16k\n";
    assert_eq!(zones(&format!("zonemode=strided\n{given}")).unwrap(), Some(strides));
    // As fio itself does.
    assert!(zones(given).unwrap_err().contains("zonesize without zonemode=strided; add it, or leave both"));
    assert!(
        zones(&format!("zonemode=none\n{given}")).unwrap_err().contains("zonesize without zonemode=strided")
    );
    let whole = Strides { bytes: 8192, range: 8192, skip: 0 };
    assert_eq!(zones("zonemode=strided\nzonesize=8k\n").unwrap(), Some(whole));
    assert_eq!(zones("zonemode=none\nzoneskip=8k\n").unwrap(), None);
    assert!(
        zones("zonemode=strided\n").unwrap_err().contains("zonemode=strided without zonesize; write for")
    );
    assert!(zones("zonemode=zbd\n").unwrap_err().contains("zonemode: \"zbd\" is not one of none, strided"));
    assert!(
        zones("zonemode=strided\nzonesize=2m\n")
            .unwrap_err()
            .contains("zonerange of 2097152 B is larger than size, 1048576 B")
    );
    assert!(zones("zonemode=strided\nzonesize=2k\n").unwrap_err().contains("bs is larger than zonerange"));
    assert!(zones("zonefill=1\n").unwrap_err().contains("option zonefill is not read by ftlab"));
}

#[test]
fn rates_pauses_and_ramps() {
    let job =
        only("bssplit=4k/50:8k/50\nrate_iops=100,0\nthinktime=5\nthinktime_blocks=8\nramp_time=2\n").unwrap();
    // As in fio, the smallest size is what a rate of requests counts in.
    assert_eq!(
        (job.rate, job.think, job.ramp_ns),
        ([409_600, 0, 0], Think { ns: 5_000, requests: 8, issued: false }, 2_000_000_000)
    );
    let job = only("thinktime=0\nramp_time=500ms\nloops=3\nblockalign=512\n").unwrap();
    assert_eq!((job.think.ns, job.ramp_ns, job.loops, job.align), (0, 500_000_000, 3, [Some(512); 3]));
    assert!(only("rate=1m\nrate_iops=9\n").unwrap_err().contains("rate and rate_iops exclude each other"));
    assert!(only("thinktime=a\n").unwrap_err().contains("thinktime: \"a\" is not a time"));
    assert!(only("thinktime_spin=1\n").unwrap_err().contains("option thinktime_spin is not read by ftlab"));
    assert!(only("loops=0\n").unwrap_err().contains("loops: \"0\" is not a whole number from 1 to"));
}

#[test]
fn stone_walls_divide_the_jobs() {
    let stages =
        |text: &str| -> Vec<u32> { parse("a.fio", text).unwrap().iter().map(|job| job.stage).collect() };
    let text =
        "[a]\nsize=1m\nstonewall\n[b]\nsize=1m\n[c]\nsize=1m\nstonewall=1\n[d]\nsize=1m\nwait_for_previous\n";
    assert_eq!(stages(text), [0, 0, 1, 2]);
    assert_eq!(stages("[global]\nsize=1m\nstonewall\n[a]\n[b]\n[c]\nstonewall=0\n"), [0, 1, 1]);
}
