//! Checks of several keys of workload and host against each other.

mod tenants;

use super::sched::needs;
use super::settings::Settings;
use crate::config::units::BYTES;
use crate::config::{Contradiction, Ignored, Value, Values};
use crate::workload::settings::{Arrival, Replay, Workload};

const HUNDRED_YEARS_NS: u128 = 100 * 365 * 86_400 * 1_000_000_000;

/// Checks `settings`, which were read from `values`.
pub(crate) fn check(settings: &Settings, values: &Values) -> Result<(), Contradiction> {
    let Settings { workload, host, .. } = settings;
    replay(workload, host.queue_depth)?;
    merges(settings)?;
    generator(workload, settings.user_bytes(), settings, values)?;
    tenants::check(settings)
}

/// Collects the keys that the chosen scheduler and load ignore, with the reason.
pub(crate) fn ignored(settings: &Settings, found: &mut Ignored) {
    let name = &settings.host.scheduler;
    let chosen = format!("host.scheduler = \"{name}\"");
    let needs = needs(name);
    found.unless(needs.deadline, &["host.deadline"], &format!("{chosen} dispatches nothing by deadline"));
    found.unless(needs.batches, &["host.late"], &format!("{chosen} takes no batch along"));
    found.unless(settings.host.deadline_ns.is_some(), &["host.late"], "host.deadline = \"none\"");
    found.unless(needs.hits, &["host.awareness"], &format!("{chosen} does not ask for cached mappings"));
    let orders = needs.hits || needs.translation_pages;
    found.unless(orders, &["host.alternate"], &format!("{chosen} has an order of its own"));
    super::sched::own_ignored(&[name], &|_| chosen.clone(), found);
    // By default, only requests from a page cache merge.
    let recorded = settings.workload.trace.is_some() || settings.workload.synthetic.is_some();
    let clients = !recorded && settings.tenants.0.is_empty();
    let merges = settings.host.merge_limit.map_or(clients, |limit| limit > 0);
    found.unless(merges, &["host.merge_boundary"], "nothing merges (host.merge_limit)");
    tenants::ignored(settings, found);
    crate::workload::settings::ignored(&settings.workload, found);
}

fn fail<T>(key: &'static str, message: String) -> Result<T, Contradiction> {
    Err(Contradiction { key, message })
}

fn replay(workload: &Workload, depth: u32) -> Result<(), Contradiction> {
    if workload.replay == Replay::Closed && depth == u32::MAX {
        let message = "closed replay (workload.replay) keeps host.queue_depth requests outstanding, \
                       so it needs a number here, not \"unlimited\"";
        return fail("host.queue_depth", message.into());
    }
    if workload.replay == Replay::Open && workload.format == "notimes" && workload.trace.is_some() {
        let message = "a trace of workload.format \"notimes\" has no arrival times, \
                       so it can only be replayed \"closed\"";
        return fail("workload.replay", message.into());
    }
    if workload.fio_time_unit_ns == Some(0) {
        return fail("workload.fio_time_unit", "a unit of 0ns; write 1us or 1ns".into());
    }
    Ok(())
}

/// Refuses a scheduler that avoids copies in merges if the FTL below has no merges: the scheduler would only write
/// more.
fn merges(settings: &Settings) -> Result<(), Contradiction> {
    let name = &settings.host.scheduler;
    if needs(name).merges && !crate::ftl::is_hybrid(settings) {
        let message = format!(
            "\"{name}\" makes flash blocks whole for the FTL's merges, and ftl.kind = \"{}\" has none; \
             choose \"bast\" or \"fast\" there, or another scheduler",
            settings.ftl.kind
        );
        return fail("host.scheduler", message);
    }
    Ok(())
}

/// Checks the generator of a load that has `user` bytes of addresses.
fn generator(
    workload: &Workload,
    user: u64,
    settings: &Settings,
    values: &Values,
) -> Result<(), Contradiction> {
    let Some(generator) = &workload.synthetic else { return Ok(()) };
    if workload.trace.is_some() {
        let message =
            "a trace is given as well as a generator (workload.synthetic.requests); remove one of the two";
        return fail("workload.trace", message.into());
    }
    if generator.read_ppm + generator.trim_ppm > 1_000_000 {
        let message = "more than 100% together with workload.synthetic.read_share";
        return fail("workload.synthetic.trim_share", message.into());
    }
    let region = generator.region.unwrap_or(user);
    if region > user {
        let message = format!(
            "{} is beyond the user capacity of {} (raw {}, less ftl.over_provisioning)",
            BYTES.format(region),
            BYTES.format(user),
            BYTES.format(settings.flash.raw_bytes())
        );
        return fail("workload.synthetic.region", message);
    }
    let largest = generator.size_range().1;
    if largest > region {
        let message = format!(
            "a request of {} does not fit in the region of {} (workload.synthetic.region)",
            BYTES.format(largest),
            BYTES.format(region)
        );
        let of_reads = generator.read_sizes.range().1 == largest;
        let stated =
            if of_reads { "workload.synthetic.read_sizes" } else { "workload.synthetic.write_sizes" };
        let mixed = matches!(values.get(stated), Some(Value::SizeMix(_)));
        return fail(if mixed { stated } else { "workload.synthetic.size" }, message);
    }
    let (gap, gap_ns) = match generator.arrival {
        Arrival::Bursts
            if generator.pause_ppm > 0
                && generator.pause_ns > generator.burst_gap_ns.max(generator.interarrival_ns) =>
        {
            ("workload.synthetic.pause", generator.pause_ns)
        }
        Arrival::Bursts if generator.burst_gap_ns > generator.interarrival_ns => {
            ("workload.synthetic.burst_gap", generator.burst_gap_ns)
        }
        _ => ("workload.synthetic.interarrival", generator.interarrival_ns),
    };
    if u128::from(generator.requests) * u128::from(gap_ns) > HUNDRED_YEARS_NS {
        let message =
            "with workload.synthetic.requests this many, the last arrives after more than 100 years";
        return fail(gap, message.into());
    }
    Ok(())
}
