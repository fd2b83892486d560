//! The clients that the settings name, and whether their files fit.

use super::settings::Settings;
use crate::clients::fio::{self, Extent, Job, Mix};
use crate::clients::{Clients, Kind, Parameters};
use ftlab_core::config::Contradiction;
use ftlab_core::config::units::BYTES;

impl Clients {
    /// Returns the benchmark of `[workload.benchmark]`, if one is chosen.
    pub fn of_benchmark(settings: &Settings) -> Option<Clients> {
        let parameters = settings.files.benchmark.as_ref()?;
        Some(parameters.clients(settings.seed))
    }

    /// Returns the clients for the jobs of a fio job file, which have `user_bytes` of a device.
    ///
    /// # Errors
    /// A message that says what does not fit the configuration.
    pub fn of_jobs(jobs: &[Job], settings: &Settings, user_bytes: u64) -> Result<Clients, String> {
        let places = fio::files(jobs, user_bytes)?;
        let files = (0..).zip(&places).filter(|(worker, place)| place.owner == *worker);
        let needed: u128 = files.map(|(_, place)| u128::from(place.file)).sum();
        if let Some(free) = settings.data_bytes(user_bytes) {
            if let Some(job) = jobs.iter().find(|job| matches!(job.mix, Mix::Trims | Mix::TrimWrites)) {
                return Err(format!(
                    "job \"{}\" trims, which fio does on drives only, not in a file system; leave out \
                     host.page_cache",
                    job.name
                ));
            }
            let share = |extent| matches!(extent, Extent::Percent(_));
            if let Some(job) = jobs.iter().find(|job| share(job.size) || share(job.offset)) {
                return Err(format!(
                    "job \"{}\": size and offset are shares of a drive, and here they are of a file; write bytes, \
                     or leave out host.page_cache",
                    job.name
                ));
            }
            if needed > u128::from(free) {
                return Err(format!(
                    "size: the jobs' files take {needed} B together, the file system has {free} B"
                ));
            }
        } else {
            if let Some(job) = jobs.iter().find(|job| !job.direct) {
                return Err(format!(
                    "job \"{}\" goes through the page cache, and there is none; \
                     write direct=1, or set host.page_cache",
                    job.name
                ));
            }
            if needed > u128::from(user_bytes) {
                return Err(format!(
                    "size: the jobs' files take {needed} B together, the device has {user_bytes} B"
                ));
            }
        }
        Ok(fio::clients(jobs, &places, settings.seed))
    }
}

fn fail(key: &'static str, message: String) -> Result<(), Contradiction> {
    Err(Contradiction { key, message })
}

/// Checks that the benchmark fits the rest of the configuration.
///
/// # Errors
/// [`Contradiction`] naming the key to change.
pub(super) fn check(settings: &Settings) -> Result<(), Contradiction> {
    if settings.files.benchmark.is_some() && !settings.tenants.0.is_empty() {
        return fail("workload.benchmark.kind", TWO.into());
    }
    load(settings, settings.user_bytes())
}

/// Checks that the benchmark of a load fits `user_bytes` of a device, and that there is no other load.
pub(super) fn load(settings: &Settings, user_bytes: u64) -> Result<(), Contradiction> {
    let workload = &settings.workload;
    let others = [workload.trace.is_some(), workload.synthetic.is_some(), workload.fio_job.is_some()];
    if workload.fio_job.is_some() && (others[0] || others[1]) {
        let message = "a fio job is given as well as a trace (workload.trace) or a generator \
                       (workload.synthetic.requests); remove one of the two";
        return fail("workload.fio_job", message.into());
    }
    let Some(bench) = &settings.files.benchmark else { return Ok(()) };
    let kind = "workload.benchmark.kind";
    if others.contains(&true) {
        return fail(kind, TWO.into());
    }
    if settings.files.page_cache_bytes == 0 {
        let message = format!(
            "{} writes through the page cache, and there is none (host.page_cache); \
             the paper's phone has host.page_cache = \"512MiB\"",
            bench.kind.name()
        );
        return fail(kind, message);
    }
    if bench.ageing_runs >= bench.runs {
        let message = format!(
            "{} of {} runs (workload.benchmark.runs) are not measured; leave at least one",
            bench.ageing_runs, bench.runs
        );
        return fail("workload.benchmark.ageing_runs", message);
    }
    if bench.duration_ns == 0 {
        return fail("workload.benchmark.duration", "0ns measures nothing; write for example 60s".into());
    }
    if matches!(bench.kind, Kind::SysBench | Kind::FileBench) && bench.request > bench.file_size {
        let message = format!(
            "a request of {} does not fit in the file of {} (workload.benchmark.file_size)",
            BYTES.format(bench.request),
            BYTES.format(bench.file_size)
        );
        return fail("workload.benchmark.request", message);
    }
    space(settings, bench, user_bytes)
}

const TWO: &str = "a benchmark is given as well as a trace (workload.trace), a generator \
    (workload.synthetic.requests), a fio job (workload.fio_job) or tenants ([tenant.NAME]); remove one of the two";

/// Checks that the files and the file system's own blocks fit.
fn space(settings: &Settings, bench: &Parameters, user_bytes: u64) -> Result<(), Contradiction> {
    let files = match bench.kind {
        Kind::PostMark => u128::from(bench.files) * 2,
        Kind::SysBench | Kind::FileBench => 1,
        Kind::DBench => u128::from(bench.clients),
    };
    let needed = files * u128::from(bench.file_size);
    let free = settings.data_bytes(user_bytes).unwrap_or(0);
    // Deleted files keep their blocks until the journal has committed, hence a quarter more.
    if needed * 5 / 4 > u128::from(free) {
        let message = format!(
            "{} needs {} for its files, and the file system has {} for data \
             (less workload.benchmark.file_size, or a larger flash.blocks_per_plane)",
            bench.kind.name(),
            BYTES.format(needed as u64),
            BYTES.format(free)
        );
        return Err(Contradiction { key: "workload.benchmark.kind", message });
    }
    Ok(())
}
