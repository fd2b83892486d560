//! Where things are in a media file, and the format of its records. docs/live.md describes both.
//!
//! Every record is sealed with a checksum (XXH3, 64 bits) and is within one page of the system's cache, so a
//! process that is killed leaves either the old or the new record.

use ftlab_core::flash::media::{Kind, Spare};
use ftlab_core::settings::Settings;
use ftlab_core::sim::Identity;
use serde::{Deserialize, Serialize};
use twox_hash::XxHash3_64;

/// The first bytes of the file. The last two are a line end, so that a transfer in text mode damages them.
pub const MAGIC: [u8; 8] = *b"ftlnnd\r\n";
/// Version number of the layout.
pub const VERSION: u32 = 1;
/// Bytes of the head.
pub const HEAD: u64 = 64 << 10;
/// Bytes reserved after the head for the record that says how the file was left.
const LEFT: u64 = 4096;
/// Bytes of a block's record.
pub const BLOCK: usize = 32;
/// Bytes of a page's record before its slots, and bytes of the record for each slot.
const SPARE: usize = 24;
const SLOT: usize = 16;
/// Every part of the file begins at a multiple of this many bytes.
const ALIGN: u64 = 4096;

/// Returns the checksum used for everything in the file.
pub fn sum(bytes: &[u8]) -> u64 {
    XxHash3_64::oneshot(bytes)
}

/// The shape of the flash, and of its file. A page is what is programmed at once: a NAND page or a word line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Shape {
    /// Number of erase blocks.
    pub blocks: u32,
    /// Number of pages in a block.
    pub pages_per_block: u32,
    /// Bytes of a page's payload in the file.
    pub page_bytes: u32,
    /// Bytes of the record of a page's spare area.
    pub spare_bytes: u32,
}

impl Shape {
    /// Makes the shape for a device whose translation pages hold up to this many units.
    pub fn new(settings: &Settings, units_per_page: u32) -> Shape {
        let flash = &settings.flash;
        let units = units_per_page * flash.unit_pages();
        let slots = (flash.unit_bytes() / settings.ftl.logical_page_bytes).max(units) as usize;
        // An entry of the mapping is stored as 4 bytes here, whatever size it is configured to have.
        let wide = 4u32.div_ceil(settings.ftl.entry_bytes);
        Shape {
            blocks: (u64::from(flash.luns()) * flash.blocks_per_lun()) as u32,
            pages_per_block: flash.units_per_block(),
            page_bytes: flash.unit_bytes() * wide,
            spare_bytes: (SPARE + slots * SLOT + 8).next_power_of_two() as u32,
        }
    }

    /// Returns the number of pages.
    pub fn pages(&self) -> u64 {
        u64::from(self.blocks) * u64::from(self.pages_per_block)
    }

    /// Returns the offset of the record that says how the file was left.
    pub fn left(&self) -> u64 {
        HEAD
    }

    /// Returns where a block's record begins.
    pub fn block(&self, block: u32) -> u64 {
        HEAD + LEFT + u64::from(block) * BLOCK as u64
    }

    /// Returns where the record of a page's spare area begins.
    pub fn spare(&self, page: u64) -> u64 {
        self.block(self.blocks).next_multiple_of(ALIGN) + page * u64::from(self.spare_bytes)
    }

    /// Returns where a page's payload begins.
    pub fn payload(&self, page: u64) -> u64 {
        self.spare(self.pages()).next_multiple_of(ALIGN) + page * u64::from(self.page_bytes)
    }

    /// Returns where the checkpoint, the last part of the file, begins.
    pub fn checkpoint(&self) -> u64 {
        self.payload(self.pages()).next_multiple_of(ALIGN)
    }
}

/// The contents of the file's head.
#[derive(Debug, Serialize, Deserialize)]
pub struct Head {
    /// The shape of the flash.
    pub shape: Shape,
    /// The keys of the device with their values.
    pub device: Identity,
}

/// How the file was left: with or without a checkpoint.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Left {
    /// Bytes of the checkpoint; 0: there is none.
    pub bytes: u64,
    /// Checksum of the checkpoint.
    pub sum: u64,
}

impl Left {
    /// Bytes of the record.
    pub const BYTES: usize = 24;

    /// Encodes the record and its checksum.
    pub fn encode(&self) -> Vec<u8> {
        seal([self.bytes.to_le_bytes(), self.sum.to_le_bytes()].concat())
    }

    /// Parses the record; returns `None` if it is damaged.
    pub fn decode(bytes: &[u8]) -> Option<Left> {
        let mut from = Fields(open(bytes)?);
        Some(Left { bytes: from.u64(), sum: from.u64() })
    }
}

/// The record of a block.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BlockRecord {
    /// Sequence number of the block's last erase; 0: it has not been erased since the file was made.
    pub number: u64,
    /// Number of erasures.
    pub erases: u32,
    /// Whether a power cut interrupted the block's last erase.
    pub torn: bool,
}

impl BlockRecord {
    /// Encodes the record and its checksum.
    pub fn encode(&self) -> Vec<u8> {
        let mut out = self.number.to_le_bytes().to_vec();
        out.extend(self.erases.to_le_bytes());
        out.extend(u32::from(self.torn).to_le_bytes());
        out.extend([0; 8]);
        seal(out)
    }

    /// Parses the record; returns `None` if it is damaged. Zeroes mean a block that was never erased.
    pub fn decode(bytes: &[u8]) -> Option<BlockRecord> {
        if bytes.iter().all(|&byte| byte == 0) {
            return Some(BlockRecord::default());
        }
        let mut from = Fields(open(bytes)?);
        Some(BlockRecord { number: from.u64(), erases: from.u32(), torn: from.u32() != 0 })
    }
}

/// What the record of a page says about one of its slots.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Slot {
    /// The slot's owner, and the sequence number of the write.
    pub spare: Spare,
    /// Bytes of the slot's payload; 0: nothing is stored, and the slot reads as zeroes.
    pub bytes: u32,
}

/// The spare area of a page that is not erased.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Page {
    /// Sequence number of the program that wrote the page.
    pub number: u64,
    /// What the page's block is used for; `None`: a power cut interrupted the program.
    pub kind: Option<Kind>,
    /// Checksum of the payload.
    pub sum: u64,
    /// The page's slots.
    pub slots: Vec<Slot>,
}

const KINDS: [Kind; 6] = [Kind::Data, Kind::Map, Kind::Log, Kind::Shared, Kind::Cooperative, Kind::Slc];
const TORN: u32 = 0xff;

impl Page {
    /// Encodes the record and its checksum.
    pub fn encode(&self) -> Vec<u8> {
        let kind = self.kind.map_or(TORN, |kind| {
            KINDS.iter().position(|&other| other == kind).expect("all are listed") as u32
        });
        let mut out = self.number.to_le_bytes().to_vec();
        out.extend((self.slots.len() as u32).to_le_bytes());
        out.extend(kind.to_le_bytes());
        out.extend(self.sum.to_le_bytes());
        for Slot { spare, bytes } in &self.slots {
            out.extend(spare.owner.to_le_bytes());
            out.extend(bytes.to_le_bytes());
            out.extend(spare.seq.to_le_bytes());
        }
        seal(out)
    }

    /// Parses a record that is not all zeroes; returns `None` if it is damaged.
    pub fn decode(bytes: &[u8]) -> Option<Page> {
        let count = u32::from_le_bytes(bytes[8..12].try_into().expect("four bytes")) as usize;
        let length = count.checked_mul(SLOT)?.checked_add(SPARE + 8)?;
        let mut from = Fields(open(bytes.get(..length)?)?);
        let (number, _, kind, sum) = (from.u64(), from.u32(), from.u32(), from.u64());
        let kind = if kind == TORN { None } else { Some(*KINDS.get(kind as usize)?) };
        let slot = |_| {
            let (owner, bytes) = (from.u32(), from.u32());
            Slot { spare: Spare { owner, seq: from.u64() }, bytes }
        };
        Some(Page { number, kind, sum, slots: (0..count).map(slot).collect() })
    }
}

/// Appends the checksum to a record.
fn seal(mut record: Vec<u8>) -> Vec<u8> {
    let sum = sum(&record);
    record.extend(sum.to_le_bytes());
    record
}

/// Returns a record without its checksum; `None` if the checksum is wrong.
fn open(sealed: &[u8]) -> Option<&[u8]> {
    let (record, found) = sealed.split_last_chunk::<8>()?;
    (u64::from_le_bytes(*found) == sum(record)).then_some(record)
}

/// Takes numbers from the front of a record that is long enough.
struct Fields<'a>(&'a [u8]);

impl Fields<'_> {
    fn u64(&mut self) -> u64 {
        let (front, rest) = self.0.split_first_chunk().expect("the record is long enough");
        self.0 = rest;
        u64::from_le_bytes(*front)
    }

    fn u32(&mut self) -> u32 {
        let (front, rest) = self.0.split_first_chunk().expect("the record is long enough");
        self.0 = rest;
        u32::from_le_bytes(*front)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Records are read back unchanged, and a change of any single byte is noticed.
    #[test]
    fn records_are_sealed() {
        let slot = |owner, bytes| Slot { spare: Spare { owner, seq: 7 << 40 }, bytes };
        let page =
            Page { number: 9, kind: Some(Kind::Shared), sum: 5, slots: vec![slot(3, 4096), slot(4, 0)] };
        let torn = Page { number: 10, kind: None, sum: 0, slots: Vec::new() };
        let block = BlockRecord { number: 8, erases: 3, torn: true };
        let left = Left { bytes: 100, sum: 1 };
        assert_eq!(block.encode().len(), BLOCK);
        assert_eq!(left.encode().len(), Left::BYTES);
        for record in [page.encode(), torn.encode(), block.encode(), left.encode()] {
            for at in 0..record.len() {
                let mut bad = record.clone();
                bad[at] ^= 1;
                assert_ne!(Page::decode(&bad).as_ref(), Some(&page));
                assert_ne!(Page::decode(&bad).as_ref(), Some(&torn));
                assert!(BlockRecord::decode(&bad).is_none() && Left::decode(&bad).is_none());
            }
        }
        assert_eq!(Page::decode(&[page.encode(), vec![0; 8]].concat()), Some(page));
        assert_eq!(Page::decode(&torn.encode()), Some(torn));
        assert_eq!(BlockRecord::decode(&block.encode()), Some(block));
        assert_eq!(BlockRecord::decode(&[0; BLOCK]), Some(BlockRecord::default()));
        assert_eq!(Left::decode(&left.encode()), Some(left));
    }
}
