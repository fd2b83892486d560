//! BIOtracer (Zhou et al., IISWC 2015), Nexus 5: start sector, sectors, bytes, flags and four times
//! in seconds (generated, process start, submitted, finished), separated by tabs.
//!
//! In the flags, bit 0 marks a write, and bit 2 a request that did not wait. The authors' notes say that a size should
//! be a multiple of 8 sectors, that the eMMC driver adds a sector to some requests, and that this has to be cleaned
//! up; in recordings it adds exactly one sector, and only to writes (the header of a packed command). So sizes are
//! rounded down to multiples of 4 KiB, but not below 4 KiB.

use crate::devices::Devices;
use crate::fields::{SECTOR, Words, sectors, time, unexpected, whole};
use crate::number::unit;
use crate::options::Options;
use crate::text::{Parser, Row, Trouble};
use ftlab_core::workload::{Op, Record};

const BLOCK: u64 = 8 * SECTOR;

/// The parser of this layout.
#[derive(Default)]
pub(crate) struct Biotracer {
    /// Whether completions are wanted.
    completions: bool,
    cleaned: u64,
}

impl Parser for Biotracer {
    const TOLD_BY: &'static str = "bytes that are 512 times the sectors, and four times in order";
    const SAMPLE: &'static str =
        "131072\t8\t4096\t5\t10.5\t10.5001\t10.5002\t10.51\n200\t17\t8704\t1\t10.6\t10.6\t10.6\t10.7\n";

    const COMPLETIONS: bool = true;

    fn new(options: &Options) -> Biotracer {
        Biotracer { completions: options.wants_completions(), cleaned: 0 }
    }

    fn shows(&self, line: &[u8]) -> bool {
        let fields: Vec<_> = Words::of(line).collect();
        let [bytes, count] = [whole(fields[2], ""), sectors(fields[1], "")].map(|number| number.ok());
        let times: Option<Vec<_>> = fields[4..].iter().map(|text| time(text, "", unit::S).ok()).collect();
        bytes == count && times.is_some_and(|times| times.is_sorted())
    }

    fn parse(&mut self, line: &[u8], _: &mut Devices) -> Result<Row, Trouble> {
        let mut fields = Words::of(line);
        let offset = sectors(fields.need("start sector")?, "start sector")?;
        let recorded = sectors(fields.need("sectors")?, "sectors")?;
        whole(fields.need("bytes")?, "bytes")?;
        let flags = whole(fields.need("flags")?, "flags")?;
        let time_ns = time(fields.need("time generated")?, "time generated", unit::S)?;
        let mut finished_ns = time_ns;
        for name in ["time of process start", "time submitted", "time finished"] {
            finished_ns = time(fields.need(name)?, name, unit::S)?;
        }
        if let Some(extra) = fields.next() {
            return Err(unexpected("what follows the times", extra, "nothing: eight fields make a line"));
        }
        let size = match recorded {
            0 => 0,
            _ => (recorded / BLOCK * BLOCK).max(BLOCK),
        };
        self.cleaned += u64::from(size != recorded);
        let op = if flags & 1 == 1 { Op::Write } else { Op::Read };
        let latency_ns = match self.completions {
            true => finished_ns.saturating_sub(time_ns),
            false => Record::UNKNOWN,
        };
        Ok(Row::timed(time_ns, op, [offset, size], latency_ns))
    }

    fn notes(&self) -> Vec<String> {
        match self.cleaned {
            0 => Vec::new(),
            n => {
                vec![format!("{n} sizes were not multiples of 4 KiB (sectors the driver adds): rounded down")]
            }
        }
    }
}
