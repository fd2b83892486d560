//! What the host may expect of every logical page after a power cut.
//!
//! - A write or trim is durable if it completed before a flush was handed to the device and that flush completed
//!   before the cut: the page then holds the data of the write or trim, or something newer.
//! - A write with FUA is durable when it completes.
//! - Where logical pages are as large as NAND pages, a write completes when its page is programmed, so every
//!   completed write is durable, with or without a flush; but not with a write buffer.
//! - With `device.power_loss_protection` every completed write or trim is durable.
//! - Otherwise the page has some version issued since the last recovery, or the one it had then.
//! - What a page had after a recovery is durable, because it is on flash.

use std::collections::HashMap;

use super::leg::Leg;
use ftlab_core::flash::media::{DESTAGED, Event, Issue, Media};
use ftlab_core::ftl::{Ftl, LookUp, Survive};
use ftlab_core::settings::Settings;
use ftlab_core::sim::Kept;
use ftlab_core::workload::Op;

/// A state that a page may be in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Content {
    /// Sequence number of the data; `None`: the page has no data.
    data: Option<u64>,
    durable: bool,
}

/// What the host knows about every page.
pub struct Ledger {
    /// The version that each page had after the last recovery; `None`: no data.
    known: Vec<Option<u64>>,
    /// What writes and trims have done to each page since the last recovery, in order.
    since: HashMap<u32, Vec<Content>>,
}

/// The outcome of a comparison.
#[derive(Clone, Copy, Debug, Default)]
pub struct Verdict {
    /// Number of pages compared.
    pub pages: u64,
    /// Number of pages that had to hold a write made since the previous cut, or a newer version.
    pub durable_writes: u64,
    /// Number of pages that had to show a trim made since the previous cut, or a newer version.
    pub durable_trims: u64,
}

impl Ledger {
    /// Makes the account of a device whose data is all on flash.
    ///
    /// # Errors
    /// A message, if something is missing.
    pub fn new(ftl: &Ftl, media: &Media) -> Result<Ledger, String> {
        Ok(Ledger { known: found(ftl, media)?, since: HashMap::new() })
    }

    /// Records a leg that was cut at `time_ns`, and returns the number of requests that it acknowledged.
    pub fn take(
        &mut self,
        leg: &Leg,
        (issues, events): (&[Issue], &[Event]),
        time_ns: u64,
        settings: &Settings,
        kept: &mut Kept,
    ) -> u64 {
        let buffered = settings.device.buffer.on();
        let strict = settings.flash.unit_bytes() == settings.ftl.logical_page_bytes && !buffered;
        let protected = settings.device.buffer.protects();
        // A request that the host has split at block boundaries is issued in parts.
        let at_issue = |event: &Event| issues.partition_point(|issue| issue.seq < event.seq).checked_sub(1);
        // Where operations take no time, the cut may fall between two operations that finish at the same instant: what
        // was issued at that instant may then be on flash.
        let issued =
            |event: &Event| at_issue(event).map(|at| issues[at]).filter(|issue| issue.time_ns <= time_ns);
        // A flush that waits in a write buffer is issued again when it leaves the buffer; writes that came in between
        // may be lost.
        let issues: HashMap<u64, &Issue> = issues.iter().rev().map(|issue| (issue.request, issue)).collect();
        let acknowledged =
            || leg.completions.iter().filter(|done| !done.failed && done.complete_ns < time_ns);
        let done: HashMap<u64, u64> = acknowledged().map(|done| (done.id, done.complete_ns)).collect();
        let flushed = acknowledged()
            .filter(|done| done.op == Op::Flush)
            .map(|done| (done.dispatch_ns, issues.get(&done.id).map_or(0, |issue| issue.seq)))
            .max();
        for event in events {
            if event.request == DESTAGED {
                kept.note(event);
                continue;
            }
            let Some(issue) = issued(event) else { continue };
            kept.note(event);
            let done_ns = done.get(&event.request);
            let before =
                |&(at_ns, seq): &(u64, u64)| done_ns.is_some_and(|&d| d <= at_ns) && event.seq <= seq;
            let at_once = (protected || (strict || issue.fua) && !event.trim) && done_ns.is_some();
            let durable = flushed.as_ref().is_some_and(before) || at_once;
            let data = (!event.trim).then_some(event.seq);
            self.since.entry(event.lpn).or_default().push(Content { data, durable });
        }
        done.len() as u64
    }

    /// Compares what the device has with what it may have, and takes the result as the known state.
    ///
    /// # Errors
    /// The first broken promise, as a message.
    pub fn settle(&mut self, ftl: &Ftl, media: &Media, kept: &mut Kept) -> Result<Verdict, String> {
        let mut found = found(ftl, media)?;
        found.iter_mut().flatten().for_each(|seq| *seq = kept.version(*seq));
        kept.settle();
        let mut verdict = Verdict { pages: found.len() as u64, ..Verdict::default() };
        for (lpn, (&had, &has)) in self.known.iter().zip(&found).enumerate() {
            let since = self.since.get(&(lpn as u32)).map_or(&[][..], Vec::as_slice);
            let floor = since.iter().rposition(|version| version.durable);
            let allowed = &since[floor.unwrap_or(0)..];
            if let Some(floor) = floor {
                verdict.durable_writes += u64::from(since[floor].data.is_some());
                verdict.durable_trims += u64::from(since[floor].data.is_none());
            }
            let kept = floor.is_none() && has == had;
            if !kept && !allowed.iter().any(|version| version.data == has) {
                let name = |data: Option<u64>| data.map_or("no data".into(), |seq| format!("version {seq}"));
                let durable = floor.map_or(had, |floor| since[floor].data);
                let newest = since.last().map_or(had, |version| version.data);
                return Err(format!(
                    "LPN {lpn} has {} after the cut, {} is durable and {} the newest",
                    name(has),
                    name(durable),
                    name(newest)
                ));
            }
        }
        self.known = found;
        self.since.clear();
        Ok(verdict)
    }
}

/// Returns the version that each page has on the media; `None`: no data.
fn found(ftl: &Ftl, media: &Media) -> Result<Vec<Option<u64>>, String> {
    (0..ftl.logical_pages()).map(|lpn| ftl.version_on(lpn, media)).collect()
}
