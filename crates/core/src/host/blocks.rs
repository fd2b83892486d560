//! What the host does for schedulers that work on whole flash blocks: it gives them access to device and page cache,
//! and handles the requests that the workload did not send (parts of writes cut at the ends of blocks, and padding).
//!
//! Source: Shim et al., TC 2014, sections 5.1 and 5.3 (COOP_Query, the issue range extension), Kim and Ahn,
//! FAST 2008 (padding). A part is issued like any request; the write completes with its last part.
//!
//! Padding must never overwrite newer data with older, however the device orders its requests. So a read for padding
//! is handed over only when the device holds no write to its block, and a request other than a read only when the
//! device holds no read for padding. Everything behind such a request waits too.

use std::ops::Range;

use super::Arrivals;
use crate::host::awareness::DeviceView;
use crate::host::sched::Around;
use crate::host::settings::Settings;
use crate::request::{Ages, HostSide, Pages, Paging, Pool, Request};
use crate::util::NONE;
use crate::workload::Op;

/// Returns the number of logical pages in a flash block, as COOP_GetSize returns it, or in an erase block if the FTL
/// does not map by blocks.
pub fn block_pages(settings: &Settings, device: &impl DeviceView) -> u32 {
    let per_page = settings.flash.page_bytes / settings.ftl.logical_page_bytes;
    device.block_size().map_or(settings.flash.pages_per_block * per_page, |size| size.pages)
}

/// The state that the host keeps for a scheduler that works on whole flash blocks.
pub struct Blocks {
    /// Number of logical pages in a block.
    pub pages: u32,
    lpns: u32,
    page_bytes: u64,
    paging: Paging,
    /// The block of each write that the device holds.
    writing: Vec<u32>,
    /// Number of padding reads that the device holds.
    padding: u32,
    /// Number of padding requests that are pending or at the device.
    pub pads: u32,
    /// Number of requests that completed beside those of the workload, and the bytes of their own data.
    pub beside: [u64; 2],
    scratch: Vec<Request>,
}

impl Blocks {
    /// Makes an empty record for the blocks of this device.
    pub fn new(settings: &Settings, device: &impl DeviceView) -> Blocks {
        Blocks {
            pages: block_pages(settings, device),
            lpns: device.logical_pages(),
            page_bytes: u64::from(settings.ftl.logical_page_bytes),
            paging: Paging::new(settings.ftl.logical_page_bytes),
            writing: Vec::new(),
            padding: 0,
            pads: 0,
            beside: [0; 2],
            scratch: Vec::new(),
        }
    }

    /// Returns the size of a block in bytes.
    pub fn bytes(&self) -> u64 {
        u64::from(self.pages) * self.page_bytes
    }

    fn block(&self, request: &Request) -> u32 {
        request.pages.first / self.pages
    }

    /// Whether a request must not go to the device yet.
    pub fn holds(&self, request: &Request) -> bool {
        match request.op {
            Op::Read => request.mark.pad && self.writing.contains(&self.block(request)),
            _ => self.padding > 0,
        }
    }

    /// Notes that a request goes to the device.
    pub fn handed_over(&mut self, id: u32, pool: &mut Pool) {
        let request = &pool[id];
        match request.op {
            Op::Write => self.writing.push(self.block(request)),
            Op::Read if request.mark.pad => self.padding += 1,
            _ => (),
        }
        let (whole, at) = (request.host.whole, request.dispatch_ns);
        if whole != NONE {
            let whole = &mut pool[whole];
            whole.dispatch_ns = whole.dispatch_ns.min(at);
        }
    }

    /// Notes that a request at the device is done; returns the workload's request that completes with it, if any.
    pub fn finish(&mut self, id: u32, pool: &mut Pool) -> Option<u32> {
        let Request { op, mark, failed, misses, host: HostSide { whole, batch, prioritized, .. }, .. } =
            pool[id];
        if op == Op::Write {
            let block = self.block(&pool[id]);
            let at = self.writing.iter().position(|&other| other == block).expect("it was handed over");
            self.writing.swap_remove(at);
        } else if mark.pad {
            self.padding -= 1;
        }
        if mark.pad {
            self.pads -= 1;
            self.beside = [self.beside[0] + 1, self.beside[1] + if failed { 0 } else { pool[id].size }];
            pool.release(id);
            return None;
        }
        if whole == NONE {
            return Some(id);
        }
        pool.release(id);
        let of = &mut pool[whole];
        of.failed |= failed;
        of.misses += misses;
        of.host.prioritized |= prioritized;
        of.host.batch = if of.host.batch == 0 { batch } else { of.host.batch.min(batch) };
        of.host.parts -= 1;
        self.beside[0] += u64::from(of.host.parts > 0);
        (of.host.parts == 0).then_some(whole)
    }

    /// Cuts a write that covers several blocks and passes its parts to `admit`; returns whether the request was such a
    /// write.
    pub fn cut(&self, whole: u32, pool: &mut Pool, mut admit: impl FnMut(u32, &mut Pool)) -> bool {
        let Request { id, arrival_ns, op, offset, size, pages: Pages { stream, .. }, .. } = pool[whole];
        let (bytes, end) = (self.bytes(), offset + size);
        if op != Op::Write || size == 0 || offset / bytes == (end - 1) / bytes {
            return false;
        }
        (pool[whole].host.whole, pool[whole].dispatch_ns) = (whole, u64::MAX);
        let mut at = offset;
        while at < end {
            let until = end.min((at / bytes + 1) * bytes);
            let pages = Pages { stream, ..self.paging.pages(Op::Write, at, until) };
            let mut part = Request::new(id, arrival_ns, Op::Write, at, until - at, pages);
            part.host.whole = whole;
            part.mark.asks = pool[whole].mark.asks;
            pool[whole].host.parts += 1;
            let part = pool.insert(part);
            admit(part, pool);
            at = until;
        }
        true
    }
}

/// What a scheduler that works on whole flash blocks can reach while it chooses.
pub struct Surroundings<'a, A, D> {
    /// The state that the host keeps for the scheduler.
    pub blocks: &'a mut Blocks,
    /// The page cache, if there is one.
    pub arrivals: &'a mut A,
    /// The device, as the host sees it.
    pub device: &'a D,
    /// All pending requests; a request that joins becomes one of them at once.
    pub ages: &'a mut Ages,
    /// Number of pending requests.
    pub pending: &'a mut u32,
    /// The simulated time, ns.
    pub now_ns: u64,
}

impl<A, D> Surroundings<'_, A, D> {
    fn enter(&mut self, request: Request, pool: &mut Pool) -> u32 {
        let id = pool.insert(request);
        *self.pending += 1;
        self.ages.push(id, pool);
        id
    }
}

impl<A: Arrivals, D: DeviceView> Around for Surroundings<'_, A, D> {
    fn pages_of(&self, block: u32) -> Range<u32> {
        let first = block * self.blocks.pages;
        first..first.saturating_add(self.blocks.pages).min(self.blocks.lpns)
    }

    fn query(&self, first: u32, pages: u32, set: &mut Vec<u32>) {
        self.device.coop_query(first, pages, set);
    }

    fn join(&mut self, block: u32, pool: &mut Pool, found: &mut Vec<u32>) {
        let bytes = self.blocks.bytes();
        let mut requests = std::mem::take(&mut self.blocks.scratch);
        self.arrivals.join(u64::from(block) * bytes, (u64::from(block) + 1) * bytes, &mut requests);
        for mut request in requests.drain(..) {
            debug_assert_eq!(request.pages.first / self.blocks.pages, block, "a page of another block");
            request.host.prioritized = true;
            found.push(self.enter(request, pool));
        }
        self.blocks.scratch = requests;
    }

    fn now_ns(&self) -> u64 {
        self.now_ns
    }

    fn pad(&mut self, op: Op, pages: Range<u32>, pool: &mut Pool) -> u32 {
        let page = self.blocks.page_bytes;
        let (offset, end) = (u64::from(pages.start) * page, u64::from(pages.end) * page);
        let pages = self.blocks.paging.pages(op, offset, end);
        let mut request = Request::new(0, self.now_ns, op, offset, end - offset, pages);
        request.mark.pad = true;
        self.blocks.pads += 1;
        self.enter(request, pool)
    }
}
