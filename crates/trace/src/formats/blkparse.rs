//! blkparse's text: `maj,min cpu seq sec.nsec pid action rwbs sector + n [process]`.
//!
//! The same I/O appears as Q (queued), G, I (inserted), D (issued), C (completed) and more; only the rows of one of
//! these actions are counted ([`Counted`]). A summary ends the trace.

use crate::actions::Counted;
use crate::devices::Devices;
use crate::fields::{Words, sectors, time, unexpected, whole};
use crate::lines::lines_of;
use crate::number::unit;
use crate::options::Options;
use crate::rwbs::{self, Flagged};
use crate::text::{Parser, Row, Trouble};
use ftlab_core::settings::StreamsOf;
use ftlab_core::workload::Op;

/// The parser of this layout.
#[derive(Default)]
pub(crate) struct Blkparse {
    counted: Counted,
    /// Whether completions are wanted, and there are some.
    completions: bool,
    flagged: Flagged,
}

/// Whether a text is a device number such as `8,16`.
fn is_device(text: &[u8]) -> bool {
    let mut parts = text.split(|byte| *byte == b',');
    let number =
        |part: Option<&[u8]>| part.is_some_and(|p| !p.is_empty() && p.iter().all(u8::is_ascii_digit));
    number(parts.next()) && number(parts.next()) && parts.next().is_none()
}

/// Whether a line is the first of the summary that blkparse appends, per CPU or for several devices.
fn is_summary(line: &[u8]) -> bool {
    (line.starts_with(b"CPU") && line.contains(&b'(') && line.ends_with(b":"))
        || line.starts_with(b"Total (")
        || line.starts_with(b"Throughput (R/W):")
        || line.starts_with(b"Events (")
}

impl Parser for Blkparse {
    const TOLD_BY: &'static str = "the numbers of a device, an action and flags";
    const SAMPLE: &'static str = "  8,16   1  1  0.000000000   697  Q   W 223490 + 8 [k]\n  8,16 0 3 0.000012 697  D  FN [kworker]\nCPU0 (8,16):\n";
    const SOURCES: &'static [StreamsOf] = &[StreamsOf::Process, StreamsOf::Volume];

    fn source(line: &[u8], of: StreamsOf) -> Option<&[u8]> {
        Words::of(line).nth(if of == StreamsOf::Process { 4 } else { 0 })
    }

    const COMPLETIONS: bool = true;
    const COMPLETIONS_APART: bool = true;

    fn new(options: &Options) -> Blkparse {
        Blkparse { completions: options.wants_completions(), ..Blkparse::default() }
    }

    fn has_completions(&self) -> bool {
        self.completions
    }

    fn prepare(&mut self, head: &[u8]) {
        self.counted = Counted::of(lines_of(head).filter_map(|line| {
            let mut words = Words::of(line);
            words.next().filter(|device| is_device(device))?;
            words.nth(4).filter(|action| action.len() == 1).map(|action| action[0])
        }));
        self.completions &= self.counted.completions;
    }

    fn parse(&mut self, line: &[u8], devices: &mut Devices) -> Result<Row, Trouble> {
        if is_summary(line) {
            return Ok(Row::End);
        }
        let mut fields = Words::of(line);
        let device = fields.need("device")?;
        if !is_device(device) {
            return Err(unexpected("device", device, "major,minor"));
        }
        whole(fields.need("cpu")?, "cpu")?;
        whole(fields.need("sequence")?, "sequence")?;
        let stamp = fields.need("time")?;
        let time_ns = time(stamp, "time", unit::S)?;
        whole(fields.need("pid")?, "pid")?;
        let action = fields.need("action")?;
        let completes = self.completions && action == b"C";
        if !(action.len() == 1 && self.counted.counts(action[0]) || completes) {
            return Ok(Row::Drop("not_issue"));
        }
        let flags = fields.need("rwbs")?;
        let rwbs =
            rwbs::parse(flags).ok_or_else(|| unexpected("rwbs", flags, "flags such as R, WS or FWFS"))?;
        // A flush has no sector; other requests have "sector + n", except SCSI commands of another kind,
        // which have their bytes in parentheses.
        let start = fields.next().filter(|text| text.first().is_some_and(u8::is_ascii_digit));
        let range = match (start, fields.next()) {
            (Some(start), Some(b"+")) => Some((
                sectors(start, "sector")?,
                sectors(fields.need("count of sectors")?, "count of sectors")?,
            )),
            _ => None,
        };
        let op = match (rwbs.op, range) {
            // A flush is a write of nothing, completed as "FWS 0".
            (Some(Op::Write), None | Some((_, 0))) if rwbs.preflush || rwbs.fua => Some(Op::Flush),
            (op, _) => op,
        };
        match (op, range) {
            (Some(Op::Flush), _) if completes => Ok(Row::completion(time_ns, Op::Flush, [0, 0])),
            (Some(op), Some((offset, size))) if completes && size > 0 => {
                Ok(Row::completion(time_ns, op, [devices.place(device, offset, size)?, size]))
            }
            _ if completes => Ok(Row::Drop("not_issue")),
            (Some(Op::Flush), _) => Ok(Row::flush(time_ns)),
            (None, _) | (_, None) => Ok(Row::Drop("other_op")),
            (Some(op), Some((offset, size))) => {
                let offset = devices.place(device, offset, size)?;
                Ok(Row::flagged(time_ns, op, [offset, size], self.flagged.count(rwbs)))
            }
        }
    }

    fn notes(&self) -> Vec<String> {
        let mut notes = vec![self.counted.note()];
        notes.extend(self.flagged.notes());
        notes
    }
}
