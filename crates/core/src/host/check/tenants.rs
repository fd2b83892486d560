//! Checks of tenants' keys.

use super::load::{fail, generator, replay};
use crate::config::section::field;
use crate::config::units::BYTES;
use crate::config::{Choice, Contradiction, Ignored, Value, Values};
use crate::device::array::order;
use crate::host::arbiter;
use crate::host::sched::{self, needs};
use crate::host::settings::{Queues, Settings};
use crate::workload::settings::{By, Replay, Workload, ignored as ignored_by};
use crate::workload::tenants::{MOST, Tenant, of_tenant, path_of, stated};

/// Checks the tenants by themselves and against each other.
pub(super) fn check(settings: &Settings, values: &Values) -> Result<(), Contradiction> {
    let (tenants, by_stream) = (&settings.tenants.0, settings.workload.tenants == By::Stream);
    queues(settings)?;
    if are_several(settings) {
        halves(settings)?;
    }
    if tenants.is_empty() {
        return Ok(());
    }
    let workload = &settings.workload;
    let others = [
        (workload.trace.is_some(), "workload.trace"),
        (workload.synthetic.is_some(), "workload.synthetic.requests"),
        (workload.fio_job.is_some(), "workload.fio_job"),
    ];
    if let Some((_, key)) = others.into_iter().find(|(is_stated, _)| *is_stated) {
        let message = "a load besides those of the tenants ([tenant.NAME]); remove one of the two";
        return fail(key, message.into());
    }
    if by_stream {
        let message = "\"by-stream\" divides one trace, and there are tenants with loads of their own \
                       ([tenant.NAME]); remove one of the two";
        return fail("workload.tenants", message.into());
    }
    if tenants.len() > MOST {
        let message = format!("{} tenants; there may be {MOST}", tenants.len());
        return fail(path_of(&tenants[MOST].name, "weight"), message);
    }
    let page_bytes = u64::from(settings.ftl.logical_page_bytes);
    let ranges = settings.tenants.ranges(settings.user_bytes(), page_bytes);
    let stated = stated(values);
    for (tenant, range) in tenants.iter().zip(ranges) {
        let bytes = range.to - range.from;
        let fault = |message| fail(path_of(&tenant.name, "range"), message);
        if range.to > settings.user_bytes() {
            let user = BYTES.format(settings.user_bytes());
            return fault(format!("{range} is beyond the user capacity of {user}"));
        }
        if range.from % page_bytes != 0 || bytes % page_bytes != 0 || bytes == 0 {
            let page = BYTES.format(page_bytes);
            return fault(format!("{range} is not a range of logical pages, of {page} each"));
        }
        let none = Values::new();
        let own = stated.iter().find(|(name, _)| *name == tenant.name).map_or(&none, |(_, values)| values);
        load(tenant, bytes, settings, own)?;
    }
    Ok(())
}

/// Checks a tenant's load, which has `bytes` of addresses and was read from `values`.
fn load(tenant: &Tenant, bytes: u64, settings: &Settings, values: &Values) -> Result<(), Contradiction> {
    let Tenant { name, workload, clients, own } = tenant;
    if workload.trace.is_none() && workload.synthetic.is_none() && !clients {
        let message = "the tenant has no load: name a trace, the requests of a generator (synthetic.requests), a \
                       benchmark (benchmark.kind) or a fio job (fio_job)";
        return fail(path_of(name, "trace"), message.into());
    }
    let depth = own.queue_depth.unwrap_or(settings.host.queue_depth);
    let checked = replay(workload, depth).and_then(|()| generator(workload, bytes, settings, values));
    checked.map_err(|fault| of_tenant(name, fault))
}

/// Refuses schedulers that work on the blocks of all requests where each tenant has a queue of its own.
fn queues(settings: &Settings) -> Result<(), Contradiction> {
    let name = &settings.host.scheduler;
    if settings.host.queues == Queues::PerTenant && needs(name).blocks {
        let message = format!(
            "\"{name}\" works on whole flash blocks, which the requests of several tenants share; choose another \
             scheduler, or host.queues = \"shared\""
        );
        return fail("host.scheduler", message);
    }
    Ok(())
}

/// Refuses an arbiter that is one half of an order of flash operations without the other half.
fn halves(settings: &Settings) -> Result<(), Contradiction> {
    let name = &settings.host.arbiter;
    if arbiter::needs(name).order.is_none() {
        return Ok(());
    }
    if settings.host.queues == Queues::Shared {
        let message = format!(
            "\"{name}\" takes requests from queues of the tenants' own; set host.queues to \"per-tenant\""
        );
        return fail("host.arbiter", message);
    }
    other_order(settings, &settings.order.name).map_or(Ok(()), Err)
}

/// Returns the error that an order of flash operations is another one than the arbiter's.
fn other_order(settings: &Settings, order: &str) -> Option<Contradiction> {
    let name = &settings.host.arbiter;
    let message = format!(
        "does not go with host.arbiter = \"{name}\", which orders operations itself; leave the key out"
    );
    (arbiter::needs(name).order != Some(order)).then_some(Contradiction { key: "flash.order", message })
}

/// Returns the order of flash operations that the arbiter is one half of, if it is and there is an arbiter.
pub(crate) fn order_of_arbiter(settings: &Settings) -> Option<&'static str> {
    arbiter::needs(&settings.host.arbiter).order.filter(|_| arbitrates(settings))
}

/// Returns the order of flash operations that is the arbiter's and not that of `values`, and why another may not be
/// stated. Whether it was, the settings do not show.
pub(crate) fn replaced(settings: &Settings, values: &Values) -> Option<(Value, Contradiction)> {
    let (order, stated) = (&settings.order.name, field::<String>(values, "flash.order", &[]));
    let fault = other_order(settings, &stated).filter(|_| arbitrates(settings) && *order != stated)?;
    Some((Value::Text(order.clone()), fault))
}

/// Whether there are tenants.
fn are_several(settings: &Settings) -> bool {
    !settings.tenants.0.is_empty() || settings.workload.tenants == By::Stream
}

/// Whether the arbiter says whose request goes next.
fn arbitrates(settings: &Settings) -> bool {
    are_several(settings) && settings.host.queues == Queues::PerTenant
}

/// Collects the keys that are ignored because of tenants, or because there are none.
pub(super) fn ignored(settings: &Settings, found: &mut Ignored) {
    let (tenants, host) = (&settings.tenants.0, &settings.host);
    found.unless(
        are_several(settings),
        &["host.queues", "host.arbiter"],
        "there are no tenants ([tenant.NAME], workload.tenants)",
    );
    let apart = host.queues == Queues::PerTenant;
    found.unless(apart, &["host.arbiter"], "host.queues = \"shared\"");
    arbiter::own_ignored(&[&host.arbiter], &|name| format!("host.arbiter is not \"{name}\""), found);
    if tenants.is_empty() {
        return;
    }
    let own = "each tenant has keys of its own ([tenant.NAME])";
    found.section::<Workload>(false, &["workload.tenants"], own);
    for tenant in tenants {
        let Tenant { name, workload, .. } = tenant;
        let mut of_load = Ignored::default();
        ignored_by(workload, &mut of_load);
        let (weighs, classes) =
            (arbiter::needs(&host.arbiter).weights, arbiter::needs(&host.arbiter).classes);
        let shares = !apart && needs(&host.scheduler).weights;
        let closed = workload.replay == Replay::Closed;
        of_load.unless(apart && weighs || shares, &[path_of(name, "weight")], &weighted());
        let orders = order::needs(&settings.order.name).classes;
        of_load.unless(apart && classes || orders, &[path_of(name, "priority")], &classed());
        let depth = [path_of(name, "queue_depth")];
        of_load.unless(apart || closed, &depth, "the tenants share a queue, and the replay is open");
        of_load.into_vec().into_iter().for_each(|one| found.add(of_tenant(name, one)));
    }
}

/// Returns the names of those parts that `are` so, as the value of a key.
fn named(parts: Vec<Choice>, are: impl Fn(&str) -> bool) -> String {
    let names = parts.iter().filter(|part| are(part.name)).map(|part| format!("\"{}\"", part.name));
    names.collect::<Vec<_>>().join(" or ")
}

/// Returns when the weights of tenants count.
fn weighted() -> String {
    format!(
        "weights count with host.queues per-tenant and host.arbiter {}, and with host.queues shared and host.scheduler {}",
        named(arbiter::choices(), |name| arbiter::needs(name).weights),
        named(sched::choices(), |name| needs(name).weights),
    )
}

/// Returns when the classes of tenants count.
fn classed() -> String {
    format!(
        "classes count with host.queues per-tenant and host.arbiter {}, and with flash.order {}",
        named(arbiter::choices(), |name| arbiter::needs(name).classes),
        named(order::choices(), |name| order::needs(name).classes),
    )
}
