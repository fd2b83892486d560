//! Turns recorded stamps into arrival times: raises stamps that are out of order, spreads seconds, shortens gaps,
//! repeats passes, and applies the speed.

use crate::options::{Completions, Options};
use crate::text::Stamps;
use ftlab_core::workload::{Record, Source, SourceError, SourceSummary};
use std::collections::VecDeque;

const SECOND_NS: u64 = 1_000_000_000;

/// The message for a time that does not fit into 64 bits.
const BEYOND: &str = "the arrival time exceeds 2^64 ns (repeat and speed included)";

/// Divides a time by a speed. The function is monotone, as division and rounding of floats are.
fn divided(time_ns: u64, speed: f64) -> Result<u64, &'static str> {
    let whole = speed as u64;
    if whole as f64 == speed {
        // Rounds half up; exact where a float has too few digits.
        return Ok((time_ns / whole) + u64::from(time_ns % whole >= whole.div_ceil(2)));
    }
    let result = (time_ns as f64 / speed).round();
    if result < u64::MAX as f64 { Ok(result as u64) } else { Err(BEYOND) }
}

/// A generator's requests, with arrival times divided by `speed` as for a trace.
pub struct Paced<S> {
    source: S,
    speed: f64,
}

impl<S: Source> Paced<S> {
    /// Makes a source with this speed, which must be above 0.
    pub fn new(source: S, speed: f64) -> Paced<S> {
        Paced { source, speed }
    }
}

impl<S: Source> Source for Paced<S> {
    fn next(&mut self) -> Result<Option<Record>, SourceError> {
        let Some(record) = self.source.next()? else { return Ok(None) };
        let time_ns = divided(record.time_ns, self.speed)
            .map_err(|message| SourceError::Input(format!("{}: {message}", self.source.locate(&record))))?;
        Ok(Some(Record { time_ns, ..record }))
    }

    fn has_streams(&mut self) -> Result<bool, SourceError> {
        self.source.has_streams()
    }

    fn summary(&self) -> SourceSummary {
        self.source.summary()
    }

    fn locate(&self, record: &Record) -> String {
        self.source.locate(record)
    }
}

/// Turns the stamps of kept requests into arrival times.
pub(crate) struct Clock {
    keeps_stamps: bool,
    max_gap_ns: Option<u64>,
    /// Whether a gap begins only once all requests have completed.
    after_completions: bool,
    speed: f64,
    /// The first time of all, from which on times are divided: a trace that begins later is the same trace.
    origin_ns: Option<u64>,
    /// Number of stamps raised, in all passes.
    pub(crate) out_of_order: u64,
    /// When the current pass began.
    pass_start_ns: u64,
    pass: Option<Pass>,
}

/// The current pass, once it has a request.
struct Pass {
    base_ns: u64,
    first_ns: u64,
    /// Largest recorded stamp.
    high_ns: u64,
    /// Time that has been taken out of gaps, ns.
    cut_ns: u64,
    last_ns: u64,
    /// When the last of the requests so far completed, if that is known.
    completed_ns: u64,
    requests: u64,
}

impl Clock {
    /// Makes a clock for stamps of this kind.
    pub(crate) fn new(stamps: Stamps, options: &Options) -> Clock {
        Clock {
            keeps_stamps: stamps == Stamps::Own,
            max_gap_ns: options.max_gap_ns,
            after_completions: options.completions == Completions::Needed,
            speed: options.speed,
            origin_ns: None,
            out_of_order: 0,
            pass_start_ns: 0,
            pass: None,
        }
    }

    /// Returns the arrival time of a request with this stamp, and its latency.
    ///
    /// # Errors
    /// A message if the time exceeds 64 bits.
    #[inline]
    pub(crate) fn arrival(&mut self, stamp_ns: u64, latency_ns: u64) -> Result<(u64, u64), &'static str> {
        let pass = self.pass.get_or_insert_with(|| {
            let base_ns = if self.keeps_stamps { 0 } else { stamp_ns };
            let first_ns = stamp_ns - base_ns;
            Pass {
                base_ns,
                first_ns,
                high_ns: stamp_ns,
                cut_ns: 0,
                last_ns: first_ns,
                completed_ns: 0,
                requests: 0,
            }
        });
        self.out_of_order += u64::from(stamp_ns < pass.high_ns);
        pass.high_ns = pass.high_ns.max(stamp_ns);
        let uncut_ns = pass.high_ns - pass.base_ns;
        if let Some(most) = self.max_gap_ns {
            let since_ns =
                if self.after_completions { pass.last_ns.max(pass.completed_ns) } else { pass.last_ns };
            let gap_ns = (uncut_ns - pass.cut_ns).saturating_sub(since_ns);
            pass.cut_ns += gap_ns.saturating_sub(most);
        }
        pass.last_ns = uncut_ns - pass.cut_ns;
        pass.requests += 1;
        let time_ns = self.pass_start_ns.checked_add(pass.last_ns).ok_or(BEYOND)?;
        if latency_ns != Record::UNKNOWN {
            pass.completed_ns = pass.completed_ns.max(pass.last_ns.saturating_add(latency_ns));
        }
        if self.speed == 1.0 {
            return Ok((time_ns, latency_ns));
        }
        let (origin_ns, speed) = (*self.origin_ns.get_or_insert(time_ns), self.speed);
        let faster = |time_ns: u64| {
            divided(origin_ns, speed)?.checked_add(divided(time_ns - origin_ns, speed)?).ok_or(BEYOND)
        };
        let arrival_ns = faster(time_ns)?;
        if latency_ns == Record::UNKNOWN {
            return Ok((arrival_ns, latency_ns));
        }
        // Arrivals and completions stay in order.
        let complete_ns = faster(time_ns.saturating_add(latency_ns))?;
        Ok((arrival_ns, complete_ns - arrival_ns))
    }

    /// Ends a pass: the next one begins one span and one mean gap after the start of this one.
    ///
    /// # Errors
    /// A message if that time exceeds 64 bits.
    pub(crate) fn next_pass(&mut self) -> Result<(), &'static str> {
        if let Some(pass) = self.pass.take() {
            let span_ns = pass.last_ns - pass.first_ns;
            let gap_ns = match pass.requests {
                0 | 1 => 0,
                n => (u128::from(span_ns) + u128::from(n - 1) / 2) / u128::from(n - 1),
            };
            let period_ns = span_ns.checked_add(gap_ns as u64).ok_or(BEYOND)?;
            self.pass_start_ns = self.pass_start_ns.checked_add(period_ns).ok_or(BEYOND)?;
        }
        Ok(())
    }
}

/// Spreads requests stamped in whole seconds evenly over their second.
///
/// Holds the requests of one second. Stamps come out in order: a second that is earlier than a previous one is
/// first raised to the previous one.
#[derive(Default)]
pub(crate) struct Spread {
    out: VecDeque<Record>,
    second: Vec<Record>,
    high_ns: u64,
    /// Number of stamps raised.
    pub(crate) out_of_order: u64,
}

impl Spread {
    /// Adds the next request of the trace.
    pub(crate) fn push(&mut self, mut record: Record) {
        self.out_of_order += u64::from(record.time_ns < self.high_ns);
        if record.time_ns > self.high_ns {
            self.end_second();
            self.high_ns = record.time_ns;
        }
        record.time_ns = self.high_ns;
        self.second.push(record);
    }

    /// Ends the current second, because the next one or the end of the trace has come: the requests held can come out.
    pub(crate) fn end_second(&mut self) {
        let count = self.second.len() as u64;
        for (i, mut record) in (0..).zip(self.second.drain(..)) {
            let into_ns = (u128::from(SECOND_NS) * i / u128::from(count)) as u64;
            record.time_ns = record.time_ns.saturating_add(into_ns);
            self.out.push_back(record);
        }
    }

    /// Returns the next request whose time is known.
    pub(crate) fn pop(&mut self) -> Option<Record> {
        self.out.pop_front()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ftlab_core::workload::Op;

    fn clock(stamps: Stamps, change: impl FnOnce(&mut Options)) -> Clock {
        let mut options = Options::default();
        change(&mut options);
        Clock::new(stamps, &options)
    }

    fn arrivals(clock: &mut Clock, stamps: &[u64]) -> Vec<u64> {
        stamps.iter().map(|&stamp| clock.arrival(stamp, Record::UNKNOWN).unwrap().0).collect()
    }

    #[test]
    fn the_first_becomes_zero_unless_stamps_are_kept() {
        assert_eq!(
            arrivals(&mut clock(Stamps::Clock, |_| ()), &[100, 130, 110, 125, 140]),
            [0, 30, 30, 30, 40]
        );
        let mut own = clock(Stamps::Own, |_| ());
        assert_eq!(arrivals(&mut own, &[100, 130, 90]), [100, 130, 130]);
        assert_eq!(own.out_of_order, 1);
    }

    #[test]
    fn gaps_are_cut() {
        let mut clock = clock(Stamps::Clock, |options| options.max_gap_ns = Some(10));
        assert_eq!(arrivals(&mut clock, &[5, 15, 26, 1000, 1005, 990, 1015]), [0, 10, 20, 30, 35, 35, 45]);
    }

    #[test]
    fn speed_divides_and_rounds() {
        let mut whole = clock(Stamps::Own, |options| options.speed = 2.0);
        assert_eq!(arrivals(&mut whole, &[0, 1, 2, 5, (1 << 63) + 1]), [0, 1, 1, 3, (1 << 62) + 1]);
        let mut slow = clock(Stamps::Own, |options| options.speed = 0.4);
        assert_eq!(arrivals(&mut slow, &[0, 1, 2]), [0, 3, 5]);
        assert!(slow.arrival(u64::MAX, Record::UNKNOWN).is_err());
    }

    /// Regression: times since 1970, which floats hold to 256 ns, were divided as a whole.
    #[test]
    fn a_trace_that_begins_later_has_the_same_gaps_at_any_speed() {
        for start_ns in [1, 12_345_678_901, 1_764_000_000_000_000_000] {
            let [mut now, mut later] = [0; 2].map(|_| clock(Stamps::Own, |options| options.speed = 1.5));
            let stamps = [0, 10, 25, 1_000_007, 1_000_008];
            let arrivals_now = arrivals(&mut now, &stamps);
            let arrivals_later = arrivals(&mut later, &stamps.map(|stamp| start_ns + stamp));
            let gaps = |times: &[u64]| times.iter().map(|time| time - times[0]).collect::<Vec<_>>();
            assert_eq!(gaps(&arrivals_later), gaps(&arrivals_now), "from {start_ns}");
        }
    }

    #[test]
    fn passes_keep_the_rate() {
        let mut clock = clock(Stamps::Clock, |_| ());
        assert_eq!(arrivals(&mut clock, &[7, 17, 27]), [0, 10, 20]);
        clock.next_pass().unwrap();
        assert_eq!(arrivals(&mut clock, &[7, 17, 27]), [30, 40, 50]);
        clock.next_pass().unwrap();
        assert_eq!(arrivals(&mut clock, &[7]), [60]);
        // A single request has no gap.
        clock.next_pass().unwrap();
        assert_eq!(arrivals(&mut clock, &[7]), [60]);
    }

    #[test]
    fn own_stamps_keep_their_start_in_every_pass() {
        let mut clock = clock(Stamps::Own, |_| ());
        assert_eq!(arrivals(&mut clock, &[100, 200]), [100, 200]);
        clock.next_pass().unwrap();
        assert_eq!(arrivals(&mut clock, &[100, 200]), [300, 400]);
    }

    #[test]
    fn seconds_are_spread() {
        let mut spread = Spread::default();
        let record =
            |second: u64| Record { time_ns: second * SECOND_NS, op: Op::Read, size: 1, ..Record::FLUSH };
        for second in [5, 5, 5, 5, 7, 6, 9] {
            spread.push(record(second));
        }
        spread.end_second();
        let times: Vec<_> =
            std::iter::from_fn(|| spread.pop()).map(|record| record.time_ns / 1_000_000).collect();
        assert_eq!(times, [5000, 5250, 5500, 5750, 7000, 7500, 9000]);
        assert_eq!(spread.out_of_order, 1);
    }
}
