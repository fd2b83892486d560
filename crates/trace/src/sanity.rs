//! Whether a trace is what it seems to be: what a person would see at a glance, said before anyone measures with it.

use ftlab_core::workload::{Op, Record, Source, SourceError};

const SECOND_NS: u64 = 1_000_000_000;
const DAY_NS: u64 = 86_400 * SECOND_NS;
const YEAR_NS: u64 = 365 * DAY_NS;
const SECTOR: u64 = 512;

/// Fewer requests say nothing of rates and shares.
const ENOUGH: u64 = 100;
/// Requests a second that no drive serves.
const FASTEST: f64 = 2e6;
/// A mean rate below one request in so many seconds.
const SLOWEST: f64 = 1e-3;

/// Reads `source` through: what makes one doubt that it is what it seems to be, each with the remedy. `closed`:
/// its times will not be used.
///
/// # Errors
/// Those of `source`.
pub fn doubts(source: &mut dyn Source, closed: bool) -> Result<Vec<String>, SourceError> {
    let mut sanity = Sanity::default();
    while let Some(record) = source.next()? {
        sanity.add(&record);
    }
    Ok(sanity.verdict(source, closed))
}

/// What is gathered of the requests, after all of the reader's options.
#[derive(Default)]
pub(crate) struct Sanity {
    requests: u64,
    reads: u64,
    first_ns: u64,
    last_ns: u64,
    /// Gaps of a day and more.
    long: u64,
    /// The longest gap, ns, and the request behind it.
    longest: (u64, Option<Record>),
    /// Requests that are no whole sectors, and the first of them.
    odd: u64,
    first_odd: Option<Record>,
}

impl Sanity {
    /// Takes the next request.
    pub(crate) fn add(&mut self, record: &Record) {
        if self.requests == 0 {
            self.first_ns = record.time_ns;
        } else {
            let gap_ns = record.time_ns.saturating_sub(self.last_ns);
            self.long += u64::from(gap_ns >= DAY_NS);
            if gap_ns > self.longest.0 {
                self.longest = (gap_ns, Some(*record));
            }
        }
        self.last_ns = record.time_ns;
        self.requests += 1;
        self.reads += u64::from(record.op == Op::Read);
        if !(record.offset | record.size).is_multiple_of(SECTOR) {
            self.first_odd.get_or_insert(*record);
            self.odd += 1;
        }
    }

    /// What is wrong at a glance, with the remedy, a sentence or two each; nothing if nothing is.
    pub(crate) fn verdict(&self, source: &dyn Source, closed: bool) -> Vec<String> {
        let mut found = Vec::new();
        if !closed {
            self.times(source, &mut found);
        }
        if let Some(first) = &self.first_odd {
            found.push(format!(
                "{} of {} requests are not whole sectors of {SECTOR} B, the first at {}: is it another unit, or \
                 another layout (--format)?",
                self.odd,
                self.requests,
                source.locate(first)
            ));
        }
        if self.requests >= ENOUGH && self.reads == self.requests {
            found
                .push("all requests are reads: is the column of the operation read right (--format)?".into());
        }
        found
    }

    fn times(&self, source: &dyn Source, found: &mut Vec<String>) {
        let span_ns = self.last_ns - self.first_ns;
        if span_ns == 0 {
            if self.requests >= ENOUGH {
                found.push(format!(
                    "all {} requests arrive at one time; replay them one after another: --replay closed --set host.queue_depth=32",
                    self.requests
                ));
            }
            return;
        }
        let (gap_ns, Some(behind)) = &self.longest else { return };
        let (gap_ns, place) = (*gap_ns, source.locate(behind));
        let seconds = gap_ns as f64 / SECOND_NS as f64;
        let jump = gap_ns >= YEAR_NS;
        if jump {
            found.push(format!(
                "the stamps jump by {seconds:.0} s at {place}; if that is no pause, shorten it: --max-gap 60s"
            ));
        } else if self.long > 0 {
            let gaps = if self.long == 1 { "gap" } else { "gaps" };
            found.push(format!(
                "{} {gaps} of a day or more between arrivals, the longest of {:.1} days before {place}; to \
                 shorten them: --max-gap 60s",
                self.long,
                gap_ns as f64 / DAY_NS as f64
            ));
        }
        if self.requests < ENOUGH {
            return;
        }
        // A pause says nothing of the stamps' unit.
        let rate =
            self.requests as f64 * SECOND_NS as f64 / (span_ns - if jump { gap_ns } else { 0 }).max(1) as f64;
        if rate > FASTEST {
            found.push(format!(
                "{rate:.0} requests a second are more than any drive serves: are the stamps in another unit? \
                 --speed 0.001 takes them for a thousand times as long"
            ));
        } else if rate < SLOWEST && self.long == 0 {
            found.push(format!(
                "one request in {:.0} s on average: are the stamps in another unit? --speed 1000 takes them for \
                 a thousandth",
                1.0 / rate
            ));
        }
    }
}
