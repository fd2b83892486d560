//! Checks whether a trace is what it seems to be: reports what a person would see at a glance, before anyone measures
//! with it.

use ftlab_core::settings::Replay;
use ftlab_core::workload::{Objects, Op, Record, Source, SourceError};

const SECOND_NS: u64 = 1_000_000_000;
const DAY_NS: u64 = 86_400 * SECOND_NS;
const YEAR_NS: u64 = 365 * DAY_NS;
const SECTOR: u64 = 512;

/// Least number of requests from which anything can be concluded about rates and shares.
const ENOUGH: u64 = 100;
/// A rate of requests per second that no drive reaches.
const FASTEST: f64 = 2e6;
/// A mean rate of requests per second that is lower than that of any real trace.
const SLOWEST: f64 = 1e-3;
/// Bytes that no drive transfers in a second.
const WIDEST: u64 = 32 << 30;
/// An address that no drive has.
const LARGEST: u64 = 1 << 47;
/// Share of raised stamps above which the recorder cannot have written them in this order.
const RAISED: f64 = 0.01;
/// A request counts as logged twice if it equals one of the `NEAR` requests before it, at most `NEAR_NS` earlier; if
/// the share of such requests exceeds `REPEATED`, the recorder habitually logs requests twice.
const NEAR: usize = 4;
const NEAR_NS: u64 = 50_000_000;
const REPEATED: f64 = 0.05;

/// Reads `source` to its end; returns reasons to doubt that it is what it seems to be, each with the remedy. `replay`
/// says what its times will be used for.
///
/// # Errors
/// The error of `source`.
pub fn doubts(source: &mut dyn Source, replay: Replay) -> Result<Vec<String>, SourceError> {
    let mut sanity = Sanity::default();
    while let Some(record) = source.next()? {
        sanity.add(&record);
    }
    Ok(sanity.verdict(source, replay))
}

/// What is collected from the requests, after all of the reader's options have been applied.
#[derive(Default)]
pub(crate) struct Sanity {
    requests: u64,
    reads: u64,
    first_ns: u64,
    last_ns: u64,
    /// Number of gaps of a day or more.
    long: u64,
    /// The longest gap, ns, and the request after it.
    longest: (u64, Option<Record>),
    /// Number of requests that are not whole sectors, and the first of them.
    odd: u64,
    first_odd: Option<Record>,
    /// Number of the current second, its bytes so far, and the bytes of the busiest second.
    second: u64,
    bytes: u64,
    most_bytes: u64,
    /// The last few requests, and the number of requests that repeated one of the few before them.
    near: [Option<Record>; NEAR],
    repeats: u64,
    /// The first address, whether another differs from it by anything but whole units of a sector of sectors, whether
    /// any does at all, and the largest end.
    first_offset: Option<u64>,
    odd_steps: bool,
    steps: bool,
    end: u64,
}

impl Sanity {
    /// Adds the next request.
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
        let same = |one: &Record| {
            (one.op, one.offset, one.size) == (record.op, record.offset, record.size)
                && record.time_ns.saturating_sub(one.time_ns) <= NEAR_NS
        };
        self.repeats += u64::from(record.op != Op::Flush && self.near.iter().flatten().any(same));
        self.near[self.requests as usize % NEAR] = Some(*record);
        if record.op != Op::Flush {
            let step = record.offset ^ *self.first_offset.get_or_insert(record.offset);
            self.steps |= step != 0;
            self.odd_steps |= !step.is_multiple_of(SECTOR * SECTOR);
            self.end = self.end.max(record.offset.saturating_add(record.size));
        }
        let second = record.time_ns.saturating_sub(self.first_ns) / SECOND_NS;
        if std::mem::replace(&mut self.second, second) != second {
            self.bytes = 0;
        }
        self.bytes = self.bytes.saturating_add(if record.op == Op::Trim { 0 } else { record.size });
        self.most_bytes = self.most_bytes.max(self.bytes);
        self.last_ns = record.time_ns;
        self.requests += 1;
        self.reads += u64::from(record.op == Op::Read);
        if !(record.offset | record.size).is_multiple_of(SECTOR) {
            self.first_odd.get_or_insert(*record);
            self.odd += 1;
        }
    }

    /// Returns what looks wrong at a glance, each fault in a sentence or two with the remedy; empty if nothing looks
    /// wrong.
    pub(crate) fn verdict(&self, source: &dyn Source, replay: Replay) -> Vec<String> {
        let mut found = Vec::new();
        if replay != Replay::Closed {
            self.times(source, &mut found);
        }
        if replay == Replay::Open {
            let summary = source.summary();
            if summary.recording {
                found.push(
                    "a recording of a live device, replayed by its times: on a slower or faster device its requests \
                     would have come later or sooner, each after those that it waited for: --replay dependent"
                        .into(),
                );
            } else if let Some(depth) = summary.waited {
                found.push(format!(
                    "recorded of clients that waited for answers, with at most {depth} requests under way; by its times \
                     it is replayed without waiting: --set workload.replay=closed --set host.queue_depth={depth}"
                ));
            }
        }
        let told = source.summary().told;
        if told > 0 {
            found.push(format!(
                "recorded of a device that was told to behave differently, {told} times (the lines \"# told\"); a replay \
                 repeats the requests, not this, so its result is not that of the device"
            ));
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
        let objects = source.summary().objects;
        found.extend(objects.and_then(|objects| self.unit(objects)));
        let without_op = objects.map_or(0, |objects| objects.without_op);
        if self.requests >= ENOUGH && self.reads == self.requests && without_op < self.reads {
            found
                .push("all requests are reads: is the column of the operation read right (--format)?".into());
        }
        let timed = self.last_ns > self.first_ns;
        if timed && self.requests >= ENOUGH && self.share(self.repeats) > REPEATED {
            found.push(format!(
                "{:.1} % of the requests are the same as one of the {NEAR} before them, within 50 ms: if the recorder \
                 logs requests twice, drop the repeats: --dedup 50ms",
                100.0 * self.share(self.repeats)
            ));
        }
        found
    }

    /// Returns why the objects of a cache may be byte offsets, if they are taken for sectors.
    fn unit(&self, objects: Objects) -> Option<String> {
        if objects.unit_bytes != SECTOR || self.requests < ENOUGH {
            return None;
        }
        let why = match self.end {
            end if end > LARGEST => format!("addresses of up to {} TiB are beyond any drive", end >> 40),
            _ if self.steps && !self.odd_steps => "all objects are apart by multiples of 512".to_owned(),
            _ => return None,
        };
        Some(format!("{why}, as byte offsets are: if they are bytes, --set workload.object_unit=byte"))
    }

    fn share(&self, part: u64) -> f64 {
        part as f64 / self.requests as f64
    }

    fn times(&self, source: &dyn Source, found: &mut Vec<String>) {
        let raised = source.summary().out_of_order;
        if self.share(raised) > RAISED {
            found.push(format!(
                "{raised} of {} stamps go back too far to be sorted, and were raised to the one before: is the file \
                 several recordings, one after the other? Sort its rows by their stamps, or use each by itself",
                self.requests
            ));
        }
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
        let (seconds, place) = (*gap_ns as f64 / SECOND_NS as f64, source.locate(behind));
        let jump = *gap_ns >= YEAR_NS;
        if jump {
            found.push(format!(
                "the stamps jump by {seconds:.0} s at {place}; if that is not a pause, shorten it: --max-gap 60s"
            ));
        } else if self.long > 0 {
            let gaps = if self.long == 1 { "gap" } else { "gaps" };
            found.push(format!(
                "{} {gaps} of a day or more between arrivals, the longest of {:.1} days before {place}; to \
                 shorten them: --max-gap 60s",
                self.long,
                *gap_ns as f64 / DAY_NS as f64
            ));
        }
        if self.requests < ENOUGH {
            return;
        }
        // A pause says nothing about the unit of the stamps, so it is left out of the time.
        let rate = self.requests as f64 * SECOND_NS as f64
            / (span_ns - if jump { *gap_ns } else { 0 }).max(1) as f64;
        if rate > FASTEST {
            found.push(format!(
                "{rate:.0} requests a second are more than any drive serves: are the stamps in another unit? \
                 --speed 0.001 takes them for a thousand times as long"
            ));
        } else if self.most_bytes > WIDEST {
            found.push(format!(
                "{} GiB in one second are more than any drive transfers: are sizes or stamps in another unit, or is it \
                 another layout (--format)?",
                self.most_bytes >> 30
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
