//! The requests that enter the stack: block requests, from a trace or a generator (`ftlab-generator`).

mod formats;
mod scatter;
pub mod settings;
pub mod tenants;

pub use formats::formats;
pub use scatter::Scatter;

use crate::named;

named! {
    /// The operation of a request.
    #[derive(Hash)]
    #[repr(u8)]
    pub enum Op {
        /// Read of a byte range.
        Read = "read",
        /// Write of a byte range.
        Write = "write",
        /// Trim (discard) of a byte range: its content is no longer needed.
        Trim = "trim",
        /// Flush: data that was written before must survive a power cut. It has no range.
        Flush = "flush",
    }
}

impl Op {
    /// Returns the letter used in files: R, W, T, F.
    pub const fn letter(self) -> char {
        match self {
            Op::Read => 'R',
            Op::Write => 'W',
            Op::Trim => 'T',
            Op::Flush => 'F',
        }
    }
}

/// One request as a workload delivers it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Record {
    /// Arrival time, nanoseconds; never decreasing within a source.
    pub time_ns: u64,
    /// Operation.
    pub op: Op,
    /// First byte, from the start of the device.
    pub offset: u64,
    /// Number of bytes; 0 only for [`Op::Flush`].
    pub size: u64,
    /// Line (text) or row (binary) of the source, from 1; 0 where there is none.
    pub line: u64,
    /// [`Record::FUA`] and [`Record::PREFLUSH`], combined by "or".
    pub flags: u8,
    /// Stream: the tenant of the request, or the placement handle of its data; 0 for a request without a stream.
    pub stream: u16,
    /// Time from arrival to completion when the request was recorded, ns; [`Record::UNKNOWN`] if that is not recorded,
    /// or if nobody asked for it.
    pub latency_ns: u64,
}

impl Record {
    /// A write with this flag completes when it would survive a power cut (force unit access).
    pub const FUA: u8 = 1;
    /// A record with this flag requests a flush before it. Readers of traces deliver that flush as a request of its own
    /// and clear the flag; elsewhere it has no effect.
    pub const PREFLUSH: u8 = 2;
    /// A latency that is not known.
    pub const UNKNOWN: u64 = u64::MAX;
    /// A flush at time 0, of which a literal takes the fields that it does not state.
    pub const FLUSH: Record = Record {
        time_ns: 0,
        op: Op::Flush,
        offset: 0,
        size: 0,
        line: 0,
        flags: 0,
        stream: 0,
        latency_ns: Record::UNKNOWN,
    };
}

/// Why a source could not deliver its next record.
#[derive(Debug, thiserror::Error)]
pub enum SourceError {
    /// The input or its options are wrong; the message says what, where (`file:line: ...`) and what to do,
    /// and its first line is complete by itself.
    #[error("{0}")]
    Input(String),
    /// The caller asked the run to stop (for example by an interrupt).
    #[error("interrupted")]
    Interrupted,
}

/// Counts of what a source read and dropped; complete once the source has returned `None`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SourceSummary {
    /// Records dropped, by reason (`zero_size`, `duplicate`, `bad_line`, ...), in name order.
    pub dropped: std::collections::BTreeMap<&'static str, u64>,
    /// Number of time stamps that were smaller than an earlier one and were raised to that one.
    pub out_of_order: u64,
    /// Notes for those who read the figures.
    pub notes: Vec<String>,
    /// Number of requests that the recorded clients had under way, if they waited for answers.
    pub waited: Option<u64>,
    /// Whether the source is a recording of a live device that says when requests completed.
    pub recording: bool,
    /// How often the recorded device was told to behave differently.
    pub told: u64,
    /// What the requests access, in a trace of a cache.
    pub objects: Option<Objects>,
}

/// What a trace of a cache has in place of addresses and operations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Objects {
    /// Bytes for which the number of an object counts.
    pub unit_bytes: u64,
    /// Number of requests that name no operation and are reads.
    pub without_op: u64,
}

/// A stream of requests in arrival order, whose memory does not grow with its length.
pub trait Source {
    /// Returns the next record, or `None` at the end (and from then on).
    fn next(&mut self) -> Result<Option<Record>, SourceError>;

    /// Whether records of this source may have streams. It may be asked before the first record, and may read the
    /// beginning of the source.
    ///
    /// # Errors
    /// Those of [`Source::next`].
    fn has_streams(&mut self) -> Result<bool, SourceError> {
        Ok(false)
    }

    /// Whether this source delivers when requests completed ([`Record::latency_ns`]); asked as
    /// [`Source::has_streams`] is.
    ///
    /// # Errors
    /// Those of [`Source::next`].
    fn has_completions(&mut self) -> Result<bool, SourceError> {
        Ok(false)
    }

    /// Returns counts of what was read and dropped so far.
    fn summary(&self) -> SourceSummary {
        SourceSummary::default()
    }

    /// Returns the `file:line` of a record, for messages.
    fn locate(&self, record: &Record) -> String {
        format!("request {}", record.line)
    }
}

impl Source for std::vec::IntoIter<Record> {
    fn next(&mut self) -> Result<Option<Record>, SourceError> {
        Ok(Iterator::next(self))
    }
}
