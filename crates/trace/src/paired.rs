//! Layouts in which a completion is a row of its own: each request gets the latency that follows from it.
//!
//! The block layer merges and splits requests on their way, so a completion is taken for the bytes that it covers: a
//! request has completed once the completions after its arrival have covered all of its bytes. Of two requests for the
//! same bytes, the earlier is covered first.

use std::collections::VecDeque;

use crate::depth::Depth;
use crate::options::Options;
use crate::order::{Order, WINDOW};
use crate::text::{COMPLETION, Dropped, Rows};
use ftlab_core::workload::{Objects, Op, Record, SourceError};

/// Returns the rows with their latencies, if their completions are rows `apart` and are wanted.
pub(crate) fn paired(rows: Box<dyn Rows>, apart: bool, options: &Options) -> Box<dyn Rows> {
    match apart && options.wants_completions() {
        true => Box::new(Paired {
            rows,
            order: Order::default(),
            held: VecDeque::new(),
            passed: 0,
            open: Vec::new(),
            over: false,
        }),
        false => rows,
    }
}

/// Requests with their latencies, in order of arrival.
struct Paired {
    rows: Box<dyn Rows>,
    order: Order,
    /// Requests that are held until the first of them has completed, each with the bytes that are not covered yet.
    held: VecDeque<(Record, u64)>,
    /// Number of requests that have left.
    passed: u64,
    /// The requests held that have not completed, by their numbers.
    open: Vec<u64>,
    over: bool,
}

impl Paired {
    /// Lets a completion cover requests.
    fn cover(&mut self, by: &Record) {
        let (mut left, end) = (by.size.max(1), by.offset + by.size);
        let mut at = 0;
        while left > 0 && at < self.open.len() {
            let (record, open) = &mut self.held[(self.open[at] - self.passed) as usize];
            let common = match by.op {
                Op::Flush => 1,
                _ => end.min(record.offset + record.size).saturating_sub(by.offset.max(record.offset)),
            };
            let covered = if record.op == by.op { common.min(left).min(*open) } else { 0 };
            left -= covered;
            *open -= covered;
            if *open == 0 {
                record.latency_ns = by.time_ns.saturating_sub(record.time_ns);
                self.open.remove(at);
            } else {
                at += 1;
            }
        }
    }

    fn leave(&mut self) -> Option<Record> {
        let (record, _) = self.held.pop_front()?;
        if self.open.first() == Some(&self.passed) {
            self.open.remove(0);
        }
        self.passed += 1;
        Some(record)
    }
}

impl Rows for Paired {
    fn next(&mut self) -> Result<Option<Record>, SourceError> {
        loop {
            let whole = self.held.front().is_some_and(|(_, open)| *open == 0);
            if whole || self.over || self.held.len() >= WINDOW {
                return Ok(self.leave());
            }
            match self.order.next(|| self.rows.next())? {
                None => self.over = true,
                Some(record) if record.flags & COMPLETION != 0 => self.cover(&record),
                Some(record) => {
                    self.open.push(self.passed + self.held.len() as u64);
                    self.held.push_back((record, record.size.max(1)));
                }
            }
        }
    }

    fn dropped(&self) -> &Dropped {
        self.rows.dropped()
    }

    fn notes(&self) -> Vec<String> {
        self.rows.notes()
    }

    fn depth(&self) -> Option<&Depth> {
        self.rows.depth()
    }

    fn objects(&self) -> Option<Objects> {
        self.rows.objects()
    }

    fn has_completions(&mut self) -> Result<bool, SourceError> {
        self.rows.has_completions()
    }

    fn has_streams(&mut self) -> Result<bool, SourceError> {
        self.rows.has_streams()
    }

    fn stream_names(&self) -> &[String] {
        self.rows.stream_names()
    }
}
