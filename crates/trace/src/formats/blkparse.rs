//! blkparse's text: `maj,min cpu seq sec.nsec pid action rwbs sector + n [process]`.
//!
//! The same I/O appears as Q (queued), G, I, D (issued), C (completed) and more; one of Q, D and
//! C is counted: Q where the file's beginning has any, else D, else C. A summary ends the trace.

use crate::devices::Devices;
use crate::fields::{Words, sectors, time, unexpected, whole};
use crate::number::unit;
use crate::options::Options;
use crate::rwbs::{self, Flagged};
use crate::text::{Parser, Row, Trouble};
use ftlab_core::workload::Op;

/// The parser.
pub(crate) struct Blkparse {
    action: u8,
    flagged: Flagged,
    devices: Devices,
}

/// `8,16`.
fn is_device(text: &[u8]) -> bool {
    let mut parts = text.split(|byte| *byte == b',');
    let number =
        |part: Option<&[u8]>| part.is_some_and(|p| !p.is_empty() && p.iter().all(u8::is_ascii_digit));
    number(parts.next()) && number(parts.next()) && parts.next().is_none()
}

/// The first line of the summary that blkparse appends, per CPU or for several devices.
fn is_summary(line: &[u8]) -> bool {
    (line.starts_with(b"CPU") && line.contains(&b'(') && line.ends_with(b":"))
        || line.starts_with(b"Total (")
        || line.starts_with(b"Throughput (R/W):")
        || line.starts_with(b"Events (")
}

impl Blkparse {
    /// Whether the row is of the action that is counted.
    fn counts(&self, action: &[u8]) -> bool {
        *action == [self.action]
    }
}

impl Parser for Blkparse {
    const SAMPLE: &'static str = "  8,16   1  1  0.000000000   697  Q   W 223490 + 8 [k]\n  8,16 0 3 0.000012 697  D  FN [kworker]\nCPU0 (8,16):\n";

    fn new(_: &Options) -> Blkparse {
        Blkparse { action: b'Q', flagged: Flagged::default(), devices: Devices::default() }
    }

    fn prepare(&mut self, head: &[u8]) {
        let has = |action: u8| {
            head.split(|byte| *byte == b'\n').any(|line| {
                let mut words = Words::of(line);
                words.next().is_some_and(is_device) && words.nth(4) == Some(&[action])
            })
        };
        self.action = [b'Q', b'D', b'C'].into_iter().find(|&action| has(action)).unwrap_or(b'Q');
    }

    fn parse(&mut self, line: &[u8], _: bool) -> Result<Row, Trouble> {
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
        if !self.counts(fields.need("action")?) {
            return Ok(Row::Drop("not_issue"));
        }
        let flags = fields.need("rwbs")?;
        let rwbs =
            rwbs::parse(flags).ok_or_else(|| unexpected("rwbs", flags, "flags such as R, WS or FWFS"))?;
        // A flush has no sector; "sector + n" follows for the rest, and a SCSI command of another
        // kind has its bytes in parentheses.
        let start = fields.next().filter(|text| text.first().is_some_and(u8::is_ascii_digit));
        let range = match (start, fields.next()) {
            (Some(start), Some(b"+")) => Some((
                sectors(start, "sector")?,
                sectors(fields.need("count of sectors")?, "count of sectors")?,
            )),
            _ => None,
        };
        match (rwbs.op, range) {
            (Some(Op::Flush), _) => Ok(Row::flush(time_ns)),
            (Some(Op::Write), None | Some((_, 0))) if rwbs.preflush || rwbs.fua => Ok(Row::flush(time_ns)),
            (None, _) | (_, None) => Ok(Row::Drop("other_op")),
            (Some(op), Some((offset, size))) => {
                let offset = self.devices.place(device, offset, size)?;
                Ok(Row::flagged(time_ns, op, [offset, size], self.flagged.count(rwbs)))
            }
        }
    }

    fn notes(&self) -> Vec<String> {
        let mut notes = vec![format!("counted the rows of action {}", char::from(self.action))];
        notes.extend(self.flagged.notes());
        notes.extend(self.devices.notes());
        notes
    }
}
