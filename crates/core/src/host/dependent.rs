//! Requests of a recording as they arrive in dependent replay: each waits for the one that it continues.

use super::dependence::Dependence;
use super::replay::{beyond, late};
use super::{Arrivals, Intake, LATEST_NS};
use crate::host::settings::Settings;
use crate::request::{Pool, Request};
use crate::util::NONE;
use crate::workload::{Record, Source, SourceError, SourceSummary};

/// Number of requests that are read in advance, at least: of so many, each may be sent before the others.
const AHEAD: usize = 1024;
/// Number of requests that are read one after another: together they cost less than one by one.
const AT_ONCE: usize = 64;

/// A recording's requests as they arrive.
pub struct Dependent<'a> {
    source: &'a mut (dyn Source + Send),
    rule: Dependence,
    /// Whether the source has ended or failed.
    over: bool,
    arrived: u64,
    /// Number of requests that became part of another, and number of those without a recorded completion.
    merged: u64,
    unknown: u64,
    intake: Intake,
}

impl<'a> Dependent<'a> {
    /// Makes the feed and reads the first records.
    ///
    /// # Errors
    /// The source's error.
    pub fn new(
        source: &'a mut (dyn Source + Send),
        settings: &Settings,
    ) -> Result<Dependent<'a>, SourceError> {
        let (rule, intake) = (Dependence::new(AHEAD + AT_ONCE), Intake::new(settings));
        let mut feed = Dependent { source, rule, over: false, arrived: 0, merged: 0, unknown: 0, intake };
        feed.read(0)?;
        Ok(feed)
    }

    /// Reads records in advance, now.
    fn read(&mut self, now_ns: u64) -> Result<(), SourceError> {
        while !self.over && self.rule.waiting() < AHEAD + AT_ONCE {
            match self.source.next() {
                Ok(Some(record)) if record.time_ns > LATEST_NS => return Err(late(self.source, &record)),
                Ok(Some(record)) => {
                    self.unknown += u64::from(record.latency_ns == Record::UNKNOWN);
                    self.rule.push(record, now_ns);
                }
                Ok(None) => {
                    self.over = true;
                    let read = self.arrived + self.rule.waiting() as u64;
                    if self.unknown == read && read > 0 {
                        return Err(none_known(read));
                    }
                }
                Err(error) => {
                    self.over = true;
                    return Err(error);
                }
            }
        }
        Ok(())
    }

    /// Lets no more requests arrive, unless one may still become due before those that are.
    pub fn end(&mut self) {
        if !self.rule.is_awaited() {
            self.over = true;
            self.rule.end();
        }
    }

    /// Does what [`Arrivals::take`] does, for the request with this number.
    pub fn take_as(&mut self, number: u64, arrival_ns: u64, pool: &mut Pool) -> Result<u32, SourceError> {
        let record = self.rule.next().expect("one arrives");
        let request = self.intake.request(number, arrival_ns, record);
        let mut request = request.ok_or_else(|| beyond(self.source, record, self.intake.user_bytes))?;
        request.tag = self.rule.send();
        let id = pool.insert(request);
        self.arrived += 1;
        if self.rule.waiting() < AHEAD {
            self.read(arrival_ns)?;
        }
        Ok(id)
    }
}

#[cold]
fn none_known(requests: u64) -> SourceError {
    SourceError::Input(format!(
        "none of the {requests} requests has a recorded completion, and dependent replay goes by those; replay them \
         by their times (workload.replay = \"open\"), or with host.queue_depth of them under way (\"closed\")"
    ))
}

impl Arrivals for Dependent<'_> {
    fn summary(&self) -> SourceSummary {
        let mut summary = self.source.summary();
        if self.unknown > 0 {
            let has = if self.unknown == 1 { "request has" } else { "requests have" };
            summary.notes.push(format!(
                "{} {has} no recorded completion, so that none waits for it in dependent replay",
                self.unknown
            ));
        }
        summary
    }

    #[inline]
    fn next_ns(&self) -> u64 {
        self.rule.next_ns()
    }

    fn next_stream(&self) -> u16 {
        self.rule.next().map_or(0, |record| record.stream)
    }

    fn ended(&self) -> bool {
        self.over && self.rule.waiting() == 0
    }

    fn take(&mut self, arrival_ns: u64, pool: &mut Pool) -> Result<u32, SourceError> {
        self.take_as(self.arrived + 1 - self.merged, arrival_ns, pool)
    }

    fn merged(&mut self, pending: &mut Request, taken: &Request) {
        self.merged += 1;
        pending.tag = self.rule.merge(pending.tag, taken.tag);
    }

    #[inline]
    fn completed(&mut self, now_ns: u64, request: &Request) {
        if request.tag != NONE {
            self.rule.complete(request.tag, now_ns);
        }
    }
}
