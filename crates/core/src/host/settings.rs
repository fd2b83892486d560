//! `[host]`: the scheduler, the pending queue and merging.

use crate::config::section::{ANY_TIME, bytes, count, one_of};
use crate::config::{choice, over, section};
use crate::device::settings as device;
use crate::workload::settings::Workload;
use crate::workload::tenants::Tenants;

section! {
    /// Settings of the host and of everything below it.
    #[derive(Clone, Debug, PartialEq)]
    pub struct Settings {
        /// Source of requests.
        workload: Workload;
        /// Several sources of requests.
        tenants: Tenants;
        /// Settings of the scheduler and the pending queue.
        host: Host;
        /// Settings of the device.
        below: device::Settings;
    }
}

over!(Settings, below: device::Settings);

choice! {
    /// `host.queues`.
    pub enum Queues {
        /// all requests are pending in one queue
        Shared = "shared",
        /// the requests of each tenant are pending in a queue with a scheduler of its own
        PerTenant = "per-tenant",
    }
}

choice! {
    /// `host.late`.
    pub enum Late {
        /// the whole batch that the request belongs to
        Batch = "batch",
        /// the request alone, taken out of its batch
        Request = "request",
    }
}

section! {
    /// `[host]`.
    #[derive(Clone, Debug, PartialEq)]
    pub struct Host {
        /// Number of requests that the scheduler's pending queue can hold.
        queue_depth: u32 = "host.queue_depth", count(1, 1 << 30) or "unlimited", "128";
        /// I/O scheduler.
        scheduler: String = "host.scheduler", one_of(crate::host::sched::choices), "noop";
        /// A request that has waited this long is dispatched before any that the scheduler would choose.
        deadline_ns: Option<u64> = "host.deadline", ANY_TIME or "none", "10ms";
        /// Schedulers with batches: what is dispatched when a request has waited as long as host.deadline.
        late: Late = "host.late", "batch";
        /// Pending queues, if there are tenants.
        queues: Queues = "host.queues", "shared";
        /// With host.queues per-tenant: whose request goes next.
        arbiter: String = "host.arbiter", one_of(crate::host::arbiter::choices), "rr";
        /// How the scheduler learns which mappings the device caches.
        awareness: crate::host::awareness::AwarenessKind = "host.awareness", "full";
        /// Adjacent requests in the pending queue merge up to this size; 0B: never; auto: never, except that requests
        /// from a page cache merge up to 512KiB, or up to a flash block under irbw, padding and coop.
        merge_limit: Option<u64> = "host.merge_limit", bytes(0, 1 << 40) or "auto", "auto";
        /// Requests do not merge across multiples of this size; under irbw, padding and coop, writes never
        /// merge across the end of a flash block.
        merge_boundary: Option<u64> = "host.merge_boundary", bytes(512, 1 << 40) or "none", "none";
        /// The part of the device's map that the host holds.
        map: crate::host::held::keys::Keys;
        /// Keys of the arbiters.
        arbiters: crate::host::arbiter::Own;
        /// Keys of the schedulers.
        sched: crate::host::sched::Keys;
    }
}
