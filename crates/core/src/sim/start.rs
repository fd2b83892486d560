//! How a simulation is made from a device at time 0 and what feeds it.

use super::feed::Feed;
use super::instant::{Checker, Seen};
use super::report::{Extent, Sampler};
use super::tenants::Tenants;
use super::{Observer, Prepared, RunError, Simulation, prepare};
use crate::clock::NEVER;
use crate::device::{Device, Used};
use crate::ftl::{Ftl, LookUp, Prepare};
use crate::host::{Above, Arrivals, Dependent, Host, Replayed, Sender, Several, Submitted};
use crate::metrics::{Recorder, Report};
use crate::settings::{Replay, Settings};
use crate::workload::{Source, SourceError};

/// Preconditions the device and runs one simulation to its end.
///
/// # Errors
/// [`RunError`] if the source fails, if the observer stops the run or, with `check`, if an invariant does not hold.
pub fn run(
    settings: &Settings,
    source: &mut (dyn Source + Send),
    observer: &mut dyn Observer,
    check: bool,
) -> Result<Report, RunError> {
    let prepared = Prepared::new(settings, observer, check)?;
    run_prepared(settings, prepared, source, observer)
}

/// Runs one simulation on a device that was prepared for the same settings, or for settings with the same
/// [`Identity`].
///
/// # Errors
/// The errors of [`run`].
pub fn run_prepared(
    settings: &Settings,
    prepared: Prepared,
    source: &mut (dyn Source + Send),
    observer: &mut dyn Observer,
) -> Result<Report, RunError> {
    Simulation::replay(settings, prepared, source)?.run(observer)
}

/// Runs one simulation as [`run_prepared`] does, with a sender for each tenant.
///
/// # Errors
/// The errors of [`run`].
pub fn run_tenants(
    settings: &Settings,
    prepared: Prepared,
    senders: &mut [Sender],
    observer: &mut dyn Observer,
) -> Result<Report, RunError> {
    Simulation::several(settings, prepared, senders)?.run(observer)
}

/// Returns when the first request arrives, ns; `None` if that is not known yet.
fn first_arrival_ns(feed: &Feed) -> Option<u64> {
    match feed {
        Feed::Submitted(_) => None,
        // Clients are asked first when their timer expires.
        _ => Some(feed.next_ns().min(feed.timer_ns())).filter(|&at_ns| at_ns != NEVER).or(Some(0)),
    }
}

/// Prepares device and FTL for a host that holds mapping entries, or for one that holds none.
fn serve_host_map(host: &Host, device: &mut Device, ftl: &mut Ftl) {
    let (subregion, most) = host.held_sizes().unwrap_or_default();
    ftl.serve_host_map(subregion);
    if subregion > 0 {
        device.take_entries(most);
    }
}

impl<'a> Simulation<'a> {
    /// Makes a simulation of a device at time 0, for submitted requests. The device was prepared for the same
    /// settings, or for settings with the same [`Identity`].
    pub fn new(settings: &Settings, prepared: Prepared) -> Simulation<'a> {
        let host = Host::new(settings, &prepared.ftl, false);
        let submitted = Submitted::new(settings, host.merges());
        Simulation::fed(settings, prepared, host, Feed::Submitted(submitted))
    }

    /// Makes a simulation as [`Simulation::new`] does, with a source to replay.
    ///
    /// # Errors
    /// The source's error.
    pub fn replay(
        settings: &Settings,
        prepared: Prepared,
        source: &'a mut (dyn Source + Send),
    ) -> Result<Simulation<'a>, SourceError> {
        let feed = match settings.workload.replay {
            Replay::Dependent => Feed::Dependent(Box::new(Dependent::new(source, settings)?)),
            Replay::Open | Replay::Closed => Feed::Replayed(Replayed::new(source, settings)?),
        };
        let host = Host::new(settings, &prepared.ftl, false);
        Ok(Simulation::fed(settings, prepared, host, feed))
    }

    /// Makes a simulation as [`Simulation::new`] does, with a sender for each tenant.
    ///
    /// # Errors
    /// The sources' errors.
    pub fn several(
        settings: &Settings,
        prepared: Prepared,
        senders: &'a mut [Sender],
    ) -> Result<Simulation<'a>, SourceError> {
        let several = Several::new(senders, settings)?;
        let clients = several.has_clients();
        let host = Host::new(settings, &prepared.ftl, clients);
        let feed = if clients { Feed::Above(Box::new(several)) } else { Feed::Several(several) };
        Ok(Simulation::fed(settings, prepared, host, feed))
    }

    /// Makes a simulation as [`Simulation::new`] does, with a feed that is told about completions: for example clients
    /// with a file system and a page cache.
    pub fn below(
        settings: &Settings,
        prepared: Prepared,
        above: Box<dyn Above + Send + 'a>,
    ) -> Simulation<'a> {
        let host = Host::new(settings, &prepared.ftl, true);
        Simulation::fed(settings, prepared, host, Feed::Above(above))
    }

    pub(super) fn fed(settings: &Settings, prepared: Prepared, host: Host, feed: Feed<'a>) -> Simulation<'a> {
        let Prepared { mut ftl, mut work, done: precondition, check, tape } = prepared;
        if settings.allocates_by_speed() {
            ftl.choose_by_speed(settings.placement(), settings, work.cells());
        }
        if let Some(how) = settings.ftl.gc_background {
            ftl.collect_in_background(how);
        }
        prepare::begin_errors(settings, &mut work);
        let lpns = ftl.logical_pages();
        let mut device = Device::new(settings);
        serve_host_map(&host, &mut device, &mut ftl);
        prepare::set_steps(settings, &device, host.pads(), &mut work);
        if let Some(tape) = tape {
            device.keep_tape(tape);
        }
        if settings.results.miss_curve {
            device.keep_lookups(&ftl);
        }
        if settings.energy.has_power() {
            device.keep_awake();
        }
        device.keep_versions(check && matches!(feed, Feed::Above(_)));
        let first_ns = first_arrival_ns(&feed);
        let tenants = Tenants::new(settings).map(Box::new);
        if tenants.is_some() {
            device.tell_apart(settings.tenants.0.iter().map(|tenant| tenant.own.priority).collect(), &work);
        }
        let mut used = Used::default();
        device.used(0, &mut used);
        let timed = device.has_stages() || host.waits() || matches!(feed, Feed::Above(_));
        Simulation {
            settings: settings.clone(),
            now_ns: 0,
            extent: Extent {
                first_ns,
                last_ns: 0,
                outlasts: device.tasks.any() || host.pads(),
                used_before: None,
                used,
            },
            feed,
            host,
            ftl,
            work,
            done: Vec::with_capacity(256),
            recorder: Recorder::new(lpns),
            tenants,
            completed: 0,
            seen: Seen::new(device.has_stages()),
            precondition,
            device,
            undecided: true,
            timed,
            check: check.then(|| Checker::new(lpns)),
            sampler: Sampler::new(settings, first_ns),
            power: None,
            off: false,
        }
    }
}
