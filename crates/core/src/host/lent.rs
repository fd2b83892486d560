//! Mapping entries between the host's requests and the map that it holds ([`super::held`]).

use super::held::Held;
use super::{Arrivals, DeviceView, Host};
use crate::request::{Entry, Pages, Pool, Request};
use crate::util::Stat;
use crate::workload::SourceError;

/// The map that the host holds, if it holds any, as far as requests carry its entries.
#[derive(Clone, Copy, Debug)]
pub struct Lent<'a>(Option<&'a Held>);

impl<'a> Lent<'a> {
    /// Returns the entries that a request carries to the device.
    pub fn entries_of(self, request: &Request) -> impl Iterator<Item = Entry> + use<'a> {
        let Pages { first, pages, .. } = request.pages;
        let held = self.0.filter(|_| request.mark.has_entries());
        held.into_iter()
            .flat_map(move |held| (first..first + pages).map(|lpn| held.entry(lpn).unwrap_or_default()))
    }
}

impl Host {
    /// Returns the number of pages of a subregion, and the number of entries that a read carries at most, if the host
    /// holds entries.
    pub fn held_sizes(&self) -> Option<(u32, u32)> {
        self.held.as_ref().map(|held| held.sizes())
    }

    /// Whether the host holds a part of the device's map.
    #[inline]
    pub fn holds_map(&self) -> bool {
        self.held.is_some()
    }

    /// Returns the figures of the held map, if there is one.
    pub fn held_stats(&self) -> Vec<Stat> {
        self.held.as_ref().map_or_else(Vec::new, |held| held.stats())
    }

    /// Returns the requests, and the entries that they may carry to the device.
    #[inline]
    pub fn lend(&mut self) -> (&mut Pool, Lent<'_>) {
        (&mut self.pool, Lent(self.held.as_deref()))
    }

    /// Returns the number of commands that read entries so far, and the bytes that they brought.
    pub(super) fn held_traffic(&self) -> [u64; 2] {
        self.held.as_ref().map_or([0; 2], |held| held.traffic())
    }

    /// Returns the number of commands under way that read entries.
    pub(super) fn loads_under_way(&self) -> usize {
        self.held.as_ref().map_or(0, |held| usize::from(held.loads()))
    }

    /// Returns the next request for the device, or a command that reads mapping entries, where tenants have queues of
    /// their own, the scheduler works on whole flash blocks, or the host holds entries.
    #[inline(never)] // keeps the path of all other hosts short
    pub(super) fn next_or_load(
        &mut self,
        now_ns: u64,
        arrivals: &mut impl Arrivals,
        device: &impl DeviceView,
    ) -> Result<Option<u32>, SourceError> {
        if self.is_held() {
            return Ok(None);
        }
        if let Some(load) = self.begin_load(now_ns) {
            return Ok(Some(load));
        }
        let id = self.take::<true>(now_ns, arrivals, device)?;
        if let Some(id) = id {
            self.lend_entries(id);
        }
        Ok(id)
    }

    /// Begins a command that reads entries, if one is due; it goes ahead of all pending requests.
    fn begin_load(&mut self, now_ns: u64) -> Option<u32> {
        self.held.as_mut()?.begin_load(now_ns, &mut self.pool)
    }

    /// Lets a request that goes to the device carry its entries, if the host has them.
    fn lend_entries(&mut self, id: u32) {
        if let Some(held) = &mut self.held {
            held.dispatch(id, &mut self.pool);
        }
    }

    /// Whether the host has an entry for each page of a read that may carry them.
    pub(super) fn has_entries(&self, id: u32) -> bool {
        self.held.as_ref().is_some_and(|held| held.covers(&self.pool[id]))
    }

    /// Notes, where the host holds entries, that a request has completed. Stores `handed` if the request was a command
    /// that reads entries, and releases it; returns whether it was one.
    #[cold]
    pub fn note_completed(&mut self, id: u32, handed: &[Entry]) -> bool {
        let Some(held) = &mut self.held else { return false };
        if !self.pool[id].mark.reads_map() {
            held.completed(&self.pool[id]);
            return false;
        }
        held.store(handed, self.pool[id].failed);
        self.pool.release(id);
        true
    }
}
