//! What happens to a request as it arrives: it is cut, becomes part of a pending one, or is classified by its mapping.

use super::Arrivals;
use super::awareness::{Awareness, DeviceView};
use super::blocks::Blocks;
use super::lane::Lane;
use super::sched::Needs;
use crate::request::{Pool, Request};
use crate::workload::Op;

/// Cuts a request that has arrived at the ends of `blocks`, if it covers several, or lets it become part of a pending
/// one; returns whether it did either. Parts of a request that was cut do not merge.
#[inline(never)] // keeps the path short where requests stay as they are
pub(super) fn reshape(
    id: u32,
    lane: &mut Lane,
    blocks: Option<&Blocks>,
    pool: &mut Pool,
    arrivals: &mut impl Arrivals,
) -> bool {
    let cut = |blocks: &Blocks| blocks.cut(id, pool, |part, pool| lane.admit(part, pool));
    blocks.is_some_and(cut) || lane.join(id, pool, arrivals)
}

/// Determines what the scheduler needs to know about a request's mapping; `has_entries` says whether the request
/// carries it.
#[inline(never)] // keeps the path short for schedulers that need nothing
pub(super) fn classify(
    request: &mut Request,
    has_entries: bool,
    needs: &Needs,
    awareness: &mut Awareness,
    device: &impl DeviceView,
) {
    if needs.translation_pages && request.pages.pages > 0 {
        request.host.translation_page = device.translation_page(request.pages.first);
    }
    // A request without pages cannot hit a mapping; polled awareness counts its admission.
    let updates = request.op != Op::Read;
    let cached = needs.hits && awareness.classify(request.pages, updates, device);
    request.host.hit = (cached || has_entries) && request.pages.pages > 0;
}
