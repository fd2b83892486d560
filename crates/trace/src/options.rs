//! Options of a trace reader.

use std::fmt;
use std::sync::Arc;

use ftlab_core::settings::{ObjectUnit, OutOfRange, Replay, Settings, StreamsOf};

/// What becomes of recorded completions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Completions {
    /// They are not read.
    #[default]
    Ignored,
    /// They are read if the trace has them.
    Kept,
    /// They are read; a trace without them is refused.
    Needed,
}

/// How a trace is read: the keys of `[workload]`, and what they need to know about the device.
#[derive(Clone, Debug)]
pub struct Options {
    /// Name of the layout, from [`ftlab_core::workload::formats`]; with `auto` the layout is recognised.
    pub format: String,
    /// Number of lines that may fail to parse in each pass.
    pub skip_bad: u64,
    /// Window in which a repeat of op, offset and size is dropped, ns; 0: off.
    pub dedup_ns: u64,
    /// Longest gap between arrivals, ns; `None`: no limit.
    pub max_gap_ns: Option<u64>,
    /// Arrival times are divided by this factor.
    pub speed: f64,
    /// Number of passes over the trace.
    pub repeat: u64,
    /// What happens to addresses beyond the capacity.
    pub out_of_range: OutOfRange,
    /// What a stream is.
    pub streams: StreamsOf,
    /// User capacity of the device, bytes, a multiple of `page_bytes`. `None`: there is no device
    /// (info, convert, head), so that `error` and `wrap` do nothing and `compact` has no limit.
    pub capacity_bytes: Option<u64>,
    /// Bytes of a logical page, for `compact`, `wrap` and the footprint.
    pub page_bytes: u32,
    /// Whether replay is closed: arrival times are then not used, so the trace may lack them.
    pub closed: bool,
    /// What becomes of recorded completions ([`ftlab_core::workload::Record::latency_ns`]).
    pub completions: Completions,
    /// Nanoseconds per unit of the times in a version 3 fio log; `None`: microseconds, as fio writes them.
    pub fio_time_unit_ns: Option<u64>,
    /// What the objects of libCacheSim's layouts are.
    pub object_unit: ObjectUnit,
    /// The callback that decides whether reading continues.
    pub go_on: GoOn,
}

/// A callback, called whenever more of a file has been read; its argument says whether a signal came meanwhile. If it
/// returns `false`, reading stops with
/// [`SourceError::Interrupted`](ftlab_core::workload::SourceError::Interrupted).
#[derive(Clone)]
pub struct GoOn(pub Arc<dyn Fn(bool) -> bool + Send + Sync>);

impl Default for GoOn {
    /// Makes a callback that always continues.
    fn default() -> GoOn {
        GoOn(Arc::new(|_| true))
    }
}

impl fmt::Debug for GoOn {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str("GoOn")
    }
}

impl Default for Options {
    /// Returns the configuration's defaults, without a device.
    fn default() -> Options {
        Options {
            format: "auto".into(),
            skip_bad: 0,
            dedup_ns: 0,
            max_gap_ns: None,
            speed: 1.0,
            repeat: 1,
            out_of_range: OutOfRange::Error,
            streams: StreamsOf::Layout,
            capacity_bytes: None,
            page_bytes: 4096,
            closed: false,
            completions: Completions::Ignored,
            fio_time_unit_ns: None,
            object_unit: ObjectUnit::Sector,
            go_on: GoOn::default(),
        }
    }
}

impl Options {
    /// Returns the reader's options for a run with these settings.
    pub fn from_settings(settings: &Settings) -> Options {
        let workload = &settings.workload;
        Options {
            format: workload.format.clone(),
            skip_bad: workload.skip_bad,
            dedup_ns: workload.dedup_ns,
            max_gap_ns: workload.max_gap_ns,
            speed: workload.speed,
            repeat: workload.repeat,
            out_of_range: workload.out_of_range,
            streams: workload.streams,
            capacity_bytes: Some(settings.user_bytes()),
            page_bytes: settings.ftl.logical_page_bytes,
            closed: workload.replay == Replay::Closed,
            completions: match workload.replay {
                Replay::Dependent => Completions::Needed,
                Replay::Open | Replay::Closed => Completions::Ignored,
            },
            fio_time_unit_ns: workload.fio_time_unit_ns,
            object_unit: workload.object_unit,
            go_on: GoOn::default(),
        }
    }

    /// Whether recorded completions are read.
    pub(crate) fn wants_completions(&self) -> bool {
        self.completions != Completions::Ignored
    }

    /// Returns the same options, with the trace's own addresses.
    pub(crate) fn as_recorded(&self) -> Options {
        Options { out_of_range: OutOfRange::Error, capacity_bytes: None, ..self.clone() }
    }
}
