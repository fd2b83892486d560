//! Turns rows into requests, in the steps that the crate's documentation lists.

use crate::dedup::Dedup;
use crate::depth::Depth;
use crate::input::Input;
use crate::lines::input_error;
use crate::options::Options;
use crate::order::Order;
use crate::range::{Packer, Range};
use crate::text::{Dropped, Rows, Stamps};
use crate::times::{Clock, Spread};
use ftlab_core::settings::OutOfRange;
use ftlab_core::workload::{Op, Record, Source, SourceError, SourceSummary};

/// A trace as the simulator takes it.
pub(crate) struct Pipeline {
    input: Input,
    options: Options,
    kept: Kept,
    spread: Option<Spread>,
    clock: Clock,
    range: Range,
    /// Number of passes started.
    pass: u64,
    /// Number of requests delivered in this pass.
    delivered: u64,
    /// Number of rows dropped in earlier passes, by reason.
    dropped: Dropped,
    spread_out_of_order: u64,
    done: bool,
}

/// Requests of one pass, in order.
struct Kept {
    wanted: Wanted,
    order: Order,
    /// The request that comes next, because the flush that it asked for has been delivered.
    flushed: Option<Record>,
}

/// Rows of one pass, without those of size 0 and without duplicates.
struct Wanted {
    rows: Box<dyn Rows>,
    dedup: Option<Dedup>,
    zero_size: u64,
    duplicates: u64,
}

impl Wanted {
    #[inline]
    fn next(&mut self) -> Result<Option<Record>, SourceError> {
        loop {
            let Some(record) = self.rows.next()? else { return Ok(None) };
            if record.size == 0 && record.op != Op::Flush {
                self.zero_size += 1;
            } else if self.dedup.as_mut().is_some_and(|dedup| dedup.is_repeat(&record)) {
                self.duplicates += 1;
            } else {
                return Ok(Some(record));
            }
        }
    }
}

impl Kept {
    fn new(rows: Box<dyn Rows>, options: &Options) -> Kept {
        let dedup = (options.dedup_ns > 0).then(|| Dedup::new(options.dedup_ns));
        let wanted = Wanted { rows, dedup, zero_size: 0, duplicates: 0 };
        Kept { wanted, order: Order::default(), flushed: None }
    }

    #[inline]
    fn next(&mut self) -> Result<Option<Record>, SourceError> {
        if let Some(record) = self.flushed.take() {
            return Ok(Some(record));
        }
        let Some(record) = self.order.next(|| self.wanted.next())? else { return Ok(None) };
        if record.flags & Record::PREFLUSH == 0 {
            return Ok(Some(record));
        }
        let flags = record.flags & !Record::PREFLUSH;
        self.flushed = Some(Record { flags, ..record });
        let latency_ns = Record::UNKNOWN;
        Ok(Some(Record { op: Op::Flush, offset: 0, size: 0, flags: 0, latency_ns, ..record }))
    }

    fn add_dropped(&self, sum: &mut Dropped) {
        let Wanted { rows, zero_size, duplicates, .. } = &self.wanted;
        for (&reason, &count) in rows.dropped() {
            *sum.entry(reason).or_default() += count;
        }
        for (reason, &count) in [("zero_size", zero_size), ("duplicate", duplicates)] {
            if count > 0 {
                *sum.entry(reason).or_default() += count;
            }
        }
    }
}

impl Pipeline {
    /// Applies `options` to `input`; with `compact`, reads it to the end once.
    pub(crate) fn new(mut input: Input, options: &Options) -> Result<Pipeline, SourceError> {
        let range = match options.out_of_range {
            OutOfRange::Compact => pack(&mut input, options)?,
            OutOfRange::Error | OutOfRange::Wrap => Range::new(options),
        };
        let kept = Kept::new(input.start()?, options);
        let whole_seconds = input.stamps == Stamps::Seconds;
        Ok(Pipeline {
            clock: Clock::new(input.stamps, options),
            spread: whole_seconds.then(Spread::default),
            input,
            options: options.clone(),
            kept,
            range,
            pass: 1,
            delivered: 0,
            dropped: Dropped::new(),
            spread_out_of_order: 0,
            done: false,
        })
    }

    /// Returns the trace itself.
    pub(crate) fn input(&self) -> &Input {
        &self.input
    }

    /// Returns a summary of how many requests were under way during the recording; `None` if that is unknown.
    pub(crate) fn depth(&self) -> Option<&Depth> {
        self.kept.wanted.rows.depth()
    }

    /// Returns the names of the streams seen so far, from stream 1 on; none where streams have no names.
    pub(crate) fn stream_names(&self) -> &[String] {
        self.kept.wanted.rows.stream_names()
    }

    /// Returns notes for people who read the figures.
    fn notes(&self) -> Vec<String> {
        let mut notes = self.kept.wanted.rows.notes();
        let Order { moved, back_ns, .. } = &self.kept.order;
        if *moved > 0 {
            notes.push(format!(
                "rows are put in order of their stamps: {moved} came after later ones, by up to {:.6} ms",
                *back_ns as f64 / 1e6
            ));
        }
        if self.spread.is_some() {
            notes.push(
                "recorded in whole seconds: the requests of a second are spread evenly over it".to_owned(),
            );
        }
        notes
    }

    /// Returns the next kept request of the pass, in order of recorded time.
    #[inline]
    fn in_order(&mut self) -> Result<Option<Record>, SourceError> {
        let Some(spread) = &mut self.spread else { return self.kept.next() };
        loop {
            if let Some(record) = spread.pop() {
                return Ok(Some(record));
            }
            match self.kept.next()? {
                Some(record) => spread.push(record),
                None => {
                    spread.end_second();
                    return Ok(spread.pop());
                }
            }
        }
    }

    /// Starts the next pass; returns `false` if all passes have been made.
    fn next_pass(&mut self) -> Result<bool, SourceError> {
        if self.delivered == 0 {
            return Err(nothing(&self.input, &self.kept));
        }
        if self.pass == self.options.repeat {
            return Ok(false);
        }
        self.pass += 1;
        self.delivered = 0;
        self.kept.add_dropped(&mut self.dropped);
        self.kept = Kept::new(self.input.start()?, &self.options);
        if let Some(spread) = &mut self.spread {
            self.spread_out_of_order += spread.out_of_order;
            *spread = Spread::default();
        }
        self.clock.next_pass().map_err(|message| input_error(&self.input.name, message))?;
        Ok(true)
    }

    fn advance(&mut self) -> Result<Option<Record>, SourceError> {
        loop {
            if let Some(mut record) = self.in_order()? {
                self.delivered += 1;
                match self.clock.arrival(record.time_ns, record.latency_ns) {
                    Ok(times) => (record.time_ns, record.latency_ns) = times,
                    Err(message) => return Err(input_error(&self.input.place(record.line), message)),
                }
                return match self.range.place(&mut record) {
                    Ok(()) => Ok(Some(record)),
                    Err(message) => Err(input_error(&self.input.place(record.line), &message)),
                };
            }
            if !self.next_pass()? {
                return Ok(None);
            }
        }
    }
}

impl Source for Pipeline {
    fn next(&mut self) -> Result<Option<Record>, SourceError> {
        if self.done {
            return Ok(None);
        }
        let next = self.advance();
        self.done = !matches!(next, Ok(Some(_)));
        next
    }

    fn has_completions(&mut self) -> Result<bool, SourceError> {
        self.kept.wanted.rows.has_completions()
    }

    fn has_streams(&mut self) -> Result<bool, SourceError> {
        self.kept.wanted.rows.has_streams()
    }

    fn summary(&self) -> SourceSummary {
        let mut dropped = self.dropped.clone();
        self.kept.add_dropped(&mut dropped);
        let spread = self.spread.as_ref().map_or(0, |spread| spread.out_of_order);
        SourceSummary {
            dropped,
            out_of_order: self.clock.out_of_order + self.spread_out_of_order + spread,
            notes: self.notes(),
            waited: self.depth().and_then(Depth::waited),
            recording: self.kept.wanted.rows.is_recording(),
            told: self.depth().map_or(0, Depth::told),
            objects: self.kept.wanted.rows.objects(),
        }
    }

    fn locate(&self, record: &Record) -> String {
        self.input.place(record.line)
    }
}

fn pack(input: &mut Input, options: &Options) -> Result<Range, SourceError> {
    let mut kept = Kept::new(input.start()?, options);
    let mut packer = Packer::new(options);
    let mut any = false;
    while let Some(record) = kept.next()? {
        any = true;
        packer.touch(&record);
        if packer.is_hopeless() {
            break;
        }
    }
    if !any {
        return Err(nothing(input, &kept));
    }
    packer.finish().map_err(|message| input_error(&input.name, &message))
}

/// Makes the error for a pass that has no requests left.
fn nothing(input: &Input, kept: &Kept) -> SourceError {
    let mut dropped = Dropped::new();
    kept.add_dropped(&mut dropped);
    let reasons: Vec<_> = dropped.iter().map(|(reason, count)| format!("{reason} {count}")).collect();
    let why = if reasons.is_empty() {
        "it holds no rows".to_owned()
    } else {
        format!("all rows were dropped ({})", reasons.join(", "))
    };
    input_error(&input.name, &format!("no request in this trace (read as {}): {why}", input.format))
}
