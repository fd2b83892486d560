//! Checks of several keys of workload and host against each other.

mod held;
mod load;
mod tenants;

use super::sched::needs;
use super::settings::Settings;
use crate::config::{Contradiction, Ignored, Values};
use load::{fail, generator, replay};
pub(crate) use tenants::{order_of_arbiter, replaced};

/// Checks `settings`, which were read from `values`.
pub(crate) fn check(settings: &Settings, values: &Values) -> Result<(), Contradiction> {
    let Settings { workload, host, .. } = settings;
    replay(workload, host.queue_depth)?;
    merges(settings)?;
    held::check(settings)?;
    generator(workload, settings.user_bytes(), settings, values)?;
    tenants::check(settings, values)
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
    let tenants = &settings.tenants.0;
    let clients = tenants.iter().any(|tenant| tenant.clients) || !recorded && tenants.is_empty();
    let merges = settings.host.merge_limit.map_or(clients, |limit| limit > 0);
    found.unless(merges, &["host.merge_boundary"], "nothing merges (host.merge_limit)");
    held::ignored(settings, found);
    tenants::ignored(settings, found);
    crate::workload::settings::ignored(&settings.workload, found);
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
