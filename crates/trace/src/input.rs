//! A trace that can be read again from its beginning: a file, or the caller's chunks.

use crate::chunks::{ChunkRows, MakeChunks};
use crate::detect;
use crate::formats::{BINARIES, FORMATS};
use crate::lines::{Lines, input_error};
use crate::options::{Completions, Options};
use crate::parquet;
use crate::series::files;
use crate::text::{Rows, Stamps};
use ftlab_core::settings::{OutOfRange, StreamsOf};
use ftlab_core::workload::SourceError;

/// A function that starts another pass.
type Restart = Box<dyn FnMut() -> Result<Box<dyn Rows>, SourceError> + Send>;

/// A trace whose layout is known.
pub(crate) struct Input {
    /// The file's path, or the caller's name for it.
    pub(crate) name: String,
    /// Name of the layout.
    pub(crate) format: &'static str,
    /// What the layout was recognised by; `None`: it was named.
    pub(crate) told_by: Option<String>,
    /// How the file is compressed, if it is.
    pub(crate) compression: Option<&'static str>,
    /// What the trace's stamps mean.
    pub(crate) stamps: Stamps,
    /// Whether messages count rows instead of lines.
    pub(crate) in_rows: bool,
    first: Option<Box<dyn Rows>>,
    restart: Restart,
}

impl Input {
    /// Opens a file and recognises its layout.
    pub(crate) fn file(path: &str, options: &Options) -> Result<Input, SourceError> {
        if options.format == "parquet" || options.format == "auto" && parquet::is_one(path) {
            let (make, stamps) = parquet::open(path, options)?;
            let told_by = (options.format == "auto").then(|| "its first bytes".to_owned());
            return Ok(Input { told_by, stamps, ..Input::chunks(path, make, options)? });
        }
        let lines = Lines::open(path, &options.go_on)?;
        let compression = lines.compression();
        let (format, told_by) = detect::format(path, &lines, options)?;
        check_streams(path, format.name, (format.sources, format.streams), options)?;
        let first = Some(checked(path, format.name, (format.rows)(path, lines, options), options)?);
        if format.stamps == Stamps::Absent && !options.closed && options.capacity_bytes.is_some() {
            return Err(input_error(
                path,
                &format!(
                    "a {} trace has no arrival times, so it cannot be replayed by them\n  \
                     closed replay keeps that many requests outstanding: --replay closed --set host.queue_depth=32",
                    format.name
                ),
            ));
        }
        let passes = options.repeat + u64::from(options.out_of_range == OutOfRange::Compact);
        if passes > 1 && !files(path)?.iter().all(|file| file.is_file()) {
            return Err(input_error(
                path,
                "is not a regular file and cannot be read twice, as workload.repeat and \
                 workload.out_of_range=compact need",
            ));
        }
        let (name, again) = (path.to_owned(), options.clone());
        Ok(Input {
            name: path.to_owned(),
            format: format.name,
            told_by,
            compression,
            stamps: format.stamps,
            in_rows: BINARIES.iter().any(|binary| binary.format.name == format.name),
            first,
            restart: Box::new(move || Ok((format.rows)(&name, Lines::open(&name, &again.go_on)?, &again))),
        })
    }

    /// Makes an input of rows from the caller.
    pub(crate) fn chunks(name: &str, mut make: MakeChunks, options: &Options) -> Result<Input, SourceError> {
        check_streams(name, "parquet", (&[], Some("those of its column stream")), options)?;
        let (owned, again) = (name.to_owned(), options.clone());
        let mut restart = move || -> Result<Box<dyn Rows>, SourceError> {
            Ok(Box::new(ChunkRows::new(&owned, make(), &again)))
        };
        Ok(Input {
            name: name.to_owned(),
            format: "parquet",
            told_by: None,
            compression: None,
            stamps: Stamps::Own,
            in_rows: true,
            first: Some(checked(name, "parquet", restart()?, options)?),
            restart: Box::new(restart),
        })
    }

    /// Returns the rows of the next pass.
    pub(crate) fn start(&mut self) -> Result<Box<dyn Rows>, SourceError> {
        match self.first.take() {
            Some(rows) => Ok(rows),
            None => (self.restart)(),
        }
    }

    /// Returns where a line or row is, for messages.
    pub(crate) fn place(&self, line: u64) -> String {
        if self.in_rows { format!("{}: row {line}", self.name) } else { format!("{}:{line}", self.name) }
    }
}

/// Returns the rows, unless completions are needed and these have none.
fn checked(
    path: &str,
    format: &str,
    mut rows: Box<dyn Rows>,
    options: &Options,
) -> Result<Box<dyn Rows>, SourceError> {
    if options.completions != Completions::Needed || rows.has_completions()? {
        return Ok(rows);
    }
    let layouts = FORMATS.iter().chain(BINARIES.iter().map(|binary| &binary.format));
    let with: Vec<_> = layouts.filter(|format| format.completions).map(|format| format.name).collect();
    Err(input_error(
        path,
        &format!(
            "read as {format}, and does not say when requests completed, which dependent replay goes by\n  \
             these layouts may: parquet, {} (csv and parquet in a column latency_ns); \
             without completions: --replay open or --replay closed",
            with.join(", ")
        ),
    ))
}

/// Fails if the options want streams of what the layout's lines do not name.
fn check_streams(
    path: &str,
    format: &str,
    (sources, own): (&[StreamsOf], Option<&str>),
    options: &Options,
) -> Result<(), SourceError> {
    let wanted = options.streams;
    if wanted == StreamsOf::Layout || sources.contains(&wanted) {
        return Ok(());
    }
    let wanted = wanted.name();
    let besides = own.map_or(String::new(), |own| format!(" besides its streams, which are {own}"));
    Err(input_error(
        path,
        &format!(
            "read as {format}, whose lines name no {wanted}{besides}\n  \
             leave out workload.streams = \"{wanted}\""
        ),
    ))
}
