//! Checks of tenants' keys.

use super::load::{fail, generator, replay};
use crate::config::units::BYTES;
use crate::config::{Contradiction, Ignored, Values};
use crate::host::arbiter;
use crate::host::sched::needs;
use crate::host::settings::{Queues, Settings};
use crate::workload::settings::{By, Replay, Workload, ignored as ignored_by};
use crate::workload::tenants::{MOST, PLACEHOLDER, Tenant, has_load, of_tenant, path_of, stated};

/// Refuses keys of a tenant whose name is the one that stands for all names, and which has no load.
pub(super) fn names(values: &Values) -> Result<(), Contradiction> {
    let prefix = format!("tenant.{PLACEHOLDER}.");
    match values.keys().find(|path| path.starts_with(&prefix)).filter(|_| !has_load(values)) {
        Some(path) => {
            fail(path, format!("{PLACEHOLDER} stands for the name of your tenant; write that name"))
        }
        None => Ok(()),
    }
}

/// Checks the tenants by themselves and against each other.
pub(super) fn check(settings: &Settings, values: &Values) -> Result<(), Contradiction> {
    let (tenants, by_stream) = (&settings.tenants.0, settings.workload.tenants == By::Stream);
    queues(settings)?;
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

/// Collects the keys that are ignored because of tenants, or because there are none.
pub(super) fn ignored(settings: &Settings, found: &mut Ignored) {
    let (tenants, host) = (&settings.tenants.0, &settings.host);
    let several = !tenants.is_empty() || settings.workload.tenants == By::Stream;
    found.unless(
        several,
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
        let wrr = apart && host.arbiter == "wrr";
        let closed = workload.replay == Replay::Closed;
        let claims = [path_of(name, "weight"), path_of(name, "priority")];
        of_load.unless(
            wrr,
            &claims,
            "weights and classes count with host.queues per-tenant and host.arbiter \"wrr\"",
        );
        let depth = [path_of(name, "queue_depth")];
        of_load.unless(apart || closed, &depth, "the tenants share a queue, and the replay is open");
        of_load.into_vec().into_iter().for_each(|one| found.add(of_tenant(name, one)));
    }
}
