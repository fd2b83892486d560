//! The four layouts that look alike: `arrival device address size op`, separated by blanks, in different units.
//! Nothing in such a file distinguishes them, so they are never guessed.

use super::{Recognised, digit_op};
use crate::devices::Devices;
use crate::fields::{SECTOR, Words, time, unexpected, whole};
use crate::number::unit;
use crate::text::{Parser, Row, Trouble};
use ftlab_core::settings::StreamsOf;
use ftlab_core::workload::Op;

/// Units of one of these layouts.
pub(crate) trait Layout: Default + Send + 'static {
    /// Reads the arrival time; returns ns.
    fn arrival(text: &[u8]) -> Result<u64, Trouble>;
    /// Some lines of the layout.
    const SAMPLE: &'static str;
    /// Bytes of the unit in which address and size are given.
    const BYTES: u64;
    /// Reads the operation, the last field.
    fn op(text: &[u8]) -> Result<Op, Trouble> {
        digit_op(text, "operation", [b'1', b'0'])
    }
}

/// The layout of MQSim and SSDSim: times in ns, addresses and sizes in sectors; operation 1 is a read.
#[derive(Default)]
pub(crate) struct Mqsim;
pub(crate) type Ssdsim = Mqsim;
impl Layout for Mqsim {
    const SAMPLE: &'static str = "1000 0 8 16 1\n3000 1 4096 8 0\n";
    fn arrival(text: &[u8]) -> Result<u64, Trouble> {
        whole(text, "arrival")
    }
    const BYTES: u64 = SECTOR;
}

/// DiskSim's ASCII layout: times in ms with decimals, addresses and sizes in sectors; bit 0 of the hexadecimal flags
/// marks a read.
#[derive(Default)]
pub(crate) struct Disksim;
impl Layout for Disksim {
    const SAMPLE: &'static str = "0.5 0 8 16 1\n1.5 1 8 16 1f\n";
    fn arrival(text: &[u8]) -> Result<u64, Trouble> {
        time(text, "arrival", unit::MS)
    }
    const BYTES: u64 = SECTOR;
    fn op(text: &[u8]) -> Result<Op, Trouble> {
        let digits = text.strip_prefix(b"0x").or(text.strip_prefix(b"0X")).unwrap_or(text);
        let flags = std::str::from_utf8(digits)
            .ok()
            // from_str_radix would accept a sign.
            .filter(|digits| digits.bytes().all(|byte| byte.is_ascii_hexdigit()))
            .and_then(|digits| u64::from_str_radix(digits, 16).ok())
            .ok_or_else(|| unexpected("flags", text, "a hexadecimal number"))?;
        Ok(if flags & 1 == 1 { Op::Read } else { Op::Write })
    }
}

/// The layout of the replayer: times in ms with decimals, addresses and sizes in bytes; operation 1 is a read.
#[derive(Default)]
pub(crate) struct Replayer;
impl Layout for Replayer {
    const SAMPLE: &'static str = "0.5 0 8 16 1\n1.5 0 4096 8 0\n";
    fn arrival(text: &[u8]) -> Result<u64, Trouble> {
        time(text, "arrival", unit::MS)
    }
    const BYTES: u64 = 1;
}

fn bytes(text: &[u8], name: &'static str, unit_bytes: u64) -> Result<u64, Trouble> {
    let count = whole(text, name)?;
    count.checked_mul(unit_bytes).ok_or_else(|| unexpected(name, text, "a number this side of 2^64 bytes"))
}

impl<L: Layout> Parser for L {
    const RECOGNISED: Recognised = Recognised::Never;
    const SAMPLE: &'static str = <L as Layout>::SAMPLE;
    const SOURCES: &'static [StreamsOf] = &[StreamsOf::Volume];

    fn source(line: &[u8], _: StreamsOf) -> Option<&[u8]> {
        Words::of(line).nth(1)
    }

    fn parse(&mut self, line: &[u8], devices: &mut Devices) -> Result<Row, Trouble> {
        let mut fields = Words::of(line);
        let time_ns = L::arrival(fields.need("arrival")?)?;
        let device = fields.need("device")?;
        whole(device, "device")?;
        let offset = bytes(fields.need("address")?, "address", L::BYTES)?;
        let size = bytes(fields.need("size")?, "size", L::BYTES)?;
        let op = L::op(fields.need("operation")?)?;
        if let Some(extra) = fields.next() {
            return Err(unexpected("what follows the operation", extra, "nothing: five fields make a line"));
        }
        let offset = devices.place(device, offset, size)?;
        Ok(Row::Request { time_ns, op, offset, size })
    }
}
