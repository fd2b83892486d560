//! Checks of a load's keys against each other.

use crate::config::units::BYTES;
use crate::config::{Contradiction, Value, Values};
use crate::host::settings::Settings;
use crate::workload::settings::{Arrival, Replay, Workload};

const HUNDRED_YEARS_NS: u128 = 100 * 365 * 86_400 * 1_000_000_000;

/// Returns the contradiction at a key.
pub(super) fn fail<T>(key: &'static str, message: String) -> Result<T, Contradiction> {
    Err(Contradiction { key, message })
}

/// Checks how a load is replayed, whose closed replay keeps `depth` requests outstanding.
pub(super) fn replay(workload: &Workload, depth: u32) -> Result<(), Contradiction> {
    if workload.replay == Replay::Closed && depth == u32::MAX {
        let message = "closed replay (workload.replay) keeps host.queue_depth requests outstanding, \
                       so it needs a number here, not \"unlimited\"";
        return fail("host.queue_depth", message.into());
    }
    if workload.replay == Replay::Dependent && workload.synthetic.is_some() {
        let message = "a generator's requests have no recorded completions to wait for; \
                       \"dependent\" needs a trace that has them";
        return fail("workload.replay", message.into());
    }
    if workload.replay != Replay::Closed && workload.format == "notimes" && workload.trace.is_some() {
        let message = "a trace of workload.format \"notimes\" has no arrival times, \
                       so it can only be replayed \"closed\"";
        return fail("workload.replay", message.into());
    }
    if workload.fio_time_unit_ns == Some(0) {
        return fail("workload.fio_time_unit", "a unit of 0ns; write 1us or 1ns".into());
    }
    Ok(())
}

/// Checks the generator of a load that has `user` bytes of addresses.
pub(super) fn generator(
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
        let whole = match settings.tenants.0.is_empty() {
            true => {
                format!(" (raw {}, less ftl.over_provisioning)", BYTES.format(settings.flash.raw_bytes()))
            }
            false => String::new(),
        };
        let of = if whole.is_empty() { "tenant's part" } else { "user capacity" };
        let message = format!("{} is beyond the {of} of {}{whole}", BYTES.format(region), BYTES.format(user));
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
        let mixed = matches!(values.get(stated), Some(Value::Form(_)));
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
