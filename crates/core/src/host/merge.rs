//! Merging of adjacent requests in the pending queue.
//!
//! As in the block layer of Linux: a request that begins where a pending one of the same operation ends joins
//! it (back merge), as does one that ends where a pending one begins (front merge), up to a size and, if a boundary
//! is set, never across a multiple of it. Requests of different streams remain apart, and so do two pending requests
//! that come to touch each other. No request overtakes another that overlaps it, unless both are reads: a request does
//! not join a pending one if that would take it ahead of one that it overlaps. A request in a scheduler's queue keeps
//! its place and its class (hit or miss, the batch of its translation page). The scheduler is told its new size
//! ([`crate::host::sched::Scheduler::grown`]).

use std::collections::{HashMap, HashSet};

use crate::host::settings::Settings;
use crate::request::{Ages, Pages, Paging, Pool, Request};
use crate::util::NONE;
use crate::workload::Op;

/// The largest size of a merged request from a page cache, in bytes, if nothing else is set: max_sectors_kb of Linux
/// 2.6.32.
const MERGE_LIMIT: u64 = 512 << 10;

/// The pending requests that a new one may join.
pub struct Merging {
    limit: u64,
    boundary: Option<u64>,
    /// Size of a flash block, bytes, if merged writes must not cross the end of a block.
    block: Option<u64>,
    paging: Paging,
    /// Pending requests by kind and first byte, and by kind and end. No result depends on the order of the maps, which
    /// are only used for lookups.
    starts: HashMap<(u32, u64), u32>,
    ends: HashMap<(u32, u64), u32>,
    /// Number of requests that joined another.
    pub merged: u64,
}

fn merges(request: &Request) -> bool {
    matches!(request.op, Op::Read | Op::Write) && !request.mark.fua()
}

/// Returns the kind of a request: only requests of one operation and one stream are merged.
fn kind(request: &Request) -> u32 {
    u32::from(request.pages.stream) << 8 | request.op as u32
}

/// Whether a request may go ahead of a pending one and of all requests that came after that one.
fn may_pass(request: &Request, mut pending: u32, pool: &Pool) -> bool {
    let end = request.offset + request.size;
    while pending != NONE {
        let other = &pool[pending];
        let overlaps = other.offset < end && request.offset < other.offset + other.size;
        if overlaps && (request.op != Op::Read || other.op != Op::Read) {
            return false;
        }
        pending = pool.younger(pending);
    }
    true
}

impl Merging {
    /// Makes the merging that the settings ask for; `None` means that requests stay as they arrive. `files` says
    /// whether requests come from a page cache; the default limit is then the block layer's own or, if the scheduler
    /// works on whole flash blocks, `block`, the size of a flash block in bytes (Shim et al., TC 2014, section 6.1).
    pub fn new(settings: &Settings, files: bool, block: Option<u64>) -> Option<Merging> {
        let stated = settings.host.merge_limit;
        let auto = block.unwrap_or(MERGE_LIMIT);
        let limit = stated.unwrap_or(if files { auto } else { 0 });
        (limit > 0).then(|| Merging {
            limit,
            boundary: settings.host.merge_boundary,
            block,
            paging: Paging::new(settings.ftl.logical_page_bytes),
            starts: HashMap::new(),
            ends: HashMap::new(),
            merged: 0,
        })
    }

    fn fits(&self, op: Op, start: u64, end: u64) -> bool {
        let within = |boundary: u64| start / boundary == (end - 1) / boundary;
        end - start <= self.limit
            && self.boundary.is_none_or(within)
            && (op == Op::Read || self.block.is_none_or(within))
    }

    /// Makes `request` part of a pending request, if there is one that it can join; returns the slot of the pending
    /// request and the number of pages that it had before.
    pub fn join(&mut self, request: &Request, pool: &mut Pool) -> Option<(u32, u32)> {
        if !merges(request) {
            return None;
        }
        let (kind, start, end) = (kind(request), request.offset, request.offset + request.size);
        let back = self.ends.get(&(kind, start)).copied();
        let back = back.filter(|&id| {
            self.fits(request.op, pool[id].offset, end) && may_pass(request, pool.younger(id), pool)
        });
        let front = || {
            let id = self.starts.get(&(kind, end)).copied()?;
            let fits = self.fits(request.op, start, pool[id].offset + pool[id].size);
            (fits && may_pass(request, pool.younger(id), pool)).then_some(id)
        };
        let id = back.or_else(front)?;
        self.leave(id, pool);
        let pending = &mut pool[id];
        let before = pending.pages.pages;
        pending.offset = pending.offset.min(start);
        pending.size += request.size;
        let pages = self.paging.pages(pending.op, pending.offset, pending.offset + pending.size);
        pending.pages = Pages { stream: pending.pages.stream, ..pages };
        self.enter(id, pool);
        self.merged += 1;
        Some((id, before))
    }

    /// Notes that a request becomes pending.
    pub fn enter(&mut self, id: u32, pool: &Pool) {
        let request = &pool[id];
        if merges(request) {
            self.starts.insert((kind(request), request.offset), id);
            self.ends.insert((kind(request), request.offset + request.size), id);
        }
    }

    /// Notes that a request is no longer pending.
    pub fn leave(&mut self, id: u32, pool: &Pool) {
        let request = &pool[id];
        if !merges(request) {
            return;
        }
        // Another request with the same bounds may have replaced the entry.
        let kind = kind(request);
        for (map, at) in [(&mut self.starts, request.offset), (&mut self.ends, request.offset + request.size)]
        {
            if map.get(&(kind, at)).copied().unwrap_or(NONE) == id {
                map.remove(&(kind, at));
            }
        }
    }

    /// Checks that requests that others may join are pending and can be found; `ages` holds the pending requests.
    pub fn verify(&self, pool: &Pool, ages: &Ages) -> Result<(), String> {
        let mut pending = HashSet::new();
        let mut id = ages.head();
        while id != NONE {
            pending.insert(id);
            id = pool.younger(id);
        }
        let entries = [(&self.starts, 0), (&self.ends, 1)];
        for (&(of, at), id, end) in
            entries.into_iter().flat_map(|(map, end)| map.iter().map(move |(key, id)| (key, id, end)))
        {
            let request = &pool[*id];
            if !pending.contains(id) || (of, at) != (kind(request), request.offset + end * request.size) {
                return Err(format!("merging looks for request {} at byte {at}", request.id));
            }
        }
        Ok(())
    }
}
