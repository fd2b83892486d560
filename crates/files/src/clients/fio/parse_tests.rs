//! Tests of the reader of job files.

use super::files::Place;
use super::options;
use super::passed::{PASSED_OVER, REFUSED, REFUSED_IN_A_CACHE};
use super::{
    Around, Distribution, Exits, Extent, Job, Mix, Pattern, Sizes, Steady, Strides, Think, files, parse,
    parse_with,
};

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
    let text = "[global]\nioengine=libaio ; async\nthread\nfilename=/dev/nvme0n1\nbuffered=0\n\
                [a]\nsize=1m\nrw=randrw\nrwmixwrite=30\nioengine=io_uring\n";
    let read = parse_with("a.fio", text, &Around::NOTHING).unwrap();
    assert_eq!(read.notes, ["the fio job's thread: skipped, nothing here depends on it"]);
    let jobs = read.jobs;
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
        "a.fio:3: random_distribution: the accesses of 60/10:30/90 come to 90 percent, not to 100"
    );
    assert!(of("gauss:3").unwrap_err().message.contains("is not one of random, zipf:THETA"));
    assert!(of("zipf:1").unwrap_err().message.contains("fio refuses it too"));
    // fio's defaults, and where the middle is.
    assert_eq!(of("zipf").unwrap(), Distribution::Zipf(1.1, None));
    assert_eq!(of("pareto::0.5").unwrap(), Distribution::Pareto(0.2, Some(0.5)));
    assert_eq!(of("normal:3:0.25").unwrap(), Distribution::Normal(3.0, Some(0.25)));
    let own = Distribution::Zoned([vec![(1_000_000, 1_000_000)], vec![], vec![]]);
    assert_eq!(of("zoned:100/100,").unwrap(), own);
    // Zones without a size share evenly what is left.
    let open = vec![(500_000, 50_000), (300_000, 475_000), (200_000, 475_000)];
    assert_eq!(of("zoned:50/5:30/:20/,").unwrap(), Distribution::Zoned([open, vec![], vec![]]));
    let zone = vec![(500_000, 4096), (500_000, 8192)];
    assert_eq!(of("zoned_abs:50/4k:50/8k").unwrap(), Distribution::ZonedBytes([0; 3].map(|_| zone.clone())));
}

#[test]
fn what_is_not_read_is_refused_by_name_and_line() {
    let one = refused("[a]\nsize=1m\nfoo=1\n");
    assert!(
        one.starts_with("a.fio:3: option foo is not read by ftlab\n  it knows rw, rw_sequencer, rwmixread, ")
    );
    let all = refused("[a]\nsize=1m\nfoo=crc32c\nioengine=libaio\nflow=2\nrw=trims\nbwavgtime=1\n");
    assert!(all.starts_with("a.fio:3: option foo is not read by ftlab\n  line 5: flow=2: jobs do not wait"));
    assert!(all.contains("\n  line 6: rw: \"trims\" is not one of read"), "{all}");
    assert!(!all.contains("ioengine:") && !all.contains("bwavgtime"), "{all}");
    assert_eq!(refused("rw=read\n"), "a.fio:1: rw: before any section; begin with [global] or [job]");
    assert!(refused("[a]\nsize=1m\nbs=4q\n").starts_with("a.fio:3: bs: \"4q\" is not a size"));
    assert!(refused("[a]\nsize=1m\niodepth=0\n").starts_with("a.fio:3: iodepth: \"0\" is not a whole"));
    assert!(refused("[a]\nsize=1m\nruntime=soon\n").starts_with("a.fio:3: runtime: \"soon\" is not a time"));
    assert_eq!(
        refused("[a]\nrw=read\n"),
        "a.fio:1: job \"a\": no size and no drive; write for example size=64m, or filename=/dev/a for all of it"
    );
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
    assert!(only("size=101%\n").unwrap_err().contains("size: \"101\" is not a whole number from 0 to 100"));
    assert!(files(&[only("size=1%\n").unwrap()], 1 << 18).unwrap_err().contains("bs is larger than size"));
}

#[test]
fn jobs_share_the_file_that_they_name() {
    let text =
        "[global]\ndirect=1\nsize=1m\n[a]\nnumjobs=2\n[b]\nfilename=x\noffset=3m\n[c]\nfilename=x\nsize=2m\n";
    let jobs = parse("a.fio", text).unwrap();
    let owners: Vec<(u32, u64)> =
        files(&jobs, 0).unwrap().iter().map(|place| (place.owner, place.file >> 20)).collect();
    assert_eq!(owners, [(0, 1), (1, 1), (2, 4), (2, 4)]);
}

#[test]
fn mixed_sizes() {
    let split = |value: &str| only(&format!("bssplit={value}\n")).map(|job| job.block);
    let sizes =
        |parts: &[(u64, u64)]| Sizes::Split(parts.iter().map(|&(kib, below)| (kib << 10, below)).collect());
    let mix = sizes(&[(4, 60), (16, 100)]);
    assert_eq!(split("4k/60:16k/40").unwrap(), [0; 3].map(|_| mix.clone()));
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
    assert_eq!(only("loops=0\n").unwrap().loops, 1);
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

/// By fio 3.33: `filesize` bounds the addresses, `size` what is transferred.
#[test]
fn files_and_what_of_them_is_used() {
    let of = |options: &str| {
        parse("a.fio", &format!("[a]\n{options}"))
            .map(|jobs| (jobs[0].size, jobs[0].io_size))
            .map_err(|e| e.message)
    };
    assert_eq!(of("filename=/dev/sdb\n"), Ok((Extent::Percent(100), None)), "the drive");
    assert_eq!(of("filename=/dev/sdb\nsize=0\noffset=0%\n"), Ok((Extent::Percent(100), None)));
    assert_eq!(of("filesize=4m\n"), Ok((Extent::Bytes(4 << 20), None)));
    assert_eq!(of("filesize=4m\noffset=1m\n"), Ok((Extent::Bytes(3 << 20), None)));
    assert_eq!(of("filesize=4m\nsize=2m\n"), Ok((Extent::Bytes(4 << 20), Some(2 << 20))));
    assert_eq!(of("filesize=4m\nsize=8m\n"), Ok((Extent::Bytes(4 << 20), None)));
    assert_eq!(of("filesize=4m\nsize=2m\nio_size=8m\n"), Ok((Extent::Bytes(4 << 20), Some(8 << 20))));
    assert_eq!(of("size=4m\nio_size=50%\n"), Ok((Extent::Bytes(4 << 20), Some(2 << 20))));
    assert!(
        of("filename=a\nio_size=50%\n").unwrap_err().contains("io_size: a share of a share of the drive")
    );
    let file = |options: &str| only(options).map(|job| job.file);
    assert_eq!(file("filename=0000\\:01\\:00.0\n").unwrap().as_deref(), Some("0000:01:00.0"));
    assert_eq!(file("directory=/x\nfilename=y\n").unwrap().as_deref(), Some("/x/y"));
    assert_eq!(file("filename_format=$jobname.$jobnum\n"), Ok(None), "each worker has its own");
    assert_eq!(file("filename_format=of.$jobname\n").unwrap().as_deref(), Some("of.a"));
    assert_eq!(file("filename_format=all\n").unwrap().as_deref(), Some("all"));
    assert!(
        file("filename_format=w.$jobnum\n").unwrap_err().contains("without $jobname, workers of several")
    );
    assert_eq!(parse("a.fio", "[/dev/sdb]\nrw=read\n").unwrap()[0].file.as_deref(), Some("/dev/sdb"));
}

#[test]
fn what_would_change_the_load_is_refused_unless_it_is_off() {
    for (option, off) in
        [("serialize_overlap", "0"), ("flow", "0"), ("write_hint", "none"), ("io_submit_mode", "inline")]
    {
        assert!(only(&format!("{option}={off}\n")).is_ok(), "{option}");
        let why = only(&format!("{option}=7\n")).unwrap_err();
        assert!(why.starts_with(&format!("a.fio:3: {option}=7: ")), "{why}");
    }
    // What the page cache would do concerns no job that goes past it.
    assert!(only("overwrite=1\ndirect=1\n").is_ok());
    assert!(
        only("overwrite=1\n")
            .unwrap_err()
            .contains("job \"a\": overwrite=1: files are laid out only for reads")
    );
    assert!(only("overwrite=1\noverwrite=0\n").is_ok());
}

#[test]
fn variables_and_files_from_around_the_job() {
    let around = Around {
        variable: &|name| (name == "SIZE").then(|| "64k".into()),
        text: &|path| match path {
            "jobs/common.fio" => Ok("bs=8k ; not as usual\ninclude more.fio\n".into()),
            "jobs/more.fio" => Ok("rw=write\nfoo=1\n".into()),
            "circle" => Ok("include circle\n".into()),
            "sections" => Ok("[b]\n".into()),
            _ => Err(format!("{path} is not there")),
        },
    };
    let read = |text: &str| parse_with("jobs/a.fio", text, &around).map(|mut read| read.jobs.remove(0));
    let of = |text: &str| read(text).map_err(|error| error.to_string());
    let job = of("[a]\nsize=${SIZE}\nwrite_bw_log=${ANY}\n").unwrap();
    assert_eq!(job.size, Extent::Bytes(65_536));
    assert_eq!(
        of("[a]\nsize=${NONE}\n").unwrap_err(),
        "jobs/a.fio:2: size: the environment variable NONE is not set; set it: NONE=... ftlab run ..."
    );
    assert!(of("[a]\nnumjobs=$ncpus\n").unwrap_err().contains("numjobs: $ncpus is a figure of the machine"));
    // An option of a file that is included is refused at its place there.
    let why = of("[a]\nsize=64k\ninclude common.fio\n").unwrap_err();
    assert!(why.starts_with("jobs/more.fio:2: option foo is not read"), "{why}");
    assert!(
        of("[a]\ninclude none\n").unwrap_err().starts_with("jobs/a.fio:2: include none: jobs/none is not")
    );
    assert!(of("[a]\ninclude circle\n").unwrap_err().contains("16 files deep; do they go in a circle?"));
    assert!(
        of("[a]\ninclude sections\n")
            .unwrap_err()
            .starts_with("sections:1: [b]: a file that is included has")
    );
}

/// One job that says `exitall` is enough for all of them; each says what ends with it.
#[test]
fn who_ends_with_whom() {
    let of = |text: &str| {
        let jobs = parse("a.fio", &format!("[global]\nsize=1m\n{text}")).unwrap();
        jobs.iter().map(|job| (job.groupid, job.exits)).collect::<Vec<_>>()
    };
    let group = Some(Exits::Group);
    assert_eq!(
        of("[a]\nexitall\n[b]\nexit_what=all\n[c]\nnew_group\n[d]\nstonewall\n"),
        [(0, group), (0, Some(Exits::All)), (1, group), (2, group)]
    );
    assert_eq!(of("[a]\nexit_what=stonewall\n"), [(0, None)]);
}

#[test]
fn criteria_of_a_steady_load() {
    let of = |options: &str| only(options).map(|job| job.steady);
    let percent = Steady { count: 4, ..Steady::DEFAULT };
    assert_eq!(of("ss_dur=4\n").unwrap(), percent, "iops_slope:0.01%");
    let off = Steady { slope: false, limit: 5.5, ..percent };
    assert_eq!(of("ss=iops:5.5%\nss_dur=4500ms\n").unwrap(), off);
    let bytes = Steady { bytes: true, limit: 1_048_576.0, percent: false, ramp_ns: 2_000_000_000, ..percent };
    assert_eq!(of("steadystate=bw_slope:1m\nss_dur=4\nss_ramp=2\n").unwrap(), bytes);
    assert_eq!(of("ss_dur=8\nss_interval=2\n").unwrap().count, 4);
    assert_eq!(of("ss=bw:1%\n").unwrap().count, 0, "off without a duration");
    assert!(of("ss=iops\n").unwrap_err().contains("ss: \"iops\" has no limit"));
    assert!(of("ss=lat:5%\n").unwrap_err().contains("is not one of iops, bw, iops_slope, bw_slope"));
    assert!(of("ss=iops:x\n").unwrap_err().contains("is not a number from 0"));
    assert!(of("ss_interval=100ms\n").unwrap_err().contains("no less than a second"));
    assert!(of("ss_dur=1\nss_interval=2\n").unwrap_err().contains("less than steadystate_check_interval"));
    let text = "[global]\nsize=1m\n[a]\nss_dur=4\n[b]\n";
    assert!(refused(text).starts_with("a.fio:5: job \"b\": its steadystate options are not those of \"a\""));
    assert!(parse("a.fio", &text.replace("[b]", "[b]\nnew_group")).is_ok());
}

/// Several files lie one behind another; jobs share all of them, or none.
#[test]
fn several_files() {
    let of = |text: &str| {
        let jobs = parse("a.fio", &format!("[global]\nsize=60k\n{text}")).unwrap();
        let places = files(&jobs, 1 << 30)?;
        let of = |place: &Place| (place.first, place.bytes, place.each, place.file);
        Ok::<_, String>(places.iter().map(of).collect::<Vec<_>>())
    };
    let fifth = 20 << 10;
    assert_eq!(of("[a]\nnrfiles=3\n"), Ok(vec![(0, fifth, fifth, 3 * fifth)]));
    assert_eq!(of("[a]\nfilename=x:y:z\nnrfiles=2\n"), Ok(vec![(0, fifth, fifth, 3 * fifth)]));
    assert_eq!(of("[a]\nnrfiles=3\nsize=64k\n"), Ok(vec![(0, 21_845, 24 << 10, 72 << 10)]), "whole pages");
    assert_eq!(of("[a]\nnrfiles=2\nfilesize=8k\n"), Ok(vec![(0, 8192, 8192, 16_384)]));
    let two = of("[global]\nfilename=x:y\n[a]\n[b]\noffset=10k\n").unwrap();
    assert_eq!(two, [(0, 30 << 10, 40 << 10, 80 << 10), (10 << 10, 30 << 10, 40 << 10, 80 << 10)]);
    let some = of("[a]\nfilename=x:y\n[b]\nfilename=y\n").unwrap_err();
    assert!(some.contains("jobs \"a\" and \"b\" share some of their files and not all"), "{some}");
    assert!(of("[a]\nfilename=x:y\nsize=10%\n").unwrap_err().contains("cannot be one of several files"));
    assert!(only("filename=x:x\n").unwrap_err().contains("names a file twice"));
    assert!(only("nrfiles=2\nrw=trimwrite\n").unwrap_err().contains("has one file here"));
    assert!(only("file_service_type=zipf:1.1\n").unwrap_err().contains("is not one of roundrobin"));
}

/// The page names every option that is read, skipped or refused.
#[test]
fn the_page_has_every_option() {
    let page = include_str!("../../../../../docs/benchmarks.md");
    let refused = REFUSED.iter().chain(REFUSED_IN_A_CACHE).flat_map(|refused| refused.names);
    let mut names = options::all().flat_map(|(names, _)| *names).chain(PASSED_OVER).chain(refused);
    assert_eq!(names.find(|name| !page.contains(&format!("`{name}`"))), None);
}
