//! fio's I/O log, version 2 (`file action offset length`) and version 3 (`time file action offset length`), which
//! `write_iolog` writes since fio 3.31.
//!
//! Source: axboe/fio iolog.c (log_io_u, read_iolog, read_iolog_get, delay_since_ttime) of 3.33, and its runs. Version 3
//! counts microseconds since the job began. A wait of version 2 ends at this number of milliseconds since fio's start;
//! its manual speaks of microseconds since the wait before.

use super::Recognised;
use crate::devices::Devices;
use crate::fields::{Words, ticks, unexpected, whole};
use crate::options::Options;
use crate::text::{Parser, Row, Trouble};
use ftlab_core::workload::Op;

const MICROSECOND_NS: u64 = 1000;
const MILLISECOND_NS: u64 = 1_000_000;

/// Whether a line is the first line of such a log.
fn is_header(line: &[u8]) -> bool {
    line.starts_with(b"fio version ")
}

/// The parser of this layout.
#[derive(Default)]
pub(crate) struct Fio {
    version: Option<u8>,
    time_unit_ns: u64,
    /// Number of recordings so far: fio appends to a log that is there.
    recordings: u64,
    /// When the recording began, ns of the first one's clock.
    begun_ns: u64,
    /// The stamp of the line before, or the end of the last wait, ns since the recording began.
    stamp_ns: u64,
    has_requests: bool,
    has_waits: bool,
    /// The pause behind a stamp of 0, in which fio's own replay does not wait.
    unseen_ns: u64,
}

impl Fio {
    fn header(&mut self, line: &[u8]) -> Result<Row, Trouble> {
        let wrong = |what: &str| Trouble::Input(format!("{what}; ftlab reads fio iologs of version 2 and 3"));
        self.version = match line.strip_prefix(b"fio version ") {
            None => return Err(wrong("the first line is not \"fio version N iolog\"")),
            Some([b'2', b' ', ..]) => Some(2),
            Some([b'3', b' ', ..]) => Some(3),
            Some(_) => return Err(wrong("a version of fio's iolog that is not supported")),
        };
        self.recordings += 1;
        self.begun_ns = self.now()?;
        self.stamp_ns = 0;
        self.has_requests = false;
        Ok(Row::Nothing)
    }

    /// Returns the time of a line, ns of the first recording's clock.
    fn now(&self) -> Result<u64, Trouble> {
        let sum = self.begun_ns.checked_add(self.stamp_ns);
        sum.ok_or_else(|| Trouble::Line("the times exceed 2^64 ns together".into()))
    }

    fn stamp(&mut self, text: &[u8]) -> Result<(), Trouble> {
        let before_ns = std::mem::replace(&mut self.stamp_ns, ticks(text, "time", self.time_unit_ns)?);
        if before_ns == 0 && self.has_requests {
            self.unseen_ns = self.unseen_ns.max(self.stamp_ns);
        }
        Ok(())
    }
}

impl Parser for Fio {
    const RECOGNISED: Recognised = Recognised::Header(is_header);
    const SAMPLE: &'static str =
        "fio version 2 iolog\n/dev/a add\n/dev/a read 4096 512\n/dev/a wait 1500 0\n/dev/b write 0 4096\n";

    fn new(options: &Options) -> Fio {
        Fio { time_unit_ns: options.fio_time_unit_ns.unwrap_or(MICROSECOND_NS), ..Fio::default() }
    }

    fn parse(&mut self, line: &[u8], devices: &mut Devices) -> Result<Row, Trouble> {
        let Some(version) = self.version.filter(|_| !is_header(line)) else { return self.header(line) };
        let mut fields = Words::of(line);
        if version == 3 {
            self.stamp(fields.need("time")?)?;
        }
        let file = fields.need("file")?;
        let action = fields.need("action")?;
        let op = match action {
            b"add" | b"open" | b"close" => return Ok(Row::Nothing),
            b"wait" if version == 2 => {
                self.has_waits = true;
                self.stamp_ns = self.stamp_ns.max(ticks(fields.need("wait")?, "wait", MILLISECOND_NS)?);
                return Ok(Row::Nothing);
            }
            b"read" => Op::Read,
            b"write" => Op::Write,
            b"trim" => Op::Trim,
            b"sync" | b"datasync" | b"syncfs" | b"sync_file_range" => Op::Flush,
            _ => return Err(unexpected("action", action, "one of a fio iolog")),
        };
        let time_ns = self.now()?;
        self.has_requests = true;
        if op == Op::Flush {
            return Ok(Row::flush(time_ns));
        }
        let offset = whole(fields.need("offset")?, "offset")?;
        let size = whole(fields.need("length")?, "length")?;
        let offset = devices.place(file, offset, size)?;
        Ok(Row::Request { time_ns, op, offset, size })
    }

    fn notes(&self) -> Vec<String> {
        let waits = "a wait ends at its number of milliseconds since the start, as in fio's own replay; its manual \
                     speaks of microseconds since the wait before";
        let (recordings, unseen_ms) = (self.recordings, self.unseen_ns as f64 / 1e6);
        let appended = format!(
            "holds {recordings} recordings, taken one after another: fio appends to a log that is there; jobs that \
             ran at the same time need a write_iolog each"
        );
        let unseen = format!(
            "a pause of {unseen_ms:.3} ms is kept in which fio's own replay does not wait: it is behind a stamp of 0"
        );
        let found = [(self.has_waits, waits), (recordings > 1, &appended), (self.unseen_ns > 0, &unseen)];
        found.into_iter().filter(|(holds, _)| *holds).map(|(_, note)| note.to_owned()).collect()
    }
}
