//! The figures of the requests.

use super::{Behind, Histogram};
use crate::request::Request;
use crate::util::Bits;
use crate::workload::Op;

/// Gathers the figures of the requests during a run.
#[derive(Clone, Debug)]
pub struct Recorder {
    /// Latency, wait and access of reads, and of writes.
    pub(super) times: [[Histogram; 3]; 2],
    /// Requests by operation.
    pub(super) requests: [u64; 4],
    pub(super) bytes: [u64; 2],
    /// Requests refused, and bytes served.
    pub(super) failed: [u64; 4],
    pub(super) served_bytes: [u64; 2],
    pub(super) touched: Bits,
    pub(super) prioritized: u64,
    pub(super) expired: u64,
    pub(super) behind: Behind,
}

impl Recorder {
    /// Makes a recorder for `lpns` logical pages.
    pub fn new(lpns: u32) -> Recorder {
        Recorder {
            times: Default::default(),
            requests: [0; 4],
            bytes: [0; 2],
            failed: [0; 4],
            served_bytes: [0; 2],
            touched: Bits::new(lpns as usize),
            prioritized: 0,
            expired: 0,
            behind: Behind::default(),
        }
    }

    /// Returns the number of reads and writes served so far, and the sums of their latencies, ns.
    pub fn latencies(&self) -> ([u64; 2], [u128; 2]) {
        let latency = self.times.each_ref().map(|[latency, ..]| latency);
        (latency.map(Histogram::count), latency.map(Histogram::sum))
    }

    /// Returns the number of requests so far, and the bytes of those that were served.
    pub fn commands(&self) -> (u64, u64) {
        (self.requests.iter().sum(), self.served_bytes.iter().sum())
    }

    /// Records a completed request.
    #[inline]
    pub fn complete(&mut self, request: &Request, complete_ns: u64) {
        let pages = request.pages;
        for lpn in pages.first..pages.first + pages.pages {
            self.touched.set(lpn);
        }
        self.count(request, complete_ns);
    }

    /// Records a completed request, but not the pages that it touched.
    #[inline(always)] // for every request
    pub fn count(&mut self, request: &Request, complete_ns: u64) {
        let op = request.op as usize;
        self.requests[op] += 1;
        self.failed[op] += u64::from(request.failed);
        self.prioritized += u64::from(request.host.prioritized);
        self.expired += u64::from(request.host.expired);
        if !matches!(request.op, Op::Read | Op::Write) {
            return;
        }
        self.bytes[op] += request.size;
        if !request.failed {
            self.served_bytes[op] += request.size;
            let [latency, wait, access] = &mut self.times[op];
            latency.add(complete_ns - request.arrival_ns);
            wait.add(request.dispatch_ns - request.arrival_ns);
            access.add(complete_ns - request.dispatch_ns);
            self.behind.waited(request.arrival_ns, request.dispatch_ns);
        }
    }
}
