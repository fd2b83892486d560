//! All settings of a run, and the keys of `[host]` above the block layer: page cache, file system and their host.

use crate::cache::{FlushPolicy, PAGE};
use crate::chosen;
use crate::clients::Parameters;
use crate::fs::{BLOCK, Mkfs};
use ftlab_core::config::section::{ANY_TIME, OPERATION, bytes, share};
use ftlab_core::config::section::{Switched, defaults, keys};
use ftlab_core::config::{Contradiction, Ignored, Kind, over, section};
use ftlab_core::config::{Key, Section, Values};
use ftlab_core::settings as core;
use ftlab_core::workload::tenants::{self, Tenants};

section! {
    /// Everything that a run reads. The settings of each layer are a field of the layer above; a function
    /// takes those of its own layer.
    #[derive(Clone, Debug, PartialEq)]
    pub struct Settings {
        /// Settings of the stack, from the block layer down.
        below: core::Settings;
        /// File system and page cache.
        files: Files;
        /// The benchmarks of tenants.
        benchmarks: Benchmarks;
    }
}

/// The benchmark of each tenant that has one, in the order of the tenants' names.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Benchmarks(pub Vec<(String, Parameters)>);

/// A tenant's keys are those of `[workload.benchmark]` under another name.
impl Section for Benchmarks {
    fn declare(_: &mut Vec<Key>) {}

    fn read(values: &Values) -> Benchmarks {
        let benchmark = |(name, stated): (String, Values)| {
            let mut values = defaults::<Parameters>();
            values.extend(stated);
            Some((name, Parameters::read_if_on(&values)?))
        };
        Benchmarks(tenants::stated(values).into_iter().filter_map(benchmark).collect())
    }
}

over!(Settings, below: core::Settings);

/// Supplies the file host's defaults.
impl From<core::Settings> for Settings {
    fn from(below: core::Settings) -> Settings {
        Settings { below, files: Files::default(), benchmarks: Benchmarks::default() }
    }
}

impl Settings {
    /// Reads the typed settings from complete, individually checked values.
    ///
    /// # Errors
    /// [`Contradiction`] where values do not fit together.
    ///
    /// # Panics
    /// If a key with a default is missing from `values` or holds another kind's value.
    pub fn from_values(values: &Values) -> Result<Settings, Contradiction> {
        let mut settings = Settings::read(values);
        settings.below.complete();
        settings.below.check(values)?;
        check(&settings)?;
        Ok(settings)
    }

    /// Returns the keys that the chosen parts ignore, each with the reason.
    pub fn ignored(&self) -> Vec<Contradiction> {
        let mut found = Ignored::default();
        let of_tenants = self.tenants.0.iter().any(|tenant| tenant.clients);
        let clients = self.files.benchmark.is_some() || self.workload.fio_job.is_some() || of_tenants;
        let none = "a trace or a generator enters below the page cache; \
                    clients are workload.benchmark.kind and workload.fio_job";
        found.section::<Files>(clients, &["workload.benchmark.kind"], none);
        let cached = self.files.page_cache_bytes > 0;
        found.unless(cached, &CACHE, "there is no page cache (host.page_cache)");
        for tenant in &self.tenants.0 {
            let mut of_load = Ignored::default();
            let chosen = self.benchmarks.0.iter().any(|(name, _)| *name == tenant.name);
            let none = "there is no benchmark (workload.benchmark.kind)";
            of_load.section::<Parameters>(chosen, &["workload.benchmark.kind"], none);
            let own = of_load.into_vec().into_iter().map(|one| tenants::of_tenant(&tenant.name, one));
            own.for_each(|one| found.add(one));
        }
        let below = self.below.ignored().into_vec();
        found.into_vec().into_iter().chain(below).collect()
    }

    /// Returns the bytes for data in a file system on `user_bytes`, if there is one.
    pub(super) fn data_bytes(&self, user_bytes: u64) -> Option<u64> {
        Some(self.files.mkfs()?.data_bytes(user_bytes))
    }

    /// Returns the settings of the tenant with this number, as those of a load that has a device for itself. Tenants
    /// with the same generator draw other numbers.
    pub fn of_tenant(&self, number: u16) -> Settings {
        let tenant = &self.tenants.0[usize::from(number)];
        let mut own = self.clone();
        own.workload = tenant.workload.clone();
        own.tenants = Tenants::default();
        own.seed = self.seed.wrapping_add(number.into());
        let benchmark = self.benchmarks.0.iter().find(|(name, _)| *name == tenant.name);
        own.files.benchmark = benchmark.map(|(_, parameters)| parameters.clone());
        own
    }
}

/// Returns every key of this build.
pub fn all() -> Vec<Key> {
    keys::<Settings>()
}

/// Keys that matter only if there is a page cache.
const CACHE: [&str; 10] = [
    "host.flush_policy",
    "host.dirty_background_ratio",
    "host.dirty_ratio",
    "host.dirty_writeback",
    "host.dirty_expire",
    "host.read_ahead",
    "host.global_tree",
    "host.journal",
    "host.journal_commit",
    "host.barriers",
];

const PER_BYTE: Kind = Kind::TimePerByte;

section! {
    /// Page cache, file system and their host.
    #[derive(Clone, Debug, PartialEq)]
    pub struct Files {
        /// Memory of the page cache above the scheduler, for benchmarks and fio jobs; a trace enters below it.
        page_cache_bytes: u64 = "host.page_cache", bytes(0, 1 << 40), "0B";
        /// Which dirty pages the page cache flushes together.
        flush_policy: FlushPolicy = "host.flush_policy", "auto";
        /// Dirty share of the page cache beyond which write-back starts (Linux 2.6.32).
        background_ppm: u64 = "host.dirty_background_ratio", share(1, 1_000_000), "10%";
        /// Dirty share of the page cache beyond which writers wait (Linux 2.6.32).
        dirty_ppm: u64 = "host.dirty_ratio", share(1, 1_000_000), "20%";
        /// Time between two checks by the flusher for old dirty data, at least 1ms (Linux 2.6.32: 500
        /// centiseconds).
        writeback_ns: Option<u64> = "host.dirty_writeback", ANY_TIME or "never", "5s";
        /// Age at which dirty data is old enough for the flusher (Linux 2.6.32: 3000 centiseconds).
        expire_ns: u64 = "host.dirty_expire", ANY_TIME, "30s";
        /// Largest number of bytes that sequential reads through the page cache read ahead.
        read_ahead_bytes: u64 = "host.read_ahead", bytes(0, 1 << 30), "128KiB";
        /// Keep a tree over logical pages that finds the dirty pages of all files (Shim et al., TC 2014), and count its
        /// memory; flush_policy block always keeps it.
        global_tree: bool = "host.global_tree", "false";
        /// Host time of each operation of a client; auto: 10us for one that goes through the page cache, and nothing
        /// for one that goes past it, so that a job keeps the depth that it asks for.
        operation_ns: Option<u64> = "host.operation_time", ANY_TIME or "auto", "auto";
        /// Host time of each byte copied to or from the page cache.
        copy_ps: u64 = "host.copy_time", PER_BYTE, "1ns";
        /// Processor time for each page of 4KiB that a request moves between flash and memory, where no DMA
        /// does it; meanwhile the device gets no other request and no client continues.
        flash_cpu_ns: u64 = "host.flash_cpu", OPERATION, "0ns";
        /// Bytes of the file system's journal; auto: what mke2fs chooses for a file system of this size (16MiB for
        /// 512MiB).
        journal_bytes: Option<u64> = "host.journal", bytes(1 << 18, 1 << 40) or "auto", "auto";
        /// Age at which a transaction of the journal is committed without an fsync (ext4: 5 s).
        commit_ns: u64 = "host.journal_commit", ANY_TIME, "5s";
        /// Trim the blocks of deleted files when the deletion has been committed (mount -o discard).
        discard: bool = "host.discard", "false";
        /// Flush the device before and after each commit block of the journal (ext4: barrier=1).
        barriers: bool = "host.barriers", "true";
        /// The benchmark, if one is chosen.
        benchmark: Option<Parameters>;
    }
}

impl Files {
    /// Returns how the file system is made; `None` if there is no page cache: the device is then used bare.
    pub(crate) fn mkfs(&self) -> Option<Mkfs> {
        (self.page_cache_bytes > 0).then_some(Mkfs { journal_bytes: self.journal_bytes })
    }
}

/// The shortest period of the flusher. Each of its wake-ups is an instant of the simulation, and Linux counts in
/// hundredths of a second.
const LEAST_PERIOD_NS: u64 = 1_000_000;

/// The smallest number of blocks of a device with a file system.
const LEAST: u64 = 256;

/// Checks the keys of page cache and file system, and whether the benchmark fits them.
fn check(settings: &Settings) -> Result<(), Contradiction> {
    page_cache(&settings.files)?;
    let tenants = &settings.tenants.0;
    if tenants.is_empty() {
        file_system(settings, settings.user_bytes())?;
    }
    chosen::check(settings)?;
    let ranges = settings.tenants.ranges(settings.user_bytes(), settings.ftl.logical_page_bytes.into());
    for (number, (tenant, range)) in (0..).zip(tenants.iter().zip(ranges)) {
        let (own, bytes) = (settings.of_tenant(number), range.to - range.from);
        if let Err(fault) = file_system(&own, bytes) {
            let message = format!("too small for a file system (host.page_cache): {}", fault.message);
            return Err(Contradiction { key: tenants::path_of(&tenant.name, "range"), message });
        }
        chosen::load(&own, bytes).map_err(|fault| tenants::of_tenant(&tenant.name, fault))?;
    }
    Ok(())
}

fn page_cache(files: &Files) -> Result<(), Contradiction> {
    if files.page_cache_bytes > 0 && files.page_cache_bytes < 64 * PAGE {
        let message = "fewer than 64 pages of 4KiB; give at least 256KiB, or 0B for none";
        return Err(Contradiction { key: "host.page_cache", message: message.into() });
    }
    if files.background_ppm > files.dirty_ppm {
        let message = "above host.dirty_ratio, at which writers already wait; choose a smaller share";
        return Err(Contradiction { key: "host.dirty_background_ratio", message: message.into() });
    }
    if files.writeback_ns.is_some_and(|period_ns| period_ns < LEAST_PERIOD_NS) {
        let message =
            "below 1ms the flusher would hardly sleep, and the run would not end; write 5s, or \"never\"";
        return Err(Contradiction { key: "host.dirty_writeback", message: message.into() });
    }
    Ok(())
}

/// Checks that a file system fits into `user_bytes`.
fn file_system(settings: &Settings, user_bytes: u64) -> Result<(), Contradiction> {
    let Some(data_bytes) = settings.data_bytes(user_bytes) else { return Ok(()) };
    let blocks = user_bytes / BLOCK;
    if blocks < LEAST || blocks > u64::from(u32::MAX) {
        // A trace needs no file system, and may well come with a device too small or too large for one.
        if settings.files.benchmark.is_none() && settings.workload.fio_job.is_none() {
            return Ok(());
        }
        let message =
            "a file system needs from 1MiB to 16TiB of user capacity; change flash.blocks_per_plane";
        return Err(Contradiction { key: "host.page_cache", message: message.into() });
    }
    if data_bytes < 16 * BLOCK {
        let message = "the journal leaves the files no room; make it smaller or raise flash.blocks_per_plane";
        return Err(Contradiction { key: "host.journal", message: message.into() });
    }
    Ok(())
}

#[cfg(test)]
#[path = "settings_tests.rs"]
mod tests;
