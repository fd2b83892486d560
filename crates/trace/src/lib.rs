//! Trace readers: every supported layout, compressed or not, becomes one stream of requests.
//!
//! [`open`] delivers a trace as the simulator takes it. This is what happens to a row, in order:
//!
//! 1. its line is parsed (a line that does not parse is an error, or is counted as `bad_line` as long as
//!    `skip_bad` allows; a row of another event of the same I/O is dropped as `not_issue`, one that moves no
//!    data or whose operation is unknown as `other_op`);
//! 2. a read, write or trim of size 0 is dropped (`zero_size`);
//! 3. a repeat of op, stream, offset and size is dropped (`duplicate`) if its recorded stamp lies within `dedup_ns`
//!    of the one kept last;
//! 4. rows are sorted by stamp within a window of 16,384 rows; a stamp that is still smaller than an earlier one is
//!    raised to that and counted (`out_of_order`); in a trace of whole seconds, the requests of a second are spread
//!    evenly over it;
//! 5. the first kept arrival becomes 0 (ftlab's own csv and parquet keep their stamps);
//! 6. gaps between arrivals longer than `max_gap_ns` are shortened to it;
//! 7. pass k of `repeat` starts k times (span + mean gap) later, so that the rate is kept;
//! 8. times are divided by `speed`, from the first one on, and rounded to the nearest nanosecond;
//! 9. addresses beyond the capacity are refused, wrapped or packed (`out_of_range`).
//!
//! A trace of several devices (or files, in a fio log) gives each of them its own address range of [`DEVICE_STRIDE`]
//! bytes, in order of first appearance; a trace of one device keeps its addresses.
//!
//! What a layout names as the source of a request (a process, an application, a user, a tenant), or what
//! [`Options::streams`] asks for, has the streams 1, 2, ... in order of first appearance.
//!
//! A trace streams: memory depends on the rows held, on the duplicate window, on the requests of one second
//! (layouts in whole seconds), on the devices and streams named and, for `compact`, on the pages touched, never on the
//! length of the file.

mod actions;
pub mod atomic;
mod binary;
mod chunks;
mod convert;
mod dedup;
mod depth;
mod detect;
mod devices;
mod fields;
mod footprint;
mod formats;
mod header;
mod info;
mod input;
mod lines;
mod number;
mod opened;
mod options;
mod order;
mod paired;
mod parquet;
mod pipeline;
mod range;
mod requests;
mod rwbs;
mod sanity;
mod series;
mod streams;
mod text;
pub mod timeline;
mod times;

pub use chunks::{Chunk, Chunks, MakeChunks};
pub use convert::{convert_csv, write_csv};
pub use depth::TOLD;
pub use devices::DEVICE_STRIDE;
pub use formats::samples;
pub use info::{Info, SizeCount, StreamCount, info};
pub use options::{Completions, GoOn, Options};
pub use requests::{Further, RequestsCsv};
pub use sanity::doubts;
pub use series::files;
pub use times::Paced;

use ftlab_core::workload::{Record, Source, SourceError};
use pipeline::Pipeline;

/// Opens a trace file and applies all of `options`.
///
/// The beginning of the file (layout, header) is read immediately, and with `compact` the whole file.
///
/// # Errors
/// [`SourceError::Input`] if the file cannot be read, its layout is not recognised, an option contradicts it
/// (`notimes` in open replay), or with `compact` a line is wrong or the touched pages exceed the capacity.
pub fn open(path: &str, options: &Options) -> Result<Box<dyn Source + Send>, SourceError> {
    Ok(Box::new(Pipeline::new(input::Input::file(path, options)?, options)?))
}

/// Whether a file is ftlab's recording of a live device that says when requests completed; `format` is its layout, or
/// `auto`. A file that cannot be read is none.
pub fn is_recording(path: &str, format: &str) -> bool {
    let plain = series::files(path).is_ok_and(|files| files.iter().all(|file| file.is_file()));
    if !plain || !["auto", "csv", "parquet"].contains(&format) {
        return false;
    }
    let options = Options { format: format.into(), ..Options::default() };
    let rows = input::Input::file(path, &options).and_then(|mut input| input.start());
    rows.is_ok_and(|mut rows| rows.has_completions().is_ok_and(|has| has) && rows.is_recording())
}

/// Opens rows from the caller and applies all of `options`.
///
/// `name` appears in messages; `make` restarts the rows for each pass (`repeat`, `compact`).
///
/// # Errors
/// Those of [`open`]; an error in the chunks is passed on.
pub fn open_chunks(
    name: &str,
    make: MakeChunks,
    options: &Options,
) -> Result<Box<dyn Source + Send>, SourceError> {
    Ok(Box::new(Pipeline::new(input::Input::chunks(name, make, options)?, options)?))
}

/// Returns the first `n` requests of a trace, at their recorded addresses (`out_of_range` and the kind of replay do
/// not matter), and whether requests of this trace may have streams.
///
/// # Errors
/// Those of [`open`].
pub fn head(path: &str, options: &Options, n: usize) -> Result<(Vec<Record>, bool), SourceError> {
    let mut source = open(path, &options.as_recorded())?;
    let streams = source.has_streams()?;
    let mut records = Vec::new();
    while records.len() < n {
        match source.next()? {
            Some(record) => records.push(record),
            None => break,
        }
    }
    Ok((records, streams))
}
