//! Baleen (Wong et al., FAST 2024; ftp.pdl.cmu.edu/pub/datasets/Baleen24; CacheLib's storage traces): requests to the
//! bulk storage of Meta. The columns as the authors' BCacheSim reads them (episodic_analysis/adaptors.py,
//! cachesim/legacy_utils.py), separated by blanks:
//!
//! - 2019: `block_id io_offset io_size op_time op_name pipeline user_namespace user_name`;
//! - 2021: `block_id io_offset io_size op_time op_name user_namespace user_name host_name op_count`;
//! - 2023: `block_id io_offset io_size op_time op_name user_namespace user_name rs_shard_id op_count host_name`.
//!
//! A first line `# block_id ...` names them; without it, their number says which they are. Operations 1, 2 and 5 are
//! reads (get), 3, 4 and 6 writes (put). Stamps are in seconds, sizes in bytes. What a block (2021: of a host, 2023: of
//! a shard) holds has an address range of its own: blocks are of at most 40 MB. A user is a stream.

use super::{Recognised, is_date};
use crate::devices::Devices;
use crate::fields::{Blanks, time, unexpected, whole};
use crate::header::Header;
use crate::number::unit;
use crate::streams::Streams;
use crate::text::{Parser, Row, Trouble};
use ftlab_core::workload::Op;

const NAMES: [&str; 9] = [
    "block_id",
    "io_offset",
    "io_size",
    "op_time",
    "op_name",
    "user_name",
    "rs_shard_id",
    "host_name",
    "op_count",
];
const NEEDED: usize = 6;
const YEARS: [&[u8]; 3] = [
    b"block_id io_offset io_size op_time op_name pipeline user_namespace user_name",
    b"block_id io_offset io_size op_time op_name user_namespace user_name host_name op_count",
    b"block_id io_offset io_size op_time op_name user_namespace user_name rs_shard_id op_count host_name",
];

fn header(line: &[u8]) -> Option<Header<9>> {
    Header::of(Blanks::of(line.strip_prefix(b"#").unwrap_or(line)), &NAMES, NEEDED)
}

/// The parser of this layout; its columns are known from the first line on.
#[derive(Default)]
pub(crate) struct Baleen {
    columns: Option<Header<9>>,
    streams: Streams,
    /// What holds the data: the block, and the shard or host.
    holder: Vec<u8>,
    /// Number of lines that stand for several requests.
    several: u64,
}

impl Baleen {
    fn find_columns(&mut self, line: &[u8]) -> Result<(), Trouble> {
        let count = Blanks::of(line).count();
        let year = YEARS.iter().find(|names| Blanks::of(names).count() == count);
        let year = year.ok_or_else(|| {
            Trouble::Line(format!("a line of {count} fields, not 8 (2019), 9 (2021) or 10 (2023)"))
        })?;
        self.columns = header(year);
        Ok(())
    }
}

fn op_of(text: &[u8]) -> Result<Option<Op>, Trouble> {
    Ok(match text {
        b"1" | b"2" | b"5" => Some(Op::Read),
        b"3" | b"4" | b"6" => Some(Op::Write),
        b"100" => None,
        _ => return Err(unexpected(NAMES[4], text, "1, 2 or 5 (get), 3, 4 or 6 (put), or 100 (unknown)")),
    })
}

impl Parser for Baleen {
    const TOLD_BY: &'static str = "stamps in seconds since 1970, and an operation from 1 to 6";
    const STREAMS: Option<&'static str> = Some("users");
    const RECOGNISED: Recognised = Recognised::HeaderOrLines(|line| header(line).is_some());
    const SAMPLE: &'static str = "# block_id io_offset io_size op_time op_name pipeline user_namespace user_name\n\
        3092 131072 65536 1571702400.5 1 3 2 71\n17 0 8388608 1571702401.25 4 3 2 72\n";
    const STRIDE: u64 = 1 << 26;

    fn shows(&self, line: &[u8]) -> bool {
        Blanks::of(line).nth(3).is_some_and(|stamp| is_date(stamp, 1))
    }

    fn parse(&mut self, line: &[u8], devices: &mut Devices) -> Result<Row, Trouble> {
        if line.starts_with(b"#") || line.starts_with(NAMES[0].as_bytes()) {
            self.columns = header(line).or(self.columns.take());
            return Ok(Row::Nothing);
        }
        if self.columns.is_none() {
            self.find_columns(line)?;
        }
        let columns = self.columns.as_ref().expect("they are known now");
        let fields = columns.pick(Blanks::of(line));
        let need = |field: usize| {
            fields[field].ok_or_else(|| Trouble::Line(format!("{} is missing: too few fields", NAMES[field])))
        };
        let block = need(0)?;
        let [offset, size] = [whole(need(1)?, NAMES[1])?, whole(need(2)?, NAMES[2])?];
        let time_ns = time(need(3)?, NAMES[3], unit::S)?;
        let op = op_of(need(4)?)?;
        self.several += u64::from(fields[8].is_some_and(|count| !matches!(count, b"0" | b"1")));
        let stream = self.streams.number(need(5)?)?;
        let Some(op) = op else { return Ok(Row::Drop("other_op")) };
        self.holder.clear();
        self.holder.extend_from_slice(block);
        if let Some(part) = fields[6].or(fields[7]) {
            self.holder.push(b' ');
            self.holder.extend_from_slice(part);
        }
        let offset = devices.place(&self.holder, offset, size)?;
        Ok(Row::streamed(time_ns, op, [offset, size], 0, stream))
    }

    fn notes(&self) -> Vec<String> {
        match self.several {
            0 => Vec::new(),
            lines => vec![format!(
                "{lines} lines stand for several requests in a second (op_count); each of them is one request"
            )],
        }
    }

    fn streams(&self) -> Option<&Streams> {
        Some(&self.streams)
    }
}
