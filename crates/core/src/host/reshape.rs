//! What happens to a request as it arrives: it is cut, becomes part of a pending one, or is classified by its mapping.

use super::awareness::DeviceView;
use super::{Arrivals, Host, Lane};
use crate::workload::Op;

impl Host {
    /// Cuts a request that has arrived, or lets it become part of a pending one; returns whether it did either.
    #[inline(never)] // keeps the path short where requests stay as they are
    pub(super) fn reshape(&mut self, id: u32, arrivals: &mut impl Arrivals) -> bool {
        if self.needs.blocks && self.cut(id) {
            return true;
        }
        let Host { lane, pool, .. } = self;
        let Lane { merging: Some(merging), sched, .. } = &mut **lane else { return false };
        let taken = pool[id];
        let Some((pending, before)) = merging.join(&taken, pool) else {
            merging.enter(id, pool);
            return false;
        };
        pool.release(id);
        if pool[pending].pages.pages > before {
            sched.grown(pending, before, pool);
        }
        arrivals.merged(&mut pool[pending], &taken);
        true
    }

    /// Determines what the scheduler needs to know about a request's mapping.
    #[inline(never)] // keeps the path short for schedulers that need nothing
    pub(super) fn classify(&mut self, id: u32, device: &impl DeviceView) {
        let has_entries = self.has_entries(id);
        let request = &mut self.pool[id];
        if self.needs.translation_pages && request.pages.pages > 0 {
            request.host.translation_page = device.translation_page(request.pages.first);
        }
        // A request without pages cannot hit a mapping; polled awareness counts its admission.
        let updates = request.op != Op::Read;
        let cached = self.needs.hits && self.awareness.classify(request.pages, updates, device);
        request.host.hit = (cached || has_entries) && request.pages.pages > 0;
    }

    /// Cuts a write that covers several flash blocks, and admits its parts, which do not merge; returns whether the
    /// request was such a write.
    fn cut(&mut self, id: u32) -> bool {
        let Lane { sched, ages, pending, .. } = &mut *self.lane;
        self.blocks.cut(id, &mut self.pool, |part, pool| {
            *pending += 1;
            ages.push(part, pool);
            sched.admit(part, pool);
        })
    }
}
