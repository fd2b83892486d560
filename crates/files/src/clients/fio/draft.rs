//! A section of a job file that is being read.

use super::files::part;
use super::passed::Refused;
use super::values::{KIBI, grouped};
use super::{
    Distribution, Engine, Exits, Extent, Job, Mix, Pattern, Service, Sizes, Steady, Strides, Sync, Think,
};

/// The job so far, and the options from which the rest of it follows.
#[derive(Clone)]
pub(super) struct Draft {
    pub job: Job,
    /// What a `k` is (`kb_base`).
    pub kilo: u64,
    /// Share of reads in a mix, percent.
    pub share: u64,
    pub bs: [u64; 3],
    pub ranges: [Option<(u64, u64)>; 3],
    pub splits: [Option<Vec<(u64, u64)>>; 3],
    /// Number of requests of a group, and whether they repeat the first.
    pub group: (u64, bool),
    pub size: Option<Extent>,
    pub filesize: u64,
    pub io_size: Option<Extent>,
    pub rate_iops: [u64; 3],
    pub directory: Option<String>,
    pub filename_format: Option<String>,
    /// What `filename` names, and the number of files without it.
    pub names: Vec<String>,
    pub files: u64,
    pub lfsr: bool,
    /// Whether `zonemode` is `strided`.
    pub strided: bool,
    pub zone_bytes: u64,
    pub zone_range: u64,
    pub zone_skip: u64,
    /// Whether there is a `verify`, a `verify_pattern`, and not `do_verify=0`.
    pub verify: (Option<bool>, bool, bool),
    /// `iodepth_low` and `iodepth_batch_complete_min`.
    pub low: u64,
    pub batch: u64,
    pub wall: bool,
    pub new_group: bool,
    pub exitall: bool,
    pub exit_what: Exits,
    /// Time over which the load has to be steady, ns.
    pub steady_ns: u64,
    /// What the page cache, if the job goes through it, would have to do.
    pub of_the_cache: Vec<(String, &'static Refused)>,
    /// What the user is told.
    pub notes: Vec<String>,
}

impl Draft {
    pub fn new() -> Draft {
        Draft {
            job: job(),
            kilo: KIBI,
            share: 50,
            bs: [4096; 3],
            ranges: [None; 3],
            splits: [const { None }; 3],
            group: (1, false),
            size: None,
            filesize: 0,
            io_size: None,
            rate_iops: [0; 3],
            directory: None,
            filename_format: None,
            names: Vec::new(),
            files: 1,
            lfsr: false,
            strided: false,
            zone_bytes: 0,
            zone_range: 0,
            zone_skip: 0,
            verify: (None, false, true),
            low: 0,
            batch: 1,
            wall: false,
            new_group: false,
            exitall: false,
            exit_what: Exits::Group,
            steady_ns: 0,
            of_the_cache: Vec::new(),
            notes: Vec::new(),
        }
    }

    /// Returns the job, which follows these jobs in the file, and adds to the notes.
    pub fn finish(mut self, name: &str, before: &[Job], notes: &mut Vec<String>) -> Result<Job, String> {
        self.job.name = name.into();
        self.job.steady.count = self.figures()?;
        if let Some(last) = before.last() {
            self.job.stage = last.stage + u32::from(self.wall);
            self.job.groupid = last.groupid + u32::from(self.wall || self.new_group);
            if last.groupid == self.job.groupid && last.steady != self.job.steady {
                return Err(format!(
                    "its steadystate options are not those of \"{}\", and fio refuses that within a group; write \
                     them in [global], or new_group",
                    last.name
                ));
            }
        }
        if let Mix::Mixed(share) = &mut self.job.mix {
            *share = self.share;
        }
        if !self.job.direct
            && let Some((set, refused)) = self.of_the_cache.first()
        {
            return Err(format!("{set}: {}", refused.instead));
        }
        self.job.block = self.blocks()?;
        self.job.map |= self.lfsr;
        self.job.group = grouped(self.group.0, self.group.1);
        let (verify, pattern, does) = self.verify;
        self.job.verify =
            verify.unwrap_or(pattern) && does && !matches!(self.job.mix, Mix::Reads | Mix::Trims);
        self.job.refill = self.refill();
        self.job.file = self.file()?;
        self.job.files = if self.names.is_empty() { self.files } else { self.names.len() as u64 };
        if self.job.files > 1 && self.job.mix == Mix::TrimWrites {
            return Err("nrfiles: a job that trims and writes has one file here; write numjobs=".into());
        }
        (self.job.size, self.job.io_size) = self.extents()?;
        if self.job.time_based && self.job.runtime_ns.is_none() {
            // As fio says itself.
            notes.push(format!("job \"{name}\": time_based is ignored without a runtime"));
            self.job.time_based = false;
        }
        if self.rate_iops != [0; 3] {
            if self.job.rate != [0; 3] {
                return Err("rate and rate_iops exclude each other; remove one".into());
            }
            self.job.rate =
                [0, 1, 2].map(|half| self.rate_iops[half].saturating_mul(self.job.block[half].least()));
        }
        self.job.strides = self.strides()?;
        if matches!((self.job.offset, self.job.size), (Extent::Bytes(_), Extent::Bytes(_))) {
            part(&self.job, u64::MAX)?;
        }
        Ok(self.job)
    }

    /// Returns the sizes of each direction: `bssplit` is above `bsrange`, and that above `bs`, in whatever order.
    fn blocks(&self) -> Result<[Sizes; 3], String> {
        let mut blocks = self.bs.map(Sizes::One);
        for (half, block) in blocks.iter_mut().enumerate() {
            *block = match (&self.splits[half], self.ranges[half]) {
                (Some(_), Some(_)) => return Err("bssplit and bsrange exclude each other; remove one".into()),
                (Some(sizes), None) => Sizes::Split(sizes.clone()),
                (None, Some((least, most))) if least < most => Sizes::Range(least, most),
                (None, Some((size, _))) => Sizes::One(size),
                (None, None) => continue,
            };
        }
        Ok(blocks)
    }

    /// Returns the number of requests outstanding at which a queue that was full is filled again: fio takes at least
    /// `batch` completions at a time, until no more than `low` are left.
    fn refill(&self) -> u32 {
        let depth = u64::from(self.job.iodepth);
        let low = if self.low == 0 { depth } else { self.low.min(depth) };
        let batch = self.batch.clamp(1, depth);
        depth.saturating_sub((depth - low).div_ceil(batch).max(1) * batch) as u32
    }

    /// Returns the names of the files that the job's workers share.
    fn file(&self) -> Result<Option<String>, String> {
        let name = &self.job.name;
        let within =
            |file: &str| self.directory.as_ref().map_or(file.into(), |folder| format!("{folder}/{file}"));
        if !self.names.is_empty() {
            if self.directory.as_ref().is_some_and(|folders| folders.contains(':')) {
                return Err("directory: a job with a filename has one; write a job for each".into());
            }
            return Ok(Some(self.names.iter().map(|name| within(name)).collect::<Vec<_>>().join(":")));
        }
        // As in fio, a job that is named as a drive is one on the drive.
        if name.starts_with("/dev/") {
            return Ok(Some(name.clone()));
        }
        let Some(format) = &self.filename_format else { return Ok(None) };
        match (format.contains("$jobname"), format.contains("$jobnum")) {
            (true, true) => Ok(None),
            (false, true) => Err("filename_format: without $jobname, workers of several jobs share files; \
                                  add it, or write filename="
                .into()),
            _ => Ok(Some(within(&format.replace("$jobname", name)))),
        }
    }

    /// Returns the job's part of its file, and how many bytes it transfers, if not as many.
    fn extents(&self) -> Result<(Extent, Option<u64>), String> {
        let size = match (self.size, &self.job.file, self.filesize) {
            (Some(size), _, _) => size,
            (None, None, 0) => {
                let name = &self.job.name;
                return Err(format!(
                    "no size and no drive; write for example size=64m, or filename=/dev/{name} for all of it"
                ));
            }
            // The drive, or what is behind the offset.
            (None, _, _) => Extent::Percent(100),
        };
        let io_size = match (self.io_size, size) {
            (Some(Extent::Bytes(bytes)), _) => Some(bytes),
            (None | Some(Extent::Percent(100)), _) => None,
            (Some(Extent::Percent(percent)), Extent::Bytes(size)) => {
                Some((u128::from(size) * u128::from(percent) / 100) as u64)
            }
            _ => return Err("io_size: a share of a share of the drive; write bytes".into()),
        };
        if self.filesize == 0 {
            return Ok((size, io_size));
        }
        // As in fio, addresses are those of the file, and what is transferred is `size` of it.
        let Extent::Bytes(offset) = self.job.offset else {
            return Err("filesize: with an offset in percent; write bytes".into());
        };
        let file = self.filesize.checked_sub(offset).filter(|&bytes| bytes > 0);
        let file = file.ok_or("filesize: the offset is behind its end")?.saturating_mul(self.job.files);
        let all = match size {
            Extent::Bytes(bytes) => bytes.min(file),
            Extent::Percent(100) => file,
            Extent::Percent(_) => return Err("filesize: with a size in percent; write bytes".into()),
        };
        Ok((Extent::Bytes(file), io_size.or((all < file).then_some(all))))
    }

    /// Returns the number of figures over which the load has to be steady: as fio, in whole seconds.
    fn figures(&self) -> Result<u64, String> {
        let [duration, interval] = [self.steady_ns, self.job.steady.interval_ns].map(|ns| ns / 1_000_000_000);
        if duration > 1_000_000 {
            return Err("steadystate_duration: more than 1,000,000 s; write less".into());
        }
        if duration > 0 && duration < interval {
            return Err("steadystate_duration: less than steadystate_check_interval; write more".into());
        }
        Ok(duration / interval)
    }

    /// Returns the zones, if the job has any.
    fn strides(&self) -> Result<Option<Strides>, String> {
        let bytes = self.zone_bytes;
        match (self.strided, bytes > 0) {
            (false, false) => return Ok(None),
            (false, true) => {
                return Err("zonesize without zonemode=strided; add it, or leave both out".into());
            }
            (true, false) => {
                return Err("zonemode=strided without zonesize; write for example zonesize=4k".into());
            }
            (true, true) => {}
        }
        let range = if self.zone_range > 0 { self.zone_range } else { bytes };
        Ok(Some(Strides { bytes, range, skip: self.zone_skip }))
    }
}

/// Returns a job with fio's defaults.
fn job() -> Job {
    Job {
        name: String::new(),
        pattern: Pattern::Sequential,
        mix: Mix::Reads,
        block: [const { Sizes::One(4096) }; 3],
        align: [None; 3],
        engine: Engine::Waits,
        iodepth: 1,
        refill: 0,
        file: None,
        files: 1,
        open_files: 0,
        service: Service::InTurn(1),
        offset: Extent::Bytes(0),
        offset_increment: Extent::Bytes(0),
        offset_align: 0,
        size: Extent::Bytes(0),
        io_size: None,
        number_ios: 0,
        loops: 1,
        strides: None,
        distribution: Distribution::Random,
        map: true,
        repeat: true,
        random_percent: [100; 3],
        group: grouped(1, false),
        stride: 0,
        fsync: 0,
        fdatasync: 0,
        end_fsync: false,
        sync: Sync::None,
        verify: false,
        verify_backlog: (0, 0),
        rate: [0; 3],
        poisson: false,
        think: Think { ns: 0, requests: 1, issued: false },
        delay_ns: 0,
        ramp_ns: 0,
        runtime_ns: None,
        time_based: false,
        numjobs: 1,
        direct: false,
        stage: 0,
        groupid: 0,
        group_reporting: false,
        exits: None,
        steady: Steady::DEFAULT,
    }
}
